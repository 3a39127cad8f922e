//! PHP projects: Composer's scripts, PHPUnit, Pest, PHPStan, coding standards.

use journeyman_protocol::CheckKind;
use serde_json::Value;

use super::project::ProjectDirectory;
use super::shell::quote_word;
use crate::Check;

/// The name in evidence.
const ECOSYSTEM: &str = "php";
/// Composer's scripts for each kind, in order of preference.
const COMPOSER_SCRIPTS: [(CheckKind, &[&str]); 3] = [
    (CheckKind::Types, &["phpstan", "stan", "analyse", "analyze", "psalm", "types"]),
    (CheckKind::Lint, &["lint", "cs", "cs-check", "check-style", "phpcs"]),
    (CheckKind::Test, &["test", "tests", "phpunit", "pest"]),
];
/// Maximum number of changed files whose syntax one command checks.
const MAX_SYNTAX_FILES: usize = 100;

/// A tool of the project, or of `PATH`.
struct PhpTool {
    kind: CheckKind,
    name: &'static str,
    /// Files of which one configures the tool.
    configured_by: &'static [&'static str],
    arguments: &'static str,
    fix: Option<&'static str>,
}

const PHP_TOOLS: [PhpTool; 6] = [
    PhpTool {
        kind: CheckKind::Types,
        name: "phpstan",
        configured_by: &["phpstan.neon", "phpstan.neon.dist", "phpstan.dist.neon"],
        arguments: " analyse --no-progress --error-format=raw",
        fix: None,
    },
    PhpTool {
        kind: CheckKind::Types,
        name: "psalm",
        configured_by: &["psalm.xml", "psalm.xml.dist"],
        arguments: " --no-progress --output-format=emacs",
        fix: None,
    },
    PhpTool {
        kind: CheckKind::Lint,
        name: "php-cs-fixer",
        configured_by: &[".php-cs-fixer.php", ".php-cs-fixer.dist.php"],
        arguments: " fix --dry-run --diff",
        fix: Some(" fix"),
    },
    PhpTool {
        kind: CheckKind::Lint,
        name: "phpcs",
        configured_by: &["phpcs.xml", "phpcs.xml.dist", ".phpcs.xml", ".phpcs.xml.dist"],
        arguments: " -q --report=emacs",
        fix: None,
    },
    PhpTool {
        kind: CheckKind::Test,
        name: "pest",
        configured_by: &["tests/Pest.php"],
        arguments: "",
        fix: None,
    },
    PhpTool {
        kind: CheckKind::Test,
        name: "phpunit",
        configured_by: &["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"],
        arguments: "",
        fix: None,
    },
];

/// Finds the project's own scripts if Composer can run them, else the project's tools by their
/// configuration.
pub(super) fn find_checks(place: &ProjectDirectory<'_>) -> Vec<Check> {
    let manifest: Option<Value> =
        place.read("composer.json").and_then(|text| serde_json::from_str(&text).ok());
    let configured = PHP_TOOLS.iter().any(|tool| place.has_any(tool.configured_by));
    if manifest.is_none() && !configured && !place.has_file("composer.json") {
        return Vec::new();
    }
    let missing = manifest
        .as_ref()
        .is_some_and(|manifest| has_package_requirements(manifest) && !place.has_file("vendor/autoload.php"));
    let mut checks = Vec::new();
    for (kind, names) in COMPOSER_SCRIPTS {
        let scripts = manifest.as_ref().and_then(|manifest| manifest.get("scripts"));
        let script = scripts.and_then(|scripts| names.iter().find(|name| scripts.get(**name).is_some()));
        match script.filter(|_| place.has_program("composer")) {
            Some(name) => {
                let why = format!("composer.json has a script `{name}`");
                checks.push(place.new_check(kind, ECOSYSTEM, format!("composer run-script {name}"), why));
            }
            None => checks.extend(find_tool_check(place, kind)),
        }
    }
    let reason = "its dependencies are not installed; `composer install` installs them";
    checks = match missing {
        true => checks.into_iter().map(|check| check.with_blocked(reason)).collect(),
        false => checks,
    };
    if checks.iter().any(|check| check.kind == CheckKind::Test && check.blocked.is_none()) {
        let changed = place.quoted_changed_files(".php", MAX_SYNTAX_FILES);
        // Older versions of PHP check one file at a time.
        let command = changed.iter().map(|file| format!("php -l {file}")).collect::<Vec<_>>().join(" && ");
        if !changed.is_empty() {
            checks.push(place.new_check(CheckKind::Types, ECOSYSTEM, command, "syntax of the changed files"));
        }
    }
    checks.into_iter().map(|check| place.block_without_program("php", "https://www.php.net", check)).collect()
}

/// Returns the check by the first tool of `kind` that the project configures or, for tests, has
/// installed.
fn find_tool_check(place: &ProjectDirectory<'_>, kind: CheckKind) -> Option<Check> {
    let own = |tool: &PhpTool| format!("vendor/bin/{}", tool.name);
    let tools = || PHP_TOOLS.iter().filter(|tool| tool.kind == kind);
    let configured = tools().find(|tool| place.has_any(tool.configured_by));
    let installed = || tools().find(|tool| kind == CheckKind::Test && place.has_file(&own(tool)));
    let tool = configured.or_else(installed)?;
    let program = match place.has_file(&own(tool)) {
        true => format!("php {}", own(tool)),
        false => tool.name.to_owned(),
    };
    // Without a configuration PHPUnit needs the directory of the tests.
    let tests = if tool.configured_by.iter().any(|file| place.has_file(file)) { "" } else { " tests" };
    let tests = if kind == CheckKind::Test { tests } else { "" };
    let why = format!("the project uses {}", tool.name);
    let check = place.new_check(kind, ECOSYSTEM, format!("{program}{}{tests}", tool.arguments), why);
    let check = match tool.fix {
        Some(fix) => check.with_fix(format!("{program}{fix}")),
        None => check,
    };
    Some(match program.starts_with("php ") {
        true => check,
        false => place.block_without_program(
            tool.name,
            &quote_word(&format!("composer require --dev {}", tool.name)),
            check,
        ),
    })
}

/// Returns true if a manifest requires packages besides PHP and its extensions.
pub(crate) fn has_package_requirements(manifest: &Value) -> bool {
    let tables = ["require", "require-dev"].iter().filter_map(|name| manifest.get(name)?.as_object());
    tables.flat_map(|table| table.keys()).any(|name| name.contains('/'))
}
