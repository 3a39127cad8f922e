//! Rules against commands in parts, with the parts made by hand: what is understood of a shell is
//! told elsewhere.

use proptest::prelude::*;

use Decision::{Allow, Ask, Deny};
use journeyman_protocol::SandboxTier;

use super::*;
use crate::command::CommandWord;

/// A part out of a text: words between blanks, `$…` for one that isn't known; a level by its
/// program.
fn part(text: &str) -> CommandPart {
    let words: Vec<CommandWord> = text
        .split_whitespace()
        .map(|word| CommandWord { text: word.to_owned(), known: !word.starts_with('$') })
        .collect();
    let level = match words.first().map(|word| word.text.as_str()) {
        Some("ls" | "cat" | "cd" | "env" | "timeout" | "bash") => Level::ReadOnly,
        Some("curl" | "ssh" | "kubectl") => Level::System,
        Some("git") if text.starts_with("git push") => Level::System,
        _ => Level::Shell,
    };
    CommandPart { words, level, reason: format!("it runs `{text}`"), ..CommandPart::default() }
}

fn analysis(parts: &[&str], complete: bool) -> CommandAnalysis {
    let parts: Vec<CommandPart> = parts.iter().map(|text| part(text)).collect();
    let level = parts.iter().map(|part| part.level).max().unwrap_or(Level::Shell);
    let reason = "it runs something".to_owned();
    CommandAnalysis { level, reason, destroys: None, beyond_undo: false, parts, complete }
}

fn full() -> Enforcement {
    Enforcement::from_needs(SandboxTier::Namespaces, SandboxNeeds::ALL)
}

fn policy(text: &str) -> Policy {
    Policy::default().with_rules(Rules::parse(text, RuleLayer::User, "policy.toml").unwrap())
}

fn verdict(policy: &Policy, mode: Mode, line: &str, analysis: &CommandAnalysis) -> Verdict {
    let effects = Effects { command: Some(line.to_owned()), ..Effects::default() };
    let sandbox = full();
    let call = Call { tool: "run_command", agent: None, mode, effects: &effects, sandbox: Some(&sandbox) };
    policy.judge_analysed(&call, Some(analysis))
}

/// The decision on a command of these parts, all of it understood.
fn decided(policy: &Policy, mode: Mode, parts: &[&str]) -> Decision {
    verdict(policy, mode, &parts.join(" && "), &analysis(parts, true)).decision
}

#[test]
fn an_allow_names_every_program_word_for_word() {
    let policy = policy(
        r#"
        [[rule]]
        command = ["cargo", ["build", "check"], "**"]
        decision = "allow"
        [[rule]]
        command = ["touch", "*"]
        decision = "allow"
        "#,
    );
    for (parts, decision) in [
        (&["cargo build"][..], Allow),
        (&["cargo check --all"], Allow),
        (&["cargo build", "touch a"], Allow),
        (&["ls", "cargo build"], Allow),
        (&["timeout 10 cargo build", "cargo build"], Allow),
        (&["cargo run"], Ask),
        (&["touch a b"], Ask),
        (&["touch"], Ask),
        (&["touch $X"], Ask),
        (&["cargo build $X"], Ask),
        (&["$X build"], Ask),
        (&["cargo build", "make"], Ask),
        (&["/tmp/cargo build"], Ask),
        (&["./cargo build"], Ask),
        (&["CARGO build"], Ask),
        (&["cargo +nightly build"], Ask),
        // The same words are another program elsewhere.
        (&["cd sub", "cargo build"], Ask),
    ] {
        assert_eq!(decided(&policy, Mode::Edit, parts), decision, "{parts:?}");
    }
    let half = analysis(&["cargo build"], false);
    assert_eq!(
        verdict(&policy, Mode::Edit, "cargo build", &half).decision,
        Ask,
        "not all of it is understood"
    );
    assert_eq!(decided(&policy, Mode::Plan, &["cargo build"]), Deny, "plan mode only reads");
    let allowed = verdict(&policy, Mode::Edit, "cargo build", &analysis(&["cargo build"], true));
    assert_eq!(allowed.rules, ["user: policy.toml:2"]);
}

