//! Checks that really run. What confines them has tests of its own, so here they run unconfined.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use journeyman_protocol::{
    CheckKind, CheckOutcome, Evidence, RelPath, SandboxNeeds, SandboxTier, SessionId, Severity, TestCounts,
    UnixMillis,
};
use journeyman_sandbox::{ProjectCopy, Sandbox, SandboxSettings, Toolchains};
use journeyman_store::Blobs;
use journeyman_testkit::has_program_or_skip;
use journeyman_verify::{
    Check, CheckCaches, OverallOutcome, Progress, RunContext, RunLimits, VerifyError, custom_checks,
    find_checks_for_changes, find_project_checks, overall_outcome, run_checks,
};
use journeyman_workspace::{CopyTools, IsolationTier, ListOptions, Options, Workspace};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

struct Bench {
    _dir: TempDir,
    root: PathBuf,
    context: RunContext,
}

impl Bench {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let root = base.join("project");
        std::fs::create_dir_all(&root).unwrap();
        for (name, content) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let blobs = Arc::new(Blobs::open(&base.join("blobs"), 1 << 30).unwrap());
        let options = Options::new(base.join("state"), blobs);
        let settings = SandboxSettings {
            allow: vec![SandboxTier::Unconfined],
            allow_root: true,
            ..SandboxSettings::default()
        };
        let context = RunContext {
            workspace: Arc::new(Workspace::open(&root, options).unwrap()),
            sandbox: Arc::new(Sandbox::new(settings)),
            toolchains: Arc::new(host_path()),
            limits: RunLimits::default(),
            needs: SandboxNeeds::NONE,
            caches: None,
            session: SessionId::new(UnixMillis(1), 1),
        };
        Self { _dir: dir, root, context }
    }

    fn run(&self, checks: &[Check]) -> (Vec<Evidence>, Vec<Progress>) {
        self.run_until(checks, &CancellationToken::new())
    }

    fn run_until(&self, checks: &[Check], cancel: &CancellationToken) -> (Vec<Evidence>, Vec<Progress>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut seen = Vec::new();
        let result: Result<_, VerifyError> =
            runtime.block_on(run_checks(checks, &self.context, cancel.clone(), &mut |progress| {
                if matches!(progress, Progress::Output { .. }) {
                    cancel_if_asked(&progress, cancel);
                }
                seen.push(progress);
            }));
        (result.unwrap(), seen)
    }
}

/// A check that prints this wants to be interrupted.
fn cancel_if_asked(progress: &Progress, cancel: &CancellationToken) {
    if matches!(progress, Progress::Output { text, .. } if text.contains("INTERRUPT ME")) {
        cancel.cancel();
    }
}

/// The test's own `PATH` and home, so that compilers are found.
fn host_path() -> Toolchains {
    let mut toolchains = Toolchains::default();
    for name in ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME"] {
        if let Some(value) = std::env::var_os(name) {
            toolchains.env.insert(name.into(), value);
        }
    }
    toolchains
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

fn check(kind: CheckKind, command: &str) -> Check {
    Check::new(kind, "test", command, "")
}

/// `passed`, `failed: …` or `not run: …`.
fn word(evidence: &Evidence) -> String {
    match &evidence.outcome {
        CheckOutcome::Passed => "passed".to_owned(),
        CheckOutcome::Failed { reason, .. } => format!("failed: {reason}"),
        CheckOutcome::NotRun { reason } => format!("not run: {reason}"),
    }
}

fn words(evidence: &[Evidence]) -> Vec<String> {
    evidence.iter().map(word).collect()
}

