//! Runs a commit's hooks in the sandbox.
//!
//! A hook is often a program that the project's files contain, name or configure, so the author of
//! a change would decide what runs. So `git commit` itself runs without hooks, and the hooks run
//! before and after it in the sandbox, with an index, an object store and a message of their own.
//! Their results are taken over as data: blobs are hashed again, entries go through git's own check
//! of paths.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use journeyman_protocol::{RelPath, SandboxNeeds, SandboxTier};
use journeyman_sandbox::{Limits, Outcome, Request, StdioMode, clean_output};
use tokio_util::sync::CancellationToken;

use crate::limits::{
    HOOK_TIMEOUT, MAX_COMMIT_MESSAGE_BYTES, MAX_ERROR_OUTPUT_BYTES, MAX_HOOK_BLOB_BYTES, MAX_HOOK_CHANGES,
    MAX_HOOK_OUTPUT_BYTES,
};
use crate::raw_diff::parse_raw_diff;
use crate::reader::{GitReader, ReadCommand};
use crate::repository_paths::RepositoryPaths;
use crate::user_git::{UserCommand, UserGitRunner};
use crate::{CommitRefusal, CommitRequest, Git, GitError, HookConfinement, HookRunMode, configured_programs};

/// The hooks that run before a commit is created, in git's order.
const PRE_COMMIT_HOOKS: [&str; 3] = ["pre-commit", "prepare-commit-msg", "commit-msg"];
const POST_COMMIT_HOOK: &str = "post-commit";

/// Runs the hooks named after the directory and the message's file.
const RUN_HOOKS_SCRIPT: &str = r#"
hooks=$1 message=$2
shift 2
for name; do
    case $name in
    prepare-commit-msg) "$hooks/$name" "$message" message || exit ;;
    commit-msg) "$hooks/$name" "$message" || exit ;;
    *) "$hooks/$name" || exit ;;
    esac
done
"#;
/// The mode of a submodule's entry, whose object is a commit of another repository.
const SUBMODULE_MODE: &str = "160000";

/// The hooks of a repository that concern commits.
#[derive(Debug)]
pub(crate) struct CommitHooks {
    directory: PathBuf,
    names: Vec<&'static str>,
}

impl CommitHooks {
    /// Finds the hooks where git does: in `core.hooksPath`, else in the repository's own directory.
    pub(crate) async fn find(own: &UserGitRunner<'_>, place: &RepositoryPaths) -> Result<Self, GitError> {
        let call = UserCommand::new(["rev-parse", "--git-path", "hooks"]).with_hooks();
        let said = own.run(call).await?.into_output("rev-parse")?;
        let named = Path::new(OsStr::from_bytes(said.strip_suffix(b"\n").unwrap_or(&said)));
        let directory = place.work_tree()?.join(named);
        let executable = |name: &&str| {
            let found = fs::metadata(directory.join(name));
            found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        let names = PRE_COMMIT_HOOKS.into_iter().chain([POST_COMMIT_HOOK]).filter(executable).collect();
        Ok(Self { directory, names })
    }

    fn names_before_commit(&self) -> Vec<&'static str> {
        self.names.iter().copied().filter(|name| *name != POST_COMMIT_HOOK).collect()
    }

    /// Returns the hooks' files.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.names.iter().map(|name| self.directory.join(name)).collect()
    }

    fn refusal(&self, reason: impl ToString) -> GitError {
        CommitRefusal::Hooks { hooks: self.files(), reason: reason.to_string() }.into()
    }
}

/// Runs the hooks of one commit in a temporary directory.
pub(crate) struct HookRunner<'a> {
    reader: &'a GitReader<'a>,
    git: &'a Git,
    confinement: &'a HookConfinement,
    found: CommitHooks,
    cancel: &'a CancellationToken,
    /// The directory of the hooks' index, objects, settings and message.
    directory: PathBuf,
}

impl<'a> HookRunner<'a> {
    /// Creates a runner; fails if there are hooks to run and no sandbox can confine them.
    /// `directory` is created when it is needed.
    pub(crate) async fn new(
        reader: &'a GitReader<'a>,
        git: &'a Git,
        confinement: &'a HookConfinement,
        found: CommitHooks,
        cancel: &'a CancellationToken,
        directory: PathBuf,
    ) -> Result<Self, GitError> {
        let this = Self { reader, git, confinement, found, cancel, directory };
        this.check_sandbox().await?;
        Ok(this)
    }

