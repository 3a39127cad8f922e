//! The programs that are known to run others.

/// A program that runs the words after its options.
pub(super) struct PrefixProgram {
    pub(super) name: &'static str,
    /// Short options without a value that have no effect on the program that runs.
    pub(super) flags: &'static str,
    /// Short options with a value.
    pub(super) valued: &'static str,
    /// Long options without a value, or with one after `=`.
    pub(super) long: &'static [&'static str],
    /// Long options whose value is the next word, as written.
    pub(super) long_valued: &'static [&'static str],
    /// Number of words before the program.
    pub(super) operands: usize,
    /// True if assignments may precede the program.
    pub(super) assignments: bool,
    /// True if it only reads when the program only reads.
    pub(super) transparent: bool,
}

impl PrefixProgram {
    pub(super) const NO_OPTIONS: Self = Self {
        name: "",
        flags: "",
        valued: "",
        long: &[],
        long_valued: &[],
        operands: 0,
        assignments: false,
        transparent: false,
    };
}

const fn new_prefix_program(name: &'static str, flags: &'static str, valued: &'static str) -> PrefixProgram {
    PrefixProgram { name, flags, valued, ..PrefixProgram::NO_OPTIONS }
}

impl PrefixProgram {
    const fn mark_transparent(mut self) -> Self {
        self.transparent = true;
        self
    }

    const fn with_operand_count(mut self, operands: usize) -> Self {
        self.operands = operands;
        self
    }

    const fn with_long_options(
        mut self,
        long: &'static [&'static str],
        valued: &'static [&'static str],
    ) -> Self {
        self.long = long;
        self.long_valued = valued;
        self
    }

    const fn with_assignments(mut self) -> Self {
        self.assignments = true;
        self
    }
}

/// The programs that run the words after their options.
pub(super) const PREFIX_PROGRAMS: &[PrefixProgram] = &[
    new_prefix_program("timeout", "fpv", "ks")
        .with_operand_count(1)
        .with_long_options(
            &["foreground", "preserve-status", "verbose", "kill-after", "signal"],
            &["--kill-after", "--signal"],
        )
        .mark_transparent(),
    new_prefix_program("nice", "0123456789", "n")
        .with_long_options(&["adjustment"], &["--adjustment"])
        .mark_transparent(),
    new_prefix_program("ionice", "t", "cn")
        .with_long_options(&["class", "classdata", "ignore"], &["--class", "--classdata"])
        .mark_transparent(),
    new_prefix_program("stdbuf", "", "ioe")
        .with_long_options(&["input", "output", "error"], &["--input", "--output", "--error"])
        .mark_transparent(),
    new_prefix_program("time", "p", "").mark_transparent(),
    new_prefix_program("command", "p", "").mark_transparent(),
    new_prefix_program("builtin", "", "").mark_transparent(),
    new_prefix_program("exec", "cl", "a"),
    new_prefix_program("nohup", "", ""),
    new_prefix_program("setsid", "cfw", "").with_long_options(&["ctty", "fork", "wait"], &[]),
    new_prefix_program("noglob", "", ""),
    new_prefix_program("nocorrect", "", ""),
    new_prefix_program("sudo", "AbEHknPS", "CDghprRtTuU")
        .with_long_options(
            &["preserve-env", "non-interactive", "set-home", "login", "user", "group"],
            &["--user", "--group", "--chdir", "--host", "--prompt"],
        )
        .with_assignments(),
    new_prefix_program("doas", "Lns", "Cu"),
    new_prefix_program("pkexec", "", "").with_long_options(&["disable-internal-agent"], &["--user"]),
    new_prefix_program("run0", "", "")
        .with_long_options(&[], &["--user", "--unit", "--property", "--setenv", "--chdir"])
        .with_assignments(),
    new_prefix_program("systemd-run", "GPqrStd", "EpMuH").with_long_options(
        &["user", "scope", "wait", "pty", "pipe"],
        &["--unit", "--property", "--setenv", "--uid", "--gid"],
    ),
    new_prefix_program("strace", "CcdfhikqrtTvVwxyYzZ", "aAbeEIoOpPsSuUX")
        .with_long_options(&["follow-forks"], &["--output", "--trace"]),
    new_prefix_program("ltrace", "bcCfhiLrStTV", "aADeFlnopsuwx"),
    new_prefix_program("flock", "enosuxFv", "wE").with_operand_count(1).with_long_options(
        &["exclusive", "nonblock", "shared", "close", "timeout"],
        &["--timeout", "--wait"],
    ),
    new_prefix_program("chroot", "", "")
        .with_operand_count(1)
        .with_long_options(&["userspec", "groups", "skip-chdir"], &[]),
    new_prefix_program("unshare", "CfimnpruTUc", "RSGw").with_long_options(
        &["mount", "net", "pid", "fork", "user", "map-root-user", "ipc", "uts", "mount-proc"],
        &["--root", "--wd"],
    ),
    new_prefix_program("nsenter", "aCFimnpruTUZ", "GStrw")
        .with_long_options(&["all", "mount", "net", "pid", "target"], &["--target"]),
    new_prefix_program("setarch", "vRFILSTXZ", "").with_operand_count(1),
    new_prefix_program("linux32", "vRFILSTXZ", ""),
    new_prefix_program("linux64", "vRFILSTXZ", ""),
    new_prefix_program("taskset", "acp", "").with_operand_count(1),
    new_prefix_program("chrt", "abdfiomprRv", "DPT").with_operand_count(1),
    new_prefix_program("numactl", "aslHd", "imCNp"),
    new_prefix_program("prlimit", "", "").with_long_options(&["nofile", "cpu", "as", "nproc"], &[]),
    new_prefix_program("setpriv", "", "")
        .with_long_options(&["no-new-privs", "reuid", "regid"], &["--reuid", "--regid"]),
    new_prefix_program("capsh", "", ""),
    new_prefix_program("bwrap", "", "").with_long_options(&["unshare-all"], &["--chdir", "--uid", "--gid"]),
    new_prefix_program("firejail", "", ""),
    new_prefix_program("fakeroot", "", "bfils"),
    new_prefix_program("unbuffer", "p", ""),
    new_prefix_program("rlwrap", "acEimNnorRt", "bCDefgHIlMOpPqsSTwz"),
    new_prefix_program("xvfb-run", "al", "efnps").with_long_options(&["auto-servernum"], &["--server-args"]),
    new_prefix_program("dbus-run-session", "", ""),
    new_prefix_program("catchsegv", "", ""),
    new_prefix_program("valgrind", "qv", ""),
    new_prefix_program("entr", "acdnprsxz", ""),
    new_prefix_program("expect", "", "c"),
    new_prefix_program("gosu", "", "").with_operand_count(1),
    new_prefix_program("su-exec", "", "").with_operand_count(1),
    new_prefix_program("caffeinate", "disu", "tw"),
    new_prefix_program("direnv", "", "").with_operand_count(2),
    new_prefix_program("dotenv", "", "fe"),
    new_prefix_program("cross-env", "", "").with_assignments(),
    new_prefix_program("poetry-run", "", ""),
    new_prefix_program("cgexec", "", "g"),
    new_prefix_program("chpst", "", "CcdefglmnoPrsuU/"),
    new_prefix_program("choom", "", "np"),
    new_prefix_program("chronic", "ev", ""),
    new_prefix_program("dumb-init", "cv", "r"),
    new_prefix_program("eatmydata", "", ""),
    new_prefix_program("faketime", "fm", "").with_operand_count(1),
    new_prefix_program("ld.so", "", "").with_long_options(&[], LOADER_VALUED_OPTIONS),
    new_prefix_program("logsave", "asv", "").with_operand_count(1),
    new_prefix_program("proot", "", "bkqrw"),
    new_prefix_program("proxychains", "q", "f"),
    new_prefix_program("proxychains4", "q", "f"),
    new_prefix_program("setlock", "nNxX", "").with_operand_count(1),
    new_prefix_program("softlimit", "", "acdflmoprst"),
    new_prefix_program("systemd-cat", "", "tp"),
    new_prefix_program("systemd-inhibit", "", ""),
    new_prefix_program("tini", "gsvw", "e"),
    new_prefix_program("torsocks", "", ""),
    new_prefix_program("uvx", "", "p").with_long_options(&[], &["--from", "--with", "--python", "--index"]),
];

