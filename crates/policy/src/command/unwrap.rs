//! Finds the programs that other programs run.

use journeyman_syntax::shell::Word;

use super::unwrap_result::{
    InnerCommand, UNKNOWN_PROGRAM, UnwrapResult, option_values, skip_options, unwrap_joined_words,
};
use super::unwrap_table::{
    INTERPRETER_PROGRAMS, PREFIX_PROGRAMS, PROGRAM_OPTIONS, PrefixProgram, SHELL_ESCAPE_PROGRAMS,
    SHELL_PROGRAMS,
};
use super::variables::is_harmless_variable;

const UNKNOWN_OPTION: &str = "not every option of it is known";
const RUNS_ITS_INPUT: &str = "it runs what it reads";
const CHANGES_NAMES: &str = "it changes what later names mean";
/// The names of a program's own input.
const INPUT_PATHS: &[&str] = &["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// Returns what `program` (a name without its directory) runs, if it is a wrapper. The first of
/// `words` is the program.
pub(super) fn unwrap_program(program: &str, words: &[Word]) -> Option<UnwrapResult> {
    let arguments = words.get(1..).unwrap_or_default();
    let version = matches!(arguments, [only] if only.known && only.text == "--version");
    if SHELL_PROGRAMS.contains(&program) && !version {
        return Some(unwrap_shell(program, arguments));
    }
    let name = if is_loader(program) { "ld.so" } else { program };
    if let Some(prefix) = PREFIX_PROGRAMS.iter().find(|prefix| prefix.name == name) {
        return unwrap_prefix(prefix, arguments);
    }
    match program {
        "env" => Some(unwrap_env(arguments)),
        "xargs" => Some(unwrap_xargs(arguments)),
        "parallel" => Some(unwrap_parallel(arguments)),
        "find" | "gfind" => super::unwrap_find::unwrap_find(arguments),
        "fd" | "fdfind" => unwrap_fd(arguments),
        "eval" => Some(unwrap_joined_words(arguments)),
        "watch" => {
            let words = skip_options(arguments, "n", &["--interval"]);
            Some(unwrap_joined_words(words))
        }
        "trap" => Some(unwrap_trap(arguments)),
        "alias" if !arguments.is_empty() => Some(unwrap_alias(arguments)),
        "hash" | "enable" if !arguments.is_empty() => Some(UnwrapResult::from_unknown(CHANGES_NAMES)),
        // A name may precede a group of commands, which other shells read as words.
        "coproc" => Some(UnwrapResult {
            unclear: Some("shells differ about `coproc`"),
            ..UnwrapResult::from_words(arguments)
        }),
        "." | "source" => unwrap_source(arguments),
        "su" | "runuser" | "sg" => Some(unwrap_option_script(arguments, &["-c", "--command"])),
        "script" => Some(unwrap_option_script(arguments, &["-c", "--command"])),
        "ssh" => Some(unwrap_ssh(arguments)),
        "git" => super::unwrap_git::unwrap_git(arguments),
        "make" | "gmake" => unwrap_make(arguments),
        "npm" | "pnpm" | "yarn" | "bun" | "npx" | "bunx" | "pnpx" => unwrap_node(program, arguments),
        "docker" | "podman" | "nerdctl" => unwrap_container(arguments),
        "kubectl" | "oc" => {
            let at = arguments.iter().position(|word| word.text == "--")?;
            Some(UnwrapResult::from_words(arguments.get(at + 1..)?))
        }
        "tmux" | "screen" => Some(unwrap_terminal(arguments)),
        "busybox" | "toybox" => (!arguments.is_empty()).then(|| UnwrapResult::from_words(arguments)),
        _ => super::unwrap_tools::unwrap_tool(program, arguments)
            .or_else(|| unwrap_escapes(program, arguments)),
    }
}

/// Returns true if all options before `rest` have no effect on the program that runs.
fn has_plain_options(arguments: &[Word], rest: &[Word], prefix: &PrefixProgram) -> bool {
    let taken = arguments.len().saturating_sub(rest.len());
    let mut value = false;
    arguments.iter().take(taken).all(|word| {
        if !word.known {
            return false;
        }
        if std::mem::take(&mut value) {
            return true;
        }
        let text = word.text.as_str();
        if let Some(long) = text.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or_default();
            value = prefix.long_valued.contains(&text);
            return text == "--" || value || prefix.long.contains(&name);
        }
        let Some(cluster) = text.strip_prefix('-') else { return true };
        for (at, option) in cluster.char_indices() {
            if prefix.valued.contains(option) {
                value = at + option.len_utf8() == cluster.len();
                return true;
            }
            if !prefix.flags.contains(option) {
                return false;
            }
        }
        true
    })
}

