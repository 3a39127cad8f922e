//! opencode: `opencode run --format json`.
//!
//! Each line is a part of a message, told when it is complete. There is no line for the end of a
//! run: its last step ends for a reason other than the use of tools.

use serde_json::{Value, json};

use crate::adapter::{any_model_provider, to_paths, to_strings, to_variables};
use crate::bounds::{
    MAX_CHANGED_PATHS, MAX_ID_OR_PATH_BYTES, MAX_SENTENCE_BYTES, MAX_TEXT_BYTES, clip, one_line,
};
use crate::json_line::{dollars_at, list_at, summarize_input, text_at, tokens_at, tool_output, unknown_step};
use crate::progress::{RunProgress, failure_kind_of, failure_kind_of_status};
use crate::{
    Adapter, Capabilities, CommandLine, CommandRequest, Conversation, ConversationStep, DelegateEvent,
    FailureKind, Outcome, Provider, Requirements,
};

/// The provider of a base URL if the model's name doesn't tell it.
const DEFAULT_PROVIDER: &str = "openai";

/// opencode, an agent for the models of many providers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Opencode;

impl Adapter for Opencode {
    fn name(&self) -> &str {
        "opencode"
    }

    fn program(&self) -> &str {
        "opencode"
    }

    fn install_hint(&self) -> &str {
        "npm install -g opencode-ai"
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
                provider_for_prefix("anthropic/", &["ANTHROPIC_API_KEY"], "api.anthropic.com"),
                provider_for_prefix("openai/", &["OPENAI_API_KEY"], "api.openai.com"),
                provider_for_prefix(
                    "google/",
                    &["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"],
                    "generativelanguage.googleapis.com",
                ),
                provider_for_prefix("openrouter/", &["OPENROUTER_API_KEY"], "openrouter.ai"),
                provider_for_prefix("opencode/", &["OPENCODE_API_KEY"], "opencode.ai"),
            ],
            environment: to_strings(&["OPENCODE_CONFIG_CONTENT"]),
            credentials: to_paths(&[".local/share/opencode/auth.json"]),
            state: to_paths(&[".local/share/opencode"]),
            set: to_variables(&[
                ("OPENCODE_DISABLE_AUTOUPDATE", "true"),
                ("OPENCODE_DISABLE_SHARE", "true"),
                ("OPENCODE_DISABLE_MODELS_FETCH", "true"),
                ("OPENCODE_DISABLE_LSP_DOWNLOAD", "true"),
            ]),
        }
    }

    fn build_command(&self, request: &CommandRequest<'_>) -> CommandLine {
        let mut command = CommandLine::new(self.program());
        command.add_arguments(&["run", "--format=json"]);
        if request.confined {
            command.add_arguments(&["--auto"]);
        } else if !request.trusted {
            command.set_variable("OPENCODE_DISABLE_PROJECT_CONFIG", "true");
        }
        command.add_option("--model", request.model);
        command.add_option("--session", request.resume);
        if let Some(address) = request.base_url {
            let provider = request.model.and_then(|model| model.split_once('/'));
            let provider = provider.map_or(DEFAULT_PROVIDER, |(provider, _)| provider);
            let config = json!({ "provider": { provider: { "options": { "baseURL": address } } } });
            command.set_variable("OPENCODE_CONFIG_CONTENT", config.to_string());
        }
        command.add_arguments(request.arguments);
        command.stdin = request.prompt.as_bytes().to_vec();
        command
    }

    fn start_conversation(&self, _request: &CommandRequest<'_>) -> Box<dyn Conversation> {
        Box::new(OpencodeConversation { progress: RunProgress::new(self.name()) })
    }
}

/// Returns the provider of the models whose names begin with `prefix`.
fn provider_for_prefix(prefix: &str, keys: &[&str], host: &str) -> Provider {
    Provider { model_prefix: Some(prefix.to_owned()), ..any_model_provider(keys, &[], &[host]) }
}

struct OpencodeConversation {
    progress: RunProgress,
}

impl Conversation for OpencodeConversation {
    fn receive_line(&mut self, line: &[u8]) -> ConversationStep {
        let Some(value) = self.progress.parse(line) else { return unknown_step(line) };
        let null = Value::Null;
        let part = value.get("part").unwrap_or(&null);
        let told = match text_at(&value, "/type") {
            "text" => self.read_text(part),
            "reasoning" => vec![DelegateEvent::Thought(clip(text_at(part, "/text"), MAX_TEXT_BYTES))],
            "tool_use" => read_tool(part),
            "step_start" => {
                self.progress.finished = false;
                Vec::new()
            }
            "step_finish" => self.read_step_end(part),
            "error" => self.read_error(&value),
            _ => return unknown_step(line),
        };
        let mut events: Vec<_> =
            self.progress.set_session(text_at(&value, "/sessionID")).into_iter().collect();
        events.extend(told);
        // The process exits by itself, after some work of its own.
        ConversationStep { events, ..ConversationStep::default() }
    }

