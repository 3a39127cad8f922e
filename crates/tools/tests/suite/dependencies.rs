//! `get_dependencies`: what hangs on what, as the model is told.

use crate::bench;

use std::sync::Arc;

use bench::Bench;
use journeyman_protocol::RelPath;
use serde_json::json;

fn shop() -> Bench {
    Bench::new(&[
        ("src/core.py", b"import os\n\n\nclass Ledger:\n    pass\n"),
        ("src/mid.py", b"from .core import Ledger\n\n\ndef count_stock():\n    return Ledger()\n"),
        ("src/top.py", b"from .mid import count_stock\n\n\ndef open_shop():\n    return count_stock()\n"),
        ("tests/test_top.py", b"from src.top import open_shop\n\n\ndef test_opens():\n    open_shop()\n"),
    ])
}

#[test]
fn what_a_file_needs_and_what_needs_it() {
    let bench = shop();
    let told = bench.say("get_dependencies", json!({"path": "src/mid.py"}));
    assert_eq!(told, "files that src/mid.py needs: 1\nsrc/core.py  line 1; uses Ledger\n");
    let told = bench.say("get_dependencies", json!({"path": "src/core.py"}));
    assert_eq!(told, "files that src/core.py needs: 0\npackages: os\n");
    let input = json!({"path": "src/core.py", "reverse": true, "depth": 2});
    let told = bench.say("get_dependencies", input);
    assert_eq!(
        told,
        "files that need src/core.py: 2\nsrc/mid.py  line 1; uses Ledger\n\
         src/top.py (by src/mid.py)  line 1; uses count_stock\n\
         tests that reach it, the nearest first:\ntests/test_top.py\n"
    );
}

#[test]
fn tests_of_a_line_are_those_that_what_stands_there_matters_for() {
    let bench = Bench::new(&[
        ("src/till.py", b"def pay():\n    return 1\n\n\ndef show():\n    return 2\n"),
        ("tests/test_pay.py", b"from src.till import pay\n\n\ndef test_pay():\n    pay()\n"),
        ("tests/test_show.py", b"from src.till import show\n\n\ndef test_show():\n    show()\n"),
    ]);
    let told = |line: u32| {
        bench.say("get_dependencies", json!({"path": "src/till.py", "reverse": true, "line": line}))
    };
    assert!(
        told(2).ends_with("tests that reach line 2, the nearest first:\ntests/test_pay.py\n"),
        "{}",
        told(2)
    );
    assert!(
        told(6).ends_with("tests that reach line 6, the nearest first:\ntests/test_show.py\n"),
        "{}",
        told(6)
    );
    assert!(told(0).contains("tests that reach it"), "{}", told(0));
    assert!(
        told(900).contains("[src/till.py has 6 lines; tests of the whole file follow]\ntests that reach it"),
        "{}",
        told(900)
    );
}

#[test]
fn what_the_session_changed_counts_at_once() {
    let bench = shop();
    bench.say("get_dependencies", json!({"path": "src/top.py"}));
    std::fs::write(bench.root.join("src/top.py"), "from .core import Ledger\nLedger()\n").unwrap();
    bench.context.index.note_changed([&RelPath::parse("src/top.py").unwrap()]);
    let told = bench.say("get_dependencies", json!({"path": "src/top.py"}));
    assert_eq!(told, "files that src/top.py needs: 1\nsrc/core.py  line 1; uses Ledger\n");
}

#[test]
fn a_file_that_a_rule_withholds_is_counted_and_not_named() {
    let mut bench = shop();
    bench.context.may_show = Arc::new(|path| path.as_bytes() != b"src/mid.py");
    let told = bench.say("get_dependencies", json!({"path": "src/core.py", "reverse": true, "depth": 2}));
    assert!(!told.contains("mid.py") && told.contains("src/top.py"), "{told}");
    assert!(told.contains("[1 files are not shown: a rule keeps them from being read]"), "{told}");
}

#[test]
fn a_path_that_is_not_there_is_answered_with_those_that_may_be_meant() {
    let bench = shop();
    let told = bench.say("get_dependencies", json!({"path": "src/croe.py"}));
    assert!(told.contains("is not in the index") && told.contains("Did you mean src/core.py?"), "{told}");
    assert!(bench.call("get_dependencies", json!({"path": "../x"})).is_err());
}
