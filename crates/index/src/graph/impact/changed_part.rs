//! The changed part of a file, from its text before and after.

use std::cell::LazyCell;
use std::ops::{Range, RangeInclusive};

use hashbrown::{HashMap, HashSet};
use journeyman_syntax::analysis::{self, SyntaxAnalysis};
use journeyman_syntax::imports::Import;
use journeyman_syntax::language::Language;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::visibility::{ALL_NAMES, UNNAMED_SYMBOL};
use crate::graph::name_dependencies::{NameRole, role_of_kind};

/// Maximum product of compared lines of both texts: the time grows with it where nothing is equal.
const MAX_COMPARED_LINES: usize = 20_000;

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedSourceFile {
    /// Number of the file in the graph.
    pub file: u32,
    /// The changed part; `None` for the whole file.
    pub part: Option<ChangedPart>,
}

impl From<u32> for ChangedSourceFile {
    fn from(file: u32) -> Self {
        Self { file, part: None }
    }
}

/// The changed part of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangedPart {
    /// Changed lines, 1-based.
    pub lines: Vec<RangeInclusive<u32>>,
    /// Names that the file defined or imported, and no longer does.
    pub gone: Vec<String>,
}

impl ChangedPart {
    /// Compares two texts of a file: added and changed lines, the lines of definitions that lost
    /// some, and names that are no longer defined or imported. Blank and comment lines don't count.
    /// `None` if that would take too long, or if a lost line belonged to no definition: then the
    /// whole file has changed.
    #[must_use]
    pub fn between(language: Language, before: &str, after: &str) -> Option<Self> {
        // Only one of them may have been read as it is.
        let (before, after) = (before.trim_start_matches('\u{feff}'), after.trim_start_matches('\u{feff}'));
        let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
        let same = |(one, other): &(&&str, &&str)| one == other;
        let head = old.iter().zip(&new).take_while(same).count();
        let tail = old.iter().skip(head).rev().zip(new.iter().skip(head).rev()).take_while(same).count();
        let (old, new) = (old.get(head..old.len() - tail)?, new.get(head..new.len() - tail)?);
        if old.len() + new.len() > MAX_COMPARED_LINES {
            return None;
        }
        let mut part = Self::default();
        let mut lost = Vec::new();
        // Parsed on demand only.
        let is = LazyCell::new(|| analysis::analyse(language, after).ok());
        let inside = if comment_sign(language) == "#" { definition_lines(is.as_ref()) } else { Vec::new() };
        for change in capture_diff_slices(Algorithm::Myers, old, new) {
            if matches!(change, DiffOp::Equal { .. }) {
                continue;
            }
            for at in change.new_range() {
                let line = u32::try_from(head + at + 1).ok()?;
                let within = inside.iter().any(|lines| lines.contains(&line));
                if !new.get(at).is_some_and(|text| is_significant_line(language, text, within)) {
                    continue;
                }
                match part.lines.last_mut().filter(|last| last.end() + 1 == line) {
                    Some(last) => *last = *last.start()..=line,
                    None => part.lines.push(line..=line),
                }
            }
            let counts = |text: &&str| is_significant_line(language, text, false);
            let old_lines = change.old_range().filter(|at| old.get(*at).is_some_and(counts));
            lost.extend(old_lines.filter_map(|at| u32::try_from(head + at + 1).ok()));
        }
        if !lost.is_empty() {
            let was = analysis::analyse(language, before).ok()?;
            part.add_lost_lines(&was, is.as_ref()?, before, &lost)?;
        }
        Some(part)
    }

    /// Adds the effect of lost lines; `None` if it is unknown.
    fn add_lost_lines(
        &mut self,
        was: &SyntaxAnalysis,
        is: &SyntaxAnalysis,
        before: &str,
        lost: &[u32],
    ) -> Option<()> {
        let mut now: HashMap<String, u32> = HashMap::new();
        for symbol in &is.symbols {
            now.entry(symbol.path()).or_insert(symbol.name_line);
        }
        let before = OldImports::new(was, is, before);
        for line in lost {
            let innermost = was.symbols.iter().rev().find(|symbol| {
                symbol.lines.contains(line)
                    && !symbol.local
                    && role_of_kind(symbol.kind).is_some_and(|role| role != NameRole::Extended)
            });
            let Some(symbol) = innermost else {
                self.gone.extend(before.names_imported_at(*line)?);
                continue;
            };
            if let Some(line) = now.get(&symbol.path()) {
                self.lines.push(*line..=*line);
                continue;
            }
            self.gone.push(symbol.name.clone());
            // Users may have had it by a value of its type.
            self.lines.extend(now.get(&symbol.parents.join(".")).map(|line| *line..=*line));
        }
        self.lines.dedup();
        self.gone.sort_unstable();
        self.gone.dedup();
        Some(())
    }
}

/// The imports in the earlier text of a file.
struct OldImports<'a> {
    lines: Vec<&'a str>,
    imports: &'a [Import],
    /// The lines in which a name is used, ascending.
    uses: HashMap<&'a str, Vec<u32>>,
    /// The names that the present text imports.
    still: HashSet<&'a str>,
}

impl<'a> OldImports<'a> {
    fn new(was: &'a SyntaxAnalysis, is: &'a SyntaxAnalysis, text: &'a str) -> Self {
        let mut uses: HashMap<&str, Vec<u32>> = HashMap::new();
        for reference in &was.references {
            uses.entry(reference.name(text)).or_default().push(reference.line);
        }
        let still = is.imports.iter().flat_map(|import| &import.names).map(String::as_str).collect();
        Self { lines: text.lines().collect(), imports: &was.imports, uses, still }
    }

