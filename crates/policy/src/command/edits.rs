//! Programs that change files of the project alone, and such as are only asked to tell something.
//!
//! What is accepted here is level 1, as the edit tools and the project's checks are: it writes where its own words
//! say, beneath the directory that it runs in or in the sandbox's own `/tmp`, and no file that programs outside obey.
//! Undo brings back what it replaces; where a word names what undo doesn't cover, or is a pattern, the tool tries the
//! command out first. Some that are asked to tell something (`cargo metadata`, `make -n`) load what the project says,
//! which is no more than its checks do.
//!
//! As in `readers`, an option that isn't listed makes a command unknown. Left out on purpose is what may write through
//! a name that isn't among its words (`patch`, `tar x`), links files hard, or works on whole trees (`rm -r`).

use journeyman_syntax::shell::Word;

use super::edit_table::{ASKED, Asked, CHANGING, Changing};
use super::readers::{self, base_name, options};
use super::{sed, shown};
use crate::protect::{Protection, protection_of_text};

/// The directory that a sandbox has for itself.
const TEMPORARY: &str = "/tmp/";
/// Words of a program that are looked at. More is nothing that anybody reads.
const MAX_WORDS: usize = 512;
/// Programs that ask for more rights whatever else they are asked.
const RIGHTS: &[&str] = &["doas", "pkexec", "su", "sudo"];
/// Other words by which programs tell their version, and do nothing else.
const VERSIONS: &[(&str, &[&str])] = &[
    ("convert", &["-version"]),
    ("gh", &["version"]),
    ("helm", &["version"]),
    ("kubectl", &["version", "--client"]),
    ("magick", &["-version"]),
    ("nslookup", &["-version"]),
    ("ssh", &["-V"]),
];

/// One line on what a program with its arguments does, if it is known to be level 1.
pub(super) fn edits(words: &[Word]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    if words.len() > MAX_WORDS || !program.known || program.dialect || !arguments.iter().all(is_accepted) {
        return None;
    }
    let name = base_name(&program.text);
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    if tells_version(words) {
        return Some(format!("it asks `{}` for its version", shown(name)));
    }
    if ASKED.iter().any(|asked| asked.name == name && asks(asked, arguments, &texts))
        || asks_make(name, &texts)
    {
        return Some(format!("it asks `{}` about the project", shown(name)));
    }
    changes(name, &texts).then(|| format!("`{}` changes files of the project alone", shown(name)))
}

/// Whether a word is known as far as it matters: whole, or a pattern that no option can come out of.
fn is_accepted(word: &Word) -> bool {
    !word.dialect && (word.known || is_pattern(word))
}

/// Whether a word stands for names of files that begin as it does.
fn is_pattern(word: &Word) -> bool {
    !word.known
        && !word.splits
        && word.inner.is_empty()
        && !word.text.contains(['$', '`', '~', '\\', '\'', '"', '{'])
        && !word.start.is_empty()
        && !word.start.starts_with('-')
}

/// Whether a path, as a command has it, is an ordinary one of the project or of the sandbox's own.
pub(super) fn is_in_project(path: &str) -> bool {
    let path = path.strip_prefix(TEMPORARY).unwrap_or(path);
    !path.is_empty()
        && !path.starts_with(['/', '~'])
        && path.split('/').all(|name| name != "..")
        && protection_of_text(path) == Protection::None
}

/// Whether a program of the machine's is asked for its version, and for nothing else.
pub(super) fn tells_version(words: &[Word]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_+.".contains(c);
    let name = base_name(&program.text);
    // Found by its name alone, which begins with a letter.
    if !words.iter().all(|word| word.known && !word.dialect)
        || RIGHTS.contains(&name)
        || !name.starts_with(|c: char| c.is_ascii_alphabetic())
        || !name.chars().all(plain)
    {
        return false;
    }
    let texts = || arguments.iter().map(|word| word.text.as_str());
    texts().eq(["--version"])
        || VERSIONS.iter().any(|(known, words)| *known == name && texts().eq(words.iter().copied()))
}

/// `make -n`, which may run what its file computes with, as a check may.
fn asks_make(name: &str, arguments: &[&str]) -> bool {
    let target = |word: &str| !word.starts_with('-') && !word.contains('=');
    matches!(name, "make" | "gmake")
        && arguments.iter().any(|word| matches!(*word, "-n" | "--dry-run" | "--just-print"))
        && arguments.iter().all(|word| {
            matches!(*word, "-n" | "--dry-run" | "--just-print" | "-s" | "-k" | "-B" | "-j") || target(word)
        })
}

fn asks(asked: &Asked, arguments: &[Word], texts: &[&str]) -> bool {
    let Some(rest) = after(texts, asked.words) else { return false };
    let operands: Vec<&str> = match asked.single {
        [] => match options(&rest, asked.flags, asked.valued, &[asked.long]) {
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
        // To pagers a `+` begins a command.
        && (!asked.files || operands.iter().all(|operand| is_in_project(operand) && !operand.starts_with('+')))
        && (asked.files || arguments.iter().all(|word| word.known))
}

/// What follows the words of a subcommand.
fn after<'a>(texts: &[&'a str], words: &[&str]) -> Option<Vec<&'a str>> {
    let (head, rest) = texts.split_at_checked(words.len())?;
    (head == words).then(|| rest.to_vec())
}

