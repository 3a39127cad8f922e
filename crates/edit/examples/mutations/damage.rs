//! The ways in which models damage what they quote.
//!
//! Each gives the hunk as the model would send it. What is right afterwards is the same for all of
//! them: the commit's own bytes or a refusal. A damage that a hunk doesn't offer (no comment to
//! reword, no blank line to drop) gives nothing.

use crate::hunk::{Case, Dice, Hunk, Kind, Line, closed, joined, new_lines, old_lines, prefixed};

/// How far a comment or a blank line is looked for around a change, in lines.
const REACH: usize = 6;
/// How many lines are quoted beside a change before some of them are left out.
const LONG_CONTEXT: usize = 8;

type Way = fn(&Hunk, &mut Dice) -> Option<Damaged>;

/// All of them, in the order of the table; the first is none.
pub(crate) const WAYS: [(&str, Way); 15] = [
    ("none", none),
    ("indent shifted", indent),
    ("tabs for spaces", tabs),
    ("trailing blanks", trailing),
    ("comment reworded", comment),
    ("blank line dropped", blank),
    ("quotes curled", quotes),
    ("context line stale", stale),
    ("elision", elision),
    ("escape doubling", escapes),
    ("line numbers", numbers),
    ("markdown fence", fence),
    ("CRLF", crlf),
    ("block duplicated", duplicate),
    ("tail truncated", truncated),
];

/// A hunk as a model sends it.
pub(crate) struct Damaged {
    variant: &'static str,
    search: String,
    replace: String,
    patch: Option<Vec<Line>>,
    files: Option<(String, String)>,
}

impl Damaged {
    /// Both sides damaged alike, line by line.
    fn lines(variant: &'static str, lines: Vec<Line>) -> Self {
        Self {
            variant,
            search: joined(old_lines(&lines), "\n"),
            replace: joined(new_lines(&lines), "\n"),
            patch: Some(lines),
            files: None,
        }
    }

    /// What no patch can say.
    fn texts(variant: &'static str, search: String, replace: String) -> Self {
        Self { variant, search, replace, patch: None, files: None }
    }
}

/// Every damage that a hunk offers.
pub(crate) fn cases(hunk: &Hunk) -> Vec<Case> {
    let plain = joined(old_lines(&hunk.lines), "\n");
    let before = hunk.before();
    let of = |(name, way): &(&str, Way)| -> Option<Case> {
        let damaged = way(hunk, &mut hunk.dice(name))?;
        let hurt = damaged.search != plain || damaged.files.is_some() || *name == "none";
        let lost = matches!(*name, "indent shifted" | "tabs for spaces")
            && (loses_depth(hunk, &damaged) || loses_new_blanks(hunk, &damaged));
        // Text that by chance is another place's, letter by letter, means that place.
        let misleads =
            damaged.files.is_none() && *name != "none" && elsewhere(hunk, &before, &damaged.search);
        (hurt && !lost && !misleads && damaged.search != damaged.replace && !damaged.search.trim().is_empty())
            .then(|| Case {
                damage: (*name).to_owned(),
                variant: damaged.variant.to_owned(),
                search: damaged.search,
                replace: damaged.replace,
                patch: damaged.patch.map(|lines| prefixed(&lines)),
                files: damaged.files,
            })
    };
    WAYS.iter().filter_map(of).collect()
}

/// Whether lines of different indentation have one and the same after the damage, so that nobody
/// could tell them apart.
fn loses_depth(hunk: &Hunk, damaged: &Damaged) -> bool {
    let mut depths: std::collections::BTreeMap<&str, &str> = std::collections::BTreeMap::new();
    let lines = hunk.lines.iter().zip(damaged.patch.iter().flatten());
    let mut filled = lines.filter(|(own, _)| !own.text.trim().is_empty());
    damaged.variant != "first line flush left"
        && filled.any(|(own, hurt)| {
            let (own, hurt) = (split(&own.text).0, split(&hurt.text).0);
            *depths.entry(hurt).or_insert(own) != own
        })
}

