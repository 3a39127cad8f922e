//! Repairs a project's state: damaged parts are dropped and reported; damaged files are moved to
//! `damaged/`, which is never read.

use crate::landing::line_file;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use journeyman_protocol::ContentHash;

use crate::checkup::{
    Checkup, CheckupReport, check_journal, find_damaged_heartbeats, journal_path, read_state_file,
};
use crate::contents::blob_usage::{BlobEntry, BlobUsage, count_damaged_entries};
use crate::contents::pack_index::{PackPosition, encode_section, read_sections, salvage_section};
use crate::contents::store::BlobCondition;
use crate::copies::location::{CopyDir, list_copies};
use crate::error::WorkspaceError;
use crate::journal::parsing::{JournalTail, encode_lines, is_journal_gone, parse_lines};
use crate::journal::record::JournalLine;
use crate::state::lock::{FileLock, make_private_dir, replace_durably, state_error, sync_parent_dir};
use journeyman_protocol::Clock;

/// The directory of damaged files in a project's state directory.
const DAMAGED_DIR: &str = "damaged";
/// Names that are tried for one damaged file.
const MAX_NAME_TRIES: u32 = 10_000;

impl Checkup<'_> {
    /// Mends the state in a project's directory, and says what was done and what is lost, one line
    /// each. Afterwards a check finds no damage.
    ///
    /// # Errors
    /// [`WorkspaceError::Busy`] while another process works in the project, or with the contents of
    /// any; failures of the medium.
    pub fn repair(&mut self, project: &Path, clock: &Clock) -> Result<Vec<String>, WorkspaceError> {
        let lock = FileLock::open(project)?;
        let _held = lock.acquire(Duration::from_millis(100))?;
        let busy = |holder: &str| WorkspaceError::Busy { holder: holder.to_owned(), waited: Duration::ZERO };
        let _sweeping = self.blobs.try_lock_for_sweep()?.ok_or_else(|| busy("a jm that keeps contents"))?;
        let findings = self.check(project)?;
        if findings.damage.is_empty() {
            return Ok(Vec::new());
        }
        let mut told = Vec::new();
        for copy in list_copies(project)? {
            if let Some(holder) = copy.holder() {
                return Err(busy(&holder));
            }
            mend_copy(project, &copy, clock, &mut told)?;
        }
        mend_journal(project, &journal_path(project), clock, &mut told)?;
        for path in find_damaged_heartbeats(project)? {
            let aside = move_to_damaged(project, &path)?;
            told.push(format!(
                "{} is now {}: what its command did before it was cut off counts as yours",
                path.display(),
                aside.display()
            ));
        }
        self.mend_pack_index(project, &mut told)?;
        self.mend_contents(project, &mut told)?;
        Ok(told)
    }

    /// Writes the index of packs anew: whole sections, and what of damaged ones agrees with the
    /// packs themselves.
    fn mend_pack_index(&mut self, project: &Path, told: &mut Vec<String>) -> Result<(), WorkspaceError> {
        let path = project.join("packs");
        let Some(bytes) = read_state_file(&path)? else { return Ok(()) };
        let mut whole = Vec::new();
        let (end, mut damaged) = read_sections(&bytes, |contents| whole.push(contents));
        if end < bytes.len() {
            damaged.push(end..bytes.len());
        }
        if damaged.is_empty() {
            return Ok(());
        }
        let (mut kept, mut dropped) = (0, 0);
        for range in damaged {
            let named = salvage_section(bytes.get(range).unwrap_or_default());
            let total = named.len();
            let good: Vec<(ContentHash, PackPosition)> = match named.first() {
                Some((_, place)) => match self.blobs.get(&place.pack) {
                    Ok(Some(pack)) => {
                        named.into_iter().filter(|(hash, place)| place.has_content(&pack, hash)).collect()
                    }
                    _ => Vec::new(),
                },
                None => Vec::new(),
            };
            kept += good.len();
            dropped += total - good.len();
            whole.push(good);
        }
        let text: Vec<u8> = whole.iter().flat_map(|contents| encode_section(contents)).collect();
        let aside = copy_to_damaged(project, &path)?;
        let replaced = replace_durably(&path, &text).and_then(|()| sync_parent_dir(&path));
        replaced.map_err(|source| state_error("replace", &path, source))?;
        told.push(format!(
            "{} is written anew: {kept} contents of its damaged parts are found again, {dropped} aren't; as it was it \
             is now {}",
            path.display(),
            aside.display()
        ));
        Ok(())
    }

    /// Moves damaged blobs to the directory of damaged files, and updates the ledger with what is
    /// needed.
    fn mend_contents(&mut self, project: &Path, told: &mut Vec<String>) -> Result<(), WorkspaceError> {
        let mut lines = check_journal(&journal_path(project), &mut CheckupReport::default())?;
        for copy in list_copies(project)? {
            lines.extend(check_journal(
                &journal_path(&copy.dir.join("state")),
                &mut CheckupReport::default(),
            )?);
        }
        let needed = self.check_references(project, &lines)?;
        for (hash, (first, more)) in &needed.damaged {
            let hash = ContentHash::from(*hash);
            let more = if *more > 0 { format!(" and {more} more") } else { String::new() };
            if let Some(aside) = self.blobs.quarantine(&hash)? {
                self.verified.insert(hash, BlobCondition::Missing);
                told.push(format!("a damaged content is now {}; lost are {first}{more}", aside.display()));
            }
        }
        let path = project.join("ledger");
        let failed = |source| state_error("mend", &path, source);
        let damaged = count_damaged_entries(&path).map_err(failed)?;
        if damaged == 0 {
            return Ok(());
        }
        let ledger = BlobUsage::new(project);
        let (mut entries, (_, floor)) = (ledger.entries().map_err(failed)?, ledger.totals().map_err(failed)?);
        let known: std::collections::HashSet<_> = entries.iter().map(|entry| entry.hash).collect();
        for hash in needed.blobs.iter().filter(|hash| !known.contains(*hash)) {
            if self.blobs.contains(hash)? {
                entries.push(BlobEntry { hash: *hash, cost: None });
            }
        }
        let aside = copy_to_damaged(project, &path)?;
        ledger.replace(&entries, floor).map_err(failed)?;
        told.push(format!(
            "{} is written anew, with all that is needed; as it was it is now {}",
            path.display(),
            aside.display()
        ));
        Ok(())
    }
}

