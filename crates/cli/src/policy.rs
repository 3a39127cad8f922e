//! `jm policy`: what is allowed, asked about and denied here, and why.

use journeyman_host::HostError;
use journeyman_host::config::Environment;
use journeyman_host::format::{format_count, printable};
use journeyman_host::policy_check::{
    CallDescription, FIXED_RULES, FailedCase, MODE_EFFECTS, PolicyAnswer, PolicyOverview, PolicyQuery,
    Promotion, UnpromotedLine, check_cases, decision_name, judge_call,
};
use journeyman_host::root::project_root;
use journeyman_protocol::{Decision, Mode};
use journeyman_terminal::{Paint, stdout_paint};

use crate::args::{AnswerArgs, PolicyCheckArgs, PolicyCommand, PolicyPromoteArgs, PolicyTestArgs};
use crate::output::print_json_line;
use crate::runtime::open_state;

pub(crate) async fn run_policy_command(
    environment: &Environment,
    command: PolicyCommand,
) -> Result<u8, HostError> {
    match command {
        PolicyCommand::Check(args) => check_call(environment, &args).await,
        PolicyCommand::Explain(args) => explain_policy(environment, &args),
        PolicyCommand::Test(args) => run_policy_tests(environment, &args),
        PolicyCommand::Promote(args) => promote_instructions(environment, &args),
    }
}

async fn check_call(environment: &Environment, args: &PolicyCheckArgs) -> Result<u8, HostError> {
    if args.words.is_empty() && args.tool.is_none() {
        return Err(HostError::usage(
            "there is no command to judge; write it as one argument: jm policy check 'git push --force'. For a call \
             of another tool there is --tool, with --path or --host",
        ));
    }
    let root = project_root(environment, args.answer.project.directory.as_deref())?;
    let mode = args.mode.as_deref().map(str::parse::<Mode>).transpose().map_err(HostError::usage)?;
    let call = CallDescription {
        words: args.words.clone(),
        tool: args.tool.clone(),
        paths: args.path.clone(),
        hosts: args.host.clone(),
        agent: args.agent.clone(),
    };
    let query = PolicyQuery::new(call, "--tool")?;
    let answer = judge_call(environment, &*open_state(environment)?, &root, query, mode).await?;
    if args.answer.json {
        print_json_line(&answer.to_json())?;
    } else {
        print_answer(&answer);
    }
    Ok(answer.exit_code())
}

fn promote_instructions(environment: &Environment, args: &PolicyPromoteArgs) -> Result<u8, HostError> {
    let root = project_root(environment, args.project.directory.as_deref())?;
    let found = Promotion::from_instructions(environment, &*open_state(environment)?, &root)?;
    for UnpromotedLine { file, line, text, reason } in &found.unpromoted {
        errln!("{}:{line} is no rule: {reason}: {}", printable(file), printable(text));
    }
    for left_out in &found.left_out {
        errln!("left out: {}", printable(left_out));
    }
    if found.rules.is_empty() {
        errln!("the instruction files have no hard rule that names a path or a command");
        return Ok(1);
    }
    let policy = found.policy_text();
    if !policy.is_empty() {
        outln!("# .journeyman/policy.toml\n{}", printable(&policy));
    }
    if let Some(line) = found.checks_line() {
        outln!("# .journeyman/config.toml\n{}", printable(&line));
    }
    if args.write {
        for file in found.write_files()? {
            errln!("written: {}", file.display());
        }
    } else {
        errln!("jm policy promote --write puts them there");
    }
    Ok(0)
}

fn format_decision(paint: Paint, decision: Decision) -> String {
    let word = format!("{:<5}", decision_name(decision));
    match decision {
        Decision::Allow => paint.green(&word),
        Decision::Ask => paint.yellow(&word),
        Decision::Deny => paint.red(&word),
    }
}

