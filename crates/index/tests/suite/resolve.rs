//! Resolution of imports, language by language, and the files to resolve again when files appear or
//! disappear.

use std::collections::BTreeSet;

use journeyman_index::graph::resolve::{
    ImportSettings, ImportTarget, LookupKey, PathSet, keys_changed_by, resolve_imports,
};
use journeyman_syntax::analysis::analyse;
use journeyman_syntax::language::Language;
use proptest::prelude::*;

/// A project: its files, the texts of its settings files, and imports of some file with their
/// meaning: files, or `package:NAME`, or nothing.
struct Case {
    language: Language,
    files: &'static [&'static str],
    settings: &'static [(&'static str, &'static str)],
    imports: &'static [(&'static str, &'static str, &'static [&'static str])],
}

fn meant(meant: &ImportTarget) -> Vec<String> {
    match meant {
        ImportTarget::Files(files) => files.clone(),
        ImportTarget::Package(name) => vec![format!("package:{name}")],
        ImportTarget::Nothing => Vec::new(),
    }
}

const CASES: &[Case] = &[
    Case {
        language: Language::Rust,
        files: &[
            "Cargo.toml",
            "a/Cargo.toml",
            "a/src/lib.rs",
            "a/src/x.rs",
            "a/src/x/y.rs",
            "a/src/z/mod.rs",
            "a/src/z/w.rs",
            "a/tests/t.rs",
            "a/tests/common/mod.rs",
            "a/src/data.txt",
            "b-b/src/lib.rs",
            "b-b/src/m.rs",
            "b-b/src/main.rs",
        ],
        settings: &[
            ("Cargo.toml", "[workspace]\nmembers = [\"a\", \"b-b\"]\n"),
            (
                "a/Cargo.toml",
                "[package]\nname = \"a\"\n[dependencies]\nother = { package = \"b-b\", path = \"../b-b\" }\n",
            ),
            ("b-b/Cargo.toml", "[package]\nname = \"b-b\"\n"),
        ],
        imports: &[
            ("a/src/lib.rs", "mod x;", &["a/src/x.rs"]),
            ("a/src/lib.rs", "mod z;", &["a/src/z/mod.rs"]),
            ("a/src/x.rs", "mod y;", &["a/src/x/y.rs"]),
            ("a/src/x.rs", "use crate::z::w::{self, T};", &["a/src/z/w.rs"]),
            ("a/src/x/y.rs", "use super::super::z;", &["a/src/z/mod.rs"]),
            ("a/src/z/w.rs", "use super::Q;", &["a/src/z/mod.rs"]),
            ("a/src/z/w.rs", "use crate::Q;", &["a/src/lib.rs"]),
            ("a/src/x.rs", "use self::y::Y;", &["a/src/x/y.rs"]),
            ("a/src/x.rs", "use y::Y;", &["a/src/x/y.rs"]),
            ("a/src/x.rs", "use b_b::m::T;", &["b-b/src/m.rs"]),
            ("a/src/x.rs", "use other::T;", &["b-b/src/lib.rs"]),
            ("b-b/src/main.rs", "use b_b::m;", &["b-b/src/m.rs"]),
            ("a/tests/t.rs", "use a::x::X;", &["a/src/x.rs"]),
            ("a/tests/t.rs", "mod common;", &["a/tests/common/mod.rs"]),
            ("a/src/x.rs", "use std::fs;", &["package:std"]),
            ("a/src/x.rs", "use serde::Serialize;", &["package:serde"]),
            ("a/src/x.rs", "const A: &str = include_str!(\"data.txt\");", &["a/src/data.txt"]),
            ("a/src/lib.rs", "#[cfg(test)] mod tests { use super::*; }", &[]),
        ],
    },
    Case {
        language: Language::Rust,
        files: &[
            "app/src/cli.rs",
            "app/src/opts.rs",
            "app/src/lib.rs",
            "app/src/y.rs",
            "app/src/bin/tool/main.rs",
            "app/src/bin/tool/x.rs",
            "app/src/bin/tool/y.rs",
            "core/source/entry.rs",
            "core/source/deep.rs",
        ],
        settings: &[
            ("Cargo.toml", "[workspace.dependencies]\nheart = { package = \"core-lib\", path = \"core\" }\n"),
            (
                "app/Cargo.toml",
                "[package]\nname = \"app\"\n[dependencies]\nheart.workspace = true\n\
                 [target.'cfg(unix)'.dependencies]\nunixy = { package = \"core-lib\", path = \"../core\" }\n\
                 [[bin]]\nname = \"cli\"\npath = \"src/cli.rs\"\n",
            ),
            (
                "core/Cargo.toml",
                "[package]\nname = \"core-lib\"\n[lib]\nname = \"kernel\"\npath = \"source/entry.rs\"\n",
            ),
        ],
        imports: &[
            ("app/src/cli.rs", "mod opts;", &["app/src/opts.rs"]),
            ("app/src/opts.rs", "use super::run;", &["app/src/lib.rs"]),
            ("app/src/opts.rs", "mod inner;", &[]),
            ("app/src/cli.rs", "use heart::deep::dig;", &["core/source/deep.rs"]),
            ("app/src/cli.rs", "use unixy::top;", &["core/source/entry.rs"]),
            ("app/src/cli.rs", "use kernel::top;", &["core/source/entry.rs"]),
            ("app/src/cli.rs", "use core_lib::top;", &["package:core_lib"]),
            ("app/src/bin/tool/x.rs", "use crate::y::why;", &["app/src/bin/tool/y.rs"]),
            ("core/source/entry.rs", "mod deep;", &["core/source/deep.rs"]),
            ("core/source/deep.rs", "use crate::top;", &["core/source/entry.rs"]),
            ("core/source/deep.rs", "use super::top;", &["core/source/entry.rs"]),
        ],
    },
    Case {
        language: Language::Python,
        files: &[
            "setup.py",
            "src/shop/__init__.py",
            "src/shop/cart.py",
            "src/shop/sub/__init__.py",
            "src/shop/sub/deep.py",
            "tests/test_cart.py",
            "tests/helper.py",
            "services/pay/pay/api.py",
            "tests/apps/site/__init__.py",
            "tests/apps/page.py",
            "tests/apps/deep/down.py",
        ],
        settings: &[],
        imports: &[
            ("src/shop/sub/deep.py", "from ..cart import Cart", &["src/shop/cart.py"]),
            ("src/shop/sub/deep.py", "from .. import cart", &["src/shop/cart.py"]),
            ("src/shop/sub/deep.py", "from . import deep, other", &["src/shop/sub/__init__.py"]),
            ("src/shop/cart.py", "from .sub.deep import f", &["src/shop/sub/deep.py"]),
            (
                "src/shop/cart.py",
                "import shop.sub.deep as d",
                &["src/shop/__init__.py", "src/shop/sub/__init__.py", "src/shop/sub/deep.py"],
            ),
            (
                "tests/test_cart.py",
                "from shop import cart, VERSION",
                &["src/shop/__init__.py", "src/shop/cart.py"],
            ),
            ("tests/test_cart.py", "import helper", &["tests/helper.py"]),
            ("tests/test_cart.py", "from pay.api import go", &["services/pay/pay/api.py"]),
            // Folders of samples beside a test, and no deeper ones, may be on the path.
            ("tests/test_cart.py", "from site import app", &["tests/apps/site/__init__.py"]),
            ("tests/test_cart.py", "import page", &["tests/apps/page.py"]),
            ("tests/test_cart.py", "import down", &["package:down"]),
            ("src/shop/cart.py", "import page", &["package:page"]),
            ("src/shop/cart.py", "import os.path", &["package:os"]),
            ("src/shop/cart.py", "from numpy import array", &["package:numpy"]),
            ("src/shop/cart.py", "from ....... import x", &[]),
        ],
    },
    Case {
        language: Language::TypeScript,
        files: &[
            "package.json",
            "tsconfig.json",
            "tsconfig.base.json",
            "src/app.ts",
            "src/ui/button.tsx",
            "src/ui/index.ts",
            "src/old.js",
            "types/api.d.ts",
            "packages/core/package.json",
            "packages/core/src/index.ts",
            "packages/core/src/fs/read.ts",
            "packages/web/package.json",
            "packages/web/src/main.ts",
            "packages/web/src/views/home.vue",
            "packages/web/lib/in.js",
        ],
        settings: &[
            ("package.json", "{\"name\": \"root\", \"workspaces\": [\"packages/*\"]}"),
            (
                "tsconfig.base.json",
                "{\"compilerOptions\": {\"baseUrl\": \".\", \"paths\": {\"ui/*\": [\"src/ui/*\"], \"api\": [\"types/api\"],},}, /* c */}",
            ),
            ("tsconfig.json", "{// x\n\"extends\": \"./tsconfig.base.json\"}"),
            (
                "packages/core/package.json",
                "{\"name\": \"@x/core\", \"main\": \"dist/index.js\", \"exports\": {\".\": {\"import\": \"./dist/index.mjs\"}, \"./fs/*\": \"./src/fs/*.ts\"}}",
            ),
            ("packages/web/package.json", "{\"name\": \"web\", \"imports\": {\"#in\": \"./lib/in.js\"}}"),
        ],
        imports: &[
            ("src/app.ts", "import { B } from './ui/button';", &["src/ui/button.tsx"]),
            ("src/app.ts", "import x from './ui';", &["src/ui/index.ts"]),
            ("src/app.ts", "import x from './ui/button.js';", &["src/ui/button.tsx"]),
            ("src/ui/button.tsx", "export * from '../old';", &["src/old.js"]),
            ("src/app.ts", "import x from 'ui/button';", &["src/ui/button.tsx"]),
            ("src/app.ts", "import x from 'api';", &["types/api.d.ts"]),
            ("packages/web/src/main.ts", "import x from '@x/core';", &["packages/core/src/index.ts"]),
            (
                "packages/web/src/main.ts",
                "import x from '@x/core/fs/read';",
                &["packages/core/src/fs/read.ts"],
            ),
            ("packages/web/src/main.ts", "import x from '#in';", &["packages/web/lib/in.js"]),
            (
                "packages/web/src/main.ts",
                "import H from '@/views/home.vue';",
                &["packages/web/src/views/home.vue"],
            ),
            ("src/app.ts", "import x from '@scope/pkg/deep';", &["package:@scope/pkg"]),
            ("src/app.ts", "import fs from 'node:fs/promises';", &["package:node:fs"]),
            ("src/app.ts", "import './missing';", &[]),
        ],
    },
    Case {
        language: Language::Go,
        files: &[
            "go.mod",
            "main.go",
            "pkg/a/a.go",
            "pkg/a/b.go",
            "pkg/a/a_test.go",
            "tools/go.mod",
            "tools/x/x.go",
            "fork/y/y.go",
        ],
        settings: &[
            ("go.mod", "module example.org/m\n\nreplace (\n\tother.org/y => ./fork/y\n)\n"),
            ("tools/go.mod", "module example.org/m/tools\n"),
        ],
        imports: &[
            ("main.go", "package m\nimport \"example.org/m/pkg/a\"", &["pkg/a/a.go", "pkg/a/b.go"]),
            ("main.go", "package m\nimport \"example.org/m/tools/x\"", &["tools/x/x.go"]),
            ("main.go", "package m\nimport \"other.org/y\"", &["fork/y/y.go"]),
            ("main.go", "package m\nimport \"net/http\"", &["package:net/http"]),
            ("main.go", "package m\nimport \"github.com/u/r/v2/sub\"", &["package:github.com/u/r"]),
        ],
    },
    Case {
        language: Language::Java,
        files: &[
            "app/src/main/java/org/x/A.java",
            "app/src/main/java/org/x/b/C.java",
            "app/src/main/java/org/x/b/D.java",
            "lib/src/main/java/org/x/b/C.java",
            "app/src/main/kotlin/org/x/K.kt",
        ],
        settings: &[],
        imports: &[
            ("app/src/main/java/org/x/A.java", "import org.x.b.C;", &["app/src/main/java/org/x/b/C.java"]),
            (
                "app/src/main/java/org/x/A.java",
                "import org.x.b.C.Inner;",
                &["app/src/main/java/org/x/b/C.java"],
            ),
            (
                "app/src/main/java/org/x/A.java",
                "import static org.x.b.D.go;",
                &["app/src/main/java/org/x/b/D.java"],
            ),
            ("app/src/main/java/org/x/A.java", "import org.x.K;", &["app/src/main/kotlin/org/x/K.kt"]),
            (
                "app/src/main/java/org/x/A.java",
                "import org.x.b.*;",
                &[
                    "app/src/main/java/org/x/b/C.java",
                    "app/src/main/java/org/x/b/D.java",
                    "lib/src/main/java/org/x/b/C.java",
                ],
            ),
            ("app/src/main/java/org/x/A.java", "import java.util.List;", &["package:java.util"]),
        ],
    },
    Case {
        language: Language::Kotlin,
        files: &[
            "src/main/kotlin/org/x/Main.kt",
            "src/main/kotlin/org/x/util/Strings.kt",
            "src/main/kotlin/org/x/util/T.kt",
            "src/test/kotlin/org/x/util/TTest.kt",
            "src/test/kotlin/org/x/MainTest.kt",
        ],
        settings: &[],
        imports: &[
            ("src/main/kotlin/org/x/Main.kt", "import org.x.util.T", &["src/main/kotlin/org/x/util/T.kt"]),
            (
                "src/main/kotlin/org/x/Main.kt",
                "import org.x.util.trimmed",
                &["src/main/kotlin/org/x/util/Strings.kt", "src/main/kotlin/org/x/util/T.kt"],
            ),
            // Only tests see what tests define.
            (
                "src/test/kotlin/org/x/MainTest.kt",
                "import org.x.util.trimmed",
                &[
                    "src/main/kotlin/org/x/util/Strings.kt",
                    "src/main/kotlin/org/x/util/T.kt",
                    "src/test/kotlin/org/x/util/TTest.kt",
                ],
            ),
            (
                "src/main/kotlin/org/x/Main.kt",
                "import kotlinx.coroutines.launch",
                &["package:kotlinx.coroutines"],
            ),
        ],
    },
    Case {
        language: Language::Scala,
        files: &["src/main/scala/a/b/C.scala", "src/main/scala/a/Main.scala"],
        settings: &[],
        imports: &[
            ("src/main/scala/a/Main.scala", "import a.b.{C, D}", &["src/main/scala/a/b/C.scala"]),
            ("src/main/scala/a/Main.scala", "import scala.collection.mutable", &["package:scala.collection"]),
        ],
    },
    Case {
        language: Language::C,
        files: &[
            "src/main.c",
            "src/util.h",
            "include/api.h",
            "include/x/deep.h",
            "third/one/cfg.h",
            "third/two/cfg.h",
            "only/here/unique.h",
            "deps/string.h",
        ],
        settings: &[],
        imports: &[
            ("src/main.c", "#include \"util.h\"\n", &["src/util.h"]),
            ("src/main.c", "#include \"api.h\"\n", &["include/api.h"]),
            ("src/main.c", "#include <x/deep.h>\n", &["include/x/deep.h"]),
            ("src/main.c", "#include \"unique.h\"\n", &["only/here/unique.h"]),
            ("src/main.c", "#include \"cfg.h\"\n", &[]),
            ("src/main.c", "#include <string.h>\n", &["package:string.h"]),
            ("src/main.c", "#include \"../include/api.h\"\n", &["include/api.h"]),
        ],
    },
    // Builds find third-party headers by an option: the only one of a name is meant, if no header
    // folder has the name and it isn't one of the system's.
    Case {
        language: Language::C,
        files: &[
            "src/net.c",
            "src/sds.h",
            "deps/hiredis/hiredis.h",
            "deps/hiredis/sds.h",
            "deps/lua/src/lua.h",
            "deps/lua/src/lualib.h",
            "deps/jemalloc/lualib.h",
            "vendor/zlib/stdio.h",
            "own/unique.h",
        ],
        settings: &[],
        imports: &[
            ("src/net.c", "#include <hiredis.h>\n", &["deps/hiredis/hiredis.h"]),
            ("src/net.c", "#include <lua.h>\n", &["deps/lua/src/lua.h"]),
            ("src/net.c", "#include <lua/src/lua.h>\n", &["deps/lua/src/lua.h"]),
            ("src/net.c", "#include <sds.h>\n", &["src/sds.h"]),
            ("src/net.c", "#include \"sds.h\"\n", &["src/sds.h"]),
            ("deps/hiredis/hiredis.h", "#include \"sds.h\"\n", &["deps/hiredis/sds.h"]),
            ("src/net.c", "#include <lualib.h>\n", &["package:lualib.h"]),
            ("src/net.c", "#include <stdio.h>\n", &["package:stdio.h"]),
            ("src/net.c", "#include <unique.h>\n", &["package:unique.h"]),
        ],
    },
    Case {
        language: Language::Cpp,
        files: &["a/x.cc", "a/x.hpp", "inc/p/q.hpp"],
        settings: &[],
        imports: &[
            ("a/x.cc", "#include \"x.hpp\"\n", &["a/x.hpp"]),
            ("a/x.cc", "#include <p/q.hpp>\n", &["inc/p/q.hpp"]),
            ("a/x.cc", "#include <vector>\n", &["package:vector"]),
        ],
    },
    Case {
        language: Language::CSharp,
        files: &["Src/Acme.Json/Linq/A.cs", "Src/Acme.Json/B.cs", "Src/App/Main.cs"],
        settings: &[],
        imports: &[
            ("Src/App/Main.cs", "using Acme.Json.Linq;", &["Src/Acme.Json/Linq/A.cs"]),
            ("Src/App/Main.cs", "using Acme.Json;", &["Src/Acme.Json/B.cs"]),
            ("Src/App/Main.cs", "using static Acme.Json.Linq.A;", &["Src/Acme.Json/Linq/A.cs"]),
            ("Src/App/Main.cs", "using System.Linq;", &["package:System"]),
        ],
    },
    Case {
        language: Language::CSharp,
        files: &[
            "Shop.csproj",
            "Models/Cart.cs",
            "Program.cs",
            "api/src/Acme.Api.csproj",
            "api/src/Http/Get.cs",
            "api/src/Start.cs",
        ],
        settings: &[],
        imports: &[
            ("Program.cs", "using Shop.Models;", &["Models/Cart.cs"]),
            ("Program.cs", "using C = Shop.Models.Cart;", &["Models/Cart.cs"]),
            ("Program.cs", "using Acme.Api.Http;", &["api/src/Http/Get.cs"]),
            ("Program.cs", "using Acme.Api;", &["api/src/Start.cs"]),
            ("Models/Cart.cs", "using Shop;", &["Program.cs"]),
            ("Program.cs", "using Other.Models;", &["package:Other"]),
        ],
    },
    Case {
        language: Language::Ruby,
        files: &["lib/shop.rb", "lib/shop/cart.rb", "spec/cart_spec.rb", "gems/x/lib/x/y.rb"],
        settings: &[],
        imports: &[
            ("lib/shop.rb", "require 'shop/cart'", &["lib/shop/cart.rb"]),
            ("lib/shop.rb", "require_relative 'shop/cart'", &["lib/shop/cart.rb"]),
            ("spec/cart_spec.rb", "require 'shop'", &["lib/shop.rb"]),
            ("spec/cart_spec.rb", "require 'x/y'", &["gems/x/lib/x/y.rb"]),
            ("spec/cart_spec.rb", "require 'json'", &["package:json"]),
        ],
    },
    Case {
        language: Language::Php,
        files: &[
            "composer.json",
            "src/Http/Client.php",
            "src/helpers.php",
            "old/Legacy/Thing.php",
            "public/index.php",
        ],
        settings: &[("composer.json", "{\"autoload\": {\"psr-4\": {\"Acme\\\\\": \"src/\"}}}")],
        imports: &[
            ("public/index.php", "<?php use Acme\\Http\\Client;", &["src/Http/Client.php"]),
            ("public/index.php", "<?php require __DIR__ . '/../src/helpers.php';", &["src/helpers.php"]),
            ("public/index.php", "<?php use Old\\Legacy\\Thing;", &["old/Legacy/Thing.php"]),
            ("public/index.php", "<?php use Psr\\Log\\LoggerInterface;", &["package:Psr"]),
        ],
    },
    Case {
        language: Language::Swift,
        files: &["Sources/Core/A.swift", "Sources/Core/B.swift", "Tests/T.swift"],
        settings: &[],
        imports: &[
            ("Tests/T.swift", "@testable import Core", &["Sources/Core/A.swift", "Sources/Core/B.swift"]),
            ("Tests/T.swift", "import XCTest", &["package:XCTest"]),
        ],
    },
    Case {
        language: Language::Lua,
        files: &["lua/a/b.lua", "lua/c/init.lua", "main.lua"],
        settings: &[],
        imports: &[
            ("main.lua", "require 'a.b'", &["lua/a/b.lua"]),
            ("lua/a/b.lua", "require('c')", &["lua/c/init.lua"]),
            ("main.lua", "require 'socket'", &["package:socket"]),
        ],
    },
    Case {
        language: Language::Bash,
        files: &["bin/run.sh", "bin/lib.sh", "ci/env.sh"],
        settings: &[],
        imports: &[
            ("bin/run.sh", "source ./lib.sh", &["bin/lib.sh"]),
            ("bin/run.sh", ". ci/env.sh", &["ci/env.sh"]),
            ("bin/run.sh", "source /etc/profile", &[]),
        ],
    },
    Case {
        language: Language::Css,
        files: &["css/a.css", "css/b.css"],
        settings: &[],
        imports: &[("css/a.css", "@import \"b.css\";", &["css/b.css"])],
    },
    Case {
        language: Language::Html,
        files: &["web/index.html", "web/js/a.js", "web/public/logo.png"],
        settings: &[],
        imports: &[
            ("web/index.html", "<script src=\"js/a.js\"></script>", &["web/js/a.js"]),
            ("web/index.html", "<img src=\"/logo.png\">", &["web/public/logo.png"]),
        ],
    },
    Case {
        language: Language::Markdown,
        files: &["README.md", "docs/a.md", "docs/sub/README.md"],
        settings: &[],
        imports: &[
            ("docs/a.md", "[r](../README.md#x)", &["README.md"]),
            ("README.md", "[s](docs/sub)", &["docs/sub/README.md"]),
        ],
    },
];

