//! Files of rules: what is read, what is refused and how that is told, and what is written back.

use journeyman_policy::{Call, CallingAgent, MAX_RULES, Policy, Rule, RuleLayer, Rules};
use journeyman_protocol::{Decision, Effects, Enforcement, Mode, RelPath, SandboxNeeds, SandboxTier};
use proptest::prelude::*;

pub(crate) fn user(text: &str) -> Result<Rules, String> {
    Rules::parse(text, RuleLayer::User, "policy.toml").map_err(|error| error.to_string())
}

#[test]
fn a_whole_file_is_read() {
    let text = r#"
# Pushes are made by hand.
[[rule]]
name = "no pushes"
tools = ["run_command"]
command = ["git", "push"]
decision = "deny"
reason = "pushes are made by hand"
matches = ["git push", "git -C x push origin main"]
not_matches = ["git status", { tool = "write_file", path = "push" }]

[[rule]]
agents = ["review*"]
modes = ["edit", "auto"]
paths = ["docs/**", "*.md"]
decision = "ask"
matches = [{ path = "docs/a/b.md" }, { tool = "edit_file", path = "README.md" }]
not_matches = [{ path = "src/a.md" }]

[[rule]]
hosts = ["*.Example.com", "example.com"]
decision = "allow"
matches = [{ host = "a.example.com" }, { host = "EXAMPLE.com:443" }]
not_matches = [{ host = "badexample.com" }]
"#;
    let rules = user(text).unwrap();
    let ids: Vec<String> = rules.iter().map(|(id, _)| id.to_string()).collect();
    assert_eq!(ids, ["user: policy.toml:3 `no pushes`", "user: policy.toml:12", "user: policy.toml:20"]);
    let said: Vec<String> = rules.iter().map(|(_, rule)| rule.to_string()).collect();
    assert_eq!(
        said,
        [
            "run_command `git push`",
            "on docs/**, *.md by review* in mode edit|auto",
            "to *.Example.com, example.com"
        ]
    );
    let again = user(&rules.to_toml()).unwrap();
    assert!(again.iter().map(|(_, rule)| rule).eq(rules.iter().map(|(_, rule)| rule)), "{}", rules.to_toml());
    assert!(user("").unwrap().is_empty());
}

