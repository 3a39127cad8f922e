//! What of the host a command is shown: found by what exists, never the home itself, never a
//! secret.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use journeyman_sandbox::{HostEnvironment, Network, Request, Toolchains, find_toolchains};

struct Host {
    place: tempfile::TempDir,
    vars: Vec<(&'static str, String)>,
}

impl Host {
    fn new(directories: &[&str], files: &[&str]) -> Self {
        let place = tempfile::tempdir().unwrap();
        for directory in ["home", "project"].iter().chain(directories) {
            std::fs::create_dir_all(place.path().join(directory)).unwrap();
        }
        for file in files {
            std::fs::write(place.path().join(file), "secret").unwrap();
        }
        Self { place, vars: Vec::new() }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.place.path().join(path)
    }

    fn path(&self, entries: &[&str]) -> String {
        let entry = |entry: &&str| {
            if entry.starts_with('/') { (*entry).into() } else { self.at(entry).display().to_string() }
        };
        entries.iter().map(entry).collect::<Vec<_>>().join(":")
    }

    fn find(&self) -> Toolchains {
        let vars = self.vars.iter().map(|(name, value)| ((*name).into(), value.into())).collect();
        find_toolchains(&HostEnvironment { vars, home: Some(self.at("home")) }, &self.at("project"))
    }
}

fn variable<'a>(found: &'a Toolchains, name: &str) -> Option<&'a str> {
    found.env.get(OsStr::new(name)).map(|value| value.to_str().unwrap())
}

#[test]
fn homes_and_their_caches_and_secrets() {
    let host = Host::new(
        &["home/.cargo/registry", "home/.rustup", "home/.m2", "home/.npm", "home/.ssh"],
        &["home/.cargo/credentials.toml", "home/.m2/settings.xml", "home/.npmrc", "home/.ssh/id"],
    );
    let found = host.find();
    assert_eq!(found.read_only, [host.at("home/.cargo"), host.at("home/.rustup")]);
    assert_eq!(found.layered, [host.at("home/.cargo/registry"), host.at("home/.npm"), host.at("home/.m2")]);
    let masked = ["home/.cargo/credentials.toml", "home/.m2/settings.xml", "home/.npmrc"];
    assert_eq!(found.masked, masked.map(|path| host.at(path)));
    assert_eq!(variable(&found, "CARGO_HOME"), host.at("home/.cargo").to_str());
    assert_eq!(variable(&found, "HOME"), host.at("home").to_str());
    assert_eq!(variable(&found, "GOPATH"), None);
}

#[test]
fn of_a_go_path_only_programs_and_packages_are_shown() {
    let host = Host::new(&["home/go/src/github.com/me/private", "home/go/bin", "home/go/pkg/mod"], &[]);
    let found = host.find();
    assert_eq!(found.read_only, [host.at("home/go/bin")]);
    assert_eq!(found.layered, [host.at("home/go/pkg")]);
    assert_eq!(variable(&found, "GOPATH"), host.at("home/go").to_str());
}

#[test]
fn settings_are_hidden_when_they_hold_credentials() {
    let cases = [
        (".cargo/config.toml", "[registries.x]\nToken = \"abc\"\n", true),
        (".cargo/config", "[registry]\ntoken=\"abc\"\n", true),
        (".cargo/config.toml", "[http]\nproxy = \"bob:pw@proxy:8080\"\n", true),
        (".cargo/config.toml", "[source.x]\nregistry = \"https://bob:pw@host/\"\n", true),
        (".cargo/config.toml", "[http]\nproxy = \"proxy:8080\"\n", false),
        (".cargo/config.toml", "[build]\njobs = 2\n", false),
        (".cargo/config", "", false),
        (".gradle/init.d/repository.gradle", "credentials { username 'a'; password 'b' }\n", true),
        (".gradle/init.d/proxy.gradle", "url 'https://bob:pw@host/maven'\n", true),
        (".gradle/init.d/plain.gradle", "allprojects { }\n", false),
        (".gradle/init.gradle", "def secret = 'x'\n", true),
    ];
    for (name, text, hidden) in cases {
        let host = Host::new(&["home/.cargo", "home/.gradle/init.d"], &[]);
        let file = host.at("home").join(name);
        std::fs::write(&file, text).unwrap();
        let expected = if hidden { vec![file] } else { Vec::new() };
        assert_eq!(host.find().masked, expected, "{name}: {text}");
    }
}

