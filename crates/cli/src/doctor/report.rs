//! The report of `jm doctor`, for people.

use journeyman_host::doctor::{
    CopiesReport, Examination, KeyReport, SandboxSurvey, StoredStateReport, TierProbe, TierReport,
    to_one_line,
};
use journeyman_host::format::printable;
use journeyman_host::sandboxes::list_protections;
use journeyman_terminal::{Paint, stdout_paint};

pub(super) fn print_examination(found: &Examination) {
    let paint = stdout_paint();
    reportln!("{} {}", paint.bold("jm"), found.version);
    let directory = found.state.directory.as_deref().unwrap_or_default();
    match &found.state.problem {
        Some(problem) => reportln!("{} sessions: {directory} {problem}", paint.red("✗")),
        None => reportln!("{} sessions are kept in {directory}", format_mark(paint, true)),
    }
    print_stored_state(paint, &found.stored);

    reportln!("\n{}", paint.bold("sandbox"));
    print_sandbox(paint, &found.sandbox);

    reportln!("\n{}", paint.bold("copies (jm run works in one where it is cheap)"));
    print_copies(paint, &found.copies);

    reportln!("\n{}", paint.bold("programs"));
    for program in &found.programs {
        reportln!(
            "  {} {:<9} {}",
            format_mark(paint, program.installed && program.problem.is_none()),
            program.name,
            paint.dim(program.purpose)
        );
        if let Some(problem) = &program.problem {
            reportln!("      doesn't run: {}", printable(problem));
        }
    }

    reportln!("\n{}", paint.bold("keys (names only)"));
    for KeyReport { provider, variables, set, local } in &found.keys {
        let (is_set, text) = match (local, set.is_empty()) {
            (true, _) => (true, "needs none".to_owned()),
            (false, true) => (false, paint.dim(&format!("set {}", variables.join(" or ")))),
            (false, false) => (true, format!("{} is set", set.join(" or "))),
        };
        reportln!("  {} {provider:<11} {text}", format_mark(paint, is_set));
    }
}

fn format_mark(paint: Paint, is_good: bool) -> String {
    if is_good { paint.green("✓") } else { paint.yellow("–") }
}

fn print_stored_state(paint: Paint, stored: &StoredStateReport) {
    for file in &stored.damage {
        let damage = to_one_line(&format!("{}: {}", file.path, file.cost));
        reportln!("{} damaged: {damage}", paint.red("✗"));
    }
    if let Some(problem) = &stored.problem {
        reportln!("{} {}", paint.red("✗"), to_one_line(problem));
    } else if !stored.damage.is_empty() {
        reportln!("  mend what can be mended with: jm doctor --repair");
    } else if stored.log == Some(true) {
        reportln!("{} the session log and what undo needs are whole", paint.green("✓"));
    }
    match stored.missing {
        0 => {}
        missing => reportln!(
            "{} {missing} earlier contents aren't kept any more; an undo that needs one names its file",
            paint.yellow("–")
        ),
    }
}

fn print_sandbox(paint: Paint, survey: &SandboxSurvey) {
    if let Some(error) = &survey.error {
        reportln!("{} {error}", paint.red("✗ commands are refused:"));
    }
    if let Some(enforcement) = &survey.used {
        let tier = enforcement.tier.to_string();
        let layers = enforcement.layers.iter().filter(|layer| **layer != tier).cloned();
        let layers: Vec<String> = layers.collect();
        let layers = if layers.is_empty() { String::new() } else { format!(" ({})", layers.join(", ")) };
        reportln!("  tier: {tier}{layers}");
        for (_, meaning, holds) in list_protections(enforcement) {
            reportln!("  {} {meaning}", format_mark(paint, holds));
        }
        for gap in &enforcement.gaps {
            reportln!("  {} {gap}", paint.yellow("note:"));
        }
    }
    reportln!("  {}", paint.dim("every back-end, strongest first:"));
    survey.tiers.iter().for_each(|tier| print_tier(paint, tier));
}

fn print_tier(paint: Paint, report: &TierReport) {
    let TierReport { tier, used, works, probe, .. } = report;
    let state = report.describe_state();
    reportln!("  {} {tier:<11} {state}", format_mark(paint, *works));
    match probe {
        TierProbe::Fails { fix: Some(fix), .. } if !fix.is_empty() => {
            reportln!("      {} {fix}", paint.dim("fix:"));
        }
        TierProbe::Works { not_enforced, .. } if !used && !not_enforced.is_empty() => {
            reportln!("      {} {}", paint.dim("not enforced:"), not_enforced.join(", "));
        }
        _ => {}
    }
}

fn print_copies(paint: Paint, copies: &CopiesReport) {
    if let Some(problem) = &copies.problem {
        reportln!("  {} {problem}", paint.red("✗"));
    }
    for tier in &copies.tiers {
        match &tier.problem {
            Some(problem) => {
                reportln!("  {} {:<9} {}", format_mark(paint, false), tier.tier, paint.dim(problem));
            }
            None => reportln!("  {} {}", format_mark(paint, true), tier.tier),
        }
    }
    for copy in &copies.kept {
        let what = if copy.landed { "landed, to be removed by the next command:" } else { "kept:" };
        let size = copy.bytes / 1024;
        reportln!("  {what} session {} ({size} KiB in {})", copy.session, copy.directory);
    }
}