    fn is_needed(&self) -> bool {
        self.confinement.run == HookRunMode::Confined && !self.found.names.is_empty()
    }

    async fn check_sandbox(&self) -> Result<(), GitError> {
        if !self.is_needed() {
            return Ok(());
        }
        let enforcement = self.git.sandbox.enforcement(&self.sandbox_needs()).await;
        let enforcement = enforcement.map_err(|error| self.found.refusal(error))?;
        let missing = enforcement.first_unmet(&self.sandbox_needs());
        match missing {
            _ if enforcement.tier == SandboxTier::Unconfined => {
                Err(self.found.refusal("no sandbox works here"))
            }
            Some(missing) => {
                let tier = enforcement.tier;
                Err(self.found.refusal(format!("the sandbox \"{tier}\" doesn't give {missing}")))
            }
            None => Ok(()),
        }
    }

    fn sandbox_needs(&self) -> SandboxNeeds {
        SandboxNeeds {
            writes_confined: true,
            reads_confined: true,
            network_off: true,
            ..self.confinement.needs
        }
    }

    /// Runs the hooks before a commit on `index` and the message. Applies their changes to the
    /// index, and returns the new message and the hooks' output.
    pub(crate) async fn run_before_commit(
        &self,
        own: &UserGitRunner<'_>,
        index: &Path,
        commit: &CommitRequest,
    ) -> Result<(Vec<u8>, String), GitError> {
        let message = clean_output(commit.message.as_bytes()).into_bytes();
        let names = self.found.names_before_commit();
        if !self.is_needed() || names.is_empty() {
            return Ok((message, String::new()));
        }
        let tree =
            own.run(UserCommand::new(["write-tree"]).with_index(index)).await?.into_output("write-tree")?;
        let tree = String::from_utf8_lossy(tree.trim_ascii_end()).into_owned();
        self.prepare_directory(own, index, &message).await?;
        let words = self.run_hooks(&names, true).await?;
        let changed = self.changed_files(&tree).await?;
        self.check_added_files(&changed, commit)?;
        self.apply_to_index(own, index, &changed).await?;
        let mut ask =
            ReadCommand::new("commit", [self.message_path()]).with_output_limit(MAX_COMMIT_MESSAGE_BYTES);
        ask.script = Some("cat -- \"$2\"");
        let message = self.reader.run(ask).await?.into_output("commit")?;
        Ok((clean_output(&message).into_bytes(), words))
    }

    /// Runs the hook after a commit. Its failure does not affect the commit.
    pub(crate) async fn run_after_commit(&self) -> String {
        if !self.is_needed() || !self.found.names.contains(&POST_COMMIT_HOOK) {
            return String::new();
        }
        let ran = match fs::create_dir_all(&self.directory) {
            Ok(()) => self.run_hooks(&[POST_COMMIT_HOOK], false).await,
            Err(source) => Err(GitError::Io { what: "making", path: self.directory.clone(), source }),
        };
        ran.unwrap_or_else(|error| match error {
            GitError::Failed { words, .. } => words,
            other => other.to_string(),
        })
    }

    fn index_path(&self) -> PathBuf {
        self.directory.join("index")
    }

    fn message_path(&self) -> PathBuf {
        self.directory.join("COMMIT_EDITMSG")
    }

    fn objects_path(&self) -> PathBuf {
        self.directory.join("objects")
    }

    fn settings_path(&self) -> PathBuf {
        self.directory.join("settings")
    }

    async fn prepare_directory(
        &self,
        own: &UserGitRunner<'_>,
        index: &Path,
        message: &[u8],
    ) -> Result<(), GitError> {
        let settings = configured_programs::format_settings(&configured_programs::read_settings(own).await?);
        let mut alternates = self.reader.place.common_dir.join("objects").into_os_string();
        alternates.push("\n");
        let make = || {
            let info = self.objects_path().join("info");
            fs::create_dir_all(&info)?;
            fs::write(info.join("alternates"), alternates.as_bytes())?;
            fs::write(self.settings_path(), settings)?;
            fs::write(self.message_path(), message)?;
            crate::temporary_index::copy_with_mtime(index, &self.index_path())
        };
        make().map_err(GitError::io("preparing", &self.directory))
    }

