//! The real CLIs as calls of a session: confined, with a provider on the host's loopback.

use journeyman_delegate::DelegateSettings;
use journeyman_testkit::skip;
use serde_json::json;

use crate::clis::cli;
use crate::fake::{Bench, Setup, sandbox, session_of, texts};
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

fn works_confined_and_goes_on(name: &str) {
    let (Some(programs), Some(sandbox)) = (std::env::var_os("JM_TEST_CLIS"), sandbox()) else {
        return skip("JM_TEST_CLIS names no directory");
    };
    let programs = std::path::PathBuf::from(programs);
    let directory = tempfile::Builder::new().prefix("jm-cli-").tempdir().unwrap();
    let place = directory.path().canonicalize().unwrap();
    let work = place.join("home/project");
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
    let provider = Provider::start(script, &work);
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
        ..DelegateSettings::new(std::sync::Arc::from(found.adapter))
    };
    let mut variables = (found.environment)(&url);
    variables.push(("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display())));
    let to = settings.adapter.name().to_owned();
    let setup = Setup { variables, settings: Some(settings), ..Setup::default() };
    let bench = Bench::at(&place, &sandbox, &[], setup);
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
