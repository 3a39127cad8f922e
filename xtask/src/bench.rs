//! The figures of `docs/benchmarks.md`, measured on the release binary.

mod edit;
mod index;
mod process;
mod recall;
mod sandbox;
mod server;
mod session;
mod start;
mod symbols;
mod turns;
mod workspace;

use std::path::PathBuf;

use anyhow::bail;

/// Runs a benchmark by name; only `edit`, `index`, `recall` and `symbols` have options.
pub(crate) fn run(name: &str, options: &[&str]) -> anyhow::Result<()> {
    if !matches!(name, "edit" | "index" | "recall" | "symbols") && !options.is_empty() {
        bail!("the benchmark «{name}» has no options");
    }
    match name {
        "edit" => return edit::run(options),
        "index" => return index::run(options),
        "recall" => return recall::run(options),
        "symbols" => return symbols::run(options),
        "session" => return session::run(),
        "workspace" => return workspace::run(),
        "sandbox" => return sandbox::run(),
        _ => {}
    }
    let jm = build()?;
    match name {
        "turns" => turns::run(&jm),
        "start" => start::first_request(&jm),
        "version" => start::version(&jm),
        "all" => {
            start::version(&jm)?;
            start::first_request(&jm)?;
            turns::run(&jm)?;
            session::run()?;
            workspace::run()?;
            sandbox::run()?;
            edit::run(&[])?;
            index::run(&[])?;
            recall::run(&[])?;
            symbols::run(&[])
        }
        other => {
            bail!(
                "there is no benchmark «{other}»; there are turns, start, version, session, workspace, sandbox, edit, index, recall, symbols, all"
            )
        }
    }
}

fn build() -> anyhow::Result<PathBuf> {
    crate::cargo(&["build", "--release", "--locked", "--package", "journeyman"], &[])?;
    Ok(target().join("release/jm"))
}

/// Where what is built lies.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), PathBuf::from)
}

/// Minimum, median and maximum of some figures.
pub(crate) fn spread(figures: &mut [f64]) -> String {
    figures.sort_by(f64::total_cmp);
    let at = |place: usize| figures.get(place).copied().unwrap_or_default();
    format!(
        "min {:.2}, median {:.2}, max {:.2}",
        at(0),
        at(figures.len() / 2),
        at(figures.len().saturating_sub(1))
    )
}
