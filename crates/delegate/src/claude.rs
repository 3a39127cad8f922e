//! Claude Code: `claude -p --output-format stream-json`.
//!
//! Each line is a message of the conversation, whole, or a system message about the run; the last
//! one is the result.

use serde_json::Value;

use crate::adapter::{any_model_provider, to_paths, to_strings, to_variables};
use crate::bounds::{MAX_ID_OR_PATH_BYTES, MAX_SENTENCE_BYTES, MAX_TEXT_BYTES, clip};
use crate::json_line::{
    dollars_at, escape_leading_slash, list_at, summarize_input, text_at, tokens_at, tool_output, unknown_step,
};
use crate::progress::{RunProgress, failure_kind_of, failure_kind_of_status};
use crate::{
    Adapter, Capabilities, CommandLine, CommandRequest, Conversation, ConversationStep, DelegateEvent,
    FailureKind, Outcome, Requirements, TokensAndCost,
};

/// The attempt of one request at which a refused key is final. At an earlier one the CLI may renew
/// a login.
const FINAL_REFUSAL_ATTEMPT: u64 = 2;

/// Claude Code, by Anthropic.
#[derive(Debug, Clone, Copy, Default)]
pub struct Claude;

impl Adapter for Claude {
    fn name(&self) -> &str {
        "claude"
    }

    fn program(&self) -> &str {
        "claude"
    }

    fn install_hint(&self) -> &str {
        "npm install -g @anthropic-ai/claude-code"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            needs_workspace: true,
            streaming: true,
            resume: true,
            model: true,
            own_sandbox: false,
            cost: true,
        }
    }

    fn requirements(&self) -> Requirements {
        Requirements {
            providers: vec![
                any_model_provider(
                    &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
                    &["ANTHROPIC_BASE_URL"],
                    &["api.anthropic.com"],
                ),
                // A login with an account is renewed at the second host.
                any_model_provider(&[], &[], &["api.anthropic.com", "platform.claude.com"]),
            ],
            environment: to_strings(&["ANTHROPIC_MODEL", "ANTHROPIC_CUSTOM_HEADERS"]),
            credentials: to_paths(&[".claude/.credentials.json"]),
            state: to_paths(&[".claude/projects"]),
            set: to_variables(&[
                ("DISABLE_AUTOUPDATER", "1"),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ]),
        }
    }

    fn build_command(&self, request: &CommandRequest<'_>) -> CommandLine {
        let mut command = CommandLine::new(self.program());
        command.add_arguments(&["-p", "--output-format", "stream-json", "--verbose"]);
        if request.confined {
            command.add_arguments(&["--dangerously-skip-permissions"]);
            // Root may use the flag only with this variable, and in a sandbox the user may look
            // like root.
            command.set_variable("IS_SANDBOX", "1");
        } else {
            command.add_option("--permission-mode", Some("acceptEdits"));
            if !request.trusted {
                command.add_option("--setting-sources", Some("user"));
            }
        }
        command.add_option("--model", request.model);
        command.add_option("--resume", request.resume);
        if let Some(address) = request.base_url {
            command.set_variable("ANTHROPIC_BASE_URL", address);
        }
        command.add_arguments(request.arguments);
        command.stdin = escape_leading_slash(request.prompt).into_bytes();
        command
    }

    fn start_conversation(&self, request: &CommandRequest<'_>) -> Box<dyn Conversation> {
        Box::new(ClaudeConversation { progress: RunProgress::new(self.name()), earlier: request.spent })
    }
}

struct ClaudeConversation {
    progress: RunProgress,
    /// Tokens and cost of the session's earlier runs.
    earlier: TokensAndCost,
}