#[test]
fn later_kinds_are_not_run_after_a_failure() {
    use CheckKind::{Custom, Lint, Test, Types};
    let bench = Bench::new(&[]);
    let checks = [
        check(Types, "true"),
        check(Lint, "echo bad; false"),
        check(Lint, "true"),
        check(Test, "true"),
        check(Custom, "true").with_blocked("because"),
    ];
    let (evidence, seen) = bench.run(&checks);
    assert_eq!(
        words(&evidence),
        [
            "passed",
            "failed: exit code 1",
            "passed",
            "not run: not run because lint failed first",
            "not run: because"
        ]
    );
    assert_eq!(evidence[1].output, "bad\n");
    assert_eq!(evidence[1].enforcement.tier, SandboxTier::Unconfined);
    assert_eq!(overall_outcome(&evidence), OverallOutcome::Failed);
    let started = seen.iter().filter(|progress| matches!(progress, Progress::Started { .. })).count();
    let finished = seen.iter().filter(|progress| matches!(progress, Progress::Finished { .. })).count();
    assert_eq!((started, finished), (3, 5));
}

/// A program with the name of a checker that only reads, so that it may run beside tests.
const FAKE_MYPY: &str = "#!/bin/sh\necho types; . ./mypy.sh\n";

/// Returns a project whose `mypy` and tests do this, and these checks.
fn overlapping(mypy: &str, tests: &str) -> (Bench, [Check; 2]) {
    let mut bench = Bench::new(&[("mypy", FAKE_MYPY), ("mypy.sh", mypy), ("tests.sh", tests), ("a.c", "x")]);
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bench.root.join("mypy"), permissions).unwrap();
    // Far more than they take, so that a wait in vain ends.
    bench.context.limits.longest = Some(Duration::from_secs(60));
    bench.context.limits.at_once = 2;
    (bench, [check(CheckKind::Types, "./mypy ."), check(CheckKind::Test, "sh tests.sh")])
}

/// A script that goes on once another made this file.
fn wait_for(name: &str) -> String {
    format!("until [ -e \"$TMPDIR_OF_TEST/{name}\" ]; do sleep 0.01; done\n")
}

fn meeting_place(bench: &mut Bench) -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let mut toolchains = host_path();
    toolchains.env.insert("TMPDIR_OF_TEST".into(), place.path().into());
    bench.context.toolchains = Arc::new(toolchains);
    place
}

/// The order and kind of progress.
fn steps(seen: &[Progress]) -> Vec<String> {
    let step = |progress: &Progress| match progress {
        Progress::Started { index, .. } => format!("started {index}"),
        Progress::Output { index, text } => format!("output {index} {}", text.trim()),
        Progress::Finished { index, .. } => format!("finished {index}"),
        Progress::Changed { .. } => "changed".to_owned(),
        Progress::GuardViolated { .. } => "violated".to_owned(),
    };
    let says_something = |progress: &&Progress| match progress {
        Progress::Output { text, .. } => !text.trim().is_empty(),
        _ => true,
    };
    seen.iter().filter(says_something).map(step).collect()
}

#[test]
fn a_check_that_only_reads_runs_beside_the_tests_and_is_told_first() {
    let (types, tests) = (wait_for("tests"), wait_for("types"));
    let (mut bench, checks) = overlapping(
        &format!("touch $TMPDIR_OF_TEST/types; {types}"),
        &format!("touch $TMPDIR_OF_TEST/tests; {tests} echo tests"),
    );
    let _place = meeting_place(&mut bench);
    let (evidence, seen) = bench.run(&checks);
    assert_eq!(words(&evidence), ["passed", "passed"], "each waits for the other");
    let in_order = ["started 0", "output 0 types", "finished 0", "started 1", "output 1 tests", "finished 1"];
    assert_eq!(steps(&seen), in_order);
    assert_eq!(evidence[0].tree, evidence[1].tree);
}

#[test]
fn a_failed_cheap_check_ends_the_tests_that_already_run() {
    let mypy = format!("{} echo a.c:1:1: error: bad; exit 1", wait_for("tests"));
    let (mut bench, checks) = overlapping(&mypy, "echo begun; touch $TMPDIR_OF_TEST/tests; sleep 1000");
    let _place = meeting_place(&mut bench);
    let (evidence, seen) = bench.run(&checks);
    assert_eq!(words(&evidence), ["failed: exit code 1", "not run: not run because types failed first"]);
    let told = steps(&seen);
    assert_eq!(told.first().map(String::as_str), Some("started 0"));
    assert!(!told.contains(&"started 1".to_owned()), "as if it had never begun: {told:?}");
    assert_eq!(&told[told.len() - 2..], ["finished 0", "finished 1"]);
    assert_eq!(evidence[1].output, "");
}

