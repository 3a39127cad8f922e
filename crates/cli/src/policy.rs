//! `jm policy`: what is allowed, asked about and denied here, and why.

use crate::open_state;
use std::path::{Path, PathBuf};

use journeyman_host::Context as _;
use journeyman_host::config::{Config, Environment, LoadedPolicy, Trusted, load as load_layers, load_policy};
use journeyman_policy::{Call, Explained, MAIN_AGENT, Policy, known_tool};
use journeyman_protocol::{Decision, Effects, Enforcement, Mode, SandboxNeeds, RelPath, SandboxTier, Verdict};
use journeyman_sandbox::clean;
use journeyman_tools::Registry;
use journeyman_workspace::ListOptions;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::{PolicyCheckArgs, PolicyCommand, PolicyExplainArgs, PolicyTestArgs};
use crate::color::Paint;
use crate::stdout::say;
use crate::{color, run};
use journeyman_host::HostError;
use journeyman_host::state::{StateDirs, project_root};
use journeyman_host::{ADMIN_CONFIG, ADMIN_POLICY};

/// A permission is needed.
const EXIT_ASK: u8 = 6;
/// Nobody can permit it.
const EXIT_DENY: u8 = 7;
/// Files that the search for checks looks at, as a session's does.
const CHECK_FILES: usize = 20_000;
/// Largest file of cases, in bytes.
const MAX_CASES: u64 = 1024 * 1024;

pub(crate) async fn policy(environment: &Environment, command: PolicyCommand) -> Result<u8, HostError> {
    match command {
        PolicyCommand::Check(args) => check(environment, &args).await,
        PolicyCommand::Explain(args) => explain(environment, &args),
        PolicyCommand::Test(args) => test(environment, &args),
    }
}

fn loaded(environment: &Environment, directory: Option<&Path>) -> Result<(PathBuf, LoadedPolicy), HostError> {
    let root = project_root(environment, directory)?;
    let loaded = load_policy(environment, &root, Some(Path::new(ADMIN_POLICY)))?;
    Ok((root, loaded))
}

/// What a call would do, and who makes it.
struct Asked {
    tool: String,
    agent: Option<String>,
    effects: Effects,
}

impl Asked {
    fn judge(&self, policy: &Policy, mode: Mode, sandbox: Option<&Enforcement>) -> Verdict {
        policy.judge(&self.call(mode, sandbox))
    }

    fn call<'a>(&'a self, mode: Mode, sandbox: Option<&'a Enforcement>) -> Call<'a> {
        let confined = sandbox.is_some_and(|it| it.first_unmet(&SandboxNeeds::ALL).is_none());
        // As in a session: `auto` holds while commands are confined.
        let mode = if mode == Mode::Auto && !confined { Mode::Edit } else { mode };
        let agent = self.agent.as_deref().filter(|agent| *agent != MAIN_AGENT);
        Call { tool: &self.tool, agent, mode, effects: &self.effects, sandbox }
    }
}

/// Returns the effects of a call of `tool` on these paths: of a tool that only reads they are read.
fn effects_on(tool: &str, given: &[String]) -> Result<Effects, HostError> {
    let paths = paths(given)?;
    let reads = Registry::builtin().get(tool).is_ok_and(|tool| tool.is_read_only());
    let (reads, writes) = if reads { (paths, Vec::new()) } else { (Vec::new(), paths) };
    Ok(Effects { reads, writes, ..Effects::default() })
}

fn paths(given: &[String]) -> Result<Vec<RelPath>, HostError> {
    let parse = |path: &String| {
        RelPath::parse(path).map_err(|error| HostError::usage(format_args!("the path «{path}»: {error}")))
    };
    given.iter().map(parse).collect()
}

/// Words as a shell takes them for themselves. One is a command line already.
fn line(words: &[String]) -> Option<String> {
    let plain = |c: char| c.is_alphanumeric() || "_-./:=,+@%".contains(c);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    match words {
        [] => None,
        [line] => Some(line.clone()),
        words => Some(words.iter().map(quoted).collect::<Vec<_>>().join(" ")),
    }
}

