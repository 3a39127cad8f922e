//! Where a task's files, its log and its state lie: one directory, used by one child after the
//! other.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_agent::{Approver, ChecksSetting, RunSettings, SessionParts};
use journeyman_model::Model;
use journeyman_policy::Policy;
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{Mode, SessionId, UnixMillis};
use journeyman_sandbox::{HostEnvironment, Sandbox, SandboxSettings, find_toolchains};
use journeyman_store::{Blobs, SqliteStore, Store};
use journeyman_tools::{Registry, SharedIndex};
use journeyman_workspace::failpoint::Failpoint;
use journeyman_workspace::{Options, Workspace};

use crate::crash::task;

/// The directory of one task.
#[derive(Debug, Clone)]
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    /// Writes the project down.
    pub(crate) fn make(&self) {
        for (name, content) in task::FILES {
            let path = self.root().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.0.join("project")
    }

    /// The log, opened anew.
    pub(crate) fn log(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&self.0.join("log/log.db")).unwrap())
    }

    /// The tree, opened anew.
    pub(crate) fn workspace(&self, failpoint: Option<Failpoint>) -> Arc<Workspace> {
        let blobs = Arc::new(Blobs::open(&self.0.join("blobs"), 1 << 30).unwrap());
        let options = Options::new(self.0.join("state"), blobs);
        Arc::new(Workspace::open_with(&self.root(), options, failpoint).unwrap())
    }

    /// What a session works with.
    pub(crate) fn parts(
        &self,
        store: Arc<dyn Store>,
        workspace: Arc<Workspace>,
        model: Arc<dyn Model>,
        clock: journeyman_agent::Clock,
    ) -> SessionParts {
        let host = HostEnvironment {
            vars: std::env::vars_os().collect(),
            home: std::env::var_os("HOME").map(PathBuf::from),
        };
        SessionParts {
            store,
            model,
            index: Arc::new(SharedIndex::new(Arc::clone(&workspace), Arc::default(), None)),
            workspace,
            copy: None,
            planned_copy: None,
            sandbox: Arc::new(sandbox(&self.0)),
            toolchains: Arc::new(find_toolchains(&host, &self.root())),
            registry: Registry::with_builtin_at(&self.root()),
            policy: Policy::default(),
            lasting_answers: Default::default(),
            redactor: Arc::new(Redactor::new(Vec::<String>::new())),
            hooks: journeyman_agent::hooks::Hooks::default(),
            clock,
            programs: Arc::new(|_: &str| None),
            holder: format!("crash test, process {}", std::process::id()),
            agents: None,
        }
    }

    /// Every file and directory of the project: its kind, mode and content.
    pub(crate) fn tree(&self) -> BTreeMap<String, String> {
        let mut tree = BTreeMap::new();
        walk(&self.root(), &self.root(), &mut tree);
        tree
    }
}

/// A sandbox whose test is remembered: every child has one of its own otherwise.
pub(crate) fn sandbox(place: &Path) -> Sandbox {
    let cache = place.parent().map(|above| above.join("sandbox-test"));
    Sandbox::new(SandboxSettings { cache, ..SandboxSettings::default() })
}

fn walk(root: &Path, dir: &Path, tree: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let seen = path.symlink_metadata().unwrap();
        let mode = seen.permissions().mode() & 0o7777;
        let name = path.strip_prefix(root).unwrap().display().to_string();
        if seen.is_dir() {
            tree.insert(name, format!("directory {mode:o}"));
            walk(root, &path, tree);
        } else if seen.is_file() {
            let content = std::fs::read(&path).unwrap();
            tree.insert(name, format!("file {mode:o} {}", String::from_utf8_lossy(&content)));
        } else {
            tree.insert(name, "something else".to_owned());
        }
    }
}

/// The one session of a place.
pub(crate) fn session() -> SessionId {
    SessionId::new(UnixMillis(1_700_000_000_000), 7)
}

/// Everything allowed that a sandbox allows; a person is there; one check.
pub(crate) fn settings() -> RunSettings {
    RunSettings {
        mode: Mode::Auto,
        approver: Approver::Handle,
        checks: ChecksSetting::Custom(vec![task::CHECK.to_owned()]),
        ..RunSettings::default()
    }
}

/// The system's clock.
pub(crate) fn now() -> UnixMillis {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    UnixMillis(u64::try_from(since.as_millis()).unwrap())
}
