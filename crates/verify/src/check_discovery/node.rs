//! JavaScript and TypeScript projects: npm, pnpm, Yarn, Bun.

pub(crate) mod package_json;
mod test_script;

use journeyman_protocol::CheckKind;

use super::project::ProjectDirectory;
use crate::Check;
use package_json::{PackageJson, PackageManager, has_installed_packages};
use test_script::TestScript;

/// Script names that check types, in order of preference.
const TYPE_SCRIPTS: [&str; 6] =
    ["typecheck", "type-check", "check-types", "check:types", "types:check", "tsc"];
/// Script names that check style, in order of preference, and those that repair it.
const LINT_SCRIPTS: [&str; 4] = ["lint", "lint:check", "eslint", "check:lint"];
const LINT_FIX_SCRIPTS: [&str; 3] = ["lint:fix", "lint-fix", "fix:lint"];
/// Maximum number of test files that are read to find out whether Node's own runner runs them.
const MAX_PROBED_FILES: usize = 20;
/// The reason for not running a check that needs a browser.
const NEEDS_BROWSER_REASON: &str = "needs a browser, and mostly a server beside it";

/// A linter that is configured although no script runs it.
struct Linter {
    package: &'static str,
    configured_by: &'static [&'static str],
    command: &'static str,
    fix: &'static str,
}

const LINTERS: [Linter; 3] = [
    Linter {
        package: "@biomejs/biome",
        configured_by: &["biome.json", "biome.jsonc"],
        command: "biome check .",
        fix: "biome check --write .",
    },
    Linter {
        package: "eslint",
        configured_by: &[
            "eslint.config.js",
            "eslint.config.mjs",
            "eslint.config.cjs",
            "eslint.config.ts",
            ".eslintrc.json",
            ".eslintrc.js",
            ".eslintrc.cjs",
            ".eslintrc.yml",
            ".eslintrc.yaml",
            ".eslintrc",
        ],
        command: "eslint .",
        fix: "eslint --fix .",
    },
    Linter {
        package: "oxlint",
        configured_by: &[".oxlintrc.json", "oxlintrc.json"],
        command: "oxlint",
        fix: "oxlint --fix",
    },
];

/// Test runners that are a dependency, in order of preference, with the words that run them once.
const TEST_RUNNERS: [(&str, &str); 4] =
    [("vitest", "vitest run"), ("jest", "jest"), ("mocha", "mocha"), ("ava", "ava")];

/// Programs that run the scripts of all packages, with their configuration and the words that run
/// the tests.
const MONOREPO_TOOLS: [(&str, &str, &str); 2] =
    [("turbo", "turbo.json", "turbo run test"), ("nx", "nx.json", "nx run-many -t test")];

/// Configuration files of runners that drive a browser, by the program and its arguments.
const BROWSER_CONFIGS: [(&str, &str); 8] = [
    ("playwright.config.ts", "playwright test"),
    ("playwright.config.js", "playwright test"),
    ("playwright.config.mjs", "playwright test"),
    ("cypress.config.ts", "cypress run"),
    ("cypress.config.js", "cypress run"),
    ("cypress.json", "cypress run"),
    ("wdio.conf.js", "wdio run wdio.conf.js"),
    ("nightwatch.conf.js", "nightwatch"),
];

/// Finds the scripts for types, lint, tests and the build, or the configured tools where there is
/// no script.
pub(super) fn find_checks(place: &ProjectDirectory<'_>) -> Vec<Check> {
    let Some(text) = place.read("package.json") else { return Vec::new() };
    let manifest = PackageJson::parse(&text);
    let (manager, locked) = manifest.package_manager(place);
    // With the modules there, npm runs any project's scripts as well as its own manager would.
    let runner = if place.has_program(manager.name()) { manager } else { PackageManager::Npm };
    let package = NodePackage { place, manifest: &manifest, ecosystem: manager.name(), runner };
    let mut checks = Vec::new();
    checks.extend(package.type_check());
    checks.extend(package.lint_check());
    checks.extend(package.test_checks());
    checks.extend(package.build_check(&checks));
    match blocked_reason(place, &manifest, manager, locked) {
        Some(reason) => checks.into_iter().map(|check| check.with_blocked(reason.clone())).collect(),
        None => checks,
    }
}

