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

const fn new_build_tool(names: &'static [&'static str], words: &'static [&'static str]) -> BuildTool {
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
    const fn with_options(
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

    const fn with_single_dash_options(mut self, long: &'static [&'static str]) -> Self {
        self.single_dash = true;
        self.long = long;
        self
    }

    const fn with_operands(mut self, operands: BuildOperands) -> Self {
        self.operands = operands;
        self
    }

    const fn with_cargo_options(self) -> Self {
        self.with_options("hjNqrv", "Fp", CARGO_OPTIONS)
    }
}

/// A tool that runs another tool by its name, such as `npx`.
pub(super) struct Launcher {
    pub(super) names: &'static [&'static str],
    /// The words before the name.
    pub(super) words: &'static [&'static str],
}

const fn new_launcher(names: &'static [&'static str], words: &'static [&'static str]) -> Launcher {
    Launcher { names, words }
}

pub(super) const LAUNCHERS: &[Launcher] = &[
    new_launcher(&["bundle", "pnpm", "yarn"], &["exec"]),
    new_launcher(&["bunx", "npx"], &[]),
    new_launcher(&["npx"], &["--no-install"]),
    new_launcher(&["hatch", "pdm", "pipenv", "poetry", "rye", "uv"], &["run"]),
    new_launcher(&["python", "python3"], &["-m"]),
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
pub(super) const BUILD_TASK_WORDS: &[&str] = &[
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
pub(super) const NON_BUILD_TASK_WORDS: &[&str] = &[
    "clean", "delete", "deploy", "drop", "install", "migrate", "publish", "purge", "push", "release",
    "remove", "reset", "seed", "sync", "upload",
];

/// Variables of build files that a call may set, because they change output alone.
pub(super) const VERBOSITY_VARIABLES: &[&str] = &["V", "VERBOSE"];

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
    new_build_tool(&["bun"], &["run"]).with_operands(BuildOperands::ScriptFirst),
    new_build_tool(&["bun"], &["test"]).with_options("t", "", &["bail", "coverage", "timeout="]),
    new_build_tool(&["cargo"], &["b"]).with_cargo_options(),
    new_build_tool(&["cargo"], &["bench"]).with_cargo_options(),
    new_build_tool(&["cargo"], &["build"]).with_cargo_options(),
    new_build_tool(&["cargo"], &["c"]).with_cargo_options(),
    new_build_tool(&["cargo"], &["check"]).with_cargo_options(),
    new_build_tool(&["cargo"], &["clippy"]).with_cargo_options(),
    new_build_tool(&["cargo"], &["d"]).with_cargo_options(),
    new_build_tool(&["cargo"], &["doc"]).with_cargo_options(),
    new_build_tool(&["cargo"], &["fmt"]).with_options(
        "qv",
        "p",
        &["all", "check", "package=", "quiet", "verbose"],
    ),
    new_build_tool(&["cargo"], &["nextest", "list"]).with_cargo_options(),
    new_build_tool(&["cargo"], &["nextest", "run"]).with_cargo_options(),
    new_build_tool(&["cargo"], &["t"]).with_cargo_options(),
    new_build_tool(&["cargo"], &["test"]).with_cargo_options(),
    new_build_tool(&["cmake"], &["--build"]).with_options("jv", "", &["config=", "parallel?", "verbose"]),
    new_build_tool(&["cmake"], &["-B"]).with_options("", "GS", &[]),
    new_build_tool(&["cmake"], &["-S"]).with_options("", "BG", &[]),
    new_build_tool(&["composer"], &["run"]).with_operands(BuildOperands::ScriptFirst),
    new_build_tool(&["composer"], &["run-script"]).with_operands(BuildOperands::ScriptFirst),
    new_build_tool(&["composer"], &["test"]).with_operands(BuildOperands::PassedOn),
    new_build_tool(&["ctest"], &[]).with_options(
        "NQV",
        "CELRj",
        &["output-on-failure", "parallel=", "rerun-failed", "test-dir=", "timeout=", "verbose"],
    ),
    new_build_tool(&["dart", "flutter"], &["analyze"]),
    new_build_tool(&["dart", "flutter"], &["test"]).with_options(
        "",
        "nr",
        &["coverage", "name=", "reporter="],
    ),
    new_build_tool(&["deno"], &["check"]),
    new_build_tool(&["deno"], &["fmt"]).with_options("", "", &["check"]),
    new_build_tool(&["deno"], &["lint"]),
    new_build_tool(&["deno"], &["test"]).with_options("", "", &["fail-fast", "filter=", "parallel"]),
    new_build_tool(&["dotnet"], &["build"]).with_options("", "cfv", DOTNET_OPTIONS),
    new_build_tool(&["dotnet"], &["format"]).with_options("", "", &["no-restore", "verify-no-changes"]),
    new_build_tool(&["dotnet"], &["test"]).with_options("t", "cfv", DOTNET_OPTIONS),
    new_build_tool(&["eslint", "stylelint"], &[]).with_options("", "", LINT_OPTIONS),
    new_build_tool(&["go"], &["build"]).with_single_dash_options(GO_OPTIONS),
    new_build_tool(&["go"], &["test"]).with_single_dash_options(GO_OPTIONS),
    new_build_tool(&["go"], &["vet"]).with_single_dash_options(GO_OPTIONS),
    new_build_tool(&["golangci-lint"], &["run"]).with_options(
        "v",
        "",
        &["fast", "fix", "timeout=", "verbose"],
    ),
    new_build_tool(&["./gradlew", "gradle", "gradlew"], &[])
        .with_options("iqs", "x", GRADLE_OPTIONS)
        .with_operands(BuildOperands::OneOrMoreTasks),
    new_build_tool(&["jest", "mocha", "vitest"], &[]).with_options("biou", "tw", JEST_OPTIONS),
    new_build_tool(&["just", "task"], &[]).with_operands(BuildOperands::ScriptFirst),
    new_build_tool(&["gmake", "make"], &[])
        .with_options("Bijksw", "CO", &["always-make", "jobs?", "keep-going", "silent"])
        .with_operands(BuildOperands::Tasks),
    new_build_tool(&["mix"], &["compile"]).with_options("", "", &["force", "warnings-as-errors"]),
    new_build_tool(&["mix"], &["credo"]).with_options("a", "", &["strict"]),
    new_build_tool(&["mix"], &["format"]).with_options("", "", &["check-formatted"]),
    new_build_tool(&["mix"], &["test"]).with_options(
        "",
        "",
        &["cover", "exclude=", "failed", "include=", "only=", "seed=", "stale", "trace"],
    ),
    new_build_tool(&["./mvnw", "mvn", "mvnw"], &[])
        .with_single_dash_options(&[
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
        .with_operands(BuildOperands::OneOrMoreTasks),
    new_build_tool(&["mypy"], &[]).with_options(
        "pv",
        "",
        &["explicit-package-bases", "ignore-missing-imports", "no-incremental", "pretty", "strict"],
    ),
    new_build_tool(&["ninja"], &[]).with_options("nv", "Cjk", &[]).with_operands(BuildOperands::Tasks),
    new_build_tool(&["node"], &["--test"]),
    new_build_tool(&["npm"], &["run"])
        .with_options("s", "w", NPM_OPTIONS)
        .with_operands(BuildOperands::Script),
    new_build_tool(&["npm"], &["run-script"])
        .with_options("s", "w", NPM_OPTIONS)
        .with_operands(BuildOperands::Script),
    new_build_tool(&["npm"], &["t"]).with_options("s", "w", NPM_OPTIONS),
    new_build_tool(&["npm"], &["test"]).with_options("s", "w", NPM_OPTIONS),
    new_build_tool(&["npm"], &["tst"]).with_options("s", "w", NPM_OPTIONS),
    new_build_tool(&["nox"], &[]).with_options("lr", "es", &["list", "no-install", "session="]),
    new_build_tool(&["phpstan"], &["analyse"]).with_options("", "l", &["level=", "no-progress"]),
    new_build_tool(&["pest", "phpunit"], &[]).with_options(
        "",
        "",
        &["colors", "filter=", "testdox", "stop-on-failure"],
    ),
    new_build_tool(&["pnpm"], &["run"])
        .with_options("rs", "", NPM_OPTIONS)
        .with_operands(BuildOperands::ScriptFirst),
    new_build_tool(&["pnpm", "yarn"], &[])
        .with_options("rs", "", NPM_OPTIONS)
        .with_operands(BuildOperands::ScriptFirst),
    new_build_tool(&["pylint", "pyright"], &[]).with_options(
        "jE",
        "",
        &["errors-only", "recursive=", "stats", "warnings"],
    ),
    new_build_tool(&["pytest"], &[]).with_options("hlqsvx", "Wkmnr", PYTEST_OPTIONS),
    new_build_tool(&["python", "python3"], &["manage.py", "check"]),
    new_build_tool(&["python", "python3"], &["manage.py", "test"]).with_options(
        "",
        "kv",
        &["failfast", "keepdb", "parallel?", "tag=", "verbosity="],
    ),
    new_build_tool(&["./bin/rails", "bin/rails", "rails"], &["test"]).with_options("bv", "n", &["verbose"]),
    new_build_tool(&["rake"], &[])
        .with_options("qst", "j", &["quiet", "silent", "trace"])
        .with_operands(BuildOperands::Tasks),
    new_build_tool(&["rebar3"], &["compile"]),
    new_build_tool(&["rebar3"], &["ct"]),
    new_build_tool(&["rebar3"], &["eunit"]),
    new_build_tool(&["rspec"], &[]).with_options(
        "cp",
        "ef",
        &["color", "example=", "fail-fast", "format=", "seed="],
    ),
    new_build_tool(&["rubocop"], &[]).with_options(
        "aAlx",
        "f",
        &["autocorrect", "autocorrect-all", "format=", "only=", "parallel"],
    ),
    new_build_tool(&["ruff"], &["check"]).with_options(
        "nqv",
        "",
        &["diff", "fix", "ignore=", "no-cache", "quiet", "select=", "show-fixes", "statistics"],
    ),
    new_build_tool(&["cabal", "stack"], &["build"]).with_options("", "", &["fast", "test"]),
    new_build_tool(&["cabal", "stack"], &["test"]).with_options("", "", &["fast"]),
    new_build_tool(&["sbt"], &[]).with_operands(BuildOperands::OneOrMoreTasks),
    new_build_tool(&["swift"], &["build"]).with_options("v", "c", &["configuration=", "product=", "target="]),
    new_build_tool(&["swift"], &["test"]).with_options("v", "", &["filter=", "parallel", "skip="]),
    new_build_tool(&["tox"], &[]).with_options("qrv", "e", &["parallel?"]),
    new_build_tool(&["tsc", "vue-tsc"], &[]).with_options(
        "bp",
        "",
        &["build", "noEmit", "pretty", "project", "skipLibCheck", "strict"],
    ),
    new_build_tool(&["python", "python3"], &["-m", "unittest"]).with_options(
        "bcfqv",
        "kpst",
        &["buffer", "failfast"],
    ),
    new_build_tool(&["yarn"], &["run"]).with_operands(BuildOperands::ScriptFirst),
    new_build_tool(&["zig"], &["build"]).with_operands(BuildOperands::Tasks),
    new_build_tool(&["zig"], &["test"]),
];
