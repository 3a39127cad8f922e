//! The test that a back-end works and confines on this machine: a canary run, whose result is
//! cached until the next boot.

use std::ffi::CString;
use std::fs;
use std::io::{self, Read as _};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use journeyman_protocol::{Enforcement, RelPath, SandboxNeeds, SandboxTier};
use serde::{Deserialize, Serialize};

use super::advice::setup_advice;
use super::c_string::to_c_string;
use super::canary::{
    BEYOND_LANDLOCK, ESCAPES, LANDLOCK_MISSING, MEMORY_UNCOUNTED, METADATA_CHANGED, NAMESPACE_NESTED,
    PROXY_MISSING,
};
use super::policy::CanaryTargets;
use super::seccomp_filter::Confinement;
use super::watcher::{CommandObservation, Watcher};
use super::{hidden_files, landlock_rules, seccomp_filter};
use crate::request::Request;
use crate::running_command::Outcome;
use crate::{Network, SandboxError, SandboxSettings};

/// A canary run takes milliseconds; a machine under this much strain can't run commands either.
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);
/// A remembered result is a few hundred bytes; anything longer isn't one.
const MAX_CACHE_BYTES: u64 = 64 * 1024;
/// Some 10,000 sockets' worth of the kernel's list; what comes after isn't looked at.
const MAX_SOCKET_LIST_BYTES: u64 = 1024 * 1024;
/// A mount also shows files that are created later.
const LATE_SOCKETS_GAP: &str =
    "sockets that your programs make in the project after a command began can be connected to by it";
/// The gap where the kernel didn't hand calls to the supervisor.
pub(super) const METADATA_GAP: &str =
    "modes, times and owners of your files outside the project can be changed";
/// Maximum sockets that a gap names.
const MAX_SOCKETS_NAMED: usize = 5;
/// The version of the tests; a change invalidates remembered results.
const CACHE_VERSION: u32 = 7;
/// The first kernel whose `pid_max` is per namespace, which is what bounds root's processes.
const PID_MAX_KERNEL_VERSION: (u32, u32) = (6, 14);

/// The back-end to test.
pub(super) struct ProbedBackend {
    pub(super) tier: SandboxTier,
    /// The program besides the helper that it depends on.
    pub(super) program: Option<FileIdentity>,
    /// The guarantees that the back-end lacks by its nature.
    pub(super) gaps: Vec<String>,
    /// The control groups that its commands are in: of memory, and of processes.
    pub(super) groups: (bool, bool),
}

/// The identity of a file: device, inode, size, time of change in seconds and nanoseconds.
pub(super) type FileIdentity = (u64, u64, u64, i64, i64);

/// Returns what the back-end enforces, from the file on disk or by running it: `start` starts the
/// canaries in place of a command.
pub(super) async fn probe_backend(
    settings: &SandboxSettings,
    probed: &ProbedBackend,
    start: impl FnOnce(Request, CanaryTargets<CString>) -> Result<Watcher, SandboxError> + Send,
) -> Result<Enforcement, SandboxError> {
    let file = settings.cache.as_ref().map(|file| cache_file(file, probed.tier));
    let key = file.as_ref().and_then(|_| CacheKey::for_backend(settings, probed));
    if let (Some(file), Some(key)) = (&file, &key)
        && let Some(enforcement) = read_cached(file, key)
    {
        return Ok(enforcement);
    }
    let enforcement = run_canaries(probed, start).await?;
    if let (Some(file), Some(key)) = (&file, key) {
        // A result that can't be written only costs time.
        write_cached(file, &CachedResult { key, enforcement: enforcement.clone() }).ok();
    }
    Ok(enforcement)
}

/// Returns the file of a back-end's own result.
fn cache_file(file: &Path, tier: SandboxTier) -> PathBuf {
    if tier == SandboxTier::Namespaces {
        return file.to_owned();
    }
    let mut name = file.as_os_str().to_owned();
    name.push(format!("-{tier}"));
    name.into()
}

/// The facts that a result depends on.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CacheKey {
    version: u32,
    boot: String,
    kernel: String,
    user: u32,
    program: FileIdentity,
    #[serde(default)]
    other: Option<FileIdentity>,
    /// The control groups that there are, as in [`Probed`].
    groups: (bool, bool),
    /// The process's namespaces, rights and settings.
    surroundings: Vec<String>,
}

/// A container has the host's boot and kernel, and may have the same home and program.
const NAMESPACE_KINDS: [&str; 6] = ["user", "mnt", "pid", "net", "ipc", "cgroup"];
/// Settings that may forbid namespaces from one moment to the next.
const SETTING_FILES: [&str; 6] = [
    "/proc/sys/user/max_user_namespaces",
    "/proc/sys/user/max_mnt_namespaces",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/self/attr/current",
    "/sys/kernel/security/lsm",
];
/// Lines of a process's status.
const STATUS_FIELDS: [&str; 4] = ["CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:"];

