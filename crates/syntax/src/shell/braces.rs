//! Expansion of `{a,b}` and `{1..3}`, as bash does it.

/// Maximum words that one word expands to. Nobody reads a command with more.
const MAX_WORDS: usize = 128;
/// Maximum nesting of braces.
const MAX_DEPTH: usize = 8;

/// Returns the bytes of a word that are neither quoted nor escaped nor in `${…}` and `$(…)`.
fn unquoted_bytes(source: &str) -> impl Iterator<Item = (usize, u8)> {
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

/// The beginning and end of a pair of braces, and the ranges of the words between its commas.
type BracePair = (usize, usize, Vec<(usize, usize)>);

/// Returns the first pair of braces that expands to several words.
fn first_brace_pair(source: &str) -> Option<BracePair> {
    let bare: Vec<(usize, u8)> = unquoted_bytes(source).collect();
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

/// Returns true if bash expands the word.
pub(super) fn has_braces_to_expand(source: &str) -> bool {
    first_brace_pair(source).is_some()
}

/// Returns true if bash may expand a word that [`has_braces_to_expand`] finds no pair in: it reads
/// `{a},b}` as `a}` and `b`. At a word's beginning `{}` stays as it is.
pub(super) fn has_doubtful_braces(source: &str) -> bool {
    let mut bare = unquoted_bytes(source).peekable();
    let (mut is_open, mut is_divided) = (false, false);
    while let Some((at, byte)) = bare.next() {
        match byte {
            b'{' if at > 0 || bare.next_if_eq(&(1, b'}')).is_none() => is_open = true,
            b',' => is_divided |= is_open,
            b'}' if is_divided => return true,
            _ => {}
        }
    }
    false
}

/// Returns the words that bash expands to, still quoted; `None` if there are too many or they count
/// up.
pub(super) fn expand_braces(source: &str) -> Option<Vec<String>> {
    let mut done = Vec::new();
    let mut waiting = vec![(source.to_owned(), 0)];
    while let Some((word, depth)) = waiting.pop() {
        match first_brace_pair(&word) {
            None => done.push(word),
            Some(_) if depth == MAX_DEPTH => return None,
            Some((open, close, pieces)) => {
                let (before, after) = (word.get(..open)?, word.get(close + 1..)?);
                if pieces.len() == 1 {
                    let items = expand_range(word.get(open + 1..close)?)?;
                    waiting
                        .extend(items.iter().rev().map(|item| (format!("{before}{item}{after}"), depth + 1)));
                    if done.len() + waiting.len() > MAX_WORDS {
                        return None;
                    }
                    continue;
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

/// Returns the items of `1..9`, `a..e` or `01..10..3`; `None` for anything else, or for too many
/// items. bash keeps some of those unchanged, and its versions differ about others.
fn expand_range(inside: &str) -> Option<Vec<String>> {
    let mut ends = inside.split("..");
    let (from, to, step) = (ends.next()?, ends.next()?, ends.next());
    if ends.next().is_some() {
        return None;
    }
    // Nobody counts with more digits, and these can't overflow.
    const MAX_DIGITS: usize = 9;
    let number = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let plain =
            (1..=MAX_DIGITS).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse::<i64>().ok()).flatten()
    };
    let step = step.map_or(Some(1), number)?.unsigned_abs().max(1);
    if let (Some(first), Some(last)) = (number(from), number(to)) {
        // A leading zero in any of them pads all to one width.
        let padded = |text: &str| {
            let digits = text.strip_prefix('-').unwrap_or(text);
            digits.len() > 1 && digits.starts_with('0')
        };
        let width = if padded(from) || padded(to) { from.len().max(to.len()) } else { 0 };
        return expand_steps(first, last, step, |number| Some(format!("{number:0width$}")));
    }
    match (from.as_bytes(), to.as_bytes()) {
        ([first], [last]) if first.is_ascii_lowercase() && last.is_ascii_lowercase() => {
            expand_steps((*first).into(), (*last).into(), step, |number| {
                u8::try_from(number).ok().map(|byte| char::from(byte).to_string())
            })
        }
        _ => None,
    }
}

fn expand_steps(
    first: i64,
    last: i64,
    step: u64,
    item: impl Fn(i64) -> Option<String>,
) -> Option<Vec<String>> {
    let count = usize::try_from(first.abs_diff(last) / step).ok().filter(|count| *count < MAX_WORDS)?;
    let step = i64::try_from(step).ok()?;
    let step = if last < first { -step } else { step };
    (0..=count).map(|place| item(first + i64::try_from(place).ok()? * step)).collect()
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
            ("{1..3}", &["1", "2", "3"]),
            ("f{3..1}.c", &["f3.c", "f2.c", "f1.c"]),
            ("{08..10}", &["08", "09", "10"]),
            ("{-1..1}", &["-1", "0", "1"]),
            ("{1..10..4}", &["1", "5", "9"]),
            ("{a..c}", &["a", "b", "c"]),
            ("{1..2}{a,b}", &["1a", "1b", "2a", "2b"]),
        ];
        for (source, words) in cases {
            assert!(has_braces_to_expand(source), "{source}");
            assert_eq!(expand_braces(source).unwrap(), *words, "{source}");
        }
        for source in ["{}", "{a}", "'{a,b}'", "\\{a,b}", "{a,b", "a,b}", "${a,b}", "\"{a,b}\"", "$(x {a,b})"]
        {
            assert!(!has_braces_to_expand(source), "{source}");
        }
        for strange in
            ["{1..x}", "{a..Z}", "{1..}", "{..3}", "{1..3..}", "{1..2..3..4}", "{1..999}", "{+1..3}"]
        {
            assert_eq!(expand_braces(strange), None, "{strange}");
        }
        assert_eq!(expand_braces(&"{a,b}".repeat(8)), None);
    }
}
