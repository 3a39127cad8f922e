//! Sources that a build compiles into test programs, whatever the names of the sources.

use std::collections::{BTreeMap, BTreeSet};

use crate::makefile::{MAKEFILE_NAMES, MakeRule, TEST_RULES, parse_rules, parse_variables};
use crate::test_files::file_name;

/// Endings of sources in C and C++.
const SOURCE_ENDINGS: [&str; 6] = [".c", ".cc", ".cpp", ".cxx", ".c++", ".C"];
/// Maximum number of targets or calls of one build file that are followed.
const MAX_BUILD_FILE_ITEMS: usize = 2_000;
/// Calls of CMake that make each case of a program a test.
const TEST_DISCOVERY_CALLS: [&str; 3] =
    ["gtest_discover_tests", "catch_discover_tests", "doctest_discover_tests"];

/// The use of a source by tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TestSourceUse {
    /// The product's program is built from the source as well, or may be what the tests run.
    Shared,
    /// Only test programs are built from the source.
    TestsOnly,
}

/// The use of sources, by their paths.
pub(crate) type TestSources = BTreeMap<String, TestSourceUse>;

/// Returns true for a build file that [`find_test_sources`] reads.
#[must_use]
pub fn is_supported_build_file(path: &str) -> bool {
    let name = file_name(path);
    MAKEFILE_NAMES.contains(&name) || matches!(name, "Makefile.am" | "CMakeLists.txt" | "meson.build")
}

/// Returns the paths of sources that build files compile into test programs.
///
/// Among them are sources that such a program shares with the product: only the text of a source
/// shows whether it is a test. Each build file is given by its path and its text.
#[must_use]
pub fn find_test_sources<'t>(build_files: impl IntoIterator<Item = (&'t str, &'t str)>) -> BTreeSet<String> {
    classify_test_sources(build_files).into_keys().collect()
}

/// Returns the sources with their use by tests.
pub(crate) fn classify_test_sources<'t>(
    build_files: impl IntoIterator<Item = (&'t str, &'t str)>,
) -> TestSources {
    let mut found = TestSources::new();
    for (path, text) in build_files {
        let sources = match file_name(path) {
            "CMakeLists.txt" => cmake_test_sources(text),
            "meson.build" => meson_test_sources(text),
            "Makefile.am" => automake_test_sources(text),
            name if MAKEFILE_NAMES.contains(&name) => makefile_test_sources(text),
            _ => continue,
        };
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        for (source, part) in sources {
            if let Some(path) = join_path(directory, &source) {
                let known = found.entry(path).or_insert(part);
                *known = (*known).min(part);
            }
        }
    }
    found
}

