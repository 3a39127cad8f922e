//! The messages between agent and helper: the policy one way, the helper's progress the other.
//!
//! A flat encoding, read in place: the helper runs once a command, so it must not cost parsing or
//! allocation. CStringArray end in NUL and go to the kernel as they are.

use std::ffi::{CStr, CString};

use super::cgroups::Group;
use super::terminal::Size;

/// First bytes of a policy; the last digit is the format's version.
pub(super) const MAGIC: [u8; 4] = *b"JMS5";
/// A policy is a few kilobytes, plus arguments and environment, which Linux bounds at a few
/// megabytes.
pub(super) const MAX_POLICY: usize = 16 * 1024 * 1024;
/// Bytes before the body: the magic and the body's length.
pub(super) const HEADER: usize = 8;

/// One step in building the root. Paths are relative to the new root, sources absolute on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step<T> {
    /// Make a directory; its parent exists.
    Directory { path: T },
    /// Make an empty file to mount on.
    File { path: T },
    /// Make a symbolic link.
    Link { path: T, target: T },
    /// Mount a host path, and what is mounted beneath it.
    Bind { path: T, source: T, access: Access },
    /// Mount the copy that came along as a descriptor.
    Base { path: T, access: Access },
    /// Mount an empty private directory.
    Scratch { path: T, mode: u32 },
    /// Mount a host directory under a layer that takes the writes and is thrown away.
    Layer { path: T, source: T },
    /// Mount `/proc`, read-only.
    Proc { path: T },
    /// Mount pseudo-terminals.
    Terminals { path: T },
    /// Make what is at the path read-only, where it is.
    Guard { path: T },
    /// Hide a file behind one that says `text`, or a directory behind an empty one.
    Mask { path: T, directory: bool, text: T },
}

impl<T: Copy> Step<T> {
    /// Returns the path if it may be written.
    pub(super) fn written(&self) -> Option<T> {
        match *self {
            Self::Bind { path, access, .. } | Self::Base { path, access } if access != Access::ReadOnly => {
                Some(path)
            }
            Self::Scratch { path, .. } | Self::Layer { path, .. } | Self::Terminals { path } => Some(path),
            _ => None,
        }
    }
}

/// The access to a bound path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Access {
    ReadOnly,
    Writable,
    /// Writable, and device files work.
    Device,
}

impl Access {
    fn from_number(number: u32) -> Option<Self> {
        [Self::ReadOnly, Self::Writable, Self::Device].into_iter().find(|access| *access as u32 == number)
    }
}

/// A canary run tries to get out instead of running a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Canary<T> {
    /// A port on the host's loopback where the agent listens.
    pub(super) port: u16,
    /// A process outside: the agent.
    pub(super) agent: u32,
    /// A file of the host that isn't mounted.
    pub(super) outside: T,
    /// A masked file.
    pub(super) masked: T,
    /// A file in a protected directory, to create.
    pub(super) protected: T,
    /// A file in the writable root, to create: that must work.
    pub(super) inside: T,
}

/// All the helper has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Policy<T> {
    pub(super) own_network: bool,
    /// The port of the listener on the sandbox's own loopback that is passed out; 0 for none.
    pub(super) listen: u16,
    /// Descriptors of a base come along, whose namespaces are joined first.
    pub(super) joins: bool,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) scratch_bytes: u64,
    /// Written to the namespace's `kernel.pid_max`, where 0 doesn't mean `leave it`.
    pub(super) pid_max: u32,
    /// (resource, value) as `setrlimit` numbers them; order of [`super::init::RESOURCES`].
    pub(super) limits: Vec<Option<u64>>,
    /// Bytes of memory of the whole tree.
    pub(super) memory: Option<u64>,
    /// Processor time of the whole tree, in microseconds.
    pub(super) cpu: Option<u64>,
    /// Bytes that each writable file system may lose; a quarter of what is free by default.
    pub(super) disk: Option<u64>,
    /// Standard error is what standard output is.
    pub(super) merged: bool,
    /// Control groups of the command's own.
    pub(super) groups: Vec<Group<T>>,
    /// The version of Landlock that must be enforced whole; 0 where there is none.
    pub(super) landlock: u32,
    pub(super) filter: Vec<u8>,
    pub(super) steps: Vec<Step<T>>,
    pub(super) cwd: T,
    pub(super) candidates: Vec<T>,
    pub(super) argv: Vec<T>,
    pub(super) env: Vec<T>,
    /// Bytes of standard input that follow the policy; `None` is `/dev/null`.
    pub(super) stdin: Option<u64>,
    /// A terminal of its own in place of what standard input, output and error are.
    pub(super) terminal: Option<Size>,
    /// A file to keep locked for as long as anything of the command lives.
    pub(super) witness: Option<T>,
    pub(super) canary: Option<Canary<T>>,
}

