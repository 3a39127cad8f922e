//! Old tool results become one line each.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use journeyman_protocol::{
    Block, CallId, Message, ResultPart, Role, TokenCounter as _, Tokens, ToolUse, clip_to_bytes,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::text_calls::{TextResult, calls_of_text_results, parse_text_result, result_as_text};
use crate::counting::Counter;

/// Replies whose results always stay: the model is working with them.
const KEPT_REPLIES: usize = 2;
/// Results of fewer tokens stay: a line in their place would save little.
const MIN_AGED_TOKENS: Tokens = Tokens(80);
/// Maximum bytes of the arguments in a line.
const MAX_ARGUMENT_BYTES: usize = 160;
/// Maximum bytes of an error in a line.
const MAX_ERROR_BYTES: usize = 240;

/// The tool that runs commands.
pub(super) const COMMAND_TOOL: &str = "run_command";
/// The words of a line between what it is about and the handle.
const AGED_NOTE: &str = " is no longer shown; read_file with path output:";

/// A result that is replaced by one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgedResult {
    /// The call of the result.
    pub call: CallId,
    /// The line that the model sees from now on. It says how to read the result again.
    pub line: String,
}

/// A result, as a block of its own or written as text.
struct AnyResult<'a> {
    id: CallId,
    content: Cow<'a, [ResultPart]>,
    is_error: bool,
}

impl<'a> AnyResult<'a> {
    /// Returns the result of a block in a message of this role.
    fn of(role: Role, block: &'a Block) -> Option<Self> {
        match block {
            Block::ToolResult { id, content, is_error } => {
                Some(Self { id: id.clone(), content: Cow::Borrowed(content), is_error: *is_error })
            }
            Block::Text { text } if role == Role::User => {
                let result = parse_text_result(text)?;
                let content = vec![ResultPart::Text { text: result.content.to_owned() }];
                Some(Self { id: result.call, content: Cow::Owned(content), is_error: result.is_error })
            }
            _ => None,
        }
    }
}

/// Selects the results to be replaced: all but those of the last two replies and the newest ones
/// that have `keep` tokens together. Returns them with the number of tokens that they free.
#[must_use]
pub fn age_results(messages: &[Message], keep: Tokens, counter: &Counter) -> (Vec<AgedResult>, Tokens) {
    let calls: HashMap<&CallId, &ToolUse> =
        messages.iter().flat_map(Message::tool_uses).map(|call| (&call.id, call)).collect();
    let of_text = calls_of_text_results(messages);
    let replies = messages.iter().enumerate().filter(|(_, it)| it.role == Role::Assistant);
    let newest = replies.rev().nth(KEPT_REPLIES.saturating_sub(1)).map_or(0, |(at, _)| at);
    let (mut kept, mut freed, mut aged) = (Tokens(0), Tokens(0), Vec::new());
    for (at, message) in messages.iter().enumerate().rev() {
        for block in message.content.iter().rev() {
            let Some(AnyResult { id, content, is_error }) = AnyResult::of(message.role, block) else {
                continue;
            };
            let tokens = counter.count_block(block);
            if at > newest || kept + tokens <= keep {
                kept += tokens;
                continue;
            }
            // Older results are longer ago, so they go too even if they would fit.
            kept = keep;
            if tokens < MIN_AGED_TOKENS || is_aged(&content, &id) {
                continue;
            }
            let call = calls.get(&id).copied().or_else(|| of_text.get(&id));
            let line = aged_result_line(call, &id, &content, is_error);
            let saved = tokens.0.saturating_sub(counter.count(&line).0);
            if saved > 0 {
                freed += Tokens(saved);
                aged.push(AgedResult { call: id, line });
            }
        }
    }
    aged.reverse();
    (aged, freed)
}

