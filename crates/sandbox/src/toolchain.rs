//! The host's toolchains that a command must see, and their environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::credentials::{holds_credentials, list_files};

/// The caller's environment; this crate doesn't read it by itself.
#[derive(Debug, Clone, Default)]
pub struct HostEnvironment {
    /// All variables.
    pub vars: BTreeMap<OsString, OsString>,
    /// The home directory.
    pub home: Option<PathBuf>,
}

/// The additions of [`Request::with_toolchains`](crate::Request::with_toolchains).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Toolchains {
    /// Directories to mount read-only.
    pub read_only: Vec<PathBuf>,
    /// Caches: readable, writes go to a throw-away layer.
    pub layered: Vec<PathBuf>,
    /// Credential files beneath them, hidden.
    pub masked: Vec<PathBuf>,
    /// The environment, from an allow-list.
    pub env: BTreeMap<OsString, OsString>,
    /// Further variables for a command without network, so that tools fail at once and don't wait
    /// for hosts.
    pub offline: BTreeMap<OsString, OsString>,
}

/// Mounted in every sandbox; nothing beneath them need be listed.
pub(crate) const SYSTEM_DIRECTORIES: [&str; 10] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix"];

/// A toolchain's home: the variable that moves it, where it is else (beneath the home directory),
/// which of its parts are caches, and which hold credentials.
struct ToolchainHome {
    variable: &'static str,
    default: &'static str,
    caches: &'static [&'static str],
    secrets: &'static [&'static str],
}

const fn new_toolchain_home(
    variable: &'static str,
    default: &'static str,
    caches: &'static [&'static str],
    secrets: &'static [&'static str],
) -> ToolchainHome {
    ToolchainHome { variable, default, caches, secrets }
}

/// Homes and caches as the tools' own documentation names them. `"."` makes the whole home a cache.
const TOOLCHAIN_HOMES: &[ToolchainHome] = &[
    new_toolchain_home("CARGO_HOME", ".cargo", &["registry", "git"], &["credentials", "credentials.toml"]),
    new_toolchain_home("RUSTUP_HOME", ".rustup", &[], &[]),
    new_toolchain_home("NVM_DIR", ".nvm", &[".cache"], &[]),
    new_toolchain_home("FNM_DIR", ".local/share/fnm", &[], &[]),
    new_toolchain_home("VOLTA_HOME", ".volta", &[], &[]),
    new_toolchain_home("BUN_INSTALL", ".bun", &["install/cache"], &[]),
    new_toolchain_home("DENO_DIR", ".cache/deno", &["."], &[]),
    new_toolchain_home("", ".deno", &[], &[]),
    new_toolchain_home("npm_config_cache", ".npm", &["."], &[]),
    new_toolchain_home("PNPM_HOME", ".local/share/pnpm", &["store"], &["rc"]),
    new_toolchain_home("", ".cache/pnpm", &["."], &[]),
    new_toolchain_home("", ".cache/yarn", &["."], &[]),
    new_toolchain_home("YARN_CACHE_FOLDER", ".yarn", &["."], &[]),
    new_toolchain_home("PYENV_ROOT", ".pyenv", &[], &[]),
    new_toolchain_home("RBENV_ROOT", ".rbenv", &[], &[]),
    new_toolchain_home("ASDF_DATA_DIR", ".asdf", &[], &[]),
    new_toolchain_home("MISE_DATA_DIR", ".local/share/mise", &[], &[]),
    new_toolchain_home("SDKMAN_DIR", ".sdkman", &[], &[]),
    new_toolchain_home("", ".local/bin", &[], &[]),
    new_toolchain_home("", ".local/lib", &[], &[]),
    new_toolchain_home("", ".local/share/uv", &[], &["credentials"]),
    new_toolchain_home("", ".local/share/pipx", &[], &[]),
    new_toolchain_home("PIP_CACHE_DIR", ".cache/pip", &["."], &[]),
    new_toolchain_home("UV_CACHE_DIR", ".cache/uv", &["."], &[]),
    new_toolchain_home("GOROOT", "", &[], &[]),
    new_toolchain_home("", "sdk", &[], &[]),
    new_toolchain_home("GOPATH", "go", &["pkg"], &[]),
    new_toolchain_home("GOMODCACHE", "go/pkg/mod", &["."], &[]),
    new_toolchain_home("GOCACHE", ".cache/go-build", &["."], &[]),
    new_toolchain_home("", ".m2", &["."], &["settings.xml", "settings-security.xml"]),
    new_toolchain_home("GRADLE_USER_HOME", ".gradle", &["."], &["gradle.properties"]),
    new_toolchain_home("GEM_HOME", ".gem", &["."], &["credentials"]),
    new_toolchain_home("VIRTUAL_ENV", "", &[], &["pip.conf"]),
    new_toolchain_home("JAVA_HOME", "", &[], &[]),
];

