//! The dependency graph of a project, and the set of changes for `jm impact`.

use std::path::Path;
use std::sync::Arc;

use journeyman_git::{EntryStatus, Git, StatusChange, StatusEntry};
use journeyman_index::graph::{ChangedPart, ChangedSourceFile, DeletedFile, Edge, Graph, UNIQUE_NAME_WEIGHT};
use journeyman_protocol::RelPath;
use journeyman_sandbox::clean_output;

use super::answers::EdgeReason;
use super::open::CodeIndex;
use crate::{Context as _, HostError};

/// Maximum size of a file's text in the last commit, in bytes; longer files are generated.
const MAX_COMMITTED_TEXT_BYTES: usize = 1 << 20;
/// Maximum number of files whose text git is asked for: each takes some milliseconds.
const MAX_GIT_READ_FILES: usize = 200;

/// The files that differ from the last commit.
#[derive(Default)]
struct WorkTreeDiff {
    /// Existing files with the text that they had, if they had one.
    there: Vec<(String, Option<String>)>,
    gone: Vec<DeletedFile>,
}

/// The dependency graph of a project, with the files that a user names in it.
pub struct CodeGraph {
    /// The project's index.
    pub index: CodeIndex,
    /// The graph.
    pub graph: Arc<Graph>,
}

impl CodeGraph {
    /// Builds the graph of an index.
    #[must_use]
    pub fn new(index: CodeIndex) -> Self {
        let graph = index.project.graph(&index.snapshot);
        Self { index, graph }
    }

    /// Returns the file that a user names.
    ///
    /// # Errors
    /// [`HostError::Usage`] saying why the file isn't in the graph.
    pub fn find_file(&self, path: &str) -> Result<u32, HostError> {
        resolve_path(&self.graph, &self.index, path)
    }

    /// Returns the present text of a file.
    #[must_use]
    pub fn read_text(&self, file: u32) -> Option<String> {
        self.index.project.read_text(&RelPath::parse(self.graph.path(file)).ok()?)
    }

    /// Adds deleted files, with the files that depended on them. Renumbers all files.
    pub fn add_deleted_files(&mut self, gone: &[DeletedFile]) {
        let read = |path: &str| self.index.project.read_text(&RelPath::parse(path).ok()?);
        self.graph = Arc::new(self.graph.with_deleted_files(&self.index.snapshot, gone, &read));
    }

    /// Returns the path of a file, cleaned.
    #[must_use]
    pub fn path(&self, file: u32) -> String {
        clean_output(self.graph.path(file).as_bytes())
    }

    /// Says why one file depends on another one.
    #[must_use]
    pub fn describe_edge(&self, from: u32, to: u32) -> String {
        clean_output(self.graph.describe_edge(&self.index.snapshot, from, to).as_bytes())
    }

    /// Returns the reason why one file depends on another one, as it is printed in JSON.
    pub(super) fn edge_reason(&self, from: u32, to: u32) -> EdgeReason {
        let Edge { line, part, names: weight, .. } = self.graph.edge(from, to).unwrap_or_default();
        let names =
            if weight > 0 { self.graph.shared_names(&self.index.snapshot, from, to) } else { Vec::new() };
        let weight = f64::from(weight) / f64::from(UNIQUE_NAME_WEIGHT);
        EdgeReason { line: (line > 0).then_some(line), part, weight, names }
    }
}

fn resolve_path(graph: &Graph, index: &CodeIndex, path: &str) -> Result<u32, HostError> {
    let similar = |path: &str| graph.similar_paths(path).into_iter().map(str::to_owned).collect();
    index.paths.find_file(path, &|path| graph.find_file(path), &similar)
}

/// Returns the files near the one that a user names, as the search takes them.
pub(super) fn find_near_files(index: &CodeIndex, path: &str) -> Result<Vec<(u32, u32)>, HostError> {
    let graph = index.project.graph(&index.snapshot);
    Ok(graph.nearby_files(resolve_path(&graph, index, path)?))
}

/// A set of changes to find the impact of.
#[derive(Debug, Default)]
pub struct ChangeSet {
    /// The changed files, or parts of them.
    pub parts: Vec<ChangedSourceFile>,
    /// The paths of files that are gone; they are among the changed files.
    pub gone: Vec<String>,
}

