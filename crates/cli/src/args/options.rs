//! The flags that the commands which start sessions have in common.

use std::path::PathBuf;

use clap::Args;
use journeyman_host::DeliveryOptions;
use journeyman_host::renderer::ProgressDetail;

use super::numbers::parse_count;

/// Where and with which model: shared by everything that starts a session.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ModelArgs {
    /// The model, as provider/name (anthropic/…, openai/…, gemini/…, ollama/…, …)
    #[arg(long, short, value_name = "PROVIDER/NAME")]
    pub(crate) model: Option<String>,
    /// An endpoint without any configuration; goes with --wire. Its key, if it wants one:
    /// $JM_API_KEY
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The protocol of --base-url: anthropic, responses, chat or gemini
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) wire: Option<String>,
    /// Output limit of one reply, in tokens [built-in: the model's own]
    #[arg(long, value_name = "N", value_parser = parse_count::<u32>)]
    pub(crate) max_output_tokens: Option<u32>,
    /// Sampling temperature [built-in: the model's own]
    #[arg(long, value_name = "T")]
    pub(crate) temperature: Option<f64>,
    /// Write every exchange with the model to this file (keys are never in it)
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Play a recording back instead of asking a model
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
}

/// The flags that a run and a resumed session have in common.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunOptions {
    /// Work in this directory instead of the current one, or the session's own
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// The mode, which decides what is allowed without asking: plan (read only), ask, edit (files),
    /// auto (files and sandboxed commands). Built-in: edit in a terminal, auto without one
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    /// When the first task is planned before it is worked on: auto (where its words say that it
    /// touches several files), always, never [built-in: auto]
    #[arg(long, value_name = "WHEN")]
    pub(crate) plan_first: Option<String>,
    /// A shell command that verifies the change, in place of the checks found in the project
    /// (repeatable)
    #[arg(long, value_name = "CMD", conflicts_with = "no_check")]
    pub(crate) check: Vec<String>,
    /// Verify nothing (the run then ends with code 4)
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Accept a finding about tests or checks that say less than before, such as `test-skipped` or
    /// `test-skipped:tests/slow.py`, which otherwise keeps the run from being verified (repeatable)
    #[arg(long, value_name = "KIND[:PATH]")]
    pub(crate) accept_finding: Vec<String>,
    /// The strength of tests that a verified change needs: ran, covers (they run each changed
    /// statement), notices (they also fail for small mutations of the change) [built-in: ran]
    #[arg(long, value_name = "STRENGTH")]
    pub(crate) verified_needs: Option<String>,
    /// Seconds for mutation testing of the change; 0 turns it off
    /// [built-in: 10]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) notice: Option<f64>,
    /// Rounds of failed checks that go back to the model [built-in: 5]
    #[arg(long, value_name = "N", value_parser = parse_count::<u32>)]
    pub(crate) max_iterations: Option<u32>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Let the project's own configuration run code and send data, this once
    #[arg(long)]
    pub(crate) trust_project: bool,
    /// As root, let commands also run in sandboxes other than the strongest
    #[arg(long)]
    pub(crate) allow_root: bool,
    #[command(flatten)]
    pub(crate) delivery: DeliveryArgs,
}

/// The limits of a run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LimitArgs {
    /// Model requests before the run stops [built-in: 100]
    #[arg(long, value_name = "N", value_parser = parse_count::<u32>)]
    pub(crate) max_turns: Option<u32>,
    /// Wall time before the run stops, such as 90s, 10m or 2h [built-in: 2h]
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    /// US dollars before the run stops; needs a model whose price is known
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<f64>,
}

/// The form of a run's output.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OutputArgs {
    /// Print one JSON object at the end, on stdout
    #[arg(long, conflicts_with = "stream_json")]
    pub(crate) json: bool,
    /// Print one JSON event a line as it happens, on stdout
    #[arg(long)]
    pub(crate) stream_json: bool,
    /// No progress on stderr
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// The output of commands that succeed too, on stderr
    #[arg(long, short, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
}

impl OutputArgs {
    /// Returns the progress that is shown.
    pub(crate) fn detail(&self) -> ProgressDetail {
        match (self.quiet, self.verbose) {
            (true, _) => ProgressDetail::Quiet,
            (_, true) => ProgressDetail::Verbose,
            _ => ProgressDetail::Normal,
        }
    }
}

impl RunOptions {
    pub(crate) fn to_options(&self) -> journeyman_host::RunOptions {
        let Self { model, limits, .. } = self.clone();
        journeyman_host::RunOptions {
            model: model.model,
            base_url: model.base_url,
            wire: model.wire,
            max_output_tokens: model.max_output_tokens,
            temperature: model.temperature,
            record: model.record,
            replay: model.replay,
            mode: self.mode.clone(),
            plan_first: self.plan_first.clone(),
            checks: self.check.clone(),
            no_checks: self.no_check,
            accept_findings: self.accept_finding.clone(),
            verified_needs: self.verified_needs.clone(),
            notice: self.notice,
            max_turns: limits.max_turns,
            max_iterations: self.max_iterations,
            timeout: limits.timeout,
            budget: limits.budget,
            trust_project: self.trust_project,
            allow_root: self.allow_root,
            ..journeyman_host::RunOptions::default()
        }
    }
}

/// Where a run works, and where its work goes.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DeliveryArgs {
    /// Work in a copy of the project even where making one takes time [built-in: where a copy
    /// costs next to nothing]; verified work is landed in one step, other work stays in the copy
    #[arg(long, conflicts_with = "in_place")]
    pub(crate) isolate: bool,
    /// Work in the project itself
    #[arg(long)]
    pub(crate) in_place: bool,
    /// Leave the work in its copy, also when it is verified
    #[arg(long)]
    pub(crate) no_land: bool,
    /// Commit the change when it is verified, with your git and signing, and your hooks in the
    /// sandbox
    #[arg(long)]
    pub(crate) commit: bool,
    /// Commit it on this new branch
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: Option<String>,
    /// The commit's message [built-in: from the task, the model's words and the checks]
    #[arg(long = "message", value_name = "TEXT")]
    pub(crate) commit_message: Option<String>,
    /// Commit without running hooks
    #[arg(long)]
    pub(crate) no_verify: bool,
}

impl DeliveryArgs {
    pub(crate) fn to_options(&self) -> DeliveryOptions {
        DeliveryOptions {
            isolate: (self.isolate || self.in_place).then_some(self.isolate),
            no_land: self.no_land,
            commit: self.commit,
            branch: self.branch.clone(),
            message: self.commit_message.clone(),
            no_verify: self.no_verify,
        }
    }
}
