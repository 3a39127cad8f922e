//! The head and the tail of a command's output, kept in bounded memory.

use std::collections::VecDeque;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::Denial;
use crate::clean_output::clean_output;
use crate::request::{Limits, LiveOutputMode, StdioMode};
use crate::spill::SpillWriter;

/// A command that writes more than this many times the kept size is stopped as a flood: `yes`
/// writes 1 GB a second.
const FLOOD_FACTOR: u64 = 64;
/// Maximum distance in bytes that a cut moves to fall on the end of a line. Longer lines are cut
/// within.
const CUT_SLACK: usize = 1024;
/// Maximum chunks that wait for a slow reader; with [`READ_BYTES`] each, this bounds their memory.
const MAX_LIVE_CHUNKS: usize = 8;
/// Bytes of one read. A pipe holds 64 KiB by default, but most output comes in small pieces.
pub(crate) const READ_BYTES: usize = 32 * 1024;

/// An output stream of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A piece of raw output for live display. Pass it to [`clean()`](crate::clean_output()) before
/// showing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputChunk {
    /// The stream that the piece was written to.
    pub stream: OutputStream,
    /// The bytes of output, of both streams together, before this piece: more than were seen where
    /// pieces were missed.
    pub at: u64,
    /// The raw bytes.
    pub bytes: Vec<u8>,
}

/// The kept output of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturedOutput {
    /// Cleaned text; where the middle was dropped, a line says how much.
    pub text: String,
    /// Bytes the command wrote.
    pub total_bytes: u64,
    /// Bytes of those that were not kept.
    pub dropped_bytes: u64,
}

/// Head and tail of a stream of any length, in bounded memory.
struct HeadTailBuffer {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    total: u64,
}

impl HeadTailBuffer {
    fn new(limit: usize) -> Self {
        let head_limit = limit / 2;
        let tail_limit = limit - head_limit;
        Self { head: Vec::new(), tail: VecDeque::new(), head_limit, tail_limit, total: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.head_limit.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        let newest = rest.get(rest.len().saturating_sub(self.tail_limit)..).unwrap_or_default();
        let excess = (self.tail.len() + newest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..excess.min(self.tail.len()));
        self.tail.extend(newest);
    }

    /// Cleans what was kept. Each part is freed as soon as it is cleaned: of a large output nothing
    /// lies there three times.
    fn into_captured(self) -> CapturedOutput {
        let Self { mut head, mut tail, total, .. } = self;
        let kept = (head.len() + tail.len()) as u64;
        if total == kept {
            head.extend(tail);
            return CapturedOutput { text: clean_output(&head), total_bytes: total, dropped_bytes: 0 };
        }
        let (mut text, head_bytes) = {
            let cut = cut_head(&head);
            (clean_output(cut), cut.len())
        };
        drop(head);
        let cut = cut_tail(tail.make_contiguous());
        let dropped = total - (head_bytes + cut.len()) as u64;
        let end = clean_output(cut);
        drop(tail);
        let note = format!("[… {dropped} bytes left out …]\n");
        text.reserve_exact(1 + note.len() + end.len());
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&note);
        text.push_str(&end);
        CapturedOutput { text, total_bytes: total, dropped_bytes: dropped }
    }
}

/// Returns the head up to its last line's end, if one is near; else to a character's border.
fn cut_head(head: &[u8]) -> &[u8] {
    let near = head.len().saturating_sub(CUT_SLACK);
    let end = match head.iter().rposition(|&b| b == b'\n') {
        Some(at) if at >= near => at + 1,
        _ => {
            let partial = head.iter().rev().take(3).position(|&b| b >= 0xc0).map_or(0, |back| back + 1);
            if head.last().is_some_and(|&b| b >= 0x80) { head.len() - partial } else { head.len() }
        }
    };
    head.get(..end).unwrap_or(head)
}

/// Returns the tail from its first line's beginning, if one is near; else from a character's
/// border.
fn cut_tail(tail: &[u8]) -> &[u8] {
    let start = match tail.iter().take(CUT_SLACK).position(|&b| b == b'\n') {
        Some(at) => at + 1,
        None => tail.iter().take(3).take_while(|&&b| (0x80..0xc0).contains(&b)).count(),
    };
    tail.get(start..).unwrap_or(tail)
}

/// Captures both streams, separately and combined, and sends their pieces to a live reader.
pub(crate) struct OutputCollector {
    stdout: HeadTailBuffer,
    stderr: HeadTailBuffer,
    combined: HeadTailBuffer,
    /// Standard output byte for byte, and how much of it there may be; where that was asked for.
    exact: Option<(Vec<u8>, usize)>,
    flood: u64,
    live: mpsc::Sender<OutputChunk>,
    spilling: Option<SpillWriter>,
    patient: bool,
}

impl OutputCollector {
    pub(crate) fn new(
        limits: &Limits,
        streams: StdioMode,
        whole: LiveOutputMode,
    ) -> (Self, mpsc::Receiver<OutputChunk>) {
        let (live, receiver) = mpsc::channel(MAX_LIVE_CHUNKS);
        let ring = || HeadTailBuffer::new(limits.output_bytes);
        let usual = (limits.output_bytes as u64).saturating_mul(FLOOD_FACTOR);
        let flood = limits.flood_bytes.unwrap_or(usual);
        let exact = (streams == StdioMode::Exact).then(|| (Vec::new(), limits.output_bytes));
        (
            Self {
                stdout: ring(),
                stderr: ring(),
                combined: ring(),
                exact,
                flood,
                live,
                spilling: None,
                patient: whole == LiveOutputMode::Whole,
            },
            receiver,
        )
    }

