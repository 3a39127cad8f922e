//! The part of the shell's language that is understood exactly.
//!
//! Plain words, `'single'` and `"double"` quotes without anything that expands, joined by `|`, `||`, `&&`
//! and `;`, with output sent to `/dev/null` or errors to the output. These mean the same to every POSIX
//! shell. Everything else (variables, substitutions, globs, redirections, here-documents, comments,
//! backslashes, newlines, unusual characters) is opaque.

use std::fmt;

/// One simple command: a program and its arguments, quotes removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Simple {
    words: Vec<String>,
}

impl Simple {
    /// The first word.
    pub(crate) fn program(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// The words after the first.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> + Clone {
        self.words.iter().skip(1).map(String::as_str)
    }
}

/// Why a command is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opaque {
    /// A character that can mean more than itself.
    Character(char),
    /// A quote that isn't closed.
    Quote,
    /// A list with nothing between two of its signs, or nothing at all.
    Empty,
}

impl fmt::Display for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Character(character) if character.is_control() => {
                write!(f, "it has a control character, {}", character.escape_default())
            }
            Self::Character(character) => write!(f, "`{character}` in it can mean anything"),
            Self::Quote => f.write_str("a quote in it is not closed"),
            Self::Empty => f.write_str("a command in it is empty"),
        }
    }
}

/// Takes a command apart into the simple commands of its list.
pub(crate) fn split(command: &str) -> Result<Vec<Simple>, Opaque> {
    let mut splitter = Splitter { rest: command.trim_matches([' ', '\t', '\n']), ..Splitter::default() };
    while let Some(character) = splitter.take() {
        splitter.step(character)?;
    }
    splitter.end_command()?;
    Ok(splitter.commands)
}

#[derive(Default)]
struct Splitter<'a> {
    rest: &'a str,
    commands: Vec<Simple>,
    words: Vec<String>,
    /// The word under way; `Some("")` after an empty quote.
    word: Option<String>,
    /// Whether the word under way has a quoted part.
    quoted: bool,
}

impl Splitter<'_> {
    fn take(&mut self) -> Option<char> {
        let character = self.rest.chars().next()?;
        self.rest = self.rest.get(character.len_utf8()..).unwrap_or_default();
        Some(character)
    }

    fn skip(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn step(&mut self, character: char) -> Result<(), Opaque> {
        match character {
            ' ' | '\t' => self.end_word(),
            '\'' => self.quote('\'', &[])?,
            '"' => self.quote('"', &['$', '`', '\\', '!'])?,
            '|' => {
                self.skip("|");
                self.end_command()?;
            }
            '&' if self.skip("&") => self.end_command()?,
            ';' => self.end_command()?,
            '>' => self.redirection()?,
            '~' if self.is_inside_name() => self.push('~'),
            plain if is_plain(plain) => self.push(plain),
            other => return Err(Opaque::Character(other)),
        }
        Ok(())
    }

    /// Whether the word under way ends in something that keeps a `~` from meaning a home directory, as in
    /// `HEAD~2`.
    fn is_inside_name(&self) -> bool {
        let last = self.word.as_ref().and_then(|word| word.chars().next_back());
        !self.quoted && last.is_some_and(|last| last.is_ascii_alphanumeric() || last == '^' || last == '~')
    }

    fn push(&mut self, character: char) {
        self.word.get_or_insert_default().push(character);
    }

    /// Reads to the closing quote. What may not occur in between would expand, or hide what a person sees.
    fn quote(&mut self, close: char, special: &[char]) -> Result<(), Opaque> {
        self.word.get_or_insert_default();
        self.quoted = true;
        loop {
            match self.take().ok_or(Opaque::Quote)? {
                end if end == close => return Ok(()),
                bad if bad.is_control() && bad != '\t' => return Err(Opaque::Character(bad)),
                bad if special.contains(&bad) => return Err(Opaque::Character(bad)),
                literal => self.push(literal),
            }
        }
    }

    /// After a `>`: the four spellings that write nowhere.
    fn redirection(&mut self) -> Result<(), Opaque> {
        let opaque = Err(Opaque::Character('>'));
        match self.word.as_deref() {
            None => {}
            Some("1" | "2") if !self.quoted => self.word = None,
            Some(_) => return opaque,
        }
        if !self.skip("&1") && !self.skip("&2") {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            if !self.skip("/dev/null") {
                return opaque;
            }
        }
        match self.rest.chars().next() {
            None | Some(' ' | '\t' | '|' | ';' | '&') => Ok(()),
            Some(_) => opaque,
        }
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
        self.quoted = false;
    }

    fn end_command(&mut self) -> Result<(), Opaque> {
        self.end_word();
        if self.words.is_empty() {
            return Err(Opaque::Empty);
        }
        self.commands.push(Simple { words: std::mem::take(&mut self.words) });
        Ok(())
    }
}

