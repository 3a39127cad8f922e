//! Every kind of definition in every language: `kinds/sample.EXTENSION.txt` has a text, a line of
//! `=`, and the expected symbols. With `JM_WRITE_EXPECTED=1` the found symbols are written there,
//! for review.

use std::collections::BTreeSet;
use std::path::Path;

use journeyman_syntax::analysis::analyse;
use journeyman_syntax::language::Language;
use journeyman_syntax::outline::Visibility;

/// The line between a text and its symbols.
const RULE: &str = "==========\n";

/// Renders kind, visibility, path, lines, and the first sentence of the comment.
fn found(language: Language, text: &str) -> String {
    let facts = analyse(language, text).unwrap();
    let line = |symbol: &journeyman_syntax::outline::Symbol| {
        let sign = match symbol.visibility {
            Visibility::Public => '+',
            Visibility::Restricted => '~',
            Visibility::Private => '-',
            Visibility::Unknown => '?',
        };
        let doc = if symbol.doc.is_empty() { String::new() } else { format!(" | {}", symbol.doc) };
        let local = if symbol.local { " local" } else { "" };
        let (first, last) = (symbol.lines.start, symbol.lines.end - 1);
        // The name is in the text at its range.
        assert_eq!(&text[symbol.name_range.clone()], symbol.name, "{language:?}");
        assert!(symbol.full.start <= symbol.definition.start && symbol.definition.end <= symbol.full.end);
        assert!(symbol.inside.is_none_or(|at| facts.symbols[at].full.end >= symbol.full.end), "{language:?}");
        format!("{} {sign}{} {first}-{last}{local}{doc}\n", symbol.kind.name(), symbol.path())
    };
    facts.symbols.iter().map(line).collect()
}

#[test]
fn every_kind_in_every_language() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/kinds");
    let mut seen = BTreeSet::new();
    for entry in std::fs::read_dir(&place).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().trim_end_matches(".txt").to_owned();
        let language = Language::from_path(&name).unwrap_or_else(|| panic!("{name} is in no language"));
        let whole = std::fs::read_to_string(&path).unwrap();
        let (text, expected) = whole.split_once(RULE).unwrap_or((&whole, ""));
        let found = found(language, text);
        if std::env::var_os("JM_WRITE_EXPECTED").is_some_and(|write| write == "1") {
            std::fs::write(&path, format!("{text}{RULE}{found}")).unwrap();
        } else {
            assert_eq!(found, expected, "{name}");
        }
        seen.insert(language);
    }
    for language in Language::ALL {
        assert!(seen.contains(language), "{language:?} has no sample");
    }
}

/// Returns source of a few hundred lines in this repository, and the samples.
fn texts() -> Vec<(Language, String)> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts: Vec<(Language, String)> = ["src/outline.rs", "src/walk.rs"]
        .iter()
        .map(|path| (Language::Rust, std::fs::read_to_string(place.join(path)).unwrap()))
        .collect();
    for entry in std::fs::read_dir(place.join("tests/suite/kinds")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().trim_end_matches(".txt").to_owned();
        let whole = std::fs::read_to_string(&path).unwrap();
        let text = whole.split_once(RULE).unwrap().0.to_owned();
        texts.push((Language::from_path(&name).unwrap(), text));
    }
    texts
}

/// A text cut off anywhere keeps the symbols well before the cut. Those in the last lines before it
/// may be lost, because they may be read as the beginning of something else.
#[test]
fn a_cut_loses_little_before_it() {
    /// Lines before the cut in which anything may be lost.
    const NEAR: u32 = 3;
    /// Number of symbols before those lines, in a hundred, that may be lost over all cuts of a
    /// text: an open bracket far above may lack its end.
    const LOST: usize = 3;
    /// Number of cuts of a text.
    const CUTS: usize = 40;
    for (language, text) in texts() {
        let all = analyse(language, &text).unwrap().symbols;
        let (mut asked, mut lost) = (0, Vec::new());
        for nth in 1..CUTS {
            let cut = text.floor_char_boundary(text.len() * nth / CUTS);
            let part = &text[..cut];
            let kept: BTreeSet<(String, usize)> = match analyse(language, part) {
                Ok(facts) => facts.symbols.into_iter().map(|one| (one.name, one.name_range.start)).collect(),
                // Texts that are unsafe for scanners.
                Err(_) => continue,
            };
            let last = u32::try_from(part.lines().count()).unwrap();
            for symbol in all.iter().filter(|symbol| symbol.lines.end + NEAR <= last) {
                asked += 1;
                if !kept.contains(&(symbol.name.clone(), symbol.name_range.start)) {
                    lost.push(format!(
                        "{} of line {} by a cut in line {last}",
                        symbol.path(),
                        symbol.name_line
                    ));
                }
            }
        }
        assert!(lost.len() * 100 <= asked * LOST, "{language:?}: {} of {asked}: {lost:#?}", lost.len());
    }
}
