//! `jm exec`: any command in the sandbox, with its own output and exit code, and what was enforced
//! said beside it.

use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{House, Ran, is_running, needs, needs_sandbox, wait_until};

/// `jm exec` with these words.
fn exec(house: &House, words: &[&str]) -> Ran {
    house.jm(&[&["exec"], words].concat()).run()
}

/// The same for a line of shell.
fn shell(house: &House, flags: &[&str], line: &str) -> Ran {
    exec(house, &[flags, &["--", "sh", "-c", line]].concat())
}

fn object(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|error| panic!("{error}\n{}\n{}", ran.stdout, ran.stderr))
}

#[test]
fn streams_and_exit_code_are_the_commands_own() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let ran = shell(&house, &[], "echo out; echo err >&2; cat greet.sh | wc -l; exit 7").expect(7);
    assert_eq!(ran.stdout, "out\n4\n");
    assert!(ran.stderr.contains("err\n"), "{}", ran.stderr);
    ran.says(&["sandbox: namespaces", "network: off", "exit 7"]);
    let quiet = shell(&house, &["-q"], "echo out; echo err >&2").expect(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("out\n", "err\n"));
    // Nothing is lost, however much it is, and nothing is made of it.
    let much = shell(&house, &["-q"], "head -c 30000000 /dev/zero").expect(0);
    assert_eq!(much.stdout.len(), 30_000_000);
    assert!(much.stdout.bytes().all(|byte| byte == 0));
}

#[test]
fn the_exit_code_stays_the_commands_own_if_nobody_reads_the_report() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    for code in ["0", "7"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = house.jm(&["exec", "--", "sh", "-c", &format!("exit {code}")]).command();
        let status = command.stderr(writer).status().unwrap();
        assert_eq!(status.code().map(|code| code.to_string()).as_deref(), Some(code));
    }
}

#[test]
fn what_became_of_it_has_a_code_of_its_own() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    exec(&house, &["--", "no-such-program"]).expect(127).says(&["no-such-program", "didn't run"]);
    exec(&house, &["--", "./greet.sh"]).expect(126).says(&["Permission denied"]);
    shell(&house, &["--timeout", "300ms"], "sleep 60").expect(124).says(&["time limit"]);
    shell(&house, &[], "kill -TERM $$").expect(143).says(&["signal 15"]);
    for (words, said) in [
        (&["--net", "npmm", "--", "true"][..], "`npmm`"),
        (&["--net", "127.0.0.1", "--", "true"], "addresses aren't let through"),
        (&["--net", "*.com", "--", "true"], "top-level domain"),
        (&["--net", "on,npm", "--", "true"], "not both"),
        (&["--rw", "nowhere", "--", "true"], "nowhere"),
        (&["--timeout", "soon", "--", "true"], "soon"),
        (&["--memory", "much", "--", "true"], "much"),
        (&["--env", "NOT_SET_HERE", "--", "true"], "NOT_SET_HERE"),
        (&["true"], "--"),
        (&[], "CMD"),
    ] {
        exec(&house, words).expect(2).says(&[said]);
    }
    exec(&house, &["--memory", "3M", "--", "true"]).expect(2).says(&["--memory", "at least 4M"]);
    for (words, said) in
        [(&["-C", "/srv", "--", "true"][..], "-C"), (&["--rw", "/etc", "--", "true"], "--rw")]
    {
        exec(&house, words).expect(2).says(&[said, "refused"]);
    }
    let home = house.at("home").display().to_string();
    for root in ["/", &home] {
        exec(&house, &["-C", root, "--", "true"]).expect(2).says(&["-C", "not a project"]);
    }
}

#[test]
fn it_writes_to_the_project_and_nowhere_else() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_repository();
    let outside = house.at("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("file"), "theirs").unwrap();
    let (path, home) = (outside.display(), house.at("home").display().to_string());
    let line = format!(
        "echo new > new; echo x 2>/dev/null > .git/hooks/post-checkout || echo hook; cat {path}/file 2>/dev/null || \
         echo unseen; echo x 2>/dev/null > {path}/file || echo kept; ls -A {home}"
    );
    assert_eq!(shell(&house, &[], &line).expect(0).stdout, "hook\nunseen\nkept\n");
    assert_eq!(house.read("new"), "new\n");
    let (flag, line) =
        (outside.display().to_string(), format!("cat {path}/file; echo ours 2>/dev/null > {path}/file"));
    assert_eq!(shell(&house, &["--ro", &flag], &line).expect(2).stdout, "theirs");
    assert_eq!(shell(&house, &["--rw", &flag], &line).expect(0).stdout, "theirs");
    assert_eq!(std::fs::read_to_string(outside.join("file")).unwrap(), "ours\n");
    shell(&house, &["--read-only"], "echo x > newer").expect(2).says(&["nothing in the project"]);
    assert!(!house.project().join("newer").exists());
}