/// A home whose sources are other projects: only its programs and its caches are shown.
const PROGRAMS_ONLY_HOME: &str = "GOPATH";

/// Settings of homes (named by their variable) that may hold tokens and passwords of proxies; of a
/// directory, the files in it. They are hidden only then: builds need them.
const HOME_CREDENTIAL_SETTINGS: [(&str, &str); 5] = [
    ("CARGO_HOME", "config.toml"),
    ("CARGO_HOME", "config"),
    ("GRADLE_USER_HOME", "init.gradle"),
    ("GRADLE_USER_HOME", "init.gradle.kts"),
    ("GRADLE_USER_HOME", "init.d"),
];

/// Files with credentials that lie in homes or in directories of `PATH`, whatever the tool.
const SECRET_FILE_NAMES: [&str; 8] =
    [".npmrc", ".yarnrc.yml", ".pypirc", ".netrc", "_netrc", ".git-credentials", "pip.conf", ".env"];

/// Variables that are passed unchanged. The homes of [`TOOLCHAIN_HOMES`] are set too.
const PASSED_VARIABLES: [&str; 26] = [
    "LANG",
    "LANGUAGE",
    "TZ",
    "USER",
    "LOGNAME",
    "SHELL",
    "RUSTUP_TOOLCHAIN",
    "RUSTFLAGS",
    "RUSTDOCFLAGS",
    "RUST_BACKTRACE",
    "CARGO_BUILD_JOBS",
    "GOFLAGS",
    "GOOS",
    "GOARCH",
    "CGO_ENABLED",
    "PYENV_VERSION",
    "RBENV_VERSION",
    "NODE_ENV",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "MAKEFLAGS",
    "PKG_CONFIG_PATH",
    "SOURCE_DATE_EPOCH",
];

