//! The programs and directories that `danger` searches for.

/// Number of bits of a [`NameFilter`]: with three hundred names, one in fourteen other words is a
/// false positive.
const BITS: usize = 4096;

/// A filter that quickly rejects nearly every word that is not among some names.
struct Known([u64; BITS / 64]);

impl Known {
    const fn none() -> Self {
        Self([0; BITS / 64])
    }

    #[allow(
        clippy::indexing_slicing,
        reason = "evaluated when this is compiled, where a place too far is an error"
    )]
    const fn and(mut self, name: &str) -> Self {
        let place = place(name.as_bytes());
        self.0[place / 64] |= 1 << (place % 64);
        self
    }

    /// Returns true if the word may be among the names.
    fn may_be(&self, word: &str) -> bool {
        let place = place(word.as_bytes());
        self.0.get(place / 64).is_some_and(|bits| bits & (1 << (place % 64)) != 0)
    }
}

/// Returns the bit of a word, from its length and four of its letters.
const fn place(word: &[u8]) -> usize {
    let ([first, ..], [.., last]) = (word, word) else { return 0 };
    let (_, [second, ..]) = word.split_at(if word.len() > 1 { 1 } else { 0 }) else { return 0 };
    let (_, [middle, ..]) = word.split_at(word.len() / 2) else { return 0 };
    let sum = (*first as usize) * 641 + (*second as usize) * 67 + (*middle as usize) * 1033;
    (sum + (*last as usize) * 269 + word.len() * 37) % BITS
}

#[allow(clippy::indexing_slicing, reason = "as above")]
const fn known(pairs: &[&[(&str, &str)]]) -> Known {
    let mut known = Known::none();
    let mut list = 0;
    while list < pairs.len() {
        let mut at = 0;
        while at < pairs[list].len() {
            known = known.and(pairs[list][at].0);
            at += 1;
        }
        list += 1;
    }
    known
}

#[allow(clippy::indexing_slicing, reason = "as above")]
const fn known_names(names: &[&str], mut known: Known) -> Known {
    let mut at = 0;
    while at < names.len() {
        known = known.and(names[at]);
        at += 1;
    }
    known
}

#[allow(clippy::indexing_slicing, reason = "as above")]
const fn known_judged(judged: &[(&str, Judged)], mut known: Known) -> Known {
    let mut at = 0;
    while at < judged.len() {
        known = known.and(judged[at].0);
        at += 1;
    }
    known
}

static KNOWN_WRAPPERS: Known = known_names(WRAPPERS, Known::none());
static KNOWN_OUTSIDE: Known = known(&[ANYWHERE, AS_PROGRAM]);
static KNOWN_JUDGED: Known = known_judged(JUDGED, Known::none());

/// Returns true if a program runs the words after it.
pub(super) fn is_wrapper(name: &str) -> bool {
    KNOWN_WRAPPERS.may_be(name) && WRAPPERS.contains(&name)
}

/// Returns the effect of a program that is level 3 whatever its arguments. Names that are also
/// ordinary words count only where a program can stand.
pub(super) fn outside(name: &str, as_program: bool) -> Option<&'static str> {
    if !KNOWN_OUTSIDE.may_be(name) {
        return None;
    }
    let here: &[_] = if as_program { AS_PROGRAM } else { &[] };
    ANYWHERE.iter().chain(here).find(|(known, _)| *known == name).map(|(_, what)| *what)
}

/// Returns the argument rules of a program, if it has any.
pub(super) fn judged(name: &str) -> Option<Judged> {
    if name.starts_with("mkfs") {
        return Some(Judged::Format);
    }
    let likely = KNOWN_JUDGED.may_be(name);
    JUDGED.iter().filter(|_| likely).find(|(known, _)| *known == name).map(|(_, judged)| *judged)
}

/// The argument rules of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    Git,
    NodePackages,
    Publishing,
    Removing,
    Truncating,
    Copying,
    Modes,
    Moving,
    Writing,
    Finding,
    Synchronizing,
    Planning,
    Service,
    Database,
    Format,
    Deploying,
}

