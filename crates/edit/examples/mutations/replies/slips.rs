//! Slips within the lines of a hunk, beside those of `damage.rs`.

use crate::damage::{self, split, unit};
use crate::hunk::{Case, Dice, Hunk, Kind, Line, joined, new_lines, old_lines, prefixed};

pub(super) type Slip = fn(&Hunk, &mut Dice) -> Option<Case>;

/// Those of `damage.rs` that leave one meaning.
pub(super) const KNOWN: [&str; 11] = [
    "none",
    "indent shifted",
    "tabs for spaces",
    "trailing blanks",
    "blank line dropped",
    "quotes curled",
    "elision",
    "escape doubling",
    "line numbers",
    "markdown fence",
    "CRLF",
];

pub(super) const OWN: [(&str, Slip); 8] = [
    ("blanks within lines", blanks_within),
    ("typo in an old line", typo),
    ("a context line too few", context_less),
    ("a context line too many", context_more),
    ("a stale context line", context_stale),
    ("another unit of indentation", other_unit),
    ("another unit, flush left", other_unit_flush),
    ("lines joined", lines_joined),
];

/// A hunk as it is, or as its lines became.
pub(super) fn case_of(lines: &[Line]) -> Case {
    Case {
        damage: String::new(),
        variant: String::new(),
        search: joined(old_lines(lines), "\n"),
        replace: joined(new_lines(lines), "\n"),
        patch: Some(prefixed(lines)),
        files: None,
    }
}

/// A damage of `damage.rs` by its name.
pub(super) fn known(name: &str, hunk: &Hunk) -> Option<Case> {
    damage::cases(hunk).into_iter().find(|case| case.damage == name)
}

/// Changes lines of the old side and of the context; `None` where no line changed.
fn rewritten(hunk: &Hunk, mut change: impl FnMut(&Line) -> String) -> Option<Case> {
    let lines: Vec<Line> = hunk.lines.iter().map(|line| Line::new(line.kind, change(line))).collect();
    (lines != hunk.lines).then(|| case_of(&lines))
}

/// Tidied or crammed: blanks around brackets, after commas, around operators.
fn blanks_within(hunk: &Hunk, dice: &mut Dice) -> Option<Case> {
    let way = dice.below(3);
    let change = |line: &Line| {
        let (indent, rest) = split(&line.text);
        if line.kind == Kind::New || rest.contains(['\'', '`', '/', '#', '*', '\\']) {
            return line.text.clone();
        }
        // Strings are left alone: every other part between double quotes.
        let parts = rest.split('"').enumerate().map(|(at, part)| match (at % 2, way) {
            (1, _) => part.to_owned(),
            (_, 0) => part.replace(", ", ",").replace(": ", ":"),
            (_, 1) => part.replace(" = ", "=").replace("{ ", "{").replace(" }", "}"),
            _ => part.replace(" = ", "  = ").replace(" {", "  {"),
        });
        format!("{indent}{}", parts.collect::<Vec<_>>().join("\""))
    };
    // A changed line that differs from what comes by its blanks alone is another matter.
    rewritten(hunk, change)
}

/// Two letters of a word changed places in a line that goes; the word isn't used in the file so.
fn typo(hunk: &Hunk, dice: &mut Dice) -> Option<Case> {
    if hunk.lines.len() < 4 {
        return None;
    }
    let at: Vec<usize> = (0..hunk.lines.len())
        .filter(|at| hunk.lines.get(*at).is_some_and(|line| line.kind == Kind::Old))
        .collect();
    let at = *dice.pick(&at)?;
    let text = &hunk.lines.get(at)?.text;
    let word = text.split(|c: char| !c.is_ascii_alphabetic()).find(|word| word.len() >= 6)?;
    let (head, tail) = word.split_at(2 + dice.below(word.len() - 4));
    let mut chars = tail.chars();
    let (one, two) = (chars.next()?, chars.next()?);
    let wrong = format!("{head}{two}{one}{}", chars.as_str());
    let unknown = !hunk.file.iter().any(|line| line.contains(&wrong))
        && !hunk.lines.iter().any(|line| line.text.contains(&wrong));
    if one == two || !unknown {
        return None;
    }
    let mut lines = hunk.lines.clone();
    lines.get_mut(at)?.text = text.replacen(word, &wrong, 1);
    Some(case_of(&lines))
}

