//! Agents that speak the Agent Client Protocol: JSON-RPC, a message a line, in both directions.
//!
//! We are the client. The order is `initialize`, then `authenticate` if it is asked for, then a new
//! session or one to go on with, then a model if one is asked for, then one prompt. While it is
//! answered the agent tells of its work and asks for permissions. We offer it no files and no
//! terminals: it uses its own, in its sandbox.

mod tool_calls;

use std::path::PathBuf;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AGENT_METHOD_NAMES, AgentCapabilities, AuthenticateRequest, CLIENT_METHOD_NAMES, ContentBlock, Error,
    ErrorCode, Implementation, InitializeRequest, InitializeResponse, JsonRpcMessage, LoadSessionRequest,
    NewSessionRequest, NewSessionResponse, PermissionOption, PermissionOptionKind, PromptRequest,
    PromptResponse, Request, RequestId, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, Response, ResumeSessionRequest, SelectedPermissionOutcome,
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigValueId, SessionId, SessionNotification,
    SessionUpdate, SetSessionConfigOptionRequest, StopReason, ToolCallUpdate, ToolCallUpdateFields,
};
use journeyman_protocol::Tokens;
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use self::tool_calls::{OpenTools, block_text};
use crate::json_line::{escape_leading_slash, text_at, tokens_at, unknown_step};
use crate::output_format::AcpOptions;
use crate::progress::{RunProgress, failure_kind_of};
use crate::{CommandRequest, Conversation, ConversationStep, DelegateEvent, FailureKind, Outcome};

/// The request of ours that is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestStage {
    Initialize,
    Authenticate,
    Open,
    Prompt,
    ChooseModel,
}

impl RequestStage {
    /// Returns the id of the stage's request.
    fn id(self) -> i64 {
        self as i64
    }
}

/// The client's side of one run.
pub(crate) struct AcpConversation {
    progress: RunProgress,
    stage: RequestStage,
    authentication: Option<String>,
    agent: AgentCapabilities,
    directory: PathBuf,
    resume: Option<String>,
    /// Empty until the session is open.
    session: SessionId,
    /// The model that has yet to be chosen.
    model: Option<String>,
    prompt: String,
    allows_all: bool,
    /// True if the next piece of text continues the message.
    streaming: bool,
    tools: OpenTools,
}

impl AcpConversation {
    /// Returns the `initialize` request, which begins the run.
    pub(crate) fn initialize_message() -> Vec<u8> {
        let us = Implementation::new("journeyman", env!("CARGO_PKG_VERSION"));
        let request = InitializeRequest::new(ProtocolVersion::V1).client_info(us);
        request_line(RequestStage::Initialize, AGENT_METHOD_NAMES.initialize, request)
    }

    /// Begins a run. `model` is chosen in the session, if the command doesn't choose it.
    pub(crate) fn new(
        cli: &str,
        options: &AcpOptions,
        request: &CommandRequest<'_>,
        model: Option<&str>,
    ) -> Self {
        Self {
            progress: RunProgress::new(cli),
            stage: RequestStage::Initialize,
            authentication: options.authentication.clone(),
            agent: AgentCapabilities::default(),
            directory: request.directory.to_owned(),
            resume: request.resume.map(str::to_owned),
            session: SessionId::new(""),
            model: model.map(str::to_owned),
            prompt: escape_leading_slash(request.prompt),
            allows_all: request.confined,
            streaming: false,
            tools: OpenTools::default(),
        }
    }

    /// Fails the run, and ends it.
    fn fail(&mut self, kind: FailureKind, reason: &str) -> ConversationStep {
        self.progress.finished = true;
        self.progress.fail(kind, reason);
        ConversationStep { finished: true, ..ConversationStep::default() }
    }

