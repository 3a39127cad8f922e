use proptest::prelude::*;

use super::*;

fn target(host: &str, port: u16) -> Target {
    Target::new(host, port).unwrap()
}

fn why(text: &str) -> Result<RequestHead, &'static str> {
    parse_head(text.as_bytes(), RequestRoute::Proxy).map_err(|(_, _, refusal)| refusal.reason())
}

#[test]
fn a_head_ends_with_an_empty_line() {
    let head = b"CONNECT a.test:443 HTTP/1.1\r\n\r\n";
    assert_eq!(find_head_end(head), Ok(HeadScan::End(head.len())));
    assert_eq!(find_head_end(&[&head[..], b"rest\n\0"].concat()), Ok(HeadScan::End(head.len())));
    for cut in 0..head.len() {
        assert_eq!(find_head_end(&head[..cut]), Ok(HeadScan::More));
    }
    for wrong in [&b"GET / HTTP/1.1\n"[..], b"GET /\rx", b"GET \0", b"a\r\r\n"] {
        assert!(find_head_end(wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(find_head_end(&vec![b'a'; MAX_HEAD_BYTES]), Ok(HeadScan::More));
    assert!(find_head_end(&vec![b'a'; MAX_HEAD_BYTES + 1]).is_err());
}

#[test]
fn tunnels_are_asked_for_by_name() {
    let wanted = Ok(RequestHead::Connect(target("a.test", 443)));
    for head in [
        "CONNECT a.test:443 HTTP/1.1\r\n\r\n",
        "CONNECT A.test:443 HTTP/1.0\r\nHost: a.test:443\r\nUser-Agent: x\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nhost: a.TEST\r\nProxy-Connection: Keep-Alive\r\n\r\n",
    ] {
        assert_eq!(why(head), wanted, "{head:?}");
    }
    for head in [
        "CONNECT a.test HTTP/1.1\r\n\r\n",
        "CONNECT http://a.test:443 HTTP/1.1\r\n\r\n",
        "CONNECT b.test@a.test:443 HTTP/1.1\r\n\r\n",
        "CONNECT  a.test:443 HTTP/1.1\r\n\r\n",
        "CONNECT a.test:443 HTTP/2\r\n\r\n",
        "CONNECT a.test:443\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1 \r\n\r\n",
        "connect a.test:443 HTTP/1.1\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nHost: b.test\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:80\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nHost : a.test\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\n Host: b.test\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nX\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nHost:\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nX: a\x01b\r\n\r\n",
    ] {
        assert!(why(head).is_err(), "{head:?}");
    }
    let many = format!("CONNECT a.test:443 HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(MAX_FIELDS + 1));
    assert!(why(&many).is_err());
}

#[test]
fn requests_are_written_anew() {
    let head = "GET http://A.test:80/x?y HTTP/1.1\r\nHost: a.test\r\nProxy-Authorization: Basic eA==\r\n\
                Connection: X-Gone, keep-alive\r\nX-Gone: 1\r\nAccept: */*\r\nUpgrade: websocket\r\n\r\n";
    let rewritten = b"GET /x?y HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nAccept: */*\r\n\r\n".to_vec();
    assert_eq!(
        why(head),
        Ok(RequestHead::Request { target: target("a.test", 80), rewritten, body: BodyLength::Length(0) })
    );
    let Ok(RequestHead::Request { rewritten, body, .. }) =
        why("POST HTTP://a.test?q HTTP/1.0\r\nContent-Length: 7\r\nConnection: content-length\r\n\r\n")
    else {
        panic!("a request")
    };
    assert_eq!(body, BodyLength::Length(7));
    // A length that the connection's list names would change where the request ends.
    let expected = "POST /?q HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nContent-Length: 7\r\n\r\n";
    assert_eq!(String::from_utf8(rewritten).unwrap(), expected);
    let chunked = why("PUT http://a.test/ HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n");
    assert!(matches!(chunked, Ok(RequestHead::Request { body: BodyLength::Chunked, .. })));
}

#[test]
fn requests_that_can_be_read_in_two_ways_are_refused() {
    for head in [
        "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET a.test/ HTTP/1.1\r\n\r\n",
        "GET https://a.test/ HTTP/1.1\r\n\r\n",
        "GET ftp://a.test/ HTTP/1.1\r\n\r\n",
        "GET http://a.test:443/ HTTP/1.1\r\n\r\n",
        "GET http://a.test:22/ HTTP/1.1\r\n\r\n",
        "GET http://a.test@b.test/ HTTP/1.1\r\n\r\n",
        "GET http://a.test\\@b.test/ HTTP/1.1\r\n\r\n",
        "GET http://a.test#@b.test/ HTTP/1.1\r\n\r\n",
        "GET http:///a.test/ HTTP/1.1\r\n\r\n",
        "GET http://127.0.0.1/ HTTP/1.1\r\n\r\n",
        "GET http://[::1]/ HTTP/1.1\r\n\r\n",
        "GET http://a.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n",
        "GET http://a.test/ HTTP/1.1\r\nHost: a.test:81\r\n\r\n",
        "GET http://a.test/ HTTP/1.1\r\nHost: a.test, b.test\r\n\r\n",
        "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nhOST: a.test\r\n\r\n",
        "GET http://a.test/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "GET http://a.test/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
        "GET http://a.test/ HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n",
        "GET http://a.test/ HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        "GET http://a.test/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET http://a.test/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "GET http://a.test/ HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n",
        "GET http://a.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET http://a.test/\u{e9} HTTP/1.1\r\n\r\n",
        "GET http://a.test/\tx HTTP/1.1\r\n\r\n",
    ] {
        assert!(why(head).is_err(), "{head:?}");
    }
}

#[test]
fn within_a_tunnel_the_host_stays() {
    let through = target("a.test", 80);
    let may = |head: &str| parse_head(head.as_bytes(), RequestRoute::Tunnel(&through)).is_ok();
    assert!(may("GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n"));
    assert!(may("OPTIONS * HTTP/1.1\r\nHost: a.test:80\r\n\r\n"));
    assert!(may("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"));
    for head in [
        "GET /x HTTP/1.1\r\nHost: b.test\r\n\r\n",
        "GET /x HTTP/1.1\r\n\r\n",
        "GET http://b.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n",
        "GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\n\r\n",
    ] {
        assert!(!may(head), "{head:?}");
    }
}

#[test]
fn chunks_end_where_they_say() {
    let body = b"3;a=\"b\"\r\nabc\r\n0A\r\n0123456789\r\n0\r\nT: x\r\n\r\n";
    let rest = [&body[..], b"GET / HTTP/1.1\r\n"].concat();
    for step in [1, 2, 7, 100] {
        let (mut chunks, mut total) = (ChunkedBodyScanner::default(), 0);
        for piece in rest.chunks(step) {
            if !chunks.is_done() {
                total += chunks.accept_bytes(piece).unwrap();
            }
        }
        assert!(chunks.is_done());
        assert_eq!(total, body.len());
    }
    for wrong in [
        &b"\r\n"[..],
        b"x\r\n",
        b"3\nabc",
        b"3\r\nabcd",
        b"-1\r\n",
        b" 3\r\n",
        b"3 \r\n",
        b"0x3\r\n",
        b"3;\0\r\n",
        b"1000000000000000\r\n",
        b"0\r\nT\n",
    ] {
        assert!(ChunkedBodyScanner::default().accept_bytes(wrong).is_err(), "{wrong:?}");
    }
    let endless = [&b"3;"[..], &vec![b'a'; MAX_HEAD_BYTES + 1]].concat();
    assert!(ChunkedBodyScanner::default().accept_bytes(&endless).is_err());
}

proptest! {
    #[test]
    fn any_head_is_judged(text in "[ -~]{0,60}", fields in proptest::collection::vec("[!-~]{0,12}[: ]{0,2}[ -~]{0,20}", 0..6)) {
        for line in [text.clone(), format!("GET http://{text} HTTP/1.1"), format!("CONNECT {text} HTTP/1.1")] {
            let head = format!("{line}\r\n{}\r\n\r\n", fields.join("\r\n"));
            if let Ok(RequestHead::Request { rewritten, target, .. }) = parse_head(head.as_bytes(), RequestRoute::Proxy) {
                // Whatever was sent, one head goes on, and it says where to.
                prop_assert_eq!(find_head_end(&rewritten), Ok(HeadScan::End(rewritten.len())));
                let again = parse_head(&rewritten, RequestRoute::Tunnel(&target));
                prop_assert!(matches!(&again, Ok(RequestHead::Request { target: to, .. }) if *to == target), "{again:?}");
            }
        }
    }

    #[test]
    fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let whole = find_head_end(&bytes);
        for end in 0..=bytes.len() {
            match find_head_end(&bytes[..end]) {
                Ok(HeadScan::More) => {}
                decided => { prop_assert_eq!(decided, whole); break; }
            }
        }
        parse_head(&bytes, RequestRoute::Proxy).ok();
    }

    #[test]
    fn chunks_are_the_same_in_any_pieces(bytes in "[0-9a-f;\r\n]{0,60}", step in 1_usize..9) {
        let mut whole = ChunkedBodyScanner::default();
        let taken = whole.accept_bytes(bytes.as_bytes());
        let (mut pieces, mut total) = (ChunkedBodyScanner::default(), Ok(0));
        for piece in bytes.as_bytes().chunks(step) {
            if let (false, Ok(count)) = (pieces.is_done(), total) {
                total = pieces.accept_bytes(piece).map(|more| count + more);
            }
        }
        prop_assert_eq!(taken, total);
    }
}
