//! Mutations of changed lines: which there are in each language, and what holds for all of them.

use std::collections::BTreeSet;
use std::ops::Range;

use journeyman_protocol::{MutationKind, RelPath, Strength};
use journeyman_syntax::language::Language;
use journeyman_syntax::parse::parse;
use journeyman_verify::mutation::{FileMutants, MutationPlan, PlannedFile, TrialOutcome, find_mutants};
use proptest::prelude::*;

fn all_mutants(path: &str, text: &str) -> FileMutants {
    find_mutants(&RelPath::parse(path).unwrap(), text, std::slice::from_ref(&(1..u32::MAX)))
}

/// Returns the mutated code of each mutation of one kind.
fn of_kind(path: &str, text: &str, kind: MutationKind) -> Vec<String> {
    let found = all_mutants(path, text).mutants;
    found.iter().filter(|mutant| mutant.kind == kind).map(|mutant| mutant.to_survivor(text).after).collect()
}

const PYTHON: &str = "def f(a, b):\n    if a < b and not a:\n        a += 1\n    for i in range(b):\n        \
                      a = a * 2\n    return \"s\" if a else b\n";
const RUST: &str = "fn f(a: u32, b: u32) -> Option<u32> {\n    if a < b && b > 3 {\n        return None;\n    }\n    \
                    let c = g(a, b)?;\n    for i in 0..c {\n        h(i);\n    }\n    Some(a + 1)\n}\n";
const JAVASCRIPT: &str = "function f(a, b) {\n  if (a < b || !b) {\n    g(a, b);\n  } else {\n    throw new Error(\"x\");\n  \
                          }\n  return a.trim();\n}\n";
const C: &str = "int f(int a, int b) {\n    if (a < b)\n        return 1;\n    while (a) {\n        a--;\n        b += 2;\n    \
                 }\n    return b ? a : 3;\n}\n";
const GO: &str =
    "package a\n\nfunc F(a, b int) int {\n\tif a < b {\n\t\treturn 1\n\t}\n\tg(a, b)\n\treturn b\n}\n";
const JAVA: &str = "class A {\n    int f(int a, int b) {\n        if (a < b) {\n            return 1;\n        }\n        \
                    g(a, b);\n        return b;\n    }\n}\n";

#[test]
fn each_language_has_its_mutations() {
    use MutationKind::{
        Arguments, Boundary, Branch, Call, Condition, ErrorHandling, Range, Removal, Return, Text,
    };
    for (path, text, kind, expected) in [
        ("a.py", PYTHON, Boundary, vec!["if a <= b and not a:"]),
        ("a.py", PYTHON, MutationKind::Logic, vec!["if a < b or not a:"]),
        ("a.py", PYTHON, Removal, vec!["pass"]),
        ("a.py", PYTHON, Range, vec!["for i in range((b) - 1):", "a = a * 2 break"]),
        ("a.py", PYTHON, Text, vec!["return \"\" if a else b"]),
        ("a.py", PYTHON, Return, vec!["return None"]),
        ("a.rs", RUST, Boundary, vec!["if a <= b && b > 3 {", "if a < b && b >= 3 {"]),
        ("a.rs", RUST, ErrorHandling, vec!["let c = g(a, b).unwrap();"]),
        ("a.rs", RUST, Range, vec!["for i in 0..=c {", "h(i); break;"]),
        ("a.rs", RUST, Removal, vec!["{}"]),
        ("a.rs", RUST, Return, vec!["Default::default()"]),
        ("a.js", JAVASCRIPT, Arguments, vec!["g(b, a);"]),
        ("a.js", JAVASCRIPT, ErrorHandling, vec![";"]),
        ("a.js", JAVASCRIPT, Call, vec!["return a;"]),
        ("a.ts", JAVASCRIPT, Return, vec!["return (undefined as any);"]),
        ("a.c", C, Boundary, vec!["if (a <= b)"]),
        ("a.c", C, Return, vec!["return 0;", "return 0;"]),
        ("a.c", C, Removal, vec![";", ";"]),
        ("a.cpp", C, Return, vec!["return {};", "return {};"]),
        ("a.go", GO, Boundary, vec!["if a <= b {"]),
        ("a.go", GO, Removal, vec!["{}"]),
        ("a.go", GO, Return, vec!["return 0", "return 0"]),
        ("A.java", JAVA, Boundary, vec!["if (a <= b) {"]),
        ("A.java", JAVA, Return, vec!["return 0;", "return 0;"]),
        ("A.java", JAVA, Arguments, vec!["g(b, a);"]),
    ] {
        let language = Language::from_path(path).unwrap();
        if language.is_built_in() {
            assert_eq!(of_kind(path, text, kind), expected, "{path}: {kind:?}");
        }
    }
    assert_eq!(of_kind("a.js", JAVASCRIPT, Branch).len(), 1);
    let conditions = of_kind("a.js", JAVASCRIPT, Condition);
    assert!(conditions.contains(&"if ((a < b || !b) && false) {".to_owned()), "{conditions:?}");
    assert!(conditions.contains(&"if (a < b) {".to_owned()), "{conditions:?}");
}

