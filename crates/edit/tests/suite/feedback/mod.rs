//! What a model is told when an edit can't be made: word for word in `expected.md`, and what holds
//! for any.

mod any;

use std::collections::BTreeMap;

use journeyman_edit::{ApplyOptions, Edit, EditOp, EditPlan, Replace, plan_edits};
use journeyman_protocol::RelPath;

/// Set to write `expected.md` anew; the difference is what has to be looked at.
const WRITE: &str = "JM_WRITE_EXPECTED";

const SHOP: &str = "\
class Shop:
    def add(self, item, count=1):
        if count <= 0:
            raise ValueError(count)
        self.items[item] += count
        return self.items[item]

    def remove(self, item, count=1):
        if count <= 0:
            raise ValueError(count)
        self.items[item] -= count
        return self.items[item]

    def total(self):
        return sum(self.items.values()) * 100
";

fn path(name: &str) -> RelPath {
    RelPath::parse(name).unwrap()
}

fn files() -> BTreeMap<RelPath, String> {
    let texts = [
        ("src/shop.py", SHOP),
        ("src/cart.py", "def discount(total, percent):\n    return total - total * percent / 100\n"),
        ("src/tabs.go", "func f() {\n\tif x {\n\t\ty(\"a  b\")\n\t}\n}\n"),
        ("docs/how-to.md", "Use it so:\n\n```\nshop.add(1)\n```\n"),
    ];
    texts.into_iter().map(|(name, text)| (path(name), text.to_owned())).collect()
}

fn replace(search: &str, replacement: &str) -> EditOp {
    EditOp::Replace(Replace {
        search: search.to_owned(),
        replace: replacement.to_owned(),
        ..Replace::default()
    })
}

fn edit(name: &str, ops: Vec<EditOp>) -> Edit {
    Edit { path: path(name), ops, description: None }
}

/// Misses of every kind, by name.
fn misses() -> Vec<(&'static str, Vec<Edit>)> {
    let shop = |search, replacement| vec![edit("src/shop.py", vec![replace(search, replacement)])];
    vec![
        (
            "another number in a line that the edit changes",
            shop(
                "        return sum(self.items.values()) * 10\n",
                "        return sum(self.items.values())\n",
            ),
        ),
        (
            "a line that isn't there",
            shop(
                "    def total(self):\n        self.check()\n        self.log()\n        return sum(self.items.values()) * 100\n",
                "    def total(self):\n        self.check()\n        self.log()\n        return 0\n",
            ),
        ),
        (
            "a line left out",
            shop(
                "            raise ValueError(count)\n        return self.items[item]\n\n    def remove(",
                "            raise ValueError(count)\n        return 1\n\n    def remove(",
            ),
        ),
        (
            "several places",
            shop("            raise ValueError(count)\n", "            raise KeyError(item)\n"),
        ),
        ("several places, loosely", shop("  raise  ValueError( count )\n", "  raise KeyError(item)\n")),
        ("in another file", shop("    return total - total * percent / 100\n", "    return total\n")),
        ("nowhere", shop("SELECT name FROM users WHERE id = 7;\nCOMMIT;\n", "x\n")),
        (
            "applied before",
            shop("        return sum(self.items)\n", "        return sum(self.items.values()) * 100\n"),
        ),
        ("no change", shop("class Shop:", "class Shop:")),
        ("an empty search text", shop("", "x\n")),
        ("a remark for code", shop("class Shop:\n", "class Shop:\n    # ... rest unchanged ...\n")),
        (
            "blanks in a string of a changed line",
            vec![edit("src/tabs.go", vec![replace("y(\"a b\")  ", "z()")])],
        ),
        (
            "a fence in the file",
            vec![edit("docs/how-to.md", vec![replace("```\nshop.add(2)\n```\n", "```\n```\n")])],
        ),
        (
            "a file that isn't there",
            vec![edit("src/shops.py", vec![replace("    def total(self):\n", "    def sum(self):\n")])],
        ),
        (
            "a file that is there",
            vec![edit("src/shop.py", vec![EditOp::Create { content: "x\n".to_owned() }])],
        ),
        (
            "one of several",
            vec![
                edit(
                    "src/shop.py",
                    vec![
                        replace("class Shop:", "class Store:"),
                        replace(
                            "    def totals(self):\n        return 1\n",
                            "    def totals(self):\n        return 2\n",
                        ),
                        replace("* 100", "* 1000"),
                    ],
                ),
                edit("src/cart.py", vec![replace("percent / 100", "percent")]),
                edit("src/gone.py", vec![replace("x", "y")]),
            ],
        ),
    ]
}

