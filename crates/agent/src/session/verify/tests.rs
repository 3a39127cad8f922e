use std::sync::Arc;
use std::time::Duration;

use journeyman_protocol::{CheckKind, Strength};
use journeyman_testkit::has_program_or_skip;
use journeyman_tools::Registry;
use journeyman_workspace::ListOptions;

use super::*;
use crate::session::settings::TestStrengthSettings;
use crate::supervision::schedule::Schedule;
use crate::supervision::todos::SharedTodoList;
use crate::test_context::TestContext;

/// The stages that keep something from one round of checks to the next.
struct Stages {
    runner: ToolRunner,
    supervision: Supervision,
    verification: Verification,
}

impl Stages {
    /// Makes the stages of a session with this check, which policy allows.
    fn new(test: &mut TestContext, checks: ChecksSetting) -> Self {
        let allowed: &[&[&str]] = &[
            &["true"],
            &["false"],
            &["python3", "-m", "unittest"],
            &["python3", "-m", "unittest", "discover"],
            &["python3", "-m", "py_compile", "calc.py"],
            &["python3", "-m", "py_compile", "other.py"],
            &["sh", "check.sh"],
            &["npm", "test"],
            &["npm", "run", "lint"],
            &["npm", "run", "lint:fix"],
        ];
        let rules =
            allowed.iter().map(|words| format!("[[rule]]\ncommand = {words:?}\ndecision = 'allow'\n"));
        test.set_rules(&rules.collect::<String>());
        test.cx.settings.checks = checks;
        let todos = Arc::new(SharedTodoList::new(crate::Clock::new(|| journeyman_protocol::UnixMillis(1))));
        let supervision = Supervision::new(todos, Arc::new(Schedule::default()), 0);
        let runner = ToolRunner::new(Arc::new(Registry::default()), Arc::clone(&test.inbox));
        let programs = |name: &str| {
            ["python3", "npm"].contains(&name).then(|| std::path::Path::new("/usr/bin").join(name))
        };
        let mut verification = Verification::new(Arc::new(programs));
        let listing = test.cx.workspace.list(ListOptions::default()).unwrap();
        verification.find_checks(&test.cx, &mut test.approvals, &listing);
        Self { runner, supervision, verification }
    }

    /// Verifies the changes of the task once.
    async fn run(&mut self, test: &mut TestContext) -> Option<TaskEnd> {
        let mut stage = TurnVerification {
            cx: &mut test.cx,
            approvals: &mut test.approvals,
            runner: &mut self.runner,
            supervision: &mut self.supervision,
            verification: &mut self.verification,
            checkpoints: &mut test.checkpoints,
            copy_updates: &mut CopyUpdates::default(),
            said_nothing: false,
        };
        stage.run(&CancellationToken::new()).await.unwrap()
    }
}

/// Verifies the changes of a task once with this check, which policy allows.
async fn verify(test: &mut TestContext, checks: ChecksSetting) -> Option<TaskEnd> {
    Stages::new(test, checks).run(test).await
}

async fn with_change() -> TestContext {
    let mut test = TestContext::new(&[("a.rs", "one\n")]).await;
    test.checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
    test.write("a.rs", "two\n");
    test
}

fn only(command: &str) -> ChecksSetting {
    ChecksSetting::Custom(vec![command.to_owned()])
}

#[tokio::test]
async fn a_task_without_changes_runs_no_check() {
    let mut test = TestContext::new(&[("a.rs", "one\n")]).await;
    let end = verify(&mut test, only("false")).await.unwrap();
    assert_eq!(end.outcome, RunOutcome::Unverified);
    assert!(end.summary.contains("no file changed"), "{}", end.summary);
    assert_eq!(test.events().await, []);
}

#[tokio::test]
async fn passed_checks_verify_a_change_and_missing_checks_do_not() {
    for (checks, outcome, summary) in [
        (only("true"), RunOutcome::Verified, "verified by `true`, which can't fail"),
        (ChecksSetting::Off, RunOutcome::Unverified, "finished; no check was run (--no-check)"),
        (
            ChecksSetting::Found,
            RunOutcome::Unverified,
            "finished; no check was found in the project, so nothing verified it (name one with --check)",
        ),
    ] {
        let end = verify(&mut with_change().await, checks).await;
        assert_eq!(end, Some(TaskEnd::new(outcome, summary)));
    }
}