fn changes(name: &str, texts: &[&str]) -> bool {
    let all = |operands: &[&str], least: usize| {
        operands.len() >= least && operands.iter().all(|operand| is_in_project(operand))
    };
    match name {
        "git" => git(texts),
        "sed" => sed_in_place(texts),
        "sort" => sorts_into(texts),
        "patch" => {
            texts.contains(&"--dry-run")
                && options(
                    texts,
                    "RNsu",
                    "pi",
                    &[&["dry-run", "reverse", "forward", "verbose", "strip=", "input="]],
                )
                .is_some()
        }
        // What it writes begins with its last word.
        "split" => options(texts, "dx", "abCln", &[&["lines=", "bytes=", "number=", "suffix-length="]])
            .is_some_and(|operands| all(&operands, 1)),
        "uniq" => readers::operands(name, texts).is_some_and(|operands| all(&operands, 2)),
        "chmod" => {
            let Some(operands) = options(texts, "vcf", "", &[&["verbose", "changes"]]) else { return false };
            operands.split_first().is_some_and(|(mode, files)| is_plain_mode(mode) && all(files, 1))
        }
        "ln" => {
            // Without `-s` it gives a file a second name, by which undo doesn't know it.
            texts.iter().any(|word| *word == "--symbolic" || is_cluster_with(word, 's'))
                && options(texts, "sfnvrT", "", &[&["symbolic", "force", "no-dereference", "relative"]])
                    .is_some_and(|operands| all(&operands, 2))
        }
        "install" => {
            let mode = |pair: &[&str]| matches!(pair, ["-m", mode] if !is_plain_mode(mode));
            !texts.windows(2).any(mode)
                && !texts.iter().any(|word| word.starts_with("-m") && word.len() > 2)
                && options(texts, "dDpvC", "m", &[]).is_some_and(|operands| all(&operands, 1))
        }
        _ => CHANGING.iter().any(|changing: &Changing| {
            changing.name == name
                && options(texts, changing.flags, changing.valued, &[changing.long])
                    .is_some_and(|operands| all(&operands, changing.least))
        }),
    }
}

fn is_cluster_with(word: &str, option: char) -> bool {
    !word.starts_with("--") && word.strip_prefix('-').is_some_and(|cluster| cluster.contains(option))
}

/// A mode that gives nobody else's rights away: no `s`, no fourth digit.
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

/// `sed -i` with a script that would only print without it.
fn sed_in_place(texts: &[&str]) -> bool {
    let in_place = |word: &str| -> bool {
        let suffix =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        match word.strip_prefix("--in-place") {
            Some("") => true,
            Some(rest) => rest.strip_prefix('=').is_some_and(suffix),
            // Behind the letter there is a suffix; `-ie` isn't `-i -e`.
            None => word.strip_prefix("-i").or_else(|| word.strip_prefix("-Ei")).is_some_and(suffix),
        }
    };
    let rest: Vec<&str> = texts.iter().copied().filter(|word| !in_place(word)).collect();
    // A script that begins so isn't one of them.
    rest.len() + 1 == texts.len()
        && sed::files(&rest)
            .is_some_and(|files| !files.is_empty() && files.iter().all(|it| is_in_project(it)))
}

/// `sort -o FILE`
fn sorts_into(texts: &[&str]) -> bool {
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
    matches!(written.as_slice(), [file] if is_in_project(file)) && readers::operands("sort", &rest).is_some()
}

/// Git's commands that change the index and files, and lose nothing that git hasn't kept.
fn git(texts: &[&str]) -> bool {
    let Some((command, rest)) = texts.split_first() else { return false };
    let taken = |flags: &str, valued: &str, long: &[&str]| options(rest, flags, valued, &[long]);
    let inside =
        |operands: Vec<&str>| operands.iter().all(|it| *it == "." || *it == ":/" || is_in_project(it));
    match *command {
        "add" => taken("AuNvn", "", &["all", "update", "intent-to-add", "verbose", "dry-run", "refresh"])
            .is_some_and(inside),
        // It keeps to the tree and out of git's own; the tool tries it out, as it doesn't say what it writes.
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
            // It takes away only what git has, as it is; with `-r` whole trees.
            let flags = if rest.contains(&"--cached") { "rqn" } else { "qn" };
            taken(flags, "", &["cached", "quiet", "dry-run"]).is_some_and(inside)
        }
        "restore" => {
            rest.iter().any(|word| matches!(*word, "--staged" | "-S"))
                && taken("Sq", "", &["staged", "quiet"]).is_some_and(inside)
        }
        // Any other word may be a commit that the branch would go to.
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
                options(rest, "ukqS", "m", &[&long]).is_some_and(|it| it.is_empty() || inside(it))
            }
            _ => false,
        },
        _ => false,
    }
}
