//! Instruction files of directories, given to the model when it works in a directory.
//!
//! An instruction file such as `AGENTS.md` applies to all files below its directory. The transcript
//! shows which files the model has. A compaction keeps them; those that don't fit are given again.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use journeyman_context::{
    TokenEstimator, nested_instructions, nested_instructions_file, nested_instructions_text,
    untold_instructions_text,
};
use journeyman_policy::secrets::unmasked_files;
use journeyman_protocol::{Block, RelPath, ReminderCategory, TokenCounter as _, Tokens};
use journeyman_tools::SeenFiles;

use crate::AgentError;
use crate::blocking::run_blocking;
use crate::compaction::input_room::InputRoom;
use crate::session::context::SessionContext;

/// Gives the model the instructions of the directories that it works in.
#[derive(Debug, Default)]
pub(super) struct NestedInstructions {
    /// Directories whose instructions the model has, if there are any.
    looked: HashSet<RelPath>,
}

impl NestedInstructions {
    /// Forgets which directories were read, because messages left the transcript.
    pub(super) fn forget_directories(&mut self) {
        self.looked.clear();
    }

    /// Adds instructions that apply to the files seen so far and that the model doesn't have.
    pub(super) async fn add_instructions(
        &mut self,
        cx: &mut SessionContext,
        seen: &SeenFiles,
        may_show: Arc<dyn Fn(&RelPath) -> bool + Send + Sync>,
    ) -> Result<(), AgentError> {
        let mut new = BTreeSet::new();
        for file in seen.entries().iter().filter(|file| !file.outside) {
            let mut path = file.path.parent();
            while let Some(directory) = path {
                path = directory.parent();
                if !self.looked.contains(&directory) {
                    new.insert(directory);
                }
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        self.looked.extend(new.iter().cloned());
        let workspace = Arc::clone(&cx.workspace);
        let may_show = unmasked_files(move |path| may_show(path));
        let found =
            run_blocking("reading instructions", move || nested_instructions(&workspace, &may_show, &new))
                .await?;
        let room = InputRoom::for_model(cx).nested_instructions();
        let mut left = room.0.saturating_sub(instruction_tokens(cx).0);
        let mut untold = Vec::new();
        for (path, text) in found {
            let text = nested_instructions_text(&path, &text);
            if has_seen_text(cx, &text) {
                continue;
            }
            match left.checked_sub(TokenEstimator.count(&text).0) {
                Some(rest) => {
                    left = rest;
                    cx.transcript.remind_model(ReminderCategory::File, text);
                }
                None => untold.push(path),
            }
        }
        if !untold.is_empty() {
            let text = untold_instructions_text(&untold);
            if !has_seen_text(cx, &text) {
                cx.transcript.remind_model(ReminderCategory::File, text);
            }
        }
        Ok(())
    }
}

/// Returns the tokens of the instructions of directories that the transcript has.
fn instruction_tokens(cx: &SessionContext) -> Tokens {
    let blocks = cx.transcript.state().messages.iter().flat_map(|message| &message.content);
    let texts = blocks.filter_map(|block| match block {
        Block::Text { text } if nested_instructions_file(text).is_some() => Some(text),
        _ => None,
    });
    texts.map(|text| TokenEstimator.count(text)).sum()
}

/// Returns true if the model has seen some text in a message of the user's side.
fn has_seen_text(cx: &SessionContext, wanted: &str) -> bool {
    let blocks = cx.transcript.state().messages.iter().flat_map(|message| &message.content);
    blocks
        .filter_map(|block| match block {
            Block::Text { text } => Some(text),
            _ => None,
        })
        .any(|text| text.contains(wanted))
}

#[cfg(test)]
mod tests {
    use journeyman_context::compaction::WorkingState;
    use journeyman_protocol::ContentHash;

    use super::*;
    use crate::test_context::TestContext;
    use crate::transcript::record::{Compaction, Record};

    fn hidden() -> RelPath {
        RelPath::parse("web/hidden.md").unwrap()
    }

    #[tokio::test]
    async fn more_instructions_than_there_is_room_for_are_named() {
        let rules = "Keep to the rules of this directory. ".repeat(60);
        let files: Vec<(String, String)> = (0..30)
            .flat_map(|at| {
                [
                    (format!("d{at}/AGENTS.md"), format!("Rule {at}. {rules}")),
                    (format!("d{at}/a.rs"), String::new()),
                ]
            })
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
        let mut test = TestContext::new(&files).await;
        let (mut nested, seen) = (NestedInstructions::default(), SeenFiles::default());
        for at in 0..30 {
            seen.record(RelPath::parse(format!("d{at}/a.rs")).unwrap(), ContentHash::of(b""));
        }
        nested.add_instructions(&mut test.cx, &seen, Arc::new(|_| true)).await.unwrap();
        let tokens = instruction_tokens(&test.cx);
        let room = InputRoom::for_model(&test.cx).nested_instructions();
        assert!(tokens.0 > room.0 / 2 && tokens <= room, "{tokens} of {room}");
        let text: String = test.cx.transcript.state().messages.iter().map(|message| message.text()).collect();
        for at in 0..30 {
            let path = format!("d{at}/AGENTS.md");
            assert!(text.contains(&path), "{path}: {text}");
        }
        let before = test.cx.transcript.state().messages.len();
        nested.forget_directories();
        nested.add_instructions(&mut test.cx, &seen, Arc::new(|_| true)).await.unwrap();
        assert_eq!(test.cx.transcript.state().messages.len(), before, "nothing is told again");
    }

    #[tokio::test]
    async fn instructions_come_when_work_goes_there_and_again_after_a_compaction() {
        let files = [
            ("web/AGENTS.md", "Use tabs.\n@style.md\n@hidden.md\n@.env\n"),
            ("web/hidden.md", "Hidden by a rule.\n"),
            ("web/.env", "DB_PASS=hunter2\n"),
            ("web/style.md", "No semicolons.\n"),
            ("web/ui/a.ts", "let a = 1\n"),
            ("core/b.rs", "fn b() {}\n"),
        ];
        let mut test = TestContext::new(&files).await;
        let (mut nested, seen) = (NestedInstructions::default(), SeenFiles::default());
        let hash = ContentHash::of(b"");
        seen.record(RelPath::parse("core/b.rs").unwrap(), hash);
        nested.add_instructions(&mut test.cx, &seen, Arc::new(|path| *path != hidden())).await.unwrap();
        assert_eq!(test.cx.transcript.state().messages.len(), 0);
        seen.record(RelPath::parse("web/ui/a.ts").unwrap(), hash);
        nested.add_instructions(&mut test.cx, &seen, Arc::new(|path| *path != hidden())).await.unwrap();
        let text = test.last_text();
        assert!(
            text.contains("Use tabs.") && text.contains("No semicolons.") && text.contains("web/AGENTS.md")
        );
        assert!(text.contains("@hidden.md\n@.env") && !text.contains("hunter2"), "{text}");
        let messages = test.cx.transcript.state().messages.len();
        nested.add_instructions(&mut test.cx, &seen, Arc::new(|path| *path != hidden())).await.unwrap();
        assert_eq!(test.cx.transcript.state().messages.len(), messages, "once");
        let compaction = Compaction {
            head: vec![Block::text("the state")],
            opening: 0,
            kept: 0,
            tail: Vec::new(),
            state: WorkingState::default(),
            inflated: false,
        };
        test.cx.transcript.record(Record::Compacted(Box::new(compaction)));
        nested.forget_directories();
        nested.add_instructions(&mut test.cx, &seen, Arc::new(|path| *path != hidden())).await.unwrap();
        assert!(test.last_text().contains("Use tabs."), "again, since nothing of it is left");
    }
}
