//! The state of the work, drawn from a conversation by code.

use std::collections::HashSet;

use journeyman_protocol::{
    Block, CallId, Message, ResultPart, Role, TokenCounter, Tokens, ToolUse, clip_to_bytes,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::aging::{COMMAND_TOOL, aged_outcome, main_argument};
use super::section::{Section, SectionItem, render_sections};
use super::sentences::{StatementKind, sentence_weight, split_sentences, statement_kind};
use super::shorten::{recall_note, shorten};
use super::text_calls::{calls_in_text, calls_of_text_results, parse_text_result, without_calls};

/// Maximum statements of one kind. With [`MAX_BYTES`](super::sentences) each they have about 30,000
/// tokens, of which a request shows its share.
const MAX_STATEMENTS: usize = 300;
/// Maximum number of files.
const MAX_FILES: usize = 400;
/// Maximum number of commands that are remembered.
const MAX_COMMANDS: usize = 60;
/// Maximum bytes of one error of a call.
const MAX_ERROR_BYTES: usize = 240;
/// Maximum bytes of an answer of the user.
const MAX_ANSWER_BYTES: usize = 1_000;
/// A message of the user that is longer is given by its statements where room is short, in tokens.
const MAX_WHOLE_MESSAGE_TOKENS: Tokens = Tokens(400);
/// A report of an agent that is longer is given by both ends, in tokens.
const MAX_WHOLE_REPORT_TOKENS: Tokens = Tokens(400);
/// The rank of a short message of the user, and of a demand in a long one.
const WHOLE_MESSAGE_RANK: u8 = 3;

/// The part of the text for the newest task, in hundredths: it is what the model works on.
const TASK_PERCENT: u64 = 60;
/// The part of the text up to which the user's earlier messages are given whole, in hundredths.
/// Less than their section has where every other section has something.
const WHOLE_SAID_PERCENT: u64 = 25;
/// The part of the text that one note of a hook may have, in hundredths. Less than their section
/// has.
const NOTES_PERCENT: u64 = 6;
/// Tokens of a heading, and of the marks around an item.
const HEADING_TOKENS: u64 = 16;
const ITEM_TOKENS: u64 = 6;
/// The heading of a model's summary.
const SUMMARY_HEADING: &str = "Summary of what came before the newest messages:";
/// The tool that asks the user.
const ASKING_TOOL: &str = "ask_user";
/// The tools that change the files that they name.
const CHANGING_TOOLS: [&str; 7] =
    ["edit_file", "write_file", "apply_edit", "apply_patch", "edit_symbol", "delete_file", "move_file"];
/// The lines of a patch that name a file.
const PATCH_FILE_HEADERS: [&str; 4] =
    ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];

/// Returns the files that a call's arguments name.
fn paths_of(input: &Value) -> impl Iterator<Item = &str> {
    let one = ["path", "file_path", "file"].iter().find_map(|name| input.get(name)?.as_str());
    let several = input.get("paths").and_then(Value::as_array).into_iter().flatten();
    let patch = input.get("patch").and_then(Value::as_str).unwrap_or_default();
    let patched = patch
        .lines()
        .filter_map(|line| PATCH_FILE_HEADERS.iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim));
    let moved = input.get("to").and_then(Value::as_str);
    one.into_iter().chain(several.filter_map(Value::as_str)).chain(patched).chain(moved)
}

/// The knowledge that outlives a compaction. It is carried from one compaction to the next, so that
/// the tenth still has what the first had.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkingState {
    /// Answers of the user to questions of the model, with the question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// Statements of the model: what it chose and found out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    /// Statements of the model about rules that it keeps to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    /// Attempts that failed, with how.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Questions that the model asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<String>,
    /// The newest summary that a model wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prose: Option<String>,
    /// Commands and how they ended, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Files that were read or changed, in the order of the first touch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileNote>,
}

/// A file of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileNote {
    /// The path as the model named it.
    pub path: String,
    /// True if a call changed it.
    pub changed: bool,
}

