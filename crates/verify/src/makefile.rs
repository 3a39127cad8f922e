//! Makefiles, read as text: rules with their commands, and variables. Conditionals and included
//! files are not followed, and nothing is executed.

use std::collections::BTreeMap;

/// The names that make looks for, in its order.
pub(crate) const MAKEFILE_NAMES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
/// Names of rules that run tests.
pub(crate) const TEST_RULES: [&str; 8] =
    ["test", "tests", "check", "verify", "ci", "unit", "unittest", "run-tests"];
/// The special target whose commands make what has no rule.
pub(crate) const DEFAULT_TARGET: &str = ".DEFAULT";
/// Maximum number of rules that are read.
const MAX_RULES: usize = 2_000;
/// Maximum depth of variables within variables.
const MAX_EXPANSION_DEPTH: usize = 8;
/// Maximum bytes of an expanded text.
const MAX_EXPANDED_BYTES: usize = 64 << 10;

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MakeRule {
    /// 1-based.
    pub(crate) line: u32,
    pub(crate) targets: Vec<String>,
    pub(crate) needs: Vec<String>,
    /// The commands with the prefixes before them, such as `@` and `-`.
    pub(crate) commands: Vec<String>,
}

/// The variables of a Makefile, not expanded.
pub(crate) struct MakeVariables(BTreeMap<String, String>);

/// Returns the lines of a Makefile with their 1-based numbers; continued lines are joined.
fn logical_lines(text: &str) -> Vec<(u32, String)> {
    let mut lines: Vec<(u32, String)> = Vec::new();
    let mut continues = false;
    for (at, line) in text.lines().enumerate() {
        let (piece, more) = match line.strip_suffix('\\') {
            Some(piece) => (piece.trim_end(), true),
            None => (line, false),
        };
        match lines.last_mut().filter(|_| continues) {
            Some((_, last)) => {
                last.push(' ');
                last.push_str(piece.trim_start());
            }
            None => lines.push((u32::try_from(at + 1).unwrap_or(u32::MAX), piece.to_owned())),
        }
        continues = more;
    }
    lines
}

/// Returns the rules in their order.
pub(crate) fn parse_rules(makefile: &str) -> Vec<MakeRule> {
    let mut found: Vec<MakeRule> = Vec::new();
    let mut open = false;
    for (line, text) in logical_lines(makefile) {
        if let Some(command) = text.strip_prefix('\t') {
            if let Some(rule) = found.last_mut().filter(|_| open && !command.trim().is_empty()) {
                rule.commands.push(command.trim().to_owned());
            }
            continue;
        }
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        open = false;
        if found.len() >= MAX_RULES {
            break;
        }
        if let Some(rule) = parse_rule(line, &text) {
            found.push(rule);
            open = true;
        }
    }
    found
}

fn parse_rule(line: u32, text: &str) -> Option<MakeRule> {
    let (targets, rest) = text.split_once(':')?;
    if text.starts_with(['\t', ' ', '.']) && targets.trim_end() != DEFAULT_TARGET {
        return None;
    }
    let rest = rest.trim_start_matches(':');
    let (needs, command) = rest.split_once(';').map_or((rest, None), |(needs, it)| (needs, Some(it)));
    let needs = needs.split('#').next().unwrap_or_default();
    // `a := b`, `a ::= b` set variables; `a: b = c` sets one for a target.
    let sets = |text: &str| text.replace("$(", "").contains('=') && !text.contains(":.");
    if targets.contains('=') || rest.starts_with('=') || sets(needs) {
        return None;
    }
    let words = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    Some(MakeRule {
        line,
        targets: words(targets),
        needs: words(needs),
        commands: command.map(|it| it.trim().to_owned()).into_iter().collect(),
    })
}

