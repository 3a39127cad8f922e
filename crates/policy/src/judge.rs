//! The evaluation of calls: levels, modes, rules and the verdict.

use std::collections::BTreeSet;

use journeyman_protocol::{Decision, Effects, Enforcement, Level, Mode, RelPath, SandboxNeeds, Verdict};

use crate::call::{Call, CallingAgent};
use crate::command::{CommandAnalysis, CommandPart, analyse_command};
use crate::protected_paths::{PathProtection, protection_of};
use crate::registry::is_registry;
use crate::rules::{
    CallAspect, CompiledRule, MAIN_AGENT, MatchCertainty, MatchSubject, Rule, RuleError, RuleId, RuleLayer,
    RuleSpecificity, Rules, changes_directory, explained_level, propose_rules, shorten,
};
use crate::tools::{DELEGATE_TOOL, MCP_PREFIX};

/// Names of the built-in rules in verdicts.
const RULE_GIT: &str = "built-in: git's own files";
const RULE_GUARDED: &str = "built-in: protected path";
const RULE_UNCONFINED: &str = "built-in: unconfined command";
/// The rule that asks about destruction that undo may not restore; it does not apply to a call that
/// is [previewed](Effects::previewed).
pub const RULE_LOSS: &str = "built-in: loss beyond undo";
const RULE_MCP: &str = "built-in: tool of an MCP server";

/// Prefix of the names of built-in rules.
const BUILT_IN_PREFIX: &str = "built-in: ";

/// The permission policy: rules, and the project's checks.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    checks: Vec<String>,
    rules: Rules,
    /// The maximum modes of a sub-agent and of the agents that started it. All count, because a
    /// rule may apply in one of them only.
    ceilings: Vec<Mode>,
}

/// A program of a command, as explained by [`Policy::explain_call`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartExplanation {
    /// The words, as far as they are known.
    pub words: String,
    /// The level of the program by itself.
    pub level: Level,
    /// The reason for the level.
    pub reason: String,
    /// The rules that match the program, with their decisions.
    pub rules: Vec<(RuleId, Decision)>,
}

/// The subject of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FindingSubject {
    Reading,
    Files,
    Command,
    Hosts,
    Tool,
}

/// One aspect of a call, before the mode is considered.
struct Finding {
    level: Level,
    floor: Decision,
    reason: String,
    rule: Option<&'static str>,
    about: FindingSubject,
}

impl Finding {
    fn without_floor(about: FindingSubject, level: Level, reason: String) -> Self {
        Self { level, floor: Decision::Allow, reason, rule: None, about }
    }
}

/// A rule that matches a call, and its decision.
struct RuleMatch<'a> {
    rule: &'a CompiledRule,
    decision: Decision,
    hit: MatchCertainty,
}

/// A call with its analysis.
struct AnalysedCall<'a> {
    call: Call<'a>,
    subject: MatchSubject<'a>,
}

impl Policy {
    /// Returns the policy with these commands as the project's own checks, which are level 1
    /// instead of 2.
    #[must_use]
    pub fn with_checks(mut self, checks: Vec<String>) -> Self {
        self.checks = checks;
        self
    }

    /// Returns the policy with the rules of another layer added.
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Returns all rules, layer by layer in the order in which they were added.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the policy of a sub-agent: this policy with additional rules that only tighten it.
    /// The result never allows what this policy does not allow, and never asks where this policy
    /// denies.
    ///
    /// # Errors
    /// [`RuleError`] for a rule that allows.
    pub fn for_sub_agent(
        &self,
        tightening: impl IntoIterator<Item = Rule>,
        mode: Mode,
    ) -> Result<Self, RuleError> {
        // The rules are checked like those of a project, which may only tighten.
        let rules = Rules::from_rules(tightening, RuleLayer::Project)?;
        let mut child = self.clone().with_rules(rules);
        if !child.ceilings.contains(&mode) {
            child.ceilings.push(mode);
        }
        Ok(child)
    }

