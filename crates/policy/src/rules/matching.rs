//! Matches rules against calls.
//!
//! Denying and allowing rules are matched with opposite care. A rule that denies or asks has to
//! match every spelling: its words are only the beginning of a command, options in between are
//! ignored, a program counts under every path, letter case is ignored, and unknown text counts as a
//! possible match. A rule that allows has to name exactly what runs: word for word, in order,
//! without unknown words.

use std::cell::OnceCell;

use journeyman_protocol::{Effects, Level, Mode, RelPath};

use super::RuleLayer;
use super::compiled::{CompiledRule, WordPosition, is_option, normalize_host};
use super::glob::{LetterCase, NameKey, NameSet, PathPattern, last_component, split_path};
use super::path_shape::{PathShape, possible_paths};
use crate::call::CallingAgent;
use crate::command::{CommandAnalysis, CommandPart, CommandWord};
use crate::protected_paths::{PathProtection, protection_of_text};

/// Maximum number of words of a part that are matched in order.
const MAX_MATCHED_WORDS: usize = 512;
/// Maximum number of words of a command that are matched with paths. A longer command may name any
/// path.
const MAX_PATH_WORDS: usize = 20_000;

/// A call in the form that rules are matched against.
pub(crate) struct MatchSubject<'a> {
    pub(crate) tool: &'a str,
    pub(crate) agent: CallingAgent<'a>,
    pub(crate) mode: Mode,
    pub(crate) effects: &'a Effects,
    /// The analysis of the shell command.
    pub(crate) analysis: Option<&'a CommandAnalysis>,
    /// The words of a command that was not understood, split roughly.
    tokens: OnceCell<NameSet>,
    /// The components of all paths that the call may name.
    names: OnceCell<NameSet>,
    hosts: OnceCell<Vec<String>>,
    /// The paths that its unknown words may stand for.
    shapes: OnceCell<Vec<PathShape>>,
    programs: OnceCell<NameSet>,
    /// True if wildcards match names that begin with a dot.
    dots: OnceCell<bool>,
}

impl<'a> MatchSubject<'a> {
    pub(crate) fn new(
        tool: &'a str,
        agent: CallingAgent<'a>,
        mode: Mode,
        effects: &'a Effects,
        analysis: Option<&'a CommandAnalysis>,
    ) -> Self {
        Self {
            tool,
            agent,
            mode,
            effects,
            analysis,
            tokens: OnceCell::new(),
            dots: OnceCell::new(),
            names: OnceCell::new(),
            hosts: OnceCell::new(),
            shapes: OnceCell::new(),
            programs: OnceCell::new(),
        }
    }

