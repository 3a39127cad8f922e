//! Selects the sandboxes that the configuration allows, and describes their protection.

use std::fmt::Write as _;

use journeyman_protocol::{Enforcement, SandboxNeeds, SandboxTier};
use journeyman_sandbox::{Sandbox, SandboxError, SandboxSettings};

use crate::HostError;
use crate::config::Config;

/// Every sandbox, strongest first.
pub const SANDBOX_TIERS: [SandboxTier; 5] = [
    SandboxTier::Namespaces,
    SandboxTier::Bubblewrap,
    SandboxTier::Container,
    SandboxTier::Landlock,
    SandboxTier::Unconfined,
];

/// The note for a program that runs as root.
const ROOT_NOTE: &str = "running as root: commands are confined, but files that only root may read in the project are open to \
                       them";

/// Returns the sandboxes that the configuration allows, in the order in which they are tried.
///
/// # Errors
/// [`HostError::Usage`] where the configuration names an unknown sandbox, or prefers one that it
/// doesn't allow.
pub fn allowed_tiers(config: &Config) -> Result<Vec<SandboxTier>, HostError> {
    let mut tiers = SandboxSettings::default().allow;
    for name in &config.sandbox_allow {
        let tier = find_tier(name).ok_or_else(|| {
            let names: Vec<String> = SANDBOX_TIERS.iter().map(ToString::to_string).collect();
            HostError::usage(format_args!(
                "sandbox.allow: `{name}` is not a sandbox; there are {}",
                names.join(", ")
            ))
        })?;
        if !tiers.contains(&tier) {
            tiers.push(tier);
        }
    }
    if let Some(name) = &config.sandbox_prefer {
        let place = tiers.iter().position(|tier| tier.to_string() == *name).ok_or_else(|| {
            HostError::usage(format_args!(
                "sandbox.prefer: `{name}` isn't allowed; allow it in your configuration: sandbox.allow = [\"{name}\"]"
            ))
        })?;
        if let Some(first) = tiers.get_mut(..=place) {
            first.rotate_right(1);
        }
    }
    Ok(tiers)
}

fn find_tier(name: &str) -> Option<SandboxTier> {
    SANDBOX_TIERS.into_iter().find(|tier| tier.to_string() == name)
}

/// Returns the protections that commands need: all, except those that a sandbox which the user
/// allowed by name can't provide.
///
/// # Errors
/// As [`allowed_tiers`].
pub fn required_needs(config: &Config) -> Result<SandboxNeeds, HostError> {
    Ok(allowed_tiers(config)?
        .into_iter()
        .fold(SandboxNeeds::ALL, |needs, tier| needs.intersection(tier.max_needs())))
}

/// Returns the notes that a person should read before a command runs: that the program runs as
/// root, and what the sandbox doesn't enforce.
pub async fn sandbox_notes(sandbox: &Sandbox, needs: &SandboxNeeds) -> Vec<String> {
    let mut notes = Vec::new();
    let enforced = sandbox.enforcement(needs).await;
    // A container's commands never run as root.
    let in_container = enforced.as_ref().is_ok_and(|enforcement| enforcement.tier == SandboxTier::Container);
    if rustix::process::geteuid().is_root() && !in_container {
        notes.push(ROOT_NOTE.to_owned());
    }
    notes.extend(describe_gaps(&enforced));
    notes
}

/// Returns the [`sandbox_notes`] where a sandbox works. Where none does, what can't run says so
/// itself.
pub(crate) async fn notes_if_confined(sandbox: &Sandbox, needs: &SandboxNeeds) -> Vec<String> {
    match sandbox.enforcement(needs).await {
        Ok(_) => sandbox_notes(sandbox, needs).await,
        Err(_) => Vec::new(),
    }
}

/// Describes what the sandbox doesn't enforce, in one line; `None` where it enforces everything.
fn describe_gaps(enforced: &Result<Enforcement, SandboxError>) -> Option<String> {
    let enforcement = match enforced {
        Ok(enforcement) => enforcement,
        Err(error) => return Some(format!("sandbox: none works here, so commands are refused: {error}")),
    };
    enforcement.first_unmet(&SandboxNeeds::ALL)?;
    let mut line = format!("sandbox: {}", enforcement.tier);
    if !enforcement.layers.is_empty() {
        write!(line, " ({})", enforcement.layers.join(", ")).ok();
    }
    write!(line, ". Not enforced: {}", list_unenforced(enforcement).join(", ")).ok();
    line.push_str("; each command is asked about. `jm doctor` says more");
    Some(line)
}

