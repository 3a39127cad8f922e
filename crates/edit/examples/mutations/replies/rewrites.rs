//! Replies that write a file anew: all of it, or with remarks where it stays.

use journeyman_edit::Format;
use similar::{Algorithm, capture_diff_slices};

use super::{Change, Class, Reply, class};
use crate::damage::split;
use crate::hunk::{Dice, Kind, closed};

/// Files with more lines are never sent whole.
const LARGEST: usize = 500;
/// Lines of context beside a change in a lazy rewrite.
const WINDOW: usize = 3;
/// A definition with more lines isn't shown whole.
const UNIT: usize = 60;

const REMARKS: [&str; 10] = [
    "... existing code ...",
    "... rest of the file remains unchanged ...",
    "... (rest of the code unchanged)",
    "... [rest of the file content remains the same]",
    "... other code ...",
    "...",
    "rest of the code remains the same",
    "... unchanged ...",
    "(existing code)",
    "... previous code here ...",
];

pub(super) fn all() -> Vec<Class> {
    let mut all = whole();
    all.extend(lazy());
    all
}

/// Without changes that are nothing but blanks at the ends of lines or of the file, which an engine
/// may hold to be none.
fn plainly(change: &Change) -> bool {
    let blank_end = |text: &str| text.ends_with("\n\n");
    let trailing = change
        .hunks
        .iter()
        .flat_map(|hunk| &hunk.lines)
        .any(|line| line.kind != Kind::Common && line.text.ends_with([' ', '\t']));
    !trailing && blank_end(&change.before()) == blank_end(&change.after())
}

/// The whole file, somehow wrapped.
fn wholly(change: &Change, write: impl Fn(&str, &str, &str) -> String) -> Option<Reply> {
    let after = change.after();
    let fits = plainly(change)
        && change.file().len() <= LARGEST
        && !after.contains("```")
        && !after.trim().is_empty();
    fits.then(|| Reply::new(change, Format::Whole, write(&change.path, change.extension(), &after)))
}

fn whole() -> Vec<Class> {
    vec![
        class("name above", |change, _| {
            wholly(change, |path, lang, text| format!("{path}\n```{lang}\n{text}```\n"))
        }),
        class("name in bold, prose around", |change, _| {
            wholly(change, |path, lang, text| {
                format!(
                    "I've made the change.\n\n**{path}**\n\n```{lang}\n{text}```\n\nThis keeps the rest as it was.\n"
                )
            })
        }),
        class("name in prose", |change, _| {
            wholly(change, |path, lang, text| {
                format!("Here's the updated `{path}`:\n\n```{lang}\n{text}```\n")
            })
        }),
        class("name in a heading", |change, _| {
            wholly(change, |path, lang, text| format!("### {path}\n```{lang}\n{text}```\n"))
        }),
        class("name on the fence", |change, _| {
            wholly(change, |path, lang, text| format!("```{lang}:{path}\n{text}```\n"))
        }),
        class("name as a comment", |change, _| {
            let reply = wholly(change, |_, lang, text| format!("```{lang}\n{text}```\n"))?;
            Some(reply.aimed_at(&change.path))
        }),
        class("fence left open", |change, _| {
            wholly(change, |path, lang, text| format!("{path}\n```{lang}\n{text}"))
        }),
        class("tildes", |change, _| {
            wholly(change, |path, lang, text| format!("{path}\n~~~{lang}\n{text}~~~\n"))
        }),
        class("format not named", |change, _| {
            let reply = wholly(change, |path, lang, text| format!("{path}\n\n```{lang}\n{text}```\n"))?;
            Some(Reply { format: None, ..reply })
        }),
        class("two files", |change, _| {
            let mut reply = wholly(change, |path, lang, text| {
                format!(
                    "First the code in `{path}`:\n\n```{lang}\n{text}```\n\nAnd the notes in `notes/added.md`:\n\n```markdown\n# Notes\n\nAdded.\n```\n"
                )
            })?;
            reply.after.as_mut()?.insert("notes/added.md".to_owned(), "# Notes\n\nAdded.\n".to_owned());
            Some(reply)
        }),
        class("a file with fences", |change, _| {
            let after = change.after();
            let text = format!("{0}\n````{1}\n{after}````\n", change.path, change.extension());
            (plainly(change)
                && after.contains("```")
                && !after.contains("````")
                && change.file().len() <= LARGEST)
                .then(|| Reply::new(change, Format::Whole, text))
        }),
        class("refuse: cut off", |change, dice| {
            let reply = wholly(change, |path, lang, text| format!("{path}\n```{lang}\n{text}"))?;
            let half = reply.text.len() / 2;
            let mut cut = half + dice.below(half.saturating_sub(2));
            while !reply.text.is_char_boundary(cut) {
                cut -= 1;
            }
            Some(Reply { text: reply.text.get(..cut)?.to_owned(), cut_off: true, ..reply }.refused())
        }),
        class("refuse: a snippet found unnamed", |change, _| {
            let hunk = change.hunks.first()?;
            let text = closed(crate::hunk::new_lines(&hunk.lines));
            let text = format!("{}\n```{}\n{text}```\n", change.path, change.extension());
            let reply = Reply::new(change, Format::Whole, text);
            let short = hunk.lines.len() * 4 < change.file().len() && hunk.lines.len() > 2;
            (short && !change.after().contains("```")).then(|| Reply { format: None, ..reply }.refused())
        }),
        class("refuse: two blocks without a name", |change, _| {
            let mut reply = wholly(change, |_, lang, text| format!("```{lang}\n{text}```\n"))?;
            reply.text.push_str("\nor\n\n```\nsomething else\nof two lines\n```\n");
            Some(reply.refused())
        }),
    ]
}

