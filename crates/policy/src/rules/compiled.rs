//! Compiles rules for matching, and rejects invalid ones.

use journeyman_protocol::Decision;

use super::glob::{LetterCase, MAX_PATTERN_BYTES, NameKey, PathPattern, TextPattern};
use super::parse::{RuleProblem, new_problem};
use super::rule::shorten_text;
use super::{Rule, RuleId, RuleLayer};

/// Tools that run shell commands: a rule that allows such a tool has to match the command.
pub(super) const COMMAND_TOOLS: [&str; 2] = ["run_command", "check"];

/// A position in a command pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WordPosition {
    /// Any of these words.
    One(Vec<TextPattern>),
    /// All remaining words.
    Rest,
}

impl WordPosition {
    pub(super) fn matches(&self, word: &str, case: LetterCase) -> bool {
        match self {
            Self::One(texts) => texts.iter().any(|text| text.matches(word, case)),
            Self::Rest => true,
        }
    }

    /// Returns true if the position has no wildcards.
    pub(super) fn is_literal(&self) -> bool {
        match self {
            Self::One(texts) => texts.iter().all(|text| text.literal().is_some()),
            Self::Rest => false,
        }
    }

    fn is_everything(&self) -> bool {
        match self {
            Self::One(texts) => texts.iter().any(TextPattern::is_everything),
            Self::Rest => true,
        }
    }

    /// Returns the literal words of the position.
    pub(super) fn literals(&self) -> impl Iterator<Item = &str> {
        let texts = match self {
            Self::One(texts) => texts.as_slice(),
            Self::Rest => &[],
        };
        texts.iter().filter_map(TextPattern::literal)
    }

    /// Returns the literal words in lower case.
    pub(super) fn lowercase_literals(&self) -> impl Iterator<Item = &NameKey> {
        let texts = match self {
            Self::One(texts) => texts.as_slice(),
            Self::Rest => &[],
        };
        texts.iter().filter_map(TextPattern::lowercase_literal)
    }
}

/// A host, or all hosts beneath a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostMatcher {
    Only(String),
    Beneath(String),
    Every,
}

impl HostMatcher {
    fn parse(text: &str) -> Result<Self, RuleProblem> {
        let plain = normalize_host(text);
        if plain == "*" {
            return Ok(Self::Every);
        }
        let (host, beneath) = match plain.strip_prefix("*.") {
            Some(rest) => (rest.to_owned(), true),
            None => (plain, false),
        };
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_' | ':' | '[' | ']');
        if host.is_empty() || !host.chars().all(is_name) {
            let what = format!("`{}` in `hosts` is not the name of a host", shorten_text(text));
            return Err(new_problem(
                what,
                "Write it like `example.com`, or `*.example.com` for all beneath it",
            ));
        }
        Ok(if beneath { Self::Beneath(host) } else { Self::Only(host) })
    }

    pub(super) fn matches(&self, host: &str) -> bool {
        match self {
            Self::Only(only) => *only == host,
            Self::Beneath(of) => {
                host.strip_suffix(of.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            Self::Every => true,
        }
    }

    pub(super) fn exact_host(&self) -> Option<&str> {
        match self {
            Self::Only(host) => Some(host),
            Self::Beneath(_) | Self::Every => None,
        }
    }
}

/// Normalizes a host's name for comparison: lower case, without port and final dot.
pub(crate) fn normalize_host(host: &str) -> String {
    let host = match host.rsplit_once(':') {
        Some((name, port))
            if !port.is_empty()
                && port.bytes().all(|byte| byte.is_ascii_digit())
                && (!name.contains(':') || name.ends_with(']')) =>
        {
            name
        }
        _ => host,
    };
    host.trim_end_matches('.').to_lowercase()
}

/// A rule that is compiled for matching.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompiledRule {
    pub(crate) id: RuleId,
    pub(crate) rule: Rule,
    pub(super) tools: Vec<TextPattern>,
    pub(super) agents: Vec<TextPattern>,
    pub(super) command: Vec<WordPosition>,
    /// Required options. Options among the words of a rule that does not allow are moved here,
    /// because an option counts wherever it stands.
    pub(super) flags: Vec<Vec<String>>,
    pub(super) paths: Vec<PathPattern>,
    pub(super) writes: Vec<PathPattern>,
    pub(super) hosts: Vec<HostMatcher>,
}

impl CompiledRule {
    /// Compiles a rule.
    ///
    /// # Errors
    /// The problem of the rule, and how to fix it.
    pub(crate) fn new(rule: Rule, id: RuleId) -> Result<Self, RuleProblem> {
        let allows = rule.decision == Decision::Allow;
        if allows && id.layer == RuleLayer::Project {
            return Err(new_problem(
                "a project's rules only tighten, and this one allows",
                "Write \"ask\" or \"deny\", or put the rule into your own policy.toml",
            ));
        }
        let mut compiled = Self {
            tools: compile_patterns("tools", &rule.tools)?,
            agents: compile_patterns("agents", &rule.agents)?,
            command: compile_positions(&rule.command)?,
            flags: rule.flags.clone(),
            paths: compile_paths("paths", &rule.paths)?,
            writes: compile_paths("writes", &rule.writes)?,
            hosts: rule.hosts.iter().map(|host| HostMatcher::parse(host)).collect::<Result<_, _>>()?,
            id,
            rule,
        };
        let rule = &compiled.rule;
        if rule.command.is_empty() && !(rule.flags.is_empty() && rule.without_flags.is_empty()) {
            return Err(new_problem(
                "it names options and no command",
                "Add `command`, such as [\"git\", \"push\"]",
            ));
        }
        if allows && !rule.writes.is_empty() {
            return Err(new_problem(
                "`writes` is for what may not be written, or not without asking, and this rule allows",
                "Allow with `tools` and `paths`, or with `command`",
            ));
        }
        let flags = rule.flags.iter().flatten().chain(&rule.without_flags);
        if let Some(flag) = flags.into_iter().find(|flag| !is_option(flag)) {
            let what = format!("`{}` is no option", shorten_text(flag));
            return Err(new_problem(what, "Options begin with `-`; put other words into `command`"));
        }
        let alone = allows && rule.command.is_empty() && rule.paths.is_empty() && rule.hosts.is_empty();
        if rule.exact.is_some() && !alone {
            return Err(new_problem(
                "`exact` stands for one whole command line, by itself, and only to allow it",
                "To forbid or ask about a command, write its first words as `command`",
            ));
        }
        if !allows {
            let never = |word: &&String| {
                word.is_empty()
                    || word.contains(|c: char| c.is_whitespace() || matches!(c, '|' | ';' | '&' | '<' | '>'))
            };
            if let Some(word) = compiled.rule.command.iter().flatten().find(never) {
                let what = format!(
                    "`{}` in `command` is not one word, and no command would be hit",
                    shorten_text(word)
                );
                let words: Vec<String> = word
                    .split(|c: char| c.is_whitespace() || matches!(c, '|' | ';' | '&' | '<' | '>'))
                    .filter(|word| !word.is_empty())
                    .map(|word| format!("\"{}\"", shorten_text(word)))
                    .collect();
                return Err(new_problem(what, format!("Write the words one by one: [{}]", words.join(", "))));
            }
            compiled.collect_required_options();
        }
        Ok(compiled)
    }

