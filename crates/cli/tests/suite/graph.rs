//! `jm deps`, `jm impact`, `jm map`, `jm why`: what hangs on what, and what speaks for a file.

use serde_json::{Value, json};

use crate::support::{House, Ran};

fn object(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|error| panic!("{error}\n{}\n{}", ran.stdout, ran.stderr))
}

fn paths(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap()).collect()
}

/// A shop: `top` needs `mid`, which needs `core`; a test needs `top`; two files need each other.
fn shop() -> House {
    let house = House::new();
    house.write(
        "src/core.py",
        "import os\n\n\nclass Ledger:\n    def add_entry(self, entry):\n        return os\n",
    );
    house.write("src/mid.py", "from .core import Ledger\n\n\ndef count_stock():\n    return Ledger()\n");
    house.write(
        "src/top.py",
        "from .mid import count_stock\n\n\ndef open_shop():\n    return count_stock()\n",
    );
    house.write("src/left.py", "from .right import r\n");
    house.write("src/right.py", "from .left import l\n");
    house.write(
        "tests/test_top.py",
        "from src.top import open_shop\n\n\ndef test_opens():\n    open_shop()\n",
    );
    house.write("ignored/out.py", "x = 1\n");
    house.write(".gitignore", "ignored/\n");
    house
}

#[test]
fn what_a_file_needs_and_who_needs_it() {
    let house = shop();
    let ran = house.jm(&["deps", "src/mid.py"]).run().expect(0);
    assert_eq!(ran.stdout, "src/core.py  line 1; uses Ledger\n");
    let ran = house.jm(&["deps", "src/core.py"]).run().expect(0);
    assert_eq!(ran.stdout, "packages: os\n");
    let ran = house.jm(&["deps", "./src/core.py", "--reverse", "--depth", "9"]).run().expect(0);
    let expected = "src/mid.py  line 1; uses Ledger\n  src/top.py  by src/mid.py  line 1; uses count_stock\n    \
                    tests/test_top.py  by src/top.py  line 1; uses open_shop\n";
    assert_eq!(ran.stdout, expected);
    let found =
        object(&house.jm(&["deps", "src/core.py", "--reverse", "--depth", "2", "--json"]).run().expect(0));
    assert_eq!(paths(&found["files"]), ["src/mid.py", "src/top.py"]);
    assert_eq!(found["direction"], json!("dependents"));
    let first = &found["files"][0];
    assert_eq!(
        (&first["distance"], &first["from"], &first["why"]["line"], &first["why"]["names"]),
        (&json!(1), &json!("src/core.py"), &json!(1), &json!(["Ledger"]))
    );
    house.jm(&["deps", "tests/test_top.py", "--reverse"]).run().expect(1).says(&["nothing here depends on"]);
}

#[test]
fn a_path_that_is_not_there_is_answered_with_those_that_may_be_meant() {
    let house = shop();
    house
        .jm(&["deps", "src/croe.py"])
        .run()
        .expect(2)
        .says(&["is not in the index", "did you mean src/core.py"]);
    house.jm(&["impact", "core.py"]).run().expect(2).says(&["did you mean src/core.py"]);
    house.jm(&["why", "lib/mid.py", "stock"]).run().expect(2).says(&["did you mean src/mid.py"]);
    house
        .jm(&["deps", "ignored/out.py"])
        .run()
        .expect(2)
        .says(&[".gitignore, .ignore or .journeymanignore leaves"]);
    house.jm(&["deps", "src"]).run().expect(2).says(&["src is a directory; name a file"]);
    house.jm(&["impact", "/etc/hostname"]).run().expect(2).says(&["is outside of the project"]);
    house.jm(&["symbols", "../elsewhere.py"]).run().expect(2).says(&["is not in the index"]);
    let whole = house.project().join("src/core.py");
    for tell in ["symbols", "deps", "impact"] {
        house.jm(&[tell, whole.to_str().unwrap()]).run().expect(0);
        house.jm(&[tell, ""]).run().expect(2).says(&["the path is empty"]);
    }
    house.jm(&["deps"]).run().expect(2).says(&["PATH"]);
}

