//! Groups of agents, given by names or by a file.

use std::path::Path;

use journeyman_agent::agents::AgentInput;
use journeyman_agent::agents::group::{Group, GroupMember};
use journeyman_protocol::Mode;
use journeyman_root_fs::read_path;

use super::loader::LoadedAgents;
use crate::HostError;

/// Maximum bytes of a file that describes a group.
const MAX_GROUP_FILE_BYTES: u64 = 256 * 1024;

/// Reads a group from a regular file: TOML with `[[member]]` and `[[reminder]]`.
///
/// # Errors
/// [`HostError::Usage`] naming the line that is wrong.
pub fn read_group_file(path: &Path) -> Result<Group, HostError> {
    let shown = path.display();
    let refused = |why: &dyn std::fmt::Display| HostError::usage(format_args!("{shown}: {why}"));
    let read = read_path(path, MAX_GROUP_FILE_BYTES).map_err(|error| refused(&error))?;
    let bytes = read.ok_or_else(|| {
        refused(&format_args!("it has more than {MAX_GROUP_FILE_BYTES} bytes, which is the most"))
    })?;
    let text = String::from_utf8(bytes).map_err(|_| refused(&"it is not UTF-8"))?;
    toml::from_str(&text).map_err(|error| refused(&error))
}

/// Makes a group of these agents, each `AGENT` or `NAME=AGENT`, which all get the same task.
#[must_use]
pub fn build_group(agents: &[String], task: &str) -> Group {
    let member = |word: &String| {
        let (name, agent) = word.split_once('=').unwrap_or((word, word));
        GroupMember { name: name.to_owned(), agent: agent.to_owned(), task: task.to_owned() }
    };
    Group { members: agents.iter().map(member).collect(), reminders: Vec::new() }
}

/// Checks that a group can be run, and returns the mode that is wide enough for all of its members;
/// `None` for that of the session.
///
/// # Errors
/// [`HostError::Usage`] naming the member.
pub fn check_group(group: &Group, agents: &LoadedAgents) -> Result<Option<Mode>, HostError> {
    group.check().map_err(HostError::usage)?;
    let mut reads_only = true;
    for member in &group.members {
        let definition = &agents.find(&member.agent)?.definition;
        let names = agents.agents.iter().map(|agent| agent.definition.name.as_str());
        member.check_name_unique(names).map_err(HostError::usage)?;
        let needs = |input: &&AgentInput| input.required;
        if let Some(input) = definition.inputs.iter().skip(1).find(needs) {
            return Err(HostError::usage(format_args!(
                "the agent `{}` needs the input `{}` beside its task, which a group can't give",
                member.agent, input.name
            )));
        }
        reads_only &= definition.mode == Mode::Plan;
    }
    Ok(reads_only.then_some(Mode::Plan))
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode as FileMode, mknodat};

    use super::*;

    #[test]
    fn a_group_is_read_from_a_regular_file_of_bounded_size() {
        let dir = tempfile::tempdir().unwrap();
        let (fifo, long) = (dir.path().join("fifo"), dir.path().join("long.toml"));
        mknodat(CWD, &fifo, FileType::Fifo, FileMode::RWXU, 0).unwrap();
        std::fs::write(&long, "#".repeat(300_000)).unwrap();
        for (path, said) in [
            (fifo.as_path(), "regular file"),
            (Path::new("/dev/zero"), "regular file"),
            (long.as_path(), "more than 262144 bytes"),
            (dir.path(), "regular file"),
        ] {
            let error = read_group_file(path).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
