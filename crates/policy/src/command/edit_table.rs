//! The programs that `edits` accepts, with their options.

/// A program that writes to its operands only.
pub(super) struct FileChanger {
    pub(super) name: &'static str,
    /// Short options without a value.
    pub(super) flags: &'static str,
    /// Short options with a value that is not a file.
    pub(super) valued: &'static str,
    /// Long options, in the format of the table of readers.
    pub(super) long: &'static [&'static str],
    /// Minimum number of operands.
    pub(super) least: usize,
}

const fn new_file_changer(
    name: &'static str,
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
) -> FileChanger {
    FileChanger { name, flags, valued, long, least: 1 }
}

const fn new_file_mover(
    name: &'static str,
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
) -> FileChanger {
    FileChanger { least: 2, ..new_file_changer(name, flags, valued, long) }
}

/// Sorted by name.
pub(super) const FILE_CHANGERS: &[FileChanger] = &[
    new_file_changer("clang-format", "i", "", &["style=", "verbose"]),
    new_file_mover(
        "cp",
        "aRrpdfnuvLPHT",
        "",
        &[
            "archive",
            "recursive",
            "force",
            "no-clobber",
            "update",
            "verbose",
            "parents",
            "preserve?",
            "dereference",
        ],
    ),
    new_file_changer("dos2unix", "qk", "", &["quiet", "keepdate"]),
    new_file_changer("gofmt", "lwdes", "", &[]),
    new_file_changer("mkdir", "pv", "m", &["parents", "verbose", "mode="]),
    FileChanger {
        least: 0,
        ..new_file_changer("mktemp", "dqut", "", &["directory", "dry-run", "quiet", "suffix="])
    },
    new_file_mover("mv", "fnuvT", "", &["force", "no-clobber", "update", "verbose"]),
    new_file_changer("rm", "fv", "", &["force", "verbose"]),
    new_file_changer("rmdir", "pv", "", &["parents", "verbose", "ignore-fail-on-non-empty"]),
    new_file_changer("rustfmt", "lqv", "", &["check", "edition=", "emit=", "quiet", "verbose"]),
    new_file_changer("shfmt", "wdls", "i", &["write", "diff", "list", "simplify", "indent="]),
    new_file_changer("tee", "aip", "", &["append", "ignore-interrupts"]),
    new_file_changer("touch", "acmh", "dtr", &["no-create", "date=", "time="]),
    new_file_changer("truncate", "co", "s", &["no-create", "size="]),
    new_file_changer("unix2dos", "qk", "", &["quiet", "keepdate"]),
];

/// A program that only prints information or formats files, when called with the given subcommand.
pub(super) struct QueryProgram {
    pub(super) name: &'static str,
    /// The subcommand.
    pub(super) words: &'static [&'static str],
    pub(super) flags: &'static str,
    pub(super) valued: &'static str,
    pub(super) long: &'static [&'static str],
    /// All accepted options of a program whose long options have one dash. The three lists above
    /// are empty then.
    pub(super) single: &'static [&'static str],
    /// True if operands are accepted.
    pub(super) operands: bool,
    /// True if operands are files, which must be in the project and may be patterns.
    pub(super) files: bool,
}

/// A program with a subcommand and nothing else.
const fn new_query_program(name: &'static str, words: &'static [&'static str]) -> QueryProgram {
    QueryProgram { name, words, flags: "", valued: "", long: &[], single: &[], operands: false, files: false }
}

impl QueryProgram {
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

    const fn with_single_dash_options(mut self, single: &'static [&'static str]) -> Self {
        self.single = single;
        self
    }

    const fn with_any_operands(mut self) -> Self {
        self.operands = true;
        self
    }

    const fn with_file_operands(mut self) -> Self {
        self.operands = true;
        self.files = true;
        self
    }
}

const CARGO_OPTIONS: &[&str] = &[
    "all",
    "all-features",
    "charset=",
    "color=",
    "depth=",
    "duplicates",
    "edges=",
    "features=",
    "filter-platform=",
    "format=",
    "format-version=",
    "frozen",
    "invert=",
    "locked",
    "message-format=",
    "no-dedupe",
    "no-default-features",
    "no-deps",
    "offline",
    "package=",
    "prefix=",
    "quiet",
    "target=",
    "verbose",
    "workspace",
];
const NPM_OPTIONS: &[&str] =
    &["all", "depth=", "json", "long", "omit=", "parseable", "prod", "production", "dev"];
const PIP_OPTIONS: &[&str] =
    &["format=", "local", "user", "not-required", "exclude-editable", "all", "verbose", "files"];
const PYTHON_FORMATTER_OPTIONS: &[&str] = &[
    "check",
    "check-only",
    "diff",
    "exclude=",
    "line-length=",
    "quiet",
    "skip=",
    "target-version=",
    "verbose",
];
const PAGER_OPTIONS: &[&str] = &[
    "number",
    "plain",
    "paging=never",
    "style=",
    "line-range=",
    "language=",
    "color=",
    "show-all",
    "decorations=",
];

