//! The denials of a finished command: known from its end, or read from its output.

use journeyman_protocol::clip_to_bytes;

use super::{Denial, DenialKind};
use crate::network::{HostPattern, Network};
use crate::running_command::Outcome;

/// Maximum denials of one command. A build that can't reach its registry prints a hundred such
/// messages.
pub(crate) const MAX_DENIALS: usize = 8;
/// Maximum bytes of a line that are searched; the reason stands at its end or its beginning.
const MAX_SEARCHED_LINE_BYTES: usize = 2_000;
/// Maximum characters of the name of what was denied.
const MAX_TARGET_CHARACTERS: usize = 200;

/// The place in a line of the name of what was denied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NamedTarget {
    Host,
    Path,
    Nothing,
}

/// Texts that programs print, their meaning, and the name that goes with them. The first match
/// counts.
const KNOWN_MESSAGES: &[(&str, DenialReason, NamedTarget)] = &[
    ("CONNECT tunnel failed, response 403", DenialReason::Host, NamedTarget::Host),
    ("Tunnel connection failed: 403", DenialReason::Host, NamedTarget::Host),
    ("Proxy tunneling failed: Forbidden", DenialReason::Host, NamedTarget::Host),
    ("Received HTTP code 403 from proxy", DenialReason::Host, NamedTarget::Host),
    ("Could not resolve host", DenialReason::Host, NamedTarget::Host),
    ("Couldn't resolve host", DenialReason::Host, NamedTarget::Host),
    ("Could not resolve proxy", DenialReason::Host, NamedTarget::Host),
    ("Temporary failure in name resolution", DenialReason::Host, NamedTarget::Host),
    ("Temporary failure resolving", DenialReason::Host, NamedTarget::Host),
    ("temporary failure in name resolution", DenialReason::Host, NamedTarget::Host),
    ("Name or service not known", DenialReason::Host, NamedTarget::Host),
    ("nodename nor servname provided", DenialReason::Host, NamedTarget::Host),
    ("failed to lookup address information", DenialReason::Host, NamedTarget::Host),
    ("unable to resolve host address", DenialReason::Host, NamedTarget::Host),
    ("UnknownHostException", DenialReason::Host, NamedTarget::Host),
    ("getaddrinfo EAI_AGAIN", DenialReason::Host, NamedTarget::Host),
    ("getaddrinfo ENOTFOUND", DenialReason::Host, NamedTarget::Host),
    ("dial tcp: lookup ", DenialReason::Host, NamedTarget::Host),
    ("Network is unreachable", DenialReason::Host, NamedTarget::Host),
    ("network is unreachable", DenialReason::Host, NamedTarget::Host),
    ("ENETUNREACH", DenialReason::Host, NamedTarget::Host),
    ("only-if-cached", DenialReason::Host, NamedTarget::Host),
    ("you're using offline mode", DenialReason::Host, NamedTarget::Nothing),
    ("--offline was specified", DenialReason::Host, NamedTarget::Host),
    ("No matching distribution found for", DenialReason::Host, NamedTarget::Nothing),
    ("Read-only file system", DenialReason::Write, NamedTarget::Path),
    ("read-only file system", DenialReason::Write, NamedTarget::Path),
    ("EROFS", DenialReason::Write, NamedTarget::Path),
    ("File size limit exceeded", DenialReason::FileSize, NamedTarget::Nothing),
    ("File too large", DenialReason::FileSize, NamedTarget::Path),
    ("No space left on device", DenialReason::Space, NamedTarget::Path),
    ("no space left on device", DenialReason::Space, NamedTarget::Path),
    ("ENOSPC", DenialReason::Space, NamedTarget::Path),
    ("Too many open files", DenialReason::OpenFiles, NamedTarget::Nothing),
    ("EMFILE", DenialReason::OpenFiles, NamedTarget::Nothing),
    ("Cannot fork", DenialReason::Processes, NamedTarget::Nothing),
    ("fork: retry", DenialReason::Processes, NamedTarget::Nothing),
    ("fork: Resource temporarily unavailable", DenialReason::Processes, NamedTarget::Nothing),
    ("can't start new thread", DenialReason::Processes, NamedTarget::Nothing),
    ("unable to create native thread", DenialReason::Processes, NamedTarget::Nothing),
    ("failed to spawn thread", DenialReason::Processes, NamedTarget::Nothing),
    ("Resource temporarily unavailable", DenialReason::Processes, NamedTarget::Nothing),
    ("Cannot allocate memory", DenialReason::Memory, NamedTarget::Nothing),
    ("cannot allocate memory", DenialReason::Memory, NamedTarget::Nothing),
    ("memory exhausted", DenialReason::Memory, NamedTarget::Nothing),
    ("std::bad_alloc", DenialReason::Memory, NamedTarget::Nothing),
    ("MemoryError", DenialReason::Memory, NamedTarget::Nothing),
    ("ENOMEM", DenialReason::Memory, NamedTarget::Nothing),
    ("Operation not permitted", DenialReason::Call, NamedTarget::Path),
    ("operation not permitted", DenialReason::Call, NamedTarget::Path),
    ("EPERM", DenialReason::Call, NamedTarget::Path),
    ("Bad system call", DenialReason::Call, NamedTarget::Nothing),
    ("Function not implemented", DenialReason::Call, NamedTarget::Nothing),
    ("Address family not supported by protocol", DenialReason::Call, NamedTarget::Nothing),
    ("Permission denied", DenialReason::Access, NamedTarget::Path),
    ("permission denied", DenialReason::Access, NamedTarget::Path),
    ("EACCES", DenialReason::Access, NamedTarget::Path),
];

