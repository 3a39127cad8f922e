//! Questions to the person at the terminal.

use std::io::{self, BufRead as _, Write as _};
use std::path::Path;

use journeyman_agent::Answer;
use journeyman_git::CommitRefusal;
use journeyman_host::Prompts;
use journeyman_sandbox::clean;
use serde_json::Value;

use crate::approvals::{ApprovalRequest, Reply, RuleScope};
use crate::color::{self, Paint};

/// The controlling terminal.
const TERMINAL: &str = "/dev/tty";
/// Maximum size of a call that is shown in full, in bytes. Nobody reads more before saying yes, so
/// more is refused.
const MAX_SHOWN_BYTES: usize = 64 * 1024;

/// Shows a call and the possible answers. Returns the answer to a call that is too long for anybody
/// to read.
pub(crate) fn show(paint: Paint, request: &ApprovalRequest) -> Option<Answer> {
    let whole = format_arguments(&request.input);
    if whole.len() > MAX_SHOWN_BYTES {
        let note = format!(
            "it has {} bytes, more than anybody reads before saying yes; do it in smaller steps",
            whole.len()
        );
        return Some(Answer::Deny { note: Some(note) });
    }
    // A line that was typed before the question could be read is no answer to it.
    if let Ok(terminal) = std::fs::File::open(TERMINAL) {
        // Whoever reads from the terminal notices when it is gone.
        rustix::termios::tcflush(terminal, rustix::termios::QueueSelector::IFlush).ok();
    }
    tell!();
    tell!("{} {}", paint.yellow("May I run this?"), clean(request.summary.as_bytes()));
    // The whole call: a summary could leave out the dangerous part.
    for line in whole.lines() {
        tell!("  {} {line}", paint.dim("│"));
    }
    tell!("  {} {}", paint.dim("why it asks:"), clean(request.verdict.reason.as_bytes()));
    if let Some(lost) = &request.verdict.destroys {
        tell!("  {} {}", paint.red("would be lost:"), clean(lost.as_bytes()));
    }
    if let Some(rules) = &request.rules {
        let rules: Vec<String> = rules.iter().map(|(_, rule)| rule.to_string()).collect();
        let rules = clean(rules.join("\n").as_bytes()).replace('\n', "\n    ");
        tell!("  {} {rules}", paint.dim("\"always\" would allow, in this session:"));
        tell!("  {}", paint.dim("\"forever\" would allow that in every session of yours (your policy.toml)"));
    }
    show_choices(paint, request);
    None
}

/// Shows the possible answers.
pub(crate) fn show_choices(paint: Paint, request: &ApprovalRequest) {
    let always = if request.rules.is_some() { "  [a]lways  [f]orever" } else { "" };
    let choices = format!("[y]es{always}  [n]o  or say what to do instead:");
    // Whoever reads from the terminal notices when it is gone.
    tell_part!("  {} ", paint.bold(&choices));
}

/// Parses an answer; `None` where the question has to be asked again.
///
/// Words after `yes,` or `no` go to the model. So does any other line, which denies the call.
pub(crate) fn parse_answer(paint: Paint, request: &ApprovalRequest, line: &str) -> Option<Reply> {
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
        // "A better way is ..." and "always use ..." allow nothing.
        "a" | "always" | "f" | "forever" if rest.is_empty() || marked => {
            if request.rules.is_some() {
                let forever = word.to_lowercase().starts_with('f');
                let scope = if forever { RuleScope::Forever } else { RuleScope::Session };
                return Some(Reply { answer: Answer::AllowRule { note }, scope });
            }
            tell!("  {}", paint.yellow("this is asked about every time"));
            None
        }
        "n" | "no" => Some(Answer::Deny { note }.into()),
        _ => Some(Answer::Deny { note: Some(line.to_owned()) }.into()),
    }
}

/// Formats a call's arguments in full and cleaned: each with its name, texts as they are.
fn format_arguments(input: &Value) -> String {
    let Some(members) = input.as_object() else { return clean(input.to_string().as_bytes()) };
    let texts = members.iter().map(|(name, value)| match value.as_str() {
        Some(text) if text.contains('\n') => format!("{name}:\n{text}"),
        Some(text) => format!("{name}: {text}"),
        None => format!("{name}: {value}"),
    });
    clean(texts.collect::<Vec<_>>().join("\n").as_bytes())
}

