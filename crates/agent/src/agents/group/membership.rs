//! The place of one agent in a group: its messages and its reminders.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use journeyman_tools::Tool;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::channel::{GroupChannel, GroupChannelMember, MemberSession};
use super::channel_tools::{SendMessage, WaitForMessage};
use super::spec::GroupReminder;

/// The place of one agent in a group.
pub(crate) struct Membership {
    channel: GroupChannel,
    name: String,
    reminders: Vec<GroupReminder>,
    arrived: Arc<Notify>,
    timers: JoinSet<()>,
}

impl Membership {
    pub(super) fn new(channel: &GroupChannel, name: String, reminders: Vec<GroupReminder>) -> Self {
        let (channel, arrived) = (channel.clone(), Arc::default());
        Self { channel, name, reminders, arrived, timers: JoinSet::new() }
    }

    /// Returns the agent's name in the group.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the tools that the agent sends and awaits messages with.
    pub(crate) fn tools(&self) -> [Box<dyn Tool>; 2] {
        [
            Box::new(SendMessage::new(self.channel.clone(), self.name.clone())),
            Box::new(WaitForMessage::new(self.channel.clone(), self.name.clone(), Arc::clone(&self.arrived))),
        ]
    }

    /// Takes the agent's session into the group, and begins its reminders.
    ///
    /// # Errors
    /// A sentence if the name can't be a member's.
    pub(crate) fn join(&mut self, seat: Arc<dyn MemberSession>) -> Result<(), String> {
        let member = GroupChannelMember { seat: Arc::clone(&seat), arrived: Arc::clone(&self.arrived) };
        self.channel.0.join(self.name.clone(), member).map_err(|error| error.to_string())?;
        for (place, reminder) in self.reminders.iter().enumerate() {
            let text = reminder.text.clone();
            if let Some(steps) = reminder.every_steps.and_then(NonZeroU64::new) {
                seat.remind_every(format!("reminder {}", place + 1), steps, text)?;
            } else if let Some(seconds) = reminder.every_seconds {
                let seat = Arc::clone(&seat);
                self.timers.spawn(async move {
                    loop {
                        tokio::time::sleep(Duration::from_secs(seconds.max(1))).await;
                        if seat.remind(text.clone()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        }
        Ok(())
    }

    /// Takes the agent out of the group, and tells the others.
    pub(crate) async fn leave(&mut self) {
        self.timers.abort_all();
        if self.channel.0.leave(&self.name) {
            // Members that ended meanwhile need not be told.
            self.channel.0.send_message(&self.name, "has ended").await.ok();
        }
    }
}
