//! Copies landed in a tree that the user went on working in.

mod copied;
mod crash;
mod exact;
mod pairs;
mod random;
mod rough;
mod shown;
