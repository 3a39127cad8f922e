//! SOCKS 5 (RFC 1928), of which a proxy of names needs little: no authentication, `CONNECT`, names.

use super::target::{Refusal, Target, display_target};

/// The longest greeting has 257 bytes, the longest request 262.
pub(super) const MAX_MESSAGE_BYTES: usize = 262;

pub(super) const SOCKS_VERSION: u8 = 5;
/// Answers to a greeting: no authentication, or no method that suits.
pub(super) const GREETING_ANSWER: [u8; 2] = [SOCKS_VERSION, 0];
pub(super) const NO_METHOD_ANSWER: [u8; 2] = [SOCKS_VERSION, 0xff];

/// Codes of answers to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ReplyCode {
    Succeeded = 0,
    NotAllowed = 2,
    Unreachable = 4,
    UnknownCommand = 7,
    UnknownAddress = 8,
}

/// Returns an answer. Its address is empty: clients don't need the proxy's own address.
pub(super) fn encode_answer(code: ReplyCode) -> [u8; 10] {
    [SOCKS_VERSION, code as u8, 0, 1, 0, 0, 0, 0, 0, 0]
}

/// A message that may be cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ParsedMessage<T> {
    More,
    /// The message, and its length.
    Whole(T, usize),
}

/// Returns true if a greeting offers to do without authentication.
pub(super) fn parse_greeting(bytes: &[u8]) -> Result<ParsedMessage<bool>, Refusal> {
    let (version, count) = (bytes.first(), bytes.get(1));
    if version.is_some_and(|version| *version != SOCKS_VERSION) {
        return Err(Refusal::Malformed("this isn't SOCKS 5"));
    }
    let Some(count) = count else { return Ok(ParsedMessage::More) };
    let length = 2 + usize::from(*count);
    let Some(methods) = bytes.get(2..length) else { return Ok(ParsedMessage::More) };
    Ok(ParsedMessage::Whole(methods.contains(&0), length))
}

/// A request that isn't granted, with what was asked for.
pub(super) type RefusedTarget = (String, u16, ReplyCode, Refusal);

/// Returns the target of a request.
pub(super) fn parse_request(bytes: &[u8]) -> Result<ParsedMessage<Target>, RefusedTarget> {
    let wrong = |code, why| Err((display_target(b""), 0, code, Refusal::Malformed(why)));
    let [version, command, reserved, kind, rest @ ..] = bytes else {
        return match bytes.first() {
            Some(version) if *version != SOCKS_VERSION => {
                wrong(ReplyCode::UnknownCommand, "this isn't SOCKS 5")
            }
            _ => Ok(ParsedMessage::More),
        };
    };
    if *version != SOCKS_VERSION || *reserved != 0 {
        return wrong(ReplyCode::UnknownCommand, "this isn't SOCKS 5");
    }
    let length = match kind {
        1 => 4,
        4 => 16,
        3 => match rest.first() {
            Some(length) => 1 + usize::from(*length),
            None => return Ok(ParsedMessage::More),
        },
        _ => return wrong(ReplyCode::UnknownAddress, "this kind of address isn't known"),
    };
    let (Some(address), Some([high, low])) = (rest.get(..length), rest.get(length..length + 2)) else {
        return Ok(ParsedMessage::More);
    };
    let port = u16::from_be_bytes([*high, *low]);
    let refused = |code, refusal| Err((display_address(*kind, address), port, code, refusal));
    if *command != 1 {
        return refused(ReplyCode::UnknownCommand, Refusal::Denied("of SOCKS only CONNECT is let through"));
    }
    if *kind != 3 {
        return refused(
            ReplyCode::NotAllowed,
            Refusal::Denied("addresses aren't let through, only names (socks5h)"),
        );
    }
    let name = address.get(1..).unwrap_or_default();
    let Ok(name) = std::str::from_utf8(name) else {
        return refused(ReplyCode::NotAllowed, Refusal::Malformed("this isn't a host's name"));
    };
    if port == 0 {
        return refused(ReplyCode::NotAllowed, Refusal::Malformed("the port isn't a number from 1 to 65535"));
    }
    match Target::new(name, port) {
        Ok(target) => Ok(ParsedMessage::Whole(target, 4 + length + 2)),
        Err(refusal) => refused(ReplyCode::NotAllowed, refusal),
    }
}

