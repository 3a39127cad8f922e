//! The text of a test script: whether the script ends by itself, and whether it drives a browser.

use journeyman_syntax::shell::{self, Statement};

use super::super::shell::quote_word;

/// The text that `npm init` writes in place of a test.
const PLACEHOLDER_TEST: &str = "no test specified";
/// Arguments that keep a runner waiting for changes.
const WATCH_ARGUMENTS: [&str; 6] = ["--watch", "--watchAll", "-w", "watch", "dev", "--watch-all"];
/// Runners that a script may start in watch mode.
const WATCHING_RUNNERS: [&str; 5] = ["vitest", "jest", "mocha", "ava", "tape-watch"];
/// Programs that need a browser, which is a program of its own and mostly a server beside it.
const BROWSER_RUNNERS: [(&str, &str); 9] = [
    ("playwright", "Playwright"),
    ("cypress", "Cypress"),
    ("wdio", "WebdriverIO"),
    ("nightwatch", "Nightwatch"),
    ("testcafe", "TestCafe"),
    ("karma", "Karma"),
    ("ng", "Angular's runner"),
    ("wtr", "Web Test Runner"),
    ("web-test-runner", "Web Test Runner"),
];

/// The kind of a test script, by its text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TestScript {
    /// The script runs no test.
    Placeholder,
    /// The script runs its tests once.
    Once,
    /// The script waits for changes; these words run the tests once.
    Watching(String),
    /// The script drives a browser, by this runner.
    Browser(&'static str),
}

impl TestScript {
    pub(super) fn parse(text: &str) -> Self {
        if text.contains(PLACEHOLDER_TEST) || text.trim().is_empty() {
            return Self::Placeholder;
        }
        let script = shell::parse(text);
        let simple = |statement: &Statement| match statement {
            Statement::Simple(simple) if simple.words.iter().all(|word| word.known) => {
                Some(simple.words.iter().map(|word| word.text.clone()).collect::<Vec<String>>())
            }
            _ => None,
        };
        let commands: Vec<Vec<String>> =
            script.statements.iter().filter_map(simple).map(strip_launchers).collect();
        let browser = commands.iter().filter_map(|words| find_browser_runner(words.first()?)).next();
        match (browser, &commands[..]) {
            (Some(name), _) => Self::Browser(name),
            (None, [words]) if script.statements.len() == 1 => {
                words_to_run_once(words).map_or(Self::Once, Self::Watching)
            }
            _ => Self::Once,
        }
    }
}

/// Returns the browser runner with the name of a program.
pub(super) fn find_browser_runner(program: &str) -> Option<&'static str> {
    BROWSER_RUNNERS.iter().find(|(name, _)| *name == program).map(|(_, name)| *name)
}

/// Returns the words without a leading program that only starts another one.
fn strip_launchers(mut words: Vec<String>) -> Vec<String> {
    let starts =
        |word: &String| ["npx", "cross-env", "dotenv", "--"].contains(&word.as_str()) || word.contains('=');
    let begins = words.iter().position(|word| !starts(word)).unwrap_or(0);
    words.split_off(begins)
}

/// Returns the words that run the tests once, if the given words would wait for changes.
fn words_to_run_once(words: &[String]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    if !WATCHING_RUNNERS.contains(&program.as_str()) {
        return None;
    }
    let is_watch = |word: &String| WATCH_ARGUMENTS.contains(&word.split('=').next().unwrap_or(word));
    let says_once = |word: &String| ["run", "--run", "bench", "related"].contains(&word.as_str());
    let negated = |word: &String| word.ends_with("=false");
    // Vitest waits for changes without this option.
    let waits = arguments.iter().any(|word| is_watch(word) && !negated(word))
        || program == "vitest"
            && !arguments.iter().any(|word| says_once(word) || is_watch(word) && negated(word));
    if !waits {
        return None;
    }
    let mut once = vec![program.clone()];
    if program == "vitest" {
        once.push("run".to_owned());
    }
    once.extend(arguments.iter().filter(|word| !is_watch(word)).map(|word| quote_argument(word)));
    Some(once.join(" "))
}

/// Quotes an argument, which may begin with a hyphen.
fn quote_argument(word: &str) -> String {
    match word.strip_prefix('-') {
        Some(rest)
            if !rest.is_empty()
                && quote_word(rest.trim_start_matches('-')) == rest.trim_start_matches('-') =>
        {
            word.to_owned()
        }
        _ => quote_word(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_wait_for_changes_are_run_once() {
        let cases = [
            ("vitest", "vitest run"),
            ("vitest --coverage", "vitest run --coverage"),
            ("vitest watch src", "vitest run src"),
            ("NODE_ENV=test npx vitest --dom", "vitest run --dom"),
            ("jest --watch", "jest"),
            ("jest --watchAll -c 'a b.json'", "jest -c 'a b.json'"),
            ("cross-env CI=1 mocha -w --exit", "mocha --exit"),
        ];
        for (script, expected) in cases {
            assert_eq!(TestScript::parse(script), TestScript::Watching(expected.to_owned()), "{script}");
        }
        for script in [
            "vitest run",
            "vitest --run",
            "vitest --watch=false",
            "jest",
            "jest --watch=false",
            "node --test",
            "a && jest --watch",
            "$X --watch",
        ] {
            assert_eq!(TestScript::parse(script), TestScript::Once, "{script}");
        }
    }

    #[test]
    fn scripts_that_drive_a_browser_are_named() {
        for (script, expected) in [
            ("playwright test", "Playwright"),
            ("npm run build && cypress run", "Cypress"),
            ("ng test --watch=false", "Angular's runner"),
            ("npx karma start", "Karma"),
        ] {
            assert_eq!(TestScript::parse(script), TestScript::Browser(expected), "{script}");
        }
        assert_eq!(TestScript::parse("echo \"Error: no test specified\" && exit 1"), TestScript::Placeholder);
    }
}