/// Returns the facts for which the same kernel may give another result.
fn process_surroundings() -> Vec<String> {
    let name = |namespace| fs::read_link(Path::new("/proc/self/ns").join(namespace)).unwrap_or_default();
    let namespaces = NAMESPACE_KINDS.iter().map(|namespace| name(namespace).to_string_lossy().into_owned());
    // A missing file counts as empty.
    let settings =
        SETTING_FILES.iter().map(|file| fs::read_to_string(file).unwrap_or_default().trim().to_owned());
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let status = status
        .lines()
        .filter(|line| STATUS_FIELDS.iter().any(|name| line.starts_with(name)))
        .map(str::to_owned);
    namespaces.chain(settings).chain(status).collect()
}

impl CacheKey {
    fn for_backend(settings: &SandboxSettings, probed: &ProbedBackend) -> Option<Self> {
        let program = settings.helper.as_deref().unwrap_or(Path::new("/proc/self/exe"));
        let found = fs::metadata(program).ok()?;
        Some(Self {
            version: CACHE_VERSION,
            boot: fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned(),
            kernel: kernel_release(),
            user: rustix::process::geteuid().as_raw(),
            program: (found.dev(), found.ino(), found.size(), found.mtime(), found.mtime_nsec()),
            other: probed.program,
            groups: probed.groups,
            surroundings: process_surroundings(),
        })
    }
}

fn kernel_release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

#[derive(Serialize, Deserialize)]
struct CachedResult {
    key: CacheKey,
    enforcement: Enforcement,
}

/// Reads a remembered result. A file that is missing, unreadable, cut or of another version has
/// none.
fn read_cached(file: &Path, key: &CacheKey) -> Option<Enforcement> {
    if fs::metadata(file).ok()?.len() > MAX_CACHE_BYTES {
        return None;
    }
    let remembered: CachedResult = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    (remembered.key == *key).then_some(remembered.enforcement)
}

fn write_cached(file: &Path, what: &CachedResult) -> io::Result<()> {
    let text = serde_json::to_vec(what)?;
    let mut draft = file.as_os_str().to_owned();
    draft.push(format!(".{}", std::process::id()));
    fs::write(&draft, text)?;
    fs::rename(&draft, file)
}

/// The directory of a canary run: a project, a file beside it, a masked file and a protected
/// directory in it.
struct CanaryProject(PathBuf);

