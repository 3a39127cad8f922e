//! The build and test tools that `builds` accepts, with their options.

/// The kind of the words after a tool's options.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BuildOperands {
    /// Names of packages, tests and files of the project, and what follows `--`.
    Names,
    /// Names of tasks, each of which has to build, check or test by its name.
    Tasks,
    /// Names of tasks, at least one: a call without a task does something else.
    OneOrMoreTasks,
    /// The name of one such task, and its arguments.
    Script,
    /// The name of one such task, first; options after the name are arguments of the task.
    ScriptFirst,
    /// Arguments of the task that the subcommand names.
    PassedOn,
}

/// A way to call a tool that builds, checks or tests.
pub(super) struct BuildTool {
    pub(super) names: &'static [&'static str],
    /// The subcommand.
    pub(super) words: &'static [&'static str],
    /// Short options without a value.
    pub(super) flags: &'static str,
    /// Short options with a value.
    pub(super) valued: &'static str,
    /// Long options, in the format of the table of readers.
    pub(super) long: &'static [&'static str],
    /// True if long options have one dash, and `long` lists them with it.
    pub(super) single_dash: bool,
    pub(super) operands: BuildOperands,
}

const fn tool(names: &'static [&'static str], words: &'static [&'static str]) -> BuildTool {
    BuildTool {
        names,
        words,
        flags: "",
        valued: "",
        long: &[],
        single_dash: false,
        operands: BuildOperands::Names,
    }
}

impl BuildTool {
    const fn options(
        mut self,
        flags: &'static str,
        valued: &'static str,
        long: &'static [&'static str],
    ) -> Self {
        self.flags = flags;
        self.valued = valued;
        self.long = long;
        self
    }

    const fn single_dash(mut self, long: &'static [&'static str]) -> Self {
        self.single_dash = true;
        self.long = long;
        self
    }

    const fn of(mut self, operands: BuildOperands) -> Self {
        self.operands = operands;
        self
    }

    const fn cargo(self) -> Self {
        self.options("hjNqrv", "Fp", CARGO_OPTIONS)
    }
}

/// A tool that runs another tool by its name, such as `npx`.
pub(super) struct Runner {
    pub(super) names: &'static [&'static str],
    /// The words before the name.
    pub(super) words: &'static [&'static str],
}

const fn runner(names: &'static [&'static str], words: &'static [&'static str]) -> Runner {
    Runner { names, words }
}

pub(super) const RUNNERS: &[Runner] = &[
    runner(&["bundle", "pnpm", "yarn"], &["exec"]),
    runner(&["bunx", "npx"], &[]),
    runner(&["npx"], &["--no-install"]),
    runner(&["hatch", "pdm", "pipenv", "poetry", "rye", "uv"], &["run"]),
    runner(&["python", "python3"], &["-m"]),
];

/// Directories of a project in which package managers put programs.
pub(super) const TOOL_DIRECTORIES: &[&str] = &[
    "./.venv/bin/",
    "./node_modules/.bin/",
    "./vendor/bin/",
    ".venv/bin/",
    "node_modules/.bin/",
    "vendor/bin/",
];

/// First words of names of tasks that build, check or test.
pub(super) const TASKS: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "assemble",
    "bench",
    "benchmark",
    "build",
    "bundle",
    "check",
    "ci",
    "classes",
    "clippy",
    "compile",
    "cov",
    "coverage",
    "detekt",
    "doc",
    "docs",
    "e2e",
    "eslint",
    "fmt",
    "format",
    "integration",
    "javadoc",
    "jest",
    "ktlint",
    "lint",
    "mypy",
    "package",
    "phpstan",
    "phpunit",
    "prettier",
    "pytest",
    "rubocop",
    "ruff",
    "spec",
    "spotless",
    "style",
    "stylelint",
    "test",
    "tests",
    "tsc",
    "type",
    "typecheck",
    "types",
    "unit",
    "unittest",
    "validate",
    "verify",
    "vet",
    "vitest",
];

