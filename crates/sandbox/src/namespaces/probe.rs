//! Whether the back-end works and holds here: a canary run, remembered until the next boot.

use std::fs;
use std::io::{self, Read as _};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use journeyman_protocol::{Enforcement, Needs, RelPath, Tier};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::canary::{ESCAPES, NESTED, UNFILTERED, UNRESTRICTED};
use super::hidden::Memory;
use super::plan::c_string;
use super::watch::{Ends, Seen, Watcher};
use super::wire::{Canary, Stage};
use super::{filter, hidden, prepare, restrict, start};
use crate::capture::Collector;
use crate::request::Request;
use crate::run::Outcome;
use crate::{Network, SandboxError, SandboxSettings};

/// A canary run takes milliseconds; a machine under this much strain can't run commands either.
const PATIENCE: Duration = Duration::from_secs(20);
/// A remembered result is a few hundred bytes; anything longer isn't one.
const MAX_CACHE: u64 = 64 * 1024;
/// Some 10,000 sockets' worth of the kernel's list; what comes after isn't looked at.
const MAX_SOCKETS: u64 = 1024 * 1024;
/// Sockets that a gap names.
const SOCKETS_NAMED: usize = 5;
/// Changes when what is tested does.
const CACHE_VERSION: u32 = 4;
/// The first kernel whose `pid_max` is per namespace, which is what bounds root's processes.
const OWN_PID_MAX: (u32, u32) = (6, 14);

/// What the back-end enforces, from memory on disk or by running it.
pub(crate) async fn probe(settings: &SandboxSettings) -> Result<Enforcement, SandboxError> {
    let key = settings.cache.as_ref().and_then(|_| Key::of(settings));
    if let (Some(file), Some(key)) = (&settings.cache, &key)
        && let Some(enforcement) = recall(file, key)
    {
        return Ok(enforcement);
    }
    let enforcement = run(settings).await?;
    if let (Some(file), Some(key)) = (&settings.cache, key) {
        // Only time is lost where it can't be written.
        remember(file, &Remembered { key, enforcement: enforcement.clone() }).ok();
    }
    Ok(enforcement)
}

/// What a result depends on.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Key {
    version: u32,
    boot: String,
    kernel: String,
    user: u32,
    program: (u64, u64, u64, i64, i64),
}

impl Key {
    fn of(settings: &SandboxSettings) -> Option<Self> {
        let program = settings.helper.as_deref().unwrap_or(Path::new("/proc/self/exe"));
        let found = fs::metadata(program).ok()?;
        Some(Self {
            version: CACHE_VERSION,
            boot: fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned(),
            kernel: release(),
            user: rustix::process::geteuid().as_raw(),
            program: (found.dev(), found.ino(), found.size(), found.mtime(), found.mtime_nsec()),
        })
    }
}

fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

#[derive(Serialize, Deserialize)]
struct Remembered {
    key: Key,
    enforcement: Enforcement,
}

/// A file that is missing, unreadable, cut or made by another version is as none.
fn recall(file: &Path, key: &Key) -> Option<Enforcement> {
    if fs::metadata(file).ok()?.len() > MAX_CACHE {
        return None;
    }
    let remembered: Remembered = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    (remembered.key == *key).then_some(remembered.enforcement)
}

fn remember(file: &Path, what: &Remembered) -> io::Result<()> {
    let text = serde_json::to_vec(what)?;
    let mut draft = file.as_os_str().to_owned();
    draft.push(format!(".{}", std::process::id()));
    fs::write(&draft, text)?;
    fs::rename(&draft, file)
}

/// The canaries' cage: a project, a file beside it, a masked file and a protected directory in it.
struct Cage(PathBuf);

