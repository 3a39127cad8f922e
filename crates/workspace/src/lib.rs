//! The only door to the project tree: contained paths, atomic writes, journal, undo.
