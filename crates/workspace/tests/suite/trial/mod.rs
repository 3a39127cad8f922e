//! Commands tried out in layers of their own: what they did is told exactly, landed as it is, or
//! gone.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::support::{Project, model, rel, session, set_mode, shown};
use crate::trees::{Tools, git, project_with, run};
use journeyman_protocol::{CallId, RelPath, UnixMillis};
use journeyman_testkit::{rerun_test, skip};
use journeyman_workspace::{
    DestructiveChange, GuardRules, Options, OverlayChanges, OverlayRun, UndoTarget, Workspace,
};

/// Names the directory of a project to the process that dies with a layer open.
const PROJECT: &str = "JM_TEST_PROJECT";

fn guarded(path: &RelPath) -> bool {
    path.components().any(|name| name.eq_ignore_ascii_case(b".envrc") || name.eq_ignore_ascii_case(b".git"))
}

fn open(project: &Project) -> Workspace {
    let options =
        Options { guarded: Some(GuardRules { guarded, on_entering: guarded }), ..project.options() };
    Workspace::open(&project.root(), options).unwrap()
}

fn ignoring() -> Project {
    project_with(&[
        (".gitignore", "target\n.env\n*.log\ndata/\n"),
        (".env", "KEY=1\n"),
        ("a", "1\n"),
        ("dir/x", "x\n"),
        ("dir/y.log", "y\n"),
        ("data/one", "1\n"),
        ("data/deep/two", "2\n"),
        ("target/built", "b\n"),
        ("target/deps/lib", "lib\n"),
    ])
}

/// A layer over the tree; `None` where none can be mounted.
fn try_out(workspace: &Workspace, tools: &Tools) -> Option<OverlayRun> {
    match workspace.previews().start(&session(1), &tools.sandbox) {
        Ok(trial) => Some(trial),
        Err(error) => {
            skip(error.to_string());
            None
        }
    }
}

/// Runs a command in a layer; what it said is of no interest.
fn tried(workspace: &Workspace, tools: &Tools, command: &str) -> Option<(OverlayRun, OverlayChanges)> {
    let trial = try_out(workspace, tools)?;
    let before = trial.workspace().command_observer().begin().unwrap();
    run(tools, trial.workspace(), command);
    trial.workspace().command_observer().end(before, &session(1), Some(&call())).unwrap();
    let tried = trial.examine(workspace).unwrap();
    Some((trial, tried))
}

fn call() -> CallId {
    CallId::new("shell")
}

/// `path files bytes`, with `/` after a directory, `=` where something took its place and `~` where
/// undo brings it back.
fn told(losses: &[DestructiveChange]) -> Vec<String> {
    let one = |loss: &DestructiveChange| {
        let (slash, replaced) =
            (["", "/"][usize::from(loss.directory)], ["", "="][usize::from(loss.replaced)]);
        let undoable = ["", "~"][usize::from(loss.undoable)];
        format!("{}{slash}{replaced}{undoable} {} {}", loss.path, loss.files, loss.bytes)
    };
    losses.iter().map(one).collect()
}

#[test]
fn what_is_lost_is_named_and_nothing_is_done() {
    let project = ignoring();
    let (workspace, tools) = (open(&project), Tools::of(&project));
    let before = model(&project.root());
    let table: [(&str, &[&str], &str); 8] = [
        ("rm -rf .env target", &[".env~ 1 6", "target/~ 2 6"], ""),
        ("rm a", &[], "-a"),
        ("echo KEY=2 > .env", &[".env=~ 1 6"], ""),
        ("touch .env target/built", &[], ""),
        ("rm -rf dir", &["dir/y.log~ 1 2"], "-dir/x"),
        ("rm -rf data && echo x > data", &["data/~ 2 4"], "+data"),
        ("rm -rf target; mkdir target; echo c > target/built", &["target/=~ 2 6"], ""),
        ("rm -r target/deps; echo n > target/new; echo z > a", &["target/deps/~ 1 4"], "~a"),
    ];
    for (command, losses, changes) in table {
        let Some((trial, tried)) = tried(&workspace, &tools, command) else { return };
        assert_eq!(told(&tried.destructive_changes()), losses, "{command}");
        assert_eq!(shown(&tried.changes()), changes, "{command}");
        assert_eq!(tried.refusals(), [], "{command}");
        trial.discard();
        assert_eq!(model(&project.root()), before, "{command}");
        assert_eq!(fs::read_dir(project.state().join("work")).unwrap().count(), 0, "{command}");
    }
}

