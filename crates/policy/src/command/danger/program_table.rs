//! The programs and directories that `danger` searches for.

/// Number of bits of a `NameFilter`: with three hundred names, one in fourteen other words is a
/// false positive.
const FILTER_BITS: usize = 4096;

/// A filter that quickly rejects nearly every word that is not among some names.
struct NameFilter([u64; FILTER_BITS / 64]);

impl NameFilter {
    const fn empty() -> Self {
        Self([0; FILTER_BITS / 64])
    }

    #[allow(
        clippy::indexing_slicing,
        reason = "evaluated when this is compiled, where a place too far is an error"
    )]
    const fn with_name(mut self, name: &str) -> Self {
        let place = filter_bit(name.as_bytes());
        self.0[place / 64] |= 1 << (place % 64);
        self
    }

    /// Returns true if the word may be among the names.
    fn may_contain(&self, word: &str) -> bool {
        let place = filter_bit(word.as_bytes());
        self.0.get(place / 64).is_some_and(|bits| bits & (1 << (place % 64)) != 0)
    }
}

/// Returns the bit of a word, from its length and four of its letters.
const fn filter_bit(word: &[u8]) -> usize {
    let ([first, ..], [.., last]) = (word, word) else { return 0 };
    let (_, [second, ..]) = word.split_at(if word.len() > 1 { 1 } else { 0 }) else { return 0 };
    let (_, [middle, ..]) = word.split_at(word.len() / 2) else { return 0 };
    let sum = (*first as usize) * 641 + (*second as usize) * 67 + (*middle as usize) * 1033;
    (sum + (*last as usize) * 269 + word.len() * 37) % FILTER_BITS
}

#[allow(clippy::indexing_slicing, reason = "as above")]
const fn filter_for_tables(pairs: &[&[(&str, &str)]]) -> NameFilter {
    let mut known = NameFilter::empty();
    let mut list = 0;
    while list < pairs.len() {
        let mut at = 0;
        while at < pairs[list].len() {
            known = known.with_name(pairs[list][at].0);
            at += 1;
        }
        list += 1;
    }
    known
}

#[allow(clippy::indexing_slicing, reason = "as above")]
const fn filter_with_names(names: &[&str], mut known: NameFilter) -> NameFilter {
    let mut at = 0;
    while at < names.len() {
        known = known.with_name(names[at]);
        at += 1;
    }
    known
}

#[allow(clippy::indexing_slicing, reason = "as above")]
const fn filter_with_argument_rules(judged: &[(&str, ArgumentRule)], mut known: NameFilter) -> NameFilter {
    let mut at = 0;
    while at < judged.len() {
        known = known.with_name(judged[at].0);
        at += 1;
    }
    known
}

static WRAPPER_FILTER: NameFilter = filter_with_names(WRAPPER_PROGRAMS, NameFilter::empty());
static LEVEL_3_FILTER: NameFilter = filter_for_tables(&[LEVEL_3_PROGRAMS, LEVEL_3_WORDS]);
static ARGUMENT_RULE_FILTER: NameFilter = filter_with_argument_rules(ARGUMENT_RULES, NameFilter::empty());

/// Returns true if a program runs the words after it.
pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPER_FILTER.may_contain(name) && WRAPPER_PROGRAMS.contains(&name)
}

/// Returns the effect of a program that is level 3 whatever its arguments. Names that are also
/// ordinary words count only where a program can stand.
pub(super) fn level_3_effect(name: &str, as_program: bool) -> Option<&'static str> {
    if !LEVEL_3_FILTER.may_contain(name) {
        return None;
    }
    let here: &[_] = if as_program { LEVEL_3_WORDS } else { &[] };
    LEVEL_3_PROGRAMS.iter().chain(here).find(|(known, _)| *known == name).map(|(_, what)| *what)
}

/// Returns the argument rules of a program, if it has any.
pub(super) fn find_argument_rule(name: &str) -> Option<ArgumentRule> {
    if name.starts_with("mkfs") {
        return Some(ArgumentRule::Format);
    }
    let likely = ARGUMENT_RULE_FILTER.may_contain(name);
    ARGUMENT_RULES.iter().filter(|_| likely).find(|(known, _)| *known == name).map(|(_, judged)| *judged)
}

