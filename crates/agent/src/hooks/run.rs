//! Runs the hooks of each event and combines their answers.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use journeyman_model::ModelRequest;
use journeyman_protocol::{Effects, Message, ToolUse};
use serde_json::{Value, json};

use super::answer::{DecisionStrength, HookAnswer, HookDecision};
use super::command::{CommandEnd, CommandParameters, run_command};
use super::event::HookEvent;
use super::hook_command::{HookCommand, PinnedCommand};
use super::payload::build_payload;
use super::{
    GateDecision, GateResult, HookCallResult, HookContext, HookNotes, Hooks, PreToolDecision, PreToolResult,
    SessionStartKind, TurnEndDecision, TurnEndResult, confined_command, tool_names,
};

impl Hooks {
    /// Runs the hooks before a message of the user is taken. A denied message must not reach the
    /// model.
    pub async fn run_prompt(&self, at: &HookContext, text: &str) -> GateResult {
        let mut said = GateResult::default();
        for hook in &self.inner.closures.prompt {
            let answer = self.await_closure(at, HookEvent::Prompt, async { hook(at, text).await }).await;
            if said.apply_closure_answer(answer) {
                return said;
            }
        }
        let answers =
            self.run_commands(at, HookEvent::Prompt, (&[], false), |_| json!({"prompt": text})).await;
        said.apply_command_answers(answers);
        said
    }

    /// Runs the hooks before a call whose arguments have been parsed and whose effects are known.
    pub async fn run_pre_tool(&self, at: &HookContext, call: &ToolUse, effects: &Effects) -> PreToolResult {
        let mut said = PreToolResult::default();
        if self.has_no_hook_at(HookEvent::PreTool) {
            return said;
        }
        for hook in &self.inner.closures.pre_tool {
            let call = said.amended_call(call);
            let answer = async { hook(at, &call, effects).await };
            match self.await_closure(at, HookEvent::PreTool, answer).await {
                Ok(answer) => {
                    said.input = answer.input.or(said.input);
                    said.notes.context.extend(answer.context);
                    said.decision = stronger_decision(said.decision, answer.decision);
                }
                Err(reason) => said.decision = PreToolDecision::Deny { reason },
            }
            match said.decision {
                PreToolDecision::Deny { .. } | PreToolDecision::Result { .. } => return said,
                PreToolDecision::Ask { .. } => break,
                PreToolDecision::Go | PreToolDecision::Approve { .. } => {}
            }
        }
        let call = said.amended_call(call);
        // The effects were derived from the original arguments, not from a closure's amended ones.
        let nothing = Effects::default();
        let effects = if said.input.is_some() { &nothing } else { effects };
        let mut offered = false;
        let tool = tool_names::all_tool_names(&call.name);
        let answers = self.run_commands(at, HookEvent::PreTool, (&tool, false), |hook| {
            json!({
                "tool_name": tool_names::tool_name_in(hook.dialect, &call.name),
                "tool_input": tool_names::input_to_dialect(hook.dialect, &call.name, &call.input, effects, &at.root),
                "tool_use_id": call.id.as_str(),
            })
        });
        for (hook, answer) in answers.await {
            if let Some(ruling) = answer.decision {
                said.decision = stronger_decision(said.decision, ruling.into());
            }
            match answer.input {
                Some(_) if offered => said.notes.warnings.push(format!(
                    "the hook `{}` amends the arguments as one before it does; they are left as that one wants them",
                    hook.display_label()
                )),
                Some(input) => {
                    offered = true;
                    said.input = Some(tool_names::input_from_dialect(hook.dialect, &call.name, input, &at.root));
                }
                None => {}
            }
            said.notes.extend(answer.notes);
        }
        if let Some(reason) = said.notes.stop.clone()
            && !matches!(said.decision, PreToolDecision::Deny { .. })
        {
            said.decision = PreToolDecision::Deny { reason };
        }
        said
    }

