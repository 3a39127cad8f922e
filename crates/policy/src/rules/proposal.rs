//! Finds the narrowest rules that allow a call, for the answer "always".

use journeyman_protocol::{Decision, RelPath};

use super::glob::escape_pattern;
use super::matching::explained_level;
use super::too_wide::{runs_unbounded_code, wide_words_reason};
use super::{Rule, RuleLayer, Rules};
use crate::call::Call;
use crate::command::{CommandAnalysis, CommandPart};

/// Maximum number of programs of a command that are allowed together. More are a script, which
/// nobody reads as a list.
const MAX_PARTS: usize = 6;

/// Returns rules that allow everything in a call that is not allowed yet, or the reason if they
/// would allow more than a person sees.
///
/// `open` returns true for the parts of the command that are not allowed.
pub(crate) fn propose_rules(
    call: &Call<'_>,
    analysis: Option<&CommandAnalysis>,
    open: impl Fn(&CommandPart) -> bool,
) -> Result<Rules, String> {
    let rule = || {
        let mut rule = Rule::new(Decision::Allow);
        rule.tools = vec![escape_pattern(call.tool)];
        let agent = call.agent.map(|agent| agent.member.unwrap_or(agent.definition));
        rule.agents = agent.map(escape_pattern).into_iter().collect();
        rule
    };
    let mut rules = Vec::new();
    if let (Some(command), Some(analysis)) = (&call.effects.command, analysis) {
        if analysis.beyond_undo {
            return Err(
                "it destroys what undoing may not bring back, which is asked about every time".to_owned()
            );
        }
        match collect_part_words(analysis, open)? {
            Some(parts) => {
                rules.extend(parts.into_iter().map(|command| Rule { command, ..rule() }));
            }
            None => {
                check_allowable_as_text(command, analysis)?;
                rules.push(Rule { exact: Some(command.clone()), ..rule() });
            }
        }
    }
    if !call.effects.writes.is_empty() {
        let paths = call.effects.writes.iter().map(to_path_pattern).collect::<Option<Vec<_>>>();
        let paths = paths.ok_or("the name of a file in it can't be written in a rule")?;
        rules.push(Rule { paths, ..rule() });
    }
    if !call.effects.hosts.is_empty() {
        let mut rule = rule();
        rule.hosts.clone_from(&call.effects.hosts);
        if !call.effects.writes.is_empty() {
            rule.paths = call.effects.writes.iter().filter_map(to_path_pattern).collect();
        }
        rules.push(rule);
    }
    if rules.is_empty() {
        rules.push(rule());
    }
    Rules::from_rules(rules, RuleLayer::Session).map_err(|error| error.problem)
}

/// Returns a file's name as a rule's pattern, in which brackets can't be escaped.
fn to_path_pattern(path: &RelPath) -> Option<String> {
    let text = std::str::from_utf8(path.as_bytes()).ok()?;
    let bad = |c: char| c.is_control() || matches!(c, '[' | ']' | '{' | '}');
    (!text.contains(bad)).then(|| escape_pattern(text))
}

/// Returns the words of each part that is not allowed yet; `None` if some words are unknown.
fn collect_part_words(
    analysis: &CommandAnalysis,
    open: impl Fn(&CommandPart) -> bool,
) -> Result<Option<Vec<Vec<Vec<String>>>>, String> {
    if !analysis.complete || analysis.parts.is_empty() || explained_level(analysis) < analysis.level {
        return Ok(None);
    }
    let mut found: Vec<Vec<Vec<String>>> = Vec::new();
    for part in analysis.parts.iter().filter(|part| open(part)) {
        let given: Vec<&str> = part.words.iter().map(|word| word.text.as_str()).collect();
        if let Some(why) = wide_words_reason(&given) {
            return Err(why);
        }
        let mut words = part.words.iter().chain(&part.writes);
        let multiline = given.iter().any(|word| word.contains(['\n', '\r']) || word.is_empty());
        if multiline || !words.all(|word| word.known) || !part.writes.is_empty() {
            return Ok(None);
        }
        let words = given.iter().map(|word| vec![escape_pattern(word)]).collect();
        if !found.contains(&words) {
            found.push(words);
        }
    }
    Ok((!found.is_empty() && found.len() <= MAX_PARTS).then_some(found))
}

/// Checks that a command may be allowed as a whole text.
fn check_allowable_as_text(command: &str, analysis: &CommandAnalysis) -> Result<(), String> {
    for part in &analysis.parts {
        let words: Vec<&str> = part.words.iter().map(|word| word.text.as_str()).collect();
        if let Some(why) = wide_words_reason(&words) {
            return Err(why);
        }
    }
    if !analysis.complete {
        let between = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.');
        if let Some(word) = command.split(between).find(|word| runs_unbounded_code(word)) {
            return Err(format!("`{word}` in it may run anything"));
        }
    }
    Ok(())
}
