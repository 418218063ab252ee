//! What has to be done to the disk for a set of proposals, in which order, and what speaks against it: pure.
//!
//! Content is never missing in between: what is written comes first, then what is removed, folders last and the deepest of
//! them first, then what takes the place of something that is gone by now, and folders that nothing is in.

use std::collections::BTreeMap;

use hames_protocol::{BlobRef, ChangeKind, Proposal};
use hames_tools::Expect;

use super::select::{Picked, folders_above};

/// What was found on disk at a path, links not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    File {
        hash: String,
    },
    Link {
        hash: String,
    },
    Folder {
        names: Vec<String>,
    },
    /// A socket, pipe or device.
    Other,
    /// It cannot be looked at, for this reason.
    Unusable(String),
}

/// How strictly the disk has to be what the proposals were made against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    /// Nothing has been done yet.
    Fresh,
    /// It was begun and cut: what had to make room may be gone already.
    UnderWay,
}

/// A path that is neither as a proposal expects it nor as it would leave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The path, absolute.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A file that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Writing {
    pub(super) path: String,
    pub(super) content: BlobRef,
    pub(super) expect: Expect,
    /// For a new file.
    pub(super) mode: Option<u32>,
}

/// Something that is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Removal {
    pub(super) path: String,
    pub(super) expect: Expect,
}

/// What to do, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) writings: Vec<Writing>,
    /// Folders last, the deepest of them first.
    pub(super) removals: Vec<Removal>,
    /// Files in the place of something removed, or below it.
    pub(super) late: Vec<Writing>,
    /// Folders that have to be there in the end, outer ones first.
    pub(super) folders: Vec<String>,
    /// What is on disk already as it is proposed.
    pub(super) done: Vec<String>,
}

/// Plans, and lists everything that speaks against it. What is not listed can be done without the rest.
pub(super) fn plan(picked: &Picked, found: &BTreeMap<String, Found>, strictness: Strictness) -> (Plan, Vec<Mismatch>) {
    let mut planner = Planner { picked, found, strictness, verdicts: BTreeMap::new() };
    // Folders are judged by what they hold, and what lies below something by that, so the order is from below for
    // the ones and from above for the others: each asks for what it needs.
    for path in picked.proposals.keys() {
        planner.judge(path);
    }
    planner.plan()
}

/// What is there already as it is proposed, in order: files, removals, and folders that were made for files.
pub(super) fn made(picked: &Picked, found: &BTreeMap<String, Found>) -> Vec<String> {
    let is_folder = |path: &String| matches!(found.get(path), Some(Found::Folder { .. }));
    let mut made = plan(picked, found, Strictness::Fresh).0.done;
    // What has made room for a folder is not all there is to be at its path.
    made.retain(|path| !picked.folders.contains(path) || is_folder(path));
    let folders = picked.folders.iter().filter(|path| !picked.proposals.contains_key(*path) && is_folder(path));
    made.extend(folders.cloned());
    made.sort_unstable();
    made
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    ToDo,
    Done,
    Wrong(String),
}

struct Planner<'a> {
    picked: &'a Picked,
    found: &'a BTreeMap<String, Found>,
    strictness: Strictness,
    verdicts: BTreeMap<String, Verdict>,
}

impl<'a> Planner<'a> {
    fn judge(&mut self, path: &str) -> Verdict {
        if let Some(known) = self.verdicts.get(path) {
            return known.clone();
        }
        let verdict = match self.picked.proposals.get(path) {
            Some(proposal) => self.weigh(path, proposal),
            None => Verdict::Done,
        };
        self.verdicts.insert(path.to_owned(), verdict.clone());
        verdict
    }

