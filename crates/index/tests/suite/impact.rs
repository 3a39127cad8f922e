//! Impact of changes: names are followed through re-exports, and deleted files keep their
//! dependents.

use crate::common;

use std::path::Path;
use std::sync::Arc;

use common::{options, put};
use journeyman_index::graph::{ChangedPart, ChangedSourceFile, DeletedFile, Graph};
use journeyman_index::{ProjectIndex, Snapshot};

struct Tree {
    kept: tempfile::TempDir,
    snapshot: Arc<Snapshot>,
    graph: Arc<Graph>,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let kept = tempfile::tempdir().unwrap();
        files.iter().for_each(|(path, text)| put(&kept.path().join("tree"), path, text));
        let project = ProjectIndex::open(&kept.path().join("tree"), &kept.path().join("index"), 2).unwrap();
        project.refresh(options()).unwrap();
        let snapshot = project.index().snapshot();
        let graph = project.graph(&snapshot);
        Self { kept, snapshot, graph }
    }

    /// Returns the files that a change of a file affects, by path.
    fn affected(&self, path: &str) -> Vec<&str> {
        let file = self.graph.find_file(path).unwrap();
        let reach = self.graph.find_impact(&self.snapshot, &[ChangedSourceFile::from(file)], u32::MAX);
        let mut paths: Vec<&str> = reach.files.iter().map(|found| self.graph.path(found.file)).collect();
        paths.sort_unstable();
        paths
    }

    /// Returns the files that a change of one line affects, by path.
    fn affected_by_line(&self, path: &str, line: u32) -> Vec<&str> {
        let part = ChangedPart { lines: vec![line..=line], gone: Vec::new() };
        self.affected_by(path, part)
    }

    fn affected_by(&self, path: &str, part: ChangedPart) -> Vec<&str> {
        let file = self.graph.find_file(path).unwrap();
        let changed = [ChangedSourceFile { file, part: Some(part) }];
        let reach = self.graph.find_impact(&self.snapshot, &changed, u32::MAX);
        let mut paths: Vec<&str> = reach.files.iter().map(|found| self.graph.path(found.file)).collect();
        paths.sort_unstable();
        paths
    }

    fn with_deleted(&self, gone: &[DeletedFile]) -> Graph {
        let root = self.kept.path().join("tree");
        self.graph.with_deleted_files(&self.snapshot, gone, &|path| {
            std::fs::read_to_string(root.join(Path::new(path))).ok()
        })
    }
}

