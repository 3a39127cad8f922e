//! `{a,b}` and `{1..3}`, as bash expands them.

/// Words that one word may become. More is not a command that anybody reads.
const MAX_WORDS: usize = 64;
/// Braces in one another.
const MAX_DEPTH: usize = 8;

/// The bytes of a word that are neither quoted nor escaped nor in `${…}` and `$(…)`.
fn bare(source: &str) -> impl Iterator<Item = (usize, u8)> {
    let mut quote = None;
    let mut escaped = false;
    let mut dollar = false;
    let mut inside = 0usize;
    source.bytes().enumerate().filter(move |(_, byte)| {
        let after_dollar = std::mem::take(&mut dollar);
        if std::mem::take(&mut escaped) {
            return false;
        }
        match (quote, *byte) {
            (Some(b'\''), b'\'') | (Some(b'"'), b'"') => quote = None,
            (Some(b'\''), _) => {}
            (_, b'\\') => escaped = true,
            (Some(_), _) => {}
            (None, open @ (b'\'' | b'"')) => quote = Some(open),
            (None, b'$') => dollar = true,
            (None, b'{' | b'(') if after_dollar || inside > 0 => inside += 1,
            (None, b'}' | b')') if inside > 0 => inside -= 1,
            (None, _) => return inside == 0,
        }
        false
    })
}

/// Where a pair of braces begins and ends, and where the words between its commas do.
type Pair = (usize, usize, Vec<(usize, usize)>);

/// A pair of braces that stands for several words: where it begins and ends, and what is between its commas.
fn first_pair(source: &str) -> Option<Pair> {
    let bare: Vec<(usize, u8)> = bare(source).collect();
    let opens = bare.iter().enumerate().filter(|(_, (_, byte))| *byte == b'{').take(MAX_DEPTH);
    for (index, &(open, _)) in opens {
        let mut depth = 0usize;
        let mut commas = Vec::new();
        for &(at, byte) in bare.get(index..)? {
            match byte {
                b'{' => depth += 1,
                b'}' if depth == 1 => {
                    let inside = source.get(open + 1..at)?;
                    if commas.is_empty() && !inside.contains("..") {
                        break;
                    }
                    let starts = std::iter::once(open + 1).chain(commas.iter().map(|comma| comma + 1));
                    let ends = commas.iter().copied().chain(std::iter::once(at));
                    return Some((open, at, starts.zip(ends).collect()));
                }
                b'}' => depth = depth.saturating_sub(1),
                b',' if depth == 1 => commas.push(at),
                _ => {}
            }
        }
    }
    None
}

/// Whether bash makes several words of it.
pub(super) fn expands(source: &str) -> bool {
    first_pair(source).is_some()
}

/// The words that bash makes of it, still quoted; `None` if there are too many or they count up.
pub(super) fn expand(source: &str) -> Option<Vec<String>> {
    let mut done = Vec::new();
    let mut waiting = vec![(source.to_owned(), 0)];
    while let Some((word, depth)) = waiting.pop() {
        match first_pair(&word) {
            None => done.push(word),
            Some(_) if depth == MAX_DEPTH => return None,
            Some((open, close, pieces)) => {
                let (before, after) = (word.get(..open)?, word.get(close + 1..)?);
                // `{1..9}` stands for one word or many that begin alike.
                if pieces.len() == 1 {
                    return None;
                }
                for (from, to) in pieces.into_iter().rev() {
                    waiting.push((format!("{before}{}{after}", word.get(from..to)?), depth + 1));
                }
            }
        }
        if done.len() + waiting.len() > MAX_WORDS {
            return None;
        }
    }
    Some(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_become_words() {
        let cases: &[(&str, &[&str])] = &[
            ("{a,b}", &["a", "b"]),
            ("x{a,b}y", &["xay", "xby"]),
            ("{a,b}{c,d}", &["ac", "ad", "bc", "bd"]),
            ("{a,{b,c}}", &["a", "b", "c"]),
            ("{rm,-rf,x}", &["rm", "-rf", "x"]),
            ("{,x}", &["", "x"]),
            ("{a}{b,c}", &["{a}b", "{a}c"]),
            ("{'a,b',c}", &["'a,b'", "c"]),
            ("${x,y}{a,b}", &["${x,y}a", "${x,y}b"]),
        ];
        for (source, words) in cases {
            assert!(expands(source), "{source}");
            assert_eq!(expand(source).unwrap(), *words, "{source}");
        }
        for source in ["{}", "{a}", "'{a,b}'", "\\{a,b}", "{a,b", "a,b}", "${a,b}", "\"{a,b}\"", "$(x {a,b})"]
        {
            assert!(!expands(source), "{source}");
        }
        assert!(expands("{1..3}"));
        assert_eq!(expand("{1..3}"), None);
        assert_eq!(expand(&"{a,b}".repeat(7)), None);
    }
}
