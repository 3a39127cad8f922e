//! Back-end 5: macOS's Seatbelt, through `sandbox-exec`.
//!
//! [`profile`] writes what a request allows in Seatbelt's own language: everything is denied but what is named, and of
//! two rules that fit the later one counts. It is pure, and tested on every system; the rest runs on macOS alone.
//!
//! Children of a command keep the profile, so it holds for the whole tree; what ends the tree is its process group,
//! which a daemon may leave.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use journeyman_protocol::{Enforcement, RelPath, SandboxTier};
use tokio_util::sync::CancellationToken;

use crate::backend::{Backend, Boxed};
use crate::request::{Request, WriteMode};
use crate::run::{Outcome, Running};
use crate::{Base, Network, SandboxError, unconfined};

/// Apple's own program; nobody but the system can change it.
const PROGRAM: &str = "/usr/bin/sandbox-exec";
/// What every program reads to start at all.
const SYSTEM: [&str; 12] = [
    "/usr",
    "/bin",
    "/sbin",
    "/System",
    "/Library/Developer",
    "/Library/Frameworks",
    "/Library/Apple",
    "/private/etc",
    "/private/var/db/timezone",
    "/private/var/select",
    "/opt",
    "/nix",
];
/// Devices that may be read and written.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/dtracehelper"];
/// Services by which programs look up users and preferences; none of them reaches a file of the user's.
const SERVICES: [&str; 2] =
    ["com.apple.system.opendirectoryd.libinfo", "com.apple.system.opendirectoryd.membership"];
/// A canary run takes milliseconds; a machine under this much strain can't run commands either.
const PATIENCE: Duration = Duration::from_secs(20);
const GAPS: [&str; 4] = [
    "other processes are visible, and a daemon may outlive its command",
    "the memory and the number of processes of a command's whole tree aren't bounded",
    "layered directories, such as build caches, are read-only",
    "Apple calls sandbox-exec deprecated; it is what there is",
];

/// The profile for a request whose private directory is `private`; `proxy` is the port on the host's loopback that is
/// its only way out.
///
/// # Errors
/// [`SandboxError::Refused`] for a path that isn't absolute, isn't UTF-8, or has control characters or `..`, and for a
/// network of some hosts without a proxy.
pub(crate) fn profile(request: &Request, private: &Path, proxy: Option<u16>) -> Result<String, SandboxError> {
    let mut out = String::from(
        "(version 1)\n(deny default)\n(allow process-fork)\n(allow process-exec*)\n(allow sysctl-read)\n\
         (allow signal (target same-sandbox))\n(allow process-info* (target same-sandbox))\n",
    );
    for service in SERVICES {
        line(&mut out, &format!("(allow mach-lookup (global-name {}))", text(service)?));
    }
    for device in DEVICES {
        line(&mut out, &format!("(allow file-read* file-write-data file-ioctl (literal {}))", text(device)?));
    }
    let system = SYSTEM.iter().map(Path::new);
    let read = request.read_only.iter().chain(&request.layered).map(PathBuf::as_path);
    let root = [request.root.as_path()];
    for path in system.chain(read).chain(root) {
        line(&mut out, &format!("(allow file-read* (subpath {}))", quoted(path)?));
        // The way there: that a directory is one, not what is in it.
        for above in path.ancestors().skip(1) {
            line(&mut out, &format!("(allow file-read-metadata (literal {}))", quoted(above)?));
        }
    }
    let own = request.writable.iter().map(PathBuf::as_path).chain([private]);
    let written = own.chain(root.into_iter().filter(|_| request.write == WriteMode::Direct));
    for path in written {
        line(&mut out, &format!("(allow file-read* file-write* (subpath {}))", quoted(path)?));
        for above in path.ancestors().skip(1) {
            line(&mut out, &format!("(allow file-read-metadata (literal {}))", quoted(above)?));
        }
    }
    network(&mut out, &request.network, proxy)?;
    // What is denied comes last, so that nothing takes it back.
    for path in request.protected.iter().chain(&request.linked) {
        protect(&mut out, &request.root, path)?;
    }
    for path in &request.masked {
        line(&mut out, &format!("(deny file-read* file-write* (subpath {}))", quoted(path)?));
    }
    line(&mut out, "(deny file-write-setugid)");
    Ok(out)
}

