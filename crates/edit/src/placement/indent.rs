//! Carrying indentation over from the search text's style to the file's.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::lines::split_indent;
use crate::placement::tokens::is_similar;

/// Maximum number of a file's lines examined to learn its indentation style.
const MAX_EXAMINED_LINES: usize = 2_000;
/// Wider steps are alignment, not indentation.
const MAX_STEP_SPACES: usize = 8;

/// Maximum number of the search text's lines that the first new one is compared with.
const MAX_COMPARED_LINES: usize = 64;
/// Fewer blocks of a file may be as deep as they are by chance.
const MIN_SEEN_BLOCKS: usize = 3;
/// More spaces after a tab are a drawing.
const MAX_ALIGNMENT_SPACES: usize = 63;
/// Maximum number of learnt indentations: no code nests deeper, and comparing each with each stays
/// cheap.
const MAX_PAIRS: usize = 64;

/// A mapping from the search text's indentations to the file's, learnt from the lines that matched.
#[derive(Debug, Default)]
pub(crate) struct IndentMap {
    /// Known pairs (search text, file), each search indentation once.
    pairs: Vec<(String, String)>,
    /// Search indentations that stood for more than one of the file.
    contradicted: Vec<String>,
    identical: bool,
    file_tabs: bool,
    /// A line of nothing but blanks is the file's to the byte: such lines weren't shifted.
    keeps_blank_lines: bool,
    styles: IndentStyles,
}

/// Indentation styles of the texts, apart from the lines that matched.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IndentStyles {
    /// Spaces a level in the search and replacement texts, where that can be told.
    given_step: Option<usize>,
    /// The same by which lines of the search and replacement texts differ, and the most levels
    /// between two.
    given_levels: Option<(usize, usize)>,
    /// Spaces by which a line after one that opens a block is deeper, where all are so.
    opened_step: Option<usize>,
    /// No line of the texts is more than one level deeper or less deep than the one before, and the
    /// last is as deep as the first at most: blocks within blocks, not continued lines.
    is_nested: bool,
    /// Spaces a level in the file, where that can be told.
    file_step: Option<usize>,
    /// Most of the file's indented lines begin with a tab.
    file_tabs: bool,
    /// The numbers of spaces after tabs in the file's indentations, one bit for each width.
    aligned: u64,
}

impl IndentStyles {
    /// Looks at the lines of the search and replacement texts, and at the file.
    pub(crate) fn learn_styles<'a>(given: impl Iterator<Item = &'a str>, file: &str) -> Self {
        let lines: Vec<&str> = given.filter(|line| !line.trim().is_empty()).collect();
        let given: Vec<&str> = lines.iter().map(|line| split_indent(line).0).collect();
        let given_levels = levels_between(&given);
        // The lines of a long comment are one space deeper than their block.
        let code =
            || file.lines().take(MAX_EXAMINED_LINES).filter(|line| !line.trim_start().starts_with('*'));
        let file_lines = || code().map(|line| split_indent(line).0);
        let blocks: Vec<&str> = code().filter(|line| !line.trim().is_empty()).collect();
        let tabs = file_lines().filter(|indent| indent.starts_with('\t')).count();
        let spaces = file_lines().filter(|indent| indent.starts_with(' ')).count();
        Self {
            given_step: common_step(given.iter().copied()),
            given_levels,
            is_nested: given_levels.is_some_and(|(step, _)| goes_by_levels(&given, step)),
            opened_step: block_indent_step(&lines),
            file_step: usual_block_step(&blocks).or_else(|| common_step(file_lines())),
            file_tabs: tabs > spaces,
            aligned: file_lines()
                .filter_map(spaces_after_tabs)
                .fold(0, |widths, width| widths | (1 << width)),
        }
    }

    /// Returns true if so many spaces of the search text, or the last of them, may be the spaces
    /// after a tab that the file aligns lines by, and not levels of indentation.
    fn may_align(&self, spaces: usize) -> bool {
        let step = self.given_step.unwrap_or(1);
        (step..=spaces.min(MAX_ALIGNMENT_SPACES)).step_by(step).any(|width| self.aligned & (1 << width) != 0)
    }

    /// So many spaces between lines of the search and replacement texts in the file's levels, where
    /// both are known and differ. A step may be the continuation of a line: it is a level after a
    /// line that opens a block, and where lines go into one and out of it by levels.
    pub(super) fn file_width(&self, spaces: usize) -> Option<usize> {
        let ((step, levels), own) = (self.given_levels?, self.file_step?);
        let is_nested = self.is_nested && (levels > 1 || own.is_multiple_of(step));
        let is_level = (own.is_multiple_of(step) || step.is_multiple_of(own))
            && self.opened_step.map_or(is_nested, |opened| opened == step);
        (step != own && is_level && spaces.is_multiple_of(step)).then(|| spaces / step * own)
    }

    /// One level of the file's indentation; four spaces where it has none.
    pub(crate) fn indent_unit(&self) -> String {
        if self.file_tabs { "\t".to_owned() } else { " ".repeat(self.file_step.unwrap_or(4)) }
    }
}

