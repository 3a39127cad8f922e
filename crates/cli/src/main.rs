//! `jm`: the command line.
fn main() {}