fn unwrap_prefix(prefix: &PrefixProgram, arguments: &[Word]) -> Option<UnwrapResult> {
    let mut rest = skip_options(arguments, prefix.valued, prefix.long_valued);
    // Each word before the program must stay one word.
    let fixed = rest.iter().take(prefix.operands).all(|word| word.known || (word.single && !word.splits));
    let plain = has_plain_options(arguments, rest, prefix) && fixed;
    if prefix.name == "command" && !plain {
        return None;
    }
    if prefix.name == "flock"
        && let Some(script) = rest.get(1..).and_then(|rest| find_option_value(rest, &["-c", "--command"]))
    {
        return Some(UnwrapResult::from_script(script.text.clone()));
    }
    rest = rest.get(prefix.operands..).unwrap_or_default();
    if prefix.name == "setarch" {
        // The options follow the architecture.
        rest = skip_options(rest, "", &[]);
    }
    // `sudo A=1 x`.
    if prefix.assignments {
        while let [first, after @ ..] = rest {
            if !first.text.contains('=') || first.text.starts_with('=') {
                break;
            }
            rest = after;
        }
    }
    if rest.is_empty() {
        // Without a program it may start a shell.
        return (prefix.name != "command" && prefix.name != "exec")
            .then(|| UnwrapResult::from_unknown(UNKNOWN_PROGRAM));
    }
    let mut wrapped = UnwrapResult::from_words(rest);
    wrapped.transparent = prefix.transparent && plain;
    if !plain {
        wrapped.unclear = Some(UNKNOWN_OPTION);
    }
    Some(wrapped)
}

fn unwrap_env(arguments: &[Word]) -> UnwrapResult {
    if arguments.is_empty() {
        return UnwrapResult { transparent: true, ..UnwrapResult::default() };
    }
    let mut rest = arguments;
    let mut unclear = None;
    // True while only harmless variables precede the program.
    let mut plain = true;
    while let [first, after @ ..] = rest {
        let text = first.text.as_str();
        plain &= first.known && !first.dialect && (!text.starts_with('-') || matches!(text, "-i" | "--"))
            || !is_env_word(text);
        if let Some(script) = text.strip_prefix("--split-string=") {
            return UnwrapResult::from_script(script);
        }
        // `-S` may be the end of a cluster, followed by its text.
        if let (true, Some(at)) = (text.starts_with('-') && !text.starts_with("--"), text.find('S')) {
            let script = text.get(at + 1..).filter(|script| !script.is_empty());
            let rest: Vec<&str> =
                script.into_iter().chain(after.iter().map(|word| word.text.as_str())).collect();
            return UnwrapResult::from_script(rest.join(" "));
        }
        if text == "--split-string" {
            let rest: Vec<&str> = after.iter().map(|word| word.text.as_str()).collect();
            return UnwrapResult::from_script(rest.join(" "));
        }
        match text {
            "-u" | "--unset" | "-C" | "-iC" | "--chdir" => rest = after.get(1..).unwrap_or_default(),
            "-i" | "-" | "-0" | "--ignore-environment" | "--" => rest = after,
            _ if text.starts_with("-C") || text.starts_with("--chdir=") => rest = after,
            _ if text.starts_with('-') => {
                unclear = Some(UNKNOWN_OPTION);
                rest = after;
            }
            _ if text.contains('=') => {
                if first.splits || !is_harmless_variable(text.split('=').next().unwrap_or_default()) {
                    unclear = Some("it sets a variable that may change what runs");
                }
                rest = after;
            }
            _ => break,
        }
    }
    UnwrapResult { unclear, transparent: plain && unclear.is_none(), ..UnwrapResult::from_words(rest) }
}