    fn end(self: Box<Self>, exit: Option<i32>, stderr: &str) -> Outcome {
        self.progress.end(exit, stderr)
    }
}

impl OpencodeConversation {
    fn read_text(&mut self, part: &Value) -> Vec<DelegateEvent> {
        let text = text_at(part, "/text");
        self.progress.set_message(text);
        vec![DelegateEvent::Text(clip(text, MAX_TEXT_BYTES))]
    }

    fn read_step_end(&mut self, part: &Value) -> Vec<DelegateEvent> {
        let usage = &mut self.progress.usage;
        let thinking = tokens_at(part, "/tokens/reasoning");
        usage.input += tokens_at(part, "/tokens/input");
        usage.cache_read += tokens_at(part, "/tokens/cache/read");
        usage.cache_write += tokens_at(part, "/tokens/cache/write");
        // The CLI counts thinking separately from the output.
        usage.output += tokens_at(part, "/tokens/output") + thinking;
        usage.thinking += thinking;
        if let Some(cost) = dollars_at(part, "/cost") {
            *self.progress.cost.get_or_insert(0.0) += cost;
        }
        self.progress.finished = text_at(part, "/reason") != "tool-calls";
        vec![self.progress.usage_event()]
    }

    fn read_error(&mut self, value: &Value) -> Vec<DelegateEvent> {
        self.progress.finished = true;
        let reason = [text_at(value, "/error/data/message"), text_at(value, "/error/name")];
        let reason = reason.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        let status =
            value.pointer("/error/data/statusCode").and_then(Value::as_u64).map(failure_kind_of_status);
        let kind = match text_at(value, "/error/name") {
            "ProviderAuthError" => FailureKind::NotAuthenticated,
            "APIError" => status.or_else(|| failure_kind_of(reason)).unwrap_or(FailureKind::Provider),
            _ => failure_kind_of(reason).unwrap_or(FailureKind::Reported),
        };
        self.progress.fail(kind, reason);
        Vec::new()
    }
}

