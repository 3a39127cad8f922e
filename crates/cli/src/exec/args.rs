//! The shape of `jm exec`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

pub(crate) const HELP: &str = "\
What the command writes comes as it is to a pipe or a file, and cleaned of control sequences to a terminal (--raw: as \
it is). What was enforced, which hosts it asked for and what was denied is said on standard error at the end.

Registries for --net: alpine, conda, cpan, cran, crates, debian, deno, fedora, go, gradle, hackage, hex, maven, npm, \
nuget, packagist, pub, pypi, rubygems, rustup, ubuntu.

Exit codes: the command's own, or
    2  usage: a wrong flag, a path that isn't there, a wrong host
  123  killed for using more memory, disk, output or processor time than it was given
  124  killed at its time limit
  125  it didn't run: the sandbox refused it or couldn't be set up, or jm failed
  126  it didn't run: the program can't be executed
  127  it didn't run: the program isn't there
  130  interrupted
  141  nobody reads what it writes any more
128+N  ended by signal N

Examples:
  jm exec -- make test                         as a check runs: no network, writes to this directory alone
  jm exec --net crates,npm -- ./bootstrap.sh   with two package registries
  jm exec --net api.example.com -- ./probe     with one host, by HTTPS
  jm exec --overlay -- ./clean-up.sh           in a throw-away copy; says what it would have changed
  jm exec --read-only --timeout 30s -- sh -c 'ls -l | wc -l'";

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// Program and arguments, after `--`. There is no shell but the one you name
    #[arg(value_name = "CMD", required = true, last = true)]
    pub(crate) command: Vec<OsString>,
    /// The network: off, on (the host's, whole), or hosts (api.example.com, *.example.com) and registries (crates, npm,
    /// pypi, go, …), separated by commas [built-in: off]
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) net: Vec<String>,
    /// Hosts of --net may be asked by plain HTTP too, on port 80
    #[arg(long, requires = "net")]
    pub(crate) plain_http: bool,
    /// A further path that the command may write (repeatable)
    #[arg(long, value_name = "PATH")]
    pub(crate) rw: Vec<PathBuf>,
    /// A further path that the command may read (repeatable)
    #[arg(long, value_name = "PATH")]
    pub(crate) ro: Vec<PathBuf>,
    /// The project is read-only
    #[arg(long, conflicts_with = "overlay")]
    pub(crate) read_only: bool,
    /// Run in a throw-away copy of the project, and say what would have been changed
    #[arg(long)]
    pub(crate) overlay: bool,
    /// A variable that the command gets: NAME=VALUE, or NAME for the value that you have (repeatable)
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// Wall time before it is killed, such as 90s, 10m or 2h [built-in: 24h]
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    /// Memory of all its processes together before it is killed, such as 512M or 4G
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Processes and threads at once [built-in: 1024]
    #[arg(long, value_name = "N")]
    pub(crate) processes: Option<u64>,
    /// Give it what standard input holds, read to its end first; else it reads nothing
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Its input and output are a terminal of its own, for programs that want one
    #[arg(long)]
    pub(crate) tty: bool,
    /// Show control sequences to your terminal as they come
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,
    /// Print one JSON object at the end, with what the command wrote in it
    #[arg(long)]
    pub(crate) json: bool,
    /// As root, let it also run in sandboxes other than the strongest
    #[arg(long)]
    pub(crate) allow_root: bool,
    /// Nothing on standard error but what the command writes there
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// The project's directory instead of the current one; nothing else of your files is writable
    #[arg(short = 'C', long = "root", visible_alias = "directory", value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
}
