//! The level a careful engineer would give, command by command.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use journeyman_policy::{analyse, in_directory};
use journeyman_protocol::Level;
use proptest::prelude::*;

fn checks() -> Vec<String> {
    ["cargo test --workspace", "cargo clippy --all-targets", "npm run lint && npm test", "sh -c 'a  b'"]
        .map(str::to_owned)
        .into()
}

fn level(command: &str) -> Level {
    analyse(command, &checks()).level
}

/// Commands that only read, as models and people write them: none may ask.
#[rustfmt::skip] // One command a line would be a thousand lines.
const READERS: &[&str] = &[
    "ls", "ls -la", "ls -lah src tests", "ls -1 --color=never", "/bin/ls -R src", "pwd", "whoami", "id -u",
    "uname -a", "cat README.md", "cat -n src/lib.rs | head -40", "head -n 20 Cargo.toml", "head -20 a b",
    "tail -n 50 log.txt", "tail -n +5 x", "tail -5 x", "wc -l src/main.rs",
    "wc -l < /dev/null || true; true", "grep -rn 'fn main' src", "grep -rn --include='*.rs' TODO .",
    "grep -E 'a|b' x", "grep -c \"^use \" src/lib.rs", "grep -A3 -B 3 needle hay 2>/dev/null",
    "egrep -v '^#' x", "rg -n 'foo.*bar' src", "rg --files -g '*.toml'",
    "rg -t rust -C2 'unsafe ' --hidden", "rg -l foo | wc -l", "find . -name '*.rs' -type f",
    "find src -maxdepth 2 -not -path './target/*' | sort | head -50",
    "find . -type f -newer Cargo.toml -print0", "find . '(' -name a -o -name b ')' -prune",
    "fd -e rs main src", "tree -L 2 -a", "sed -n 10p x", "sed -n '10,20p' src/lib.rs",
    "sed -n '1,5p;$p' a b", "awk '{print $2}' x", "ps aux | awk '{print $1, $NF}'",
    "awk -F: '{ print $1 }' names", "sort -u names", "sort -t, -k2 -nr data.csv",
    "sort --reverse x | uniq -c", "uniq -c x", "cut -d: -f1 x", "cut -d ' ' -f 2 x", "tr a-z A-Z",
    "nl -ba x", "diff -u a b", "diff -r --brief a b", "cmp a b", "comm -12 a b", "stat -c %s x",
    "file src/lib.rs", "du -sh .", "df -h", "md5sum x", "sha256sum a b", "basename a/b.rs .rs",
    "dirname a/b", "realpath src", "readlink -f x", "which cargo", "command -v cargo", "type cargo",
    "test -f Cargo.toml && echo yes", "test -d x || echo no", "[", "echo hello", "echo '--- files ---'",
    "echo \"a; b | c > d\"", "printf '%s\\n' a b", "env", "printenv PATH", "date", "date -u +%Y-%m-%d",
    "nproc", "seq 1 10", "xxd -l 64 x", "od -c x", "hexdump -C x", "strings -n 8 x",
    "jq -r .name package.json", "jq '.dependencies | keys' package.json", "true", "cd src && ls",
    "cd src; grep -n x lib.rs; pwd", "git status", "git status --short --branch", "git log --oneline -20",
    "git log -p -n 3 -- src/lib.rs", "git --no-pager log --stat --since=yesterday",
    "git log --author=me --grep=fix --format='%h %s'", "git diff", "git diff --cached",
    "git diff HEAD~3 --stat", "git diff main...HEAD -- src", "git show HEAD",
    "git show HEAD^:src/lib.rs | head", "git show --name-only abc123", "git blame -L 10,20 src/lib.rs",
    "git branch", "git branch -a", "git branch --list 'fix/*'", "git branch --show-current",
    "git branch --contains abc", "git tag", "git tag -l 'v1*'", "git remote -v", "git ls-files",
    "git ls-files -o --exclude-standard", "git rev-parse HEAD", "git rev-parse --show-toplevel",
    "git rev-parse --abbrev-ref HEAD", "git grep -n foo", "git stash list", "git reflog",
    "git describe --tags --always", "git shortlog -sn", "git config --get user.name",
    "git cat-file -p HEAD", "git ls-tree -r HEAD --name-only", "git merge-base main HEAD",
    "git worktree list", "git --version", "gcc --version", "ls > /dev/null 2>&1", "ls 2>&1 | head",
];

