//! `jm why`: what speaks for one file, for one query.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use journeyman_git::Git;
use journeyman_host::Context as _;
use journeyman_host::config::Environment;
use journeyman_index::query::{Context, FileHit, MAX_LIMIT, Query, Searcher, Signal};
use journeyman_index::tokens::Tokenizer;
use journeyman_sandbox::{Sandbox, SandboxSettings, clean};
use serde_json::{Value, json};

use super::deps::Known;
use crate::color;
use crate::stdout::say;
use journeyman_host::HostError;
use journeyman_host::state::project_root;

pub(crate) const HELP: &str = "\
Says at which place a file stands among those that are found, what each signal says of it, and where in it the query's \
words are. docs/search.md tells what the signals are.

Exit codes: 0 the query finds the file, 1 it doesn't or an error, 2 usage

Examples:
  jm why src/retry.rs \"retries are counted twice\"
  jm why src/retry.rs retries --near src/client.rs
  gh issue view 12 --json body -q .body | jm why src/retry.rs -";

/// Longer queries are cut where ranking cuts them.
const MAX_QUERY: u64 = 1 << 20;

#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The file
    file: String,
    /// What was looked for; `-` reads it from standard input
    query: String,
    /// The file that is being looked at: what is near to it in the dependency graph counts a little
    #[arg(long, value_name = "FILE")]
    near: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// What a signal says of the file.
struct Said {
    signal: Signal,
    /// As it was measured.
    raw: f32,
    /// Compared with the best source file, and its part of the score; nothing where it adds nothing.
    counted: Option<(f32, f32)>,
}

pub(crate) fn why(environment: &Environment, args: &WhyArgs) -> Result<u8, HostError> {
    let text = if args.query == "-" {
        let read = std::io::read_to_string(std::io::Read::take(std::io::stdin(), MAX_QUERY));
        read.context("standard input")?
    } else {
        args.query.clone()
    };
    if text.trim().is_empty() {
        return Err(HostError::usage("the query is empty"));
    }
    let known = Known::open(environment, args.directory.as_deref())?;
    let node = known.file(&args.file)?;
    let near = match &args.near {
        Some(near) => known.graph.near(known.file(near)?),
        None => Vec::new(),
    };
    let place = project_root(environment, args.directory.as_deref())?;
    let git = Git::new(&place, Arc::new(Sandbox::new(SandboxSettings::default())));
    let history = Git::blocking(known.project.history(&git)).unwrap_or_else(|error| {
        tell!("note: commits don't count this time: {error}");
        None
    });
    let query = Query::new(&text, &mut Tokenizer::new());
    let mut searcher = Searcher::new();
    let raw = searcher.raw(&*known.snapshot, history.as_ref(), &query);
    let similar = super::vectors::similar(environment, &known.project, &known.snapshot, &text);
    let vectors = similar.as_ref().map(|(similar, weight)| (similar, *weight));
    let context = Context { near: &near, vectors };
    let answer = searcher.search(&*known.snapshot, history.as_ref(), &query, context, MAX_LIMIT);
    let number = known.graph.node(node).map_or(u32::MAX, |node| node.file);
    let place = answer.files.iter().position(|hit| hit.file == number);
    let hit = place.and_then(|place| answer.files.get(place));
    let raw = raw.into_iter().find(|(file, _)| *file == number).map(|(_, raw)| raw).unwrap_or_default();
    let said: Vec<Said> = Signal::ALL
        .into_iter()
        .zip(raw)
        .map(|(signal, raw)| {
            let reason = hit.and_then(|hit| hit.why.iter().find(|reason| reason.signal == signal));
            // Nearness isn't of the query: it is told as it counts.
            let raw = if signal == Signal::Near { reason.map_or(0.0, |one| one.strength) } else { raw };
            Said { signal, raw, counted: reason.map(|one| (one.strength, one.share)) }
        })
        .collect();
    let found = Found { path: known.path(node), place, of: answer.files.len(), hit, said: &said };
    if args.json {
        found.object()
    } else {
        found.print()
    }
    Ok(u8::from(hit.is_none()))
}

struct Found<'a> {
    path: String,
    place: Option<usize>,
    of: usize,
    hit: Option<&'a FileHit>,
    said: &'a [Said],
}

impl Found<'_> {
    fn object(&self) {
        let signals: Vec<Value> = self
            .said
            .iter()
            .map(|said| {
                let (strength, share) = said.counted.unwrap_or_default();
                json!({"signal": said.signal.name(), "raw": said.raw, "strength": strength, "share": share})
            })
            .collect();
        let passages = self.hit.map(|hit| hit.passages.as_slice()).unwrap_or_default();
        let passages: Vec<Value> = passages
            .iter()
            .map(|one| json!({"first_line": one.first_line, "lines": one.lines, "symbol": one.symbol, "score": one.score}))
            .collect();
        say!(
            "{}",
            json!({
                "path": self.path, "rank": self.place.map(|place| place + 1), "of": self.of,
                "score": self.hit.map(|hit| hit.score), "signals": signals, "passages": passages,
            })
        );
    }

    fn print(&self) {
        let paint = color::stdout();
        match (self.place, self.hit) {
            (Some(place), Some(hit)) => {
                let more = if self.of == MAX_LIMIT { " or more" } else { "" };
                say!(
                    "{}  {} of {}{more}, score {:.2}",
                    paint.bold(&self.path),
                    place + 1,
                    self.of,
                    hit.score
                );
            }
            _ => say!("{}  isn't among the {} files that are found", paint.bold(&self.path), self.of),
        }
        for said in self.said {
            let name = said.signal.name();
            match said.counted {
                Some((strength, share)) => {
                    let share = share * 100.0;
                    say!("  {name:<14} {share:>4.0}% of the score, {strength:.2} of the best file's");
                }
                None if said.raw > 0.0 => {
                    say!(
                        "  {}",
                        paint.dim(&format!("{name:<14}    – measured ({:.2}), adds nothing", said.raw))
                    );
                }
                None => say!("  {}", paint.dim(&format!("{name:<14}    – nothing"))),
            }
        }
        for passage in self.hit.map(|hit| hit.passages.as_slice()).unwrap_or_default() {
            let last = passage.first_line + passage.lines.saturating_sub(1);
            let symbol = clean(passage.symbol.as_deref().unwrap_or_default().as_bytes());
            say!("{}", format!("  lines {}-{last}  {symbol}", passage.first_line).trim_end());
        }
    }
}
