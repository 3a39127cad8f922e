//! The tools that answer from the index.

use crate::bench;

use std::process::Command;
use std::sync::Arc;

use bench::Bench;
use journeyman_git::Git;
use journeyman_policy::secrets::{Redactor, SECRET_MASK};
use journeyman_tools::SharedIndex;
use serde_json::json;

const SHOP: &[u8] = b"/// Sells things.\npub struct Shop {\n    open: bool,\n}\n\nimpl Shop {\n    /// Opens the doors.\n    pub fn open_doors(&mut self) {\n        self.open = true;\n    }\n}\n";
const MAIN: &[u8] =
    b"mod shop;\n\nfn main() {\n    let mut shop = shop::Shop::default();\n    shop.open_doors();\n}\n";

/// From parts, so that no scanner takes this file for a leak.
fn token() -> String {
    format!("ghp_{}", "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5")
}

fn shop() -> Bench {
    Bench::new(&[
        ("src/shop.rs", SHOP),
        ("src/main.rs", MAIN),
        ("docs/retry.md", b"# Retries\n\nA request is retried three times.\n"),
        ("image.bin", b"\0\x01"),
    ])
}

#[test]
fn code_is_ranked_with_its_lines() {
    let bench = shop();
    let said = bench.say("search_code", json!({"query": "where are the doors opened"}));
    assert!(said.starts_with("src/shop.rs  ("), "{said}");
    assert!(said.contains("\n8\t    pub fn open_doors(&mut self) {\n"), "{said}");
    let said = bench.say("search_code", json!({"query": "Shop", "limit": "1"}));
    assert!(said.starts_with("defined: src/shop.rs:2 struct Shop"), "{said}");
    let said = bench.say("search_code", json!({"query": "open doors", "path": "docs"}));
    assert_eq!(said, "Nothing was found among 4 files.\n");
    assert!(
        bench.say("search_code", json!({"query": "retried", "path": "./docs/"})).starts_with("docs/retry.md")
    );
    for (input, expected) in [
        (json!({"query": "  "}), "`query` has no word that can be looked for"),
        (json!({"query": "x", "path": "none"}), "`none` doesn't exist"),
        (json!({"query": "x", "path": "../x"}), "path: `../x` has a `..` component"),
        (json!({}), "`query` is missing"),
    ] {
        let said = bench.say("search_code", input);
        assert!(said.starts_with("error: ") && said.contains(expected), "{said}");
    }
}

#[test]
fn symbols_are_told_by_file_and_by_name() {
    let bench = shop();
    let said = bench.say("get_symbols", json!({"path": "src/shop.rs"}));
    assert!(said.contains("2-4 struct pub struct Shop"), "{said}");
    assert!(said.contains("8-10   method pub fn open_doors(&mut self)"), "{said}");
    let said = bench.say("get_symbols", json!({"name": "Shop.opn_doors"}));
    assert!(said.starts_with("src/shop.rs:8 method Shop.open_doors (to 10; one letter off)"), "{said}");
    let said = bench.say("get_symbols", json!({"name": "main", "path": "docs"}));
    assert!(said.starts_with("Nothing is defined with a name like `main`"), "{said}");
    for (input, expected) in [
        (json!({}), "give `path`, a file, or `name`"),
        (json!({"path": "src"}), "this is a directory"),
        (json!({"path": "src/shp.rs"}), "did you mean `src/shop.rs`?"),
    ] {
        let said = bench.say("get_symbols", input);
        assert!(said.starts_with("error: ") && said.contains(expected), "{said}");
    }
    let said = bench.say("get_symbols", json!({"path": "image.bin"}));
    assert_eq!(said, "image.bin defines nothing: it is binary.\n");
}

#[test]
fn references_come_with_their_lines() {
    let bench = shop();
    let said = bench.say("find_references", json!({"symbol": "Shop::open_doors()"}));
    assert!(said.starts_with("defined: src/shop.rs:8 method Shop.open_doors\n"), "{said}");
    assert!(said.contains("src/main.rs\n5\tshop.open_doors();  [in main]\n"), "{said}");
    let said = bench.say("find_references", json!({"symbol": "no_such"}));
    assert!(said.starts_with("`no_such` is neither defined nor used here."), "{said}");
    let said = bench.say("find_references", json!({"symbol": "where is it"}));
    assert!(said.starts_with("error: `symbol` must be one name"), "{said}");
}

