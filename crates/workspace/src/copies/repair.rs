//! Repair of files of a copied tree that a power failure tore.
//!
//! Nothing waits for the disk while a tree is copied. The record, which is written last, does:
//! journaling file systems have the names, sizes and times of all files by then, and only contents
//! may still be missing. Such a file has the inode and time that the copy's first snapshot has of
//! it, and another size.

use rustix::fs::{OFlags, ftruncate};

use journeyman_protocol::RelPath;

use crate::copies::info::UnavailableReason;
use crate::copies::tiers::file_copy::set_modified;
use crate::files::root_dir::LinkPolicy;
use crate::snapshot::entry::EntryContent;
use crate::transaction::staging::write_all;
use crate::workspace::Workspace;

/// Writes torn files again from the kept contents.
pub(crate) fn repair_torn_files(copy: &Workspace) -> Result<(), UnavailableReason> {
    let Some(tree) = copy.snapshots.saved_tree() else {
        return Err("the machine stopped before all of it was on the disk".into());
    };
    for entry in tree.entries.iter().filter(|entry| entry.seen.is_file()) {
        let Ok(path) = RelPath::parse(&entry.path) else { continue };
        let Ok(Some(now)) = copy.project.root_dir.stat(&path) else { continue };
        let is_torn =
            (now.ino, now.mtime) == (entry.seen.ino, entry.seen.mtime) && now.size != entry.seen.size;
        if !is_torn {
            continue;
        }
        let kept = match entry.content {
            EntryContent::Hashed { hash, .. } => copy.project.blob_store.get(&hash)?,
            EntryContent::Unkept => None,
        };
        let torn = || UnavailableReason(format!("the machine stopped before `{path}` was on the disk"));
        let bytes = kept.ok_or_else(torn)?;
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let written =
            copy.project.root_dir.open_beneath(path.as_bytes(), flags, LinkPolicy::Refuse).and_then(|file| {
                ftruncate(&file, 0)?;
                write_all(&file, &bytes)?;
                set_modified(&file, entry.seen.mtime)
            });
        written.map_err(|errno| {
            UnavailableReason(crate::error::WorkspaceError::from_errno("mend", &path, errno).to_string())
        })?;
    }
    Ok(())
}