#[test]
fn an_overlay_tells_what_would_have_been_changed_and_changes_nothing() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_repository();
    let before = house.tree();
    let line = "rm greet.sh; echo more >> test.sh; mkdir -p a/b; echo new > a/b/c; cat a/b/c";
    let ran = shell(&house, &["--overlay"], line).expect(0);
    assert_eq!(ran.stdout, "new\n");
    ran.says(&[
        "a throw-away copy",
        "it would delete greet.sh",
        "it would change test.sh",
        "it would add a/b/c",
    ]);
    let report = object(&shell(&house, &["--overlay", "--json"], line).expect(0));
    let expected = json!([
        { "path": "a/b/c", "kind": "added" },
        { "path": "greet.sh", "kind": "deleted" },
        { "path": "test.sh", "kind": "modified" },
    ]);
    assert_eq!(report["changes"], expected);
    shell(&house, &["--overlay"], "true").expect(0).says(&["changed nothing"]);
    assert_eq!(house.tree(), before);
    // Neither a copy nor a checkpoint is left.
    assert_eq!(std::fs::read_dir(house.state().join("exec")).unwrap().count(), 0);
    assert_eq!(house.jm(&["checkpoints", "--json"]).run().expect(0).stdout, "");
}

#[test]
fn hosts_are_reached_by_name_or_not_at_all() {
    if !needs(&["/usr/bin/python3"]) {
        return;
    }
    let house = House::new();
    let inside = |flags: &[&str]| {
        shell(&house, &[flags, &["-q"]].concat(), "readlink /proc/self/ns/net").expect(0).stdout
    };
    let here = std::fs::read_link("/proc/self/ns/net").unwrap().display().to_string();
    assert_ne!(inside(&[]).trim_end(), here);
    assert_ne!(inside(&["--net", "crates"]).trim_end(), here);
    assert_eq!(inside(&["--net", "on"]).trim_end(), here);
    // A host of the network of names is refused before anything is resolved, so nothing leaves this
    // machine.
    let ask = "import socket\ns = socket.create_connection(('127.0.0.1', 3128))\n\
               s.sendall(b'CONNECT other.test:443 HTTP/1.1\\r\\n\\r\\n')\nprint(s.recv(12).decode())";
    let words = ["--net", "listed.test,PyPI", "--json", "--", "/usr/bin/python3", "-c", ask];
    let report = object(&exec(&house, &words).expect(0));
    assert_eq!(report["stdout"]["text"], "HTTP/1.1 403\n");
    assert_eq!(report["network"]["mode"], "filtered");
    assert_eq!(report["network"]["hosts"], json!(["files.pythonhosted.org", "listed.test", "pypi.org"]));
    assert_eq!(report["connections"][0]["host"], "other.test");
    assert_eq!(report["denials"][0]["certain"], true);
    let said = exec(&house, &["--net", "listed.test", "--", "/usr/bin/python3", "-c", ask]).expect(0);
    said.says(&["network: listed.test", "denied by the sandbox: a connection to other.test:443"]);
    let off = exec(&house, &["--", "/usr/bin/python3", "-c", ask]).expect(1);
    off.says(&["ConnectionRefusedError"]);
}

