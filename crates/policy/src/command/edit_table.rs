//! The programs that `edits` accepts, with their options.

/// A program that writes to its operands only.
pub(super) struct Changing {
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

const fn changing_program(
    name: &'static str,
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
) -> Changing {
    Changing { name, flags, valued, long, least: 1 }
}

const fn placing_program(
    name: &'static str,
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
) -> Changing {
    Changing { least: 2, ..changing_program(name, flags, valued, long) }
}

/// Sorted by name.
pub(super) const CHANGING_PROGRAMS: &[Changing] = &[
    changing_program("clang-format", "i", "", &["style=", "verbose"]),
    placing_program(
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
    changing_program("dos2unix", "qk", "", &["quiet", "keepdate"]),
    changing_program("gofmt", "lwdes", "", &[]),
    changing_program("mkdir", "pv", "m", &["parents", "verbose", "mode="]),
    Changing {
        least: 0,
        ..changing_program("mktemp", "dqut", "", &["directory", "dry-run", "quiet", "suffix="])
    },
    placing_program("mv", "fnuvT", "", &["force", "no-clobber", "update", "verbose"]),
    changing_program("rm", "fv", "", &["force", "verbose"]),
    changing_program("rmdir", "pv", "", &["parents", "verbose", "ignore-fail-on-non-empty"]),
    changing_program("rustfmt", "lqv", "", &["check", "edition=", "emit=", "quiet", "verbose"]),
    changing_program("shfmt", "wdls", "i", &["write", "diff", "list", "simplify", "indent="]),
    changing_program("tee", "aip", "", &["append", "ignore-interrupts"]),
    changing_program("touch", "acmh", "dtr", &["no-create", "date=", "time="]),
    changing_program("truncate", "co", "s", &["no-create", "size="]),
    changing_program("unix2dos", "qk", "", &["quiet", "keepdate"]),
];

/// A program that only prints information or formats files, when called with the given subcommand.
pub(super) struct Asked {
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
const fn asked_program(name: &'static str, words: &'static [&'static str]) -> Asked {
    Asked { name, words, flags: "", valued: "", long: &[], single: &[], operands: false, files: false }
}

impl Asked {
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

    const fn single(mut self, single: &'static [&'static str]) -> Self {
        self.single = single;
        self
    }

    const fn of_anything(mut self) -> Self {
        self.operands = true;
        self
    }

    const fn of_files(mut self) -> Self {
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
const PYTHON_FORM: &[&str] = &[
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
pub(super) const ASKED_PROGRAMS: &[Asked] = &[
    asked_program("actionlint", &[]).of_files(),
    asked_program("bat", &[]).options("pnAfu", "rlH", PAGER_OPTIONS).of_files(),
    asked_program("batcat", &[]).options("pnAfu", "rlH", PAGER_OPTIONS).of_files(),
    asked_program("black", &[]).options("qv", "lt", PYTHON_FORM).of_files(),
    asked_program("bundle", &["list"]),
    asked_program("bundle", &["platform"]),
    asked_program("bundle", &["show"]).of_anything(),
    asked_program("cargo", &["--list"]),
    asked_program("cargo", &["-V"]),
    asked_program("cargo", &["help"]).of_anything(),
    asked_program("cargo", &["info"]).options("qv", "", CARGO_OPTIONS).of_anything(),
    asked_program("cargo", &["locate-project"]).options("qv", "", CARGO_OPTIONS),
    asked_program("cargo", &["metadata"]).options("qv", "F", CARGO_OPTIONS),
    asked_program("cargo", &["pkgid"]).options("qv", "p", CARGO_OPTIONS).of_anything(),
    asked_program("cargo", &["read-manifest"]),
    asked_program("cargo", &["search"]).options("q", "", &["limit="]).of_anything(),
    asked_program("cargo", &["tree"]).options("dqv", "peiF", CARGO_OPTIONS),
    asked_program("cloc", &[]).options("", "", &["by-file", "quiet", "json", "csv"]).of_files(),
    asked_program("codespell", &[]).options("q", "LS", &["quiet-level=", "skip="]).of_files(),
    asked_program("composer", &["show"]).options("itD", "", &["installed", "tree", "direct"]).of_anything(),
    asked_program("composer", &["validate"]),
    asked_program("dotnet", &["--info"]),
    asked_program("dotnet", &["--list-runtimes"]),
    asked_program("dotnet", &["--list-sdks"]),
    asked_program("elixir", &["-v"]),
    asked_program("ffmpeg", &["-version"]),
    asked_program("flake8", &[])
        .options("qv", "", &["max-line-length=", "select=", "ignore=", "count"])
        .of_files(),
    asked_program("gem", &["env"]),
    asked_program("gem", &["list"]).options("l", "", &["local"]).of_anything(),
    // The sandbox has no network that it could query.
    asked_program("getent", &["hosts"]).of_anything(),
    asked_program("ghc", &["-V"]),
    asked_program("go", &["doc"]).single(&["-all", "-short", "-src", "-u", "-c", "-cmd"]).of_anything(),
    asked_program("go", &["env"]).single(&["-json"]).of_anything(),
    asked_program("go", &["fmt"]).of_files(),
    asked_program("go", &["list"]).single(&["-m", "-json", "-deps", "-test", "-e", "-u", "-f"]).of_anything(),
    asked_program("go", &["mod", "graph"]),
    asked_program("go", &["mod", "verify"]),
    asked_program("go", &["mod", "why"]).single(&["-m", "-vendor"]).of_anything(),
    asked_program("go", &["version"]).single(&["-m"]).of_files(),
    asked_program("gradle", &["-v"]),
    asked_program("hadolint", &[]).options("", "f", &["format=", "ignore=", "failure-threshold="]).of_files(),
    asked_program("isort", &[]).options("qvc", "l", PYTHON_FORM).of_files(),
    asked_program("less", &[]).options("NRSnFXri", "", &[]).of_files(),
    asked_program("markdownlint", &[]).options("f", "", &["fix"]).of_files(),
    asked_program("mix", &["--version"]),
    asked_program("more", &[]).options("dflpcsu", "", &[]).of_files(),
    asked_program("mvn", &["-v"]),
    asked_program("node", &["--check"]).of_files(),
    asked_program("node", &["-c"]).of_files(),
    asked_program("npm", &["bin"]),
    asked_program("npm", &["config", "get"]).of_anything(),
    asked_program("npm", &["config", "list"]),
    asked_program("npm", &["explain"]).of_anything(),
    asked_program("npm", &["info"]).options("", "", NPM_OPTIONS).of_anything(),
    asked_program("npm", &["list"]).options("a", "", NPM_OPTIONS).of_anything(),
    asked_program("npm", &["ls"]).options("a", "", NPM_OPTIONS).of_anything(),
    asked_program("npm", &["outdated"]).options("al", "", NPM_OPTIONS).of_anything(),
    asked_program("npm", &["pkg", "get"]).of_anything(),
    asked_program("npm", &["prefix"]),
    asked_program("npm", &["root"]),
    asked_program("npm", &["run"]),
    asked_program("npm", &["view"]).options("", "", NPM_OPTIONS).of_anything(),
    asked_program("npm", &["why"]).of_anything(),
    asked_program("openssl", &["version"]),
    asked_program("php", &["-l"]).of_files(),
    asked_program("php", &["-m"]),
    asked_program("pip", &["check"]),
    asked_program("pip", &["freeze"]).options("l", "", PIP_OPTIONS),
    asked_program("pip", &["list"]).options("lv", "", PIP_OPTIONS),
    asked_program("pip", &["show"]).options("fv", "", PIP_OPTIONS).of_anything(),
    asked_program("pip3", &["check"]),
    asked_program("pip3", &["freeze"]).options("l", "", PIP_OPTIONS),
    asked_program("pip3", &["list"]).options("lv", "", PIP_OPTIONS),
    asked_program("pip3", &["show"]).options("fv", "", PIP_OPTIONS).of_anything(),
    asked_program("pnpm", &["list"]).options("r", "", NPM_OPTIONS).of_anything(),
    asked_program("pnpm", &["ls"]).options("r", "", NPM_OPTIONS).of_anything(),
    asked_program("pnpm", &["why"]).of_anything(),
    asked_program("poetry", &["show"]).options("t", "", &["tree", "top-level"]).of_anything(),
    asked_program("prettier", &[])
        .options("cwlu", "", &["check", "write", "list-different", "ignore-unknown", "no-color"])
        .of_files(),
    asked_program("pyflakes", &[]).of_files(),
    asked_program("python", &["-m", "json.tool"]).of_files(),
    asked_program("python", &["-m", "pip", "list"]),
    asked_program("python", &["-m", "pip", "show"]).of_anything(),
    asked_program("python", &["-m", "py_compile"]).of_files(),
    asked_program("python3", &["-m", "json.tool"]).of_files(),
    asked_program("python3", &["-m", "pip", "list"]),
    asked_program("python3", &["-m", "pip", "show"]).of_anything(),
    asked_program("python3", &["-m", "py_compile"]).of_files(),
    asked_program("ruby", &["-c"]).of_files(),
    asked_program("ruff", &["format"]).options("qvn", "", &["check", "diff", "no-cache", "quiet"]).of_files(),
    asked_program("rustc", &["--print"]).of_anything(),
    asked_program("rustc", &["-V"]),
    asked_program("rustup", &["component", "list"]).options("", "", &["installed"]),
    asked_program("rustup", &["show"]),
    asked_program("rustup", &["target", "list"]).options("", "", &["installed"]),
    asked_program("rustup", &["toolchain", "list"]).options("v", "", &[]),
    asked_program("rustup", &["which"]).of_anything(),
    asked_program("scc", &[]).of_files(),
    asked_program("swift", &["package", "describe"]),
    asked_program("terraform", &["fmt"]).single(&["-check", "-diff", "-recursive", "-list=false"]).of_files(),
    asked_program("terraform", &["validate"]).single(&["-json", "-no-color"]),
    asked_program("terraform", &["version"]).single(&["-json"]),
    asked_program("tokei", &[]).options("fC", "ets", &["files", "compact", "exclude=", "sort="]).of_files(),
    asked_program("tofu", &["fmt"]).single(&["-check", "-diff", "-recursive"]).of_files(),
    asked_program("tsc", &["-v"]),
    asked_program("typos", &[]).options("", "", &["diff"]).of_files(),
    asked_program("uv", &["pip", "freeze"]),
    asked_program("uv", &["pip", "list"]).options("", "", PIP_OPTIONS),
    asked_program("uv", &["pip", "show"]).of_anything(),
    asked_program("uv", &["pip", "tree"]),
    asked_program("uv", &["tree"]).options("d", "", &["depth=", "frozen", "locked", "offline"]),
    asked_program("yamllint", &[]).options("s", "f", &["strict", "format="]).of_files(),
    asked_program("yarn", &["-v"]),
    asked_program("yarn", &["info"]).of_anything(),
    asked_program("yarn", &["list"]).options("", "", NPM_OPTIONS),
    asked_program("yarn", &["why"]).of_anything(),
    asked_program("zig", &["version"]),
    asked_program("zsh", &["-n"]).of_files(),
];
