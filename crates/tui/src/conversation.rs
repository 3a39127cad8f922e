//! The entrance: a conversation from its beginning to its end.

use std::io::IsTerminal as _;

use journeyman_agent::store::Store;
use journeyman_agent::{Record, record_of};
use journeyman_host::sessions::list_user_sessions;
use journeyman_host::state::find_session_log;
use journeyman_host::{Context as _, HostError};
use journeyman_protocol::{MessageKind, Seq, SessionId};

use crate::app::{App, ConversationStart};
use crate::attachments::split_attachments;
use crate::hyperlinks::Linker;
use crate::open_session::ConversationSetup;
use crate::plain::PlainMode;
use crate::preferences::Preferences;
use crate::presentation::Presentation;
use crate::screen::Reflow;
use crate::theme::Theme;

/// Maximum earlier messages that the composer recalls.
const MAX_HISTORY: usize = 200;
/// Maximum earlier messages, the newest, that it recalls whole. Reading one takes time before the
/// first prompt.
const MAX_WHOLE_HISTORY: usize = 40;
/// Maximum records of a log before its first message: how the session is to run.
const MAX_RECORDS_BEFORE_MESSAGE: usize = 4;

/// Returns true if a person is at a terminal that this process reads and writes.
#[must_use]
pub fn is_at_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Returns true if a conversation can be drawn; otherwise it is written as lines.
fn can_draw() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    is_at_terminal() && !is_dumb
}

/// Holds a conversation on the terminal of this process, or by lines of its input and output.
/// Returns the exit code.
///
/// # Errors
/// [`HostError`] where the terminal or the session log fails.
pub async fn run_conversation(
    setup: ConversationSetup,
    beginning: ConversationStart,
) -> Result<u8, HostError> {
    let history = read_history(&setup).await;
    let preferences = Preferences::load(&setup.environment);
    if setup.is_plain || preferences.is_plain || !can_draw() {
        let app = App::new(setup, history, Presentation::for_lines(), preferences, Some(PlainMode::new()));
        return app.run(beginning).await;
    }
    let theme = Theme::from_variables(|name| setup.environment.var(name)).with_choice(preferences.theme);
    let reflow = Reflow::from_variables(|name| setup.environment.var(name));
    let mut presentation = Presentation::acquire_terminal(theme, reflow).context("the terminal")?;
    if preferences.links.is_wanted(|name| setup.environment.var(name)) {
        presentation.set_links(Linker::new(&setup.root, |name| setup.environment.var(name)));
    }
    App::new(setup, history, presentation, preferences, None).run(beginning).await
}

/// Returns the first messages of earlier sessions, the newest last.
async fn read_history(setup: &ConversationSetup) -> Vec<String> {
    // A query would create an empty log.
    if find_session_log(&setup.state.dir).is_none() {
        return Vec::new();
    }
    let root = setup.root.display().to_string();
    let sessions = list_user_sessions(&setup.state, Some(&root), MAX_HISTORY).await.unwrap_or_default();
    let mut messages = Vec::with_capacity(sessions.len());
    for (place, session) in sessions.into_iter().enumerate() {
        // A title is the beginning of the first line.
        let whole = match place < MAX_WHOLE_HISTORY {
            true => read_first_message(&*setup.state.store, &session.id).await,
            false => None,
        };
        messages.push(whole.unwrap_or(session.title));
    }
    messages.reverse();
    messages.retain(|message| !message.trim().is_empty());
    messages
}

async fn read_first_message(store: &dyn Store, session: &SessionId) -> Option<String> {
    let records = store.read_records(session, Seq::START, MAX_RECORDS_BEFORE_MESSAGE).await.ok()?;
    let message = records.iter().find_map(|entry| match record_of(entry)? {
        Record::Queued(message) if message.kind == MessageKind::User => Some(message.text),
        _ => None,
    });
    message.map(|text| split_attachments(&text).0.to_owned())
}