async fn check(environment: &Environment, args: &PolicyCheckArgs) -> Result<u8, HostError> {
    if args.words.is_empty() && args.tool.is_none() {
        return Err(HostError::usage(
            "there is no command to judge; write it as one argument: jm policy check 'git push --force'. For a call \
             of another tool there is --tool, with --path or --host",
        ));
    }
    if let Some(tool) = &args.tool {
        known_tool(tool).map_err(|unknown| HostError::usage(format_args!("--tool: {unknown}")))?;
    }
    let (root, loaded) = loaded(environment, args.directory.as_deref())?;
    let given = args.mode.as_deref().map(str::parse::<Mode>).transpose().map_err(HostError::usage)?;
    let tool = args.tool.clone().unwrap_or_else(|| "run_command".to_owned());
    let effects =
        Effects { command: line(&args.words), hosts: args.host.clone(), ..effects_on(&tool, &args.path)? };
    let asked = Asked { tool, agent: args.agent.clone(), effects };
    let config =
        load_layers(environment, &root, &[], Trusted::ThisRun, Some(Path::new(ADMIN_CONFIG)))?.config;
    let dirs = open_state(environment)?;
    let sandbox = dirs.sandbox(&config)?.enforcement(&SandboxNeeds::ALL).await.ok();
    let policy = loaded.policy.with_checks(checks(environment, &dirs, &root, &config)?);
    let modes = given.map_or_else(|| Mode::ALL.to_vec(), |mode| vec![mode]);
    let verdicts: Vec<(Mode, Verdict)> =
        modes.into_iter().map(|mode| (mode, asked.judge(&policy, mode, sandbox.as_ref()))).collect();
    let mode = given.unwrap_or_else(|| config.mode_or(Mode::Edit));
    let (parts, complete) = policy.explain(&asked.call(mode, sandbox.as_ref()));
    let verdict = asked.judge(&policy, mode, sandbox.as_ref());
    if args.json {
        run::print_json_line(&as_json(&asked, &verdicts, &parts, complete))?;
    } else {
        show(color::stdout(), &asked, &verdicts, &parts, complete);
    }
    Ok(match verdict.decision {
        Decision::Allow => 0,
        Decision::Ask => EXIT_ASK,
        Decision::Deny => EXIT_DENY,
    })
}

/// The project's own checks, as a session finds them.
fn checks(
    environment: &Environment,
    dirs: &StateDirs,
    root: &Path,
    config: &Config,
) -> Result<Vec<String>, HostError> {
    if let Some(checks) = &config.checks {
        return Ok(checks.clone());
    }
    let workspace = dirs.open_workspace(root)?;
    let options = ListOptions { limit: CHECK_FILES, ..ListOptions::default() };
    let listing = workspace.list(options).context("the project")?;
    let found =
        journeyman_agent::verify::find(&workspace, &listing, &|name: &str| environment.has_program(name));
    Ok(found.into_iter().map(|check| check.command).collect())
}

fn name(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::Ask => "ask",
        Decision::Deny => "deny",
    }
}

fn painted(paint: Paint, decision: Decision) -> String {
    let word = format!("{:<5}", name(decision));
    match decision {
        Decision::Allow => paint.green(&word),
        Decision::Ask => paint.yellow(&word),
        Decision::Deny => paint.red(&word),
    }
}

fn as_json(asked: &Asked, verdicts: &[(Mode, Verdict)], parts: &[Explained], complete: bool) -> Value {
    let rules = |part: &Explained| -> Vec<Value> {
        let rule =
            |(id, decision): &(_, Decision)| json!({ "rule": format!("{id}"), "decision": name(*decision) });
        part.rules.iter().map(rule).collect()
    };
    let parts: Vec<Value> = parts
        .iter()
        .map(|part| {
            let level = part.level.number();
            json!({ "words": part.words, "level": level, "reason": part.reason, "rules": rules(part) })
        })
        .collect();
    let modes: Vec<Value> = verdicts
        .iter()
        .map(|(mode, verdict)| {
            json!({
                "mode": mode, "decision": verdict.decision, "level": verdict.level.number(),
                "reason": verdict.reason, "destroys": verdict.destroys, "rules": verdict.rules,
            })
        })
        .collect();
    json!({
        "tool": asked.tool, "command": asked.effects.command, "understood": complete, "parts": parts, "modes": modes,
    })
}

