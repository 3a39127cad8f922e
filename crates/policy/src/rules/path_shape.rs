//! The paths that an unknown word may stand for, such as `secr*/x`, `s?cret/x`, `"$HOME"/secret/x`;
//! and the parts of a word that may be a path: `-osecret/x`, `--output=secret/x`, `if=secret/x`,
//! `secret:/mnt`.

/// A character of a component, or a wildcard for one or any characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatternChar {
    Any,
    One,
    Plain(char),
}

/// One or several components of a [`Shape`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ShapeComponent {
    /// Any number of components.
    Names,
    /// One component, as far as it is known.
    Name(Vec<PatternChar>),
    /// One component that contains a variable.
    Open(Vec<PatternChar>),
}

/// The paths that a word may stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathShape {
    pub(super) pieces: Vec<ShapeComponent>,
    /// True if the path is relative to another directory than the project's root.
    pub(super) elsewhere: bool,
}

/// Maximum number of characters of a component. No file's name is longer, and a longer one counts
/// as unknown.
const MAX_COMPONENT_CHARS: usize = 255;
/// Maximum number of components of a word.
const MAX_COMPONENTS: usize = 64;

impl PathShape {
    /// Returns the paths of a word as written; `None` if the word is literal or completely unknown.
    pub(super) fn from_word(word: &str) -> Option<Self> {
        if !word.contains(['*', '?', '[', '$', '`']) {
            return None;
        }
        let mut shape = Self { pieces: Vec::new(), elsewhere: word.starts_with(['/', '~']) };
        for (place, name) in split_components(word).into_iter().enumerate() {
            let signs = parse_component(name);
            match signs.as_slice() {
                [] | [PatternChar::Plain('.')] => {}
                [PatternChar::Plain('.'), PatternChar::Plain('.')] => {
                    shape.elsewhere |= shape.pieces.pop().is_none()
                }
                // A variable alone may be any directory, or several components.
                [PatternChar::Any] if name.starts_with(['$', '"', '`']) && place == 0 => {
                    shape.elsewhere = true
                }
                [PatternChar::Any] if !name.starts_with('*') || name.starts_with("**") => {
                    shape.pieces.push(ShapeComponent::Names);
                }
                _ if signs.len() > MAX_COMPONENT_CHARS => shape.pieces.push(ShapeComponent::Names),
                _ if name.contains(['$', '`']) => shape.pieces.push(ShapeComponent::Open(signs)),
                _ => shape.pieces.push(ShapeComponent::Name(signs)),
            }
        }
        let some = shape.pieces.iter().any(|piece| !matches!(piece, ShapeComponent::Names));
        (some && shape.pieces.len() <= MAX_COMPONENTS).then_some(shape)
    }
}

/// Splits a path into components, except within a substitution.
fn split_components(word: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let (mut from, mut depth, mut ticks) = (0, 0usize, false);
    for (at, byte) in word.bytes().enumerate() {
        match byte {
            b'(' | b'{' => depth += 1,
            b')' | b'}' => depth = depth.saturating_sub(1),
            b'`' => ticks = !ticks,
            b'/' if depth == 0 && !ticks => {
                names.extend(word.get(from..at));
                from = at + 1;
            }
            _ => {}
        }
    }
    names.extend(word.get(from..));
    names
}

/// Returns a component without its quotes, in lower case, with [`Sign::Any`] for unknown content.
fn parse_component(name: &str) -> Vec<PatternChar> {
    let mut signs: Vec<PatternChar> = Vec::with_capacity(name.len());
    let any = |signs: &mut Vec<PatternChar>| {
        if signs.last() != Some(&PatternChar::Any) {
            signs.push(PatternChar::Any);
        }
    };
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
        match first {
            '\'' | '"' => {}
            '\\' => {
                if let Some(escaped) = rest.chars().next() {
                    rest = rest.get(escaped.len_utf8()..).unwrap_or_default();
                    signs.extend(escaped.to_lowercase().map(PatternChar::Plain));
                }
            }
            '*' => any(&mut signs),
            '?' => signs.push(PatternChar::One),
            // A bracket expression matches one character; if its end is uncertain, the rest is
            // unknown.
            '[' => {
                signs.push(PatternChar::One);
                match find_set_end(rest) {
                    Some(end) => rest = rest.get(end..).unwrap_or_default(),
                    None => {
                        any(&mut signs);
                        return signs;
                    }
                }
            }
            '$' => {
                any(&mut signs);
                let end = match rest.chars().next() {
                    // A nested expansion has a brace of its own.
                    Some('{') => match rest.find('}') {
                        Some(at) if rest.get(1..at).is_some_and(|inner| !inner.contains(['{', '$'])) => {
                            at + 1
                        }
                        _ => rest.rfind('}').map_or(rest.len(), |at| at + 1),
                    },
                    Some('(') => rest.rfind(')').map_or(rest.len(), |at| at + 1),
                    Some(c) if c == '_' || c.is_ascii_alphanumeric() => {
                        rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(rest.len())
                    }
                    Some(other) => other.len_utf8(),
                    None => 0,
                };
                rest = rest.get(end..).unwrap_or_default();
            }
            '`' => {
                any(&mut signs);
                rest = rest.rfind('`').and_then(|at| rest.get(at + 1..)).unwrap_or_default();
            }
            plain => signs.extend(plain.to_lowercase().map(PatternChar::Plain)),
        }
    }
    signs
}