    fn read_response(&mut self, mut value: Value) -> ConversationStep {
        if let Some(error) = value.get_mut("error").filter(|error| !error.is_null()) {
            let error = error.take();
            let error = serde_json::from_value(error).unwrap_or_else(|_| Error::internal_error());
            return self.read_failure(&error);
        }
        let result = value.get_mut("result").map(Value::take).unwrap_or_default();
        match self.stage {
            RequestStage::Initialize => match serde_json::from_value::<InitializeResponse>(result) {
                Ok(answer) if answer.protocol_version == ProtocolVersion::V1 => {
                    self.agent = answer.agent_capabilities;
                    match self.authentication.take() {
                        Some(method) => {
                            let request = AuthenticateRequest::new(method);
                            self.send_request(
                                RequestStage::Authenticate,
                                AGENT_METHOD_NAMES.authenticate,
                                request,
                            )
                        }
                        None => self.open_session(),
                    }
                }
                Ok(answer) => {
                    let version = answer.protocol_version;
                    let reason =
                        format!("it speaks version {version} of the protocol, and we speak version 1");
                    self.fail(FailureKind::Reported, &reason)
                }
                Err(error) => self.fail(FailureKind::Reported, &format!("initialize: {error}")),
            },
            RequestStage::Authenticate => self.open_session(),
            RequestStage::Open => self.read_session(result),
            RequestStage::ChooseModel => self.begin_prompt(),
            RequestStage::Prompt => self.finish(result),
        }
    }

    fn read_failure(&mut self, error: &Error) -> ConversationStep {
        let detail = match &error.data {
            Some(Value::String(text)) => text.clone(),
            Some(data) => ["/details", "/message"].map(|place| text_at(data, place)).concat(),
            None => String::new(),
        };
        let reason =
            if detail.is_empty() { error.message.clone() } else { format!("{}: {detail}", error.message) };
        let kind = match error.code {
            ErrorCode::AuthRequired => FailureKind::NotAuthenticated,
            ErrorCode::RequestCancelled => FailureKind::CutOff,
            _ if self.stage == RequestStage::Authenticate => FailureKind::NotAuthenticated,
            _ => failure_kind_of(&reason).unwrap_or(FailureKind::Reported),
        };
        self.fail(kind, &reason)
    }

    fn send_request(
        &mut self,
        stage: RequestStage,
        method: &str,
        params: impl Serialize,
    ) -> ConversationStep {
        self.stage = stage;
        ConversationStep { reply: request_line(stage, method, params), ..ConversationStep::default() }
    }

    fn open_session(&mut self) -> ConversationStep {
        let directory = self.directory.clone();
        let Some(session) = self.resume.clone() else {
            let request = NewSessionRequest::new(directory);
            return self.send_request(RequestStage::Open, AGENT_METHOD_NAMES.session_new, request);
        };
        if self.agent.session_capabilities.resume.is_some() {
            let request = ResumeSessionRequest::new(session, directory);
            self.send_request(RequestStage::Open, AGENT_METHOD_NAMES.session_resume, request)
        } else if self.agent.load_session {
            let request = LoadSessionRequest::new(session, directory);
            self.send_request(RequestStage::Open, AGENT_METHOD_NAMES.session_load, request)
        } else {
            self.fail(FailureKind::Reported, "it can't go on with a session")
        }
    }

    fn read_session(&mut self, result: Value) -> ConversationStep {
        let options: Vec<SessionConfigOption> = result
            .get("configOptions")
            .and_then(|options| Vec::deserialize(options).ok())
            .unwrap_or_default();
        let session = match self.resume.take() {
            Some(session) => session,
            None => match serde_json::from_value::<NewSessionResponse>(result) {
                Ok(answer) => answer.session_id.to_string(),
                Err(error) => return self.fail(FailureKind::Reported, &format!("session/new: {error}")),
            },
        };
        let event = self.progress.set_session(&session);
        self.session = SessionId::new(session);
        let step = match self.model.take() {
            Some(model) => self.choose_model(&options, model),
            None => self.begin_prompt(),
        };
        ConversationStep { events: event.into_iter().collect(), ..step }
    }

