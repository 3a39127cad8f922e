//! Parsing a query: its terms with their weights, and the files, lines and names that it mentions.
//!
//! Issues contain much that isn't the question: comments of the template, check lists, headings
//! that every issue has, links. The experiments behind the ranking measured which parts to leave
//! out and the weight of the first line.

use crate::tokens::{MAX_WORD_BYTES, Tokenizer, is_stop_word};

/// Maximum bytes of a query: a long issue with a log, several times over.
pub const MAX_QUERY_BYTES: usize = 64 * 1024;
/// Maximum distinct terms of a query: those of the greatest weight, earlier ones first.
pub const MAX_TERMS: usize = 512;
/// Maximum mentions of each sort.
const MAX_MENTIONS: usize = 64;
/// Maximum bytes before the first line's colon, and the maximum number of topics there.
const MAX_TOPIC_BYTES: usize = 40;
const MAX_TOPICS: usize = 4;
/// Words before a first line's colon that say what sort of change it is.
const CHANGE_TYPE_WORDS: [&str; 16] = [
    "fix", "fixed", "fixes", "bug", "bugfix", "feat", "feature", "chore", "refactor", "perf", "style",
    "types", "error", "issue", "update", "re",
];
/// Factor for words of the first line.
const QUERY_TITLE_WEIGHT: f32 = 6.0;
/// Weight of an identifier joined from words of the first line.
const JOINED_WORDS_WEIGHT: f32 = 3.0;
/// Maximum words of the first line that are joined to identifiers, and of one identifier.
const MAX_JOINED_WORDS: usize = 32;
const MAX_WORDS_OF_IDENTIFIER: usize = 3;

/// A search term.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// The term, as [`Tokenizer`] returns it.
    pub text: String,
    /// Its weight: 1 + ln of its number of occurrences, and six times that in the first line.
    pub weight: f32,
    /// Its weight where only the first line counts; 0 if it isn't in that line.
    pub title_weight: f32,
}

/// A file, and maybe a line, mentioned in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MentionedFile {
    /// The path as written, with `/` between its parts.
    pub path: String,
    /// The line, if one is mentioned.
    pub line: Option<u32>,
    /// True if it is a frame of a stack trace.
    pub is_frame: bool,
}

/// A part of the program that the first line names as its topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Its letters and digits, in lower case.
    pub name: String,
    /// Its terms, as [`Tokenizer`] returns them.
    pub terms: Vec<String>,
}

/// A parsed query.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Query {
    /// Search terms, in text order.
    pub terms: Vec<Term>,
    /// Mentioned paths and file names, as written; the frames of a stack trace come after the
    /// others, the innermost one first.
    pub places: Vec<MentionedFile>,
    /// Parts of the program that the first line names before a colon or in brackets: `parser` of
    /// `fix(parser): …`, `parser: …` and `[parser] …`.
    pub topics: Vec<Topic>,
    /// The parts of names joined by dots, colons or backslashes, which may be modules.
    pub modules: Vec<Vec<String>>,
    /// Names that look like code.
    pub names: Vec<String>,
    /// The name, if the whole query is a single name.
    pub symbol: Option<String>,
    /// True if the whole query is a single path or file name.
    pub is_place: bool,
}

impl Query {
    /// Parses a text.
    #[must_use]
    pub fn new(text: &str, tokenizer: &mut Tokenizer) -> Self {
        let text = text.get(..text.floor_char_boundary(MAX_QUERY_BYTES)).unwrap_or_default();
        let cleaned = strip_boilerplate(text);
        let mut query = Self {
            terms: weighted_terms(&cleaned, tokenizer),
            topics: topics_of_title(&cleaned, tokenizer),
            ..Self::default()
        };
        query.collect_mentions(text);
        let whole = text.trim();
        query.is_place = query.places.len() == 1 && !whole.contains(char::is_whitespace);
        if is_name(whole) && !(is_stop_word(whole) && whole.len() < 4) {
            query.symbol = Some(whole.to_owned());
        }
        query
    }

