//! The decision, case by case. A call is written as a line, a policy as a few rules, so that a table can be read.

use super::*;

const EFFECTS: [Effect; 5] = [Effect::Read, Effect::Edit, Effect::Run, Effect::External, Effect::Session];
const ROOT: &str = "/work";

fn touched(abs: &str, write: bool) -> Touched {
    let inside = Path::new(abs).starts_with(ROOT);
    Touched { path: FsPath { abs: abs.into(), shown: abs.into(), inside, identity: None }, write }
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// `deny path:/x`, `ask write:/x`, `allow read:**/x`, `deny cmd:git push`, `ask host:*.x`, `allow tool:Read`, `ask any`.
fn rule(text: &str) -> Rule {
    let (verdict, about) = text.split_once(' ').unwrap();
    let verdict = match verdict {
        "allow" => RuleVerdict::Allow,
        "ask" => RuleVerdict::Ask,
        "deny" => RuleVerdict::Deny,
        other => panic!("{other}"),
    };
    let (kind, what) = about.split_once(':').unwrap_or((about, ""));
    let path = |access| About::Path { pattern: PathPattern::new(what).unwrap(), access };
    let about = match kind {
        "path" => path(None),
        "read" => path(Some(Access::Read)),
        "write" => path(Some(Access::Write)),
        "cmd" => About::Command(words(what)),
        "host" => About::Host(HostPattern::new(what).unwrap()),
        "tool" => About::Tool(what.into()),
        "any" => About::Everything,
        other => panic!("{other}"),
    };
    Rule { verdict, about }
}

fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| rule(text)).collect()
}

/// A call of tool `T`.
#[derive(Clone)]
struct Call {
    mode: Mode,
    previews: bool,
    declaration: Declaration,
    touched: Vec<Touched>,
}

impl Call {
    fn new(effect: Effect) -> Self {
        let declaration = Declaration::new(effect, vec![]);
        Self { mode: Mode::Build, previews: false, declaration, touched: vec![] }
    }
    fn reads(mut self, path: &str) -> Self {
        self.touched.push(touched(path, false));
        self.declaration.resources.push(Resource::path(path, false));
        self
    }
    fn writes(mut self, path: &str) -> Self {
        self.touched.push(touched(path, true));
        self.declaration.resources.push(Resource::path(path, true));
        self
    }
    fn runs(mut self, line: &str) -> Self {
        self.declaration.resources.push(Resource::Command { words: words(line) });
        self
    }
    fn host(mut self, host: &str) -> Self {
        self.declaration.resources.push(Resource::Host { host: host.into() });
        self
    }
    fn asks(mut self, why: &str) -> Self {
        self.declaration.ask = Some(why.into());
        self
    }
    fn analyze(mut self) -> Self {
        self.mode = Mode::Analyze;
        self
    }
    fn under(&self, rules: &[Rule], grants: &[Grant]) -> Verdict {
        let intent = Intent {
            mode: self.mode,
            previews: self.previews,
            tool: "T",
            root: Path::new(ROOT),
            declaration: &self.declaration,
            touched: &self.touched,
        };
        decide(rules, grants, intent)
    }
    fn verdict(&self, texts: &[&str]) -> Verdict {
        self.under(&rules(texts), &[])
    }
}

/// The verdict's kind, as tables write it.
fn kind(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask(_) => "ask",
        Verdict::Deny(_) => "deny",
    }
}

/// A question, and what it would grant.
#[track_caller]
fn question(verdict: Verdict) -> (String, Vec<Grant>) {
    match verdict {
        Verdict::Ask(question) => (question.why, question.grants),
        other => panic!("{other:?}"),
    }
}

fn path_grant(path: &str, write: bool) -> Grant {
    Grant::Path { path: path.into(), write }
}

fn command_grant(line: &str) -> Grant {
    Grant::Command { words: words(line) }
}

#[test]
fn build_allows_everything_inside_the_workspace() {
    for effect in EFFECTS {
        assert_eq!(Call::new(effect).verdict(&[]), Verdict::Allow);
        assert_eq!(Call::new(effect).reads("/work/a").writes("/work/b/c").verdict(&[]), Verdict::Allow);
    }
    assert_eq!(Call::new(Effect::Run).runs("rm -rf /").host("example.com").verdict(&[]), Verdict::Allow);
}