/// Each wrong file with the line and the words that the error has.
/// Texts that are no rules, and what is said of each.
const WRONG: &[(&str, &str)] = &[
    ("\n[[rule]\n", ":2: it is not TOML"),
    ("\n\nrules = []", ":3: `rules` is not a key here. There are: rule"),
    ("rule = 1", ":1: `rule` is not a key here"),
    (
        "[[rule]]\ndecision = 'deny'\ncomand = ['x']",
        ":3: `comand` is not a key here. There are: name, decision",
    ),
    ("[[rule]]\ncommand = ['x']", ":1: the rule has no `decision`. Add decision ="),
    ("[[rule]]\ndecision = 'no'", ":2: `decision` is not a decision. Write \"allow\", \"ask\" or \"deny\""),
    (
        "[[rule]]\ndecision = 'deny'\ncommand = 'git push'",
        ":3: `command` is one text. Write the words one by one: [\"git\", \"push\"]",
    ),
    (
        "[[rule]]\ndecision = 'deny'\ntools = ['mcp__a__*', 'run_comand']",
        ":3: `tools` names `run_comand`, and there is no such tool. Did you mean `run_command`?",
    ),
    (
        "[[rule]]\ndecision = 'deny'\ntools = ['zzz']",
        ":3: `tools` names `zzz`, and there is no such tool. There are apply_edit, apply_patch,",
    ),
    ("[[rule]]\ndecision = 'deny'\ntools = ['Bash']", "Did you mean `run_command`?"),
    ("[[rule]]\ndecision = 'deny'\ntools = []", ":3: `tools` is an empty list. Remove it"),
    ("[[rule]]\ndecision = 'deny'\ntools = 'x'", ":3: `tools` is not a list"),
    (
        "[[rule]]\ndecision = 'deny'\nmodes = ['fast']",
        ":3: `modes` has a mode that there isn't. The modes are plan",
    ),
    ("[[rule]]\ndecision = 'deny'\nname = \"a\\u001bb\"", ":3: `name` has control characters"),
    ("\n[[rule]]\ndecision = 'allow'", ":2: it allows everything: it names no command, path, host or tool"),
    ("[[rule]]\ndecision = 'allow'\ntools = ['*']", ":1: it allows everything"),
    ("[[rule]]\ndecision = 'allow'\ntools = ['mcp__*']", ":1: it allows everything"),
    ("[[rule]]\ndecision = 'allow'\ntools = ['run_command']", ":1: `run_command` runs any command"),
    ("[[rule]]\ndecision = 'allow'\nmodes = ['edit']", ":1: it allows everything"),
    (
        "[[rule]]\ndecision = 'allow'\npaths = ['**']",
        ":1: it allows every path. For every file of the project there is mode `edit`",
    ),
    ("[[rule]]\ndecision = 'allow'\npaths = ['**/*']", ":1: it allows every path"),
    ("[[rule]]\ndecision = 'allow'\nhosts = ['*']", ":1: it allows every host"),
    ("[[rule]]\ndecision = 'allow'\ncommand = ['*']", ":1: it allows any program"),
    ("[[rule]]\ndecision = 'allow'\ncommand = ['py*', 'a.py']", ":1: it allows any program"),
    (
        "[[rule]]\ndecision = 'allow'\ncommand = ['bash', '**']",
        ":1: it allows everything: `bash` runs any code. Name every word",
    ),
    ("[[rule]]\ndecision = 'allow'\ncommand = ['bash']", ":1: it allows everything: `bash` runs any code"),
    (
        "[[rule]]\ndecision = 'allow'\ncommand = ['python3.12', '*']",
        ":1: it allows everything: `python3.12` runs any code",
    ),
    (
        "[[rule]]\ndecision = 'allow'\ncommand = ['/usr/bin/env', '**']",
        ":1: it allows everything: `/usr/bin/env` runs any program",
    ),
    (
        "[[rule]]\ndecision = 'allow'\ncommand = ['npx', '*']",
        ":1: it allows everything: `npx` runs any package",
    ),
    (
        "[[rule]]\ndecision = 'allow'\ncommand = ['sudo', 'ls']",
        ":1: it allows everything: `sudo` gives other rights",
    ),
    (
        "[[rule]]\ndecision = 'allow'\ncommand = ['xargs', 'rm']",
        ":1: it allows everything: `xargs` runs whatever its input says",
    ),
    (
        "[[rule]]\ndecision = 'allow'\ncommand = ['ssh', 'host', 'ls']",
        ":1: it allows everything: `ssh` runs anything on another machine",
    ),
    (
        "[[rule]]\ndecision = 'allow'\ncommand = ['find', '.', '**']",
        ":1: it allows everything: `find` runs any program",
    ),
    (
        "[[rule]]\ndecision = 'allow'\ncommand = ['git', '**']",
        ":1: it allows everything: `git` does very different things",
    ),
    ("[[rule]]\ndecision = 'allow'\ncommand = ['git', '*', 'x']", ":1: it allows everything: `git` does"),
    (
        "[[rule]]\ndecision = 'allow'\ncommand = [['ls', 'bash'], '**']",
        ":1: it allows everything: `bash` runs any code",
    ),
    (
        "[[rule]]\ndecision = 'deny'\ncommand = ['**']",
        ":1: `**` in `command` stands for all words that are left",
    ),
    ("[[rule]]\ndecision = 'deny'\ncommand = ['a', '**', 'b']", ":1: `**` in `command`"),
    ("[[rule]]\ndecision = 'deny'\nflags = ['-f']", ":1: it names options and no command"),
    ("[[rule]]\ndecision = 'deny'\ncommand = ['a']\nflags = ['f']", ":1: `f` is no option"),
    ("[[rule]]\ndecision = 'deny'\nexact = 'a'", ":1: `exact` stands for one whole command line"),
    (
        "[[rule]]\ndecision = 'deny'\npaths = ['/etc/**']",
        ":1: `/etc/**` in `paths` is not within the project",
    ),
    ("[[rule]]\ndecision = 'deny'\npaths = ['a/../b']", ":1: `a/../b` in `paths` has"),
    (
        "[[rule]]\ndecision = 'deny'\nhosts = ['https://x.com/']",
        ":1: `https://x.com/` in `hosts` is not the name of a host",
    ),
    (
        "[[rule]]\ndecision = 'deny'\npaths = ['a']\nmatches = [{ path = 'b' }]",
        ":1: the rule does not match a tool on b, which `matches` names",
    ),
    (
        "[[rule]]\ndecision = 'deny'\npaths = ['a']\nnot_matches = [{ path = 'A' }]",
        ":1: the rule matches a tool on A, which `not_matches` names",
    ),
    ("[[rule]]\ndecision = 'deny'\ncommand = ['rm']\nnot_matches = ['rm x']", ":1: the rule matches `rm x`"),
    (
        "[[rule]]\ndecision = 'deny'\ncommand = ['rm']\nmatches = ['mv x y']",
        ":1: the rule does not match `mv x y`",
    ),
    (
        "[[rule]]\ndecision = 'deny'\nmatches = [{ pat = 'b' }]",
        ":3: `matches` `pat` is not a key here. There are: tool, path, host",
    ),
];

