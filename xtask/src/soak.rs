//! The heavy tests in full: the suite runs a few of their seeds.

use anyhow::bail;

/// Orders of things that a session is driven through.
const SEEDS: &str = "10000";
/// Random instants at which a task is killed.
const INSTANTS: &str = "300";

/// Runs a heavy test by name.
pub(crate) fn run(name: &str) -> anyhow::Result<()> {
    match name {
        "session" => session(),
        "crash" => crash(),
        "all" => session().and_then(|()| crash()),
        other => bail!("there is no heavy test «{other}»; there are session, crash, all"),
    }
}

/// 10,000 seeds of `crates/agent/tests/random`. Some minutes.
fn session() -> anyhow::Result<()> {
    test("random", "any_order", &[("JM_SEEDS", SEEDS)])
}

/// Every durable boundary, every step of the tree and 300 random instants of `crates/agent/tests/crash`, and the faults.
fn crash() -> anyhow::Result<()> {
    test("crash", "", &[("JM_CRASH_ALL", "1"), ("JM_CRASH_RUNS", INSTANTS), ("JM_REQUIRE_ALL", "1")])
}

fn test(target: &str, filter: &str, environment: &[(&str, &str)]) -> anyhow::Result<()> {
    let package = ["test", "--locked", "--package", "journeyman-agent", "--test", target, "--"];
    let filter = Some(filter).filter(|filter| !filter.is_empty());
    let words: Vec<&str> = package.into_iter().chain(filter).chain(["--nocapture"]).collect();
    crate::cargo(&words, environment)
}
