//! Reads parts of a session's log that its state doesn't hold.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use journeyman_context::compaction::DelegatedReport;
use journeyman_protocol::{
    Block, CallId, MessageKind, ReminderCategory, ResultPart, Seq, SessionId, ToolUse,
};
use journeyman_store::{Entry, Store};
use journeyman_tools::RecalledOutput;
use serde_json::Value;

use crate::AgentError;
use crate::transcript::pins::PinnedTexts;
use crate::transcript::record::{IMPORTED_KIND, MessageId, Record, record_of};

/// Entries read at once.
const PAGE_ENTRIES: usize = 1_000;

/// Texts of a session that no shortening may lose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeptTexts {
    /// The user's messages that the session took, in their words, oldest first.
    pub(crate) said: Vec<String>,
    /// The first of them that belongs to the newest task.
    pub(crate) current: usize,
    /// The reports of agents and of other CLIs, oldest first.
    pub(crate) reports: Vec<DelegatedReport>,
    /// The texts that the user pinned, oldest first.
    pub(crate) pinned: Vec<String>,
}

/// Reads the texts that no shortening may lose. `reporting` are the tools whose results are
/// reports.
pub(crate) async fn read_kept_texts(
    store: &dyn Store,
    session: &SessionId,
    reporting: &[String],
) -> Result<KeptTexts, AgentError> {
    let mut queued = HashMap::<MessageId, (MessageKind, String)>::new();
    let (mut calls, mut kept) = (HashSet::<CallId>::new(), KeptTexts::default());
    let mut pinned = PinnedTexts::default();
    let [first, second] = PinnedTexts::RECORD_KINDS;
    for_each_record(store, session, &[first, second, "message", "result", "began"], |record| {
        pinned.apply(&record);
        match record {
            Record::Began => kept.current = kept.said.len(),
            Record::Queued(one)
                if one.kind == MessageKind::User || one.category == ReminderCategory::Agent =>
            {
                queued.insert(one.id, (one.kind, one.text));
            }
            Record::Withdrawn { id } => drop(queued.remove(&id)),
            Record::Message { message, taken, calls: of_text, .. } => {
                let reporting = |call: &&ToolUse| {
                    // The report of an agent in the background is a message.
                    reporting.contains(&call.name) && call.input.get("background") != Some(&Value::Bool(true))
                };
                let asked = message.tool_uses().chain(&of_text).filter(reporting);
                calls.extend(asked.map(|call| call.id.clone()));
                // A message without content was refused by a hook.
                let taken = taken.iter().filter_map(|id| queued.remove(id));
                for (kind, text) in taken.filter(|_| !message.content.is_empty()) {
                    match kind {
                        MessageKind::User => kept.said.push(text),
                        _ => kept.reports.push(DelegatedReport { call: None, text }),
                    }
                }
            }
            Record::Result { call, block } if calls.remove(&call) => {
                kept.reports.push(DelegatedReport { call: Some(call), text: block_text(block) });
            }
            _ => {}
        }
    })
    .await?;
    kept.pinned = pinned.into_texts();
    Ok(kept)
}

/// Reads the texts that the user pinned, oldest first.
pub(crate) async fn read_pinned(store: &dyn Store, session: &SessionId) -> Result<Vec<String>, AgentError> {
    let mut pinned = PinnedTexts::default();
    for_each_record(store, session, &PinnedTexts::RECORD_KINDS, |record| pinned.apply(&record)).await?;
    Ok(pinned.into_texts())
}

