//! The part of a diff about one file, and the edit that results.

use std::collections::HashSet;

use journeyman_protocol::RelPath;

use crate::edit::{Edit, EditOp, PatchHunk};
use crate::formats::ReplySource;
use crate::formats::block::{BlockProblem, ProblemKind};
use crate::formats::hunks;
use crate::formats::udiff::fault::{SectionFault, to_problem};
use crate::formats::udiff::names::{self, HeaderName};

/// The lines between a file's names, or its `diff --git`, and the next file.
#[derive(Debug, Default)]
pub(super) struct FileSection<'a> {
    /// The 0-based line where it begins.
    pub(super) line: usize,
    pub(super) old: Option<HeaderName>,
    pub(super) new: Option<HeaderName>,
    /// The names of `diff --git`, where there was one.
    pub(super) git: Option<(Option<String>, Option<String>)>,
    /// The file that the lines above the first hunk name, where there is no header.
    named: Option<RelPath>,
    /// Each hunk that changes something, with the 0-based line after its header.
    pub(super) hunks: Vec<(usize, PatchHunk)>,
    /// The first hunk that only repeats lines of the file.
    pub(super) unchanged: Option<PatchHunk>,
    /// It is known to be complete: its last hunk has what its header promises, or the block around
    /// it was closed.
    pub(super) whole: bool,
    /// The diff itself has CRLF line endings.
    pub(super) crlf: bool,
    pub(super) fault: Option<SectionFault>,
    renamed: (Option<&'a str>, Option<&'a str>),
    copied: (Option<&'a str>, Option<&'a str>),
    created: bool,
    deleted: bool,
    modes: Vec<&'a str>,
}

/// Returns true if a blob's name says that there is none.
fn is_null_blob(name: &str) -> bool {
    name.len() >= 7 && name.bytes().all(|byte| byte == b'0')
}

impl<'a> FileSection<'a> {
    pub(super) fn at_line(line: usize) -> Self {
        Self { line, ..Self::default() }
    }

    pub(super) fn with_names(line: usize, old: Option<HeaderName>, new: Option<HeaderName>) -> Self {
        Self { line, old, new, ..Self::default() }
    }

    /// The section of a hunk without a header, with the file that the lines above it name or why
    /// that can be none.
    pub(super) fn named_above(line: usize, named: Result<RelPath, String>) -> Self {
        let section = Self::at_line(line);
        match named {
            Ok(path) => Self { named: Some(path), ..section },
            Err(why) => Self { fault: Some((ProblemKind::Path, line, why)), ..section },
        }
    }

    /// Returns true if a header names its file.
    pub(super) fn has_header(&self) -> bool {
        self.old.is_some() || self.new.is_some() || self.git.is_some()
    }

    /// Returns true if a file's names belong to the `diff --git` above them: it has no others, and
    /// no hunk, and one of them is one of its own.
    pub(super) fn takes_names(&self, names: [Option<&HeaderName>; 2]) -> bool {
        let Some((git_old, git_new)) = &self.git else { return false };
        let bare = |name: &str| name.split_once('/').map_or(name, |(_, path)| path).to_owned();
        let own: Vec<String> =
            [git_old, git_new].into_iter().flatten().flat_map(|name| [name.clone(), bare(name)]).collect();
        let is_own = |name: &HeaderName| {
            name.path().is_none_or(|name| own.iter().any(|own| *own == name || *own == bare(name)))
        };
        self.hunks.is_empty() && self.old.is_none() && names.into_iter().flatten().any(is_own)
    }

    /// Takes a line of git's extended header; `false` where it isn't one.
    pub(super) fn read_extended_header(&mut self, line: &'a str) -> bool {
        let words = [
            "old mode ",
            "new mode ",
            "deleted file mode ",
            "new file mode ",
            "rename from ",
            "rename to ",
            "copy from ",
            "copy to ",
            "similarity index ",
            "dissimilarity index ",
            "index ",
        ];
        let Some((word, rest)) = words.iter().find_map(|word| Some((*word, line.strip_prefix(word)?))) else {
            return false;
        };
        match word {
            "deleted file mode " => self.deleted = true,
            "new file mode " => {
                self.created = true;
                if rest.trim() != "100644" {
                    self.modes.push(rest.trim());
                }
            }
            "new mode " => self.modes.push(rest.trim()),
            "rename from " => self.renamed.0 = Some(rest),
            "rename to " => self.renamed.1 = Some(rest),
            "copy from " => self.copied.0 = Some(rest),
            "copy to " => self.copied.1 = Some(rest),
            // No blob before: the file is made.
            "index " if rest.split_once("..").is_some_and(|(old, _)| is_null_blob(old)) => {
                self.created = true
            }
            _ => {}
        }
        true
    }

