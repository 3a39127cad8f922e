//! Questions to the person at the terminal.

use std::io::{BufRead as _, Write as _};

use journeyman_agent::Answer;
use journeyman_git::Refusal;
use journeyman_sandbox::clean;
use serde_json::Value;

use crate::color::Paint;
use crate::question::{Asked, Kept, Said};

/// The terminal that the program was started on.
const TERMINAL: &str = "/dev/tty";
/// What is shown of a call in full, in bytes. Nobody reads more before saying yes, so more is refused.
const MAX_SHOWN: usize = 64 * 1024;

/// Shows a call and the answers there are. `Some` is the answer where nobody could read all of it.
pub(crate) fn show(paint: Paint, asked: &Asked) -> Option<Answer> {
    let whole = arguments(&asked.input);
    if whole.len() > MAX_SHOWN {
        let note = format!(
            "it has {} bytes, more than anybody reads before saying yes; do it in smaller steps",
            whole.len()
        );
        return Some(Answer::Deny { note: Some(note) });
    }
    // What was typed before the question could be read is no answer to it.
    if let Ok(terminal) = std::fs::File::open(TERMINAL) {
        // A terminal that is gone is noticed by whoever reads from it.
        rustix::termios::tcflush(terminal, rustix::termios::QueueSelector::IFlush).ok();
    }
    tell!();
    tell!("{} {}", paint.yellow("May I run this?"), clean(asked.summary.as_bytes()));
    // All of it: what a summary leaves out is what would be hidden.
    for line in whole.lines() {
        tell!("  {} {line}", paint.dim("│"));
    }
    tell!("  {} {}", paint.dim("why it asks:"), clean(asked.verdict.reason.as_bytes()));
    if let Some(lost) = &asked.verdict.destroys {
        tell!("  {} {}", paint.red("would be lost:"), clean(lost.as_bytes()));
    }
    if let Some(rules) = &asked.rules {
        // Nobody says «always» without having seen to what.
        let rules: Vec<String> = rules.iter().map(|(_, rule)| rule.to_string()).collect();
        let rules = clean(rules.join("\n").as_bytes()).replace('\n', "\n    ");
        tell!("  {} {rules}", paint.dim("«always» would allow, in this session:"));
        tell!("  {}", paint.dim("«forever» would allow that in every session of yours (your policy.toml)"));
    }
    offer(paint, asked);
    None
}

/// The answers there are.
pub(crate) fn offer(paint: Paint, asked: &Asked) {
    let always = if asked.rules.is_some() { "  [a]lways  [f]orever" } else { "" };
    let choices = format!("[y]es{always}  [n]o  or say what to do instead:");
    // A terminal that is gone is noticed by whoever reads from it.
    tell_part!("  {} ", paint.bold(&choices));
}

