//! Instruction files: which ones count, in which order, and how much of each.
//!
//! From the repository's root (the nearest ancestor that holds `.git`) down to the session's folder, root first, one
//! file a folder, each file once however many links lead to it, nothing above the root. Without a repository only the
//! session's own folder counts. A link that leads out of the root does not count: whoever wrote the repository would
//! choose which of the user's files are sent.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of one file that enter the head. A longer file is cut and says so.
pub const MAX_INSTRUCTION_BYTES: u64 = 32 * 1024;
/// Bytes read of a file at most, so that its hash covers what any sane instruction file has.
const MAX_READ_BYTES: u64 = 8 * 1024 * 1024;
/// In one folder the first of these that is there counts.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// One instruction file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instructions {
    /// Absolute path, as found.
    pub path: PathBuf,
    /// Its text, at most [`MAX_INSTRUCTION_BYTES`] of it plus a line that says so where it was cut.
    pub text: String,
    /// Lower-case hex of BLAKE3 of the content, of its first 8 MB where there is more.
    pub hash: String,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Bytes left out.
    pub dropped: u64,
}

/// The instruction files that hold for a folder, outermost first. A file that cannot be read is left out.
pub fn load_instructions(folder: &Path) -> Vec<Instructions> {
    let root = folder.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(folder);
    let mut folders: Vec<&Path> = folder.ancestors().take_while(|dir| dir.starts_with(root)).collect();
    folders.reverse();
    let Ok(real_root) = root.canonicalize() else { return Vec::new() };
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for dir in folders {
        let candidate = NAMES.iter().map(|name| dir.join(name)).find(|path| path.is_file());
        let Some(path) = candidate else { continue };
        let Ok(real) = path.canonicalize() else { continue };
        if real.starts_with(&real_root) && seen.insert(real.clone()) {
            found.extend(read(path, &real));
        }
    }
    found
}