/// Everything in a tree but git's own, with modes.
fn whole(root: &Path) -> BTreeMap<Vec<u8>, crate::trees::Fact> {
    crate::trees::facts(root, &[".git"])
}

#[test]
fn what_is_landed_is_what_the_command_did() {
    let commands = [
        "rm -rf .env target",
        "rm -rf dir data a",
        "rm -rf target && mkdir -p target/new/deep && echo 1 > target/new/deep/file && ln -s file target/new/deep/link",
        "mv target data2; mv a b; echo more >> dir/x",
        "rm -rf data; echo file > data",
        "rm .env; mkdir .env; echo x > .env/x",
        "chmod 700 target/built .env; chmod +x a",
        "mkdir -p dir/empty target/empty; rm dir/y.log",
        "cp -r target target2; rm -r target/deps; mkdir target/deps; echo other > target/deps/other",
        "echo .env2 >> .gitignore; echo K > .env2; rm .env",
    ];
    for command in commands {
        let (landed, direct) = (ignoring(), ignoring());
        let (workspace, tools) = (open(&landed), Tools::of(&landed));
        let Some((trial, tried)) = tried(&workspace, &tools, command) else { return };
        let landing = trial.land(&workspace, &tried, &session(1), &call()).unwrap();
        assert!(landing.landed && landing.left.is_empty(), "{command}: {landing:?}");
        let ran = Command::new("/bin/sh").args(["-c", command]).current_dir(direct.root()).status().unwrap();
        assert!(ran.success(), "{command}");
        // No command wrote at the same instant: contents, kinds, modes and attributes count.
        let untimed = |root: &Path| -> Vec<_> {
            let facts = whole(root);
            facts
                .into_iter()
                .map(|(path, mut fact)| {
                    fact.modified = (0, 0);
                    (path, fact)
                })
                .collect()
        };
        assert_eq!(untimed(&landed.root()), untimed(&direct.root()), "{command}");
        assert_eq!(fs::read_dir(landed.state().join("work")).unwrap().count(), 0, "{command}");
    }
}

#[test]
fn an_undo_brings_back_what_was_small() {
    let project = ignoring();
    let (workspace, tools) = (open(&project), Tools::of(&project));
    let before = model(&project.root());
    let command = "rm -rf .env data target dir; echo new > made; echo 2 > a";
    let Some((trial, tried)) = tried(&workspace, &tools, command) else { return };
    assert!(tried.destructive_changes().iter().all(|loss| loss.undoable));
    let landing = trial.land(&workspace, &tried, &session(1), &call()).unwrap();
    assert!(landing.landed, "{landing:?}");
    let recovered = workspace
        .recovery()
        .recover_call(&tried_base(&workspace), &session(1), &call(), UnixMillis(0))
        .unwrap();
    assert_eq!(shown(&recovered.applied), shown(&landing.changes), "the call happened");
    assert!(!project.root().join(".env").exists() && !project.root().join("target").exists());
    let report = workspace.undo(UndoTarget::Session(session(1))).unwrap();
    assert_eq!(report.conflicts, []);
    assert_eq!(model(&project.root()), before);
}

fn tried_base(workspace: &Workspace) -> journeyman_workspace::CheckpointId {
    workspace.checkpoint(&session(1), "afterwards").unwrap()
}

#[test]
fn a_large_build_goes_and_comes_by_name() {
    let project = ignoring();
    let root = project.root();
    for dir in 0..100 {
        fs::create_dir_all(root.join(format!("target/d{dir}"))).unwrap();
        for file in 0..100 {
            fs::write(root.join(format!("target/d{dir}/f{file}")), "12345678").unwrap();
        }
    }
    let (workspace, tools) = (open(&project), Tools::of(&project));
    let command =
        "rm -rf .env target; mkdir -p target/n; for i in $(seq 1500); do echo $i > target/n/$i; done";
    let Some((trial, tried)) = tried(&workspace, &tools, command) else { return };
    assert_eq!(told(&tried.destructive_changes()), [".env~ 1 6", "target/= 10002 80006"]);
    let landing = trial.land(&workspace, &tried, &session(1), &call()).unwrap();
    assert!(landing.landed && landing.left.is_empty(), "{landing:?}");
    assert_eq!(shown(&landing.changes), "-.env");
    assert_eq!(fs::read_dir(root.join("target/n")).unwrap().count(), 1_500);
    assert_eq!(fs::read_dir(root.join("target")).unwrap().count(), 1);
    let marks = Command::new("getfattr").args(["-R", "-d", "-m", "-"]).arg(root.join("target")).output();
    if let Ok(marks) = marks {
        assert_eq!(String::from_utf8_lossy(&marks.stdout), "", "the layer's marks");
    }
    let Some((trial, tried)) = tried_again(&workspace, &tools, "rm -rf target") else { return };
    assert_eq!(told(&tried.destructive_changes()), ["target/ 1500 6393"]);
    trial.land(&workspace, &tried, &session(1), &call()).unwrap();
    assert!(!root.join("target").exists());
    workspace.undo(UndoTarget::Session(session(1))).unwrap();
    assert_eq!(project.text(".env"), "KEY=1\n");
    assert!(!root.join("target").exists(), "too much to be kept");
}

