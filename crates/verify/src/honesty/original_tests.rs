//! Tests as they were before a change, adapted to the names that the change gave to the product.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use journeyman_protocol::RelPath;
use journeyman_syntax::language::Language;

use super::parsed_source::{ParsedSource, TokenKind, children};
use super::product_change::{FilePair, ProductChange, pair_files};
use super::test_units::{TestUnit, find_units};
use super::{ChangedFile, ReadFile, is_product, read_files};
use crate::test_files::is_test_file;
use crate::test_setup::is_program_source;

/// A test file as it was before a change, which can run on the changed product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginalTest {
    /// Its path before the change.
    pub before: RelPath,
    /// Its path now, if the change moved it.
    pub path: RelPath,
    /// The text before the change, with the new names of what the product renamed or moved, and
    /// without tests of removed code.
    pub text: String,
}

/// Returns the changed test files whose original text needs new names or another path to run on the
/// changed product; others run as they were.
///
/// Names are taken from the product alone: if the product no longer has a name that a test uses,
/// the name that replaced it is used. Assertions stay as they were. The function is pure, bounded
/// in time and memory, and doesn't panic on any text.
#[must_use]
pub fn translate_original_tests(files: &[ChangedFile]) -> Vec<OriginalTest> {
    let files = read_files(files);
    let changed = || files.iter().filter(|file| file.has_changed());
    let product: Vec<FilePair<'_, '_>> = changed().filter(|file| is_product(file)).map(file_pair).collect();
    let tests: Vec<FilePair<'_, '_>> =
        changed().filter(|file| file.is_test && is_program_source(file.name)).map(file_pair).collect();
    let mut change = ProductChange::from_files(&product);
    let pairs = pair_files(&tests);
    for (old, new) in &pairs {
        change.add_test_votes(old.1, new.1);
    }
    let names = change.renamed_words();
    let mut originals = Vec::new();
    for (old, new) in &pairs {
        let text = TestTranslation { old: *old, new: *new, change: &change, names: &names }.translated_text();
        let paths = (RelPath::parse(old.0).ok(), RelPath::parse(new.0).ok());
        let (Some(before), Some(path)) = paths else { continue };
        if text != old.1.text || before != path {
            originals.push(OriginalTest { before, path, text });
        }
    }
    // A removed file has no counterpart to take names from.
    for old in tests.iter().filter_map(|(old, _)| *old) {
        if pairs.iter().all(|(known, _)| known.0 != old.0) {
            let text = TestTranslation { old, new: old, change: &change, names: &names }.translated_text();
            let path = RelPath::parse(old.0).ok().filter(|_| text != old.1.text);
            originals.extend(path.map(|path| OriginalTest { before: path.clone(), path, text }));
        }
    }
    originals
}

fn file_pair<'a, 't>(file: &'a ReadFile<'t>) -> FilePair<'a, 't> {
    (file.old.as_ref().map(|old| (file.name, old)), file.new.as_ref().map(|new| (file.name, new)))
}