#[test]
fn outside_the_workspace_is_asked_and_names_where_it_leads() {
    for call in
        [Call::new(Effect::Read).reads("/etc/hosts"), Call::new(Effect::Read).reads("/work/a").reads("/etc/hosts")]
    {
        for call in [call.clone(), call.analyze()] {
            let (why, grants) = question(call.verdict(&[]));
            assert_eq!(why, "/etc/hosts is outside the workspace");
            assert_eq!(grants, [path_grant("/etc/hosts", false)]);
        }
    }
    let (why, grants) = question(Call::new(Effect::Edit).writes("/etc/hosts").reads("/workshop").verdict(&[]));
    assert_eq!(why, "/etc/hosts, /workshop are outside the workspace");
    assert_eq!(grants, [path_grant("/etc/hosts", true), path_grant("/workshop", false)]);
}

#[test]
fn analyze_lets_only_what_changes_nothing_run() {
    // Neither a rule nor a grant makes it more.
    let everything = rules(&["allow any", "allow tool:T", "allow cmd:ls"]);
    for effect in EFFECTS {
        let call = Call::new(effect).runs("ls").analyze();
        for rules in [&everything[..], &[]] {
            match (effect, call.under(rules, &[command_grant("ls"), Grant::Tool { name: "T".into() }])) {
                (Effect::Read | Effect::Session, verdict) => assert_eq!(verdict, Verdict::Allow),
                (_, verdict) => assert!(
                    matches!(&verdict, Verdict::Deny(why) if why.starts_with("Analyze mode: nothing is modified.")),
                    "{effect:?} {verdict:?}"
                ),
            }
        }
    }
}

#[test]
fn analyze_says_the_tools_own_reason() {
    let mut call = Call::new(Effect::Run).analyze();
    call.declaration.reason = Some("`find -delete` removes files; use Glob.".into());
    let Verdict::Deny(why) = call.verdict(&[]) else { panic!() };
    assert_eq!(why, "Analyze mode: nothing is modified. `find -delete` removes files; use Glob.");
}

#[test]
fn an_edit_that_names_its_paths_is_proposed_where_there_is_a_preview() {
    for (previews, preview, paths, workspace, expected) in [
        (true, true, true, false, "allow"),
        (false, true, true, false, "deny"),
        (true, false, true, false, "deny"),
        (true, true, false, false, "deny"),
        (true, true, true, true, "deny"),
    ] {
        let mut call = Call::new(Effect::Edit).analyze();
        if paths {
            call = call.writes("/work/a");
        }
        if workspace {
            call.declaration.resources.push(Resource::Workspace { write: true });
        }
        call.previews = previews;
        call.declaration.preview = preview;
        assert_eq!(kind(&call.verdict(&[])), expected, "{previews} {preview} {paths} {workspace}");
    }
}

#[test]
fn a_read_that_writes_is_refused_in_analyze() {
    for resource in [Resource::path("a", true), Resource::Workspace { write: true }] {
        for effect in [Effect::Read, Effect::Session] {
            let mut call = Call::new(effect).analyze();
            call.declaration.resources = vec![resource.clone()];
            assert_eq!(kind(&call.verdict(&[])), "deny", "{resource:?}");
        }
    }
}

