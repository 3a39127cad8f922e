//! Commands: their results, what they change, and the rest of their output.

use crate::bench;

use bench::Bench;
use journeyman_protocol::GuardViolationKind::{Changed, Deleted, Made};
use journeyman_protocol::{FileChangeKind, GuardViolationKind, SandboxNeeds};
use journeyman_tools::ToolOutput;
use serde_json::json;

fn run(bench: &Bench, command: &str) -> String {
    bench.say("run_command", json!({ "command": command }))
}

#[test]
fn a_result_says_how_it_ended_and_what_it_printed() {
    let bench = Bench::new(&[("sub/x", b"")]);
    let cases = [
        ("true", "exit code 0, no output\n"),
        ("printf hi", "exit code 0\nhi\n"),
        ("echo out; echo err >&2; exit 3", "exit code 3\nout\nerr\n"),
        ("kill -9 $$", "killed by signal 9, no output\n"),
    ];
    for (command, expected) in cases {
        let output = bench.call("run_command", json!({ "command": command })).unwrap();
        assert_eq!(bench::text(&output), expected, "{command}");
        assert_eq!(output.is_error, !expected.starts_with("exit code 0"), "{command}");
        assert_eq!(output.changes, []);
    }
    let said = bench.say("run_command", json!({"command": "pwd", "directory": "sub"}));
    assert_eq!(said, format!("exit code 0\n{}\n", bench.root.join("sub").display()));
    let said = bench.say("run_command", json!({"command": "pwd", "directory": "sup"}));
    assert!(said.starts_with("error: `sup` doesn't exist"), "{said}");
}

#[test]
fn output_is_shown_as_it_comes() {
    let bench = Bench::new(&[]);
    run(&bench, "echo one; echo two");
    assert_eq!(*bench.live.lock().unwrap(), "one\ntwo\n");
}

#[test]
fn changed_files_are_named_and_can_be_undone() {
    let bench = Bench::new(&[("a", b"1\n"), ("b", b"2\n")]);
    let output = bench.call("run_command", json!({"command": "echo 3 >> a; rm b; echo new > c"})).unwrap();
    assert_eq!(
        bench::text(&output),
        "exit code 0, no output\n[files changed: a (modified), b (deleted), c (added)]\n"
    );
    let kinds: Vec<FileChangeKind> = output.changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [FileChangeKind::Modified, FileChangeKind::Deleted, FileChangeKind::Added]);
    let report = bench.context.workspace.undo(journeyman_workspace::UndoTarget::LastRun).unwrap();
    assert_eq!(report.restored.len(), 3);
    assert_eq!((bench.file("a"), bench.file("b")), (b"1\n".to_vec(), b"2\n".to_vec()));
}

#[test]
fn ignored_files_that_a_script_removes_are_named_and_given_back() {
    let large = vec![b'x'; 17 << 20];
    let files: [(&str, &[u8]); 4] = [
        (".gitignore", b".env\n*.sqlite\n*.img\n"),
        (".env", b"KEY=1"),
        ("a.sqlite", b"rows"),
        ("disk.img", &large),
    ];
    let bench = Bench::new(&files);
    let output = bench.call(
        "run_command",
        json!({"command": "for f in $(ls -A); do case $f in .e*|*.*q*|*.img) rm $f; esac; done"}),
    );
    assert_eq!(
        bench::text(&output.unwrap()),
        "exit code 0, no output\n[files changed: .env (deleted), a.sqlite (deleted), disk.img (deleted)]\n\
         [undo can't bring back 1 of them: disk.img]\n"
    );
    bench.context.workspace.undo(journeyman_workspace::UndoTarget::LastRun).unwrap();
    assert_eq!((bench.file(".env"), bench.file("a.sqlite")), (b"KEY=1".to_vec(), b"rows".to_vec()));
}

