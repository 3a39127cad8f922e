//! Rules: what people allow, ask about and deny, beyond levels and modes.
//!
//! [`Rules::parse`] parses a layer's `policy.toml`; a [`Policy`](crate::Policy) holds the rules of
//! all layers. Every rule is matched against every call, and **deny > ask > allow** in all layers:
//! no order of layers or of lines lets an allow override a deny or an ask.
//!
//! `rule` has rules as written, `parse` parses them with their lines, `compiled` compiles them,
//! `wide` rejects rules that would allow everything, `matching` matches them against calls, and
//! `proposal` finds the rules for the answer "always".

mod compiled;
mod glob;
mod matching;
mod parse;
mod path_shape;
mod proposal;
mod rule;
mod too_wide;

use std::sync::Arc;

use journeyman_protocol::{Decision, Effects, Mode, RelPath};

pub(crate) use compiled::CompiledRule;
pub use glob::matches_wildcards;
pub(crate) use matching::{
    CallAspect, MatchCertainty, MatchSubject, RuleSpecificity, changes_directory, explained_level,
};
pub use parse::{MAX_POLICY_BYTES, MAX_RULES, RuleError};
pub(crate) use proposal::propose_rules;
pub use rule::{Example, MAIN_AGENT, Rule, RuleId, RuleLayer};

use crate::command::analyse_command;
use crate::rules::rule::shorten_text;

/// The compiled rules of one or several layers.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    compiled: Vec<Arc<CompiledRule>>,
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Rules {
    /// Parses the text of a `policy.toml`. Errors and verdicts name it as `file`.
    ///
    /// # Errors
    /// [`RuleError`] with the line: invalid TOML, an unknown key or tool, a rule of a project that
    /// allows, an allow rule that would allow everything, or an example that a rule does not match
    /// as it says.
    pub fn parse(text: &str, layer: RuleLayer, file: &str) -> Result<Self, RuleError> {
        Self::parse_with_tools(text, layer, file, &|_| false)
    }

    /// Reads the text of a `policy.toml` as [`Rules::parse`] does. Rules may also name the tools
    /// for which `is_registered` returns true, such as those that a library user added.
    ///
    /// # Errors
    /// As [`Rules::parse`].
    pub fn parse_with_tools(
        text: &str,
        layer: RuleLayer,
        file: &str,
        is_registered: &dyn Fn(&str) -> bool,
    ) -> Result<Self, RuleError> {
        let mut compiled = Vec::new();
        for (line, rule) in parse::parse_rules(text, file, is_registered)? {
            let id = RuleId { layer, file: Some(file.to_owned()), line, name: rule.name.clone() };
            compiled.push(Arc::new(compile_rule(rule, id)?));
        }
        Ok(Self { compiled })
    }

    /// Compiles rules that are in no file.
    ///
    /// # Errors
    /// Those of [`Rules::parse`]; the line is the rule's number, from 1.
    pub fn from_rules(rules: impl IntoIterator<Item = Rule>, layer: RuleLayer) -> Result<Self, RuleError> {
        let mut compiled = Vec::new();
        for (place, rule) in rules.into_iter().enumerate() {
            let id = RuleId { layer, file: None, line: place + 1, name: rule.name.clone() };
            compiled.push(Arc::new(compile_rule(rule, id)?));
        }
        Ok(Self { compiled })
    }

    /// Returns the same rules without a file, such as those of a session's log.
    #[must_use]
    pub fn without_file(mut self) -> Self {
        for rule in &mut self.compiled {
            Arc::make_mut(rule).id.file = None;
        }
        self
    }

    /// Returns the number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.compiled.len()
    }

    /// Returns true if there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.compiled.is_empty()
    }

    /// Returns each rule with its id.
    pub fn iter(&self) -> impl Iterator<Item = (&RuleId, &Rule)> {
        self.compiled.iter().map(|rule| (&rule.id, &rule.rule))
    }

    /// Formats the rules as a `policy.toml`.
    #[must_use]
    pub fn to_toml(&self) -> String {
        self.iter().map(|(_, rule)| rule.to_toml()).collect::<Vec<_>>().join("\n")
    }

    /// Adds other rules. Rules without a file continue the numbering.
    pub(crate) fn extend(&mut self, other: Self) {
        for mut rule in other.compiled {
            if rule.id.file.is_none() {
                let like = |one: &&Arc<CompiledRule>| one.id.file.is_none() && one.id.layer == rule.id.layer;
                let line = self.compiled.iter().filter(like).count() + 1;
                Arc::make_mut(&mut rule).id.line = line;
            }
            self.compiled.push(rule);
        }
    }

    pub(crate) fn compiled_rules(&self) -> impl Iterator<Item = &CompiledRule> {
        self.compiled.iter().map(|rule| &**rule)
    }
}

