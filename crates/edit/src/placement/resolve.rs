//! Deciding between the places that a step found, and making the replacement fit.

use std::borrow::Cow;
use std::ops::Range;

use crate::lines::{first_line_break, line_at, split_indent, split_with_breaks};
use crate::outcome::{PlacedEdit, Refusal, Strategy};
use crate::placement::fit::{Alignment, count_curly_quotes, is_curly_quote, straighten_quotes};
use crate::placement::hunk::Hunk;
use crate::placement::indent::{IndentMap, IndentStyles};
use crate::placement::matches::{Match, Matches};
use crate::placement::replacement_pieces::{include_line_break, to_placed, with_own_breaks};
use crate::placement::{duplicates, exact, explain, tie_breaking, token_matching, tokens};

/// A replacement of bytes, with a note on the differences.
pub(super) struct FittedPiece {
    pub(super) span: Range<usize>,
    pub(super) text: String,
    pub(super) note: String,
}

/// Decides between places, and says what is put there.
pub(super) fn resolve_matches(text: &str, matches: &Matches<'_>) -> Result<PlacedEdit, Refusal> {
    let Matches { strategy, places, hunk } = matches;
    if *strategy == Strategy::Exact {
        return exact::resolve_exact(text, places, hunk);
    }
    let spans = places.iter().map(|place| place.span.clone()).collect();
    let chosen = tie_breaking::select_spans(text, spans, hunk, *strategy)?;
    let writer = HunkFitter::new(text, *strategy, hunk);
    let mut pieces = Vec::with_capacity(chosen.len());
    let mut note = None;
    let mut places = places.iter();
    for span in chosen {
        let Some(place) = places.find(|place| place.span == span) else { continue };
        let piece = writer.fit_to_place(place)?;
        note = note.or(Some(piece.note));
        pieces.push((include_line_break(text, piece.span, hunk), piece.text));
    }
    to_placed(text, with_own_breaks(text, hunk, pieces), *strategy, note)
}

/// One hunk, ready to be fitted to places.
pub(super) struct HunkFitter<'a> {
    text: &'a str,
    strategy: Strategy,
    hunk: &'a Hunk<'a>,
    alignment: Alignment<'a>,
    styles: IndentStyles,
}

impl<'a> HunkFitter<'a> {
    pub(super) fn new(text: &'a str, strategy: Strategy, hunk: &'a Hunk<'a>) -> Self {
        let given = hunk.search.lines().chain(hunk.replace.lines());
        let styles = IndentStyles::learn_styles(given, text);
        Self { text, strategy, hunk, alignment: Alignment::of_hunk(hunk), styles }
    }

    /// The replacement for one place, if nothing that has a meaning differs there.
    pub(super) fn fit_to_place(&self, place: &Match) -> Result<FittedPiece, Refusal> {
        if self.strategy == Strategy::LineBreaks {
            return self.fit_rejoined_lines(place);
        }
        let found = self.text.get(place.span.clone()).unwrap_or_default();
        let file: Vec<(&str, &str)> = split_with_breaks(found);
        let old = self.alignment.old_lines();
        let first = line_at(self.text, place.span.start);
        let line = |index: usize| first.saturating_add(u32::try_from(index).unwrap_or(u32::MAX));
        let pairs = self.pair_lines(place, &file);
        let own = |index: usize| {
            let at = pairs.get(index).copied().flatten()?;
            Some((at, file.get(at).map_or("", |(content, _)| *content)))
        };
        if !self.hunk.allow.spans && file.len() > (2 * old.len()).max(old.len() + 3) {
            let (lines, searched) = (file.len(), old.len());
            return Err(Refusal::SpanTooLarge { line: first, lines, searched });
        }
        if !self.hunk.allow.differences {
            if let Some((at, difference)) = self.first_meaningful_difference(&pairs, &file) {
                return Err(Refusal::GuardedMismatch { line: line(at), difference });
            }
            if let Some((at, difference)) = self.first_repeated_line(&pairs, &file) {
                return Err(Refusal::GuardedMismatch { line: line(at), difference });
            }
            duplicates::refuse_duplicates(self.text, &place.span, self.hunk, self.strategy)?;
        }
        let matched = (0..old.len()).filter_map(|index| Some((*old.get(index)?, own(index)?.1)));
        let indents = IndentMap::learn_map(matched, self.alignment.new_lines(), self.styles);
        let matched = (0..old.len()).filter_map(|index| Some((*old.get(index)?, own(index)?.1)));
        let straight = self.straightens_quotes(matched, first)?;
        let fitted = self
            .alignment
            .fit_to_match(found, &pairs, &indents, straight, first_line_break(self.text))
            .map_err(|unfit| Refusal::GuardedMismatch {
                line: first,
                difference: explain::describe_unfit_indentation(&unfit.line),
            })?;
        let note = self.describe_match(&pairs, &file, first);
        let span = self.with_closing_blank_line(&place.span).unwrap_or_else(|| place.span.clone());
        Ok(FittedPiece { span, text: fitted, note })
    }

