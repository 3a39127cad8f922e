//! A whole file without a fence around it.

use std::collections::HashSet;

use journeyman_protocol::RelPath;
use journeyman_syntax::language::Language;
use journeyman_syntax::outline::outline;
use journeyman_syntax::parse::parse;

use crate::formats::ReplySource;
use crate::lost_lines::is_distinctive;

/// Endings of texts in which a fence is content.
pub(crate) const MARKUP_EXTENSIONS: [&str; 9] =
    ["md", "markdown", "mdx", "qmd", "rmd", "rst", "adoc", "txt", "prompt"];
/// Endings of files of which prose may be one.
const PROSE_EXTENSIONS: [&str; 10] =
    ["yml", "yaml", "html", "htm", "xml", "svg", "vue", "svelte", "toml", "ini"];

/// Returns true if a reply without a fence is code of the file's language, and repeats a line of a
/// file that is there: so it can be that file.
pub(crate) fn is_bare_file(source: &ReplySource<'_>, path: &RelPath) -> bool {
    let name = String::from_utf8_lossy(path.file_name()).to_ascii_lowercase();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_free = MARKUP_EXTENSIONS.contains(&ending) || PROSE_EXTENSIONS.contains(&ending);
    let repeats = |old: &str| {
        let own: HashSet<&str> = source.reply.lines().map(str::trim).collect();
        old.lines().map(str::trim).any(|line| is_distinctive(line) && own.contains(line))
    };
    if is_free || matches!(source.files.text(path), Ok(Some(old)) if !old.trim().is_empty() && !repeats(&old))
    {
        return false;
    }
    let language = Language::detect(&path.to_string(), source.reply);
    let tree = language.and_then(|language| parse(language, source.reply).ok());
    tree.is_some_and(|tree| !tree.has_error() && !outline(&tree, source.reply).is_empty())
}
