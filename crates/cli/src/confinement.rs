//! From the user's configuration to the sandboxes that commands may run in, and what is said of them.

use std::fmt::Write as _;

use journeyman_host::config::Config;
use journeyman_protocol::{Enforcement, SandboxNeeds, SandboxTier};
use journeyman_sandbox::{Sandbox, SandboxError, SandboxSettings};

use crate::edge::Failure;

/// Every sandbox there is, strongest first.
pub(crate) const TIERS: [SandboxTier; 6] = [
    SandboxTier::Namespaces,
    SandboxTier::Bubblewrap,
    SandboxTier::Container,
    SandboxTier::Seatbelt,
    SandboxTier::Landlock,
    SandboxTier::Unconfined,
];

/// Said once where the program runs as root.
const AS_ROOT: &str = "running as root: commands are confined, but files that only root may read in the project are open to \
                       them";

/// The sandboxes that the configuration allows, in the order in which they are tried.
pub(crate) fn tiers(config: &Config) -> Result<Vec<SandboxTier>, Failure> {
    let mut tiers = SandboxSettings::default().allow;
    for name in &config.sandbox_allow {
        let tier = named(name).ok_or_else(|| {
            let names: Vec<String> = TIERS.iter().map(ToString::to_string).collect();
            Failure::usage(format_args!(
                "sandbox.allow: «{name}» is not a sandbox; there are {}",
                names.join(", ")
            ))
        })?;
        if !tiers.contains(&tier) {
            tiers.push(tier);
        }
    }
    if let Some(name) = &config.sandbox_prefer {
        let place = tiers.iter().position(|tier| tier.to_string() == *name).ok_or_else(|| {
            Failure::usage(format_args!(
                "sandbox.prefer: «{name}» isn't allowed; allow it in your configuration: sandbox.allow = [\"{name}\"]"
            ))
        })?;
        if let Some(first) = tiers.get_mut(..=place) {
            first.rotate_right(1);
        }
    }
    Ok(tiers)
}

fn named(name: &str) -> Option<SandboxTier> {
    TIERS.into_iter().find(|tier| tier.to_string() == name)
}

/// What commands need: everything, but for what a sandbox doesn't promise that the user allowed by name.
pub(crate) fn needs(config: &Config) -> Result<SandboxNeeds, Failure> {
    Ok(tiers(config)?.into_iter().fold(SandboxNeeds::ALL, |needs, tier| needs.intersection(tier.max_needs())))
}

/// What people should know before a command runs: that this is root, and where less is enforced than could be.
pub(crate) async fn notes(sandbox: &Sandbox, needs: &SandboxNeeds) -> Vec<String> {
    let mut notes = Vec::new();
    let enforced = sandbox.enforcement(needs).await;
    // In a container nobody is root.
    let contained = enforced.as_ref().is_ok_and(|enforcement| enforcement.tier == SandboxTier::Container);
    if rustix::process::geteuid().is_root() && !contained {
        notes.push(AS_ROOT.to_owned());
    }
    notes.extend(degraded(&enforced));
    notes
}

/// One line where not everything is enforced.
fn degraded(enforced: &Result<Enforcement, SandboxError>) -> Option<String> {
    let enforcement = match enforced {
        Ok(enforcement) => enforcement,
        Err(error) => return Some(format!("sandbox: none works here, so commands are refused: {error}")),
    };
    // Where nothing is missing there is nothing to say.
    enforcement.first_unmet(&SandboxNeeds::ALL)?;
    let mut line = format!("sandbox: {}", enforcement.tier);
    if !enforcement.layers.is_empty() {
        write!(line, " ({})", enforcement.layers.join(", ")).ok();
    }
    write!(line, ". Not enforced: {}", missing(enforcement).join(", ")).ok();
    line.push_str("; each command is asked about. `jm doctor` says more");
    Some(line)
}

/// Each thing that a sandbox may enforce, and whether this one does.
pub(crate) fn aspects(enforcement: &Enforcement) -> [(&'static str, &'static str, bool); 8] {
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

/// What isn't enforced, in words.
pub(crate) fn missing(enforcement: &Enforcement) -> Vec<&'static str> {
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
    fn what_is_allowed_comes_after_what_is_stronger_unless_it_is_preferred() {
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
            assert_eq!(tiers(&config(allow, prefer)).unwrap(), expected, "{allow:?} {prefer:?}");
        }
        for (allow, prefer) in [(&["docker"][..], None), (&["unconfined"], None), (&[], Some("none"))] {
            assert!(tiers(&config(allow, prefer)).is_err(), "{allow:?} {prefer:?}");
        }
    }

    #[test]
    fn needs_are_lowered_by_what_is_allowed_by_name_and_by_nothing_else() {
        let needs = |allow: &[&str]| needs(&config(allow, None)).unwrap();
        assert_eq!(needs(&[]), SandboxNeeds::ALL);
        assert_eq!(needs(&["container"]), SandboxNeeds::ALL);
        assert_eq!(needs(&["landlock"]), SandboxTier::Landlock.max_needs());
        assert_eq!(needs(&["landlock", "none"]), SandboxNeeds::NONE);
    }

    #[test]
    fn only_what_is_missing_is_told() {
        assert_eq!(degraded(&Ok(Enforcement::from_needs(SandboxTier::Namespaces, SandboxNeeds::ALL))), None);
        let landlock = Enforcement {
            layers: vec!["Landlock 7".to_owned(), "seccomp".to_owned()],
            ..Enforcement::from_needs(SandboxTier::Landlock, SandboxTier::Landlock.max_needs())
        };
        assert_eq!(
            degraded(&Ok(landlock)).unwrap(),
            "sandbox: landlock (Landlock 7, seccomp). Not enforced: .git and what else is protected in the project, other \
             processes, memory and processes of the whole tree; each command is asked about. `jm doctor` says more"
        );
        assert!(
            degraded(&Ok(Enforcement::none())).unwrap().starts_with("sandbox: none. Not enforced: writes")
        );
    }
}