    /// The first of the file's lines that no line of the search text stands for and that would stay
    /// beside new lines of which one is nearly it: it was meant to go.
    fn first_repeated_line(&self, pairs: &[Option<usize>], file: &[(&str, &str)]) -> Option<(usize, String)> {
        if self.strategy != Strategy::Similarity {
            return None;
        }
        let pair = |index: usize| pairs.get(index).copied().flatten();
        self.alignment.changed_ranges().find_map(|(old, new)| {
            let above = (0..old.start).rev().find_map(pair).map_or(0, |at| at + 1);
            let below = (old.end..pairs.len()).find_map(pair).unwrap_or(file.len());
            let new = self.alignment.new_lines().get(new)?;
            let repeated = (above..below).filter(|at| !pairs.contains(&Some(*at))).find_map(|at| {
                let own = file.get(at)?.0.trim();
                let nearly = |line: &&str| !line.trim().is_empty() && tokens::is_similar(line.trim(), own);
                (!own.is_empty() && new.iter().any(nearly)).then_some((at, own))
            });
            let (at, own) = repeated?;
            Some((at, format!("the replacement nearly repeats `{own}`, which the search text leaves out beside the change")))
        })
    }

    /// The place with the blank line after it, if the search text ends with one and the replacement
    /// doesn't: byte for byte it would go, and a looser step means nothing else. Without a blank
    /// line in the file nobody means to join lines.
    fn with_closing_blank_line(&self, span: &Range<usize>) -> Option<Range<usize>> {
        let (search, replace) = (self.hunk.search, self.hunk.replace);
        let goes = search.ends_with('\n') && !replace.ends_with('\n') && !replace.is_empty();
        let closed = self.text.get(span.clone())?.ends_with('\n');
        let next = self.text.get(span.end..)?.split_inclusive('\n').next()?;
        let blank = next.ends_with('\n') && next.trim().is_empty();
        (goes && closed && blank).then(|| span.start..span.end + next.len())
    }

