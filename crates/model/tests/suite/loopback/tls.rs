//! A server behind TLS. Its key is for tests alone and its authority signs nothing else.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A file of certificates or keys of the tests.
pub(crate) fn file(name: &str) -> PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/loopback/tls").join(name)
}

/// Answers every connection's one request with that stream, until the test ends.
pub(crate) fn serve_once(stream: &str) -> SocketAddr {
    let certificate = CertificateDer::from_pem_file(file("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
    let config = Arc::new(config);
    let length = stream.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n{stream}"
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let connection = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut tls = rustls::StreamOwned::new(connection, socket.unwrap());
            let mut buffer = [0; 16 * 1024];
            // A client that doesn't trust the certificate ends the handshake: nobody to answer.
            if tls.read(&mut buffer).is_ok_and(|read| read > 0) {
                tls.write_all(answer.as_bytes()).unwrap();
                tls.flush().unwrap();
            }
        }
    });
    address
}
