//! Bounds on what is kept of a CLI's output.

use journeyman_protocol::clip_to_bytes;

/// Maximum bytes of a run's output, after which the CLI is ended: the most verbose CLI writes far
/// less in 300 seconds.
pub const MAX_RUN_OUTPUT_BYTES: u64 = 1 << 30;
/// Maximum bytes of a line that is parsed. A longer one becomes an unknown event.
pub const MAX_PARSED_LINE_BYTES: usize = 2 << 20;
/// Maximum bytes kept of a line that an adapter doesn't understand.
pub const MAX_UNKNOWN_LINE_BYTES: usize = 2 << 10;
/// Maximum bytes of a piece of text or thought, and of a message.
pub const MAX_TEXT_BYTES: usize = 256 << 10;
/// Maximum bytes kept of a tool's output.
pub const MAX_TOOL_OUTPUT_BYTES: usize = 8 << 10;
/// Maximum bytes of a summary, of a tool's name, and of a sentence about a failure.
pub const MAX_SENTENCE_BYTES: usize = 1 << 10;
/// Maximum bytes of an id or a changed path.
pub const MAX_ID_OR_PATH_BYTES: usize = 4 << 10;
/// Maximum number of changed paths in one event.
pub const MAX_CHANGED_PATHS: usize = 1_000;
/// Maximum bytes of a session id.
pub const MAX_SESSION_ID_BYTES: usize = 200;
/// Maximum number of tools that are in use at the same time.
pub const MAX_OPEN_TOOLS: usize = 1_000;
/// Maximum bytes of a prompt that is passed as an argument: the kernel accepts 128 KiB for one.
pub const MAX_ARGUMENT_BYTES: usize = 100 << 10;

/// Returns the first `bytes` bytes of a text.
pub(crate) fn clip(text: &str, bytes: usize) -> String {
    clip_to_bytes(text, bytes).to_owned()
}

/// Returns a text on one line, without control characters and colours, cut to
/// [`MAX_SENTENCE_BYTES`].
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::new();
    let mut characters = clip_to_bytes(text, MAX_SENTENCE_BYTES).chars();
    while let Some(character) = characters.next() {
        match character {
            // Terminal colour sequences end in a letter.
            '\u{1b}' => {
                characters.by_ref().find(char::is_ascii_alphabetic);
            }
            character if character.is_whitespace() || character.is_control() => {
                if !line.is_empty() && !line.ends_with(' ') {
                    line.push(' ');
                }
            }
            character => line.push(character),
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// Returns a session id if it is safe as a command argument: it may not look like a flag or a path,
/// whatever the CLI wrote.
pub(crate) fn parse_session_id(text: &str) -> Option<String> {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_.:".contains(character);
    let begins = text.starts_with(|character: char| character.is_ascii_alphanumeric());
    let fits = text.len() <= MAX_SESSION_ID_BYTES && begins && text.chars().all(plain);
    fits.then(|| text.to_owned())
}