#[tokio::test]
async fn failed_checks_go_back_to_the_model_until_the_limit() {
    let mut test = with_change().await;
    test.cx.settings.max_iterations = 1;
    assert_eq!(verify(&mut test, only("false")).await, None);
    assert!(test.last_text().contains("false"), "{}", test.last_text());
    let end = verify(&mut test, only("false")).await.unwrap();
    assert_eq!(end.outcome, RunOutcome::ChecksFail);
    let fed_back: Vec<bool> = test
        .events()
        .await
        .iter()
        .filter_map(|it| if let Event::VerifyFinished { fed_back, .. } = it { Some(*fed_back) } else { None })
        .collect();
    assert_eq!(fed_back, [true, false]);
}

/// Verifies a change of `a.rs` by this script. Returns the end, and the trees that it ran on.
async fn verify_by_script(
    script: &str,
) -> (TaskEnd, Vec<Option<journeyman_protocol::ContentHash>>, TestContext) {
    let mut test = TestContext::new(&[("a.rs", "one\n"), ("log", "0\n"), ("check.sh", script)]).await;
    test.checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
    test.write("a.rs", "two\n");
    let end = verify(&mut test, only("sh check.sh")).await.unwrap();
    let trees = test.events().await.into_iter().filter_map(|event| match event {
        Event::CheckResult { evidence } => Some(evidence.tree),
        _ => None,
    });
    (end, trees.collect(), test)
}

#[tokio::test]
async fn a_check_that_rewrites_the_tree_runs_again_on_what_it_left() {
    // As a formatter does: it changes what isn't in order, once.
    let (end, trees, test) = verify_by_script("echo formatted > a.rs\n").await;
    assert_eq!(end.outcome, RunOutcome::Verified, "{}", end.summary);
    assert_eq!(trees.len(), 2);
    let now = test.cx.workspace.history().tree_hash().unwrap();
    assert_eq!(trees[1], Some(now), "the tree that is left is the one that was checked");
    // Files that checks make are no part of what they check.
    let (end, trees, _) = verify_by_script("date +%N > report; echo >> report\n").await;
    assert_eq!((end.outcome, trees.len()), (RunOutcome::Verified, 1), "{}", end.summary);
}

#[tokio::test]
async fn checks_that_change_the_tree_whenever_they_run_verify_nothing() {
    let (end, trees, _) = verify_by_script("echo again >> log\n").await;
    assert_eq!(end.outcome, RunOutcome::Unverified, "{}", end.summary);
    assert!(end.summary.contains("checks pass and change log whenever they run"), "{}", end.summary);
    assert_eq!(trees.len(), 1 + MAX_REPEATED_ROUNDS);
}

#[tokio::test]
async fn an_edit_after_the_checks_is_checked_as_well() {
    // The script runs once more in a copy, with the original test, and plays the user meanwhile.
    for (edit, outcome, said, runs) in [
        ("echo edited >", RunOutcome::Verified, "verified by", 2),
        ("echo again >>", RunOutcome::Unverified, "a.rs changed after them", 1 + MAX_REPEATED_ROUNDS),
        ("rm -f test_b.py; echo >", RunOutcome::Verified, "verified by", 2),
    ] {
        let before = [("a.rs", "one\n"), ("test_a.py", "def test_a(): pass\n"), ("test_b.py", "")];
        let mut test = TestContext::new(&before).await;
        let root = test.root.display().to_string();
        test.write("check.sh", &format!("[ \"$PWD\" = {root} ] || {{ cd {root}; {edit} a.rs; }}\n"));
        test.checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
        test.write("a.rs", "two\n");
        test.write("test_a.py", "def test_a(): pass\n\ndef test_more(): pass\n");
        let end = verify(&mut test, only("sh check.sh")).await.unwrap();
        assert_eq!(end.outcome, outcome, "{edit}: {}", end.summary);
        assert!(end.summary.contains(said), "{edit}: {}", end.summary);
        let trees: Vec<_> = test
            .events()
            .await
            .into_iter()
            .filter_map(|event| match event {
                Event::CheckResult { evidence } if !evidence.original_tests => evidence.tree,
                _ => None,
            })
            .collect();
        assert_eq!(trees.len(), runs, "{edit}");
        let now = test.cx.workspace.history().tree_hash().unwrap();
        assert_eq!(trees.last() == Some(&now), outcome == RunOutcome::Verified, "{edit}");
    }
}

