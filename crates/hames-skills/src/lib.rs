//! What a project tells its agent.
//!
//! For now that is instruction files: [`load_instructions`] reads every `AGENTS.md` (else `CLAUDE.md`) from the
//! repository's root down to the session's folder. It reads those files and nothing else; where they go is decided
//! elsewhere.
//!
//! ```
//! let folder = tempfile::tempdir().unwrap();
//! std::fs::write(folder.path().join("AGENTS.md"), "Use tabs.").unwrap();
//! let found = hames_skills::load_instructions(folder.path());
//! assert_eq!(found[0].text, "Use tabs.");
//! ```

mod instructions;

pub use instructions::{Instructions, MAX_INSTRUCTION_BYTES, load_instructions};
