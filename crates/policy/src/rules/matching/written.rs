//! Matches what a call writes, for rules with `writes`.

use super::super::glob::split_path;
use super::{CompiledRule, MatchCertainty, MatchSubject, match_shapes, paths_in_word, shapes_of_word};
use crate::command::{CommandPart, WrittenPath};

impl CompiledRule {
    /// Matches the files that tools write and the paths that the programs of a command write. Of a
    /// command that was not understood, any word may be one.
    pub(super) fn match_writes(&self, subject: &MatchSubject<'_>) -> MatchCertainty {
        if self.writes.is_empty() {
            return MatchCertainty::Yes;
        }
        // A directory stands for all that is in it: no tool writes one otherwise.
        if subject.effects.writes.iter().any(|path| self.writes_path(&path.to_string(), true)) {
            return MatchCertainty::Yes;
        }
        let parts = subject.parts().iter().map(|part| self.match_written_part(part, subject)).max();
        let seen = parts.unwrap_or(MatchCertainty::No);
        let may_hide =
            || subject.is_opaque() && subject.raw_words().iter().any(|word| self.writes_path(word, false));
        if seen == MatchCertainty::No && may_hide() { MatchCertainty::Perhaps } else { seen }
    }

    /// Matches the paths that one program writes.
    pub(super) fn match_written_part(
        &self,
        part: &CommandPart,
        subject: &MatchSubject<'_>,
    ) -> MatchCertainty {
        let dots = subject.wildcards_match_dotfiles();
        let written = part.written.iter().map(|path| self.match_written_path(path, dots)).max();
        let in_code = || {
            let mut words = part.code_words.iter().flat_map(|word| paths_in_word(word));
            words.any(|(names, elsewhere)| self.touches_written(&names, elsewhere, false))
        };
        match written.unwrap_or(MatchCertainty::No) {
            MatchCertainty::No if in_code() => MatchCertainty::Perhaps,
            seen => seen,
        }
    }

    fn match_written_path(&self, path: &WrittenPath, dots: bool) -> MatchCertainty {
        if path.known {
            return match self.writes_path(&path.text, path.tree) {
                true => MatchCertainty::Yes,
                false => MatchCertainty::No,
            };
        }
        match shapes_of_word(&path.text).as_slice() {
            [] => MatchCertainty::Perhaps,
            shapes => match_shapes(&self.writes, shapes, dots),
        }
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
