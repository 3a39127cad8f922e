//! Recognizes `awk` programs that only print.

use journeyman_syntax::shell::Word;

use super::options::UNKNOWN_REST;

/// Prefix of gawk's network connections.
const INET_PREFIX: &str = "/inet";

/// Returns true if `awk` with these arguments only prints and computes: it writes no files, runs no
/// program, and reads from no command.
pub(super) fn only_prints(arguments: &[&str]) -> bool {
    let mut rest = arguments;
    loop {
        match rest {
            ["-F" | "-v", value, after @ ..] if !value.contains(UNKNOWN_REST) => rest = after,
            // The value of a variable with an ordinary name is data.
            ["-v", value, after @ ..] if is_variable_assignment(value) => rest = after,
            ["--", after @ ..] => {
                rest = after;
                break;
            }
            [option, after @ ..]
                if option.len() > 2
                    && (option.starts_with("-F") || option.starts_with("-v"))
                    && !option.contains(UNKNOWN_REST) =>
            {
                rest = after;
            }
            [option, ..] if option.starts_with('-') => return false,
            _ => break,
        }
    }
    match rest {
        [program, files @ ..] => has_no_effects(program) && files.iter().all(|file| is_plain_operand(file)),
        [] => false,
    }
}

/// Returns true for `name=…` with a name that has no meaning in awk.
fn is_variable_assignment(assignment: &str) -> bool {
    assignment.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit())
    })
}

/// Returns true for a file, or for a variable whose value can't be the name of a connection.
fn is_plain_operand(operand: &str) -> bool {
    let value = operand.split_once('=').map(|(_, value)| value);
    !operand.starts_with('-')
        && !operand.starts_with(INET_PREFIX)
        && !value.is_some_and(|value| value.contains(['/', '\\']) || value.contains(UNKNOWN_REST))
}

/// Returns true if a word with unknown content may be the name of a connection.
pub(super) fn may_be_connection(word: &Word) -> bool {
    !word.known && (word.start.starts_with(INET_PREFIX) || INET_PREFIX.starts_with(word.start.as_str()))
        || word.text.starts_with(INET_PREFIX)
}

/// Returns true if the raw text has no construct with an effect. Strings and patterns are searched
/// too: only the full grammar tells them apart.
fn has_no_effects(program: &str) -> bool {
    const FORBIDDEN_CONSTRUCTS: &[&str] = &[
        "system",
        "getline",
        "@",
        "ENVIRON",
        "extension",
        "ARGV",
        "ARGC",
        "SYMTAB",
        "FUNCTAB",
        "PROCINFO",
        INET_PREFIX,
        UNKNOWN_REST,
    ];
    if FORBIDDEN_CONSTRUCTS.iter().any(|way| program.contains(way)) {
        return false;
    }
    // `|` runs the command behind it, and `>` may write. `||` is not a pipe.
    let action = program.find('{').and_then(|at| program.get(at..)).unwrap_or_default();
    if !program.replace("||", "").contains('|') && !action.contains('>') {
        return true;
    }
    strip_literals(program).is_some_and(|code| has_only_comparisons(&code))
}

/// Returns a program without the contents of its strings, patterns and comments. `None` if these
/// can't be found with certainty: whether a slash divides depends on the text before it.
fn strip_literals(program: &str) -> Option<String> {
    let mut code = String::with_capacity(program.len());
    let mut rest = program.chars();
    while let Some(character) = rest.next() {
        match character {
            '"' => {
                skip_quoted(&mut rest, '"')?;
                // An operand, replaced by a number and separated: `print"x"` prints.
                code.push_str(" 0 ");
            }
            '/' if is_slash_division(&code)? => code.push('/'),
            '/' => {
                skip_quoted(&mut rest, '/')?;
                code.push_str(" 0 ");
            }
            '#' => {
                if rest.by_ref().any(|character| character == '\n') {
                    code.push('\n');
                }
            }
            // A continued line, or a character that begins no known construct.
            '\\' | '\'' | '`' => return None,
            other if other.is_control() && !matches!(other, '\n' | '\t') => return None,
            other => code.push(other),
        }
    }
    Some(code)
}

