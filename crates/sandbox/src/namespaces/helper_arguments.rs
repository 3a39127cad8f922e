//! The arguments that make this program, started again, a helper of a certain kind.

/// The first argument of a helper. Long enough that no user types it.
pub(super) const HELPER_ARGUMENT: &str = "__jm-sandbox-helper";
/// The second argument of a helper that creates as many namespaces as it can before it gets its
/// command.
pub(super) const WAIT_ARGUMENT: &str = "wait";
/// The second argument of a helper that creates no namespaces before it gets its command, since
/// they have to lie in those of a mount, or the network is the host's.
pub(super) const IDLE_ARGUMENT: &str = "idle";
/// The second argument of a helper that mounts.
pub(super) const MOUNT_ARGUMENT: &str = "mount";
/// The second argument of a helper that starts `bwrap`.
pub(super) const BUBBLEWRAP_ARGUMENT: &str = "bubblewrap";
/// The second argument of a helper that confines by Landlock alone.
pub(super) const LANDLOCK_ARGUMENT: &str = "landlock";
/// The second argument of a helper that guards a command which isn't confined.
pub(super) const KILL_ARGUMENT: &str = "guard";
/// The second argument of a helper that `bwrap` starts.
pub(super) const INSIDE_ARGUMENT: &str = "inside";

/// Returns true if this process runs in the process namespace of such a sandbox, whose first
/// process is a helper.
pub(crate) fn is_inside_sandbox() -> bool {
    let command_line = std::fs::read("/proc/1/cmdline").unwrap_or_default();
    command_line.split(|&byte| byte == 0).nth(1) == Some(HELPER_ARGUMENT.as_bytes())
}

/// Returns true if this process was started as a helper.
pub(super) fn is_helper() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == HELPER_ARGUMENT)
}