use tried as tried_again;

#[test]
fn git_clean_takes_what_is_ignored() {
    let project = ignoring();
    git(&project.root(), &["init", "-q"]);
    git(&project.root(), &["add", ".gitignore", "a"]);
    git(&project.root(), &["commit", "-q", "-m", "base"]);
    let head = fs::read(project.root().join(".git/index")).unwrap();
    let (workspace, tools) = (open(&project), Tools::of(&project));
    let Some((trial, tried)) = tried(&workspace, &tools, "git clean -fdxq; git reset -q --hard; rm -rf .git")
    else {
        return;
    };
    assert_eq!(
        told(&tried.destructive_changes()),
        [".env~ 1 6", "data/~ 2 4", "dir/y.log~ 1 2", "target/~ 2 6"]
    );
    assert_eq!((shown(&tried.changes()).as_str(), tried.refusals()), ("-dir/x", Vec::new()));
    let landing = trial.land(&workspace, &tried, &session(1), &call()).unwrap();
    assert!(landing.landed && landing.left.is_empty(), "{landing:?}");
    let mut names: Vec<String> = fs::read_dir(project.root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [".git", ".gitignore", "a"]);
    assert_eq!(fs::read(project.root().join(".git/index")).unwrap(), head, "git's own files are read-only");
}

#[test]
fn what_may_not_come_out() {
    let project = ignoring();
    fs::create_dir_all(project.root().join("bare/hooks")).unwrap();
    for dir in ["bare/objects", "bare/refs"] {
        fs::create_dir(project.root().join(dir)).unwrap();
    }
    for file in ["bare/HEAD", "bare/config"] {
        fs::write(project.root().join(file), "x\n").unwrap();
    }
    let (workspace, tools) = (open(&project), Tools::of(&project));
    let before = model(&project.root());
    let table: [(&str, &[&str]); 15] = [
        // 16, 22, 104: guarded names at any depth and in any letter case, where rules hide them
        // too.
        ("echo x > .envrc", &[".envrc"]),
        ("mkdir -p dir/sub; echo x > dir/sub/.EnvRC", &["dir/sub/.EnvRC"]),
        ("echo x > target/.envrc", &["target/.envrc"]),
        ("mkdir -p data/new; echo x > data/new/.envrc", &["data/new/.envrc"]),
        // 22: repositories.
        ("git init -q dir/nested", &["dir/nested/.git"]),
        ("git init -q target/nested", &["target/nested/.git"]),
        ("mkdir -p dir/x2; echo 'gitdir: /tmp/x' > dir/x2/.GIT", &["dir/x2/.GIT"]),
        // 97: those without a `.git`.
        (
            "mkdir -p dir/b/objects dir/b/refs; echo x > dir/b/HEAD; echo y > dir/b/config",
            &["dir/b/HEAD", "dir/b/config"],
        ),
        ("mkdir -p target/b/objects target/b/refs; echo x > target/b/HEAD", &["target/b"]),
        ("mkdir objects refs; echo x > HEAD; echo '[core]' > config", &["HEAD", "config"]),
        ("echo evil > bare/config", &["bare/config"]),
        // Links that lead out, where rules hide them too.
        ("ln -s /etc/passwd out", &["out"]),
        ("ln -s ../../.. target/out", &["target/out"]),
        // Names.
        ("touch \"$(printf 'line\\nbreak')\"", &["line\nbreak"]),
        ("touch \"target/$(printf 'bad\\377')\"", &["target/bad\u{fffd}"]),
    ];
    for (command, expected) in table {
        let Some((trial, tried)) = tried(&workspace, &tools, command) else { return };
        let objections = tried.refusals();
        let names: Vec<String> = objections
            .iter()
            .map(|(path, _)| String::from_utf8_lossy(path.as_bytes()).into_owned())
            .collect();
        for path in expected {
            assert!(names.iter().any(|name| name == path), "{command}: {names:?}");
        }
        let landing = trial.land(&workspace, &tried, &session(1), &call()).unwrap();
        assert!(!landing.landed && !landing.left.is_empty(), "{command}: {landing:?}");
        assert_eq!(model(&project.root()), before, "{command}");
    }
    // The sandbox lets no command give such rights; here it is as if it did.
    let Some(trial) = try_out(&workspace, &tools) else { return };
    run(&tools, trial.workspace(), "cp /bin/true target/true; cp /bin/true dir/true");
    for path in ["target/true", "dir/true"] {
        set_mode(&trial.workspace().access_path().join(path), 0o6755);
    }
    let tried_out = trial.examine(&workspace).unwrap();
    let names: Vec<String> = tried_out.refusals().iter().map(|(path, _)| path.to_string()).collect();
    assert_eq!(names, ["dir/true", "target/true"]);
    drop(trial);
    // What is neither a file nor a link stays behind, and nothing else does.
    let command = "mkfifo dir/pipe target/pipe; mkdir target/p; mkfifo target/p/pipe; echo 2 > a";
    let Some((trial, tried)) = tried(&workspace, &tools, command) else { return };
    let left_out: Vec<String> = tried.left_out_paths().iter().map(ToString::to_string).collect();
    assert_eq!(left_out, ["dir/pipe", "target/pipe"]);
    let landing = trial.land(&workspace, &tried, &session(1), &call()).unwrap();
    assert!(landing.landed, "{landing:?}");
    assert_eq!(project.text("a"), "2\n");
    assert!(!project.root().join("target/pipe").exists() && !project.root().join("target/p/pipe").exists());
    // An interpreter's environment has links to the system's programs.
    let command = "rm -rf target; mkdir -p .venv/bin; ln -s /usr/bin/env .venv/bin/python";
    let Some((_trial, tried)) = tried_again(&workspace, &tools, command) else { return };
    assert_eq!(tried.refusals(), []);
}

