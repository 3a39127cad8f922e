//! Questions to the person at the terminal.

use std::io::{BufRead as _, Write as _};

use journeyman_agent::Answer;
use journeyman_protocol::Verdict;
use journeyman_sandbox::clean;
use serde_json::Value;

use crate::color::Paint;

/// What is shown of a call in full, in bytes. Nobody reads more before saying yes, so more is refused.
const MAX_SHOWN: usize = 64 * 1024;

/// Asks whether a call may run. Reads from the terminal itself, never from standard input.
pub(crate) fn permission(
    paint: Paint,
    summary: &str,
    input: &Value,
    verdict: &Verdict,
) -> std::io::Result<Answer> {
    let whole = arguments(input);
    if whole.len() > MAX_SHOWN {
        let note = format!(
            "it has {} bytes, more than anybody reads before saying yes; do it in smaller steps",
            whole.len()
        );
        return Ok(Answer::Deny { note: Some(note) });
    }
    eprintln!();
    eprintln!("{} {}", paint.yellow("May I run this?"), clean(summary.as_bytes()));
    // All of it: what a summary leaves out is what would be hidden.
    for line in whole.lines() {
        eprintln!("  {} {line}", paint.dim("│"));
    }
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

/// A call's arguments in full, cleaned: each by its name, texts as they are.
fn arguments(input: &Value) -> String {
    let Some(members) = input.as_object() else { return clean(input.to_string().as_bytes()) };
    let texts = members.iter().map(|(name, value)| match value.as_str() {
        Some(text) if text.contains('\n') => format!("{name}:\n{text}"),
        Some(text) => format!("{name}: {text}"),
        None => format!("{name}: {value}"),
    });
    clean(texts.collect::<Vec<_>>().join("\n").as_bytes())
}

/// Asks for trust in a project's configuration.
pub(crate) fn trust(
    paint: Paint,
    path: &std::path::Path,
    keys: &[String],
    values: &[String],
) -> std::io::Result<bool> {
    let shown = clean(path.display().to_string().as_bytes());
    eprintln!("{} {shown} sets what runs code or sends data:", paint.yellow("New or changed:"));
    for (key, value) in keys.iter().zip(values) {
        eprintln!("  {} {} = {}", paint.dim("│"), clean(key.as_bytes()), clean(value.as_bytes()));
    }
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
