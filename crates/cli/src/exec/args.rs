//! The shape of `jm exec`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// Program and arguments, after `--`. No shell is used unless you name one
    #[arg(value_name = "CMD", required = true, last = true)]
    pub(crate) command: Vec<OsString>,
    /// The network: off, on (the host's, whole), or hosts (api.example.com, *.example.com) and
    /// registries (crates, npm, pypi, go, …), separated by commas [built-in: off]
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
    /// A variable that the command gets: NAME=VALUE, or NAME for the value that you have
    /// (repeatable)
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// Wall time before it is killed, such as 90s, 10m or 2h [built-in: 24h]
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    /// Memory of all its processes together before it is killed, such as 512M or 4G
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Processes and threads at once [built-in: 1024]
    #[arg(long, value_name = "N", value_parser = crate::args::parse_count::<u64>)]
    pub(crate) processes: Option<u64>,
    /// Pass it standard input, read completely first; without it, its input is empty
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