/// Characters that mean themselves in every shell, wherever they stand. Letters of any script do; blanks,
/// marks and look-alikes of punctuation are left out, so that what a person reads is what runs.
fn is_plain(character: char) -> bool {
    match character {
        '_' | '-' | '.' | '/' | ':' | ',' | '=' | '+' | '@' | '%' | '^' => true,
        other => other.is_alphanumeric(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &str) -> Result<Vec<Vec<String>>, Opaque> {
        split(command).map(|commands| commands.into_iter().map(|simple| simple.words).collect())
    }

    #[test]
    fn what_is_understood() {
        let cases: &[(&str, &[&[&str]])] = &[
            ("ls", &[&["ls"]]),
            ("  ls\t-l  src ", &[&["ls", "-l", "src"]]),
            ("ls\n", &[&["ls"]]),
            ("grep 'a|b $x `y` * \\' \"(c) {d} 'e'\"", &[&["grep", "a|b $x `y` * \\", "(c) {d} 'e'"]]),
            ("a'b'\"c\"d ''", &[&["abcd", ""]]),
            ("a|b||c&&d;e", &[&["a"], &["b"], &["c"], &["d"], &["e"]]),
            ("a 2>/dev/null", &[&["a"]]),
            ("a > /dev/null 2>&1 b", &[&["a", "b"]]),
            ("a 1>/dev/null|b 2>&1", &[&["a"], &["b"]]),
            ("git diff HEAD~2 x^~3", &[&["git", "diff", "HEAD~2", "x^~3"]]),
            ("cat grüße.md", &[&["cat", "grüße.md"]]),
        ];
        for (command, expected) in cases {
            let expected: Vec<Vec<String>> =
                expected.iter().map(|words| words.iter().map(|word| (*word).to_owned()).collect()).collect();
            assert_eq!(words(command).unwrap(), expected, "{command}");
        }
    }

    #[test]
    fn what_is_opaque() {
        let commands = [
            "",
            " ",
            "a;;b",
            "a|",
            "|a",
            "a&&",
            "a||",
            "a;",
            "a & b",
            "a|&b",
            "a&",
            "echo $x",
            "echo \"$x\"",
            "echo `x`",
            "echo \"`x`\"",
            "echo \"\\a\"",
            "echo \\a",
            "echo 'a",
            "echo \"a",
            "a > b",
            "a 2>b",
            "a >/dev/nullx",
            "a >/dev/null/x",
            "a >/dev/null>b",
            "a x>/dev/null",
            "a '2'>/dev/null",
            "a 3>/dev/null",
            "a >>/dev/null",
            "a >&3",
            "a >& b",
            "a &>/dev/null",
            "a < b",
            "a <<x",
            "(a)",
            "{ a; }",
            "a *",
            "a ?",
            "a [b]",
            "a {b,c}",
            "~/a",
            "a ~",
            "a b=~/x",
            "a :~",
            "a !b",
            "\"a!\"",
            "a #b",
            "#a",
            "a\nb",
            "a\rb",
            "'a\nb'",
            "'a\u{1b}[2K'",
            "a\0b",
            "a\u{a0}b",
            "a\u{2028}b",
            "a\u{ff1b}b",
            "a\u{200b}b",
            "a\u{202e}b",
            "a\u{37e}b",
            "$'a'",
            "a2>&1x",
            "a ''~",
        ];
        for command in commands {
            assert!(words(command).is_err(), "{command:?} is {:?}", words(command));
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig {
            cases: 1024, failure_persistence: None, ..proptest::prelude::ProptestConfig::default()
        })]

        /// What is understood is understood as the shell understands it.
        #[test]
        fn the_words_are_those_of_the_shell(
            text in "([a-c0-2]{1,2}|[ \t]|'[^']{0,4}'|\"[^\"]{0,4}\"|[-'\"~^=:,./@%+_é\u{a0}$\\\\*#!{}]){0,9}"
        ) {
            let command = format!("printf <%s> {text}");
            if text.contains(['|', ';', '&', '>', '<']) {
                return Ok(());
            }
            // The format is quoted for the shell only: `<` is no word of ours.
            let Ok(parts) = words(&command.replace("<%s>", "F")) else { return Ok(()) };
            let mut expected = parts.into_iter().flatten().skip(2).map(|word| format!("<{word}>")).collect::<String>();
            if expected.is_empty() {
                expected.push_str("<>");
            }
            let shell = std::process::Command::new("sh")
                .args(["-c", &command.replace("<%s>", "'<%s>'")])
                .env("HOME", "/home/of/somebody")
                .output()
                .unwrap();
            proptest::prop_assert_eq!(String::from_utf8_lossy(&shell.stdout), expected, "{}", text);
        }
    }
}