/// For each byte, the messages that have it as their first, second or third one. Lines are many and
/// few say anything of this: one look at three bytes tells it of nearly every place.
static MESSAGES_BY_BYTE: [[u64; 256]; 3] = index_messages();

// A bit each, and three bytes at least.
const _: () = assert!(KNOWN_MESSAGES.len() <= u64::BITS as usize);

#[allow(
    clippy::indexing_slicing,
    reason = "evaluated when this is compiled, where a place too far is an error"
)]
const fn index_messages() -> [[u64; 256]; 3] {
    let mut beginnings = [[0; 256]; 3];
    let mut message = 0;
    while message < KNOWN_MESSAGES.len() {
        let mut place = 0;
        while place < beginnings.len() {
            beginnings[place][KNOWN_MESSAGES[message].0.as_bytes()[place] as usize] |= 1 << message;
            place += 1;
        }
        message += 1;
    }
    beginnings
}

/// Returns the first of the messages that stand in a line.
fn find_message(line: &str) -> Option<&'static (&'static str, DenialReason, NamedTarget)> {
    let [first, second, third] = &MESSAGES_BY_BYTE;
    let of = |bits: &[u64; 256], byte: u8| bits.get(usize::from(byte)).copied().unwrap_or_default();
    let mut found = 0_u64;
    for (at, bytes) in line.as_bytes().windows(3).enumerate() {
        let &[one, two, three] = bytes else { continue };
        let mut likely = of(first, one) & of(second, two) & of(third, three) & !found;
        while likely != 0 {
            let message = likely.trailing_zeros();
            let here = line.as_bytes().get(at..).unwrap_or_default();
            if KNOWN_MESSAGES
                .get(message as usize)
                .is_some_and(|(said, ..)| here.starts_with(said.as_bytes()))
            {
                found |= 1 << message;
            }
            likely &= likely - 1;
        }
    }
    KNOWN_MESSAGES.get(found.trailing_zeros() as usize)
}

/// Words of a line that mean a change.
const CHANGE_WORDS: [&str; 18] = [
    "creat", "writ", "mkdir", "touch", "remov", "delet", "unlink", "rename", "cp:", "mv:", "rm:", "ln:",
    "chmod", "install", "save", "lock", "append", "output",
];

/// The reason behind a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DenialReason {
    Host,
    Write,
    Access,
    Call,
    Space,
    FileSize,
    OpenFiles,
    Processes,
    Memory,
}