impl Policy<CString> {
    /// Returns the policy as bytes, header included.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new(MAGIC);
        out.u32(u32::from(self.own_network));
        out.u32(u32::from(self.listen));
        out.u32(u32::from(self.joins));
        out.u32(self.uid);
        out.u32(self.gid);
        out.u64(self.scratch_bytes);
        out.u32(self.pid_max);
        out.count(self.limits.len());
        self.limits.iter().for_each(|limit| out.option(*limit));
        [self.memory, self.cpu, self.disk].into_iter().for_each(|limit| out.option(limit));
        out.u32(u32::from(self.merged));
        out.count(self.groups.len());
        self.groups.iter().for_each(|group| group.write(&mut out));
        out.u32(self.landlock);
        out.count(self.filter.len());
        out.0.extend_from_slice(&self.filter);
        out.count(self.steps.len());
        self.steps.iter().for_each(|step| out.step(step));
        out.text(&self.cwd);
        for list in [&self.candidates, &self.argv, &self.env] {
            out.count(list.len());
            list.iter().for_each(|text| out.text(text));
        }
        out.option(self.stdin);
        out.option(self.terminal.map(Size::number));
        out.count(self.witness.iter().len());
        self.witness.iter().for_each(|path| out.text(path));
        out.u32(u32::from(self.canary.is_some()));
        if let Some(canary) = &self.canary {
            out.u32(u32::from(canary.port));
            out.u32(canary.agent);
            let paths = [&canary.outside, &canary.masked, &canary.protected, &canary.inside];
            paths.into_iter().for_each(|path| out.text(path));
        }
        framed(out)
    }
}

/// Returns the written bytes, with their length in the header.
pub(super) fn framed(mut out: Writer) -> Vec<u8> {
    let body = u32::try_from(out.0.len() - HEADER).unwrap_or(u32::MAX);
    if let Some(length) = out.0.get_mut(4..HEADER) {
        length.copy_from_slice(&body.to_le_bytes());
    }
    out.0
}

/// Returns the body's length, if the header is one with these first bytes.
pub(super) fn body_length(magic: [u8; 4], header: &[u8; HEADER]) -> Option<usize> {
    let [a, b, c, d, length @ ..] = *header;
    let length = u32::from_le_bytes(length) as usize;
    ([a, b, c, d] == magic && length <= MAX_POLICY).then_some(length)
}

impl<'a> Policy<&'a CStr> {
    /// Reads a body; `None` if it is cut or malformed.
    pub(super) fn decode(body: &'a [u8]) -> Option<Self> {
        let mut from = Reader(body);
        let policy = Self {
            own_network: from.u32()? != 0,
            listen: u16::try_from(from.u32()?).ok()?,
            joins: from.u32()? != 0,
            uid: from.u32()?,
            gid: from.u32()?,
            scratch_bytes: from.u64()?,
            pid_max: from.u32()?,
            limits: from.list(Reader::option)?,
            memory: from.option()?,
            cpu: from.option()?,
            disk: from.option()?,
            merged: from.u32()? != 0,
            groups: from.list(Group::read)?,
            landlock: from.u32()?,
            filter: {
                let length = from.u32()? as usize;
                from.bytes(length)?.to_vec()
            },
            steps: from.list(Reader::step)?,
            cwd: from.text()?,
            candidates: from.list(Reader::text)?,
            argv: from.list(Reader::text)?,
            env: from.list(Reader::text)?,
            stdin: from.option()?,
            terminal: match from.option()? {
                None => None,
                Some(size) => Some(Size::from_number(size)?),
            },
            witness: from.list(Reader::text)?.pop(),
            canary: match from.u32()? {
                0 => None,
                _ => Some(Canary {
                    port: u16::try_from(from.u32()?).ok()?,
                    agent: from.u32()?,
                    outside: from.text()?,
                    masked: from.text()?,
                    protected: from.text()?,
                    inside: from.text()?,
                }),
            },
        };
        from.is_empty().then_some(policy)
    }
}

