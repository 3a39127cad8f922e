//! Programs that are known to read, option by option.
//!
//! A program is listed with the options that it may have: an option that is not listed, including
//! an abbreviated long option, makes the command unknown. Options that write a file (`sort -o`,
//! `uniq IN OUT`, `tree -o`, `xxd IN OUT`, `file -C`), run a program (`rg --pre`, `rg -z`, `find
//! -exec`, `sort --compress-program`, `diff -l`, `fd -x`, `fd -l`), never end (`tail -f`), or set
//! something (`date -s`, `hostname NAME`) are omitted on purpose.

use std::borrow::Cow;

use journeyman_syntax::shell::Word;

use super::options::{UNKNOWN_REST, UNKNOWN_WORD, operands_if_known, parse_operands};
use super::part::shorten_command;
use super::reader_table::{NO_ARGUMENTS, READER_PROGRAMS, Reader, ReaderOperands};
use super::unwrap_find::{VALUED_TESTS, is_time_comparison};
use super::variables::is_harmless_variable;
use super::{awk, conditions, git_readers, sed};

/// Programs whose `--version`, alone, neither reads nor runs a file of the project. Not `cargo`,
/// `go`, `yarn` and others that look up in the project which version of themselves to run.
const VERSION_PROGRAMS: &[&str] = &[
    "aws", "bash", "cc", "clang", "clang++", "cmake", "curl", "docker", "g++", "gcc", "gh", "git", "java",
    "javac", "lua", "make", "ninja", "node", "npm", "perl", "php", "podman", "python", "python3", "ruby",
    "ssh", "wget", "zsh",
];
/// Other arguments by which some of them, alone, print only that.
const VERSION_WORDS: &[(&str, &[&str])] = &[
    ("cc", &["-dumpversion", "-dumpmachine"]),
    ("clang", &["-dumpversion", "-dumpmachine"]),
    ("curl", &["-V"]),
    ("docker", &["-v"]),
    ("g++", &["-dumpversion", "-dumpmachine"]),
    ("gcc", &["-dumpversion", "-dumpmachine", "-v"]),
    ("git", &["-v"]),
    ("java", &["-version"]),
    ("javac", &["-version"]),
    ("jq", &["-V", "-h"]),
    ("lua", &["-v"]),
    ("make", &["-v"]),
    ("node", &["-v", "--help", "-h"]),
    ("npm", &["-v"]),
    ("perl", &["-v"]),
    ("php", &["-v"]),
    ("podman", &["-v"]),
    ("python", &["-V", "--help", "-h"]),
    ("python3", &["-V", "--help", "-h"]),
    ("rg", &["-V", "-h"]),
    ("fd", &["-V", "-h"]),
    ("ruby", &["-v"]),
    ("ssh", &["-V"]),
    ("wget", &["-V"]),
];

/// The directories of the system's programs.
const SYSTEM_PROGRAM_DIRECTORIES: [&str; 2] = ["/usr/bin/", "/bin/"];

/// Programs of the table that only read whatever their options, so that any argument is accepted.
const ALWAYS_READING: &[&str] = &[
    "b2sum",
    "basename",
    "cat",
    "cd",
    "cksum",
    "cmp",
    "comm",
    "cut",
    "df",
    "dirname",
    "du",
    "egrep",
    "expand",
    "false",
    "fgrep",
    "fold",
    "grep",
    "head",
    "id",
    "jq",
    "ls",
    "md5sum",
    "nl",
    "nproc",
    "od",
    "paste",
    "printenv",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "seq",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "stat",
    "tac",
    "tr",
    "true",
    "uname",
    "unexpand",
    "wc",
    "which",
];

/// Programs with a function of their own.
const SPECIAL_READERS: &[&str] = &[
    "alias", "awk", "bash", "break", "bzcat", "command", "continue", "dash", "env", "exit", "export", "expr",
    "find", "git", "gunzip", "gzip", "ip", "read", "return", "sed", "set", "sh", "sleep", "tar", "tee",
    "type", "ulimit", "umask", "unzip", "wait", "xzcat", "zcat", "zstdcat",
];

/// Returns the program without its directory if that is one of the system's; other programs keep
/// their path.
pub(super) fn base_name(path: &str) -> &str {
    SYSTEM_PROGRAM_DIRECTORIES.iter().find_map(|directory| path.strip_prefix(directory)).unwrap_or(path)
}