#[test]
fn paths_are_matched_as_folders_and_by_wildcards() {
    for (pattern, path, matches) in [
        ("/data", "/data", true),
        ("/data", "/data/x/y", true),
        ("/data", "/database", false),
        ("/data", "/", false),
        ("/data/", "/data/x", true),
        ("/data//x", "/data/x", true),
        ("/", "/anything/at/all", true),
        ("secrets", "/work/secrets/key", true),
        ("./secrets", "/work/secrets", true),
        ("secrets", "/work/a/secrets", false),
        ("secrets", "/secrets", false),
        ("**/secrets", "/work/secrets", true),
        ("**/secrets", "/work/a/b/secrets/key", true),
        ("**/secrets", "/other/secrets", false),
        ("/**/secrets", "/other/secrets/x", true),
        ("*.env", "/work/a.env", true),
        ("*.env", "/work/b/a.env", false),
        (".env*", "/work/.env.local", true),
        ("src/*/gen", "/work/src/a/gen/x", true),
        ("src/*/gen", "/work/src/a/b/gen", false),
        (".", "/work/anything", true),
        (".", "/work", true),
        (".", "/elsewhere", false),
        ("/data/**", "/data/x", true),
        ("a?c", "/work/abc", true),
        ("a?c", "/work/a/c", false),
        ("[ab]/x", "/work/b/x", true),
        ("{a,b}/x", "/work/a/x/y", true),
        (r"a\*", "/work/a*", true),
        (r"a\*", "/work/ab", false),
        ("*", "/work/.hidden/x", true),
    ] {
        let found = PathPattern::new(pattern).unwrap().matches(Path::new(path), Path::new(ROOT));
        assert_eq!(found, matches, "{pattern} {path}");
    }
    for bad in ["", "..", "a/../b", "../x", "/a/..", "a[", "{a", "a{b,c"] {
        let error = PathPattern::new(bad).unwrap_err().to_string();
        assert!(error.contains(&format!("{bad:?}")), "{error}");
    }
}

#[test]
fn a_path_with_wildcards_in_its_name_can_be_meant_literally() {
    let pattern = PathPattern::new(&escaped("/data/[x] {y}*")).unwrap();
    let matches = |path: &str| pattern.matches(Path::new(path), Path::new(ROOT));
    assert!(matches("/data/[x] {y}*/z") && !matches("/data/x y"));
}

#[test]
fn a_pattern_can_be_moved_to_where_a_link_leads() {
    for (pattern, place, path, matches) in [
        ("link", "/real [x]", "/real [x]/a", true),
        ("a/link/*.key", "/real", "/real/x.key", true),
        ("a/link/*.key", "/real", "/real/x", false),
        ("**/x", "/real", "/real/a/x", true),
        ("/a", "/", "/anything", true),
    ] {
        let moved = PathPattern::new(pattern).unwrap().moved_to(Path::new(place)).unwrap();
        assert_eq!(moved.matches(Path::new(path), Path::new(ROOT)), matches, "{pattern} {place} {path}");
    }
    assert_eq!(PathPattern::new("a/b/*.x").unwrap().fixed_part(Path::new(ROOT)), Path::new("/work/a/b"));
}

#[test]
fn access_means_what_includes_what() {
    for (text, read, write) in [
        ("deny path:/work/x", "deny", "deny"),
        ("deny read:/work/x", "deny", "deny"),
        ("deny write:/work/x", "allow", "deny"),
        ("ask path:/work/x", "ask", "ask"),
        ("ask read:/work/x", "ask", "ask"),
        ("ask write:/work/x", "allow", "ask"),
        ("allow path:/out/x", "allow", "allow"),
        ("allow read:/out/x", "allow", "ask"),
        ("allow write:/out/x", "allow", "allow"),
    ] {
        let path = if text.contains("/out/") { "/out/x" } else { "/work/x" };
        assert_eq!(kind(&Call::new(Effect::Read).reads(path).verdict(&[text])), read, "{text} read");
        assert_eq!(kind(&Call::new(Effect::Edit).writes(path).verdict(&[text])), write, "{text} write");
    }
}

#[test]
fn a_denial_beats_every_rule_grant_and_mode() {
    let grants = [
        path_grant("/", true),
        command_grant("git push"),
        Grant::Host { host: "evil.example".into() },
        Grant::Tool { name: "T".into() },
    ];
    let call = || Call::new(Effect::Run).reads("/work/k").runs("git push").host("evil.example").asks("sure?");
    for denial in ["path:/work/k", "read:k", "cmd:git push", "cmd:git", "host:evil.example", "host:*", "tool:T", "any"]
    {
        let texts = ["allow any", "allow tool:T", "allow path:/", "allow cmd:git push", "allow host:*", "ask any"];
        let mut rules = rules(&texts);
        for at in [0, texts.len()] {
            rules.insert(at, rule(&format!("deny {denial}")));
            for call in [call(), call().analyze()] {
                let verdict = call.under(&rules, &grants);
                assert!(
                    matches!(&verdict, Verdict::Deny(why) if why.contains("a rule forbids it")),
                    "{denial} {verdict:?}"
                );
            }
            rules.remove(at);
        }
    }
}