/// A report of an agent, as the model first got it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegatedReport {
    /// The call whose result it is; `None` if it came as a message.
    pub call: Option<CallId>,
    /// The report.
    pub text: String,
}

impl DelegatedReport {
    /// Returns the report as an item; of a long one both ends.
    fn to_item(&self, counter: &dyn TokenCounter) -> String {
        let recall = self.call.as_ref().map(recall_note);
        let text = self.text.trim();
        shorten(text, MAX_WHOLE_REPORT_TOKENS, recall.as_deref(), counter).unwrap_or_else(|| text.to_owned())
    }
}

/// Facts that the session has by itself.
#[derive(Debug, Clone, Default)]
pub struct StateFacts<'a> {
    /// The user's messages before the newest task, in their words, oldest first; in a session with
    /// one task all of them. The first one is the first task.
    pub said: &'a [String],
    /// The messages of the newest task, if it isn't the first.
    pub task: &'a [String],
    /// Texts that the user pinned. They stand beside the state.
    pub pinned: &'a [String],
    /// The reports of agents, oldest first.
    pub reports: &'a [DelegatedReport],
    /// The todos, a line each.
    pub todos: Vec<String>,
    /// The newest results of the project's checks, a line each.
    pub evidence: Vec<String>,
    /// The present content hashes of files, by path, in hexadecimal.
    pub hashes: Vec<(String, String)>,
}

impl WorkingState {
    /// Adds what messages say that are about to be left out.
    pub fn absorb(&mut self, messages: &[Message]) {
        let mut calls: Vec<&ToolUse> = Vec::new();
        let of_text = calls_of_text_results(messages);
        for message in messages {
            for block in &message.content {
                match block {
                    Block::Text { text } if message.role == Role::Assistant => {
                        self.absorb_text(&without_calls(text));
                        calls_in_text(text).iter().for_each(|call| self.absorb_call(call));
                    }
                    Block::Text { text } => {
                        if let Some(result) = parse_text_result(text) {
                            let parts = [ResultPart::Text { text: result.content.to_owned() }];
                            let call = of_text.get(&result.call);
                            self.absorb_result(call, &result.call, &parts, result.is_error);
                        }
                    }
                    Block::ToolUse(call) => {
                        self.absorb_call(call);
                        calls.push(call);
                    }
                    Block::ToolResult { id, content, is_error } => {
                        let call = calls.iter().rev().find(|call| call.id == *id);
                        self.absorb_result(call.copied(), id, content, *is_error);
                    }
                    _ => {}
                }
            }
        }
        drop_minor_sentences(&mut self.decisions, MAX_STATEMENTS);
        let Self { answers, decisions, constraints, failures, questions, .. } = self;
        for list in [answers, decisions, constraints, failures, questions] {
            drop_middle(list, MAX_STATEMENTS);
        }
        drop_middle(&mut self.commands, MAX_COMMANDS);
        let over = self.files.len().saturating_sub(MAX_FILES);
        let mut unchanged = self.files.iter().filter(|file| !file.changed).count().min(over);
        self.files.retain(|file| {
            let drop = !file.changed && unchanged > 0;
            unchanged -= usize::from(drop);
            !drop
        });
        self.files.truncate(MAX_FILES);
    }

    fn absorb_text(&mut self, text: &str) {
        for sentence in split_sentences(text) {
            let list = match statement_kind(sentence) {
                Some(StatementKind::Constraint) => &mut self.constraints,
                Some(StatementKind::Failure) => &mut self.failures,
                Some(StatementKind::Question) => &mut self.questions,
                Some(StatementKind::Decision) => &mut self.decisions,
                None if sentence_weight(sentence).is_some() => &mut self.decisions,
                None => continue,
            };
            push_if_new(list, sentence.to_owned());
        }
    }