/// Skips to the end of a string or a pattern.
fn skip_quoted(rest: &mut std::str::Chars<'_>, end: char) -> Option<()> {
    loop {
        match rest.next()? {
            '\n' => return None,
            '\\' => {
                rest.next().filter(|escaped| *escaped != '\n')?;
            }
            found if found == end => return Some(()),
            '[' if end == '/' => skip_bracket_set(rest)?,
            _ => {}
        }
    }
}

/// Skips to the end of a pattern's bracket expression. Implementations differ about slashes in it,
/// `[]a]`, `[^]a]`, and nested brackets.
fn skip_bracket_set(rest: &mut std::str::Chars<'_>) -> Option<()> {
    let mut found = rest.next()?;
    if found == '^' {
        found = rest.next()?;
    }
    if found == ']' {
        return None;
    }
    loop {
        match found {
            ']' => return Some(()),
            '/' | '\n' => return None,
            '\\' => {
                rest.next().filter(|escaped| *escaped != '\n')?;
            }
            // A complete class such as `[:alpha:]` is unambiguous.
            '[' => {
                let (name, after) = rest.as_str().strip_prefix(':')?.split_once(":]")?;
                if !name.bytes().all(|byte| byte.is_ascii_lowercase()) {
                    return None;
                }
                *rest = after.chars();
            }
            _ => {}
        }
        found = rest.next()?;
    }
}

/// Returns true if a slash after this code divides, false if it begins a pattern; `None` if both
/// are possible.
fn is_slash_division(code: &str) -> Option<bool> {
    let code = code.trim_end_matches([' ', '\t']);
    match code.chars().next_back() {
        None
        | Some('\n' | '{' | '}' | '(' | ',' | ';' | '!' | '~' | '&' | '|' | '=' | '<' | '>' | '?' | ':') => {
            Some(false)
        }
        Some(last) if last == '_' || last.is_ascii_alphanumeric() => {
            let word = code.rsplit(|c: char| c != '_' && !c.is_ascii_alphanumeric()).next()?;
            // mawk begins a pattern after the first of these, busybox after the others.
            if matches!(word, "length" | "break" | "continue" | "next" | "nextfile") {
                return None;
            }
            // A number, possibly with a keyword right after it.
            if word.starts_with(|c: char| c.is_ascii_digit()) && !word.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            let keyword = matches!(
                word,
                "print" | "printf" | "return" | "in" | "else" | "do" | "case" | "delete" | "exit"
            );
            Some(!keyword)
        }
        Some(']') => Some(true),
        // `if (x) /y/` and `(x) / y`, `x++ / y` and `x + +/y/`.
        Some(_) => None,
    }
}