impl Conversation for ClaudeConversation {
    fn receive_line(&mut self, line: &[u8]) -> ConversationStep {
        let Some(value) = self.progress.parse(line) else { return unknown_step(line) };
        let events = match (text_at(&value, "/type"), text_at(&value, "/subtype")) {
            ("system", "init") => {
                self.progress.set_session(text_at(&value, "/session_id")).into_iter().collect()
            }
            ("system", "api_retry") => return self.read_retry(&value),
            ("assistant", _) => self.read_assistant(&value),
            ("user", _) => read_tool_results(&value),
            ("result", _) => {
                let events = self.read_result(&value);
                return ConversationStep { events, finished: true, ..ConversationStep::default() };
            }
            _ => return unknown_step(line),
        };
        ConversationStep { events, ..ConversationStep::default() }
    }

    fn end(self: Box<Self>, exit: Option<i32>, stderr: &str) -> Outcome {
        self.progress.end(exit, stderr)
    }
}

impl ClaudeConversation {
    fn read_retry(&mut self, value: &Value) -> ConversationStep {
        let attempt = value.get("attempt").and_then(Value::as_u64).unwrap_or_default();
        let reason = text_at(value, "/error");
        let status = value.get("error_status").and_then(Value::as_u64);
        let warning = match status {
            Some(status) => format!("request failed with {status} {reason}, attempt {attempt}"),
            None => format!("request failed with {reason}, attempt {attempt}"),
        };
        let warning = self.progress.warn(warning);
        let refused =
            status.is_some_and(|status| failure_kind_of_status(status) == FailureKind::NotAuthenticated);
        let finished = refused && attempt >= FINAL_REFUSAL_ATTEMPT;
        if finished {
            self.progress.fail(FailureKind::NotAuthenticated, &format!("the key is refused: {reason}"));
        }
        ConversationStep { events: vec![warning], finished, ..ConversationStep::default() }
    }

    fn read_assistant(&mut self, value: &Value) -> Vec<DelegateEvent> {
        // The CLI's sub-agents send messages, too; only those of the main agent are the CLI's
        // message.
        let own = value.get("parent_tool_use_id").is_none_or(Value::is_null);
        let mut events = Vec::new();
        for block in list_at(value, "/message/content") {
            match text_at(block, "/type") {
                "text" => {
                    let text = text_at(block, "/text");
                    if own {
                        self.progress.set_message(text);
                    }
                    events.push(DelegateEvent::Text(clip(text, MAX_TEXT_BYTES)));
                }
                "thinking" => {
                    events.push(DelegateEvent::Thought(clip(text_at(block, "/thinking"), MAX_TEXT_BYTES)));
                }
                "tool_use" => events.push(DelegateEvent::ToolStart {
                    id: clip(text_at(block, "/id"), MAX_ID_OR_PATH_BYTES),
                    tool: clip(text_at(block, "/name"), MAX_SENTENCE_BYTES),
                    summary: summarize_input(block.get("input").unwrap_or(&Value::Null)),
                }),
                _ => {}
            }
        }
        if let Some(error) = value.get("error").and_then(Value::as_str) {
            events.push(self.progress.warn(error));
        }
        events
    }

    /// Returns true if the cost in a result is that of the whole session. Some versions of the CLI
    /// report the cost of the run alone, as all do for its tokens.
    fn includes_earlier_cost(&self, result: &Value, cost: f64) -> bool {
        let models = result.get("modelUsage").and_then(Value::as_object);
        // In doubt a cost counts twice, so that a budget holds.
        let has_tokens = models.is_none_or(|models| {
            let counted: u64 = models.values().map(|model| tokens_at(model, "/outputTokens").0).sum();
            counted >= (self.earlier.usage.output + self.progress.usage.output).0
        });
        has_tokens && self.earlier.cost.is_some_and(|earlier| cost >= earlier)
    }