/// Checks that a program with its arguments only reads; the error is the reason why it does not.
///
/// After the command changed the directory, git is not trusted: the settings of a repository
/// planted there could name programs to run.
pub(super) fn only_reads(words: &[Word], changed_directory: bool) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    if !program.known || program.dialect {
        return Err("which program it runs isn't known before it runs".to_owned());
    }
    let program = base_name(&program.text);
    let refused = || Err(format!("not every argument of `{program}` is known to read"));
    match program {
        "echo" | ":" => return Ok(()),
        "test" | "[" | "[[" => {
            return if conditions::is_harmless_condition(program, arguments) { Ok(()) } else { refused() };
        }
        "printf" => return if is_harmless_printf(arguments) { Ok(()) } else { refused() },
        _ => {}
    }
    let reader = READER_PROGRAMS.iter().find(|reader| reader.name == program);
    if reader.is_none() && !SPECIAL_READERS.contains(&program) && !VERSION_PROGRAMS.contains(&program) {
        return Err(format!("`{}` is not among the programs known to read", shorten_command(program)));
    }
    let Some(arguments) = arguments_with_placeholders(arguments, ALWAYS_READING.contains(&program)) else {
        return refused();
    };
    let arguments: Vec<&str> = arguments.iter().map(|argument| &**argument).collect();
    if let [only] = arguments.as_slice()
        && only_prints_version_or_help(program, only, reader.is_some())
    {
        return Ok(());
    }
    let accepted = match program {
        "git" if changed_directory => return Err("`git` after `cd` may meet another repository".to_owned()),
        "git" => git_readers::only_reads(&arguments),
        "find" => only_finds(&arguments),
        "sed" => sed::only_prints(&arguments),
        "awk" => awk::only_prints(&arguments) && !words.iter().any(awk::may_be_connection),
        "command" => matches!(arguments.as_slice(), ["-v" | "-V", names @ ..] if only_describes(names)),
        "type" => match arguments.as_slice() {
            ["-a" | "-t" | "-p", names @ ..] | names => only_describes(names),
        },
        "alias" => arguments.is_empty(),
        "ip" => shows_network(&arguments),
        "bash" | "dash" | "sh" => is_syntax_check(words),
        "tar" => lists_archive(&arguments),
        "unzip" => {
            matches!(arguments.as_slice(), ["-l" | "-v" | "-lv" | "-Z1" | "-lq", names @ ..] if are_plain_names(names))
        }
        "gunzip" | "gzip" | "zcat" | "xzcat" | "bzcat" | "zstdcat" => decompresses(program, &arguments),
        "lsof" => {
            // `-i @name` looks up the name; without `-n` it looks up that of every address.
            let named = |argument: &&str| argument.contains('@') || argument.contains(UNKNOWN_REST);
            has_flag(&arguments, 'n', "iupdcgs")
                && !arguments.iter().any(named)
                && reader.is_some_and(|reader| accepts_arguments(reader, &arguments))
        }
        "netstat" => {
            has_flag(&arguments, 'n', "")
                && reader.is_some_and(|reader| accepts_arguments(reader, &arguments))
        }
        "tree" | "xxd" | "yq" => {
            has_unambiguous_clusters(program, &arguments)
                && reader.is_some_and(|reader| accepts_arguments(reader, &arguments))
        }
        "jq" => accepts_arguments(reader.unwrap_or(&NO_ARGUMENTS), &strip_jq_variables(&arguments)),
        "expr" => !arguments.iter().any(|argument| argument.starts_with("--")),
        "read" => is_harmless_read(&arguments),
        "tee" => arguments.iter().all(|argument| {
            matches!(*argument, "-a" | "-i" | "-p" | "/dev/null" | "/dev/stdout" | "/dev/stderr")
        }),
        _ => match reader {
            Some(reader) => accepts_arguments(reader, &arguments),
            None if SPECIAL_READERS.contains(&program) => is_harmless_builtin(program, &arguments),
            None => {
                return Err(format!(
                    "`{}` is not among the programs known to read",
                    shorten_command(program)
                ));
            }
        },
    };
    if accepted { Ok(()) } else { refused() }
}