    fn weigh(&mut self, path: &str, proposal: &Proposal) -> Verdict {
        if let Some(above) = self.in_the_way(path) {
            return match self.judge(&above) {
                Verdict::Wrong(_) => Verdict::Wrong(format!("{above} is in its way and cannot go")),
                _ => Verdict::ToDo,
            };
        }
        let found = self.found.get(path).unwrap_or(&Found::Nothing);
        let wanted = proposal.content.as_ref().map(|content| content.hash.as_str());
        let base = proposal.base.as_deref();
        let under_way = self.strictness == Strictness::UnderWay;
        match (proposal.kind, found) {
            (_, Found::Unusable(why)) => Verdict::Wrong(why.clone()),
            (ChangeKind::File, Found::File { hash }) if Some(hash.as_str()) == base => Verdict::ToDo,
            (ChangeKind::Link, Found::Link { hash }) if Some(hash.as_str()) == base => Verdict::ToDo,
            (ChangeKind::Dir, Found::Folder { names }) => self.emptied(path, names),
            (_, Found::File { hash }) if Some(hash.as_str()) == wanted => Verdict::Done,
            // The folder that takes its place is there.
            (_, Found::Folder { .. }) if wanted.is_none() && self.picked.folders.contains(path) => Verdict::Done,
            (_, Found::Nothing) if wanted.is_none() => Verdict::Done,
            (_, Found::Nothing) if proposal.is_new() || (under_way && proposal.takes_a_place()) => Verdict::ToDo,
            (kind, found) => Verdict::Wrong(wrong_at(kind, proposal.is_new(), found)),
        }
    }

    /// A file or link above that goes in the same set, and is still there.
    fn in_the_way(&self, path: &str) -> Option<String> {
        let is_there = |path: &str| !matches!(self.found.get(path), None | Some(Found::Nothing | Found::Folder { .. }));
        let above = folders_above(path).find(|above| self.picked.proposals.contains_key(*above) && is_there(above))?;
        Some(above.to_owned())
    }

    /// Whether everything in a folder goes.
    fn emptied(&mut self, path: &str, names: &[String]) -> Verdict {
        for name in names {
            let entry = format!("{path}/{name}");
            let goes = self.picked.proposals.get(&entry).is_some_and(|proposal| proposal.content.is_none());
            if !goes {
                return Verdict::Wrong(format!("the folder holds {name}, which is not to be removed"));
            }
            if let Verdict::Wrong(_) = self.judge(&entry) {
                return Verdict::Wrong(format!("the folder holds {name}, which cannot be removed"));
            }
        }
        Verdict::ToDo
    }

    fn plan(self) -> (Plan, Vec<Mismatch>) {
        let mut plan = Plan::default();
        let mut wrong = Vec::new();
        let mut folders_removed = Vec::new();
        for (path, verdict) in &self.verdicts {
            let Some(proposal) = self.picked.proposals.get(path) else { continue };
            match verdict {
                Verdict::Wrong(reason) => wrong.push(Mismatch { path: path.clone(), reason: reason.clone() }),
                Verdict::Done => plan.done.push(path.clone()),
                Verdict::ToDo => {
                    let is_there = !matches!(self.found.get(path), None | Some(Found::Nothing));
                    let goes = is_there && (proposal.content.is_none() || proposal.takes_a_place());
                    let removal = |expect| Removal { path: path.clone(), expect };
                    match (goes, proposal.kind, &proposal.base) {
                        (true, ChangeKind::Dir, _) => folders_removed.push(removal(Expect::Dir)),
                        (true, _, Some(base)) => plan.removals.push(removal(Expect::Hash(base.clone()))),
                        _ => {}
                    }
                    if let Some(content) = &proposal.content {
                        self.write(path, proposal, content, &mut plan);
                    } else if !is_there {
                        plan.done.push(path.clone());
                    }
                }
            }
        }
        // Paths are in order, so a folder comes before what it holds.
        plan.removals.extend(folders_removed.into_iter().rev());
        for path in &self.picked.folders {
            match self.found.get(path) {
                None | Some(Found::Nothing | Found::Folder { .. }) => plan.folders.push(path.clone()),
                _ if self.picked.proposals.contains_key(path) || self.in_the_way(path).is_some() => {
                    plan.folders.push(path.clone());
                }
                Some(found) => {
                    let reason = wrong_at(ChangeKind::File, true, found);
                    wrong.push(Mismatch { path: path.clone(), reason });
                }
            }
        }
        (plan, wrong)
    }