#[test]
fn long_output_keeps_head_and_tail_and_the_rest_is_reachable() {
    let bench = Bench::new(&[]);
    let said = run(&bench, "seq 1 20000");
    assert!(said.len() < 31_000, "{}", said.len());
    assert!(said.starts_with("exit code 0\n1\n2\n") && said.ends_with("\n19999\n20000\n"));
    let note = said.lines().find(|line| line.contains("left out")).unwrap();
    assert!(note.contains("read_file with path output:call_1 and offset "), "{note}");
    let offset: u64 = note.split("offset ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let rest = bench.say("read_file", json!({"path": "output:call_1", "offset": offset, "limit": 2}));
    assert_eq!(
        rest,
        format!(
            "{offset}\t{offset}\n{}\t{}\n[the output has 20000 lines; go on with offset {}]",
            offset + 1,
            offset + 1,
            offset + 2
        )
    );
    assert!(said.contains(&format!("\n{}\n\n[", offset - 1)), "{note}");
    let said = bench.say("read_file", json!({"path": "output:other"}));
    assert_eq!(said, "error: there is no output of a call `other` in this session; run the command again");
}

#[test]
fn a_hung_command_is_killed_with_its_children() {
    let bench = Bench::new(&[]);
    let output = bench
        .call("run_command", json!({"command": "echo begun; sleep 1000 & sleep 1000", "timeout_s": 1}))
        .unwrap();
    assert_eq!(bench::text(&output), "killed at its time limit of 1 s (timeout_s may be up to 600)\nbegun\n");
    assert!(output.is_error);
}

#[test]
fn an_interrupt_ends_the_command() {
    let bench = Bench::new(&[]);
    let cancel = bench.context.cancel.clone();
    let mut bench = bench;
    bench.context.output = std::sync::Arc::new(move |_| cancel.cancel());
    let said = run(&bench, "echo begun; sleep 1000");
    assert_eq!(said, "interrupted\nbegun\n");
    assert_eq!(run(&bench, "true"), "error: the call was interrupted");
}

#[test]
fn hostile_output_is_cleaned_and_bounded() {
    let bench = Bench::new(&[]);
    let said = run(&bench, "printf '\\033[31mred\\033[0m\\000\\377end\\n'");
    assert!(
        !said.contains('\u{1b}') && !said.contains('\0') && said.contains("red") && said.contains("end"),
        "{said:?}"
    );
    let said = run(&bench, "head -c 10000000 /dev/zero | tr '\\0' x");
    assert!(said.len() < 31_000, "{}", said.len());
    assert!(bench.live.lock().unwrap().len() <= 600 * 1024);
}

#[test]
fn a_command_that_can_not_be_confined_as_needed_does_not_run() {
    let mut bench = Bench::new(&[("a", b"")]);
    bench.context.needs = SandboxNeeds::ALL;
    let said = run(&bench, "rm a");
    assert!(said.starts_with("error: the command did not run: refused: "), "{said}");
    assert!(bench.root.join("a").exists());
}

#[test]
fn a_repository_that_a_command_makes_is_moved_away() {
    let bench =
        Bench::new(&[("sub/a", b"1\n"), ("old/.git/HEAD", b"ref: x\n"), ("mod/.git", b"gitdir: ../m\n")]);
    let cases = [
        ("mkdir .git; echo x > .git/config", ".git"),
        ("mkdir -p sub/.git/hooks", "sub/.git"),
        ("mkdir sub/.GIT", "sub/.GIT"),
        ("echo 'gitdir: /tmp/x' > sub/.git", "sub/.git"),
        ("ln -s /tmp/x sub/.git", "sub/.git"),
        ("mv old gone; mkdir -p old/.git", "old/.git"),
        ("mkdir -p sub/.git; exit 3", "sub/.git"),
        ("mkdir -p sub/.git; chmod 0 sub/.git", "sub/.git"),
        ("mkdir -p sub/.git; echo sub > .gitignore", "sub/.git"),
    ];
    for (command, path) in cases {
        let output = bench.call("run_command", json!({ "command": command })).unwrap();
        let said = bench::text(&output);
        let expected = format!("error: the repository {path} was ");
        assert!(said.contains(&expected) && output.is_error, "{command}: {said}");
        assert!(bench.root.join(path).symlink_metadata().is_err(), "{command}");
        let place = said.split(" and moved to ").nth(1).unwrap().split(".\n").next().unwrap();
        assert!(
            std::path::Path::new(place).exists() && !place.starts_with(bench.root.to_str().unwrap()),
            "{said}"
        );
    }
    assert!(bench.root.join("gone/.git/HEAD").exists(), "one that only moved stays");
    assert_eq!(run(&bench, "true"), "exit code 0, no output\n");
}

#[test]
fn a_pointer_to_a_repository_that_a_command_changes_is_put_back() {
    let bench = Bench::new(&[("mod/.git", b"gitdir: ../m\n")]);
    let output = violation(&bench, "echo 'gitdir: ../other' > mod/.git", &[("mod/.git", Changed)]);
    assert!(output.violations[0].repository && output.violations[0].put_back, "{output:?}");
    assert_eq!(bench.file("mod/.git"), b"gitdir: ../m\n");
}

/// Runs a command that may not do what it does; gives what came of it.
fn violation(bench: &Bench, command: &str, expected: &[(&str, GuardViolationKind)]) -> ToolOutput {
    let output = bench.call("run_command", json!({ "command": command })).unwrap();
    let found: Vec<(String, GuardViolationKind)> =
        output.violations.iter().map(|one| (one.path.to_string(), one.kind)).collect();
    let expected: Vec<(String, GuardViolationKind)> =
        expected.iter().map(|(path, kind)| ((*path).to_owned(), *kind)).collect();
    assert_eq!(found, expected, "{command}: {}", bench::text(&output));
    assert_eq!(output.is_error, !expected.is_empty(), "{command}");
    for one in &output.violations {
        assert!(one.problem.is_none(), "{command}: {one}");
        assert!(bench::text(&output).contains(&format!("error: {one}.")), "{command}: {one}");
        let there = bench.root.join(one.path.as_path()).symlink_metadata().is_ok();
        assert_eq!(there, one.put_back, "{command}: {one}");
    }
    output
}

#[test]
fn what_programs_outside_obey_is_moved_away_when_a_command_makes_it_ignored_or_not() {
    let rules = b"hidden/\n.direnv\n.envrc\n.vscode\n";
    let bench = Bench::new(&[("src/a", b""), (".gitignore", rules)]);
    for (command, path) in [
        ("echo x > .envrc", ".envrc"),
        ("mkdir -p src/.vscode; echo x > src/.vscode/tasks.json", "src/.vscode"),
        ("mkdir -p hidden/deep/er; echo x > hidden/deep/er/.envrc", "hidden/deep/er/.envrc"),
        ("mkdir .journeyman; echo x > .journeyman/config.toml", ".journeyman"),
        ("mkdir -p hidden/.VSCode; echo x > hidden/.VSCode/tasks.json", "hidden/.VSCode"),
        ("ln -s ../../outside src/.mcp.json", "src/.mcp.json"),
        ("mkdir -p new/.claude; chmod 0 new/.claude", "new/.claude"),
        ("echo x > src/.npmrc; echo src > .ignore", "src/.npmrc"),
        ("mkdir .hg", ".hg"),
        ("mkdir -p src/.svn; exit 3", "src/.svn"),
    ] {
        let output = violation(&bench, command, &[(path, Made)]);
        let moved = output.violations[0].moved_to.clone().unwrap();
        assert!(!moved.starts_with(bench.root.to_str().unwrap()), "{moved}");
        assert!(std::path::Path::new(&moved).exists(), "{moved}");
        assert!(output.changes.iter().all(|change| !change.path.to_string().starts_with(path)), "{output:?}");
    }
    assert_eq!(run(&bench, "true"), "exit code 0, no output\n");
}

#[test]
fn what_programs_outside_obey_is_put_back_by_its_content_when_a_command_changes_it() {
    let files: [(&str, &[u8]); 6] = [
        (".gitignore", b".envrc\nhidden\n"),
        ("sub/.envrc", b"kept"),
        ("hidden/.vscode/tasks.json", b"kept"),
        ("hidden/.vscode/launch.json", b"kept"),
        (".bashrc", b"kept"),
        ("plain", b"1"),
    ];
    let bench = Bench::new(&files);
    std::os::unix::fs::symlink("plain", bench.root.join(".zshrc")).unwrap();
    for (command, path, kind) in [
        ("echo evil > sub/.envrc", "sub/.envrc", Changed),
        // The same length, and the time of the last write put back.
        (
            "touch -r sub/.envrc t; printf evil > sub/.envrc; touch -r t sub/.envrc; rm t",
            "sub/.envrc",
            Changed,
        ),
        ("rm -r sub", "sub/.envrc", Deleted),
        ("echo evil > hidden/.vscode/tasks.json", "hidden/.vscode", Changed),
        ("echo evil > hidden/.vscode/new.json", "hidden/.vscode", Changed),
        ("rm hidden/.vscode/launch.json", "hidden/.vscode", Changed),
        ("rm -r hidden", "hidden/.vscode", Deleted),
        ("chmod 777 .bashrc", ".bashrc", Changed),
        ("rm .bashrc; mkdir .bashrc", ".bashrc", Changed),
        ("ln -sf /etc/passwd .zshrc", ".zshrc", Changed),
    ] {
        let output = violation(&bench, command, &[(path, kind)]);
        assert!(output.violations[0].put_back, "{command}");
        for (path, content) in files.iter().skip(1) {
            assert_eq!(bench.file(path), *content, "{command}: {path}");
        }
        assert_eq!(std::fs::read_link(bench.root.join(".zshrc")).unwrap(), std::path::Path::new("plain"));
    }
    let changed = violation(
        &bench,
        "mv sub moved; echo evil > moved/.envrc",
        &[("sub/.envrc", Deleted), ("moved/.envrc", Made)],
    );
    assert_eq!((bench.file("sub/.envrc"), changed.violations[0].put_back), (b"kept".into(), true));
    // A file that moves with its directory stays unchanged.
    violation(&bench, "mv sub other", &[]);
    violation(&bench, "mv hidden sub", &[]);
    assert_eq!(
        (bench.file("other/.envrc"), bench.file("sub/.vscode/tasks.json")),
        (b"kept".into(), b"kept".into())
    );
}

#[test]
fn an_edit_that_was_allowed_stays_while_a_command_runs_beside_it() {
    let bench = Bench::new(&[(".envrc", b"old\n"), ("a", b"")]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let call = |tool: &str, input| {
            let (tool, context) = (bench.tools.get(tool).unwrap(), &bench.context);
            async move { tool.call(context, input).await.unwrap() }
        };
        call(
            "run_command",
            json!({"command": "mkfifo wait; cat wait; echo x > .bashrc", "background": true}),
        )
        .await;
        while !bench.root.join("wait").exists() {
            tokio::task::yield_now().await;
        }
        call("read_file", json!({"path": ".envrc"})).await;
        call("write_file", json!({"path": ".envrc", "content": "new\n"})).await;
        call("write_file", json!({"path": ".vscode/tasks.json", "content": "{}\n"})).await;
        // Not by a command: its own end would take away what this one makes.
        std::fs::write(bench.root.join("wait"), "go").unwrap();
        let ended = loop {
            let read = call("command_output", json!({"id": "b1", "wait_s": 60})).await;
            if bench::text(&read).starts_with("b1 ended") {
                break read;
            }
        };
        assert!(bench::text(&ended).contains("error: .bashrc was made and moved to "), "{ended:?}");
    });
    let violations = bench.context.background.take_violations();
    assert_eq!(violations.len(), 1, "{violations:?}");
    assert_eq!(violations[0].call, Some(bench.context.call.clone()));
    assert_eq!((bench.file(".envrc"), bench.file(".vscode/tasks.json")), (b"new\n".into(), b"{}\n".into()));
    assert!(!bench.root.join(".bashrc").exists());
}

