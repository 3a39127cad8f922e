//! Readers of the output of compilers, linters and test runners as [`Diagnostic`]s.
//!
//! Every reader is a small state machine over lines; a line goes to each in turn until one claims
//! it. They run on any output, because a custom check or a `make` target may be any tool.

mod findings;
mod generic;
mod go;
mod javascript;
mod place;
mod python;
mod reader;
mod rust;

use std::path::Path;

use journeyman_protocol::{Diagnostic, RelPath, clip_to_bytes};

use findings::Findings;
pub use findings::{Locate, MAX_DIAGNOSTICS};
use reader::Reader;

/// No format puts what matters further right; longer lines are minified code or data.
const MAX_LINE_BYTES: usize = 2_000;

/// Reads `output`, worst findings first, at most [`MAX_DIAGNOSTICS`]; when there are more, the last
/// one says how many. `locate` turns a printed path into one of the project's files. Takes time
/// linear in the output, and never panics.
#[must_use]
pub fn parse(output: &str, locate: &Locate<'_>) -> Vec<Diagnostic> {
    let mut findings = Findings::new(locate);
    let mut readers: [Box<dyn Reader>; 5] = [
        Box::new(rust::Rust::default()),
        Box::new(python::Python::default()),
        Box::new(go::Go::default()),
        Box::new(javascript::JavaScript::default()),
        Box::new(generic::Generic),
    ];
    for line in output.lines() {
        let line = clip_to_bytes(line.trim_end(), MAX_LINE_BYTES);
        for reader in &mut readers {
            if reader.line(line, &mut findings) {
                break;
            }
        }
    }
    for reader in &mut readers {
        reader.finish(&mut findings);
    }
    findings.into_worst_first()
}

/// Turns a path that a tool printed while running in `directory` of the project at `root` into a
/// path beneath the root: by its text alone, without asking the file system. Absolute paths lose
/// the root's prefix; `file://` is dropped; `None` for what lies elsewhere.
#[must_use]
pub fn beneath(root: &Path, directory: Option<&RelPath>, printed: &str) -> Option<RelPath> {
    let printed = printed.strip_prefix("file://").unwrap_or(printed);
    if let Ok(inside) = Path::new(printed).strip_prefix(root) {
        return RelPath::parse(inside.to_str()?).ok();
    }
    if printed.starts_with('/') {
        return None;
    }
    let Some(directory) = directory else { return resolve_parents(printed) };
    resolve_parents(&format!("{}/{printed}", directory.as_str()?))
}

/// Takes `..` components away with the component before them, as tools in a sub-directory print
/// them.
fn resolve_parents(printed: &str) -> Option<RelPath> {
    let mut kept: Vec<&str> = Vec::new();
    for component in printed.split('/') {
        match component {
            ".." => {
                kept.pop()?;
            }
            "" | "." => {}
            name => kept.push(name),
        }
    }
    RelPath::parse(kept.join("/")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_paths_come_to_lie_beneath_the_root() {
        let root = Path::new("/home/me/p");
        let sub = RelPath::parse("web/app").unwrap();
        let cases = [
            (None, "src/a.rs", Some("src/a.rs")),
            (None, "./src/a.rs", Some("src/a.rs")),
            (None, "/home/me/p/src/a.rs", Some("src/a.rs")),
            (None, "file:///home/me/p/a.js", Some("a.js")),
            (None, "/home/me/parent/a.rs", None),
            (None, "/rustc/abc/library/core/src/option.rs", None),
            (None, "../other/a.rs", None),
            (None, "", None),
            (Some(&sub), "src/a.ts", Some("web/app/src/a.ts")),
            (Some(&sub), "../lib/b.ts", Some("web/lib/b.ts")),
            (Some(&sub), "../../../x", None),
        ];
        for (directory, printed, expected) in cases {
            let found = beneath(root, directory, printed).map(|path| path.to_string());
            assert_eq!(found.as_deref(), expected, "{printed}");
        }
    }
}