#[test]
fn a_folder_is_not_changed_as_a_whole_where_something_in_it_may_not_be() {
    for (text, path, expected) in [
        ("deny path:/work/a/secret", "/work/a", "deny"),
        ("deny write:a/secret", "/work", "deny"),
        ("deny write:a/*.key", "/work/a", "deny"),
        ("deny write:a/secret", "/work/a/other", "allow"),
        ("deny write:a/secret", "/work/ab", "allow"),
        ("ask write:a/secret", "/work/b", "allow"),
    ] {
        assert_eq!(kind(&Call::new(Effect::Edit).writes(path).verdict(&[text])), expected, "{text} {path}");
    }
    // A command names the folder it starts in.
    assert_eq!(Call::new(Effect::Run).writes("/work").verdict(&["deny write:a/secret"]), Verdict::Allow);
    // A search names the folder it looks through; what it may not read is kept from it there.
    assert_eq!(Call::new(Effect::Read).reads("/work").verdict(&["deny path:a/secret"]), Verdict::Allow);
}

#[test]
fn the_more_specific_rule_speaks_and_ask_beats_allow_among_equals() {
    let call = Call::new(Effect::Run).runs("git log");
    for (texts, expected) in [
        (&["ask any", "allow cmd:git log"][..], "allow"),
        (&["ask tool:T", "allow cmd:git"], "allow"),
        (&["ask tool:T", "allow cmd:git status"], "ask"),
        (&["allow any", "ask cmd:git"], "ask"),
        (&["allow tool:T", "ask cmd:git log"], "ask"),
        (&["ask any", "allow tool:T"], "allow"),
        (&["allow any", "ask tool:T"], "ask"),
        (&["allow tool:T", "ask tool:T"], "ask"),
        (&["allow any", "ask any"], "ask"),
        (&["allow cmd:git log", "ask cmd:git"], "ask"),
        (&["ask tool:Other"], "allow"),
        (&["deny tool:t"], "allow"),
    ] {
        assert_eq!(kind(&call.verdict(texts)), expected, "{texts:?}");
        let reversed: Vec<&str> = texts.iter().rev().copied().collect();
        assert_eq!(kind(&call.verdict(&reversed)), expected, "order matters in {texts:?}");
    }
}

#[test]
fn every_command_of_a_line_must_be_allowed_and_any_can_ask_or_deny() {
    let line = |commands: &[&str]| commands.iter().fold(Call::new(Effect::Run), |call, line| call.runs(line));
    for (texts, commands, expected) in [
        (&["ask tool:T", "allow cmd:git log"][..], &["git log -1"][..], "allow"),
        (&["ask tool:T", "allow cmd:git log"], &["git log -1", "git log -2"], "allow"),
        (&["ask tool:T", "allow cmd:git log"], &["git log -1", "touch a"], "ask"),
        (&["ask tool:T", "allow cmd:git log"], &["touch a", "git log -1"], "ask"),
        (&["ask tool:T", "allow cmd:git log"], &["env git log", "git log"], "ask"),
        (&["ask tool:T", "allow cmd:git log"], &["X=1 git log", "git log"], "ask"),
        (&["ask tool:T", "allow cmd:git log"], &[], "ask"),
        (&["ask tool:T", "allow cmd:git log"], &["git log", ""], "ask"),
        (&["deny cmd:git push"], &["git log", "git push"], "deny"),
        (&["deny cmd:git push"], &["env git push", "git push"], "deny"),
        (&["ask cmd:rm"], &["ls", "rm x"], "ask"),
        (&["ask cmd:rm"], &["ls"], "allow"),
        (&["deny cmd:rm"], &["ls"], "allow"),
        // What cannot be read is not known to be harmless, and is not allowed by a rule about commands.
        (&["deny cmd:rm"], &[], "ask"),
        (&["ask cmd:rm"], &[], "ask"),
        (&["deny cmd:rm"], &["ls", ""], "ask"),
        (&["deny cmd:rm", "allow any"], &[], "ask"),
        (&["allow cmd:git"], &[], "allow"),
    ] {
        assert_eq!(kind(&line(commands).verdict(texts)), expected, "{texts:?} {commands:?}");
    }
    // Such a question is for this once: nothing narrow enough could be granted.
    let (why, grants) = question(line(&[]).verdict(&["deny cmd:rm"]));
    assert!(why.contains("cannot be read") && grants.is_empty(), "{why}");
}