/// Returns the end of a bracket expression after its opening bracket: `a]`, `]a]`, `!]a]`,
/// `[:alpha:]]`. `None` if it is not closed, or contains quotes or unknown content.
fn find_set_end(set: &str) -> Option<usize> {
    let mut bytes = set.bytes().enumerate().peekable();
    bytes.next_if(|(_, byte)| matches!(byte, b'!' | b'^'));
    bytes.next_if(|(_, byte)| *byte == b']');
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b']' => return Some(at + 1),
            b'\'' | b'"' | b'\\' | b'$' | b'`' => return None,
            b'[' => {
                let Some((_, kind)) = bytes.next_if(|(_, byte)| b":.=".contains(byte)) else { continue };
                let mut before = 0;
                loop {
                    match bytes.next()?.1 {
                        b']' if before == kind => break,
                        byte => before = byte,
                    }
                }
            }
            _ => {}
        }
    }
    None
}

/// Maximum number of positions in a word at which a path may begin or end.
const MAX_SEPARATORS: usize = 8;
/// Maximum number of option letters before a value.
const MAX_OPTION_LETTERS: usize = 4;
/// Minimum length of a value after option letters, unless it is clearly a path: `-rf` has no value
/// `f`.
const MIN_VALUE_BYTES: usize = 3;

/// Returns the parts of a word that may be a path, the whole word first.
pub(super) fn possible_paths(word: &str) -> Vec<&str> {
    let mut places = vec![word];
    let sign = |byte: u8| matches!(byte, b'=' | b':' | b',' | b'@');
    let mut from = 0;
    let mut signs = word.bytes().enumerate().filter(|(_, byte)| sign(*byte)).map(|(at, _)| at);
    for _ in 0..MAX_SEPARATORS {
        let Some(at) = signs.next() else { break };
        places.extend(word.get(from..at).filter(|place| !place.is_empty()));
        places.extend(word.get(at + 1..).filter(|place| !place.is_empty()));
        from = at + 1;
    }
    if word.starts_with('-') && !word.starts_with("--") {
        let values = (2..2 + MAX_OPTION_LETTERS).filter_map(|at| word.get(at..));
        places.extend(
            values.filter(|value| value.len() >= MIN_VALUE_BYTES || value.contains(['/', '.', '*', '?'])),
        );
    }
    places
}

#[cfg(test)]
mod tests {
    use super::super::glob::PathPattern;
    use super::*;

    #[test]
    fn what_a_word_may_stand_for() {
        // The pattern, the word, and whether it surely speaks of it, perhaps, or not.
        let cases = [
            ("secret/**", "secr*/x", Some(true)),
            ("secret/**", "s?cret/x", Some(true)),
            ("secret/**", "s[ae]cret/x", Some(true)),
            ("secret/**", "[]s]ecret/x", Some(true)),
            ("secret/**", "[!]x]ecret/x", Some(true)),
            ("secret/**", "[[:alpha:]]ecret/x", Some(true)),
            ("secret", "[[=s=]x]ecret", Some(true)),
            ("secret/**", "[\"]\"s]ecret/x", Some(false)),
            ("secret", "[\"]\"s]ecret", Some(false)),
            ("secret/**", "\"$HOME\"/secret/x", Some(true)),
            ("secret/**", "$(pwd)/secret/x", Some(true)),
            ("secret/**", "../*/secret/x", Some(true)),
            ("secret/**", "./sec*", Some(true)),
            ("secret/**", "SEC*/x", Some(true)),
            ("secret/**", "sec$x/y", Some(false)),
            ("**/*.pem", "a$x", None),
            ("**/*.pem", "x=$(cat y)", None),
            ("secret/**", "*/x", Some(false)),
            ("secret/**", "*", Some(false)),
            ("secret/**", "public*/x", None),
            ("secret/**", "*.rs", None),
            ("secret/**", "x/sec*", None),
            ("secret/**", "$x", None),
            ("secret/key", "secret/*", Some(false)),
            ("secret/key", "secret/k*", Some(true)),
            ("**/*.pem", "a/b*/c*.pem", Some(true)),
            ("**/*.pem", "src/*", Some(false)),
            ("**/*.pem", "src/*.rs", None),
            (".env", "*", None),
            (".env", ".e*", Some(true)),
            (".env", "?env", None),
            ("a/**/z", "a/**/z*", Some(true)),
            ("a/b/c", "a/$x/c*", Some(false)),
            ("secret/**", "${x:-${y}}secret/x", Some(false)),
        ];
        for (pattern, word, expected) in cases {
            let found = PathShape::from_word(word)
                .and_then(|shape| PathPattern::parse(pattern).unwrap().may_match_both(&shape, false));
            assert_eq!(found, expected, "{pattern} {word}");
        }
        let dots = PathShape::from_word("*env").unwrap();
        assert_eq!(PathPattern::parse(".env").unwrap().may_match_both(&dots, true), Some(true));
    }

    #[test]
    fn where_a_path_may_stand() {
        for word in [
            "secret/x",
            "-osecret/x",
            "--output=secret/x",
            "if=secret/x",
            "a=b=secret/x",
            "-vosecret/x",
            "secret/x:/mnt",
            "src=secret/x,dst=/y",
            "@secret/x",
            "--data=@secret/x",
            "HEAD:secret/x",
        ] {
            assert!(possible_paths(word).contains(&"secret/x"), "{word}: {:?}", possible_paths(word));
        }
        assert_eq!(possible_paths("-rf"), ["-rf"]);
        assert_eq!(possible_paths("--secret"), ["--secret"]);
    }
}
