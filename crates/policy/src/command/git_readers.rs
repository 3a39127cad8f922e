//! Git commands that only read.
//!
//! Git reads the settings of its repository, which can name programs: pagers, diff drivers,
//! filters, monitors. They are trusted here because tools can't write git's own files, which are
//! read-only to commands in the sandbox. Arguments that bring in others (`-c`, `-C`, `--git-dir`,
//! `--ext-diff`, `--output`, `-O`, `%G?`, a remote) are not accepted.

use super::options::{UNKNOWN_REST, operands_if_known};

/// A subcommand with its accepted options, as in `readers`.
struct GitReadCommand {
    name: &'static str,
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static [&'static str]],
}

/// Options for the format of differences.
const DIFF_OPTIONS: &[&str] = &[
    "patch",
    "no-patch",
    "stat?",
    "numstat",
    "shortstat",
    "dirstat?",
    "summary",
    "name-only",
    "name-status",
    "raw",
    "unified=",
    "word-diff?",
    "color-words?",
    "color?",
    "no-color",
    "no-ext-diff",
    "no-textconv",
    "minimal",
    "patience",
    "histogram",
    "diff-algorithm=",
    "find-renames?",
    "find-copies?",
    "no-renames",
    "diff-filter=",
    "ignore-all-space",
    "ignore-space-change",
    "ignore-space-at-eol",
    "ignore-blank-lines",
    "function-context",
    "inter-hunk-context=",
    "check",
    "full-index",
    "binary",
    "abbrev?",
    "text",
    "exit-code",
    "quiet",
    "relative?",
    "compact-summary",
    "no-prefix",
    "ignore-submodules?",
    "submodule?",
];
/// Options that select commits.
const LOG_OPTIONS: &[&str] = &[
    "oneline",
    "graph",
    "all",
    "decorate?",
    "no-decorate",
    "since=",
    "after=",
    "until=",
    "before=",
    "author=",
    "committer=",
    "grep=",
    "all-match",
    "invert-grep",
    "regexp-ignore-case",
    "extended-regexp",
    "fixed-strings",
    "follow",
    "pretty?",
    "format=",
    "abbrev-commit",
    "no-abbrev-commit",
    "no-merges",
    "merges",
    "first-parent",
    "reverse",
    "date=",
    "relative-date",
    "max-count=",
    "skip=",
    "branches?",
    "tags?",
    "remotes?",
    "cc",
    "topo-order",
    "date-order",
    "author-date-order",
    "simplify-by-decoration",
    "full-history",
    "left-right",
    "cherry-pick",
    "cherry-mark",
    "boundary",
    "no-walk?",
    "source",
    "count",
    "show-pulls",
    "ancestry-path",
    "no-notes",
    "root",
];
/// Options of `git blame`, which runs no program.
const BLAME_OPTIONS: &[&str] =
    &["porcelain", "line-porcelain", "date=", "show-email", "root", "minimal", "abbrev="];
const LOG_FLAGS: &str = "psuwbRaiEFPzqgmctMCB0123456789";
const LOG_VALUED: &str = "nSGULlX";

const GIT_READ_COMMANDS: &[GitReadCommand] = &[
    GitReadCommand { name: "blame", flags: "wcefnsltMC", valued: "L", long: &[BLAME_OPTIONS] },
    GitReadCommand { name: "cat-file", flags: "ptse", valued: "", long: &[] },
    GitReadCommand {
        name: "check-ignore",
        flags: "vqn",
        valued: "",
        long: &[&["verbose", "quiet", "no-index"]],
    },
    GitReadCommand {
        name: "count-objects",
        flags: "vH",
        valued: "",
        long: &[&["verbose", "human-readable"]],
    },
    GitReadCommand {
        name: "describe",
        flags: "",
        valued: "",
        long: &[&["tags", "all", "always", "long", "dirty?", "abbrev=", "match="]],
    },
    GitReadCommand {
        name: "diff",
        flags: "psuwbRazMCB0123456789",
        valued: "SGUlX",
        long: &[DIFF_OPTIONS, &["cached", "staged", "merge-base", "no-index"]],
    },
    GitReadCommand { name: "check-attr", flags: "az", valued: "", long: &[&["all", "cached"]] },
    GitReadCommand { name: "cherry", flags: "v", valued: "", long: &[&["abbrev?"]] },
    GitReadCommand { name: "diff-files", flags: "pqsrz", valued: "U", long: &[DIFF_OPTIONS] },
    GitReadCommand { name: "diff-index", flags: "prsmz", valued: "U", long: &[DIFF_OPTIONS, &["cached"]] },
    GitReadCommand {
        name: "diff-tree",
        flags: "prstzmcMC",
        valued: "U",
        long: &[DIFF_OPTIONS, &["root", "no-commit-id", "cc"]],
    },
    GitReadCommand {
        name: "for-each-ref",
        flags: "",
        valued: "",
        long: &[&["count=", "sort=", "format=", "contains?", "merged?", "no-merged?", "points-at="]],
    },
    GitReadCommand {
        name: "fsck",
        flags: "",
        valued: "",
        long: &[&[
            "full",
            "strict",
            "no-dangling",
            "dangling",
            "unreachable",
            "connectivity-only",
            "no-progress",
        ]],
    },
    GitReadCommand {
        name: "grep",
        flags: "aIiwvhHEGPFnlLczpWqor0123456789",
        valued: "efmABC",
        long: &[&[
            "cached",
            "untracked",
            "text",
            "ignore-case",
            "word-regexp",
            "invert-match",
            "extended-regexp",
            "perl-regexp",
            "basic-regexp",
            "fixed-strings",
            "line-number",
            "column",
            "files-with-matches",
            "files-without-match",
            "name-only",
            "only-matching",
            "count",
            "color?",
            "no-color",
            "break",
            "heading",
            "show-function",
            "function-context",
            "context=",
            "after-context=",
            "before-context=",
            "max-depth=",
            "and",
            "or",
            "not",
            "all-match",
            "quiet",
            "max-count=",
            "full-name",
            "null",
        ]],
    },
    GitReadCommand { name: "log", flags: LOG_FLAGS, valued: LOG_VALUED, long: &[DIFF_OPTIONS, LOG_OPTIONS] },
    GitReadCommand {
        name: "ls-files",
        flags: "cdmoiskutvzf",
        valued: "xX",
        long: &[&[
            "cached",
            "deleted",
            "modified",
            "others",
            "ignored",
            "stage",
            "unmerged",
            "killed",
            "exclude-standard",
            "exclude=",
            "full-name",
            "error-unmatch",
            "directory",
            "eol",
            "abbrev?",
        ]],
    },
    GitReadCommand {
        name: "ls-tree",
        flags: "drtlz",
        valued: "",
        long: &[&["name-only", "name-status", "full-name", "full-tree", "long", "abbrev?"]],
    },
    GitReadCommand {
        name: "merge-base",
        flags: "a",
        valued: "",
        long: &[&["all", "is-ancestor", "octopus", "fork-point"]],
    },
    GitReadCommand {
        name: "name-rev",
        flags: "",
        valued: "",
        long: &[&["tags", "name-only", "always", "refs="]],
    },
    GitReadCommand {
        name: "rev-list",
        flags: "0123456789",
        valued: "n",
        long: &[LOG_OPTIONS, &["objects", "parents", "children"]],
    },
    GitReadCommand {
        name: "rev-parse",
        flags: "q",
        valued: "",
        long: &[&[
            "abbrev-ref?",
            "short?",
            "show-toplevel",
            "show-prefix",
            "show-cdup",
            "git-dir",
            "absolute-git-dir",
            "is-inside-work-tree",
            "is-bare-repository",
            "verify",
            "quiet",
            "symbolic-full-name",
            "all",
            "branches?",
            "tags?",
            "remotes?",
            "git-common-dir",
            "is-shallow-repository",
        ]],
    },
    GitReadCommand {
        name: "shortlog",
        flags: "nsec",
        valued: "",
        long: &[LOG_OPTIONS, &["numbered", "summary", "email", "committer"]],
    },
    GitReadCommand { name: "show", flags: LOG_FLAGS, valued: LOG_VALUED, long: &[DIFF_OPTIONS, LOG_OPTIONS] },
    GitReadCommand {
        name: "show-ref",
        flags: "sdqh",
        valued: "",
        long: &[&["heads", "tags", "head", "dereference", "hash?", "verify", "quiet", "abbrev?"]],
    },
    GitReadCommand {
        name: "status",
        flags: "sbuvz",
        valued: "",
        long: &[&[
            "short",
            "branch",
            "porcelain?",
            "long",
            "verbose",
            "untracked-files?",
            "ignored?",
            "show-stash",
            "ahead-behind",
            "no-ahead-behind",
            "renames",
            "no-renames",
            "column?",
            "no-column",
            "ignore-submodules?",
        ]],
    },
    GitReadCommand {
        name: "whatchanged",
        flags: LOG_FLAGS,
        valued: LOG_VALUED,
        long: &[DIFF_OPTIONS, LOG_OPTIONS],
    },
];

/// Returns true if `git` with these arguments only reads.
pub(super) fn only_reads(arguments: &[&str]) -> bool {
    let arguments = match arguments {
        ["--no-pager" | "-P", rest @ ..] => rest,
        all => all,
    };
    let Some((&command, rest)) = arguments.split_first() else { return false };
    if verifies_signatures(rest) || rest.iter().any(|argument| may_hide_option(argument)) {
        return false;
    }
    // After `--`, what looks like an option to list or get is the name or the value to set.
    if matches!(command, "branch" | "config" | "tag") && rest.contains(&"--") {
        return false;
    }
    match (command, rest) {
        ("branch", rest) => lists_branches(rest),
        ("tag", []) | ("remote", [] | ["-v" | "--verbose"]) => true,
        ("tag", rest) => lists_tags(rest),
        ("remote", ["get-url", name]) => has_no_options(&[name]),
        ("config", rest) => reads_config(rest),
        ("stash", ["list"]) | ("worktree", ["list"]) => true,
        ("stash", ["list", rest @ ..]) => {
            operands_if_known(rest, LOG_FLAGS, LOG_VALUED, &[DIFF_OPTIONS, LOG_OPTIONS]).is_some()
        }
        ("worktree", ["list", rest @ ..]) => operands_if_known(rest, "vz", "", &[&["verbose", "porcelain"]])
            .is_some_and(|operands| operands.is_empty()),
        ("archive", ["--list" | "-l"]) => true,
        ("apply", rest) => {
            // Each of these options disables applying.
            rest.iter().any(|word| matches!(*word, "--check" | "--stat" | "--numstat" | "--summary"))
                && operands_if_known(
                    rest,
                    "pCRv",
                    "",
                    &[&["check", "stat", "numstat", "summary", "verbose", "reverse"]],
                )
                .is_some()
        }
        ("bisect", ["log"]) | ("symbolic-ref", ["--short", "HEAD"] | ["HEAD"] | ["-q", "HEAD"]) => true,
        ("status", rest) => {
            // `-u` takes its value in the same word, or none.
            let rest: Vec<&str> = rest
                .iter()
                .map(|word| if matches!(*word, "-uno" | "-uall" | "-unormal") { "-u" } else { *word })
                .collect();
            is_reading_command(command, &rest)
        }
        ("stash", ["show", rest @ ..]) => operands_if_known(rest, "pu", "", &[DIFF_OPTIONS]).is_some(),
        ("reflog", [] | ["show"]) => true,
        ("reflog", ["show", rest @ ..]) => {
            operands_if_known(rest, "0123456789", "n", &[LOG_OPTIONS]).is_some()
        }
        ("reflog", rest @ [option, ..]) if option.starts_with('-') => {
            operands_if_known(rest, "0123456789", "n", &[LOG_OPTIONS])
                .is_some_and(|operands| operands.is_empty())
        }
        ("version", []) => true,
        _ => is_reading_command(command, rest),
    }
}

fn is_reading_command(command: &str, rest: &[&str]) -> bool {
    let reading = GIT_READ_COMMANDS.iter().find(|reading| reading.name == command);
    reading.is_some_and(|it| operands_if_known(rest, it.flags, it.valued, it.long).is_some())
}

/// Returns true for `git config` that reads: a key without a value.
fn reads_config(arguments: &[&str]) -> bool {
    const CONFIG_LONG_OPTIONS: &[&str] = &[
        "get",
        "get-all",
        "get-regexp",
        "list",
        "null",
        "name-only",
        "show-origin",
        "show-scope",
        "global",
        "system",
        "local",
        "worktree",
        "bool",
        "int",
        "path",
        "type=",
        "default=",
        "file=",
        "includes",
        "no-includes",
    ];
    let key = |name: &str| name.contains('.') && !name.contains(UNKNOWN_REST);
    let has = |names: &[&str]| arguments.iter().any(|argument| names.contains(argument));
    // Git accepts abbreviated options, so an unknown argument must not be one.
    let Some(operands) = operands_if_known(arguments, "lz", "f", &[CONFIG_LONG_OPTIONS]) else {
        return false;
    };
    match operands.as_slice() {
        [] => has(&["-l", "--list"]),
        [name] if has(&["--get", "--get-all", "--get-regexp"]) => !name.contains(UNKNOWN_REST),
        // Older versions of git read these as keys without a section, and refuse them.
        [name] => *name == "list" || key(name),
        ["get", name] => key(name) && !has(&["-l", "--list"]),
        [_, _] => has(&["--get", "--get-all", "--get-regexp"]),
        _ => false,
    }
}

/// Returns true for `git tag` that lists. A name without a listing option would create a tag.
fn lists_tags(arguments: &[&str]) -> bool {
    const LISTING_OPTIONS: &[&str] = &[
        "list",
        "sort=",
        "contains=",
        "no-contains=",
        "merged?",
        "no-merged?",
        "points-at=",
        "ignore-case",
        "color?",
        "column?",
        "no-column",
    ];
    let lists = arguments.iter().any(|argument| matches!(*argument, "-l" | "--list"));
    let numbered = |argument: &str| {
        argument.strip_prefix("-n").is_some_and(|count| count.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let rest: Vec<&str> = arguments.iter().copied().filter(|argument| !numbered(argument)).collect();
    operands_if_known(&rest, "li", "", &[LISTING_OPTIONS])
        .is_some_and(|operands| operands.is_empty() || lists)
}

/// Returns true if the unknown content of a word could be or become another option: only the values
/// of these options may be unknown.
fn may_hide_option(argument: &str) -> bool {
    const HARMLESS_VALUE_OPTIONS: &[&str] = &[
        "--author=",
        "--committer=",
        "--since=",
        "--after=",
        "--until=",
        "--before=",
        "--grep=",
        "--max-count=",
        "--skip=",
        "--unified=",
        "--max-depth=",
        "-n",
        "-S",
        "-G",
        "-U",
        "-L",
    ];
    argument.starts_with('-')
        && argument.contains(UNKNOWN_REST)
        && !HARMLESS_VALUE_OPTIONS.iter().any(|known| argument.starts_with(known))
}

/// Returns true for `%G…` in a format, also as `%+G`, and for sorting by it: both run the program
/// that checks signatures.
fn verifies_signatures(arguments: &[&str]) -> bool {
    let formats = |argument: &&str| {
        argument.contains("(signature")
            || argument.contains("(*signature")
            || argument
                .split('%')
                .skip(1)
                .any(|rest| rest.trim_start_matches(['+', '-', ' ']).starts_with('G'))
    };
    let sorts = |value: &str| value.contains("signature") || value.contains(UNKNOWN_REST);
    arguments.iter().any(formats)
        || arguments.iter().any(|argument| argument.strip_prefix("--sort=").is_some_and(sorts))
        || arguments.windows(2).any(|pair| {
            matches!(pair, [option, value]
                if matches!(*option, "--sort" | "--format" | "--pretty") && sorts(value))
        })
}

fn has_no_options(arguments: &[&str]) -> bool {
    arguments.iter().all(|argument| !argument.starts_with('-'))
}

/// Returns true for `git branch` that lists. A name without `--list` would create a branch.
fn lists_branches(arguments: &[&str]) -> bool {
    const LISTING_OPTIONS: &[&str] = &[
        "list",
        "all",
        "remotes",
        "verbose",
        "show-current",
        "color?",
        "no-color",
        "column?",
        "sort=",
        "contains=",
        "no-contains=",
        "points-at=",
        "ignore-case",
    ];
    match operands_if_known(arguments, "arvl", "", &[LISTING_OPTIONS]) {
        Some(operands) => {
            operands.is_empty() || arguments.iter().any(|argument| matches!(*argument, "--list" | "-l"))
        }
        None => match arguments {
            ["--contains" | "--no-contains" | "--merged" | "--no-merged"] => true,
            ["--contains" | "--no-contains" | "--merged" | "--no-merged", commit] => {
                has_no_options(&[commit])
            }
            _ => false,
        },
    }
}
