//! What a CLI may not do: everything is tried from inside a run.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::MetadataExt as _;

use crate::fake::{Bench, Setup, sandbox, texts};

/// What a command inside wrote.
fn output(bench: &Bench, command: &str) -> String {
    let output = bench.call(&format!("run {command}")).unwrap();
    assert!(!output.is_error, "{:?}", output.parts);
    texts(&output)[0].to_owned()
}

#[test]
fn it_sees_its_own_login_and_key_and_nobody_elses() {
    let Some(sandbox) = sandbox() else { return };
    let bench = Bench::new(&sandbox, &[("a", "1\n")]);
    let home = bench.home.display().to_string();
    assert_eq!(output(&bench, "cat $HOME/.fake/auth $HOME/.fake/settings"), "the loginupdates = off");
    assert_eq!(output(&bench, "echo $FAKE_API_KEY $FAKE_NO_UPDATE $OTHER_API_KEY."), "fake-key-1 1 .");
    for path in [".ssh/id_ed25519", ".other/auth"] {
        let told = output(&bench, &format!("cat {home}/{path} $HOME/{path} 2>&1; true"));
        assert!(!told.contains("secret") && !told.contains("other's"), "{told}");
    }
    assert_eq!(output(&bench, &format!("ls -A {home}")), ".fake\nproject", "nothing else of the home");
    // No process outside can be asked for its variables either.
    let told = output(&bench, "cat /proc/*/environ | tr '\\0' '\\n' | grep -c OTHER_API_KEY");
    assert_eq!(told, "0");
}

#[test]
fn it_writes_into_the_project_and_its_own_home_alone() {
    let Some(sandbox) = sandbox() else { return };
    let bench = Bench::new(&sandbox, &[("a", "1\n")]);
    let home = bench.home.clone();
    let auth = home.join(".fake/auth");
    let outside = bench.home.parent().unwrap().to_owned();
    for target in
        [auth.clone(), home.join("planted"), outside.join("planted"), outside.join("lib/fake/fake-cli")]
    {
        output(&bench, &format!("echo planted > {} 2>&1; true", target.display()));
    }
    output(&bench, "echo planted > $HOME/.fake/auth 2>&1; true");
    output(&bench, "rm -f $HOME/.fake/auth; echo planted > $HOME/.fake/auth; true");
    assert_eq!(std::fs::read_to_string(&auth).unwrap(), "the login");
    assert!(!home.join("planted").exists() && !outside.join("planted").exists());
    // What its owner runs later is not its to change.
    let found = bench.call("run mkdir -p n/.git/hooks; echo evil > n/.git/config").unwrap();
    assert!(!found.violations.is_empty(), "{:?}", found.parts);
    assert!(!bench.root.join("n/.git").exists());
}

/// Answers everybody with `word`.
fn server(word: &'static str) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let read = stream.read(&mut request);
            if read.is_ok() {
                let length = word.len();
                write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{word}"
                )
                .ok();
            }
        }
    });
    port
}

#[test]
fn it_reaches_the_users_own_address_and_no_other() {
    let Some(sandbox) = sandbox() else { return };
    let (model, other) = (server("model"), server("other"));
    let address = format!("http://127.0.0.1:{model}/v1");
    let variables = vec![("FAKE_BASE_URL", address.clone())];
    let bench = Bench::with(&sandbox, &[], Setup { variables, ..Setup::default() });
    let ask = |url: &str| {
        let code = format!(
            "import urllib.request as r; o = r.build_opener(r.ProxyHandler({{}})); \
             print(o.open('{url}', timeout=10).read().decode())"
        );
        output(&bench, &format!("python3 -c \"{code}\" 2>&1 | tail -1"))
    };
    assert_eq!(output(&bench, "echo $FAKE_SEES"), address);
    assert_eq!(ask(&address), "model");
    for url in [format!("http://127.0.0.1:{other}/"), format!("http://localhost:{other}/")] {
        let told = ask(&url);
        assert!(told.contains("refused"), "{told}");
    }
    // Not even its provider's own host, in whose place the address stands.
    let told = output(
        &bench,
        "python3 -c \"import urllib.request as r; r.urlopen('https://api.fake.test')\" 2>&1 | tail -1",
    );
    assert!(told.contains("403"), "{told}");
}

#[test]
fn its_home_is_no_way_out() {
    let Some(sandbox) = sandbox() else { return };
    let bench = Bench::new(&sandbox, &[]);
    let first =
        bench.call("run rm -rf $HOME/.fake; ln -s /etc $HOME/.fake; ln -s / $HOME/sessions/out").unwrap();
    assert!(!first.is_error);
    // A later run writes nothing through links that an earlier one made.
    let inode = std::fs::metadata("/etc").unwrap().ino();
    let second = bench.call("say again").unwrap();
    assert!(!second.is_error, "{:?}", second.parts);
    assert!(!std::path::Path::new("/etc/settings").exists());
    assert_eq!(std::fs::metadata("/etc").unwrap().ino(), inode);
}
