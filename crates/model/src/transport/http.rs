//! The transport over sockets.

use std::error::Error as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream;
use tokio::time::{Instant, timeout_at};

use super::{Header, HttpRequest, HttpResponse, Method, Transport, display_url, is_loopback};
use crate::{Deadline, Deadlines, Endpoint, ModelError, ProxySettings};

/// The time that an idle connection is kept: shorter than the 60 s after which common load
/// balancers close their side, so that a turn after a long command does not meet a connection that
/// is being closed.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(50);
/// Hosts that are reached without a proxy.
const LOOPBACK_HOSTS: &str = "localhost,127.0.0.0/8,::1";

/// Speaks HTTP/1.1 with the server of an [`Endpoint`], over TLS for `https`, through the endpoint's
/// proxies.
///
/// Creating a transport is cheap: the client is built at the first request, and trusted
/// certificates are read only for an `https` URL. Connections are reused. Redirects are not
/// followed, because the key would be sent along.
pub struct HttpTransport {
    proxy: ProxySettings,
    ca_file: Option<Arc<Path>>,
    deadlines: Deadlines,
    clients: Mutex<CachedClients>,
}

#[derive(Default)]
struct CachedClients {
    plain: Option<reqwest::Client>,
    tls: Option<reqwest::Client>,
}

impl HttpTransport {
    /// Creates a transport with the endpoint's proxies, certificates and deadlines.
    #[must_use]
    pub fn new(endpoint: &Endpoint) -> Self {
        Self {
            proxy: endpoint.proxy.clone(),
            ca_file: endpoint.ca_file.as_deref().map(Arc::from),
            deadlines: endpoint.deadlines,
            clients: Mutex::default(),
        }
    }

    fn get_or_build_client(&self, url: &reqwest::Url) -> Result<reqwest::Client, ModelError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let encrypted = url.scheme() == "https";
        let slot = if encrypted { &mut clients.tls } else { &mut clients.plain };
        if let Some(client) = slot {
            return Ok(client.clone());
        }
        let roots = if encrypted { self.load_roots(url)? } else { rustls::RootCertStore::empty() };
        let client = self.build_client(roots).map_err(|reason| ModelError::Connection {
            url: display_url(url.as_str()),
            reason,
            advice: None,
            permanent: true,
        })?;
        *slot = Some(client.clone());
        Ok(client)
    }

    fn build_client(&self, roots: rustls::RootCertStore) -> Result<reqwest::Client, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let both = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]
            .map(|address| SocketAddr::new(address, 0));
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .http1_only()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .tcp_nodelay(true)
            .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
            .pool_max_idle_per_host(2)
            .connect_timeout(self.deadlines.connect)
            .resolve_to_addrs("localhost", &both);
        let bypass = format!("{LOOPBACK_HOSTS},{}", self.proxy.no_proxy);
        for (url, encrypted) in [(&self.proxy.http, false), (&self.proxy.https, true)] {
            if let Some(url) = url.as_deref().filter(|url| !url.is_empty()) {
                let proxy = if encrypted { reqwest::Proxy::https(url) } else { reqwest::Proxy::http(url) };
                let proxy = proxy
                    .map_err(|_| format!("the proxy {} is not a URL that can be used", display_url(url)))?;
                builder = builder.proxy(proxy.no_proxy(reqwest::NoProxy::from_string(&bypass)));
            }
        }
        builder.build().map_err(|error| format_chain(&error.without_url()))
    }

    /// Loads the trusted certificates: those of the endpoint's file, else the platform's.
    fn load_roots(&self, url: &reqwest::Url) -> Result<rustls::RootCertStore, ModelError> {
        let found = match &self.ca_file {
            Some(file) => rustls_native_certs::load_certs_from_paths(Some(file), None),
            None => rustls_native_certs::load_native_certs(),
        };
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            let reason = match found.errors.first() {
                Some(error) => format!("no trusted certificates: {error}"),
                None => "no trusted certificates are installed".to_owned(),
            };
            return Err(ModelError::Connection {
                url: display_url(url.as_str()),
                reason,
                advice: Some(
                    "install the system's ca-certificates, or name a file of certificates in SSL_CERT_FILE"
                        .to_owned(),
                ),
                permanent: true,
            });
        }
        Ok(roots)
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, ModelError>> {
        Box::pin(async move {
            let watch = DeadlineTimer::start(self.deadlines, display_url(&request.url));
            let (client, request) = self.prepare_request(request, &watch.url)?;
            let (until, which) = watch.first_byte_deadline();
            let sent = timeout_at(until, client.execute(request)).await;
            let response = match sent {
                Err(_) => return Err(watch.timeout_error(which)),
                Ok(Err(error)) => return Err(watch.classify_send_error(error)),
                Ok(Ok(response)) => response,
            };
            let status = response.status().as_u16();
            let headers = response
                .headers()
                .iter()
                .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
                .collect();
            let reading = ResponseBody { response, watch, begun: false };
            let body = stream::try_unfold(reading, |mut reading| async move {
                Ok(reading.next().await?.map(|bytes| (bytes, reading)))
            });
            Ok(HttpResponse { status, headers, body: Box::pin(body) })
        })
    }
}