    fn choose_model(&mut self, options: &[SessionConfigOption], model: String) -> ConversationStep {
        let is_model =
            |option: &&SessionConfigOption| option.category == Some(SessionConfigOptionCategory::Model);
        let Some(option) = options.iter().find(is_model) else {
            return self.fail(FailureKind::Reported, "it lets nobody choose a model");
        };
        let value = SessionConfigValueId::new(model);
        let request = SetSessionConfigOptionRequest::new(self.session.clone(), option.id.clone(), value);
        self.send_request(RequestStage::ChooseModel, AGENT_METHOD_NAMES.session_set_config_option, request)
    }

    fn begin_prompt(&mut self) -> ConversationStep {
        let prompt = vec![ContentBlock::from(std::mem::take(&mut self.prompt))];
        let request = PromptRequest::new(self.session.clone(), prompt);
        self.send_request(RequestStage::Prompt, AGENT_METHOD_NAMES.session_prompt, request)
    }

    fn finish(&mut self, result: Value) -> ConversationStep {
        // One agent reports the usage in an extension if the response to the prompt has none.
        let beside = "/_meta/quota/token_count";
        let usage = &mut self.progress.usage;
        usage.input = tokens_at(&result, &format!("{beside}/input_tokens"));
        usage.output = tokens_at(&result, &format!("{beside}/output_tokens"));
        let answer = match serde_json::from_value::<PromptResponse>(result) {
            Ok(answer) => answer,
            Err(error) => return self.fail(FailureKind::Reported, &format!("session/prompt: {error}")),
        };
        if let Some(told) = answer.usage {
            usage.input = Tokens(told.input_tokens);
            usage.output = Tokens(told.output_tokens);
            usage.cache_read = Tokens(told.cached_read_tokens.unwrap_or_default());
            usage.cache_write = Tokens(told.cached_write_tokens.unwrap_or_default());
            usage.thinking = Tokens(told.thought_tokens.unwrap_or_default());
        }
        self.progress.finished = true;
        match answer.stop_reason {
            StopReason::EndTurn => {}
            StopReason::Cancelled => self.progress.fail(FailureKind::CutOff, "the turn was cancelled"),
            StopReason::Refusal => self.progress.fail(FailureKind::Reported, "the model refused"),
            StopReason::MaxTokens => {
                self.progress.fail(FailureKind::Reported, "the model's output was too long")
            }
            StopReason::MaxTurnRequests => {
                self.progress.fail(FailureKind::Reported, "the turn took too many requests");
            }
            _ => self.progress.fail(FailureKind::Reported, "it stopped for an unknown reason"),
        }
        ConversationStep {
            events: vec![self.progress.usage_event()],
            finished: true,
            ..ConversationStep::default()
        }
    }

    fn read_request(&mut self, id: RequestId, method: &str, params: Value) -> ConversationStep {
        if method != CLIENT_METHOD_NAMES.session_request_permission {
            return ConversationStep {
                reply: answer_line(id, Err::<(), _>(Error::method_not_found())),
                ..ConversationStep::default()
            };
        }
        let request = match serde_json::from_value::<RequestPermissionRequest>(params) {
            Ok(request) => request,
            Err(_) => {
                return ConversationStep {
                    reply: answer_line(id, Err::<(), _>(Error::invalid_params())),
                    ..ConversationStep::default()
                };
            }
        };
        // Some agents report a tool for the first time when they ask for permission.
        let events = self.tools.read(&request.tool_call, &self.directory);
        let allow = self.allows_all || self.tools.is_allowed_unconfined(&request.tool_call);
        let outcome = choose_option(&request.options, allow);
        ConversationStep {
            events,
            reply: answer_line(id, Ok(RequestPermissionResponse::new(outcome))),
            finished: false,
        }
    }

