//! Ruby projects: Bundler, Rake, RSpec, minitest, RuboCop.

use journeyman_protocol::CheckKind;

use super::project::{ProjectDirectory, file_name};
use super::shell::quote_word;
use crate::Check;

/// The name in evidence.
const ECOSYSTEM: &str = "ruby";
/// Rakefiles, by Rake's own order.
const RAKEFILES: [&str; 4] = ["rakefile", "Rakefile", "rakefile.rb", "Rakefile.rb"];
/// Maximum number of changed files whose syntax one command checks.
const MAX_SYNTAX_FILES: usize = 100;

/// Finds RuboCop where configured, RSpec's examples, and the tests by the runner that the project
/// names: Rails' runner, Rake's task, or minitest over the files.
pub(super) fn find_checks(place: &ProjectDirectory<'_>) -> Vec<Check> {
    let has = |prefix: &str, ending: &str| {
        place.files().any(|path| path.starts_with(prefix.as_bytes()) && path.ends_with(ending.as_bytes()))
    };
    let (specs, suffixed) = (has("spec/", "_spec.rb"), has("test/", "_test.rb"));
    let prefixed = place.files().any(|path| {
        path.strip_prefix(b"test/").map(file_name).is_some_and(|name| {
            name.starts_with(b"test_") && name.ends_with(b".rb") && name != b"test_helper.rb"
        })
    });
    let bundled = place.has_any(&["Gemfile", "gems.rb"]);
    let rakefile = RAKEFILES.iter().find_map(|name| place.read(name));
    if !(bundled || specs || suffixed || prefixed || rakefile.is_some()) {
        return Vec::new();
    }
    let run = |command: &str| if bundled { format!("bundle exec {command}") } else { command.to_owned() };
    let mut checks = Vec::new();
    if place.has_any(&[".rubocop.yml"]) {
        let lint = place.new_check(
            CheckKind::Lint,
            ECOSYSTEM,
            run("rubocop --format emacs"),
            "the project configures RuboCop",
        );
        checks.push(lint.with_fix(run("rubocop -a")));
    }
    let mut tested = false;
    if place.has_file(".rspec") || specs {
        checks.push(place.new_check(CheckKind::Test, ECOSYSTEM, run("rspec"), "specs, run by RSpec"));
        tested = true;
    }
    if suffixed || prefixed {
        let rake = rakefile.as_deref().is_some_and(has_test_task);
        let (command, why) = if place.has_file("bin/rails") {
            ("ruby bin/rails test".to_owned(), "a Rails application with tests")
        } else if rake {
            (run("rake test"), "the Rakefile has a task `test`")
        } else {
            let pattern = match (suffixed, prefixed) {
                (true, true) => "test/**/{*_test,test_*}.rb",
                (true, false) => "test/**/*_test.rb",
                (false, _) => "test/**/test_*.rb",
            };
            let script = format!("Dir.glob({pattern:?}) {{ |file| require File.expand_path(file) }}");
            (run(&format!("ruby -Ilib -Itest -e {}", quote_word(&script))), "tests of minitest")
        };
        checks.push(place.new_check(CheckKind::Test, ECOSYSTEM, command, why));
    } else if !tested && rakefile.as_deref().is_some_and(has_test_task) {
        checks.push(place.new_check(
            CheckKind::Test,
            ECOSYSTEM,
            run("rake test"),
            "the Rakefile has a task `test`",
        ));
        tested = true;
    }
    if tested || suffixed || prefixed {
        checks.extend(syntax_check(place));
    }
    checks.into_iter().map(|check| block_without_programs(place, bundled, check)).collect()
}

fn block_without_programs(place: &ProjectDirectory<'_>, bundled: bool, check: Check) -> Check {
    let program = check.command.split(' ').next().unwrap_or_default().to_owned();
    let check = place.block_without_program("ruby", "https://www.ruby-lang.org", check);
    match program.as_str() {
        _ if check.blocked.is_some() => check,
        "bundle" if bundled => place.block_without_program("bundle", "`gem install bundler`", check),
        "rspec" | "rubocop" | "rake" => {
            let source = format!("`gem install {program}`");
            place.block_without_program(&program, &source, check)
        }
        _ => check,
    }
}

/// Returns true if a Rakefile defines a task `test`, directly or by Rake's class for it.
fn has_test_task(rakefile: &str) -> bool {
    rakefile.lines().map(str::trim).filter(|line| !line.starts_with('#')).any(|line| {
        line.contains("TestTask.new")
            || line.strip_prefix("task").is_some_and(|rest| {
                let name = rest.trim_start_matches([' ', '(']).trim_start_matches([':', '"', '\'']);
                name.strip_prefix("test")
                    .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
            })
    })
}

/// Returns a check of the syntax of changed files, which proves nothing by itself but finds errors
/// quickly.
fn syntax_check(place: &ProjectDirectory<'_>) -> Option<Check> {
    let changed = place.quoted_changed_files(".rb", MAX_SYNTAX_FILES);
    if changed.is_empty() {
        return None;
    }
    let command = format!("ruby -wc {}", changed.join(" "));
    Some(place.new_check(CheckKind::Types, ECOSYSTEM, command, "syntax of the changed files"))
}
