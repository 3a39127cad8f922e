//! The dependency graph: content, queries, and updates that equal a rebuild.

use crate::common;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use common::{options, put};
use journeyman_index::graph::{ChangedSourceFile, Direction, Graph};
use journeyman_index::{ProjectIndex, Snapshot};
use journeyman_testkit::rerun_test;

/// Set for the child process of a test: the directory of the tree and the index.
const CHILD: &str = "JM_GRAPH_TEST_CHILD";

fn open(kept: &Path) -> ProjectIndex {
    ProjectIndex::open(&kept.join("tree"), &kept.join("index"), 2).unwrap()
}

fn follow(project: &ProjectIndex) -> (Arc<Snapshot>, Arc<Graph>) {
    project.refresh(options()).unwrap();
    let snapshot = project.index().snapshot();
    let graph = project.graph(&snapshot);
    (snapshot, graph)
}

/// Renders everything that a graph says.
fn everything(graph: &Graph) -> String {
    let mut all = String::new();
    for number in 0..graph.len() as u32 {
        let node = graph.node(number).unwrap();
        writeln!(all, "{} {:?} {:?}", node.path, node.language, node.flags).unwrap();
        for edge in graph.edges(number) {
            let to = graph.path(edge.to);
            writeln!(all, "  {to} line {} part {} names {}", edge.line, edge.part, edge.names).unwrap();
        }
        for package in graph.packages(number) {
            writeln!(all, "  package {package}").unwrap();
        }
    }
    all
}

fn anew(tree: &Path, snapshot: &Snapshot) -> String {
    everything(&Graph::new(snapshot, &|path| std::fs::read_to_string(tree.join(path)).ok()))
}

fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Arc<Snapshot>, Arc<Graph>) {
    let kept = tempfile::tempdir().unwrap();
    files.iter().for_each(|(path, text)| put(&kept.path().join("tree"), path, text));
    let (snapshot, graph) = follow(&open(kept.path()));
    (kept, snapshot, graph)
}

fn paths(graph: &Graph, files: impl IntoIterator<Item = u32>) -> Vec<&str> {
    files.into_iter().map(|file| graph.path(file)).collect()
}

const NAMES: [&str; 10] = [
    "open_door",
    "ringBell",
    "Shop",
    "get",
    "parse_header",
    "HttpServer",
    "close",
    "compute_total",
    "Cart",
    "run",
];
const FILES: [&str; 6] = ["one", "two", "three", "four", "five", "six"];
const FOLDERS: [&str; 4] = ["", "src/", "src/deep/", "tests/"];
const ENDINGS: [&str; 9] = ["rs", "py", "ts", "go", "h", "c", "java", "md", "txt"];

/// Returns a text of some language that imports other files and uses their names.
fn text(ending: &str, random: &mut fastrand::Rng) -> String {
    let mut text = String::new();
    if ending == "java" {
        text += "package src.deep;\n";
    }
    if ending == "go" {
        text += "package x\n";
    }
    for _ in 0..random.usize(0..14) {
        let file = FILES[random.usize(..FILES.len())];
        let (one, other) = (NAMES[random.usize(..NAMES.len())], NAMES[random.usize(..NAMES.len())]);
        let up = ["./", "../", "./deep/"][random.usize(..3)];
        let line = match (ending, random.u8(..4)) {
            ("rs", 0) => format!("mod {file};\n"),
            ("rs", 1) => format!("use crate::{file}::{one};\n"),
            ("rs", 2) => format!("pub struct {one};\n"),
            ("rs", _) => format!("pub fn {one}() {{ {other}(); }}\n"),
            ("py", 0) => format!("from .{file} import {one}\n"),
            ("py", 1) => format!("import src.deep.{file}, requests\n"),
            ("py", _) => format!("def {one}():\n    {other}()\n"),
            ("ts", 0) => format!("import {{ {one} }} from '{up}{file}';\n"),
            ("ts", 1) => format!("import x from 'core/{file}';\n"),
            ("ts", _) => format!("export function {one}() {{ return {other}(); }}\n"),
            ("go", 0) => "import \"example.org/m/src\"\n".to_owned(),
            ("go", 1) => "import \"net/http\"\n".to_owned(),
            ("go", _) => format!("func {one}() {{ {other}() }}\n"),
            ("h" | "c", 0) => format!("#include \"{file}.h\"\n"),
            ("h" | "c", 1) => format!("#include <deep/{file}.h>\n"),
            ("h" | "c", _) => format!("int {one}(void) {{ return {other}(); }}\n"),
            ("java", 0) => format!("import src.deep.{file};\n"),
            ("java", 1) => "import src.deep.*;\n".to_owned(),
            ("java", _) => format!("class {one} {{ {other} x; }}\n"),
            ("md", _) => format!("See [it]({up}{file}.rs) and `{one}`.\n"),
            _ => format!("{one} {other}\n"),
        };
        text += &line;
    }
    text
}

