//! Parser for the mentions in a message.

/// Maximum number of unknown names that are reported. In a text with more, `@` hardly marks
/// mentions.
const MAX_UNKNOWN_MENTIONS: usize = 100;

/// The mentions of a text, each name once, in the order of the text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mentions {
    /// Names of members.
    pub(super) known: Vec<String>,
    /// Names that no member has.
    pub(super) unknown: Vec<String>,
}

/// Finds `@name` in `text`. If several names match at a position, the longest is meant.
pub(super) fn find_mentions<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> Mentions {
    let mut names: Vec<&str> = names.collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let mut found = Mentions::default();
    let code = find_code_spans(text);
    let mut until = 0;
    for (at, _) in text.match_indices('@') {
        let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
        // The spans are in order and don't overlap.
        let span = code.get(code.partition_point(|(_, to)| *to <= at));
        if at < until
            || span.is_some_and(|(from, _)| *from <= at)
            || before.chars().next_back().is_some_and(prevents_mention_after)
        {
            continue;
        }
        let fits = |name: &&&str| after.strip_prefix(**name).is_some_and(|rest| can_end_before(name, rest));
        let (list, name) = match names.iter().find(fits) {
            Some(name) => (&mut found.known, *name),
            None => (&mut found.unknown, first_word(after)),
        };
        // A name can't contain `@`, but the text behind `@` in an address can.
        until = at + 1 + name.len();
        let room = list.len() < MAX_UNKNOWN_MENTIONS.max(names.len());
        if !name.is_empty() && room && !list.iter().any(|other| other == name) {
            list.push(name.to_owned());
        }
    }
    found
}

/// Returns true if an `@` behind this character belongs to a word or an address. Scripts without
/// spaces between words have none before a mention either.
fn prevents_mention_after(character: char) -> bool {
    (character.is_alphanumeric() && !is_unspaced_script(character))
        || matches!(character, '_' | '%' | '+' | '-' | '@' | '/')
}

/// Returns true if a mention of `name` can end before `rest`: `@bob` ends in `@bob, look` and in
/// `@bob.`, but not in `@bobby`, `@bob-2` or `@bob.org`.
fn can_end_before(name: &str, rest: &str) -> bool {
    let mut rest = rest.chars();
    let Some(next) = rest.next() else { return true };
    match next {
        // A joiner or an accent makes another name of the characters before it.
        '_' | '\u{200d}' | '\u{300}'..='\u{36f}' => false,
        '-' | '.' | '@' => !rest.next().is_some_and(char::is_alphanumeric),
        _ if next.is_alphanumeric() => {
            // Without spaces the end of the name is ambiguous: a member's name is taken as
            // complete.
            is_unspaced_script(next) || name.chars().next_back().is_some_and(is_unspaced_script)
        }
        _ => true,
    }
}

/// Returns the word at the beginning of `text`, for a mention that matches no member: letters,
/// digits and symbols of any script, with `-` or `.` between them.
fn first_word(text: &str) -> &str {
    let mut end = 0;
    for (at, character) in text.char_indices() {
        if is_name_character(character) {
            end = at + character.len_utf8();
        } else if !matches!(character, '-' | '.') || at != end {
            break;
        }
    }
    text.get(..end).unwrap_or_default()
}

/// Returns true for letters, digits, `_`, and any non-ASCII character that is neither white space
/// nor punctuation, such as emoji.
fn is_name_character(character: char) -> bool {
    let punctuation = matches!(character,
        '\u{80}'..='\u{bf}' | '\u{2000}'..='\u{200c}' | '\u{200e}'..='\u{206f}' | '\u{3000}'..='\u{3004}'
        | '\u{3008}'..='\u{303f}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff01}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff20}'
        | '\u{ff3b}'..='\u{ff40}' | '\u{ff5b}'..='\u{ff65}');
    let sign = !character.is_ascii() && !character.is_whitespace() && !punctuation;
    character.is_alphanumeric() || character == '_' || sign
}

/// Returns true for scripts without spaces between words (Chinese, Japanese, Thai, Lao, Khmer,
/// Burmese) and for Korean, which appends particles to names.
fn is_unspaced_script(character: char) -> bool {
    matches!(character,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1100}'..='\u{11ff}' | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}' | '\u{20000}'..='\u{3ffff}')
}

/// Returns the byte ranges of code: the text between runs of equally many backticks. A run that is
/// never closed starts no code.
fn find_code_spans(text: &str) -> Vec<(usize, usize)> {
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
