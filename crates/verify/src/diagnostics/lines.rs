//! Passes each line to the readers in turn.

use journeyman_protocol::clip_to_bytes;

use super::findings::Findings;
use super::reader::Reader;
use super::{generic, go, javascript, jvm, python, rust, sections};

/// Maximum bytes of a line that is read: longer lines are minified code or data.
const MAX_LINE_BYTES: usize = 2_000;

/// A reader of each format.
pub(super) type Readers = [Box<dyn Reader>; 7];

/// Returns the readers of lines, in the order in which they get each line.
pub(super) fn readers() -> Readers {
    [
        Box::new(rust::Rust::default()),
        Box::new(python::Python::default()),
        Box::new(go::Go::default()),
        Box::new(jvm::Jvm::default()),
        Box::new(sections::Sections::default()),
        Box::new(javascript::JavaScript::default()),
        Box::new(generic::Generic),
    ]
}

/// Reads the lines of a text that holds no documents.
pub(super) fn read_lines(text: &str, findings: &mut Findings<'_>) {
    let mut readers = readers();
    for line in text.lines() {
        read_line(line, &mut readers, findings);
    }
    for reader in &mut readers {
        reader.finish(findings);
    }
}

/// Passes a line to each reader in turn, until one claims it.
pub(super) fn read_line(line: &str, readers: &mut Readers, findings: &mut Findings<'_>) {
    let line = clip_to_bytes(line.trim_end(), MAX_LINE_BYTES);
    for reader in readers {
        if reader.line(line, findings) {
            break;
        }
    }
}
