//! Rejects allow rules that are too wide: programs that run arbitrary code, and patterns that match
//! everything.

use super::compiled::{COMMAND_TOOLS, CompiledRule};
use super::parse::{RuleProblem, new_problem};

/// The condition under which allowing a program is too wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WideCondition {
    /// Always: the code comes from elsewhere, or the program lifts limits.
    Always,
    /// Unless every word is literal and one of them names the code: otherwise it comes from the
    /// input.
    NotNamed,
    /// With a wildcard among its words.
    Wildcard,
    /// With a wildcard as its subcommand.
    Subcommand,
}

const RUNS_INPUT: &str = "runs whatever its input says";
const RUNS_ARGUMENTS: &str = "runs any program it is told to";
const CHANGES_RIGHTS: &str = "gives other rights to whatever it runs";
const RUNS_REMOTELY: &str = "runs anything on another machine";
const RUNS_CODE: &str = "runs any code";
const HAS_SUBCOMMANDS: &str = "does very different things, from reading to publishing, by its subcommand";

/// Programs that a rule can't allow, with the reason.
const WIDE_PROGRAMS: &[(&[&str], WideCondition, &str)] = &[
    (&["xargs", "parallel", "at", "batch", "eval", "source", ".", "entr"], WideCondition::Always, RUNS_INPUT),
    (
        &["sudo", "su", "doas", "pkexec", "run0", "runuser", "chroot", "nsenter", "unshare"],
        WideCondition::Always,
        CHANGES_RIGHTS,
    ),
    (&["ssh", "mosh", "telnet", "rsh"], WideCondition::Always, RUNS_REMOTELY),
    (
        &[
            "sh",
            "bash",
            "zsh",
            "dash",
            "ksh",
            "mksh",
            "ash",
            "fish",
            "csh",
            "tcsh",
            "nu",
            "pwsh",
            "powershell",
            "busybox",
            "toybox",
            "rbash",
        ],
        WideCondition::NotNamed,
        RUNS_CODE,
    ),
    (
        &[
            "python",
            "python2",
            "python3",
            "pypy",
            "pypy3",
            "ipython",
            "node",
            "nodejs",
            "deno",
            "bun",
            "tsx",
            "ts-node",
            "ruby",
            "irb",
            "perl",
            "php",
            "lua",
            "luajit",
            "Rscript",
            "R",
            "julia",
            "ghci",
            "runghc",
            "guile",
            "tclsh",
            "expect",
            "osascript",
            "java",
            "jshell",
            "scala",
            "groovy",
            "elixir",
            "iex",
            "erl",
            "awk",
            "gawk",
            "mawk",
            "nawk",
            "sqlite3",
            "psql",
            "mysql",
            "gdb",
            "lldb",
            "vim",
            "vi",
            "nvim",
            "emacs",
            "ed",
            "ex",
        ],
        WideCondition::NotNamed,
        RUNS_CODE,
    ),
    (
        &[
            "env",
            "timeout",
            "nice",
            "ionice",
            "nohup",
            "setsid",
            "stdbuf",
            "time",
            "watch",
            "script",
            "strace",
            "ltrace",
            "command",
            "exec",
            "builtin",
            "flock",
            "chrt",
            "taskset",
            "unbuffer",
            "systemd-run",
            "coproc",
            "find",
            "fd",
            "mise",
            "nix-shell",
            "perf",
            "hyperfine",
            "ld.so",
        ],
        WideCondition::Wildcard,
        RUNS_ARGUMENTS,
    ),
    (
        &["npx", "pnpx", "bunx", "uvx", "pipx", "dlx"],
        WideCondition::Wildcard,
        "runs any package of a registry",
    ),
    (
        &["make", "gmake", "just", "task", "rake", "ninja"],
        WideCondition::Wildcard,
        "runs any target, and variables change its commands",
    ),
    (
        &["docker", "podman", "nerdctl", "kubectl", "oc"],
        WideCondition::Wildcard,
        "starts anything, with the rights of its server",
    ),
    (&["curl", "wget", "nc", "ncat", "socat"], WideCondition::Wildcard, "sends anything anywhere"),
    (&["rm", "dd", "shred", "mkfs"], WideCondition::Wildcard, "destroys whatever it is told to"),
    (
        &[
            "git",
            "npm",
            "pnpm",
            "yarn",
            "cargo",
            "go",
            "uv",
            "poetry",
            "pip",
            "pip3",
            "gem",
            "bundle",
            "mvn",
            "gradle",
            "dotnet",
            "gh",
            "glab",
            "aws",
            "gcloud",
            "az",
            "terraform",
            "helm",
            "systemctl",
            "apt",
            "apt-get",
            "brew",
        ],
        WideCondition::Subcommand,
        HAS_SUBCOMMANDS,
    ),
];