/// Returns a path from the root; `None` if it leads out of it.
fn join_path(directory: &str, source: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in source.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn is_source(word: &str) -> bool {
    SOURCE_ENDINGS.iter().any(|ending| word.strip_suffix(ending).is_some_and(|stem| !stem.is_empty()))
}

/// Returns the name of a program or a file in a word of a command, without shell punctuation around
/// it.
fn strip_shell_punctuation(word: &str) -> &str {
    let word = word.trim_matches(['"', '\'', ';', '(', ')', '@', '&', '|']);
    word.strip_prefix("./").unwrap_or(word)
}

/// The rules of a Makefile by their targets.
struct MakeTargets {
    rules: BTreeMap<String, Vec<MakeRule>>,
}

impl MakeTargets {
    /// Returns the programs that the commands of some targets start directly, and the sources that
    /// these commands compile.
    fn started_programs(&self, goals: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        for rule in goals.iter().filter_map(|goal| self.rules.get(goal)).flatten() {
            let parts = rule.commands.iter().flat_map(|it| it.split("&&")).flat_map(|it| it.split(';'));
            for part in parts {
                let is_built = |name: &&str| {
                    self.rules.contains_key(*name) || rule.needs.iter().any(|need| need == name)
                };
                let compiled =
                    part.split_whitespace().map(strip_shell_punctuation).filter(|word| is_source(word));
                found.extend(
                    started_program(part).filter(is_built).into_iter().chain(compiled).map(str::to_owned),
                );
            }
        }
        found
    }

    /// Returns the sources that some targets depend on, and those that their commands name.
    fn sources_of_targets(&self, goals: impl IntoIterator<Item = String>) -> BTreeSet<String> {
        let mut left: Vec<String> = goals.into_iter().collect();
        let (mut seen, mut found) = (BTreeSet::new(), BTreeSet::new());
        while let Some(goal) = left.pop() {
            if seen.len() >= MAX_BUILD_FILE_ITEMS || !seen.insert(goal.clone()) {
                continue;
            }
            if is_source(&goal) {
                found.insert(goal);
                continue;
            }
            match self.rules.get(&goal) {
                Some(rules) => {
                    let needs = rules.iter().flat_map(|rule| &rule.needs).cloned();
                    left.extend(needs);
                    let words = rules.iter().flat_map(|rule| &rule.commands).flat_map(|it| it.split(' '));
                    let words = words.map(strip_shell_punctuation).filter(|word| {
                        is_source(word) || self.rules.contains_key(*word) && !TEST_RULES.contains(word)
                    });
                    left.extend(words.map(str::to_owned));
                }
                // By an implicit rule.
                None => {
                    let stem = goal.strip_suffix(".o").unwrap_or(&goal);
                    left.extend(SOURCE_ENDINGS.iter().map(|ending| format!("{stem}{ending}")));
                }
            }
        }
        found
    }
}

/// Returns the program that a part of a command starts directly: without input and without another
/// program that compares its output.
fn started_program(part: &str) -> Option<&str> {
    const INDIRECT_RUN_SIGNS: [&str; 5] = ["<", "|", "diff", "cmp", "grep"];
    let mut words = part.split_whitespace().map(strip_shell_punctuation).filter(|word| !word.is_empty());
    if part
        .split_whitespace()
        .any(|word| INDIRECT_RUN_SIGNS.iter().any(|it| word == *it || word.starts_with('<')))
    {
        return None;
    }
    let is_ahead = |word: &&str| {
        word.contains('=')
            || word.starts_with('-')
            || matches!(*word, "valgrind" | "timeout" | "time" | "env" | "exec")
            || word.chars().all(|c| c.is_ascii_digit())
    };
    words.find(|word| !is_ahead(word))
}

fn makefile_test_sources(text: &str) -> TestSources {
    let known = parse_variables(text);
    let mut goals = MakeTargets { rules: BTreeMap::new() };
    let mut first = None;
    for rule in parse_rules(text) {
        let expand = |words: &[String]| known.expand_words(&words.join(" "));
        let targets: Vec<String> =
            expand(&rule.targets).iter().map(|it| strip_shell_punctuation(it).to_owned()).collect();
        let first_name = targets.first().cloned();
        let rule = MakeRule {
            needs: expand(&rule.needs).iter().map(|it| strip_shell_punctuation(it).to_owned()).collect(),
            commands: rule.commands.iter().map(|command| known.expand_words(command).join(" ")).collect(),
            targets: Vec::new(),
            line: rule.line,
        };
        first = first.or(first_name);
        for target in targets {
            goals.rules.entry(target).or_default().push(rule.clone());
        }
    }
    let is_rule = |name: &&str| goals.rules.contains_key(*name);
    let tests: Vec<String> = TEST_RULES.iter().filter(|it| is_rule(it)).map(|it| (*it).to_owned()).collect();
    let product = ["all", "install"].iter().filter(|it| is_rule(it)).map(|it| (*it).to_owned());
    let product = product.chain(first).filter(|it| !TEST_RULES.contains(&it.as_str()));
    let product = goals.sources_of_targets(product);
    let direct = goals.started_programs(&tests);
    let direct = goals.sources_of_targets(direct);
    let is_test = |source: &String| direct.contains(source) && !product.contains(source);
    let part =
        |source: &String| if is_test(source) { TestSourceUse::TestsOnly } else { TestSourceUse::Shared };
    goals.sources_of_targets(tests).into_iter().map(|source| (source.clone(), part(&source))).collect()
}

fn automake_test_sources(text: &str) -> TestSources {
    let known = parse_variables(text);
    let programs = ["check_PROGRAMS", "TESTS"].iter().flat_map(|name| known.words_of_variable(name));
    let mut found = TestSources::new();
    for program in programs.take(MAX_BUILD_FILE_ITEMS) {
        let name = program.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let sources = known.words_of_variable(&format!("{name}_SOURCES"));
        match sources.is_empty() {
            true => found.extend([(format!("{program}.c"), TestSourceUse::TestsOnly)]),
            false => found.extend(sources.into_iter().map(|source| (source, TestSourceUse::TestsOnly))),
        }
    }
    found
}

/// A call in a build file: its name, the variable to which its value is assigned, its arguments.
struct BuildFileCall<'t> {
    name: &'t str,
    variable: &'t str,
    arguments: &'t str,
}