/// Inner lines of context that have context on both sides, of a hunk that is long enough to be
/// known.
fn inner_context(hunk: &Hunk) -> Vec<usize> {
    let common = |at: usize| hunk.lines.get(at).is_some_and(|line| line.kind == Kind::Common);
    let filled = |at: usize| hunk.lines.get(at).is_some_and(|line| line.text.trim().len() >= 4);
    if old_lines(&hunk.lines).count() < 5 {
        return Vec::new();
    }
    (1..hunk.lines.len())
        .filter(|at| common(at - 1) && common(*at) && common(at + 1) && filled(*at))
        .collect()
}

fn context_less(hunk: &Hunk, dice: &mut Dice) -> Option<Case> {
    let hunk = hunk.wider(2, 2);
    let mut lines = hunk.lines.clone();
    lines.remove(*dice.pick(&inner_context(&hunk))?);
    Some(case_of(&lines))
}

/// A line of context that the file doesn't have there.
fn context_more(hunk: &Hunk, dice: &mut Dice) -> Option<Case> {
    let hunk = hunk.wider(2, 2);
    let at = *dice.pick(&inner_context(&hunk))?;
    let mut lines = hunk.lines.clone();
    let indent = split(&lines.get(at)?.text).0.to_owned();
    let text = ["log(\"reached\")", "self.check_state()", "assert ready"].get(dice.below(3))?;
    lines.insert(at, Line::new(Kind::Common, format!("{indent}{text}")));
    Some(case_of(&lines))
}

/// A name in a line of context is an older one.
fn context_stale(hunk: &Hunk, dice: &mut Dice) -> Option<Case> {
    let hunk = hunk.wider(2, 2);
    let at = *dice.pick(&inner_context(&hunk))?;
    let mut lines = hunk.lines.clone();
    let line = lines.get_mut(at)?;
    let word = damage::longest_word(&line.text).to_owned();
    if word.len() < 4 {
        return None;
    }
    line.text = line.text.replacen(&word, &format!("old_{word}"), 1);
    Some(case_of(&lines))
}

/// Four blanks a level where the file has two, or the other way.
fn other_unit(hunk: &Hunk, _: &mut Dice) -> Option<Case> {
    let unit = unit(hunk);
    let other = match unit.as_str() {
        "  " => "    ",
        "    " => "  ",
        _ => return None,
    };
    let indents = || hunk.lines.iter().map(|line| split(&line.text)).filter(|(_, rest)| !rest.is_empty());
    let even = |(indent, _): (&str, &str)| {
        indent.bytes().all(|byte| byte == b' ') && indent.len().is_multiple_of(unit.len())
    };
    let depths: std::collections::BTreeSet<usize> = indents().map(|(indent, _)| indent.len()).collect();
    let blanks = hunk.lines.iter().any(|line| line.text.trim().is_empty() && !line.text.is_empty());
    if !indents().all(even) || depths.len() < 2 || blanks {
        return None;
    }
    let lines: Vec<Line> = damage::mapped(&hunk.lines, |text| {
        let (indent, rest) = split(text);
        format!("{}{rest}", other.repeat(indent.len() / unit.len()))
    });
    Some(case_of(&lines))
}

/// The same, with the least indentation taken off all lines.
fn other_unit_flush(hunk: &Hunk, dice: &mut Dice) -> Option<Case> {
    other_unit(hunk, dice)?;
    let filled = || hunk.lines.iter().filter(|line| !line.text.trim().is_empty());
    let least = filled().map(|line| split(&line.text).0.len()).min()?;
    let lines = damage::mapped(&hunk.lines, |text| text.get(least..).unwrap_or_default().to_owned());
    let flush = Hunk { lines, ..hunk.clone() };
    if least == 0 {
        return None;
    }
    other_unit(&flush, dice)
}

/// A call or a list that the file has on several lines stands on one: two lines of context.
fn lines_joined(hunk: &Hunk, dice: &mut Dice) -> Option<Case> {
    let hunk = hunk.wider(2, 2);
    let common = |at: usize| hunk.lines.get(at).filter(|line| line.kind == Kind::Common);
    let opens = |at: &usize| {
        let (Some(line), Some(next)) = (common(*at), common(at + 1)) else { return false };
        line.text.ends_with(['(', ',', '[']) && next.text.trim().len() >= 3
    };
    let at: Vec<usize> = (0..hunk.lines.len()).filter(opens).collect();
    let at = *dice.pick(&at)?;
    let mut lines = hunk.lines.clone();
    let next = lines.remove(at + 1);
    let line = lines.get_mut(at)?;
    let blank = if line.text.ends_with(',') { " " } else { "" };
    line.text = format!("{}{blank}{}", line.text, next.text.trim_start());
    Some(case_of(&lines))
}
