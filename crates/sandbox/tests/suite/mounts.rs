//! Commands in a copy of the project that is an overlay, mounted for them alone.

use crate::common;
use journeyman_testkit::{has_program_or_skip, rerun_test, skip, test_arguments, test_path, wait_until};

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::common::place::{Place, fingerprint, inside, text};
use crate::common::{block_on, host_toolchains, run, sandbox, settings};
use journeyman_protocol::RelPath;
use journeyman_sandbox::{
    MountedTree, OverlayPlan, ProjectCopy, Request, Sandbox, SandboxError, SandboxSettings, WriteMode,
};
use tokio_util::sync::CancellationToken;

#[test]
fn commands_see_and_change_the_merged_tree_only() {
    let place = Place::new();
    let Some(mounted) = place.mount("copy") else { return };
    let before = fingerprint(&place.root());
    let root = place.root();
    let script = "pwd && cat file && echo new > made && echo more >> src/main && rm src/deep/leaf && rmdir src/deep \
                  && mkdir -p a/b && mv file a/b/moved && chmod 700 src && echo x > link/through && ls target/debug";
    let output = place.run(&mounted, script);
    assert_eq!(output, format!("{}\ncontent\nbuilt\n", root.display()));
    assert_eq!(fingerprint(&root), before);
    let read = |path| fs::read_to_string(inside(&mounted, path)).unwrap();
    assert_eq!((read("made").as_str(), read("src/main").as_str()), ("new\n", "fn main\nmore\n"));
    assert_eq!((read("a/b/moved").as_str(), read("src/through").as_str()), ("content\n", "x\n"));
    assert!(!inside(&mounted, "file").exists() && !inside(&mounted, "src/deep").exists());

    // What this process writes, commands see, and the other way round, without anything in between.
    fs::write(inside(&mounted, "made"), "edited\n").unwrap();
    fs::write(inside(&mounted, "src/other"), "other\n").unwrap();
    fs::remove_file(inside(&mounted, "a/b/moved")).unwrap();
    assert_eq!(place.run(&mounted, "cat made src/other; ls a/b"), "edited\nother\n");
    assert_eq!(fingerprint(&root), before);

    // What was changed lasts beyond the mount, and is there again when it is mounted again.
    drop(mounted);
    let mounted = place.mount("copy").unwrap();
    assert_eq!(place.run(&mounted, "cat made src/other; ls a"), "edited\nother\nb\n");
    assert_eq!(fingerprint(&root), before);
}

#[test]
fn what_is_protected_masked_or_read_only_is_so_in_a_mount() {
    let place = Place::new();
    let Some(mounted) = place.mount("copy") else { return };
    let root = place.root();
    // These are there in the copy alone: they are looked for in it, not on the host.
    fs::create_dir_all(inside(&mounted, "fresh/.git")).unwrap();
    fs::write(inside(&mounted, "fresh/secret"), "secret").unwrap();
    fs::remove_dir_all(inside(&mounted, "src/deep")).unwrap();
    let mut request = place.request(
        &mounted,
        "for f in .git/config .git/hooks/x fresh/.git/x; do echo x > $f && echo ESCAPED; done; \
         rm -rf .git 2>/dev/null; mv fresh/.git there 2>/dev/null && echo ESCAPED; test -e .git/config || echo GONE; \
         cat fresh/secret; pwd",
    );
    request.protected = [".git", "fresh/.git", "src/deep", "none"]
        .iter()
        .filter_map(|path| RelPath::parse(path).ok())
        .collect();
    request.masked = vec![root.join("fresh/secret"), root.join("src/deep/leaf")];
    request.cwd = root.join("fresh/..");
    let completed = run(request);
    assert_eq!(completed.stdout.text, format!("{}\n", root.display()), "{}", completed.combined.text);

    let mut request =
        place.request(&mounted, "cat file && ! touch file 2>/dev/null && ! touch src/x 2>/dev/null");
    request.write = WriteMode::ReadOnly;
    assert_eq!(text(request), "content\n");

    let mut request = place.request(&mounted, "cat built && echo x > built && cat built");
    request.cwd = root.join("target/debug");
    request.layered = vec![root.join("target")];
    assert_eq!(text(request), "built\nx\n");
    assert_eq!(fs::read_to_string(inside(&mounted, "target/debug/built")).unwrap(), "built\n");

    let mut request = place.request(&mounted, "pwd");
    request.cwd = root.join("src/deep");
    let refused = block_on(async { sandbox().spawn(request, CancellationToken::new()).await.map(drop) });
    assert!(matches!(refused, Err(SandboxError::Path { what: "the working directory", .. })), "{refused:?}");
}

