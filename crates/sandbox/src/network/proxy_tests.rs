use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;

use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::super::service::{RunningService, Service};
use super::super::tls_hello::tests::hello;
use super::super::upstream::UpstreamFuture;
use super::*;
use crate::ProxyConnection;

const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(1, 2, 3, 4));

/// A world of one server, which every public address leads to.
#[derive(Debug)]
struct World {
    server: SocketAddr,
    names: BTreeMap<&'static str, Vec<IpAddr>>,
    resolved: Mutex<Vec<String>>,
    connected: Mutex<Vec<SocketAddr>>,
}

impl Upstream for World {
    fn resolve<'a>(&'a self, host: &'a str) -> UpstreamFuture<'a, Vec<IpAddr>> {
        self.resolved.lock().unwrap().push(host.to_owned());
        Box::pin(async move {
            match host {
                "slow.test" => std::future::pending().await,
                _ => self.names.get(host).cloned().ok_or_else(|| io::ErrorKind::NotFound.into()),
            }
        })
    }

    fn connect(&self, address: SocketAddr) -> UpstreamFuture<'_, TcpStream> {
        self.connected.lock().unwrap().push(address);
        Box::pin(TcpStream::connect(self.server))
    }
}

struct Bench {
    world: Arc<World>,
    server: TcpListener,
    proxy: SocketAddr,
    serving: RunningService,
}

impl Bench {
    async fn new(bounds: ProxyLimits) -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = listener.local_addr().unwrap();
        let at = |text: &str| text.parse().unwrap();
        let names = BTreeMap::from([
            ("allowed.test", vec![PUBLIC]),
            ("private.test", vec![at("10.0.0.1")]),
            ("metadata.test", vec![at("169.254.169.254")]),
            ("mixed.test", vec![PUBLIC, at("127.0.0.1")]),
            ("six.test", vec![at("::1")]),
            ("empty.test", vec![]),
        ]);
        let world = Arc::new(World {
            server: server.local_addr().unwrap(),
            names,
            resolved: Mutex::default(),
            connected: Mutex::default(),
        });
        let hosts = ["allowed", "private", "metadata", "mixed", "six", "empty", "slow", "unknown"];
        let hosts = hosts.map(|name| format!("{name}.test").parse().unwrap()).to_vec();
        let rules = Arc::new(NetworkRules { hosts, plain_http: true, forwards: Vec::new() });
        let configured = Proxy { bounds, ..Proxy::new(rules, Some(world.clone())) };
        Self { world, server, proxy, serving: Service::Proxy(configured).serve(listener.into()).unwrap() }
    }

    async fn client(&self) -> TcpStream {
        TcpStream::connect(self.proxy).await.unwrap()
    }

    /// Sends all of it and reads until the proxy closes.
    async fn answer(&self, bytes: &[u8]) -> String {
        let mut client = self.client().await;
        client.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Returns a tunnel: the client's end and the server's.
    async fn tunnel(&self, port: u16) -> (TcpStream, TcpStream) {
        let mut client = self.client().await;
        let ask = format!("CONNECT allowed.test:{port} HTTP/1.1\r\nHost: allowed.test:{port}\r\n\r\n");
        client.write_all(ask.as_bytes()).await.unwrap();
        let (server, _) = self.server.accept().await.unwrap();
        let mut answer = [0; 39];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 Connection established\r\n\r\n");
        (client, server)
    }
}

