//! How far a shell command reaches.
//!
//! Two passes with opposite duties. `survey` takes the command apart with the shell's grammar, finds every program
//! that it would run (`unwrap` knows what `env`, `xargs`, `sh -c` and their kin run), and `readers` prove of each
//! that it only reads: they accept programs known option by option, and give up on anything else; what `edits` knows
//! in the same way changes files of the project alone. `danger` looks for what reaches outside or destroys: in the
//! parts, where these are understood, and else in the text, which it takes apart roughly and prefers a false alarm to
//! a miss. What none of them knows is level 2: it may do anything the sandbox lets it do.

use journeyman_protocol::Level;

mod awk;
mod conditions;
mod credentials;
mod danger;
mod edit_table;
mod edits;
mod fetching;
mod git;
mod hosts;
mod reader_table;
mod readers;
mod sed;
mod survey;
mod unwrap;
mod unwrap_find;
mod unwrap_git;
mod unwrap_table;
mod unwrap_tools;
mod values;

use survey::Survey;

/// Longer commands are not taken apart word by word: nobody reads them, and no check is that long.
const MAX_BYTES: usize = 32 * 1024;
/// Characters of a command that a reason repeats.
const SHOWN: usize = 80;

/// One program that a shell command would run, with its arguments: of `sudo -n env A=1 rm x | tee y` there are
/// `sudo -n env A=1 rm x`, `env A=1 rm x`, `rm x` and `tee y`. Rules are held against each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    /// The program as it is named, and its arguments, quotes and escapes taken away.
    pub words: Vec<Word>,
    /// How far this part reaches by itself.
    pub level: Level,
    /// One line a person understands.
    pub reason: String,
    /// What would be lost, when it destroys something.
    pub destroys: Option<String>,
    /// Files that its redirections write, as written.
    pub writes: Vec<Word>,
    /// Files that its redirections read, as written, and what a loop goes through.
    pub reads: Vec<Word>,
    /// Hosts that its arguments name.
    pub hosts: Vec<String>,
}

/// One word of a [`Part`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    /// What it is; where it isn't known before it runs, how it is written.
    pub text: String,
    /// Whether it is known: no variable, substitution or pattern in it.
    pub known: bool,
}

/// What is known of a shell command before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandAnalysis {
    /// How far it reaches: that of its worst part.
    pub level: Level,
    /// One line a person understands.
    pub reason: String,
    /// What would be lost, when it destroys something.
    pub destroys: Option<String>,
    /// Whether what it destroys may be more than undoing brings back: ignored files, git's own, or whatever a
    /// pattern or a variable stands for.
    pub beyond_undo: bool,
    /// Every program that it is seen to run, wrappers and what they wrap.
    pub parts: Vec<Part>,
    /// Whether these are all: nothing of it was left that isn't understood. A rule that allows speaks of all parts of
    /// a command that is.
    pub complete: bool,
}

impl CommandAnalysis {
    fn of(level: Level, reason: String) -> Self {
        Self { level, reason, destroys: None, beyond_undo: false, parts: Vec::new(), complete: false }
    }
}

/// How a command that is started in `directory`, beneath the root, is written for [`analyse`] and for people:
/// as a change of directory before it. The directory counts then: what goes on from there isn't trusted with git.
#[must_use]
pub fn in_directory(directory: &str, command: &str) -> String {
    format!("{ENTER}{}{ENTERED}{command}", directory.replace('\'', "'\\''"))
}

/// What [`in_directory`] writes around a directory.
const ENTER: &str = "cd -- '";
const ENTERED: &str = "' && ";

/// The command in a text that [`in_directory`] wrote, for a directory beneath the root.
fn entered(command: &str) -> Option<&str> {
    let (directory, rest) = command.strip_prefix(ENTER)?.split_once('\'')?;
    let beneath =
        !directory.starts_with('/') && directory.split('/').all(|name| !matches!(name, "" | "." | ".."));
    // `cd -` goes where it was before.
    rest.strip_prefix(ENTERED.strip_prefix('\'')?).filter(|_| beneath && directory != "-")
}

