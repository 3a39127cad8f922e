//! Advice for a system where a sandbox can't be set up, from the failed step and the system's
//! settings.

use std::fs;
use std::path::Path;

use rustix::io::Errno;

use super::messages::Stage;

/// Ubuntu's way: its profile lets `bwrap` make user namespaces and takes capabilities from what
/// runs in them. Never the switch that turns the protection off for everybody.
const APPARMOR_ADVICE: &str = "AppArmor lets only programs with a profile make user namespaces. Install bubblewrap and load its \
     profile: sudo apt install bubblewrap apparmor-profiles && sudo install -m 0644 \
     /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && sudo apparmor_parser -r \
     /etc/apparmor.d/bwrap-userns-restrict";
const CONTAINER_ADVICE: &str = "This is a container: start it with --security-opt seccomp=unconfined --security-opt \
     systempaths=unconfined (and apparmor=unconfined where AppArmor is on), or allow the back-end `landlock`, which gives \
     less";
const HIDDEN_PROC: &str = "The system hides parts of /proc, so none can be mounted: run outside a container, or with \
     systempaths=unconfined";
const NO_MORE: &str =
    "The system allows no (more) user namespaces: raise user.max_user_namespaces with sysctl";
const TURNED_OFF: &str =
    "User namespaces are turned off: set kernel.unprivileged_userns_clone to 1 with sysctl";
const NOT_BUILT: &str = "This kernel is built without the namespaces the sandbox is made of";
const OLD_KERNEL: &str = "A kernel from Linux 5.12 on is needed";
const OLD_BWRAP: &str = "bubblewrap 0.8 or newer is needed: install your distribution's newer package";
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
                || root_is_layered(&mounts),
        }
    }
}

/// Images are layers of an overlay; hardly anything else has one at its root.
fn root_is_layered(mounts: &str) -> bool {
    let root = mounts.lines().find(|line| line.split(' ').nth(4) == Some("/"));
    root.is_some_and(|line| line.contains(" - overlay "))
}

/// Returns the advice. `said` is the output of a program that failed, if any.
pub(super) fn advice(failure: Option<(Stage, Errno)>, said: &str) -> &'static str {
    choose_advice(failure, said, SystemState::read())
}

fn choose_advice(failure: Option<(Stage, Errno)>, said: &str, system: SystemState) -> &'static str {
    let Some((stage, errno)) = failure else { return GENERAL_ADVICE };
    let namespaces = matches!(stage, Stage::Namespaces | Stage::Identity | Stage::Root | Stage::Bubblewrap);
    let mounts = matches!(stage, Stage::Step | Stage::Enter);
    if said.contains("Unknown option") {
        return OLD_BWRAP;
    }
    // A user of one's own can be made; it is the mount that isn't allowed.
    let proc = said.contains("mount proc") || (stage == Stage::Step && errno == Errno::PERM);
    match (stage, errno) {
        _ if namespaces && !proc && system.none_allowed => NO_MORE,
        _ if namespaces && !proc && system.apparmor => APPARMOR_ADVICE,
        (Stage::Namespaces, Errno::NOSPC) => NO_MORE,
        _ if namespaces && !proc && system.turned_off => TURNED_OFF,
        _ if (namespaces || mounts) && system.container => CONTAINER_ADVICE,
        (Stage::Namespaces, Errno::INVAL | Errno::NOSYS) => NOT_BUILT,
        _ if proc => HIDDEN_PROC,
        (_, Errno::NOSYS) => OLD_KERNEL,
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
        let bwrap = Stage::Bubblewrap;
        let uid_map = "bwrap: setting up uid map: Permission denied";
        let no_permissions =
            "bwrap: No permissions to create new namespace, likely because the kernel does not allow";
        let proc = "bwrap: Can't mount proc on /newroot/proc: Operation not permitted";
        let option = "bwrap: Unknown option --disable-userns";
        let cases = [
            (Stage::Identity, Errno::PERM, "", ubuntu, APPARMOR_ADVICE),
            (Stage::Root, Errno::ACCESS, "", ubuntu, APPARMOR_ADVICE),
            (bwrap, Errno::CANCELED, uid_map, ubuntu, APPARMOR_ADVICE),
            (Stage::Namespaces, Errno::NOSPC, "", plain, NO_MORE),
            (Stage::Namespaces, Errno::NOSPC, "", none, NO_MORE),
            (bwrap, Errno::CANCELED, no_permissions, none, NO_MORE),
            (Stage::Namespaces, Errno::PERM, "", debian, TURNED_OFF),
            (bwrap, Errno::CANCELED, no_permissions, debian, TURNED_OFF),
            (Stage::Namespaces, Errno::NOSYS, "", container, CONTAINER_ADVICE),
            (Stage::Namespaces, Errno::PERM, "", container, CONTAINER_ADVICE),
            (Stage::Step, Errno::PERM, "", container, CONTAINER_ADVICE),
            (bwrap, Errno::CANCELED, no_permissions, container, CONTAINER_ADVICE),
            (bwrap, Errno::CANCELED, proc, container, CONTAINER_ADVICE),
            (bwrap, Errno::CANCELED, proc, ubuntu, HIDDEN_PROC),
            (bwrap, Errno::CANCELED, option, ubuntu, OLD_BWRAP),
            (Stage::Step, Errno::PERM, "", plain, HIDDEN_PROC),
            (Stage::Namespaces, Errno::INVAL, "", plain, NOT_BUILT),
            (Stage::Root, Errno::NOSYS, "", plain, OLD_KERNEL),
            (Stage::Execute, Errno::NOENT, "", plain, GENERAL_ADVICE),
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
            HIDDEN_PROC,
            NO_MORE,
            TURNED_OFF,
            NOT_BUILT,
            OLD_KERNEL,
            GENERAL_ADVICE,
        ];
        assert!(all.iter().all(|text| !text.contains("apparmor_restrict")), "the protection is left on");
    }

    #[test]
    fn containers_are_told_by_their_root() {
        assert!(root_is_layered("600 500 0:80 / / rw,relatime - overlay overlay rw,lowerdir=/x\n"));
        assert!(!root_is_layered("22 1 254:0 / / rw - ext4 /dev/vda rw\n30 22 0:5 / /x rw - overlay x rw\n"));
        assert!(!root_is_layered(""));
    }
}
