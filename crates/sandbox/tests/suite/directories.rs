//! Commands in a copy of the project that is a directory, with the caches of the real one.

use crate::common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use crate::common::place::{Place, fingerprint, text};
use crate::common::{block_on, run, sandbox, settings};
use journeyman_protocol::{RelPath, SandboxNeeds, SandboxTier};
use journeyman_sandbox::{Outcome, ProjectCopy, Request, Sandbox, SandboxError, SandboxSettings, WriteMode};
use tokio_util::sync::CancellationToken;

/// A copy of the project without its build directory.
fn copy(place: &Place) -> PathBuf {
    let copy = place.at("the copy");
    let copied = Command::new("cp").arg("-a").arg(place.root()).arg(&copy).status().unwrap();
    assert!(copied.success());
    fs::remove_dir_all(copy.join("target")).unwrap();
    copy
}

fn in_copy(place: &Place, caches: &[&str], command: &str) -> Request {
    let mut request = Request::for_shell_command(&place.root(), command);
    let caches = caches.iter().map(|path| RelPath::parse(path).unwrap()).collect();
    request.base =
        Some(ProjectCopy::Directory { path: place.at("the copy"), caches, layers: place.at("layers") });
    request
}

#[test]
fn commands_find_a_copied_directory_at_the_root() {
    let place = Place::new();
    let copy = copy(&place);
    let before = fingerprint(&place.root());
    fs::create_dir_all(copy.join("only/here")).unwrap();
    fs::create_dir_all(copy.join("only/.git")).unwrap();
    let mut request = in_copy(
        &place,
        &[],
        "pwd; ls ../..; cat ../../file; echo new > ../../made; echo x > ../../.git/x || echo kept; \
         echo x > ../.git/x || echo kept",
    );
    request.cwd = place.root().join("only/here");
    request.protected = [".git", "only/.git"].iter().filter_map(|path| RelPath::parse(path).ok()).collect();
    let completed = run(request);
    let cwd = place.root().join("only/here");
    let expected = format!("{}\nfile\nlink\nonly\nsrc\ncontent\nkept\nkept\n", cwd.display());
    assert_eq!(completed.stdout.text, expected, "{}", completed.combined.text);
    assert_eq!(fs::read_to_string(copy.join("made")).unwrap(), "new\n");
    assert_eq!(fingerprint(&place.root()), before);

    let mut request = in_copy(&place, &[], "touch file 2>/dev/null || cat file");
    request.write = WriteMode::ReadOnly;
    assert_eq!(text(request), "content\n");
}

#[test]
fn caches_of_the_real_root_are_seen_in_a_copy_and_built_on() {
    let place = Place::new();
    let copy = copy(&place);
    fs::create_dir_all(place.root().join("src/deep/out")).unwrap();
    fs::write(place.root().join("src/deep/out/part"), "part\n").unwrap();
    fs::create_dir_all(place.root().join("gone/build")).unwrap();
    fs::create_dir_all(place.root().join("own")).unwrap();
    fs::create_dir_all(copy.join("own/thing")).unwrap();
    symlink("/etc", place.root().join("away")).unwrap();
    fs::create_dir(place.root().join("trap")).unwrap();
    symlink("/tmp", copy.join("trap")).unwrap();
    let before = fingerprint(&place.root());
    let caches = ["target", "src/deep/out", "gone/build", "own", "away", "trap", "nowhere"];
    let command = "cat target/debug/built src/deep/out/part && echo more >> target/debug/built && mkdir target/release \
                   && rm src/deep/out/part && ls own && test ! -e gone -a ! -e away/passwd -a -L trap && ls";
    let Some(first) = caching(&place, in_copy(&place, &caches, command)) else { return };
    assert_eq!(first, "built\npart\nthing\nfile\nlink\nown\nsrc\ntarget\ntrap\n");
    // The next command goes on from there, also where there are other caches.
    let second = text(in_copy(
        &place,
        &["own", "src/deep/out", "target"],
        "cat target/debug/built; ls target src/deep/out",
    ));
    assert_eq!(second, "built\nmore\nsrc/deep/out:\n\ntarget:\ndebug\nrelease\n");
    // A command may start in one, may not remove it, and one that removes all else leaves the real
    // one alone.
    let mut request =
        in_copy(&place, &caches, "cat built; cd ../..; rm -rf .[!.]* * 2>/dev/null; ls -A; ls target");
    request.cwd = place.root().join("target/debug");
    request.protected = Vec::new();
    assert_eq!(run(request).stdout.text, "built\nmore\nsrc\ntarget\n");
    assert_eq!(fingerprint(&place.root()), before);
    // What is on disk of the copy isn't the caches' content.
    assert_eq!(fs::read_dir(copy.join("target")).unwrap().count(), 0);
}

