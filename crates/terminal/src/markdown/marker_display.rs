//! Decides if Markdown's own markers are shown.

/// The display of Markdown's markers around inline code, emphasis and headings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkerDisplay {
    /// The marks stay, for terminals without colours.
    Kept,
    /// The styles say the same.
    Dropped,
}
