//! The answers about the rules, in words.

use journeyman_protocol::Decision;
use journeyman_terminal::{Style, StyledLine};

use super::overview::{FIXED_RULES, MODE_EFFECTS, PolicyOverview};
use super::query::{PolicyAnswer, decision_name};
use crate::format::{format_count, printable};

/// Describes how a call is judged: its parts, the rules that match them, and each mode's verdict.
#[must_use]
pub fn describe_answer(answer: &PolicyAnswer) -> Vec<StyledLine> {
    let PolicyAnswer { query, verdicts, parts, is_understood, .. } = answer;
    let text = |text: &str| printable(&text).replace('\n', "\n    ");
    let mut lines =
        vec![StyledLine::new(Style::Strong, text(query.effects.command.as_ref().unwrap_or(&query.tool)))];
    if let Some((_, verdict)) = verdicts.first() {
        lines.push(StyledLine::new(Style::Plain, format!("level {}", verdict.level)));
        lines.extend(
            verdict.destroys.iter().map(|lost| {
                StyledLine::new(Style::Bad, "would be lost:").with_text(format!(" {}", text(lost)))
            }),
        );
    }
    if !parts.is_empty() {
        lines.extend([StyledLine::default(), StyledLine::new(Style::Strong, "what it runs")]);
    }
    for part in answer.distinct_parts() {
        let judged = format!("level {}: {}", part.level, text(&part.reason));
        let line = StyledLine::new(Style::Plain, format!("  {} ", text(&part.words)));
        lines.push(line.with(Style::Dim, judged));
        lines.extend(part.rules.iter().map(|(id, decision)| {
            decision_line("    ", *decision).with_text(format!(" {}", text(&id.to_string())))
        }));
    }
    if !is_understood {
        let text = "  not all of it is understood: no rule about words allows it";
        lines.push(StyledLine::new(Style::Warning, text));
    }
    lines.extend([StyledLine::default(), StyledLine::new(Style::Strong, "what a mode decides")]);
    for (mode, verdict) in verdicts {
        let line = decision_line(&format!("  {:<5} ", mode.name()), verdict.decision);
        lines.push(line.with_text(format!(" {}", text(&verdict.reason))));
        let rules = verdict.rules.iter().map(|rule| format!("              {}", text(rule)));
        lines.extend(rules.map(|rule| StyledLine::new(Style::Dim, rule)));
    }
    lines
}

/// Describes the modes, what holds in every mode, and the rules of each file.
#[must_use]
pub fn describe_overview(overview: &PolicyOverview) -> Vec<StyledLine> {
    let plain = |text: String| StyledLine::new(Style::Plain, text);
    let heading = |text: &str| StyledLine::new(Style::Strong, text);
    let mut lines = vec![heading("modes")];
    lines.extend(MODE_EFFECTS.iter().map(|(mode, effect)| plain(format!("  {:<5} {effect}", mode.name()))));
    lines.extend([StyledLine::default(), heading("in every mode")]);
    lines.extend(FIXED_RULES.iter().map(|rule| plain(format!("  {rule}"))));
    let order = "rules: a deny beats an ask beats an allow, whichever file they are in";
    lines.extend([StyledLine::default(), heading(order)]);
    for file in &overview.loaded.files {
        let state = file.rules.map_or_else(|| "not there".to_owned(), |count| format_count(count, "rule"));
        lines.push(plain(format!("  {} {} ({state})", file.layer, printable(&file.path.display()))));
        lines.extend(overview.rules_of(file).map(|(id, rule)| {
            let called = rule.name.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default();
            let why = rule.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let text = printable(&format_args!("{rule}{called}{why}")).replace('\n', "\n        ");
            let line = decision_line("    ", rule.decision).with_text(format!(" {text} "));
            line.with(Style::Dim, format!("line {}", id.line))
        }));
    }
    lines
}

/// Returns a decision after an indentation, in its colour.
fn decision_line(indent: &str, decision: Decision) -> StyledLine {
    let style = match decision {
        Decision::Allow => Style::Good,
        Decision::Ask => Style::Warning,
        Decision::Deny => Style::Bad,
    };
    StyledLine::new(Style::Plain, indent).with(style, format!("{:<5}", decision_name(decision)))
}