#[test]
fn what_is_wrong_is_told_with_its_line_and_what_to_do() {
    for (text, words) in WRONG {
        let error = user(text).expect_err(text);
        assert!(error.starts_with("policy.toml:") && error.contains(words), "{text}\n{error}\n{words}");
        assert!(error.matches(". ").count() >= 1, "it says what to do: {error}");
    }
    let project =
        Rules::parse("\n[[rule]]\npaths = ['a']\ndecision = 'allow'", RuleLayer::Project, "p").unwrap_err();
    assert_eq!(project.line, 2);
    assert_eq!(project.problem, "a project's rules only tighten, and this one allows");
}

#[test]
fn what_names_its_words_is_no_rule_for_everything() {
    for rule in [
        "command = ['bash', 'scripts/gen.sh']",
        "command = ['python3', '-c', 'print(1)']",
        "command = ['git', 'status', '**']",
        "command = ['cargo', ['build', 'check'], '**']",
        "command = ['make', ['test', 'lint']]",
        "command = ['env', 'A=1', 'make', 'test']",
        "command = ['npm', 'run', '*']",
        "tools = ['mcp__git__*']",
        "tools = ['mcp__git__status']",
        "paths = ['docs/**']",
        "tools = ['run_command']\nexact = 'for f in *; do wc $f; done'",
        "hosts = ['*.example.com']",
    ] {
        user(&format!("[[rule]]\n{rule}\ndecision = 'allow'")).expect(rule);
    }
    // Everything may be forbidden.
    user("[[rule]]\ndecision = 'deny'").unwrap();
}

#[test]
fn the_rules_of_the_documentation_are_read() {
    let page = include_str!("../../../../docs/permissions.md");
    let blocks: Vec<&str> =
        page.split("```toml\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        assert!(user(block).unwrap().len() > 1, "{block}");
    }
    for key in
        ["tools", "command", "flags", "without_flags", "paths", "writes", "hosts", "agents", "modes", "exact"]
    {
        assert!(page.contains(&format!("`{key}`")), "{key} is documented");
    }
}

