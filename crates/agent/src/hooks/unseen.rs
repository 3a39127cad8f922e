//! The session's changes that nobody has seen, before a hook runs outside of the sandbox.
//!
//! Nothing that a session changed runs outside of the sandbox before a person has seen that very content: where a
//! person can be asked, they are shown it, and what they said holds for this content alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use journeyman_protocol::{
    CallId, CallState, ContentHash, Decision, Effects, ErrorPhase, Level, RelPath, ToolUse, Verdict,
};
use journeyman_workspace::{Body, CheckpointId, WorkspaceError};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::AgentError;
use crate::approval::authorize::{Judged, Question};
use crate::calls::runner::Ready;
use crate::hooks::{HookEvent, Unseen};
use crate::session::turn::{Worker, blocking};
use crate::transcript::state::OpenCall;

/// The name under which hooks are asked about.
const HOOK: &str = "hook";
/// Bytes of one file that a question shows; of what is longer nobody is asked.
const MAX_SHOWN: u64 = 64 * 1024;
/// Directories that hold programs and that ignore rules usually cover, so that no list of changes has them.
const PROGRAMS: [&str; 8] =
    ["node_modules", ".venv", "venv", "vendor", ".tox", ".nox", ".yarn", "bower_components"];
/// The tool whose commands may change such directories.
const RUN_COMMAND: &str = "run_command";

/// The files that a person was shown and allowed, and the checkpoint where the session's changes begin.
#[derive(Debug, Default)]
pub(crate) struct ShownFiles {
    allowed: BTreeMap<RelPath, Option<ContentHash>>,
    begin: Option<CheckpointId>,
    asked: u32,
}

impl Worker {
    /// What keeps hooks of an event from running outside of the sandbox. Asks about it where `stop` says that this can
    /// be done now.
    pub(crate) async fn unseen(&mut self, event: HookEvent, stop: Option<&CancellationToken>) -> Unseen {
        if !self.parts.hooks.has_outside(event) {
            return Unseen::default();
        }
        let changed = match self.changed_in_session().await {
            Ok(changed) => changed,
            Err(error) => {
                self.warn(ErrorPhase::System, error.to_string());
                return Unseen { unknown: Some(error.to_string()), ..Unseen::default() };
            }
        };
        let hashes = self.parts.workspace.fingerprints(&changed);
        let mut unseen = Unseen { directories: self.program_directories(), ..Unseen::default() };
        let found = changed.into_iter().zip(hashes);
        let new = found.filter(|(path, hash)| self.looked_at.allowed.get(path) != Some(hash));
        let hashes: BTreeMap<RelPath, Option<ContentHash>> = new.collect();
        unseen.files = hashes.keys().cloned().collect();
        let kept = self.parts.hooks.kept_by(event, &unseen);
        let Some(stop) = stop.filter(|_| self.can_ask() && !kept.is_empty() && unseen.directories.is_empty())
        else {
            return unseen;
        };
        match self.show(event, &kept, stop).await {
            Ok(true) => {
                let allowed = hashes.into_iter().filter(|(path, _)| kept.contains(path));
                self.looked_at.allowed.extend(allowed);
                unseen.files.retain(|path| !kept.contains(path));
            }
            Ok(false) => {}
            Err(error) => self.warn(ErrorPhase::System, error.to_string()),
        }
        unseen
    }

    /// The files that differ from what they were when the session began.
    async fn changed_in_session(&mut self) -> Result<Vec<RelPath>, AgentError> {
        let mut changed = self.changes().await?;
        if self.parts.copy.is_none() {
            let (workspace, session, begin) =
                (Arc::clone(&self.parts.workspace), self.session.clone(), self.looked_at.begin);
            let since = blocking("comparing the tree", move || {
                let first = || {
                    let all = workspace.checkpoints()?;
                    Ok::<_, WorkspaceError>(
                        all.into_iter().find(|one| one.session == session).map(|one| one.id),
                    )
                };
                let begin = begin.map_or_else(first, |begin| Ok(Some(begin)))?;
                let since = begin.map(|begin| workspace.changes_since(&begin)).transpose()?;
                Ok::<_, WorkspaceError>((begin, since.unwrap_or_default()))
            });
            let (begin, since) = since.await??;
            self.looked_at.begin = begin;
            changed.extend(since);
        }
        let mut paths: Vec<RelPath> = changed.into_iter().map(|change| change.path).collect();
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Directories of programs that a command or a check of the session may have changed unseen.
    fn program_directories(&self) -> Vec<RelPath> {
        let begun = |open: &&OpenCall| {
            let waits =
                [CallState::Pending, CallState::ApprovalRequired, CallState::Approved, CallState::Denied];
            !waits.contains(&open.record.state)
        };
        let open = &self.state.calls;
        let mut calls = self.state.messages.iter().flat_map(|message| message.tool_uses());
        let earlier = |call: &ToolUse| open.iter().all(|open| open.call.id != call.id);
        // Calls in a reply's text are in no message any more.
        let in_text = !self.settings.tool_calling && self.state.books.turns > 1;
        let ran = in_text
            || self.state.books.rounds > 0
            || calls.any(|call| call.name == RUN_COMMAND && earlier(call))
            || open.iter().filter(begun).any(|open| open.call.name == RUN_COMMAND);
        let workspace = &self.parts.workspace;
        let uncovered = |path: &RelPath| workspace.uncovered(path).is_some_and(|found| found.directory);
        PROGRAMS
            .iter()
            .filter(|_| ran)
            .filter_map(|name| RelPath::parse(name).ok())
            .filter(uncovered)
            .collect()
    }

    /// Shows a person files as they are, and asks whether hooks may run outside of the sandbox with them.
    async fn show(
        &mut self,
        event: HookEvent,
        files: &[RelPath],
        stop: &CancellationToken,
    ) -> Result<bool, AgentError> {
        let (workspace, paths) = (Arc::clone(&self.parts.workspace), files.to_vec());
        let read = blocking("reading what changed", move || {
            let text = |path: RelPath| match workspace.read(&path, MAX_SHOWN) {
                Ok(content) => match content.body {
                    Body::Text(text) => Some((path.to_string(), Value::String(text.text))),
                    _ => None,
                },
                Err(WorkspaceError::NotFound { .. }) => Some((path.to_string(), Value::Null)),
                Err(_) => None,
            };
            paths.into_iter().map(text).collect::<Option<Map<String, Value>>>()
        });
        // What can't be shown can't be allowed.
        let Some(mut shown) = read.await? else { return Ok(false) };
        shown.insert("event".to_owned(), Value::String(event.to_string()));
        self.looked_at.asked += 1;
        let id = format!("hook-{}-{}", self.state.books.turns, self.looked_at.asked);
        let (name, mut input) = (HOOK.to_owned(), Value::Object(shown));
        self.parts.redactor.redact_json(&mut input);
        let call = ToolUse { id: CallId::new(id), name, input, malformed: None, signature: None };
        let reason = "a hook would run outside of the sandbox, and these files, which the session changed, decide \
                      what it does";
        let verdict = Verdict {
            decision: Decision::Ask,
            level: Level::System,
            reason: reason.to_owned(),
            destroys: None,
            rules: Vec::new(),
        };
        let judged = Judged { verdict, mode: self.settings.mode, sandbox: None };
        let (effects, limit) = (Effects::default(), self.settings.tool_timeout);
        let ready =
            Ready { call, effects, read_only: false, limit, context: Vec::new(), trial: None, layer: None };
        let answered = self.ask_all(vec![(ready, Question { judged, rules: None })], stop).await?;
        Ok(answered.iter().any(Result::is_ok))
    }
}