impl HttpTransport {
    fn prepare_request(
        &self,
        request: HttpRequest,
        shown: &str,
    ) -> Result<(reqwest::Client, reqwest::Request), ModelError> {
        let refuse = |reason: &str| ModelError::Connection {
            url: shown.to_owned(),
            reason: reason.to_owned(),
            advice: None,
            permanent: true,
        };
        let url = reqwest::Url::parse(&request.url).map_err(|error| refuse(&error.to_string()))?;
        let client = self.get_or_build_client(&url)?;
        let method = match request.method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
        };
        let mut built = reqwest::Request::new(method, url);
        for Header { name, value, secret } in &request.headers {
            let name = reqwest::header::HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| refuse(&format!("`{name}` is not a header's name")))?;
            let mut value = reqwest::header::HeaderValue::from_str(value).map_err(|_| {
                refuse(&format!("the value of the header `{name}` has characters that HTTP doesn't allow"))
            })?;
            value.set_sensitive(*secret);
            built.headers_mut().insert(name, value);
        }
        if request.method == Method::Post {
            *built.body_mut() = Some(request.body.into());
        }
        Ok((client, built))
    }
}

/// The deadlines of one exchange.
struct DeadlineTimer {
    deadlines: Deadlines,
    started: Instant,
    url: String,
}

impl DeadlineTimer {
    fn start(deadlines: Deadlines, url: String) -> Self {
        Self { deadlines, started: Instant::now(), url }
    }

    /// Returns the time at which the wait for the first byte ends, and the limit that ends it.
    fn first_byte_deadline(&self) -> (Instant, Deadline) {
        self.cap_by_total(add_saturating(self.started, self.deadlines.first_byte), Deadline::FirstByte)
    }

    /// Returns the time at which a wait for the next byte ends if it begins now, and the limit that
    /// ends it.
    fn next_byte_deadline(&self) -> (Instant, Deadline) {
        self.cap_by_total(add_saturating(Instant::now(), self.deadlines.idle), Deadline::Idle)
    }

    fn cap_by_total(&self, until: Instant, which: Deadline) -> (Instant, Deadline) {
        let total = add_saturating(self.started, self.deadlines.total);
        if total < until { (total, Deadline::Total) } else { (until, which) }
    }

    fn timeout_error(&self, which: Deadline) -> ModelError {
        let after = match which {
            Deadline::Connect => self.deadlines.connect,
            Deadline::FirstByte => self.deadlines.first_byte,
            Deadline::Idle => self.deadlines.idle,
            Deadline::Total => self.deadlines.total,
        };
        ModelError::Timeout { which, after, url: self.url.clone() }
    }

    fn classify_send_error(&self, error: reqwest::Error) -> ModelError {
        if error.is_timeout() {
            return self.timeout_error(Deadline::Connect);
        }
        let error = error.without_url();
        let refused = io_kind(&error) == Some(io::ErrorKind::ConnectionRefused);
        let host = reqwest::Url::parse(&self.url).ok().and_then(|url| url.host_str().map(str::to_owned));
        let here = host.is_some_and(|host| is_loopback(&host));
        let untrusted = is_certificate_error(&error);
        let advice = if untrusted {
            Some("name a file that holds its certificate authority in SSL_CERT_FILE")
        } else if refused && here {
            Some("nothing listens there")
        } else {
            None
        };
        ModelError::Connection {
            url: self.url.clone(),
            reason: format_chain(&error),
            advice: advice.map(str::to_owned),
            permanent: untrusted || (refused && here),
        }
    }
}

/// Returns `start + wait`, or thirty years later if the sum overflows.
fn add_saturating(start: Instant, wait: Duration) -> Instant {
    const FAR_FUTURE: Duration = Duration::from_secs(86_400 * 365 * 30);
    start.checked_add(wait).unwrap_or(start + FAR_FUTURE)
}

/// A response body that is being read.
struct ResponseBody {
    response: reqwest::Response,
    watch: DeadlineTimer,
    begun: bool,
}

impl ResponseBody {
    async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        let (until, which) =
            if self.begun { self.watch.next_byte_deadline() } else { self.watch.first_byte_deadline() };
        match timeout_at(until, self.response.chunk()).await {
            Err(_) => Err(self.watch.timeout_error(which)),
            Ok(Err(error)) => Err(ModelError::EndedEarly {
                url: self.watch.url.clone(),
                reason: format_chain(&error.without_url()),
            }),
            Ok(Ok(chunk)) => {
                self.begun = true;
                Ok(chunk)
            }
        }
    }
}

/// Formats an error and its causes in one line, each once. The outermost error only says that a
/// request failed.
fn format_chain(error: &reqwest::Error) -> String {
    /// Causes that only name the layer in which the next one happened.
    const LAYER_MESSAGES: [&str; 4] =
        ["client error (Connect)", "tcp connect error", "dns error", "error resolving DNS"];
    let mut parts: Vec<String> = Vec::new();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        let is_layer = cause.source().is_some() && LAYER_MESSAGES.contains(&text.as_str());
        if !is_layer && !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
        source = cause.source();
    }
    if parts.is_empty() { error.to_string() } else { parts.join(": ") }
}

fn error_causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |cause: &&(dyn std::error::Error + 'static)| (*cause).source())
}

fn io_kind(error: &reqwest::Error) -> Option<io::ErrorKind> {
    error_causes(error).find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind)
}

/// Returns true if the server's certificate is the cause. TLS errors are nested in I/O errors, and
/// the `source` of an I/O error skips the error that it wraps.
fn is_certificate_error(error: &(dyn std::error::Error + 'static)) -> bool {
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return matches!(tls, rustls::Error::InvalidCertificate(_));
    }
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    match wrapped {
        Some(inner) => is_certificate_error(inner),
        None => error.source().is_some_and(is_certificate_error),
    }
}
