//! Configured hook commands and the scripts that they run.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use journeyman_policy::execution_reason;
use journeyman_protocol::{ContentHash, RelPath};
use journeyman_sandbox::Network;

use super::event::{Dialect, HookEvent, ResultFilter};
use super::matcher::Matcher;

/// Default timeout of a hook: as long as a person waits for a call to begin.
pub const DEFAULT_HOOK_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of bytes of a script that are hashed. For a larger script, such as a program in
/// the tree, the hash also covers its length and modification time.
const MAX_SCRIPT_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum number of characters of a command in messages.
const MAX_LABEL_CHARS: usize = 80;

/// A command that runs at an event.
#[derive(Debug, Clone, PartialEq)]
pub struct HookCommand {
    /// The event at which the command runs.
    pub event: HookEvent,
    /// The dialect whose names the command's JSON uses.
    pub dialect: Dialect,
    /// The results of calls that the command runs for.
    pub results: ResultFilter,
    /// The tools, or other subjects of the event, that the command runs for.
    pub matcher: Matcher,
    /// The text that `/bin/sh -c` runs.
    pub command: String,
    /// The timeout.
    pub timeout: Duration,
    /// True if the command runs in the sandbox.
    pub sandbox: bool,
    /// The network access in the sandbox.
    pub network: Network,
    /// Further paths that the command may read in the sandbox; `~` is the home directory.
    pub read: Vec<PathBuf>,
    /// Further paths that the command may write in the sandbox.
    pub write: Vec<PathBuf>,
}

impl HookCommand {
    /// Creates a command for every subject of an event, in this project's dialect and with the
    /// default timeout.
    #[must_use]
    pub fn new(event: HookEvent, command: impl Into<String>) -> Self {
        Self {
            event,
            dialect: Dialect::Own,
            results: ResultFilter::Any,
            matcher: Matcher::everything(),
            command: command.into(),
            timeout: DEFAULT_HOOK_TIMEOUT,
            sandbox: true,
            network: Network::Off,
            read: Vec::new(),
            write: Vec::new(),
        }
    }

    /// Returns the command's label in messages.
    pub(super) fn display_label(&self) -> String {
        let line = self.command.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown: String = line.chars().filter(|c| !c.is_control()).take(MAX_LABEL_CHARS).collect();
        if line.chars().nth(MAX_LABEL_CHARS).is_some() { shown + "…" } else { shown }
    }
}

/// A command with its scripts as they were when the session began.
#[derive(Debug)]
pub(super) struct PinnedCommand {
    pub(super) hook: HookCommand,
    scripts: Vec<PinnedScript>,
}

#[derive(Debug)]
struct PinnedScript {
    path: PathBuf,
    hash: ContentHash,
    /// The file's metadata from before the content was read. Equal metadata means equal content.
    stat: Option<FileStamp>,
}

/// Metadata that changes with every write: device, inode, size and change time. The kernel sets the
/// change time, and no program can set it back.
type FileStamp = (u64, u64, u64, i64, i64);

impl PinnedCommand {
    pub(super) fn new(hook: HookCommand, root: Option<&Path>) -> Self {
        let found = root.map(|root| find_scripts(&hook.command, root)).unwrap_or_default();
        let scripts = found.into_iter().map(|(path, hash, stat)| PinnedScript { path, hash, stat });
        Self { scripts: scripts.collect(), hook }
    }

    /// Returns a script whose content has changed. `reach` is the place of the tree at `root` for
    /// this run of the hook.
    pub(super) fn find_changed_script(&self, root: &Path, reach: &Path) -> Option<&Path> {
        let same = |script: &PinnedScript| {
            let path =
                script.path.strip_prefix(root).map_or_else(|_| script.path.clone(), |name| reach.join(name));
            let stat = read_file_stamp(&path);
            (stat.is_some() && stat == script.stat) || hash_script(&path).as_ref() == Some(&script.hash)
        };
        self.scripts.iter().find(|script| !same(script)).map(|script| script.path.as_path())
    }