#[test]
fn what_denies_or_asks_finds_a_command_in_other_clothes_and_what_allows_does_not() {
    for (rule, command, restrains, allows) in [
        ("git push", "git push", true, true),
        ("git push", "git push origin main", true, true),
        ("git push", "/usr/bin/git push", true, false),
        ("git push", "./git push", true, false),
        ("git push", "git -C x push", true, false),
        ("git push", "git -c a=b -C x --no-pager push", true, false),
        ("git push", "git --git-dir=/x push", true, false),
        ("git push", "git -P push", true, false),
        ("git push", "git log push", false, false),
        ("git push", "git log", false, false),
        ("git push", "git", false, false),
        ("git push", "gitpush", false, false),
        ("git push", "git pushy", false, false),
        ("git push", "/x/notgit push", false, false),
        ("git", "git", true, true),
        ("git", "GIT", false, false),
        ("/usr/bin/git", "git", false, false),
        ("/usr/bin/git", "/usr/bin/git log", true, true),
        ("rm -rf", "rm -rf /", true, true),
        ("rm -rf", "rm -v -rf /", true, false),
        ("rm -rf", "rm -r -f /", false, false),
        ("docker compose down", "docker --context c compose -f x.yml down", true, false),
    ] {
        let call = Call::new(Effect::Run).runs(command);
        assert_eq!(kind(&call.verdict(&[&format!("deny cmd:{rule}")])) == "deny", restrains, "deny {rule}: {command}");
        assert_eq!(kind(&call.verdict(&[&format!("ask cmd:{rule}")])) == "ask", restrains, "ask {rule}: {command}");
        let allowed = call.verdict(&["ask tool:T", &format!("allow cmd:{rule}")]) == Verdict::Allow;
        assert_eq!(allowed, allows, "allow {rule}: {command}");
    }
}

#[test]
fn a_word_that_is_only_known_when_it_runs_is_asked_about_where_it_counts() {
    for (rule, command, expected) in [
        ("git push", "$x push", "ask"),
        ("git push", "git $x", "ask"),
        ("git push", "git `x`", "ask"),
        ("git push", "git -C $x push", "deny"),
        ("git push", "git $x push", "ask"),
        ("git push", "git {push,x}", "ask"),
        ("git push", "git pu*", "ask"),
        ("git push", "/bin/gi?", "ask"),
        ("git push", "git log $x", "allow"),
        ("git push", "git push $x", "deny"),
        ("git push", "awk {print$1}", "allow"),
        ("rm", "[r]m x", "ask"),
        ("rm", "echo $x", "allow"),
        ("rm", "rm $x", "deny"),
    ] {
        let call = Call::new(Effect::Run).runs(command);
        assert_eq!(kind(&call.verdict(&[&format!("deny cmd:{rule}")])), expected, "{rule}: {command}");
    }
    // Nor can it be granted: the same words may mean something else the next time.
    let (_, grants) = question(Call::new(Effect::Run).runs("rm $x").runs("rm y").verdict(&["ask cmd:rm"]));
    assert_eq!(grants, []);
}

