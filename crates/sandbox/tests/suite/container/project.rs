//! What a command sees of the project, and whose what it writes is.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};

use journeyman_protocol::RelPath;
use journeyman_sandbox::{ProjectCopy, SandboxError, WriteMode};
use tokio_util::sync::CancellationToken;

use crate::common::block_on;
use crate::container::support::{OWNER, give, place, text};

#[test]
fn what_is_written_is_the_projects_owners() {
    let Some(place) = place() else { return };
    place.text("mkdir -p made/deep; echo x >made/deep/file; echo y >>file");
    let expected =
        if rustix::process::geteuid().is_root() { OWNER } else { rustix::process::geteuid().as_raw() };
    for path in ["made", "made/deep", "made/deep/file", "file"] {
        assert_eq!(fs::metadata(place.root().join(path)).unwrap().uid(), expected, "{path}");
    }
}

#[test]
fn roots_own_project_isnt_written_as_root() {
    let Some(place) = place() else { return };
    if !rustix::process::geteuid().is_root() {
        println!("this run isn't root's");
        return;
    }
    std::os::unix::fs::chown(place.root(), Some(0), Some(0)).unwrap();
    let refused = block_on(place.sandbox().spawn(place.request("true"), CancellationToken::new()));
    let refused = refused.unwrap_err();
    assert!(matches!(refused, SandboxError::RefusedPath { .. }), "{refused}");
    assert!(refused.to_string().contains("chown -R"), "{refused}");
    let mut request = place.request("id -u; cat file");
    request.write = WriteMode::ReadOnly;
    assert_eq!(text(place.run_request(request)), "65534\ncontent\n");
}

#[test]
fn protected_and_masked_paths_are_kept() {
    let Some(place) = place() else { return };
    let mut request = place.request(
        "(echo x >.git/config) 2>/dev/null && echo wrote; (echo x >.git/hooks/pre-commit) 2>/dev/null && echo wrote; \
         rm -rf .git 2>/dev/null; mv .git moved 2>/dev/null && echo moved; cat .git/config; \
         cat .env; ls -A keys; rm -f .env 2>/dev/null && echo removed; (echo x >keys/new) 2>/dev/null && echo wrote; true",
    );
    request.masked = vec![place.root().join(".env"), place.root().join("keys")];
    assert_eq!(text(place.run_request(request)), "[core]\n");
    assert_eq!(fs::read_to_string(place.root().join(".env")).unwrap(), "SECRET=1\n");
    assert_eq!(fs::read_to_string(place.root().join("keys/key")).unwrap(), "secret\n");
}

#[test]
fn a_protected_link_is_refused() {
    let Some(place) = place() else { return };
    symlink("src", place.root().join("link")).unwrap();
    let mut request = place.request("true");
    request.protected = RelPath::parse("link").into_iter().collect();
    let refused = block_on(place.sandbox().spawn(request, CancellationToken::new())).unwrap_err();
    assert!(refused.to_string().contains("symbolic link"), "{refused}");
}

#[test]
fn a_read_only_project_stays_as_it_is() {
    let Some(place) = place() else { return };
    let mut request =
        place.request("cat file; (echo x >file) 2>/dev/null || (echo x >new) 2>/dev/null || echo kept");
    request.write = WriteMode::ReadOnly;
    assert_eq!(text(place.run_request(request)), "content\nkept\n");
}

#[test]
fn listed_paths_are_there_and_no_others() {
    let Some(place) = place() else { return };
    let at = |name: &str| place.directory.path().join(name);
    for name in ["read", "write", "other"] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(name).join("file"), name).unwrap();
        give(&at(name));
    }
    let mut request = place.request(&format!(
        "cd {}; cat read/file; (echo x >read/new) 2>/dev/null && echo wrote; echo x >write/new; cat write/file; \
         ls",
        place.directory.path().display()
    ));
    request.read_only = vec![at("read"), at("missing")];
    request.writable = vec![at("write")];
    assert_eq!(text(place.run_request(request)), "readwriteproject\nread\nwrite\n");
    assert!(at("write/new").exists());
}

#[test]
fn a_home_above_the_project_shows_nothing_else() {
    let Some(place) = place() else { return };
    fs::write(place.directory.path().join("secret"), "x").unwrap();
    let mut request = place.request("ls -A ~; echo x >~/file && cat ~/file; cat file");
    request.env.insert("HOME".into(), place.directory.path().into());
    assert_eq!(text(place.run_request(request)), "project\nx\ncontent\n");
    assert!(!place.directory.path().join("file").exists());
}

#[test]
fn a_copy_stands_at_the_projects_own_path() {
    let Some(place) = place() else { return };
    let copy = place.directory.path().join("copy");
    fs::create_dir_all(copy.join(".git")).unwrap();
    fs::write(copy.join("file"), "of the copy\n").unwrap();
    give(&copy);
    let mut request =
        place.request("pwd; cat file; echo new >new; (echo x >.git/new) 2>/dev/null && echo wrote; true");
    let layers = place.directory.path().join("layers");
    request.base = Some(ProjectCopy::Directory { path: copy.clone(), caches: Vec::new(), layers });
    assert_eq!(text(place.run_request(request)), format!("{}\nof the copy\n", place.root().display()));
    assert!(copy.join("new").exists() && !place.root().join("new").exists());
}

#[test]
fn what_would_show_too_much_is_refused() {
    let Some(place) = place() else { return };
    let sandbox = place.sandbox();
    let refused = |path: &str| {
        let mut request = place.request("true");
        request.writable = vec![path.into()];
        let error = block_on(sandbox.spawn(request, CancellationToken::new())).unwrap_err();
        assert!(matches!(error, SandboxError::RefusedPath { .. }), "{path}: {error}");
    };
    ["/", "/etc", "/usr", "/proc/self", "/var/run", "/home", "relative"].into_iter().for_each(refused);
    let mut request = place.request("true");
    request.argv = vec![std::os::unix::ffi::OsStringExt::from_vec(b"a\xff".to_vec())];
    let error = block_on(sandbox.spawn(request, CancellationToken::new())).unwrap_err();
    assert!(error.to_string().contains("text alone"), "{error}");
}