/// A package of the project.
struct NodePackage<'a> {
    place: &'a ProjectDirectory<'a>,
    manifest: &'a PackageJson,
    ecosystem: &'static str,
    runner: PackageManager,
}

impl NodePackage<'_> {
    fn new_check(&self, kind: CheckKind, command: impl Into<String>, why: impl Into<String>) -> Check {
        self.place.new_check(kind, self.ecosystem, command, why)
    }

    /// Returns the check that runs a script.
    fn script_check(&self, kind: CheckKind, name: &str) -> Check {
        self.new_check(kind, self.runner.run_command(name), format!("package.json has a script `{name}`"))
    }

    fn first_script(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.manifest.script(name).is_some())
    }

    fn type_check(&self) -> Option<Check> {
        if let Some(name) = self.first_script(&TYPE_SCRIPTS) {
            return Some(self.script_check(CheckKind::Types, name));
        }
        if !self.manifest.depends_on("typescript") || !self.place.has_file("tsconfig.json") {
            return None;
        }
        let command =
            typescript_compiler(self.place).unwrap_or_else(|| "npx --no-install tsc --noEmit".to_owned());
        Some(self.new_check(CheckKind::Types, command, "tsconfig.json and a dependency on typescript"))
    }

    fn lint_check(&self) -> Option<Check> {
        let linter = LINTERS.iter().find(|linter| {
            let declared = self.manifest.depends_on(linter.package);
            declared && self.place.has_any(linter.configured_by)
        });
        if let Some(name) = self.first_script(&LINT_SCRIPTS) {
            let check = self.script_check(CheckKind::Lint, name);
            let fix = match self.first_script(&LINT_FIX_SCRIPTS) {
                Some(name) => Some(self.runner.run_command(name)),
                None => linter.map(|linter| self.runner.exec_command(linter.fix)),
            };
            return Some(Check { fix, ..check });
        }
        let linter = linter?;
        let why = format!("the project configures {}", linter.package);
        let check = self.new_check(CheckKind::Lint, self.runner.exec_command(linter.command), why);
        Some(check.with_fix(self.runner.exec_command(linter.fix)))
    }

    fn test_checks(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        let script = self.manifest.script("test");
        match script.map_or(TestScript::Placeholder, TestScript::parse) {
            TestScript::Once => checks.push(self.script_check(CheckKind::Test, "test")),
            TestScript::Watching(words) => {
                let why = "the script `test` of package.json waits for changes; this runs it once";
                checks.push(self.new_check(CheckKind::Test, self.runner.exec_command(&words), why));
            }
            TestScript::Browser(name) => {
                let check = self.script_check(CheckKind::Test, "test");
                checks.push(check.with_unasked(format!("{name} {NEEDS_BROWSER_REASON}")));
                checks.extend(self.runner_test_check());
            }
            TestScript::Placeholder => {
                checks.extend(self.monorepo_test_check().or_else(|| self.runner_test_check()));
            }
        }
        let driven = |(file, _): &&(&str, &str)| self.place.has_file(file);
        if let Some((file, words)) = BROWSER_CONFIGS.iter().find(driven) {
            let name = words.split(' ').next().and_then(test_script::find_browser_runner).unwrap_or(file);
            let check = self.new_check(CheckKind::Test, self.runner.exec_command(words), *file);
            let known = checks.iter().any(|check| check.unasked.is_some());
            checks.extend((!known).then(|| check.with_unasked(format!("{name} {NEEDS_BROWSER_REASON}"))));
        }
        checks
    }

    /// Returns the tests of a repository of several packages, by the program that runs their
    /// scripts.
    fn monorepo_test_check(&self) -> Option<Check> {
        let (name, file, words) = MONOREPO_TOOLS.into_iter().find(|(name, file, _)| {
            let has_tests = |text: String| text.contains("\"test\"");
            self.manifest.depends_on(name) && self.place.read(file).is_some_and(has_tests)
        })?;
        let why = format!("{file} has tests, and a dependency on {name}");
        Some(self.new_check(CheckKind::Test, self.runner.exec_command(words), why))
    }

    /// Returns the tests by a runner that is a dependency, or by Node's own.
    fn runner_test_check(&self) -> Option<Check> {
        let is_test = |path: &&[u8]| {
            is_test_file(path) && !path.starts_with(b"node_modules/") && !self.is_in_nested_package(path)
        };
        let tests: Vec<&[u8]> = self.place.files().filter(is_test).collect();
        if tests.is_empty() {
            return None;
        }
        if let Some((name, words)) = TEST_RUNNERS.into_iter().find(|(name, _)| self.manifest.depends_on(name))
        {
            let why = format!("tests, and a dependency on {name}");
            return Some(self.new_check(CheckKind::Test, self.runner.exec_command(words), why));
        }
        let texts: Vec<String> = tests
            .iter()
            .take(MAX_PROBED_FILES)
            .filter_map(|path| self.place.read(std::str::from_utf8(path).ok()?))
            .collect();
        let uses = texts.iter().any(|text| text.contains("node:test"));
        if texts.iter().any(|text| text.contains("bun:test"))
            || !uses && self.ecosystem == PackageManager::Bun.name()
        {
            let check = self.new_check(CheckKind::Test, "bun test", "tests of Bun's own runner");
            return Some(self.place.block_without_program("bun", "https://bun.sh", check));
        }
        let check = self.new_check(CheckKind::Test, "node --test", "tests of Node's own runner");
        uses.then(|| self.place.block_without_program("node", "https://nodejs.org", check))
    }

    /// Returns true if the file lies in another package beneath this one.
    fn is_in_nested_package(&self, path: &[u8]) -> bool {
        let Ok(path) = std::str::from_utf8(path) else { return false };
        let above = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        above.into_iter().any(|directory| self.place.has_file(&format!("{directory}/package.json")))
    }

    /// Returns the build. It takes long and writes files, so it runs only if there is no other
    /// check.
    fn build_check(&self, others: &[Check]) -> Option<Check> {
        self.manifest.script("build")?;
        let build = self.script_check(CheckKind::Build, "build");
        let proven = others
            .iter()
            .any(|check| check.unasked.is_none() && matches!(check.kind, CheckKind::Types | CheckKind::Test));
        Some(match proven {
            true => build
                .with_unasked("types or tests say more and write nothing; `jm check --kind build` runs it"),
            false => build,
        })
    }
}