/// Words of names of tasks that do more than build, check or test.
pub(super) const OTHER_STEPS: &[&str] = &[
    "clean", "delete", "deploy", "drop", "install", "migrate", "publish", "purge", "push", "release",
    "remove", "reset", "seed", "sync", "upload",
];

/// Variables of build files that a call may set, because they change output alone.
pub(super) const DEFINITIONS: &[&str] = &["V", "VERBOSE"];

const CARGO_OPTIONS: &[&str] = &[
    "all",
    "all-features",
    "all-targets",
    "bench=",
    "benches",
    "bin=",
    "bins",
    "color=",
    "doc",
    "document-private-items",
    "example=",
    "examples",
    "exclude=",
    "features=",
    "frozen",
    "ignore-rust-version",
    "jobs=",
    "keep-going",
    "lib",
    "locked",
    "message-format=",
    "no-default-features",
    "no-deps",
    "no-fail-fast",
    "no-run",
    "offline",
    "package=",
    "profile=",
    "quiet",
    "release",
    "target=",
    "test=",
    "tests",
    "timings?",
    "verbose",
    "workspace",
];
const PYTEST_OPTIONS: &[&str] = &[
    "capture=",
    "co",
    "collect-only",
    "color=",
    "cov-branch",
    "cov-fail-under=",
    "cov-report=",
    "cov?",
    "deselect=",
    "disable-warnings",
    "doctest-modules",
    "durations=",
    "exitfirst",
    "failed-first",
    "ff",
    "ignore=",
    "junitxml=",
    "last-failed",
    "lf",
    "maxfail=",
    "nf",
    "no-cov",
    "no-header",
    "no-summary",
    "numprocesses=",
    "quiet",
    "setup-show",
    "showlocals",
    "stepwise",
    "strict-markers",
    "sw",
    "tb=",
    "timeout=",
    "verbose",
];
const GO_OPTIONS: &[&str] = &[
    "-asan",
    "-bench",
    "-benchmem",
    "-benchtime",
    "-count",
    "-cover",
    "-covermode",
    "-coverpkg",
    "-coverprofile",
    "-cpu",
    "-failfast",
    "-fuzztime",
    "-json",
    "-list",
    "-msan",
    "-n",
    "-o",
    "-p",
    "-parallel",
    "-race",
    "-run",
    "-short",
    "-shuffle",
    "-skip",
    "-tags",
    "-timeout",
    "-trimpath",
    "-v",
    "-x",
];
const JEST_OPTIONS: &[&str] = &[
    "bail",
    "ci",
    "colors",
    "coverage",
    "findRelatedTests",
    "maxWorkers=",
    "no-cache",
    "no-coverage",
    "onlyChanged",
    "passWithNoTests",
    "reporter=",
    "run",
    "runInBand",
    "runTestsByPath",
    "silent",
    "testNamePattern=",
    "testPathPattern=",
    "verbose",
];
const LINT_OPTIONS: &[&str] = &[
    "cache",
    "check",
    "color",
    "ext=",
    "fix",
    "format=",
    "max-warnings=",
    "no-color",
    "no-cache",
    "quiet",
    "strict",
    "verbose",
];
const NPM_OPTIONS: &[&str] = &["if-present", "silent", "workspace=", "workspaces"];
const GRADLE_OPTIONS: &[&str] = &[
    "build-cache",
    "console=",
    "continue",
    "daemon",
    "exclude-task=",
    "info",
    "no-build-cache",
    "no-daemon",
    "offline",
    "parallel",
    "quiet",
    "rerun-tasks",
    "stacktrace",
    "tests=",
    "warning-mode=",
];
const DOTNET_OPTIONS: &[&str] = &[
    "configuration=",
    "filter=",
    "framework=",
    "list-tests",
    "no-build",
    "no-restore",
    "nologo",
    "verbosity=",
];