fn print_answer(answer: &PolicyAnswer) {
    let paint = stdout_paint();
    let PolicyAnswer { query, verdicts, parts, is_understood, .. } = answer;
    let line = |text: &str| printable(&text).replace('\n', "\n    ");
    reportln!("{}", paint.bold(&line(query.effects.command.as_ref().unwrap_or(&query.tool))));
    if let Some((_, verdict)) = verdicts.first() {
        reportln!("level {}", verdict.level);
        if let Some(lost) = &verdict.destroys {
            reportln!("{} {}", paint.red("would be lost:"), line(lost));
        }
    }
    if !parts.is_empty() {
        reportln!("\n{}", paint.bold("what it runs"));
    }
    for part in answer.distinct_parts() {
        reportln!(
            "  {} {}",
            line(&part.words),
            paint.dim(&format!("level {}: {}", part.level, line(&part.reason)))
        );
        for (id, decision) in &part.rules {
            reportln!("    {} {}", format_decision(paint, *decision), line(&id.to_string()));
        }
    }
    if !is_understood {
        reportln!("  {}", paint.yellow("not all of it is understood: no rule about words allows it"));
    }
    reportln!("\n{}", paint.bold("what a mode decides"));
    for (mode, verdict) in verdicts {
        reportln!(
            "  {:<5} {} {}",
            mode.name(),
            format_decision(paint, verdict.decision),
            line(&verdict.reason)
        );
        for rule in &verdict.rules {
            reportln!("              {}", paint.dim(&line(rule)));
        }
    }
}

fn explain_policy(environment: &Environment, args: &AnswerArgs) -> Result<u8, HostError> {
    let root = project_root(environment, args.project.directory.as_deref())?;
    let overview = PolicyOverview::load(environment, &root)?;
    if args.json {
        print_json_line(&overview.to_json())?;
        return Ok(0);
    }
    let paint = stdout_paint();
    reportln!("{}", paint.bold("modes"));
    for (mode, effect) in MODE_EFFECTS {
        reportln!("  {:<5} {effect}", mode.name());
    }
    reportln!("\n{}", paint.bold("in every mode"));
    for rule in FIXED_RULES {
        reportln!("  {rule}");
    }
    reportln!("\n{}", paint.bold("rules: a deny beats an ask beats an allow, whichever file they are in"));
    for file in &overview.loaded.files {
        let state = file.rules.map_or_else(|| "not there".to_owned(), |count| format_count(count, "rule"));
        reportln!("  {} {} ({state})", file.layer, printable(&file.path.display()));
        for (id, rule) in overview.rules_of(file) {
            let called = rule.name.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default();
            let why = rule.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let text = printable(&format_args!("{rule}{called}{why}")).replace('\n', "\n        ");
            let line = paint.dim(&format!("line {}", id.line));
            reportln!("    {} {text} {line}", format_decision(paint, rule.decision));
        }
    }
    Ok(0)
}

fn run_policy_tests(environment: &Environment, args: &PolicyTestArgs) -> Result<u8, HostError> {
    let root = project_root(environment, args.project.directory.as_deref())?;
    // Loading checks every example.
    let overview = PolicyOverview::load(environment, &root)?;
    let policy = &overview.loaded.policy;
    let (mut held, mut failed) = (0, 0);
    for file in &args.files {
        let shown = printable(&file.display());
        let (holding, failures) = check_cases(policy, &environment.cwd.join(file), &shown)?;
        held += holding;
        failed += failures.len();
        for FailedCase { call, mode, decision, expected, reason } in failures {
            let (decision, expected) = (decision_name(decision), decision_name(expected));
            let mark = stdout_paint().red("✗");
            let (call, reason) = (printable(&call), printable(&reason));
            reportln!("{mark} {shown}: {call} in mode {mode}: {decision}, not {expected}: {reason}");
        }
    }
    let (examples, rules, all) = (overview.count_examples(), policy.rules().len(), held + failed);
    reportln!("{examples} examples of {rules} rules hold; {held} of {all} cases hold");
    Ok(u8::from(failed > 0))
}