    /// Decides whether a call is allowed, denied or asked about.
    ///
    /// Level 0 runs in every mode, and nothing else runs in `plan`; `ask` asks for levels 1 and 2;
    /// `edit` runs level 1 and asks for 2; `auto` runs 1 and 2 while the sandbox meets
    /// [`SandboxNeeds::ALL`] and asks otherwise; level 3 always asks. A command of any level asks
    /// if the sandbox does not meet [`SandboxNeeds::ALL`], because even a command that only reads
    /// can read files outside the project, and if it may destroy something that undo can't restore.
    /// Tools never write git's own files.
    ///
    /// A rule that denies or asks makes the decision stricter, whatever other rules say. A rule
    /// that allows replaces a question; questions about level 3, unconfined commands and
    /// destruction need an exact rule. Nothing overrides a denial, and `plan` allows only reading.
    #[must_use]
    pub fn judge(&self, call: &Call<'_>) -> Verdict {
        let analysis = self.analyse_effects(call.effects);
        self.judge_in_all_modes(call, analysis.as_ref())
    }

    /// Returns true if `read_file` may read a file in this mode without asking.
    #[must_use]
    pub fn allows_reading(&self, path: &RelPath, mode: Mode, agent: Option<CallingAgent<'_>>) -> bool {
        let effects = Effects { reads: vec![path.clone()], ..Effects::default() };
        let call = Call { tool: "read_file", agent, mode, effects: &effects, sandbox: None };
        self.judge(&call).decision == Decision::Allow
    }

    /// Returns the strictest of the verdicts in the call's own mode and in each stricter maximum
    /// mode.
    fn judge_in_all_modes(&self, call: &Call<'_>, analysis: Option<&CommandAnalysis>) -> Verdict {
        let verdict = self.judge_analysed(call, analysis);
        self.ceilings.iter().filter(|ceiling| **ceiling < call.mode).fold(verdict, |strictest, mode| {
            let narrower = self.judge_analysed(&Call { mode: *mode, ..*call }, analysis);
            if narrower.decision > strictest.decision { narrower } else { strictest }
        })
    }

    fn analyse_effects(&self, effects: &Effects) -> Option<CommandAnalysis> {
        effects.command.as_deref().map(|command| {
            let mut analysis = analyse_command(command, &self.checks);
            analysis.beyond_undo &= !effects.previewed;
            analysis
        })
    }

    fn judge_analysed(&self, call: &Call<'_>, analysis: Option<&CommandAnalysis>) -> Verdict {
        let case = AnalysedCall::new(call, analysis);
        let findings = collect_findings(call, analysis);
        let level = findings.iter().map(|finding| finding.level).max().unwrap_or_default();
        let destroys = analysis.filter(|_| !call.effects.previewed);
        let destroys = destroys.and_then(|analysis| analysis.destroys.clone());
        // The findings that neither the mode or a built-in rule nor another rule allows.
        let mut allowing: Vec<&CompiledRule> = Vec::new();
        let mut decision = Decision::Allow;
        let mut standing = Vec::with_capacity(findings.len());
        for finding in findings {
            let own = decision_of_mode(call.mode, finding.level, call.sandbox).max(finding.floor);
            let by_rules = match own {
                Decision::Ask => self.rules_allowing_finding(&case, finding.about),
                Decision::Allow | Decision::Deny => None,
            };
            if let Some(rules) = by_rules {
                allowing.extend(rules);
            } else {
                decision = decision.max(own);
                standing.push(finding);
            }
        }
        let spoken = self.restricting_rules(&case);
        let by_rule = spoken.iter().map(|one| one.decision).max().unwrap_or(Decision::Allow);
        let decision = decision.max(by_rule);
        let reason = match spoken.iter().find(|one| one.decision == decision) {
            Some(one) => one.describe_match(call),
            None => strongest_reason(call, decision, &standing, &allowing),
        };
        let mut deciding: Vec<&RuleId> = match decision {
            Decision::Allow => allowing.iter().map(|rule| &rule.id).collect(),
            _ => decisive_rules(&spoken, decision),
        };
        let mut seen = BTreeSet::new();
        deciding.retain(|id| seen.insert(*id));
        let mut rules: Vec<String> = deciding.into_iter().map(RuleId::to_string).collect();
        let built_in =
            standing.iter().filter(|finding| finding.floor == decision && decision > Decision::Allow);
        for rule in built_in.filter_map(|finding| finding.rule) {
            if rules.iter().all(|one| one != rule) {
                rules.push(rule.to_owned());
            }
        }
        Verdict { decision, level, reason, destroys, rules }
    }

