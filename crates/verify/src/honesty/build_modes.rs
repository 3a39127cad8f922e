//! Assertions that a build compiles away, and product code that behaves differently in the builds
//! that tests run.

use std::collections::BTreeSet;

use journeyman_protocol::{HonestyKind, RelPath};
use journeyman_syntax::Node;
use journeyman_syntax::language::Language;

use super::assertion::quote_tokens;
use super::parsed_source::{ParsedSource, Token, children, line_of};
use super::report::HonestyReport;
use super::special_cases::CONDITIONAL_KINDS;
use crate::test_files::{file_name, is_test_file};

/// Variables whose flags apply to each compiler.
const COMPILER_FLAGS: [&str; 4] = ["CFLAGS", "CPPFLAGS", "CXXFLAGS", "CDEFS"];
/// Calls of CMake and Meson whose flags apply to everything that is built beneath them.
const GLOBAL_FLAG_CALLS: [&str; 8] = [
    "add_compile_definitions",
    "add_definitions",
    "add_compile_options",
    "cmake_c_flags",
    "cmake_cxx_flags",
    "add_project_arguments",
    "add_global_arguments",
    "b_ndebug=true",
];
/// Words of a condition that holds for release builds.
const RELEASE_WORDS: [&str; 3] = ["release", "buildtype", "build_type"];
/// Maximum number of lines between a directive and its end.
const MAX_REGION_LINES: usize = 200;

/// Reports lines of a build file that compile assertions of tests away.
///
/// `tests` has the paths of tests.
pub(super) fn report_disabled_assertions(
    path: &RelPath,
    old: &str,
    new: &str,
    tests: &BTreeSet<&str>,
    report: &mut HonestyReport,
) {
    let directory = path.parent().map_or(String::new(), |directory| format!("{directory}/"));
    let names_test = |line: &str| {
        line.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '\'' | '"' | ',')).any(|word| {
            let word = word.strip_prefix("./").unwrap_or(word);
            word.contains('.')
                && (is_test_file(word) || tests.contains(format!("{directory}{word}").as_str()))
        })
    };
    if old.contains("NDEBUG") || old.contains("b_ndebug=true") {
        return;
    }
    let tests_target = |line: &str| {
        let arguments = line.trim().strip_prefix("target_compile_").and_then(|rest| rest.split_once('('));
        let target = arguments.and_then(|(_, rest)| rest.split_whitespace().next()).unwrap_or_default();
        let runs = |line: &str| line.contains("add_test") || line.contains("discover_tests");
        let is_word = |word: &str| word == target;
        let mut lines = new.lines().filter(|line| runs(line));
        !target.is_empty()
            && lines.any(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(is_word))
    };
    let mut before = "";
    for (at, line) in new.lines().enumerate() {
        let lower = line.to_ascii_lowercase();
        let variable = line.split(['=', ' ', '+', ':', '?']).next().unwrap_or_default();
        let reaches = COMPILER_FLAGS.contains(&variable)
            || GLOBAL_FLAG_CALLS.iter().any(|call| lower.contains(call))
            || names_test(line)
            || tests_target(line);
        let released = |line: &str| RELEASE_WORDS.iter().any(|word| line.to_ascii_lowercase().contains(word));
        let defines = line.contains("NDEBUG") && !line.contains("UNDEBUG") || line.contains("b_ndebug=true");
        if defines && reaches && !released(line) && !released(before) && !line.trim().starts_with('#') {
            let message = format!("`{}` compiles assertions away", line.trim());
            let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
            report.add_blocking(HonestyKind::ConfigurationLoosened, path, number, message);
        }
        before = line;
    }
}

