//! What real tools wrote (`tests/outputs`), and documents that no tool would write.

use std::path::Path;

use journeyman_protocol::{Diagnostic, TestCounts};
use journeyman_verify::diagnostics::{MAX_DIAGNOSTICS, ParsedOutput, project_path, read_output};
use proptest::prelude::*;

/// `path:line code-or-test | message | expected / actual`, the form the tables below compare.
fn shown(one: &Diagnostic) -> String {
    let values = match (&one.expected, &one.actual) {
        (Some(expected), Some(actual)) => format!(" | {expected} / {actual}"),
        _ => String::new(),
    };
    format!(
        "{}:{} {} | {}{values}",
        one.path.as_ref().map_or("-".to_owned(), ToString::to_string),
        one.line.map_or("-".to_owned(), |line| line.to_string()),
        one.code.as_deref().or(one.test.as_deref()).unwrap_or("-"),
        one.message
    )
}

/// Reads an output and reports as of a project at `/p`.
fn read_all(output: &str, reports: &[&str]) -> ParsedOutput {
    let reports: Vec<String> = reports.iter().map(|report| (*report).to_owned()).collect();
    read_output(output, &reports, &|path: &str| project_path(Path::new("/p"), None, path))
}

fn lines(readings: &ParsedOutput) -> Vec<String> {
    readings.diagnostics.iter().map(shown).collect()
}

fn counts(passed: u64, failed: u64, skipped: u64) -> Option<TestCounts> {
    Some(TestCounts { passed, failed, skipped })
}

macro_rules! output {
    ($name:literal) => {
        include_str!(concat!("../outputs/", $name))
    };
}

#[test]
fn documents_in_an_output_are_read_whichever_tool_printed_them() {
    let cases: [(&str, Option<TestCounts>, &[&str]); 9] = [
        (
            output!("jest.json"),
            counts(1, 1, 1),
            &[
                "a.test.js:2 sums > adds | Error: expect(received).toBe(expected) // Object.is equality; Expected: 3; Received: -1 | 3 / -1",
            ],
        ),
        (
            output!("vitest.json"),
            counts(0, 2, 0),
            &[
                "v/b.spec.ts:2 sums > adds | AssertionError: expected -1 to be 3 // Object.is equality | 3 / -1",
                "v/b.spec.ts:2 sums > obj | AssertionError: expected { a: 1 } to deeply equal { a: 2 } | { a: 2 } / { a: 1 }",
            ],
        ),
        (
            output!("pytest.xml"),
            counts(2, 2, 1),
            &[
                "tests/test_m.py:5 tests.test_m.test_add | assert -1 == 3; +  where -1 = add(1, 2) | 3 / -1",
                "tests/test_m.py:9 tests.test_m.TestA.test_b[2] | AssertionError: weird; assert 2 == 1 | 1 / 2",
            ],
        ),
        (
            output!("rspec.json"),
            counts(1, 1, 1),
            &["spec/calc_spec.rb:3 Calc adds | expected: 3; got: -1; (compared using ==) | 3 / -1"],
        ),
        (
            output!("phpunit.xml"),
            counts(1, 2, 0),
            &[
                "tests/CalcTest.php:5 CalcTest.testAdds | Failed asserting that -1 is identical to 3. | 3 / -1",
                "tests/CalcTest.php:8 CalcTest.testText | Failed asserting that two strings are equal.; --- Expected; +++ Actual; @@ @@; -'a'; +'b' | 'a' / 'b'",
            ],
        ),
        (
            output!("go.json"),
            // A test that fails through its subtest is no failure of its own.
            counts(1, 2, 1),
            &[
                "x_test.go:5 TestAdd | Add(1, 2) = -1, want 3 | 3 / -1",
                "x_test.go:9 TestTable/one | got 1, want 2 | 2 / 1",
            ],
        ),
        (
            output!("ruff.json"),
            None,
            &[
                "a.py:1 I001 | Import block is un-sorted or un-formatted",
                "a.py:1 F401 | `os` imported but unused",
            ],
        ),
        (
            output!("mypy.json"),
            None,
            &["a.py:3 return-value | Incompatible return value type (got \"int\", expected \"str\")"],
        ),
        ("", None, &[]),
    ];
    for (document, tests, expected) in cases {
        let output = format!("> the tool\n{document}\nend\n");
        let readings = read_all(&output, &[]);
        assert_eq!(lines(&readings), expected, "{output}");
        assert_eq!(readings.tests, tests, "{output}");
    }
}

