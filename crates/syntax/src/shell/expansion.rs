//! Expansions that can only stand for a value, and boundaries of words.

/// Returns true if `${…}` only stands for the value of a variable.
pub(super) fn is_plain_expansion(body: &str) -> bool {
    let body = body.strip_prefix('#').unwrap_or(body);
    let name = body.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(body.len());
    let (name, rest) = body.split_at_checked(name).unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./,-*?@%+".contains(&byte);
    let rest = rest.strip_prefix(':').filter(|rest| rest.starts_with(['-', '+', '?'])).unwrap_or(rest);
    !name.is_empty()
        && (rest.is_empty() || rest.starts_with(['-', '+', '?', '%', '#']))
        && rest.trim_start_matches(['#', '%']).bytes().all(plain)
}

/// Returns the variable names in arithmetic of numbers and variables: `x`, `$x` and `${x}`. `None`
/// for anything else: a subscript or a substitution could run a command. So could the value of a
/// variable, which isn't known here.
pub(super) fn arithmetic_names(body: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    let mut rest = body;
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (word, after) = rest.split_at_checked(word)?;
        if let Some(after) = rest.strip_prefix('$') {
            let (name, after) = match after.strip_prefix('{') {
                Some(braced) => braced.split_once('}')?,
                None => after.split_at_checked(
                    after.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(after.len()),
                )?,
            };
            if !is_variable_name(name) {
                return None;
            }
            names.push(name);
            rest = after;
        } else if word.is_empty() {
            if !" +-*/%()<>=!&|^~?:,".contains(first) {
                return None;
            }
            rest = rest.get(first.len_utf8()..)?;
        } else {
            if is_variable_name(word) {
                names.push(word);
            }
            rest = after;
        }
    }
    Some(names)
}

/// Returns true for the name of a variable, as opposed to a number or parameter.
pub(super) fn is_variable_name(text: &str) -> bool {
    text.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// Returns the ranges of the words in a text without operators: quotes and substitutions keep
/// blanks together.
pub(super) fn blank_separated(source: &str) -> Vec<(usize, usize)> {
    let mut words = Vec::new();
    let mut start = None;
    let mut quote = None;
    let mut inside = 0usize;
    let mut escaped = false;
    for (at, byte) in source.bytes().enumerate() {
        let blank = matches!(byte, b' ' | b'\t' | b'\n') && quote.is_none() && inside == 0 && !escaped;
        match (blank, start) {
            (true, Some(from)) => {
                words.push((from, at));
                start = None;
            }
            (false, None) => start = Some(at),
            _ => {}
        }
        if std::mem::take(&mut escaped) {
            continue;
        }
        match (quote, byte) {
            (Some(b'\''), b'\'') | (Some(b'"'), b'"') if inside == 0 => quote = None,
            (Some(b'\''), _) => {}
            (_, b'\\') => escaped = true,
            (_, b'(') => inside += 1,
            (_, b')') => inside = inside.saturating_sub(1),
            (None, open @ (b'\'' | b'"')) if inside == 0 => quote = Some(open),
            _ => {}
        }
    }
    words.extend(start.map(|from| (from, source.len())));
    words
}
