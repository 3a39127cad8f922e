//! Style sheets and pages.

use tree_sitter::Node;

use super::{Into, literal};

/// `@import "x"` and `@import url(x)`.
pub(super) fn css(node: Node<'_>, into: &mut Into<'_>) {
    let written = into.of(node);
    let rest = written.trim_start_matches("@import").trim_start();
    let inside = rest.strip_prefix("url(").map(|rest| rest.split(')').next().unwrap_or_default().trim());
    let target = match inside {
        Some(inside) => literal(inside).unwrap_or(inside),
        None => {
            let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''));
            let Some(quote) = quote else { return };
            rest.get(1..).and_then(|rest| rest.split(quote).next()).unwrap_or_default()
        }
    };
    link(node, target, into);
}

/// `src="x"` and `href="x"`.
pub(super) fn html(node: Node<'_>, into: &mut Into<'_>) {
    let written = into.of(node);
    let Some((name, value)) = written.split_once('=') else { return };
    if !matches!(name.trim().to_ascii_lowercase().as_str(), "src" | "href") {
        return;
    }
    let value = value.trim();
    link(node, literal(value).unwrap_or(value), into);
}

/// A link to a file: not an address elsewhere, a place in the same page or what a template puts in.
fn link(node: Node<'_>, target: &str, into: &mut Into<'_>) {
    if let Some(path) = local_file(target) {
        into.file(node, path);
    }
}

/// The file of the project that a link leads to, if it does.
pub(crate) fn local_file(target: &str) -> Option<&str> {
    let path = target.split(['#', '?']).next().unwrap_or_default().trim();
    let scheme = path.split('/').next().is_some_and(|first| first.contains(':'));
    (!path.is_empty() && !scheme && !path.starts_with("//") && !path.contains(['{', '<', '$', '"', ' ']))
        .then_some(path)
}
