//! The checks of real projects in the real sandbox.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_protocol::{CheckKind, CheckOutcome, Evidence, SandboxNeeds, SessionId, UnixMillis};
use journeyman_sandbox::{HostEnvironment, Sandbox, SandboxSettings, find_toolchains};
use journeyman_store::Blobs;
use journeyman_testkit::{has_program_or_skip, skip};
use journeyman_verify::{
    Check, CheckCaches, OverallOutcome, Progress, RunContext, RunLimits, find_project_checks,
    overall_outcome, run_checks,
};
use journeyman_workspace::{ListOptions, Options, Workspace};
use tokio_util::sync::CancellationToken;

/// A project, the program it needs, the file that is repaired, and the repair.
struct Case {
    needs: &'static str,
    files: &'static [(&'static str, &'static str)],
    repair: (&'static str, &'static str),
}

const CASES: [Case; 4] = [
    Case {
        needs: "cargo",
        files: &[
            ("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
            ("src/lib.rs", "#[test]\nfn adds() {\n    assert_eq!(1 + 1, 3);\n}\n"),
            (".gitignore", "target\n"),
        ],
        repair: ("src/lib.rs", "#[test]\nfn adds() {\n    assert_eq!(1 + 1, 2);\n}\n"),
    },
    Case {
        needs: "npm",
        files: &[
            ("package.json", r#"{"scripts": {"test": "node --test"}}"#),
            ("a.test.js", "require('node:test')('adds', () => require('node:assert').equal(1 + 1, 3));\n"),
        ],
        repair: (
            "a.test.js",
            "require('node:test')('adds', () => require('node:assert').equal(1 + 1, 2));\n",
        ),
    },
    Case {
        needs: "python3",
        files: &[(
            "test_a.py",
            "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(1 + 1, 3)\n",
        )],
        repair: (
            "test_a.py",
            "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(1 + 1, 2)\n",
        ),
    },
    Case { needs: "make", files: &[("Makefile", "test:\n\ttest -f done\n")], repair: ("done", "") },
];

/// Runs a test with the sandbox of this machine, if commands can be confined with it.
fn with_sandbox(test: impl AsyncFnOnce(Arc<Sandbox>)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let sandbox = Arc::new(Sandbox::new(SandboxSettings::default()));
        match sandbox.enforcement(&journeyman_protocol::SandboxNeeds::ALL).await {
            Ok(_) => test(sandbox).await,
            Err(error) => skip(error),
        }
    });
}

#[test]
fn failing_projects_are_repaired() {
    with_sandbox(async |sandbox| {
        for case in CASES.iter().filter(|case| has_program_or_skip(case.needs)) {
            a_failing_project_is_repaired(case, &sandbox).await;
        }
    });
}

#[test]
fn repositories_are_read_only_to_checks() {
    with_sandbox(async |sandbox| repositories_are_read_only(&sandbox).await);
}

#[test]
fn links_out_of_the_project_are_read_only_to_checks() {
    with_sandbox(async |sandbox| links_out_of_the_project_are_read_only(&sandbox).await);
}

async fn links_out_of_the_project_are_read_only(sandbox: &Arc<Sandbox>) {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let (root, store) = (base.join("project"), base.join("store"));
    write(&root, "node_modules/x/package.json", "{}");
    std::fs::write(&store, "old").unwrap();
    std::fs::hard_link(&store, root.join("node_modules/x/index.js")).unwrap();
    let context = context(&base, &root, sandbox);
    let checks = journeyman_verify::custom_checks(&["echo new > node_modules/x/index.js".to_owned()]);
    let evidence = run_checks(&checks, &context, CancellationToken::new(), &mut |_| {}).await.unwrap();
    assert_eq!(overall_outcome(&evidence), OverallOutcome::Failed);
    assert!(evidence[0].output.contains("Read-only"), "{}", evidence[0].output);
    assert_eq!(std::fs::read_to_string(&store).unwrap(), "old");
}