#[tokio::test]
async fn what_blocked_checks_need_is_not_fetched_unasked() {
    if !has_program_or_skip("npm") {
        return;
    }
    let manifest = r#"{"scripts": {"test": "node --test"}, "dependencies": {"local": "file:./local"}}"#;
    let lock = r#"{"lockfileVersion": 3, "requires": true, "packages": {
        "": {"dependencies": {"local": "file:./local"}},
        "local": {"version": "1.0.0"}, "node_modules/local": {"resolved": "local", "link": true}}}"#;
    let files = [
        ("package.json", manifest),
        ("package-lock.json", lock),
        ("local/package.json", r#"{"name": "local", "version": "1.0.0", "main": "one.js"}"#),
        ("local/one.js", "module.exports = 1;\n"),
        ("a.js", "module.exports = 1;\n"),
        ("a.test.js", "require('node:test')('is', () => { require('local'); require('./a.js') });\n"),
        (".gitignore", "node_modules\n"),
    ];
    let mut test = TestContext::new(&files).await;
    test.checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
    test.write("a.js", "module.exports = 2;\n");
    let end = verify(&mut test, ChecksSetting::Found).await.unwrap();
    assert_eq!(end.outcome, RunOutcome::Unverified, "{}", end.summary);
    assert!(!test.root.join("node_modules").exists());
    let said = "`npm ci --no-audit --no-fund` would fetch what is missing, but it was not allowed";
    assert!(end.summary.contains(said), "{}", end.summary);
}

const LINTED: &str =
    r#"{"scripts": {"test": "node --test", "lint": "sh lint.sh", "lint:fix": "sh lint.sh fix"}}"#;
const LINT: &str = "if [ \"$1\" ]; then sed -i 's/var /const /' a.js; fi\n! grep -n 'var ' a.js\n";

#[tokio::test]
async fn a_linter_repairs_what_it_newly_finds_before_the_model_is_told() {
    if !has_program_or_skip("npm") {
        return;
    }
    let twice = "var one = 1;\nvar two = 2;\n";
    let repairing = ["npm run lint", "npm run lint:fix", "npm run lint", "npm test"];
    for (repairs, before, after, commands) in [
        (true, "const one = 1;\n", twice, &repairing[..]),
        (false, "const one = 1;\n", twice, &["npm run lint"]),
        // It failed before the task as well.
        (true, "var one = 1;\n", "var one = 1;\nlet two = 2;\n", &["npm run lint"]),
    ] {
        let tests = "require('node:test')('is', () => { require('./a.js') });\n";
        let files = [("package.json", LINTED), ("lint.sh", LINT), ("a.js", before), ("a.test.js", tests)];
        let mut test = TestContext::new(&files).await;
        test.cx.settings.lint_fix = repairs;
        test.cx.settings.max_iterations = 0;
        test.checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
        test.write("a.js", after);
        let end = verify(&mut test, ChecksSetting::Found).await.unwrap();
        let started: Vec<String> = test
            .events()
            .await
            .into_iter()
            .filter_map(|event| match event {
                Event::CheckStarted { command, before_task: false, .. } => Some(command),
                _ => None,
            })
            .collect();
        assert!(
            started.starts_with(&commands.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()),
            "{started:?}"
        );
        let is_repaired = std::fs::read_to_string(test.root.join("a.js")).unwrap().contains("const two");
        assert_eq!(is_repaired, commands == repairing, "{started:?}: {}", end.summary);
        if is_repaired {
            assert_eq!(end.outcome, RunOutcome::Verified, "{}", end.summary);
        }
    }
}

const CALC: &str = "def add(a, b):\n    return a + b\n";
const WRONG: &str = "def add(a, b):\n    return a - b\n";
const UNITTEST: &str = "python3 -m unittest";

