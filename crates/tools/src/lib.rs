//! The tools a model may call, their schemas, effects and bounded results.
//!
//! A [`Tool`] says what it is ([`Tool::spec`]), what a call of it would do ([`Tool::effects`],
//! which `policy` judges), and does it ([`Tool::call`]) in a [`ToolContext`]: the workspace for
//! files, the sandbox for commands, and what the session has [`SeenFiles`] so far. The [`Registry`]
//! holds the tools by name; the built-in ones are `read_file`, `list_files`, `search_text`, those
//! that ask the [`SharedIndex`] (`search_code`, `get_symbols`, `find_references`,
//! `get_dependencies`, `git_history`, `git_blame`), `edit_file`, `write_file`,
//! `apply_patch`, `edit_symbol`, `delete_file`, `move_file`, `run_command`, and for commands in the
//! [`BackgroundCommands`] `command_output` and `stop_command`.
//!
//! Schemas come from the Rust types that arguments are read into. Arguments are checked against
//! them with errors that say what was wrong and what is right; harmless slips (`"5"` for 5, a null
//! for an absent option, an absolute path inside the project) are taken as meant. Every result is
//! bounded, and says how to get the rest.
//!
//! ```
//! use journeyman_tools::{Registry, ToolError};
//! use serde_json::json;
//!
//! let tools = Registry::with_builtin_at("/srv/project".as_ref());
//! let read = tools.get("read_file").unwrap();
//! assert!(read.is_read_only());
//! let input = json!({ "path": "/srv/project/src/lib.rs", "limit": "20" });
//! let effects = read.effects(&input).unwrap();
//! assert_eq!(effects.reads[0].to_string(), "src/lib.rs");
//!
//! let Err(ToolError::Unknown { nearest, .. }) = tools.get("readfile") else { unreachable!() };
//! assert_eq!(nearest.as_deref(), Some("read_file"));
//! ```
//!
//! It doesn't judge permissions (`policy`), order calls or retry them (`agent`), hide
//! secrets in results (`agent`, before they are written down), or speak to other tool servers.

mod apply_patch;
mod arguments;
mod background;
mod command_output;
mod command_tool;
mod delete_and_move;
mod edit_file;
mod edit_symbol;
mod error;
mod excerpt;
mod find_references;
mod get_dependencies;
mod get_symbols;
mod git_history;
mod image;
mod index;
mod index_answer;
mod list_files;
mod outputs;
mod planned_edits;
mod project_files;
mod read_file;
mod recording;
mod registry;
mod run_command;
mod schema;
mod search_code;
mod search_text;
mod seen_files;
mod stale;
mod tool;
mod tool_interface;
mod typed_tool;
mod unread_output;
mod violations;
pub mod web;
mod write_file;

pub use background::{BackgroundCommand, BackgroundCommands, BackgroundExit, MAX_BACKGROUND_COMMANDS};
pub use command_tool::{ArgumentType, CommandArgument, CommandDefinition, CommandTool};
pub use error::ToolError;
pub use image::{NOT_IMAGE_REASON, encode_image, is_image_name};
pub use index::{LoadEmbedder, QuerySnapshot, SharedIndex};
pub use outputs::{Outputs, RecallCallback, RecalledOutput};
pub use planned_edits::summarize_files;
pub use project_files::ProjectFiles;
pub use recording::{CommandRecording, RecordedChanges};
pub use registry::Registry;
pub use seen_files::{SeenFile, SeenFiles, SeenStatus};
pub use stale::refuse_stale;
pub use tool::{DEFAULT_CALL_TIME, EmitEvent, ForeignUsage, Tool, ToolContext, ToolLimits, ToolOutput};
pub use typed_tool::TypedTool;
