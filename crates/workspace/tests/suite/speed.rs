//! Figures, not verdicts: `cargo test --release -p journeyman-workspace --test suite speed:: --
//! --ignored --nocapture`.

use crate::support;
use journeyman_testkit::skip;

use std::fs;
use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use journeyman_workspace::{ListOptions, Workspace};
use support::{Project, rel, session, set, write};

/// 5,000 files of 1 to 4 KiB in 250 directories, with ignore rules and 500 ignored files.
fn large() -> Project {
    let project = Project::new();
    let rules = "# made by tools\n/target/\n*.log\n*.tmp\nbuild/\n!keep.log\ndoc/**/*.out\n.env\n*~\n";
    project.write(".gitignore", rules);
    let line = "fn some_function(argument: usize) -> usize { argument + 1 }\n";
    for n in 0..5_000_usize {
        let (a, b) = (n % 25, (n / 25) % 10);
        let text = format!("// {n}\n{}", line.repeat(16 + n % 50));
        project.write(&format!("crate{a:02}/src/part{b}/file{n:04}.rs"), text);
    }
    for n in 0..500 {
        project.write(&format!("target/debug/deps/made{n}.o"), "x");
    }
    project.write("crate03/.gitignore", "generated\n/local/*.txt\n");
    project
}

fn best(times: usize, mut work: impl FnMut()) -> Duration {
    (0..times)
        .map(|_| {
            let begin = Instant::now();
            work();
            begin.elapsed()
        })
        .min()
        .unwrap()
}

fn median(times: usize, mut work: impl FnMut()) -> Duration {
    let mut all: Vec<Duration> = (0..times)
        .map(|_| {
            let begin = Instant::now();
            work();
            begin.elapsed()
        })
        .collect();
    all.sort();
    all[times / 2]
}

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

#[test]
#[ignore = "prints figures; run it by name in release"]
fn figures() {
    let project = large();
    std::thread::sleep(Duration::from_millis(30));
    let list = |workspace: &Workspace| workspace.list(ListOptions::default()).unwrap().paths.len();
    let found = list(&project.open());
    println!(
        "list {found} files, first in a process: {:?}",
        best(10, || assert_eq!(list(&project.open()), found))
    );
    let workspace = project.open();
    list(&workspace);
    println!("list again, rules parsed: {:?}", best(10, || assert_eq!(list(&workspace), found)));
    let ignore = best(5, || {
        let walk = ignore::WalkBuilder::new(project.root()).hidden(false).require_git(false).build();
        assert!(walk.count() > found);
    });
    println!("  the ignore crate's walker, one thread: {ignore:?}");
    let parallel = best(5, || {
        let walk = ignore::WalkBuilder::new(project.root())
            .hidden(false)
            .require_git(false)
            .threads(2)
            .build_parallel();
        walk.run(|| Box::new(|_| ignore::WalkState::Continue));
    });
    println!("  the ignore crate's walker, two threads: {parallel:?}");

    let before = cpu();
    println!(
        "first checkpoint: {:?}",
        best(1, || {
            workspace.checkpoint(&session(1), "first").unwrap();
        })
    );
    println!("  cpu: {:?}", cpu().checked_sub(before).unwrap());
    let fresh = best(5, || {
        project.open().checkpoint(&session(2), "other").unwrap();
    });
    println!("checkpoint of the unchanged tree, a new process' first: {fresh:?}");
    println!(
        "checkpoint, unchanged, again: {:?}",
        best(10, || {
            workspace.checkpoint(&session(1), "same").unwrap();
        })
    );
    println!(
        "begin + end, unchanged, 5,000 files: {:?}",
        best(10, || {
            let begun = workspace.command_observer().begin().unwrap();
            assert!(workspace.command_observer().end(begun, &session(1), None).unwrap().is_empty());
        })
    );
    for n in 0..10 {
        project.write(&format!("crate0{n}/src/part0/file{:04}.rs", n), "changed\n");
    }
    println!(
        "checkpoint with 10 changed files: {:?}",
        best(1, || {
            workspace.checkpoint(&session(1), "ten").unwrap();
        })
    );
    git_status(&project);
    on_five_files();
}

/// What a turn pays in a small project.
fn on_five_files() {
    let small = Project::new();
    for (path, text) in [("a", "1"), ("b", "2"), ("src/c", "3"), ("src/d", "4"), (".gitignore", "target\n")] {
        small.write(path, text);
    }
    let workspace = small.open();
    workspace.checkpoint(&session(1), "first").unwrap();
    std::thread::sleep(Duration::from_millis(30));
    let rounds = 200;
    let (begin, before) = (Instant::now(), cpu());
    for _ in 0..rounds {
        let begun = workspace.command_observer().begin().unwrap();
        assert!(workspace.command_observer().end(begun, &session(1), None).unwrap().is_empty());
    }
    println!(
        "begin + end on 5 files: {:?} wall, {:?} cpu",
        begin.elapsed() / rounds,
        (cpu() - before) / rounds
    );
    one_file(&small, &workspace);
}

fn git_status(project: &Project) {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(project.root()).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.output().is_ok_and(|output| output.status.success())
    };
    if !(git(&["init", "-q"]) && git(&["add", "."])) {
        return skip("git");
    }
    std::thread::sleep(Duration::from_millis(1100));
    git(&["status"]);
    println!(
        "git status --porcelain, same tree: {:?}",
        best(10, || assert!(git(&["status", "--porcelain"])))
    );
    println!("  a bare git --version: {:?}", best(10, || assert!(git(&["--version"]))));
}

fn one_file(project: &Project, workspace: &Workspace) {
    let text = "x".repeat(4_000);
    let path = project.root().join("bare");
    let mut round = 0;
    let bare = median(30, || {
        round += 1;
        let new = path.with_extension("new");
        let mut file = fs::File::create(&new).unwrap();
        write!(file, "{round}{text}").unwrap();
        file.sync_all().unwrap();
        fs::rename(&new, &path).unwrap();
    });
    println!("bare write, fsync, rename: {bare:?}");
    let ours = median(30, || {
        round += 1;
        workspace.apply(set(1, vec![write("a", &format!("{round}{text}"))])).unwrap();
    });
    println!(
        "one-file apply, pre-image new each time: {ours:?}, {:.2} of bare",
        ours.as_secs_f64() / bare.as_secs_f64()
    );
    let mut rounds = Vec::new();
    for _ in 0..30 {
        round += 1;
        workspace.checkpoint(&session(1), "before").unwrap();
        let begin = Instant::now();
        workspace.apply(set(1, vec![write("a", &format!("{round}{text}"))])).unwrap();
        rounds.push(begin.elapsed());
    }
    rounds.sort();
    println!(
        "one-file apply after a checkpoint: {:?}, {:.2} of bare",
        rounds[15],
        rounds[15].as_secs_f64() / bare.as_secs_f64()
    );
    assert!(workspace.read(&rel("a"), 10_000).unwrap().size > 4_000);
}
