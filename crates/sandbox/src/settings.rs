//! The settings of a sandbox.

use std::path::PathBuf;
use std::sync::Arc;

use journeyman_protocol::SandboxTier;

use crate::Upstream;

/// The settings of a [`Sandbox`](crate::Sandbox).
#[derive(Debug, Clone)]
pub struct SandboxSettings {
    /// Back-ends that may be used, in this order: for each command the first that works and meets
    /// the command's needs. [`SandboxTier::Namespaces`] and [`SandboxTier::Bubblewrap`] by default,
    /// which give the same; others only if they are here.
    pub allow: Vec<SandboxTier>,
    /// The program that becomes the helper; this program itself by default. It must call
    /// [`run_helper_if_asked`](crate::run_helper_if_asked) first.
    pub helper: Option<PathBuf>,
    /// A file, outside any project, where the result of the test is kept until the next boot, so
    /// that a new process needn't repeat it.
    pub cache: Option<PathBuf>,
    /// True if back-ends other than [`SandboxTier::Namespaces`] may run commands while this program
    /// is root.
    pub allow_root: bool,
    /// The settings of containers, for [`SandboxTier::Container`].
    #[cfg(feature = "containers")]
    pub container: Option<crate::ContainerSettings>,
    /// Directories where programs of the system are looked for, such as `bwrap`. What others than
    /// root or this user can change there isn't used.
    pub programs: Vec<PathBuf>,
    /// The way out of the proxy of a command with [`Network::Filtered`](crate::Network::Filtered);
    /// the system's by default.
    pub upstream: Option<Arc<dyn Upstream>>,
}

/// The directories where distributions put `bwrap`.
const BWRAP_DIRECTORIES: [&str; 4] = ["/usr/bin", "/usr/local/bin", "/bin", "/run/current-system/sw/bin"];

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            allow: vec![SandboxTier::Namespaces, SandboxTier::Bubblewrap],
            helper: None,
            cache: None,
            allow_root: false,
            #[cfg(feature = "containers")]
            container: None,
            programs: BWRAP_DIRECTORIES.map(PathBuf::from).to_vec(),
            upstream: None,
        }
    }
}
