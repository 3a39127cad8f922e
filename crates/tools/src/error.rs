//! Why a call gave no result. The words are for the model, which reads them as the call's result.

use journeyman_edit::Refusal;
use journeyman_protocol::RelPath;
use journeyman_sandbox::SandboxError;
use journeyman_workspace::{EncodeError, WorkspaceError};

/// Why a call gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// There is no such tool.
    #[error("there is no tool «{name}»{}", did_you_mean(nearest.as_deref()))]
    Unknown {
        /// The name as the model wrote it, cut if it was long.
        name: String,
        /// The tool it most likely meant.
        nearest: Option<String>,
    },
    /// The arguments don't fit the schema.
    #[error("{problems}. {tool} takes {signature}")]
    Arguments {
        /// The tool.
        tool: &'static str,
        /// What was wrong, each with the place and what is right.
        problems: String,
        /// The arguments and their types.
        signature: String,
    },
    /// A path can't be one of the project's.
    #[error("{argument}: {reason}")]
    Path {
        /// The argument that held it.
        argument: &'static str,
        /// Why, and what would be right.
        reason: String,
    },
    /// There is no such file or directory.
    #[error("«{path}» doesn't exist{}", did_you_mean(nearest.as_deref()))]
    NotFound {
        /// The path.
        path: RelPath,
        /// The path that was most likely meant.
        nearest: Option<String>,
    },
    /// The tree refused or failed.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A replacement found no place, or more than one.
    #[error("«{path}»{}: {refusal}", nth(*edit))]
    Edit {
        /// The file.
        path: RelPath,
        /// Which of several edits, from 1; `None` when there was one.
        edit: Option<usize>,
        /// Why, and what to send instead.
        refusal: Refusal,
    },
    /// The new text can't be written in the file's encoding.
    #[error("«{path}» was not changed: {source}")]
    Encode {
        /// The file.
        path: RelPath,
        /// What the encoding lacks.
        source: EncodeError,
    },
    /// A whole file would be replaced that this session has not read.
    #[error(
        "«{path}» exists and you have not read it, so it was not replaced. Read it first with read_file, or \
         change parts of it with edit_file"
    )]
    NotSeen {
        /// The file.
        path: RelPath,
    },
    /// A whole file would be replaced that changed since this session read it.
    #[error("«{path}» has changed since you read it, so it was not replaced. Read it again with read_file")]
    ChangedSince {
        /// The file.
        path: RelPath,
    },
    /// The new text has the mask of a secret, which would take the secret's place.
    #[error(
        "«{path}» was not changed: the new text has {mask}, which stands for a secret that you can't see; use \
         edit_file around it, and leave the line with the secret alone",
        mask = journeyman_policy::secrets::MASK
    )]
    Masked {
        /// The file.
        path: RelPath,
    },
    /// The file is not text.
    #[error(
        "«{path}» is binary ({size} bytes), so it can't be shown or edited as text; a command can look into it"
    )]
    Binary {
        /// The file.
        path: RelPath,
        /// Its size in bytes.
        size: u64,
    },
    /// An image can't be shown.
    #[error("«{path}» can't be shown as an image: {reason}")]
    Image {
        /// The file.
        path: RelPath,
        /// Why.
        reason: String,
    },
    /// A command's output is no longer held, or never was.
    #[error("no output of a call «{call}» is held{held}; run the command again")]
    NoOutput {
        /// The call named.
        call: String,
        /// The calls whose output is held, in words.
        held: String,
    },
    /// A pattern can't be searched for.
    #[error("the pattern can't be used: {0}. Make it simpler")]
    Pattern(String),
    /// The command did not run.
    #[error("the command did not run: {0}")]
    Sandbox(#[from] SandboxError),
    /// The call was interrupted.
    #[error("the call was interrupted")]
    Cancelled,
    /// Background work was torn down, as happens when the program is ending.
    #[error("the call was cut off: {0}")]
    Stopped(String),
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |nearest| format!("; did you mean «{nearest}»?"))
}

fn nth(edit: Option<usize>) -> String {
    edit.map_or(String::new(), |edit| format!(", edit {edit} (none was applied)"))
}
