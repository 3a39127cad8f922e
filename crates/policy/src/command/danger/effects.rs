//! The dangerous effects that are found in a command.

/// The dangerous effects of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::command) struct Danger {
    /// The reason for level 3, if any.
    pub(in crate::command) outside: Option<String>,
    /// The data that would be destroyed.
    pub(in crate::command) destroys: Option<String>,
    /// True if undo may not restore all of it.
    pub(in crate::command) beyond_undo: bool,
}

impl Danger {
    pub(in crate::command) fn add_outside_effect(&mut self, why: impl FnOnce() -> String) {
        self.outside.get_or_insert_with(why);
    }

    pub(super) fn add_destruction(&mut self, what: impl FnOnce() -> String) {
        self.beyond_undo = true;
        self.add_restorable_destruction(what);
    }

    /// Merges the findings of another part.
    pub(in crate::command) fn merge(&mut self, other: &Self) {
        self.beyond_undo |= other.beyond_undo;
        if let Some(outside) = &other.outside {
            self.add_outside_effect(|| outside.clone());
        }
        if let Some(destroys) = &other.destroys {
            self.add_restorable_destruction(|| destroys.clone());
        }
    }

    /// Records a destruction that undo restores.
    pub(super) fn add_restorable_destruction(&mut self, what: impl FnOnce() -> String) {
        self.destroys.get_or_insert_with(what);
    }
}
