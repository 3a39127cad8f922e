//! The beginning of a task: takes the queued messages and packs the first context.

use std::sync::Arc;
use std::time::Duration;

use journeyman_context::{candidates_at_named_lines, likeliest_passage, lookup_text};
use journeyman_policy::secrets::unmasked_files;
use journeyman_protocol::{AgentState, Event, Evidence, MessageKind, Mode, RelPath};
use journeyman_workspace::{ListOptions, Listing};
use tokio_util::sync::CancellationToken;

use super::context::SessionContext;
use super::settings::PlanFirst;
use super::task_first_message::{TaskFirstMessage, is_question, take_images, text_blocks, user_text};
use crate::AgentError;
use crate::agents::delegation::DelegatingSession;
use crate::approval::approvals::Approvals;
use crate::blocking::run_blocking;
use crate::hooks::change_review::ChangeReview;
use crate::hooks::dispatch::HookDispatch;
use crate::isolation::checkpoints::Checkpoints;
use crate::isolation::copy_updates::CopyUpdates;
use crate::planning::{needs_plan, plan_task};
use crate::request::builder::{RequestBuilder, TaskFindings};
use crate::request::index_lookup::look_up_task;
use crate::request::uncommitted::look_up_uncommitted;
use crate::supervision::Supervision;
use crate::transcript::record::{MessageId, QueuedMessage, Record};
use crate::verification::Verification;
use crate::verification::failed_checks::FailedChecks;

/// Maximum number of files listed for the repository map. A path has some 50 bytes; the limit
/// bounds the walk of a huge tree.
const MAX_REPOSITORY_MAP_FILES: usize = 20_000;
/// Maximum time that a task waits until it is known which checks failed on its files: of a tree of
/// 60,000 files 0.4 s without optimization, and nothing where no check has failed.
const KNOWN_FAILURES_TIMEOUT: Duration = Duration::from_secs(1);

/// The stages that begin a task.
pub(crate) struct TaskOpening<'a> {
    pub(super) cx: &'a mut SessionContext,
    pub(super) requests: &'a RequestBuilder,
    pub(super) approvals: &'a mut Approvals,
    pub(super) hooks: &'a mut HookDispatch,
    pub(super) supervision: &'a mut Supervision,
    pub(super) verification: &'a mut Verification,
    pub(super) checkpoints: &'a mut Checkpoints,
    pub(super) copy_updates: &'a mut CopyUpdates,
    /// The parts that the session lends to its agents, one of which may plan the task.
    pub(super) delegation: Option<&'a DelegatingSession>,
}

