//! Runs a command confined in the current directory: `cargo run --example confined -- 'make test'`.
//! With `--bench N`, the median start-up of `/bin/true` over N runs, plain and confined. With
//! `--flood`, what a command that writes as fast as it can costs this process.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use journeyman_sandbox::{
    HostEnvironment, Outcome, Request, Sandbox, SandboxError, SandboxSettings, find_toolchains,
    run_helper_if_asked,
};
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    run_helper_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let host = HostEnvironment {
        vars: std::env::vars_os().collect::<BTreeMap<_, _>>(),
        home: std::env::var_os("HOME").map(Into::into),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let root = std::env::current_dir();
    let (Ok(runtime), Ok(root)) = (runtime, root) else { return ExitCode::FAILURE };
    let result = match arguments.first().map(String::as_str) {
        Some("--bench") => {
            let runs = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(200);
            runtime.block_on(bench(&root, &host, runs))
        }
        Some("--flood") => runtime.block_on(flood(&root)),
        Some(command) => runtime.block_on(run(&root, &host, command)),
        None => {
            eprintln!("usage: confined 'COMMAND' | confined --bench RUNS | confined --flood");
            return ExitCode::from(2);
        }
    };
    result.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::from(125)
    })
}

async fn run(root: &Path, host: &HostEnvironment, command: &str) -> Result<ExitCode, SandboxError> {
    let sandbox = Sandbox::new(SandboxSettings::default());
    println!("{:?}", sandbox.enforcement(&journeyman_protocol::SandboxNeeds::ALL).await?);
    let request = Request::for_shell_command(root, command).with_toolchains(&find_toolchains(host, root));
    let completed = sandbox.spawn(request, CancellationToken::new()).await?.wait().await?;
    print!("{}", completed.combined.text);
    println!("{:?} after {:?}, {:?}", completed.outcome, completed.duration, completed.usage);
    Ok(if completed.outcome == Outcome::Exited(0) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Bytes that this process held at most since it was last asked, by proc(5).
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    std::fs::write("/proc/self/clear_refs", "5").ok();
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

async fn flood(root: &Path) -> Result<ExitCode, SandboxError> {
    let sandbox = Sandbox::new(SandboxSettings::default());
    // Whatever is needed once is there after the first one.
    sandbox.spawn(Request::for_shell_command(root, "echo"), CancellationToken::new()).await?.wait().await?;
    let cpu = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::try_from(now).unwrap_or_default()
    };
    for lags in [false, true] {
        peak();
        let (held, used, begun) = (peak(), cpu(), Instant::now());
        let mut running =
            sandbox.spawn(Request::for_shell_command(root, "yes"), CancellationToken::new()).await?;
        while !lags && running.next_chunk().await.is_some() {}
        let completed = running.wait().await?;
        let (used, took) = (cpu().saturating_sub(used), begun.elapsed());
        let megabytes = completed.combined.total_bytes as f64 / 1e6;
        println!(
            "{:?} after {megabytes:.1} MB in {took:.1?}, {:.0} MB/s: {:.1} ms CPU, {} KiB",
            completed.outcome,
            megabytes / took.as_secs_f64(),
            used.as_secs_f64() * 1e3,
            peak().saturating_sub(held) / 1024
        );
    }
    Ok(ExitCode::SUCCESS)
}

async fn bench(root: &Path, host: &HostEnvironment, runs: usize) -> Result<ExitCode, SandboxError> {
    let sandbox = Sandbox::new(SandboxSettings::default());
    let begun = Instant::now();
    sandbox.enforcement(&journeyman_protocol::SandboxNeeds::ALL).await?;
    println!("probe                     {:>8.3} ms", begun.elapsed().as_secs_f64() * 1e3);
    let known = find_toolchains(host, root);
    let bare = || Request::for_program(root, vec!["/bin/true".into()]);
    let (mut plain, mut confined, mut equipped) = (Vec::new(), Vec::new(), Vec::new());
    let (mut cpu, mut memory) = (Duration::ZERO, 0);
    for _ in 0..runs {
        let begun = Instant::now();
        std::process::Command::new("/bin/true").status().ok();
        plain.push(begun.elapsed());
        let begun = Instant::now();
        let completed = sandbox.spawn(bare(), CancellationToken::new()).await?.wait().await?;
        confined.push(begun.elapsed());
        cpu += completed.usage.user + completed.usage.system;
        memory = memory.max(completed.usage.peak_memory);
        let begun = Instant::now();
        sandbox.spawn(bare().with_toolchains(&known), CancellationToken::new()).await?.wait().await?;
        equipped.push(begun.elapsed());
    }
    for (name, mut times) in [("plain", plain), ("confined", confined), ("confined, toolchains", equipped)] {
        times.sort_unstable();
        let at =
            |part: usize| times.get(times.len() * part / 100).map_or(0.0, |time| time.as_secs_f64() * 1e3);
        println!("{name:<22} median {:>8.3} ms   least {:>8.3}   95% {:>8.3}", at(50), at(0), at(95));
    }
    println!("inside: {:.3} ms CPU a run, peak {} KiB", cpu.as_secs_f64() * 1e3 / runs as f64, memory / 1024);
    Ok(ExitCode::SUCCESS)
}
