//! `jm memory`.

use clap::{Args, Subcommand};
use journeyman_host::HostError;
use journeyman_host::config::Environment;
use journeyman_host::format::printable;
use journeyman_host::memory::{NoteList, parse_anchor};

use crate::args::AnswerArgs;
use crate::runtime::open_state;

#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    command: Option<MemoryCommand>,
    #[command(flatten)]
    answer: AnswerArgs,
}

#[derive(Debug, Subcommand)]
enum MemoryCommand {
    /// Keep a note for later sessions
    Add {
        /// The note
        text: String,
        /// The lines that it rests on; it is set aside when they change
        #[arg(long, value_name = "FILE:FIRST[-LAST]")]
        at: Option<String>,
        /// Keep it for every project
        #[arg(long, conflicts_with = "at")]
        all: bool,
    },
    /// Accept a note that a model proposed
    Accept {
        /// Its number
        id: u32,
    },
    /// Remove a note
    Remove {
        /// Its number
        id: u32,
        /// It is one for every project
        #[arg(long)]
        all: bool,
    },
}

pub(crate) async fn run_memory_command(
    environment: &Environment,
    args: &MemoryArgs,
) -> Result<u8, HostError> {
    let state = open_state(environment)?;
    let directory = args.answer.project.directory.as_deref();
    let notes = NoteList::open(environment, &state, directory)?;
    match &args.command {
        None if args.answer.json => outln!("{}", notes.to_json()?),
        None => print_notes(&notes)?,
        Some(MemoryCommand::Add { text, at, all }) => {
            let parse = |at| parse_anchor(environment, directory, &notes.workspace, at);
            let anchor = at.as_deref().map(parse).transpose()?;
            let id = notes.note_file(*all).add(text, anchor, true)?;
            outln!("kept as note {id}");
        }
        Some(MemoryCommand::Accept { id }) => {
            notes.note_file(false).accept(*id)?;
            outln!("note {id} is told to later sessions");
        }
        Some(MemoryCommand::Remove { id, all }) => {
            notes.note_file(*all).remove(*id)?;
            outln!("note {id} is removed");
        }
    }
    Ok(0)
}

fn print_notes(notes: &NoteList) -> Result<(), HostError> {
    let listed = notes.list_notes()?;
    if listed.is_empty() {
        errln!("there are no notes; jm memory add \"TEXT\" keeps one");
    }
    for one in listed {
        let number = if one.everywhere { format!("{} (all)", one.note.id) } else { one.note.id.to_string() };
        let place = one.anchor_location().map(|place| format!("  {place}")).unwrap_or_default();
        reportln!("{number:>8}  {:<9} {}{}", one.state_name(), printable(&one.note.text), printable(&place));
    }
    Ok(())
}
