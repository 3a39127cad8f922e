//! Go modules.

use journeyman_protocol::CheckKind;

use super::project::ProjectDirectory;
use crate::Check;

/// The name in evidence.
const ECOSYSTEM: &str = "go";
/// Files of which one configures golangci-lint.
const GOLANGCI_FILES: [&str; 4] = [".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"];

/// Finds the checks. `go vet` type-checks every package with its tests and writes nothing; `go
/// build ./...` would add nothing but a binary in the tree where there is one command.
pub(super) fn find_checks(place: &ProjectDirectory<'_>) -> Vec<Check> {
    if !place.has_file("go.mod") {
        return Vec::new();
    }
    let mut checks = vec![
        place.new_check(CheckKind::Types, ECOSYSTEM, "go vet ./...", "go.mod"),
        place.new_check(CheckKind::Test, ECOSYSTEM, "go test ./...", "go.mod"),
    ];
    if place.has_any(&GOLANGCI_FILES) {
        let lint = place.new_check(
            CheckKind::Lint,
            ECOSYSTEM,
            "golangci-lint run",
            "the project configures golangci-lint",
        );
        let lint = lint.with_fix("golangci-lint run --fix");
        checks.push(place.block_without_program("golangci-lint", "https://golangci-lint.run", lint));
    }
    if place.has_program("go") {
        return checks;
    }
    let reason = "go is not installed; https://go.dev/dl has it";
    checks.into_iter().map(|check| check.with_blocked(reason)).collect()
}
