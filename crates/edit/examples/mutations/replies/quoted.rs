//! Replies that quote a part of a file: SEARCH/REPLACE in its dialects, V4A patches, unified diffs.

use journeyman_edit::Format;
use serde_json::json;

use super::slips::{KNOWN, OWN, case_of, known};
use super::{Change, Class, Reply, class};
use crate::damage::split;
use crate::hunk::{Case, Dice, Kind, Line, closed, joined, new_lines, old_lines};

/// Prose before an edit.
const PROSE: [&str; 4] = [
    "",
    "Here is the change:\n\n",
    "I'll update the code so that it does what you asked for.\n\n",
    "Sure! The value is handled too late. We need to:\n\n1. keep the old behaviour,\n2. handle the new case.\n\n",
];

/// Writes the quoted hunks down.
type Render = fn(&Change, &[Case], &mut Dice) -> Reply;

/// Every slip within lines, in a format; `bare` is the format without any hint of a line.
fn line_classes(render: Render, bare: Render) -> Vec<Class> {
    let mut all: Vec<Class> = Vec::new();
    for name in KNOWN {
        all.push(class(name, move |change, dice| {
            let hunk = dice.below(change.hunks.len());
            let case = known(name, change.hunks.get(hunk)?)?;
            hurt(change, hunk, case, render, dice)
        }));
    }
    for (name, slip) in OWN {
        all.push(class(name, move |change, dice| {
            let hunk = dice.below(change.hunks.len());
            let case = slip(change.hunks.get(hunk)?, dice)?;
            hurt(change, hunk, case, render, dice)
        }));
    }
    all.push(class("refuse: the text is there twice", move |change, dice| {
        let case = known("block duplicated", change.hunks.first()?)?;
        hurt(change, 0, case, bare, dice).map(Reply::refused)
    }));
    all.push(class("refuse: another number goes", move |change, dice| {
        let case = other_number(change, dice)?;
        Some(render(&change.only(0), &[case], dice).refused())
    }));
    all.push(class("refuse: text of another file", move |change, dice| {
        let case = foreign(change)?;
        Some(render(&change.only(0), &[case], dice).refused())
    }));
    all.push(class("refuse: a remark in place of code", move |change, dice| {
        let case = remark_for_code(change)?;
        Some(render(&change.only(0), &[case], dice).refused())
    }));
    all
}

/// One hunk as it is hurt, the others as they are; alone where the files aren't the change's own.
fn hurt(change: &Change, nth: usize, case: Case, render: Render, dice: &mut Dice) -> Option<Reply> {
    if let Some((before, after)) = case.files.clone() {
        let mut reply = render(&change.only(nth), &[case], dice);
        reply.before.insert(change.path.clone(), before);
        reply.after.as_mut()?.insert(change.path.clone(), after);
        return Some(reply);
    }
    if case.patch.is_none() {
        let reply = render(&change.only(nth), &[case], dice);
        return matches!(reply.format, Some(Format::Blocks | Format::Tool | Format::Edit)).then_some(reply);
    }
    let mut cases: Vec<Case> = change.hunks.iter().map(|hunk| case_of(&hunk.lines)).collect();
    *cases.get_mut(nth)? = case;
    Some(render(change, &cases, dice))
}

/// A line that goes has another number in it than the file's.
fn other_number(change: &Change, dice: &mut Dice) -> Option<Case> {
    let hunk = change.hunks.first()?;
    let has_digit = |line: &&Line| line.kind == Kind::Old && line.text.contains(|c: char| c.is_ascii_digit());
    let count = hunk.lines.iter().filter(has_digit).count();
    let nth = dice.below(count);
    let old = hunk.lines.iter().filter(has_digit).nth(nth)?.clone();
    let digit = old.text.chars().find(char::is_ascii_digit)?;
    let other = if digit == '7' { "4" } else { "7" };
    let mut lines = hunk.lines.clone();
    let line = lines.iter_mut().find(|line| **line == old)?;
    line.text = old.text.replacen(digit, other, 1);
    let hurt = line.text.clone();
    // A new line that differs from it in nothing would make it a change that was made before.
    (!new_lines(&lines).any(|text| text.trim() == hurt.trim()) && !change.file().contains(&hurt))
        .then(|| case_of(&lines))
}