/// Whether a new line of nothing but blanks has none after the damage: the file doesn't have them,
/// so that nobody could put them back.
fn loses_new_blanks(hunk: &Hunk, damaged: &Damaged) -> bool {
    let mut lines = hunk.lines.iter().zip(damaged.patch.iter().flatten());
    lines.any(|(own, hurt)| {
        own.kind == Kind::New && own.text.trim().is_empty() && !own.text.is_empty() && hurt.text.is_empty()
    })
}

/// Whether the text is in the file once, or once as whole lines, and not where the hunk is. A
/// format of lines means whole lines: with less indentation than its own the text may be a part of
/// the hunk's line and all of another.
fn elsewhere(hunk: &Hunk, before: &str, search: &str) -> bool {
    let from: usize = hunk.file.iter().take(hunk.first).map(|line| line.len() + 1).sum();
    let span = old_lines(&hunk.lines).next().map_or(0, |line| line.len() + 1);
    let is_other = |at: usize| !(from..from + span).contains(&at);
    let whole = |at: &usize| {
        let opens = *at == 0 || before.as_bytes().get(at - 1) == Some(&b'\n');
        opens && before.as_bytes().get(at + search.len()).is_none_or(|next| *next == b'\n')
    };
    let only = |mut places: Box<dyn Iterator<Item = usize> + '_>| match (places.next(), places.next()) {
        (Some(only), None) => is_other(only),
        _ => false,
    };
    let places = || before.match_indices(search).map(|(at, _)| at);
    only(Box::new(places())) || only(Box::new(places().filter(whole)))
}

pub(crate) fn mapped(lines: &[Line], mut change: impl FnMut(&str) -> String) -> Vec<Line> {
    lines.iter().map(|line| Line { kind: line.kind, text: change(&line.text) }).collect()
}

pub(crate) fn split(line: &str) -> (&str, &str) {
    line.split_at(line.len() - line.trim_start().len())
}

fn none(hunk: &Hunk, _: &mut Dice) -> Option<Damaged> {
    Some(Damaged::lines("", hunk.lines.clone()))
}

/// All lines a level out, a level in or flush left; or the first line alone flush left, copied from
/// its middle.
fn indent(hunk: &Hunk, dice: &mut Dice) -> Option<Damaged> {
    let filled = || hunk.lines.iter().filter(|line| !line.text.trim().is_empty());
    let common = filled().map(|line| split(&line.text).0).reduce(|one, other| {
        let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
        one.get(..same).unwrap_or_default()
    })?;
    let unit = unit(hunk);
    let less = common.strip_suffix(&unit);
    let without = |cut: usize| {
        mapped(&hunk.lines, |text| {
            text.get(cut..).filter(|_| !text.trim().is_empty()).unwrap_or_default().to_owned()
        })
    };
    let more = || {
        mapped(
            &hunk.lines,
            |text| if text.trim().is_empty() { text.to_owned() } else { format!("{unit}{text}") },
        )
    };
    let mut ways = vec![Damaged::lines("one level in", more())];
    if !common.is_empty() {
        ways.push(Damaged::lines("flush left", without(common.len())));
    }
    if let Some(less) = less.filter(|less| !less.is_empty()) {
        ways.push(Damaged::lines("one level out", without(common.len() - less.len())));
    }
    ways.extend(first_line_out(hunk));
    let way = dice.below(ways.len());
    ways.into_iter().nth(way)
}

/// The first line without its indentation, on both sides; where the edit changes that itself,
/// nobody could tell.
fn first_line_out(hunk: &Hunk) -> Option<Damaged> {
    let first = |without: Kind| hunk.lines.iter().position(|line| line.kind != without);
    let firsts = [first(Kind::New)?, first(Kind::Old)?];
    let [old, new] = firsts.map(|at| hunk.lines.get(at));
    let (old, new) = (old?, new?);
    let (gone, rest) = split(&old.text);
    // Both sides begin with one line, or with one line and what it becomes.
    let together = firsts == [0, 0] || (old.kind == Kind::Old && new.kind == Kind::New);
    if gone.is_empty() || rest.is_empty() || split(&new.text).0 != gone || !together {
        return None;
    }
    let lines = hunk.lines.iter().enumerate().map(|(at, line)| {
        let text = if firsts.contains(&at) { line.text.trim_start() } else { &line.text };
        Line::new(line.kind, text)
    });
    Some(Damaged::lines("first line flush left", lines.collect()))
}

