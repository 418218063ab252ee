//! Whether a call may run: a pure function of rules, mode, grants and what the call declares.
//!
//! It asks nobody and looks at no file: the door resolves the paths before and asks after. A denial beats every grant.

use std::path::PathBuf;

use hames_protocol::{Declaration, Effect, Mode, Resource};

use crate::FsPath;

/// Paths no call may use, whatever was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenyRule {
    /// The path, canonical, with everything below it.
    pub path: PathBuf,
    /// Whether reading stays possible.
    pub only_writes: bool,
}

/// A path outside the workspace that a person allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathGrant {
    /// The path, canonical, with everything below it.
    pub path: PathBuf,
    /// Whether it may be changed too.
    pub write: bool,
}

/// What holds for the calls of a session besides the mode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// What is never possible.
    pub rules: Vec<DenyRule>,
    /// What a person allowed.
    pub grants: Vec<PathGrant>,
}

/// A path a call touches, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The path.
    pub path: FsPath,
    /// Whether the call changes it.
    pub write: bool,
}

/// What is to be done with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Run it.
    Allow,
    /// A person decides; this is why.
    Ask(String),
    /// Do not run it; this is what the model is told.
    Deny(String),
}

/// Decides on one call: its declaration, and the paths of it as they resolve now.
pub fn decide(
    rules: &[DenyRule],
    mode: Mode,
    previews: bool,
    grants: &[PathGrant],
    declaration: &Declaration,
    touched: &[Touched],
) -> Verdict {
    if let Some(path) = touched.iter().find(|t| is_denied(rules, t)) {
        return Verdict::Deny(format!(
            "{} may not be used by tools: a rule forbids it. Do without it.",
            path.path.shown
        ));
    }
    if mode == Mode::Analyze
        && let Some(refusal) = refused_in_analyze(previews, declaration)
    {
        return Verdict::Deny(format!("Analyze mode: nothing is modified. {refusal}"));
    }
    let outside: Vec<String> = touched
        .iter()
        .filter(|t| !t.path.inside && !is_granted(grants, t))
        .map(|t| t.path.abs.display().to_string())
        .collect();
    if outside.is_empty() {
        return Verdict::Allow;
    }
    Verdict::Ask(format!("{} is outside the workspace", outside.join(", ")))
}

/// The effect as it must be taken: a call that changes a path or the workspace is no read, whatever it says.
pub(crate) fn true_effect(declaration: &Declaration) -> Effect {
    let writes = declaration
        .resources
        .iter()
        .any(|r| matches!(r, Resource::Path { .. } | Resource::Workspace { .. }) && r.is_written());
    match declaration.effect {
        Effect::Read | Effect::Session if writes => Effect::Edit,
        effect => effect,
    }
}

fn refused_in_analyze(previews: bool, declaration: &Declaration) -> Option<&str> {
    let refusal = match true_effect(declaration) {
        Effect::Read | Effect::Session => return None,
        Effect::Edit if previews && can_preview(declaration) => return None,
        Effect::Edit => Some(
            "This change was not made. Describe it in your answer; it can be made once the user switches to Build mode.",
        ),
        Effect::Run => Some(
            "This command was not run. Look with the tools that only read, and name the command in your answer for Build \
             mode.",
        ),
        Effect::External => Some(
            "This call was not made, because it may have an effect outside this session. Do without it, or say in your \
             answer why it is needed in Build mode.",
        ),
    };
    declaration.reason.as_deref().or(refusal)
}

/// Whether all that the call changes are paths it names, through the filesystem it is given.
fn can_preview(declaration: &Declaration) -> bool {
    let mut written = declaration.resources.iter().filter(|r| r.is_written()).peekable();
    declaration.preview && written.peek().is_some() && written.all(|r| matches!(r, Resource::Path { .. }))
}

fn is_denied(rules: &[DenyRule], touched: &Touched) -> bool {
    rules.iter().any(|rule| touched.path.abs.starts_with(&rule.path) && (touched.write || !rule.only_writes))
}

