//! The name in a TLS connection's first message.
//!
//! Records and handshake messages as RFC 8446 has them (sections 4.1.2 and 5.1), the extension as
//! RFC 6066 has it (section 3). Nothing else of the message is looked at.

/// A hello has some 2 KiB with the largest keys in use; one that is longer is no hello.
pub(super) const MAX_HELLO_BYTES: usize = 32 * 1024;

/// The kind of a connection's first bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ClientHello {
    /// The beginning of one.
    More,
    /// One that names this host.
    Named(String),
    /// A hello without a host's name.
    Unnamed,
    /// None, or a broken one.
    Broken,
}

/// Looks at a connection's first bytes.
pub(super) fn read_client_hello(bytes: &[u8]) -> ClientHello {
    match parse_handshake_message(bytes) {
        Ok(Some(body)) => match parse_server_name(&body) {
            Some(Some(name)) => ClientHello::Named(name),
            Some(None) => ClientHello::Unnamed,
            None => ClientHello::Broken,
        },
        Ok(None) if bytes.len() < MAX_HELLO_BYTES => ClientHello::More,
        Ok(None) | Err(MalformedHello) => ClientHello::Broken,
    }
}

struct MalformedHello;

/// Returns the body of the first handshake message, which may be spread over several records;
/// `None` where it is cut.
fn parse_handshake_message(bytes: &[u8]) -> Result<Option<Vec<u8>>, MalformedHello> {
    let mut from = HelloReader(bytes);
    let mut handshake = Vec::new();
    loop {
        if let Some(([kind, a, b, c], body)) = handshake.split_first_chunk() {
            if *kind != 1 {
                return Err(MalformedHello);
            }
            let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            if length > MAX_HELLO_BYTES {
                return Err(MalformedHello);
            }
            if let Some(body) = body.get(..length) {
                return Ok(Some(body.to_vec()));
            }
        }
        // A cut header must be the beginning of a valid one.
        let header = from.0.get(..from.0.len().min(2)).unwrap_or_default();
        if !header.iter().zip([22, 3]).all(|(given, wanted)| *given == wanted) {
            return Err(MalformedHello);
        }
        let Some(_) = from.take(3) else { return Ok(None) };
        let Some(length) = from.u16() else { return Ok(None) };
        // Empty ones aren't allowed in a handshake, nor ones of more than 16 KiB.
        if length == 0 || length > 1 << 14 {
            return Err(MalformedHello);
        }
        let here = from.0.len().min(length);
        let Some(part) = from.take(here) else { return Err(MalformedHello) };
        handshake.extend_from_slice(part);
        if here < length {
            // The rest of the record isn't there; the message's end may be.
            return match handshake.first() {
                Some(kind) if *kind != 1 => Err(MalformedHello),
                _ => Ok(None),
            };
        }
    }
}

/// Returns the host that a hello names, if it names one; `None` where the message isn't a hello.
fn parse_server_name(body: &[u8]) -> Option<Option<String>> {
    let mut from = HelloReader(body);
    // Version and random, session, cipher suites, compression methods.
    from.take(2 + 32)?;
    let length = usize::from(*from.take(1)?.first()?);
    from.take(length)?;
    let length = from.u16()?;
    from.take(length)?;
    let length = usize::from(*from.take(1)?.first()?);
    from.take(length)?;
    if from.0.is_empty() {
        return Some(None);
    }
    let length = from.u16()?;
    let mut extensions = HelloReader(from.take(length)?);
    if !from.0.is_empty() {
        return None;
    }
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.u16()?;
        let length = extensions.u16()?;
        let extension = extensions.take(length)?;
        if kind == 0 {
            // Twice is once too often.
            if found.is_some() {
                return None;
            }
            found = Some(parse_single_name(extension)?);
        }
    }
    Some(found)
}

/// Returns the one name of the extension.
fn parse_single_name(extension: &[u8]) -> Option<String> {
    let mut from = HelloReader(extension);
    let length = from.u16()?;
    let mut list = HelloReader(from.take(length)?);
    let [0] = *list.take(1)? else { return None };
    let length = list.u16()?;
    let name = list.take(length)?;
    let alone = from.0.is_empty() && list.0.is_empty() && !name.is_empty() && name.is_ascii();
    alone.then(|| String::from_utf8_lossy(name).into_owned())
}

struct HelloReader<'a>(&'a [u8]);

