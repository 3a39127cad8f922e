//! A repository whose settings name programs wherever git takes one: reading it runs none of them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use journeyman_git::Git;
use journeyman_protocol::RelPath;

use crate::support::{Repo, World};

in_each_tier! {
    settings_that_name_programs,
    filters_under_odd_names,
    a_submodules_settings,
    places_elsewhere,
    a_git_in_the_project,
    pipes,
}

/// A program that leaves a mark.
fn trap(repo: &Repo) -> String {
    let (trap, mark) = (repo.beside("trap"), repo.beside("mark"));
    fs::write(&trap, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", mark.display())).unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    trap.display().to_string()
}

/// Asks for everything there is to be read, and says whether something ran.
fn read_all(world: &World, repo: &Repo, root: &Path) {
    let git = world.git(root);
    let into = repo.empty_beside("copy");
    let file = RelPath::parse("file").unwrap();
    let results = [
        Git::run_blocking(git.state()).err(),
        Git::run_blocking(git.status()).err(),
        Git::run_blocking(git.tracked_files()).err(),
        Git::run_blocking(git.resolve("HEAD")).err(),
        Git::run_blocking(git.show("HEAD", &file, 1000)).err(),
        Git::run_blocking(git.log(10)).err(),
        Git::run_blocking(git.find_dirty_paths(std::slice::from_ref(&file))).err(),
        git.check_out(&into).err(),
    ];
    fs::remove_dir_all(&into).unwrap();
    let failed: Vec<String> = results.into_iter().flatten().map(|error| error.to_string()).collect();
    let mark = repo.beside("mark");
    assert!(!mark.exists(), "ran: {}", fs::read_to_string(&mark).unwrap());
    assert_eq!(failed, Vec::<String>::new());
}

fn assert_armed(repo: &Repo) {
    let mark = repo.beside("mark");
    repo.try_git(&repo.root, &["status"]);
    assert!(mark.exists(), "the trap isn't one");
    fs::remove_file(mark).unwrap();
}

fn settings_that_name_programs(world: &World) {
    let repo = Repo::of(&[("file", "text\n"), ("other", "text\n")]);
    let trap = trap(&repo);
    let hooks = repo.beside("hooks");
    fs::create_dir(&hooks).unwrap();
    for hook in
        ["post-index-change", "post-checkout", "reference-transaction", "pre-commit", "fsmonitor-watchman"]
    {
        symlink(&trap, hooks.join(hook)).unwrap();
        symlink(&trap, repo.root.join(".git/hooks").join(hook)).unwrap();
    }
    let (shell, remote) = (format!("!{trap}"), format!("ext::{trap}"));
    let settings = [
        ("core.hooksPath", hooks.to_str().unwrap()),
        ("core.pager", &trap),
        ("core.editor", &trap),
        ("core.sshCommand", &trap),
        ("core.askPass", &trap),
        ("core.gitProxy", &trap),
        ("core.alternateRefsCommand", &trap),
        ("core.attributesFile", ".gitattributes"),
        ("core.worktree", "/"),
        ("sequence.editor", &trap),
        ("pager.status", &trap),
        ("pager.log", &trap),
        ("pager.show", &trap),
        ("diff.external", &trap),
        ("diff.evil.command", &trap),
        ("diff.evil.textconv", &trap),
        ("diff.evil.cachetextconv", "false"),
        ("merge.evil.driver", &trap),
        ("filter.evil.clean", &trap),
        ("filter.evil.smudge", &trap),
        ("filter.evil.process", &trap),
        ("filter.evil.required", "true"),
        ("gpg.program", &trap),
        ("gpg.ssh.program", &trap),
        ("gpg.x509.program", &trap),
        ("log.showSignature", "true"),
        ("commit.gpgSign", "true"),
        ("interactive.diffFilter", &trap),
        ("credential.helper", &shell),
        ("credential.https://example.com.helper", &shell),
        ("alias.st", &shell),
        ("alias.status", &shell),
        ("alias.ls-files", &shell),
        ("trailer.x.command", &trap),
        ("uploadpack.packObjectsHook", &trap),
        ("remote.origin.url", &remote),
        ("protocol.ext.allow", "always"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.uploadpack", &trap),
        ("extensions.partialClone", "origin"),
        ("core.fsmonitor", &trap),
    ];
    for (key, value) in settings {
        repo.git(&["config", key, value]);
    }
    let attributes = "* filter=evil diff=evil merge=evil\n";
    repo.write(".gitattributes", attributes);
    fs::write(repo.root.join(".git/info/attributes"), attributes).unwrap();
    // The size stays: only a look at the content tells.
    repo.write("file", "TEXT\n");
    repo.write("new", "text\n");
    repo.git(&["config", "--unset", "core.worktree"]);
    assert_armed(&repo);
    fs::remove_file(repo.beside("mark")).ok();
    read_all(world, &repo, &repo.root);
    repo.git(&["config", "core.worktree", "/"]);
    fs::remove_file(repo.beside("mark")).ok();
    read_all(world, &repo, &repo.root);
    what_is_lacking_is_not_fetched(world, &repo);
}

fn what_is_lacking_is_not_fetched(world: &World, repo: &Repo) {
    let id = repo.try_git(&repo.root, &["rev-parse", "HEAD:file"]).stdout;
    let id = String::from_utf8(id).unwrap();
    let object = repo.root.join(".git/objects").join(&id[..2]).join(id[2..].trim());
    fs::remove_file(&object).unwrap();
    fs::remove_file(repo.beside("mark")).ok();
    let shown = Git::run_blocking(world.git(&repo.root).show("HEAD", &RelPath::parse("file").unwrap(), 100));
    assert!(shown.is_err());
    assert!(!repo.beside("mark").exists());
}

fn filters_under_odd_names(world: &World) {
    let repo = Repo::of(&[("file", "text\n"), ("other", "text\n")]);
    let trap = trap(&repo);
    let name = "a=b \\\"q\\\" .clean";
    let section = format!(
        "[filter \"{name}\"]\n\tclean = {trap}\n\tsmudge = {trap}\n[FILTER \"X=y\"]\n\tclean = {trap}\n\
         \tsmudge = {trap}\n[filter.dotted]\n\tclean = {trap}\n\tprocess = {trap}\n"
    );
    fs::write(repo.root.join(".git/evil"), section).unwrap();
    fs::write(repo.root.join(".git/more"), "[include]\n\tpath = evil\n").unwrap();
    repo.git(&["config", "includeIf.gitdir:**.path", "more"]);
    repo.write(".gitattributes", "file filter=X=y\nother filter=dotted\nthird \"filter=a=b\"\n");
    fs::write(repo.root.join(".git/info/attributes"), "file filter=X=y\n").unwrap();
    repo.write("file", "TEXT\n");
    repo.write("other", "TEXT\n");
    assert_armed(&repo);
    read_all(world, &repo, &repo.root);
}

fn a_submodules_settings(world: &World) {
    let other = Repo::of(&[("lib", "text\n")]);
    let repo = Repo::of(&[("file", "text\n")]);
    let trap = trap(&repo);
    repo.git(&["submodule", "--quiet", "add", &other.root.display().to_string(), "sub"]);
    repo.commit_all();
    let sub = repo.root.join("sub");
    repo.git_in(&sub, &["config", "core.fsmonitor", &trap]);
    repo.git_in(&sub, &["config", "filter.evil.clean", &trap]);
    fs::write(repo.root.join(".git/modules/sub/info/attributes"), "* filter=evil\n").unwrap();
    fs::write(sub.join("lib"), "TEXT\n").unwrap();
    repo.git(&["config", "diff.ignoreSubmodules", "none"]);
    repo.git(&["config", "submodule.sub.ignore", "none"]);
    assert_armed(&repo);
    read_all(world, &repo, &repo.root);
    let git = world.git(&sub);
    let status = Git::run_blocking(git.status()).unwrap();
    assert_eq!(status.entries.len(), 1);
    assert!(!repo.beside("mark").exists());
}

fn places_elsewhere(world: &World) {
    let repo = Repo::of(&[("file", "text\n")]);
    // A work tree elsewhere by the settings: the project's own is read.
    let elsewhere = repo.empty_beside("elsewhere");
    fs::write(elsewhere.join("secret"), "secret").unwrap();
    for place in [elsewhere.display().to_string(), "../../elsewhere".to_owned(), "/nonexistent".to_owned()] {
        repo.git(&["config", "core.worktree", &place]);
        read_all(world, &repo, &repo.root);
        assert_eq!(Git::run_blocking(world.git(&repo.root).status()).unwrap().entries, []);
    }
    repo.git(&["config", "--unset", "core.worktree"]);
    // Objects borrowed from what is no object store, and from itself.
    let objects = repo.root.join(".git/objects");
    let text = format!("{}\n/etc\n/proc/self\n../objects\n{}\n", elsewhere.display(), objects.display());
    fs::create_dir_all(objects.join("info")).unwrap();
    fs::write(objects.join("info/alternates"), text).unwrap();
    read_all(world, &repo, &repo.root);
    fs::remove_file(objects.join("info/alternates")).unwrap();
    repo.assert_sound();
}

fn a_git_in_the_project(world: &World) {
    let repo = Repo::of(&[("file", "text\n")]);
    let trap = trap(&repo);
    let bin = repo.root.join("bin");
    fs::create_dir(&bin).unwrap();
    fs::copy(&trap, bin.join("git")).unwrap();
    let path = format!("{}:.:bin:{}", bin.display(), std::env::var("PATH").unwrap());
    let git = world.git(&repo.root).with_path(path);
    let status = Git::run_blocking(git.status()).unwrap();
    assert_eq!(status.entries.len(), 1);
    assert!(!repo.beside("mark").exists());
}

/// Whoever opens a pipe waits for ever; git itself would for some of these.
fn pipes(world: &World) {
    let repo = Repo::of(&[("file", "text\n")]);
    for name in [".git/objects/info/alternates", ".git/commondir"] {
        let pipe = repo.root.join(name);
        fs::create_dir_all(pipe.parent().unwrap()).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        if name.ends_with("commondir") {
            let found = Git::run_blocking(world.git(&repo.root).state());
            assert!(found.is_err(), "{found:?}");
        }
        fs::remove_file(&pipe).unwrap();
    }
    fs::remove_file(repo.root.join("file")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, repo.root.join("file"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let status = Git::run_blocking(world.git(&repo.root).status()).unwrap();
    assert_eq!(status.entries.len(), 1);
}