#[test]
fn outputs_of_runners_without_a_report() {
    let cases: [(&str, &[&str]); 5] = [
        (
            output!("vitest.txt"),
            &[
                "v/b.spec.ts:2 v/b.spec.ts > sums > adds | AssertionError: expected -1 to be 3 // Object.is equality; - Expected; + Received; - 3 | 3 / -1",
                "v/b.spec.ts:2 v/b.spec.ts > sums > obj | AssertionError: expected { a: 1 } to deeply equal { a: 2 }; - Expected; + Received; { | { a: 2 } / { a: 1 }",
            ],
        ),
        (
            output!("rspec.txt"),
            &[
                "spec/calc_spec.rb:3 Calc adds | Failure/Error: expect(1 - 2).to eq(3); expected: 3; got: -1; (compared using ==) | 3 / -1",
            ],
        ),
        (
            output!("minitest.txt"),
            &[
                "test/calc_test.rb:7 CalcTest#test_boom | RuntimeError: boom",
                "test/calc_test.rb:4 CalcTest#test_adds | Expected: 3; Actual: -1 | 3 / -1",
            ],
        ),
        (
            output!("phpunit.txt"),
            &[
                "tests/CalcTest.php:5 CalcTest::testAdds | Failed asserting that -1 is identical to 3. | 3 / -1",
                "tests/CalcTest.php:8 CalcTest::testText | Failed asserting that two strings are equal.; --- Expected; +++ Actual; @@ @@; -'a'; +'b' | 'a' / 'b'",
            ],
        ),
        (
            output!("ruff.txt"),
            &[
                "a.py:1 I001 | Import block is un-sorted or un-formatted",
                "a.py:1 F401 | `os` imported but unused",
                "tests/test_m.py:1 I001 | Import block is un-sorted or un-formatted",
            ],
        ),
    ];
    for (output, expected) in cases {
        assert_eq!(lines(&read_all(output, &[])), expected, "{output}");
    }
}

#[test]
fn a_report_and_the_output_of_a_run_tell_of_a_failure_once() {
    let both = [
        (output!("pytest.txt"), output!("pytest.xml"), 2),
        (output!("phpunit.txt"), output!("phpunit.xml"), 2),
        (output!("rspec.txt"), output!("rspec.json"), 1),
        (output!("jest.txt"), output!("jest.json"), 1),
        (output!("vitest.txt"), output!("vitest.json"), 2),
    ];
    for (output, report, failures) in both {
        let readings = read_all(output, &[report]);
        let found = lines(&readings);
        assert_eq!(readings.diagnostics.len(), failures, "{found:#?}");
        assert!(readings.diagnostics.iter().all(|one| one.line.is_some()), "{found:#?}");
        assert!(readings.diagnostics.iter().all(|one| one.expected.is_some()), "{found:#?}");
        assert!(readings.diagnostics.iter().all(|one| one.duration_ms.is_some()), "{found:#?}");
    }
}

