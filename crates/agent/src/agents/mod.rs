//! Several sessions: by name in a pool, and talking to each other in a room.

pub mod pool;
pub mod room;
