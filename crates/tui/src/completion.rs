//! Completion of commands, their arguments, files, symbols and sessions, as a list below the
//! composer. Pure.

use journeyman_terminal::wrap::cut_line;
use journeyman_terminal::{Style, StyledLine};

use crate::commands::{COMMANDS, CommandInfo, argument_values};
use journeyman_host::index::ProjectSymbol;
use journeyman_host::session_recap::SESSION_REFERENCE_PREFIX;
use journeyman_protocol::SessionId;

/// Maximum rows of the list.
pub(crate) const MAX_ROWS: usize = 8;
/// Maximum matches that are ranked: nobody scrolls through more.
const MAX_MATCHES: usize = 50;
/// Maximum characters of a session's title in the list.
const MAX_TITLE_CHARS: usize = 60;

/// The names that can be completed besides those of commands.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KnownNames<'a> {
    /// The files.
    pub(crate) files: &'a [String],
    /// The symbols.
    pub(crate) symbols: &'a [ProjectSymbol],
    /// Earlier sessions.
    pub(crate) sessions: &'a [NamedSession],
    /// Models, for the argument of `/model`.
    pub(crate) models: &'a [String],
}

/// An earlier session, by the words of its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedSession {
    /// The session's id.
    pub(crate) id: SessionId,
    /// The beginning of its task, in one line.
    pub(crate) title: String,
    /// The session's age, for people.
    pub(crate) age: String,
}

/// One possible completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The text that is inserted.
    pub(crate) insert: String,
    /// The text in the list.
    pub(crate) label: String,
    /// A word of explanation.
    pub(crate) help: String,
}

/// The open list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Completion {
    /// The byte position from which the text is replaced.
    pub(crate) start: usize,
    candidates: Vec<Candidate>,
    selected: usize,
    /// True if the typed word may be meant as it is: it is complete, and nothing else was selected.
    is_word_complete: bool,
}

