//! Unread output: its beginning and its end, in bounded memory.

use std::collections::VecDeque;

use journeyman_sandbox::clean_output;

/// Maximum bytes kept of each end. Both together fit in a result.
const MAX_END_BYTES: usize = 14 * 1024;

/// Output since the last reading.
#[derive(Debug, Default)]
pub(crate) struct UnreadOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Number of bytes between both ends that were not kept.
    dropped: u64,
    /// Number of bytes received since the command began.
    total: u64,
}

impl UnreadOutput {
    /// Adds output that begins at byte `at` of the command's output.
    pub(crate) fn push(&mut self, at: u64, bytes: &[u8]) {
        let missed = at.saturating_sub(self.total);
        if missed > 0 {
            // The dropped bytes lie between both ends.
            self.dropped += missed + self.tail.len() as u64;
            self.tail.clear();
        }
        self.total = at.max(self.total) + bytes.len() as u64;
        let room = if self.dropped == 0 && self.tail.is_empty() {
            MAX_END_BYTES.saturating_sub(self.head.len())
        } else {
            0
        };
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        let excess = (self.tail.len() + rest.len()).saturating_sub(MAX_END_BYTES);
        let old = excess.min(self.tail.len());
        self.tail.drain(..old);
        self.tail.extend(rest.get(excess - old..).unwrap_or_default());
        self.dropped += excess as u64;
    }

    /// Returns true if there is nothing to read.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty() && self.dropped == 0
    }

    /// Returns and removes the output, cleaned, with a note on dropped bytes. If the command
    /// `goes_on`, an incomplete character at the end stays.
    pub(crate) fn take(&mut self, goes_on: bool) -> String {
        let mut head = std::mem::take(&mut self.head);
        let mut tail: Vec<u8> = std::mem::take(&mut self.tail).into();
        let dropped = std::mem::take(&mut self.dropped);
        if goes_on {
            let last = if tail.is_empty() { &mut head } else { &mut tail };
            self.head = last.split_off(last.len() - incomplete_bytes(last));
        }
        let mut text = clean_output(&head);
        if dropped > 0 {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("[… {dropped} bytes left out …]\n"));
        }
        text.push_str(&clean_output(&tail));
        text
    }

    /// Returns at most the last `bytes` bytes, cleaned, from the beginning of a line if possible.
    /// They stay unread.
    pub(crate) fn tail(&self, bytes: usize) -> String {
        let all: Vec<u8> = self.head.iter().chain(&self.tail).copied().collect();
        let start = all.len().saturating_sub(bytes);
        let end = all.get(start..).unwrap_or_default();
        let text = clean_output(end);
        match text.find('\n') {
            Some(at) if start > 0 && at + 1 < text.len() => text.get(at + 1..).unwrap_or_default().to_owned(),
            _ => text,
        }
    }
}

/// Returns the number of trailing bytes of an incomplete UTF-8 character.
fn incomplete_bytes(bytes: &[u8]) -> usize {
    let begin = bytes.iter().rev().take(4).position(|byte| byte & 0xc0 != 0x80);
    let Some(back) = begin.map(|back| back + 1) else { return 0 };
    let first = bytes.len().checked_sub(back).and_then(|at| bytes.get(at)).copied().unwrap_or_default();
    let whole = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    if back < whole { back } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reading_gives_what_is_new() {
        let mut unread = UnreadOutput::default();
        assert_eq!((unread.is_empty(), unread.take(true)), (true, String::new()));
        unread.push(0, b"one\n");
        unread.push(4, b"two");
        assert_eq!(unread.take(true), "one\ntwo");
        unread.push(7, b"\nthree\n");
        assert_eq!((unread.take(true), unread.take(false)), ("\nthree\n".to_owned(), String::new()));
    }

    #[test]
    fn a_character_in_two_pieces_is_read_whole() {
        for (character, cut) in [("é", 1), ("€", 1), ("€", 2), ("🦀", 1), ("🦀", 3)] {
            let mut unread = UnreadOutput::default();
            let (first, rest) = character.as_bytes().split_at(cut);
            unread.push(0, b"a");
            unread.push(1, first);
            assert_eq!(unread.take(true), "a", "{character} cut at {cut}");
            unread.push(1 + cut as u64, rest);
            assert_eq!(unread.take(true), character);
        }
        let mut unread = UnreadOutput::default();
        unread.push(0, b"a\xe2\x82");
        assert_eq!(unread.take(false), "a\u{fffd}");
    }

    #[test]
    fn of_much_both_ends_are_kept_and_the_rest_is_counted() {
        let mut unread = UnreadOutput::default();
        for nth in 0..1_000_u64 {
            unread.push(nth * 100, &[b'a' + u8::try_from(nth % 26).unwrap(); 100]);
        }
        assert!(unread.head.len() == MAX_END_BYTES && unread.tail.len() == MAX_END_BYTES);
        let text = unread.take(true);
        let left_out = 100_000 - 2 * MAX_END_BYTES;
        assert!(text.contains(&format!("\n[… {left_out} bytes left out …]\n")), "{text}");
        assert!(text.starts_with("aaa") && text.ends_with("lll"), "{text}");
        unread.push(100_000, b"next");
        assert_eq!(unread.take(true), "next");
    }

    #[test]
    fn pieces_that_never_came_are_counted_too() {
        let mut unread = UnreadOutput::default();
        unread.push(0, b"head\n");
        unread.push(105, b"later\n");
        unread.push(111, b"last\n");
        assert_eq!(unread.take(true), "head\n[… 100 bytes left out …]\nlater\nlast\n");
    }

    #[test]
    fn the_tail_begins_with_a_line() {
        let mut unread = UnreadOutput::default();
        unread.push(0, b"one\ntwo\nthree\n");
        assert_eq!((unread.tail(8), unread.tail(99)), ("three\n".to_owned(), "one\ntwo\nthree\n".to_owned()));
        assert_eq!(unread.take(true), "one\ntwo\nthree\n");
    }
}