#[test]
fn what_a_redirection_writes_is_allowed_by_its_path() {
    let plain = policy("[[rule]]\ncommand = ['gen', '**']\ndecision = 'allow'");
    let bound = policy("[[rule]]\ncommand = ['gen', '**']\npaths = ['out/**']\ndecision = 'allow'");
    for (target, known, by_plain, by_bound) in [
        ("out/a", true, Allow, Allow),
        ("src/a", true, Allow, Ask),
        ("/dev/null", true, Allow, Allow),
        ("/etc/passwd", true, Ask, Ask),
        ("../x", true, Ask, Ask),
        ("out/../../x", true, Ask, Ask),
        (".envrc", true, Ask, Ask),
        ("$OUT", false, Ask, Ask),
    ] {
        let mut analysis = analysis(&["gen"], true);
        analysis.parts[0].writes = vec![CommandWord { text: target.to_owned(), known }];
        for (policy, decision) in [(&plain, by_plain), (&bound, by_bound)] {
            assert_eq!(verdict(policy, Mode::Edit, "gen", &analysis).decision, decision, "{target}");
        }
    }
    for (words, decision) in
        [("gen out/a", Allow), ("gen src/a", Ask), ("gen out/../src", Ask), ("gen -o=out/a", Ask)]
    {
        assert_eq!(decided(&bound, Mode::Edit, &[words]), decision, "{words}");
    }
}

#[test]
fn level_3_takes_an_exact_rule() {
    let wild = policy("[[rule]]\ncommand = ['git', 'push', '**']\ndecision = 'allow'");
    let exact = policy("[[rule]]\ncommand = ['git', 'push', 'origin', ['main', 'next']]\ndecision = 'allow'");
    let line = policy("[[rule]]\nexact = 'git push origin main'\ndecision = 'allow'");
    for mode in [Mode::Ask, Mode::Edit, Mode::Auto] {
        let push = ["git push origin main"];
        assert_eq!(decided(&Policy::default(), mode, &push), Ask);
        assert_eq!(decided(&wild, mode, &push), Ask);
        assert_eq!(decided(&exact, mode, &push), Allow);
        assert_eq!(decided(&line, mode, &push), Allow);
        assert_eq!(decided(&exact, mode, &["git push origin next"]), Allow);
        for other in ["git push --force origin main", "git push origin main --force", "git push origin +main"]
        {
            assert_eq!(decided(&exact, mode, &[other]), Ask, "{other}");
            assert_eq!(decided(&line, mode, &[other]), Ask, "{other}");
        }
    }
    let session =
        Rules::parse("[[rule]]\nexact = 'git push'\ndecision = 'allow'", RuleLayer::Session, "s").unwrap();
    let session = Policy::default().with_rules(session);
    assert_eq!(
        decided(&session, Mode::Auto, &["git push"]),
        Ask,
        "what was answered in a session is no such rule"
    );
    let mut hidden = analysis(&["git status"], true);
    hidden.level = Level::System;
    let status = policy("[[rule]]\ncommand = ['git', 'status']\ndecision = 'allow'");
    assert_eq!(
        verdict(&status, Mode::Auto, "git status", &hidden).decision,
        Ask,
        "no part explains its level"
    );
}

#[test]
fn unconfined_commands_and_destructive_changes_need_an_exact_rule() {
    let effects = Effects { command: Some("make x".to_owned()), ..Effects::default() };
    let call = Call { tool: "run_command", agent: None, mode: Mode::Auto, effects: &effects, sandbox: None };
    let made = analysis(&["make x"], true);
    let wild = policy(
        "[[rule]]\ncommand = ['mak?', '*']\ndecision = 'deny'\n[[rule]]\ncommand = ['gen', '*']\ndecision = 'allow'",
    );
    assert_eq!(wild.judge_analysed(&call, Some(&analysis(&["gen x"], true))).decision, Ask);
    assert_eq!(
        policy("[[rule]]\ncommand = ['make', 'x']\ndecision = 'allow'")
            .judge_analysed(&call, Some(&made))
            .decision,
        Allow
    );

    let mut lost = analysis(&["wipe build"], true);
    lost.beyond_undo = true;
    lost.destroys = Some("everything".to_owned());
    lost.parts[0].destroys = lost.destroys.clone();
    for (rule, decision) in [("['wipe', '*']", Ask), ("['wipe', 'build']", Allow)] {
        let policy = policy(&format!("[[rule]]\ncommand = {rule}\ndecision = 'allow'"));
        assert_eq!(verdict(&policy, Mode::Auto, "wipe build", &lost).decision, decision, "{rule}");
    }
    lost.parts[0].destroys = None;
    let exact = policy("[[rule]]\ncommand = ['wipe', 'build']\ndecision = 'allow'");
    assert_eq!(verdict(&exact, Mode::Auto, "wipe build", &lost).decision, Ask, "no part explains the loss");
}

