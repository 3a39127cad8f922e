//! What the sandbox costs, beside bare measures of the same run: `cargo xtask bench sandbox` runs
//! every case.
//!
//! `sandbox_cost start|overlay|tiers|metadata|flood`. Fails where a bound is missed. Times are of
//! whole commands, from the request to the known end; plain and confined ones take turns, so that a
//! noisy machine disturbs both alike.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a program that prints figures"
)]

use std::process::ExitCode;

fn main() -> ExitCode {
    journeyman_sandbox::run_helper_if_asked();
    linux::main()
}

mod linux {
    use std::path::Path;
    use std::process::ExitCode;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use journeyman_protocol::SandboxTier;
    use journeyman_sandbox::{Outcome, OverlayPlan, ProjectCopy, Request, Sandbox, SandboxSettings};
    use tokio_util::sync::CancellationToken;

    /// Commands of each kind.
    const RUNS: usize = 300;
    /// So many of those that need a sandbox of their own each.
    const RUNS_OF_FIRST: usize = 50;
    /// Between two commands. What the next one finds ready takes a quarter of that to make.
    const PAUSE: Duration = Duration::from_millis(10);
    /// A container takes a hundred times as long.
    const FEW_RUNS: usize = 20;
    /// A session with a large repository's index and a long transcript stays far below.
    const LARGE: usize = 500 << 20;
    const PAGE: usize = 4096;
    /// A confined command may take this much of a plain one's time,
    const FACTOR: f64 = 2.6;
    /// and this many milliseconds besides,
    const BESIDE: f64 = 2.0;
    /// and these in a copy by overlay, which is mounted for it.
    const OVERLAY: f64 = 6.0;
    /// The agent's own processor time and memory while a command floods its output, until it is
    /// killed.
    const FLOOD_MS: f64 = 100.0;
    const FLOOD_KIB: u64 = 1024;
    const FLOODS: usize = 5;

    /// The argument that turns this program into a command that changes modes, of this file, so
    /// often.
    const CHANGE_MODES: &str = "change-modes";
    const CHANGED: &str = "changed";
    const CHANGES: u32 = 20_000;

