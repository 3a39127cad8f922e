//! Settings and variables that keep a repository from running programs while it is read.
//!
//! Settings name programs: monitors, hooks, filters, pagers, editors, helpers for credentials and
//! connections. All settings that a reading command could use are overridden here, whether or not
//! the sandbox would confine the programs.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// A home directory that does not exist: the user's own settings are not a part of the repository.
const NONEXISTENT_HOME: &str = "/nonexistent";

/// Settings that override the repository's.
const OVERRIDING_SETTINGS: [(&str, &str); 20] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("sequence.editor", "false"),
    ("core.sshCommand", "false"),
    ("core.askPass", "false"),
    ("core.gitProxy", "false"),
    ("core.alternateRefsCommand", "false"),
    // An empty value removes the helpers before it.
    ("credential.helper", ""),
    ("protocol.allow", "never"),
    ("gpg.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.x509.program", "false"),
    ("log.showSignature", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("submodule.recurse", "false"),
    ("advice.detachedHead", "false"),
];

/// The environment of a reading command: of the caller's variables only `PATH`.
const READER_VARIABLES: [(&str, &str); 22] = [
    ("LC_ALL", "C"),
    ("TERM", "dumb"),
    ("HOME", NONEXISTENT_HOME),
    ("XDG_CONFIG_HOME", NONEXISTENT_HOME),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    // A refreshed index is not written back.
    ("GIT_OPTIONAL_LOCKS", "0"),
    // A partial clone would otherwise fetch missing objects.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_PAGER", "cat"),
    ("PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_ADVICE", "0"),
];

/// Returns the environment, with these filters disabled: `process` overrides `clean` and `smudge`,
/// and an empty value does nothing.
pub(crate) fn reader_environment(filters: &[Vec<u8>]) -> BTreeMap<OsString, OsString> {
    let mut env: BTreeMap<OsString, OsString> =
        READER_VARIABLES.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let fixed = OVERRIDING_SETTINGS.iter().map(|(name, value)| (OsString::from(name), *value));
    let off = filters.iter().flat_map(|name| {
        [("process", ""), ("clean", ""), ("smudge", ""), ("required", "false")]
            .map(|(key, value)| (filter_key(name, key), value))
    });
    let mut count = 0_usize;
    for (name, value) in fixed.chain(off) {
        env.insert(format!("GIT_CONFIG_KEY_{count}").into(), name);
        env.insert(format!("GIT_CONFIG_VALUE_{count}").into(), value.into());
        count += 1;
    }
    env.insert("GIT_CONFIG_COUNT".into(), count.to_string().into());
    env
}

fn filter_key(name: &[u8], key: &str) -> OsString {
    use std::os::unix::ffi::OsStringExt as _;
    OsString::from_vec([b"filter.", name, b".", key.as_bytes()].concat())
}

/// Returns the names of filter drivers in a list of setting names, each ended by NUL.
pub(crate) fn parse_filter_names(names: &[u8]) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = names
        .split(|&byte| byte == 0)
        .filter_map(|name| {
            let rest = name.get(.."filter.".len()).filter(|start| start.eq_ignore_ascii_case(b"filter."));
            let rest = rest.and_then(|start| name.get(start.len()..))?;
            let end = rest.iter().rposition(|&byte| byte == b'.')?;
            rest.get(..end).map(<[u8]>::to_vec)
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Returns true if the settings may name a filter or include settings that do.
pub(crate) fn may_have_filters(settings: Option<&[u8]>) -> bool {
    settings.is_none_or(|text| {
        contains_ignoring_case(text, b"filter") || contains_ignoring_case(text, b"include")
    })
}

/// Returns true if the text contains the word, in any letter case.
pub(crate) fn contains_ignoring_case(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
}
