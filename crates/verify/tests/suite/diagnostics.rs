//! Outputs of each tool, with the diagnostics read from them.

use std::path::Path;

use journeyman_protocol::{Diagnostic, RelPath, Severity};
use journeyman_verify::diagnostics::{MAX_DIAGNOSTICS, parse_diagnostics, project_path};
use proptest::prelude::*;

/// `path:line:column severity code-or-test | message`, the form the tables below compare.
fn shown(one: &Diagnostic) -> String {
    let number = |value: Option<u32>| value.map_or("-".to_owned(), |value| value.to_string());
    format!(
        "{}:{}:{} {} {} | {}",
        one.path.as_ref().map_or("-".to_owned(), ToString::to_string),
        number(one.line),
        number(one.column),
        match one.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        },
        one.code.as_deref().or(one.test.as_deref()).unwrap_or("-"),
        one.message
    )
}

/// Reads `output` as of a project at `/p`.
fn read(output: &str) -> Vec<String> {
    let locate = |path: &str| project_path(Path::new("/p"), None, path);
    parse_diagnostics(output, &locate).iter().map(shown).collect()
}

#[test]
fn rustc_messages_with_their_labels() {
    let output = r#"
   Compiling x v0.1.0 (/p)
warning: unused variable: `y`
 --> src/lib.rs:9:5
  |
9 |     let y = 1;
  |         ^ help: if this is intentional, prefix it with an underscore: `_y`

error[E0277]: cannot add `&str` to `u32`
 --> src/lib.rs:4:32
  |
4 | pub fn add(a:u32,b:u32)->u32{ a+"x" }
  |                                ^ no implementation for `u32 + &str`
  |
  = help: the trait `Add<&str>` is not implemented for `u32`
help: the following other types implement trait `Add<Rhs>`
 --> /rustc/59807616/library/core/src/ops/arith.rs:99:8

error: no matching package named `serd` found
location searched: crates.io index

warning: `x` (lib) generated 1 warning
error: could not compile `x` (lib) due to 2 previous errors
warning: build failed, waiting for other jobs to finish...
"#;
    assert_eq!(
        read(output),
        [
            "src/lib.rs:4:32 error E0277 | cannot add `&str` to `u32`; no implementation for `u32 + &str`",
            "-:-:- error - | no matching package named `serd` found",
            "src/lib.rs:9:5 warning - | unused variable: `y`; help: if this is intentional, prefix it with an underscore: `_y`",
        ]
    );
}

#[test]
fn rust_tests_that_fail() {
    let output = r#"
running 4 tests
test tests::ok ... ok
test tests::three ... FAILED
test tests::one ... FAILED
test tests::silent ... FAILED

failures:

---- tests::three stdout ----
Error: "nope"

---- tests::one stdout ----

thread 'tests::one' (9260) panicked at src/lib.rs:6:20:
assertion `left == right` failed: sum
  left: 3
 right: 4
stack backtrace:
   0: __rustc::rust_begin_unwind
             at /rustc/5980/library/std/src/panicking.rs:689:5
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

failures:
    tests::one
    tests::three

test result: FAILED. 1 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.17s

error: test failed, to rerun pass `--lib`
"#;
    assert_eq!(
        read(output),
        [
            "src/lib.rs:6:20 error tests::one | assertion `left == right` failed: sum; left: 3; right: 4",
            "-:-:- error tests::three | \"nope\"",
            "-:-:- error tests::silent | the test fails",
        ]
    );
}

#[test]
fn rust_doc_tests_and_old_panics() {
    let output = "test src/lib.rs - add (line 12) ... FAILED\n";
    assert_eq!(read(output), ["src/lib.rs:12:- error src/lib.rs - add (line 12) | the doc test fails"]);
    let output = "thread 'main' panicked at 'boom: 1', src/main.rs:2:5\nnote: run with RUST_BACKTRACE=1\n";
    assert_eq!(read(output), ["src/main.rs:2:5 error - | boom: 1"]);
}

