//! Running a test again as a process of its own.

use journeyman_testkit::test_arguments;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Set in the environment of this test binary when a test runs it again.
const CHILD: &str = "JM_STORE_TEST_CHILD";

/// What the test that runs as a child was given.
pub(crate) fn given() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// The command that runs one test again, with something given.
pub(crate) fn again(test: &str, given: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(test_arguments(test)).env(CHILD, given);
    command
}

/// A process that runs a test again. It is killed at the latest when this is dropped.
pub(crate) struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What comes behind `mark` in the next line that has it.
    pub(crate) fn says(&mut self, mark: &str) -> String {
        let mut lines = self.lines.by_ref().map(|line| line.unwrap());
        let found = lines.find_map(|line| line.split_once(mark).map(|(_, rest)| rest.trim().to_owned()));
        found.unwrap_or_else(|| panic!("it ended without saying `{mark}`"))
    }

    /// `SIGKILL`, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets it go on by ending what it reads, and waits until it ends.
    pub(crate) fn finish(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Runs a test again in a user namespace of its own, after a line of shell that has `$1` for `dir`;
/// with what is said when that can't be had.
pub(crate) fn in_namespace(flags: &[&str], shell: &str, test: &str, dir: &Path) -> Result<String, String> {
    let script = format!("{{ {shell}; }} || exit 77; shift; exec \"$@\"");
    let output = Command::new("unshare")
        .args(flags)
        .args(["sh", "-c", &script, "sh"])
        .arg(dir)
        .arg(std::env::current_exe().unwrap())
        .args(test_arguments(test))
        .env(CHILD, dir)
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) if output.status.code() == Some(101) => panic!("{output:?}"),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(error.to_string()),
    }
}