fn network(out: &mut String, network: &Network, proxy: Option<u16>) -> Result<(), SandboxError> {
    match (network, proxy) {
        (Network::Off, _) => {}
        (Network::Filtered(_), Some(port)) => {
            line(out, &format!("(allow network-outbound (remote ip \"localhost:{port}\"))"));
        }
        (Network::Filtered(_), None) => {
            return Err(SandboxError::Refused("a network of some hosts needs a proxy".to_owned()));
        }
        (Network::Host, _) => {
            line(out, "(allow network-outbound (remote ip))");
            line(out, "(allow network-inbound (local ip))");
            line(out, "(allow network-bind (local ip))");
            line(out, "(allow network-outbound (literal \"/private/var/run/mDNSResponder\"))");
        }
    }
    Ok(())
}

/// A protected path in any letter case, for the file system may not tell them apart, and what leads to it: renamed, it
/// would be somewhere else.
fn protect(out: &mut String, root: &Path, path: &RelPath) -> Result<(), SandboxError> {
    let relative = path.as_path();
    let mut pattern = format!("^{}", escaped(plain(root)?));
    for component in relative.components() {
        let Component::Normal(name) = component else { continue };
        pattern.push('/');
        pattern.push_str(&in_any_case(plain(Path::new(name))?));
    }
    line(out, &format!("(deny file-write* (regex #\"{pattern}(/.*)?$\"))"));
    for above in relative.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
        line(out, &format!("(deny file-write-unlink (literal {}))", quoted(&root.join(above))?));
    }
    line(out, &format!("(deny file-write-unlink (literal {}))", quoted(root)?));
    Ok(())
}

fn line(out: &mut String, text: &str) {
    // Writing to a string doesn't fail.
    writeln!(out, "{text}").ok();
}

/// A path that can be named in a profile, and means nothing else there.
fn plain(path: &Path) -> Result<&str, SandboxError> {
    let refused = |why: &str| SandboxError::Refused(format!("«{}» {why}", path.display()));
    let text = std::str::from_utf8(path.as_os_str().as_bytes())
        .map_err(|_| refused("isn't UTF-8, which Seatbelt's profiles are"))?;
    if text.chars().any(char::is_control) {
        return Err(refused("has control characters, which can't be in a Seatbelt profile"));
    }
    if path.components().any(|component| component == Component::ParentDir) {
        return Err(refused("has «..», by which Seatbelt knows no path"));
    }
    Ok(text)
}

fn quoted(path: &Path) -> Result<String, SandboxError> {
    if !path.is_absolute() {
        return Err(SandboxError::Refused(format!("«{}» must be absolute", path.display())));
    }
    text(plain(path)?)
}

/// A string of the profile's language.
fn text(text: &str) -> Result<String, SandboxError> {
    Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// A regular expression that is just this text. `#"…"` ends at a quotation mark, whatever is before it, so that is
/// written as any character.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        match c {
            '"' => out.push('.'),
            c if c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | ' ') || !c.is_ascii() => {
                out.push(c)
            }
            c => {
                out.push('\\');
                out.push(c);
            }
        }
    }
    out
}

fn in_any_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 4);
    for c in text.chars() {
        if c.is_ascii_alphabetic() {
            write!(out, "[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase()).ok();
        } else if c.is_alphabetic() {
            // Which letters a file system takes for the same is its own business.
            out.push('.');
        } else {
            out.push_str(&escaped(&c.to_string()));
        }
    }
    out
}

/// The back-end.
#[derive(Debug)]
pub(crate) struct Seatbelt {
    program: PathBuf,
}

impl Seatbelt {
    #[cfg(target_os = "macos")]
    pub(crate) fn new() -> Self {
        Self { program: PathBuf::from(PROGRAM) }
    }