    fn read_result(&mut self, value: &Value) -> Vec<DelegateEvent> {
        let mut events: Vec<_> =
            self.progress.set_session(text_at(value, "/session_id")).into_iter().collect();
        let message = text_at(value, "/result");
        if !message.is_empty() {
            self.progress.set_message(message);
        }
        let usage = &mut self.progress.usage;
        usage.input = tokens_at(value, "/usage/input_tokens");
        usage.cache_read = tokens_at(value, "/usage/cache_read_input_tokens");
        usage.cache_write = tokens_at(value, "/usage/cache_creation_input_tokens");
        usage.output = tokens_at(value, "/usage/output_tokens");
        usage.thinking = tokens_at(value, "/usage/output_tokens_details/thinking_tokens");
        let cost = dollars_at(value, "/total_cost_usd");
        let earlier = |cost| if self.includes_earlier_cost(value, cost) { self.earlier.cost } else { None };
        self.progress.cost = cost.map(|cost| cost - earlier(cost).unwrap_or_default());
        events.push(self.progress.usage_event());
        self.progress.finished = true;
        let subtype = text_at(value, "/subtype");
        if value.get("is_error").and_then(Value::as_bool) == Some(true) || subtype != "success" {
            let errors = text_at(value, "/errors/0");
            let reason = [message, errors, subtype].into_iter().find(|text| !text.is_empty());
            let reason = reason.unwrap_or_default();
            let status = value.get("api_error_status").and_then(Value::as_u64).map(failure_kind_of_status);
            let kind = status.or_else(|| failure_kind_of(reason)).unwrap_or(FailureKind::Reported);
            self.progress.fail(kind, reason);
        }
        events
    }
}

