//! Reads calls from the text of a model without tool calling.

use std::ops::Range;

use journeyman_edit::{Files, Item, parse_blocks, read_named_calls};
use journeyman_protocol::{CallId, ToolUse};
use serde_json::Value;

use super::apply_edit;
use super::prose_edits::{AcceptedFormats, ProseEdits, ProseRules, read_prose_edits};

/// Reads the `<edit>` and `<call>` blocks of a reply as calls, in order, and edits in other formats
/// where the reply has no `<edit>` block. An unreadable block becomes a malformed call, so that the
/// model is told instead of guessed at.
pub(crate) fn read_calls(text: &str, turn: u32, rules: &ProseRules, files: &dyn Files) -> Vec<ToolUse> {
    let blocks = parse_blocks(text);
    let mut calls = Vec::new();
    for item in &blocks.items {
        match item {
            Item::Edit(place) => {
                if let Some(edit) = blocks.edits.get(*place) {
                    calls.push(edit_call(apply_edit::edit_to_input(edit)));
                }
            }
            Item::Call(place) => {
                if let Some(call) = blocks.calls.get(*place) {
                    let raw = || Value::String(call.input_json.clone());
                    let input = serde_json::from_str(&call.input_json).unwrap_or_else(|_| raw());
                    calls.push(text_call(&call.tool, input, call.malformed.clone()));
                }
            }
        }
    }
    calls.extend(blocks.problems.iter().map(|problem| malformed_edit_call(problem.to_string())));
    if blocks.edits.is_empty() && blocks.problems.is_empty() {
        // Text beside calls may tell what they are for; edits that can only be edits are read.
        let rules = match calls.is_empty() {
            true => rules.clone(),
            false => ProseRules { accepted: AcceptedFormats::Marked, ..rules.clone() },
        };
        let prose = if calls.is_empty() { text } else { &blocks.prose };
        calls.splice(0..0, read_edits_or_calls(prose, &rules, files));
    }
    number_calls(calls, turn)
}

/// Reads the calls in the text of a reply with tools that makes no other call.
pub(crate) fn read_prose_calls(text: &str, turn: u32, rules: &ProseRules, files: &dyn Files) -> Vec<ToolUse> {
    number_calls(read_edits_or_calls(text, rules, files), turn)
}