/// Drops damaged lines, and leaves a mark in their place, so that an undo still says that its
/// record is incomplete.
fn mend_journal(
    project: &Path,
    path: &Path,
    clock: &Clock,
    told: &mut Vec<String>,
) -> Result<(), WorkspaceError> {
    let gone = is_journal_gone(path);
    let Some(bytes) = read_state_file(path)?.or_else(|| gone.then(Vec::new)) else { return Ok(()) };
    let read = parse_lines(&bytes, 0);
    if read.damaged == 0 && read.tail != JournalTail::Damaged && !gone {
        return Ok(());
    }
    let failed = |source| state_error("mend", path, source);
    if gone {
        // The next change begins a new one, and marks that there was another before.
        let mut journal = crate::journal::Journal::new(project, u64::MAX).with_clock(Some(clock.clone()));
        journal.catch_up()?;
        told.push(format!(
            "{} is begun anew; what sessions changed before can't be undone any more",
            path.display()
        ));
        return Ok(());
    }
    let mut lines = read.lines;
    if read.tail == JournalTail::Damaged {
        let last = lines.iter().map(JournalLine::id).max().unwrap_or_default();
        lines.push(JournalLine::Damaged(last.saturating_add(1)));
    }
    let text = encode_lines(&lines).map_err(|error| failed(error.into()))?;
    let aside = copy_to_damaged(project, path)?;
    replace_durably(path, &text).and_then(|()| sync_parent_dir(path)).map_err(failed)?;
    let places = read.damaged + usize::from(read.tail == JournalTail::Damaged);
    told.push(format!(
        "{} goes on without its {} damaged parts; what they recorded can't be undone, and undo says so; as it was it is \
         now {}",
        path.display(),
        places,
        aside.display()
    ));
    Ok(())
}

fn mend_copy(
    project: &Path,
    copy: &CopyDir,
    clock: &Clock,
    told: &mut Vec<String>,
) -> Result<(), WorkspaceError> {
    if copy.damage.is_some() || line_file::is_damaged(&copy.dir, line_file::CONTESTED_FILE)? {
        let aside = move_to_damaged(project, &copy.dir)?;
        told.push(format!(
            "the copy of session {} can't be landed any more; what was changed in it is in {}, and beside the project \
             in .journeyman-work-… where its files lay there",
            copy.session,
            aside.display()
        ));
        return Ok(());
    }
    if line_file::is_damaged(&copy.dir, line_file::CHANGES_FILE)? {
        let aside = move_to_damaged(project, &copy.dir.join(line_file::CHANGES_FILE))?;
        told.push(format!(
            "the changes of the copy of session {} are compared anew; what was written down of them is now {}",
            copy.session,
            aside.display()
        ));
    }
    mend_journal(project, &journal_path(&copy.dir.join("state")), clock, told)
}

/// Moves a file to the directory of damaged files. Returns its new path.
fn move_to_damaged(project: &Path, path: &Path) -> Result<PathBuf, WorkspaceError> {
    let aside = unused_path(project, path)?;
    fs::rename(path, &aside).map_err(|source| state_error("set aside", path, source))?;
    Ok(aside)
}

/// Copies a file that will be rewritten to the directory of damaged files. Returns the copy's path.
fn copy_to_damaged(project: &Path, path: &Path) -> Result<PathBuf, WorkspaceError> {
    let aside = unused_path(project, path)?;
    fs::copy(path, &aside).map_err(|source| state_error("set aside", path, source))?;
    Ok(aside)
}

fn unused_path(project: &Path, path: &Path) -> Result<PathBuf, WorkspaceError> {
    let dir = project.join(DAMAGED_DIR);
    make_private_dir(&dir)?;
    let name = path.strip_prefix(project).unwrap_or(path).to_string_lossy().replace('/', "-");
    let names = (1..MAX_NAME_TRIES).map(|number| dir.join(format!("{name}-{number}")));
    let mut free = names.filter(|name| name.symlink_metadata().is_err());
    free.next().ok_or_else(|| state_error("set aside", path, std::io::ErrorKind::AlreadyExists.into()))
}
