//! The real CLIs against a provider on the loopback: the same scenarios for each.

use std::path::{Path, PathBuf};

use journeyman_delegate::{Credentials, DelegateEvent, FailureKind, detect};
use journeyman_protocol::Tokens;

use crate::clis::{Cli, cli};
use crate::provider::{Action, Provider, Reply};
use crate::run::{Place, Ran};

/// A CLI at work: its place, and its provider.
struct Bench {
    cli: Cli,
    place: Place,
    provider: Provider,
    /// False for runs in which the CLI's own permissions hold.
    is_confined: bool,
    is_trusted: bool,
}

impl Bench {
    /// Sets up a CLI with the script of its model; `None` if the CLI isn't there, which is said.
    fn new(name: &str, script: Vec<Reply>) -> Option<Self> {
        let cli = cli(name);
        let clis = std::env::var_os("JM_TEST_CLIS").map(PathBuf::from);
        let program = clis.map(|clis| clis.join(cli.adapter.program()));
        if !program.is_some_and(|program| program.is_file()) {
            journeyman_testkit::skip(format_args!("JM_TEST_CLIS has no {}", cli.adapter.program()));
            return None;
        }
        let mut place = Place::new(Vec::new());
        let provider = Provider::start(script, &place.work());
        let environment = (cli.environment)(&provider.url());
        place.environment = environment.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Some(Self { cli, place, provider, is_confined: true, is_trusted: false })
    }

    fn run(&self, prompt: &str, resume: Option<&Ran>) -> Ran {
        self.run_until(prompt, resume, &[], |_| false)
    }

    fn run_until(
        &self,
        prompt: &str,
        resume: Option<&Ran>,
        arguments: &[String],
        is_last: impl FnMut(&DelegateEvent) -> bool,
    ) -> Ran {
        let work = self.place.work();
        let base_url = (self.cli.base_url)(&self.provider.url());
        let mut request = self.place.request(prompt, &work);
        request.base_url = base_url.as_deref();
        request.model = self.cli.model;
        request.arguments = arguments;
        (request.confined, request.trusted) = (self.is_confined, self.is_trusted);
        if let Some(before) = resume {
            request.resume = Some(before.outcome.session.as_deref().expect("no session to go on with"));
            request.spent.usage = before.outcome.usage;
            request.spent.cost = before.outcome.cost;
        }
        self.place.run(&*self.cli.adapter, &request, is_last)
    }
}

