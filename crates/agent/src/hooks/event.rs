//! Events at which hooks run, with their names in this project and in Claude Code.

use std::fmt;

/// A moment of a session at which hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookEvent {
    /// A message of the user is about to be taken.
    Prompt,
    /// A tool call has been authorized and is about to run.
    PreTool,
    /// A tool call has its result.
    PostTool,
    /// The model is about to be asked.
    PreModel,
    /// The model has replied.
    PostModel,
    /// The model has nothing left to do and the turn is about to end.
    TurnEnd,
    /// A session starts, or continues after a restart.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// Messages have been added to the conversation.
    PostAppend,
    /// The conversation is about to be shortened.
    PreCompact,
}

/// The names that a command's JSON uses: those of its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `pre_tool`, `run_command`, `path`.
    Own,
    /// `PreToolUse`, `Bash`, `file_path`.
    ClaudeCode,
}

/// The results of a call that a hook runs for. Claude Code has one event for each; here both are
/// one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResultFilter {
    /// Every result.
    Any,
    /// Results of calls that succeeded.
    Good,
    /// Results of calls that failed.
    Bad,
}

/// Claude Code's names for the events of this crate.
const CLAUDE_CODE_EVENTS: &[(&str, HookEvent, ResultFilter)] = &[
    ("UserPromptSubmit", HookEvent::Prompt, ResultFilter::Any),
    ("PreToolUse", HookEvent::PreTool, ResultFilter::Any),
    ("PostToolUse", HookEvent::PostTool, ResultFilter::Good),
    ("PostToolUseFailure", HookEvent::PostTool, ResultFilter::Bad),
    ("Stop", HookEvent::TurnEnd, ResultFilter::Any),
    ("SessionStart", HookEvent::SessionStart, ResultFilter::Any),
    ("SessionEnd", HookEvent::SessionEnd, ResultFilter::Any),
    ("PreCompact", HookEvent::PreCompact, ResultFilter::Any),
];

/// Claude Code's names for events that don't exist here. A configuration may name them, but their
/// hooks never run.
const CLAUDE_CODE_ONLY_EVENTS: &[&str] = &[
    "ConfigChange",
    "CwdChanged",
    "Elicitation",
    "ElicitationResult",
    "FileChanged",
    "InstructionsLoaded",
    "Notification",
    "PermissionDenied",
    "PermissionRequest",
    "PostCompact",
    "Setup",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "TaskCompleted",
    "TaskCreated",
    "TeammateIdle",
    "WorktreeCreate",
    "WorktreeRemove",
];

/// The meaning of an event's name in a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventName {
    /// An event of this crate.
    Known(HookEvent, Dialect, ResultFilter),
    /// An event that only Claude Code has.
    ClaudeCodeOnly,
    /// An unknown name, with the nearest known name if one is near.
    Unknown(Option<&'static str>),
}

impl HookEvent {
    /// Every event.
    pub const ALL: [Self; 10] = [
        Self::Prompt,
        Self::PreTool,
        Self::PostTool,
        Self::PreModel,
        Self::PostModel,
        Self::TurnEnd,
        Self::SessionStart,
        Self::SessionEnd,
        Self::PostAppend,
        Self::PreCompact,
    ];