#[test]
fn a_package_re_exports_its_parts() {
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
        // Its re-exports may have changed.
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
fn a_file_that_defines_the_name_too_means_another_ones_by_naming_its_module() {
    let tree = Tree::new(&[
        ("base.py", "def value():\n    return 1\n"),
        ("named.py", "import base\n\n\ndef value():\n    return base.value() + 1\n"),
        (
            "own.py",
            "import base\n\n\ndef value():\n    return 2\n\n\ndef twice():\n    return 2 * value()\n\n\nbase.other()\n",
        ),
        ("test_named.py", "import named\n\n\ndef test_value():\n    assert named.value() == 2\n"),
        ("test_own.py", "import own\n\n\ndef test_twice():\n    assert own.twice() == 4\n"),
    ]);
    assert_eq!(tree.affected_by_line("base.py", 2), ["named.py", "test_named.py"]);
}

#[test]
fn a_listed_import_is_meant_where_the_file_defines_the_name_too() {
    let tree = Tree::new(&[
        ("shop/till.py", "def count():\n    return 1\n"),
        (
            "shop/door.py",
            "from shop.till import count\n\n\nclass Door:\n    def count(self):\n        return 2\n\n    \
             def open(self):\n        return count()\n",
        ),
    ]);
    assert_eq!(tree.affected_by_line("shop/till.py", 2), ["shop/door.py"]);
}

#[test]
fn ways_lead_through_re_exports() {
    // Two symbols have the name: only the import tells which one is meant.
    let tree = Tree::new(&[
        ("lib/a.ts", "export function total() {}\n"),
        ("lib/other.ts", "export function total() {}\nexport function tax_of() {}\n"),
        ("lib/inner.ts", "export * from './a';\nexport { tax_of } from './other';\n"),
        ("lib/index.ts", "export * from './inner';\n"),
        ("app/sum.ts", "import { total } from '../lib/index';\ntotal();\n"),
        ("app/tax.ts", "import { tax_of } from '../lib/index';\ntax_of();\n"),
    ]);
    assert_eq!(tree.affected("lib/a.ts"), ["app/sum.ts", "lib/inner.ts"]);
    let (graph, file) = (&tree.graph, |path: &str| tree.graph.find_file(path).unwrap());
    let reach = graph.find_impact(&tree.snapshot, &[ChangedSourceFile::from(file("lib/a.ts"))], u32::MAX);
    let way: Vec<&str> = reach.path_to(file("app/sum.ts")).into_iter().map(|file| graph.path(file)).collect();
    assert_eq!(way, ["lib/a.ts", "lib/inner.ts", "lib/index.ts", "app/sum.ts"]);
    // Steps count, whatever is on the way.
    let near = graph.find_impact(&tree.snapshot, &[ChangedSourceFile::from(file("lib/a.ts"))], 2);
    assert_eq!(near.files.len(), 1);
    assert!(graph.dependents(&[file("lib/a.ts")], u32::MAX).files.len() > reach.files.len());
}

#[test]
fn whole_files_are_followed_without_names() {
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
fn dependents_of_deleted_files_are_found() {
    let tree = Tree::new(&[
        ("src/user.py", "from .lost import something_rare\n\n\ndef use():\n    something_rare()\n"),
        ("src/top.py", "from .user import use\n\nuse()\n"),
        ("src/other.py", "from .user import use\n\nuse()\nsomething_else()\n"),
        ("go.mod", "module example.org/m\n"),
        ("pkg/a.go", "package pkg\nfunc First() { computeTotal() }\n"),
        ("pkg/b.go", "package pkg\nfunc Second() { stillThere() }\nfunc stillThere() {}\n"),
    ]);
    let gone =
        |path: &str, text: Option<&str>| DeletedFile { path: path.to_owned(), text: text.map(str::to_owned) };
    let graph = tree.with_deleted(&[
        gone("src/lost.py", None),
        gone("pkg/total.go", Some("package pkg\nfunc computeTotal() {}\nfunc stillThere() {}\n")),
        gone("src/unneeded.py", Some("x = 1\n")),
        // The file exists again.
        gone("src/top.py", None),
    ]);
    assert_eq!(graph.len(), tree.graph.len() + 3);
    let of = |path: &str| {
        let reach = graph.find_impact(
            &tree.snapshot,
            &[ChangedSourceFile::from(graph.find_file(path).unwrap())],
            u32::MAX,
        );
        reach.files.iter().map(|found| graph.path(found.file).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of("src/lost.py"), ["src/user.py", "src/other.py", "src/top.py"]);
    assert_eq!(of("pkg/total.go"), ["pkg/a.go"]);
    assert_eq!(of("src/unneeded.py"), [""; 0]);
    assert_eq!(of("src/user.py"), ["src/other.py", "src/top.py"]);
    let (user, lost) = (graph.find_file("src/user.py").unwrap(), graph.find_file("src/lost.py").unwrap());
    assert_eq!(graph.edge(user, lost).unwrap().line, 1);
}

#[test]
fn a_change_goes_from_symbol_to_symbol() {
    let tree = Tree::new(&[
        (
            "shop/price.py",
            "def net(x):\n    return x\n\n\ndef gross(x):\n    return net(x) * 2\n\n\ndef label(x):\n    return str(x)\n",
        ),
        (
            "shop/till.py",
            "from shop.price import gross, label\n\n\ndef pay(x):\n    return gross(x)\n\n\ndef show(x):\n    return label(x)\n",
        ),
        ("shop/sign.py", "from shop.till import show\n\n\ndef sign():\n    show(1)\n"),
        ("tests/test_pay.py", "from shop.till import pay\n\n\ndef test_pay():\n    pay(1)\n"),
        ("tests/test_sign.py", "from shop.sign import sign\n\n\ndef test_sign():\n    sign()\n"),
        ("shop/late.py", "from shop.price import net\n\nTABLE = [net(1)]\n"),
        ("shop/table.py", "from shop.late import TABLE\n\n\ndef first():\n    return TABLE[0]\n"),
    ]);
    // `net` is used by `gross`, which is used by `pay`.
    assert_eq!(
        tree.affected_by_line("shop/price.py", 2),
        ["shop/late.py", "shop/table.py", "shop/till.py", "tests/test_pay.py"]
    );
    assert_eq!(
        tree.affected_by_line("shop/price.py", 10),
        ["shop/sign.py", "shop/till.py", "tests/test_sign.py"]
    );
    assert_eq!(tree.affected_by_line("shop/till.py", 5), ["tests/test_pay.py"]);
    // A changed import changes its users.
    assert_eq!(tree.affected_by_line("shop/sign.py", 1), ["tests/test_sign.py"]);
    // Users of a lost name.
    let gone = ChangedPart { lines: Vec::new(), gone: vec!["show".to_owned()] };
    assert_eq!(tree.affected_by("shop/till.py", gone), ["shop/sign.py", "tests/test_sign.py"]);
    assert!(tree.affected_by("shop/till.py", ChangedPart::default()).is_empty());
}

#[test]
fn changes_of_members_reach_users_of_the_type() {
    let tree = Tree::new(&[
        ("src/log.rs", "pub struct Log;\nimpl Log {\n    pub fn append(&self) {}\n}\npub fn other() {}\n"),
        (
            "src/session.rs",
            "use crate::log::Log;\npub fn open() -> Log {\n    Log\n}\npub fn aside() {\n    crate::log::other();\n}\n",
        ),
        ("src/work.rs", "use crate::session;\npub fn work() {\n    session::open().append();\n}\n"),
        ("src/idle.rs", "use crate::session;\npub fn idle() {\n    session::aside();\n}\n"),
        ("src/lib.rs", "mod log;\nmod session;\nmod work;\nmod idle;\n"),
        ("Cargo.toml", "[package]\nname = \"one\"\n"),
    ]);
    assert_eq!(tree.affected_by_line("src/log.rs", 3), ["src/session.rs", "src/work.rs"]);
    assert_eq!(tree.affected_by_line("src/log.rs", 5), ["src/idle.rs", "src/session.rs"]);
}

#[test]
fn units_only_know_the_units_they_import() {
    let tree = Tree::new(&[
        ("base/Cargo.toml", "[package]\nname = \"base\"\n"),
        ("base/src/lib.rs", "pub struct Tokens(pub u64);\npub fn all_tokens() {}\n"),
        ("cut/Cargo.toml", "[package]\nname = \"cut\"\n[dependencies]\nbase = { path = \"../base\" }\n"),
        (
            "cut/src/lib.rs",
            "use base::Tokens;\npub trait Half {\n    fn half(self) -> Self;\n}\nimpl Half for Tokens {\n    fn half(self) -> Self {\n        self\n    }\n}\npub fn cut_short(of: Tokens) {\n    of.half();\n}\npub fn lone_function() {}\n",
        ),
        ("alone/Cargo.toml", "[package]\nname = \"alone\"\n"),
        ("alone/src/lib.rs", "pub fn mine() {\n    lone_function();\n    cut_short();\n}\n"),
        ("user/Cargo.toml", "[package]\nname = \"user\"\n[dependencies]\nbase = { path = \"../base\" }\n"),
        ("user/src/lib.rs", "use base::Tokens;\npub fn count(of: Tokens) {}\n"),
    ]);
    // Neither code with an equal name, nor code with the type that doesn't see the addition.
    assert!(tree.affected("cut/src/lib.rs").is_empty());
    assert_eq!(tree.affected("base/src/lib.rs"), ["cut/src/lib.rs", "user/src/lib.rs"]);
}

#[test]
fn a_fixture_affects_the_tests_beneath_it() {
    let tree = Tree::new(&[
        ("tests/conftest.py", "def shop():\n    return 1\n\n\ndef door():\n    return 2\n"),
        ("tests/unit/test_shop.py", "def test_shop(shop):\n    assert shop\n"),
        ("tests/unit/test_door.py", "def test_door(door):\n    assert door\n"),
        ("other/test_shop.py", "def test_shop(shop):\n    assert shop\n"),
        ("src/use.py", "def use(shop):\n    return shop\n"),
    ]);
    assert_eq!(tree.affected_by_line("tests/conftest.py", 2), ["tests/unit/test_shop.py"]);
    assert_eq!(tree.affected("tests/conftest.py"), ["tests/unit/test_door.py", "tests/unit/test_shop.py"]);
}

#[test]
fn aliases_of_the_changed_file_count() {
    let tree = Tree::new(&[
        ("lib/bar.ts", "export function bar() {}\n"),
        ("lib/foo.ts", "export class Foo {}\n"),
        (
            "lib/index.ts",
            "export { bar as baz } from './bar';\nexport { Foo } from './foo';\nexport const VERSION = 1;\n",
        ),
        ("app/baz.ts", "import { baz } from '../lib/index';\nexport function useBaz() {\n  baz();\n}\n"),
        (
            "app/page.ts",
            "import { Foo } from '../lib/index';\nexport function makePage() {\n  return new Foo();\n}\n",
        ),
        (
            "app/page.test.ts",
            "import { makePage } from './page';\ntest('page', () => {\n  makePage();\n});\n",
        ),
        ("kit.py", "def kit():\n    pass\n"),
        ("boot.py", "from kit import kit\nkit()\n"),
        ("app.py", "import boot\n"),
    ]);
    assert_eq!(tree.affected_by_line("lib/index.ts", 1), ["app/baz.ts"]);
    assert_eq!(tree.affected_by_line("lib/index.ts", 2), ["app/page.test.ts", "app/page.ts"]);
    assert_eq!(tree.affected("lib/index.ts"), ["app/baz.ts", "app/page.test.ts", "app/page.ts"]);
    // A line right below an import isn't part of it.
    assert_eq!(tree.affected_by_line("boot.py", 2), ["app.py"]);
}

#[test]
fn declarations_in_headers_follow_their_definitions() {
    let tree = Tree::new(&[
        ("util.h", "int add_up(int a);\nint other_one(void);\n"),
        (
            "util.c",
            "#include \"util.h\"\nint add_up(int a) {\n  return a;\n}\nint other_one(void) {\n  return 2;\n}\n",
        ),
        ("main.c", "#include \"util.h\"\nint main(void) {\n  return add_up(1);\n}\n"),
        ("test_util.c", "#include \"util.h\"\nint test(void) {\n  return other_one();\n}\n"),
    ]);
    assert_eq!(tree.affected_by_line("util.c", 3), ["main.c", "util.h"]);
    assert_eq!(tree.affected("util.c"), ["main.c", "test_util.c", "util.h"]);
}

const SHOP: &str = "\
class Box:
    def open_lid(self):
        return self.lift_lid()

    def lift_lid(self):
        return 1


class Chest(Box):
    def open_lid(self):
        return 2


class Shelf:
    def open_lid(self):
        return 3


class Table(dict):
    def open_drawer(self):
        return 4


def check_lid(of: Shelf):
    return isinstance(of, Shelf) and of.open_lid()


def lift_lid():
    return 5
";

/// A library, and tests of which each makes values of other types.
fn shop() -> Tree {
    let test = |body: &str| format!("import shop\n\n\ndef test_it():\n    {body}\n");
    let files = [
        ("test_box.py", test("shop.check_lid(shop.Box())")),
        ("test_chest.py", test("shop.Chest().open_lid()")),
        ("test_shelf.py", test("shop.check_lid(shop.Shelf())")),
        ("test_drawer.py", test("shop.Table().open_drawer()")),
        ("test_table.py", test("shop.Table().get(1)")),
        ("test_function.py", test("shop.lift_lid()")),
    ];
    let files = files.iter().map(|(path, text)| (*path, text.as_str()));
    Tree::new(&files.chain([("shop.py", SHOP)]).collect::<Vec<_>>())
}

#[test]
fn a_test_reaches_a_method_by_its_name_and_by_its_type() {
    let tree = shop();
    for (line, affected) in [
        // Whoever makes a chest may call what a box inherits.
        (3, &["test_box.py", "test_chest.py"][..]),
        // By `self.lift_lid` alone: the function of the same name is another one.
        (6, &["test_box.py", "test_chest.py"]),
        (11, &["test_chest.py"]),
        // Annotations and checks of types make no values.
        (16, &["test_shelf.py"]),
        // `dict` doesn't call it.
        (21, &["test_drawer.py"]),
        (29, &["test_function.py"]),
    ] {
        assert_eq!(tree.affected_by_line("shop.py", line), affected, "line {line}");
    }
}

#[test]
fn a_base_of_others_may_call_each_method() {
    let library = |base: &str| {
        format!("from lib import Base\n\n\nclass Page({base}):\n    def on_click(self):\n        return 1\n")
    };
    let uses = "from page import Page\n\n\ndef test_it():\n    Page().on_click()\n";
    let makes = "from page import Page\n\n\ndef test_it():\n    Page().run()\n";
    for (base, affected) in [("Base", &["test_makes.py", "test_uses.py"][..]), ("object", &["test_uses.py"])]
    {
        let page = library(base);
        let tree = Tree::new(&[("page.py", &page), ("test_uses.py", uses), ("test_makes.py", makes)]);
        assert_eq!(tree.affected_by_line("page.py", 6), affected, "{base}");
    }
}

#[test]
fn a_method_is_called_where_its_file_is_not_seen() {
    let tree = Tree::new(&[
        ("box.py", "class Box:\n    def open_lid(self):\n        return 1\n"),
        ("work.py", "def work_on(it):\n    return it.open_lid()\n"),
        ("seen.py", "import box\n\n\ndef show(it):\n    return it.open_lid()\n"),
        (
            "test_box.py",
            "from box import Box\nfrom work import work_on\n\n\ndef test_it():\n    work_on(Box())\n",
        ),
        ("test_made.py", "from box import Box\n\n\ndef test_it():\n    assert Box()\n"),
    ]);
    assert_eq!(tree.affected_by_line("box.py", 3), ["seen.py", "test_box.py"]);
}

#[test]
fn a_method_of_the_name_is_no_other_function() {
    let tree = Tree::new(&[
        ("web/__init__.py", "from .api import get\n"),
        ("web/api.py", "def get():\n    return 1\n"),
        ("web/session.py", "class Session:\n    def get(self):\n        return 2\n"),
        (
            "test_get.py",
            "import web\nfrom web.session import Session\n\n\ndef test_it():\n    assert web.get() and Session\n",
        ),
    ]);
    assert_eq!(tree.affected_by_line("web/api.py", 2), ["test_get.py", "web/__init__.py"]);
}

#[test]
fn local_names_and_names_of_arguments_are_no_uses() {
    let tree = Tree::new(&[
        (
            "shop.py",
            "def price(item):\n    return 1\n\n\nclass Till:\n    def on_close(self):\n        return 2\n\n    \
             def run(self, on_close=None):\n        self.hook = on_close\n",
        ),
        ("test_used.py", "from shop import price\n\n\ndef test_it():\n    assert price(1)\n"),
        (
            "test_local.py",
            "from shop import Till\n\n\ndef check(price):\n    return price\n\n\ndef test_it():\n    \
             assert check(price=3)\n    Till().run()\n",
        ),
        ("test_member.py", "from shop import Till\n\n\ndef test_it():\n    Till().on_close()\n"),
    ]);
    assert_eq!(tree.affected_by_line("shop.py", 2), ["test_used.py"]);
    assert_eq!(tree.affected_by_line("shop.py", 7), ["test_member.py"]);
}

#[test]
fn a_base_of_the_project_may_have_another_name() {
    let tree = Tree::new(&[
        ("shop/__init__.py", "from .page import Page\n"),
        ("shop/plain.py", "class Page:\n    pass\n"),
        (
            "shop/page.py",
            "from .plain import Page as PlainPage\n\n\nclass Page(PlainPage):\n    def on_click(self):\n        \
             return 1\n",
        ),
        ("test_uses.py", "from shop import Page\n\n\ndef test_it():\n    Page().on_click()\n"),
        ("test_makes.py", "from shop import Page\n\n\ndef test_it():\n    assert Page()\n"),
    ]);
    assert_eq!(tree.affected_by_line("shop/page.py", 6), ["shop/__init__.py", "test_uses.py"]);
}

#[test]
fn code_of_a_module_changes_its_variables_and_hooks_its_importers() {
    let tree = Tree::new(&[
        ("shop/__init__.py", "from .door import knock\n"),
        ("shop/door.py", "def knock():\n    pass\n\n\ndef __getattr__(name):\n    return name\n"),
        ("shop/sign.py", "def paint():\n    pass\n"),
        ("main.py", "from shop.door import knock\n\napp = []\napp.append(knock)\nother = 1\n"),
        ("test_app.py", "from main import app\n\n\ndef test_app():\n    assert app\n"),
        ("test_other.py", "from main import other\n\n\ndef test_other():\n    assert other\n"),
        ("test_hook.py", "import shop.door\n\n\ndef test_hook():\n    assert shop.door.lost\n"),
        // An import of a part brings in the package as well.
        ("test_part.py", "import shop.sign\n\n\ndef test_part():\n    shop.knock()\n"),
    ]);
    assert_eq!(
        tree.affected_by_line("shop/door.py", 2),
        ["main.py", "shop/__init__.py", "test_app.py", "test_part.py"]
    );
    assert!(tree.affected_by_line("shop/door.py", 6).contains(&"test_hook.py"));
}

#[test]
fn code_is_seen_without_an_import_where_the_language_says_so() {
    let tree = Tree::new(&[
        (
            "src/main/java/shop/Cart.java",
            "package shop;\n\npublic class Cart {\n  int sum() { return 1; }\n}\n",
        ),
        ("src/main/java/door/Cart.java", "package door;\n\npublic class Cart {}\n"),
        (
            "src/test/java/shop/CartTest.java",
            "package shop;\n\nclass CartTest {\n  void sums() { new Cart().sum(); }\n}\n",
        ),
        ("src/Till/Coin.cs", "namespace Till;\n\npublic class Coin {\n  public int Worth() => 1;\n}\n"),
        (
            "tests/Till.Tests/CoinTests.cs",
            "namespace Till.Tests;\n\npublic class CoinTests {\n  public void Counts() { new Coin().Worth(); }\n}\n",
        ),
        ("app/models/lamp.rb", "class Lamp\n  def light\n    1\n  end\nend\n"),
        (
            "spec/models/lamp_spec.rb",
            "RSpec.describe Lamp do\n  it { expect(Lamp.new.light).to eq(1) }\nend\n",
        ),
        ("Sources/Park/Trees/Oak.swift", "struct Oak {\n  func grow() -> Int { return 1 }\n}\n"),
        (
            "Tests/ParkTests/OakTests.swift",
            "import XCTest\n@testable import Park\n\nclass OakTests: XCTestCase {\n  func testGrows() { _ = Oak().grow() }\n}\n",
        ),
    ]);
    for (changed, line, test) in [
        ("src/main/java/shop/Cart.java", 4, "src/test/java/shop/CartTest.java"),
        ("src/Till/Coin.cs", 4, "tests/Till.Tests/CoinTests.cs"),
        ("app/models/lamp.rb", 3, "spec/models/lamp_spec.rb"),
        ("Sources/Park/Trees/Oak.swift", 2, "Tests/ParkTests/OakTests.swift"),
    ] {
        assert_eq!(tree.affected_by_line(changed, line), [test], "{changed}");
        let file = tree.graph.find_file(changed).unwrap();
        let reach = tree.graph.find_impact(&tree.snapshot, &[ChangedSourceFile::from(file)], u32::MAX);
        let tests = tree.graph.affected_tests(&[file], &reach);
        assert_eq!(tests, [tree.graph.find_file(test).unwrap()], "{changed}");
    }
    assert!(tree.affected("src/main/java/door/Cart.java").is_empty());
}

#[test]
fn paths_in_code_lead_to_other_crates_and_modules() {
    let tree = Tree::new(&[
        ("Cargo.toml", "[workspace]\nmembers = [\"base\", \"user\"]\n"),
        ("base/Cargo.toml", "[package]\nname = \"base-kit\"\n"),
        (
            "base/src/lib.rs",
            "mod inner;\npub mod shop;\npub use inner::made;\npub fn name() -> u8 {\n    1\n}\n",
        ),
        ("base/src/inner.rs", "pub fn made() -> bool {\n    true\n}\n"),
        ("base/src/shop.rs", "pub struct Till;\nimpl Till {\n    pub fn open() {}\n}\npub fn close() {}\n"),
        ("user/Cargo.toml", "[package]\nname = \"user\"\n"),
        ("user/src/lib.rs", "pub mod a;\npub mod b;\npub mod shop;\n"),
        ("user/src/a.rs", "pub fn run() -> u8 {\n    base_kit::name()\n}\n"),
        ("user/src/b.rs", "pub fn go() {\n    crate::a::run();\n}\n"),
        // A module of its own has the name of another one.
        (
            "user/src/shop.rs",
            "use std::fs as shop;\npub fn leave() {\n    shop::close();\n}\npub fn close() {}\n",
        ),
        ("user/tests/name.rs", "#[test]\nfn is_one() {\n    assert_eq!(base_kit::name(), 1);\n}\n"),
        ("user/tests/open.rs", "#[test]\nfn opens() {\n    base_kit::shop::Till::open();\n}\n"),
        ("user/tests/made.rs", "#[test]\nfn is_made() {\n    assert!(base_kit::made());\n}\n"),
    ]);
    for (changed, line, affected) in [
        ("base/src/lib.rs", 5, &["user/src/a.rs", "user/src/b.rs", "user/tests/name.rs"][..]),
        ("base/src/shop.rs", 3, &["user/tests/open.rs"]),
        ("base/src/shop.rs", 5, &[]),
        ("base/src/inner.rs", 2, &["base/src/lib.rs", "user/tests/made.rs"]),
    ] {
        assert_eq!(tree.affected_by_line(changed, line), affected, "{changed}:{line}");
    }
    let packages: Vec<&str> = tree.graph.packages(tree.graph.find_file("user/src/a.rs").unwrap()).collect();
    assert!(packages.is_empty(), "{packages:?}");
}

#[test]
fn a_module_of_ruby_affects_the_types_that_include_it() {
    let tree = Tree::new(&[
        (
            "app/models/loud.rb",
            "module Loud\n  included do\n    before_save :shout\n  end\n\n  def shout\n    1\n  end\nend\n",
        ),
        ("app/models/dog.rb", "class Dog\n  include Loud\n  def bark\n    2\n  end\nend\n"),
        ("spec/models/dog_spec.rb", "RSpec.describe Dog do\n  it { Dog.new.bark }\nend\n"),
        // A namespace is no reason.
        ("lib/zoo/cat.rb", "module Zoo\n  class Cat\n    def purr\n      1\n    end\n  end\nend\n"),
        ("lib/keeper.rb", "require 'zoo/cat'\nclass Keeper\n  def feed\n    Zoo::Bird.new\n  end\nend\n"),
    ]);
    for line in [3, 7] {
        let affected = tree.affected_by_line("app/models/loud.rb", line);
        assert_eq!(affected, ["app/models/dog.rb", "spec/models/dog_spec.rb"], "{line}");
    }
    assert_eq!(tree.affected_by_line("lib/zoo/cat.rb", 4), [""; 0]);
}

#[test]
fn a_name_with_its_namespace_needs_no_import() {
    let tree = Tree::new(&[
        ("composer.json", "{\"autoload\": {\"psr-4\": {\"App\\\\\": \"app/\"}}}"),
        (
            "app/Models/User.php",
            "<?php\nnamespace App\\Models;\nclass User {\n  static function make() {}\n}\n",
        ),
        (
            "tests/UserTest.php",
            "<?php\nnamespace Tests;\nclass UserTest {\n  function makes() { \\App\\Models\\User::make(); }\n}\n",
        ),
    ]);
    assert_eq!(tree.affected_by_line("app/Models/User.php", 4), ["tests/UserTest.php"]);
}