#[test]
fn a_grant_for_a_command_holds_only_where_nothing_before_it_changes_what_it_means() {
    let line = |commands: &[&str]| commands.iter().fold(Call::new(Effect::Run), |call, line| call.runs(line));
    let rules = rules(&["ask cmd:rm"]);
    let granted = [command_grant("rm -rf build")];
    for (commands, expected) in [
        (&["rm -rf build"][..], "allow"),
        (&["ls", "rm -rf build"], "allow"),
        (&["cd /", "rm -rf build"], "ask"),
        (&["pushd x", "rm -rf build"], "ask"),
        (&["X=1 rm -rf build", "rm -rf build"], "ask"),
        (&["PATH+=:x", "rm -rf build"], "ask"),
        (&["export A=b", "rm -rf build"], "ask"),
        (&["alias rm=x", "rm -rf build"], "ask"),
        (&["dd if=x", "rm -rf build"], "allow"),
    ] {
        assert_eq!(kind(&line(commands).under(&rules, &granted)), expected, "{commands:?}");
    }
    // Both together can be granted.
    let call = line(&["cd build", "rm -rf build"]);
    let (why, grants) = question(call.under(&rules, &granted));
    assert_eq!(why, "a rule asks about the command `rm -rf build`");
    assert_eq!(grants, [command_grant("rm -rf build"), command_grant("cd build")]);
    assert_eq!(call.under(&rules, &grants), Verdict::Allow);
    assert_eq!(kind(&line(&["cd /", "rm -rf build"]).under(&rules, &grants)), "ask");
}

#[test]
fn a_rule_without_words_is_about_no_command() {
    let empty = |verdict| [Rule { verdict, about: About::Command(vec![]) }, rule("ask tool:T")];
    for verdict in [RuleVerdict::Allow, RuleVerdict::Ask, RuleVerdict::Deny] {
        assert_eq!(kind(&Call::new(Effect::Run).runs("ls").under(&empty(verdict), &[])), "ask");
    }
}

#[test]
fn hosts_are_matched_whole_or_below_a_name() {
    for (pattern, host, matches) in [
        ("example.com", "example.com", true),
        ("example.com", "EXAMPLE.com.", true),
        ("Example.COM", "example.com", true),
        ("example.com", "a.example.com", false),
        ("example.com", "example.com.evil", false),
        ("*.example.com", "a.example.com", true),
        ("*.example.com", "a.b.example.com", true),
        ("*.example.com", "example.com", false),
        ("*.example.com", "notexample.com", false),
        ("*.example.com", ".example.com", false),
        ("*", "anything", true),
        ("10.0.0.1", "10.0.0.1", true),
        ("::1", "[::1]", true),
        ("[::1]", "::1", true),
    ] {
        assert_eq!(HostPattern::new(pattern).unwrap().matches(host), matches, "{pattern} {host}");
    }
    for bad in ["", "*.", "a.*.b", "http://x", "x/y", "a b", "x:80", "*x", "user@x"] {
        assert!(HostPattern::new(bad).unwrap_err().to_string().contains(&format!("{bad:?}")), "{bad}");
    }
}

#[test]
fn a_question_by_a_rule_says_so_and_grants_what_it_is_about() {
    let (why, grants) = question(Call::new(Effect::Run).runs("git push -f").runs("ls").verdict(&["ask cmd:git push"]));
    assert_eq!(why, "a rule asks about the command `git push -f`");
    assert_eq!(grants, [command_grant("git push -f")]);
    let (why, grants) =
        question(Call::new(Effect::External).host("A.example.com").verdict(&["ask host:*.example.com"]));
    assert_eq!(why, "a rule asks about the host A.example.com");
    assert_eq!(grants, [Grant::Host { host: "a.example.com".into() }]);
    let (why, grants) = question(Call::new(Effect::Edit).writes("/work/.env").verdict(&["ask path:.env"]));
    assert_eq!(why, "a rule asks about changes of /work/.env");
    assert_eq!(grants, [path_grant("/work/.env", true)]);
    let (why, grants) = question(Call::new(Effect::External).verdict(&["ask tool:T"]));
    assert_eq!(why, "a rule asks about every call of T");
    assert_eq!(grants, [Grant::Tool { name: "T".into() }]);
    let everything = Policy::ask_everything().rules;
    let (why, grants) = question(Call::new(Effect::Read).reads("/work/a").under(&everything, &[]));
    assert_eq!((why.as_str(), grants), ("a rule asks about every call of T", vec![path_grant("/work/a", false)]));
    let (_, grants) = question(Call::new(Effect::Run).reads("/work/a").under(&everything, &[]));
    assert_eq!(grants, [], "a line that is not known grants nothing");
}

