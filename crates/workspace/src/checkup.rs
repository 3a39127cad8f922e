//! Checks a project's state for damage, without opening the project: the journals, what they refer
//! to, the ledger, the copies and the heartbeats of commands, each by its own checksums.

use crate::landing::line_file;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_protocol::{ContentHash, SessionId};
use journeyman_store::{Blobs, StoreError};

use crate::commands::heartbeat::{CommandStart, RecoveryStage, heartbeat_paths};
use crate::contents::blob_usage::count_damaged_entries;
use crate::contents::pack_index::read_sections;
use crate::contents::store::{BlobCondition, BlobStore};
use crate::copies::location::{CopyDir, list_copies};
use crate::error::WorkspaceError;
use crate::journal::parsing::{JournalTail, is_journal_gone, parse_lines};
use crate::journal::record::JournalLine;
use crate::limits::MAX_HEARTBEAT_BYTES;
use crate::snapshot::stored_tree::load_tree_with;
use crate::state::lock::state_error;

pub(crate) mod repair;

/// A journal or an index of packs larger than this isn't read: they are cut far below.
const MAX_STATE_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// A damaged file of a project's state, and what that costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// The damage and the loss that it causes, in one line.
    pub cost: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.cost)
    }
}

/// The result of checking a project's state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckupReport {
    /// The damaged files.
    pub damage: Vec<Damage>,
    /// The number of checkpoints in the journal.
    pub checkpoints: usize,
    /// The number of contents that the journal names and that aren't kept. That is no damage: all
    /// projects share one quota.
    pub missing: usize,
}

/// Looks through the state of projects that share their blobs. What was verified for one isn't read
/// again for another.
pub struct Checkup<'a> {
    blobs: &'a Arc<Blobs>,
    /// Receives how many blobs were verified.
    progress: &'a mut dyn FnMut(usize),
    verified: HashMap<ContentHash, BlobCondition>,
}

impl fmt::Debug for Checkup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkup").field("verified", &self.verified.len()).finish_non_exhaustive()
    }
}

/// The blobs that a project needs, and their condition.
#[derive(Default)]
struct NeededBlobs {
    /// Blobs that are needed, whole or not.
    blobs: HashSet<ContentHash>,
    /// Damaged blobs with what is lost: the first thing, and how many more.
    damaged: BTreeMap<[u8; 32], (String, usize)>,
    missing: HashSet<ContentHash>,
    contents: HashSet<ContentHash>,
    chunks: HashSet<ContentHash>,
}

impl NeededBlobs {
    fn note_lost(&mut self, blob: &ContentHash, what: impl FnOnce() -> String) {
        self.damaged
            .entry(*blob.as_bytes())
            .and_modify(|(_, more)| *more += 1)
            .or_insert_with(|| (what(), 0));
    }
}

impl<'a> Checkup<'a> {
    /// Prepares to check projects that store their contents in `blobs`. `progress` receives the
    /// number of blobs verified so far.
    pub fn new(blobs: &'a Arc<Blobs>, progress: &'a mut dyn FnMut(usize)) -> Self {
        Self { blobs, progress, verified: HashMap::new() }
    }

    /// Verifies the state in a project's directory. Nothing is changed, and nobody is kept from
    /// working.
    ///
    /// # Errors
    /// Failures of the medium.
    pub fn check(&mut self, project: &Path) -> Result<CheckupReport, WorkspaceError> {
        let mut findings = CheckupReport::default();
        let journal = journal_path(project);
        let mut lines = check_journal(&journal, &mut findings)?;
        findings.checkpoints = lines.iter().filter(|line| matches!(line, JournalLine::Checkpoint(_))).count();
        for copy in list_copies(project)? {
            check_copy(&copy, &mut findings)?;
            lines.extend(check_journal(&journal_path(&copy.dir.join("state")), &mut findings)?);
        }
        check_heartbeats(project, &mut findings)?;
        self.check_pack_index(project, &mut findings)?;
        let needed = self.check_references(project, &lines)?;
        for (hash, (first, more)) in &needed.damaged {
            let path = self.blobs.path(&ContentHash::from(*hash));
            let more = if *more > 0 { format!(" and {more} more") } else { String::new() };
            findings
                .damage
                .push(Damage { path, cost: format!("the content is damaged; lost are {first}{more}") });
        }
        findings.missing = needed.missing.len();
        check_blob_usage(project, &mut findings)?;
        Ok(findings)
    }

