//! Paths within a project, as text.

/// Maximum bytes of a path that is looked up.
pub(super) const MAX_PATH_BYTES: usize = 4096;

/// Returns the folder of a path, without a trailing slash; empty for the root.
pub(in crate::graph) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the last part of a path.
pub(in crate::graph) fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Joins a path to a folder, and removes `.` and `..`. `None` if it leaves the project.
pub(super) fn join_path(folder: &str, relative: &str) -> Option<String> {
    if folder.len() + relative.len() > MAX_PATH_BYTES {
        return None;
    }
    // Most need no removal; folders of the project never do.
    let plain = |path: &str| !path.is_empty() && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if plain(relative) && (folder.is_empty() || plain(folder)) {
        let slash = if folder.is_empty() { "" } else { "/" };
        return Some([folder, slash, relative].concat());
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(relative.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the folder and its ancestors, from the inside out, the root last.
pub(super) fn folder_and_ancestors(folder: &str) -> impl Iterator<Item = &str> {
    let mut next = Some(folder);
    std::iter::from_fn(move || {
        let here = next?;
        next = (!here.is_empty()).then(|| parent(here));
        Some(here)
    })
}
