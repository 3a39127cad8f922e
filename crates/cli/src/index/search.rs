//! `jm search`: files, symbols, lines and documents, ranked.

use clap::Args;
use journeyman_host::HostError;
use journeyman_host::config::Environment;
use journeyman_host::format::printable;
use journeyman_host::index::{FoundResults, SearchKind, SearchOptions, SearchResults, TextLine, shown_path};
use journeyman_host::task_input::read_query;
use journeyman_index::Snapshot;
use journeyman_index::docs::{SectionHit, SectionReason};
use journeyman_index::project::MatchingLine;
use journeyman_index::query::{SearchResult, full_name};
use journeyman_terminal::stdout_paint;

use super::open::{format_passage, open_index, print_answer};
use crate::args::{AnswerArgs, parse_count, parse_named};

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// The words to look for; `-` reads them from standard input
    query: String,
    /// The kind of results
    #[arg(long, value_parser = parse_named(&SearchKind::NAMED), default_value = "file")]
    kind: SearchKind,
    /// Results, at most
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = parse_count::<usize>)]
    limit: usize,
    /// Case doesn't matter (--kind text)
    #[arg(long, short)]
    ignore_case: bool,
    /// Rank files near this one in the dependency graph slightly higher
    #[arg(long, value_name = "FILE")]
    near: Option<String>,
    /// Show the ranking signals of each file
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    answer: AnswerArgs,
}

pub(crate) fn search(environment: &Environment, args: &SearchArgs) -> Result<u8, HostError> {
    let text = read_query(&args.query)?;
    let index = open_index(environment, &args.answer)?;
    let options = SearchOptions {
        text: &text,
        kind: args.kind,
        limit: args.limit,
        ignore_case: args.ignore_case,
        near: args.near.as_deref(),
    };
    let found = SearchResults::search(&index, &options)?;
    let snapshot = &index.snapshot;
    let print = || {
        match &found.found {
            FoundResults::Ranked(answer, lines) => {
                print_ranked_results(answer, lines, snapshot, args.explain)
            }
            FoundResults::Sections(sections) => print_sections(sections, snapshot),
            FoundResults::Lines(lines) => print_lines(lines, snapshot),
        }
        // The end of a ranked list is irrelevant.
        if found.has_more && args.kind == SearchKind::Text {
            errln!("there are more; --limit shows them");
        }
        if found.is_empty() {
            errln!("nothing was found");
        }
    };
    print_answer(&args.answer, found.is_empty(), || found.to_answer(&index), print)
}

fn print_sections(sections: &[SectionHit], snapshot: &Snapshot) {
    let paint = stdout_paint();
    for section in sections {
        let place = format!("{}:{}", shown_path(snapshot, section.place.file), section.place.first_line);
        let why = match section.why {
            SectionReason::Names => "names it".to_owned(),
            SectionReason::Words(score) => format!("{score:.2}"),
        };
        let headings = section.place.headings.join(" › ");
        outln!("{}  {}  {}", paint.bold(&place), printable(&headings), paint.dim(&why));
    }
}

fn print_lines(lines: &[MatchingLine], snapshot: &Snapshot) {
    let paint = stdout_paint();
    for line in lines {
        let place = format!("{}:{}", shown_path(snapshot, line.file), line.line);
        outln!("{}: {}", paint.bold(&place), printable(&line.text));
    }
}

fn print_ranked_results(
    answer: &SearchResult,
    lines: &[Vec<Vec<TextLine>>],
    snapshot: &Snapshot,
    explain: bool,
) {
    let paint = stdout_paint();
    for definition in &answer.definitions {
        let place = format!("{}:{}", shown_path(snapshot, definition.file), definition.name_line);
        let name = printable(&full_name(&definition.scope, &definition.name));
        let how = definition.matched.name();
        outln!("{}  {} {name}  {}", paint.bold(&place), definition.kind.name(), paint.dim(how));
    }
    for (hit, lines) in answer.files.iter().zip(lines) {
        outln!(
            "{}  {}",
            paint.bold(&shown_path(snapshot, hit.file)),
            paint.dim(&format!("{:.2}", hit.score))
        );
        for (passage, lines) in hit.passages.iter().zip(lines) {
            outln!("    {}", format_passage(passage));
            for one in lines {
                outln!("{}  {}", paint.dim(&format!("{:>10}", one.line)), printable(&one.text));
            }
        }
        if explain {
            let told = hit.why.iter().map(|why| format!("{} {:.0}%", why.signal.name(), why.share * 100.0));
            outln!("    {}", paint.dim(&told.collect::<Vec<_>>().join(", ")));
        }
    }
}