    /// The request as one of `sandbox-exec`, and its private directory.
    fn wrapped(&self, mut request: Request) -> Result<(Request, Private), SandboxError> {
        let root = request.root.clone();
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let private = Private::make()?;
        // Seatbelt compares what a path comes to, links followed.
        request.root = real(&request.root);
        if let Some(Base::Directory { path, .. }) = &request.base {
            request.root = real(path);
        }
        for list in [&mut request.read_only, &mut request.layered, &mut request.writable, &mut request.masked]
        {
            list.iter_mut().for_each(|path| *path = real(path));
        }
        let profile = profile(&request, &private.0, None)?;
        request.root = root;
        for name in ["TMPDIR", "TMP", "TEMP"] {
            request.env.insert(name.into(), private.0.clone().into());
        }
        if request.variable("HOME").is_some() {
            request.env.insert("HOME".into(), private.0.clone().into());
        }
        let mut argv: Vec<_> = [self.program.as_os_str()].map(Into::into).to_vec();
        argv.extend(["-p".into(), profile.into(), "--".into()]);
        argv.append(&mut request.argv);
        request.argv = argv;
        Ok((request, private))
    }

    async fn start(
        &self,
        request: Request,
        enforcement: Enforcement,
        cancel: CancellationToken,
    ) -> Result<Running, SandboxError> {
        let (request, private) = self.wrapped(request)?;
        unconfined::spawn(request, enforcement, cancel, Some(Box::new(private)))
    }

    /// Runs the real thing on canaries: whatever gets out marks it broken.
    async fn test(&self) -> Result<Enforcement, SandboxError> {
        if !self.program.exists() {
            return Err(SandboxError::Unavailable {
                reason: format!("there is no «{}»", self.program.display()),
                fix: "Seatbelt is macOS's".to_owned(),
            });
        }
        let place = Private::make()?;
        let error = |source| SandboxError::Path {
            what: "preparing the sandbox's test in",
            path: place.0.clone(),
            source,
        };
        let at = |name: &str| place.0.join(name);
        fs::create_dir_all(at("project/.git")).map_err(error)?;
        fs::write(at("outside"), "secret").map_err(error)?;
        fs::write(at("project/masked"), "secret").map_err(error)?;
        let server = TcpListener::bind(("127.0.0.1", 0)).map_err(error)?;
        let port = server.local_addr().map_err(error)?.port();
        server.set_nonblocking(true).map_err(error)?;
        let root = at("project").canonicalize().map_err(error)?;
        let script = format!(
            "cat ../outside masked; echo x > ../outside; echo x > .git/new; echo x > .GIT/other; mv .git away; \
             echo x | /usr/bin/nc -w 1 127.0.0.1 {port}; echo ok > inside"
        );
        let mut request = Request::shell(&root, &script);
        request.masked = vec![root.join("masked")];
        request.limits.wall = PATIENCE;
        let enforcement = Enforcement {
            gaps: GAPS.map(str::to_owned).to_vec(),
            layers: vec!["seatbelt".to_owned()],
            ..Enforcement::from_needs(SandboxTier::Seatbelt, SandboxTier::Seatbelt.max_needs())
        };
        let running = self.start(request, enforcement.clone(), CancellationToken::new()).await?;
        let completed = running.wait().await?;
        let mut leaks = Vec::new();
        let mut leak = |got_out: bool, what: &'static str| {
            if got_out {
                leaks.push(what);
            }
        };
        leak(completed.combined.text.contains("secret"), "a hidden file could be read");
        leak(fs::read(at("outside")).ok().as_deref() != Some(b"secret"), "a file outside could be written");
        leak(
            fs::read_dir(at("project/.git")).map_or(true, |mut entries| entries.next().is_some()),
            "a protected directory could be changed",
        );
        leak(server.accept().is_ok(), "a server on the loopback could be reached");
        if !leaks.is_empty() {
            return Err(SandboxError::Leaks(leaks.join("; ")));
        }
        if completed.outcome != Outcome::Exited(0) || !at("project/inside").exists() {
            let said: String = completed.combined.text.chars().take(300).collect();
            return Err(SandboxError::Unavailable {
                reason: format!("the sandbox's test ended unexpectedly: {:?}: {said}", completed.outcome),
                fix: "A program that is itself in a Seatbelt sandbox can't make another; else report this with the \
                      system's version"
                    .to_owned(),
            });
        }
        Ok(enforcement)
    }
}

