//! The meaning of a command's exit status and output.

use serde_json::{Map, Value};

use super::HookNotes;
use super::command::{CommandEnd, ExitKind, KeptOutput, MAX_HOOK_OUTPUT_BYTES};
use super::event::HookEvent;

/// Maximum number of characters of one hook's text that reach the model or a person, as in Claude
/// Code.
pub const MAX_HOOK_TEXT_CHARS: usize = 10_000;

/// The answer of one hook.
#[derive(Debug, Default, PartialEq)]
pub(super) struct HookAnswer {
    pub(super) decision: Option<HookDecision>,
    /// The input that replaces the call's input.
    pub(super) input: Option<Value>,
    /// The text that replaces the result's text.
    pub(super) output: Option<String>,
    pub(super) notes: HookNotes,
}

/// A decision, weakest first. The strongest of several decisions counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DecisionStrength {
    Approve,
    Ask,
    Deny,
}

/// A decision and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HookDecision {
    pub(super) strength: DecisionStrength,
    pub(super) reason: String,
}

impl HookAnswer {
    fn with_decision(strength: DecisionStrength, reason: impl Into<String>) -> Self {
        Self { decision: Some(HookDecision { strength, reason: reason.into() }), ..Self::default() }
    }

    fn with_warning(text: impl Into<String>) -> Self {
        Self { notes: HookNotes { warnings: vec![text.into()], ..HookNotes::default() }, ..Self::default() }
    }

    /// Returns the answer for a hook that failed. The action after a deniable event must not happen
    /// without its hook.
    pub(super) fn from_failure(event: HookEvent, reason: impl Into<String>) -> Self {
        if event.may_deny() {
            Self::with_decision(DecisionStrength::Deny, reason)
        } else {
            Self::with_warning(reason)
        }
    }

    /// Interprets the end of a command. `hook` names the command; `timeout` is its timeout in
    /// seconds.
    pub(super) fn from_command_end(event: HookEvent, hook: &str, timeout: f64, ended: &CommandEnd) -> Self {
        match ended {
            CommandEnd::TimedOut => Self::from_failure(
                event,
                format!("the hook `{hook}` did not end within {timeout} s and was stopped"),
            ),
            CommandEnd::NotStarted(why) => {
                Self::from_failure(event, format!("the hook `{hook}` could not be started: {why}"))
            }
            CommandEnd::Killed(why) => {
                Self::from_failure(event, format!("the hook `{hook}` was killed for {why}"))
            }
            CommandEnd::Cancelled if event.may_deny() => {
                Self::with_decision(DecisionStrength::Deny, "interrupted")
            }
            CommandEnd::Cancelled => Self::default(),
            CommandEnd::Exited { status: ExitKind::Signal(number), .. } => {
                Self::from_failure(event, format!("the hook `{hook}` was killed by signal {number}"))
            }
            // The shell's exit codes for a program that can't be executed or doesn't exist.
            CommandEnd::Exited { status: ExitKind::Code(code @ (126 | 127)), stderr, .. } => {
                let why = output_text(stderr).unwrap_or_else(|| format!("exit code {code}"));
                Self::from_failure(event, format!("the hook `{hook}` could not be started: {why}"))
            }
            CommandEnd::Exited { status: ExitKind::Code(0), stdout, denial, .. } => {
                let mut answer = Self::from_success(event, hook, stdout);
                let denial = denial.as_ref().filter(|_| event.may_deny());
                answer.notes.warnings.extend(denial.map(|denial| format!("the hook `{hook}`: {denial}")));
                answer
            }
            CommandEnd::Exited { status: ExitKind::Code(2), stderr, .. } => {
                Self::from_block_decision(event, hook, output_text(stderr))
            }
            CommandEnd::Exited { status: ExitKind::Code(code), stderr, denial, .. } => {
                let why = output_text(stderr).map(|text| format!(": {text}")).unwrap_or_default();
                let text = format!("the hook `{hook}` ended with exit code {code}{why}");
                match denial {
                    // The hook may have failed because the sandbox denied the access that its
                    // decision depends on.
                    Some(denial) => Self::from_failure(event, format!("{text} ({denial})")),
                    None => Self::with_warning(text),
                }
            }
        }
    }

    /// Interprets exit code 2 and `decision: "block"`, whose meaning depends on whether the event
    /// can still be refused.
    fn from_block_decision(event: HookEvent, hook: &str, reason: Option<String>) -> Self {
        let reason = reason.unwrap_or_else(|| format!("the hook `{hook}` blocks this and gives no reason"));
        match event {
            event if event.may_deny() || event == HookEvent::TurnEnd => {
                Self::with_decision(DecisionStrength::Deny, reason)
            }
            // The call has run already. The model gets the objection as context.
            HookEvent::PostTool => {
                Self { notes: HookNotes { context: vec![reason], ..HookNotes::default() }, ..Self::default() }
            }
            _ => Self::with_warning(format!("the hook `{hook}`: {reason}")),
        }
    }