/// Applies a random change to a tree.
fn change_randomly(tree: &Path, random: &mut fastrand::Rng) {
    let path = |random: &mut fastrand::Rng| {
        let folder = FOLDERS[random.usize(..FOLDERS.len())];
        let file = FILES[random.usize(..FILES.len())];
        let ending = ENDINGS[random.usize(..ENDINGS.len())];
        (format!("{folder}{file}.{ending}"), ending)
    };
    let (one, ending) = path(random);
    match random.u8(..12) {
        0..7 => put(tree, &one, text(ending, random)),
        7 => drop(std::fs::remove_file(tree.join(&one))),
        8 => {
            let (to, _) = path(random);
            if tree.join(&one).exists() {
                std::fs::create_dir_all(tree.join(&to).parent().unwrap()).unwrap();
                std::fs::rename(tree.join(&one), tree.join(&to)).unwrap();
            }
        }
        // A program without an extension, whose language its first line tells.
        9 => {
            let program = ["#!/usr/bin/env python3\n", "#!/usr/bin/env ruby\n", ""][random.usize(..3)];
            put(tree, "src/program", format!("{program}def open_door(a)\n  ringBell()\n"));
        }
        _ => {
            let settings = [
                ("package.json", "{\"name\": \"core\", \"exports\": {\"./*\": \"./src/*.ts\"}}"),
                ("src/package.json", "{\"name\": \"core\"}"),
                ("tsconfig.json", "{\"compilerOptions\": {\"paths\": {\"core/*\": [\"src/deep/*\"]}}}"),
                ("go.mod", "module example.org/m\n"),
                ("Cargo.toml", "[package]\nname = \"m\"\n"),
                ("Cargo.toml", "[package]\nname = \"m\"\n[lib]\npath = \"src/one.rs\"\n"),
            ];
            let (path, text) = settings[random.usize(..settings.len())];
            if random.u8(..3) == 0 {
                drop(std::fs::remove_file(tree.join(path)));
            } else {
                put(tree, path, text);
            }
        }
    }
}

#[test]
fn any_changes_give_the_same_as_a_rebuild() {
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let kept = tempfile::tempdir().unwrap();
        let tree = kept.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        let mut project = open(kept.path());
        let (mut edges, mut looked_again, mut files) = (0, 0, 0);
        for step in 0..20 {
            for _ in 0..random.usize(1..if step == 0 { 120 } else { 5 }) {
                change_randomly(&tree, &mut random);
            }
            let (snapshot, graph) = follow(&project);
            let (one, other) = (everything(&graph), anew(&tree, &snapshot));
            assert!(one == other, "seed {seed}, step {step}: {}", difference(&one, &other));
            edges += (0..graph.len() as u32).map(|file| graph.edges(file).len()).sum::<usize>();
            looked_again += if step == 0 { 0 } else { graph.last_update_stats().resolved };
            files += if step == 0 { 0 } else { graph.len() };
            if random.u8(..4) == 0 {
                project = open(kept.path());
            }
        }
        assert!(edges > 150, "{edges} edges");
        assert!(looked_again * 2 < files, "{looked_again} of {files} were resolved again");
    }
}

fn difference(one: &str, other: &str) -> String {
    let at = one.lines().zip(other.lines()).position(|(one, other)| one != other).unwrap_or(0);
    let around = |text: &str| text.lines().skip(at.saturating_sub(4)).take(8).collect::<Vec<_>>().join("\n");
    format!("\nfollowed:\n{}\nanew:\n{}", around(one), around(other))
}

