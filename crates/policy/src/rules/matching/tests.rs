//! The look-up of rules by name compared with matching every rule against everything.

use proptest::prelude::*;

use super::*;
use crate::Rules;
use crate::command::analyse_command;

impl CompiledRule {
    /// As [`Compiled::hit`], with nothing passed over.
    fn hit_plainly(&self, subject: &MatchSubject<'_>) -> MatchCertainty {
        if !self.applies_to_call(subject, LetterCase::Ignored) {
            return MatchCertainty::No;
        }
        if self.command.is_empty() {
            if !self.hosts.is_empty() && !self.hits_host(subject) {
                return MatchCertainty::No;
            }
            let named = self.paths.is_empty()
                || subject.any_path_text(|text| {
                    paths_in_word(text).any(|(names, elsewhere)| self.touches_path(&names, elsewhere))
                });
            return if named {
                MatchCertainty::Yes
            } else {
                let shaped = match_shapes(&self.paths, subject.shapes(), subject.wildcards_match_dotfiles());
                let coded = subject.parts().iter().map(|part| self.match_code(part));
                coded.fold(shaped, MatchCertainty::max).max(self.match_reached(subject))
            };
        }
        if subject.effects.command.is_none() {
            return MatchCertainty::No;
        }
        let parts = subject.parts().iter().map(|part| self.match_part(part, subject));
        let text = subject.is_opaque().then(|| self.match_raw_text(subject));
        parts.chain(text).max().unwrap_or(MatchCertainty::No)
    }
}

/// Rules of every kind, of which many speak of what [`PIECES`] make.
const RULES: &str = r#"
    [[rule]]
    command = ["git", ["push", "send"]]
    decision = "deny"
    [[rule]]
    command = ["git", "--force"]
    decision = "ask"
    [[rule]]
    command = ["/usr/bin/rm", "-rf"]
    decision = "deny"
    [[rule]]
    command = ["*", "push"]
    decision = "ask"
    [[rule]]
    command = ["echo", "*"]
    paths = ["secret/**"]
    decision = "deny"
    [[rule]]
    command = [["curl", "wget"]]
    hosts = ["*.example.com"]
    decision = "ask"
    [[rule]]
    command = ["rm"]
    without_flags = ["-i"]
    decision = "ask"
    [[rule]]
    command = ["éa"]
    decision = "deny"
    [[rule]]
    paths = ["secret/**", "**/*.key"]
    decision = "deny"
    [[rule]]
    paths = ["a/*/b", "**/K", "é*"]
    decision = "ask"
    [[rule]]
    hosts = ["example.com"]
    decision = "deny"
    [[rule]]
    tools = ["run_*"]
    modes = ["auto"]
    decision = "ask"
"#;

/// The words that random commands are built from.
const PIECES: &[&str] = &[
    "git",
    "git",
    "push",
    "--force",
    "-f",
    "rm",
    "/bin/rm",
    "RM",
    "-rf",
    "-r",
    "-i",
    "echo",
    "curl",
    "éa",
    "secret/x",
    "x.key",
    "sec*",
    "*.KEY",
    "a/$x/b",
    "$x",
    "\"$x\"",
    "$(git push)",
    "`rm x`",
    "https://example.com/a",
    "https://a.example.com",
    "-ossecret/x",
    "K",
    "xargs",
    "env",
    "A=1",
    "eval",
    "sh -c",
    "'git push'",
    "|",
    ";",
    "&&",
    "'",
    "\"",
    ">",
    "../secret",
    "{a,b}",
    "(",
    ")",
    "dotglob",
    "é",
    "\u{212a}",
    "x",
    "[s]ecret/x",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn looking_names_up_first_changes_no_answer(pieces in prop::collection::vec(prop::sample::select(PIECES), 1..9)) {
        let rules = Rules::parse(RULES, RuleLayer::User, "test.toml").unwrap();
        let command = pieces.join(" ");
        let analysis = analyse_command(&command, &[]);
        let effects = Effects { command: Some(command.clone()), ..Effects::default() };
        let subject = MatchSubject::new("run_command", "main".into(), Mode::Edit, &effects, Some(&analysis));
        for rule in rules.compiled_rules() {
            let (fast, slow) = (rule.match_restricting(&subject), rule.hit_plainly(&subject));
            prop_assert_eq!(fast, slow, "{:?} of `{}`", rule.rule.command, command);
        }
    }
}
