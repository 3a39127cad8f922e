//! How hooks are configured, and trusted.

use std::path::Path;
use std::sync::Arc;

use journeyman_agent::hooks::{Dialect, HookCommand, HookEvent, HookSandbox, HooksBuilder, PreToolDecision};
use journeyman_host::config::{ProjectTrust, load_config};
use journeyman_protocol::SandboxNeeds;
use journeyman_sandbox::{Network, Sandbox, SandboxSettings};

use super::support::{Project, bash, before, configured, reason_of};

fn load_from(
    project: &Project,
    file: &Path,
    text: &str,
    trust: ProjectTrust<'_>,
) -> Result<Vec<HookCommand>, String> {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
    let loaded = load_config(&project.environment(), &project.root(), &[], trust, None);
    loaded.map(|it| it.config.hooks).map_err(|error| error.to_string())
}

#[test]
fn both_forms_are_read() {
    let project = Project::new();
    let file = project.place.path().join("config/journeyman/config.toml");
    let text = "[[hooks.PreToolUse]]\nmatcher = \"Bash\"\nhooks = [\n  { type = \"command\", command = \"a\", timeout = 5 },\n  { command = \"b\" },\n]\n[[hooks.turn_end]]\nhooks = [{ command = \"c\" }]\n";
    let found = load_from(&project, &file, text, ProjectTrust::Nothing).unwrap();
    let shown: Vec<_> =
        found.iter().map(|it| (it.event, it.dialect, it.command.as_str(), it.timeout.as_secs())).collect();
    assert_eq!(
        shown,
        [
            (HookEvent::PreTool, Dialect::ClaudeCode, "a", 5),
            (HookEvent::PreTool, Dialect::ClaudeCode, "b", 60),
            (HookEvent::TurnEnd, Dialect::Own, "c", 60),
        ]
    );
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_the_nearest_name() {
    let project = Project::new();
    let file = project.place.path().join("config/journeyman/config.toml");
    for (text, parts) in [
        (
            "[[hooks.PreToolUs]]\nhooks = []",
            vec![":1:", "hooks.PreToolUs", "did you mean `hooks.PreToolUse`"],
        ),
        ("\n[[hooks.pretool]]\nhooks = []", vec![":2:", "did you mean `hooks.pre_tool`"]),
        ("[hooks]\nPreToolUse = \"x\"", vec!["takes tables"]),
        ("[[hooks.Stop]]\nmatcher = \"x\"", vec!["hooks = [{ type"]),
        ("[[hooks.Stop]]\nhook = []", vec!["unknown field `hook`", "matcher, hooks"]),
        ("[[hooks.Stop]]\nhooks = [{ type = \"command\" }]", vec!["without `command`"]),
        ("[[hooks.Stop]]\nhooks = [{ command = \"x\", timeout = 0 }]", vec!["`timeout` of 0"]),
        ("[[hooks.Stop]]\nhooks = [{ command = \"x\", if = \"Bash(rm *)\" }]", vec!["`if`", "matcher"]),
        (
            "[[hooks.Stop]]\nhooks = [{ command = \"x\", sandbox = \"no\" }]",
            vec!["`sandbox`", "true or false"],
        ),
        (
            "[[hooks.Stop]]\nhooks = [{ command = \"x\", network = [\"nowhere\"] }]",
            vec!["`network`", "nowhere"],
        ),
        (
            "[[hooks.Stop]]\nhooks = [{ command = \"x\", read = [\"a\"] }]",
            vec!["`read`", "begin with / or ~/"],
        ),
        ("[[hooks.Stop]]\nhooks = [{ type = \"comand\", command = \"x\" }]", vec!["type \"comand\""]),
        ("[[hooks.PreToolUse]]\nmatcher = \"Edit(\"\nhooks = []", vec!["regular expression"]),
        ("[[hooks.Stop]]\nhooks = [{ command = \"x\\u001b[2J\" }]", vec!["control characters"]),
    ] {
        let error = load_from(&project, &file, text, ProjectTrust::Nothing).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{text}\n{error}\nlacks {part}");
        }
    }
}

