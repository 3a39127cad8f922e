//! A copy is the same as the tree, in every way of making one, and what happens in it stays in it.

use journeyman_testkit::{skip, test_path};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use journeyman_workspace::failpoint::{Failpoint, Fault, TransactionStep};
use journeyman_workspace::limits::Limits;
use journeyman_workspace::{IsolationTier, LandOptions, ListOptions, UndoTarget, Workspace, WorkspaceError};

use crate::support::{Project, apply, delete, is_ordinary_user, rel, session, set_mode, shown, write};
use crate::trees::{Tools, age, facts, isolate, make_repository, odd_tree, pattern, project_with, run};

#[test]
fn a_copy_is_of_the_tree_that_its_base_has() {
    let project = project_with(&[("file", "first")]);
    let tools = Tools::of(&project);
    let workspace: Arc<OnceLock<Workspace>> = Arc::default();
    let (same, root, looks) = (Arc::clone(&workspace), project.root(), AtomicUsize::new(0));
    let hook = move |step| {
        // The user saves a file, and another session in this process looks at the tree.
        if step == TransactionStep::Look && looks.fetch_add(1, Ordering::Relaxed) == 0 {
            fs::write(root.join("file"), "second").unwrap();
            same.get().unwrap().history().tree_hash().unwrap();
        }
        Fault::Go
    };
    let workspace = workspace.get_or_init(|| project.open_failing(Failpoint::new(hook)));
    let copy = isolate(workspace, &tools, IsolationTier::Copy).unwrap();
    // Landing the copy would bring back what the user takes back.
    project.write("file", "first");
    let changes = workspace.landings().changes(&copy).unwrap();
    assert_eq!(shown(&changes.files()), "");
    assert_eq!(copy.workspace().read(&rel("file"), 99).unwrap().text(), Some("first"));
}

#[test]
fn every_tier_gives_the_same_tree() {
    let project = odd_tree();
    make_repository(&project, "main.rs");
    let tools = Tools::of(&project);
    let original = facts(&project.root(), &[".git"]);
    let workspace = project.open();
    for tier in IsolationTier::ALL {
        let Some(copy) = isolate(&workspace, &tools, tier) else { continue };
        assert_eq!(copy.left_out_files(), [], "{tier}");
        let found = facts(&copy.workspace().access_path().join("."), &[".git"]);
        for (path, fact) in &original {
            assert_eq!(found.get(path), Some(fact), "{tier}: {}", String::from_utf8_lossy(path));
        }
        assert_eq!(found.len(), original.len(), "{tier}");
        let base = copy.info().base;
        let tree = workspace.history().changes_since(&base).unwrap();
        assert_eq!(shown(&tree), "", "{tier}");
        assert_eq!(copy.workspace().root(), project.root());
        let ours = workspace.list(ListOptions::default()).unwrap().paths;
        assert_eq!(copy.workspace().list(ListOptions::default()).unwrap().paths, ours);
        if tier != IsolationTier::Overlay {
            use std::os::unix::fs::MetadataExt as _;
            let sparse = fs::metadata(copy.workspace().access_path().join("sparse")).unwrap();
            let blocks = fs::metadata(project.root().join("sparse")).unwrap().blocks();
            assert!(sparse.blocks() <= blocks + 64, "{} instead of {blocks}", sparse.blocks());
        }
        drop(copy);
        workspace.copies().discard(&session(1)).unwrap();
        assert_eq!(facts(&project.root(), &[".git"]), original);
        assert_eq!(fs::read_dir(project.state().join("work")).unwrap().count(), 0);
    }
}

#[test]
fn nothing_that_happens_in_a_copy_reaches_the_tree() {
    let project = odd_tree();
    make_repository(&project, "main.rs");
    let tools = Tools::of(&project);
    let original = facts(&project.root(), &[".git"]);
    let workspace = project.open();
    for tier in IsolationTier::ALL {
        let Some(copy) = isolate(&workspace, &tools, tier) else { continue };
        let inside = copy.workspace();
        apply(inside, vec![write("main.rs", "changed"), write("new/file", "new"), delete("a/b/c/deep.rs")])
            .unwrap();
        assert_eq!(inside.read(&rel("main.rs"), 99).unwrap().text(), Some("changed"));
        assert_eq!(facts(&project.root(), &[".git"]), original, "{tier}: edits");
        let before = inside.command_observer().begin().unwrap();
        run(
            &tools,
            inside,
            "echo more >> main.rs; echo x > made; chmod 755 empty; mv bin/tool bin/moved; rm '..foo'",
        );
        let changed = inside.command_observer().end(before, &session(1), None).unwrap();
        assert_eq!(shown(&changed), "-..foo +bin/moved -bin/tool ~empty +made ~main.rs", "{tier}");
        assert_eq!(inside.read(&rel("main.rs"), 99).unwrap().text(), Some("changedmore\n"));
        assert_eq!(facts(&project.root(), &[".git"]), original, "{tier}: commands");
        run(&tools, inside, "rm -rf -- * .[!.]* ..?*");
        assert_eq!(inside.list(ListOptions::default()).unwrap().paths, []);
        assert_eq!(facts(&project.root(), &[".git"]), original, "{tier}: all removed");
        drop(copy);
        workspace.copies().discard(&session(1)).unwrap();
        assert_eq!(facts(&project.root(), &[".git"]), original, "{tier}: discarded");
    }
}

