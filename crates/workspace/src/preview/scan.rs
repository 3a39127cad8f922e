//! A scan of what a layer holds and hides beside the files that checkpoints cover, read from the
//! layer itself.
//!
//! The kernel writes a layer so: a file or directory in it stands before the tree's; a character
//! device of number 0 says that a name is gone; a directory with the attribute
//! `user.overlay.opaque` hides all that the tree has there. No command can forge these: the kernel
//! lets nobody set such attributes through the mount, or make devices.

use std::collections::HashSet;
use std::os::fd::{AsFd as _, OwnedFd};

use journeyman_protocol::RelPath;
use rustix::fs::{AtFlags, FileType, fgetxattr, statat};
use rustix::io::Errno;

use crate::error::WorkspaceError;
use crate::files::directory::entry_names;
use crate::files::root_dir::{LinkPolicy, RootDir};
use crate::files::stat::FileStat;
use crate::journal::record::DirRecord;
use crate::landing::changes::CopyChanges;
use crate::landing::refusals::{LandingFilter, has_repository_layout};
use crate::limits::MAX_DEPTH;
use crate::preview::fingerprint::TreeFingerprint;
use crate::preview::uncovered::{
    DirTotals, MAX_JOURNALED_FILES, UncoveredChange, UncoveredChanges, UncoveredKind,
};
use crate::snapshot::file_observation::observe_file;
use crate::snapshot::tree::Tree;
use crate::workspace::Workspace;
use journeyman_ignore_rules::tool_directories::is_skipped_directory;
use journeyman_ignore_rules::{is_git_directory_name, is_tagged_cache};

/// The kernel's marks on a layer.
const OPAQUE_ATTRIBUTE: &str = "user.overlay.opaque";
/// Marks that make a layer's file something else than it looks; layers are mounted so that there
/// are none.
const DISGUISING_ATTRIBUTES: [&str; 2] = ["user.overlay.redirect", "user.overlay.metacopy"];
/// Refusals of one layer that are kept; who meets more has seen enough.
const MAX_REFUSALS: usize = 1_000;

const REPOSITORY_REASON: &str = "it is a repository that the command made: git would run what it says";
const GIT_REMOVED_REASON: &str = "it is git's own, and the command removed it";
const DISGUISED_REASON: &str = "its layer says that it is something else than it looks";
const NOT_COMPARABLE_REASON: &str =
    "not all that is in it can be looked at, so nobody could tell whether it changes meanwhile";
const TOO_DEEP_REASON: &str = "it is nested deeper than anybody looks";

/// Reads the layer of a command over `user`'s tree. What `changes` has is left out.
pub(crate) fn scan_layer(
    user: &Workspace,
    upper: &RootDir,
    (base, now): (&Tree, &Tree),
    changes: &CopyChanges,
) -> Result<UncoveredChanges, WorkspaceError> {
    let dirs = base.dirs.iter().chain(&now.dirs).map(|dir| dir.path.as_slice());
    let mut scan = LayerScan {
        user,
        upper,
        filter: LandingFilter::of(user),
        covered: changes.files.iter().map(|file| &file.path).collect(),
        dirs: dirs.collect(),
        max: user.project.limits().max_files,
        looked_at: 0,
        rest: UncoveredChanges::default(),
    };
    scan.scan_directory(None, LowerVisibility::Shows, 0)?;
    let mut rest = scan.rest;
    rest.objections.sort();
    rest.objections.truncate(MAX_REFUSALS);
    rest.left_out.sort();
    rest.choose_journaled(user.project.limits().kept_file_bytes);
    Ok(rest)
}

struct LayerScan<'a> {
    user: &'a Workspace,
    upper: &'a RootDir,
    filter: Option<LandingFilter<'a>>,
    /// Files whose change is reported elsewhere.
    covered: HashSet<&'a RelPath>,
    /// Directories that checkpoints look into, before or after.
    dirs: HashSet<&'a [u8]>,
    max: usize,
    looked_at: usize,
    rest: UncoveredChanges,
}

/// True if the tree's directory shows through the layer's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LowerVisibility {
    Shows,
    Hidden,
}

