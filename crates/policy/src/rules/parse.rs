//! Parses rules from a `policy.toml`, each with its line. Errors say how to fix the rule.

use journeyman_protocol::{Decision, Mode};
use toml::de::{DeTable, DeValue};

use super::rule::shorten_text;
use super::{Example, Rule};
use crate::tools::{check_tool_pattern, list_builtin_names};

/// Maximum size of a file of rules in bytes: [`MAX_RULES`] of them with examples.
pub const MAX_POLICY_BYTES: usize = 256 * 1024;
/// Maximum number of rules in a file.
pub const MAX_RULES: usize = 500;
/// Maximum number of entries in a list of a rule. Longer lists are several rules.
const MAX_LIST_ENTRIES: usize = 64;
/// Maximum length of a text in a rule, such as a whole command line, in bytes.
const MAX_TEXT_BYTES: usize = 4 * 1024;

/// The error for a file of rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}. {help}")]
pub struct RuleError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The problem.
    pub problem: String,
    /// The advice to fix it.
    pub help: String,
}

/// A problem and how to fix it, before the line is known.
pub(super) type RuleProblem = (String, String);

pub(super) fn new_problem(what: impl Into<String>, help: impl Into<String>) -> RuleProblem {
    (what.into(), help.into())
}

/// The rules of a file with the lines they begin on.
pub(super) fn parse_rules(
    text: &str,
    file: &str,
    is_registered: &dyn Fn(&str) -> bool,
) -> Result<Vec<(usize, Rule)>, RuleError> {
    let error = |line, (problem, help): RuleProblem| RuleError { file: file.to_owned(), line, problem, help };
    if text.len() > MAX_POLICY_BYTES {
        let what = format!("it has {} bytes, and at most {MAX_POLICY_BYTES} are read", text.len());
        return Err(error(1, new_problem(what, "Remove rules that others make superfluous")));
    }
    let table = DeTable::parse(text).map_err(|wrong| {
        let line = wrong.span().map_or(1, |span| line_number(text, span.start));
        let what = format!("it is not TOML: {}", wrong.message().trim_end());
        error(
            line,
            new_problem(
                what,
                "Nothing starts before this is mended, because a rule that is not read forbids nothing",
            ),
        )
    })?;
    let mut found = Vec::new();
    for (key, value) in table.get_ref() {
        let line = line_number(text, key.span().start);
        let DeValue::Array(items) = value.get_ref() else {
            return Err(error(line, unknown_key_problem(key.get_ref(), &["rule"])));
        };
        if key.get_ref() != "rule" {
            return Err(error(line, unknown_key_problem(key.get_ref(), &["rule"])));
        }
        if items.len() > MAX_RULES {
            let what = format!("it has {} rules, and at most {MAX_RULES} are read", items.len());
            return Err(error(line, new_problem(what, "Join rules: every list takes several entries")));
        }
        for item in items {
            let line = line_number(text, item.span().start);
            let DeValue::Table(fields) = item.get_ref() else {
                let what = "an entry of `rule` is not a table";
                return Err(error(line, new_problem(what, "Write each rule as a `[[rule]]`")));
            };
            found.push((
                line,
                parse_rule(text, line, fields, is_registered).map_err(|(line, wrong)| error(line, wrong))?,
            ));
        }
    }
    Ok(found)
}

fn line_number(text: &str, place: usize) -> usize {
    text.get(..place).unwrap_or_default().matches('\n').count() + 1
}

const RULE_KEYS: &[&str] = &[
    "name",
    "decision",
    "reason",
    "tools",
    "command",
    "exact",
    "flags",
    "without_flags",
    "paths",
    "writes",
    "hosts",
    "agents",
    "modes",
    "matches",
    "not_matches",
];

fn unknown_key_problem(key: &str, known: &[&str]) -> RuleProblem {
    let key = shorten_text(key);
    new_problem(format!("`{key}` is not a key here"), format!("There are: {}", known.join(", ")))
}

fn parse_rule(
    text: &str,
    line: usize,
    fields: &DeTable<'_>,
    is_registered: &dyn Fn(&str) -> bool,
) -> Result<Rule, (usize, RuleProblem)> {
    let mut rule = Rule::new(Decision::Deny);
    let mut decided = false;
    for (key, value) in fields {
        let at = line_number(text, key.span().start);
        let name = key.get_ref().as_ref();
        let value = value.get_ref();
        let wrong =
            |(what, help): RuleProblem| (at, new_problem(format!("`{}` {what}", shorten_text(name)), help));
        match name {
            "name" => rule.name = Some(parse_display_text(value).map_err(wrong)?),
            "reason" => rule.reason = Some(parse_display_text(value).map_err(wrong)?),
            "exact" => rule.exact = Some(parse_text(value).map_err(wrong)?),
            "decision" => {
                rule.decision = parse_decision(value).map_err(wrong)?;
                decided = true;
            }
            "tools" => rule.tools = parse_tools(value, is_registered).map_err(wrong)?,
            "command" => rule.command = parse_words(value).map_err(wrong)?,
            "flags" => rule.flags = parse_words(value).map_err(wrong)?,
            "without_flags" => rule.without_flags = parse_texts(value).map_err(wrong)?,
            "paths" => rule.paths = parse_texts(value).map_err(wrong)?,
            "writes" => rule.writes = parse_texts(value).map_err(wrong)?,
            "hosts" => rule.hosts = parse_texts(value).map_err(wrong)?,
            "agents" => rule.agents = parse_texts(value).map_err(wrong)?,
            "modes" => {
                let names = parse_texts(value).map_err(wrong)?;
                let modes = names.iter().map(|name| name.parse::<Mode>());
                let modes: Result<_, _> = modes.collect();
                rule.modes = modes.map_err(|_| {
                    wrong(new_problem(
                        "has a mode that there isn't",
                        "The modes are plan, ask, edit and auto",
                    ))
                })?;
            }
            "matches" => rule.matches = parse_examples(value).map_err(wrong)?,
            "not_matches" => rule.not_matches = parse_examples(value).map_err(wrong)?,
            other => return Err((at, unknown_key_problem(other, RULE_KEYS))),
        }
    }
    if !decided {
        let what = "the rule has no `decision`";
        return Err((line, new_problem(what, "Add decision = \"allow\", \"ask\" or \"deny\"")));
    }
    Ok(rule)
}

