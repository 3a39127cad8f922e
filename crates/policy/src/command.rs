//! Finds the level of a shell command, in stages from its text to a [`CommandAnalysis`]:
//!
//! 1. [`analyse_command`]: a text that equals one of the project's checks is [`Level::Edit`]; a
//!    text that is too long to parse is [`Level::System`].
//! 2. `survey` parses the text with the shell's grammar and makes a [`CommandPart`] of every
//!    program that would run. `directory`, `values` and `variables` follow what `cd`, arithmetic
//!    and assignments do to later parts.
//! 3. `unwrap` finds the programs that a program runs (`env`, `xargs`, `sh -c`); each of them goes
//!    through stages 2 to 5 too.
//! 4. Each part gets its level. `readers` proves option by option that it only reads
//!    ([`Level::ReadOnly`]), `edits` that it changes only files of the project, `builds` that a
//!    known tool builds or tests the project (both [`Level::Edit`]). A part that is one of the
//!    project's checks is [`Level::Edit`] too. Any other program is [`Level::Shell`], and so is a
//!    part that reads `credentials`.
//! 5. `danger` searches the parts that do more than read for effects outside the project, which
//!    make a part [`Level::System`], and for destruction. It prefers a false alarm to a miss.
//! 6. `combine_parts` takes the level of the strongest part. A command that was not understood as a
//!    whole is at least [`Level::Shell`], and `danger` searches its raw text, split roughly.
//!
//! [`Policy::judge`](crate::Policy::judge) decides from the analysis, the mode, the sandbox and the
//! rules, which are matched against the parts and their `hosts`. `fetching` recognizes commands
//! that only fetch packages, for which a package registry is not level 3.

use journeyman_protocol::Level;

mod awk;
mod build_table;
mod builds;
mod conditions;
mod credentials;
mod current_directory;
mod danger;
mod directory_options;
mod edit_table;
mod edits;
mod fetching;
mod git_readers;
mod hosts;
mod inline_code;
mod numeric_variables;
mod options;
mod part;
mod piped_output;
mod reader_table;
mod readers;
mod sed;
mod statement_tree;
mod survey;
mod unwrap;
mod unwrap_find;
mod unwrap_git;
mod unwrap_result;
mod unwrap_table;
mod unwrap_tools;
mod variables;
mod writer_table;
mod written_files;

use part::shorten_command;
pub use part::{CommandPart, CommandWord, WrittenPath};
use survey::Survey;
pub(crate) use written_files::names_writer;

/// Maximum bytes of a command that is parsed. Longer commands are never read by a person, and no
/// check is that long.
const MAX_COMMAND_BYTES: usize = 32 * 1024;

/// The analysis of a shell command before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandAnalysis {
    /// The level of the command: that of its strongest part.
    pub level: Level,
    /// One line for people.
    pub reason: String,
    /// The data that the command would destroy, if any.
    pub destroys: Option<String>,
    /// True if undo may not restore everything that the command destroys: ignored files, git's own
    /// files, or the unknown values of patterns and variables.
    pub beyond_undo: bool,
    /// All programs that the command is seen to run, including wrappers and the programs that they
    /// run.
    pub parts: Vec<CommandPart>,
    /// True if `parts` is complete: the whole command was understood. A rule that allows such a
    /// command has to cover all parts.
    pub complete: bool,
}

impl CommandAnalysis {
    fn from_level(level: Level, reason: String) -> Self {
        Self { level, reason, destroys: None, beyond_undo: false, parts: Vec::new(), complete: false }
    }
}

/// Formats a command that starts in `directory`, beneath the root, for [`analyse_command`] and for
/// people: with a change of directory before it, after which git is no longer trusted.
#[must_use]
pub fn format_in_directory(directory: &str, command: &str) -> String {
    format!("{CD_PREFIX}{}{CD_SEPARATOR}{command}", directory.replace('\'', "'\\''"))
}

/// The texts that [`in_directory`] writes before and after a directory.
const CD_PREFIX: &str = "cd -- '";
const CD_SEPARATOR: &str = "' && ";