impl IndentMap {
    /// Learns from lines of the search text paired with the file's; blank lines teach nothing.
    /// `new` are the lines that will be carried over: they may be in the file's indentation
    /// already.
    pub(crate) fn learn_map<'a>(
        matched: impl Iterator<Item = (&'a str, &'a str)> + Clone,
        new: &[&str],
        styles: IndentStyles,
    ) -> Self {
        if is_indented_as_file(matched.clone(), new) {
            return Self { identical: true, styles, ..Self::default() };
        }
        let mut map = Self { identical: true, styles, ..Self::default() };
        for (search, found) in matched.clone() {
            if search.trim().is_empty() || found.trim().is_empty() {
                map.keeps_blank_lines |= !search.is_empty() && search == found;
                continue;
            }
            let (from, to) = (split_indent(search).0, split_indent(found).0);
            map.identical &= from == to;
            match map.pairs.iter().find(|(known, _)| known == from) {
                Some((_, known)) if known == to => {}
                Some(_) if map.contradicted.iter().any(|known| known == from) => {}
                Some(_) => map.contradicted.push(from.to_owned()),
                None if map.pairs.len() < MAX_PAIRS => map.pairs.push((from.to_owned(), to.to_owned())),
                None => {}
            }
        }
        let found_tabs = map.pairs.iter().any(|(_, to)| to.contains('\t'));
        let found_spaces = map.pairs.iter().any(|(_, to)| to.contains(' '));
        map.file_tabs = found_tabs || (!found_spaces && styles.file_tabs);
        map.follow_new_lines(matched, new);
        map
    }

    /// Where the search text lost its indentation altogether, the new lines' own is from the place
    /// of its first line on: if the lines that they have in common with the file come out so, or
    /// one that is indented does. A single new line comes where the first one was.
    fn follow_new_lines<'a>(&mut self, matched: impl Iterator<Item = (&'a str, &'a str)>, new: &[&str]) {
        if self.contradicted != [""] || self.pairs.len() != 1 {
            return;
        }
        let found: Vec<&str> =
            matched.filter(|(search, _)| !search.trim().is_empty()).map(|two| two.1).collect();
        let mut new = new.iter().filter(|line| !line.trim().is_empty()).peekable();
        let begins_flat = new.peek().is_some_and(|first| split_indent(first).0.is_empty());
        let Some(first) = found.first().map(|line| split_indent(line).0).filter(|_| begins_flat) else {
            return;
        };
        let own = Self {
            pairs: vec![(String::new(), first.to_owned())],
            identical: first.is_empty(),
            contradicted: Vec::new(),
            ..*self
        };
        let mut places: HashMap<&str, Vec<&str>> = HashMap::new();
        for (indent, rest) in found.iter().map(|line| split_indent(line)) {
            places.entry(rest).or_default().push(indent);
        }
        let (mut is_nested, mut all_fit, mut nested_fits) = (false, true, false);
        let mut count = 0;
        for line in new {
            count += 1;
            let (indent, rest) = split_indent(line);
            is_nested |= !indent.is_empty();
            let same = places.get(rest).filter(|_| rest.contains(char::is_alphanumeric));
            if let Some(same) = same {
                let mapped = own.map_indent(indent, None);
                let fits = same.iter().take(MAX_PAIRS).any(|at| mapped.as_deref() == Some(at));
                all_fit &= fits;
                nested_fits |= fits && !indent.is_empty();
            }
        }
        // A single line comes where the first one was.
        if (is_nested || count == 1) && (all_fit || nested_fits) {
            *self = own;
        }
    }

    /// Returns true if nothing has to be carried over.
    pub(crate) fn is_identity(&self) -> bool {
        self.identical
    }

    /// Returns true if an indentation of the search text stood for more than one of the file.
    pub(crate) fn is_contradicted(&self, indent: &str) -> bool {
        self.contradicted.iter().any(|known| known == indent)
    }

    /// The file's indentation for a line that the replacement indents by `given`, or `None` where
    /// that can't be told. `neighbour` is the nearest matched line (search text's indentation,
    /// file's): where it is indented alike, the new line follows it.
    pub(crate) fn map_indent(&self, given: &str, neighbour: Option<(&str, &str)>) -> Option<String> {
        if self.identical {
            return Some(given.to_owned());
        }
        if let Some((_, to)) = neighbour.filter(|(from, _)| *from == given) {
            return Some(to.to_owned());
        }
        let mut even = self.pairs.iter().filter(|(from, _)| !self.contradicted.contains(from));
        if let Some((_, to)) = even.find(|(from, _)| from == given) {
            return Some(to.clone());
        }
        if !self.contradicted.is_empty() {
            return None;
        }
        if let Some(own) = self.shift_indent(given) {
            return Some(own);
        }
        let inner = self
            .pairs
            .iter()
            .filter(|(from, _)| given.starts_with(from.as_str()))
            .max_by_key(|(from, _)| from.len());
        if let Some((from, to)) = inner {
            let deeper = given.get(from.len()..)?;
            let spaces = !deeper.is_empty() && deeper.chars().all(|c| c == ' ');
            if spaces && self.file_tabs && !from.contains('\t') && self.styles.may_align(deeper.len()) {
                return None;
            }
            let deeper = self.convert_blanks(deeper)?;
            return Some(format!("{to}{deeper}"));
        }
        let (from, to) = self
            .pairs
            .iter()
            .filter(|(from, _)| from.starts_with(given))
            .min_by_key(|(from, _)| from.len())?;
        let shallower = self.convert_blanks(from.get(given.len()..)?)?;
        to.strip_suffix(shallower.as_str()).map(str::to_owned)
    }

    /// Returns the text of a new line that has only blanks: they are carried over where they are an
    /// indentation that matched or that another new line has (`is_level`), kept where they are one
    /// of the file's, and left away elsewhere.
    pub(crate) fn map_blank_line(&self, blanks: &str, is_level: bool) -> String {
        if blanks.is_empty() || self.keeps_blank_lines {
            return blanks.to_owned();
        }
        let known = |(from, _): &&(String, String)| from == blanks && !self.contradicted.contains(from);
        match self.pairs.iter().find(known) {
            Some((_, to)) => to.clone(),
            None if self.pairs.iter().any(|(_, to)| to == blanks) => blanks.to_owned(),
            None if is_level => self.map_indent(blanks, None).unwrap_or_default(),
            None => String::new(),
        }
    }

    /// The same indentation where all known pairs differ by the same blanks before them: then the
    /// style is the same.
    fn shift_indent(&self, given: &str) -> Option<String> {
        let [(from, to), _, ..] = self.pairs.as_slice() else { return None };
        if let Some(gone) = from.strip_suffix(to.as_str()) {
            let same = self.pairs.iter().all(|(from, to)| from.strip_prefix(gone) == Some(to));
            return given.strip_prefix(gone).filter(|_| same).map(str::to_owned);
        }
        let come = to.strip_suffix(from.as_str())?;
        let same = self.pairs.iter().all(|(from, to)| to.strip_prefix(come) == Some(from));
        same.then(|| format!("{come}{given}"))
    }

    /// Some blanks of the search text's style in the file's.
    fn convert_blanks(&self, blanks: &str) -> Option<String> {
        let level = self.level_pair(blanks);
        if let Some((from, to)) = level.filter(|(from, to)| from != to) {
            let levels = blanks.len() / from.len();
            let whole = blanks.len().is_multiple_of(from.len()) && blanks == from.repeat(levels);
            return whole.then(|| to.repeat(levels));
        }
        let tabs = blanks.chars().all(|c| c == '\t');
        let spaces = blanks.chars().all(|c| c == ' ');
        if spaces
            && !self.file_tabs
            && level.is_none()
            && let Some(width) = self.styles.file_width(blanks.len())
        {
            return Some(" ".repeat(width));
        }
        match (tabs, spaces, self.file_tabs) {
            (true, _, true) | (_, true, false) => Some(blanks.to_owned()),
            (_, true, true) => {
                let step = self.styles.given_step.filter(|step| blanks.len().is_multiple_of(*step))?;
                Some("\t".repeat(blanks.len() / step))
            }
            (true, _, false) => {
                let level = self.styles.file_step.filter(|step| !self.may_be_columns(*step));
                Some(" ".repeat(blanks.len() * self.tab_columns().or(level)?))
            }
            _ => None,
        }
    }

    /// The spaces that a tab of the search text stands for, where its other lines are indented as
    /// the file's: nothing moved then, and tabs were written for so many columns.
    fn tab_columns(&self) -> Option<usize> {
        let is_kept = |(from, to): &(String, String)| from == to && from.starts_with(' ');
        let (tabs, to) = self.pairs.iter().find(|(from, _)| from.starts_with('\t'))?;
        let columns = to.len() / tabs.len();
        let is_so = |(from, to): &(String, String)| *to == " ".repeat(from.len() * columns);
        let mut tabbed = self.pairs.iter().filter(|(from, _)| from.starts_with('\t'));
        (self.pairs.iter().any(is_kept) && tabbed.all(is_so)).then_some(columns)
    }

    /// Returns true if a tab of the search text stands for several levels of the file, and no line
    /// that opens a block shows one to be a level: further tabs may be as many columns each.
    fn may_be_columns(&self, step: usize) -> bool {
        let is_wide = |(from, to): &(String, String)| {
            let columns = to.len().checked_div(from.len()).unwrap_or_default();
            from.starts_with('\t')
                && columns > step
                && columns.is_multiple_of(step)
                && to.len() == from.len() * columns
        };
        self.styles.opened_step.is_none() && self.pairs.iter().any(is_wide)
    }

    /// One level in both styles, where two matched lines are one or more apart: the smallest
    /// difference. Tabs of a text that has both say nothing of its spaces, nor they of tabs.
    fn level_pair(&self, blanks: &str) -> Option<(&str, &str)> {
        let mut best: Option<(&str, &str)> = None;
        for (inner, inner_to) in &self.pairs {
            for (outer, outer_to) in &self.pairs {
                let Some(from) = inner.strip_prefix(outer.as_str()).filter(|from| !from.is_empty()) else {
                    continue;
                };
                if blanks.starts_with('\t') != from.starts_with('\t') {
                    continue;
                }
                let to = inner_to.strip_prefix(outer_to.as_str()).filter(|to| !to.is_empty())?;
                if best.is_none_or(|(shortest, _)| from.len() < shortest.len()) {
                    best = Some((from, to));
                }
            }
        }
        best
    }
}