fn compile_rule(rule: Rule, id: RuleId) -> Result<CompiledRule, RuleError> {
    let place = (id.file.clone().unwrap_or_else(|| id.layer.to_string()), id.line);
    let error = |(problem, help)| RuleError { file: place.0, line: place.1, problem, help };
    let compiled = CompiledRule::new(rule, id).and_then(|compiled| {
        if compiled.rule.decision == Decision::Allow {
            too_wide::check_not_too_wide(&compiled)?;
        }
        check_examples(&compiled)?;
        Ok(compiled)
    });
    compiled.map_err(error)
}

/// Checks a rule against its own examples.
fn check_examples(rule: &CompiledRule) -> Result<(), parse::RuleProblem> {
    let cases = [(&rule.rule.matches, true), (&rule.rule.not_matches, false)];
    for (examples, expected) in cases {
        for example in examples {
            if matches_example(rule, example) != expected {
                let what = if expected { "does not match" } else { "matches" };
                let key = if expected { "matches" } else { "not_matches" };
                return Err(parse::new_problem(
                    format!("the rule {what} {example}, which `{key}` names"),
                    match (expected, rule.rule.decision) {
                        (true, Decision::Allow) => {
                            "A rule that allows has to name all words of a command, and each program in it; mend \
                             the rule or the example"
                        }
                        (true, _) => "Mend the rule or the example",
                        (false, _) => {
                            "A rule that asks or denies speaks of every command that begins with its words; mend \
                             the rule or the example"
                        }
                    },
                ));
            }
        }
    }
    Ok(())
}

/// Returns true if a rule matches an example, in a mode and by an agent that the rule applies to.
fn matches_example(rule: &CompiledRule, example: &Example) -> bool {
    let mut effects = Effects::default();
    let first = |texts: &[String], otherwise: &str| {
        // A text that the pattern matches.
        texts.first().map_or_else(|| otherwise.to_owned(), |text| text.replace('*', "x"))
    };
    let mut tool = first(&rule.rule.tools, "run_command");
    match example {
        Example::Command(command) => effects.command = Some(command.clone()),
        Example::Call { tool: given, path, host } => {
            if let Some(given) = given {
                tool.clone_from(given);
            }
            let Ok(paths) = path.iter().map(RelPath::parse).collect::<Result<Vec<_>, _>>() else {
                return false;
            };
            effects.writes = paths;
            effects.hosts.extend(host.clone());
        }
    }
    let agent = first(&rule.rule.agents, MAIN_AGENT);
    let mode = rule.rule.modes.first().copied().unwrap_or(Mode::Edit);
    let analysis = effects.command.as_deref().map(|command| analyse_command(command, &[]));
    let subject = MatchSubject::new(&tool, agent.as_str().into(), mode, &effects, analysis.as_ref());
    if rule.rule.decision > Decision::Allow {
        return rule.match_restricting(&subject) == MatchCertainty::Yes;
    }
    let covers = |aspect| rule.allows_aspect(&subject, aspect, RuleSpecificity::Any);
    let files = effects.writes.iter().all(|path| covers(CallAspect::Path(path)));
    let hosts = effects.hosts.iter().all(|host| covers(CallAspect::Host(host)));
    let nothing = effects.writes.is_empty() && effects.hosts.is_empty();
    match (effects.command.as_deref(), &analysis) {
        (Some(line), Some(analysis)) => {
            let parts = || {
                analysis.complete
                    && !analysis.parts.is_empty()
                    && analysis.parts.iter().all(|part| covers(CallAspect::CommandPart(part)))
            };
            covers(CallAspect::Line(line)) || parts()
        }
        _ if nothing => covers(CallAspect::Tool),
        _ => files && hosts,
    }
}

/// Shortens a command or a file name for a reason.
pub(crate) fn shorten(text: &str) -> String {
    shorten_text(text)
}