    /// Runs the hooks after a call. Hooks change `result` one after another.
    pub async fn run_post_tool(
        &self,
        at: &HookContext,
        call: &ToolUse,
        effects: &Effects,
        result: &mut HookCallResult,
    ) -> HookNotes {
        let mut notes = HookNotes::default();
        if self.has_no_hook_at(HookEvent::PostTool) {
            return notes;
        }
        for hook in &self.inner.closures.post_tool {
            // A hook that fails must not leave a partial change.
            let mut changed = result.clone();
            let answer = async { hook(at, call, &mut changed).await };
            match self.await_closure(at, HookEvent::PostTool, answer).await {
                Ok(context) => {
                    *result = changed;
                    notes.context.extend(context);
                }
                Err(warning) => notes.warnings.push(warning),
            }
        }
        let text = result.text();
        let is_error = result.is_error;
        let tool = tool_names::all_tool_names(&call.name);
        let answers = self.run_commands(at, HookEvent::PostTool, (&tool, is_error), |hook| {
            let input =
                tool_names::input_to_dialect(hook.dialect, &call.name, &call.input, effects, &at.root);
            let response =
                tool_names::tool_response(&text, is_error, input.get("file_path").or(input.get("path")));
            json!({
                "tool_name": tool_names::tool_name_in(hook.dialect, &call.name),
                "tool_input": input,
                "tool_response": response,
                "tool_use_id": call.id.as_str(),
                "error": is_error.then_some(&text),
            })
        });
        for (_, answer) in answers.await {
            if let Some(text) = answer.output {
                result.set_text(text);
            }
            notes.extend(answer.notes);
        }
        notes
    }

    /// Runs the hooks before a request to the model. A denied request must not be sent.
    pub async fn run_pre_model(&self, at: &HookContext, request: &mut ModelRequest) -> GateResult {
        let mut said = GateResult::default();
        for hook in &self.inner.closures.pre_model {
            let answer = async { hook(at, &mut *request).await };
            let answer = self.await_closure(at, HookEvent::PreModel, answer).await;
            if said.apply_closure_answer(answer) {
                return said;
            }
        }
        let request = &*request;
        let answers = self.run_commands(at, HookEvent::PreModel, (&[], false), |_| {
            let system: Vec<&str> = request.system.iter().map(|part| part.text.as_str()).collect();
            let tools: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
            json!({"model": request.model, "system": system, "messages": request.messages, "tools": tools})
        });
        said.apply_command_answers(answers.await);
        said
    }

    /// Runs the hooks after the model's reply, before it is stored.
    pub async fn run_post_model(&self, at: &HookContext, reply: &mut Message) -> HookNotes {
        let mut notes = HookNotes::default();
        for hook in &self.inner.closures.post_model {
            let mut changed = reply.clone();
            let answer = async { hook(at, &mut changed).await };
            match self.await_closure(at, HookEvent::PostModel, answer).await {
                Ok(()) => *reply = changed,
                Err(warning) => notes.warnings.push(warning),
            }
        }
        let reply = &*reply;
        let answers =
            self.run_commands(at, HookEvent::PostModel, (&[], false), |_| json!({"message": reply}));
        notes.apply_command_answers(answers.await);
        notes
    }

    /// Runs the hooks after messages were added to the conversation.
    pub async fn run_post_append(&self, at: &HookContext, added: &[Message]) -> HookNotes {
        let mut notes = HookNotes::default();
        for hook in &self.inner.closures.post_append {
            let answer = self.await_closure(at, HookEvent::PostAppend, async { hook(at, added).await });
            notes.warnings.extend(answer.await.err());
        }
        let answers =
            self.run_commands(at, HookEvent::PostAppend, (&[], false), |_| json!({"messages": added}));
        notes.apply_command_answers(answers.await);
        notes
    }

    /// Runs the hooks before a turn ends. `text` is the model's last text. `round` counts the extra
    /// turns that hooks have already forced.
    pub async fn run_turn_end(&self, at: &HookContext, text: &str, round: u32) -> TurnEndResult {
        let mut said = TurnEndResult::default();
        for hook in &self.inner.closures.turn_end {
            match self.await_closure(at, HookEvent::TurnEnd, async { hook(at, text).await }).await {
                Ok(TurnEndDecision::Stop) => {}
                Ok(again) => {
                    said.decision = again;
                    return said;
                }
                Err(warning) => said.notes.warnings.push(warning),
            }
        }
        let answers = self.run_commands(
            at,
            HookEvent::TurnEnd,
            (&[], false),
            |_| json!({"stop_hook_active": round > 0, "last_assistant_message": text}),
        );
        for (_, answer) in answers.await {
            if let (Some(HookDecision { strength: DecisionStrength::Deny, reason }), TurnEndDecision::Stop) =
                (answer.decision, &said.decision)
            {
                said.decision = TurnEndDecision::GoOn { reason };
            }
            said.notes.extend(answer.notes);
        }
        if said.notes.stop.is_some() {
            said.decision = TurnEndDecision::Stop;
        }
        said
    }