    async fn run_hooks(&self, names: &[&str], is_before: bool) -> Result<String, GitError> {
        let request = self.sandbox_request(names, is_before)?;
        let running = self.git.sandbox.spawn(request, self.cancel.clone()).await;
        let running = running.map_err(|error| self.found.refusal(error))?;
        let completed = running.wait().await?;
        let mut words = completed.stdout.text.trim().to_owned();
        let failed = |words| Err(GitError::Failed { action: "commit", words });
        match completed.outcome {
            Outcome::Exited(0) => Ok(words),
            Outcome::Exited(code) => {
                if words.is_empty() {
                    words = format!("a hook ended with code {code}");
                }
                for denial in &completed.denials {
                    words.push_str(&format!("\n{denial}"));
                }
                failed(words)
            }
            Outcome::Cancelled => Err(GitError::Cancelled { action: "commit" }),
            Outcome::TimedOut => Err(GitError::TimedOut { action: "commit" }),
            Outcome::Signaled(signal) => failed(format!("{words}\na hook was ended by signal {signal}")),
            Outcome::SetupFailed(reason) => Err(self.found.refusal(reason.reason)),
            excess => failed(format!(
                "{words}\na hook was killed for {}",
                excess.exceeded_limit().unwrap_or_default()
            )),
        }
    }

    fn sandbox_request(&self, names: &[&str], is_before: bool) -> Result<Request, GitError> {
        let place = &self.reader.place;
        let top = place.work_tree()?;
        let mut argv = ["/bin/sh", "-c", RUN_HOOKS_SCRIPT, "sh"].map(OsString::from).to_vec();
        argv.extend([self.found.directory.clone().into_os_string(), self.message_path().into_os_string()]);
        argv.extend(names.iter().map(OsString::from));
        // Hooks may change only the project, even if it is a part of a repository.
        let mut request = Request::for_program(&place.root, argv);
        request.env.extend(self.confinement.env.clone());
        let mut request = request.with_toolchains(&self.confinement.toolchains);
        request.cwd = top.to_owned();
        let git = OsStr::from_bytes(b".git");
        request.protected.retain(|path| path.as_path().as_os_str() != git);
        request
            .protected
            .extend(self.confinement.protected.iter().filter(|path| !is_git_directory(path)).cloned());
        if top != place.root {
            request.read_only.push(top.to_owned());
        }
        if !place.git_dir.starts_with(top) {
            request.read_only.push(top.join(".git"));
        }
        // Some hooks stash changes and restore them: that happens in a layer that is discarded.
        request.layered.extend([place.common_dir.clone(), place.git_dir.clone()]);
        request.read_only.extend(
            place
                .outside_paths()
                .into_iter()
                .filter(|path| path != &place.common_dir && path != &place.git_dir),
        );
        request.read_only.extend(self.found.outside_directories(top));
        request.writable.push(self.directory.clone());
        request.env.insert("GIT_CONFIG_GLOBAL".into(), self.settings_path().into());
        request.env.insert("GIT_EDITOR".into(), ":".into());
        if is_before {
            request.env.insert("GIT_INDEX_FILE".into(), self.index_path().into());
            request.env.insert("GIT_OBJECT_DIRECTORY".into(), self.objects_path().into());
        }
        request.streams = StdioMode::Merged;
        request.limits = Limits {
            wall: HOOK_TIMEOUT,
            output_bytes: MAX_ERROR_OUTPUT_BYTES,
            flood_bytes: Some(MAX_HOOK_OUTPUT_BYTES),
            ..Limits::default()
        };
        request.needs = self.sandbox_needs();
        Ok(request)
    }

