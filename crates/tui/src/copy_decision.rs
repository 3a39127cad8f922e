//! The decision about the copy that a session worked in: landed or dropped, by keys of the review.
//! Pure but for the effects that it names.

use crossterm::event::KeyCode;
use journeyman_agent::isolation::{LandOutcome, LandReport, LandRequest, UnverifiedPolicy};
use journeyman_agent::workspace::OnConflict;
use journeyman_host::copy_review::LandingPreview;
use journeyman_host::format::{format_count, printable};
use journeyman_host::report_text::format_evidence;
use journeyman_protocol::{FileConflict, RelPath, Seq};
use journeyman_terminal::{Paint, Style, StyledLine};

/// Maximum files that are named for one reason.
const MAX_NAMED_FILES: usize = 8;

/// The result of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DecisionEffect {
    /// The key means nothing here.
    Ignored,
    /// A question, or an answer to none: shown until the next key.
    Say(String),
    /// The copy is to be landed.
    Land(LandRequest),
    /// The copy is to be dropped.
    Drop,
}

/// A question whose answer is the next key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingQuestion {
    /// If unverified work is to be landed.
    Unverified,
    /// Which side of files has to give way that both changed.
    Conflicts,
    /// If the work is to be dropped for good.
    Drop,
}

/// The decision about one copy.
#[derive(Debug, Default)]
pub(crate) struct CopyDecision {
    /// True if checks passed on the copy as it is.
    is_verified: bool,
    files: usize,
    merged: Vec<RelPath>,
    conflicts: Vec<FileConflict>,
    asked: Option<PendingQuestion>,
}

impl CopyDecision {
    /// Makes the decision about a copy that would be landed like this.
    #[must_use]
    pub(crate) fn new(preview: &LandingPreview) -> Self {
        Self {
            is_verified: preview.is_verified,
            files: preview.files.len(),
            merged: preview.merged.clone(),
            conflicts: preview.conflicts.clone(),
            asked: None,
        }
    }

    /// Returns what there is to know before deciding.
    #[must_use]
    pub(crate) fn to_lines(&self) -> Vec<StyledLine> {
        let mut lines = vec![match self.is_verified {
            true => StyledLine::new(Style::Good, "  verified in its copy; your files have nothing of it yet"),
            false => StyledLine::new(
                Style::Warning,
                "  not verified as it is; in its copy, your files have nothing of it yet",
            ),
        }];
        let conflicts = self.conflicts.iter().take(MAX_NAMED_FILES);
        lines.extend(conflicts.map(|FileConflict { path, reason }| {
            let text = format!("  keeps it from being landed: {path}: {reason}");
            StyledLine::new(Style::Bad, printable(&text))
        }));
        let merged = self.merged.iter().take(MAX_NAMED_FILES);
        lines.extend(merged.map(|path| {
            let text = format!("  you changed {path} too: merged, and checked before it is landed");
            StyledLine::new(Style::Warning, printable(&text))
        }));
        for (what, all) in [("conflict", self.conflicts.len()), ("merged file", self.merged.len())] {
            if let Some(more) = all.checked_sub(MAX_NAMED_FILES).filter(|more| *more > 0) {
                let text = format!("  … and {}", format_count(more, &format!("more {what}")));
                lines.push(StyledLine::new(Style::Dim, text));
            }
        }
        lines
    }

    /// Handles a key.
    pub(crate) fn handle_key(&mut self, code: KeyCode) -> DecisionEffect {
        let asked = self.asked.take();
        // Whoever answers a question has read what isn't verified.
        let land = |on_conflict| {
            DecisionEffect::Land(LandRequest {
                on_conflict,
                unverified: UnverifiedPolicy::Land,
                ..LandRequest::default()
            })
        };
        match (asked, code) {
            // Another key than the question's, because a held one repeats itself.
            (Some(PendingQuestion::Unverified), KeyCode::Char('y')) => land(OnConflict::Refuse),
            (Some(PendingQuestion::Conflicts), KeyCode::Char('m')) => land(OnConflict::Markers),
            (Some(PendingQuestion::Conflicts), KeyCode::Char('y')) => land(OnConflict::Mine),
            (Some(PendingQuestion::Conflicts), KeyCode::Char('t')) => land(OnConflict::Theirs),
            (Some(PendingQuestion::Drop), KeyCode::Char('y')) => DecisionEffect::Drop,
            (_, KeyCode::Char('l')) if !self.conflicts.is_empty() => self.ask_question(
                PendingQuestion::Conflicts,
                "both changed the same: m writes markers · y keeps yours · t takes the copy's",
            ),
            (_, KeyCode::Char('l')) if !self.is_verified => self
                .ask_question(PendingQuestion::Unverified, "no check passed on it: y lands it all the same"),
            (_, KeyCode::Char('l')) => DecisionEffect::Land(LandRequest::default()),
            (_, KeyCode::Char('d')) => {
                let files = format_count(self.files, "changed file");
                self.ask_question(PendingQuestion::Drop, &format!("y drops {files} for good"))
            }
            (None, _) => DecisionEffect::Ignored,
            (Some(_), _) => DecisionEffect::Say("nothing was decided".to_owned()),
        }
    }

