//! The things that go with a message beside its words: outputs of commands, images, accounts of
//! sessions.

use std::path::Path;

use journeyman_host::HostError;
use journeyman_host::format::{format_count, preview, printable};
use journeyman_host::images::{find_image_path, image_label, read_image};
use journeyman_host::session_recap::{find_references, recap_session};
use journeyman_host::sessions::find_session;
use journeyman_host::task_input::fence_data;
use journeyman_terminal::{Style, StyledLine};

use crate::app::App;

/// Maximum bytes of a command's output that go with the next message.
const MAX_ATTACHED_BYTES: usize = 16 * 1024;
/// Maximum lines of a command's output that are shown.
const MAX_OUTPUT_LINES: usize = 20;

impl App {
    /// Shows the output of a command of the person's, which goes with the next message.
    pub(crate) fn attach_output(&mut self, command: &str, output: &str, code: u8) {
        let output = printable(output);
        let (style, ended) = if code == 0 {
            (Style::Good, String::new())
        } else {
            (Style::Bad, format!("  exit code {code}"))
        };
        let mut lines = vec![
            StyledLine::new(style, "●").with_text(format!(" $ {}", preview(command))).with(Style::Bad, ended),
        ];
        let all: Vec<&str> = output.lines().collect();
        let hidden = all.len().saturating_sub(MAX_OUTPUT_LINES);
        if hidden > 0 {
            lines.push(StyledLine::new(Style::Dim, format!("    … {} before", format_count(hidden, "line"))));
        }
        lines.extend(all.iter().skip(hidden).map(|line| StyledLine::new(Style::Dim, format!("    {line}"))));
        lines.push(StyledLine::new(Style::Dim, "    (goes with your next message)"));
        self.conversation.push_note(lines);
        let kept = output.get(output.ceil_char_boundary(output.len().saturating_sub(MAX_ATTACHED_BYTES))..);
        let data = fence_data(kept.unwrap_or_default());
        self.attachments.push(format!("The user ran `{command}` (exit code {code}):\n{data}"));
    }

    /// Returns an account of each session that a message refers to.
    pub(crate) async fn recap_referenced_sessions(&self, message: &str) -> Result<Vec<String>, HostError> {
        let mut accounts = Vec::new();
        for word in find_references(message) {
            let found = find_session(&self.setup.state, &self.setup.environment, word).await?;
            accounts.push(recap_session(&self.setup.state, &found.id).await?);
        }
        Ok(accounts)
    }

    /// Lets the image that a command names go with the message.
    pub(crate) fn attach_named_image(&mut self, argument: &str) {
        let environment = &self.setup.environment;
        match find_image_path(argument, &environment.cwd, environment.home.as_deref()) {
            Some(path) => self.attach_image(&path),
            None => {
                let text = format!("/image takes a file of PNG, JPEG, GIF or WebP; `{argument}` is none");
                self.notice = Some(printable(&text));
            }
        }
    }

    /// Attaches an image if the pasted text is its path, as from drag and drop.
    pub(crate) fn attach_pasted_image(&mut self, text: &str) -> bool {
        let environment = &self.setup.environment;
        match find_image_path(text, &environment.cwd, environment.home.as_deref()) {
            Some(path) => {
                self.attach_image(&path);
                true
            }
            None => false,
        }
    }

    /// Lets an image go with the message that is being written. Says why not, if it can't.
    pub(crate) fn attach_image(&mut self, path: &Path) {
        match read_image(path) {
            Ok(image) => {
                let label = image_label(path, &image);
                match &mut self.plain {
                    Some(plain) => {
                        plain.images.push(image);
                        self.notice = Some(format!("{label} goes with your next message"));
                    }
                    None => self.composer.insert_image(&label, image),
                }
            }
            Err(error) => self.notice = Some(printable(&error)),
        }
    }
}