impl ChangeSet {
    /// Collects the changes that a user names, and with `diff` those that differ from the last
    /// commit.
    ///
    /// # Errors
    /// [`HostError`] where a named file isn't in the graph, or git can't tell what differs.
    pub fn collect(known: &mut CodeGraph, paths: &[String], diff: bool) -> Result<Self, HostError> {
        let mut parts =
            paths.iter().map(|path| parse_changed_file(known, path)).collect::<Result<Vec<_>, _>>()?;
        let mut gone = Vec::new();
        if diff {
            let differing = diff_work_tree(&known.index.git(), known.index.paths.root())?;
            // The graph has no ignored files and none whose names aren't text, and nothing in it
            // depends on them.
            parts.extend(differing.there.iter().filter_map(|(path, before)| {
                let file = known.graph.find_file(path)?;
                let part = before.as_ref().and_then(|before| changed_part(known, file, before));
                Some(ChangedSourceFile { file, part })
            }));
            if !differing.gone.is_empty() {
                let paths: Vec<String> =
                    parts.iter().map(|changed| known.graph.path(changed.file).to_owned()).collect();
                known.add_deleted_files(&differing.gone);
                gone = differing.gone.into_iter().map(|gone| gone.path).collect();
                // The numbers of files have changed.
                let renumber = |(path, changed): (String, ChangedSourceFile)| {
                    Some(ChangedSourceFile { file: known.graph.find_file(&path)?, part: changed.part })
                };
                parts = paths.into_iter().zip(parts).filter_map(renumber).collect();
                parts.extend(
                    gone.iter().filter_map(|path| known.graph.find_file(path)).map(ChangedSourceFile::from),
                );
            }
        }
        Ok(Self { parts, gone })
    }
}

/// Parses a file with the lines that may follow its name: `src/a.rs`, `src/a.rs:12`,
/// `src/a.rs:12-20`, and as compilers print it, with the column, `src/a.rs:12:5`.
fn parse_changed_file(known: &CodeGraph, path: &str) -> Result<ChangedSourceFile, HostError> {
    let lines = |text: &str| -> Option<(u32, u32)> {
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        Some((from.parse().ok()?, to.parse().ok()?))
    };
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let split = |path: &'_ str| -> Option<(String, (u32, u32))> {
        let (path, text) = path.rsplit_once(':')?;
        Some((path.to_owned(), lines(text)?))
    };
    let with_column = path.rsplit_once(':').filter(|(_, column)| number(column));
    let split = with_column.and_then(|(rest, _)| split(rest)).or_else(|| split(path));
    let (Some((bare, (from, to))), None) = (split, known.graph.find_file(path)) else {
        return Ok(ChangedSourceFile::from(known.find_file(path)?));
    };
    let file = known.find_file(&bare)?;
    let count = known.read_text(file).map_or(0, |text| text.lines().count());
    if from == 0 || from > to || to as usize > count {
        let shown = clean_output(bare.as_bytes());
        return Err(HostError::usage(format_args!("{shown} has the lines 1 to {count}, not {from} to {to}")));
    }
    Ok(ChangedSourceFile { file, part: Some(ChangedPart { lines: vec![from..=to], gone: Vec::new() }) })
}

/// Returns the part of a file that differs from its earlier text; `None` stands for the whole file.
fn changed_part(known: &CodeGraph, file: u32, before: &str) -> Option<ChangedPart> {
    let language = known.graph.node(file)?.language?;
    ChangedPart::between(language, before, &known.read_text(file)?)
}

/// Returns true if a file that git knows is gone from the tree at `root`: also where a directory or
/// a link stands in its place.
fn is_gone(root: &Path, entry: &StatusEntry) -> bool {
    let was_file = match entry.entry {
        EntryStatus::Tracked { submodule: true, .. }
        | EntryStatus::Untracked { .. }
        | EntryStatus::Ignored => return false,
        EntryStatus::Tracked { staged, unstaged, .. } => [staged, unstaged].contains(&StatusChange::Type),
        EntryStatus::Unmerged => false,
    };
    match root.join(entry.path.as_path()).symlink_metadata() {
        Ok(found) => found.is_dir() || found.is_symlink() && was_file,
        Err(_) => true,
    }
}

fn diff_work_tree(git: &Git, root: &Path) -> Result<WorkTreeDiff, HostError> {
    let status =
        Git::run_blocking(git.status()).context("git can't tell what differs from the last commit")?;
    let (mut differing, mut read) = (WorkTreeDiff::default(), 0);
    for entry in status.entries {
        if entry.entry == EntryStatus::Ignored {
            continue;
        }
        let gone = is_gone(root, &entry);
        let path = entry.path.to_string();
        let untracked = matches!(entry.entry, EntryStatus::Untracked { .. });
        // Without its text a file that is gone is known by its importers alone, and an existing
        // file counts as changed as a whole.
        let text = if read < MAX_GIT_READ_FILES && !untracked {
            read += 1;
            Git::run_blocking(git.show("HEAD", &entry.path, MAX_COMMITTED_TEXT_BYTES)).ok().flatten()
        } else {
            None
        };
        let text = text.and_then(|text| String::from_utf8(text).ok());
        if gone {
            differing.gone.push(DeletedFile { path, text });
        } else {
            differing.there.push((path, text));
        }
    }
    Ok(differing)
}
