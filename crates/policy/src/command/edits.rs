//! Programs that change only files of the project, and programs that only print information.
//!
//! Accepted programs are level 1, as the edit tools and the project's checks are: they write only
//! to files that they name, beneath the working directory or in the sandbox's own `/tmp`, and not
//! to files that programs outside the sandbox obey. Undo restores what they replace; if a word
//! names a file that undo does not cover, or is a pattern, the tool previews the command in an
//! overlay first. Some that print information (`cargo metadata`, `make -n`) run code of the
//! project, as its checks do.
//!
//! As in `readers`, an option that is not listed makes a command unknown. Programs that may write
//! through a name outside their words (`tar x`), create hard links, or change whole trees
//! (`rm -r`) are omitted on purpose.

use journeyman_syntax::shell::Word;

use super::edit_table::{FILE_CHANGERS, FileChanger, QUERY_PROGRAMS, QueryProgram};
use super::options::operands_if_known;
use super::part::shorten_command;
use super::readers::{self, base_name};
use super::sed;
use crate::protected_paths::{PathProtection, protection_of_text};

/// The sandbox's private temporary directory.
const TEMPORARY_DIR: &str = "/tmp/";
/// Maximum number of words of a program that are checked.
const MAX_CHECKED_WORDS: usize = 512;
/// Programs that ask for more rights in every case.
const PRIVILEGE_PROGRAMS: &[&str] = &["doas", "pkexec", "su", "sudo"];
/// Other arguments by which programs print their version and do nothing else.
const VERSION_ARGUMENTS: &[(&str, &[&str])] = &[
    ("convert", &["-version"]),
    ("gh", &["version"]),
    ("helm", &["version"]),
    ("kubectl", &["version", "--client"]),
    ("magick", &["-version"]),
    ("nslookup", &["-version"]),
    ("ssh", &["-V"]),
];

/// Returns one line on the effect of a program with its arguments, if it is known to be level 1.
pub(super) fn describe_edit(words: &[Word]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    if words.len() > MAX_CHECKED_WORDS
        || !program.known
        || program.dialect
        || !arguments.iter().all(is_accepted_word)
    {
        return None;
    }
    let name = base_name(&program.text);
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    if is_version_query(words) {
        return Some(format!("it asks `{}` for its version", shorten_command(name)));
    }
    if is_query_or_formatter(words) || is_make_dry_run(name, &texts) {
        return Some(format!("it asks `{}` about the project", shorten_command(name)));
    }
    only_changes_project(name, &texts)
        .then(|| format!("`{}` changes files of the project alone", shorten_command(name)))
}

/// Returns true if a program of the table only prints information or formats files.
pub(super) fn is_query_or_formatter(words: &[Word]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let name = base_name(&program.text);
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    QUERY_PROGRAMS.iter().any(|asked| asked.name == name && is_accepted_query(asked, arguments, &texts))
}

/// Returns true if a word is known completely, or is a pattern that can't expand to an option.
pub(super) fn is_accepted_word(word: &Word) -> bool {
    !word.dialect && (word.known || is_pattern(word))
}

/// Returns true if a word stands for file names with a known beginning.
fn is_pattern(word: &Word) -> bool {
    !word.known
        && !word.splits
        && word.inner.is_empty()
        && !word.text.contains(['$', '`', '~', '\\', '\'', '"', '{'])
        && !word.start.is_empty()
        && !word.start.starts_with('-')
}

/// Returns true if a path in a command is an ordinary file of the project or of the temporary
/// directory.
pub(super) fn is_ordinary_path(path: &str) -> bool {
    let path = path.strip_prefix(TEMPORARY_DIR).unwrap_or(path);
    !path.is_empty()
        && !path.starts_with(['/', '~'])
        && path.split('/').all(|name| name != "..")
        && protection_of_text(path) == PathProtection::None
}

/// Returns true if a program of the machine is asked only for its version.
pub(super) fn is_version_query(words: &[Word]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_+.".contains(c);
    let name = base_name(&program.text);
    // The program is named without a directory and begins with a letter.
    if !words.iter().all(|word| word.known && !word.dialect)
        || PRIVILEGE_PROGRAMS.contains(&name)
        || !name.starts_with(|c: char| c.is_ascii_alphabetic())
        || !name.chars().all(plain)
    {
        return false;
    }
    let texts = || arguments.iter().map(|word| word.text.as_str());
    texts().eq(["--version"])
        || VERSION_ARGUMENTS.iter().any(|(known, words)| *known == name && texts().eq(words.iter().copied()))
}

