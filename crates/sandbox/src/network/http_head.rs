//! The head of an HTTP request to a proxy: strictly what RFC 9112 allows, and only what is needed
//! of it. What two programs could read in two ways is refused, because the server behind the proxy
//! reads it again.

use super::target::{HTTP_PORT, Refusal, Target, display_target};

/// Longest head in bytes: twice what most servers take.
pub(super) const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Most header fields of a request; browsers send some 20.
const MAX_FIELDS: usize = 128;

/// Fields that are meant for the proxy or the one connection, and aren't passed on.
const HOP_BY_HOP_FIELDS: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "te",
    "trailer",
    "upgrade",
    "host",
];

/// The progress of reading a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadScan {
    More,
    /// It has this many bytes, the empty line included.
    End(usize),
}

/// Looks for a head's end.
pub(super) fn find_head_end(bytes: &[u8]) -> Result<HeadScan, Refusal> {
    let mut before = 0;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' if before != b'\r' => return Err(Refusal::Malformed("lines end in CR LF")),
            b'\n' if at.checked_sub(3).and_then(|at| bytes.get(at..at + 2)) == Some(b"\r\n") => {
                return Ok(HeadScan::End(at + 1));
            }
            b'\n' => {}
            _ if before == b'\r' => return Err(Refusal::Malformed("lines end in CR LF")),
            0 => return Err(Refusal::Malformed("a NUL isn't allowed here")),
            _ => {}
        }
        before = *byte;
        if at >= MAX_HEAD_BYTES {
            return Err(Refusal::Malformed("the request's head is longer than 16 KiB"));
        }
    }
    Ok(HeadScan::More)
}

/// The route of a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum RequestRoute<'a> {
    /// To the proxy, with the target in the head.
    Proxy,
    /// Through a tunnel to this target.
    Tunnel(&'a Target),
}

/// The kind of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestHead {
    /// A tunnel.
    Connect(Target),
    /// A single request with one answer.
    Request {
        target: Target,
        /// The head as it is sent to the server.
        rewritten: Vec<u8>,
        body: BodyLength,
    },
}

/// The length of the body after a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyLength {
    Length(u64),
    Chunked,
}

/// A request that isn't granted, with what was asked for.
pub(super) type RefusedTarget = (String, u16, Refusal);

/// Reads a head, the empty line included.
pub(super) fn parse_head(head: &[u8], place: RequestRoute<'_>) -> Result<RequestHead, RefusedTarget> {
    let mut lines = head.strip_suffix(b"\r\n\r\n").unwrap_or(head).split(|b| *b == b'\n');
    let mut lines = std::iter::from_fn(|| lines.next().map(|line| line.strip_suffix(b"\r").unwrap_or(line)));
    let line = lines.next().unwrap_or_default();
    let target = line.split(|b| *b == b' ').nth(1).unwrap_or_default();
    let asked = |refusal| (display_target(target), 0, refusal);
    let parts = std::str::from_utf8(line).ok().map(|line| line.split(' ').collect::<Vec<_>>());
    let Some([method, target, version @ ("HTTP/1.1" | "HTTP/1.0")]) = parts.as_deref() else {
        return Err(asked(Refusal::Malformed("this isn't a request of HTTP/1.1")));
    };
    if !is_token(method) || target.is_empty() || !target.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(asked(Refusal::Malformed("this isn't a request of HTTP/1.1")));
    }
    let fields = parse_fields(lines).map_err(asked)?;
    let host = single_field_value(&fields, "host").map_err(asked)?;
    if *method == "CONNECT" {
        let RequestRoute::Proxy = place else {
            return Err(asked(Refusal::Malformed("there is no proxy within a tunnel")));
        };
        let target = Target::parse(target, None).map_err(asked)?;
        let meant = host.is_none_or(|host| target.matches_host_header(host, target.port));
        return if meant { Ok(RequestHead::Connect(target)) } else { Err(host_mismatch(target)) };
    }
    let (target, path) = match place {
        RequestRoute::Proxy => parse_absolute_target(target).map_err(asked)?,
        RequestRoute::Tunnel(through) => {
            let (target, path) = if target.starts_with('/') || *target == "*" {
                (through.clone(), (*target).to_owned())
            } else {
                parse_absolute_target(target).map_err(asked)?
            };
            // Without a name in it, the server would choose.
            if target != *through || host.is_none() {
                return Err(host_mismatch(through.clone()));
            }
            (target, path)
        }
    };
    if host.is_some_and(|host| !target.matches_host_header(host, HTTP_PORT)) {
        return Err(host_mismatch(target));
    }
    let refused = |refusal| (target.host.clone(), target.port, refusal);
    let body = parse_body_length(&fields, version).map_err(refused)?;
    let rewritten = rewrite_head(method, &path, &target, &fields);
    Ok(RequestHead::Request { target, rewritten, body })
}

