//! An edit of a file, as every format is read into it.

use journeyman_protocol::RelPath;
use serde::{Deserialize, Serialize};

use crate::placement::AllowedDifferences;

/// One search and replace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replace {
    /// The text to find.
    pub search: String,
    /// The text to put there, literally; empty deletes.
    pub replace: String,
    /// Every place, not the only one.
    #[serde(default)]
    pub all: bool,
    /// The 1-based line where the search text is said to begin. With an empty search text: the line
    /// before which the replacement is put.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near: Option<u32>,
    /// Search and replacement are lines of a text format, without the last one's line break.
    #[serde(default)]
    pub whole_lines: bool,
}

/// The role of a line in a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// Stays.
    Context,
    /// Goes.
    Remove,
    /// Comes.
    Add,
    /// Has no prefix at all: context, most likely, as it stands or without its first blank.
    Bare,
}

/// A line of a patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchLine {
    /// Its kind.
    pub kind: LineKind,
    /// Its text without the prefix and without a line break.
    pub text: String,
}

/// One hunk of a unified diff or of a V4A patch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchHunk {
    /// Its lines, in order.
    pub lines: Vec<PatchLine>,
    /// Lines that stand before it, in order (`@@ class A`, or the text after the second `@@` of a
    /// diff).
    pub anchors: Vec<String>,
    /// The line at which the patch says the hunk begins in the old file, 1-based.
    pub near: Option<u32>,
    /// It is said to end where the file ends.
    pub at_end: bool,
    /// True if the old and the new side's last line has a line break, where a `\\ No newline` says
    /// so.
    pub final_break: Option<(bool, bool)>,
}

/// An action on a symbol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum SymbolAction {
    /// Its whole text, doc comment and attributes included, becomes this.
    Replace {
        /// The new text.
        content: String,
    },
    /// Put before it, and before its doc comment.
    InsertBefore {
        /// The text.
        content: String,
    },
    /// Put after it.
    InsertAfter {
        /// The text.
        content: String,
    },
    /// Removed with its doc comment.
    Delete,
    /// Its name changes where it is defined and wherever this file uses it.
    Rename {
        /// The new name.
        to: String,
    },
}

/// An edit that names what it is for by its place in the syntax tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolEdit {
    /// The symbol's path in the file, parts divided by `.`, `::`, `#` or `/`: `Parser::next`,
    /// `Shop.add`. The last parts are enough where they are unique.
    pub symbol: String,
    /// The action.
    pub action: SymbolAction,
}

/// One step of an edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum EditOp {
    /// Find text and put other text there.
    Replace(Replace),
    /// A hunk of a patch.
    Patch(PatchHunk),
    /// Create the file, or replace it whole.
    Rewrite {
        /// The whole content.
        content: String,
        /// True for an argument of a call, which says by itself if its last line has a line break.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        exact: bool,
    },
    /// Create the file, which must not be there, or be empty.
    Create {
        /// The whole content, to the byte.
        content: String,
    },
    /// The whole file, with remarks in place of what stays as it is.
    Lazy {
        /// The content.
        content: String,
        /// True if the reply says that something goes, so that what is left out without a remark
        /// may.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        says_removal: bool,
    },
    /// An edit by the syntax tree.
    Symbol(SymbolEdit),
    /// Remove the file.
    Delete,
    /// Give the file another path.
    Rename {
        /// The new path.
        to: RelPath,
    },
}

/// The edits that one block requests for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The file.
    pub path: RelPath,
    /// The steps, in order.
    pub ops: Vec<EditOp>,
    /// Why, in the model's words.
    pub description: Option<String>,
}

/// Facts about a file beside its text.
#[derive(Clone, Copy)]
pub struct OpContext<'a> {
    /// Its path: which language it is in shows there.
    pub path: &'a RelPath,
    /// The version that the model was shown, if it isn't the present one.
    pub shown: Option<&'a str>,
    /// Differences that the caller allows.
    pub allow: AllowedDifferences,
}
