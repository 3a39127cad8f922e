//! `jm policy`: what is allowed, asked about and denied here, and why.

use std::path::{Path, PathBuf};

use journeyman_host::config::{Environment, LoadedPolicy, Trusted, load as load_layers, load_policy};
use journeyman_host::policy_check::{
    PolicyQuery, decision_name, effects_on, find_checks, load_cases, quote_command, verdicts_to_json,
};
use journeyman_host::state::project_root;
use journeyman_host::{ADMIN_CONFIG, ADMIN_POLICY, HostError};
use journeyman_policy::{Explained, check_tool_name};
use journeyman_protocol::{Decision, Effects, Enforcement, Mode, SandboxNeeds, SandboxTier, Verdict};
use journeyman_sandbox::clean;
use serde_json::{Value, json};

use crate::args::{PolicyCheckArgs, PolicyCommand, PolicyExplainArgs, PolicyTestArgs};
use crate::color;
use crate::color::Paint;
use crate::runtime::open_state;
use crate::stdout::{print_json_line, say};

/// A permission is needed.
const EXIT_ASK: u8 = 6;
/// Nobody can permit it.
const EXIT_DENY: u8 = 7;
pub(crate) async fn policy(environment: &Environment, command: PolicyCommand) -> Result<u8, HostError> {
    match command {
        PolicyCommand::Check(args) => check(environment, &args).await,
        PolicyCommand::Explain(args) => explain(environment, &args),
        PolicyCommand::Test(args) => test(environment, &args),
    }
}

fn loaded(environment: &Environment, directory: Option<&Path>) -> Result<(PathBuf, LoadedPolicy), HostError> {
    let root = project_root(environment, directory)?;
    let loaded = load_policy(environment, &root, Some(Path::new(ADMIN_POLICY)), &[])?;
    Ok((root, loaded))
}

async fn check(environment: &Environment, args: &PolicyCheckArgs) -> Result<u8, HostError> {
    if args.words.is_empty() && args.tool.is_none() {
        return Err(HostError::usage(
            "there is no command to judge; write it as one argument: jm policy check 'git push --force'. For a call \
             of another tool there is --tool, with --path or --host",
        ));
    }
    if let Some(tool) = &args.tool {
        check_tool_name(tool, &|_| false)
            .map_err(|unknown| HostError::usage(format_args!("--tool: {unknown}")))?;
    }
    let (root, loaded) = loaded(environment, args.directory.as_deref())?;
    let given = args.mode.as_deref().map(str::parse::<Mode>).transpose().map_err(HostError::usage)?;
    let tool = args.tool.clone().unwrap_or_else(|| "run_command".to_owned());
    let effects = Effects {
        command: quote_command(&args.words),
        hosts: args.host.clone(),
        ..effects_on(&tool, &args.path)?
    };
    let asked = PolicyQuery { tool, agent: args.agent.clone(), effects };
    let config =
        load_layers(environment, &root, &[], Trusted::ThisRun, Some(Path::new(ADMIN_CONFIG)))?.config;
    let dirs = open_state(environment)?;
    let sandbox = dirs.sandbox(&config)?.enforcement(&SandboxNeeds::ALL).await.ok();
    let policy = loaded.policy.with_checks(find_checks(environment, &dirs, &root, &config)?);
    let modes = given.map_or_else(|| Mode::ALL.to_vec(), |mode| vec![mode]);
    let verdicts: Vec<(Mode, Verdict)> =
        modes.into_iter().map(|mode| (mode, asked.judge(&policy, mode, sandbox.as_ref()))).collect();
    let mode = given.unwrap_or_else(|| config.mode_or(Mode::Edit));
    let (parts, complete) = policy.explain(&asked.call(mode, sandbox.as_ref()));
    let verdict = asked.judge(&policy, mode, sandbox.as_ref());
    if args.json {
        print_json_line(&verdicts_to_json(&asked, &verdicts, &parts, complete))?;
    } else {
        show(color::stdout(), &asked, &verdicts, &parts, complete);
    }
    Ok(match verdict.decision {
        Decision::Allow => 0,
        Decision::Ask => EXIT_ASK,
        Decision::Deny => EXIT_DENY,
    })
}

fn painted(paint: Paint, decision: Decision) -> String {
    let word = format!("{:<5}", decision_name(decision));
    match decision {
        Decision::Allow => paint.green(&word),
        Decision::Ask => paint.yellow(&word),
        Decision::Deny => paint.red(&word),
    }
}

fn show(
    paint: Paint,
    asked: &PolicyQuery,
    verdicts: &[(Mode, Verdict)],
    parts: &[Explained],
    complete: bool,
) {
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

/// The effect of each mode, for people.
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

/// The rules that no mode and no rule file changes.
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
                            "line": id.line, "name": rule.name, "decision": decision_name(rule.decision),
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
        print_json_line(&json!({ "modes": modes, "always": ALWAYS, "files": files }))?;
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
            let called = rule.name.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default();
            let why = rule.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let text = clean(format!("{rule}{called}{why}").as_bytes()).replace('\n', "\n        ");
            say!("    {} {text} {}", painted(paint, rule.decision), paint.dim(&format!("line {}", id.line)));
        }
    }
    Ok(0)
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
        for case in load_cases(&environment.cwd.join(file), &shown)? {
            let mode = case.mode.unwrap_or(Mode::Edit);
            let verdict = case.query()?.judge(&policy, mode, Some(&sandbox));
            if verdict.decision == case.decision {
                held += 1;
                continue;
            }
            failed += 1;
            say!(
                "{} {shown}: {} in mode {mode}: {}, not {}: {}",
                color::stdout().red("✗"),
                clean(case.describe().as_bytes()),
                decision_name(verdict.decision),
                decision_name(case.decision),
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