    /// Notes the files that a call names.
    fn absorb_call(&mut self, call: &ToolUse) {
        for path in paths_of(&call.input).filter(|path| !path.is_empty() && !path.starts_with("output:")) {
            if self.files.iter().all(|file| file.path != path) {
                self.files.push(FileNote { path: path.to_owned(), changed: false });
            }
        }
    }

    fn absorb_result(&mut self, call: Option<&ToolUse>, id: &CallId, parts: &[ResultPart], is_error: bool) {
        let tool = call.map_or(id.as_str(), |call| call.name.as_str());
        let about = call.map(|call| main_argument(&call.input)).unwrap_or_default();
        let texts = parts.iter().filter_map(|part| match part {
            ResultPart::Text { text } => Some(text.trim()),
            ResultPart::Image(_) => None,
        });
        let text = texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        let first = text.lines().next().unwrap_or_default().trim_end();
        let first = call.and_then(|call| aged_outcome(call, first)).unwrap_or(first);
        let first = clip_to_bytes(first, MAX_ERROR_BYTES);
        if let Some(call) = call.filter(|call| !is_error && CHANGING_TOOLS.contains(&call.name.as_str())) {
            let is_named = |file: &&mut FileNote| paths_of(&call.input).any(|path| path == file.path);
            self.files.iter_mut().filter(is_named).for_each(|file| file.changed = true);
        }
        if is_error {
            push_if_new(&mut self.failures, format!("{tool} {about}: {first}"));
        } else if tool == ASKING_TOOL {
            push_if_new(&mut self.answers, format!("{about} {}", clip_to_bytes(text, MAX_ANSWER_BYTES)));
        } else if tool == COMMAND_TOOL {
            let line = format!("{about}: {first}");
            // The newest run of a command stands at the end.
            self.commands.retain(|known| *known != line);
            self.commands.push(line);
        }
    }

    /// Renders the state for the model, within a budget.
    pub(super) fn render(
        &self,
        facts: &StateFacts<'_>,
        notes: &[String],
        budget: Tokens,
        counter: &dyn TokenCounter,
    ) -> String {
        let part = |hundredths: u64| Tokens(budget.0 * hundredths / 100);
        let task = Section {
            heading: "The newest task, in the user's words:",
            share: 100,
            items: quote_messages(facts.task, part(TASK_PERCENT), counter),
        };
        let task = render_sections(&[task], part(TASK_PERCENT), counter);
        let budget = Tokens(budget.0.saturating_sub(counter.count(&task).0));
        let part = |hundredths: u64| Tokens(budget.0 * hundredths / 100);
        let said = Section {
            heading: "The user said, oldest first:",
            share: 40,
            items: quote_messages(facts.said, part(WHOLE_SAID_PERCENT), counter),
        };
        let note =
            |text: &String| shorten(text, part(NOTES_PERCENT), None, counter).unwrap_or_else(|| text.clone());
        let decisions = self
            .decisions
            .iter()
            .map(|text| SectionItem { text: text.clone(), rank: sentence_weight(text).unwrap_or_default() });
        let hash = |path: &str| facts.hashes.iter().find(|(known, _)| known == path).map(|(_, hash)| hash);
        let file = |file: &FileNote| SectionItem {
            text: match (file.changed, hash(&file.path)) {
                (true, Some(hash)) => format!("{} (changed, now {hash})", file.path),
                (true, None) => format!("{} (changed)", file.path),
                (false, Some(hash)) => format!("{} ({hash})", file.path),
                (false, None) => file.path.clone(),
            },
            rank: u8::from(file.changed),
        };
        let files = Section {
            heading: "Files that were read or changed, with the beginning of their present content hash:",
            share: 10,
            items: self.files.iter().map(file).collect(),
        };
        let sections = [
            said,
            Section::new("Notes of hooks:", 10, notes.iter().map(note)),
            Section::new("The user's answers to questions:", 6, self.answers.iter().cloned()),
            Section::new("Rules noted on the way:", 8, self.constraints.iter().cloned()),
            Section::new("Plan and progress:", 8, facts.todos.iter().cloned()),
            Section::new(
                "Reports of agents:",
                12,
                facts.reports.iter().map(|report| report.to_item(counter)),
            ),
            Section::new("Tried, and failed:", 12, self.failures.iter().cloned()),
            Section { heading: "Decided and found out:", share: 12, items: decisions.collect() },
            Section::new("Newest results of the project's checks:", 4, facts.evidence.iter().cloned()),
            files,
            Section::new(SUMMARY_HEADING, 10, self.prose.clone()),
            Section::new("Commands that ran:", 3, self.commands.iter().cloned()),
            Section::new("Questions that were asked:", 1, self.questions.iter().cloned()),
        ];
        task + &render_sections(&sections, budget, counter)
    }
}

