//! Opens the index of a project, and brings it up to date.

use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use journeyman_git::Git;
use journeyman_index::history::History;
use journeyman_index::store::{IndexReport, RefreshOptions, RefreshProgress};
use journeyman_index::{ProjectIndex, Snapshot};
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::RelPath;
use journeyman_sandbox::{Sandbox, SandboxSettings};

use super::path::PathResolver;
use crate::config::{Environment, load_without_project};
use crate::root::project_root;
use crate::state::project_state_dir;
use crate::{ADMIN_CONFIG, Context as _, HostError, configured_secrets, load_assuming_trust};

/// Maximum number of threads that read files; more help little.
const MAX_INDEX_THREADS: usize = 8;

/// The up-to-date index of a project, with the snapshot that answers queries.
pub struct CodeIndex {
    /// The index.
    pub project: ProjectIndex,
    /// The state that answers.
    pub snapshot: Arc<Snapshot>,
    pub(super) environment: Environment,
    pub(super) paths: PathResolver,
    /// Receives what people should know.
    pub(super) note: fn(&str),
}

impl CodeIndex {
    /// Opens the index of the project in `directory` and brings it up to date. `note` gets what
    /// people should know.
    ///
    /// # Errors
    /// [`HostError`] where the project or its index can't be opened. An index that can't be
    /// updated, such as on a full disk, still answers.
    pub fn open(
        environment: &Environment,
        directory: Option<&Path>,
        note: fn(&str),
        progress: &(dyn Fn(RefreshProgress) + Sync),
    ) -> Result<Self, HostError> {
        let project = open_index(environment, directory, note)?;
        if let Err(error) = refresh_index(&project, note, progress) {
            if project.index().snapshot().totals().files == 0 {
                return Err(error);
            }
            note(&format!("note: the files may have changed since they were indexed: {error}"));
        }
        let snapshot = project.index().snapshot();
        if snapshot.is_partial() {
            note("note: not all files are in the index yet");
        }
        let paths = PathResolver::new(environment, directory)?;
        Ok(Self { project, snapshot, environment: environment.clone(), paths, note })
    }

    /// Returns the number of the file that a user names.
    ///
    /// # Errors
    /// [`HostError::Usage`] saying why the file isn't in the index.
    pub fn find_file(&self, path: &str) -> Result<u32, HostError> {
        let find = |path: &str| self.snapshot.find_file(&RelPath::parse(path).ok()?);
        let graph = || self.project.graph(&self.snapshot);
        let similar = |path: &str| graph().similar_paths(path).into_iter().map(str::to_owned).collect();
        self.paths.find_file(path, &find, &similar)
    }

    /// Returns the project's repository.
    pub(super) fn git(&self) -> Git {
        Git::new(self.paths.root(), Arc::new(Sandbox::new(SandboxSettings::default())))
    }

    /// Reads the history of the project's repository; commits don't count where it can't be read.
    pub(super) fn read_history(&self) -> Option<History> {
        let git = self.git();
        self.project.current_history(&git).or_else(|| {
            Git::run_blocking(self.project.load_history(&git)).unwrap_or_else(|error| {
                (self.note)(&format!("note: commits don't count this time: {error}"));
                None
            })
        })
    }
}

/// Opens the index of the project in `directory` as it is. `note` gets what people should know.
///
/// # Errors
/// [`HostError`] where the project or its index can't be opened.
pub fn open_index(
    environment: &Environment,
    directory: Option<&Path>,
    note: fn(&str),
) -> Result<ProjectIndex, HostError> {
    let root = project_root(environment, directory)?;
    let directory = project_state_dir(environment, &root)?.join("index");
    // The secrets that a run keeps out of the index stay out here too. A wrong configuration of the
    // project is reported by the commands that use it.
    let config = load_assuming_trust(environment, &root)
        .or_else(|_| load_without_project(environment, Some(Path::new(ADMIN_CONFIG))))?;
    let redactor = Arc::new(Redactor::new(configured_secrets(environment, &config)));
    let project = ProjectIndex::open_with_redactor(&root, &directory, index_threads().get(), redactor)
        .context("the index")?;
    if let Some(why) = project.index().damage_report() {
        note(&format!("note: {why}"));
    }
    Ok(project)
}

/// Brings an index up to date with its project's files. `note` gets what people should know.
///
/// # Errors
/// [`HostError::Failed`] where the files can't be listed or the index can't be written.
pub fn refresh_index(
    project: &ProjectIndex,
    note: fn(&str),
    progress: &(dyn Fn(RefreshProgress) + Sync),
) -> Result<IndexReport, HostError> {
    let stop = AtomicBool::new(false);
    let options = RefreshOptions { threads: index_threads(), wait: false, progress, stop: &stop };
    let report = project.refresh(options).context("the index")?;
    if report.left_to_another {
        note("note: another process is bringing the index up to date; this is what there is so far");
    }
    if report.cut {
        note(
            "warning: the project has more files than the index takes; name what isn't needed in .journeymanignore",
        );
    }
    Ok(report)
}

/// Returns the number of threads for reading files.
#[must_use]
pub fn index_threads() -> NonZero<usize> {
    let max = NonZero::new(MAX_INDEX_THREADS).unwrap_or(NonZero::<usize>::MIN);
    std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN).min(max)
}