    /// Returns true if the query has nothing to search for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.places.is_empty() && self.symbol.is_none()
    }

    fn collect_mentions(&mut self, text: &str) {
        let mut frames = Vec::new();
        for line in text.lines() {
            let first = self.places.len();
            self.collect_mentions_of_line(line);
            // Python has the innermost frame last, others have it first.
            match stack_frame_order(line) {
                Some(FrameOrder::InnermostFirst) => frames.extend(self.places.drain(first..)),
                Some(FrameOrder::InnermostLast) => {
                    frames.splice(0..0, self.places.drain(first..));
                }
                None => {}
            }
        }
        frames.iter_mut().for_each(|frame| frame.is_frame = true);
        self.places.append(&mut frames);
        self.places.truncate(MAX_MENTIONS);
    }

    fn collect_mentions_of_line(&mut self, line: &str) {
        for piece in line.split(|c: char| c.is_whitespace() || "`'\"()[]{}<>,;*|=".contains(c)) {
            let piece = piece.trim_end_matches(['.', ':', '!', '?']);
            if piece.is_empty() || piece.len() > 400 {
                continue;
            }
            self.add_mention(piece);
        }
    }

    fn add_mention(&mut self, piece: &str) {
        let (path, line) = split_path_and_line(piece);
        let last = path.rsplit(['/', '\\']).next().unwrap_or_default();
        let has_ending = last.rsplit_once('.').is_some_and(|(stem, ending)| {
            !stem.is_empty()
                && (1..=6).contains(&ending.len())
                && ending.starts_with(|c: char| c.is_ascii_alphabetic())
                && ending.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+')
        });
        if (has_ending || path.contains('/')) && self.places.len() < MAX_MENTIONS {
            let path = path.replace('\\', "/");
            let path = path.trim_matches('/').to_owned();
            let place = MentionedFile { path, line, is_frame: false };
            if !place.path.is_empty() && !self.places.contains(&place) {
                self.places.push(place);
            }
        }
        let parts: Vec<String> = path
            .split(['.', ':', '\\', '#', '/'])
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        let names = parts.iter().all(|part| is_identifier(part));
        if parts.len() > 1
            && names
            && !piece.contains("://")
            && self.modules.len() < MAX_MENTIONS
            && !self.modules.contains(&parts)
        {
            self.modules.push(parts.clone());
        }
        let code = |part: &&String| {
            is_identifier(part) && (parts.len() > 1 || looks_like_code(part) || piece.ends_with('('))
        };
        for part in parts.iter().filter(code) {
            if part.len() > 2 && self.names.len() < MAX_MENTIONS && !self.names.contains(part) {
                self.names.push(part.clone());
            }
        }
    }
}

/// The order of the frames of a stack trace.
enum FrameOrder {
    InnermostFirst,
    InnermostLast,
}

/// Returns the order of the stack trace that a line is a frame of; `None` for other lines.
fn stack_frame_order(line: &str) -> Option<FrameOrder> {
    let line = line.trim_start();
    if line.starts_with("File \"") && line.contains("\", line ") {
        return Some(FrameOrder::InnermostLast);
    }
    let has_line = || line.split(':').skip(1).any(|part| part.starts_with(|c: char| c.is_ascii_digit()));
    let is_frame = line.starts_with("at ")
        || line.starts_with("from ")
        || line.contains(".go:") && line.contains(" +0x");
    (is_frame && has_line()).then_some(FrameOrder::InnermostFirst)
}

/// Returns the topics that a first line names before its colon or in brackets.
fn topics_of_title(text: &str, tokenizer: &mut Tokenizer) -> Vec<Topic> {
    let title = text.trim_start().lines().next().unwrap_or_default().trim();
    let prefix = match title.strip_prefix('[') {
        Some(inner) => inner.split_once(']').map(|(inside, _)| inside),
        None => title.split_once(": ").map(|(before, _)| {
            let inside = before.split_once('(').map(|(_, inside)| inside.trim_end_matches(['!', ')']));
            inside.unwrap_or(before)
        }),
    };
    let Some(prefix) = prefix.filter(|prefix| prefix.len() <= MAX_TOPIC_BYTES) else { return Vec::new() };
    let parts = prefix.split([',', '/', '&', '|', ' ']).filter_map(|part| {
        let letters = part.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
        let name: String = letters.collect();
        if name.len() < 2 || CHANGE_TYPE_WORDS.contains(&name.as_str()) {
            return None;
        }
        let mut terms = Vec::new();
        tokenizer.visit_terms(part, &mut |term| terms.push(term.to_owned()));
        Some(Topic { name, terms })
    });
    parts.take(MAX_TOPICS).collect()
}

