//! Go's build cache of a session, over the host's.
//!
//! A check may not write to the host's cache, and what it writes to a layer over it is gone with
//! the check. So a session has a cache of its own that begins with a link to each entry of the
//! host's: Go names entries by hashes of what they were made from, reads them through links, and
//! writes new ones beside them.
//!
//! Results of tests are not used again: Go compares the files that a test itself opens in its
//! module, and neither those outside of it nor those that other programs read for the test.

use std::fs::{create_dir_all, read_dir, rename};
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum number of links; entries without a link are compiled again.
const MAX_LINKS: usize = 100_000;

/// Links the entries of a host's cache into a session's.
pub(super) fn link_entries(host: &Path, own: &Path) -> io::Result<()> {
    create_dir_all(own)?;
    let mut links = 0;
    for directory in read_dir(host)? {
        let directory = directory?;
        let name = directory.file_name();
        // Entries lie in 256 directories; other files are not part of the cache's entries.
        let is_shard = name.len() == 2 && name.as_encoded_bytes().iter().all(u8::is_ascii_hexdigit);
        if !is_shard || !directory.file_type()?.is_dir() {
            continue;
        }
        let to = own.join(&name);
        create_dir_all(&to)?;
        for entry in read_dir(directory.path())?.flatten().take(MAX_LINKS - links) {
            match symlink(entry.path(), to.join(entry.file_name())) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => links += 1,
            }
        }
    }
    Ok(())
}

/// Makes Go run tests again whose results are in the cache, as `go clean -testcache` does.
pub(super) fn expire_test_results(own: &Path) -> io::Result<()> {
    create_dir_all(own)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?;
    // Another check may read the file meanwhile.
    let written = own.join(format!("testexpire.{}", now.as_nanos()));
    std::fs::write(&written, format!("{}\n", now.as_nanos()))?;
    rename(written, own.join("testexpire.txt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_linked_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let (host, own) = (dir.path().join("host"), dir.path().join("own"));
        for (path, text) in [("0a/x-a", "action"), ("ff/y-d", "data"), ("testexpire.txt", "1"), ("log/z", "")]
        {
            let path = host.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        link_entries(&host, &own).unwrap();
        assert_eq!(std::fs::read_to_string(own.join("0a/x-a")).unwrap(), "action");
        assert_eq!(std::fs::read_link(own.join("ff/y-d")).unwrap(), host.join("ff/y-d"));
        assert!(!own.join("testexpire.txt").exists() && !own.join("log").exists());
        // New entries come beside them.
        std::fs::write(own.join("0a/new-a"), "").unwrap();
        assert!(!host.join("0a/new-a").exists());
        link_entries(&host, &own).unwrap();
    }
}
