//! The strength of tests on sixty exercises with right and subtly wrong solutions; the figures and
//! their meaning are in `docs/benchmarks.md`.

/// Runs the exercises; the options are those of the example `notice` of `journeyman-verify`. What
/// takes the time are the exercises' own tests, so the program needs no optimization.
pub(crate) fn run(options: &[&str]) -> anyhow::Result<()> {
    let example = ["run", "--locked", "--package", "journeyman-verify", "--example", "notice", "--"];
    let words: Vec<&str> = example.into_iter().chain(options.iter().copied()).collect();
    crate::cargo(&words, &[])
}
