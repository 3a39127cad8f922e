//! `jm index`, `jm search`, `jm symbols`, `jm refs`: what the index knows, up to date whenever it
//! is asked.

use serde_json::{Value, json};

use crate::support::{House, Ran};

fn object(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|error| panic!("{error}\n{}\n{}", ran.stdout, ran.stderr))
}

fn shop() -> House {
    let house = House::new();
    house.write(
        "src/shop.py",
        "class Shop:\n    \"\"\"Sells.\"\"\"\n    def open_door(self):\n        return ring_bell()\n",
    );
    house.write("src/bell.py", "def ring_bell():\n    # the customer waits for an answer\n    return 1\n");
    house.write("docs/guide.md", "# Guide\n\nHow the customer rings.\n");
    house.write("build/out.py", "def ring_bell():\n    pass\n");
    house.write(".gitignore", "build/\n");
    house
}

#[test]
fn a_question_finds_the_file_that_answers_it() {
    let house = shop();
    let ran = house.jm(&["search", "which customer waits", "--explain"]).run().expect(0);
    assert!(ran.stdout.starts_with("src/bell.py"), "{}", ran.stdout);
    // Each passage with the lines that have the most of the question.
    ran.prints(&["1-3  ring_bell", "         2  # the customer waits for an answer", "text"]);
    let one = object(&house.jm(&["search", "customer", "--limit", "1", "--json"]).run().expect(0));
    assert_eq!((&one["more"], &one["partial"]), (&json!(true), &json!(false)), "{one}");
    assert_eq!(
        one["files"][0]["passages"][0]["best"],
        json!([{"line": 2, "text": "# the customer waits for an answer"}])
    );
    let found = object(&house.jm(&["search", "customer", "--kind", "doc", "--json"]).run().expect(0));
    let paths: Vec<&Value> = found["sections"].as_array().unwrap().iter().map(|one| &one["path"]).collect();
    assert_eq!(paths, [&json!("docs/guide.md")]);
    house.jm(&["search", "zebra"]).run().expect(1).says(&["nothing was found"]);
    house.jm(&["search", "  "]).run().expect(2).says(&["the query is empty"]);
    house.jm(&["search", "..."]).run().expect(2).says(&["no word that can be looked for", "--kind text"]);
    house.jm(&["search", "customer", "--limit", "0"]).run().expect(2).says(&["1 or more"]);
    let piped = house.jm(&["search", "-", "--limit", "1"]).input("customer waits\n").run().expect(0);
    assert!(piped.stdout.starts_with("src/bell.py"), "{}", piped.stdout);
}

#[test]
fn names_are_found_where_they_are_defined_and_used() {
    let house = shop();
    let found = object(&house.jm(&["search", "openDoor", "--kind", "symbol", "--json"]).run().expect(0));
    assert_eq!(found["definitions"][0]["name"], json!("Shop.open_door"), "{found}");
    let refs = object(&house.jm(&["refs", "ring_bell", "--json"]).run().expect(0));
    // What is ignored isn't there.
    assert_eq!(
        refs["definitions"],
        json!([{"path": "src/bell.py", "line": 1, "kind": "function", "scope": "", "text": "def ring_bell():"}])
    );
    assert_eq!(
        refs["uses"],
        json!([{"path": "src/shop.py", "line": 4, "inside": "Shop.open_door", "text": "return ring_bell()"}])
    );
    assert_eq!((&refs["more"], &refs["left_out"]), (&json!(false), &json!(0)));
    let ran = house.jm(&["refs", "ring_bell"]).run().expect(0);
    ran.prints(&[
        "src/bell.py:1  function  def ring_bell():",
        "src/shop.py:4  Shop.open_door  return ring_bell()",
    ]);
    house.jm(&["refs", "no_such_name"]).run().expect(1).says(&["neither defined nor used"]);
    let symbols = house.jm(&["symbols", "src/shop.py"]).run().expect(0);
    symbols.prints(&["class", "method", "def open_door(self)"]);
    house.jm(&["symbols", "build/out.py"]).run().expect(2).says(&["is not in the index", ".gitignore"]);
    house.jm(&["symbols", "src/shpo.py"]).run().expect(2).says(&["did you mean src/shop.py?"]);
    house.jm(&["refs", "src/shop.py"]).run().expect(1).says(&["it is a file", "jm symbols"]);
    house.write("blob.py", "\0\u{1}\0");
    house.jm(&["symbols", "blob.py"]).run().expect(1).says(&["blob.py defines nothing: it is binary"]);
}

#[test]
fn a_name_is_found_in_the_type_module_or_package_that_is_named() {
    let house = shop();
    house.write(
        "src/till.py",
        "class Till:\n    def open_door(self):\n        pass\n\ndef ring_bell():\n    pass\n",
    );
    let shop = "src/shop.py:3  method in Shop  def open_door(self):";
    let till = "src/till.py:2  method in Till  def open_door(self):";
    for (asked, found, others) in [
        ("open_door", vec![shop, till], vec![]),
        ("Shop.open_door", vec![shop], vec![till]),
        ("Till::open_door()", vec![till], vec![shop]),
        ("src.shop.Shop.open_door", vec![shop], vec![till]),
        ("shop.open_door", vec![shop], vec![till]),
        ("bell.ring_bell", vec!["src/bell.py:1  function"], vec!["src/till.py:5"]),
        // The package's name is nowhere in the tree.
        ("corner_store.till.ring_bell", vec!["src/till.py:5  function"], vec!["src/bell.py:1"]),
    ] {
        let ran = house.jm(&["refs", asked]).run().expect(0);
        ran.prints(&found);
        assert!(others.iter().all(|other| !ran.stdout.contains(other)), "{asked}: {}", ran.stdout);
    }
    let ran = house.jm(&["refs", "Cellar.open_door"]).run().expect(0);
    ran.prints(&[shop, till]);
    ran.says(&["no definition lies in what stands before the name in Cellar.open_door"]);
}