#[test]
fn a_deny_hits_every_spelling() {
    let policy = policy(
        r#"
        [[rule]]
        command = ["curl"]
        decision = "deny"
        [[rule]]
        command = ["git", "push", "--force"]
        decision = "deny"
        [[rule]]
        command = ["rm"]
        flags = [["-r", "-R", "--recursive"], ["-f", "--force"]]
        decision = "deny"
        [[rule]]
        command = ["npm", ["install", "i"]]
        without_flags = ["--dry-run"]
        decision = "ask"
        "#,
    );
    for (parts, decision) in [
        (&["curl"][..], Deny),
        (&["/usr/bin/curl x"], Deny),
        (&["CURL x"], Deny),
        (&["env curl x", "curl x"], Deny),
        (&["ls", "curl $X"], Deny),
        (&["echo curl"], Allow),
        (&["curly x"], Allow),
        (&["git push --force"], Deny),
        (&["git push origin --force main"], Deny),
        (&["git -C sub push origin --force"], Deny),
        (&["git --no-pager -c a=b push --force"], Deny),
        (&["git push --for"], Deny),
        (&["git status --force"], Allow),
        (&["git commit -m push"], Allow),
        (&["rm -rf x"], Deny),
        (&["rm -f -r x"], Deny),
        (&["rm --force x -R"], Deny),
        (&["rm --recursive --forc x"], Deny),
        (&["rm -r x"], Allow),
        // What isn't known may be either.
        (&["rm -r $X"], Ask),
        (&["$X y"], Ask),
        (&["git $X --force"], Ask),
        (&["npm i"], Ask),
        (&["npm i --dry-run"], Allow),
        (&["npm i -- --dry-run"], Ask),
        (&["npm ci"], Allow),
    ] {
        assert_eq!(decided(&policy, Mode::Auto, parts), decision, "{parts:?}");
    }
}

#[test]
fn what_is_not_understood_is_denied_where_the_program_stands_and_asked_otherwise() {
    let curl = policy("[[rule]]\ncommand = ['curl']\ndecision = 'deny'");
    for (line, decision) in [
        ("x <(curl y)", Deny),
        ("x 'cu''rl' y", Deny),
        ("x c\\url y", Deny),
        ("x /usr/bin/CURL y", Deny),
        ("x `printf %s cu rl`", Ask),
    ] {
        assert_eq!(verdict(&curl, Mode::Auto, line, &analysis(&["x"], false)).decision, decision, "{line}");
    }
    let push = policy("[[rule]]\ncommand = ['git', 'push']\ndecision = 'deny'");
    for (line, decision) in [("x $(git push)", Deny), ("x $(git $y)", Ask)] {
        assert_eq!(verdict(&push, Mode::Auto, line, &analysis(&["x"], false)).decision, decision, "{line}");
    }
    let other = policy("[[rule]]\ncommand = ['curl']\ntools = ['check']\ndecision = 'deny'");
    assert_eq!(verdict(&other, Mode::Auto, "x $(curl)", &analysis(&["x"], false)).decision, Allow);
}

