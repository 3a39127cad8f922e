//! `jm why`: what speaks for one file, for one query.

use std::path::PathBuf;

use clap::Args;
use journeyman_host::config::Environment;
use journeyman_host::index::Explanation;
use journeyman_index::query::MAX_LIMIT;
use journeyman_sandbox::clean;

use super::open::{note, open_graph, read_query};
use crate::color;
use crate::stdout::say;
use journeyman_host::HostError;

#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The file
    file: String,
    /// The query; `-` reads it from standard input
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

pub(crate) fn why(environment: &Environment, args: &WhyArgs) -> Result<u8, HostError> {
    let text = read_query(&args.query)?;
    let known = open_graph(environment, args.directory.as_deref())?;
    let node = known.find_file(&args.file)?;
    let near = match &args.near {
        Some(near) => known.graph.near(known.find_file(near)?),
        None => Vec::new(),
    };
    let found = Explanation::find(environment, args.directory.as_deref(), &known, node, &text, &near, note)?;
    if args.json {
        say!("{}", found.to_json());
    } else {
        print(&found);
    }
    Ok(u8::from(found.hit.is_none()))
}

/// Prints what speaks for a file.
fn print(found: &Explanation) {
    let paint = color::stdout();
    match (found.rank, &found.hit) {
        (Some(place), Some(hit)) => {
            let more = if found.of == MAX_LIMIT { " or more" } else { "" };
            say!("{}  {} of {}{more}, score {:.2}", paint.bold(&found.path), place + 1, found.of, hit.score);
        }
        _ => say!("{}  isn't among the {} files that are found", paint.bold(&found.path), found.of),
    }
    for said in &found.signals {
        let name = said.signal.name();
        match said.counted {
            Some((strength, share)) => {
                let share = share * 100.0;
                say!("  {name:<14} {share:>4.0}% of the score, {strength:.2} of the best file's");
            }
            None if said.raw > 0.0 => {
                say!("  {}", paint.dim(&format!("{name:<14}    – measured ({:.2}), adds nothing", said.raw)));
            }
            None => say!("  {}", paint.dim(&format!("{name:<14}    – nothing"))),
        }
    }
    for passage in found.hit.as_ref().map(|hit| hit.passages.as_slice()).unwrap_or_default() {
        let last = passage.first_line + passage.lines.saturating_sub(1);
        let symbol = clean(passage.symbol.as_deref().unwrap_or_default().as_bytes());
        say!("{}", format!("  lines {}-{last}  {symbol}", passage.first_line).trim_end());
    }
}
