//! The real CLIs by `jm delegate`, with their providers on the loopback: a change that fails the
//! project's check, the failure fed back into the CLI's own session, a verified change.

#[path = "../../../delegate/tests/suite/provider/mod.rs"]
#[allow(dead_code, reason = "the adapters' tests use all of it")]
mod provider;

use journeyman_protocol::RunOutcome;
use journeyman_testkit::skip;

use self::provider::{Action, Provider, Reply};
use crate::support::{House, POLITE, needs};

fn verified(name: &str, more: &[&str], config: fn(&str) -> String, key: (&str, &str)) {
    let Some(clis) = std::env::var_os("JM_TEST_CLIS") else {
        return skip("JM_TEST_CLIS names no directory");
    };
    if !needs(&["git", "make"]) {
        return;
    }
    let house = House::with_repository();
    let wrong = Action::Run("sed -i 's/hello/HELLO/' greet.sh");
    let right = Action::Run("sed -i 's/HELLO $1/Hello, $1!/' greet.sh");
    let script = vec![
        Reply::Act("I change it.", vec![Action::Write("notes.md", "Polite.\n"), wrong]),
        Reply::Say("The greeting is polite."),
        Reply::Act("I see.", vec![right]),
        Reply::Say("Now it is polite."),
    ];
    let provider = Provider::start(script, &house.project());
    house.configure(&config(&provider.url()));
    let path = format!("{}:{}", clis.display(), std::env::var("PATH").unwrap());
    let arguments = [&["delegate", "--json", "--to", name], more, &["make the greeting polite"]].concat();
    let jm = house.jm(&arguments).env("PATH", path).env(key.0, key.1).env("JM_ISOLATE", "true");
    let ran = jm.run().expect(0);
    let report = ran.report();
    assert_eq!((report.outcome, report.iterations), (RunOutcome::Verified, 1));
    assert_eq!(report.text, "Now it is polite.");
    assert_eq!(house.read("greet.sh"), POLITE);
    assert_eq!(house.read("notes.md"), "Polite.\n");
    // Four requests of 110 tokens.
    assert_eq!(report.usage.total_input().0, 440, "{:?}", report.usage);
    let last = provider.requests().last().unwrap().to_string();
    assert!(last.contains("1 of 1 failed") && last.contains("make the greeting polite"), "{last}");
    assert!(!ran.stdout.contains(key.1) && !ran.stderr.contains(key.1));
}

#[test]
fn codex_ends_verified() {
    let config = |url: &str| format!("[delegates.codex]\nbase_url = \"{url}/v1\"\n");
    verified("codex", &[], config, ("CODEX_API_KEY", "codex-secret-key-1"));
}

#[test]
fn claude_ends_verified() {
    let config = |url: &str| format!("[delegates.claude]\nbase_url = \"{url}\"\n");
    verified("claude", &[], config, ("ANTHROPIC_API_KEY", "claude-secret-key-1"));
}

#[test]
fn gemini_ends_verified() {
    let config = |url: &str| format!("[delegates.gemini]\nbase_url = \"{url}\"\n");
    verified("gemini", &[], config, ("GEMINI_API_KEY", "gemini-secret-key-1"));
}

#[test]
fn opencode_ends_verified() {
    let config = |url: &str| format!("[delegates.opencode]\nbase_url = \"{url}/v1\"\n");
    let model = &["--model", "openai/gpt-5.1"];
    verified("opencode", model, config, ("OPENAI_API_KEY", "opencode-secret-key-1"));
}
