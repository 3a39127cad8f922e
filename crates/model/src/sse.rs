//! An incremental parser of server-sent events.
//!
//! Follows the WHATWG HTML standard, section 9.2.6 "Interpreting an event stream": lines end in LF,
//! CR or CRLF, a leading byte-order mark is dropped, lines that begin with a colon are comments,
//! several `data` lines are joined by line breaks, and an event without data is dropped. Invalid
//! UTF-8 is replaced, as in the standard.

use std::collections::VecDeque;

/// Maximum length of a line. A provider sends one JSON document per line; the longest known are
/// base-64 images and complete replies repeated at the end of a stream, well below a tenth of this.
const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;
/// Maximum size of an event's data, for events of several lines.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// The event's type, if the server named one.
    pub(crate) event: Option<String>,
    /// The event's data, at least one line, which may be empty.
    pub(crate) data: String,
}

/// The error for an event that is larger than any provider sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream has a {what} of more than {} MiB", .limit / (1024 * 1024))]
pub(crate) struct EventTooLong {
    what: &'static str,
    limit: usize,
}

/// An incremental parser: takes bytes in chunks of any size and returns events.
#[derive(Debug)]
pub(crate) struct SseParser {
    /// The beginning of a line whose end has not arrived yet.
    line: Vec<u8>,
    event: Option<String>,
    data: Option<String>,
    /// True if the last byte was a CR, so that a following LF belongs to it.
    after_carriage_return: bool,
    first_line: bool,
}

impl SseParser {
    pub(crate) fn new() -> Self {
        Self { line: Vec::new(), event: None, data: None, after_carriage_return: false, first_line: true }
    }

    /// Parses the next bytes and appends the completed events to `events`.
    pub(crate) fn push(&mut self, bytes: &[u8], events: &mut VecDeque<SseEvent>) -> Result<(), EventTooLong> {
        let mut rest = bytes;
        if self.after_carriage_return && !rest.is_empty() {
            self.after_carriage_return = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            let (head, tail) = rest.split_at(end);
            rest = tail.get(1..).unwrap_or_default();
            if tail.first() == Some(&b'\r') {
                self.after_carriage_return = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            if self.line.is_empty() {
                self.parse_line(head, events)?;
            } else {
                self.extend_line(head)?;
                let line = std::mem::take(&mut self.line);
                self.parse_line(&line, events)?;
            }
        }
        self.extend_line(rest)
    }

    /// Completes the event that was open when the stream ended without its closing blank line. Some
    /// servers omit that line after the last event; in a stream that was cut off, the event is
    /// incomplete.
    pub(crate) fn finish(&mut self, events: &mut VecDeque<SseEvent>) -> Result<(), EventTooLong> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.parse_line(&line, events)?;
        }
        self.dispatch(events);
        Ok(())
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), EventTooLong> {
        check_line_length(self.line.len().saturating_add(bytes.len()))?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn parse_line(&mut self, line: &[u8], events: &mut VecDeque<SseEvent>) -> Result<(), EventTooLong> {
        check_line_length(line.len())?;
        let mut line = line;
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(events);
            return Ok(());
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => {
                let (field, value) = line.split_at(colon);
                let value = value.get(1..).unwrap_or_default();
                (field, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &b""[..]),
        };
        match field {
            b"data" => self.add_data(value),
            b"event" => {
                self.event = Some(String::from_utf8_lossy(value).into_owned());
                Ok(())
            }
            // A comment has an empty field name; `id` and `retry` concern reconnecting, which no
            // provider of models offers.
            _ => Ok(()),
        }
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), EventTooLong> {
        let text = String::from_utf8_lossy(value);
        match &mut self.data {
            None => self.data = Some(text.into_owned()),
            Some(data) => {
                if data.len().saturating_add(text.len()) >= MAX_EVENT_BYTES {
                    return Err(EventTooLong { what: "size", limit: MAX_EVENT_BYTES });
                }
                data.push('\n');
                data.push_str(&text);
            }
        }
        Ok(())
    }

    fn dispatch(&mut self, events: &mut VecDeque<SseEvent>) {
        let event = self.event.take().filter(|name| !name.is_empty());
        if let Some(data) = self.data.take() {
            events.push_back(SseEvent { event, data });
        }
    }
}