    /// Returns the rules that deny or ask about a call, the strictest first.
    fn restricting_rules(&self, case: &AnalysedCall<'_>) -> Vec<RuleMatch<'_>> {
        let strict = self.rules.compiled_rules().filter(|rule| rule.rule.decision > Decision::Allow);
        let mut spoken: Vec<RuleMatch<'_>> = strict
            .filter_map(|rule| {
                let hit = rule.match_restricting(&case.subject);
                let decision = match hit {
                    MatchCertainty::No => return None,
                    MatchCertainty::Perhaps => Decision::Ask,
                    MatchCertainty::Yes => rule.rule.decision,
                };
                Some(RuleMatch { rule, decision, hit })
            })
            .collect();
        spoken.sort_by_key(|one| std::cmp::Reverse((one.decision, one.hit)));
        spoken
    }

    /// Returns the rules that together allow a finding; `None` if they don't.
    fn rules_allowing_finding(
        &self,
        case: &AnalysedCall<'_>,
        about: FindingSubject,
    ) -> Option<Vec<&CompiledRule>> {
        let call = &case.call;
        let mut rules = Vec::new();
        let mut add = |aspect, need| self.find_allowing_rule(case, aspect, need).map(|rule| rules.push(rule));
        match about {
            FindingSubject::Reading => return None,
            FindingSubject::Files => {
                for path in &call.effects.writes {
                    let level = write_level(path);
                    if decision_of_mode(call.mode, level, call.sandbox) > Decision::Allow {
                        add(CallAspect::Path(path), specificity_for_level(level))?;
                    }
                }
            }
            FindingSubject::Hosts => {
                for host in &call.effects.hosts {
                    let level = host_level(call.tool, host, case.subject.analysis);
                    if decision_of_mode(call.mode, level, call.sandbox) > Decision::Allow {
                        add(CallAspect::Host(host), specificity_for_level(level))?;
                    }
                }
            }
            FindingSubject::Tool => add(CallAspect::Tool, RuleSpecificity::Any)?,
            FindingSubject::Command => return self.rules_allowing_command(case),
        }
        Some(rules)
    }

    /// Returns the rules that allow a command: one with its whole line, or one for each program
    /// that needs a rule.
    fn rules_allowing_command(&self, case: &AnalysedCall<'_>) -> Option<Vec<&CompiledRule>> {
        let line = case.call.effects.command.as_deref()?;
        let analysis = case.subject.analysis?;
        if let Some(rule) = self.find_allowing_rule(
            case,
            CallAspect::Line(line),
            specificity_for_level(analysis.level).max(RuleSpecificity::Exact),
        ) {
            return Some(vec![rule]);
        }
        let whole = analysis.complete && !analysis.parts.is_empty();
        // A loss that no part explains is in none of them.
        let lost = analysis.beyond_undo && analysis.parts.iter().all(|part| part.destroys.is_none());
        if !whole || explained_level(analysis) < analysis.level || lost {
            return None;
        }
        let mut rules = Vec::new();
        for part in analysis.parts.iter().filter(|part| needs_rule(case, analysis, part)) {
            let lost = analysis.beyond_undo && part.destroys.is_some();
            let need = if lost || missing_guarantee(case.call.sandbox).is_some() {
                RuleSpecificity::Exact
            } else {
                RuleSpecificity::Any
            };
            rules.push(self.find_allowing_rule(
                case,
                CallAspect::CommandPart(part),
                need.max(specificity_for_level(part.level)),
            )?);
        }
        Some(rules)
    }

    fn find_allowing_rule(
        &self,
        case: &AnalysedCall<'_>,
        aspect: CallAspect<'_>,
        need: RuleSpecificity,
    ) -> Option<&CompiledRule> {
        let allow = self.rules.compiled_rules().filter(|rule| rule.rule.decision == Decision::Allow);
        allow.into_iter().find(|rule| rule.allows_aspect(&case.subject, aspect, need))
    }

    /// Returns the narrowest rules that would allow a call that asks, for the answer "always".
    ///
    /// # Errors
    /// The reason why no rule is offered: the call is denied or reaches level 3, a rule always
    /// asks, or the rules would allow more than a person sees.
    pub fn propose_rules(&self, call: &Call<'_>) -> Result<Rules, String> {
        let analysis = self.analyse_effects(call.effects);
        let verdict = self.judge_in_all_modes(call, analysis.as_ref());
        match (verdict.decision, verdict.level) {
            (Decision::Ask, Level::System) => {
                return Err("what reaches this far is asked about every time".to_owned());
            }
            (Decision::Ask, _) => {}
            (Decision::Allow | Decision::Deny, _) => return Err("it isn't asked about".to_owned()),
        }
        let case = AnalysedCall::new(call, analysis.as_ref());
        if let Some(one) = self.restricting_rules(&case).first() {
            return Err(format!("{} wants it to be asked about every time", one.rule.id));
        }
        let rules = propose_rules(call, analysis.as_ref(), |part| {
            analysis.as_ref().is_none_or(|analysis| needs_rule(&case, analysis, part))
        })?;
        match self.clone().with_rules(rules.clone()).judge_in_all_modes(call, analysis.as_ref()).decision {
            Decision::Allow => Ok(rules),
            Decision::Ask | Decision::Deny => Err("no rule says what of it would be allowed".to_owned()),
        }
    }

    /// Returns the programs of a call's command with the rules that match each, and whether the
    /// list is complete.
    #[must_use]
    pub fn explain_call(&self, call: &Call<'_>) -> (Vec<PartExplanation>, bool) {
        let Some(analysis) = self.analyse_effects(call.effects) else { return (Vec::new(), true) };
        let parts = analysis.parts.iter().map(|part| {
            let alone = CommandAnalysis {
                level: part.level,
                reason: part.reason.clone(),
                destroys: part.destroys.clone(),
                beyond_undo: analysis.beyond_undo && part.destroys.is_some(),
                parts: vec![part.clone()],
                complete: true,
            };
            let case = AnalysedCall::new(call, Some(&alone));
            let speaks = self.rules.compiled_rules().filter_map(|rule| {
                let decision = match rule.rule.decision {
                    Decision::Allow => rule
                        .allows_aspect(
                            &case.subject,
                            CallAspect::CommandPart(part),
                            specificity_for_level(part.level),
                        )
                        .then_some(Decision::Allow)?,
                    strict => match rule.match_restricting(&case.subject) {
                        MatchCertainty::No => return None,
                        MatchCertainty::Perhaps => Decision::Ask,
                        MatchCertainty::Yes => strict,
                    },
                };
                Some((rule.id.clone(), decision))
            });
            let words = part.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
            let rules = speaks.collect();
            PartExplanation { words, level: part.level, reason: part.reason.clone(), rules }
        });
        (parts.collect(), analysis.complete)
    }
}

/// Returns true if a written rule decided, and not the mode or a built-in rule.
#[must_use]
pub fn is_decided_by_rule(verdict: &Verdict) -> bool {
    verdict.rules.iter().any(|rule| !rule.starts_with(BUILT_IN_PREFIX))
}

impl<'a> AnalysedCall<'a> {
    fn new(call: &Call<'a>, analysis: Option<&'a CommandAnalysis>) -> Self {
        let agent = call.agent.unwrap_or(MAIN_AGENT.into());
        Self { call: *call, subject: MatchSubject::new(call.tool, agent, call.mode, call.effects, analysis) }
    }
}

/// Returns the rules that caused a decision. Rules that only may match are listed if none certainly
/// does, and only the first of many: every rule may match a command that was not understood.
fn decisive_rules<'a>(spoken: &[RuleMatch<'a>], decision: Decision) -> Vec<&'a RuleId> {
    /// Maximum number of rules in a verdict.
    const MAX_RULES_SHOWN: usize = 8;
    let of = |hit| {
        let deciding = spoken.iter().filter(move |one| one.decision == decision && one.hit == hit);
        deciding.map(|one| &one.rule.id)
    };
    let sure: Vec<&RuleId> = of(MatchCertainty::Yes).collect();
    if sure.is_empty() { of(MatchCertainty::Perhaps).take(MAX_RULES_SHOWN).collect() } else { sure }
}

