//! Codex: `codex exec --json`.
//!
//! A run is a thread with a turn; a turn has items (messages, commands, changes of files), each of
//! which is told when it starts and when it is completed.

use std::collections::HashSet;

use journeyman_protocol::{Tokens, Usage};
use serde_json::Value;

use crate::adapter::{any_model_provider, to_paths, to_strings};
use crate::bounds::{
    MAX_CHANGED_PATHS, MAX_ID_OR_PATH_BYTES, MAX_OPEN_TOOLS, MAX_TEXT_BYTES, MAX_TOOL_OUTPUT_BYTES, clip,
    one_line,
};
use crate::json_line::{list_at, summarize_input, text_at, tokens_at, tool_output, unknown_step};
use crate::progress::{RunProgress, failure_kind_of};
use crate::{
    Adapter, Capabilities, CommandLine, CommandRequest, Conversation, ConversationStep, DelegateEvent,
    FailureKind, Outcome, Requirements,
};

/// Codex, by OpenAI.
#[derive(Debug, Clone, Copy, Default)]
pub struct Codex;

impl Adapter for Codex {
    fn name(&self) -> &str {
        "codex"
    }

    fn program(&self) -> &str {
        "codex"
    }

    fn install_hint(&self) -> &str {
        "npm install -g @openai/codex"
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
        Requirements {
            providers: vec![
                any_model_provider(&["CODEX_API_KEY", "OPENAI_API_KEY"], &[], &["api.openai.com"]),
                // A login with an account uses the last two hosts.
                any_model_provider(&[], &[], &["api.openai.com", "chatgpt.com", "auth.openai.com"]),
            ],
            environment: to_strings(&["OPENAI_ORGANIZATION", "OPENAI_PROJECT"]),
            credentials: to_paths(&[".codex/auth.json"]),
            state: to_paths(&[".codex/sessions"]),
            set: Vec::new(),
        }
    }

    fn build_command(&self, request: &CommandRequest<'_>) -> CommandLine {
        let mut command = CommandLine::new(self.program());
        // A copy without its repository isn't a git repository, which Codex otherwise requires.
        command.add_arguments(&["exec", "--json", "--skip-git-repo-check"]);
        if request.confined {
            command.add_arguments(&["--dangerously-bypass-approvals-and-sandbox"]);
        } else {
            command.add_option("--sandbox", Some("workspace-write"));
        }
        for setting in ["check_for_update_on_startup=false", "analytics.enabled=false"] {
            command.add_option("--config", Some(setting));
        }
        if let Some(address) = request.base_url {
            let address = Value::from(address);
            command.add_option("--config", Some(&format!("openai_base_url={address}")));
        }
        command.add_option("--model", request.model);
        command.add_arguments(request.arguments);
        if let Some(session) = request.resume {
            command.add_arguments(&["resume", "--", session]);
        }
        // The prompt is read from standard input.
        command.add_arguments(&["-"]);
        command.stdin = request.prompt.as_bytes().to_vec();
        command
    }

    fn start_conversation(&self, request: &CommandRequest<'_>) -> Box<dyn Conversation> {
        Box::new(CodexConversation {
            progress: RunProgress::new(self.name()),
            started: HashSet::new(),
            earlier: request.spent.usage,
        })
    }
}

struct CodexConversation {
    progress: RunProgress,
    /// The ids of tools that have started and not ended.
    started: HashSet<String>,
    /// Tokens of the thread's earlier runs, which the CLI includes in its counts.
    earlier: Usage,
}

impl Conversation for CodexConversation {
    fn receive_line(&mut self, line: &[u8]) -> ConversationStep {
        let Some(value) = self.progress.parse(line) else { return unknown_step(line) };
        let null = Value::Null;
        let item = value.get("item").unwrap_or(&null);
        let events = match text_at(&value, "/type") {
            "thread.started" => {
                self.progress.set_session(text_at(&value, "/thread_id")).into_iter().collect()
            }
            "turn.started" => Vec::new(),
            "item.started" | "item.updated" => self.read_tool_start(item),
            "item.completed" => self.read_item_end(item),
            "error" => {
                let problem = text_at(&value, "/message");
                vec![self.progress.warn(problem)]
            }
            "turn.completed" => {
                self.progress.finished = true;
                self.progress.usage = subtract_usage(usage_of(&value), self.earlier);
                vec![self.progress.usage_event()]
            }
            "turn.failed" => {
                self.progress.finished = true;
                let reason = text_at(&value, "/error/message");
                self.progress.fail(failure_kind_of(reason).unwrap_or(FailureKind::Reported), reason);
                Vec::new()
            }
            _ => return unknown_step(line),
        };
        if events.is_empty() && !item.is_null() && !is_known_item(text_at(item, "/type")) {
            return unknown_step(line);
        }
        ConversationStep { events, finished: self.progress.finished, ..ConversationStep::default() }
    }