/// Returns a call's result as the model first got it, with the whole output of a command in place
/// of its text.
pub(crate) async fn read_result(
    store: &dyn Store,
    session: &SessionId,
    call: &CallId,
) -> Result<Option<RecalledOutput>, AgentError> {
    let (mut result, mut output) = (None, None);
    for_each_record(store, session, &["result", "output"], |record| match record {
        Record::Output { call: of, text } if of == *call => output = Some(text),
        Record::Result { call: of, block } if of == *call => result = Some(block),
        _ => {}
    })
    .await?;
    let content = match result {
        Some(Block::ToolResult { content, .. }) => content,
        // The form of models without tool calling.
        Some(Block::Text { text }) => vec![ResultPart::Text { text }],
        _ => return Ok(output.map(|text| RecalledOutput::from(Arc::from(text)))),
    };
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in content {
        match part {
            ResultPart::Text { text } => texts.push(text),
            ResultPart::Image(image) => images.push(image),
        }
    }
    Ok(Some(RecalledOutput { text: output.unwrap_or_else(|| texts.join("\n")).into(), images }))
}

/// Returns the texts of the session's results as the model first got them, or the whole outputs of
/// its commands: the newest ones that have at most `max_bytes` together.
///
/// # Errors
/// [`AgentError`] if the log can't be read.
pub async fn read_result_texts(
    store: &dyn Store,
    session: &SessionId,
    max_bytes: usize,
) -> Result<HashMap<CallId, String>, AgentError> {
    let mut texts = HashMap::<CallId, String>::new();
    let (mut order, mut bytes) = (VecDeque::new(), 0_usize);
    for_each_record(store, session, &["result", "output"], |record| {
        let (call, text) = match record {
            Record::Output { call, text } => (call, text),
            // The output of a command comes before its result, which is a part of it.
            Record::Result { call, block } if !texts.contains_key(&call) => (call, block_text(block)),
            _ => return,
        };
        bytes += text.len();
        order.push_back(call.clone());
        if let Some(before) = texts.insert(call, text) {
            bytes -= before.len();
        }
        while bytes > max_bytes {
            let Some(oldest) = order.pop_front() else { return };
            bytes -= texts.remove(&oldest).map_or(0, |text| text.len());
        }
    })
    .await?;
    Ok(texts)
}

fn block_text(block: Block) -> String {
    match block {
        Block::Text { text } => text,
        Block::ToolResult { content, .. } => {
            let texts = content.into_iter().map(|part| match part {
                ResultPart::Text { text } => text,
                ResultPart::Image(_) => "[image]".to_owned(),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Returns the positions of the session's compactions that hold, oldest first.
pub(super) async fn list_compactions(store: &dyn Store, session: &SessionId) -> Result<Vec<Seq>, AgentError> {
    let mut held = Vec::new();
    for_each_positioned_record(
        store,
        session,
        &["compacted", "compaction_undone"],
        |seq, record| match record {
            Record::Compacted(_) => held.push(seq),
            Record::CompactionUndone { at } => held.retain(|seq| *seq != at),
            _ => {}
        },
    )
    .await?;
    Ok(held)
}

/// Returns the end of the entries that come from an import, if the session was opened after one.
pub(super) async fn find_import_end(
    store: &dyn Store,
    session: &SessionId,
) -> Result<Option<Seq>, AgentError> {
    let mut end = None;
    for_each_positioned_record(store, session, &[IMPORTED_KIND], |seq, _| end = Some(seq)).await?;
    Ok(end)
}

/// Calls `take` for every record of these kinds, in order.
async fn for_each_record(
    store: &dyn Store,
    session: &SessionId,
    kinds: &[&str],
    mut take: impl FnMut(Record),
) -> Result<(), AgentError> {
    for_each_positioned_record(store, session, kinds, |_, record| take(record)).await
}

/// Calls `take` for every record of these kinds with its position, in order.
async fn for_each_positioned_record(
    store: &dyn Store,
    session: &SessionId,
    kinds: &[&str],
    mut take: impl FnMut(Seq, Record),
) -> Result<(), AgentError> {
    let mut after = Seq::START;
    loop {
        let page: Vec<Entry> = store.read_records(session, after, PAGE_ENTRIES).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        for entry in page.iter().filter(|entry| kinds.contains(&entry.kind.as_str())) {
            if let Some(record) = record_of(entry) {
                take(entry.seq, record);
            }
        }
    }
}