#[test]
fn what_the_user_changed_meanwhile_stays() {
    for (path, mine) in [("a", "mine\n"), (".env", "KEY=mine\n"), ("target/built", "mine, longer\n")] {
        let project = ignoring();
        let (workspace, tools) = (open(&project), Tools::of(&project));
        let command = "echo theirs > a; rm -rf .env target";
        let Some((trial, tried)) = tried(&workspace, &tools, command) else { return };
        project.write(path, mine);
        let before = model(&project.root());
        let landing = trial.land(&workspace, &tried, &session(1), &call()).unwrap();
        assert!(!landing.landed, "{path}");
        assert_eq!(landing.left.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>(), [rel(path)]);
        assert_eq!(model(&project.root()), before, "{path}");
    }
}

/// More files than the journal takes.
fn fill(project: &Project) {
    fs::create_dir_all(project.root().join("target/many")).unwrap();
    for file in 0..1_100 {
        fs::write(project.root().join(format!("target/many/{file}")), "1234").unwrap();
    }
}

#[test]
fn what_came_into_a_large_directory_meanwhile_stays() {
    for command in
        ["rm -rf target", "rm -rf target; mkdir target; echo new > target/x", "rm -rf target; echo > target"]
    {
        for mine in ["target/many/mine", "target/many/7"] {
            let project = ignoring();
            fill(&project);
            let (workspace, tools) = (open(&project), Tools::of(&project));
            let command = format!("echo theirs > a; {command}");
            let Some((trial, tried)) = tried(&workspace, &tools, &command) else { return };
            // As long as what was there, where something was.
            project.write(mine, "mine");
            let before = model(&project.root());
            let landing = trial.land(&workspace, &tried, &session(1), &call()).unwrap();
            assert!(!landing.landed, "{command}");
            assert_eq!(
                landing.left.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>(),
                [rel("target")]
            );
            assert_eq!(model(&project.root()), before, "{command}");
            // And with nobody between, it lands.
            let Some((trial, tried)) = tried_again(&workspace, &tools, &command) else { return };
            let landing = trial.land(&workspace, &tried, &session(1), &call()).unwrap();
            assert!(landing.landed && landing.left.is_empty(), "{command}: {landing:?}");
            assert!(!project.root().join(mine).exists());
        }
    }
}

/// The layer's directory; there is one.
fn layer(project: &Project) -> std::path::PathBuf {
    let mut all = fs::read_dir(project.state().join("work")).unwrap();
    all.next().unwrap().unwrap().path()
}

