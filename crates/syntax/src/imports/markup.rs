//! Imports of style sheets and HTML pages.

use tree_sitter::Node;

use super::collector::{ImportCollector, string_literal};

/// Adds `@import "x"` and `@import url(x)`.
pub(super) fn add_css_import(node: Node<'_>, into: &mut ImportCollector<'_>) {
    let written = into.text_of(node);
    let rest = written.trim_start_matches("@import").trim_start();
    let inside = rest.strip_prefix("url(").map(|rest| rest.split(')').next().unwrap_or_default().trim());
    let target = match inside {
        Some(inside) => string_literal(inside).unwrap_or(inside),
        None => {
            let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''));
            let Some(quote) = quote else { return };
            rest.get(1..).and_then(|rest| rest.split(quote).next()).unwrap_or_default()
        }
    };
    add_local_link(node, target, into);
}

/// Adds `src="x"` and `href="x"`.
pub(super) fn add_html_links(node: Node<'_>, into: &mut ImportCollector<'_>) {
    let written = into.text_of(node);
    let Some((name, value)) = written.split_once('=') else { return };
    if !matches!(name.trim().to_ascii_lowercase().as_str(), "src" | "href") {
        return;
    }
    let value = value.trim();
    add_local_link(node, string_literal(value).unwrap_or(value), into);
}

/// Adds a link to a local file: not a URL, a fragment of the same page or a template expression.
fn add_local_link(node: Node<'_>, target: &str, into: &mut ImportCollector<'_>) {
    if let Some(path) = local_file(target) {
        into.add_file(node, path);
    }
}

/// Returns the project file that a link leads to, if any.
pub(crate) fn local_file(target: &str) -> Option<&str> {
    let path = target.split(['#', '?']).next().unwrap_or_default().trim();
    let scheme = path.split('/').next().is_some_and(|first| first.contains(':'));
    (!path.is_empty() && !scheme && !path.starts_with("//") && !path.contains(['{', '<', '$', '"', ' ']))
        .then_some(path)
}
