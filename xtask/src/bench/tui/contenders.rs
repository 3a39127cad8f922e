//! The programs that are measured: how each is started with a home of its own, pointed at the model
//! on the loopback by its documented settings, and talked to.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde_json::json;

/// The key that the programs send; nobody checks it.
const KEY: &str = "sk-bench-000000000000000000000000000000000000";

/// A program that is measured.
pub(super) struct Contender {
    pub(super) name: String,
    /// The command that starts a conversation.
    pub(super) command: Command,
    /// Words of the screen from which on it takes a message.
    pub(super) ready: &'static str,
    /// The keys that send what was typed.
    pub(super) send: &'static str,
    /// The keys that end it.
    pub(super) quit: &'static str,
}

/// A place to run in: a project, and a home that is empty but for what is written here.
pub(super) struct Place<'a> {
    pub(super) project: &'a Path,
    pub(super) home: &'a Path,
    pub(super) port: u16,
}

impl Place<'_> {
    fn write(&self, path: &str, text: &str) -> anyhow::Result<()> {
        let path = self.home.join(path);
        std::fs::create_dir_all(path.parent().context("a folder")?)?;
        Ok(std::fs::write(path, text)?)
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.project);
        for (name, path) in [
            ("HOME", ""),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_CACHE_HOME", "cache"),
        ] {
            command.env(name, self.home.join(path));
        }
        command.env("TERM", "xterm-256color").env("COLORTERM", "truecolor");
        command
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

/// Returns the conversation of a build of this tree.
pub(super) fn own(jm: &Path, place: &Place<'_>) -> Contender {
    let mut command = place.command(jm);
    command.args(["chat", "--wire", "chat", "--model", "bench", "--mode", "plan", "--allow-root"]);
    command.args(["--base-url", &place.url("")]).env("JM_API_KEY", KEY);
    let name = jm.display().to_string();
    Contender { name, command, ready: "say what to do", send: "\r", quit: "\x04" }
}

/// Returns the program of another maker, if the folder has it.
pub(super) fn other(name: &str, folder: &Path, place: &Place<'_>) -> anyhow::Result<Option<Contender>> {
    let program: PathBuf = folder.join(name);
    if !program.exists() {
        return Ok(None);
    }
    let mut command = place.command(&program);
    let project = place.project.display().to_string();
    let (ready, quit) = match name {
        "claude" => {
            let approved = KEY.get(KEY.len() - 20..).unwrap_or_default();
            let settings = json!({
                "hasCompletedOnboarding": true, "theme": "dark", "lastOnboardingVersion": "9.9.9",
                "customApiKeyResponses": { "approved": [approved], "rejected": [] },
                "projects": { project: { "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true } },
            });
            place.write(".claude.json", &settings.to_string())?;
            command.env("ANTHROPIC_BASE_URL", place.url("")).env("ANTHROPIC_API_KEY", KEY);
            command.env("DISABLE_AUTOUPDATER", "1").env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
            ("❯", "\x03\x03")
        }
        "codex" => {
            let url = place.url("/v1");
            let config = format!(
                "model = 'bench'\nmodel_provider = 'bench'\ncheck_for_update_on_startup = false\n\
                 [analytics]\nenabled = false\n\
                 [model_providers.bench]\nname = 'bench'\nbase_url = '{url}'\nenv_key = 'BENCH_KEY'\nwire_api = 'responses'\n\
                 [projects.'{project}']\ntrust_level = 'trusted'\n"
            );
            place.write(".codex/config.toml", &config)?;
            command.env("BENCH_KEY", KEY);
            ("Ask Codex to do anything", "\x03\x03")
        }
        "gemini" => {
            let settings = json!({
                "security": { "auth": { "selectedType": "gemini-api-key" } },
                "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
                "privacy": { "usageStatisticsEnabled": false },
            });
            place.write(".gemini/settings.json", &settings.to_string())?;
            command.args(["--skip-trust", "--model", "gemini-2.5-flash"]);
            command.env("GOOGLE_GEMINI_BASE_URL", place.url("")).env("GEMINI_API_KEY", KEY);
            command.env("GEMINI_TELEMETRY_ENABLED", "false");
            ("Type your message", "\x03\x03")
        }
        "opencode" => {
            let config = json!({
                "model": "bench/bench", "small_model": "bench/bench", "autoupdate": false, "share": "disabled",
                "provider": { "bench": { "npm": "@ai-sdk/openai-compatible", "name": "bench",
                    "options": { "baseURL": place.url("/v1"), "apiKey": KEY },
                    "models": { "bench": { "name": "bench", "limit": { "context": 200_000, "output": 32_000 } } } } },
            });
            command.env("OPENCODE_CONFIG_CONTENT", config.to_string());
            for name in [
                "OPENCODE_DISABLE_AUTOUPDATE",
                "OPENCODE_DISABLE_MODELS_FETCH",
                "OPENCODE_DISABLE_LSP_DOWNLOAD",
            ] {
                command.env(name, "true");
            }
            ("Ask anything", "\x03")
        }
        "pi" => {
            let models = json!({ "providers": { "bench": {
                "baseUrl": place.url("/v1"), "apiKey": KEY, "api": "openai-completions",
                "models": [{ "id": "bench", "name": "bench", "reasoning": false, "input": ["text"],
                    "contextWindow": 200_000, "maxTokens": 32_000,
                    "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0 } }],
            } } });
            place.write(".pi/agent/models.json", &models.to_string())?;
            command.args(["--provider", "bench", "--model", "bench"]);
            command.env("PI_OFFLINE", "1").env("PI_SKIP_VERSION_CHECK", "1");
            ("/200k", "\x03\x03")
        }
        _ => return Ok(None),
    };
    Ok(Some(Contender { name: name.to_owned(), command, ready, send: "\r", quit }))
}
