//! The real CLIs as calls of a session, confined, and as direct runs, with a provider on the host's
//! loopback.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use journeyman_delegate::{DelegateSettings, Delegates, DirectEnd, DirectRun};
use journeyman_protocol::Tokens;
use journeyman_sandbox::{HostEnvironment, Outcome as End, Sandbox};
use journeyman_testkit::skip;
use journeyman_tools::Tool as _;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::clis::cli;
use crate::fake::{Bench, Setup, block_on, sandbox, session_of, texts};
use crate::provider::{Action, Provider, Reply};

/// Declares a scenario: a module with one test for each CLI.
macro_rules! for_every_cli {
    ($scenario:ident: $($cli:ident)*) => {
        mod $scenario {
            $(
                #[test]
                fn $cli() {
                    super::$scenario(stringify!($cli));
                }
            )*
        }
    };
}

for_every_cli!(works_confined_and_goes_on: claude codex gemini opencode opencode_responses opencode_acp);

/// A real CLI with a project and a model that follows a script.
struct RealCli {
    name: String,
    provider: Provider,
    place: PathBuf,
    programs: PathBuf,
    settings: DelegateSettings,
    variables: Vec<(&'static str, String)>,
    _directory: tempfile::TempDir,
}

impl RealCli {
    /// Sets up a CLI; `None` where there are none.
    fn new(name: &str, script: Vec<Reply>) -> Option<Self> {
        let Some(programs) = std::env::var_os("JM_TEST_CLIS") else {
            skip("JM_TEST_CLIS names no directory");
            return None;
        };
        let programs = PathBuf::from(programs);
        let directory = tempfile::Builder::new().prefix("jm-cli-").tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        let provider = Provider::start(script, &place.join("home/project"));
        let found = cli(name);
        let url = provider.url();
        let base_url = (found.base_url)(&url);
        // Whose address is in a setting of its own is let through by the configuration.
        let network =
            if base_url.is_none() { vec![url.trim_start_matches("http://").to_owned()] } else { Vec::new() };
        let settings = DelegateSettings {
            base_url,
            network,
            model: found.model.map(str::to_owned),
            ..DelegateSettings::new(Arc::from(found.adapter))
        };
        let mut variables = (found.environment)(&url);
        variables.push(("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display())));
        let name = settings.adapter.name().to_owned();
        Some(Self { name, provider, place, programs, settings, variables, _directory: directory })
    }

    fn bench(&self, sandbox: &Arc<Sandbox>, time_limit: Option<Duration>) -> Bench {
        let settings = DelegateSettings { time_limit, ..self.settings.clone() };
        let setup = Setup { variables: self.variables.clone(), settings: Some(settings), ..Setup::default() };
        Bench::at(&self.place, sandbox, &[], setup)
    }

    /// Runs it without a sandbox, in a directory of its own.
    fn run_directly(&self, time_limit: Option<Duration>) -> (DirectEnd, PathBuf) {
        let (home, directory) = (self.place.join("home"), self.place.join("home/project"));
        for made in [&home, &directory] {
            std::fs::create_dir_all(made).unwrap();
        }
        let mut vars: BTreeMap<_, _> =
            self.variables.iter().map(|(name, value)| ((*name).into(), value.into())).collect();
        vars.insert("HOME".into(), home.clone().into_os_string());
        let host = HostEnvironment { vars, home: Some(home) };
        let delegates = Delegates::new(vec![self.settings.clone()], host, None);
        let run = DirectRun { prompt: "Make the file.", directory: &directory, is_fresh: true, time_limit };
        let end = block_on(run.run(&delegates, &self.name, CancellationToken::new(), &mut |_| ()));
        (end.unwrap(), directory)
    }

    /// Returns true if a process of the CLI works in its place.
    fn is_running(&self) -> bool {
        let programs = self.programs.canonicalize().unwrap();
        let of_cli = |entry: std::fs::DirEntry| {
            let at = |name| std::fs::read_link(entry.path().join(name)).unwrap_or_default();
            let works_here = at("cwd").starts_with(&self.place);
            works_here && (at("exe").starts_with(programs.parent().unwrap()) || at("exe").ends_with("node"))
        };
        std::fs::read_dir("/proc").unwrap().flatten().any(of_cli)
    }
}

fn works_confined_and_goes_on(name: &str) {
    let script = vec![
        Reply::Act(
            "I begin.",
            vec![Action::Write("one.txt", "first\n"), Action::Write("two.txt", "second\n")],
        ),
        Reply::Act(
            "Now the command.",
            vec![Action::Run("cat one.txt two.txt > three.txt; cat ~/../.ssh/id_ed25519")],
        ),
        Reply::Say("All of it is done."),
        Reply::Say("It still is."),
    ];
    let (Some(cli), Some(sandbox)) = (RealCli::new(name, script), sandbox()) else { return };
    let (bench, provider, to) = (cli.bench(&sandbox, None), &cli.provider, &cli.name);
    let first = bench.send(json!({ "to": to, "prompt": "Make the files." })).unwrap();
    assert!(!first.is_error, "{:?}\n{}", first.parts, bench.live.lock().unwrap());
    assert_eq!(texts(&first)[0], "All of it is done.");
    assert_eq!(bench.file("three.txt").as_deref(), Some("first\nsecond\n"));
    let mut changed: Vec<String> = first.changes.iter().map(|change| change.path.to_string()).collect();
    changed.sort();
    assert_eq!(changed, ["one.txt", "three.txt", "two.txt"], "nothing else of its own in the project");
    assert!(first.foreign_usage.unwrap().usage.output.0 > 0);
    let all = provider.requests();
    assert!(all.iter().all(|request| !request.to_string().contains("ssh secret")), "{all:?}");
    let more = json!({ "to": to, "prompt": "Go on.", "resume": session_of(&first) });
    let second = bench.send(more).unwrap();
    assert!(!second.is_error, "{:?}", second.parts);
    assert_eq!(texts(&second)[0], "It still is.");
    assert!(provider.requests().last().unwrap().to_string().contains("Make the files."));
}

for_every_cli!(is_ended_at_its_time_limit: claude codex);

fn is_ended_at_its_time_limit(name: &str) {
    let script = vec![Reply::Act("A file.", vec![Action::Write("one.txt", "first\n")]), Reply::Hang];
    let (Some(cli), Some(sandbox)) = (RealCli::new(name, script), sandbox()) else { return };
    let bench = cli.bench(&sandbox, Some(Duration::from_secs(30)));
    let output = bench.send(json!({ "to": cli.name, "prompt": "Make the file." })).unwrap();
    assert!(output.is_error && texts(&output)[0].contains("ended at its time limit"), "{:?}", output.parts);
    assert_eq!(bench.file("one.txt").as_deref(), Some("first\n"));
    assert!(!session_of(&output).is_empty(), "it can be gone on with");
    assert!(!cli.is_running());
}

for_every_cli!(is_stopped_at_once: claude codex);

fn is_stopped_at_once(name: &str) {
    let script = vec![Reply::Act("A file.", vec![Action::Write("one.txt", "first\n")]), Reply::Hang];
    let (Some(cli), Some(sandbox)) = (RealCli::new(name, script), sandbox()) else { return };
    let bench = cli.bench(&sandbox, None);
    let cancel = bench.context.cancel.clone();
    let input = json!({ "to": cli.name, "prompt": "Make the file." });
    let output = block_on(async {
        let call = bench.tool().call(&bench.context, input);
        let stop = async {
            // The second request is the one that nobody answers.
            while cli.provider.requests().len() < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            cancel.cancel();
        };
        tokio::join!(call, stop).0
    });
    let output = output.unwrap();
    assert!(output.is_error && texts(&output)[0].contains("it was stopped"), "{:?}", output.parts);
    assert_eq!(bench.file("one.txt").as_deref(), Some("first\n"));
    assert!(!cli.is_running());
}

for_every_cli!(runs_directly: claude codex);

fn runs_directly(name: &str) {
    let script = vec![Reply::Act("A file.", vec![Action::Write("one.txt", "first\n")]), Reply::Say("Done.")];
    let Some(cli) = RealCli::new(name, script) else { return };
    let (end, directory) = cli.run_directly(Some(Duration::from_secs(300)));
    assert_eq!(end.outcome.failure, None, "{end:?}");
    assert_eq!((end.outcome.message.as_str(), end.outcome.usage.output), ("Done.", Tokens(40)));
    // codex has a sandbox of its own, which it can't make on every machine.
    if name == "claude" {
        assert_eq!(end.created, [PathBuf::from("one.txt")]);
    }
    assert!(end.created.iter().all(|path| directory.join(path).is_file()));
}

for_every_cli!(is_ended_at_the_time_limit_of_a_direct_run: claude codex);

fn is_ended_at_the_time_limit_of_a_direct_run(name: &str) {
    let Some(cli) = RealCli::new(name, vec![Reply::Hang]) else { return };
    let (end, _) = cli.run_directly(Some(Duration::from_secs(15)));
    assert_eq!(end.end, End::TimedOut);
    assert!(end.outcome.failure.unwrap().message.contains("time limit"));
    assert!(!cli.is_running());
}
