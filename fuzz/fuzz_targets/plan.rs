//! Whole replies, whatever format they seem to be written in.

#![no_main]

use journeyman_fuzz::read_and_plan;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| read_and_plan(data, None));