#[test]
fn the_way_from_one_file_to_another() {
    let house = shop();
    let ran = house.jm(&["deps", "tests/test_top.py", "--path-to", "src/core.py"]).run().expect(0);
    let lines: Vec<&str> =
        ran.stdout.lines().map(|line| line.split("  ").find(|part| !part.is_empty()).unwrap()).collect();
    assert_eq!(lines, ["tests/test_top.py", "→ src/top.py", "→ src/mid.py", "→ src/core.py"]);
    let ran = house.jm(&["deps", "src/core.py", "--path-to", "src/mid.py", "--json"]).run().expect(0);
    let found = object(&ran);
    assert_eq!((&found["reversed"], &found["steps"][0]["from"]), (&json!(true), &json!("src/mid.py")));
    house.jm(&["deps", "src/core.py", "--path-to", "src/left.py"]).run().expect(1).says(&["neither"]);
}

#[test]
fn circles_are_shown() {
    let house = shop();
    let ran = house.jm(&["deps", "--cycles"]).run().expect(0);
    assert_eq!(ran.stdout, "2 files: src/left.py → src/right.py → src/left.py\n");
    house.jm(&["deps", "src/core.py", "--cycles"]).run().expect(1).says(&["no files import each other"]);
    let found = object(&house.jm(&["deps", "src/right.py", "--cycles", "--json"]).run().expect(0));
    assert_eq!(found["cycles"][0]["files"], json!(["src/left.py", "src/right.py"]));
}

#[test]
fn a_change_affects_files_and_the_tests_that_reach_it() {
    let house = shop();
    let ran = house.jm(&["impact", "src/core.py"]).run().expect(0);
    ran.prints(&[
        "1  src/mid.py  needs src/core.py",
        "3  tests/test_top.py  needs src/top.py → src/mid.py → src/core.py",
        "tests to run:\n  tests/test_top.py",
    ]);
    let found = object(&house.jm(&["impact", "src/core.py", "src/mid.py", "--json"]).run().expect(0));
    assert_eq!(paths(&found["affected"]), ["src/top.py", "tests/test_top.py"]);
    assert_eq!(found["tests"], json!(["tests/test_top.py"]));
    assert_eq!(found["affected"][1]["way"], json!(["src/mid.py", "src/top.py", "tests/test_top.py"]));
    let found = object(&house.jm(&["impact", "src/core.py", "--depth", "1", "--json"]).run().expect(0));
    assert_eq!(paths(&found["affected"]), ["src/mid.py"]);
    house.jm(&["impact"]).run().expect(2).says(&["<PATH>"]);
    house.jm(&["impact", "src/core.py:90"]).run().expect(2).says(&["has the lines 1 to"]);
    for lines in ["src/core.py:6", "src/core.py:4-6", "src/core.py:6:9"] {
        let found = object(&house.jm(&["impact", lines, "--json"]).run().expect(0));
        assert_eq!(found["tests"], json!(["tests/test_top.py"]), "{lines}");
        assert_eq!(found["by_files"], json!(false));
    }
    house.jm(&["impact", "src/none.py:1"]).run().expect(2).says(&["there is no such file"]);
}

#[test]
fn what_differs_from_the_last_commit_is_what_changed() {
    let house = shop();
    house.jm(&["impact", "--diff"]).run().expect(1).says(&["git can't tell"]);
    house.git(&["init", "-q"]);
    house.git(&["add", "-A"]);
    house.git(&["commit", "-qm", "all"]);
    house.jm(&["impact", "--diff"]).run().expect(1).says(&["nothing differs"]);
    house.write("src/mid.py", "from .core import Ledger\n\n\ndef count_stock():\n    return 2\n");
    house.write("src/new.py", "from .left import l\n");
    std::fs::remove_file(house.project().join("src/right.py")).unwrap();
    let ran = house.jm(&["impact", "--diff", "--json"]).run().expect(0);
    let found = object(&ran);
    assert_eq!(found["changed"], json!(["src/mid.py", "src/new.py"]));
    assert_eq!(found["gone"], json!(["src/right.py"]));
    assert_eq!(found["tests"], json!(["tests/test_top.py"]));
    // Who needed what is gone, and who needs those.
    assert_eq!(paths(&found["affected"]), ["src/left.py", "src/top.py", "tests/test_top.py"]);
    assert_eq!(found["affected"][0]["way"], json!(["src/right.py", "src/left.py"]));
    let ran = house.jm(&["impact", "--diff"]).run().expect(0);
    ran.prints(&["1  src/left.py  needs src/right.py (gone)"]);
    house.git(&["commit", "-qam", "all"]);
    std::fs::remove_file(house.project().join("tests/test_top.py")).unwrap();
    let ran = house.jm(&["impact", "--diff"]).run();
    ran.says(&["tests/test_top.py is gone; nothing here needed it"]);
    // A link in its place is no file of the project; a file that git only forgets is still one.
    house.git(&["checkout", "-q", "."]);
    let mid = house.project().join("src/mid.py");
    std::fs::remove_file(&mid).unwrap();
    std::os::unix::fs::symlink("core.py", &mid).unwrap();
    let found = object(&house.jm(&["impact", "--diff", "--json"]).run().expect(0));
    assert_eq!((&found["gone"], &found["tests"]), (&json!(["src/mid.py"]), &json!(["tests/test_top.py"])));
    house.git(&["checkout", "-q", "."]);
    house.git(&["rm", "-q", "--cached", "src/mid.py"]);
    let found = object(&house.jm(&["impact", "--diff", "--json"]).run().expect(0));
    assert_eq!((&found["changed"], &found["gone"]), (&json!(["src/mid.py", "src/new.py"]), &json!([])));
}