/// Returns true if a word belongs to `env`, and not to the program that it runs.
fn is_env_word(text: &str) -> bool {
    text.starts_with('-') || text.contains('=')
}

/// Returns words with an unknown one: the inner program with words that its wrapper adds.
fn append_unknown(words: &[Word], what: &str) -> Vec<Word> {
    words.iter().cloned().chain([Word::unknown(what)]).collect()
}

fn unwrap_xargs(arguments: &[Word]) -> UnwrapResult {
    const FLAG_OPTIONS: &str = "0rtx";
    const VALUED_OPTIONS: &str = "adEILnPs";
    const XARGS_LONG_OPTIONS: &[&str] =
        &["null", "no-run-if-empty", "delimiter", "max-args", "max-procs", "max-lines", "replace", "verbose"];
    const LONG_VALUED: &[&str] =
        &["--arg-file", "--delimiter", "--max-args", "--max-procs", "--max-chars", PROCESS_SLOT_OPTION];
    // It sets any variable, including `PATH`.
    const PROCESS_SLOT_OPTION: &str = "--process-slot-var";
    let rest = skip_options(arguments, VALUED_OPTIONS, LONG_VALUED);
    let prefix = PrefixProgram {
        flags: FLAG_OPTIONS,
        valued: VALUED_OPTIONS,
        long: XARGS_LONG_OPTIONS,
        long_valued: LONG_VALUED,
        ..PrefixProgram::NO_OPTIONS
    };
    let plain = has_plain_options(arguments, rest, &prefix)
        && !arguments.iter().any(|word| word.text == PROCESS_SLOT_OPTION);
    let inner = match rest {
        [] => vec![Word::literal("echo"), Word::unknown("…")],
        words => {
            // Also in a cluster, or as the value of another option.
            let replaces = |text: &str| {
                text.starts_with("--replace")
                    || text.starts_with('-') && !text.starts_with("--") && text.contains(['I', 'i'])
            };
            let options = arguments.get(..arguments.len() - words.len()).unwrap_or_default();
            let given = options.iter().map(|word| word.text.as_str()).filter(|text| replaces(text));
            let given: Vec<&str> = given.collect();
            if let [only, more @ ..] = given.as_slice() {
                // With an unknown mark, any word may contain it. The last of several marks counts.
                let pair = |pair: &[Word]| matches!(pair, [a, b] if a.text == "-I" && b.text == "{}");
                let known_mark =
                    more.is_empty() && plain && (*only == "-I{}" || options.windows(2).any(pair));
                let mark = |word: &Word| match known_mark && !word.text.contains("{}") {
                    true => word.clone(),
                    false => Word::unknown(word.text.clone()),
                };
                words.iter().map(mark).collect()
            } else {
                append_unknown(words, "…")
            }
        }
    };
    UnwrapResult {
        inner: vec![InnerCommand::Words(inner)],
        transparent: plain,
        unclear: (!plain).then_some(UNKNOWN_OPTION),
        input: false,
    }
}

fn unwrap_parallel(arguments: &[Word]) -> UnwrapResult {
    let rest = skip_options(
        arguments,
        "jaNnLISd",
        &["--jobs", "--arg-file", "--delay", "--timeout", "--colsep", "--joblog", "--results"],
    );
    let end = rest.iter().position(|word| word.text.starts_with(":::")).unwrap_or(rest.len());
    let template = rest.get(..end).unwrap_or_default();
    match template {
        // Each input line, or each word after `:::`, is a command.
        [] => UnwrapResult { input: true, ..UnwrapResult::from_unknown(RUNS_ITS_INPUT) },
        [only] if only.text.contains(' ') => UnwrapResult::from_script(only.text.clone()),
        words => UnwrapResult {
            inner: vec![InnerCommand::Words(append_unknown(words, "…"))],
            ..UnwrapResult::default()
        },
    }
}

