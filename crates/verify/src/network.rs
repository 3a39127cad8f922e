//! The network of a check: none, or the registries and hosts that it names.

use std::sync::Arc;

use journeyman_policy::registry::resolve_hosts;
use journeyman_sandbox::{HostPattern, Network, NetworkRules};

/// Returns the network for registries and hosts. Invalid names are left out, so that no mistake
/// allows more than was meant.
pub(crate) fn network_of(names: &[&str]) -> Network {
    let hosts = names.iter().filter_map(|name| resolve_hosts(name).ok()).flatten();
    let hosts: Vec<HostPattern> = hosts.filter_map(|host| host.parse().ok()).collect();
    match hosts.is_empty() {
        true => Network::Off,
        false => Network::Filtered(Arc::new(NetworkRules { hosts, ..NetworkRules::default() })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_names_open_the_network() {
        assert_eq!(network_of(&[]), Network::Off);
        assert_eq!(network_of(&["no-registry"]), Network::Off);
        let Network::Filtered(rules) = network_of(&["npm", "github.com", "nonsense"]) else { panic!() };
        let hosts: Vec<String> = rules.hosts.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["registry.npmjs.org", "registry.yarnpkg.com", "github.com"]);
        assert!(!rules.plain_http);
    }
}
