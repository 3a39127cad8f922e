//! The review of what changed: files and hunks, each kept or taken back by a key. Pure but for the
//! effects that it names.

use std::collections::HashSet;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use journeyman_agent::isolation::LandRequest;
use journeyman_agent::workspace::CheckpointId;
use journeyman_host::copy_review::LandingPreview;
use journeyman_host::event_text::describe_event;
use journeyman_host::format::{format_count, printable};
use journeyman_host::highlight::find_tokens_of_file;
use journeyman_host::hunks::{ChangedFile, Hunk, RevertedHunk};
use journeyman_protocol::{Event, RelPath, RunReport};
use journeyman_terminal::diff::{HunkLine, Side, render_hunk};
use journeyman_terminal::wrap::cut_line;
use journeyman_terminal::{Style, StyledLine};

use crate::copy_decision::{CopyDecision, DecisionEffect};
use crate::key_hints::key_hints;
use crate::screen::Size;

/// Rows that the review keeps for itself: the line of its keys.
const RESERVED_ROWS: usize = 1;
/// The words while a copy is landed.
pub(crate) const LANDING_HINT: &str = "landing; checks run first if your files changed · Esc stops";
/// Maximum notes about the evidence of one hunk.
const MAX_HUNK_NOTES: usize = 4;

/// The result of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReviewEffect {
    /// The view is another, or the same.
    Stay,
    /// The person has seen enough.
    Close,
    /// The hunk of a file is to be taken back.
    TakeBack(usize, usize),
    /// The newest hunk that was taken back is wanted after all.
    GiveBack,
    /// The copy that has the changes is to be landed.
    Land(LandRequest),
    /// The copy is to be dropped with all its changes.
    Drop,
    /// Landing the copy is to be stopped.
    StopSettling,
}

/// A hunk with its place among the rows.
struct HunkRows {
    file: usize,
    hunk: usize,
    rows: std::ops::Range<usize>,
}

/// The tree whose changes are reviewed.
enum ReviewedTree {
    /// The project, compared with a checkpoint.
    Project(CheckpointId),
    /// The copy that a session works in, compared with the project. What becomes of it is decided
    /// here.
    Copy(CopyDecision),
}

/// The review.
pub(crate) struct Review {
    reviewed: ReviewedTree,
    /// The contents that were taken back here, the newest last.
    pub(crate) taken_back: Vec<RevertedHunk>,
    files: Vec<ChangedFile>,
    report: Option<RunReport>,
    /// Hunks that the person keeps, by their file and lines.
    kept: HashSet<(String, Vec<HunkLine>)>,
    selected: usize,
    top: usize,
    rows: Vec<StyledLine>,
    places: Vec<HunkRows>,
    size: Size,
    /// A word that lasts until the next key.
    pub(crate) notice: Option<String>,
    /// True while the copy is landed or dropped: no key is heard but the one that stops it.
    pub(crate) is_settling: bool,
}

impl Review {
    /// Makes the review of changes in the project since a checkpoint, with the report of the run
    /// that made them.
    #[must_use]
    pub(crate) fn new(since: CheckpointId, files: Vec<ChangedFile>, report: Option<RunReport>) -> Self {
        Self::with_tree(ReviewedTree::Project(since), files, report)
    }

    /// Makes the review of the changes in a session's copy.
    #[must_use]
    pub(crate) fn of_copy(preview: LandingPreview, report: Option<RunReport>) -> Self {
        Self::with_tree(ReviewedTree::Copy(CopyDecision::new(&preview)), preview.files, report)
    }

    fn with_tree(reviewed: ReviewedTree, files: Vec<ChangedFile>, report: Option<RunReport>) -> Self {
        let mut review = Self {
            reviewed,
            taken_back: Vec::new(),
            files: Vec::new(),
            report,
            kept: HashSet::new(),
            selected: 0,
            top: 0,
            rows: Vec::new(),
            places: Vec::new(),
            size: Size { columns: 80, rows: 24 },
            notice: None,
            is_settling: false,
        };
        review.set_files(files);
        review
    }

    /// Returns the checkpoint that the project is compared with; `None` for a copy.
    #[must_use]
    pub(crate) fn checkpoint(&self) -> Option<CheckpointId> {
        match self.reviewed {
            ReviewedTree::Project(since) => Some(since),
            ReviewedTree::Copy(_) => None,
        }
    }

    /// Sets the current state of the copy.
    pub(crate) fn set_preview(&mut self, preview: LandingPreview) {
        self.reviewed = ReviewedTree::Copy(CopyDecision::new(&preview));
        self.set_files(preview.files);
    }