/// One level of the file's indentation.
pub(crate) fn unit(hunk: &Hunk) -> String {
    let indents = || hunk.file.iter().filter(|line| !line.trim().is_empty()).map(|line| split(line).0);
    if indents().filter(|indent| indent.starts_with('\t')).count() * 2
        > indents().filter(|indent| !indent.is_empty()).count()
    {
        return "\t".to_owned();
    }
    let widths: Vec<usize> = indents().map(str::len).collect();
    let steps = widths.windows(2).filter_map(|pair| pair.last()?.checked_sub(*pair.first()?));
    let steps: Vec<usize> = steps.collect();
    let commonest =
        [2, 4, 8].into_iter().max_by_key(|unit| steps.iter().filter(|step| *step == unit).count());
    " ".repeat(commonest.unwrap_or(4))
}

/// The file's tabs written as spaces, or its spaces as tabs.
fn tabs(hunk: &Hunk, dice: &mut Dice) -> Option<Damaged> {
    let unit = unit(hunk);
    if unit == "\t" {
        let spaces = " ".repeat(if dice.below(4) == 0 { 2 } else { 4 });
        let lines = mapped(&hunk.lines, |text| {
            let (indent, rest) = split(text);
            format!("{}{rest}", indent.replace('\t', &spaces))
        });
        return Some(Damaged::lines("spaces for tabs", lines));
    }
    let lines = mapped(&hunk.lines, |text| {
        let (indent, rest) = split(text);
        format!("{}{rest}", indent.replace(&unit, "\t"))
    });
    Some(Damaged::lines("tabs for spaces", lines))
}

/// Blanks at the ends of quoted lines, or the file's own left away.
fn trailing(hunk: &Hunk, dice: &mut Dice) -> Option<Damaged> {
    // Of two blank lines nobody could tell which was the one with blanks.
    let stripped = hunk.lines.iter().map(|line| match line.kind {
        Kind::New => line.clone(),
        _ if line.text.trim().is_empty() => line.clone(),
        kind => Line::new(kind, line.text.trim_end()),
    });
    let stripped: Vec<Line> = stripped.collect();
    if stripped != hunk.lines {
        return Some(Damaged::lines("left away", stripped));
    }
    let blanks = *dice.pick(&[" ", "  ", "\t", "    "])?;
    let always = dice.below(old_lines(&hunk.lines).count());
    let mut nth = 0;
    let lines = hunk.lines.iter().map(|line| {
        if line.kind == Kind::New {
            return line.clone();
        }
        nth += 1;
        let added = if nth == always + 1 || dice.below(2) == 0 { blanks } else { "" };
        Line::new(line.kind, format!("{}{added}", line.text))
    });
    Some(Damaged::lines("added", lines.collect()))
}

/// Where a comment begins in a line that is nothing else.
pub(crate) fn remark<'a>(hunk: &Hunk, text: &'a str) -> Option<(&'a str, &'a str)> {
    let openers: &[&str] = match hunk.extension() {
        "py" => &["# "],
        _ => &["/// ", "//! ", "// ", "/* ", "/** ", "* "],
    };
    let (_, rest) = split(text);
    let opener = openers.iter().find(|opener| rest.starts_with(**opener))?;
    let at = text.len() - rest.len() + opener.len();
    let (head, words) = text.split_at(at);
    (words.split_whitespace().filter(|word| word.chars().all(char::is_alphabetic)).count() >= 4)
        .then_some((head, words))
}

