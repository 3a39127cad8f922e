//! The globs of ignore rules, matched as git's `wildmatch` does with its flag for path names.

/// Maximum steps of a match; a name of 255 bytes against ten stars takes some 2,500. A pattern that
/// needs more is hostile, and matches nothing.
const MAX_STEPS: usize = 1 << 16;

/// A set of bytes, a bit each.
type ByteSet = [u64; 4];

/// A pattern that begins with a special character.
#[derive(Debug)]
pub(crate) struct Glob {
    tokens: Vec<Token>,
}

#[derive(Debug)]
enum Token {
    Byte(u8),
    /// `?`: any byte but a slash.
    AnyByte,
    /// `[…]`: one of a set of bytes, never a slash.
    Class(Box<ByteSet>),
    /// `*`: any bytes but slashes.
    Star,
    /// `**/` at the start of a component: nothing, or anything that ends with a slash.
    Directories,
    /// `**` at the start of the last component: anything.
    Rest,
}

/// A position to backtrack to when the tokens after a star don't match: the token after the star,
/// and the next byte that the star may take.
type Backtrack = Option<(usize, usize)>;

impl Glob {
    /// Parses a pattern; `None` if it can match nothing, as one with an open class.
    pub(crate) fn parse(pattern: &[u8]) -> Option<Self> {
        let (mut tokens, mut rest, mut starts_component) = (Vec::new(), pattern, true);
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            let token = match byte {
                b'\\' => {
                    let (&escaped, after) = rest.split_first()?;
                    rest = after;
                    Token::Byte(escaped)
                }
                b'?' => Token::AnyByte,
                b'*' => {
                    let stars = rest.iter().take_while(|byte| **byte == b'*').count();
                    rest = rest.get(stars..)?;
                    match rest.strip_prefix(b"/") {
                        _ if stars == 0 || !starts_component => Token::Star,
                        None if rest.is_empty() => Token::Rest,
                        // Before an escaped slash, stars match one directory at least.
                        None if rest.starts_with(b"\\/") => {
                            tokens.push(Token::Directories);
                            Token::Star
                        }
                        None => Token::Star,
                        Some(after) => {
                            rest = after;
                            Token::Directories
                        }
                    }
                }
                b'[' => {
                    let (class, after) = parse_class(rest)?;
                    rest = after;
                    Token::Class(Box::new(class))
                }
                byte => Token::Byte(byte),
            };
            starts_component = matches!(token, Token::Byte(b'/') | Token::Directories);
            tokens.push(token);
        }
        Some(Self { tokens })
    }

    /// Returns true if the pattern matches the whole of `text`.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        let (mut token, mut at) = (0, 0);
        // Only the last star of each kind has to be tried again: what an earlier one could take
        // instead, a later one of its kind takes as well.
        let (mut star, mut directories): (Backtrack, Backtrack) = (None, None);
        for _ in 0..MAX_STEPS {
            let byte = text.get(at).copied();
            let fits = match (self.tokens.get(token), byte) {
                (None, None) | (Some(Token::Rest), _) => return true,
                (Some(Token::Star), _) => {
                    token += 1;
                    star = Some((token, at));
                    continue;
                }
                (Some(Token::Directories), _) => {
                    token += 1;
                    (star, directories) = (None, Some((token, at)));
                    continue;
                }
                (Some(Token::Byte(expected)), Some(byte)) => *expected == byte,
                (Some(Token::AnyByte), Some(byte)) => byte != b'/',
                (Some(Token::Class(class)), Some(byte)) => byte != b'/' && contains_byte(class, byte),
                (None, Some(_)) | (Some(_), None) => false,
            };
            if fits {
                (token, at) = (token + 1, at + 1);
            } else if let Some((behind, taken)) =
                star.filter(|(_, taken)| text.get(*taken).is_some_and(|byte| *byte != b'/'))
            {
                (token, at) = (behind, taken + 1);
                star = Some((token, at));
            } else if let Some((behind, taken)) = directories {
                let rest = text.get(taken..).unwrap_or_default();
                let Some(slash) = rest.iter().position(|byte| *byte == b'/') else { return false };
                (token, at) = (behind, taken + slash + 1);
                (star, directories) = (None, Some((token, at)));
            } else {
                return false;
            }
        }
        false
    }
}

/// Parses a class behind its `[`, and returns the rest of the pattern; `None` if it is open or
/// names an unknown set.
fn parse_class(pattern: &[u8]) -> Option<(ByteSet, &[u8])> {
    let (is_negated, mut rest) = match pattern.split_first()? {
        (b'!' | b'^', rest) => (true, rest),
        _ => (false, pattern),
    };
    let mut class = ByteSet::default();
    let mut add = |from: u8, to: u8| (from..=to).for_each(|byte| insert_byte(&mut class, byte));
    // The first character of a range, and whether a `]` stands for itself, as the first one does.
    let (mut from, mut is_first) = (None, true);
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b']' if !is_first => break,
            b'-' if from.is_some() && rest.first().is_some_and(|next| *next != b']') => {
                let (mut to, mut after) = rest.split_first()?;
                if *to == b'\\' {
                    (to, after) = after.split_first()?;
                }
                rest = after;
                add(from.take()?, *to);
            }
            b'[' if rest.starts_with(b":") => {
                let name = rest.get(1..)?;
                let length = name.iter().position(|byte| *byte == b']')?;
                match name.get(..length)?.strip_suffix(b":") {
                    Some(set) => {
                        let is_in_set = posix_class(set)?;
                        (0..=u8::MAX).filter(is_in_set).for_each(|byte| add(byte, byte));
                        rest = name.get(length + 1..)?;
                        from = None;
                    }
                    // No name of a set: the bracket stands for itself.
                    None => {
                        add(b'[', b'[');
                        from = Some(b'[');
                    }
                }
            }
            byte => {
                let literal = match byte {
                    b'\\' => {
                        let (&escaped, after) = rest.split_first()?;
                        rest = after;
                        escaped
                    }
                    byte => byte,
                };
                add(literal, literal);
                from = Some(literal);
            }
        }
        is_first = false;
    }
    if is_negated {
        class.iter_mut().for_each(|bits| *bits = !*bits);
    }
    Some((class, rest))
}

fn insert_byte(set: &mut ByteSet, byte: u8) {
    if let Some(bits) = set.get_mut(usize::from(byte / 64)) {
        *bits |= 1 << (byte % 64);
    }
}

fn contains_byte(set: &ByteSet, byte: u8) -> bool {
    set.get(usize::from(byte / 64)).is_some_and(|bits| bits & (1 << (byte % 64)) != 0)
}

/// Returns the test for a POSIX character class, by its name.
fn posix_class(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}
