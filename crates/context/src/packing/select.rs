//! Selection of candidates within a budget: by relevance per token, each category within its share
//! first, and then with what the others leave.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use journeyman_protocol::{ContextCategory, RelPath, Tokens};

use super::candidate::{ContextCandidate, PackingDecision, PackingOutcome};
use super::excerpt::Excerpt;
use super::file_text::{FileText, Texts};
use crate::cut::MIN_CUT_TOKENS;

/// Exponent of a candidate's size in its order: small passages first among equally relevant ones.
/// Measured: 0 to 1 differ by less than a point of the recall of changed lines.
const SIZE_EXPONENT: f64 = 0.3;
/// Lines between two passages that are shown rather than left out: a note about a gap costs as
/// much.
const MAX_BRIDGED_LINES: u32 = 4;
/// Tokens of an excerpt's tags, and of a note about a gap.
const TAGS_TOKENS: u64 = 24;
const GAP_TOKENS: u64 = 24;
/// Bytes that a token of code hardly ever exceeds, on average: a text that is too long by this
/// measure isn't counted.
const MAX_BYTES_PER_TOKEN: u64 = 8;
/// Bytes of a token of code, on average.
const BYTES_PER_TOKEN: f64 = 3.5;
/// Candidates of more lines have near-duplicates; shorter ones repeat by chance.
const MIN_COMPARED_LINES: usize = 8;
/// Share of a passage's lines that are in already, in hundredths, from which it says nothing new.
const MIN_DUPLICATE_PERCENT: usize = 90;
/// Maximum candidates that are weighed.
const MAX_CANDIDATES: usize = 20_000;

/// The budget of a selection.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectionBudget {
    /// All tokens.
    pub total: Tokens,
    /// The share of each category, in hundredths of the total. Categories without one only get
    /// what others leave.
    pub shares: Vec<(ContextCategory, u64)>,
    /// The relevance that a passage as large as the whole budget needs to be worth its tokens; a
    /// smaller one needs its part of it. So a large budget isn't filled for the sake of it.
    pub least: f64,
}

/// Shares of what an index finds for a task, in hundredths.
const FOUND_PERCENTS: [(ContextCategory, u64); 3] =
    [(ContextCategory::RelatedCode, 75), (ContextCategory::Tests, 15), (ContextCategory::Docs, 10)];

/// The relevance that what an index finds needs for a whole budget. All candidates together have
/// about 1. Measured at 32,000: 0.1 takes a third more tokens for two hundredths more of the lines.
const MIN_FOUND_RELEVANCE: f64 = 0.25;

impl SelectionBudget {
    /// Returns the budget of what an index finds for a task.
    #[must_use]
    pub fn for_found(total: Tokens) -> Self {
        Self { total, shares: FOUND_PERCENTS.to_vec(), least: MIN_FOUND_RELEVANCE }
    }

    /// Returns the tokens of a category's share.
    #[must_use]
    pub fn share(&self, category: ContextCategory) -> Tokens {
        let share = self.shares.iter().find(|(own, _)| *own == category).map_or(0, |(_, share)| *share);
        Tokens(self.total.0.saturating_mul(share) / 100)
    }

    /// Returns true if a candidate is relevant enough for its size.
    #[allow(clippy::cast_precision_loss)]
    fn is_relevant_enough(&self, candidate: &ContextCandidate, texts: &Texts) -> bool {
        let bytes = texts.get(&candidate.path).map_or(0, |text| text.slice(&candidate.lines).len());
        let part = bytes as f64 / BYTES_PER_TOKEN / self.total.0.max(1) as f64;
        candidate.relevance > 0.0 && candidate.relevance >= self.least * part
    }
}

/// The result of a selection.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Selection {
    /// The excerpts, by category and then by the relevance of their best passage.
    pub excerpts: Vec<Excerpt>,
    /// The decision about each candidate, in their order.
    pub decisions: Vec<PackingDecision>,
    /// The sum over excerpts; never above the budget.
    pub tokens: Tokens,
}

