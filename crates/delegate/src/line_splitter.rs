//! Splitting of a stream into lines.

/// Maximum bytes kept of a line: one more than is parsed, so that longer lines are recognized.
const MAX_KEPT_LINE_BYTES: usize = crate::bounds::MAX_PARSED_LINE_BYTES + 1;

/// Splits a stream that arrives in pieces of any size into lines.
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    held: Vec<u8>,
}

impl LineSplitter {
    /// Adds a piece, and calls `take` with each complete line, without the line break.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut take: impl FnMut(&[u8])) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            self.append_bounded(line);
            take(self.held.strip_suffix(b"\r").unwrap_or(&self.held));
            self.held.clear();
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.append_bounded(bytes);
    }

    /// Calls `take` with the last line if it has no line break.
    pub(crate) fn finish(self, take: impl FnOnce(&[u8])) {
        if !self.held.is_empty() {
            take(&self.held);
        }
    }

    fn append_bounded(&mut self, bytes: &[u8]) {
        let room = MAX_KEPT_LINE_BYTES.saturating_sub(self.held.len());
        self.held.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let text = b"one\ntwo\r\n\nthree";
        for size in 1..=text.len() {
            let (mut lines, mut seen) = (LineSplitter::default(), Vec::new());
            for piece in text.chunks(size) {
                lines.push(piece, |line| seen.push(String::from_utf8(line.to_vec()).unwrap()));
            }
            lines.finish(|line| seen.push(String::from_utf8(line.to_vec()).unwrap()));
            assert_eq!(seen, ["one", "two", "", "three"], "in pieces of {size}");
        }
    }

    #[test]
    fn a_line_is_bounded() {
        let (mut lines, mut sizes) = (LineSplitter::default(), Vec::new());
        for _ in 0..20 {
            lines.push(&[b'x'; 1 << 20], |_| unreachable!("no line has ended"));
        }
        lines.push(b"y\nz\n", |line| sizes.push(line.len()));
        assert_eq!(sizes, [MAX_KEPT_LINE_BYTES, 1]);
    }
}