    /// Returns the names that a lost line imported and no present line imports. `None` if it
    /// imported something without a name, or under an alias.
    fn names_imported_at(&self, line: u32) -> Option<Vec<String>> {
        let behind = self.imports.partition_point(|import| import.line <= line);
        let import = self.imports.get(behind.checked_sub(1)?)?;
        // A listed name is at its first use from there on.
        let stands = |name: &str| {
            let lines = self.uses.get(name).map(Vec::as_slice).unwrap_or_default();
            lines.get(lines.partition_point(|line| *line < import.line)).copied().unwrap_or(import.line)
        };
        let is_here = import.line == line || import.names.iter().any(|name| stands(name) == line);
        let text = self.lines.get((line as usize).checked_sub(1)?)?;
        let renames = text.split_whitespace().any(|word| word == "as");
        let is_named = |name: &String| name != ALL_NAMES && name != UNNAMED_SYMBOL;
        if !is_here || renames || import.names.is_empty() || !import.names.iter().all(is_named) {
            return None;
        }
        let beside = self.imports.get(..behind).unwrap_or_default().iter().rev();
        let names = beside.take_while(|other| other.line == import.line).flat_map(|import| &import.names);
        Some(
            names
                .filter(|name| stands(name) == line && !self.still.contains(name.as_str()))
                .cloned()
                .collect(),
        )
    }
}

/// Returns the lines of definitions in which apparent comments may be text: `#` also begins a
/// heading.
fn definition_lines(facts: Option<&SyntaxAnalysis>) -> Vec<Range<u32>> {
    let symbols = facts.into_iter().flat_map(|facts| &facts.symbols);
    symbols.map(|symbol| symbol.name_line..symbol.lines.end).collect()
}

/// Returns the comment sign of a language.
fn comment_sign(language: Language) -> &'static str {
    match language {
        Language::Python | Language::Ruby | Language::Bash => "#",
        Language::Lua => "--",
        _ => "//",
    }
}

/// Returns true for a line with more than a comment. `//go:build` and `#!` count, because tools
/// read them.
fn is_significant_line(language: Language, line: &str, within: bool) -> bool {
    let line = line.trim_start();
    let is_comment =
        line.starts_with(comment_sign(language)) && !line.starts_with("//go:") && !line.starts_with("#!");
    !line.is_empty() && (within || !is_comment)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "\
import a
from b import c, d

# what it does
def one():
    return 1


def two():
    x = 2
    return x


class Three:
    def four(self):
        return 4
";

    fn between(from: &str, to: &str) -> Option<ChangedPart> {
        assert!(BEFORE.contains(from), "{from}");
        ChangedPart::between(Language::Python, BEFORE, &BEFORE.replacen(from, to, 1))
    }

    #[test]
    fn differences_are_lines_and_lost_names() {
        let part = |lines: &[RangeInclusive<u32>], gone: &[&str]| {
            Some(ChangedPart {
                lines: lines.to_vec(),
                gone: gone.iter().map(|name| (*name).to_owned()).collect(),
            })
        };
        // A changed line is both lost and new.
        assert_eq!(between("return 1", "return 3"), part(&[6..=6, 5..=5], &[]));
        assert_eq!(between("    x = 2\n", ""), part(&[9..=9], &[]));
        assert_eq!(between("def two():\n    x = 2\n    return x\n", ""), part(&[], &["two"]));
        assert_eq!(between("from b import c, d\n", ""), part(&[], &["c", "d"]));
        assert_eq!(between("c, d", "d"), part(&[2..=2], &["c"]));
        assert_eq!(between("# what it does\n", "\n\n# what\n"), part(&[], &[]));
        assert_eq!(between("        return 4", "        x = 3\n        return 4"), part(&[16..=16], &[]));
        assert_eq!(between("import a", "import a"), part(&[], &[]));
        assert_eq!(between("import a", "\u{feff}import a"), part(&[], &[]));
        // Code with a value of the type had it.
        assert_eq!(
            between("    def four(self):\n        return 4\n", "    x = 1\n"),
            part(&[15..=15, 14..=14], &["four"])
        );
    }

    #[test]
    fn apparent_comments_may_be_text() {
        let text = |title: &str| format!("TEXT = \"\"\"\n# {title}\n\"\"\"\n# {title}\n");
        let part = ChangedPart::between(Language::Python, &text("one"), &text("two")).unwrap();
        assert_eq!(part.lines, [2..=2]);
        let go = |tag: &str| format!("//go:build {tag}\n// {tag}\npackage x\n");
        assert_eq!(ChangedPart::between(Language::Go, &go("a"), &go("b")), None);
    }

    #[test]
    fn unclear_differences_mean_the_whole_file() {
        let long =
            |word: &str| (0..MAX_COMPARED_LINES).map(|line| format!("{word} = {line}\n")).collect::<String>();
        assert_eq!(ChangedPart::between(Language::Python, &long("a"), &long("b")), None);
        assert_eq!(ChangedPart::between(Language::Python, "print(1)\n", ""), None);
        for lost in ["import a\n", "from a import *\n", "from a import b as c\n", "from a import b\nb()\n"] {
            assert_eq!(
                ChangedPart::between(Language::Python, &format!("{lost}x = 1\n"), "x = 1\n"),
                None,
                "{lost}"
            );
        }
        let barrel = "export { default as One } from './one';\nexport const two = 2;\n";
        assert_eq!(ChangedPart::between(Language::TypeScript, barrel, "export const two = 2;\n"), None);
    }
}