#[test]
fn the_report_says_what_was_enforced() {
    if !needs_sandbox() {
        return;
    }
    let house = House::new();
    let ran = shell(&house, &["--json"], "echo one; printf '\\033[31mtwo' >&2; exit 5").expect(5);
    let report = object(&ran);
    assert_eq!(
        (&report["exit_code"], &report["outcome"], &report["code"]),
        (&json!(5), &json!("exited"), &json!(5))
    );
    assert_eq!(report["stdout"], json!({ "text": "one\n", "bytes": 4, "left_out": 0 }));
    assert_eq!(report["stderr"]["text"], "two");
    assert_eq!(report["enforcement"]["tier"], "namespaces");
    for need in ["writes_confined", "reads_confined", "network_off", "network_filtered", "privileges_dropped"]
    {
        assert_eq!(report["enforcement"][need], true, "{need}");
    }
    assert_eq!(report["changes"], Value::Null);
    let failed = object(&exec(&house, &["--json", "--", "no-such-program"]).expect(127));
    assert_eq!(failed["outcome"], "setup_failed");
    assert!(failed["error"].as_str().unwrap().contains("no-such-program"));
}

#[test]
fn it_gets_what_it_is_given() {
    if !needs_sandbox() {
        return;
    }
    let house = House::new();
    let line = "echo ${API_TOKEN-none} ${OWN-none} ${PLAIN-none}; cat";
    let run = |flags: &[&str]| {
        let words = [&["exec", "-q"], flags, &["--", "sh", "-c", line]].concat();
        house.jm(&words).env("API_TOKEN", "secret").env("OWN", "mine").input("typed").run().expect(0).stdout
    };
    assert_eq!(run(&[]), "none none none\n");
    assert_eq!(run(&["--env", "OWN", "--env", "PLAIN=a=b", "--stdin"]), "none mine a=b\ntyped");
    assert_eq!(run(&["--env", "API_TOKEN"]), "secret none none\n");
    // It starts where its caller is.
    std::fs::create_dir(house.project().join("sub")).unwrap();
    let root = house.project().display().to_string();
    let ran = house.jm(&["exec", "-C", &root, "--", "pwd"]).dir(house.project().join("sub")).run().expect(0);
    assert_eq!(
        ran.stdout.trim_end(),
        house.project().canonicalize().unwrap().join("sub").display().to_string()
    );
}

#[test]
fn a_terminal_is_its_own() {
    if !needs_sandbox() {
        return;
    }
    let house = House::new();
    let line = "for fd in 0 1 2; do test -t $fd && echo $fd; done; tty; printf 'a\\033[31mb\\n'; exit 3";
    let ran = shell(&house, &["-q", "--tty"], line).expect(3);
    // Lines end as a terminal has them, and a pipe gets control sequences as they came.
    assert_eq!(ran.stdout, "0\r\n1\r\n2\r\n/dev/pts/0\r\na\u{1b}[31mb\r\n");
    let plain = shell(&house, &["-q"], "test -t 0 || test -t 1 || echo none").expect(0);
    assert_eq!(plain.stdout, "none\n");
    // What is typed is what standard input held.
    let typed =
        house.jm(&["exec", "-q", "--tty", "--stdin", "--", "sh", "-c", "stty -echo; read x; echo got $x"]);
    assert!(typed.input("word\n").run().expect(0).stdout.contains("got word\r\n"));
}

#[test]
fn memory_is_what_was_said() {
    if !needs_sandbox() || !needs(&["python3"]) {
        return;
    }
    let house = House::new();
    // The system's own where there is one: another one may be a script of a home that this house
    // doesn't have.
    let python =
        if std::path::Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" };
    // Written to, for what nobody wrote to isn't there.
    let holds = |megabytes: u32, flags: &[&str]| {
        let program = format!("x = b'x' * ({megabytes} << 20); print(len(x) >> 20)");
        exec(&house, &[flags, &["--", python, "-c", &program]].concat())
    };
    let killed = holds(400, &["--memory", "128M"]).expect(123);
    killed.says(&["holding more memory than it was given", "denied by the sandbox: more memory"]);
    assert_eq!(killed.stdout, "");
    assert_eq!(holds(400, &["--memory", "2G"]).expect(0).stdout, "400\n");
    let report = object(&holds(400, &["--json", "--memory", "128M"]).expect(123));
    assert_eq!(report["outcome"], json!("memory_limit"), "{report}");
}