/// Returns a file with a test for each sum, as `(name, sum of 2 and 2)`.
fn tests_of(sums: &[(&str, i32)]) -> String {
    let mut text = "import unittest\nfrom calc import add\n\n\nclass Sums(unittest.TestCase):\n".to_owned();
    for (name, sum) in sums {
        text.push_str(&format!("    def test_{name}(self):\n        self.assertEqual(add(2, 2), {sum})\n\n"));
    }
    text
}

/// Changes files of a small Python project in a task, and verifies it. An empty text deletes a
/// file. Returns the end, and the evidence with the original tests.
async fn change_project(changes: &[(&str, &str)]) -> (TaskEnd, Vec<Evidence>) {
    let tests = tests_of(&[("sum", 4)]);
    let mut test = TestContext::new(&[("calc.py", CALC), ("test_calc.py", &tests)]).await;
    test.checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
    for (name, text) in changes {
        match *text {
            "" => std::fs::remove_file(test.root.join(name)).unwrap(),
            text => test.write(name, text),
        }
    }
    test.cx.settings.max_iterations = 0;
    let end = verify(&mut test, only(UNITTEST)).await.unwrap();
    for (name, text) in changes {
        let there = std::fs::read_to_string(test.root.join(name)).unwrap_or_default();
        assert_eq!(there, *text, "{name}: the session's tree is as the session left it");
    }
    assert!(test.cx.workspace.copies().list().unwrap().is_empty());
    let evidence = test.events().await.into_iter().filter_map(|event| match event {
        Event::CheckResult { evidence } if evidence.original_tests => Some(evidence),
        _ => None,
    });
    (end, evidence.collect())
}

#[tokio::test]
async fn tests_that_were_changed_until_they_pass_verify_nothing() {
    if !has_program_or_skip("python3") {
        return;
    }
    let weaker = tests_of(&[("sum", 0)]);
    let fewer = tests_of(&[("other", 0)]);
    let skipping = "import unittest\n\n\nclass Sums(unittest.TestCase):\n    @unittest.skip('x')\n    \
                    def test_sum(self):\n        pass\n\n    def test_other(self):\n        pass\n";
    for changed in [
        vec![("calc.py", WRONG), ("test_calc.py", weaker.as_str())],
        vec![("calc.py", WRONG), ("test_calc.py", ""), ("test_new.py", fewer.as_str())],
    ] {
        let (end, evidence) = change_project(&changed).await;
        assert_eq!(end.outcome, RunOutcome::Unverified, "{changed:?}: {}", end.summary);
        assert_eq!(
            end.summary,
            "finished, but not verified: with test_calc.py as before the change, `python3 -m unittest` fails: \
             exit code 1",
            "{changed:?}"
        );
        let [failed] = &evidence[..] else { panic!("{evidence:?}") };
        assert!(failed.output.contains("test_sum") && failed.output.contains("0 != 4"), "{failed:?}");
    }
    // What a look at the change tells needs no run.
    let (end, evidence) = change_project(&[("calc.py", WRONG), ("test_calc.py", skipping)]).await;
    let said = "not verified, though checks passed: test_calc.py";
    assert!(end.outcome == RunOutcome::Unverified && end.summary.starts_with(said), "{}", end.summary);
    assert_eq!(evidence, []);
}

#[tokio::test]
async fn tests_that_were_extended_or_added_verify_a_change() {
    if !has_program_or_skip("python3") {
        return;
    }
    let more = tests_of(&[("sum", 4), ("again", 4)]);
    let doubled = "def add(a, b):\n    return b + a\n";
    let (end, evidence) = change_project(&[("calc.py", doubled), ("test_calc.py", &more)]).await;
    assert_eq!(end.outcome, RunOutcome::Verified, "{}", end.summary);
    let summary = "verified by `python3 -m unittest`, also with the tests as they were before";
    assert_eq!((end.summary.as_str(), evidence.len()), (summary, 1));
    // A new test has no original.
    let (end, evidence) = change_project(&[("calc.py", doubled), ("test_more.py", &more)]).await;
    assert_eq!((end.summary.as_str(), evidence), ("verified by `python3 -m unittest`", Vec::new()));
}

