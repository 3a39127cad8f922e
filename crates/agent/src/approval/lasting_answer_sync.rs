//! Synchronizes the lasting answers of a session with the sessions that share them.

use journeyman_protocol::Decision;

use super::approvals::{Approvals, IndexedOutcome};
use super::authorization::{ApprovedCall, JudgedCall, PermissionQuestion};
use super::decision_record::record_approval;
use super::lasting_answers::{LastingAnswer, LastingAnswers};
use crate::session::context::SessionContext;
use crate::transcript::record::Record;

impl Approvals {
    /// Shares the lasting answers with other sessions, whose answers so far hold at once.
    pub(crate) fn with_lasting_answers(mut self, lasting: LastingAnswers) -> Self {
        self.lasting = lasting;
        self.apply_lasting_answers();
        self
    }

    /// Adds the new lasting answers to the policy, and returns them.
    fn apply_lasting_answers(&mut self) -> Vec<LastingAnswer> {
        let answers = self.lasting.answers_after(self.lasting_count);
        for answer in &answers {
            self.policy = std::mem::take(&mut self.policy).with_rules(answer.rules.clone());
        }
        self.lasting_count += answers.len();
        answers
    }

    /// Takes over the lasting answers that were given in this session and in those that share them.
    /// The session that a person started keeps them all in its log; an agent keeps its own.
    pub(crate) fn take_lasting_answers(&mut self, cx: &mut SessionContext) -> Vec<LastingAnswer> {
        let is_root = cx.role().is_none_or(|role| role.parent.is_none());
        let answers = self.apply_lasting_answers();
        for answer in answers.iter().filter(|answer| is_root || answer.session == cx.session) {
            cx.transcript.record(Record::Allowed { rule: answer.rules.to_toml() });
        }
        answers
    }

    /// Allows the calls with open questions that new lasting answers cover.
    pub(super) fn allow_covered_calls(
        &mut self,
        cx: &mut SessionContext,
        open: &mut [Option<(ApprovedCall, PermissionQuestion)>],
        answered: &mut Vec<IndexedOutcome>,
    ) {
        let answers = self.take_lasting_answers(cx);
        let Some(by) = answers.last().map(|answer| answer.by.clone()) else { return };
        for (place, slot) in open.iter_mut().enumerate() {
            let covered = slot.as_ref().is_some_and(|(ready, asked)| self.rules_allow(ready, asked));
            if covered && let Some((mut ready, _)) = slot.take() {
                cx.shared.withdraw_question(&ready.call.id);
                record_approval(cx, &mut ready, None, &by);
                answered.push((place, Ok(ready)));
            }
        }
    }

    /// Returns true if the current rules allow a call that is being asked about. A question without
    /// a rule, such as a hook's, stays open.
    fn rules_allow(&self, ready: &ApprovedCall, asked: &PermissionQuestion) -> bool {
        let JudgedCall { mode, sandbox, .. } = asked.judged.clone();
        let now = self.judge_in_mode(&ready.call.name, &ready.effects, mode, sandbox);
        asked.rules.is_some() && now.verdict.decision == Decision::Allow
    }
}
