//! Trees like those of real projects, in a repository of their own.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use journeyman_protocol::{SessionId, UnixMillis};
use journeyman_store::Blobs;
use journeyman_workspace::{Options, Workspace};

use crate::figures::time;

/// The word by which this program does one thing in a process of its own.
pub(crate) const ONCE: &str = "once";
/// Files in each of the ignored directories.
const IGNORED: usize = 3_000;
/// Files a directory, on average: the Linux tree has about as many.
const FAN_OUT: usize = 14;
const QUOTA: u64 = 4 << 30;
const RULES: &str = "# what tools make\n/target/\nnode_modules/\n*.o\n*.log\n*.tmp\n.env\n.DS_Store\n*~\n*.swp\n\
                     build/\n!keep.log\ndoc/**/*.out\n/dist\ncoverage/\n*.pyc\n";

/// Numbers that are the same in every run.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn from(seed: u64) -> Self {
        Self(seed)
    }

    /// `SplitMix64`, by Steele, Lea and Flood.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    /// From 0 to 1.
    #[allow(clippy::cast_precision_loss)]
    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A repository, the state of a project beside it, and its blobs.
pub(crate) struct Place {
    dir: tempfile::TempDir,
    pub(crate) files: Vec<String>,
}

impl Place {
    /// With so many files, committed.
    pub(crate) fn new(base: &Path, count: usize) -> Self {
        let dir = tempfile::Builder::new().prefix("jm-bench-").tempdir_in(base).unwrap();
        let mut place = Self { dir, files: Vec::with_capacity(count) };
        let mut numbers = Numbers::from(count as u64);
        place.fill(count, &mut numbers);
        place.git(&["init", "-q"]);
        place.git(&["add", "-A"]);
        place.git(&["-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-qm", "start"]);
        println!("{count} files in {} directories:", place.directories().len());
        place
    }

    fn fill(&mut self, count: usize, numbers: &mut Numbers) {
        let root = self.root();
        let mut dirs = vec![String::new()];
        for number in 0..count.div_ceil(FAN_OUT) {
            // Half of the directories are made beneath one of the newest, so that some lie deep.
            let newest = dirs.len().min(60);
            let above = if numbers.below(2) == 0 { 0 } else { dirs.len() - 1 - numbers.below(newest) };
            let above = if dirs[above].matches('/').count() < 7 { above } else { numbers.below(dirs.len()) };
            let names = ["src", "tests", "internal", "module", "widgets", "drivers", "assets"];
            let name = names[numbers.below(names.len())];
            let made = format!("{}{name}{number}/", dirs[above]);
            fs::create_dir_all(root.join(&made)).unwrap();
            if numbers.below(20) == 0 {
                fs::write(root.join(&made).join(".gitignore"), "generated/\n*.gen\n/local.txt\n").unwrap();
            }
            dirs.push(made);
        }
        fs::write(root.join(".gitignore"), RULES).unwrap();
        for number in 0..count {
            let dir = &dirs[numbers.below(dirs.len())];
            let extension = ["rs", "c", "ts", "py", "md", "json"][numbers.below(6)];
            let path = format!("{dir}file_{number}.{extension}");
            fs::write(root.join(&path), text(numbers)).unwrap();
            self.files.push(path);
        }
        for number in 0..IGNORED {
            let made = root.join(format!("target/debug/deps{}", number / 50));
            let package = root.join(format!("node_modules/package{}/lib", number / 12));
            for dir in [made, package] {
                fs::create_dir_all(&dir).unwrap();
                fs::write(dir.join(format!("made{number}.o")), "made").unwrap();
            }
        }
    }

    /// Leaves it where it is.
    pub(crate) fn stay(self) -> PathBuf {
        self.dir.keep()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    /// Where something beside the tree may lie.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn directories(&self) -> HashSet<&str> {
        self.files.iter().map(|path| path.rsplit_once('/').map_or("", |(dir, _)| dir)).collect()
    }

    pub(crate) fn open(&self) -> Workspace {
        open(self.dir.path())
    }

    /// New content for `count` files, the same ones each time.
    pub(crate) fn change(&self, count: usize, seed: u64) {
        let mut numbers = Numbers::from(seed);
        let step = self.files.len() / count;
        for path in self.files.iter().step_by(step).take(count) {
            fs::write(self.root().join(path), text(&mut numbers)).unwrap();
        }
    }

    /// A git command here, with git's own defaults.
    pub(crate) fn git_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .args(arguments)
            .current_dir(self.root())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    pub(crate) fn git(&self, arguments: &[&str]) {
        let status = self.git_command(arguments).status().expect("git is needed");
        assert!(status.success(), "git {arguments:?}: {status}");
    }

    pub(crate) fn time_git(&self, arguments: &[&str]) -> f64 {
        let mut command = self.git_command(arguments);
        time(|| assert!(command.status().unwrap().success()))
    }

    /// This program, for one thing in a process of its own.
    pub(crate) fn once(&self, what: &[&str]) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(ONCE).arg(self.dir.path()).args(what).stdin(Stdio::null());
        command
    }

    pub(crate) fn time_once(&self, what: &[&str]) -> f64 {
        let mut command = self.once(what);
        time(|| assert!(command.status().unwrap().success()))
    }
}

pub(crate) fn session(number: u64) -> SessionId {
    SessionId::new(UnixMillis(1_000 + number), number)
}

pub(crate) fn open(dir: &Path) -> Workspace {
    let blobs = Arc::new(Blobs::open(&dir.join("blobs"), QUOTA).unwrap());
    Workspace::open(&dir.join("tree"), Options::new(dir.join("state"), blobs)).unwrap()
}

pub(crate) fn checkpoint(workspace: &Workspace) {
    workspace.checkpoint(&session(1), "measured").unwrap();
}

/// What a process of its own does.
pub(crate) fn once(dir: &Path, what: &[String]) -> ExitCode {
    let workspace = open(dir);
    match what.first().map(String::as_str) {
        Some("checkpoint") => {
            workspace.checkpoint(&session(1), "once").unwrap();
        }
        // For a profiler.
        Some("loop") => {
            let rounds = what.get(1).and_then(|word| word.parse().ok()).unwrap_or(100);
            for _ in 0..rounds {
                workspace.checkpoint(&session(1), "once").unwrap();
            }
        }
        Some("memory") => {
            workspace.checkpoint(&session(1), "once").unwrap();
            let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            println!("{}", peak.unwrap_or_default().trim().trim_end_matches(" kB"));
        }
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

/// Text of 1 to 20 KiB, of which half is below 2.2 KiB, and which packs as source does.
pub(crate) fn text(numbers: &mut Numbers) -> String {
    const WORDS: [&str; 16] = [
        "let", "result", "self", "match", "return", "value", "index", "for", "if", "else", "name", "state",
        "buffer", "length", "error", "node",
    ];
    let part = numbers.part();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let size = (1024.0 * 20_f64.powf(part * part)) as usize;
    let mut text = String::with_capacity(size + 64);
    while text.len() < size {
        for _ in 0..4 + numbers.below(6) {
            text.push_str(WORDS[numbers.below(WORDS.len())]);
            text.push_str([" ", "(", ") ", ".", "_"][numbers.below(5)]);
        }
        text.push_str(&format!("{:x};\n", numbers.next() >> 40));
    }
    text
}