async fn a_failing_project_is_repaired(case: &Case, sandbox: &Arc<Sandbox>) {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let root = base.join("project");
    for (name, text) in case.files {
        write(&root, name, text);
    }
    let context = context(&base, &root, sandbox);
    let listing = context.workspace.list(ListOptions::default()).unwrap();
    let tools = |name: &str| on_path(name).filter(|_| name != "pytest");
    let checks = find_project_checks(&context.workspace, &listing, &tools);

    let evidence = run_checks(&checks, &context, CancellationToken::new(), &mut |_| {}).await.unwrap();
    assert_eq!(overall_outcome(&evidence), OverallOutcome::Failed, "{evidence:#?}");
    let failed: Vec<&Evidence> = evidence.iter().filter(|one| one.outcome.has_failed()).collect();
    assert!(
        failed.iter().all(|one| one.enforcement.first_unmet(&SandboxNeeds::ALL).is_none()),
        "{failed:#?}"
    );

    write(&root, case.repair.0, case.repair.1);
    let evidence = run_checks(&checks, &context, CancellationToken::new(), &mut |_| {}).await.unwrap();
    assert_eq!(overall_outcome(&evidence), OverallOutcome::Passed, "{evidence:#?}");
    assert!(evidence.iter().all(|one| one.outcome == CheckOutcome::Passed), "{evidence:#?}");
}

const PYTHON_TEST: &str = "import unittest\nimport a\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(a.one(), 1)\n";

#[test]
fn tests_of_packages_run_at_the_same_time() {
    with_sandbox(async |sandbox| {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let root = base.join("project");
        let script = "touch here; until [ -e ../a/here ] && [ -e ../b/here ]; do sleep 0.01; done";
        write(&root, "a/test.sh", script);
        write(&root, "b/test.sh", script);
        let mut context = context(&base, &root, &sandbox);
        (context.limits.at_once, context.limits.longest) = (2, Some(std::time::Duration::from_secs(60)));
        let test = |directory: &str| {
            let directory = journeyman_protocol::RelPath::parse(directory).unwrap();
            Check::new(CheckKind::Test, "test", "sh test.sh", "").with_directory(Some(&directory))
        };
        let checks = [test("a"), test("b")];
        let mut told = Vec::new();
        let mut observer = |step| told.push(step);
        let evidence = run_checks(&checks, &context, CancellationToken::new(), &mut observer).await.unwrap();
        assert!(
            evidence.iter().all(|one| one.outcome.has_passed()),
            "each waits for the other: {evidence:#?}"
        );
        let changed = told.iter().find_map(|step| match step {
            Progress::Changed { changes } => Some(changes.len()),
            _ => None,
        });
        assert_eq!(changed, Some(2));
    });
}

#[test]
fn bytecode_of_the_standard_library_is_kept_and_the_projects_is_not() {
    if !has_program_or_skip("python3") {
        return;
    }
    with_sandbox(async |sandbox| {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let root = base.join("project");
        write(&root, "test_a.py", PYTHON_TEST);
        let mut context = context(&base, &root, &sandbox);
        let checks = journeyman_verify::custom_checks(&["python3 -m unittest".to_owned()]);
        // The two have the same size and, mostly, the same second.
        for (source, expected) in [
            ("def one(): return 2\n", OverallOutcome::Failed),
            ("def one(): return 1\n", OverallOutcome::Passed),
        ] {
            write(&root, "a.py", source);
            let evidence =
                run_checks(&checks, &context, CancellationToken::new(), &mut |_| {}).await.unwrap();
            assert_eq!(overall_outcome(&evidence), expected, "{evidence:#?}");
        }
        let all = context.workspace.state_dir().join("check-caches");
        let bytecode = compiled_files(&all);
        assert!(bytecode.iter().any(|path| path.contains("unittest")), "{bytecode:?}");
        assert!(!root.join("__pycache__").exists());
        context.caches = None;
        // Links to the bytecode of installed libraries stay for later sessions.
        let left = compiled_files(&all).into_iter().filter(|path| !path.contains("library-"));
        assert_eq!(left.collect::<Vec<_>>(), Vec::<String>::new(), "it goes with its owner");
    });
}

