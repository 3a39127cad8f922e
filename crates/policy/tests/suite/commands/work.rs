//! Harmless commands of everyday work, written down before anybody looked at what is known of them:
//! what they ask in the modes that people work in.

use journeyman_policy::{Call, Policy};
use journeyman_protocol::{Decision, Effects, Enforcement, Mode, SandboxNeeds, SandboxTier};

/// One half of them, which what is known was made for.
#[rustfmt::skip] // One command a line would be a thousand lines.
pub(crate) const WORK: &[&str] = &[
    "touch new.txt", "mkdir -p build", "mkdir docs", "cp a.txt b.txt", "cp -a src/old.rs src/new.rs",
    "mv src/util.py src/helpers.py", "ln -s a.txt link.txt", "echo \"line\" >> notes.md",
    "printf '%s\\n' one two three", "cat a.txt b.txt | sort | uniq -c | sort -rn", "sed -i.bak 's/foo/bar/' a.txt",
    "sed -e 's/a/b/' a.txt > b.txt", "awk '{print $1}' a.txt", "tee out.txt < a.txt", "echo hi | tee -a notes.txt",
    "sort -u a.txt > b.txt", "head -n 5 a.txt", "wc -l src/*.rs", "grep -c x a.txt",
    "find . -name '*.rs' -newer a.txt", "find . -name '*.tmp' -print", "ls -R src | head", "stat a.txt", "du -sh .",
    "free -m", "uname -a", "whoami", "date", "pwd", "lscpu", "ps -ef | grep node", "which python3", "command -v node",
    "echo $PATH", "test -f a.txt && echo yes", "if [ -f a.txt ]; then cat a.txt; fi",
    "for f in src/*.rs; do head -1 $f; done", "true", "seq 1 10", "echo $((1+2))", "dirname src/main.rs",
    "readlink link.txt", "diff -u a.txt b.txt", "comm -12 a.txt b.txt", "tr a-z A-Z < a.txt", "join a.txt b.txt",
    "nl a.txt", "xxd a.bin | head", "strings a.bin", "sha256sum a.txt > a.txt.sha256", "gzip -l a.gz",
    "tar -tzf a.tgz", "zipinfo a.zip", "jq '.version' package.json", "yq '.version' a.yml", "more a.txt",
    "bat -p --line-range 1:10 a.txt", "rev a.txt", "shuf -n 1 a.txt", "truncate -s 0 log.txt", "chmod 644 a.txt",
    "git status --short", "git diff --stat HEAD~1", "git log --oneline -10", "git show HEAD", "git blame a.txt",
    "git branch -a", "git tag", "git add -A", "git add .", "git stash list", "git rev-parse HEAD", "git ls-files",
    "git check-ignore -v build", "git shortlog -sn", "git config --list", "git merge-base HEAD main",
    "git mv a.txt b.txt", "git rm a.txt", "git reset", "git apply --check a.patch", "git grep TODO", "git --version",
    "git fsck", "git archive --list", "patch -p1 < my.patch", "cargo --version", "cargo tree",
    "cargo metadata --no-deps --format-version 1", "cargo pkgid", "cargo search serde", "cargo fmt",
    "rustc --version", "rustup show", "rustfmt src/main.rs", "npm ls", "npm --version", "npm outdated",
    "npm pkg get version", "node --version", "node --check a.js", "yarn list", "pnpm list --depth 0", "tsc --version",
    "prettier --version", "python3 -V", "pip list", "pip show requests", "pip check", "uv pip list", "ruff check .",
    "ruff format --check .", "mypy --version", "flake8 a.py", "go version", "go env GOPATH", "go list -m all",
    "go mod why x", "gofmt -l .", "go fmt ./...", "make --version", "cmake --version", "gcc -v", "ld --version",
    "javac -version", "mvn --version", "ruby -v", "gem list", "bundle --version", "php -v", "composer show",
    "dotnet --version", "dotnet --list-sdks", "zig version", "mix --version", "stack --version", "lua -v",
    "bash --version", "zsh -n x.sh", "shfmt -d x.sh", "hadolint Dockerfile", "markdownlint README.md", "docker ps",
    "docker compose config", "kubectl version --client", "terraform fmt -check", "helm version", "gcloud --version",
    "curl --version", "curl -s http://localhost:3000/health", "ssh -V", "mount", "ip a", "ifconfig", "netstat -tln",
    "dmesg --version", "nslookup -version", "echo x >/dev/null", "sqlite3 --version", "mysql --version",
    "ffmpeg -version", "protoc --version", "rg --version", "fd main src", "cloc .", "tput cols", "locale", "umask",
    "alias", "cd src && ls", "pushd src && ls && popd", "FOO=1 ls", "timeout 5 ls", "xargs -n1 echo < a.txt",
    "find . -name '*.rs' -exec grep -l foo {} +", "ls | xargs -I{} echo {}", "unix2dos a.txt",
    "iconv -f latin1 -t utf-8 a.txt > b.txt", "install -m 644 a.txt b.txt", "mktemp", "cp a.txt /tmp/a.txt",
];

