//! Instruction files of directories, given to the model when it works in a directory.
//!
//! An instruction file such as `AGENTS.md` applies to all files below its directory. The transcript
//! shows which files the model has. A compaction keeps them; those that don't fit are given again.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use journeyman_context::{nested_instructions, nested_instructions_text};
use journeyman_protocol::{Block, RelPath, ReminderCategory};
use journeyman_tools::SeenFiles;

use crate::AgentError;
use crate::blocking::run_blocking;
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
        let found =
            run_blocking("reading instructions", move || nested_instructions(&workspace, &new)).await?;
        for (path, text) in found {
            let text = nested_instructions_text(&path, &text);
            if !has_seen_text(cx, &text) {
                cx.transcript.remind_model(ReminderCategory::File, text);
            }
        }
        Ok(())
    }
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
    use journeyman_protocol::ContentHash;

    use super::*;
    use crate::test_context::TestContext;

    #[tokio::test]
    async fn instructions_come_when_work_goes_there_and_again_after_a_compaction() {
        let files = [
            ("web/AGENTS.md", "Use tabs.\n@style.md\n"),
            ("web/style.md", "No semicolons.\n"),
            ("web/ui/a.ts", "let a = 1\n"),
            ("core/b.rs", "fn b() {}\n"),
        ];
        let mut test = TestContext::new(&files).await;
        let (mut nested, seen) = (NestedInstructions::default(), SeenFiles::default());
        let hash = ContentHash::of(b"");
        seen.record(RelPath::parse("core/b.rs").unwrap(), hash);
        nested.add_instructions(&mut test.cx, &seen).await.unwrap();
        assert_eq!(test.cx.transcript.state().messages.len(), 0);
        seen.record(RelPath::parse("web/ui/a.ts").unwrap(), hash);
        nested.add_instructions(&mut test.cx, &seen).await.unwrap();
        let text = test.last_text();
        assert!(
            text.contains("Use tabs.") && text.contains("No semicolons.") && text.contains("web/AGENTS.md")
        );
        let messages = test.cx.transcript.state().messages.len();
        nested.add_instructions(&mut test.cx, &seen).await.unwrap();
        assert_eq!(test.cx.transcript.state().messages.len(), messages, "once");
        test.cx.transcript.record(crate::transcript::record::Record::Cleared);
        nested.forget_directories();
        nested.add_instructions(&mut test.cx, &seen).await.unwrap();
        assert!(test.last_text().contains("Use tabs."), "again, since nothing of it is left");
    }
}
