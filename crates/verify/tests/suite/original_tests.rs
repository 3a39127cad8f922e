//! Tests of before a change get the names that the change gave to the product, and keep what they
//! assert.

use journeyman_protocol::RelPath;
use journeyman_verify::honesty::{ChangedFile, OriginalTest, translate_original_tests};

fn changed(path: &str, old: &str, new: &str) -> ChangedFile {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    ChangedFile { path: RelPath::parse(path).unwrap(), old: text(old), new: text(new) }
}

fn original(before: &str, path: &str, text: &str) -> OriginalTest {
    let parse = |path: &str| RelPath::parse(path).unwrap();
    OriginalTest { before: parse(before), path: parse(path), text: text.to_owned() }
}

/// Product and test before, the product's new text, and the test with its names, in each language.
const RENAMED: [(&str, &str, &str, &str, &str, &str); 8] = [
    (
        "calc.py",
        "def add(a, b):\n    return a + b\n",
        "def plus(a, b):\n    return a + b\n",
        "test_calc.py",
        "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
        "from calc import plus\n\n\ndef test_add():\n    assert plus(1, 2) == 3\n",
    ),
    (
        "calc.js",
        "exports.add = (a, b) => a + b;\n",
        "exports.plus = (a, b) => a + b;\n",
        "calc.test.js",
        "const { add } = require('./calc');\ntest('add', () => {\n  expect(add(1, 2)).toBe(3);\n});\n",
        "const { plus } = require('./calc');\ntest('add', () => {\n  expect(plus(1, 2)).toBe(3);\n});\n",
    ),
    (
        "cart.ts",
        "export class Cart {\n  put(n: number) {}\n}\n",
        "export class Basket {\n  insert(n: number) {}\n}\n",
        "cart.test.ts",
        "import { Cart } from './cart';\nit('takes', () => {\n  expect(new Cart().put(2)).toBe(2);\n});\n",
        "import { Basket } from './cart';\nit('takes', () => {\n  expect(new Basket().insert(2)).toBe(2);\n});\n",
    ),
    (
        "calc.go",
        "package x\n\nfunc Add(a, b int) int { return a + b }\n",
        "package x\n\nfunc Sum(a, b int) int { return a + b }\n",
        "calc_test.go",
        "package x\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal(1)\n\t}\n}\n",
        "package x\n\nfunc TestAdd(t *testing.T) {\n\tif Sum(1, 2) != 3 {\n\t\tt.Fatal(1)\n\t}\n}\n",
    ),
    (
        "src/lib.rs",
        "pub fn add(a: i32) -> i32 {\n    a\n}\n",
        "pub fn plus(a: i32) -> i32 {\n    a\n}\n",
        "tests/api.rs",
        "use x::add;\n\n#[test]\nfn adds() {\n    assert_eq!(add(1), 1);\n}\n",
        "use x::plus;\n\n#[test]\nfn adds() {\n    assert_eq!(plus(1), 1);\n}\n",
    ),
    (
        "src/main/java/Calc.java",
        "class Calc {\n    static int add(int a) { return a; }\n}\n",
        "class Calc {\n    static int plus(int a) { return a; }\n}\n",
        "src/test/java/CalcTest.java",
        "class CalcTest {\n    @Test\n    void adds() {\n        assertEquals(1, Calc.add(1));\n    }\n}\n",
        "class CalcTest {\n    @Test\n    void adds() {\n        assertEquals(1, Calc.plus(1));\n    }\n}\n",
    ),
    (
        "calc.rb",
        "def add(a)\n  a\nend\n",
        "def plus(a)\n  a\nend\n",
        "test/calc_test.rb",
        "require 'calc'\nclass CalcTest < Minitest::Test\n  def test_add\n    assert_equal 1, add(1)\n  end\nend\n",
        "require 'calc'\nclass CalcTest < Minitest::Test\n  def test_add\n    assert_equal 1, plus(1)\n  end\nend\n",
    ),
    (
        "calc.c",
        "int add(int a) { return a; }\n",
        "int plus(int a) { return a; }\n",
        "test_calc.c",
        "int main(void) {\n    assert(add(1) == 1);\n}\n",
        "int main(void) {\n    assert(plus(1) == 1);\n}\n",
    ),
];

