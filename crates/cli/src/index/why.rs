//! `jm why`: explains the rank of one file for one query.

use clap::Args;
use journeyman_host::config::Environment;
use journeyman_host::format::printable;
use journeyman_host::index::Explanation;
use journeyman_host::task_input::read_query;
use journeyman_index::query::MAX_ANSWER_FILES;
use journeyman_terminal::stdout_paint;

use super::open::{format_passage, open_graph, print_answer};
use crate::args::AnswerArgs;
use journeyman_host::HostError;

#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The file
    file: String,
    /// The query; `-` reads it from standard input
    query: String,
    /// Rank files near this one in the dependency graph slightly higher
    #[arg(long, value_name = "FILE")]
    near: Option<String>,
    #[command(flatten)]
    answer: AnswerArgs,
}

pub(crate) fn explain_rank(environment: &Environment, args: &WhyArgs) -> Result<u8, HostError> {
    let text = read_query(&args.query)?;
    let known = open_graph(environment, &args.answer)?;
    let node = known.find_file(&args.file)?;
    let near = args.near.as_deref().map(|near| known.find_file(near)).transpose()?;
    let found = Explanation::for_file(&known, node, &text, near);
    print_answer(&args.answer, found.hit.is_none(), || found.to_answer(), || print_explanation(&found))
}

/// Prints the signals behind a file's rank.
fn print_explanation(found: &Explanation) {
    let paint = stdout_paint();
    match (found.rank, &found.hit) {
        (Some(place), Some(hit)) => {
            let more = if found.found_files == MAX_ANSWER_FILES { " or more" } else { "" };
            outln!(
                "{}  {} of {}{more}, score {:.2}",
                paint.bold(&found.path),
                place + 1,
                found.found_files,
                hit.score
            );
        }
        _ => {
            outln!("{}  isn't among the {} files that are found", paint.bold(&found.path), found.found_files)
        }
    }
    for said in &found.signals {
        let name = said.signal.name();
        match said.counted {
            Some((strength, share)) => {
                let share = share * 100.0;
                outln!("  {name:<14} {share:>4.0}% of the score, {strength:.2} of the best file's");
            }
            None if said.raw > 0.0 => {
                outln!(
                    "  {}",
                    paint.dim(&format!("{name:<14}    – measured ({:.2}), adds nothing", said.raw))
                );
            }
            None => outln!("  {}", paint.dim(&format!("{name:<14}    – nothing"))),
        }
    }
    let passages = found.hit.as_ref().map(|hit| hit.passages.as_slice()).unwrap_or_default();
    for (passage, lines) in passages.iter().zip(&found.lines) {
        outln!("  lines {}", format_passage(passage));
        for one in lines {
            outln!("{:>8}  {}", one.line, printable(&one.text));
        }
    }
}