fn test<F: Future>(test: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

#[test]
fn a_tunnel_carries_bytes_both_ways_and_counts_them() {
    test(async {
        let bench = Bench::new(ProxyLimits::default()).await;
        let (mut client, mut server) = bench.tunnel(443).await;
        let hello = hello(Some("Allowed.test"));
        client.write_all(&hello).await.unwrap();
        let more = vec![7; 1_000_000];
        let writing = async {
            client.write_all(&more).await.unwrap();
            client.shutdown().await.unwrap();
            let mut got = Vec::new();
            client.read_to_end(&mut got).await.unwrap();
            got
        };
        let serving = async {
            let mut got = Vec::new();
            server.read_to_end(&mut got).await.unwrap();
            // The client's end came through, and the answer still finds its way.
            server.write_all(&[9; 300_000]).await.unwrap();
            drop(server);
            got
        };
        let (answer, sent) = tokio::join!(writing, serving);
        assert_eq!(sent, [&hello[..], &more].concat());
        assert_eq!(answer, [9; 300_000]);
        assert_eq!(*bench.world.connected.lock().unwrap(), [SocketAddr::new(PUBLIC, 443)]);
        let (connections, denials) = bench.serving.finish().await;
        let expected = ProxyConnection {
            host: "allowed.test".into(),
            port: 443,
            times: 1,
            sent: sent.len() as u64,
            received: 300_000,
            denied: None,
            failed: None,
        };
        assert_eq!((connections, denials), (vec![expected], vec![]));
    });
}

#[test]
fn what_may_not_be_is_refused_before_anything_is_resolved() {
    test(async {
        let bench = Bench::new(ProxyLimits::default()).await;
        for (ask, status) in [
            ("CONNECT other.test:443 HTTP/1.1", 403),
            ("CONNECT allowed.test:22 HTTP/1.1", 403),
            ("CONNECT 127.0.0.1:443 HTTP/1.1", 403),
            ("CONNECT [::1]:443 HTTP/1.1", 403),
            ("CONNECT allowed.test.:443 HTTP/1.1", 400),
            ("CONNECT allowed.test HTTP/1.1", 400),
            ("CONNECT allowed.test:443 HTTP/1.1\r\nHost: other.test:443", 403),
            ("GET http://other.test/ HTTP/1.1", 403),
            ("GET http://allowed.test/ HTTP/1.1\r\nHost: other.test", 403),
            ("GET / HTTP/1.1\r\nHost: allowed.test", 400),
            ("GET http://allowed.test:443/ HTTP/1.1", 403),
            ("POST http://allowed.test/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked", 400),
            ("CONNECT allowed.test:443 HTTP/1.1\nX: y", 400),
        ] {
            let answer = bench.answer(format!("{ask}\r\n\r\n").as_bytes()).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{ask}: {answer}");
        }
        assert!(bench.world.resolved.lock().unwrap().is_empty());
        let (connections, denials) = bench.serving.finish().await;
        assert_eq!(connections.iter().map(|entry| entry.times).sum::<u64>(), 13);
        assert!(connections.iter().all(|entry| entry.denied.is_some()));
        assert_eq!(denials.len(), connections.len());
    });
}

#[test]
fn a_name_that_leads_inside_is_refused() {
    test(async {
        let bench = Bench::new(ProxyLimits::default()).await;
        for (name, status) in [
            ("private.test", 403),
            ("metadata.test", 403),
            ("mixed.test", 403),
            ("six.test", 403),
            ("empty.test", 502),
            ("unknown.test", 502),
        ] {
            let answer = bench.answer(format!("CONNECT {name}:443 HTTP/1.1\r\n\r\n").as_bytes()).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {answer}");
        }
        assert!(bench.world.connected.lock().unwrap().is_empty());
        let (connections, denials) = bench.serving.finish().await;
        assert_eq!((connections.len(), denials.len()), (6, 4));
        assert!(denials[1].what.contains("metadata.test:443") && denials[1].what.contains("link-local"));
    });
}

#[test]
fn tls_has_to_name_the_host_that_was_asked_for() {
    test(async {
        let bench = Bench::new(ProxyLimits::default()).await;
        for bytes in
            [hello(Some("other.test")), b"SSH-2.0-x\r\n".to_vec(), b"GET / HTTP/1.1\r\n\r\n".to_vec()]
        {
            let (mut client, mut server) = bench.tunnel(443).await;
            client.write_all(&bytes).await.unwrap();
            let mut got = Vec::new();
            server.read_to_end(&mut got).await.unwrap();
            assert!(got.is_empty());
        }
        // In any pieces, and without a name, it goes through.
        for bytes in [hello(Some("allowed.test")), hello(None)] {
            let (mut client, mut server) = bench.tunnel(443).await;
            for byte in &bytes {
                client.write_all(&[*byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
            let mut got = vec![0; bytes.len()];
            server.read_exact(&mut got).await.unwrap();
            assert_eq!(got, bytes);
        }
        let (connections, denials) = bench.serving.finish().await;
        assert_eq!(connections.iter().filter(|entry| entry.denied.is_some()).count(), 2);
        assert!(denials[0].what.contains("another host"), "{denials:?}");
    });
}

#[test]
fn one_request_goes_on_and_nothing_behind_it() {
    test(async {
        let bench = Bench::new(ProxyLimits::default()).await;
        let smuggled = "GET http://other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n";
        for (fields, body) in
            [("Content-Length: 5", "hello"), ("Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n")]
        {
            let ask = format!("POST http://allowed.test/x HTTP/1.1\r\n{fields}\r\n\r\n{body}{smuggled}");
            let (answer, sent) = tokio::join!(bench.answer(ask.as_bytes()), async {
                let (mut server, _) = bench.server.accept().await.unwrap();
                let expected = format!(
                    "POST /x HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n{fields}\r\n\r\n{body}"
                );
                let mut got = vec![0; expected.len()];
                server.read_exact(&mut got).await.unwrap();
                assert_eq!(String::from_utf8_lossy(&got), expected);
                server.write_all(b"HTTP/1.1 200 OK\r\n\r\nfine").await.unwrap();
                server.shutdown().await.unwrap();
                let mut rest = Vec::new();
                server.read_to_end(&mut rest).await.unwrap();
                assert!(rest.is_empty());
                expected.len() as u64
            });
            assert_eq!(answer, "HTTP/1.1 200 OK\r\n\r\nfine");
            assert!(sent > 0);
        }
        let (connections, _) = bench.serving.finish().await;
        assert_eq!((connections.len(), connections[0].times, connections[0].received), (1, 2, 46));
    });
}

#[test]
fn a_tunnel_to_port_80_keeps_its_host() {
    test(async {
        let bench = Bench::new(ProxyLimits::default()).await;
        let (mut client, mut server) = bench.tunnel(80).await;
        client.write_all(b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n").await.unwrap();
        let mut got = Vec::new();
        server.read_to_end(&mut got).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(got.is_empty() && answer.starts_with("HTTP/1.1 403 "), "{answer}");
        let (mut client, mut server) = bench.tunnel(80).await;
        client.write_all(b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n").await.unwrap();
        let expected = b"GET / HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n";
        let mut got = vec![0; expected.len()];
        server.read_exact(&mut got).await.unwrap();
        assert_eq!(got, expected);
    });
}

#[test]
fn socks_takes_names_and_no_addresses() {
    test(async {
        let bench = Bench::new(ProxyLimits::default()).await;
        let name = b"\x05\x01\x00\x05\x01\x00\x03\x0callowed.test\x01\xbb";
        let mut client = bench.client().await;
        for byte in name {
            client.write_all(&[*byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
        let mut answer = [0; 12];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, [5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        for (bytes, code) in [
            (&b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x01\xbb"[..], 2),
            (b"\x05\x01\x00\x05\x01\x00\x03\x0aother.test\x01\xbb", 2),
            (b"\x05\x01\x00\x05\x01\x00\x03\x0cprivate.test\x01\xbb", 2),
            (b"\x05\x01\x00\x05\x01\x00\x03\x0cunknown.test\x01\xbb", 4),
            (b"\x05\x01\x00\x05\x03\x00\x03\x0callowed.test\x01\xbb", 7),
        ] {
            let mut client = bench.client().await;
            client.write_all(bytes).await.unwrap();
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.unwrap();
            assert_eq!((answer.len(), answer[3]), (12, code));
        }
        assert_eq!(bench.answer(b"\x05\x01\x02").await.as_bytes(), "\u{5}\u{fffd}".as_bytes());
    });
}

#[test]
fn whoever_is_silent_is_let_go() {
    test(async {
        let short = Duration::from_millis(30);
        let bounds = ProxyLimits {
            clients: 2,
            asking: short,
            resolving: short,
            first: short,
            idle: short,
            ..ProxyLimits::default()
        };
        let bench = Bench::new(bounds).await;
        // More than may be at once, one after the other: the last ones wait until the first were
        // let go.
        let mut silent = Vec::new();
        for _ in 0..5 {
            silent.push(bench.client().await);
        }
        for mut client in silent {
            client.write_all(b"CONNECT").await.ok();
            client.read_to_end(&mut Vec::new()).await.ok();
        }
        assert!(bench.answer(b"CONNECT slow.test:443 HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 502 "));
        for hello in [vec![], hello(Some("allowed.test"))] {
            let (mut client, mut server) = bench.tunnel(443).await;
            client.write_all(&hello).await.unwrap();
            let mut got = Vec::new();
            server.read_to_end(&mut got).await.unwrap();
            assert_eq!(got, hello);
            assert_eq!(client.read(&mut [0; 1]).await.unwrap_or(0), 0);
        }
        let (connections, _) = bench.serving.finish().await;
        assert!(connections.iter().all(|entry| entry.failed.is_some()), "{connections:?}");
        assert_eq!(connections.len(), 3);
    });
}

#[test]
fn everything_closes_with_the_proxy() {
    test(async {
        let bench = Bench::new(ProxyLimits::default()).await;
        let (mut client, mut server) = bench.tunnel(443).await;
        let hello = hello(Some("allowed.test"));
        client.write_all(&hello).await.unwrap();
        server.read_exact(&mut vec![0; hello.len()]).await.unwrap();
        let (connections, _) = bench.serving.finish().await;
        assert_eq!(connections[0].sent, hello.len() as u64);
        assert_eq!(server.read(&mut [0; 1]).await.unwrap_or(0), 0);
        assert_eq!(client.read(&mut [0; 1]).await.unwrap_or(0), 0);
        assert!(TcpStream::connect(bench.proxy).await.is_err());
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_bytes_reach_a_host_that_is_not_listed(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        start in proptest::sample::select(vec![&b""[..], b"CONNECT ", b"GET http://", b"\x05\x01\x00\x05\x01\x00\x03"]),
    ) {
        test(async {
            let bounds = ProxyLimits { lingering: Duration::from_millis(5), ..ProxyLimits::default() };
            let bench = Bench::new(bounds).await;
            let mut client = bench.client().await;
            client.write_all(&[start, &bytes].concat()).await.unwrap();
            client.shutdown().await.unwrap();
            client.read_to_end(&mut Vec::new()).await.ok();
            let (connections, _) = bench.serving.finish().await;
            assert!(bench.world.connected.lock().unwrap().is_empty());
            assert!(connections.len() <= 1);
        });
    }
}
