//! Edits of one file: their operations, and applying them all or not at all.

use journeyman_protocol::RelPath;

use crate::outcome::{Refusal, Strategy};
use crate::{Hunk, place};

/// One search and replace in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replace {
    /// The file.
    pub path: RelPath,
    /// The text to find.
    pub search: String,
    /// The text to put there, literally.
    pub replace: String,
    /// Every place, not the only one.
    pub all: bool,
}

/// One step of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditOp {
    /// Find text and put other text there.
    Replace {
        /// The text to find.
        search: String,
        /// The text to put there, literally; empty deletes.
        replace: String,
        /// Every place, not the only one.
        all: bool,
    },
    /// Create the file, or replace it whole.
    Rewrite {
        /// The whole content.
        content: String,
    },
    /// Remove the file.
    Delete,
    /// Give the file another path.
    Rename {
        /// The new path.
        to: RelPath,
    },
}

/// What one block asks of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The file.
    pub path: RelPath,
    /// The steps, in order.
    pub ops: Vec<EditOp>,
    /// Why, in the model's words.
    pub description: Option<String>,
}

impl From<Replace> for Edit {
    fn from(from: Replace) -> Self {
        let op = EditOp::Replace { search: from.search, replace: from.replace, all: from.all };
        Self { path: from.path, ops: vec![op], description: None }
    }
}

/// All that is asked of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOps {
    /// The file as it is named before any of the steps.
    pub path: RelPath,
    /// The steps, in order.
    pub ops: Vec<EditOp>,
}

/// Gathers edits by file, in the order in which files are first named. An edit that names a file by the path
/// that an earlier edit gave it goes to that file.
#[must_use]
pub fn to_ops(edits: &[Edit]) -> Vec<FileOps> {
    let mut files: Vec<(FileOps, RelPath)> = Vec::new();
    let mut by_name: std::collections::HashMap<RelPath, usize> = std::collections::HashMap::new();
    for edit in edits {
        let index = *by_name.entry(edit.path.clone()).or_insert_with(|| {
            files.push((FileOps { path: edit.path.clone(), ops: Vec::new() }, edit.path.clone()));
            files.len() - 1
        });
        let Some((file, name)) = files.get_mut(index) else { continue };
        for op in &edit.ops {
            if let EditOp::Rename { to } = op {
                by_name.remove(name);
                by_name.insert(to.clone(), index);
                *name = to.clone();
            }
            file.ops.push(op.clone());
        }
    }
    files.into_iter().map(|(file, _)| file).collect()
}

/// How one step was placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpNote {
    /// Which step, 0-based.
    pub op: usize,
    /// How it was placed; `None` for steps that are not placed.
    pub strategy: Option<Strategy>,
    /// The 1-based line in the text as it was before this step.
    pub line: u32,
    /// How many places were replaced; 0 where search and replacement were equal.
    pub count: u32,
    /// What differed, or what was adapted.
    pub note: Option<String>,
}

/// What one file comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The new content; `None` when the file is to be removed.
    pub content: Option<String>,
    /// The new path, if it changes.
    pub rename: Option<RelPath>,
    /// One entry a step, in order.
    pub notes: Vec<OpNote>,
}

/// Why the steps for one file were refused. None of them is applied then.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OpError {
    /// A search and replace found no place.
    #[error("edit {} of {of}: {refusal}", op + 1)]
    Refused {
        /// Which step, 0-based.
        op: usize,
        /// Of how many.
        of: usize,
        /// Why.
        refusal: Refusal,
    },
    /// The file that a step needs isn't there.
    #[error(
        "edit {} of {of}: the file does not exist. Nothing was changed. Check the path; to create the file, give \
         its whole content without a search text",
        op + 1
    )]
    Missing {
        /// Which step, 0-based.
        op: usize,
        /// Of how many.
        of: usize,
    },
    /// There was nothing to do.
    #[error(
        "the edit has no step: give a search and a replacement, the whole content, a deletion or a rename"
    )]
    Nothing,
}

/// Applies the steps in order to one file: each sees the text that the one before left. All or nothing.
///
/// `text` is the file's content, `None` where it doesn't exist. Conventions of the text formats are followed:
/// deleting whole lines takes their line break too, a new file gets a final line break, and a rewrite keeps
/// the file's own line endings and final line break; each is said in the step's note.
///
/// # Errors
/// [`OpError`] names the first step that could not be done.
pub fn apply_ops(text: Option<&str>, ops: &[EditOp]) -> Result<Outcome, OpError> {
    let of = ops.len();
    if ops.is_empty() {
        return Err(OpError::Nothing);
    }
    let mut content = text.map(str::to_owned);
    let mut rename = None;
    let mut notes = Vec::with_capacity(of);
    for (op, step) in ops.iter().enumerate() {
        let mut said = OpNote { op, strategy: None, line: 1, count: 1, note: None };
        match step {
            EditOp::Replace { search, replace, .. } if content.is_none() && search.is_empty() => {
                let (new, note) = rewritten(None, replace);
                said.note = note;
                content = Some(new);
            }
            EditOp::Replace { search, replace, all } => {
                let old = content.as_deref().ok_or(OpError::Missing { op, of })?;
                let hunk = Hunk { all: *all, whole_lines: true, ..Hunk::new(search, replace) };
                match place(old, &hunk) {
                    Ok(done) => {
                        said.strategy = Some(done.strategy);
                        said.line = done.line;
                        said.count = done.count;
                        said.note = done.note;
                        content = Some(done.text);
                    }
                    // Among others a step that has nothing to do stops nobody; alone it is the answer.
                    Err(Refusal::NoChange) if of > 1 => {
                        said.count = 0;
                        said.note = Some("nothing to change: the file has that text already".to_owned());
                    }
                    Err(refusal) => return Err(OpError::Refused { op, of, refusal }),
                }
            }
            EditOp::Rewrite { content: new } => {
                let (new, note) = rewritten(content.as_deref(), new);
                said.note = note;
                content = Some(new);
            }
            EditOp::Delete => {
                content.take().ok_or(OpError::Missing { op, of })?;
            }
            EditOp::Rename { to } => {
                if content.is_none() {
                    return Err(OpError::Missing { op, of });
                }
                rename = Some(to.clone());
            }
        }
        notes.push(said);
    }
    if notes.iter().all(|said| said.count == 0) {
        return Err(OpError::Refused { op: 0, of, refusal: Refusal::NoChange });
    }
    Ok(Outcome { content, rename, notes })
}

/// The content a whole-file rewrite leaves: the file's line endings and final line break survive it.
fn rewritten(old: Option<&str>, new: &str) -> (String, Option<String>) {
    let mut notes = Vec::new();
    let crlf = old.is_some_and(|old| old.contains("\r\n") && !old.replace("\r\n", "").contains('\n'));
    let mut content = if crlf && new.contains('\n') && !new.contains('\r') {
        notes.push("kept the file's CRLF line endings");
        new.replace('\n', "\r\n")
    } else {
        new.to_owned()
    };
    let wants_break = old.is_none_or(|old| old.is_empty() || old.ends_with('\n'));
    if wants_break && !content.is_empty() && !content.ends_with('\n') {
        notes.push(if old.is_some() { "kept the final line break" } else { "added a final line break" });
        content.push_str(if crlf { "\r\n" } else { "\n" });
    }
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    (content, note)
}
