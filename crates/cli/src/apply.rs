//! `jm apply`: the edits of a reply, placed and written in one step, or none of them.

use std::io::IsTerminal as _;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use journeyman_edit::{AllowedDifferences, ApplyOptions, ChangeKind, EditPlan, FileChange, Format};
use journeyman_host::HostError;
use journeyman_host::apply::{PlacedReply, describe_placement, plan_to_json, read_reply};
use journeyman_host::config::Environment;
use journeyman_host::format::printable;
use journeyman_host::root::{path_in_project, project_root};
use journeyman_terminal::{Paint, stderr_paint, stdout_paint};
use journeyman_workspace::unified_diff;

use crate::args::ProjectArgs;
use crate::output;
use crate::runtime::open_state;

/// The format that the user named; `None` where the reply tells it.
#[derive(Debug, Clone, Copy)]
struct FormatArg(Option<Format>);

/// The names of the formats, and `auto`.
fn format_arg_parser() -> impl TypedValueParser<Value = FormatArg> {
    let names = std::iter::once("auto").chain(Format::ALL.into_iter().map(Format::name));
    PossibleValuesParser::new(names).map(|name| FormatArg(name.parse().ok()))
}

/// Edits that are refused unless they are allowed by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AllowedRisk {
    /// A changed line's names, numbers, operators or strings differ from the search text's
    Differences,
    /// Remarks stand in for code in the new text
    Placeholders,
    /// The replaced region is far larger than the search text
    Spans,
    /// The file doesn't parse any more after a loosely placed edit
    BrokenSyntax,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// The format of the edits
    #[arg(long, value_parser = format_arg_parser(), default_value = "auto", value_name = "FORMAT", hide_possible_values = true)]
    format: FormatArg,
    /// The file that is meant where the reply names none
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    #[command(flatten)]
    project: ProjectArgs,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Write what can be placed, even if something can't
    #[arg(long)]
    partial: bool,
    /// The reply was cut off: what isn't closed in it isn't applied
    #[arg(long)]
    cut_off: bool,
    /// Allow what is refused otherwise
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    allow: Vec<AllowedRisk>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn apply(environment: &Environment, args: &ApplyArgs) -> Result<u8, HostError> {
    let directory = args.project.directory.as_deref();
    let root = project_root(environment, directory)?;
    let in_project = |name: &str| {
        path_in_project(environment, directory, &root, name)
            .map_err(|error| HostError::usage(format_args!("--path {name}: {error}")))
    };
    let path = args.path.as_deref().map(in_project).transpose()?;
    let reply = read_stdin_reply()?;
    let dirs = open_state(environment)?;
    let workspace = dirs.open_workspace(&root)?;
    let allows = |what| args.allow.contains(&what);
    let options = ApplyOptions {
        format: args.format.0,
        path,
        partial: args.partial,
        cut_off: args.cut_off,
        allow: AllowedDifferences {
            differences: allows(AllowedRisk::Differences),
            placeholders: allows(AllowedRisk::Placeholders),
            spans: allows(AllowedRisk::Spans),
            broken_syntax: allows(AllowedRisk::BrokenSyntax),
        },
    };
    let placed = PlacedReply::new(&workspace, &reply, &options);
    if !args.dry_run {
        placed.apply_changes()?;
    }
    print_plan(args, &placed.plan);
    Ok(placed.exit_code())
}

/// Reads the reply from standard input, and says so at a terminal.
fn read_stdin_reply() -> Result<String, HostError> {
    let input = std::io::stdin().lock();
    if input.is_terminal() {
        errln!("reading the reply from the terminal; end it with Ctrl-D");
    }
    read_reply(input)
}

fn print_plan(args: &ApplyArgs, plan: &EditPlan) {
    if args.json {
        outln!("{}", plan_to_json(plan));
        return;
    }
    let paint = stdout_paint();
    for change in plan.changes_to_write() {
        if args.dry_run {
            print_diff(change);
        } else {
            outln!("{}", describe_change(change, paint));
        }
        for note in change.notes.iter().filter_map(|note| note.note.as_deref()) {
            errln!("  {}", printable(&note));
        }
        if let Some(finding) = &change.broken {
            let warning = format!("it doesn't parse any more: line {}: {}", finding.line, finding.message);
            errln!("  {}", stderr_paint().yellow(&printable(&warning)));
        }
    }
    for same in &plan.unchanged {
        outln!("{} {}: {}", paint.dim("unchanged"), printable(&same.path), printable(&same.reason));
    }
    for failure in &plan.failed {
        errln!("{}: {}", stderr_paint().red("refused"), printable(&failure.message));
    }
    if plan.failed.is_empty() {
        return;
    }
    let held = plan.changes.len() - plan.changes_to_write().len();
    if held > 0 {
        errln!("nothing was written; {held} of the files could be changed: --partial writes those");
    } else if plan.changes_to_write().is_empty() {
        errln!("nothing was written");
    }
}

fn describe_change(change: &FileChange, paint: Paint) -> String {
    let path = printable(&change.path);
    let what = match change.kind {
        ChangeKind::Create => paint.green("created"),
        ChangeKind::Modify => paint.cyan("changed"),
        ChangeKind::Rename => paint.cyan("renamed"),
        ChangeKind::Delete => paint.red("deleted"),
    };
    let to = change.to.as_ref().map_or_else(String::new, |to| format!(" → {}", printable(&to)));
    let place = describe_placement(change).map(|place| format!(" ({place})")).unwrap_or_default();
    format!("{what} {path}{to}{}", paint.dim(&place))
}

/// Prints a change as a diff.
fn print_diff(change: &FileChange) {
    if let Some(to) = &change.to {
        outln!("{}", printable(&format_args!("rename {} to {to}", change.path)));
    }
    let [before, after] = [&change.before, &change.after].map(|text| text.as_deref().map(str::as_bytes));
    output::write_diff(&unified_diff(&change.path, before, after));
}
