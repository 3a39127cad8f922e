//! `jm symbols` and `jm refs`: what a file defines, and where a name is used.

use std::path::PathBuf;

use clap::Args;
use journeyman_host::config::Environment;
use journeyman_index::Snapshot;
use journeyman_index::docs::{Docs, SectionPlace, is_document};
use journeyman_index::analysis::Content;
use journeyman_index::query::{Corpus as _, SymbolEntry};
use journeyman_protocol::RelPath;
use journeyman_sandbox::clean;
use serde_json::json;

use super::place::Place as Where;
use super::search::path_of;
use super::{at_least_one, current};
use crate::color;
use crate::stdout::say;
use journeyman_host::HostError;

pub(crate) const SYMBOLS_HELP: &str = "\
Of a document, each heading has the symbols that its section names; of source, each symbol has the documentation that \
names it. `docs/search.md` says which symbol a name means.

Exit codes: 0 the file defines something, 1 it defines nothing or an error, 2 usage

Examples:
  jm symbols src/lib.rs
  jm symbols src/lib.rs --json | jq '.symbols[].name'";
pub(crate) const REFS_HELP: &str = "\
A name is taken by its letters: two things of one name aren't told apart. Definitions come first, then uses, then \
sections of documents and doc comments that name it (--docs leaves the uses out).

Exit codes: 0 something was found, 1 nothing was found or an error, 2 usage

Examples:
  jm refs parse_header
  jm refs Shop.open          uses of `open`, and definitions of it within `Shop`
  jm refs --docs Shop.open   what is written about it";
/// Places of documentation that are shown beside a symbol.
const BESIDE: usize = 2;

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
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = at_least_one)]
    limit: usize,
    /// Documentation alone
    #[arg(long)]
    docs: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn symbols(environment: &Environment, args: &SymbolsArgs) -> Result<u8, HostError> {
    let (project, snapshot) = current(environment, args.directory.as_deref())?;
    let place = Where::of(environment, args.directory.as_deref())?;
    let find = |path: &str| snapshot.find(&RelPath::parse(path).ok()?);
    let similar =
        |path: &str| project.graph(&snapshot).similar(path).into_iter().map(str::to_owned).collect();
    let file = place.file(&args.path, &find, &similar)?;
    let path = path_of(&snapshot, file);
    let mut symbols = Vec::new();
    snapshot.symbols_of(file, &mut |symbol: SymbolEntry<'_>| {
        let depth = if symbol.scope.is_empty() { 0 } else { symbol.scope.split('.').count() };
        let shown = if symbol.signature.is_empty() { symbol.name } else { symbol.signature };
        symbols.push((
            Line { depth, kind: symbol.kind.name(), line: symbol.name_line, shown: shown.to_owned() },
            {
                let own = (symbol.name.to_owned(), symbol.scope.to_owned(), symbol.first_line);
                (own, object(&symbol))
            },
        ));
    });
    let mut links = Links::new(&snapshot, file);
    let paint = color::stdout();
    let count = symbols.len();
    let mut all = Vec::new();
    for (line, ((name, scope, first_line), mut object)) in symbols {
        let beside = links.of(&name, &scope, first_line);
        if args.json {
            if let Some(object) = object.as_object_mut() {
                let places = beside.iter().map(|(place, _)| place.clone()).collect();
                object.insert(links.key().to_owned(), serde_json::Value::Array(places));
            }
            all.push(object);
            continue;
        }
        let shown = clean(line.shown.as_bytes());
        let number = paint.dim(&format!("{:>6}", line.line));
        let more = if beside.len() > BESIDE { " …" } else { "" };
        let beside: Vec<&str> = beside.iter().take(BESIDE).map(|(_, text)| text.as_str()).collect();
        let beside = if beside.is_empty() {
            String::new()
        } else {
            let beside = clean(beside.join(", ").as_bytes()).to_string();
            format!("  {}", paint.dim(&format!("{} {beside}{more}", links.sign())))
        };
        say!("{number} {}{:<11} {shown}{beside}", "  ".repeat(line.depth), line.kind);
    }
    if args.json {
        say!("{}", json!({"path": path, "symbols": all}));
    } else if count == 0 {
        tell!("{} defines nothing: {}", clean(path.as_bytes()), reason(&snapshot, file));
    }
    Ok(u8::from(count == 0))
}

/// Why a file has no symbols.
fn reason(snapshot: &Snapshot, file: u32) -> &'static str {
    match Snapshot::file(snapshot, file).map(|file| file.record.content) {
        Some(Content::Binary) => "it is binary",
        Some(Content::Huge) => "it is too long to be taken apart",
        Some(Content::Minified) => "a program wrote its lines",
        Some(Content::Unreadable) => "it can't be read",
        _ => "it has no definitions that are understood",
    }
}

/// A symbol as it is shown.
struct Line {
    depth: usize,
    kind: &'static str,
    line: u32,
    shown: String,
}

/// Documentation of a file's symbols, or the symbols that a document's sections name.
struct Links<'a> {
    snapshot: &'a Snapshot,
    docs: Docs<'a>,
    file: u32,
    document: bool,
}

impl<'a> Links<'a> {
    fn new(snapshot: &'a Snapshot, file: u32) -> Self {
        Self { snapshot, docs: Docs::new(snapshot), file, document: is_document(snapshot, file) }
    }

