//! What the configuration says about calls: who answers questions, and rules made beforehand.
//!
//! A rule that is not understood protects nothing, so here, unlike elsewhere in the file, a key nobody knows is an
//! error. Only the user's own file is read: a repository makes no rules.

use std::path::{Path, PathBuf};

use hames_tools::{About, Access, HostPattern, PathPattern, Rule, RuleVerdict};
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;

use super::file::{At, FileConfig};
use super::keys;
use super::read::Reader;
use crate::env::Env;
use crate::exit::Stop;

/// What becomes of a question where a call needs a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Approve {
    /// A person is asked; where there is nobody, the answer is no.
    #[default]
    Ask,
    /// Yes, each time, for this once.
    Allow,
    /// No.
    Deny,
}

impl Approve {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Approve::Ask => "ask",
            Approve::Allow => "allow",
            Approve::Deny => "deny",
        }
    }
}

impl std::str::FromStr for Approve {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Approve::Ask, Approve::Allow, Approve::Deny]
            .into_iter()
            .find(|approve| approve.as_str() == text)
            .ok_or_else(|| "it is ask, allow or deny".to_owned())
    }
}

/// A rule as the file says it; `~` in its path is not resolved yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileRule {
    pub(crate) verdict: RuleVerdict,
    pub(crate) about: FileAbout,
}

/// What a rule of the file is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FileAbout {
    Path(String, Option<Access>),
    Other(About),
}

impl std::fmt::Display for FileRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:<6} ", self.verdict.as_str())?;
        match &self.about {
            FileAbout::Path(path, None) => write!(f, "path {path}"),
            FileAbout::Path(path, Some(access)) => write!(f, "{} path {path}", access.as_str()),
            FileAbout::Other(About::Command(words)) => write!(f, "command {}", words.join(" ")),
            FileAbout::Other(About::Host(host)) => write!(f, "host {}", host.as_str()),
            FileAbout::Other(About::Tool(name)) => write!(f, "tool {name}"),
            FileAbout::Other(About::Path { pattern, .. }) => write!(f, "path {}", pattern.as_str()),
            FileAbout::Other(About::Everything) => write!(f, "any call"),
        }
    }
}

impl FileConfig {
    /// The rules for work in a folder.
    pub(crate) fn rules_in(&self, folder: &Path, env: &Env) -> Result<Vec<Rule>, Stop> {
        let mut rules = Vec::new();
        for At { value: FileRule { verdict, about }, line } in &self.rules {
            let refuse = |why: String| Stop::configuration(format!("{}:{line}: {why}", self.path.display()));
            match about {
                FileAbout::Other(about) => rules.push(Rule { verdict: *verdict, about: about.clone() }),
                FileAbout::Path(path, access) => {
                    let path = expanded(path, env).map_err(refuse)?;
                    let pattern = PathPattern::new(&path).map_err(|bad| refuse(bad.to_string()))?;
                    let real = really(&pattern, *verdict, folder);
                    let about = |pattern| About::Path { pattern, access: *access };
                    let both = [Some(pattern), real].into_iter().flatten();
                    rules.extend(both.map(|pattern| Rule { verdict: *verdict, about: about(pattern) }));
                }
            }
        }
        Ok(rules)
    }
}

/// `~` is the home folder.
fn expanded(path: &str, env: &Env) -> Result<String, String> {
    let Some(rest) = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')) else {
        return Ok(path.to_owned());
    };
    let home = env.get("HOME").filter(|home| home.starts_with('/'));
    let home = home.ok_or_else(|| format!("{path} cannot be found: HOME is not set to a folder"))?;
    Ok(format!("{}{rest}", hames_tools::escaped(home.trim_end_matches('/'))))
}

/// The same pattern where links lead to, where that is somewhere else: rules speak of paths without links. What a
/// repository's own link leads to is not allowed by a rule that allows the link.
fn really(pattern: &PathPattern, verdict: RuleVerdict, folder: &Path) -> Option<PathPattern> {
    let is_relative = !pattern.as_str().starts_with('/');
    if is_relative && verdict == RuleVerdict::Allow {
        return None;
    }
    let written = pattern.fixed_part(folder);
    let real = without_links(&written);
    if real == written { None } else { pattern.moved_to(&real) }
}

/// The path with the links in what exists of it followed.
fn without_links(path: &Path) -> PathBuf {
    path.ancestors()
        .find_map(|exists| {
            let real = exists.canonicalize().ok()?;
            Some(real.join(path.strip_prefix(exists).ok()?))
        })
        .unwrap_or_else(|| path.to_owned())
}

