//! What the targets share: inputs taken apart, and what has to hold whatever comes in.
//!
//! An input is some bytes of switches, then texts divided by the unit separator (0x1f), which is no
//! character of source code. Texts may be repeated by a switch, so that what takes more than linear
//! time shows in short inputs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use journeyman_edit::{
    AllowedDifferences, ApplyOptions, EditPlan, Files, Format, MAX_FEEDBACK_BYTES, PlacedEdit, Refusal,
    ReplySource, plan, read_reply,
};
use journeyman_protocol::RelPath;
use rustix::time::{ClockId, clock_gettime};

/// What any input may take, in processor time, with checks and instrumentation on.
const BASE_TIME: Duration = Duration::from_millis(300);
/// What every byte may take beyond that: far above what linear code needs, far below what quadratic
/// code does.
const TIME_A_BYTE: Duration = Duration::from_micros(4);
/// Repeating goes up to this size, in bytes.
const MAX_REPEATED: usize = 192 << 10;

/// An input taken apart.
pub struct Input<'a> {
    switches: &'a [u8],
    texts: Vec<Cow<'a, str>>,
}

impl<'a> Input<'a> {
    /// Takes an input with so many switches apart.
    pub fn new(data: &'a [u8], switches: usize) -> Self {
        let (switches, rest) = data.split_at(switches.min(data.len()));
        let texts = rest.split(|byte| *byte == 0x1f).map(String::from_utf8_lossy).collect();
        Self { switches, texts }
    }

    /// A switch; 0 where the input has none.
    pub fn switch(&self, nth: usize) -> u8 {
        self.switches.get(nth).copied().unwrap_or(0)
    }

    /// Whether a bit of a switch is set.
    pub fn flag(&self, nth: usize, bit: u8) -> bool {
        self.switch(nth) & (1 << bit) != 0
    }

    /// A text; empty where the input has none.
    pub fn text(&self, nth: usize) -> &str {
        self.texts.get(nth).map_or("", |text| text)
    }

    /// All texts from one on.
    pub fn texts(&self, from: usize) -> impl Iterator<Item = &str> {
        self.texts.iter().skip(from).map(|text| &**text)
    }

    /// What the caller of the engine allows, by the bits of a switch.
    pub fn allow(&self, nth: usize) -> AllowedDifferences {
        let bit = |bit| self.flag(nth, bit);
        AllowedDifferences { differences: bit(0), placeholders: bit(1), spans: bit(2), broken_syntax: bit(3) }
    }
}

/// A text once, 16 or 256 times, by two bits.
pub fn repeated(text: &str, bits: u8) -> String {
    let times = [1, 1, 16, 256][usize::from(bits & 3)];
    text.repeat(times.min(MAX_REPEATED / text.len().max(1)).max(1))
}

/// Runs something that may take so long as its input is large.
pub fn timed<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let begun = now();
    let done = work();
    let took = now() - begun;
    let limit = BASE_TIME + TIME_A_BYTE * u32::try_from(bytes).unwrap_or(u32::MAX);
    assert!(took <= limit, "{bytes} bytes took {took:?}, more than {limit:?}");
    done
}

/// A path for the files of a target.
pub fn path(name: &str) -> RelPath {
    RelPath::parse(name).expect("a plain path")
}

/// What holds for a hunk that found its place: its pieces are in the text, in order, and change it.
/// That bytes outside of them stay is how they are written.
pub fn check_placed(text: &str, placed: &PlacedEdit) {
    let mut done = 0;
    for (span, _) in &placed.pieces {
        assert!(span.start >= done && span.end >= span.start, "out of order: {:?}", placed.pieces);
        assert!(text.get(span.clone()).is_some(), "{span:?} is not in the text");
        done = span.end;
    }
    assert!(!placed.pieces.is_empty(), "placed nowhere");
    assert!(placed.line >= 1);
    let new = placed.apply_to(text);
    assert_ne!(new, text, "nothing changes, and it doesn't say so");
    let first = placed.pieces[0].0.start;
    assert_eq!(new.get(..first), text.get(..first));
    assert!(new.ends_with(&text[done..]));
}

/// What holds for a refusal: its words are bounded and say something.
pub fn check_refusal(refusal: &Refusal) {
    let words = refusal.to_string();
    assert!(words.len() <= MAX_FEEDBACK_BYTES && words.len() > 20, "{} bytes: {words}", words.len());
}

/// Reads a reply in a format, and does what it says to a few files.
pub fn read_and_plan(data: &[u8], format: Option<Format>) {
    let input = Input::new(data, 2);
    let reply = repeated(input.text(0), input.switch(0));
    let names = ["a.rs", "src/b.py", "c.txt", "d/e.js"];
    let files: BTreeMap<RelPath, String> =
        names.iter().zip(input.texts(1)).map(|(name, text)| (path(name), text.to_owned())).collect();
    let named = path("a.rs");
    let finished = !input.flag(0, 2);
    let source =
        ReplySource { reply: &reply, path: input.flag(0, 3).then_some(&named), finished, files: &files };
    let size = reply.len() + files.values().map(String::len).sum::<usize>();
    let reading = timed(size, || read_reply(&source, format));
    assert_eq!(reading, read_reply(&source, format), "read twice, read otherwise");
    assert!(reading.edits.iter().all(|edit| !edit.ops.is_empty()), "an edit without a step");
    let options = ApplyOptions {
        format,
        path: source.path.cloned(),
        partial: input.flag(0, 4),
        cut_off: !finished,
        allow: input.allow(1),
    };
    // Each edit is a search through its file.
    let steps: usize = 1 + reading.edits.iter().map(|edit| edit.ops.len()).sum::<usize>();
    let planned = timed(size.saturating_mul(steps.min(64)), || plan(&reply, &options, &files));
    check_plan(&planned, &options, &files);
}

/// What holds for a plan.
pub fn check_plan(plan: &EditPlan, options: &ApplyOptions, files: &dyn Files) {
    assert!(plan.feedback().len() <= MAX_FEEDBACK_BYTES);
    assert_eq!(plan.feedback().is_empty(), plan.failed.is_empty());
    for failure in &plan.failed {
        assert!(failure.message.len() <= MAX_FEEDBACK_BYTES, "{} bytes", failure.message.len());
    }
    assert!(options.partial || plan.failed.is_empty() || plan.changes_to_write().is_empty());
    let mut taken = Vec::new();
    for change in &plan.changes {
        let there = files.text(&change.path).expect("a map's files are text").map(Cow::into_owned);
        assert_eq!(change.before, there, "not the file that there is");
        assert!(change.to.is_some() || change.before != change.after, "a change of nothing");
        if change.after.is_some() {
            let target = change.to.as_ref().unwrap_or(&change.path);
            assert!(!taken.contains(&target), "two files at {target}");
            taken.push(target);
        }
    }
}