/// A comment near the change in other words; the change leaves it alone.
fn comment(hunk: &Hunk, dice: &mut Dice) -> Option<Damaged> {
    let (wide, at) = (0..=REACH).find_map(|around| {
        let wide = hunk.wider(around, around);
        let found = |line: &Line| line.kind == Kind::Common && remark(&wide, &line.text).is_some();
        let at: Vec<usize> =
            wide.lines.iter().enumerate().filter(|(_, line)| found(line)).map(|(at, _)| at).collect();
        dice.pick(&at).copied().map(|at| (wide, at))
    })?;
    let mut lines = wide.lines.clone();
    let line = lines.get_mut(at)?;
    let (head, words) = remark(&wide, &line.text)?;
    let mut words: Vec<&str> = words.split(' ').collect();
    let plain = |word: &&str| word.len() > 1 && word.chars().all(char::is_alphabetic);
    let places: Vec<usize> =
        words.iter().enumerate().filter(|(_, word)| plain(word)).map(|(at, _)| at).collect();
    let place = *dice.pick(&places)?;
    let variant = match dice.below(3) {
        0 => {
            words.remove(place);
            "a word less"
        }
        1 => {
            words.insert(place, "usually");
            "a word more"
        }
        _ => {
            *words.get_mut(place)? = "something";
            "another word"
        }
    };
    line.text = format!("{head}{}", words.join(" "));
    Some(Damaged::lines(variant, lines))
}

/// A blank line between quoted lines is gone, where that leaves no doubt of where the change
/// belongs.
fn blank(hunk: &Hunk, dice: &mut Dice) -> Option<Damaged> {
    let (wide, at) = (0..=REACH).find_map(|around| {
        let wide = hunk.wider(around, around);
        let lines = &wide.lines;
        let inner = 1..lines.len().saturating_sub(1);
        let is_blank = |line: &Line| line.kind == Kind::Common && line.text.trim().is_empty();
        let is_drop = |at: &usize| {
            let (before, after) = lines.split_at(*at);
            // Of blank lines beside lines that come nobody could tell on which side one more is
            // missing.
            let first = at - before.iter().rev().take_while(|line| is_blank(line)).count();
            let end = at + after.iter().take_while(|line| is_blank(line)).count();
            let both = [first.checked_sub(1), Some(end)];
            lines.get(*at).is_some_and(is_blank)
                && both.into_iter().flatten().all(|beside| !is_inserted(lines, beside))
        };
        let at: Vec<usize> = inner.filter(is_drop).collect();
        dice.pick(&at).copied().map(|at| (wide, at))
    })?;
    let mut lines = wide.lines;
    lines.remove(at);
    Some(Damaged::lines("", lines))
}

/// Whether a line belongs to lines that only come, in place of none.
fn is_inserted(lines: &[Line], at: usize) -> bool {
    let changed = |line: &&Line| line.kind != Kind::Common;
    let (before, after) = lines.split_at(at.min(lines.len()));
    let mut run = before.iter().rev().take_while(changed).chain(after.iter().take_while(changed));
    lines.get(at).is_some_and(|line| line.kind == Kind::New) && run.all(|line| line.kind == Kind::New)
}

/// Typographic quotes, in what is quoted or also in the new lines.
fn quotes(hunk: &Hunk, dice: &mut Dice) -> Option<Damaged> {
    let also_new = dice.below(2) == 0;
    if hunk.lines.iter().any(|line| line.text.contains(['‘', '’', '“', '”'])) {
        return None;
    }
    let lines = hunk.lines.iter().map(|line| match line.kind {
        Kind::New if !also_new => line.clone(),
        kind => Line::new(kind, curl(&line.text)),
    });
    Some(Damaged::lines(if also_new { "old and new" } else { "old" }, lines.collect()))
}

fn curl(text: &str) -> String {
    let (mut single, mut double) = (false, false);
    let curled = text.chars().map(|c| match c {
        '\'' => {
            single = !single;
            if single { '‘' } else { '’' }
        }
        '"' => {
            double = !double;
            if double { '“' } else { '”' }
        }
        other => other,
    });
    curled.collect()
}

