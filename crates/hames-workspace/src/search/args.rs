//! Arguments as both tools read them. The door has validated and mended them; what is still odd counts as absent.

use serde_json::Value;

pub(super) struct Args<'a>(pub(super) &'a Value);

impl<'a> Args<'a> {
    /// Text; empty where absent.
    pub(super) fn text(&self, key: &str) -> &'a str {
        self.0.get(key).and_then(Value::as_str).unwrap_or("")
    }

    /// The search path: the workspace where absent or blank.
    pub(super) fn path(&self) -> &'a str {
        match self.text("path") {
            path if path.trim().is_empty() => ".",
            path => path,
        }
    }

    /// A count, where given and not negative.
    pub(super) fn count(&self, key: &str) -> Option<usize> {
        self.0.get(key).and_then(Value::as_u64).map(|n| usize::try_from(n).unwrap_or(usize::MAX))
    }

    /// A switch; off where absent.
    pub(super) fn flag(&self, key: &str) -> bool {
        self.0.get(key).and_then(Value::as_bool).unwrap_or(false)
    }
}