#[test]
fn paths_and_hosts_of_commands_are_seen_in_their_words() {
    let policy = policy(
        "[[rule]]\npaths = ['secrets/**', '**/.env']\ndecision = 'deny'\n\
         [[rule]]\nhosts = ['*.example.com']\ndecision = 'deny'",
    );
    for (parts, decision) in [
        (&["cat secrets/key"][..], Deny),
        (&["cat ./src/../secrets/key"], Deny),
        (&["cat /home/me/project/secrets/key"], Deny),
        (&["cat ../project/Secrets/key"], Deny),
        (&["tar -cf x --file=secrets/key"], Deny),
        (&["git show HEAD:secrets/key"], Deny),
        (&["cd secrets", "cat key"], Deny),
        (&["cat sub/.env"], Deny),
        (&["cat src/secrets.rs"], Allow),
        (&["cat .envrc.example"], Allow),
    ] {
        assert_eq!(decided(&policy, Mode::Auto, parts), decision, "{parts:?}");
    }
    let mut reaches = analysis(&["fetch x"], true);
    for (host, decision) in [("api.EXAMPLE.com:443", Deny), ("example.com", Allow), ("badexample.com", Allow)]
    {
        reaches.parts[0].hosts = vec![host.to_owned()];
        assert_eq!(verdict(&policy, Mode::Auto, "fetch x", &reaches).decision, decision, "{host}");
    }
}

#[test]
fn always_proposes_the_words_of_what_is_not_allowed() {
    let sandbox = full();
    let effects = Effects { command: Some("line".to_owned()), ..Effects::default() };
    let call = Call {
        tool: "run_command",
        agent: None,
        mode: Mode::Edit,
        effects: &effects,
        sandbox: Some(&sandbox),
    };
    let proposed = |parts: &[&str], complete| {
        let analysis = analysis(parts, complete);
        let case = AnalysedCall::new(&call, Some(&analysis));
        let rules = propose_rules(&call, Some(&analysis), |part| needs_rule(&case, &analysis, part))?;
        let lets = Policy::default().with_rules(rules.clone());
        assert_eq!(lets.judge_analysed(&call, Some(&analysis)).decision, Allow, "{parts:?}");
        Ok(rules.iter().map(|(_, rule)| rule.to_string()).collect::<Vec<_>>().join("; "))
    };
    let said = |text: &str| Ok(text.to_owned());
    assert_eq!(proposed(&["cargo build --release"], true), said("run_command `cargo build --release`"));
    assert_eq!(proposed(&["ls", "cargo build", "cargo build"], true), said("run_command `cargo build`"));
    assert_eq!(proposed(&["cd a", "touch x"], true), said("run_command `cd a`; run_command `touch x`"));
    assert_eq!(proposed(&["touch a*"], true), said("run_command `touch a\\*`"));
    assert_eq!(proposed(&["python3 gen.py"], true), said("run_command `python3 gen.py`"));
    assert_eq!(proposed(&["touch $X"], true), said("run_command exactly this: line"));
    assert_eq!(proposed(&["touch x"], false), said("run_command exactly this: line"));
    for refused in ["xargs rm", "sudo make", "python3", "python3.12 -", "perl -i", "sh -s x", "git"] {
        let why: String = proposed(&[refused], true).unwrap_err();
        assert!(why.starts_with('`'), "{refused}: {why}");
        assert!(proposed(&[refused], false).is_err(), "{refused}");
    }
}

fn some_part() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "git", "push", "curl", "rm", "-rf", "-f", "--force", "cargo", "build", "ls", "cd", "$X", "src/a",
        ".env", "env", "/bin/rm", "--", "x",
    ]);
    prop::collection::vec(word, 1..5).prop_map(|words| words.join(" "))
}

fn some_analysis() -> impl Strategy<Value = (String, CommandAnalysis)> {
    (prop::collection::vec(some_part(), 0..4), any::<bool>(), any::<bool>()).prop_map(
        |(parts, complete, lost)| {
            let texts: Vec<&str> = parts.iter().map(String::as_str).collect();
            let mut analysis = analysis(&texts, complete);
            analysis.beyond_undo = lost;
            analysis.destroys = lost.then(|| "x".to_owned());
            (texts.join("; "), analysis)
        },
    )
}

