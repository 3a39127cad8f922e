//! Tools that look for known vulnerabilities and for secrets, where they are installed.

use journeyman_protocol::CheckKind;

use super::project::ProjectDirectory;
use crate::Check;

/// The name in evidence.
const ECOSYSTEM: &str = "security";
/// The reason why most of the tools run only on request.
const NEEDS_NETWORK_REASON: &str = "it asks a database on the network; `jm check --security` runs it";

/// A tool that reads a lock file and queries a database.
struct Auditor {
    program: &'static str,
    /// Files of which one must exist.
    reads: &'static [&'static str],
    command: &'static str,
    network: &'static [&'static str],
}

const AUDITORS: [Auditor; 5] = [
    Auditor {
        program: "cargo-audit",
        reads: &["Cargo.lock"],
        command: "cargo audit",
        network: &["crates", "github.com"],
    },
    Auditor {
        program: "npm",
        reads: &["package-lock.json", "npm-shrinkwrap.json"],
        command: "npm audit --audit-level=high",
        network: &["npm"],
    },
    Auditor {
        program: "pip-audit",
        reads: &["requirements.txt"],
        command: "pip-audit -r requirements.txt",
        network: &["pypi"],
    },
    Auditor {
        program: "composer",
        reads: &["composer.lock"],
        command: "composer audit --locked",
        network: &["packagist"],
    },
    Auditor {
        program: "semgrep",
        reads: &[".semgrep.yml", ".semgrep.yaml", ".semgrep/rules.yml"],
        command: "semgrep scan --error --metrics=off --disable-version-check --config .semgrep.yml",
        network: &[],
    },
];

/// Finds the installed tools that apply to this directory. Only a search for secrets and rules that
/// lie in the project need no network.
pub(super) fn find_checks(place: &ProjectDirectory<'_>) -> Vec<Check> {
    let mut checks = Vec::new();
    for auditor in AUDITORS.iter().filter(|auditor| place.has_program(auditor.program)) {
        let Some(file) = auditor.reads.iter().find(|name| place.has_file(name)) else { continue };
        let command = auditor.command.replace(".semgrep.yml", file);
        let why = format!("{file}, and {} is installed", auditor.program);
        let check = place.new_check(CheckKind::Security, ECOSYSTEM, command, why);
        checks.push(match auditor.network {
            [] => check,
            network => Check { network, ..check.with_unasked(NEEDS_NETWORK_REASON) },
        });
    }
    // One search covers the whole tree.
    if place.directory.is_none() && place.has_program("gitleaks") {
        let command = "gitleaks detect --no-git --redact --no-banner --source .";
        checks.push(place.new_check(CheckKind::Security, ECOSYSTEM, command, "gitleaks is installed"));
    }
    checks
}
