//! Code that stands in a command for an interpreter, such as that of `python -c`.

use journeyman_syntax::shell::Word;

use super::options::{likely_operands, program_name};

/// Maximum number of words that are kept of inline code.
const MAX_CODE_WORDS: usize = 256;

/// Interpreters, with the options before code. Of `awk`, the first operand is the code.
const INTERPRETERS: &[(&str, &[&str])] = &[
    ("awk", &[]),
    ("bun", &["-e", "--eval", "-p"]),
    ("deno", &["eval"]),
    ("gawk", &[]),
    ("lua", &["-e"]),
    ("mawk", &[]),
    ("node", &["-e", "-p", "--eval", "--print"]),
    ("osascript", &["-e"]),
    ("perl", &["-e", "-E"]),
    ("php", &["-r"]),
    ("pypy", &["-c"]),
    ("python", &["-c"]),
    ("Rscript", &["-e"]),
    ("ruby", &["-e"]),
    ("ts-node", &["-e", "--eval"]),
    ("tsx", &["-e", "--eval"]),
];

/// Parts of the words by which code writes, moves and removes files, or runs what does.
const WRITING_WORDS: &[&str] = &[
    "write",
    "Write",
    "put_contents",
    "os.replace",
    "cpSync",
    "'w",
    "\"w",
    "'a'",
    "\"a\"",
    "'x'",
    "\"x\"",
    "unlink",
    "remove",
    "rename",
    "rmtree",
    "rmdir",
    "mkdir",
    "copy",
    "move",
    "save",
    "dump",
    "truncate",
    "touch",
    "rmSync",
    "rm(",
    "append",
    "chmod",
    "symlink",
    "link(",
    "system",
    "exec",
    "spawn",
    "popen",
    "subprocess",
];

/// The words of inline code.
#[derive(Debug, Default)]
pub(super) struct InlineCode {
    pub(super) words: Vec<String>,
    /// True if the code may write files.
    pub(super) writes: bool,
}

impl InlineCode {
    pub(super) fn extend(&mut self, other: Self) {
        self.words.extend(other.words);
        self.writes |= other.writes;
    }
}

/// Returns the code in a program's arguments.
pub(super) fn argument_code(words: &[Word]) -> InlineCode {
    let Some((program, arguments)) = words.split_first() else { return InlineCode::default() };
    let Some((name, options)) = interpreter(&program.text) else { return InlineCode::default() };
    let mut code: Vec<&str> = Vec::new();
    if options.is_empty() {
        code.extend(likely_operands(arguments, "Fv").first().map(|word| word.text.as_str()));
    }
    for (place, word) in arguments.iter().enumerate() {
        let next = || arguments.get(place + 1).map(|next| next.text.as_str());
        for option in options {
            match option.strip_prefix('-').filter(|letter| letter.len() == 1) {
                Some(letter) => code.extend(short_option_value(&word.text, letter, next)),
                None if word.text == *option => code.extend(next()),
                None => code.extend(word.text.strip_prefix(option).and_then(|rest| rest.strip_prefix('='))),
            }
        }
    }
    split_code(name, &code.join("\n"))
}

/// Returns the code that an interpreter reads from its input, with its arguments.
pub(super) fn input_code(words: &[Word], input: &str) -> InlineCode {
    let Some((program, arguments)) = words.split_first() else { return InlineCode::default() };
    let Some((name, options)) = interpreter(&program.text) else { return InlineCode::default() };
    // The input of `awk`, and of code in an argument, is data.
    if options.is_empty() || arguments.iter().any(|word| options.contains(&word.text.as_str())) {
        return InlineCode::default();
    }
    let mut found = split_code(name, input);
    if !found.words.is_empty() {
        found.words.extend(arguments.iter().map(|word| word.text.clone()));
    }
    found
}

/// Returns true if a word is the name of an interpreter.
pub(super) fn is_interpreter(word: &str) -> bool {
    interpreter(word).is_some()
}

/// Returns an interpreter with its options, in any version: `python3.12` is `python`.
fn interpreter(program: &str) -> Option<(&'static str, &'static [&'static str])> {
    let plain = program_name(program).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.iter().find(|(known, _)| *known == plain).copied()
}

/// Returns the value of a short option, which may end a cluster.
fn short_option_value<'a>(
    word: &'a str,
    letter: &str,
    next: impl FnOnce() -> Option<&'a str>,
) -> Option<&'a str> {
    let cluster = word.strip_prefix('-').filter(|cluster| !cluster.starts_with('-'))?;
    // A longer rest is the value of another option.
    let (before, value) = cluster.split_once(letter)?;
    if before.len() > 3 || !before.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    if value.is_empty() { next() } else { Some(value) }
}

fn split_code(name: &str, code: &str) -> InlineCode {
    let redirects = matches!(name, "awk" | "gawk" | "mawk" | "perl") && code.contains(['>', '|']);
    let writes = redirects || WRITING_WORDS.iter().any(|word| code.contains(word));
    let between = |c: char| !c.is_alphanumeric() && !"_-./+@~%*?".contains(c);
    let words = code.split(between).filter(|word| word.chars().any(char::is_alphanumeric));
    InlineCode { words: words.take(MAX_CODE_WORDS).map(str::to_owned).collect(), writes }
}

#[cfg(test)]
mod tests {
    use crate::command::{CommandPart, analyse_command};

    #[test]
    fn words_of_inline_code_that_may_write_are_found() {
        let cases = [
            ("python3 -c 'open(\"vendor/a\", \"w\")'", true),
            ("python3 -c 'print(open(\"vendor/a\").read())'", false),
            ("node -e 'fs.rmSync(\"vendor/a\")'", true),
            ("php -r 'file_put_contents(\"vendor/a\", \"\");'", true),
            ("node -e 'fs.createWriteStream(\"vendor/a\")'", true),
            ("node -e 'fs.cpSync(\"b\", \"vendor/a\")'", true),
            ("python3 -c 'os.replace(\"b\", \"vendor/a\")'", true),
            ("npx tsx -e 'fs.writeFileSync(\"vendor/a\")'", true),
            ("python3 - <<'E'\nopen('vendor/a', 'w')\nE", true),
            ("python3 <<E\nopen('vendor/a', 'w')\nE", true),
            ("python3 - vendor/a <<'E'\nopen(sys.argv[1], 'w')\nE", true),
            ("awk '{ print > \"vendor/a\" }' b", true),
            ("awk '{ print $1 }' vendor/a > b", false),
            ("perl -ne 'print if /x/' vendor/a > b", false),
            ("perl -ne 'print if m(vendor/a)' b > c", false),
            ("perl -lane 'unlink \"vendor/a\"' b", true),
            ("python3 fix.py vendor/a", false),
        ];
        for (command, named) in cases {
            let parts = analyse_command(command, &[]).parts;
            let names = |part: &CommandPart| part.code_words.iter().any(|word| word == "vendor/a");
            let found = parts.iter().any(|part| part.code_writes && names(part));
            assert_eq!(found, named, "{command}: {parts:?}");
        }
    }
}
