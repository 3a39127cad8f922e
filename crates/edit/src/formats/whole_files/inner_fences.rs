//! Fences within a block of code, such as those of an example in its documentation.

use journeyman_syntax::language::Language;
use journeyman_syntax::parse::parse;

/// Returns the index of the first of some texts that is code of the language that a file's name or
/// the block's fence says; 0 where none is.
pub(super) fn first_code(name: Option<&str>, info: &str, texts: &[&str]) -> usize {
    let in_fence = info.split_whitespace().next().and_then(Language::from_name);
    let Some(language) = name.and_then(Language::from_path).or(in_fence) else { return 0 };
    let is_code = |text: &&str| parse(language, text).is_ok_and(|tree| !tree.has_error());
    texts.iter().position(is_code).unwrap_or(0)
}
