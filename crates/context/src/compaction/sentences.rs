//! Sentences of a conversation that state something to be remembered.

/// Maximum bytes of a sentence; longer ones are cut.
const MAX_BYTES: usize = 360;
/// Minimum bytes: shorter ones ("Done.") tell nothing.
const MIN_BYTES: usize = 12;

/// The kinds of statements that are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Something is forbidden or required.
    Constraint,
    /// Something was chosen or found out.
    Decision,
    /// Something was tried and didn't work.
    Failure,
    /// Something is asked.
    Question,
}

/// Words that mark a kind. The first row with a match decides, so that "doesn't work, so I'll use
/// the other" is a failure.
const CUES: &[(Kind, &[&str])] = &[
    (
        Kind::Failure,
        &[
            "doesn't work",
            "does not work",
            "didn't work",
            "did not work",
            "failed",
            "fails ",
            "fails.",
            "failing",
            "can't be",
            "cannot be",
            "not possible",
            "impossible",
            "reverted",
            "rolled back",
            "broke",
            "gave up",
            "dead end",
            "no effect",
            "didn't help",
            "did not help",
            "made it worse",
            "wrong approach",
            "unsuccessful",
            "wouldn't",
            "doesn't compile",
            "不行",
            "失败",
        ],
    ),
    (
        Kind::Constraint,
        &[
            "must",
            "never",
            "don't",
            "do not",
            "always",
            "only ",
            "without ",
            "at most",
            "at least",
            "no more than",
            "make sure",
            "has to",
            "have to",
            "may not",
            "not allowed",
            "required",
            "forbidden",
            "avoid",
            "keep ",
            "should",
            "leave ",
            "不要",
            "必须",
            "不能",
        ],
    ),
    (
        Kind::Decision,
        &[
            "decid",
            "i'll use",
            "i will use",
            "we'll use",
            "we use",
            "going with",
            "chose",
            "choose",
            "instead of",
            "because",
            "the plan",
            "root cause",
            "the reason",
            "turns out",
            "found that",
            "it is caused",
            "the cause",
            "important",
            "remember",
            "note that",
            "note:",
            "the bug is",
            "the problem is",
            "the fix",
            "settled on",
            "prefer",
            "=",
            "决定",
            "因为",
        ],
    ),
];

/// Splits a text into sentences and lines, without code blocks and quoted program output.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            in_code = !in_code;
            continue;
        }
        if in_code {
            continue;
        }
        let mut rest = line.trim_start_matches(['-', '*', '#', '>', ' ']);
        while !rest.is_empty() {
            let end = sentence_end(rest);
            let (sentence, after) = rest.split_at(end);
            let sentence = sentence.trim();
            if sentence.len() >= MIN_BYTES {
                found.push(sentence.get(..sentence.floor_char_boundary(MAX_BYTES)).unwrap_or(sentence));
            }
            rest = after;
        }
    }
    found
}

/// Returns the end of the first sentence: after a mark that a blank or the end follows.
fn sentence_end(text: &str) -> usize {
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let end = at + character.len_utf8();
        match character {
            '。' | '！' | '？' => return end,
            '.' | '!' | '?' if characters.peek().is_none_or(|(_, next)| next.is_whitespace()) => return end,
            _ => {}
        }
    }
    text.len()
}

/// Returns the kind of a sentence, if it states something to be remembered.
pub(super) fn kind_of(sentence: &str) -> Option<Kind> {
    if sentence.ends_with(['?', '？']) {
        return Some(Kind::Question);
    }
    let lower = sentence.to_lowercase().replace('\u{2019}', "'");
    let cued = CUES.iter().find(|(_, cues)| cues.iter().any(|cue| lower.contains(cue)));
    cued.map(|(kind, _)| *kind).or_else(|| has_value(sentence).then_some(Kind::Decision))
}

/// Returns true if a sentence gives a number that has a meaning of its own: more than one digit, or
/// a decimal.
fn has_value(sentence: &str) -> bool {
    let bytes = sentence.as_bytes();
    bytes.windows(2).any(|pair| pair.iter().all(u8::is_ascii_digit))
        || bytes.windows(3).any(|three| {
            three.first().is_some_and(u8::is_ascii_digit)
                && three.get(1) == Some(&b'.')
                && three.get(2).is_some_and(u8::is_ascii_digit)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_at_marks_and_lines_and_code_is_left_out() {
        let text =
            "First, version 1.2 is wrong. Then this!\n- and a point here\n```\nlet code = 1;\n```\nDone.";
        assert_eq!(sentences(text), ["First, version 1.2 is wrong.", "and a point here"]);
    }

    #[test]
    fn kinds_are_told_by_their_words() {
        let cases = [
            ("Never touch the generated files.", Some(Kind::Constraint)),
            ("Don\u{2019}t change the public API", Some(Kind::Constraint)),
            ("Patching the parser doesn't work, it must be the lexer.", Some(Kind::Failure)),
            ("I decided to go through the cache.", Some(Kind::Decision)),
            ("The port is 8443 there.", Some(Kind::Decision)),
            ("Shall I remove the old one too?", Some(Kind::Question)),
            ("Let me look at the file.", None),
        ];
        for (sentence, kind) in cases {
            assert_eq!(kind_of(sentence), kind, "{sentence}");
        }
    }
}
