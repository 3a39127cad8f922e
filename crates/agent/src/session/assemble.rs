//! Assembles a session from its parts, its settings and the state read from its log.

use std::sync::Arc;

use journeyman_model::Thinking;
use journeyman_protocol::{Seq, SessionId};

use super::budget::SharedBudget;
use super::inbox::Inbox;
use super::running_session::{Session, SharedParts};
use super::session_parts::SessionParts;
use super::settings::RunSettings;
use super::shared_state::SessionShared;
use crate::Clock;
use crate::agents::role::AgentRole;
use crate::recovery::lease::Lease;
use crate::supervision::schedule::Schedule;
use crate::supervision::todos::SharedTodoList;
use crate::transcript::log::{Log, SubscriberBufferLimits};
use crate::transcript::record::{Record, RecordedSettings};
use crate::transcript::running_transcript::{SafePosition, Transcript};
use crate::transcript::state::State;

/// A session whose actor has not started.
pub(crate) struct AssembledSession {
    pub(crate) session: Session,
    pub(crate) id: SessionId,
    pub(crate) log: Log,
    pub(crate) safe: Arc<SafePosition>,
    pub(crate) shared: SharedParts,
    pub(crate) lease: Arc<Lease>,
}

/// Assembles a session. The log of a new session begins with the records in `first`.
pub(crate) fn assemble_session(
    mut parts: SessionParts,
    mut settings: RunSettings,
    id: SessionId,
    mut state: State,
    lease: Lease,
    mut first: Vec<Record>,
) -> AssembledSession {
    let shared = Arc::new(SessionShared::new(std::mem::take(&mut state.queue), state.newest));
    shared.status.send_modify(|status| status.step = state.counters.step);
    if let Some(role) = &state.role {
        apply_role(role, &mut parts, &mut settings);
    }
    let role = state.role.as_deref();
    if role.is_none_or(|role| role.parent.is_none()) || settings.shared_budget.is_none() {
        // The budget of an agent is made by its launcher, which reads the usage from it.
        settings.shared_budget = Some(SharedBudget::for_session(settings.shared_budget.take(), role));
    }
    let log = Log::open_for_agent(
        Arc::clone(&parts.store),
        id.clone(),
        state.role.as_ref().map(|role| role.path.clone()).unwrap_or_default(),
        state.last,
        parts.clock.clone(),
        Arc::clone(&parts.redactor),
        SubscriberBufferLimits::default(),
    );
    parts.lasting_answers.restore(&id, &state.allowed);
    let lease = Arc::new(lease);
    if state.last == Seq::START {
        // Written with the first message, so that the log of a session cut off right after it has
        // the settings.
        let setting = initial_setting(&parts, &settings);
        state.setting = Some(setting.clone());
        first.push(Record::Setting(setting));
    }
    let inbox = Arc::new(Inbox::new(
        log.clone(),
        Arc::clone(&shared),
        Arc::clone(&lease),
        Arc::clone(&parts.redactor),
        parts.workspace.root().display().to_string(),
        first,
    ));
    let todos = restore_todo_list(&settings, &parts.clock, &state);
    let schedule = Arc::new(Schedule::new(state.counters.step));
    let (clock, redactor) = (parts.clock.clone(), Arc::clone(&parts.redactor));
    let transcript = Transcript::new(state, log.clone(), clock, redactor, Arc::clone(&shared));
    let safe = transcript.safe_position();
    let shared = SharedParts { shared, inbox, todos, schedule };
    let session = Session::new(parts, settings, id.clone(), transcript, shared.clone());
    AssembledSession { session, id, log, safe, shared, lease }
}

/// Narrows the parts and settings of a session to those of an agent.
fn apply_role(role: &AgentRole, parts: &mut SessionParts, settings: &mut RunSettings) {
    settings.mode = settings.mode.min(role.mode);
    settings.max_turns = settings.max_turns.min(role.limits.turns);
    settings.timeout = settings.timeout.min(role.limits.time);
    settings.temperature = role.temperature.or(settings.temperature);
    settings.top_p = role.top_p.or(settings.top_p);
    settings.thinking = role.thinking_budget.map(Thinking::Budget).or(settings.thinking);
    // An agent's work is short, and has no list of its own.
    settings.todos = None;
    // The mode also holds for what the agent's own agents may do.
    if let Ok(policy) = parts.policy.for_sub_agent([], role.mode) {
        parts.policy = policy;
    }
}

/// Returns the setting record for these parts and settings.
fn initial_setting(parts: &SessionParts, settings: &RunSettings) -> RecordedSettings {
    RecordedSettings {
        model: parts.model.name(),
        mode: settings.mode,
        tool_calling: settings.tool_calling,
        asked: settings.asked.clone(),
    }
}

fn restore_todo_list(settings: &RunSettings, clock: &Clock, state: &State) -> Arc<SharedTodoList> {
    let clock = clock.clone();
    let todos =
        if settings.todos.is_some() { SharedTodoList::new(clock) } else { SharedTodoList::disabled(clock) };
    todos.restore(state.todos.clone());
    Arc::new(todos)
}