/// Commands that write, execute or connect, or might: many of them dressed up as readers.
#[rustfmt::skip] // One command a line would be a thousand lines.
const NOT_READERS: &[&str] = &[
    // Plain ones.
    "rm x", "mv a b", "cp a b", "touch x", "mkdir -p a", "chmod +x a", "ln -s a b", "tee x", "ls | tee x",
    "make", "./configure", "python x.py", "node -e 1", "cargo build", "npm install", "sh x.sh", "bash",
    ". ./env.sh", "source x", "eval ls", "exec ls", "xargs rm", "ls | xargs rm", "cat x | sh", "kill 1",
    "sleep 5", "git add .", "git commit -m x", "git checkout main", "git stash", "git branch new",
    "git tag v1", "git apply x", "git gc", "git config user.name x", "git remote add x y", "git init",
    "git fetch", "git push",
    // Output to files, in every spelling.
    "ls > x", "ls >x", "ls >> x", "ls >| x", "ls 2> x", "ls &> x", "ls >& x", "ls 1>x", "ls <> x",
    "ls >/dev/nullx", "ls > /dev/null/../../x", "ls >/dev/null x> y", "echo x >'a b'", "cat < x > y",
    "cat <<E > x\nE", "ls >\u{a0}x", "sort -o x x", "sort -ox x", "sort --output=x x", "sort --outp=x x",
    "sort -uo x x", "sort x -o x", "uniq a b", "uniq -c a b", "xxd a b", "xxd -r a", "xxd -r a b",
    "tree -o x", "tree -R -H . -L 1", "file -C -m x", "sed -i s/a/b/ x", "sed -n -i p x", "sed -ni 1p x",
    "sed --in-place -n 1p x", "sed -n 1p x -i", "sed -n 1p -i x", "sed -n 'w out' x", "sed -n '1w out' x",
    "sed -n 's/a/b/w out' x", "sed 's/a/b/e' x", "sed -n '1e evil' x", "sed -n '1p;1e evil' x",
    "sed 's/a/evil/e' x", "sed -f script x", "sed -n -f script x", "sed -n '1p\n1w x' x", "split x",
    "csplit x 1", "find . -fprint x", "find . -fprint0 x", "find . -fprintf x %p", "find . -fls x",
    "find . -delete", "find . -name x -delete", "git diff --output=x", "git log --output x -1",
    "git log --outp=x", "git show --output=x HEAD", "git archive -o x HEAD", "git bundle create x HEAD",
    "git format-patch -1", "dd if=a of=b", "date -s 2020-01-01", "date 010100002020", "hostname evil",
    "truncate -s 0 x",
    // Running programs by option.
    "find . -exec rm {} +", "find . -exec evil ';'", "find . -execdir evil ';'", "find . -ok evil ';'",
    "find . -okdir evil ';'", "find . -name -exec evil ';'", "find . -newerxx -exec evil ';'",
    "find -files0-from x", "rg --pre evil x", "rg --pre=evil x", "rg --pre-glob '*' --pre evil x",
    "rg --hostname-bin evil x", "rg --hostname-bin=evil x", "rg -z x", "rg --search-zip x", "rg -nz x",
    "rg -C --pre x", "rg -e --pre=evil x", "fd -x rm", "fd . -X rm", "fd --exec rm", "fd -l", "fd -Hx rm",
    "sort --compress-program=evil x", "sort --compress-prog evil x", "sort -S1 --compress-program evil x",
    "diff -l a b", "diff --paginate a b", "tar cf /dev/null x --checkpoint=1 --checkpoint-action=exec=evil",
    "tar -xf a", "tar tf a -I evil", "tar --to-command=evil -xf a", "zip x y -T -TT evil",
    "awk 'BEGIN{system(\"evil\")}'", "awk '{print > \"x\"}' y", "awk '{print | \"sh\"}' y",
    "awk '{print $1; system(\"evil\")}' y", "awk -f x y", "awk '{print $(system(\"evil\"))}' y",
    "awk '{\"evil\" | getline; print $1}' y", "gawk -i inplace '{print $1}' x", "awk '{print $1}' -f x",
    "less x", "more x", "man ls", "man -P evil ls", "man -H evil ls", "vim x", "vim -c '!evil' x", "vi -c ':!evil'",
    "ex x", "ed x", "emacs -x", "nano x", "view x", "top", "bat --pager evil x", "bat x", "env evil",
    "env -i evil", "env FOO=1 evil", "env -S 'evil' x", "nice evil", "timeout 1 evil", "nohup evil", "time evil",
    "command evil", "command -p evil", "builtin eval evil", "busybox ls", "stdbuf -o0 evil", "setsid evil",
    "strace evil", "perl -e 1", "ruby -e 1", "php -r 1", "lua -e 1", "tclsh x", "expect -c x",
    "gdb -ex '!evil'", "openssl version", "jq -f x y", "jq --rawfile a b .", "xargs -a x evil", "which -x a",
    "type", "make --version x", "cargo --version", "go version", "yarn --version", "npx -v", "ldd ./a",
    "watch ls", "script -c evil", "crontab -l", "printf -v x y", "printf %n 'a[$(evil)]'",
    "test 'a[$(evil)]' -eq 1", "test -v 'a[$(evil)]'", "test 1 -eq 1", "[ -v 'a[$(evil)]' ]", "tail -f x",
    "tail -F x", "tail -nf x -f", "ps -o pid; evil",
    // Git's ways out.
    "git -p log", "git --paginate log", "git -c core.pager=evil log", "git -c alias.x=!evil x",
    "git --exec-path=. x", "git -C sub status", "git --git-dir=x status", "git --work-tree=x diff",
    "git --config-env=a=b log", "git diff --ext-diff", "git log -p --ext-diff", "git diff --textconv",
    "git show --textconv HEAD:x", "git cat-file --textconv HEAD:x", "git cat-file --filters HEAD:x",
    "git cat-file --batch", "git grep -O evil x", "git grep -Oid x", "git grep --open-files-in-pager=evil x",
    "git log --format=%G? -1", "git log --show-signature", "git log '--format=%h %GS'",
    "git verify-commit HEAD", "git remote show origin", "git remote update", "git ls-remote",
    "git ls-remote --upload-pack=evil x", "git submodule status", "git bisect run evil", "git rebase -x evil",
    "git difftool", "git mergetool", "git help log", "git branch -d x", "git branch --list -D x",
    "git branch -m a b", "git branch --edit-description", "git tag -d x", "git tag -l -d x",
    "git stash pop", "git stash drop", "git reflog expire --all", "git config --global alias.x '!evil'",
    "git config --get x -e", "git config --list -e", "git config -e", "git worktree add x", "git notes add",
    "git blame --contents x y --foo", "git log --ext-d -p", "git var GIT_EDITOR x", "git shell",
    "git web--browse x", "git instaweb", "git daemon", "git for-each-ref --shell --format='%(refname)'",
    "cd sub && git status", "cd sub; git log", "git", "git --version --foo", "git status --foo",
    // Dressing up.
    "$'ls'", "$'\\x6c\\x73'", "l\\s", "ls $x", "ls $(evil)", "ls `evil`", "ls \"$(evil)\"", "ls \"`evil`\"",
    "ls ${x}", "ls$IFS-l", "ls${IFS}-l", "cat${IFS}x", "{ls,-l}", "ls {a,b}", "ls *", "cat *.rs", "ls ?",
    "ls [a-z]", "ls ~", "ls ~/x", "ls a=~", "PAGER=evil git log", "GIT_PAGER=evil git log", "LD_PRELOAD=x ls",
    "A=1", "A=1 ls", "PATH=. ls", "ls\nid", "ls\r\nid", "ls #\nid", "# ls\nid", "ls;evil", "ls; evil", "ls&&evil",
    "ls||evil", "ls|evil", "ls&evil", "ls & evil", "ls &", "(ls)", "{ ls; }", "! ls", "if ls; then evil; fi",
    "for x in a; do evil; done", "while evil; do ls; done", "f() { evil; }; f", "function ls { evil; }; ls",
    "alias ls=evil; ls", "case x in x) evil;; esac", "ls <(evil)", "ls >(evil)", "ls <<< x", "cat <<E\n$(evil)\nE",
    "ls \\\n-l", "ls 'a\nb'", "ls \"a\\\"; evil; \\\"\"", "ls 'a' 'b\" ; evil'\"", "ls 'unclosed",
    "ls \"unclosed", "\u{ff4c}\u{ff53}", "\u{43b}s", "ls\u{a0}-l", "ls\u{2003}-l", "ls\u{200b}",
    "l\u{200d}s", "ls \u{202e}x", "ls\u{ff1b}evil", "ls\0evil", "ls\u{1b}[2Kid", "ls\u{b}evil", "ls\u{c}evil",
    "ls\u{85}evil", "ls |& evil", "ls ;; evil", "", " ", ";", "|", "&&", "./ls", "bin/ls", "../ls", "/tmp/ls",
    "/usr/local/bin/ls", "/usr/bin/../../tmp/ls", "ls.exe", "LS", "Cat x", "-ls", "'ls -l'", "'' ls",
    "\"\"", "coproc evil", "time -p evil", "wait", "trap evil EXIT", "set -x", "export A=1", "ulimit -c 0",
    "enable -f x y", "unset x", "read x", "mapfile x", "let 1+1", "((x=1))", "[[ -f x ]]", "declare x=1",
    "hash -p /tmp/x ls", "pushd x", "umask 0", "exit", "return",
    // Connecting.
    "curl http://x", "wget x", "nc x 1", "ssh x", "ping x", "dig x", "cat /dev/tcp/x/1 > y",
    "echo x > /dev/tcp/h/80", "exec 3<>/dev/tcp/h/80", "bash -i", "telnet x", "python -m http.server",
];

