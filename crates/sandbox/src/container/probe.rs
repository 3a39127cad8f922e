//! The test that containers confine on this machine: a script in a container tries to escape.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use journeyman_protocol::{Enforcement, RelPath, SandboxNeeds, SandboxTier};

use super::client::Daemon;
use crate::SandboxError;
use crate::request::Request;
use crate::running_command::{CompletedCommand, Outcome};

/// A canary run takes half a second; a machine under this much strain can't run commands either.
const PROBE_TIMEOUT: Duration = Duration::from_secs(60);
/// The user `nobody`, who owns the test's project where this program is root.
const NOBODY_ID: u32 = 65_534;

/// The attempts. Each line of output names an escape, as in [`ESCAPES`]. An attempt whose program
/// the image lacks (`unshare`, `nc`) can't be made; the kernel's own report on privileges and
/// interfaces is read besides.
const ESCAPE_SCRIPT: &str = r#"P=$1 O=$2 PORT=$3 AGENT=$4 TOKEN=$5 SOCK=$6 NET=$7
opens() { ( : >>"$1" ) 2>/dev/null; }
read -r seen <"$P/token"; [ "$seen" = "$TOKEN" ] || echo unseen
opens "$P/new" || echo unwritable
for f in "$O" /.canary /usr/.canary /etc/.canary /proc/sys/kernel/core_pattern /sys/kernel/.canary; do
  opens "$f" && echo write
done
( read -r x <"$O" ) 2>/dev/null && echo read
( read -r x <"$P/masked" && [ -n "$x" ] ) 2>/dev/null && echo masked
opens "$P/protected/new" && echo protected
kill -0 "$AGENT" 2>/dev/null && echo process
while read -r name value rest; do
  case "$name" in
    CapInh:|CapPrm:|CapEff:|CapBnd:|CapAmb:) case "$value" in *[!0]*) echo privilege ;; esac ;;
    NoNewPrivs:) [ "$value" = 1 ] || echo privilege ;;
    Seccomp:) [ "$value" = 2 ] || echo filter ;;
  esac
done </proc/self/status
( unshare -U true ) 2>/dev/null && echo namespace
for s in "$SOCK" /var/run/docker.sock /run/docker.sock /run/podman/podman.sock; do
  [ -e "$s" ] && echo socket
done
( echo | nc -w 2 127.0.0.1 "$PORT" ) >/dev/null 2>&1 && echo connect
if [ "$NET" = off ]; then
  while read -r name rest; do
    case "$name" in Inter-*|face*|lo:*) ;; *:*) echo interface ;; esac
  done </proc/net/dev
fi
echo done"#;

const ESCAPES: [(&str, &str); 11] = [
    ("write", "a file outside the project could be written"),
    ("read", "a file outside the project could be read"),
    ("masked", "a masked file could be read"),
    ("protected", "a protected directory could be written"),
    ("process", "a process outside could be seen"),
    ("privilege", "capabilities were left, or could be gained"),
    ("filter", "no filter of system calls was there"),
    ("namespace", "a further user namespace could be made"),
    ("socket", "the daemon's socket was there"),
    ("connect", "a server on the host's loopback could be reached"),
    ("interface", "a network interface besides loopback was there"),
];

/// The directory of a test: a project, a file beside it, a masked file and a protected directory in
/// it. Removed when dropped.
struct TestDirectory(PathBuf);

impl TestDirectory {
    fn create(token: &str) -> io::Result<Self> {
        let unique = format!("jm-canary-{}-{token}", std::process::id());
        let created = Self(Path::new("/tmp").join(unique));
        fs::create_dir(&created.0)?;
        rustix::fs::chmod(&created.0, rustix::fs::Mode::from_raw_mode(0o711))?;
        let project = created.0.join("project");
        for directory in [&project, &project.join("protected")] {
            fs::create_dir(directory)?;
            if rustix::process::geteuid().is_root() {
                std::os::unix::fs::chown(directory, Some(NOBODY_ID), Some(NOBODY_ID))?;
            }
        }
        fs::write(created.0.join("outside"), "secret\n")?;
        fs::write(project.join("masked"), "secret\n")?;
        fs::write(project.join("token"), format!("{token}\n"))?;
        Ok(created)
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        // Under a temporary directory; what can't be removed holds nothing.
        fs::remove_dir_all(&self.0).ok();
    }
}

/// A script to run in a container, which tries to escape from it.
pub(super) struct EscapeTest {
    directory: TestDirectory,
    /// Listens on the host's loopback throughout the test; the script must not reach it.
    server: TcpListener,
    token: String,
    /// The daemon's socket, which the script must not see.
    socket: PathBuf,
}

