//! The programs and options whose words name files that are written.

/// The operands that a program writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WrittenOperands {
    /// All of them: files, or directories by themselves.
    Every,
    /// All of them, with everything beneath a directory.
    EveryTree,
    /// The first.
    First,
    /// All but the first, with everything beneath a directory.
    TreesAfterFirst,
    /// The second.
    Second,
    /// The last one, which may be the directory to write to.
    Last,
}

/// A program that writes to its operands.
pub(super) struct Writer {
    pub(super) name: &'static str,
    pub(super) which: WrittenOperands,
    /// Short options with a value that is no operand.
    pub(super) valued: &'static str,
}

const fn new_writer(name: &'static str, which: WrittenOperands, valued: &'static str) -> Writer {
    Writer { name, which, valued }
}

use WrittenOperands::{Every, EveryTree, First, Last, Second, TreesAfterFirst};

/// Sorted by name.
pub(super) const WRITERS: &[Writer] = &[
    new_writer("autoflake", Every, ""),
    new_writer("autopep8", Every, ""),
    new_writer("biome", Every, ""),
    new_writer("black", Every, "lt"),
    new_writer("bunzip2", Every, ""),
    new_writer("bzip2", Every, ""),
    new_writer("chgrp", TreesAfterFirst, ""),
    new_writer("chmod", TreesAfterFirst, ""),
    new_writer("chown", TreesAfterFirst, ""),
    new_writer("clang-format", Every, ""),
    new_writer("clang-tidy", Every, "p"),
    new_writer("convert", Last, ""),
    new_writer("cp", Last, "tS"),
    new_writer("dos2unix", Every, ""),
    new_writer("ed", Every, ""),
    new_writer("emacs", Every, ""),
    new_writer("eslint", Every, "c"),
    new_writer("ex", Every, "c"),
    new_writer("ffmpeg", Last, ""),
    new_writer("gofmt", Every, "r"),
    new_writer("gofumpt", Every, ""),
    new_writer("goimports", Every, ""),
    new_writer("gunzip", Every, ""),
    new_writer("gzip", Every, ""),
    new_writer("install", Last, "mogSt"),
    new_writer("isort", Every, "l"),
    new_writer("ktlint", Every, ""),
    new_writer("link", Second, ""),
    new_writer("ln", Last, "tS"),
    new_writer("lz4", Second, ""),
    new_writer("mdformat", Every, ""),
    new_writer("mkdir", Every, "m"),
    new_writer("mkfifo", Every, "m"),
    new_writer("mknod", First, "m"),
    new_writer("mktemp", Every, "p"),
    new_writer("mv", EveryTree, "tS"),
    new_writer("nano", Every, ""),
    new_writer("nvim", Every, "c"),
    new_writer("objcopy", Last, "IOBFjRKNLGW"),
    new_writer("oxlint", Every, "c"),
    new_writer("patch", First, "idporF"),
    new_writer("pigz", Every, ""),
    new_writer("prettier", Every, ""),
    new_writer("pyupgrade", Every, ""),
    new_writer("rename", Every, ""),
    new_writer("rimraf", EveryTree, ""),
    new_writer("rm", EveryTree, ""),
    new_writer("rmdir", EveryTree, ""),
    new_writer("rsync", Last, "efM"),
    new_writer("rubocop", Every, "c"),
    new_writer("ruff", Every, ""),
    new_writer("rustfmt", Every, ""),
    new_writer("scp", Last, "iPFo"),
    new_writer("sd", Every, ""),
    new_writer("shfmt", Every, "i"),
    new_writer("shred", Every, "ns"),
    new_writer("split", Second, "abCln"),
    new_writer("sponge", Every, ""),
    new_writer("strip", Every, "o"),
    new_writer("stylelint", Every, ""),
    new_writer("stylua", Every, ""),
    new_writer("tee", Every, ""),
    new_writer("touch", Every, "rdt"),
    new_writer("truncate", Every, "sr"),
    new_writer("uniq", Second, "fsw"),
    new_writer("unix2dos", Every, ""),
    new_writer("unlink", Every, ""),
    new_writer("unxz", Every, ""),
    new_writer("vi", Every, "c"),
    new_writer("vim", Every, "c"),
    new_writer("xxd", Second, "cglos"),
    new_writer("xz", Every, ""),
    new_writer("yapf", Every, ""),
    new_writer("yq", Every, ""),
    new_writer("zip", First, "x"),
    new_writer("zstd", Every, "o"),
];

