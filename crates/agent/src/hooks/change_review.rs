//! Review of the session's changes before a hook runs outside the sandbox.
//!
//! No file that a session changed runs outside the sandbox before a person has seen its exact
//! content. If a person can be asked, they see the content, and their approval holds for this
//! content alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use journeyman_protocol::{
    CallId, CallState, ContentHash, Decision, Effects, ErrorPhase, Level, RelPath, ToolUse, Verdict,
};
use journeyman_workspace::{CheckpointId, FileBody, WorkspaceError};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::AgentError;
use crate::approval::approvals::Approvals;
use crate::approval::authorization::{ApprovedCall, JudgedCall, PermissionQuestion};
use crate::blocking::run_blocking;
use crate::hooks::{HookEvent, Hooks, UnseenChanges};
use crate::isolation::checkpoints::Checkpoints;
use crate::session::context::SessionContext;
use crate::transcript::state::OpenCall;

/// The tool name in approval requests about hooks.
const HOOK_TOOL: &str = "hook";
/// Maximum number of bytes of a file that an approval request shows. Longer files can't be
/// approved.
const MAX_SHOWN_FILE_BYTES: u64 = 64 * 1024;
/// Directories that hold programs and are usually ignored, so that no list of changes includes
/// them.
const PROGRAM_DIRECTORIES: [&str; 8] =
    ["node_modules", ".venv", "venv", "vendor", ".tox", ".nox", ".yarn", "bower_components"];
/// The tool whose commands may change such directories.
const RUN_COMMAND_TOOL: &str = "run_command";

/// The files that a person was shown and allowed, and the checkpoint where the session's changes
/// begin.
#[derive(Debug, Default)]
pub(super) struct ShownFiles {
    allowed: BTreeMap<RelPath, Option<ContentHash>>,
    begin: Option<CheckpointId>,
    asked: u32,
}

/// The parts of a session that determine its changes and ask a person about them.
pub(crate) struct ChangeReview<'a> {
    pub(crate) approvals: &'a mut Approvals,
    pub(crate) checkpoints: &'a mut Checkpoints,
}

impl ChangeReview<'_> {
    /// Borrows the parts again.
    pub(crate) fn reborrow(&mut self) -> ChangeReview<'_> {
        ChangeReview { approvals: self.approvals, checkpoints: self.checkpoints }
    }
}

impl ShownFiles {
    /// Returns the unseen changes that keep an event's hooks from running outside the sandbox. With
    /// `stop`, a person is asked about them first.
    pub(super) async fn find_unseen(
        &mut self,
        cx: &mut SessionContext,
        review: ChangeReview<'_>,
        hooks: &Hooks,
        event: HookEvent,
        stop: Option<&CancellationToken>,
    ) -> UnseenChanges {
        if !hooks.has_commands_outside_sandbox(event) {
            return UnseenChanges::default();
        }
        let changed = match self.changed_in_session(cx, review.checkpoints).await {
            Ok(changed) => changed,
            Err(error) => {
                cx.transcript.emit_nonfatal_error(ErrorPhase::System, error.to_string());
                return UnseenChanges { unknown: Some(error.to_string()), ..UnseenChanges::default() };
            }
        };
        let hashes = cx.workspace.fingerprints(&changed);
        let mut unseen =
            UnseenChanges { directories: changed_program_directories(cx), ..UnseenChanges::default() };
        let found = changed.into_iter().zip(hashes);
        let new = found.filter(|(path, hash)| self.allowed.get(path) != Some(hash));
        let hashes: BTreeMap<RelPath, Option<ContentHash>> = new.collect();
        unseen.files = hashes.keys().cloned().collect();
        let kept = hooks.find_blocking_files(event, &unseen);
        let Some(stop) = stop.filter(|_| cx.can_ask() && !kept.is_empty() && unseen.directories.is_empty())
        else {
            return unseen;
        };
        match self.ask_about_files(cx, review.approvals, event, &kept, stop).await {
            Ok(true) => {
                let allowed = hashes.into_iter().filter(|(path, _)| kept.contains(path));
                self.allowed.extend(allowed);
                unseen.files.retain(|path| !kept.contains(path));
            }
            Ok(false) => {}
            Err(error) => cx.transcript.emit_nonfatal_error(ErrorPhase::System, error.to_string()),
        }
        unseen
    }

