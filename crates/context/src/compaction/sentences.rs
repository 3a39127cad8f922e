//! Sentences of a conversation that state something to be remembered.

/// Maximum bytes of a sentence; longer ones are cut.
const MAX_SENTENCE_BYTES: usize = 360;
/// Minimum bytes: shorter ones ("Done.") tell nothing.
const MIN_SENTENCE_BYTES: usize = 12;

/// The kinds of statements that are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatementKind {
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
const KIND_CUES: &[(StatementKind, &[&str])] = &[
    (
        StatementKind::Failure,
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
            "no difference",
            "no luck",
            "same error",
            "still fail",
            "still hang",
            "still crash",
            "still broken",
            "didn't fix",
            "did not fix",
            "did nothing",
            "in vain",
            "wouldn't",
            "doesn't compile",
            "不行",
            "失败",
        ],
    ),
    (
        StatementKind::Constraint,
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
        StatementKind::Decision,
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

/// Beginnings of sentences that announce a step and say nothing that outlives it.
const ANNOUNCING_PHRASES: &[&str] = &[
    "let me",
    "let's",
    "now ",
    "next",
    "looking at",
    "reading",
    "checking",
    "i'll look",
    "i'll check",
    "i'll read",
    "i'll now",
    "i will look",
    "i will check",
    "i will read",
    "i will now",
    "i'm going to",
];

/// Splits a text into sentences and lines, without code blocks and quoted program output.
pub(super) fn split_sentences(text: &str) -> Vec<&str> {
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
            if sentence.len() >= MIN_SENTENCE_BYTES {
                found.push(
                    sentence.get(..sentence.floor_char_boundary(MAX_SENTENCE_BYTES)).unwrap_or(sentence),
                );
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
pub(super) fn statement_kind(sentence: &str) -> Option<StatementKind> {
    if sentence.ends_with(['?', '？']) {
        return Some(StatementKind::Question);
    }
    let lower = sentence.to_lowercase().replace('\u{2019}', "'");
    let cued = KIND_CUES.iter().find(|(_, cues)| cues.iter().any(|cue| lower.contains(cue)));
    cued.map(|(kind, _)| *kind)
}

/// Returns the weight of a model's sentence: 2 for a statement of some kind, 1 for one that names
/// something, 0 for any other; `None` for one that only announces the next step.
pub(super) fn sentence_weight(sentence: &str) -> Option<u8> {
    if statement_kind(sentence).is_some() {
        return Some(2);
    }
    let lower = sentence.to_lowercase().replace('\u{2019}', "'");
    let announces = ANNOUNCING_PHRASES.iter().any(|words| lower.starts_with(words));
    (!announces).then(|| u8::from(has_specific_word(sentence)))
}

/// Returns true if a sentence has a number, or a word that is written like a path or like a name of
/// code.
fn has_specific_word(sentence: &str) -> bool {
    sentence.split_whitespace().any(|word| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '`' && c != ')');
        let mut pairs = bare.chars().zip(bare.chars().skip(1));
        bare.contains(|c: char| c.is_ascii_digit() || matches!(c, '/' | '_' | '`' | '(' | ':' | '.' | '='))
            || pairs.any(|(first, second)| first.is_lowercase() && second.is_uppercase())
            || word.starts_with("--") && !bare.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_at_marks_and_lines_and_code_is_left_out() {
        let text =
            "First, version 1.2 is wrong. Then this!\n- and a point here\n```\nlet code = 1;\n```\nDone.";
        assert_eq!(split_sentences(text), ["First, version 1.2 is wrong.", "and a point here"]);
    }

    #[test]
    fn kinds_are_told_by_their_words() {
        let cases = [
            ("Never touch the generated files.", Some(StatementKind::Constraint)),
            ("Don\u{2019}t change the public API", Some(StatementKind::Constraint)),
            ("Patching the parser doesn't work, it must be the lexer.", Some(StatementKind::Failure)),
            ("I decided to go through the cache.", Some(StatementKind::Decision)),
            ("Shall I remove the old one too?", Some(StatementKind::Question)),
            ("Let me look at the file.", None),
        ];
        for (sentence, kind) in cases {
            assert_eq!(statement_kind(sentence), kind, "{sentence}");
        }
    }

    #[test]
    fn sentences_that_name_something_weigh_more_than_others() {
        let cases = [
            ("We use the cache because it is there.", Some(2)),
            ("The port is 8443 there.", Some(1)),
            ("Max retries is 5.", Some(1)),
            ("The relevant file is src/mod5.py.", Some(1)),
            ("parseHeader belongs to the reader.", Some(1)),
            ("La función load_settings lee la configuración.", Some(1)),
            ("The flag --no-cache comes first.", Some(1)),
            ("The user wants tabs, no spaces.", Some(0)),
            ("Der Dienst lauscht am Socket.", Some(0)),
            ("Let me look at src/mod5.py.", None),
            ("Now the next module.", None),
        ];
        for (sentence, weight) in cases {
            assert_eq!(sentence_weight(sentence), weight, "{sentence}");
        }
    }
}
