//! The file that each fenced block of a reply is about.

use std::collections::HashSet;

use journeyman_protocol::RelPath;
use journeyman_syntax::language::Language;

use super::{FencedBlock, SHELL_LANGUAGES, WholeFileReader};
use crate::formats::announced_paths::{
    CommentPath, CommentPathKind, announced_path, announces_file, path_in_first_comment,
};
use crate::formats::block::ProblemKind;
use crate::formats::paths;
use crate::lost_lines::is_distinctive;

/// Lines of a script that a block has to repeat to be a version of it.
const MIN_REPEATED_SCRIPT_LINES: usize = 3;

impl<'a> WholeFileReader<'_, 'a> {
    /// The file of each block: the one that its fence, the line above it or the prose before it
    /// names; the caller's for an only block without a name.
    pub(super) fn files_of_blocks(
        &mut self,
        containers: &[FencedBlock<'a>],
    ) -> Vec<Option<Result<RelPath, (&'a str, String)>>> {
        let unnamed: Vec<usize> = containers
            .iter()
            .enumerate()
            .filter(|(_, block)| !SHELL_LANGUAGES.contains(&block.language))
            .map(|(index, _)| index)
            .collect();
        self.several = unnamed.len() > 1;
        let mut files: Vec<_> = containers.iter().map(|block| self.file_of_block(block)).collect();
        if files.iter().any(Option::is_some) {
            self.refuse_doubtful_names(containers, &files);
            return files;
        }
        match (unnamed.as_slice(), self.source.path) {
            ([only], Some(path)) => {
                if let Some(file) = files.get_mut(*only) {
                    *file = Some(Ok(path.clone()));
                }
            }
            ([], _) => {}
            // One after the other they are about the file that is there.
            ([first, ..], Some(path)) if self.are_pieces_of(path, containers, *first, &unnamed) => {
                for index in unnamed {
                    if let Some(file) = files.get_mut(index) {
                        *file = Some(Ok(path.clone()));
                    }
                }
            }
            ([first, ..], path) => {
                let message = match path {
                    None => "nothing names the file of this block: put its path on the line above the fence",
                    Some(_) => {
                        "several blocks, and none is named: put the file's path on the line above its fence"
                    }
                };
                if let Some(block) = containers.get(*first) {
                    self.add_problem(block, ProblemKind::Malformed, None, message);
                }
            }
        }
        files
    }

    /// Returns true if a lazy reply's unnamed blocks are all in the language of a file that is
    /// there.
    fn are_pieces_of(
        &self,
        path: &RelPath,
        containers: &[FencedBlock<'a>],
        first: usize,
        unnamed: &[usize],
    ) -> bool {
        let language = |index: usize| containers.get(index).map(|block| block.language);
        let own = Language::from_path(&path.to_string());
        let in_language = language(first).and_then(Language::from_name) == own && own.is_some();
        self.lazy
            && in_language
            && unnamed.iter().all(|index| language(*index) == language(first))
            && matches!(self.source.files.text(path), Ok(Some(_)))
    }

    /// The path in the comment that a block begins with.
    fn comment_of_block(&self, block: &FencedBlock<'a>) -> Option<CommentPath<'a>> {
        let body = self.source.reply.get(block.body.0..block.body.1).unwrap_or_default();
        let is_shell = SHELL_LANGUAGES.contains(&block.language);
        path_in_first_comment(body, block.language, self.source).filter(|_| !is_shell)
    }

    /// Returns true if a comment names the file of its block. A bare name doesn't where the project
    /// has such a file in a directory.
    fn names_file(&self, found: &CommentPath<'_>) -> bool {
        let is_own = |path: &RelPath| path.file_name() == found.path.as_bytes();
        match found.kind {
            CommentPathKind::Bare if self.source.path.is_some_and(is_own) => true,
            CommentPathKind::Bare => {
                let others = || self.others.get_or_init(|| self.source.files.other_paths());
                (self.several || found.is_name(self.source)) && !others().iter().any(is_own)
            }
            CommentPathKind::Certain | CommentPathKind::Doubtful => found.is_name(self.source),
        }
    }

    /// Blocks beside named ones that a comment may name: they aren't left out without a word.
    fn refuse_doubtful_names<T>(&mut self, containers: &[FencedBlock<'a>], files: &[Option<T>]) {
        let unnamed = containers.iter().zip(files).filter(|(_, file)| file.is_none());
        let doubtful: Vec<FencedBlock<'a>> =
            unnamed.map(|(block, _)| *block).filter(|block| self.comment_of_block(block).is_some()).collect();
        for block in doubtful {
            let message =
                "the comment that it begins with may name its file: put the path on the line above the fence";
            self.add_problem(&block, ProblemKind::Malformed, None, message);
        }
    }

    /// The script that a line of prose names for a block in a language of scripts:
    /// commands to run it are no version of it.
    fn script_of_block(&self, block: &FencedBlock<'a>, line: &str) -> Option<RelPath> {
        let path = paths::path_in_prose(line, self.source)?;
        let Ok(Some(old)) = self.source.files.text(&path) else { return None };
        let body = self.source.reply.get(block.body.0..block.body.1)?;
        let own: HashSet<&str> = body.lines().map(str::trim).collect();
        let told: Vec<&str> = old.lines().map(str::trim).filter(|line| is_distinctive(line)).collect();
        let shared = told.iter().filter(|line| own.contains(*line)).count();
        (shared >= MIN_REPEATED_SCRIPT_LINES.min(told.len()) && shared > 0).then_some(path)
    }

    /// The file that is named for a block, on its fence, above it or in prose.
    fn file_of_block(&mut self, block: &FencedBlock<'a>) -> Option<Result<RelPath, (&'a str, String)>> {
        let resolved =
            |name: &'a str| paths::resolve_path_of_whole_file(name, self.source).map_err(|why| (name, why));
        if let Some(name) = block.name {
            return Some(resolved(name));
        }
        let is_shell = SHELL_LANGUAGES.contains(&block.language);
        let in_comment = || {
            let found = self.comment_of_block(block).filter(|found| self.names_file(found));
            found.map(|found| found.path)
        };
        // A heading says what a section is about: its block is of the file's language then.
        let in_heading = block.heading.filter(|path| {
            let fence = Language::from_name(block.language);
            (self.several || self.source.path.is_none())
                && fence.is_some()
                && fence == Language::from_path(path)
        });
        let Some(line) = block.prose else { return in_comment().map(resolved) };
        if is_shell {
            return self.script_of_block(block, line).map(Ok);
        }
        if self.detected && !announces_file(line) {
            return in_comment().or(in_heading).map(resolved);
        }
        let called = self
            .source
            .path
            .filter(|path| std::str::from_utf8(path.file_name()).is_ok_and(|name| line.contains(name)));
        match (paths::paths_in_prose(line, self.source).as_slice(), called) {
            ([only], _) => Some(Ok(only.clone())),
            ([_, _, ..], _) => {
                let message =
                    "the line above it speaks of several files: put the path of this one alone on that line";
                self.add_problem(block, ProblemKind::Malformed, None, message);
                None
            }
            ([], Some(path)) => Some(Ok(path.clone())),
            ([], None) => announced_path(line).or_else(in_comment).or(in_heading).map(resolved),
        }
    }
}