    /// Returns the files that differ from their state when the session began.
    async fn changed_in_session(
        &mut self,
        cx: &mut SessionContext,
        checkpoints: &mut Checkpoints,
    ) -> Result<Vec<RelPath>, AgentError> {
        let mut changed = checkpoints.changes(cx).await?;
        if cx.copy.is_none() {
            let (workspace, session, begin) =
                (Arc::clone(&cx.workspace), cx.journal_session().clone(), self.begin);
            let since = run_blocking("comparing the tree", move || {
                let first = || {
                    let all = workspace.checkpoints()?;
                    Ok::<_, WorkspaceError>(
                        all.into_iter().find(|one| one.session == session).map(|one| one.id),
                    )
                };
                let begin = begin.map_or_else(first, |begin| Ok(Some(begin)))?;
                let since = begin.map(|begin| workspace.history().changes_since(&begin)).transpose()?;
                Ok::<_, WorkspaceError>((begin, since.unwrap_or_default()))
            });
            let (begin, since) = since.await??;
            self.begin = begin;
            changed.extend(since);
        }
        let mut paths: Vec<RelPath> = changed.into_iter().map(|change| change.path).collect();
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Shows a person the present content of files, and asks whether hooks may run outside the
    /// sandbox with them.
    async fn ask_about_files(
        &mut self,
        cx: &mut SessionContext,
        approvals: &mut Approvals,
        event: HookEvent,
        files: &[RelPath],
        stop: &CancellationToken,
    ) -> Result<bool, AgentError> {
        let (workspace, paths) = (Arc::clone(&cx.workspace), files.to_vec());
        let read = run_blocking("reading what changed", move || {
            let text = |path: RelPath| match workspace.read(&path, MAX_SHOWN_FILE_BYTES) {
                Ok(content) => match content.body {
                    FileBody::Text(text) => Some((path.to_string(), Value::String(text.text))),
                    _ => None,
                },
                Err(WorkspaceError::NotFound { .. }) => Some((path.to_string(), Value::Null)),
                Err(_) => None,
            };
            paths.into_iter().map(text).collect::<Option<Map<String, Value>>>()
        });
        // A file that can't be shown can't be allowed.
        let Some(mut shown) = read.await? else { return Ok(false) };
        shown.insert("event".to_owned(), Value::String(event.to_string()));
        self.asked += 1;
        let id = format!("hook-{}-{}", cx.transcript.state().counters.turns, self.asked);
        let (name, mut input) = (HOOK_TOOL.to_owned(), Value::Object(shown));
        cx.redactor.redact_json(&mut input);
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
        let judged = JudgedCall { verdict, mode: cx.settings.mode, sandbox: None };
        let (effects, limit) = (Effects::default(), cx.settings.tool_timeout);
        let ready = ApprovedCall {
            call,
            effects,
            read_only: false,
            starts_agents: false,
            time_limit: limit,
            context: Vec::new(),
            preview: None,
            layer: None,
        };
        let answered = approvals
            .ask_about_calls(cx, vec![(ready, PermissionQuestion { judged, rules: None, diff: None })], stop)
            .await?;
        Ok(answered.iter().any(Result::is_ok))
    }
}

/// Returns the directories of programs that a command or a check of the session may have changed
/// unnoticed.
fn changed_program_directories(cx: &SessionContext) -> Vec<RelPath> {
    let begun = |open: &&OpenCall| {
        let waits = [CallState::Pending, CallState::ApprovalRequired, CallState::Approved, CallState::Denied];
        !waits.contains(&open.record.state)
    };
    let open = &cx.transcript.state().calls;
    let mut calls = cx.transcript.state().messages.iter().flat_map(|message| message.tool_uses());
    let earlier = |call: &ToolUse| open.iter().all(|open| open.call.id != call.id);
    // Calls in a reply's text are no longer in any message.
    let in_text = !cx.transcript.state().tool_calling() && cx.transcript.state().counters.turns > 1;
    let ran = in_text
        || cx.transcript.state().counters.rounds > 0
        || calls.any(|call| call.name == RUN_COMMAND_TOOL && earlier(call))
        || open.iter().filter(begun).any(|open| open.call.name == RUN_COMMAND_TOOL);
    let workspace = &cx.workspace;
    let uncovered =
        |path: &RelPath| workspace.previews().uncovered_path(path).is_some_and(|found| found.directory);
    PROGRAM_DIRECTORIES
        .iter()
        .filter(|_| ran)
        .filter_map(|name| RelPath::parse(name).ok())
        .filter(uncovered)
        .collect()
}