fn lazy() -> Vec<Class> {
    vec![
        class("windows with remarks", |change, dice| lazily(change, windows(change), dice)),
        class("definitions with remarks", |change, dice| lazily(change, definitions(change)?, dice)),
        class("definitions, as whole", |change, dice| {
            let reply = lazily(change, definitions(change)?, dice)?;
            Some(Reply { format: Some(Format::Whole), ..reply })
        }),
        class("definitions, format not named", |change, dice| {
            let reply = lazily(change, definitions(change)?, dice)?;
            Some(Reply { format: None, ..reply })
        }),
        class("bare, no fence", |change, dice| {
            let reply = lazily(change, definitions(change)?, dice)?;
            let bare = reply.text.split_once("```")?.1.split_once('\n')?.1.strip_suffix("```\n")?.to_owned();
            Some(Reply { text: bare, ..reply }.aimed_at(&change.path))
        }),
        class("remark above only", |change, dice| {
            let last = change.file().len().saturating_sub(change.hunks.last()?.end()) < 12;
            let mut shown = windows(change);
            let first = shown.iter().position(|shown| *shown)?;
            for shown in shown.iter_mut().skip(first) {
                *shown = true;
            }
            if !last {
                return None;
            }
            lazily(change, shown, dice)
        }),
        class("refuse: a remark in a new file", |change, dice| {
            let mut reply = lazily(change, windows(change), dice)?;
            reply.before.remove(&change.path);
            Some(reply.refused())
        }),
        class("refuse: cut off", |change, dice| {
            let reply = lazily(change, windows(change), dice)?;
            let half = reply.text.len() / 2;
            let mut cut = half + dice.below(half.saturating_sub(4));
            while !reply.text.is_char_boundary(cut) {
                cut -= 1;
            }
            Some(Reply { text: reply.text.get(..cut)?.to_owned(), cut_off: true, ..reply }.refused())
        }),
    ]
}

/// The lines afterwards that a rewrite shows: each change with some lines of context that aren't
/// blank.
fn windows(change: &Change) -> Vec<bool> {
    let lines = change.after_lines();
    let mut shown: Vec<bool> = lines.iter().map(|(_, shown)| *shown).collect();
    for (at, (_, is_hunk)) in lines.iter().enumerate() {
        if !is_hunk {
            continue;
        }
        for below in [true, false] {
            let mut filled = 0;
            let mut near = at;
            while filled < WINDOW {
                let next = if below {
                    near.checked_add(1).filter(|next| *next < lines.len())
                } else {
                    near.checked_sub(1)
                };
                let Some(next) = next else { break };
                near = next;
                filled += usize::from(lines.get(near).is_some_and(|(text, _)| !text.trim().is_empty()));
                if let Some(shown) = shown.get_mut(near) {
                    *shown = true;
                }
            }
        }
    }
    shown
}

