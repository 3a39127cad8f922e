//! Storage of mentions among the references to names.

use crate::analysis::Section;

/// Prefix of a name of code that documentation mentions.
pub(super) const KEY_PREFIX: char = '`';

/// Returns a section's mentions as references to marked names at its first line.
pub(crate) fn mention_references(section: &Section) -> impl Iterator<Item = (String, u32)> {
    let last = |mention: &String| mention.rsplit('.').next().map(|name| format!("{KEY_PREFIX}{name}"));
    let line = section.first_line;
    section.mentions.iter().filter_map(last).map(move |name| (name, line))
}

/// Returns true if a name is stored because documentation mentions it.
pub(crate) fn is_mention_key(name: &str) -> bool {
    name.starts_with(KEY_PREFIX)
}