/// The argument rules of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentRule {
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
const ARGUMENT_RULES: &[(&str, ArgumentRule)] = &[
    ("git", ArgumentRule::Git),
    ("npm", ArgumentRule::NodePackages),
    ("pnpm", ArgumentRule::NodePackages),
    ("yarn", ArgumentRule::NodePackages),
    ("bun", ArgumentRule::NodePackages),
    ("cargo", ArgumentRule::Publishing),
    ("gem", ArgumentRule::Publishing),
    ("poetry", ArgumentRule::Publishing),
    ("uv", ArgumentRule::Publishing),
    ("hatch", ArgumentRule::Publishing),
    ("flit", ArgumentRule::Publishing),
    ("twine", ArgumentRule::Publishing),
    ("mvn", ArgumentRule::Publishing),
    ("mvnw", ArgumentRule::Publishing),
    ("gradle", ArgumentRule::Publishing),
    ("gradlew", ArgumentRule::Publishing),
    ("dotnet", ArgumentRule::Publishing),
    ("lerna", ArgumentRule::Publishing),
    ("rm", ArgumentRule::Removing),
    ("unlink", ArgumentRule::Removing),
    ("shred", ArgumentRule::Removing),
    ("rmtree", ArgumentRule::Removing),
    ("trash", ArgumentRule::Removing),
    ("srm", ArgumentRule::Removing),
    ("truncate", ArgumentRule::Truncating),
    ("dd", ArgumentRule::Copying),
    ("chmod", ArgumentRule::Modes),
    ("chown", ArgumentRule::Modes),
    ("chgrp", ArgumentRule::Modes),
    ("mv", ArgumentRule::Moving),
    ("cp", ArgumentRule::Moving),
    ("ln", ArgumentRule::Writing),
    ("install", ArgumentRule::Writing),
    ("tee", ArgumentRule::Writing),
    ("mkdir", ArgumentRule::Writing),
    ("touch", ArgumentRule::Writing),
    ("sed", ArgumentRule::Writing),
    ("find", ArgumentRule::Finding),
    ("rsync", ArgumentRule::Synchronizing),
    ("terraform", ArgumentRule::Planning),
    ("tofu", ArgumentRule::Planning),
    ("terragrunt", ArgumentRule::Planning),
    ("kubectl", ArgumentRule::Service),
    ("oc", ArgumentRule::Service),
    ("helm", ArgumentRule::Service),
    ("docker", ArgumentRule::Service),
    ("podman", ArgumentRule::Service),
    ("aws", ArgumentRule::Service),
    ("gcloud", ArgumentRule::Service),
    ("gh", ArgumentRule::Service),
    ("gsutil", ArgumentRule::Service),
    ("dropdb", ArgumentRule::Database),
    ("dropuser", ArgumentRule::Database),
    ("wipefs", ArgumentRule::Format),
    ("mke2fs", ArgumentRule::Format),
    ("make", ArgumentRule::Deploying),
    ("just", ArgumentRule::Deploying),
    ("task", ArgumentRule::Deploying),
    ("rake", ArgumentRule::Deploying),
    ("serverless", ArgumentRule::Deploying),
    ("sls", ArgumentRule::Deploying),
    ("firebase", ArgumentRule::Deploying),
    ("kamal", ArgumentRule::Deploying),
    ("cap", ArgumentRule::Deploying),
];

/// Programs that run the words after them, so that any of these may be a program.
const WRAPPER_PROGRAMS: &[&str] = &[
    "env", "timeout", "nice", "ionice", "xargs", "nohup", "time", "exec", "command", "builtin", "eval", "sh",
    "bash", "dash", "zsh", "ksh", "fish", "busybox", "parallel", "setsid", "stdbuf", "strace", "watch",
    "flock", "script", "chroot", "unshare", "nsenter", "sudo", "doas", "su", "-exec", "-execdir", "-ok",
    "-okdir", "then", "do", "else", "if", "while", "until", "!", "trap", "alias", "entr", "taskset", "chrt",
    "tmux", "screen", "expect", "unbuffer",
];