#[test]
fn a_failure_that_names_no_file_of_the_tree_does_not_come_of_the_overlap() {
    // It can't bear what the tests write meanwhile, as tools that list a directory.
    let mypy = format!(
        "[ -e $TMPDIR_OF_TEST/again ] && exit 0; touch $TMPDIR_OF_TEST/again; {} exit 1",
        wait_for("tests")
    );
    let (mut bench, checks) = overlapping(&mypy, "touch $TMPDIR_OF_TEST/tests; echo tests");
    let _place = meeting_place(&mut bench);
    let (evidence, seen) = bench.run(&checks);
    assert_eq!(words(&evidence), ["passed", "passed"], "it ran again by itself");
    let finished = steps(&seen).into_iter().filter(|step| step.starts_with("finished")).collect::<Vec<_>>();
    assert_eq!(finished, ["finished 0", "finished 1"]);
}

#[test]
fn an_interrupt_ends_all_that_run_at_the_same_time() {
    let mypy = format!("{} echo INTERRUPT ME; sleep 1000", wait_for("tests"));
    let (mut bench, checks) = overlapping(&mypy, "touch $TMPDIR_OF_TEST/tests; sleep 1000");
    let _place = meeting_place(&mut bench);
    let (evidence, _) = bench.run(&checks);
    assert_eq!(words(&evidence), ["not run: interrupted", "not run: interrupted"]);
}

#[test]
fn a_failure_is_read_as_diagnostics_of_existing_files() {
    let bench = Bench::new(&[("src/a.c", "x"), ("sub/src/b.c", "x")]);
    let script = "echo 'src/a.c:3:9: error: one'; echo \"$PWD/src/a.c:4:1: warning: two\"; \
                  echo 'src/none.c:1:1: error: three'; echo 'localhost:80: four'; exit 1";
    let mut below = check(CheckKind::Types, "echo src/b.c:1:2: error: five; exit 1");
    below.directory = Some(RelPath::parse("sub").unwrap());
    let (evidence, _) = bench.run(&[check(CheckKind::Types, script), below]);
    let shown = |one: &Evidence| {
        let lines = one.diagnostics.iter().map(|found| {
            let path = found.path.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
            format!("{path}:{} {}", found.line.unwrap_or_default(), found.message)
        });
        lines.collect::<Vec<_>>()
    };
    assert_eq!(shown(&evidence[0]), ["src/a.c:3 one", "src/a.c:4 two"]);
    assert_eq!(evidence[0].diagnostics[1].severity, Severity::Warning);
    assert_eq!(shown(&evidence[1]), ["sub/src/b.c:1 five"]);
}

#[test]
fn paths_without_their_directory_are_found_where_there_is_one() {
    let bench = Bench::new(&[("deep/x_test.go", ""), ("a/y_test.go", ""), ("b/y_test.go", "")]);
    let script =
        "printf -- '--- FAIL: TestX (0.00s)\\n    x_test.go:12: got 1\\n    y_test.go:3: got 2\\n'; exit 1";
    let (evidence, _) = bench.run(&[check(CheckKind::Test, script)]);
    let paths = |evidence: &[Evidence]| -> Vec<Option<String>> {
        let found = evidence[0].diagnostics.iter();
        found.map(|one| one.path.as_ref().map(ToString::to_string)).collect()
    };
    assert_eq!(paths(&evidence), [Some("deep/x_test.go".to_owned()), None]);
    // Packages of a workspace print paths of their own.
    let bench = Bench::new(&[("packages/a/src/a.ts", ""), ("packages/a/i.ts", ""), ("packages/b/i.ts", "")]);
    let output = "echo 'src/a.ts(3,5): error TS2304: no'; echo 'i.ts(1,1): error TS2304: no'; exit 1";
    let (evidence, _) = bench.run(&[check(CheckKind::Types, output)]);
    assert_eq!(paths(&evidence), [Some("packages/a/src/a.ts".to_owned()), None]);
}