/// Returns true for shell builtins that change nothing but the shell's control flow.
fn is_harmless_builtin(program: &str, arguments: &[&str]) -> bool {
    match program {
        "wait" => arguments.iter().all(|argument| argument.bytes().all(|byte| byte.is_ascii_digit())),
        "exit" | "break" | "continue" | "return" => {
            arguments.iter().all(|argument| argument.bytes().all(|byte| byte.is_ascii_digit()))
        }
        "sleep" => arguments
            .iter()
            .all(|argument| argument.bytes().all(|b| b.is_ascii_digit() || b".smhd".contains(&b))),
        "set" => arguments.iter().all(|argument| {
            *argument == "pipefail"
                || argument.strip_prefix(['-', '+']).is_some_and(|cluster| {
                    !cluster.is_empty() && cluster.bytes().all(|option| b"euofn".contains(&option))
                })
        }),
        "export" => {
            !arguments.is_empty()
                && arguments.iter().all(|argument| {
                    argument.split_once('=').is_some_and(|(name, _)| is_harmless_variable(name))
                })
        }
        "ulimit" => matches!(arguments, [] | ["-a" | "-n" | "-s" | "-c" | "-u" | "-v"]),
        "umask" => matches!(arguments, [] | ["-S"]),
        _ => false,
    }
}

/// Checks that a wrapper with its own arguments, without the program that it runs, only reads.
pub(super) fn check_wrapper_reads(program: &str, words: &[Word]) -> Result<(), String> {
    if program != "find" {
        return Ok(());
    }
    let actions = super::unwrap_find::split_actions(words);
    if !actions.clear {
        return Err("where an `-exec` of it ends isn't clear".to_owned());
    }
    only_reads(&actions.outside, false)
}

/// Returns true if a program with this one argument only prints its version or usage.
fn only_prints_version_or_help(program: &str, only: &str, reads: bool) -> bool {
    // Programs of the table refuse unknown options. For `lsof` the argument means something else.
    let asked = matches!(only, "--version" | "--help")
        && (reads || matches!(program, "find" | "sed" | "awk" | "tar"));
    asked && program != "lsof"
        || only == "--version" && VERSION_PROGRAMS.contains(&program)
        || VERSION_WORDS.iter().any(|(name, words)| *name == program && words.contains(&only))
}

/// Returns true if a flag is in a cluster. The text after an option with a value is not a flag.
fn has_flag(arguments: &[&str], flag: char, valued: &str) -> bool {
    arguments.iter().filter(|argument| !argument.starts_with("--")).any(|argument| {
        argument.strip_prefix('-').is_some_and(|cluster| {
            cluster.chars().take_while(|option| !valued.contains(*option)).any(|option| option == flag)
        })
    })
}

/// Returns the arguments, with [`UNKNOWN_REST`] after the known beginning of a partly known word,
/// and [`UNKNOWN_WORD`] for an unknown one. `None` if a word could expand to several words with
/// options among them, unless the program is `tame`.
fn arguments_with_placeholders(arguments: &[Word], tame: bool) -> Option<Vec<Cow<'_, str>>> {
    let mut known = Vec::with_capacity(arguments.len());
    let mut only_operands = false;
    for word in arguments {
        if word.known && !word.dialect {
            only_operands |= word.text == "--";
            known.push(Cow::Borrowed(word.text.as_str()));
            continue;
        }
        // After splitting, later words may begin with anything.
        let begins = !word.splits && !word.start.is_empty();
        let argument = match begins {
            // Possibly an option, which is accepted only as far as it is known.
            true if !(word.dialect || tame && word.start.starts_with('-')) => {
                Cow::Owned(format!("{}{UNKNOWN_REST}", word.start))
            }
            true if !word.start.starts_with('-') => Cow::Borrowed(UNKNOWN_REST),
            _ if tame || (only_operands && word.single) => Cow::Borrowed(UNKNOWN_REST),
            _ if word.single && !word.dialect => Cow::Borrowed(UNKNOWN_WORD),
            _ => return None,
        };
        // Possibly several words.
        known.extend(std::iter::repeat_n(argument, if word.single { 1 } else { 2 }));
    }
    Some(known)
}

/// Returns true if a shell only checks a file's syntax: `bash -n x`.
pub(super) fn is_syntax_check(words: &[Word]) -> bool {
    let known = words.iter().all(|word| word.known && !word.dialect);
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    matches!(texts.as_slice(), [shell, "-n", file]
        if known && matches!(base_name(shell), "bash" | "dash" | "sh") && is_not_option(file))
}

