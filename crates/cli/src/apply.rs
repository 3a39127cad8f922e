//! `jm apply`: the edits of a reply, placed and written in one step, or none of them.

use crate::open_state;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use journeyman_edit::{
    Allow, ChangeKind, Failure as EditFailure, FileChange, FileProblem, Files, Format, MAX_FILE_BYTES,
    Options, Plan, plan,
};
use journeyman_host::Context as _;
use journeyman_host::config::Environment;
use journeyman_protocol::{RelPath, SessionId};
use journeyman_sandbox::clean;
use journeyman_workspace::{
    Change, ChangeSet, Expected, FileContent, ListOptions, Workspace, WorkspaceError, unified_diff,
};
use serde_json::{Value, json};

use crate::color::{self, Paint};
use crate::stdout::say;
use crate::summary;
use journeyman_host::HostError;
use journeyman_host::state::{now, project_root};

pub(crate) const HELP: &str = "\
Formats (told from the reply unless one is named):
  edit     <edit> blocks: <file>, <search>, <replace>
  blocks   SEARCH/REPLACE blocks between conflict markers
  udiff    unified diffs; counts and line numbers may be wrong
  patch    *** Begin Patch … *** End Patch
  whole    whole files in fenced blocks, the path above each
  lazy     the same, with remarks such as // ... existing code ... for what stays
  tool     JSON: {\"path\", \"old_string\", \"new_string\", \"replace_all\"}, or a list of them under \"edits\"

Nothing is written unless every edit has its place; --partial keeps those that do. `jm undo` takes it back.

With --json, `feedback` is what to send back to the model: what failed and why, the nearest lines, what to copy.

Exit codes: 0 applied, or nothing to do; 1 refused, nothing written; 2 usage; 3 with --partial, some refused.

Examples:
  pbpaste | jm apply --dry-run
  jm apply < reply.md
  jm apply --format tool --json < call.json
  git diff other-branch | jm apply --format udiff";

/// A longer reply is not read: no model's output limit is near it.
const MAX_REPLY: u64 = 16 << 20;
/// Of the files of a project this many are looked through for a text that isn't where it should be.
const LOOKED_THROUGH: usize = 20_000;
/// Under this label the state before is kept.
const LABEL: &str = "before jm apply";

/// The format that was named; none where it is to be told from the reply.
#[derive(Debug, Clone, Copy)]
struct Named(Option<Format>);

/// The names of the formats, and `auto`.
fn formats() -> impl TypedValueParser<Value = Named> {
    let names = std::iter::once("auto").chain(Format::ALL.into_iter().map(Format::name));
    PossibleValuesParser::new(names).map(|name| Named(name.parse().ok()))
}

/// What is refused unless it is allowed by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Allowed {
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
    /// How the edits are written
    #[arg(long, value_parser = formats(), default_value = "auto", value_name = "FORMAT", hide_possible_values = true)]
    format: Named,
    /// The file that is meant where the reply names none
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    directory: Option<PathBuf>,
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
    allow: Vec<Allowed>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn apply(environment: &Environment, args: &ApplyArgs) -> Result<u8, HostError> {
    let place = project_root(environment, args.directory.as_deref())?;
    let path = args.path.as_deref().map(|given| path_in(given, &place)).transpose()?;
    let reply = read_reply()?;
    let dirs = open_state(environment)?;
    let workspace = dirs.open_workspace(&place)?;
    let files = Tree { workspace: &workspace, read: RefCell::default() };
    let allows = |what| args.allow.contains(&what);
    let options = Options {
        format: args.format.0,
        path,
        partial: args.partial,
        cut_off: args.cut_off,
        allow: Allow {
            differences: allows(Allowed::Differences),
            placeholders: allows(Allowed::Placeholders),
            spans: allows(Allowed::Spans),
            broken_syntax: allows(Allowed::BrokenSyntax),
        },
    };
    let mut plan = plan(&reply, &options, &files);
    refuse_guarded(&mut plan);
    if !args.dry_run {
        write(&workspace, &files, &plan)?;
    }
    tell(args, &plan);
    Ok(match (plan.failed.is_empty(), plan.writes().is_empty()) {
        (true, _) => 0,
        (false, true) => 1,
        (false, false) => 3,
    })
}

/// A path as the user gave it, from the project's root.
fn path_in(given: &str, place: &std::path::Path) -> Result<RelPath, HostError> {
    let inside = std::path::Path::new(given).strip_prefix(place).ok().and_then(|path| path.to_str());
    RelPath::parse(inside.unwrap_or(given)).map_err(|error| {
        HostError::usage(format_args!("--path {given}: {error}; give it from the project's root"))
    })
}

fn read_reply() -> Result<String, HostError> {
    let mut input = std::io::stdin().lock();
    if input.is_terminal() {
        tell!("reading the reply from the terminal; end it with Ctrl-D");
    }
    let mut bytes = Vec::new();
    input.by_ref().take(MAX_REPLY + 1).read_to_end(&mut bytes).context("standard input")?;
    if bytes.len() as u64 > MAX_REPLY {
        return Err(HostError::usage(format_args!("the reply is longer than {MAX_REPLY} bytes")));
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(HostError::usage("there is no reply on standard input: jm apply < reply.md"));
    }
    String::from_utf8(bytes).map_err(|error| {
        HostError::usage(format_args!("the reply isn't UTF-8 (byte {})", error.utf8_error().valid_up_to()))
    })
}

/// The project's files, each read once.
struct Tree<'a> {
    workspace: &'a Workspace,
    read: RefCell<HashMap<RelPath, Option<FileContent>>>,
}