/// `real` is what was checked, so it is what is opened.
fn read(path: PathBuf, real: &Path) -> Option<Instructions> {
    let file = File::open(real).ok()?;
    let bytes = file.metadata().ok()?.len();
    let mut content = Vec::new();
    file.take(MAX_READ_BYTES).read_to_end(&mut content).ok()?;
    let hash = blake3::hash(&content).to_hex().to_string();
    let limit = usize::try_from(MAX_INSTRUCTION_BYTES).unwrap_or(usize::MAX);
    let kept = &content[..content.len().min(limit)];
    // A character cut in half at the limit is dropped, not shown as damage.
    let kept = match std::str::from_utf8(kept) {
        Err(error) if error.error_len().is_none() => &kept[..error.valid_up_to()],
        _ => kept,
    };
    let dropped = bytes.saturating_sub(kept.len() as u64);
    let text = String::from_utf8_lossy(kept);
    let mut text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
    if text.trim().is_empty() {
        return None;
    }
    if dropped > 0 {
        text.push_str(&format!("\n[{dropped} more bytes of this file were left out; read it for the rest]"));
    }
    Some(Instructions { path, text, hash, bytes, dropped })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn names(found: &[Instructions]) -> Vec<&str> {
        found.iter().map(|i| i.text.as_str()).collect()
    }

    #[test]
    fn files_count_from_the_repository_root_down_and_none_above() {
        let top = tempfile::tempdir().unwrap();
        let repo = top.path().join("repo");
        fs::create_dir_all(repo.join("a/b/c")).unwrap();
        fs::create_dir(repo.join(".git")).unwrap();
        for (path, text) in
            [("AGENTS.md", "X"), ("repo/AGENTS.md", "R"), ("repo/a/AGENTS.md", "A"), ("repo/a/b/AGENTS.md", "B")]
        {
            fs::write(top.path().join(path), text).unwrap();
        }
        for (folder, expected) in [
            ("repo", vec!["R"]),
            ("repo/a", vec!["R", "A"]),
            ("repo/a/b", vec!["R", "A", "B"]),
            ("repo/a/b/c", vec!["R", "A", "B"]),
        ] {
            assert_eq!(names(&load_instructions(&top.path().join(folder))), expected, "{folder}");
        }
    }

    #[test]
    fn a_worktree_whose_git_is_a_file_is_a_repository_too() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("sub")).unwrap();
        fs::write(top.path().join(".git"), "gitdir: elsewhere").unwrap();
        fs::write(top.path().join("AGENTS.md"), "R").unwrap();
        assert_eq!(names(&load_instructions(&top.path().join("sub"))), ["R"]);
    }

    #[test]
    fn without_a_repository_only_the_folder_itself_counts() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("sub")).unwrap();
        fs::write(top.path().join("AGENTS.md"), "X").unwrap();
        fs::write(top.path().join("sub/CLAUDE.md"), "C").unwrap();
        assert_eq!(names(&load_instructions(&top.path().join("sub"))), ["C"]);
    }

    #[test]
    fn a_file_linked_twice_counts_once_and_agents_md_goes_before_claude_md() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join(".git")).unwrap();
        fs::create_dir(top.path().join("a")).unwrap();
        fs::write(top.path().join("AGENTS.md"), "R").unwrap();
        fs::write(top.path().join("CLAUDE.md"), "C").unwrap();
        symlink("../AGENTS.md", top.path().join("a/AGENTS.md")).unwrap();
        assert_eq!(names(&load_instructions(&top.path().join("a"))), ["R"]);
    }

    #[test]
    fn a_link_counts_only_where_it_stays_below_the_root() {
        let top = tempfile::tempdir().unwrap();
        let repo = top.path().join("repo");
        fs::create_dir_all(repo.join(".git")).unwrap();
        fs::create_dir_all(repo.join("docs")).unwrap();
        fs::create_dir_all(top.path().join("repo-other")).unwrap();
        fs::write(repo.join("docs/rules.md"), "rules").unwrap();
        for outside in ["secret", "repo-other/secret"] {
            fs::write(top.path().join(outside), "secret").unwrap();
        }
        symlink(top.path(), repo.join("up")).unwrap();
        symlink("../secret", repo.join("hop")).unwrap();
        let absolute = top.path().join("secret");
        for (target, expected) in [
            (Path::new("docs/rules.md"), vec!["rules"]),
            (Path::new("docs/../docs/rules.md"), vec!["rules"]),
            (Path::new("../repo/docs/rules.md"), vec!["rules"]),
            (&repo.join("docs/rules.md"), vec!["rules"]),
            (Path::new("../secret"), vec![]),
            (&absolute, vec![]),
            (Path::new("../repo-other/secret"), vec![]),
            (Path::new("up/secret"), vec![]),
            (Path::new("hop"), vec![]),
            (Path::new("/proc/self/environ"), vec![]),
            (Path::new("AGENTS.md"), vec![]),
        ] {
            let link = repo.join("AGENTS.md");
            symlink(target, &link).unwrap();
            assert_eq!(names(&load_instructions(&repo)), expected, "{}", target.display());
            fs::remove_file(link).unwrap();
        }
    }

    #[test]
    fn a_long_file_is_cut_between_characters_and_says_so() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("AGENTS.md"), format!("a{}", "漢".repeat(70_000))).unwrap();
        let found = load_instructions(top.path());
        assert!(found[0].text.contains("more bytes of this file were left out"));
        assert!(!found[0].text.contains('\u{fffd}'));
        assert_eq!(found[0].bytes, 210_001);
        assert!(found[0].dropped >= 210_001 - MAX_INSTRUCTION_BYTES);
    }

    #[test]
    fn odd_files_are_left_out_or_read_without_harm() {
        let cases: Vec<(Vec<u8>, Option<&str>)> = vec![
            (b"".to_vec(), None),
            (b" \r\n\t".to_vec(), None),
            (b"\xef\xbb\xbfBOM".to_vec(), Some("BOM")),
            (b"bad \xff byte".to_vec(), Some("bad \u{fffd} byte")),
            (b"crlf\r\nstays".to_vec(), Some("crlf\r\nstays")),
        ];
        for (content, expected) in cases {
            let top = tempfile::tempdir().unwrap();
            fs::write(top.path().join("AGENTS.md"), &content).unwrap();
            let found = load_instructions(top.path());
            assert_eq!(found.first().map(|i| i.text.as_str()), expected, "{content:?}");
        }
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("AGENTS.md")).unwrap();
        symlink("nowhere", top.path().join("CLAUDE.md")).unwrap();
        assert!(load_instructions(top.path()).is_empty());
    }
}