fn unwrap_fd(arguments: &[Word]) -> Option<UnwrapResult> {
    let joined = |word: &Word| {
        let value = ["--exec=", "--exec-batch="].iter().find_map(|option| word.text.strip_prefix(option))?;
        Some(Word { text: value.to_owned(), ..word.clone() })
    };
    let runs = |text: &str| matches!(text, "-x" | "-X" | "--exec" | "--exec-batch");
    let at = arguments.iter().position(|word| {
        runs(&word.text) || is_cluster_ending(&word.text, ['x', 'X']) || joined(word).is_some()
    })?;
    let words: Vec<Word> = arguments
        .get(at)
        .and_then(joined)
        .into_iter()
        .chain(arguments.get(at + 1..)?.iter().cloned())
        .collect();
    let end = words.iter().position(|word| word.text == ";").unwrap_or(words.len());
    Some(UnwrapResult {
        inner: vec![InnerCommand::Words(append_unknown(words.get(..end)?, "{}"))],
        ..UnwrapResult::default()
    })
}

fn is_cluster_ending(text: &str, options: [char; 2]) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.len() > 2 && text.ends_with(options)
}

fn unwrap_trap(arguments: &[Word]) -> UnwrapResult {
    match skip_options(arguments, "", &[]) {
        [] => UnwrapResult::default(),
        [action, ..] => unwrap_joined_words(std::slice::from_ref(action)),
    }
}

fn unwrap_alias(arguments: &[Word]) -> UnwrapResult {
    let values = arguments.iter().filter_map(|word| word.text.split_once('='));
    UnwrapResult {
        inner: values.map(|(_, value)| InnerCommand::Script(value.to_owned())).collect(),
        unclear: Some(CHANGES_NAMES),
        ..UnwrapResult::default()
    }
}

fn find_option_value<'w>(arguments: &'w [Word], options: &[&str]) -> Option<&'w Word> {
    let at = arguments.iter().position(|word| {
        options.contains(&word.text.as_str())
            || options.iter().any(|option| {
                option.len() == 2
                    && word.text.starts_with('-')
                    && !word.text.starts_with("--")
                    && word.text.ends_with(option.trim_start_matches('-'))
            })
    })?;
    arguments.get(at + 1)
}

fn unwrap_option_script(arguments: &[Word], options: &[&str]) -> UnwrapResult {
    let long = arguments.iter().find_map(|word| word.text.strip_prefix("--command="));
    let wrapped = long.map(UnwrapResult::from_script).or_else(|| {
        find_option_value(arguments, options).map(|word| unwrap_joined_words(std::slice::from_ref(word)))
    });
    wrapped.unwrap_or_else(|| UnwrapResult::from_unknown("it starts a shell"))
}