    pub(super) fn main() -> ExitCode {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("project");
        std::fs::create_dir_all(root.join(".git")).unwrap();
        let held = match std::env::args().nth(1).as_deref() {
            Some("start") => start(&root),
            Some("overlay") => overlay(place.path(), &root),
            Some("tiers") => tiers(&root),
            Some("metadata") => metadata(&root),
            Some(CHANGE_MODES) => change_modes(),
            Some("flood") => flood(&root),
            _ => {
                eprintln!("usage: sandbox_cost start|overlay|tiers|metadata|flood");
                return ExitCode::from(2);
            }
        };
        if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn block_on<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    fn sandbox(tier: SandboxTier) -> Sandbox {
        Sandbox::new(SandboxSettings { allow: vec![tier], allow_root: true, ..SandboxSettings::default() })
    }

    fn plain() -> f64 {
        let begun = Instant::now();
        assert!(std::process::Command::new("/bin/true").status().unwrap().success());
        milliseconds(begun.elapsed())
    }

    async fn confined(sandbox: &Sandbox, request: Request) -> f64 {
        let begun = Instant::now();
        let completed = sandbox.spawn(request, CancellationToken::new()).await.unwrap().wait().await.unwrap();
        assert_eq!(completed.outcome, Outcome::Exited(0), "{}", completed.combined.text);
        milliseconds(begun.elapsed())
    }

    fn milliseconds(time: Duration) -> f64 {
        time.as_secs_f64() * 1e3
    }

    fn request(root: &Path, tier: SandboxTier) -> Request {
        let mut request = Request::for_program(root, vec!["/bin/true".into()]);
        request.needs = tier.max_needs();
        request
    }

    /// Prints least and median; gives the median.
    fn told(what: &str, mut times: Vec<f64>) -> f64 {
        times.sort_by(f64::total_cmp);
        let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
        println!("  {what:<34} min {:>7.2}, median {:>7.2}, 90 % {:>7.2} ms", at(0), at(50), at(90));
        at(50)
    }

    fn bound(plain: f64, confined: f64, more: f64) -> bool {
        let most = plain * FACTOR + BESIDE + more;
        let held = confined <= most;
        let word = if held { "held" } else { "MISSED" };
        println!(
            "  median {confined:.2} ms; asked: at most {FACTOR} × {plain:.2} + {:.0} = {most:.2} ms: {word}",
            BESIDE + more
        );
        held
    }

    fn start(root: &Path) -> bool {
        let small = start_of("small agent", root);
        let mut memory = vec![0u8; LARGE];
        // A page that nobody wrote to isn't there.
        memory.chunks_mut(PAGE).for_each(|page| page.fill(1));
        let large = start_of("agent with 500 MB resident", root);
        assert!(memory.iter().step_by(PAGE).all(|byte| *byte == 1));
        small && large
    }

    fn start_of(what: &str, root: &Path) -> bool {
        println!("start: /bin/true, {what}, {RUNS} runs of each in turns");
        let one = sandbox(SandboxTier::Namespaces);
        let (mut bare, mut inside) = (Vec::new(), Vec::new());
        let (mut at_once, mut first) = (Vec::new(), Vec::new());
        block_on(async {
            confined(&one, request(root, SandboxTier::Namespaces)).await;
            for _ in 0..RUNS {
                bare.push(plain());
                inside.push(confined(&one, request(root, SandboxTier::Namespaces)).await);
                // Commands of an agent don't follow each other without a pause: a model, a check or
                // a user is between.
                tokio::time::sleep(PAUSE).await;
            }
            for _ in 0..RUNS {
                at_once.push(confined(&one, request(root, SandboxTier::Namespaces)).await);
            }
            for _ in 0..RUNS_OF_FIRST {
                // One that has no helper waiting; it is tested before, as it is once on a machine.
                let fresh = sandbox(SandboxTier::Namespaces);
                fresh.enforcement(&SandboxTier::Namespaces.max_needs()).await.unwrap();
                first.push(confined(&fresh, request(root, SandboxTier::Namespaces)).await);
            }
        });
        let held = bound(told("plain", bare), told("confined", inside), 0.0);
        told("confined, without a pause between", at_once);
        told("confined, the first of a process", first);
        held
    }

    fn overlay(place: &Path, root: &Path) -> bool {
        println!("overlay: /bin/true in a copy that is mounted for it, {RUNS} runs of each in turns");
        let sandbox = sandbox(SandboxTier::Namespaces);
        let (mut bare, mut direct, mut copied) = (Vec::new(), Vec::new(), Vec::new());
        block_on(async {
            confined(&sandbox, request(root, SandboxTier::Namespaces)).await;
            for run in 0..RUNS {
                let [upper, work] = ["upper", "work"].map(|part| place.join(format!("{run}/{part}")));
                std::fs::create_dir_all(&upper).unwrap();
                std::fs::create_dir_all(&work).unwrap();
                bare.push(plain());
                direct.push(confined(&sandbox, request(root, SandboxTier::Namespaces)).await);
                let begun = Instant::now();
                let mounted =
                    sandbox.mount_overlay(&OverlayPlan { lower: root.to_owned(), upper, work }).unwrap();
                let mut request = request(root, SandboxTier::Namespaces);
                request.base = Some(ProjectCopy::Mounted(Arc::new(mounted)));
                confined(&sandbox, request).await;
                copied.push(milliseconds(begun.elapsed()));
                // The kernel's own directory in it may be entered by nobody.
                std::fs::remove_dir(place.join(format!("{run}/work/work"))).ok();
            }
        });
        let bare = told("plain", bare);
        told("confined, in the project", direct);
        bound(bare, told("confined, in a copy", copied), OVERLAY)
    }

    /// The other back-ends, for comparison; nothing is asked of them.
    fn tiers(root: &Path) -> bool {
        for tier in
            [SandboxTier::Namespaces, SandboxTier::Bubblewrap, SandboxTier::Landlock, SandboxTier::Container]
        {
            let sandbox = sandbox(tier);
            let runs = if tier == SandboxTier::Container { FEW_RUNS } else { RUNS };
            block_on(async {
                if let Err(error) = sandbox.enforcement(&tier.max_needs()).await {
                    println!("tiers: {tier} isn't to be had here: {error}");
                    return;
                }
                println!("tiers: /bin/true by {tier}, {runs} runs of each in turns");
                let (mut bare, mut inside) = (Vec::new(), Vec::new());
                confined(&sandbox, request(root, tier)).await;
                for _ in 0..runs {
                    bare.push(plain());
                    inside.push(confined(&sandbox, request(root, tier)).await);
                }
                told("plain", bare);
                told("confined", inside);
            });
        }
        true
    }

    /// The cost of a `chmod`, which with Landlock alone another process makes.
    fn metadata(root: &Path) -> bool {
        std::fs::write(root.join(CHANGED), "").unwrap();
        let program = std::env::current_exe().unwrap();
        let bare = std::process::Command::new(&program).arg(CHANGE_MODES).current_dir(root).output().unwrap();
        println!("metadata: {CHANGES} times chmod, a call's time in microseconds");
        println!("  plain: {}", String::from_utf8_lossy(&bare.stdout).trim());
        for tier in [SandboxTier::Namespaces, SandboxTier::Landlock] {
            let sandbox = sandbox(tier);
            let mut request = request(root, tier);
            request.argv = vec![program.clone().into(), CHANGE_MODES.into()];
            request.read_only.extend(program.parent().map(Path::to_owned));
            let completed = block_on(async {
                let running = sandbox.spawn(request, CancellationToken::new()).await.unwrap();
                running.wait().await.unwrap()
            });
            assert_eq!(completed.outcome, Outcome::Exited(0), "{}", completed.combined.text);
            println!("  {tier}: {}", completed.stdout.text.trim());
        }
        true
    }

    /// The command of [`metadata`]: changes a file's mode, and prints the time of a call.
    fn change_modes() -> bool {
        let file = std::ffi::CString::new(CHANGED).unwrap();
        let begun = Instant::now();
        for turn in 0..CHANGES {
            let mode = rustix::fs::Mode::from_raw_mode(0o600 + turn % 2);
            rustix::fs::chmod(&*file, mode).unwrap();
        }
        println!("{:.2}", milliseconds(begun.elapsed()) * 1e3 / f64::from(CHANGES));
        true
    }

    fn processor_time() -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
    }