/// Returns true for `ip` that shows objects.
fn shows_network(arguments: &[&str]) -> bool {
    const LONG_OPTIONS: &[&str] =
        &["-4", "-6", "-br", "-brief", "-c", "-color", "-d", "-details", "-j", "-o", "-p", "-s"];
    const IP_OBJECTS: &[&str] =
        &["a", "addr", "address", "l", "link", "n", "neigh", "neighbour", "r", "ro", "route", "ru", "rule"];
    let first =
        arguments.iter().position(|argument| !LONG_OPTIONS.contains(argument)).unwrap_or(arguments.len());
    match arguments.get(first..).unwrap_or_default() {
        // Not `s`, which is `set` for a link.
        [object] | [object, "list" | "ls" | "show", ..] => IP_OBJECTS.contains(object),
        _ => false,
    }
}

/// Returns true for `tar t…f archive`. An archive with a colon in its name is on another machine.
fn lists_archive(arguments: &[&str]) -> bool {
    let [options, archive, members @ ..] = arguments else { return false };
    let cluster = options.strip_prefix('-').unwrap_or(options);
    cluster.ends_with('f')
        && cluster.contains('t')
        && cluster.bytes().all(|option| b"tvzjJf".contains(&option))
        && !archive.contains(':')
        && !archive.contains(UNKNOWN_REST)
        && is_not_option(archive)
        && members.iter().all(|member| is_not_option(member))
}

fn is_not_option(argument: &str) -> bool {
    !argument.starts_with('-')
}

/// Returns true for decompression to standard output, which leaves the files unchanged.
fn decompresses(program: &str, arguments: &[&str]) -> bool {
    let (prints, files) = match arguments {
        ["-c" | "-dc" | "-cd", files @ ..] => (true, files),
        ["-l", files @ ..] => (program == "gzip", files),
        files => (program.ends_with("cat"), files),
    };
    prints && (program != "gzip" || arguments.first() != Some(&"-c")) && are_plain_names(files)
}

/// Returns the arguments of `jq` without the names and values that `--arg` sets.
fn strip_jq_variables<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut rest = arguments;
    let mut kept = Vec::with_capacity(arguments.len());
    loop {
        match rest {
            ["--arg" | "--argjson", _, _, after @ ..] => rest = after,
            [first, after @ ..] => {
                kept.push(*first);
                rest = after;
            }
            [] => return kept,
        }
    }
}

/// Returns true if no option is ambiguous for a program that splits clusters in its own way: `tree
/// -Io` takes two values, `xxd -ps` is one option.
fn has_unambiguous_clusters(program: &str, arguments: &[&str]) -> bool {
    const VALUED_OPTIONS: &str = "LPIop";
    arguments.iter().filter(|argument| !argument.starts_with("--")).all(|argument| {
        let Some(cluster) = argument.strip_prefix('-') else { return true };
        let mut options = cluster.chars();
        let first = options.next();
        let rest = options.as_str();
        match program {
            "xxd" => {
                rest.is_empty()
                    || first.is_some_and(|o| "clsg".contains(o)) && rest.bytes().all(|b| b.is_ascii_digit())
            }
            // The value is the next word.
            _ => !cluster.chars().rev().skip(1).any(|option| VALUED_OPTIONS.contains(option)),
        }
    })
}

fn accepts_arguments(reader: &Reader, arguments: &[&str]) -> bool {
    let Some(operands) = parse_operands(arguments, reader.flags, reader.valued, &[reader.long], true) else {
        return false;
    };
    match reader.operands {
        ReaderOperands::Any => true,
        ReaderOperands::AtMost(most) => operands.len() <= most,
        ReaderOperands::Like(accept) => accept(&operands),
    }
}

/// Returns the operands of a program of the table, whatever their number, if all options are
/// accepted.
pub(super) fn reader_operands<'a>(program: &str, arguments: &[&'a str]) -> Option<Vec<&'a str>> {
    let reader = READER_PROGRAMS.iter().find(|reader| reader.name == program)?;
    operands_if_known(arguments, reader.flags, reader.valued, &[reader.long])
}

fn are_plain_names(names: &[&str]) -> bool {
    !names.is_empty() && names.iter().all(|name| !name.starts_with('-'))
}

/// Returns true for names after `command -v` and `type`. An option among them would be ambiguous.
fn only_describes(names: &[&str]) -> bool {
    !names.is_empty() && names.iter().all(|name| !name.starts_with('-') || *name == UNKNOWN_WORD)
}

