//! Several agents at once: members of a group, who send each other messages by name.
//!
//! A group is a session whose model is a [`GroupDirector`]: it starts each member by one call, and
//! sums up their results. So a group has one log, one budget and one verification, and continues
//! after a crash as any session does.

mod channel;
mod channel_tools;
mod director;
mod member_tool;
mod membership;
mod spec;

pub(crate) use channel::MemberSession;
pub use director::GroupDirector;
pub(crate) use director::failed_members;
pub(crate) use member_tool::GroupMemberTool;
pub(crate) use membership::Membership;
pub use spec::{Group, GroupMember, GroupReminder, MAX_MEMBERS};
