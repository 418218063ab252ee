//! The table of programs that are known, a row per command: what they may be given, and why the rest is refused.
//!
//! To add a program: find every option by which it writes, runs something or asks elsewhere, in every version of it that
//! people have (GNU, BusyBox, BSD). If there is none, and none can be expected, it is [`any`]. Else list what it is used
//! with day by day ([`options`]); what is not listed is refused. Each row carries lines that run and lines that are
//! refused, and a test that tries them.

use super::judge::{Judge, Judged};
use super::options::Options;
use super::programs::{Call, archive, awk, builtins, conditions, find, git, sed, wrappers, xargs};

/// A command, or several that are alike.
pub(super) struct Row {
    pub(super) names: &'static [&'static str],
    pub(super) rule: Rule,
    /// Whether it reads what lies below the folders it is given.
    pub(super) deep: Deep,
    /// It is part of the shell: no program of this name is meant.
    pub(super) shell_only: bool,
    /// Lines with it that run.
    pub(super) runs: &'static [&'static str],
    /// Lines with it that are refused.
    pub(super) refuses: &'static [&'static str],
}

/// What a command may be given.
pub(super) enum Rule {
    /// Anything: nothing it can be given makes it write or run something.
    Any,
    /// These options, operands like this, and one of the options in the list, where there is one.
    Options(Options, Operands, &'static [&'static str]),
    /// One of these and nothing else.
    Exactly(&'static [&'static str]),
    /// A command, behind its own options.
    Wrapper(Wrapper),
    /// Its arguments are a language of their own.
    Special(fn(&mut Judge<'_>, &Call<'_>) -> Judged),
    /// Nothing: it is here for the reason.
    Refused { why: &'static str, instead: &'static str },
}

/// What arguments that are no options may be.
#[derive(Clone, Copy)]
pub(super) enum Operands {
    Any,
    /// This many: one more would be written to, or set.
    AtMost(usize),
    /// One that begins with `+`.
    Format,
    /// Any that are known beforehand, and do not begin with `@`: that would name a file with more options.
    Known,
    /// Any that are made of these characters: others are options without a dash.
    Of(&'static str),
}

/// Whether a command reads what lies below its operands.
#[derive(Clone, Copy)]
pub(super) enum Deep {
    Never,
    /// Always; with fewer operands than this it begins where it stands.
    Always(usize),
    /// With one of these letters among its options; the number as above.
    With(&'static str, usize),
}

/// A command that runs another one.
pub(super) struct Wrapper {
    pub(super) options: Options,
    /// Operands before the command.
    pub(super) operands: usize,
    /// The shell looks the command up, not a program.
    pub(super) in_shell: bool,
}

/// A subcommand of git.
pub(super) struct GitRow {
    /// One word, or two.
    pub(super) name: &'static str,
    pub(super) options: Options,
    pub(super) operands: GitOperands,
    /// Options that are put behind it before it runs.
    pub(super) insert: &'static str,
    pub(super) runs: &'static [&'static str],
    pub(super) refuses: &'static [&'static str],
}

/// What a subcommand of git may be given besides options.
#[derive(Clone, Copy)]
pub(super) enum GitOperands {
    Any,
    AtMost(usize),
    Exactly(usize),
    /// Only together with one of these options.
    With(&'static [&'static str]),
    /// One that is the name of a setting, or any with one of these options.
    Setting(&'static [&'static str]),
}

/// The row of a command.
pub(super) fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.names.contains(&name))
}

/// The row of a subcommand of git: of one word, or of two.
pub(super) fn git_row(name: &str, second: Option<&str>) -> Option<&'static GitRow> {
    GIT.iter().find(|row| match (row.name.split_once(' '), second) {
        (None, None) => row.name == name,
        (Some(words), Some(second)) => words == (name, second),
        _ => false,
    })
}

/// Whether a subcommand of git has subcommands here.
pub(super) fn has_git_parts(name: &str) -> bool {
    GIT.iter().any(|row| row.name.split_once(' ').is_some_and(|(first, _)| first == name))
}

const fn base(names: &'static [&'static str], rule: Rule) -> Row {
    Row { names, rule, deep: Deep::Never, shell_only: false, runs: &[], refuses: &[] }
}

const fn any(names: &'static [&'static str]) -> Row {
    base(names, Rule::Any)
}

const fn allowing(allowed: &'static str, refused: &'static [(&'static str, &'static str)]) -> Options {
    Options { allowed, refused, stop: false }
}

const fn options(
    names: &'static [&'static str],
    allowed: &'static str,
    refused: &'static [(&'static str, &'static str)],
    operands: Operands,
) -> Row {
    base(names, Rule::Options(allowing(allowed, refused), operands, &[]))
}

const fn version(names: &'static [&'static str], allowed: &'static [&'static str]) -> Row {
    base(names, Rule::Exactly(allowed))
}

const fn special(names: &'static [&'static str], rule: fn(&mut Judge<'_>, &Call<'_>) -> Judged) -> Row {
    base(names, Rule::Special(rule))
}

const fn wrapper(
    names: &'static [&'static str],
    allowed: &'static str,
    refused: &'static [(&'static str, &'static str)],
    operands: usize,
) -> Row {
    let options = Options { allowed, refused, stop: true };
    base(names, Rule::Wrapper(Wrapper { options, operands, in_shell: false }))
}

const fn refused(names: &'static [&'static str], why: &'static str, instead: &'static str) -> Row {
    base(names, Rule::Refused { why, instead })
}

impl Row {
    const fn deep(mut self, deep: Deep) -> Self {
        self.deep = deep;
        self
    }
    const fn in_shell(mut self) -> Self {
        self.shell_only = true;
        if let Rule::Wrapper(wrapper) = &mut self.rule {
            wrapper.in_shell = true;
        }
        self
    }
    const fn needing(mut self, needed: &'static [&'static str]) -> Self {
        if let Rule::Options(_, _, needs) = &mut self.rule {
            *needs = needed;
        }
        self
    }
    const fn runs(mut self, runs: &'static [&'static str]) -> Self {
        self.runs = runs;
        self
    }
    const fn refuses(mut self, refuses: &'static [&'static str]) -> Self {
        self.refuses = refuses;
        self
    }
}

const WRITES_FILE: &str = "it writes into a file";
const RUNS_PROGRAM: &str = "it runs a program";
const USE_TOOLS: &str = "Propose the change with Write, Edit or Delete, or do it in Build mode.";
const USE_BUILD: &str = "Look with Read, Grep or Glob; run it in Build mode.";