impl Cage {
    fn make() -> io::Result<Self> {
        let unique = format!(
            "jm-canary-{}-{:x}",
            std::process::id(),
            rustix::time::clock_gettime(rustix::time::ClockId::Monotonic).tv_nsec
        );
        let cage = Self(Path::new("/tmp").join(unique));
        fs::create_dir(&cage.0)?;
        rustix::fs::chmod(&cage.0, rustix::fs::Mode::RWXU)?;
        fs::create_dir(cage.0.join("project"))?;
        fs::create_dir(cage.0.join("project/protected"))?;
        fs::write(cage.0.join("outside"), "secret")?;
        fs::write(cage.0.join("project/masked"), "secret")?;
        Ok(cage)
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        // Under a temporary directory; what can't be removed holds nothing.
        fs::remove_dir_all(&self.0).ok();
    }
}

async fn run(settings: &SandboxSettings) -> Result<Enforcement, SandboxError> {
    let unable =
        |source| SandboxError::Path { what: "preparing the sandbox's test in", path: "/tmp".into(), source };
    let cage = Cage::make().map_err(unable)?;
    // Bound and listening through the run; that nobody gets through to it is what is tested.
    let server = TcpListener::bind(("127.0.0.1", 0)).map_err(unable)?;
    let at = |name: &str| c_string(cage.0.join(name).as_os_str());
    let canary = Canary {
        port: server.local_addr().map_err(unable)?.port(),
        agent: std::process::id(),
        outside: at("outside")?,
        masked: at("project/masked")?,
        protected: at("project/protected/new")?,
        inside: at("project/new")?,
    };
    let mut request = Request::program(&cage.0.join("project"), vec!["canary".into()]);
    request.protected = RelPath::parse("protected").into_iter().collect();
    request.masked = vec![cage.0.join("project/masked")];
    request.limits.wall = PATIENCE;
    request.needs = Needs::ALL;
    // No host is listed: the listener is there, and whoever is asked for is refused.
    request.network = Network::Filtered(Arc::default());
    let job = prepare(settings, request, None, Some(canary), &Memory::default())?;
    let (collector, _live) = Collector::new(&job.limits, job.streams);
    let ends = Ends { cancel: CancellationToken::new(), dropped: CancellationToken::new() };
    let seen = Watcher::new(start(settings, &job)?, job, collector, ends, Instant::now())?.run().await?;
    let written = fs::read(cage.0.join("outside")).map_err(unable)? != b"secret";
    judge(&seen, written)
}