/// Formats an address for the log.
fn display_address(kind: u8, address: &[u8]) -> String {
    let v4 = || <[u8; 4]>::try_from(address).map(|bytes| std::net::Ipv4Addr::from(bytes).to_string());
    let v6 = || <[u8; 16]>::try_from(address).map(|bytes| std::net::Ipv6Addr::from(bytes).to_string());
    let text = if kind == 1 { v4().ok() } else { v6().ok() };
    text.filter(|_| kind != 3).unwrap_or_else(|| display_target(address.get(1..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn asks(command: u8, kind: u8, address: &[u8], port: u16) -> Vec<u8> {
        [&[5, command, 0, kind][..], address, &port.to_be_bytes()].concat()
    }

    fn named(name: &[u8], port: u16) -> Vec<u8> {
        asks(1, 3, &[&[u8::try_from(name.len()).unwrap()], name].concat(), port)
    }

    #[test]
    fn greetings() {
        assert_eq!(parse_greeting(&[5, 1, 0]), Ok(ParsedMessage::Whole(true, 3)));
        assert_eq!(parse_greeting(&[5, 2, 2, 0, 9]), Ok(ParsedMessage::Whole(true, 4)));
        assert_eq!(parse_greeting(&[5, 1, 2]), Ok(ParsedMessage::Whole(false, 3)));
        assert_eq!(parse_greeting(&[5, 0]), Ok(ParsedMessage::Whole(false, 2)));
        for cut in [&[][..], &[5], &[5, 2, 0]] {
            assert_eq!(parse_greeting(cut), Ok(ParsedMessage::More));
        }
        assert!(parse_greeting(&[4]).is_err());
    }

    #[test]
    fn requests_name_a_host() {
        let bytes = named(b"Allowed.test", 443);
        let target = Target { host: "allowed.test".into(), port: 443 };
        assert_eq!(parse_request(&bytes), Ok(ParsedMessage::Whole(target, bytes.len())));
        for cut in 0..bytes.len() {
            assert_eq!(parse_request(&bytes[..cut]), Ok(ParsedMessage::More));
        }
        let refused = |bytes: &[u8]| parse_request(bytes).map(|_| ()).unwrap_err();
        let address = refused(&asks(1, 1, &[169, 254, 169, 254], 80));
        assert_eq!(
            (address.0.as_str(), address.1, address.2),
            ("169.254.169.254", 80, ReplyCode::NotAllowed)
        );
        let six = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(refused(&asks(1, 4, &six, 443)).0, "::1");
        for name in [
            &b"127.0.0.1"[..],
            b"0x7f.1",
            b"a\0.test",
            b"a\r\nb",
            b"",
            b"allowed.test.",
            b"\xff",
            b"a@b.test",
        ] {
            assert_eq!(refused(&named(name, 443)).2, ReplyCode::NotAllowed, "{name:?}");
        }
        // BIND and UDP.
        for command in [2, 3] {
            let bytes = asks(command, 3, b"\x06a.test", 443);
            assert_eq!(refused(&bytes).2, ReplyCode::UnknownCommand);
        }
        assert_eq!(refused(&asks(1, 9, b"", 443)).2, ReplyCode::UnknownAddress);
        assert_eq!(refused(&named(b"a.test", 0)).2, ReplyCode::NotAllowed);
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged_in_any_pieces(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let bytes = [&[5, 1, 0, 3][..], &bytes].concat();
            let whole = parse_request(&bytes);
            for end in 0..bytes.len() {
                let part = parse_request(&bytes[..end]);
                prop_assert!(part == Ok(ParsedMessage::More) || part == whole);
            }
            if let Ok(ParsedMessage::Whole(_, length)) = &whole {
                prop_assert!(*length <= bytes.len() && *length <= MAX_MESSAGE_BYTES);
            }
            let longest = [&bytes[..], &[0; MAX_MESSAGE_BYTES]].concat();
            prop_assert!(parse_request(&longest[..MAX_MESSAGE_BYTES]) != Ok(ParsedMessage::More));
        }

        #[test]
        fn any_greeting_is_judged(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(ParsedMessage::Whole(_, length)) = parse_greeting(&bytes) {
                prop_assert!(length <= bytes.len());
            }
        }
    }
}
