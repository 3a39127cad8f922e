//! A map of what files define: the most important files with their most important signatures,
//! within a budget.
//!
//! The repository map needs nothing but paths, so it is there before
//! anything is indexed; this one is for whoever has an index to rank by.

use std::fmt::Write as _;

use journeyman_protocol::{TokenCounter as _, Tokens};

use crate::TokenEstimator;

/// Bytes of a signature that are shown: what is longer is a list of parameters.
const MAX_SIGNATURE_BYTES: usize = 160;
/// Levels that a signature is moved to the right by.
const MAX_INDENT_LEVELS: usize = 4;
/// Files in a row that don't fit, after which no smaller one is looked for.
const MAX_MISSES: usize = 30;

/// A file of the map.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileOutline {
    /// Its path.
    pub path: String,
    /// Its definitions, in the order of the text.
    pub signatures: Vec<Signature>,
}

/// A definition of a file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Signature {
    /// Its beginning, on one line.
    pub text: String,
    /// The depth of nesting.
    pub depth: usize,
    /// The value of the signature compared with the file's others: when room is short, the least
    /// goes first.
    pub worth: f64,
}

/// The map of some files, the most important first, and how many of them it shows. Each has what
/// fits of its signatures, and fewer if the next ones are to have a place too: a file takes an
/// eighth of what is left at most, the first one half. The same files and budget give the same
/// text.
#[must_use]
pub fn outline_map(files: &[FileOutline], budget: Tokens) -> (String, usize) {
    let (mut map, mut shown, mut missed) = (String::new(), 0, 0);
    let mut left = budget.0;
    for file in files {
        let room = if shown == 0 { left / 2 } else { (left / 8).max(left.min(60)) };
        let Some((text, cost)) = fit_outline(file, room) else {
            missed += 1;
            if missed == MAX_MISSES {
                break;
            }
            continue;
        };
        map.push_str(&text);
        left = left.saturating_sub(cost);
        shown += 1;
        missed = 0;
    }
    (map, shown)
}

/// A file with as many of its signatures as have room, and what that costs.
fn fit_outline(file: &FileOutline, room: u64) -> Option<(String, u64)> {
    let mut order: Vec<usize> = (0..file.signatures.len()).collect();
    let worth = |at: &usize| file.signatures.get(*at).map_or(0.0, |one| one.worth);
    order.sort_by(|one, other| worth(other).total_cmp(&worth(one)).then(one.cmp(other)));
    let mut many = order.len();
    loop {
        let mut chosen: Vec<usize> = order.iter().take(many).copied().collect();
        chosen.sort_unstable();
        let mut text = format!("{}\n", one_line(&file.path, usize::MAX));
        for signature in chosen.iter().filter_map(|at| file.signatures.get(*at)) {
            let indent = "  ".repeat(signature.depth.min(MAX_INDENT_LEVELS) + 1);
            let _infallible = writeln!(text, "{indent}{}", one_line(&signature.text, MAX_SIGNATURE_BYTES));
        }
        let cost = TokenEstimator.count(&text).0;
        if cost <= room {
            return Some((text, cost));
        }
        if many == 0 {
            return None;
        }
        // The excess is dropped by an estimate first, then one by one.
        many = many.saturating_sub(1).min((many as u64 * room / cost.max(1)) as usize + 1);
    }
}

/// Text of a file that can't pass for another line, cut to so many bytes.
fn one_line(text: &str, most: usize) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if plain.len() <= most {
        return plain;
    }
    format!("{}…", plain.get(..plain.floor_char_boundary(most)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, signatures: &[(&str, usize, f64)]) -> FileOutline {
        let signatures = signatures.iter().map(|(text, depth, worth)| Signature {
            text: (*text).to_owned(),
            depth: *depth,
            worth: *worth,
        });
        FileOutline { path: path.to_owned(), signatures: signatures.collect() }
    }

    #[test]
    fn what_has_room_is_shown_in_the_order_of_the_text() {
        let files = [
            file("a.py", &[("class Shop", 0, 2.0), ("def open(self)", 1, 1.0)]),
            file("b.py", &[("def ring()", 0, 1.0)]),
        ];
        let (map, shown) = outline_map(&files, Tokens(1_000));
        assert_eq!(map, "a.py\n  class Shop\n    def open(self)\nb.py\n  def ring()\n");
        assert_eq!(shown, 2);
        assert_eq!(outline_map(&files, Tokens(0)), (String::new(), 0));
        assert_eq!(outline_map(&[], Tokens(100)), (String::new(), 0));
    }

    #[test]
    fn the_least_important_goes_first() {
        let many: Vec<(String, f64)> =
            (0..200).map(|n| (format!("def method_number_{n}(self, a, b)"), f64::from(n))).collect();
        let many: Vec<(&str, usize, f64)> =
            many.iter().map(|(text, worth)| (text.as_str(), 0, *worth)).collect();
        let files = [file("big.py", &many), file("small.py", &[("def x()", 0, 1.0)])];
        for budget in [60, 100, 300, 900] {
            let (map, shown) = outline_map(&files, Tokens(budget));
            assert!(TokenEstimator.count(&map).0 <= budget, "{budget}: {}", TokenEstimator.count(&map).0);
            assert!(map.contains("method_number_199(") && !map.contains("method_number_0("), "{map}");
            assert!(map.ends_with("small.py\n  def x()\n"), "{budget}: {map}");
            assert_eq!(shown, 2);
        }
    }

    #[test]
    fn hostile_text_stays_on_its_line() {
        let long = "é".repeat(500);
        let files = [file("a\nb.py", &[("def f(\u{1b}[31m\n)", 0, 1.0), (&long, 99, 1.0)])];
        let (map, _) = outline_map(&files, Tokens(10_000));
        assert_eq!(map.lines().count(), 3);
        assert!(!map.contains('\u{1b}') && map.len() < 300);
    }
}
