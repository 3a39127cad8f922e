//! A reply that comes in pieces is read as the whole one is.

#![no_main]

use std::collections::BTreeMap;

use journeyman_edit::{Format, Reader, Source, read};
use journeyman_fuzz::{Input, path, repeated, timed};
use journeyman_protocol::RelPath;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let input = Input::new(data, 2);
    let reply = repeated(input.text(0), input.switch(0));
    let named = input.flag(0, 3).then(|| path("a.rs"));
    let files: BTreeMap<RelPath, String> = [(path("a.rs"), input.text(1).to_owned())].into();
    let format = Format::ALL.get(usize::from(input.switch(1) & 7)).copied();
    let most = usize::from(input.switch(1) >> 3) * 7 + 1;
    let cut_off = input.flag(0, 2);
    // Each part is a call of its own.
    let reading = timed(reply.len() * 4, || {
        let mut reader = Reader::new(format, named.clone(), &files);
        let mut rest = reply.as_str();
        while !rest.is_empty() {
            let mut at = most.min(rest.len());
            while !rest.is_char_boundary(at) {
                at += 1;
            }
            let (part, further) = rest.split_at(at);
            reader.push(part);
            rest = further;
        }
        reader.finish(cut_off)
    });
    let source = Source { reply: &reply, path: named.as_ref(), finished: !cut_off, files: &files };
    assert_eq!(reading, read(&source, format));
});