fn planned(edits: &[Edit], partial: bool) -> EditPlan {
    plan_edits(edits, &ApplyOptions { partial, ..ApplyOptions::default() }, &files())
}

#[test]
fn what_a_model_is_told() {
    let mut told = String::from("What a model is told; `main.rs` says what it sent.\n");
    for (name, edits) in misses() {
        let plan = planned(&edits, false);
        let words = if plan.failed.is_empty() {
            let unchanged: Vec<String> = plan
                .unchanged
                .iter()
                .map(|file| format!("(unchanged) {}: {}", file.path, file.reason))
                .collect();
            unchanged.join("\n")
        } else {
            plan.feedback()
        };
        assert!(!words.is_empty(), "{name}");
        told.push_str(&format!("\n## {name}\n\n{words}\n"));
        if name == "one of several" {
            told.push_str(&format!("\n## {name}, in part\n\n{}\n", planned(&edits, true).feedback()));
        }
    }
    let expected = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/feedback/expected.md");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&expected, &told).unwrap();
    }
    let expected = std::fs::read_to_string(&expected).unwrap();
    for (old, new) in expected.split("\n## ").zip(told.split("\n## ")) {
        assert_eq!(old, new, "set {WRITE}=1 to write the file anew, and look at the difference");
    }
    assert_eq!(expected.len(), told.len());
}

#[test]
fn what_was_made_before_is_told_from_what_is_there_by_chance() {
    // (name, file, search, replacement, whether it was made before)
    let cases = [
        ("one line", "let total = sum(rows);\n", "let total = 0;\n", "let total = sum(rows);\n", true),
        ("within a line", "f(first, second, 3)\n", "first, second, 2", "first, second, 3", true),
        ("inside another word", "let n = checksum(rows);\n", "count(rows)", "sum(rows)", false),
        (
            "indented otherwise",
            "mod m {\n    fn a() {\n        begin(1);\n    }\n}\n",
            "fn a() {\n    begin(0);\n}\n",
            "fn a() {\n    begin(1);\n}\n",
            true,
        ),
        ("twice", "return None;\nx\nreturn None;\n", "return nil;\n", "return None;\n", false),
        ("too short to tell", "a = 1\nb\n", "a = 2", "a = 1", false),
        (
            "another place is meant",
            "fn a() {\n    return None;\n}\n\nfn b() {\n    let value = lookup(key, table);\n    return value;\n}\n",
            "    let value = lookup(key, tables);\n    return value;\n",
            "    return None;\n",
            false,
        ),
        // What only takes lines away shows nothing new: a search text that was misquoted looks the
        // same.
        (
            "a deletion with lines on both sides",
            "one();\nthree();\nfour();\n",
            "one();\ntwo();\nthree();\n",
            "one();\nthree();\n",
            false,
        ),
        (
            "a deletion whose line is elsewhere",
            "alpha();\nx();\nomega();\n",
            "alpha();\nomega();\n",
            "alpha();\n",
            false,
        ),
        ("a deletion at the end, gone", "alpha(1);\nx();\n", "alpha(1);\nomega();\n", "alpha(1);\n", false),
        ("a deletion of everything", "x();\n", "alpha();\nomega();\n", "", false),
    ];
    for (name, file, search, replacement, before) in cases {
        let refusal = journeyman_edit::replace(file, search, replacement, false).expect_err(name);
        assert_eq!(refusal.is_already_applied(), before, "{name}: {refusal}");
    }
}

#[test]
fn one_feedback_for_many_failures_is_bounded() {
    let gone =
        (0..200).map(|nth| edit(&format!("src/{nth}.py"), vec![replace("some text\nthat isn't there", "x")]));
    let plan = planned(&gone.collect::<Vec<Edit>>(), false);
    let words = plan.feedback();
    assert!(words.len() <= journeyman_edit::MAX_FEEDBACK_BYTES, "{}", words.len());
    assert!(words.contains("more that failed") && words.ends_with("Nothing was written."), "{words}");
}
