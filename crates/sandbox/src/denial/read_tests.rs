//! Messages of real programs, and the denials that are read from them.

use std::sync::Arc;

use super::*;
use DenialKind::{Network as Net, Read, Resource, SystemCall, Write};

fn read(output: &str, network: &Network) -> Vec<(DenialKind, String)> {
    let found = find_denials(&Outcome::Exited(1), output, network);
    assert!(
        found.iter().all(|denial| !denial.certain && !denial.hint.is_empty() && !denial.hint.contains('\n'))
    );
    found.into_iter().map(|denial| (denial.kind, denial.what)).collect()
}

/// Messages with the kind and the name of the denial.
const MESSAGES: &[(&str, &[(DenialKind, &str)])] = &[
    ("curl: (6) Could not resolve host: example.com", &[(Net, "connecting to example.com")]),
    (
        "curl: (7) Failed to connect to 192.0.2.1 port 443 after 0 ms: Network is unreachable",
        &[(Net, "connecting to 192.0.2.1")],
    ),
    (
        "Cloning into 'x'...\nfatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com",
        &[(Net, "connecting to github.com")],
    ),
    (
        "ssh: Could not resolve hostname github.com: Temporary failure in name resolution\nfatal: Could not read from remote repository.",
        &[(Net, "connecting to github.com")],
    ),
    (
        "warning: spurious network error (1 try remaining): [6] Could not resolve hostname (Could not resolve host: index.crates.io)\n\
             error: failed to get `rand` as a dependency of package `t v0.1.0 (/p)`\n\nCaused by:\n  download of config.json failed\n\n\
             Caused by:\n  [6] Could not resolve hostname (Could not resolve host: index.crates.io)",
        &[(Net, "connecting to index.crates.io")],
    ),
    (
        "error: no matching package named `rand` found\nAs a reminder, you're using offline mode (--offline) which can sometimes cause surprising resolution failures",
        &[(
            Net,
            "`As a reminder, you're using offline mode (--offline) which can sometimes cause surprising resolution failures`",
        )],
    ),
    (
        "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by 'NewConnectionError(\"HTTPSConnection(host='pypi.org', port=443): Failed to establish a new connection: [Errno -3] Temporary failure in name resolution\")': /simple/requests/\n\
             ERROR: Could not find a version that satisfies the requirement requests (from versions: none)\n\
             ERROR: No matching distribution found for requests",
        &[(Net, "connecting to pypi.org"), (Net, "`ERROR: No matching distribution found for requests`")],
    ),
    (
        "npm error code ENOTCACHED\nnpm error request to https://registry.npmjs.org/left-pad failed: cache mode is 'only-if-cached' but no cached response is available.",
        &[(Net, "connecting to registry.npmjs.org")],
    ),
    (
        "npm error network request to https://registry.npmjs.org/left-pad failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org",
        &[(Net, "connecting to registry.npmjs.org")],
    ),
    (
        "Error: getaddrinfo EAI_AGAIN example.com\n    at GetAddrInfoReqWrap.onlookup [as oncomplete] (node:dns:111:26) {\n  errno: -3001,\n  code: 'EAI_AGAIN',\n  syscall: 'getaddrinfo',\n  hostname: 'example.com'\n}",
        &[(Net, "connecting to example.com")],
    ),
    (
        "go: example.com/x@v1.0.0: Get \"https://proxy.golang.org/example.com/x\": dial tcp: lookup proxy.golang.org: no such host",
        &[(Net, "connecting to proxy.golang.org")],
    ),
    (
        "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
        &[(Net, "`urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>`")],
    ),
    (
        "OSError: [Errno 101] Network is unreachable",
        &[(Net, "`OSError: [Errno 101] Network is unreachable`")],
    ),
    ("wget: unable to resolve host address ‘example.com’", &[(Net, "connecting to example.com")]),
    (
        "/usr/bin/ld: cannot open output file /usr/x: Read-only file system\ncollect2: error: ld returned 1 exit status",
        &[(Write, "changing /usr/x")],
    ),
    ("OSError: [Errno 30] Read-only file system: '/usr/x'", &[(Write, "changing /usr/x")]),
    (
        "node:fs:573\n\nError: EROFS: read-only file system, open '/usr/x'\n    at Object.openSync (node:fs:573:18) {\n  errno: -30,\n  code: 'EROFS',\n  syscall: 'open',\n  path: '/usr/x'\n}",
        &[(Write, "changing /usr/x")],
    ),
    (
        "touch: cannot touch '.git/x': Read-only file system\n/bin/sh: 1: cannot create .git/config: Read-only file system\nmkdir: cannot create directory ‘/opt/x’: Read-only file system",
        &[(Write, "changing .git/x"), (Write, "changing .git/config"), (Write, "changing /opt/x")],
    ),
    (
        "fatal: Unable to create '/p/.git/index.lock': Read-only file system",
        &[(Write, "changing /p/.git/index.lock")],
    ),
    (
        "error: could not create directory '/root/x'\n\nCaused by:\n  Read-only file system (os error 30)",
        &[(Write, "`Read-only file system (os error 30)`")],
    ),
    ("cat: /etc/sudoers: Permission denied", &[(Read, "reading or running /etc/sudoers")]),
    (
        "PermissionError: [Errno 13] Permission denied: '/etc/sudoers'",
        &[(Read, "reading or running /etc/sudoers")],
    ),
    ("cp: cannot create regular file '/srv/x': Permission denied", &[(Write, "changing /srv/x")]),
    (
        "unshare: unshare failed: Operation not permitted",
        &[(SystemCall, "`unshare: unshare failed: Operation not permitted`")],
    ),
    ("chown: changing ownership of 'a.c': Operation not permitted", &[(SystemCall, "a system call on a.c")]),
    (
        "head: error writing 'standard output': No space left on device",
        &[(Resource, "`head: error writing 'standard output': No space left on device`")],
    ),
    ("sh: 1: Cannot fork\nsh: 1: Cannot fork", &[(Resource, "more processes or threads than allowed")]),
    ("RuntimeError: can't start new thread", &[(Resource, "more processes or threads than allowed")]),
    (
        "cc1plus: out of memory\nvirtual memory exhausted: Cannot allocate memory",
        &[(Resource, "more memory than there was")],
    ),
    ("error: expected `;`, found `}`\n --> src/lib.rs:3:1", &[]),
    ("test result: FAILED. 3 passed; 1 failed", &[]),
    ("connect to localhost port 80: Network is unreachable", &[]),
];