/// Lines that another file has and this one hasn't.
fn foreign(change: &Change) -> Option<Case> {
    let (_, text) = change.other.as_ref()?;
    let own = change.before();
    let lines: Vec<&str> =
        text.lines().filter(|line| line.trim().len() >= 12 && !own.contains(line.trim())).collect();
    let picked = lines.get(..3)?;
    let lines = picked.iter().map(|text| Line::new(Kind::Common, *text));
    let mut lines: Vec<Line> = lines.collect();
    lines.push(Line::new(Kind::New, "value = compute(value)"));
    Some(case_of(&lines))
}

/// The search text shows four lines or more, which the replacement only speaks of.
fn remark_for_code(change: &Change) -> Option<Case> {
    let hunk = change.hunks.first()?.wider(0, 6);
    let run = hunk.lines.iter().rev().take_while(|line| line.kind == Kind::Common).count();
    let mut lines = hunk.lines.clone();
    let from = lines.len() - run.checked_sub(1).filter(|run| *run >= 4)?;
    let indent = split(&lines.get(from)?.text).0.to_owned();
    for line in lines.get_mut(from..)? {
        line.kind = Kind::Old;
    }
    let words = match change.extension() {
        "py" | "rb" | "sh" | "yml" | "yaml" | "toml" => "# ... rest of the code unchanged ...",
        "html" | "md" => "<!-- ... rest of the code unchanged ... -->",
        "css" => "/* ... rest of the code unchanged ... */",
        _ => "// ... rest of the code unchanged ...",
    };
    lines.push(Line::new(Kind::New, format!("{indent}{words}")));
    Some(case_of(&lines))
}

/// Blocks of a search text and a replacement.
pub(super) fn searches() -> Vec<Class> {
    let mut all = line_classes(search_in_any, search_plain);
    all.push(class("a sign behind the closing mark", |change, dice| {
        let sign = *dice.pick(&["`", ".", ">", "\"", "E", "*"])?;
        Some(marked(change, |block| block.replace(">>>>>>> REPLACE", &format!(">>>>>>> REPLACE{sign}"))))
    }));
    all.push(class("no last mark, fence closed", |change, _| {
        let only = change.only(0);
        Some(marked(&only, |block| block.replace(">>>>>>> REPLACE\n", "")))
    }));
    all.push(class("marks of other lengths", |change, dice| {
        let count = *dice.pick(&[5, 6, 8, 9])?;
        Some(marked(change, |block| {
            let marks = [("<<<<<<<", "<"), ("=======", "="), (">>>>>>>", ">")];
            marks.iter().fold(block, |block, (seven, one)| block.replace(seven, &one.repeat(count)))
        }))
    }));
    all.push(class("refuse: ends within a block", |change, dice| {
        let reply = marked(change, |block| block);
        let from = reply.text.rfind("=======")?;
        let end = reply.text.rfind(">>>>>>>")?;
        let mut cut = from + 7 + dice.below(end - from - 7);
        while !reply.text.is_char_boundary(cut) {
            cut -= 1;
        }
        Some(Reply { text: reply.text.get(..cut)?.to_owned(), ..reply }.refused())
    }));
    all.extend(search_orders());
    all
}

