//! The configuration of a sandbox that the agent sends to a helper, and its encoding.

use std::ffi::{CStr, CString};

use super::cgroups::CgroupEntry;
use super::framing::{FrameReader, FrameWriter};
use super::root_steps::RootStep;
use super::terminal::TerminalSize;

/// First bytes of a policy; the last digit is the format's version.
pub(super) const POLICY_MAGIC: [u8; 4] = *b"JMS5";
/// The targets of a canary run, which tries to escape instead of running a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CanaryTargets<T> {
    /// The port on the host's loopback on which the agent listens.
    pub(super) port: u16,
    /// The process id of the agent, which is outside.
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

/// The configuration of a sandbox, as a helper sets it up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SandboxPolicy<T> {
    pub(super) own_network: bool,
    /// The ports of the listeners on the sandbox's own loopback that are passed out, in this order;
    /// the first is the proxy's.
    pub(super) listen: Vec<u16>,
    /// Descriptors of a base come along, whose namespaces are joined first.
    pub(super) joins: bool,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) scratch_bytes: u64,
    /// Written to the namespace's `kernel.pid_max`, where 0 doesn't mean `leave it`.
    pub(super) pid_max: u32,
    /// (resource, value) as `setrlimit` numbers them; order of [`super::init::LIMITED_RESOURCES`].
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
    pub(super) groups: Vec<CgroupEntry<T>>,
    /// The version of Landlock that must be enforced whole; 0 where there is none.
    pub(super) landlock: u32,
    pub(super) filter: Vec<u8>,
    pub(super) steps: Vec<RootStep<T>>,
    pub(super) cwd: T,
    pub(super) candidates: Vec<T>,
    pub(super) argv: Vec<T>,
    pub(super) env: Vec<T>,
    /// Bytes of standard input that follow the policy; `None` is `/dev/null`.
    pub(super) stdin: Option<u64>,
    /// A terminal of its own in place of what standard input, output and error are.
    pub(super) terminal: Option<TerminalSize>,
    /// A file to keep locked for as long as anything of the command lives.
    pub(super) witness: Option<T>,
    pub(super) canary: Option<CanaryTargets<T>>,
}

impl SandboxPolicy<CString> {
    /// Returns the policy as bytes, header included.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = FrameWriter::new(POLICY_MAGIC);
        out.write_u32(u32::from(self.own_network));
        out.write_count(self.listen.len());
        self.listen.iter().for_each(|port| out.write_u32(u32::from(*port)));
        out.write_u32(u32::from(self.joins));
        out.write_u32(self.uid);
        out.write_u32(self.gid);
        out.write_u64(self.scratch_bytes);
        out.write_u32(self.pid_max);
        out.write_count(self.limits.len());
        self.limits.iter().for_each(|limit| out.write_option(*limit));
        [self.memory, self.cpu, self.disk].into_iter().for_each(|limit| out.write_option(limit));
        out.write_u32(u32::from(self.merged));
        out.write_count(self.groups.len());
        self.groups.iter().for_each(|group| group.encode(&mut out));
        out.write_u32(self.landlock);
        out.write_count(self.filter.len());
        out.write_bytes(&self.filter);
        out.write_count(self.steps.len());
        self.steps.iter().for_each(|step| step.encode(&mut out));
        out.write_text(&self.cwd);
        for list in [&self.candidates, &self.argv, &self.env] {
            out.write_count(list.len());
            list.iter().for_each(|text| out.write_text(text));
        }
        out.write_option(self.stdin);
        out.write_option(self.terminal.map(TerminalSize::to_number));
        out.write_count(self.witness.iter().len());
        self.witness.iter().for_each(|path| out.write_text(path));
        out.write_u32(u32::from(self.canary.is_some()));
        if let Some(canary) = &self.canary {
            out.write_u32(u32::from(canary.port));
            out.write_u32(canary.agent);
            let paths = [&canary.outside, &canary.masked, &canary.protected, &canary.inside];
            paths.into_iter().for_each(|path| out.write_text(path));
        }
        out.finish()
    }
}

