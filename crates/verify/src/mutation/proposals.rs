//! Mutations as they are proposed, before they are checked.

use std::ops::Range;

use journeyman_protocol::MutationKind;
use journeyman_syntax::Node;
use journeyman_syntax::language::Language;

use super::language_words::LanguageWords;
use super::node_kinds::text_of;

/// The surroundings of a node.
#[derive(Clone, Copy)]
pub(super) struct NodeContext<'t> {
    pub(super) text: &'t str,
    pub(super) language: Language,
    pub(super) words: &'static LanguageWords,
    /// The declared return type of the function.
    pub(super) return_type: Option<&'t str>,
    /// True where a text is likely compared by tests: in what a function returns.
    pub(super) is_returned: bool,
    /// True in a function.
    pub(super) in_function: bool,
}

impl<'t> NodeContext<'t> {
    pub(super) fn text_of(&self, node: Node<'_>) -> &'t str {
        text_of(node, self.text)
    }
}

/// A replacement, and the test that would notice it.
pub(super) struct Proposal {
    pub(super) kind: MutationKind,
    pub(super) range: Range<usize>,
    pub(super) replacement: String,
    pub(super) test: String,
    /// The bytes that no longer run, for a condition that is never true.
    pub(super) disables: Option<Range<usize>>,
    /// A replacement that ends the program where the mutation could make a difference.
    pub(super) probe: Option<(Range<usize>, String)>,
}

impl Proposal {
    pub(super) fn new(
        kind: MutationKind,
        range: Range<usize>,
        replacement: impl Into<String>,
        test: String,
    ) -> Self {
        Self { kind, range, replacement: replacement.into(), test, disables: None, probe: None }
    }
}
