//! `jm symbols` and `jm refs`: what a file defines, and where a name is used.

use std::path::PathBuf;

use clap::Args;
use journeyman_agent::config::Environment;
use journeyman_index::Snapshot;
use journeyman_index::query::{Corpus as _, SymbolEntry};
use journeyman_protocol::RelPath;
use journeyman_sandbox::clean;
use serde_json::json;

use super::current;
use crate::color;
use crate::edge::Failure;
use crate::stdout::say;

pub(crate) const SYMBOLS_HELP: &str = "\
Exit codes: 0 the file defines something, 1 it defines nothing or an error, 2 usage

Examples:
  jm symbols src/lib.rs
  jm symbols src/lib.rs --json | jq '.symbols[].name'";
pub(crate) const REFS_HELP: &str = "\
A name is taken by its letters: two things of one name aren't told apart. Definitions come first.

Exit codes: 0 something was found, 1 nothing was found or an error, 2 usage

Examples:
  jm refs parse_header
  jm refs Shop.open          uses of `open`, and definitions of it within `Shop`";

#[derive(Debug, Args)]
pub(crate) struct SymbolsArgs {
    /// The file
    path: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RefsArgs {
    /// The name; what it lies in may stand before it, with dots or `::` between
    symbol: String,
    /// Places, at most
    #[arg(long, value_name = "N", default_value_t = 200)]
    limit: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn symbols(environment: &Environment, args: &SymbolsArgs) -> Result<u8, Failure> {
    let path = RelPath::parse(&args.path).map_err(Failure::usage)?;
    let (_, snapshot) = current(environment, args.directory.as_deref())?;
    let Some(file) = snapshot.find(&path) else {
        return Err(Failure::usage(format_args!(
            "{path} is not in the index: there is no such file, or it is ignored"
        )));
    };
    let mut all = Vec::new();
    let paint = color::stdout();
    let mut count = 0_usize;
    snapshot.symbols_of(file, &mut |symbol: SymbolEntry<'_>| {
        count += 1;
        if args.json {
            all.push(object(&symbol));
            return;
        }
        let depth = if symbol.scope.is_empty() { 0 } else { symbol.scope.split('.').count() };
        let shown = if symbol.signature.is_empty() { symbol.name } else { symbol.signature };
        let shown = clean(shown.as_bytes());
        let line = format!("{:>6}", symbol.name_line);
        say!("{} {}{:<11} {shown}", paint.dim(&line), "  ".repeat(depth), symbol.kind.name());
    });
    if args.json {
        say!("{}", json!({"path": path.to_string(), "symbols": all}));
    } else if count == 0 {
        eprintln!("{path} defines nothing that is known");
    }
    Ok(u8::from(count == 0))
}

fn object(symbol: &SymbolEntry<'_>) -> serde_json::Value {
    json!({
        "name": symbol.name, "kind": symbol.kind.name(), "scope": symbol.scope, "line": symbol.name_line,
        "first_line": symbol.first_line, "lines": symbol.lines, "signature": symbol.signature, "local": symbol.local,
    })
}

pub(crate) fn refs(environment: &Environment, args: &RefsArgs) -> Result<u8, Failure> {
    let whole = args.symbol.trim().replace("::", ".");
    let (scope, name) = whole.rsplit_once('.').unwrap_or(("", &whole));
    if name.is_empty() {
        return Err(Failure::usage("name a symbol"));
    }
    let (_, snapshot) = current(environment, args.directory.as_deref())?;
    let mut defined = Vec::new();
    snapshot.symbols_called(&name.to_lowercase(), &mut |symbol: SymbolEntry<'_>| {
        let within =
            scope.is_empty() || symbol.scope == scope || symbol.scope.ends_with(&format!(".{scope}"));
        if symbol.name == name && within {
            defined.push((
                path_of(&snapshot, symbol.file),
                symbol.name_line,
                symbol.kind.name(),
                symbol.scope.to_owned(),
            ));
        }
    });
    defined.sort();
    let mut used = Vec::new();
    snapshot.used(name, |file, line| used.push((file, line)));
    let mut used: Vec<(String, u32, u32)> =
        used.into_iter().map(|(file, line)| (path_of(&snapshot, file), line, file)).collect();
    used.sort();
    used.dedup();
    let more = used.len().saturating_sub(args.limit);
    used.truncate(args.limit);
    let nothing = defined.is_empty() && used.is_empty();
    let used: Vec<(String, u32, Option<String>)> =
        used.into_iter().map(|(path, line, file)| (path, line, within(&snapshot, file, line))).collect();
    if args.json {
        let defined: Vec<_> = defined
            .iter()
            .map(
                |(path, line, kind, scope)| json!({"path": path, "line": line, "kind": kind, "scope": scope}),
            )
            .collect();
        let used: Vec<_> = used
            .iter()
            .map(|(path, line, inside)| json!({"path": path, "line": line, "inside": inside}))
            .collect();
        say!("{}", json!({"definitions": defined, "uses": used, "more": more}));
        return Ok(u8::from(nothing));
    }
    let paint = color::stdout();
    for (path, line, kind, scope) in &defined {
        let place = format!("{path}:{line}");
        let scope = if scope.is_empty() { String::new() } else { format!(" in {}", clean(scope.as_bytes())) };
        say!("{}  {}", paint.bold(&place), paint.dim(&format!("{kind}{scope}")));
    }
    for (path, line, inside) in &used {
        let inside = inside.as_deref().map(|inside| clean(inside.as_bytes())).unwrap_or_default();
        say!("{}", format!("{path}:{line}  {}", paint.dim(&inside)).trim_end());
    }
    if more > 0 {
        eprintln!("{more} more; --limit shows them");
    }
    if nothing {
        eprintln!("{} is neither defined nor used here", clean(args.symbol.as_bytes()));
    }
    Ok(u8::from(nothing))
}

/// The symbol that a line stands in.
fn within(snapshot: &Snapshot, file: u32, line: u32) -> Option<String> {
    let file = snapshot.file(file)?;
    let inside = file.segment().inside(&file.record, line)?;
    let symbol = file.segment().symbol(file.record.first_symbol + inside)?;
    let scope = file.scope(&symbol);
    Some(if scope.is_empty() { symbol.name } else { format!("{scope}.{}", symbol.name) })
}

fn path_of(snapshot: &Snapshot, file: u32) -> String {
    Snapshot::file(snapshot, file)
        .and_then(|file| file.path())
        .map(|path| path.to_string())
        .unwrap_or_default()
}