/// Returns the user's messages as items: whole if all fit into `room` together, else the long ones
/// by their statements.
fn quote_messages(texts: &[String], room: Tokens, counter: &dyn TokenCounter) -> Vec<SectionItem> {
    let cost = |text: &String| counter.count(text).0 + ITEM_TOKENS;
    let are_short = HEADING_TOKENS + texts.iter().map(cost).sum::<u64>() <= room.0;
    let items = texts.iter().flat_map(|text| {
        if are_short || counter.count(text) <= MAX_WHOLE_MESSAGE_TOKENS {
            return vec![SectionItem { text: format!("\"{}\"", text.trim()), rank: WHOLE_MESSAGE_RANK }];
        }
        statements_of(text)
    });
    items.collect()
}

/// Returns the sentences of a long message, each once. Those that require something come first,
/// then its first one, which says what it is about, and those that state or name something.
fn statements_of(text: &str) -> Vec<SectionItem> {
    let mut known = HashSet::new();
    let told = split_sentences(text).into_iter().enumerate().filter(|(_, sentence)| known.insert(*sentence));
    let item = |(at, sentence): (usize, &str)| {
        let rank = match statement_kind(sentence) {
            Some(StatementKind::Constraint) => WHOLE_MESSAGE_RANK,
            _ if at == 0 => 2,
            _ => sentence_weight(sentence).unwrap_or_default(),
        };
        SectionItem { text: format!("\"{sentence}\""), rank }
    };
    told.map(item).collect()
}

fn push_if_new(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}

/// Drops the oldest sentences of little weight from a list that is too long.
fn drop_minor_sentences(list: &mut Vec<String>, limit: usize) {
    for weight in [0, 1] {
        let mut over = list.len().saturating_sub(limit);
        list.retain(|text| {
            let drop = over > 0 && sentence_weight(text).unwrap_or_default() == weight;
            over -= usize::from(drop);
            !drop
        });
    }
}

