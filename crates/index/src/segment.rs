//! Immutable parts of an index.
//!
//! A segment holds what is known of some files in one mapped file. The same path may be in several: the newest counts,
//! and the others are dead there.
