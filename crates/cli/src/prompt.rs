//! Questions to the person at the terminal.

use std::io::{BufRead as _, Write as _};

use journeyman_agent::Answer;
use journeyman_protocol::Verdict;
use journeyman_sandbox::clean;

use crate::color::Paint;

/// Asks whether a call may run. Reads from the terminal itself, never from standard input.
pub(crate) fn permission(paint: Paint, summary: &str, verdict: &Verdict) -> std::io::Result<Answer> {
    let summary = clean(summary.as_bytes());
    eprintln!();
    eprintln!("{} {summary}", paint.yellow("May I run this?"));
    eprintln!("  {} {}", paint.dim("why it asks:"), clean(verdict.reason.as_bytes()));
    if let Some(lost) = &verdict.destroys {
        eprintln!("  {} {}", paint.red("would be lost:"), clean(lost.as_bytes()));
    }
    loop {
        let answer = ask(&format!(
            "  {} ",
            paint.bold("[y]es  [a]lways in this session  [n]o  or say what to do instead:")
        ))?;
        match answer.trim() {
            "y" | "Y" | "yes" => return Ok(Answer::Allow),
            "a" | "A" | "always" => return Ok(Answer::AllowForSession),
            "n" | "N" | "no" => return Ok(Answer::Deny { note: None }),
            "" => {}
            words => return Ok(Answer::Deny { note: Some(words.to_owned()) }),
        }
    }
}

/// Asks for trust in a project's configuration.
pub(crate) fn trust(paint: Paint, path: &std::path::Path, keys: &[String]) -> std::io::Result<bool> {
    eprintln!(
        "{} {} sets {}, which run code or send data.",
        paint.yellow("New or changed:"),
        path.display(),
        keys.join(", ")
    );
    let answer = ask("Have you read it and trust it? [y/N] ")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn ask(question: &str) -> std::io::Result<String> {
    let terminal = std::fs::OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    (&terminal).write_all(question.as_bytes())?;
    let mut line = String::new();
    // A gigabyte pasted into a question is not an answer.
    let read = std::io::BufReader::new(std::io::Read::take(&terminal, 64 * 1024)).read_line(&mut line)?;
    if read == 0 {
        return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the terminal was closed"));
    }
    Ok(line)
}