/// The kind of thing that the word before the cursor may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompletableWord<'a> {
    /// A command, without its slash.
    Command(&'a str),
    /// The argument of a command.
    Argument(&'a str, &'a str),
    /// A file or a symbol, without its mark.
    Name(&'a str),
}

/// Finds the word before the cursor that can be completed, and its byte position.
#[must_use]
pub(crate) fn word_at_cursor(before: &str) -> Option<(usize, CompletableWord<'_>)> {
    if let Some(typed) = before.strip_prefix('/') {
        return match typed.split_once(' ') {
            None => (!typed.contains(['/', '\n'])).then_some((0, CompletableWord::Command(typed))),
            Some((name, argument)) if !argument.contains(char::is_whitespace) => {
                Some((before.len() - argument.len(), CompletableWord::Argument(name, argument)))
            }
            Some(_) => None,
        };
    }
    let start =
        before.rfind(char::is_whitespace).map_or(0, |at| at + before.get(at..).map_or(1, first_char_len));
    let word = before.get(start..)?.strip_prefix('@')?;
    Some((start, CompletableWord::Name(word)))
}

fn first_char_len(text: &str) -> usize {
    text.chars().next().map_or(1, char::len_utf8)
}

impl Completion {
    /// Makes the list for the word before the cursor, or none.
    #[must_use]
    pub(crate) fn find(before: &str, names: KnownNames<'_>) -> Option<Self> {
        let (start, word) = word_at_cursor(before)?;
        let (mut candidates, mut is_word_complete) = (Vec::new(), false);
        match word {
            CompletableWord::Command(typed) => candidates = command_candidates(typed),
            CompletableWord::Argument("model", typed) => {
                candidates = model_candidates(typed, names.models);
                // A provider has more models than anybody lists.
                is_word_complete = typed.split_once('/').is_some_and(|(_, model)| !model.is_empty());
            }
            CompletableWord::Argument(name, typed) => {
                let values = argument_values(name).into_iter();
                candidates
                    .extend(values.filter(|value| is_proper_prefix(value, typed)).map(Candidate::plain));
            }
            CompletableWord::Name(typed) => candidates = name_candidates(typed, names),
        }
        (!candidates.is_empty()).then_some(Self { start, candidates, selected: 0, is_word_complete })
    }

    /// Returns true if Enter takes the word as it was typed.
    #[must_use]
    pub(crate) fn enter_keeps_word(&self) -> bool {
        self.is_word_complete
    }

    /// Returns the selected candidate.
    #[must_use]
    pub(crate) fn selected(&self) -> Option<&Candidate> {
        self.candidates.get(self.selected)
    }

    /// Selects the next candidate, or the one before; the list has no ends.
    pub(crate) fn select(&mut self, forward: bool) {
        self.is_word_complete = false;
        let count = self.candidates.len().max(1);
        self.selected = if forward { self.selected + 1 } else { self.selected + count - 1 } % count;
    }

    /// Renders the list within a width.
    #[must_use]
    pub(crate) fn render(&self, width: usize) -> Vec<StyledLine> {
        let first = (self.selected + 1).saturating_sub(MAX_ROWS);
        let shown = self.candidates.iter().enumerate().skip(first).take(MAX_ROWS);
        let widest = shown.clone().map(|(_, one)| one.label.chars().count()).max().unwrap_or_default();
        let draw = |(place, one): (usize, &Candidate)| {
            let style = if place == self.selected { Style::Selected } else { Style::Plain };
            let line = StyledLine::new(Style::Plain, "  ").with(style, one.label.clone());
            let gap = widest.saturating_sub(one.label.chars().count()) + 2;
            let help =
                if one.help.is_empty() { String::new() } else { format!("{}{}", " ".repeat(gap), one.help) };
            cut_line(&line.with(Style::Dim, help), width)
        };
        shown.map(draw).collect()
    }
}

impl Candidate {
    /// Makes the candidate of a word that explains itself.
    fn plain(word: &str) -> Self {
        Self { insert: word.to_owned(), label: word.to_owned(), help: String::new() }
    }
}

/// Returns true if a word begins with what was typed and goes on.
fn is_proper_prefix(word: &str, typed: &str) -> bool {
    word.len() > typed.len() && word.starts_with(typed)
}

/// Returns the models that have the typed letters in their name; those that begin with them, with
/// their provider or without, come first.
fn model_candidates(typed: &str, models: &[String]) -> Vec<Candidate> {
    let begins = |name: &&String| {
        is_proper_prefix(name, typed)
            || name.split_once('/').is_some_and(|(_, model)| is_proper_prefix(model, typed))
    };
    let first = models.iter().filter(begins);
    let others = models.iter().filter(|name| !begins(name) && *name != typed && name.contains(typed));
    first.chain(others).take(MAX_MATCHES).map(|name| Candidate::plain(name)).collect()
}

fn command_candidates(typed: &str) -> Vec<Candidate> {
    let mut matching: Vec<&CommandInfo> =
        COMMANDS.iter().filter(|info| info.name.starts_with(typed)).collect();
    // A name that is typed whole is meant, whatever longer ones begin with it.
    matching.sort_by_key(|info| info.name != typed);
    let candidate = matching.into_iter().map(|info| {
        let space = if info.argument.is_empty() { "" } else { " " };
        let argument = if info.argument.is_empty() { String::new() } else { format!(" {}", info.argument) };
        Candidate {
            insert: format!("/{}{space}", info.name),
            label: format!("/{}{argument}", info.name),
            help: info.help.to_owned(),
        }
    });
    candidate.collect()
}

/// A file or a symbol that has the typed letters.
enum NameMatch<'a> {
    File(&'a String),
    Symbol(&'a ProjectSymbol),
    Session(&'a NamedSession),
}

fn name_candidates(typed: &str, names: KnownNames<'_>) -> Vec<Candidate> {
    let files =
        names.files.iter().filter_map(|path| Some((fuzzy_score(typed, path)?, NameMatch::File(path))));
    // Without a letter the files are listed: there are fewer, and a path leads to the rest.
    let symbols = names.symbols.iter().filter(|_| !typed.is_empty());
    let symbols =
        symbols.filter_map(|symbol| Some((fuzzy_score(typed, &symbol.name)?, NameMatch::Symbol(symbol))));
    // A session is found by the word before its title too.
    let sessions = names.sessions.iter().filter(|_| !typed.is_empty());
    let sessions = sessions
        .filter_map(|one| Some((fuzzy_score(typed, &session_label(&one.title))?, NameMatch::Session(one))));
    let mut scored: Vec<(i64, NameMatch<'_>)> = files.chain(symbols).chain(sessions).collect();
    scored.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.sort_key().cmp(&b.sort_key())));
    scored.into_iter().take(MAX_MATCHES).map(|(_, named)| named.candidate()).collect()
}

fn session_label(title: &str) -> String {
    let shown: String = title.chars().take(MAX_TITLE_CHARS).collect();
    format!("session: {}", shown.replace('/', " "))
}

impl NameMatch<'_> {
    fn sort_key(&self) -> (&str, u32) {
        match self {
            Self::File(path) => (path, 0),
            Self::Symbol(symbol) => (&symbol.path, symbol.line),
            Self::Session(session) => (&session.title, 0),
        }
    }

    /// Returns the candidate. The agent reads what a message names; the mark is for this list
    /// alone.
    fn candidate(&self) -> Candidate {
        match self {
            Self::File(path) => {
                Candidate { insert: format!("{path} "), label: (*path).clone(), help: String::new() }
            }
            Self::Symbol(ProjectSymbol { name, kind, path, line }) => Candidate {
                insert: format!("`{name}` ({path}:{line}) "),
                label: name.clone(),
                help: format!("{kind}  {path}:{line}"),
            },
            // Its account is attached when the message is sent.
            Self::Session(NamedSession { id, title, age }) => Candidate {
                insert: format!("{SESSION_REFERENCE_PREFIX}{id} "),
                label: session_label(title),
                help: age.clone(),
            },
        }
    }
}

/// Scores a path for the letters that were typed, which have to occur in their order; `None` if
/// they don't. Letters count more at the beginning of a word, in a row, and in the file's name.
#[must_use]
pub(crate) fn fuzzy_score(typed: &str, path: &str) -> Option<i64> {
    let name_start = path.rfind('/').map_or(0, |at| at + 1);
    let whole = subsequence_score(typed, path, name_start);
    // Letters that all are in the name are looked for there first.
    let name = path.get(name_start..).unwrap_or_default();
    let in_name = subsequence_score(typed, name, 0).map(|score| score + 20);
    let score = whole.max(in_name)?;
    Some(score * 8 - i64::try_from(path.len()).unwrap_or(i64::MAX / 16))
}

fn subsequence_score(typed: &str, text: &str, name_start: usize) -> Option<i64> {
    let mut score = 0;
    let mut rest = text.char_indices();
    let mut last_end = None;
    let mut before = '/';
    for wanted in typed.chars().flat_map(char::to_lowercase) {
        loop {
            let (at, character) = rest.next()?;
            let is_word_start =
                !before.is_alphanumeric() || (before.is_lowercase() && character.is_uppercase());
            before = character;
            if character.to_lowercase().eq([wanted]) {
                score += 1;
                score += if last_end == Some(at) { 6 } else { 0 };
                score += if is_word_start { 4 } else { 0 };
                score += if at >= name_start { 2 } else { 0 };
                last_end = Some(at + character.len_utf8());
                break;
            }
        }
    }
    Some(score)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_before_the_cursor_says_what_is_completed() {
        for (before, expected) in [
            ("/mo", Some((0, CompletableWord::Command("mo")))),
            ("/mode a", Some((6, CompletableWord::Argument("mode", "a")))),
            ("look at @src/l", Some((8, CompletableWord::Name("src/l")))),
            ("@", Some((0, CompletableWord::Name("")))),
            ("see\n@a", Some((4, CompletableWord::Name("a")))),
            ("/usr/bin", None),
            ("a@b", None),
            ("", None),
        ] {
            assert_eq!(word_at_cursor(before), expected, "{before:?}");
        }
    }

    #[test]
    fn the_nearest_file_comes_first() {
        let files =
            ["src/parser/mod.rs", "src/main.rs", "docs/primer.md", "tests/parse_main.rs"].map(str::to_owned);
        for (typed, first) in [
            ("main", "src/main.rs"),
            ("parsermod", "src/parser/mod.rs"),
            ("pm", "tests/parse_main.rs"),
            ("primer", "docs/primer.md"),
            ("SRC/M", "src/main.rs"),
        ] {
            let names = KnownNames { files: &files, ..KnownNames::default() };
            let found = Completion::find(&format!("@{typed}"), names).unwrap();
            assert_eq!(found.selected().unwrap().label, first, "{typed}");
        }
        assert_eq!(Completion::find("@zzz", KnownNames { files: &files, ..KnownNames::default() }), None);
    }

    #[test]
    fn symbols_are_found_beside_files() {
        let symbol = |name: &str, line| ProjectSymbol {
            name: name.to_owned(),
            kind: "function",
            path: "src/shop.rs".to_owned(),
            line,
        };
        let (files, symbols) = (["src/shop.rs".to_owned()], [symbol("open_shop", 4), symbol("close", 9)]);
        let names = KnownNames { files: &files, symbols: &symbols, ..KnownNames::default() };
        let selected = |typed: &str| Completion::find(typed, names).unwrap().selected().unwrap().clone();
        assert_eq!(selected("@openshop").insert, "`open_shop` (src/shop.rs:4) ");
        assert_eq!(selected("@close").help, "function  src/shop.rs:9");
        assert_eq!(selected("@shop.rs").insert, "src/shop.rs ");
        assert_eq!(selected("@").insert, "src/shop.rs ");
    }

    #[test]
    fn sessions_are_found_by_the_words_of_their_task() {
        let id = SessionId::new(journeyman_protocol::UnixMillis(0), 7);
        let title = "make the greeting polite".to_owned();
        let sessions = [NamedSession { id: id.clone(), title, age: "2 days ago".to_owned() }];
        let files = ["src/greet.rs".to_owned()];
        let names = KnownNames { files: &files, sessions: &sessions, ..KnownNames::default() };
        let first = |typed: &str| Completion::find(typed, names).unwrap().selected().unwrap().clone();
        assert_eq!(first("as in @polite").insert, format!("@session:{id} "));
        assert_eq!(first("@session").label, "session: make the greeting polite");
        assert_eq!(first("@greet").insert, "src/greet.rs ", "a file's name is nearer");
    }

    #[test]
    fn models_are_found_by_their_provider_or_their_name() {
        let models = ["anthropic/claude-sonnet-4-5", "anthropic/claude-opus-4-1", "ollama/qwen3-coder"];
        let models = models.map(str::to_owned);
        let names = KnownNames { models: &models, ..KnownNames::default() };
        let found = |typed: &str| -> Vec<String> {
            let list = Completion::find(&format!("/model {typed}"), names);
            list.map_or_else(Vec::new, |list| list.render(80).iter().map(StyledLine::to_text).collect())
        };
        assert_eq!(found("").len(), 3);
        assert_eq!(found("ollama/q"), ["  ollama/qwen3-coder"]);
        assert_eq!(found("claude-o"), ["  anthropic/claude-opus-4-1"]);
        assert_eq!(found("sonnet"), ["  anthropic/claude-sonnet-4-5"]);
        assert_eq!(found("ollama/qwen3-coder"), [""; 0], "it is typed already");
        // Another model of the provider, which nobody lists, is taken as it is typed.
        let mut list = Completion::find("/model ollama/qwen3", names).unwrap();
        assert!(list.enter_keeps_word());
        list.select(true);
        assert!(!list.enter_keeps_word(), "this one was selected");
        assert!(!Completion::find("/model qwen3", names).unwrap().enter_keeps_word(), "it has no provider");
    }

    #[test]
    fn the_list_goes_round() {
        let mut list = Completion::find("/co", KnownNames::default()).unwrap();
        assert_eq!(list.selected().unwrap().insert, "/context");
        list.select(false);
        assert_eq!(list.selected().unwrap().insert, "/compact");
        list.select(true);
        assert_eq!(list.selected().unwrap().insert, "/context");
        let whole = Completion::find("/mode", KnownNames::default()).unwrap();
        assert_eq!(whole.selected().unwrap().insert, "/mode ", "not /model");
        let rows: Vec<String> = list.render(30).iter().map(StyledLine::to_text).collect();
        assert_eq!(rows[0], "  /context  what the model's …");
    }
}