/// Each change with the definition around it, and the headers and ends of those around that, by
/// indentation.
fn definitions(change: &Change) -> Option<Vec<bool>> {
    let lines: Vec<(String, bool)> = change.after_lines();
    let depth = |at: usize| {
        lines.get(at).filter(|(text, _)| !text.trim().is_empty()).map(|(text, _)| split(text).0.len())
    };
    let mut shown: Vec<bool> = lines.iter().map(|(_, shown)| *shown).collect();
    let mut at = 0;
    let spans: Vec<(usize, usize)> = std::iter::from_fn(|| {
        let from = at + shown.iter().skip(at).position(|shown| *shown)?;
        let end = from + shown.iter().skip(from).take_while(|shown| **shown).count();
        at = end;
        Some((from, end))
    })
    .collect();
    for (from, end) in spans {
        let mut least = (from..end).filter_map(depth).min()?;
        let (mut top, mut bottom) = (from, end.checked_sub(1)?);
        let mut unit = false;
        while least > 0 {
            let head = (0..top).rev().find(|at| depth(*at).is_some_and(|depth| depth < least))?;
            let level = depth(head)?;
            let foot = (bottom + 1..lines.len()).find(|at| depth(*at).is_some_and(|depth| depth <= level))?;
            let closes = lines
                .get(foot)
                .is_some_and(|(text, _)| text.trim().starts_with(['}', ']', ')']) || text.trim() == "end");
            let foot = if closes && depth(foot) == Some(level) { foot } else { foot - 1 };
            if !unit && foot - head <= UNIT {
                shown.get_mut(head..=foot)?.fill(true);
            } else {
                *shown.get_mut(head)? = true;
                if closes {
                    *shown.get_mut(foot)? = true;
                }
            }
            unit = true;
            (top, bottom, least) = (head, foot, level);
        }
        // A change outside of all definitions shows its neighbours.
        if !unit {
            let all = &mut shown;
            for (at, shown) in windows(change).into_iter().enumerate() {
                if shown && at + WINDOW + 2 >= from && at <= end + WINDOW + 1 {
                    *all.get_mut(at)? = true;
                }
            }
        }
    }
    Some(shown)
}

/// Returns true if a line is shown above and below each place where more lines go than come: a
/// remark right beside one may stand for what goes.
fn tells_removals(change: &Change, shown: &[bool]) -> bool {
    let lines = change.after_lines();
    let new: Vec<&str> = lines.iter().map(|(text, _)| text.as_str()).collect();
    let old: Vec<&str> = change.file().iter().map(String::as_str).collect();
    let is_told = |at: Option<usize>| at.is_none_or(|at| shown.get(at).is_some_and(|shown| *shown));
    let filled = |at: &usize| new.get(*at).is_some_and(|text| !text.trim().is_empty());
    capture_diff_slices(Algorithm::Patience, &old, &new).iter().all(|op| {
        let come = op.new_range();
        op.old_range().len() <= come.len()
            || (is_told((0..come.start).rfind(filled)) && is_told((come.end..new.len()).find(filled)))
    })
}

/// The rewrite: what isn't shown is a remark.
fn lazily(change: &Change, shown: Vec<bool>, dice: &mut Dice) -> Option<Reply> {
    let lines = change.after_lines();
    let words = *dice.pick(&REMARKS)?;
    let (open, close) = match change.extension() {
        "py" | "rb" | "sh" | "yml" | "yaml" | "toml" => ("# ", ""),
        "html" | "md" | "xml" | "svelte" | "vue" => ("<!-- ", " -->"),
        "css" => ("/* ", " */"),
        "lua" | "sql" => ("-- ", ""),
        _ => ("// ", ""),
    };
    let mut text = String::new();
    let mut at = 0;
    let mut hidden = 0;
    while at < lines.len() {
        if *shown.get(at)? {
            text.push_str(&lines.get(at)?.0);
            text.push('\n');
            at += 1;
            continue;
        }
        let gap = shown.iter().skip(at).take_while(|shown| !**shown).count();
        let filled: Vec<&str> = lines
            .get(at..at + gap)?
            .iter()
            .map(|(text, _)| text.as_str())
            .filter(|text| !text.trim().is_empty())
            .collect();
        let blank = |at: usize| lines.get(at).is_some_and(|(text, _)| text.trim().is_empty());
        if filled.len() < 3 {
            // Nobody leaves out so little.
            text.push_str(&closed(lines.get(at..at + gap)?.iter().map(|(text, _)| text.as_str())));
        } else {
            let least = filled.iter().map(|text| split(text).0).min_by_key(|indent| indent.len())?;
            let edge = |is: bool| if is { "\n" } else { "" };
            text.push_str(&format!(
                "{}{least}{open}{words}{close}\n{}",
                edge(blank(at)),
                edge(blank(at + gap - 1))
            ));
            hidden += filled.len();
        }
        at += gap;
    }
    let fits = plainly(change)
        && tells_removals(change, &shown)
        && hidden >= 6
        && !text.contains("```")
        && change.hunks.iter().any(|hunk| !hunk.lines.is_empty());
    let text = format!("{}\n```{}\n{text}```\n", change.path, change.extension());
    fits.then(|| Reply::new(change, Format::Lazy, text))
}
