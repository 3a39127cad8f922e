//! The files of the tree, by name.

use std::collections::HashSet;

use globset::{GlobBuilder, GlobMatcher};
use journeyman_protocol::RelPath;

use crate::error::WorkspaceError;
use crate::files::paths::last_component;
use crate::files::root_dir::{FinalLinkPolicy, RootDir};
use crate::limits::{MAX_GLOB_BRACES, MAX_GLOB_BYTES, MAX_GLOB_STARS};
use crate::rules::RuleCache;
use crate::walk::plan::WalkPlan;
use crate::walk::walk;

/// Of a glob that is refused for its length, an error shows so many bytes.
const MAX_SHOWN_GLOB_BYTES: usize = 60;

/// Which files to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListOptions {
    /// Only what is beneath this directory.
    pub under: Option<RelPath>,
    /// Only what matches this glob: the file name where the glob has no `/`, else the path from the
    /// root.
    pub glob: Option<String>,
    /// Also what is ignored by rules or by name; git's own directory never is listed.
    pub include_ignored: bool,
    /// Maximum number of paths to return: the first ones in the order of their bytes.
    pub limit: usize,
}

impl Default for ListOptions {
    /// Returns options for every file that isn't ignored, up to the limit of a walk.
    fn default() -> Self {
        Self { under: None, glob: None, include_ignored: false, limit: crate::limits::MAX_WALKED_FILES }
    }
}

/// Files and links, sorted by the bytes of their paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The paths.
    pub paths: Vec<RelPath>,
    /// True if there are more than the limit.
    pub truncated: bool,
}

/// Lists what is beneath the root, or beneath a directory; a directory that is ignored itself lists
/// nothing of what rules ignore, and everything else.
pub(crate) fn list(
    root_dir: &RootDir,
    rules: &RuleCache,
    max_files: usize,
    siblings: &(dyn Fn() -> HashSet<Vec<u8>> + Sync),
    options: &ListOptions,
) -> Result<Listing, WorkspaceError> {
    let glob = options.glob.as_deref().map(ListPattern::new).transpose()?;
    let under = match &options.under {
        Some(path) => root_dir.canonicalize(path, FinalLinkPolicy::Follow)?.as_bytes().to_vec(),
        None => Vec::new(),
    };
    let include_ignored = options.include_ignored;
    let plan =
        WalkPlan { under, include_ignored, siblings, ..WalkPlan::names_only(root_dir, rules, max_files) };
    let walked = walk(&plan).map_err(|errno| match &options.under {
        Some(path) => root_dir.error_for("list", path, errno),
        None => WorkspaceError::Root { path: root_dir.path().to_owned(), source: errno.into() },
    })?;
    if walked.files.is_empty() {
        root_dir.check_alive()?;
    }
    let mut listing = Listing { paths: Vec::new(), truncated: walked.overflow };
    for file in walked.files {
        if glob.as_ref().is_some_and(|glob| !glob.matches(&file.path)) {
            continue;
        }
        if listing.paths.len() >= options.limit {
            listing.truncated = true;
            break;
        }
        // A name that the system gave is always legal; one longer than a path may be can't be
        // opened either.
        listing.paths.extend(RelPath::parse(&file.path));
    }
    Ok(listing)
}

struct ListPattern {
    matcher: GlobMatcher,
    name_only: bool,
}

impl ListPattern {
    fn new(pattern: &str) -> Result<Self, WorkspaceError> {
        check_pattern(pattern)?;
        let bare = pattern.strip_prefix("./").unwrap_or(pattern);
        let glob = GlobBuilder::new(bare.strip_prefix('/').unwrap_or(bare)).literal_separator(true).build();
        let glob = glob.map_err(|error| WorkspaceError::Glob {
            pattern: pattern.to_owned(),
            reason: error.kind().to_string(),
        })?;
        Ok(Self { matcher: glob.compile_matcher(), name_only: !bare.contains('/') })
    }

    fn matches(&self, path: &[u8]) -> bool {
        use std::os::unix::ffi::OsStrExt as _;
        let subject = if self.name_only { last_component(path) } else { path };
        self.matcher.is_match(std::path::Path::new(std::ffi::OsStr::from_bytes(subject)))
    }
}

/// Refuses what the matcher isn't to be asked: it would take the stack, or panic.
fn check_pattern(pattern: &str) -> Result<(), WorkspaceError> {
    let count = |wanted: u8| pattern.bytes().filter(|byte| *byte == wanted).count();
    let table = [
        (pattern.len(), MAX_GLOB_BYTES, "bytes"),
        (count(b'{'), MAX_GLOB_BRACES, "`{`"),
        (count(b'*'), MAX_GLOB_STARS, "`*`"),
    ];
    for (given, limit, what) in table {
        if given > limit {
            let shown = pattern.get(..pattern.floor_char_boundary(MAX_SHOWN_GLOB_BYTES)).unwrap_or_default();
            let pattern =
                if shown.len() < pattern.len() { format!("{shown}…") } else { pattern.to_owned() };
            let reason = format!("it has {given} {what}; at most {limit} are taken");
            return Err(WorkspaceError::Glob { pattern, reason });
        }
    }
    Ok(())
}

/// The kind of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A pipe, a socket, a device, or a link that leads nowhere.
    Other,
}

/// The metadata of a path. Links that stay inside are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The kind of the file.
    pub kind: StatKind,
    /// The size in bytes; for a directory, the file system's own figure.
    pub size: u64,
    /// True if its owner may execute it (enter it, for a directory).
    pub executable: bool,
    /// True if its last component is a symbolic link.
    pub link: bool,
    /// Time of the last change of its content, in nanoseconds since 1970-01-01 UTC.
    pub modified_ns: i128,
}