/// Returns true if the new lines are indented as the file is, though the search text isn't: their
/// shallowest line is where the file's is, and the search text's is elsewhere or deepens by another
/// unit than those two.
fn is_indented_as_file<'a>(matched: impl Iterator<Item = (&'a str, &'a str)> + Clone, new: &[&str]) -> bool {
    let indents = |lines: &mut dyn Iterator<Item = &'a str>| -> Vec<&'a str> {
        lines.filter(|line| !line.trim().is_empty()).map(|line| split_indent(line).0).collect()
    };
    // A line that both texts have in common shows that the replacement is indented as the search
    // text is.
    let shifted: HashSet<&str> = matched
        .clone()
        .filter(|(search, found)| {
            !search.trim().is_empty() && split_indent(search).0 != split_indent(found).0
        })
        .map(|(search, _)| search)
        .collect();
    if new.iter().any(|line| shifted.contains(line)) {
        return false;
    }
    // So does a first line that is nearly one of the search text's and as deep.
    let first_new = new.iter().find(|line| !line.trim().is_empty());
    let is_version = |old: &&str| {
        first_new.is_some_and(|new| {
            split_indent(old).0 == split_indent(new).0 && is_similar(old.trim(), new.trim())
        })
    };
    let moved = matched.clone().map(|(search, _)| search).filter(|old| shifted.contains(old));
    if moved.take(MAX_COMPARED_LINES).any(|old| is_version(&old)) {
        return false;
    }
    let old = indents(&mut matched.clone().map(|(search, _)| search));
    let file = indents(&mut matched.map(|(_, found)| found));
    let new: Vec<&str> =
        new.iter().filter(|line| !line.trim().is_empty()).map(|line| split_indent(line).0).collect();
    let shallowest = |indents: &[&str]| {
        indents.iter().min_by_key(|indent| indent.len()).map(|indent| (*indent).to_owned())
    };
    if new.is_empty() || old == file || shallowest(&new) != shallowest(&file) {
        return false;
    }
    // A tab counts as a unit of its own.
    let tabs = |indents: &[&str]| indents.iter().any(|indent| indent.starts_with('\t'));
    let unit = |indents: &[&str]| if tabs(indents) { Some(0) } else { common_step(indents.iter().copied()) };
    let (given, own) = (unit(&new), unit(&file));
    shallowest(&old) != shallowest(&file)
        || (own.is_some() && given == own && unit(&old).is_some_and(|old| Some(old) != own))
}

