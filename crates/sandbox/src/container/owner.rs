//! The owner of a container, and the removal of containers whose owner is gone.
//!
//! A container ends by itself when its owner does: its first process reads from a connection that
//! the owner holds, and ends with it. The sweep removes the remains of a daemon that was killed at
//! the wrong moment.

use std::collections::HashMap;
use std::fs;

use bollard::Docker;
use bollard::errors::Error as ApiError;
use bollard::models::ContainerSummaryStateEnum;
use bollard::query_parameters::ListContainersOptionsBuilder;

use super::client::remove_container;

/// The label that all of ours have.
pub(super) const OWNER_LABEL: &str = "journeyman.owner";
/// Maximum containers that one sweep looks at: far more than sessions leave behind.
const MAX_SWEPT_CONTAINERS: usize = 1000;

/// A process, distinguished from every other process of this and any other boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    boot: String,
    /// Numbers of processes mean something within one namespace alone.
    namespace: String,
    process: u32,
    /// Clock ticks after the boot; a number is used again, a start isn't.
    started: u64,
}

impl Owner {
    /// Returns this process as an owner.
    pub(super) fn this_process() -> Option<Self> {
        let process = std::process::id();
        Some(Self { boot: boot_id()?, namespace: pid_namespace()?, process, started: start_ticks(process)? })
    }

    pub(super) fn label(&self) -> String {
        format!("{} {} {} {}", self.boot, self.namespace, self.process, self.started)
    }

    fn parse(label: &str) -> Option<Self> {
        let mut parts = label.split(' ');
        let owner = Self {
            boot: parts.next()?.to_owned(),
            namespace: parts.next()?.to_owned(),
            process: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(owner)
    }

    /// Returns true if this process can tell that the owner is gone. Owners in another namespace
    /// are left alone, and so are containers that run since before a boot: they belong to another
    /// machine that has this machine's socket.
    fn is_gone(&self, running: bool) -> bool {
        if boot_id().as_ref() != Some(&self.boot) {
            return !running;
        }
        pid_namespace().as_ref() == Some(&self.namespace) && start_ticks(self.process) != Some(self.started)
    }
}

fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty() && !id.contains(' '))
}

fn pid_namespace() -> Option<String> {
    fs::read_link("/proc/self/ns/pid").ok()?.to_str().map(str::to_owned)
}

/// Returns the start of a process, the 22nd field of `stat`; the second may have blanks and
/// parentheses.
fn start_ticks(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Removes containers of this program whose owner is gone, and returns their number.
pub(super) async fn remove_orphaned_containers(docker: &Docker) -> Result<usize, ApiError> {
    let filters = HashMap::from([("label", vec![OWNER_LABEL])]);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let mut removed = 0;
    for container in docker.list_containers(Some(options)).await?.into_iter().take(MAX_SWEPT_CONTAINERS) {
        let label = container.labels.as_ref().and_then(|labels| labels.get(OWNER_LABEL));
        let running = container.state == Some(ContainerSummaryStateEnum::RUNNING);
        let gone = label.and_then(|label| Owner::parse(label)).is_some_and(|owner| owner.is_gone(running));
        if let (true, Some(id)) = (gone, &container.id) {
            remove_container(docker, id).await?;
            removed += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_living_are_left_alone() {
        let own = Owner::this_process().unwrap();
        assert_eq!(Owner::parse(&own.label()).as_ref(), Some(&own));
        assert!(!own.is_gone(true) && !own.is_gone(false));
        let reused = Owner { started: own.started + 1, ..own.clone() };
        assert!(reused.is_gone(true));
        let elsewhere = Owner { namespace: "pid:[1]".to_owned(), ..reused.clone() };
        assert!(!elsewhere.is_gone(true));
        let before = Owner { boot: "another".to_owned(), ..reused };
        assert!(before.is_gone(false) && !before.is_gone(true));
    }

    #[test]
    fn strange_labels_are_nobodys() {
        for label in ["", "a", "a b c d", "a b 1", "a b 1 2 3", "a b -1 2"] {
            assert_eq!(Owner::parse(label), None, "{label}");
        }
    }
}
