//! A CLI that does what it is told, and a project to use it in.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use journeyman_delegate::{
    Adapter, Capabilities, CommandLine, CommandRequest, Conversation, ConversationStep, DelegateEvent,
    DelegateSettings, DelegateTool, Delegates, Failure, FailureKind, Outcome, Provider, Requirements,
};
use journeyman_protocol::{CallId, ResultPart, SandboxNeeds, SessionId, Tokens, UnixMillis, Usage};
use journeyman_sandbox::{HostEnvironment, Sandbox, SandboxSettings, find_toolchains};
use journeyman_store::Blobs;
use journeyman_tools::{
    BackgroundCommands, Outputs, SeenFiles, SharedIndex, Tool as _, ToolContext, ToolError, ToolLimits,
    ToolOutput,
};
use journeyman_workspace::{Options, Workspace};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The script of the CLI.
const SCRIPT: &str = include_str!("fake_cli.py");

/// The adapter of the CLI.
pub(crate) struct FakeCli {
    pub(crate) name: &'static str,
    pub(crate) program: String,
    pub(crate) flags: Vec<&'static str>,
}

impl Adapter for FakeCli {
    fn name(&self) -> &str {
        self.name
    }

    fn program(&self) -> &str {
        &self.program
    }

    fn install_hint(&self) -> &str {
        "npm install -g fake"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { streaming: true, resume: true, ..Capabilities::default() }
    }

    fn requirements(&self) -> Requirements {
        Requirements {
            providers: vec![Provider {
                keys: vec!["FAKE_API_KEY".to_owned()],
                base_urls: vec!["FAKE_BASE_URL".to_owned()],
                hosts: vec!["api.fake.test".to_owned()],
                files: vec![(".fake/settings".into(), "updates = off".to_owned())],
                ..Provider::default()
            }],
            credentials: vec![".fake/auth".into()],
            set: vec![("FAKE_NO_UPDATE".to_owned(), "1".to_owned())],
            ..Requirements::default()
        }
    }

    fn build_command(&self, request: &CommandRequest<'_>) -> CommandLine {
        let mut argv = vec![self.program.clone().into()];
        argv.extend(self.flags.iter().map(Into::into));
        if let Some(id) = request.resume {
            argv.extend(["--resume".into(), id.into()]);
        }
        argv.extend(request.arguments.iter().map(Into::into));
        let environment = request.base_url.map(|url| ("FAKE_SEES".to_owned(), url.to_owned()));
        CommandLine {
            argv,
            stdin: request.prompt.as_bytes().to_vec(),
            environment: environment.into_iter().collect(),
            ..CommandLine::default()
        }
    }

    fn start_conversation(&self, _: &CommandRequest<'_>) -> Box<dyn Conversation> {
        Box::new(Reading::default())
    }
}

#[derive(Default)]
struct Reading {
    outcome: Outcome,
    is_over: bool,
}

impl Conversation for Reading {
    fn receive_line(&mut self, line: &[u8]) -> ConversationStep {
        let unknown = || DelegateEvent::Unknown(String::from_utf8_lossy(line).into_owned());
        let Ok(value) = serde_json::from_slice::<Value>(line) else {
            return ConversationStep { events: vec![unknown()], ..ConversationStep::default() };
        };
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let mut finished = false;
        let event = match value["type"].as_str().unwrap_or_default() {
            "session" => {
                self.outcome.session = Some(text("id"));
                DelegateEvent::Session(text("id"))
            }
            "text" => DelegateEvent::Text(text("text")),
            "tool" => {
                DelegateEvent::ToolStart { id: text("id"), tool: text("name"), summary: text("summary") }
            }
            "tool_end" => DelegateEvent::ToolEnd {
                id: text("id"),
                failed: value["failed"].as_bool().unwrap_or_default(),
                output: text("output"),
            },
            "files" => DelegateEvent::FilesChanged(vec![value["files"][0].as_str().unwrap().to_owned()]),
            "failed" => {
                self.is_over = true;
                let message = text("message");
                self.outcome.failure =
                    Some(Failure { kind: FailureKind::Reported, message: message.clone() });
                DelegateEvent::Warning(message)
            }
            "done" => {
                (self.is_over, finished) = (true, true);
                self.outcome.message = text("message");
                let tokens = |name: &str| Tokens(value["usage"][name].as_u64().unwrap_or_default());
                let usage = Usage { input: tokens("input"), output: tokens("output"), ..Usage::default() };
                (self.outcome.usage, self.outcome.cost) = (usage, value["cost"].as_f64());
                DelegateEvent::Usage { usage, cost: self.outcome.cost }
            }
            _ => unknown(),
        };
        ConversationStep { events: vec![event], finished, ..ConversationStep::default() }
    }

