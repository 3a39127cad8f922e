//! Looking again: what a walk that knows the last tree may leave out, and what it may not.

use crate::support;
use journeyman_testkit::test_path;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use journeyman_protocol::RelPath;
use journeyman_workspace::Workspace;
use support::{Project, session, set_mode, shown};

/// Longer than times of files may be in doubt, so that what is looked at now needn't be read again.
fn settle() {
    let now = || rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    let begun = now();
    let passed = || {
        let now = now();
        Duration::from_secs((now.tv_sec - begun.tv_sec).unsigned_abs())
            .saturating_add(Duration::from_nanos(now.tv_nsec.unsigned_abs()))
            .saturating_sub(Duration::from_nanos(begun.tv_nsec.unsigned_abs()))
    };
    while passed() < Duration::from_millis(60) {
        std::thread::yield_now();
    }
}

/// What differs from now on, after `work`: by a process that has looked before, and by one that
/// comes new.
fn told(project: &Project, workspace: &Workspace, work: impl FnOnce(&Path)) -> String {
    settle();
    let new = project.open();
    for one in [workspace, &new] {
        one.checkpoint(&session(1), "before").unwrap();
        one.command_observer().begin().unwrap();
    }
    let before = [workspace.command_observer().begin().unwrap(), new.command_observer().begin().unwrap()];
    work(&project.root());
    let [one, two] = before;
    let first = shown(&workspace.command_observer().end(one, &session(1), None).unwrap());
    // The first one journaled it; the second finds it to be another's doing, which tells as much.
    let second = shown(&new.command_observer().end(two, &session(2), None).unwrap());
    assert_eq!(second, "", "the second one found something else");
    let fresh = project.open();
    let (ours, theirs) =
        (workspace.command_observer().begin().unwrap(), fresh.command_observer().begin().unwrap());
    assert_eq!(ours.file_count(), theirs.file_count());
    assert_eq!(ours.repositories(), theirs.repositories());
    first
}

#[test]
fn links_that_lead_out_of_the_project_are_found_and_those_within_are_none() {
    let project = Project::with(&[
        (".gitignore", "node_modules\n.venv\n/target\n"),
        ("a", "1"),
        ("b", "2"),
        ("target/deps/x", "built"),
        ("node_modules/@esbuild/linux/bin", "program"),
        ("node_modules/esbuild/package.json", "{}"),
        ("node_modules/.modules.yaml", "1"),
        (".venv/lib/python3/site-packages/y/__init__.py", ""),
    ]);
    let (root, store) = (project.root(), project.dir.path().join("store"));
    fs::create_dir(&store).unwrap();
    let link = |from: &Path, to: &str| {
        fs::create_dir_all(root.join(to).parent().unwrap()).unwrap();
        fs::hard_link(from, root.join(to)).unwrap();
    };
    link(&root.join("target/deps/x"), "target/x");
    link(&root.join("node_modules/@esbuild/linux/bin"), "node_modules/esbuild/bin");
    link(&root.join("b"), "c");
    let workspace = project.open();
    let found = |workspace: &Workspace| -> (String, String) {
        let links = workspace.command_observer().begin().unwrap().hard_links().clone();
        assert_eq!(workspace.command_observer().find_hard_links().unwrap(), links);
        let names = |paths: &[RelPath]| paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        (names(&links.files), names(&links.dependencies))
    };
    assert_eq!(found(&workspace), (String::new(), String::new()));
    fs::write(store.join("index.js"), "x").unwrap();
    link(&store.join("index.js"), "node_modules/.pnpm/z@1/node_modules/z/index.js");
    project.write("node_modules/.modules.yaml", "22");
    fs::hard_link(root.join("a"), store.join("a")).unwrap();
    fs::hard_link(root.join(".venv/lib/python3/site-packages/y/__init__.py"), store.join("y")).unwrap();
    fs::write(root.join(".venv/lib/python3/site-packages/new"), "").unwrap();
    for workspace in [&workspace, &project.open()] {
        assert_eq!(found(workspace), ("a".to_owned(), ".venv/lib node_modules/.pnpm".to_owned()));
    }
    // An edit gives the file an inode of its own.
    support::apply(&workspace, vec![support::write("a", "new")]).unwrap();
    assert_eq!(fs::read_to_string(store.join("a")).unwrap(), "1");
    assert_eq!(found(&workspace).0, "");
}