    /// Returns the changes of the hooks in their index.
    async fn changed_files(&self, tree: &str) -> Result<BTreeMap<Vec<u8>, String>, GitError> {
        let action = "diff-index";
        let args = [action, "--cached", "--raw", "--no-renames", "--no-abbrev", "-z", tree];
        let bytes = self.reader.run(self.build_read_command(action, args)).await?.into_output(action)?;
        let changed = parse_raw_diff(&bytes).ok_or(GitError::Malformed { action, what: "an entry" })?;
        if changed.len() > MAX_HOOK_CHANGES {
            let words = format!("a hook changed more than {MAX_HOOK_CHANGES} files of the commit");
            return Err(GitError::Failed { action: "commit", words });
        }
        Ok(changed)
    }

    fn build_read_command<'b, const N: usize>(
        &self,
        action: &'static str,
        args: [&'b str; N],
    ) -> ReadCommand<'b> {
        let mut ask = ReadCommand::new(action, args).with_output_limit(MAX_HOOK_BLOB_BYTES);
        ask.env.push(("GIT_INDEX_FILE", self.index_path().into()));
        ask.env.push(("GIT_OBJECT_DIRECTORY", self.objects_path().into()));
        ask
    }

    fn check_added_files(
        &self,
        changed: &BTreeMap<Vec<u8>, String>,
        commit: &CommitRequest,
    ) -> Result<(), CommitRefusal> {
        let prefix = self.reader.place.prefix.as_slice();
        let asked: BTreeSet<&RelPath> = commit.paths.iter().collect();
        let inside = changed.keys().filter_map(|full| RelPath::parse(full.strip_prefix(prefix)?).ok());
        let added: Vec<RelPath> =
            inside.filter(|path| !asked.contains(path) && (self.confinement.is_guarded)(path)).collect();
        if added.is_empty() { Ok(()) } else { Err(CommitRefusal::AddedByHook(added)) }
    }

    /// Applies the hooks' changes to the commit's index.
    async fn apply_to_index(
        &self,
        own: &UserGitRunner<'_>,
        index: &Path,
        changed: &BTreeMap<Vec<u8>, String>,
    ) -> Result<(), GitError> {
        let mut lines = Vec::new();
        for (path, entry) in changed {
            if let Some((mode, id)) =
                entry.split_once(' ').filter(|(mode, _)| !matches!(*mode, "0" | SUBMODULE_MODE))
            {
                self.copy_blob(own, mode, id).await?;
            }
            lines.extend_from_slice(entry.as_bytes());
            lines.push(b'\t');
            lines.extend_from_slice(path);
            lines.push(0);
        }
        if lines.is_empty() {
            return Ok(());
        }
        let call =
            UserCommand::new(["update-index", "-z", "--index-info"]).with_stdin(lines).with_index(index);
        own.run(call).await?.into_output("update-index").map(drop)
    }

    async fn copy_blob(&self, own: &UserGitRunner<'_>, mode: &str, id: &str) -> Result<(), GitError> {
        let broken = || GitError::Malformed { action: "commit", what: "an object of a hook's" };
        let plain = id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !plain || !matches!(mode, "100644" | "100755" | "120000") {
            return Err(broken());
        }
        if own.run(UserCommand::new(["cat-file", "-e", id])).await?.is_success() {
            return Ok(());
        }
        let action = "cat-file";
        let bytes = self
            .reader
            .run(self.build_read_command(action, [action, "blob", id]))
            .await?
            .into_output(action)?;
        let call = UserCommand::new(["hash-object", "-w", "--stdin", "--no-filters"]).with_stdin(bytes);
        let made = own.run(call).await?.into_output("hash-object")?;
        if made.trim_ascii_end() == id.as_bytes() { Ok(()) } else { Err(broken()) }
    }
}

impl CommitHooks {
    /// Returns the paths outside the work tree that must be readable: the hooks' directory and the
    /// targets of its links.
    fn outside_directories(&self, top: &Path) -> Vec<PathBuf> {
        let real = self.files().into_iter().filter_map(|file| file.canonicalize().ok());
        let program_directories = real.filter_map(|file| file.parent().map(Path::to_owned));
        let all = program_directories.chain([self.directory.clone()]);
        all.filter(|directory| !directory.starts_with(top)).collect()
    }
}

fn is_git_directory(path: &RelPath) -> bool {
    path.components().next().is_some_and(|name| name.eq_ignore_ascii_case(b".git"))
        && path.components().count() == 1
}