/// The output of a command with caches that can be written; `None` where the kernel has no
/// overlays.
fn caching(place: &Place, request: Request) -> Option<String> {
    place.mount("probe")?;
    Some(text(request))
}

#[test]
fn commands_at_once_share_caches() {
    let place = Place::new();
    copy(&place);
    let box_ = sandbox();
    let wait = "echo a > target/a; while ! test -e target/b; do sleep 0.01; done; echo both";
    let Some(_) = caching(&place, in_copy(&place, &["target"], "true")) else { return };
    block_on(async {
        let behind = box_.spawn(in_copy(&place, &["target"], wait), CancellationToken::new()).await.unwrap();
        let front =
            in_copy(&place, &["target"], "while ! test -e target/a; do sleep 0.01; done; echo b > target/b");
        let front = box_.spawn(front, CancellationToken::new()).await.unwrap().wait().await.unwrap();
        assert_eq!(front.outcome, Outcome::Exited(0), "{}", front.combined.text);
        assert_eq!(behind.wait().await.unwrap().stdout.text, "both\n");
    });
    // Another sandbox has no part in the layers while this one may write to them.
    let command = "ls target; echo x > target/x || echo kept";
    assert_eq!(run(in_copy(&place, &["target"], command)).stdout.text, "debug\nkept\n");
    drop(box_);
    assert_eq!(text(in_copy(&place, &["target"], "ls target")), "a\nb\ndebug\n");
}

#[test]
fn a_copy_is_hidden_where_a_listed_path_would_show_it() {
    let place = Place::new();
    let copy = copy(&place);
    fs::create_dir(copy.join("inner layers")).unwrap();
    let above = fs::canonicalize(place.directory.path()).unwrap();
    let command = format!("cd {}; ls -A 'the copy' layers; cat project/file", above.display());
    for layers in [place.at("layers"), copy.join("inner layers")] {
        fs::create_dir_all(place.at("layers")).unwrap();
        fs::write(copy.join("file"), "the copy's\n").unwrap();
        let mut request = in_copy(&place, &[], &command);
        request.base = Some(ProjectCopy::Directory { path: copy.clone(), caches: Vec::new(), layers });
        request.read_only = vec![above.clone()];
        assert_eq!(text(request), "layers:\n\nthe copy:\nthe copy's\n");
    }
}

#[test]
fn one_sandbox_keeps_the_mounts_of_caches_while_they_are_true() {
    let place = Place::new();
    let copy = copy(&place);
    let Some(_) = caching(&place, in_copy(&place, &["target"], "true")) else { return };
    let box_ = sandbox();
    let run = |caches: &[&str], command: &str| {
        let request = in_copy(&place, caches, command);
        let running = block_on(async {
            box_.spawn(request, CancellationToken::new()).await.unwrap().wait().await.unwrap()
        });
        running.combined.text
    };
    assert_eq!(run(&["target"], "echo 1 > target/n; cat target/n"), "1\n");
    assert_eq!(run(&["target"], "cat target/n"), "1\n");
    // Its place is removed from outside, and so is the mount: it is mounted again.
    fs::remove_dir(copy.join("target")).unwrap();
    assert_eq!(run(&["target"], "cat target/n target/debug/built"), "1\nbuilt\n");
    // Another cache comes in.
    fs::create_dir(place.root().join("dist")).unwrap();
    fs::write(place.root().join("dist/out"), "out\n").unwrap();
    assert_eq!(run(&["target", "dist"], "cat target/n dist/out"), "1\nout\n");
    // The copy is made anew under the same name.
    fs::rename(&copy, place.at("old")).unwrap();
    fs::rename(place.at("layers"), place.at("old layers")).unwrap();
    fs::create_dir(&copy).unwrap();
    assert_eq!(run(&["target"], "ls; cat target/n 2>/dev/null || ls target"), "target\ndebug\n");
}