#[test]
fn a_removed_copy_leaves_the_project_alone() {
    let place = Place::new();
    let Some(mounted) = place.mount("copy") else { return };
    let before = fingerprint(&place.root());
    let mut request =
        place.request(&mounted, "rm -rf .[!.]* * && ls -A | wc -l && mkdir target && ls -A target");
    request.protected = Vec::new();
    assert_eq!(text(request), "0\n");
    assert_eq!(fingerprint(&place.root()), before);
    assert_eq!(fs::read_dir(inside(&mounted, ".")).unwrap().count(), 1);
}

#[test]
fn two_mounts_of_one_project_know_nothing_of_each_other() {
    let place = Place::new();
    let (Some(one), Some(two)) = (place.mount("one"), place.mount("two")) else { return };
    let before = fingerprint(&place.root());
    assert_eq!(place.run(&one, "echo one > file; rm src/main; cat file"), "one\n");
    assert_eq!(place.run(&two, "cat file src/main; echo two > file; cat file"), "content\nfn main\ntwo\n");
    assert_eq!(place.run(&one, "cat file"), "one\n");
    assert_eq!(fingerprint(&place.root()), before);
}

#[test]
fn one_layer_is_not_mounted_twice() {
    let place = Place::new();
    let Some(mounted) = place.mount("copy") else { return };
    let plan = place.plan("copy");
    let second = std::thread::spawn(move || sandbox().mount_overlay(&plan).map(drop).unwrap_err());
    let error = second.join().unwrap();
    assert!(matches!(error, SandboxError::Path { what: "locking the layers", .. }), "{error}");
    drop(mounted);
    place.mount("copy").unwrap();
}

#[test]
fn names_of_any_kind() {
    let long = "x".repeat(200);
    let names: [&[u8]; 7] = [
        b"a,b:c\\d",
        b"with blank\ttab",
        b"line\nend",
        b"not \xff\xfe UTF-8",
        b"lowerdir=/etc,upperdir=/tmp",
        b"'quoted' \"twice\" $HOME `x` %s \\054",
        long.as_bytes(),
    ];
    for name in names {
        let place = Place::named(OsStr::from_bytes(name));
        let before = fingerprint(&place.root());
        // The layers have such a name, too.
        let layers = place.directory.path().join(OsStr::from_bytes(&[name, b"-layers"].concat()));
        let [upper, work] = ["upper", "work"].map(|part| layers.join(part));
        fs::create_dir_all(&upper).unwrap();
        fs::create_dir_all(&work).unwrap();
        let plan = OverlayPlan { lower: place.root(), upper, work };
        let mounted = match sandbox().mount_overlay(&plan) {
            Ok(mounted) => Arc::new(mounted),
            Err(error) => {
                skip(error.to_string());
                return;
            }
        };
        let mut request = place.request(
            &mounted,
            "cat file; echo new > file; echo x > target/debug/built; cat target/debug/built",
        );
        request.layered = vec![place.root().join("target")];
        assert_eq!(text(request), "content\nx\n", "{}", OsStr::from_bytes(name).display());
        assert_eq!(place.run(&mounted, "cat file target/debug/built"), "new\nbuilt\n");
        assert_eq!(fingerprint(&place.root()), before);
    }
}

