//! Tests of this program's own parts.

mod flags;
mod reference;