#[test]
fn several_reasons_are_one_question() {
    let call = Call::new(Effect::Edit).writes("/work/.env").writes("/etc/x").asks("it removes a folder");
    let (why, grants) = question(call.verdict(&["ask path:.env"]));
    assert_eq!(why, "a rule asks about changes of /work/.env; /etc/x is outside the workspace; it removes a folder");
    let tool = Grant::Tool { name: "T".into() };
    assert_eq!(grants, [path_grant("/work/.env", true), path_grant("/etc/x", true), tool]);
    assert_eq!(call.under(&rules(&["ask path:.env"]), &grants), Verdict::Allow);
}

#[test]
fn a_grant_answers_what_it_names_and_no_more() {
    let run = |line: &str| Call::new(Effect::Run).runs(line);
    let edit = |path: &str| Call::new(Effect::Edit).writes(path);
    let read = |path: &str| Call::new(Effect::Read).reads(path);
    let host = |host: &str| Call::new(Effect::External).host(host);
    let tool = |name: &str| Grant::Tool { name: name.into() };
    let example = Grant::Host { host: "example.com".into() };
    for (call, texts, grant, expected) in [
        (read("/data"), &[][..], path_grant("/data", false), "allow"),
        (read("/data/x/y"), &[], path_grant("/data", false), "allow"),
        (edit("/data/x"), &[], path_grant("/data", false), "ask"),
        (edit("/data/x"), &[], path_grant("/data", true), "allow"),
        (read("/data/x"), &[], path_grant("/data", true), "allow"),
        (read("/database"), &[], path_grant("/data", true), "ask"),
        (read("/"), &[], path_grant("/data", true), "ask"),
        (run("git push"), &["ask cmd:git"], command_grant("git push"), "allow"),
        (run("git push -f"), &["ask cmd:git"], command_grant("git push"), "ask"),
        (run("git"), &["ask cmd:git"], command_grant("git push"), "ask"),
        (run("/bin/git push"), &["ask cmd:git"], command_grant("git push"), "ask"),
        (run("git push").runs("git pull"), &["ask cmd:git"], command_grant("git push"), "ask"),
        (run("git push"), &["ask tool:T"], command_grant("git push"), "allow"),
        (run("git push"), &["ask any"], tool("T"), "ask"),
        (run(""), &["ask cmd:git"], Grant::Command { words: vec![] }, "ask"),
        (host("example.com"), &["ask host:*"], example.clone(), "allow"),
        (host("Example.com."), &["ask host:*"], example.clone(), "allow"),
        (host("a.example.com"), &["ask host:*"], example.clone(), "ask"),
        (edit("/work/a").asks("sure?"), &[], tool("T"), "allow"),
        (edit("/work/a").asks("sure?"), &[], tool("Other"), "ask"),
        (edit("/work/a").asks("sure?"), &[], path_grant("/work", true), "ask"),
        (edit("/etc/a").asks("sure?"), &[], tool("T"), "ask"),
        (Call::new(Effect::External), &["ask any"], tool("T"), "allow"),
        (edit("/work/a"), &["ask any"], path_grant("/work/a", true), "allow"),
        (edit("/work/b"), &["ask any"], path_grant("/work/a", true), "ask"),
    ] {
        let verdict = call.under(&rules(texts), std::slice::from_ref(&grant));
        assert_eq!(kind(&verdict), expected, "{:?} {texts:?} {grant:?}", call.declaration);
    }
}

#[test]
fn allowing_a_tool_or_everything_answers_the_border_and_the_tool_itself() {
    let call = Call::new(Effect::Edit).writes("/etc/x").asks("sure?");
    for (texts, expected) in [
        (&["allow any"][..], "allow"),
        (&["allow tool:T"], "allow"),
        (&["allow tool:Other"], "ask"),
        (&["allow path:/etc"], "ask"),
        (&["allow any", "ask path:/etc/x"], "ask"),
    ] {
        assert_eq!(kind(&call.verdict(texts)), expected, "{texts:?}");
    }
    let (why, _) = question(call.verdict(&["allow path:/etc"]));
    assert_eq!(why, "sure?");
}

