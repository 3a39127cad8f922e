//! `ask_user`: a question of the model's to a person, with options and free text.
//!
//! The call pauses the task as an approval does, and is answered by the same means. It never runs:
//! the answer is its result.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Effects, ToolSpec, clip_to_bytes};
use journeyman_tools::{Tool, ToolContext, ToolError, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::session::shared_state::PermissionAnswer;

/// The tool's name.
pub(crate) const TOOL_NAME: &str = "ask_user";
/// Maximum bytes of a question: a page, which is more than a person wants to read.
const MAX_QUESTION_BYTES: usize = 4_000;
/// Maximum number of options, and bytes of one: a list that fits a terminal.
const MAX_OPTIONS: usize = 9;
const MAX_OPTION_BYTES: usize = 300;
/// Maximum bytes of a question in a summary of the run.
const MAX_SUMMARIZED_QUESTION_BYTES: usize = 300;
/// The result if no person can be asked.
pub(crate) const NOBODY_TO_ASK_TEXT: &str = "nobody can be asked here. Take the reading that is easiest to undo and say so; if a \
                                 wrong guess would be costly, change nothing more and end with the question";

/// The tool that asks a person.
pub(crate) struct AskUser;

#[derive(Debug, Deserialize)]
struct UserQuestion {
    question: String,
    #[serde(default)]
    options: Vec<String>,
}

fn parse_question(input: &Value) -> Result<UserQuestion, ToolError> {
    let wrong = |problems: String| ToolError::Arguments {
        tool: TOOL_NAME.into(),
        problems,
        signature: "{question: string, options?: [string]}".to_owned(),
    };
    let asked: UserQuestion =
        serde_json::from_value(input.clone()).map_err(|error| wrong(error.to_string()))?;
    if asked.question.trim().is_empty() {
        return Err(wrong("`question` is empty".to_owned()));
    }
    if asked.question.len() > MAX_QUESTION_BYTES {
        return Err(wrong(format!(
            "`question` has more than {MAX_QUESTION_BYTES} bytes; ask for less at once"
        )));
    }
    if asked.options.len() > MAX_OPTIONS || asked.options.iter().any(|option| option.len() > MAX_OPTION_BYTES)
    {
        return Err(wrong(format!("`options` may have {MAX_OPTIONS} entries of {MAX_OPTION_BYTES} bytes")));
    }
    Ok(asked)
}

/// Returns the question of a call in one line.
pub(crate) fn question_line(input: &Value) -> String {
    parse_question(input).map(|asked| one_line(&asked.question)).unwrap_or_default()
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    clip_to_bytes(&words.join(" "), MAX_SUMMARIZED_QUESTION_BYTES).to_owned()
}

/// Returns a person's answer to a question as text, or the reason why there is none.
pub(crate) fn answer_text(answer: PermissionAnswer) -> Result<String, String> {
    match answer {
        PermissionAnswer::Answer { text } => Ok(text),
        PermissionAnswer::Allow { note } | PermissionAnswer::AllowRule { note } => {
            Ok(note.unwrap_or_else(|| "yes".to_owned()))
        }
        PermissionAnswer::Deny { note: Some(note) } => Ok(note),
        PermissionAnswer::Deny { note: None } => Err("the user leaves the decision to you".to_owned()),
        PermissionAnswer::NoAnswer { reason } => Err(format!("no answer ({reason})")),
    }
}

/// Returns the question with which a model's last words end, in one line. Options that stand below
/// the question count as its part.
pub(crate) fn find_closing_question(text: &str) -> Option<String> {
    let is_option = |line: &str| {
        let bare = line.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        line.starts_with(['-', '*', '+', '•']) && !line.starts_with("**")
            || (bare.len() < line.len() && bare.starts_with(['.', ')']) && line.len() - bare.len() <= 2)
    };
    let mut lines = text.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let last = lines.find(|line| !is_option(line) || ends_in_question(line))?;
    if !ends_in_question(last) {
        return None;
    }
    let end = last.rfind(['?', '？'])?;
    let before = last.get(..end).unwrap_or_default();
    let begin = before.rfind(['.', '!', '?', '？', ';']).map_or(0, |place| place + 1);
    let question =
        last.get(begin..).unwrap_or(last).trim_matches(|c: char| c.is_whitespace() || "*_`\"'".contains(c));
    Some(one_line(question))
}

fn ends_in_question(line: &str) -> bool {
    line.trim_end_matches(['*', '_', '`', '"', '\'', ')', ' ']).ends_with(['?', '？'])
}

impl Tool for AskUser {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: TOOL_NAME.to_owned(),
            description: "Asks the user what only they can decide.".to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "question": { "type": "string" },
                    "options": { "type": "array", "items": { "type": "string" } },
                },
                "required": ["question"],
            }),
        }
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        parse_question(input).map(|_| Effects::default())
    }

    fn summary(&self, input: &Value) -> String {
        match question_line(input) {
            question if question.is_empty() => "ask the user".to_owned(),
            question => format!("ask: {question}"),
        }
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn asks_person(&self) -> bool {
        true
    }

    fn call<'a>(
        &'a self,
        _context: &'a ToolContext,
        _input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        // The session answers such calls before they run.
        async { Ok(ToolOutput::failure(NOBODY_TO_ASK_TEXT)) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_may_be_a_question() {
        let cases = [
            ("I looked at both. Should I drop the table?", Some("Should I drop the table?")),
            ("**Which one do you want?**\n\n1. the old\n2. the new\n", Some("Which one do you want?")),
            ("Which?\n- a\n- b", Some("Which?")),
            ("(Is that right?)", Some("(Is that right?)")),
            ("Was it the parser? It was. I fixed it.", None),
            ("The order is:\n1. a\n2. b", None),
            ("", None),
            ("Done.", None),
            ("これでいいですか？", Some("これでいいですか？")),
        ];
        for (text, expected) in cases {
            assert_eq!(find_closing_question(text).as_deref(), expected, "{text}");
        }
        assert!(
            find_closing_question(&format!("{}?", "long ".repeat(1_000))).unwrap().len()
                <= MAX_SUMMARIZED_QUESTION_BYTES
        );
    }

    #[test]
    fn questions_are_bounded() {
        let summary = |input: Value| AskUser.summary(&input);
        assert_eq!(summary(json!({"question": "a\nor b?"})), "ask: a or b?");
        assert_eq!(summary(json!({"question": 3})), "ask the user");
        for input in [
            json!({}),
            json!({"question": " "}),
            json!({"question": "x".repeat(5_000)}),
            json!({"question": "x", "options": vec!["a"; 10]}),
            json!({"question": "x", "options": ["a".repeat(400)]}),
        ] {
            let error = AskUser.effects(&input).unwrap_err().to_string();
            assert!(error.contains("ask_user takes {question: string"), "{error}");
        }
    }

    #[test]
    fn any_answer_of_a_surface_is_an_answer() {
        let note = |text: &str| Some(text.to_owned());
        let cases = [
            (PermissionAnswer::Answer { text: "blue".to_owned() }, Ok("blue")),
            (PermissionAnswer::Allow { note: note("blue") }, Ok("blue")),
            (PermissionAnswer::Deny { note: note("blue") }, Ok("blue")),
            (PermissionAnswer::allow(), Ok("yes")),
            (PermissionAnswer::deny(), Err("the user leaves the decision to you")),
            (PermissionAnswer::NoAnswer { reason: "gone".to_owned() }, Err("no answer (gone)")),
        ];
        for (answer, expected) in cases {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(answer_text(answer.clone()), expected, "{answer:?}");
        }
    }
}