#[test]
fn imports_and_the_files_that_they_mean() {
    for case in CASES {
        let paths = PathSet::new(case.files.iter().copied());
        let mut settings = ImportSettings::default();
        case.settings.iter().for_each(|(path, text)| settings.read_settings(path, text));
        for (path, text, expected) in case.imports {
            let facts = analyse(case.language, text).unwrap();
            assert!(!facts.imports.is_empty(), "{:?} {text}", case.language);
            let edges = resolve_imports(path, case.language, &facts.imports, &paths, &settings);
            let all: Vec<String> = edges.meant.iter().flat_map(meant).collect();
            assert_eq!(all, *expected, "{:?} {path}: {text}", case.language);
        }
    }
}

/// Whatever file appears or disappears: a file whose imports then change their meaning had looked
/// up one of the places that the file touches.
#[test]
fn changed_imports_had_looked_up_the_changed_place() {
    for case in CASES {
        let mut settings = ImportSettings::default();
        case.settings.iter().for_each(|(path, text)| settings.read_settings(path, text));
        for gone in case.files {
            let all = PathSet::new(case.files.iter().copied());
            let mut fewer = all.clone();
            fewer.remove(gone);
            for (path, text, _) in case.imports {
                let imports = analyse(case.language, text).unwrap().imports;
                let with = resolve_imports(path, case.language, &imports, &all, &settings);
                let without = resolve_imports(path, case.language, &imports, &fewer, &settings);
                let touched: BTreeSet<LookupKey> = keys_changed_by(gone).collect();
                let looked = |keys: &[LookupKey]| keys.iter().any(|key| touched.contains(key));
                if with.meant != without.meant {
                    assert!(looked(&with.looked) && looked(&without.looked), "{gone} {path}: {text}");
                }
            }
            let mut again = fewer;
            again.add(gone);
            assert_eq!(again, PathSet::new(case.files.iter().copied()));
        }
    }
}