/// Replaces results by their lines.
pub fn apply_aged(messages: &mut [Message], aged: &[AgedResult]) {
    let mut lines: HashMap<&CallId, &str> =
        aged.iter().map(|result| (&result.call, result.line.as_str())).collect();
    let wanted: HashSet<&CallId> = lines.keys().copied().collect();
    let users = messages.iter_mut().filter(|message| message.role == Role::User);
    for block in users.flat_map(|message| message.content.iter_mut()) {
        match block {
            Block::ToolResult { id, content, .. } if wanted.contains(id) => {
                if let Some(line) = lines.remove(id) {
                    *content = vec![ResultPart::Text { text: line.to_owned() }];
                }
            }
            Block::Text { text } => {
                if let Some(TextResult { call, tool, is_error, .. }) = parse_text_result(text)
                    && let Some(line) = lines.remove(&call)
                {
                    *text = result_as_text(&call, tool, is_error, line);
                }
            }
            _ => {}
        }
    }
}

/// Returns the line that stands for a result.
fn aged_result_line(call: Option<&ToolUse>, id: &CallId, parts: &[ResultPart], is_error: bool) -> String {
    let tool = call.map_or("a call", |call| call.name.as_str());
    let arguments = call.map(|call| main_argument(&call.input)).unwrap_or_default();
    let gap = if arguments.is_empty() { "" } else { " " };
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| if let ResultPart::Text { text } = part { Some(text.as_str()) } else { None })
        .collect();
    let images = parts.len() - texts.len();
    let (lines, bytes) =
        texts.iter().fold((0, 0), |(lines, bytes), text| (lines + text.lines().count(), bytes + text.len()));
    let mut about = format!("{lines} lines, {bytes} bytes");
    if images > 0 {
        about.push_str(&format!(", {images} images"));
    }
    let first = texts.iter().flat_map(|text| text.lines()).map(str::trim).find(|line| !line.is_empty());
    let first = clip_to_bytes(first.unwrap_or_default(), MAX_ERROR_BYTES);
    let outcome = match is_error {
        true => format!(" failed: {first}"),
        // Its first line is the exit code.
        false if tool == COMMAND_TOOL => format!(": {first}"),
        false => String::new(),
    };
    format!("[{tool}{gap}{arguments}{outcome} ({about}){AGED_NOTE}{id} shows it again]")
}

/// Returns true for the line of a result that has aged.
fn is_aged(content: &[ResultPart], id: &CallId) -> bool {
    let end = format!("{AGED_NOTE}{id} shows it again]");
    matches!(content, [ResultPart::Text { text }] if text.lines().count() == 1 && text.trim_end().ends_with(&end))
}

/// Returns the outcome that the line of an aged result tells; `None` for any other text.
pub(super) fn aged_outcome<'a>(call: &ToolUse, text: &'a str) -> Option<&'a str> {
    let told = text.strip_prefix('[')?.strip_prefix(call.name.as_str())?;
    let told = told.trim_start().strip_prefix(main_argument(&call.input).as_str())?;
    let (told, _) = told.rsplit_once(AGED_NOTE)?;
    let (outcome, _) = told.rsplit_once(" (")?;
    Some(outcome.trim_start_matches(" failed").trim_start_matches(": "))
}