/// Finds the level of `command`, which is to be run by `/bin/sh -c`.
///
/// It is [`Level::ReadOnly`] only if it consists of programs that are known, option by option, to read and
/// write nothing but their output; [`Level::Edit`] if beside such there are some of `known_checks`, and programs that are
/// known to change files of the project alone; [`Level::System`] if it seems to reach the network, another machine or the system; and
/// [`Level::Shell`] otherwise. A check counts in any directory of the project that [`in_directory`] names. Total for any text, in time linear in its length.
#[must_use]
pub fn analyse(command: &str, known_checks: &[String]) -> CommandAnalysis {
    let whole = [Some(command), entered(command)];
    let is_whole = |check: &&String| whole.iter().flatten().any(|command| is_same(check, command));
    if let Some(check) = known_checks.iter().find(is_whole) {
        let reason = format!("it is the project's own check `{}`", shown(check));
        return a_check(command, known_checks, reason);
    }
    if command.len() > MAX_BYTES {
        let reason = format!("it is {} bytes long, too long to judge", command.len());
        return CommandAnalysis::of(Level::System, reason);
    }
    let mut survey = Survey::new(known_checks, entered(command).is_some());
    survey.script(command);
    judged(command, survey)
}

/// A command that is a check as a whole, whatever it is made of. Rules see its parts all the same.
fn a_check(command: &str, known_checks: &[String], reason: String) -> CommandAnalysis {
    let mut survey = Survey::new(known_checks, entered(command).is_some());
    if command.len() <= MAX_BYTES {
        survey.script(command);
    }
    let complete = survey.unclear.is_none() && !survey.partial && command.len() <= MAX_BYTES;
    let mut parts = survey.parts;
    for part in &mut parts {
        part.level = part.level.min(Level::Edit);
        part.destroys = None;
    }
    CommandAnalysis { parts, complete, ..CommandAnalysis::of(Level::Edit, reason) }
}

/// What the parts of a command come to.
fn judged(command: &str, survey: Survey<'_>) -> CommandAnalysis {
    let Survey { mut parts, unclear, mut danger, fetched, may_hide, partial, .. } = survey;
    let complete = unclear.is_none() && !partial;
    // The first of the worst: what a person is asked for.
    let worst = parts.iter().rev().max_by_key(|part| part.level);
    let mut level = worst.map_or(Level::ReadOnly, |part| part.level);
    let mut reason = match (level, worst) {
        (Level::ReadOnly, _) | (_, None) => "it only reads".to_owned(),
        (_, Some(worst)) => worst.reason.clone(),
    };
    if let Some(outside) = danger.outside.clone()
        && level < Level::System
    {
        (level, reason) = (Level::System, outside);
    }
    if let Some(why) = fetched {
        (level, reason) = (Level::System, why);
    }
    if let Some(why) = unclear {
        if level < Level::Shell {
            level = Level::Shell;
            reason = format!("it runs `{}` ({why})", shown(command));
        }
        let rough = danger::scan(command);
        if let (Some(outside), true) = (&rough.outside, level < Level::System) {
            level = Level::System;
            reason.clone_from(outside);
        }
        danger.add(&rough);
        parts.extend(danger::rough_parts(command));
    } else if may_hide {
        danger::statements(command, &mut danger);
    }
    // What isn't known before it runs could stand for anything.
    danger.beyond_undo |= danger.destroys.is_some() && command.contains(['$', '`', '[']);
    let (destroys, beyond_undo) = (danger.destroys, danger.beyond_undo);
    CommandAnalysis { level, reason, destroys, beyond_undo, parts, complete }
}

/// Whether two commands differ at most in blanks that mean nothing.
fn is_same(check: &str, command: &str) -> bool {
    let ends = [' ', '\t', '\n'];
    let (check, command) = (check.trim_matches(ends), command.trim_matches(ends));
    if check.is_empty() {
        return false;
    }
    // Inside quotes and after a backslash blanks count, and a newline ends a command.
    let exact = |text: &str| text.contains(['\'', '"', '\\', '\n', '\r']);
    if exact(check) || exact(command) {
        return check == command;
    }
    let blank = [' ', '\t'];
    check
        .split(blank)
        .filter(|word| !word.is_empty())
        .eq(command.split(blank).filter(|word| !word.is_empty()))
}

fn shown(command: &str) -> String {
    let mut text: String = command
        .chars()
        .take(SHOWN)
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect();
    if command.chars().nth(SHOWN).is_some() {
        text.push('…');
    }
    text
}