/// Reads the results of tools, which the CLI reports as user messages.
fn read_tool_results(value: &Value) -> Vec<DelegateEvent> {
    let mut events = Vec::new();
    for block in list_at(value, "/message/content") {
        if text_at(block, "/type") != "tool_result" {
            continue;
        }
        events.push(DelegateEvent::ToolEnd {
            id: clip(text_at(block, "/tool_use_id"), MAX_ID_OR_PATH_BYTES),
            failed: block.get("is_error").and_then(Value::as_bool) == Some(true),
            output: tool_output(block.get("content").unwrap_or(&Value::Null)),
        });
    }
    // Only the results of tools that write have a patch with the file's path.
    if value.pointer("/tool_use_result/structuredPatch").is_some() {
        let path = text_at(value, "/tool_use_result/filePath");
        if !path.is_empty() {
            events.push(DelegateEvent::FilesChanged(vec![clip(path, MAX_ID_OR_PATH_BYTES)]));
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{arguments, read_run, request};

    const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"s-1"}"#;

    #[test]
    fn values_are_never_flags() {
        let extra = ["--max-turns=3".to_owned()];
        let mut request = request("-p");
        request.model = Some("--help");
        request.resume = Some("s-1");
        request.arguments = &extra;
        let expected = [
            "claude",
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--dangerously-skip-permissions",
            "--model=--help",
            "--resume=s-1",
            "--max-turns=3",
        ];
        assert_eq!(arguments(&Claude, &request), expected);
        assert_eq!(Claude.build_command(&request).stdin, b"-p");
    }

    #[test]
    fn its_own_permissions_hold_outside_of_a_sandbox() {
        let mut request = request("/help");
        request.confined = false;
        let command = arguments(&Claude, &request);
        assert!(command.contains(&"--permission-mode=acceptEdits".to_owned()));
        assert!(command.contains(&"--setting-sources=user".to_owned()));
        assert!(!command.contains(&"--dangerously-skip-permissions".to_owned()));
        // Not a command of the CLI's.
        assert_eq!(Claude.build_command(&request).stdin, b"Task: /help");
    }

    #[test]
    fn a_run_is_read() {
        let lines = [
            INIT,
            r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"Hm."},{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls\n-l"}}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"no"},{"type":"text","text":"such"}]}]}}"#,
            r#"{"type":"assistant","parent_tool_use_id":"t0","message":{"content":[{"type":"text","text":"An agent's."}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":"ok"}]},"tool_use_result":{"filePath":"/work/a","structuredPatch":[]}}"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"s-1","total_cost_usd":0.75,"usage":{"input_tokens":1,"cache_read_input_tokens":2,"cache_creation_input_tokens":3,"output_tokens":4}}"#,
        ];
        let mut request = request("");
        request.spent.cost = Some(0.25);
        let (events, outcome) = read_run(&Claude, &request, &lines, Some(0), "");
        let usage = journeyman_protocol::Usage {
            input: journeyman_protocol::Tokens(1),
            cache_read: journeyman_protocol::Tokens(2),
            cache_write: journeyman_protocol::Tokens(3),
            output: journeyman_protocol::Tokens(4),
            ..Default::default()
        };
        let text = |text: &str| DelegateEvent::Text(text.to_owned());
        let end = |id: &str, failed, output: &str| DelegateEvent::ToolEnd {
            id: id.to_owned(),
            failed,
            output: output.to_owned(),
        };
        let start = DelegateEvent::ToolStart {
            id: "t1".to_owned(),
            tool: "Bash".to_owned(),
            summary: "ls -l".to_owned(),
        };
        let expected = [
            DelegateEvent::Session("s-1".to_owned()),
            DelegateEvent::Thought("Hm.".to_owned()),
            text("I look."),
            start,
            end("t1", true, "no\nsuch"),
            text("An agent's."),
            end("t2", false, "ok"),
            DelegateEvent::FilesChanged(vec!["/work/a".to_owned()]),
            DelegateEvent::Usage { usage, cost: Some(0.5) },
        ];
        assert_eq!(events, expected);
        let session = Some("s-1".to_owned());
        let message = "Done.".to_owned();
        assert_eq!(outcome, Outcome { message, session, usage, cost: Some(0.5), failure: None });
    }

    #[test]
    fn a_cost_of_the_run_alone_is_no_cost_of_the_session() {
        let result = |cost: f64, output: Option<u64>| {
            let models = output.map_or_else(String::new, |output| {
                format!(r#","modelUsage":{{"m":{{"outputTokens":{output}}}}}"#)
            });
            format!(
                r#"{{"type":"result","subtype":"success","total_cost_usd":{cost},"usage":{{"output_tokens":4}}{models}}}"#
            )
        };
        let mut request = request("");
        request.spent.cost = Some(0.25);
        request.spent.usage.output = journeyman_protocol::Tokens(10);
        for (cost, output, expected) in [
            (0.75, None, 0.5),
            (0.125, None, 0.125),
            (0.75, Some(14), 0.5),
            (0.75, Some(4), 0.75),
            (0.125, Some(14), 0.125),
        ] {
            let (_, outcome) = read_run(&Claude, &request, &[INIT, &result(cost, output)], Some(0), "");
            assert_eq!(outcome.cost, Some(expected), "{cost} {output:?}");
        }
    }

    #[test]
    fn failures_have_their_kinds() {
        let refused = r#"{"type":"system","subtype":"api_retry","attempt":2,"error_status":401,"error":"authentication_failed"}"#;
        let renewed = r#"{"type":"system","subtype":"api_retry","attempt":1,"error_status":401,"error":"authentication_failed"}"#;
        let busy = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"API Error: 529"}"#;
        let login = r#"{"type":"result","subtype":"success","is_error":true,"result":"Not logged in · Please run /login"}"#;
        let turns = r#"{"type":"result","subtype":"error_max_turns","is_error":false}"#;
        let flag = "error: unknown option '--nope'\n(Did you mean --name?)\n";
        for (lines, exit, stderr, kind) in [
            (vec![INIT, refused], None, "", FailureKind::NotAuthenticated),
            (vec![INIT, renewed], None, "", FailureKind::CutOff),
            (vec![INIT, busy], Some(1), "", FailureKind::Provider),
            (vec![INIT, login], Some(1), "", FailureKind::NotAuthenticated),
            (vec![INIT, turns], Some(1), "", FailureKind::Reported),
            (vec![], Some(1), flag, FailureKind::UnknownFlag),
            (vec![INIT], Some(0), "", FailureKind::CutOff),
            (vec![INIT], Some(134), "", FailureKind::CutOff),
            (vec![], Some(1), "No such file", FailureKind::Reported),
        ] {
            let (_, outcome) = read_run(&Claude, &request(""), &lines, exit, stderr);
            assert_eq!(outcome.failure.map(|failure| failure.kind), Some(kind), "{lines:?} {stderr}");
        }
    }
}
