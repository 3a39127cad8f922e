//! Whom a text speaks to.

/// Unknown names that are reported: whoever wrote more of them wrote something else than mentions.
const MAX_UNKNOWN: usize = 100;

/// The mentions of a text, each name once, in the order of the text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mentions {
    /// Names that somebody has.
    pub(super) known: Vec<String>,
    /// Names that nobody has.
    pub(super) unknown: Vec<String>,
}

/// Finds `@name` in `text`. Of the names that fit at a place the longest is meant.
pub(super) fn mentions<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> Mentions {
    let mut names: Vec<&str> = names.collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let mut found = Mentions::default();
    let code = code_spans(text);
    let mut until = 0;
    for (at, _) in text.match_indices('@') {
        let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
        // The spans are in order and don't overlap.
        let span = code.get(code.partition_point(|(_, to)| *to <= at));
        if at < until
            || span.is_some_and(|(from, _)| *from <= at)
            || before.chars().next_back().is_some_and(joins_before)
        {
            continue;
        }
        let fits = |name: &&&str| after.strip_prefix(**name).is_some_and(|rest| ends_here(name, rest));
        let (list, name) = match names.iter().find(fits) {
            Some(name) => (&mut found.known, *name),
            None => (&mut found.unknown, word(after)),
        };
        // A name may have no `@` in it, but what follows `@` in an address may.
        until = at + 1 + name.len();
        let room = list.len() < MAX_UNKNOWN.max(names.len());
        if !name.is_empty() && room && !list.iter().any(|other| other == name) {
            list.push(name.to_owned());
        }
    }
    found
}

/// Whether an `@` behind this character belongs to a word or an address. Scripts that put no blank between words put
/// none before a mention either.
fn joins_before(character: char) -> bool {
    (character.is_alphanumeric() && !is_unspaced(character))
        || matches!(character, '_' | '%' | '+' | '-' | '@' | '/')
}

/// Whether a mention of `name` can end before `rest`: «@bob» in «@bob, look» and in «@bob.», not in «@bobby»,
/// «@bob-2» or «@bob.org».
fn ends_here(name: &str, rest: &str) -> bool {
    let mut rest = rest.chars();
    let Some(next) = rest.next() else { return true };
    match next {
        // A joiner or an accent makes another name of what is before it.
        '_' | '\u{200d}' | '\u{300}'..='\u{36f}' => false,
        '-' | '.' | '@' => !rest.next().is_some_and(char::is_alphanumeric),
        _ if next.is_alphanumeric() => {
            // Without blanks nobody can say where the name ends: it does where a member's does.
            is_unspaced(next) || name.chars().next_back().is_some_and(is_unspaced)
        }
        _ => true,
    }
}

/// The word that `text` begins with, for whom it names isn't known: letters, digits and signs of any script, and `-`
/// or `.` between them.
fn word(text: &str) -> &str {
    let mut end = 0;
    for (at, character) in text.char_indices() {
        if is_of_names(character) {
            end = at + character.len_utf8();
        } else if !matches!(character, '-' | '.') || at != end {
            break;
        }
    }
    text.get(..end).unwrap_or_default()
}

/// Letters, digits, `_`, and beyond ASCII whatever is no blank and no punctuation: emoji are names too.
fn is_of_names(character: char) -> bool {
    let punctuation = matches!(character,
        '\u{80}'..='\u{bf}' | '\u{2000}'..='\u{200c}' | '\u{200e}'..='\u{206f}' | '\u{3000}'..='\u{3004}'
        | '\u{3008}'..='\u{303f}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff01}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff20}'
        | '\u{ff3b}'..='\u{ff40}' | '\u{ff5b}'..='\u{ff65}');
    let sign = !character.is_ascii() && !character.is_whitespace() && !punctuation;
    character.is_alphanumeric() || character == '_' || sign
}

/// Whether a script writes words without blanks between them (Chinese, Japanese, Thai, Lao, Khmer, Burmese), or hangs
/// particles on names (Korean).
fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1100}'..='\u{11ff}' | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}' | '\u{20000}'..='\u{3ffff}')
}

/// Byte ranges of code: between runs of as many backticks. What is never closed is no code.
fn code_spans(text: &str) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    let mut rest = 0;
    while let Some(from) = text.get(rest..).and_then(|tail| tail.find('`')).map(|at| rest + at) {
        let ticks = text.get(from..).unwrap_or_default().bytes().take_while(|byte| *byte == b'`').count();
        rest = from + ticks;
        open = match open {
            None => Some((from, ticks)),
            Some((start, count)) if count == ticks => {
                spans.push((start, rest));
                None
            }
            open => open,
        };
    }
    spans
}
