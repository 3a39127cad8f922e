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

const fn changing(
    name: &'static str,
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
) -> Changing {
    Changing { name, flags, valued, long, least: 1 }
}

const fn placing(
    name: &'static str,
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
) -> Changing {
    Changing { least: 2, ..changing(name, flags, valued, long) }
}

/// Sorted by name.
pub(super) const CHANGING: &[Changing] = &[
    changing("clang-format", "i", "", &["style=", "verbose"]),
    placing(
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
    changing("dos2unix", "qk", "", &["quiet", "keepdate"]),
    changing("gofmt", "lwdes", "", &[]),
    changing("mkdir", "pv", "m", &["parents", "verbose", "mode="]),
    Changing { least: 0, ..changing("mktemp", "dqut", "", &["directory", "dry-run", "quiet", "suffix="]) },
    placing("mv", "fnuvT", "", &["force", "no-clobber", "update", "verbose"]),
    changing("rm", "fv", "", &["force", "verbose"]),
    changing("rmdir", "pv", "", &["parents", "verbose", "ignore-fail-on-non-empty"]),
    changing("rustfmt", "lqv", "", &["check", "edition=", "emit=", "quiet", "verbose"]),
    changing("shfmt", "wdls", "i", &["write", "diff", "list", "simplify", "indent="]),
    changing("tee", "aip", "", &["append", "ignore-interrupts"]),
    changing("touch", "acmh", "dtr", &["no-create", "date=", "time="]),
    changing("truncate", "co", "s", &["no-create", "size="]),
    changing("unix2dos", "qk", "", &["quiet", "keepdate"]),
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
const fn asked(name: &'static str, words: &'static [&'static str]) -> Asked {
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

const CARGO: &[&str] = &[
    "all",
    "all-features",
    "charset=",
    "check",
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
const NPM: &[&str] = &["all", "depth=", "json", "long", "omit=", "parseable", "prod", "production", "dev"];
const PIP: &[&str] =
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
const PAGER: &[&str] = &[
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
pub(super) const ASKED: &[Asked] = &[
    asked("actionlint", &[]).of_files(),
    asked("bat", &[]).options("pnAfu", "rlH", PAGER).of_files(),
    asked("batcat", &[]).options("pnAfu", "rlH", PAGER).of_files(),
    asked("black", &[]).options("qv", "lt", PYTHON_FORM).of_files(),
    asked("bundle", &["list"]),
    asked("bundle", &["platform"]),
    asked("bundle", &["show"]).of_anything(),
    asked("cargo", &["--list"]),
    asked("cargo", &["-V"]),
    asked("cargo", &["fmt"]).options("qv", "p", CARGO),
    asked("cargo", &["help"]).of_anything(),
    asked("cargo", &["info"]).options("qv", "", CARGO).of_anything(),
    asked("cargo", &["locate-project"]).options("qv", "", CARGO),
    asked("cargo", &["metadata"]).options("qv", "F", CARGO),
    asked("cargo", &["pkgid"]).options("qv", "p", CARGO).of_anything(),
    asked("cargo", &["read-manifest"]),
    asked("cargo", &["search"]).options("q", "", &["limit="]).of_anything(),
    asked("cargo", &["tree"]).options("dqv", "peiF", CARGO),
    asked("cloc", &[]).options("", "", &["by-file", "quiet", "json", "csv"]).of_files(),
    asked("codespell", &[]).options("q", "LS", &["quiet-level=", "skip="]).of_files(),
    asked("composer", &["show"]).options("itD", "", &["installed", "tree", "direct"]).of_anything(),
    asked("composer", &["validate"]),
    asked("dotnet", &["--info"]),
    asked("dotnet", &["--list-runtimes"]),
    asked("dotnet", &["--list-sdks"]),
    asked("elixir", &["-v"]),
    asked("eslint", &[]).options("", "", &["ext=", "fix", "max-warnings=", "quiet", "no-color"]).of_files(),
    asked("ffmpeg", &["-version"]),
    asked("flake8", &[]).options("qv", "", &["max-line-length=", "select=", "ignore=", "count"]).of_files(),
    asked("gem", &["env"]),
    asked("gem", &["list"]).options("l", "", &["local"]).of_anything(),
    // The sandbox has no network that it could query.
    asked("getent", &["hosts"]).of_anything(),
    asked("ghc", &["-V"]),
    asked("go", &["doc"]).single(&["-all", "-short", "-src", "-u", "-c", "-cmd"]).of_anything(),
    asked("go", &["env"]).single(&["-json"]).of_anything(),
    asked("go", &["fmt"]).of_files(),
    asked("go", &["list"]).single(&["-m", "-json", "-deps", "-test", "-e", "-u", "-f"]).of_anything(),
    asked("go", &["mod", "graph"]),
    asked("go", &["mod", "verify"]),
    asked("go", &["mod", "why"]).single(&["-m", "-vendor"]).of_anything(),
    asked("go", &["version"]).single(&["-m"]).of_files(),
    asked("gradle", &["-v"]),
    asked("hadolint", &[]).options("", "f", &["format=", "ignore=", "failure-threshold="]).of_files(),
    asked("isort", &[]).options("qvc", "l", PYTHON_FORM).of_files(),
    asked("less", &[]).options("NRSnFXri", "", &[]).of_files(),
    asked("markdownlint", &[]).options("f", "", &["fix"]).of_files(),
    asked("mix", &["--version"]),
    asked("more", &[]).options("dflpcsu", "", &[]).of_files(),
    asked("mvn", &["-v"]),
    asked("mypy", &[]).options("pv", "", &["strict", "ignore-missing-imports", "pretty"]).of_files(),
    asked("node", &["--check"]).of_files(),
    asked("node", &["-c"]).of_files(),
    asked("npm", &["bin"]),
    asked("npm", &["config", "get"]).of_anything(),
    asked("npm", &["config", "list"]),
    asked("npm", &["explain"]).of_anything(),
    asked("npm", &["info"]).options("", "", NPM).of_anything(),
    asked("npm", &["list"]).options("a", "", NPM).of_anything(),
    asked("npm", &["ls"]).options("a", "", NPM).of_anything(),
    asked("npm", &["outdated"]).options("al", "", NPM).of_anything(),
    asked("npm", &["pkg", "get"]).of_anything(),
    asked("npm", &["prefix"]),
    asked("npm", &["root"]),
    asked("npm", &["run"]),
    asked("npm", &["view"]).options("", "", NPM).of_anything(),
    asked("npm", &["why"]).of_anything(),
    asked("openssl", &["version"]),
    asked("php", &["-l"]).of_files(),
    asked("php", &["-m"]),
    asked("pip", &["check"]),
    asked("pip", &["freeze"]).options("l", "", PIP),
    asked("pip", &["list"]).options("lv", "", PIP),
    asked("pip", &["show"]).options("fv", "", PIP).of_anything(),
    asked("pip3", &["check"]),
    asked("pip3", &["freeze"]).options("l", "", PIP),
    asked("pip3", &["list"]).options("lv", "", PIP),
    asked("pip3", &["show"]).options("fv", "", PIP).of_anything(),
    asked("pnpm", &["list"]).options("r", "", NPM).of_anything(),
    asked("pnpm", &["ls"]).options("r", "", NPM).of_anything(),
    asked("pnpm", &["why"]).of_anything(),
    asked("poetry", &["show"]).options("t", "", &["tree", "top-level"]).of_anything(),
    asked("prettier", &[])
        .options("cwlu", "", &["check", "write", "list-different", "ignore-unknown", "no-color"])
        .of_files(),
    asked("pyflakes", &[]).of_files(),
    asked("python", &["-m", "json.tool"]).of_files(),
    asked("python", &["-m", "pip", "list"]),
    asked("python", &["-m", "pip", "show"]).of_anything(),
    asked("python", &["-m", "py_compile"]).of_files(),
    asked("python3", &["-m", "json.tool"]).of_files(),
    asked("python3", &["-m", "pip", "list"]),
    asked("python3", &["-m", "pip", "show"]).of_anything(),
    asked("python3", &["-m", "py_compile"]).of_files(),
    asked("ruby", &["-c"]).of_files(),
    asked("ruff", &["check"])
        .options("qvn", "", &["diff", "fix", "ignore=", "no-cache", "quiet", "select=", "statistics"])
        .of_files(),
    asked("ruff", &["format"]).options("qvn", "", &["check", "diff", "no-cache", "quiet"]).of_files(),
    asked("rustc", &["--print"]).of_anything(),
    asked("rustc", &["-V"]),
    asked("rustup", &["component", "list"]).options("", "", &["installed"]),
    asked("rustup", &["show"]),
    asked("rustup", &["target", "list"]).options("", "", &["installed"]),
    asked("rustup", &["toolchain", "list"]).options("v", "", &[]),
    asked("rustup", &["which"]).of_anything(),
    asked("scc", &[]).of_files(),
    asked("swift", &["package", "describe"]),
    asked("terraform", &["fmt"]).single(&["-check", "-diff", "-recursive", "-list=false"]).of_files(),
    asked("terraform", &["validate"]).single(&["-json", "-no-color"]),
    asked("terraform", &["version"]).single(&["-json"]),
    asked("tokei", &[]).options("fC", "ets", &["files", "compact", "exclude=", "sort="]).of_files(),
    asked("tofu", &["fmt"]).single(&["-check", "-diff", "-recursive"]).of_files(),
    asked("tsc", &["--noEmit"]).options("p", "", &["project=", "pretty", "skipLibCheck"]).of_files(),
    asked("tsc", &["-v"]),
    asked("typos", &[]).options("", "", &["diff"]).of_files(),
    asked("uv", &["pip", "freeze"]),
    asked("uv", &["pip", "list"]).options("", "", PIP),
    asked("uv", &["pip", "show"]).of_anything(),
    asked("uv", &["pip", "tree"]),
    asked("uv", &["tree"]).options("d", "", &["depth=", "frozen", "locked", "offline"]),
    asked("yamllint", &[]).options("s", "f", &["strict", "format="]).of_files(),
    asked("yarn", &["-v"]),
    asked("yarn", &["info"]).of_anything(),
    asked("yarn", &["list"]).options("", "", NPM),
    asked("yarn", &["why"]).of_anything(),
    asked("zig", &["version"]),
    asked("zsh", &["-n"]).of_files(),
];
