//! Reading edits out of a model's reply, in any of the formats models write.

pub(crate) mod block;
pub(crate) mod blocks;
mod detect;
pub(crate) mod edit_block;
pub(crate) mod hunks;
pub(crate) mod markers;
pub(crate) mod pairs;
pub(crate) mod paths;
mod reading;
pub(crate) mod search_replace;
pub(crate) mod tags;
pub(crate) mod tool;
pub(crate) mod udiff;
pub(crate) mod v4a;
pub(crate) mod whole;

use block::{BlockProblem, ProblemKind};
use blocks::{MAX_REPLY_BYTES, parse_blocks};
pub use detect::detect;
pub use reading::{Format, Reading, Source};
pub(crate) use reading::{ReplyLine, ReplyLines};
pub use whole::strip_fence;

/// Reads a reply in a format, or in the one that it seems to be written in.
///
/// The text decides over the named format: a reply that has nothing of the named format and is
/// plainly in another is read in the other format. If no format is named, edits in a second format
/// are not read, and the reading has a problem that says so.
#[must_use]
pub fn read(source: &Source<'_>, format: Option<Format>) -> Reading {
    if source.reply.len() > MAX_REPLY_BYTES {
        let message = format!("the reply has more than {MAX_REPLY_BYTES} bytes; no longer one is read");
        let problem = BlockProblem { kind: ProblemKind::TooMuch, line: 1, subject: None, message };
        return Reading { format, problems: vec![problem], ..Reading::default() };
    }
    let Some(chosen) = format.or_else(|| detect(source.reply)) else {
        return Reading { prose: source.reply.trim().to_owned(), ..Reading::default() };
    };
    let mut reading = read_as(source, chosen);
    let nothing = reading.edits.is_empty() && reading.problems.is_empty();
    if nothing
        && let Some(other) = detect(source.reply)
        && other != chosen
        && !matches!(other, Format::Whole | Format::Lazy)
    {
        return read_as(source, other);
    }
    if format.is_none() && matches!(chosen, Format::Whole | Format::Lazy) {
        let doubtful: Vec<BlockProblem> =
            reading.edits.iter().filter_map(|edit| whole::seems_partial(source, edit)).collect();
        reading.problems.extend(doubtful);
    }
    if format.is_none() && chosen != Format::Tool {
        refuse_second(&mut reading, chosen);
    }
    reading
}

fn read_as(source: &Source<'_>, format: Format) -> Reading {
    match format {
        Format::Edit => {
            let blocks = parse_blocks(source.reply);
            Reading {
                format: Some(Format::Edit),
                edits: blocks.edits,
                problems: blocks.problems,
                prose: blocks.prose,
            }
        }
        Format::Blocks => search_replace::read(source),
        Format::Udiff => udiff::read(source),
        Format::Patch => v4a::read(source),
        Format::Whole => whole::read(source, false),
        Format::Lazy => whole::read(source, true),
        Format::Tool => tool::read(source),
    }
}

/// Says that the text around the edits has edits in another format.
fn refuse_second(reading: &mut Reading, chosen: Format) {
    let second = detect(&reading.prose)
        .filter(|other| *other != chosen && !matches!(other, Format::Whole | Format::Lazy | Format::Tool));
    if let Some(other) = second {
        let message = format!(
            "the reply has edits in the format `{chosen}` and also in `{other}`, which were not read: send all in one"
        );
        let problem = BlockProblem { kind: ProblemKind::Malformed, line: 1, subject: None, message };
        reading.problems.push(problem);
    }
}
