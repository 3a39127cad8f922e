//! What the sandbox's tests share: a sandbox with the stand-alone helper, a temporary project, the
//! rule for missing tools, and running a test binary again as an unprivileged user.

pub(crate) mod place;
pub(crate) mod world;

use journeyman_testkit::{copy_program, has_program_or_skip, test_path_in_crate};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use journeyman_sandbox::{
    CompletedCommand, HostEnvironment, Request, Sandbox, SandboxSettings, Toolchains, find_toolchains,
};
use tokio_util::sync::CancellationToken;

/// The user `nobody`, on every Linux.
const NOBODY: u32 = 65534;
const HELPER_VARIABLE: &str = "JM_TEST_HELPER";

pub(crate) fn helper() -> PathBuf {
    std::env::var_os(HELPER_VARIABLE)
        .map_or_else(|| env!("CARGO_BIN_EXE_jm-sandbox-helper").into(), PathBuf::from)
}

pub(crate) fn settings() -> SandboxSettings {
    SandboxSettings { helper: Some(helper()), ..SandboxSettings::default() }
}

pub(crate) fn sandbox() -> Sandbox {
    Sandbox::new(settings())
}

pub(crate) fn host() -> HostEnvironment {
    let vars: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    let home = vars.get(std::ffi::OsStr::new("HOME")).map(PathBuf::from);
    HostEnvironment { vars, home }
}

pub(crate) fn host_toolchains(root: &Path) -> Toolchains {
    find_toolchains(&host(), root)
}

/// A project with a protected `.git` and a file to read.
pub(crate) fn project() -> tempfile::TempDir {
    let directory = tempfile::Builder::new().prefix("jm-sandbox-").tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join(".git/hooks")).unwrap();
    std::fs::write(directory.path().join(".git/config"), "[core]\n").unwrap();
    std::fs::write(directory.path().join("file"), "content\n").unwrap();
    directory
}

/// Runs to the end on a runtime of its own.
pub(crate) fn run(request: Request) -> CompletedCommand {
    block_on(async {
        sandbox().spawn(request, CancellationToken::new()).await.unwrap().wait().await.unwrap()
    })
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// How many processes of the machine have `marker` in their command line.
pub(crate) fn alive(marker: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let has_marker = |pid: &Path| {
        std::fs::read(pid.join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(marker))
    };
    entries.filter(|entry| has_marker(&entry.path())).count()
}

/// Runs every other test of a module again as `nobody`. Does nothing when it is run so itself.
pub(crate) fn again_unprivileged(module: &str) {
    let filter = test_path_in_crate(module, "");
    let arguments = [filter.as_str(), "--skip", "unprivileged", "--test-threads", "2"];
    let Some(output) = as_nobody(&arguments, |_| {}) else { return };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let summary = text.lines().find(|line| line.starts_with("test result: ok")).unwrap();
    assert!(!summary.contains(" 0 passed"), "{summary}");
}

/// Runs this binary as `nobody`, in a directory of theirs that was prepared as root. `None` where
/// that can't be.
pub(crate) fn as_nobody(arguments: &[&str], prepare: impl FnOnce(&Path)) -> Option<Output> {
    if std::env::var_os(HELPER_VARIABLE).is_some() {
        return None;
    }
    if !rustix::process::geteuid().is_root() {
        println!("this run is the unprivileged one already");
        return None;
    }
    if !has_program_or_skip("setpriv") {
        return None;
    }
    let place = tempfile::Builder::new().prefix("jm-nobody-").tempdir().unwrap();
    let (tests, helper_copy) = (place.path().join("tests"), place.path().join("helper"));
    copy_program(&std::env::current_exe().unwrap(), &tests);
    copy_program(&helper(), &helper_copy);
    let work = place.path().join("work");
    std::fs::create_dir(&work).unwrap();
    for path in [place.path(), &tests, &helper_copy] {
        rustix::fs::chmod(path, rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
    }
    prepare(&work);
    std::os::unix::fs::chown(&work, Some(NOBODY), Some(NOBODY)).unwrap();
    let id = NOBODY.to_string();
    let output = Command::new("setpriv")
        .args(["--reuid", &id, "--regid", &id, "--clear-groups"])
        .arg(&tests)
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", work.join("home"))
        .env("TMPDIR", &work)
        .env(HELPER_VARIABLE, &helper_copy)
        .current_dir(&work)
        .output()
        .unwrap();
    Some(output)
}