/// Returns the number of spaces after the tabs of an indentation.
fn spaces_after_tabs(indent: &str) -> Option<usize> {
    let spaces = indent.trim_start_matches('\t');
    let width = Some(spaces.len()).filter(|width| (1..=MAX_ALIGNMENT_SPACES).contains(width))?;
    (indent.starts_with('\t') && spaces.chars().all(|c| c == ' ')).then_some(width)
}

/// The spaces that all differences between indentations are multiples of, and how many of these are
/// between the least and the most.
fn levels_between(indents: &[&str]) -> Option<(usize, usize)> {
    let widths: BTreeSet<usize> = indents.iter().map(|indent| indent.len()).collect();
    let (least, most) = (*widths.first()?, *widths.last()?);
    let step = (2..=MAX_STEP_SPACES)
        .rev()
        .find(|step| most > least && widths.iter().all(|width| (width - least).is_multiple_of(*step)))?;
    let spaces = indents.iter().all(|indent| indent.bytes().all(|byte| byte == b' '));
    spaces.then_some((step, (most - least) / step))
}

/// Returns true if indentations change by one level of `step` spaces at once, and end no deeper
/// than they begin.
fn goes_by_levels(indents: &[&str], step: usize) -> bool {
    let is_level = |pair: &[&str]| matches!(pair, [one, next] if one.len().abs_diff(next.len()) <= step);
    let ends = indents.first().zip(indents.last());
    indents.windows(2).all(is_level) && ends.is_some_and(|(first, last)| last.len() <= first.len())
}

