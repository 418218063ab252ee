//! The reader of server-sent events.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| hames_model::fuzzing::sse(input));