/// A context line as it may have been in an older version.
fn stale(hunk: &Hunk, dice: &mut Dice) -> Option<Damaged> {
    let is_code = |line: &Line| {
        line.kind == Kind::Common && remark(hunk, &line.text).is_none() && longest_word(&line.text).len() >= 4
    };
    let at: Vec<usize> =
        hunk.lines.iter().enumerate().filter(|(_, line)| is_code(line)).map(|(at, _)| at).collect();
    let at = *dice.pick(&at)?;
    let mut lines = hunk.lines.clone();
    let line = lines.get_mut(at)?;
    let word = longest_word(&line.text).to_owned();
    let digit = line.text.chars().find(char::is_ascii_digit);
    let (variant, text) = match (dice.below(3), digit) {
        (0, Some(digit)) => {
            let other = if digit == '9' { "8" } else { "9" };
            ("another number", line.text.replacen(digit, other, 1))
        }
        (1, _) => ("another name", line.text.replacen(&word, "previous", 1)),
        _ => ("a longer name", line.text.replacen(&word, &format!("old_{word}"), 1)),
    };
    line.text = text;
    Some(Damaged::lines(variant, lines))
}

pub(crate) fn longest_word(text: &str) -> &str {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()))
        .max_by_key(|word| word.len())
        .unwrap_or("")
}

/// Lines of a long context left out, with a remark or only dots in their place.
fn elision(hunk: &Hunk, dice: &mut Dice) -> Option<Damaged> {
    let above = dice.below(2) == 0;
    let wide = if above { hunk.wider(LONG_CONTEXT, 0) } else { hunk.wider(0, LONG_CONTEXT) };
    let common = |line: &&Line| line.kind == Kind::Common;
    let mut lines = wide.lines.clone();
    if !above {
        lines.reverse();
    }
    let run = lines.iter().take_while(common).count();
    // The outermost line and the one beside the change stay.
    let most = run.checked_sub(2).filter(|most| *most >= 2)?;
    let count = 2 + dice.below(most - 1);
    let from = 1 + dice.below(most - count + 1);
    let indent = split(&lines.get(from)?.text).0.to_owned();
    let dots = if hunk.extension() == "py" {
        ["...", "# ...", "# ... existing code ..."]
    } else {
        ["...", "// ...", "// ... existing code ..."]
    };
    let dots = dots.get(dice.below(dots.len()))?;
    lines.splice(from..from + count, [Line::new(Kind::Common, format!("{indent}{dots}"))]);
    if !above {
        lines.reverse();
    }
    Some(Damaged::lines(if dots.len() < 6 { "dots" } else { "remark" }, lines))
}

/// Escaped once more than meant: as in JSON within JSON, the same for all but line breaks, or as
/// HTML.
fn escapes(hunk: &Hunk, dice: &mut Dice) -> Option<Damaged> {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let way = dice.below(3);
    if way == 0 {
        let json = |text: String| quoted(&text).replace('\n', "\\n").replace('\t', "\\t");
        let (search, replace) = (joined(old_lines(&hunk.lines), "\n"), joined(new_lines(&hunk.lines), "\n"));
        return Some(Damaged::texts("json", json(search), json(replace)));
    }
    let html = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let lines = |lines: Vec<Line>, variant| {
        (old_lines(&lines).ne(old_lines(&hunk.lines))).then(|| Damaged::lines(variant, lines))
    };
    let (as_quoted, as_html) = (mapped(&hunk.lines, quoted), mapped(&hunk.lines, html));
    if way == 1 {
        lines(as_quoted, "quotes and backslashes").or_else(|| lines(as_html, "html"))
    } else {
        lines(as_html, "html").or_else(|| lines(as_quoted, "quotes and backslashes"))
    }
}

/// Copied from a listing with line numbers.
fn numbers(hunk: &Hunk, dice: &mut Dice) -> Option<Damaged> {
    let style = dice.below(4);
    let both = dice.below(2) == 0;
    let number = |at: usize, text: &str| {
        let line = hunk.first + 1 + at;
        match style {
            0 => format!("{line:>5} | {text}"),
            1 => format!("{line}: {text}"),
            2 => format!("{line:>6}\t{text}"),
            _ => format!("{line:>5}→{text}"),
        }
    };
    let numbered = |lines: &mut dyn Iterator<Item = &str>| {
        joined(
            lines
                .enumerate()
                .map(|(at, text)| number(at, text))
                .collect::<Vec<_>>()
                .iter()
                .map(String::as_str),
            "\n",
        )
    };
    let search = numbered(&mut old_lines(&hunk.lines));
    let replace =
        if both { numbered(&mut new_lines(&hunk.lines)) } else { joined(new_lines(&hunk.lines), "\n") };
    let (mut old, mut new) = (0, 0);
    let patch = hunk.lines.iter().map(|line| {
        let text = if line.kind == Kind::New { number(new, &line.text) } else { number(old, &line.text) };
        old += usize::from(line.kind != Kind::New);
        new += usize::from(line.kind != Kind::Old);
        Line::new(line.kind, text)
    });
    let patch = both.then(|| patch.collect());
    let variant = if both { "old and new" } else { "old" };
    Some(Damaged { patch, ..Damaged::texts(variant, search, replace) })
}

