//! Passes each line to the readers in turn.

use journeyman_protocol::clip_to_bytes;

use super::findings::Findings;
use super::line_reader::LineReader;
use super::{
    build_tools, compilers, failure_blocks, generic, go, javascript, jvm, marked_tests, python, rust, tap,
};

/// Maximum bytes of a line that is read: longer lines are minified code or data.
const MAX_READ_LINE_BYTES: usize = 2_000;

/// A reader of each format.
pub(super) type LineReaders = [Box<dyn LineReader>; 11];

/// Returns the readers of lines, in the order in which they get each line.
pub(super) fn new_line_readers() -> LineReaders {
    [
        Box::new(compilers::CompilerReader::default()),
        Box::new(rust::RustReader::default()),
        Box::new(python::PythonReader::default()),
        Box::new(go::GoReader::default()),
        Box::new(jvm::JvmReader::default()),
        Box::new(failure_blocks::FailureBlockReader::default()),
        Box::new(marked_tests::MarkedTestReader::default()),
        Box::new(tap::TapReader::default()),
        Box::new(javascript::JavaScriptReader::default()),
        Box::new(build_tools::BuildToolReader::default()),
        Box::new(generic::GenericReader),
    ]
}

/// Reads the lines of a text that holds no documents.
pub(super) fn read_lines(text: &str, findings: &mut Findings<'_>) {
    let mut readers = new_line_readers();
    for line in text.lines() {
        read_line(line, &mut readers, findings);
    }
    for reader in &mut readers {
        reader.finish(findings);
    }
}

/// Passes a line to each reader in turn, until one claims it.
pub(super) fn read_line(line: &str, readers: &mut LineReaders, findings: &mut Findings<'_>) {
    let line = clip_to_bytes(line.trim_end(), MAX_READ_LINE_BYTES);
    findings.note_directory(line);
    for reader in readers {
        if reader.read_line(line, findings) {
            break;
        }
    }
}