impl Reader<'_> {
    pub(super) fn approve(&self, value: &Value<'_>, key: &str) -> Result<At<Approve>, Stop> {
        self.choice(value, key, "ask, allow, deny", |name| name.parse().ok())
    }

    pub(super) fn policy(&self, value: &Value<'_>, key: &str) -> Result<Vec<At<FileRule>>, Stop> {
        let object = self.object(value, key)?;
        self.refuse_unknown(object, key, keys::POLICY)?;
        let mut all = Vec::new();
        for property in &object.properties {
            let key = format!("{key}.{}", property.name.as_str());
            let Value::Array(array) = &property.value else {
                return Err(self.wrong(&property.value, &key, "an array of rules"));
            };
            for (at, rule) in array.elements.iter().enumerate() {
                all.push(self.rule(rule, &format!("{key}[{at}]"))?);
            }
        }
        Ok(all)
    }

    fn rule(&self, value: &Value<'_>, base: &str) -> Result<At<FileRule>, Stop> {
        const EXAMPLE: &str = "an object like { \"verdict\": \"ask\", \"command\": \"git push\" }";
        let Value::Object(object) = value else { return Err(self.wrong(value, base, EXAMPLE)) };
        self.refuse_unknown(object, base, keys::RULE)?;
        let (mut verdict, mut access, mut about) = (None, None, Vec::new());
        for property in &object.properties {
            let (name, value) = (property.name.as_str(), &property.value);
            let key = format!("{base}.{name}");
            match name {
                "verdict" => {
                    let all = [RuleVerdict::Allow, RuleVerdict::Ask, RuleVerdict::Deny];
                    let read = |name: &str| all.into_iter().find(|verdict| verdict.as_str() == name);
                    verdict = Some(self.choice(value, &key, "allow, ask, deny", read)?.value);
                }
                "access" => {
                    let read = |name: &str| [Access::Read, Access::Write].into_iter().find(|a| a.as_str() == name);
                    access = Some(self.choice(value, &key, "read, write", read)?);
                }
                "path" => {
                    let path = self.string(value, &key)?.value;
                    if let Err(bad) = PathPattern::new(&path) {
                        return Err(self.refuse(value, &key, &bad.to_string()));
                    }
                    about.push(FileAbout::Path(path, None));
                }
                "command" => about.push(FileAbout::Other(About::Command(self.words(value, &key)?))),
                "host" => {
                    let host = HostPattern::new(&self.string(value, &key)?.value);
                    let host = host.map_err(|bad| self.refuse(value, &key, &bad.to_string()))?;
                    about.push(FileAbout::Other(About::Host(host)));
                }
                "tool" => about.push(FileAbout::Other(About::Tool(self.string(value, &key)?.value))),
                _ => match self.boolean(value, &key)?.value {
                    true => about.push(FileAbout::Other(About::Everything)),
                    false => return Err(self.refuse(value, &key, "is true or left out")),
                },
            }
        }
        let Some(verdict) = verdict else {
            return Err(self.refuse(value, base, "has no verdict; add \"verdict\": \"allow\", \"ask\" or \"deny\""));
        };
        let [about] = &mut about[..] else {
            let found = if about.is_empty() { "nothing" } else { "more than one thing" };
            let all = "path, command, host, tool, any";
            return Err(self.refuse(value, base, &format!("is about {found}; give exactly one of {all}")));
        };
        if let Some(access) = access {
            let FileAbout::Path(_, of_path) = about else {
                return Err(self.refuse(value, base, "has access, which only belongs to a path"));
            };
            *of_path = Some(access.value);
        }
        Ok(self.at(value, FileRule { verdict, about: about.clone() }))
    }

    /// Words as one string split at blanks, or one by one where they hold blanks.
    fn words(&self, value: &Value<'_>, key: &str) -> Result<Vec<String>, Stop> {
        const WANTED: &str = "words like \"git push\", or [\"git\", \"push\"]";
        match value {
            Value::StringLit(text) if !text.value.trim().is_empty() => {
                Ok(text.value.split_whitespace().map(str::to_owned).collect())
            }
            Value::Array(array) if !array.elements.is_empty() => {
                let word = |value: &Value<'_>| match value {
                    Value::StringLit(word) => Ok(word.value.clone().into_owned()),
                    other => Err(self.wrong(other, key, WANTED)),
                };
                array.elements.iter().map(word).collect()
            }
            _ => Err(self.wrong(value, key, WANTED)),
        }
    }

    fn refuse_unknown(&self, object: &Object<'_>, base: &str, keys: &[&str]) -> Result<(), Stop> {
        match object.properties.iter().find(|property| !keys.contains(&property.name.as_str())) {
            Some(unknown) => {
                let known = keys.join(", ");
                let key = format!("{base}.{}", unknown.name.as_str());
                Err(self.refuse(
                    &unknown.value,
                    &key,
                    &format!("is not known, so the rules are not safe; known: {known}"),
                ))
            }
            None => Ok(()),
        }
    }

    fn refuse(&self, value: &Value<'_>, key: &str, why: &str) -> Stop {
        Stop::configuration(format!("{}:{}: {key} {why}", self.path.display(), self.line(value.start())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(rules: &str) -> Result<FileConfig, String> {
        let text = format!("{{\"policy\": {{\n\"rules\": [{rules}]}}}}");
        whole(&text)
    }

    fn whole(text: &str) -> Result<FileConfig, String> {
        FileConfig::parse(Path::new("/h/config.jsonc"), text).map_err(said)
    }

    fn said(stop: Stop) -> String {
        match stop {
            Stop::Failed(failure) => failure.message,
            Stop::OutputClosed => unreachable!("parsing prints nothing"),
        }
    }

    fn rules(text: &str, folder: &Path) -> Vec<Rule> {
        parse(text).unwrap().rules_in(folder, &Env::of(&[("HOME", "/no-home/me")])).unwrap()
    }

    #[test]
    fn each_kind_of_rule_is_read() {
        let text = r#"
            {"verdict": "deny", "path": "~/.ssh"},            // mine
            {"verdict": "ask", "path": "**/.env*", "access": "write"},
            {"verdict": "allow", "path": "/no-such", "access": "read"},
            {"verdict": "allow", "command": " git   log "},
            {"verdict": "deny", "command": ["rm", "a b"]},
            {"verdict": "ask", "host": "*.Example.com"},
            {"verdict": "deny", "tool": "WebFetch"},
            {"verdict": "ask", "any": true},
        "#;
        let path = |verdict, path, access| Rule {
            verdict,
            about: About::Path { pattern: PathPattern::new(path).unwrap(), access },
        };
        let words = |words: &[&str]| About::Command(words.iter().map(|word| (*word).to_owned()).collect());
        let other = |verdict, about| Rule { verdict, about };
        use RuleVerdict::*;
        let expected = vec![
            path(Deny, "/no-home/me/.ssh", None),
            path(Ask, "**/.env*", Some(Access::Write)),
            path(Allow, "/no-such", Some(Access::Read)),
            other(Allow, words(&["git", "log"])),
            other(Deny, words(&["rm", "a b"])),
            other(Ask, About::Host(HostPattern::new("*.example.com").unwrap())),
            other(Deny, About::Tool("WebFetch".into())),
            other(Ask, About::Everything),
        ];
        assert_eq!(rules(text, Path::new("/no-folder")), expected);
        let lines: Vec<usize> = parse(text).unwrap().rules.iter().map(|rule| rule.line).collect();
        assert_eq!(lines, [3, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn rules_are_shown_as_they_are_written() {
        let text = r#"{"verdict": "deny", "path": "~/.ssh"}, {"verdict": "ask", "path": "x", "access": "write"},
            {"verdict": "allow", "command": ["git", "log"]}, {"verdict": "ask", "any": true}"#;
        let shown: Vec<String> = parse(text).unwrap().rules.iter().map(|rule| rule.value.to_string()).collect();
        assert_eq!(shown, ["deny   path ~/.ssh", "ask    write path x", "allow  command git log", "ask    any call"]);
    }

    #[test]
    fn a_rule_that_is_not_understood_is_an_error_that_says_what_is() {
        for (rule, expected) in [
            ("3", ":2: policy.rules[0] should be an object like"),
            ("{}", ":2: policy.rules[0] has no verdict"),
            (r#"{"verdict": "ask"}"#, "is about nothing; give exactly one of path, command, host, tool, any"),
            (r#"{"verdict": "ask", "tool": "a", "any": true}"#, "is about more than one thing"),
            (r#"{"tool": "a"}"#, "has no verdict"),
            (r#"{"verdict": "never", "tool": "a"}"#, "policy.rules[0].verdict should be one of allow, ask, deny"),
            (r#"{"verdict": "deny", "pth": "a"}"#, "policy.rules[0].pth is not known"),
            (r#"{"verdict": "deny", "path": "a", "acces": "read"}"#, "known: verdict, path, access"),
            (r#"{"verdict": "deny", "path": ""}"#, "policy.rules[0].path should be a string that is not empty"),
            (r#"{"verdict": "deny", "path": "../x"}"#, "holds `..`"),
            (r#"{"verdict": "deny", "path": "a["}"#, "is no path or pattern"),
            (r#"{"verdict": "deny", "path": "a", "access": "run"}"#, "access should be one of read, write"),
            (r#"{"verdict": "deny", "tool": "a", "access": "read"}"#, "has access, which only belongs to a path"),
            (r#"{"verdict": "deny", "command": " "}"#, "policy.rules[0].command should be words"),
            (r#"{"verdict": "deny", "command": []}"#, "should be words"),
            (r#"{"verdict": "deny", "command": ["a", 1]}"#, "should be words"),
            (r#"{"verdict": "deny", "host": "http://x"}"#, "is no host"),
            (r#"{"verdict": "deny", "host": "x:80"}"#, "names a port"),
            (r#"{"verdict": "ask", "any": false}"#, "policy.rules[0].any is true or left out"),
            (r#"{"verdict": "ask", "any": 1}"#, "policy.rules[0].any should be true or false"),
        ] {
            let error = parse(rule).expect_err(rule);
            assert!(error.starts_with("/h/config.jsonc:2: ") && error.contains(expected), "{rule}\n gave {error}");
        }
        for (text, expected) in [
            (r#"{"policy": []}"#, "policy should be an object"),
            (r#"{"policy": {"rule": []}}"#, "policy.rule is not known"),
            (r#"{"policy": {"rules": {}}}"#, "policy.rules should be an array"),
            (r#"{"approve": "yes"}"#, "approve should be one of ask, allow, deny"),
        ] {
            let error = whole(text).expect_err(text);
            assert!(error.contains(expected), "{text}\n gave {error}");
        }
    }

    #[test]
    fn a_home_that_is_not_known_is_said_and_a_tilde_elsewhere_is_a_name() {
        let config = parse(r#"{"verdict": "deny", "path": "~/.ssh"}"#).unwrap();
        for vars in [&[][..], &[("HOME", "relative")]] {
            let error = said(config.rules_in(Path::new("/w"), &Env::of(vars)).unwrap_err());
            assert!(error.contains("/h/config.jsonc:2:") && error.contains("HOME"), "{error}");
        }
        let rules = rules(r#"{"verdict": "deny", "path": "~x"}, {"verdict": "deny", "path": "a/~"}"#, Path::new("/no"));
        assert_eq!(rules.len(), 2);
        let odd = Env::of(&[("HOME", "/no/[me]*")]);
        let rules = config.rules_in(Path::new("/w"), &odd).unwrap();
        let About::Path { pattern, .. } = &rules[0].about else { panic!() };
        assert!(pattern.matches(Path::new("/no/[me]*/.ssh/id"), Path::new("/w")));
        assert!(!pattern.matches(Path::new("/no/mx/.ssh/id"), Path::new("/w")));
    }

    #[test]
    fn a_rule_about_a_link_is_about_what_it_leads_to_but_a_repositorys_link_allows_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (work, real) = (root.join("work"), root.join("re*al"));
        for folder in [&work, &real.join("sub")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::os::unix::fs::symlink(&real, work.join("link")).unwrap();
        std::os::unix::fs::symlink(&real, root.join("outer")).unwrap();
        let outer = root.join("outer").display().to_string();
        for (rule, target, about) in [
            (r#"{"verdict": "deny", "path": "link"}"#.to_owned(), real.join("sub/x"), true),
            (r#"{"verdict": "ask", "path": "link/sub/*.key"}"#.to_owned(), real.join("sub/x.key"), true),
            (r#"{"verdict": "ask", "path": "link/sub/*.key"}"#.to_owned(), real.join("sub/x"), false),
            (r#"{"verdict": "deny", "path": "link/new/file"}"#.to_owned(), real.join("new/file"), true),
            (r#"{"verdict": "allow", "path": "link"}"#.to_owned(), real.join("sub/x"), false),
            (format!(r#"{{"verdict": "allow", "path": "{outer}"}}"#), real.join("sub/x"), true),
        ] {
            let found = rules(&rule, &work).iter().any(|rule| match &rule.about {
                About::Path { pattern, .. } => pattern.matches(&target, &work),
                _ => false,
            });
            assert_eq!(found, about, "{rule}");
        }
    }
}