#[test]
fn answers_are_bounded() {
    let uses: String = (0..3_000).map(|nth| format!("fn f{nth}() {{ target_name({nth}); }}\n")).collect();
    let bench = Bench::new(&[("a.rs", uses.as_bytes()), ("b.rs", uses.as_bytes())]);
    for (tool, input) in [
        ("find_references", json!({"symbol": "target_name", "limit": u64::MAX})),
        ("get_symbols", json!({"path": "a.rs"})),
        ("get_symbols", json!({"name": "f10"})),
        ("search_code", json!({"query": "target_name", "limit": u64::MAX})),
    ] {
        let said = bench.say(tool, input.clone());
        assert!(said.len() < 12_500 && said.len() > 100, "{tool} {input}: {}", said.len());
    }
    let said = bench.say("find_references", json!({"symbol": "target_name", "limit": 3}));
    assert!(said.contains("[3 of 6000 uses; give path or a higher limit for others]"), "{said}");
}

#[test]
fn what_was_just_written_is_found() {
    let bench = shop();
    bench.say("search_code", json!({"query": "doors"}));
    bench.say("write_file", json!({"path": "src/till.rs", "content": "pub fn count_coins() {}\n"}));
    bench.context.index.note_changed([&journeyman_protocol::RelPath::parse("src/till.rs").unwrap()]);
    let said = bench.say("get_symbols", json!({"name": "count_coins"}));
    assert!(said.starts_with("src/till.rs:1 function count_coins"), "{said}");
}

/// Enough files that the index is asked.
fn many() -> Bench {
    let bench = Bench::new(&[
        (".gitignore", b"ignored\n"),
        (".journeymanignore", b"unindexed\n"),
        ("ignored/x.rs", b"the needle\n"),
        ("unindexed/x.rs", b"the needle\n"),
        ("bin", b"the\0needle"),
        ("latin", b"gr\xfcner needle\n"),
        ("wide", b"\xff\xfen\0e\0e\0d\0l\0e\0"),
        ("upper.rs", b"The NEEDLE\n"),
        ("three", b"needle three(\n"),
        ("long", ("x".repeat(20_000) + "needle").as_bytes()),
    ]);
    for nth in 0..400 {
        std::fs::write(bench.root.join(format!("f{nth}.rs")), format!("fn hay_{nth}() {{}}\n")).unwrap();
    }
    bench
}

#[test]
fn text_is_found_by_the_index_as_by_a_scan() {
    let bench = many();
    let mut scanned = many().context;
    // Without an index every file is read.
    scanned.workspace = Arc::clone(&bench.context.workspace);
    let blocked = Bench::new(&[]);
    std::fs::create_dir_all(blocked.context.workspace.state_dir()).unwrap();
    std::fs::write(blocked.context.workspace.state_dir().join("index"), "in the way").unwrap();
    scanned.index = Arc::new(SharedIndex::new(Arc::clone(&blocked.context.workspace), Arc::default(), None));
    assert!(scanned.index.snapshot(&scanned.cancel).is_err());
    for input in [
        json!({"pattern": "needle"}),
        json!({"pattern": "NEEDLE", "ignore_case": true}),
        json!({"pattern": "grüner"}),
        json!({"pattern": "hay_39\\d"}),
        json!({"pattern": "three("}),
        json!({"pattern": "^fn hay_7\\b|NEEDLE$", "context": 1}),
        json!({"pattern": "needle", "glob": "*.rs"}),
        json!({"pattern": "needle", "path": "ignored/x.rs"}),
        json!({"pattern": "needle", "path": "unindexed"}),
        json!({"pattern": "\\{\\}\\nfn"}),
        json!({"pattern": "nowhere at all"}),
        json!({"pattern": ".", "limit": 3}),
    ] {
        let tool = bench.tools.get("search_text").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let scan = bench::text(&runtime.block_on(tool.call(&scanned, input.clone())).unwrap());
        assert_eq!(bench.say("search_text", input.clone()), scan, "{input}");
    }
    // While another process writes the index, any file may have what it doesn't know of.
    let lock = bench.context.workspace.state_dir().join("index/lock");
    let lock = std::fs::File::options().write(true).open(lock).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    std::fs::write(bench.root.join("f5.rs"), "fn fresh_thing() {}\n").unwrap();
    bench.context.index.note_unknown_changes();
    assert!(bench.say("search_text", json!({"pattern": "fresh_thing"})).starts_with("f5.rs\n"));
    drop(lock);
    // Files that can't have it aren't read: what changed behind the index's back isn't seen for a
    // moment.
    std::fs::remove_dir_all(bench.root.join("unindexed")).unwrap();
    assert!(bench.say("search_text", json!({"pattern": "needle"})).contains("three\n1:needle three("));
}

