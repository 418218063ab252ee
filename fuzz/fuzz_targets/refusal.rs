//! The reader of refusals.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| hames_model::fuzzing::refusal(input));
