//! What the layers of configuration promise.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use journeyman_host::config::ConfigError;
use journeyman_host::config::{
    Config, Environment, Flag, KEYS, LoadedConfig, ProjectTrust, SettingSource, TrustStore, load_config,
};
use journeyman_host::configured_model_limits;
use journeyman_protocol::{LimitSource, Mode, Tokenizer};
use tempfile::TempDir;
use toml::Value;

/// A machine with files for the layers.
struct Machine {
    place: TempDir,
    vars: BTreeMap<OsString, OsString>,
}

impl Machine {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let config = place.path().join("config");
        let vars = BTreeMap::from([("XDG_CONFIG_HOME".into(), config.into_os_string())]);
        Self { place, vars }
    }

    fn file(self, path: &str, text: &str) -> Self {
        let path = self.place.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn user(self, text: &str) -> Self {
        self.file("config/journeyman/config.toml", text)
    }

    fn project(self, text: &str) -> Self {
        self.file("project/.journeyman/config.toml", text)
    }

    fn admin(self, text: &str) -> Self {
        self.file("admin.toml", text)
    }

    fn var(mut self, name: &str, value: &str) -> Self {
        self.vars.insert(name.into(), value.into());
        self
    }

    fn path(&self, path: &str) -> PathBuf {
        self.place.path().join(path)
    }

    fn load(&self, flags: &[Flag], trust: ProjectTrust<'_>) -> Result<LoadedConfig, ConfigError> {
        let environment =
            Environment { vars: self.vars.clone(), home: None, cwd: self.place.path().to_owned() };
        load_config(&environment, &self.path("project"), flags, trust, Some(&self.path("admin.toml")))
    }

    fn error(&self) -> String {
        let error = self.load(&[], ProjectTrust::Nothing).unwrap_err().to_string();
        error.replace(&self.place.path().display().to_string(), "")
    }
}

fn flag(flag: &'static str, key: &'static str, value: impl Into<Value>) -> Flag {
    Flag { flag, key, value: value.into() }
}

fn source(loaded: &LoadedConfig, key: &str) -> SettingSource {
    let path: Vec<String> = key.split('.').map(str::to_owned).collect();
    loaded.settings[&path].source.clone()
}

#[test]
fn nothing_set_is_all_built_in() {
    let loaded = Machine::new().load(&[], ProjectTrust::Nothing).unwrap();
    assert_eq!(loaded.config, journeyman_host::config::Config::default());
    assert!(loaded.settings.is_empty());
}

#[test]
fn stronger_layers_win() {
    let user = Machine::new().user("max_turns = 40\ntimeout = '1h'\ntemperature = 1\n");
    let all = user.project("max_turns = 30\ntimeout = '30m'\n").var("JM_MAX_TURNS", "20");
    let loaded = all.load(&[flag("--max-turns", "max_turns", 10)], ProjectTrust::Nothing).unwrap();
    assert_eq!(loaded.config.max_turns, Some(10));
    assert_eq!(source(&loaded, "max_turns"), SettingSource::Flag("--max-turns".to_owned()));
    let loaded = all.load(&[], ProjectTrust::Nothing).unwrap();
    assert_eq!(loaded.config.max_turns, Some(20));
    assert_eq!(source(&loaded, "max_turns"), SettingSource::Variable("JM_MAX_TURNS".to_owned()));
    assert_eq!(loaded.config.timeout, Some(Duration::from_secs(30 * 60)));
    assert_eq!(
        source(&loaded, "timeout"),
        SettingSource::Project(all.path("project/.journeyman/config.toml"))
    );
    assert_eq!(loaded.config.temperature, Some(1.0));
    assert_eq!(
        source(&loaded, "temperature"),
        SettingSource::User(all.path("config/journeyman/config.toml"))
    );
}

