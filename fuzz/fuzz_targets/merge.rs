//! A hunk for a version that isn't the present one.

#![no_main]

use journeyman_edit::{Hunk, Strategy, find_place};
use journeyman_fuzz::{Input, check_placed, check_refusal, repeated, timed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let input = Input::new(data, 2);
    let base = repeated(input.text(0), input.switch(0));
    let text = repeated(input.text(1), input.switch(0) >> 2);
    let hunk = Hunk {
        base: Some(&base),
        all: input.flag(1, 0),
        whole_lines: input.flag(1, 1),
        ..Hunk::new(input.text(2), input.text(3))
    };
    match timed(text.len() + base.len(), || find_place(&text, &hunk)) {
        Ok(placed) => {
            check_placed(&text, &placed);
            if placed.strategy == Strategy::Merge {
                // Nothing goes that the model wasn't shown.
                for (span, _) in &placed.pieces {
                    assert!(text[span.clone()].split_inclusive('\n').all(|line| base.contains(line)));
                }
            }
        }
        Err(refusal) => check_refusal(&refusal),
    }
});