#[test]
fn lines_are_found_by_a_pattern() {
    let house = shop();
    let ran = house.jm(&["search", "RING_\\w+\\(", "--kind", "text", "-i"]).run().expect(0);
    assert_eq!(ran.stdout, "src/bell.py:1: def ring_bell():\nsrc/shop.py:4:         return ring_bell()\n");
    house.jm(&["search", "ring_(", "--kind", "text"]).run().expect(2).says(&["no regular expression"]);
    house.jm(&["search", "zebra", "--kind", "text"]).run().expect(1).says(&["nothing was found"]);
    // Other encodings are searched as they are read: with their first line, behind a byte order
    // mark.
    let wide: Vec<u8> = "\u{feff}zebra = 1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(house.project().join("wide.py"), wide).unwrap();
    house.write("marked.py", "\u{feff}zebra = 2\n");
    let ran = house.jm(&["search", "^zebra = ", "--kind", "text"]).run().expect(0);
    ran.prints(&["marked.py:1: zebra = 2", "wide.py:1: zebra = 1"]);
    // No line follows the last line break, and a long line is cut between two letters.
    house.write("lines.txt", "one\n\ntwo\n");
    house.write("long.txt", format!("x{}\n", "é".repeat(300)));
    let ran = house.jm(&["search", "^$", "--kind", "text"]).run().expect(0);
    assert!(ran.stdout.contains("lines.txt:2:") && !ran.stdout.contains("lines.txt:4:"), "{}", ran.stdout);
    let ran = house.jm(&["search", "xéé", "--kind", "text"]).run().expect(0);
    assert_eq!(ran.stdout, format!("long.txt:1: x{}\n", "é".repeat(199)));
    house.write("huge.txt", "zebra line\n".repeat(400_000));
    let ran = house.jm(&["search", "zebra line", "--kind", "text"]).run().expect(1);
    ran.says(&["note: files of more than 4 MiB, which aren't searched: 1"]);
}

#[test]
fn what_changed_is_seen_by_the_next_question() {
    let house = shop();
    house.jm(&["index"]).run().expect(0).prints(&["4 files"]);
    house.write("src/bell.py", "def strike_gong():\n    return 2\n");
    std::fs::remove_file(house.project().join("src/shop.py")).unwrap();
    house.jm(&["refs", "strike_gong"]).run().expect(0).prints(&["src/bell.py:1"]);
    house.jm(&["refs", "ring_bell"]).run().expect(1);
    let stats = object(&house.jm(&["index", "--rebuild", "--json"]).run().expect(0));
    assert_eq!((&stats["files"], &stats["read"]), (&json!(3), &json!(3)), "{stats}");
    // Nothing of it lies in the project.
    assert!(
        !house.tree().keys().any(|path| path.to_string_lossy().contains("segment")),
        "{:?}",
        house.tree()
    );
}

#[test]
fn a_damaged_index_is_said_and_made_anew() {
    let house = shop();
    let stats = object(&house.jm(&["index", "--json"]).run().expect(0));
    let manifest = std::path::Path::new(stats["directory"].as_str().unwrap()).join("manifest");
    std::fs::write(&manifest, "nonsense").unwrap();
    let ran = house.jm(&["refs", "ring_bell"]).run().expect(0);
    ran.says(&["is damaged", "made anew"]);
    ran.prints(&["src/bell.py:1"]);
}

#[test]
fn files_are_followed_until_somebody_says_so() {
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let house = shop();
        let running = house.jm(&["index", "--watch", "--json"]).start();
        running.line_with("\"refreshed\"");
        house.write("src/bell.py", "def ring_loudly():\n    return 2\n");
        let line = running.line_with("\"updated\"");
        let said: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&said["paths"], &said["read"]), (&json!(["src/bell.py"]), &json!(1)), "{line}");
        running.signal(signal);
        let ran = running.wait().expect(0);
        ran.prints(&["{\"event\":\"stopped\"}"]);
        house.jm(&["search", "ring_loudly", "--kind", "symbol"]).run().expect(0).prints(&["src/bell.py:1"]);
    }
}

#[test]
fn nobody_has_to_read_what_is_told() {
    let house = shop();
    // `jm search zebra 2>&1 | true`.
    let (theirs, ours) = std::io::pipe().unwrap();
    drop(theirs);
    let mut command = house.jm(&["search", "zebra"]).command();
    let status =
        command.stdin(std::process::Stdio::null()).stdout(ours.try_clone().unwrap()).stderr(ours).status();
    assert_eq!(status.unwrap().code(), Some(1));
}
