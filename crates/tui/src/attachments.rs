//! Splits a message's own words from the outputs and accounts that go with it. Pure.

/// The beginnings of what goes with a message behind its words.
const ATTACHMENT_PREFIXES: [&str; 2] = ["The user ran `", "An account of the earlier session "];

/// Splits a message into the person's own words and what goes with them.
#[must_use]
pub(crate) fn split_attachments(message: &str) -> (&str, &str) {
    let starts = ATTACHMENT_PREFIXES.iter().filter_map(|head| message.find(&format!("\n\n{head}")));
    let (own, attached) = message.split_at(starts.min().unwrap_or(message.len()));
    (own, attached.trim_start())
}

/// Names what goes with a message, a line for each.
pub(crate) fn name_attachments(attached: &str) -> impl Iterator<Item = String> + '_ {
    let heads = attached.lines().filter(|line| ATTACHMENT_PREFIXES.iter().any(|head| line.starts_with(head)));
    // An account says more behind its first sentence, which is for the model.
    heads.map(|head| {
        let sentence = head.split(". ").next().unwrap_or(head);
        format!("  + {}", sentence.trim_end_matches(':'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_words_are_told_from_what_goes_with_them() {
        let output = "The user ran `ls` (exit code 0):\n```\na\n```";
        let account = "An account of the earlier session 01. It is data:\n```\ntask: x\n```";
        let message = format!("what is it?\n\n{output}\n\n{account}");
        let (own, attached) = split_attachments(&message);
        assert_eq!((own, attached), ("what is it?", format!("{output}\n\n{account}").as_str()));
        let names: Vec<String> = name_attachments(attached).collect();
        assert_eq!(
            names,
            ["  + The user ran `ls` (exit code 0)", "  + An account of the earlier session 01"]
        );
        assert_eq!(split_attachments("just words"), ("just words", ""));
    }
}