/// Reports branches of functions called by tests that return another result in a test build than in
/// a release build. Such a branch may assert, log or count.
pub(super) fn report_mode_dependent_results(
    path: &RelPath,
    old: Option<&ParsedSource<'_>>,
    new: &ParsedSource<'_>,
    called: &BTreeSet<&str>,
    report: &mut HonestyReport,
) {
    let known: BTreeSet<&str> = old.map_or("", |old| old.text).lines().map(str::trim).collect();
    let message =
        |text: &str| format!("`{text}` gives tests another answer than the build that is handed out");
    let mut left: Vec<(Node<'_>, bool)> = new.tree.iter().map(|tree| (tree.root(), false)).collect();
    while let Some((node, is_called)) = left.pop() {
        let name = node.child_by_field_name("name").map(|name| new.text_of_node(name));
        let defines = node.child_by_field_name("body").is_some();
        let is_called = is_called || defines && name.is_some_and(|name| called.contains(name));
        left.extend(children(node).into_iter().map(|child| (child, is_called)));
        // An attribute alone is in many places.
        let told = node.next_named_sibling().filter(|_| node.kind() == "attribute_item").unwrap_or(node);
        let first = new.text_of_node(told).lines().next().unwrap_or_default().trim();
        if is_called && !known.contains(first) && is_mode_dependent_result(new, node) {
            report.add_blocking(
                HonestyKind::SpecialCase,
                path,
                line_of(node),
                message(&quote_tokens(new.tokens_of_node(node))),
            );
        }
    }
    if matches!(new.language, Some(Language::C | Language::Cpp)) {
        for (line, text) in find_directive_results(new.text).filter(|(_, text)| !known.contains(text)) {
            report.add_blocking(HonestyKind::SpecialCase, path, line, message(text));
        }
    }
}

/// Returns true for a condition or an attribute of the build mode before a statement that decides
/// what its function returns.
fn is_mode_dependent_result(source: &ParsedSource<'_>, node: Node<'_>) -> bool {
    let has = |tokens: &[Token<'_>], names: &[&str]| tokens.iter().any(|token| names.contains(&token.text));
    let returns = |node: Node<'_>| {
        let tokens = source.tokens_of_node(node);
        tokens.windows(2).any(
            |pair| matches!(pair, [word, value] if word.text == "return" && !matches!(value.text, ";" | "}")),
        )
    };
    if CONDITIONAL_KINDS.contains(&node.kind()) {
        let Some(condition) = node.child_by_field_name("condition") else { return false };
        let tokens = source.tokens_of_node(condition);
        let by_mode = has(tokens, &["cfg"]) && has(tokens, &["debug_assertions", "test"])
            || has(tokens, &["__debug__"]);
        let chooses = node.child_by_field_name("alternative").is_some() && is_function_result(node);
        return by_mode && (returns(node) || chooses);
    }
    // An attribute of Rust within the body of a function.
    let tokens = source.tokens_of_node(node);
    node.kind() == "attribute_item"
        && tokens.iter().any(|token| token.text == "cfg")
        && has(tokens, &["debug_assertions", "test"])
        && node.parent().is_some_and(|above| above.kind() == "block")
        && node
            .next_named_sibling()
            .is_some_and(|statement| returns(statement) || is_function_result(statement))
}

/// Returns true for the last expression of a function in Rust, which is its result.
fn is_function_result(node: Node<'_>) -> bool {
    let outer = node.parent().filter(|above| above.kind() == "expression_statement").unwrap_or(node);
    let function = outer.parent().filter(|above| above.kind() == "block").and_then(|block| block.parent());
    outer.next_named_sibling().is_none()
        && function.is_some_and(|it| it.child_by_field_name("return_type").is_some())
}

/// Returns lines with a result between a directive on the build mode and its end, within a
/// function.
fn find_directive_results(text: &str) -> impl Iterator<Item = (u32, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let opens = |line: &str| {
        let line = line.trim();
        line.starts_with("#if")
            && ["NDEBUG", "DEBUG", "TESTING", "UNIT_TEST"]
                .iter()
                .any(|name| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == *name))
    };
    let mut found = Vec::new();
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| opens(line)) {
        let region = lines.get(at + 1..).unwrap_or_default().iter().take(MAX_REGION_LINES);
        let region: Vec<&str> =
            region.take_while(|line| !line.trim_start().starts_with("#endif")).copied().collect();
        // A function of its own.
        if region.iter().any(|line| !line.is_empty() && !line.starts_with([' ', '\t', '#'])) {
            continue;
        }
        let answer =
            |line: &str| line.split_once("return ").is_some_and(|(_, value)| !value.trim().is_empty());
        let number = |nth: usize| u32::try_from(at + 2 + nth).unwrap_or(u32::MAX);
        found.extend(
            region
                .iter()
                .enumerate()
                .filter(|(_, line)| answer(line))
                .map(|(nth, line)| (number(nth), line.trim())),
        );
    }
    found.into_iter()
}

/// Returns true for a build file whose flags decide whether assertions are compiled.
pub(super) fn is_native_build(path: &str) -> bool {
    let name = file_name(path);
    super::makefiles::is_makefile(path)
        || matches!(name, "CMakeLists.txt" | "meson.build" | "Makefile.am" | "configure.ac")
        || name.ends_with(".cmake")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debug_region_with_a_function_is_no_answer() {
        let lines = |text: &str| find_directive_results(text).map(|(line, _)| line).collect::<Vec<_>>();
        assert_eq!(lines("int f() {\n#ifndef NDEBUG\n    return 7;\n#endif\n    return 1;\n}\n"), [3]);
        let helper = "#ifndef NDEBUG\nstatic int ok(void) {\n    return 1;\n}\n#endif\n";
        assert!(lines(helper).is_empty());
        assert!(lines("#ifdef _WIN32\n    return 1;\n#endif\n").is_empty());
    }
}
