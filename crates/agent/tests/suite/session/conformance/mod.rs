//! The behaviour that sessions are held to, case by case. Each case is one test, `case_NN_…`.
//!
//! | cases | where |
//! |---|---|
//! | 1–7, 33, 34 | `lifecycle`: a session's life, snapshots, forks, resuming |
//! | 8–11 | `hooks`: what looks on and steps in |
//! | 12–14, 38, 43 | `log`: subscriptions, a store that fails, numbers over restarts, a damaged file |
//! | 15, 16, 37 | `queue`: messages and reminders |
//! | 17–21, 44 | `permission`: who may do what, approvals, secrets, one writer |
//! | 22–24 | `bookkeeping`: todos, the schedule |
//! | 25, 26, 35, 36 | `calls`: limits, interrupts, what is cut off |
//! | 27, 28, 30, 31, 39–41 | `files`: freshness, the sandbox, edits, commands in the background, links |
//! | 32 | `pool`: many sessions, and messages between them |
//! | 17, 32, 42 in agents; the reference's 27 | `agents`: lists of tools, delegation, depth, compaction |
//! | faults of another agent | `faults`: the table of all, and those of agents |
//! | 7, 35, 38, 44 with processes that are killed | the command line's own tests, `conformance` |
//!
//! Adapted: in 5 a snapshot is a place of the log with a name, and a place without one is its
//! bookmark; in 9 the third hook is `post_append`; the list of 17 is an agent's list of tools, and
//! denying and asking are rules' and hooks'; in 18 and 19 the modes are ours, and one that is
//! unknown refuses; in 30 a call with several edits is all or nothing; in 31 the id of a command
//! that was killed says that it ended, and one that never was is not found; in 35 a call that
//! awaits approval is asked for again, and one that ran is interrupted. 29 (a full context) is in
//! `compaction`.

pub(crate) mod agents;
pub(crate) mod bookkeeping;
pub(crate) mod calls;
pub(crate) mod faults;
pub(crate) mod files;
pub(crate) mod hooks;
pub(crate) mod lifecycle;
pub(crate) mod log;
pub(crate) mod permission;
pub(crate) mod pool;
pub(crate) mod queue;
