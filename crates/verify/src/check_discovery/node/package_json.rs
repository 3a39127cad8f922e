//! The fields of `package.json` that checks need, and the package manager that runs its scripts.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::project::ProjectDirectory;
use super::super::shell::quote_word;

/// The fields of `package.json` that are read. Other fields, and fields of another type, are
/// ignored.
#[derive(Default)]
pub(crate) struct PackageJson {
    pub(crate) name: Option<String>,
    pub(crate) scripts: Map<String, Value>,
    /// The names of all packages that the package depends on.
    pub(crate) dependencies: Vec<String>,
    package_manager: Option<String>,
}

impl PackageJson {
    pub(crate) fn parse(text: &str) -> Self {
        #[derive(Deserialize)]
        struct RawPackageJson {
            #[serde(default)]
            name: Value,
            #[serde(default)]
            scripts: Value,
            #[serde(default)]
            dependencies: Value,
            #[serde(default, rename = "devDependencies")]
            dev_dependencies: Value,
            #[serde(default, rename = "packageManager")]
            package_manager: Value,
        }
        let Ok(raw) = serde_json::from_str::<RawPackageJson>(text.trim_start_matches('\u{feff}')) else {
            return Self::default();
        };
        let tables = [&raw.dependencies, &raw.dev_dependencies].into_iter().filter_map(Value::as_object);
        Self {
            name: raw.name.as_str().map(str::to_owned),
            dependencies: tables.flat_map(|table| table.keys().cloned()).collect(),
            package_manager: raw.package_manager.as_str().map(str::to_owned),
            scripts: match raw.scripts {
                Value::Object(scripts) => scripts,
                _ => Map::new(),
            },
        }
    }

    /// Returns the text of a script that is not empty.
    pub(crate) fn script(&self, name: &str) -> Option<&str> {
        self.scripts.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
    }

    pub(crate) fn depends_on(&self, package: &str) -> bool {
        self.dependencies.iter().any(|name| name == package)
    }

    /// Returns the project's package manager by its lock file, here or at the root, and true if
    /// there is a lock file.
    pub(crate) fn package_manager(&self, place: &ProjectDirectory<'_>) -> (PackageManager, bool) {
        let root = place.root_directory();
        for place in [place, &root] {
            if let Some((_, manager)) = LOCK_FILES.into_iter().find(|(lock, _)| place.has_file(lock)) {
                return (manager, true);
            }
        }
        let named = self.package_manager.as_deref().and_then(|named| named.split('@').next());
        let all = [PackageManager::Npm, PackageManager::Pnpm, PackageManager::Yarn, PackageManager::Bun];
        let manager = all.into_iter().find(|manager| Some(manager.name()) == named);
        (manager.unwrap_or(PackageManager::Npm), false)
    }
}

const LOCK_FILES: [(&str, PackageManager); 6] = [
    ("package-lock.json", PackageManager::Npm),
    ("npm-shrinkwrap.json", PackageManager::Npm),
    ("pnpm-lock.yaml", PackageManager::Pnpm),
    ("yarn.lock", PackageManager::Yarn),
    ("bun.lock", PackageManager::Bun),
    ("bun.lockb", PackageManager::Bun),
];

/// A program that runs a project's scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PackageManager {
    Npm,
    Pnpm,
    Yarn,
    Bun,
}

impl PackageManager {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pnpm => "pnpm",
            Self::Yarn => "yarn",
            Self::Bun => "bun",
        }
    }

    /// Returns the command that runs `script`.
    pub(crate) fn run_command(self, script: &str) -> String {
        match (self, script) {
            (Self::Npm, "test") => "npm test".to_owned(),
            _ => format!("{} run {}", self.name(), quote_word(script)),
        }
    }

    /// Returns the command that runs a program of the installed packages.
    pub(crate) fn exec_command(self, words: &str) -> String {
        match self {
            Self::Npm => format!("npx --no-install {words}"),
            Self::Pnpm => format!("pnpm exec {words}"),
            Self::Yarn => format!("yarn run {words}"),
            Self::Bun => format!("bun run {words}"),
        }
    }

    /// Returns the command that installs the dependencies.
    pub(crate) const fn install_command(self, locked: bool) -> &'static str {
        match (self, locked) {
            (Self::Npm, true) => "npm ci",
            (Self::Npm, false) => "npm install",
            (Self::Pnpm, _) => "pnpm install",
            (Self::Yarn, _) => "yarn install",
            (Self::Bun, _) => "bun install",
        }
    }
}

/// Returns true if the packages are installed: here or, for a member of a workspace, at the root.
pub(crate) fn has_installed_packages(place: &ProjectDirectory<'_>) -> bool {
    let root = place.root_directory();
    [place, &root].iter().any(|place| {
        // It may be a link to modules that lie elsewhere.
        let modules = place.has_directory("node_modules") || place.has_link("node_modules");
        modules || place.has_any(&[".pnp.cjs", ".pnp.js"])
    })
}