fn unwrap_shell(program: &str, arguments: &[Word]) -> UnwrapResult {
    // Other shells have languages of their own.
    let known = matches!(program, "sh" | "bash" | "dash");
    let mut rest = arguments;
    let mut script = false;
    let mut plain = true;
    while let [first, after @ ..] = rest {
        if !first.known {
            return UnwrapResult::from_unknown(UNKNOWN_PROGRAM);
        }
        let text = first.text.as_str();
        match text {
            "--" | "-" => {
                rest = after;
                break;
            }
            "--rcfile" | "--init-file" | "-O" | "+O" => {
                plain = false;
                rest = after.get(1..).unwrap_or_default();
            }
            _ if text.starts_with("--") => {
                plain &= matches!(text, "--norc" | "--noprofile" | "--posix");
                rest = after;
            }
            _ if text.len() > 1 && text.starts_with(['-', '+']) => {
                let cluster = text.get(1..).unwrap_or_default();
                script |= cluster.contains('c') && text.starts_with('-');
                plain &= cluster.bytes().all(|byte| b"ceuxvfno".contains(&byte));
                if cluster.ends_with(['o', 'O']) {
                    rest = after.get(1..).unwrap_or_default();
                } else {
                    rest = after;
                }
            }
            _ => break,
        }
    }
    match (script, rest) {
        (true, [text, others @ ..]) if text.known => UnwrapResult {
            transparent: known && plain && others.iter().all(|word| word.known && !word.dialect),
            unclear: (!known).then_some("it is for a shell with a language of its own"),
            ..UnwrapResult::from_script(text.text.clone())
        },
        (true, [text, ..]) => unwrap_joined_words(std::slice::from_ref(text)),
        (true, []) => UnwrapResult::default(),
        (false, []) => UnwrapResult { input: true, ..UnwrapResult::default() },
        // A script's file; or the script's arguments, if `-s` makes the shell read its input.
        (false, [file, ..]) => UnwrapResult {
            input: INPUT_PATHS.contains(&file.text.as_str())
                || arguments.iter().any(|word| word.text == "-s"),
            ..UnwrapResult::default()
        },
    }
}

/// Returns what `. FILE` runs, if that is its input or not known.
fn unwrap_source(arguments: &[Word]) -> Option<UnwrapResult> {
    let file = arguments.first()?;
    if INPUT_PATHS.contains(&file.text.as_str()) {
        return Some(UnwrapResult { input: true, ..UnwrapResult::default() });
    }
    (!file.known).then(|| UnwrapResult::from_unknown(UNKNOWN_PROGRAM))
}

/// Returns true for a path of the system's dynamic loader.
fn is_loader(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    program.contains("/lib") && (name.starts_with("ld-linux") || name.starts_with("ld-musl"))
}

fn unwrap_ssh(arguments: &[Word]) -> UnwrapResult {
    const VALUED_OPTIONS: &str = "BbcDEeFIiJLlmOopQRSWw";
    let mut wrapped = UnwrapResult::default();
    for (index, word) in arguments.iter().enumerate() {
        let value = match word.text.as_str() {
            "-o" => arguments.get(index + 1).map(|word| word.text.as_str()),
            text => text.strip_prefix("-o"),
        };
        let command = value.and_then(|value| value.split_once(['=', ' '])).filter(|(key, _)| {
            ["proxycommand", "localcommand", "knownhostscommand"]
                .contains(&key.trim().to_ascii_lowercase().as_str())
        });
        wrapped.inner.extend(command.map(|(_, command)| InnerCommand::Script(command.to_owned())));
    }
    let rest = skip_options(arguments, VALUED_OPTIONS, &[]);
    let command = rest.get(1..).map(|rest| skip_options(rest, VALUED_OPTIONS, &[])).unwrap_or_default();
    if !command.is_empty() {
        let there = unwrap_joined_words(command);
        wrapped.inner.extend(there.inner);
        wrapped.unclear = there.unclear;
    }
    wrapped
}

fn unwrap_make(arguments: &[Word]) -> Option<UnwrapResult> {
    let shell = arguments.iter().find_map(|word| word.text.strip_prefix("SHELL="))?;
    Some(UnwrapResult {
        unclear: Some("it chooses the shell that runs all the rest"),
        ..UnwrapResult::from_script(shell)
    })
}

fn unwrap_node(program: &str, arguments: &[Word]) -> Option<UnwrapResult> {
    let rest = match program {
        "npx" | "bunx" | "pnpx" => arguments,
        _ => {
            let (verb, rest) = arguments.split_first()?;
            if !matches!(verb.text.as_str(), "exec" | "x" | "dlx") {
                return None;
            }
            rest
        }
    };
    if let Some(script) = find_option_value(rest, &["-c", "--call"]) {
        return Some(unwrap_joined_words(std::slice::from_ref(script)));
    }
    let words = skip_options(rest, "pw", &["--package", "--workspace", "--prefix"]);
    Some(if words.is_empty() {
        UnwrapResult::from_unknown(UNKNOWN_PROGRAM)
    } else {
        UnwrapResult::from_words(words)
    })
}

