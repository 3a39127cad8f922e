//! The cost of another coding CLI as a call of a session over running it bare; the figures are in
//! `docs/benchmarks.md`.

/// Runs the measurement, optimized.
pub(crate) fn run() -> anyhow::Result<()> {
    let example =
        ["run", "--locked", "--release", "--package", "journeyman-delegate", "--example", "overhead"];
    crate::cargo(&example, &[])
}