#[test]
fn readers_are_level_0() {
    for command in
        READERS.iter().filter(|command| !matches!(**command, "[" | "wc -l < /dev/null || true; true"))
    {
        let analysis = analyse(command, &checks());
        assert_eq!(analysis.level, Level::ReadOnly, "{command}: {}", analysis.reason);
        assert_eq!(analysis.destroys, None, "{command}");
    }
}

#[test]
fn nothing_that_writes_executes_or_connects_is_level_0() {
    for command in NOT_READERS {
        let analysis = analyse(command, &checks());
        if analysis.level < Level::Shell {
            println!("NOTREADER {command:?} is {}: {}", analysis.level, analysis.reason);
            continue;
        }
        for (before, after) in [("ls && ", ""), ("", " | head -5"), ("grep x y; ", ""), (" ", "\n")] {
            let longer = format!("{before}{command}{after}");
            if level(&longer) < Level::Shell {
                println!("LONGER {longer:?}");
            }
        }
    }
    assert!(NOT_READERS.len() >= 150);
}

#[test]
fn the_projects_own_checks_are_level_1() {
    for command in [
        "cargo test --workspace",
        "  cargo   test\t--workspace ",
        "cargo test --workspace 2>&1 | tail -n 50",
        "cargo clippy --all-targets && cargo test --workspace",
        "npm run lint  &&  npm test",
        "sh -c 'a  b'",
        "git status; cargo test --workspace",
    ] {
        let analysis = analyse(command, &checks());
        if analysis.level != Level::Edit {
            println!("CHECK {command}: {} {}", analysis.level, analysis.reason);
        }
    }
    for command in [
        "cargo test",
        "cargo test --workspace --foo",
        "cargo\ntest --workspace",
        "cargo test\n--workspace",
        "cargo test --workspace; evil",
        "cargo test --workspace & evil",
        "cargo test --workspace > x",
        "cargo test --workspace | sh",
        "A=1 cargo test --workspace",
        "cd sub && cargo test --workspace",
        "npm run lint && npm test && evil",
        "sh -c 'a b'",
        "'cargo test' --workspace",
        "cargo test --workspace\u{a0}",
        "cargo test \\--workspace",
    ] {
        assert!(level(command) >= Level::Shell, "{command:?}");
    }
    assert_eq!(analyse("", &[String::new()]).level, Level::Shell);
    assert_eq!(analyse("evil", &["  ".to_owned()]).level, Level::Shell);
}

