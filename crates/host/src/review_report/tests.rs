use journeyman_protocol::{
    CheckKind, FileChange, FileDiffStat, HonestyKind, RelPath, SessionId, TestCounts, UnixMillis,
};

use super::*;
use crate::session_evidence::EvidenceRound;

fn path(name: &str) -> RelPath {
    RelPath::parse(name).unwrap()
}

/// A task with a failed check, one that didn't run, and a finding.
fn ledger() -> SessionEvidence {
    let failed = CheckOutcome::Failed { exit_code: Some(1), reason: "exit code 1".to_owned() };
    let diagnostic = Diagnostic {
        path: Some(path("src/a b.rs")),
        line: Some(7),
        column: Some(3),
        test: Some("adds".to_owned()),
        ..Diagnostic::new(Severity::Error, "1 != 2 <script>")
    };
    let not_run = CheckOutcome::NotRun { reason: "no clippy".to_owned() };
    let evidence = vec![
        Evidence {
            tests: Some(TestCounts { passed: 3, failed: 1, skipped: 2 }),
            diagnostics: vec![diagnostic, Diagnostic::new(Severity::Warning, "no place")],
            ..Evidence::new(CheckKind::Test, "cargo test", failed)
        },
        Evidence::new(CheckKind::Lint, "cargo clippy | tee log", not_run),
    ];
    let finding = HonestyFinding {
        kind: HonestyKind::TestSkipped,
        severity: HonestySeverity::Blocking,
        path: path("tests/a.rs"),
        line: Some(4),
        message: "`adds` is ignored now".to_owned(),
        accepted: false,
    };
    let report: RunReport = serde_json::from_value(json!({
        "session": SessionId::new(UnixMillis(1), 1), "outcome": "checks_fail", "exit_code": 1,
        "summary": "finished, but checks fail", "text": "", "diff": "", "iterations": 1, "turns": 2,
        "usage": journeyman_protocol::Usage::default(), "model": "p/m", "duration_ms": 5,
        "undo": "jm undo 1",
        "changes": [FileChange { path: path("src/a b.rs"), kind: FileChangeKind::Modified }],
        "diffstat": [FileDiffStat { path: path("src/a b.rs"), added: 2, removed: 1 }],
        "evidence": evidence, "findings": [finding],
    }))
    .unwrap();
    SessionEvidence {
        session: report.session.clone(),
        tasks: vec![TaskEvidence {
            task: "Fix the *sum*".to_owned(),
            rounds: Vec::new(),
            report: Some(Box::new(report)),
        }],
        proof: ProofState::None,
    }
}

#[test]
fn markdown_has_the_change_the_evidence_and_what_is_missing() {
    let text = to_markdown(&ledger()).unwrap();
    for part in [
        "# Fix the \\*sum\\*\n",
        "**Finished, but checks fail**\n",
        "- `src/a b.rs` modified (+2 −1)\n",
        "| `cargo test` | **failed** (exit code 1) | 3 passed, 1 failed, 2 skipped |",
        "- `src/a b.rs:7` `adds`: 1 != 2 \\<script\\>\n".replace("1 != 2", "1 \\!= 2").as_str(),
        "## Places where tests or checks say less\n",
        "| `cargo clippy \\| tee log` | not run (no clippy) |",
        "- `cargo clippy | tee log` did not run: no clippy\n",
        "- `cargo test` skipped 2 of its tests\n",
        "`jm undo 1` takes the change back.",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn sarif_has_the_structure_of_the_standard() {
    let sarif = to_sarif(&ledger()).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    assert!(run["tool"]["driver"]["name"].is_string());
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    for result in results {
        // §3.27: every result has a message; its rule is the one at its index.
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(["none", "note", "warning", "error"].contains(&result["level"].as_str().unwrap()));
        for location in result["locations"].as_array().into_iter().flatten() {
            let place = &location["physicalLocation"];
            let uri = place["artifactLocation"]["uri"].as_str().unwrap();
            assert!(!uri.starts_with('/') && !uri.contains(' '), "{uri}");
            // §3.30: lines and columns count from 1.
            assert!(place["region"]["startLine"].as_u64().is_none_or(|line| line > 0));
        }
    }
    let first = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(first["artifactLocation"]["uri"], "src/a%20b.rs");
    assert_eq!(first["region"], json!({ "startLine": 7, "startColumn": 3 }));
    let ids: Vec<&str> = rules.iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["adds", "tests", "test-skipped"]);
}

#[test]
fn the_rounds_are_those_of_the_reported_task() {
    let mut ledger = ledger();
    ledger.tasks[0].rounds = vec![EvidenceRound::default(), EvidenceRound::default()];
    ledger.tasks.push(TaskEvidence { rounds: vec![EvidenceRound::default(); 3], ..TaskEvidence::default() });
    let text = to_markdown(&ledger).unwrap();
    assert!(text.contains("The last of 2 rounds;"), "{text}");
}

#[test]
fn a_session_without_an_end_has_no_report() {
    let mut ledger = ledger();
    ledger.tasks[0].report = None;
    assert!(to_markdown(&ledger).is_err() && to_sarif(&ledger).is_err());
}