/// What a line means; `None` where it has to be asked again.
///
/// Words after `yes,` or `no` go to the model, and so does a line that is no answer: then the call doesn't run.
pub(crate) fn answer(paint: Paint, asked: &Asked, line: &str) -> Option<Said> {
    let line = line.trim();
    let (word, rest) = match line.find(|c: char| !c.is_alphanumeric()) {
        Some(end) => line.split_at(end),
        None => (line, ""),
    };
    let marked = rest.starts_with([',', ':', ';', '.', '!']);
    let note = rest.trim_start_matches([',', ':', ';', '.', '!', '-', '–', '—', ' ', '\t']).trim_end();
    let note = (!note.is_empty()).then(|| note.to_owned());
    match word.to_lowercase().as_str() {
        "" if rest.is_empty() => None,
        "y" | "yes" => Some(Answer::Allow { note }.into()),
        // «A better way is …» and «always use …» are no leave for anything.
        "a" | "always" | "f" | "forever" if rest.is_empty() || marked => {
            if asked.rules.is_some() {
                let kept = if word.to_lowercase().starts_with('f') { Kept::Forever } else { Kept::Session };
                return Some(Said { answer: Answer::AllowRule { note }, kept });
            }
            tell!("  {}", paint.yellow("this is asked about every time"));
            None
        }
        "n" | "no" => Some(Answer::Deny { note }.into()),
        _ => Some(Answer::Deny { note: Some(line.to_owned()) }.into()),
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
    tell!("{} {shown} sets what runs code or sends data:", paint.yellow("New or changed:"));
    for (key, value) in keys.iter().zip(values) {
        tell!("  {} {} = {}", paint.dim("│"), clean(key.as_bytes()), clean(value.as_bytes()));
    }
    confirm("Have you read it and trust it? [y/N] ")
}

/// Asks whether a commit may be made for which something runs outside of the sandbox. Shows that, and the change; what is
/// longer than anybody reads is refused.
pub(crate) fn commit(paint: Paint, refusal: &Refusal, diff: &str) -> std::io::Result<bool> {
    let mut shown = String::new();
    if let Refusal::Hooks { hooks, .. } = refusal {
        for file in hooks {
            // One that is longer, or no text, can't be shown whole.
            let whole = std::fs::read_to_string(file).ok().filter(|text| text.len() <= MAX_SHOWN);
            let Some(text) = whole else { return Ok(false) };
            shown.push_str(&format!("{}:\n{text}\n", file.display()));
        }
    }
    shown.push_str(diff);
    if shown.len() > MAX_SHOWN {
        return Ok(false);
    }
    tell!("{} {}", paint.yellow("Not committed yet:"), clean(refusal.to_string().as_bytes()));
    for line in clean(shown.as_bytes()).lines() {
        tell!("  {} {line}", paint.dim("│"));
    }
    confirm("Have you read it, and is it to run with your rights? [y/N] ")
}

/// Asks a question whose answer is no unless it is yes.
pub(crate) fn confirm(question: &str) -> std::io::Result<bool> {
    Ok(matches!(ask(question)?.trim(), "y" | "Y" | "yes"))
}

/// Asks, and gives the line that is typed.
pub(crate) fn ask(question: &str) -> std::io::Result<String> {
    std::fs::OpenOptions::new().write(true).open(TERMINAL)?.write_all(question.as_bytes())?;
    read_line()
}

/// A line from the terminal itself, never from standard input.
pub(crate) fn read_line() -> std::io::Result<String> {
    let terminal = std::fs::File::open(TERMINAL)?;
    let mut line = String::new();
    // A gigabyte pasted into a question is not an answer.
    let read = std::io::BufReader::new(std::io::Read::take(&terminal, 64 * 1024)).read_line(&mut line)?;
    if read == 0 {
        return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the terminal was closed"));
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use journeyman_policy::{Layer, Rules};
    use journeyman_protocol::{CallId, Decision, Level, Verdict};

    const RULE: &str = "[[rule]]\npaths = ['a']\ndecision = 'allow'";

    fn asked(rule: Option<&str>) -> Asked {
        let (decision, level) = (Decision::Ask, Level::Shell);
        let (reason, destroys, rules) = (String::new(), None, Vec::new());
        Asked {
            call: CallId::new("c"),
            summary: String::new(),
            input: Value::Null,
            verdict: Verdict { decision, level, reason, destroys, rules },
            rules: rule.map(|rule| Rules::parse(rule, Layer::Session, "").unwrap()),
        }
    }

    #[test]
    fn a_line_is_an_answer_and_what_follows_it_a_note() {
        let note = |text: &str| Some(text.to_owned());
        let cases = [
            ("", None),
            ("  ", None),
            ("y", Some(Answer::allow())),
            (" YES ", Some(Answer::allow())),
            ("yes, but keep the old one", Some(Answer::Allow { note: note("but keep the old one") })),
            ("y: with -v", Some(Answer::Allow { note: note("with -v") })),
            ("yes please", Some(Answer::Allow { note: note("please") })),
            ("n", Some(Answer::deny())),
            ("No.", Some(Answer::deny())),
            ("no, use pnpm", Some(Answer::Deny { note: note("use pnpm") })),
            ("a", Some(Answer::allow_rule())),
            ("always", Some(Answer::allow_rule())),
            ("always: it is quick", Some(Answer::AllowRule { note: note("it is quick") })),
            ("a better way is make", Some(Answer::Deny { note: note("a better way is make") })),
            ("always use pnpm", Some(Answer::Deny { note: note("always use pnpm") })),
            ("nothing of the kind", Some(Answer::Deny { note: note("nothing of the kind") })),
            ("yesterday's way", Some(Answer::Deny { note: note("yesterday's way") })),
            ("for now not", Some(Answer::Deny { note: note("for now not") })),
            ("f it", Some(Answer::Deny { note: note("f it") })),
            ("?", Some(Answer::Deny { note: note("?") })),
        ];
        let paint = crate::color::stderr();
        for (line, expected) in cases {
            assert_eq!(answer(paint, &asked(Some(RULE)), line), expected.map(Said::from), "{line:?}");
        }
        for (line, said) in [("f", None), ("Forever: it is quick", note("it is quick"))] {
            let expected = Said { answer: Answer::AllowRule { note: said }, kept: Kept::Forever };
            assert_eq!(answer(paint, &asked(Some(RULE)), line), Some(expected), "{line:?}");
        }
        assert_eq!(answer(paint, &asked(None), "f"), None);
        assert_eq!(answer(paint, &asked(None), "a"), None, "where no rule was shown there is none to allow");
    }
}