/// Within a markdown fence.
fn fence(hunk: &Hunk, dice: &mut Dice) -> Option<Damaged> {
    let open = format!("```{}", hunk.extension());
    let mut lines = vec![Line::new(Kind::Common, open.clone())];
    lines.extend(hunk.lines.iter().cloned());
    lines.push(Line::new(Kind::Common, "```"));
    let both = Damaged::lines("old and new", lines);
    if dice.below(2) == 0 {
        return Some(both);
    }
    Some(Damaged::texts("old", both.search, joined(new_lines(&hunk.lines), "\n")))
}

/// The model's line breaks aren't the file's.
fn crlf(hunk: &Hunk, dice: &mut Dice) -> Option<Damaged> {
    if dice.below(2) == 0 {
        let files = (hunk.before().replace('\n', "\r\n"), hunk.after().replace('\n', "\r\n"));
        return Some(Damaged { files: Some(files), ..Damaged::lines("the file's", hunk.lines.clone()) });
    }
    let patch = Some(mapped(&hunk.lines, |text| format!("{text}\r")));
    let (search, replace) = (joined(old_lines(&hunk.lines), "\r\n"), joined(new_lines(&hunk.lines), "\r\n"));
    // A quote of one line has no line break to get wrong.
    search.contains('\n').then(|| Damaged { patch, ..Damaged::texts("the model's", search, replace) })
}

/// The quoted lines stand in the file twice: nobody can know which are meant.
fn duplicate(hunk: &Hunk, dice: &mut Dice) -> Option<Damaged> {
    let copy = closed(old_lines(&hunk.lines));
    let with =
        |text: String, first: bool| if first { format!("{copy}{text}") } else { format!("{text}{copy}") };
    let first = dice.below(2) == 0;
    let files = (with(hunk.before(), first), with(hunk.after(), first));
    let variant = if first { "copy above" } else { "copy below" };
    Some(Damaged { files: Some(files), ..Damaged::lines(variant, hunk.lines.clone()) })
}

/// The quote ends too early: within a line on both sides, or on the old side alone, within a line
/// or lines before.
fn truncated(hunk: &Hunk, dice: &mut Dice) -> Option<Damaged> {
    let wide = if hunk.lines.last()?.kind == Kind::Common { hunk.clone() } else { hunk.wider(0, 2) };
    let mut lines = wide.lines.clone();
    let way = dice.below(3);
    if way == 0 {
        let run = lines.iter().rev().take_while(|line| line.kind == Kind::Common).count();
        let count = 1 + dice.below(run.min(2));
        let replace = joined(new_lines(&lines), "\n");
        lines.truncate(lines.len() - count);
        // One blank line in place of lines that end with it, and without it, is none.
        if replace.is_empty() {
            return None;
        }
        return Some(Damaged::texts("old, whole lines", joined(old_lines(&lines), "\n"), replace));
    }
    let last = lines.pop().filter(|line| line.kind == Kind::Common && line.text.trim().len() >= 6)?;
    let (indent, rest) = split(&last.text);
    let chars = rest.chars().count();
    let kept: String = rest.chars().take(chars / 3 + dice.below(chars / 2)).collect();
    let cut = format!("{indent}{}", kept.trim_end());
    if way == 1 {
        lines.push(Line::new(Kind::Common, cut));
        return Some(Damaged::lines("old and new, within a line", lines));
    }
    let replace = joined(new_lines(&lines).chain([last.text.as_str()]), "\n");
    let search = joined(old_lines(&lines).chain([cut.as_str()]), "\n");
    Some(Damaged::texts("old, within a line", search, replace))
}