/// Returns each protection with its name, its meaning, and true if it is enforced.
#[must_use]
pub fn list_protections(enforcement: &Enforcement) -> [(&'static str, &'static str, bool); 8] {
    [
        ("writes_confined", "nothing outside the project can be changed", enforcement.writes_confined),
        ("reads_confined", "the home directory and other projects can't be read", enforcement.reads_confined),
        ("protected_kept", "protected files in the project can't be changed", enforcement.protected_kept),
        ("network_off", "no network", enforcement.network_off),
        ("network_filtered", "a network of some hosts alone can be given", enforcement.network_filtered),
        (
            "processes_confined",
            "no other process can be seen or signalled; nothing outlives the command",
            enforcement.processes_confined,
        ),
        ("privileges_dropped", "no capability, and no way to gain one", enforcement.privileges_dropped),
        (
            "resources_bounded",
            "memory and processes of the whole tree are bounded",
            enforcement.resources_bounded,
        ),
    ]
}

/// Returns the protections that aren't enforced, in words.
#[must_use]
pub fn list_unenforced(enforcement: &Enforcement) -> Vec<&'static str> {
    let words = [
        (enforcement.writes_confined, "writes outside the project"),
        (enforcement.reads_confined, "reading the home directory"),
        (enforcement.protected_kept, ".git and what else is protected in the project"),
        (enforcement.network_off, "the network"),
        (enforcement.processes_confined, "other processes"),
        (enforcement.privileges_dropped, "privileges"),
        (enforcement.resources_bounded, "memory and processes of the whole tree"),
    ];
    words.into_iter().filter(|(holds, _)| !holds).map(|(_, what)| what).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(allow: &[&str], prefer: Option<&str>) -> Config {
        Config {
            sandbox_allow: allow.iter().map(|name| (*name).to_owned()).collect(),
            sandbox_prefer: prefer.map(str::to_owned),
            ..Config::default()
        }
    }

    #[test]
    fn allowed_tiers_are_tried_strongest_first_and_the_preferred_one_before_them() {
        let [ns, bwrap] = [SandboxTier::Namespaces, SandboxTier::Bubblewrap];
        let cases: [(&[&str], Option<&str>, &[SandboxTier]); 6] = [
            (&[], None, &[ns, bwrap]),
            (&["landlock", "none"], None, &[ns, bwrap, SandboxTier::Landlock, SandboxTier::Unconfined]),
            (&["namespaces", "none", "none"], None, &[ns, bwrap, SandboxTier::Unconfined]),
            (
                &["landlock", "container"],
                Some("container"),
                &[SandboxTier::Container, ns, bwrap, SandboxTier::Landlock],
            ),
            (&[], Some("bubblewrap"), &[bwrap, ns]),
            (&[], Some("namespaces"), &[ns, bwrap]),
        ];
        for (allow, prefer, expected) in cases {
            assert_eq!(allowed_tiers(&config(allow, prefer)).unwrap(), expected, "{allow:?} {prefer:?}");
        }
        for (allow, prefer) in [(&["docker"][..], None), (&["unconfined"], None), (&[], Some("none"))] {
            assert!(allowed_tiers(&config(allow, prefer)).is_err(), "{allow:?} {prefer:?}");
        }
    }

    #[test]
    fn only_tiers_that_are_allowed_by_name_lower_the_needs() {
        let needs = |allow: &[&str]| required_needs(&config(allow, None)).unwrap();
        assert_eq!(needs(&[]), SandboxNeeds::ALL);
        assert_eq!(needs(&["container"]), SandboxNeeds::ALL);
        assert_eq!(needs(&["landlock"]), SandboxTier::Landlock.max_needs());
        assert_eq!(needs(&["landlock", "none"]), SandboxNeeds::NONE);
    }

    #[test]
    fn notes_name_only_the_missing_protections() {
        assert_eq!(
            describe_gaps(&Ok(Enforcement::from_needs(SandboxTier::Namespaces, SandboxNeeds::ALL))),
            None
        );
        let landlock = Enforcement {
            layers: vec!["Landlock 7".to_owned(), "seccomp".to_owned()],
            ..Enforcement::from_needs(SandboxTier::Landlock, SandboxTier::Landlock.max_needs())
        };
        assert_eq!(
            describe_gaps(&Ok(landlock)).unwrap(),
            "sandbox: landlock (Landlock 7, seccomp). Not enforced: .git and what else is protected in the project, other \
             processes, memory and processes of the whole tree; each command is asked about. `jm doctor` says more"
        );
        assert!(
            describe_gaps(&Ok(Enforcement::none()))
                .unwrap()
                .starts_with("sandbox: none. Not enforced: writes")
        );
    }
}
