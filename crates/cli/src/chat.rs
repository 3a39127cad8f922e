//! `jm`, `jm "MESSAGE"` and `jm resume` in a terminal: the conversation.

use std::sync::Arc;

use journeyman_host::HostError;
use journeyman_host::config::Environment;
use journeyman_host::resume::find_resumable;
use journeyman_host::root::project_root;
use journeyman_host::state::StateDirs;
use journeyman_tui::line_prompts::TerminalPrompts;
use journeyman_tui::{ConversationSetup, ConversationStart, run_conversation};

use crate::args::{ChatArgs, ResumeArgs, RunOptions};

pub(crate) async fn chat(environment: &Environment, args: ChatArgs) -> Result<u8, HostError> {
    let message = args.message.filter(|message| !message.trim().is_empty());
    open_conversation(environment, &args.options, args.plain, ConversationStart::New(message)).await
}

/// Resumes a session in a conversation: the named one, or one picked from a list.
pub(crate) async fn resume(environment: &Environment, args: ResumeArgs) -> Result<u8, HostError> {
    let directory = args.options.directory.clone();
    let session = if args.last { Some("last".to_owned()) } else { args.session };
    let state = Arc::new(StateDirs::open(environment)?);
    let beginning = match session {
        None => ConversationStart::Choose,
        Some(word) => {
            let found = find_resumable(&state, environment, &word, directory.as_deref()).await?;
            ConversationStart::Again(found.id, None)
        }
    };
    open_conversation(environment, &args.options, false, beginning).await
}

async fn open_conversation(
    environment: &Environment,
    options: &RunOptions,
    is_plain: bool,
    beginning: ConversationStart,
) -> Result<u8, HostError> {
    // Nothing may be written to the terminal beside the conversation, not even progress.
    let state = Arc::new(StateDirs::open(environment)?);
    let setup = ConversationSetup {
        environment: environment.clone(),
        state,
        root: project_root(environment, options.directory.as_deref())?,
        options: options.to_options(),
        delivery: options.delivery.to_options(),
        is_plain,
        prompts: &TerminalPrompts,
    };
    run_conversation(setup, beginning).await
}
