//! Renders a session's text and events for terminals.
//!
//! - [`StyledLine`] is a line of text in parts, each with a meaning ([`Style`]) and no colour.
//!   [`Paint`] turns meanings into colours where they are wanted.
//! - [`markdown`] renders Markdown as styled lines within a width.
//! - [`wrap`] measures text in columns and breaks lines between words.
//! - [`Screen`] writes to one stream: lines, the model's words while they arrive, and one progress
//!   line that is erased before anything else is written. [`stderr_screen`] and [`stdout_screen`]
//!   are those of the process.
//! - [`CountProgress`] counts the files of a longer piece of work on one line.
//! - [`Activity`] follows the events of a session and says in one line what it waits for.
//! - [`code`] shows code in the colours of its tokens, which a function finds that is passed in.
//! - [`diff`] gives unified diffs their colours, line numbers and marks of changed words.
//!
//! ```
//! use journeyman_terminal::markdown::{self, MarkerDisplay};
//!
//! let lines = markdown::render("Say **hello** to the *whole* world.", 16, MarkerDisplay::Dropped);
//! let texts: Vec<String> = lines.iter().map(|line| line.to_text()).collect();
//! assert_eq!(texts, ["Say hello to the", "whole world."]);
//! ```
//!
//! The crate reads no keys, takes over no screen and knows no configuration. Control sequences in
//! texts of others have to be removed before the texts come here.

mod activity;
mod changed_words;
pub mod code;
mod count_progress;
pub mod diff;
mod file_stat;
pub mod markdown;
mod paint;
mod screen;
mod standard_streams;
mod styled_text;
pub mod wrap;

pub use activity::Activity;
pub use count_progress::{CountProgress, clear_count_line};
pub use file_stat::{FileStat, stat_lines};
pub use paint::Paint;
pub use screen::{ColorChoice, OutputKind, Screen, Size, choose_color};
pub use standard_streams::{
    has_one_reader, stderr_paint, stderr_screen, stdout_paint, stdout_screen, was_error_shown,
};
pub use styled_text::{Style, StyledLine, Token};