pub(super) const ASKS_RIGHTS: &str = "asks for more rights";
pub(super) const REACHES_NETWORK: &str = "reaches the network";
pub(super) const REACHES_MACHINES: &str = "works on other machines or services";
pub(super) const CHANGES_SYSTEM: &str = "changes the system";
pub(super) const INSTALLS_PACKAGES: &str = "installs for the whole system";

/// Programs that are level 3 whatever their arguments and whose names are not ordinary words, so
/// that they are searched anywhere.
const LEVEL_3_PROGRAMS: &[(&str, &str)] = &[
    ("sudo", ASKS_RIGHTS),
    ("doas", ASKS_RIGHTS),
    ("pkexec", ASKS_RIGHTS),
    ("run0", ASKS_RIGHTS),
    ("sudoedit", ASKS_RIGHTS),
    ("curl", REACHES_NETWORK),
    ("wget", REACHES_NETWORK),
    ("ncat", REACHES_NETWORK),
    ("netcat", REACHES_NETWORK),
    ("socat", REACHES_NETWORK),
    ("telnet", REACHES_NETWORK),
    ("sftp", REACHES_NETWORK),
    ("nslookup", REACHES_NETWORK),
    ("aria2c", REACHES_NETWORK),
    ("lftp", REACHES_NETWORK),
    ("nmap", REACHES_NETWORK),
    ("tcpdump", REACHES_NETWORK),
    ("traceroute", REACHES_NETWORK),
    ("ngrok", REACHES_NETWORK),
    ("cloudflared", REACHES_NETWORK),
    ("s_client", REACHES_NETWORK),
    ("ssh", REACHES_MACHINES),
    ("scp", REACHES_MACHINES),
    ("autossh", REACHES_MACHINES),
    ("mosh", REACHES_MACHINES),
    ("ssh-copy-id", REACHES_MACHINES),
    ("sendmail", REACHES_NETWORK),
    ("mailx", REACHES_NETWORK),
    ("kubectl", REACHES_MACHINES),
    ("oc", REACHES_MACHINES),
    ("helm", REACHES_MACHINES),
    ("gcloud", REACHES_MACHINES),
    ("gsutil", REACHES_MACHINES),
    ("aws", REACHES_MACHINES),
    ("doctl", REACHES_MACHINES),
    ("heroku", REACHES_MACHINES),
    ("flyctl", REACHES_MACHINES),
    ("vercel", REACHES_MACHINES),
    ("netlify", REACHES_MACHINES),
    ("wrangler", REACHES_MACHINES),
    ("ansible", REACHES_MACHINES),
    ("ansible-playbook", REACHES_MACHINES),
    ("pulumi", REACHES_MACHINES),
    ("vagrant", REACHES_MACHINES),
    ("gh", REACHES_MACHINES),
    ("glab", REACHES_MACHINES),
    ("eksctl", REACHES_MACHINES),
    ("docker", REACHES_MACHINES),
    ("docker-compose", REACHES_MACHINES),
    ("podman", REACHES_MACHINES),
    ("nerdctl", REACHES_MACHINES),
    ("systemctl", CHANGES_SYSTEM),
    ("launchctl", CHANGES_SYSTEM),
    ("umount", CHANGES_SYSTEM),
    ("fdisk", CHANGES_SYSTEM),
    ("sfdisk", CHANGES_SYSTEM),
    ("parted", CHANGES_SYSTEM),
    ("wipefs", CHANGES_SYSTEM),
    ("losetup", CHANGES_SYSTEM),
    ("cryptsetup", CHANGES_SYSTEM),
    ("modprobe", CHANGES_SYSTEM),
    ("insmod", CHANGES_SYSTEM),
    ("rmmod", CHANGES_SYSTEM),
    ("sysctl", CHANGES_SYSTEM),
    ("iptables", CHANGES_SYSTEM),
    ("nft", CHANGES_SYSTEM),
    ("ufw", CHANGES_SYSTEM),
    ("firewall-cmd", CHANGES_SYSTEM),
    ("useradd", CHANGES_SYSTEM),
    ("adduser", CHANGES_SYSTEM),
    ("usermod", CHANGES_SYSTEM),
    ("userdel", CHANGES_SYSTEM),
    ("groupadd", CHANGES_SYSTEM),
    ("chpasswd", CHANGES_SYSTEM),
    ("visudo", CHANGES_SYSTEM),
    ("crontab", CHANGES_SYSTEM),
    ("poweroff", CHANGES_SYSTEM),
    ("telinit", CHANGES_SYSTEM),
    ("kexec", CHANGES_SYSTEM),
    ("setcap", CHANGES_SYSTEM),
    ("nsenter", CHANGES_SYSTEM),
    ("apt-get", INSTALLS_PACKAGES),
    ("dnf", INSTALLS_PACKAGES),
    ("pacman", INSTALLS_PACKAGES),
    ("zypper", INSTALLS_PACKAGES),
    ("dpkg", INSTALLS_PACKAGES),
    ("snap", INSTALLS_PACKAGES),
    ("flatpak", INSTALLS_PACKAGES),
    ("pipx", INSTALLS_PACKAGES),
];