/// Returns the denials of a command, from its end and its cleaned output. Only the output of a
/// command that failed is read: one that went on found another way. At most [`MAX_DENIALS`] are
/// returned, each once, the certain ones first. Pure, and linear in the output.
pub(crate) fn find_denials(outcome: &Outcome, output: &str, network: &Network) -> Vec<Denial> {
    let mut found: Vec<Denial> = denial_from_outcome(outcome).into_iter().collect();
    let failed = !matches!(outcome, Outcome::Exited(0) | Outcome::Cancelled | Outcome::SetupFailed(_));
    let lines = output.lines().filter(|_| failed);
    for line in lines {
        if found.len() >= MAX_DENIALS {
            break;
        }
        if let Some(denial) = denial_from_line(clip_to_bytes(line, MAX_SEARCHED_LINE_BYTES), network)
            && !found.iter().any(|known| (known.kind, &known.what) == (denial.kind, &denial.what))
        {
            found.push(denial);
        }
    }
    found
}

/// Returns the denial that the sandbox itself made.
fn denial_from_outcome(outcome: &Outcome) -> Option<Denial> {
    let (what, hint) = match outcome {
        Outcome::MemoryLimit => (
            "more memory than its processes may hold together",
            "use less: fewer jobs at once, smaller inputs, or a part of the tests",
        ),
        Outcome::DiskLimit => (
            "more disk than it may fill",
            "write less, or remove what it made before; perhaps it doesn't end by itself",
        ),
        Outcome::CpuLimit => {
            ("more processor time than it may use", "do less at once, or look for a loop that doesn't end")
        }
        Outcome::OutputLimit => (
            "more output than is taken",
            "have it say less: a quiet flag, a filter, or a file in the project",
        ),
        _ => return None,
    };
    Some(Denial { kind: DenialKind::Resource, what: what.to_owned(), certain: true, hint: hint.to_owned() })
}

/// Returns the denial that a line of output reports, if any.
fn denial_from_line(line: &str, network: &Network) -> Option<Denial> {
    let (said, reason, names) = find_message(line)?;
    // Node's errors are followed by their parts, one a line.
    if line.trim_start().starts_with("code: ") {
        return None;
    }
    if *reason == DenialReason::Host && *network == Network::Host {
        return None;
    }
    let named = match names {
        NamedTarget::Host => find_host(line, said),
        NamedTarget::Path => find_path(line),
        NamedTarget::Nothing => None,
    };
    if named.is_some_and(|named| *reason == DenialReason::Host && is_sandbox_host(named)) {
        return None;
    }
    Some(create_denial(*reason, named, line, network))
}

fn create_denial(reason: DenialReason, named: Option<&str>, line: &str, network: &Network) -> Denial {
    let (kind, doing, hint) = match (reason, network) {
        (DenialReason::Host, Network::Filtered(_)) => (
            DenialKind::Network,
            "connecting to",
            "only the listed hosts can be reached, through the proxy: use one of them, or what is there already",
        ),
        (DenialReason::Host, _) => (
            DenialKind::Network,
            "connecting to",
            "the network is off: use dependencies that are there already, or do without",
        ),
        (DenialReason::Write, _) if named.is_some_and(is_git_path) => (
            DenialKind::Write,
            "changing",
            "no command changes what git keeps: use the agent's own git tools, or work without a commit",
        ),
        (DenialReason::Write, _) if named.is_some_and(is_dependency_path) => (
            DenialKind::Write,
            "changing",
            "its files are hard links to files outside of the project: run the package manager's install as a command \
             of its own, in the foreground",
        ),
        (DenialReason::Write, _) => (
            DenialKind::Write,
            "changing",
            "only the project, but for its protected paths, and /tmp can be changed: write there, or use the edit tools",
        ),
        (DenialReason::Access, _) => {
            let lower = line.to_ascii_lowercase();
            let changes = CHANGE_WORDS.iter().any(|word| lower.contains(word));
            let kind = if changes { DenialKind::Write } else { DenialKind::Read };
            let doing = if changes { "changing" } else { "reading or running" };
            (
                kind,
                doing,
                "check the path and its mode; outside of the project and /tmp little can be read and nothing changed",
            )
        }
        (DenialReason::Call, _) => (
            DenialKind::SystemCall,
            "a system call on",
            "mounts, namespaces, set-user-ID files, devices and other users' files are closed: do it without them",
        ),
        (DenialReason::Space, _) => (
            DenialKind::Resource,
            "more space than there is for",
            "/tmp, the home and throw-away layers are small and in memory: put large files into the project",
        ),
        (DenialReason::FileSize, _) => {
            (DenialKind::Resource, "a larger file than allowed:", "write smaller files")
        }
        (DenialReason::OpenFiles, _) => {
            (DenialKind::Resource, "more open files than allowed", "close some, or run fewer jobs at once")
        }
        (DenialReason::Processes, _) => (
            DenialKind::Resource,
            "more processes or threads than allowed",
            "run fewer jobs at once, such as -j2",
        ),
        (DenialReason::Memory, _) => (
            DenialKind::Resource,
            "more memory than there was",
            "run fewer jobs at once, or a smaller part of it",
        ),
    };
    let bare = matches!(reason, DenialReason::OpenFiles | DenialReason::Processes | DenialReason::Memory);
    let what = match named {
        _ if bare => doing.to_owned(),
        Some(named) => format!("{doing} {}", clip_to_bytes(named, MAX_TARGET_CHARACTERS)),
        None => format!("`{}`", clip_to_bytes(line.trim(), MAX_TARGET_CHARACTERS)),
    };
    Denial {
        kind,
        what: crate::clean_output(what.as_bytes()).replace('\t', " "),
        certain: false,
        hint: hint.to_owned(),
    }
}

