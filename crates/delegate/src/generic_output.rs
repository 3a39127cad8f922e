//! The output of CLIs that a configuration describes: text, or JSON Lines with configured fields.

use journeyman_protocol::Tokens;
use serde_json::Value;

use crate::bounds::{MAX_PARSED_LINE_BYTES, MAX_TEXT_BYTES, clip};
use crate::json_line::unknown_step;
use crate::output_format::JsonPaths;
use crate::progress::{RunProgress, failure_kind_of};
use crate::{Conversation, ConversationStep, DelegateEvent, FailureKind, Outcome};

/// Reads plain text, all of which is the message.
pub(crate) struct TextConversation {
    progress: RunProgress,
}

impl TextConversation {
    pub(crate) fn new(cli: &str) -> Self {
        Self { progress: RunProgress::new(cli) }
    }
}

impl Conversation for TextConversation {
    fn receive_line(&mut self, line: &[u8]) -> ConversationStep {
        let line = line.get(..line.len().min(MAX_PARSED_LINE_BYTES)).unwrap_or(line);
        let text = clip(&String::from_utf8_lossy(line), MAX_TEXT_BYTES - 1) + "\n";
        let message = &mut self.progress.message;
        message.push_str(&text);
        // The end of the text says what came of the run, so the beginning is dropped.
        let excess = message.len().saturating_sub(MAX_TEXT_BYTES);
        message.drain(..message.ceil_char_boundary(excess));
        ConversationStep::from_event(DelegateEvent::Text(text))
    }

    fn end(mut self: Box<Self>, exit: Option<i32>, stderr: &str) -> Outcome {
        // Only the exit code tells that the run is complete.
        self.progress.finished = exit == Some(0);
        let mut outcome = self.progress.end(exit, stderr);
        outcome.message.truncate(outcome.message.trim_end().len());
        outcome
    }
}

/// Reads JSON Lines, one object a line.
pub(crate) struct JsonLinesConversation {
    progress: RunProgress,
    /// JSON pointers to the fields.
    paths: JsonPaths,
}

impl JsonLinesConversation {
    pub(crate) fn new(cli: &str, paths: &JsonPaths) -> Self {
        let pointer = |path: &Option<String>| path.as_deref().map(to_json_pointer);
        let paths = JsonPaths {
            text: pointer(&paths.text),
            message: pointer(&paths.message),
            session: pointer(&paths.session),
            input_tokens: pointer(&paths.input_tokens),
            output_tokens: pointer(&paths.output_tokens),
            cost: pointer(&paths.cost),
            error: pointer(&paths.error),
        };
        Self { progress: RunProgress::new(cli), paths }
    }

    fn read(&mut self, value: &Value) -> Vec<DelegateEvent> {
        let mut events = Vec::new();
        let find = |path: &Option<String>| value.pointer(path.as_deref()?);
        if let Some(session) = find(&self.paths.session).and_then(Value::as_str) {
            events.extend(self.progress.set_session(session));
        }
        if let Some(text) = find(&self.paths.text).and_then(Value::as_str) {
            if self.paths.message.is_none() {
                self.progress.set_message(text);
            }
            events.push(DelegateEvent::Text(clip(text, MAX_TEXT_BYTES)));
        }
        if let Some(message) = find(&self.paths.message).and_then(Value::as_str) {
            self.progress.set_message(message);
            // The message repeats the pieces if these are configured.
            if self.paths.text.is_none() {
                events.push(DelegateEvent::Text(clip(message, MAX_TEXT_BYTES)));
            }
        }
        let input = find(&self.paths.input_tokens).and_then(Value::as_u64).map(Tokens);
        let output = find(&self.paths.output_tokens).and_then(Value::as_u64).map(Tokens);
        let cost = find(&self.paths.cost).and_then(Value::as_f64);
        let cost = cost.filter(|cost| cost.is_finite() && *cost >= 0.0);
        if input.is_some() || output.is_some() || cost.is_some() {
            let usage = &mut self.progress.usage;
            usage.input = input.unwrap_or(usage.input);
            usage.output = output.unwrap_or(usage.output);
            self.progress.cost = cost.or(self.progress.cost);
            events.push(self.progress.usage_event());
        }
        if let Some(error) = find(&self.paths.error).filter(|error| !error.is_null()) {
            let reason = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
            self.progress.fail(failure_kind_of(&reason).unwrap_or(FailureKind::Reported), &reason);
            let reason = self.progress.failure.as_ref().map(|failure| failure.message.clone());
            events.extend(reason.map(DelegateEvent::Warning));
        }
        events
    }
}

