//! Comments that say which definition is to go: `// removed: fn debug`, `# Removed the f method`.

use std::borrow::Cow;

use journeyman_protocol::RelPath;
use journeyman_syntax::language::Language;
use journeyman_syntax::outline::outline;
use journeyman_syntax::parse::parse;

use crate::edit::{SymbolAction, SymbolEdit};
use crate::placeholder;
use crate::symbol;

/// A longer comment tells a story.
const MAX_COMMENT_WORDS: usize = 8;
/// More definitions aren't taken away by comments in one rewrite.
const MAX_REMOVALS: usize = 20;

/// The file without the definitions that comments of the rewrite say to remove, and the rewrite
/// without those comments; `None` where it has none.
pub(super) fn apply_removals(path: &RelPath, text: &str, content: &str) -> Option<(String, String)> {
    let said =
        |line: &str| placeholder::is_removal_comment(line, MAX_COMMENT_WORDS) && !text.contains(line.trim());
    if !content.lines().any(said) {
        return None;
    }
    let language = Language::detect(&path.to_string(), text)?;
    let names = |text: &str| -> Option<Vec<String>> {
        let tree = parse(language, text).ok()?;
        Some(outline(&tree, text).into_iter().map(|symbol| symbol.name).collect())
    };
    let own = names(text)?;
    let shown = names(content).unwrap_or_default();
    let mut left = Cow::Borrowed(text);
    let mut rest = String::with_capacity(content.len());
    let mut removed = 0;
    for piece in content.split_inclusive('\n') {
        let line = piece.trim_end();
        let named = if said(line) { only_named_definition(line, &own, &shown) } else { None };
        let without = named.filter(|_| removed < MAX_REMOVALS).and_then(|name| {
            let edit = SymbolEdit { symbol: name.to_owned(), action: SymbolAction::Delete };
            Some(symbol::find_symbol_edit(path, &left, &edit).ok()?.apply_to(&left))
        });
        match without {
            Some(without) => {
                left = Cow::Owned(without);
                removed += 1;
            }
            None => rest.push_str(piece),
        }
    }
    (removed > 0).then(|| (left.into_owned(), rest))
}

/// The one definition that a comment names, if the file has it once and the rewrite doesn't show
/// it.
fn only_named_definition<'a>(line: &'a str, own: &[String], shown: &[String]) -> Option<&'a str> {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let mut named =
        words.filter(|word| own.iter().any(|name| name == word) && !placeholder::is_filler_word(word));
    let first = named.next()?;
    let once = own.iter().filter(|name| *name == first).count() == 1;
    (once && !shown.iter().any(|name| name == first) && named.all(|word| word == first)).then_some(first)
}
