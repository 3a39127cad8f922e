//! A copy brought up to date with the tree.