#[test]
fn what_can_not_run_is_never_a_failure() {
    let bench = Bench::new(&[]);
    let (evidence, _) = bench.run(&custom_checks(&["no-such-program-here --x".to_owned()]));
    assert!(
        word(&evidence[0]).starts_with("not run: ") && word(&evidence[0]).contains("not found"),
        "{}",
        word(&evidence[0])
    );
    assert_eq!(overall_outcome(&evidence), OverallOutcome::NothingRan);

    let mut bench = Bench::new(&[]);
    bench.context.needs = SandboxNeeds::ALL;
    let (evidence, _) = bench.run(&custom_checks(&["touch x".to_owned()]));
    assert!(word(&evidence[0]).starts_with("not run: refused: "), "{}", word(&evidence[0]));
    assert!(!bench.root.join("x").exists());
}

#[test]
fn a_check_that_hangs_fails() {
    let mut bench = Bench::new(&[]);
    bench.context.limits.longest = Some(Duration::from_secs(1));
    let (evidence, _) = bench.run(&custom_checks(&["echo begun; sleep 1000".to_owned()]));
    assert_eq!(words(&evidence), ["failed: timed out after 1 s"]);
    assert_eq!(evidence[0].output, "begun\n");
}

#[test]
fn an_interrupt_ends_it_all() {
    let bench = Bench::new(&[]);
    let checks =
        custom_checks(&["true".to_owned(), "echo INTERRUPT ME; sleep 1000".to_owned(), "true".to_owned()]);
    let (evidence, _) = bench.run_until(&checks, &CancellationToken::new());
    assert_eq!(words(&evidence), ["passed", "not run: interrupted", "not run: interrupted"]);
    assert_eq!(overall_outcome(&evidence), OverallOutcome::NothingRan);
}

#[test]
fn what_changes_during_a_check_is_told_and_only_what_is_surely_its_own_is_undone() {
    let bench = Bench::new(&[("a", "1"), (".gitignore", "target\n")]);
    let (_, seen) =
        bench.run(&custom_checks(&["echo 2 > a; echo 3 > new; mkdir target; echo 3 > target/x".to_owned()]));
    let changed: Vec<String> = seen
        .iter()
        .filter_map(|progress| match progress {
            Progress::Changed { changes, .. } => Some(changes),
            _ => None,
        })
        .flatten()
        .map(|change| change.path.to_string())
        .collect();
    assert_eq!(changed, ["a", "new"]);
    let undone = bench.context.workspace.undo(journeyman_workspace::UndoTarget::LastRun).unwrap();
    let restored: Vec<String> = undone.restored.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(restored, ["new"]);
    // A person may have saved it while the check ran: nobody can tell, so it is kept and said.
    let kept: Vec<String> = undone.conflicts.iter().map(|(path, _)| path.to_string()).collect();
    assert_eq!(kept, ["a"]);
    assert_eq!(std::fs::read(bench.root.join("a")).unwrap(), b"2\n");
}

#[test]
fn output_is_bounded() {
    let bench = Bench::new(&[]);
    let (evidence, seen) = bench.run(&custom_checks(&["seq 1 300000; exit 1".to_owned()]));
    assert!(evidence[0].output.len() <= 16 * 1024 + 100);
    assert!(evidence[0].output.starts_with("1\n2\n") && evidence[0].output.ends_with("\n300000\n"));
    let live: usize = seen
        .iter()
        .map(|progress| if let Progress::Output { text, .. } = progress { text.len() } else { 0 })
        .sum();
    assert!(live <= 256 * 1024);
}

fn found(bench: &Bench, changed: &[&str]) -> Vec<Check> {
    let listing = bench.context.workspace.list(ListOptions::default()).unwrap();
    let changed: Vec<RelPath> = changed.iter().map(|path| RelPath::parse(path).unwrap()).collect();
    find_checks_for_changes(&bench.context.workspace, &listing, &changed, &on_path)
}