#[test]
fn a_repository_without_a_git_directory_is_moved_away_wherever_it_is_made() {
    let bench = Bench::new(&[("src/a", b"1"), ("src/refs/x", b""), (".gitignore", b"build/\n")]);
    let bare = "mkdir -p $d/objects $d/refs; echo 'ref: refs/heads/m' > $d/HEAD; \
                printf '[core]\\nfsmonitor = evil\\nworktree = ..\\n' > $d/config";
    violation(&bench, &format!("d=vendor/lib; {bare}"), &[("vendor/lib", Made)]);
    violation(&bench, &format!("d=build/deep/x; {bare}"), &[("build/deep/x", Made)]);
    // Other files stay in place.
    violation(&bench, &format!("d=src; {bare}"), &[("src/HEAD", Made), ("src/objects", Made)]);
    violation(&bench, &format!("d=.; {bare}"), &[("HEAD", Made), ("objects", Made), ("refs", Made)]);
    assert_eq!(bench.file("src/a"), b"1");
}

#[test]
fn what_a_repository_without_a_git_directory_obeys_is_put_back() {
    let bench = Bench::new(&[
        ("data/a.git/HEAD", b"ref: refs/heads/m\n"),
        ("data/a.git/objects/x", b""),
        ("data/a.git/refs/x", b""),
        ("data/a.git/config", b"[core]\nbare = true\n"),
    ]);
    violation(&bench, "echo 1 > data/a.git/objects/new; echo 2 > data/a.git/HEAD", &[]);
    violation(&bench, "echo 'fsmonitor = evil' >> data/a.git/config", &[("data/a.git/config", Changed)]);
    violation(
        &bench,
        "mkdir -p data/a.git/hooks; echo x > data/a.git/hooks/post-receive",
        &[("data/a.git/hooks", Made)],
    );
    assert_eq!(bench.file("data/a.git/config"), b"[core]\nbare = true\n");
}

