//! What projects are built and tested with works in the sandbox, without a network. (`git commit`
//! does not, by design: commits are made outside, with the person's consent;
//! `crates/git/tests/repository/commits.rs` shows those.)

use crate::common;
use journeyman_testkit::has_program_or_skip;

use std::path::Path;

use crate::common::{host_toolchains, run};
use journeyman_sandbox::{CompletedCommand, Outcome, Request};

/// One way to build.
struct Build {
    /// What must be installed.
    tools: &'static [&'static str],
    files: &'static [(&'static str, &'static str)],
    command: &'static str,
    /// What is among the output.
    says: &'static str,
}

fn command(root: &Path, command: &str) -> CompletedCommand {
    let home = std::env::var_os("HOME").unwrap_or_else(|| "/home/someone".into());
    let mut request = Request::for_shell_command(root, command).with_toolchains(&host_toolchains(root));
    request.env.insert("HOME".into(), home);
    run(request)
}

fn build(build: &Build) {
    if !build.tools.iter().all(|tool| has_program_or_skip(tool)) {
        return;
    }
    let project = tempfile::Builder::new().prefix("jm-build-").tempdir().unwrap();
    for (path, text) in build.files {
        let path = project.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let completed = command(project.path(), build.command);
    let text = &completed.combined.text;
    assert_eq!(completed.outcome, Outcome::Exited(0), "{}: {text}", build.command);
    assert!(text.contains(build.says), "{}: {text}", build.command);
}

#[test]
fn cargo_with_a_build_script_units_and_an_integration_test() {
    build(&Build {
        tools: &["cargo"],
        files: &[
            ("Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
            ("build.rs", "fn main() { println!(\"cargo:rustc-env=MADE=7\"); }\n"),
            (
                "src/lib.rs",
                "pub fn made() -> u8 { env!(\"MADE\").parse().unwrap() }\n\n#[test]\nfn is_made() { assert_eq!(made(), 7); }\n",
            ),
            ("src/main.rs", "fn main() { println!(\"made {}\", tiny::made()); }\n"),
            ("tests/whole.rs", "#[test]\nfn whole() { assert_eq!(tiny::made(), 7); }\n"),
        ],
        command: "cargo build && cargo test && cargo run -q",
        says: "made 7",
    });
}

#[test]
fn npm_with_a_local_dependency() {
    build(&Build {
        tools: &["npm", "node"],
        files: &[
            (
                "package.json",
                r#"{"name": "tiny", "version": "1.0.0", "scripts": {"test": "node --test"}, "dependencies": {"near": "file:./near"}}"#,
            ),
            ("near/package.json", r#"{"name": "near", "version": "1.0.0", "main": "index.js"}"#),
            ("near/index.js", "module.exports = 42;\n"),
            (
                "near.test.js",
                "require('node:test')('near', () => require('node:assert').strictEqual(require('near'), 42));\n",
            ),
        ],
        command: "npm install --offline --no-audit --no-fund && npm test",
        says: "pass 1",
    });
}

#[test]
fn python_in_an_environment_of_its_own() {
    build(&Build {
        tools: &["python3"],
        files: &[(
            "test_tiny.py",
            "import sys, unittest\n\nclass Tiny(unittest.TestCase):\n    def test_place(self):\n        self.assertNotEqual(sys.prefix, sys.base_prefix)\n",
        )],
        command: "python3 -m venv env && env/bin/python -m pip --version && env/bin/python -m unittest -v",
        says: "Ran 1 test",
    });
}

#[test]
fn pytest() {
    build(&Build {
        tools: &["/usr/bin/pytest"],
        files: &[("test_tiny.py", "def test_tiny(tmp_path):\n    (tmp_path / 'a').write_text('b')\n")],
        command: "/usr/bin/pytest -q",
        says: "1 passed",
    });
}

#[test]
fn make_with_a_c_compiler_in_parallel() {
    build(&Build {
        tools: &["make", "gcc"],
        files: &[
            (
                "Makefile",
                "tiny: a.o b.o\n\tgcc -o $@ $^\n%.o: %.c\n\tgcc -O1 -c -o $@ $<\ncheck: tiny\n\t./tiny\n",
            ),
            (
                "a.c",
                "int other(void);\n#include <stdio.h>\nint main(void) { printf(\"made %d\\n\", other()); return 0; }\n",
            ),
            ("b.c", "int other(void) { return 7; }\n"),
        ],
        command: "make -j2 check",
        says: "made 7",
    });
}

#[test]
fn java() {
    build(&Build {
        tools: &["javac", "java"],
        files: &[(
            "Tiny.java",
            "public class Tiny { public static void main(String[] a) { System.out.println(\"made \" + java.util.stream.IntStream.range(0, 5).parallel().sum()); } }\n",
        )],
        command: "javac -d out Tiny.java && java -cp out Tiny",
        says: "made 10",
    });
}

#[test]
fn go() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|directory| directory.join("go").is_file()) {
        // Three hundred megabytes that only this test would need.
        println!("go isn't installed, and needn't be");
        return;
    }
    build(&Build {
        tools: &["go"],
        files: &[
            ("go.mod", "module tiny\n\ngo 1.19\n"),
            ("tiny.go", "package tiny\n\nfunc Made() int { return 7 }\n"),
            (
                "tiny_test.go",
                "package tiny\n\nimport \"testing\"\n\nfunc TestMade(t *testing.T) {\n\tif Made() != 7 {\n\t\tt.Fatal()\n\t}\n}\n",
            ),
        ],
        command: "go vet ./... && go test -v ./...",
        says: "--- PASS: TestMade",
    });
}

/// Looking for leaks traces the program from a process of its own.
#[test]
fn sanitizers_see_what_they_look_for() {
    build(&Build {
        tools: &["gcc"],
        files: &[
            (
                "leak.c",
                "#include <stdlib.h>\nint main(void) { char *volatile p = malloc(7); p = 0; return p != 0; }\n",
            ),
            (
                "over.c",
                "#include <stdlib.h>\nint main(int n, char **v) { char *p = malloc(7); int r = p[6 + n]; free(p); return r; }\n",
            ),
            ("good.c", "#include <stdlib.h>\nint main(void) { free(malloc(7)); return 0; }\n"),
        ],
        command: "for name in leak over good; do gcc -g -fsanitize=address -o $name $name.c || exit 1; done; \
                  ./good || exit 1; ./leak; ./over; true",
        says: "LeakSanitizer: detected memory leaks",
    });
    build(&Build {
        tools: &["gcc"],
        files: &[(
            "over.c",
            "#include <stdlib.h>\nint main(int n, char **v) { char *p = malloc(7); return p[6 + n]; }\n",
        )],
        command: "gcc -g -fsanitize=address,undefined -o over over.c && ./over; true",
        says: "heap-buffer-overflow",
    });
}

#[test]
fn sockets_processes_and_terminals() {
    let scripts = [
        (
            "a server on the loopback",
            "
import http.server, threading, urllib.request
server = http.server.ThreadingHTTPServer(('localhost', 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print('got', urllib.request.urlopen('http://localhost:%d/' % server.server_port).status)
",
            "got 200",
        ),
        (
            "both loopbacks",
            "
import socket, threading
for family, host in [(socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')]:
    server = socket.create_server((host, 0), family=family)
    threading.Thread(target=lambda: server.accept()[0].sendall(b'hello'), daemon=True).start()
    print(socket.create_connection(server.getsockname()[:2]).recv(5).decode(), family.name)
",
            "hello AF_INET6",
        ),
        (
            "local sockets in /tmp, in the project and without a path",
            "
import os, socket, threading
for name in ['/tmp/socket', os.getcwd() + '/socket', chr(0) + 'socket']:
    server = socket.socket(socket.AF_UNIX); server.bind(name); server.listen()
    threading.Thread(target=lambda: server.accept()[0].sendall(b'hello'), daemon=True).start()
    client = socket.socket(socket.AF_UNIX); client.connect(name)
    print(client.recv(5).decode(), repr(name))
",
            "hello '\\x00socket'",
        ),
        (
            "a pool of processes",
            "
import multiprocessing
if __name__ == '__main__':
    with multiprocessing.Pool(3) as pool: print('sum', sum(pool.map(abs, range(-9, 0))))
    queue = multiprocessing.Queue(); queue.put(7); print('queue', queue.get())
",
            "queue 7",
        ),
        (
            "a program on a terminal of its own",
            "
import os, pty
seen = []
def read(fd):
    data = os.read(fd, 1024); seen.append(data); return data
pty.spawn(['/bin/sh', '-c', 'test -t 0 && test -t 1 && tty'], read)
print('terminal', b'/dev/pts/' in b''.join(seen))
",
            "terminal True",
        ),
    ];
    if !has_program_or_skip("python3") {
        return;
    }
    for (what, script, says) in scripts {
        let project = tempfile::Builder::new().prefix("jm-build-").tempdir().unwrap();
        std::fs::write(project.path().join("script.py"), script).unwrap();
        let completed = command(project.path(), "python3 script.py");
        let text = &completed.combined.text;
        assert!(completed.outcome == Outcome::Exited(0) && text.contains(says), "{what}: {text}");
    }
}

#[test]
fn the_unprivileged_build_alike() {
    common::again_unprivileged(module_path!());
}
