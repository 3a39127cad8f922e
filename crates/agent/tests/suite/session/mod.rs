//! The session as a library user drives it.

mod agents;
mod approvals;
mod calls;
mod compaction;
mod conformance;
mod copies;
mod cut_off;
mod events;
mod forks;
mod guard;
mod honesty;
mod intent;
mod interrupt;
mod knowing;
mod messages;
mod outcomes;
mod outside;
mod permissions;
mod prose_edits;
mod questions;
mod queue;
mod redaction;
mod resuming;
mod review;
mod stable_prefix;
mod stores;
pub(crate) mod support;
mod text_protocol;
mod trying;
mod turn_phases;

use crate::harness::Case;

/// The cases of all modules.
pub(crate) fn cases() -> Vec<Case> {
    [
        agents::background::CASES,
        agents::delegation::CASES,
        agents::ending::CASES,
        agents::group::CASES,
        agents::lasting::CASES,
        agents::limits::CASES,
        agents::many::CASES,
        agents::planning::CASES,
        approvals::CASES,
        turn_phases::CASES,
        calls::CASES,
        compaction::CASES,
        conformance::agents::CASES,
        conformance::bookkeeping::CASES,
        conformance::calls::CASES,
        conformance::faults::CASES,
        conformance::files::CASES,
        conformance::hooks::CASES,
        conformance::lifecycle::CASES,
        conformance::log::CASES,
        conformance::permission::CASES,
        conformance::pool::CASES,
        conformance::queue::CASES,
        copies::CASES,
        cut_off::CASES,
        events::CASES,
        forks::CASES,
        guard::CASES,
        honesty::CASES,
        intent::CASES,
        interrupt::CASES,
        knowing::CASES,
        messages::CASES,
        outcomes::CASES,
        outside::CASES,
        permissions::CASES,
        prose_edits::CASES,
        questions::CASES,
        queue::CASES,
        redaction::CASES,
        resuming::CASES,
        review::CASES,
        stable_prefix::CASES,
        stores::CASES,
        text_protocol::CASES,
        trying::CASES,
    ]
    .concat()
}