#[test]
fn a_deep_path_is_mounted_too() {
    let place = Place::new();
    let mut deep = place.directory.path().to_owned();
    for _ in 0..12 {
        deep.push("d".repeat(100));
    }
    let [lower, upper, work] = ["lower", "upper", "work"].map(|part| deep.join(part));
    for made in [&lower, &upper, &work] {
        fs::create_dir_all(made).unwrap();
    }
    fs::write(lower.join("file"), "deep\n").unwrap();
    let plan = OverlayPlan { lower: lower.clone(), upper, work };
    let mounted = match sandbox().mount_overlay(&plan) {
        Ok(mounted) => Arc::new(mounted),
        Err(error) => {
            skip(error.to_string());
            return;
        }
    };
    let mut request = Request::for_shell_command(&lower, "cat file && echo changed > file");
    request.base = Some(ProjectCopy::Mounted(Arc::clone(&mounted)));
    assert_eq!(text(request), "deep\n");
    assert_eq!(fs::read_to_string(inside(&mounted, "file")).unwrap(), "changed\n");
    assert_eq!(fs::read_to_string(lower.join("file")).unwrap(), "deep\n");
}

#[test]
fn the_merged_root_looks_like_the_real_one() {
    let place = Place::new();
    for mode in [0o755, 0o700, 0o2775, 0o1777] {
        fs::set_permissions(place.root(), fs::Permissions::from_mode(mode)).unwrap();
        let Some(mounted) = place.mount(&format!("copy-{mode:o}")) else { return };
        let (real, merged) =
            (fs::metadata(place.root()).unwrap(), fs::metadata(inside(&mounted, ".")).unwrap());
        assert_eq!((merged.mode(), merged.uid(), merged.gid()), (real.mode(), real.uid(), real.gid()));
    }
}

#[test]
fn inode_numbers_stay_when_files_are_changed_and_those_of_directories_beyond_the_mount() {
    let place = Place::new();
    let Some(mounted) = place.mount("copy") else { return };
    let number = |path: &Path| fs::symlink_metadata(path).unwrap().ino();
    let paths = ["src", "src/deep", ".git", "file", "src/main"];
    let numbers = |mounted: &MountedTree| paths.map(|path| number(&inside(mounted, path)));
    let before = numbers(&mounted);
    assert_eq!(before, paths.map(|path| number(&place.root().join(path))));
    place.run(&mounted, "echo x >> file; chmod 600 src/main; touch src/deep/new src/new");
    assert_eq!(numbers(&mounted), before);
    drop(mounted);
    // A changed file's is its own from then on: the kernel finds the old one by privileges that
    // nobody has here.
    let mounted = place.mount("copy").unwrap();
    assert_eq!(numbers(&mounted)[..3], before[..3]);
}

#[test]
fn commands_in_the_background_and_in_the_foreground_share_a_mount() {
    let place = Place::new();
    let Some(mounted) = place.mount("copy") else { return };
    let box_ = sandbox();
    block_on(async {
        let wait =
            "echo ready; while ! test -e go; do sleep 0.01; done; cat go; echo back > part2; mv part2 answer";
        let mut behind = box_.spawn(place.request(&mounted, wait), CancellationToken::new()).await.unwrap();
        assert_eq!(behind.next_chunk().await.unwrap().bytes, b"ready\n");
        let front = place.request(
            &mounted,
            "echo went > part && mv part go; while ! test -e answer; do sleep 0.01; done; cat answer",
        );
        let front = box_.spawn(front, CancellationToken::new()).await.unwrap().wait().await.unwrap();
        assert_eq!(front.stdout.text, "back\n", "{}", front.combined.text);
        assert_eq!(behind.wait().await.unwrap().stdout.text, "ready\nwent\n");
    });
    // A command goes on with the mount where its owner has let go of it.
    let running = block_on(async {
        let request = place.request(&mounted, "sleep 0.05; cat file; echo last > file");
        let running = box_.spawn(request, CancellationToken::new()).await.unwrap();
        drop(mounted);
        running.wait().await.unwrap()
    });
    assert_eq!(running.stdout.text, "content\n");
    let mounted = place.mount("copy").unwrap();
    assert_eq!(place.run(&mounted, "cat file"), "last\n");
}