/// Programs that are level 3 whatever their arguments and whose names are also ordinary words, so
/// that they are searched only where a program can stand.
const LEVEL_3_WORDS: &[(&str, &str)] = &[
    ("su", ASKS_RIGHTS),
    ("nc", REACHES_NETWORK),
    ("ftp", REACHES_NETWORK),
    ("ping", REACHES_NETWORK),
    ("dig", REACHES_NETWORK),
    ("host", REACHES_NETWORK),
    ("whois", REACHES_NETWORK),
    ("http", REACHES_NETWORK),
    ("https", REACHES_NETWORK),
    ("mail", REACHES_NETWORK),
    ("xh", REACHES_NETWORK),
    ("az", REACHES_MACHINES),
    ("fly", REACHES_MACHINES),
    ("hub", REACHES_MACHINES),
    ("mount", CHANGES_SYSTEM),
    ("service", CHANGES_SYSTEM),
    ("shutdown", CHANGES_SYSTEM),
    ("reboot", CHANGES_SYSTEM),
    ("halt", CHANGES_SYSTEM),
    ("init", CHANGES_SYSTEM),
    ("passwd", CHANGES_SYSTEM),
    ("chroot", CHANGES_SYSTEM),
    ("at", CHANGES_SYSTEM),
    ("ip", CHANGES_SYSTEM),
    ("ifconfig", CHANGES_SYSTEM),
    ("swapon", CHANGES_SYSTEM),
    ("swapoff", CHANGES_SYSTEM),
    ("apt", INSTALLS_PACKAGES),
    ("yum", INSTALLS_PACKAGES),
    ("apk", INSTALLS_PACKAGES),
    ("brew", INSTALLS_PACKAGES),
    ("port", INSTALLS_PACKAGES),
    ("rpm", INSTALLS_PACKAGES),
];

/// Directories of the system. A command that changes something beneath them is level 3.
pub(super) const SYSTEM_DIRECTORIES: &[&str] = &[
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
        for (name, what) in LEVEL_3_PROGRAMS {
            assert_eq!(
                (level_3_effect(name, false), level_3_effect(name, true)),
                (Some(*what), Some(*what)),
                "{name}"
            );
        }
        for (name, what) in LEVEL_3_WORDS {
            let elsewhere = LEVEL_3_PROGRAMS.iter().any(|(known, _)| known == name);
            assert_eq!(
                (level_3_effect(name, true), level_3_effect(name, false).is_some()),
                (Some(*what), elsewhere),
                "{name}"
            );
        }
        assert!(WRAPPER_PROGRAMS.iter().all(|name| is_wrapper(name)));
        assert!(ARGUMENT_RULES.iter().all(|(name, how)| find_argument_rule(name) == Some(*how)));
        assert_eq!(find_argument_rule("mkfs.ext4"), Some(ArgumentRule::Format));
        for word in ["", "x", "-rf", "grep", "curly", "sud", "src/main.rs"] {
            assert!(
                level_3_effect(word, true).is_none()
                    && !is_wrapper(word)
                    && find_argument_rule(word).is_none(),
                "{word}"
            );
        }
    }
}