#[test]
fn repositories_that_builds_and_tests_make_in_ignored_directories_stay_until_they_run_something() {
    let bench = Bench::new(&[(".gitignore", b"build/\ntmp/\n"), ("a", b"")]);
    let clone = "mkdir -p $d/.git/objects $d/.git/refs $d/.git/hooks; echo 'ref: refs/heads/m' > $d/.git/HEAD; \
                 echo x > $d/.git/hooks/pre-commit.sample; printf '[core]\\n\\tbare = false\\n\
                 [remote \"origin\"]\\n\\turl = https://example.org/x\\n' > $d/.git/config";
    violation(&bench, &format!("d=build/_deps/x-src; {clone}"), &[]);
    violation(&bench, &format!("d=tmp/fixture; {clone}"), &[]);
    violation(
        &bench,
        "printf '[core]\\n\\tfsmonitor = evil\\n' >> build/_deps/x-src/.git/config",
        &[("build/_deps/x-src/.git", Made)],
    );
    violation(&bench, "echo x > tmp/fixture/.git/hooks/post-checkout", &[("tmp/fixture/.git", Made)]);
    violation(&bench, "mkdir -p tmp/y; echo 'gitdir: /tmp/evil' > tmp/y/.git", &[("tmp/y/.git", Made)]);
    // Outside of ignored directories none is made.
    violation(&bench, &format!("d=sub; {clone}"), &[("sub/.git", Made)]);
}

