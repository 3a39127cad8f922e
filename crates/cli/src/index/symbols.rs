//! `jm symbols` and `jm refs`: what a file defines, and where a name is used.

use clap::Args;
use journeyman_host::config::Environment;
use journeyman_host::format::printable;
use journeyman_host::index::{FileSymbols, References, SymbolLink, no_symbols_reason, shown_path};
use journeyman_index::Snapshot;
use journeyman_index::query::QualifiedName;
use journeyman_protocol::RelPath;
use journeyman_terminal::stdout_paint;

use super::open::{open_index, print_answer, print_omitted_count};
use crate::args::{AnswerArgs, parse_count};
use journeyman_host::HostError;

/// Maximum number of links that are shown beside a symbol.
const MAX_SHOWN_LINKS: usize = 2;

#[derive(Debug, Args)]
pub(crate) struct SymbolsArgs {
    /// The file
    path: String,
    #[command(flatten)]
    answer: AnswerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RefsArgs {
    /// The name; the type, module or package that it lies in may stand before it, as in
    /// `Shop.open` or `shop::open`
    symbol: String,
    /// Places, at most
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = parse_count::<usize>)]
    limit: usize,
    /// Documentation alone
    #[arg(long)]
    docs: bool,
    #[command(flatten)]
    answer: AnswerArgs,
}

pub(crate) fn show_symbols(environment: &Environment, args: &SymbolsArgs) -> Result<u8, HostError> {
    let index = open_index(environment, &args.answer)?;
    let file = index.find_file(&args.path)?;
    let found = FileSymbols::find(&index.snapshot, file);
    let print = || print_symbols(&found, no_symbols_reason(&index.snapshot, file));
    print_answer(&args.answer, found.symbols.is_empty(), || found.to_answer(), print)
}

fn print_symbols(found: &FileSymbols, no_symbols_reason: &str) {
    let paint = stdout_paint();
    for symbol in &found.symbols {
        let shown = printable(&symbol.shown);
        let number = paint.dim(&format!("{:>6}", symbol.line));
        let more = if symbol.links.len() > MAX_SHOWN_LINKS { " …" } else { "" };
        let links: Vec<String> = symbol.links.iter().take(MAX_SHOWN_LINKS).map(SymbolLink::text).collect();
        let links = if links.is_empty() {
            String::new()
        } else {
            let arrow = if found.is_document { "→" } else { "←" };
            format!("  {}", paint.dim(&format!("{arrow} {}{more}", printable(&links.join(", ")))))
        };
        outln!("{number} {}{:<11} {shown}{links}", "  ".repeat(symbol.depth), symbol.kind);
    }
    if found.symbols.is_empty() {
        errln!("{} defines nothing: {no_symbols_reason}", printable(&found.path));
    }
}

pub(crate) fn show_references(environment: &Environment, args: &RefsArgs) -> Result<u8, HostError> {
    let name = QualifiedName::parse(&args.symbol);
    if name.name().is_empty() {
        return Err(HostError::usage("name a symbol"));
    }
    let index = open_index(environment, &args.answer)?;
    let found = References::find(&index, &name, args.docs, args.limit);
    let print = || print_references(&found, &index.snapshot, &args.symbol);
    print_answer(&args.answer, found.is_empty(), || found.to_answer(&index.snapshot), print)
}

fn print_references(found: &References, snapshot: &Snapshot, symbol: &str) {
    let paint = stdout_paint();
    if !found.qualifier_found && !found.defined.is_empty() {
        errln!(
            "no definition lies in what stands before the name in {}; these have the name",
            printable(&symbol)
        );
    }
    for one in &found.defined {
        let place = paint.bold(&format!("{}:{}", one.path, one.line));
        let scope =
            if one.scope.is_empty() { String::new() } else { format!(" in {}", printable(&one.scope)) };
        let kind = paint.dim(&format!("{}{scope}", one.kind));
        outln!("{}", format!("{place}  {kind}  {}", printable(&one.text)).trim_end());
    }
    for one in &found.used {
        let inside = one.inside.as_deref().map(|inside| printable(&inside)).unwrap_or_default();
        let inside = paint.dim(&inside);
        outln!("{}", format!("{}:{}  {inside}  {}", one.path, one.line, printable(&one.text)).trim_end());
    }
    for place in &found.documented {
        let at = format!("{}:{}", shown_path(snapshot, place.file), place.first_line);
        outln!(
            "{at}  {}",
            paint.dim(&format!("says: {}", printable(&place.headings.join(" › ")))).trim_end()
        );
    }
    print_omitted_count(found.more);
    if found.is_empty() {
        errln!("{} is neither defined nor used here{}", printable(&symbol), suggest_search(snapshot, symbol));
    }
}

/// Suggests other commands for a name that has no definition.
fn suggest_search(snapshot: &Snapshot, name: &str) -> &'static str {
    match RelPath::parse(name).ok().and_then(|path| snapshot.find_file(&path)) {
        Some(_) => "; it is a file: jm symbols tells what it defines, jm deps --reverse who needs it",
        None => "",
    }
}
