//! Keeps requests within the model's window: old results age, and a long conversation is shortened.

pub(crate) mod room;
pub(crate) mod room_maker;
mod summary;

pub(crate) use room_maker::RoomMaker;