    /// Returns true if curled quotes of new lines become plain ones: they do if all that the search
    /// text has stand for plain ones.
    fn straightens_quotes<'b>(
        &self,
        matched: impl Iterator<Item = (&'b str, &'b str)>,
        line: u32,
    ) -> Result<bool, Refusal> {
        let counts = matched.map(|(searched, own)| count_curly_quotes(searched, own));
        let (plain, curled) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let new = self.alignment.changed_ranges().flat_map(|(_, new)| new);
        let mut new = new.filter_map(|at| self.alignment.new_lines().get(at));
        if plain > 0 && curled > 0 && new.any(|line| line.contains(is_curly_quote)) {
            let difference = "some curled quotes of the search text are plain in the file and some are not, so those of the \
                              new lines could be either"
                .to_owned();
            return Err(Refusal::GuardedMismatch { line, difference });
        }
        Ok(plain > 0 && curled == 0)
    }

    /// The replacement for a place whose lines are broken elsewhere: lines that stay are the
    /// file's, others come as they are, from the place's indentation on.
    fn fit_rejoined_lines(&self, place: &Match) -> Result<FittedPiece, Refusal> {
        let found = self.text.get(place.span.clone()).unwrap_or_default();
        let first = line_at(self.text, place.span.start);
        let old = self.alignment.old_lines();
        // Within a line the further lines are measured from that line's indentation.
        let before = self.text.get(..place.span.start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let within = line_start < place.span.start;
        let file: Vec<&str> = split_with_breaks(found).into_iter().map(|(line, _)| line).collect();
        let runs = if within { Vec::new() } else { token_matching::runs_of_same_text(old, &file) };
        let filled = |lines: &[&'a str]| lines.iter().find(|line| !line.trim().is_empty()).copied();
        let own = self.text.get(line_start..).and_then(|text| text.lines().next()).unwrap_or_default();
        let mut matched = vec![(filled(old).unwrap_or_default(), own)];
        matched.extend(runs.iter().filter_map(|(searched, own)| {
            Some((filled(old.get(searched.clone())?)?, filled(file.get(own.clone())?)?))
        }));
        let indents = IndentMap::learn_map(matched.into_iter(), self.alignment.new_lines(), self.styles);
        let straight = self.straightens_quotes(std::iter::once((self.hunk.search, found)), first)?;
        let kept = self.alignment.kept_lines();
        let mut lines: Vec<String> = Vec::new();
        let mut at = 0;
        while let Some(line) = self.alignment.new_lines().get(at) {
            let stays = |(searched, _): &&(Range<usize>, Range<usize>)| {
                searched.clone().enumerate().all(|(nth, old)| kept.get(at + nth) == Some(&Some(old)))
            };
            let run = kept
                .get(at)
                .copied()
                .flatten()
                .and_then(|old| runs.iter().find(|(searched, _)| searched.start == old).filter(stays));
            if let Some((searched, own)) = run.filter(|(searched, _)| !searched.is_empty()) {
                lines.extend(file.get(own.clone()).unwrap_or_default().iter().map(|line| (*line).to_owned()));
                at += searched.len();
                continue;
            }
            at += 1;
            let line = if straight { Cow::Owned(straighten_quotes(line)) } else { Cow::Borrowed(*line) };
            let (indent, rest) = split_indent(line.as_ref());
            lines.push(match indents.map_indent(indent, None) {
                _ if rest.trim().is_empty() => String::new(),
                _ if within && lines.is_empty() => rest.to_owned(),
                Some(own) => own + rest,
                None => {
                    let difference = explain::describe_unfit_indentation(line.as_ref());
                    return Err(Refusal::GuardedMismatch { line: first, difference });
                }
            });
        }
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        let text = lines.join(first_line_break(self.text));
        let note = format!("no exact match; placed by {}, from line {first}", self.strategy);
        Ok(FittedPiece { span: place.span.clone(), text, note })
    }

    /// Returns the match's line for each line of the search text, the empty one after a final line
    /// break included.
    fn pair_lines(&self, place: &Match, file: &[(&str, &str)]) -> Vec<Option<usize>> {
        let old = self.alignment.old_lines();
        let Some(pairs) = &place.pairs else { return (0..old.len()).map(Some).collect() };
        let mut pairs = pairs.clone();
        let closed = file.len() > 1 && file.last() == Some(&("", ""));
        pairs.resize(old.len(), Some(if closed { file.len() - 1 } else { file.len() }));
        pairs
    }

    /// The first difference that has a meaning: in a line that the edit changes or deletes, or
    /// around one that isn't the search text's.
    fn first_meaningful_difference(
        &self,
        pairs: &[Option<usize>],
        file: &[(&str, &str)],
    ) -> Option<(usize, String)> {
        let loose = self.strategy == Strategy::Similarity;
        let content = |at: usize| file.get(at).map_or("", |(content, _)| *content);
        let blank = |at: usize| content(at).trim().is_empty();
        let old = self.alignment.old_lines();
        for (replaced, new) in self.alignment.changed_ranges() {
            let one_to_one = replaced.len() == new.len();
            for (index, searched) in replaced.clone().filter_map(|index| Some((index, *old.get(index)?))) {
                let Some(at) = pairs.get(index).copied().flatten() else {
                    if searched.trim().is_empty() {
                        continue;
                    }
                    let next = pairs.get(index..).and_then(|pairs| pairs.iter().flatten().next());
                    return Some((
                        next.copied().unwrap_or(0),
                        explain::describe_line_difference(searched, ""),
                    ));
                };
                let own = content(at);
                let same = if loose && one_to_one {
                    tokens::are_equivalent_but_for_comments(searched, own)
                } else {
                    tokens::are_equivalent(searched, own)
                };
                let fades = loose && new.is_empty() && tokens::are_equivalent_but_for_comments(searched, own);
                if !same && !fades {
                    return Some((at, explain::describe_line_difference(searched, own)));
                }
            }
            // Nor may a line that the file doesn't have stand next to one that changes.
            for index in [replaced.start.checked_sub(1), Some(replaced.end)].into_iter().flatten() {
                let searched = old.get(index).map_or("", |line| *line);
                if !searched.trim().is_empty() && pairs.get(index).copied().flatten().is_none() {
                    let next = pairs.get(index..).and_then(|pairs| pairs.iter().flatten().next());
                    return Some((
                        next.copied().unwrap_or(0),
                        explain::describe_line_difference(searched, ""),
                    ));
                }
            }
            // Blank lines among those that others replace: where they would be among the new ones
            // nobody can tell.
            let gone: Vec<usize> =
                pairs.get(replaced.clone()).unwrap_or_default().iter().copied().flatten().collect();
            let among = |lines: &[usize]| {
                let (first, last) = (*lines.first()?, *lines.last()?);
                (first..last).find(|at| lines.binary_search(at).is_err() && blank(*at))
            };
            if let (Some(at), false) = (among(&gone), new.is_empty())
                && !(one_to_one && self.keeps_lines_around(&replaced, &new, pairs, at))
            {
                return Some((at, explain::describe_line_difference("", content(at))));
            }
            // Lines of the file that the search text doesn't have must not lie where something
            // comes or goes.
            let around = replaced.start.saturating_sub(1)..(replaced.end + 1).min(pairs.len());
            let inner: Vec<usize> = pairs.get(around).unwrap_or_default().iter().copied().flatten().collect();
            let (Some(first), Some(last)) = (inner.first(), inner.last()) else { continue };
            let unseen = (*first..*last).find(|at| inner.binary_search(at).is_err() && !blank(*at));
            // Nor, where lines only come, blank ones: they could come before those or after them.
            let unseen = unseen.or_else(|| among(&inner).filter(|_| replaced.is_empty()));
            if let Some(at) = unseen {
                return Some((at, explain::describe_line_difference("", content(at))));
            }
        }
        None
    }

    /// Returns true if the old lines above and below a line of the place become new ones that are
    /// nearly the same, one for one: then what is between them stays there.
    fn keeps_lines_around(
        &self,
        replaced: &Range<usize>,
        new: &Range<usize>,
        pairs: &[Option<usize>],
        between: usize,
    ) -> bool {
        let own = |at: usize| pairs.get(at).copied().flatten();
        let above = replaced.clone().rev().find(|at| own(*at).is_some_and(|own| own < between));
        let below = replaced.clone().find(|at| own(*at).is_some_and(|own| own > between));
        let alike = |at: Option<usize>| {
            let at = at?;
            let old = self.alignment.old_lines().get(at)?;
            let new = self.alignment.new_lines().get(new.start + (at - replaced.start))?;
            Some(tokens::is_similar(old.trim(), new.trim()))
        };
        alike(above) == Some(true) && alike(below) == Some(true)
    }

    /// Returns a note on the differences, in few words.
    fn describe_match(&self, pairs: &[Option<usize>], file: &[(&str, &str)], first: u32) -> String {
        let old = self.alignment.old_lines();
        let even = pairs.iter().enumerate().all(|(index, at)| *at == Some(index));
        if even {
            return explain::note_loose_match(self.strategy, old, file, first);
        }
        let (mut olds, mut own, mut offset) = (Vec::new(), Vec::new(), None);
        for (searched, at) in old.iter().zip(pairs) {
            let Some((at, line)) = at.and_then(|at| Some((at, *file.get(at)?))) else { continue };
            if olds.is_empty() && line.0 == *searched {
                continue;
            }
            offset = offset.or(u32::try_from(at).ok());
            olds.push(*searched);
            own.push(line);
        }
        let strategy = self.strategy;
        match offset {
            Some(offset) => explain::note_loose_match(strategy, &olds, &own, first.saturating_add(offset)),
            None => format!("no exact match; placed by {strategy}, from line {first}"),
        }
    }
}