/// The other half, which was looked at when all was done.
#[rustfmt::skip] // One command a line would be a thousand lines.
pub(crate) const HELD_OUT: &[&str] = &[
    "touch src/a.rs src/b.rs", "mkdir -p src/handlers/v2", "rmdir empty", "cp -r templates/base templates/new",
    "mv a.txt c.txt", "mv old/*.md docs/", "echo x > new.txt", "printf 'a\\nb\\n' > list.txt", "cat a.txt > copy.txt",
    "sed -i 's/foo/bar/g' src/main.rs", "sed -n '1,20p' a.txt", "perl -v",
    "awk -F, '{s+=$2} END {print s}' data.csv > sum.txt", "echo hi | tee notes.txt", "sort a.txt -o a.txt",
    "uniq a.txt b.txt", "tail -n 20 log.txt", "grep -rn TODO src", "rg -n 'fn main' --type rust",
    "find src -type f -name '*.py' | wc -l", "ls -la", "tree -L 2", "file a.txt", "df -h .", "uptime", "hostname",
    "id", "date +%Y-%m-%d", "nproc", "ps aux", "pgrep -l node", "type cargo", "env | grep PATH", "printenv HOME",
    "[ -d src ] && ls src", "for f in *.md; do wc -l \"$f\"; done", "while read -r l; do echo \"$l\"; done < a.txt",
    "sleep 1", "expr 1 + 2", "basename src/main.rs .rs", "realpath src", "cmp a.txt b.txt",
    "diff -u a.txt b.txt > change.patch", "cut -d, -f1 data.csv", "paste a.txt b.txt", "fold -w 80 a.txt",
    "od -c a.txt | head", "hexdump -C a.bin", "md5sum a.txt", "base64 a.txt", "tar tf a.tar", "unzip -l a.zip",
    "jq . package.json", "jq '.a = 1' a.json > b.json", "less a.txt", "bat a.txt", "column -t a.txt", "tac a.txt",
    "split -l 100 a.txt part_", "chmod +x run.sh", "git status", "git diff", "git diff --cached",
    "git log -p -- src/main.rs", "git show HEAD:a.txt", "git branch", "git branch --show-current", "git remote -v",
    "git add src/main.rs", "git stash", "git stash show -p", "git rev-parse --show-toplevel",
    "git ls-files -o --exclude-standard", "git describe --tags", "git config --get user.name", "git reflog",
    "git cat-file -p HEAD", "git rm --cached a.txt", "git restore --staged a.txt", "git reset HEAD a.txt",
    "git apply a.patch", "git version", "git worktree list", "git count-objects -v", "git diff > my.patch",
    "patch -p1 --dry-run < my.patch", "cargo -V", "cargo tree -i serde", "cargo locate-project", "cargo --list",
    "cargo fmt --check", "cargo help build", "rustc --print sysroot", "rustup toolchain list",
    "rustfmt --check src/main.rs", "npm ls --depth=0", "npm view react version", "npm config list", "npm prefix",
    "node -v", "yarn --version", "pnpm ls", "npx --version", "prettier --check .", "python3 --version",
    "python3 -m py_compile a.py", "pip freeze", "pip --version", "uv --version", "uv tree", "ruff --version",
    "black --check .", "pytest --version", "pyflakes a.py", "go env", "go list ./...", "go mod graph",
    "go doc fmt.Println", "gofmt -w a.go", "make -n", "make -n test", "gcc --version", "clang --version",
    "java -version", "mvn -v", "gradle --version", "ruby -c a.rb", "bundle list", "bundle exec rubocop --version",
    "php -l a.php", "composer --version", "dotnet --info", "swift --version", "elixir --version", "ghc --version",
    "perl -c a.pl", "bash -n x", "sh -n run.sh", "shellcheck x", "shfmt -w x.sh", "yamllint a.yml",
    "docker --version", "docker images", "docker version", "terraform version", "terraform validate", "aws --version",
    "gh --version", "curl -V", "wget --version", "openssl version", "ip addr", "ip route", "ss -ltn", "lsof -i :3000",
    "getent hosts localhost", "echo x 2>/dev/full", "ls missing 2>/dev/null || true", "psql --version",
    "redis-cli --version", "convert -version", "jq --version", "fd -e rs", "tokei", "scc", "stty -a", "ulimit -a",
    "history", "set -euo pipefail; ls", "cd src && touch b.rs", "export FOO=1; echo $FOO", "time ls", "nice ls",
    "find . -name '*.rs' | xargs grep -l foo", "find . -name '*.log' -exec wc -l {} \\;", "dos2unix a.txt",
    "expand -t 4 a.txt > b.txt", "cat a.txt | tee b.txt | wc -l", "install -d build/out", "mktemp -d",
    "echo x > /tmp/x.txt",
];

/// Of so many harmless commands, so many may ask in `edit`, and so many in `auto`.
const OF: usize = 140;
const MAY_ASK: [(Mode, usize); 2] = [(Mode::Edit, 5), (Mode::Auto, 2)];

fn asking(mode: Mode, commands: &[&str]) -> Vec<String> {
    let sandbox = Enforcement::from_needs(SandboxTier::Namespaces, SandboxNeeds::ALL);
    let judged = commands.iter().map(|command| {
        let effects = Effects { command: Some((*command).to_owned()), ..Effects::default() };
        let call =
            Call { tool: "run_command", agent: None, mode, effects: &effects, sandbox: Some(&sandbox) };
        (command, Policy::default().judge(&call))
    });
    let asked = judged.filter(|(_, verdict)| verdict.decision > Decision::Allow);
    asked.map(|(command, verdict)| format!("{command:?}: {}", verdict.reason)).collect()
}

#[test]
fn few_harmless_commands_of_everyday_work_ask() {
    for (mode, may_ask) in MAY_ASK {
        for (name, commands) in [("known", WORK), ("held-out", HELD_OUT)] {
            let asking = asking(mode, commands);
            println!(
                "{mode}: {} of {} {name} commands ask:\n{}",
                asking.len(),
                commands.len(),
                asking.join("\n")
            );
            assert!(asking.len() * OF <= commands.len() * may_ask, "{mode}, {name}:\n{}", asking.join("\n"));
        }
    }
}