fn show(paint: Paint, asked: &Asked, verdicts: &[(Mode, Verdict)], parts: &[Explained], complete: bool) {
    let line = |text: &str| clean(text.as_bytes()).replace('\n', "\n    ");
    match &asked.effects.command {
        Some(command) => say!("{}", paint.bold(&line(command))),
        None => say!("{}", paint.bold(&line(&asked.tool))),
    }
    if let Some((_, verdict)) = verdicts.first() {
        say!("level {}", verdict.level);
        if let Some(lost) = &verdict.destroys {
            say!("{} {}", paint.red("would be lost:"), line(lost));
        }
    }
    if !parts.is_empty() {
        say!("\n{}", paint.bold("what it runs"));
    }
    for (place, part) in parts.iter().enumerate() {
        // What isn't understood is taken apart once more, roughly, and most of that was told.
        let told =
            |one: &Explained| one.words == part.words && one.level >= part.level && one.rules == part.rules;
        if parts.iter().take(place).any(told) {
            continue;
        }
        say!(
            "  {} {}",
            line(&part.words),
            paint.dim(&format!("level {}: {}", part.level, line(&part.reason)))
        );
        for (id, decision) in &part.rules {
            say!("    {} {}", painted(paint, *decision), line(&id.to_string()));
        }
    }
    if !complete {
        say!("  {}", paint.yellow("not all of it is understood: no rule about words allows it"));
    }
    say!("\n{}", paint.bold("what a mode decides"));
    for (mode, verdict) in verdicts {
        say!("  {:<5} {} {}", mode.name(), painted(paint, verdict.decision), line(&verdict.reason));
        for rule in &verdict.rules {
            say!("              {}", paint.dim(&line(rule)));
        }
    }
}

/// What each mode does, for people.
const MODES: [(Mode, &str); 4] = [
    (Mode::Plan, "reads (level 0); everything else is denied"),
    (Mode::Ask, "reads; edits, checks and commands are asked about"),
    (
        Mode::Edit,
        "reads, edits, also by commands, and runs the project's checks (level 1); other commands are asked about",
    ),
    (
        Mode::Auto,
        "also runs other commands (level 2) while the sandbox enforces all it should; without, as edit",
    ),
];

/// What no mode and no rule changes.
const ALWAYS: [&str; 4] = [
    "what reaches outside (level 3) is asked about every time, unless a rule names it exactly",
    "so is a command that isn't confined, and one that destroys what undoing can't bring back",
    "tools of MCP servers are asked about, unless a rule allows them",
    "git's own files are changed by git alone",
];

fn explain(environment: &Environment, args: &PolicyExplainArgs) -> Result<u8, HostError> {
    let (_, LoadedPolicy { policy, files }) = loaded(environment, args.directory.as_deref())?;
    if args.json {
        let files: Vec<Value> = files
            .iter()
            .map(|file| {
                let of = policy.rules().iter().filter(|(id, _)| id.layer == file.layer);
                let rules: Vec<Value> = of
                    .map(|(id, rule)| {
                        json!({
                            "line": id.line, "name": rule.name, "decision": name(rule.decision),
                            "on": rule.to_string(), "reason": rule.reason,
                        })
                    })
                    .collect();
                let there = file.rules.is_some();
                json!({ "layer": file.layer.name(), "path": file.path, "there": there, "rules": rules })
            })
            .collect();
        let modes: Vec<Value> =
            MODES.iter().map(|(mode, what)| json!({ "mode": mode, "does": what })).collect();
        run::print_json_line(&json!({ "modes": modes, "always": ALWAYS, "files": files }))?;
        return Ok(0);
    }
    let paint = color::stdout();
    say!("{}", paint.bold("modes"));
    for (mode, what) in MODES {
        say!("  {:<5} {what}", mode.name());
    }
    say!("\n{}", paint.bold("in every mode"));
    for what in ALWAYS {
        say!("  {what}");
    }
    say!("\n{}", paint.bold("rules: a deny beats an ask beats an allow, whichever file they are in"));
    for file in &files {
        let state = match file.rules {
            None => "not there".to_owned(),
            Some(1) => "1 rule".to_owned(),
            Some(count) => format!("{count} rules"),
        };
        say!("  {} {} ({state})", file.layer, clean(file.path.display().to_string().as_bytes()));
        for (id, rule) in policy.rules().iter().filter(|(id, _)| id.layer == file.layer) {
            let called = rule.name.as_ref().map(|name| format!(" «{name}»")).unwrap_or_default();
            let why = rule.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let text = clean(format!("{rule}{called}{why}").as_bytes()).replace('\n', "\n        ");
            say!("    {} {text} {}", painted(paint, rule.decision), paint.dim(&format!("line {}", id.line)));
        }
    }
    Ok(0)
}