fn check_line_length(length: usize) -> Result<(), EventTooLong> {
    if length > MAX_LINE_BYTES { Err(EventTooLong { what: "line", limit: MAX_LINE_BYTES }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(pieces: &[&[u8]]) -> Vec<(Option<String>, String)> {
        let mut parser = SseParser::new();
        let mut events = VecDeque::new();
        for piece in pieces {
            parser.push(piece, &mut events).unwrap();
        }
        parser.finish(&mut events).unwrap();
        events.into_iter().map(|event| (event.event, event.data)).collect()
    }

    #[test]
    fn streams_as_the_standard_reads_them() {
        type Events<'a> = &'a [(Option<&'a str>, &'a str)];
        let cases: &[(&str, Events<'_>)] = &[
            ("", &[]),
            ("data: a\n\n", &[(None, "a")]),
            ("data:a\r\n\r\ndata:  b\r\n\r\n", &[(None, "a"), (None, " b")]),
            ("data: a\r\rdata: b\r\r", &[(None, "a"), (None, "b")]),
            ("event: ping\ndata: {}\n\n", &[(Some("ping"), "{}")]),
            ("data: {}\nevent: late\n\n", &[(Some("late"), "{}")]),
            ("data: one\ndata: two\ndata\n\n", &[(None, "one\ntwo\n")]),
            (": keep-alive\n\n: OPENROUTER PROCESSING\ndata: a\n\n", &[(None, "a")]),
            ("\u{feff}data: a\n\n\u{feff}data: b\n\n", &[(None, "a")]),
            ("event: alone\n\ndata: a\n\n", &[(None, "a")]),
            ("id: 7\nretry: 10\nnonsense\ndata: a\n\n", &[(None, "a")]),
            ("data: [DONE]", &[(None, "[DONE]")]),
            ("data: a\n\n\n\n\ndata:\n\n", &[(None, "a"), (None, "")]),
            ("data: ü€𝄞\n\n", &[(None, "ü€𝄞")]),
        ];
        for (stream, expected) in cases {
            let expected: Vec<(Option<String>, String)> =
                expected.iter().map(|(name, data)| (name.map(str::to_owned), (*data).to_owned())).collect();
            assert_eq!(parse(&[stream.as_bytes()]), expected, "{stream:?}");
            let single: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
            assert_eq!(parse(&single), expected, "{stream:?} byte by byte");
        }
    }

    #[test]
    fn what_is_too_long_is_an_error() {
        let mut parser = SseParser::new();
        let mut events = VecDeque::new();
        let mebibyte = vec![b'x'; 1024 * 1024];
        let failed = (0..9).find_map(|_| parser.push(&mebibyte, &mut events).err()).unwrap();
        assert_eq!(failed.to_string(), "an event of the stream has a line of more than 8 MiB");

        let mut parser = SseParser::new();
        let line = [b"data: ".as_slice(), &mebibyte, b"\n"].concat();
        let failed = (0..17).find_map(|_| parser.push(&line, &mut events).err()).unwrap();
        assert_eq!(failed.to_string(), "an event of the stream has a size of more than 16 MiB");
        assert!(events.is_empty());
    }

    /// Streams made of what matters: fields, line ends of each kind, marks and halves of
    /// characters.
    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"data: ".to_vec()),
            Just(b"event: x".to_vec()),
            Just(b":".to_vec()),
            Just(b"\n".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\r".to_vec()),
            Just(b"\xef\xbb\xbf".to_vec()),
            Just("ü𝄞".as_bytes().to_vec()),
            proptest::collection::vec(any::<u8>(), 0..6),
        ];
        proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(bytes in stream(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12)) {
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            places.push(0);
            places.push(bytes.len());
            places.sort_unstable();
            let pieces: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(parse(&pieces), parse(&[&bytes]));
        }
    }
}
