//! The marks that Markdown itself uses.

/// The marks of inline code, stressed words and headings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// The marks stay, for terminals without colours.
    Kept,
    /// The styles say the same.
    Dropped,
}
