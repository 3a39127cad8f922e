//! What checks print and report: a text as output, the others as reports.

#![no_main]

use journeyman_fuzz::{Input, timed};
use journeyman_protocol::RelPath;
use journeyman_verify::diagnostics::{MAX_DIAGNOSTICS, read_output};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let input = Input::new(data, 1);
    let reports: Vec<String> = input.texts(1).map(str::to_owned).collect();
    let locate = |path: &str| RelPath::parse(path).ok();
    let readings = timed(data.len(), || read_output(input.text(0), &reports, &locate));
    assert!(readings.diagnostics.len() <= MAX_DIAGNOSTICS);
    for one in &readings.diagnostics {
        let words = [&one.code, &one.test, &one.expected, &one.actual];
        assert!(words.iter().all(|word| word.as_ref().is_none_or(|word| word.len() <= 300)));
        assert!(one.message.len() <= 600 && one.line != Some(0));
    }
});
