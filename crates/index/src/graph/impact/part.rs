//! Which part of a file a change is: by the file's text before it and after.

use std::ops::RangeInclusive;

use hashbrown::HashMap;
use journeyman_syntax::facts::{self, Facts};
use journeyman_syntax::language::Language;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::symbols::{Role, role};

/// Lines that are compared, of both texts: the time goes with their product where nothing is alike.
const MAX_LINES: usize = 20_000;

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    /// Lines that are other ones now, counted from 1.
    pub lines: Vec<RangeInclusive<u32>>,
    /// Names that it gave to others and doesn't any more.
    pub gone: Vec<String>,
}

impl Part {
    /// What differs between two texts of a file: lines that came or changed, those of a definition that lost some, and names
    /// that are defined or imported no more. Blank lines and lines that only begin a comment don't count. Nothing is told
    /// where that would take too long, or where what is lost belonged to no definition: then all of the file is meant.
    #[must_use]
    pub fn between(language: Language, before: &str, after: &str) -> Option<Self> {
        let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
        let same = |(one, other): &(&&str, &&str)| one == other;
        let head = old.iter().zip(&new).take_while(same).count();
        let tail = old.iter().skip(head).rev().zip(new.iter().skip(head).rev()).take_while(same).count();
        let (old, new) = (old.get(head..old.len() - tail)?, new.get(head..new.len() - tail)?);
        if old.len() + new.len() > MAX_LINES {
            return None;
        }
        let mut part = Self::default();
        let mut lost = Vec::new();
        let counts = |line: &&str| says_something(language, line);
        for change in capture_diff_slices(Algorithm::Myers, old, new) {
            if matches!(change, DiffOp::Equal { .. }) {
                continue;
            }
            for at in change.new_range().filter(|at| new.get(*at).is_some_and(counts)) {
                let line = u32::try_from(head + at + 1).ok()?;
                match part.lines.last_mut().filter(|last| last.end() + 1 == line) {
                    Some(last) => *last = *last.start()..=line,
                    None => part.lines.push(line..=line),
                }
            }
            let old_lines = change.old_range().filter(|at| old.get(*at).is_some_and(counts));
            lost.extend(old_lines.filter_map(|at| u32::try_from(head + at + 1).ok()));
        }
        if !lost.is_empty() {
            let was = facts::read(language, before).ok()?;
            let is = facts::read(language, after).ok()?;
            part.lose(&was, &is, &lost)?;
        }
        Some(part)
    }

    /// Adds what lost lines mean.
    fn lose(&mut self, was: &Facts, is: &Facts, lost: &[u32]) -> Option<()> {
        let mut now: HashMap<String, u32> = HashMap::new();
        for symbol in &is.symbols {
            now.entry(symbol.path()).or_insert(symbol.name_line);
        }
        for line in lost {
            let innermost = was.symbols.iter().rev().find(|symbol| {
                symbol.lines.contains(line)
                    && !symbol.local
                    && role(symbol.kind).is_some_and(|role| role != Role::Extended)
            });
            if let Some(symbol) = innermost {
                match now.get(&symbol.path()) {
                    Some(line) => self.lines.push(*line..=*line),
                    None => self.gone.push(symbol.name.clone()),
                }
                continue;
            }
            let reaches = |from: u32, names: usize| {
                from <= *line && *line <= from.saturating_add(u32::try_from(names).unwrap_or(u32::MAX))
            };
            let import = was.imports.iter().rev().find(|import| reaches(import.line, import.names.len()))?;
            let still = |name: &&String| !is.imports.iter().any(|import| import.names.contains(name));
            self.gone.extend(import.names.iter().filter(still).cloned());
        }
        self.gone.sort_unstable();
        self.gone.dedup();
        Some(())
    }
}

/// Whether a line is more than the beginning of a comment.
fn says_something(language: Language, line: &str) -> bool {
    let line = line.trim_start();
    let comment = match language {
        Language::Python | Language::Ruby | Language::Bash => "#",
        Language::Lua => "--",
        _ => "//",
    };
    !line.is_empty() && !line.starts_with(comment)
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

    fn between(from: &str, to: &str) -> Option<Part> {
        assert!(BEFORE.contains(from), "{from}");
        Part::between(Language::Python, BEFORE, &BEFORE.replacen(from, to, 1))
    }

    #[test]
    fn what_differs_is_told_by_lines_and_lost_names() {
        let part = |lines: &[RangeInclusive<u32>], gone: &[&str]| {
            Some(Part { lines: lines.to_vec(), gone: gone.iter().map(|name| (*name).to_owned()).collect() })
        };
        // What is another line is both lost and new.
        assert_eq!(between("return 1", "return 3"), part(&[6..=6, 5..=5], &[]));
        assert_eq!(between("    x = 2\n", ""), part(&[9..=9], &[]));
        assert_eq!(between("def two():\n    x = 2\n    return x\n", ""), part(&[], &["two"]));
        assert_eq!(between("from b import c, d\n", ""), part(&[], &["c", "d"]));
        assert_eq!(between("c, d", "d"), part(&[2..=2], &["c"]));
        assert_eq!(between("# what it does\n", "\n\n# what\n"), part(&[], &[]));
        assert_eq!(between("        return 4", "        x = 3\n        return 4"), part(&[16..=16], &[]));
        assert_eq!(between("import a", "import a"), part(&[], &[]));
    }

    #[test]
    fn what_can_not_be_told_means_the_whole_file() {
        let long = |word: &str| (0..MAX_LINES).map(|line| format!("{word} = {line}\n")).collect::<String>();
        assert_eq!(Part::between(Language::Python, &long("a"), &long("b")), None);
        assert_eq!(Part::between(Language::Python, "print(1)\n", ""), None);
    }
}
