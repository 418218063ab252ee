//! A repository that would run something at every turn, and everything around it laid out as a trap.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hames_protocol::{Emit, Event, Failure, MemoryBlobs, Mode, NobodyAnswers, RawCall, SessionId, ToolErrorClass};
use hames_tools::{Door, DoorParts, FsProvider, LockTable, Policy, RunCx, Secrets, ShellProvider, ToolSet};
use hames_workspace::files::{LocalFs, LocalFsOptions};
use hames_workspace::shell::{LocalShell, LocalShellOptions};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// What a trap leaves when it is sprung is named like this.
const SPRUNG: &str = "PWNED";

/// Settings by which a repository names programs; `TRAP` is one, and `ALONE-…` one that takes no argument.
const SETTINGS: &str = r#"
[core]
	fsmonitor = "TRAP fsmonitor; false"
	pager = "TRAP pager; cat"
	editor = TRAP editor
	hooksPath = hooks
	sshCommand = TRAP ssh
	askPass = ALONE-askpass
	gitProxy = ALONE-proxy
	alternateRefsCommand = "TRAP alternates; true"
	untrackedCache = true
	attributesFile = attributes
[diff]
	external = TRAP external
	submodule = diff
	ignoreSubmodules = none
[diff "evil"]
	command = TRAP command
	textconv = TRAP textconv
	cachetextconv = true
[filter "evil"]
	clean = "TRAP clean; cat"
	smudge = "TRAP smudge; cat"
	required = true
[filter "evil.two=x"]
	clean = "TRAP clean2; cat"
	smudge = "TRAP smudge2; cat"
[filter "process"]
	process = TRAP process
	required = true
[merge "evil"]
	driver = TRAP merge
[gpg]
	program = ALONE-gpg
[gpg "ssh"]
	program = ALONE-gpgssh
	defaultKeyCommand = TRAP keycommand
[log]
	showSignature = true
	diffMerges = remerge
[pager]
	log = TRAP pagerlog
	status = TRAP pagerstatus
	diff = TRAP pagerdiff
	show = true
	branch = TRAP pagerbranch
[alias]
	status = !TRAP aliasstatus
	lg = !TRAP aliaslg
	evil = !TRAP aliasevil
	log = !TRAP aliaslog
[credential]
	helper = !TRAP credential
[interactive]
	diffFilter = TRAP difffilter
[submodule]
	recurse = true
[status]
	submoduleSummary = true
[column]
	ui = always
[tar "tar.gz"]
	command = TRAP tar
