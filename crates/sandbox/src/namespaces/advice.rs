//! Advice for a system where a sandbox can't be set up, from the failed step and the system's
//! settings.

use std::fs;
use std::path::Path;

use rustix::io::Errno;

use super::messages::SetupStage;

/// Ubuntu's way: its profile lets `bwrap` make user namespaces and takes capabilities from what
/// runs in them. Never the switch that turns the protection off for everybody.
const APPARMOR_ADVICE: &str = "AppArmor lets only programs with a profile make user namespaces. Install bubblewrap and load its \
     profile: sudo apt install bubblewrap apparmor-profiles && sudo install -m 0644 \
     /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && sudo apparmor_parser -r \
     /etc/apparmor.d/bwrap-userns-restrict";
const CONTAINER_ADVICE: &str = "This is a container: start it with --security-opt seccomp=unconfined --security-opt \
     systempaths=unconfined (and apparmor=unconfined where AppArmor is on), or allow the back-end `landlock`, which gives \
     less";
const HIDDEN_PROC_ADVICE: &str = "The system hides parts of /proc, so none can be mounted: run outside a container, or with \
     systempaths=unconfined";
const NO_MORE_NAMESPACES_ADVICE: &str =
    "The system allows no (more) user namespaces: raise user.max_user_namespaces with sysctl";
const NAMESPACES_OFF_ADVICE: &str =
    "User namespaces are turned off: set kernel.unprivileged_userns_clone to 1 with sysctl";
const NAMESPACES_NOT_BUILT_ADVICE: &str =
    "This kernel is built without the namespaces the sandbox is made of";
const OLD_KERNEL_ADVICE: &str = "A kernel from Linux 5.12 on is needed";
const OLD_BWRAP_ADVICE: &str = "bubblewrap 0.8 or newer is needed: install your distribution's newer package";
const GENERAL_ADVICE: &str =
    "Report this with the kernel's version; commands run only if a weaker back-end is allowed by name";

/// The settings of this system that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct SystemState {
    /// AppArmor keeps user namespaces from programs without a profile.
    apparmor: bool,
    /// Debian's own switch is off.
    turned_off: bool,
    /// There may be no user namespace at all.
    none_allowed: bool,
    container: bool,
}

impl SystemState {
    fn read() -> Self {
        let is = |path: &str, wanted: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == wanted);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self {
            apparmor: is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
            turned_off: is("/proc/sys/kernel/unprivileged_userns_clone", "0"),
            none_allowed: is("/proc/sys/user/max_user_namespaces", "0"),
            container: Path::new("/.dockerenv").exists()
                || Path::new("/run/.containerenv").exists()
                || is_overlay_root(&mounts),
        }
    }
}

/// Images are layers of an overlay; hardly anything else has one at its root.
fn is_overlay_root(mounts: &str) -> bool {
    let root = mounts.lines().find(|line| line.split(' ').nth(4) == Some("/"));
    root.is_some_and(|line| line.contains(" - overlay "))
}

/// Returns the advice. `said` is the output of a program that failed, if any.
pub(super) fn setup_advice(failure: Option<(SetupStage, Errno)>, said: &str) -> &'static str {
    choose_advice(failure, said, SystemState::read())
}