#[test]
fn a_project_narrows_and_never_widens() {
    let cases = [
        ("mode = 'edit'", "mode = 'ask'", None),
        ("mode = 'ask'", "mode = 'auto'", Some("`mode = auto` is wider than `ask`")),
        ("max_turns = 9", "max_turns = 10", Some("`max_turns = 10` is wider than `9`")),
        ("", "max_turns = 1000", Some("`max_turns = 1000` is wider than `100`")),
        ("", "max_iterations = 6", Some("`max_iterations = 6` is wider than `5`")),
        ("", "timeout = '3h'", Some("`timeout = 10800.0` is wider than `7200.0`")),
        ("budget_usd = 1", "budget_usd = 0.5", None),
        ("budget_usd = 1", "budget_usd = 2", Some("`budget_usd = 2` is wider than `1`")),
        ("", "budget_usd = 2", None),
        ("", "lint_fix = false", None),
        ("lint_fix = false", "lint_fix = true", Some("`lint_fix = true` is wider than `false`")),
        ("", "isolate = true", None),
        ("isolate = true", "isolate = false", Some("`isolate = false` is wider than `true`")),
    ];
    for (user, project, expected) in cases {
        let machine = Machine::new().user(user).project(project);
        match expected {
            None => assert!(machine.load(&[], ProjectTrust::Nothing).is_ok(), "{user} / {project}"),
            Some(text) => assert!(machine.error().contains(text), "{user} / {project}: {}", machine.error()),
        }
    }
}

#[test]
fn a_projects_mode_bounds_the_built_in_one() {
    let machine = Machine::new().project("mode = 'auto'");
    let config = machine.load(&[], ProjectTrust::Nothing).unwrap().config;
    assert_eq!(config.mode_or(Mode::Edit), Mode::Edit, "a terminal's `edit` is not widened");
    let machine = Machine::new().project("mode = 'plan'");
    let config = machine.load(&[], ProjectTrust::Nothing).unwrap().config;
    assert_eq!(config.mode_or(Mode::Auto), Mode::Plan);
    let config = machine.load(&[flag("--mode", "mode", "edit")], ProjectTrust::Nothing).unwrap().config;
    assert_eq!(config.mode_or(Mode::Auto), Mode::Edit, "the person at the keyboard decides");
}

#[test]
fn a_command_tool_of_a_project_needs_trust_and_is_checked() {
    let tool = "[tools.commands.count]\ndescription = 'Counts.'\nrun = ['wc', '{path}']\n\
                [tools.commands.count.arguments]\npath = 'path'\n";
    let machine = Machine::new().project(tool);
    let Err(ConfigError::Untrusted { keys, values, .. }) = machine.load(&[], ProjectTrust::Nothing) else {
        panic!("a project's tool runs code")
    };
    assert_eq!(keys, ["tools.commands.count"]);
    assert!(values[0].contains("wc"), "the person sees what it runs: {values:?}");
    let loaded = machine.load(&[], ProjectTrust::ThisRun).unwrap();
    let [definition] = loaded.config.command_tools.as_slice() else { panic!("{:?}", loaded.config) };
    assert_eq!((definition.name.as_str(), definition.run.len()), ("count", 2));
    let wrong = Machine::new().user(&tool.replace("'{path}'", "'{file}'"));
    let error = wrong.load(&[], ProjectTrust::Nothing).unwrap_err().to_string();
    assert!(error.contains("tools.commands.count") && error.contains("there is no such argument"), "{error}");
}

#[test]
fn what_runs_code_or_sends_data_needs_trust() {
    let machine = Machine::new().project("checks = ['make test']\nmodel = 'openai/gpt-5'\n");
    let Err(ConfigError::Untrusted { path, keys, values, hash }) = machine.load(&[], ProjectTrust::Nothing)
    else {
        panic!("it was loaded")
    };
    assert_eq!(keys, ["checks", "model"]);
    assert_eq!(values, ["[\"make test\"]", "\"openai/gpt-5\""]);
    let store = TrustStore::new(&machine.path("state"));
    assert!(machine.load(&[], ProjectTrust::Remembered(&store)).is_err());
    store.remember(&path, &hash).unwrap();
    let loaded = machine.load(&[], ProjectTrust::Remembered(&store)).unwrap();
    assert_eq!(loaded.config.checks, Some(vec!["make test".to_owned()]));
    assert!(machine.load(&[], ProjectTrust::ThisRun).is_ok());
    let changed = machine.project("checks = ['make other']\n");
    assert!(
        changed.load(&[], ProjectTrust::Remembered(&store)).is_err(),
        "another version is asked about again"
    );
}