#[test]
fn the_first_snapshot_of_a_copy_reads_nothing_of_an_overlay() {
    // The kernel counts what the whole process reads, other tests among it. A snapshot that reads
    // does so each time.
    let mut least = [u64::MAX; 2];
    for _ in 0..10 {
        let Some(bytes) = read_by_first_snapshots() else { return };
        least = [least[0].min(bytes[0]), least[1].min(bytes[1])];
        if least.iter().all(|bytes| *bytes < 4_096) {
            return;
        }
    }
    panic!("{least:?} bytes were read, at first and when it was opened again");
}

/// Returns the bytes that the first two snapshots of a new copy read; `None` where none can be
/// made.
fn read_by_first_snapshots() -> Option<[u64; 2]> {
    let project = Project::new();
    for number in 0..200 {
        project.write(&format!("dir{}/file{number}", number % 7), pattern(100 + number));
    }
    age(&project.root());
    let workspace = project.open();
    // What was made in the last ticks of the clock is in doubt, and would be read again.
    workspace.checkpoint(&session(9), "x").unwrap();
    while workspace.checkpoint(&session(9), "x").is_ok() && in_doubt(&project) {}
    let tools = Tools::of(&project);
    let copy = isolate(&workspace, &tools, IsolationTier::Overlay)?;
    let inside = copy.workspace();
    Some([(); 2].map(|()| read_by_us(|| drop(inside.command_observer().begin().unwrap()))))
}

/// Whether a file was touched so lately that its signature doesn't count yet.
fn in_doubt(project: &Project) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let files = facts(&project.root(), &[]).into_keys();
    let newest = files.map(|path| {
        let path = project.root().join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&path));
        let meta = fs::symlink_metadata(path).unwrap();
        meta.ctime() * 1_000_000_000 + meta.ctime_nsec()
    });
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    newest.max().unwrap_or(0) + 30_000_000 > now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// The bytes that this process reads meanwhile.
fn read_by_us(work: impl FnOnce()) -> u64 {
    let counted = || {
        let text = fs::read_to_string("/proc/self/io").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
        line.parse::<u64>().unwrap()
    };
    let before = counted();
    work();
    counted() - before
}

#[test]
fn contents_are_found_from_both_sides() {
    let project = Project::new();
    for number in 0..300 {
        project.write(&format!("f{number:03}"), pattern(500 + number));
    }
    let tools = Tools::of(&project);
    let workspace = project.open();
    let Some(copy) = isolate(&workspace, &tools, IsolationTier::Copy) else { return };
    let inside = copy.workspace();
    // Many at once go into packs.
    let before = inside.command_observer().begin().unwrap();
    for number in 0..300 {
        fs::write(inside.access_path().join(format!("g{number:03}")), pattern(900 + number)).unwrap();
    }
    inside.command_observer().end(before, &session(1), None).unwrap();
    let checkpoint = inside.checkpoint(&session(1), "with more").unwrap();
    fs::remove_file(inside.access_path().join("g007")).unwrap();
    let diff = inside.history().diff_since(&checkpoint, 1 << 20).unwrap();
    assert!(diff.text.contains("g007"), "{}", diff.text);
    inside.undo(journeyman_workspace::UndoTarget::LastRun).unwrap();
    // The tree's own are restored in the copy though only the tree's workspace kept them.
    let before = inside.command_observer().begin().unwrap();
    fs::remove_file(inside.access_path().join("f003")).unwrap();
    inside.command_observer().end(before, &session(2), None).unwrap();
    inside.undo(journeyman_workspace::UndoTarget::LastRun).unwrap();
    assert_eq!(fs::read(inside.access_path().join("f003")).unwrap(), pattern(503));
    // No index of packs beside the project's.
    let state = project.state().join("work").join(session(1).as_str()).join("state");
    assert!(state.is_dir() && !state.join("packs").exists());
}