/// Returns the calls of a build file. A call within the arguments of another one comes after it.
fn parse_calls(text: &str) -> Vec<BuildFileCall<'_>> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (open, _) in text.match_indices('(').take(MAX_BUILD_FILE_ITEMS) {
        let before = text.get(..open).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        let name_from = before.trim_end().rfind(|c| !is_name(c)).map_or(0, |at| at + 1);
        let name = before.get(name_from..).unwrap_or_default().trim();
        let ahead = before.get(..name_from).unwrap_or_default().trim_end();
        let variable = ahead.strip_suffix('=').map(str::trim_end).unwrap_or_default();
        let variable = variable.rsplit(|c| !is_name(c)).next().unwrap_or_default();
        if name.is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let mut depth = 0_usize;
        let inside = text.get(open + 1..).unwrap_or_default();
        let close = inside.find(|c| {
            match c {
                '(' => depth += 1,
                ')' if depth == 0 => return true,
                ')' => depth -= 1,
                _ => {}
            }
            false
        });
        let arguments = inside.get(..close.unwrap_or(0)).unwrap_or_default();
        found.push(BuildFileCall { name, variable, arguments });
    }
    found
}

/// Returns the arguments of a call of CMake, with variables replaced.
fn expand_cmake_arguments(arguments: &str, known: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut words = Vec::new();
    let lines = arguments.lines().map(|line| line.split('#').next().unwrap_or_default());
    for word in lines.flat_map(str::split_whitespace).map(|word| word.trim_matches('"')) {
        if words.len() > MAX_BUILD_FILE_ITEMS {
            break;
        }
        let variable = word.split_once("${").and_then(|(before, rest)| {
            let (name, after) = rest.split_once('}')?;
            Some((before, known.get(name)?, after))
        });
        match variable {
            Some((before, values, after)) => {
                words.extend(values.iter().map(|value| format!("{before}{value}{after}")))
            }
            None => words.push(word.to_owned()),
        }
    }
    words
}

fn cmake_test_sources(text: &str) -> TestSources {
    let mut known: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut programs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut tested, mut installed) = (BTreeSet::new(), BTreeSet::new());
    for call in parse_calls(text) {
        let words = expand_cmake_arguments(call.arguments, &known);
        let Some((first, rest)) = words.split_first() else { continue };
        match call.name.to_ascii_lowercase().as_str() {
            "set" => {
                known.insert(first.clone(), rest.to_vec());
            }
            // A loop's calls are read once, with all values of its variable at the same time.
            "foreach" => {
                let values = rest.iter().filter(|it| !matches!(it.as_str(), "IN" | "ITEMS" | "LISTS"));
                known.insert(first.clone(), values.cloned().collect());
            }
            "add_executable" | "target_sources" => {
                let sources = words.iter().filter(|word| is_source(word)).cloned();
                programs.entry(first.clone()).or_default().extend(sources);
            }
            "add_test" => {
                let command = words.iter().skip_while(|word| *word != "COMMAND").skip(1);
                // A program with input files is the product.
                let reads = command.clone().skip(1).any(|word| word.contains(['/', '.']));
                installed.extend(command.clone().filter(|_| reads).cloned());
                tested.extend(command.chain(rest).map(|word| target_of_argument(word).to_owned()));
            }
            "install" => installed.extend(words.iter().cloned()),
            name if TEST_DISCOVERY_CALLS.contains(&name) => tested.extend(words.iter().cloned()),
            _ => {}
        }
    }
    let mut found = TestSources::new();
    for (program, sources) in programs.iter().filter(|(program, _)| tested.contains(*program)) {
        let part = if installed.contains(program) { TestSourceUse::Shared } else { TestSourceUse::TestsOnly };
        found.extend(sources.iter().map(|source| (source.clone(), part)));
    }
    found
}

/// Returns the target that an argument of `add_test` names.
fn target_of_argument(word: &str) -> &str {
    let inner = word.strip_prefix("$<TARGET_FILE:").and_then(|rest| rest.strip_suffix('>'));
    inner.unwrap_or_else(|| file_name(word))
}

