//! Variables: which mean nothing to anybody, and which may be set for a command.

/// Names that mean something to bash whatever their case.
const LOWER_CASE: [&str; 2] = ["auto_resume", "histchars"];

/// Upper-case names that bash, the C library, the loader or common programs look at, by their beginnings.
const MEANING: [&str; 66] = [
    "BASH",
    "CDPATH",
    "CHILD_MAX",
    "CLASSPATH",
    "COLUMNS",
    "COMP",
    "COPROC",
    "DIRSTACK",
    "DISPLAY",
    "EDITOR",
    "EMACS",
    "ENV",
    "EPOCH",
    "EUID",
    "EXECIGNORE",
    "FCEDIT",
    "FIGNORE",
    "FUNC",
    "GCONV",
    "GETCONF",
    "GIT",
    "GLOB",
    "GREP",
    "GROUPS",
    "GZIP",
    "HAMES",
    "HIST",
    "HOME",
    "HOST",
    "IFS",
    "IGNOREEOF",
    "INPUTRC",
    "INSIDE",
    "JAVA",
    "LANG",
    "LC_",
    "LD_",
    "LESS",
    "LINENO",
    "LINES",
    "LOCPATH",
    "LOGNAME",
    "MACHTYPE",
    "MAIL",
    "MALLOC",
    "MANPAGER",
    "MAPFILE",
    "NLSPATH",
    "NODE",
    "NO_COLOR",
    "OLDPWD",
    "OPT",
    "OSTYPE",
    "PAGER",
    "PATH",
    "PERL",
    "PIPESTATUS",
    "POSIX",
    "PPID",
    "PROMPT",
    "PS",
    "PWD",
    "PYTHON",
    "RANDOM",
    "READLINE",
    "RUBY",
];

/// The rest of them.
const MORE_MEANING: [&str; 22] = [
    "RES_",
    "RUST",
    "SECONDS",
    "SHELL",
    "SHLVL",
    "SRANDOM",
    "SSH",
    "SUDO",
    "TAR_",
    "TERM",
    "TEXTDOMAIN",
    "TIME",
    "TMOUT",
    "TMP",
    "TZ",
    "UID",
    "UNZIP",
    "USER",
    "VISUAL",
    "XDG",
    "XZ_",
    "ZSTD",
];

/// Whether a variable of this name is nobody's business but the line's own.
pub(in super::super) fn is_plain(name: &str) -> bool {
    let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let upper = name.to_ascii_uppercase();
    let means_something = |listed: &str| upper.starts_with(listed) && name.bytes().all(|b| !b.is_ascii_lowercase());
    is_name && !LOWER_CASE.contains(&name) && !MEANING.iter().chain(&MORE_MEANING).any(|listed| means_something(listed))
}

/// Whether a variable may be set to this value for a command: it changes only how things look.
pub(in super::super) fn is_harmless(name: &str, value: &str) -> bool {
    let is_plain = value.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-+:/@".contains(&b));
    match name {
        "TZ" => is_plain && !value.contains("..") && !value.starts_with(['/', ':']),
        "NO_COLOR" | "CLICOLOR" | "FORCE_COLOR" => is_plain,
        "COLUMNS" | "LINES" => value.len() <= 4 && value.bytes().all(|b| b.is_ascii_digit()),
        "GIT_PAGER" | "PAGER" | "MANPAGER" => matches!(value, "" | "cat"),
        "GIT_OPTIONAL_LOCKS" | "GIT_TERMINAL_PROMPT" => value == "0",
        "LANG" | "LANGUAGE" => is_locale(value),
        _ => {
            name.strip_prefix("LC_")
                .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_uppercase()))
                && is_locale(value)
        }
    }
}

/// A locale in a character set that reads a command line like ASCII.
fn is_locale(value: &str) -> bool {
    let (name, set) = value.split_once('.').unwrap_or((value, "UTF-8"));
    name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_') && name.len() <= 16 && matches!(set, "UTF-8" | "utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_nobody_looks_at_may_be_set() {
        for name in ["x", "file", "i", "N", "FILES", "path", "dir2", "_x", "COUNT", "DIR", "home", "Path", "F", "TOTAL"]
        {
            assert!(is_plain(name), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "IFS",
            "BASH_ENV",
            "ENV",
            "LD_PRELOAD",
            "GIT_DIR",
            "PAGER",
            "LC_ALL",
            "LANG",
            "TMPDIR",
            "CDPATH",
            "PS4",
            "SHELLOPTS",
            "OPTIND",
            "GLOBIGNORE",
            "PWD",
            "PYTHONPATH",
            "NODE_OPTIONS",
            "PERL5OPT",
            "RUSTUP_TOOLCHAIN",
            "RANDOM",
            "auto_resume",
            "histchars",
            "",
            "1",
            "a-b",
            "TAR_OPTIONS",
            "GZIP",
            "XDG_CONFIG_HOME",
            "LESSOPEN",
            "POSIXLY_CORRECT",
        ] {
            assert!(!is_plain(name), "{name}");
        }
    }

    #[test]
    fn only_what_changes_looks_may_be_lent_to_a_command() {
        for (name, value) in [
            ("LC_ALL", "C"),
            ("LC_ALL", "C.UTF-8"),
            ("LANG", "en_US.UTF-8"),
            ("TZ", "UTC"),
            ("TZ", "Europe/Berlin"),
            ("NO_COLOR", "1"),
            ("COLUMNS", "200"),
            ("GIT_PAGER", "cat"),
            ("PAGER", "cat"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("LC_TIME", "POSIX"),
        ] {
            assert!(is_harmless(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("PATH", "."),
            ("LD_PRELOAD", "x.so"),
            ("GIT_PAGER", "sh -c x"),
            ("PAGER", "./x"),
            ("GIT_DIR", "x"),
            ("LC_ALL", "zh_CN.GBK"),
            ("LC_ALL", "../x"),
            ("TZ", ":/etc/x"),
            ("TZ", "../x"),
            ("IFS", ","),
            ("BASH_ENV", "x"),
            ("LC_", "C"),
            ("LC_all", "C"),
            ("LESSOPEN", "|x"),
            ("GIT_EXTERNAL_DIFF", "x"),
            ("GIT_OPTIONAL_LOCKS", "1"),
            ("x", "1"),
            ("GIT_CONFIG_COUNT", "0"),
        ] {
            assert!(!is_harmless(name, value), "{name}={value}");
        }
    }
}