/// Bytes with a header whose length is still to come.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn new(magic: [u8; 4]) -> Self {
        let mut bytes = Vec::with_capacity(4096);
        bytes.extend_from_slice(&magic);
        bytes.extend_from_slice(&[0; 4]);
        Self(bytes)
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn option(&mut self, value: Option<u64>) {
        self.u32(u32::from(value.is_some()));
        self.u64(value.unwrap_or(0));
    }

    pub(super) fn count(&mut self, count: usize) {
        self.u32(u32::try_from(count).unwrap_or(u32::MAX));
    }

    pub(super) fn text(&mut self, text: &CString) {
        let bytes = text.as_bytes_with_nul();
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// Bytes as they are; whoever reads them knows how many they are.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn step(&mut self, step: &Step<CString>) {
        let none = CString::default();
        let (kind, number, path, other) = match step {
            Step::Directory { path } => (0, 0, path, &none),
            Step::File { path } => (1, 0, path, &none),
            Step::Link { path, target } => (2, 0, path, target),
            Step::Bind { path, source, access } => (3, *access as u32, path, source),
            Step::Scratch { path, mode } => (4, *mode, path, &none),
            Step::Layer { path, source } => (5, 0, path, source),
            Step::Proc { path } => (6, 0, path, &none),
            Step::Terminals { path } => (7, 0, path, &none),
            Step::Guard { path } => (8, 0, path, &none),
            Step::Mask { path, directory, text } => (9, u32::from(*directory), path, text),
            Step::Base { path, access } => (10, *access as u32, path, &none),
        };
        self.u32(kind);
        self.u32(number);
        self.text(path);
        self.text(other);
    }
}

pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*taken))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*taken))
    }

    fn option(&mut self) -> Option<Option<u64>> {
        let is_some = self.u32()? != 0;
        let value = self.u64()?;
        Some(is_some.then_some(value))
    }

    pub(super) fn text(&mut self) -> Option<&'a CStr> {
        let length = self.u32()? as usize;
        CStr::from_bytes_with_nul(self.bytes(length)?).ok()
    }

    pub(super) fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.u32()? as usize;
        // Every element takes four bytes at least: a false count can't reserve more than was sent.
        let mut list = Vec::with_capacity(count.min(self.0.len() / 4));
        for _ in 0..count {
            list.push(read(self)?);
        }
        Some(list)
    }

    fn step(&mut self) -> Option<Step<&'a CStr>> {
        let (kind, number) = (self.u32()?, self.u32()?);
        let (path, other) = (self.text()?, self.text()?);
        Some(match kind {
            0 => Step::Directory { path },
            1 => Step::File { path },
            2 => Step::Link { path, target: other },
            3 => Step::Bind { path, source: other, access: Access::from_number(number)? },
            4 => Step::Scratch { path, mode: number },
            5 => Step::Layer { path, source: other },
            6 => Step::Proc { path },
            7 => Step::Terminals { path },
            8 => Step::Guard { path },
            9 => Step::Mask { path, directory: number != 0, text: other },
            10 => Step::Base { path, access: Access::from_number(number)? },
            _ => return None,
        })
    }
}

/// The part of the set-up that failed, besides the steps of the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Stage {
    Policy = 1,
    Input = 2,
    Namespaces = 3,
    Identity = 4,
    Root = 5,
    Step = 6,
    Enter = 7,
    Loopback = 8,
    Limits = 9,
    Privileges = 10,
    Filter = 11,
    Directory = 12,
    Execute = 13,
    Supervise = 14,
    Witness = 15,
    Join = 16,
    Layer = 17,
    Attributes = 18,
    Overlay = 19,
    Attach = 20,
    Pass = 21,
    Landlock = 22,
    Groups = 23,
    Listen = 30,
    Terminal = 31,
    Bubblewrap = 40,
    Private = 41,
    /// After the command began: it was killed for it.
    Watch = 42,
}

impl Stage {
    const ALL: [Self; 28] = [
        Self::Policy,
        Self::Input,
        Self::Namespaces,
        Self::Identity,
        Self::Root,
        Self::Step,
        Self::Enter,
        Self::Loopback,
        Self::Limits,
        Self::Privileges,
        Self::Filter,
        Self::Directory,
        Self::Execute,
        Self::Supervise,
        Self::Witness,
        Self::Join,
        Self::Layer,
        Self::Attributes,
        Self::Overlay,
        Self::Attach,
        Self::Pass,
        Self::Landlock,
        Self::Listen,
        Self::Groups,
        Self::Terminal,
        Self::Bubblewrap,
        Self::Private,
        Self::Watch,
    ];

