//! The files that a program writes, as far as its words name them.
//!
//! Rules about what is written match these words, so that reading a protected file stays allowed.
//! If the options of a program are not known, all its operands count: a call that is asked about
//! without need is better than a write that no rule sees. Programs that are not in a table, and
//! what scripts and builds do, are not looked into.

use journeyman_syntax::shell::Word;

use super::edit_table::FILE_CHANGERS;
use super::options::{has_option, has_short_option, operands_if_known};
use super::part::WrittenPath;
use super::sed;

/// Maximum number of words that are kept of inline code.
const MAX_CODE_WORDS: usize = 256;

/// The operands that a program writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WrittenOperands {
    /// All of them, which are files, or directories by themselves.
    Every,
    /// All of them, with everything beneath a directory.
    EveryTree,
    /// All but the first, with everything beneath a directory.
    TreesAfterFirst,
    /// The last one, which may be the directory to write to.
    Last,
}

/// Sorted by name.
const WRITERS: &[(&str, WrittenOperands)] = &[
    ("autopep8", WrittenOperands::Every),
    ("black", WrittenOperands::Every),
    ("chgrp", WrittenOperands::TreesAfterFirst),
    ("chmod", WrittenOperands::TreesAfterFirst),
    ("chown", WrittenOperands::TreesAfterFirst),
    ("clang-format", WrittenOperands::Every),
    ("cp", WrittenOperands::Last),
    ("dos2unix", WrittenOperands::Every),
    ("ed", WrittenOperands::Every),
    ("ex", WrittenOperands::Every),
    ("gofmt", WrittenOperands::Every),
    ("install", WrittenOperands::Last),
    ("isort", WrittenOperands::Every),
    ("ln", WrittenOperands::Last),
    ("mkdir", WrittenOperands::Every),
    ("mv", WrittenOperands::EveryTree),
    ("patch", WrittenOperands::Every),
    ("prettier", WrittenOperands::Every),
    ("rm", WrittenOperands::EveryTree),
    ("rmdir", WrittenOperands::EveryTree),
    ("rsync", WrittenOperands::Last),
    ("rustfmt", WrittenOperands::Every),
    ("scp", WrittenOperands::Last),
    ("shfmt", WrittenOperands::Every),
    ("shred", WrittenOperands::Every),
    ("split", WrittenOperands::Every),
    ("tee", WrittenOperands::Every),
    ("touch", WrittenOperands::Every),
    ("truncate", WrittenOperands::Every),
    ("uniq", WrittenOperands::Last),
    ("unix2dos", WrittenOperands::Every),
    ("unlink", WrittenOperands::Every),
    ("yapf", WrittenOperands::Every),
];

/// Formatters that print what they make of a file, unless this option has them write it.
const IN_PLACE_OPTIONS: &[(&str, char, &str)] = &[
    ("autopep8", 'i', "--in-place"),
    ("clang-format", 'i', "--in-place"),
    ("gofmt", 'w', "--write"),
    ("prettier", 'w', "--write"),
    ("sed", 'i', "--in-place"),
    ("shfmt", 'w', "--write"),
    ("yapf", 'i', "--in-place"),
];

/// Options whose value a program writes: its names, the short option, the long one.
const OUTPUT_OPTIONS: &[(&[&str], char, &str)] = &[
    (&["cp", "install", "ln", "mv"], 't', "--target-directory"),
    (&["curl", "sort", "patch", "tree", "xmllint", "jq", "protoc"], 'o', "--output"),
    (&["cc", "gcc", "g++", "c++", "clang", "clang++", "ld", "as", "rustc", "go", "javac"], 'o', "--output"),
    (&["pandoc", "dot", "esbuild", "xxd", "bison", "flex"], 'o', "--output"),
    (&["curl"], 'O', "--output-dir"),
    (&["wget"], 'O', "--output-document"),
    (&["wget"], 'P', "--directory-prefix"),
    (&["unzip"], 'd', "--directory"),
    (&["patch"], 'd', "--directory"),
    (&["tar", "bsdtar"], 'C', "--directory"),
];

/// Programs that run code that stands in their words, with the options before it. Those without
/// options always do.
const INTERPRETERS: &[(&str, &[&str])] = &[
    ("awk", &[]),
    ("gawk", &[]),
    ("mawk", &[]),
    ("python", &["-c"]),
    ("pypy", &["-c"]),
    ("node", &["-e", "-p", "--eval", "--print"]),
    ("bun", &["-e", "--eval", "-p"]),
    ("deno", &["eval"]),
    ("ruby", &["-e", "-i"]),
    ("perl", &["-e", "-E", "-i", "-p", "-n"]),
    ("php", &["-r"]),
    ("lua", &["-e"]),
    ("Rscript", &["-e"]),
    ("osascript", &["-e"]),
    ("tclsh", &[]),
];