/// Blocks beside each other, parts of lines, and hints.
fn search_orders() -> Vec<Class> {
    let mut all: Vec<Class> = Vec::new();
    all.push(class("a block that changes nothing besides", |change, dice| {
        let lines: Vec<Line> = change
            .hunks
            .first()?
            .lines
            .iter()
            .filter(|line| line.kind != Kind::New)
            .map(|line| Line::new(Kind::Common, line.text.clone()))
            .collect();
        let mut cases: Vec<Case> = change.hunks.iter().map(|hunk| case_of(&hunk.lines)).collect();
        let far = change.file().get(change.hunks.last()?.end()..)?;
        let last: Vec<Line> = far.iter().take(6).map(|text| Line::new(Kind::Common, text.clone())).collect();
        let nothing = case_of(if last.len() == 6 { &last } else { &lines });
        let once = crate::hunk::is_once(&change.before(), &nothing.search);
        let at = if last.len() == 6 { dice.below(2) * cases.len() } else { 0 };
        cases.insert(at, nothing);
        once.then(|| search_plain(change, &cases, dice))
    }));
    all.push(class("one block twice", |change, dice| {
        let mut cases: Vec<Case> = change.hunks.iter().map(|hunk| case_of(&hunk.lines)).collect();
        cases.push(case_of(&change.hunks.first()?.lines));
        Some(search_plain(change, &cases, dice))
    }));
    all.push(class("a block on the text of another", |change, dice| {
        let only = change.only(0);
        let lines = &only.hunks.first()?.lines;
        let at = lines.iter().position(|line| line.kind == Kind::New && line.text.trim().len() >= 4)?;
        let mut first = lines.clone();
        let line = first.get_mut(at)?;
        line.text.push_str("_draft");
        let second =
            [Line::new(Kind::Old, line.text.clone()), Line::new(Kind::New, lines.get(at)?.text.clone())];
        Some(search_plain(&only, &[case_of(&first), case_of(&second)], dice))
    }));
    all.push(class("out of order", |change, dice| {
        let cases: Vec<Case> = change.hunks.iter().rev().map(|hunk| case_of(&hunk.lines)).collect();
        (cases.len() > 1).then(|| search_in_any(change, &cases, dice))
    }));
    all.push(class("a part of a line", part_of_line));
    all.push(class("a hint between equal places", |change, dice| {
        let case = known("block duplicated", change.hunks.first()?)?;
        let (before, after) = case.files.clone()?;
        let line = change.hunks.first()?.first + 1;
        let moved = if case.variant == "copy above" { old_lines(&change.hunks.first()?.lines).count() } else { 0 };
        let only = change.only(0);
        let text = match dice.below(2) {
            0 => format!("<<<<<<< SEARCH\n:start_line:{}\n-------\n{}", line + moved, sides(&case)),
            _ => json!({"path": change.path, "old_string": case.search, "new_string": case.replace, "start_line": line + moved}).to_string(),
        };
        let format = if text.starts_with('{') { Format::Tool } else { Format::Blocks };
        let mut reply = Reply::new(&only, format, text).aimed_at(&change.path);
        reply.before.insert(change.path.clone(), before);
        reply.after.as_mut()?.insert(change.path.clone(), after);
        Some(reply)
    }));
    all.push(class("a wrong hint", |change, dice| {
        let case = case_of(&change.hunks.first()?.lines);
        let line = 1 + dice.below(change.file().len() + 20);
        let text = format!("<<<<<<< SEARCH\n:start_line:{line}\n-------\n{}", sides(&case));
        Some(Reply::new(&change.only(0), Format::Blocks, text).aimed_at(&change.path))
    }));
    all.push(class("a new file too", |change, dice| {
        let cases: Vec<Case> = change.hunks.iter().map(|hunk| case_of(&hunk.lines)).collect();
        let mut reply = search_plain(change, &cases, dice);
        reply.text.push_str(
            "\nnotes/added.txt\n```\n<<<<<<< SEARCH\n=======\nfirst\n\nsecond\n>>>>>>> REPLACE\n```\n",
        );
        reply.after.as_mut()?.insert("notes/added.txt".to_owned(), "first\n\nsecond\n".to_owned());
        Some(reply)
    }));
    all.push(class("refuse: one block of two is nowhere", |change, dice| {
        let cases = [case_of(&change.hunks.first()?.lines), foreign(change)?];
        Some(search_plain(&change.only(0), &cases, dice).refused())
    }));
    all
}

/// What stands between the opening and the end of a block.
fn sides(case: &Case) -> String {
    let lines = |text: &str| if text.is_empty() { String::new() } else { format!("{text}\n") };
    format!("{}=======\n{}>>>>>>> REPLACE\n", lines(&case.search), lines(&case.replace))
}

/// Plain blocks in a fence, with their text changed.
fn marked(change: &Change, hurt: impl Fn(String) -> String) -> Reply {
    let blocks = change.hunks.iter().map(|hunk| {
        let block = hurt(format!("<<<<<<< SEARCH\n{}", sides(&case_of(&hunk.lines))));
        format!("{}\n```{}\n{block}```\n\n", change.path, change.extension())
    });
    Reply::new(change, Format::Blocks, blocks.collect())
}

fn search_plain(change: &Change, cases: &[Case], _: &mut Dice) -> Reply {
    let blocks = cases.iter().map(|case| {
        format!("{}\n```{}\n<<<<<<< SEARCH\n{}```\n\n", change.path, change.extension(), sides(case))
    });
    Reply::new(change, Format::Blocks, blocks.collect())
}