#[test]
fn a_file_is_bounded() {
    let many = |count| "[[rule]]\ndecision = 'deny'\n".repeat(count);
    assert_eq!(user(&many(MAX_RULES)).unwrap().len(), MAX_RULES);
    assert!(user(&many(MAX_RULES + 1)).unwrap_err().contains("501 rules"));
    assert!(user(&format!("# {}\n", "x".repeat(300_000))).unwrap_err().contains("300003 bytes"));
    let long = format!("[[rule]]\ndecision = 'deny'\npaths = ['{}']", "x".repeat(600));
    assert!(user(&long).unwrap_err().contains("600 bytes"));
    let list = format!("[[rule]]\ndecision = 'deny'\npaths = [{}]", "'a',".repeat(65));
    assert!(user(&list).unwrap_err().contains("65 entries"));
}

pub(crate) fn decided(
    policy: &Policy,
    tool: &str,
    agent: Option<&str>,
    mode: Mode,
    effects: &Effects,
) -> (Decision, Vec<String>) {
    let sandbox = Enforcement::from_needs(SandboxTier::Namespaces, SandboxNeeds::ALL);
    let agent = agent.map(CallingAgent::from);
    let verdict = policy.judge(&Call { tool, agent, mode, effects, sandbox: Some(&sandbox) });
    assert!(!verdict.reason.is_empty() && !verdict.reason.contains('\n'), "{verdict:?}");
    (verdict.decision, verdict.rules)
}

#[test]
fn every_layer_counts_and_deny_beats_ask_beats_allow() {
    let rule = |decision: &str| format!("[[rule]]\npaths = ['a.txt']\ndecision = '{decision}'");
    let effects = Effects { writes: vec![RelPath::parse("a.txt").unwrap()], ..Effects::default() };
    let layers = [RuleLayer::Admin, RuleLayer::User, RuleLayer::Session];
    let words = [("allow", Decision::Allow), ("ask", Decision::Ask), ("deny", Decision::Deny)];
    for (one, first) in words {
        for (other, second) in words {
            for a in layers {
                for b in layers {
                    let policy = Policy::default()
                        .with_rules(Rules::parse(&rule(one), a, "a").unwrap())
                        .with_rules(Rules::parse(&rule(other), b, "b").unwrap());
                    let (decision, rules) = decided(&policy, "write_file", None, Mode::Ask, &effects);
                    assert_eq!(decision, first.max(second), "{a} {one}, {b} {other}");
                    assert!(!rules.is_empty());
                }
            }
        }
    }
}

#[test]
fn a_denied_program_is_seen_behind_what_runs_it() {
    let policy =
        Policy::default().with_rules(user("[[rule]]\ncommand = ['frob']\ndecision = 'deny'").unwrap());
    for command in [
        "echo 'frob x' | xargs -I {} -I % sh -c %",
        "sh /dev/stdin <<< 'frob x'",
        ". /dev/stdin <<E\nfrob x\nE",
        "source <(echo frob x)",
        "coproc N { frob x; }",
        "hash -p /bin/frob y; y x",
        "enable -f ./frob.so frob",
        "mapfile -C 'frob x' -c 1 < f",
        "compgen -C frob",
        "setarch x86_64 -R frob x",
        "linux64 frob",
        "/lib64/ld-linux-x86-64.so.2 --library-path . /bin/frob x",
        "choom -n 0 -- frob",
        "sg group -c 'frob x'",
        "sg group frob",
        "chronic frob",
        "systemd-inhibit --what=sleep frob",
        "tini -- frob",
        "uvx --from a frob",
        "rbenv exec frob",
        "nix develop -c frob x",
        "fd -e c --exec=frob",
        "fd --exec-batch=frob x",
        "git grep -O'frob x' a",
        "gdb -q --args frob x",
    ] {
        let effects = Effects { command: Some(command.to_owned()), ..Effects::default() };
        assert_eq!(
            decided(&policy, "run_command", None, Mode::Auto, &effects).0,
            Decision::Deny,
            "{command}"
        );
    }
}