/// Declares a scenario: a module with one test for each CLI.
macro_rules! for_every_cli {
    ($scenario:ident) => {
        for_every_cli!($scenario: claude codex gemini opencode opencode_responses gemini_acp opencode_acp);
    };
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

for_every_cli!(edits_two_files_and_runs_a_command);
// gemini doesn't find its sessions by ACP.
for_every_cli!(goes_on_with_its_session: claude codex gemini opencode opencode_responses opencode_acp);
for_every_cli!(tells_that_the_key_is_refused);
for_every_cli!(tells_that_nobody_is_logged_in: claude codex gemini);
// opencode tries again for more than a minute, by each of its interfaces alike.
for_every_cli!(tells_that_the_stream_was_cut_off: claude codex gemini opencode gemini_acp);
for_every_cli!(tells_of_a_flag_that_it_does_not_know);
for_every_cli!(is_cut_off_by_a_kill);
for_every_cli!(takes_any_prompt);
for_every_cli!(works_by_a_table: claude_by_table codex_as_text);
for_every_cli!(is_logged_in_by_its_file: claude codex opencode_responses);
for_every_cli!(goes_on_with_what_is_kept_of_its_home: claude codex gemini opencode);
for_every_cli!(edits_outside_of_a_sandbox: claude codex gemini opencode gemini_acp opencode_acp);
for_every_cli!(starts_nothing_of_an_untrusted_directory: claude codex gemini opencode);
for_every_cli!(is_found_with_its_version: claude codex gemini opencode);

fn work() -> Vec<Reply> {
    vec![
        Reply::Act(
            "I will do it.",
            vec![Action::Write("one.txt", "first\n"), Action::Write("two.txt", "second\n")],
        ),
        Reply::Act("Now the command.", vec![Action::Run("cat one.txt two.txt > three.txt; cat three.txt")]),
        Reply::Say("All of it is done."),
    ]
}

fn edits_two_files_and_runs_a_command(name: &str) {
    let Some(bench) = Bench::new(name, work()) else { return };
    let ran = bench.run("Make the files.", None);
    assert_eq!(ran.outcome.failure, None, "{ran:#?}");
    assert_eq!(bench.place.read("one.txt"), "first\n");
    assert_eq!(bench.place.read("two.txt"), "second\n");
    assert_eq!(bench.place.read("three.txt"), "first\nsecond\n");
    assert_eq!(ran.outcome.message, "All of it is done.");
    assert!(ran.outcome.session.is_some());
    assert_eq!(ran.unknown(), Vec::<&str>::new());
    assert!(ran.text().contains("I will do it."), "{}", ran.text());
    let usage = ran.outcome.usage;
    match name {
        // One agent tells nothing of the cache, the other only of its last request.
        "gemini_acp" => assert_eq!((usage.input, usage.output), (Tokens(330), Tokens(60))),
        "opencode_acp" => assert_eq!((usage.total_input(), usage.output), (Tokens(110), Tokens(20))),
        // Three requests of 110 tokens, 10 of them from the cache.
        _ => {
            assert_eq!((usage.total_input(), usage.output), (Tokens(330), Tokens(60)), "{usage:?}");
            assert_eq!(usage.cache_read, Tokens(30));
        }
    }
    let starts: Vec<&str> = ids(&ran, true);
    assert_eq!(starts, ids(&ran, false), "each tool that begins ends");
    assert!(starts.len() >= 3, "{:#?}", ran.events);
    let told = |event: &DelegateEvent| matches!(event, DelegateEvent::ToolEnd { output, failed: false, .. } if output.contains("first\nsecond"));
    // One agent doesn't tell what its commands print.
    assert!(name == "gemini_acp" || ran.events.iter().any(told), "{:#?}", ran.events);
    let changed: Vec<&String> = ran.events.iter().filter_map(changed).flatten().collect();
    assert!(changed.iter().any(|path| path.ends_with("one.txt")), "{:#?}", ran.events);
    assert!(changed.iter().any(|path| path.ends_with("two.txt")), "{:#?}", ran.events);
}

fn ids(ran: &Ran, start: bool) -> Vec<&str> {
    let mut ids: Vec<&str> = Vec::new();
    for event in &ran.events {
        match event {
            DelegateEvent::ToolStart { id, .. } if start => ids.push(id),
            DelegateEvent::ToolEnd { id, .. } if !start => ids.push(id),
            _ => {}
        }
    }
    ids.sort_unstable();
    ids
}

fn changed(event: &DelegateEvent) -> Option<&Vec<String>> {
    match event {
        DelegateEvent::FilesChanged(paths) => Some(paths),
        _ => None,
    }
}

fn goes_on_with_its_session(name: &str) {
    let Some(bench) = Bench::new(name, vec![Reply::Say("The first word."), Reply::Say("The second word.")])
    else {
        return;
    };
    let first = bench.run("Say the first word.", None);
    assert_eq!(first.outcome.failure, None, "{first:#?}");
    let second = bench.run("Say the second word.", Some(&first));
    assert_eq!(second.outcome.failure, None, "{second:#?}");
    assert_eq!(second.outcome.message, "The second word.");
    assert_eq!(second.outcome.session, first.outcome.session);
    // Its model is shown the first exchange, and the run is billed for its own request.
    let requests = bench.provider.requests();
    let last = requests.last().unwrap().to_string();
    for text in ["Say the first word.", "The first word.", "Say the second word."] {
        assert!(last.contains(text), "{text} isn't in {last}");
    }
    let usage = second.outcome.usage;
    assert_eq!((usage.total_input(), usage.output), (Tokens(110), Tokens(20)), "{usage:?}");
    if let (Some(first), Some(second)) = (first.outcome.cost, second.outcome.cost) {
        assert!((first - second).abs() < 1e-9, "{first} {second}");
    }
}

fn failure(ran: &Ran) -> FailureKind {
    ran.outcome.failure.as_ref().unwrap_or_else(|| panic!("it succeeded: {ran:#?}")).kind
}

fn tells_that_the_key_is_refused(name: &str) {
    let Some(bench) = Bench::new(name, vec![Reply::Refuse(401)]) else { return };
    let ran = bench.run("Do it.", None);
    assert_eq!(failure(&ran), FailureKind::NotAuthenticated, "{ran:#?}");
}

fn tells_that_nobody_is_logged_in(name: &str) {
    let Some(mut bench) = Bench::new(name, vec![Reply::Refuse(401)]) else { return };
    bench.place.environment.clear();
    let ran = bench.run("Do it.", None);
    assert_eq!(failure(&ran), FailureKind::NotAuthenticated, "{ran:#?}");
}

fn tells_that_the_stream_was_cut_off(name: &str) {
    let Some(bench) = Bench::new(name, vec![Reply::CutOff]) else { return };
    let ran = bench.run("Do it.", None);
    assert_eq!(failure(&ran), FailureKind::Provider, "{ran:#?}");
}

fn tells_of_a_flag_that_it_does_not_know(name: &str) {
    let Some(bench) = Bench::new(name, vec![Reply::Say("Done.")]) else { return };
    let ran = bench.run_until("Do it.", None, &["--no-such-flag".to_owned()], |_| false);
    assert_eq!(failure(&ran), FailureKind::UnknownFlag, "{ran:#?}");
    assert!(bench.provider.requests().is_empty());
}

fn is_cut_off_by_a_kill(name: &str) {
    let script = vec![Reply::Act("First a file.", vec![Action::Write("one.txt", "first\n")]), Reply::Hang];
    let Some(bench) = Bench::new(name, script) else { return };
    let ran = bench.run_until("Do it.", None, &[], |event| matches!(event, DelegateEvent::ToolEnd { .. }));
    assert_eq!(failure(&ran), FailureKind::CutOff, "{ran:#?}");
    assert_eq!(bench.place.read("one.txt"), "first\n");
    assert!(ran.outcome.session.is_some(), "a run that was cut off can be gone on with");
}

fn takes_any_prompt(name: &str) {
    // gemini repeats the prompt in its output, and loses what the pipe doesn't hold when it ends.
    let sentences = if name == "gemini" { 1_500 } else { 25_000 };
    let long = format!("-- {}", "a longer brief than an argument may be. ".repeat(sentences));
    let prompts = [
        "--help",
        "/help and nothing else",
        "$(touch one.txt) `touch two.txt`\n\n\t'quotes' \"and\" C:\\more;\n- é 语",
        long.as_str(),
    ];
    for prompt in prompts {
        let Some(bench) = Bench::new(name, vec![Reply::Say("Understood.")]) else { return };
        let ran = bench.run(prompt, None);
        let start: String = prompt.chars().take(60).collect();
        assert_eq!(ran.outcome.failure, None, "{start}: {ran:#?}");
        assert_eq!(ran.outcome.message, "Understood.", "{start}");
        let shown = bench.provider.requests().last().unwrap().to_string();
        let quoted = serde_json::json!(prompt.trim()).to_string();
        assert!(shown.contains(quoted.trim_matches('"')), "{start}: it isn't in {:.2000}", shown);
        assert_eq!(std::fs::read_dir(bench.place.work()).unwrap().count(), 0, "{start}");
    }
}

fn works_by_a_table(name: &str) {
    let Some(bench) = Bench::new(name, work()) else { return };
    let address = format!("--config=openai_base_url=\"{}/v1\"", bench.provider.url());
    let arguments = if name == "codex_as_text" { vec![address] } else { Vec::new() };
    let ran = bench.run_until("-- Make the files.", None, &arguments, |_| false);
    assert_eq!(ran.outcome.failure, None, "{ran:#?}");
    assert_eq!(ran.outcome.message, "All of it is done.");
    assert_eq!(bench.place.read("three.txt"), "first\nsecond\n");
    if name == "claude_by_table" {
        assert!(ran.outcome.session.is_some());
        assert_eq!((ran.outcome.usage.input, ran.outcome.usage.output), (Tokens(300), Tokens(60)));
        assert!(ran.outcome.cost.is_some_and(|cost| cost > 0.0));
    }
}

/// A login as the CLI keeps it after a person logged in.
fn login(name: &str) -> serde_json::Value {
    // In the year 2100, in milliseconds.
    let expires = 4_102_444_800_000_u64;
    match name {
        "claude" => serde_json::json!({ "claudeAiOauth": {
            "accessToken": "token", "refreshToken": "token", "expiresAt": expires,
            "scopes": ["user:inference"], "subscriptionType": "max",
        } }),
        "codex" => serde_json::json!({ "OPENAI_API_KEY": "key" }),
        _ => serde_json::json!({ "openai": { "type": "api", "key": "key" } }),
    }
}

fn is_logged_in_by_its_file(name: &str) {
    let Some(mut bench) = Bench::new(name, vec![Reply::Say("Hello.")]) else { return };
    bench.place.environment.clear();
    // The file is the user's: the CLI has a link to it and may only read it.
    let requirements = bench.cli.adapter.requirements();
    let kept = bench.place.home().join("../user.json");
    std::fs::write(&kept, login(name).to_string()).unwrap();
    let file = bench.place.home().join(requirements.credentials.first().unwrap());
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&kept, &file).unwrap();
    let ran = bench.run("Say hello.", None);
    assert_eq!(ran.outcome.failure, None, "{ran:#?}");
    assert_eq!(ran.outcome.message, "Hello.");
    assert!(file.is_symlink());
}