    fn read_update(&mut self, params: Value, line: &[u8]) -> ConversationStep {
        let Ok(notification) = serde_json::from_value::<SessionNotification>(params) else {
            return unknown_step(line);
        };
        // Updates before the prompt are the history of a resumed session.
        if self.stage != RequestStage::Prompt {
            return ConversationStep::default();
        }
        let streaming = matches!(notification.update, SessionUpdate::AgentMessageChunk(_));
        let events = match notification.update {
            SessionUpdate::AgentMessageChunk(chunk) => self.read_text(&chunk.content),
            SessionUpdate::AgentThoughtChunk(chunk) => {
                block_text(&chunk.content).map(DelegateEvent::Thought).into_iter().collect()
            }
            SessionUpdate::ToolCall(call) => {
                let fields = ToolCallUpdateFields::new()
                    .kind(call.kind)
                    .status(call.status)
                    .title(call.title)
                    .content(call.content)
                    .locations(call.locations)
                    .raw_input(call.raw_input)
                    .raw_output(call.raw_output);
                self.tools.read(&ToolCallUpdate::new(call.tool_call_id, fields), &self.directory)
            }
            SessionUpdate::ToolCallUpdate(update) => self.tools.read(&update, &self.directory),
            SessionUpdate::UsageUpdate(update) => {
                let cost = update.cost.filter(|cost| cost.currency == "USD").map(|cost| cost.amount);
                let cost = cost.filter(|amount| amount.is_finite() && *amount >= 0.0);
                self.progress.cost = cost.or(self.progress.cost);
                return ConversationStep::default();
            }
            // Plans, commands and modes are for editors.
            SessionUpdate::UserMessageChunk(_)
            | SessionUpdate::Plan(_)
            | SessionUpdate::AvailableCommandsUpdate(_)
            | SessionUpdate::CurrentModeUpdate(_)
            | SessionUpdate::ConfigOptionUpdate(_)
            | SessionUpdate::SessionInfoUpdate(_) => return ConversationStep::default(),
            _ => return unknown_step(line),
        };
        self.streaming = streaming;
        ConversationStep { events, ..ConversationStep::default() }
    }

    fn read_text(&mut self, content: &ContentBlock) -> Vec<DelegateEvent> {
        let Some(text) = block_text(content) else { return Vec::new() };
        if !self.streaming {
            self.progress.message.clear();
        }
        self.progress.append_message(&text);
        vec![DelegateEvent::Text(text)]
    }
}

impl Conversation for AcpConversation {
    fn receive_line(&mut self, line: &[u8]) -> ConversationStep {
        let Some(mut value) = self.progress.parse(line) else { return unknown_step(line) };
        let id = value.get("id").cloned().and_then(|id| serde_json::from_value::<RequestId>(id).ok());
        let method = value.get("method").and_then(Value::as_str).map(str::to_owned);
        let mut params = || value.get_mut("params").map(Value::take).unwrap_or_default();
        match (method, id) {
            // The run is over; no request is answered any more.
            _ if self.progress.finished => ConversationStep::default(),
            (Some(method), Some(id)) => {
                let params = params();
                self.read_request(id, &method, params)
            }
            (Some(method), None) if method == CLIENT_METHOD_NAMES.session_update => {
                let params = params();
                self.read_update(params, line)
            }
            (None, Some(RequestId::Number(id))) if id == self.stage.id() => self.read_response(value),
            _ => unknown_step(line),
        }
    }

    fn end(self: Box<Self>, exit: Option<i32>, stderr: &str) -> Outcome {
        // Some agents keep running, or fail, after their standard input is closed.
        let exit = if self.progress.finished { None } else { exit };
        self.progress.end(exit, stderr)
    }
}

/// Chooses one of the options of a permission request.
fn choose_option(options: &[PermissionOption], allow: bool) -> RequestPermissionOutcome {
    let wanted = if allow {
        [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways]
    } else {
        [PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways]
    };
    let chosen = wanted.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind));
    chosen.map_or(RequestPermissionOutcome::Cancelled, |option| {
        RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
    })
}

fn request_line(stage: RequestStage, method: &str, params: impl Serialize) -> Vec<u8> {
    let id = RequestId::Number(stage.id());
    to_line(JsonRpcMessage::wrap(Request { id, method: method.into(), params: Some(params) }))
}

fn answer_line(id: RequestId, result: Result<impl Serialize, Error>) -> Vec<u8> {
    to_line(JsonRpcMessage::wrap(Response::new(id, result)))
}

/// Returns a message as a line; empty if it can't be serialized, which doesn't happen.
fn to_line(message: impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(&message).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests;