    /// Returns the stage's description for errors.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Policy => "reading the policy",
            Self::Input => "preparing standard input",
            Self::Namespaces => "creating namespaces",
            Self::Identity => "mapping the user",
            Self::Root => "preparing the new root",
            Self::Step => "building the new root",
            Self::Enter => "entering the new root",
            Self::Loopback => "starting the loopback interface",
            Self::Limits => "setting limits",
            Self::Privileges => "dropping privileges",
            Self::Filter => "installing the system call filter",
            Self::Directory => "entering the working directory",
            Self::Execute => "executing",
            Self::Watch => "watching the command",
            Self::Supervise => "watching the command",
            Self::Witness => "locking the file that says it runs",
            Self::Join => "joining the copy's namespaces",
            Self::Layer => "opening a layer",
            Self::Attributes => "setting attributes of the upper layer",
            Self::Overlay => "mounting the overlay",
            Self::Attach => "attaching the overlay",
            Self::Pass => "passing the mount",
            Self::Landlock => "restricting by Landlock",
            Self::Listen => "making the proxy's listener",
            Self::Groups => "joining control groups of its own",
            Self::Terminal => "making the command's terminal",
            Self::Bubblewrap => "having bubblewrap build the sandbox",
            Self::Private => "making the command's private directory",
        }
    }
}

/// A message from the helper to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HelperMessage {
    /// It is a helper.
    Hello,
    /// Pid 1 of the sandbox, as the host numbers it, is a child of the agent from now on.
    Started { pid: i32 },
    /// The command never ran.
    Failed { stage: Stage, index: u32, errno: i32 },
    /// The command ended by itself, and every process of the sandbox but pid 1 is gone.
    Exited { code: i32, usage: Usage },
    /// The command ended by a signal, and every process of the sandbox but pid 1 is gone.
    Signaled { signal: i32, usage: Usage },
    /// The command was killed for what its tree used, and every process of the sandbox but pid 1 is
    /// gone.
    Exceeded { what: Excess, usage: Usage },
    /// The canaries that got out, one bit each.
    Canaries { escaped: i32 },
    /// The helper is in namespaces of its own, and waits for the agent to map the users.
    Unshared,
    /// Descriptors of the root and of the two namespaces come with this.
    Mounted,
    /// The listener that [`Policy::listen`] asks for comes with this.
    Listening,
    /// The outer side of the command's terminal comes with this.
    Terminal,
    /// The helper has namespaces, and waits for the policy.
    Waiting,
}

/// The resource of which a process tree used too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Excess {
    Memory = 1,
    Cpu = 2,
    Disk = 3,
}

impl Excess {
    fn from_number(number: u32) -> Option<Self> {
        [Self::Memory, Self::Cpu, Self::Disk].into_iter().find(|excess| *excess as u32 == number)
    }
}

/// The resources that pid 1 and everything that it reaped used: microseconds and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Usage {
    pub(super) user: u64,
    pub(super) system: u64,
    pub(super) peak_memory: u64,
}

/// Bytes of a note on the wire.
pub(super) const MESSAGE_BYTES: usize = 36;

impl HelperMessage {
    pub(super) fn encode(self) -> [u8; MESSAGE_BYTES] {
        let none = Usage::default();
        let (kind, stage, index, value, usage) = match self {
            Self::Hello => (1, 0, 0, 0, none),
            Self::Started { pid } => (2, 0, 0, pid, none),
            Self::Failed { stage, index, errno } => (3, stage as u8, index, errno, none),
            Self::Exited { code, usage } => (4, 0, 0, code, usage),
            Self::Signaled { signal, usage } => (5, 0, 0, signal, usage),
            Self::Canaries { escaped } => (6, 0, 0, escaped, none),
            Self::Unshared => (7, 0, 0, 0, none),
            Self::Mounted => (8, 0, 0, 0, none),
            Self::Exceeded { what, usage } => (9, 0, what as u32, 0, usage),
            Self::Listening => (12, 0, 0, 0, none),
            Self::Terminal => (13, 0, 0, 0, none),
            Self::Waiting => (14, 0, 0, 0, none),
        };
        let Usage { user, system, peak_memory } = usage;
        let parts = [&[b'J', kind, stage, 0][..], &index.to_le_bytes(), &value.to_le_bytes()];
        let numbers = [user.to_le_bytes(), system.to_le_bytes(), peak_memory.to_le_bytes()];
        let mut note = [0; MESSAGE_BYTES];
        let bytes = parts.into_iter().flatten().chain(numbers.iter().flatten());
        note.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        note
    }

