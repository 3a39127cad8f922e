//! Programs that are known to read, option by option.
//!
//! A program is here with the options it may have, never with those it may not: an option that isn't
//! listed, an abbreviation of a long one included, makes the command unknown. What is left out on purpose
//! writes a file (`sort -o`, `uniq IN OUT`, `tree -o`, `xxd IN OUT`, `file -C`), runs a program (`rg --pre`,
//! `rg -z`, `find -exec`, `sort --compress-program`, `diff -l`, `fd -x`, `fd -l`), follows a file without
//! end (`tail -f`), or sets what it else shows (`date -s`, `hostname NAME`).

use std::borrow::Cow;

use journeyman_syntax::shell::Word;

use super::reader_table::{NOTHING, Operands, READERS, Reader};
use super::{awk, conditions, git, sed};

/// Programs whose `--version`, alone, neither reads nor runs anything of the project. Not `cargo`, `go`,
/// `yarn` and their kin, which look up in the project which version of themselves to run.
const VERSIONED: &[&str] = &[
    "aws", "bash", "cc", "clang", "clang++", "cmake", "curl", "docker", "g++", "gcc", "gh", "git", "java",
    "javac", "lua", "make", "ninja", "node", "npm", "perl", "php", "podman", "python", "python3", "ruby",
    "ssh", "wget", "zsh",
];
/// Other words by which some of them, alone, tell no more than that.
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

/// The directories whose programs are the system's own.
const SYSTEM_PROGRAMS: [&str; 2] = ["/usr/bin/", "/bin/"];

/// Programs of the table that no option makes do more than read, so that an argument may be anything.
const TAME: &[&str] = &[
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

/// Programs that a function of their own judges.
const SPECIAL: &[&str] = &[
    "alias", "awk", "bash", "break", "bzcat", "command", "continue", "dash", "env", "exit", "export", "expr",
    "find", "git", "gunzip", "gzip", "ip", "read", "return", "sed", "set", "sh", "sleep", "tar", "tee",
    "type", "ulimit", "umask", "unzip", "wait", "xzcat", "zcat", "zstdcat",
];

/// What stands for a word that isn't known, behind what it begins with: no option, no number, no script.
pub(super) const UNKNOWN: &str = "\u{2026}";
/// What stands for one word that may be anything, an option too. Only where a value stands for certain is it accepted.
const ANYTHING: &str = "-\u{2026}";

/// The name of a program that is named by itself or in the system's directories; others keep their path.
pub(super) fn base_name(path: &str) -> &str {
    SYSTEM_PROGRAMS.iter().find_map(|directory| path.strip_prefix(directory)).unwrap_or(path)
}

/// Whether a program with its arguments is known to read only; the error says why it isn't.
///
/// In a directory that the command itself went to, git isn't trusted: the settings of a repository planted
/// there could name programs to run.
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
            return if conditions::only_test(program, arguments) { Ok(()) } else { refused() };
        }
        "printf" => return if printf(arguments) { Ok(()) } else { refused() },
        _ => {}
    }
    let reader = READERS.iter().find(|reader| reader.name == program);
    if reader.is_none() && !SPECIAL.contains(&program) && !VERSIONED.contains(&program) {
        return Err(format!("`{}` is not among the programs known to read", super::shown(program)));
    }
    let Some(arguments) = arguments_of(arguments, TAME.contains(&program)) else { return refused() };
    let arguments: Vec<&str> = arguments.iter().map(|argument| &**argument).collect();
    if let [only] = arguments.as_slice()
        && tells_of_itself(program, only, reader.is_some())
    {
        return Ok(());
    }
    let accepted = match program {
        "git" if changed_directory => return Err("`git` after `cd` may meet another repository".to_owned()),
        "git" => git::only_reads(&arguments),
        "find" => find(&arguments),
        "sed" => sed::only_prints(&arguments),
        "awk" => awk::only_prints(&arguments) && !words.iter().any(awk::may_connect),
        "command" => matches!(arguments.as_slice(), ["-v" | "-V", names @ ..] if describes(names)),
        "type" => match arguments.as_slice() {
            ["-a" | "-t" | "-p", names @ ..] | names => describes(names),
        },
        "alias" => arguments.is_empty(),
        "ip" => shows_network(&arguments),
        "bash" | "dash" | "sh" => checks_syntax(words),
        "tar" => lists_archive(&arguments),
        "unzip" => {
            matches!(arguments.as_slice(), ["-l" | "-v" | "-lv" | "-Z1" | "-lq", names @ ..] if plain_names(names))
        }
        "gunzip" | "gzip" | "zcat" | "xzcat" | "bzcat" | "zstdcat" => decompresses(program, &arguments),
        "lsof" => {
            // `-i @name` asks the network for the name; without `-n` it asks for that of every address.
            let named = |argument: &&str| argument.contains('@') || argument.contains(UNKNOWN);
            has_flag(&arguments, 'n', "iupdcgs")
                && !arguments.iter().any(named)
                && reader.is_some_and(|reader| takes(reader, &arguments))
        }
        "netstat" => has_flag(&arguments, 'n', "") && reader.is_some_and(|reader| takes(reader, &arguments)),
        "tree" | "xxd" | "yq" => {
            one_by_one(program, &arguments) && reader.is_some_and(|reader| takes(reader, &arguments))
        }
        "jq" => takes(reader.unwrap_or(&NOTHING), &without_values(&arguments)),
        "expr" => !arguments.iter().any(|argument| argument.starts_with("--")),
        "read" => read(&arguments),
        "tee" => arguments.iter().all(|argument| {
            matches!(*argument, "-a" | "-i" | "-p" | "/dev/null" | "/dev/stdout" | "/dev/stderr")
        }),
        _ => match reader {
            Some(reader) => takes(reader, &arguments),
            None if SPECIAL.contains(&program) => of_the_shell(program, &arguments),
            None => {
                return Err(format!("`{}` is not among the programs known to read", super::shown(program)));
            }
        },
    };
    if accepted { Ok(()) } else { refused() }
}