/// Splits `path:12`, `path:12:3`, `path#L12`, and `path(12)` without its last bracket, into a path
/// and a line.
fn split_path_and_line(piece: &str) -> (&str, Option<u32>) {
    let digits = |text: &str| text.parse::<u32>().ok().filter(|line| *line > 0);
    if let Some((path, anchor)) = piece.rsplit_once("#L") {
        let line = anchor.split(['-', 'L']).next().and_then(digits);
        return (path, line);
    }
    let (mut path, mut line) = (piece, None);
    for _ in 0..2 {
        match path.rsplit_once(':') {
            Some((before, number)) if digits(number).is_some() && !before.is_empty() => {
                (path, line) = (before, digits(number));
            }
            _ => break,
        }
    }
    (path, line)
}

fn is_identifier(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$')
        && text.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$')
}

/// Returns true if a word is spelled as only code is: with inner capitals, or underscores.
fn looks_like_code(word: &str) -> bool {
    let inner = word.trim_matches('_');
    inner.contains('_')
        || word.len() != inner.len() && !inner.is_empty()
        || inner.chars().skip(1).any(char::is_uppercase) && inner.chars().any(char::is_lowercase)
}

/// Returns true if a text is one name, perhaps qualified.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 200
        && text
            .trim_end_matches("()")
            .split(['.', '#'])
            .flat_map(|part| part.split("::"))
            .all(is_nonempty_identifier)
}

fn is_nonempty_identifier(text: &str) -> bool {
    !text.is_empty() && is_identifier(text)
}

/// Returns the text without the parts that aren't the question.
fn strip_boilerplate(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        kept.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    let mut cleaned = String::with_capacity(kept.len());
    for line in kept.lines() {
        if is_checklist_item(line) || is_template_heading(line) || is_trailer(line) {
            continue;
        }
        let mut rest = line;
        while let Some(at) = rest.find("http://").or_else(|| rest.find("https://")) {
            cleaned.push_str(rest.get(..at).unwrap_or_default());
            let link = rest.get(at..).unwrap_or_default();
            let end = link.find(|c: char| c.is_whitespace() || ")>]\"'`".contains(c));
            rest = end.and_then(|end| link.get(end..)).unwrap_or_default();
        }
        cleaned.push_str(rest);
        cleaned.push('\n');
    }
    cleaned
}

/// Returns true for an item of a check list.
fn is_checklist_item(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches(['-', '*', '+']).trim_start();
    ["[ ]", "[x]", "[X]"].iter().any(|check| line.starts_with(check))
}

/// Returns true for a trailer at a commit message's end, which names people, not topics.
pub(crate) fn is_trailer(line: &str) -> bool {
    ["Signed-off-by:", "Co-authored-by:", "Reviewed-by:", "Acked-by:", "Change-Id:", "Cc:"]
        .iter()
        .any(|trailer| line.starts_with(trailer))
}

/// Words of the headings of issue templates, sorted.
const TEMPLATE_HEADING_WORDS: [&str; 51] = [
    "actual",
    "additional",
    "affected",
    "behavior",
    "behaviour",
    "bug",
    "checklist",
    "code",
    "configuration",
    "context",
    "current",
    "describe",
    "description",
    "detail",
    "details",
    "environment",
    "error",
    "example",
    "expected",
    "feature",
    "happen",
    "happened",
    "info",
    "information",
    "issue",
    "log",
    "logs",
    "minimal",
    "motivation",
    "notes",
    "observed",
    "os",
    "output",
    "possible",
    "problem",
    "proposed",
    "related",
    "report",
    "repro",
    "reproduce",
    "reproducible",
    "reproduction",
    "request",
    "result",
    "results",
    "screenshots",
    "solution",
    "steps",
    "system",
    "version",
    "versions",
];

/// Returns true for a heading that every issue of a template has.
fn is_template_heading(line: &str) -> bool {
    let line = line.trim();
    let bold = line.strip_prefix("**").and_then(|line| line.trim_end_matches(':').strip_suffix("**"));
    let heading = if line.starts_with('#') { line.trim_start_matches('#') } else { bold.unwrap_or_default() };
    let mut any = false;
    let all = heading.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).all(|word| {
        let word = word.to_lowercase();
        any |= TEMPLATE_HEADING_WORDS.binary_search(&word.as_str()).is_ok();
        TEMPLATE_HEADING_WORDS.binary_search(&word.as_str()).is_ok() || is_stop_word(&word) || word.len() == 1
    });
    any && all
}