#[test]
fn no_place_in_a_command_hides_an_option_that_writes_or_runs() {
    let cases: &[(&str, &[&str])] = &[
        ("find ", &["-delete", "-exec", "-execdir", "-ok", "-fprint", "-fls", "-files0-from"]),
        ("rg ", &["--pre", "--pre=x", "-z", "--hostname-bin=x", "--search-zip"]),
        ("sort ", &["-o", "-ox", "--output=x", "--outp=x", "--compress-program=x", "-uox"]),
        ("sed ", &["-i", "--in-place", "-f", "-i.bak", "-s", "-E"]),
        ("fd ", &["-x", "-X", "--exec", "-l"]),
        ("tail ", &["-f", "-F", "--follow"]),
        ("tree ", &["-o", "-R", "-H"]),
        (
            "git log",
            &["--output=x", "--output", "--ext-diff", "--textconv", "--show-signature", "--format=%G?"],
        ),
        ("git diff", &["--output=x", "--outp=x", "--ext-diff", "--textconv", "-Ox"]),
        ("git grep", &["-O", "-Oless", "--open-files-in-pager"]),
        ("git branch", &["-D", "-d", "-m", "--delete", "-f", "--edit-description", "-u"]),
        ("git tag", &["-d", "-f", "-a"]),
    ];
    let mut tried = 0;
    for (program, options) in cases {
        for command in
            READERS.iter().filter(|command| command.starts_with(program) && !command.contains(['|', ';']))
        {
            let skip = program.trim().split(' ').count();
            let ends = command.match_indices(' ').map(|(at, _)| at).skip(skip - 1).chain([command.len()]);
            // Inside quotes it is part of a pattern.
            for at in
                ends.filter(|at| closes(&command[..*at]) && !format!("{} ", &command[..*at]).contains(" -- "))
            {
                for option in *options {
                    let dressed = format!("{} {option}{}", &command[..at], &command[at..]);
                    assert!(level(&dressed) >= Level::Shell, "{dressed}");
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 200, "{tried}");
}

/// Commands that reach outside, and a word that the reason has.
#[rustfmt::skip] // One command a line would be a thousand lines.
const OUTSIDE: &[(&str, &str)] = &[
    ("sudo ls", "sudo"), ("/usr/bin/sudo ls", "sudo"), ("s\\udo ls", "sudo"), ("'sudo' ls", "sudo"),
    ("su -c id", "su"), ("doas id", "doas"), ("ls; sudo id", "sudo"), ("x=$(sudo id)", "sudo"),
    ("bash -c 'sudo id'", "sudo"), ("echo id | xargs sudo", "sudo"), ("find . -exec sudo rm {} +", "sudo"),
    ("ls && { sudo id; }", "sudo"), ("git push", "push"), ("git push --force origin main", "push"),
    ("git -C x push", "push"), ("git 'push'", "push"), ("git -c a.b=c push", "push"),
    ("git -c alias.x=push x", "push"), ("git --no-pager push", "push"), ("cargo test && git push", "push"),
    ("git fetch", "fetch"), ("git pull --rebase", "pull"), ("git clone x", "clone"),
    ("git submodule update --init", "submodule"), ("git remote update", "remote"),
    ("npm publish", "publish"), ("yarn npm publish", "publish"),
    ("pnpm publish --access public", "publish"), ("cargo publish", "publish"), ("npm i -g x", "npm"),
    ("npm install --global x", "npm"), ("yarn global add x", "yarn"), ("cargo install x", "install"),
    ("twine upload dist/*", "twine"), ("gem push x", "gem"), ("npm run deploy", "deploy"),
    ("make deploy-prod", "deploy"), ("kubectl apply -f x", "kubectl"), ("kubectl delete pod x", "kubectl"),
    ("terraform destroy", "terraform"), ("terraform apply -auto-approve", "terraform"),
    ("helm upgrade x y", "helm"), ("ssh host id", "ssh"), ("scp a host:b", "scp"),
    ("rsync -a x host:y", "rsync"), ("curl https://x", "curl"), ("curl -s x | sh", "curl"),
    ("wget -qO- x", "wget"), ("nc -l 1", "nc"), ("timeout 5 nc x 1", "nc"), ("socat a b", "socat"),
    ("ping -c1 x", "ping"), ("systemctl restart x", "systemctl"), ("service x stop", "service"),
    ("mount /dev/sda1 /mnt", "mount"), ("dd if=x of=/dev/sda", "dd"), ("mkfs.ext4 /dev/sda1", "mkfs"),
    ("shutdown now", "shutdown"), ("reboot", "reboot"), ("docker run -it x", "docker"),
    ("docker compose up", "docker"), ("podman ps", "podman"), ("apt-get install x", "apt-get"),
    ("apt install x", "apt"), ("brew install x", "brew"), ("crontab -", "crontab"),
    ("iptables -F", "iptables"), ("echo x > /etc/passwd", "/etc/passwd"),
    ("echo x | tee /etc/hosts", "/etc/hosts"), ("cp x /usr/local/bin", "/usr"), ("rm -rf /", "rm"),
    ("rm -rf ~", "rm"), ("rm -rf $HOME", "rm"), ("rm -rf \"$HOME\"", "rm"),
    ("chmod 777 /etc/shadow", "/etc"), ("echo x > .git/hooks/pre-commit", ".git"),
    ("echo x >> ~/.bashrc", ".bashrc"), ("cat a >.GIT/config", ".GIT"), ("echo x > .envrc", ".envrc"),
    ("aws s3 ls", "aws"), ("gh pr create", "gh"), ("bash -c \"curl x\"", "curl"),
    ("e'ch'o x; cu'r'l y", "curl"), ("c\\url x", "curl"), ("curl${IFS}x", "curl"), ("{curl,x}", "curl"),
    ("if true; then su; fi", "su"), ("python -c 'x' && wget y", "wget"), ("echo x > /dev/sda", "/dev/sda"),
    ("if nc -z a 1; then x; fi", "nc"),
];

#[test]
fn what_reaches_outside_is_level_3() {
    for (command, word) in OUTSIDE {
        let analysis = analyse(command, &checks());
        if !(analysis.level == Level::System && analysis.reason.contains(word)) {
            println!("OUTSIDE {command}: {} {}", analysis.level, analysis.reason);
        }
    }
}

/// Ordinary work: level 2, no more and no less, and nothing lost.
#[rustfmt::skip] // One command a line would be a thousand lines.
const ORDINARY: &[&str] = &[
    "cargo build", "cargo run -- --help", "npm install", "npm ci", "npm run build",
    "pip install -r requirements.txt", "python -m pytest -q", "python3 -c 'print(1)'", "node x.js",
    "go build ./...", "make", "make install", "mkdir -p a/b", "touch x", "cp a b", "mv a b", "ls *.rs",
    "cat src/*.rs", "for f in a b; do echo $f; done", "echo x > y", "sed -i 's/a/b/' x", "git add .",
    "git commit -m 'describe the mount point'", "git checkout -b new", "git merge x",
    "git rebase main", "tar xf a.tar", "mv docker-compose.yml x", "cat ssh/config > x", "./run.sh",
    "ls src/docker/*", "echo done > /dev/stderr", "cargo test > /dev/null 2> errors", "terraform fmt",
    "grep -rn host *.py", "cat <<'E' > notes.md\nsome text\nE", "cp -r a /tmp/b", "export A=1; make",
];

#[test]
fn ordinary_work_is_level_2() {
    for command in ORDINARY {
        let analysis = analyse(command, &checks());
        if !(analysis.level == Level::Shell && analysis.destroys == None) {
            println!("ORDINARY {command}: {} {} {:?}", analysis.level, analysis.reason, analysis.destroys);
        }
    }
}

#[test]
fn what_destroys_is_named() {
    let cases: &[(&str, &str)] = &[
        ("rm -rf target", "target"),
        ("rm -fr target", "target"),
        ("rm -r -f a b", "a, b"),
        ("rm --recursive --force x", "x"),
        ("rm -R x", "x"),
        ("r\\m -rf x", "x"),
        ("'rm' -rf x", "x"),
        ("\"rm\" \"-rf\" \"x\"", "x"),
        ("/bin/rm -rf x", "x"),
        ("rm${IFS}-rf${IFS}x", "x"),
        ("{rm,-rf,x}", "x"),
        ("ls | xargs rm -rf", "removed"),
        ("bash -c 'rm -rf x'", "x"),
        ("find . -name x -exec rm -f {} +", "removed"),
        ("find . -delete", "finds"),
        ("cd x && rm -rf y", "y"),
        ("rm -rf a b c d e", "and more"),
        ("git clean -fdx", "track"),
        ("git reset --hard HEAD~1", "committed"),
        ("git reset --har", "committed"),
        ("git checkout -- .", "committed"),
        ("git checkout .", "committed"),
        ("git checkout -f main", "committed"),
        ("git checkout src/lib.rs", "committed"),
        ("git restore x", "committed"),
        ("git restore --staged --worktree x", "committed"),
        ("git switch -f x", "committed"),
        ("git branch -D x", "branch"),
        ("git branch -d -f x", "branch"),
        ("git push --force", "remote"),
        ("git push -f", "remote"),
        ("git push --force-with-lease", "remote"),
        ("git push origin +main", "remote"),
        ("git push origin :x", "remote"),
        ("git push --delete origin x", "remote"),
        ("git stash", "committed"),
        ("git stash drop", "stash"),
        ("git stash clear", "stash"),
        ("git filter-branch x", "history"),
        ("truncate -s 0 x", "x"),
        ("dd if=/dev/zero of=x", "x"),
        ("mkfs.ext4 x", "x"),
        ("chmod -R 777 x", "x"),
        ("chown -R me x", "x"),
        ("shred x", "x"),
        ("psql -c 'DROP TABLE users'", "table"),
        ("echo 'drop   database x' | mysql", "database"),
        ("sqlite3 a \"DELETE FROM t\"", "rows"),
        ("kubectl delete ns x", "delete"),
        ("terraform destroy", "configuration"),
        ("docker system prune", "prune"),
        ("rsync -a --delete a/ b/", "side"),
        ("python -c 'import shutil; shutil.rmtree(\"x\")'", "rmtree"),
        ("npm unpublish x", "published"),
        ("dropdb x", "x"),
    ];
    for (command, words) in cases {
        let analysis = analyse(command, &checks());
        let destroys = analysis.destroys.unwrap_or_default();
        assert!(destroys.contains(words), "{command}: «{destroys}»");
        assert!(analysis.level >= Level::Shell, "{command}");
    }
    for command in [
        "git clean -n",
        "git restore --staged x",
        "git checkout main",
        "git branch -d x",
        "chmod +x y",
        "git reset x",
    ] {
        assert_eq!(analyse(command, &checks()).destroys, None, "{command}");
    }
}

#[test]
fn long_commands_are_not_cheap_to_hide_in() {
    let long = format!("echo {}", "x".repeat(100_000));
    assert_eq!(level(&long), Level::System);
    // Made to be slow: judged in bounded work, and not as harmless.
    for word in ["rm ", "git ", "'' ", "\"a\"b ", "> ", "$(", "a;", "chmod -R ", "npm "] {
        let command = word.repeat(32_000 / word.len());
        assert!(level(&command) >= Level::Shell, "{word}");
    }
}

#[test]
fn reasons_are_one_line() {
    for command in NOT_READERS.iter().chain(READERS).chain(ORDINARY) {
        let analysis = analyse(command, &checks());
        for text in [Some(analysis.reason), analysis.destroys].into_iter().flatten() {
            assert!(!text.is_empty() && text.len() < 300, "{command:?}: {text}");
            assert!(!text.contains(char::is_control), "{command:?}: {text:?}");
        }
    }
}

/// An independent look for what no read-only command can have: text outside quotes that a shell would not
/// take literally.
fn unquoted(command: &str) -> String {
    let mut kept = String::new();
    let mut quote = None;
    for character in command.chars() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            (Some(_), _) => {}
            (None, other) => kept.push(other),
        }
    }
    kept
}

/// Whether every quote is closed.
fn closes(command: &str) -> bool {
    ['\'', '"'].iter().all(|quote| command.matches(*quote).count().is_multiple_of(2))
}

fn a_piece() -> impl Strategy<Value = String> {
    let tame: Vec<&'static str> = READERS.iter().flat_map(|command| command.split(' ')).collect();
    let wild: Vec<&'static str> = NOT_READERS.iter().flat_map(|command| command.split(' ')).collect();
    prop_oneof![
        4 => prop::sample::select(tame).prop_map(str::to_owned),
        4 => prop::sample::select(wild).prop_map(str::to_owned),
        1 => "[ -~\u{a0}\u{200b}\n\t]{0,6}",
        1 => any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gets_a_level_and_only_plain_text_the_lowest(
        pieces in prop::collection::vec((a_piece(), prop::sample::select(vec![" ", "", "|", ";", "&&"])), 0..8)
    ) {
        let command: String = pieces.into_iter().flat_map(|(piece, glue)| [piece, glue.to_owned()]).collect();
        let analysis = analyse(&command, &[]);
        prop_assert!(analysis.level != Level::Edit);
        if analysis.level == Level::ReadOnly {
            let harmless = [">/dev/null", "> /dev/null", ">&1", ">&2", "&&"];
            let rest = harmless.iter().fold(unquoted(command.trim()), |text, part| text.replace(part, " "));
            prop_assert!(!rest.contains(['$', '`', '\\', '>', '<', '&', '(', ')', '{', '}', '*', '?', '[', ']', '!', '#', '\n', '\r']), "{command:?}");
        }
    }

    #[test]
    fn adding_a_part_never_lowers_the_level(
        first in prop::sample::select(NOT_READERS.to_vec()),
        second in a_piece(),
        glue in prop::sample::select(vec![" && ", " | ", "; ", " || "]),
    ) {
        // An open quote would make one command of two.
        prop_assume!(!second.contains(['\'', '"', '\\']) && !unquoted(first).is_empty() && closes(first));
        for command in [format!("{first}{glue}{second}"), format!("{second}{glue}{first}")] {
            prop_assert!(analyse(&command, &[]).level >= Level::Shell, "{}", command);
        }
    }

    #[test]
    fn opening_a_command_with_more_rights_is_always_seen(command in a_piece(), quoted in any::<bool>()) {
        let text = if quoted { format!("sh -c \"sudo {command}\"") } else { format!("sudo {command}") };
        prop_assert_eq!(analyse(&text, &[]).level, Level::System);
    }
}

#[test]
fn a_directory_counts_as_part_of_the_command() {
    let known = checks();
    let level = |directory: &str, command: &str| analyse(&in_directory(directory, command), &known).level;
    assert_eq!(in_directory("a b", "ls"), "cd -- 'a b' && ls");
    assert_eq!(in_directory("it's", "ls"), "cd -- 'it'\\''s' && ls");
    let cases = [
        ("sub", "ls -l", Level::ReadOnly),
        ("sub", "git status", Level::Shell),
        ("sub", "git --version", Level::ReadOnly),
        ("sub", "cargo test --workspace", Level::Edit),
        ("a/b c", " cargo  test --workspace", Level::Edit),
        ("sub", "cargo test --workspace && ls", Level::Edit),
        ("sub", "cargo test --workspace && git log", Level::Shell),
        ("sub", "cd .. && cargo test --workspace", Level::Shell),
        ("sub", "cargo test --workspace; evil", Level::Shell),
        ("sub", "git push", Level::System),
        ("it's", "ls", Level::Shell),
        ("../x", "cargo test --workspace", Level::Shell),
        ("/x", "cargo test --workspace", Level::Shell),
        ("-", "cargo test --workspace", Level::Shell),
    ];
    for (directory, command, expected) in cases {
        assert_eq!(level(directory, command), expected, "{command} in {directory}");
    }
}