/// Drops the middle of a list that is too long, and repetitions that differ in numbers alone first.
fn drop_middle(list: &mut Vec<String>, limit: usize) {
    if list.len() <= limit {
        return;
    }
    let mut shapes = HashSet::new();
    list.retain(|text| shapes.insert(text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>()));
    let over = list.len().saturating_sub(limit);
    if over > 0 {
        let middle = limit / 2;
        list.drain(middle..middle + over);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::TokenEstimator;
    use crate::compaction::result_as_text;

    fn call(id: &str, name: &str, input: serde_json::Value) -> Block {
        let (id, name) = (CallId::new(id), name.to_owned());
        Block::ToolUse(ToolUse { id, name, input, malformed: None, signature: None })
    }

    fn worked() -> WorkingState {
        let mut state = WorkingState::default();
        state.absorb(&[
            Message {
                role: Role::Assistant,
                content: vec![
                    Block::text("I decided to cache by path. Let me look."),
                    call("c1", "edit_file", json!({ "path": "src/cache.rs" })),
                    call("c2", "run_command", json!({ "command": "cargo test" })),
                    call("c3", "run_command", json!({ "command": "ls" })),
                ],
            },
            Message {
                role: Role::User,
                content: vec![
                    Block::result(CallId::new("c1"), "edited", false),
                    Block::result(CallId::new("c2"), "\nerror[E0308]: mismatched types\n…", true),
                    Block::result(CallId::new("c3"), "exit code 0\nsrc", false),
                ],
            },
        ]);
        state
    }

    #[test]
    fn the_state_has_what_was_decided_touched_and_tried() {
        let state = worked();
        assert_eq!(state.decisions, ["I decided to cache by path."]);
        assert_eq!(state.files, [FileNote { path: "src/cache.rs".to_owned(), changed: true }]);
        assert_eq!(state.failures, ["run_command cargo test: error[E0308]: mismatched types"]);
        assert_eq!(state.commands, ["ls: exit code 0"]);
    }

    #[test]
    fn a_change_that_failed_is_none() {
        let mut state = WorkingState::default();
        let reply =
            "<call tool=\"delete_file\">{\"path\": \"old.rs\"}</call>\n<edit path=\"b.rs\">\nx\n</edit>";
        let result = |id: &str, tool: &str, is_error| {
            Block::text(result_as_text(&CallId::new(id), Some(tool), is_error, "said"))
        };
        let (role, user) = (Role::Assistant, Role::User);
        state.absorb(&[
            Message {
                role,
                content: vec![
                    call("c1", "edit_file", json!({ "path": "a.rs" })),
                    call("c2", "move_file", json!({ "path": "c.rs", "to": "d.rs" })),
                ],
            },
            Message {
                role: user,
                content: vec![
                    Block::result(CallId::new("c1"), "the search text isn't there", true),
                    Block::result(CallId::new("c2"), "moved", false),
                ],
            },
            Message { role, content: vec![Block::text(reply)] },
            Message {
                role: user,
                content: vec![result("t1", "delete_file", true), result("t2", "apply_edit", false)],
            },
        ]);
        let files: Vec<(&str, bool)> = state.files.iter().map(|it| (it.path.as_str(), it.changed)).collect();
        let expected = [("a.rs", false), ("c.rs", true), ("d.rs", true), ("old.rs", false), ("b.rs", true)];
        assert_eq!(files, expected);
    }

    #[test]
    fn what_the_user_answered_and_how_aged_commands_ended_is_kept() {
        let mut state = WorkingState::default();
        let aged = "[run_command make test failed: exit code 2 (9 lines, 80 bytes) is no longer shown; read_file with \
                    path output:c2 shows it again]";
        state.absorb(&[
            Message {
                role: Role::Assistant,
                content: vec![
                    call("c1", "ask_user", json!({ "question": "Which store?", "options": ["a", "b"] })),
                    call("c2", "run_command", json!({ "command": "make test" })),
                ],
            },
            Message {
                role: Role::User,
                content: vec![
                    Block::result(
                        CallId::new("c1"),
                        "The user answers: SQLite,\nand keep the old file",
                        false,
                    ),
                    Block::result(CallId::new("c2"), aged, true),
                ],
            },
        ]);
        assert_eq!(state.answers, ["Which store? The user answers: SQLite,\nand keep the old file"]);
        assert_eq!(state.failures, ["run_command make test: exit code 2"]);
        let text = state.render(&StateFacts::default(), &[], Tokens(200), &TokenEstimator);
        assert!(text.contains("The user's answers to questions:\n- Which store?"), "{text}");
    }

    #[test]
    fn sentences_in_plain_words_are_kept_and_light_ones_go_first() {
        let mut state = WorkingState::default();
        state.absorb(&[Message::assistant_text(
            "The relevant file is src/mod5.py. Tried a mutex; still hangs. Max retries is 5. Now the next module. The \
             user wants tabs.",
        )]);
        assert_eq!(
            state.decisions,
            ["The relevant file is src/mod5.py.", "Max retries is 5.", "The user wants tabs."]
        );
        assert_eq!(state.failures, ["Tried a mutex; still hangs."]);
        for round in 0..MAX_STATEMENTS {
            let name = "x".repeat(round + 1);
            state.absorb(&[Message::assistant_text(format!("Some words about the {name} thing."))]);
        }
        assert_eq!(state.decisions.len(), MAX_STATEMENTS);
        assert_eq!(state.decisions[..2], ["The relevant file is src/mod5.py.", "Max retries is 5."]);
        let text = state.render(&StateFacts::default(), &[], Tokens(60), &TokenEstimator);
        assert!(text.contains("src/mod5.py") && text.contains("retries is 5"), "{text}");
    }

    #[test]
    fn a_tenth_compaction_has_what_the_first_had() {
        let mut state = worked();
        for round in 0..400 {
            state.absorb(&[Message::assistant_text(format!("The cause number {round} is in the parser."))]);
        }
        assert!(state.decisions.len() <= MAX_STATEMENTS);
        assert_eq!(state.decisions[0], "I decided to cache by path.");
        let restored: WorkingState = serde_json::from_value(json!(state)).unwrap();
        assert_eq!(restored, state);
    }

    #[test]
    fn the_text_has_the_users_words_and_stays_within_its_budget() {
        let said = ["never touch vendor/, and keep the port 8443".to_owned()];
        let facts = StateFacts {
            said: &said,
            todos: vec!["[pending] add a test".to_owned()],
            hashes: vec![("src/cache.rs".to_owned(), "9f86d081".to_owned())],
            ..StateFacts::default()
        };
        let state = WorkingState { prose: Some("All went well.".to_owned()), ..worked() };
        let text = state.render(&facts, &[], Tokens(2_000), &TokenEstimator);
        for part in [
            "\"never touch vendor/, and keep the port 8443\"",
            "- [pending] add a test",
            "- src/cache.rs (changed, now 9f86d081)",
            "- run_command cargo test: error[E0308]",
            "Summary of what came before the newest messages:\n- All went well.",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        for budget in [0, 20, 60, 150] {
            let text = worked().render(&facts, &[], Tokens(budget), &TokenEstimator);
            assert!(TokenEstimator.count(&text).0 <= budget + 10, "{budget}: {text}");
        }
    }

    #[test]
    fn the_newest_task_is_told_apart_and_stays_whole() {
        let long = |name: &str| (0..120).map(|at| format!("Do step {at} of {name}. ")).collect::<String>();
        let (said, task) = ([long("the first task"), long("the second task")], [long("the newest task")]);
        let facts = StateFacts { said: &said, task: &task, ..StateFacts::default() };
        let notes = ["the ticket is JM-77 ".repeat(20)];
        let tokens = TokenEstimator.count(&task[0]);
        for percent in [140, 200, 300, 800] {
            let budget = Tokens(tokens.0 * percent / 100);
            let text = worked().render(&facts, &notes, budget, &TokenEstimator);
            let (_, newest) = text.split_once("The newest task, in the user's words:\n").unwrap();
            assert_eq!(newest.contains(task[0].trim()), percent > 140, "{percent}: {text}");
            assert!(newest.contains("Do step 0 of the newest task."), "{percent}: {text}");
            assert!(text.contains("JM-77") && TokenEstimator.count(&text) <= budget, "{percent}: {text}");
        }
    }

    #[test]
    fn of_a_long_message_the_statements_stay() {
        let filler = "Here is some background about the project and its history. ".repeat(200);
        let said = [
            "the task".to_owned(),
            format!("About the release. {filler} Never publish before 17:30. {filler}"),
        ];
        let facts = StateFacts { said: &said, ..StateFacts::default() };
        let text = WorkingState::default().render(&facts, &[], Tokens(800), &TokenEstimator);
        assert!(
            text.contains("\"About the release.\"") && text.contains("\"Never publish before 17:30.\""),
            "{text}"
        );
    }
}