#[test]
fn events_and_kinds_of_claude_code_that_do_not_exist_here_are_ignored_aloud() {
    let project = Project::new();
    let text = "[[hooks.Notification]]\nhooks = [{ type = \"command\", command = \"x\" }]\n[[hooks.SubagentStop]]\nhooks = []\n[[hooks.Stop]]\nhooks = [{ type = \"prompt\", prompt = \"is it done?\" }]\n";
    let hooks = project.hooks(text);
    assert!(HookEvent::ALL.into_iter().all(|event| hooks.has_no_hook_at(event)));
    let loaded =
        load_config(&project.environment(), &project.root(), &[], ProjectTrust::Nothing, None).unwrap();
    let parts = ["hooks.Notification never runs", "hooks of hooks.Stop", "hooks.SubagentStop never runs"];
    assert_eq!(loaded.warnings.len(), parts.len(), "{:?}", loaded.warnings);
    assert!(
        loaded.warnings[0].contains(parts[0]) && loaded.warnings[2].contains(parts[2]),
        "{:?}",
        loaded.warnings
    );
}

#[test]
fn a_projects_hooks_need_trust_in_the_file_and_in_the_scripts_it_runs() {
    let project = Project::new().script("guard.sh", "exit 0");
    let file = project.root().join(".journeyman/config.toml");
    let text = configured("PreToolUse", "", "sh guard.sh", "");
    let store = journeyman_host::config::TrustStore::new(&project.place.path().join("state"));
    let trusted = || ProjectTrust::Remembered(&store);
    let untrusted = |project: &Project| match load_config(
        &project.environment(),
        &project.root(),
        &[],
        trusted(),
        None,
    ) {
        Err(journeyman_host::config::ConfigError::Untrusted { path, keys, values, hash }) => {
            (path, keys, values, hash)
        }
        other => panic!("{other:?}"),
    };
    load_from(&project, &file, &text, trusted()).unwrap_err();
    let (path, keys, values, hash) = untrusted(&project);
    assert_eq!(keys, ["hooks.PreToolUse"]);
    assert!(values[0].contains("sh guard.sh"), "{values:?}");
    store.remember(&path, &hash).unwrap();
    assert_eq!(load_from(&project, &file, &text, trusted()).unwrap().len(), 1);
    let project = project.script("guard.sh", "curl evil");
    assert_ne!(untrusted(&project).3, hash);
}

#[test]
fn a_project_adds_hooks_and_takes_none_of_the_users_off() {
    let project = Project::new();
    let users = project.place.path().join("config/journeyman/config.toml");
    load_from(&project, &users, &configured("PreToolUse", "", "mine", ""), ProjectTrust::Nothing).unwrap();
    let file = project.root().join(".journeyman/config.toml");
    let found =
        load_from(&project, &file, &configured("PreToolUse", "", "theirs", ""), ProjectTrust::ThisRun)
            .unwrap();
    assert_eq!(found.iter().map(|it| it.command.as_str()).collect::<Vec<_>>(), ["mine", "theirs"]);
}

#[test]
fn hooks_are_confined_unless_they_say_otherwise() {
    let project = Project::new();
    let file = project.place.path().join("config/journeyman/config.toml");
    let text = "[[hooks.Stop]]\nhooks = [{ command = \"a\" }, { command = \"b\", sandbox = false }, \
                { command = \"c\", network = [\"npm\", \"example.org\"], read = [\"~/x\"], write = [\"/srv/y\"] }, \
                { command = \"d\", network = true }]\n";
    let found = load_from(&project, &file, text, ProjectTrust::Nothing).unwrap();
    assert_eq!(found.iter().map(|hook| hook.sandbox).collect::<Vec<_>>(), [true, false, true, true]);
    assert_eq!((&found[0].network, &found[3].network), (&Network::Off, &Network::Host));
    let Network::Filtered(rules) = &found[2].network else { panic!("{:?}", found[2].network) };
    assert!(rules.hosts.iter().any(|host| host.matches("registry.npmjs.org")));
    assert!(rules.hosts.iter().any(|host| host.matches("example.org")));
    assert_eq!((&found[2].read, &found[2].write), (&vec!["~/x".into()], &vec!["/srv/y".into()]));
}

