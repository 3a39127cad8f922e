//! A user's house: home, configuration, state and one project, all in a temporary directory.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use journeyman_agent::State;
use journeyman_protocol::SessionId;
use journeyman_store::SqliteStore;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Jm;

/// A greeting that isn't polite, and the check that says so.
pub const GREETER: &[(&str, &str)] = &[
    ("greet.sh", "# Greets people.\ngreet() {\n    echo \"hello $1\"\n}\n"),
    (
        "test.sh",
        "set -eu\n. ./greet.sh\ngot=$(greet world)\nif [ \"$got\" != \"Hello, world!\" ]; then\n    \
         echo \"greet.sh:3: error: greet says '$got' and not 'Hello, world!'\" >&2\n    exit 1\nfi\n",
    ),
    ("Makefile", "test:\n\tsh test.sh\n"),
];
/// The greeting as it should be.
pub const POLITE: &str = "# Greets people.\ngreet() {\n    echo \"Hello, $1!\"\n}\n";

/// The house. Gone when dropped.
pub struct House {
    dir: TempDir,
}

impl House {
    /// With an empty project.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "config/journeyman", "tmp", "project"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    /// With the greeter as its project.
    pub fn with_greeter() -> Self {
        let house = Self::new();
        GREETER.iter().for_each(|(path, text)| house.write(path, text));
        house
    }

    /// With the greeter in a git repository, committed.
    pub fn with_repository() -> Self {
        let house = Self::with_greeter();
        house.git(&["init", "-q", "-b", "main"]);
        house.git(&["add", "."]);
        house.git(&["commit", "-q", "-m", "A greeter"]);
        house
    }

    /// A place in the house, outside of the project.
    pub fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// The state directory; it doesn't exist before `jm` makes it.
    pub fn state(&self) -> PathBuf {
        self.at("state/journeyman")
    }

    pub fn project(&self) -> PathBuf {
        self.at("project")
    }

    /// Writes a file of the project.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.project().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Reads a file of the project.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.project().join(path)).unwrap()
    }

    /// Writes the user's configuration.
    pub fn configure(&self, text: &str) {
        std::fs::write(self.user_config(), text).unwrap();
    }

    pub fn user_config(&self) -> PathBuf {
        self.at("config/journeyman/config.toml")
    }

    /// Runs git in the project, with nothing of this machine's configuration.
    pub fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"])
            .args(arguments)
            .current_dir(self.project())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// `jm` in the project, with nothing of this process's environment but the `PATH`.
    pub fn jm(&self, arguments: &[&str]) -> Jm {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jm"));
        command
            .args(arguments)
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.at("home"))
            .env("XDG_STATE_HOME", self.at("state"))
            .env("XDG_CONFIG_HOME", self.at("config"))
            .env("TMPDIR", self.at("tmp"))
            .env("LANG", "C.UTF-8")
            // Most tests are about the work in the project itself; `isolate.rs` is not.
            .env("JM_ISOLATE", "false");
        Jm::new(command)
    }

    /// The sessions of this project, newest first, as `jm sessions --json` lists them.
    pub fn sessions(&self) -> Vec<Value> {
        let ran = self.jm(&["sessions", "--json"]).run().expect(0);
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// A session as its log has it: transcript, calls, todos.
    pub fn state_of(&self, session: &str) -> State {
        let id: SessionId = session.parse().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let store = SqliteStore::open(&self.state().join("sessions.db")).unwrap();
        runtime.block_on(State::load(&store, &id)).unwrap()
    }

    /// The project as it is: every file with its bytes.
    pub fn tree(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        snapshot(&self.project())
    }

    /// The files under the state directory that hold `secret` as it stands.
    pub fn state_files_holding(&self, secret: &str) -> Vec<PathBuf> {
        let holds = |bytes: &[u8]| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        snapshot(&self.at("state"))
            .into_iter()
            .filter(|(_, bytes)| holds(bytes))
            .map(|(path, _)| path)
            .collect()
    }
}

/// Every regular file beneath a directory with its bytes; git's own left out.
pub fn snapshot(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(next) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(&next) else { continue };
        for entry in entries.map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && entry.file_name().as_bytes() != b".git" {
                waiting.push(entry.path());
            } else if kind.is_file() {
                let path = entry.path().strip_prefix(dir).unwrap().to_owned();
                all.insert(path, std::fs::read(entry.path()).unwrap());
            }
        }
    }
    all
}

/// The edit that makes the greeting polite, indented by two where the file has four.
pub fn polite_edit() -> Value {
    json!({
        "path": "greet.sh",
        "search": "greet() {\n  echo \"hello $1\"\n}",
        "replace": "greet() {\n  echo \"Hello, $1!\"\n}",
    })
}