#[test]
fn what_tests_need_not_notice_is_left_out() {
    for (path, text) in [
        ("a.py", "def f(a):\n    log.info(\"x %d\", 3)\n    print(a + 1)\n    assert a > 1\n"),
        ("a.py", "import a\nfrom b import c\n\n\ndef f(a: \"int\"):\n    \"\"\"Says 1 < 2.\"\"\"\n"),
        ("a.py", "def f(a, b):\n    # a < b\n    time.sleep(3)\n"),
        ("a.rs", "#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() {\n        let a = 1 < 2;\n    }\n}\n"),
        ("a.rs", "fn f(a: [u8; 4]) {\n    println!(\"{}\", 1 + 2);\n    debug_assert!(a.len() > 3);\n}\n"),
        ("a.js", "function f(a) {\n  console.log(a + 1);\n}\n"),
        ("a.c", "#include <a.h>\n#define N 3\nint a[4];\n"),
        // Not a language that is mutated, and not valid.
        ("a.md", "a < b\n"),
        ("a.py", "def f(:\n    return 1 <\n"),
    ] {
        let found = all_mutants(path, text).mutants;
        let removes_wait =
            |mutant: &journeyman_verify::mutation::Mutant| mutant.kind == MutationKind::Removal;
        let left: Vec<_> = found.iter().filter(|mutant| !removes_wait(mutant)).collect();
        assert!(left.is_empty(), "{text}: {left:?}");
    }
    // Equal values change nothing, and zero is its own negative.
    for text in [
        "def f(a):\n    if a < 0:\n        a = -a\n    return a\n",
        "def f(a):\n    return -a if 0 > a else a\n",
        "def f(a, b):\n    if a > b:\n        b = a\n    return b\n",
        "def f(a, b):\n    return a if a > b else b\n",
        "def f(a, b):\n    if a < b:\n        return b\n    return a\n",
    ] {
        assert_eq!(of_kind("a.py", text, MutationKind::Boundary), Vec::<String>::new(), "{text}");
    }
    // One beyond an array is undefined; what doesn't read one has a bound to test.
    let sum = "int f(int *a, int n) {\n    int s = 0;\n    for (int i = 0; i < n; i++) {\n        s += BODY;\n    }\n    return s;\n}\n";
    for (body, bounds) in [("a[i]", 0), ("i", 1), ("a[i - 1]", 1)] {
        let text = sum.replace("BODY", body);
        assert_eq!(of_kind("a.c", &text, MutationKind::Boundary).len(), bounds, "{text}");
    }
}

const GUARDED: &str = "def f(a, b):\n    if a > b:\n        return [a]\n    return g(a, b)\n";

#[test]
fn a_guard_that_makes_no_difference_is_left_out() {
    /// Tries all mutations; the tests notice those of these lines alone.
    fn survivors(noticed: &[u32]) -> Vec<String> {
        let mut plan = plan_of("a.py", GUARDED);
        while let Some((planned, _)) = plan.next_mutant() {
            let stops = planned.mutant.kind == MutationKind::Stop;
            let outcome = match stops || noticed.contains(&planned.mutant.line) {
                true => TrialOutcome::Noticed,
                false => TrialOutcome::Survived,
            };
            plan.record_outcome(planned, outcome);
        }
        plan.into_report(None).survivors.into_iter().map(|survivor| survivor.after).collect()
    }
    // The tests run the guard's body and tell it from a wrong one: what follows does the same.
    assert_eq!(survivors(&[3, 4]), ["if (a > b) or True:"]);
    assert!(survivors(&[4]).len() > 1, "nothing tells what the guard's body gives");
}