#[tokio::test]
async fn tests_that_follow_a_renamed_or_moved_product_verify_it() {
    if !has_program_or_skip("python3") {
        return;
    }
    let tests = tests_of(&[("sum", 4)]);
    let plus = CALC.replace("add", "plus");
    let renamed = tests.replace("import add", "import plus").replace("add(", "plus(");
    let more =
        tests_of(&[("sum", 4), ("again", 4)]).replace("import add", "import plus").replace("add(", "plus(");
    let moved = tests.replace("from calc", "from lib.calc");
    let weaker = renamed.replace("2), 4", "2), 0");
    let wrong = WRONG.replace("add", "plus");
    let kept = tests.replace("from calc", "from arith");
    for (changes, outcome) in [
        (vec![("calc.py", plus.as_str()), ("test_calc.py", &renamed)], RunOutcome::Verified),
        (vec![("calc.py", &plus), ("test_calc.py", &more)], RunOutcome::Verified),
        (vec![("calc.py", ""), ("lib/calc.py", CALC), ("test_calc.py", &moved)], RunOutcome::Verified),
        (
            vec![("calc.py", ""), ("arith.py", CALC), ("test_calc.py", ""), ("test_arith.py", &kept)],
            RunOutcome::Verified,
        ),
        // The names are followed, what is expected isn't.
        (vec![("calc.py", &wrong), ("test_calc.py", &weaker)], RunOutcome::Unverified),
    ] {
        let (end, _) = change_project(&changes).await;
        assert_eq!(end.outcome, outcome, "{changes:?}: {}", end.summary);
    }
}

#[tokio::test]
async fn new_set_up_of_tests_is_left_out_of_the_run_with_the_original_tests() {
    if !has_program_or_skip("python3") {
        return;
    }
    let tests = tests_of(&[("sum", 4)]);
    let right = "import calc\n\ncalc.add = lambda a, b: a + b\n";
    let shadow = "import sys\n\nsys.stderr.write('Ran 1 test in 0.001s\\n\\nOK\\n')\n";
    let files = [("calc.py", WRONG), ("test_calc.py", tests.as_str())];
    // Without a package, the runner finds none of its tests.
    let files_in_directory = [("calc.py", WRONG), ("tests/test_calc.py", tests.as_str())];
    for (files, changes) in [
        (&files, vec![("test_aaa.py", right)]),
        (&files, vec![("unittest/__init__.py", ""), ("unittest/__main__.py", shadow)]),
        (&files_in_directory, vec![("tests/__init__.py", right)]),
    ] {
        let mut test = TestContext::new(files).await;
        test.checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
        for (name, text) in &changes {
            test.write(name, text);
        }
        test.cx.settings.max_iterations = 0;
        let end = verify(&mut test, only(UNITTEST)).await.unwrap();
        assert_eq!(end.outcome, RunOutcome::Unverified, "{changes:?}: {}", end.summary);
        assert!(end.summary.contains("as before the change"), "{}", end.summary);
    }
}

#[tokio::test]
async fn data_that_only_tests_read_has_its_original_content() {
    if !has_program_or_skip("python3") {
        return;
    }
    let test_of = |read: &str| {
        format!(
            "import json, unittest\n{read}\n\n\nclass Sums(unittest.TestCase):\n    def test_sum(self):\n        \
             for a, b, c in json.load(open('cases.json')):\n            self.assertEqual(add(a, b), c)\n"
        )
    };
    let (test_text, product) = (test_of("from calc import add"), "import json\nCASES = 'cases.json'\n");
    for (more, outcome) in [("", RunOutcome::Unverified), (product, RunOutcome::Verified)] {
        let calc = format!("{more}{CALC}");
        let files =
            [("calc.py", calc.as_str()), ("cases.json", "[[2, 2, 4]]\n"), ("test_calc.py", &test_text)];
        let mut test = TestContext::new(&files).await;
        test.checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
        test.write("calc.py", &format!("{more}{WRONG}"));
        test.write("cases.json", "[[2, 2, 0]]\n");
        test.cx.settings.max_iterations = 0;
        let end = verify(&mut test, only(UNITTEST)).await.unwrap();
        // Data that the product reads is the product's.
        assert_eq!(end.outcome, outcome, "{}", end.summary);
    }
}