#[test]
fn what_a_cut_off_landing_moved_away_comes_back() {
    let project = ignoring();
    fill(&project);
    let (workspace, tools) = (open(&project), Tools::of(&project));
    let Some(trial) = try_out(&workspace, &tools) else { return };
    trial.discard();
    let before = model(&project.root());
    for taken in [false, true] {
        rerun_test!("die_with_a_layer_open").env(PROJECT, project.dir.path()).status().unwrap();
        // As it is after the first move of a landing's second half.
        let (layer, target) = (layer(&project), project.root().join("target"));
        let gone = layer.join("gone");
        fs::create_dir(&gone).unwrap();
        fs::rename(&target, gone.join("0")).unwrap();
        let list = format!("{{\"gone\":\"{}\",\"paths\":[\"target\",\"data\"]}}", gone.display());
        fs::write(layer.join("landing"), list).unwrap();
        if taken {
            fs::write(&target, "mine").unwrap();
        }
        let again = open(&project);
        again.previews().sweep();
        if taken {
            assert_eq!(project.text("target"), "mine");
            assert_eq!(fs::read_dir(gone.join("0/many")).unwrap().count(), 1_100, "it is kept");
            let told = again.previews().start(&session(1), &tools.sandbox).unwrap_err().to_string();
            assert!(told.contains("gone/0") && told.contains("`target`"), "{told}");
            fs::remove_file(&target).unwrap();
            again.previews().sweep();
        }
        assert_eq!(model(&project.root()), before);
        assert_eq!(fs::read_dir(project.state().join("work")).unwrap().count(), 0);
    }
    assert!(try_out(&workspace, &tools).is_some());
}

#[test]
fn a_landing_that_cannot_be_ended_is_not_begun() {
    let project = ignoring();
    fill(&project);
    let (workspace, tools) = (open(&project), Tools::of(&project));
    let Some((trial, tried)) = tried(&workspace, &tools, "echo 2 > a; rm -rf .env target") else { return };
    let before = model(&project.root());
    fs::write(layer(&project).join("gone"), "in the way").unwrap();
    trial.land(&workspace, &tried, &session(1), &call()).unwrap_err();
    assert_eq!(model(&project.root()), before);
}

#[test]
#[ignore = "started by other tests"]
fn die_with_a_layer_open() {
    let dir = std::path::PathBuf::from(std::env::var_os(PROJECT).unwrap());
    let blobs = std::sync::Arc::new(journeyman_store::Blobs::open(&dir.join("blobs"), 1 << 30).unwrap());
    let workspace = Workspace::open(&dir.join("tree"), Options::new(dir.join("state"), blobs)).unwrap();
    let tools = Tools::at(&dir.join("tree"));
    let trial = workspace.previews().start(&session(1), &tools.sandbox).unwrap();
    run(&tools, trial.workspace(), "rm -rf .env a");
    // No destructor runs.
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
}

#[test]
fn a_crash_drops_the_layer() {
    let project = ignoring();
    let (workspace, tools) = (open(&project), Tools::of(&project));
    let Some(trial) = try_out(&workspace, &tools) else { return };
    trial.discard();
    let died = rerun_test!("die_with_a_layer_open").env(PROJECT, project.dir.path()).status().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&died), Some(9));
    assert!(fs::read_dir(project.state().join("work")).unwrap().count() > 0, "nothing was left");
    let again = open(&project);
    again.previews().sweep();
    assert_eq!(fs::read_dir(project.state().join("work")).unwrap().count(), 0);
    assert_eq!((project.text(".env"), project.text("a")), ("KEY=1\n".to_owned(), "1\n".to_owned()));
    assert!(try_out(&again, &tools).is_some());
}

#[test]
fn large_files_are_lost_and_named() {
    let project = ignoring();
    let large = vec![7; 17 * 1024 * 1024];
    fs::write(project.root().join("large"), &large).unwrap();
    fs::write(project.root().join("data/large"), &large).unwrap();
    set_mode(&project.root().join("large"), 0o640);
    let (workspace, tools) = (open(&project), Tools::of(&project));
    let Some((trial, tried)) = tried(&workspace, &tools, "rm large data/large a") else { return };
    let size = large.len();
    assert_eq!(
        told(&tried.destructive_changes()),
        [format!("data/large 1 {size}"), format!("large 1 {size}")]
    );
    let landing = trial.land(&workspace, &tried, &session(1), &call()).unwrap();
    assert!(landing.landed && landing.left.is_empty(), "{landing:?}");
    assert!(!project.root().join("large").exists() && !project.root().join("data/large").exists());
    assert_eq!(fs::metadata(project.root()).unwrap().permissions().mode() & 0o777, 0o755);
}
