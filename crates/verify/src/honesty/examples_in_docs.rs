//! Examples in documentation that runners test.

use journeyman_protocol::{HonestyKind, RelPath};

use super::report::HonestyReport;
use super::special_cases::quote_line;

/// Words after a fence by which its example is not run.
const UNTESTED_FENCES: [&str; 5] = ["ignore", "no_run", "text", "compile_fail", "should_panic"];

/// Reports examples that ran as tests before a change, and don't any more.
pub(super) fn report_untested_examples(path: &RelPath, old: &str, new: &str, report: &mut HonestyReport) {
    let name = path.to_string();
    let found = match name.rsplit_once('.').map_or("", |(_, end)| end) {
        "rs" => find_untested_fence(old, new),
        "py" | "pyi" | "rst" | "md" | "txt" => find_skipped_doctest(old, new),
        "go" => find_lost_output(old, new),
        _ => None,
    };
    if let Some((line, text)) = found {
        let message = format!("`{}`: the example is no longer tested", quote_line(&text));
        report.add_blocking(HonestyKind::TestSkipped, path, line, message);
    }
}

/// Returns the fences of documentation in Rust: line, what follows the fence, and the first line of
/// the example.
fn fences(text: &str) -> Vec<(usize, &str, &str)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    let mut is_open = false;
    for (at, line) in lines.iter().enumerate() {
        let Some(comment) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            is_open = false;
            continue;
        };
        let Some(kind) = comment.trim().strip_prefix("```") else { continue };
        if !is_open {
            let next = lines.iter().skip(at + 1).find(|line| line.len() > 4).copied().unwrap_or_default();
            found.push((at, kind, next));
        }
        is_open = !is_open;
    }
    found
}

fn find_untested_fence(old: &str, new: &str) -> Option<(u32, String)> {
    let is_untested = |kind: &str| kind.split([',', ' ']).any(|word| UNTESTED_FENCES.contains(&word));
    let before = fences(old);
    let lost = fences(new).into_iter().find(|(_, kind, first)| {
        is_untested(kind)
            && before.iter().any(|(_, was, known)| known == first && (was.is_empty() || *was == "rust"))
            && !before.iter().any(|(_, was, known)| known == first && was == kind)
    });
    lost.map(|(at, kind, _)| (u32::try_from(at + 1).unwrap_or(u32::MAX), format!("```{kind}")))
}

fn find_skipped_doctest(old: &str, new: &str) -> Option<(u32, String)> {
    let is_skipped = |line: &str| line.to_ascii_lowercase().contains("doctest: +skip");
    let ran = |line: &str| {
        let code = line.split('#').next().unwrap_or_default().trim();
        code.starts_with(">>>") && old.lines().any(|known| known.trim() == code)
    };
    let mut lines = new.lines().enumerate();
    let (at, line) = lines.find(|(_, line)| is_skipped(line) && ran(line))?;
    Some((u32::try_from(at + 1).unwrap_or(u32::MAX), line.to_owned()))
}

/// Finds an example of Go that has lost its output, so that it is only compiled.
fn find_lost_output(old: &str, new: &str) -> Option<(u32, String)> {
    let with_output = |text: &str| -> Vec<String> {
        let functions = text.split("func Example").skip(1);
        let checked = functions.filter(|body| {
            body.split("\nfunc ").next().is_some_and(|body| body.to_ascii_lowercase().contains("output:"))
        });
        checked.filter_map(|body| body.split('(').next().map(str::to_owned)).collect()
    };
    let after = with_output(new);
    let lost = with_output(old)
        .into_iter()
        .find(|name| !after.contains(name) && new.contains(&format!("func Example{name}(")))?;
    let at = new.lines().position(|line| line.contains(&format!("func Example{lost}(")))?;
    Some((u32::try_from(at + 1).unwrap_or(u32::MAX), format!("Example{lost}")))
}