    /// Returns the event's name in a configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::PreTool => "pre_tool",
            Self::PostTool => "post_tool",
            Self::PreModel => "pre_model",
            Self::PostModel => "post_model",
            Self::TurnEnd => "turn_end",
            Self::SessionStart => "session_start",
            Self::SessionEnd => "session_end",
            Self::PostAppend => "post_append",
            Self::PreCompact => "pre_compact",
        }
    }

    /// Returns true if the event precedes an action that a hook can deny.
    #[must_use]
    pub fn may_deny(self) -> bool {
        matches!(self, Self::Prompt | Self::PreTool | Self::PreModel | Self::PreCompact)
    }

    /// Returns true if a confined hook may change the project: after a call and at the end of a
    /// turn.
    #[must_use]
    pub fn may_write(self) -> bool {
        matches!(self, Self::PostTool | Self::TurnEnd)
    }

    /// Returns true if plain text on a command's standard output goes to the model, that is, if a
    /// request to the model can still follow. Claude Code does this only for `SessionStart` and
    /// `UserPromptSubmit`.
    pub(super) fn reads_plain_text(self) -> bool {
        matches!(
            self,
            Self::Prompt
                | Self::PreTool
                | Self::PostTool
                | Self::PreModel
                | Self::SessionStart
                | Self::PreCompact
        )
    }

    /// Returns Claude Code's names of the event.
    #[must_use]
    pub fn claude_code_names(self) -> Vec<&'static str> {
        CLAUDE_CODE_EVENTS.iter().filter(|(_, event, _)| *event == self).map(|(name, ..)| *name).collect()
    }

    /// Returns when the event happens and what a hook of it can do, for documentation.
    #[must_use]
    pub fn describe(self) -> (&'static str, &'static str) {
        match self {
            Self::Prompt => {
                ("a message or a pinned text of yours is about to be taken", "refuse it, add context")
            }
            Self::PreTool => ("a call is about to run", "deny, ask, approve, amend its input, add context"),
            Self::PostTool => ("a call has its result", "change the result, add context"),
            Self::PreModel => ("the model is about to be asked", "refuse, add context"),
            Self::PostModel => ("the model has replied", "look on"),
            Self::PostAppend => ("messages were added to the conversation", "look on"),
            Self::TurnEnd => ("the model has nothing left to do", "send it back to work"),
            Self::SessionStart => ("a session starts, or goes on", "add context"),
            Self::SessionEnd => ("a session ends", "look on"),
            Self::PreCompact => {
                ("the conversation is about to be shortened", "refuse, add what must be kept")
            }
        }
    }

    /// Returns true if a `matcher` can limit the event's hooks.
    #[must_use]
    pub fn takes_matcher(self) -> bool {
        matches!(
            self,
            Self::PreTool | Self::PostTool | Self::SessionStart | Self::SessionEnd | Self::PreCompact
        )
    }

    /// Returns the event's name in a hook's JSON.
    pub(super) fn name_in(self, dialect: Dialect, results: ResultFilter) -> &'static str {
        if dialect == Dialect::Own {
            return self.name();
        }
        let row = CLAUDE_CODE_EVENTS.iter().find(|(_, event, of)| *event == self && *of == results);
        row.map_or_else(|| self.name(), |(name, ..)| *name)
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ResultFilter {
    /// Returns true if a result with this error flag is included.
    pub(super) fn includes(self, is_error: bool) -> bool {
        match self {
            Self::Any => true,
            Self::Good => !is_error,
            Self::Bad => is_error,
        }
    }
}

impl EventName {
    /// Looks up a configured name.
    #[must_use]
    pub fn parse(name: &str) -> Self {
        if let Some(event) = HookEvent::ALL.into_iter().find(|event| event.name() == name) {
            return Self::Known(event, Dialect::Own, ResultFilter::Any);
        }
        if let Some((_, event, results)) = CLAUDE_CODE_EVENTS.iter().find(|(known, ..)| *known == name) {
            return Self::Known(*event, Dialect::ClaudeCode, *results);
        }
        if CLAUDE_CODE_ONLY_EVENTS.contains(&name) {
            return Self::ClaudeCodeOnly;
        }
        let known = HookEvent::ALL.into_iter().map(HookEvent::name);
        let known = known.chain(CLAUDE_CODE_EVENTS.iter().map(|(name, ..)| *name));
        let folded = name.to_lowercase();
        let near = known.map(|it| (strsim::damerau_levenshtein(&it.to_lowercase(), &folded), it)).min();
        Self::Unknown(near.filter(|(distance, it)| *distance <= 3.max(it.len() / 3)).map(|(_, it)| it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_both_vocabularies_and_slips_get_the_nearest() {
        assert_eq!(
            EventName::parse("pre_tool"),
            EventName::Known(HookEvent::PreTool, Dialect::Own, ResultFilter::Any)
        );
        assert_eq!(
            EventName::parse("PostToolUse"),
            EventName::Known(HookEvent::PostTool, Dialect::ClaudeCode, ResultFilter::Good)
        );
        assert_eq!(EventName::parse("Notification"), EventName::ClaudeCodeOnly);
        assert_eq!(EventName::parse("PreToolsUse"), EventName::Unknown(Some("PreToolUse")));
        assert_eq!(EventName::parse("pretooluse"), EventName::Unknown(Some("PreToolUse")));
        assert_eq!(EventName::parse("before_everything"), EventName::Unknown(None));
    }

    #[test]
    fn every_name_leads_back_to_its_event() {
        for event in HookEvent::ALL {
            assert_eq!(
                EventName::parse(event.name()),
                EventName::Known(event, Dialect::Own, ResultFilter::Any)
            );
            assert_eq!(event.name_in(Dialect::Own, ResultFilter::Any), event.name());
        }
        for (name, event, results) in CLAUDE_CODE_EVENTS {
            assert_eq!(event.name_in(Dialect::ClaudeCode, *results), *name);
        }
    }
}