/// In one of the dialects.
fn search_in_any(change: &Change, cases: &[Case], dice: &mut Dice) -> Reply {
    let (path, lang) = (&change.path, change.extension());
    let prose = *dice.pick(&PROSE).unwrap_or(&"");
    let block = |case: &Case| format!("<<<<<<< SEARCH\n{}", sides(case));
    let each =
        |write: &dyn Fn(&Case) -> String| prose.to_owned() + &cases.iter().map(write).collect::<String>();
    let tags = |case: &Case, one: &str, two: &str| {
        let lines = |text: &str| if text.is_empty() { String::new() } else { format!("{text}\n") };
        format!("<{one}>\n{}</{one}>\n<{two}>\n{}</{two}>\n", lines(&case.search), lines(&case.replace))
    };
    let (format, text) = match dice.below(10) {
        0 => (Format::Blocks, each(&|case| format!("**{path}**\n\n```{lang}\n{}```\n\n", block(case)))),
        1 => (Format::Blocks, each(&|case| format!("```{lang}\n{path}\n{}```\n\n", block(case)))),
        2 => (Format::Blocks, each(&|case| format!("### `{path}`\n\n```{lang}\n{}```\n\n", block(case)))),
        3 => (Format::Blocks, each(&|case| format!("{path}\n{}\n", block(case)))),
        4 => (
            Format::Blocks,
            each(&|case| {
                block(case)
                    .replace("<<<<<<< SEARCH", "------- SEARCH")
                    .replace(">>>>>>> REPLACE", "+++++++ REPLACE")
            }),
        ),
        5 => (Format::Blocks, each(&|case| format!("`{path}`:\n{}\n", block(case)))),
        6 => (
            Format::Blocks,
            each(&|case| format!("<edits>\n{}</edits>\n", tags(case, "old_text", "new_text"))),
        ),
        7 | 8 => {
            let edits = cases
                .iter()
                .map(|case| json!({"path": path, "old_string": case.search, "new_string": case.replace}));
            let edits: Vec<_> = edits.collect();
            let value = if let [edit] = edits.as_slice() {
                edit.clone()
            } else {
                json!({"path": path, "edits": edits})
            };
            (Format::Tool, value.to_string())
        }
        _ => (
            Format::Edit,
            each(&|case| {
                format!("<edit>\n<file>{path}</file>\n{}</edit>\n", tags(case, "search", "replace"))
            }),
        ),
    };
    Reply::new(change, format, text).aimed_at(path)
}

/// The words of one line that change, and as many beside them as it takes to be in the file once.
fn part_of_line(change: &Change, dice: &mut Dice) -> Option<Reply> {
    let only = change.only(0);
    let hunk = only.hunks.first()?;
    let changed: Vec<&Line> = hunk.lines.iter().filter(|line| line.kind != Kind::Common).collect();
    let [old, new] = changed.as_slice() else { return None };
    if (old.kind, new.kind) != (Kind::Old, Kind::New) || !old.text.is_ascii() || !new.text.is_ascii() {
        return None;
    }
    let (old, new) = (&old.text, &new.text);
    let head = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    let tail = old.bytes().rev().zip(new.bytes().rev()).take_while(|(a, b)| a == b).count();
    let file = change.before();
    for more in 2..old.len() {
        let is_word = |at: usize| old.as_bytes().get(at).is_some_and(u8::is_ascii_alphanumeric);
        let mut from = head.saturating_sub(more);
        while from > 0 && is_word(from) && is_word(from - 1) {
            from -= 1;
        }
        let mut rest = tail.saturating_sub(more);
        while rest > 0 && is_word(old.len() - rest) && is_word(old.len() - rest - 1) {
            rest -= 1;
        }
        let (search, replace) = (old.get(from..old.len() - rest)?, new.get(from..new.len() - rest)?);
        if crate::hunk::is_once(&file, search) && search.trim().len() > 5 {
            let case = Case { replace: replace.to_owned(), ..case_of(&[Line::new(Kind::Old, search)]) };
            return Some(search_in_any(&only, &[case], dice));
        }
    }
    None
}