/// Options with a value of the dynamic loader, which runs the program after them.
const LOADER_VALUED_OPTIONS: &[&str] =
    &["--argv0", "--audit", "--glibc-hwcaps-prepend", "--inhibit-rpath", "--library-path", "--preload"];

/// Shells: they run a text after `-c`, a file, or their input.
pub(super) const SHELL_PROGRAMS: &[&str] =
    &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "rzsh", "yash", "posh"];

/// Interpreters that run their input if no file is given.
pub(super) const INTERPRETER_PROGRAMS: &[&str] =
    &["python", "node", "perl", "ruby", "php", "lua", "tclsh", "bun", "deno"];

/// Options that name a program, or whose value contains a command.
pub(super) const PROGRAM_OPTIONS: &[(&str, &[&str])] = &[
    (
        "tar",
        &[
            "--checkpoint-action",
            "--to-command",
            "-I",
            "--use-compress-program",
            "--rsh-command",
            "-F",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
        ],
    ),
    ("bsdtar", &["--use-compress-program"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("scp", &["-S"]),
    ("sftp", &["-S"]),
    ("sort", &["--compress-program"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("zip", &["-TT", "--unzip-command"]),
    ("man", &["-P", "--pager", "-H", "--html"]),
    ("bat", &["--pager"]),
    ("batcat", &["--pager"]),
    ("tcpdump", &["-z"]),
    ("split", &["--filter"]),
    ("install", &["--strip-program"]),
    ("wget", &["--use-askpass"]),
    ("cpio", &["--rsh-command"]),
    ("logsave", &[]),
    ("pv", &[]),
    ("aria2c", &["--on-download-complete", "--on-download-start", "--on-download-error"]),
    ("nvim", &["--cmd"]),
    ("mosh", &["--ssh", "--server"]),
    ("perf", &["--exec"]),
    ("uv", &["--with-editable"]),
    ("socat", &[]),
    ("nc", &["-e", "-c", "--exec", "--sh-exec"]),
    ("ncat", &["-e", "-c", "--exec", "--sh-exec"]),
    ("openvpn", &["--up", "--down", "--script-security"]),
    ("cargo", &["--config"]),
    ("compgen", &["-C"]),
    ("complete", &["-C"]),
    ("mapfile", &["-C"]),
    ("readarray", &["-C"]),
];

/// Programs whose command language has an escape to a shell, such as `!` in an editor.
pub(super) const SHELL_ESCAPE_PROGRAMS: &[&str] = &[
    "vim", "vi", "nvim", "view", "ex", "ed", "emacs", "nano", "less", "more", "most", "gdb", "lldb",
    "sqlite3", "psql", "mysql", "ftp", "sftp", "telnet", "mail", "mutt", "gnuplot", "octave", "R", "ghci",
    "irb", "ipython", "dc", "bc",
];
