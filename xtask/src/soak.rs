//! The heavy tests in full: the suite runs a few of their seeds.

use anyhow::bail;

/// Orders of things that a session is driven through.
const SEEDS: &str = "10000";
/// Random instants at which a task is killed.
const INSTANTS: &str = "300";

/// Random sequences that the workspace's model is compared with.
const CASES: &str = "10000";
/// Rounds in which directories and links change places.
const SWAPS: &str = "10000";

/// Default number of commands whose ends are checked.
const COMMAND_ENDS: &str = "1000";
/// Default number of cases of damage to stored files.
const DAMAGE_CASES: &str = "300";

/// Default number of runs that are ended at a random instant.
const CUT_OFF_RUNS: &str = "300";

/// Runs a heavy test by name; `cases` is how many of the workspace's random sequences, of the
/// sandbox's commands, or of the runs there are to be.
pub(crate) fn run(name: &str, cases: Option<&str>) -> anyhow::Result<()> {
    if let Some(cases) = cases.filter(|cases| cases.parse::<u64>().is_err()) {
        bail!("`{cases}` is no number of cases");
    }
    let (ends, damages, runs) =
        (cases.unwrap_or(COMMAND_ENDS), cases.unwrap_or(DAMAGE_CASES), cases.unwrap_or(CUT_OFF_RUNS));
    let cases = cases.unwrap_or(CASES);
    match name {
        "session" => session(),
        "crash" => crash(),
        "workspace" => workspace(cases),
        "sandbox" => sandbox(ends),
        "damage" => damage(damages),
        "runs" => whole_runs(runs),
        "all" => session()
            .and_then(|()| crash())
            .and_then(|()| workspace(cases))
            .and_then(|()| sandbox(ends))
            .and_then(|()| damage(damages))
            .and_then(|()| whole_runs(runs)),
        other => {
            bail!(
                "there is no heavy test `{other}`; there are session, crash, workspace, sandbox, damage, \
                 runs, all"
            )
        }
    }
}

/// 10,000 seeds of `crates/agent/tests/suite/random`. Some minutes.
fn session() -> anyhow::Result<()> {
    test("journeyman-agent", "random::any_order", &[("JM_SEEDS", SEEDS)])
}

/// Every durable boundary, every step of the tree and 300 random instants of
/// `crates/agent/tests/suite/crash`, and the faults.
fn crash() -> anyhow::Result<()> {
    let all = [("JM_CRASH_ALL", "1"), ("JM_CRASH_RUNS", INSTANTS), ("JM_REQUIRE_ALL", "1")];
    test("journeyman-agent", "crash::", &all)
}

/// The random sequences of `crates/workspace/tests/suite/model`; a kill before and after every
/// system call of `tests/suite/crash_syscalls`, and every one of them failing; the whole of
/// `tests/suite/hostile`. A quarter of an hour, and the last line of each says how much it was.
fn workspace(cases: &str) -> anyhow::Result<()> {
    let package = "journeyman-workspace";
    test(package, "model::", &[("JM_CASES", cases)])?;
    test(package, "crash_syscalls::", &[("JM_CRASH_ALL", "1")])?;
    test(package, "hostile::", &[("JM_CRASH_ALL", "1"), ("JM_SWAPS", SWAPS)])
}

/// Commands that fork and end without pause, ended in every way there is, a `kill -9` of the agent
/// among them: no process, mount or control group of them is left
/// (`crates/sandbox/tests/suite/leftovers.rs`). Some minutes.
fn sandbox(ends: &str) -> anyhow::Result<()> {
    test("journeyman-sandbox", "leftovers::", &[("JM_SOAK_RUNS", ends), ("JM_REQUIRE_ALL", "1")])
}

/// Random damage to every kind of stored file under real sessions
/// (`crates/cli/tests/suite/damage.rs`): no panic, no hang, nothing lost outside of what is
/// damaged, and every sentence compared with the tree. Some minutes.
fn damage(cases: &str) -> anyhow::Result<()> {
    let all = [("JM_DAMAGE_CASES", cases), ("JM_REQUIRE_ALL", "1")];
    test("journeyman", "damage::", &all)
}

/// `jm` itself, ended at random instants while it runs, resumes, takes back and lands, and all that
/// it says afterwards (`crates/cli/tests/suite/soak`). A quarter of an hour; prints the table of
/// `docs/benchmarks.md`.
fn whole_runs(runs: &str) -> anyhow::Result<()> {
    test("journeyman", "soak::", &[("JM_SOAK_RUNS", runs), ("JM_REQUIRE_ALL", "1")])
}

fn test(package: &str, filter: &str, environment: &[(&str, &str)]) -> anyhow::Result<()> {
    let words = ["test", "--locked", "--package", package, "--test", "suite", "--", filter, "--nocapture"];
    crate::cargo(&words, environment)
}