/// V4A patches.
pub(super) fn patches() -> Vec<Class> {
    let mut all = line_classes(patch_in_any, patch_plain);
    all.extend(prefix_classes(patch_in_any));
    all.push(class("an anchor that isn't there", |change, _| {
        Some(patch(change, &plain(change), |_, _| "@@ def handle_all_of_it(self):".to_owned()))
    }));
    all.push(class("two anchor lines", |change, _| {
        Some(patch(change, &plain(change), |at, hunk| {
            format!("@@\n@@ {}", anchor(change, at, hunk).unwrap_or_default())
        }))
    }));
    all.push(class("a here-document", |change, dice| {
        let reply = patch_in_any(change, &plain(change), dice);
        let text = format!("apply_patch <<'EOF'\n{}\nEOF\n", reply.text.trim());
        reply.text.starts_with("***").then_some(Reply { text, ..reply })
    }));
    all.push(class("as a JSON argument", |change, _| {
        let reply = patch_plain(change, &plain(change), &mut Dice::new(""));
        let text = json!({"input": reply.text}).to_string();
        Some(Reply { text, ..reply })
    }));
    all.push(class("no envelope", |change, _| {
        let reply = patch_plain(change, &plain(change), &mut Dice::new(""));
        let text = reply.text.replace("*** Begin Patch\n", "").replace("*** End Patch\n", "");
        Some(Reply { text, ..reply })
    }));
    all.push(class("two files, one new", |change, dice| {
        let mut reply = patch_in_any(change, &plain(change), dice);
        let added = "*** Add File: notes/added.txt\n+first\n+\n+second\n*** End Patch";
        reply.text = reply.text.replacen("*** End Patch", added, 1);
        reply.after.as_mut()?.insert("notes/added.txt".to_owned(), "first\n\nsecond\n".to_owned());
        Some(reply)
    }));
    all.push(class("moved and changed", |change, dice| {
        let mut reply = patch_in_any(change, &plain(change), dice);
        let head = format!("*** Update File: {}\n", change.path);
        reply.text = reply.text.replacen(&head, &format!("{head}*** Move to: moved/there.txt\n"), 1);
        let text = reply.after.as_mut()?.remove(&change.path)?;
        reply.after.as_mut()?.insert("moved/there.txt".to_owned(), text);
        Some(reply)
    }));
    all.push(class("refuse: cut off", |change, dice| {
        let reply = patch_plain(change, &plain(change), dice);
        let from = reply.text.find("@@")? + 3;
        let mut cut = from + dice.below(reply.text.rfind("*** End")? - from);
        while !reply.text.is_char_boundary(cut) {
            cut -= 1;
        }
        Some(Reply { text: reply.text.get(..cut)?.to_owned(), cut_off: true, ..reply }.refused())
    }));
    all.push(class("refuse: adds a file that is there", |change, _| {
        let text = change.after().lines().take(20).map(|line| format!("+{line}\n")).collect::<String>();
        let text = format!("*** Begin Patch\n*** Add File: {}\n{text}*** End Patch\n", change.path);
        Some(Reply::new(change, Format::Patch, text).refused())
    }));
    all
}

fn plain(change: &Change) -> Vec<Case> {
    change.hunks.iter().map(|hunk| case_of(&hunk.lines)).collect()
}

/// Slips of the marks before lines, in a patch or a diff.
fn prefix_classes(render: Render) -> Vec<Class> {
    let on_lines =
        move |name: &'static str, slip: fn(&Change, Vec<String>, &mut Dice) -> Option<Vec<String>>| {
            class(name, move |change, dice| {
                let mut cases = plain(change);
                let case = cases.first_mut()?;
                let lines: Vec<String> = case.patch.as_ref()?.lines().map(str::to_owned).collect();
                let hurt = slip(change, lines.clone(), dice)?;
                case.patch = Some(closed(hurt.iter().map(String::as_str)));
                (hurt != lines).then(|| render(change, &cases, dice))
            })
        };
    vec![
        on_lines("bare blank lines", |_, lines, _| {
            Some(lines.into_iter().map(|line| if line == " " { String::new() } else { line }).collect())
        }),
        on_lines("context without its blank", |_, lines, _| {
            Some(lines.iter().map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned()).collect())
        }),
        on_lines("some context without its blank", |_, mut lines, dice| {
            let at: Vec<usize> = (0..lines.len())
                .filter(|at| lines.get(*at).is_some_and(|line| line.starts_with(' ')))
                .collect();
            let line = lines.get_mut(*dice.pick(&at)?)?;
            *line = line.strip_prefix(' ')?.to_owned();
            (at.len() > 1).then_some(lines)
        }),
        on_lines("a plus is missing", |change, mut lines, _| {
            let added =
                |at: usize| lines.get(at).is_some_and(|line| line.starts_with('+') && line.trim().len() > 4);
            let at = (1..lines.len()).find(|at| added(at - 1) && added(*at) && added(at + 1))?;
            let line = lines.get_mut(at)?;
            *line = line.strip_prefix('+')?.to_owned();
            let line = line.clone();
            (!change.file().iter().any(|own| own.trim() == line.trim()) && line.starts_with([' ', '\t']))
                .then_some(lines)
        }),
        on_lines("added before removed", |_, lines, _| {
            let from = lines.iter().position(|line| line.starts_with('-'))?;
            let middle = from + lines.iter().skip(from).take_while(|line| line.starts_with('-')).count();
            let end = middle + lines.iter().skip(middle).take_while(|line| line.starts_with('+')).count();
            let (old, new) = (lines.get(from..middle)?, lines.get(middle..end)?);
            let (head, tail) = (lines.get(..from)?, lines.get(end..)?);
            Some([head, new, old, tail].concat())
        }),
        on_lines("a line too many at the edge", |_, mut lines, dice| {
            let edge = dice.below(2) * lines.len();
            let like = lines.get(edge.saturating_sub(1))?;
            let indent = split(like.get(1..)?).0.to_owned();
            let inner =
                lines.iter().filter(|line| line.starts_with(' ') && line.trim().len() > 4).count() >= 2;
            let other = if edge == 0 { lines.first()? } else { lines.last()? };
            let safe = other.starts_with(' ');
            lines.insert(edge, format!(" {indent}prepare_everything();"));
            (inner && safe).then_some(lines)
        }),
    ]
}