    /// Notes what is wrong; what was noted first counts.
    pub(super) fn note_fault(&mut self, line: usize, message: String) {
        self.fault.get_or_insert((ProblemKind::Malformed, line, message));
    }

    /// Notes that nothing says where the lines of its hunk go, if it only adds some to a file that
    /// has others.
    pub(super) fn refuse_unplaced_lines(&mut self, source: &ReplySource<'_>) {
        let adds = |(_, hunk): &(usize, PatchHunk)| hunks::created_content(hunk, "\n").is_ok();
        let text = self.named.as_ref().and_then(|path| source.files.text(path).ok().flatten());
        if self.hunks.iter().all(adds) && text.is_some_and(|text| !text.trim().is_empty()) {
            let message = "it only adds lines, and nothing says where: show lines of the file beside them";
            self.note_fault(self.line, message.to_owned());
        }
    }

    /// Returns true if its only hunk adds lines to a file that has none (`@@ -0,0 +1,9 @@`) while
    /// the file has most of them: they are its content, not lines before it.
    fn repeats_the_file(&self, source: &ReplySource<'_>, path: &RelPath) -> bool {
        let [(_, hunk)] = self.hunks.as_slice() else { return false };
        if hunk.near != Some(1) || hunks::created_content(hunk, "\n").is_err() {
            return false;
        }
        let Ok(Some(text)) = source.files.text(path) else { return false };
        let new: HashSet<&str> = hunk.lines.iter().map(|line| line.text.trim()).collect();
        let own = || text.lines().map(str::trim).filter(|line| !line.is_empty());
        let there = own().filter(|line| new.contains(line)).count();
        there > 0 && there * 2 >= own().count()
    }

    /// A name to show for it.
    fn subject(&self) -> Option<&str> {
        let named = [self.new.as_ref(), self.old.as_ref()].into_iter().flatten().find_map(HeaderName::path);
        named.or_else(|| self.git.as_ref().and_then(|(old, new)| new.as_deref().or(old.as_deref())))
    }

    /// The edit.
    pub(super) fn into_edit(mut self, source: &ReplySource<'_>) -> Result<Edit, BlockProblem> {
        let subject = self.subject().map(str::to_owned);
        let made = match self.fault.take() {
            Some(fault) => Err(fault),
            None => self.make_edit(source),
        };
        made.map_err(|fault| to_problem(fault, subject.as_deref()))
    }

    fn make_edit(mut self, source: &ReplySource<'_>) -> Result<Edit, SectionFault> {
        if let Some(mode) = self.modes.iter().find(|mode| mode.starts_with("12") || mode.starts_with("16")) {
            return Err(self.fault_at_start(format!(
                "mode {mode} is a link or a submodule, which only a command can change"
            )));
        }
        // A file with another name before isn't made, whatever is said of its blob.
        let renamed = self.renamed.1.is_some() || self.copied.1.is_some();
        let creates = self.old == Some(HeaderName::Null) || (self.created && !renamed);
        let deletes = self.new == Some(HeaderName::Null) || self.deleted;
        if creates && deletes {
            return Err(self.fault_at_start("both of its sides are /dev/null".to_owned()));
        }
        let path = self.resolve_path(source, deletes)?;
        let creates = creates || (!deletes && self.repeats_the_file(source, &path));
        let mut ops = Vec::new();
        if let (Some(from), Some(_)) = self.copied {
            ops.push(self.to_copied_content(source, from)?);
        }
        let description = self.describe_unset_mode();
        if creates {
            ops.push(self.take_created_content()?);
        } else {
            let mut hunks: Vec<PatchHunk> =
                std::mem::take(&mut self.hunks).into_iter().map(|(_, hunk)| hunk).collect();
            hunks::drop_closing_marks(source, &path, &mut hunks);
            if self.crlf {
                hunks::keep_carriage_returns(source, &path, &mut hunks);
            }
            if hunks.is_empty() && !deletes && self.renamed.1.is_none() && self.copied.1.is_none() {
                hunks.extend(self.unchanged.take());
            }
            ops.extend(hunks.into_iter().map(EditOp::Patch));
        }
        if deletes {
            ops.push(EditOp::Delete);
        }
        if let (Some(_), Some(to)) = self.renamed {
            let to = names::parse_extended_name(to).unwrap_or_default();
            let to = RelPath::parse(&to).map_err(|error| self.fault_at_path(error.to_string()))?;
            ops.push(EditOp::Rename { to });
        }
        if ops.is_empty() {
            let message = match self.modes.is_empty() {
                false => "it only changes the file's mode, which an edit can't; use a command",
                true => {
                    "no hunk follows the file's name: begin one with `@@ -1,3 +1,3 @@`, `@@`, or a line with a prefix"
                }
            };
            return Err(self.fault_at_start(message.to_owned()));
        }
        Ok(Edit { path, ops, description })
    }