/// Returns the paths that a program writes, creates, moves or removes, as its words name them.
pub(super) fn written_paths(words: &[Word]) -> Vec<WrittenPath> {
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    let name = program_name(&program.text);
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let mut written: Vec<WrittenPath> = output_options(name, arguments);
    let prints = IN_PLACE_OPTIONS
        .iter()
        .any(|(formatter, short, long)| *formatter == name && !has_option(&texts, *short, long));
    match name {
        _ if prints => {}
        "sed" => written.extend(sed_files(arguments, &texts)),
        "git" => written.extend(git_files(arguments)),
        "dd" => written.extend(arguments.iter().filter_map(|word| value_of(word, "of="))),
        "black" | "isort" | "rustfmt" if texts.iter().any(|text| is_dry_run(text)) => {}
        "eslint" | "ruff" | "stylelint" | "biome" if texts.iter().any(|text| is_fixing(text)) => {
            written.extend(operands(arguments).map(|word| path_of(word, false)));
        }
        "find" => {
            let starts = arguments.iter().take_while(|word| !word.text.starts_with(['-', '(', '!']));
            written.extend(starts.map(|word| path_of(word, true)));
        }
        // `-t` names the directory, and the operands are sources.
        "cp" | "install" | "ln" if !written.is_empty() => {}
        _ => {
            if let Ok(found) = WRITERS.binary_search_by_key(&name, |(writer, _)| writer)
                && let Some((_, which)) = WRITERS.get(found)
            {
                written.extend(operands_written(name, *which, arguments, &texts));
            }
        }
    }
    // `.` as a directory that is written to says nothing of what is in it.
    written.retain(|path| path.tree || !matches!(path.text.as_str(), "." | "./" | "-"));
    written
}

/// Returns the words of code that stands in a program's arguments.
pub(super) fn code_words(words: &[Word]) -> Vec<String> {
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    let given = |option: &&str| {
        arguments.iter().any(|word| match option.strip_prefix('-').filter(|rest| !rest.starts_with('-')) {
            Some(letter) if letter.len() == 1 => {
                has_short_option(&[word.text.as_str()], letter.chars().next().unwrap_or_default())
            }
            _ => word.text.split('=').next() == Some(option),
        })
    };
    let runs_code = interpreter_options(&program.text)
        .is_some_and(|options| options.is_empty() || options.iter().any(given));
    let texts = arguments.iter().map(|word| word.text.as_str()).filter(|_| runs_code);
    split_code(texts).collect()
}

/// Returns the words of a program's input that it runs as code, such as of a here-document.
pub(super) fn input_code_words(program: &str, input: &str) -> Vec<String> {
    match interpreter_options(program) {
        Some(_) => split_code(std::iter::once(input)).collect(),
        None => Vec::new(),
    }
}

/// Returns the options before inline code if the program is an interpreter, in any version:
/// `python3.12` is `python`.
fn interpreter_options(program: &str) -> Option<&'static [&'static str]> {
    let plain = program_name(program).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.iter().find(|(known, _)| *known == plain).map(|(_, options)| *options)
}

/// Returns the name of a program, which is the same under every path.
fn program_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn split_code<'a>(texts: impl Iterator<Item = &'a str>) -> impl Iterator<Item = String> {
    let between = |c: char| !c.is_alphanumeric() && !"_-./+@~%*?".contains(c);
    texts
        .flat_map(move |text| text.split(between))
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .take(MAX_CODE_WORDS)
        .map(str::to_owned)
}

fn path_of(word: &Word, tree: bool) -> WrittenPath {
    WrittenPath { text: word.text.clone(), known: word.known, tree }
}

/// Returns the value of a word that begins with `prefix`.
fn value_of(word: &Word, prefix: &str) -> Option<WrittenPath> {
    let value = word.text.strip_prefix(prefix).filter(|value| !value.is_empty())?;
    Some(WrittenPath { text: value.to_owned(), known: word.known, tree: false })
}

/// Returns the words that are no options; after `--`, all of them.
fn operands(arguments: &[Word]) -> impl Iterator<Item = &Word> {
    let end = arguments.iter().position(|word| word.text == "--").unwrap_or(arguments.len());
    let (before, after) = arguments.split_at_checked(end).unwrap_or((arguments, &[]));
    before.iter().filter(|word| !word.text.starts_with('-') || word.text == "-").chain(after.iter().skip(1))
}