#[test]
fn a_real_cargo_project() {
    if !has_program_or_skip("cargo") {
        return;
    }
    let bench = Bench::new(&[
        ("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        (
            "src/lib.rs",
            "pub fn add(a: i32, b: i32) -> i32 { a - b }\n#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n",
        ),
        (".gitignore", "target\n"),
    ]);
    let checks = found(&bench, &["src/lib.rs"]);
    let (evidence, _) = bench.run(&checks);
    assert_eq!(words(&evidence), ["failed: exit code 101"]);
    let first = &evidence[0].diagnostics[0];
    assert_eq!(
        (first.path.as_ref().unwrap().to_string().as_str(), first.line, first.test.as_deref()),
        ("src/lib.rs", Some(4), Some("adds"))
    );
    write(
        &bench.root,
        "src/lib.rs",
        "pub fn add(a: i32, b: i32) -> i32 { a + b }\n#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n",
    );
    let (evidence, _) = bench.run(&checks);
    assert_eq!(
        (words(&evidence), overall_outcome(&evidence)),
        (vec!["passed".to_owned()], OverallOutcome::Passed)
    );
    assert_eq!(evidence[0].diagnostics, []);
    write(&bench.root, "src/lib.rs", "pub fn add() -> i32 { \"\" }\n");
    let (evidence, _) = bench.run(&checks);
    assert_eq!(evidence[0].diagnostics[0].code.as_deref(), Some("E0308"));
}

#[test]
fn a_real_python_project() {
    if !has_program_or_skip("python3") {
        return;
    }
    let bench = Bench::new(&[
        ("calc.py", "def add(a, b):\n    return a - b\n"),
        (
            "tests/test_calc.py",
            "import unittest\nfrom calc import add\n\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n",
        ),
    ]);
    let listing = bench.context.workspace.list(ListOptions::default()).unwrap();
    // Without pytest, so that it is unittest wherever this runs.
    let tools = |name: &str| on_path(name).filter(|_| name != "pytest");
    let changed = [RelPath::parse("calc.py").unwrap()];
    let checks = find_checks_for_changes(&bench.context.workspace, &listing, &changed, &tools);
    let (evidence, seen) = bench.run(&checks);
    assert_eq!(words(&evidence), ["passed", "failed: exit code 1"]);
    let first = &evidence[1].diagnostics[0];
    assert_eq!(
        (first.path.as_ref().unwrap().to_string().as_str(), first.line),
        ("tests/test_calc.py", Some(6))
    );
    assert_eq!(first.message, "AssertionError: -1 != 3");
    assert!(
        !seen.iter().any(|progress| matches!(progress, Progress::Changed { .. })),
        "no caches beside the sources"
    );
    write(&bench.root, "calc.py", "def add(a, b:\n    return a + b\n");
    let (evidence, _) = bench.run(&checks);
    assert_eq!(words(&evidence), ["failed: exit code 1", "not run: not run because types failed first"]);
    assert_eq!(evidence[0].diagnostics[0].line, Some(1));
}

/// Without a sandbox commands run at the copy's own path, where bytecode lies elsewhere.
#[test]
fn bytecode_of_a_copys_sources_is_dropped_without_a_sandbox() {
    if !has_program_or_skip("python3") {
        return;
    }
    let test = "import unittest, a\nclass A(unittest.TestCase):\n    def test(self):\n        \
                self.assertEqual(a.one(), 1)\n";
    let mut bench = Bench::new(&[("test_a.py", test), ("a.py", "")]);
    let tools = CopyTools {
        sandbox: &bench.context.sandbox,
        git: None,
        tiers: &[IsolationTier::Copy],
        max_copied_files: 10,
    };
    let copy = bench.context.workspace.copies().create(&bench.context.session, &tools).unwrap();
    let caches = CheckCaches::create(copy.workspace(), &bench.context.toolchains, 1).unwrap();
    let Some(ProjectCopy::Directory { path: tree, .. }) = copy.workspace().project_copy() else {
        panic!("no directory")
    };
    bench.context.caches = Some(Arc::new(caches));
    bench.context.workspace = Arc::clone(copy.workspace());
    let second = std::fs::metadata(tree.join("test_a.py")).unwrap().modified().unwrap();
    let checks = custom_checks(&["python3 -m unittest".to_owned()]);
    for (source, expected) in
        [("def one(): return 1\n", OverallOutcome::Passed), ("def one(): return 2\n", OverallOutcome::Failed)]
    {
        std::fs::write(tree.join("a.py"), source).unwrap();
        std::fs::File::options().append(true).open(tree.join("a.py")).unwrap().set_modified(second).unwrap();
        let (evidence, _) = bench.run(&checks);
        assert_eq!(overall_outcome(&evidence), expected, "{evidence:#?}");
    }
}

