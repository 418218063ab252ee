//! Lines that change something or run something of the repository's. All of them have to be refused.

/// A kind of line, and lines of that kind.
pub(super) type Family = (&'static str, &'static [&'static str]);

#[rustfmt::skip]
pub(super) const FAMILIES: &[Family] = &[
    ("a second command chained on", &[
        "git log -1; touch a", "git log -1 && touch b", "git log -1 & touch c", "git log -1\ntouch d", "git log -1 || touch e", "git log $(touch f)", "git log `touch g`", "git log <(touch h)", "git log -1 | touch i",
        "ls; rm -rf sub", "true && { touch j; }", "(cd sub && touch k)", "ls |& tee l", "if true; then touch m; fi", "if false; then :; else touch n; fi", "while touch o; do break; done", "for i in 1; do touch \"$i\"; done",
        "case x in x) touch p;; esac", "until touch q; do :; done", "! touch r", "ls;touch s", "ls&&touch t", "ls\n\n\ntouch u", "ls # x\ntouch v", "ls \\\n; touch w", "[ -f a ] && touch x", "[[ -f a ]] || touch y", "{ ls; } ; touch z",
        "ls & ls", "sleep 0 &", "( touch aa )", "((touch)) ; touch ab", "ls | (touch ac)", "for i in $(touch ad); do :; done", "case $(touch ae) in *) :;; esac", "ls ;; touch af", "time touch ag", "ls | while read x; do touch \"$x\"; done",
    ]),
    ("redirections", &[
        "echo x > out", "echo x >> out", "echo x >| out", "echo x &> out", "echo x &>> out", "echo x >& out", "echo x > $x", "echo x > \"$(echo out)\"", "echo x 2> out", "ls 1>out", "ls >out", "cat a >/dev/null >out", "ls <> out",
        "{ ls; } > out", "(ls) > out", "for i in 1; do ls; done > out", "while false; do :; done > out", "if true; then ls; fi >> out", "> out", "< a > out", "exec > out", "exec 3> out", "echo x >&3", "echo x 3> out", "echo x > /dev/tcp/127.0.0.1/9",
        "cat < /dev/tcp/127.0.0.1/9", "echo x {fd}> out", "echo x >&$x", "echo x > out 2>&1", "ls 2>&1 >out", "echo x >\"/dev/null x\"", "echo x > /dev/null/../../tmp/out", "echo x > /dev/nul*", "cat <<< x > out", "cat << EOF > out\nx\nEOF",
        "echo x > ~/out", "echo x >'out'", "echo x \\> out > out", "echo x >\nout", "echo $(cat a > out)", "ls > out | cat", "ls | cat > out", "[ a > b ]", "echo x >&out", "echo x &>out", "ls 12>out", "cat a 0<>out",
    ]),
    ("substitutions in every nesting", &[
        "echo $(touch a)", "echo \"$(touch a)\"", "echo `touch a`", "echo \"`touch a`\"", "echo $(echo $(touch a))", "echo \"$(echo \"$(touch a)\")\"", "ls $(echo $(echo `touch a`))", "cat <(touch a)", "cat >(touch a)", "ls | tee >(touch a)",
        "diff <(ls) <(touch a)", "x=$(touch a)", "x=$(touch a) ls", "cat <<EOF\n$(touch a)\nEOF", "cat <<EOF\n`touch a`\nEOF", "cat <<< $(touch a)", "cat <<< \"$(touch a)\"", "echo ${x:-$(touch a)}", "echo \"${x:-`touch a`}\"", "echo ${x:=$(touch a)}",
        "echo $((1 + $(touch a)))", "echo $((`touch a`))", "echo $[$(touch a)]", "[ -n \"$(touch a)\" ]", "[[ -n $(touch a) ]]", "test $(touch a)", "echo {a,$(touch a)}", "ls \"a$(touch a)b\"", "echo $(<a; touch b)", "echo $(ls\ntouch a)",
        "echo \"$(ls # )\ntouch a)\"", "echo $'\\'' $(touch a) '", "cat < $(touch a)", "echo ${x/$(touch a)/b}", "echo ${x:$(touch a)}", "printf %s \"$(touch a)\"", "echo $((a[$(touch a)]))", "echo ${a[$(touch a)]}", "echo \"${!x}\"", "echo ${x@P}",
    ]),
    ("values that run when they are looked at", &[
        "x='a[$(touch p)]'; echo $((x))", "x='a[$(touch p)]'; [[ $x -eq 1 ]]", "[[ -v a[$(touch p)] ]]", "test -v 'a[$(touch p)]'", "[ -v 'a[$(touch p)]' ]", "printf -v 'a[$(touch p)]' x", "read 'a[$(touch p)]' < a", "x='$(touch p)'; echo ${x@P}",
        "declare -i x='a[$(touch p)]'", "let 'x=a[$(touch p)]'", "(( a[$(touch p)] ))", "unset 'a[$(touch p)]'", "x=y; y='a[$(touch p)]'; echo $((x+1))", "echo ${a:x}", "x='a[$(touch p)]'; echo ${a:x:1}", "[[ $x -gt 0 ]]", "[[ 1 -eq $(cat a) ]]",
        "cat a | while read n; do echo $((n)); done", "for n in $(cat a); do echo $((n + 1)); done", "[ -v \"$x\" ]", "test \"$x\" \"$y\"", "[[ -R x ]]", "wait -n -p 'a[$(touch p)]'", "mapfile 'a[$(touch p)]' < a", "export 'a[$(touch p)]=1'",
        "echo $((x=1, PATH=2))", "echo $((PATH=1))", "echo $((x++))", "x[$(touch p)]=1", "x=(1 $(touch p))", "echo ${#a[$(touch p)]}", "x+=y", "typeset -n r='a[$(touch p)]'",
    ]),
    ("the environment of a command", &[
        "PATH=. ls", "PATH=.:$PATH git status", "LD_PRELOAD=./x.so ls", "LD_LIBRARY_PATH=. ls", "BASH_ENV=./evil.sh bash -c ls", "ENV=./evil.sh sh -c ls", "GIT_EXTERNAL_DIFF=./evil.sh git diff", "GIT_PAGER=./evil.sh git -p log", "GIT_PAGER='sh -c x' git log",
        "PAGER=./evil.sh git log", "GIT_DIR=other git status", "GIT_CONFIG_COUNT=0 git status", "GIT_CONFIG_GLOBAL=./x git status", "GIT_CONFIG_PARAMETERS=x git status", "GIT_SSH_COMMAND=./evil.sh git status", "GIT_OPTIONAL_LOCKS=1 git status", "GIT_TRACE=out git status",
        "GIT_TRACE2_EVENT=/tmp/x git log", "LESSOPEN='|touch x' cat a", "IFS=x ls", "TAR_OPTIONS=-x tar -tf a", "GREP_OPTIONS=x grep a a", "PS4='$(touch x)' ls", "SHELLOPTS=xtrace ls", "HOME=. git status", "XDG_CONFIG_HOME=. git status", "TMPDIR=. sort a",
        "export PATH=.", "PATH=.; ls", "PATH=.", "HOME=/tmp; git status", "IFS=/; ls", "GIT_DIR=x; git log", "LC_ALL=zh_CN.GBK ls", "BASH_FUNC_ls%%='() { touch x; }' ls", "for PATH in .; do ls; done", "read PATH < a; ls", "env PATH=. ls", "env -u GIT_CONFIG_COUNT git status",
        "env -i git status", "env - git status", "exec -c git status", "unset GIT_CONFIG_COUNT; git status", "declare -x PATH=.", "readonly PATH=.", "GIT_ATTR_SOURCE=x git diff", "GIT_ALTERNATE_OBJECT_DIRECTORIES=x git log", "LOCPATH=. ls", "GCONV_PATH=. ls", "NODE_OPTIONS=x node --version",
        "PERL5OPT=-Mevil perl -v", "PYTHONSTARTUP=x python3 --version", "RUSTUP_TOOLCHAIN=x cargo --version", "POSIXLY_CORRECT=1 ls", "OPTIND=1; ls", "GLOBIGNORE=x; ls *", "CDPATH=/; cd tmp",
    ]),
    ("wrappers", &[
        "env -C . touch a", "env --chdir=. touch b", "env -S 'touch c'", "env -S'touch c'", "env -vS 'touch c'", "nice -n 5 touch d", "timeout 5 touch e", "command -p touch f", "nohup touch g", "stdbuf -oL touch h", "command touch i", "builtin eval touch j", "exec touch k",
        "xargs touch < a", "echo x | xargs touch", "echo x | xargs -I{} sh -c 'touch {}'", "echo touch | xargs -I{} {} x", "nice nice nice touch l", "env env env touch m", "timeout 5 env nice touch n", "xargs -n1 env touch < a", "ionice -c3 touch o", "setsid touch p", "time touch q",
        "env x=y touch r", "sudo touch s", "busybox touch t", "sh -c 'touch u'", "bash -c 'touch u'", "bash a", "sh < a", "cat a | sh", "cat a | bash", "python3 -c 'open(\"x\",\"w\")'", "perl -e 'open F,\">x\"'", "perl -pi -e s/a/b/ a", "ruby -e x", "node -e x", "eval touch v", "source a",
        ". ./a", "/bin/sh -c 'touch w'", "/usr/bin/env touch x", "/usr/bin/touch y", "./evil.sh", "sub/../evil.sh", "~/evil.sh", "$x", "\"$x\" a", "$(echo touch) z", "`echo touch` z", "t{ou,}ch z", "to\\uch z", "'touch' z", "\"touch\" z", "t''ouch z", "*", "[t]ouch z", "strace ls", "find . | xargs -I{} rm {}",
        "xargs -a a touch", "xargs -r rm < a", "xargs --arg-file=a rm", "xargs -P2 -n1 rm < a", "xargs sort < a", "xargs sed -n p < a", "xargs uniq < a", "xargs xargs touch < a", "xargs find < a", "xargs git log < a", "time -o out ls", "flock a touch x", "watch touch x", "chroot . ls", "script -c 'touch x' out",
    ]),
    ("programs that write where one does not expect it", &[
        "echo x | tee out", "cp a b", "dd of=out", "dd if=a of=out", "sort -o out a", "sort -oout a", "sort a -o out", "sort --output=out a", "sort --outp=out a", "sort -T. a", "sort --compress-program=./evil.sh a", "uniq a out", "uniq -c a out", "uniq -- a out", "sed -i s/a/b/ a", "sed -i.bak s/a/b/ a",
        "sed --in-place s/a/b/ a", "sed -n 'w out' a", "sed 's/a/b/w out' a", "sed '1e touch x' a", "sed 's/.*/touch x/e' a", "sed -e 'w out' a", "sed -n '/a/w out' a", "sed --expression='w out' a", "sed -f a", "sed -nf a a", "sed 'W out' a", "awk 'BEGIN{print 1>\"out\"}'",
        "awk 'BEGIN{system(\"touch o\")}'", "awk 'BEGIN{print \"touch o\" | \"sh\"}'", "awk 'BEGIN{\"touch o\" | getline}'", "awk '{print >> \"out\"}' a", "awk '{printf \"x\" > \"out\"}' a", "awk -f a", "awk '{print > $1}' a", "gawk -i inplace '{print}' a", "xxd -r a out", "xxd a out",
        "find . -delete", "find . -exec touch x ;", "find . -exec touch x \\;", "find . -execdir touch x +", "find . -ok rm {} \\;", "find . -fprint out", "find . -fprintf out x", "find . -fls out", "find . -name a -o -delete", "find . \\( -delete \\)", "find . ! -delete", "find . -quit -o -exec touch x \\;",
        "tree -o out", "shuf -o out a", "split a", "csplit a 1", "file -C -m a", "base64 -o out a", "gzip a", "gunzip a.gz", "bzip2 a", "xz a", "zstd a -o out", "tar cf out a", "tar xf a", "tar -tf a --to-command=./evil.sh", "tar -tf a --checkpoint=1 --checkpoint-action=exec=./evil.sh", "tar -tf a -I ./evil.sh",
        "tar tf host:a", "unzip a", "zip out a", "rsync a b", "install a b", "ln -s a b", "ln a b", "mkdir x", "rmdir sub", "rm a", "mv a b", "chmod +x a", "chown root a", "touch a", "truncate -s0 a", "mktemp -p .", "mkfifo x", "patch -p1 < a", "ed a", "vim -c wq a", "less -o out a", "man ls", "more a",
        "date -s 2020-01-01", "date 010100002020", "date --set=x", "hostname evil", "rg --pre ./evil.sh x", "rg --pre=./evil.sh x", "rg --hostname-bin=./evil.sh x", "rg -z x", "fd -x touch", "fd . -X touch", "ag --pager=./evil.sh x", "ack --pager=./evil.sh x", "yq -i .a=1 a", "jq . a > a", "printf x > out", "iconv -o out a",
        "curl -o out x", "wget x", "nc -l 1", "ssh h", "crontab a", "at now < a", "npm i", "npm --version", "make", "make -n", "cargo build", "cargo metadata", "go vet", "pip install x", "docker ps", "kill -9 1", "ulimit -f 0", "umask 0", "mount", "sysctl -w x=1", "ex -c wq a", "gdb -batch a", "openssl rand -out out 1",
        "diff3 --diff-program=./evil.sh a a a", "sdiff -o out a a", "comm a a > out", "tee -a out < a", "sponge a", "ptx -G a out", "bc < a > out", "dc -e '!touch x'", "look -o x", "ionice -c3 -p 1", "ps e", "ldd ./evil.sh", "lsof -Di", "dmesg -C", "ss -K", "strip a", "objcopy a", "ar r x a",
    ]),
    ("git that writes or runs", &[
        "git add .", "git commit -m x", "git commit --allow-empty -m x", "git checkout .", "git checkout -b x", "git switch x", "git restore a", "git reset", "git reset --hard", "git clean -fd", "git stash", "git stash push", "git stash pop", "git stash drop", "git rm a", "git mv a b", "git merge x", "git rebase x",
        "git cherry-pick x", "git revert HEAD", "git tag x", "git tag -a x -m y", "git tag -d x", "git tag -v x", "git branch x", "git branch -d x", "git branch -m x", "git branch -f x", "git branch --unset-upstream", "git config user.name x", "git config --add a.b c", "git config --unset a.b", "git config -e",
        "git config --global a.b c", "git config --file a a.b c", "git config set a.b c", "git config unset a.b", "git remote add x y", "git remote update", "git remote show origin", "git remote prune origin", "git remote -v update", "git fetch", "git pull", "git push", "git ls-remote", "git clone . x", "git init x",
        "git gc", "git repack", "git prune", "git pack-refs", "git fsck --lost-found", "git update-index --refresh", "git update-index --really-refresh", "git update-ref HEAD x", "git symbolic-ref HEAD refs/heads/x", "git write-tree", "git read-tree HEAD", "git hash-object -w a", "git hash-object a", "git mktree < a",
        "git apply a", "git am a", "git format-patch -1", "git bundle create x HEAD", "git archive HEAD", "git archive -o x HEAD", "git archive HEAD | tar -t", "git notes add -m x", "git replace x y", "git reflog expire --all", "git reflog delete HEAD@{0}", "git worktree add x", "git worktree prune", "git submodule update",
        "git submodule status", "git submodule foreach touch x", "git describe --dirty", "git describe --broken", "git difftool", "git mergetool", "git diff --ext-diff", "git diff --textconv", "git log -p --ext-diff", "git log -p --textconv", "git show --textconv", "git show --ext-diff HEAD", "git blame --textconv a",
        "git grep --textconv x", "git grep -O x", "git grep -Otouch x", "git grep --open-files-in-pager=./evil.sh x", "git grep --open-files=./evil.sh x", "git cat-file --textconv HEAD:a", "git cat-file --filters HEAD:a", "git cat-file --batch --filters", "git log --show-signature", "git show --show-signature", "git log --remerge-diff",
        "git log --output=out", "git diff --output=out", "git show --outp=out", "git diff --outpu out", "git -c core.fsmonitor=./evil.sh status", "git -c alias.x='!touch y' x", "git -calias.status='!touch y' status", "git --exec-path=. status", "git --git-dir=other log", "git --work-tree=.. status", "git -p log",
        "git --paginate log", "git --config-env=core.pager=X log", "git lg", "git evil", "git status -v", "git log --alternate-refs", "git rev-list --alternate-refs HEAD", "git range-diff a b", "git merge-tree a b", "git maintenance run", "git bisect start", "git bisect run ./evil.sh", "git filter-branch", "git rerere",
        "git fsmonitor--daemon start", "git hook run x", "git web--browse x", "git help log", "git instaweb", "git credential fill", "git send-email", "git daemon", "git shell", "git upload-pack .", "git receive-pack .", "git check-mailmap x > y", "git stripspace > x", "git mailinfo a b", "git mailsplit a", "git verify-commit HEAD",
        "git verify-tag x", "git var GIT_PAGER > x", "git sparse-checkout set x", "git commit-graph write", "git multi-pack-index write", "git index-pack a", "git unpack-objects < a", "git checkout-index -a", "git merge-file a b c", "git merge-index x a", "git diff --submodule=diff", "git grep --recurse-submodules x",
        "git ls-files --recurse-submodules", "git log \"$x\"", "git diff $x", "git $x", "git \"$x\" status", "git log $(cat a)", "git -C \"$x\" status", "git -C $x log", "git diff *", "git -C sub -C .. config x.y z", "git 'config' x.y z", "git\tcommit -m x", "git status; git commit -m x", "git log -- ; git tag x",
    ]),
    ("the shell itself", &[
        "alias ls=touch; ls x", "ls() { touch x; }; ls", "function ls { touch x; }; ls", "git() { command touch x; }; git status", "shopt -s expand_aliases", "set -o xtrace", "set -- x", "trap 'touch x' EXIT", "trap 'touch x' DEBUG; ls", "enable -f ./x.so y", "enable -n test; test x", "hash -p ./evil.sh ls; ls", "bind -x x",
        "complete -C 'touch x' y", "compgen -C 'touch x'", "coproc touch x", "coproc ls", "select x in a; do touch x; done", "declare -f", "declare -x A=b", "local x=1", "typeset x", "unset x", "unset -f ls", "readarray -C 'touch x' -c1 y < a", "mapfile -t x < a", "getopts a x", "history -w x", "fc -s", "jobs -x touch x", "disown", "wait",
        "suspend", "logout", "pushd sub", "popd", "dirs -c", "let x=1", "command eval touch x", "builtin source a", "exec 3<>out", "umask 077", "ulimit -c unlimited", "times > x", "caller", "help > x", "kill -0 1", "[[ a =~ $(touch x) ]]", "[[ a == b(c) ]]", "ls +(a|b)", "ls !(a)", "cd \"$x\" && ls", "for ((i=0;i<1;i++)); do touch x; done",
    ]),
    ("texts that can be read in two ways", &[
        "ls\rtouch x", "ls\0touch x", "ls \u{a0}touch x", "ls\u{2028}touch x", "ls \u{200b}; touch x", "echo ok\u{1b}[24D\u{1b}[K; touch x", "echo \u{202e}x; touch y", "ls\u{85}touch x", "ls\u{c}touch x", "ls\u{8}touch x", "echo 'a", "echo \"a", "echo $(ls", "echo `ls", "echo ${x", "echo $((1", "cat <<EOF\nx", "cat <<EOF\nx\nEOF2",
        "cat <<'E'OF\nx\nEOF\ntouch y", "cat <<\\EOF\nx\nEOF", "cat <<EOF <<EOG\nx\nEOF\ny\nEOG", "cat <<EOF\nx\nEOF \ntouch y", "cat <<\"EOF\"\n$(touch x)\n EOF\ntouch y", "cat << 'A B'\nx\nA B\ntouch y", "echo $\"x\"", "echo $'\\x24(touch x)'", "echo $'a\\'; touch x; echo '", "echo \"$'\"; touch x; echo \"'\"", "echo a\\\nb; touch x",
        "echo \"a\\\nb\"", "l\\\ns", "ls ~root/x", "ls ~+", "ls a=~/x", "ls {a,b", "ls a}", "echo $x{a,b}", "if ls; then", "fi", "ls ||", "&& ls", "| ls", "ls | | ls", ";", "()", "{ }", "{ ls }", "( ls", "ls )", "case x in", "for x in a; do ls", "while ls; done", "done", "ls && ; ls", "!", "! ! ls", "[ a", "[[ a", "[[ -f a",
        "echo `ls \\`touch x\\``", "echo \"`ls \"x\"`\"", "echo $(( (ls) ; touch x ))", "echo $((ls); touch x)", "ls \\", "echo $(ls # x)", "$((touch x))", "echo ${x:?$(touch y)}", "echo ${x?touch}", "echo ${x:-'a'}", "a[1]=x ls", "\u{feff}touch x", "ls \u{e0041}x", "ls\u{ad}", "ls \u{3000} x",
    ]),
    ("file names and values that look like options", &[
        "sort *", "sort $x", "sort \"$x\"", "sed p *", "find *", "find $x", "find \"$x\" -name a", "git diff *", "git log $x", "uniq *", "xxd *", "file *", "tree *", "rg x *", "base64 *", "for f in *; do sort \"$f\"; done", "ls | while read -r f; do sort $f; done", "ls | xargs sort", "ls | xargs -I{} sort {}", "ls | xargs tree",
        "sort $(ls)", "x=-oout; sort $x a", "x='-o out'; sort $x a", "printf \"$x\"", "printf $x", "printf *", "test $x", "[ * ]", "tar -tf *", "date $x", "date \"+$x\" \"$y\"", "hostname $x", "env $x", "timeout $x ls", "nice $x", "command $x ls", "xargs $x ls < a", "awk $x a", "awk \"$x\"", "sed \"$x\" a", "sed -e \"$x\" a",
        "find . -name $x", "find . $x", "git $x", "git -C $x status", "cd $x", "exec $x", "time $x", "yq *", "gzip -l *", "zcat *", "shuf *", "fd *", "ag *", "git show $x", "git branch $x", "git tag $x", "git cat-file -p $x", "sort ?", "sort [a-z]*", "sort {-o,out} a", "ls | xargs -n1 git show", "read $x < a", "cat a > $x", "cat < $x",
    ]),
];

/// Lines that lead into the folder `private` of the home folder, which is written as `@`.
#[rustfmt::skip]
pub(super) const INTO_PRIVATE: &[&str] = &[
    "cat ~/private/secret.txt", "cat $HOME/private/secret.txt", "cat \"${HOME}/private/secret.txt\"", "cat ../home/private/secret.txt",
    "cat @/private/secret.txt", "cat @/./x/../private/secret.txt", "cat odd/link", "head -c 100 odd/link", "grep -r secret ~", "grep -r secret ..",
    "grep -rn secret @", "find ~ -name '*.txt'", "find .. -name secret.txt", "find @", "ls -R ..", "ls -R ~", "du -a ..", "diff -r ../home ../home",
    "rg secret ..", "tree ..", "cat ~/pri*/secret.txt", "cat ~/*/secret.txt", "cat ../*/*/secret.txt", "cat ../home/p?ivate/secret.txt",
    "cat ~/{notes.txt,private/secret.txt}", "cd ~ && cat private/secret.txt", "cd ~/private && cat secret.txt",
    "cd .. && cat home/private/secret.txt", "cd ../home; ls -R", "(cd ~; cat private/*)", "cd sub && cat ../../home/private/secret.txt",
    "x=~/private/secret.txt; cat $x", "x=~; cat $x/private/secret.txt", "d=@/private; cat \"$d/secret.txt\"",
    "for f in ~/private/secret.txt; do cat \"$f\"; done", "for f in ~/private/*; do cat \"$f\"; done", "for d in ~/*; do cat \"$d/secret.txt\"; done",
    "cat < ~/private/secret.txt", "wc -l < @/private/secret.txt", "cat $(echo ~/private/secret.txt)", "echo ~/private/secret.txt | xargs cat",
    "xargs cat <<< ~/private/secret.txt", "echo @/private/secret.txt | while read -r f; do cat \"$f\"; done", "grep -f ~/private/secret.txt a.txt",
    "grep --file=@/private/secret.txt a.txt", "diff a.txt ~/private/secret.txt", "sort -- ~/private/secret.txt", "awk '{print}' ~/private/secret.txt",
    "sed -n p ~/private/secret.txt", "sha256sum ~/private/secret.txt", "base64 ~/private/secret.txt", "jq -R . ~/private/secret.txt",
    "git diff --no-index a.txt ~/private/secret.txt", "git -C ~/private log", "tar -tf ~/private/secret.txt", "xxd @/private/secret.txt",
    "cat /proc/self/cwd/../home/private/secret.txt", "wc --files0-from=@/private/secret.txt", "cat @//private//secret.txt", "cat /proc/self/environ",
    "cat /proc/1/environ", "cd ~ && ls | xargs cat", "cat ~/private/../private/secret.txt", "find ~/private", "ls -la ~/private",
    "stat ~/private/secret.txt", "file ~/private/secret.txt", "cat ./../home/private/secret.txt", "xargs cat <<EOF\n@/private/secret.txt\nEOF",
    "printf 'a\n@/private/secret.txt\n' | xargs cat", "case x in x) cat ~/private/*;; esac", "cat <<< @/private/secret.txt | xargs cat",
    "x=@; y=private; cat $x/$y/secret.txt",
];
