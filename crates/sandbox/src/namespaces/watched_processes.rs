//! The processes of one command, watched to their end.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};
use tokio::io::unix::AsyncFd;

use super::sys;
use crate::running_command::ResourceUsage;

/// Maximum time that dropping a running command waits for its end; usually a few milliseconds.
const MAX_DROP_WAIT: Duration = Duration::from_secs(2);

/// The helper and, once it is known, pid 1 of the sandbox. Dropped, both are killed and reaped.
pub(super) struct WatchedProcesses {
    pub(super) helper: std::process::Child,
    pub(super) init: Option<(Pid, AsyncFd<OwnedFd>)>,
    /// The signal that ends that process.
    pub(super) signal: Signal,
    pub(super) usage: Option<ResourceUsage>,
    /// True if the process didn't end though killed, and nobody waits for it here.
    pub(super) given_up: bool,
    /// True if pid 1 reported that it is the last process, and ends.
    pub(super) ending: bool,
}

impl WatchedProcesses {
    pub(super) fn kill(&mut self) {
        // Either may have ended already, which is what is wanted.
        match &self.init {
            Some((pid, _)) if self.usage.is_none() && !self.ending => {
                rustix::process::kill_process(*pid, self.signal).ok()
            }
            Some(_) => None,
            None => self.helper.kill().ok(),
        };
    }

    pub(super) fn watch_init(&mut self, pid: i32) -> io::Result<()> {
        let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
        self.init = Some((pid, sys::watch_process(pid)?));
        Ok(())
    }

    /// Returns true if no more messages come. While the socket is `connected`, pid 1 has to be
    /// known: the end of a short command may be heard of before its beginning, because two
    /// processes write to the socket, and a pid 1 that nobody waits for would keep its mount for
    /// ever.
    pub(super) fn have_ended(&self, connected: bool) -> bool {
        match self.init {
            Some(_) => self.ending || self.usage.is_some() && !connected,
            None => !connected,
        }
    }

    /// Returns true if both have ended and were reaped.
    fn are_gone(&mut self) -> bool {
        if let (Some((pid, _)), None) = (&self.init, self.usage) {
            match rustix::process::waitpid(Some(*pid), WaitOptions::NOHANG) {
                Ok(None) | Err(Errno::INTR) => return false,
                // Reaped, or nobody's child.
                Ok(Some(_)) | Err(_) => self.usage = Some(ResourceUsage::default()),
            }
        }
        !matches!(self.helper.try_wait(), Ok(None))
    }

    /// Waits for pid 1, and thereby for every process of the sandbox.
    pub(super) async fn wait_for_init(&self) -> io::Result<ResourceUsage> {
        match &self.init {
            Some((pid, descriptor)) if self.usage.is_none() => {
                drop(descriptor.readable().await?);
                Ok(sys::reap_child(*pid, true).unwrap_or_default())
            }
            _ => std::future::pending().await,
        }
    }
}

impl Drop for WatchedProcesses {
    fn drop(&mut self) {
        self.kill();
        let begun = Instant::now();
        while !self.given_up && begun.elapsed() < MAX_DROP_WAIT {
            if self.are_gone() {
                return;
            }
            if begun.elapsed() > MAX_DROP_WAIT / 2 && self.signal != Signal::KILL {
                self.signal = Signal::KILL;
                self.kill();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // The caller must not wait for a disk that doesn't answer.
        let init = self.init.as_ref().filter(|_| self.usage.is_none() || self.given_up).map(|(pid, _)| *pid);
        let helper = Pid::from_child(&self.helper);
        let wait = move || {
            for pid in init.into_iter().chain([helper]) {
                rustix::process::waitpid(Some(pid), WaitOptions::empty()).ok();
            }
        };
        std::thread::Builder::new().name("reaper".to_owned()).spawn(wait).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_is_heard_of_before_the_beginning_is_not_the_end() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let helper = std::process::Command::new("true").spawn().unwrap();
        let mut init = std::process::Command::new("true").spawn().unwrap();
        let mut processes = WatchedProcesses {
            helper,
            init: None,
            signal: Signal::KILL,
            usage: None,
            given_up: false,
            ending: true,
        };
        assert!(!processes.have_ended(true), "pid 1 is still to be named");
        assert!(processes.have_ended(false), "nobody is left to name it");
        processes.watch_init(i32::try_from(init.id()).unwrap()).unwrap();
        assert!(processes.have_ended(true));
        let usage = runtime.block_on(processes.wait_for_init()).unwrap();
        processes.usage = Some(usage);
        assert!(init.wait().is_err(), "it was reaped");
    }
}