#[test]
fn secrets_are_neither_indexed_nor_shown() {
    let token = token();
    let config =
        format!("// doors\nlet key = \"{token}\"; // doors\nlet own = \"hunter2hunter2\"; // doors\n");
    let mut bench = Bench::new(&[("src/config.rs", config.as_bytes()), ("src/shop.rs", SHOP)]);
    let redactor = Arc::new(Redactor::new(["hunter2hunter2".to_owned()]));
    let index = SharedIndex::new(Arc::clone(&bench.context.workspace), redactor, None);
    bench.context.index = Arc::new(index);
    let said = bench.say("search_code", json!({"query": "doors"}));
    assert!(said.contains(SECRET_MASK) && !said.contains("ghp_") && !said.contains("hunter2"), "{said}");
    for secret in [token.as_str(), "hunter2hunter2"] {
        let said = bench.say("search_code", json!({"query": secret, "path": "src"}));
        assert!(!said.contains("config.rs"), "{said}");
    }
    let snapshot = bench.context.index.snapshot(&bench.context.cancel).unwrap().snapshot;
    let mut kept = 0;
    for word in [token.to_lowercase().as_str(), "hunter2hunter2", "hunter2"] {
        snapshot.visit_chunks_with_term(word, |_, _| kept += 1);
    }
    assert_eq!(kept, 0);
    for entry in std::fs::read_dir(bench.context.workspace.state_dir().join("index")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let has =
            |text: &str| bytes.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text.as_bytes()));
        assert!(!has(&token) && !has("hunter2hunter2"));
    }
}

#[test]
fn what_a_rule_keeps_from_being_read_is_not_shown() {
    let mut bench = shop();
    bench.context.may_show = Arc::new(|path| path.to_string() != "src/shop.rs");
    for (tool, input) in [
        ("search_code", json!({"query": "open_doors"})),
        ("get_symbols", json!({"name": "open_doors"})),
        ("find_references", json!({"symbol": "open_doors"})),
        ("search_text", json!({"pattern": "open_doors"})),
    ] {
        let said = bench.say(tool, input);
        assert!(!said.contains("shop.rs") && !said.contains("&mut self"), "{tool}: {said}");
        assert!(said.contains("a rule keeps them from being read]"), "{tool}: {said}");
    }
}

