//! What a test or a bench counted, for whoever looks and for the reports of `cargo xtask`.

use std::fs::File;
use std::io::Write;

use serde_json::Value;

/// Names the file that gets a line for everything that is counted.
pub const COUNTED: &str = "HAMES_SOAK_REPORT";

/// Prints figures, and appends them as a line of JSON to the file that [`COUNTED`] names, where it does.
///
/// # Panics
///
/// Where that file cannot be written: a report that lacks figures would say nothing of it.
#[allow(clippy::print_stdout)] // figures are for whoever looks
pub fn counted(figures: &Value) {
    println!("{figures}");
    if let Some(path) = std::env::var_os(COUNTED) {
        let file = File::options().append(true).create(true).open(&path);
        let written = file.and_then(|mut file| writeln!(file, "{figures}"));
        assert!(written.is_ok(), "{} cannot be written: {written:?}", path.display());
    }
}
