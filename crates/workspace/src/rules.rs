//! The ignore rules of a tree, kept from walk to walk.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use journeyman_ignore_rules::tool_directories::skipped_directories;
use journeyman_ignore_rules::{
    ParsedRuleSource, RULE_FILES, Rules, is_copies_directory, is_ignored, parse_rules, read_rules,
    rules_from_outside,
};
use journeyman_protocol::{ContentHash, RelPath};
use journeyman_root_fs::{LinkPolicy, open_regular};

use crate::files::paths::last_component;
use crate::files::stat::FileStat;

/// The rules of one directory and those above it, with the rule files' metadata.
pub(crate) type RuleLayer = journeyman_ignore_rules::RuleLayer<FileStat>;

/// A rule file's identity, so that it is parsed once.
type RuleFileId = (u64, u64, i64, i64);
type RulesByDir = HashMap<Vec<u8>, (Vec<RuleFileId>, Arc<Rules>)>;

fn rule_file_id(seen: &FileStat) -> RuleFileId {
    (seen.ino, seen.size, seen.mtime, seen.ctime)
}

/// The rules that come from outside the tree's own rule files.
#[derive(Debug, Clone)]
struct OutsideRules {
    layers: Option<Arc<RuleLayer>>,
    /// The hash of all that they say.
    print: ContentHash,
}

/// Returns a directory's path from the root, if it lies beneath the root; it need not exist yet.
fn path_from_root(root: &Path, dir: &Path) -> Option<RelPath> {
    let root = std::fs::canonicalize(root).ok()?;
    let there = dir.ancestors().find_map(|above| Some((above, std::fs::canonicalize(above).ok()?)));
    let (above, real) = there?;
    let whole = real.join(dir.strip_prefix(above).ok()?);
    RelPath::parse(whole.strip_prefix(&root).ok()?.as_os_str().as_encoded_bytes()).ok()
}

/// Parsed rule files, kept from walk to walk.
#[derive(Debug, Default)]
pub(crate) struct RuleCache {
    parsed: Mutex<RulesByDir>,
    outside: OnceLock<OutsideRules>,
    /// The program's own directories in the tree, if the user keeps its state inside of a project.
    own: Vec<RelPath>,
    /// Files in the tree that we write ourselves.
    own_files: Vec<RelPath>,
}

