//! The table of attempts: what each tries, and what is expected of it where. `Held` everywhere, but
//! for what is named.

use journeyman_protocol::SandboxTier;

use crate::attempt::{files, inside, kernel, network, processes};
use crate::scene::{Scene, Verdict};

/// What is expected of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// It doesn't work, and leaves no trace outside.
    Held,
    /// It works and does no harm, by design.
    Harmless(&'static str),
    /// It works inside, and what comes out is handled afterwards; where, and which test shows it.
    Filtered(&'static str),
    /// It works: this tier doesn't promise otherwise, and says so where it says what it enforces.
    Open(&'static str),
}

/// Where an expectation holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    Every,
    Landlock,
    Container,
}

/// What an ordinary user without any sandbox gets, which shows that the attempt is a real one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alone {
    Works,
    /// It doesn't: the kernel refuses it to ordinary users anyway, or no request can ask for it.
    Refused,
}

pub(crate) struct Row {
    pub(crate) number: u8,
    pub(crate) what: &'static str,
    pub(crate) attempt: fn(&Scene) -> Verdict,
    pub(crate) but: &'static [(On, Expect)],
    pub(crate) alone: Alone,
    /// Whether it is about how the tier of namespaces is built.
    pub(crate) of_namespaces: bool,
}

impl Row {
    pub(crate) fn expected(&self, tier: SandboxTier) -> Expect {
        let applies = |on: On| match on {
            On::Every => true,
            On::Landlock => tier == SandboxTier::Landlock,
            On::Container => tier == SandboxTier::Container,
        };
        self.but.iter().find(|(on, _)| applies(*on)).map_or(Expect::Held, |(_, expect)| *expect)
    }
}

const fn row(number: u8, what: &'static str, attempt: fn(&Scene) -> Verdict) -> Row {
    Row { number, what, attempt, but: &[], alone: Alone::Works, of_namespaces: false }
}

/// It doesn't work for ordinary users without any sandbox, either.
const fn refused(number: u8, what: &'static str, attempt: fn(&Scene) -> Verdict) -> Row {
    Row { alone: Alone::Refused, ..row(number, what, attempt) }
}

/// Beyond the table: about the sandbox's own parts.
const fn own(number: u8, what: &'static str, attempt: fn(&Scene) -> Verdict) -> Row {
    Row { of_namespaces: true, ..refused(number, what, attempt) }
}

impl Row {
    const fn but(self, but: &'static [(On, Expect)]) -> Self {
        Self { but, ..self }
    }
}

use Expect::{Filtered, Harmless, Open};

/// Landlock has no right for it.
const NO_RIGHT: &[(On, Expect)] = &[(On::Landlock, Open("Landlock knows no right for existence"))];
/// A tree that may be written can't have parts that may not: rules only add.
const NO_PARTS: &[(On, Expect)] = &[(
    On::Landlock,
    Open("protected paths aren't kept by Landlock; the tier says so and isn't chosen for what needs them"),
)];
const NO_PROCESSES: &[(On, Expect)] =
    &[(On::Landlock, Open("processes are told apart by what they may be sent, not hidden"))];
const NEW_GUARDED: &[(On, Expect)] = &[(
    On::Every,
    Filtered(
        "named and refused after the command: tools/tests/commands.rs, `changes_that_are_a_persons_to_make_are_named_and_can_be_undone`; kept back when a copy is landed",
    ),
)];
const NEW_REPOSITORY: &[(On, Expect)] = &[(
    On::Every,
    Filtered(
        "moved away after the command: tools/tests/commands.rs, `a_repository_that_a_command_makes_is_moved_away`",
    ),
)];

const SHOWN: &[(On, Expect)] = &[(
    On::Container,
    Open(
        "a socket in what is shown can be connected to, however it is mounted; only the plan of namespaces masks it",
    ),
)];