#[test]
fn tools_agents_and_modes_narrow_a_rule() {
    let policy = Policy::default().with_rules(
        user(
            "[[rule]]\ntools = ['write_*']\nagents = ['review*']\ndecision = 'deny'\n\
             [[rule]]\ntools = ['edit_file']\nmodes = ['auto']\nagents = ['main']\ndecision = 'ask'\n\
             [[rule]]\ntools = ['mcp__git__*']\ndecision = 'allow'\n\
             [[rule]]\ntools = ['mcp__git__push']\ndecision = 'deny'",
        )
        .unwrap(),
    );
    let effects = Effects { writes: vec![RelPath::parse("a.txt").unwrap()], ..Effects::default() };
    let nothing = Effects::default();
    for (tool, agent, mode, effects, decision) in [
        ("write_file", None, Mode::Edit, &effects, Decision::Allow),
        ("write_file", Some("reviewer"), Mode::Edit, &effects, Decision::Deny),
        ("edit_file", None, Mode::Edit, &effects, Decision::Allow),
        ("edit_file", None, Mode::Auto, &effects, Decision::Ask),
        ("edit_file", Some("x"), Mode::Auto, &effects, Decision::Allow),
        // A tool of somebody's server asks in every mode, until a rule allows it.
        ("mcp__web__get", None, Mode::Auto, &nothing, Decision::Ask),
        ("mcp__git__log", None, Mode::Auto, &nothing, Decision::Allow),
        ("mcp__git__log", None, Mode::Edit, &nothing, Decision::Allow),
        ("mcp__git__log", None, Mode::Plan, &nothing, Decision::Deny),
        ("mcp__git__push", None, Mode::Auto, &nothing, Decision::Deny),
    ] {
        assert_eq!(decided(&policy, tool, agent, mode, effects).0, decision, "{tool} by {agent:?} in {mode}");
    }
}

#[test]
fn protected_files_and_hosts_take_exact_rules_and_gits_files_none() {
    let writes = |path: &str| Effects { writes: vec![RelPath::parse(path).unwrap()], ..Effects::default() };
    let reaches = |host: &str| Effects { hosts: vec![host.to_owned()], ..Effects::default() };
    for (rule, effects, decision) in [
        ("paths = ['.vscode/**']", writes(".vscode/tasks.json"), Decision::Ask),
        ("paths = ['.vscode/tasks.json']", writes(".vscode/tasks.json"), Decision::Allow),
        ("paths = ['.git/config']", writes(".git/config"), Decision::Deny),
        ("hosts = ['*.example.com']", reaches("a.example.com"), Decision::Ask),
        ("hosts = ['a.example.com']", reaches("a.example.com"), Decision::Allow),
        ("hosts = ['b.example.com']", reaches("a.example.com"), Decision::Ask),
        ("tools = ['write_file']", writes(".envrc"), Decision::Ask),
        ("paths = ['src/**']", writes("lib/a"), Decision::Ask),
        ("paths = ['src/**']", writes("src/a"), Decision::Allow),
    ] {
        let policy =
            Policy::default().with_rules(user(&format!("[[rule]]\n{rule}\ndecision = 'allow'")).unwrap());
        assert_eq!(
            decided(&policy, "write_file", None, Mode::Ask, &effects).0,
            decision,
            "{rule} {effects:?}"
        );
    }
    // All that a call does has to be allowed.
    let both = Effects { hosts: vec!["a.example.com".into()], ..writes("src/a") };
    let half = user("[[rule]]\npaths = ['src/a']\ndecision = 'allow'").unwrap();
    assert_eq!(decided(&Policy::default().with_rules(half), "t", None, Mode::Ask, &both).0, Decision::Ask);
}