fn choose_advice(failure: Option<(SetupStage, Errno)>, said: &str, system: SystemState) -> &'static str {
    let Some((stage, errno)) = failure else { return GENERAL_ADVICE };
    let namespaces = matches!(
        stage,
        SetupStage::Namespaces | SetupStage::Identity | SetupStage::Root | SetupStage::Bubblewrap
    );
    let mounts = matches!(stage, SetupStage::Step | SetupStage::Enter);
    if said.contains("Unknown option") {
        return OLD_BWRAP_ADVICE;
    }
    // A user of one's own can be made; it is the mount that isn't allowed.
    let proc = said.contains("mount proc") || (stage == SetupStage::Step && errno == Errno::PERM);
    match (stage, errno) {
        _ if namespaces && !proc && system.none_allowed => NO_MORE_NAMESPACES_ADVICE,
        _ if namespaces && !proc && system.apparmor => APPARMOR_ADVICE,
        (SetupStage::Namespaces, Errno::NOSPC) => NO_MORE_NAMESPACES_ADVICE,
        _ if namespaces && !proc && system.turned_off => NAMESPACES_OFF_ADVICE,
        _ if (namespaces || mounts) && system.container => CONTAINER_ADVICE,
        (SetupStage::Namespaces, Errno::INVAL | Errno::NOSYS) => NAMESPACES_NOT_BUILT_ADVICE,
        _ if proc => HIDDEN_PROC_ADVICE,
        (_, Errno::NOSYS) => OLD_KERNEL_ADVICE,
        _ => GENERAL_ADVICE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_remedy() {
        let plain = SystemState::default();
        let ubuntu = SystemState { apparmor: true, ..plain };
        let debian = SystemState { turned_off: true, ..plain };
        let none = SystemState { none_allowed: true, ..plain };
        let container = SystemState { container: true, ..plain };
        let bwrap = SetupStage::Bubblewrap;
        let uid_map = "bwrap: setting up uid map: Permission denied";
        let no_permissions =
            "bwrap: No permissions to create new namespace, likely because the kernel does not allow";
        let proc = "bwrap: Can't mount proc on /newroot/proc: Operation not permitted";
        let option = "bwrap: Unknown option --disable-userns";
        let cases = [
            (SetupStage::Identity, Errno::PERM, "", ubuntu, APPARMOR_ADVICE),
            (SetupStage::Root, Errno::ACCESS, "", ubuntu, APPARMOR_ADVICE),
            (bwrap, Errno::CANCELED, uid_map, ubuntu, APPARMOR_ADVICE),
            (SetupStage::Namespaces, Errno::NOSPC, "", plain, NO_MORE_NAMESPACES_ADVICE),
            (SetupStage::Namespaces, Errno::NOSPC, "", none, NO_MORE_NAMESPACES_ADVICE),
            (bwrap, Errno::CANCELED, no_permissions, none, NO_MORE_NAMESPACES_ADVICE),
            (SetupStage::Namespaces, Errno::PERM, "", debian, NAMESPACES_OFF_ADVICE),
            (bwrap, Errno::CANCELED, no_permissions, debian, NAMESPACES_OFF_ADVICE),
            (SetupStage::Namespaces, Errno::NOSYS, "", container, CONTAINER_ADVICE),
            (SetupStage::Namespaces, Errno::PERM, "", container, CONTAINER_ADVICE),
            (SetupStage::Step, Errno::PERM, "", container, CONTAINER_ADVICE),
            (bwrap, Errno::CANCELED, no_permissions, container, CONTAINER_ADVICE),
            (bwrap, Errno::CANCELED, proc, container, CONTAINER_ADVICE),
            (bwrap, Errno::CANCELED, proc, ubuntu, HIDDEN_PROC_ADVICE),
            (bwrap, Errno::CANCELED, option, ubuntu, OLD_BWRAP_ADVICE),
            (SetupStage::Step, Errno::PERM, "", plain, HIDDEN_PROC_ADVICE),
            (SetupStage::Namespaces, Errno::INVAL, "", plain, NAMESPACES_NOT_BUILT_ADVICE),
            (SetupStage::Root, Errno::NOSYS, "", plain, OLD_KERNEL_ADVICE),
            (SetupStage::Execute, Errno::NOENT, "", plain, GENERAL_ADVICE),
        ];
        for (stage, errno, said, system, expected) in cases {
            assert_eq!(
                choose_advice(Some((stage, errno)), said, system),
                expected,
                "{stage:?} {errno} {said} {system:?}"
            );
        }
        assert_eq!(choose_advice(None, "", ubuntu), GENERAL_ADVICE);
        let all = [
            APPARMOR_ADVICE,
            CONTAINER_ADVICE,
            HIDDEN_PROC_ADVICE,
            NO_MORE_NAMESPACES_ADVICE,
            NAMESPACES_OFF_ADVICE,
            NAMESPACES_NOT_BUILT_ADVICE,
            OLD_KERNEL_ADVICE,
            GENERAL_ADVICE,
        ];
        assert!(all.iter().all(|text| !text.contains("apparmor_restrict")), "the protection is left on");
    }

    #[test]
    fn containers_are_told_by_their_root() {
        assert!(is_overlay_root("600 500 0:80 / / rw,relatime - overlay overlay rw,lowerdir=/x\n"));
        assert!(!is_overlay_root("22 1 254:0 / / rw - ext4 /dev/vda rw\n30 22 0:5 / /x rw - overlay x rw\n"));
        assert!(!is_overlay_root(""));
    }
}