#[test]
fn a_real_node_project() {
    if !has_program_or_skip("npm") || !has_program_or_skip("node") {
        return;
    }
    let bench = Bench::new(&[
        ("package.json", r#"{"scripts": {"test": "node --test"}}"#),
        (
            "a.test.js",
            "const test = require('node:test');\nconst assert = require('node:assert');\ntest('adds', () => {\n  assert.strictEqual(1 + 1, 3);\n});\n",
        ),
    ]);
    let (evidence, _) = bench.run(&found(&bench, &[]));
    assert_eq!(words(&evidence), ["failed: exit code 1"]);
    let first = &evidence[0].diagnostics[0];
    assert_eq!(
        (first.path.as_ref().unwrap().to_string().as_str(), first.test.as_deref()),
        ("a.test.js", Some("adds"))
    );
}

#[test]
fn a_real_makefile() {
    if !has_program_or_skip("make") {
        return;
    }
    let bench = Bench::new(&[("Makefile", "test:\n\t@no-such-program-here\n"), ("README", "")]);
    let listing = bench.context.workspace.list(ListOptions::default()).unwrap();
    let checks = find_project_checks(&bench.context.workspace, &listing, &on_path);
    let (evidence, _) = bench.run(&checks);
    assert!(word(&evidence[0]).starts_with("not run: "), "{}", word(&evidence[0]));
    write(&bench.root, "Makefile", "test:\n\t@echo fine\n");
    let (evidence, _) = bench.run(&checks);
    assert_eq!(words(&evidence), ["passed"]);
}

fn write(root: &Path, name: &str, text: &str) {
    std::fs::write(root.join(name), text).unwrap();
}

#[test]
fn what_a_check_makes_that_it_may_not_is_moved_away_with_a_warning() {
    let bench = Bench::new(&[("sub/a", "1"), ("mod/.git", "gitdir: ../m\n")]);
    let cases = [
        ("mkdir -p sub/.git/hooks", "sub/.git", "passed"),
        ("mkdir .git", ".git", "passed"),
        ("echo 'gitdir: /tmp/x' > mod/.git; false", "mod/.git", "failed: exit code 1"),
        ("echo x > .envrc", ".envrc", "passed"),
    ];
    for (command, path, outcome) in cases {
        let (evidence, _) = bench.run(&[check(CheckKind::Test, command)]);
        assert_eq!(word(&evidence[0]), outcome, "{command}");
        let warned = evidence[0].diagnostics.iter().find(|found| {
            found.severity == Severity::Warning
                && found.path.as_ref().is_some_and(|it| it.to_string() == path)
        });
        assert!(warned.is_some(), "{command}: {evidence:#?}");
        // Files from before are restored.
        assert_eq!(bench.root.join(path).exists(), path == "mod/.git", "{command}");
    }
    assert_eq!(std::fs::read_to_string(bench.root.join("mod/.git")).unwrap(), "gitdir: ../m\n");
}

/// Writes the report that pytest would, where its variable asks for it.
const REPORTING: &str = r#"
file=${PYTEST_ADDOPTS#*--junitxml=}
case $1 in
link) ln -s /etc/passwd "$file" ;;
*) printf '<testsuites><testsuite><testcase classname="t" name="ok"/><testcase classname="t" name="adds" time="0.25"><failure message="assert 1 == 2">t.py:2: AssertionError</failure></testcase></testsuite></testsuites>' > "$file" ;;
esac
printf '\033[31mred\033[0m 10%%\r 99%%\r\n\0\377\n'
exit 1
"#;