/// Questions to the person at the terminal, before and after a session.
pub(crate) struct TerminalPrompts;

impl Prompts for TerminalPrompts {
    fn confirm_trust(&self, path: &Path, keys: &[String], values: &[String]) -> io::Result<bool> {
        let paint = color::stderr();
        let shown = clean(path.display().to_string().as_bytes());
        tell!("{} {shown} sets what runs code or sends data:", paint.yellow("New or changed:"));
        for (key, value) in keys.iter().zip(values) {
            tell!("  {} {} = {}", paint.dim("│"), clean(key.as_bytes()), clean(value.as_bytes()));
        }
        confirm("Have you read it and trust it? [y/N] ")
    }

    fn confirm_commit(&self, refusal: &CommitRefusal, diff: &str) -> io::Result<bool> {
        let paint = color::stderr();
        let mut shown = String::new();
        if let CommitRefusal::Hooks { hooks, .. } = refusal {
            for file in hooks {
                // A file that is too long, or no text, can't be shown whole, so it can't be
                // allowed.
                let whole = std::fs::read_to_string(file).ok().filter(|text| text.len() <= MAX_SHOWN_BYTES);
                let Some(text) = whole else { return Ok(false) };
                shown.push_str(&format!("{}:\n{text}\n", file.display()));
            }
        }
        shown.push_str(diff);
        if shown.len() > MAX_SHOWN_BYTES {
            return Ok(false);
        }
        tell!("{} {}", paint.yellow("Not committed yet:"), clean(refusal.to_string().as_bytes()));
        for line in clean(shown.as_bytes()).lines() {
            tell!("  {} {line}", paint.dim("│"));
        }
        confirm("Have you read it, and is it to run with your rights? [y/N] ")
    }
}

/// Asks a question; any answer but yes means no.
pub(crate) fn confirm(question: &str) -> io::Result<bool> {
    Ok(matches!(ask(question)?.trim(), "y" | "Y" | "yes"))
}

/// Asks, and returns the line that is typed.
pub(crate) fn ask(question: &str) -> io::Result<String> {
    std::fs::OpenOptions::new().write(true).open(TERMINAL)?.write_all(question.as_bytes())?;
    read_line()
}

/// Reads a line from the terminal itself, never from standard input.
pub(crate) fn read_line() -> io::Result<String> {
    let terminal = std::fs::File::open(TERMINAL)?;
    let mut line = String::new();
    // Bounded: a gigabyte pasted into a question is no answer.
    let read = std::io::BufReader::new(std::io::Read::take(&terminal, 64 * 1024)).read_line(&mut line)?;
    if read == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal was closed"));
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use journeyman_policy::{Layer, Rules};
    use journeyman_protocol::{CallId, Decision, Level, Verdict};

    const RULE: &str = "[[rule]]\npaths = ['a']\ndecision = 'allow'";

    fn request(rule: Option<&str>) -> ApprovalRequest {
        let (decision, level) = (Decision::Ask, Level::Shell);
        let (reason, destroys, rules) = (String::new(), None, Vec::new());
        ApprovalRequest {
            call: CallId::new("c"),
            summary: String::new(),
            input: Value::Null,
            verdict: Verdict { decision, level, reason, destroys, rules },
            rules: rule.map(|rule| Rules::parse_with_tools(rule, Layer::Session, "", &|_| true).unwrap()),
        }
    }

    #[test]
    fn a_line_is_parsed_as_an_answer_and_a_note() {
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
            assert_eq!(
                parse_answer(paint, &request(Some(RULE)), line),
                expected.map(Reply::from),
                "{line:?}"
            );
        }
        for (line, said) in [("f", None), ("Forever: it is quick", note("it is quick"))] {
            let expected = Reply { answer: Answer::AllowRule { note: said }, scope: RuleScope::Forever };
            assert_eq!(parse_answer(paint, &request(Some(RULE)), line), Some(expected), "{line:?}");
        }
        assert_eq!(parse_answer(paint, &request(None), "f"), None);
        assert_eq!(
            parse_answer(paint, &request(None), "a"),
            None,
            "where no rule was shown there is none to allow"
        );
    }
}