fn parse_decision(value: &DeValue<'_>) -> Result<Decision, RuleProblem> {
    match value.as_str() {
        Some("allow") => Ok(Decision::Allow),
        Some("ask") => Ok(Decision::Ask),
        Some("deny") => Ok(Decision::Deny),
        _ => Err(new_problem("is not a decision", "Write \"allow\", \"ask\" or \"deny\"")),
    }
}

fn parse_text(value: &DeValue<'_>) -> Result<String, RuleProblem> {
    let text = value.as_str().ok_or_else(|| new_problem("is not a text", "Put it in quotes"))?;
    match text.len() {
        0 => Err(new_problem("is empty", "Remove it, or say what it is to be")),
        1..=MAX_TEXT_BYTES => Ok(text.to_owned()),
        long => Err(new_problem(
            format!("has {long} bytes"),
            format!("At most {MAX_TEXT_BYTES} are read; shorten it"),
        )),
    }
}

/// Parses a text that people are shown, which must not control their terminal.
fn parse_display_text(value: &DeValue<'_>) -> Result<String, RuleProblem> {
    let text = parse_text(value)?;
    match text.chars().any(char::is_control) {
        true => Err(new_problem("has control characters", "Write it on one line")),
        false => Ok(text),
    }
}

fn parse_entries<T>(
    value: &DeValue<'_>,
    entry: impl Fn(&DeValue<'_>) -> Result<T, RuleProblem>,
) -> Result<Vec<T>, RuleProblem> {
    let DeValue::Array(items) = value else {
        return Err(new_problem("is not a list", "Write it in brackets: [\"one\", \"two\"]"));
    };
    match items.len() {
        0 => Err(new_problem("is an empty list", "Remove it: what a rule leaves out holds for every call")),
        1..=MAX_LIST_ENTRIES => items.iter().map(|item| entry(item.get_ref())).collect(),
        many => Err(new_problem(
            format!("has {many} entries"),
            format!("At most {MAX_LIST_ENTRIES}; write several rules"),
        )),
    }
}

fn parse_texts(value: &DeValue<'_>) -> Result<Vec<String>, RuleProblem> {
    parse_entries(value, parse_text)
}

/// Reads names of tools. A rule about a tool that doesn't exist would never apply.
fn parse_tools(
    value: &DeValue<'_>,
    is_registered: &dyn Fn(&str) -> bool,
) -> Result<Vec<String>, RuleProblem> {
    parse_entries(value, |item| {
        let name = parse_text(item)?;
        // A backslash takes the meaning of `*` away.
        match check_tool_pattern(&name.replace('\\', ""), is_registered) {
            Ok(()) => Ok(name),
            Err(unknown) => {
                let what = format!("names `{}`, and there is no such tool", unknown.given);
                let names = || format!("There are {}, and mcp__server__tool", list_builtin_names());
                Err(new_problem(
                    what,
                    unknown.suggestion.map_or_else(names, |name| format!("Did you mean `{name}`?")),
                ))
            }
        }
    })
}

/// Parses words by position, each alone or a list of alternatives.
fn parse_words(value: &DeValue<'_>) -> Result<Vec<Vec<String>>, RuleProblem> {
    if let DeValue::String(line) = value {
        let words: Vec<String> =
            line.split_whitespace().map(|word| format!("\"{}\"", shorten_text(word))).collect();
        let help = format!("Write the words one by one: [{}]", words.join(", "));
        return Err(new_problem("is one text", help));
    }
    parse_entries(value, |item| match item {
        DeValue::Array(_) => parse_texts(item),
        // An empty word is a valid argument.
        DeValue::String(text) if text.is_empty() => Ok(vec![String::new()]),
        other => parse_text(other).map(|text| vec![text]),
    })
}

fn parse_examples(value: &DeValue<'_>) -> Result<Vec<Example>, RuleProblem> {
    parse_entries(value, |item| match item {
        DeValue::Table(fields) => {
            let (mut tool, mut path, mut host) = (None, None, None);
            for (key, value) in fields {
                let text = Some(parse_text(value.get_ref())?);
                match key.get_ref().as_ref() {
                    "tool" => tool = text,
                    "path" => path = text,
                    "host" => host = text,
                    other => return Err(unknown_key_problem(other, &["tool", "path", "host"])),
                }
            }
            Ok(Example::Call { tool, path, host })
        }
        other => parse_text(other).map(Example::Command),
    })
}