/// A measurement, not a test: run it by name, with `--ignored --nocapture`.
#[test]
#[ignore = "it measures"]
fn rounds_of_checks_cost_about_what_the_bare_commands_cost() {
    with_sandbox(async |sandbox| {
        let compiled = ["cargo test --offline -q", "go vet ./...", "go test ./..."];
        let python = ["python3 -m unittest", "python3 -m pytest -q -p no:cacheprovider"];
        for command in python.iter().chain(&compiled) {
            let dir = tempfile::tempdir().unwrap();
            let base = dir.path().canonicalize().unwrap();
            let root = base.join("project");
            write(&root, "test_a.py", PYTHON_TEST);
            write(&root, "a.py", "def one(): return 1\n");
            write(&root, "Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
            write(&root, "src/lib.rs", "#[test]\nfn adds() {\n    assert_eq!(1 + 1, 2);\n}\n");
            write(&root, "go.mod", "module x\n\ngo 1.19\n");
            write(
                &root,
                "x.go",
                "package x\n\nimport \"net/http\"\n\nfunc One() int { return http.StatusOK }\n",
            );
            write(&root, "x_test.go", GO_TEST);
            let checks = journeyman_verify::custom_checks(&[(*command).to_owned()]);
            let mut context = context(&base, &root, &sandbox);
            let mut times = Vec::new();
            for _ in 0..9 {
                let began = std::time::Instant::now();
                let evidence =
                    run_checks(&checks, &context, CancellationToken::new(), &mut |_| {}).await.unwrap();
                assert_eq!(overall_outcome(&evidence), OverallOutcome::Passed, "{evidence:#?}");
                times.push(began.elapsed().as_millis());
            }
            let first = times.remove(0);
            times.sort_unstable();
            context.caches = None;
            let began = std::time::Instant::now();
            run_checks(&checks, &context, CancellationToken::new(), &mut |_| {}).await.unwrap();
            let without = began.elapsed().as_millis();
            let mut bare = Vec::new();
            for _ in 0..9 {
                let began = std::time::Instant::now();
                std::process::Command::new("sh").args(["-c", command]).current_dir(&root).output().unwrap();
                bare.push(began.elapsed().as_millis());
            }
            bare.remove(0);
            bare.sort_unstable();
            println!(
                "{command}: bare {} ms, round 1 {first} ms, later {} ms, no caches {without} ms",
                bare[4], times[4]
            );
        }
    });
}

const GO_TEST: &str = "package x\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif One() != 200 {\n\t\tt.Fatal(One())\n\t}\n}\n";

#[test]
fn what_go_compiles_is_there_in_the_next_round_and_not_in_the_hosts_cache() {
    if on_path("go").is_none() {
        journeyman_testkit::skip("there is no go");
        return;
    }
    with_sandbox(async |sandbox| {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let root = base.join("project");
        write(&root, "go.mod", "module x\n\ngo 1.19\n");
        write(&root, "x.go", "package x\n\nfunc One() int { return 200 }\n");
        let context = context(&base, &root, &sandbox);
        let checks = journeyman_verify::custom_checks(&["go build -x ./...".to_owned()]);
        for cached in [false, true] {
            let evidence =
                run_checks(&checks, &context, CancellationToken::new(), &mut |_| {}).await.unwrap();
            assert_eq!(overall_outcome(&evidence), OverallOutcome::Passed, "{evidence:#?}");
            assert_eq!(!evidence[0].output.contains("/compile -o "), cached, "{evidence:#?}");
        }
    });
}

#[test]
fn go_runs_tests_again_that_depend_on_more_than_their_module() {
    if on_path("go").is_none() {
        journeyman_testkit::skip("there is no go");
        return;
    }
    with_sandbox(async |sandbox| {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let root = base.join("project");
        write(&root, "server/go.mod", "module x\n\ngo 1.19\n");
        let reads = "package x\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestShared(t *testing.T) {\n\t\
                     if text, _ := os.ReadFile(\"../shared.txt\"); string(text) != \"good\" {\n\t\t\
                     t.Fatal(string(text))\n\t}\n}\n";
        write(&root, "server/x_test.go", reads);
        let context = context(&base, &root, &sandbox);
        let checks = journeyman_verify::custom_checks(&["cd server && go test ./...".to_owned()]);
        for (text, expected) in [("good", OverallOutcome::Passed), ("bad", OverallOutcome::Failed)] {
            write(&root, "shared.txt", text);
            let evidence =
                run_checks(&checks, &context, CancellationToken::new(), &mut |_| {}).await.unwrap();
            assert_eq!(overall_outcome(&evidence), expected, "{evidence:#?}");
        }
    });
}

fn compiled_files(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(&at).into_iter().flatten().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => open.push(entry.path()),
                false => found.push(entry.path().display().to_string()),
            }
        }
    }
    found.retain(|path| path.ends_with(".pyc"));
    found
}

