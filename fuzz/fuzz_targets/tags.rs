//! The splitter of thinking tags.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| hames_model::fuzzing::tags(input));