impl<'a> SandboxPolicy<&'a CStr> {
    /// Reads a body; `None` if it is cut or malformed.
    pub(super) fn decode(body: &'a [u8]) -> Option<Self> {
        let mut from = FrameReader::new(body);
        let policy = Self {
            own_network: from.read_u32()? != 0,
            listen: from.read_list(|from| u16::try_from(from.read_u32()?).ok())?,
            joins: from.read_u32()? != 0,
            uid: from.read_u32()?,
            gid: from.read_u32()?,
            scratch_bytes: from.read_u64()?,
            pid_max: from.read_u32()?,
            limits: from.read_list(FrameReader::read_option)?,
            memory: from.read_option()?,
            cpu: from.read_option()?,
            disk: from.read_option()?,
            merged: from.read_u32()? != 0,
            groups: from.read_list(CgroupEntry::decode)?,
            landlock: from.read_u32()?,
            filter: {
                let length = from.read_u32()? as usize;
                from.read_bytes(length)?.to_vec()
            },
            steps: from.read_list(RootStep::decode)?,
            cwd: from.read_text()?,
            candidates: from.read_list(FrameReader::read_text)?,
            argv: from.read_list(FrameReader::read_text)?,
            env: from.read_list(FrameReader::read_text)?,
            stdin: from.read_option()?,
            terminal: match from.read_option()? {
                None => None,
                Some(size) => Some(TerminalSize::from_number(size)?),
            },
            witness: from.read_list(FrameReader::read_text)?.pop(),
            canary: match from.read_u32()? {
                0 => None,
                _ => Some(CanaryTargets {
                    port: u16::try_from(from.read_u32()?).ok()?,
                    agent: from.read_u32()?,
                    outside: from.read_text()?,
                    masked: from.read_text()?,
                    protected: from.read_text()?,
                    inside: from.read_text()?,
                }),
            },
        };
        from.is_empty().then_some(policy)
    }
}

#[cfg(test)]
mod tests {
    use super::super::framing::{HEADER_BYTES, body_length};
    use super::super::root_steps::BindAccess;
    use super::*;

    fn c(text: &str) -> CString {
        CString::new(text).unwrap()
    }

    fn policy() -> SandboxPolicy<CString> {
        let steps = vec![
            RootStep::Directory { path: c("a") },
            RootStep::File { path: c("b") },
            RootStep::Link { path: c("bin"), target: c("usr/bin") },
            RootStep::Bind { path: c("usr"), source: c("/usr"), access: BindAccess::ReadOnly },
            RootStep::Bind { path: c("dev/null"), source: c("/dev/null"), access: BindAccess::Device },
            RootStep::Scratch { path: c("tmp"), mode: 0o1777 },
            RootStep::Layer { path: c("l"), source: c("/l") },
            RootStep::Proc { path: c("proc") },
            RootStep::Terminals { path: c("dev/pts") },
            RootStep::Guard { path: c("w/.git") },
            RootStep::Mask { path: c("w/secret"), directory: true, text: c("") },
            RootStep::Mask { path: c("w/settings"), directory: false, text: c("[x]\n") },
            RootStep::Base { path: c("w"), access: BindAccess::Writable },
        ];
        SandboxPolicy {
            own_network: true,
            listen: vec![3128, 11434],
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
            groups: vec![
                CgroupEntry::Enter { file: c("/g/tasks") },
                CgroupEntry::Join { file: c("/g/procs") },
            ],
            landlock: 7,
            filter: vec![6; 8],
            steps,
            cwd: c("/w"),
            candidates: vec![c("/bin/sh")],
            argv: vec![c("sh"), c("")],
            env: vec![c("A=b")],
            stdin: Some(7),
            terminal: Some(TerminalSize { columns: 11, rows: 12 }),
            witness: Some(c("/state/witness")),
            canary: Some(CanaryTargets {
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
        let (header, body) = bytes.split_first_chunk::<HEADER_BYTES>().unwrap();
        assert_eq!(body_length(POLICY_MAGIC, header), Some(body.len()));
        let decoded = SandboxPolicy::decode(body).unwrap();
        assert_eq!(format!("{decoded:?}"), format!("{:?}", policy()));
        for cut in 0..body.len() {
            assert!(SandboxPolicy::decode(&body[..cut]).is_none(), "cut at {cut}");
        }
    }
}
