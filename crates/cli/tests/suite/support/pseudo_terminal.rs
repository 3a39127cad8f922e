//! A terminal to write to, so that what is only done on one can be seen.

use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Runs a command whose outputs are a terminal, and gives what it wrote there.
pub fn on_a_terminal(mut command: Command) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let copy = theirs.try_clone().unwrap();
    let mut child = command.stdin(Stdio::null()).stdout(theirs).stderr(copy).spawn().unwrap();
    // The command keeps copies of the other end; they have to go for the reading to end.
    drop(command);
    let mut bytes = Vec::new();
    // The end of a terminal is an error (EIO) on Linux.
    File::from(ours).read_to_end(&mut bytes).ok();
    assert!(child.wait().unwrap().code().is_some());
    String::from_utf8_lossy(&bytes).into_owned()
}
