//! Finding out where a path leads: links, `.` and `..` resolved the way the kernel does it, as far as the path exists.
//!
//! The answer is a path without links. It grants nothing: the kernel is asked again, following no link, when the path
//! is used ([`sys`]).

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};

use hames_tools::FileKind;
use rustix::io::Errno;
use unicode_normalization::UnicodeNormalization;

use super::sys::{self, Meta};

/// Links on the way to a file; the kernel's own limit is 40.
pub(super) const MAX_LINKS: u32 = 40;

/// Names looked through for a look-alike. A folder with more is not searched to its end.
const MAX_NAMES: usize = 50_000;

/// Where a path leads.
#[derive(Debug)]
pub(super) struct Place {
    /// Absolute, without links as far as it exists.
    pub(super) path: PathBuf,
    /// What is there.
    pub(super) meta: Option<Meta>,
}

/// What becomes of a link at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It is followed.
    Followed,
    /// The link itself is meant.
    Named,
}

/// What is looked at on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Whatever the path leads through.
    Everything,
    /// Only what lies beneath the base or above it: where the path leaves that, the answer is the place it leaves for.
    Beneath,
}

/// Resolves `path`, which is absolute or relative to `base`; `base` itself has no links. A component that does not
/// exist but looks like exactly one that does stands for that one.
pub(super) fn resolve(base: &Path, path: &Path, ending: Ending, reach: Reach) -> io::Result<Place> {
    let mut at = if path.is_absolute() { PathBuf::from("/") } else { base.to_path_buf() };
    let mut rest: VecDeque<OsString> = parts(path).collect();
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        if reach == Reach::Beneath && !next.starts_with(base) && !base.starts_with(&next) {
            return Ok(Place { path: next, meta: None });
        }
        match sys::stat_path(&next) {
            Ok(_) if ending == Ending::Named && rest.is_empty() => at = next,
            Ok(meta) if meta.kind == FileKind::Link => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP.into());
                }
                let target = std::fs::read_link(&next)?;
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
                    rest.push_front(part);
                }
            }
            Ok(_) => at = next,
            Err(error) if error.kind() == io::ErrorKind::NotFound => match look_alike(&at, &part) {
                Some(name) => rest.push_front(name),
                None => at = next,
            },
            Err(error) => return Err(error),
        }
    }
    let meta = sys::stat_path(&at).ok();
    Ok(Place { path: at, meta })
}

/// The components that move: names and `..`.
pub(super) fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

/// The one name in `folder` that looks like `name`, where there is exactly one.
fn look_alike(folder: &Path, name: &OsStr) -> Option<OsString> {
    let name = name.to_str().filter(|name| may_be_alike(name))?;
    alike(name, std::fs::read_dir(folder).ok()?.filter_map(Result::ok).map(|entry| entry.file_name()))
}

/// Whether a name can be written in another way too: only a blank or a character beyond ASCII can.
pub(super) fn may_be_alike(name: &str) -> bool {
    name.chars().any(|c| c == ' ' || !c.is_ascii())
}

/// The one among `others` that looks like `name`, where there is exactly one.
pub(super) fn alike(name: &str, others: impl Iterator<Item = OsString>) -> Option<OsString> {
    let wanted = folded(name);
    let mut alike = others.take(MAX_NAMES).filter(|other| folded(&other.to_string_lossy()) == wanted);
    let found = alike.next()?;
    alike.next().is_none().then_some(found)
}

/// A name with every kind of blank as an ordinary one, and composed.
fn folded(name: &str) -> String {
    name.nfc().map(|c| if is_blank(c) { ' ' } else { c }).collect()
}

/// Blanks that one cannot tell from an ordinary one.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}
