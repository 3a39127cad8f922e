//! Documents of the index: postings, purposes and qualified names.

use crate::analysis::PurposeFlags;

/// Endings of components' names.
const UI_COMPONENT_ENDINGS: [&[u8]; 3] = [b".vue", b".svelte", b".astro"];

/// An occurrence of a term in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Posting {
    /// Number of the document.
    pub document: u32,
    /// Occurrences of the term in it.
    pub times: u32,
    /// Length of the document in terms, with repetitions.
    pub length: u32,
}

/// Properties of a file that matter for ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purpose {
    /// Its purpose.
    pub flags: PurposeFlags,
    /// True if its language is a supported one, or it is a component of a page.
    pub is_code: bool,
}

/// Returns true for source that makes the program: signals are scaled by these files.
pub(crate) fn is_source(file: Purpose) -> bool {
    let flags = file.flags;
    file.is_code && !flags.test && !flags.doc && !flags.vendored && !flags.generated
}

/// Returns true for a component of a page: code in a document, which isn't a supported language.
pub(crate) fn is_ui_component(path: &[u8]) -> bool {
    UI_COMPONENT_ENDINGS.iter().any(|ending| path.ends_with(ending))
}

/// Returns a name qualified by its scope.
#[must_use]
pub fn full_name(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") }
}

/// Returns true if `scope` ends with the scope that was asked for.
pub(crate) fn is_within_scope(asked: &str, scope: &str) -> bool {
    asked.is_empty()
        || scope == asked
        || scope.strip_suffix(asked).is_some_and(|before| before.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_compared_by_their_ends() {
        assert!(is_within_scope("", "A.B") && is_within_scope("B", "A.B") && is_within_scope("A.B", "A.B"));
        assert!(!is_within_scope("B", "A.XB") && !is_within_scope("A", "A.B"));
    }
}
