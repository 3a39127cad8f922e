//! A fast path without the grammar for plain texts: words, quotes, redirections and lists of
//! pipelines, which most commands are. The grammar takes tens of microseconds for these, this path
//! a few.
//!
//! This path reads only what every shell and the grammar read the same way; a property test below
//! compares the two. For anything else it returns `None`, and the grammar is used. Words are read
//! by the same scanner.

use super::convert::Converter;
use super::script::{Redirect, RedirectKind, Script, SimpleCommand, Statement, Word};

/// Maximum bytes; longer texts are left to the grammar, with its bounds on work. Ordinary commands
/// stay below 200.
const MAX_BYTES: usize = 2048;

/// Reserved words of a shell, or of the grammar, where a command may begin. They are left to the
/// grammar wherever they stand.
const RESERVED_WORDS: &[&str] = &[
    "if", "then", "elif", "else", "fi", "for", "select", "case", "esac", "while", "until", "do", "done",
    "in", "function", "time", "coproc", "declare", "typeset", "export", "readonly", "local", "unset",
    "unsetenv",
];

/// Parses a plain text; `None` for any other.
pub(super) fn parse_plain_script(text: &str) -> Option<Script> {
    if text.len() > MAX_BYTES || !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return None;
    }
    let mut reader = PlainReader { text, bytes: text.as_bytes(), at: 0, converter: Converter::new(text) };
    let mut statements = Vec::new();
    // Of the list since the last `;`: the finished statements, and the stages of the unfinished
    // one.
    let (mut list, mut stages) = (Vec::new(), Vec::new());
    loop {
        stages.push(Statement::Simple(reader.read_simple_command()?));
        let end = reader.read_operator()?;
        if end == Operator::Pipe {
            continue;
        }
        // The grammar may split a long pipeline in two readings, of which it takes either.
        if end == Operator::List && stages.len() > 2 {
            return None;
        }
        match stages.len() {
            1 => list.append(&mut stages),
            _ => list.push(Statement::Pipeline(std::mem::take(&mut stages))),
        }
        match end {
            Operator::Pipe | Operator::List => {}
            Operator::Semicolon => statements.append(&mut list),
            Operator::End => {
                statements.append(&mut list);
                return Some(Script { statements, ..Script::default() });
            }
        }
    }
}

/// An operator between two programs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Pipe,
    /// `&&`, `||`
    List,
    Semicolon,
    End,
}

struct PlainReader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    converter: Converter<'a>,
}