    fn parts(&self) -> &'a [CommandPart] {
        self.analysis.map_or(&[], |analysis| analysis.parts.as_slice())
    }

    /// Returns true if a part of the command may be hidden.
    fn is_opaque(&self) -> bool {
        self.analysis.is_some_and(|analysis| !analysis.complete)
    }

    /// Returns the words of a command that was not understood, in lower case: as written, and
    /// without the characters that shells remove.
    fn raw_words(&self) -> &NameSet {
        self.tokens.get_or_init(|| {
            let text = self.effects.command.as_deref().unwrap_or_default().to_lowercase();
            let bare: String = text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
            let between = |c: char| {
                !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.' | '/' | '+' | '@' | ':' | '~' | '%')
            };
            let bare = (bare != text).then_some(bare.as_str()).into_iter();
            let words = text.split(between).chain(bare.flat_map(|bare| bare.split(between)));
            let words = words.filter(|word| !word.is_empty());
            let mut words: Vec<&str> = words.flat_map(|word| [word, last_component(word)]).collect();
            // If some words are not searched for paths, none is counted twice.
            if words.len() > MAX_PATH_WORDS {
                words.sort_unstable();
                words.dedup();
            }
            let mut names = NameSet::default();
            words.into_iter().for_each(|word| names.add_name(word));
            names
        })
    }

    /// Returns true if a word occurs in a command that was not understood.
    fn may_name(&self, word: &NameKey) -> bool {
        self.raw_words().contains(word)
    }

    /// Returns true if the predicate is true for a text that may be a path: of the call's effects,
    /// or a word of its command.
    fn any_path_text(&self, mut is_so: impl FnMut(&str) -> bool) -> bool {
        let mut effects = self.effects.reads.iter().chain(&self.effects.writes);
        let words = self.words();
        effects.any(|path| is_so(&path.to_string()))
            || words.take(MAX_PATH_WORDS).any(|word| is_so(&word.text))
            || self.is_opaque() && self.raw_words().iter().take(MAX_PATH_WORDS).any(is_so)
    }

    /// Returns true if the command has words that no path is matched with.
    fn has_unread_words(&self) -> bool {
        self.words().nth(MAX_PATH_WORDS).is_some()
            || self.is_opaque() && self.raw_words().iter().nth(MAX_PATH_WORDS).is_some()
    }

    /// Returns all words of the parts, including the files of redirections.
    fn words(&self) -> impl Iterator<Item = &'a CommandWord> {
        self.parts().iter().flat_map(|part| part.words.iter().chain(&part.writes).chain(&part.reads))
    }

    fn shapes(&self) -> &[PathShape] {
        self.shapes.get_or_init(|| {
            // Known words have only quoted wildcards; if the text was not understood, no word is
            // known.
            let opaque = self.is_opaque();
            // `{}` behind a directory stands for any name there.
            let is_filled = |text: &str| text.find("{}").is_some_and(|at| at > 0);
            let words = self.words().take(MAX_PATH_WORDS);
            let words = words.filter(|word| opaque || !word.known || is_filled(&word.text));
            let mut shapes: Vec<PathShape> = words
                .flat_map(|word| match is_filled(&word.text) {
                    true => shapes_of_word(&word.text.replace("{}", "*")),
                    false => shapes_of_word(&word.text),
                })
                .collect();
            if opaque {
                // The raw text is used, because rough splitting removes brackets.
                let text = self.effects.command.as_deref().unwrap_or_default();
                let between =
                    |c: char| c.is_whitespace() || matches!(c, ';' | '|' | '&' | '<' | '>' | '(' | ')');
                shapes.extend(text.split(between).take(MAX_PATH_WORDS).flat_map(shapes_of_word));
            }
            shapes
        })
    }

    /// Returns true if wildcards match names that begin with a dot.
    fn wildcards_match_dotfiles(&self) -> bool {
        *self.dots.get_or_init(|| {
            self.effects.command.as_deref().is_some_and(|command| command.contains("dotglob"))
        })
    }

    /// Returns the known programs of the parts, with and without their directories.
    fn programs(&self) -> &NameSet {
        self.programs.get_or_init(|| {
            let mut names = NameSet::default();
            for program in self.parts().iter().filter_map(|part| part.words.first()).filter(|word| word.known)
            {
                names.add_name(&program.text);
                let name = last_component(&program.text);
                if name.len() != program.text.len() {
                    names.add_name(name);
                }
            }
            names
        })
    }

    /// Returns a superset of the components of these paths.
    fn component_names(&self) -> &NameSet {
        self.names.get_or_init(|| {
            let mut names = NameSet::default();
            self.any_path_text(|text| {
                match text.starts_with('-') || text.contains(['=', ':', ',', '@']) {
                    true => possible_paths(text).into_iter().for_each(|place| names.add(place)),
                    false => names.add(text),
                }
                false
            });
            names
        })
    }

    /// Returns the normalized hosts of the call.
    fn hosts(&self) -> &[String] {
        self.hosts.get_or_init(|| {
            let hosts = self.effects.hosts.iter().chain(self.parts().iter().flat_map(|part| &part.hosts));
            hosts.map(|host| normalize_host(host)).collect()
        })
    }
}

