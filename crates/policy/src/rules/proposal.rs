//! What «always» would allow: the narrowest rules that let this very call through.

use journeyman_protocol::{Decision, RelPath};

use super::glob::escaped;
use super::matching::explained;
use super::wide::{is_unbounded, words_too_wide};
use super::{Layer, Rule, Rules};
use crate::command::{CommandAnalysis, Part};
use crate::judge::Call;

/// Programs of one command that are allowed together. More are a script, and nobody reads it as a list.
const MAX_PARTS: usize = 6;

/// Rules that allow what of a call isn't allowed yet; why not, where they would allow more than a person sees.
///
/// `open` says which parts of the command are not allowed.
pub(crate) fn propose(
    call: &Call<'_>,
    analysis: Option<&CommandAnalysis>,
    open: impl Fn(&Part) -> bool,
) -> Result<Rules, String> {
    let rule = || {
        let mut rule = Rule::new(Decision::Allow);
        rule.tools = vec![escaped(call.tool)];
        rule
    };
    let mut rules = Vec::new();
    if let (Some(command), Some(analysis)) = (&call.effects.command, analysis) {
        if analysis.beyond_undo {
            return Err(
                "it destroys what undoing may not bring back, which is asked about every time".to_owned()
            );
        }
        match words(analysis, open)? {
            Some(parts) => {
                rules.extend(parts.into_iter().map(|command| Rule { command, ..rule() }));
            }
            None => {
                whole(command, analysis)?;
                rules.push(Rule { exact: Some(command.clone()), ..rule() });
            }
        }
    }
    if !call.effects.writes.is_empty() {
        let paths = call.effects.writes.iter().map(plain).collect::<Option<Vec<_>>>();
        let paths = paths.ok_or("the name of a file in it can't be written in a rule")?;
        rules.push(Rule { paths, ..rule() });
    }
    if !call.effects.hosts.is_empty() {
        let mut rule = rule();
        rule.hosts.clone_from(&call.effects.hosts);
        if !call.effects.writes.is_empty() {
            rule.paths = call.effects.writes.iter().filter_map(plain).collect();
        }
        rules.push(rule);
    }
    if rules.is_empty() {
        rules.push(rule());
    }
    Rules::of(rules, Layer::Session).map_err(|error| error.problem)
}

/// A file's name as a rule has it; what brackets stand for can't be said in one.
fn plain(path: &RelPath) -> Option<String> {
    let text = std::str::from_utf8(path.as_bytes()).ok()?;
    let bad = |c: char| c.is_control() || matches!(c, '[' | ']' | '{' | '}');
    (!text.contains(bad)).then(|| escaped(text))
}

/// The words of each part that isn't allowed; `None` where they aren't all known.
fn words(
    analysis: &CommandAnalysis,
    open: impl Fn(&Part) -> bool,
) -> Result<Option<Vec<Vec<Vec<String>>>>, String> {
    if !analysis.complete || analysis.parts.is_empty() || explained(analysis) < analysis.level {
        return Ok(None);
    }
    let mut found: Vec<Vec<Vec<String>>> = Vec::new();
    for part in analysis.parts.iter().filter(|part| open(part)) {
        let given: Vec<&str> = part.words.iter().map(|word| word.text.as_str()).collect();
        if let Some(why) = words_too_wide(&given) {
            return Err(why);
        }
        let mut words = part.words.iter().chain(&part.writes);
        let multiline = given.iter().any(|word| word.contains(['\n', '\r']) || word.is_empty());
        if multiline || !words.all(|word| word.known) || !part.writes.is_empty() {
            return Ok(None);
        }
        let words = given.iter().map(|word| vec![escaped(word)]).collect();
        if !found.contains(&words) {
            found.push(words);
        }
    }
    Ok((!found.is_empty() && found.len() <= MAX_PARTS).then_some(found))
}

/// Whether a command may be allowed as the text it is.
fn whole(command: &str, analysis: &CommandAnalysis) -> Result<(), String> {
    for part in &analysis.parts {
        let words: Vec<&str> = part.words.iter().map(|word| word.text.as_str()).collect();
        if let Some(why) = words_too_wide(&words) {
            return Err(why);
        }
    }
    if !analysis.complete {
        let between = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.');
        if let Some(word) = command.split(between).find(|word| is_unbounded(word)) {
            return Err(format!("`{word}` in it may run anything"));
        }
    }
    Ok(())
}