impl CanaryProject {
    fn create() -> io::Result<Self> {
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

impl Drop for CanaryProject {
    fn drop(&mut self) {
        // Under a temporary directory; what can't be removed holds nothing.
        fs::remove_dir_all(&self.0).ok();
    }
}

async fn run_canaries(
    probed: &ProbedBackend,
    start: impl FnOnce(Request, CanaryTargets<CString>) -> Result<Watcher, SandboxError> + Send,
) -> Result<Enforcement, SandboxError> {
    let unable =
        |source| SandboxError::Path { what: "preparing the sandbox's test in", path: "/tmp".into(), source };
    let cage = CanaryProject::create().map_err(unable)?;
    // Listens through the whole run; the test is that no connection reaches it.
    let server = TcpListener::bind(("127.0.0.1", 0)).map_err(unable)?;
    let at = |name: &str| to_c_string(cage.0.join(name).as_os_str());
    let canary = CanaryTargets {
        port: server.local_addr().map_err(unable)?.port(),
        agent: std::process::id(),
        outside: at("outside")?,
        masked: at("project/masked")?,
        protected: at("project/protected/new")?,
        inside: at("project/new")?,
    };
    let mut request = Request::for_program(&cage.0.join("project"), vec!["canary".into()]);
    request.protected = RelPath::parse("protected").into_iter().collect();
    request.masked = vec![cage.0.join("project/masked")];
    request.limits.wall = PROBE_TIMEOUT;
    request.needs = SandboxNeeds::ALL;
    // No host is listed: the listener exists, and every host is refused.
    request.network = Network::Filtered(Arc::default());
    let seen = start(request, canary)?.run().await?;
    let written = fs::read(cage.0.join("outside")).map_err(unable)? != b"secret";
    judge_canaries(probed, &seen, written)
}

fn judge_canaries(
    probed: &ProbedBackend,
    seen: &CommandObservation,
    outside_changed: bool,
) -> Result<Enforcement, SandboxError> {
    let escaped = match (&seen.outcome, seen.escaped) {
        (Outcome::Exited(0), Some(escaped)) => escaped,
        _ => return Err(unavailable_error(seen)),
    };
    let landlock_alone = probed.tier == SandboxTier::Landlock;
    let known = if landlock_alone { BEYOND_LANDLOCK } else { 0 };
    let mut leaks: Vec<&str> =
        ESCAPES.iter().filter(|(bit, _)| escaped & bit & !known != 0).map(|(_, what)| *what).collect();
    let landlock = landlock_rules::landlock_version();
    if landlock > 0 && escaped & LANDLOCK_MISSING != 0 {
        leaks.push("Landlock was asked for and isn't in force");
    }
    if outside_changed {
        leaks.push("a file outside the project was changed");
    }
    if !leaks.is_empty() {
        return Err(SandboxError::Leaks(leaks.join("; ")));
    }
    let (tier, mut gaps) = (probed.tier, probed.gaps.clone());
    if seccomp_filter::build_filter(Confinement::Namespaces).is_none() {
        gaps.push("no system call filter on this processor".to_owned());
    }
    if escaped & METADATA_CHANGED != 0 {
        gaps.push(METADATA_GAP.to_owned());
    }
    if escaped & NAMESPACE_NESTED != 0 {
        gaps.push("commands can make further user namespaces".to_owned());
    }
    let network_filtered = escaped & PROXY_MISSING == 0 && !landlock_alone;
    if !network_filtered && !landlock_alone {
        gaps.push("commands can't be given some hosts alone: the proxy wasn't reached".to_owned());
    }
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        gaps.push("run as root: files of root's in the mounted paths are readable to commands".to_owned());
    }
    let groups = probed.groups;
    let own_pid_max = tier == SandboxTier::Namespaces
        && parse_kernel_version(&kernel_release()).is_some_and(|version| version >= PID_MAX_KERNEL_VERSION);
    let processes_bounded = groups.1 || !is_root || own_pid_max;
    if !processes_bounded {
        gaps.push("run as root: the number of processes isn't bounded".to_owned());
    }
    // Without a process namespace a command's processes can't be told from the user's others.
    let counted = !landlock_alone && escaped & MEMORY_UNCOUNTED == 0;
    match (groups.0, counted) {
        (true, _) => {}
        (false, true) => gaps.push(
            "memory is bounded by looking twenty times a second; files in memory that a process hides aren't counted"
                .to_owned(),
        ),
        (false, false) => gaps.push("the memory of a command's whole tree isn't bounded".to_owned()),
    }
    gaps.extend(describe_reachable_services().into_iter().filter(|_| !landlock_alone));
    if !landlock_alone {
        gaps.push(LATE_SOCKETS_GAP.to_owned());
    }
    let mut layers: Vec<String> = (!landlock_alone).then(|| tier.to_string()).into_iter().collect();
    match landlock {
        0 => gaps.push("Landlock isn't on in this kernel, so only the mounts confine writing".to_owned()),
        version => layers.push(format!("Landlock {version}")),
    }
    match groups {
        (true, true) => layers.push("cgroup (memory, pids)".to_owned()),
        (true, false) => layers.push("cgroup (memory)".to_owned()),
        (false, true) => layers.push("cgroup (pids)".to_owned()),
        (false, false) => {}
    }
    layers.extend(seccomp_filter::build_filter(Confinement::Namespaces).map(|_| "seccomp".to_owned()));
    Ok(Enforcement {
        resources_bounded: (groups.0 || counted) && processes_bounded,
        network_filtered,
        layers,
        gaps,
        ..Enforcement::from_needs(tier, tier.max_needs())
    })
}

/// Returns the services that commands can connect to, as a gap.
fn describe_reachable_services() -> Option<String> {
    // If the list can't be read, no socket is known to be reachable.
    let list = fs::File::open("/proc/net/unix").ok()?;
    let mut text = Vec::new();
    list.take(MAX_SOCKET_LIST_BYTES).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let sockets = hidden_files::find_reachable_sockets(&text);
    let named = sockets.iter().take(MAX_SOCKETS_NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = sockets.len().saturating_sub(MAX_SOCKETS_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!sockets.is_empty()).then(|| format!("commands can connect to services at {named}{more}"))
}

fn parse_kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Returns the reason why the back-end doesn't work here, with advice, from the failed step and the
/// system's settings.
fn unavailable_error(seen: &CommandObservation) -> SandboxError {
    let said = seen.last_line_with("bwrap: ").unwrap_or_default();
    let reason = match &seen.outcome {
        Outcome::SetupFailed(what) if !said.is_empty() => {
            format!("the sandbox couldn't be set up: {what}: {said}")
        }
        Outcome::SetupFailed(what) => format!("the sandbox couldn't be set up: {what}"),
        Outcome::TimedOut => "the sandbox's test didn't end".to_owned(),
        other => format!("the sandbox's test ended unexpectedly: {other:?}"),
    };
    SandboxError::Unavailable { reason, fix: setup_advice(seen.failure, &said).to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_versions() {
        assert_eq!(parse_kernel_version("6.18.44-fc-v595"), Some((6, 18)));
        assert_eq!(parse_kernel_version("5.4"), Some((5, 4)));
        assert_eq!(parse_kernel_version("strange"), None);
    }
}