impl Tree<'_> {
    fn content(&self, path: &RelPath) -> Result<Option<FileContent>, WorkspaceError> {
        if let Some(known) = self.read.borrow().get(path) {
            return Ok(known.clone());
        }
        let content = match self.workspace.read(path, MAX_FILE_BYTES as u64) {
            Ok(content) => Some(content),
            Err(WorkspaceError::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        self.read.borrow_mut().insert(path.clone(), content.clone());
        Ok(content)
    }
}

impl Files for Tree<'_> {
    fn text(&self, path: &RelPath) -> Result<Option<Cow<'_, str>>, FileProblem> {
        match self.content(path) {
            Ok(None) => Ok(None),
            Ok(Some(content)) => match content.text() {
                Some(text) => Ok(Some(Cow::Owned(text.to_owned()))),
                None => Err(FileProblem::Binary),
            },
            Err(error) => Err(FileProblem::Unreadable(error.to_string())),
        }
    }

    fn others(&self) -> Vec<RelPath> {
        let options = ListOptions { limit: LOOKED_THROUGH, ..ListOptions::default() };
        // It only helps a message; without it that says less.
        self.workspace.list(options).map(|listing| listing.paths).unwrap_or_default()
    }
}

/// What programs outside of the sandbox run or obey is no model's to write.
fn refuse_guarded(plan: &mut Plan) {
    let touches = |change: &FileChange| {
        let guarded = [Some(&change.path), change.to.as_ref()].into_iter().flatten();
        guarded.into_iter().find(|path| journeyman_policy::is_guarded(path)).cloned()
    };
    for path in plan.changes.iter().filter_map(touches) {
        let message = format!(
            "{path}: programs outside of the sandbox run or obey it (git's files, hooks, editor and shell settings, \
             instructions of agents, credentials), so a reply doesn't change it. Change it by hand if you mean it."
        );
        plan.failed.push(EditFailure { path: Some(path), kind: "guarded", message, nearest: None });
    }
    plan.changes.retain(|change| touches(change).is_none());
}

/// Writes all of it in one step.
fn write(workspace: &Workspace, files: &Tree<'_>, plan: &Plan) -> Result<(), HostError> {
    let mut changes = Vec::new();
    for change in plan.writes() {
        let old = files.content(&change.path).context("a file")?;
        let expected = old.as_ref().map_or(Expected::Absent, |old| Expected::Hash(old.hash));
        let path = change.path.clone();
        let Some(after) = &change.after else {
            changes.push(Change::Delete { path, expected });
            continue;
        };
        if change.before.as_ref() != Some(after) {
            let content = match &old {
                Some(old) => {
                    old.encode(after).map_err(|error| HostError::failed(format_args!("{path}: {error}")))?
                }
                None => after.clone().into_bytes(),
            };
            changes.push(Change::Write { path: path.clone(), content, expected });
        }
        if let Some(to) = &change.to {
            changes.push(Change::Rename { from: path, to: to.clone() });
        }
    }
    if changes.is_empty() {
        return Ok(());
    }
    let session = SessionId::new(now(), fastrand::u64(..));
    workspace.checkpoint(&session, LABEL).context("keeping the state before")?;
    workspace.apply(ChangeSet { call: None, session, changes }).context("nothing was written")?;
    Ok(())
}

