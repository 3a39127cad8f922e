//! What a change may matter for: names are followed through files that only hand them on, and what is gone is needed still.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{options, put};
use journeyman_index::graph::{Gone, Graph};
use journeyman_index::{Project, Snapshot};

struct Tree {
    kept: tempfile::TempDir,
    snapshot: Arc<Snapshot>,
    graph: Arc<Graph>,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let kept = tempfile::tempdir().unwrap();
        files.iter().for_each(|(path, text)| put(&kept.path().join("tree"), path, text));
        let project = Project::open(&kept.path().join("tree"), &kept.path().join("index"), 2).unwrap();
        project.refresh(options()).unwrap();
        let snapshot = project.index().snapshot();
        let graph = project.graph(&snapshot);
        Self { kept, snapshot, graph }
    }

    /// What a change of a file affects, by path.
    fn affected(&self, path: &str) -> Vec<&str> {
        let file = self.graph.find(path).unwrap();
        let reach = self.graph.impact(&self.snapshot, &[file], u32::MAX);
        let mut paths: Vec<&str> = reach.files.iter().map(|found| self.graph.path(found.file)).collect();
        paths.sort_unstable();
        paths
    }

    fn with_gone(&self, gone: &[Gone]) -> Graph {
        let root = self.kept.path().join("tree");
        self.graph
            .with_gone(&self.snapshot, gone, &|path| std::fs::read_to_string(root.join(Path::new(path))).ok())
    }
}

#[test]
fn a_package_hands_on_what_its_parts_define() {
    let tree = Tree::new(&[
        (
            "shop/__init__.py",
            "from .till import Till as Till, count_coins\nfrom .door import Door as Gate\nfrom .door import knock\n\
             from .lamp import *\n",
        ),
        (
            "shop/till.py",
            "class Till:\n    def open(self):\n        pass\n\n\ndef count_coins():\n    pass\n",
        ),
        ("shop/door.py", "class Door:\n    pass\n\n\ndef knock():\n    pass\n"),
        ("shop/lamp.py", "def shine():\n    pass\n"),
        ("outer.py", "from shop import *\n"),
        ("app/pay.py", "from shop import Till\n\n\ndef pay():\n    Till().open()\n"),
        ("app/enter.py", "from shop import knock\n\n\ndef enter():\n    knock()\n"),
        ("app/gate.py", "from shop import Gate\n\n\ndef close():\n    Gate()\n"),
        ("app/light.py", "from outer import shine\n\nshine()\n"),
        ("app/listed.py", "from shop import count_coins\n"),
        ("app/main.py", "from app.enter import enter\n\nenter()\n"),
        ("tests/test_pay.py", "from app.pay import pay\n\n\ndef test_pay():\n    pay()\n"),
    ]);
    for (changed, affected) in [
        ("shop/till.py", &["app/listed.py", "app/pay.py", "shop/__init__.py", "tests/test_pay.py"][..]),
        ("shop/door.py", &["app/enter.py", "app/gate.py", "app/main.py", "shop/__init__.py"]),
        ("shop/lamp.py", &["app/light.py", "shop/__init__.py"]),
        ("app/enter.py", &["app/main.py"]),
        // What it hands on may be other things now.
        (
            "shop/__init__.py",
            &[
                "app/enter.py",
                "app/gate.py",
                "app/light.py",
                "app/listed.py",
                "app/main.py",
                "app/pay.py",
                "outer.py",
                "tests/test_pay.py",
            ],
        ),
    ] {
        assert_eq!(tree.affected(changed), affected, "{changed}");
    }
}

#[test]
fn a_way_leads_through_what_hands_names_on() {
    // Two things are called so: only the import says which one is meant.
    let tree = Tree::new(&[
        ("lib/a.ts", "export function total() {}\n"),
        ("lib/other.ts", "export function total() {}\nexport function tax_of() {}\n"),
        ("lib/inner.ts", "export * from './a';\nexport { tax_of } from './other';\n"),
        ("lib/index.ts", "export * from './inner';\n"),
        ("app/sum.ts", "import { total } from '../lib/index';\ntotal();\n"),
        ("app/tax.ts", "import { tax_of } from '../lib/index';\ntax_of();\n"),
    ]);
    assert_eq!(tree.affected("lib/a.ts"), ["app/sum.ts", "lib/inner.ts"]);
    let (graph, file) = (&tree.graph, |path: &str| tree.graph.find(path).unwrap());
    let reach = graph.impact(&tree.snapshot, &[file("lib/a.ts")], u32::MAX);
    let way: Vec<&str> = reach.way(file("app/sum.ts")).into_iter().map(|file| graph.path(file)).collect();
    assert_eq!(way, ["lib/a.ts", "lib/inner.ts", "lib/index.ts", "app/sum.ts"]);
    // Steps are steps, whatever is on the way.
    let near = graph.impact(&tree.snapshot, &[file("lib/a.ts")], 2);
    assert_eq!(near.files.len(), 1);
    assert!(graph.depending(&[file("lib/a.ts")], u32::MAX).files.len() > reach.files.len());
}