/// Selects candidates. Texts of files that have none are unreadable.
#[must_use]
pub fn select(candidates: &[ContextCandidate], texts: &Texts, room: &SelectionBudget) -> Selection {
    let mut selector = Selector { texts, files: BTreeMap::new(), known: HashSet::new(), left: room.total.0 };
    let decision =
        |candidate| PackingDecision { candidate, outcome: PackingOutcome::NoRoom, tokens: Tokens(0) };
    let mut decisions: Vec<PackingDecision> = (0..candidates.len()).map(decision).collect();
    let mut order = Vec::new();
    for (at, candidate) in candidates.iter().enumerate().take(MAX_CANDIDATES) {
        let outcome = if !texts.contains_key(&candidate.path) {
            PackingOutcome::Unreadable
        } else if !room.is_relevant_enough(candidate, texts) {
            PackingOutcome::Unlikely
        } else {
            let lines = f64::from(candidate.lines.end.saturating_sub(candidate.lines.start).max(1));
            order.push((candidate.relevance / lines.powf(SIZE_EXPONENT), at));
            continue;
        };
        if let Some(decision) = decisions.get_mut(at) {
            decision.outcome = outcome;
        }
    }
    order.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    let mut shares: HashMap<ContextCategory, u64> =
        room.shares.iter().map(|(category, _)| (*category, room.share(*category).0)).collect();
    for within_shares in [true, false] {
        for (_, at) in &order {
            let (Some(candidate), Some(decision)) = (candidates.get(*at), decisions.get_mut(*at)) else {
                continue;
            };
            if decision.outcome != PackingOutcome::NoRoom {
                continue;
            }
            let share = shares.entry(candidate.category).or_default();
            let most = if within_shares { *share } else { u64::MAX };
            // What didn't fit isn't counted again; it may have become a little cheaper.
            if decision.tokens.0 > selector.left.min(most) {
                continue;
            }
            (decision.outcome, decision.tokens) = selector.include_if_fits(candidate, most);
            if decision.outcome == PackingOutcome::Included {
                *share = share.saturating_sub(decision.tokens.0);
            }
        }
    }
    let excerpts = selector.render(room.total);
    for decision in decisions.iter_mut().filter(|decision| decision.outcome.is_included()) {
        let path = candidates.get(decision.candidate).map(|candidate| &candidate.path);
        if !excerpts.iter().any(|excerpt| Some(&excerpt.path) == path) {
            decision.outcome = PackingOutcome::NoRoom;
        }
    }
    let tokens = excerpts.iter().map(|excerpt| excerpt.tokens).sum();
    Selection { excerpts, decisions, tokens }
}

struct Selector<'a> {
    texts: &'a Texts,
    files: BTreeMap<&'a RelPath, ChosenLines>,
    /// Hashes of the lines that are in.
    known: HashSet<u64>,
    left: u64,
}

/// The lines of a file that are in.
struct ChosenLines {
    category: ContextCategory,
    /// The order of the file's first candidate.
    rank: usize,
    /// In order, apart.
    lines: Vec<Range<u32>>,
    /// Lines that are in besides if the file would have less than the least without them.
    around: Range<u32>,
    /// Tokens that are kept for those.
    reserved: u64,
}