fn unwrap_container(arguments: &[Word]) -> Option<UnwrapResult> {
    const VALUED_OPTIONS: &str = "vewuphlmac";
    const LONG_OPTIONS: &[&str] = &[
        "--name",
        "--volume",
        "--env",
        "--workdir",
        "--user",
        "--publish",
        "--network",
        "--net",
        "--entrypoint",
        "--mount",
        "--env-file",
        "--hostname",
        "--label",
        "--memory",
        "--cpus",
        "--platform",
        "--add-host",
        "--device",
        "--gpus",
        "--cap-add",
        "--cap-drop",
        "--security-opt",
        "--pid",
        "--ipc",
        "--restart",
        "--tmpfs",
        "--shm-size",
        "--ulimit",
    ];
    let at = arguments.iter().position(|word| matches!(word.text.as_str(), "run" | "exec" | "create"))?;
    let rest = skip_options(arguments.get(at + 1..)?, VALUED_OPTIONS, LONG_OPTIONS);
    // The image or the container.
    let words = rest.get(1..).unwrap_or_default();
    (!words.is_empty()).then(|| UnwrapResult::from_words(words))
}

fn unwrap_terminal(arguments: &[Word]) -> UnwrapResult {
    const TMUX_COMMANDS: &[&str] = &[
        "new-session",
        "new",
        "new-window",
        "neww",
        "split-window",
        "splitw",
        "respawn-pane",
        "run-shell",
        "run",
        "send-keys",
        "send",
        "if-shell",
        "pipe-pane",
    ];
    let rest = skip_options(arguments, "LSftTXpcsn", &[]);
    let rest = match rest {
        [command, after @ ..] if TMUX_COMMANDS.contains(&command.text.as_str()) => {
            skip_options(after, "ctsnxyFe", &[])
        }
        other => other,
    };
    let mut wrapped = unwrap_joined_words(rest);
    wrapped.unclear = Some("it runs in a terminal of its own");
    wrapped
}

/// Handles options and arguments that name a program: `tar --to-command=x`, `vim -c '!x'`.
fn unwrap_escapes(program: &str, arguments: &[Word]) -> Option<UnwrapResult> {
    let mut inner: Vec<InnerCommand> = Vec::new();
    if let Some((_, options)) = PROGRAM_OPTIONS.iter().find(|(name, _)| *name == program) {
        inner.extend(option_values(arguments, options).map(|value| {
            let value = value.strip_prefix("exec=").unwrap_or(&value).to_owned();
            InnerCommand::Script(value)
        }));
    }
    if SHELL_ESCAPE_PROGRAMS.contains(&program) {
        inner.extend(
            arguments.iter().filter_map(|word| find_shell_escape(&word.text)).map(InnerCommand::Script),
        );
    }
    if matches!(program, "gdb" | "lldb")
        && let Some(at) = arguments.iter().position(|word| matches!(word.text.as_str(), "--args" | "--"))
    {
        inner.push(InnerCommand::Words(arguments.get(at + 1..).unwrap_or_default().to_vec()));
    }
    let interprets =
        INTERPRETER_PROGRAMS.iter().any(|name| program.starts_with(name)) && arguments.is_empty();
    (!inner.is_empty() || interprets).then(|| UnwrapResult {
        inner,
        input: interprets,
        ..UnwrapResult::default()
    })
}

/// Returns the text after the character by which an editor, a debugger or a database client runs a
/// command.
fn find_shell_escape(text: &str) -> Option<String> {
    let text = text.trim_start_matches(['+', ':', ' ']);
    let signs = [
        "!",
        "\\!",
        "shell ",
        "sh ",
        ".shell ",
        ".system ",
        "system ",
        "silent !",
        "silent! !",
        "%!",
        "r !",
        "r!",
        "term ",
    ];
    let found = signs.iter().find_map(|sign| text.strip_prefix(sign))?;
    (!found.trim().is_empty()).then(|| found.trim().to_owned())
}