impl PlainReader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    fn skip_sign(&mut self, sign: &str) -> bool {
        let found = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(sign));
        if found {
            self.at += sign.len();
        }
        found
    }

    fn read_operator(&mut self) -> Option<Operator> {
        let operator = if self.peek().is_none() {
            return Some(Operator::End);
        } else if self.skip_sign("&&") || self.skip_sign("||") {
            Operator::List
        } else if self.skip_sign(";") {
            Operator::Semicolon
        } else if self.skip_sign("|") {
            Operator::Pipe
        } else {
            return None;
        };
        Some(operator)
    }

    /// Reads a program with its arguments and redirections.
    fn read_simple_command(&mut self) -> Option<SimpleCommand> {
        let mut simple = SimpleCommand::default();
        self.skip_blanks();
        let from = self.at;
        let program = self.read_word()?;
        let source = self.text.get(from..self.at)?;
        let begins = source.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '.' | '/'));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./-+".contains(&byte);
        if !(begins && source.bytes().all(plain) || is_variable_expansion(source)) {
            return None;
        }
        simple.words.push(program);
        loop {
            let before = self.at;
            self.skip_blanks();
            match self.peek() {
                None | Some(b';' | b'|' | b'&') => return Some(simple),
                _ if before == self.at => return None,
                Some(b'>' | b'<') => simple.redirects.push(self.read_redirect()?),
                Some(b'0'..=b'9') if matches!(self.bytes.get(self.at + 1), Some(b'>')) => {
                    // The grammar reads a lone dash before it as something else.
                    if simple.words.last().is_some_and(|word| word.text == "-") {
                        return None;
                    }
                    self.at += 1;
                    simple.redirects.push(self.read_redirect()?);
                }
                // The grammar reads words after a redirection in several ways.
                Some(_) if !simple.redirects.is_empty() => return None,
                Some(_) => {
                    let word = self.read_word()?;
                    simple.words.push(word);
                }
            }
        }
    }

    fn read_redirect(&mut self) -> Option<Redirect> {
        let kind = if self.skip_sign(">&") {
            // `>&2`, and no file.
            let next = self.bytes.get(self.at + 1);
            let ends = matches!(next, None | Some(b' ' | b';' | b'|'));
            if !self.peek()?.is_ascii_digit() || !ends {
                return None;
            }
            RedirectKind::Duplicate
        } else if self.skip_sign(">>") || self.skip_sign(">") {
            RedirectKind::Output
        } else if self.skip_sign("<") {
            RedirectKind::Input
        } else {
            return None;
        };
        self.skip_blanks();
        let target = self.read_word()?;
        Some(Redirect { kind, target })
    }

    /// Reads one word, up to a blank or an operator.
    fn read_word(&mut self) -> Option<Word> {
        let from = self.at;
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b';' | b'|' | b'&' => break,
                b'\'' => {
                    let rest = self.bytes.get(self.at + 1..)?;
                    self.at += rest.iter().position(|byte| *byte == b'\'')? + 1;
                }
                b'"' => self.read_double_quoted()?,
                b'$' if from == self.at => {
                    self.read_variable()?;
                    // To the grammar, little may be joined to it.
                    if !matches!(self.bytes.get(self.at + 1), None | Some(b' ' | b';' | b'|' | b'/')) {
                        return None;
                    }
                }
                // The grammar may read it as a comparison.
                b'=' if from == self.at => return None,
                // `\;`, `\(` and `\)` of `find`, each a word.
                b'\\' if from == self.at => {
                    self.at += 1;
                    let alone = matches!(self.bytes.get(self.at + 1), None | Some(b' ' | b';' | b'|'));
                    if !alone || !matches!(self.peek()?, b';' | b'(' | b')') {
                        return None;
                    }
                }
                // The placeholder of `find` and `xargs`, which isn't expanded.
                b'{' if from == self.at && self.bytes.get(from + 1) == Some(&b'}') => {
                    let next = self.bytes.get(from + 2);
                    if !matches!(next, None | Some(b' ' | b';' | b'|')) {
                        return None;
                    }
                    self.at += 1;
                }
                b'-' | b'_' | b'.' | b'/' | b',' | b':' | b'+' | b'@' | b'%' | b'=' | b'^' | b'~' | b'*'
                | b'?' => {}
                _ if byte.is_ascii_alphanumeric() => {}
                _ => return None,
            }
            self.at += 1;
        }
        let source = self.text.get(from..self.at)?;
        if source.is_empty() || RESERVED_WORDS.contains(&source) {
            return None;
        }
        let mut words = self.converter.read_words(from, self.at, &[]).ok()?.into_iter();
        words.next().filter(|word| words.next().is_none() && !word.dialect)
    }

    /// Reads to the closing quote, without taking it.
    fn read_double_quoted(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => return Some(()),
                b'`' => return None,
                b'$' => self.read_variable()?,
                b'\\' => {
                    self.at += 1;
                    if !matches!(self.peek()?, b'"' | b'\\') {
                        return None;
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Reads `$name`, without taking the last character.
    fn read_variable(&mut self) -> Option<()> {
        let rest = self.bytes.get(self.at + 1..)?;
        if !matches!(rest.first()?, b'_' | b'a'..=b'z' | b'A'..=b'Z') {
            return None;
        }
        self.at += rest.iter().take_while(|byte| **byte == b'_' || byte.is_ascii_alphanumeric()).count();
        Some(())
    }
}

/// Returns true for `$name` or `"$name"` alone: what `eval "$name"` runs.
fn is_variable_expansion(word: &str) -> bool {
    let bare = word.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(word);
    bare.strip_prefix('$').is_some_and(|name| {
        name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parse_plain_script;
    use crate::shell::{Script, parse_by_grammar};

    /// Returns true if the text is plain. The grammar must then have exactly the same result.
    fn is_plain(text: &str) -> bool {
        let Some(plain) = parse_plain_script(text) else { return false };
        assert_eq!(plain, Script { steps: 0, ..parse_by_grammar(text) }, "{text}");
        true
    }

    #[test]
    fn ordinary_commands_are_plain() {
        for text in [
            "ls",
            "ls -la src",
            " ls  -la ",
            "cargo test --workspace 2>&1 | tail -n 50",
            "cd a/b && cargo clippy --all-targets -- -D warnings || true; ls",
            "grep -rn --include='*.rs' 'fn main' src|head -50",
            "find . -name '*.rs' -not -path './target/*' | xargs wc -l | sort -n | tail",
            "find . -name \"*.c\" -exec rm {} \\; 2>/dev/null",
            "sort < a > b",
            "echo \"$HOME/x\" ~/y *.rs >> log",
            "git log --format='%h %s' HEAD~3..HEAD^ -- src",
            "sed -n 's/\"a\"/b/p' x && awk '{s+=$1} END {print s}' x",
            "curl -s https://a.example/x?y=z",
            "echo a=b --x=y a:b a@b a%b +x",
            "\"$x\"",
            "$x a",
            "a | \"$x\" b && $_y > c",
            "echo \"say \\\"no\\\" \\\\\" 'a'\"b\"c",
        ] {
            assert!(is_plain(text), "{text}");
        }
    }

    #[test]
    fn special_syntax_is_not_plain() {
        for text in [
            "",
            " ",
            "a;",
            "a &&",
            "| a",
            "a & b",
            "a &",
            "a |& b",
            "a\nb",
            "a\tb",
            "(a)",
            "{ a; }",
            "! a",
            "a `b`",
            "a $(b)",
            "a ${b}",
            "a <(b)",
            "a << b",
            "a <<< b",
            "a &> b",
            "a >| b",
            "a <> b",
            "a 10>b",
            "a2>b",
            "a>b",
            "a >&b",
            "a >&-",
            "A=1 a",
            "A=1",
            "if a",
            "a if",
            "time a",
            "[ a ]",
            "[[ a ]]",
            "a {b,c}",
            "a [b]",
            "a #b",
            "#a",
            "a $'b'",
            "a $\"b\"",
            "a 'b",
            "a \"b",
            "a \\",
            "a \\n",
            "\"a\"",
            "a\\b",
            "é",
            "export A=1",
            "a $1",
            "a $(",
            "a \"$(b)\"",
            "a \"`b`\"",
            "a !b",
            "7z",
            "-a",
            "a;;b",
            "$x/a",
            "\"$x\"a",
            "\"$x $y\" a",
            "$x=1",
            "$1 a",
        ] {
            assert!(!is_plain(text), "{text}");
        }
    }

    /// Pieces of generated texts; most are plain, and some of the others nearly so.
    const PIECES: &[&str] = &[
        "a",
        "b1",
        "ls",
        "echo",
        "cat",
        "x.rs",
        "./x",
        "/dev/null",
        "-l",
        "--all",
        "--x=y",
        "a=b",
        "A=",
        "=",
        "+=",
        "50",
        "0",
        "2",
        "1",
        "'q r'",
        "'",
        "\"",
        "\"p q\"",
        "\"$v\"",
        "$v",
        "$",
        "\"",
        "*",
        "?",
        "*.c",
        "~",
        "~/x",
        "^",
        "@",
        "%",
        "+",
        ",",
        ":",
        "..",
        "-",
        "--",
        "{}",
        "\\;",
        "\\(",
        "\\*",
        "\\|",
        "\\\\",
        "\\\"",
        "#",
        "!",
        "if",
        "then",
        "do",
        "in",
        "time",
        "test",
        "let",
        "return",
        "exit",
        "eval",
        "trap",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        " ",
        " ",
        " ",
        " ",
        " ",
        "  ",
        " | ",
        " && ",
        " || ",
        "; ",
        "|",
        "&&",
        "||",
        ";",
        " 2>&1",
        " >&2",
        " > ",
        " >",
        " >> ",
        " >>",
        " < ",
        " <",
        " 2>",
        " 2> /dev/null",
        " >/dev/null",
        "&",
        ">",
        "<",
        "1>&2",
        "//",
        "<<",
        "%s",
        "a-b",
        "_",
        "not",
        "e",
        "==",
        "=~",
        "-eq",
        "!=",
        "<(",
        ">(",
        "``",
        "$(",
        "``",
    ];

    /// Generates near misses: words, each as it might be, and signs between them.
    fn near_plain() -> impl Strategy<Value = String> {
        let word =
            prop::collection::vec(prop::sample::select(PIECES), 1..4).prop_map(|pieces| pieces.concat());
        prop::collection::vec(word, 1..12).prop_map(|words| words.join(" "))
    }

    /// Generates texts that are mostly plain.
    fn mostly_plain() -> impl Strategy<Value = String> {
        let word = prop_oneof![
            "[a-z0-9_./,:+@%=^~*?-]{1,6}",
            "[a-zA-Z0-9_./,:+@%=^~*?$'\"-]{1,8}",
            "'[ -&(-~]{0,8}'",
            "\"[ !#%-\\[\\]-_a-~]{0,8}\"",
            prop::sample::select(PIECES).prop_map(str::to_owned),
            "[0-9]{1,3}",
        ];
        let argument = (prop::sample::select(vec!["", " ", " ", " ", " ", "  "]), word)
            .prop_map(|(a, b)| a.to_owned() + &b);
        let end = prop::sample::select(vec![
            "",
            "",
            " ",
            " 2>&1",
            " 2>/dev/null",
            " > x",
            " >> 'x y'",
            " < x y",
            " >&2",
            " 1>x z",
            " 2 >x",
        ]);
        let program = prop_oneof![
            4 => "[a-z./_][a-z0-9_./-]{0,5}",
            1 => "\"[$][a-zA-Z_][a-z0-9_]{0,2}\"",
            1 => "[$][a-zA-Z_][a-z0-9_]{0,2}",
        ];
        let simple = (program, prop::collection::vec(argument, 0..6), end)
            .prop_map(|(program, words, end)| format!("{program} {}{end}", words.concat()));
        let sign = prop::sample::select(vec![" | ", "|", " && ", "&&", " || ", "||", "; ", ";", " ; "]);
        (simple.clone(), prop::collection::vec((sign, simple), 0..4)).prop_map(|(first, rest)| {
            rest.into_iter().fold(first, |text, (sign, simple)| text + sign + &simple)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1500))]

        #[test]
        fn the_grammar_gives_the_same_result(near in near_plain(), mostly in mostly_plain(), any in "[ -~]{0,24}") {
            is_plain(&near);
            is_plain(&mostly);
            is_plain(&any);
        }
    }
}
