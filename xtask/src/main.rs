//! House-keeping tasks.
fn main() {}