    fn key(&self) -> &'static str {
        if self.document { "names" } else { "documentation" }
    }

    fn sign(&self) -> &'static str {
        if self.document { "→" } else { "←" }
    }

    /// Each as JSON and in words.
    fn of(&mut self, name: &str, scope: &str, first_line: u32) -> Vec<(serde_json::Value, String)> {
        if !self.document {
            let mut symbols = self.docs.symbols_called(name, scope);
            symbols.retain(|id| self.snapshot.symbol(*id).is_some_and(|(file, _)| file == self.file));
            let places = self.docs.sections_mentioning(name, &symbols);
            return places.iter().map(|place| (self.place(place), self.words(place))).collect();
        }
        let sections = self.docs.sections(self.file);
        let Some((_, mentions)) = sections.into_iter().find(|(place, _)| place.first_line == first_line)
        else {
            return Vec::new();
        };
        let mut meant: Vec<u32> = Vec::new();
        for mention in &mentions {
            meant
                .extend(self.docs.resolve_mention(mention).iter().filter(|id| !meant.contains(id)).collect::<Vec<_>>());
        }
        meant.into_iter().filter_map(|id| self.symbol(id)).collect()
    }

    fn symbol(&self, id: u32) -> Option<(serde_json::Value, String)> {
        let (file, symbol) = self.snapshot.symbol(id)?;
        let scope = Snapshot::file(self.snapshot, file)?.scope(&symbol);
        let name = if scope.is_empty() { symbol.name } else { format!("{scope}.{}", symbol.name) };
        let value = json!({"name": name, "path": path_of(self.snapshot, file), "line": symbol.name_line});
        Some((value, name))
    }

    fn place(&self, place: &SectionPlace) -> serde_json::Value {
        json!({"path": path_of(self.snapshot, place.file), "line": place.first_line, "headings": place.headings})
    }

    fn words(&self, place: &SectionPlace) -> String {
        format!("{}:{}", path_of(self.snapshot, place.file), place.first_line)
    }
}

fn object(symbol: &SymbolEntry<'_>) -> serde_json::Value {
    json!({
        "name": symbol.name, "kind": symbol.kind.name(), "scope": symbol.scope, "line": symbol.name_line,
        "first_line": symbol.first_line, "lines": symbol.lines, "signature": symbol.signature, "local": symbol.local,
    })
}

pub(crate) fn refs(environment: &Environment, args: &RefsArgs) -> Result<u8, HostError> {
    let whole = args.symbol.trim().replace("::", ".");
    let (scope, name) = whole.rsplit_once('.').unwrap_or(("", &whole));
    if name.is_empty() {
        return Err(HostError::usage("name a symbol"));
    }
    let (_, snapshot) = current(environment, args.directory.as_deref())?;
    let defined = defined(&snapshot, name, scope);
    let mut docs = Docs::new(&snapshot);
    let meant = docs.symbols_called(name, scope);
    let mut documented = docs.sections_mentioning(name, &meant);
    let mut used = Vec::new();
    if !args.docs {
        snapshot.used(name, |file, line| used.push((file, line)));
    }
    let mut used: Vec<(String, u32, u32)> =
        used.into_iter().map(|(file, line)| (path_of(&snapshot, file), line, file)).collect();
    used.sort();
    used.dedup();
    let more = used.len().saturating_sub(args.limit) + documented.len().saturating_sub(args.limit);
    used.truncate(args.limit);
    documented.truncate(args.limit);
    let nothing = defined.is_empty() && used.is_empty();
    let used: Vec<(String, u32, Option<String>)> =
        used.into_iter().map(|(path, line, file)| (path, line, snapshot.symbol_at(file, line))).collect();
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
        let documented = written(&snapshot, &documented);
        say!("{}", json!({"definitions": defined, "uses": used, "documentation": documented, "more": more}));
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
    for place in &documented {
        let at = format!("{}:{}", path_of(&snapshot, place.file), place.first_line);
        say!(
            "{at}  {}",
            paint.dim(&format!("says: {}", clean(place.headings.join(" › ").as_bytes()))).trim_end()
        );
    }
    if more > 0 {
        tell!("{more} more; --limit shows them");
    }
    if nothing {
        tell!(
            "{} is neither defined nor used here{}",
            clean(args.symbol.as_bytes()),
            hint(&snapshot, &args.symbol)
        );
    }
    Ok(u8::from(nothing))
}

/// Where a name is defined that lies in such a scope: path, line, kind, scope.
fn defined(snapshot: &Snapshot, name: &str, scope: &str) -> Vec<(String, u32, &'static str, String)> {
    let mut defined = Vec::new();
    snapshot.symbols_called(&name.to_lowercase(), &mut |symbol: SymbolEntry<'_>| {
        if symbol.name == name && symbol.is_in(scope) {
            let path = path_of(snapshot, symbol.file);
            defined.push((path, symbol.name_line, symbol.kind.name(), symbol.scope.to_owned()));
        }
    });
    defined.sort();
    defined
}

/// What else may be meant by a name that nothing has.
fn hint(snapshot: &Snapshot, name: &str) -> &'static str {
    match RelPath::parse(name).ok().and_then(|path| snapshot.find(&path)) {
        Some(_) => "; it is a file: jm symbols tells what it defines, jm deps --reverse who needs it",
        None => "",
    }
}

/// Sections as JSON.
fn written(snapshot: &Snapshot, places: &[SectionPlace]) -> Vec<serde_json::Value> {
    let one = |place: &SectionPlace| {
        let path = path_of(snapshot, place.file);
        json!({"path": path, "line": place.first_line, "lines": place.lines, "headings": place.headings})
    };
    places.iter().map(one).collect()
}
