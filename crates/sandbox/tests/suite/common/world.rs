//! A world outside for the proxy: names, and servers on loopback that they lead to.

use journeyman_testkit::wait_until;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, mpsc};

use journeyman_sandbox::{Upstream, UpstreamFuture};

pub(crate) const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(1, 2, 3, 4));
const PAGE: &str = "a page of the allowed host\n";
const REFS: &str = "1111111111111111111111111111111111111111\trefs/heads/main\n";

/// What the proxy finds outside: names, and a server for each port.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) names: BTreeMap<&'static str, Vec<Vec<IpAddr>>>,
    pub(crate) servers: BTreeMap<u16, SocketAddr>,
    pub(crate) resolved: Mutex<Vec<String>>,
    pub(crate) connected: Mutex<Vec<SocketAddr>>,
}

impl World {
    pub(crate) fn new() -> Self {
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        let names = BTreeMap::from([
            ("allowed.test", vec![vec![PUBLIC]]),
            ("private.test", vec![vec![at("10.1.2.3")]]),
            ("metadata.test", vec![vec![at("169.254.169.254")]]),
            ("mapped.test", vec![vec![at("::ffff:127.0.0.1")]]),
            ("mixed.test", vec![vec![PUBLIC, at("192.168.0.1")]]),
            // The first answer is what it should be, the next ones aren't.
            ("rebinding.test", vec![vec![PUBLIC], vec![at("127.0.0.1")]]),
        ]);
        Self { names, ..Self::default() }
    }

    pub(crate) fn serving(mut self, port: u16, server: SocketAddr) -> Self {
        self.servers.insert(port, server);
        self
    }

    pub(crate) fn connected(&self) -> Vec<SocketAddr> {
        self.connected.lock().unwrap().clone()
    }
}

impl Upstream for World {
    fn resolve<'a>(&'a self, host: &'a str) -> UpstreamFuture<'a, Vec<IpAddr>> {
        let mut resolved = self.resolved.lock().unwrap();
        let before = resolved.iter().filter(|name| *name == host).count();
        resolved.push(host.to_owned());
        let answers = self.names.get(host);
        let answer = answers.and_then(|answers| answers.get(before).or(answers.last()));
        let answer = answer.cloned().ok_or_else(|| std::io::ErrorKind::NotFound.into());
        Box::pin(async move { answer })
    }

    fn connect(&self, address: SocketAddr) -> UpstreamFuture<'_, tokio::net::TcpStream> {
        self.connected.lock().unwrap().push(address);
        let server = self.servers.get(&address.port()).copied();
        Box::pin(async move {
            let server = server.ok_or(std::io::ErrorKind::ConnectionRefused)?;
            tokio::net::TcpStream::connect(server).await
        })
    }
}

/// A web server for as long as the tests run.
pub(crate) fn web() -> SocketAddr {
    logging_web().0
}

/// The same, which tells what it was asked for.
pub(crate) fn logging_web() -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, asked) = mpsc::channel();
    std::thread::spawn(move || {
        listener.incoming().flatten().for_each(|client| page(client, &tell).unwrap_or(()));
    });
    (address, asked)
}

fn page(mut client: TcpStream, tell: &mpsc::Sender<String>) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    tell.send(line.clone()).ok();
    let mut field = String::new();
    while reader.read_line(&mut field)? > 2 {
        field.clear();
    }
    let body = match line.split(' ').nth(1).unwrap_or_default() {
        path if path.starts_with("/repo.git/info/refs") => REFS,
        "/repo.git/HEAD" => "ref: refs/heads/main\n",
        _ => PAGE,
    };
    let length = body.len();
    write!(client, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

/// A server that sends back what it gets, and tells what it got when a connection ends.
pub(crate) fn echo() -> (SocketAddr, mpsc::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (ended, ends) = mpsc::channel();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let ended = ended.clone();
            std::thread::spawn(move || {
                let (mut buffer, mut total) = (vec![0; 65536], 0);
                while let Ok(count @ 1..) = client.read(&mut buffer) {
                    total += count;
                    if client.write_all(&buffer[..count]).is_err() {
                        break;
                    }
                }
                ended.send(total).ok();
            });
        }
    });
    (address, ends)
}

/// OpenSSL's own server with a certificate for `allowed.test`, which is left in the directory.
pub(crate) struct Tls {
    server: Child,
    pub(crate) address: SocketAddr,
}

impl Tls {
    pub(crate) fn new(directory: &Path) -> Self {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args(["-subj", "/CN=allowed.test", "-addext", "subjectAltName=DNS:allowed.test", "-days", "2"])
            .args(["-keyout", "/dev/stdout", "-out", "/dev/stdout"])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        std::fs::write(directory.join("certificate.pem"), made.stdout).unwrap();
        let server = Command::new("openssl")
            .args(["s_server", "-quiet", "-www", "-accept", &address.to_string()])
            .args(["-cert".as_ref(), directory.join("certificate.pem").as_os_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("the TLS server", || TcpStream::connect(address).is_ok());
        Self { server, address }
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }
}