#[test]
fn a_repository_that_it_makes_is_moved_away_and_told() {
    if !needs(&["git"]) {
        return;
    }
    let house = House::with_repository();
    let ran = exec(&house, &["--", "git", "init", "-q", "sub"]).expect(0);
    ran.says(&["the repository sub/.git was made and moved to "]);
    assert!(!house.project().join("sub/.git").exists());
    let report = object(&exec(&house, &["--json", "--", "git", "init", "-q", "sub"]).expect(0));
    let violation = &report["violations"][0];
    assert_eq!((&violation["path"], &violation["kind"]), (&json!("sub/.git"), &json!("made")), "{report}");
    let moved = std::path::PathBuf::from(violation["moved_to"].as_str().unwrap());
    assert!(moved.join("HEAD").is_file() && !moved.starts_with(house.project()), "{report}");
}

#[test]
fn guarded_files_at_any_depth_stay_and_new_ones_are_moved_away() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_repository();
    let deep = house.project().join("sub/deep");
    std::fs::create_dir_all(deep.join(".VSCode")).unwrap();
    std::fs::write(deep.join(".envrc"), "kept").unwrap();
    let hidden = house.project().join("hidden/deep");
    std::fs::create_dir_all(&hidden).unwrap();
    std::fs::write(hidden.join(".envrc"), "kept").unwrap();
    std::fs::write(house.project().join(".gitignore"), "hidden\n").unwrap();
    let line = "echo x > hidden/deep/.envrc; echo x > hidden/.npmrc; cd sub/deep; echo x > .envrc; rm -f .envrc; echo x > .VSCode/tasks.json; mkdir -p ../pkg/.zed; \
                mkdir -p ../bare/objects ../bare/refs; echo 'ref: x' > ../bare/HEAD";
    let ran = shell(&house, &[], line);
    ran.says(&[
        "the repository sub/bare was made and moved to ",
        "sub/pkg/.zed was made and moved to ",
        "hidden/.npmrc was made and moved to ",
    ]);
    for gone in ["sub/bare", "sub/pkg/.zed", "hidden/.npmrc"] {
        assert!(!house.project().join(gone).exists(), "{gone}");
    }
    assert_eq!(std::fs::read_to_string(hidden.join(".envrc")).unwrap(), "kept");
    assert_eq!(std::fs::read_to_string(deep.join(".envrc")).unwrap(), "kept");
    assert!(!deep.join(".VSCode/tasks.json").exists());
    assert!(!ran.stderr.contains(".envrc was made"), "{}", ran.stderr);
}

#[test]
fn files_with_names_outside_of_the_project_are_not_written() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let store = house.project().with_file_name("store");
    std::fs::write(&store, "old").unwrap();
    for place in ["node_modules/x", ".venv/lib/python3/site-packages/x"] {
        std::fs::create_dir_all(house.project().join(place)).unwrap();
        std::fs::hard_link(&store, house.project().join(place).join("file")).unwrap();
    }
    let line = "for f in node_modules/x/file .venv/lib/python3/site-packages/x/file; do echo new > $f; done; echo a > b; false";
    let ran = shell(&house, &[], line).expect(1);
    ran.says(&["its files are hard links to files outside of the project"]);
    assert_eq!(std::fs::read_to_string(&store).unwrap(), "old");
    assert_eq!(std::fs::read_to_string(house.project().join("b")).unwrap(), "a\n");
}

#[test]
fn ctrl_c_ends_the_command() {
    if !needs_sandbox() {
        return;
    }
    let house = House::new();
    let running = house.jm(&["exec", "--", "sh", "-c", "echo begun; sleep 61753"]).start();
    running.line_with("begun");
    running.signal(Signal::INT);
    running.wait().expect(130).says(&["interrupted"]);
    wait_until("the command's end", || !is_running("sleep 61753"));
}

#[test]
fn a_reader_who_goes_away_ends_the_command() {
    if !needs_sandbox() {
        return;
    }
    let house = House::new();
    let mut command = house.jm(&["exec", "-q", "--", "yes", "61754"]).command();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = Command::new("head")
        .args(["-n", "1"])
        .stdin(child.stdout.take().unwrap())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    assert!(first.wait().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(141));
    wait_until("the command's end", || !is_running("yes 61754"));
}

#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    if !needs_sandbox() {
        return;
    }
    let house = House::new();
    let mut command = house.jm(&["exec", "--", "echo", "61755"]).command();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = command.stdin(Stdio::null()).stdout(full).output().unwrap();
    let stderr = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(125), "{stderr}");
    assert!(stderr.contains("its output could not be written: No space left"), "{stderr}");
}