#[test]
fn compilers_and_analysers_in_json() {
    let cargo = r#"{"reason":"compiler-artifact","package_id":"x"}
{"reason":"compiler-message","package_id":"x","message":{"message":"mismatched types","code":{"code":"E0308","explanation":null},"level":"error","spans":[{"file_name":"src/lib.rs","line_start":4,"column_start":9,"is_primary":true,"label":"expected `u8`, found `&str`"}],"children":[],"rendered":"..."}}
{"reason":"compiler-message","package_id":"x","message":{"message":"aborting due to 1 previous error","code":null,"level":"error","spans":[],"children":[]}}
{"reason":"build-finished","success":false,"package_id":"x"}
"#;
    let eslint = r#"[{"filePath":"/p/src/a.js","messages":[{"ruleId":"no-undef","severity":2,"message":"'x' is not defined.","line":3,"column":5},{"ruleId":"no-console","severity":1,"message":"Unexpected console.","line":4,"column":1}]}]"#;
    let pyright = "{\n \"version\": \"1\",\n \"generalDiagnostics\": [\n  {\"file\": \"/p/a.py\", \"severity\": \"error\", \"message\": \"no\", \"rule\": \"reportX\", \"range\": {\"start\": {\"line\": 2, \"character\": 4}}}\n ]\n}";
    let gcc = r#"[{"kind": "error", "locations": [{"caret": {"file": "a.c", "line": 3, "column": 9}}], "message": "'x' undeclared", "children": []}]"#;
    let sarif = r#"{"version":"2.1.0","runs":[{"results":[{"ruleId":"r1","level":"error","message":{"text":"bad"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.py"},"region":{"startLine":7}}}]}]}]}"#;
    let cases: [(&str, &[&str]); 5] = [
        (cargo, &["src/lib.rs:4 E0308 | mismatched types; expected `u8`, found `&str`"]),
        (
            eslint,
            &["src/a.js:3 no-undef | 'x' is not defined.", "src/a.js:4 no-console | Unexpected console."],
        ),
        (pyright, &["a.py:3 reportX | no"]),
        (gcc, &["a.c:3 - | 'x' undeclared"]),
        (sarif, &["a.py:7 r1 | bad"]),
    ];
    for (document, expected) in cases {
        assert_eq!(lines(&read_all(document, &[])), expected, "{document}");
    }
}

#[test]
fn the_jvm_elixir_dotnet_and_google_test() {
    let maven = "[ERROR] /p/src/main/java/com/x/Calc.java:[3,5] cannot find symbol\n\
                 [ERROR] com.x.CalcTest.adds -- Time elapsed: 0.01 s <<< FAILURE!\n\
                 org.opentest4j.AssertionFailedError: expected: <3> but was: <-1>\n\
                 \tat org.junit.jupiter.api.Assertions.assertEquals(Assertions.java:150)\n\
                 \tat com.x.CalcTest.adds(CalcTest.java:12)\n\n";
    let gradle = "CalcTest > adds() FAILED\n    org.opentest4j.AssertionFailedError: expected: <3> but was: <-1>\n        at app//com.x.CalcTest.adds(CalcTest.java:12)\n";
    let exunit = "  1) test adds (CalcTest)\n     test/calc_test.exs:4\n     Assertion with == failed\n     code:  assert 1 - 2 == 3\n     left:  -1\n     right: 3\n     stacktrace:\n       test/calc_test.exs:5: (test)\n\nFinished in 0.02 seconds\n";
    let dotnet = "  Failed Calc.Tests.Adds [12 ms]\n  Error Message:\n   Assert.Equal() Failure: Values differ\nExpected: 3\nActual:   -1\n  Stack Trace:\n     at Calc.Tests.Adds() in /p/Tests.cs:line 12\nFailed!  - Failed: 1\n";
    let google = "[ RUN      ] Calc.Adds\n/p/test/calc_test.cc:5: Failure\nExpected equality of these values:\n  add(1, 2)\n    Which is: -1\n  3\n[  FAILED  ] Calc.Adds (0 ms)\n";
    let cases: [(&str, &[&str]); 5] = [
        (
            maven,
            &[
                "src/main/java/com/x/Calc.java:3 - | cannot find symbol",
                "src/test/java/com/x/CalcTest.java:12 com.x.CalcTest.adds | org.opentest4j.AssertionFailedError: expected: <3> but was: <-1> | 3 / -1",
            ],
        ),
        (
            gradle,
            &[
                "src/test/java/com/x/CalcTest.java:12 CalcTest.adds | org.opentest4j.AssertionFailedError: expected: <3> but was: <-1> | 3 / -1",
            ],
        ),
        (
            exunit,
            &[
                "test/calc_test.exs:4 test adds (CalcTest) | Assertion with == failed; code:  assert 1 - 2 == 3; left:  -1; right: 3 | 3 / -1",
            ],
        ),
        (
            dotnet,
            &[
                "Tests.cs:12 Calc.Tests.Adds | Assert.Equal() Failure: Values differ; Expected: 3; Actual:   -1 | 3 / -1",
            ],
        ),
        (
            google,
            &[
                "test/calc_test.cc:5 Calc.Adds | Expected equality of these values:; add(1, 2); Which is: -1; 3",
            ],
        ),
    ];
    for (output, expected) in cases {
        assert_eq!(lines(&read_all(output, &[])), expected, "{output}");
    }
}