/// Returns the command in a text from [`in_directory`], for a directory beneath the root.
fn command_after_cd(command: &str) -> Option<&str> {
    let (directory, rest) = command.strip_prefix(CD_PREFIX)?.split_once('\'')?;
    let beneath =
        !directory.starts_with('/') && directory.split('/').all(|name| !matches!(name, "" | "." | ".."));
    // `cd -` returns to the previous directory.
    rest.strip_prefix(CD_SEPARATOR.strip_prefix('\'')?).filter(|_| beneath && directory != "-")
}

/// Analyses `command`, which is to be run by `/bin/sh -c`.
///
/// The level is [`Level::ReadOnly`] only if all programs are known, option by option, to read files
/// and write nothing but their output; [`Level::Edit`] if the other programs are among
/// `known_checks`, known to change only files of the project, or known to build and test it;
/// [`Level::System`] if the command seems to reach the network, another machine or the system; and
/// [`Level::Shell`] otherwise. A check counts in any directory of the project that
/// [`format_in_directory`] names. Accepts any text, in time linear in its length.
#[must_use]
pub fn analyse_command(command: &str, known_checks: &[String]) -> CommandAnalysis {
    let whole = [Some(command), command_after_cd(command)];
    let is_whole = |check: &&String| whole.iter().flatten().any(|command| is_same_command(check, command));
    if let Some(check) = known_checks.iter().find(is_whole) {
        let reason = format!("it is the project's own check `{}`", shorten_command(check));
        return analyse_check(command, known_checks, reason);
    }
    if command.len() > MAX_COMMAND_BYTES {
        let reason = format!("it is {} bytes long, too long to judge", command.len());
        return CommandAnalysis::from_level(Level::System, reason);
    }
    let mut survey = Survey::new(known_checks, command_after_cd(command).is_some());
    survey.survey_script(command);
    combine_parts(command, survey)
}

/// Analyses a command that equals a check as a whole, whatever its parts are. Rules still see the
/// parts.
fn analyse_check(command: &str, known_checks: &[String], reason: String) -> CommandAnalysis {
    let mut survey = Survey::new(known_checks, command_after_cd(command).is_some());
    if command.len() <= MAX_COMMAND_BYTES {
        survey.survey_script(command);
    }
    let complete = survey.unclear.is_none() && !survey.partial && command.len() <= MAX_COMMAND_BYTES;
    let mut parts = survey.parts;
    for part in &mut parts {
        part.level = part.level.min(Level::Edit);
        part.destroys = None;
    }
    CommandAnalysis { parts, complete, ..CommandAnalysis::from_level(Level::Edit, reason) }
}

/// Combines the parts of a command into its analysis.
fn combine_parts(command: &str, survey: Survey<'_>) -> CommandAnalysis {
    let Survey { mut parts, unclear, mut danger, fetched, may_hide, partial, .. } = survey;
    let complete = unclear.is_none() && !partial;
    // The first of the strongest parts, about which a person is asked.
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
            reason = format!("it runs `{}` ({why})", shorten_command(command));
        }
        let rough = danger::scan_danger(command);
        if let (Some(outside), true) = (&rough.outside, level < Level::System) {
            level = Level::System;
            reason.clone_from(outside);
        }
        danger.merge(&rough);
        parts.extend(danger::split_roughly(command));
    } else if may_hide {
        danger::check_statements(command, &mut danger);
    }
    // An unknown value could be anything.
    danger.beyond_undo |= danger.destroys.is_some() && command.contains(['$', '`', '[']);
    let (destroys, beyond_undo) = (danger.destroys, danger.beyond_undo);
    CommandAnalysis { level, reason, destroys, beyond_undo, parts, complete }
}

/// Returns true if two commands differ at most in insignificant blanks.
fn is_same_command(check: &str, command: &str) -> bool {
    let ends = [' ', '\t', '\n'];
    let (check, command) = (check.trim_matches(ends), command.trim_matches(ends));
    if check.is_empty() {
        return false;
    }
    // Blanks count inside quotes and after a backslash, and a newline ends a command.
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
