//! Keeps requests within the model's window: old results age, and a long conversation is shortened.

pub(crate) mod compactor;
pub(crate) mod input_room;
mod summary;

pub(crate) use compactor::Compactor;
