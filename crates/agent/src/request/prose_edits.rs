//! Edits in the text of a reply, in any of the formats that models write.
//!
//! Two kinds of formats are told apart. Marked ones (`<edit>`, SEARCH/REPLACE blocks, V4A patches)
//! are only ever written to be applied. A diff, a fenced file or a JSON object may as well explain
//! or quote something, so all of it has to name its files and to fit into them.

use std::collections::HashSet;

use journeyman_edit::{
    ApplyOptions, Edit, EditFailure, EditOp, Files, Format, ReplySource, detect_in, plan_edits, read_reply,
    to_ops,
};
use serde_json::Value;

use super::apply_edit;

/// Maximum number of problems in a message to the model.
const MAX_REPORTED_PROBLEMS: usize = 3;
/// Maximum number of different lines of a file that a fenced block may replace completely.
const MAX_STUB_LINES: usize = 3;

/// The formats in which a reply's text may have edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AcceptedFormats {
    /// No formats: nothing is to be changed.
    None,
    /// The formats that are only written to be applied.
    Marked,
    /// All formats that the edit engine reads.
    All,
}

/// The rules for reading edits in the text of a reply.
#[derive(Debug, Clone)]
pub(crate) struct ProseRules {
    /// The accepted formats.
    pub(crate) accepted: AcceptedFormats,
    /// The reply ended as the model meant it to.
    pub(crate) finished: bool,
    /// Files were changed since the task began or since checks failed, so the text may tell of that
    /// change.
    pub(crate) recaps: bool,
    /// Tells the model how to send an edit.
    pub(crate) how_to_edit: &'static str,
}

/// Returns the sentence that tells the model how to change a file.
pub(crate) fn edit_instruction(tool_calling: bool) -> &'static str {
    match tool_calling {
        true => "To change a file, call `edit_file`, or `write_file` for a whole file.",
        false => "To change a file, send an <edit> block with <file>, <search> and <replace>.",
    }
}

/// The edits in a reply's text.
#[derive(Debug, PartialEq)]
pub(crate) enum ProseEdits {
    /// There are no edits, or the files have their content already.
    None,
    /// Edits to make.
    Found {
        /// The inputs of the calls that make them, one for each file.
        inputs: Vec<Value>,
        /// Problems of unreadable edits.
        problems: Vec<String>,
    },
    /// The text has edits, none of which can be made; says why.
    Unusable(String),
}

/// Reads the edits in a reply's text.
pub(crate) fn read_prose_edits(text: &str, rules: &ProseRules, files: &dyn Files) -> ProseEdits {
    let whole = ReplySource { reply: text, path: None, finished: rules.finished, files };
    let Some(format) = detect_in(&whole) else { return ProseEdits::None };
    let marked = matches!(format, Format::Edit | Format::Blocks | Format::Patch);
    if rules.accepted == AcceptedFormats::None || (rules.accepted == AcceptedFormats::Marked && !marked) {
        return ProseEdits::None;
    }
    // A marked edit ends with a mark; without the mark a part of unknown size is missing.
    let finished = rules.finished && !marked;
    let reading = read_reply(&ReplySource { reply: text, path: None, finished, files }, None);
    let mut problems: Vec<String> = reading.problems.iter().map(ToString::to_string).collect();
    if format == Format::Whole {
        problems.extend(reading.edits.iter().filter_map(|edit| describe_partial_block(edit, files)));
    }
    let planned = plan_edits(&reading.edits, &ApplyOptions::default(), files);
    let changes_nothing = problems.is_empty() && planned.failed.is_empty() && planned.changes.is_empty();
    if changes_nothing {
        return ProseEdits::None;
    }
    let fits = problems.is_empty() && planned.failed.is_empty();
    if !marked && !fits {
        return match rules.recaps || reading.edits.is_empty() {
            true => ProseEdits::None,
            false => ProseEdits::Unusable(explain_unapplied_edits(format, &problems, &planned.failed, rules)),
        };
    }
    if reading.edits.is_empty() {
        return ProseEdits::Unusable(explain_unapplied_edits(format, &problems, &planned.failed, rules));
    }
    let inputs = to_ops(&reading.edits).iter().map(apply_edit::file_edits_to_input).collect();
    ProseEdits::Found { inputs, problems }
}

/// Describes the problem if a fenced block has less than half of the lines of the existing file
/// that it names: the block may be a part of the file, or an example.
fn describe_partial_block(edit: &Edit, files: &dyn Files) -> Option<String> {
    let [EditOp::Rewrite { content, .. }] = edit.ops.as_slice() else { return None };
    let Ok(Some(old)) = files.text(&edit.path) else { return None };
    let lines = |text: &'_ str| -> HashSet<String> {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    let (old, new) = (lines(&old), lines(content));
    let kept = old.intersection(&new).count();
    (old.len() > MAX_STUB_LINES && kept * 2 < old.len()).then(|| {
        format!(
            "{}: the block has {kept} of the file's {} different lines, so it is a part of the file or an example.",
            edit.path,
            old.len()
        )
    })
}