impl<'a> Selector<'a> {
    /// Takes a candidate if it fits both what is left and `most` tokens.
    fn include_if_fits(&mut self, candidate: &ContextCandidate, most: u64) -> (PackingOutcome, Tokens) {
        let Some((path, file)) = self.texts.get_key_value(&candidate.path) else {
            return (PackingOutcome::Unreadable, Tokens(0));
        };
        let end = file.line_count().saturating_add(1);
        let asked = candidate.lines.start.max(1)..candidate.lines.end.min(end);
        if asked.is_empty() {
            return (PackingOutcome::Unreadable, Tokens(0));
        }
        let chosen = self.files.get(path);
        let own: &[Range<u32>] = chosen.map_or(&[], |chosen| &chosen.lines);
        let limit = self.left.min(most);
        if (file.slice(&asked).len() as u64) / MAX_BYTES_PER_TOKEN > limit {
            return (PackingOutcome::NoRoom, Tokens(0));
        }
        let new = missing_lines(own, &asked);
        if new.is_empty() {
            return (PackingOutcome::Covered, Tokens(0));
        }
        // The first passage is charged for what the file has at least; later ones use that up.
        let least = match chosen {
            None => {
                let (lines, tokens) = widen_to_minimum(file, asked.clone());
                if tokens < MIN_CUT_TOKENS.0 && file.has_long_line(&lines) {
                    return (PackingOutcome::TooLittle, Tokens(0));
                }
                Some((lines, tokens))
            }
            Some(_) => None,
        };
        let mut reserved = chosen.map_or(0, |chosen| chosen.reserved);
        // The limit is checked before more text is counted than can fit.
        let mut spent = if chosen.is_none() { TAGS_TOKENS + 2 * GAP_TOKENS } else { GAP_TOKENS };
        for range in &new {
            let bytes = file.slice(range).len() as u64;
            if spent + bytes / MAX_BYTES_PER_TOKEN > limit.saturating_add(reserved) {
                return (PackingOutcome::NoRoom, Tokens(spent + bytes / 4));
            }
            spent += match &least {
                // The same lines have been counted.
                Some((lines, tokens)) if lines == range => *tokens,
                _ => file.count_tokens(range).0,
            };
        }
        let cost = match &least {
            Some((_, tokens)) => {
                let with_least = spent.max(TAGS_TOKENS + 2 * GAP_TOKENS + tokens);
                reserved = with_least - spent;
                with_least
            }
            None => {
                let used = spent.min(reserved);
                reserved -= used;
                spent - used
            }
        };
        if cost > limit {
            return (PackingOutcome::NoRoom, Tokens(cost));
        }
        let hashes: Vec<u64> = new.iter().flat_map(|range| line_hashes(file.slice(range))).collect();
        let repeated = hashes.iter().filter(|hash| self.known.contains(hash)).count();
        if hashes.len() >= MIN_COMPARED_LINES && repeated * 100 >= hashes.len() * MIN_DUPLICATE_PERCENT {
            return (PackingOutcome::Duplicate, Tokens(cost));
        }
        self.known.extend(hashes);
        self.left -= cost;
        let rank = self.files.len();
        let chosen = self.files.entry(path).or_insert_with(|| ChosenLines {
            category: candidate.category,
            rank,
            lines: Vec::new(),
            around: least.map(|(lines, _)| lines).unwrap_or_default(),
            reserved,
        });
        chosen.reserved = reserved;
        chosen.lines.push(asked);
        merge_ranges(&mut chosen.lines);
        (PackingOutcome::Included, Tokens(cost))
    }

    /// Renders what is chosen. Estimates of parts add up to a little less than the whole may have,
    /// so that the least relevant excerpts go where they don't fit together.
    fn render(self, most: Tokens) -> Vec<Excerpt> {
        let mut chosen: Vec<(&RelPath, ChosenLines)> = self.files.into_iter().collect();
        chosen.sort_by_key(|(_, chosen)| chosen.rank);
        let mut left = most.0;
        let mut excerpts = Vec::new();
        for (path, ChosenLines { category, mut lines, around, .. }) in chosen {
            let Some(file) = self.texts.get(path) else { continue };
            if lines.iter().map(|lines| file.count_tokens(lines).0).sum::<u64>() < MIN_CUT_TOKENS.0 {
                lines.push(around);
                merge_ranges(&mut lines);
            }
            let excerpt = Excerpt::render(category, path, file, lines);
            // A smaller piece of a file tells nothing.
            if excerpt.tokens.0 <= left && (excerpt.whole || excerpt.tokens >= MIN_CUT_TOKENS) {
                left -= excerpt.tokens.0;
                excerpts.push(excerpt);
            }
        }
        excerpts.sort_by_key(|excerpt| excerpt.category);
        excerpts
    }
}

/// Widens lines until they cost the least that a piece of a file may have; all of a small file.
/// Returns them with their tokens.
fn widen_to_minimum(file: &FileText, lines: Range<u32>) -> (Range<u32>, u64) {
    let end = file.line_count().saturating_add(1);
    let Range { start: mut first, end: mut last } = lines;
    let mut tokens = file.count_tokens(&(first..last)).0;
    while tokens < MIN_CUT_TOKENS.0 && (first > 1 || last < end) {
        while tokens < MIN_CUT_TOKENS.0 && (first > 1 || last < end) {
            if last < end {
                tokens += file.count_tokens(&(last..last + 1)).0;
                last += 1;
            }
            if first > 1 && tokens < MIN_CUT_TOKENS.0 {
                first -= 1;
                tokens += file.count_tokens(&(first..first + 1)).0;
            }
        }
        // Lines together may have fewer than each for itself.
        tokens = file.count_tokens(&(first..last)).0;
    }
    (first..last, tokens)
}

