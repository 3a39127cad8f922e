//! What a program of `awk` may do and still only print.

use journeyman_syntax::shell::Word;

use super::readers::UNKNOWN;

/// What the names of gawk's connections begin with.
const INET: &str = "/inet";

/// Whether `awk` with these arguments prints and computes, and neither writes files, nor runs anything, nor reads from
/// a command.
pub(super) fn only_prints(arguments: &[&str]) -> bool {
    let mut rest = arguments;
    loop {
        match rest {
            ["-F" | "-v", value, after @ ..] if !value.contains(UNKNOWN) => rest = after,
            ["--", after @ ..] => {
                rest = after;
                break;
            }
            [option, after @ ..]
                if option.len() > 2
                    && (option.starts_with("-F") || option.starts_with("-v"))
                    && !option.contains(UNKNOWN) =>
            {
                rest = after;
            }
            [option, ..] if option.starts_with('-') => return false,
            _ => break,
        }
    }
    match rest {
        [program, files @ ..] => is_tame(program) && files.iter().all(|file| is_plain_operand(file)),
        [] => false,
    }
}

/// A file that is one, or a variable that is set to what can't be the name of a connection.
fn is_plain_operand(operand: &str) -> bool {
    let value = operand.split_once('=').map(|(_, value)| value);
    !operand.starts_with('-')
        && !operand.starts_with(INET)
        && !value.is_some_and(|value| value.contains(['/', '\\']))
}

/// Whether a word that isn't wholly known may be the name of a connection.
pub(super) fn may_connect(word: &Word) -> bool {
    !word.known && (word.start.starts_with(INET) || INET.starts_with(word.start.as_str()))
        || word.text.starts_with(INET)
}

/// Looks for the ways out in the raw text, strings and patterns included: what is a string can't be told from what is
/// a pattern without all of the grammar.
fn is_tame(program: &str) -> bool {
    const WAYS: &[&str] = &[
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
        INET,
        UNKNOWN,
    ];
    if WAYS.iter().any(|way| program.contains(way)) {
        return false;
    }
    // A pipe runs what stands behind it; `||` doesn't.
    if program.replace("||", "").contains('|') {
        return false;
    }
    // Only `print` writes with `>`: in an action, and not between parentheses.
    let Some(action) = program.find('{') else { return true };
    if !program.get(action..).unwrap_or_default().contains('>') {
        return true;
    }
    // Without strings and patterns every parenthesis is one.
    if program.contains(['"', '/', '#', '\\']) {
        return false;
    }
    let mut depth = 0usize;
    let mut braces = 0usize;
    program.chars().all(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            _ => {}
        }
        character != '>' || depth > 0 || braces == 0
    })
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
        ] {
            assert!(!super::only_prints(&[program, "x"]), "{program}");
        }
        assert!(super::only_prints(&["-F:", "{print $1}"]));
        assert!(!super::only_prints(&["-f", "x"]));
        assert!(!super::only_prints(&["-i", "inplace", "{print}"]));
        assert!(!super::only_prints(&["{print}", "-f"]));
    }
}
