//! Errors of tool calls. Their messages are for the model, which reads them as the call's result.

use std::borrow::Cow;

use journeyman_edit::Refusal;
use journeyman_protocol::RelPath;
use journeyman_sandbox::SandboxError;
use journeyman_workspace::{EncodeError, WorkspaceError};

/// An error of a tool call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// There is no such tool.
    #[error("there is no tool `{name}`{}", did_you_mean(nearest.as_deref()))]
    Unknown {
        /// The name that the model wrote, cut if it was long.
        name: String,
        /// The tool that the model most likely meant.
        nearest: Option<String>,
    },
    /// The arguments don't fit the schema.
    #[error("{problems}. {tool} takes {signature}")]
    Arguments {
        /// The tool.
        tool: Cow<'static, str>,
        /// The problems, each with the argument and the remedy.
        problems: String,
        /// The arguments and their types.
        signature: String,
    },
    /// A path that can't lie in the project.
    #[error("{argument}: {reason}")]
    Path {
        /// The argument with the path.
        argument: &'static str,
        /// The reason, and the remedy.
        reason: String,
    },
    /// There is no such file or directory.
    #[error("`{path}` doesn't exist{}", did_you_mean(nearest.as_deref()))]
    NotFound {
        /// The path.
        path: RelPath,
        /// The path that was most likely meant.
        nearest: Option<String>,
    },
    /// An error of the workspace.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A search text that occurs nowhere, or more than once.
    #[error("`{path}`{}: {refusal}", edit_position(*edit))]
    Edit {
        /// The file.
        path: RelPath,
        /// The number of the edit among several, from 1; `None` if there was only one.
        edit: Option<usize>,
        /// The reason, and the remedy.
        refusal: Box<Refusal>,
    },
    /// Edits of several files that could not be placed; none was made.
    #[error("nothing was changed. {problems}")]
    Plan {
        /// The problems, in words for the model.
        problems: String,
    },
    /// A text that the file's encoding lacks characters for.
    #[error("`{path}` was not changed: {source}")]
    Encode {
        /// The file.
        path: RelPath,
        /// The cause.
        source: EncodeError,
    },
    /// An existing file that would be replaced without having been read in this session.
    #[error(
        "`{path}` exists and you have not read it, so it was not replaced. Read it first with read_file, or \
         change parts of it with edit_file"
    )]
    NotSeen {
        /// The file.
        path: RelPath,
    },
    /// A file that changed since this session read it.
    #[error("{}", describe_external_change(path, *by_us, difference.as_deref(), *whole))]
    ChangedSince {
        /// The file.
        path: RelPath,
        /// True if a command of the session changed it.
        by_us: bool,
        /// The changes as hunks of a diff, if known.
        difference: Option<String>,
        /// True if the difference is all that changed.
        whole: bool,
    },
    /// A file that would be created and that something outside the session has removed since it was
    /// read.
    #[error(
        "somebody else has removed `{path}` since you read it, so it was not written. Send the call again if it is \
         to be there again"
    )]
    GoneSince {
        /// The file.
        path: RelPath,
    },
    /// A new text that contains the mask of a secret, which would replace the secret.
    #[error(
        "`{path}` was not changed: the new text has {mask}, which stands for a secret that you can't see; use \
         edit_file around it, and leave the line with the secret alone",
        mask = journeyman_policy::secrets::SECRET_MASK
    )]
    Masked {
        /// The file.
        path: RelPath,
    },
    /// A file that is not text.
    #[error(
        "`{path}` is binary ({size} bytes), so it can't be shown or edited as text; a command can look into it"
    )]
    Binary {
        /// The file.
        path: RelPath,
        /// Its size in bytes.
        size: u64,
    },
    /// An image that can't be shown.
    #[error("`{path}` can't be shown as an image: {reason}")]
    Image {
        /// The file.
        path: RelPath,
        /// The reason.
        reason: String,
    },
    /// A call of which the session has no output.
    #[error("there is no output of a call `{call}` in this session; run the command again")]
    NoOutput {
        /// The id of the call.
        call: String,
    },
    /// Too many commands run in the background.
    #[error(
        "{most} commands run in the background already ({running}), and more are not started; stop one with \
         stop_command",
        most = crate::MAX_BACKGROUND_COMMANDS
    )]
    TooManyCommands {
        /// The ids of the running commands.
        running: String,
    },
    /// An id that no background command has.
    #[error("there is no background command `{id}`{known}; they end with the session")]
    NoCommand {
        /// The id that the model wrote, cut if it was long.
        id: String,
        /// The existing ids, in words.
        known: String,
    },
    /// A pattern that can't be searched for.
    #[error("the pattern can't be used: {0}. Make it simpler")]
    Pattern(String),
    /// The command did not run.
    #[error("the command did not run: {0}")]
    Sandbox(#[from] SandboxError),
    /// A page that can't be fetched.
    #[error("`{url}` was not fetched: {why}")]
    Web {
        /// The address.
        url: String,
        /// The reason.
        why: String,
    },
    /// The index can't be used.
    #[error("the index can't be used: {0}. search_text and list_files work without it")]
    Index(String),
    /// Git failed.
    #[error("git can't tell: {0}")]
    Git(String),
    /// The call was interrupted.
    #[error("the call was interrupted")]
    Cancelled,
    /// A background task was aborted, as happens when the program ends.
    #[error("the call was cut off: {0}")]
    Stopped(String),
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |nearest| format!("; did you mean `{nearest}`?"))
}

fn describe_external_change(path: &RelPath, by_us: bool, difference: Option<&str>, whole: bool) -> String {
    let by = if by_us { "a command of yours has changed" } else { "somebody else has changed" };
    let text = format!("{by} `{path}` since you read it, so your change was not made. ");
    match difference {
        Some(difference) if whole => {
            format!("{text}This is what changed; send the call again if it is still right:\n{difference}")
        }
        Some(difference) => {
            format!(
                "{text}Read it again with read_file. This is the beginning of what changed:\n{difference}"
            )
        }
        None => format!("{text}Read it again with read_file"),
    }
}

fn edit_position(edit: Option<usize>) -> String {
    edit.map_or(String::new(), |edit| format!(", edit {edit} (none was applied)"))
}
