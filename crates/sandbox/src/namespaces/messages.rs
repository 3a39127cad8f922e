//! The messages from a helper to the agent.

use super::framing::FrameReader;

/// The part of the set-up that failed, besides the steps of the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum SetupStage {
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

impl SetupStage {
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
            Self::Listen => "making a listener of its network",
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
    /// The process is a helper.
    Hello,
    /// In place of [`Hello`](Self::Hello): the process has threads already, so that it can't be a
    /// helper.
    HasThreads,
    /// Pid 1 of the sandbox, as the host numbers it, is a child of the agent from now on.
    Started { pid: i32 },
    /// The command never ran.
    Failed { stage: SetupStage, index: u32, errno: i32 },
    /// The command ended by itself, and every process of the sandbox but pid 1 is gone.
    Exited { code: i32, usage: ProcessUsage },
    /// The command ended by a signal, and every process of the sandbox but pid 1 is gone.
    Signaled { signal: i32, usage: ProcessUsage },
    /// The command was killed for what its tree used, and every process of the sandbox but pid 1 is
    /// gone.
    Exceeded { what: ResourceExcess, usage: ProcessUsage },
    /// The canaries that got out, one bit each.
    Canaries { escaped: i32 },
    /// The helper is in namespaces of its own, and waits for the agent to map the users.
    Unshared,
    /// Descriptors of the root and of the two namespaces come with this.
    Mounted,
    /// The next listener that [`Policy::listen`](super::policy::Policy::listen) asks for comes with
    /// this.
    Listening,
    /// The outer side of the command's terminal comes with this.
    Terminal,
    /// The helper has namespaces, and waits for the policy.
    Waiting,
}

/// The resource of which a process tree used too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum ResourceExcess {
    Memory = 1,
    Cpu = 2,
    Disk = 3,
}

impl ResourceExcess {
    fn from_number(number: u32) -> Option<Self> {
        [Self::Memory, Self::Cpu, Self::Disk].into_iter().find(|excess| *excess as u32 == number)
    }
}

/// The resources that pid 1 and everything that it reaped used: microseconds and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ProcessUsage {
    pub(super) user: u64,
    pub(super) system: u64,
    pub(super) peak_memory: u64,
}

/// Bytes of an encoded message.
pub(super) const MESSAGE_BYTES: usize = 36;

impl HelperMessage {
    pub(super) fn encode(self) -> [u8; MESSAGE_BYTES] {
        let none = ProcessUsage::default();
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
            Self::HasThreads => (15, 0, 0, 0, none),
        };
        let ProcessUsage { user, system, peak_memory } = usage;
        let parts = [&[b'J', kind, stage, 0][..], &index.to_le_bytes(), &value.to_le_bytes()];
        let numbers = [user.to_le_bytes(), system.to_le_bytes(), peak_memory.to_le_bytes()];
        let mut message = [0; MESSAGE_BYTES];
        let bytes = parts.into_iter().flatten().chain(numbers.iter().flatten());
        message.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        message
    }

    pub(super) fn decode(bytes: &[u8; MESSAGE_BYTES]) -> Option<Self> {
        let ([b'J', kind, stage, 0], rest) = bytes.split_first_chunk()? else { return None };
        let mut rest = FrameReader::new(rest);
        let (index, value) = (rest.read_u32()?, rest.read_u32()?.cast_signed());
        let usage =
            ProcessUsage { user: rest.read_u64()?, system: rest.read_u64()?, peak_memory: rest.read_u64()? };
        Some(match kind {
            1 => Self::Hello,
            2 => Self::Started { pid: value },
            3 => {
                let stage = SetupStage::ALL.into_iter().find(|known| *known as u8 == *stage)?;
                Self::Failed { stage, index, errno: value }
            }
            4 => Self::Exited { code: value, usage },
            5 => Self::Signaled { signal: value, usage },
            6 => Self::Canaries { escaped: value },
            7 => Self::Unshared,
            8 => Self::Mounted,
            9 => Self::Exceeded { what: ResourceExcess::from_number(index)?, usage },
            12 => Self::Listening,
            13 => Self::Terminal,
            14 => Self::Waiting,
            15 => Self::HasThreads,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_encoding() {
        let usage = ProcessUsage { user: 1, system: u64::MAX, peak_memory: 3 };
        let messages = [
            HelperMessage::Hello,
            HelperMessage::Started { pid: 77 },
            HelperMessage::Failed { stage: SetupStage::Step, index: 3, errno: 13 },
            HelperMessage::Exited { code: 255, usage },
            HelperMessage::Signaled { signal: 9, usage },
            HelperMessage::Canaries { escaped: 5 },
            HelperMessage::Unshared,
            HelperMessage::Mounted,
            HelperMessage::Exceeded { what: ResourceExcess::Disk, usage },
            HelperMessage::Listening,
            HelperMessage::Terminal,
            HelperMessage::Waiting,
            HelperMessage::HasThreads,
        ];
        for message in messages {
            assert_eq!(HelperMessage::decode(&message.encode()), Some(message));
        }
        assert_eq!(HelperMessage::decode(b"{\"json\": 1, \"longer\": \"than a note\"}"), None);
        for stage in SetupStage::ALL {
            let message = HelperMessage::Failed { stage, index: 0, errno: 1 };
            assert_eq!(HelperMessage::decode(&message.encode()), Some(message));
        }
    }
}
