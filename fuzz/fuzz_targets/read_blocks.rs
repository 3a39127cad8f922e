//! Replies in the format `blocks`.

#![no_main]

use journeyman_edit::Format;
use journeyman_fuzz::read_and_plan;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| read_and_plan(data, Some(Format::Blocks)));