    /// Verifies everything that these lines refer to.
    fn check_references(
        &mut self,
        project: &Path,
        lines: &[JournalLine],
    ) -> Result<NeededBlobs, WorkspaceError> {
        let blob_store = BlobStore::new(Arc::clone(self.blobs), project);
        let mut needed = NeededBlobs::default();
        for line in lines {
            match line {
                JournalLine::Change(record) => {
                    for file in &record.files {
                        if let Some(hash) = file.before.and_then(|before| before.hash) {
                            let what = || format!("what {} was before change {}", file.path, record.id.0);
                            self.check_content(&blob_store, &hash, &mut needed, what)?;
                        }
                    }
                }
                JournalLine::Checkpoint(record) => {
                    self.check_tree(
                        &blob_store,
                        &record.tree,
                        &mut needed,
                        &format!("checkpoint {}", record.id),
                    )?;
                }
                JournalLine::Placed(_)
                | JournalLine::Done(_)
                | JournalLine::Void(_)
                | JournalLine::Dropped(_)
                | JournalLine::Damaged(_) => {}
            }
        }
        Ok(needed)
    }

    fn check_tree(
        &mut self,
        blob_store: &BlobStore,
        tree: &ContentHash,
        needed: &mut NeededBlobs,
        whose: &str,
    ) -> Result<(), WorkspaceError> {
        let blobs = Arc::clone(self.blobs);
        self.check_file_list(tree, needed, whose)?;
        let loaded = load_tree_with(tree, &blobs, |chunk, files| {
            if !needed.chunks.insert(chunk) {
                return Ok(());
            }
            self.check_file_list(&chunk, needed, whose)?;
            let files = match files() {
                Err(WorkspaceError::Lost { .. }) => return Ok(()),
                files => files?,
            };
            for (path, state) in files {
                if let Some(hash) = state.hash {
                    let what = || format!("{} in {whose}", String::from_utf8_lossy(&path));
                    self.check_content(blob_store, &hash, needed, what)?;
                }
            }
            Ok(())
        });
        match loaded {
            Ok(_) | Err(WorkspaceError::Lost { .. }) => Ok(()),
            Err(other) => Err(other),
        }
    }

    fn check_file_list(
        &mut self,
        hash: &ContentHash,
        needed: &mut NeededBlobs,
        whose: &str,
    ) -> Result<(), WorkspaceError> {
        needed.blobs.insert(*hash);
        match self.blob_condition(hash)? {
            BlobCondition::Whole => {}
            BlobCondition::Damaged => needed.note_lost(hash, || format!("the list of files of {whose}")),
            BlobCondition::Missing => drop(needed.missing.insert(*hash)),
        }
        Ok(())
    }

    fn check_content(
        &mut self,
        blob_store: &BlobStore,
        hash: &ContentHash,
        needed: &mut NeededBlobs,
        what: impl Fn() -> String,
    ) -> Result<(), WorkspaceError> {
        if !needed.contents.insert(*hash) {
            return Ok(());
        }
        let own = self.blob_condition(hash)?;
        if own != BlobCondition::Missing {
            needed.blobs.insert(*hash);
        }
        match own {
            BlobCondition::Whole => return Ok(()),
            BlobCondition::Damaged => needed.note_lost(hash, &what),
            BlobCondition::Missing => {}
        }
        let Some(pack) = blob_store.pack_of(hash)? else {
            if own == BlobCondition::Missing {
                needed.missing.insert(*hash);
            }
            return Ok(());
        };
        needed.blobs.insert(pack);
        match self.blob_condition(&pack)? {
            BlobCondition::Damaged => needed.note_lost(&pack, what),
            BlobCondition::Missing => drop(needed.missing.insert(*hash)),
            BlobCondition::Whole => {}
        }
        Ok(())
    }

    /// Reads a blob to tell how it is kept.
    fn blob_condition(&mut self, hash: &ContentHash) -> Result<BlobCondition, WorkspaceError> {
        if let Some(known) = self.verified.get(hash) {
            return Ok(*known);
        }
        let kept = match self.blobs.get(hash) {
            Ok(Some(_)) => BlobCondition::Whole,
            Ok(None) => BlobCondition::Missing,
            Err(StoreError::BlobDamaged { .. }) => BlobCondition::Damaged,
            Err(other) => return Err(other.into()),
        };
        self.verified.insert(*hash, kept);
        (self.progress)(self.verified.len());
        Ok(kept)
    }

    fn check_pack_index(&self, project: &Path, findings: &mut CheckupReport) -> Result<(), WorkspaceError> {
        let path = project.join("packs");
        let Some(bytes) = read_state_file(&path)? else { return Ok(()) };
        let (end, damaged) = read_sections(&bytes, |_| {});
        let places = damaged.len() + usize::from(end < bytes.len());
        if places > 0 {
            let cost = format!(
                "the index of packed contents is damaged in {}; what it named there may not be found, and can't be \
                 brought back by an undo",
                format_count(places, "place")
            );
            findings.damage.push(Damage { path, cost });
        }
        Ok(())
    }
}

fn journal_path(state: &Path) -> PathBuf {
    state.join("journal").join("log")
}