#[test]
fn the_map_shows_what_much_hangs_on_and_what_a_task_needs() {
    let house = shop();
    let ran = house.jm(&["map"]).run().expect(0);
    ran.prints(&["src/core.py\n  class Ledger\n    def add_entry(self, entry)\n", "def count_stock()"]);
    assert!(!ran.stdout.contains("test_opens"), "{}", ran.stdout);
    assert!(ran.stdout.starts_with("src/core.py"), "{}", ran.stdout);
    let ran = house.jm(&["map", "open_shop is slow", "--json"]).run().expect(0);
    let found = object(&ran);
    let text = found["map"].as_str().unwrap();
    assert!(text.starts_with("src/top.py\n  def open_shop()\n"), "{text}");
    assert!(found["tokens"].as_u64().unwrap() <= 2_000);
    let small = object(&house.jm(&["map", "--tokens", "30", "--json"]).run().expect(0));
    assert!(small["tokens"].as_u64().unwrap() <= 30 && small["shown"].as_u64().unwrap() >= 1, "{small}");
    house.jm(&["map", "--tokens", "1"]).run().expect(1).says(&["no file has room in 1 token"]);
    house.jm(&["map", " "]).run().expect(2).says(&["the task is empty"]);
}

#[test]
fn why_a_file_is_found_for_a_query() {
    let house = shop();
    let ran = house.jm(&["why", "src/mid.py", "ledger stock"]).run().expect(0);
    ran.prints(&["src/mid.py  1 of", "text", "of the score", "symbols", "lines 1-", "count_stock"]);
    let found = object(&house.jm(&["why", "src/mid.py", "ledger stock", "--json"]).run().expect(0));
    assert_eq!(found["rank"], json!(1));
    assert_eq!(found["signals"][0]["signal"], json!("text"));
    assert!(found["signals"][0]["raw"].as_f64().unwrap() > 0.0);
    assert!(!found["passages"].as_array().unwrap().is_empty());
    house.jm(&["why", "src/left.py", "zebra"]).run().expect(1).prints(&["isn't among the 0 files"]);
    house.jm(&["why", "src/left.py", ""]).run().expect(2).says(&["the query is empty"]);
}

#[test]
fn what_is_near_to_a_file_counts() {
    let house = shop();
    let signal = |args: &[&str]| {
        let found = object(&house.jm(args).run().expect(0));
        let signals = found["signals"].as_array().unwrap().clone();
        signals.into_iter().find(|one| one["signal"] == json!("near")).unwrap()["strength"].as_f64().unwrap()
    };
    let query = ["why", "src/core.py", "Ledger", "--json"];
    assert!(signal(&query) < 1e-9);
    assert!(signal(&[&query[..], &["--near", "src/mid.py"]].concat()) > 0.9);
    let ran = house.jm(&["search", "Ledger", "--near", "src/top.py", "--explain"]).run().expect(0);
    ran.prints(&["near "]);
    house
        .jm(&["search", "Ledger", "--near", "src/tap.py"])
        .run()
        .expect(2)
        .says(&["did you mean src/top.py"]);
}
