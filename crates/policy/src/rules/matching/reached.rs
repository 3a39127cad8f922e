//! Matches what a command reaches without naming it: beneath a directory that it names, or by a
//! path that begins with an unknown value.

use super::super::glob::{last_component, split_path};
use super::{CompiledRule, MatchCertainty, MatchSubject, paths_in_word};
use crate::command::CommandPart;

/// Programs that use only the names of files and directories.
const NAME_USERS: [&str; 19] = [
    "[", "[[", "basename", "cd", "dirname", "du", "echo", "export", "ls", "mkdir", "popd", "printf", "pushd",
    "pwd", "realpath", "rmdir", "stat", "test", "touch",
];
/// Programs that make arguments of what others print.
const ARGUMENT_MAKERS: [&str; 2] = ["xargs", "parallel"];

impl CompiledRule {
    /// Matches a program that is given a directory above one of the rule's paths, or a path that
    /// begins with an unknown value, if the command mentions one of the rule's paths or a directory
    /// above it.
    pub(super) fn match_reached(&self, subject: &MatchSubject<'_>) -> MatchCertainty {
        let makes_arguments =
            subject.parts().iter().any(|part| ARGUMENT_MAKERS.contains(&program_name(part)));
        let users = || subject.parts().iter().filter(|part| makes_arguments || !uses_only_names(part));
        let words = || users().flat_map(|part| part.words.iter().skip(1).chain(&part.reads));
        let is_above = words().filter(|word| word.known).any(|word| self.is_above(&word.text));
        let is_open = || words().any(|word| begins_unknown(&word.text, word.known));
        let is_mentioned = || {
            subject.raw_words().iter().any(|word| {
                let (names, elsewhere) = split_path(word);
                self.touches_path(&names, elsewhere) || self.is_above(word)
            })
        };
        if is_above || is_open() && is_mentioned() { MatchCertainty::Perhaps } else { MatchCertainty::No }
    }

    /// Returns true if a word names a directory above one of the rule's paths, but the root.
    fn is_above(&self, word: &str) -> bool {
        !word.contains("://")
            && paths_in_word(word).any(|(names, elsewhere)| {
                let starts = if elsewhere { names.len() } else { names.len().min(1) };
                (0..starts)
                    .filter_map(|from| names.get(from..))
                    .any(|directory| self.paths.iter().any(|path| path.may_be_beneath(directory)))
            })
    }
}

fn program_name(part: &CommandPart) -> &str {
    part.words.first().map_or("", |program| last_component(&program.text))
}

/// Returns true if a program does not use the content of files. `find` does if it runs another.
fn uses_only_names(part: &CommandPart) -> bool {
    let runs = |text: &str| text.starts_with("-exec") || text.starts_with("-ok");
    match program_name(part) {
        "find" => !part.words.iter().any(|word| runs(&word.text)),
        name => NAME_USERS.contains(&name),
    }
}

/// Returns true if a path begins with a value that is known only when the command runs.
fn begins_unknown(word: &str, known: bool) -> bool {
    word.starts_with("{}") || !known && word.trim_start_matches('"').starts_with(['$', '`'])
}