impl TaskOpening<'_> {
    /// Begins a task with the queued messages.
    pub(crate) async fn run(&mut self, stop: &CancellationToken) -> Result<(), AgentError> {
        let waiting = self.cx.shared.hold_queued();
        let mut taken: Vec<MessageId> = waiting.iter().map(|queued| queued.id).collect();
        let task = user_text(&waiting);
        self.cx.asks_question = is_question(&task);
        self.checkpoints.begin_task();
        self.cx.transcript.record(Record::Began);
        let setting = self.requests.current_setting(self.cx);
        if self.cx.transcript.state().setting.as_ref() != Some(&setting) {
            self.requests.record_setting(self.cx, setting);
        }
        // Done early: the result is cached, and the user sees what can't be confined before any
        // command runs.
        let enforcement = self.cx.sandbox.enforcement(&self.cx.settings.needs).await.ok();
        self.cx.transcript.emit(Event::RunStarted {
            prompts: Some(self.cx.settings.prompts.hash()),
            task,
            root: self.cx.workspace.root().display().to_string(),
            model: self.cx.model.name(),
            mode: self.cx.settings.mode,
            enforcement,
        });
        // Hooks see the tree that the session works in.
        if !self.copy_updates.is_planned() || self.hooks.can_run_before_reply() {
            self.copy_updates.enter_copy(self.cx).await?;
        }
        // Follows `RunStarted`, so that a task's first event describes the task.
        self.cx.transcript.set_agent_state(AgentState::Working);
        // Changes that the handle made before the log began.
        self.supervision.record_todo_changes(self.cx);
        let TaskFirstMessage { content, left_queued: waits, refused } =
            self.build_first_message(waiting, stop).await;
        taken.retain(|id| !waits.contains(id));
        // Taken even after a refusal: a task that can't begin must not be started again and again.
        self.cx.transcript.take_queued(content, taken);
        refused.map_or(Ok(()), Err)
    }

    /// Builds the first message. In a new session this is the packed context and the queued
    /// messages.
    async fn build_first_message(
        &mut self,
        waiting: Vec<QueuedMessage>,
        stop: &CancellationToken,
    ) -> TaskFirstMessage {
        let review = ChangeReview { approvals: self.approvals, checkpoints: self.checkpoints };
        let mut context = self.hooks.run_session_start(self.cx, review).await;
        context.append(&mut self.hooks.take_context());
        let review = ChangeReview { approvals: self.approvals, checkpoints: self.checkpoints };
        let ids = waiting.iter().map(|queued| queued.id).collect();
        let Some((mut kept, more, denied)) = self.hooks.screen_messages(self.cx, review, waiting).await
        else {
            return TaskFirstMessage { left_queued: ids, ..TaskFirstMessage::default() };
        };
        context.extend(more);
        if denied.is_some() && !kept.iter().any(|queued| queued.kind == MessageKind::User) {
            // Messages that no person sent, and context from hooks, are kept for the next task.
            self.hooks.keep_context(context);
            let waits = kept.into_iter().map(|queued| queued.id).collect();
            return TaskFirstMessage { left_queued: waits, refused: denied, ..TaskFirstMessage::default() };
        }
        let images = take_images(&mut kept);
        let mut first = TaskFirstMessage::default();
        let mut said: Vec<String> = Vec::new();
        // An empty transcript means that an earlier task was cut off before its first message.
        if self.cx.transcript.state().system.is_empty() || self.cx.transcript.state().messages.is_empty() {
            let task = user_text(&kept);
            match self.pack_first_context(&task).await {
                Ok(packed) => {
                    // A group is started by its message as it is, and needs no context.
                    let is_group = self.delegation.is_some_and(|lent| lent.agents.is_group());
                    said.push(if is_group { task.clone() } else { packed.text });
                    let wanted = packed.needs_plan;
                    said.extend(plan_task(self.cx, self.delegation, &task, wanted, stop).await);
                }
                // The task's text still enters the transcript as context for the next message.
                Err(error) => {
                    first.refused = Some(error);
                    said.push(task);
                }
            }
            let others = kept.into_iter().filter(|queued| queued.kind != MessageKind::User);
            said.extend(others.map(|queued| queued.text));
        } else {
            let may_show = self.approvals.visible_file_filter(self.cx);
            let message = user_text(&kept);
            let found = self.supervision.look_up_message(self.cx, may_show, &message).await;
            said.extend(kept.into_iter().map(|queued| queued.text).chain(found));
        }
        said.extend(context);
        first.content = text_blocks(said);
        first.content.extend(images);
        first
    }

    async fn pack_first_context(&mut self, task: &str) -> Result<PackedContext, AgentError> {
        let may_show = self.approvals.visible_file_filter(self.cx);
        let mut findings =
            TaskFindings { failures: self.find_known_failures(&may_show).await?, ..TaskFindings::default() };
        let about = lookup_text(task, &findings.failures).into_owned();
        let lookup = |timeout| {
            let deadline = tokio::time::Instant::now() + timeout;
            let uncommitted = look_up_uncommitted(self.cx, Arc::clone(&may_show));
            (look_up_task(self.cx, Arc::clone(&may_show), &about), uncommitted, deadline)
        };
        let lookups = self.cx.settings.index_timeout.map(lookup);
        let listing = list_files(self.cx).await?;
        let mut lines = candidates_at_named_lines(&about, &listing, self.cx.workspace.root());
        lines.retain(|lines| may_show(&lines.path));
        let are_named = !lines.is_empty();
        self.supervision.look_for_line_commits(self.cx, lines);
        let checks = self.verification.find_checks(self.cx, self.approvals, &listing);
        // The lookups ran while the tree was listed. Slow ones are not waited for any longer.
        if let Some((gathered, uncommitted, deadline)) = lookups {
            let gathered = tokio::time::timeout_at(deadline, gathered).await;
            findings.gathered = gathered.ok().and_then(Result::ok).flatten();
            let uncommitted = tokio::time::timeout_at(deadline, uncommitted).await;
            findings.uncommitted = uncommitted.ok().and_then(Result::ok).unwrap_or_default();
        }
        if let Some(found) = findings.gathered.as_ref().filter(|_| !are_named) {
            self.supervision.look_for_line_commits(self.cx, likeliest_passage(&found.candidates));
        }
        findings.line_commits = self.supervision.take_known_commits();
        let text =
            self.requests.pack_first_context(self.cx, task, &listing, &checks, &findings, &*may_show)?;
        let is_planned = !self.cx.asks_question && self.cx.settings.mode != Mode::Plan;
        let needs_plan = is_planned
            && match self.cx.settings.plan_first {
                PlanFirst::Always => true,
                PlanFirst::WhereNeeded => {
                    let is_file =
                        |word: &str| RelPath::parse(word).is_ok_and(|path| listing.paths.contains(&path));
                    needs_plan(task, is_file)
                }
                PlanFirst::Never | PlanFirst::Given(_) => false,
            };
        Ok(PackedContext { text, needs_plan })
    }

    /// Returns the checks that failed on the files as they are, if that is known in time. An agent
    /// isn't told of them: its task says what it is about.
    async fn find_known_failures(
        &self,
        may_show: &Arc<dyn Fn(&RelPath) -> bool + Send + Sync>,
    ) -> Result<Vec<Evidence>, AgentError> {
        // A recorded session must send the same requests everywhere.
        if self.cx.settings.index_timeout.is_none() || self.cx.role().is_some() {
            return Ok(Vec::new());
        }
        let known = FailedChecks::in_directory(self.cx.project().state_dir());
        let (workspace, may_show) = (Arc::clone(&self.cx.workspace), Arc::clone(may_show));
        let load = move || known.load(&workspace, &unmasked_files(&*may_show));
        let loaded = run_blocking("reading the failed checks", load);
        tokio::time::timeout(KNOWN_FAILURES_TIMEOUT, loaded).await.unwrap_or_else(|_| Ok(Vec::new()))
    }
}