    /// Runs the hooks when a session starts or continues.
    pub async fn run_session_start(&self, at: &HookContext, by: SessionStartKind) -> HookNotes {
        let source = match by {
            SessionStartKind::Startup => "startup",
            SessionStartKind::Resume => "resume",
        };
        let mut notes = HookNotes::default();
        for hook in &self.inner.closures.session_start {
            match self.await_closure(at, HookEvent::SessionStart, async { hook(at).await }).await {
                Ok(context) => notes.context.extend(context),
                Err(warning) => notes.warnings.push(warning),
            }
        }
        notes.apply_command_answers(
            self.run_commands(at, HookEvent::SessionStart, (&[source], false), |_| json!({"source": source}))
                .await,
        );
        notes
    }

    /// Runs the hooks when a session ends. `reason` is the caller's word, such as `exit` or
    /// `interrupt`.
    pub async fn run_session_end(&self, at: &HookContext, reason: &str) -> HookNotes {
        let mut notes = HookNotes::default();
        for hook in &self.inner.closures.session_end {
            let answer = self.await_closure(at, HookEvent::SessionEnd, async { hook(at).await });
            notes.warnings.extend(answer.await.err());
        }
        notes.apply_command_answers(
            self.run_commands(at, HookEvent::SessionEnd, (&[reason], false), |_| json!({"reason": reason}))
                .await,
        );
        notes
    }

    /// Runs the hooks before a conversation is shortened. `trigger` is `manual` or `auto`.
    pub async fn run_pre_compact(&self, at: &HookContext, messages: &[Message], trigger: &str) -> GateResult {
        let mut said = GateResult::default();
        for hook in &self.inner.closures.pre_compact {
            let answer = async { hook(at, messages).await };
            if said.apply_closure_answer(self.await_closure(at, HookEvent::PreCompact, answer).await) {
                return said;
            }
        }
        let subject = [trigger];
        let answers = self.run_commands(
            at,
            HookEvent::PreCompact,
            (&subject, false),
            |_| json!({"trigger": trigger, "custom_instructions": ""}),
        );
        said.apply_command_answers(answers.await);
        said
    }

    /// Awaits a closure, and turns a panic, a timeout or a cancellation into an error.
    async fn await_closure<T>(
        &self,
        at: &HookContext,
        event: HookEvent,
        answer: impl Future<Output = T>,
    ) -> Result<T, String> {
        let limit = self.inner.closures.timeout;
        let guarded = tokio::time::timeout(limit, AssertUnwindSafe(answer).catch_unwind());
        tokio::select! {
            biased;
            () = at.cancel.cancelled() => Err("interrupted".to_owned()),
            answer = guarded => match answer {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(_)) => Err(format!("a {event} hook of the program panicked")),
                Err(_) => {
                    Err(format!("a {event} hook of the program did not answer within {} s", limit.as_secs_f64()))
                }
            },
        }
    }

    /// Runs an event's commands for a subject, all at once, and returns their answers in the order
    /// of the configuration. A command that is configured twice runs once. `failed` is true if the
    /// event is about a failed call.
    async fn run_commands<'a>(
        &'a self,
        at: &HookContext,
        event: HookEvent,
        (subject, failed): (&[&str], bool),
        more: impl Fn(&HookCommand) -> Value,
    ) -> Vec<(&'a HookCommand, HookAnswer)> {
        let mut chosen: Vec<(&PinnedCommand, Vec<u8>)> = Vec::new();
        for armed in &self.inner.commands {
            let hook = &armed.hook;
            let same = |(other, _): &(&PinnedCommand, Vec<u8>)| {
                let other = &other.hook;
                (&other.command, other.dialect, other.results, other.sandbox)
                    == (&hook.command, hook.dialect, hook.results, hook.sandbox)
            };
            let wanted = hook.event == event
                && hook.results.includes(failed)
                && (subject.is_empty() || hook.matcher.matches(subject));
            if wanted && !chosen.iter().any(same) {
                chosen.push((armed, build_payload(at, hook, more(hook))));
            }
        }
        let running = chosen.into_iter().map(|(armed, input)| async move {
            (&armed.hook, self.run_pinned_command(at, armed, input).await)
        });
        join_all(running).await
    }

    async fn run_pinned_command(
        &self,
        at: &HookContext,
        armed: &PinnedCommand,
        input: Vec<u8>,
    ) -> HookAnswer {
        let hook = &armed.hook;
        let reach = at.sandbox.as_ref().filter(|_| hook.sandbox).map_or(&at.root, |place| &place.reach);
        if let Some(script) = armed.find_changed_script(&at.root, reach) {
            let problem = format!(
                "the hook `{}` was not run: {} has changed since the session began; start a new session to use it \
                 as it is now",
                hook.display_label(),
                script.display()
            );
            return HookAnswer::from_failure(hook.event, problem);
        }
        let variables = &self.inner.variables;
        let ended = match &at.sandbox {
            Some(place) if hook.sandbox => {
                confined_command::run_confined(at, place, hook, variables, input).await
            }
            None if hook.sandbox => CommandEnd::NotStarted("there is no sandbox for it".to_owned()),
            _ => {
                let kept: Vec<String> = armed
                    .find_deciding_files(&at.unseen.files)
                    .into_iter()
                    .chain(&at.unseen.directories)
                    .map(ToString::to_string)
                    .chain(at.unseen.unknown.clone())
                    .collect();
                if !kept.is_empty() {
                    let problem = format!(
                        "the hook `{}` was not run outside of the sandbox: the session changed what decides what it does \
                         ({}), and nobody has looked at that",
                        hook.display_label(),
                        kept.join(", ")
                    );
                    return HookAnswer::from_failure(hook.event, problem);
                }
                let (timeout, cancel) = (hook.timeout, &at.cancel);
                run_command(
                    CommandParameters { command: &hook.command, root: &at.root, variables, timeout, cancel },
                    input,
                )
                .await
            }
        };
        HookAnswer::from_command_end(hook.event, &hook.display_label(), hook.timeout.as_secs_f64(), &ended)
    }
}