#[test]
fn removing_settings_undoes_adding_them() {
    for case in CASES {
        let mut settings = ImportSettings::default();
        for (path, text) in case.settings {
            assert!(!ImportSettings::languages_of(path).is_empty(), "{path}");
            settings.read_settings(path, text);
            settings.read_settings(path, "no { settings");
            settings.remove_settings(path);
        }
        assert_eq!(settings, ImportSettings::default());
    }
    assert!(ImportSettings::languages_of("src/main.rs").is_empty());
}

#[test]
fn a_configuration_that_extends_itself_ends() {
    let mut settings = ImportSettings::default();
    settings.read_settings("tsconfig.json", "{\"extends\": [\"./tsconfig.json\", \"./a\"]}");
    settings.read_settings("a.json", "{}");
    let imports = analyse(Language::TypeScript, "import 'x';").unwrap().imports;
    let edges = resolve_imports("a.ts", Language::TypeScript, &imports, &PathSet::new(["a.ts"]), &settings);
    assert_eq!(edges.meant, [ImportTarget::Package("x".to_owned())]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// No import makes resolution panic, or mean a missing file or the file itself.
    #[test]
    fn any_import_of_any_language(
        target in "[a-c./\\\\:*@#~é _-]{0,30}",
        names in proptest::collection::vec("[a-c.*/]{0,6}", 0..4),
        up in 0_u32..100_000,
        relative: bool,
        path in "([a-c]{1,2}/){0,4}[a-c]{1,2}\\.[a-c]{1,2}",
        text in "[a-z{}\\[\\]\",:./*\n ]{0,80}",
    ) {
        let paths = PathSet::new([path.as_str(), "a/b.rs", "a/__init__.py", "src/a/b.ts", "a/b/c.java", "c.h"]);
        let mut settings = ImportSettings::default();
        for name in ["Cargo.toml", "a/package.json", "tsconfig.json", "go.mod", "composer.json"] {
            settings.read_settings(name, &text);
        }
        let import = journeyman_syntax::imports::Import { target, names, line: 1, up, relative };
        for language in Language::ALL {
            let edges = resolve_imports(&path, *language, std::slice::from_ref(&import), &paths, &settings);
            prop_assert_eq!(edges.meant.len(), 1);
            for file in edges.files() {
                prop_assert!(file != path && journeyman_index::graph::resolve::Paths::has_file(&paths, file));
            }
        }
    }
}
