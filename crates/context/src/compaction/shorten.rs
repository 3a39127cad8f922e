//! Shortening a text to any number of tokens, however few.

use journeyman_protocol::{TokenCounter, Tokens};

/// The head's share of what is kept, in hundredths: as for files, declarations and first errors
/// stand at the top.
const HEAD_SHARE: usize = 60;
/// Attempts at a size that fits before only the note is left.
const ATTEMPTS: u32 = 12;

/// Fits a text into a budget: its head and tail stay, with a note of what is missing between them.
/// `recall` tells the model how to get the whole, if there is a way.
pub(super) fn shorten(
    text: &str,
    budget: Tokens,
    recall: Option<&str>,
    counter: &dyn TokenCounter,
) -> Option<String> {
    let tokens = counter.count(text);
    if tokens <= budget {
        return None;
    }
    let recall = recall.map(|recall| format!("; {recall}")).unwrap_or_default();
    // Bytes that the budget would hold at the text's own rate.
    let mut keep = (text.len() as u128 * u128::from(budget.0) / u128::from(tokens.0.max(1))) as usize;
    for _ in 0..ATTEMPTS {
        let shortened = head_and_tail(text, keep, &recall);
        if counter.count(&shortened) <= budget {
            return Some(shortened);
        }
        keep = keep * 4 / 5;
    }
    Some(format!("[{} bytes left out{recall}]", text.len()))
}

fn head_and_tail(text: &str, keep: usize, recall: &str) -> String {
    let head_bytes = keep * HEAD_SHARE / 100;
    let head = text.get(..text.floor_char_boundary(head_bytes)).unwrap_or_default();
    let tail_at = text.ceil_char_boundary(text.len().saturating_sub(keep - head_bytes));
    let tail = text.get(tail_at..).unwrap_or_default();
    // Whole lines where there are some.
    let head = head.rfind('\n').filter(|end| *end * 2 > head.len()).map_or(head, |end| &head[..=end]);
    let tail = tail.find('\n').filter(|end| *end * 2 < tail.len()).map_or(tail, |end| &tail[end + 1..]);
    let left_out = text.len().saturating_sub(head.len() + tail.len());
    let gap = if head.ends_with('\n') || head.is_empty() { "" } else { "\n" };
    format!("{head}{gap}[{left_out} bytes left out{recall}]\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Estimate;

    #[test]
    fn a_text_that_fits_is_left_alone_and_others_keep_both_ends() {
        assert_eq!(shorten("short", Tokens(10), None, &Estimate), None);
        let text: String = (0..500).map(|number| format!("line {number} of the output\n")).collect();
        let short = shorten(&text, Tokens(200), Some("read_file has it"), &Estimate).unwrap();
        assert!(Estimate.count(&short) <= Tokens(200), "{short}");
        assert!(short.starts_with("line 0 ") && short.ends_with("line 499 of the output\n"), "{short}");
        assert!(short.contains("bytes left out; read_file has it]"), "{short}");
    }

    #[test]
    fn a_tiny_budget_leaves_the_note() {
        let short = shorten(&"字".repeat(1_000), Tokens(2), None, &Estimate).unwrap();
        assert_eq!(short, "[3000 bytes left out]");
    }
}
