//! The sandboxes that work here.

use journeyman_protocol::{Enforcement, SandboxTier};
use journeyman_sandbox::{Sandbox, SandboxError};
use serde::Serialize;

use crate::HostError;
use crate::config::Config;
use crate::sandboxes::{self, SANDBOX_TIERS, list_protections, list_unenforced};
use crate::state::StateDirs;

/// The sandboxes of this machine.
#[derive(Debug, Serialize)]
pub struct SandboxSurvey {
    /// The protection of the sandbox that commands run in.
    #[serde(flatten)]
    pub used: Option<Enforcement>,
    /// Why commands are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// True if this program runs as root.
    pub root: bool,
    /// Every sandbox, strongest first.
    pub tiers: Vec<TierReport>,
}

/// One kind of sandbox.
#[derive(Debug, Serialize)]
pub struct TierReport {
    /// Its name.
    pub tier: String,
    /// True if commands run in it.
    pub used: bool,
    /// True if the configuration allows it.
    pub allowed: bool,
    /// True if it works here.
    pub works: bool,
    /// The change that lets it be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// Its protection, or why it doesn't work.
    #[serde(flatten)]
    pub probe: TierProbe,
}

impl TierReport {
    /// Describes if commands run in the sandbox, and why not.
    #[must_use]
    pub fn describe_state(&self) -> String {
        match (&self.probe, &self.needs) {
            (TierProbe::Fails { .. }, _) if self.tier == "container" && !self.allowed => {
                "not configured".to_owned()
            }
            (TierProbe::Fails { reason, .. }, _) => format!("doesn't work: {reason}"),
            (TierProbe::Works { .. }, _) if self.used => "is used".to_owned(),
            (TierProbe::Works { .. }, Some(needs)) => format!("works; needs {needs}"),
            (TierProbe::Works { .. }, None) => "works; a stronger one, or one you prefer, is used".to_owned(),
        }
    }
}

/// The result of trying a sandbox.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum TierProbe {
    /// It works.
    Works {
        /// The protections that it enforces.
        enforced: Vec<&'static str>,
        /// The protections that it doesn't enforce.
        not_enforced: Vec<&'static str>,
        /// The mechanisms in use.
        layers: Vec<String>,
        /// The missing guarantees, one line each.
        gaps: Vec<String>,
    },
    /// It doesn't work.
    Fails {
        /// The reason.
        reason: String,
        /// The remedy.
        #[serde(skip_serializing_if = "Option::is_none")]
        fix: Option<String>,
    },
}

/// Tries every sandbox, and the one that commands run in.
///
/// # Errors
/// [`HostError::Usage`] where the configuration names an unknown sandbox.
pub async fn survey_sandboxes(dirs: &StateDirs, config: &Config) -> Result<SandboxSurvey, HostError> {
    let allowed = sandboxes::allowed_tiers(config)?;
    let used = dirs.sandbox(config)?.enforcement(&sandboxes::required_needs(config)?).await;
    let settings = dirs.sandbox_settings(config, SANDBOX_TIERS.to_vec(), true)?;
    let root = rustix::process::geteuid().is_root();
    let mut tiers = Vec::new();
    for (tier, seen) in Sandbox::new(settings).probe_all().await {
        let is_used = used.as_ref().is_ok_and(|used| used.tier == tier);
        let needs_leave = root && tier != SandboxTier::Namespaces && !config.sandbox_allow_root;
        tiers.push(report_tier(tier, seen, is_used, allowed.contains(&tier), needs_leave));
    }
    let error = used.as_ref().err().map(ToString::to_string);
    Ok(SandboxSurvey { used: used.ok(), error, root, tiers })
}

fn report_tier(
    tier: SandboxTier,
    seen: Result<Enforcement, SandboxError>,
    used: bool,
    allowed: bool,
    needs_leave: bool,
) -> TierReport {
    let mut needs = Vec::new();
    if !allowed {
        needs.push(format!("sandbox.allow = [\"{tier}\"] in your configuration"));
    }
    if needs_leave {
        needs.push("--allow-root, or sandbox.allow_root = true in your configuration".to_owned());
    }
    let needs = (!needs.is_empty()).then(|| needs.join("; "));
    let works = seen.is_ok();
    let probe = match seen {
        Ok(enforcement) => {
            let held = list_protections(&enforcement).into_iter().filter(|(_, _, holds)| *holds);
            TierProbe::Works {
                enforced: held.map(|(_, what, _)| what).collect(),
                not_enforced: list_unenforced(&enforcement),
                layers: enforcement.layers,
                gaps: enforcement.gaps,
            }
        }
        Err(SandboxError::Unavailable { reason, fix }) => TierProbe::Fails { reason, fix: Some(fix) },
        Err(error) => TierProbe::Fails { reason: error.to_string(), fix: None },
    };
    TierReport { tier: tier.to_string(), used, allowed, works, needs, probe }
}