#[test]
fn a_rule_holds_for_either_name_of_a_group_member() {
    let sandbox = Enforcement::from_needs(SandboxTier::Namespaces, SandboxNeeds::ALL);
    let effects = Effects { writes: vec![RelPath::parse("a.txt").unwrap()], ..Effects::default() };
    let rule = |name: &str, decision: &str| {
        format!("[[rule]]\ntools = ['write_file']\nagents = ['{name}']\ndecision = '{decision}'\n")
    };
    let member = CallingAgent { definition: "generalist", member: Some("ada") };
    let judged = |rules: &[String], agent: CallingAgent<'_>| {
        let policy = Policy::default().with_rules(user(&rules.concat()).unwrap());
        let agent = Some(agent);
        let call =
            Call { tool: "write_file", agent, mode: Mode::Ask, effects: &effects, sandbox: Some(&sandbox) };
        (policy.judge(&call).decision, policy.propose_rules(&call))
    };
    for (rules, expected) in [
        (vec![rule("generalist", "deny")], Decision::Deny),
        (vec![rule("ada", "deny")], Decision::Deny),
        (vec![rule("ada", "allow"), rule("generalist", "deny")], Decision::Deny),
        (vec![rule("ada", "deny"), rule("generalist", "allow")], Decision::Deny),
        (vec![rule("ada", "allow")], Decision::Allow),
        (vec![rule("generalist", "allow")], Decision::Allow),
        (vec![rule("bob", "allow"), rule("main", "deny")], Decision::Ask),
    ] {
        assert_eq!(judged(&rules, member).0, expected, "{rules:?}");
    }
    // The answer "always" is about the member that was asked about.
    let proposed = judged(&[], member).1.unwrap();
    let allowed = |agent| {
        let policy = Policy::default().with_rules(proposed.clone());
        let agent = Some(agent);
        let call =
            Call { tool: "write_file", agent, mode: Mode::Ask, effects: &effects, sandbox: Some(&sandbox) };
        policy.judge(&call).decision
    };
    assert_eq!((allowed(member), allowed("generalist".into())), (Decision::Allow, Decision::Ask));
}

#[test]
fn always_is_offered_for_what_is_asked_and_lets_that_through_alone() {
    let sandbox = Enforcement::from_needs(SandboxTier::Namespaces, SandboxNeeds::ALL);
    let writes = |path: &str| Effects { writes: vec![RelPath::parse(path).unwrap()], ..Effects::default() };
    fn call<'a>(tool: &'a str, mode: Mode, effects: &'a Effects, sandbox: &'a Enforcement) -> Call<'a> {
        Call { tool, agent: None, mode, effects, sandbox: Some(sandbox) }
    }
    let policy = Policy::default();
    let written = writes("a[1].txt");
    assert!(
        policy.propose_rules(&call("write_file", Mode::Ask, &written, &sandbox)).is_err(),
        "brackets have no spelling in a rule"
    );
    let written = writes("a*.txt");
    let rules = policy.propose_rules(&call("write_file", Mode::Ask, &written, &sandbox)).unwrap();
    assert_eq!(
        rules.to_toml(),
        "[[rule]]\ntools = [\"write_file\"]\npaths = ['a\\*.txt']\ndecision = \"allow\"\n"
    );
    let more = policy.clone().with_rules(rules);
    assert_eq!(more.judge(&call("write_file", Mode::Ask, &written, &sandbox)).decision, Decision::Allow);
    for (tool, path) in [("edit_file", "a*.txt"), ("write_file", "ab.txt"), ("write_file", "b.txt")] {
        assert_eq!(
            more.judge(&call(tool, Mode::Ask, &writes(path), &sandbox)).decision,
            Decision::Ask,
            "{tool} {path}"
        );
    }
    let refused = [
        ("write_file", Mode::Edit, writes("a"), "it isn't asked about"),
        ("write_file", Mode::Plan, writes("a"), "it isn't asked about"),
        ("write_file", Mode::Edit, writes(".envrc"), "asked about every time"),
        (
            "fetch",
            Mode::Auto,
            Effects { hosts: vec!["x.com".into()], ..Effects::default() },
            "asked about every time",
        ),
    ];
    for (tool, mode, effects, why) in refused {
        let said = policy.propose_rules(&call(tool, mode, &effects, &sandbox)).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
    let asks = policy.with_rules(user("[[rule]]\nname = 'mine'\npaths = ['a*']\ndecision = 'ask'").unwrap());
    let said = asks.propose_rules(&call("write_file", Mode::Edit, &writes("ab"), &sandbox)).unwrap_err();
    assert_eq!(said, "user: policy.toml:1 `mine` wants it to be asked about every time");
}