/// Returns the parts of some lines that aren't among others, which are in order.
fn missing_lines(own: &[Range<u32>], wanted: &Range<u32>) -> Vec<Range<u32>> {
    let mut missing = Vec::new();
    let mut next = wanted.start;
    for range in own.iter().filter(|range| range.end > wanted.start && range.start < wanted.end) {
        if range.start > next {
            missing.push(next..range.start);
        }
        next = next.max(range.end);
    }
    if next < wanted.end {
        missing.push(next..wanted.end);
    }
    missing
}

/// Brings ranges in order and joins those that are next to each other.
fn merge_ranges(lines: &mut Vec<Range<u32>>) {
    lines.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<u32>> = Vec::with_capacity(lines.len());
    for range in lines.drain(..) {
        match merged.last_mut().filter(|last| range.start <= last.end.saturating_add(MAX_BRIDGED_LINES)) {
            Some(last) => last.end = last.end.max(range.end),
            None => merged.push(range),
        }
    }
    *lines = merged;
}

/// Returns a hash of each line that has more than brackets.
fn line_hashes(text: &str) -> impl Iterator<Item = u64> {
    let lines = text.lines().map(str::trim).filter(|line| line.len() >= 6);
    lines.map(|line| {
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        hasher.finish()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::packing::CandidateReason;

    fn path(name: &str) -> RelPath {
        RelPath::parse(name).unwrap()
    }

    fn text(name: &str, lines: u32) -> FileText {
        let text: String =
            (1..=lines).map(|line| format!("let {name}_{line} = compute({line});\n")).collect();
        FileText::new(text, Vec::new())
    }

    fn candidate(name: &str, lines: Range<u32>, relevance: f64) -> ContextCandidate {
        let category = ContextCategory::RelatedCode;
        ContextCandidate { category, path: path(name), lines, relevance, reason: CandidateReason::Found }
    }

    fn room(total: u64) -> SelectionBudget {
        SelectionBudget {
            total: Tokens(total),
            shares: vec![(ContextCategory::RelatedCode, 70), (ContextCategory::Tests, 30)],
            least: 0.01,
        }
    }

    fn outcomes(selection: &Selection) -> Vec<&PackingOutcome> {
        selection.decisions.iter().map(|decision| &decision.outcome).collect()
    }

    #[test]
    fn the_most_relevant_go_in_and_overlaps_are_merged() {
        let texts = Texts::from([(path("a.rs"), text("a", 400)), (path("b.rs"), text("b", 400))]);
        let candidates = [
            candidate("a.rs", 100..165, 1.0),
            candidate("a.rs", 140..180, 0.9),
            candidate("a.rs", 100..180, 0.8),
            candidate("b.rs", 1..300, 0.01),
            candidate("b.rs", 1..400, 0.5),
            candidate("c.rs", 1..10, 0.9),
        ];
        let selection = select(&candidates, &texts, &room(2_000));
        let [excerpt] = &selection.excerpts[..] else { panic!("{:?}", selection.excerpts) };
        let [lines] = &excerpt.lines[..] else { panic!("{:?}", excerpt.lines) };
        assert!(lines.start <= 100 && lines.end >= 180, "{lines:?}");
        use PackingOutcome::{Covered, Included, NoRoom, Unlikely, Unreadable};
        assert_eq!(outcomes(&selection), [&Included, &Included, &Covered, &Unlikely, &NoRoom, &Unreadable]);
    }

    #[test]
    fn a_small_piece_is_widened_and_a_small_file_is_whole() {
        let texts = Texts::from([(path("a.rs"), text("a", 400)), (path("b.rs"), text("b", 20))]);
        let candidates = [candidate("a.rs", 200..202, 1.0), candidate("b.rs", 5..6, 0.9)];
        let selection = select(&candidates, &texts, &room(5_000));
        let [b, a] = &selection.excerpts[..] else { panic!() };
        assert!(a.tokens >= MIN_CUT_TOKENS && a.tokens.0 < MIN_CUT_TOKENS.0 * 3 / 2, "{}", a.tokens);
        assert!(b.whole);
    }

    #[test]
    fn copies_are_left_out() {
        let texts = Texts::from([(path("a.rs"), text("a", 60)), (path("copy.rs"), text("a", 60))]);
        let candidates = [candidate("a.rs", 1..61, 1.0), candidate("copy.rs", 1..61, 0.9)];
        let selection = select(&candidates, &texts, &room(9_000));
        assert_eq!(outcomes(&selection), [&PackingOutcome::Included, &PackingOutcome::Duplicate]);
    }

    #[test]
    fn a_category_keeps_its_share_and_gets_what_others_leave() {
        let texts = Texts::from([(path("a.rs"), text("a", 300)), (path("t.rs"), text("t", 300))]);
        let mut candidates: Vec<ContextCandidate> =
            (0..10).map(|n| candidate("a.rs", 1 + n * 30..31 + n * 30, 0.9)).collect();
        let of = |selection: &Selection, category| -> u64 {
            selection.excerpts.iter().filter(|it| it.category == category).map(|it| it.tokens.0).sum()
        };
        let alone = select(&candidates, &texts, &room(3_000));
        assert!(of(&alone, ContextCategory::RelatedCode) > 2_400, "lent: {}", alone.tokens);
        candidates
            .push(ContextCandidate { category: ContextCategory::Tests, ..candidate("t.rs", 1..31, 0.3) });
        let both = select(&candidates, &texts, &room(3_000));
        assert!(of(&both, ContextCategory::Tests) >= MIN_CUT_TOKENS.0, "a less relevant test has its share");
    }

    #[test]
    fn a_file_of_which_too_little_can_be_shown_is_left_out_with_the_reason() {
        let data = FileText::new("=".repeat(6_000), Vec::new());
        let texts = Texts::from([(path("a.rs"), data)]);
        let selection = select(&[candidate("a.rs", 1..2, 1.0)], &texts, &room(9_000));
        assert_eq!((outcomes(&selection), selection.tokens), (vec![&PackingOutcome::TooLittle], Tokens(0)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_piece_of_a_file_is_under_the_least(
            lines in proptest::collection::vec("[a-z(){} =.;]{0,90}|={900,2500}|é{0,40}|[ -~]{2100}", 1..40),
            asked in proptest::collection::vec((0_u32..50, 1_u32..20, 0.0_f64..1.0), 1..8),
            total in 0_u64..6_000,
        ) {
            let texts = Texts::from([(path("a.rs"), FileText::new(lines.join("\n"), Vec::new()))]);
            let candidates: Vec<ContextCandidate> = asked.iter()
                .map(|(first, lines, relevance)| candidate("a.rs", *first..first + lines, *relevance)).collect();
            let selection = select(&candidates, &texts, &room(total));
            for excerpt in &selection.excerpts {
                let shown: u64 = excerpt.lines.iter().map(|lines| texts[&excerpt.path].count_tokens(lines).0).sum();
                prop_assert!(excerpt.whole || shown >= MIN_CUT_TOKENS.0, "{} tokens of {:?}", shown, excerpt.lines);
            }
            if selection.excerpts.is_empty() {
                prop_assert!(outcomes(&selection).iter().all(|outcome| !outcome.is_included()));
            }
        }
    }

    proptest! {
        #[test]
        fn any_candidates_fit_any_room(
            many in proptest::collection::vec((0_usize..5, 0_u32..500, 0_u32..500, -1.0_f64..2.0), 0..60),
            total in 0_u64..20_000,
        ) {
            let names = ["a.rs", "b.rs", "c.rs", "d.rs", "missing.rs"];
            let texts: Texts = names.iter().take(4).zip([1_u32, 40, 400, 3_000])
                .map(|(name, lines)| (path(name), text(&name[..1], lines))).collect();
            let candidates: Vec<ContextCandidate> = many.iter()
                .map(|(file, first, last, relevance)| candidate(names[*file], *first..*last, *relevance)).collect();
            let selection = select(&candidates, &texts, &room(total));
            prop_assert!(selection.tokens.0 <= total);
            prop_assert_eq!(selection.decisions.len(), candidates.len());
            prop_assert_eq!(&select(&candidates, &texts, &room(total)), &selection);
            for decision in &selection.decisions {
                let path = &candidates[decision.candidate].path;
                let is_shown = selection.excerpts.iter().any(|excerpt| excerpt.path == *path);
                prop_assert!(is_shown || !decision.outcome.is_included());
            }
            for excerpt in &selection.excerpts {
                prop_assert!(excerpt.lines.is_sorted_by(|one, other| one.end < other.start));
            }
        }
    }
}