#[test]
fn tests_get_the_new_names_of_the_product_in_each_language() {
    for (product, old, new, test, before, expected) in RENAMED {
        let files = [changed(product, old, new), changed(test, before, expected)];
        assert_eq!(translate_original_tests(&files), [original(test, test, expected)], "{test}");
        // A test that also says less keeps what it said.
        let weaker =
            expected.replace("(1, 2)", "(0, 0)").replace("toBe(3)", "toBe(0)").replace("== 3", "== 0");
        let files = [changed(product, old, new), changed(test, before, &weaker)];
        assert_eq!(translate_original_tests(&files), [original(test, test, expected)], "{test}");
        // Without a change of the product, nothing has another name.
        assert_eq!(translate_original_tests(&[changed(test, before, expected)]), [], "{test}");
    }
}

#[test]
fn calls_that_name_a_parameter_name_the_new_one() {
    let old = "def put(name, count=1):\n    return name * count\n\n\ndef total(items):\n    return sum(count for count in items)\n";
    let new = old.replace("count=1", "quantity=1").replace("* count", "* quantity");
    let test = "from shop import put\n\n\ndef test_put():\n    count = 2\n    assert put(\"a\", count=count) == \"aa\"\n";
    let named = test.replace("count=count", "quantity=count");
    let files = [changed("shop.py", old, &new), changed("test_shop.py", test, &named)];
    assert_eq!(translate_original_tests(&files), [original("test_shop.py", "test_shop.py", &named)]);
}

#[test]
fn tests_that_moved_are_found_at_their_new_place() {
    let test = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n";
    let weaker = test.replace("== 3", "> 0");
    let files = [changed("test_calc.py", test, ""), changed("tests/test_calc.py", "", &weaker)];
    assert_eq!(translate_original_tests(&files), [original("test_calc.py", "tests/test_calc.py", test)]);
    // An import that tells where the test stands is the one of the new place.
    let test = "const { add } = require('./calc');\ntest('add', () => {\n  expect(add(1, 2)).toBe(3);\n});\n";
    let moved = test.replace("./calc", "../calc");
    let files = [changed("calc.test.js", test, ""), changed("test/calc.test.js", "", &moved)];
    assert_eq!(translate_original_tests(&files), [original("calc.test.js", "test/calc.test.js", &moved)]);
}

#[test]
fn modules_that_moved_are_imported_from_their_new_place() {
    let net = "def get(u):\n    return u\n\n\ndef size(u):\n    return len(get(u))\n";
    let test = "from pkg.net import size\n\n\ndef test_size():\n    with patch(\"pkg.net.get\", return_value=\"abc\"):\n        assert size(\"u\") == 3\n";
    let moved = test.replace("pkg.net", "pkg.core.net");
    let files = [
        changed("pkg/net.py", net, ""),
        changed("pkg/core/net.py", "", net),
        changed("tests/test_net.py", test, &moved.replace("== 3", "== 4")),
    ];
    assert_eq!(
        translate_original_tests(&files),
        [original("tests/test_net.py", "tests/test_net.py", &moved)]
    );
}

#[test]
fn tests_of_what_is_gone_go_and_others_stay() {
    let product = "def add(a, b):\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n";
    let test = "from calc import add, mul\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\ndef test_mul():\n    assert mul(2, 3) == 6\n";
    let less = "def add(a, b):\n    return a + b\n";
    let only_add = "from calc import add\n\n\ndef test_add():\n    assert add(0, 0) == 0\n";
    let files = [changed("calc.py", product, less), changed("test_calc.py", test, only_add)];
    let expected = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\npass\n";
    assert_eq!(translate_original_tests(&files), [original("test_calc.py", "test_calc.py", expected)]);
    // A test that is gone without a reason stays.
    let files = [
        changed("calc.py", product, &product.replace("a + b", "b + a")),
        changed("test_calc.py", test, only_add),
    ];
    assert_eq!(translate_original_tests(&files), []);
}
