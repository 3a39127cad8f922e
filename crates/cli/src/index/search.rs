//! `jm search`: files, symbols, lines and documents, ranked.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use journeyman_host::config::Environment;
use journeyman_host::index::{answer_to_json, find_near, find_similar, read_history, shown_path};
use journeyman_index::Snapshot;
use journeyman_index::docs::{SectionHit, SectionReason, search_sections};
use journeyman_index::query::{Answer, Context, Passage, Query, Searcher, full_name};
use journeyman_index::tokens::Tokenizer;
use journeyman_sandbox::clean;
use serde_json::{Value, json};

use super::open::{at_least_one, current, note, read_query};
use crate::color;
use crate::stdout::say;
use journeyman_host::HostError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SearchKind {
    File,
    Symbol,
    Text,
    Doc,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// The words to look for; `-` reads them from standard input
    query: String,
    /// The kind of results
    #[arg(long, value_enum, default_value = "file")]
    kind: SearchKind,
    /// Results, at most
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = at_least_one)]
    limit: usize,
    /// Case doesn't matter (--kind text)
    #[arg(long, short)]
    ignore_case: bool,
    /// The file that is being looked at: what is near to it in the dependency graph counts a little
    #[arg(long, value_name = "FILE")]
    near: Option<String>,
    /// Say what speaks for each file
    #[arg(long)]
    explain: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn search(environment: &Environment, args: &SearchArgs) -> Result<u8, HostError> {
    let text = read_query(&args.query)?;
    let (project, snapshot) = current(environment, args.directory.as_deref())?;
    if args.kind == SearchKind::Text {
        return lines(&project, &snapshot, &text, args);
    }
    let near = args
        .near
        .as_deref()
        .map(|near| find_near(environment, args.directory.as_deref(), &project, &snapshot, near));
    let near = near.transpose()?.unwrap_or_default();
    let history = match args.kind {
        SearchKind::Symbol => None,
        _ => read_history(environment, args.directory.as_deref(), &project, note)?,
    };
    let query = Query::new(&text, &mut Tokenizer::new());
    if query.is_empty() && args.kind != SearchKind::Symbol {
        return Err(HostError::usage(
            "the query has no word that can be looked for; --kind text finds any text by a pattern",
        ));
    }
    let most = if args.kind == SearchKind::Doc { journeyman_index::query::MAX_LIMIT } else { args.limit };
    let similar = match args.kind {
        SearchKind::Symbol => None,
        _ => find_similar(environment, &project, &snapshot, &text, note),
    };
    let vectors = similar.as_ref().map(|(similar, weight)| (similar, *weight));
    let context = Context { near: &near, vectors };
    let mut answer = Searcher::new().search(&*snapshot, history.as_ref(), &query, context, most);
    if args.kind == SearchKind::Symbol {
        answer.files.clear();
        answer.definitions = journeyman_index::query::definitions(&*snapshot, text.trim(), args.limit);
    }
    if args.kind == SearchKind::Doc {
        let read = |path: &journeyman_protocol::RelPath| project.text(path);
        let found = search_sections(&snapshot, &query, &answer.files, &read, args.limit);
        return Ok(sections(&found, &snapshot, args.json));
    }
    if args.json {
        say!("{}", answer_to_json(&answer, &snapshot));
    } else {
        print(&answer, &snapshot, args.explain);
    }
    Ok(u8::from(answer.files.is_empty() && answer.definitions.is_empty()))
}

/// Shows sections.
fn sections(found: &[SectionHit], snapshot: &Snapshot, json: bool) -> u8 {
    if json {
        let one = |one: &SectionHit| {
            let place = &one.place;
            let score = if let SectionReason::Words(score) = one.why { Some(score) } else { None };
            json!({
                "path": shown_path(snapshot, place.file), "line": place.first_line, "lines": place.lines,
                "headings": place.headings, "names_it": one.why == SectionReason::Names, "score": score,
            })
        };
        say!(
            "{}",
            json!({"sections": found.iter().map(one).collect::<Vec<_>>(), "partial": snapshot.is_partial()})
        );
        return u8::from(found.is_empty());
    }
    let paint = color::stdout();
    for one in found {
        let place = format!("{}:{}", shown_path(snapshot, one.place.file), one.place.first_line);
        let why = match one.why {
            SectionReason::Names => "names it".to_owned(),
            SectionReason::Words(score) => format!("{score:.2}"),
        };
        let headings = one.place.headings.join(" › ");
        say!("{}  {}  {}", paint.bold(&place), clean(headings.as_bytes()), paint.dim(&why));
    }
    if found.is_empty() {
        tell!("nothing was found");
    }
    u8::from(found.is_empty())
}

fn lines(
    project: &journeyman_index::Project,
    snapshot: &Snapshot,
    pattern: &str,
    args: &SearchArgs,
) -> Result<u8, HostError> {
    let found = project.lines(snapshot, pattern, args.ignore_case, args.limit);
    let (lines, more) = found.map_err(HostError::usage)?;
    if args.json {
        let lines: Vec<Value> = lines
            .iter()
            .map(
                |line| json!({"path": shown_path(snapshot, line.file), "line": line.line, "text": line.text}),
            )
            .collect();
        say!("{}", json!({"lines": lines, "more": more}));
        return Ok(u8::from(lines.is_empty()));
    }
    let paint = color::stdout();
    for line in &lines {
        let place = format!("{}:{}", shown_path(snapshot, line.file), line.line);
        say!("{}: {}", paint.bold(&place), clean(line.text.as_bytes()));
    }
    if more {
        tell!("there are more; --limit shows them");
    }
    if lines.is_empty() {
        tell!("nothing was found");
    }
    Ok(u8::from(lines.is_empty()))
}

fn print(answer: &Answer, snapshot: &Snapshot, explain: bool) {
    let paint = color::stdout();
    for definition in &answer.definitions {
        let place = format!("{}:{}", shown_path(snapshot, definition.file), definition.name_line);
        let name = clean(full_name(&definition.scope, &definition.name).as_bytes());
        let how = definition.matched.name();
        say!("{}  {} {name}  {}", paint.bold(&place), definition.kind.name(), paint.dim(how));
    }
    for hit in &answer.files {
        say!("{}  {}", paint.bold(&shown_path(snapshot, hit.file)), paint.dim(&format!("{:.2}", hit.score)));
        for passage in &hit.passages {
            say!("    {}", shown(passage));
        }
        if explain {
            let told = hit.why.iter().map(|why| format!("{} {:.0}%", why.signal.name(), why.share * 100.0));
            say!("    {}", paint.dim(&told.collect::<Vec<_>>().join(", ")));
        }
    }
    if answer.files.is_empty() && answer.definitions.is_empty() {
        tell!("nothing was found");
    }
}

fn shown(passage: &Passage) -> String {
    let last = passage.first_line + passage.lines.saturating_sub(1);
    let symbol = passage.symbol.as_deref().unwrap_or_default();
    format!("{}-{last}  {}", passage.first_line, clean(symbol.as_bytes())).trim_end().to_owned()
}