[remote "origin"]
	url = ext::TRAP remote
	fetch = +refs/heads/*:refs/remotes/origin/*
	promisor = true
	partialclonefilter = blob:none
	uploadpack = TRAP uploadpack
[protocol]
	allow = always
[man]
	viewer = evil
[man "evil"]
	cmd = TRAP man
[sequence]
	editor = TRAP sequence
[browser "evil"]
	cmd = TRAP browser
[trailer "evil"]
	command = TRAP trailer
[user]
	name = Somebody
	email = somebody@example.org
"#;

/// A folder with a home, a repository in it, and traps.
pub(super) struct Bed {
    scratch: TempDir,
    /// What the shell needs for itself lies elsewhere, as it does in earnest.
    _spool: TempDir,
    door: Door,
    seen: Arc<Seen>,
    pub(super) state: Arc<Mutex<hames_protocol::SessionState>>,
}

/// What became of a call.
#[derive(Debug)]
pub(super) enum Became {
    Done(String, Option<i32>),
    Refused(String),
    Failed(String),
}

#[derive(Default)]
struct Seen(Mutex<Vec<Event>>);

#[async_trait]
impl Emit for Seen {
    async fn record(&self, events: Vec<Event>) -> Result<(), Failure> {
        self.0.lock().unwrap().extend(events);
        Ok(())
    }
    fn show(&self, _: Event) {}
}

impl Bed {
    pub(super) fn new() -> Self {
        Self::with_denied(&[])
    }

    /// Where the kernel does nothing, so that the proof and how the line is run stand alone.
    pub(super) fn unconfined() -> Self {
        Self::made(&[], false, |_, _| {})
    }

    /// Only the repository is hostile.
    pub(super) fn in_plain_environment() -> Self {
        Self::made(&[], false, |root, options| {
            let variables = [
                ("PATH", std::env::var("PATH").unwrap()),
                ("HOME", root.join("home").display().to_string()),
                ("MINE", "1".into()),
            ];
            options.env = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        })
    }

    /// Files in these places, relative to the home folder, are nobody's to read.
    pub(super) fn with_denied(denied: &[&str]) -> Self {
        Self::made(denied, true, |_, _| {})
    }

    fn made(denied: &[&str], confines: bool, change: impl FnOnce(&Path, &mut LocalShellOptions)) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        lay_out(&root);
        let work = root.join("work");
        let denied = denied.iter().map(|place| root.join("home").join(place)).collect();
        let fs: Arc<dyn FsProvider> = Arc::new(LocalFs::new(&work, LocalFsOptions { denied }).unwrap());
        let spool = tempfile::tempdir().unwrap();
        let mut options = shell_options(&root, spool.path());
        change(&root, &mut options);
        let shell = LocalShell::new(options).unwrap();
        let shell: Arc<dyn ShellProvider> = Arc::new(if confines { shell } else { shell.without_confinement() });
        let door = Door::new(DoorParts {
            tools: ToolSet::new(hames_workspace::shell::tools()).unwrap(),
            policy: Policy::default(),
            fs,
            preview: None,
            shell,
            blobs: Arc::new(MemoryBlobs::default()),
            approver: Arc::new(NobodyAnswers),
            grants: None,
            secrets: Secrets::default(),
            locks: Arc::new(LockTable::new()),
            window_tokens: 200_000,
            parallel_tools: true,
        });
        Self { scratch, _spool: spool, door, seen: Arc::default(), state: Arc::default() }
    }

    pub(super) fn root(&self) -> PathBuf {
        self.scratch.path().canonicalize().unwrap()
    }

    /// Takes a line through the door.
    pub(super) async fn run(&self, line: &str, mode: Mode) -> Became {
        let arguments = json!({"command": line, "timeout_ms": 20_000}).to_string();
        let call = self.door.admit(RawCall { id: String::new(), name: "Shell".into(), arguments, extra: None });
        let id = call.event.call_id.clone();
        let cx = RunCx {
            session: SessionId::from("session"),
            mode,
            emit: self.seen.clone(),
            state: self.state.clone(),
            abort: CancellationToken::new(),
            interrupt: CancellationToken::new(),
            memory: None,
            pins: hames_tools::PinRoom::default(),
        };
        self.door.run(vec![call], cx).await.unwrap();
        let events = std::mem::take(&mut *self.seen.0.lock().unwrap());
        events
            .into_iter()
            .find_map(|event| match event {
                Event::ToolDone(done) if done.call_id == id => Some(Became::Done(done.output, done.exit_code)),
                Event::ToolError(error) if error.call_id == id => Some(match error.class {
                    ToolErrorClass::Refused => Became::Refused(error.error),
                    _ => Became::Failed(error.error),
                }),
                _ => None,
            })
            .expect("every call is answered")
    }

    /// Proposes a new file.
    pub(super) fn propose(&self, path: &str) {
        let change: hames_protocol::ChangeProposed = serde_json::from_value(json!({
            "call_id": "call", "path": path, "kind": "file", "base": null, "content": {"hash": "aa", "bytes": 1}
        }))
        .unwrap();
        self.state.lock().unwrap().apply(&hames_protocol::Envelope::detached(1, change.into()));
    }

    /// Puts a trap under a program's name into a folder.
    pub(super) fn trap_program(&self, folder: &str, name: &str) {
        let root = self.root();
        script(&root.join(folder).join(name), &format!("#!/bin/sh\n{} program-{name}\n", trap(&root)));
    }

    /// Runs a line as anybody would.
    pub(super) fn run_without_care(&self, line: &str) {
        let root = self.root();
        let mut command = Command::new(super::super::shell_path());
        command
            .args(["-c", line])
            .current_dir(root.join("work"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap());
        command.env("HOME", root.join("home")).output().unwrap();
    }

    /// Everything there is: kind, rights, size, times, and content where it is wanted.
    pub(super) fn tree(&self, content: bool) -> BTreeMap<PathBuf, String> {
        let mut tree = BTreeMap::new();
        collect(&self.root(), content, &mut tree);
        tree
    }

    /// What traps left.
    pub(super) fn sprung(&self) -> Vec<PathBuf> {
        let is_sprung =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(SPRUNG));
        self.tree(false).into_keys().filter(is_sprung).collect()
    }
}

fn shell_options(root: &Path, spool: &Path) -> LocalShellOptions {
    let work = root.join("work");
    let path = std::env::var("PATH").unwrap();
    let evil = work.join("evil.sh").display().to_string();
    let variables = [
        // The workspace first, a folder open to everybody, the current one.
        ("PATH", format!("{}:{}:.::{path}", work.join("bin").display(), root.join("open").display())),
        ("HOME", root.join("home").display().to_string()),
        ("USER", "somebody".into()),
        ("LANG", "C.UTF-8".into()),
        ("BASH_ENV", evil.clone()),
        ("ENV", evil.clone()),
        ("BASH_FUNC_ls%%", format!("() {{ {} function; }}", trap(root))),
        ("BASH_FUNC_git%%", format!("() {{ {} gitfunction; }}", trap(root))),
        ("PROMPT_COMMAND", evil.clone()),
        ("PS4", format!("$({evil})")),
        ("SHELLOPTS", "xtrace".into()),
        ("GIT_EXTERNAL_DIFF", evil.clone()),
        ("GIT_PAGER", evil.clone()),
        ("PAGER", evil.clone()),
        ("GIT_SSH_COMMAND", evil.clone()),
        ("GIT_CONFIG_COUNT", "1".into()),
        ("GIT_CONFIG_KEY_0", "core.fsmonitor".into()),
        ("GIT_CONFIG_VALUE_0", evil.clone()),
        ("GIT_TRACE2_EVENT", root.join("PWNED-trace").display().to_string()),
        ("LESSOPEN", format!("|{evil}")),
        ("GREP_OPTIONS", "--devices=skip".into()),
        ("TAR_OPTIONS", format!("--to-command={evil}")),
        ("RIPGREP_CONFIG_PATH", work.join("ripgreprc").display().to_string()),
        ("LD_PRELOAD", work.join("evil.so").display().to_string()),
        ("CDPATH", root.display().to_string()),
        ("TMPDIR", work.display().to_string()),
    ];
    LocalShellOptions {
        shell: super::super::shell_path(),
        env: variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        reaper: None,
        spool_dir: spool.to_owned(),
        run_cookie: root.file_name().unwrap().to_string_lossy().into_owned(),
    }
}

/// A program that leaves a file named after what it was started for.
fn trap(root: &Path) -> String {
    root.join("trap.sh").display().to_string()
}

fn write(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn script(path: &Path, content: &str) {
    write(path, content);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn lay_out(root: &Path) {
    let work = root.join("work");
    script(&root.join("trap.sh"), &format!("#!/bin/sh\n: > \"{}/{SPRUNG}-$1\"\n", root.display()));
    for name in ["gpg", "gpgssh", "askpass", "proxy"] {
        script(&root.join(format!("trap-{name}")), &format!("#!/bin/sh\n{} {name}\n", trap(root)));
    }
    write(&root.join("beside/file.txt"), "beside the workspace\n");
    write(
        &root.join("home/.gitconfig"),
        "[init]\n\tdefaultBranch = main\n[user]\n\tname = A\n\temail = a@example.org\n[protocol \"file\"]\n\tallow = always\n",
    );
    write(&root.join("home/private/secret.txt"), "the secret\n");
    write(&root.join("home/notes.txt"), "notes\n");
    std::fs::create_dir_all(root.join("open")).unwrap();
    std::fs::set_permissions(root.join("open"), std::fs::Permissions::from_mode(0o777)).unwrap();
    for name in ["ls", "git", "cat", "grep", "find", "sort", "date", "bash", "only-here"] {
        script(&root.join("open").join(name), &format!("#!/bin/sh\n{} open-{name}\n", trap(root)));
        script(&work.join("bin").join(name), &format!("#!/bin/sh\n{} bin-{name}\n", trap(root)));
    }
    repository(root, &work);
}

fn repository(root: &Path, work: &Path) {
    let git = |folder: &Path, args: &[&str]| {
        let output = Command::new("git")
            .args(args)
            .current_dir(folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", root.join("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_DATE", "2024-01-01T00:00:00Z")
            .env("GIT_COMMITTER_DATE", "2024-01-01T00:00:00Z")
            .output()
            .expect("the tests need git");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    // Another repository, to be a submodule.
    let other = root.join("other");
    write(&other.join("inner.txt"), "inner\n");
    git(&other, &["init", "-q"]);
    git(&other, &["add", "."]);
    git(&other, &["commit", "-qm", "inner"]);

    files(work);
    git(work, &["init", "-q"]);
    git(work, &["add", "."]);
    git(work, &["commit", "-qm", "first"]);
    git(work, &["submodule", "--quiet", "add", other.to_str().unwrap(), "module"]);
    git(work, &["commit", "-qm", "module"]);
    git(work, &["checkout", "-qb", "side"]);
    write(&work.join("a.txt"), "alpha one\nbeta: side\ngamma\n");
    git(work, &["commit", "-qam", "side"]);
    git(work, &["checkout", "-q", "main"]);
    write(&work.join("a.txt"), "alpha one\nbeta: main\ngamma\n");
    git(work, &["commit", "-qam", "on main"]);
    git(work, &["merge", "-q", "-s", "ours", "side", "-m", "merged"]);
    git(work, &["tag", "v1"]);
    write(&work.join("b.txt"), "for the stash\n");
    git(work, &["stash", "-q"]);
    // A commit that says it is signed.
    let commit = git(work, &["cat-file", "commit", "HEAD"]);
    let (head, message) = commit.split_once("\n\n").unwrap();
    let signed =
        format!("{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n xx\n -----END PGP SIGNATURE-----\n\n{message}\n");
    write(&root.join("signed"), &signed);
    let signed = git(work, &["hash-object", "-t", "commit", "-w", root.join("signed").to_str().unwrap()]);
    git(work, &["reset", "-q", "--soft", &signed]);

    // From here on nothing may call git without care.
    let settings = SETTINGS.replace("TRAP", &trap(root)).replace("ALONE", root.join("trap").to_str().unwrap());
    for config in [work.join(".git/config"), work.join(".git/modules/module/config")] {
        let before = std::fs::read_to_string(&config).unwrap();
        write(&config, &format!("{before}{settings}"));
    }
    write(
        &work.join(".gitattributes"),
        "*.txt diff=evil filter=evil merge=evil\n*.json filter=process\nsub/* filter=evil.two=x\n",
    );
    write(&work.join(".git/info/attributes"), "a.txt diff=evil filter=evil merge=evil\n");
    write(&work.join("attributes"), "* diff=evil filter=evil\n");
    write(&work.join("module/.gitattributes"), "* diff=evil filter=evil\n");
    write(&work.join("module/inner.txt"), "changed\n");
    for hook in ["post-index-change", "pre-commit", "post-checkout", "reference-transaction", "fsmonitor-watchman"] {
        for folder in [work.join(".git/hooks"), work.join("hooks")] {
            script(&folder.join(hook), &format!("#!/bin/sh\n{} hook-{hook}\n", trap(root)));
        }
    }
    // Changed, and the same content with another time: both make git look again.
    write(&work.join("a.txt"), "alpha one\nbeta: changed\ngamma\n");
    let old = std::fs::File::options().append(true).open(work.join("b.txt")).unwrap();
    old.set_modified(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000)).unwrap();
    let json = std::fs::File::options().append(true).open(work.join("j.json")).unwrap();
    json.set_modified(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_001)).unwrap();
}

/// The files of the workspace, some with names that look like options.
fn files(work: &Path) {
    write(&work.join("a.txt"), "alpha one\nbeta: two\ngamma\n");
    write(&work.join("b.txt"), "alpha\ndelta 4\n");
    write(&work.join("sub/c.txt"), "alpha in sub\n");
    write(&work.join("sub/d.txt"), "d\n");
    write(&work.join("sub/deep/e.txt"), "e\n");
    write(&work.join("j.json"), "{\"a\": [{\"b\": 1}, {\"b\": 2}]}\n");
    write(&work.join(".gitignore"), "*.log\nbin\nodd\n*.gz\n*.tar\n*.tgz\n");
    write(&work.join("ignored.log"), "log\n");
    write(&work.join("a"), "a\nb\n");
    write(&work.join("ripgreprc"), "--pre=./evil.sh\n");
    write(&work.join("evil.so"), "no library\n");
    let root = work.parent().unwrap();
    write(
        &work.join("rust-toolchain.toml"),
        "[toolchain]\npath = \"TOOLS\"\n".replace("TOOLS", root.join("tools").to_str().unwrap()).as_str(),
    );
    write(&work.join(".python-version"), "../../evil\n");
    for tool in ["cargo", "rustc"] {
        script(&root.join("tools/bin").join(tool), &format!("#!/bin/sh\n{} {tool}\n", trap(root)));
    }
    script(&work.join("evil.sh"), &format!("#!/bin/sh\n{} evil\n", trap(root)));
    for name in [
        "-oPWNED-o",
        "-delete",
        "-exec",
        "--output=PWNED-output",
        "-i",
        "-f",
        "a b",
        "$(touch PWNED-name)",
        "`touch PWNED-tick`",
        ";touch PWNED-semi",
        "-",
        "--pre=.",
        "*",
        "é",
    ] {
        write(&work.join("odd").join(name), "odd\n");
    }
    symlink("../../home/private/secret.txt", work.join("odd/link")).unwrap();
    for (program, args) in [
        ("tar", vec!["-cf", "t.tar", "a.txt", "sub"]),
        ("tar", vec!["-czf", "t.tgz", "a.txt"]),
        ("gzip", vec!["-k", "-S", ".gz", "a.txt"]),
    ] {
        let status = Command::new(program).args(args).current_dir(work).status().expect("the tests need tar and gzip");
        assert!(status.success());
    }
    std::fs::rename(work.join("a.txt.gz"), work.join("z.gz")).unwrap();
}

fn collect(path: &Path, content: bool, tree: &mut BTreeMap<PathBuf, String>) {
    let meta = path.symlink_metadata().unwrap();
    let mut line = format!("{:o} {} {}.{}", meta.mode(), meta.len(), meta.mtime(), meta.mtime_nsec());
    write!(line, " {}.{} {}", meta.ctime(), meta.ctime_nsec(), meta.ino()).unwrap();
    if meta.is_symlink() {
        write!(line, " -> {}", path.read_link().unwrap().display()).unwrap();
    } else if meta.is_file() && content {
        write!(line, " {}", std::fs::read(path).unwrap().escape_ascii()).unwrap();
    }
    tree.insert(path.to_owned(), line);
    if meta.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            collect(&entry.unwrap().path(), content, tree);
        }
    }
}
