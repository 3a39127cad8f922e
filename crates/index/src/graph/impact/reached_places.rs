//! Places that a change reaches, and names whose users are searched.

use crate::analysis::UseKind;
use crate::graph::name_dependencies::NameRole;

/// A place that a change reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum ReachedPart {
    /// The whole file.
    File,
    /// Code that runs when the file is loaded.
    Top,
    /// A symbol of the file, by its number.
    Symbol(u32),
    /// A type, one of whose members has changed.
    Type(u32),
    /// An import of the changed symbol.
    Import,
}

/// A place to continue from, and the path to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReachedPlace {
    pub(super) file: u32,
    pub(super) at: ReachedPart,
    /// The number of its path step.
    pub(super) trail: u32,
}

/// A name whose users are searched.
#[derive(Clone, Copy)]
pub(super) struct WantedName<'a> {
    pub(super) name: &'a str,
    pub(super) role: NameRole,
    /// The kinds of uses by which Python's files may mean it.
    pub(super) kinds: &'static [UseKind],
    /// The file that defines it.
    pub(super) file: u32,
    /// Its position there, if it still exists.
    pub(super) trail: u32,
}

/// The key of the common start of all changes; no file has its number.
pub(super) const START_KEY: (u32, Option<ReachedPart>) = (u32::MAX, None);
