//! The formats in which a hunk reaches the engine.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use journeyman_edit::{ApplyOptions, Format, Strategy, plan};
use journeyman_protocol::RelPath;
use serde_json::json;

use crate::hunk::{Case, Dice, Task};

/// The formats that quote a part of a file.
pub(crate) const QUOTING_FORMATS: [Format; 5] =
    [Format::Tool, Format::Blocks, Format::Edit, Format::Patch, Format::Udiff];

/// What an engine made of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Text(String),
    Refused(String),
    /// Said to be as it should be, without a word of refusal.
    Unchanged(String),
    Panicked,
}

/// How it was placed, and how long it took.
pub(crate) struct TimedAnswer {
    pub(crate) answer: Answer,
    pub(crate) strategy: Option<Strategy>,
    pub(crate) took: Duration,
}

/// The reply as a model would write it; `None` where the format can't say it.
pub(crate) fn reply(format: Format, path: &str, case: &Case) -> Option<String> {
    let Case { search, replace, .. } = case;
    // In a block, a replacement of one blank line looks like none, which takes the blank line of
    // the search text along.
    let is_blank_line = replace.is_empty() && search.ends_with('\n');
    Some(match format {
        Format::Blocks | Format::Edit if is_blank_line => return None,
        Format::Tool => json!({"path": path, "old_string": search, "new_string": replace}).to_string(),
        Format::Blocks => {
            let new = if replace.is_empty() { String::new() } else { format!("{replace}\n") };
            format!("{path}\n<<<<<<< SEARCH\n{search}\n=======\n{new}>>>>>>> REPLACE\n")
        }
        Format::Edit => {
            let new = if replace.is_empty() { String::new() } else { format!("{replace}\n") };
            format!(
                "<edit>\n<file>{path}</file>\n<search>\n{search}\n</search>\n<replace>\n{new}</replace>\n</edit>\n"
            )
        }
        Format::Patch => {
            let lines = case.patch.as_ref()?;
            format!("*** Begin Patch\n*** Update File: {path}\n@@\n{lines}*** End Patch\n")
        }
        Format::Udiff => {
            let lines = case.patch.as_ref()?;
            format!("--- a/{path}\n+++ b/{path}\n@@ ... @@\n{lines}")
        }
        _ => return None,
    })
}

/// The same, ended by the token limit somewhere behind its middle.
pub(crate) fn cut_off(format: Format, task: &Task, case: &Case) -> Option<String> {
    let whole = reply(format, &task.path, case)?;
    let end = match format {
        Format::Tool => whole.len() - 1,
        Format::Blocks => whole.rfind(">>>>>>> ")?,
        Format::Edit => whole.rfind("</replace>")?,
        Format::Patch => whole.rfind("*** End")?,
        _ => whole.len() - 1,
    };
    let mut cut = whole.len() / 2;
    cut += Dice::new(&format!("{} {format} cut", task.id)).below(end.checked_sub(cut)?);
    while !whole.is_char_boundary(cut) {
        cut -= 1;
    }
    whole.get(..cut).map(str::to_owned)
}

/// Gives a reply to the engine.
pub(crate) fn ask(format: Format, path: &str, before: &str, reply: &str, cut_off: bool) -> TimedAnswer {
    let begun = Instant::now();
    let asked = std::panic::catch_unwind(|| answer(format, path, before, reply, cut_off));
    let (answer, strategy) = asked.unwrap_or((Answer::Panicked, None));
    TimedAnswer { answer, strategy, took: begun.elapsed() }
}

fn answer(
    format: Format,
    path: &str,
    before: &str,
    reply: &str,
    cut_off: bool,
) -> (Answer, Option<Strategy>) {
    let path = RelPath::parse(path).unwrap();
    let files = BTreeMap::from([(path.clone(), before.to_owned())]);
    let plan =
        plan(reply, &ApplyOptions { format: Some(format), cut_off, ..ApplyOptions::default() }, &files);
    if let Some(failure) = plan.failed.first() {
        return (Answer::Refused(failure.message.clone()), None);
    }
    match plan.changes_to_write() {
        [change] if change.path == path && change.to.is_none() => match &change.after {
            Some(after) => (Answer::Text(after.clone()), change.strategy()),
            None => (Answer::Text(String::new()), change.strategy()),
        },
        [] => {
            let why = plan.unchanged.first().map(|unchanged| unchanged.reason.clone());
            (Answer::Unchanged(why.unwrap_or_default()), None)
        }
        changes => (Answer::Text(format!("{} files", changes.len())), None),
    }
}