/// Returns true for `make -n`, which may run programs of its file's functions, as a check may.
fn is_make_dry_run(name: &str, arguments: &[&str]) -> bool {
    let target = |word: &str| !word.starts_with('-') && !word.contains('=');
    matches!(name, "make" | "gmake")
        && arguments.iter().any(|word| matches!(*word, "-n" | "--dry-run" | "--just-print"))
        && arguments.iter().all(|word| {
            matches!(*word, "-n" | "--dry-run" | "--just-print" | "-s" | "-k" | "-B" | "-j") || target(word)
        })
}

fn is_accepted_query(asked: &QueryProgram, arguments: &[Word], texts: &[&str]) -> bool {
    let Some(rest) = strip_subcommand(texts, asked.words) else { return false };
    let operands: Vec<&str> = match asked.single {
        [] => match operands_if_known(&rest, asked.flags, asked.valued, &[asked.long]) {
            Some(operands) => operands,
            None => return false,
        },
        // Programs with one dash before long options.
        single => {
            let (given, operands): (Vec<&str>, Vec<&str>) =
                rest.into_iter().partition(|word| word.starts_with('-'));
            if !given.iter().all(|option| single.contains(option)) {
                return false;
            }
            operands
        }
    };
    (asked.operands || operands.is_empty())
        // For pagers, a `+` begins a command.
        && (!asked.files || operands.iter().all(|operand| is_ordinary_path(operand) && !operand.starts_with('+')))
        && (asked.files || arguments.iter().all(|word| word.known))
}

/// Returns the words after those of a subcommand.
fn strip_subcommand<'a>(texts: &[&'a str], words: &[&str]) -> Option<Vec<&'a str>> {
    let (head, rest) = texts.split_at_checked(words.len())?;
    (head == words).then(|| rest.to_vec())
}

fn only_changes_project(name: &str, texts: &[&str]) -> bool {
    let all = |operands: &[&str], least: usize| {
        operands.len() >= least && operands.iter().all(|operand| is_ordinary_path(operand))
    };
    match name {
        "git" => is_git_edit(texts),
        "sed" => is_sed_in_place(texts),
        "sort" => is_sort_to_file(texts),
        // It refuses names outside of its directory; the tool previews it, because its words don't
        // name the files.
        "patch" => operands_if_known(
            texts,
            "RNsu",
            "pi",
            &[&["dry-run", "reverse", "forward", "verbose", "strip=", "input="]],
        )
        .is_some_and(|operands| all(&operands, 0)),
        // The names of the output files begin with the last word.
        "split" => {
            operands_if_known(texts, "dx", "abCln", &[&["lines=", "bytes=", "number=", "suffix-length="]])
                .is_some_and(|operands| all(&operands, 1))
        }
        "uniq" => readers::reader_operands(name, texts).is_some_and(|operands| all(&operands, 2)),
        "chmod" => {
            let Some(operands) = operands_if_known(texts, "vcf", "", &[&["verbose", "changes"]]) else {
                return false;
            };
            operands.split_first().is_some_and(|(mode, files)| is_plain_mode(mode) && all(files, 1))
        }
        "ln" => {
            // Without `-s` it creates a hard link, under which undo does not know the file.
            texts.iter().any(|word| *word == "--symbolic" || is_cluster_with(word, 's'))
                && operands_if_known(
                    texts,
                    "sfnvrT",
                    "",
                    &[&["symbolic", "force", "no-dereference", "relative"]],
                )
                .is_some_and(|operands| all(&operands, 2))
        }
        "install" => {
            let mode = |pair: &[&str]| matches!(pair, ["-m", mode] if !is_plain_mode(mode));
            !texts.windows(2).any(mode)
                && !texts.iter().any(|word| word.starts_with("-m") && word.len() > 2)
                && operands_if_known(texts, "dDpvC", "m", &[]).is_some_and(|operands| all(&operands, 1))
        }
        _ => FILE_CHANGERS.iter().any(|changing: &FileChanger| {
            changing.name == name
                && operands_if_known(texts, changing.flags, changing.valued, &[changing.long])
                    .is_some_and(|operands| all(&operands, changing.least))
        }),
    }
}

fn is_cluster_with(word: &str, option: char) -> bool {
    !word.starts_with("--") && word.strip_prefix('-').is_some_and(|cluster| cluster.contains(option))
}