fn goes_on_with_what_is_kept_of_its_home(name: &str) {
    let Some(bench) = Bench::new(name, vec![Reply::Say("First."), Reply::Say("Second.")]) else { return };
    let first = bench.run("Say the first word.", None);
    bench.place.keep_of_home(&bench.cli.adapter.requirements().state);
    let second = bench.run("Say the second word.", Some(&first));
    assert_eq!(second.outcome.failure, None, "{second:#?}");
    assert!(bench.provider.requests().last().unwrap().to_string().contains("Say the first word."));
}

fn is_found_with_its_version(name: &str) {
    let Some(bench) = Bench::new(name, vec![Reply::Say("Hello.")]) else { return };
    let found = detect(&*bench.cli.adapter, &bench.place).unwrap();
    let version = found.version.unwrap_or_default();
    let parts: Vec<_> = version.split('.').map(str::parse::<u32>).collect();
    assert!(parts.len() == 3 && parts.iter().all(Result::is_ok), "{version}");
    // opencode has its key in a configuration here.
    let has_key = matches!(found.credentials, Credentials::Key(_));
    assert_eq!(has_key, name != "opencode", "{:?}", found.credentials);
}

fn edits_outside_of_a_sandbox(name: &str) {
    let script = vec![Reply::Act("A file.", vec![Action::Write("one.txt", "first\n")]), Reply::Say("Done.")];
    let Some(mut bench) = Bench::new(name, script) else { return };
    (bench.is_confined, bench.is_trusted) = (false, true);
    let ran = bench.run("Make the file.", None);
    assert_eq!(ran.outcome.failure, None, "{ran:#?}");
    assert!(bench.place.work().join("one.txt").is_file(), "{ran:#?}");
}