#[test]
fn every_sort_of_change_is_seen_in_a_tree_that_was_looked_at_before() {
    let files = [
        (".gitignore", "*.log\n/target/\n"),
        ("a/.gitignore", "made\n"),
        ("a/one.rs", "1"),
        ("a/two.rs", "2"),
        ("a/made", "ignored"),
        ("a/b/three.rs", "3"),
        ("c/four.log", "ignored"),
        ("c/five.rs", "5"),
        ("target/x.o", "ignored"),
        ("d/e/f/six.rs", "6"),
    ];
    let project = Project::with(&files);
    let workspace = project.open();
    let write = |path: &'static str, text: &'static str| {
        move |root: &Path| {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
    };
    assert_eq!(told(&project, &workspace, |_| {}), "");
    assert_eq!(told(&project, &workspace, write("a/one.rs", "x")), "~a/one.rs", "the same size");
    assert_eq!(told(&project, &workspace, write("a/b/new.rs", "x")), "+a/b/new.rs");
    assert_eq!(told(&project, &workspace, write("a/b/made", "x")), "");
    assert_eq!(told(&project, &workspace, write("c/new.log", "x")), "");
    assert_eq!(told(&project, &workspace, write("g/h/new.rs", "x")), "+g/h/new.rs");
    let gone = |root: &Path| fs::remove_file(root.join("c/five.rs")).unwrap();
    assert_eq!(told(&project, &workspace, gone), "-c/five.rs");
    let renamed = |root: &Path| fs::rename(root.join("a/one.rs"), root.join("a/0.rs")).unwrap();
    assert_eq!(told(&project, &workspace, renamed), "+a/0.rs -a/one.rs");
    let moved = |root: &Path| fs::rename(root.join("d/e"), root.join("a/e")).unwrap();
    assert_eq!(told(&project, &workspace, moved), "+a/e/f/six.rs -d/e/f/six.rs");
    let swapped = |root: &Path| {
        fs::rename(root.join("a/e"), root.join("spare")).unwrap();
        fs::rename(root.join("a/b"), root.join("a/e")).unwrap();
        fs::rename(root.join("spare"), root.join("a/b")).unwrap();
    };
    let expected =
        "+a/b/f/six.rs -a/b/made -a/b/new.rs -a/b/three.rs -a/e/f/six.rs +a/e/new.rs +a/e/three.rs";
    assert_eq!(told(&project, &workspace, swapped), expected);
    let linked = |root: &Path| {
        fs::remove_file(root.join("a/two.rs")).unwrap();
        symlink("0.rs", root.join("a/two.rs")).unwrap();
    };
    assert_eq!(told(&project, &workspace, linked), "~a/two.rs");
    assert_eq!(told(&project, &workspace, |root| set_mode(&root.join("a/0.rs"), 0o755)), "~a/0.rs");
    let to_dir = |root: &Path| {
        fs::remove_file(root.join("a/two.rs")).unwrap();
        fs::create_dir(root.join("a/two.rs")).unwrap();
        fs::write(root.join("a/two.rs/in"), "x").unwrap();
    };
    assert_eq!(told(&project, &workspace, to_dir), "-a/two.rs +a/two.rs/in");
    let emptied = |root: &Path| fs::remove_dir_all(root.join("a/two.rs")).unwrap();
    assert_eq!(told(&project, &workspace, emptied), "-a/two.rs/in");
}

#[test]
fn times_that_are_set_back_hide_nothing() {
    let project = Project::with(&[("a/one", "1"), ("a/two", "2"), ("b/three", "3")]);
    let workspace = project.open();
    let times = |path: &Path| {
        let seen = fs::metadata(path).unwrap();
        fs::FileTimes::new().set_accessed(seen.accessed().unwrap()).set_modified(seen.modified().unwrap())
    };
    let put_back = |path: &Path, times| fs::File::open(path).unwrap().set_times(times).unwrap();
    let content = |root: &Path| {
        let then = times(&root.join("a/one"));
        fs::write(root.join("a/one"), "x").unwrap();
        put_back(&root.join("a/one"), then);
    };
    assert_eq!(told(&project, &workspace, content), "~a/one");
    let names = |root: &Path| {
        let then = times(&root.join("a"));
        fs::write(root.join("a/new"), "x").unwrap();
        put_back(&root.join("a"), then);
    };
    assert_eq!(told(&project, &workspace, names), "+a/new");
}

#[test]
fn other_rules_show_and_hide_in_directories_that_are_as_they_were() {
    let project = Project::with(&[(".gitignore", "*.log\n"), ("a/b/one", "1"), ("a/b/two.log", "2")]);
    let workspace = project.open();
    let files = |workspace: &Workspace| workspace.command_observer().begin().unwrap().file_count();
    assert_eq!(files(&workspace), 2);
    for (rules, expected) in [("*.txt\n", 3), ("*.log\n", 2), ("a/b\n", 1), ("a/b/one\n", 2), ("", 3)] {
        settle();
        files(&workspace);
        fs::write(project.root().join(".gitignore"), rules).unwrap();
        assert_eq!((files(&workspace), files(&project.open())), (expected, expected), "with {rules:?}");
        settle();
        // Three times: once while the rules' file is in doubt, once settled, once by the
        // directory's signature.
        for _ in 0..3 {
            assert_eq!(files(&workspace), expected, "again with {rules:?}");
        }
        assert_eq!(files(&project.open()), expected, "anew with {rules:?}");
    }
    fs::remove_file(project.root().join(".gitignore")).unwrap();
    assert_eq!(files(&workspace), 2);
    fs::write(project.root().join("a/.ignore"), "two.log\n").unwrap();
    assert_eq!((files(&workspace), files(&project.open())), (2, 2));
    fs::write(project.root().join("a/b/.gitignore"), "*\n").unwrap();
    assert_eq!((files(&workspace), files(&project.open())), (1, 1));
    settle();
    fs::write(project.root().join("a/b/.gitignore"), "!two.log\n").unwrap();
    assert_eq!((files(&workspace), files(&project.open())), (4, 4), "a rule file that hid itself");
}

#[test]
fn a_cache_tag_that_goes_and_a_directory_that_opens_show() {
    let tag = "Signature: 8a477f597d28d172789f06886806bc55\n";
    let project = Project::with(&[("a/cache/CACHEDIR.TAG", tag), ("a/cache/file", "1"), ("a/other", "2")]);
    let workspace = project.open();
    let files = || workspace.command_observer().begin().unwrap().file_count();
    for _ in 0..3 {
        assert_eq!(files(), 1);
        settle();
    }
    fs::write(project.root().join("a/cache/CACHEDIR.TAG"), "no tag any more").unwrap();
    assert_eq!(files(), 3);
    settle();
    fs::create_dir_all(project.root().join("a/sub/.git")).unwrap();
    for _ in 0..3 {
        let found = workspace.command_observer().begin().unwrap().repositories();
        assert_eq!(found, [support::rel("a/sub/.git")]);
        settle();
    }
}

#[test]
fn a_directory_that_closes_and_opens_again() {
    if !support::is_ordinary_user(test_path!("a_directory_that_closes_and_opens_again")) {
        return;
    }
    let project = Project::with(&[("a/b/one", "1"), ("a/two", "2")]);
    let (workspace, closed) = (project.open(), project.root().join("a/b"));
    let files = || workspace.command_observer().begin().unwrap().file_count();
    for _ in 0..3 {
        assert_eq!(files(), 2);
        settle();
    }
    set_mode(&closed, 0);
    for _ in 0..3 {
        assert_eq!(files(), 1);
        settle();
    }
    set_mode(&closed, 0o755);
    assert_eq!(files(), 2);
}

#[test]
fn a_checkpoint_of_an_unchanged_tree_writes_one_line_at_most() {
    let project = Project::with(&[("a/one", "1"), ("a/two", "2"), ("b/three", "3")]);
    settle();
    project.open().checkpoint(&session(1), "first").unwrap();
    // What was in doubt is read once more, and is known from then on.
    settle();
    project.open().checkpoint(&session(1), "again").unwrap();
    let everything = || {
        let mut all = support::model(&project.state());
        all.extend(support::model(&project.dir.path().join("blobs")));
        all
    };
    let before = everything();
    let same = project.open().checkpoint(&session(1), "the same").unwrap();
    let workspace = project.open();
    assert_eq!(workspace.checkpoint(&session(1), "the same").unwrap(), same);
    assert!(before == everything(), "another process' checkpoint of the session is taken");
    let other = workspace.checkpoint(&session(2), "another session's").unwrap();
    assert_eq!(workspace.checkpoint(&session(2), "again").unwrap(), other);
    let after = everything();
    let log = b"journal/log".to_vec();
    let lines = |all: &support::Model| match &all[&log] {
        support::Node::File(_, text) => text.iter().filter(|byte| **byte == b'\n').count(),
        _ => 0,
    };
    assert_eq!(lines(&after), lines(&before) + 1);
    let differing: Vec<_> = after.iter().filter(|(path, node)| before.get(*path) != Some(*node)).collect();
    assert_eq!(differing.len(), 1, "nothing but the journal");
}