/// Returns the base of a program's name: `python3` for `python3.12`.
fn program_base(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let trimmed = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let dotted = name.get(trimmed.len()..).is_some_and(|rest| rest.contains('.'));
    match (dotted, trimmed) {
        (true, "") | (false, _) => name,
        (true, trimmed) => trimmed,
    }
}

fn find_wide_program(program: &str) -> Option<(WideCondition, &'static str)> {
    let name = match program_base(program) {
        loader
            if loader.starts_with("ld-linux")
                || loader.starts_with("ld.so")
                || loader.starts_with("ld-musl") =>
        {
            "ld.so"
        }
        box_ if box_.starts_with("busybox.") => "busybox",
        other => other,
    };
    let known = |(names, ..): &&(&[&str], WideCondition, &'static str)| names.contains(&name);
    WIDE_PROGRAMS.iter().find(known).map(|(_, when, why)| (*when, *why))
}

/// Returns the reason if a rule for exactly these words would allow more than them.
pub(crate) fn wide_words_reason(words: &[&str]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let (when, why) = find_wide_program(program)?;
    let wide = match when {
        WideCondition::Always => true,
        WideCondition::NotNamed => !names_its_code(program, arguments),
        // `env` alone shows variables; in `env X` the program X is named.
        WideCondition::Wildcard => false,
        WideCondition::Subcommand => arguments.is_empty(),
    };
    wide.then(|| format!("`{program}` {why}"))
}

/// Options of interpreters with a value that is not code.
const NON_CODE_VALUE_OPTIONS: &[&str] = &[
    "-W",
    "-X",
    "-o",
    "+o",
    "-O",
    "+O",
    "--rcfile",
    "--init-file",
    "-r",
    "--require",
    "--import",
    "--loader",
    "--experimental-loader",
    "-I",
    "-l",
    "-d",
    "-C",
    "--conditions",
    "--env-file",
    "-v",
    "-F",
];

/// Returns true if one of an interpreter's arguments names the code, so that it does not come from
/// the input.
fn names_its_code(program: &str, arguments: &[&str]) -> bool {
    let input = |word: &&str| {
        matches!(*word, "-" | "-s" | "-i") || word.starts_with("/dev/") || word.starts_with("/proc/")
    };
    if arguments.iter().any(input) {
        return false;
    }
    let code = program_base(program) == "php";
    let mut setting = false;
    arguments.iter().any(|word| {
        let value = std::mem::take(&mut setting);
        let cluster = word.starts_with(['-', '+']) && !word.starts_with("--") && word.ends_with(['o', 'O']);
        setting = (NON_CODE_VALUE_OPTIONS.contains(word) && !(code && *word == "-r"))
            || (cluster && !word.contains('c'));
        !value && !word.starts_with(['-', '+'])
    })
}

/// Options before a subcommand that have a value.
const VALUED_OPTIONS: &[&str] = &[
    "-c",
    "-C",
    "--git-dir",
    "--work-tree",
    "--config",
    "--config-env",
    "--cwd",
    "--prefix",
    "--dir",
    "--directory",
    "--project",
];

/// Returns true if the subcommand after the options is a wildcard.
fn has_open_subcommand(rule: &CompiledRule) -> bool {
    let mut place = 1;
    while let Some(position) = rule.command.get(place).filter(|position| position.is_literal()) {
        if !position.literals().any(|word| word.starts_with(['-', '+'])) {
            return false;
        }
        place += 1;
        if position.literals().any(|word| VALUED_OPTIONS.contains(&word)) {
            if !rule.command.get(place).is_some_and(super::compiled::WordPosition::is_literal) {
                return true;
            }
            place += 1;
        }
    }
    rule.command.get(place).is_none() || rule.is_wildcard_at(place)
}

/// Returns true if a rule names a subcommand that runs another program.
fn names_running_subcommand(program: &str, rule: &CompiledRule) -> bool {
    let running: &[&str] = match program_base(program) {
        "uv" => &["run", "tool", "x"],
        "poetry" => &["run"],
        "bundle" => &["exec"],
        "npm" | "pnpm" | "yarn" => &["x", "exec", "dlx"],
        "git" => &["bisect", "submodule", "filter-branch"],
        _ => return false,
    };
    let mut words = rule.command.iter().skip(1).flat_map(super::compiled::WordPosition::literals);
    words.any(|word| running.contains(&word))
}

/// Returns true if a program runs its input as code, or lifts limits.
pub(crate) fn runs_unbounded_code(program: &str) -> bool {
    find_wide_program(program).is_some_and(|(when, _)| when == WideCondition::Always)
}

/// Rejects a rule that would allow everything.
pub(super) fn check_not_too_wide(rule: &CompiledRule) -> Result<(), RuleProblem> {
    const AUTO_ADVICE: &str = "For everything that the sandbox confines there is mode `auto`";
    let everything = |what: &str| Err(new_problem(what, AUTO_ADVICE));
    if !rule.has_target_pattern() {
        let named = rule.rule.tools.iter().all(|tool| tool.trim_matches(['*', '_']).len() > "mcp".len());
        if rule.tools.is_empty() || !named {
            return everything("it allows everything: it names no command, path, host or tool");
        }
        if let Some(tool) = COMMAND_TOOLS.iter().find(|tool| rule.rule.tools.iter().any(|it| it == *tool)) {
            return everything(&format!("`{tool}` runs any command, and the rule doesn't say which"));
        }
    }
    if rule.paths.iter().any(super::glob::PathPattern::is_everything) {
        return Err(new_problem(
            "it allows every path",
            "For every file of the project there is mode `edit`",
        ));
    }
    if rule.hosts.contains(&super::compiled::HostMatcher::Every) {
        return Err(new_problem("it allows every host", "Name the hosts, such as `*.example.com`"));
    }
    let Some(program) = rule.command.first() else { return Ok(()) };
    if !program.is_literal() {
        return everything("it allows any program: the first word of `command` has a wildcard");
    }
    let literal = rule.command.iter().all(super::compiled::WordPosition::is_literal);
    for name in program.literals() {
        let Some((when, why)) = find_wide_program(name) else { continue };
        let first = rule.command.get(1);
        let wide = match when {
            WideCondition::Always => true,
            WideCondition::Wildcard => !literal,
            WideCondition::NotNamed => {
                let words: Vec<&str> =
                    rule.command.iter().skip(1).flat_map(super::compiled::WordPosition::literals).collect();
                !literal || !names_its_code(name, &words)
            }
            WideCondition::Subcommand => {
                first.is_none()
                    || (!literal && (has_open_subcommand(rule) || names_running_subcommand(name, rule)))
            }
        };
        if wide {
            let help = match when {
                WideCondition::Always => AUTO_ADVICE.to_owned(),
                WideCondition::NotNamed | WideCondition::Wildcard => {
                    format!("Name every word, such as [\"{name}\", \"…\", \"…\"]. {AUTO_ADVICE}")
                }
                WideCondition::Subcommand => {
                    format!("Name the subcommand, such as [\"{name}\", \"…\", \"**\"]")
                }
            };
            return Err(new_problem(format!("it allows everything: `{name}` {why}"), help));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_program_has_two_reasons() {
        let mut names: Vec<&str> = WIDE_PROGRAMS.iter().flat_map(|(names, ..)| *names).copied().collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn versions_are_the_same_program() {
        for (name, is) in
            [("python3.12", "python"), ("/usr/bin/python3", "python3"), ("bash.exe", "bash"), ("7z", "7z")]
        {
            assert_eq!(program_base(name), is);
        }
    }
}