/// Settings of a hostile repository, each of which starts a program that leaves a mark.
fn plant_settings(work: &Path, mark: &Path) {
    let mark = mark.display();
    let hook = serde_json::json!([{ "hooks": [{ "type": "command", "name": "x", "command": format!("touch {mark}") }] }]);
    let server = serde_json::json!({ "command": "touch", "args": [mark.to_string()] });
    let claude = serde_json::json!({ "hooks": { "SessionStart": hook, "UserPromptSubmit": hook } });
    let gemini = serde_json::json!({ "mcpServers": { "x": server }, "hooks": { "SessionStart": hook } });
    let local =
        serde_json::json!({ "type": "local", "enabled": true, "command": ["touch", mark.to_string()] });
    let codex =
        format!("notify = ['touch', '{mark}']\n[mcp_servers.x]\ncommand = 'touch'\nargs = ['{mark}']\n");
    for (path, text) in [
        (".claude/settings.json", claude.to_string()),
        (".claude/settings.local.json", claude.to_string()),
        (".mcp.json", serde_json::json!({ "mcpServers": { "x": server } }).to_string()),
        (".codex/config.toml", codex),
        (".gemini/settings.json", gemini.to_string()),
        ("opencode.json", serde_json::json!({ "mcp": { "x": local } }).to_string()),
    ] {
        let path = work.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn starts_nothing_of_an_untrusted_directory(name: &str) {
    for is_trusted in [false, true] {
        let Some(mut bench) = Bench::new(name, vec![Reply::Say("Hello.")]) else { return };
        (bench.is_confined, bench.is_trusted) = (false, is_trusted);
        let mark = bench.place.home().join("../mark");
        plant_settings(&bench.place.work(), &mark);
        let ran = bench.run("Say hello.", None);
        // Without our word these two would obey them: that shows that the settings are right.
        let obeys = is_trusted && matches!(name, "claude" | "opencode");
        assert_eq!(mark.exists(), obeys, "{is_trusted} {ran:#?}");
        if name == "gemini" && !is_trusted {
            let message = ran.outcome.failure.map(|failure| failure.message).unwrap_or_default();
            assert!(message.contains("not running in a trusted directory"), "{message}");
        } else {
            assert_eq!(ran.outcome.failure, None, "{ran:#?}");
        }
    }
}