/// Returns the identifiers that two or three neighbouring words of a first line make, as the index
/// has them: `smartcase` and `smart_case` of `smart case`.
fn join_title_words(title: &str) -> Vec<String> {
    let words: Vec<String> = title
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .take(MAX_JOINED_WORDS)
        .map(str::to_lowercase)
        .collect();
    let joined = (2..=MAX_WORDS_OF_IDENTIFIER).flat_map(|count| words.windows(count));
    joined
        .flat_map(|words| [words.concat(), words.join("_")])
        .filter(|joined| joined.len() <= MAX_WORD_BYTES)
        .collect()
}

fn weighted_terms(text: &str, tokenizer: &mut Tokenizer) -> Vec<Term> {
    let (title, body) = text.trim_start().split_once('\n').unwrap_or((text, ""));
    let mut counted: Vec<(String, u32, u32)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for (part, in_title) in [(title, 1), (body, 0)] {
        tokenizer.visit_terms(part, &mut |term| {
            if let Some(place) = places.get(term) {
                if let Some((_, times, titled)) = counted.get_mut(*place) {
                    *times += 1;
                    *titled += in_title;
                }
            } else {
                places.insert(term.to_owned(), counted.len());
                counted.push((term.to_owned(), 1, in_title));
            }
        });
    }
    #[allow(clippy::cast_precision_loss)]
    let weight = |times: u32| if times == 0 { 0.0 } else { 1.0 + (times as f32).ln() };
    let mut terms: Vec<Term> = counted
        .into_iter()
        .map(|(text, times, titled)| {
            let factor = if titled > 0 { QUERY_TITLE_WEIGHT } else { 1.0 };
            Term { text, weight: factor * weight(times), title_weight: weight(titled) }
        })
        .collect();
    for text in join_title_words(title) {
        if !places.contains_key(&text) {
            places.insert(text.clone(), terms.len());
            terms.push(Term { text, weight: JOINED_WORDS_WEIGHT, title_weight: 0.0 });
        }
    }
    if terms.len() > MAX_TERMS {
        let mut weights: Vec<f32> = terms.iter().map(|term| term.weight).collect();
        weights.sort_by(|a, b| b.total_cmp(a));
        let least = weights.get(MAX_TERMS - 1).copied().unwrap_or(0.0);
        let mut equal = MAX_TERMS - weights.iter().take_while(|weight| **weight > least).count();
        terms.retain(|term| {
            let spare = term.weight == least && equal > 0;
            equal -= usize::from(spare);
            term.weight > least || spare
        });
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query::new(text, &mut Tokenizer::new())
    }

    fn words(text: &str) -> Vec<String> {
        query(text).terms.into_iter().map(|term| term.text).collect()
    }

    #[test]
    fn template_text_is_left_out() {
        assert!(TEMPLATE_HEADING_WORDS.is_sorted());
        let text = "Crash <!-- please\nfill in --> on start\n\n### Steps to reproduce\nopen parser\n- [x] I searched\n\
                    **Expected behavior:**\nsee https://example.org/wiki/index_page) works\n### Parser errors\n\
                    Signed-off-by: Somebody <a@b>\n";
        let joined = ["crashon", "crash_on", "onstart", "on_start", "crashonstart", "crash_on_start"];
        let words = words(text);
        let (own, others) = words.split_at(7);
        assert_eq!(own, ["crash", "start", "open", "parser", "see", "work", "error"]);
        assert_eq!(others, joined);
    }

    #[test]
    fn the_first_line_counts_more() {
        let query = query("parser fails\n\nthe parser parser of lines");
        let weights: Vec<(&str, f32, f32)> =
            query.terms.iter().map(|term| (term.text.as_str(), term.weight, term.title_weight)).collect();
        assert_eq!(weights[0], ("parser", 6.0 * (1.0 + 3.0_f32.ln()), 1.0));
        assert_eq!(weights[1], ("fail", 6.0, 1.0));
        assert_eq!(weights[2], ("line", 1.0, 0.0));
    }

    #[test]
    fn neighbouring_words_of_the_first_line_are_identifiers() {
        let query = query("Fix smart-case of `is valid`\n\nlong body");
        let weight = |text: &str| query.terms.iter().find(|term| term.text == text).map(|term| term.weight);
        for joined in ["smartcase", "smart_case", "isvalid", "is_valid", "fix_smart_case", "fixsmartcase"] {
            assert_eq!(weight(joined), Some(JOINED_WORDS_WEIGHT), "{joined}");
        }
        assert_eq!((weight("longbody"), weight("fix_smart_case_of")), (None, None));
        assert!(join_title_words(&"long ".repeat(100_000)).len() < 200);
    }

    #[test]
    fn files_modules_and_names_are_extracted() {
        let query = query(
            "fails in src/lib.rs:12 and\n  File \"/usr/x/flask/app.py\", line 3\n see `axum::extract::Path` and \
             django.db.models, https://github.com/a/b/blob/main/src/x.c#L7-L9, load_config MyType word parse.(",
        );
        let places: Vec<(&str, Option<u32>)> =
            query.places.iter().map(|place| (place.path.as_str(), place.line)).collect();
        assert!(places.contains(&("src/lib.rs", Some(12))), "{places:?}");
        assert!(places.contains(&("usr/x/flask/app.py", None)), "{places:?}");
        assert!(
            places.iter().any(|(path, line)| path.ends_with("src/x.c") && *line == Some(7)),
            "{places:?}"
        );
        assert!(query.modules.contains(&["axum", "extract", "Path"].map(String::from).to_vec()));
        assert!(query.modules.contains(&["django", "db", "models"].map(String::from).to_vec()));
        for name in ["load_config", "MyType", "extract"] {
            assert!(query.names.iter().any(|found| found == name), "{name}: {:?}", query.names);
        }
        assert!(!query.names.iter().any(|found| found == "word"));
        assert_eq!(query.symbol, None);
    }

    #[test]
    fn the_first_line_names_its_topic() {
        for (title, expected) in [
            ("fix(parser): a crash", &["parser"][..]),
            ("feat(runtime-core)!: a crash", &["runtimecore"]),
            ("net/http: a crash", &["net", "http"]),
            ("[youtube] a crash", &["youtube"]),
            ("fix: a crash", &[]),
            ("a crash: this one is about the parser of long lines, as it is called", &["crash"]),
            ("a crash", &[]),
            ("it crashes where nobody would have thought that it could: here", &[]),
        ] {
            let topics: Vec<String> = query(title).topics.into_iter().map(|topic| topic.name).collect();
            assert_eq!(topics, expected, "{title}");
        }
    }

    #[test]
    fn frames_come_after_other_places_with_the_innermost_first() {
        let frames = |text: &str| -> Vec<(String, bool)> {
            query(text).places.into_iter().map(|place| (place.path, place.is_frame)).collect()
        };
        let python = "  File \"a/outer.py\", line 1, in f\n  File \"a/inner.py\", line 2, in g\nsee b.py";
        let expected = [("b.py", false), ("a/inner.py", true), ("a/outer.py", true)];
        assert_eq!(frames(python), expected.map(|(path, is_frame)| (path.to_owned(), is_frame)));
        let script = "at g (src/inner.js:2:1)\n    at f (src/outer.js:1:1)";
        let expected = [("src/inner.js", true), ("src/outer.js", true)];
        assert_eq!(frames(script), expected.map(|(path, is_frame)| (path.to_owned(), is_frame)));
    }

    #[test]
    fn one_name_is_a_symbol() {
        for text in ["open", "Shop::open", "app.Flask.run", "_x", " parse_file() "] {
            assert!(query(text).symbol.is_some(), "{text}");
        }
        for text in ["open it", "a-b", "", "1x", "x.", "src/lib.rs", "the"] {
            assert_eq!(query(text).symbol, None, "{text}");
        }
    }

    #[test]
    fn a_query_is_bounded() {
        let text: String = (0..100_000).map(|number| format!("w{number}q ")).collect();
        assert_eq!(query(&text).terms.len(), MAX_TERMS);
        assert_eq!(query(&"中".repeat(100_000)).terms.len(), 1);
    }
}