#[test]
fn typescript_plain_and_pretty() {
    let output = "src/a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.\n\
                  src/b.ts:7:1 - error TS2304: Cannot find name 'x'.\n\n7 x\n  ~\n\nFound 2 errors.\n";
    assert_eq!(
        read(output),
        [
            "src/a.ts:3:5 error TS2322 | Type 'string' is not assignable to type 'number'.",
            "src/b.ts:7:1 error TS2304 | Cannot find name 'x'.",
        ]
    );
}

#[test]
fn eslint_stylish() {
    let output = "\n/p/src/a.js\n  3:5   error    'x' is not defined  no-undef\n  10:1  warning  Unexpected console statement  no-console\n\n✖ 2 problems (1 error, 1 warning)\n";
    assert_eq!(
        read(output),
        [
            "src/a.js:3:5 error no-undef | 'x' is not defined",
            "src/a.js:10:1 warning no-console | Unexpected console statement",
        ]
    );
}

#[test]
fn node_test_runner_in_both_forms() {
    let tap = r"TAP version 13
# Subtest: adds
not ok 1 - adds
  ---
  duration_ms: 2.944021
  location: '/p/a.test.js:2:1'
  failureType: 'testCodeFailure'
  error: |-
    Expected values to be strictly equal:
    
    1 !== 2
    
  code: 'ERR_ASSERTION'
  stack: |-
    TestContext.<anonymous> (/p/a.test.js:2:26)
  ...
    not ok 1 - inner
      ---
      location: '/p/a.test.js:3:36'
      error: 'boom'
      ...
not ok 2 - suite
  ---
  location: '/p/a.test.js:3:1'
  failureType: 'subtestsFailed'
  error: '1 subtest failed'
  ...
# fail 3
";
    assert_eq!(
        read(tap),
        [
            "a.test.js:2:1 error adds | Expected values to be strictly equal:; 1 !== 2",
            "a.test.js:3:36 error inner | boom",
        ]
    );
    let spec = r"✖ adds (2.373488ms)
  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:
  
  1 !== 2
  
      at TestContext.<anonymous> (/p/a.test.js:2:26)
      at Test.run (node:internal/test_runner/test:796:25)
";
    assert_eq!(
        read(spec),
        [
            "a.test.js:2:26 error adds | AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:; 1 !== 2"
        ]
    );
}

