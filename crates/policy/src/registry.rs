//! Package registries and their hosts.
//!
//! No host is listed to which anybody can upload files under a link of their own (storage buckets,
//! code forges), and none for uploading packages if another host serves them. Some hosts do both
//! (npm, RubyGems, JSR, Hackage, pub.dev). An upload needs a token, which a command may bring
//! along, and a proxy can't tell an upload from a download by host name. So only commands that are
//! known to fetch reach these hosts without a question.
//!
//! The hosts are those that the registries' documentation and indexes name; all use HTTPS.

use std::fmt;

/// The hosts of a registry or of one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostPreset {
    /// The name that people type.
    pub name: &'static str,
    /// A short description of the packages.
    pub about: &'static str,
    /// The hosts: full names in lower case.
    pub hosts: &'static [&'static str],
    /// True if its tools use plain HTTP by default, and check signatures instead.
    pub plain_http: bool,
}

const fn new_preset(name: &'static str, about: &'static str, hosts: &'static [&'static str]) -> HostPreset {
    HostPreset { name, about, hosts, plain_http: false }
}

const fn new_preset_without_fetch(
    name: &'static str,
    about: &'static str,
    hosts: &'static [&'static str],
) -> HostPreset {
    HostPreset { name, about, hosts, plain_http: true }
}

/// All presets, sorted by name.
pub const PRESETS: &[HostPreset] = &[
    new_preset_without_fetch("alpine", "Alpine Linux packages", &["dl-cdn.alpinelinux.org"]),
    new_preset("conda", "Conda packages", &["conda.anaconda.org", "repo.anaconda.com"]),
    new_preset("cpan", "Perl modules", &["cpan.metacpan.org", "fastapi.metacpan.org", "www.cpan.org"]),
    new_preset("cran", "R packages", &["cloud.r-project.org", "cran.r-project.org"]),
    new_preset("crates", "Rust crates", &["index.crates.io", "static.crates.io"]),
    new_preset_without_fetch("debian", "Debian packages", &["deb.debian.org", "security.debian.org"]),
    new_preset("deno", "Deno and JSR modules", &["jsr.io", "npm.jsr.io", "deno.land", "dl.deno.land"]),
    new_preset_without_fetch(
        "fedora",
        "Fedora packages",
        &["mirrors.fedoraproject.org", "dl.fedoraproject.org"],
    ),
    new_preset("go", "Go modules", &["proxy.golang.org", "sum.golang.org"]),
    new_preset(
        "gradle",
        "Gradle and its plug-ins",
        &[
            "plugins.gradle.org",
            "plugins-artifacts.gradle.org",
            "services.gradle.org",
            "downloads.gradle.org",
            "repo.maven.apache.org",
            "repo1.maven.org",
        ],
    ),
    new_preset("hackage", "Haskell packages", &["hackage.haskell.org"]),
    new_preset("hex", "Elixir and Erlang packages", &["repo.hex.pm", "builds.hex.pm"]),
    new_preset("maven", "Java packages", &["repo.maven.apache.org", "repo1.maven.org"]),
    new_preset("npm", "JavaScript packages", &["registry.npmjs.org", "registry.yarnpkg.com"]),
    new_preset("nuget", ".NET packages", &["api.nuget.org"]),
    new_preset("packagist", "PHP packages (their indexes)", &["packagist.org", "repo.packagist.org"]),
    new_preset("pub", "Dart packages", &["pub.dev"]),
    new_preset("pypi", "Python packages", &["pypi.org", "files.pythonhosted.org"]),
    new_preset("rubygems", "Ruby gems", &["rubygems.org", "index.rubygems.org"]),
    new_preset("rustup", "Rust toolchains", &["static.rust-lang.org"]),
    new_preset_without_fetch(
        "ubuntu",
        "Ubuntu packages",
        &["archive.ubuntu.com", "security.ubuntu.com", "ports.ubuntu.com"],
    ),
];