#[tokio::test]
async fn what_a_project_calls_secret_is_hidden_from_no_guard() {
    let project = Project::new();
    let users = project.place.path().join("config/journeyman/config.toml");
    let guard = "grep -q x \"$MINE\" && exit 2; test \"$MINE\" = kept && exit 2; exit 0";
    let text = format!("secrets = [\"STAGING_TOKEN\"]\n{}", configured("PreToolUse", "", guard, ""));
    load_from(&project, &users, &text, ProjectTrust::Nothing).unwrap();
    let file = project.root().join(".journeyman/config.toml");
    load_from(&project, &file, "secrets = [\"MINE\"]\n", ProjectTrust::Nothing).unwrap();
    let loaded =
        load_config(&project.environment(), &project.root(), &[], ProjectTrust::Nothing, None).unwrap();
    let names: Vec<&str> = loaded.config.redacted_variables().map(String::as_str).collect();
    assert_eq!(names, ["STAGING_TOKEN", "MINE"]);
    let hooks = journeyman_host::add_configured_hooks(
        HooksBuilder::new(),
        &loaded.config,
        &project.environment(),
        &project.root(),
    )
    .build();
    let said = before(&project, &hooks, bash("ls")).await;
    assert!(matches!(said.decision, PreToolDecision::Deny { .. }), "{said:?}");
}

#[test]
fn no_layer_calls_secret_what_every_environment_has() {
    let project = Project::new();
    let users = project.place.path().join("config/journeyman/config.toml");
    let theirs = project.root().join(".journeyman/config.toml");
    for file in [users, theirs] {
        for text in [
            "secrets = [\"A_TOKEN\", \"HOME\"]",
            "secrets = [\"PATH\"]",
            "secrets = [\"LC_ALL\"]",
            "[providers.x]\nkey_env = [\"PWD\"]",
        ] {
            let error = load_from(&project, &file, text, ProjectTrust::ThisRun).unwrap_err();
            assert!(error.contains("which every environment has"), "{text}: {error}");
        }
        std::fs::remove_file(file).unwrap();
    }
}

#[tokio::test]
async fn a_script_that_changed_in_the_copy_is_no_guard_there() {
    let project = Project::new().script("guard.sh", "exit 2");
    let copy = project.place.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    std::fs::write(copy.join("guard.sh"), "exit 0").unwrap();
    let hooks = project.hooks("[[hooks.PreToolUse]]\nhooks = [{ command = \"sh guard.sh\" }]");
    let mut at = project.at();
    at.sandbox = Some(HookSandbox {
        sandbox: Arc::new(Sandbox::new(SandboxSettings { allow: Vec::new(), ..SandboxSettings::default() })),
        toolchains: Arc::default(),
        needs: SandboxNeeds::ALL,
        base: None,
        reach: copy.clone(),
        protected: None,
    });
    let (call, effects) = bash("ls");
    let said = hooks.run_pre_tool(&at, &call, &effects).await;
    assert!(reason_of(&said.decision).contains("guard.sh has changed"), "{said:?}");
    // As it was it is started, as far as there is a sandbox.
    std::fs::write(copy.join("guard.sh"), "exit 2").unwrap();
    let said = hooks.run_pre_tool(&at, &call, &effects).await;
    assert!(reason_of(&said.decision).contains("could not be started"), "{said:?}");
}