    fn end(self: Box<Self>, exit: Option<i32>, stderr: &str) -> Outcome {
        self.progress.end(exit, stderr)
    }
}

impl CodexConversation {
    fn read_tool_start(&mut self, item: &Value) -> Vec<DelegateEvent> {
        let id = clip(text_at(item, "/id"), MAX_ID_OR_PATH_BYTES);
        let Some(summary) = summary_of(item) else { return Vec::new() };
        if self.started.len() >= MAX_OPEN_TOOLS || !self.started.insert(id.clone()) {
            return Vec::new();
        }
        vec![DelegateEvent::ToolStart { id, tool: tool_name(item), summary }]
    }

    fn read_item_end(&mut self, item: &Value) -> Vec<DelegateEvent> {
        match text_at(item, "/type") {
            "agent_message" => {
                let text = text_at(item, "/text");
                self.progress.set_message(text);
                return vec![DelegateEvent::Text(clip(text, MAX_TEXT_BYTES))];
            }
            "reasoning" => {
                return vec![DelegateEvent::Thought(clip(text_at(item, "/text"), MAX_TEXT_BYTES))];
            }
            "error" => return vec![self.progress.warn(text_at(item, "/message"))],
            _ => {}
        }
        // Some items are only reported when they are completed.
        let mut events = self.read_tool_start(item);
        let id = clip(text_at(item, "/id"), MAX_ID_OR_PATH_BYTES);
        if self.started.remove(&id) {
            let failed = matches!(text_at(item, "/status"), "failed" | "declined");
            events.push(DelegateEvent::ToolEnd { id, failed, output: item_output(item) });
        }
        let changed: Vec<String> = changed_paths(item).map(|path| clip(path, MAX_ID_OR_PATH_BYTES)).collect();
        if !changed.is_empty() {
            events.push(DelegateEvent::FilesChanged(changed));
        }
        events
    }
}

/// Returns true for known types of items, also those that make no event.
fn is_known_item(item: &str) -> bool {
    matches!(
        item,
        "agent_message"
            | "reasoning"
            | "error"
            | "command_execution"
            | "file_change"
            | "mcp_tool_call"
            | "web_search"
            | "todo_list"
    )
}

/// Describes the use of a tool in one line; `None` for an item that isn't a tool.
fn summary_of(item: &Value) -> Option<String> {
    match text_at(item, "/type") {
        "command_execution" => Some(one_line(text_at(item, "/command"))),
        "file_change" => Some(one_line(&changed_paths(item).collect::<Vec<_>>().join(" "))),
        "mcp_tool_call" => Some(summarize_input(item.get("arguments").unwrap_or(&Value::Null))),
        "web_search" => Some(one_line(text_at(item, "/query"))),
        _ => None,
    }
}

fn tool_name(item: &Value) -> String {
    match text_at(item, "/type") {
        "mcp_tool_call" => one_line(&format!("{}.{}", text_at(item, "/server"), text_at(item, "/tool"))),
        kind => one_line(kind),
    }
}

fn item_output(item: &Value) -> String {
    match text_at(item, "/aggregated_output") {
        "" => tool_output(item.pointer("/result/content").unwrap_or(&Value::Null)),
        output => clip(output, MAX_TOOL_OUTPUT_BYTES),
    }
}

fn changed_paths(item: &Value) -> impl Iterator<Item = &str> {
    let paths = list_at(item, "/changes").map(|change| text_at(change, "/path"));
    paths.filter(|path| !path.is_empty()).take(MAX_CHANGED_PATHS)
}

/// Returns the usage of a turn. The CLI's input count includes tokens read from and written to the
/// cache.
fn usage_of(value: &Value) -> Usage {
    let cache_read = tokens_at(value, "/usage/cached_input_tokens");
    let cache_write = tokens_at(value, "/usage/cache_write_input_tokens");
    let cached = cache_read + cache_write;
    Usage {
        input: Tokens(tokens_at(value, "/usage/input_tokens").0.saturating_sub(cached.0)),
        cache_read,
        cache_write,
        output: tokens_at(value, "/usage/output_tokens"),
        thinking: tokens_at(value, "/usage/reasoning_output_tokens"),
        ..Usage::default()
    }
}

