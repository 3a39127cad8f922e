//! `jm sessions`, `jm fork`, `jm snapshot`, `jm import` and `jm delete`: sessions as a whole.

use journeyman_host::HostError;
use journeyman_host::config::Environment;
use journeyman_host::format::{describe_age, format_count, printable};
use journeyman_host::root::find_root;
use journeyman_host::session_commands::{
    create_snapshot, delete_session, find_deletable, fork_session, import_session_file,
};
use journeyman_host::sessions::list_sessions;
use journeyman_host::state::now;
use journeyman_terminal::stdout_paint;
use journeyman_tui::line_prompts::confirm_removal;

use crate::args::{DeleteArgs, ForkArgs, ImportArgs, SessionsArgs, SnapshotArgs};
use crate::output::{print_json_line, write_report};
use crate::runtime::open_state;

pub(crate) async fn show_sessions(environment: &Environment, args: &SessionsArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let here = find_root(environment, None)?.display().to_string();
    let sessions = list_sessions(&dirs, (!args.all).then_some(here.as_str()), args.limit).await?;
    if sessions.is_empty() && !args.json {
        let more = if args.all { "" } else { " here; --all lists those of other directories" };
        errln!("no sessions yet{more}");
    }
    let paint = stdout_paint();
    for (session, number) in sessions.into_iter().zip(1..) {
        if args.json {
            print_json_line(&session)?;
            continue;
        }
        // A number is a session of this directory.
        let number = if args.all { String::new() } else { format!("{number:>3}  ") };
        let root = if args.all { format!("  {}", printable(&session.root)) } else { String::new() };
        let kept = session.copy.as_ref().map(|_| match session.copy_changes {
            Some(files) => format!("  ({} kept in its copy)", format_count(files, "file")),
            None => "  (kept in its copy)".to_owned(),
        });
        let changed = match session.changed_since {
            Some(true) => "  (the files have changed since)",
            Some(false) | None => "",
        };
        let line = format!(
            "{}{}  {}  {:<17}  {}{}{}{}\n",
            paint.bold(&number),
            paint.bold(session.id.as_str()),
            paint.dim(&format!("{:>11}", describe_age(now(), session.updated))),
            session.status.replace('_', " "),
            printable(&session.title),
            kept.map_or(String::new(), |kept| paint.yellow(&kept)),
            paint.dim(changed),
            paint.dim(&root)
        );
        write_report(&line);
    }
    Ok(0)
}

pub(crate) async fn fork(environment: &Environment, args: &ForkArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let forked = fork_session(environment, &dirs, &args.session, args.at.as_deref()).await?;
    if args.json {
        print_json_line(&forked)?;
        return Ok(0);
    }
    outln!("{}", forked.id);
    errln!("a copy of {} up to entry {}; the files are as they are", forked.parent, forked.at);
    errln!("go on with it: jm resume {} \"MESSAGE\"", forked.id);
    Ok(0)
}

pub(crate) async fn snapshot(environment: &Environment, args: &SnapshotArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let (session, at) = create_snapshot(environment, &dirs, &args.session, &args.name).await?;
    outln!("entry {at} of session {session} is `{}`", args.name);
    Ok(0)
}

pub(crate) async fn import(environment: &Environment, args: &ImportArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let id = import_session_file(environment, &dirs, &args.file, args.copy).await?;
    outln!("{id}");
    errln!("look at it: jm show {id}");
    errln!("go on with it: jm resume {id} -C DIRECTORY \"MESSAGE\"");
    Ok(0)
}

pub(crate) async fn delete(environment: &Environment, args: &DeleteArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let sessions = find_deletable(environment, &dirs, &args.sessions).await?;
    if !args.yes {
        for session in &sessions {
            errln!("  {}  {}", session.id, printable(&session.title));
        }
        let question = match sessions.len() {
            1 => "Remove this session for good? What it changed in the project stays. [y/N] ".to_owned(),
            many => format!(
                "Remove these {many} sessions for good? What they changed in the project stays. [y/N] "
            ),
        };
        if !confirm_removal(&question, "removes", "removed")? {
            return Ok(1);
        }
    }
    let paint = stdout_paint();
    for session in sessions {
        let agents = match delete_session(&dirs, &session).await? {
            0 => String::new(),
            count => format!("  with {}", format_count(count, "agent")),
        };
        outln!("removed {}  {}{agents}", session.id, paint.dim(&printable(&session.title)));
    }
    Ok(0)
}