#[test]
fn unpacked_packages_bring_their_editor_settings_and_no_violation() {
    let bench = Bench::new(&[(".gitignore", b"/vendor/\n/dist/\n/venv\n"), ("package.json", b"{}")]);
    let unpack = "for p in a @scope/b c/node_modules/d; do d=node_modules/$p; \
                  mkdir -p $d/.vscode $d/.github/workflows $d/.idea $d/.husky $d/.cursor/rules $d/test/fixtures/.config; \
                  echo '{}' > $d/.vscode/settings.json; echo x > $d/.npmrc; echo x > $d/.eslintrc; echo x > $d/.yarnrc.yml; \
                  echo x > $d/.idea/x.iml; echo x > $d/.husky/pre-commit; echo x > $d/.editorconfig; done; \
                  mkdir -p vendor/acme/lib/.vscode dist/template/.vscode venv/lib/python3/site-packages/x/.idea; \
                  echo x > vendor/acme/lib/.vscode/x; echo x > dist/template/.npmrc";
    violation(&bench, unpack, &[]);
    // As when they are fetched again, or changed.
    violation(&bench, "echo y > node_modules/a/.npmrc; rm -r node_modules/a/.vscode", &[]);
    violation(&bench, &format!("rm -rf node_modules; {unpack}"), &[]);
    // Files that a shell or git obeys on entering a directory are violations in there too.
    violation(&bench, "echo evil > node_modules/a/.envrc", &[("node_modules/a/.envrc", Made)]);
    let repository =
        "mkdir -p node_modules/a/.git; echo '[core] fsmonitor = evil' > node_modules/a/.git/config";
    violation(&bench, repository, &[("node_modules/a/.git", Made)]);
    // A directory that no rule ignores is part of the project.
    violation(&bench, "mkdir -p target/.vscode", &[("target/.vscode", Made)]);
}