#[test]
fn files_that_change_or_vanish_meanwhile_are_copied_as_the_checkpoint_has_them() {
    let project = Project::new();
    for number in 0..400 {
        project.write(&format!("d{}/f{number:03}", number % 9), format!("first {number}"));
    }
    age(&project.root());
    let tools = Tools::of(&project);
    let workspace = project.open();
    let original = facts(&project.root(), &[]);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0_usize;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                round += 1;
                let path = project.root().join(format!("d{}/f{:03}", round % 9, round % 400));
                match round % 3 {
                    0 => drop(fs::remove_file(&path)),
                    1 => drop(fs::write(&path, format!("later {round}"))),
                    _ => drop(fs::rename(&path, path.with_extension("moved"))),
                }
            }
        });
        for _ in 0..4 {
            // Begun anew each time, so that the copy meets changes.
            let copy = isolate(&workspace, &tools, IsolationTier::Copy).unwrap();
            let base = copy.info().base;
            let at_base = workspace.history().diff_between(&base, None, 0).map(|_| ());
            assert!(at_base.is_ok());
            let seen = copy.workspace().checkpoint(&session(1), "copied").unwrap();
            assert!(seen.0 > 0);
            drop(copy);
            workspace.copies().discard(&session(1)).unwrap();
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(original.len(), 409);
}

#[test]
fn what_may_not_be_read_is_reported_and_does_not_look_deleted() {
    if !is_ordinary_user(test_path!("what_may_not_be_read_is_reported_and_does_not_look_deleted")) {
        return;
    }
    let project = Project::with(&[("open", "x"), ("secret", "hidden"), ("closed/inner", "x")]);
    set_mode(&project.root().join("secret"), 0o000);
    set_mode(&project.root().join("closed"), 0o000);
    let tools = Tools::of(&project);
    let workspace = project.open();
    let copy = isolate(&workspace, &tools, IsolationTier::Copy).unwrap();
    let named: Vec<String> = copy.left_out_files().iter().map(|(path, _)| path.to_string()).collect();
    assert_eq!(named, ["closed", "secret"]);
    let inside = copy.workspace();
    let base = workspace.command_observer().begin().unwrap();
    assert_eq!(inside.command_observer().begin().unwrap().file_count(), base.file_count());
    let meta = fs::symlink_metadata(inside.access_path().join("secret")).unwrap();
    assert_eq!(meta.len(), 6);
    drop(copy);
    workspace.copies().discard(&session(1)).unwrap();
    set_mode(&project.root().join("closed"), 0o755);
}

#[test]
fn ignored_directories_are_seen_by_commands_and_not_changed() {
    let project = project_with(&[
        (".gitignore", "/target/\n*.log\n"),
        ("src/main.rs", "x"),
        ("target/debug/built", "built"),
        ("web/node_modules/dep/index.js", "dep"),
        ("cache/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n"),
        ("cache/blob", "cached"),
    ]);
    let tools = Tools::of(&project);
    let original = facts(&project.root(), &[]);
    let workspace = project.open();
    for tier in [IsolationTier::Overlay, IsolationTier::Copy] {
        let Some(copy) = isolate(&workspace, &tools, tier) else { continue };
        let inside = copy.workspace();
        let said = run(&tools, inside, "cat target/debug/built web/node_modules/dep/index.js cache/blob");
        assert_eq!(said, "builtdepcached", "{tier}");
        let before = inside.command_observer().begin().unwrap();
        run(
            &tools,
            inside,
            "echo new > target/debug/more; echo changed > target/debug/built; rm -rf web/node_modules/dep",
        );
        assert_eq!(shown(&inside.command_observer().end(before, &session(1), None).unwrap()), "", "{tier}");
        // What one command built the next one finds.
        let said = run(&tools, inside, "cat target/debug/more target/debug/built; ls web/node_modules");
        assert_eq!(said, "new\nchanged\n", "{tier}");
        assert_eq!(facts(&project.root(), &[]), original, "{tier}");
        drop(copy);
        workspace.copies().discard(&session(1)).unwrap();
    }
}

