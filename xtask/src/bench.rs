//! The figures of `docs/benchmarks.md`, measured on the release binary.

mod context;
mod delegate;
mod edit;
mod index;
mod notice;
mod process;
mod recall;
mod sandbox;
mod series;
mod server;
mod session;
mod start;
mod symbols;
mod tui;
mod turns;
mod verdict;
mod workspace;

use std::path::{Path, PathBuf};

use anyhow::bail;

/// Runs a benchmark by name. `turns`, `start`, `version`, `search`, `verdict`, `sandbox` and `tui`
/// take `--beside DIR`, the release folder of another build, whose programs are measured in the
/// same run. `search` takes a tree and words before it, and `tui` takes `--clis DIRS`, the folders
/// of other makers' programs; `context`, `edit`, `index`, `notice`, `recall` and `symbols` have
/// options of their own.
pub(crate) fn run(name: &str, options: &[&str]) -> anyhow::Result<()> {
    let beside = match (name, options) {
        ("context" | "edit" | "index" | "notice" | "recall" | "symbols", _) | (_, []) => None,
        ("turns" | "start" | "version" | "verdict" | "sandbox" | "tui", ["--beside", folder]) => {
            Some(PathBuf::from(folder))
        }
        ("search", [_, _]) => None,
        ("search", [_, _, "--beside", folder]) => Some(PathBuf::from(folder)),
        ("tui", ["--clis", _]) => None,
        ("tui", ["--beside", folder, "--clis", _]) => Some(PathBuf::from(folder)),
        _ => bail!("the benchmark `{name}` doesn't take the options {options:?}"),
    };
    let clis: Vec<PathBuf> = match options {
        [.., "--clis", folders] if name == "tui" => std::env::split_paths(folders).collect(),
        _ => Vec::new(),
    };
    match name {
        "context" => return context::run(options),
        "delegate" => return delegate::run(),
        "edit" => return edit::run(options),
        "index" => return index::run(options),
        "notice" => return notice::run(options),
        "recall" => return recall::run(options),
        "symbols" => return symbols::run(options),
        "session" => return session::run(),
        "agents" => return session::run_agents(),
        "workspace" => return workspace::run(),
        "sandbox" => return sandbox::run(beside.as_deref()),
        _ => {}
    }
    let mut programs = vec![build()?];
    programs.extend(beside.map(|folder| folder.join("jm")));
    match name {
        "turns" => turns::run(&programs),
        "start" => start::first_request(&programs),
        "version" => start::version(&programs),
        "search" => match options {
            [tree, words, ..] => start::search(&programs, Path::new(tree), words),
            _ => bail!("the benchmark `search` takes the folder of a tree and the words to look for"),
        },
        "verdict" => verdict::run(&programs),
        "tui" => tui::run(&programs, &clis),
        "all" => {
            start::version(&programs)?;
            start::first_request(&programs)?;
            turns::run(&programs)?;
            verdict::run(&programs)?;
            session::run()?;
            session::run_agents()?;
            workspace::run()?;
            sandbox::run(None)?;
            context::run(&[])?;
            delegate::run()?;
            edit::run(&[])?;
            index::run(&[])?;
            notice::run(&[])?;
            recall::run(&[])?;
            symbols::run(&[])?;
            tui::run(&programs, &clis)
        }
        other => {
            bail!(
                "there is no benchmark `{other}`; there are turns, start, version, search, verdict, session, agents, workspace, sandbox, context, delegate, edit, index, notice, recall, symbols, tui, all"
            )
        }
    }
}

fn build() -> anyhow::Result<PathBuf> {
    Profile::Release.build(&["--package", "journeyman"], &["--bin", "jm"], "jm")
}

/// The optimised build, or the one that tests use, for figures that aren't times.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Profile {
    Release,
    Dev,
}

impl Profile {
    /// Builds a target of the selected packages, and returns the program at `path` of its folder.
    fn build(self, selection: &[&str], target: &[&str], path: &str) -> anyhow::Result<PathBuf> {
        let (how, folder) = match self {
            Self::Release => ([&["--release"], selection].concat(), "release"),
            // With the tests: without them, dependencies have other features and are built anew.
            Self::Dev => (vec!["--workspace", "--tests"], "debug"),
        };
        crate::cargo(&[&["build", "--locked"], how.as_slice(), target].concat(), &[])?;
        Ok(self::target().join(folder).join(path))
    }
}

/// Where what is built lies.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), PathBuf::from)
}