    /// Sets the file that additionally takes the whole output.
    pub(crate) fn spill_to(&mut self, spilling: Option<SpillWriter>) {
        self.spilling = spilling;
    }

    /// Returns the bytes in that file, and the reason if it ended early. Output that comes after
    /// this call isn't in the file.
    pub(crate) fn finish_spill(&mut self) -> (Option<u64>, Option<Denial>) {
        match self.spilling.take().map(SpillWriter::finish) {
            Some((bytes, trouble)) => (Some(bytes), trouble),
            None => (None, None),
        }
    }

    /// Waits until a reader that must get every piece has room for one, or is gone.
    pub(crate) async fn wait_for_room(&self) {
        if self.patient {
            drop(self.live.reserve().await);
        }
    }

    /// Waits like [`wait_for_room`](Self::wait_for_room), and moves the end of the wait for output,
    /// if there is one, by the time that this took.
    pub(crate) async fn wait_for_room_before(&self, end: &mut Option<Instant>) {
        if let Some(end) = end {
            let begun = Instant::now();
            self.wait_for_room().await;
            *end += begun.elapsed();
        }
    }

    /// Captures one piece. A live reader that lags misses pieces; the capture doesn't.
    pub(crate) fn push_chunk(&mut self, stream: OutputStream, bytes: &[u8]) {
        if let Some(spilling) = &mut self.spilling {
            spilling.write(bytes);
        }
        if let (OutputStream::Stdout, Some((kept, most))) = (stream, &mut self.exact) {
            // One byte above the bound tells that there was more.
            let room = most.saturating_add(1).saturating_sub(kept.len()).min(bytes.len());
            kept.extend_from_slice(bytes.get(..room).unwrap_or_default());
            return;
        }
        match stream {
            OutputStream::Stdout => self.stdout.push(bytes),
            OutputStream::Stderr => self.stderr.push(bytes),
        }
        let at = self.combined.total;
        self.combined.push(bytes);
        if let Ok(place) = self.live.try_reserve() {
            place.send(OutputChunk { stream, at, bytes: bytes.to_vec() });
        }
    }

    /// Returns true if pieces may be taken without waiting for
    /// [`wait_for_room`](Self::wait_for_room) before each.
    pub(crate) fn can_push_without_waiting(&self) -> bool {
        !self.patient
    }

    /// Returns true if the command wrote so much that it must be stopped.
    pub(crate) fn is_flooded(&self) -> bool {
        self.combined.total > self.flood || self.exact.as_ref().is_some_and(|(kept, most)| kept.len() > *most)
    }

    /// Returns stdout, stderr, and both in the order of arrival; and stdout byte for byte, where
    /// the request asks for that.
    pub(crate) fn finish(self) -> ([CapturedOutput; 3], Vec<u8>) {
        let captured =
            [self.stdout.into_captured(), self.stderr.into_captured(), self.combined.into_captured()];
        (captured, self.exact.map(|(kept, _)| kept).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(limit: usize, pieces: &[&[u8]]) -> CapturedOutput {
        let mut ring = HeadTailBuffer::new(limit);
        pieces.iter().for_each(|piece| ring.push(piece));
        ring.into_captured()
    }

    #[test]
    fn what_fits_is_kept_whole() {
        let expected = CapturedOutput { text: "0123456789".into(), total_bytes: 10, dropped_bytes: 0 };
        assert_eq!(captured(10, &[b"01234", b"56789"]), expected);
        assert_eq!(captured(10, &[b"0123456789"]), expected);
    }

    #[test]
    fn of_more_the_middle_goes() {
        let expected = CapturedOutput {
            text: "01234\n[… 2 bytes left out …]\n789AB".into(),
            total_bytes: 12,
            dropped_bytes: 2,
        };
        assert_eq!(captured(10, &[b"0123", b"456", b"78", b"9AB"]), expected);
    }

    #[test]
    fn characters_at_the_cut_are_dropped_whole() {
        let text = "äöüäöüäöüäöü".as_bytes();
        let result = captured(10, &[text]);
        assert!(!result.text.contains('\u{fffd}'), "{}", result.text);
        assert_eq!(result.dropped_bytes, 24 - 4 - 4);
    }

    #[test]
    fn cuts_fall_on_lines() {
        let result = captured(16, &[b"one\ntwo\nthree\nfour\nfive\nsix\n"]);
        assert_eq!(result.text, "one\ntwo\n[… 16 bytes left out …]\nsix\n");
    }

    #[test]
    fn memory_stays_bounded() {
        let mut ring = HeadTailBuffer::new(1000);
        for _ in 0..10_000 {
            ring.push(&[b'x'; 777]);
        }
        assert_eq!((ring.head.len(), ring.tail.len(), ring.total), (500, 500, 7_770_000));
        assert!(ring.tail.capacity() < 4096);
    }
}