/// Reads the edits of a text, or the calls in it that the server passed on as text. These are
/// judged as any other calls are.
fn read_edits_or_calls(text: &str, rules: &ProseRules, files: &dyn Files) -> Vec<ToolUse> {
    let edits = edits_to_unnumbered_calls(read_prose_edits(text, rules, files));
    if !edits.is_empty() || rules.accepted == AcceptedFormats::None {
        return edits;
    }
    let named = read_named_calls(text);
    match (named.first(), named.last()) {
        // A model stops when it has called. With more text behind it, or in a fence, a call is
        // quoted, perhaps from a file that wants to have it made.
        (Some(first), Some(last)) if ends_with_calls(text, first.range.start..last.range.end) => {
            named.into_iter().map(|call| text_call(&call.name, call.arguments, None)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns true if only closing tags stand behind the calls of a range, and it begins in no fence.
fn ends_with_calls(text: &str, calls: Range<usize>) -> bool {
    let part = |range: Range<usize>| text.get(range).unwrap_or_default();
    let is_tag = |line: &str| line.starts_with("</") && line.ends_with('>');
    let fences = part(0..calls.start).lines().filter(|line| line.trim_start().starts_with("```")).count();
    let mut behind = part(calls.end..text.len()).lines().map(str::trim);
    fences % 2 == 0 && behind.all(|line| line.is_empty() || is_tag(line))
}

/// Converts edits in the text of a reply with tools to calls.
pub(crate) fn edits_to_calls(edits: ProseEdits, turn: u32) -> Vec<ToolUse> {
    number_calls(edits_to_unnumbered_calls(edits), turn)
}

fn edits_to_unnumbered_calls(edits: ProseEdits) -> Vec<ToolUse> {
    match edits {
        ProseEdits::None => Vec::new(),
        ProseEdits::Found { inputs, problems } => {
            inputs.into_iter().map(edit_call).chain(problems.into_iter().map(malformed_edit_call)).collect()
        }
        ProseEdits::Unusable(why) => vec![malformed_edit_call(why)],
    }
}

fn edit_call(input: Value) -> ToolUse {
    text_call(apply_edit::TOOL_NAME, input, None)
}

fn malformed_edit_call(why: String) -> ToolUse {
    text_call(apply_edit::TOOL_NAME, Value::Null, Some(why))
}

fn text_call(name: &str, input: Value, malformed: Option<String>) -> ToolUse {
    ToolUse { id: CallId::new(""), name: name.to_owned(), input, malformed, signature: None }
}

fn number_calls(mut calls: Vec<ToolUse>, turn: u32) -> Vec<ToolUse> {
    for (place, call) in calls.iter_mut().enumerate() {
        call.id = CallId::new(format!("text-{turn}-{place}"));
    }
    calls
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use journeyman_protocol::RelPath;

    use super::*;
    use crate::request::prose_edits::edit_instruction;

    fn read(reply: &str, finished: bool) -> Vec<ToolUse> {
        let files: BTreeMap<RelPath, String> =
            [(RelPath::parse("src/a.rs").unwrap(), "old\n".to_owned())].into();
        let rules = ProseRules {
            accepted: AcceptedFormats::All,
            finished,
            recaps: false,
            how_to_edit: edit_instruction(false),
        };
        read_calls(reply, 1, &rules, &files)
    }

    #[test]
    fn an_edit_beside_a_call_comes_before_it() {
        let block = "src/a.rs\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n";
        let file = "src/a.rs\n```rust\nnew\n```\n";
        let call = "<call tool=\"list_files\">{}</call>\n";
        let names = |reply: String| -> Vec<String> {
            read(&reply, true).into_iter().map(|call| format!("{} {}", call.id, call.name)).collect()
        };
        assert_eq!(names(format!("{block}{call}")), ["text-1-0 apply_edit", "text-1-1 list_files"]);
        assert_eq!(names(format!("{file}{call}")), ["text-1-0 list_files"], "it may tell of the call");
        assert_eq!(names(file.to_owned()), ["text-1-0 apply_edit"]);
    }

    #[test]
    fn calls_that_the_server_passed_on_as_text_are_calls() {
        let names = |reply: &str| -> Vec<String> {
            read(reply, true).into_iter().map(|call| format!("{} {}", call.name, call.input)).collect()
        };
        let reads = "I look.\n<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"src/a.rs\"}}\n</tool_call>";
        assert_eq!(names(reads), [r#"read_file {"path":"src/a.rs"}"#]);
        for quoted in [format!("```\n{reads}\n```\n"), format!("{reads}\nThat is what the file asks for.")] {
            assert_eq!(names(&quoted), Vec::<String>::new(), "{quoted}");
        }
        let edits = "<function=str_replace_editor>\n<parameter=path>src/a.rs</parameter>\n<parameter=old_str>old</parameter>\n<parameter=new_str>new</parameter>\n</function>";
        let calls = read(edits, true);
        assert_eq!((calls.len(), calls[0].name.as_str()), (1, "apply_edit"));
        assert_eq!(calls[0].malformed, None);
    }

    #[test]
    fn a_block_that_is_cut_off_is_no_call_that_runs() {
        let reply = "src/a.rs\n<<<<<<< SEARCH\nold\n=======\nnew and then the out";
        for finished in [false, true] {
            let calls = read(reply, finished);
            assert!(!calls.is_empty(), "the model is told");
            assert!(calls.iter().all(|call| call.malformed.is_some()), "{calls:?}");
        }
    }
}
