//! What an attacker knows of the place it attacks, and what it says afterwards.

use std::io;
use std::path::PathBuf;

use journeyman_protocol::SandboxTier;
use serde::{Deserialize, Serialize};

/// The variable with the [`Scene`].
pub(crate) const SCENE: &str = "JM_SCENE";
/// A variable of the agent's own that no command may learn.
pub(crate) const SECRET: &str = "JM_CANARY_SECRET";
/// A word of the agent's command line that no command may learn.
pub(crate) const AGENT: &str = "--agent-with-a-telling-argument";
/// A word that turns this program into an attacker.
pub(crate) const ATTEMPT: &str = "--attempt";

/// The place, as the attacker is told: it knows more than any would.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Scene {
    /// Which row of the table is tried.
    pub(crate) row: u8,
    /// The project, writable.
    pub(crate) root: PathBuf,
    /// A directory that isn't shown.
    pub(crate) out: PathBuf,
    /// A directory that is shown for reading.
    pub(crate) shown: PathBuf,
    /// The user's home.
    pub(crate) home: PathBuf,
    /// Ports of the host's own servers.
    pub(crate) tcp4: u16,
    pub(crate) tcp6: Option<u16>,
    pub(crate) udp: u16,
    /// The name of an abstract socket.
    pub(crate) name: String,
    /// The agent's process, and an address in its memory.
    pub(crate) agent: i32,
    pub(crate) address: usize,
    /// The agent's program, which is the attacker's too.
    pub(crate) program: PathBuf,
    /// Shared memory of both kinds.
    pub(crate) segment: i32,
    pub(crate) shared: PathBuf,
    /// Which back-end it is.
    pub(crate) tier: SandboxTier,
    /// Whether anything confines the attacker. What would reach beyond this machine is tried only
    /// then.
    pub(crate) confined: bool,
}

/// What an attempt came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Verdict {
    /// Every way was refused; how.
    Held(String),
    /// One way worked; which.
    Out(String),
    /// This machine hasn't got what the attempt is about.
    Absent(String),
}

/// The ways that one attempt tries.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    held: Vec<String>,
    out: Vec<String>,
}

impl Ways {
    /// A way that worked if the system said so.
    pub(crate) fn tried<T>(&mut self, way: &str, result: io::Result<T>) {
        match result {
            Ok(_) => self.out.push(way.to_owned()),
            Err(error) => self.held.push(format!("{way}: {error}")),
        }
    }

    /// A call that must not even reach the kernel's code behind it: complaints about arguments come
    /// from there.
    pub(crate) fn reached<T>(&mut self, way: &str, result: io::Result<T>) {
        let refusals = [libc::EPERM, libc::EACCES, libc::ENOSYS, libc::EAFNOSUPPORT, libc::EPROTONOSUPPORT];
        match result {
            Err(error) if error.raw_os_error().is_some_and(|errno| refusals.contains(&errno)) => {
                self.held.push(format!("{way}: {error}"));
            }
            Err(error) => self.out.push(format!("{way} (the call was reached: {error})")),
            Ok(_) => self.out.push(way.to_owned()),
        }
    }

    /// A way that worked if something is so.
    pub(crate) fn seen(&mut self, way: &str, out: bool) {
        if out { &mut self.out } else { &mut self.held }.push(way.to_owned());
    }

    pub(crate) fn verdict(self) -> Verdict {
        if self.out.is_empty() {
            Verdict::Held(self.held.join("; "))
        } else {
            Verdict::Out(self.out.join("; "))
        }
    }
}

/// One way, which worked if the system said so.
pub(crate) fn way<T>(result: io::Result<T>) -> Verdict {
    match result {
        Ok(_) => Verdict::Out("it worked".to_owned()),
        Err(error) => Verdict::Held(error.to_string()),
    }
}

/// What the agent says of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Said {
    /// The command ended; how, what it printed, and what it said of its attempt.
    Ran { outcome: String, signal: Option<i32>, text: String, verdict: Option<Verdict>, planted_key: bool },
    /// The back-end isn't to be had here.
    Unavailable(String),
    /// The command wasn't run.
    Refused(String),
}