#[test]
fn a_cache_whose_layers_cannot_be_mounted_is_read_only() {
    let place = Place::new();
    copy(&place);
    let Some(_) = place.mount("other") else { return };
    fs::create_dir_all(place.at("layers/target")).unwrap();
    fs::write(place.at("layers/target/upper"), "in the way").unwrap();
    let completed =
        run(in_copy(&place, &["target"], "cat target/debug/built; echo x > target/x || echo kept"));
    assert_eq!(completed.stdout.text, "built\nkept\n", "{}", completed.combined.text);
}

#[test]
fn a_copy_in_the_wrong_place_is_refused() {
    let place = Place::new();
    let root = place.root();
    fs::create_dir_all(root.join("inner")).unwrap();
    let cases = [
        (root.join("inner"), "neither in the project nor above it"),
        (root.parent().unwrap().to_owned(), "neither in the project nor above it"),
        (root.clone(), "neither in the project nor above it"),
        (place.at("nowhere"), "the copy"),
        (root.join("file"), "must be a directory"),
    ];
    for caches in [&[][..], &["target"]] {
        for (path, reason) in &cases {
            let mut request = in_copy(&place, caches, "true");
            if let Some(ProjectCopy::Directory { path: copy, .. }) = &mut request.base {
                copy.clone_from(path);
            }
            let refused =
                block_on(async { sandbox().spawn(request, CancellationToken::new()).await.map(drop) });
            let error = refused.unwrap_err().to_string();
            assert!(error.contains(reason), "{}: {error}", path.display());
        }
    }
    let Some(mounted) = place.mount("copy") else { return };
    let mut request = place.request(&mounted, "true");
    request.root = root.join("src");
    let refused = block_on(async { sandbox().spawn(request, CancellationToken::new()).await.map(drop) });
    assert!(refused.unwrap_err().to_string().contains("another directory than the root"));
}

#[test]
fn nothing_is_mounted_where_namespaces_are_not_allowed_and_unconfined_commands_run_in_a_directory() {
    let place = Place::new();
    let copy = copy(&place);
    let settings = SandboxSettings { allow: vec![SandboxTier::Unconfined], allow_root: true, ..settings() };
    let box_ = Sandbox::new(settings);
    let error = box_.mount_overlay(&place.plan("copy")).map(drop).unwrap_err();
    assert!(matches!(&error, SandboxError::Unavailable { .. }), "{error}");
    let unconfined = |mut request: Request| {
        request.needs = SandboxNeeds::NONE;
        block_on(async {
            let running = box_.spawn(request, CancellationToken::new()).await?;
            running.wait().await
        })
    };
    fs::create_dir(copy.join("only")).unwrap();
    let mut request = in_copy(&place, &["target"], "pwd; echo new > made");
    request.cwd = place.root().join("only");
    let completed = unconfined(request).unwrap();
    let expected = fs::canonicalize(copy.join("only")).unwrap();
    assert_eq!(completed.stdout.text, format!("{}\n", expected.display()));
    assert!(copy.join("only/made").exists());
    symlink("/tmp", copy.join("out")).unwrap();
    for (cwd, reason) in
        [("/tmp".into(), "isn't in the project"), (place.root().join("out"), "out of the copy")]
    {
        let mut request = in_copy(&place, &[], "pwd");
        request.cwd = cwd;
        assert!(unconfined(request).unwrap_err().to_string().contains(reason));
    }
    let Some(mounted) = place.mount("mounted") else { return };
    let error = unconfined(place.request(&mounted, "true")).unwrap_err();
    assert!(error.to_string().contains("namespaces of its own"), "{error}");
}

#[test]
fn the_unprivileged_have_copies_alike() {
    common::again_unprivileged(module_path!());
}