/// The spaces by which the line after one that opens a block is deeper, if all such lines agree.
fn block_indent_step(lines: &[&str]) -> Option<usize> {
    let mut steps = block_steps(lines);
    let first = steps.next()?;
    steps.all(|step| step == first).then_some(first)
}

/// The spaces by which most lines after one that opens a block are deeper: a level of a file where
/// many lines are aligned by other widths.
fn usual_block_step(lines: &[&str]) -> Option<usize> {
    let mut counts = [0_usize; MAX_STEP_SPACES + 1];
    let mut all = 0;
    let by_spaces = lines.windows(2).filter(|pair| pair.iter().all(|line| !line.starts_with('\t')));
    for step in by_spaces.flat_map(block_steps) {
        all += 1;
        if let Some(count) = counts.get_mut(step) {
            *count += 1;
        }
    }
    let (step, count) = counts.iter().enumerate().skip(2).max_by_key(|(_, count)| **count)?;
    (*count >= MIN_SEEN_BLOCKS && count * 10 >= all * 8).then_some(step)
}

/// The spaces by which each line after one that opens a block is deeper.
fn block_steps(lines: &[&str]) -> impl Iterator<Item = usize> {
    let opens = |line: &str| line.trim_end().ends_with(['{', ':']);
    lines.windows(2).filter_map(move |pair| match pair {
        [line, next] if opens(line) => {
            split_indent(next).0.len().checked_sub(split_indent(line).0.len()).filter(|step| *step > 0)
        }
        _ => None,
    })
}

