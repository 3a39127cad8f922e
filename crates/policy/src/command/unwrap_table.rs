//! The programs that are known to run others.

/// A program that runs the words after its options.
pub(super) struct Prefix {
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

impl Prefix {
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

const fn prefix(name: &'static str, flags: &'static str, valued: &'static str) -> Prefix {
    Prefix { name, flags, valued, ..Prefix::NO_OPTIONS }
}

impl Prefix {
    const fn transparent(mut self) -> Self {
        self.transparent = true;
        self
    }

    const fn after(mut self, operands: usize) -> Self {
        self.operands = operands;
        self
    }

    const fn long(mut self, long: &'static [&'static str], valued: &'static [&'static str]) -> Self {
        self.long = long;
        self.long_valued = valued;
        self
    }

    const fn assignments(mut self) -> Self {
        self.assignments = true;
        self
    }
}

/// The programs that run the words after their options.
pub(super) const PREFIX_PROGRAMS: &[Prefix] = &[
    prefix("timeout", "fpv", "ks")
        .after(1)
        .long(
            &["foreground", "preserve-status", "verbose", "kill-after", "signal"],
            &["--kill-after", "--signal"],
        )
        .transparent(),
    prefix("nice", "0123456789", "n").long(&["adjustment"], &["--adjustment"]).transparent(),
    prefix("ionice", "t", "cn")
        .long(&["class", "classdata", "ignore"], &["--class", "--classdata"])
        .transparent(),
    prefix("stdbuf", "", "ioe")
        .long(&["input", "output", "error"], &["--input", "--output", "--error"])
        .transparent(),
    prefix("time", "p", "").transparent(),
    prefix("command", "p", "").transparent(),
    prefix("builtin", "", "").transparent(),
    prefix("exec", "cl", "a"),
    prefix("nohup", "", ""),
    prefix("setsid", "cfw", "").long(&["ctty", "fork", "wait"], &[]),
    prefix("coproc", "", ""),
    prefix("noglob", "", ""),
    prefix("nocorrect", "", ""),
    prefix("sudo", "AbEHknPS", "CDghprRtTuU")
        .long(
            &["preserve-env", "non-interactive", "set-home", "login", "user", "group"],
            &["--user", "--group", "--chdir", "--host", "--prompt"],
        )
        .assignments(),
    prefix("doas", "Lns", "Cu"),
    prefix("pkexec", "", "").long(&["disable-internal-agent"], &["--user"]),
    prefix("run0", "", "")
        .long(&[], &["--user", "--unit", "--property", "--setenv", "--chdir"])
        .assignments(),
    prefix("systemd-run", "GPqrStd", "EpMuH").long(
        &["user", "scope", "wait", "pty", "pipe"],
        &["--unit", "--property", "--setenv", "--uid", "--gid"],
    ),
    prefix("strace", "CcdfhikqrtTvVwxyYzZ", "aAbeEIoOpPsSuUX")
        .long(&["follow-forks"], &["--output", "--trace"]),
    prefix("ltrace", "bcCfhiLrStTV", "aADeFlnopsuwx"),
    prefix("flock", "enosuxFv", "wE")
        .after(1)
        .long(&["exclusive", "nonblock", "shared", "close", "timeout"], &["--timeout", "--wait"]),
    prefix("chroot", "", "").after(1).long(&["userspec", "groups", "skip-chdir"], &[]),
    prefix("unshare", "CfimnpruTUc", "RSGw").long(
        &["mount", "net", "pid", "fork", "user", "map-root-user", "ipc", "uts", "mount-proc"],
        &["--root", "--wd"],
    ),
    prefix("nsenter", "aCFimnpruTUZ", "GStrw").long(&["all", "mount", "net", "pid", "target"], &["--target"]),
    prefix("setarch", "vRFILSTXZ", "").after(1),
    prefix("taskset", "acp", "").after(1),
    prefix("chrt", "abdfiomprRv", "DPT").after(1),
    prefix("numactl", "aslHd", "imCNp"),
    prefix("prlimit", "", "").long(&["nofile", "cpu", "as", "nproc"], &[]),
    prefix("setpriv", "", "").long(&["no-new-privs", "reuid", "regid"], &["--reuid", "--regid"]),
    prefix("capsh", "", ""),
    prefix("bwrap", "", "").long(&["unshare-all"], &["--chdir", "--uid", "--gid"]),
    prefix("firejail", "", ""),
    prefix("fakeroot", "", "bfils"),
    prefix("unbuffer", "p", ""),
    prefix("rlwrap", "acEimNnorRt", "bCDefgHIlMOpPqsSTwz"),
    prefix("xvfb-run", "al", "efnps").long(&["auto-servernum"], &["--server-args"]),
    prefix("dbus-run-session", "", ""),
    prefix("catchsegv", "", ""),
    prefix("valgrind", "qv", ""),
    prefix("entr", "acdnprsxz", ""),
    prefix("expect", "", "c"),
    prefix("gosu", "", "").after(1),
    prefix("su-exec", "", "").after(1),
    prefix("caffeinate", "disu", "tw"),
    prefix("direnv", "", "").after(2),
    prefix("dotenv", "", "fe"),
    prefix("cross-env", "", "").assignments(),
    prefix("poetry-run", "", ""),
];

/// Shells: they run a text after `-c`, a file, or their input.
pub(super) const SHELL_PROGRAMS: &[&str] =
    &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "rzsh", "yash", "posh"];

/// Interpreters that run their input if no file is given.
pub(super) const INTERPRETER_PROGRAMS: &[&str] =
    &["python", "node", "perl", "ruby", "php", "lua", "tclsh", "bun", "deno"];

/// Options that name a program, or whose value contains a command.
pub(super) const RUNS_OPTION: &[(&str, &[&str])] = &[
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
];

/// Programs whose command language has an escape to a shell, such as `!` in an editor.
pub(super) const CODE_PROGRAMS: &[&str] = &[
    "vim", "vi", "nvim", "view", "ex", "ed", "emacs", "nano", "less", "more", "most", "gdb", "lldb",
    "sqlite3", "psql", "mysql", "ftp", "sftp", "telnet", "mail", "mutt", "gnuplot", "octave", "R", "ghci",
    "irb", "ipython", "dc", "bc",
];