/// Returns the paths that a word may name: itself, or a part of it.
fn paths_in_word(word: &str) -> impl Iterator<Item = (Vec<&str>, bool)> {
    possible_paths(word).into_iter().map(split_path)
}

/// Returns the paths that an unknown word may stand for.
fn shapes_of_word(word: &str) -> Vec<PathShape> {
    match word.contains(['*', '?', '[', '$', '`']) {
        true => possible_paths(word).into_iter().filter_map(PathShape::from_word).collect(),
        false => Vec::new(),
    }
}

/// The result of matching a rule that denies or asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MatchCertainty {
    No,
    /// The rule may match: a part of the call is unknown.
    Perhaps,
    Yes,
}

/// The specificity that a rule needs to allow something, from the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RuleSpecificity {
    /// A rule with wildcards is enough.
    Any,
    /// A rule without wildcards, for unconfined commands and permanent destruction.
    Exact,
    /// A rule without wildcards in a file, for level 3: an answer in a session, or an imported log,
    /// never allows it.
    Written,
}

/// The aspect of a call that an allow rule has to match.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CallAspect<'a> {
    /// The whole command line.
    Line(&'a str),
    /// One program of the command.
    CommandPart(&'a CommandPart),
    /// A file that is written.
    Path(&'a RelPath),
    /// A host that is connected to.
    Host(&'a str),
    /// The tool.
    Tool,
}

impl CompiledRule {
    /// Returns true if the rule applies to the call's tool, agent and mode.
    fn applies_to_call(&self, subject: &MatchSubject<'_>, case: LetterCase) -> bool {
        let one_of = |texts: &[super::glob::TextPattern], name: &str| {
            texts.is_empty() || texts.iter().any(|text| text.matches(name, case))
        };
        (self.rule.modes.is_empty() || self.rule.modes.contains(&subject.mode))
            && one_of(&self.tools, subject.tool)
            && subject.agent.names().any(|name| one_of(&self.agents, name))
    }

    /// Matches a rule that denies or asks.
    pub(crate) fn match_restricting(&self, subject: &MatchSubject<'_>) -> MatchCertainty {
        if !self.applies_to_call(subject, LetterCase::Ignored) {
            return MatchCertainty::No;
        }
        // Looked for at most once: a long command may have many words, and many paths that are not
        // known.
        let mentioned = OnceCell::new();
        if self.command.is_empty() {
            let hosts = self.hosts.is_empty() || self.hits_host(subject);
            let named = match (hosts, self.paths.is_empty()) {
                (false, _) => MatchCertainty::No,
                (true, true) => MatchCertainty::Yes,
                (true, false) => self.match_paths(subject),
            };
            return if named == MatchCertainty::No {
                named
            } else {
                named.min(self.match_writes(subject, &mentioned))
            };
        }
        if subject.effects.command.is_none() {
            return MatchCertainty::No;
        }
        let here = self.may_match_program(subject);
        // The command may run anything, so an unknown program adds nothing.
        let opaque = subject.is_opaque();
        let seen = subject
            .parts()
            .iter()
            .filter(|part| here || !opaque && part.words.first().is_some_and(|program| !program.known))
            .map(|part| match self.match_part(part, subject) {
                MatchCertainty::No => MatchCertainty::No,
                hit => hit.min(self.match_written_part(part, subject, &mentioned)),
            })
            .max()
            .unwrap_or(MatchCertainty::No);
        if seen < MatchCertainty::Yes && opaque { seen.max(self.match_raw_text(subject)) } else { seen }
    }

    /// Returns true if a part with a known program may begin with the rule's program. Most rules
    /// name others.
    fn may_match_program(&self, subject: &MatchSubject<'_>) -> bool {
        let Some(program) = self.command.first().filter(|program| program.is_literal()) else { return true };
        program.lowercase_literals().any(|name| {
            subject.programs().contains(name) || subject.programs().contains(name.last_component())
        })
    }

    fn match_paths(&self, subject: &MatchSubject<'_>) -> MatchCertainty {
        let mut likely = self.paths.iter().filter(|path| path.may_match_any(subject.component_names()));
        let named = likely.any(|path| {
            subject.any_path_text(|text| {
                paths_in_word(text).any(|(names, elsewhere)| {
                    !names.is_empty() && path.matches_or_contains(&names, elsewhere)
                })
            })
        });
        if named {
            return MatchCertainty::Yes;
        }
        if subject.has_unread_words() {
            return MatchCertainty::Perhaps;
        }
        let shaped = match_shapes(&self.paths, subject.shapes(), subject.wildcards_match_dotfiles());
        let coded = subject.parts().iter().map(|part| self.match_code(part)).max();
        match shaped.max(coded.unwrap_or(MatchCertainty::No)) {
            MatchCertainty::No => self.match_reached(subject),
            seen => seen,
        }
    }

    /// Matches the paths that inline code names. A word without a dot or a slash is rather a name
    /// of the code's own.
    fn match_code(&self, part: &CommandPart) -> MatchCertainty {
        let mut words = part.code_words.iter().filter(|word| word.contains(['.', '/']));
        let named = words
            .any(|word| paths_in_word(word).any(|(names, elsewhere)| self.touches_path(&names, elsewhere)));
        if named { MatchCertainty::Perhaps } else { MatchCertainty::No }
    }

    fn touches_path(&self, names: &[&str], elsewhere: bool) -> bool {
        !names.is_empty() && self.paths.iter().any(|path| path.matches_or_contains(names, elsewhere))
    }

    fn hits_host(&self, subject: &MatchSubject<'_>) -> bool {
        subject.hosts().iter().any(|host| self.hosts.iter().any(|pattern| pattern.matches(host)))
            || subject.is_opaque()
                && self
                    .hosts
                    .iter()
                    .filter_map(|host| host.exact_host())
                    .any(|host| subject.raw_words().iter().any(|token| token.contains(host)))
    }

    fn match_part(&self, part: &CommandPart, subject: &MatchSubject<'_>) -> MatchCertainty {
        let mut hit = self.match_words(&part.words);
        if hit > MatchCertainty::No && !(self.flags.is_empty() && self.rule.without_flags.is_empty()) {
            hit = hit.min(self.match_options(&part.words));
        }
        if hit > MatchCertainty::No && !self.paths.is_empty() {
            let mut words = part.words.iter().skip(1).chain(&part.writes).chain(&part.reads);
            let named = words
                .clone()
                .flat_map(|word| paths_in_word(&word.text))
                .any(|(names, elsewhere)| self.touches_path(&names, elsewhere));
            if !named {
                let opaque = subject.is_opaque();
                let open = words.clone().filter(|word| opaque || !word.known);
                let shapes: Vec<PathShape> = open.flat_map(|word| shapes_of_word(&word.text)).collect();
                let known =
                    if words.all(|word| word.known) { MatchCertainty::No } else { MatchCertainty::Perhaps };
                let dots = subject.wildcards_match_dotfiles();
                let shaped = match_shapes(&self.paths, &shapes, dots);
                hit = hit.min(known.max(shaped).max(self.match_code(part)));
            }
        }
        if hit > MatchCertainty::No && !self.hosts.is_empty() {
            let named = part.hosts.iter().any(|host| {
                let host = normalize_host(host);
                self.hosts.iter().any(|pattern| pattern.matches(&host))
            });
            if !named {
                hit = if part.words.iter().all(|word| word.known) {
                    MatchCertainty::No
                } else {
                    MatchCertainty::Perhaps
                };
            }
        }
        hit
    }

    /// Matches the beginning of a command with the rule's words, skipping options and their
    /// possible values.
    fn match_words(&self, words: &[CommandWord]) -> MatchCertainty {
        let Some((program, pattern)) = self.command.split_first() else { return MatchCertainty::Yes };
        let Some((first, words)) = words.split_first() else { return MatchCertainty::No };
        if !first.known {
            return MatchCertainty::Perhaps;
        }
        let named = |name: &str| program.matches(name, LetterCase::Ignored);
        // A program is the same under every path, in the rule and in the command.
        let name = last_component(&first.text);
        let same =
            |other: &str| other.starts_with('/') && LetterCase::Ignored.is_equal(last_component(other), name);
        if !named(&first.text)
            && (name.len() == first.text.len() || !named(name))
            && !program.literals().any(same)
        {
            return MatchCertainty::No;
        }
        let is_cut = words.len() > MAX_MATCHED_WORDS;
        let words = words.get(..MAX_MATCHED_WORDS).unwrap_or(words);
        // Indices in `words` that the positions so far may have reached.
        let mut reached = vec![false; words.len() + 1];
        if let Some(start) = reached.first_mut() {
            *start = true;
        }
        let mut perhaps = false;
        for position in pattern {
            if *position == WordPosition::Rest {
                break;
            }
            let mut next = vec![false; words.len() + 1];
            for (place, word) in words.iter().enumerate() {
                if !reached.get(place).copied().unwrap_or(false) {
                    continue;
                }
                // An unknown word may expand to any number of words.
                perhaps |= !word.known;
                let mark = |of: &mut Vec<bool>, at: usize| {
                    if let Some(mark) = of.get_mut(at) {
                        *mark = true;
                    }
                };
                if word.known && position.matches(&word.text, LetterCase::Ignored) {
                    mark(&mut next, place + 1);
                }
                if word.text.starts_with('-') {
                    mark(&mut reached, place + 1);
                    mark(&mut reached, place + 2);
                }
            }
            // Nothing but options up to the end of what is matched.
            perhaps |= is_cut && reached.last() == Some(&true);
            reached = next;
        }
        match reached.contains(&true) {
            true => MatchCertainty::Yes,
            false if perhaps => MatchCertainty::Perhaps,
            false => MatchCertainty::No,
        }
    }

    /// Matches the required and the forbidden options of a rule that denies or asks.
    fn match_options(&self, words: &[CommandWord]) -> MatchCertainty {
        let unknown = words.iter().skip(1).any(|word| !word.known);
        let mut hit = MatchCertainty::Yes;
        for alternatives in &self.flags {
            let there = words.iter().skip(1).any(|word| {
                alternatives.iter().any(|flag| is_option_spelling(&word.text, flag, OptionSpelling::Any))
            }) || alternatives.iter().any(|flag| {
                // `-rf` equals `-r -f` and `-fr`.
                cluster_options(flag).is_some_and(|mut letters| {
                    letters.all(|letter| {
                        let short = format!("-{letter}");
                        words
                            .iter()
                            .skip(1)
                            .any(|word| is_option_spelling(&word.text, &short, OptionSpelling::Any))
                    })
                })
            });
            hit = hit.min(match (there, unknown) {
                (true, _) => MatchCertainty::Yes,
                (false, true) => MatchCertainty::Perhaps,
                (false, false) => MatchCertainty::No,
            });
        }
        let before = words.iter().skip(1).take_while(|word| word.text != "--").filter(|word| word.known);
        for word in before {
            if self
                .rule
                .without_flags
                .iter()
                .any(|flag| is_option_spelling(&word.text, flag, OptionSpelling::Whole))
            {
                return MatchCertainty::No;
            }
        }
        hit
    }

    /// Returns true if the text of a command that was not understood may run the rule's program.
    fn match_raw_text(&self, subject: &MatchSubject<'_>) -> MatchCertainty {
        let Some((program, rest)) = self.command.split_first() else { return MatchCertainty::Yes };
        let named = match program.is_literal() {
            true => program.lowercase_literals().any(|name| {
                subject.may_name(name) || (name.is_absolute() && subject.may_name(name.last_component()))
            }),
            false => subject.raw_words().iter().any(|token| program.matches(token, LetterCase::Ignored)),
        };
        let all = named
            && rest.iter().all(|position| match position.is_literal() {
                true => position.lowercase_literals().any(|word| subject.may_name(word)),
                false => true,
            });
        let flags = all
            && self.flags.iter().all(|flags| {
                flags.iter().any(|flag| {
                    subject
                        .raw_words()
                        .iter()
                        .any(|token| is_option_spelling(token, &flag.to_lowercase(), OptionSpelling::Any))
                })
            });
        let bare = self.paths.is_empty() && self.hosts.is_empty() && self.rule.without_flags.is_empty();
        match named && all && flags && bare {
            true => MatchCertainty::Yes,
            // A command that was not understood may run anything.
            false => MatchCertainty::Perhaps,
        }
    }

    /// Returns true if the rule allows this aspect of a call.
    pub(crate) fn allows_aspect(
        &self,
        subject: &MatchSubject<'_>,
        aspect: CallAspect<'_>,
        need: RuleSpecificity,
    ) -> bool {
        let says_enough = match need {
            RuleSpecificity::Any => true,
            RuleSpecificity::Exact => self.is_exact(),
            RuleSpecificity::Written => self.is_exact() && self.id.layer != RuleLayer::Session,
        };
        if !says_enough || !self.applies_to_call(subject, LetterCase::Exact) {
            return false;
        }
        let speaks_of_commands = !self.command.is_empty() || self.rule.exact.is_some();
        let effects = subject.effects;
        match aspect {
            CallAspect::Line(line) => self.rule.exact.as_deref().is_some_and(|exact| exact == line),
            CallAspect::CommandPart(part) => !self.command.is_empty() && self.covers_part(part, need),
            CallAspect::Tool => {
                !speaks_of_commands
                    && effects.reads.iter().chain(&effects.writes).all(|path| self.covers_path(path))
                    && effects.hosts.iter().all(|host| self.covers_host(host))
            }
            CallAspect::Path(path) => {
                !speaks_of_commands
                    && (!self.paths.is_empty() || self.hosts.is_empty())
                    && self.covers_path(path)
                    && effects.hosts.iter().all(|host| self.covers_host(host))
            }
            CallAspect::Host(host) => {
                !speaks_of_commands
                    && (!self.hosts.is_empty() || self.paths.is_empty())
                    && self.covers_host(host)
                    && effects.reads.iter().chain(&effects.writes).all(|path| self.covers_path(path))
            }
        }
    }

    fn covers_path(&self, path: &RelPath) -> bool {
        let text = path.to_string();
        let names: Vec<&str> = text.split('/').collect();
        self.paths.is_empty()
            || std::str::from_utf8(path.as_bytes()).is_ok()
                && self.paths.iter().any(|pattern| pattern.matches(&names, LetterCase::Exact))
    }

    fn covers_host(&self, host: &str) -> bool {
        let host = normalize_host(host);
        self.hosts.is_empty() || self.hosts.iter().any(|pattern| pattern.matches(&host))
    }

    /// Returns true if the rule names a part word for word.
    fn covers_part(&self, part: &CommandPart, need: RuleSpecificity) -> bool {
        if part.words.iter().chain(&part.writes).any(|word| !word.known) {
            return false;
        }
        let open = matches!(self.command.last(), Some(WordPosition::Rest));
        let fixed = self.command.len() - usize::from(open);
        if part.words.len() < fixed || !open && part.words.len() > fixed {
            return false;
        }
        let rest = std::iter::repeat(&WordPosition::Rest);
        for (position, word) in self.command.iter().take(fixed).chain(rest).zip(&part.words) {
            if !position.matches(&word.text, LetterCase::Exact) {
                return false;
            }
            // If the rule has paths, a word that matches a wildcard has to be one of them.
            if !self.paths.is_empty() && !position.is_literal() && !self.covers_path_word(&word.text) {
                return false;
            }
        }
        let arguments = part.words.iter().skip(1);
        let has =
            |flag: &String, how| arguments.clone().any(|word| is_option_spelling(&word.text, flag, how));
        if !self.flags.iter().all(|flags| flags.iter().any(|flag| has(flag, OptionSpelling::Whole)))
            || self.rule.without_flags.iter().any(|flag| has(flag, OptionSpelling::Any))
        {
            return false;
        }
        let hosts = part.hosts.iter().all(|host| self.covers_host(host));
        hosts && part.writes.iter().all(|word| self.covers_write(&word.text, need))
    }

    /// Returns true if a word of a command is one of the rule's paths.
    fn covers_path_word(&self, word: &str) -> bool {
        let (names, elsewhere) = split_path(word);
        let plain = !word.starts_with('-') && !elsewhere && !word.split('/').any(|name| name == "..");
        plain && !names.is_empty() && self.paths.iter().any(|path| path.matches(&names, LetterCase::Exact))
    }

    /// Returns true if a redirection may write the file: an ordinary file of the project, or one
    /// that the rule names.
    fn covers_write(&self, target: &str, need: RuleSpecificity) -> bool {
        if matches!(target, "/dev/null" | "/dev/stdout" | "/dev/stderr") {
            return true;
        }
        if !self.paths.is_empty() {
            return self.covers_path_word(target);
        }
        let ordinary = !split_path(target).1 && protection_of_text(target) == PathProtection::None;
        ordinary && need == RuleSpecificity::Any
    }
}

/// Matches the paths that unknown words may stand for.
fn match_shapes(patterns: &[PathPattern], shapes: &[PathShape], dots: bool) -> MatchCertainty {
    if shapes.is_empty() {
        return MatchCertainty::No;
    }
    let met = patterns
        .iter()
        .flat_map(|path| shapes.iter().filter_map(move |shape| path.may_match_both(shape, dots)));
    match met.max() {
        Some(true) => MatchCertainty::Yes,
        Some(false) => MatchCertainty::Perhaps,
        None => MatchCertainty::No,
    }
}

/// The spellings of an option that match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionSpelling {
    /// The whole option, alone, in a cluster of short options, or with a value.
    Whole,
    /// Also abbreviations of a long option, which many programs accept.
    Any,
}

/// Returns true if a word is or contains this option.
fn is_option_spelling(word: &str, flag: &str, spelling: OptionSpelling) -> bool {
    if word == flag {
        return true;
    }
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    if name == flag {
        return true;
    }
    let Some(short) = flag.strip_prefix('-').filter(|rest| rest.chars().count() == 1) else {
        // At least two letters: fewer could mean several options.
        return spelling == OptionSpelling::Any
            && flag.starts_with("--")
            && name.len() >= "--xx".len()
            && is_option(name)
            && flag.starts_with(name);
    };
    !word.starts_with("--") && word.strip_prefix('-').is_some_and(|cluster| cluster.contains(short))
}

/// Returns the short options of a cluster such as `-rf`. Longer ones are long options with one
/// dash, as of `find`.
fn cluster_options(flag: &str) -> Option<std::str::Chars<'_>> {
    const MAX_CLUSTER_LETTERS: usize = 3;
    let cluster = flag.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
    (2..=MAX_CLUSTER_LETTERS).contains(&cluster.chars().count()).then(|| cluster.chars())
}

/// Returns true if a part only changes the directory.
pub(crate) fn changes_directory(part: &CommandPart) -> bool {
    part.words.first().is_some_and(|word| matches!(word.text.as_str(), "cd" | "pushd" | "popd"))
}

/// Returns the level that a command's parts explain.
pub(crate) fn explained_level(analysis: &CommandAnalysis) -> Level {
    analysis.parts.iter().map(|part| part.level).max().unwrap_or_default()
}

mod reached;
mod written;

#[cfg(test)]
mod tests;
