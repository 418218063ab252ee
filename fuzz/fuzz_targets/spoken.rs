//! The reader of calls spoken as text.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| hames_model::fuzzing::spoken(input));