#[test]
fn tiers_that_fail_are_cleaned_up_and_give_their_reason() {
    // Not on a file system that can share blocks, and in no repository.
    let project = Project::with(&[("file", "x")]);
    let tools = Tools::of(&project);
    let workspace = project.open();
    let means = tools.means(&[IsolationTier::Reflink, IsolationTier::Worktree, IsolationTier::Copy]);
    let mut copy = workspace.copies().create(&session(1), &means).unwrap();
    copy.keep().unwrap();
    assert_eq!(copy.info().tier, IsolationTier::Copy);
    let passed: Vec<String> =
        copy.unavailable_tiers().iter().map(|(tier, why)| format!("{tier}: {why}")).collect();
    assert_eq!(passed.len(), 2, "{passed:?}");
    assert_eq!(passed[0], "reflink: the file system can't let files share their blocks");
    assert!(passed[1].starts_with("worktree: "), "{passed:?}");
    drop(copy);
    let none = workspace.copies().create(&session(2), &tools.means(&[IsolationTier::Reflink])).unwrap_err();
    let WorkspaceError::NoCopy { reasons } = none else { panic!("{none}") };
    assert_eq!(reasons.len(), 1);
    assert_eq!(workspace.copies().list().unwrap().len(), 1);
    assert_eq!(fs::read_dir(project.state().join("work")).unwrap().count(), 1);
}

#[test]
fn a_state_directory_inside_the_tree_is_refused() {
    let project = Project::with(&[("file", "x")]);
    let tools = Tools::of(&project);
    let options =
        journeyman_workspace::Options { state_dir: project.root().join("s/t"), ..project.options() };
    let workspace = Workspace::open(&project.root(), options).unwrap();
    let refused = workspace.copies().create(&session(1), &tools.means(&IsolationTier::ALL)).unwrap_err();
    assert!(refused.to_string().contains("lies in the project itself"), "{refused}");
}

#[test]
fn an_overlay_over_another_file_system_is_refused() {
    let project = Project::with(&[("file", "x"), ("mounted/inner", "x")]);
    let (tools, workspace) = (Tools::of(&project), project.open());
    let at = project.root().join("mounted");
    let flags = rustix::mount::MountFlags::empty();
    if let Err(errno) = rustix::mount::mount("jm-test", &at, "tmpfs", flags, None) {
        return skip(format!("can't mount here: {errno}"));
    }
    fs::write(at.join("over"), "y").unwrap();
    let refused = workspace.copies().create(&session(1), &tools.means(&[IsolationTier::Overlay]));
    let copied = workspace
        .copies()
        .create(&session(2), &tools.means(&[IsolationTier::Copy]))
        .map(|copy| fs::read_to_string(copy.workspace().access_path().join("mounted/over")).unwrap());
    rustix::mount::unmount(&at, rustix::mount::UnmountFlags::DETACH).unwrap();
    assert!(refused.unwrap_err().to_string().contains("another file system is mounted"));
    assert_eq!(copied.unwrap(), "y");
}

#[test]
fn a_copy_that_is_landed_is_told_so_whatever_is_left_of_it() {
    let project = project_with(&[("a", "1"), ("b", "1")]);
    make_repository(&project, "a");
    let tools = Tools::of(&project);
    let workspace = project.open();
    let work = project.state().join("work").join(session(1).as_str());
    let copies = || workspace.copies().list().unwrap().len();
    let land = |path: &str, tier: IsolationTier| {
        let copy = match workspace.copies().open(&session(1), &tools.means(&[tier])) {
            Err(WorkspaceError::UnknownCopy { .. }) => isolate(&workspace, &tools, tier)?,
            opened => opened.unwrap(),
        };
        apply(copy.workspace(), vec![write(path, "2")]).unwrap();
        let changes = workspace.landings().changes(&copy).unwrap();
        drop(copy);
        let landed = workspace.land(&changes, &LandOptions::default()).unwrap();
        assert!(work.exists());
        Some(shown(&landed.applied.changes))
    };
    for tier in IsolationTier::ALL {
        // Whoever landed it is cut off before the copy is removed, and the work is taken back by
        // somebody.
        let Some(landed) = land("a", tier) else { continue };
        assert_eq!(landed, "~a");
        let undone = workspace.undo(UndoTarget::Session(session(1))).unwrap();
        assert_eq!(shown(&undone.restored), "~a");
        assert_eq!(
            (workspace.copies().is_landed(&session(1)).unwrap(), copies()),
            (false, 1),
            "{tier}: it is all there is"
        );
        // More is done in it; what is done again afterwards is not all of it.
        drop(workspace.copies().open(&session(1), &tools.means(&[tier])).unwrap());
        assert_eq!(shown(&workspace.redo(None).unwrap().restored), "~a");
        assert_eq!(
            (workspace.copies().is_landed(&session(1)).unwrap(), copies()),
            (false, 1),
            "{tier}: opened since"
        );
        workspace.undo(UndoTarget::Session(session(1))).unwrap();
        assert_eq!(land("b", tier).unwrap(), "~a ~b", "{tier}");
        // Whoever comes next finds it landed, and sweeps what is left.
        assert!(
            workspace.copies().is_landed(&session(1)).unwrap()
                && !workspace.copies().is_landed(&session(9)).unwrap()
        );
        assert_eq!((copies(), work.exists()), (0, false), "{tier}");
        let gone = workspace.copies().open(&session(1), &tools.means(&[tier])).unwrap_err();
        assert!(matches!(gone, WorkspaceError::UnknownCopy { .. }), "{gone:?}");
        workspace.undo(UndoTarget::Session(session(1))).unwrap();
        assert_eq!((project.text("a"), project.text("b")), ("1".into(), "1".into()));
    }
}