/// Other names of presets.
const PRESET_ALIASES: &[(&str, &str)] = &[
    ("cargo", "crates"),
    ("crates.io", "crates"),
    ("gem", "rubygems"),
    ("golang", "go"),
    ("jsr", "deno"),
    ("pip", "pypi"),
    ("uv", "pypi"),
    ("yarn", "npm"),
    ("apt", "debian"),
];

/// The error for a text that is neither a host nor a preset's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPreset {
    /// The text, shortened.
    pub given: String,
}

impl fmt::Display for UnknownPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is neither a host's name nor a registry's; registries are:", self.given)?;
        PRESETS.iter().try_for_each(|preset| write!(f, " {}", preset.name))
    }
}

impl std::error::Error for UnknownPreset {}

/// Returns the preset of this name, in any letter case.
#[must_use]
pub fn find_preset(name: &str) -> Option<&'static HostPreset> {
    let known = PRESET_ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name));
    let name = known.map_or(name, |(_, preset)| preset);
    PRESETS.iter().find(|preset| preset.name.eq_ignore_ascii_case(name))
}

/// Returns the hosts for a text: those of a preset, or the text itself, which is a host's name or a
/// pattern such as `*.example.com`, as the sandbox's `HostPattern` checks.
///
/// # Errors
/// [`UnknownPreset`] for a text without a dot that is not a preset's name: no public host has such
/// a name.
pub fn resolve_hosts(text: &str) -> Result<Vec<String>, UnknownPreset> {
    if let Some(preset) = find_preset(text) {
        return Ok(preset.hosts.iter().map(|host| (*host).to_owned()).collect());
    }
    if text.contains('.') {
        return Ok(vec![text.to_owned()]);
    }
    Err(UnknownPreset { given: text.chars().take(80).collect() })
}

/// Returns true if a host's name (not a pattern) belongs to a known package registry. Ignores
/// letter case and a dot at the end.
#[must_use]
pub fn is_registry(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    PRESETS.iter().flat_map(|preset| preset.hosts).any(|known| known.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_names_of_hosts() {
        for preset in PRESETS {
            assert!(find_preset(preset.name) == Some(preset) && !preset.name.contains('.'));
            assert!(!preset.hosts.is_empty() && !preset.about.is_empty());
            for host in preset.hosts {
                assert!(host.contains('.') && !host.starts_with("*."), "{host}");
                assert!(
                    host.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b".-".contains(&b))
                );
                assert!(is_registry(host) && is_registry(&format!("{}.", host.to_uppercase())));
            }
        }
        assert!(PRESETS.is_sorted_by_key(|preset| preset.name));
        for (alias, name) in PRESET_ALIASES {
            assert_eq!(find_preset(alias), find_preset(name), "{alias}");
            assert!(find_preset(alias).is_some() && !PRESETS.iter().any(|preset| preset.name == *alias));
        }
    }

    #[test]
    fn a_text_is_a_preset_or_a_host() {
        assert_eq!(resolve_hosts("PyPI").unwrap(), ["pypi.org", "files.pythonhosted.org"]);
        assert_eq!(resolve_hosts("cargo"), resolve_hosts("crates.io"));
        assert_eq!(resolve_hosts("*.example.org").unwrap(), ["*.example.org"]);
        let error = resolve_hosts("npmm").unwrap_err().to_string();
        assert!(error.contains("`npmm`") && error.contains(" npm "), "{error}");
        assert!(
            resolve_hosts("").is_err() && resolve_hosts("*").is_err() && resolve_hosts("localhost").is_err()
        );
    }

    #[test]
    fn no_forge_and_no_storage_is_a_registry() {
        for host in [
            "github.com",
            "crates.io",
            "hex.pm",
            "www.nuget.org",
            "storage.googleapis.com",
            "evil.pypi.org",
            "pypi.org.evil.test",
            "",
            ".",
        ] {
            assert!(!is_registry(host), "{host}");
        }
    }
}