impl RuleCache {
    /// Creates the cache for the tree at `root`, given the program's own directories and files.
    pub(crate) fn for_root<'a>(
        root: &Path,
        dirs: impl IntoIterator<Item = &'a Path>,
        files: &[PathBuf],
    ) -> Self {
        let mut own: Vec<RelPath> = dirs.into_iter().filter_map(|dir| path_from_root(root, dir)).collect();
        own.sort();
        own.dedup();
        // What lies in another one of them goes with it.
        let all = own.clone();
        own.retain(|dir| !all.iter().any(|other| other != dir && dir.as_path().starts_with(other.as_path())));
        let own_files = files.iter().filter_map(|file| path_from_root(root, file)).collect();
        Self { own, own_files, ..Self::default() }
    }

    /// Returns the program's own directories in the tree.
    pub(crate) fn own_directories(&self) -> &[RelPath] {
        &self.own
    }

    /// Returns true for this program's own directories, which are never walked, as git's aren't:
    /// undoing their content would destroy the undo data.
    pub(crate) fn is_own_directory(&self, path: &[u8]) -> bool {
        is_copies_directory(last_component(path)) || self.own.iter().any(|own| own.as_bytes() == path)
    }

    /// Returns true if a file is one that we write ourselves.
    pub(crate) fn is_own_output(&self, path: &[u8]) -> bool {
        self.own_files.iter().any(|own| own.as_bytes() == path)
    }

    /// Returns true if a file is ours.
    pub(crate) fn is_own_file(&self, path: &RelPath) -> bool {
        if self.is_own_output(path.as_bytes()) {
            return true;
        }
        let mut above = Some(path.clone());
        while let Some(at) = above {
            if self.is_own_directory(at.as_bytes()) {
                return true;
            }
            above = at.parent();
        }
        false
    }

    /// Returns the rules that come from outside the tree's own rule files. Read once.
    pub(crate) fn outer_rules(&self, root: &Path) -> Option<Arc<RuleLayer>> {
        self.outside_rules(root).layers.clone()
    }

    /// Returns a hash that is the same for two walks with the same rules but for the tree's own
    /// files.
    pub(crate) fn rules_hash(&self, root: &Path) -> ContentHash {
        self.outside_rules(root).print
    }

    fn outside_rules(&self, root: &Path) -> &OutsideRules {
        self.outside.get_or_init(|| OutsideRules::read(root, &self.own_files))
    }

    /// Loads the rules of the directory `dir` at `path`. The second value is `None` if a rule file
    /// isn't as it was seen before.
    pub(crate) fn load(
        &self,
        dir: BorrowedFd<'_>,
        path: &[u8],
        files: &[(&'static [u8], FileStat)],
    ) -> (Arc<Rules>, Option<()>) {
        let found: Vec<(FileStat, RuleFile)> =
            files.iter().filter_map(|(name, _)| open_rule_file(dir, name)).collect();
        let now: Vec<RuleFileId> = found.iter().map(|(seen, _)| rule_file_id(seen)).collect();
        let then = files.iter().filter(|(_, seen)| seen.is_file()).map(|(_, seen)| rule_file_id(seen));
        let as_seen = then.eq(now.iter().copied()).then_some(());
        let mut parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        let rules = match parsed.get(path) {
            Some((known, rules)) if *known == now => rules.clone(),
            _ => {
                let texts: Vec<Vec<u8>> = found.iter().map(|(_, file)| file.read()).collect();
                let rules = parse_rules(texts.iter().map(Vec::as_slice));
                parsed.insert(path.to_vec(), (now, rules.clone()));
                rules
            }
        };
        (rules, as_seen)
    }
}

/// Rules made of contents that are known, such as those of a checkpoint: `files` are paths and
/// texts.
pub(crate) struct FixedRules {
    by_dir: HashMap<Vec<u8>, Arc<Rules>>,
    outermost: Option<Arc<RuleLayer>>,
}

impl FixedRules {
    /// Creates rules from `files`: the path of each rule file with its text, `.gitignore` before
    /// `.ignore` in each directory.
    pub(crate) fn new(files: &[(Vec<u8>, Vec<u8>)], outermost: Option<Arc<RuleLayer>>) -> Self {
        let mut texts: HashMap<Vec<u8>, Vec<&[u8]>> = HashMap::new();
        for (path, text) in files {
            let cut = path.iter().rposition(|&byte| byte == b'/').unwrap_or_default();
            texts.entry(path.get(..cut).unwrap_or_default().to_vec()).or_default().push(text);
        }
        let by_dir = texts.into_iter().map(|(dir, texts)| (dir, parse_rules(texts.into_iter()))).collect();
        Self { by_dir, outermost }
    }

    /// Returns true if the file at `path`, or a directory above it, was ignored.
    pub(crate) fn is_ignored(&self, path: &[u8]) -> bool {
        let mut layers = self.rules_in_dir(&[], self.outermost.clone());
        for (at, byte) in path.iter().enumerate() {
            if *byte == b'/' {
                let dir = path.get(..at).unwrap_or_default();
                if is_ignored(&ParsedRuleSource, layers.as_ref(), dir, last_component(dir), true) {
                    return true;
                }
                layers = self.rules_in_dir(dir, layers);
            }
        }
        is_ignored(&ParsedRuleSource, layers.as_ref(), path, last_component(path), false)
    }

    fn rules_in_dir(&self, dir: &[u8], outer: Option<Arc<RuleLayer>>) -> Option<Arc<RuleLayer>> {
        match self.by_dir.get(dir) {
            Some(rules) => RuleLayer::from_parsed(rules.clone(), dir, outer),
            None => outer,
        }
    }
}

struct RuleFile {
    file: std::os::fd::OwnedFd,
    size: u64,
}

impl RuleFile {
    /// Reads the text; empty if it can't be read or is larger than any real one.
    fn read(&self) -> Vec<u8> {
        read_rules(&self.file, self.size)
    }
}

fn open_rule_file(dir: BorrowedFd<'_>, name: &[u8]) -> Option<(FileStat, RuleFile)> {
    let (file, stat) = open_regular(dir, name, LinkPolicy::Refuse).ok()?;
    let seen = FileStat::of(&stat);
    Some((seen, RuleFile { file, size: seen.size }))
}

impl OutsideRules {
    fn read(root: &Path, own_files: &[RelPath]) -> Self {
        let mut texts = skipped_directories().collect::<Vec<_>>().join(&b'/');
        for file in own_files {
            texts.push(0);
            texts.extend_from_slice(file.as_bytes());
        }
        let layers = rules_from_outside(root, &RULE_FILES, |text| {
            texts.extend_from_slice(&(text.len() as u64).to_le_bytes());
            texts.extend_from_slice(text);
        });
        Self { layers, print: ContentHash::of(&texts) }
    }
}