/// Returns true if no `>` writes and no `|` runs: they do so after `print`, outside parentheses.
fn has_only_comparisons(code: &str) -> bool {
    let mut depth = 0usize;
    let mut braces = 0usize;
    let mut prints = false;
    let mut word = String::new();
    let mut characters = code.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '_' || character.is_ascii_alphanumeric() {
            word.push(character);
            continue;
        }
        // The keyword may follow a number directly.
        prints |= word.ends_with("print") || word.ends_with("printf");
        word.clear();
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '{' => (braces, prints) = (braces + 1, false),
            '}' => (braces, prints) = (braces.saturating_sub(1), false),
            // A newline may be inside a list.
            ';' if depth == 0 => prints = false,
            '|' if characters.next_if_eq(&'|').is_none() => return false,
            '>' if depth == 0 && braces > 0 && prints => return false,
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    #[test]
    fn table() {
        for program in [
            "{print $1}",
            "{ print $1, $NF }",
            "NR==1",
            "NR>5",
            "$3 > 5 {print}",
            "/a/ {print $2}",
            "{sum+=$1} END {print sum}",
            "{if ($3 > 5) print $1}",
            "length($0) > 100",
            "!seen[$0]++",
            "{printf \"%s\\n\", $1}",
            "a || b {print}",
            "BEGIN{FS=\",\"}{print $2}",
            "{ if ($1 > 5) print \"big\", $1 }",
            "{ x = $1 > 5; print x }",
            "{print $1 \" | \" $2}",
            "{print $1 \" > \" $2}",
            "/a|b/ {print}",
            "/^[0-9]+|x/ && $2 > 3 {print $1/2}",
            "$3 > 5 {n++} END {print n \"|\" n/2}",
            "{ if ($1 >= 5 || $2 > 3) { print \"a\" } } # a > b | c",
            "{for (i = NF; i > 0; i--) printf \"%s \", $i; print \"\"}",
            "{a[$1] = a[$1] > $2 ? a[$1] : $2} END {for (k in a) print k \": \" a[k]}",
            "{print ($1 > 5)}",
            "{ if ($1 ~ /x/ && length($2) > 3) { print; next } }",
            "{ if ($1 ~ /^[[:space:]]*[^#\"]/ && $2 > 3) print }",
        ] {
            assert!(super::only_prints(&[program, "x"]), "{program}");
        }
        for program in [
            "BEGIN{system(\"x\")}",
            "{print > \"x\"}",
            "{print | \"sh\"}",
            "{\"x\" | getline}",
            "{print \"(\" > \"x\"}",
            "/\"/{system(\"x\")} /\"/",
            "{print $1 > $2}",
            "@include \"x\"",
            "{print >> f}",
            "{f=\"sys\"; @f(1)}",
            "{print (1) > x}",
            "/(/ {print > x}",
            "{print |& x}",
            "{ if ($1 > 5) print \"x\" > \"f\" }",
            "{ if ($1 > 5) print > \"f\"; else print }",
            "{ print (1)(2) > \"f\" }",
            "{ print \"a\",\n\"b\" > \"f\" }",
            "{ print \"(\" > \"f\" }",
            "{ printf(\"%s\", $1) > \"f\" }",
            "{ print /(/ > \"f\" }",
            "{ print a / b > \"f\" # /\n}",
            "{ print $1/2 > \"/x\" }",
            "{ if (x) /\"/; print > f; /\"/ }",
            "{ x++ /\"/; print > f; /\"/ }",
            "{ print \"\\\"\" > \"f\" }",
            "{ print /[/]/ > \"(f)\" }",
            "{ print \"x\" | \"cat\" }",
            "{ print \"x\" |\"cat\" }",
            "{ \"date\" | x }",
            "function print_it(a) { print a > \"f\" }",
            "{ print(1) > \"f\" }",
            "{ print -1 > \"f\" }",
            "{ if (1) { print \"}\" > \"f\" } }",
            "{ print \";\" > \"f\" }",
            "{ print # ;\n > \"f\" }",
            "{ print $1, a[1] / 2 > \"f\" }",
            "{print\\\n > \"f\"}",
        ] {
            assert!(!super::only_prints(&[program, "x"]), "{program}");
        }
        assert!(super::only_prints(&["-F:", "{print $1}"]));
        assert!(!super::only_prints(&["-f", "x"]));
        assert!(!super::only_prints(&["-i", "inplace", "{print}"]));
        assert!(!super::only_prints(&["{print}", "-f"]));
    }

    #[test]
    fn where_awks_differ_nothing_is_believed() {
        for program in [
            "{print\"x\">\"f\"}",
            "{printf\"x\">\"f\"}",
            "{print/x/>\"f\"}",
            "{if(/x/)print\"x\">\"f\"}",
            "{ n = length /\"/; print 1 > \"f\"; x = \"/\" }",
            "{ while (n++ < 2) break /\"/; print 1 > \"f\"; x = \"/\" }",
            "{ x = /[]/ \"]/; print 1 > \"f\"; y = \"#\"\n }",
            "{ x = /[^]/ \"]/; print 1 > \"f\"; y = \"#\"\n }",
            "{ x = /[[:alpha:]/ \"]/; print 1 > \"f\"; y = \"#\"\n }",
            "{ x = /[[.].]/ \"]/; print 1 > \"f\"; y = \"#\"\n }",
            "{ if (x) y = 1else /\"/; print 1 > \"f\"; y = \"#\"\n }",
            "{ x = 1print > \"f\" }",
        ] {
            assert!(!super::only_prints(&[program, "x"]), "{program}");
        }
    }
}
