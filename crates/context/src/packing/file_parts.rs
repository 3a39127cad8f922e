//! The parts of a file that a task is about, without an index: its definitions, by the syntax tree.

use std::ops::Range;

use journeyman_protocol::{ContextCategory, RelPath};
use journeyman_syntax::language::Language;
use journeyman_syntax::outline::outline;
use journeyman_syntax::parse::parse;

use super::candidate::{CandidateReason, ContextCandidate};
use super::file_text::FileText;
use crate::words::TaskVocabulary;

/// Lines of a part where there are no definitions, and of the parts of a longer definition.
const PART_LINES: u32 = 40;
/// Definitions of at most this many lines stay whole.
const MAX_BODY_LINES: u32 = 120;
/// Lines at a file's beginning that count as its head: imports and declarations.
const HEAD_LINES: u32 = 20;
/// Relevance of the head, and of a part without any word of the task.
const HEAD_RELEVANCE: f64 = 0.4;
const OTHER_RELEVANCE: f64 = 0.1;
/// A longer text isn't parsed, in bytes.
const MAX_PARSED_BYTES: usize = 1 << 20;

/// Returns a text by lines, and its parts as candidates, for a file that the task names. The part
/// around the named line is the most relevant one, and then those with the most of the task's
/// words.
#[must_use]
pub fn relevant_parts(
    path: &RelPath,
    text: &str,
    task: &str,
    line: Option<u32>,
) -> (FileText, Vec<ContextCandidate>) {
    let symbols = Language::detect(&path.to_string(), text)
        .filter(|_| text.len() <= MAX_PARSED_BYTES)
        .and_then(|language| parse(language, text).ok())
        .map(|tree| outline(&tree, text))
        .unwrap_or_default();
    let global = symbols.iter().filter(|symbol| !symbol.local);
    let definitions = global.clone().map(|symbol| (symbol.name_line, symbol.name.clone())).collect();
    let file = FileText::new(text, definitions);
    let starts: Vec<u32> = global.map(|symbol| symbol.lines.start).collect();
    let words = TaskVocabulary::from_text(task);
    let parts = cut_into_parts(file.line_count(), starts);
    let scores: Vec<u32> =
        parts.iter().map(|part| words.count_distinct(file.slice(part).as_bytes())).collect();
    let most = scores.iter().copied().max().unwrap_or(0).max(1);
    let mut candidates = Vec::with_capacity(parts.len());
    for (lines, score) in parts.into_iter().zip(scores) {
        let named = line.is_some_and(|line| lines.contains(&line));
        let head = if lines.start == 1 { HEAD_RELEVANCE } else { OTHER_RELEVANCE };
        let share = f64::from(score) / f64::from(most);
        let relevance = if named { 1.0 } else { head.max(0.9 * share) };
        let (category, path) = (ContextCategory::ActiveFiles, path.clone());
        candidates.push(ContextCandidate {
            category,
            path,
            lines,
            relevance,
            reason: CandidateReason::Named,
        });
    }
    (file, candidates)
}

/// Cuts lines where definitions begin; together they are all lines.
fn cut_into_parts(lines: u32, mut starts: Vec<u32>) -> Vec<Range<u32>> {
    starts.push(1);
    starts.sort_unstable();
    starts.dedup();
    starts.retain(|line| *line >= 1 && *line <= lines);
    let mut parts = Vec::new();
    for (at, start) in starts.iter().enumerate() {
        let end = starts.get(at + 1).copied().unwrap_or(lines + 1);
        let most = if *start == 1 && end - start > HEAD_LINES && starts.len() == 1 {
            PART_LINES
        } else {
            MAX_BODY_LINES
        };
        let mut first = *start;
        while first < end {
            let next = if end - first <= most { end } else { first + PART_LINES };
            parts.push(first..next);
            first = next;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_file_are_all_of_it() {
        for (lines, starts) in
            [(0, vec![]), (1, vec![]), (500, vec![]), (300, vec![20, 40, 250]), (9, vec![4, 40])]
        {
            let parts = cut_into_parts(lines, starts);
            assert_eq!(parts.into_iter().flatten().collect::<Vec<u32>>(), (1..=lines).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_definition_that_the_task_is_about_comes_first() {
        let body =
            |name: &str| format!("def {name}(value):\n{}    return value\n\n", "    value += 1\n".repeat(30));
        let text = ["open_shop", "close_shop", "count_stock"].map(body).concat();
        let path = RelPath::parse("shop.py").unwrap();
        let best = |task: &str, line| {
            let (file, candidates) = relevant_parts(&path, &text, task, line);
            let best = candidates.iter().max_by(|a, b| a.relevance.total_cmp(&b.relevance)).unwrap();
            file.slice(&best.lines).lines().next().unwrap().to_owned()
        };
        assert_eq!(
            best("the stock is counted wrongly: count_stock in shop.py", None),
            "def count_stock(value):"
        );
        assert_eq!(best("see shop.py:40", Some(40)), "def close_shop(value):");
    }
}