#[test]
fn what_is_only_proposed_is_not_asked_about_by_its_tool() {
    let mut call = Call::new(Effect::Edit).writes("/work/a").asks("it removes a folder");
    (call.previews, call.declaration.preview) = (true, true);
    assert_eq!(kind(&call.verdict(&[])), "ask");
    assert_eq!(call.clone().analyze().verdict(&[]), Verdict::Allow);
    assert_eq!(kind(&call.analyze().verdict(&["ask path:a"])), "ask");
    // A read that asks does something at once, in every mode.
    assert_eq!(kind(&Call::new(Effect::Read).asks("a private address").analyze().verdict(&[])), "ask");
}

#[test]
fn a_reason_shows_words_so_that_blanks_can_be_told() {
    let words = ["printf".to_owned(), "a b".into(), String::new(), "it's".into()];
    assert_eq!(shown_words(&words), r#"printf "a b" "" "it's""#);
    assert!(shown_words(&vec!["x".repeat(50); 9]).ends_with('…'));
}

proptest::proptest! {
    #![proptest_config(crate::testing::cases())]

    #[test]
    fn any_text_is_a_pattern_or_an_error_and_matching_it_ends(text in "\\PC{0,24}", path in "(/[a-c*.{}\\[]{1,4}){1,5}") {
        if let Ok(pattern) = PathPattern::new(&text) {
            pattern.matches(Path::new(&path), Path::new(ROOT));
            pattern.fixed_part(Path::new(ROOT));
        }
        if let Ok(host) = HostPattern::new(&text) {
            host.matches(&path);
        }
    }

    #[test]
    fn an_escaped_path_means_itself_and_what_is_below_and_nothing_beside(
        path in "(/[ -.0-~]{1,6}){1,4}",
        below in "[ -.0-~]{1,6}",
    ) {
        let is_odd = |part: &str| part.split('/').any(|name| name == "." || name == "..");
        proptest::prop_assume!(!is_odd(&path) && !is_odd(&below));
        let pattern = PathPattern::new(&escaped(&path)).unwrap();
        let matches = |path: &str| pattern.matches(Path::new(path), Path::new(ROOT));
        let (inner, beside) = (format!("{path}/{below}"), format!("{path}{below}"));
        proptest::prop_assert!(matches(&path) && matches(&inner));
        proptest::prop_assert!(!matches(&beside));
    }

    /// A rule that denies never misses what the same rule would allow.
    #[test]
    fn what_a_rule_would_allow_it_would_deny(
        command in proptest::collection::vec("(git|push|-C|/bin/git|x|\\$y|a\\*)", 1..6),
        rule in proptest::collection::vec("(git|push|-C|x)", 1..3),
    ) {
        let call = Call::new(Effect::Run).runs(&command.join(" "));
        let of = |verdict, extra: &[&str]| {
            let mut rules = rules(extra);
            rules.push(Rule { verdict, about: About::Command(rule.clone()) });
            call.under(&rules, &[])
        };
        if of(RuleVerdict::Allow, &["ask tool:T"]) == Verdict::Allow {
            proptest::prop_assert_eq!(kind(&of(RuleVerdict::Deny, &[])), "deny");
            proptest::prop_assert_eq!(kind(&of(RuleVerdict::Ask, &[])), "ask");
        }
    }

    /// Granting what a question offers answers the same question.
    #[test]
    fn what_a_question_offers_answers_it(
        paths in proptest::collection::vec(("(/work|/out)(/[ab]){0,2}", proptest::bool::ANY), 0..3),
        commands in proptest::collection::vec("(rm|cd|X=1) [ab]", 0..3),
        ask in proptest::bool::ANY,
        texts in proptest::sample::subsequence(
            vec!["ask any", "ask tool:T", "ask cmd:rm", "ask path:**/a", "allow cmd:rm a", "ask write:/out", "allow any"], 0..4),
    ) {
        let mut call = commands.iter().fold(Call::new(Effect::Run), |call, line| call.runs(line));
        for (path, write) in &paths {
            call = if *write { call.writes(path) } else { call.reads(path) };
        }
        if ask {
            call = call.asks("sure?");
        }
        let rules = rules(&texts);
        if let Verdict::Ask(question) = call.under(&rules, &[]) {
            proptest::prop_assert!(!question.why.is_empty());
            if !question.grants.is_empty() {
                proptest::prop_assert_eq!(call.under(&rules, &question.grants), Verdict::Allow);
            }
        }
    }
}