/// Variables that are set to these values, whatever the host's: no terminal, no prompt, no pager,
/// no editor.
const FIXED_VARIABLES: [(&str, &str); 16] = [
    ("TERM", "dumb"),
    ("CI", "1"),
    ("TMPDIR", "/tmp"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "false"),
    ("EDITOR", "false"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    // Git runs what a repository's settings name, and a repository may be planted. These win over
    // its own.
    ("GIT_CONFIG_COUNT", "3"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_1", "explicit"),
    ("GIT_CONFIG_KEY_2", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_2", "/dev/null"),
];

const OFFLINE_VARIABLES: [(&str, &str); 7] = [
    ("CARGO_NET_OFFLINE", "true"),
    ("npm_config_offline", "true"),
    ("GOPROXY", "off"),
    ("GOTOOLCHAIN", "local"),
    ("PIP_NO_INDEX", "1"),
    ("UV_OFFLINE", "1"),
    ("MAVEN_ARGS", "-o"),
];

/// A name with one of these is taken for a secret's and never passed, even if allow-listed by
/// pattern.
const SECRET_WORDS: [&str; 7] = ["TOKEN", "SECRET", "KEY", "PASS", "AUTH", "CRED", "COOKIE"];

/// Finds the toolchains: directories of `PATH` and known homes, as far as they exist. Looks at the
/// file system only to see what exists; gives the same for the same host.
///
/// The home directory itself, a directory above it, and what lies in `root` are never listed.
/// Directories of `PATH` in the project come last, so that a planted `git` or `cc` isn't found
/// first.
#[must_use]
pub fn find_toolchains(host: &HostEnvironment, root: &Path) -> Toolchains {
    let mut found = Toolchains::default();
    let home = host.home.as_deref().filter(|home| home.is_absolute());
    let mut add = ToolchainFinder { root, home, found: &mut found };
    for entry in TOOLCHAIN_HOMES {
        add.add_toolchain(host, entry);
    }
    let path = host.vars.get(OsStr::new("PATH")).cloned().unwrap_or_default();
    let (ours, mut directories): (Vec<_>, Vec<_>) = std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .partition(|directory| directory.starts_with(root));
    for directory in &directories {
        add.add_read_only(directory);
    }
    if let Some(home) = home {
        for name in [".npmrc", ".pypirc", ".netrc"] {
            add.add_secret(&home.join(name));
        }
    }
    directories.extend(ours);
    let mut seen = std::collections::BTreeSet::new();
    directories.retain(|directory| seen.insert(directory.clone()));
    found.env.extend(build_command_environment(host, home));
    if let Ok(path) = std::env::join_paths(directories) {
        found.env.insert("PATH".into(), path);
    }
    found.offline = OFFLINE_VARIABLES.map(|(name, value)| (name.into(), value.into())).into();
    found
}

fn build_command_environment(host: &HostEnvironment, home: Option<&Path>) -> BTreeMap<OsString, OsString> {
    let mut env = BTreeMap::new();
    for (name, value) in &host.vars {
        let Some(text) = name.to_str() else { continue };
        let allowed = PASSED_VARIABLES.contains(&text) || text.starts_with("LC_");
        let upper = text.to_ascii_uppercase();
        if allowed && !SECRET_WORDS.iter().any(|word| upper.contains(word)) {
            env.insert(name.clone(), value.clone());
        }
    }
    for known in TOOLCHAIN_HOMES.iter().filter(|known| !known.variable.is_empty()) {
        let at = host.vars.get(OsStr::new(known.variable)).map(PathBuf::from);
        // Set even where the host leaves it out: a shim looks for its toolchain by it.
        let default = || home.filter(|_| !known.default.is_empty()).map(|home| home.join(known.default));
        if let Some(at) = at.or_else(default).filter(|at| at.is_absolute() && at.is_dir()) {
            env.insert(known.variable.into(), at.into_os_string());
        }
    }
    if let Some(home) = home {
        env.insert("HOME".into(), home.into());
    }
    env.entry("LANG".into()).or_insert_with(|| "C.UTF-8".into());
    env.extend(FIXED_VARIABLES.map(|(name, value)| (name.into(), value.into())));
    env
}

struct ToolchainFinder<'a> {
    root: &'a Path,
    home: Option<&'a Path>,
    found: &'a mut Toolchains,
}

impl ToolchainFinder<'_> {
    fn add_toolchain(&mut self, host: &HostEnvironment, entry: &ToolchainHome) {
        let named = host.vars.get(OsStr::new(entry.variable)).map(PathBuf::from);
        let default = || self.home.filter(|_| !entry.default.is_empty()).map(|home| home.join(entry.default));
        let Some(at) = named.filter(|_| !entry.variable.is_empty()).or_else(default) else { return };
        if !at.is_dir() {
            return;
        }
        if entry.caches == ["."] {
            self.add_layered(&at);
        } else {
            let shown = if entry.variable == PROGRAMS_ONLY_HOME { at.join("bin") } else { at.clone() };
            self.add_read_only(&shown);
            entry.caches.iter().for_each(|cache| self.add_layered(&at.join(cache)));
        }
        entry.secrets.iter().for_each(|secret| self.add_secret(&at.join(secret)));
        for (_, name) in HOME_CREDENTIAL_SETTINGS.iter().filter(|(home, _)| *home == entry.variable) {
            let settings = at.join(name);
            let files = if settings.is_dir() { list_files(&settings) } else { vec![settings] };
            files.iter().filter(|file| holds_credentials(file)).for_each(|file| self.add_secret(file));
        }
    }

    /// Returns true if a directory may be shown at all: absolute, existing, outside the project,
    /// and not so high up that it would show the home directory.
    fn may_show(&self, directory: &Path) -> bool {
        directory.is_absolute()
            && directory.is_dir()
            && !directory.starts_with(self.root)
            && !self.home.is_some_and(|home| is_at_or_above(directory, home))
            && directory.parent().is_some()
    }

    fn add_read_only(&mut self, directory: &Path) {
        let covered = SYSTEM_DIRECTORIES.iter().any(|system| directory.starts_with(system))
            || self
                .found
                .read_only
                .iter()
                .chain(&self.found.layered)
                .any(|known| directory.starts_with(known));
        if !covered && self.may_show(directory) {
            self.found.read_only.push(directory.to_owned());
            SECRET_FILE_NAMES.iter().for_each(|name| self.add_secret(&directory.join(name)));
        }
    }

    fn add_layered(&mut self, directory: &Path) {
        if self.may_show(directory) && !self.found.layered.iter().any(|known| directory.starts_with(known)) {
            self.found.layered.push(directory.to_owned());
        }
    }

    fn add_secret(&mut self, file: &Path) {
        if !self.found.masked.iter().any(|known| known == file) && file.exists() {
            self.found.masked.push(file.to_owned());
        }
    }
}

/// Returns true if `directory` is `home` or above it, by name or after resolving links.
pub(crate) fn is_at_or_above(directory: &Path, home: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    home.starts_with(directory) || real(home).starts_with(real(directory))
}
