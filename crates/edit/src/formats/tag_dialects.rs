//! Tags of edits under other names than the usual ones, and in capitals.

use crate::formats::ReplyLines;
use crate::formats::paths::{looks_like_path, path_in_tag};
use crate::formats::tags::{EDIT_BLOCK_TAGS, parse_opening_tag};
use crate::formats::text_pairs::{NEW_TEXT_TAG, OLD_TEXT_TAG};

/// Names of the tags around the text that goes and around the one that comes. In other words either
/// may be an element of a document.
const PAIR_NAMES: [(&str, &str); 8] = [
    ("old_text", "new_text"),
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("old_code", "new_code"),
    ("old_content", "new_content"),
    ("search", "replace"),
    ("find", "replace"),
    ("original_text", "new_text"),
];

/// Names that may be elements of a document as well: they count below a tag that names a file.
const DOUBTFUL_PAIR_NAMES: [(&str, &str); 5] = [
    ("old", "new"),
    ("original", "updated"),
    ("original", "modified"),
    ("original", "new"),
    ("before", "after"),
];

/// Only so many lines with such a tag are looked at for the tags that belong to it.
const MAX_LOOKS: usize = 8;

/// Returns a text in which the tags of edits have their usual names, if the first line that begins
/// with such a tag has another: line for line the text stays what it is.
///
/// Only tags written exactly as that line's, and those that belong to it, are renamed: others may
/// be content.
pub(crate) fn with_usual_tags(text: &str) -> Option<String> {
    let starts = ReplyLines::new(text).filter_map(|row| {
        let start = row.start + (row.text.len() - row.text.trim_start().len());
        Some((start, tag_name(text, start).filter(|name| begins_unusual_edit(name))?))
    });
    let names = starts.take(MAX_LOOKS).find_map(|(start, name)| unusual_names(text, start, name))?;
    let mut out = text.to_owned();
    for (written, usual) in names {
        for sign in ["<", "</"] {
            for end in [">", " ", "/>"] {
                out = out.replace(&format!("{sign}{written}{end}"), &format!("{sign}{usual}{end}"));
            }
        }
    }
    Some(out)
}

/// The name of the tag that opens at `at`.
fn tag_name(text: &str, at: usize) -> Option<&str> {
    let rest = text.get(at..)?.strip_prefix('<')?;
    let length = rest.find(|c: char| !(c.is_ascii_alphabetic() || c == '_'))?;
    rest.get(..length)
}

/// Returns true if an edit may begin with a tag of this name, in small letters or in capitals.
fn begins_unusual_edit(name: &str) -> bool {
    let small = name.to_ascii_lowercase();
    let capitals = small.to_ascii_uppercase() == name;
    let pairs = PAIR_NAMES.iter().chain(&DOUBTFUL_PAIR_NAMES);
    (small == "edit" && name != "edit")
        || ((capitals || small == name) && pairs.into_iter().any(|(old, _)| *old == small))
}

/// Returns true if the line above a tag names a file in a tag of its own, or by an attribute.
fn is_below_file_tag(text: &str, at: usize) -> bool {
    let above = text.get(..at).unwrap_or_default().trim_end();
    let line = above.rsplit('\n').next().unwrap_or_default().trim();
    path_in_tag(line).is_some_and(looks_like_path)
}

/// The names to replace, each with the usual one, where a tag with another name begins at `at` and
/// those that belong to it follow.
fn unusual_names(text: &str, at: usize, written: &str) -> Option<Vec<(String, String)>> {
    let rest = text.get(at..)?;
    parse_opening_tag(text, at, written)?;
    let has = |name: &str| rest.contains(&format!("<{name}>")) || rest.contains(&format!("<{name}/>"));
    if written.eq_ignore_ascii_case("edit") {
        let capitals = written == "EDIT";
        let known = EDIT_BLOCK_TAGS.iter().map(|name| {
            let (first, rest) = name.split_at(1);
            let written =
                if capitals { name.to_ascii_uppercase() } else { first.to_ascii_uppercase() + rest };
            (written, (*name).to_owned())
        });
        let names: Vec<(String, String)> = known.filter(|(written, _)| has(written)).collect();
        // In such letters `<Edit>` is also the name of a component.
        let steps = || {
            ["search", "replace", "delete", "rename"]
                .into_iter()
                .any(|step| names.iter().any(|(_, usual)| usual == step) || has(step))
        };
        let is_edit = if capitals { !names.is_empty() } else { (has("File") || has("file")) && steps() };
        let edit = (written.to_owned(), "edit".to_owned());
        return is_edit.then(|| std::iter::once(edit).chain(names).collect());
    }
    let capitals = written.starts_with(|c: char| c.is_ascii_uppercase());
    let usual = [OLD_TEXT_TAG, NEW_TEXT_TAG].map(|tag| tag.trim_start_matches('<').to_owned());
    let written_as = |name: &str| if capitals { name.to_ascii_uppercase() } else { name.to_owned() };
    let doubtful = DOUBTFUL_PAIR_NAMES.iter().filter(|_| is_below_file_tag(text, at));
    let pairs = PAIR_NAMES.iter().chain(doubtful).map(|(old, new)| [written_as(old), written_as(new)]);
    let is_closed = |name: &str| rest.contains(&format!("</{name}>")) || rest.contains(&format!("<{name}/>"));
    let pair = pairs.into_iter().find(|[old, new]| old == written && has(new) && is_closed(new))?;
    (pair != usual).then(|| pair.into_iter().zip(usual).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_names_table() {
        for (text, usual) in [
            (
                "a.py\n<old_str>\na\n</old_str>\n<new_str>\nb\n</new_str>\n",
                Some("a.py\n<old_text>\na\n</old_text>\n<new_text>\nb\n</new_text>\n"),
            ),
            (
                "<OLD_TEXT>a</OLD_TEXT>\n<NEW_TEXT>b</NEW_TEXT>",
                Some("<old_text>a</old_text>\n<new_text>b</new_text>"),
            ),
            (
                "<EDIT>\n<FILE>a</FILE>\n<DELETE/>\n</EDIT>\n",
                Some("<edit>\n<file>a</file>\n<delete/>\n</edit>\n"),
            ),
            ("<old_text>\na\n</old_text>\n<new_text>\nb\n</new_text>\n", None),
            ("<Edit>\n<File>a</File>\n</Edit>\n", None),
            (
                "<Edit>\n<File>a</File>\n<Search>b</Search>\n<replace/>\n</Edit>\n",
                Some("<edit>\n<file>a</file>\n<search>b</search>\n<replace/>\n</edit>\n"),
            ),
            (
                "<path>a.py</path>\n<old>a</old>\n<new>b</new>\n",
                Some("<path>a.py</path>\n<old_text>a</old_text>\n<new_text>b</new_text>\n"),
            ),
            ("<entry>\n<old>a</old>\n<new>b</new>\n", None),
            ("<search>\n<input>\n</search>\n", None),
            ("<search>\n<input>\n</search>\n<replace>\n", None),
            ("Write <old_str>a</old_str><new_str>b</new_str>.\n", None),
        ] {
            assert_eq!(with_usual_tags(text).as_deref(), usual, "{text}");
        }
    }
}