#[test]
fn a_project_speaks_for_itself_and_not_for_the_user() {
    let machine = Machine::new().user("instructions = 'mine'").project("instructions = 'theirs'");
    let config = machine.load(&[], ProjectTrust::Nothing).unwrap().config;
    assert_eq!(config.instructions.as_deref(), Some("mine"));
    assert_eq!(config.project_instructions.as_deref(), Some("theirs"));
}

#[test]
fn a_projects_file_is_not_looked_for_through_links() {
    let secret = "API_KEY=sk-not-to-be-shown\0HOME=/root";
    let direct = Machine::new().file("elsewhere", secret).file("project/x", "");
    std::fs::create_dir(direct.path("project/.journeyman")).unwrap();
    std::os::unix::fs::symlink(direct.path("elsewhere"), direct.path("project/.journeyman/config.toml"))
        .unwrap();
    let beyond = Machine::new().file("elsewhere/config.toml", secret).file("project/x", "");
    std::os::unix::fs::symlink(beyond.path("elsewhere"), beyond.path("project/.journeyman")).unwrap();
    for machine in [direct, beyond] {
        let error = machine.error();
        assert!(error.contains("symbolic link"), "{error}");
        assert!(!error.contains("sk-not"), "{error}");
    }
}

#[test]
fn an_error_shows_nothing_of_the_text() {
    let error = Machine::new().project("x = 1\nAPI_KEY=sk-not-to-be-shown here").error();
    assert!(error.contains("config.toml: line 2: ") && !error.contains("sk-not"), "{error}");
    let error = Machine::new().project("[providers.\"x\\u001b[2K\"]\nwire = 'chat'").error();
    assert!(error.contains("control characters") && !error.contains('\u{1b}'), "{error}");
}

#[test]
fn what_is_the_users_alone() {
    let machine = Machine::new().project("[sandbox]\nallow = ['none']\n");
    let error = machine.load(&[], ProjectTrust::ThisRun).unwrap_err().to_string();
    assert!(error.contains("`sandbox.allow` can only be set in your own configuration"), "{error}");
}

#[test]
fn the_administrator_narrows_and_does_not_widen() {
    let machine =
        Machine::new().user("mode = 'auto'\nmax_turns = 5\n").admin("mode = 'ask'\nmax_turns = 50\n");
    let loaded = machine.load(&[flag("--mode", "mode", "auto")], ProjectTrust::Nothing).unwrap();
    assert_eq!(loaded.config.mode, Some(Mode::Ask));
    assert_eq!(loaded.config.max_turns, Some(5));
    let machine = Machine::new().user("lint_fix = true\nisolate = false\n");
    let machine = machine.admin("lint_fix = false\nisolate = true\n");
    let config = machine.load(&[], ProjectTrust::Nothing).unwrap().config;
    assert_eq!((config.lint_fix, config.isolate), (Some(false), Some(true)));
}

#[test]
fn secrets_of_both_files_hold() {
    let machine = Machine::new().user("secrets = ['MINE']").project("secrets = ['THEIRS']");
    let loaded = machine.load(&[], ProjectTrust::Nothing).unwrap();
    assert_eq!(
        (loaded.config.secrets, loaded.config.project_secrets),
        (vec!["MINE".to_owned()], vec!["THEIRS".to_owned()])
    );
}

#[test]
fn providers_with_dots_in_names() {
    let machine = Machine::new().user(
        "[providers.work]\nwire = 'chat'\nbase_url = 'http://127.0.0.1:1/v1/'\nkey_env = ['WORK_KEY']\n\
         idle_timeout = '5s'\nheaders.x-team = 'a'\n\
         [providers.work.models.'gpt-4.1']\ninput = 2\noutput = 8.5\n",
    );
    let config = machine.load(&[], ProjectTrust::Nothing).unwrap().config;
    let work = &config.providers["work"];
    assert_eq!(work.headers["x-team"], "a");
    assert_eq!(work.timeouts, [None, None, Some(Duration::from_secs(5)), None]);
    assert_eq!(work.prices["gpt-4.1"].output, 8.5);
    assert_eq!(work.prices["gpt-4.1"].cache_read, None);
}