/// Programs with argument rules, which are checked wherever they occur.
const JUDGED: &[(&str, Judged)] = &[
    ("git", Judged::Git),
    ("npm", Judged::NodePackages),
    ("pnpm", Judged::NodePackages),
    ("yarn", Judged::NodePackages),
    ("bun", Judged::NodePackages),
    ("cargo", Judged::Publishing),
    ("gem", Judged::Publishing),
    ("poetry", Judged::Publishing),
    ("uv", Judged::Publishing),
    ("hatch", Judged::Publishing),
    ("flit", Judged::Publishing),
    ("twine", Judged::Publishing),
    ("mvn", Judged::Publishing),
    ("gradle", Judged::Publishing),
    ("dotnet", Judged::Publishing),
    ("lerna", Judged::Publishing),
    ("rm", Judged::Removing),
    ("unlink", Judged::Removing),
    ("shred", Judged::Removing),
    ("rmtree", Judged::Removing),
    ("trash", Judged::Removing),
    ("srm", Judged::Removing),
    ("truncate", Judged::Truncating),
    ("dd", Judged::Copying),
    ("chmod", Judged::Modes),
    ("chown", Judged::Modes),
    ("chgrp", Judged::Modes),
    ("mv", Judged::Moving),
    ("cp", Judged::Moving),
    ("ln", Judged::Writing),
    ("install", Judged::Writing),
    ("tee", Judged::Writing),
    ("mkdir", Judged::Writing),
    ("touch", Judged::Writing),
    ("sed", Judged::Writing),
    ("find", Judged::Finding),
    ("rsync", Judged::Synchronizing),
    ("terraform", Judged::Planning),
    ("tofu", Judged::Planning),
    ("terragrunt", Judged::Planning),
    ("kubectl", Judged::Service),
    ("oc", Judged::Service),
    ("helm", Judged::Service),
    ("docker", Judged::Service),
    ("podman", Judged::Service),
    ("aws", Judged::Service),
    ("gcloud", Judged::Service),
    ("gh", Judged::Service),
    ("gsutil", Judged::Service),
    ("dropdb", Judged::Database),
    ("dropuser", Judged::Database),
    ("wipefs", Judged::Format),
    ("mke2fs", Judged::Format),
    ("make", Judged::Deploying),
    ("just", Judged::Deploying),
    ("task", Judged::Deploying),
    ("rake", Judged::Deploying),
    ("serverless", Judged::Deploying),
    ("sls", Judged::Deploying),
    ("firebase", Judged::Deploying),
    ("kamal", Judged::Deploying),
    ("cap", Judged::Deploying),
];

/// Programs that run the words after them, so that any of these may be a program.
const WRAPPERS: &[&str] = &[
    "env", "timeout", "nice", "ionice", "xargs", "nohup", "time", "exec", "command", "builtin", "eval", "sh",
    "bash", "dash", "zsh", "ksh", "fish", "busybox", "parallel", "setsid", "stdbuf", "strace", "watch",
    "flock", "script", "chroot", "unshare", "nsenter", "sudo", "doas", "su", "-exec", "-execdir", "-ok",
    "-okdir", "then", "do", "else", "if", "while", "until", "!", "trap", "alias", "entr", "taskset", "chrt",
    "tmux", "screen", "expect", "unbuffer",
];

pub(super) const RIGHTS: &str = "asks for more rights";
pub(super) const NETWORK: &str = "reaches the network";
pub(super) const MACHINES: &str = "works on other machines or services";
pub(super) const SYSTEM: &str = "changes the system";
pub(super) const PACKAGES: &str = "installs for the whole system";

