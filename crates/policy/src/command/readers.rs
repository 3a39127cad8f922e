//! Programs that are known to read, option by option.
//!
//! A program is here with the options it may have, never with those it may not: an option that isn't
//! listed, an abbreviation of a long one included, makes the command unknown. What is left out on purpose
//! writes a file (`sort -o`, `uniq IN OUT`, `tree -o`, `xxd IN OUT`, `file -C`), runs a program (`rg --pre`,
//! `rg -z`, `find -exec`, `sort --compress-program`, `diff -l`, `fd -x`, `fd -l`), follows a file without
//! end (`tail -f`), or sets what it else shows (`date -s`, `hostname NAME`).

use super::git;
use super::reader_table::{Operands, READERS, Reader};
use super::words::Simple;

/// Programs whose `--version`, alone, neither reads nor runs anything of the project. Not `cargo`, `go`,
/// `yarn` and their kin, which look up in the project which version of themselves to run.
const VERSIONED: &[&str] =
    &["bash", "cc", "clang", "cmake", "g++", "gcc", "git", "grep", "make", "rg", "sed", "tar"];

/// The directories whose programs are the system's own.
const SYSTEM_PROGRAMS: [&str; 2] = ["/usr/bin/", "/bin/"];

/// Whether a simple command is known to read only; the error says why it isn't.
///
/// In a directory that the command itself went to, git isn't trusted: the settings of a repository planted
/// there could name programs to run.
pub(super) fn only_reads(simple: &Simple, changed_directory: bool) -> Result<(), String> {
    let path = simple.program();
    let program = SYSTEM_PROGRAMS.iter().find_map(|directory| path.strip_prefix(directory)).unwrap_or(path);
    let arguments: Vec<&str> = simple.arguments().collect();
    if arguments == ["--version"] && VERSIONED.contains(&program) {
        return Ok(());
    }
    let accepted = match program {
        "git" if changed_directory => return Err("`git` after `cd` may meet another repository".to_owned()),
        "git" => git::only_reads(&arguments),
        "find" => find(&arguments),
        "sed" => sed(&arguments),
        "awk" => awk(&arguments),
        "test" => test(&arguments),
        "command" => matches!(arguments.as_slice(), ["-v" | "-V", names @ ..] if plain_names(names)),
        "type" => plain_names(&arguments),
        "env" => arguments.is_empty(),
        "echo" => true,
        "printf" => printf(&arguments),
        _ => match READERS.iter().find(|reader| reader.name == program) {
            Some(reader) => takes(reader, &arguments),
            None => {
                return Err(format!("`{}` is not among the programs known to read", super::shown(program)));
            }
        },
    };
    if accepted { Ok(()) } else { Err(format!("not every argument of `{program}` is known to read")) }
}

fn takes(reader: &Reader, arguments: &[&str]) -> bool {
    let Some(operands) = options(arguments, reader.flags, reader.valued, &[reader.long]) else {
        return false;
    };
    match reader.operands {
        Operands::Any => true,
        Operands::AtMost(most) => operands.len() <= most,
        Operands::Like(accept) => accept(&operands),
    }
}

/// The operands, if every option is among those given. Options may stand between operands, as GNU's
/// programs take them.
pub(super) fn options<'a>(
    arguments: &[&'a str],
    flags: &str,
    valued: &str,
    long: &[&[&str]],
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
        if wants_value && rest.next().is_none_or(|value| value.starts_with('-')) {
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

/// `find` with tests and actions that only print.
fn find(arguments: &[&str]) -> bool {
    let mut rest = arguments.iter().copied();
    while let Some(word) = rest.next() {
        let known = if VALUED.contains(&word) {
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
const VALUED: &[&str] = &[
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

/// `sed -n` with a script that only prints lines by number, such as `3p` or `10,20p;$p`.
fn sed(arguments: &[&str]) -> bool {
    let (script, files) = match arguments {
        ["-n", "-e", script, files @ ..] | ["-ne" | "-n", script, files @ ..] => (script, files),
        _ => return false,
    };
    let line =
        |text: &str| text == "$" || (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    let prints = |command: &str| {
        command.trim_matches(' ').strip_suffix('p').is_some_and(|address| match address.split_once(',') {
            Some((from, to)) => line(from) && line(to.strip_prefix('+').unwrap_or(to)),
            None => line(address),
        })
    };
    script.split(';').all(prints) && files.iter().all(|file| !file.starts_with('-'))
}

/// `awk` with a program that only prints fields, such as `{print $1, $NF}`.
fn awk(arguments: &[&str]) -> bool {
    let (program, files) = match arguments {
        ["-F", separator, program, files @ ..] if separator.chars().count() == 1 => (program, files),
        [option, program, files @ ..] if option.starts_with("-F") && option.chars().count() == 3 => {
            (program, files)
        }
        [program, files @ ..] => (program, files),
        [] => return false,
    };
    let field = |text: &str| {
        let text = text.trim_matches(' ');
        text.strip_prefix('$').is_some_and(|name| {
            name == "NF" || (!name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    let fields = program
        .trim_matches(' ')
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .and_then(|rest| rest.trim_matches([' ', ';']).strip_prefix("print"));
    let prints = fields.is_some_and(|fields| fields.trim().is_empty() || fields.split(',').all(field));
    prints && files.iter().all(|file| !file.starts_with('-') && !file.contains('='))
}

/// `test` of one file. Its numeric comparisons evaluate their operands in some shells.
fn test(arguments: &[&str]) -> bool {
    matches!(arguments, ["-d" | "-e" | "-f" | "-h" | "-L" | "-r" | "-s" | "-w" | "-x", file] if !file.starts_with('-'))
}

/// `printf` without options. bash's `-v` and `%n` assign to a variable, whose subscript can run a command.
fn printf(arguments: &[&str]) -> bool {
    arguments.split_first().is_some_and(|(format, values)| {
        !format.starts_with('-') && !values.iter().any(|value| value.contains('['))
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