impl<'a> HelloReader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<usize> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(usize::from(u16::from_be_bytes(*taken)))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sized(bytes: &[u8]) -> Vec<u8> {
        [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
    }

    fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &sized(body)].concat()
    }

    fn names(name: &str) -> Vec<u8> {
        extension(0, &sized(&[&[0][..], &sized(name.as_bytes())].concat()))
    }

    fn with(extensions: &[u8], record: usize) -> Vec<u8> {
        let body = [&[3, 3][..], &[7; 32], &[0], &sized(&[0x13, 1]), &[1, 0], &sized(extensions)].concat();
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        let message = [&[1][..], &length[1..], &body].concat();
        let records = message.chunks(record).map(|part| [&[22, 3, 1][..], &sized(part)].concat());
        records.collect::<Vec<_>>().concat()
    }

    /// A hello for this name, or none, in one record.
    pub(in crate::network) fn hello(name: Option<&str>) -> Vec<u8> {
        let others = extension(43, &[2, 3, 4]);
        with(&[others, name.map(names).unwrap_or_default()].concat(), 4096)
    }

    #[test]
    fn a_hello_names_a_host_or_nobody() {
        for record in [1, 3, 5, 40, 4096] {
            let bytes = with(&[extension(10, &[1, 2]), names("allowed.test")].concat(), record);
            assert_eq!(read_client_hello(&bytes), ClientHello::Named("allowed.test".into()));
            // What comes after it doesn't count.
            assert_eq!(
                read_client_hello(&[&bytes[..], b"rest"].concat()),
                ClientHello::Named("allowed.test".into())
            );
            for cut in 0..bytes.len() {
                assert_eq!(read_client_hello(&bytes[..cut]), ClientHello::More, "{cut}");
            }
        }
        assert_eq!(read_client_hello(&hello(None)), ClientHello::Unnamed);
        assert_eq!(read_client_hello(&with(&[], 4096)), ClientHello::Unnamed);
    }

    #[test]
    fn what_is_no_hello_is_broken_at_once() {
        for bytes in
            [&b"GET / HTTP/1.1\r\n"[..], b"SSH-2.0-x\r\n", b"\x80\x2e\x01\x03", b"\x16\x02", b"\x17\x03\x03"]
        {
            assert_eq!(read_client_hello(bytes), ClientHello::Broken, "{bytes:?}");
        }
        // A server's hello; an empty record; a record, and a message, that are too long.
        for bytes in [
            &b"\x16\x03\x01\0\x04\x02\0\0\0"[..],
            b"\x16\x03\x01\0\0",
            b"\x16\x03\x01\x40\x01",
            b"\x16\x03\x01\0\x04\x01\xff\xff\xff",
        ] {
            assert_eq!(read_client_hello(bytes), ClientHello::Broken, "{bytes:?}");
        }
        let twice = with(&[names("a.test"), names("b.test")].concat(), 4096);
        let two = [&[0][..], &sized(b"a.test"), &[0], &sized(b"b.test")].concat();
        let two = with(&extension(0, &sized(&two)), 4096);
        let empty = with(&names(""), 4096);
        let unknown = with(&extension(0, &sized(&[&[1][..], &sized(b"a.test")].concat())), 4096);
        for bytes in [twice, two, empty, unknown] {
            assert_eq!(read_client_hello(&bytes), ClientHello::Broken);
        }
        let endless = [&b"\x16\x03\x01\x40\0\x01\0\x70\0"[..], &[0; MAX_HELLO_BYTES]].concat();
        assert_eq!(read_client_hello(&endless), ClientHello::Broken);
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            read_client_hello(&bytes);
            read_client_hello(&[&[22, 3, 1, 1, 0, 1, 0, 0, 252][..], &bytes].concat());
        }

        #[test]
        fn a_changed_hello_never_names_more_than_it_says(at in 0_usize..110, to: u8) {
            let mut bytes = hello(Some("allowed.test"));
            let at = at % bytes.len();
            bytes[at] = to;
            if let ClientHello::Named(name) = read_client_hello(&bytes) {
                prop_assert!(bytes.windows(name.len()).any(|window| window == name.as_bytes()));
            }
        }

        #[test]
        fn what_more_bytes_say_is_never_taken_back(cut in 0_usize..110, tail in proptest::collection::vec(any::<u8>(), 0..50)) {
            let mut bytes = hello(Some("allowed.test"));
            bytes.truncate(cut);
            bytes.extend(tail);
            let mut said = ClientHello::More;
            for end in 0..=bytes.len() {
                let now = read_client_hello(&bytes[..end]);
                prop_assert!(said == ClientHello::More || now == said, "{said:?} {now:?}");
                said = now;
            }
        }
    }
}