impl Backend for Seatbelt {
    fn tier(&self) -> SandboxTier {
        SandboxTier::Seatbelt
    }

    fn probe(&self) -> Boxed<'_, Result<Enforcement, SandboxError>> {
        Box::pin(self.test())
    }

    fn spawn(
        &self,
        request: Request,
        enforcement: Enforcement,
        cancel: CancellationToken,
    ) -> Boxed<'_, Result<Running, SandboxError>> {
        Box::pin(self.start(request, enforcement, cancel))
    }
}

/// A directory for one command, removed when it is over.
struct Private(PathBuf);

impl Private {
    fn make() -> Result<Self, SandboxError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let nanoseconds = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic).tv_nsec;
        let name = format!("jm-private-{}-{count}-s{nanoseconds:x}", std::process::id());
        let error = |path: &Path| {
            let path = path.to_owned();
            move |source| SandboxError::Path { what: "the command's private directory", path, source }
        };
        // A link to `/private/tmp` there, whose real name is what Seatbelt compares.
        let above = Path::new("/tmp").canonicalize().map_err(error(Path::new("/tmp")))?;
        let path = above.join(name);
        fs::create_dir(&path).map_err(error(&path))?;
        let private = Self(path);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(&private.0, mode).map_err(error(&private.0))?;
        Ok(private)
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // What can't be removed lies where such things do.
        fs::remove_dir_all(&self.0).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::sync::Arc;

    use super::*;

    const PRIVATE: &str = "/private/tmp/x";

    fn request(root: &str) -> Request {
        Request::shell(Path::new(root), "make")
    }

    fn lines(request: &Request) -> Vec<String> {
        let text = profile(request, Path::new(PRIVATE), None).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn everything_is_denied_but_what_is_named() {
        let mut request = request("/w/p");
        request.read_only = vec!["/tools".into()];
        request.writable = vec!["/out".into()];
        request.masked = vec!["/tools/key".into()];
        let lines = lines(&request);
        assert_eq!(lines[..2], ["(version 1)", "(deny default)"]);
        let has = |line: &str| lines.iter().any(|one| one == line);
        for line in [
            "(allow file-read* (subpath \"/usr\"))",
            "(allow file-read* (subpath \"/tools\"))",
            "(allow file-read* (subpath \"/w/p\"))",
            "(allow file-read-metadata (literal \"/w\"))",
            "(allow file-read* file-write* (subpath \"/out\"))",
            "(allow file-read* file-write* (subpath \"/private/tmp/x\"))",
            "(allow file-read* file-write* (subpath \"/w/p\"))",
            "(deny file-write* (regex #\"^/w/p/\\.[gG][iI][tT](/.*)?$\"))",
            "(deny file-write-unlink (literal \"/w/p\"))",
            "(deny file-read* file-write* (subpath \"/tools/key\"))",
        ] {
            assert!(has(line), "{line}\n{}", lines.join("\n"));
        }
        assert!(!lines.iter().any(|line| line.contains("network") || line.contains("\"/Users")));
        // Of two rules that fit the later counts: nothing is allowed after the first denial but the default's.
        let denied = lines.iter().skip(2).position(|line| line.starts_with("(deny")).unwrap() + 2;
        assert!(lines[denied..].iter().all(|line| line.starts_with("(deny")), "{}", lines.join("\n"));
        request.write = WriteMode::ReadOnly;
        assert!(
            !self::lines(&request).contains(&"(allow file-read* file-write* (subpath \"/w/p\"))".to_owned())
        );
    }

    #[test]
    fn what_leads_to_a_protected_path_stays_where_it_is() {
        let mut request = request("/w");
        request.protected = RelPath::parse("sub/deep/.git").into_iter().collect();
        let lines = lines(&request);
        for line in [
            "(deny file-write* (regex #\"^/w/[sS][uU][bB]/[dD][eE][eE][pP]/\\.[gG][iI][tT](/.*)?$\"))",
            "(deny file-write-unlink (literal \"/w/sub/deep\"))",
            "(deny file-write-unlink (literal \"/w/sub\"))",
            "(deny file-write-unlink (literal \"/w\"))",
        ] {
            assert!(lines.iter().any(|one| one == line), "{line}\n{}", lines.join("\n"));
        }
    }

    #[test]
    fn the_network_is_off_a_proxy_or_the_hosts() {
        let of = |network: Network, proxy| {
            let request = Request { network, ..request("/w") };
            let text = profile(&request, Path::new(PRIVATE), proxy)?;
            let lines = text.lines().filter(|line| line.contains("network"));
            Ok::<_, SandboxError>(lines.map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(of(Network::Off, Some(3128)).unwrap(), Vec::<String>::new());
        assert_eq!(
            of(Network::Filtered(Arc::default()), Some(3128)).unwrap(),
            ["(allow network-outbound (remote ip \"localhost:3128\"))"]
        );
        assert!(of(Network::Filtered(Arc::default()), None).is_err());
        assert!(of(Network::Host, None).unwrap().len() > 1);
    }

    #[test]
    fn hostile_paths_stay_strings_or_are_refused() {
        let hostile = r#"/w/a") (allow default) ("b\"#;
        let lines = lines(&request(hostile));
        let written = r#"(allow file-read* file-write* (subpath "/w/a\") (allow default) (\"b\\"))"#;
        assert!(lines.iter().any(|line| line == written), "{}", lines.join("\n"));
        assert!(!lines.iter().any(|line| line == "(allow default)"));
        // In a regular expression nothing but the path's own text is meant, and no quotation mark ends it.
        let regex = lines.iter().find(|line| line.contains("regex")).unwrap();
        assert_eq!(regex.matches('"').count(), 2, "{regex}");
        assert!(regex.contains(r"^/w/a.\) \(allow default\) \(.b\\/\.[gG]"), "{regex}");
        for wrong in ["/w/a\nb", "/w/\u{1b}[0m", "/w/../etc", "relative"] {
            let refused = profile(&request(wrong), Path::new(PRIVATE), None);
            assert!(matches!(refused, Err(SandboxError::Refused(_))), "{wrong:?}");
        }
        let mut odd = request("/w");
        odd.read_only = vec![PathBuf::from(OsStr::from_bytes(b"/w/\xff"))];
        assert!(profile(&odd, Path::new(PRIVATE), None).is_err());
    }

    fn fake(place: &Path, script: &str) -> Seatbelt {
        let program = place.join("sandbox-exec");
        // By another process: what this one holds open for writing could leak into a test that starts a program at the
        // same time, and couldn't be executed.
        let mut writer = std::process::Command::new("sh")
            .args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"])
            .arg(&program)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let text = format!("#!/bin/sh\n{script}\n");
        std::io::Write::write_all(&mut writer.stdin.take().unwrap(), text.as_bytes()).unwrap();
        assert!(writer.wait().unwrap().success());
        Seatbelt { program }
    }

    #[tokio::test]
    async fn one_that_confines_nothing_is_found_out_and_one_that_runs_nothing_does_not_work() {
        let place = tempfile::tempdir().unwrap();
        let liar = fake(place.path(), "shift 3; exec \"$@\"");
        let error = liar.test().await.unwrap_err();
        assert!(matches!(&error, SandboxError::Leaks(what) if what.contains("hidden file")), "{error}");
        let broken = fake(place.path(), "echo 'sandbox_apply: Operation not permitted' >&2; exit 71");
        let error = broken.test().await.unwrap_err();
        assert!(
            matches!(&error, SandboxError::Unavailable { reason, .. } if reason.contains("sandbox_apply"))
        );
        let missing = Seatbelt { program: place.path().join("nothing") };
        assert!(matches!(missing.test().await, Err(SandboxError::Unavailable { .. })));
    }
}