    /// Returns those of the files that decide what the hook does: files that programs run or obey,
    /// and files that the hook's text or one of its scripts names.
    pub(super) fn find_deciding_files<'a>(&self, files: &'a [RelPath]) -> Vec<&'a RelPath> {
        let scripts = self.scripts.iter().filter_map(|script| read_script(&script.path));
        let texts: Vec<Vec<u8>> = scripts.chain([self.hook.command.clone().into_bytes()]).collect();
        let names = |file: &RelPath| texts.iter().any(|text| contains_word(text, file.file_name()));
        files.iter().filter(|file| execution_reason(file).is_some() || names(file)).collect()
    }
}

/// Returns true if `name` occurs in `text` as a whole word.
fn contains_word(text: &[u8], name: &[u8]) -> bool {
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if name.iter().all(inside) {
        return text.split(|byte| !inside(byte)).any(|word| word == name);
    }
    text.windows(name.len().max(1)).any(|window| window == name)
}

/// Returns the files of the project at `root` that a command's text names, with the hashes of their
/// contents. Trust in the configuration that holds the command covers these scripts too.
#[must_use]
pub fn hash_scripts(command: &str, root: &Path) -> Vec<(PathBuf, ContentHash)> {
    find_scripts(command, root).into_iter().map(|(path, hash, _)| (path, hash)).collect()
}

/// Returns the files of the project that a command's text names, with the hashes of their contents.
/// The text isn't parsed as shell syntax: every word that is the path of a file counts.
fn find_scripts(command: &str, root: &Path) -> Vec<(PathBuf, ContentHash, Option<FileStamp>)> {
    let command = ["JOURNEYMAN_PROJECT_DIR", "CLAUDE_PROJECT_DIR"].into_iter().fold(
        command.to_owned(),
        |text, name| {
            // Quotes go with the variable, for paths written as
            // "$CLAUDE_PROJECT_DIR"/.claude/hooks/x.sh.
            let text = text.replace(&format!("\"${name}\""), ".").replace(&format!("\"${{{name}}}\""), ".");
            text.replace(&format!("${{{name}}}"), ".").replace(&format!("${name}"), ".")
        },
    );
    let between = |c: char| c.is_whitespace() || "\"'`;|&()<>=".contains(c);
    let words = command.split(between).filter(|word| !word.is_empty());
    let files = words.map(|word| root.join(word)).filter(|path| path.starts_with(root) && path.is_file());
    let mut found: Vec<(PathBuf, ContentHash, Option<FileStamp>)> = Vec::new();
    for path in files {
        let stat = read_file_stamp(&path);
        if found.iter().all(|(known, ..)| *known != path)
            && let Some(hash) = hash_script(&path)
        {
            found.push((path, hash, stat));
        }
    }
    found
}

fn read_file_stamp(path: &Path) -> Option<FileStamp> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino(), meta.size(), meta.ctime(), meta.ctime_nsec()))
}

fn read_script(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_SCRIPT_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn hash_script(path: &Path) -> Option<ContentHash> {
    let meta = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let mut bytes = read_script(path)?;
    if meta.size() > MAX_SCRIPT_BYTES {
        bytes.extend(format!("{} {}", meta.size(), meta.mtime()).bytes());
    }
    Some(ContentHash::of(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_of_a_command_are_the_files_of_the_project_that_it_names() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("hooks")).unwrap();
        std::fs::write(place.path().join("hooks/guard.sh"), "exit 0").unwrap();
        let guard = place.path().join("hooks/guard.sh");
        for command in [
            "hooks/guard.sh".to_owned(),
            "sh ./hooks/guard.sh --strict".to_owned(),
            "\"$CLAUDE_PROJECT_DIR\"/hooks/guard.sh".to_owned(),
            "\"$CLAUDE_PROJECT_DIR/hooks/guard.sh\"".to_owned(),
            "X=1; ${JOURNEYMAN_PROJECT_DIR}/hooks/guard.sh|cat".to_owned(),
            guard.display().to_string(),
        ] {
            let found = find_scripts(&command, place.path());
            let found: Vec<PathBuf> = found.iter().map(|(path, ..)| path.canonicalize().unwrap()).collect();
            assert_eq!(found, [guard.canonicalize().unwrap()], "{command}");
        }
        assert!(find_scripts("jq -r .tool_name; /bin/sh hooks", place.path()).is_empty());
    }
}