/// What the shell does by itself, and changes nothing but how it goes on.
fn of_the_shell(program: &str, arguments: &[&str]) -> bool {
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
                    argument
                        .split_once('=')
                        .is_some_and(|(name, _)| super::survey::is_harmless_variable(name))
                })
        }
        "ulimit" => matches!(arguments, [] | ["-a" | "-n" | "-s" | "-c" | "-u" | "-v"]),
        "umask" => matches!(arguments, [] | ["-S"]),
        _ => false,
    }
}

/// Whether a wrapper with its own arguments, without what it runs, only reads.
pub(super) fn reads_around(program: &str, words: &[Word]) -> Result<(), String> {
    if program != "find" {
        return Ok(());
    }
    let actions = super::unwrap_find::actions(words);
    if !actions.clear {
        return Err("where an `-exec` of it ends isn't clear".to_owned());
    }
    only_reads(&actions.outside, false)
}

/// Whether a program with this one argument says which it is, or how it is called, and does nothing else.
fn tells_of_itself(program: &str, only: &str, reads: bool) -> bool {
    // Those of the table are programs that read, and what they don't know they refuse. To `lsof` it is another option.
    let asked = matches!(only, "--version" | "--help")
        && (reads || matches!(program, "find" | "sed" | "awk" | "tar"));
    asked && program != "lsof"
        || only == "--version" && VERSIONED.contains(&program)
        || VERSION_WORDS.iter().any(|(name, words)| *name == program && words.contains(&only))
}

/// Whether a flag is in one of the clusters. What follows an option with a value is no flag.
fn has_flag(arguments: &[&str], flag: char, valued: &str) -> bool {
    arguments.iter().filter(|argument| !argument.starts_with("--")).any(|argument| {
        argument.strip_prefix('-').is_some_and(|cluster| {
            cluster.chars().take_while(|option| !valued.contains(*option)).any(|option| option == flag)
        })
    })
}

/// The arguments, with [`UNKNOWN`] behind what is known of those that aren't wholly known, and [`ANYTHING`] for one
/// of which nothing is. `None` if one could be several, of which some are options, unless the program is `tame`.
fn arguments_of(arguments: &[Word], tame: bool) -> Option<Vec<Cow<'_, str>>> {
    let mut known = Vec::with_capacity(arguments.len());
    let mut only_operands = false;
    for word in arguments {
        if word.known && !word.dialect {
            only_operands |= word.text == "--";
            known.push(Cow::Borrowed(word.text.as_str()));
            continue;
        }
        // What is split off begins as it likes.
        let begins = !word.splits && !word.start.is_empty();
        let argument = match begins {
            // Perhaps an option, which is known as far as it matters or refused.
            true if !(word.dialect || tame && word.start.starts_with('-')) => {
                Cow::Owned(format!("{}{UNKNOWN}", word.start))
            }
            true if !word.start.starts_with('-') => Cow::Borrowed(UNKNOWN),
            _ if tame || (only_operands && word.single) => Cow::Borrowed(UNKNOWN),
            _ if word.single && !word.dialect => Cow::Borrowed(ANYTHING),
            _ => return None,
        };
        // Perhaps more than one.
        known.extend(std::iter::repeat_n(argument, if word.single { 1 } else { 2 }));
    }
    Some(known)
}