#[tokio::test]
async fn tests_that_failed_before_the_task_are_no_excuse_for_the_original_ones() {
    if !has_program_or_skip("python3") {
        return;
    }
    let tests = tests_of(&[("sum", 4)]);
    let mut test = TestContext::new(&[("calc.py", WRONG), ("test_calc.py", &tests)]).await;
    test.checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
    test.cx.settings.max_iterations = 1;
    test.write("calc.py", "def add(a, b):\n    return a - b + 0\n");
    let mut verification = Stages::new(&mut test, only(UNITTEST));
    assert_eq!(verification.run(&mut test).await, None);
    test.write("test_calc.py", &tests_of(&[("sum", 0)]));
    let end = verification.run(&mut test).await.unwrap();
    assert_eq!(end.outcome, RunOutcome::Unverified, "{}", end.summary);
}

/// Verifies the changes of files in a Python project with these files by its own tests. Returns
/// the end, and the newest evidence of each command.
async fn verify_python(files: &[(&str, &str)], changes: &[(&str, &str)]) -> (TaskEnd, Vec<Evidence>) {
    let mut test = TestContext::new(files).await;
    test.checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
    for (name, text) in changes {
        test.write(name, text);
    }
    test.cx.settings.max_iterations = 0;
    let end = verify(&mut test, ChecksSetting::Found).await.unwrap();
    assert!(test.cx.workspace.copies().list().unwrap().is_empty());
    let mut evidence: Vec<Evidence> = Vec::new();
    for event in test.events().await {
        if let Event::CheckResult { evidence: newer } = event {
            evidence.retain(|one| one.command != newer.command);
            evidence.push(newer);
        }
    }
    (end, evidence)
}

#[tokio::test]
async fn failures_from_before_the_task_neither_block_it_nor_hide_new_ones() {
    if !has_program_or_skip("python3") {
        return;
    }
    let tests = tests_of(&[("sum", 4)]);
    let old = tests_of(&[("old", 5)]).replace("from calc", "from other");
    let files = [
        ("calc.py", CALC),
        ("other.py", CALC),
        ("test_calc.py", tests.as_str()),
        ("test_other.py", old.as_str()),
    ];
    let doubled = "def add(a, b):\n    return b + a\n";
    let (end, evidence) = verify_python(&files, &[("calc.py", doubled)]).await;
    assert_eq!(end.outcome, RunOutcome::Verified, "{} {evidence:?}", end.summary);
    assert!(end.summary.contains("failed before the task as well: "), "{}", end.summary);
    let one = evidence.iter().find(|one| one.kind == CheckKind::Test && !one.affected_only).unwrap();
    let baseline = one.baseline.clone().unwrap();
    assert!(baseline.old.len() == 1 && baseline.old[0].contains("test_old"), "{baseline:?}");
    assert!(one.diagnostics.iter().any(|found| found.before_task), "{one:?}");

    let (end, evidence) = verify_python(&files, &[("calc.py", WRONG)]).await;
    assert_eq!(end.outcome, RunOutcome::ChecksFail, "{}", end.summary);
    let one = evidence.iter().find(|one| one.kind == CheckKind::Test && !one.affected_only).unwrap();
    let baseline = one.baseline.clone().unwrap();
    assert!(baseline.new.len() == 1 && baseline.new[0].contains("test_sum"), "{baseline:?}");

    // The task may be to fix what the change can affect.
    let (end, _) = verify_python(&files, &[("other.py", doubled)]).await;
    assert_eq!(end.outcome, RunOutcome::Unverified, "{}", end.summary);
    assert!(end.summary.contains("nothing new fails"), "{}", end.summary);
}

