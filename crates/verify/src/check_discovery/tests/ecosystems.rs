//! Tools of further ecosystems, and what is listed but not run unasked.

use super::{ALL, found, listed};

/// Files with their texts, programs, checks.
type Row<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], &'a [&'a str]);

/// Files with their texts, the program, the check.
type ToolRow<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str);

fn check_rows(rows: &[Row<'_>]) {
    for (files, programs, expected) in rows {
        assert_eq!(listed(files, programs), *expected, "{files:?}");
    }
}

#[test]
fn meson_projects() {
    let build = "build=$(mktemp -d) && meson setup \"$build\" && meson";
    let tests = format!("tests: {build} test -C \"$build\" --print-errorlogs");
    let only = format!("build: {build} compile -C \"$build\"");
    check_rows(&[
        (
            &[("meson.build", "project('x', 'c')\nsubdir('t')\n"), ("t/meson.build", "  test('a', exe)\n")],
            &["meson"],
            &[&tests],
        ),
        (&[("meson.build", "project('x', 'c')\n")], &["meson"], &[&only]),
        (&[("meson.build", "executable('x', 'x.c')\n")], &["meson"], &[]),
        (
            &[("meson.build", "project('x')\n")],
            &[],
            &[&format!("{only} [meson is not installed; https://mesonbuild.com has it]")],
        ),
    ]);
}

#[test]
fn projects_with_a_configure_script() {
    let copy = "build=$(mktemp -d) && tar -cf - . | tar -xof - -C \"$build\" && cd \"$build\"";
    let programs = &["autoreconf", "make"];
    let made = format!("tests: {copy} && autoreconf -i && ./configure && make check VERBOSE=1");
    let shipped = format!("tests: {copy} && ./configure && make check VERBOSE=1");
    let own = format!("tests: {copy} && ./configure && make test");
    let only = format!("build: {copy} && autoreconf -i && ./configure && make");
    let tests = "bin_PROGRAMS = a\nTESTS = t/one\n";
    check_rows(&[
        (&[("configure.ac", "AC_INIT"), ("Makefile.am", tests)], programs, &[&made]),
        (
            &[("configure.ac", ""), ("Makefile.am", "SUBDIRS = t\n"), ("t/Makefile.am", tests)],
            programs,
            &[&made],
        ),
        (
            &[("configure.ac", ""), ("configure", "#!"), ("Makefile.am", "check-local:\n\tx\n")],
            &["make"],
            &[&shipped],
        ),
        (&[("configure", "#!"), ("Makefile.in", "all: a\ntest: a\n\t./a\n")], programs, &[&own]),
        (&[("configure.ac", ""), ("Makefile.am", "bin_PROGRAMS = a\n")], programs, &[&only]),
        // Configured, or somebody else's.
        (
            &[("configure.ac", ""), ("Makefile.am", tests), ("Makefile", "check: a\n")],
            programs,
            &["tests: make check"],
        ),
        (&[("configure", "a text")], programs, &[]),
        (
            &[("configure.ac", ""), ("Makefile.am", tests)],
            &["make"],
            &[&format!("{made} [autoreconf is not installed; a package `autoconf` has it]")],
        ),
    ]);
}

#[test]
fn ruby_projects() {
    let programs = &["ruby", "bundle", "rspec", "rake", "rubocop"];
    check_rows(&[
        (&[("Gemfile", ""), ("spec/a_spec.rb", "")], programs, &["tests: bundle exec rspec"]),
        (&[("spec/a_spec.rb", "")], programs, &["tests: rspec"]),
        (
            &[("spec/a_spec.rb", "")],
            &["ruby"],
            &["tests: rspec [rspec is not installed; `gem install rspec` installs it]"],
        ),
        (
            &[("Gemfile", ""), ("Rakefile", "Rake::TestTask.new\n"), ("test/a_test.rb", "")],
            programs,
            &["tests: bundle exec rake test"],
        ),
        (
            &[("test/models/test_a.rb", "")],
            programs,
            &[
                "tests: ruby -Ilib -Itest -e 'Dir.glob(\"test/**/test_*.rb\") { |file| require File.expand_path(file) }'",
            ],
        ),
        (
            &[("test/a_test.rb", ""), ("test/test_b.rb", ""), ("test/test_helper.rb", "")],
            programs,
            &[
                "tests: ruby -Ilib -Itest -e 'Dir.glob(\"test/**/{*_test,test_*}.rb\") { |file| require File.expand_path(file) }'",
            ],
        ),
        (
            &[("Gemfile", ""), ("bin/rails", ""), ("test/a_test.rb", "")],
            programs,
            &["tests: ruby bin/rails test"],
        ),
        (&[("Rakefile", "task test: :build do\n"), ("a.rb", "")], programs, &["tests: rake test"]),
        (&[("Rakefile", "task :tests_all\n")], programs, &[]),
        (&[("Gemfile", ""), (".rubocop.yml", "")], programs, &["lint: bundle exec rubocop --format emacs"]),
        (
            &[("Gemfile", ""), (".rspec", "")],
            &[],
            &["tests: bundle exec rspec [ruby is not installed; https://www.ruby-lang.org has it]"],
        ),
    ]);
    let changed = found(&[("test/test_a.rb", ""), ("lib/a.rb", "")], &["ruby"], &["lib/a.rb"]);
    assert_eq!(changed[0], "types: ruby -wc lib/a.rb");
}

#[test]
fn php_projects() {
    let manifest =
        r#"{"require":{"php":">=8","acme/x":"1"},"scripts":{"test":"phpunit","phpstan":"phpstan"}}"#;
    let plain = r#"{"require":{"php":">=8","ext-json":"*"}}"#;
    let installed = ("vendor/autoload.php", "");
    check_rows(&[
        (
            &[("composer.json", manifest), installed],
            &["php", "composer"],
            &["types: composer run-script phpstan", "tests: composer run-script test"],
        ),
        (
            &[("composer.json", manifest)],
            &["php", "composer"],
            &[
                "types: composer run-script phpstan [its dependencies are not installed; `composer install` installs them]",
                "tests: composer run-script test [its dependencies are not installed; `composer install` installs them]",
            ],
        ),
        (
            &[
                ("composer.json", manifest),
                installed,
                ("vendor/bin/phpunit", ""),
                ("phpstan.neon", ""),
                ("vendor/bin/phpstan", ""),
            ],
            &["php"],
            &[
                "types: php vendor/bin/phpstan analyse --no-progress --error-format=raw",
                "tests: php vendor/bin/phpunit tests",
            ],
        ),
        (&[("composer.json", plain), ("phpunit.xml.dist", "")], &["php", "phpunit"], &["tests: phpunit"]),
        (&[("composer.json", plain)], &["php"], &[]),
        (
            &[("phpunit.xml", "")],
            &["php"],
            &["tests: phpunit [phpunit is not installed; 'composer require --dev phpunit' has it]"],
        ),
    ]);
}

#[test]
fn dotnet_and_elixir() {
    let tests = r#"<PackageReference Include="Microsoft.NET.Test.Sdk" />"#;
    check_rows(&[
        (&[("A.sln", ""), ("T/T.csproj", tests)], &["dotnet"], &["tests: dotnet test --nologo"]),
        (&[("A.csproj", "")], &["dotnet"], &["build: dotnet build --nologo"]),
        (
            &[("mix.exs", ""), (".formatter.exs", "")],
            &["mix"],
            &["lint: mix format --check-formatted", "tests: mix test --no-color"],
        ),
        (
            &[("mix.exs", "{:jason, \"1\"}"), ("mix.lock", "")],
            &["mix"],
            &[
                "tests: mix test --no-color [its dependencies are not installed; `mix deps.get` installs them]",
            ],
        ),
    ]);
    let nested = found(&[("svc/A.csproj", ""), ("svc/src/a.cs", "")], &["dotnet"], &["svc/src/a.cs"]);
    assert_eq!(nested, ["build: dotnet build --nologo (in svc)"]);
}

#[test]
fn one_program_that_builds_and_tests() {
    let cases: [ToolRow<'_>; 26] = [
        (&[("dune-project", ""), ("test/dune", "(test (name t))")], "dune", "tests: dune test"),
        (&[("dune-project", ""), ("bin/dune", "(executable (name a))")], "dune", "build: dune build"),
        (&[("build.zig", "const t = b.step(\"test\", \"x\");")], "zig", "tests: zig build test"),
        (&[("build.zig", "")], "zig", "build: zig build"),
        (&[("Package.swift", ".testTarget(name: \"T\")")], "swift", "tests: swift test"),
        (&[("Package.swift", ".target(name: \"T\")")], "swift", "build: swift build"),
        (&[("build.sbt", "")], "sbt", "tests: sbt -batch -no-colors test"),
        (&[("build.mill", "")], "mill", "tests: mill __.test"),
        (&[("build.mill", ""), ("mill", "")], "", "tests: sh ./mill __.test"),
        (&[("stack.yaml", "")], "stack", "tests: stack test"),
        (&[("a.cabal", "test-suite spec\n")], "cabal", "tests: cabal test all"),
        (&[("a.cabal", "library\n")], "cabal", "build: cabal build all"),
        (&[("rebar.config", ""), ("test/a_tests.erl", "")], "rebar3", "tests: rebar3 do eunit, ct"),
        (&[("gleam.toml", ""), ("test/a_test.gleam", "")], "gleam", "tests: gleam test"),
        (&[("gleam.toml", "")], "gleam", "types: gleam check"),
        (&[("project.clj", "")], "lein", "tests: lein -o test"),
        (&[("shard.yml", ""), ("spec/a_spec.cr", "")], "crystal", "tests: crystal spec --no-color"),
        (&[("a.nimble", ""), ("tests/test1.nim", "")], "nimble", "tests: nimble test -y"),
        (&[("dub.json", "")], "dub", "tests: dub test"),
        (
            &[("Project.toml", ""), ("test/runtests.jl", "")],
            "julia",
            "tests: julia --project=. -e 'using Pkg; Pkg.test()'",
        ),
        (&[("MODULE.bazel", "")], "bazel", "tests: bazel test //..."),
        (&[("build.xml", "<target name=\"test\"/>")], "ant", "tests: ant test"),
        (&[("cpanfile", ""), ("t/a.t", "")], "prove", "tests: prove -lr t"),
        (&[(".busted", "")], "busted", "tests: busted -o TAP"),
        (&[("SConstruct", "")], "scons", "build: scons -Q"),
        (&[("deno.json", "{}"), ("a_test.ts", "")], "deno", "tests: deno test --no-prompt --allow-all"),
    ];
    for (files, program, expected) in cases {
        assert_eq!(listed(files, &[program]), [expected], "{files:?}");
        if !program.is_empty() {
            let without = listed(files, &[]);
            assert_eq!(without.len(), 1, "{files:?}");
            assert!(
                without[0].starts_with(&format!("{expected} [{program} is not installed; ")),
                "{without:?}"
            );
        }
    }
    check_rows(&[
        (
            &[("dune-project", ""), (".ocamlformat", ""), ("t/dune", "(tests (names a))")],
            &["dune"],
            &["lint: dune build @fmt", "tests: dune test"],
        ),
        (
            &[("pubspec.yaml", "name: a\n"), ("test/a_test.dart", "")],
            &["dart"],
            &["types: dart analyze", "tests: dart test"],
        ),
        (
            &[("pubspec.yaml", "  flutter:\n    sdk: flutter\n"), ("test/a_test.dart", "")],
            &["flutter"],
            &["types: flutter analyze", "tests: flutter test"],
        ),
        (&[("cpanfile", ""), ("a.pl", "")], &["prove"], &[]),
        (
            &[("stack.yaml", ""), ("a.cabal", "library\n")],
            &["stack", "cabal"],
            &["build: cabal build all {another ecosystem tests this directory}", "tests: stack test"],
        ),
        (
            &[("Cargo.toml", ""), ("MODULE.bazel", "")],
            &["cargo", "bazel"],
            &["tests: cargo test", "tests: bazel test //... {another ecosystem tests this directory}"],
        ),
    ]);
    let nested = found(&[("lib/a.cabal", ""), ("lib/src/A.hs", "")], &["cabal"], &["lib/src/A.hs"]);
    assert_eq!(nested, ["build: cabal build all (in lib)"]);
}

#[test]
fn deno_and_bun() {
    let tasks = r#"{"tasks": {"test": "deno test -A", "check": "deno check ."}, "lint": {}}"#;
    check_rows(&[
        (
            &[("deno.json", tasks), ("a_test.ts", "")],
            &["deno"],
            &["types: deno task check", "lint: deno lint", "tests: deno task test"],
        ),
        (&[("deno.jsonc", "{ // no tests\n}"), ("mod.ts", "")], &["deno"], &["types: deno check ."]),
        (&[("package.json", "{}"), ("bun.lock", ""), ("a.test.ts", "")], &["bun"], &["tests: bun test"]),
        (
            &[("package.json", "{}"), ("a.test.ts", "import { test } from 'bun:test';")],
            &["npm"],
            &["tests: bun test [bun is not installed; https://bun.sh has it]"],
        ),
        (
            &[
                ("package.json", r#"{"devDependencies": {"turbo": "2"}}"#),
                ("node_modules/turbo/x", ""),
                ("turbo.json", r#"{"tasks": {"test": {}}}"#),
            ],
            &["npm"],
            &["tests: npx --no-install turbo run test"],
        ),
    ]);
}

#[test]
fn files_of_named_commands() {
    let covered = "{another runner tests this directory, which this mostly calls}";
    check_rows(&[
        (
            &[("justfile", "test: build\n  x\nlint:\n  y\n")],
            &["just"],
            &["lint: just lint", "tests: just test"],
        ),
        (&[("Taskfile.yml", "tasks:\n  test:\n    cmds: [x]\n")], &["task"], &["tests: task test"]),
        (
            &[("Makefile", "test:\n\tcargo test\n"), ("Cargo.toml", "")],
            ALL,
            &["tests: cargo test", &format!("tests: make test {covered}")],
        ),
        (
            &[("Makefile", "test:\n\tx\n"), ("justfile", "test:\n  make test\n")],
            &["make", "just"],
            &["tests: make test", &format!("tests: just test {covered}")],
        ),
        (&[("Makefile", "all: a\n"), ("a.c", "")], &["make"], &["build: make"]),
        (&[("Makefile", "tests:\n\tx\n")], &["make"], &["tests: make tests"]),
        (&[("Makefile", "all: a\n"), ("a.txt", "")], &["make"], &[]),
        (
            &[
                (
                    "Makefile",
                    "SUBDIRS = src\n.DEFAULT:\n\tfor dir in $(SUBDIRS); do $(MAKE) -C $$dir $@; done\n",
                ),
                ("src/Makefile", "all: a\ntest: all\n\t./t\n"),
                ("src/a.c", ""),
            ],
            &["make"],
            &["tests: make test"],
        ),
        (
            &[("Makefile", ".DEFAULT:\n\tcd src && $(MAKE) $@\n"), ("src/Makefile", "check:\n\t./t\n")],
            &["make"],
            &["tests: make check"],
        ),
    ]);
}

#[test]
fn what_needs_a_browser_or_a_network_is_only_listed() {
    let browser = "{Playwright needs a browser, and mostly a server beside it}";
    let e2e = format!("tests: npx --no-install playwright test {browser}");
    let unit = r#"{"scripts":{"test":"node --test","build":"tsc"}}"#;
    let only = r#"{"scripts":{"test":"playwright test"}}"#;
    let fetched = "{its hooks are downloaded from other repositories; checks run offline}";
    let environments = "{it makes environments and downloads packages for them; checks run offline}";
    let audit = "{it asks a database on the network; `jm check --security` runs it}";
    check_rows(&[
        (
            &[("package.json", unit), ("playwright.config.ts", "")],
            &["npm"],
            &[
                "build: npm run build {types or tests say more and write nothing; `jm check --kind build` runs it}",
                "tests: npm test",
                &e2e,
            ],
        ),
        (
            &[("package.json", only), ("playwright.config.ts", "")],
            &["npm"],
            &[&format!("tests: npm test {browser}")],
        ),
        (&[("package.json", r#"{"scripts":{"build":"webpack"}}"#)], &["npm"], &["build: npm run build"]),
        (
            &[(".pre-commit-config.yaml", "repos:\n- repo: https://github.com/x/y\n")],
            &["pre-commit"],
            &[&format!("lint: pre-commit run --all-files {fetched}")],
        ),
        (
            &[(".pre-commit-config.yaml", "repos:\n  - repo: local\n")],
            &["pre-commit"],
            &["lint: pre-commit run --all-files"],
        ),
        (
            &[("tox.ini", "[testenv]\n"), ("noxfile.py", ""), ("pyproject.toml", "")],
            &["python3", "tox", "nox"],
            &[&format!("tests: tox {environments}"), &format!("tests: nox {environments}")],
        ),
        (
            &[("Cargo.toml", ""), ("Cargo.lock", "")],
            &["cargo", "cargo-audit", "gitleaks"],
            &[
                "tests: cargo test",
                &format!("security: cargo audit {audit}"),
                "security: gitleaks detect --no-git --redact --no-banner --source .",
            ],
        ),
    ]);
}

#[test]
fn javascript_tools_without_scripts() {
    let biome = r#"{"devDependencies":{"@biomejs/biome":"2","vitest":"3"}}"#;
    let eslint = r#"{"scripts":{"lint":"eslint ."},"devDependencies":{"eslint":"9"}}"#;
    let modules = ("node_modules/x/y", "");
    check_rows(&[
        (
            &[("package.json", biome), ("biome.json", ""), ("src/a.test.ts", ""), modules],
            &["npm"],
            &["lint: npx --no-install biome check .", "tests: npx --no-install vitest run"],
        ),
        (
            &[("package.json", "{}"), ("test/a.js", "require('node:test')")],
            &["npm", "node"],
            &["tests: node --test"],
        ),
        (&[("package.json", "{}"), ("test/a.js", "")], &["npm", "node"], &[]),
        (
            &[("package.json", r#"{"scripts":{"test":"jest --watch"}}"#)],
            &["npm"],
            &["tests: npx --no-install jest"],
        ),
        (
            &[("package.json", r#"{"scripts":{"test":"vitest"}}"#), ("pnpm-lock.yaml", "")],
            &["pnpm"],
            &["tests: pnpm exec vitest run"],
        ),
        (&[("package.json", eslint), ("eslint.config.js", ""), modules], &["npm"], &["lint: npm run lint"]),
    ]);
}

#[test]
fn python_managers_and_tools() {
    let test = ("tests/test_a.py", "import unittest\ndef test(): pass\n");
    let lock = "[[package]]\nname = \"pytest\"\n";
    let group = "[dependency-groups]\ndev = [\"pytest>=8\"]\n";
    let poetry = "[tool.poetry.group.dev.dependencies]\npytest = \"^8\"\n";
    check_rows(&[
        (
            &[("pyproject.toml", "[tool.ruff]\n"), ("uv.lock", lock), test],
            &["uv", "python3"],
            &[
                "lint: uv run --offline --frozen ruff check --no-fix --output-format=concise .",
                "tests: uv run --offline --frozen python -m pytest -q",
            ],
        ),
        (
            &[("pyproject.toml", poetry), ("poetry.lock", ""), test],
            &["poetry"],
            &["tests: poetry run python -m pytest -q"],
        ),
        (
            &[("pyproject.toml", ""), ("poetry.lock", ""), test],
            &["poetry"],
            &["tests: poetry run python -m unittest discover -s tests"],
        ),
        (
            &[("pyproject.toml", group), test],
            &["python3"],
            &[
                "tests: python3 -m pytest -q [pytest is not installed; `python3 -m pip install pytest` installs it]",
            ],
        ),
        (
            &[
                ("uv.lock", lock),
                ("pyproject.toml", ""),
                (".venv/pyvenv.cfg", ""),
                (".venv/bin/pytest", ""),
                test,
            ],
            &["uv"],
            &["tests: .venv/bin/python -m pytest -q"],
        ),
        (
            &[("requirements-dev.txt", "pytest==8.0\n"), ("pyproject.toml", ""), test],
            &["python3", "pytest"],
            &["tests: python3 -m pytest -q"],
        ),
        (&[("pyrightconfig.json", ""), ("pyproject.toml", "")], &["python3", "pyright"], &["types: pyright"]),
        (
            &[("manage.py", "DJANGO_SETTINGS_MODULE"), ("requirements.txt", ""), ("app/test_a.py", "")],
            &["python3"],
            &["tests: python3 manage.py test"],
        ),
    ]);
}

#[test]
fn linters_carry_the_command_that_repairs() {
    use super::{find_in_project, sketch};
    type Fix<'a> = (&'a [(&'a str, &'a str)], &'a str);
    let cases: &[Fix<'_>] = &[
        (&[("pyproject.toml", "[tool.ruff]\n")], "ruff check --fix ."),
        (
            &[("Cargo.toml", ""), ("clippy.toml", "")],
            "cargo clippy --all-targets --fix --allow-dirty --allow-staged",
        ),
        (&[("package.json", r#"{"scripts":{"lint":"x","lint:fix":"y"}}"#)], "npm run lint:fix"),
        (
            &[
                ("package.json", r#"{"scripts":{"lint":"eslint ."},"devDependencies":{"eslint":"9"}}"#),
                (".eslintrc.json", ""),
            ],
            "npx --no-install eslint --fix .",
        ),
        (&[("Gemfile", ""), (".rubocop.yml", "")], "bundle exec rubocop -a"),
        (&[("go.mod", ""), (".golangci.yml", "")], "golangci-lint run --fix"),
    ];
    for (files, expected) in cases {
        let checks = find_in_project(&sketch(files, ALL, &[]));
        let fix = checks.iter().find_map(super::Check::to_fix_check).unwrap();
        assert_eq!((fix.command.as_str(), fix.fix), (*expected, None), "{files:?}");
    }
}