/// Returns the argument that tells the most about a call: a path, a command or a pattern.
pub(super) fn main_argument(input: &Value) -> String {
    const MAIN_ARGUMENTS: &[&str] =
        &["path", "file_path", "command", "pattern", "query", "symbol", "name", "glob", "url", "id"];
    let told = MAIN_ARGUMENTS.iter().find_map(|name| input.get(name)?.as_str());
    let any = || input.as_object()?.values().find_map(Value::as_str);
    let text = told.or_else(any).unwrap_or_default();
    clip_to_bytes(text.lines().next().unwrap_or_default(), MAX_ARGUMENT_BYTES).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counter() -> Counter {
        Counter::new(&journeyman_protocol::ModelLimits::conservative_default(false))
    }

    fn exchange(number: usize, result: &str, is_error: bool) -> [Message; 2] {
        let id = CallId::new(format!("c{number}"));
        let call = ToolUse {
            id: id.clone(),
            name: "read_file".to_owned(),
            input: json!({ "path": format!("src/{number}.rs") }),
            malformed: None,
            signature: None,
        };
        [
            Message { role: Role::Assistant, content: vec![Block::ToolUse(call)] },
            Message { role: Role::User, content: vec![Block::result(id, result, is_error)] },
        ]
    }

    #[test]
    fn old_results_become_lines_and_the_newest_stay() {
        let mut messages = vec![Message::user_text("do it")];
        let long = "let value = compute(1, 2, 3);\n".repeat(40);
        for number in 0..6 {
            messages.extend(exchange(number, &long, number == 1));
        }
        let (aged, freed) = age_results(&messages, Tokens(0), &counter());
        assert_eq!(aged.iter().map(|it| it.call.as_str()).collect::<Vec<_>>(), ["c0", "c1", "c2", "c3"]);
        assert!(freed > Tokens(1_000), "{freed}");
        assert_eq!(
            aged[0].line,
            "[read_file src/0.rs (40 lines, 1200 bytes) is no longer shown; read_file with path output:c0 shows it \
             again]"
        );
        assert!(aged[1].line.contains("failed: let value = compute"), "{}", aged[1].line);
        let before = messages.clone();
        apply_aged(&mut messages, &aged);
        assert_eq!(messages[9..], before[9..], "the newest results are untouched");
        assert_eq!(age_results(&messages, Tokens(0), &counter()).0, [], "lines don't age");
        let room = Tokens(3 * counter().count(&long).0 + 100);
        assert_eq!(age_results(&before, room, &counter()).0.len(), 3, "newer results fit the room");
    }

    #[test]
    fn a_line_tells_how_a_command_ended() {
        let command = |text: &str| ToolUse {
            id: CallId::new("c1"),
            name: COMMAND_TOOL.to_owned(),
            input: json!({ "command": text }),
            malformed: None,
            signature: None,
        };
        let line = |call: &ToolUse, result: &str, is_error| {
            aged_result_line(Some(call), &call.id, &[ResultPart::Text { text: result.to_owned() }], is_error)
        };
        let tests = command("cargo test (all): now");
        let passed = line(&tests, "exit code 0\n12 passed\n", false);
        assert_eq!(
            passed,
            "[run_command cargo test (all): now: exit code 0 (2 lines, 22 bytes) is no longer shown; read_file with \
             path output:c1 shows it again]"
        );
        assert_eq!(aged_outcome(&tests, &passed), Some("exit code 0"));
        assert_eq!(
            aged_outcome(&tests, &line(&tests, "exit code 101 (x)\n", true)),
            Some("exit code 101 (x)")
        );
        assert_eq!(aged_outcome(&command("ls"), &passed), None);
        assert_eq!(aged_outcome(&tests, "exit code 0"), None);
    }

    #[test]
    fn a_long_line_does_not_age_again() {
        let error =
            "error[E0308]: the trait bound `Vec<Vec<Option<u64>>>: Into<Box<dyn Iterator>>` isn't met ";
        let command =
            "RUST_BACKTRACE=1 cargo test --package shop --test suite -- cart::totals::of_many --nocapture ";
        for (tool, argument) in
            [(COMMAND_TOOL, command.repeat(2)), ("read_file", "文書/設計/説明/".repeat(7))]
        {
            let mut messages = vec![Message::user_text("do it")];
            for number in 0..6 {
                let mut both = exchange(number, &format!("{}\nmore\n", error.repeat(9)), true);
                if let Some(Block::ToolUse(call)) = both[0].content.first_mut() {
                    call.name = tool.to_owned();
                    call.input = json!({ "path": argument, "command": argument });
                }
                messages.extend(both);
            }
            let (aged, _) = age_results(&messages, Tokens(0), &counter());
            assert!(aged.len() == 4 && counter().count(&aged[0].line) > MIN_AGED_TOKENS, "{}", aged[0].line);
            apply_aged(&mut messages, &aged);
            messages.extend(exchange(6, "ok", false));
            messages.extend(exchange(7, "ok", false));
            let again = age_results(&messages, Tokens(0), &counter()).0;
            assert_eq!(again.iter().map(|it| it.call.as_str()).collect::<Vec<_>>(), ["c4", "c5"], "{tool}");
        }
    }

    #[test]
    fn a_short_result_stays() {
        let mut messages = vec![Message::user_text("do it")];
        for number in 0..6 {
            messages.extend(exchange(number, "ok", false));
        }
        assert_eq!(age_results(&messages, Tokens(0), &counter()), (Vec::new(), Tokens(0)));
    }
}