/// Every command that is known. `rustfmt` would give each row a screen of its own.
#[rustfmt::skip]
pub(super) static ROWS: &[Row] = &[
    // Files and folders.
    any(&["ls", "dir", "vdir"]).deep(Deep::With("R", 1)).runs(&["ls -la src", "ls *", "ls -R", "dir"]).refuses(&["ls > out"]),
    any(&["cat", "tac"]).runs(&["cat a b", "tac a", "cat \"$f\"", "cat -- *"]).refuses(&["cat > out"]),
    any(&["head", "tail"]).runs(&["head -n 5 a", "tail -20 a", "head -c 100 *"]).refuses(&["head a > out"]),
    any(&["wc", "nl", "rev", "fold", "fmt", "expand", "unexpand", "pr", "tsort"]).runs(&["wc -l *", "nl a", "fold -w 80 a"]).refuses(&["wc -l a &> out"]),
    any(&["cut", "tr", "paste", "join", "comm", "column", "numfmt"]).runs(&["cut -d: -f1 a", "tr a-z A-Z", "column -t", "comm -12 a b"]).refuses(&["tr a b < a > b"]),
    any(&["od", "hexdump", "hd", "strings"]).runs(&["od -c a", "hexdump -C a", "strings -n 8 a"]).refuses(&["od a >> out"]),
    any(&["stat", "df", "realpath", "readlink", "basename", "dirname", "pathchk"]).runs(&["stat a", "df -h", "realpath .", "basename \"$f\" .rs"]).refuses(&["stat a 1> out"]),
    any(&["du"]).deep(Deep::Always(1)).runs(&["du -sh *", "du -a"]).refuses(&["du >| out"]),
    any(&["cksum", "sum", "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "b3sum", "shasum"])
        .runs(&["sha256sum a", "md5sum -c a", "b2sum *"]).refuses(&["md5sum a > a.md5"]),
    any(&["cmp"]).runs(&["cmp a b"]).refuses(&["cmp a b > out"]),
    any(&["diff"]).deep(Deep::With("r", 2)).runs(&["diff -u a b", "diff -r . sub", "diff <(sort a) <(sort b)"]).refuses(&["diff a b > x.patch", "diff a >(cat)"]),
    any(&["grep", "egrep", "fgrep"]).deep(Deep::With("rRd", 2))
        .runs(&["grep -rn foo .", "grep -E 'a|b' a", "grep foo *", "egrep -c x a", "fgrep x a", "grep \"$x\" a"]).refuses(&["grep x a > out", "grep x $(touch out)"]),
    options(&["zgrep", "zegrep", "zfgrep"], "-i -n -c -l -v -w -h -H -E -F -e: -A: -B: -C: -m: -o -q -s", &[], Operands::Known)
        .runs(&["zgrep x a.gz", "zgrep -i -n x a.gz"]).refuses(&["zgrep x *", "zgrep -f pats a.gz", "zgrep x \"$f\""]),
    options(&["base64", "base32", "basenc"], "-d -D --decode -i --ignore-garbage -w: --wrap: --base64 --base32 --base16 --base64url",
            &[("-o --output", WRITES_FILE)], Operands::AtMost(1))
        .runs(&["base64 a", "base64 -d a", "base64 -w0 a"]).refuses(&["base64 -o out a", "base64 -d -i a -o out", "base64 \"$x\""]),
    options(&["sort"],
            "-b --ignore-leading-blanks -d --dictionary-order -f --ignore-case -g --general-numeric-sort -i --ignore-nonprinting -M --month-sort -h \
             --human-numeric-sort -n --numeric-sort -R --random-sort --random-source: -r --reverse --sort: -V --version-sort --batch-size: -c -C --check? \
             --debug -k: --key: -m --merge -s --stable -S: --buffer-size: -t: --field-separator: --parallel: -u --unique -z --zero-terminated --version",
            &[("-o --output", "it writes the result into a file"), ("-T --temporary-directory", "it writes there"), ("--compress-program", RUNS_PROGRAM),
              ("--files0-from", "it takes names from a file")], Operands::Any)
        .runs(&["sort a", "sort -rn", "sort -t, -k2,2n a b", "sort -u -- \"$f\"", "sort ./*", "sort -k 2 a"])
        .refuses(&["sort -o out a", "sort a -oout", "sort -no out a", "sort --output=out a", "sort --out=out a", "sort --o out a", "sort *", "sort \"$f\"",
                   "sort --compress-program=./x a", "sort --compress-prog ./x a", "sort -T . a", "sort $x"]),
    options(&["uniq"], "-c --count -d --repeated -D --all-repeated? -f: --skip-fields: --group? -i --ignore-case -s: --skip-chars: -u --unique -z --zero-terminated -w: --check-chars:",
            &[], Operands::AtMost(1))
        .runs(&["uniq -c", "uniq a", "uniq -d -- a"]).refuses(&["uniq a out", "uniq -c a out", "uniq -- a out", "uniq *", "uniq ./*", "uniq - out"]),
    options(&["shuf"], "-e --echo -i: --input-range: -n: --head-count: -r --repeat -z --zero-terminated --random-source:", &[("-o --output", WRITES_FILE)], Operands::Any)
        .runs(&["shuf -n 3 a", "shuf -i 1-10"]).refuses(&["shuf -o out a", "shuf a --output=out", "shuf --outp out a", "shuf *"]),
    options(&["xxd"],
            "-a -autoskip -b -bits -c: -cols: -C -capitalize -d -e -E -EBCDIC -g: -groupsize: -i -include -l: -len: -o: -p -ps -postscript -plain -s: -seek: -u -uppercase",
            &[("-r -revert", "turned round it writes into a file")], Operands::AtMost(1))
        .runs(&["xxd a", "xxd -l 64 a", "xxd -p a", "xxd -len 16 -cols 8 a"]).refuses(&["xxd a out", "xxd -r a", "xxd -r -p a out", "xxd -revert a b", "xxd \"$a\" \"$b\"", "xxd -p - out"]),
    options(&["file"], "-b --brief -h --no-dereference -L --dereference -i --mime --mime-type --mime-encoding -k --keep-going -N --no-pad -0 --print0 -F: --separator: --extension -r --raw --version",
            &[("-C --compile", "it writes a compiled list"), ("-m --magic-file", "it reads a list that is not looked at"), ("-z -Z --uncompress --uncompress-noreport", RUNS_PROGRAM),
              ("-f --files-from", "it takes names from a file")], Operands::Any)
        .runs(&["file a", "file -b --mime-type a", "file ./*"]).refuses(&["file -C -m a", "file -C", "file --compile -m a", "file --comp", "file -m a b", "file -z a", "file *"]),
    options(&["tree"], "-a -d -f -F -L: -l -x -P: -I: -i -s -h -D -p -u -g -n -N -Q -q -r -t -c -U -v -C -A -S -J -X --noreport --dirsfirst --filesfirst --prune --gitignore --du --si --sort? --matchdirs --ignore-case --charset: --filelimit: --timefmt: --inodes --device --version",
            &[("-o", WRITES_FILE), ("-R", "with -H it writes a file in every folder"), ("-H", "with -R it writes a file in every folder")], Operands::Any)
        .deep(Deep::Always(1)).runs(&["tree -L 2", "tree -a src", "tree -I target"]).refuses(&["tree -o out", "tree -a -oout .", "tree -R -H x", "tree *"]),
    special(&["find"], find::find).deep(Deep::Always(1))
        .runs(&["find . -name '*.rs'", "find src -type f -newer a -print0", "find . \\( -name a -o -name b \\) -not -path './x/*'", "find", "find ./\"$d\" -maxdepth 1",
                "find . -size +1M -printf '%p\\n'", "find . -type d -empty", "find -L . -mtime -1",
                "find . -name '*.rs' -exec grep -l foo {} +", "find src lib -type f -exec head -n 3 {} \\; -print", "find -exec wc -l {} ';' -o -name a", "find . -exec git log --oneline -- {} \\;",
                "find ./\"$d\" -exec sort {} +"])
        .refuses(&["find . -delete", "find . -exec rm {} \\;", "find . -exec touch x +", "find . -execdir x \\;", "find . -ok rm {} \\;", "find . -okdir rm {} \\;", "find . -fprint out",
                   "find . -fprint0 out", "find . -fprintf out x", "find . -fls out", "find \"$x\"", "find . $x", "find . -name $x", "find *", "find . \"$a\" \"$b\"", "find . -name a \"$x\"",
                   "find . -type f -o -delete", "find -files0-from x -delete", "find . -nam* x",
                   "find . -exec {} \\;", "find . -exec sh -c 'rm \"$0\"' {} \\;", "find . -exec grep foo {}", "find . -exec cat {} \\; -delete", "find . -exec cat $x {} \\;", "find . -exec cat {} * +",
                   "find . -exec env {} \\;", "find . -exec find {} -delete \\;", "find . -exec sed -n '{}' a \\;", "find . -exec sed -i s/a/b/ {} +", "find . -exec xargs rm \\;", "find . -exec cat {} + -exec rm {} +",
                   "find . -exec sort -o {} {} \\;", "find . -exec awk 'BEGIN{}' {} \\;", "find . -exec uniq {} \\; -exec uniq a {} \\;", "find . -exec cat + \\;", "find \"$x\" -exec cat {} +",
                   "find . -exec find . -exec rm {} \\; \\;", "find . -execdir cat {} \\;", "find . -exec tar -tf {} \\; -exec git diff --output={} \\;"]),
    options(&["fd", "fdfind"],
            "-H --hidden -I --no-ignore --no-ignore-vcs -u --unrestricted -s --case-sensitive -i --ignore-case -g --glob --regex -F --fixed-strings -a --absolute-path -L --follow -p --full-path -0 \
             --print0 -d: --max-depth: --min-depth: --exact-depth: -t: --type: -e: --extension: -E: --exclude: -S: --size: --changed-within: --changed-before: -o: --owner: -c: --color: -j: --threads: -1 --max-results: \
             -q --quiet --prune --one-file-system --strip-cwd-prefix --version -V",
            &[("-x --exec", RUNS_PROGRAM), ("-X --exec-batch", RUNS_PROGRAM), ("-l --list-details", RUNS_PROGRAM)], Operands::Any)
        .deep(Deep::Always(2)).runs(&["fd foo", "fd -e rs -H", "fd -t f x src"]).refuses(&["fd -x rm", "fd foo --exec rm", "fd foo -X rm", "fd --exec-batch=rm", "fd -Hx rm", "fd *", "fd --exe rm"]),
    options(&["rg"],
            "-a --text -A: --after-context: -B: --before-context: -C: --context: -b --byte-offset -c --count --count-matches --color: --column --no-column --crlf -E: --encoding: -e: --regexp: -f: --file: --files \
             -l --files-with-matches --files-without-match -F --fixed-strings -L --follow -g: --glob: --iglob: --glob-case-insensitive --heading --no-heading -. --hidden -i --ignore-case -I --no-filename -H \
             --with-filename -v --invert-match -x --line-regexp -n --line-number -N --no-line-number -M: --max-columns: --max-columns-preview -m: --max-count: -d: --max-depth: --maxdepth: --max-filesize: --no-config \
             --no-ignore --no-ignore-vcs --no-ignore-parent --no-ignore-dot --no-ignore-global -U --multiline --multiline-dotall -0 --null -o --only-matching --passthru -P --pcre2 -p --pretty -q --quiet -r: --replace: \
             -s --case-sensitive -S --smart-case --sort: --sortr: --stats --trim -t: --type: -T: --type-not: --type-list --type-add: -u --unrestricted -w --word-regexp --vimgrep --json --no-messages -j: --threads: \
             --engine: -V --version --one-file-system --no-mmap --mmap --context-separator: --no-require-git --binary",
            &[("--pre", RUNS_PROGRAM), ("--pre-glob", RUNS_PROGRAM), ("--hostname-bin", RUNS_PROGRAM), ("-z --search-zip", "it runs decompressors")], Operands::Any)
        .deep(Deep::Always(2)).runs(&["rg foo", "rg -n 'a|b' src -g '*.rs'", "rg --files", "rg -e \"$x\" src", "rg -tjson x", "rg -C3 x", "rg -- \"$x\""])
        .refuses(&["rg --pre ./x foo", "rg --pre=./x foo", "rg foo --pre ./x", "rg -z foo", "rg --hostname-bin ./x foo", "rg foo *", "rg \"$x\"", "rg -nz x", "rg --search-zip x"]),
    options(&["ag"], "-i --ignore-case -s --case-sensitive -S --smart-case -l --files-with-matches -L --files-without-matches -g: -G: --file-search-regex: -Q --literal -F --fixed-strings -w --word-regexp -v --invert-match \
             -c --count -A: --after: -B: --before: -C: --context: -n --norecurse --nonumbers --numbers --nocolor --nogroup --noheading --column --hidden -u --unrestricted -a --all-types -t --all-text --ignore: --depth: -o \
             --only-matching -0 --null --print-long-lines --stats --version --vimgrep -f --follow -m: --max-count:",
            &[("--pager", RUNS_PROGRAM), ("-z --search-zip", "it unpacks files")], Operands::Any)
        .deep(Deep::Always(2)).runs(&["ag foo src", "ag -l foo", "ag --nocolor foo"]).refuses(&["ag --pager=./x foo", "ag --pag ./x foo", "ag --pager ./x foo", "ag -z foo", "ag *"]),
    refused(&["ack"], "it takes options from files in the workspace", "Use grep -rn, or Grep.").refuses(&["ack foo"]),
    any(&["jq"]).runs(&["jq . a", "jq -r '.a | .b' a", "jq -n '1+1'", "jq '.[] | select(.x > 1)' a"]).refuses(&["jq . a > b"]),
    options(&["yq"], "-r -c -y -e -n -j -M -C -P -o: --raw-output --compact-output --yaml-output --no-colors --colors --prettyPrint --output-format: --version -V",
            &[("-i --in-place --inplace", "it changes files in place"), ("-s --split-exp", "it writes a file for each result"), ("-f --from-file", "the program stands elsewhere")], Operands::Known)
        .runs(&["yq . a.yaml", "yq -r .a a.yaml", "yq -o=json . a"]).refuses(&["yq -i .a=1 a.yaml", "yq --inplace .a=1 a", "yq --in-pl x a", "yq -s .a a", "yq -yi .a=1 a", "yq . *"]),
    special(&["awk", "gawk", "mawk", "nawk"], awk::awk)
        .runs(&["awk '{print $1}' a", "awk -F: 'NR>1{print $2}' a", "awk '/re/{n++} END{print n}' a", "awk -F, -v n=3 '$n > 5' *", "awk -v \"x=$x\" '{print x}' a"])
        .refuses(&["awk 'BEGIN{system(\"touch o\")}'", "awk 'BEGIN{print 1>\"out\"}'", "awk '{print | \"sh\"}' a", "awk -f x.awk a", "awk -i inplace '{print}' a", "gawk -o '{print}' a", "gawk -d '{print}'",
                   "awk \"$x\" a", "awk \"{print $x}\" a", "awk 'BEGIN{\"date\"|getline d; print d}'", "gawk -l ./x '{print}'", "gawk '@load \"./x\"; {print}'", "mawk -W exec x", "gawk --pretty-print=o '{print}'",
                   "gawk -e 'BEGIN{print > \"o\"}'", "gawk -p '{print}' a", "awk '{print > $1}' a", "awk '{printf \"x\" >> \"o\"}' a", "gawk -D '{print}'"]),
    special(&["sed", "gsed"], sed::sed)
        .runs(&["sed -n '1,20p' a", "sed 's/a/b/g' a", "sed -E -e 's/(a)/\\1/' -e '/x/d' a", "sed -ne 5p a", "sed 1d ./*", "sed -n '$p' -- \"$f\""])
        .refuses(&["sed -i s/a/b/ a", "sed -i.bak s/a/b/ a", "sed -n 'w out' a", "sed 's/a/b/w out' a", "sed 's/a/touch x/e' a", "sed '1e touch x' a", "sed -f x a", "sed --in-place s/a/b/ a", "sed --in-pl s/a/b/ a", "sed -ni p a",
                   "sed -n p *", "sed -n p \"$f\"", "sed \"$x\" a", "sed -e p -e 'w out' a", "sed --expression='w out' a", "sed -s -i p a", "sed -nE -i p a", "sed p a -i", "sed --file=x a", "sed -Ei p a", "sed -n '/x/{w out\n}' a"]),
    special(&["xargs"], xargs::xargs)
        .runs(&["ls | xargs wc -l", "ls | xargs -n1 basename", "ls | xargs -I{} head -n 3 ./{}", "ls | xargs", "ls | xargs -0 -P4 grep -l foo", "ls | xargs -I {} stat {}"])
        .refuses(&["ls | xargs rm", "ls | xargs -n1 touch", "ls | xargs sh -c x", "ls | xargs sort", "ls | xargs -I{} {} a", "ls | xargs -I{} sort {}", "ls | xargs -I% sh %", "ls | xargs env rm", "ls | xargs sed -n p", "ls | xargs find",
                   "ls | xargs -p wc", "ls | xargs --process-slot-var=PATH wc", "ls | xargs -i rm {}", "xargs touch < a", "ls | xargs git log", "ls | xargs xargs rm", "ls | xargs -I{} find {} -name x", "ls | xargs time ls"]),
    // Archives.
    options(&["zcat", "bzcat", "xzcat", "lzcat", "zstdcat", "gzcat"], "-f -q -v", &[], Operands::Known)
        .runs(&["zcat a.gz", "xzcat a.xz"]).refuses(&["zcat a.gz > a", "zcat *", "zcat --rsyncable a", "zstdcat -o out a"]),
    special(&["gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "unzstd"], archive::compressor)
        .runs(&["gzip -dc a.gz", "gzip -l a.gz", "xz -t a.xz", "zstd -dc a.zst", "bunzip2 -c a.bz2", "gunzip --stdout a.gz", "gzip -t a.gz", "unxz -t a.xz", "gzip -cd -k a.gz"])
        .refuses(&["gzip a", "gzip -d a.gz", "gunzip a.gz", "gzip -k a", "zstd -dc a -o out", "zstd --rm -c a", "xz -dk a", "gzip -9 a", "zstd -c a --output-dir-flat=x", "gzip --std a", "gzip -c *", "xz -l -d a.xz", "xz -ld a.xz", "zstd -l -d a.zst", "zstd -ltd a.zst",
                   "bzip2 -t -d a.bz2", "bzip2 -td a.bz2", "gzip -l --decompress a.gz", "xz -t --uncompress a.xz", "gzip -S .x -c a", "gzip -rc ."]),
    options(&["unzip"], "-l -p -v -t -Z -q -1 -2", &[("-o -n -u -f", "it unpacks files"), ("-d", "it unpacks files")], Operands::Known).needing(&["-l", "-p", "-t", "-Z"])
        .runs(&["unzip -l a.zip", "unzip -p a.zip x", "unzip -t a.zip"]).refuses(&["unzip a.zip", "unzip -o a.zip", "unzip -l a.zip -d x", "unzip -l --l a.zip", "unzip -l-l a.zip", "unzip -q a.zip", "unzip -l *"]),
    special(&["tar", "gtar", "bsdtar"], archive::tar)
        .runs(&["tar -tf a.tar", "tar tzf a.tgz", "tar -tvf a.tar x", "tar --list --file=a.tar", "tar -t -f - < a.tar"])
        .refuses(&["tar xf a.tar", "tar -xf a.tar", "tar cf out a", "tar -tf host:a.tar", "tar -tf a.tar -I ./x", "tar -tf a.tar --use-compress-program=./x", "tar -tf a.tar --to-command=./x", "tar -tf a.tar --checkpoint=1 --checkpoint-action=exec=./x",
                   "tar -tf a.tar --index-file=out", "tar -tf \"$x\"", "tar -t", "tar -tf *", "tar ft a.tar", "tar -tf a -F ./x", "tar -tf a --use-comp=./x", "tar --list --file=h:a", "tar -tvf a --rsh-command=./x", "tar -cvf o a"]),
    options(&["nm", "size"], "-a -A -C -D -g -n -p -r -S -u --defined-only --demangle --version", &[("--plugin", RUNS_PROGRAM)], Operands::Known)
        .runs(&["nm -C a.o", "size a.o"]).refuses(&["nm --plugin ./x.so a", "nm --plug=./x.so a", "size *"]),
    options(&["readelf"], "-a -h -l -S -s -n -r -d -V -W --wide --headers --file-header --sections --symbols --dynamic --version", &[], Operands::Known).runs(&["readelf -h a.o"]).refuses(&["readelf -P a", "readelf *"]),
    options(&["objdump"], "-d -D -h -t -T -x -p -r -R -s -f -C -l -j: -M: --disassemble --headers --syms --demangle --version", &[("--plugin", RUNS_PROGRAM)], Operands::Known).runs(&["objdump -d a.o", "objdump -h a.o"]).refuses(&["objdump --plugin=./x a.o", "objdump -d *", "objdump @a"]),
    // The machine and the session.
    any(&["uname", "arch", "nproc", "lscpu", "free", "uptime", "id", "whoami", "groups", "logname", "users", "who", "w", "tty", "locale", "getconf", "hostid", "lsblk", "vmstat", "pgrep", "pidof", "cal"])
        .runs(&["uname -a", "nproc", "free -m", "id -u", "whoami", "uptime"]).refuses(&["uname > out"]),
    options(&["ps"], "-e -f -A -a -x -u? -p: -o: -l -H -F -w --no-headers --sort: --forest --pid: --ppid: -C: -L -j -T", &[("-E", "it prints the environment of other programs")], Operands::Of("auxfwljrSTtvghLmn0123456789,"))
        .runs(&["ps -ef", "ps aux", "ps -o pid,comm", "ps -p 1", "ps auxww"]).refuses(&["ps e", "ps auxe", "ps axeww", "ps -ef e", "ps \"$x\"", "ps -E"]),
    options(&["date"], "-u --utc --universal -R --rfc-email -I? --iso-8601? --rfc-3339: -d: --date: -r: --reference: --version",
            &[("-s --set", "it sets the clock"), ("-f --file", "it takes dates from a file")], Operands::Format)
        .runs(&["date", "date +%s", "date -u +%Y-%m-%d", "date -d @0", "date -Iseconds"]).refuses(&["date -s 2020-01-01", "date --set=x", "date --se x", "date 010100002020", "date \"$x\"", "date -us x", "date +%s 01010000", "date -u 01010000"]),
    options(&["hostname"], "-s --short -f --fqdn --long -i --ip-address -I --all-ip-addresses -d --domain -A --all-fqdns",
            &[("-F --file -b --boot", "it sets the name")], Operands::AtMost(0)).runs(&["hostname", "hostname -f"]).refuses(&["hostname evil", "hostname -F a", "hostname -b x", "hostname \"$x\"", "hostname --fil a", "hostname -- x"]),
    any(&["which", "whereis"]).runs(&["which ls", "whereis ls"]).refuses(&["which ls > out"]),
    any(&["printenv"]).runs(&["printenv HOME", "printenv"]).refuses(&["printenv > out"]),
    any(&["seq", "expr", "factor", "yes", "sleep"]).runs(&["seq 1 5", "expr 1 + 2", "sleep 0", "yes | head -1"]).refuses(&["seq 5 > out", "sleep 9 &"]),
    any(&["bc"]).runs(&["echo 1+2 | bc", "bc -l <<< '1/3'"]).refuses(&["bc <<< 1 > out"]),
    refused(&["dc"], "its ! runs a command", "Use bc or $((…)).").refuses(&["dc -e '!touch x'", "echo '!touch x' | dc"]),
    // The shell itself.
    any(&["echo", "true", "false", "pwd"]).runs(&["echo \"$x\" a", "true", "pwd", "! false"]).refuses(&["echo x > out", "echo $(touch x)", "echo `touch x`", "echo x &>out", "echo \"$(cp a b)\""]),
    any(&[":", "type", "exit", "return", "break", "continue"]).in_shell().runs(&["type ls", ": x", "ls || exit 1", "for i in a; do break; done", "for _ in 1 2; do ls; done"]).refuses(&["env : x", ": > a", "xargs type < a"]),
    special(&["test", "["], conditions::test)
        .runs(&["[ -f a ]", "test -d sub", "[ \"$x\" = y ]", "[ ! -e q ]", "[ $? -eq 0 ]", "[ -f a -a -d sub ]", "[ -n \"$x\" ] && ls", "[ -v x ]"])
        .refuses(&["[ -v \"$x\" ]", "test -v 'a[$(touch o)]'", "[ $x = y ]", "[ $x ]", "[ \"$x\" \"$y\" ]", "[ -R x ]", "test -v a[0]", "[ \"$a\" \"$b\" \"$c\" ]", "[ -f a -o \"$x\" \"$y\" ]", "test ! -v \"$x\"", "[ a = b", "[ -f * ]"]),
    special(&["printf"], builtins::printf)
        .runs(&["printf '%s\\n' \"$x\"", "printf -- '-x\\n'", "printf 'a\\n'", "printf '%5.1f%%\\n' 3"])
        .refuses(&["printf -v x y", "printf -v 'a[$(touch o)]' x", "printf \"$x\"", "printf '%n' PATH", "printf $x y", "printf '%s%n' a b", "printf \"$(cat a)\" b"]),
    special(&["read"], builtins::read).in_shell()
        .runs(&["cat a | while read -r f; do echo \"$f\"; done", "while IFS= read -r line; do echo \"$line\"; done < a", "read -r -d '' x < a", "while IFS=: read -r k v; do echo \"$k\"; done < a"])
        .refuses(&["read PATH < a", "read 'a[$(touch o)]' < a", "read -a x < a", "read \"$x\" < a", "read BASH_ENV < a", "read -e x", "read -u 3 x", "builtin read PATH < a", "for x in 1; do :; done; cat a | while builtin read x; do echo $((x)); done", "x=1; command read x < a; echo $((x))", "x=1; time read x < a; [[ $x -eq 1 ]]", "read x[0] < a", "read -i x y"]),
    special(&["set"], builtins::set).in_shell().runs(&["set -e; ls", "set -euo pipefail; ls", "set -o pipefail\nls | wc -l"])
        .refuses(&["set -- x", "set -x", "set -o xtrace", "set \"$x\"", "set -a", "set -o posix", "set -k", "set -o", "set x=1", "set -e -- x", "set +o posix", "set -o allexport", "env set -e"]),
    special(&["cd"], builtins::cd).in_shell()
        .runs(&["cd sub && ls", "cd sub", "(cd sub; pwd)", "cd -- sub && cat ../a", "cd", "cd ..; cd sub || true"]).refuses(&["cd \"$x\"", "cd -", "for i in 1 2; do cd sub; done", "cd -P sub", "cd $(pwd)", "cd *", "cd a b", "cd ''"]),
    special(&["command"], builtins::command).in_shell()
        .runs(&["command -v ls", "command -V ls", "command ls", "command -p ls"]).refuses(&["command touch x", "command -p touch x", "command -- rm a", "command \"$x\"", "command -x ls", "command cp a b"]),
    wrapper(&["builtin"], "", &[], 0).in_shell().runs(&["builtin echo x", "builtin test -f a"]).refuses(&["builtin eval x", "builtin source a", "builtin printf -v x y", "builtin exec rm a"]),
    wrapper(&["exec"], "", &[("-c", "without its environment a command finds other programs"), ("-a", "it gives a program another name"), ("-l", "it gives a program another name")], 0).in_shell()
        .runs(&["exec ls", "exec cat a"]).refuses(&["exec touch x", "exec -c git status", "exec -a x ls", "exec > out", "exec 3> out", "exec ./x", "exec rm -rf x", "exec -cl ls"]),
    wrapper(&["time"], "-p", &[("-o --output -a --append", WRITES_FILE)], 0).in_shell().runs(&["time ls", "time -p ls"]).refuses(&["time touch x", "time -o out ls", "command time -o out ls", "env time -o out ls", "time x=1 ls"]),
    special(&["env"], wrappers::env)
        .runs(&["env", "env LC_ALL=C sort a", "env ls", "env -- ls", "env TZ=UTC date"])
        .refuses(&["env touch z", "env -C . touch a", "env --chdir=. touch b", "env -S 'touch c'", "env --split-string='touch c'", "env -i git status", "env -u GIT_CONFIG_COUNT git status", "env PATH=. ls", "env LD_PRELOAD=./x ls", "env - ls", "env --chd=. ls",
                   "env -vS'touch x'", "env x=1 ls", "env \"$x\" ls", "env \"$x\"", "env A=B", "env --ignore-env ls", "env -0 touch x", "env ./x", "env -iS 'x'"]),
    wrapper(&["nice"], "-n: --adjustment: -#", &[], 0).runs(&["nice ls", "nice -n 5 ls", "nice -10 ls"]).refuses(&["nice -n 5 touch d", "nice touch d", "nice --adj=5 touch d", "nice -5 rm a", "nice \"$x\" ls"]),
    wrapper(&["ionice"], "-c: --class: -n: --classdata: -t --ignore", &[("-p --pid -P --pgid -u --uid", "it changes programs that run")], 0).runs(&["ionice -c 3 ls"]).refuses(&["ionice -c3 touch x", "ionice -p 1 -c 3", "ionice -c3 -p 1", "ionice --pid 1"]),
    wrapper(&["timeout"], "-k: --kill-after: -s: --signal: --preserve-status --foreground -v --verbose", &[], 1)
        .runs(&["timeout 5 ls", "timeout -s KILL 5 ls -la", "timeout --preserve-status 5 cat a"]).refuses(&["timeout 5 touch e", "timeout -k 1 5 touch e", "timeout \"$x\" ls", "timeout 5", "timeout 5 sh -c x", "timeout --foreground 5 rm a", "timeout --sig=9 5 ls"]),
    wrapper(&["stdbuf"], "-i: -o: -e: --input: --output: --error:", &[], 0).runs(&["stdbuf -oL ls", "stdbuf -o 0 cat a"]).refuses(&["stdbuf -oL touch h", "stdbuf -o L touch h", "stdbuf --output=L rm a", "stdbuf"]),
    special(&["git"], git::git)
        .runs(&["git status", "git --no-pager log -3", "git -C sub status", "git --version"])
        .refuses(&["git -c core.pager=x log", "git -ccore.pager=x log", "git --exec-path=. status", "git --git-dir=x log", "git --work-tree=x status", "git -p log", "git --paginate log", "git --config-env=a=b log", "git --bare log", "git \"$x\"",
                   "git $x log", "git -C \"$x\" status", "git -C sub -C .. status", "git commit -m x", "git add .", "git checkout .", "git push", "git pull", "git fetch", "git clone x", "git reset --hard", "git clean -fd", "git gc", "git submodule status",
                   "git unknown-alias", "git archive HEAD", "git rebase x", "git apply x", "git help log", "git mergetool", "git difftool", "git init", "git stash", "git stash pop", "git worktree add x", "git notes add", "git hook run x", "git --git=x log",
                   "git bisect run x", "git filter-branch", "git update-index --refresh", "git fsmonitor--daemon start", "git range-diff a b", "git web--browse x", "git ls-remote", "git remote update", "git merge-tree a b", "git maintenance run"]),
    version(&["cargo", "rustc", "rustup"], &["--version", "-V"]).runs(&["cargo --version", "rustc -V"]).refuses(&["cargo build", "cargo test", "cargo metadata", "cargo", "cargo --version -C x", "rustup update", "cargo --list", "cargo +nightly --version"]),
    version(&["node", "deno"], &["--version", "-v"]).runs(&["node --version"]).refuses(&["node -e x", "node x.js", "node", "node --version -e x", "node -p 1"]),
    version(&["python", "python2", "python3", "pypy3"], &["--version", "-V"]).runs(&["python3 --version"]).refuses(&["python3 -c x", "python x.py", "python3", "python3 -m http.server", "python3 --version x"]),
    version(&["perl", "ruby", "lua"], &["--version", "-v"]).runs(&["perl -v"]).refuses(&["perl -e x", "ruby -e x", "perl -v x", "perl -pi -e x a"]),
    version(&["gcc", "g++", "cc", "c++", "clang", "clang++", "make", "gmake", "cmake", "ninja", "bash", "ld", "as"], &["--version"])
        .runs(&["gcc --version", "make --version", "bash --version"]).refuses(&["gcc a.c", "make", "make -n", "make --version x", "cmake .", "bash -c ls", "bash x.sh", "bash", "make --version --eval=x", "clang --version -o x"]),
    // Known not to be readers: here for what to do instead.
    refused(&["tee", "dd", "cp", "mv", "ln", "install", "mkdir", "touch", "truncate", "split", "csplit", "mktemp", "mkfifo", "mknod", "rsync", "scp", "patch", "ex", "ed", "vi", "vim", "nano", "emacs", "sponge"],
            "it writes files", USE_TOOLS).refuses(&["echo x | tee out", "cp a b", "dd of=out", "touch x", "mkdir x", "ln -s a b", "mv a b", "ls | tee -a x"]),
    refused(&["rm", "rmdir", "unlink", "shred"], "it deletes files", USE_TOOLS).refuses(&["rm a", "rm -rf .", "rmdir sub", "unlink a", "shred a"]),
    refused(&["chmod", "chown", "chgrp", "chattr", "setfacl", "setfattr", "chcon"], "it changes who may do what with files", USE_BUILD).refuses(&["chmod +x a", "chown root a", "chattr +i a"]),
    refused(&["sh", "dash", "zsh", "ksh", "fish", "ash", "busybox", "toybox", "pwsh", "csh", "tcsh", "rbash"], "it runs whatever it is given", "Give the commands directly.").refuses(&["sh -c ls", "busybox ls", "sh a", "echo ls | sh"]),
    refused(&["eval", "source", ".", "trap", "alias", "unalias", "shopt", "enable", "hash", "bind", "complete", "compgen", "compopt", "export", "declare", "typeset", "readonly", "local", "unset", "let", "mapfile", "readarray",
              "getopts", "shift", "pushd", "popd", "dirs", "ulimit", "umask", "wait", "jobs", "fg", "bg", "disown", "kill", "suspend", "logout", "history", "fc", "caller", "times", "help"],
            "it changes the shell itself, or runs what stands in a text or file", "Write the command out; set variables as NAME=value.")
        .refuses(&["eval ls", "source a", ". ./a", "trap 'touch x' EXIT", "alias ls=rm", "shopt -s expand_aliases", "enable -f ./x y", "hash -p ./x ls", "export PATH=.", "declare -i x", "unset PATH", "let x=1", "mapfile -C x a", "kill 1", "export x=1",
                   "declare x='a[$(touch o)]'", "typeset -n r=PATH", "readonly x=1", "local x=1", "unset x", "bind -x '\"a\":touch x'", "complete -C x y", "compgen -C 'touch x'", "fc -e x", "history -w x", "umask 000", "ulimit -f 0"]),
    refused(&["nohup", "setsid", "script", "screen", "tmux", "at", "batch", "crontab", "watch", "strace", "ltrace", "gdb", "unshare", "nsenter", "chroot", "flock", "parallel", "entr", "expect", "perf"],
            "it runs a program in a way that is not followed", "Run the program directly.").refuses(&["nohup ls", "setsid ls", "watch ls", "strace ls", "parallel ls", "script -c ls", "flock a ls"]),
    refused(&["sudo", "su", "doas", "pkexec", "runuser", "setpriv"], "it acts as another user", "Leave it out.").refuses(&["sudo ls", "su -c ls", "doas ls"]),
    refused(&["less", "more", "most", "man", "info", "view", "bat", "batcat", "pg"], "it is a pager, and pagers run other programs", "Use cat, head or Read.").refuses(&["less a", "man ls", "more a", "less -o out a", "bat a"]),
    refused(&["curl", "wget", "ssh", "sftp", "ftp", "nc", "ncat", "socat", "telnet", "ping", "dig", "nslookup", "host", "openssl", "gpg"], "it acts outside this machine or with keys", "Use WebFetch to read a page; others run in Build mode.")
        .refuses(&["curl x", "wget x", "ssh h ls", "nc h 1", "curl -o out x"]),
    refused(&["npm", "npx", "pnpm", "yarn", "corepack", "tsc", "pip", "pip3", "uv", "poetry", "pipenv", "pytest", "go", "gofmt", "java", "javac", "mvn", "gradle", "dotnet", "docker", "podman", "kubectl", "terraform", "ansible", "brew", "apt", "apt-get",
              "apt-cache", "dpkg", "rpm", "yum", "dnf", "apk", "snap", "just", "rake", "bundle", "gem", "composer", "rustfmt", "clippy-driver", "tox", "nox", "swift", "xcodebuild", "systemctl", "service", "mount", "umount", "sqlite3", "psql", "mysql"],
            "it runs code of the project or changes the machine, and writes caches even where it only looks", USE_BUILD)
        .refuses(&["npm test", "npm --version", "npx x", "pip install x", "go build", "go version", "docker ps", "pytest", "apt-get install x", "npm run build", "sqlite3 a '.shell ls'", "java -version", "yarn --version"]),
];

/// Options of git for how differences are shown. `-O`, `--output`, `--ext-diff`, `--textconv` and `--submodule` are not
/// among them.
macro_rules! diff_options {
    () => {
        "-p -u --patch -s --no-patch -U: --unified: --raw --patch-with-raw --minimal --patience --histogram --diff-algorithm: \
         --stat? --numstat --shortstat --dirstat? --summary --patch-with-stat -z --name-only --name-status --color? --no-color \
         --color-words? --word-diff? --word-diff-regex: --color-moved? --no-color-moved --no-renames --find-renames? -M? -C? \
         --find-copies? --find-copies-harder -B? -D -l: --diff-filter: -S: -G: --pickaxe-all --pickaxe-regex -R --relative? \
         -a --text --ignore-cr-at-eol --ignore-space-at-eol -b --ignore-space-change -w --ignore-all-space \
         --ignore-blank-lines --inter-hunk-context: -W --function-context --exit-code --quiet -q --no-prefix --src-prefix: \
         --dst-prefix: --full-index --abbrev? --binary --check --compact-summary --ws-error-highlight: --line-prefix: \
         --no-ext-diff --no-textconv"
    };
}

/// Options of git for which commits are taken and how they are shown. `--remerge-diff`, `--show-signature` and
/// `--alternate-refs` are not among them.
macro_rules! log_options {
    () => {
        " -# -n: --max-count: --skip: --since: --after: --until: --before: --author: --committer: --grep: -i \
         --regexp-ignore-case -E --extended-regexp -F --fixed-strings --all-match --invert-grep --merges --no-merges \
         --first-parent --all --branches? --tags? --remotes? --glob: --exclude: --cherry --cherry-pick --cherry-mark \
         --left-right --left-only --right-only --merge-base --boundary --simplify-by-decoration --full-history --dense --sparse \
         --ancestry-path --date-order --author-date-order --topo-order --reverse --no-walk? --oneline --format: --pretty? \
         --abbrev-commit --no-abbrev-commit --date: --relative-date --parents --children --graph --no-graph --decorate? \
         --no-decorate --decorate-refs: --source --follow -L: -c --cc -m --notes? --no-notes --show-notes? --no-mailmap \
         --use-mailmap --log-size --encoding: --full-diff -g --walk-reflogs"
    };
}

const NO_HELPERS: &str = "--no-ext-diff --no-textconv";

/// What git diff and log refuse with reasons of their own.
const HELPERS: &[(&str, &str)] = &[
    ("--output", WRITES_FILE),
    ("--ext-diff", "it runs the program that the repository names for differences"),
    ("--textconv", "it runs the program that the repository names for this kind of file"),
    ("--show-signature", "it runs the program that the repository names for signatures"),
    ("--submodule --recurse-submodules", "it runs git in other repositories"),
    ("--remerge-diff", "it writes objects"),
    ("-O --open-files-in-pager", RUNS_PROGRAM),
];

const fn git(name: &'static str, allowed: &'static str, operands: GitOperands) -> GitRow {
    GitRow { name, options: allowing(allowed, HELPERS), operands, insert: "", runs: &[], refuses: &[] }
}

impl GitRow {
    const fn inserting(mut self, insert: &'static str) -> Self {
        self.insert = insert;
        self
    }
    const fn runs(mut self, runs: &'static [&'static str]) -> Self {
        self.runs = runs;
        self
    }
    const fn refuses(mut self, refuses: &'static [&'static str]) -> Self {
        self.refuses = refuses;
        self
    }
}

/// Options of git for lists of references.
macro_rules! reference_options {
    () => {
        "--sort: --format: --color? --no-color -i --ignore-case --contains! --no-contains! --merged! --no-merged! --points-at! \
         --omit-empty"
    };
}

/// With these, `git branch` and `git tag` list.
const LISTING: &[&str] = &["--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"];

/// With these, `git tag` lists.
const LISTING_TAGS: &[&str] =
    &["-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"];

/// The subcommands of git that are known. Every one that shows differences of files has the options inserted that keep
/// the programs of a repository out.
#[rustfmt::skip]
pub(super) static GIT: &[GitRow] = &[
    git("status", "-s --short -b --branch --no-branch --show-stash --porcelain? --long -u? --untracked-files? --ignored? -z --ahead-behind --no-ahead-behind --renames --no-renames --find-renames? --no-column", GitOperands::Any)
        .inserting("--ignore-submodules=dirty").runs(&["git status --short", "git status -sb", "git status --porcelain=v2 -- a", "git status -uno"]).refuses(&["git status -v", "git status -vv", "git status --verb", "git status \"$x\"", "git status --ignore-submodules=none", "git status *"]),
    git("diff", concat!(diff_options!(), " --cached --staged --merge-base --no-index -1 -2 -3 -0 --base --ours --theirs --cc -c"), GitOperands::Any)
        .inserting("--no-ext-diff --no-textconv --ignore-submodules=dirty")
        .runs(&["git diff", "git diff --stat HEAD~1", "git diff --cached -- a", "git diff -w --word-diff=color", "git diff --no-index a b", "git diff main...HEAD", "git diff -U5 -- \"$f\""])
        .refuses(&["git diff --ext-diff", "git diff --textconv", "git diff --output=out", "git diff --outp=out", "git diff --output out", "git diff --submodule=diff", "git diff \"$x\"", "git diff --ext", "git diff --textc", "git diff -Oorder", "git diff *", "git diff --o=x"]),
    git("log", concat!(diff_options!(), log_options!()), GitOperands::Any).inserting(NO_HELPERS)
        .runs(&["git log -p", "git log --oneline -5", "git log --graph --all --format='%h %s'", "git log --since=yesterday --author=x", "git log -S foo -- a", "git log -L1,2:a", "git log -n 3 --stat", "git log --follow -- \"$f\"", "git log -G x -p"])
        .refuses(&["git log --output=out", "git log -p --ext-diff", "git log --textconv -p", "git log --show-signature", "git log --remerge-diff", "git log --show-sig", "git log \"$x\"", "git log --outpu out -p", "git log --alternate-refs", "git log --stdin", "git log --ext-d -p"]),
    git("show", concat!(diff_options!(), log_options!()), GitOperands::Any).inserting(NO_HELPERS)
        .runs(&["git show", "git show HEAD:a", "git show --stat HEAD", "git show HEAD~1 -- a", "git show HEAD:\"$f\""]).refuses(&["git show --textconv HEAD:a", "git show --ext-diff", "git show --output=x", "git show --show-signature", "git show \"$x\"", "git show -O x", "git show --remerge-diff HEAD", "git show $(cat a)"]),
    git("diff-tree", concat!(diff_options!(), " -r -t --root -m -c --cc --no-commit-id --pretty? --format:"), GitOperands::Any).inserting(NO_HELPERS).runs(&["git diff-tree -r --name-only HEAD"]).refuses(&["git diff-tree --ext-diff HEAD", "git diff-tree --stdin"]),
    git("diff-index", concat!(diff_options!(), " --cached -m"), GitOperands::Any).inserting("--no-ext-diff --no-textconv --ignore-submodules=dirty").runs(&["git diff-index --name-only HEAD"]).refuses(&["git diff-index --textconv -p HEAD"]),
    git("diff-files", diff_options!(), GitOperands::Any).inserting("--no-ext-diff --no-textconv --ignore-submodules=dirty").runs(&["git diff-files --name-only"]).refuses(&["git diff-files --ext-diff"]),
    git("blame", "-L: -l -t -f --show-name -n --show-number -s -e --show-email -w -M? -C? --root --porcelain -p --line-porcelain --since: --date: --abbrev? --first-parent --color-lines --color-by-age --reverse --ignore-rev: -c", GitOperands::Any)
        .inserting("--no-textconv").runs(&["git blame a", "git blame -L 1,2 a", "git blame -w HEAD -- a"]).refuses(&["git blame --textconv a", "git blame --contents=x a", "git blame \"$x\"", "git blame -S x a", "git blame --textc a"]),
    git("annotate", "-L: -l -t -w", GitOperands::Any).inserting("--no-textconv").runs(&["git annotate a"]).refuses(&["git annotate --textconv a"]),
    git("grep", "-a --text -i --ignore-case -I --no-recursive -r --recursive --max-depth: -w --word-regexp -v --invert-match -h -H --full-name -E --extended-regexp -G --basic-regexp -P --perl-regexp -F --fixed-strings -n --line-number --column -l \
        --files-with-matches --name-only -L --files-without-match -z --null -o --only-matching -c --count --color? --no-color --break --heading -p --show-function -A: -B: -C: --after-context: --before-context: --context: -W --function-context \
        -m: --max-count: --threads: -e: --and --or --not --all-match -q --quiet --cached --untracked --no-exclude-standard --exclude-standard --no-index -# --no-textconv", GitOperands::Any)
        .runs(&["git grep -n foo", "git grep -i foo HEAD -- '*.rs'", "git grep -c -e \"foo$x\""])
        .refuses(&["git grep -O foo", "git grep -Oless foo", "git grep --open-files-in-pager=./x foo", "git grep --open foo", "git grep --textconv foo", "git grep \"$x\"", "git grep --recurse-submodules x", "git grep -f pats", "git grep --ext-grep x", "git grep -nO./x foo"]),
    git("ls-files", "-z -t -v -f -c --cached -d --deleted -m --modified -o --others -i --ignored -s --stage -u --unmerged -k --killed --directory --no-empty-directory --eol --deduplicate -x: --exclude: --exclude-standard --full-name --abbrev? --error-unmatch --with-tree: --format:", GitOperands::Any)
        .runs(&["git ls-files", "git ls-files -m -- src", "git ls-files -o --exclude-standard"]).refuses(&["git ls-files --recurse-submodules", "git ls-files -X x", "git ls-files --exclude-from=x", "git ls-files \"$x\""]),
    git("ls-tree", "-d -r -t -l --long -z --name-only --name-status --object-only --full-name --full-tree --abbrev? --format:", GitOperands::Any).runs(&["git ls-tree -r HEAD"]).refuses(&["git ls-tree \"$x\""]),
    git("cat-file", "-t -s -p -e", GitOperands::AtMost(2)).runs(&["git cat-file -p HEAD", "git cat-file -t HEAD", "git cat-file blob HEAD:a"])
        .refuses(&["git cat-file --textconv HEAD:a", "git cat-file --filters HEAD:a", "git cat-file --textc HEAD:a", "git cat-file --filt HEAD:a", "git cat-file --batch --filters", "git cat-file \"$x\""]),
    git("rev-parse", "--verify -q --quiet --short? --abbrev-ref? --symbolic --symbolic-full-name --all --branches? --tags? --remotes? --show-toplevel --show-prefix --show-cdup --git-dir --absolute-git-dir --git-common-dir --git-path: --is-inside-work-tree \
        --is-inside-git-dir --is-bare-repository --is-shallow-repository --path-format: --show-object-format? --disambiguate: --default:", GitOperands::Any)
        .runs(&["git rev-parse HEAD", "git rev-parse --abbrev-ref HEAD", "git rev-parse --show-toplevel"]).refuses(&["git rev-parse --show-superproject-working-tree", "git rev-parse \"$x\"", "git rev-parse --parseopt"]),
    git("rev-list", concat!("--count --objects --left-right --timestamp --no-commit-header --disk-usage?", log_options!()), GitOperands::Any).runs(&["git rev-list --count HEAD"]).refuses(&["git rev-list --alternate-refs HEAD", "git rev-list --show-signature HEAD"]),
    git("describe", "--all --tags --contains --abbrev: --candidates: --exact-match --long --match: --exclude: --always --first-parent", GitOperands::Any).runs(&["git describe --always", "git describe --tags"]).refuses(&["git describe --dirty", "git describe --broken", "git describe --dirty=x", "git describe --dir"]),
    git("shortlog", "-n --numbered -s --summary -e --email -c --committer --group: --since: --until: --no-merges --all -#", GitOperands::Any).runs(&["git shortlog -sn HEAD"]).refuses(&["git shortlog --output=x HEAD", "git shortlog --show-signature HEAD"]),
    git("branch", concat!("-a --all -r --remotes -v -vv --verbose --show-current -l --list --no-column ", reference_options!()), GitOperands::With(LISTING))
        .runs(&["git branch", "git branch -a", "git branch -vv", "git branch --list 'x*'", "git branch --contains HEAD", "git branch --show-current", "git branch --merged", "git branch --no-merged main"])
        .refuses(&["git branch x", "git branch -d x", "git branch -D x", "git branch -m x", "git branch -f x HEAD", "git branch -v x", "git branch --edit-description", "git branch -u x", "git branch -l x", "git branch --set-upstream-to=x", "git branch -c a b", "git branch --del x", "git branch --merged -d x", "git branch --contains --delete", "git branch -- x"]),
    git("tag", concat!("-l --list -n? --no-column ", reference_options!()), GitOperands::With(LISTING_TAGS))
        .runs(&["git tag", "git tag -l", "git tag -l 'v*'", "git tag --list 'v*'", "git tag --contains HEAD", "git tag -n3"]).refuses(&["git tag x", "git tag -d x", "git tag -a x -m y", "git tag -v x", "git tag -s x", "git tag -f x", "git tag --delete x", "git tag -F a x", "git tag -- x", "git tag --ver x"]),
    git("remote", "-v --verbose", GitOperands::AtMost(0)).runs(&["git remote", "git remote -v"]).refuses(&["git remote add x y", "git remote update", "git remote -v update", "git remote show origin", "git remote prune origin", "git remote rm x"]),
    git("remote show", "-n", GitOperands::AtMost(0)).runs(&["git remote show"]).refuses(&["git remote show origin", "git remote show -n origin"]),
    git("remote get-url", "--all --push", GitOperands::AtMost(1)).runs(&["git remote get-url origin"]).refuses(&["git remote set-url origin x"]),
    git("stash list", concat!(diff_options!(), log_options!()), GitOperands::Any).inserting(NO_HELPERS).runs(&["git stash list", "git stash list -p"]).refuses(&["git stash list --textconv -p", "git stash list --ext-diff", "git stash list --output=x"]),
    git("stash show", diff_options!(), GitOperands::Any).inserting("--stat --no-ext-diff --no-textconv").runs(&["git stash show -p", "git stash show", "git stash show -p stash@{0}"]).refuses(&["git stash show --ext-diff", "git stash drop", "git stash push", "git stash clear", "git stash apply", "git stash branch x", "git stash -p"]),
    git("config", "--get --get-all --get-regexp --get-urlmatch -l --list --global --system --local --worktree --show-origin --show-scope -z --null --name-only --type: --bool --int --path --default: --includes --no-includes", GitOperands::Setting(&["--get", "--get-all", "--get-regexp", "--get-urlmatch", "-l", "--list"]))
        .runs(&["git config --get user.name", "git config --list", "git config user.name", "git config -l --show-origin"])
        .refuses(&["git config user.name x", "git config --unset x", "git config --add a b", "git config -e", "git config edit", "git config foo", "git config --edit", "git config --global user.name x", "git config --replace-all a b", "git config --rename-section a b", "git config set a b", "git config -f x a.b c", "git config --file=x --get a", "git config --unse x", "git config --local a.b c", "git config --remove-section a"]),
    git("config get", "--all --regexp --value: --fixed-value --url: --global --system --local --worktree --show-origin --show-scope -z --null --show-names --no-show-names --type: --default: --includes --no-includes", GitOperands::Exactly(1))
        .runs(&["git config get user.name", "git config get --all user.name"]).refuses(&["git config get a.b c", "git config get --file x a.b"]),
    git("config list", "--global --system --local --worktree --show-origin --show-scope -z --null --name-only --type: --includes --no-includes", GitOperands::AtMost(0))
        .runs(&["git config list"]).refuses(&["git config list x", "git config edit", "git config set", "git config rename-section"]),
    git("merge-base", "-a --all --octopus --is-ancestor --fork-point --independent", GitOperands::Any).runs(&["git merge-base HEAD HEAD"]).refuses(&["git merge-base \"$x\""]),
    git("name-rev", "--tags --refs: --all --name-only --always", GitOperands::Any).runs(&["git name-rev HEAD"]).refuses(&["git name-rev --stdin"]),
    git("reflog", "-# -n: --date: --oneline --format: --abbrev-commit", GitOperands::AtMost(0)).runs(&["git reflog", "git reflog -5"]).refuses(&["git reflog expire --all", "git reflog delete x", "git reflog -p", "git reflog drop x"]),
    git("reflog show", "-# -n: --date: --oneline --format: --abbrev-commit --all", GitOperands::AtMost(1)).runs(&["git reflog show HEAD"]).refuses(&["git reflog show -p --ext-diff"]),
    git("for-each-ref", concat!("--count: --shell --perl --python --tcl --include-root-refs --exclude: ", reference_options!()), GitOperands::Any).runs(&["git for-each-ref --count=3", "git for-each-ref --format='%(refname)' refs/heads"]).refuses(&["git for-each-ref --stdin"]),
    git("show-ref", "--head -d --dereference -s --hash? --verify --abbrev? -q --quiet --tags --heads --branches --exists", GitOperands::Any).runs(&["git show-ref"]).refuses(&["git show-ref \"$x\""]),
    git("symbolic-ref", "-q --quiet --short --recurse --no-recurse", GitOperands::Exactly(1)).runs(&["git symbolic-ref HEAD", "git symbolic-ref --short HEAD"]).refuses(&["git symbolic-ref HEAD refs/heads/x", "git symbolic-ref -d HEAD", "git symbolic-ref --delete HEAD", "git symbolic-ref -m x HEAD y", "git symbolic-ref -- HEAD refs/heads/x"]),
    git("check-ignore", "-q --quiet -v --verbose -n --non-matching --no-index", GitOperands::Any).runs(&["git check-ignore -v a"]).refuses(&["git check-ignore --stdin"]),
    git("check-attr", "-a --all --cached -z", GitOperands::Any).runs(&["git check-attr -a a"]).refuses(&["git check-attr --stdin"]),
    git("worktree list", "-v --verbose --porcelain -z", GitOperands::AtMost(0)).runs(&["git worktree list"]).refuses(&["git worktree prune", "git worktree remove x", "git worktree add x", "git worktree repair"]),
    git("count-objects", "-v --verbose -H --human-readable", GitOperands::AtMost(0)).runs(&["git count-objects -v"]).refuses(&["git count-objects x"]),
    git("cherry", "-v --abbrev?", GitOperands::Any).runs(&["git cherry -v HEAD HEAD"]).refuses(&["git cherry-pick x"]),
    git("show-branch", "-a --all -r --remotes --current --topo-order --sparse --more: --list --sha1-name --no-name --color? --no-color", GitOperands::Any).runs(&["git show-branch"]).refuses(&["git show-branch \"$x\""]),
    git("version", "--build-options", GitOperands::AtMost(0)).runs(&["git version"]).refuses(&["git version x"]),
];
