//! One hunk with every hint, in a text.

#![no_main]

use journeyman_edit::{Hunk, find_place};
use journeyman_fuzz::{Input, check_placed, check_refusal, repeated, timed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let input = Input::new(data, 5);
    let text = repeated(input.text(0), input.switch(0));
    let search = repeated(input.text(1), input.switch(0) >> 2);
    let anchors: Vec<String> = input.texts(3).take(3).map(str::to_owned).collect();
    let hunk = Hunk {
        all: input.flag(1, 0),
        whole_lines: input.flag(1, 1),
        at_end: input.flag(1, 2),
        near: input.flag(1, 3).then(|| u32::from(input.switch(2))),
        after: input.flag(1, 4).then(|| usize::from(input.switch(3))),
        anchors: if input.flag(1, 5) { &anchors } else { &[] },
        allow: input.allow(4),
        ..Hunk::new(&search, input.text(2))
    };
    match timed(text.len() + search.len(), || find_place(&text, &hunk)) {
        Ok(placed) => check_placed(&text, &placed),
        Err(refusal) => timed(0, || check_refusal(&refusal)),
    }
});
