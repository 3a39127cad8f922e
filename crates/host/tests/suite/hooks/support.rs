//! Projects, calls, and hooks for them.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use journeyman_agent::hooks::{
    HookCallResult, HookContext, Hooks, HooksBuilder, PreToolDecision, PreToolResult, UnseenChanges,
};
use journeyman_host::config::{Environment, ProjectTrust, load_config};
use journeyman_protocol::{CallId, Effects, Mode, RelPath, ResultPart, SessionId, ToolUse, UnixMillis};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A project with scripts.
pub(crate) struct Project {
    pub(crate) place: TempDir,
}

impl Project {
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("root")).unwrap();
        Self { place }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.place.path().join("root").canonicalize().unwrap()
    }

    /// An executable script in the project.
    pub(crate) fn script(self, name: &str, text: &str) -> Self {
        let path = self.root().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Another process writes it: a descriptor of this one's could leak into a test that starts
        // a program at the same time, and a file that somebody has open for writing can't be
        // executed.
        let mut writer = std::process::Command::new("sh")
            .args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"])
            .arg(&path)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(writer.wait().unwrap().success());
        self
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.root().join(name)).unwrap()
    }

    pub(crate) fn read_json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    pub(crate) fn environment(&self) -> Environment {
        let mut vars: BTreeMap<_, _> = std::env::vars_os().filter(|(name, _)| name == "PATH").collect();
        vars.insert("XDG_CONFIG_HOME".into(), self.place.path().join("config").into());
        vars.insert("ANTHROPIC_API_KEY".into(), "key-of-a-provider".into());
        vars.insert("MINE".into(), "kept".into());
        vars.insert("STAGING_TOKEN".into(), "listed-by-the-user".into());
        Environment { vars, home: None, cwd: self.root() }
    }

    /// The hooks of a user's configuration.
    pub(crate) fn hooks(&self, config: &str) -> Hooks {
        self.builder(config).build()
    }

    pub(crate) fn builder(&self, config: &str) -> HooksBuilder {
        let dir = self.place.path().join("config/journeyman");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.toml"), config).unwrap();
        let environment = self.environment();
        let loaded = load_config(&environment, &self.root(), &[], ProjectTrust::Nothing, None).unwrap();
        journeyman_host::add_configured_hooks(HooksBuilder::new(), &loaded.config, &environment, &self.root())
    }

    /// One command for an event, in Claude Code's form.
    pub(crate) fn hook(&self, event: &str, command: &str) -> Hooks {
        self.hooks(&configured(event, "", command, ""))
    }

    pub(crate) fn at(&self) -> HookContext {
        HookContext {
            session: SessionId::new(UnixMillis(1), 1),
            root: self.root(),
            mode: Mode::Edit,
            transcript: Some("/state/session.jsonl".into()),
            cancel: CancellationToken::new(),
            sandbox: None,
            unseen: UnseenChanges::default(),
        }
    }
}

/// A hook outside of the sandbox: what hooks mean is the same inside.
pub(crate) fn configured(event: &str, matcher: &str, command: &str, more: &str) -> String {
    let command = Value::String(command.to_owned());
    format!(
        "[[hooks.{event}]]\nmatcher = '{matcher}'\nhooks = [{{ type = \"command\", command = {command}, sandbox = false{more} }}]\n"
    )
}

pub(crate) fn bash(command: &str) -> (ToolUse, Effects) {
    let effects = Effects { command: Some(command.to_owned()), ..Effects::default() };
    (call("run_command", json!({"command": command})), effects)
}

pub(crate) fn edit(path: &str) -> (ToolUse, Effects) {
    let path_of = RelPath::parse(path).unwrap();
    let effects = Effects { writes: vec![path_of], ..Effects::default() };
    (call("edit_file", json!({"path": path, "search": "a", "replace": "b"})), effects)
}

pub(crate) fn call(tool: &str, input: Value) -> ToolUse {
    ToolUse { id: CallId::new("c1"), name: tool.to_owned(), input, malformed: None, signature: None }
}

pub(crate) fn result(text: &str, is_error: bool) -> HookCallResult {
    HookCallResult { parts: vec![ResultPart::Text { text: text.to_owned() }], is_error }
}

pub(crate) async fn before(
    project: &Project,
    hooks: &Hooks,
    (call, effects): (ToolUse, Effects),
) -> PreToolResult {
    hooks.run_pre_tool(&project.at(), &call, &effects).await
}

pub(crate) fn denied(reason: &str) -> PreToolDecision {
    PreToolDecision::Deny { reason: reason.to_owned() }
}

pub(crate) fn reason_of(decision: &PreToolDecision) -> &str {
    match decision {
        PreToolDecision::Deny { reason }
        | PreToolDecision::Ask { reason }
        | PreToolDecision::Approve { reason } => reason,
        PreToolDecision::Go | PreToolDecision::Result { .. } => "",
    }
}

pub(crate) fn has_python() -> bool {
    journeyman_testkit::has_program_or_skip("python3")
}

/// A pipe by name: reading it to its end waits for every process that has it open.
pub(crate) fn pipe(project: &Project, name: &str) -> PathBuf {
    let path = project.root().join(name);
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}