    fn ask_question(&mut self, question: PendingQuestion, text: &str) -> DecisionEffect {
        self.asked = Some(question);
        DecisionEffect::Say(text.to_owned())
    }

    /// Returns what a word says about landing: nothing, `unverified`, or a way with conflicts.
    #[must_use]
    pub(crate) fn parse_land_request(word: &str) -> Option<LandRequest> {
        let (unverified, on_conflict) = match word {
            "" => (UnverifiedPolicy::Keep, OnConflict::Refuse),
            "unverified" => (UnverifiedPolicy::Land, OnConflict::Refuse),
            "markers" => (UnverifiedPolicy::Land, OnConflict::Markers),
            "yours" => (UnverifiedPolicy::Land, OnConflict::Mine),
            "theirs" => (UnverifiedPolicy::Land, OnConflict::Theirs),
            _ => return None,
        };
        Some(LandRequest { unverified, on_conflict, ..LandRequest::default() })
    }
}

/// The result of landing or dropping a copy.
pub(crate) enum SettledCopy {
    /// The copy was landed, or landing was refused.
    Landed(Box<LandReport>),
    /// The copy was dropped.
    Dropped {
        /// The number of its changed files.
        files: u64,
        /// The last entry of the session's log then.
        known_end: Option<Seq>,
    },
}

impl SettledCopy {
    /// Returns true if the copy is gone.
    #[must_use]
    pub(crate) fn is_copy_gone(&self) -> bool {
        match self {
            Self::Landed(report) => matches!(report.end, LandOutcome::Landed | LandOutcome::Nothing),
            Self::Dropped { .. } => true,
        }
    }

    /// Returns what is to be said about it.
    #[must_use]
    pub(crate) fn to_lines(&self) -> Vec<String> {
        let report = match self {
            Self::Landed(report) => report,
            Self::Dropped { files, .. } => {
                return vec![format!("dropped: {}", format_count(*files, "changed file"))];
            }
        };
        let evidence = report.evidence.iter().map(|one| format_evidence(one, Paint::PLAIN));
        let mut lines: Vec<String> = std::iter::once(printable(&report.summary)).chain(evidence).collect();
        lines.extend(report.not_committed.iter().map(|why| format!("not committed: {}", printable(why))));
        match report.end {
            LandOutcome::Unverified => lines.push("/land unverified lands it all the same".to_owned()),
            LandOutcome::Conflicts => {
                lines.push("/land markers, /land yours or /land theirs says which side gives way".to_owned());
            }
            _ => {}
        }
        if report.undo.is_some() {
            lines.push("/undo takes it back".to_owned());
        }
        lines
    }
}

/// The words that `/land` takes.
pub(crate) const LAND_WORDS: &[&str] = &["unverified", "markers", "yours", "theirs"];

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(is_verified: bool, has_conflict: bool) -> CopyDecision {
        let path = RelPath::parse("a.rs").unwrap();
        let conflict = FileConflict { path, reason: "both changed line 3".to_owned() };
        let conflicts = if has_conflict { vec![conflict] } else { Vec::new() };
        CopyDecision::new(&LandingPreview { is_verified, conflicts, ..LandingPreview::default() })
    }

    fn press(decision: &mut CopyDecision, keys: &str) -> DecisionEffect {
        let effects = keys.chars().map(|key| decision.handle_key(KeyCode::Char(key)));
        effects.last().unwrap()
    }

    #[test]
    fn work_is_landed_as_far_as_is_known_about_it() {
        let land = |unverified, on_conflict| {
            DecisionEffect::Land(LandRequest { unverified, on_conflict, ..LandRequest::default() })
        };
        use UnverifiedPolicy::{Keep, Land};
        for (verified, conflict, keys, expected) in [
            (true, false, "l", land(Keep, OnConflict::Refuse)),
            (false, false, "ly", land(Land, OnConflict::Refuse)),
            (true, true, "lm", land(Land, OnConflict::Markers)),
            (true, true, "ly", land(Land, OnConflict::Mine)),
            (false, true, "lt", land(Land, OnConflict::Theirs)),
            (true, false, "ddddy", DecisionEffect::Drop),
            (true, false, "dxd", DecisionEffect::Say("y drops 0 changed files for good".to_owned())),
            (true, false, "dq", DecisionEffect::Say("nothing was decided".to_owned())),
            (true, false, "m", DecisionEffect::Ignored),
        ] {
            assert_eq!(
                press(&mut decision(verified, conflict), keys),
                expected,
                "{verified} {conflict} {keys}"
            );
        }
    }

    #[test]
    fn a_key_too_many_lands_nothing() {
        for keys in ["l", "llll", "ldl", "lxl", "dddd"] {
            let effect = press(&mut decision(false, false), keys);
            assert!(matches!(effect, DecisionEffect::Say(_)), "{keys}: {effect:?}");
        }
        assert!(matches!(press(&mut decision(true, true), "ll"), DecisionEffect::Say(_)));
    }

    #[test]
    fn the_reasons_are_said() {
        let text: Vec<String> = decision(false, true).to_lines().iter().map(StyledLine::to_text).collect();
        assert!(text[0].contains("not verified"), "{text:?}");
        assert!(text[1].contains("a.rs: both changed line 3"), "{text:?}");
    }
}
