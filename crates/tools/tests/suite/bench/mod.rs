//! A project in a temporary directory, and the tools on it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use journeyman_protocol::{CallId, ResultPart, SandboxNeeds, SandboxTier, SessionId, UnixMillis};
use journeyman_sandbox::{Sandbox, SandboxSettings, Toolchains};
use journeyman_store::Blobs;
use journeyman_tools::{
    BackgroundCommands, Outputs, Registry, SeenFiles, SharedIndex, ToolContext, ToolError, ToolLimits,
    ToolOutput,
};
use journeyman_workspace::{Limits, Options, Workspace};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A project, and what calls need.
pub(crate) struct Bench {
    _dir: TempDir,
    /// The project's root.
    pub(crate) root: PathBuf,
    /// Beside the project.
    pub(crate) outside: PathBuf,
    /// The context of calls.
    pub(crate) context: ToolContext,
    /// The tools.
    pub(crate) tools: Registry,
    /// Live output so far.
    pub(crate) live: Arc<Mutex<String>>,
}

impl Bench {
    /// A project with these files. Commands run unconfined: what confines them has tests of its
    /// own.
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        Self::with_limits(files, Limits::default().max_files)
    }

    /// The same, where so many files are looked at.
    pub(crate) fn with_limits(files: &[(&str, &[u8])], max_files: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (root, state) = (base.join("project"), base.join("state"));
        std::fs::create_dir_all(&root).unwrap();
        for (name, content) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let blobs = Arc::new(Blobs::open(&base.join("blobs"), 1 << 30).unwrap());
        let limits = Limits { max_files, ..Limits::default() };
        let options = Options { limits, ..Options::new(state, blobs) };
        let workspace = Arc::new(Workspace::open(&root, options).unwrap());
        let settings = SandboxSettings {
            allow: vec![SandboxTier::Unconfined],
            allow_root: true,
            ..SandboxSettings::default()
        };
        let live = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&live);
        let context = ToolContext {
            index: Arc::new(SharedIndex::new(Arc::clone(&workspace), Arc::default(), None)),
            workspace,
            sandbox: Arc::new(Sandbox::new(settings)),
            toolchains: Arc::new(Toolchains::default()),
            session: SessionId::new(UnixMillis(1), 1),
            call: CallId::new("call_1"),
            cancel: CancellationToken::new(),
            output: Arc::new(move |text| sink.lock().unwrap().push_str(&text)),
            emit: Arc::new(|_, _| {}),
            limits: ToolLimits::default(),
            seen: Arc::new(SeenFiles::default()),
            may_show: Arc::new(|_| true),
            outputs: Arc::new(Outputs::default()),
            background: Arc::new(BackgroundCommands::default()),
            needs: SandboxNeeds::NONE,
        };
        Self {
            outside: base.clone(),
            tools: Registry::with_builtin_at(&root),
            root,
            context,
            live,
            _dir: dir,
        }
    }

    /// Makes a call.
    pub(crate) fn call(&self, tool: &str, input: Value) -> Result<ToolOutput, ToolError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(self.tools.get(tool).unwrap().call(&self.context, input))
    }

    /// A call's text, or its error in words.
    pub(crate) fn say(&self, tool: &str, input: Value) -> String {
        match self.call(tool, input) {
            Ok(output) => text(&output),
            Err(error) => format!("error: {error}"),
        }
    }

    /// A file's bytes.
    pub(crate) fn file(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.root.join(name)).unwrap()
    }
}

/// The text of a result of one part.
pub(crate) fn text(output: &ToolOutput) -> String {
    match output.parts.as_slice() {
        [ResultPart::Text { text }] => text.clone(),
        parts => panic!("{parts:?}"),
    }
}
