//! The one evaluator.

use journeyman_protocol::{Decision, Effects, Enforcement, Level, Mode, Needs, RelPath, Verdict};

use crate::command::{CommandAnalysis, analyse};
use crate::protect::{Protection, protection};

/// Names of the built-in rules, as verdicts carry them.
const RULE_GIT: &str = "built-in: git's own files";
const RULE_GUARDED: &str = "built-in: protected path";
const RULE_UNCONFINED: &str = "built-in: unconfined command";
/// The rule that asks about what undoing may not bring back; it isn't held against a call that is
/// [contained](Effects::contained).
pub const RULE_LOSS: &str = "built-in: loss beyond undo";

/// What may be done without asking, what is asked, what is never done.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    checks: Vec<String>,
}

/// One aspect of a call, before the mode is asked.
struct Finding {
    level: Level,
    floor: Decision,
    reason: String,
    rule: Option<&'static str>,
}

impl Finding {
    fn of(level: Level, reason: String) -> Self {
        Self { level, floor: Decision::Allow, reason, rule: None }
    }
}

impl Policy {
    /// A policy that takes these commands for the project's own checks: level 1 instead of 2.
    #[must_use]
    pub fn with_checks(checks: Vec<String>) -> Self {
        Self { checks }
    }

    /// Says whether a call with these effects may run: in `mode`, with commands confined as `sandbox` says
    /// (`None`: no sandbox works here).
    ///
    /// Level 0 runs in every mode, and is all that runs in `plan`; `ask` asks for levels 1 and 2; `edit` runs
    /// level 1 and asks for 2; `auto` runs 1 and 2 while the sandbox meets [`Needs::ALL`] and asks otherwise;
    /// level 3 is asked for every time. A command of any level is asked for where the sandbox doesn't meet
    /// [`Needs::ALL`], because even one that only reads can read what isn't the project's; and so is one that
    /// may destroy what undoing can't bring back. Git's own files are never written by a tool.
    #[must_use]
    pub fn judge(&self, mode: Mode, effects: &Effects, sandbox: Option<&Enforcement>) -> Verdict {
        let mut destroys = None;
        let mut findings = vec![Finding::of(Level::ReadOnly, "it only reads the project".to_owned())];
        findings.extend(written(&effects.writes));
        if let Some(command) = &effects.command {
            let mut analysis = analyse(command, &self.checks);
            analysis.beyond_undo &= !effects.contained;
            destroys.clone_from(&analysis.destroys);
            findings.extend(ran(analysis, sandbox));
        }
        if !effects.hosts.is_empty() {
            let reason = format!("it reaches {} over the network", named(&effects.hosts));
            findings.push(Finding::of(Level::System, reason));
        }
        let level = findings.iter().map(|finding| finding.level).max().unwrap_or_default();
        let floor = findings.iter().map(|finding| finding.floor).max().unwrap_or(Decision::Allow);
        let decision = by_mode(mode, level, sandbox).max(floor);
        let rules = findings.iter().filter_map(|finding| finding.rule).map(str::to_owned).collect();
        // The reason of the finding that weighs most; of equals the later, which is the more particular.
        let heaviest = findings.into_iter().max_by_key(|finding| (finding.floor, finding.level));
        let mut reason = heaviest.map(|finding| finding.reason).unwrap_or_default();
        if mode == Mode::Plan && decision == Decision::Deny {
            reason = format!("plan mode only reads; {reason}");
        } else if let (Mode::Auto, Level::Edit | Level::Shell, None, Some(why)) =
            (mode, level, &effects.command, unmet(sandbox))
        {
            reason = format!("{reason}, and {why}");
        }
        Verdict { decision, level, reason, destroys, rules }
    }
}

fn by_mode(mode: Mode, level: Level, sandbox: Option<&Enforcement>) -> Decision {
    match (mode, level) {
        (_, Level::ReadOnly) | (Mode::Edit, Level::Edit) => Decision::Allow,
        (Mode::Plan, _) => Decision::Deny,
        (Mode::Auto, Level::Edit | Level::Shell) if unmet(sandbox).is_none() => Decision::Allow,
        (Mode::Ask | Mode::Edit | Mode::Auto, _) => Decision::Ask,
    }
}

/// What is missing for commands to run unattended, if anything.
fn unmet(sandbox: Option<&Enforcement>) -> Option<String> {
    match sandbox {
        None => Some("no sandbox works here".to_owned()),
        Some(enforcement) => {
            enforcement.unmet(&Needs::ALL).map(|need| format!("the sandbox does not give {need}"))
        }
    }
}

fn written(paths: &[RelPath]) -> Option<Finding> {
    let (path, protection) =
        paths.iter().map(|path| (path, protection(path))).max_by_key(|(_, protection)| *protection)?;
    Some(match protection {
        Protection::None => Finding::of(Level::Edit, format!("it changes {}", named(paths))),
        Protection::Guarded(why) => Finding {
            level: Level::System,
            floor: Decision::Ask,
            reason: format!("it changes {path}: {why}"),
            rule: Some(RULE_GUARDED),
        },
        Protection::Forbidden => Finding {
            level: Level::System,
            floor: Decision::Deny,
            reason: format!("{path} belongs to git and is changed by git commands only"),
            rule: Some(RULE_GIT),
        },
    })
}

fn ran(analysis: CommandAnalysis, sandbox: Option<&Enforcement>) -> Vec<Finding> {
    let mut findings = Vec::with_capacity(3);
    if let Some(why) = unmet(sandbox) {
        findings.push(Finding {
            level: analysis.level,
            floor: Decision::Ask,
            reason: format!("{}, and {why}", analysis.reason),
            rule: Some(RULE_UNCONFINED),
        });
    }
    if let Some(lost) = analysis.destroys.filter(|_| analysis.beyond_undo) {
        findings.push(Finding {
            level: analysis.level,
            floor: Decision::Ask,
            reason: format!("{}, and undoing may not bring back what it destroys: {lost}", analysis.reason),
            rule: Some(RULE_LOSS),
        });
    }
    findings.push(Finding::of(analysis.level, analysis.reason));
    findings
}

/// The first few of some names, and how many more there are.
fn named<T: ToString>(names: &[T]) -> String {
    /// More would not be one line any more.
    const SHOWN: usize = 3;
    let mut text = names.iter().take(SHOWN).map(T::to_string).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}
