//! Every program that a command runs is a part of it, wrappers and what they wrap.

use journeyman_policy::{CommandPart, analyse_command};

/// A part in one line: `?` before what isn't known, `> file` for what it writes, `@host` for hosts.
fn line(part: &CommandPart) -> String {
    let words =
        part.words.iter().map(|word| if word.known { word.text.clone() } else { format!("?{}", word.text) });
    let writes = part.writes.iter().map(|word| format!("> {}", word.text));
    let hosts = part.hosts.iter().map(|host| format!("@{host}"));
    words.chain(writes).chain(hosts).collect::<Vec<_>>().join(" ")
}

#[test]
fn complete_commands_have_all_their_parts() {
    let cases: &[(&str, &[&str])] = &[
        ("ls -la | wc -l", &["ls -la", "wc -l"]),
        ("sudo -n env rm x | tee y", &["sudo -n env rm x", "env rm x", "rm x", "tee y"]),
        ("timeout 5 nice -n 3 make all", &["timeout 5 nice -n 3 make all", "nice -n 3 make all", "make all"]),
        ("bash -c 'cd a && make'", &["bash -c cd a && make", "cd a", "make"]),
        (
            "find . -name x -exec grep y {} + -exec rm {} \\;",
            &["find . -name x -exec grep y {} + -exec rm {} ;", "grep y ?{}", "rm ?{}"],
        ),
        ("ls | xargs -n 1 rm -f", &["ls", "xargs -n 1 rm -f", "rm -f ?…"]),
        ("echo $(git rev-parse HEAD) > out", &["git rev-parse HEAD", "echo ?$(git rev-parse HEAD) > out"]),
        ("npx -y prettier --check .", &["npx -y prettier --check .", "prettier --check ."]),
        ("curl -s https://a.example/x -o y", &["curl -s https://a.example/x -o y @a.example"]),
        ("ssh me@b.example 'make; ls'", &["ssh me@b.example make; ls @b.example", "make", "ls"]),
        ("sh <<'E'\nrm x\nE", &["sh", "rm x"]),
        ("echo 'rm x' | bash", &["echo rm x", "bash", "rm x"]),
        ("for f in a b; do touch $f; done 2> log", &[" > log", "touch ?$f"]),
        ("tar xf x --to-command='sh y'", &["tar xf x --to-command=sh y", "sh y"]),
        ("docker run --rm -v a:b img make all", &["docker run --rm -v a:b img make all", "make all"]),
        ("kubectl exec p -- ls /x", &["kubectl exec p -- ls /x", "ls /x"]),
        ("git submodule foreach 'git pull'", &["git submodule foreach git pull", "git pull"]),
        ("watch -n 1 ls", &["watch -n 1 ls", "ls"]),
        ("if test -f x; then make; fi", &["test -f x", "make"]),
        ("RUST_BACKTRACE=1 cargo test", &["cargo test"]),
        ("strace -f -o x make", &["strace -f -o x make", "make"]),
        ("env -S 'make all' x", &["env -S make all x", "make all x"]),
    ];
    for (command, expected) in cases {
        let analysis = analyse_command(command, &[]);
        let lines: Vec<String> = analysis.parts.iter().map(line).collect();
        let expected: Vec<&str> = expected.iter().map(|line| line.trim_start()).collect();
        assert_eq!(lines, expected, "{command}");
        assert!(analysis.complete, "{command}");
    }
}

#[test]
fn what_is_not_understood_is_never_complete_and_shows_what_it_may_run() {
    // A program among them that a rule may want to deny.
    let cases = [
        ("PATH=. cargo test", "cargo"),
        ("$x rm y", "rm"),
        ("eval \"rm $x\"", "rm"),
        ("[[ a && rm x ]]", "rm"),
        ("r\\\nm x; touch y", "touch"),
        ("f() { rm x; }; f", "rm"),
        ("alias ls='rm x'; ls", "rm"),
        ("{rm,x}", "rm"),
        ("cat x | sh", "sh"),
        ("sh -c \"$x\"; rm y", "rm"),
        ("((rm x))", "rm"),
        ("PAGER='rm x' git log", "rm"),
        ("env LD_PRELOAD=x rm y", "rm"),
        ("ls $'rm' x", "ls"),
        ("LD_PRELOAD=x ls", "ls"),
        ("curl x.example | sh", "curl"),
        ("export PATH=.; rm x", "rm"),
        ("a[$(rm x)]=1", "rm"),
        ("echo ${x/$(rm y)/}", "rm"),
        ("make SHELL='rm x'", "rm"),
        ("git -c core.pager='rm x' log", "rm"),
        ("cat <<A <<B\nA\nB\nrm x", "rm"),
    ];
    let mut missed = Vec::new();
    for (command, program) in cases {
        let analysis = analyse_command(command, &[]);
        assert!(!analysis.complete, "{command}");
        let found =
            analysis.parts.iter().any(|part| part.words.first().is_some_and(|word| word.text == program));
        if !found {
            missed.push((command, analysis.parts.iter().map(line).collect::<Vec<_>>()));
        }
    }
    assert_eq!(missed, []);
}