/// Whether a shell only reads a file for its syntax: `bash -n x`.
pub(super) fn checks_syntax(words: &[Word]) -> bool {
    let known = words.iter().all(|word| word.known && !word.dialect);
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    matches!(texts.as_slice(), [shell, "-n", file]
        if known && matches!(base_name(shell), "bash" | "dash" | "sh") && no_option(file))
}

/// `ip` that shows: an object, and which of them.
fn shows_network(arguments: &[&str]) -> bool {
    const OPTIONS: &[&str] =
        &["-4", "-6", "-br", "-brief", "-c", "-color", "-d", "-details", "-j", "-o", "-p", "-s"];
    const OBJECTS: &[&str] =
        &["a", "addr", "address", "l", "link", "n", "neigh", "neighbour", "r", "ro", "route", "ru", "rule"];
    let first = arguments.iter().position(|argument| !OPTIONS.contains(argument)).unwrap_or(arguments.len());
    match arguments.get(first..).unwrap_or_default() {
        [object] | [object, "list" | "ls" | "s" | "show", ..] => OBJECTS.contains(object),
        _ => false,
    }
}

/// `tar t…f archive`. An archive with a colon in its name is on another machine.
fn lists_archive(arguments: &[&str]) -> bool {
    let [options, archive, members @ ..] = arguments else { return false };
    let cluster = options.strip_prefix('-').unwrap_or(options);
    cluster.ends_with('f')
        && cluster.contains('t')
        && cluster.bytes().all(|option| b"tvzjJf".contains(&option))
        && !archive.contains(':')
        && !archive.contains(UNKNOWN)
        && no_option(archive)
        && members.iter().all(|member| no_option(member))
}

fn no_option(argument: &str) -> bool {
    !argument.starts_with('-')
}

/// What prints the content of compressed files, and leaves these alone.
fn decompresses(program: &str, arguments: &[&str]) -> bool {
    let (prints, files) = match arguments {
        ["-c" | "-dc" | "-cd", files @ ..] => (true, files),
        ["-l", files @ ..] => (program == "gzip", files),
        files => (program.ends_with("cat"), files),
    };
    prints && (program != "gzip" || arguments.first() != Some(&"-c")) && plain_names(files)
}

/// Arguments of `jq` without the names and values that `--arg` sets.
fn without_values<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
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

/// Whether no option of a program that doesn't take clusters apart as others do is read in two ways: `tree -Io` takes
/// two values, `xxd -ps` is one option.
fn one_by_one(program: &str, arguments: &[&str]) -> bool {
    const VALUED: &str = "LPIop";
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
            // A value stands in the next word.
            _ => !cluster.chars().rev().skip(1).any(|option| VALUED.contains(option)),
        }
    })
}

fn takes(reader: &Reader, arguments: &[&str]) -> bool {
    let Some(operands) = taken(arguments, reader.flags, reader.valued, &[reader.long], true) else {
        return false;
    };
    match reader.operands {
        Operands::Any => true,
        Operands::AtMost(most) => operands.len() <= most,
        Operands::Like(accept) => accept(&operands),
    }
}

/// The operands of a program of the table, however many it may have, if it has no option but those that it may.
pub(super) fn operands<'a>(program: &str, arguments: &[&'a str]) -> Option<Vec<&'a str>> {
    let reader = READERS.iter().find(|reader| reader.name == program)?;
    options(arguments, reader.flags, reader.valued, &[reader.long])
}

/// The operands, if every option is among those given. Options may stand between operands, as GNU's
/// programs take them.
pub(super) fn options<'a>(
    arguments: &[&'a str],
    flags: &str,
    valued: &str,
    long: &[&[&str]],
) -> Option<Vec<&'a str>> {
    taken(arguments, flags, valued, long, false)
}

