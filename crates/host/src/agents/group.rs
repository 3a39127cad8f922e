//! Groups of agents, as a person asks for them: by names, or by a file.

use std::path::Path;

use journeyman_agent::agents::AgentInput;
use journeyman_agent::agents::group::{Group, GroupMember};
use journeyman_protocol::Mode;

use super::levels::LoadedAgents;
use crate::HostError;

/// Maximum bytes of a file that describes a group.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// Reads a group from a file: TOML with `[[member]]` and `[[reminder]]`.
///
/// # Errors
/// [`HostError::Usage`] naming the line that is wrong.
pub fn read_group(path: &Path) -> Result<Group, HostError> {
    let shown = path.display();
    let refused = |why: &dyn std::fmt::Display| HostError::usage(format_args!("{shown}: {why}"));
    let size = std::fs::metadata(path).map_err(|error| refused(&error))?.len();
    if size > MAX_FILE_BYTES {
        return Err(refused(&format_args!("it has {size} bytes, at most {MAX_FILE_BYTES}")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| refused(&error))?;
    toml::from_str(&text).map_err(|error| refused(&error))
}

/// Makes a group of these agents, each `AGENT` or `NAME=AGENT`, which all get the same task.
#[must_use]
pub fn group_of(agents: &[String], task: &str) -> Group {
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
        member.check_name(names).map_err(HostError::usage)?;
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