fn meson_test_sources(text: &str) -> TestSources {
    let all = parse_calls(text);
    let words = |arguments: &str| -> BTreeSet<String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        arguments.split(|c| !is_part(c)).map(str::to_owned).collect()
    };
    let tested: BTreeSet<String> = all
        .iter()
        .filter(|call| matches!(call.name, "test" | "benchmark"))
        .flat_map(|call| words(call.arguments))
        .collect();
    let in_a_test = |call: &BuildFileCall<'_>| {
        let arguments = call.arguments.trim();
        let around = |other: &&BuildFileCall<'_>| other.name == "test" && other.arguments.contains(arguments);
        call.variable.is_empty() && !arguments.is_empty() && all.iter().any(|other| around(&other))
    };
    let mut found = TestSources::new();
    for call in all.iter().filter(|call| call.name == "executable") {
        if tested.contains(call.variable) && !call.variable.is_empty() || in_a_test(call) {
            let squeezed: String = call.arguments.split_whitespace().collect();
            let reads = || {
                all.iter().any(|it| {
                    it.name == "test"
                        && it.arguments.contains("args")
                        && words(it.arguments).contains(call.variable)
                })
            };
            let part = if squeezed.contains("install:true") || reads() {
                TestSourceUse::Shared
            } else {
                TestSourceUse::TestsOnly
            };
            let texts = call.arguments.split('\'').skip(1).step_by(2).filter(|text| is_source(text));
            found.extend(texts.map(|source| (source.to_owned(), part)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str, text: &str) -> String {
        let found = classify_test_sources([(path, text)]);
        let sign = |part: &TestSourceUse| if *part == TestSourceUse::Shared { "?" } else { "" };
        found.iter().map(|(source, part)| format!("{source}{}", sign(part))).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn makefiles_tell_the_sources_of_what_their_tests_run() {
        for (text, expected) in [
            ("check: t\n\t./t\nt: t.c list.c\n\tcc -o t t.c list.c\n", "list.c t.c"),
            (
                "all: shop\nshop: main.o list.o\ncheck: run\n\t./run\nrun: run.o list.o\n",
                "list.c? list.cc? list.cpp? list.cxx? list.c++? list.C? run.c run.cc run.cpp run.cxx run.c++ run.C",
            ),
            ("SRC = t.c \\\n  a.c\ntest:\n\t$(CC) -o t $(SRC) && ./t\n", "a.c t.c"),
            ("all: app t\napp: app.c\nt: t.c\ntest: all\n\t./t\n", "app.c? t.c?"),
            ("all: app\napp: app.c\n", ""),
            ("check: t\n\tvalgrind -q ./t\n", "t.C t.c t.c++ t.cc t.cpp t.cxx"),
            ("test: calc\n\t./calc < in | diff - out\ncalc: calc.c\n", "calc.c?"),
            ("test: calc\n\t./run.sh ./calc\ncalc: calc.c\n", "calc.c?"),
            ("run:\n\tcc t.c\n", ""),
        ] {
            let mut found: Vec<String> = shown("Makefile", text).split(' ').map(str::to_owned).collect();
            let mut wanted: Vec<String> = expected.split(' ').map(str::to_owned).collect();
            found.sort();
            wanted.sort();
            assert_eq!(found, wanted, "{text}");
        }
        assert_eq!(
            shown("lib/Makefile.am", "check_PROGRAMS = a b-c\na_SOURCES = one.c two.c\n"),
            "lib/b-c.c lib/one.c lib/two.c"
        );
    }

    #[test]
    fn cmake_and_meson_tell_the_sources_of_their_tests() {
        for (text, expected) in [
            (
                "add_executable(smoke smoke.c list.c)\nadd_test(NAME s COMMAND smoke --all)\n",
                "list.c smoke.c",
            ),
            ("add_executable(smoke smoke.c)\nadd_test(s smoke)\ninstall(TARGETS smoke)\n", "smoke.c?"),
            ("set(S a.cc)\nadd_executable(u ${S} b.cc)\ngtest_discover_tests(u)\n", "a.cc b.cc"),
            ("add_executable(u u.c)\nadd_test(NAME u COMMAND $<TARGET_FILE:u>)\n", "u.c"),
            (
                "foreach(t one two)\n  add_executable(${t} ${t}.c)\n  add_test(NAME ${t} COMMAND ${t})\nendforeach()\n",
                "one.c two.c",
            ),
            ("add_executable(shop main.c)\nadd_test(NAME a COMMAND shop in/a.txt)\n", "main.c?"),
            ("add_executable(shop main.c)\n", ""),
        ] {
            assert_eq!(shown("CMakeLists.txt", text), expected, "{text}");
        }
        for (text, expected) in [
            ("exe = executable('smoke', 'smoke.c', 'list.c')\ntest('smoke', exe)\n", "smoke.c list.c"),
            ("test('u', executable('u', ['u.c'],\n  dependencies: d))\n", "u.c"),
            ("a = executable('a', 'a.c', install : true)\ntest('a', a)\n", "a.c?"),
            ("executable('a', 'a.c')\n", ""),
        ] {
            let mut found: Vec<String> =
                shown("sub/meson.build", text).split(' ').map(str::to_owned).collect();
            let mut wanted: Vec<String> =
                expected.split(' ').filter(|it| !it.is_empty()).map(|it| format!("sub/{it}")).collect();
            if wanted.is_empty() {
                wanted.push(String::new());
            }
            found.sort();
            wanted.sort();
            assert_eq!(found, wanted, "{text}");
        }
    }

    #[test]
    fn paths_do_not_lead_out_of_the_project() {
        assert_eq!(join_path("a/b", "../c.c").as_deref(), Some("a/c.c"));
        assert_eq!(join_path("", "../c.c"), None);
    }
}