/// Programs that only tell what they would change, unless one of these options is there.
pub(super) const IN_PLACE_OPTIONS: &[(&str, &[&str])] = &[
    ("autoflake", &["-i", "--in-place"]),
    ("autopep8", &["-i", "--in-place"]),
    ("biome", &["--write", "--fix", "--apply"]),
    ("clang-format", &["-i"]),
    ("clang-tidy", &["--fix", "-fix", "--fix-errors"]),
    ("eslint", &["--fix"]),
    ("gofmt", &["-w"]),
    ("goimports", &["-w"]),
    ("gofumpt", &["-w"]),
    ("ktlint", &["-F", "--format"]),
    ("oxlint", &["--fix"]),
    ("prettier", &["-w", "--write"]),
    ("rubocop", &["-a", "-A", "--autocorrect", "--autocorrect-all", "-x"]),
    ("ruff", &["--fix", "--fix-only", "format"]),
    ("shfmt", &["-w", "--write"]),
    ("stylelint", &["--fix"]),
    ("yapf", &["-i", "--in-place"]),
    ("yq", &["-i", "--inplace"]),
];

/// Options that make a formatter only tell what it would change.
pub(super) const DRY_RUN_OPTIONS: &[(&str, &[&str])] = &[
    ("black", &["--check", "--diff"]),
    ("isort", &["--check", "--check-only", "--diff", "-c"]),
    ("ruff", &["--check", "--diff"]),
    ("mdformat", &["--check"]),
    ("rustfmt", &["--check"]),
    ("stylua", &["--check"]),
];

/// Subcommands that format the operands after them.
pub(super) const FORMAT_SUBCOMMANDS: &[(&str, &str)] = &[
    ("cargo", "fmt"),
    ("dart", "format"),
    ("deno", "fmt"),
    ("go", "fmt"),
    ("mix", "format"),
    ("terraform", "fmt"),
    ("zig", "fmt"),
];

/// Options whose value is written, in every program: those of compilers and generators.
pub(super) const OUTPUT_OPTIONS: &[&str] = &[
    "--output",
    "--output-document",
    "--output-file",
    "--outfile",
    "--outdir",
    "--out-dir",
    "--outDir",
    "--outFile",
    "--out",
    "-out",
    "-keyout",
    "--target-directory",
];

/// Short options whose value is written: the programs, and the option, which may stand at the end
/// of a cluster (`curl -sSfo FILE`) if it is one letter.
pub(super) const SHORT_OUTPUT_OPTIONS: &[(&[&str], &str)] = &[
    (&["cp", "install", "ln", "mv", "pip", "pip3"], "t"),
    (&["curl", "sort", "patch", "tree", "xmllint", "zstd", "strip", "wget", "shuf", "strace", "time"], "o"),
    (&["gpg", "gpg2", "iconv", "xsltproc", "brotli", "objdump", "terser", "uglifyjs"], "o"),
    (&["curl"], "D"),
    (&["curl"], "c"),
    (&["wget"], "O"),
    (&["wget"], "P"),
    (&["wget"], "a"),
    (&["cmake"], "B"),
    (&["unzip", "patch"], "d"),
    (&["7z", "7za", "7zz"], "o"),
    (&["cpio"], "D"),
    (&["javac"], "-d"),
    (&["pg_dump", "mysqldump"], "f"),
    (COMPILERS, "-o"),
    (&["pandoc", "dot", "bison", "flex", "protoc", "esbuild", "git", "openapi-generator"], "-o"),
];

/// Compilers and linkers, which may have a target before their name and a version after it.
pub(super) const COMPILERS: &[&str] = &[
    "c++", "cc", "clang", "clang++", "as", "g++", "gcc", "gfortran", "ghc", "go", "ld", "ld.gold", "ld.lld",
    "lld", "mold", "nasm", "nvcc", "rustc", "tcc", "yasm",
];

/// Programs that replace their operands by compressed files, or by the files that were compressed.
pub(super) const COMPRESSORS: &[&str] =
    &["bunzip2", "bzip2", "gunzip", "gzip", "lz4", "pigz", "unxz", "xz", "zstd"];

/// Actions of `find` that write a file.
pub(super) const FIND_OUTPUT_ACTIONS: &[&str] = &["-fls", "-fprint", "-fprint0", "-fprintf"];

/// Beginnings of long options whose value may be the next word and is no operand.
pub(super) const VALUE_OPTIONS: &[&str] = &[
    "--backup",
    "--bwlimit",
    "--config",
    "--date",
    "--exclude",
    "--extend",
    "--filter",
    "--from",
    "--group",
    "--ignore",
    "--include",
    "--input",
    "--line-length",
    "--mode",
    "--owner",
    "--parser",
    "--reference",
    "--rsh",
    "--rule",
    "--size",
    "--strip",
    "--suffix",
    "--target-version",
    "--time",
];