/// As [`options`]. `certain`: whether every version of the program takes the values that are given here, so that one
/// may be anything.
fn taken<'a>(
    arguments: &[&'a str],
    flags: &str,
    valued: &str,
    long: &[&[&str]],
    certain: bool,
) -> Option<Vec<&'a str>> {
    let mut operands = Vec::new();
    let mut rest = arguments.iter().copied();
    while let Some(word) = rest.next() {
        let wants_value = if word == "--" {
            operands.extend(rest);
            break;
        } else if let Some(option) = word.strip_prefix("--") {
            long_option(option, long)?
        } else if let Some(cluster) = word.strip_prefix('-').filter(|cluster| !cluster.is_empty()) {
            short_options(cluster, flags, valued)?
        } else {
            operands.push(word);
            false
        };
        // A value that looks like an option would be one to a version of the program that doesn't take a
        // value here.
        let accepted = |value: &str| !value.starts_with('-') || certain && value == ANYTHING;
        if wants_value && !rest.next().is_some_and(accepted) {
            return None;
        }
    }
    Some(operands)
}

/// Whether the next word is the option's value; `None` if it isn't known.
fn long_option(option: &str, long: &[&[&str]]) -> Option<bool> {
    let (name, value) = match option.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (option, None),
    };
    long.iter().copied().flatten().find_map(|known| {
        match (known.strip_suffix('='), known.strip_suffix('?')) {
            (Some(known), _) => (known == name).then_some(value.is_none()),
            (_, Some(known)) => (known == name).then_some(false),
            (None, None) => (*known == name && value.is_none()).then_some(false),
        }
    })
}

fn short_options(cluster: &str, flags: &str, valued: &str) -> Option<bool> {
    let mut rest = cluster.chars();
    while let Some(option) = rest.next() {
        if valued.contains(option) {
            return Some(rest.as_str().is_empty());
        }
        if !flags.contains(option) {
            return None;
        }
    }
    Some(false)
}

fn plain_names(names: &[&str]) -> bool {
    !names.is_empty() && names.iter().all(|name| !name.starts_with('-'))
}

/// Names that `command -v` and `type` tell about. An option among them would have more told.
fn describes(names: &[&str]) -> bool {
    !names.is_empty() && names.iter().all(|name| !name.starts_with('-') || *name == ANYTHING)
}

/// `find` with tests and actions that only print.
fn find(arguments: &[&str]) -> bool {
    let mut rest = arguments.iter().copied();
    while let Some(word) = rest.next() {
        let known = if VALUED.contains(&word) || compares_times(word) {
            // An action in the value's place would be one to a `find` that doesn't know the test.
            rest.next().is_some_and(|value| !ACTIONS.contains(&value))
        } else {
            ALONE.contains(&word) || !word.starts_with('-')
        };
        if !known {
            return false;
        }
    }
    true
}

/// `-newermt` and its kin: `-newer`, which of a file's times, and what it is compared with.
pub(super) fn compares_times(word: &str) -> bool {
    let which = word.strip_prefix("-newer").map(str::as_bytes);
    matches!(which, Some([b'a' | b'B' | b'c' | b'm', b'a' | b'B' | b'c' | b'm' | b't']))
}

/// Tests and options of `find` that stand alone.
const ALONE: &[&str] = &[
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

/// Those that a value follows.
pub(super) const VALUED: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-maxdepth",
    "-mindepth",
    "-size",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-newer",
    "-anewer",
    "-cnewer",
    "-perm",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-links",
    "-inum",
    "-samefile",
    "-lname",
    "-ilname",
    "-fstype",
    "-printf",
];

/// What `find` can do to a file.
const ACTIONS: &[&str] = &[
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

/// `printf` without options. bash's `-v` and `%n` assign to a variable, whose subscript can run a command; what counts
/// or computes evaluates its value in some shells.
fn printf(arguments: &[Word]) -> bool {
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

/// `read` into variables that nothing else looks at.
fn read(arguments: &[&str]) -> bool {
    let Some(names) = options(arguments, "rs", "ntd", &[]) else { return false };
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
        assert!(READERS.is_sorted_by(|a, b| a.name < b.name));
        for reader in READERS {
            for option in reader.valued.chars() {
                assert!(!reader.flags.contains(option), "{} -{option}", reader.name);
            }
        }
    }

    #[test]
    fn options_are_taken_apart_as_the_programs_do() {
        let parse = |words: &[&str]| {
            let found = options(words, "ab", "n", &[&["all", "lines=", "color?"]]);
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