impl RuleMatch<'_> {
    fn describe_match(&self, call: &Call<'_>) -> String {
        let Rule { name, reason, decision, .. } = &self.rule.rule;
        let what = match &call.effects.command {
            Some(command) => format!("`{}`", shorten(command)),
            None => format!("{} {}", call.tool, format_names(&call.effects.writes)).trim_end().to_owned(),
        };
        let whose = match self.rule.id.layer {
            RuleLayer::Admin => "the administrator's",
            RuleLayer::User => "your",
            RuleLayer::Project => "the project's",
            RuleLayer::Session => "this session's",
        };
        let rule = match name {
            Some(name) => format!("{whose} rule `{name}`"),
            None => format!("{whose} rule ({})", shorten(&self.rule.rule.to_string())),
        };
        let why = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        match (self.hit, decision) {
            (MatchCertainty::Yes, Decision::Deny) => format!("{rule} forbids {what}{why}"),
            (MatchCertainty::Yes, _) => format!("{rule} wants to be asked about {what}{why}"),
            (_, Decision::Deny) => {
                format!("{rule} may forbid what {what} runs, which can't be seen before{why}")
            }
            _ => format!("{rule} may speak of what {what} runs, which can't be seen before{why}"),
        }
    }
}

/// Returns true if a rule has to allow a part of a command, because it is not harmless in its
/// directory. If a rule is needed at all, one has to allow the directory too: the same words mean
/// another program elsewhere.
fn needs_rule(case: &AnalysedCall<'_>, analysis: &CommandAnalysis, part: &CommandPart) -> bool {
    // The files that a redirection or a loop reads run nothing.
    if part.words.is_empty() && part.writes.is_empty() && part.level == Level::ReadOnly {
        return false;
    }
    decision_of_mode(case.call.mode, part.level, case.call.sandbox) > Decision::Allow
        || missing_guarantee(case.call.sandbox).is_some()
        || analysis.beyond_undo && part.destroys.is_some()
        || changes_directory(part)
}