    fn from_success(event: HookEvent, hook: &str, stdout: &KeptOutput) -> Self {
        let text = stdout.text();
        if !text.starts_with('{') {
            let context = output_text(stdout).filter(|_| event.reads_plain_text());
            let notes = HookNotes { context: context.into_iter().collect(), ..HookNotes::default() };
            return Self { notes, ..Self::default() };
        }
        match serde_json::from_str(&text) {
            Ok(Value::Object(fields)) => Self::from_json(event, hook, &fields),
            // The truncated output may have been a denial.
            _ if stdout.cut => Self::from_failure(
                event,
                format!("the hook `{hook}` answered with more than {MAX_HOOK_OUTPUT_BYTES} bytes of JSON"),
            ),
            Ok(_) => Self::default(),
            Err(error) => Self::with_warning(format!(
                "the hook `{hook}` answered with something that begins like JSON and isn't: {error}"
            )),
        }
    }

    fn from_json(event: HookEvent, hook: &str, fields: &Map<String, Value>) -> Self {
        let nothing = Map::new();
        let specific = fields.get("hookSpecificOutput").and_then(Value::as_object).unwrap_or(&nothing);
        let text = |map: &Map<String, Value>, name: &str| {
            map.get(name).and_then(Value::as_str).map(clean_text).filter(|text| !text.is_empty())
        };
        // The newer form takes precedence over the form that it replaced.
        let decision = specific.get("permissionDecision").or_else(|| fields.get("decision"));
        let reason = text(specific, "permissionDecisionReason").or_else(|| text(fields, "reason"));
        let mut answer = match decision.filter(|it| !it.is_null()) {
            None => Self::default(),
            Some(decision) => Self::from_decision(event, hook, decision, reason),
        };
        let context = text(specific, "additionalContext").or_else(|| text(fields, "additionalContext"));
        answer.notes.context.extend(context);
        answer.notes.notices.extend(text(fields, "systemMessage"));
        if fields.get("continue") == Some(&Value::Bool(false)) {
            let why = text(fields, "stopReason").or_else(|| text(fields, "reason"));
            answer.notes.stop = Some(why.unwrap_or_else(|| format!("the hook `{hook}` stops the run")));
        }
        match specific.get("updatedInput") {
            Some(input @ Value::Object(_)) if event == HookEvent::PreTool => {
                answer.input = Some(input.clone())
            }
            None | Some(Value::Null) => {}
            Some(_) => answer
                .notes
                .warnings
                .push(format!("the hook `{hook}` gives an `updatedInput` that can't be used")),
        }
        let output = specific.get("updatedToolOutput").or_else(|| specific.get("updatedMCPToolOutput"));
        if let Some(output) = output.filter(|it| event == HookEvent::PostTool && !it.is_null()) {
            answer.output = Some(output.as_str().map_or_else(|| output.to_string(), str::to_owned));
        }
        answer
    }

    fn from_decision(event: HookEvent, hook: &str, decision: &Value, reason: Option<String>) -> Self {
        let or = |text: &str| reason.clone().unwrap_or_else(|| format!("the hook `{hook}` {text}"));
        match decision.as_str() {
            Some("deny" | "block") => Self::from_block_decision(event, hook, reason),
            Some("approve" | "allow") if event == HookEvent::PreTool => {
                Self::with_decision(DecisionStrength::Approve, or("approves"))
            }
            Some("approve" | "allow") => Self::default(),
            Some("ask") if event == HookEvent::PreTool => {
                Self::with_decision(DecisionStrength::Ask, or("wants a person to decide"))
            }
            // The decision belongs to another version or is a typing error. A person sees it before
            // the call runs.
            _ if event == HookEvent::PreTool => {
                let shown = clean_text(&decision.to_string());
                Self::with_decision(
                    DecisionStrength::Ask,
                    format!("the hook `{hook}` decides {shown}, which isn't known here"),
                )
            }
            _ => Self::with_warning(format!(
                "the hook `{hook}` decides {}, which isn't known here",
                clean_text(&decision.to_string())
            )),
        }
    }
}

/// Returns a stream's text, if any, with a note if it was truncated.
fn output_text(stream: &KeptOutput) -> Option<String> {
    let text = stream.text();
    let long = stream.cut || text.chars().nth(MAX_HOOK_TEXT_CHARS).is_some();
    let mut text = clean_text(&text);
    if long && stream.cut && !text.ends_with(TRUNCATION_NOTE) {
        text.push_str(TRUNCATION_NOTE);
    }
    Some(text).filter(|text| !text.is_empty())
}

const TRUNCATION_NOTE: &str = "\n… (cut: the hook said more)";

/// Returns text for the model and for people: bounded, and without control characters that could
/// repaint a terminal.
fn clean_text(text: &str) -> String {
    let shown = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let text = text.trim();
    match text.char_indices().nth(MAX_HOOK_TEXT_CHARS) {
        Some((end, _)) => {
            let head: String = text.get(..end).unwrap_or_default().chars().filter(shown).collect();
            head + TRUNCATION_NOTE
        }
        None => text.chars().filter(shown).collect(),
    }
}