#[tokio::test]
async fn affected_tests_alone_also_run_as_they_were_before() {
    if !has_program_or_skip("python3") {
        return;
    }
    let (tests, weaker) = (tests_of(&[("sum", 4)]), tests_of(&[("sum", 0)]));
    let other = tests_of(&[("sum", 4)]).replace("from calc", "from other");
    let files = [("calc.py", CALC), ("other.py", CALC), ("test_calc.py", &tests), ("test_other.py", &other)];
    let mut test = TestContext::new(&files).await;
    let times = r#"[{"directory":"","command":"python3 -m unittest discover","ms":3600000}]"#;
    test.checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
    std::fs::write(test.cx.workspace.state_dir().join("check-times.json"), times).unwrap();
    test.write("calc.py", WRONG);
    test.write("test_calc.py", &weaker);
    test.cx.settings.max_iterations = 0;
    let end = verify(&mut test, ChecksSetting::Found).await.unwrap();
    let said = "with test_calc.py as before the change, `python3 -m unittest discover -p test_calc.py` fails";
    assert!(end.outcome == RunOutcome::Unverified && end.summary.contains(said), "{}", end.summary);
}

#[tokio::test]
async fn a_test_that_passes_when_it_runs_again_is_named_as_flaky() {
    if !has_program_or_skip("python3") {
        return;
    }
    let tests = "import os, unittest\nfrom calc import add\n\n\nclass Sums(unittest.TestCase):\n    \
                 def test_sum(self):\n        self.assertEqual(add(2, 2), 4)\n\n    \
                 def test_flaky(self):\n        there = os.path.exists('ran.tmp')\n        \
                 open('ran.tmp', 'w').close()\n        self.assertTrue(there)\n";
    let files = [("calc.py", CALC), ("test_calc.py", tests), (".gitignore", "ran.tmp\n")];
    let doubled = "def add(a, b):\n    return b + a\n";
    let (end, evidence) = verify_python(&files, &[("calc.py", doubled)]).await;
    assert_eq!(end.outcome, RunOutcome::Verified, "{} {evidence:?}", end.summary);
    assert!(end.summary.contains("; flaky: ") && end.summary.contains("test_flaky"), "{}", end.summary);
}

#[tokio::test]
async fn a_test_that_fails_in_the_product_is_not_flaky_because_others_are() {
    if !has_program_or_skip("python3") {
        return;
    }
    let flaky = "import os, unittest\n\n\nclass Flaky(unittest.TestCase):\n    def test_flaky(self):\n        \
                 there = os.path.exists('ran.tmp')\n        open('ran.tmp', 'w').close()\n        \
                 self.assertTrue(there)\n";
    let tests = tests_of(&[("sum", 4)]);
    let ignored = (".gitignore", "ran.tmp\n");
    let files = [("calc.py", CALC), ("test_calc.py", &tests), ("test_flaky.py", flaky), ignored];
    let broken = "def add(a, b):\n    raise ValueError(a)\n";
    let (end, evidence) = verify_python(&files, &[("calc.py", broken)]).await;
    assert_eq!(end.outcome, RunOutcome::ChecksFail, "{} {evidence:?}", end.summary);
}

#[tokio::test]
async fn a_user_who_needs_tests_that_notice_gets_them_or_no_verified_end() {
    if !has_program_or_skip("python3") {
        return;
    }
    let product = "def add(a, b):\n    if a > 9:\n        return 9\n    return a + b\n";
    let weak = tests_of(&[("sum", 4)]);
    let full = format!(
        "{weak}    def test_bound(self):\n        self.assertEqual([add(9, 4), add(10, 4), add(3, -1)], [13, 9, 2])\n"
    );
    for (added, outcome) in [(full.as_str(), RunOutcome::Verified), (weak.as_str(), RunOutcome::Unverified)] {
        let mut test = TestContext::new(&[("calc.py", CALC), ("test_calc.py", &weak)]).await;
        test.checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
        let (needs, budget) = (Strength::Notices, Duration::from_secs(600));
        test.cx.settings.strength = TestStrengthSettings { needs, budget };
        test.write("calc.py", product);
        // Each call has stages of its own, so the second one may ask again.
        assert_eq!(verify(&mut test, only(UNITTEST)).await, None);
        let asked = test.last_text();
        assert!(asked.contains("calc.py:3: no test runs this line of `add`"), "{asked}");
        test.write("test_calc.py", added);
        test.cx.settings.max_iterations = 1;
        let end = verify(&mut test, only(UNITTEST)).await.unwrap();
        assert_eq!(end.outcome, outcome, "{}", end.summary);
    }
}