fn some_rule(decision: impl Strategy<Value = Decision>) -> impl Strategy<Value = Rule> {
    let words = vec!["git", "push", "curl", "rm", "-f", "cargo", "build", "x", "*", "**", "c*"];
    let command = prop::collection::vec(prop::sample::select(words), 0..4);
    let flags = prop::collection::vec(prop::sample::select(vec!["-r", "-f", "--force"]), 0..2);
    let some = |texts: Vec<&'static str>| prop::collection::vec(prop::sample::select(texts), 0..2);
    let paths = some(vec!["src/**", "src/a", "**/.env"]);
    let hosts = some(vec!["example.com", "*.example.com"]);
    let tools = some(vec!["run_command", "write_file", "*", "mcp__*"]);
    let modes = prop::collection::vec(prop::sample::select(Mode::ALL.to_vec()), 0..2);
    (decision, command, flags, paths, hosts, tools, modes).prop_map(
        |(decision, command, flags, paths, hosts, tools, modes)| {
            let own = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect::<Vec<_>>();
            let mut rule = Rule::new(decision);
            rule.command = own(command).into_iter().map(|word| vec![word]).collect();
            rule.flags = if rule.command.is_empty() {
                Vec::new()
            } else {
                own(flags).into_iter().map(|flag| vec![flag]).collect()
            };
            (rule.paths, rule.hosts, rule.tools, rule.modes) = (own(paths), own(hosts), own(tools), modes);
            rule
        },
    )
}

/// Rules that a file may hold.
fn some_rules(decisions: &[Decision]) -> impl Strategy<Value = Vec<Rule>> + use<> {
    let decision = prop::sample::select(decisions.to_vec());
    let rule = some_rule(decision);
    prop::collection::vec(rule, 0..5).prop_map(|rules| {
        rules.into_iter().filter(|rule| Rules::from_rules([rule.clone()], RuleLayer::User).is_ok()).collect()
    })
}

fn some_effects() -> impl Strategy<Value = Effects> {
    let paths = prop::collection::vec(prop::sample::select(vec!["src/a", "src/b", "a/.env", ".envrc"]), 0..3);
    let hosts = prop::collection::vec(
        prop::sample::select(vec!["example.com", "a.example.com", "static.crates.io"]),
        0..2,
    );
    (paths.clone(), paths, hosts).prop_map(|(reads, writes, hosts)| {
        let parsed = |paths: Vec<&str>| paths.into_iter().map(|path| RelPath::parse(path).unwrap()).collect();
        let hosts = hosts.into_iter().map(str::to_owned).collect();
        Effects { reads: parsed(reads), writes: parsed(writes), command: None, hosts, ..Effects::default() }
    })
}