#[test]
fn files_that_share_blocks() {
    let Some(at) = std::env::var_os("JM_REFLINK_DIR") else {
        println!("skipped: JM_REFLINK_DIR names no directory on a file system with reflinks");
        return;
    };
    let project = Project::in_dir(tempfile::tempdir_in(at).unwrap());
    project.write("large", pattern(8 * 1024 * 1024));
    project.write("dir/small", "small");
    age(&project.root());
    let (tools, workspace) = (Tools::of(&project), project.open());
    let copy = workspace.copies().create(&session(1), &tools.means(&[IsolationTier::Reflink])).unwrap();
    assert_eq!(copy.info().tier, IsolationTier::Reflink);
    let found = facts(&copy.workspace().access_path(), &[]);
    assert_eq!(found, facts(&project.root(), &[]));
    apply(copy.workspace(), vec![write("large", "short")]).unwrap();
    assert_eq!(fs::read(project.root().join("large")).unwrap(), pattern(8 * 1024 * 1024));
}

#[test]
fn twenty_thousand_files() {
    let project = Project::in_memory();
    for number in 0..20_000 {
        let path = project.root().join(format!("d{:03}", number % 400));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(format!("f{number}")), number.to_string()).unwrap();
    }
    let tools = Tools::of(&project);
    let workspace = project.open();
    let original = facts(&project.root(), &[]);
    for tier in [IsolationTier::Overlay, IsolationTier::Copy] {
        let Some(copy) = isolate(&workspace, &tools, tier) else { continue };
        assert_eq!(facts(&copy.workspace().access_path().join("."), &[]), original, "{tier}");
        drop(copy);
        workspace.copies().discard(&session(1)).unwrap();
    }
}

/// Not a bound, but what it takes, where somebody asks: `JM_MEASURE=1`.
#[test]
fn speed() {
    if std::env::var_os("JM_MEASURE").is_none() {
        return;
    }
    let project = Project::new();
    for number in 0..5_000 {
        let path = project.root().join(format!("d{:03}", number % 250));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(format!("f{number}")), pattern(2_000 + number % 4_000)).unwrap();
    }
    crate::trees::git(&project.root(), &["init", "-q"]);
    crate::trees::git(&project.root(), &["add", "."]);
    crate::trees::git(&project.root(), &["commit", "-qm", "x"]);
    let tools = Tools::of(&project);
    let workspace = Workspace::open(
        &project.root(),
        journeyman_workspace::Options { limits: Limits::default(), ..project.options() },
    )
    .unwrap();
    workspace.checkpoint(&session(1), "x").unwrap();
    let worktree = project.dir.path().join("worktree");
    for round in 0..6 {
        let begin = Instant::now();
        crate::trees::git(
            &project.root(),
            &["worktree", "add", "-q", "--detach", worktree.to_str().unwrap()],
        );
        println!("round {round}: git worktree add {:?}", begin.elapsed());
        crate::trees::git(&project.root(), &["worktree", "remove", "--force", worktree.to_str().unwrap()]);
        let begin = Instant::now();
        workspace.checkpoint(&session(1), "before the isolated run").unwrap();
        println!("  checkpoint {:?}", begin.elapsed());
        for tier in IsolationTier::ALL {
            let begin = Instant::now();
            match workspace.copies().create(&session(1), &tools.means(&[tier])) {
                Ok(copy) => {
                    println!("  {tier} {:?}", begin.elapsed());
                    let begin = Instant::now();
                    drop(copy.workspace().command_observer().begin().unwrap());
                    println!("    first snapshot {:?}", begin.elapsed());
                    drop(copy);
                    let begin = Instant::now();
                    workspace.copies().discard(&session(1)).unwrap();
                    println!("    discard {:?}", begin.elapsed());
                }
                Err(error) => println!("  {error}"),
            }
        }
    }
}