impl Conversation for JsonLinesConversation {
    fn receive_line(&mut self, line: &[u8]) -> ConversationStep {
        let Some(value) = self.progress.parse(line) else { return unknown_step(line) };
        let events = self.read(&value);
        if events.is_empty() {
            unknown_step(line)
        } else {
            ConversationStep { events, ..ConversationStep::default() }
        }
    }

    fn end(mut self: Box<Self>, exit: Option<i32>, stderr: &str) -> Outcome {
        self.progress.finished = exit == Some(0);
        self.progress.end(exit, stderr)
    }
}

/// Converts a path with dots to a JSON pointer; a JSON pointer stays.
fn to_json_pointer(path: &str) -> String {
    if path.is_empty() || path.starts_with('/') {
        return path.to_owned();
    }
    let mut pointer = String::new();
    for name in path.split('.') {
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{read_run, request};
    use crate::{CliDefinition, CliOutputFormat, ConfiguredCli, DefinitionError, Failure};

    fn cli(output: CliOutputFormat) -> Result<ConfiguredCli, DefinitionError> {
        let (name, command) = ("mine".to_owned(), vec!["mine".to_owned()]);
        ConfiguredCli::new(CliDefinition { name, command, output, ..CliDefinition::default() })
    }

    #[test]
    fn text_is_the_message() -> Result<(), DefinitionError> {
        let cli = cli(CliOutputFormat::Text)?;
        let (events, outcome) = read_run(&cli, &request(""), &["One.", "", "Two."], Some(0), "noise");
        let text = |text: &str| DelegateEvent::Text(text.to_owned());
        assert_eq!(events, [text("One.\n"), text("\n"), text("Two.\n")]);
        assert_eq!(outcome, Outcome { message: "One.\n\nTwo.".to_owned(), ..Outcome::default() });
        for (exit, stderr, kind) in [
            (Some(2), "error: unrecognized arguments: --json", FailureKind::UnknownFlag),
            (Some(1), "Incorrect API key provided", FailureKind::NotAuthenticated),
            (Some(1), "", FailureKind::Reported),
            (None, "", FailureKind::CutOff),
        ] {
            let (_, outcome) = read_run(&cli, &request(""), &["One."], exit, stderr);
            assert_eq!(outcome.failure.map(|failure| failure.kind), Some(kind), "{stderr}");
        }
        Ok(())
    }

    #[test]
    fn the_end_of_a_long_text_is_kept() -> Result<(), DefinitionError> {
        let cli = cli(CliOutputFormat::Text)?;
        let line = "é".repeat(MAX_TEXT_BYTES / 2 - 1);
        let (_, outcome) = read_run(&cli, &request(""), &[&line, "The end."], Some(0), "");
        assert!(outcome.message.len() <= MAX_TEXT_BYTES);
        assert!(outcome.message.ends_with("é\nThe end."));
        Ok(())
    }

    #[test]
    fn fields_are_found_by_their_paths() -> Result<(), DefinitionError> {
        let path = |path: &str| Some(path.to_owned());
        let cli = cli(CliOutputFormat::JsonLines(JsonPaths {
            text: path("delta.text"),
            session: path("/session/id"),
            input_tokens: path("usage.in"),
            output_tokens: path("usage.out"),
            cost: path("usage.a/b"),
            error: path("error"),
            ..JsonPaths::default()
        }))?;
        let lines = [
            r#"{"session":{"id":"s-1"},"error":null}"#,
            r#"{"delta":{"text":"Done."},"session":{"id":"s-1"}}"#,
            r#"{"usage":{"in":3,"out":4,"a/b":0.5}}"#,
            r#"{"other":1}"#,
            "no JSON",
        ];
        let (events, outcome) = read_run(&cli, &request(""), &lines, Some(0), "");
        let usage = journeyman_protocol::Usage { input: Tokens(3), output: Tokens(4), ..Default::default() };
        let expected = [
            DelegateEvent::Session("s-1".to_owned()),
            DelegateEvent::Text("Done.".to_owned()),
            DelegateEvent::Usage { usage, cost: Some(0.5) },
            DelegateEvent::Unknown(r#"{"other":1}"#.to_owned()),
            DelegateEvent::Unknown("no JSON".to_owned()),
        ];
        assert_eq!(events, expected);
        let (message, session) = ("Done.".to_owned(), Some("s-1".to_owned()));
        assert_eq!(outcome, Outcome { message, session, usage, cost: Some(0.5), failure: None });
        let (_, outcome) = read_run(&cli, &request(""), &[r#"{"error":{"code":7}}"#], Some(0), "");
        let failure = Failure { kind: FailureKind::Reported, message: r#"{"code":7}"#.to_owned() };
        assert_eq!(outcome.failure, Some(failure));
        Ok(())
    }
}
