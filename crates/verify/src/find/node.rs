//! JavaScript and TypeScript projects: npm, pnpm, Yarn, Bun.

use journeyman_protocol::CheckKind;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::project::ProjectDirectory;
use super::shell::quoted;
use crate::Check;

/// Script names that check types, in order of preference.
const TYPE_SCRIPTS: [&str; 5] = ["typecheck", "type-check", "check-types", "check:types", "tsc"];
/// The text that `npm init` writes in place of a test.
const PLACEHOLDER_TEST: &str = "no test specified";

/// The fields of `package.json` that are read. Other fields, and fields of another type, are
/// ignored.
#[derive(Default)]
struct Manifest {
    scripts: Map<String, Value>,
    dependencies: bool,
    typescript: bool,
    package_manager: Option<String>,
}

/// A program that runs a project's scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manager {
    Npm,
    Pnpm,
    Yarn,
    Bun,
}

impl Manager {
    const fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pnpm => "pnpm",
            Self::Yarn => "yarn",
            Self::Bun => "bun",
        }
    }

    /// Returns the command that runs `script`.
    fn run(self, script: &str) -> String {
        match (self, script) {
            (Self::Npm, "test") => "npm test".to_owned(),
            _ => format!("{} run {}", self.name(), quoted(script)),
        }
    }

    /// Returns the command that installs the dependencies.
    const fn install(self, locked: bool) -> &'static str {
        match (self, locked) {
            (Self::Npm, true) => "npm ci",
            (Self::Npm, false) => "npm install",
            (Self::Pnpm, _) => "pnpm install",
            (Self::Yarn, _) => "yarn install",
            (Self::Bun, _) => "bun install",
        }
    }
}

/// The scripts for types, lint and tests; `tsc` itself where TypeScript is configured without a
/// script.
pub(super) fn find(place: &ProjectDirectory<'_>) -> Vec<Check> {
    let Some(text) = place.read("package.json") else { return Vec::new() };
    let manifest = read(&text);
    let (manager, locked) = manager(place, &manifest);
    let ecosystem = manager.name();
    let blocked = why_blocked(place, &manifest, manager, locked);
    let mut checks = Vec::new();
    // With the modules there, npm runs any project's scripts as well as its own manager would.
    let runner = if place.has_program(ecosystem) { manager } else { Manager::Npm };
    let mut script = |kind, name: &str| {
        checks.push(place.check(
            kind,
            ecosystem,
            runner.run(name),
            format!("package.json has a script `{name}`"),
        ));
    };
    let has = |name: &str| manifest.scripts.get(name).is_some_and(Value::is_string);
    let types = TYPE_SCRIPTS.into_iter().find(|name| has(name));
    if let Some(name) = types {
        script(CheckKind::Types, name);
    }
    if has("lint") {
        script(CheckKind::Lint, "lint");
    }
    let tests = manifest.scripts.get("test").and_then(Value::as_str);
    if tests.is_some_and(|test| !test.contains(PLACEHOLDER_TEST) && !test.trim().is_empty()) {
        script(CheckKind::Test, "test");
    }
    if types.is_none() && manifest.typescript && place.has_file("tsconfig.json") {
        let command =
            typescript_compiler(place).unwrap_or_else(|| "npx --no-install tsc --noEmit".to_owned());
        checks.push(place.check(
            CheckKind::Types,
            ecosystem,
            command,
            "tsconfig.json and a dependency on typescript",
        ));
    }
    match blocked {
        Some(reason) => checks.into_iter().map(|check| check.blocked(reason.clone())).collect(),
        None => checks,
    }
}

fn read(text: &str) -> Manifest {
    #[derive(Deserialize)]
    struct Raw {
        #[serde(default)]
        scripts: Value,
        #[serde(default)]
        dependencies: Value,
        #[serde(default, rename = "devDependencies")]
        dev_dependencies: Value,
        #[serde(default, rename = "packageManager")]
        package_manager: Value,
    }
    let Ok(raw) = serde_json::from_str::<Raw>(text.trim_start_matches('\u{feff}')) else {
        return Manifest::default();
    };
    let depends = |on: &Value| on.as_object().is_some_and(|table| !table.is_empty());
    let on_typescript = |on: &Value| on.get("typescript").is_some();
    Manifest {
        dependencies: depends(&raw.dependencies) || depends(&raw.dev_dependencies),
        typescript: on_typescript(&raw.dependencies) || on_typescript(&raw.dev_dependencies),
        package_manager: raw.package_manager.as_str().map(str::to_owned),
        scripts: match raw.scripts {
            Value::Object(scripts) => scripts,
            _ => Map::new(),
        },
    }
}

/// The project's package manager by its lock file, here or at the root, and whether there is one.
fn manager(place: &ProjectDirectory<'_>, manifest: &Manifest) -> (Manager, bool) {
    const LOCK_FILES: [(&str, Manager); 6] = [
        ("package-lock.json", Manager::Npm),
        ("npm-shrinkwrap.json", Manager::Npm),
        ("pnpm-lock.yaml", Manager::Pnpm),
        ("yarn.lock", Manager::Yarn),
        ("bun.lock", Manager::Bun),
        ("bun.lockb", Manager::Bun),
    ];
    let root = ProjectDirectory { project: place.project, directory: None };
    for place in [place, &root] {
        if let Some((_, manager)) = LOCK_FILES.into_iter().find(|(lock, _)| place.has_file(lock)) {
            return (manager, true);
        }
    }
    let named = manifest.package_manager.as_deref().and_then(|named| named.split('@').next());
    let all = [Manager::Npm, Manager::Pnpm, Manager::Yarn, Manager::Bun];
    let manager = all.into_iter().find(|manager| Some(manager.name()) == named);
    (manager.unwrap_or(Manager::Npm), false)
}

/// Why no script can run here.
fn why_blocked(
    place: &ProjectDirectory<'_>,
    manifest: &Manifest,
    manager: Manager,
    locked: bool,
) -> Option<String> {
    let root = ProjectDirectory { project: place.project, directory: None };
    let installed = [place, &root].iter().any(|place| {
        // It may be a link to modules that lie elsewhere.
        let modules = place.has_directory("node_modules") || place.has_link("node_modules");
        modules || place.has_any(&[".pnp.cjs", ".pnp.js"])
    });
    if manifest.dependencies && !installed {
        let install = manager.install(locked);
        return Some(format!("its dependencies are not installed; `{install}` installs them"));
    }
    if !place.has_program(manager.name()) && !place.has_program("npm") {
        return Some(format!("{} is not installed; https://nodejs.org has npm", manager.name()));
    }
    None
}

/// The installed TypeScript compiler, as a command from this directory.
fn typescript_compiler(place: &ProjectDirectory<'_>) -> Option<String> {
    const TYPESCRIPT_COMPILER: &str = "node_modules/.bin/tsc";
    if place.has_file(TYPESCRIPT_COMPILER) {
        return Some(format!("./{TYPESCRIPT_COMPILER} --noEmit"));
    }
    let root = ProjectDirectory { project: place.project, directory: None };
    let depth = place.directory.map_or(0, |directory| directory.components().count());
    root.has_file(TYPESCRIPT_COMPILER)
        .then(|| format!("{}{TYPESCRIPT_COMPILER} --noEmit", "../".repeat(depth)))
}
