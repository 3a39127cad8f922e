//! Writing changes down in any of the formats, so that tests can read them back.
//!
//! What is written is read back and placed before it is given out: a rendering that would not come
//! to the same bytes is a [`RenderError`], never a wrong patch.

mod diff;
mod named;
mod patches;
mod texts;

use std::collections::BTreeMap;

use journeyman_edit::{AllowedDifferences, ApplyOptions, ChangeKind, FileChange, Format, plan};
use journeyman_protocol::RelPath;

use named::Named;

/// Why a change can't be written in a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RenderError {
    /// The format has no way to say it, or what it says would be read as something else.
    #[error("{path}: the format `{format}` can't say this change: {what}. Use `udiff`")]
    Inexpressible {
        /// The file.
        path: RelPath,
        /// The format.
        format: Format,
        /// The inexpressible part.
        what: &'static str,
    },
    /// A name can't be written in the format.
    #[error("{path}: the format `{format}` can't write this name")]
    Name {
        /// The file.
        path: RelPath,
        /// The format.
        format: Format,
    },
}

/// Writes changes down, so that reading and applying the text comes to the same bytes. Files that
/// don't change are left out. (Remarks such as `rest unchanged` in the new text are written as they
/// stand; applying them needs [`Allow::placeholders`].)
///
/// # Errors
/// [`RenderError`] where a format has no word for a change: all but `edit`, `udiff` and `patch` for
/// deletions and renames, several where only the final line break or the kind of line endings
/// changes.
pub(crate) fn render(changes: &[FileChange], format: Format) -> Result<String, RenderError> {
    let mut parts = Vec::with_capacity(changes.len());
    for change in changes {
        if change.to.is_none() && change.before == change.after {
            continue;
        }
        parts.push(one(change, format)?);
    }
    Ok(match format {
        Format::Udiff => parts.concat(),
        Format::Patch => format!("*** Begin Patch\n{}*** End Patch\n", parts.concat()),
        Format::Tool => texts::joined_calls(&parts),
        _ => parts.join("\n"),
    })
}

/// The first way of writing the change that reads back as what it is.
fn one(change: &FileChange, format: Format) -> Result<String, RenderError> {
    let name_of = |path: &RelPath| path.as_str().map(str::to_owned);
    let names = match (name_of(&change.path), change.to.as_ref().map(name_of)) {
        (Some(path), None) => Some((path, None)),
        (Some(path), Some(Some(to))) => Some((path, Some(to))),
        _ => None,
    };
    let Some((path, to)) = names else {
        return Err(RenderError::Name { path: change.path.clone(), format });
    };
    let named = Named { path: &path, to: to.as_deref(), change };
    let ways = match format {
        Format::Udiff => patches::udiff(&named),
        Format::Patch => patches::v4a(&named),
        Format::Edit => texts::edit(&named),
        Format::Blocks => texts::blocks(&named),
        Format::Whole | Format::Lazy => texts::whole(&named),
        Format::Tool => texts::tool(&named),
        _ => Vec::new(),
    };
    let what = if ways.is_empty() { "it has no word for it" } else { "it would be read as something else" };
    let found = ways.into_iter().find(|way| reads_back(change, format, way));
    found.ok_or_else(|| RenderError::Inexpressible { path: change.path.clone(), format, what })
}

/// Returns true if a text comes to the change.
fn reads_back(change: &FileChange, format: Format, text: &str) -> bool {
    let wrapped;
    let text = match format {
        Format::Patch => {
            wrapped = format!("*** Begin Patch\n{text}*** End Patch\n");
            wrapped.as_str()
        }
        _ => text,
    };
    let mut files: BTreeMap<RelPath, String> = BTreeMap::new();
    files.extend(change.before.clone().map(|before| (change.path.clone(), before)));
    let allow = AllowedDifferences { placeholders: true, ..AllowedDifferences::default() };
    let plan = plan(text, &ApplyOptions { format: Some(format), allow, ..ApplyOptions::default() }, &files);
    let [found] = plan.changes.as_slice() else { return false };
    let to = change.to.as_ref().filter(|to| **to != change.path);
    plan.failed.is_empty()
        && found.path == change.path
        && found.to.as_ref() == to
        && found.after == change.after
        && (found.kind == ChangeKind::Delete) == change.after.is_none()
}
