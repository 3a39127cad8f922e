//! Replies of a weak model: a change of one line, in each format and in damaged ones.

use serde_json::json;

/// A change of a file.
pub(super) struct FileEdit<'a> {
    pub(super) path: &'a str,
    pub(super) before: &'a str,
    pub(super) after: &'a str,
}

/// A way to write an edit.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) write: fn(&FileEdit<'_>) -> String,
}

/// The formats as they are meant.
pub(super) const FORMATS: [Way; 5] = [
    Way { name: "whole", write: |edit| whole(edit, edit.after) },
    Way { name: "blocks", write: |edit| blocks(edit, |line| line.to_owned(), ">>>>>>> REPLACE") },
    Way { name: "udiff", write: |edit| udiff(edit, 3, |line| line.to_owned()) },
    Way { name: "tool JSON", write: |edit| tool_json(edit, "") },
    Way { name: "patch", write: |edit| patch(edit, " ") },
];

/// Formats as weak models spoil them. Some of these edits can be placed all the same, others can't.
pub(super) const DAMAGED: [Way; 7] = [
    Way {
        name: "blocks without indentation",
        write: |edit| blocks(edit, |line| line.trim().to_owned(), ">>>>>>> REPLACE"),
    },
    Way {
        name: "a diff with a wrong line",
        write: |edit| udiff(edit, 40, |line| format!("{line} and more")),
    },
    Way { name: "a patch without blanks", write: |edit| patch(edit, "") },
    Way { name: "a part as a whole file", write: |edit| whole(edit, &lines(edit).2.join("\n")) },
    Way { name: "blocks without an end", write: |edit| blocks(edit, |line| line.to_owned(), "") },
    Way { name: "a diff with wrong numbers", write: |edit| udiff(edit, 400, |line| line.to_owned()) },
    Way { name: "JSON with a comma too many", write: |edit| tool_json(edit, ",") },
];

/// The lines before and after the one that changes, and both versions of it with a line of context
/// above: context before, old, new, context after.
fn lines<'a>(edit: &FileEdit<'a>) -> (Vec<&'a str>, Vec<&'a str>, Vec<&'a str>, Vec<&'a str>) {
    let (old, new): (Vec<&str>, Vec<&str>) = (edit.before.lines().collect(), edit.after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let context = same.saturating_sub(2);
    let changed = |all: &[&'a str]| all[same..(same + 1).min(all.len())].to_vec();
    let below = old[(same + 1).min(old.len())..(same + 2).min(old.len())].to_vec();
    (old[context..same].to_vec(), changed(&old), changed(&new), below)
}

fn blocks(edit: &FileEdit<'_>, spoil: fn(&str) -> String, end: &str) -> String {
    let (above, old, new, _) = lines(edit);
    let text =
        |changed: &[&str]| -> String { above.iter().chain(changed).map(|line| spoil(line) + "\n").collect() };
    format!(
        "I fix the return value.\n\n{}\n```\n<<<<<<< SEARCH\n{}=======\n{}{end}\n```\n",
        edit.path,
        text(&old),
        text(&new)
    )
}

fn udiff(edit: &FileEdit<'_>, at: usize, spoil: fn(&str) -> String) -> String {
    let (above, old, new, below) = lines(edit);
    let with = |sign: &str, lines: &[&str]| -> String {
        lines.iter().map(|line| format!("{sign}{line}\n")).collect()
    };
    let old: Vec<String> = old.iter().map(|line| spoil(line)).collect();
    let old: Vec<&str> = old.iter().map(String::as_str).collect();
    format!(
        "```diff\n--- a/{path}\n+++ b/{path}\n@@ -{at},3 +{at},3 @@\n{}{}{}{}```\nThat is all.\n",
        with(" ", &above),
        with("-", &old),
        with("+", &new),
        with(" ", &below),
        path = edit.path
    )
}

fn patch(edit: &FileEdit<'_>, blank: &str) -> String {
    let (above, old, new, _) = lines(edit);
    let with = |sign: &str, lines: &[&str]| -> String {
        lines.iter().map(|line| format!("{sign}{line}\n")).collect()
    };
    format!(
        "*** Begin Patch\n*** Update File: {}\n@@\n{}{}{}*** End Patch\n",
        edit.path,
        with(blank, &above),
        with("-", &old),
        with("+", &new)
    )
}

fn whole(edit: &FileEdit<'_>, content: &str) -> String {
    format!("The whole file:\n\n`{}`\n```\n{}\n```\n", edit.path, content.trim_end())
}

fn tool_json(edit: &FileEdit<'_>, comma: &str) -> String {
    let (above, old, new, _) = lines(edit);
    let text =
        |changed: &[&str]| -> String { above.iter().chain(changed).copied().collect::<Vec<_>>().join("\n") };
    let arguments = json!({ "path": edit.path, "old_string": text(&old), "new_string": text(&new) });
    let arguments = arguments.to_string();
    format!("I call the tool:\n```json\n{}{comma}}}\n```\n", arguments.trim_end_matches('}'))
}