impl EscapeTest {
    /// Creates the files of the test and its server.
    pub(super) fn prepare(daemon: &Daemon) -> Result<Self, SandboxError> {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let token = format!("{:x}{:x}", now.tv_sec, now.tv_nsec);
        let directory = TestDirectory::create(&token).map_err(preparation_error)?;
        let server = TcpListener::bind(("127.0.0.1", 0)).map_err(preparation_error)?;
        Ok(Self { directory, server, token, socket: daemon.socket.clone() })
    }

    /// Returns the request that runs the script.
    pub(super) fn request(&self) -> Result<Request, SandboxError> {
        let port = self.server.local_addr().map_err(preparation_error)?.port();
        let project = self.directory.0.join("project");
        let mut argv = ["/bin/sh", "-c", ESCAPE_SCRIPT, "canary"].map(str::to_owned).to_vec();
        argv.extend([
            project.display().to_string(),
            self.directory.0.join("outside").display().to_string(),
            port.to_string(),
            std::process::id().to_string(),
            self.token.clone(),
            self.socket.display().to_string(),
            "off".to_owned(),
        ]);
        let mut request = Request::for_program(&project, argv.into_iter().map(Into::into).collect());
        request.protected = RelPath::parse("protected").into_iter().collect();
        request.masked = vec![project.join("masked")];
        request.limits.wall = PROBE_TIMEOUT;
        Ok(request)
    }

    /// Returns what a container enforces, from the script's output and the files that it must not
    /// change.
    pub(super) fn judge(
        &self,
        completed: &CompletedCommand,
        daemon: &Daemon,
    ) -> Result<Enforcement, SandboxError> {
        let outside = fs::read(self.directory.0.join("outside")).map_err(preparation_error)?;
        judge_output(completed, outside != b"secret\n", daemon)
    }
}

fn preparation_error(source: io::Error) -> SandboxError {
    SandboxError::Path { what: "preparing the container's test in", path: "/tmp".into(), source }
}

fn judge_output(
    completed: &CompletedCommand,
    outside_changed: bool,
    daemon: &Daemon,
) -> Result<Enforcement, SandboxError> {
    let unavailable = |reason: String, fix: &str| SandboxError::Unavailable { reason, fix: fix.to_owned() };
    let said: Vec<&str> = completed.stdout.text.lines().collect();
    if completed.outcome != Outcome::Exited(0) || said.last() != Some(&"done") {
        let text = super::client::to_one_line(&completed.combined.text);
        let reason = format!("the container's test ended unexpectedly: {:?} {text}", completed.outcome);
        return Err(unavailable(reason, "An image needs /bin/sh; name another in sandbox.container.image"));
    }
    if said.contains(&"unseen") {
        return Err(unavailable(
            "the daemon shows other files than this program sees".to_owned(),
            "It must run on this machine itself, not in a virtual machine, on another host or beside this container",
        ));
    }
    if said.contains(&"unwritable") {
        return Err(unavailable(
            "the project can't be written by the user whom commands run as".to_owned(),
            "The daemon maps users to others (userns-remap): use one that doesn't, or the back-end `namespaces`",
        ));
    }
    let mut leaks: Vec<&str> =
        ESCAPES.iter().filter(|(name, _)| said.contains(name)).map(|(_, what)| *what).collect();
    if outside_changed {
        leaks.push("a file outside the project was changed");
    }
    if !leaks.is_empty() {
        return Err(SandboxError::Leaks(leaks.join("; ")));
    }
    let mut gaps = Vec::new();
    if !daemon.rootless {
        gaps.push(
            "whoever reaches the daemon's socket is root here: commands don't, this program and you do"
                .to_owned(),
        );
    }
    gaps.push(
        "disk is watched, not bounded: others' writes count, and a burst of writes is seen late".to_owned(),
    );
    gaps.push("the image's own programs are believed".to_owned());
    if !daemon.bounds {
        gaps.push("this daemon bounds neither memory nor processes".to_owned());
    }
    let mut layers = vec![daemon.name.clone(), "seccomp".to_owned()];
    if daemon.rootless {
        layers.push("rootless".to_owned());
    }
    if daemon.bounds {
        layers.push("cgroup (memory, pids)".to_owned());
    }
    Ok(Enforcement {
        layers,
        gaps,
        ..Enforcement::from_needs(
            SandboxTier::Container,
            SandboxNeeds { resources_bounded: daemon.bounds, ..SandboxNeeds::ALL },
        )
    })
}
