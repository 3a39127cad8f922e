//! Gemini CLI: `gemini -o stream-json`.
//!
//! Messages come in pieces; the last line is the result, with the tokens of the whole run.

use std::path::PathBuf;

use journeyman_protocol::{Tokens, Usage};
use serde_json::{Value, json};

use crate::adapter::{any_model_provider, to_paths, to_strings, to_variables};
use crate::bounds::{
    MAX_CHANGED_PATHS, MAX_ID_OR_PATH_BYTES, MAX_SENTENCE_BYTES, MAX_TEXT_BYTES, MAX_TOOL_OUTPUT_BYTES, clip,
};
use crate::json_line::{escape_leading_slash, summarize_input, text_at, tokens_at, unknown_step};
use crate::progress::{RunProgress, failure_kind_of};
use crate::{
    Adapter, Capabilities, CommandLine, CommandRequest, Conversation, ConversationStep, DelegateEvent,
    FailureKind, Outcome, Provider, Requirements,
};

/// The path of the settings, beneath a home directory.
const SETTINGS_PATH: &str = ".gemini/settings.json";
/// The path of an account's login, beneath a home directory.
const LOGIN_PATH: &str = ".gemini/oauth_creds.json";

/// The exit code for a missing key or login.
const NOT_AUTHENTICATED_CODE: i32 = 41;

/// Gemini CLI, by Google.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gemini;

impl Adapter for Gemini {
    fn name(&self) -> &str {
        "gemini"
    }

    fn program(&self) -> &str {
        "gemini"
    }

    fn install_hint(&self) -> &str {
        "npm install -g @google/gemini-cli"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            needs_workspace: true,
            streaming: true,
            resume: true,
            model: true,
            own_sandbox: true,
            cost: false,
        }
    }

    fn requirements(&self) -> Requirements {
        let key = any_model_provider(
            &["GEMINI_API_KEY"],
            &["GOOGLE_GEMINI_BASE_URL"],
            &["generativelanguage.googleapis.com"],
        );
        let login = any_model_provider(
            &[],
            &[],
            &["cloudcode-pa.googleapis.com", "oauth2.googleapis.com", "www.googleapis.com"],
        );
        Requirements {
            providers: vec![
                Provider { files: settings_files("gemini-api-key"), ..key },
                Provider { files: settings_files("oauth-personal"), ..login },
            ],
            environment: to_strings(&["GEMINI_MODEL", "GOOGLE_CLOUD_PROJECT"]),
            credentials: to_paths(&[LOGIN_PATH, ".gemini/google_accounts.json"]),
            state: to_paths(&[".gemini/tmp", ".gemini/projects.json"]),
            set: to_variables(&[("GEMINI_TELEMETRY_ENABLED", "false")]),
        }
    }

    fn build_command(&self, request: &CommandRequest<'_>) -> CommandLine {
        let mut command = CommandLine::new(self.program());
        command.add_option("--output-format", Some("stream-json"));
        if request.confined {
            command.add_arguments(&["--approval-mode=yolo", "--sandbox=false"]);
        } else {
            command.add_arguments(&["--approval-mode=auto_edit"]);
        }
        // The CLI refuses to work in an untrusted directory, and obeys the settings of a trusted
        // one.
        if request.confined || request.trusted {
            command.add_arguments(&["--skip-trust"]);
        }
        command.add_option("--model", request.model);
        command.add_option("--resume", request.resume);
        if let Some(address) = request.base_url {
            command.set_variable("GOOGLE_GEMINI_BASE_URL", address);
        }
        command.add_arguments(request.arguments);
        command.stdin = escape_leading_slash(request.prompt).into_bytes();
        command
    }

    fn start_conversation(&self, _request: &CommandRequest<'_>) -> Box<dyn Conversation> {
        Box::new(GeminiConversation {
            progress: RunProgress::new(self.name()),
            streaming: false,
            written: Vec::new(),
        })
    }
}

/// Returns the settings files for a home: the way to log in, and no updates and statistics.
fn settings_files(login: &str) -> Vec<(PathBuf, String)> {
    let settings = json!({
        "security": { "auth": { "selectedType": login } },
        "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
        "privacy": { "usageStatisticsEnabled": false },
    });
    vec![(PathBuf::from(SETTINGS_PATH), settings.to_string())]
}

