//! Repositories made by real git, whatever the machine's own settings are.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use journeyman_git::{Git, HookConfinement, HookRunMode, UserGit};
use journeyman_protocol::{RelPath, SandboxTier};
use journeyman_sandbox::Sandbox;

/// What a case has: a sandbox of one tier.
pub(crate) struct World {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) tier: SandboxTier,
}

impl World {
    pub(crate) fn git(&self, root: &Path) -> Git {
        Git::new(root, Arc::clone(&self.sandbox))
    }

    pub(crate) fn confines(&self) -> bool {
        self.tier != SandboxTier::Unconfined
    }

    /// The user's, who lets hooks run without a sandbox where there is none.
    pub(crate) fn user(&self, repo: &Repo, root: &Path) -> UserGit {
        let run = if self.confines() { HookRunMode::Confined } else { HookRunMode::Outside };
        self.git(root)
            .for_user(repo.env())
            .with_confinement(HookConfinement { run, ..HookConfinement::default() })
    }
}

/// A repository, with room beside it.
pub(crate) struct Repo {
    place: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

impl Repo {
    /// Without a commit.
    pub(crate) fn empty() -> Self {
        let place = tempfile::Builder::new().prefix("jm-git-").tempdir().unwrap();
        let root = place.path().canonicalize().unwrap().join("project");
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(place.path().join("home")).unwrap();
        let repo = Self { place, root };
        repo.git(&["init", "-q"]);
        repo
    }

    /// With these files, in one commit.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let repo = Self::empty();
        for (name, text) in files {
            repo.write(name, text);
        }
        repo.commit_all();
        repo
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.root.with_file_name(name)
    }

    pub(crate) fn empty_beside(&self, name: &str) -> PathBuf {
        let path = self.beside(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    pub(crate) fn write(&self, name: impl AsRef<OsStr>, text: impl AsRef<[u8]>) {
        let path = self.root.join(Path::new(name.as_ref()));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn make_executable(&self, name: &str) {
        fs::set_permissions(self.root.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn commit_all(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    }

    /// What a user has, as far as git looks at it.
    pub(crate) fn env(&self) -> BTreeMap<OsString, OsString> {
        let home = self.place.path().canonicalize().unwrap().join("home");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let fixed = [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_AUTHOR_NAME", "Ada"),
            ("GIT_AUTHOR_EMAIL", "ada@example.com"),
            ("GIT_COMMITTER_NAME", "Ada"),
            ("GIT_COMMITTER_EMAIL", "ada@example.com"),
            ("GIT_CONFIG_COUNT", "2"),
            ("GIT_CONFIG_KEY_0", "init.defaultBranch"),
            ("GIT_CONFIG_VALUE_0", "main"),
            ("GIT_CONFIG_KEY_1", "protocol.file.allow"),
            ("GIT_CONFIG_VALUE_1", "always"),
            ("LC_ALL", "C"),
        ];
        let mut env: BTreeMap<OsString, OsString> =
            fixed.iter().map(|(name, value)| (name.into(), value.into())).collect();
        env.insert("PATH".into(), path);
        env.insert("HOME".into(), home.into());
        env
    }

    pub(crate) fn command(&self, directory: &Path) -> Command {
        let mut command = Command::new("git");
        command.env_clear().envs(self.env()).current_dir(directory);
        command
    }

    pub(crate) fn try_git(&self, directory: &Path, arguments: &[&str]) -> Output {
        self.command(directory).args(arguments).output().unwrap()
    }

    /// Its output; it must succeed.
    pub(crate) fn git_in(&self, directory: &Path, arguments: &[&str]) -> String {
        let output = self.try_git(directory, arguments);
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {words}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.root, arguments)
    }

    pub(crate) fn status(&self) -> String {
        self.git(&["status", "--porcelain", "--untracked-files=all"])
    }

    /// Fails where the repository isn't sound, or has worktrees registered that aren't there.
    pub(crate) fn assert_sound(&self) {
        let output = self.try_git(&self.root, &["fsck", "--strict", "--no-dangling"]);
        let words = [output.stdout.clone(), output.stderr.clone()].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&words));
        let listed = self.git(&["worktree", "prune", "--dry-run", "--verbose"]);
        assert_eq!(listed, "", "worktrees left behind");
    }
}

/// Everything beneath a directory: kind, mode and content by name.
pub(crate) fn everything(top: &Path) -> BTreeMap<Vec<u8>, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let content = if metadata.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else if metadata.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            if metadata.is_dir() {
                open.push(path.clone());
            }
            let name = path.strip_prefix(top).unwrap().as_os_str().as_bytes().to_vec();
            found.insert(name, (metadata.mode(), content));
        }
    }
    found
}

pub(crate) fn paths<P: AsRef<[u8]>>(names: &[P]) -> Vec<RelPath> {
    names.iter().map(|name| RelPath::parse(name).unwrap()).collect()
}