#[test]
fn only_affected_files_are_resolved_again() {
    let kept = tempfile::tempdir().unwrap();
    let tree = kept.path().join("tree");
    for number in 0..200 {
        put(&tree, &format!("src/m{number}.py"), format!("from .m{} import f\n", number / 2));
    }
    put(&tree, "src/user.py", "from .absent import something_rare\nsomething_rare()\n");
    let project = open(kept.path());
    let (_, graph) = follow(&project);
    assert_eq!((graph.last_update_stats().changed, graph.last_update_stats().resolved), (201, 201));
    put(&tree, "src/m7.py", "from .m9 import f\n");
    let (_, graph) = follow(&project);
    assert_eq!(
        (
            graph.last_update_stats().changed,
            graph.last_update_stats().resolved,
            graph.last_update_stats().linked
        ),
        (1, 1, 1)
    );
    // Files that had looked it up find it now, and no other file is resolved again.
    put(&tree, "src/absent.py", "def something_rare():\n    pass\n");
    let (_, graph) = follow(&open(kept.path()));
    assert!(graph.last_update_stats().resolved <= 4, "{:?}", graph.last_update_stats());
    let user = graph.find_file("src/user.py").unwrap();
    assert_eq!(paths(&graph, graph.edges(user).iter().map(|edge| edge.to)), ["src/absent.py"]);
    // Nothing changed: the same graph.
    let snapshot = project.index().snapshot();
    assert!(Arc::ptr_eq(&project.graph(&snapshot), &project.graph(&snapshot)));
}

#[test]
fn settings_that_are_other_than_indexed_are_not_saved() {
    let (module, other) = ("module example.com/shop\n", "module example.com/other\n");
    let kept = tempfile::tempdir().unwrap();
    let tree = kept.path().join("tree");
    put(&tree, "go.mod", module);
    put(&tree, "main.go", "package main\n\nimport \"example.com/shop/cart\"\n");
    put(&tree, "cart/cart.go", "package cart\n");
    let project = open(kept.path());
    project.refresh(options()).unwrap();
    // Another branch is checked out when the graph is built, and this one again before the index
    // sees a change.
    put(&tree, "go.mod", other);
    drop(project.graph(&project.index().snapshot()));
    put(&tree, "go.mod", module);
    let (snapshot, graph) = follow(&project);
    assert_eq!(everything(&graph), anew(&tree, &snapshot));
    assert_eq!(graph.edges(graph.find_file("main.go").unwrap()).len(), 1);
}

#[test]
fn names_make_edges_where_imports_say_nothing() {
    let (_kept, snapshot, graph) = tree(&[
        ("go.mod", "module example.org/m\n"),
        ("pkg/a.go", "package pkg\nfunc useIt() { compute(); run() }\n"),
        ("pkg/b.go", "package pkg\nfunc compute() {}\n"),
        // The same name in another folder isn't meant.
        ("other/c.go", "package other\nfunc compute() {}\n"),
        // A common name isn't meant even if a single file defines it.
        ("far/d.go", "package far\nfunc run() {}\n"),
        ("lib/shop.py", "class ShopKeeper:\n    def go(self):\n        pass\ndef get():\n    pass\n"),
        ("app/main.py", "from lib import ShopKeeper\nShopKeeper().go()\nget()\n"),
        ("lib/__init__.py", "from .shop import ShopKeeper\n"),
        // Of another language.
        ("web/x.ts", "export function other() { return ShopKeeper; }\n"),
    ]);
    let to = |path: &str| {
        let edges = graph.edges(graph.find_file(path).unwrap()).iter();
        edges.filter(|edge| edge.is_dependency()).map(|edge| graph.path(edge.to)).collect::<Vec<_>>()
    };
    assert_eq!(to("pkg/a.go"), ["pkg/b.go"]);
    assert_eq!(to("app/main.py"), ["lib/__init__.py", "lib/shop.py"]);
    assert!(to("web/x.ts").is_empty());
    let (main, shop) = (graph.find_file("app/main.py").unwrap(), graph.find_file("lib/shop.py").unwrap());
    let edge = graph.edge(main, shop).unwrap();
    assert_eq!((edge.line, edge.names), (0, journeyman_index::graph::MIN_NAMES_WEIGHT));
    assert!(graph.shared_names(&snapshot, main, shop).contains(&"ShopKeeper".to_owned()));
}

fn chain() -> (tempfile::TempDir, Arc<Snapshot>, Arc<Graph>) {
    tree(&[
        ("src/core.py", "import os\nX = 1\n"),
        ("src/mid.py", "from .core import X\n"),
        ("src/top.py", "from .mid import X\nfrom .ring_a import a\n"),
        ("src/ring_a.py", "from .ring_b import b\n"),
        ("src/ring_b.py", "from .ring_c import c\n"),
        ("src/ring_c.py", "from .ring_a import a\n"),
        ("src/self_made.py", "import requests\nimport numpy\n"),
        ("tests/test_top.py", "from src.top import X\n"),
        ("tests/test_none.py", "X = 2\n"),
    ])
}