/// Returns the variables with their values; a variable that is set several times has all values.
pub(crate) fn parse_variables(makefile: &str) -> MakeVariables {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for (_, line) in logical_lines(makefile) {
        let Some((name, value)) = line.split_once('=').filter(|_| !line.starts_with('\t')) else { continue };
        let name = name.trim_end_matches([':', '?', '+', '!', ' ', '\t']).trim_start();
        let value = value.split(" #").next().unwrap_or_default().trim();
        if name.is_empty() || name.contains([' ', ':', '$', '#']) {
            continue;
        }
        let known = found.entry(name.to_owned()).or_default();
        if known.len() + value.len() < MAX_EXPANDED_BYTES {
            known.push(' ');
            known.push_str(value);
        }
    }
    MakeVariables(found)
}

impl MakeVariables {
    /// Returns the words of a text with its variables replaced by their values.
    pub(crate) fn expand_words(&self, text: &str) -> Vec<String> {
        let mut expanded = String::new();
        self.expand(text, MAX_EXPANSION_DEPTH, &mut expanded);
        expanded.split_whitespace().map(str::to_owned).collect()
    }

    /// Returns the words of the variable.
    pub(crate) fn words_of_variable(&self, name: &str) -> Vec<String> {
        self.0.get(name).map(|value| self.expand_words(value)).unwrap_or_default()
    }

    fn expand(&self, text: &str, depth: usize, into: &mut String) {
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            into.push_str(rest.get(..at).unwrap_or_default());
            let after = rest.get(at + 1..).unwrap_or_default();
            let close = match after.chars().next() {
                Some('(') => ')',
                Some('{') => '}',
                _ => {
                    rest = after;
                    continue;
                }
            };
            let Some(end) = after.find(close) else { break };
            self.expand_reference(after.get(1..end).unwrap_or_default(), depth, into);
            rest = after.get(end + 1..).unwrap_or_default();
            if into.len() > MAX_EXPANDED_BYTES {
                return;
            }
        }
        into.push_str(rest);
    }

    /// Expands `NAME` or `NAME:.c=.o`.
    fn expand_reference(&self, reference: &str, depth: usize, into: &mut String) {
        let (name, change) =
            reference.split_once(':').map_or((reference, None), |(name, it)| (name, Some(it)));
        let (Some(value), Some(depth)) = (self.0.get(name), depth.checked_sub(1)) else { return };
        let mut expanded = String::new();
        self.expand(value, depth, &mut expanded);
        let change = change.and_then(|it| it.split_once('='));
        for word in expanded.split_whitespace() {
            let (from, to) = change.unwrap_or(("", ""));
            let stem = word.strip_suffix(from.trim_start_matches('%'));
            into.push(' ');
            into.push_str(stem.unwrap_or(word));
            into.push_str(if stem.is_some() { to.trim_start_matches('%') } else { "" });
            if into.len() > MAX_EXPANDED_BYTES {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_told_from_variables() {
        let text = "CC = cc\nSRC := a.c \\\n  b.c\nx: y = 1\ncheck: t # all\n\n# why\n\t@./t\n\t- rm t\nt: $(SRC)\n\tcc -o t \\\n\t  $(SRC)\nall clean: ; true\nu: $(A:.c=.o)\n";
        let shown: Vec<String> = parse_rules(text)
            .into_iter()
            .map(|rule| {
                format!(
                    "{} {}|{}|{}",
                    rule.line,
                    rule.targets.join(" "),
                    rule.needs.join(" "),
                    rule.commands.join("&")
                )
            })
            .collect();
        let expected =
            ["5 check|t|@./t&- rm t", "10 t|$(SRC)|cc -o t $(SRC)", "13 all clean||true", "14 u|$(A:.c=.o)|"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn variables_are_replaced_within_bounds() {
        let known = parse_variables("A = a.c $(B)\nB := b.c\nB += c.c\nLOOP = $(LOOP) x\nD = $(A:.c=.o)\n");
        assert_eq!(
            known.expand_words("$(A) ${D} $@ $(NONE) z"),
            ["a.c", "b.c", "c.c", "a.o", "b.o", "c.o", "@", "z"]
        );
        assert_eq!(known.words_of_variable("B"), ["b.c", "c.c"]);
        assert!(known.expand_words("$(LOOP)").len() < 100);
    }
}
