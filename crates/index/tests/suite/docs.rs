//! Links from documentation to symbols, and back.

use crate::common;

use common::{put, refresh};
use journeyman_index::docs::{Docs, SectionLocation, SectionReason, search_sections};
use journeyman_index::query::{Query, QueryContext, Searcher};
use journeyman_index::tokens::Tokenizer;
use journeyman_index::{Index, Snapshot};

/// A shop in several languages, and its documentation.
const FILES: &[(&str, &str)] = &[
    (
        "src/shop.py",
        "\"\"\"A shop with a `Till`.\"\"\"\n\nclass Shop:\n    stock = 1\n\n    def open(self):\n        \"\"\"Opens it, see :meth:`Till.add`.\"\"\"\n\n    def close(self):\n        pass\n\n\ndef opening_hours():\n    pass\n",
    ),
    (
        "src/till.rs",
        "/// Money.\npub struct Till;\n\nimpl Till {\n    /// As `opening_hours` says.\n    pub fn add(&self) {}\n    pub fn close(&self) {}\n}\n",
    ),
    ("tests/test_shop.py", "def opening_hours():\n    pass\n"),
    (
        "docs/guide.md",
        "# Guide\n\nIntroduction.\n\n## Opening\n\nCall `shop.open()` in the morning; the `opening_hours` tell when.\n\n### Money\n\nCount coins with `Till::add`.\n\n## Closing\n\nBoth have `close`. Call `os.open` or `open` for files. Not `Nothing`.\n",
    ),
    ("docs/api.rst", "API\n===\n\n.. _x:\n\n:class:`~shop.Shop` has :attr:`Shop.stock`.\n"),
    ("docs/notes.adoc", "= Notes\n\n== Coins\n\nThe `Till` counts coins.\n"),
];

fn indexed() -> (tempfile::TempDir, Index) {
    let place = tempfile::tempdir().unwrap();
    let tree = place.path().join("tree");
    FILES.iter().for_each(|(path, text)| put(&tree, path, text));
    let index = Index::open(&place.path().join("index")).unwrap();
    refresh(&index, &tree);
    (place, index)
}

fn shown(snapshot: &Snapshot, place: &SectionLocation) -> String {
    let path = snapshot.file(place.file).unwrap().path().unwrap();
    format!("{path}:{} {}", place.first_line, place.headings.join(" > "))
}

fn naming(snapshot: &Snapshot, scope: &str, name: &str) -> Vec<String> {
    let mut docs = Docs::new(snapshot);
    let symbols = docs.symbols_named(name, scope);
    docs.sections_mentioning(name, &symbols).iter().map(|place| shown(snapshot, place)).collect()
}

#[test]
fn documentation_of_a_symbol_is_found() {
    let (_place, index) = indexed();
    let snapshot = index.snapshot();
    let cases: &[(&str, &str, &[&str])] = &[
        ("Shop", "open", &["docs/guide.md:5 Guide > Opening", "docs/guide.md:13 Guide > Closing"]),
        ("", "opening_hours", &["docs/guide.md:5 Guide > Opening", "src/till.rs:5 Till.add"]),
        ("Till", "add", &["docs/guide.md:9 Guide > Opening > Money", "src/shop.py:7 Shop.open"]),
        ("", "Till", &["docs/notes.adoc:3 Notes > Coins", "src/shop.py:1 "]),
        ("", "Shop", &["docs/api.rst:1 API"]),
        ("Shop", "stock", &["docs/api.rst:1 API"]),
        ("Shop", "close", &["docs/guide.md:13 Guide > Closing"]),
        ("Till", "close", &["docs/guide.md:13 Guide > Closing"]),
    ];
    for (scope, name, expected) in cases {
        assert_eq!(naming(&snapshot, scope, name), *expected, "{scope} {name}");
    }
}