/// The width of a level among indentations by spaces: what all of them are multiples of.
fn common_step<'a>(indents: impl Iterator<Item = &'a str>) -> Option<usize> {
    let mut widths = [0_usize; MAX_STEP_SPACES * 8 + 1];
    for indent in indents.filter(|indent| indent.chars().all(|c| c == ' ')) {
        if let Some(count) = widths.get_mut(indent.len()) {
            *count += 1;
        }
    }
    let seen: usize = widths.iter().skip(1).sum();
    // A few odd lines (alignment, comments) must not hide the width that nearly all follow.
    (2..=MAX_STEP_SPACES).rev().find(|step| {
        let fitting: usize = widths.iter().skip(*step).step_by(*step).sum();
        seen > 0 && fitting * 10 >= seen * 9
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(pairs: &[(&str, &str)], given: &str) -> Option<String> {
        let lines: Vec<(String, String)> =
            pairs.iter().map(|(from, to)| (format!("{from}x"), format!("{to}x"))).collect();
        let given_line = format!("{given}y");
        let styles = IndentStyles::learn_styles(
            lines.iter().map(|(from, _)| from.as_str()).chain([given_line.as_str()]),
            "",
        );
        let map =
            IndentMap::learn_map(lines.iter().map(|(from, to)| (from.as_str(), to.as_str())), &[], styles);
        map.map_indent(given, None)
    }

    #[test]
    fn carrying_table() {
        type Pairs = &'static [(&'static str, &'static str)];
        let cases: &[(Pairs, &str, Option<&str>)] = &[
            (&[("", "    ")], "    ", Some("        ")),
            (&[("    ", "")], "        ", Some("    ")),
            (&[("", "\t"), ("    ", "\t\t")], "        ", Some("\t\t\t")),
            (&[("", "\t")], "    ", Some("\t\t")),
            (&[("    ", "  "), ("        ", "    ")], "            ", Some("      ")),
            (&[("    ", "\t\t")], "", Some("\t")),
            (&[("        ", "    ")], "    ", Some("")),
            (&[("  ", "  ")], "   ", Some("   ")),
            // The same indentation stood for two: nothing can be told.
            (&[("  ", "    "), ("  ", "      ")], "  ", None),
            // Spaces beside a tab that stands for four are as they were.
            (&[("", ""), ("  ", "  "), ("\t", "    ")], "\t  ", Some("      ")),
            (&[("", ""), ("  ", "  "), ("\t", "    ")], "\t\t", Some("        ")),
            // One level less than the file has.
            (&[("  ", "")], "", None),
        ];
        for (pairs, given, expected) in cases {
            assert_eq!(carried(pairs, given).as_deref(), *expected, "{pairs:?} {given:?}");
        }
    }
}