    fn end(mut self: Box<Self>, exit: Option<i32>, stderr: &str) -> Outcome {
        if !self.is_over {
            let kind = match stderr.contains("unexpected argument") {
                true => FailureKind::UnknownFlag,
                false => FailureKind::CutOff,
            };
            let message = match exit {
                Some(code) => format!("it stopped early with exit code {code}: {}", stderr.trim()),
                None => "it stopped early".to_owned(),
            };
            self.outcome.failure = Some(Failure { kind, message });
        }
        self.outcome
    }
}

/// A project, the CLI beside it, and what calls need.
pub(crate) struct Bench {
    pub(crate) root: PathBuf,
    /// The user's home.
    pub(crate) home: PathBuf,
    /// The homes of CLIs.
    pub(crate) state: PathBuf,
    pub(crate) context: ToolContext,
    /// Absent once its session has ended.
    pub(crate) tool: Option<DelegateTool>,
    pub(crate) live: Arc<Mutex<String>>,
    pub(crate) events: Arc<Mutex<Vec<(String, Value)>>>,
    _dir: Option<tempfile::TempDir>,
}

/// Returns the sandbox of this machine, if commands can be confined with it.
pub(crate) fn sandbox() -> Option<Arc<Sandbox>> {
    let sandbox = Arc::new(Sandbox::new(SandboxSettings::default()));
    let enforcement = block_on(sandbox.enforcement(&SandboxNeeds::ALL));
    let enforced = enforcement.map_err(journeyman_testkit::skip).ok()?;
    if !enforced.network_filtered {
        journeyman_testkit::skip("the sandbox can't let single hosts through");
        return None;
    }
    journeyman_testkit::has_program_or_skip("/usr/bin/python3").then_some(sandbox)
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// What differs from bench to bench.
#[derive(Default)]
pub(crate) struct Setup {
    pub(crate) variables: Vec<(&'static str, String)>,
    pub(crate) flags: Vec<&'static str>,
    pub(crate) time_limit: Option<std::time::Duration>,
    /// A CLI in place of the scripted one.
    pub(crate) settings: Option<DelegateSettings>,
}

impl Bench {
    pub(crate) fn new(sandbox: &Arc<Sandbox>, files: &[(&str, &str)]) -> Self {
        Self::with(sandbox, files, Setup::default())
    }

    pub(crate) fn with(sandbox: &Arc<Sandbox>, files: &[(&str, &str)], setup: Setup) -> Self {
        let dir = tempfile::Builder::new().prefix("jm-delegate-").tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        Self { _dir: Some(dir), ..Self::at(&base, sandbox, files, setup) }
    }

    /// Makes a bench in a directory that the caller removes.
    pub(crate) fn at(base: &Path, sandbox: &Arc<Sandbox>, files: &[(&str, &str)], setup: Setup) -> Self {
        let (root, home) = (base.join("home/project"), base.join("home"));
        std::fs::create_dir_all(&root).unwrap();
        for (name, content) in files {
            std::fs::write(root.join(name), content).unwrap();
        }
        let installed = Installed::at(base, &root, setup);
        let Installed { delegates, host, .. } = installed;
        let blobs = Arc::new(Blobs::open(&base.join("blobs"), 1 << 30).unwrap());
        let options = Options {
            guarded: Some(journeyman_policy::GUARD_RULES),
            ..Options::new(base.join("project-state"), blobs)
        };
        let workspace = Arc::new(Workspace::open(&root, options).unwrap());
        let (live, events) = (Arc::new(Mutex::new(String::new())), Arc::new(Mutex::new(Vec::new())));
        let (shown, logged) = (Arc::clone(&live), Arc::clone(&events));
        let context = ToolContext {
            index: Arc::new(SharedIndex::new(Arc::clone(&workspace), Arc::default(), None)),
            workspace,
            sandbox: Arc::clone(sandbox),
            toolchains: Arc::new(find_toolchains(&host, &root)),
            session: SessionId::new(UnixMillis(1), 1),
            call: CallId::new("call_1"),
            cancel: CancellationToken::new(),
            output: Arc::new(move |text| shown.lock().unwrap().push_str(&text)),
            emit: Arc::new(move |kind, data| logged.lock().unwrap().push((kind.to_owned(), data))),
            limits: ToolLimits::default(),
            seen: Arc::new(SeenFiles::default()),
            may_show: Arc::new(|_| true),
            outputs: Arc::new(Outputs::default()),
            background: Arc::new(BackgroundCommands::default()),
            needs: SandboxNeeds::ALL,
        };
        let state = base.join("state/delegates");
        let tool = DelegateTool::new(delegates, state.clone());
        Self { root, home, state, context, tool: Some(tool), live, events, _dir: None }
    }

    pub(crate) fn tool(&self) -> &DelegateTool {
        self.tool.as_ref().unwrap()
    }

    /// Gives the CLI a prompt.
    pub(crate) fn call(&self, prompt: &str) -> Result<ToolOutput, ToolError> {
        self.send(json!({ "to": "fake", "prompt": prompt }))
    }

    /// Makes a call.
    pub(crate) fn send(&self, input: Value) -> Result<ToolOutput, ToolError> {
        block_on(self.tool().call(&self.context, input))
    }

    pub(crate) fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join(name)).ok()
    }

    pub(crate) fn kinds(&self) -> Vec<String> {
        self.events.lock().unwrap().iter().map(|(kind, _)| kind.clone()).collect()
    }
}