#[test]
fn where_names_tell_nothing_files_are_followed() {
    let tree = Tree::new(&[
        ("polyfill.ts", "globalThis.x = 1;\nexport const own_name = 2;\n"),
        ("setup.ts", "import './polyfill';\n"),
        ("main.ts", "import './setup';\n"),
        ("Button.ts", "export const size_of = 1;\nexport default function () {}\n"),
        ("parts.ts", "export { default as Button } from './Button';\n"),
        ("page.ts", "import { Button } from './parts';\nButton();\n"),
        ("base.css", "a { color: red }\n"),
        ("mid.css", "@import 'base.css';\n"),
        ("top.css", "@import 'mid.css';\n"),
    ]);
    assert_eq!(tree.affected("polyfill.ts"), ["main.ts", "setup.ts"]);
    assert_eq!(tree.affected("Button.ts"), ["page.ts", "parts.ts"]);
    assert_eq!(tree.affected("base.css"), ["mid.css", "top.css"]);
}

#[test]
fn a_crate_s_root_and_a_package_of_several_files() {
    let tree = Tree::new(&[
        ("Cargo.toml", "[package]\nname = \"m\"\n"),
        (
            "src/lib.rs",
            "mod one;\nmod two;\nmod more;\npub use one::One;\npub use two::{Two, Speak};\npub fn own() -> usize {\n    1\n}\n",
        ),
        ("src/one.rs", "pub struct One;\nimpl One {\n    pub fn new() -> Self {\n        One\n    }\n}\n"),
        ("src/two.rs", "pub struct Two;\npub trait Speak {\n    fn speak(&self) {}\n}\n"),
        // Members of a type of another file.
        ("src/more.rs", "use crate::one::One;\nimpl One {\n    pub fn more(&self) {}\n}\n"),
        ("tests/one.rs", "use m::One;\n#[test]\nfn one() {\n    One::new().more();\n}\n"),
        ("tests/two.rs", "use m::Two;\n#[test]\nfn two() {\n    let _two = Two;\n}\n"),
        ("tests/own.rs", "use m::own;\n#[test]\nfn is_one() {\n    own();\n}\n"),
        ("go.mod", "module example.org/m\n"),
        ("pkg/a.go", "package pkg\nfunc FromA() {}\n"),
        ("pkg/b.go", "package pkg\nfunc FromB() {}\n"),
        ("cmd/main.go", "package main\nimport \"example.org/m/pkg\"\nfunc main() { pkg.FromB() }\n"),
    ]);
    assert_eq!(tree.affected("src/two.rs"), ["src/lib.rs", "tests/two.rs"]);
    assert_eq!(tree.affected("src/one.rs"), ["src/lib.rs", "src/more.rs", "tests/one.rs"]);
    assert!(tree.affected("src/lib.rs").contains(&"tests/own.rs"));
    assert_eq!(tree.affected("pkg/b.go"), ["cmd/main.go"]);
    assert_eq!(tree.affected("pkg/a.go"), [""; 0]);
}

#[test]
fn who_needed_what_is_gone() {
    let tree = Tree::new(&[
        ("src/user.py", "from .lost import something_rare\n\n\ndef use():\n    something_rare()\n"),
        ("src/top.py", "from .user import use\n\nuse()\n"),
        ("src/other.py", "from .user import use\n\nuse()\nsomething_else()\n"),
        ("go.mod", "module example.org/m\n"),
        ("pkg/a.go", "package pkg\nfunc First() { computeTotal() }\n"),
        ("pkg/b.go", "package pkg\nfunc Second() { stillThere() }\nfunc stillThere() {}\n"),
    ]);
    let gone = |path: &str, text: Option<&str>| Gone { path: path.to_owned(), text: text.map(str::to_owned) };
    let graph = tree.with_gone(&[
        gone("src/lost.py", None),
        gone("pkg/total.go", Some("package pkg\nfunc computeTotal() {}\nfunc stillThere() {}\n")),
        gone("src/unneeded.py", Some("x = 1\n")),
        // It is there again.
        gone("src/top.py", None),
    ]);
    assert_eq!(graph.len(), tree.graph.len() + 3);
    let of = |path: &str| {
        let reach = graph.impact(&tree.snapshot, &[graph.find(path).unwrap()], u32::MAX);
        reach.files.iter().map(|found| graph.path(found.file).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of("src/lost.py"), ["src/user.py", "src/other.py", "src/top.py"]);
    assert_eq!(of("pkg/total.go"), ["pkg/a.go"]);
    assert_eq!(of("src/unneeded.py"), [""; 0]);
    assert_eq!(of("src/user.py"), ["src/other.py", "src/top.py"]);
    let (user, lost) = (graph.find("src/user.py").unwrap(), graph.find("src/lost.py").unwrap());
    assert_eq!(graph.edge(user, lost).unwrap().line, 1);
}