/// Returns true for `find` with tests and with actions that only print.
fn only_finds(arguments: &[&str]) -> bool {
    let mut rest = arguments.iter().copied();
    while let Some(word) = rest.next() {
        let known = if VALUED_TESTS.contains(&word) || is_time_comparison(word) {
            // For a `find` that does not know the test, its value would be an action.
            rest.next().is_some_and(|value| !FIND_ACTIONS.contains(&value))
        } else {
            FIND_TESTS.contains(&word) || !word.starts_with('-')
        };
        if !known {
            return false;
        }
    }
    true
}

/// Tests and options of `find` without a value.
const FIND_TESTS: &[&str] = &[
    "-a",
    "-and",
    "-o",
    "-or",
    "-not",
    "!",
    "(",
    ")",
    "-print",
    "-print0",
    "-ls",
    "-prune",
    "-quit",
    "-true",
    "-false",
    "-empty",
    "-depth",
    "-d",
    "-daystart",
    "-follow",
    "-xdev",
    "-mount",
    "-executable",
    "-readable",
    "-writable",
    "-nouser",
    "-nogroup",
    "-L",
    "-H",
    "-P",
    "-noleaf",
];

/// Actions of `find`.
const FIND_ACTIONS: &[&str] = &[
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-delete",
    "-fprint",
    "-fprint0",
    "-fprintf",
    "-fls",
    "-files0-from",
];

/// Returns true for `printf` without options. bash's `-v` and `%n` assign to a variable, whose
/// subscript can run a command; some shells evaluate the values of counting and computing formats.
fn is_harmless_printf(arguments: &[Word]) -> bool {
    let Some((format, values)) = arguments.split_first() else { return false };
    if !format.known || format.text.starts_with('-') {
        return false;
    }
    let number = |value: &Word| {
        let text = value.text.as_str();
        value.known
            && !value.dialect
            && !text.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+-".contains(&byte))
    };
    let mut texts = true;
    let mut rest = format.text.chars();
    while let Some(character) = rest.next() {
        if character != '%' {
            continue;
        }
        let conversion = loop {
            match rest.next() {
                Some('*') => texts = false,
                Some(c) if c.is_ascii_digit() || "-+ #.hlLjzt".contains(c) => {}
                other => break other,
            }
        };
        match conversion {
            Some('s' | 'b' | 'c' | 'q' | '%') => {}
            Some('d' | 'i' | 'u' | 'o' | 'x' | 'X' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'a' | 'A') => {
                texts = false
            }
            _ => return false,
        }
    }
    texts || values.iter().all(number)
}

/// Returns true for `read` into variables that no program uses.
fn is_harmless_read(arguments: &[&str]) -> bool {
    let Some(names) = operands_if_known(arguments, "rs", "ntd", &[]) else { return false };
    names.iter().all(|name| {
        name.starts_with(|c: char| c == '_' || c.is_ascii_lowercase())
            && name.bytes().all(|b| b == b'_' || b.is_ascii_lowercase() || b.is_ascii_digit())
            && !name.ends_with("_proxy")
            && !matches!(*name, "path" | "fpath" | "cdpath" | "_")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_no_option_is_in_it_twice() {
        assert!(READER_PROGRAMS.is_sorted_by(|a, b| a.name < b.name));
        for reader in READER_PROGRAMS {
            for option in reader.valued.chars() {
                assert!(!reader.flags.contains(option), "{} -{option}", reader.name);
            }
        }
    }

    #[test]
    fn options_are_taken_apart_as_the_programs_do() {
        let parse = |words: &[&str]| {
            let found = operands_if_known(words, "ab", "n", &[&["all", "lines=", "color?"]]);
            found.map(|operands| operands.join(" "))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(parse(&["x", "-ab", "y"]), some("x y"));
        assert_eq!(parse(&["-an5", "x"]), some("x"));
        assert_eq!(parse(&["-an", "5", "x"]), some("x"));
        assert_eq!(parse(&["-n", "--all", "x"]), None);
        assert_eq!(parse(&["-n"]), None);
        assert_eq!(parse(&["--", "-z", "--zoo"]), some("-z --zoo"));
        assert_eq!(parse(&["-"]), some("-"));
        assert_eq!(parse(&["--lines=5", "--lines", "5", "--color", "--color=x", "--all"]), some(""));
        assert_eq!(parse(&["--all=x"]), None);
        assert_eq!(parse(&["--al"]), None);
        assert_eq!(parse(&["-c"]), None);
        assert_eq!(parse(&["-\u{e9}"]), None);
    }
}