fn check_journal(path: &Path, findings: &mut CheckupReport) -> Result<Vec<JournalLine>, WorkspaceError> {
    if is_journal_gone(path) {
        let cost =
            "the journal is gone; what sessions changed before can't be undone, and checkpoints can't be \
                    compared with"
                .to_owned();
        findings.damage.push(Damage { path: path.to_owned(), cost });
    }
    let Some(bytes) = read_state_file(path)? else { return Ok(Vec::new()) };
    let read = parse_lines(&bytes, 0);
    let places = read.damaged + usize::from(read.tail == JournalTail::Damaged);
    if places > 0 {
        let cost = format!(
            "the journal is damaged in {}; changes and checkpoints recorded there can't be undone or compared with",
            format_count(places, "place")
        );
        findings.damage.push(Damage { path: path.to_owned(), cost });
    }
    Ok(read.lines)
}

fn check_copy(copy: &CopyDir, findings: &mut CheckupReport) -> Result<(), WorkspaceError> {
    if let Some(reason) = copy.damage {
        let cost = format!(
            "the record of the copy of session {} is damaged ({reason}); it can't be landed",
            copy.session
        );
        findings.damage.push(Damage { path: copy.dir.join("record"), cost });
    }
    if line_file::is_damaged(&copy.dir, line_file::CONTESTED_FILE)? {
        let cost =
            "which files you and the copy both changed isn't known any more; it can't be landed".to_owned();
        findings.damage.push(Damage { path: copy.dir.join(line_file::CONTESTED_FILE), cost });
    }
    if line_file::is_damaged(&copy.dir, line_file::CHANGES_FILE)? {
        let cost =
            "what was written down of the copy's changes is damaged; they are compared anew".to_owned();
        findings.damage.push(Damage { path: copy.dir.join(line_file::CHANGES_FILE), cost });
    }
    Ok(())
}

fn check_heartbeats(project: &Path, findings: &mut CheckupReport) -> Result<(), WorkspaceError> {
    for path in find_damaged_heartbeats(project)? {
        let cost =
            "the sign of life of a command that was cut off is damaged; what the command did counts as yours"
                .to_owned();
        findings.damage.push(Damage { path, cost });
    }
    Ok(())
}

/// Signs of life that aren't as they were written. A torn one, whose command never began, isn't
/// among them.
fn find_damaged_heartbeats(project: &Path) -> Result<Vec<PathBuf>, WorkspaceError> {
    let dir = project.join("running");
    let mut damaged = Vec::new();
    for path in heartbeat_paths(&dir, &[RecoveryStage::Running, RecoveryStage::Recovered])
        .map_err(|source| state_error("list", &dir, source))?
    {
        let Some(text) = read_state_file(&path)? else { continue };
        let text = text.get(..text.len().min(MAX_HEARTBEAT_BYTES as usize)).unwrap_or_default();
        let is_complete = text.ends_with(b"\n") && !text.contains(&0);
        if is_complete && CommandStart::parse(text).is_none() {
            damaged.push(path);
        }
    }
    Ok(damaged)
}

fn check_blob_usage(project: &Path, findings: &mut CheckupReport) -> Result<(), WorkspaceError> {
    let path = project.join("ledger");
    let damaged = count_damaged_entries(&path).map_err(|source| state_error("read", &path, source))?;
    if damaged > 0 {
        let cost = format!(
            "the ledger is damaged in {}; another project may remove contents that this one still needs",
            format_count(damaged, "place")
        );
        findings.damage.push(Damage { path, cost });
    }
    Ok(())
}

/// Reads a file of the state; `None` if there is none.
fn read_state_file(path: &Path) -> Result<Option<Vec<u8>>, WorkspaceError> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(MAX_STATE_FILE_BYTES).read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(state_error("read", path, source)),
    }
}

fn format_count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Returns the sessions whose copies are landed and not removed yet, as the project's journal says.
///
/// # Errors
/// Failures of the medium.
pub fn list_landed_copies(project: &Path) -> Result<Vec<SessionId>, WorkspaceError> {
    let copies = list_copies(project)?;
    if copies.is_empty() {
        return Ok(Vec::new());
    }
    let bytes = read_state_file(&journal_path(project))?.unwrap_or_default();
    let history = crate::journal::history::History::new(parse_lines(&bytes, 0).lines);
    let landed = copies.into_iter().filter(|copy| copy.is_landed(&history));
    Ok(landed.map(|copy| copy.session).collect())
}

/// Returns the projects of a state directory.
///
/// # Errors
/// Failures of the medium.
pub fn list_projects(state_dir: &Path) -> Result<Vec<PathBuf>, WorkspaceError> {
    let dir = state_dir.join("projects");
    let failed = |source| state_error("list", &dir, source);
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed(source)),
    };
    let mut projects = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            projects.push(path);
        }
    }
    projects.sort();
    Ok(projects)
}
