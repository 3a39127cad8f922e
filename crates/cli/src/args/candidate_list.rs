//! The candidates that `jm run --candidates` names.

use journeyman_agent::candidates::MAX_CANDIDATES;
use journeyman_host::candidates::CandidateList;

/// Parses `3` or `claude,codex,own`.
pub(super) fn parse_candidates(argument: &str) -> Result<CandidateList, String> {
    let range = 2..=MAX_CANDIDATES;
    if let Ok(count) = argument.parse::<u32>() {
        return match range.contains(&count) {
            true => Ok(CandidateList::Count(count)),
            false => Err(format!("{count} is not in 2..={MAX_CANDIDATES}")),
        };
    }
    let names: Vec<String> = argument.split(',').map(|name| name.trim().to_owned()).collect();
    let count = u32::try_from(names.len()).unwrap_or(u32::MAX);
    if names.iter().any(String::is_empty) || !range.contains(&count) {
        return Err(format!("give a number, or 2 to {MAX_CANDIDATES} names such as claude,codex,own"));
    }
    Ok(CandidateList::Names(names))
}