/// The header above a hunk: the nearest line above that is less indented than all of it.
fn anchor(change: &Change, nth: usize, _: &Case) -> Option<String> {
    let hunk = change.hunks.get(nth)?;
    let depth = |text: &str| split(text).0.len();
    let least =
        hunk.lines.iter().filter(|line| !line.text.trim().is_empty()).map(|line| depth(&line.text)).min()?;
    let above = change.file().get(..hunk.first)?.iter().rev();
    let line = above.into_iter().find(|line| line.trim().len() > 3 && depth(line) < least)?;
    Some(line.trim().to_owned())
}

/// A patch with a line above each hunk.
fn patch(change: &Change, cases: &[Case], above: impl Fn(usize, &Case) -> String) -> Reply {
    let hunks = cases.iter().enumerate().map(|(at, case)| {
        let above = above(at, case);
        let above = if above.is_empty() { above } else { format!("{above}\n") };
        format!("{above}{}", case.patch.as_deref().unwrap_or_default())
    });
    let text = format!(
        "*** Begin Patch\n*** Update File: {}\n{}*** End Patch\n",
        change.path,
        hunks.collect::<String>()
    );
    Reply::new(change, Format::Patch, text).aimed_at(&change.path)
}

fn patch_plain(change: &Change, cases: &[Case], _: &mut Dice) -> Reply {
    patch(change, cases, |_, _| "@@".to_owned())
}

fn patch_in_any(change: &Change, cases: &[Case], dice: &mut Dice) -> Reply {
    match dice.below(5) {
        0 => patch_plain(change, cases, dice),
        1 => patch(change, cases, |at, case| {
            anchor(change, at, case).map_or_else(|| "@@".to_owned(), |anchor| format!("@@ {anchor}"))
        }),
        2 => patch(change, cases, |at, _| if at == 0 { String::new() } else { "@@".to_owned() }),
        3 => patch(change, cases, |at, _| numbers(change, at, 0)),
        _ => {
            let reply = patch_plain(change, cases, dice);
            let prose = *dice.pick(&PROSE).unwrap_or(&"");
            Reply { text: format!("{prose}```diff\n{}```\n", reply.text), ..reply }
        }
    }
}

/// `@@ -1,2 +1,2 @@`, off by so many lines.
fn numbers(change: &Change, nth: usize, off: usize) -> String {
    let Some(hunk) = change.hunks.get(nth) else { return "@@ ... @@".to_owned() };
    let (old, new) = (old_lines(&hunk.lines).count(), new_lines(&hunk.lines).count());
    let at = hunk.first + 1 + off;
    format!("@@ -{at},{old} +{at},{new} @@")
}

