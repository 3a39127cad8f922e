//! Files of the state directory: the project's lock, and replacing files as a whole.

pub(crate) mod lock;
