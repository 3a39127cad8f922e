//! The definition of a group.

use std::collections::BTreeSet;

use journeyman_policy::MAIN_AGENT;
use serde::{Deserialize, Serialize};

use crate::agents::channel::check_name;

/// Maximum members of a group. All members work at once, and a session runs no more agents at a
/// time.
pub const MAX_MEMBERS: usize = 4;
/// Maximum reminders of a group.
const MAX_REMINDERS: usize = 16;
/// The beginning of the message that starts a group, before the names of the members.
const MESSAGE_HEADING: &str = "A group of agents: ";
/// The texts around the group in this message. A blank line is in no name.
const GROUP_TAGS: [&str; 2] = ["\n\n<group>", "</group>"];

/// Agents that work at once.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The members.
    #[serde(default, rename = "member")]
    pub members: Vec<GroupMember>,
    /// Texts that members are reminded of.
    #[serde(default, rename = "reminder", skip_serializing_if = "Vec::is_empty")]
    pub reminders: Vec<GroupReminder>,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupMember {
    /// The name that other members mention as `@name`.
    pub name: String,
    /// The name of the agent's definition.
    pub agent: String,
    /// The task: the agent's first input.
    pub task: String,
}

/// A text that a member is reminded of again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupReminder {
    /// The member.
    pub to: String,
    /// The text.
    pub text: String,
    /// The interval in steps of the member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_steps: Option<u64>,
    /// The interval in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_seconds: Option<u64>,
}

impl GroupMember {
    /// Checks that the member doesn't have the name of another one of these agents, or that of the
    /// session itself: rules speak of agents by their names.
    ///
    /// # Errors
    /// A sentence that names the member.
    pub fn check_name_unique<'a>(&self, mut agents: impl Iterator<Item = &'a str>) -> Result<(), String> {
        let Self { name, agent, .. } = self;
        if name != agent && (name == MAIN_AGENT || agents.any(|other| other == name)) {
            return Err(format!(
                "the member `{name}` can't have the name of another agent than `{agent}`, because rules speak of \
                 agents by their names"
            ));
        }
        Ok(())
    }
}

impl Group {
    /// Checks the members and the reminders.
    ///
    /// # Errors
    /// A sentence that names what is wrong.
    pub fn check(&self) -> Result<(), String> {
        if self.members.is_empty() || self.members.len() > MAX_MEMBERS {
            return Err(format!(
                "a group has 1 to {MAX_MEMBERS} members, and this one has {}",
                self.members.len()
            ));
        }
        let mut names = BTreeSet::new();
        for member in &self.members {
            check_name(&member.name).map_err(|error| error.to_string())?;
            if !names.insert(member.name.as_str()) {
                return Err(format!("two members are named `{}`", member.name));
            }
            if member.task.trim().is_empty() {
                return Err(format!("the member `{}` has no task", member.name));
            }
        }
        if self.reminders.len() > MAX_REMINDERS {
            return Err(format!("a group has at most {MAX_REMINDERS} reminders"));
        }
        for reminder in &self.reminders {
            if !names.contains(reminder.to.as_str()) {
                return Err(format!("a reminder is for `{}`, who is no member", reminder.to));
            }
            let intervals = [reminder.every_steps, reminder.every_seconds];
            if intervals.iter().flatten().count() != 1 || intervals.contains(&Some(0)) {
                return Err(format!(
                    "the reminder of `{}` needs either `every_steps` or `every_seconds`, 1 or more",
                    reminder.to
                ));
            }
        }
        Ok(())
    }

    /// Returns the message that starts the group.
    #[must_use]
    pub fn to_message(&self) -> String {
        let names: Vec<&str> = self.members.iter().map(|member| member.name.as_str()).collect();
        let json = serde_json::to_string(self).unwrap_or_default();
        format!("{MESSAGE_HEADING}{}{}{json}{}", names.join(", "), GROUP_TAGS[0], GROUP_TAGS[1])
    }

    /// Parses a message that starts a group. Returns `None` for a message with any other text,
    /// which may quote the tags.
    pub(super) fn from_message(text: &str) -> Option<Self> {
        let (_, rest) = text.strip_prefix(MESSAGE_HEADING)?.split_once(GROUP_TAGS[0])?;
        let json = rest.strip_suffix(GROUP_TAGS[1])?;
        let group: Self = serde_json::from_str(json).ok()?;
        group.check().is_ok().then_some(group)
    }

    /// Returns the reminders of a member.
    pub(super) fn reminders_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a GroupReminder> {
        self.reminders.iter().filter(move |reminder| reminder.to == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str) -> GroupMember {
        GroupMember { name: name.to_owned(), agent: "investigator".to_owned(), task: "Look.".to_owned() }
    }

    fn reminder(to: &str, every_steps: Option<u64>, every_seconds: Option<u64>) -> GroupReminder {
        GroupReminder { to: to.to_owned(), text: "x".to_owned(), every_steps, every_seconds }
    }

    #[test]
    fn a_group_is_read_from_its_message_alone() {
        let group =
            Group { members: vec![member("a"), member("b")], reminders: vec![reminder("a", Some(2), None)] };
        let message = group.to_message();
        assert_eq!(Group::from_message(&message), Some(group));
        for text in ["no group".to_owned(), format!("A file:\n{message}"), format!("{message}\nmore")] {
            assert_eq!(Group::from_message(&text), None, "{text}");
        }
    }

    #[test]
    fn a_task_may_hold_the_marks_of_a_group() {
        let other = Group { members: vec![member("x")], reminders: Vec::new() }.to_message();
        for task in ["Look for <group> and </group>.", "a\n\n<group>", other.as_str(), "</group>"] {
            let one = GroupMember { task: task.to_owned(), ..member("a") };
            let group = Group { members: vec![one], reminders: Vec::new() };
            assert_eq!(Group::from_message(&group.to_message()), Some(group));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let with = |members, reminders| Group { members, reminders }.check().unwrap_err();
        let blank = GroupMember { task: " ".to_owned(), ..member("a") };
        for (error, named) in [
            (with(Vec::new(), Vec::new()), "1 to 4 members"),
            (with(vec![member("a"), member("a")], Vec::new()), "two members are named `a`"),
            (with(vec![blank], Vec::new()), "no task"),
            (with(vec![member("")], Vec::new()), "`` can't be a member's name"),
            (with(vec![member(" ")], Vec::new()), "no blank at either end"),
            (with(vec![member("a\u{1b}[2J\nb")], Vec::new()), "`a\\u{1b}[2J\\nb` can't be"),
            (with(vec![member(&"a".repeat(9_000))], Vec::new()), "a…` can't be"),
            (with(vec![member("a")], vec![reminder("b", Some(1), None)]), "`b`, who is no member"),
            (with(vec![member("a")], vec![reminder("a", None, None)]), "either"),
            (with(vec![member("a")], vec![reminder("a", Some(0), None)]), "either"),
            (with(vec![member("a")], vec![reminder("a", Some(1), Some(1))]), "either"),
        ] {
            assert!(error.contains(named), "{error}");
        }
    }
}