fn git(bench: &Bench, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"])
        .args(args)
        .current_dir(&bench.root)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_DATE", "2026-01-31T12:00:00Z")
        .env("GIT_COMMITTER_DATE", "2026-01-31T12:00:00Z")
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn what_is_not_committed_is_told_as_a_diff() {
    let mut bench = shop();
    let with_git = Git::new(&bench.root, Arc::clone(&bench.context.sandbox));
    let index = SharedIndex::new(Arc::clone(&bench.context.workspace), Arc::default(), Some(with_git));
    bench.context.index = Arc::new(index);
    git(&bench, &["init", "-q"]);
    let uncommitted = |path: &str| bench.say("git_history", json!({"uncommitted": true, "path": path}));
    let before = uncommitted("docs");
    assert!(
        before.contains("+++ b/docs/retry.md") && !before.contains("src/"),
        "nothing is committed: {before}"
    );
    git(&bench, &["add", "."]);
    git(&bench, &["commit", "-qm", "Open a shop"]);
    assert_eq!(uncommitted("."), "Nothing is uncommitted there.\n");
    std::fs::write(bench.root.join("docs/retry.md"), format!("# Retries\n\nKey {}.\n", token())).unwrap();
    std::fs::write(bench.root.join("new.bin"), b"\0\x01").unwrap();
    std::fs::write(bench.root.join("new.txt"), "new\n").unwrap();
    let said = uncommitted(".");
    let masked = format!("+Key {SECRET_MASK}.");
    for part in ["--- a/docs/retry.md", masked.as_str(), "new.bin: changed, binary", "--- /dev/null", "+new"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = uncommitted("new.txt");
    assert!(said.contains("+new") && !said.contains("retry"), "{said}");
    std::fs::write(bench.root.join("docs/retry.md"), "line\n".repeat(9_000)).unwrap();
    let said = uncommitted(".");
    assert!(said.len() < 13_000, "{}", said.len());
    assert!(said.contains("[there is more; 2 more files are changed; give a path]"), "{said}");
}

#[test]
fn the_index_and_git_show_no_secrets_of_settings() {
    let mut bench = Bench::new(&[("deploy/.env.production", b"DB_HOST=db\nDB_PASSWORD=letmein\n")]);
    let with_git = Git::new(&bench.root, Arc::clone(&bench.context.sandbox));
    let index = SharedIndex::new(Arc::clone(&bench.context.workspace), Arc::default(), Some(with_git));
    bench.context.index = Arc::new(index);
    git(&bench, &["init", "-q"]);
    git(&bench, &["add", "."]);
    git(&bench, &["commit", "-qm", "Deploy"]);
    let blamed = bench.say("git_blame", json!({"path": "deploy/.env.production"}));
    let path = bench.root.join("deploy/.env.production");
    std::fs::write(path, "DB_HOST=db\nDB_PASSWORD=letmeout\nPORT=1\n").unwrap();
    let changed = bench.say("git_history", json!({"uncommitted": true}));
    let found = bench.say("search_code", json!({"query": "DB_PASSWORD"}));
    for said in [blamed, changed, found] {
        assert!(said.contains("DB_PASSWORD=«") || !said.contains("DB_PASSWORD="), "{said}");
        assert!(said.contains("DB_") && !said.contains("letme"), "{said}");
    }
}

#[test]
fn commits_and_lines_are_told() {
    let mut bench = shop();
    let said = bench.say("git_history", json!({}));
    assert_eq!(said, "error: git can't tell: this session has no git");
    let with_git = Git::new(&bench.root, Arc::clone(&bench.context.sandbox));
    let index = SharedIndex::new(Arc::clone(&bench.context.workspace), Arc::default(), Some(with_git));
    bench.context.index = Arc::new(index);
    assert!(bench.say("git_history", json!({})).contains("is in no git repository"));
    git(&bench, &["init", "-q"]);
    assert_eq!(bench.say("git_history", json!({})), "There are no commits yet.");
    git(&bench, &["add", "."]);
    git(&bench, &["commit", "-qm", &format!("Open a shop\n\nIts key is {}.", token())]);
    std::fs::write(bench.root.join("docs/retry.md"), "# Retries\n\nNever.\n").unwrap();
    git(&bench, &["commit", "-qam", "Requests are never retried"]);
    let said = bench.say("git_history", json!({}));
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].ends_with(" 2026-01-31 Ann: Requests are never retried"), "{said}");
    assert_eq!(lines[1], "  docs/retry.md");
    assert!(lines[2].ends_with("Ann: Open a shop"), "{said}");
    let said = bench.say("git_history", json!({"path": "src"}));
    assert!(said.contains("Open a shop") && !said.contains("never retried"), "{said}");
    let said = bench.say("git_history", json!({"query": "shop opening"}));
    assert!(said.contains("Open a shop") && !said.contains("never retried"), "{said}");
    let said = bench.say("git_history", json!({"query": lines[2].split(' ').next().unwrap()}));
    assert!(said.contains(&format!("Its key is {SECRET_MASK}.")), "{said}");
    let said = bench.say("git_history", json!({"query": "nonsense"}));
    assert_eq!(said, "None of the last 2 commits does.\n");

    let said = bench.say("git_blame", json!({"path": "docs/retry.md"}));
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].ends_with("Ann: Open a shop") && lines[1] == "1\t# Retries", "{said}");
    assert!(lines[3].ends_with("Ann: Requests are never retried") && lines[4] == "3\tNever.", "{said}");
    std::fs::write(bench.root.join("docs/retry.md"), "changed\n").unwrap();
    let said = bench.say("git_blame", json!({"path": "docs/retry.md", "first": 3, "last": 99}));
    assert!(said.starts_with("[note: the file was changed since") && said.contains("3\tNever."), "{said}");
    let cases = [
        (
            json!({"path": "docs/retry.md", "first": 99}),
            "(line 99 is beyond the end: docs/retry.md has 3 lines as committed)",
        ),
        (
            json!({"path": "docs/none.md"}),
            "error: git can't tell: the last commit doesn't have `docs/none.md`",
        ),
        (
            json!({"path": "docs/retry.md", "first": 3, "last": 2}),
            "error: `last` (2) comes before `first` (3)",
        ),
    ];
    for (input, expected) in cases {
        let said = bench.say("git_blame", input);
        assert!(said.starts_with(expected), "{said}");
    }
}