fn decision_of_mode(mode: Mode, level: Level, sandbox: Option<&Enforcement>) -> Decision {
    match (mode, level) {
        (_, Level::ReadOnly) | (Mode::Edit, Level::Edit) => Decision::Allow,
        (Mode::Plan, _) => Decision::Deny,
        (Mode::Auto, Level::Edit | Level::Shell) if missing_guarantee(sandbox).is_none() => Decision::Allow,
        (Mode::Ask | Mode::Edit | Mode::Auto, _) => Decision::Ask,
    }
}

/// Returns the missing guarantee for unattended commands, if any.
fn missing_guarantee(sandbox: Option<&Enforcement>) -> Option<String> {
    match sandbox {
        None => Some("no sandbox works here".to_owned()),
        Some(enforcement) => enforcement
            .first_unmet(&SandboxNeeds::ALL)
            .map(|need| format!("the sandbox does not give {need}")),
    }
}

fn collect_findings(call: &Call<'_>, analysis: Option<&CommandAnalysis>) -> Vec<Finding> {
    let mut findings = vec![Finding::without_floor(
        FindingSubject::Reading,
        Level::ReadOnly,
        "it only reads the project".to_owned(),
    )];
    if let Some(server) = call.tool.strip_prefix(MCP_PREFIX) {
        let server = server.split("__").next().unwrap_or_default();
        findings.push(Finding {
            level: Level::Shell,
            floor: Decision::Ask,
            reason: format!(
                "it is a tool of the MCP server `{}`, which runs outside of the sandbox",
                shorten(server)
            ),
            rule: Some(RULE_MCP),
            about: FindingSubject::Tool,
        });
    }
    findings.extend(find_write_effect(&call.effects.writes));
    if let Some(analysis) = analysis {
        findings.extend(find_command_effects(analysis, call.sandbox));
    }
    let hosts = &call.effects.hosts;
    if let Some(level) = hosts.iter().map(|host| host_level(call.tool, host, analysis)).max() {
        let of = match level {
            Level::Shell if call.tool == DELEGATE_TOOL => ", the provider of a CLI that the user has set up",
            Level::Shell => ", to fetch packages",
            _ if hosts.iter().all(|host| is_registry(host)) => {
                ", which take uploads too, by more than a command that fetches packages"
            }
            _ => "",
        };
        let reason = format!("it reaches {} over the network{of}", format_names(hosts));
        findings.push(Finding::without_floor(FindingSubject::Hosts, level, reason));
    }
    findings
}

/// Returns the rule that is needed to allow an effect of this level.
fn specificity_for_level(level: Level) -> RuleSpecificity {
    if level == Level::System { RuleSpecificity::Written } else { RuleSpecificity::Any }
}

