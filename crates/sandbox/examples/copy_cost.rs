//! What a copy by overlay costs: mounting it, closing it, a command in it, and reading many files
//! through it, each beside a bare measure of the same run.
//!
//! `cargo run --release -p journeyman-sandbox --example copy_cost [DIRECTORY]`
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints figures")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use journeyman_sandbox::{Request, Sandbox, SandboxSettings, run_helper_if_asked};

const ROUNDS: usize = 200;
const FILES: usize = 5_000;

fn main() {
    run_helper_if_asked();
    let place = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let place = place.join(format!("jm-copy-cost-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    let place = place.canonicalize().unwrap();
    measure(&place);
    // The kernel's own directories in `work` may be entered by nobody.
    run(&place, "chmod -R u+rwX .");
    std::fs::remove_dir_all(&place).unwrap();
}

fn measure(place: &Path) {
    let root = place.join("project");
    for number in 0..FILES {
        let directory = root.join(format!("d{}/e{}", number % 50, number % 7));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(format!("f{number}")), format!("content {number}\n")).unwrap();
    }
    run(
        &root,
        "git init -q . && git -c core.fsync=none add -A && git -c user.name=a -c user.email=a@b commit -qm a",
    );
    linux::measure(place, &root);
}

fn run(directory: &Path, script: &str) {
    let status = std::process::Command::new("sh").arg("-c").arg(script).current_dir(directory).status();
    assert!(status.unwrap().success(), "{script}");
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn timed<T>(what: impl FnOnce() -> T) -> (Duration, T) {
    let begun = Instant::now();
    let result = what();
    (begun.elapsed(), result)
}

fn sandbox() -> Sandbox {
    Sandbox::new(SandboxSettings::default())
}

mod linux {
    use std::os::fd::AsRawFd as _;
    use std::sync::Arc;

    use journeyman_sandbox::{MountedTree, OverlayPlan, ProjectCopy};
    use tokio_util::sync::CancellationToken;

    use super::*;

    pub(super) fn measure(place: &Path, root: &Path) {
        let (mut bare, mut mounts, mut closes) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            bare.push(timed(|| std::process::Command::new("/bin/true").status().unwrap()).0);
            let (time, mounted) = timed(|| mount(place, root, round));
            mounts.push(time);
            closes.push(timed(|| drop(mounted)).0);
        }
        println!("bare spawn of /bin/true   {:>9.3?}", median(bare));
        println!("mount                     {:>9.3?}", median(mounts));
        println!("close                     {:>9.3?}", median(closes));
        let mounted = Arc::new(mount(place, root, ROUNDS));
        commands(root, &mounted);
        time_metadata_walk(root, &mounted);
    }

    fn mount(place: &Path, root: &Path, number: usize) -> MountedTree {
        let [upper, work] = ["upper", "work"].map(|part| place.join(format!("{number}/{part}")));
        std::fs::create_dir_all(&upper).unwrap();
        std::fs::create_dir_all(&work).unwrap();
        sandbox().mount_overlay(&OverlayPlan { lower: root.to_owned(), upper, work }).unwrap()
    }

    fn commands(root: &Path, mounted: &Arc<MountedTree>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let sandbox = sandbox();
        let (mut direct, mut copied) = (Vec::new(), Vec::new());
        runtime.block_on(async {
            for _ in 0..ROUNDS {
                for (base, times) in
                    [(None, &mut direct), (Some(ProjectCopy::Mounted(Arc::clone(mounted))), &mut copied)]
                {
                    let mut request = Request::for_program(root, vec!["/bin/true".into()]);
                    request.base = base;
                    let begun = Instant::now();
                    let running = sandbox.spawn(request, CancellationToken::new()).await.unwrap();
                    running.wait().await.unwrap();
                    times.push(begun.elapsed());
                }
            }
        });
        println!("command in the project    {:>9.3?}", median(direct));
        println!("command in the copy       {:>9.3?}", median(copied));
    }

    fn time_metadata_walk(root: &Path, mounted: &Arc<MountedTree>) {
        let reach = PathBuf::from(format!("/proc/self/fd/{}", mounted.root().as_raw_fd()));
        let (mut direct, mut copied) = (Vec::new(), Vec::new());
        let look = |at: &Path| {
            let mut pending = vec![at.to_owned()];
            while let Some(directory) = pending.pop() {
                for entry in std::fs::read_dir(directory).unwrap().flatten() {
                    let found = entry.metadata().unwrap();
                    if found.is_dir() {
                        pending.push(entry.path());
                    }
                }
            }
        };
        for _ in 0..20 {
            direct.push(timed(|| look(root)).0);
            copied.push(timed(|| look(&reach)).0);
        }
        println!("stat of {FILES} files directly {:>9.3?}", median(direct));
        println!("stat through the copy     {:>9.3?}", median(copied));
        git(root, mounted);
    }

    /// `git status` confined, in the project and in the copy.
    fn git(root: &Path, mounted: &Arc<MountedTree>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let sandbox = sandbox();
        let (mut direct, mut copied) = (Vec::new(), Vec::new());
        runtime.block_on(async {
            for _ in 0..20 {
                for (base, times) in
                    [(None, &mut direct), (Some(ProjectCopy::Mounted(Arc::clone(mounted))), &mut copied)]
                {
                    let mut request = Request::for_shell_command(root, "git status --porcelain");
                    request.base = base;
                    let running = sandbox.spawn(request, CancellationToken::new()).await.unwrap();
                    let completed = running.wait().await.unwrap();
                    assert_eq!(completed.combined.text, "");
                    times.push(completed.duration);
                }
            }
        });
        println!("git status directly       {:>9.3?}", median(direct));
        println!("git status in the copy    {:>9.3?}", median(copied));
    }
}