/// Returns true for a mode that gives no rights to others: no `s`, no fourth digit.
fn is_plain_mode(mode: &str) -> bool {
    let digits = mode.strip_prefix('0').unwrap_or(mode);
    let octal = digits.len() == 3 && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    octal
        || mode.split(',').all(|one| {
            let change = one.trim_start_matches(['u', 'g', 'o', 'a']);
            change.strip_prefix(['+', '-', '=']).is_some_and(|rights| {
                !rights.is_empty() && rights.bytes().all(|byte| b"rwxX".contains(&byte))
            })
        })
}

/// Returns true for `sed -i` with a script that would only print without `-i`.
fn is_sed_in_place(texts: &[&str]) -> bool {
    let in_place = |word: &str| -> bool {
        let suffix =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        match word.strip_prefix("--in-place") {
            Some("") => true,
            Some(rest) => rest.strip_prefix('=').is_some_and(suffix),
            // A suffix follows the letter; `-ie` is not `-i -e`.
            None => word.strip_prefix("-i").or_else(|| word.strip_prefix("-Ei")).is_some_and(suffix),
        }
    };
    let rest: Vec<&str> = texts.iter().copied().filter(|word| !in_place(word)).collect();
    // A script that begins like the option would be removed too.
    rest.len() + 1 == texts.len()
        && sed::input_files(&rest)
            .is_some_and(|files| !files.is_empty() && files.iter().all(|it| is_ordinary_path(it)))
}

/// Returns true for `sort -o FILE`.
fn is_sort_to_file(texts: &[&str]) -> bool {
    let mut rest = Vec::with_capacity(texts.len());
    let mut written = Vec::new();
    let mut words = texts.iter().copied();
    while let Some(word) = words.next() {
        match word.strip_prefix("--output=") {
            Some(file) => written.push(file),
            None if word == "-o" => written.extend(words.next()),
            None => rest.push(word),
        }
    }
    matches!(written.as_slice(), [file] if is_ordinary_path(file))
        && readers::reader_operands("sort", &rest).is_some()
}

/// Returns true for git commands that change the index and files, and lose only data that git
/// keeps.
fn is_git_edit(texts: &[&str]) -> bool {
    let Some((command, rest)) = texts.split_first() else { return false };
    let taken = |flags: &str, valued: &str, long: &[&str]| operands_if_known(rest, flags, valued, &[long]);
    let inside =
        |operands: Vec<&str>| operands.iter().all(|it| *it == "." || *it == ":/" || is_ordinary_path(it));
    match *command {
        "add" => taken("AuNvn", "", &["all", "update", "intent-to-add", "verbose", "dry-run", "refresh"])
            .is_some_and(inside),
        // It writes only to the work tree; the tool previews it, because its words don't name the
        // files.
        "apply" => taken(
            "Rv3",
            "pC",
            &[
                "3way",
                "cached",
                "check",
                "index",
                "recount",
                "reject",
                "reverse",
                "stat",
                "verbose",
                "whitespace=",
            ],
        )
        .is_some_and(|operands| !operands.is_empty() && inside(operands)),
        "mv" => taken("vkn", "", &["verbose", "dry-run"]).is_some_and(|it| it.len() >= 2 && inside(it)),
        "rm" => {
            // It removes only unchanged tracked files; with `-r`, whole trees.
            let flags = if rest.contains(&"--cached") { "rqn" } else { "qn" };
            taken(flags, "", &["cached", "quiet", "dry-run"]).is_some_and(inside)
        }
        "restore" => {
            rest.iter().any(|word| matches!(*word, "--staged" | "-S"))
                && taken("Sq", "", &["staged", "quiet"]).is_some_and(inside)
        }
        // Any other word may be a commit to which the branch would move.
        "reset" => match rest {
            [] | ["-q" | "--quiet" | "HEAD"] => true,
            ["HEAD", "--", files @ ..] | ["--", files @ ..] | ["HEAD", files @ ..] => {
                files.iter().all(|file| !file.starts_with('-')) && inside(files.to_vec())
            }
            _ => false,
        },
        "stash" => match rest {
            [] => true,
            ["push" | "save", rest @ ..] | rest if rest.first().is_none_or(|word| word.starts_with('-')) => {
                let long = ["message=", "include-untracked", "keep-index", "quiet", "staged"];
                operands_if_known(rest, "ukqS", "m", &[&long]).is_some_and(|it| it.is_empty() || inside(it))
            }
            _ => false,
        },
        _ => false,
    }
}