/// Returns true for a file that a test runner takes for a test by its name.
fn is_test_file(path: &[u8]) -> bool {
    const ENDINGS: [&[u8]; 10] = [
        b".test.js",
        b".test.mjs",
        b".test.cjs",
        b".test.ts",
        b".test.tsx",
        b".test.jsx",
        b".spec.js",
        b".spec.ts",
        b".spec.tsx",
        b".spec.jsx",
    ];
    let in_directory = path.starts_with(b"test/") && (path.ends_with(b".js") || path.ends_with(b".mjs"));
    in_directory || ENDINGS.iter().any(|ending| path.ends_with(ending))
}

/// Returns the reason why no script can run here, if there is one.
fn blocked_reason(
    place: &ProjectDirectory<'_>,
    manifest: &PackageJson,
    manager: PackageManager,
    locked: bool,
) -> Option<String> {
    if !manifest.dependencies.is_empty() && !has_installed_packages(place) {
        let install = manager.install_command(locked);
        return Some(format!("its dependencies are not installed; `{install}` installs them"));
    }
    if !place.has_program(manager.name()) && !place.has_program("npm") {
        return Some(format!("{} is not installed; https://nodejs.org has npm", manager.name()));
    }
    None
}

/// Returns the installed TypeScript compiler, as a command from this directory.
fn typescript_compiler(place: &ProjectDirectory<'_>) -> Option<String> {
    const TYPESCRIPT_COMPILER: &str = "node_modules/.bin/tsc";
    if place.has_file(TYPESCRIPT_COMPILER) {
        return Some(format!("./{TYPESCRIPT_COMPILER} --noEmit"));
    }
    let depth = place.directory.map_or(0, |directory| directory.components().count());
    let above = place.root_directory().has_file(TYPESCRIPT_COMPILER);
    above.then(|| format!("{}{TYPESCRIPT_COMPILER} --noEmit", "../".repeat(depth)))
}
