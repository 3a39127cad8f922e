//! Matches what a call writes, for rules with `writes`.

use std::cell::OnceCell;

use super::super::glob::split_path;
use super::{CompiledRule, MatchCertainty, MatchSubject, match_shapes, paths_in_word, shapes_of_word};
use crate::command::{CommandPart, WrittenPath, names_writer};

impl CompiledRule {
    /// Matches the files that tools write and the paths that the programs of a command write. A
    /// command that was not understood may write what it names, if it names a program that writes.
    /// `mentioned` keeps whether a word of the command names one of the paths.
    pub(super) fn match_writes(
        &self,
        subject: &MatchSubject<'_>,
        mentioned: &OnceCell<bool>,
    ) -> MatchCertainty {
        // A directory stands for all that is in it: no tool writes one otherwise.
        if self.writes.is_empty()
            || subject.effects.writes.iter().any(|path| self.writes_path(&path.to_string(), true))
        {
            return MatchCertainty::Yes;
        }
        let parts =
            subject.parts().iter().map(|part| self.match_written_part(part, subject, mentioned)).max();
        let seen = parts.unwrap_or(MatchCertainty::No);
        let may_hide = || {
            let text = subject.effects.command.as_deref().unwrap_or_default();
            subject.is_opaque()
                && self.is_mentioned(subject, mentioned)
                && (text.contains('>') || names_writer(subject.raw_words().iter()))
        };
        if seen == MatchCertainty::No && may_hide() { MatchCertainty::Perhaps } else { seen }
    }

    /// Matches the paths that one program writes, as [`CompiledRule::match_writes`] does.
    pub(super) fn match_written_part(
        &self,
        part: &CommandPart,
        subject: &MatchSubject<'_>,
        mentioned: &OnceCell<bool>,
    ) -> MatchCertainty {
        if self.writes.is_empty() {
            return MatchCertainty::Yes;
        }
        let written = part.written.iter().map(|path| self.match_written_path(path, subject, mentioned)).max();
        let in_code = || {
            let mut words = part.code_words.iter().flat_map(|word| paths_in_word(word));
            words.any(|(names, elsewhere)| self.touches_written(&names, elsewhere, false))
                || self.writes.iter().any(|path| path.has_names_among(&part.code_words))
        };
        match written.unwrap_or(MatchCertainty::No) {
            MatchCertainty::No if part.code_writes && in_code() => MatchCertainty::Perhaps,
            seen => seen,
        }
    }

    /// Matches a path. One that begins with a variable, or whose directory is not known, may be any
    /// path that the command mentions elsewhere: in an assignment, a loop or a search.
    fn match_written_path(
        &self,
        path: &WrittenPath,
        subject: &MatchSubject<'_>,
        mentioned: &OnceCell<bool>,
    ) -> MatchCertainty {
        if path.known {
            return match self.writes_path(&path.text, path.tree) {
                true => MatchCertainty::Yes,
                false => MatchCertainty::No,
            };
        }
        let shapes = shapes_of_word(&path.text.replace("{}", "*"));
        let seen = match_shapes(&self.writes, &shapes, subject.wildcards_match_dotfiles());
        let is_open = shapes.is_empty() || path.text.trim_start_matches('"').starts_with(['$', '`', '{']);
        if seen == MatchCertainty::No && is_open && self.is_mentioned(subject, mentioned) {
            return MatchCertainty::Perhaps;
        }
        seen
    }

    fn is_mentioned(&self, subject: &MatchSubject<'_>, mentioned: &OnceCell<bool>) -> bool {
        *mentioned.get_or_init(|| subject.raw_words().iter().any(|word| self.writes_path(word, false)))
    }

    fn writes_path(&self, text: &str, tree: bool) -> bool {
        let (names, elsewhere) = split_path(text);
        self.touches_written(&names, elsewhere, tree)
    }

    fn touches_written(&self, names: &[&str], elsewhere: bool, tree: bool) -> bool {
        self.writes.iter().any(|pattern| {
            !names.is_empty() && pattern.matches_or_contains(names, elsewhere)
                || tree && !elsewhere && pattern.may_be_beneath(names)
        })
    }
}
