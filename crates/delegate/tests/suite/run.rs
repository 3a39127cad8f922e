//! Runs a command of an adapter as a process, with a home of its own and without the environment of
//! whoever runs the tests.

use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use journeyman_delegate::{
    Adapter, CommandLine, CommandRequest, ConversationStep, DelegateEvent, Machine, Outcome, TokensAndCost,
    VERSION_ARGUMENT,
};
use tempfile::TempDir;

/// The time that a process may stay after its last word.
const GRACE: Duration = Duration::from_secs(5);

/// A home and a working directory.
pub(crate) struct Place {
    root: TempDir,
    pub(crate) environment: Vec<(String, String)>,
}

/// The events and the outcome of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) events: Vec<DelegateEvent>,
    pub(crate) outcome: Outcome,
}

impl Ran {
    pub(crate) fn text(&self) -> String {
        let texts = self.events.iter().filter_map(|event| match event {
            DelegateEvent::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    pub(crate) fn unknown(&self) -> Vec<&str> {
        let unknown = self.events.iter().filter_map(|event| match event {
            DelegateEvent::Unknown(line) => Some(line.as_str()),
            _ => None,
        });
        unknown.collect()
    }
}

impl Place {
    pub(crate) fn new(environment: Vec<(String, String)>) -> Self {
        let root = TempDir::new().unwrap();
        for folder in ["home", "work", "tmp"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self { root, environment }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// A request for a run in the working directory.
    pub(crate) fn request<'a>(&self, prompt: &'a str, directory: &'a Path) -> CommandRequest<'a> {
        CommandRequest {
            prompt,
            directory,
            resume: None,
            spent: TokensAndCost::default(),
            model: None,
            base_url: None,
            confined: true,
            trusted: false,
            arguments: &[],
        }
    }

    /// Removes all of the home but some paths.
    pub(crate) fn keep_of_home(&self, kept: &[PathBuf]) {
        let (home, old) = (self.home(), self.root.path().join("old"));
        fs::rename(&home, &old).unwrap();
        fs::create_dir(&home).unwrap();
        for path in kept.iter().filter(|path| old.join(path).exists()) {
            fs::create_dir_all(home.join(path).parent().unwrap()).unwrap();
            fs::rename(old.join(path), home.join(path)).unwrap();
        }
        fs::remove_dir_all(&old).unwrap();
    }

    /// Runs to the end, or until an event is the last that is waited for.
    pub(crate) fn run(
        &self,
        adapter: &dyn Adapter,
        request: &CommandRequest<'_>,
        mut is_last: impl FnMut(&DelegateEvent) -> bool,
    ) -> Ran {
        let command = adapter.build_command(request);
        let mut child = self.spawn(adapter, &command);
        let stdin = child.stdin.take().unwrap();
        let (to_stdin, lines_in) = mpsc::channel::<Vec<u8>>();
        to_stdin.send(command.stdin).unwrap();
        std::thread::spawn(move || {
            let mut stdin = stdin;
            // The process may go away without reading.
            for bytes in lines_in {
                if stdin.write_all(&bytes).is_err() {
                    return;
                }
            }
        });
        let mut to_stdin = command.interactive.then_some(to_stdin);
        let stderr = read_in_background(child.stderr.take().unwrap());
        let lines = lines_in_background(child.stdout.take().unwrap());
        let mut conversation = adapter.start_conversation(request);
        let mut events = Vec::new();
        let mut killed = false;
        let mut grace = Duration::from_secs(600);
        loop {
            let Ok(line) = lines.recv_timeout(grace) else {
                // The output ended, or the process stays.
                killed |= child.try_wait().unwrap().is_none() && grace == GRACE;
                break;
            };
            let ConversationStep { events: told, reply, finished } = conversation.receive_line(&line);
            if let Some(to_stdin) = &to_stdin {
                // Nobody may read it any more.
                to_stdin.send(reply).ok();
            }
            if finished {
                to_stdin = None;
                grace = GRACE;
            }
            if told.iter().any(&mut is_last) {
                killed = true;
            }
            events.extend(told);
            if killed {
                break;
            }
        }
        if killed {
            kill_tree(&child);
        }
        let status = child.wait().unwrap();
        let stderr = stderr.recv().unwrap();
        let outcome = conversation.end(status.code(), &stderr);
        Ran { events, outcome }
    }

    fn spawn(&self, adapter: &dyn Adapter, command: &CommandLine) -> Child {
        let requirements = adapter.requirements();
        let provider = requirements.providers.first().cloned().unwrap_or_default();
        for (path, text) in &provider.files {
            let path = self.home().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let path = std::env::var("PATH").unwrap();
        let clis = std::env::var("JM_TEST_CLIS").unwrap_or_default();
        Command::new(&command.argv[0])
            .args(&command.argv[1..])
            .current_dir(self.work())
            .env_clear()
            .env("PATH", format!("{clis}:{path}"))
            .env("HOME", self.home())
            .env("TMPDIR", self.root.path().join("tmp"))
            .envs(requirements.set)
            .envs(command.environment.iter().cloned())
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap()
    }
}

impl Machine for Place {
    fn has_variable(&self, name: &str) -> bool {
        self.environment.iter().any(|(set, _)| set == name)
    }

    fn has_in_home(&self, path: &Path) -> bool {
        self.home().join(path).exists()
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        let path = PathBuf::from(std::env::var_os("JM_TEST_CLIS")?).join(name);
        path.is_file().then_some(path)
    }

    fn read_version(&self, program: &Path) -> Option<String> {
        let path = std::env::var_os("PATH")?;
        let mut command = Command::new(program);
        command.arg(VERSION_ARGUMENT).env_clear().env("PATH", path).env("HOME", self.home());
        let output = command.output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Ends the process and what it started.
fn kill_tree(child: &Child) {
    let group = rustix::process::Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    // It may have ended by itself meanwhile.
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
}

fn read_in_background(mut from: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        sender.send(String::from_utf8_lossy(&bytes).into_owned()).ok();
    });
    receiver
}

fn lines_in_background(from: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).split(b'\n') {
            if sender.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    receiver
}
