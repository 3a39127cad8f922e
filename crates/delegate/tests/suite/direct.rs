//! A CLI that isn't confined.

use std::path::{Path, PathBuf};
use std::time::Duration;

use journeyman_delegate::{Credentials, DelegateEvent, DirectEnd, DirectError, DirectRun};
use journeyman_sandbox::Outcome as End;
use tokio_util::sync::CancellationToken;

use crate::fake::{Installed, block_on};

fn run(installed: &Installed, name: &str, directory: &Path, prompt: &str) -> Result<DirectEnd, DirectError> {
    let run = DirectRun { prompt, directory, is_fresh: true, time_limit: None };
    block_on(run.run(&installed.delegates, name, CancellationToken::new(), &mut |_| ()))
}

#[test]
fn it_works_in_the_directory_and_tells_what_changed() {
    if !journeyman_testkit::has_program_or_skip("/usr/bin/python3") {
        return;
    }
    let installed = Installed::new(None);
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("old"), "1\n").unwrap();
    std::fs::write(directory.path().join("gone"), "1\n").unwrap();
    let prompt = "edit new 1\nedit old 22\nrun rm gone; echo $FAKE_API_KEY $OTHER_API_KEY.";
    let end = run(&installed, "fake", directory.path(), prompt).unwrap();
    assert_eq!(end.outcome.failure, None);
    assert_eq!(end.outcome.message, "fake-key-1 other-key-1.", "a variable that is no CLI's key is passed");
    let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
    assert_eq!((end.created, end.changed, end.deleted), (paths(&["new"]), paths(&["old"]), paths(&["gone"])));
}

#[test]
fn it_streams_and_its_exit_code_and_errors_are_told() {
    if !journeyman_testkit::has_program_or_skip("/usr/bin/python3") {
        return;
    }
    let installed = Installed::new(None);
    let directory = tempfile::tempdir().unwrap();
    let mut events = Vec::new();
    let prompt = "say hello\nedit new 1\nrun echo wrong >&2; exit 3\nfail it can't";
    let run = DirectRun { prompt, directory: directory.path(), is_fresh: true, time_limit: None };
    let mut watch = |event: &DelegateEvent| events.push(event.clone());
    let end = block_on(run.run(&installed.delegates, "fake", CancellationToken::new(), &mut watch)).unwrap();
    assert_eq!(end.end, End::Exited(1));
    assert_eq!(end.outcome.failure.unwrap().message, "it can't");
    let place = |wanted: DelegateEvent| events.iter().position(|event| *event == wanted).unwrap();
    let start = |id: &str, tool: &str| DelegateEvent::ToolStart {
        id: id.to_owned(),
        tool: tool.to_owned(),
        summary: id.to_owned(),
    };
    let said = place(DelegateEvent::Text("hello\n".to_owned()));
    assert!(said < place(start("new", "edit")), "{events:?}");
    let id = "echo wrong >&2; exit 3".to_owned();
    let failed = DelegateEvent::ToolEnd { id: id.clone(), failed: true, output: "wrong\n".to_owned() };
    assert!(place(start(&id, "bash")) < place(failed), "{events:?}");
}

#[test]
fn its_time_limit_ends_processes_that_left_its_group() {
    if !journeyman_testkit::has_program_or_skip("/usr/bin/python3") {
        return;
    }
    let installed = Installed::new(Some(Duration::from_secs(2)));
    let directory = tempfile::tempdir().unwrap();
    let prompt = "leave while :; do date +%N > alive; done\nsleep 1000";
    let end = run(&installed, "fake", directory.path(), prompt).unwrap();
    let failure = end.outcome.failure.unwrap();
    assert_eq!(failure.message, "it was ended at its time limit, after 2 s");
    let alive = || std::fs::read_to_string(directory.path().join("alive")).unwrap();
    let before = alive();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(alive(), before);
}

#[test]
fn the_time_limit_of_a_run_beats_the_setting() {
    if !journeyman_testkit::has_program_or_skip("/usr/bin/python3") {
        return;
    }
    let installed = Installed::new(Some(Duration::from_secs(1000)));
    let directory = tempfile::tempdir().unwrap();
    let time_limit = Some(Duration::from_secs(1));
    let run = DirectRun { prompt: "sleep 1000", directory: directory.path(), is_fresh: true, time_limit };
    let end = block_on(run.run(&installed.delegates, "fake", CancellationToken::new(), &mut |_| ())).unwrap();
    assert_eq!(end.end, End::TimedOut);
}

#[test]
fn one_that_lingers_after_its_end_is_stopped_and_nothing_else() {
    if !journeyman_testkit::has_program_or_skip("/usr/bin/python3") {
        return;
    }
    let installed = Installed::new(None);
    let directory = tempfile::tempdir().unwrap();
    let (prompt, stop) = ("linger", CancellationToken::new());
    let run = DirectRun { prompt, directory: directory.path(), is_fresh: true, time_limit: None };
    let end = block_on(run.run(&installed.delegates, "fake", stop.clone(), &mut |_| ())).unwrap();
    assert_eq!((end.outcome.failure, end.end), (None, End::Cancelled));
    assert!(!stop.is_cancelled(), "the caller's other work goes on");
}

#[test]
fn much_output_is_no_reason_to_end_it() {
    if !journeyman_testkit::has_program_or_skip("/usr/bin/python3") {
        return;
    }
    let installed = Installed::new(None);
    let directory = tempfile::tempdir().unwrap();
    let end = run(&installed, "fake", directory.path(), "flood 5000000\nsay all of it").unwrap();
    assert_eq!((end.outcome.failure, end.outcome.message.as_str()), (None, "all of it"));
}

#[test]
fn one_that_is_not_installed_says_how_to_install_it_and_what_is() {
    let installed = Installed::new(None);
    let error = run(&installed, "missing", Path::new("/"), "say x").unwrap_err().to_string();
    assert!(error.contains("install it with `npm install -g fake`. fake is installed"), "{error}");
    let all = installed.delegates.all();
    let versions = [(installed.program.clone(), "fake 1.2.3".to_owned())].into();
    assert_eq!(installed.delegates.detect(&all[0], &versions), None);
    let found = installed.delegates.detect(&all[1], &versions).unwrap();
    assert_eq!((found.path, found.version.as_deref()), (installed.program.clone(), Some("1.2.3")));
    assert_eq!(found.credentials, Credentials::Key("FAKE_API_KEY".to_owned()));
}
