//! The refusal of a rewrite that can't be merged.

use crate::outcome::Refusal;

pub(super) fn refuse_rewrite(why: &str) -> Refusal {
    Refusal::Malformed { message: format!("The rewrite can't be merged: {why}") }
}