#[test]
fn messages_of_real_programs() {
    for (output, expected) in MESSAGES {
        let expected: Vec<_> = expected.iter().map(|(kind, what)| (*kind, (*what).to_owned())).collect();
        assert_eq!(read(output, &Network::Off), expected, "{output}");
    }
}

#[test]
fn the_network_decides_what_a_message_means() {
    let filtered = Network::Filtered(Arc::default());
    let said = "curl: (56) CONNECT tunnel failed, response 403\nfatal: unable to access 'https://x.org/': CONNECT tunnel failed, response 403";
    let found = find_denials(&Outcome::Exited(56), said, &filtered);
    assert!(found.iter().all(|denial| denial.hint.contains("listed hosts")), "{found:?}");
    assert_eq!(found[1].what, "connecting to x.org");
    // Nobody but the network itself is to blame there.
    assert_eq!(read("curl: (6) Could not resolve host: example.com", &Network::Host), []);
    assert_eq!(read("touch: cannot touch '/x': Read-only file system", &Network::Host).len(), 1);
}

#[test]
fn a_command_that_succeeded_or_was_stopped_is_not_read() {
    let said = "mkdir: cannot create directory ‘/opt/x’: Read-only file system";
    for outcome in [
        Outcome::Exited(0),
        Outcome::Cancelled,
        Outcome::SetupFailed(crate::running_command::NotStarted::from_setup_failure("")),
    ] {
        assert_eq!(find_denials(&outcome, said, &Network::Off), []);
    }
    for outcome in [Outcome::Exited(2), Outcome::Signaled(6), Outcome::TimedOut] {
        assert_eq!(find_denials(&outcome, said, &Network::Off).len(), 1, "{outcome:?}");
    }
}

#[test]
fn the_first_message_of_a_line_stands() {
    for (first, one) in KNOWN_MESSAGES.iter().enumerate() {
        assert!(one.0.len() >= MESSAGES_BY_BYTE.len(), "{}", one.0);
        for other in KNOWN_MESSAGES {
            let line = format!("é {} {}: x", other.0, one.0);
            let slow = KNOWN_MESSAGES.iter().position(|(said, ..)| line.contains(said));
            let fast =
                find_message(&line).and_then(|found| KNOWN_MESSAGES.iter().position(|one| one.0 == found.0));
            assert_eq!((fast, fast <= Some(first)), (slow, true), "{line}");
        }
    }
    assert!(
        ["", "E", "ER", "EPER", "EPE RM", "nothing of that"].iter().all(|line| find_message(line).is_none())
    );
}

#[test]
fn limits_are_certain_and_come_first() {
    for outcome in [Outcome::MemoryLimit, Outcome::DiskLimit, Outcome::CpuLimit, Outcome::OutputLimit] {
        let found = find_denials(&outcome, "touch: cannot touch '/x': Read-only file system", &Network::Off);
        assert_eq!((found.len(), found[0].certain, found[1].certain), (2, true, false), "{outcome:?}");
        assert_eq!(found[0].kind, DenialKind::Resource);
    }
}

#[test]
fn many_are_bounded_and_what_they_name_is_clean() {
    let many: String =
        (0..1000).map(|n| format!("touch: cannot touch '/x{n}': Read-only file system\n")).collect();
    assert_eq!(read(&many, &Network::Off).len(), MAX_DENIALS);
    let long = format!("touch: cannot touch '/{}': Read-only file system", "ü".repeat(500));
    assert!(read(&long, &Network::Off)[0].1.len() <= MAX_TARGET_CHARACTERS + 20);
    let hostile = "x: '/a\u{1b}]52;c;x\u{7}\u{202e}b\0': Read-only file system";
    assert_eq!(read(hostile, &Network::Off), [(DenialKind::Write, "changing /ab".to_owned())]);
}

proptest::proptest! {
    #[test]
    fn anything_may_be_read(text in "(?s).{0,200}(Could not resolve host: |EROFS|Permission denied|'|\u{2018}|https://|host=')?.{0,200}") {
        let found = find_denials(&Outcome::Exited(1), &text, &Network::Off);
        proptest::prop_assert!(found.len() <= MAX_DENIALS);
        for denial in found {
            proptest::prop_assert!(!denial.what.chars().any(char::is_control), "{:?}", denial.what);
        }
    }
}