#[test]
fn a_moved_home_is_found_by_its_variable() {
    let mut host = Host::new(&["data/cargo/git", "home/.cargo"], &[]);
    host.vars = vec![("CARGO_HOME", host.at("data/cargo").display().to_string())];
    let found = host.find();
    assert_eq!(
        (found.read_only, found.layered),
        (vec![host.at("data/cargo")], vec![host.at("data/cargo/git")])
    );
}

#[test]
fn directories_of_path() {
    let mut host =
        Host::new(&["tools/bin", "home/bin", "home/.cargo/bin", "project/bin"], &["tools/bin/.npmrc"]);
    let entries =
        ["project/bin", "tools/bin", "home", "home/bin", "home/.cargo/bin", "/usr/bin", "gone", "tools/bin"];
    host.vars = vec![("PATH", format!("relative::{}", host.path(&entries)))];
    let found = host.find();
    // Neither the home, nor what is gone, nor what another mount shows; the project's own come
    // last.
    assert_eq!(found.read_only, [host.at("home/.cargo"), host.at("tools/bin"), host.at("home/bin")]);
    assert_eq!(found.masked, [host.at("tools/bin/.npmrc")]);
    let expected = ["tools/bin", "home", "home/bin", "home/.cargo/bin", "/usr/bin", "gone", "project/bin"];
    assert_eq!(variable(&found, "PATH").unwrap(), host.path(&expected));
}

#[test]
fn a_directory_above_the_home_is_not_shown() {
    let mut host = Host::new(&[], &[]);
    std::os::unix::fs::symlink(host.place.path(), host.at("link")).unwrap();
    host.vars = vec![("PATH", host.path(&["/", "link", "."])), ("GOPATH", host.at("").display().to_string())];
    let found = host.find();
    assert_eq!((found.read_only, found.layered), (Vec::<PathBuf>::new(), Vec::new()));
}

#[test]
fn only_listed_variables_pass_and_no_secret() {
    let mut host = Host::new(&[], &[]);
    host.vars = [
        ("LANG", "de_DE.UTF-8"),
        ("LC_ALL", "C"),
        ("LC_SECRET", "x"),
        ("TERM", "xterm"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("GITHUB_TOKEN", "x"),
        ("SSH_AUTH_SOCK", "/run/agent"),
        ("DOCKER_HOST", "unix:///x"),
        ("LD_PRELOAD", "/x.so"),
        ("NODE_OPTIONS", "--require x"),
        ("BASH_ENV", "x"),
        ("RUSTFLAGS", "-g"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .to_vec();
    let found = host.find();
    let names: Vec<&str> = found.env.keys().map(|name| name.to_str().unwrap()).collect();
    let expected = [
        "CI",
        "EDITOR",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_KEY_0",
        "GIT_CONFIG_KEY_1",
        "GIT_CONFIG_KEY_2",
        "GIT_CONFIG_VALUE_0",
        "GIT_CONFIG_VALUE_1",
        "GIT_CONFIG_VALUE_2",
        "GIT_EDITOR",
        "GIT_PAGER",
        "GIT_TERMINAL_PROMPT",
        "HOME",
        "LANG",
        "LC_ALL",
        "PAGER",
        "PATH",
        "PIP_DISABLE_PIP_VERSION_CHECK",
        "RUSTFLAGS",
        "TERM",
        "TMPDIR",
    ];
    assert_eq!(names, expected);
    assert_eq!((variable(&found, "TERM"), variable(&found, "LANG")), (Some("dumb"), Some("de_DE.UTF-8")));
}

#[test]
fn offline_settings_only_without_network() {
    let host = Host::new(&[], &[]);
    let root = Path::new("/srv/project");
    let offline = Request::for_shell_command(root, "true").with_toolchains(&host.find());
    assert_eq!(offline.env.get(OsStr::new("CARGO_NET_OFFLINE")), Some(&OsString::from("true")));
    let online = Request { network: Network::Host, ..Request::for_shell_command(root, "true") }
        .with_toolchains(&host.find());
    assert_eq!(online.env.get(OsStr::new("CARGO_NET_OFFLINE")), None);
}