#[test]
fn layers_are_hidden_where_a_listed_path_would_show_them() {
    let place = Place::new();
    let Some(mounted) = place.mount("copy") else { return };
    fs::write(inside(&mounted, "file"), "changed\n").unwrap();
    let beside = place.at("beside");
    fs::write(&beside, "beside\n").unwrap();
    let above = fs::canonicalize(place.directory.path()).unwrap();
    let command = format!(
        "cd {}; cat beside; ls copy/upper copy/work; cat project/file; echo x > copy/upper/x || echo kept",
        above.display()
    );
    let mut request = place.request(&mounted, &command);
    request.read_only = vec![above];
    let completed = run(request);
    let expected = "beside\ncopy/upper:\n\ncopy/work:\nchanged\nkept\n";
    assert_eq!(completed.stdout.text, expected, "{}", completed.combined.text);
}

#[test]
fn a_descriptor_is_replaced_under_its_users() {
    let place = Place::new();
    fs::write(place.at("new"), "new").unwrap();
    let old = fs::File::open(place.root().join("file")).unwrap();
    let new = fs::File::open(place.at("new")).unwrap();
    journeyman_sandbox::replace_descriptor(std::os::fd::AsFd::as_fd(&old), std::os::fd::AsFd::as_fd(&new))
        .unwrap();
    drop(new);
    assert_eq!(std::io::read_to_string(&old).unwrap(), "new");
    let flags = rustix::io::fcntl_getfd(&old).unwrap();
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    let itself = journeyman_sandbox::replace_descriptor(
        std::os::fd::AsFd::as_fd(&old),
        std::os::fd::AsFd::as_fd(&old),
    );
    assert_eq!(itself.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn overlays_that_cannot_be_are_refused_with_a_reason() {
    let place = Place::new();
    let root = place.root();
    let good = place.plan("copy");
    fs::create_dir_all(root.join("upper")).unwrap();
    let plan = |lower: &Path, upper: &Path, work: &Path| OverlayPlan {
        lower: lower.to_owned(),
        upper: upper.to_owned(),
        work: work.to_owned(),
    };
    let cases = [
        (plan(&root, &root.join("upper"), &good.work), "must lie apart"),
        (plan(&root, &good.upper, root.parent().unwrap()), "must lie apart"),
        (plan(&root, &good.upper, &good.upper), "beside each other"),
        (plan(&root, &place.at("none"), &good.work), "the upper layer"),
        (plan(&root.join("file"), &good.upper, &good.work), "the lower layer"),
        (plan(Path::new("relative"), &good.upper, &good.work), "absolutely"),
        (plan(&root, &good.upper, Path::new("/dev/shm")), "different file systems"),
    ];
    for (plan, reason) in cases {
        let error = sandbox().mount_overlay(&plan).map(drop).unwrap_err().to_string();
        assert!(error.contains(reason), "{plan:?}: {error}");
    }
}

#[test]
fn a_witness_is_locked_for_commands_in_a_mount() {
    let place = Place::new();
    let Some(mounted) = place.mount("copy") else { return };
    let witness = place.at("witness");
    fs::write(&witness, "").unwrap();
    let file = fs::File::open(&witness).unwrap();
    block_on(async {
        let mut request = place.request(&mounted, "echo ready; while ! test -e go; do sleep 0.01; done");
        request.witness = Some(witness.clone());
        let mut running = sandbox().spawn(request, CancellationToken::new()).await.unwrap();
        running.next_chunk().await.unwrap();
        assert!(file.try_lock().is_err());
        fs::write(inside(&mounted, "go"), "").unwrap();
        running.wait().await.unwrap();
    });
    wait_until("the end of the command", || file.try_lock().is_ok());
}

#[test]
fn files_of_other_owners() {
    let place = Place::new();
    let root = place.root();
    if !rustix::process::geteuid().is_root() {
        println!("skipped here: only root can make files of others; the run as root sees to this user, too");
        return;
    }
    let others = ["theirs", "closed", "src/theirs"];
    for (name, mode) in others.into_iter().zip([0o666, 0o600, 0o644]) {
        fs::write(root.join(name), "theirs\n").unwrap();
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
        std::os::unix::fs::chown(root.join(name), Some(1000), Some(1001)).unwrap();
    }
    std::os::unix::fs::chown(root.join("src"), Some(1000), Some(1001)).unwrap();
    let before = fingerprint(&root);
    let Some(mounted) = place.mount("copy") else { return };
    // This process changes any file, and leaves owners as they are.
    for name in others {
        fs::write(inside(&mounted, name), "mine\n").unwrap();
        let found = fs::metadata(inside(&mounted, name)).unwrap();
        assert_eq!(
            (found.uid(), found.gid(), found.mode() & 0o7),
            (1000, 1001, fs::metadata(root.join(name)).unwrap().mode() & 0o7)
        );
    }
    std::os::unix::fs::chown(inside(&mounted, "file"), Some(4000), Some(5000)).unwrap();
    assert_eq!(fs::metadata(inside(&mounted, "file")).unwrap().uid(), 4000);
    // A command has no rights beyond its user's: as in the real project.
    let mut request = place.request(&mounted, "echo x >> theirs; cat theirs; cat closed 2>&1 || true");
    request.protected = Vec::new();
    let output = text(request);
    assert!(output.starts_with("mine\nx\n") && output.contains("ermission denied"), "{output}");
    assert_eq!(fingerprint(&root), before);
}

/// Not a test by itself: it holds a mount, has a command run in it, and is killed by
/// [`a_holder_killed_hard_leaves_its_changes_and_nothing_else`].
#[test]
#[ignore = "run by another test"]
fn holder_to_be_killed() {
    let place = PathBuf::from(std::env::var_os("JM_TEST_PLACE").unwrap());
    let [lower, upper, work] = ["project", "copy/upper", "copy/work"].map(|part| place.join(part));
    let mounted =
        Arc::new(sandbox().mount_overlay(&OverlayPlan { lower: lower.clone(), upper, work }).unwrap());
    fs::write(inside(&mounted, "file"), "by the holder\n").unwrap();
    let marker = std::env::var("JM_TEST_MARKER").unwrap();
    let mut request =
        Request::for_shell_command(&lower, &format!("echo by a command > made; sleep 600 # {marker}"));
    request.base = Some(ProjectCopy::Mounted(Arc::clone(&mounted)));
    block_on(async {
        let running = sandbox().spawn(request, CancellationToken::new()).await.unwrap();
        while !inside(&mounted, "made").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        std::io::stderr().write_all(b"mounted\n").unwrap();
        running.wait().await.unwrap();
    });
}

#[test]
fn a_holder_killed_hard_leaves_its_changes_and_nothing_else() {
    let place = Place::new();
    let plan = place.plan("copy");
    let Some(mounted) = place.mount("trial") else { return };
    drop(mounted);
    let before = fingerprint(&place.root());
    let marker = format!("jm-holder-{}", std::process::id());
    let mut holder = rerun_test!("holder_to_be_killed")
        .env("JM_TEST_PLACE", fs::canonicalize(place.directory.path()).unwrap())
        .env("JM_TEST_MARKER", &marker)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(holder.stderr.take().unwrap()).lines();
    let said: Vec<String> =
        lines.by_ref().map(|line| line.unwrap()).take_while(|line| line != "mounted").collect();
    assert!(mounts_of(&plan.lower) > 0, "the command's mount isn't seen: {said:?}");
    holder.kill().unwrap();
    holder.wait().unwrap();
    wait_until("the end of the command", || common::alive(&marker) == 0);
    wait_until("the end of the mounts", || mounts_of(&plan.lower) == 0);
    assert_eq!(fs::read_to_string(plan.upper.join("file")).unwrap(), "by the holder\n");
    assert_eq!(fs::read_to_string(plan.upper.join("made")).unwrap(), "by a command\n");
    assert_eq!(fingerprint(&place.root()), before);
    if rustix::process::geteuid().is_root() && has_program_or_skip("mount") {
        wait_until("the end of the overlay itself", || is_free(&plan));
    }
    let mounted = place.mount("copy").unwrap();
    assert_eq!(place.run(&mounted, "cat file made"), "by the holder\nby a command\n");
}

/// In how many processes' lists of mounts a directory is one.
fn mounts_of(directory: &Path) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lists = entries.filter_map(|entry| fs::read_to_string(entry.path().join("mountinfo")).ok());
    let point = format!(" {} ", directory.display());
    lists.filter(|list| list.contains(&point)).count()
}

/// Whether the kernel itself has no mount of the upper layer any more, whoever's: asked for, it
/// refuses a second.
fn is_free(plan: &OverlayPlan) -> bool {
    let options = format!(
        "index=on,lowerdir={},upperdir={},workdir={}",
        plan.lower.display(),
        plan.upper.display(),
        plan.work.display()
    );
    let script = "mount -t overlay overlay -o \"$1\" /mnt && umount /mnt";
    let output = Command::new("unshare").args(["-m", "sh", "-c", script, "sh", &options]).output().unwrap();
    output.status.success()
}

#[test]
fn an_ordinary_user_cannot_copy_up_files_of_others_and_spoils_nothing() {
    let arguments = test_arguments(test_path!("files_of_others_met_by_an_ordinary_user"));
    let output = common::as_nobody(&arguments.each_ref().map(String::as_str), |work| {
        let project = work.join("theirs");
        fs::create_dir(&project).unwrap();
        for (name, owner) in [("open", 1000), ("group", NOBODY), ("own", NOBODY)] {
            let path = project.join(name);
            fs::write(&path, "theirs\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
            let group = if name == "own" { NOBODY } else { 1000 };
            std::os::unix::fs::chown(&path, Some(owner), Some(group)).unwrap();
        }
        std::os::unix::fs::chown(&project, Some(NOBODY), Some(NOBODY)).unwrap();
    });
    let Some(output) = output else { return };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
}

const NOBODY: u32 = 65534;

/// Not a test by itself: it is run as `nobody`, where root left files.
#[test]
#[ignore = "run by another test"]
fn files_of_others_met_by_an_ordinary_user() {
    let lower = std::env::current_dir().unwrap().join("theirs");
    let before = fingerprint(&lower);
    let place = Place::new();
    let plan = OverlayPlan { lower: lower.clone(), ..place.plan("copy") };
    let Ok(mounted) = sandbox().mount_overlay(&plan) else { return drop(place.mount("trial")) };
    let mounted = Arc::new(mounted);
    // The kernel's word for an owner that the mount has no number for: the file can't be made anew
    // as theirs.
    const OVERFLOW: i32 = 75;
    for name in ["open", "group"] {
        let append = || fs::OpenOptions::new().append(true).open(inside(&mounted, name));
        assert_eq!(append().unwrap_err().raw_os_error(), Some(OVERFLOW), "{name}");
        assert_eq!(fs::read_to_string(inside(&mounted, name)).unwrap(), "theirs\n");
        let mut request = Request::for_shell_command(&lower, &format!("echo x >> {name} || cat {name}"));
        request.base = Some(ProjectCopy::Mounted(Arc::clone(&mounted)));
        let output = text(request);
        assert!(
            output.contains("too large for defined data type") && output.contains("theirs\n"),
            "{output}"
        );
        // It may be replaced, and taken away, as in the real directory.
        fs::write(inside(&mounted, "new"), "mine\n").unwrap();
        fs::rename(inside(&mounted, "new"), inside(&mounted, name)).unwrap();
        assert_eq!(fs::read_to_string(inside(&mounted, name)).unwrap(), "mine\n");
    }
    fs::write(inside(&mounted, "own"), "mine\n").unwrap();
    assert_eq!(fs::read_to_string(inside(&mounted, "own")).unwrap(), "mine\n");
    assert_eq!(fingerprint(&lower), before);
}

#[test]
fn what_was_built_in_the_project_is_fresh_in_a_mount() {
    if !has_program_or_skip("cargo") {
        return;
    }
    let place = Place::new();
    let root = place.root();
    let manifest = "[package]\nname = \"fresh\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    fs::write(root.join("Cargo.toml"), manifest).unwrap();
    fs::write(root.join("src/lib.rs"), "pub fn one() -> u8 { 1 }\n").unwrap();
    let toolchains = host_toolchains(&root);
    let built = text(Request::for_shell_command(&root, "cargo build -v").with_toolchains(&toolchains));
    assert!(built.contains("Compiling fresh"), "{built}");
    let Some(mounted) = place.mount("copy") else { return };
    let before = fingerprint(&root);
    let in_mount = |command| text(place.request(&mounted, command).with_toolchains(&toolchains));
    assert!(in_mount("cargo build -v").contains("Fresh fresh"));
    fs::write(inside(&mounted, "src/lib.rs"), "pub fn two() -> u8 { 2 }\n").unwrap();
    assert!(in_mount("cargo build -v").contains("Compiling fresh"));
    assert!(in_mount("cargo build -v").contains("Fresh fresh"));
    assert_eq!(fingerprint(&root), before);
}

#[test]
fn bounds_are_those_of_a_command_in_the_project() {
    let place = Place::new();
    let Some(mounted) = place.mount("copy") else { return };
    let show = "cat /proc/sys/kernel/pid_max /proc/self/uid_map /proc/self/limits; grep -E 'Cap|Seccomp:|NoNew' \
                /proc/self/status; ls -ld .git; id";
    assert_eq!(place.run(&mounted, show), text(Request::for_shell_command(&place.root(), show)));
}

#[test]
fn helpers_that_are_none_are_named() {
    let place = Place::new();
    let plan = place.plan("copy");
    let with = |helper: &str| {
        let settings = SandboxSettings { helper: Some(helper.into()), ..settings() };
        Sandbox::new(settings).mount_overlay(&plan).map(drop).unwrap_err()
    };
    for program in ["/bin/true", "/bin/ls", "/bin/cat"] {
        assert!(matches!(with(program), SandboxError::NoHelper { .. }), "{program}: {}", with(program));
    }
    assert!(matches!(with("/no/such/program"), SandboxError::Start { .. }));
}

#[test]
fn a_root_without_all_rights_mounts_for_itself() {
    if !rustix::process::geteuid().is_root() || !has_program_or_skip("setpriv") {
        println!("not for this user");
        return;
    }
    let place = Place::new();
    // As in a container: it may not map other users, so its mount knows only itself.
    for dropped in ["-setuid,-setgid", "-setuid", "-setgid"] {
        let output = Command::new("setpriv")
            .arg(format!("--bounding-set={dropped}"))
            .arg(std::env::current_exe().unwrap())
            .args(test_arguments(test_path!("the_merged_root_looks_like_the_real_one")))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        if text.contains("skipped: ") && place.mount("trial").is_none() {
            return;
        }
        assert!(output.status.success() && !text.contains("skipped: "), "{dropped}: {text}");
    }
}

/// Not a test by itself: it is run where there can be no user namespaces.
#[test]
#[ignore = "run by another test"]
fn mounting_without_user_namespaces() {
    let place = Place::new();
    let error = sandbox().mount_overlay(&place.plan("copy")).map(drop).unwrap_err();
    assert!(matches!(&error, SandboxError::Unavailable { .. }), "{error}");
    println!("said: {error}");
}

#[test]
fn where_user_namespaces_are_off_that_is_said() {
    if !has_program_or_skip("unshare") || !has_program_or_skip("setpriv") {
        return;
    }
    // The bound holds in the namespace where it is set and in all beneath it.
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";
    let output = Command::new("unshare")
        .args(["--user", "--map-current-user", "--keep-caps", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(test_arguments(test_path!("mounting_without_user_namespaces")))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() && !text.contains("running 1 test") {
        skip(format!("no namespace without namespaces: {}", String::from_utf8_lossy(&output.stderr)));
        return;
    }
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let said = text.lines().find(|line| line.contains("said: ")).unwrap();
    assert!(said.contains("creating namespaces") && said.contains("max_user_namespaces"), "{said}");
}

#[test]
fn the_unprivileged_have_copies_alike() {
    common::again_unprivileged(module_path!());
}
