//! The host's files, with a copy in the place of the project's root.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The kernel's own bound on symbolic links in one path.
const MAX_LINKS: usize = 40;

/// The host's path of a path that a command sees.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostFiles {
    /// The root, without links, and where its files are. Nothing but absolute names of the latter
    /// may be used: the system's own resolving of it may say anything (`/proc/self/fd/3` is a link
    /// to nowhere).
    replaced: Option<(PathBuf, PathBuf)>,
}

impl HostFiles {
    /// Creates a view in which `reach` stands for `root`, which has no links.
    pub(crate) fn new(root: PathBuf, reach: PathBuf) -> Self {
        Self { replaced: Some((root, reach)) }
    }

    /// Returns the name by which this process reaches a path, given without links but for the last
    /// name.
    pub(crate) fn host_path<'a>(&self, path: &'a Path) -> Cow<'a, Path> {
        match &self.replaced {
            Some((root, reach)) => match path.strip_prefix(root) {
                // The dot leads through `reach` itself, where that is a link.
                Ok(rest) if rest.as_os_str().is_empty() => Cow::Owned(reach.join(".")),
                Ok(rest) => Cow::Owned(reach.join(rest)),
                Err(_) => Cow::Borrowed(path),
            },
            None => Cow::Borrowed(path),
        }
    }

    /// Returns the metadata at a path; links are not followed.
    pub(crate) fn metadata(&self, path: &Path) -> io::Result<fs::Metadata> {
        fs::symlink_metadata(self.host_path(path))
    }

    pub(crate) fn is_dir(&self, path: &Path) -> bool {
        self.metadata(path).is_ok_and(|found| found.is_dir())
    }

    /// Returns the absolute path without links. Calls `met` with each link on the way and its
    /// target.
    ///
    /// # Errors
    /// Those of `stat` on the path: also if the path doesn't exist.
    pub(crate) fn resolve(&self, path: &Path, mut met: impl FnMut(&Path, &Path)) -> io::Result<PathBuf> {
        let mut real = PathBuf::from("/");
        let mut rest: Vec<PathBuf> = vec![path.to_owned()];
        let mut links = 0;
        while let Some(part) = rest.pop() {
            let mut components = part.components();
            let Some(component) = components.next() else { continue };
            rest.push(components.as_path().to_owned());
            match component {
                Component::Prefix(prefix) => real = PathBuf::from(prefix.as_os_str()),
                Component::RootDir => real.push("/"),
                Component::ParentDir => drop(real.pop()),
                Component::CurDir => {}
                Component::Normal(name) => {
                    real.push(name);
                    if !self.metadata(&real)?.is_symlink() {
                        continue;
                    }
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(io::Error::other("too many levels of symbolic links"));
                    }
                    let target = fs::read_link(self.host_path(&real))?;
                    met(&real, &target);
                    real.pop();
                    rest.push(target);
                }
            }
        }
        Ok(real)
    }
}