    /// The file that it is about, as it is named before the edit.
    pub(super) fn resolve_path(
        &self,
        source: &ReplySource<'_>,
        deletes: bool,
    ) -> Result<RelPath, SectionFault> {
        if let (Some(from), Some(_)) = self.renamed {
            let from = names::parse_extended_name(from).unwrap_or_default();
            return RelPath::parse(&from).map_err(|error| self.fault_at_path(error.to_string()));
        }
        if let (Some(_), Some(to)) = self.copied {
            let to = names::parse_extended_name(to).unwrap_or_default();
            return RelPath::parse(&to).map_err(|error| self.fault_at_path(error.to_string()));
        }
        let (git_old, git_new) = self.git.clone().unwrap_or_default();
        let old = self.old.as_ref().and_then(HeaderName::path).or(git_old.as_deref());
        let new = self.new.as_ref().and_then(HeaderName::path).or(git_new.as_deref());
        let names: Vec<&str> = if deletes { [old, None] } else { [new, old] }.into_iter().flatten().collect();
        if names.is_empty() {
            return match self.named.as_ref().or(source.path) {
                Some(path) => Ok(path.clone()),
                None => Err(self
                    .fault_at_start("no file is named: begin with `--- a/PATH` and `+++ b/PATH`".to_owned())),
            };
        }
        hunks::resolve_path(source, &names, true).map_err(|error| self.fault_at_path(error))
    }

    /// A new file's content: every line of its hunks is added.
    fn take_created_content(&mut self) -> Result<EditOp, SectionFault> {
        let line_break = if self.crlf { "\r\n" } else { "\n" };
        let mut content = String::new();
        for (first, hunk) in &self.hunks {
            // The old side's `\ No newline` has nothing to say here.
            let added = hunks::created_content(hunk, line_break).map_err(|nth| {
                let message = "a new file's lines all begin with `+`".to_owned();
                (ProblemKind::Malformed, first + nth, message)
            })?;
            content.push_str(&added);
        }
        if self.hunks.is_empty() && !self.created {
            return Err(self.fault_at_start(
                "the new file has no lines; to create an empty file write it whole".to_owned(),
            ));
        }
        Ok(EditOp::Create { content })
    }

    fn to_copied_content(&self, source: &ReplySource<'_>, from: &str) -> Result<EditOp, SectionFault> {
        let from = names::parse_extended_name(from).unwrap_or_default();
        let from = RelPath::parse(&from).map_err(|error| self.fault_at_path(error.to_string()))?;
        match source.files.text(&from) {
            Ok(Some(text)) => Ok(EditOp::Create { content: text.into_owned() }),
            Ok(None) => Err(self.fault_at_start(format!("it copies {from}, which does not exist"))),
            Err(problem) => Err(self.fault_at_start(format!("it copies {from}: {problem}"))),
        }
    }

    /// Returns a message about a mode change that isn't made.
    fn describe_unset_mode(&self) -> Option<String> {
        let changes = !self.hunks.is_empty() || self.renamed.1.is_some() || self.created;
        self.modes.first().filter(|_| changes).map(|mode| format!("the file's mode was not set to {mode}"))
    }

    fn fault_at_start(&self, message: String) -> SectionFault {
        (ProblemKind::Malformed, self.line, message)
    }

    fn fault_at_path(&self, message: String) -> SectionFault {
        (ProblemKind::Path, self.line, message)
    }
}