/// Returns the difference between a usage and an earlier one that it includes.
fn subtract_usage(all: Usage, earlier: Usage) -> Usage {
    let rest = |all: Tokens, earlier: Tokens| Tokens(all.0.saturating_sub(earlier.0));
    Usage {
        input: rest(all.input, earlier.input),
        cache_read: rest(all.cache_read, earlier.cache_read),
        cache_write: rest(all.cache_write, earlier.cache_write),
        output: rest(all.output, earlier.output),
        thinking: rest(all.thinking, earlier.thinking),
        estimated: all.estimated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{arguments, read_run, request};

    #[test]
    fn a_session_is_gone_on_with_behind_the_flags() {
        let mut request = request("-");
        request.model = Some("m");
        request.base_url = Some("http://host/\"v1\"");
        request.resume = Some("s-1");
        let expected = [
            "codex",
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "--config=check_for_update_on_startup=false",
            "--config=analytics.enabled=false",
            r#"--config=openai_base_url="http://host/\"v1\"""#,
            "--model=m",
            "resume",
            "--",
            "s-1",
            "-",
        ];
        assert_eq!(arguments(&Codex, &request), expected);
        request.confined = false;
        assert!(arguments(&Codex, &request).contains(&"--sandbox=workspace-write".to_owned()));
    }

    #[test]
    fn a_run_is_read() {
        let lines = [
            r#"{"type":"thread.started","thread_id":"t-1"}"#,
            r#"{"type":"turn.started"}"#,
            r#"{"type":"item.completed","item":{"id":"i0","type":"reasoning","text":"Hm."}}"#,
            r#"{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"ls","status":"in_progress"}}"#,
            r#"{"type":"item.updated","item":{"id":"i1","type":"command_execution","command":"ls","aggregated_output":"a"}}"#,
            r#"{"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"ls","aggregated_output":"a\nb","exit_code":3,"status":"failed"}}"#,
            r#"{"type":"item.completed","item":{"id":"i2","type":"file_change","changes":[{"path":"/work/a","kind":"add"},{"path":"/work/b","kind":"update"}],"status":"completed"}}"#,
            r#"{"type":"item.completed","item":{"id":"i3","type":"todo_list","items":[]}}"#,
            r#"{"type":"item.completed","item":{"id":"i4","type":"a_new_thing"}}"#,
            r#"{"type":"item.completed","item":{"id":"i5","type":"agent_message","text":"Done."}}"#,
            r#"{"type":"turn.completed","usage":{"input_tokens":30,"cached_input_tokens":10,"output_tokens":5,"reasoning_output_tokens":1}}"#,
        ];
        let mut request = request("");
        request.spent.usage = Usage { input: Tokens(5), output: Tokens(2), ..Usage::default() };
        let (events, outcome) = read_run(&Codex, &request, &lines, Some(0), "");
        let usage = Usage {
            input: Tokens(15),
            cache_read: Tokens(10),
            output: Tokens(3),
            thinking: Tokens(1),
            ..Usage::default()
        };
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
        let expected = [
            DelegateEvent::Session("t-1".to_owned()),
            DelegateEvent::Thought("Hm.".to_owned()),
            start("i1", "command_execution", "ls"),
            end("i1", true, "a\nb"),
            start("i2", "file_change", "/work/a /work/b"),
            end("i2", false, ""),
            DelegateEvent::FilesChanged(vec!["/work/a".to_owned(), "/work/b".to_owned()]),
            DelegateEvent::Unknown(
                r#"{"type":"item.completed","item":{"id":"i4","type":"a_new_thing"}}"#.to_owned(),
            ),
            DelegateEvent::Text("Done.".to_owned()),
            DelegateEvent::Usage { usage, cost: None },
        ];
        assert_eq!(events, expected);
        let session = Some("t-1".to_owned());
        let message = "Done.".to_owned();
        assert_eq!(outcome, Outcome { message, session, usage, cost: None, failure: None });
    }

    #[test]
    fn failures_have_their_kinds() {
        let failed = |reason: &str| format!(r#"{{"type":"turn.failed","error":{{"message":"{reason}"}}}}"#);
        for (reason, kind) in [
            ("unexpected status 401 Unauthorized: no", FailureKind::NotAuthenticated),
            ("exceeded retry limit, last status: 429 Too Many Requests", FailureKind::Provider),
            ("stream disconnected before completion: end of file", FailureKind::Provider),
            ("the model made no sense", FailureKind::Reported),
        ] {
            let (_, outcome) = read_run(&Codex, &request(""), &[&failed(reason)], Some(1), "");
            let failure = outcome.failure.map(|failure| (failure.kind, failure.message));
            assert_eq!(failure, Some((kind, reason.to_owned())));
        }
        let reconnecting = r#"{"type":"error","message":"Reconnecting... 2/5"}"#;
        let started = r#"{"type":"thread.started","thread_id":"t-1"}"#;
        let (events, outcome) = read_run(&Codex, &request(""), &[started, reconnecting], None, "");
        assert_eq!(events.last(), Some(&DelegateEvent::Warning("Reconnecting... 2/5".to_owned())));
        let failure = outcome.failure.map(|failure| (failure.kind, failure.message));
        let message = "codex was ended before it was done: Reconnecting... 2/5".to_owned();
        assert_eq!(failure, Some((FailureKind::CutOff, message)));
    }
}