#[test]
fn limits_of_a_model_are_the_users() {
    let machine = Machine::new().user(
        "[providers.openai.models.'gpt-5']\nwindow = 100000\nmax_output = 200000\n\
         [providers.openai.models.tiny]\nwindow = 10\n\
         [providers.openai.models.odd]\ntokenizer = 'no/such.json'\n",
    );
    let config = machine.load(&[], ProjectTrust::Nothing).unwrap().config;
    assert!(config.providers["openai"].prices.is_empty(), "a window is no price");
    let limits = |model: &str| {
        let config = Config { model: Some(model.to_owned()), ..config.clone() };
        configured_model_limits(&config, &Environment::default())
    };
    let (name, gpt) = limits("openai/gpt-5").unwrap().unwrap();
    assert_eq!(name, "openai/gpt-5");
    assert_eq!((gpt.window.0, gpt.source), (100_000, LimitSource::Configured));
    assert_eq!((gpt.max_output.map(|most| most.0), gpt.tokenizer), (Some(100_000), Tokenizer::O200k));
    let (_, unknown) = limits("openai/gpt-9-vast").unwrap().unwrap();
    assert_eq!((unknown.window.0, unknown.source), (32_768, LimitSource::Default));
    assert_eq!(limits("scripted/a.json").unwrap(), None);
    for (model, key) in [("tiny", "window is 10"), ("odd", "tokenizer is `no/such.json`")] {
        let error = limits(&format!("openai/{model}")).unwrap_err().to_string();
        assert!(error.contains(&format!("providers.openai.models.\"{model}\".{key}")), "{error}");
    }
}

#[test]
fn errors_name_the_place_and_what_is_right() {
    let cases = [
        ("max_turn = 3", "config.toml:1: unknown key `max_turn`; did you mean `max_turns`?"),
        ("\n\n[sandbx]\nallow = []", "config.toml:3: unknown key `sandbx`"),
        (
            "[providers.x]\nbaseurl = 'y'",
            "config.toml:2: unknown key `providers.x.baseurl`; did you mean `providers.x.base_url`?",
        ),
        ("mode = 'yolo'", "config.toml:1: `mode` is \"yolo\", but takes one of plan, ask, edit, auto"),
        ("max_turns = 0", "`max_turns` is 0, but takes a whole number, 1 or more"),
        ("max_turns = '3'", "`max_turns` is \"3\", but takes a whole number"),
        ("timeout = 'soon'", "`timeout` is \"soon\", but takes a time such as"),
        ("timeout = -1", "`timeout` is -1, but takes a time"),
        ("temperature = nan", "`temperature` is nan, but takes a number"),
        ("checks = 'make'", "`checks` is \"make\", but takes a list of texts"),
        ("checks = [1]", "`checks` is [1], but takes a list of texts"),
        ("model = { name = 'x' }", "`model` is a table; it takes a plain value"),
        ("model = 1979-05-27", "`model` is a date; it takes a plain value"),
        ("wire = 'soap'", "`wire` is \"soap\", but takes one of anthropic, responses, chat, gemini"),
        ("mode = ", "config.toml: "),
    ];
    for (text, expected) in cases {
        let error = Machine::new().user(text).error();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let error = Machine::new().var("JM_MAX_TURNS", "many").error();
    assert_eq!(error, "$JM_MAX_TURNS: `max_turns` is \"many\", but takes a whole number, 1 or more");
}

#[test]
fn files_that_are_not_files() {
    let machine = Machine::new();
    std::fs::create_dir_all(machine.path("config/journeyman/config.toml")).unwrap();
    assert!(machine.error().contains("it is not a regular file"), "{}", machine.error());
    let machine = Machine::new().user(&"#".repeat(2 * 1024 * 1024));
    assert!(machine.error().contains("at most 1048576 are read"), "{}", machine.error());
    let machine = Machine::new();
    std::fs::create_dir_all(machine.path("config/journeyman")).unwrap();
    std::fs::write(machine.path("config/journeyman/config.toml"), b"model = '\xff'").unwrap();
    assert!(machine.error().contains("cannot read the configuration"), "{}", machine.error());
}

#[test]
fn every_key_is_documented_and_named_once() {
    for (place, key) in KEYS.iter().enumerate() {
        assert!(!key.help.is_empty() && !key.kind.describe().is_empty());
        assert!(KEYS[..place].iter().all(|other| other.name != key.name), "{}", key.name);
    }
}
