//! Runs of CLIs for unit tests.

use std::path::Path;

use crate::{Adapter, CommandRequest, DelegateEvent, Outcome, TokensAndCost};

/// Returns a request in a directory of no importance.
pub(crate) fn request(prompt: &str) -> CommandRequest<'_> {
    CommandRequest {
        prompt,
        directory: Path::new("/work"),
        resume: None,
        spent: TokensAndCost::default(),
        model: None,
        base_url: None,
        confined: true,
        trusted: false,
        arguments: &[],
    }
}

/// Returns the arguments of a command, the program first.
pub(crate) fn arguments(adapter: &dyn Adapter, request: &CommandRequest<'_>) -> Vec<String> {
    let command = adapter.build_command(request);
    command.argv.iter().map(|argument| argument.to_str().unwrap_or_default().to_owned()).collect()
}

/// Reads the lines of a run that ends with an exit code and a last word on standard error.
pub(crate) fn read_run(
    adapter: &dyn Adapter,
    request: &CommandRequest<'_>,
    lines: &[&str],
    exit: Option<i32>,
    stderr: &str,
) -> (Vec<DelegateEvent>, Outcome) {
    let mut conversation = adapter.start_conversation(request);
    let events = lines.iter().flat_map(|line| conversation.receive_line(line.as_bytes()).events).collect();
    (events, conversation.end(exit, stderr))
}