struct GeminiConversation {
    progress: RunProgress,
    /// True if the next piece of text continues the message.
    streaming: bool,
    /// Files that running tools write, by the ids of the uses.
    written: Vec<(String, String)>,
}

impl Conversation for GeminiConversation {
    fn receive_line(&mut self, line: &[u8]) -> ConversationStep {
        let Some(value) = self.progress.parse(line) else { return unknown_step(line) };
        let kind = text_at(&value, "/type");
        let events = match kind {
            "init" => self.progress.set_session(text_at(&value, "/session_id")).into_iter().collect(),
            "message" if text_at(&value, "/role") == "assistant" => self.read_text(&value),
            // This message is our own prompt.
            "message" => Vec::new(),
            "tool_use" => self.read_tool_start(&value),
            "tool_result" => self.read_tool_end(&value),
            "error" => vec![self.progress.warn(text_at(&value, "/message"))],
            "result" => self.read_result(&value),
            _ => return unknown_step(line),
        };
        self.streaming = kind == "message";
        ConversationStep { events, finished: self.progress.finished, ..ConversationStep::default() }
    }

    fn end(mut self: Box<Self>, exit: Option<i32>, stderr: &str) -> Outcome {
        if exit == Some(NOT_AUTHENTICATED_CODE) && self.progress.failure.is_none() {
            self.progress.fail(FailureKind::NotAuthenticated, stderr);
        }
        self.progress.end(exit, stderr)
    }
}

impl GeminiConversation {
    fn read_text(&mut self, value: &Value) -> Vec<DelegateEvent> {
        let text = clip(text_at(value, "/content"), MAX_TEXT_BYTES);
        if !self.streaming {
            self.progress.message.clear();
        }
        self.progress.append_message(&text);
        vec![DelegateEvent::Text(text)]
    }

    fn read_tool_start(&mut self, value: &Value) -> Vec<DelegateEvent> {
        let id = clip(text_at(value, "/tool_id"), MAX_ID_OR_PATH_BYTES);
        let tool = clip(text_at(value, "/tool_name"), MAX_SENTENCE_BYTES);
        let path = text_at(value, "/parameters/file_path");
        let writes = matches!(tool.as_str(), "write_file" | "replace") && !path.is_empty();
        if writes && self.written.len() < MAX_CHANGED_PATHS {
            self.written.push((id.clone(), clip(path, MAX_ID_OR_PATH_BYTES)));
        }
        let summary = summarize_input(value.get("parameters").unwrap_or(&Value::Null));
        vec![DelegateEvent::ToolStart { id, tool, summary }]
    }

    fn read_tool_end(&mut self, value: &Value) -> Vec<DelegateEvent> {
        let id = clip(text_at(value, "/tool_id"), MAX_ID_OR_PATH_BYTES);
        let failed = text_at(value, "/status") != "success";
        let output = match text_at(value, "/output") {
            "" => text_at(value, "/error/message"),
            output => output,
        };
        let output = clip(output, MAX_TOOL_OUTPUT_BYTES);
        let written = self.written.iter().position(|(tool, _)| *tool == id);
        let written = written.map(|at| self.written.swap_remove(at).1);
        let mut events = vec![DelegateEvent::ToolEnd { id, failed, output }];
        if let Some(path) = written.filter(|_| !failed) {
            events.push(DelegateEvent::FilesChanged(vec![path]));
        }
        events
    }

