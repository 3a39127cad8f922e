//! The commits that last changed the lines that matter most for a task.

use std::path::Path;

use journeyman_protocol::{ContextCategory, TokenCounter as _, Tokens, UnixMillis};
use journeyman_workspace::Listing;

use crate::TokenEstimator;
use crate::fence::fence_text;
use crate::mention::find_mentions;
use crate::packing::{CandidateReason, ContextCandidate};

/// Maximum ranges of lines whose commits are asked for: each costs a git process.
const MAX_BLAMED_RANGES: usize = 3;
/// Lines before and after a line that the task names.
const LINES_AROUND: u32 = 2;
/// Characters of a commit's id that are shown: no project has two that begin alike for so long.
const ID_CHARACTERS: usize = 10;
/// Tokens of a heading and of the tags around commits.
pub(crate) const FRAME_TOKENS: Tokens = Tokens(32);
/// Maximum characters of a commit's subject.
pub(crate) const MAX_SUBJECT_CHARS: usize = 100;
/// The sentence above the commits.
const HEADING: &str = "The commits that last changed the lines that the task is about:";

/// The commit that last changed some lines.
#[derive(Debug, Clone, PartialEq)]
pub struct LineCommit {
    /// The lines.
    pub lines: ContextCandidate,
    /// The beginning of the commit's id.
    pub id: String,
    /// Its author time.
    pub time: UnixMillis,
    /// The first line of its message, without secrets.
    pub subject: String,
}

impl LineCommit {
    /// Returns the commit with this id as the one that last changed some lines. The subject must
    /// have no secrets.
    #[must_use]
    pub fn new(lines: ContextCandidate, id: &str, time: UnixMillis, subject: String) -> Self {
        Self { lines, id: short_id(id).to_owned(), time, subject }
    }

    /// Returns the id with the lines, for people.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.id, self.lines.location())
    }

    /// Returns the reason why it was weighed.
    pub(crate) fn reason(&self) -> &'static str {
        match self.lines.reason {
            CandidateReason::Named => "it last changed the lines that the task names",
            _ => "it last changed the likeliest passage",
        }
    }

    /// Returns its line of the request.
    pub(crate) fn text(&self) -> String {
        let subject: String =
            self.subject.chars().filter(|c| !c.is_control()).take(MAX_SUBJECT_CHARS).collect();
        format!("{} {} {subject} ({})\n", self.id, self.time.to_date(), self.lines.location())
    }
}

/// Returns the beginning of a commit's id.
pub(crate) fn short_id(id: &str) -> &str {
    id.get(..ID_CHARACTERS).unwrap_or(id)
}

/// Returns the surroundings of the lines that a task names, such as those of a failed assertion or
/// a stack frame, in its order.
#[must_use]
pub fn candidates_at_named_lines(task: &str, listing: &Listing, root: &Path) -> Vec<ContextCandidate> {
    let named = find_mentions(task, listing, root).into_iter();
    let named = named.filter_map(|mention| {
        let line = mention.line?;
        Some(ContextCandidate {
            category: ContextCategory::History,
            path: mention.path,
            lines: line.saturating_sub(LINES_AROUND).max(1)..line.saturating_add(LINES_AROUND + 1),
            relevance: 1.0,
            reason: CandidateReason::Named,
        })
    });
    named.take(MAX_BLAMED_RANGES).collect()
}

/// Returns the passage of code that is the likeliest to be needed.
#[must_use]
pub fn likeliest_passage(candidates: &[ContextCandidate]) -> Option<ContextCandidate> {
    let code = candidates.iter().filter(|one| one.category == ContextCategory::RelatedCode);
    // The first of equally likely ones.
    let best = code.rev().max_by(|one, other| one.relevance.total_cmp(&other.relevance))?;
    Some(ContextCandidate { category: ContextCategory::History, ..best.clone() })
}

/// Returns commits as text for a model, and the number of those that fit into `room`.
#[must_use]
pub fn line_commits_text(commits: &[LineCommit], room: Tokens) -> (String, usize) {
    let (mut text, mut fitting) = (String::new(), 0);
    for commit in commits {
        let line = commit.text();
        if FRAME_TOKENS + TokenEstimator.count(&text) + TokenEstimator.count(&line) > room {
            break;
        }
        text.push_str(&line);
        fitting += 1;
    }
    if fitting == 0 {
        return (String::new(), 0);
    }
    (format!("{HEADING}\n{}\n", fence_text("commits", &[], &text)), fitting)
}