/// A file of cases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    #[serde(default)]
    case: Vec<Case>,
}

/// What a call should come to.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    command: Option<String>,
    tool: Option<String>,
    path: Option<String>,
    host: Option<String>,
    agent: Option<String>,
    mode: Option<Mode>,
    decision: Decision,
}

impl Case {
    fn asked(&self) -> Result<Asked, HostError> {
        let tool = self.tool.clone().unwrap_or_else(|| "run_command".to_owned());
        let hosts = self.host.iter().cloned().collect();
        let on = effects_on(&tool, self.path.as_slice())?;
        let effects = Effects { command: self.command.clone(), hosts, ..on };
        known_tool(&tool).map_err(|unknown| HostError::usage(format_args!("a case: {unknown}")))?;
        Ok(Asked { tool, agent: self.agent.clone(), effects })
    }

    fn told(&self) -> String {
        let tool = self.command.is_none().then(|| self.tool.clone()).flatten();
        let said = [self.command.clone(), tool, self.path.clone(), self.host.clone()];
        said.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

fn test(environment: &Environment, args: &PolicyTestArgs) -> Result<u8, HostError> {
    // Loading checks every example.
    let (_, LoadedPolicy { policy, .. }) = loaded(environment, args.directory.as_deref())?;
    let examples: usize =
        policy.rules().iter().map(|(_, rule)| rule.matches.len() + rule.not_matches.len()).sum();
    let mut failed = 0;
    let mut held = 0;
    let sandbox = Enforcement::from_needs(SandboxTier::Namespaces, SandboxNeeds::ALL);
    for file in &args.files {
        let shown = clean(file.display().to_string().as_bytes());
        for case in cases(&environment.cwd.join(file), &shown)? {
            let mode = case.mode.unwrap_or(Mode::Edit);
            let verdict = case.asked()?.judge(&policy, mode, Some(&sandbox));
            if verdict.decision == case.decision {
                held += 1;
                continue;
            }
            failed += 1;
            say!(
                "{} {shown}: {} in mode {mode}: {}, not {}: {}",
                color::stdout().red("✗"),
                clean(case.told().as_bytes()),
                name(verdict.decision),
                name(case.decision),
                clean(verdict.reason.as_bytes()),
            );
        }
    }
    say!(
        "{examples} examples of {} rules hold; {held} of {} cases hold",
        policy.rules().len(),
        held + failed
    );
    Ok(u8::from(failed > 0))
}

fn cases(path: &Path, shown: &str) -> Result<Vec<Case>, HostError> {
    use std::io::Read as _;
    let unreadable =
        |error: std::io::Error| HostError::usage(format_args!("cannot read the cases in {shown}: {error}"));
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_CASES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_CASES {
        return Err(HostError::usage(format_args!("{shown} has more than {MAX_CASES} bytes; split it")));
    }
    let cases: Cases = toml::from_str(&text).map_err(|error| {
        let line = error
            .span()
            .map_or(1, |span| text.get(..span.start).unwrap_or_default().matches('\n').count() + 1);
        HostError::usage(format_args!("{shown}:{line}: {}", error.message()))
    })?;
    Ok(cases.case)
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_know_every_tool_by_name() {
        for spec in super::Registry::builtin().specs() {
            assert_eq!(journeyman_policy::known_tool(&spec.name), Ok(()));
        }
    }

    #[test]
    fn several_words_are_quoted_and_one_is_a_line() {
        let line =
            |words: &[&str]| super::line(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        assert_eq!(line(&["rm -rf x | y"]).as_deref(), Some("rm -rf x | y"));
        assert_eq!(line(&["rm", "-rf", "a b", "it's", ""]).as_deref(), Some("rm -rf 'a b' 'it'\\''s' ''"));
        assert_eq!(line(&[]), None);
    }
}