/// The packed context of a session's first message.
struct PackedContext {
    text: String,
    /// True if the task is to be planned before it is worked on.
    needs_plan: bool,
}

/// Lists the files from which the repository map and the checks are derived.
pub(super) async fn list_files(cx: &SessionContext) -> Result<Listing, AgentError> {
    let workspace = Arc::clone(&cx.workspace);
    let options = ListOptions { limit: MAX_REPOSITORY_MAP_FILES, ..ListOptions::default() };
    Ok(run_blocking("listing the project", move || workspace.list(options)).await??)
}

#[cfg(test)]
mod tests {
    use journeyman_tools::Registry;

    use super::*;
    use crate::hooks::{GateDecision, Hooks, HooksBuilder};
    use crate::request::line_commits::tests::{commit_all, use_git};
    use crate::supervision::schedule::Schedule;
    use crate::supervision::todos::SharedTodoList;
    use crate::test_context::{TestContext, user_message};

    async fn open(test: &mut TestContext, hooks: Hooks) -> Result<(), AgentError> {
        open_with(test, hooks, &mut supervision()).await
    }

    fn supervision() -> Supervision {
        let todos = Arc::new(SharedTodoList::new(crate::Clock::new(|| journeyman_protocol::UnixMillis(1))));
        Supervision::new(todos, Arc::new(Schedule::default()), 0)
    }

    async fn open_with(
        test: &mut TestContext,
        hooks: Hooks,
        supervision: &mut Supervision,
    ) -> Result<(), AgentError> {
        let mut opening = TaskOpening {
            cx: &mut test.cx,
            requests: &RequestBuilder::new(Arc::new(Registry::with_builtin_at(&test.root)), true),
            approvals: &mut test.approvals,
            hooks: &mut HookDispatch::new(hooks),
            supervision,
            verification: &mut Verification::new(Arc::new(|_: &str| None)),
            checkpoints: &mut test.checkpoints,
            copy_updates: &mut CopyUpdates::default(),
            delegation: None,
        };
        opening.run(&CancellationToken::new()).await
    }

    #[tokio::test]
    async fn only_the_first_task_packs_the_context() {
        let mut test = TestContext::new(&[("a.rs", "fn main() {}\n")]).await;
        test.cx.shared.add_queued(user_message(1, "add a test"));
        open(&mut test, Hooks::none()).await.unwrap();
        assert!(test.last_text().contains("a.rs") && test.last_text().contains("add a test"));
        assert!(!test.cx.transcript.state().system.is_empty());
        test.cx.shared.add_queued(user_message(2, "and another"));
        open(&mut test, Hooks::none()).await.unwrap();
        assert_eq!(test.cx.shared.queued_messages(), []);
        let kinds: Vec<&str> = test.events().await.iter().map(Event::kind).collect();
        assert_eq!(kinds, ["run_started", "state_changed", "context_packed", "run_started"]);
        assert!(test.last_text().ends_with("and another"), "{}", test.last_text());
    }

