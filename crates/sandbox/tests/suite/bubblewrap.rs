//! Back-end 2: what the distribution's `bwrap` builds is what our own namespaces would be.

use crate::common;
use journeyman_testkit::{copy_program, has_program_or_skip, rerun_test, skip, wait_until, write_program};

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{alive, block_on, host_toolchains, project};
use journeyman_protocol::{RelPath, SandboxNeeds, SandboxTier};
use journeyman_sandbox::{
    CompletedCommand, Network, Outcome, ProjectCopy, Request, Sandbox, SandboxError, SandboxSettings, Stdin,
    StdioMode, WriteMode,
};
use tokio_util::sync::CancellationToken;

fn settings() -> SandboxSettings {
    SandboxSettings { allow: vec![SandboxTier::Bubblewrap], allow_root: true, ..common::settings() }
}

fn run(request: Request) -> CompletedCommand {
    let sandbox = Sandbox::new(settings());
    block_on(async { sandbox.spawn(request, CancellationToken::new()).await.unwrap().wait().await.unwrap() })
}

fn text(request: Request) -> String {
    let completed = run(request);
    assert_eq!(completed.outcome, Outcome::Exited(0), "{}", completed.combined.text);
    completed.stdout.text
}

fn shell(root: &Path, command: &str) -> Request {
    Request::for_shell_command(root, command)
}

#[test]
fn it_is_seen_to_hold_and_meets_every_need() {
    if !has_program_or_skip("bwrap") {
        return;
    }
    let enforcement = block_on(Sandbox::new(settings()).enforcement(&SandboxNeeds::ALL)).unwrap();
    assert_eq!(enforcement.tier, SandboxTier::Bubblewrap);
    assert_eq!(enforcement.first_unmet(&SandboxNeeds::ALL), None);
    assert_eq!(enforcement.layers.first().map(String::as_str), Some("bubblewrap"));
    assert!(enforcement.gaps.iter().any(|gap| gap.contains("layered")), "{:?}", enforcement.gaps);
}

#[test]
fn commands_end_as_they_end() {
    if !has_program_or_skip("bwrap") {
        return;
    }
    let project = project();
    let cases = [
        ("exit 0", Outcome::Exited(0)),
        ("exit 7", Outcome::Exited(7)),
        ("exit 255", Outcome::Exited(255)),
        ("kill -TERM $$", Outcome::Signaled(15)),
        ("kill -KILL $$", Outcome::Signaled(9)),
    ];
    for (command, outcome) in cases {
        let completed = run(shell(project.path(), command));
        assert_eq!(completed.outcome, outcome, "{command}: {}", completed.combined.text);
        assert_eq!(completed.enforcement.tier, SandboxTier::Bubblewrap);
    }
    let missing = run(Request::for_program(project.path(), vec!["no-such-program".into()]));
    assert!(
        matches!(&missing.outcome, Outcome::SetupFailed(why) if why.reason.contains("no-such-program")),
        "{missing:?}"
    );
    let both = run(shell(project.path(), "echo out; echo err >&2"));
    assert_eq!((both.stdout.text.as_str(), both.stderr.text.as_str()), ("out\n", "err\n"));
    assert!(both.usage.peak_memory > 0);
}

