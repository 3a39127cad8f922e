//! Recognizes commands that only fetch packages.
//!
//! A registry's hosts also accept uploads from anybody with a token, so only these commands reach
//! them without a question: the user could not see what another program sends there. They may build
//! the packages and run their scripts.

use journeyman_protocol::Level;

use super::CommandAnalysis;
use super::part::CommandPart;
use super::readers::base_name;

/// Programs with the subcommands that fetch.
const FETCHING_PROGRAMS: &[(&str, &[&[&str]])] = &[
    ("bun", &[&["add"], &["i"], &["install"], &["update"]]),
    ("bundle", &[&["cache"], &["install"], &["lock"], &["package"], &["update"]]),
    ("cabal", &[&["fetch"], &["update"]]),
    (
        "cargo",
        &[
            &["add"],
            &["b"],
            &["build"],
            &["c"],
            &["check"],
            &["clippy"],
            &["doc"],
            &["fetch"],
            &["generate-lockfile"],
            &["metadata"],
            &["tree"],
            &["update"],
            &["vendor"],
        ],
    ),
    ("composer", &[&["install"], &["require"], &["update"]]),
    ("conda", &[&["create"], &["env", "create"], &["env", "update"], &["install"], &["update"]]),
    ("dart", &[&["pub", "add"], &["pub", "get"], &["pub", "upgrade"]]),
    ("deno", &[&["add"], &["cache"], &["install"]]),
    ("dotnet", &[&["add"], &["build"], &["restore"]]),
    ("flutter", &[&["pub", "get"], &["pub", "upgrade"]]),
    ("gem", &[&["fetch"]]),
    (
        "go",
        &[
            &["build"],
            &["get"],
            &["list"],
            &["mod", "download"],
            &["mod", "tidy"],
            &["mod", "vendor"],
            &["vet"],
        ],
    ),
    ("gradle", &[&["assemble"], &["classes"], &["dependencies"], &["testClasses"]]),
    ("gradlew", &[&["assemble"], &["classes"], &["dependencies"], &["testClasses"]]),
    ("mamba", &[&["create"], &["env", "create"], &["install"], &["update"]]),
    ("mix", &[&["deps.get"], &["deps.update"], &["local.hex"], &["local.rebar"]]),
    (
        "mvn",
        &[
            &["compile"],
            &["dependency:copy-dependencies"],
            &["dependency:go-offline"],
            &["dependency:resolve"],
            &["dependency:tree"],
            &["test-compile"],
        ],
    ),
    (
        "npm",
        &[
            &["add"],
            &["ci"],
            &["clean-install"],
            &["i"],
            &["info"],
            &["install"],
            &["outdated"],
            &["update"],
            &["view"],
        ],
    ),
    ("pdm", &[&["add"], &["install"], &["lock"], &["sync"], &["update"]]),
    ("pip", &[&["download"], &["install"], &["wheel"]]),
    ("pip3", &[&["download"], &["install"], &["wheel"]]),
    ("pipenv", &[&["install"], &["lock"], &["sync"], &["update"]]),
    ("pnpm", &[&["add"], &["fetch"], &["i"], &["install"], &["update"]]),
    ("poetry", &[&["add"], &["install"], &["lock"], &["sync"], &["update"]]),
    ("rebar3", &[&["compile"], &["get-deps"]]),
    ("rustup", &[&["component", "add"], &["target", "add"], &["toolchain", "install"], &["update"]]),
    ("stack", &[&["build"], &["setup"], &["update"]]),
    ("swift", &[&["build"], &["package", "resolve"], &["package", "update"]]),
    ("uv", &[&["add"], &["lock"], &["pip", "compile"], &["pip", "install"], &["pip", "sync"], &["sync"]]),
    ("yarn", &[&["add"], &["install"], &["up"], &["upgrade"]]),
];
/// Options that name other hosts, or programs to run.
const REDIRECTING_OPTIONS: &[&str] =
    &["--registry", "--index-url", "-i", "--extra-index-url", "--config", "--proxy", "--source"];

impl CommandAnalysis {
    /// Returns true if the command only reads and fetches packages.
    #[must_use]
    pub fn only_fetches(&self) -> bool {
        let harmless = |part: &CommandPart| part.level == Level::ReadOnly || is_fetch(part);
        self.complete && self.parts.iter().any(is_fetch) && self.parts.iter().all(harmless)
    }
}

fn is_fetch(part: &CommandPart) -> bool {
    let Some((program, arguments)) = part.words.split_first() else { return false };
    if part.level == Level::System || !part.words.iter().all(|word| word.known) {
        return false;
    }
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let name = match program.text.as_str() {
        "./gradlew" => "gradlew",
        "./mvnw" => "mvn",
        path => base_name(path),
    };
    // `cargo +nightly fetch`, `python3 -m pip install`
    let (name, texts) = match (name, texts.as_slice()) {
        ("cargo", [toolchain, rest @ ..]) if toolchain.starts_with('+') => (name, rest),
        ("python" | "python3", ["-m", "pip", rest @ ..]) => ("pip", rest),
        (name, texts) => (name, texts),
    };
    // Only options without a value may precede the subcommand.
    let begins = texts.iter().position(|text| !text.starts_with('-')).unwrap_or(texts.len());
    let words = texts.get(begins..).unwrap_or_default();
    let elsewhere = |text: &&str| REDIRECTING_OPTIONS.contains(&text.split('=').next().unwrap_or(text));
    !texts.iter().any(elsewhere)
        && FETCHING_PROGRAMS.iter().any(|(known, subcommands)| {
            let listed = |words: &[&str]| subcommands.iter().any(|subcommand| words.starts_with(subcommand));
            *known == name
                && match name {
                    "yarn" => words.is_empty() || listed(words),
                    // Each word is a separate task.
                    "gradle" | "gradlew" | "mvn" => {
                        !words.is_empty()
                            && words.iter().filter(|word| !word.starts_with('-')).all(|word| listed(&[*word]))
                    }
                    _ => listed(words),
                }
        })
}
