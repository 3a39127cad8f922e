//! Repairs by checks: linters fix new failures before these are fed back to the model.

use journeyman_protocol::{CheckKind, Evidence};
use journeyman_verify::{Check, fix_for_files};
use tokio_util::sync::CancellationToken;

use super::{CheckPermissionId, TestedTree, Verification};
use crate::AgentError;
use crate::approval::approvals::Approvals;
use crate::session::context::SessionContext;
use crate::transcript::record::Record;

impl Verification {
    /// Runs the fix commands of failing linters on the changed files. Returns true if files
    /// changed, so that the checks have to run again. Failures from before the task are not fixed.
    pub(crate) async fn repair_lint(
        &mut self,
        cx: &mut SessionContext,
        approvals: &mut Approvals,
        evidence: &[Evidence],
        stop: &CancellationToken,
    ) -> Result<bool, AgentError> {
        if !cx.settings.lint_fix {
            return Ok(false);
        }
        let fails_newly = |check: &&Check| {
            let of =
                evidence.iter().find(|one| one.command == check.command && one.directory == check.directory);
            check.kind == CheckKind::Lint
                && of.is_some_and(|one| one.has_relevant_failure() && !one.has_only_old_failures())
        };
        let failing = self.ran.iter().filter(fails_newly);
        let repairs: Vec<Check> = failing.filter_map(|check| fix_for_files(check, &self.changed)).collect();
        let mut has_changed = false;
        for (place, repair) in repairs.into_iter().enumerate() {
            approvals.register_checks(vec![repair.command.clone()]);
            let id = CheckPermissionId { what: "repair", place };
            if self.authorize_check(cx, approvals, &repair, id, stop).await?.is_some() || stop.is_cancelled()
            {
                continue;
            }
            let workspace = std::sync::Arc::clone(&cx.workspace);
            // A linter that can't repair all that it finds fails again in the next round.
            self.run_checks_in(cx, workspace, std::slice::from_ref(&repair), TestedTree::Session, stop)
                .await?;
            let changed = self.changes.take_rewritten();
            if !changed.is_empty() {
                let files: Vec<String> = changed.iter().map(ToString::to_string).collect();
                let summary = format!("`{}` changed {}", repair.command, files.join(", "));
                cx.transcript.record(Record::Edited { summary });
                has_changed = true;
            }
        }
        Ok(has_changed)
    }
}