#[test]
fn jest_vitest_and_mocha() {
    let jest = r"FAIL src/a.test.js
  ● sums › adds

    expect(received).toBe(expected) // Object.is equality

    Expected: 3
    Received: -1

      3 | test('adds', () => {
    > 4 |   expect(add(1, 2)).toBe(3);
        |                     ^

      at Object.toBe (src/a.test.js:4:21)
      at new Promise (<anonymous>)

Tests:       1 failed, 1 total
";
    assert_eq!(
        read(jest),
        [
            "src/a.test.js:4:21 error sums › adds | expect(received).toBe(expected) // Object.is equality; Expected: 3; Received: -1"
        ]
    );
    let vitest = r" FAIL  src/a.test.ts > sums > adds
AssertionError: expected -1 to be 3 // Object.is equality

- Expected
+ Received

 ❯ src/a.test.ts:5:21
      3|
";
    assert_eq!(
        read(vitest),
        [
            "src/a.test.ts:5:21 error src/a.test.ts > sums > adds | AssertionError: expected -1 to be 3 // Object.is equality; - Expected; + Received"
        ]
    );
    let mocha = r"  1 failing

  1) sums
       adds:

      AssertionError [ERR_ASSERTION]: -1 == 3
      + expected - actual

      at Context.<anonymous> (test/a.js:5:14)
      at process.processImmediate (node:internal/timers:476:21)
";
    assert_eq!(
        read(mocha),
        ["test/a.js:5:14 error sums > adds | AssertionError [ERR_ASSERTION]: -1 == 3; + expected - actual"]
    );
}

#[test]
fn node_syntax_errors() {
    let output = "/p/a.js:3\nfoo(\n    ^\n\nSyntaxError: missing ) after argument list\n    at wrapSafe (node:internal/modules/cjs/loader:1281:20)\n";
    assert_eq!(read(output), ["a.js:3:- error - | SyntaxError: missing ) after argument list"]);
}

#[test]
fn unittest_failures_and_errors() {
    let output = r#"FEFF
======================================================================
ERROR: test_boom (test_m.T.test_boom)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/usr/lib/python3.11/unittest/case.py", line 57, in run
    yield
  File "/p/tests/test_m.py", line 7, in test_boom
    [][1]
    ~~^^^
IndexError: list index out of range

======================================================================
FAIL: test_add (test_m.T)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/p/tests/test_m.py", line 5, in test_add
    self.assertEqual('a\nb', 'a\nc')
AssertionError: 'a\nb' != 'a\nc'
  a
- b
+ c

----------------------------------------------------------------------
Ran 2 tests in 0.001s

FAILED (failures=1, errors=1)
"#;
    assert_eq!(
        read(output),
        [
            "tests/test_m.py:7:- error test_m.T.test_boom | IndexError: list index out of range",
            "tests/test_m.py:5:- error test_m.T.test_add | AssertionError: 'a\\nb' != 'a\\nc'; a; - b; + c",
        ]
    );
}

#[test]
fn python_syntax_errors() {
    let output = "  File \"bad.py\", line 1\n    def f(\n         ^\nSyntaxError: '(' was never closed\n";
    assert_eq!(read(output), ["bad.py:1:- error - | SyntaxError: '(' was never closed"]);
    let output = "Sorry: IndentationError: expected an indented block (bad2.py, line 2)\n";
    assert_eq!(read(output), ["bad2.py:2:- error - | IndentationError: expected an indented block"]);
}

#[test]
fn pytest_failures_once_each() {
    let output = r#"
=================================== FAILURES ===================================
___________________________________ test_add ___________________________________

    def test_add():
>       assert add(1, 2) == 3
E       assert -1 == 3
E        +  where -1 = add(1, 2)

tests/test_m.py:5: AssertionError
________________________________ TestA.test_b[1] _______________________________
tests/test_m.py:9: in test_b
    raise ValueError("x")
E   ValueError: x
==================================== ERRORS ====================================
_____________________ ERROR collecting tests/test_broken.py ____________________
tests/test_broken.py:1: in <module>
    import nothing
E   ModuleNotFoundError: No module named 'nothing'
=========================== short test summary info ============================
FAILED tests/test_m.py::test_add - assert -1 == 3
FAILED tests/test_m.py::TestA::test_b[1] - ValueError: x
FAILED tests/test_m.py::test_quiet - AssertionError
ERROR tests/test_broken.py
2 failed, 1 error in 0.05s
"#;
    assert_eq!(
        read(output),
        [
            "tests/test_broken.py:1:- error - | ModuleNotFoundError: No module named 'nothing'",
            "tests/test_m.py:5:- error test_add | assert -1 == 3; +  where -1 = add(1, 2)",
            "tests/test_m.py:9:- error TestA.test_b[1] | ValueError: x",
            "tests/test_m.py:-:- error test_quiet | AssertionError",
        ]
    );
}

#[test]
fn mypy_and_ruff() {
    let output = "a.py:3: error: Incompatible return value type  [return-value]\n\
                  b.py:1:8: F401 [*] `os` imported but unused\n\
                  a.py:4: note: Revealed type is \"int\"\nFound 1 error in 1 file\n";
    assert_eq!(
        read(output),
        [
            "a.py:3:- error return-value | Incompatible return value type",
            "b.py:1:8 error F401 | [*] `os` imported but unused",
            "a.py:4:- note - | Revealed type is \"int\"",
        ]
    );
}

#[test]
fn go_builds_vets_and_tests() {
    let output = "# example.com/p\n./x.go:3:4: undefined: y\nvet: ./z.go:9:2: missing return\n\
                  --- FAIL: TestX (0.00s)\n    x_test.go:12: got 1\n        want 2\n\
                  --- FAIL: TestTable (0.00s)\n    --- FAIL: TestTable/one (0.00s)\n        x_test.go:30: bad\n\
                  --- FAIL: TestQuiet (0.00s)\nFAIL\nFAIL\texample.com/p\t0.003s\nFAIL\n";
    assert_eq!(
        read(output),
        [
            "x.go:3:4 error - | undefined: y",
            "z.go:9:2 error - | missing return",
            "x_test.go:12:- error TestX | got 1; want 2",
            "x_test.go:30:- error TestTable/one | bad",
            "-:-:- error TestQuiet | the test fails",
        ]
    );
    let output = "--- FAIL: TestP (0.00s)\npanic: runtime error: index out of range [3] with length 0 [recovered]\n\ngoroutine 7 [running]:\ntesting.tRunner.func1.2({0x1, 0x2})\n\t/usr/local/go/src/testing/testing.go:1631 +0x24a\np.First(...)\n\t/p/x.go:4\n";
    assert_eq!(
        read(output),
        ["x.go:4:- error TestP | panic: runtime error: index out of range [3] with length 0"]
    );
}

#[test]
fn c_compilers_linkers_and_assertions() {
    let output = "src/a.c: In function 'main':\nsrc/a.c:3:9: error: 'x' undeclared (first use in this function)\n\
                  src/a.c:5:7: warning: unused variable 'y' [-Wunused-variable]\n\
                  src/a.h:1:10: fatal error: nope.h: No such file or directory\n\
                  /usr/bin/ld: /tmp/cc1.o: in function `main':\nsrc/a.c:(.text+0x5): undefined reference to `foo'\n\
                  t: src/t.c:12: main: Assertion `x == 1' failed.\n\
                  make: *** [Makefile:3: test] Error 1\n";
    assert_eq!(
        read(output),
        [
            "src/a.c:3:9 error - | 'x' undeclared (first use in this function)",
            "src/a.h:1:10 error - | nope.h: No such file or directory",
            "src/a.c:-:- error - | undefined reference to `foo'",
            "src/t.c:12:- error - | main: Assertion `x == 1' failed.",
            "src/a.c:5:7 warning -Wunused-variable | unused variable 'y'",
        ]
    );
}

#[test]
fn build_tools_and_their_tests() {
    let cmake = "-- Detecting C compile features - done\nCMake Error at src/CMakeLists.txt:4 (find_package):\n  By not providing \"FindNope.cmake\"\n\n  in the path.\n\n\n-- Configuring incomplete, errors occurred!\nCMake Error: no build.\n";
    assert_eq!(
        read(cmake),
        [
            "src/CMakeLists.txt:4:- error - | By not providing \"FindNope.cmake\" in the path.",
            "-:-:- error - | no build."
        ]
    );
    let ctest = "x: /p/x.c:2: main: Assertion `c==1' failed.\n\n33% tests passed, 2 tests failed out of 3\n\nThe following tests FAILED:\n\t  2 - two (Subprocess aborted)\n\t  3 - a (b) (Failed)                     slow\nErrors while running CTest\n";
    assert_eq!(
        read(ctest),
        [
            "x.c:2:- error - | main: Assertion `c==1' failed.",
            "-:-:- error two | Subprocess aborted",
            "-:-:- error a (b) | the test fails"
        ]
    );
    let meson = "2/3 two FAIL 0.02s exit status 1\n\nSummary of Failures:\n\n2/3 sub - two FAIL            0.02s   exit status 1\n3/3 three TIMEOUT        30.0s   killed by signal 15 SIGTERM\n\nOk:                 1   \n";
    assert_eq!(read(meson), ["-:-:- error sub - two | exit status 1", "-:-:- error three | timeout"]);
    let automake = "configure.ac:3: installing './compile'\nPASS: t\nFAIL: sub/u\nFAIL: v\n====\n   x 1: ./test-suite.log\n====\n\nFAIL: sub/u\n===========\n\ngot 3,\nwanted 4\nFAIL sub/u (exit status: 1)\n\nFAIL: v\n=======\n\nv: v.c:2: main: Assertion `c' failed.\nFAIL v (exit status: 134)\n\nmake[2]: *** [Makefile:628: test-suite.log] Error 1\n";
    assert_eq!(
        read(automake),
        [
            "v.c:2:- error - | main: Assertion `c' failed.",
            "-:-:- error sub/u | got 3,; wanted 4",
            "-:-:- error v | v: v.c:2: main: Assertion `c' failed."
        ]
    );
    let others = [
        ("configure: error: libnope is needed\n", "-:-:- error - | configure: libnope is needed"),
        (
            "make[2]: Entering directory '/p'\nmake[2]: *** No rule to make target 'check'.  Stop.\nmake: *** [Makefile:9: check] Error 2\n",
            "-:-:- error - | No rule to make target 'check'.",
        ),
        ("FAIL: see the log\nmake: *** No targets.  Stop.\n", "-:-:- error - | No targets."),
    ];
    for (output, expected) in others {
        assert_eq!(read(output), [expected], "{output}");
    }
}

#[test]
fn blocks_of_phpunit_and_perl() {
    let php = "There was 1 error:\n\n1) CalcTest::testErr\nException: boom\n\n/p/tests/CalcTest.php:5\n\n--\n\nThere was 1 failure:\n\n1) CalcTest::testAdds\nFailed asserting that -1 is identical to 3.\n\n/p/tests/CalcTest.php:4\n\nERRORS!\nTests: 2\n";
    assert_eq!(
        read(php),
        [
            "tests/CalcTest.php:5:- error CalcTest::testErr | Exception: boom",
            "tests/CalcTest.php:4:- error CalcTest::testAdds | Failed asserting that -1 is identical to 3."
        ]
    );
    let perl = "\n#   Failed test 'adds'\n#   at t/a.t line 1.\n#          got: '-1'\n#     expected: '3'\n\n#   Failed test at t/a.t line 2.\n    #   Failed test 'in'\n    #   at t/a.t line 3.\n    # Looks like you failed 1 test of 1.\nt/a.t .. \nDubious, test returned 4\n";
    assert_eq!(
        read(perl),
        [
            "t/a.t:1:- error adds | got: '-1'; expected: '3'",
            "t/a.t:2:- error t/a.t line 2 | the test fails",
            "t/a.t:3:- error in | the test fails"
        ]
    );
}

/// Outputs of tools after a line with their name, each with what is read from it after `>>>`.
const OUTPUTS: &str = include_str!("../outputs.txt");

#[test]
fn tools_of_further_languages() {
    let cases: Vec<&str> = OUTPUTS.split("@@@ ").skip(1).collect();
    assert!(cases.len() > 30);
    for case in cases {
        let (name, rest) = case.split_once('\n').unwrap();
        let (output, expected) = rest.split_once(">>>\n").unwrap();
        assert_eq!(read(output), expected.lines().collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn paths_are_relative_to_the_directory_that_make_entered() {
    let files = ["t.c", "src/t.c", "src/sub/u.c", "sub/x.c"];
    let locate = |path: &str| {
        project_path(Path::new("/p"), None, path).filter(|path| files.contains(&path.as_str().unwrap()))
    };
    let read =
        |output: &str| -> Vec<String> { parse_diagnostics(output, &locate).iter().map(shown).collect() };
    let make = "make[1]: Entering directory '/p/src'\nt.c:1:2: error: a\nmake[2]: Entering directory '/p/src/sub'\nu.c:2:2: error: b\n../t.c:3:3: error: c\nmake[2]: Leaving directory '/p/src/sub'\nt.c:4:4: error: d\nmake[1]: Leaving directory '/p/src'\nt.c:5:5: error: e\n";
    assert_eq!(
        read(make),
        [
            "src/t.c:1:2 error - | a",
            "src/sub/u.c:2:2 error - | b",
            "src/t.c:3:3 error - | c",
            "src/t.c:4:4 error - | d",
            "t.c:5:5 error - | e"
        ]
    );
    // A copy, and a directory of products elsewhere.
    let copy = "make[1]: Entering directory '/tmp/tmp.a1/src'\nt.c:1:2: error: a\n";
    assert_eq!(read(copy), ["src/t.c:1:2 error - | a"]);
    let ninja = "ninja: Entering directory `/tmp/tmp.b2'\n../../p/sub/x.c:1:21: error: a\n";
    assert_eq!(read(ninja), ["sub/x.c:1:21 error - | a"]);
    let said = "He said: Entering directory '/p/src'\nt.c:1:2: error: a\n";
    assert_eq!(read(said), ["t.c:1:2 error - | a"]);
}

#[test]
fn places_outside_the_project_lose_their_path_or_are_dropped() {
    assert_eq!(read("/etc/passwd:3:4: error: no"), Vec::<String>::new());
    assert_eq!(read("../x/a.c:3:4: error: no"), Vec::<String>::new());
    let output = "error[E0308]: mismatched types\n --> /home/me/.cargo/registry/src/x/lib.rs:3:4\n";
    assert_eq!(read(output), ["-:-:- error E0308 | mismatched types"]);
}

#[test]
fn line_zero_is_no_line() {
    for output in ["a.c:0:0: error: no newline", "src/a.ts(0,0): error TS1: bad", "a.go:0:0: bad"] {
        let found = read(output);
        assert!(!found.is_empty() && found.iter().all(|one| !one.contains(":0")), "{output}: {found:?}");
    }
}

#[test]
fn more_findings_than_fit_are_counted() {
    let output: String = (1..=80).map(|line| format!("a.c:{line}:1: error: no\n")).collect();
    let found = read(&output);
    assert_eq!(found.len(), MAX_DIAGNOSTICS);
    assert_eq!(found[MAX_DIAGNOSTICS - 1], "-:-:- note - | 31 more findings are not listed");
}

#[test]
fn long_lines_and_many_lines_are_bounded() {
    let long = format!("a.c:3:1: error: {}\n", "é".repeat(100_000));
    assert!(read(&long)[0].len() < 1_000);
    let many = "--- FAIL: TestX (0.00s)\n".repeat(50_000) + &"FAILED a.py::t - x\n".repeat(50_000);
    assert_eq!(read(&many).len(), 2);
}

/// Lines that look like what the readers know, to reach their states.
fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("error[E1]: x".to_owned()),
        Just(" --> a.rs:1:2".to_owned()),
        Just("  | ^^^ é".to_owned()),
        Just("thread 'é' panicked at a.rs:1:2:".to_owned()),
        Just("thread 'x' panicked at 'y', ".to_owned()),
        Just("---- x stdout ----".to_owned()),
        Just("Traceback (most recent call last):".to_owned()),
        Just("  File \"a.py\", line 3".to_owned()),
        Just("E   x".to_owned()),
        Just("not ok 1 - x".to_owned()),
        Just("  error: |-".to_owned()),
        Just("  ...".to_owned()),
        Just("● x".to_owned()),
        Just("    at f (a.js:1:2)".to_owned()),
        Just("XError: y".to_owned()),
        Just("--- FAIL: T/x (0s)".to_owned()),
        Just("panic: x".to_owned()),
        Just("\t/p/x.go:1 +0x".to_owned()),
        Just("a.c:1:2: error: x".to_owned()),
        Just(String::new()),
        prop::sample::select(OUTPUTS.lines().collect::<Vec<_>>()).prop_map(str::to_owned),
        prop::sample::select(vec![
            "FAIL: u",
            "=======",
            "FAIL u (exit status: 1)",
            "make[1]: Entering directory '/p/../é'",
            "make[1]: Leaving directory '/p/../é'",
            "The following tests FAILED:",
            "Summary of Failures:",
            "CMake Error at a:1 (x):",
            "#   Failed test 'é'",
        ])
        .prop_map(str::to_owned),
        "[ -~é•]{0,40}",
        "[a-c./]{1,4}:[0-9]{0,12}:?[0-9]{0,12}:? ?[a-z\\[\\]():]{0,9}",
    ]
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic_and_within_bounds(text in "\\PC{0,400}") {
        prop_assert!(read(&text).len() <= MAX_DIAGNOSTICS);
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(read(&String::from_utf8_lossy(&bytes)).len() <= MAX_DIAGNOSTICS);
    }

    #[test]
    fn any_mixture_of_formats_is_read_without_panic(lines in proptest::collection::vec(fragment(), 0..40)) {
        let locate = |path: &str| RelPath::parse(path).ok();
        let found = parse_diagnostics(&lines.join("\n"), &locate);
        prop_assert!(found.len() <= MAX_DIAGNOSTICS);
        prop_assert!(found.windows(2).all(|pair| pair[0].severity >= pair[1].severity));
    }
}
