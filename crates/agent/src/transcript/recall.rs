//! Reads parts of a session's log that its state doesn't hold.

use std::collections::{HashMap, VecDeque};

use journeyman_protocol::{Block, CallId, MessageKind, ResultPart, Seq, SessionId};
use journeyman_store::{Entry, Store};

use crate::AgentError;
use crate::transcript::record::{MessageId, Record, record_of};

/// Entries read at once.
const PAGE_ENTRIES: usize = 1_000;

/// Returns the user's messages that the session took, in their words, oldest first.
pub(crate) async fn user_messages(store: &dyn Store, session: &SessionId) -> Result<Vec<String>, AgentError> {
    let (mut queued, mut said) = (HashMap::<MessageId, String>::new(), Vec::new());
    each_record(store, session, &["queued", "message"], |record| match record {
        Record::Queued(one) if one.kind == MessageKind::User => {
            queued.insert(one.id, one.text);
        }
        Record::Message { message, taken, .. } => {
            let texts = taken.iter().filter_map(|id| queued.remove(id));
            // A message without content was refused by a hook.
            if !message.content.is_empty() {
                said.extend(texts);
            }
        }
        _ => {}
    })
    .await?;
    Ok(said)
}

/// Returns the text of a call's result as the model first got it, or the whole output of its
/// command.
pub(crate) async fn result_text(
    store: &dyn Store,
    session: &SessionId,
    call: &CallId,
) -> Result<Option<String>, AgentError> {
    let (mut result, mut output) = (None, None);
    each_record(store, session, &["result", "output"], |record| match record {
        Record::Output { call: of, text } if of == *call => output = Some(text),
        Record::Result { call: of, block } if of == *call => result = Some(text_of(block)),
        _ => {}
    })
    .await?;
    Ok(output.or(result))
}

/// Returns the texts of the session's results as the model first got them, or the whole outputs of
/// its commands: the newest ones that have at most `max_bytes` together.
///
/// # Errors
/// [`AgentError`] if the log can't be read.
pub async fn result_texts(
    store: &dyn Store,
    session: &SessionId,
    max_bytes: usize,
) -> Result<HashMap<CallId, String>, AgentError> {
    let mut texts = HashMap::<CallId, String>::new();
    let (mut order, mut bytes) = (VecDeque::new(), 0_usize);
    each_record(store, session, &["result", "output"], |record| {
        let (call, text) = match record {
            Record::Output { call, text } => (call, text),
            // The output of a command comes before its result, which is a part of it.
            Record::Result { call, block } if !texts.contains_key(&call) => (call, text_of(block)),
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

fn text_of(block: Block) -> String {
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

/// Calls `take` for every record of these kinds, in order.
async fn each_record(
    store: &dyn Store,
    session: &SessionId,
    kinds: &[&str],
    mut take: impl FnMut(Record),
) -> Result<(), AgentError> {
    let mut after = Seq::START;
    loop {
        let page: Vec<Entry> = store.read_records(session, after, PAGE_ENTRIES).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        page.iter()
            .filter(|entry| kinds.contains(&entry.kind.as_str()))
            .filter_map(record_of)
            .for_each(&mut take);
    }
}
