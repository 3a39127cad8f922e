//! The words by which test frameworks name tests, assertions and skipping.

/// Returns a name in lower case without separators, so that `assert_eq!` and `assertEq` are equal.
pub(super) fn normalize_name(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns a line without blanks, so that code is found however it is spaced.
pub(super) fn without_blanks(line: &str) -> String {
    line.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Names of calls that define a test by a block of code.
const TEST_CALLS: [&str; 13] = [
    "it", "test", "specify", "fit", "xit", "ftest", "xtest", "xspecify", "fspecify", "example", "scenario",
    "should", "ignore",
];
/// Names of calls that group tests.
const GROUP_CALLS: [&str; 15] = [
    "describe",
    "context",
    "suite",
    "feature",
    "fdescribe",
    "xdescribe",
    "fcontext",
    "xcontext",
    "group",
    "testset",
    "rspec",
    "xfeature",
    "ffeature",
    "given",
    "when",
];
/// Macros of C++ that define a test by the block after them.
const TEST_MACROS: [&str; 7] = [
    "TEST_CASE",
    "SCENARIO",
    "TEMPLATE_TEST_CASE",
    "TEST_CASE_METHOD",
    "TEST_CASE_FIXTURE",
    "TEST_CASE_TEMPLATE",
    "SUBCASE",
];
/// Attributes that make a function a test; also any that ends with `test`.
const TEST_ATTRIBUTES: [&str; 9] = [
    "fact",
    "theory",
    "testmethod",
    "datatestmethod",
    "testcase",
    "quickcheck",
    "property",
    "proptest",
    "testfactory",
];

/// Returns true for the first name of a call that defines a test.
pub(super) fn is_test_call(name: &str) -> bool {
    TEST_CALLS.contains(&name) || TEST_MACROS.contains(&name)
}

/// Returns true for the first name of a call that groups tests.
pub(super) fn is_group_call(name: &str) -> bool {
    GROUP_CALLS.contains(&normalize_name(name).as_str())
}

/// Returns true for a macro of C++ whose block comes after it.
pub(super) fn is_test_macro(name: &str) -> bool {
    TEST_MACROS.contains(&name)
}

/// Returns true for an attribute, annotation or decorator that makes a function a test.
pub(super) fn is_test_attribute(name: &str) -> bool {
    let name = normalize_name(name);
    TEST_ATTRIBUTES.contains(&name.as_str())
        || name.ends_with("test") && !name.starts_with("before") && !name.starts_with("after")
}

/// Returns true for a call, attribute or option that keeps a test from running, or makes its
/// failure count as success.
pub(super) fn is_skip(name: &str) -> bool {
    let name = normalize_name(name);
    let begins = ["skip", "xfail", "disabled", "ignored", "gtestskip", "xctskip", "testignore", "pending"];
    let names = [
        "ignore",
        "expectedfailure",
        "explicit",
        "todo",
        "failing",
        "fails",
        "tskip",
        "marktestskipped",
        "marktestincomplete",
        "mayfail",
        "shouldfail",
        "quarantine",
        "quarantined",
        "inactive",
        "importorskip",
        "shouldpanic",
        "unsupported",
        "manual",
        "pytestskip",
        "runif",
    ];
    name != "skipped" && begins.iter().any(|it| name.starts_with(it))
        || names.contains(&name.as_str())
        || name.starts_with("disabledon")
        || name.starts_with("disabledif")
        || name.starts_with("enabledon")
        || name.starts_with("enabledif")
}

/// Returns true for the first name of a test call that skips it.
pub(super) fn is_skipping_test_call(name: &str) -> bool {
    matches!(name, "ignore" | "pending" | "skip")
        || name.strip_prefix('x').is_some_and(|rest| is_test_call(rest) || is_group_call(rest))
}

/// Returns true for a name that makes the runner run no other tests.
pub(super) fn is_focus(name: &str) -> bool {
    name == "only"
        || name == "focus"
        || name.strip_prefix('f').is_some_and(|rest| is_test_call(rest) || is_group_call(rest))
}

/// The certainty with which an assertion distinguishes a wrong value from a right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum AssertionStrength {
    /// The assertion is true for any value.
    Vacuous,
    /// The assertion is true for most values: it tests existence or the type.
    Exists,
    /// The assertion is true for many values: it tests bounds, parts or truth.
    Partial,
    /// The assertion is true for one value.
    Exact,
}

/// Returns the strength that a matcher's name implies, and whether the name negates.
pub(super) fn matcher_strength(name: &str) -> Option<(AssertionStrength, bool)> {
    let compacted = normalize_name(name);
    let stem = [
        "assertthat",
        "assert",
        "expect",
        "refute",
        "should",
        "xctassert",
        "xctunwrap",
        "testassert",
        "ckassert",
        "cuassert",
        "require",
        "check",
        "must",
        "verify",
        "wont",
        "be",
        "to",
        "is",
        "has",
        "propassert",
    ];
    let mut bare = compacted.as_str();
    for prefix in stem {
        bare = bare.strip_prefix(prefix).unwrap_or(bare);
    }
    let negated = bare.starts_with("not") && bare != "notthrow"
        || bare.contains("notequal")
        || bare.ends_with("ne") && matches!(bare, "ne" | "strne" | "intne")
        || compacted.starts_with("refute")
        || compacted.starts_with("wont");
    let bare = bare.strip_prefix("not").unwrap_or(bare);
    let has = |words: &[&str]| words.iter().any(|word| bare.contains(word));
    let is = |words: &[&str]| words.contains(&bare);
    let strength = if has(&["close", "approx", "almost", "near", "delta", "within", "contain", "include"])
        || has(&["match", "regex", "like", "greater", "less", "above", "below", "between"])
        || has(&["starts", "ends", "throw", "raise", "panic", "called", "received", "subset", "inrange"])
        || is(&["gt", "ge", "lt", "le", "gte", "lte", "in", "error", "fail", "failure", "err", "any_of"])
    {
        if has(&["calledwith", "snapshot", "matchobject", "receivedwith"]) {
            AssertionStrength::Exact
        } else {
            AssertionStrength::Partial
        }
    } else if has(&[
        "defined", "exist", "instance", "type", "present", "anything", "noerror", "nothing", "some",
    ]) || is(&[
        "truthy",
        "a",
        "an",
        "kindof",
        "ok",
        "any",
        "object",
        "array",
        "string",
        "number",
        "doesnotthrow",
    ]) {
        AssertionStrength::Exists
    } else if has(&["equal", "same", "identical", "snapshot", "deep", "exactly"])
        || bare.starts_with("eq")
        || bare.ends_with("eq")
        || is(&[
            "", "be", "tobe", "null", "nil", "none", "empty", "zero", "false", "is", "ne", "strne", "falsy",
        ]) && is_matcher_name(&compacted)
        || has(&["json", "havetext", "havelength", "length", "size", "count"])
    {
        AssertionStrength::Exact
    } else if is(&["true", "that"]) {
        AssertionStrength::Partial
    } else {
        return None;
    };
    Some((strength, negated))
}

/// Returns true unless the name belongs to the whole family: `expect`, `assert`, `should`.
fn is_matcher_name(name: &str) -> bool {
    !matches!(
        name,
        "assert"
            | "expect"
            | "should"
            | "require"
            | "check"
            | "must"
            | "to"
            | "has"
            | "verify"
            | "assertthat"
    )
}

/// Returns true if one of the names of a call chain makes the call an assertion. `is_go`,
/// `is_script` and `is_rust` select the language whose short names count.
pub(super) fn is_assertion(names: &[&str], is_go: bool, is_script: bool, is_rust: bool) -> bool {
    let Some(first) = names.first() else { return false };
    let last = names.last().unwrap_or(first);
    if is_go && names.len() == 2 && matches!(*first, "t" | "b" | "f" | "tb") {
        return matches!(*last, "Error" | "Errorf" | "Fatal" | "Fatalf" | "Fail" | "FailNow");
    }
    if matches!(*first, "require" | "suite" | "s" | "r" | "is") && names.len() > 1 && is_go {
        return true;
    }
    if is_script && names.len() == 2 && matches!(*first, "t") && matcher_strength(last).is_some() {
        return true;
    }
    let short = ["strictEqual", "deepEqual", "deepStrictEqual", "equal", "notEqual", "ok"];
    if is_script && names.len() == 1 && short.contains(first) {
        return true;
    }
    let certain = names.iter().any(|name| {
        let lower = name.to_ascii_lowercase();
        let expects =
            !is_rust && (lower == "expect" || name.starts_with("EXPECT_") || lower.starts_with("expect_"));
        expects
            || (lower.starts_with("assert") && lower != "asserts" && lower != "assertion")
            || [
                "xctassert",
                "prop_assert",
                "debug_assert",
                "ck_assert",
                "test_assert",
                "cu_assert",
                "refute_",
            ]
            .iter()
            .any(|beginning| lower.starts_with(beginning))
            || ["must_", "wont_", "shouldbe", "shouldnot", "shouldequal"]
                .iter()
                .any(|it| lower.starts_with(it))
            || matches!(*name, "refute" | "should" | "must" | "REQUIRE" | "CHECK" | "BOOST_CHECK" | "assertk")
            || ["REQUIRE_", "CHECK_", "BOOST_CHECK_", "BOOST_REQUIRE", "munit_assert", "g_assert"]
                .iter()
                .any(|beginning| name.starts_with(beginning))
    });
    let raises = ["raises", "warns"].contains(last) && matches!(*first, "pytest" | "self");
    let verifies = *first == "verify" && names.len() > 1;
    let fails =
        *last == "fail" && names.len() <= 2 && matches!(*first, "fail" | "self" | "pytest" | "assert" | "t");
    certain || raises || verifies || fails
}