/// Sorted by name.
pub(super) const QUERY_PROGRAMS: &[QueryProgram] = &[
    new_query_program("actionlint", &[]).with_file_operands(),
    new_query_program("bat", &[]).with_options("pnAfu", "rlH", PAGER_OPTIONS).with_file_operands(),
    new_query_program("batcat", &[]).with_options("pnAfu", "rlH", PAGER_OPTIONS).with_file_operands(),
    new_query_program("black", &[]).with_options("qv", "lt", PYTHON_FORMATTER_OPTIONS).with_file_operands(),
    new_query_program("bundle", &["list"]),
    new_query_program("bundle", &["platform"]),
    new_query_program("bundle", &["show"]).with_any_operands(),
    new_query_program("cargo", &["--list"]),
    new_query_program("cargo", &["-V"]),
    new_query_program("cargo", &["help"]).with_any_operands(),
    new_query_program("cargo", &["info"]).with_options("qv", "", CARGO_OPTIONS).with_any_operands(),
    new_query_program("cargo", &["locate-project"]).with_options("qv", "", CARGO_OPTIONS),
    new_query_program("cargo", &["metadata"]).with_options("qv", "F", CARGO_OPTIONS),
    new_query_program("cargo", &["pkgid"]).with_options("qv", "p", CARGO_OPTIONS).with_any_operands(),
    new_query_program("cargo", &["read-manifest"]),
    new_query_program("cargo", &["search"]).with_options("q", "", &["limit="]).with_any_operands(),
    new_query_program("cargo", &["tree"]).with_options("dqv", "peiF", CARGO_OPTIONS),
    new_query_program("cloc", &[])
        .with_options("", "", &["by-file", "quiet", "json", "csv"])
        .with_file_operands(),
    new_query_program("codespell", &[])
        .with_options("q", "LS", &["quiet-level=", "skip="])
        .with_file_operands(),
    new_query_program("composer", &["show"])
        .with_options("itD", "", &["installed", "tree", "direct"])
        .with_any_operands(),
    new_query_program("composer", &["validate"]),
    new_query_program("dotnet", &["--info"]),
    new_query_program("dotnet", &["--list-runtimes"]),
    new_query_program("dotnet", &["--list-sdks"]),
    new_query_program("elixir", &["-v"]),
    new_query_program("ffmpeg", &["-version"]),
    new_query_program("flake8", &[])
        .with_options("qv", "", &["max-line-length=", "select=", "ignore=", "count"])
        .with_file_operands(),
    new_query_program("gem", &["env"]),
    new_query_program("gem", &["list"]).with_options("l", "", &["local"]).with_any_operands(),
    // The sandbox has no network that it could query.
    new_query_program("getent", &["hosts"]).with_any_operands(),
    new_query_program("ghc", &["-V"]),
    new_query_program("go", &["doc"])
        .with_single_dash_options(&["-all", "-short", "-src", "-u", "-c", "-cmd"])
        .with_any_operands(),
    new_query_program("go", &["env"]).with_single_dash_options(&["-json"]).with_any_operands(),
    new_query_program("go", &["fmt"]).with_file_operands(),
    new_query_program("go", &["list"])
        .with_single_dash_options(&["-m", "-json", "-deps", "-test", "-e", "-u", "-f"])
        .with_any_operands(),
    new_query_program("go", &["mod", "graph"]),
    new_query_program("go", &["mod", "verify"]),
    new_query_program("go", &["mod", "why"]).with_single_dash_options(&["-m", "-vendor"]).with_any_operands(),
    new_query_program("go", &["version"]).with_single_dash_options(&["-m"]).with_file_operands(),
    new_query_program("gradle", &["-v"]),
    new_query_program("hadolint", &[])
        .with_options("", "f", &["format=", "ignore=", "failure-threshold="])
        .with_file_operands(),
    new_query_program("isort", &[]).with_options("qvc", "l", PYTHON_FORMATTER_OPTIONS).with_file_operands(),
    new_query_program("less", &[]).with_options("NRSnFXri", "", &[]).with_file_operands(),
    new_query_program("markdownlint", &[]).with_options("f", "", &["fix"]).with_file_operands(),
    new_query_program("mix", &["--version"]),
    new_query_program("more", &[]).with_options("dflpcsu", "", &[]).with_file_operands(),
    new_query_program("mvn", &["-v"]),
    new_query_program("node", &["--check"]).with_file_operands(),
    new_query_program("node", &["-c"]).with_file_operands(),
    new_query_program("npm", &["bin"]),
    new_query_program("npm", &["config", "get"]).with_any_operands(),
    new_query_program("npm", &["config", "list"]),
    new_query_program("npm", &["explain"]).with_any_operands(),
    new_query_program("npm", &["info"]).with_options("", "", NPM_OPTIONS).with_any_operands(),
    new_query_program("npm", &["list"]).with_options("a", "", NPM_OPTIONS).with_any_operands(),
    new_query_program("npm", &["ls"]).with_options("a", "", NPM_OPTIONS).with_any_operands(),
    new_query_program("npm", &["outdated"]).with_options("al", "", NPM_OPTIONS).with_any_operands(),
    new_query_program("npm", &["pkg", "get"]).with_any_operands(),
    new_query_program("npm", &["prefix"]),
    new_query_program("npm", &["root"]),
    new_query_program("npm", &["run"]),
    new_query_program("npm", &["view"]).with_options("", "", NPM_OPTIONS).with_any_operands(),
    new_query_program("npm", &["why"]).with_any_operands(),
    new_query_program("openssl", &["version"]),
    new_query_program("php", &["-l"]).with_file_operands(),
    new_query_program("php", &["-m"]),
    new_query_program("pip", &["check"]),
    new_query_program("pip", &["freeze"]).with_options("l", "", PIP_OPTIONS),
    new_query_program("pip", &["list"]).with_options("lv", "", PIP_OPTIONS),
    new_query_program("pip", &["show"]).with_options("fv", "", PIP_OPTIONS).with_any_operands(),
    new_query_program("pip3", &["check"]),
    new_query_program("pip3", &["freeze"]).with_options("l", "", PIP_OPTIONS),
    new_query_program("pip3", &["list"]).with_options("lv", "", PIP_OPTIONS),
    new_query_program("pip3", &["show"]).with_options("fv", "", PIP_OPTIONS).with_any_operands(),
    new_query_program("pnpm", &["list"]).with_options("r", "", NPM_OPTIONS).with_any_operands(),
    new_query_program("pnpm", &["ls"]).with_options("r", "", NPM_OPTIONS).with_any_operands(),
    new_query_program("pnpm", &["why"]).with_any_operands(),
    new_query_program("poetry", &["show"]).with_options("t", "", &["tree", "top-level"]).with_any_operands(),
    new_query_program("prettier", &[])
        .with_options("cwlu", "", &["check", "write", "list-different", "ignore-unknown", "no-color"])
        .with_file_operands(),
    new_query_program("pyflakes", &[]).with_file_operands(),
    new_query_program("python", &["-m", "json.tool"]).with_file_operands(),
    new_query_program("python", &["-m", "pip", "list"]),
    new_query_program("python", &["-m", "pip", "show"]).with_any_operands(),
    new_query_program("python", &["-m", "py_compile"]).with_file_operands(),
    new_query_program("python3", &["-m", "json.tool"]).with_file_operands(),
    new_query_program("python3", &["-m", "pip", "list"]),
    new_query_program("python3", &["-m", "pip", "show"]).with_any_operands(),
    new_query_program("python3", &["-m", "py_compile"]).with_file_operands(),
    new_query_program("ruby", &["-c"]).with_file_operands(),
    new_query_program("ruff", &["format"])
        .with_options("qvn", "", &["check", "diff", "no-cache", "quiet"])
        .with_file_operands(),
    new_query_program("rustc", &["--print"]).with_any_operands(),
    new_query_program("rustc", &["-V"]),
    new_query_program("rustup", &["component", "list"]).with_options("", "", &["installed"]),
    new_query_program("rustup", &["show"]),
    new_query_program("rustup", &["target", "list"]).with_options("", "", &["installed"]),
    new_query_program("rustup", &["toolchain", "list"]).with_options("v", "", &[]),
    new_query_program("rustup", &["which"]).with_any_operands(),
    new_query_program("scc", &[]).with_file_operands(),
    new_query_program("swift", &["package", "describe"]),
    new_query_program("terraform", &["fmt"])
        .with_single_dash_options(&["-check", "-diff", "-recursive", "-list=false"])
        .with_file_operands(),
    new_query_program("terraform", &["validate"]).with_single_dash_options(&["-json", "-no-color"]),
    new_query_program("terraform", &["version"]).with_single_dash_options(&["-json"]),
    new_query_program("tokei", &[])
        .with_options("fC", "ets", &["files", "compact", "exclude=", "sort="])
        .with_file_operands(),
    new_query_program("tofu", &["fmt"])
        .with_single_dash_options(&["-check", "-diff", "-recursive"])
        .with_file_operands(),
    new_query_program("tsc", &["-v"]),
    new_query_program("typos", &[]).with_options("", "", &["diff"]).with_file_operands(),
    new_query_program("uv", &["pip", "freeze"]),
    new_query_program("uv", &["pip", "list"]).with_options("", "", PIP_OPTIONS),
    new_query_program("uv", &["pip", "show"]).with_any_operands(),
    new_query_program("uv", &["pip", "tree"]),
    new_query_program("uv", &["tree"]).with_options("d", "", &["depth=", "frozen", "locked", "offline"]),
    new_query_program("yamllint", &[]).with_options("s", "f", &["strict", "format="]).with_file_operands(),
    new_query_program("yarn", &["-v"]),
    new_query_program("yarn", &["info"]).with_any_operands(),
    new_query_program("yarn", &["list"]).with_options("", "", NPM_OPTIONS),
    new_query_program("yarn", &["why"]).with_any_operands(),
    new_query_program("zig", &["version"]),
    new_query_program("zsh", &["-n"]).with_file_operands(),
];
