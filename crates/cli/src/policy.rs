//! `jm policy`: what is allowed, asked about and denied here, and why.

use journeyman_host::HostError;
use journeyman_host::config::Environment;
use journeyman_host::format::printable;
use journeyman_host::policy_check::{
    CallDescription, FailedCase, PolicyOverview, PolicyQuery, Promotion, UnpromotedLine, check_cases,
    decision_name, describe_answer, describe_overview, judge_call,
};
use journeyman_host::root::project_root;
use journeyman_protocol::Mode;
use journeyman_terminal::{StyledLine, stdout_paint};

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
        print_lines(&describe_answer(&answer));
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

fn print_lines(lines: &[StyledLine]) {
    lines.iter().for_each(|line| reportln!("{}", stdout_paint().paint_line(line)));
}

fn explain_policy(environment: &Environment, args: &AnswerArgs) -> Result<u8, HostError> {
    let root = project_root(environment, args.project.directory.as_deref())?;
    let overview = PolicyOverview::load(environment, &root)?;
    if args.json {
        print_json_line(&overview.to_json())?;
        return Ok(0);
    }
    print_lines(&describe_overview(&overview));
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