#[test]
fn a_bound_that_tests_reach_and_that_makes_no_difference_is_left_out() {
    let text = "def f(a):\n    if a <= 10:\n        return 2 * a\n    return 20 + (a - 10) * 3\n";
    for reached in [true, false] {
        let mut plan = plan_of("a.py", text);
        let mut probes = Vec::new();
        while let Some((planned, text)) = plan.next_mutant() {
            let mutated = planned.mutant.apply(text).unwrap();
            let is_probe = mutated.contains("_exit(97) if (a) == (10) else a <= 10");
            if is_probe {
                probes.push(mutated);
            }
            let outcome = match planned.mutant.kind {
                MutationKind::Boundary => TrialOutcome::Survived,
                _ if is_probe && !reached => TrialOutcome::Survived,
                _ => TrialOutcome::Noticed,
            };
            plan.record_outcome(planned, outcome);
        }
        assert_eq!(probes.len(), 1, "the survivor is asked about once");
        let survivors = plan.into_report(None).survivors;
        assert_eq!(survivors.is_empty(), reached, "{survivors:?}");
    }
    // Evaluating these twice isn't the same.
    let calls = all_mutants("a.py", "def f(a):\n    return a.pop() < 10\n");
    assert!(calls.mutants.iter().all(|mutant| mutant.probe.is_none()));
}

#[test]
fn statements_know_if_they_run_by_those_around_them() {
    let mut plan = plan_of("a.py", PYTHON);
    let mut asked = 0;
    while let Some((planned, _)) = plan.next_mutant() {
        // No test runs anything.
        let outcome = TrialOutcome::Survived;
        asked += 1;
        plan.record_outcome(planned, outcome);
    }
    let report = plan.into_report(None);
    // The first statement isn't run, so none after it is.
    assert_eq!((asked, report.tried, report.statements), (2, 1, 5));
    assert_eq!((report.strength, report.untested.len()), (Strength::Ran, 5));
    assert!(report.left_out > 10 && report.survivors.is_empty(), "{report:?}");
}

#[test]
fn the_first_round_has_a_mutation_of_each_statement() {
    let mut plan = plan_of("a.py", PYTHON);
    let mut statements = BTreeSet::new();
    for _ in 0..5 {
        let (planned, _) = plan.next_mutant().unwrap();
        statements.insert(planned.mutant.statement.unwrap());
        plan.record_outcome(planned, TrialOutcome::Noticed);
    }
    assert_eq!(statements.len(), 5);
    while let Some((planned, _)) = plan.next_mutant() {
        plan.record_outcome(planned, TrialOutcome::Noticed);
    }
    let report = plan.into_report(None);
    assert_eq!((report.strength, report.run_statements, report.count_survivors()), (Strength::Notices, 5, 0));
}

fn plan_of(path: &str, text: &str) -> MutationPlan {
    MutationPlan::new(vec![PlannedFile { text: text.to_owned(), found: all_mutants(path, text) }])
}

/// Asserts what holds for each mutation of these lines.
fn assert_sound(path: &str, text: &str, lines: &Range<u32>) {
    let language = Language::from_path(path).unwrap();
    let found = find_mutants(&RelPath::parse(path).unwrap(), text, std::slice::from_ref(lines));
    assert_eq!(found, find_mutants(&RelPath::parse(path).unwrap(), text, std::slice::from_ref(lines)));
    let line_of = |byte: usize| {
        u32::try_from(text.as_bytes()[..byte].iter().filter(|byte| **byte == b'\n').count() + 1).unwrap()
    };
    for mutant in &found.mutants {
        let mutated = mutant.apply(text).unwrap();
        assert_ne!(mutated, text, "{mutant:?}");
        assert!(!parse(language, &mutated).unwrap().has_error(), "{mutated}");
        let last = line_of(mutant.range.end.max(mutant.range.start + 1) - 1);
        assert!(lines.contains(&mutant.line) && lines.contains(&last), "{mutant:?} is outside of {lines:?}");
    }
    for stop in found.statements.iter().filter_map(|statement| statement.stop.as_ref()) {
        assert!(!parse(language, &stop.apply(text).unwrap()).unwrap().has_error(), "{stop:?}");
    }
}

proptest! {
    #[test]
    fn mutations_differ_parse_and_stay_within_the_changed_lines(
        which in 0_usize..8,
        first in 1_u32..10,
        length in 1_u32..10,
        cut in any::<prop::sample::Index>(),
        inserted in "[a-z<>+(){}:;=\n 0-9\"é]{0,6}",
    ) {
        let sources = [
            ("a.py", PYTHON), ("a.rs", RUST), ("a.js", JAVASCRIPT), ("a.ts", JAVASCRIPT), ("a.c", C), ("a.cpp", C),
            ("a.go", GO), ("A.java", JAVA),
        ];
        let (path, text) = sources[which];
        if Language::from_path(path).is_some_and(Language::is_built_in) {
            assert_sound(path, text, &(first..first + length));
            // Any other text, valid or not.
            let mut other = text.to_owned();
            other.insert_str(cut.index(text.len()), &inserted);
            assert_sound(path, &other, &(first..first + length));
        }
    }
}