    /// Sets the current changes.
    pub(crate) fn set_files(&mut self, files: Vec<ChangedFile>) {
        self.files = files;
        self.rebuild_rows();
        self.selected = self.selected.min(self.places.len().saturating_sub(1));
    }

    /// Returns a hunk and its file.
    #[must_use]
    pub(crate) fn hunk(&self, file: usize, hunk: usize) -> Option<(&ChangedFile, &Hunk)> {
        let file = self.files.get(file)?;
        Some((file, file.hunks.get(hunk)?))
    }

    /// Returns the review as lines, for those who read it once.
    #[must_use]
    pub(crate) fn into_lines(self) -> Vec<StyledLine> {
        self.rows
    }

    fn is_kept(&self, file: &ChangedFile, hunk: &Hunk) -> bool {
        self.kept.contains(&hunk_key(file, hunk))
    }

    fn rebuild_rows(&mut self) {
        let (mut rows, mut places) = (self.head_lines(), Vec::new());
        for (file_place, file) in self.files.iter().enumerate() {
            let count = |side| {
                file.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.side == side).count()
            };
            let title = StyledLine::new(Style::Strong, printable(&file.path))
                .with(Style::Good, format!("  +{}", count(Side::New)))
                .with(Style::Bad, format!(" −{}", count(Side::Old)));
            rows.extend([StyledLine::default(), title]);
            if file.hunks.is_empty() {
                rows.push(StyledLine::new(Style::Dim, "    not text; /undo takes it back"));
            }
            let last = file.hunks.iter().filter_map(|hunk| hunk.lines.last()?.number).max();
            let digits = last.unwrap_or_default().to_string().len().max(3);
            for (hunk_place, hunk) in file.hunks.iter().enumerate() {
                let start = rows.len();
                let first = hunk.lines.iter().find(|line| line.side != Side::Both);
                let number = first.and_then(|line| line.number).unwrap_or_default();
                let mark = if self.is_kept(file, hunk) { "  ✓ kept" } else { "" };
                rows.push(StyledLine::new(Style::Accent, format!("  line {number}")).with(Style::Good, mark));
                let notes = self.hunk_notes(file, &hunk.new_line_range());
                rows.extend(notes);
                let shown: Vec<HunkLine> = hunk.lines.iter().map(printable_line).collect();
                rows.extend(render_hunk(&shown, digits, &printable(&file.path), &find_tokens_of_file));
                places.push(HunkRows { file: file_place, hunk: hunk_place, rows: start..rows.len() });
            }
        }
        (self.rows, self.places) = (rows, places);
    }

    /// Returns the evidence of the whole: the checks of the run, and what its tests notice.
    fn head_lines(&self) -> Vec<StyledLine> {
        let hunks: usize = self.files.iter().map(|file| file.hunks.len()).sum();
        let head = format!("{}, {}", format_count(self.files.len(), "file"), format_count(hunks, "hunk"));
        let mut lines = vec![StyledLine::new(Style::Strong, head)];
        if let ReviewedTree::Copy(decision) = &self.reviewed {
            lines.extend(decision.to_lines());
        }
        let Some(report) = &self.report else { return lines };
        for evidence in &report.evidence {
            let described = describe_event(&Event::CheckResult { evidence: evidence.clone() });
            lines.extend(described.into_iter().take(1));
        }
        if let Some(strength) = &report.strength {
            let described = describe_event(&Event::StrengthMeasured { strength: strength.clone() });
            lines.extend(described.into_iter().take(1));
        }
        if report.evidence.is_empty() && hunks > 0 {
            lines.push(StyledLine::new(Style::Warning, "  no check has looked at these changes"));
        }
        lines
    }

    /// Returns what the run's tests don't notice of a hunk.
    fn hunk_notes(&self, file: &ChangedFile, lines: &std::ops::RangeInclusive<u64>) -> Vec<StyledLine> {
        let strength = self.report.as_ref().and_then(|report| report.strength.as_ref());
        let is_here = |path: &RelPath, line: u32| *path == file.path && lines.contains(&u64::from(line));
        let untested = strength.into_iter().flat_map(|strength| &strength.untested);
        let untested = untested.filter(|one| is_here(&one.path, one.line)).map(printable);
        let survivors = strength.into_iter().flat_map(|strength| &strength.survivors);
        let survivors = survivors.filter(|one| is_here(&one.path, one.line)).map(printable);
        let note = |text: String| StyledLine::new(Style::Warning, format!("    {text}"));
        untested.chain(survivors).take(MAX_HUNK_NOTES).map(note).collect()
    }

    /// Handles a key.
    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> ReviewEffect {
        self.notice = None;
        let page = self.size.rows.saturating_sub(RESERVED_ROWS + 2).max(1);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if self.is_settling {
            let stops = key.code == KeyCode::Esc || control && key.code == KeyCode::Char('c');
            self.notice = Some(if stops { "stopping…" } else { LANDING_HINT }.to_owned());
            return if stops { ReviewEffect::StopSettling } else { ReviewEffect::Stay };
        }
        if let (ReviewedTree::Copy(decision), false) = (&mut self.reviewed, control) {
            match decision.handle_key(key.code) {
                DecisionEffect::Ignored => {}
                DecisionEffect::Say(text) => {
                    self.notice = Some(text);
                    return ReviewEffect::Stay;
                }
                DecisionEffect::Land(request) => return ReviewEffect::Land(request),
                DecisionEffect::Drop => return ReviewEffect::Drop,
            }
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return ReviewEffect::Close,
            KeyCode::Char('c') if control => return ReviewEffect::Close,
            KeyCode::Down | KeyCode::Char('j') => self.top = self.top.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.top = self.top.saturating_sub(1),
            KeyCode::PageDown => self.top = self.top.saturating_add(page),
            KeyCode::PageUp => self.top = self.top.saturating_sub(page),
            KeyCode::Tab | KeyCode::Char('n') => self.select(1),
            KeyCode::BackTab | KeyCode::Char('p') => self.select(-1),
            KeyCode::Char(' ') => self.toggle_kept(),
            KeyCode::Char('u') => return ReviewEffect::GiveBack,
            KeyCode::Char('x') => {
                if let Some(place) = self.places.get(self.selected) {
                    return ReviewEffect::TakeBack(place.file, place.hunk);
                }
            }
            _ => {}
        }
        ReviewEffect::Stay
    }

    fn select(&mut self, step: isize) {
        let last = self.places.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(step).min(last);
        self.scroll_to_selected();
    }

    fn scroll_to_selected(&mut self) {
        let room = self.size.rows.saturating_sub(RESERVED_ROWS).max(1);
        if let Some(place) = self.places.get(self.selected) {
            let is_seen = place.rows.start >= self.top && place.rows.end <= self.top + room;
            if !is_seen {
                self.top = place.rows.start.saturating_sub(2);
            }
        }
    }

    /// Keeps the selected hunk, or not any more, and goes to the next one.
    fn toggle_kept(&mut self) {
        let place = self.places.get(self.selected);
        let Some((file, hunk)) = place.and_then(|place| self.hunk(place.file, place.hunk)) else { return };
        let key = hunk_key(file, hunk);
        if !self.kept.remove(&key) {
            self.kept.insert(key);
            self.select(1);
        }
        self.rebuild_rows();
    }

    /// Returns the rows for a terminal's size.
    pub(crate) fn render(&mut self, size: Size) -> Vec<StyledLine> {
        self.size = size;
        let room = size.rows.saturating_sub(RESERVED_ROWS).max(1);
        self.top = self.top.min(self.rows.len().saturating_sub(room));
        let selected = self.places.get(self.selected).map(|place| place.rows.clone()).unwrap_or_default();
        let row = |(place, row): (usize, &StyledLine)| {
            let bar = if selected.contains(&place) { "▌" } else { " " };
            let mut line = StyledLine::new(Style::Accent, bar);
            line.spans.extend(row.spans.iter().cloned());
            cut_line(&line, size.columns)
        };
        let mut rows: Vec<StyledLine> =
            self.rows.iter().enumerate().skip(self.top).take(room).map(row).collect();
        rows.resize(room, StyledLine::default());
        let own = match &self.notice {
            Some(notice) => cut_line(&StyledLine::new(Style::Warning, notice), size.columns),
            None => {
                let kept = format!("kept {} of {}", self.kept_count(), self.places.len());
                let settles = if self.checkpoint().is_none() { "l lands · d drops" } else { "" };
                let hints =
                    [settles, "q closes", &kept, "x takes back", "u undoes", "Tab next", "Space keeps"];
                key_hints(&hints, size.columns)
            }
        };
        rows.push(own);
        rows
    }

    fn kept_count(&self) -> usize {
        let hunks = self.places.iter().filter_map(|place| self.hunk(place.file, place.hunk));
        hunks.filter(|(file, hunk)| self.is_kept(file, hunk)).count()
    }
}

/// Names a hunk by its lines alone, so that it is known again where it has moved.
fn hunk_key(file: &ChangedFile, hunk: &Hunk) -> (String, Vec<HunkLine>) {
    let without_number = |line: &HunkLine| HunkLine { number: None, ..line.clone() };
    (file.path.to_string(), hunk.lines.iter().map(without_number).collect())
}

fn printable_line(line: &HunkLine) -> HunkLine {
    HunkLine { text: printable(&line.text).replace('\t', "    "), ..line.clone() }
}