fn write_level(path: &RelPath) -> Level {
    if protection_of(path) == PathProtection::None { Level::Edit } else { Level::System }
}

/// Returns the level of a host. A package registry is within the sandbox's reach for a command that
/// only fetches packages, because registries accept uploads too. So is the provider of another
/// coding CLI for that CLI: the configuration names it, not the model. Every other host is level 3.
fn host_level(tool: &str, host: &str, analysis: Option<&CommandAnalysis>) -> Level {
    if tool == DELEGATE_TOOL {
        return Level::Shell;
    }
    let fetches = analysis.is_some_and(CommandAnalysis::only_fetches);
    if fetches && is_registry(host) { Level::Shell } else { Level::System }
}

fn find_write_effect(paths: &[RelPath]) -> Option<Finding> {
    let (path, protection) =
        paths.iter().map(|path| (path, protection_of(path))).max_by_key(|(_, protection)| *protection)?;
    Some(match protection {
        PathProtection::None => Finding::without_floor(
            FindingSubject::Files,
            Level::Edit,
            format!("it changes {}", format_names(paths)),
        ),
        PathProtection::Guarded(why) => Finding {
            level: Level::System,
            floor: Decision::Ask,
            reason: format!("it changes {path}: {why}"),
            rule: Some(RULE_GUARDED),
            about: FindingSubject::Files,
        },
        PathProtection::Forbidden => Finding {
            level: Level::System,
            floor: Decision::Deny,
            reason: format!("{path} belongs to git and is changed by git commands only"),
            rule: Some(RULE_GIT),
            about: FindingSubject::Files,
        },
    })
}

fn find_command_effects(analysis: &CommandAnalysis, sandbox: Option<&Enforcement>) -> Vec<Finding> {
    let mut findings = Vec::with_capacity(3);
    let asked = |reason, rule| Finding {
        level: analysis.level,
        floor: Decision::Ask,
        reason,
        rule: Some(rule),
        about: FindingSubject::Command,
    };
    if let Some(why) = missing_guarantee(sandbox) {
        findings.push(asked(format!("{}, and {why}", analysis.reason), RULE_UNCONFINED));
    }
    if let Some(lost) = analysis.destroys.as_ref().filter(|_| analysis.beyond_undo) {
        let reason = format!("{}, and undoing may not bring back what it destroys: {lost}", analysis.reason);
        findings.push(asked(reason, RULE_LOSS));
    }
    findings.push(Finding::without_floor(FindingSubject::Command, analysis.level, analysis.reason.clone()));
    findings
}

/// Returns the reason of the strongest finding; of equal ones the later, which is more specific.
fn strongest_reason(
    call: &Call<'_>,
    decision: Decision,
    standing: &[Finding],
    allowing: &[&CompiledRule],
) -> String {
    if decision == Decision::Allow
        && let Some(rule) = allowing.first()
    {
        return match &rule.rule.name {
            Some(name) => format!("the {} rule `{name}` allows it", rule.id.layer),
            None => format!("a {} rule allows it: {}", rule.id.layer, shorten(&rule.rule.to_string())),
        };
    }
    let heaviest = standing.iter().max_by_key(|finding| (finding.floor, finding.level));
    let reason = heaviest.map(|finding| finding.reason.clone()).unwrap_or_default();
    if call.mode == Mode::Plan && decision == Decision::Deny {
        return format!("plan mode only reads; {reason}");
    }
    let level = heaviest.map(|finding| finding.level).unwrap_or_default();
    if let (Mode::Auto, Level::Edit | Level::Shell, None, Some(why)) =
        (call.mode, level, &call.effects.command, missing_guarantee(call.sandbox))
    {
        return format!("{reason}, and {why}");
    }
    reason
}

/// Formats the first few names, and the number of others.
fn format_names<T: ToString>(names: &[T]) -> String {
    /// Maximum number of names in one line.
    const MAX_NAMES_SHOWN: usize = 3;
    let mut text = names.iter().take(MAX_NAMES_SHOWN).map(T::to_string).collect::<Vec<_>>().join(", ");
    if names.len() > MAX_NAMES_SHOWN {
        text.push_str(&format!(" and {} more", names.len() - MAX_NAMES_SHOWN));
    }
    text
}

#[cfg(test)]
mod tests;
