//! Ports inside that lead to one address outside: to that one, whatever is sent, and to no other.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use journeyman_sandbox::{CompletedCommand, Network, NetworkRules, Outcome, PortForward, Request, Sandbox};
use journeyman_testkit::has_program_or_skip;
use tokio_util::sync::CancellationToken;

use crate::common::{block_on, project, settings};

const PYTHON: &str = "/usr/bin/python3";

/// Serves connections on the host's loopback: answers each with `word`, a space, and what it read.
fn server(word: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            std::thread::spawn(move || {
                let mut buffer = [0; 1024];
                let count = stream.read(&mut buffer).unwrap_or_default();
                let answer = [word.as_bytes(), b" ", &buffer[..count]].concat();
                stream.write_all(&answer).ok();
            });
        }
    });
    address
}

fn run(forwards: Vec<PortForward>, script: &str) -> CompletedCommand {
    let project = project();
    let mut request = Request::for_program(project.path(), [PYTHON, "-c", script].map(Into::into).to_vec());
    request.network = Network::Filtered(Arc::new(NetworkRules { forwards, ..NetworkRules::default() }));
    block_on(async {
        let sandbox = Sandbox::new(settings());
        sandbox.spawn(request, CancellationToken::new()).await.unwrap().wait().await.unwrap()
    })
}

#[test]
fn a_port_leads_to_its_address_and_to_no_other() {
    if !has_program_or_skip(PYTHON) {
        return;
    }
    let (allowed, secret) = (server("allowed"), server("secret"));
    let other = server("other");
    let forwards =
        vec![PortForward { port: 11_434, to: allowed }, PortForward { port: other.port(), to: other }];
    let script = format!(
        "import socket, os\n\
def ask(host, port, text=b'hello', via=None):\n\
\x20   try:\n\
\x20       kind = socket.AF_INET6 if ':' in host else socket.AF_INET\n\
\x20       s = socket.socket(kind)\n\
\x20       s.settimeout(10)\n\
\x20       s.connect((host, port))\n\
\x20       s.sendall(text)\n\
\x20       return s.recv(4096).split(b'\\r')[0]\n\
\x20   except OSError as error:\n\
\x20       return type(error).__name__.encode()\n\
print('forward', ask('127.0.0.1', 11434))\n\
print('second', ask('127.0.0.1', {other}))\n\
print('own port', ask('127.0.0.1', {allowed}))\n\
print('secret', ask('127.0.0.1', {secret}))\n\
print('v6', ask('::1', {secret}))\n\
print('public', ask('192.0.2.1', 443))\n\
print('as proxy', ask('127.0.0.1', 11434, b'CONNECT 127.0.0.1:{secret} HTTP/1.1\\n\\n'))\n\
print('by proxy', ask('127.0.0.1', 3128, b'CONNECT 127.0.0.1:{secret} HTTP/1.1\\r\\n\\r\\n'))\n\
print('by proxy, the address', ask('127.0.0.1', 3128, b'CONNECT 127.0.0.1:11434 HTTP/1.1\\r\\n\\r\\n'))\n",
        allowed = allowed.port(),
        secret = secret.port(),
        other = other.port(),
    );
    let completed = run(forwards, &script);
    assert_eq!(completed.outcome, Outcome::Exited(0), "{}", completed.combined.text);
    let expected = format!(
        "forward b'allowed hello'\n\
         second b'other hello'\n\
         own port b'ConnectionRefusedError'\n\
         secret b'ConnectionRefusedError'\n\
         v6 b'ConnectionRefusedError'\n\
         public b'OSError'\n\
         as proxy b'allowed CONNECT 127.0.0.1:{secret} HTTP/1.1\\n\\n'\n\
         by proxy b\"HTTP/1.1 403 Denied by the sandbox: addresses aren't let through, only names\"\n\
         by proxy, the address b\"HTTP/1.1 403 Denied by the sandbox: addresses aren't let through, only names\"\n",
        secret = secret.port(),
    );
    // Where the host has no IPv6, its loopback has none either.
    let told = completed.stdout.text.replace("v6 b'OSError'", "v6 b'ConnectionRefusedError'");
    assert_eq!(told, expected, "{}", completed.stderr.text);
    let to = |port: u16| completed.connections.iter().find(|it| it.port == port && it.denied.is_none());
    let counted = to(allowed.port()).unwrap();
    assert_eq!((counted.host.as_str(), counted.times, counted.failed.clone()), ("127.0.0.1", 2, None));
    assert!(to(secret.port()).is_none(), "{:?}", completed.connections);
}

#[test]
fn an_address_that_nobody_serves_says_so() {
    if !has_program_or_skip(PYTHON) {
        return;
    }
    // Bound and dropped: nobody listens there.
    let to = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let script = "import socket\n\
                  s = socket.create_connection(('127.0.0.1', 8080), 10)\n\
                  s.sendall(b'hello')\n\
                  print(s.recv(10))";
    let completed = run(vec![PortForward { port: 8080, to }], script);
    assert!(completed.connections.iter().any(|it| it.failed.is_some()), "{:?}", completed.connections);
}

#[test]
fn a_port_of_the_proxy_or_one_that_is_taken_twice_is_refused() {
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    for forwards in [
        vec![PortForward { port: 3128, to }],
        vec![PortForward { port: 0, to }],
        vec![PortForward { port: 8080, to }, PortForward { port: 8080, to }],
    ] {
        let project = project();
        let mut request = Request::for_shell_command(project.path(), "true");
        request.network = Network::Filtered(Arc::new(NetworkRules { forwards, ..NetworkRules::default() }));
        let refused =
            block_on(async { Sandbox::new(settings()).spawn(request, CancellationToken::new()).await });
        let error = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("port"), "{error}");
    }
}