fn operands_written(
    name: &str,
    which: WrittenOperands,
    arguments: &[Word],
    texts: &[&str],
) -> Vec<WrittenPath> {
    let operands: Vec<&Word> = operands(arguments).collect();
    let tree = matches!(which, WrittenOperands::EveryTree | WrittenOperands::TreesAfterFirst);
    let mut written: Vec<WrittenPath> = match which {
        WrittenOperands::Every | WrittenOperands::EveryTree => {
            operands.iter().map(|word| path_of(word, tree)).collect()
        }
        WrittenOperands::TreesAfterFirst => operands.iter().skip(1).map(|word| path_of(word, tree)).collect(),
        WrittenOperands::Last => {
            let known = FILE_CHANGERS.iter().find(|changer| changer.name == name).is_none_or(|changer| {
                operands_if_known(texts, changer.flags, changer.valued, &[changer.long]).is_some()
            });
            // The value of an unknown option may stand last.
            let skipped = if known { operands.len().saturating_sub(1) } else { 0 };
            operands.iter().skip(skipped).map(|word| path_of(word, false)).collect()
        }
    };
    if matches!(name, "cp" | "mv" | "ln" | "install")
        && let Some((target, sources)) = operands.split_last()
        && (sources.len() > 1 || target.text.ends_with('/') || matches!(target.text.as_str(), "." | ".."))
    {
        written.extend(sources.iter().map(|source| WrittenPath {
            text: format!(
                "{}/{}",
                target.text.trim_end_matches('/'),
                source.text.rsplit('/').next().unwrap_or_default()
            ),
            known: target.known && source.known,
            tree: false,
        }));
    }
    written
}

/// Returns the values of the options by which a program is told where to write.
fn output_options(name: &str, arguments: &[Word]) -> Vec<WrittenPath> {
    let mut written = Vec::new();
    for (_, short, long) in OUTPUT_OPTIONS.iter().filter(|(names, ..)| names.contains(&name)) {
        let separate = |text: &str| {
            text == *long
                || !text.starts_with("--") && text.strip_prefix('-').is_some_and(|it| it.ends_with(*short))
        };
        for (place, word) in arguments.iter().enumerate() {
            if separate(&word.text) {
                written.extend(arguments.get(place + 1).map(|value| path_of(value, false)));
            } else {
                written.extend(value_of(word, &format!("-{short}")).filter(|_| !word.text.starts_with("--")));
                written.extend(value_of(word, &format!("{long}=")));
            }
        }
    }
    written
}

/// Returns the files of `sed -i`.
fn sed_files(arguments: &[Word], texts: &[&str]) -> Vec<WrittenPath> {
    let rest: Vec<&str> = texts
        .iter()
        .copied()
        .filter(|text| !text.starts_with("-i") && !text.starts_with("--in-place") && !text.starts_with("-Ei"))
        .collect();
    let files = sed::input_files(&rest);
    let is_file = |word: &Word| files.as_ref().is_none_or(|files| files.contains(&word.text.as_str()));
    operands(arguments).filter(|word| is_file(word)).map(|word| path_of(word, false)).collect()
}

/// Returns the files that `git` changes in the work tree and its words name.
fn git_files(arguments: &[Word]) -> Vec<WrittenPath> {
    let mut directory: Option<&Word> = None;
    let mut rest = arguments.iter().enumerate();
    let command = loop {
        match rest.next() {
            Some((_, word)) if word.text == "-C" => directory = rest.next().map(|(_, value)| value),
            Some((_, word)) if matches!(word.text.as_str(), "-c" | "--git-dir" | "--work-tree") => {
                rest.next();
            }
            Some((_, word)) if word.text.starts_with('-') => {}
            Some(found) => break found,
            None => return Vec::new(),
        }
    };
    let (place, word) = command;
    let arguments = arguments.get(place + 1..).unwrap_or_default();
    let has = |names: &[&str]| arguments.iter().any(|word| names.contains(&word.text.as_str()));
    let only_index = match word.text.as_str() {
        "rm" => has(&["--cached"]),
        "restore" => has(&["--staged", "-S"]) && !has(&["--worktree", "-W"]),
        "mv" | "checkout" | "clean" => false,
        "clone" => {
            return operands(arguments).skip(1).map(|word| path_of(word, false)).collect();
        }
        _ => return Vec::new(),
    };
    if only_index || has(&["--dry-run", "-n"]) {
        return Vec::new();
    }
    let beneath = |word: &Word| match directory {
        Some(directory) => WrittenPath {
            text: format!("{}/{}", directory.text, word.text),
            known: directory.known && word.known,
            tree: true,
        },
        None => path_of(word, true),
    };
    // What `git checkout .` brings back is the repository's.
    operands(arguments).filter(|word| word.text != ".").map(beneath).collect()
}