    #[tokio::test]
    async fn the_commit_of_lines_that_a_task_names_comes_with_a_message_or_after_a_step() {
        let mut test = TestContext::new(&[("a.rs", "fn main() {}\n"), ("vault/b.rs", "fn b() {}\n")]).await;
        use_git(&mut test);
        commit_all(&test, "Begin with main");
        test.set_rules("[[rule]]\npaths = ['vault/**']\ndecision = 'deny'");
        test.cx.shared.add_queued(user_message(1, "it fails at a.rs:1:4, called from vault/b.rs:1"));
        let mut supervision = supervision();
        open_with(&mut test, Hooks::none(), &mut supervision).await.unwrap();
        let said = |test: &TestContext| format!("{:?}", test.cx.transcript.state().messages);
        while !said(&test).contains("Begin with main (a.rs:1-3)") {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let seen = journeyman_tools::SeenFiles::default();
            supervision
                .supervise_step(&mut test.cx, crate::supervision::SupervisedStep::of(&seen))
                .await
                .unwrap();
        }
        assert!(!said(&test).contains("(vault/b.rs:"), "{}", said(&test));
    }

    #[tokio::test]
    async fn a_session_with_an_index_is_told_of_uncommitted_changes() {
        let files = [("a.rs", "fn main() {}\n"), ("vault/b.rs", "fn b() {}\n"), ("c.rs", "fn c() {}\n")];
        let mut test = TestContext::new(&files).await;
        use_git(&mut test);
        commit_all(&test, "Begin with main");
        test.set_rules("[[rule]]\npaths = ['vault/**']\ndecision = 'deny'");
        for path in ["a.rs", "vault/b.rs", "new.rs"] {
            std::fs::write(test.root.join(path), "fn changed() {}\n").unwrap();
        }
        std::fs::remove_file(test.root.join("c.rs")).unwrap();
        let index = Arc::clone(&test.cx.index);
        let built = tokio::task::spawn_blocking(move || index.snapshot(&CancellationToken::new()).map(drop));
        built.await.unwrap().unwrap();
        test.cx.settings.index_timeout = Some(Duration::from_secs(3_600));
        test.cx.shared.add_queued(user_message(1, "finish what I began in main"));
        open(&mut test, Hooks::none()).await.unwrap();
        let line = "Uncommitted changes from before the task: a.rs c.rs (deleted) new.rs (new)";
        assert!(test.last_text().contains(line), "{}", test.last_text());
    }

    #[tokio::test]
    async fn a_message_whose_screening_ends_with_the_session_stays_queued() {
        let mut test = TestContext::new(&[]).await;
        let category = journeyman_protocol::ReminderCategory::General;
        for text in ["add a test", "and another"] {
            test.inbox.accept(MessageKind::User, category, text.to_owned()).await.unwrap();
        }
        let closing = test.cx.shared.closing.clone();
        let hangs = HooksBuilder::new().on_prompt_async(move |_, _| {
            closing.cancel();
            Box::pin(std::future::pending())
        });
        open(&mut test, hangs.build()).await.unwrap();
        let queue = test.reloaded_state().await.queue;
        let texts: Vec<&str> = queue.iter().map(|queued| queued.text.as_str()).collect();
        assert_eq!(texts, ["add a test", "and another"], "no hook has refused them");
    }

    #[tokio::test]
    async fn a_refused_task_is_taken_and_notices_wait_for_the_next() {
        let mut test = TestContext::new(&[]).await;
        let notice = QueuedMessage { kind: MessageKind::System, ..user_message(1, "a command ended") };
        test.cx.shared.add_queued(notice.clone());
        test.cx.shared.add_queued(user_message(2, "bad"));
        let denies = HooksBuilder::new().on_prompt(|_, _| GateDecision::Deny { reason: "no".to_owned() });
        let refused = open(&mut test, denies.build()).await;
        assert!(matches!(refused, Err(AgentError::HookDenied { .. })), "{refused:?}");
        assert_eq!(test.cx.shared.queued_messages(), [notice]);
        assert_eq!(test.cx.transcript.state().messages, []);
    }
}
