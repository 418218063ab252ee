//! From the bytes of a response to an answer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| hames_model::fuzzing::answer(input));