#[test]
fn decoys_take_no_protection_off() {
    let bench = Bench::new(&[("sub/.envrc", b"kept"), (".gitignore", b".envrc\n.BASH*\n")]);
    let decoys = "i=0; while [ $i -lt 300 ]; do mkdir -p d$i; echo x > d$i/.bashrc; i=$((i+1)); done";
    let output = bench.call("run_command", json!({ "command": decoys })).unwrap();
    assert!(
        bench::text(&output).contains("100 more were moved away or put back"),
        "{}",
        bench::text(&output)
    );
    assert_eq!(output.violations.len(), 200);
    assert!((0..300).all(|i| !bench.root.join(format!("d{i}/.bashrc")).exists()));
    violation(&bench, "echo evil > sub/.envrc", &[("sub/.envrc", Changed)]);
    assert_eq!(bench.file("sub/.envrc"), b"kept");
}

#[test]
fn a_command_does_not_run_where_there_is_more_to_protect_than_can_be() {
    let bench = Bench::new(&[("a", b"")]);
    for number in 0..410 {
        let dir = bench.root.join(format!("d/{number}"));
        std::fs::create_dir_all(&dir).unwrap();
        for name in [
            ".envrc", ".bashrc", ".zshrc", ".profile", ".exrc", ".vimrc", ".gdbinit", ".npmrc", ".irbrc",
            ".ghci",
        ] {
            std::fs::write(dir.join(name), "").unwrap();
        }
    }
    let said = run(&bench, "touch made");
    assert!(said.contains("too many to protect them from a command"), "{said}");
    assert!(!bench.root.join("made").exists());
    assert!(run(&bench, "cat a").starts_with("exit code 0"));
}

#[test]
fn a_command_that_makes_more_files_than_are_looked_at_leaves_nothing_that_is_obeyed() {
    let bench = Bench::with_limits(&[("a", b"")], 50);
    let command = "mkdir .git; echo '[core] fsmonitor = evil' > .git/config; echo x > .envrc; i=0; \
                   while [ $i -lt 100 ]; do mkdir -p f$i; echo x > f$i/f; i=$((i+1)); done";
    let output = bench.call("run_command", json!({ "command": command })).unwrap();
    let said = bench::text(&output);
    assert!(said.contains("the repository .git was made and moved to "), "{said}");
    assert!(said.contains(".envrc was made and moved to "), "{said}");
    assert!(
        said.contains("could not be recorded") && said.contains("directories or names too many"),
        "{said}"
    );
    assert!(!bench.root.join(".git").exists() && !bench.root.join(".envrc").exists());
}