impl PreToolResult {
    /// Returns the call with the hooks' changes so far.
    fn amended_call(&self, call: &ToolUse) -> ToolUse {
        let mut call = call.clone();
        if let Some(input) = &self.input {
            call.input = input.clone();
        }
        call
    }
}

impl GateResult {
    /// Records a closure's answer. Returns true if the action is denied.
    fn apply_closure_answer(&mut self, answer: Result<GateDecision, String>) -> bool {
        match answer {
            Ok(GateDecision::Go { context }) => self.notes.context.extend(context),
            Ok(GateDecision::Deny { reason }) | Err(reason) => self.denied = Some(reason),
        }
        self.denied.is_some()
    }

    fn apply_command_answers(&mut self, answers: Vec<(&HookCommand, HookAnswer)>) {
        for (_, answer) in answers {
            if let (Some(HookDecision { strength: DecisionStrength::Deny, reason }), None) =
                (answer.decision, &self.denied)
            {
                self.denied = Some(reason);
            }
            self.notes.extend(answer.notes);
        }
        if self.denied.is_none() {
            self.denied.clone_from(&self.notes.stop);
        }
    }
}

impl HookNotes {
    fn extend(&mut self, other: Self) {
        self.context.extend(other.context);
        self.warnings.extend(other.warnings);
        self.notices.extend(other.notices);
        self.stop = self.stop.take().or(other.stop);
    }

    fn apply_command_answers(&mut self, answers: Vec<(&HookCommand, HookAnswer)>) {
        answers.into_iter().for_each(|(_, answer)| self.extend(answer.notes));
    }
}

impl From<HookDecision> for PreToolDecision {
    fn from(ruling: HookDecision) -> Self {
        let reason = ruling.reason;
        match ruling.strength {
            DecisionStrength::Approve => Self::Approve { reason },
            DecisionStrength::Ask => Self::Ask { reason },
            DecisionStrength::Deny => Self::Deny { reason },
        }
    }
}

/// Returns the stronger of two decisions, or the first one of equals.
fn stronger_decision(one: PreToolDecision, other: PreToolDecision) -> PreToolDecision {
    let rank = |it: &PreToolDecision| match it {
        PreToolDecision::Go => 0,
        PreToolDecision::Approve { .. } => 1,
        PreToolDecision::Ask { .. } => 2,
        PreToolDecision::Result { .. } => 3,
        PreToolDecision::Deny { .. } => 4,
    };
    if rank(&other) > rank(&one) { other } else { one }
}