pub(super) const BUILD_TOOLS: &[BuildTool] = &[
    tool(&["bun"], &["run"]).of(BuildOperands::ScriptFirst),
    tool(&["bun"], &["test"]).options("t", "", &["bail", "coverage", "timeout="]),
    tool(&["cargo"], &["b"]).cargo(),
    tool(&["cargo"], &["bench"]).cargo(),
    tool(&["cargo"], &["build"]).cargo(),
    tool(&["cargo"], &["c"]).cargo(),
    tool(&["cargo"], &["check"]).cargo(),
    tool(&["cargo"], &["clippy"]).cargo(),
    tool(&["cargo"], &["d"]).cargo(),
    tool(&["cargo"], &["doc"]).cargo(),
    tool(&["cargo"], &["fmt"]).options("qv", "p", &["all", "check", "package=", "quiet", "verbose"]),
    tool(&["cargo"], &["nextest", "list"]).cargo(),
    tool(&["cargo"], &["nextest", "run"]).cargo(),
    tool(&["cargo"], &["t"]).cargo(),
    tool(&["cargo"], &["test"]).cargo(),
    tool(&["cmake"], &["--build"]).options("jv", "", &["config=", "parallel?", "verbose"]),
    tool(&["cmake"], &["-B"]).options("", "GS", &[]),
    tool(&["cmake"], &["-S"]).options("", "BG", &[]),
    tool(&["composer"], &["run"]).of(BuildOperands::ScriptFirst),
    tool(&["composer"], &["run-script"]).of(BuildOperands::ScriptFirst),
    tool(&["composer"], &["test"]).of(BuildOperands::PassedOn),
    tool(&["ctest"], &[]).options(
        "NQV",
        "CELRj",
        &["output-on-failure", "parallel=", "rerun-failed", "test-dir=", "timeout=", "verbose"],
    ),
    tool(&["dart", "flutter"], &["analyze"]),
    tool(&["dart", "flutter"], &["test"]).options("", "nr", &["coverage", "name=", "reporter="]),
    tool(&["deno"], &["check"]),
    tool(&["deno"], &["fmt"]).options("", "", &["check"]),
    tool(&["deno"], &["lint"]),
    tool(&["deno"], &["test"]).options("", "", &["fail-fast", "filter=", "parallel"]),
    tool(&["dotnet"], &["build"]).options("", "cfv", DOTNET_OPTIONS),
    tool(&["dotnet"], &["format"]).options("", "", &["no-restore", "verify-no-changes"]),
    tool(&["dotnet"], &["test"]).options("t", "cfv", DOTNET_OPTIONS),
    tool(&["eslint", "stylelint"], &[]).options("", "", LINT_OPTIONS),
    tool(&["go"], &["build"]).single_dash(GO_OPTIONS),
    tool(&["go"], &["test"]).single_dash(GO_OPTIONS),
    tool(&["go"], &["vet"]).single_dash(GO_OPTIONS),
    tool(&["golangci-lint"], &["run"]).options("v", "", &["fast", "fix", "timeout=", "verbose"]),
    tool(&["./gradlew", "gradle", "gradlew"], &[])
        .options("iqs", "x", GRADLE_OPTIONS)
        .of(BuildOperands::OneOrMoreTasks),
    tool(&["jest", "mocha", "vitest"], &[]).options("biou", "tw", JEST_OPTIONS),
    tool(&["just", "task"], &[]).of(BuildOperands::ScriptFirst),
    tool(&["gmake", "make"], &[])
        .options("Bijksw", "CO", &["always-make", "jobs?", "keep-going", "silent"])
        .of(BuildOperands::Tasks),
    tool(&["mix"], &["compile"]).options("", "", &["force", "warnings-as-errors"]),
    tool(&["mix"], &["credo"]).options("a", "", &["strict"]),
    tool(&["mix"], &["format"]).options("", "", &["check-formatted"]),
    tool(&["mix"], &["test"]).options(
        "",
        "",
        &["cover", "exclude=", "failed", "include=", "only=", "seed=", "stale", "trace"],
    ),
    tool(&["./mvnw", "mvn", "mvnw"], &[])
        .single_dash(&[
            "--also-make",
            "--batch-mode",
            "--no-transfer-progress",
            "--offline",
            "--quiet",
            "-B",
            "-DskipTests",
            "-Dtest",
            "-X",
            "-am",
            "-e",
            "-ff",
            "-ntp",
            "-o",
            "-q",
        ])
        .of(BuildOperands::OneOrMoreTasks),
    tool(&["mypy"], &[]).options(
        "pv",
        "",
        &["explicit-package-bases", "ignore-missing-imports", "no-incremental", "pretty", "strict"],
    ),
    tool(&["ninja"], &[]).options("nv", "Cjk", &[]).of(BuildOperands::Tasks),
    tool(&["node"], &["--test"]),
    tool(&["npm"], &["run"]).options("s", "w", NPM_OPTIONS).of(BuildOperands::Script),
    tool(&["npm"], &["run-script"]).options("s", "w", NPM_OPTIONS).of(BuildOperands::Script),
    tool(&["npm"], &["t"]).options("s", "w", NPM_OPTIONS),
    tool(&["npm"], &["test"]).options("s", "w", NPM_OPTIONS),
    tool(&["npm"], &["tst"]).options("s", "w", NPM_OPTIONS),
    tool(&["nox"], &[]).options("lr", "es", &["list", "no-install", "session="]),
    tool(&["phpstan"], &["analyse"]).options("", "l", &["level=", "no-progress"]),
    tool(&["pest", "phpunit"], &[]).options("", "", &["colors", "filter=", "testdox", "stop-on-failure"]),
    tool(&["pnpm"], &["run"]).options("rs", "", NPM_OPTIONS).of(BuildOperands::ScriptFirst),
    tool(&["pnpm", "yarn"], &[]).options("rs", "", NPM_OPTIONS).of(BuildOperands::ScriptFirst),
    tool(&["pylint", "pyright"], &[]).options("jE", "", &["errors-only", "recursive=", "stats", "warnings"]),
    tool(&["pytest"], &[]).options("hlqsvx", "Wkmnr", PYTEST_OPTIONS),
    tool(&["python", "python3"], &["manage.py", "check"]),
    tool(&["python", "python3"], &["manage.py", "test"]).options(
        "",
        "kv",
        &["failfast", "keepdb", "parallel?", "tag=", "verbosity="],
    ),
    tool(&["./bin/rails", "bin/rails", "rails"], &["test"]).options("bv", "n", &["verbose"]),
    tool(&["rake"], &[]).options("qst", "j", &["quiet", "silent", "trace"]).of(BuildOperands::Tasks),
    tool(&["rebar3"], &["compile"]),
    tool(&["rebar3"], &["ct"]),
    tool(&["rebar3"], &["eunit"]),
    tool(&["rspec"], &[]).options("cp", "ef", &["color", "example=", "fail-fast", "format=", "seed="]),
    tool(&["rubocop"], &[]).options(
        "aAlx",
        "f",
        &["autocorrect", "autocorrect-all", "format=", "only=", "parallel"],
    ),
    tool(&["ruff"], &["check"]).options(
        "nqv",
        "",
        &["diff", "fix", "ignore=", "no-cache", "quiet", "select=", "show-fixes", "statistics"],
    ),
    tool(&["cabal", "stack"], &["build"]).options("", "", &["fast", "test"]),
    tool(&["cabal", "stack"], &["test"]).options("", "", &["fast"]),
    tool(&["sbt"], &[]).of(BuildOperands::OneOrMoreTasks),
    tool(&["swift"], &["build"]).options("v", "c", &["configuration=", "product=", "target="]),
    tool(&["swift"], &["test"]).options("v", "", &["filter=", "parallel", "skip="]),
    tool(&["tox"], &[]).options("qrv", "e", &["parallel?"]),
    tool(&["tsc", "vue-tsc"], &[]).options(
        "bp",
        "",
        &["build", "noEmit", "pretty", "project", "skipLibCheck", "strict"],
    ),
    tool(&["python", "python3"], &["-m", "unittest"]).options("bcfqv", "kpst", &["buffer", "failfast"]),
    tool(&["yarn"], &["run"]).of(BuildOperands::ScriptFirst),
    tool(&["zig"], &["build"]).of(BuildOperands::Tasks),
    tool(&["zig"], &["test"]),
];