#[test]
fn neighbours_are_ordered_by_distance() {
    let (_kept, _, graph) = chain();
    let mid = graph.find_file("src/mid.py").unwrap();
    let told = |direction, depth| {
        let reach = graph.neighbours(&[mid], direction, depth);
        reach.files.iter().map(|found| (graph.path(found.file), found.distance)).collect::<Vec<_>>()
    };
    assert_eq!(told(Direction::Dependencies, 9), [("src/core.py", 1)]);
    assert_eq!(told(Direction::Dependents, 1), [("src/top.py", 1)]);
    assert_eq!(told(Direction::Dependents, 2), [("src/top.py", 1), ("tests/test_top.py", 2)]);
    assert_eq!(told(Direction::Both, 1), [("src/core.py", 1), ("src/top.py", 1)]);
    assert_eq!(told(Direction::Both, 0), []);
    let made = graph.find_file("src/self_made.py").unwrap();
    assert_eq!(graph.packages(made).collect::<Vec<_>>(), ["numpy", "requests"]);
}

#[test]
fn a_change_affects_what_depends_on_it_and_the_tests_that_reach_it() {
    let (_kept, snapshot, graph) = chain();
    let core = graph.find_file("src/core.py").unwrap();
    let reach = graph.find_impact(&snapshot, &[ChangedSourceFile::from(core)], u32::MAX);
    assert_eq!(
        paths(&graph, reach.files.iter().map(|found| found.file)),
        ["src/mid.py", "src/top.py", "tests/test_top.py"]
    );
    let test = graph.find_file("tests/test_top.py").unwrap();
    assert_eq!(
        paths(&graph, reach.path_to(test)),
        ["src/core.py", "src/mid.py", "src/top.py", "tests/test_top.py"]
    );
    assert_eq!(paths(&graph, graph.affected_tests(&[core], &reach)), ["tests/test_top.py"]);
    let none = graph.find_file("tests/test_none.py").unwrap();
    assert_eq!(
        paths(
            &graph,
            graph.affected_tests(&[none], &graph.find_impact(&snapshot, &[ChangedSourceFile::from(none)], 5))
        ),
        ["tests/test_none.py"]
    );
}

#[test]
fn ways_and_cycles() {
    let (_kept, _, graph) = chain();
    let file = |path: &str| graph.find_file(path).unwrap();
    let way = graph.shortest_path(file("tests/test_top.py"), file("src/ring_c.py")).unwrap();
    assert_eq!(
        paths(&graph, way),
        ["tests/test_top.py", "src/top.py", "src/ring_a.py", "src/ring_b.py", "src/ring_c.py"]
    );
    assert_eq!(graph.shortest_path(file("src/core.py"), file("src/top.py")), None);
    let cycles = graph.cycles();
    assert_eq!(cycles.len(), 1);
    assert_eq!(paths(&graph, cycles[0].files.clone()), ["src/ring_a.py", "src/ring_b.py", "src/ring_c.py"]);
    assert_eq!(
        paths(&graph, cycles[0].round.clone()),
        ["src/ring_a.py", "src/ring_b.py", "src/ring_c.py", "src/ring_a.py"]
    );
}

/// Rust's modules need each other in both directions by nature: `mod` alone makes no cycle.
#[test]
fn a_declared_module_makes_no_cycle() {
    let (_kept, snapshot, graph) = tree(&[
        ("Cargo.toml", "[package]\nname = \"m\"\n"),
        ("src/lib.rs", "mod one;\nmod two;\npub struct Shared;\n"),
        ("src/one.rs", "use crate::Shared;\nuse crate::two::Two;\n"),
        ("src/two.rs", "pub struct Two;\n"),
    ]);
    assert_eq!(graph.cycles(), []);
    let two = graph.find_file("src/two.rs").unwrap();
    let reach = graph.find_impact(&snapshot, &[ChangedSourceFile::from(two)], 1);
    assert_eq!(paths(&graph, reach.files.iter().map(|found| found.file)), ["src/one.rs"]);
}