/// Returns true if an option makes a formatter tell what it would change.
fn is_dry_run(option: &str) -> bool {
    matches!(option, "--check" | "--check-only" | "--diff" | "-c")
}

/// Returns true if an option or subcommand makes a linter rewrite files.
fn is_fixing(option: &str) -> bool {
    matches!(option, "--fix" | "--fix-only" | "--write" | "--apply" | "format")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::analyse_command;

    /// Returns the written paths of a command's parts, with `/**` after a tree and `?` after one
    /// that is not known.
    fn written(command: &str) -> Vec<String> {
        let parts = analyse_command(command, &[]).parts;
        let show = |path: &WrittenPath| {
            let tree = if path.tree { "/**" } else { "" };
            let unknown = if path.known { "" } else { "?" };
            format!("{}{tree}{unknown}", path.text)
        };
        parts.iter().flat_map(|part| part.written.iter().map(show)).collect()
    }

    #[test]
    fn the_words_that_a_program_writes_are_found() {
        let cases: &[(&str, &[&str])] = &[
            ("cat vendor/a", &[]),
            ("cp vendor/a b", &["b"]),
            ("cp -r vendor/a vendor/b lib", &["lib", "lib/a", "lib/b"]),
            ("cp vendor/a .", &["a"]),
            ("cp --suffix .old a vendor/b", &[".old", "a", "vendor/b", "vendor/b/.old", "vendor/b/a"]),
            ("cp -t vendor a", &["vendor"]),
            ("mv a b", &["a/**", "b/**"]),
            ("rm -rf vendor", &["vendor/**"]),
            ("rm -- -x", &["-x/**"]),
            ("chmod 600 a b", &["a/**", "b/**"]),
            ("sed -n 1p a", &[]),
            ("sed -i s/a/b/ a b", &["a", "b"]),
            ("sed -i.bak -e s/a/b/ a", &["a"]),
            ("sed -E -i 's/x/y/w out' a", &["s/x/y/w out", "a"]),
            ("echo x > vendor/a", &["vendor/a"]),
            ("cd vendor && echo x >> a", &["vendor/a"]),
            ("cd vendor && rm a ../b", &["vendor/a/**", "b/**"]),
            ("cd \"$D\" && rm a", &["a/**?"]),
            ("tee -a vendor/log", &["vendor/log"]),
            ("sort -o vendor/a b", &["vendor/a"]),
            ("dd if=a of=vendor/b", &["vendor/b"]),
            ("curl -sSfo vendor/x https://example.com", &["vendor/x"]),
            ("tar -xzf a.tgz -C vendor", &["vendor"]),
            ("git checkout -- vendor/a", &["vendor/a/**"]),
            ("git -C vendor rm a", &["vendor/a/**"]),
            ("git restore --staged vendor/a", &[]),
            ("git rm --cached vendor/a", &[]),
            ("git diff vendor", &[]),
            ("prettier --check vendor", &[]),
            ("gofmt -l vendor", &[]),
            ("gofmt -w vendor", &["vendor"]),
            ("black --check vendor", &[]),
            ("prettier --write vendor", &["vendor"]),
            ("black .", &[]),
            ("ruff check --fix vendor", &["check", "vendor"]),
            ("find vendor -name x", &[]),
            ("find vendor -name x -delete", &["vendor/**"]),
            ("env A=1 rm vendor/a", &["vendor/a/**"]),
            ("sh -c 'rm vendor/a'", &["vendor/a/**"]),
            ("rm vendor/*", &["vendor/*/**?"]),
        ];
        for (command, expected) in cases {
            assert_eq!(written(command), *expected, "{command}");
        }
    }

    #[test]
    fn words_of_inline_code_are_found() {
        let cases = [
            ("python3 -c 'open(\"vendor/a\", \"w\")'", true),
            ("perl -pi -e 's/a/b/' vendor/a", true),
            ("node -e 'fs.rmSync(\"vendor/a\")'", true),
            ("python3 - <<'E'\nopen('vendor/a', 'w')\nE", true),
            ("python3 <<E\nopen('vendor/a', 'w')\nE", true),
            ("awk '{ print > \"vendor/a\" }' b", true),
            ("python3 fix.py vendor/a", false),
            ("protoc --proto_path=vendor/a x", false),
        ];
        for (command, named) in cases {
            let parts = analyse_command(command, &[]).parts;
            let found = parts.iter().any(|part| part.code_words.iter().any(|word| word == "vendor/a"));
            assert_eq!(found, named, "{command}: {parts:?}");
        }
    }
}