    /// A line of this process's status, in KiB.
    fn memory(line: &str) -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let found = status.lines().find_map(|text| text.strip_prefix(line)).unwrap();
        found.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
    }

    fn flood(root: &Path) -> bool {
        println!("flood: `yes` until it is killed for it, {FLOODS} times; what it costs the agent");
        let sandbox = sandbox(SandboxTier::Namespaces);
        let mut held = true;
        block_on(async {
            confined(&sandbox, request(root, SandboxTier::Namespaces)).await;
            for _ in 0..FLOODS {
                // The peak begins anew.
                std::fs::write("/proc/self/clear_refs", "5").unwrap();
                let (resident, before, begun) = (memory("VmRSS"), processor_time(), Instant::now());
                let running = sandbox
                    .spawn(Request::for_shell_command(root, "yes"), CancellationToken::new())
                    .await
                    .unwrap();
                let completed = running.wait().await.unwrap();
                assert_eq!(completed.outcome, Outcome::OutputLimit);
                let (used, wall) = (milliseconds(processor_time() - before), milliseconds(begun.elapsed()));
                let grown = memory("VmHWM").saturating_sub(resident);
                let bytes = completed.stdout.total_bytes;
                let rate = bytes as f64 / 1e6 / wall;
                println!(
                    "  {:.1} MB in {wall:.1} ms ({rate:.2} GB/s): {used:.1} ms of processor time, {grown} KiB more at most",
                    bytes as f64 / 1e6
                );
                held &= used <= FLOOD_MS && grown <= FLOOD_KIB;
            }
        });
        println!("  asked: {FLOOD_MS} ms and {FLOOD_KIB} KiB: {}", if held { "held" } else { "MISSED" });
        held
    }
}
