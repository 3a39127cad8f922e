//! The person's own command that adds to the status line.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use journeyman_host::format::preview;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

/// Maximum time that the command takes; a slower one adds nothing.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum bytes of its output that are read: one line.
const MAX_OUTPUT_BYTES: u64 = 1_000;

/// Runs a command of the person's configuration, with facts as JSON on its input. Returns the first
/// line of its output; `None` where it fails or takes too long. It runs in the home directory, so
/// that no file of a project decides what it does.
pub(crate) async fn run_status_command(
    command: String,
    home: Option<PathBuf>,
    facts: String,
) -> Option<String> {
    let work = async {
        let mut child = Command::new("sh")
            .args(["-c", &command])
            .current_dir(home.unwrap_or_else(|| PathBuf::from("/")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .ok()?;
        let mut input = child.stdin.take()?;
        // A command may not want to know.
        input.write_all(facts.as_bytes()).await.ok();
        drop(input);
        let mut output = Vec::new();
        child.stdout.take()?.take(MAX_OUTPUT_BYTES).read_to_end(&mut output).await.ok()?;
        child.wait().await.ok().filter(std::process::ExitStatus::success)?;
        let text = String::from_utf8_lossy(&output);
        text.lines().next().map(preview).filter(|line| !line.trim().is_empty())
    };
    tokio::time::timeout(COMMAND_TIMEOUT, work).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_line_of_its_output_is_shown() {
        for (command, expected) in [
            ("cat", Some("{\"mode\":\"edit\"}")),
            ("echo one; echo two", Some("one")),
            ("printf '\\033[31mred'", Some("red")),
            ("echo no; exit 3", None),
            ("true", None),
        ] {
            let facts = "{\"mode\":\"edit\"}".to_owned();
            let shown = run_status_command(command.to_owned(), None, facts).await;
            assert_eq!(shown.as_deref(), expected, "{command}");
        }
    }
}