pub(crate) const ROWS: &[Row] = &[
    row(1, "create a file outside", files::create),
    row(2, "write through a link", files::through_a_link),
    row(3, "hard-link a file from outside", files::hard_link),
    row(4, "move a file out", files::move_out),
    row(5, "climb out by names", files::climb),
    row(6, "open a readable file again for writing", files::reopen),
    row(7, "write through the agent's root", processes::agents_root),
    row(8, "truncate outside", files::truncate),
    row(9, "change a mode outside", files::change_mode),
    row(10, "change times and attributes outside", files::change_times),
    row(11, "a leaked directory", files::leaked_directory),
    row(12, "a leaked file", files::leaked_file),
    row(13, "a git hook", files::git_hook).but(NO_PARTS),
    row(14, "git's configuration", files::git_config).but(NO_PARTS),
    row(15, "move .git aside", files::git_aside).but(NO_PARTS),
    row(16, "a new .envrc", files::new_envrc).but(NEW_GUARDED),
    row(17, "new tasks for an editor", files::new_editor_tasks).but(NEW_GUARDED),
    row(18, "the agent's settings in the project", files::project_settings).but(NO_PARTS),
    row(19, "the agent's settings of the user", files::user_settings),
    row(20, "read a key in the home", files::read_key),
    row(21, "append to .bashrc", files::shell_start_up),
    row(22, "a repository in the project", files::nested_repository).but(NEW_REPOSITORY),
    row(23, "the agent's environment", processes::agents_environment),
    refused(24, "a secret in its own environment", processes::own_environment),
    row(25, "a secret in any environment", processes::any_environment),
    row(26, "trace the agent", processes::trace),
    row(27, "the agent's memory by its file", processes::agents_memory),
    row(28, "the agent's memory by a call", processes::read_memory),
    row(29, "take a descriptor of the agent's", processes::take_descriptor),
    row(30, "signal the agent", processes::signal),
    row(31, "a session of its own", processes::own_session)
        .but(&[(On::Every, Harmless("trees are killed by namespace or group of control, never by session"))]),
    row(32, "TCP to the host", network::tcp),
    row(33, "TCP to the host by IPv6", network::tcp6),
    row(34, "data in the first packet of TCP", network::fast_open),
    row(35, "TCP of several paths", network::multipath),
    row(36, "UDP to the host", network::udp),
    row(37, "an abstract socket", network::abstract_socket),
    row(38, "a socket like Docker's", network::docker_like),
    refused(39, "Docker's own socket", network::docker),
    row(40, "the agent of SSH", network::ssh_agent),
    row(41, "sockets of virtual machines", network::vsock),
    row(42, "netlink", network::netlink),
    refused(43, "raw packets", network::packets),
    row(44, "the kernel's cryptography", network::kernel_crypto),
    row(45, "the net", network::internet),
    row(46, "io_uring", kernel::io_uring),
    row(47, "read keys", processes::read_keys),
    row(48, "plant a key", processes::plant_key),
    row(49, "namespaces of its own", kernel::new_namespaces),
    row(50, "namespaces of its own by clone3", kernel::clone3),
    refused(51, "mount", kernel::mount),
    refused(52, "unmount a protection", kernel::unmount),
    row(53, "make a mount writable in a namespace", kernel::remount_in_a_namespace),
    row(54, "unmount a protection in a namespace", kernel::unmount_in_a_namespace),
    refused(55, "enter the agent's namespaces", processes::enter_namespace),
    refused(56, "change the root and climb out", kernel::change_root),
    refused(57, "a device of its own", files::device_node),
    refused(58, "devices", files::devices),
    row(59, "gain privileges, or have any", kernel::privileges),
    refused(60, "programs for the kernel", kernel::bpf),
    row(61, "performance events", kernel::performance_events),
    row(62, "page faults in user space", kernel::page_faults),
    refused(63, "open by a handle", kernel::handles),
    row(64, "32-bit calls", kernel::foreign_numbers),
    row(65, "x32 calls", kernel::x32),
    refused(66, "the kernel's settings", files::kernel_settings),
    refused(67, "groups of control", files::control_groups),
    row(68, "shared memory of System V", kernel::segment),
    row(69, "a file in shared memory", files::shared_memory_file),
    row(70, "the agent's command line", processes::command_lines).but(NO_PROCESSES),
    row(71, "overwrite the agent's program", processes::agents_program),
    row(72, "watch the home", files::watch_home),
    row(73, "events of all files", kernel::file_events),
    row(74, "type into the user's terminal", processes::users_terminal),
    row(75, "type into any terminal", processes::type_ahead),
    row(76, "run what was just written", processes::run_what_was_written).but(&[(
        On::Every,
        Harmless("compilers at run time need it, and it gives nothing that a program hasn't"),
    )]),
    row(77, "a huge sparse file", files::huge_file),
    row(78, "whether a key is there", files::existence).but(NO_RIGHT),
    row(79, "signal the agent otherwise", processes::signal_otherwise),
    refused(80, "the clock and the host's name", kernel::clock_and_name),
    // Rows 81 to 114 are in tests of their own; `attacks_bounds.rs` has the list. These are tried
    // as the above.
    row(110, "files in the host's /tmp", inside::hosts_tmp),
    row(115, "a set-user-ID file in the project", inside::set_user_id),
    row(120, "a socket in a directory that is shown", network::shown_socket).but(SHOWN),
    own(116, "the sandbox's first process", inside::init),
    own(117, "the sandbox's store", inside::store),
    own(118, "layers of a copy", inside::layers),
    own(119, "the project's own mount", inside::move_project),
];