fn judge(seen: &Seen, outside_changed: bool) -> Result<Enforcement, SandboxError> {
    let escaped = match (&seen.outcome, seen.escaped) {
        (Outcome::Exited(0), Some(escaped)) => escaped,
        (outcome, _) => return Err(unavailable(outcome, seen.failure)),
    };
    let mut leaks: Vec<&str> =
        ESCAPES.iter().filter(|(bit, _)| escaped & bit != 0).map(|(_, what)| *what).collect();
    let landlock = restrict::supported();
    if landlock > 0 && escaped & UNRESTRICTED != 0 {
        leaks.push("Landlock was asked for and isn't in force");
    }
    if outside_changed {
        leaks.push("a file outside the project was changed");
    }
    if !leaks.is_empty() {
        return Err(SandboxError::Leaks(leaks.join("; ")));
    }
    let mut gaps = Vec::new();
    if filter::build().is_none() {
        gaps.push("no system call filter on this processor".to_owned());
    }
    if escaped & NESTED != 0 {
        gaps.push("commands can make further user namespaces".to_owned());
    }
    let network_filtered = escaped & UNFILTERED == 0;
    if !network_filtered {
        gaps.push("commands can't be given some hosts alone: the proxy wasn't reached".to_owned());
    }
    if rustix::process::geteuid().is_root() {
        gaps.push("run as root: files of root's in the mounted paths are readable to commands".to_owned());
        if kernel_version(&release()).is_none_or(|version| version < OWN_PID_MAX) {
            gaps.push("run as root: the number of processes isn't bounded before Linux 6.14".to_owned());
        }
    }
    // Where it can't be read, nothing is known to be reachable.
    let sockets = fs::File::open("/proc/net/unix").and_then(|list| {
        let mut text = Vec::new();
        list.take(MAX_SOCKETS).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    });
    let sockets = sockets.unwrap_or_default();
    let sockets = hidden::reachable_sockets(&sockets);
    if !sockets.is_empty() {
        let named = sockets.iter().take(SOCKETS_NAMED).copied().collect::<Vec<_>>().join(", ");
        let more = sockets.len().saturating_sub(SOCKETS_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        gaps.push(format!("commands can connect to services at {named}{more}"));
    }
    gaps.push("memory is bounded per process only, and only on request".to_owned());
    let mut layers = vec!["namespaces".to_owned()];
    match landlock {
        0 => gaps.push("Landlock isn't on in this kernel, so only the mounts confine writing".to_owned()),
        version => layers.push(format!("Landlock {version}")),
    }
    layers.extend(filter::build().map(|_| "seccomp".to_owned()));
    Ok(Enforcement { layers, gaps, network_filtered, ..Enforcement::meeting(Tier::Namespaces, Needs::ALL) })
}

fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Why it doesn't work here, and what helps, from where it failed and what the system looks like.
fn unavailable(outcome: &Outcome, failure: Option<(Stage, Errno)>) -> SandboxError {
    let reason = match outcome {
        Outcome::SetupFailed(what) => format!("the sandbox couldn't be set up: {what}"),
        Outcome::TimedOut => "the sandbox's test didn't end".to_owned(),
        other => format!("the sandbox's test ended unexpectedly: {other:?}"),
    };
    SandboxError::Unavailable { reason, fix: advice(failure).to_owned() }
}

/// What helps where namespaces can't be set up.
pub(super) fn advice(failure: Option<(Stage, Errno)>) -> &'static str {
    let is_set = |path: &str, wanted: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == wanted);
    let in_container = Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists();
    match failure {
        Some((Stage::Namespaces | Stage::Identity | Stage::Root, _))
            if is_set("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") =>
        {
            "AppArmor forbids user namespaces to programs without a profile: put «abi <abi/4.0>, include \
             <tunables/global> profile jm /path/to/jm flags=(unconfined) { userns, }» into /etc/apparmor.d/jm and \
             load it with «sudo apparmor_parser -r /etc/apparmor.d/jm»"
        }
        Some((Stage::Namespaces, Errno::NOSPC)) => {
            "The system allows no more user namespaces: raise user.max_user_namespaces with sysctl"
        }
        Some((Stage::Namespaces, _)) if is_set("/proc/sys/kernel/unprivileged_userns_clone", "0") => {
            "User namespaces are turned off: set kernel.unprivileged_userns_clone to 1 with sysctl"
        }
        Some((Stage::Namespaces, Errno::INVAL | Errno::NOSYS)) if !in_container => {
            "This kernel is built without the namespaces the sandbox is made of"
        }
        Some((Stage::Namespaces | Stage::Identity | Stage::Root | Stage::Step | Stage::Enter, _))
            if in_container =>
        {
            "This is a container: start it with --security-opt seccomp=unconfined --security-opt \
             systempaths=unconfined (and apparmor=unconfined where AppArmor is on)"
        }
        Some((Stage::Step, Errno::PERM)) => {
            "The system hides parts of /proc, so none can be mounted: run outside a container, or with \
             systempaths=unconfined"
        }
        Some((_, Errno::NOSYS)) => "A kernel from Linux 5.12 on is needed",
        _ => {
            "Report this with the kernel's version; commands run only if a weaker back-end is allowed by name"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_versions() {
        assert_eq!(kernel_version("6.18.44-fc-v595"), Some((6, 18)));
        assert_eq!(kernel_version("5.4"), Some((5, 4)));
        assert_eq!(kernel_version("strange"), None);
    }
}