impl LayerScan<'_> {
    fn scan_error(&self, path: Option<&RelPath>, errno: Errno) -> WorkspaceError {
        match path {
            Some(path) => WorkspaceError::from_errno("look at the change of", path, errno),
            None => crate::state::lock::state_error("read the layer", self.upper.path(), errno.into()),
        }
    }

    fn count_entry(&mut self) -> Result<(), WorkspaceError> {
        self.looked_at += 1;
        if self.looked_at > self.max {
            return Err(WorkspaceError::TooManyFiles { limit: self.max });
        }
        Ok(())
    }

    fn refuse(&mut self, path: &RelPath, why: &str) {
        if self.rest.objections.len() <= MAX_REFUSALS {
            self.rest.objections.push((path.clone(), why.to_owned()));
        }
    }

    fn add_change(&mut self, path: &RelPath, what: UncoveredKind) {
        let remade = is_regenerable(self.user, path);
        self.rest.changes.push(UncoveredChange { path: path.clone(), what, journaled: false, remade });
    }

    /// Scans a directory of the layer that the tree has too.
    fn scan_directory(
        &mut self,
        dir: Option<&RelPath>,
        lower: LowerVisibility,
        depth: usize,
    ) -> Result<(), WorkspaceError> {
        if let Some(dir) = dir.filter(|_| depth > MAX_DEPTH) {
            self.refuse(dir, TOO_DEEP_REASON);
            return Ok(());
        }
        let open = self.upper.open_directory(dir).map_err(|errno| self.scan_error(dir, errno))?;
        let names = entry_names(&open).map_err(|errno| self.scan_error(dir, errno))?;
        for name in &names {
            self.count_entry()?;
            let path = match dir {
                Some(dir) => dir.join(name),
                None => RelPath::parse(name),
            };
            let Ok(path) = path else { continue };
            self.scan_entry(&open, name, &path, lower, depth)?;
        }
        if lower == LowerVisibility::Hidden {
            let names: HashSet<Vec<u8>> = names.into_iter().collect();
            self.scan_hidden(dir, &names, depth)?;
        }
        Ok(())
    }

    fn scan_entry(
        &mut self,
        open: &OwnedFd,
        name: &[u8],
        path: &RelPath,
        lower: LowerVisibility,
        depth: usize,
    ) -> Result<(), WorkspaceError> {
        let stat = statat(open, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| self.scan_error(Some(path), errno))?;
        let seen = FileStat::of(&stat);
        let here =
            self.user.project.root_dir.stat(path).map_err(|errno| self.scan_error(Some(path), errno))?;
        let is_gone = seen.file_type() == FileType::CharacterDevice && stat.st_rdev == 0;
        if is_git_directory_name(name) {
            let why = if is_gone { GIT_REMOVED_REASON } else { REPOSITORY_REASON };
            if here.is_some() || !is_gone {
                self.refuse(path, why);
            }
            return Ok(());
        }
        if is_gone {
            return match here {
                Some(here) if lower == LowerVisibility::Shows => self.scan_removed(path, &here, depth),
                _ => Ok(()),
            };
        }
        if seen.is_dir() {
            return self.scan_subdirectory(path, &seen, here.as_ref(), depth);
        }
        if let Some(here) = here.as_ref().filter(|here| here.is_dir()) {
            self.scan_removed(path, here, depth)?;
        }
        if !(seen.is_file() || seen.is_link()) {
            self.rest.left_out.push(path.clone());
            return Ok(());
        }
        self.scan_file(path, &seen, here.as_ref())
    }

    /// Scans a directory of the layer.
    fn scan_subdirectory(
        &mut self,
        path: &RelPath,
        seen: &FileStat,
        here: Option<&FileStat>,
        depth: usize,
    ) -> Result<(), WorkspaceError> {
        let open =
            self.upper.open_directory(Some(path)).map_err(|errno| self.scan_error(Some(path), errno))?;
        let opaque = match read_attribute(&open, OPAQUE_ATTRIBUTE) {
            None => false,
            Some(value) if value == b"y" => true,
            // A mark of a kind that this kernel has and we don't know.
            Some(_) => {
                self.refuse(path, DISGUISED_REASON);
                return Ok(());
            }
        };
        if DISGUISING_ATTRIBUTES.iter().any(|name| read_attribute(&open, name).is_some()) {
            self.refuse(path, DISGUISED_REASON);
            return Ok(());
        }
        drop(open);
        if let Some(here) = here.filter(|here| !here.is_dir()) {
            self.scan_removed(path, here, depth)?;
        }
        let was_dir = here.is_some_and(FileStat::is_dir);
        if self.dirs.contains(path.as_bytes()) {
            let lower = if was_dir && opaque { LowerVisibility::Hidden } else { LowerVisibility::Shows };
            return self.scan_directory(Some(path), lower, depth + 1);
        }
        // Out of every checkpoint's sight, with all that is in it.
        if was_dir && !opaque {
            return self.scan_directory(Some(path), LowerVisibility::Shows, depth + 1);
        }
        if was_dir {
            let tally = self.count_removed_directory(path)?;
            self.add_change(path, UncoveredKind::RemovedTree(tally));
        }
        if let Some(why) = self.filter.as_ref().and_then(|filter| filter.path_refusal(path)) {
            self.refuse(path, why);
        }
        let mut tally = self.count_directory(path, TreeSide::Layer)?;
        tally.dirs.insert(0, DirRecord { path: path.clone(), mode: Some(seen.permissions()) });
        self.add_change(path, UncoveredKind::AddedTree(tally));
        Ok(())
    }

    /// Records the files of the tree that an opaque directory doesn't have.
    fn scan_hidden(
        &mut self,
        dir: Option<&RelPath>,
        names: &HashSet<Vec<u8>>,
        depth: usize,
    ) -> Result<(), WorkspaceError> {
        let open =
            self.user.project.root_dir.open_directory(dir).map_err(|errno| self.scan_error(dir, errno))?;
        for name in entry_names(&open).map_err(|errno| self.scan_error(dir, errno))? {
            let path = match dir {
                Some(dir) => dir.join(&name),
                None => RelPath::parse(&name),
            };
            let Ok(path) = path else { continue };
            if names.contains(&name) {
                continue;
            }
            if let Some(here) =
                self.user.project.root_dir.stat(&path).map_err(|errno| self.scan_error(Some(&path), errno))?
            {
                self.scan_removed(&path, &here, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Records a path of the tree that the command removed.
    fn scan_removed(&mut self, path: &RelPath, here: &FileStat, depth: usize) -> Result<(), WorkspaceError> {
        self.count_entry()?;
        if is_git_directory_name(path.file_name()) {
            self.refuse(path, GIT_REMOVED_REASON);
            return Ok(());
        }
        if !here.is_dir() {
            if !self.covered.contains(path) {
                if let Some(why) = self.filter.as_ref().and_then(|filter| filter.path_refusal(path)) {
                    self.refuse(path, why);
                }
                self.add_change(path, UncoveredKind::Removed(*here));
            }
            return Ok(());
        }
        if self.dirs.contains(path.as_bytes()) && depth <= MAX_DEPTH {
            return self.scan_hidden(Some(path), &HashSet::new(), depth);
        }
        if let Some(why) = self.filter.as_ref().and_then(|filter| filter.path_refusal(path)) {
            self.refuse(path, why);
        }
        let mut tally = self.count_removed_directory(path)?;
        tally.dirs.insert(0, DirRecord { path: path.clone(), mode: Some(here.permissions()) });
        self.add_change(path, UncoveredKind::RemovedTree(tally));
        Ok(())
    }

    /// Scans a file or link of the layer.
    fn scan_file(
        &mut self,
        path: &RelPath,
        seen: &FileStat,
        here: Option<&FileStat>,
    ) -> Result<(), WorkspaceError> {
        if seen.is_file() {
            let (file, _) = self.upper.open_file(path, LinkPolicy::Refuse)?;
            if DISGUISING_ATTRIBUTES.iter().any(|name| read_attribute(&file, name).is_some()) {
                self.refuse(path, DISGUISED_REASON);
                return Ok(());
            }
        }
        if self.covered.contains(path) {
            return Ok(());
        }
        let here = here.filter(|here| !here.is_dir());
        let what = match here {
            None => UncoveredKind::Added(*seen),
            Some(here) if self.is_same(path, here, seen)? => return Ok(()),
            Some(here) => UncoveredKind::Replaced { old: *here, new: *seen },
        };
        self.check_file(path, seen, here)?;
        self.add_change(path, what);
        Ok(())
    }

    /// Looks whether a file may be landed at all.
    fn check_file(
        &mut self,
        path: &RelPath,
        seen: &FileStat,
        here: Option<&FileStat>,
    ) -> Result<(), WorkspaceError> {
        let Some(filter) = &self.filter else { return Ok(()) };
        let target = match seen.is_link() {
            true => Some(self.upper.read_link(path).map_err(|errno| self.scan_error(Some(path), errno))?),
            false => None,
        };
        let modes = (here.map(FileStat::permissions), seen.permissions());
        let why = filter
            .path_refusal(path)
            .or_else(|| filter.file_refusal(path, here.is_none(), modes, target.as_deref()));
        if let Some(why) = why {
            self.refuse(path, why);
        }
        Ok(())
    }

    /// Returns true if a file that was copied into the layer is still what the tree has: a new time
    /// alone is no change.
    fn is_same(&self, path: &RelPath, here: &FileStat, seen: &FileStat) -> Result<bool, WorkspaceError> {
        let alike = (here.file_type(), here.size) == (seen.file_type(), seen.size);
        if !alike || (seen.is_file() && here.permissions() != seen.permissions()) {
            return Ok(false);
        }
        let hash = |root_dir: &RootDir| match observe_file(root_dir, path) {
            Ok(found) => Ok(found.and_then(|(state, _)| state.hash)),
            // Neither a file nor a link, or one that nobody may read.
            Err(
                WorkspaceError::NotAFile { .. }
                | WorkspaceError::Denied { .. }
                | WorkspaceError::NotFound { .. },
            ) => Ok(None),
            Err(other) => Err(other),
        };
        let ours = hash(&self.user.project.root_dir)?;
        Ok(ours.is_some() && ours == hash(self.upper)?)
    }

    /// Counts a directory of the tree that is removed, as [`LayerScan::count_directory`] does.
    /// Refuses a directory that can't be compared later.
    fn count_removed_directory(&mut self, dir: &RelPath) -> Result<DirTotals, WorkspaceError> {
        // Before it is counted: what comes while that is done is a change.
        let print = TreeFingerprint::of(&self.user.project.root_dir, dir);
        let mut tally = self.count_directory(dir, TreeSide::User)?;
        tally.print = print;
        if tally.print.is_none() {
            self.refuse(dir, NOT_COMPARABLE_REASON);
        }
        Ok(tally)
    }

    /// Counts what is in a directory that no checkpoint looks into.
    fn count_directory(&mut self, dir: &RelPath, side: TreeSide) -> Result<DirTotals, WorkspaceError> {
        let mut tally = DirTotals::default();
        let mut open = vec![(dir.clone(), 0)];
        let (user, upper) = (self.user, self.upper);
        let root_dir = match side {
            TreeSide::User => &user.project.root_dir,
            TreeSide::Layer => upper,
        };
        let most = user.project.limits().kept_file_bytes;
        while let Some((at, depth)) = open.pop() {
            let names = root_dir.open_directory(Some(&at)).and_then(|dir| entry_names(&dir));
            let names = match names {
                Ok(names) => names,
                Err(errno) if side == TreeSide::Layer => return Err(self.scan_error(Some(&at), errno)),
                // What is in it can't be told.
                Err(_) => {
                    (tally.more, tally.odd) = (true, true);
                    continue;
                }
            };
            if side == TreeSide::Layer && has_repository_layout(&names) {
                self.refuse(&at, REPOSITORY_REASON);
            }
            if depth > MAX_DEPTH {
                (tally.more, tally.odd) = (true, true);
                continue;
            }
            for name in names {
                if tally.files as usize >= self.max {
                    tally.more = true;
                    return Ok(tally);
                }
                let Ok(path) = at.join(&name) else { continue };
                let Ok(Some(seen)) = root_dir.stat(&path) else { continue };
                if side == TreeSide::Layer {
                    if self.is_whiteout(&path, &seen) {
                        continue;
                    }
                    if is_git_directory_name(&name) {
                        self.refuse(&path, REPOSITORY_REASON);
                    } else if seen.is_file() || seen.is_link() {
                        self.check_file(&path, &seen, None)?;
                    }
                }
                if seen.is_dir() {
                    if (tally.dirs.len() as u64) < MAX_JOURNALED_FILES {
                        tally.dirs.push(DirRecord { path: path.clone(), mode: Some(seen.permissions()) });
                    } else {
                        tally.odd = true;
                    }
                    open.push((path, depth + 1));
                    continue;
                }
                tally.files += 1;
                tally.bytes = tally.bytes.saturating_add(seen.size);
                tally.odd |=
                    !(seen.is_file() || seen.is_link()) || seen.size > most || is_git_directory_name(&name);
                if tally.files <= MAX_JOURNALED_FILES {
                    tally.list.push((path, seen));
                }
            }
        }
        Ok(tally)
    }

    /// Returns true if an entry of the layer only says that something is gone.
    fn is_whiteout(&self, path: &RelPath, seen: &FileStat) -> bool {
        let parent = || self.upper.open_parent(path).ok();
        seen.file_type() == FileType::CharacterDevice
            && parent()
                .and_then(|dir| statat(&dir, path.file_name(), AtFlags::SYMLINK_NOFOLLOW).ok())
                .is_some_and(|stat| stat.st_rdev == 0)
    }
}

/// Returns true if `path`, or a directory above it, is one that tools make and can make again.
pub(crate) fn is_regenerable(user: &Workspace, path: &RelPath) -> bool {
    std::iter::successors(Some(path.clone()), RelPath::parent).any(|dir| {
        is_skipped_directory(dir.file_name())
            || user.project.root_dir.open_directory(Some(&dir)).is_ok_and(|dir| is_tagged_cache(dir.as_fd()))
    })
}

/// The owner whose directory is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TreeSide {
    User,
    Layer,
}

/// Reads an attribute's value, cut to the longest that is used here.
fn read_attribute(file: &OwnedFd, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0_u8; 64];
    match fgetxattr(file, name, value.as_mut_slice()) {
        Ok(length) => {
            value.truncate(length);
            Some(value)
        }
        Err(Errno::RANGE) => Some(value),
        Err(_) => None,
    }
}