#[test]
fn evidence_has_the_tree_the_tests_and_the_failing_lines() {
    let project = Bench::new(&[("fake.sh", REPORTING), ("t.py", "def adds():\n    assert 1 == 2\n")]);
    let check = Check::new(CheckKind::Test, "python", "sh fake.sh", "");
    let (evidence, _) = project.run(std::slice::from_ref(&check));
    let first = &evidence[0];
    assert_eq!(first.tests, Some(TestCounts { passed: 1, failed: 1, skipped: 0 }));
    assert_eq!(first.diagnostics.len(), 1, "{first:#?}");
    let found = &first.diagnostics[0];
    assert_eq!((found.line, found.test.as_deref(), found.duration_ms), (Some(2), Some("t.adds"), Some(250)));
    assert_eq!((found.expected.as_deref(), found.actual.as_deref()), (Some("2"), Some("1")));
    assert_eq!(found.source.as_deref(), Some("  1 | def adds():\n> 2 |     assert 1 == 2"));
    assert!(!first.output.contains(['\u{1b}', '\0', '\r']), "{:?}", first.output);
    // The same tree has the same hash, whenever it is looked at, and another one another.
    let tree = first.tree.unwrap();
    let history = |project: &Bench| project.context.workspace.history().tree_hash().unwrap();
    assert_eq!(history(&project), tree);
    std::fs::write(project.root.join("t.py"), "def adds():\n    assert 2 == 2\n").unwrap();
    assert_ne!(history(&project), tree);
    std::fs::write(project.root.join("t.py"), "def adds():\n    assert 1 == 2\n").unwrap();
    assert_eq!(history(&project), tree);
    let left =
        std::fs::read_dir(project.context.workspace.state_dir().join("check-reports")).unwrap().count();
    assert_eq!(left, 0, "reports are removed after they are read");
}

#[test]
fn a_report_that_is_a_link_is_not_read() {
    let project = Bench::new(&[("fake.sh", REPORTING)]);
    let check = Check::new(CheckKind::Test, "python", "sh fake.sh link", "");
    let (evidence, _) = project.run(&[check]);
    assert_eq!((&evidence[0].tests, evidence[0].diagnostics.len()), (&None, 0), "{evidence:#?}");
}

#[test]
fn nextest_and_its_report() {
    if !has_program_or_skip("cargo-nextest") {
        return;
    }
    let project = Bench::new(&[
        ("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n"),
        ("src/lib.rs", "#[test]\nfn adds() {\n    assert_eq!(1 + 1, 3);\n}\n#[test]\nfn ok() {}\n"),
        (".gitignore", "target\nCargo.lock\n"),
    ]);
    let check = Check::new(CheckKind::Test, "cargo", "cargo nextest run", "");
    let (evidence, _) = project.run(&[check]);
    assert_eq!(evidence[0].tests, Some(TestCounts { passed: 1, failed: 1, skipped: 0 }), "{evidence:#?}");
    let found = &evidence[0].diagnostics[0];
    assert_eq!((found.line, found.test.as_deref()), (Some(3), Some("x.adds")), "{found:#?}");
    assert_eq!((found.expected.as_deref(), found.actual.as_deref()), (Some("3"), Some("2")));
}

#[test]
fn a_submodule_that_is_not_checked_out_is_named_where_its_build_fails() {
    let modules = "[submodule \"lib\"]\n\tpath = libs/x\n\turl = https://x\n";
    let bench = Bench::new(&[
        (".gitmodules", modules),
        ("Makefile", "test: libs/x/lib.a\n\t@echo fine\n"),
        ("libs/README", ""),
    ]);
    std::fs::create_dir(bench.root.join("libs/x")).unwrap();
    let named = "not checked out: submodule `libs/x`; `git submodule update --init --recursive` fetches it";
    let first = || {
        let (evidence, _) = bench.run(&custom_checks(&["make test".to_owned()]));
        assert!(evidence[0].outcome.has_failed(), "{evidence:?}");
        evidence[0].diagnostics.first().map(|found| found.message.clone())
    };
    assert_eq!(first().as_deref(), Some(named));
    write(&bench.root, "libs/x/README", "");
    assert_eq!(first().as_deref(), Some("No rule to make target 'libs/x/lib.a', needed by 'test'."));
}