fn tell(args: &ApplyArgs, plan: &Plan) {
    if args.json {
        say!("{}", object(plan));
        return;
    }
    let paint = color::stdout();
    for change in plan.writes() {
        if args.dry_run {
            show(change, paint);
        } else {
            say!("{}", line(change, paint));
        }
        for note in change.notes.iter().filter_map(|note| note.note.as_deref()) {
            tell!("  {}", clean(note.as_bytes()));
        }
        if let Some(finding) = &change.broken {
            let warning = format!("it doesn't parse any more: line {}: {}", finding.line, finding.message);
            tell!("  {}", color::stderr().yellow(&clean(warning.as_bytes())));
        }
    }
    for same in &plan.unchanged {
        say!(
            "{} {}: {}",
            paint.dim("unchanged"),
            clean(same.path.to_string().as_bytes()),
            clean(same.reason.as_bytes())
        );
    }
    for failure in &plan.failed {
        tell!("{}: {}", color::stderr().red("refused"), clean(failure.message.as_bytes()));
    }
    if plan.failed.is_empty() {
        return;
    }
    let held = plan.changes.len() - plan.writes().len();
    if held > 0 {
        tell!("nothing was written; {held} of the files could be changed: --partial writes those");
    } else if plan.writes().is_empty() {
        tell!("nothing was written");
    }
}

fn line(change: &FileChange, paint: Paint) -> String {
    let path = clean(change.path.to_string().as_bytes());
    let what = match change.kind {
        ChangeKind::Create => paint.green("created"),
        ChangeKind::Modify => paint.cyan("changed"),
        ChangeKind::Rename => paint.cyan("renamed"),
        ChangeKind::Delete => paint.red("deleted"),
    };
    let to =
        change.to.as_ref().map_or_else(String::new, |to| format!(" → {}", clean(to.to_string().as_bytes())));
    let lines: Vec<String> = lines(change).iter().map(ToString::to_string).collect();
    let place = match (lines.as_slice(), change.strategy()) {
        ([], _) | (_, None) => String::new(),
        ([only], Some(strategy)) => format!(" (line {only}, {strategy})"),
        (several, Some(strategy)) => format!(" (lines {}, {strategy})", several.join(", ")),
    };
    format!("{what} {path}{to}{}", paint.dim(&place))
}

/// The change as a diff, where there is something to see.
fn show(change: &FileChange, paint: Paint) {
    if let Some(to) = &change.to {
        say!("{}", clean(format!("rename {} to {to}", change.path).as_bytes()));
    }
    let bytes = |text: &Option<String>| text.as_ref().map(|text| text.clone().into_bytes());
    let diff = unified_diff(&change.path, bytes(&change.before).as_deref(), bytes(&change.after).as_deref());
    for line in clean(diff.as_bytes()).lines() {
        say!("{}", summary::colored(line, paint));
    }
}

/// The 1-based lines where something was placed.
fn lines(change: &FileChange) -> Vec<u32> {
    change
        .notes
        .iter()
        .filter(|note| note.strategy.is_some() && note.count > 0)
        .map(|note| note.line)
        .collect()
}

fn object(plan: &Plan) -> Value {
    let applied = plan.writes().iter().map(|change| {
        let notes: Vec<&str> = change.notes.iter().filter_map(|note| note.note.as_deref()).collect();
        let method = match change.strategy() {
            Some(strategy) => json!(strategy),
            None if change.kind == ChangeKind::Modify => json!("rewrite"),
            None => json!(change.kind),
        };
        let mut object = json!({
            "path": change.path, "kind": change.kind, "method": method, "lines": lines(change), "differed": notes,
        });
        if let Some(fields) = object.as_object_mut() {
            if let Some(to) = &change.to {
                fields.insert("to".to_owned(), json!(to));
            }
            if let Some(finding) = &change.broken {
                let broken = json!({"line": finding.line, "message": finding.message});
                fields.insert("broken".to_owned(), broken);
            }
        }
        object
    });
    let unchanged = plan.unchanged.iter().map(|same| json!({"path": same.path, "reason": same.reason}));
    let failed = plan.failed.iter().map(|failure| {
        let nearest = failure.nearest.as_ref().map(|(line, text)| json!({"line": line, "text": text}));
        json!({"path": failure.path, "kind": failure.kind, "reason": failure.message, "nearest": nearest})
    });
    let mut object = json!({
        "format": plan.format,
        "applied": applied.collect::<Vec<_>>(),
        "unchanged": unchanged.collect::<Vec<_>>(),
        "failed": failed.collect::<Vec<_>>(),
    });
    if let (Some(fields), false) = (object.as_object_mut(), plan.failed.is_empty()) {
        fields.insert("feedback".to_owned(), json!(plan.feedback()));
    }
    object
}