    pub(super) fn decode(bytes: &[u8; MESSAGE_BYTES]) -> Option<Self> {
        let ([b'J', kind, stage, 0], rest) = bytes.split_first_chunk()? else { return None };
        let mut rest = Reader(rest);
        let (index, value) = (rest.u32()?, rest.u32()?.cast_signed());
        let usage = Usage { user: rest.u64()?, system: rest.u64()?, peak_memory: rest.u64()? };
        Some(match kind {
            1 => Self::Hello,
            2 => Self::Started { pid: value },
            3 => {
                let stage = Stage::ALL.into_iter().find(|known| *known as u8 == *stage)?;
                Self::Failed { stage, index, errno: value }
            }
            4 => Self::Exited { code: value, usage },
            5 => Self::Signaled { signal: value, usage },
            6 => Self::Canaries { escaped: value },
            7 => Self::Unshared,
            8 => Self::Mounted,
            9 => Self::Exceeded { what: Excess::from_number(index)?, usage },
            12 => Self::Listening,
            13 => Self::Terminal,
            14 => Self::Waiting,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c(text: &str) -> CString {
        CString::new(text).unwrap()
    }

    fn policy() -> Policy<CString> {
        let steps = vec![
            Step::Directory { path: c("a") },
            Step::File { path: c("b") },
            Step::Link { path: c("bin"), target: c("usr/bin") },
            Step::Bind { path: c("usr"), source: c("/usr"), access: Access::ReadOnly },
            Step::Bind { path: c("dev/null"), source: c("/dev/null"), access: Access::Device },
            Step::Scratch { path: c("tmp"), mode: 0o1777 },
            Step::Layer { path: c("l"), source: c("/l") },
            Step::Proc { path: c("proc") },
            Step::Terminals { path: c("dev/pts") },
            Step::Guard { path: c("w/.git") },
            Step::Mask { path: c("w/secret"), directory: true, text: c("") },
            Step::Mask { path: c("w/settings"), directory: false, text: c("[x]\n") },
            Step::Base { path: c("w"), access: Access::Writable },
        ];
        Policy {
            own_network: true,
            listen: 3128,
            joins: true,
            uid: 1,
            gid: 2,
            scratch_bytes: 3,
            pid_max: 4,
            limits: vec![None, Some(5)],
            memory: Some(9),
            cpu: None,
            disk: Some(10),
            merged: true,
            groups: vec![Group::Enter { file: c("/g/tasks") }, Group::Join { file: c("/g/procs") }],
            landlock: 7,
            filter: vec![6; 8],
            steps,
            cwd: c("/w"),
            candidates: vec![c("/bin/sh")],
            argv: vec![c("sh"), c("")],
            env: vec![c("A=b")],
            stdin: Some(7),
            terminal: Some(Size { columns: 11, rows: 12 }),
            witness: Some(c("/state/witness")),
            canary: Some(Canary {
                port: 8,
                agent: 9,
                outside: c("o"),
                masked: c("m"),
                protected: c("p"),
                inside: c("i"),
            }),
        }
    }

    #[test]
    fn a_policy_survives_the_wire_and_no_cut_of_it_does() {
        let bytes = policy().encode();
        let (header, body) = bytes.split_first_chunk::<HEADER>().unwrap();
        assert_eq!(body_length(MAGIC, header), Some(body.len()));
        let decoded = Policy::decode(body).unwrap();
        assert_eq!(format!("{decoded:?}"), format!("{:?}", policy()));
        for cut in 0..body.len() {
            assert!(Policy::decode(&body[..cut]).is_none(), "cut at {cut}");
        }
    }

    #[test]
    fn notes_survive_the_wire() {
        let usage = Usage { user: 1, system: u64::MAX, peak_memory: 3 };
        let notes = [
            HelperMessage::Hello,
            HelperMessage::Started { pid: 77 },
            HelperMessage::Failed { stage: Stage::Step, index: 3, errno: 13 },
            HelperMessage::Exited { code: 255, usage },
            HelperMessage::Signaled { signal: 9, usage },
            HelperMessage::Canaries { escaped: 5 },
            HelperMessage::Unshared,
            HelperMessage::Mounted,
            HelperMessage::Exceeded { what: Excess::Disk, usage },
            HelperMessage::Listening,
            HelperMessage::Terminal,
            HelperMessage::Waiting,
        ];
        for note in notes {
            assert_eq!(HelperMessage::decode(&note.encode()), Some(note));
        }
        assert_eq!(HelperMessage::decode(b"{\"json\": 1, \"longer\": \"than a note\"}"), None);
        for stage in Stage::ALL {
            let note = HelperMessage::Failed { stage, index: 0, errno: 1 };
            assert_eq!(HelperMessage::decode(&note.encode()), Some(note));
        }
    }
}