#[test]
fn secrets_of_a_file_of_settings_are_shown_by_no_tool() {
    let settings = b"DB_HOST=db\nDB_PASSWORD=letmein\nSMTP_PASSWORD=Tr0ub4dor\n";
    let bench = Bench::new(&[
        (".env", settings),
        ("sub/.env.local", settings),
        (".env.example", settings),
        ("a", b"1"),
    ]);
    for command in [
        "cat .env",
        "cat ./.env",
        "cd sub && cat .env.local",
        "python3 -c 'print(open(\"sub/.env.local\").read())'",
    ] {
        let said = run(&bench, command);
        assert!(
            said.contains("DB_HOST=db") && !said.contains("letmein") && !said.contains("Tr0ub4dor"),
            "{said}"
        );
    }
    assert_eq!(*bench.live.lock().unwrap(), "", "no line is shown before it is whole");
    for path in [".env", "sub/.env.local"] {
        let said = bench.say("read_file", json!({ "path": path }));
        assert!(
            said.contains("DB_HOST=db") && said.contains("DB_PASSWORD=«") && !said.contains("letmein"),
            "{said}"
        );
        let said = bench.say("search_text", json!({"pattern": "PASSWORD|letm", "path": path}));
        assert!(said.contains("DB_PASSWORD=«") && !said.contains("letmein"), "{said}");
    }
    assert!(bench.say("read_file", json!({"path": ".env.example"})).contains("letmein"));
}

#[test]
fn what_no_checkpoint_covers_is_seen_however_it_is_named() {
    let ignored: &[(&str, &[u8])] = &[
        (".gitignore", b"*.sqlite\n/out/\n"),
        ("a.sqlite", b"1"),
        ("out/b", b"2"),
        ("sub/c.sqlite", b"3"),
        ("t.txt", b"4"),
    ];
    let bench = Bench::new(ignored);
    let git = std::process::Command::new("git").args(["init", "-q"]).current_dir(&bench.root).status();
    assert!(git.is_ok_and(|status| status.success()));
    let tool = bench.tools.get("run_command").unwrap();
    let tried = |command: &str| tool.needs_preview(&bench.context.workspace, &json!({ "command": command }));
    for command in [
        "python3 -c 'open(\"a.sqlite\", \"w\")'",
        "sh -c \"python3 -c 'open(\\\"a.sqlite\\\", 1)'\"",
        "perl -e 'unlink q[a.sqlite]'",
        "node x.js --db:a.sqlite",
        "make DB=${X:-a.sqlite}",
        "python3 x.py [a.sqlite]",
        "ruby -e \"File.write(%w`a.sqlite`)\"",
        "echo x > a.sq''lite",
        "cp t.txt a.sqlite",
        "sed -i s/1/2/ a.sqlite",
        "mv t.txt out/b",
        "touch out",
        "cd sub && cp x c.sqlite",
        "cd sub && node x.js c.sqlite",
        "sed -i s/1/2/ ./*.sqlite",
        "patch -p1 < t.txt",
        "make test && touch out",
    ] {
        assert!(tried(command), "{command}");
    }
    for command in [
        "cat a.sqlite",
        "cp t.txt u.txt",
        "echo x > t.txt",
        "mkdir -p src",
        "git add -A",
        "python3 x.py t.txt",
        // A build makes again what lies in its directory.
        "cmake --build out",
        "make -C out test",
        "pytest tests/*.py",
    ] {
        assert!(!tried(command), "{command}");
    }
}