/// Tells the model why the edits of its text were not applied, and how to send them.
fn explain_unapplied_edits(
    format: Format,
    problems: &[String],
    failed: &[EditFailure],
    rules: &ProseRules,
) -> String {
    let failed = failed.iter().map(|failure| failure.message.as_str());
    let said: Vec<&str> =
        problems.iter().map(String::as_str).chain(failed).take(MAX_REPORTED_PROBLEMS).collect();
    format!(
        "the text of your reply has an edit in the format `{format}` that could not be applied. Nothing was \
         changed.\n{}\n{}",
        said.join("\n"),
        rules.how_to_edit
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use journeyman_protocol::RelPath;

    use super::*;

    const FILE: &str = "def add(a, b):\n    return a - b\n\n\ndef one():\n    return 1\n";

    fn files() -> BTreeMap<RelPath, String> {
        [(RelPath::parse("src/calc.py").unwrap(), FILE.to_owned())].into()
    }

    fn rules(accepted: AcceptedFormats) -> ProseRules {
        ProseRules { accepted, finished: true, recaps: false, how_to_edit: edit_instruction(true) }
    }

    fn read_all(text: &str) -> ProseEdits {
        read_prose_edits(text, &rules(AcceptedFormats::All), &files())
    }

    fn whole(content: &str) -> String {
        format!("Here it is.\n\nsrc/calc.py\n```python\n{content}```\n")
    }

    /// The same fix in each format.
    fn formats() -> Vec<(&'static str, String)> {
        let fixed = FILE.replace("a - b", "a + b");
        vec![
            ("edit", "<edit>\n<file>src/calc.py</file>\n<search>\n    return a - b\n</search>\n<replace>\n    return a + b\n</replace>\n</edit>\n".to_owned()),
            ("blocks", "src/calc.py\n```python\n<<<<<<< SEARCH\n    return a - b\n=======\n    return a + b\n>>>>>>> REPLACE\n```\n".to_owned()),
            ("patch", "*** Begin Patch\n*** Update File: src/calc.py\n@@\n def add(a, b):\n-    return a - b\n+    return a + b\n*** End Patch\n".to_owned()),
            ("udiff", "```diff\n--- a/src/calc.py\n+++ b/src/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n```\n".to_owned()),
            ("whole", whole(&fixed)),
            ("lazy", whole("def add(a, b):\n    return a + b\n\n\n# ... existing code ...\n")),
            ("tool", "```json\n{\"path\": \"src/calc.py\", \"old_string\": \"return a - b\", \"new_string\": \"return a + b\"}\n```\n".to_owned()),
        ]
    }

    #[test]
    fn every_format_of_the_engine_is_read() {
        for (name, text) in formats() {
            let text = format!("The sign is wrong.\n\n{text}\nThat fixes it.\n");
            let found = read_all(&text);
            let ProseEdits::Found { inputs, problems } = found else { panic!("{name}: {found:?}") };
            assert_eq!(problems, [""; 0], "{name}");
            assert_eq!(inputs.len(), 1, "{name}");
            assert_eq!(inputs[0]["path"], "src/calc.py", "{name}");
        }
    }

    #[test]
    fn what_explains_is_no_edit() {
        let explanations = [
            "No change is needed.".to_owned(),
            "For example:\n```python\nprint(add(1, 2))\n```\n".to_owned(),
            // It is in the file already.
            whole(FILE),
            "```diff\n--- a/src/calc.py\n+++ b/src/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a * b\n+    return a - b\n```\n".to_owned(),
            "Run this:\n```sh\npython -m pytest\n```\n".to_owned(),
            "```json\n{\"content\": \"x\", \"command\": \"y\"}\n```\n".to_owned(),
        ];
        for text in explanations {
            assert_eq!(read_all(&text), ProseEdits::None, "{text}");
        }
        let told = whole("def other():\n    return 2\n");
        assert!(matches!(read_all(&told), ProseEdits::Unusable(_)));
        let after_an_edit = ProseRules { recaps: true, ..rules(AcceptedFormats::All) };
        assert_eq!(
            read_prose_edits(&told, &after_an_edit, &files()),
            ProseEdits::None,
            "it tells of the edit"
        );
    }

    #[test]
    fn only_accepted_formats_are_read() {
        for (name, text) in formats() {
            assert_eq!(read_prose_edits(&text, &rules(AcceptedFormats::None), &files()), ProseEdits::None);
            let marked = read_prose_edits(&text, &rules(AcceptedFormats::Marked), &files());
            let is_marked = ["edit", "blocks", "patch"].contains(&name);
            assert_eq!(marked != ProseEdits::None, is_marked, "{name}");
        }
    }

    #[test]
    fn the_model_is_told_why_and_how() {
        let ProseEdits::Unusable(why) = read_all(
            "```diff\n--- a/src/calc.py\n+++ b/src/calc.py\n@@ -1,2 +1,2 @@\n def sub(a, b):\n-    return b - a\n+    return a\n```\n",
        ) else {
            panic!()
        };
        for part in ["`udiff`", "src/calc.py", "Nothing was changed", "call `edit_file`"] {
            assert!(why.contains(part), "{part}: {why}");
        }
    }
}