#[test]
fn mentions_are_resolved_by_the_rule() {
    let (_place, index) = indexed();
    let snapshot = index.snapshot();
    let mut docs = Docs::new(&snapshot);
    let cases: &[(&str, &[&str])] = &[
        // Names of another project.
        ("os.open", &[]),
        ("Nothing", &[]),
        ("shop.open", &["src/shop.py:6"]),
        ("src.shop.Shop.open", &["src/shop.py:6"]),
        // Case counts.
        ("till", &[]),
        // Tests come after source.
        ("opening_hours", &["src/shop.py:13"]),
        // A field needs its type as a qualifier.
        ("stock", &[]),
        ("Shop.stock", &["src/shop.py:4"]),
        ("close", &["src/shop.py:9", "src/till.rs:7"]),
    ];
    for (mention, expected) in cases {
        let meant = docs.resolve_mention(mention).to_vec();
        let mut places: Vec<String> = meant
            .into_iter()
            .map(|id| {
                let (file, symbol) = snapshot.symbol(id).unwrap();
                format!("{}:{}", snapshot.file(file).unwrap().path().unwrap(), symbol.name_line)
            })
            .collect();
        places.sort();
        assert_eq!(places, *expected, "{mention}");
    }
}

#[test]
fn ambiguous_mentions_are_not_linked() {
    let place = tempfile::tempdir().unwrap();
    let tree = place.path().join("tree");
    for number in 0..6 {
        put(&tree, &format!("src/a{number}.py"), "def run():\n    pass\n");
    }
    put(&tree, "README.md", "# A\n\nCall `run`, or `a3.run`.\n");
    let index = Index::open(&place.path().join("index")).unwrap();
    refresh(&index, &tree);
    let snapshot = index.snapshot();
    let mut docs = Docs::new(&snapshot);
    assert!(docs.resolve_mention("run").is_empty());
    assert_eq!(docs.resolve_mention("a3.run").len(), 1);
    let all = docs.symbols_named("run", "");
    assert_eq!(all.len(), 6);
    assert_eq!(docs.sections_mentioning("run", &all).len(), 1);
}

#[test]
fn documentation_is_found_by_section() {
    let (place, index) = indexed();
    let snapshot = index.snapshot();
    let tree = place.path().join("tree");
    let ask = |text: &str| {
        let query = Query::new(text, &mut Tokenizer::new());
        let answer = Searcher::new().search(&*snapshot, None, &query, QueryContext::default(), 50);
        let read =
            |path: &journeyman_protocol::RelPath| std::fs::read_to_string(tree.join(path.to_string())).ok();
        search_sections(&snapshot, &query, &answer.files, &read, 5)
    };
    let first = |text: &str| shown(&snapshot, &ask(text).first().unwrap_or_else(|| panic!("{text}")).place);
    assert_eq!(first("how to count coins"), "docs/notes.adoc:3 Notes > Coins");
    assert_eq!(first("when to open in the morning"), "docs/guide.md:5 Guide > Opening");
    let named = ask("Till.add");
    assert_eq!(shown(&snapshot, &named[0].place), "docs/guide.md:9 Guide > Opening > Money");
    assert_eq!(named[0].why, SectionReason::Names);
    // Source isn't documentation, except for comments that mention the wanted symbol.
    assert!(ask("how to count coins").iter().all(|found| {
        snapshot.file(found.place.file).unwrap().path().unwrap().to_string().starts_with("docs/")
    }));
}

#[test]
fn links_follow_changes() {
    let (place, index) = indexed();
    let tree = place.path().join("tree");
    put(&tree, "docs/guide.md", "# Guide\n\nNothing.\n");
    put(&tree, "src/shop.py", FILES[0].1.replace("Till", "Purse"));
    refresh(&index, &tree);
    let snapshot = index.snapshot();
    assert_eq!(naming(&snapshot, "Shop", "open"), Vec::<String>::new());
    assert_eq!(naming(&snapshot, "", "Till"), ["docs/notes.adoc:3 Notes > Coins"]);
    // A name that only documentation mentions has no references in code.
    let mut used = 0;
    snapshot.visit_references("Till", |_, _| used += 1);
    assert_eq!(used, 0);
}