    fn write(&self, path: &str, proposal: &Proposal, content: &BlobRef, plan: &mut Plan) {
        let (content, path) = (content.clone(), path.to_owned());
        let is_edit = !proposal.is_new() && !proposal.takes_a_place();
        match &proposal.base {
            Some(base) if is_edit => {
                plan.writings.push(Writing { path, content, expect: Expect::Hash(base.clone()), mode: None });
            }
            _ => {
                let room_is_made = proposal.takes_a_place() || self.in_the_way(&path).is_some();
                let writing = Writing { path, content, expect: Expect::Absent, mode: proposal.mode };
                if room_is_made { plan.late.push(writing) } else { plan.writings.push(writing) }
            }
        }
    }
}

/// What is wrong, in words.
fn wrong_at(kind: ChangeKind, is_new: bool, found: &Found) -> String {
    let before = match kind {
        _ if is_new => "nothing",
        ChangeKind::File => "a file",
        ChangeKind::Link => "a link",
        ChangeKind::Dir => "a folder",
    };
    let now = match found {
        Found::Nothing => return format!("{before} was there, and it is gone"),
        Found::File { .. } if kind == ChangeKind::File && !is_new => return "its content has changed since".into(),
        Found::Link { .. } if kind == ChangeKind::Link => return "the link leads elsewhere since".into(),
        Found::File { .. } => "a file",
        Found::Link { .. } => "a link",
        Found::Folder { .. } => "a folder",
        Found::Other => "a pipe, socket or device",
        Found::Unusable(why) => return why.clone(),
    };
    format!("{before} was there, and now {now} is")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "base";
    const NEW: &str = "new";

    fn proposal(kind: ChangeKind, base: Option<&str>, content: Option<&str>) -> Proposal {
        Proposal {
            call_id: "c".into(),
            at: 0,
            kind,
            base: base.map(String::from),
            base_mode: base.map(|_| 0o644),
            content: content.map(|hash| BlobRef { hash: hash.into(), bytes: 1, dropped: 0, name: None }),
            mode: base.map(|_| 0o644),
        }
    }

    fn file(hash: &str) -> Found {
        Found::File { hash: hash.into() }
    }

    fn link(hash: &str) -> Found {
        Found::Link { hash: hash.into() }
    }

    fn folder(names: &[&str]) -> Found {
        Found::Folder { names: names.iter().map(|name| (*name).into()).collect() }
    }

    /// A plan in one line: what is written, removed, written late, made, done already, and what speaks against it.
    fn planned(proposals: &[(&str, Proposal)], folders: &[&str], found: &[(&str, Found)], how: Strictness) -> String {
        let picked = Picked {
            proposals: proposals.iter().map(|(path, proposal)| ((*path).into(), proposal.clone())).collect(),
            folders: folders.iter().map(|path| (*path).into()).collect(),
        };
        let found = found.iter().map(|(path, found)| ((*path).into(), found.clone())).collect();
        let (plan, wrong) = plan(&picked, &found, how);
        let mut out = Vec::new();
        out.extend(plan.writings.iter().map(|writing| format!("write {}", writing.path)));
        out.extend(plan.removals.iter().map(|removal| format!("remove {}", removal.path)));
        out.extend(plan.late.iter().map(|writing| format!("late {}", writing.path)));
        out.extend(plan.folders.iter().map(|path| format!("folder {path}")));
        out.extend(plan.done.iter().map(|path| format!("done {path}")));
        out.extend(wrong.iter().map(|wrong| format!("wrong {}: {}", wrong.path, wrong.reason)));
        out.join("; ")
    }

    #[test]
    fn each_kind_of_proposal_is_held_against_what_is_there() {
        use ChangeKind::{Dir, File, Link};
        use Strictness::{Fresh, UnderWay};
        let anew = Proposal { mode: None, ..proposal(File, Some(BASE), Some(NEW)) };
        for (what, found, fresh, under_way) in [
            (proposal(File, None, Some(NEW)), Found::Nothing, "write /a", "write /a"),
            (proposal(File, None, Some(NEW)), file(NEW), "done /a", "done /a"),
            (proposal(File, None, Some(NEW)), file("x"), "wrong /a: nothing was there, and now a file is", ""),
            (proposal(File, None, Some(NEW)), folder(&[]), "wrong /a: nothing was there, and now a folder is", ""),
            (proposal(File, Some(BASE), Some(NEW)), file(BASE), "write /a", "write /a"),
            (proposal(File, Some(BASE), Some(NEW)), file(NEW), "done /a", "done /a"),
            (proposal(File, Some(BASE), Some(NEW)), file("x"), "wrong /a: its content has changed since", ""),
            (proposal(File, Some(BASE), Some(NEW)), Found::Nothing, "wrong /a: a file was there, and it is gone", ""),
            (proposal(File, Some(BASE), Some(NEW)), link("x"), "wrong /a: a file was there, and now a link is", ""),
            (proposal(File, Some(BASE), None), file(BASE), "remove /a", "remove /a"),
            (proposal(File, Some(BASE), None), Found::Nothing, "done /a", "done /a"),
            (proposal(File, Some(BASE), None), file("x"), "wrong /a: its content has changed since", ""),
            (anew.clone(), file(BASE), "remove /a; late /a", "remove /a; late /a"),
            (anew.clone(), Found::Nothing, "wrong /a: a file was there, and it is gone", "late /a"),
            (anew.clone(), file(NEW), "done /a", "done /a"),
            (proposal(Link, Some(BASE), None), link(BASE), "remove /a", "remove /a"),
            (proposal(Link, Some(BASE), None), link("x"), "wrong /a: the link leads elsewhere since", ""),
            (proposal(Link, Some(BASE), None), Found::Nothing, "done /a", "done /a"),
            (proposal(Link, Some(BASE), Some(NEW)), link(BASE), "remove /a; late /a", "remove /a; late /a"),
            (
                proposal(Link, Some(BASE), Some(NEW)),
                Found::Nothing,
                "wrong /a: a link was there, and it is gone",
                "late /a",
            ),
            (proposal(Link, Some(BASE), Some(NEW)), file(NEW), "done /a", "done /a"),
            (proposal(Dir, None, None), folder(&[]), "remove /a", "remove /a"),
            (proposal(Dir, None, None), Found::Nothing, "done /a", "done /a"),
            (proposal(Dir, None, None), file("x"), "wrong /a: a folder was there, and now a file is", ""),
            (proposal(Dir, None, None), folder(&["x"]), "wrong /a: the folder holds x, which is not to be removed", ""),
            (proposal(Dir, None, Some(NEW)), folder(&[]), "remove /a; late /a", "remove /a; late /a"),
            (proposal(Dir, None, Some(NEW)), Found::Nothing, "wrong /a: a folder was there, and it is gone", "late /a"),
            (proposal(File, None, Some(NEW)), Found::Unusable("why".into()), "wrong /a: why", ""),
            (
                proposal(File, Some(BASE), None),
                Found::Other,
                "wrong /a: a file was there, and now a pipe, socket or device is",
                "",
            ),
        ] {
            let under_way = if under_way.is_empty() { fresh } else { under_way };
            let of = |how| planned(&[("/a", what.clone())], &[], &[("/a", found.clone())], how);
            assert_eq!((of(Fresh).as_str(), of(UnderWay).as_str()), (fresh, under_way), "{what:?} at {found:?}");
        }
    }

    #[test]
    fn only_what_is_there_as_it_is_proposed_counts_as_made() {
        use ChangeKind::{Dir, File};
        let edit = || proposal(File, Some(BASE), Some(NEW));
        let (new, gone) = (|| proposal(File, None, Some(NEW)), || proposal(File, Some(BASE), None));
        for (proposals, folders, found, expected) in [
            (vec![("/a", edit()), ("/b", edit())], vec![], vec![("/a", file(NEW)), ("/b", file(BASE))], "/a"),
            (vec![("/a", edit()), ("/b", edit())], vec![], vec![("/a", file("x"))], ""),
            (vec![("/a", gone()), ("/b", gone())], vec![], vec![("/b", file(BASE))], "/a"),
            (vec![("/d", proposal(Dir, None, None)), ("/d/x", gone())], vec![], vec![("/d", folder(&[]))], "/d/x"),
            (vec![("/d", proposal(Dir, None, None)), ("/d/x", gone())], vec![], vec![], "/d, /d/x"),
            (
                vec![("/n/m/x", new()), ("/n/y", new())],
                vec!["/n", "/n/m"],
                vec![("/n", folder(&["y"])), ("/n/y", file(NEW))],
                "/n, /n/y",
            ),
            // A file that gave way to a folder, before the folder is there and after.
            (vec![("/f", gone()), ("/f/x", new())], vec!["/f"], vec![], ""),
            (vec![("/f", gone()), ("/f/x", new())], vec!["/f"], vec![("/f", folder(&[]))], "/f"),
            (
                vec![("/f", gone()), ("/f/x", new())],
                vec!["/f"],
                vec![("/f", folder(&["x"])), ("/f/x", file(NEW))],
                "/f, /f/x",
            ),
        ] {
            let picked = Picked {
                proposals: proposals.into_iter().map(|(path, proposal)| (path.into(), proposal)).collect(),
                folders: folders.into_iter().map(String::from).collect(),
            };
            let found = found.into_iter().map(|(path, found)| (path.into(), found)).collect();
            assert_eq!(made(&picked, &found).join(", "), expected, "{picked:?} {found:?}");
        }
    }

    #[test]
    fn room_is_made_before_it_is_used_and_folders_go_from_the_inside() {
        use ChangeKind::{Dir, File, Link};
        let new = || proposal(File, None, Some(NEW));
        let gone = |kind| proposal(kind, (kind != Dir).then_some(BASE), None);
        for (proposals, folders, found, expected) in [
            (
                vec![
                    ("/d", gone(Dir)),
                    ("/d/e", gone(Dir)),
                    ("/d/e/f", gone(File)),
                    ("/d/l", gone(Link)),
                    ("/n", new()),
                ],
                vec![],
                vec![
                    ("/d", folder(&["e", "l"])),
                    ("/d/e", folder(&["f"])),
                    ("/d/e/f", file(BASE)),
                    ("/d/l", link(BASE)),
                ],
                "write /n; remove /d/e/f; remove /d/l; remove /d/e; remove /d",
            ),
            // A folder where a file was, and one where a link was.
            (
                vec![("/f", gone(File)), ("/f/g/x", new()), ("/l", gone(Link)), ("/l/x", new())],
                vec!["/f", "/f/g", "/l"],
                vec![
                    ("/f", file(BASE)),
                    ("/f/g/x", Found::Unusable("a part of the path is a file".into())),
                    ("/l", link(BASE)),
                    ("/l/x", file("what the link leads to")),
                ],
                "remove /f; remove /l; late /f/g/x; late /l/x; folder /f; folder /f/g; folder /l",
            ),
            // The same once the file is gone.
            (
                vec![("/f", gone(File)), ("/f/x", new())],
                vec!["/f"],
                vec![("/f", Found::Nothing)],
                "write /f/x; folder /f; done /f",
            ),
            (
                vec![("/f", gone(File)), ("/f/x", new())],
                vec!["/f"],
                vec![("/f", folder(&["x"])), ("/f/x", file(NEW))],
                "folder /f; done /f; done /f/x",
            ),
            // A file where a folder was.
            (
                vec![("/d", proposal(Dir, None, Some(NEW))), ("/d/x", gone(File))],
                vec![],
                vec![("/d", folder(&["x"])), ("/d/x", file(BASE))],
                "remove /d/x; remove /d; late /d",
            ),
            // What cannot go keeps what depends on it.
            (
                vec![("/f", gone(File)), ("/f/x", new()), ("/a", new())],
                vec!["/f"],
                vec![("/f", file("x"))],
                "write /a; folder /f; wrong /f: its content has changed since; wrong /f/x: /f is in its way and cannot go",
            ),
            (
                vec![("/d", gone(Dir)), ("/d/e", gone(Dir)), ("/d/e/f", gone(File))],
                vec![],
                vec![("/d", folder(&["e"])), ("/d/e", folder(&["f"])), ("/d/e/f", file("x"))],
                "wrong /d: the folder holds e, which cannot be removed; wrong /d/e: the folder holds f, which cannot be \
                 removed; wrong /d/e/f: its content has changed since",
            ),
        ] {
            assert_eq!(planned(&proposals, &folders, &found, Strictness::Fresh), expected);
        }
    }
}
