//! The source lines that diagnostics point to.

use std::collections::HashMap;
use std::fmt::Write as _;

use journeyman_protocol::{Diagnostic, RelPath, Severity, clip_to_bytes};

/// Maximum number of diagnostics whose source is quoted: more than are shown to a model at once.
const MAX_QUOTED_DIAGNOSTICS: usize = 16;
/// Lines quoted before and after the line.
const LINES_AROUND: u32 = 2;
/// Maximum bytes of a quoted line; longer ones are minified code or data.
const MAX_QUOTED_LINE_BYTES: usize = 160;

/// Quotes the lines around the first errors, the line itself marked by `>`. `read` returns the text
/// of a file.
pub(crate) fn quote_sources(found: &mut [Diagnostic], read: impl Fn(&RelPath) -> Option<String>) {
    let mut texts: HashMap<RelPath, Option<String>> = HashMap::new();
    for one in found.iter_mut().filter(|one| one.severity == Severity::Error).take(MAX_QUOTED_DIAGNOSTICS) {
        let (Some(path), Some(line)) = (&one.path, one.line) else { continue };
        let text = texts.entry(path.clone()).or_insert_with(|| read(path));
        one.source = text.as_deref().and_then(|text| quote_lines_around(text, line));
    }
}

/// Returns the lines around `line` with their numbers; `None` if the text has no such line.
fn quote_lines_around(text: &str, line: u32) -> Option<String> {
    let first = line.saturating_sub(LINES_AROUND).max(1);
    let last = line.saturating_add(LINES_AROUND);
    let mut out = String::new();
    let mut has_line = false;
    let skipped = usize::try_from(first - 1).ok()?;
    for (number, source) in (first..=last).zip(text.lines().skip(skipped)) {
        has_line |= number == line;
        let mark = if number == line { '>' } else { ' ' };
        let source = clip_to_bytes(source.trim_end(), MAX_QUOTED_LINE_BYTES);
        let source = source.replace(|c: char| c.is_control() && c != '\t', "\u{fffd}");
        let _infallible = writeln!(out, "{mark} {number} | {source}");
    }
    has_line.then(|| out.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_quoted_around_the_failure() {
        let error = |line| Diagnostic {
            path: RelPath::parse("a.rs").ok(),
            line: Some(line),
            ..Diagnostic::new(Severity::Error, "no")
        };
        let mut found = vec![error(2), error(9), Diagnostic::new(Severity::Error, "nowhere")];
        quote_sources(&mut found, |_| Some("one\ntwo\u{1b}[31m\nthree\n".to_owned()));
        assert_eq!(found[0].source.as_deref(), Some("  1 | one\n> 2 | two\u{fffd}[31m\n  3 | three"));
        assert_eq!((&found[1].source, &found[2].source), (&None, &None));
    }

    #[test]
    fn long_lines_are_cut() {
        let quoted = quote_lines_around(&"é".repeat(10_000), 1).unwrap();
        assert!(quoted.len() < MAX_QUOTED_LINE_BYTES + 20, "{}", quoted.len());
    }
}