/// The CLI, installed beside a project.
pub(crate) struct Installed {
    pub(crate) delegates: Delegates,
    pub(crate) host: HostEnvironment,
    pub(crate) program: PathBuf,
    _dir: Option<tempfile::TempDir>,
}

impl Installed {
    /// Installs it without a project.
    pub(crate) fn new(time_limit: Option<std::time::Duration>) -> Self {
        let dir = tempfile::Builder::new().prefix("jm-delegate-").tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let setup = Setup { time_limit, ..Setup::default() };
        Self { _dir: Some(dir), ..Self::at(&base, &base.join("project"), setup) }
    }

    fn at(base: &Path, root: &Path, setup: Setup) -> Self {
        let home = base.join("home");
        for (name, content) in
            [(".fake/auth", "the login"), (".ssh/id_ed25519", "ssh secret"), (".other/auth", "other's login")]
        {
            std::fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
            std::fs::write(home.join(name), content).unwrap();
        }
        let program = base.join("lib/fake/fake-cli");
        std::fs::create_dir_all(program.parent().unwrap()).unwrap();
        std::fs::create_dir_all(base.join("bin")).unwrap();
        journeyman_testkit::write_program(&program, SCRIPT);
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("../lib/fake/fake-cli", base.join("bin/fake")).unwrap();
        let mut vars: BTreeMap<_, _> = [
            ("PATH", format!("{}:/usr/bin:/bin", base.join("bin").display())),
            ("HOME", home.display().to_string()),
            ("FAKE_API_KEY", "fake-key-1".to_owned()),
            ("OTHER_API_KEY", "other-key-1".to_owned()),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .into();
        vars.extend(setup.variables.iter().map(|(name, value)| (name.into(), value.into())));
        let host = HostEnvironment { vars, home: Some(home) };
        let cli = |name, program: &str, flags| FakeCli { name, program: program.to_owned(), flags };
        let with_flags = DelegateSettings {
            time_limit: setup.time_limit,
            ..DelegateSettings::new(Arc::new(cli("fake", "fake", setup.flags)))
        };
        let with_flags = setup.settings.unwrap_or(with_flags);
        let missing = DelegateSettings::new(Arc::new(cli("missing", "no-such-cli", Vec::new())));
        let delegates = Delegates::new(vec![missing, with_flags], host.clone(), Some(root));
        Self { delegates, host, program: base.join("bin/fake"), _dir: None }
    }
}

/// The texts of a result's parts.
pub(crate) fn texts(output: &ToolOutput) -> Vec<&str> {
    fn text(part: &ResultPart) -> &str {
        match part {
            ResultPart::Text { text } => text,
            ResultPart::Image(_) => panic!("an image"),
        }
    }
    output.parts.iter().map(text).collect()
}

/// The session that a result names.
pub(crate) fn session_of(output: &ToolOutput) -> String {
    let notes = texts(output)[1];
    let line = notes.lines().find_map(|line| line.strip_prefix("[session: ")?.strip_suffix(']'));
    line.unwrap_or_else(|| panic!("{notes}")).to_owned()
}

/// Returns true for a directory that is not there or has nothing in it.
pub(crate) fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).map_or(true, |mut entries| entries.next().is_none())
}
