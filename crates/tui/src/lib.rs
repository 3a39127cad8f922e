//! The conversation in a terminal: a view of one session, a composer, questions.
//!
//! It has no state of its own. What it shows of a session is a pure fold over the session's events
//! (`fold`), so that a session which is opened again, or was killed, shows the same.
//! Events make **blocks**; a block that is finished never changes and goes into the terminal's own
//! scrollback exactly once, where the terminal's search, selection and copying work. Below them is
//! the **live area**: what is still moving, the composer, the status line.
//!
//! The parts, each of which can be tested without a terminal:
//!
//! - `fold`: events → blocks and the state that is moving; `facts`: the numbers of the status line;
//!   `agent_tree`: the agents of a session;
//! - `blocks`, `edits`, `attachments`: a block and a width → lines; the words for events are
//!   `journeyman-host`'s, Markdown, diffs and wrapping are `journeyman-terminal`'s;
//! - `buffer`, `composer`, `completion`, `questions`, `picker`, `viewer`, `review`: a key →
//!   another state and at most one effect;
//! - `preferences`, `keymap`, `vi`, `attention`, `status_command`: the person's own settings;
//! - `decision`: landing or dropping a copy, as `review` asks about it;
//! - `plain`, `by_lines`: the conversation by lines alone, without a screen;
//! - `line_surface`, `candidate_lines`, `approval_prompter`, `line_prompts`, `pager`,
//!   `stop_signals`: a session, its questions and long texts by lines, for commands without a
//!   conversation;
//! - `view`: all of these and a size → the rows of the live area;
//! - `key_hints`: the line that names a page's keys;
//! - `theme`, `ground`: the colours that the terminal has, and the answer to what it is asked;
//! - `screen`, `alt_screen`: rows before and after → bytes for the terminal; `hyperlinks`: paths in
//!   them that a terminal opens;
//! - `presentation`, `terminal`: the terminal itself; `link`, `recall`, `watching`: the session;
//!   `app` and the rest: the loop.
//!
//! The renderer is our own, by difference over rows, relative to the cursor: it never asks where
//! the cursor is, a finished row that stood in the live area costs nothing when it is finished, and
//! one that comes above the composer is one inserted line. `ratatui`'s inline viewport draws
//! finished text a second time, and asks the terminal for the cursor after every resize.
//! Nothing is drawn and no timer runs while nothing changes.
//!
//! It asks no model and changes no file: everything is done by a session's handle, and by the
//! functions of `journeyman-host` that the command line uses too.

mod agent_tree;
mod alt_screen;
mod app;
mod approval_prompter;
mod attachment_actions;
mod attachments;
mod background_query;
mod blocks;
mod buffer;
pub mod candidate_lines;
mod command_actions;
mod commands;
mod completion;
mod composer;
mod conversation;
mod conversation_state;
mod copy_decision;
mod copy_landing;
mod documents;
mod edits;
mod first_start;
mod hyperlinks;
mod key_hints;
mod key_input;
mod keymap;
pub mod line_prompts;
mod line_surface;
mod live_area;
mod notifier;
mod open_session;
pub mod pager;
mod picker;
mod pins;
mod plain;
mod plain_actions;
mod preferences;
mod presentation;
mod questions;
mod released_prompts;
mod review;
mod review_actions;
mod screen;
mod session_actions;
mod session_watch;
mod status_command;
mod status_facts;
pub mod stop_signals;
mod terminal;
mod theme;
mod vi;
mod viewer;
mod watch_actions;

pub use app::ConversationStart;
pub use conversation::{is_at_terminal, run_conversation};
pub use line_surface::{watch_by_lines, watch_task_close_by_lines};
pub use open_session::ConversationSetup;

#[cfg(test)]
#[path = "../tests/unit/mod.rs"]
mod unit;