/// A test file with its old text and the product's new names.
struct TestTranslation<'a, 't> {
    old: (&'a str, &'a ParsedSource<'t>),
    new: (&'a str, &'a ParsedSource<'t>),
    change: &'a ProductChange<'t>,
    names: &'a BTreeMap<&'a str, &'a str>,
}

type TextEdit = (Range<usize>, String);

impl TestTranslation<'_, '_> {
    /// Returns the old text with the new names.
    fn translated_text(&self) -> String {
        let mut edits = self.removal_edits();
        edits.extend(self.import_edits(!edits.is_empty()));
        let is_free = |range: &Range<usize>| {
            !edits.iter().any(|(cut, _)| cut.start < range.end && range.start < cut.end)
        };
        let words: Vec<TextEdit> =
            self.word_edits().into_iter().filter(|(range, _)| is_free(range)).collect();
        edits.extend(words);
        edits.sort_by_key(|(range, _)| range.start);
        let old = self.old.1.text;
        let (mut text, mut at) = (String::new(), 0);
        for (range, new) in edits.iter().filter(|(range, _)| range.start <= range.end) {
            if range.start < at {
                continue;
            }
            text.push_str(old.get(at..range.start).unwrap_or_default());
            text.push_str(new);
            at = range.end;
        }
        text.push_str(old.get(at..).unwrap_or_default());
        text
    }

    /// Returns the edits that rename words, and modules in texts that are names.
    fn word_edits(&self) -> Vec<TextEdit> {
        let modules = self.change.moved_modules();
        let mut edits = Vec::new();
        for line in self.old.1.tokens.chunk_by(|one, other| one.line == other.line) {
            let is_mocking = line.iter().any(|token| super::test_changes::is_mock(token.text));
            for (at, token) in line.iter().enumerate() {
                let beside = |at: usize| line.get(at).map_or("", |token| token.text);
                let is_named =
                    matches!(beside(at + 1), "=" | ":") && matches!(beside(at.wrapping_sub(1)), "(" | ",");
                let parameter = || self.change.renamed_parameter(token.text).filter(|_| is_named);
                let new = match token.kind {
                    TokenKind::Word => {
                        self.names.get(token.text).copied().or_else(parameter).map(str::to_owned)
                    }
                    TokenKind::Text => {
                        let is_path =
                            !token.text.contains(char::is_whitespace) && token.text.contains(['.', '/']);
                        (is_path || is_mocking).then(|| self.rename_words_in(token.text, &modules))
                    }
                    _ => None,
                };
                edits.extend(new.map(|new| (token.start..token.start + token.text.len(), new)));
            }
        }
        edits
    }

    /// Renames the words of a text, such as `"pkg.net.get"`.
    fn rename_words_in(&self, text: &str, modules: &[(String, String)]) -> String {
        let module = modules.iter().find_map(|(old, new)| {
            let inner = text.trim_start_matches(['"', '\'', '`']);
            let rest = inner.strip_prefix(old.as_str())?;
            let quote = text.get(..text.len() - inner.len())?;
            (rest.starts_with(['.', '"', '\''])).then(|| (format!("{quote}{new}"), rest.to_owned()))
        });
        let (head, rest) = module.unwrap_or_else(|| (String::new(), text.to_owned()));
        let mut renamed = head;
        for piece in rest.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_') {
            let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_');
            renamed.push_str(self.names.get(word).unwrap_or(&word));
            renamed.push_str(piece.get(word.len()..).unwrap_or_default());
        }
        renamed
    }

    /// Returns the edits that replace imports of removed or moved names.
    fn import_edits(&self, has_cuts: bool) -> Vec<TextEdit> {
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (old, new) = (find_imports(self.old.1), find_imports(self.new.1));
        let known: BTreeSet<String> = old.iter().map(|(_, text)| squeeze(text)).collect();
        let kept: BTreeSet<String> = new.iter().map(|(_, text)| squeeze(text)).collect();
        let is_elsewhere = self.old.0 != self.new.0 || has_cuts;
        let lost = old.iter().filter(|(_, text)| !kept.contains(&squeeze(text)));
        let outdated = lost.filter(|(_, text)| is_elsewhere || self.change.has_lost_name(text));
        let came: Vec<&str> =
            new.iter().map(|(_, text)| *text).filter(|text| !known.contains(&squeeze(text))).collect();
        let mut came = Some(came.join("\n"));
        outdated.map(|(range, _)| (range.clone(), came.take().unwrap_or_default())).collect()
    }

    /// Returns the edits that remove tests, and lines of other tests, that use removed code.
    fn removal_edits(&self) -> Vec<TextEdit> {
        let (old, new) = (self.old.1, self.new.1);
        let is_dropped = |range: &Range<usize>| {
            let tokens = old.tokens_in(range);
            (0..tokens.len()).any(|at| {
                let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
                let is_used =
                    text(at + 1) == "(" || at > 0 && matches!(text(at - 1), "." | "::" | "new" | "->");
                is_used && self.change.has_dropped(text(at))
            })
        };
        let left: Vec<TestUnit<'_>> = find_units(self.new.0, new, is_test_file(self.new.0));
        let is_gone = |unit: &TestUnit<'_>| unit.is_test && left.iter().all(|other| other.name != unit.name);
        let gone = find_units(self.old.0, old, is_test_file(self.old.0)).into_iter().filter(is_gone);
        let mut cuts: Vec<TextEdit> = gone
            .filter(|unit| is_dropped(&unit.range))
            .map(|unit| {
                let pass = if old.language == Some(Language::Python) { "pass" } else { "" };
                (extend_over_decorations(old.text, unit.range), pass.to_owned())
            })
            .collect();
        let new_lines: BTreeSet<&str> = new.text.lines().map(str::trim).collect();
        let mut at = 0;
        for line in old.text.split_inclusive('\n') {
            let range = at..at + line.len();
            at = range.end;
            let is_whole = line.matches(['(', '[', '{']).count() == line.matches([')', ']', '}']).count();
            let is_cut = cuts.iter().any(|(cut, _)| cut.start < range.end && range.start < cut.end);
            let is_import = is_import_line(line);
            if is_whole && !is_cut && !is_import && !new_lines.contains(line.trim()) && is_dropped(&range) {
                cuts.push((range, String::new()));
            }
        }
        cuts
    }
}

/// Extends the byte range of a test by the lines of decorations and attributes above it.
fn extend_over_decorations(text: &str, range: Range<usize>) -> Range<usize> {
    let mut start = range.start;
    loop {
        let line_start = text.get(..start).and_then(|head| head.rfind('\n')).map_or(0, |at| at + 1);
        let above_start =
            text.get(..line_start.saturating_sub(1)).and_then(|head| head.rfind('\n')).map_or(0, |at| at + 1);
        let above = text.get(above_start..line_start).unwrap_or_default();
        let mark = above.trim_start();
        if line_start == 0 || !(mark.starts_with('@') || mark.starts_with("#[")) {
            return start..range.end;
        }
        start = above_start + (above.len() - mark.len());
    }
}

fn is_import_line(line: &str) -> bool {
    let line = line.trim_start();
    ["import ", "from ", "use ", "using ", "require", "#include", "alias ", "package ", "load "]
        .iter()
        .any(|beginning| line.starts_with(beginning))
}

/// Returns the import statements of a file, with their byte ranges.
fn find_imports<'t>(source: &ParsedSource<'t>) -> Vec<(Range<usize>, &'t str)> {
    let Some(tree) = &source.tree else {
        let mut at = 0;
        let lines = source.text.split_inclusive('\n').map(|line| {
            let range = at..at + line.trim_end().len();
            at += line.len();
            (range, line.trim_end())
        });
        return lines.filter(|(_, line)| is_import_line(line)).collect();
    };
    let statements = children(tree.root()).into_iter().filter(|node| {
        let (kind, text) = (node.kind(), source.text_of_node(*node));
        kind.contains("import")
            || kind.contains("include")
            || kind.starts_with("use_")
            || matches!(
                kind,
                "using_directive"
                    | "package_clause"
                    | "package_declaration"
                    | "namespace_use_declaration"
                    | "namespace_definition"
            )
            || text.starts_with("require")
            || kind.contains("declaration") && text.contains("require(") && text.lines().count() < 20
    });
    let imports = statements.map(|node| {
        let text = source.text_of_node(node).trim_end();
        let start = node.byte_range().start;
        (start..start + text.len(), text)
    });
    imports.collect()
}