/// Programs that are level 3 whatever their arguments and whose names are not ordinary words, so
/// that they are searched anywhere.
const ANYWHERE: &[(&str, &str)] = &[
    ("sudo", RIGHTS),
    ("doas", RIGHTS),
    ("pkexec", RIGHTS),
    ("run0", RIGHTS),
    ("sudoedit", RIGHTS),
    ("curl", NETWORK),
    ("wget", NETWORK),
    ("ncat", NETWORK),
    ("netcat", NETWORK),
    ("socat", NETWORK),
    ("telnet", NETWORK),
    ("sftp", NETWORK),
    ("nslookup", NETWORK),
    ("aria2c", NETWORK),
    ("lftp", NETWORK),
    ("nmap", NETWORK),
    ("tcpdump", NETWORK),
    ("traceroute", NETWORK),
    ("ngrok", NETWORK),
    ("cloudflared", NETWORK),
    ("s_client", NETWORK),
    ("ssh", MACHINES),
    ("scp", MACHINES),
    ("autossh", MACHINES),
    ("mosh", MACHINES),
    ("ssh-copy-id", MACHINES),
    ("sendmail", NETWORK),
    ("mailx", NETWORK),
    ("kubectl", MACHINES),
    ("oc", MACHINES),
    ("helm", MACHINES),
    ("gcloud", MACHINES),
    ("gsutil", MACHINES),
    ("aws", MACHINES),
    ("doctl", MACHINES),
    ("heroku", MACHINES),
    ("flyctl", MACHINES),
    ("vercel", MACHINES),
    ("netlify", MACHINES),
    ("wrangler", MACHINES),
    ("ansible", MACHINES),
    ("ansible-playbook", MACHINES),
    ("pulumi", MACHINES),
    ("vagrant", MACHINES),
    ("gh", MACHINES),
    ("glab", MACHINES),
    ("eksctl", MACHINES),
    ("docker", MACHINES),
    ("docker-compose", MACHINES),
    ("podman", MACHINES),
    ("nerdctl", MACHINES),
    ("systemctl", SYSTEM),
    ("launchctl", SYSTEM),
    ("umount", SYSTEM),
    ("fdisk", SYSTEM),
    ("sfdisk", SYSTEM),
    ("parted", SYSTEM),
    ("wipefs", SYSTEM),
    ("losetup", SYSTEM),
    ("cryptsetup", SYSTEM),
    ("modprobe", SYSTEM),
    ("insmod", SYSTEM),
    ("rmmod", SYSTEM),
    ("sysctl", SYSTEM),
    ("iptables", SYSTEM),
    ("nft", SYSTEM),
    ("ufw", SYSTEM),
    ("firewall-cmd", SYSTEM),
    ("useradd", SYSTEM),
    ("adduser", SYSTEM),
    ("usermod", SYSTEM),
    ("userdel", SYSTEM),
    ("groupadd", SYSTEM),
    ("chpasswd", SYSTEM),
    ("visudo", SYSTEM),
    ("crontab", SYSTEM),
    ("poweroff", SYSTEM),
    ("telinit", SYSTEM),
    ("kexec", SYSTEM),
    ("setcap", SYSTEM),
    ("nsenter", SYSTEM),
    ("apt-get", PACKAGES),
    ("dnf", PACKAGES),
    ("pacman", PACKAGES),
    ("zypper", PACKAGES),
    ("dpkg", PACKAGES),
    ("snap", PACKAGES),
    ("flatpak", PACKAGES),
    ("pipx", PACKAGES),
];

/// Programs that are level 3 whatever their arguments and whose names are also ordinary words, so
/// that they are searched only where a program can stand.
const AS_PROGRAM: &[(&str, &str)] = &[
    ("su", RIGHTS),
    ("nc", NETWORK),
    ("ftp", NETWORK),
    ("ping", NETWORK),
    ("dig", NETWORK),
    ("host", NETWORK),
    ("whois", NETWORK),
    ("http", NETWORK),
    ("https", NETWORK),
    ("mail", NETWORK),
    ("xh", NETWORK),
    ("az", MACHINES),
    ("fly", MACHINES),
    ("hub", MACHINES),
    ("mount", SYSTEM),
    ("service", SYSTEM),
    ("shutdown", SYSTEM),
    ("reboot", SYSTEM),
    ("halt", SYSTEM),
    ("init", SYSTEM),
    ("passwd", SYSTEM),
    ("chroot", SYSTEM),
    ("at", SYSTEM),
    ("ip", SYSTEM),
    ("ifconfig", SYSTEM),
    ("swapon", SYSTEM),
    ("swapoff", SYSTEM),
    ("apt", PACKAGES),
    ("yum", PACKAGES),
    ("apk", PACKAGES),
    ("brew", PACKAGES),
    ("port", PACKAGES),
    ("rpm", PACKAGES),
];

/// Directories of the system. A command that changes something beneath them is level 3.
pub(super) const SYSTEM_PLACES: &[&str] = &[
    "/etc",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/boot",
    "/sys",
    "/proc",
    "/dev",
    "/opt",
    "/var/lib",
    "/var/spool",
    "/var/log",
    "/root/.ssh",
    "/System",
    "/Library",
];
/// Devices that accept writes without harm.
pub(super) const HARMLESS_DEVICES: &[&str] =
    &["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd", "/dev/shm"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known() {
        for (name, what) in ANYWHERE {
            assert_eq!((outside(name, false), outside(name, true)), (Some(*what), Some(*what)), "{name}");
        }
        for (name, what) in AS_PROGRAM {
            let elsewhere = ANYWHERE.iter().any(|(known, _)| known == name);
            assert_eq!(
                (outside(name, true), outside(name, false).is_some()),
                (Some(*what), elsewhere),
                "{name}"
            );
        }
        assert!(WRAPPERS.iter().all(|name| is_wrapper(name)));
        assert!(JUDGED.iter().all(|(name, how)| judged(name) == Some(*how)));
        assert_eq!(judged("mkfs.ext4"), Some(Judged::Format));
        for word in ["", "x", "-rf", "grep", "curly", "sud", "src/main.rs"] {
            assert!(outside(word, true).is_none() && !is_wrapper(word) && judged(word).is_none(), "{word}");
        }
    }
}