#[test]
fn files_with_names_outside_stay_as_they_are() {
    if !has_program_or_skip("bwrap") {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let project = project();
    let (store, at) = (outside.path().join("index.js"), project.path().join("node_modules/.pnpm/x"));
    std::fs::write(&store, "old").unwrap();
    std::fs::create_dir_all(&at).unwrap();
    std::fs::hard_link(&store, at.join("index.js")).unwrap();
    let script =
        "cd node_modules/.pnpm/x; echo new > index.js; chmod 777 index.js; rm index.js; cat index.js";
    let mut request = shell(project.path(), script);
    request.linked = RelPath::parse("node_modules/.pnpm").into_iter().collect();
    assert_eq!(text(request), "old");
    assert_eq!(std::fs::read_to_string(&store).unwrap(), "old");
}

#[test]
fn passwords_in_a_repositorys_settings_are_blanked() {
    if !has_program_or_skip("bwrap") {
        return;
    }
    let project = project();
    let settings = "[remote \"origin\"]\n\turl = https://bob:hunter2@example.com/a.git\n\tpruned = true\n";
    std::fs::write(project.path().join(".git/config"), settings).unwrap();
    let shown = text(shell(project.path(), "cat .git/config"));
    assert_eq!(shown, settings.replace("bob:hunter2", "***"));
}

#[test]
fn input_environment_and_directory_are_the_commands() {
    if !has_program_or_skip("bwrap") {
        return;
    }
    let project = project();
    std::fs::create_dir(project.path().join("sub")).unwrap();
    let mut request = shell(project.path(), "cat; pwd; env | sort; umask; cat /proc/self/oom_score_adj");
    request.stdin = Stdin::Bytes(b"typed\n".to_vec());
    request.cwd = project.path().join("sub");
    request.env = [("PATH", "/usr/bin:/bin"), ("A", "b c")].map(|(k, v)| (k.into(), v.into())).into();
    request.streams = StdioMode::Merged;
    let said = text(request);
    let pwd = project.path().join("sub").canonicalize().unwrap();
    let expected = format!("typed\n{}\nA=b c\nPATH=/usr/bin:/bin\nPWD={}\n", pwd.display(), pwd.display());
    assert!(said.starts_with(&expected), "{said}");
}

#[test]
fn the_root_is_the_one_of_the_plan() {
    if !has_program_or_skip("bwrap") {
        return;
    }
    let project = project();
    std::fs::write(project.path().join("secret"), "secret").unwrap();
    std::fs::create_dir_all(project.path().join("keys/inner")).unwrap();
    std::fs::write(project.path().join("keys/inner/key"), "secret").unwrap();
    let listed = tempfile::Builder::new().prefix("jm-listed-").tempdir().unwrap();
    std::fs::write(listed.path().join("given"), "given\n").unwrap();
    let home = tempfile::Builder::new().prefix("jm-home-").tempdir().unwrap();
    std::fs::write(home.path().join("private"), "private").unwrap();
    let mut request = shell(
        project.path(),
        &format!(
            "cat secret; ls -A keys; cat {0}/given; echo x > {0}/given && exit 1; ls -A $HOME; echo x > $HOME/y; \
             echo x > /tmp/x; echo x > /dev/shm/x; echo x > .git/config && exit 2; mv .git away && exit 3; \
             echo x > secret && exit 4; rm secret && exit 5; touch keys/x && exit 6; touch /x && exit 7; \
             touch /dev/x && exit 8; echo 1 > /proc/sys/kernel/core_pattern && exit 9; ls /.sandbox && exit 10; \
             touch /usr/x && exit 11; echo new > made; id -u; true",
            listed.path().display()
        ),
    );
    request.read_only = vec![listed.path().into()];
    request.masked = vec![project.path().join("secret"), project.path().join("keys")];
    request.env.insert("HOME".into(), home.path().into());
    request.streams = StdioMode::Separate;
    let completed = run(request);
    assert_eq!(completed.outcome, Outcome::Exited(0), "{}", completed.combined.text);
    let uid = rustix::process::geteuid().as_raw();
    assert_eq!(completed.stdout.text, format!("given\n{uid}\n"));
    assert_eq!(std::fs::read_to_string(project.path().join("made")).unwrap(), "new\n");
    assert_eq!(std::fs::read_to_string(project.path().join("secret")).unwrap(), "secret");
    assert_eq!(std::fs::read_to_string(project.path().join(".git/config")).unwrap(), "[core]\n");
}

#[test]
fn a_read_only_project_stays_as_it_is() {
    if !has_program_or_skip("bwrap") {
        return;
    }
    let project = project();
    let mut request = shell(project.path(), "touch x; echo x > file; cat file");
    request.write = WriteMode::ReadOnly;
    assert_eq!(run(request).stdout.text, "content\n");
    assert!(!project.path().join("x").exists());
}

#[test]
fn a_copy_stands_at_the_projects_place_with_its_own_git() {
    if !has_program_or_skip("bwrap") {
        return;
    }
    let (project, copies) = (project(), tempfile::Builder::new().prefix("jm-copies-").tempdir().unwrap());
    let copy = copies.path().join("copy");
    assert!(Command::new("cp").arg("-a").arg(project.path()).arg(&copy).status().unwrap().success());
    std::fs::create_dir_all(project.path().join("target")).unwrap();
    let mut request = shell(project.path(), "pwd; echo x > .git/config; echo x > made; ls -d target; true");
    request.base = Some(ProjectCopy::Directory {
        path: copy.clone(),
        caches: RelPath::parse("target").into_iter().collect(),
        layers: copies.path().join("layers"),
    });
    let said = text(request);
    assert_eq!(said, format!("{}\n", project.path().canonicalize().unwrap().display()));
    assert!(copy.join("made").exists() && !project.path().join("made").exists());
    assert_eq!(std::fs::read_to_string(copy.join(".git/config")).unwrap(), "[core]\n");
}

#[test]
fn a_layered_directory_can_be_read_and_not_written() {
    if !has_program_or_skip("bwrap") {
        return;
    }
    let project = project();
    let cache = tempfile::Builder::new().prefix("jm-cache-").tempdir().unwrap();
    std::fs::write(cache.path().join("kept"), "kept\n").unwrap();
    let mut request = shell(
        project.path(),
        &format!(
            "cat {0}/kept; echo x > {0}/kept && exit 1; touch {0}/x && exit 2; true",
            cache.path().display()
        ),
    );
    request.layered = vec![cache.path().into()];
    assert_eq!(text(request), "kept\n");
}

#[test]
fn what_cant_be_kept_is_refused() {
    if !has_program_or_skip("bwrap") {
        return;
    }
    let project = project();
    let sandbox = Sandbox::new(settings());
    let spawn = |request| block_on(sandbox.spawn(request, CancellationToken::new())).map(drop);
    let mut mounted = shell(project.path(), "true");
    let place = tempfile::Builder::new().prefix("jm-layers-").tempdir().unwrap();
    let plan = journeyman_sandbox::OverlayPlan {
        lower: project.path().into(),
        upper: place.path().join("upper"),
        work: place.path().join("work"),
    };
    std::fs::create_dir(&plan.upper).unwrap();
    std::fs::create_dir(&plan.work).unwrap();
    match common::sandbox().mount_overlay(&plan) {
        Ok(base) => {
            mounted.base = Some(ProjectCopy::Mounted(base.into()));
            let error = spawn(mounted).unwrap_err();
            assert!(error.to_string().contains("bubblewrap can't join"), "{error}");
        }
        Err(error) => {
            skip(error.to_string());
        }
    }
    std::os::unix::fs::symlink(".git", project.path().join("link")).unwrap();
    let mut link = shell(project.path(), "true");
    link.protected.extend(RelPath::parse("link"));
    assert!(matches!(spawn(link), Err(SandboxError::RefusedPath { .. })));
    let mut host = shell(project.path(), "true");
    host.network = Network::Host;
    assert!(matches!(spawn(host), Err(SandboxError::Unmet { need: "no network", .. })));
}

#[test]
fn a_bwrap_that_a_command_could_replace_is_not_used() {
    if !has_program_or_skip("bwrap") {
        return;
    }
    let project = project();
    let planted = project.path().join("bin");
    std::fs::create_dir(&planted).unwrap();
    let real = ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"].map(PathBuf::from);
    let real = real.into_iter().find(|path| path.exists()).unwrap();
    copy_program(&real, &planted.join("bwrap"));
    let sandbox = Sandbox::new(SandboxSettings { programs: vec![planted], ..settings() });
    // Temporary directories may be written by everybody, but only what is one's own can be replaced
    // there.
    let error = block_on(sandbox.spawn(shell(project.path(), "true"), CancellationToken::new()))
        .map(drop)
        .unwrap_err();
    assert!(error.to_string().contains("lies where the command may write"), "{error}");
    let nowhere = Sandbox::new(SandboxSettings { programs: vec![project.path().into()], ..settings() });
    let error = block_on(nowhere.enforcement(&SandboxNeeds::ALL)).unwrap_err();
    assert!(error.to_string().contains("apt install bubblewrap"), "{error}");
}

#[test]
fn a_bwrap_that_lies_is_found_out() {
    if !has_program_or_skip("bwrap") || !has_program_or_skip("python3") {
        return;
    }
    // It starts the helper without any sandbox, as one would that was put there by somebody else.
    let place = tempfile::Builder::new().prefix("jm-liar-").tempdir().unwrap();
    let program = place.path().join("bwrap");
    let helper = common::helper();
    write_program(
        &program,
        &format!(
            "#!/usr/bin/python3\nimport os, sys\nos.write(108, b'{{\"child-pid\": 1}}')\nos.close(108)\n\
             for fd in range(100, 107):\n    try: os.set_inheritable(fd, True)\n    except OSError: pass\n\
             os.execv({helper:?}, ['helper', '__jm-sandbox-helper', 'inside'])\n"
        ),
    );
    let sandbox = Sandbox::new(SandboxSettings { programs: vec![place.path().into()], ..settings() });
    let error = block_on(sandbox.enforcement(&SandboxNeeds::ALL)).unwrap_err();
    assert!(matches!(error, SandboxError::Unavailable { .. } | SandboxError::Leaks(_)), "{error}");
    let project = project();
    let made = project.path().join("made");
    let request = shell(project.path(), "touch made");
    assert!(block_on(sandbox.spawn(request, CancellationToken::new())).is_err());
    assert!(!made.exists());
}

#[test]
fn the_whole_tree_ends_with_the_command() {
    if !has_program_or_skip("bwrap") {
        return;
    }
    let project = project();
    let marker = format!("jm-bwrap-daemon-{}", std::process::id());
    let loop_ = "trap \"\" TERM HUP INT; while :; do sleep 1; done";
    let completed = run(shell(project.path(), &format!("(setsid sh -c '{loop_} # {marker}' &) ; echo done")));
    assert_eq!((completed.outcome, completed.stdout.text.as_str()), (Outcome::Exited(0), "done\n"));
    assert_eq!(alive(&marker), 0);

    let mut request =
        shell(project.path(), &format!("setsid sh -c '{loop_} # {marker}' & {loop_} # {marker}"));
    request.limits.wall = Duration::from_millis(300);
    assert_eq!(run(request).outcome, Outcome::TimedOut);
    assert_eq!(alive(&marker), 0);

    let sandbox = Sandbox::new(settings());
    let request = shell(project.path(), &format!("setsid sh -c '{loop_} # {marker}' & {loop_} # {marker}"));
    let cancelled = block_on(async {
        let cancel = CancellationToken::new();
        let running = sandbox.spawn(request, cancel.clone()).await.unwrap();
        while alive(&marker) < 2 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        cancel.cancel();
        running.wait().await.unwrap()
    });
    assert_eq!(cancelled.outcome, Outcome::Cancelled);
    assert_eq!(alive(&marker), 0);
}

/// Not a test by itself: the agent that [`an_agent_killed_hard_leaves_nothing`] kills.
#[test]
#[ignore = "run by another test"]
fn agent_to_be_killed() {
    let marker = std::env::var("JM_TEST_MARKER").unwrap();
    let project = project();
    let daemon = "trap \"\" TERM HUP INT; while :; do sleep 1; done";
    let command =
        format!("setsid sh -c '{daemon} # {marker}' & setsid sh -c '{daemon} # {marker}' & wait # {marker}");
    run(shell(project.path(), &command));
}

#[test]
fn an_agent_killed_hard_leaves_nothing() {
    if !has_program_or_skip("bwrap") {
        return;
    }
    let marker = format!("jm-bwrap-orphan-{}", std::process::id());
    let mut agent = rerun_test!("agent_to_be_killed")
        .env("JM_TEST_MARKER", &marker)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the start of the agent's command", || alive(&marker) >= 3);
    agent.kill().unwrap();
    agent.wait().unwrap();
    wait_until("the end of the agent's command", || alive(&marker) == 0);
}

#[test]
fn a_fresh_process_remembers_the_test_for_this_very_bwrap() {
    if !has_program_or_skip("bwrap") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let cache = Some(place.path().join("probe"));
    let enforced = |programs: Vec<PathBuf>| {
        let sandbox = Sandbox::new(SandboxSettings { cache: cache.clone(), programs, ..settings() });
        block_on(sandbox.enforcement(&SandboxNeeds::ALL))
    };
    let first = enforced(settings().programs).unwrap();
    let file = place.path().join("probe-bubblewrap");
    let text = std::fs::read_to_string(&file).unwrap();
    // What is remembered is believed, for the same program alone.
    std::fs::write(&file, text.replacen("layered", "remembered", 1)).unwrap();
    assert_ne!(enforced(settings().programs).unwrap(), first);
    let copies = tempfile::tempdir().unwrap();
    let real =
        settings().programs.iter().map(|place| place.join("bwrap")).find(|path| path.exists()).unwrap();
    copy_program(&real, &copies.path().join("bwrap"));
    assert_eq!(enforced(vec![copies.path().into()]).unwrap(), first);
}

#[test]
fn builds_run_inside() {
    if !has_program_or_skip("bwrap") || !has_program_or_skip("gcc") {
        return;
    }
    let project = project();
    std::fs::write(project.path().join("a.c"), "int main(void) { return 3; }\n").unwrap();
    let request = shell(project.path(), "gcc a.c -o a && ./a; test $? -eq 3 && python3 -c 'import socket; \
        s = socket.create_server((\"127.0.0.1\", 0)); c = socket.create_connection(s.getsockname()); print(\"up\")'")
        .with_toolchains(&host_toolchains(project.path()));
    assert_eq!(text(request), "up\n");
}

#[test]
fn the_unprivileged_are_confined_alike() {
    common::again_unprivileged(module_path!());
}