#[test]
fn documents_that_are_cut_or_hostile_do_no_harm() {
    let deep_json = "[".repeat(200_000);
    let deep_xml = format!("<testsuites>{}", "<testsuite>".repeat(100_000));
    let bomb = "<?xml version=\"1.0\"?><!DOCTYPE b [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\"><!ENTITY c SYSTEM \"file:///etc/passwd\">]><testsuites><testsuite><testcase name=\"&b;\" classname=\"x\"><failure message=\"&b;\">&b;&c;</failure></testcase></testsuite></testsuites>";
    let many = "{\n".repeat(50_000);
    let numbers =
        r#"{"severity":"error","file":"a.py","line":99999999999999999999,"column":-4,"message":"x"}"#;
    for text in [
        deep_json.as_str(),
        &deep_xml,
        &many,
        bomb,
        numbers,
        "{\"Action\":\"output\"",
        "<testsuite",
        "<?xml <testsuite \u{0}",
    ] {
        for (output, reports) in [(text, vec![]), ("", vec![text])] {
            let readings = read_all(output, &reports);
            assert!(readings.diagnostics.len() <= 1, "{:?}", lines(&readings));
        }
    }
    let readings = read_all("", &[bomb]);
    assert!(
        lines(&readings).iter().all(|line| !line.contains("aaaa") && !line.contains("root:")),
        "{readings:?}"
    );
    let half = output!("jest.json");
    let half = &half[..half.len() / 2];
    assert_eq!(read_all(half, &[]).diagnostics, []);
    // The line after a half one is read.
    let readings = read_all(&format!("{{\"Action\":\"outp\n{}", output!("mypy.json")), &[]);
    assert_eq!(readings.diagnostics.len(), 1);
}

/// Every real document, cut and disturbed anywhere.
fn disturbed() -> impl Strategy<Value = String> {
    let documents = [
        output!("jest.json"),
        output!("pytest.xml"),
        output!("rspec.json"),
        output!("go.json"),
        output!("phpunit.xml"),
        output!("ruff.json"),
        output!("minitest.txt"),
        output!("vitest.txt"),
    ];
    (
        0..documents.len(),
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        "[ -~<>{}\\[\\]\"é]{0,8}",
    )
        .prop_map(move |(which, start, end, put)| {
            let text: Vec<char> = documents[which].chars().collect();
            let (start, end) = (start.index(text.len()), end.index(text.len()));
            let (start, end) = (start.min(end), start.max(end));
            let mut out: String = text[..start].iter().collect();
            out.push_str(&put);
            out.extend(&text[end..]);
            out
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn disturbed_documents_are_read_within_bounds(text in disturbed()) {
        for (output, reports) in [(text.as_str(), vec![]), ("", vec![text.as_str()])] {
            let readings = read_all(output, &reports);
            prop_assert!(readings.diagnostics.len() <= MAX_DIAGNOSTICS);
            for one in &readings.diagnostics {
                let words = [&one.code, &one.test, &one.expected, &one.actual];
                prop_assert!(one.message.len() <= 600 && words.iter().all(|word| word.as_ref().is_none_or(|word| word.len() <= 300)));
            }
        }
    }
}