/// A call of which everything is chosen: the effects, the command in parts, the tool, the mode, the
/// sandbox.
type Chosen = (Effects, Option<(String, CommandAnalysis)>, &'static str, Mode, bool);

fn some_call() -> impl Strategy<Value = Chosen> {
    let tool = prop::sample::select(vec!["run_command", "write_file", "mcp__a__b", "check"]);
    let mode = prop::sample::select(Mode::ALL.to_vec());
    (some_effects(), prop::option::of(some_analysis()), tool, mode, any::<bool>())
}

fn judge(policy: &Policy, (effects, command, tool, mode, confined): &Chosen) -> Verdict {
    let mut effects = effects.clone();
    effects.command = command.as_ref().map(|(line, _)| line.clone());
    let sandbox = full();
    let sandbox = confined.then_some(&sandbox);
    let call = Call { tool, agent: None, mode: *mode, effects: &effects, sandbox };
    let analysis = command.as_ref().map(|(_, analysis)| analysis);
    policy.judge_in_all_modes(&call, analysis)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_more_deny_or_ask_or_project_rule_never_allows_more(
        rules in some_rules(&[Allow, Ask, Deny]), more in some_rules(&[Ask, Deny]), call in some_call()
    ) {
        let before = Policy::default().with_rules(Rules::from_rules(rules, RuleLayer::User).unwrap());
        let after = before.clone().with_rules(Rules::from_rules(more, RuleLayer::Project).unwrap());
        prop_assert!(judge(&after, &call).decision >= judge(&before, &call).decision);
    }

    #[test]
    fn one_more_allow_overrides_no_deny_and_no_ask_of_a_rule(
        rules in some_rules(&[Ask, Deny]), more in some_rules(&[Allow]), call in some_call()
    ) {
        let rules = Rules::from_rules(rules, RuleLayer::Project).unwrap();
        let before = Policy::default().with_rules(rules.clone());
        let after = before.clone().with_rules(Rules::from_rules(more, RuleLayer::Admin).unwrap());
        let (was, is) = (judge(&before, &call), judge(&after, &call));
        if was.decision == Deny {
            prop_assert_eq!(is.decision, Deny);
        }
        if was.rules.iter().any(|rule| rule.starts_with("project:")) {
            prop_assert_eq!(is.decision, was.decision);
        }
    }

    #[test]
    fn the_order_of_rules_and_layers_means_nothing(
        one in some_rules(&[Allow, Ask, Deny]), other in some_rules(&[Allow, Ask, Deny]), call in some_call()
    ) {
        let (mut one, mut other) = (one, other);
        let of = |rules: &[Rule], layer| Rules::from_rules(rules.to_vec(), layer).unwrap();
        let there = Policy::default().with_rules(of(&one, RuleLayer::Admin)).with_rules(of(&other, RuleLayer::User));
        one.reverse();
        other.reverse();
        let back = Policy::default().with_rules(of(&other, RuleLayer::User)).with_rules(of(&one, RuleLayer::Admin));
        prop_assert_eq!(judge(&there, &call).decision, judge(&back, &call).decision);
    }

    #[test]
    fn a_child_is_never_wider_than_its_parent(
        rules in some_rules(&[Allow, Ask, Deny]), more in some_rules(&[Ask, Deny]), call in some_call(),
        modes in prop::collection::vec(prop::sample::select(Mode::ALL.to_vec()), 1..3)
    ) {
        let parent = Policy::default().with_rules(Rules::from_rules(rules, RuleLayer::User).unwrap());
        let mut wider = parent.clone();
        for mode in modes {
            let child = wider.for_sub_agent(more.clone(), mode).unwrap();
            prop_assert!(judge(&child, &call).decision >= judge(&wider, &call).decision);
            prop_assert!(judge(&child, &call).decision >= judge(&parent, &call).decision);
            wider = child;
        }
    }

    #[test]
    fn level_3_is_only_ever_allowed_by_an_exact_rule(
        rules in some_rules(&[Allow]), call in some_call()
    ) {
        let policy = Policy::default().with_rules(Rules::from_rules(rules, RuleLayer::User).unwrap());
        let verdict = judge(&policy, &call);
        if verdict.level == Level::System && verdict.decision == Allow {
            prop_assert!(!verdict.rules.is_empty());
            prop_assert!(policy.rules.compiled_rules().any(CompiledRule::is_exact));
        }
    }
}

#[test]
fn a_child_takes_no_rule_that_allows() {
    let mut rule = Rule::new(Allow);
    rule.paths = vec!["a".to_owned()];
    assert!(Policy::default().for_sub_agent([rule], Mode::Edit).is_err());
}

#[test]
fn a_cli_reaches_its_provider_at_the_level_of_a_command_and_other_rules_hold() {
    let judged = |tool, mode, rules: &str| {
        let effects = Effects {
            command: Some("agent exec TASK".to_owned()),
            hosts: vec!["api.example.com".to_owned()],
            ..Effects::default()
        };
        let sandbox = full();
        policy(rules).judge(&Call { tool, agent: None, mode, effects: &effects, sandbox: Some(&sandbox) })
    };
    let verdict = judged("delegate_task", Mode::Auto, "");
    assert_eq!((verdict.decision, verdict.level), (Allow, Level::Shell));
    assert_eq!(judged("delegate_task", Mode::Edit, "").decision, Ask);
    assert_eq!(judged("delegate_task", Mode::Plan, "").decision, Deny);
    assert_eq!(
        judged("run_command", Mode::Auto, "").level,
        Level::System,
        "a command names its hosts itself"
    );
    let deny = "[[rule]]\nhosts = ['api.example.com']\ndecision = 'deny'";
    assert_eq!(judged("delegate_task", Mode::Auto, deny).decision, Deny);
}