    fn read_result(&mut self, value: &Value) -> Vec<DelegateEvent> {
        self.progress.finished = true;
        let cache_read = tokens_at(value, "/stats/cached");
        self.progress.usage = Usage {
            input: Tokens(tokens_at(value, "/stats/input_tokens").0.saturating_sub(cache_read.0)),
            cache_read,
            output: tokens_at(value, "/stats/output_tokens"),
            ..Usage::default()
        };
        if text_at(value, "/status") != "success" {
            let reason = text_at(value, "/error/message");
            self.progress.fail(failure_kind_of(reason).unwrap_or(FailureKind::Reported), reason);
        }
        vec![self.progress.usage_event()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{arguments, read_run, request};

    #[test]
    fn the_directory_is_trusted_only_where_nothing_can_come_of_it() {
        let trusts = |confined: bool, trusted: bool| {
            let mut request = request("");
            (request.confined, request.trusted) = (confined, trusted);
            arguments(&Gemini, &request).contains(&"--skip-trust".to_owned())
        };
        assert_eq!([trusts(true, false), trusts(false, true), trusts(false, false)], [true, true, false]);
    }

    #[test]
    fn a_run_is_read() {
        let lines = [
            r#"{"type":"init","session_id":"s-1","model":"m"}"#,
            r#"{"type":"message","role":"user","content":"Do it."}"#,
            r#"{"type":"message","role":"assistant","content":"I wri","delta":true}"#,
            r#"{"type":"message","role":"assistant","content":"te.","delta":true}"#,
            r#"{"type":"tool_use","tool_name":"write_file","tool_id":"w1","parameters":{"file_path":"a.txt","content":"x"}}"#,
            r#"{"type":"tool_use","tool_name":"replace","tool_id":"w2","parameters":{"file_path":"b.txt"}}"#,
            r#"{"type":"tool_result","tool_id":"w2","status":"error","error":{"type":"e","message":"not found"}}"#,
            r#"{"type":"tool_result","tool_id":"w1","status":"success"}"#,
            r#"{"type":"error","severity":"warning","message":"Loop detected"}"#,
            r#"{"type":"message","role":"assistant","content":"Do","delta":true}"#,
            r#"{"type":"message","role":"assistant","content":"ne.","delta":true}"#,
            r#"{"type":"result","status":"success","stats":{"input_tokens":30,"cached":10,"output_tokens":5}}"#,
        ];
        let (events, outcome) = read_run(&Gemini, &request(""), &lines, Some(0), "");
        let usage =
            Usage { input: Tokens(20), cache_read: Tokens(10), output: Tokens(5), ..Usage::default() };
        let start = |id: &str, tool: &str, summary: &str| DelegateEvent::ToolStart {
            id: id.to_owned(),
            tool: tool.to_owned(),
            summary: summary.to_owned(),
        };
        let end = |id: &str, failed, output: &str| DelegateEvent::ToolEnd {
            id: id.to_owned(),
            failed,
            output: output.to_owned(),
        };
        let text = |text: &str| DelegateEvent::Text(text.to_owned());
        let expected = [
            DelegateEvent::Session("s-1".to_owned()),
            text("I wri"),
            text("te."),
            start("w1", "write_file", "a.txt"),
            start("w2", "replace", "b.txt"),
            end("w2", true, "not found"),
            end("w1", false, ""),
            DelegateEvent::FilesChanged(vec!["a.txt".to_owned()]),
            DelegateEvent::Warning("Loop detected".to_owned()),
            text("Do"),
            text("ne."),
            DelegateEvent::Usage { usage, cost: None },
        ];
        assert_eq!(events, expected);
        let session = Some("s-1".to_owned());
        let message = "Done.".to_owned();
        assert_eq!(outcome, Outcome { message, session, usage, cost: None, failure: None });
    }

    #[test]
    fn failures_have_their_kinds() {
        let failed = r#"{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: terminated]"}}"#;
        let untrusted = "\u{1b}[31mIt is not running in a trusted directory.\u{1b}[0m";
        for (lines, exit, stderr, kind, message) in [
            (vec![failed], 1, "", FailureKind::Provider, "[API Error: terminated]"),
            (vec![], 41, "Name a key.", FailureKind::NotAuthenticated, "Name a key."),
            (
                vec![],
                55,
                untrusted,
                FailureKind::Reported,
                "gemini ended with exit code 55 before it was done: It is not running in a trusted directory.",
            ),
        ] {
            let (_, outcome) = read_run(&Gemini, &request(""), &lines, Some(exit), stderr);
            let failure = outcome.failure.map(|failure| (failure.kind, failure.message));
            assert_eq!(failure, Some((kind, message.to_owned())));
        }
    }
}