#[test]
fn files_with_many_dependents_rank_highest() {
    let (_kept, snapshot, graph) = chain();
    let best = |ranks: Vec<f64>| {
        let at = (0..ranks.len()).max_by(|one, other| ranks[*one].total_cmp(&ranks[*other])).unwrap();
        graph.path(at as u32).to_owned()
    };
    let ranks = graph.page_ranks(&[]);
    assert!((ranks.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    assert!(best(ranks).starts_with("src/ring_"));
    let mid = graph.find_file("src/mid.py").unwrap();
    let ranks = graph.page_ranks(&[(mid, 1.0)]);
    assert!(ranks[graph.find_file("src/core.py").unwrap() as usize] > 0.2);
    assert!(ranks[graph.find_file("src/ring_a.py").unwrap() as usize] < 1e-9);
    let near = graph.nearby_files(mid);
    let near: Vec<(String, u32)> = near
        .iter()
        .map(|(file, steps)| (snapshot.file(*file).unwrap().path().unwrap().to_string(), *steps))
        .collect();
    let near: Vec<(&str, u32)> = near.iter().map(|(path, steps)| (path.as_str(), *steps)).collect();
    assert_eq!(near, [("src/core.py", 1), ("src/top.py", 1), ("src/ring_a.py", 2), ("tests/test_top.py", 2)]);
}

#[test]
fn damaged_and_other_versions_are_rebuilt() {
    let (kept, snapshot, graph) = chain();
    let right = everything(&graph);
    let file = kept.path().join("index/graph");
    let good = std::fs::read(&file).unwrap();
    let mut random = fastrand::Rng::with_seed(5);
    for round in 0..60 {
        let mut bad = good.clone();
        match random.u8(..3) {
            0 => bad.truncate(random.usize(..bad.len())),
            _ => {
                let at = random.usize(..bad.len());
                bad[at] ^= 1 << random.u8(..8);
            }
        }
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, bad).unwrap();
        let graph = open(kept.path()).graph(&snapshot);
        assert_eq!(everything(&graph), right, "round {round}");
        assert_eq!(graph.last_update_stats().changed, graph.len(), "round {round}");
        assert_eq!(std::fs::read(&file).unwrap(), good, "round {round}");
    }
}

/// The child process: follows the tree until it is killed, or for a while.
#[test]
#[ignore = "started by other tests"]
fn child() {
    let Some(kept) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    let mut random = fastrand::Rng::with_seed(std::process::id().into());
    for _ in 0..4 {
        change_randomly(&kept.join("tree"), &mut random);
        follow(&open(&kept));
    }
}

fn start(kept: &Path) -> Child {
    rerun_test!("child").env(CHILD, kept).stdout(std::process::Stdio::null()).spawn().unwrap()
}

#[test]
fn crashes_and_concurrent_processes_leave_a_valid_graph() {
    let kept = tempfile::tempdir().unwrap();
    let tree = kept.path().join("tree");
    let mut random = fastrand::Rng::with_seed(11);
    (0..150).for_each(|_| change_randomly(&tree, &mut random));
    for round in 0..15 {
        let mut children: Vec<Child> = (0..2).map(|_| start(kept.path())).collect();
        std::thread::sleep(Duration::from_micros(random.u64(0..80_000)));
        let graph = open(kept.path());
        let snapshot = graph.index().snapshot();
        drop(graph.graph(&snapshot));
        for child in &mut children {
            if round % 3 > 0 {
                child.kill().unwrap();
            }
            child.wait().unwrap();
        }
        let (snapshot, graph) = follow(&open(kept.path()));
        let (one, other) = (everything(&graph), anew(&tree, &snapshot));
        assert!(one == other, "round {round}: {}", difference(&one, &other));
    }
    let left = std::fs::read_dir(kept.path().join("index")).unwrap();
    let left =
        left.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("graph"));
    assert!(left.count() <= 3);
}

#[test]
fn private_names_tie_no_files() {
    let (_kept, _, graph) = tree(&[
        (
            "src/rand.c",
            "static void swap_bytes(int *a) {}\nint redis_rand(void) { swap_bytes(0); return 1; }\n",
        ),
        ("src/sort.c", "void sort_all(void) { swap_bytes(0); int swap_bytes; }\n"),
        ("src/script.c", "int seed(void) { return redis_rand(); }\n"),
        ("src/list.h", "static inline int list_length(void) { return 0; }\n"),
        ("src/list.c", "#include \"list.h\"\nint count(void) { return list_length(); }\n"),
        ("src/other.c", "int other(void) { return list_length(); }\n"),
        ("js/a.js", "function make_router() {}\nexport function build() { make_router(); }\n"),
        ("js/b.js", "import './a.js';\nmake_router();\n"),
    ]);
    let users = |path: &str| {
        let file = graph.find_file(path).unwrap();
        paths(
            &graph,
            graph.neighbours(&[file], Direction::Dependents, 1).files.iter().map(|found| found.file),
        )
    };
    assert_eq!(users("src/rand.c"), ["src/script.c"]);
    assert_eq!(users("src/list.h"), ["src/list.c"]);
    let (from, to) = (graph.find_file("js/b.js").unwrap(), graph.find_file("js/a.js").unwrap());
    assert_eq!(graph.edge(from, to).unwrap().names, 0);
}