/// Reads the use of a tool, which is reported when it has ended.
fn read_tool(part: &Value) -> Vec<DelegateEvent> {
    let id = clip(text_at(part, "/callID"), MAX_ID_OR_PATH_BYTES);
    let tool = clip(text_at(part, "/tool"), MAX_SENTENCE_BYTES);
    let null = Value::Null;
    let state = part.get("state").unwrap_or(&null);
    let summary = match text_at(state, "/title") {
        "" => summarize_input(state.get("input").unwrap_or(&null)),
        title => one_line(title),
    };
    let failed = text_at(state, "/status") == "error";
    let output = state.get(if failed { "error" } else { "output" }).unwrap_or(&null);
    let mut events = vec![
        DelegateEvent::ToolStart { id: id.clone(), tool: tool.clone(), summary },
        DelegateEvent::ToolEnd { id, failed, output: tool_output(output) },
    ];
    let changed: Vec<String> = match tool.as_str() {
        "write" | "edit" => vec![text_at(state, "/input/filePath")],
        "apply_patch" => list_at(state, "/metadata/files").map(|file| text_at(file, "/filePath")).collect(),
        _ => Vec::new(),
    }
    .into_iter()
    .filter(|path| !path.is_empty())
    .take(MAX_CHANGED_PATHS)
    .map(|path| clip(path, MAX_ID_OR_PATH_BYTES))
    .collect();
    if !failed && !changed.is_empty() {
        events.push(DelegateEvent::FilesChanged(changed));
    }
    events
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{Tokens, Usage};

    use super::*;
    use crate::sample::{arguments, read_run, request};

    #[test]
    fn an_address_is_set_for_the_provider_of_the_model() {
        for (model, provider) in [(Some("anthropic/opus"), "anthropic"), (None, "openai")] {
            let mut request = request("");
            (request.model, request.base_url) = (model, Some("http://host/v1"));
            let expected =
                format!(r#"{{"provider":{{"{provider}":{{"options":{{"baseURL":"http://host/v1"}}}}}}}}"#);
            let command = Opencode.build_command(&request);
            assert_eq!(command.environment, [("OPENCODE_CONFIG_CONTENT".to_owned(), expected)]);
        }
        let mut request = request("");
        request.confined = false;
        assert!(!arguments(&Opencode, &request).contains(&"--auto".to_owned()));
    }

    #[test]
    fn a_model_names_the_provider_whose_key_counts() {
        let hosts = |model| {
            let providers = Opencode.requirements().for_model(model).providers;
            providers.into_iter().flat_map(|provider| provider.hosts).collect::<Vec<_>>()
        };
        assert_eq!(hosts(Some("openai/gpt-5.1")), ["api.openai.com"]);
        assert_eq!(hosts(None).len(), 5);
        assert_eq!(hosts(Some("mine/tiny")).len(), 5);
    }

    #[test]
    fn a_run_is_read() {
        let lines = [
            r#"{"type":"step_start","sessionID":"ses_1","part":{}}"#,
            r#"{"type":"text","sessionID":"ses_1","part":{"text":"I write."}}"#,
            r#"{"type":"tool_use","sessionID":"ses_1","part":{"tool":"write","callID":"c1","state":{"status":"completed","input":{"filePath":"/work/a"},"output":"ok","title":"a"}}}"#,
            r#"{"type":"tool_use","sessionID":"ses_1","part":{"tool":"bash","callID":"c2","state":{"status":"error","input":{"command":"ls"},"error":"refused"}}}"#,
            r#"{"type":"step_finish","sessionID":"ses_1","part":{"reason":"tool-calls","tokens":{"input":10,"output":4,"reasoning":1,"cache":{"read":2,"write":3}},"cost":0.5}}"#,
            r#"{"type":"step_start","sessionID":"ses_1","part":{}}"#,
            r#"{"type":"text","sessionID":"ses_1","part":{"text":"Done."}}"#,
            r#"{"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop","tokens":{"input":10,"output":4},"cost":0.25}}"#,
        ];
        let (events, outcome) = read_run(&Opencode, &request(""), &lines, Some(0), "");
        let usage = Usage {
            input: Tokens(20),
            cache_read: Tokens(2),
            cache_write: Tokens(3),
            output: Tokens(9),
            thinking: Tokens(1),
            ..Usage::default()
        };
        let tools: Vec<_> = events
            .iter()
            .filter(|event| !matches!(event, DelegateEvent::Text(_) | DelegateEvent::Usage { .. }))
            .collect();
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
            DelegateEvent::Session("ses_1".to_owned()),
            start("c1", "write", "a"),
            end("c1", false, "ok"),
            DelegateEvent::FilesChanged(vec!["/work/a".to_owned()]),
            start("c2", "bash", "ls"),
            end("c2", true, "refused"),
        ];
        assert_eq!(tools, expected.iter().collect::<Vec<_>>());
        let session = Some("ses_1".to_owned());
        let message = "Done.".to_owned();
        assert_eq!(outcome, Outcome { message, session, usage, cost: Some(0.75), failure: None });
    }

    #[test]
    fn failures_have_their_kinds() {
        let error = |name: &str, data: &str| {
            format!(r#"{{"type":"error","sessionID":"ses_1","error":{{"name":"{name}","data":{data}}}}}"#)
        };
        let begun = r#"{"type":"step_start","sessionID":"ses_1","part":{}}"#.to_owned();
        let usage = "opencode run [message..]\n\nOptions:\n  -h, --help  show help\n";
        for (line, exit, stderr, kind) in [
            (error("APIError", r#"{"message":"no","statusCode":401}"#), 1, "", FailureKind::NotAuthenticated),
            (error("APIError", r#"{"message":"busy","statusCode":503}"#), 1, "", FailureKind::Provider),
            (error("APIError", r#"{"message":"the line is dead"}"#), 1, "", FailureKind::Provider),
            (error("ProviderAuthError", r#"{"message":"no key"}"#), 1, "", FailureKind::NotAuthenticated),
            (error("UnknownError", r#"{"message":"odd"}"#), 1, "", FailureKind::Reported),
            (begun, 0, "", FailureKind::CutOff),
            (String::new(), 1, usage, FailureKind::UnknownFlag),
        ] {
            let (_, outcome) = read_run(&Opencode, &request(""), &[&line], Some(exit), stderr);
            assert_eq!(outcome.failure.map(|failure| failure.kind), Some(kind), "{line} {stderr}");
        }
    }
}
