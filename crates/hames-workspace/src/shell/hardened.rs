//! How a command that was proven to only read is run, so that the proof holds.
//!
//! The proof ([`prove`]) is about what the line says. What it cannot say is here: which program a name
//! means, what the environment tells programs, and what a repository tells git. So the environment is made anew from a
//! short list, names are looked up only in folders that neither the workspace nor strangers can write to, and git is told
//! to run no program of a repository: by its environment where that can be said there, by options put into the line
//! where not, and for the filters, whose names are the repository's own, by asking for their names first.
//!
//! Only bash will do: other shells read the same text differently.
//!
//! In Build, where anything may run, the person's own environment stays, and only git is told.

use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use hames_tools::ShellError;

use super::prove::{self, Location, Proof};

/// Variables that are handed on where they are set; `LANG` and `LC_*` have conditions of their own.
const HANDED_ON: [&str; 3] = ["USER", "LOGNAME", "TZ"];

/// Folders of toolchains: handed on where they lie outside the workspace.
const FOLDERS_HANDED_ON: [&str; 2] = ["CARGO_HOME", "RUSTUP_HOME"];

/// What every proven command finds in its environment.
const FIXED: [(&str, &str); 21] = [
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("LESSSECURE", "1"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("GIT_SSH_COMMAND", "false"),
    // Looking must not write the index, ask anybody, or fetch what is missing.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TRACE", "0"),
    ("GIT_TRACE2", "0"),
    ("GIT_TRACE2_EVENT", "0"),
    ("GIT_TRACE2_PERF", "0"),
    // Toolchains of the workspace's choice would be programs from the workspace, or be fetched.
    ("RUSTUP_AUTO_INSTALL", "0"),
    ("PYENV_VERSION", "system"),
    ("DEBUGINFOD_URLS", ""),
];

/// Programs that put what they read into temporary files where it is much or comes from a pipe.
const WITH_TEMPORARY_FILES: [&str; 2] = ["sort", "tac"];

/// Says in git's settings that these here are in force.
const IN_FORCE: &str = "hames.hardened";

/// Settings of git that win over those of a repository.
const GIT_SETTINGS: [(&str, &str); 27] = [
    (IN_FORCE, "true"),
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.attributesFile", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.askPass", "false"),
    ("core.sshCommand", "false"),
    ("core.alternateRefsCommand", "false"),
    ("credential.helper", ""),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.ssh.defaultKeyCommand", "false"),
    ("log.showSignature", "false"),
    // Another value makes differences of merges by merging, with the repository's own merge programs.
    ("log.diffMerges", "separate"),
    // `git diff` would write the index.
    ("diff.autoRefreshIndex", "false"),
    ("diff.submodule", "short"),
    ("diff.ignoreSubmodules", "dirty"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("protocol.allow", "never"),
    ("column.ui", "never"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("core.untrackedCache", "keep"),
];

/// The permission by which everybody may write.
const OTHERS_WRITE: u32 = 0o002;

/// Asks git for the names of all settings in force, and where the repository keeps its own files.
pub(super) const ASK_GIT: &str =
    "git config --list --name-only -z && printf 'at:%s\\0' \"$(git rev-parse --absolute-git-dir 2>/dev/null)\"";

/// What is the same for every proven command of a shell.
#[derive(Debug)]
pub(super) struct Ground {
    /// What other commands find in theirs.
    all: Vec<(String, String)>,
    env: Vec<(String, String)>,
    /// Folders programs are looked up in otherwise, in order.
    path: Vec<PathBuf>,
    home: PathBuf,
}

/// A proven command that is ready to run.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The line, with what has to be put into it.
    pub(super) line: String,
    /// Its environment.
    pub(super) env: Vec<(String, String)>,
    /// The bash that runs it.
    pub(super) bash: PathBuf,
    /// Folders in which git is called.
    pub(super) repositories: Vec<PathBuf>,
    /// It may need a folder for temporary files.
    pub(super) needs_scratch: bool,
}

impl Ground {
    /// Picks from the environment that other commands get.
    pub(super) fn new(env: &[(String, String)]) -> Self {
        let value = |name: &str| env.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let home = value("HOME").filter(|home| is_plain_path(home)).unwrap_or("/nonexistent");
        let mut kept: Vec<(String, String)> = vec![("HOME".to_owned(), home.to_owned())];
        for (name, value) in env {
            let is_locale = name == "LANG" || name.starts_with("LC_");
            if (is_locale && is_readable_locale(value)) || (HANDED_ON.contains(&name.as_str()) && is_plain_value(value))
            {
                kept.push((name.clone(), value.clone()));
            } else if is_locale {
                // In other character sets a byte of a letter can be taken for a quote.
                kept.push((name.clone(), "C.UTF-8".to_owned()));
            } else if FOLDERS_HANDED_ON.contains(&name.as_str()) && is_plain_path(value) {
                kept.push((name.clone(), value.clone()));
            }
        }
        kept.extend(FIXED.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let path = value("PATH").unwrap_or_default().split(':').filter(|folder| folder.starts_with('/'));
        Self { all: env.to_vec(), env: kept, path: path.map(PathBuf::from).collect(), home: PathBuf::from(home) }
    }

    /// What `~` means.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// Makes a command ready to run, git's filters aside.
    pub(super) fn prepare(
        &self,
        line: &str,
        cwd: &Path,
        workspace: &Path,
        shell: &OsStr,
    ) -> Result<Prepared, ShellError> {
        let proof = prove::proof_of(line);
        if !proof.reads {
            return Err(ShellError("not run: this command is not proven to only read".to_owned()));
        }
        let path: Vec<&PathBuf> = self.path.iter().filter(|folder| is_trusted(folder, workspace)).collect();
        if path.is_empty() {
            return Err(ShellError(
                "not run: no folder of PATH lies outside the workspace and is writable only by its owner, so no program can \
                 be trusted to only read; use Read, Grep, Glob or List"
                    .to_owned(),
            ));
        }
        self.check_programs(&proof, &path, workspace)?;
        let bash = bash(Path::new(shell), &path, workspace)?;
        let mut env: Vec<_> = self
            .env
            .iter()
            .filter(|(name, value)| {
                !FOLDERS_HANDED_ON.contains(&name.as_str()) || !resolves_inside(Path::new(value), workspace)
            })
            .cloned()
            .collect();
        let path: Vec<_> = path.iter().map(|folder| folder.display().to_string()).collect();
        env.push(("PATH".to_owned(), path.join(":")));
        let proxied = |name: &String| matches!(name.rsplit('/').next(), Some("cargo" | "rustc"));
        if let Some(name) = proof.programs.iter().find(|name| proxied(name)) {
            env.push(("RUSTUP_TOOLCHAIN".to_owned(), self.toolchain(&env, name)?));
        }
        let needs_scratch =
            proof.programs.iter().any(|name| WITH_TEMPORARY_FILES.iter().any(|known| name.ends_with(known)));
        let repositories = self.repositories(&proof, cwd);
        Ok(Prepared { line: with_options(line, &proof), env, bash, repositories, needs_scratch })
    }

    /// The same in the environment of any other command: only what git is told is added.
    pub(super) fn prepare_kept(&self, line: &str, cwd: &Path, shell: &OsStr) -> Result<Prepared, ShellError> {
        let proof = prove::proof_of(line);
        let shell = Path::new(shell);
        if !proof.reads || shell.file_name() != Some(OsStr::new("bash")) {
            return Err(ShellError("this command is not proven to only read, or its shell is not bash".to_owned()));
        }
        let overrules = |name: &str| name.starts_with("GIT_CONFIG_") || name == "GIT_EXTERNAL_DIFF";
        let told = FIXED.iter().filter(|(name, _)| name.starts_with("GIT_") && !name.starts_with("GIT_TRACE"));
        let mut env: Vec<_> = self.all.iter().filter(|(name, _)| !overrules(name)).cloned().collect();
        env.retain(|(name, _)| !told.clone().any(|(fixed, _)| fixed == name));
        env.extend(told.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let repositories = self.repositories(&proof, cwd);
        Ok(Prepared {
            line: with_options(line, &proof),
            env,
            bash: shell.to_owned(),
            repositories,
            needs_scratch: false,
        })
    }

    /// Every folder in which a line can call git.
    fn repositories(&self, proof: &Proof, cwd: &Path) -> Vec<PathBuf> {
        let mut repositories = Vec::new();
        for (folder, below) in proof.git.iter().flat_map(|call| &call.folders) {
            let place = located(&located(cwd, folder, &self.home), below, &self.home);
            if !repositories.contains(&place) {
                repositories.push(place);
            }
        }
        repositories
    }

    /// A program that is found only where the workspace or a stranger could have put it is not the one that is meant.
    fn check_programs(&self, proof: &Proof, path: &[&PathBuf], workspace: &Path) -> Result<(), ShellError> {
        for name in &proof.programs {
            let found = if name.contains('/') {
                Some(PathBuf::from(name)).filter(|path| is_program(path))
            } else {
                path.iter().map(|folder| folder.join(name)).find(|path| is_program(path))
            };
            let elsewhere = match found {
                Some(found) if resolves_inside(&found, workspace) => Some(found),
                Some(_) => None,
                None => self.path.iter().map(|folder| folder.join(name)).find(|path| is_program(path)),
            };
            if let Some(elsewhere) = elsewhere {
                return Err(ShellError(format!(
                    "not run: {name} is {}, which the workspace or other users can change, so it is not known to only \
                     read; use Read, Grep, Glob or List instead",
                    elsewhere.display()
                )));
            }
        }
        Ok(())
    }

    /// The toolchain that a person chose, whatever the workspace asks for. Without one, rustup would set itself up.
    fn toolchain(&self, env: &[(String, String)], name: &str) -> Result<String, ShellError> {
        let folder = env.iter().find(|(name, _)| name == "RUSTUP_HOME");
        let folder = folder.map_or_else(|| self.home.join(".rustup"), |(_, folder)| PathBuf::from(folder));
        let settings = std::fs::read_to_string(folder.join("settings.toml")).unwrap_or_default();
        let chosen = settings.lines().find_map(|line| line.strip_prefix("default_toolchain")?.trim().strip_prefix('='));
        let is_name =
            |value: &&str| !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        if let Some(chosen) = chosen.map(|value| value.trim().trim_matches('"')).filter(is_name) {
            return Ok(chosen.to_owned());
        }
        let found = self.path.iter().map(|folder| folder.join(name)).find(|path| is_program(path));
        let real = found.as_deref().and_then(|path| path.canonicalize().ok());
        let is_rustup = [found.as_deref(), real.as_deref()]
            .into_iter()
            .flatten()
            .any(|path| path.file_name() == Some(OsStr::new("rustup")) || is_program(&path.with_file_name("rustup")));
        match is_rustup {
            false => Ok("none".to_owned()),
            true => Err(ShellError(format!(
                "not run: {name} is started by rustup, which has no default toolchain here and would set itself up; run it in \
                 Build mode"
            ))),
        }
    }
}

impl Prepared {
    /// Switches off what repositories name for their files. `answers` are git's, one for each of them.
    pub(super) fn switch_off(&mut self, answers: &[Vec<u8>]) -> Result<(), ShellError> {
        let mut settings: Vec<(String, String)> =
            GIT_SETTINGS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        for answer in answers {
            let mut in_force = false;
            for name in answer.split(|&b| b == 0).map(String::from_utf8_lossy) {
                in_force |= name == IN_FORCE;
                if let Some(folder) = name.strip_prefix("at:") {
                    check_index(Path::new(folder))?;
                }
                if name.contains('\u{fffd}') && name.starts_with("filter.") {
                    return Err(ShellError(
                        "not run: the repository has a filter whose name is no text, which cannot be switched off; use Read, \
                         Grep, Glob or List"
                            .to_owned(),
                    ));
                }
                settings.extend(off(&name).filter(|setting| !settings.contains(setting)));
            }
            if !in_force {
                return Err(ShellError(
                    "not run: this git cannot be told to run no programs of the repository; git 2.31 or newer is needed"
                        .to_owned(),
                ));
            }
        }
        self.env.extend(git_environment(&settings));
        Ok(())
    }
}

/// The environment in which git is asked for its settings.
pub(super) fn asking(prepared: &Prepared) -> Vec<(String, String)> {
    let settings: Vec<_> = GIT_SETTINGS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    prepared.env.iter().cloned().chain(git_environment(&settings)).collect()
}

fn git_environment(settings: &[(String, String)]) -> Vec<(String, String)> {
    let count = ("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string());
    let entries = settings.iter().enumerate().flat_map(|(at, (name, value))| {
        [(format!("GIT_CONFIG_KEY_{at}"), name.clone()), (format!("GIT_CONFIG_VALUE_{at}"), value.clone())]
    });
    std::iter::once(count).chain(entries).collect()
}

/// What switches a filter off: no program, and no failure for want of it. Aliases never count where git has a command of
/// that name; should it lose one, they must not take its place.
fn off(name: &str) -> Option<(String, String)> {
    if name.starts_with("alias.") {
        return Some((name.to_owned(), "!false".to_owned()));
    }
    let inner = name.strip_prefix("filter.")?;
    let (_, kind) = inner.rsplit_once('.')?;
    let value = match kind {
        "clean" | "smudge" | "process" => "",
        "required" => "false",
        _ => return None,
    };
    Some((name.to_owned(), value.to_owned()))
}

/// Reading an index in two parts touches one of them.
fn check_index(folder: &Path) -> Result<(), ShellError> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(());
    };
    let is_shared = |name: &OsStr| name.to_string_lossy().starts_with("sharedindex.");
    match entries.flatten().any(|entry| is_shared(&entry.file_name())) {
        false => Ok(()),
        true => Err(ShellError(
            "not run: the repository's index is split, and git changes the time of one part when it reads it; use Read, Grep, \
             Glob or List, or run it in Build mode"
                .to_owned(),
        )),
    }
}

/// The line with the options in it that keep programs of a repository out. They are put behind whole words, so nothing
/// else is read differently. What a crash would leave is switched off, too.
fn with_options(line: &str, proof: &Proof) -> String {
    let mut inserts: Vec<_> = proof.git.iter().filter_map(|call| call.insert).collect();
    inserts.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let mut text = line.to_owned();
    for (at, options) in inserts {
        text.insert_str(at, &format!(" {options}"));
    }
    format!("ulimit -S -c 0 2>/dev/null\n{text}")
}

/// The bash to run: the shell itself where it is one and not from the workspace.
fn bash(shell: &Path, path: &[&PathBuf], workspace: &Path) -> Result<PathBuf, ShellError> {
    let is_bash = shell.file_name() == Some(OsStr::new("bash")) && shell.is_absolute();
    let parent_trusted = || shell.parent().is_some_and(|folder| is_trusted(folder, workspace));
    if is_bash && parent_trusted() && !resolves_inside(shell, workspace) {
        return Ok(shell.to_owned());
    }
    let found = path.iter().map(|folder| folder.join("bash")).find(|path| is_program(path));
    found.filter(|bash| !resolves_inside(bash, workspace)).ok_or_else(|| {
        ShellError(
            "not run: commands that only read are run by bash, and none is installed outside the workspace; use Read, Grep, \
             Glob or List"
                .to_owned(),
        )
    })
}

/// Where a place is that is written relative to a folder.
pub(super) fn located(folder: &Path, place: &Location, home: &Path) -> PathBuf {
    match place.home {
        // What follows the tilde is empty or begins with a slash; without one it belongs to the last name.
        true => PathBuf::from(format!("{}{}", home.display(), place.text)),
        false if place.text.is_empty() => folder.to_owned(),
        false => folder.join(&place.text),
    }
}

/// Whether programs of this folder are those of the system or of the user: outside the workspace, and no folder on the way
/// to it can be written to by everybody.
fn is_trusted(folder: &Path, workspace: &Path) -> bool {
    let Ok(real) = folder.canonicalize() else {
        return false;
    };
    let open_to_all = |folder: &Path| folder.metadata().map_or(true, |meta| meta.mode() & OTHERS_WRITE != 0);
    // Shims choose a version by files in the workspace.
    let is_shims = [folder, &real].iter().any(|path| path.ends_with("shims") || path.ends_with(".volta/bin"));
    real.is_dir()
        && !is_shims
        && !real.starts_with(workspace)
        && !real.ancestors().any(open_to_all)
        && !folder.ancestors().any(open_to_all)
        && !folder.to_string_lossy().contains([':', '\n'])
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn resolves_inside(path: &Path, workspace: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| real.starts_with(workspace))
}

/// An absolute path that stays one word wherever it is used.
fn is_plain_path(path: &str) -> bool {
    path.starts_with('/') && is_plain_value(path) && !path.contains("//") && !path.ends_with("/..")
}

fn is_plain_value(value: &str) -> bool {
    value.chars().all(|c| c.is_alphanumeric() || "_./@+-:,".contains(c))
}

/// A locale whose character set reads a command line like ASCII.
fn is_readable_locale(value: &str) -> bool {
    let set = value.rsplit_once('.').map(|(_, set)| set.to_ascii_lowercase());
    matches!(value, "" | "C" | "POSIX") || matches!(set.as_deref(), Some("utf-8" | "utf8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn get<'a>(env: &'a [(String, String)], name: &str) -> Option<&'a str> {
        env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn only_what_tells_nothing_is_handed_on() {
        let ground = Ground::new(&env(&[
            ("HOME", "/home/user"),
            ("USER", "user"),
            ("LANG", "en_US.UTF-8"),
            ("LC_ALL", "zh_CN.GBK"),
            ("TZ", "Europe/Berlin"),
            ("BASH_ENV", "x"),
            ("LD_PRELOAD", "x"),
            ("GIT_DIR", "x"),
            ("BASH_FUNC_ls%%", "() { touch x; }"),
            ("PATH", "/usr/bin:.::bin:/bin"),
            ("GREP_OPTIONS", "-f"),
            ("LESSOPEN", "|x"),
            ("NODE_OPTIONS", "x"),
            ("SECRET", "x"),
            ("TERM", "xterm"),
            ("PAGER", "x"),
            ("TAR_OPTIONS", "x"),
        ]));
        for gone in [
            "BASH_ENV",
            "LD_PRELOAD",
            "GIT_DIR",
            "BASH_FUNC_ls%%",
            "GREP_OPTIONS",
            "LESSOPEN",
            "NODE_OPTIONS",
            "SECRET",
            "TAR_OPTIONS",
        ] {
            assert_eq!(get(&ground.env, gone), None, "{gone}");
        }
        for (name, value) in [
            ("HOME", "/home/user"),
            ("USER", "user"),
            ("LANG", "en_US.UTF-8"),
            ("LC_ALL", "C.UTF-8"),
            ("TZ", "Europe/Berlin"),
            ("TERM", "dumb"),
            ("PAGER", "cat"),
        ] {
            assert_eq!(get(&ground.env, name), Some(value));
        }
        assert_eq!(ground.path, [PathBuf::from("/usr/bin"), PathBuf::from("/bin")]);
    }

    #[test]
    fn a_home_that_would_split_or_match_is_none() {
        for home in ["", "relative", "/home/a b", "/home/*", "/home/$x", "/a//b", "-x", "/home/a\nb"] {
            assert_eq!(Ground::new(&env(&[("HOME", home)])).home(), Path::new("/nonexistent"), "{home:?}");
        }
        assert_eq!(Ground::new(&[]).home(), Path::new("/nonexistent"));
    }

    #[test]
    fn options_are_put_behind_whole_words() {
        for (line, expected) in [
            ("git log", "git log --no-ext-diff --no-textconv"),
            ("git --no-pager log -p|cat", "git --no-pager log --no-ext-diff --no-textconv -p|cat"),
            (
                "echo \"$(git show)\"; git status",
                "echo \"$(git show --no-ext-diff --no-textconv)\"; git status --ignore-submodules=dirty",
            ),
            ("git 'stash' \"list\"", "git 'stash' \"list\" --no-ext-diff --no-textconv"),
            ("git stash show", "git stash show --stat --no-ext-diff --no-textconv"),
            ("git stash show -p", "git stash show --no-ext-diff --no-textconv -p"),
            ("ls | xargs -I{} git log -- {}", "ls | xargs -I{} git log --no-ext-diff --no-textconv -- {}"),
            ("git branch", "git branch"),
        ] {
            let proof = prove::prove(line);
            assert!(proof.reads, "{line}: {:?}", proof.refusal);
            assert_eq!(with_options(line, &proof).lines().skip(1).collect::<Vec<_>>().join("\n"), expected);
        }
    }

    #[test]
    fn filters_are_switched_off_by_their_names() {
        for (name, value) in [
            ("filter.lfs.clean", Some("")),
            ("filter.lfs.smudge", Some("")),
            ("filter.a.b.process", Some("")),
            ("filter.x=y.required", Some("false")),
            ("alias.log", Some("!false")),
            ("filter.x", None),
            ("filter.x.other", None),
            ("core.filter.clean", None),
            ("diff.x.textconv", None),
        ] {
            assert_eq!(off(name).map(|(_, value)| value).as_deref(), value, "{name}");
        }
    }
}