    /// Moves options among the words of a rule that denies or asks to the required options, and
    /// drops wildcards at its end.
    fn collect_required_options(&mut self) {
        let is_flag = |position: &WordPosition| {
            let mut literals = position.literals().peekable();
            position.is_literal() && literals.peek().is_some() && literals.all(is_option)
        };
        let words = std::mem::take(&mut self.command);
        for (place, position) in words.into_iter().enumerate() {
            if place > 0 && is_flag(&position) {
                self.flags.push(position.literals().map(str::to_owned).collect());
            } else {
                self.command.push(position);
            }
        }
        // A rule that denies matches every command that begins with its words, whether or not more
        // words follow.
        while self.command.len() > 1 && self.command.last().is_some_and(WordPosition::is_everything) {
            self.command.pop();
        }
    }

    /// Returns true if the rule names all words of a command, one host or one path without a
    /// wildcard: only such rules allow effects outside the project.
    pub(crate) fn is_exact(&self) -> bool {
        self.command.iter().all(WordPosition::is_literal)
            && self.paths.iter().all(PathPattern::is_literal)
            && self.hosts.iter().all(|host| host.exact_host().is_some())
            && !(self.command.is_empty()
                && self.rule.exact.is_none()
                && self.paths.is_empty()
                && self.hosts.is_empty())
    }

    /// Returns true if the rule has patterns for commands, files or hosts.
    pub(super) fn has_target_pattern(&self) -> bool {
        !self.command.is_empty()
            || self.rule.exact.is_some()
            || !self.paths.is_empty()
            || !self.hosts.is_empty()
    }

    /// Returns true if the position `place` matches every word.
    pub(super) fn is_wildcard_at(&self, place: usize) -> bool {
        self.command.get(place).is_some_and(WordPosition::is_everything)
    }
}

/// Returns true if a word is an option.
pub(super) fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && word != "--"
}

fn check_length(key: &str, text: &str) -> Result<(), RuleProblem> {
    if text.len() > MAX_PATTERN_BYTES {
        let what = format!("a pattern in `{key}` has {} bytes", text.len());
        return Err(new_problem(what, format!("At most {MAX_PATTERN_BYTES} are read; use wildcards")));
    }
    Ok(())
}

fn compile_patterns(key: &str, texts: &[String]) -> Result<Vec<TextPattern>, RuleProblem> {
    texts.iter().map(|text| check_length(key, text).map(|()| TextPattern::parse(text, false))).collect()
}

fn compile_positions(words: &[Vec<String>]) -> Result<Vec<WordPosition>, RuleProblem> {
    let mut positions = Vec::with_capacity(words.len());
    for (place, alternatives) in words.iter().enumerate() {
        if alternatives.iter().any(|word| word == "**") {
            if alternatives.len() > 1 || place + 1 < words.len() || place == 0 {
                return Err(new_problem(
                    "`**` in `command` stands for all words that are left",
                    "Put it alone at the end, and `*` for any one word",
                ));
            }
            positions.push(WordPosition::Rest);
            continue;
        }
        positions.push(WordPosition::One(compile_patterns("command", alternatives)?));
    }
    Ok(positions)
}

fn compile_paths(key: &str, texts: &[String]) -> Result<Vec<PathPattern>, RuleProblem> {
    let parse = |text: &String| {
        check_length(key, text)?;
        PathPattern::parse(text).map_err(|wrong| {
            let what = format!("`{}` in `{key}` {wrong}", shorten_text(text));
            new_problem(what, "Write it like `src/**`, `docs/*.md` or `**/.env`")
        })
    };
    texts.iter().map(parse).collect()
}
