//! Windows of a file between remarks, which begin and end anywhere.

use journeyman_edit::{AllowedDifferences, EditOp, OpContext, OpError, apply_ops};
use journeyman_protocol::RelPath;

const FILE: &str = "import os\n\n\ndef first(a):\n    check(a)\n    total = a + 1\n    return total\n\n\ndef second(a):\n    check(a)\n    \
                    total = a + 2\n    return total\n\n\ndef third(a):\n    names = load(a)\n    for name in names:\n        show(name)\n    return names\n";

fn merge(file: &str, content: &str) -> Result<String, String> {
    let path = RelPath::parse("a.py").unwrap();
    let context = OpContext { path: &path, shown: None, allow: AllowedDifferences::default() };
    let outcome =
        apply_ops(Some(file), &[EditOp::Lazy { content: content.to_owned(), says_removal: false }], &context);
    match outcome.failed.as_slice() {
        [] => Ok(outcome.content.unwrap()),
        [OpError::Refused { refusal, .. }] => Err(refusal.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_window_is_placed_by_its_own_lines() {
    let cases = [
        // From the middle of one function to the middle of the next.
        (
            "# ... existing code ...\n    total = a + 1\n    return total + 1\n\n\ndef second(a):\n    check(a)\n# ... existing code ...\n",
            FILE.replacen("return total\n", "return total + 1\n", 1),
        ),
        // Two of them, the second to the file's end.
        (
            "import os\nimport sys\n\n\ndef first(a):\n# ... rest unchanged ...\n    names = load(a)\n    for name in sorted(names):\n        show(name)\n    return names\n",
            FILE.replace("import os\n", "import os\nimport sys\n").replace("in names:", "in sorted(names):"),
        ),
        // A line goes between two that are shown.
        (
            "# ...\ndef third(a):\n    names = load(a)\n    return names\n",
            FILE.replace("    for name in names:\n        show(name)\n", ""),
        ),
    ];
    for (content, expected) in cases {
        assert_eq!(merge(FILE, content).as_deref(), Ok(expected.as_str()), "{content}");
    }
}

#[test]
fn a_window_that_fits_in_two_places_is_refused() {
    let content = "# ... existing code ...\n    check(a)\n    total = a + 3\n    return total\n# ... existing code ...\n";
    let why = merge(FILE, content).unwrap_err();
    assert!(why.contains("in the middle of something"), "{why}");
}

#[test]
fn lines_that_the_file_keeps_elsewhere_are_not_written_again() {
    let list = |names: &[&str]| names.iter().map(|name| format!("ENTRY({name})\n")).collect::<String>();
    let names = ["alpha_one", "beta_two", "gamma_three", "delta_four", "last_five"];
    let file = format!("LIST\n{}#endif\nrest();\n#endif\nDONE\n", list(&names));
    let content = format!(
        "// ... existing code ...\n#endif\n\n// ... existing code ...\n{}// ... existing code ...\n",
        list(&["alpha_one", "beta_two", "gamma_three", "new_six", "delta_four"])
    );
    let path = RelPath::parse("list.h").unwrap();
    let context = OpContext { path: &path, shown: None, allow: AllowedDifferences::default() };
    let outcome = apply_ops(Some(&file), &[EditOp::Lazy { content, says_removal: false }], &context);
    let written = outcome.content.unwrap();
    assert_eq!(written.matches("gamma_three").count(), 1, "{written}");
}