fn texts(of: &'static str) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(of, 0..3)
}

#[test]
fn rules_may_name_tools_that_a_library_user_registered() {
    let text = "[[rule]]\ndecision = \"deny\"\ntools = [\"launch_rocket\"]\n";
    let unknown = Rules::parse(text, RuleLayer::User, "policy.toml").unwrap_err();
    assert!(unknown.to_string().contains("names `launch_rocket`, and there is no such tool"), "{unknown}");
    let is_registered = |name: &str| name == "launch_rocket";
    let rules = Rules::parse_with_tools(text, RuleLayer::User, "policy.toml", &is_registered).unwrap();
    assert_eq!(rules.len(), 1);
}

fn some_rule() -> impl Strategy<Value = Rule> {
    let words = prop::collection::vec(prop::collection::vec("[a-z*\\\\ '\"é-]{1,6}", 1..3), 0..4);
    let decision = prop::sample::select(vec![Decision::Allow, Decision::Ask, Decision::Deny]);
    let modes = prop::collection::vec(prop::sample::select(Mode::ALL.to_vec()), 0..3);
    let name = prop::option::of("[a-z'\"\\\\ é]{1,8}");
    let tool = prop_oneof![
        prop::sample::select(journeyman_policy::BUILTIN_TOOLS).prop_map(|tool| tool.name.to_owned()),
        "mcp__[a-z_*]{1,6}",
        "[a-z_]{0,3}[*][a-z_*]{0,3}",
    ];
    let lists = (
        prop::collection::vec(tool, 0..3),
        texts("[a-z/*.\\\\]{1,6}"),
        texts("[a-z.*]{1,6}"),
        texts("-[a-z]{1,3}"),
        texts("[a-z/*.]{1,6}"),
    );
    (decision, words, lists, modes, name.clone(), name).prop_map(
        |(decision, command, (tools, paths, hosts, flags, writes), modes, name, reason)| {
            let mut rule = Rule::new(decision);
            rule.flags = flags.iter().map(|flag| vec![flag.clone()]).collect();
            (rule.command, rule.tools, rule.paths, rule.hosts) = (command, tools, paths, hosts);
            rule.writes = writes;
            (rule.modes, rule.name, rule.reason, rule.without_flags) = (modes, name, reason, flags);
            rule
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_as_it_was(rule in some_rule()) {
        let Ok(rules) = Rules::from_rules([rule.clone()], RuleLayer::User) else { return Ok(()) };
        let again = user(&rules.to_toml()).unwrap();
        prop_assert_eq!(again.iter().map(|(_, rule)| rule.clone()).collect::<Vec<_>>(), vec![rule]);
    }

    #[test]
    fn nothing_that_is_read_or_judged_panics(
        text in "\\PC{0,80}", keys in "(\\[\\[rule\\]\\]\n|decision = \"(deny|ask|allow)\"\n|command = \\[\"\\PC{0,9}\"\\]\n|paths = \\[\"\\PC{0,9}\"\\]\n){0,6}",
        command in any::<String>(), path in "[a-z./*]{0,9}", host in any::<String>(), tool in any::<String>(),
        rule in some_rule(),
    ) {
        for text in [text, keys] {
            if let Err(error) = user(&text) {
                prop_assert!(error.starts_with("policy.toml:"));
            }
        }
        let writes: Vec<RelPath> = RelPath::parse(&path).into_iter().collect();
        let effects = Effects { reads: writes.clone(), writes, command: Some(command), hosts: vec![host], ..Effects::default() };
        let rules = Rules::from_rules([rule], RuleLayer::User).unwrap_or_default();
        let policy = Policy::default().with_rules(rules);
        for mode in Mode::ALL {
            let call = Call { tool: &tool, agent: Some(tool.as_str().into()), mode, effects: &effects, sandbox: None };
            prop_assert!(!policy.judge(&call).reason.is_empty());
            prop_assert!(policy.explain_call(&call).0.len() < 10_000);
            policy.propose_rules(&call).ok();
        }
    }
}

#[test]
fn words_that_no_command_has_are_no_rule_that_forbids() {
    for (word, says) in [
        ("git push", "[\"git\", \"push\"]"),
        ("a;b", "one by one"),
        ("a|b", "one by one"),
        ("", "not one word"),
    ] {
        for decision in ["deny", "ask"] {
            let error =
                user(&format!("[[rule]]\ncommand = ['{word}']\ndecision = '{decision}'")).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
    for (rule, hit) in [
        ("command = ['rm']\nflags = ['-rf']", "rm -r -f x"),
        ("command = ['rm']\nflags = ['-rf']", "rm -fr x"),
        ("command = ['rm', '-rf']", "rm -r x -f"),
        ("command = ['/usr/bin/curl']", "curl x.example"),
        ("command = ['/usr/bin/curl']", "/bin/curl x.example"),
        ("command = ['rm']", "uv run rm x"),
        ("command = ['rm']", "poetry run rm x"),
        ("command = ['rm']", "bundle exec rm x"),
        ("command = ['rm']", "mise exec -- rm x"),
        ("command = ['rm']", "perf stat rm x"),
        ("command = ['rm']", "hyperfine 'ls' 'rm x'"),
        ("command = ['git', 'push']", "git-push origin"),
    ] {
        user(&format!("[[rule]]\n{rule}\ndecision = 'deny'\nmatches = [{hit:?}]")).expect(hit);
    }
    user("[[rule]]\ncommand = ['rm']\nflags = ['-rf']\ndecision = 'deny'\nnot_matches = ['rm -r x', 'rm x']")
        .unwrap();
}

#[test]
fn what_amounts_to_everything_is_no_rule_that_allows() {
    for words in [
        "'python3', '-W', 'ignore'",
        "'bash', '-o', 'errexit'",
        "'bash', '-eo', 'pipefail'",
        "'node', '-r', './x'",
        "'bash', '/dev/fd/3'",
        "'python3', '/proc/self/fd/0'",
        "'uv', 'run', '**'",
        "'poetry', 'run', '**'",
        "'bundle', 'exec', '**'",
        "'mise', '**'",
        "'nix-shell', '**'",
        "'perf', '**'",
        "'ld.so', '**'",
        "'/lib64/ld-linux-x86-64.so.2', '**'",
        "'busybox.static', '**'",
        "'rbash', '**'",
        "'git', '-c', '**'",
        "'git', '-C', '**'",
        "'git', '-C', 'x', '**'",
        "'pnpm', 'dlx', '**'",
        "'npm', 'x', '**'",
        "'npm', '--silent', '**'",
        "'hyperfine', '**'",
    ] {
        let error = user(&format!("[[rule]]\ncommand = [{words}]\ndecision = 'allow'")).expect_err(words);
        assert!(error.contains("it allows everything"), "{error}");
    }
    for words in [
        "'git', '--no-pager', 'log', '**'",
        "'git', '-C', 'sub', 'status', '**'",
        "'bash', '-e', 'x.sh'",
        "'node', '-r', './x', 'y.js'",
        "'uv', 'run', 'pytest'",
        "'npm', '--silent', 'test', '**'",
        "'git', '--version'",
    ] {
        user(&format!("[[rule]]\ncommand = [{words}]\ndecision = 'allow'")).expect(words);
    }
}