fn is_granted(grants: &[PathGrant], touched: &Touched) -> bool {
    grants.iter().any(|grant| touched.path.abs.starts_with(&grant.path) && (grant.write || !touched.write))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EFFECTS: [Effect; 5] = [Effect::Read, Effect::Edit, Effect::Run, Effect::External, Effect::Session];

    fn touched(abs: &str, write: bool) -> Touched {
        let inside = abs.starts_with("/work/");
        Touched { path: FsPath { abs: abs.into(), shown: abs.into(), inside, identity: None }, write }
    }

    fn verdict(policy: &Policy, mode: Mode, effect: Effect, paths: &[Touched]) -> Verdict {
        decide(&policy.rules, mode, false, &policy.grants, &Declaration::new(effect, vec![]), paths)
    }

    #[test]
    fn build_allows_everything_inside_the_workspace() {
        for effect in EFFECTS {
            for write in [false, true] {
                let paths = [touched("/work/a", write), touched("/work/b/c", write)];
                assert_eq!(verdict(&Policy::default(), Mode::Build, effect, &paths), Verdict::Allow);
            }
        }
    }

    #[test]
    fn outside_the_workspace_is_asked_and_names_where_it_leads() {
        for mode in [Mode::Build, Mode::Analyze] {
            for paths in
                [vec![touched("/etc/hosts", false)], vec![touched("/work/a", false), touched("/etc/hosts", false)]]
            {
                match verdict(&Policy::default(), mode, Effect::Read, &paths) {
                    Verdict::Ask(why) => assert_eq!(why, "/etc/hosts is outside the workspace"),
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    #[test]
    fn analyze_lets_only_what_changes_nothing_run() {
        for effect in EFFECTS {
            let verdict = verdict(&Policy::default(), Mode::Analyze, effect, &[]);
            match effect {
                Effect::Read | Effect::Session => assert_eq!(verdict, Verdict::Allow),
                _ => assert!(
                    matches!(&verdict, Verdict::Deny(why) if why.starts_with("Analyze mode: nothing is modified."))
                ),
            }
        }
    }

    #[test]
    fn a_read_that_writes_is_refused_in_analyze() {
        let resources = [Resource::path("a", true), Resource::Workspace { write: true }];
        for resource in resources {
            for effect in [Effect::Read, Effect::Session] {
                let declaration = Declaration::new(effect, vec![resource.clone()]);
                let verdict = decide(&[], Mode::Analyze, false, &[], &declaration, &[]);
                assert!(matches!(verdict, Verdict::Deny(_)), "{declaration:?}");
            }
        }
    }

    #[test]
    fn a_grant_covers_what_is_below_it_and_no_more_than_was_granted() {
        let policy = Policy { rules: vec![], grants: vec![PathGrant { path: "/data".into(), write: false }] };
        let allowed =
            |path: &str, write| verdict(&policy, Mode::Build, Effect::Edit, &[touched(path, write)]) == Verdict::Allow;
        assert!(allowed("/data", false) && allowed("/data/x/y", false));
        assert!(!allowed("/data/x", true));
        assert!(!allowed("/database", false) && !allowed("/", false));
        let writable = Policy { grants: vec![PathGrant { path: "/data".into(), write: true }], ..policy.clone() };
        assert_eq!(verdict(&writable, Mode::Build, Effect::Edit, &[touched("/data/x", true)]), Verdict::Allow);
    }

    #[test]
    fn a_denial_beats_grants_and_the_workspace() {
        let policy = Policy {
            rules: vec![
                DenyRule { path: "/data/private".into(), only_writes: false },
                DenyRule { path: "/work/.git".into(), only_writes: true },
            ],
            grants: vec![PathGrant { path: "/data".into(), write: true }],
        };
        let of = |path: &str, write| verdict(&policy, Mode::Build, Effect::Read, &[touched(path, write)]);
        assert!(matches!(of("/data/private/key", false), Verdict::Deny(_)));
        assert!(matches!(of("/work/.git/config", true), Verdict::Deny(_)));
        assert_eq!(of("/work/.git/config", false), Verdict::Allow);
        assert_eq!(of("/data/public", true), Verdict::Allow);
    }
}