/// Whatever a check tries on a repository, nested ones too, fails or is moved away.
async fn repositories_are_read_only(sandbox: &Arc<Sandbox>) {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let root = base.join("project");
    for name in [".git/config", "nested/.git/config", "nested/.git/hooks/x", ".envrc", ".vscode/tasks.json"] {
        write(&root, name, "kept");
    }
    write(&root, "sub/.git", "gitdir: ../.git/modules/sub");
    let context = context(&base, &root, sandbox);
    let refused = [
        "echo x > .git/config",
        "echo x > nested/.git/config",
        "echo x > nested/.git/hooks/post-checkout",
        "mv nested/.git nested/git",
        "rm -rf nested",
        "echo 'gitdir: /tmp/x' > sub/.git",
        "rm sub/.git",
        "echo x > .envrc",
        "mv .vscode away",
    ];
    for command in refused {
        let checks = journeyman_verify::custom_checks(&[command.to_owned()]);
        let evidence = run_checks(&checks, &context, CancellationToken::new(), &mut |_| {}).await.unwrap();
        assert_eq!(overall_outcome(&evidence), OverallOutcome::Failed, "{command}: {evidence:#?}");
        for name in
            [".git/config", "nested/.git/config", "nested/.git/hooks/x", ".envrc", ".vscode/tasks.json"]
        {
            assert_eq!(std::fs::read_to_string(root.join(name)).unwrap(), "kept", "{command}: {name}");
        }
        assert!(
            std::fs::read_to_string(root.join("sub/.git")).unwrap().starts_with("gitdir: ../.git"),
            "{command}"
        );
    }
    let swap = "mv nested gone && mkdir -p nested/.git && echo evil > nested/.git/config";
    let checks = journeyman_verify::custom_checks(&[swap.to_owned()]);
    let evidence = run_checks(&checks, &context, CancellationToken::new(), &mut |_| {}).await.unwrap();
    assert!(!root.join("nested/.git").exists(), "{evidence:#?}");
    assert_eq!(std::fs::read_to_string(root.join("gone/.git/config")).unwrap(), "kept");
}

fn context(base: &Path, root: &Path, sandbox: &Arc<Sandbox>) -> RunContext {
    let blobs = Arc::new(Blobs::open(&base.join("blobs"), 1 << 30).unwrap());
    let options = Options::new(base.join("state"), blobs);
    let host = HostEnvironment {
        vars: std::env::vars_os().collect(),
        home: std::env::var_os("HOME").map(PathBuf::from),
    };
    let workspace = Arc::new(Workspace::open(root, options).unwrap());
    let toolchains = Arc::new(find_toolchains(&host, root));
    RunContext {
        caches: Some(Arc::new(CheckCaches::create(&workspace, &toolchains, 1).unwrap())),
        workspace,
        sandbox: Arc::clone(sandbox),
        toolchains,
        limits: RunLimits::default(),
        needs: SandboxNeeds::ALL,
        session: SessionId::new(UnixMillis(1), 1),
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