fn host_mismatch(target: Target) -> RefusedTarget {
    let Target { host, port } = target;
    (host, port, Refusal::Denied("the Host header names another host than the one that is asked"))
}

/// Parses the target and the path of `http://host:port/path`.
fn parse_absolute_target(text: &str) -> Result<(Target, String), Refusal> {
    let (scheme, rest) =
        text.split_once("://").ok_or(Refusal::Malformed("a proxy is asked with the whole address"))?;
    if scheme.eq_ignore_ascii_case("https") {
        return Err(Refusal::Malformed("encrypted pages are asked for by CONNECT"));
    }
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(Refusal::Malformed("only http and https are spoken here"));
    }
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    if path.contains(['#', '\\']) {
        return Err(Refusal::Malformed("this isn't an address of HTTP"));
    }
    let target = Target::parse(authority, Some(HTTP_PORT))?;
    if target.port != HTTP_PORT {
        return Err(Refusal::Denied("plain HTTP goes to port 80 alone"));
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok((target, path))
}

type HeaderField<'a> = (&'a str, &'a [u8]);

fn parse_fields<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Result<Vec<HeaderField<'a>>, Refusal> {
    let mut fields = Vec::new();
    for line in lines {
        let colon = line.iter().position(|b| *b == b':');
        let (name, value) = colon.and_then(|at| line.split_at_checked(at)).unwrap_or((line, b""));
        let name = std::str::from_utf8(name).ok().filter(|name| is_token(name));
        // Neither folded lines nor blanks before the colon, which some servers read as another
        // field.
        let (Some(name), Some(_)) = (name, colon) else {
            return Err(Refusal::Malformed("this isn't a header field"));
        };
        let value = value.strip_prefix(b":").unwrap_or(value).trim_ascii();
        if value.iter().any(|b| b.is_ascii_control() && *b != b'\t') {
            return Err(Refusal::Malformed("control characters aren't allowed in header fields"));
        }
        if fields.len() == MAX_FIELDS {
            return Err(Refusal::Malformed("the request has more than 128 header fields"));
        }
        fields.push((name, value));
    }
    Ok(fields)
}

/// Returns the value of a field that may occur once.
fn single_field_value<'a>(fields: &[HeaderField<'a>], wanted: &str) -> Result<Option<&'a str>, Refusal> {
    let mut found = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
    match (found.next(), found.next()) {
        (None, _) => Ok(None),
        (Some((_, value)), None) => match std::str::from_utf8(value) {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(Refusal::Malformed("this isn't a header field")),
        },
        (Some(_), Some(_)) => Err(Refusal::Malformed("a field that is allowed once is there twice")),
    }
}