/// Returns true if package managers fill a directory that a path lies in: in the project it is
/// read-only for its links alone.
fn is_dependency_path(path: &str) -> bool {
    path.split('/').any(|name| matches!(name, "node_modules" | ".venv" | "venv" | ".tox" | ".nox" | ".pixi"))
}

/// Returns a host that a line names: after what was said, in an address, or as a connection's
/// argument; else any name.
fn find_host<'a>(line: &'a str, said: &str) -> Option<&'a str> {
    let is_between = |c: char| c.is_whitespace() || "'\"```‘’()[]{}<>,;=/?".contains(c);
    let name = |word: &'a str| {
        let word = word.trim_end_matches(['.', ':']);
        // A port may come after the name.
        let word = word.split_once(':').map_or(word, |(name, _)| name);
        // Names of exceptions have dots, too, and capitals.
        let is_address = word.parse::<std::net::IpAddr>().is_ok();
        let is_name = !word.contains(|c: char| c.is_ascii_uppercase()) && word.parse::<HostPattern>().is_ok();
        (word == "localhost" || (word.contains('.') && (is_address || is_name))).then_some(word)
    };
    let first = |text: &'a str| text.split(is_between).find_map(name);
    let after = |mark: &str| {
        line.split_once(mark).and_then(|(_, rest)| rest.split(is_between).find(|word| !word.is_empty()))
    };
    let after_said = line.split_once(said).and_then(|(_, rest)| first(rest));
    let address =
        ["://", "host='"].iter().find_map(|mark| after(mark).map(|word| name(word).unwrap_or(word)));
    address.or(after_said).or_else(|| first(line))
}

/// Returns true if a host is inside the sandbox itself.
fn is_sandbox_host(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns true if a path lies in a repository's own directory.
fn is_git_path(path: &str) -> bool {
    path.split('/').any(|part| part == ".git")
}

/// Returns a path that a line names: quoted, or a word that begins like one.
fn find_path(line: &str) -> Option<&str> {
    let quoted = [('\'', '\''), ('"', '"'), ('`', '`'), ('‘', '’'), ('`', '`'), ('`', '\'')];
    let in_quotes = quoted.iter().find_map(|(open, close)| {
        let (_, rest) = line.split_once(*open)?;
        let (inner, _) = rest.split_once(*close)?;
        let is_path = !inner.is_empty() && (inner.contains('/') || !inner.contains(char::is_whitespace));
        is_path.then_some(inner)
    });
    let word = || {
        let words = line.split(|c: char| c.is_whitespace() || "'\"`(),;".contains(c));
        words
            .map(|word| word.trim_end_matches([':', '.']))
            .find(|word| word.starts_with('/') && word.len() > 1)
    };
    // `sh: 1: cannot create build/out: Read-only file system`, `touch: name: Permission denied`
    let before = || {
        let (before, _) = line.rsplit_once(": ")?;
        let word = before.rsplit([' ', ':']).find(|word| !word.is_empty())?;
        (word.contains(['/', '.']) && !word.ends_with(['\'', '"', '’', ')'])).then_some(word)
    };
    in_quotes.or_else(before).or_else(word)
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
