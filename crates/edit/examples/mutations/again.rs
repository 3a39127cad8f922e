//! Edits whose result is in the file already, and such as look so and aren't.
//!
//! Each hunk is sent to the file that has it: told as made before is right. The opposites are files
//! that have half of it (the last added line is missing, or the first removed line still there) or
//! neither side: told as made is wrong there.

use std::io::Write;

use crate::formats::{Answer, QUOTING_FORMATS, ask, reply};
use crate::hunk::{Case, Kind, Line, Task, is_once};
use crate::summary::{Summary, Verdict};

/// The rows of the table.
pub(crate) const ROWS: [&str; 4] =
    [MADE, "last added line missing", "first removed line there", "neither side"];
const MADE: &str = "made before";

/// Sends the hunk to files that have all of it, half of it, or nothing.
pub(crate) fn run(task: &Task, summary: &mut Summary, out: &mut impl Write) -> Result<(), crate::Error> {
    let Some(case) = task.cases.iter().find(|case| case.damage == "none") else { return Ok(()) };
    let lines = parsed(case.patch.as_deref().unwrap_or_default());
    for row in ROWS {
        let Some(file) = file_with(task, &lines, row) else { continue };
        for format in QUOTING_FORMATS {
            let Some(reply) = reply(format, &task.path, case) else { continue };
            let answer = ask(format, &task.path, &file, &reply, false).answer;
            let verdict = verdict(row, task, &answer);
            summary.add(row, format.name(), verdict);
            if verdict == Verdict::Wrong || (verdict == Verdict::Refused && row == MADE) {
                let told = Case {
                    damage: row.to_owned(),
                    variant: String::new(),
                    search: case.search.clone(),
                    replace: case.replace.clone(),
                    patch: None,
                    files: Some((file.clone(), task.after.clone())),
                };
                crate::record(out, task, &told, (format.name(), None), &answer, verdict)?;
            }
        }
    }
    Ok(())
}

fn verdict(row: &str, task: &Task, answer: &Answer) -> Verdict {
    match answer {
        Answer::Unchanged(_) if row == MADE => Verdict::Right,
        Answer::Unchanged(_) => Verdict::Wrong,
        Answer::Refused(_) => Verdict::Refused,
        Answer::Text(text) if row != MADE && *text == task.after => Verdict::Right,
        // The edit as it was asked for, in a file that no commit has: no claim is made.
        Answer::Text(_) if row != MADE => Verdict::Nothing,
        Answer::Text(_) | Answer::Panicked => Verdict::Wrong,
    }
}

/// The lines of a patch.
fn parsed(patch: &str) -> Vec<Line> {
    let line = |line: &str| {
        let (kind, text) = line.split_at_checked(1)?;
        let kind = match kind {
            "-" => Kind::Old,
            "+" => Kind::New,
            _ => Kind::Common,
        };
        Some(Line::new(kind, text))
    };
    patch.lines().filter_map(line).collect()
}

/// The file with a version of the hunk's lines; `None` where there is no such version.
fn file_with(task: &Task, lines: &[Line], row: &str) -> Option<String> {
    if row == MADE {
        return Some(task.after.clone());
    }
    let last_new = lines.iter().rposition(|line| line.kind == Kind::New);
    let first_old = lines.iter().position(|line| line.kind == Kind::Old);
    let keep = |(at, line): (usize, &Line)| match row {
        "last added line missing" => line.kind != Kind::Old && Some(at) != last_new,
        "first removed line there" => line.kind != Kind::Old || Some(at) == first_old,
        _ => line.kind == Kind::Common,
    };
    let text = |keep: &dyn Fn((usize, &Line)) -> bool| -> String {
        let kept = lines.iter().enumerate().filter(|one| keep(*one));
        kept.map(|(_, line)| format!("{}\n", line.text)).collect()
    };
    let old = text(&|(_, line)| line.kind != Kind::New);
    let file = is_once(&task.before, &old).then(|| task.before.replacen(&old, &text(&keep), 1))?;
    (file != task.before && file != task.after).then_some(file)
}