fn parse_body_length(fields: &[HeaderField<'_>], version: &str) -> Result<BodyLength, Refusal> {
    let length = single_field_value(fields, "content-length")?;
    let coding = single_field_value(fields, "transfer-encoding")?;
    match (length, coding) {
        (Some(_), Some(_)) => Err(Refusal::Malformed("a request has one length, not two")),
        (None, None) => Ok(BodyLength::Length(0)),
        (None, Some(coding)) if coding.eq_ignore_ascii_case("chunked") && version == "HTTP/1.1" => {
            Ok(BodyLength::Chunked)
        }
        (None, Some(_)) => Err(Refusal::Malformed("of transfer codings only chunked is taken")),
        (Some(length), None) => {
            let digits = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
            let length = digits.then(|| length.parse().ok()).flatten();
            length.map(BodyLength::Length).ok_or(Refusal::Malformed("the length isn't a number"))
        }
    }
}

/// Writes the head for the server: its own form, one `Host`, no field for the proxy, one request a
/// connection.
fn rewrite_head(method: &str, path: &str, target: &Target, fields: &[HeaderField<'_>]) -> Vec<u8> {
    let mut out =
        format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", target.host).into_bytes();
    let listed = |name: &str| {
        let mut lists = fields.iter().filter(|(field, _)| field.eq_ignore_ascii_case("connection"));
        lists.any(|(_, value)| {
            value.split(|b| *b == b',').any(|word| word.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
        })
    };
    for (name, value) in fields {
        let framing =
            ["content-length", "transfer-encoding"].iter().any(|known| name.eq_ignore_ascii_case(known));
        let hop = HOP_BY_HOP_FIELDS.iter().any(|hop| name.eq_ignore_ascii_case(hop));
        if framing || !(hop || listed(name)) {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
    }
    out.extend_from_slice(b"\r\n");
    out
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Finds the end of a chunked body (RFC 9112, section 7.1).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ChunkedBodyScanner {
    at: ChunkState,
    /// Bytes of the line that is being read.
    line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkState {
    /// In a chunk's size; how many digits there were, and what they say.
    Size(u8, u64),
    /// In what may follow a size on its line.
    Extension(u64),
    /// The LF of a size's line.
    SizeEnd(u64),
    Data(u64),
    /// CR and LF after a chunk.
    DataEnd(u8),
    /// In a line after the last chunk; whether it is empty so far.
    Trailer(bool),
    /// Its LF.
    TrailerEnd(bool),
    Done,
}

impl Default for ChunkState {
    fn default() -> Self {
        Self::Size(0, 0)
    }
}

impl ChunkedBodyScanner {
    /// Scans bytes, and returns how many of them belong to the body.
    pub(super) fn accept_bytes(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        let wrong = Err(Refusal::Malformed("the body's chunks are broken"));
        let mut taken = 0;
        while let Some(byte) = bytes.get(taken) {
            if let ChunkState::Data(left) = self.at {
                let count = (bytes.len() - taken).min(usize::try_from(left).unwrap_or(usize::MAX));
                taken += count;
                self.at = match left - count as u64 {
                    0 => ChunkState::DataEnd(b'\r'),
                    left => ChunkState::Data(left),
                };
                continue;
            }
            let Some(next) = self.next_state(*byte) else { return wrong };
            if next == ChunkState::Done {
                self.at = next;
                return Ok(taken + 1);
            }
            self.line =
                if matches!(next, ChunkState::Size(0, _) | ChunkState::Data(_) | ChunkState::Trailer(true)) {
                    0
                } else {
                    self.line + 1
                };
            if self.line > MAX_HEAD_BYTES {
                return wrong;
            }
            self.at = next;
            taken += 1;
        }
        Ok(taken)
    }

    pub(super) fn is_done(&self) -> bool {
        self.at == ChunkState::Done
    }

    fn next_state(&self, byte: u8) -> Option<ChunkState> {
        Some(match (self.at, byte) {
            (ChunkState::Size(digits, size), _) if byte.is_ascii_hexdigit() && digits < 15 => {
                ChunkState::Size(digits + 1, size << 4 | u64::from(char::from(byte).to_digit(16)?))
            }
            (ChunkState::Size(1.., size), b'\r') | (ChunkState::Extension(size), b'\r') => {
                ChunkState::SizeEnd(size)
            }
            (ChunkState::Size(1.., size), b';') => ChunkState::Extension(size),
            (ChunkState::Extension(size), b'\t' | b' '..=b'~') => ChunkState::Extension(size),
            (ChunkState::SizeEnd(0), b'\n') => ChunkState::Trailer(true),
            (ChunkState::SizeEnd(size), b'\n') => ChunkState::Data(size),
            (ChunkState::DataEnd(b'\r'), b'\r') => ChunkState::DataEnd(b'\n'),
            (ChunkState::DataEnd(b'\n'), b'\n') => ChunkState::default(),
            (ChunkState::Trailer(empty), b'\r') => ChunkState::TrailerEnd(empty),
            (ChunkState::Trailer(_), b'\t' | b' '..=b'~' | 0x80..) => ChunkState::Trailer(false),
            (ChunkState::TrailerEnd(true), b'\n') => ChunkState::Done,
            (ChunkState::TrailerEnd(false), b'\n') => ChunkState::Trailer(true),
            _ => return None,
        })
    }
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