/// Unified diffs.
pub(super) fn diffs() -> Vec<Class> {
    let mut all = line_classes(diff_in_any, diff_plain);
    all.extend(prefix_classes(diff_in_any));
    all.push(class("wrong numbers", |change, dice| {
        let off = dice.below(40);
        Some(diff(change, &plain(change), |at| numbers(change, at, off)))
    }));
    all.push(class("wrong counts", |change, dice| {
        let count = 1 + dice.below(30);
        Some(diff(change, &plain(change), |at| format!("@@ -{},{count} +{},{count} @@", at + 1, at + 1)))
    }));
    all.push(class("no numbers", |change, _| Some(diff(change, &plain(change), |_| "@@".to_owned()))));
    all.push(class("a hunk that changes nothing besides", |change, dice| {
        let far = change.file().get(change.hunks.last()?.end()..)?;
        let same: Vec<Line> = far.iter().take(4).map(|text| Line::new(Kind::Common, text.clone())).collect();
        let mut cases = plain(change);
        cases.push(case_of(&same));
        (same.len() == 4).then(|| diff_plain(change, &cases, dice))
    }));
    all.push(class("hunks not divided", |change, _| {
        let cases = plain(change);
        (cases.len() > 1).then(|| {
            diff(change, &cases, |at| if at == 0 { "@@ ... @@".to_owned() } else { "...".to_owned() })
        })
    }));
    all.push(class("no header", |change, _| {
        let reply = diff(change, &plain(change), |at| numbers(change, at, 0));
        let text = reply.text.lines().skip(2).fold(String::new(), |text, line| text + line + "\n");
        Some(Reply { text, ..reply })
    }));
    all.push(class("git's header", |change, _| {
        let reply = diff(change, &plain(change), |at| numbers(change, at, 0));
        let head = format!("diff --git a/{0} b/{0}\nindex 3f2a1b4..9c0d7e1 100644\n", change.path);
        Some(Reply { text: head + &reply.text, ..reply })
    }));
    all.push(class("two files, one new", |change, dice| {
        let mut reply = diff_plain(change, &plain(change), dice);
        reply.text.push_str("--- /dev/null\n+++ b/notes/added.txt\n@@ -0,0 +1,3 @@\n+first\n+\n+second\n");
        reply.target = None;
        reply.after.as_mut()?.insert("notes/added.txt".to_owned(), "first\n\nsecond\n".to_owned());
        Some(reply)
    }));
    all.push(class("each hunk with its header", |change, _| {
        let texts = change.hunks.iter().enumerate().map(|(at, hunk)| {
            let one = Change { path: change.path.clone(), hunks: vec![hunk.clone()], other: None };
            diff(&one, &plain(&one), |_| numbers(change, at, 0)).text
        });
        (change.hunks.len() > 1).then(|| {
            Reply::new(
                change,
                Format::Udiff,
                joined(texts.collect::<Vec<_>>().iter().map(String::as_str), "\n"),
            )
        })
    }));
    all.push(class("refuse: creates a file that is there", |change, _| {
        let text: String = change.after().lines().take(20).map(|line| format!("+{line}\n")).collect();
        let text = format!("--- /dev/null\n+++ b/{}\n@@ -0,0 +1,20 @@\n{text}", change.path);
        Some(Reply::new(change, Format::Udiff, text).refused())
    }));
    all
}

fn diff(change: &Change, cases: &[Case], above: impl Fn(usize) -> String) -> Reply {
    let hunks = cases
        .iter()
        .enumerate()
        .map(|(at, case)| format!("{}\n{}", above(at), case.patch.as_deref().unwrap_or_default()));
    let text = format!("--- a/{0}\n+++ b/{0}\n{1}", change.path, hunks.collect::<String>());
    Reply::new(change, Format::Udiff, text).aimed_at(&change.path)
}

fn diff_plain(change: &Change, cases: &[Case], _: &mut Dice) -> Reply {
    diff(change, cases, |_| "@@ ... @@".to_owned())
}

fn diff_in_any(change: &Change, cases: &[Case], dice: &mut Dice) -> Reply {
    match dice.below(4) {
        0 => diff_plain(change, cases, dice),
        1 => diff(change, cases, |at| numbers(change, at, 0)),
        2 => {
            let off = dice.below(20);
            diff(change, cases, |at| numbers(change, at, off))
        }
        _ => {
            let prose = *dice.pick(&PROSE).unwrap_or(&"");
            let reply = diff(change, cases, |at| numbers(change, at, 0));
            Reply {
                text: format!("{prose}```diff\n{}```\n\nLet me know if it works.\n", reply.text),
                ..reply
            }
        }
    }
}
