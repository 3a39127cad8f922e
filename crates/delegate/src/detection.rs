//! Detection of a CLI: installation, version and login, without a network.

use std::path::{Path, PathBuf};

use crate::bounds::one_line;
use crate::{Adapter, Requirements};

/// The argument with which every CLI prints its version.
pub const VERSION_ARGUMENT: &str = "--version";

/// Queries about the machine. The implementation decides which environment and home count, and how
/// a program is run.
pub trait Machine {
    /// Returns true if a variable is set and not empty.
    fn has_variable(&self, name: &str) -> bool;

    /// Returns true if a file or directory exists beneath the user's home.
    fn has_in_home(&self, path: &Path) -> bool;

    /// Finds a program in `PATH`, or by its absolute path.
    fn find_program(&self, name: &str) -> Option<PathBuf>;

    /// Runs a program with [`VERSION_ARGUMENT`] and returns its standard output; `None` if it fails
    /// or takes too long.
    fn read_version(&self, program: &Path) -> Option<String>;
}

/// An installed CLI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// The path of the program.
    pub path: PathBuf,
    /// The version, if the program prints one.
    pub version: Option<String>,
    /// The credentials of the user.
    pub credentials: Credentials,
}

/// The credentials of a CLI's user, as far as they can be known without a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A variable with a key is set.
    Key(String),
    /// A login file exists.
    File(PathBuf),
    /// There are no credentials that the adapter knows.
    Missing,
    /// The adapter knows no credentials, so the CLI may need none.
    Unknown,
}

/// Detects a CLI; `None` if it isn't installed.
#[must_use]
pub fn detect(adapter: &dyn Adapter, machine: &dyn Machine) -> Option<Installation> {
    let path = machine.find_program(adapter.program())?;
    let version = machine.read_version(&path).and_then(|output| version_in(&output));
    let credentials = find_credentials(&adapter.requirements(), machine);
    Some(Installation { path, version, credentials })
}

/// Returns the credentials that exist.
#[must_use]
pub fn find_credentials(requirements: &Requirements, machine: &dyn Machine) -> Credentials {
    let mut keys = requirements.providers.iter().flat_map(|provider| &provider.keys).peekable();
    if keys.peek().is_none() && requirements.credentials.is_empty() {
        return Credentials::Unknown;
    }
    if let Some(key) = keys.find(|key| machine.has_variable(key)) {
        return Credentials::Key(key.clone());
    }
    // The first file is the login; the others belong to it.
    let file = requirements.credentials.first().filter(|path| machine.has_in_home(path));
    file.map_or(Credentials::Missing, |path| Credentials::File(path.clone()))
}

/// Returns a message that a CLI isn't installed, how to install it, and which others are.
#[must_use]
pub fn explain_missing(adapter: &dyn Adapter, installed: &[&str]) -> String {
    let (name, program) = (adapter.name(), adapter.program());
    let subject = if name == program { name.to_owned() } else { format!("{name} (program `{program}`)") };
    let mut text = format!("{subject} is not installed");
    match adapter.install_hint() {
        "" => text.push('.'),
        hint => text.push_str(&format!("; install it with `{hint}`.")),
    }
    match installed {
        [] => text.push_str(" No other coding CLI is installed either."),
        [one] => text.push_str(&format!(" {one} is installed and can be used in its place.")),
        several => text.push_str(&format!(" Installed are: {}.", several.join(", "))),
    }
    text
}

/// Returns the first word that begins with a digit, as in `codex-cli 0.171.0`.
fn version_in(output: &str) -> Option<String> {
    let line = one_line(output);
    let mut words = line.split(' ').map(|word| word.trim_start_matches('v'));
    words.find(|word| word.starts_with(|first: char| first.is_ascii_digit())).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Claude, Codex, Gemini};

    /// A machine with some programs, variables and files.
    #[derive(Default)]
    struct Fixed {
        programs: Vec<(&'static str, &'static str)>,
        variables: Vec<&'static str>,
        files: Vec<&'static str>,
    }

    impl Machine for Fixed {
        fn has_variable(&self, name: &str) -> bool {
            self.variables.contains(&name)
        }

        fn has_in_home(&self, path: &Path) -> bool {
            self.files.iter().any(|file| Path::new(file) == path)
        }

        fn find_program(&self, name: &str) -> Option<PathBuf> {
            self.programs.iter().any(|(program, _)| *program == name).then(|| Path::new("/bin").join(name))
        }

        fn read_version(&self, program: &Path) -> Option<String> {
            let name = program.file_name()?.to_str()?;
            let found = self.programs.iter().find(|(program, _)| *program == name)?;
            Some(found.1.to_owned())
        }
    }

    #[test]
    fn the_version_is_found_in_what_the_program_says() {
        for (output, version) in [
            ("2.1.332 (Claude Code)\n", Some("2.1.332")),
            ("codex-cli 0.171.0\n", Some("0.171.0")),
            ("v1.18.33", Some("1.18.33")),
            ("no version here", None),
            ("", None),
        ] {
            assert_eq!(version_in(output).as_deref(), version, "{output}");
        }
    }

    #[test]
    fn a_key_or_a_login_is_told_without_a_network() {
        let mut machine = Fixed { programs: vec![("claude", "2.1.332 (Claude Code)")], ..Fixed::default() };
        let found = |machine: &Fixed| detect(&Claude, machine).map(|found| found.credentials);
        assert_eq!(detect(&Codex, &machine), None);
        assert_eq!(found(&machine), Some(Credentials::Missing));
        machine.files.push(".claude/.credentials.json");
        assert_eq!(found(&machine), Some(Credentials::File(".claude/.credentials.json".into())));
        machine.variables.push("ANTHROPIC_API_KEY");
        let path = PathBuf::from("/bin/claude");
        let (version, credentials) =
            (Some("2.1.332".to_owned()), Credentials::Key("ANTHROPIC_API_KEY".to_owned()));
        assert_eq!(detect(&Claude, &machine), Some(Installation { path, version, credentials }));
        // Another CLI's key is no login.
        assert_eq!(find_credentials(&Gemini.requirements(), &machine), Credentials::Missing);
    }

    #[test]
    fn a_missing_program_is_told_with_what_to_do() {
        assert_eq!(
            explain_missing(&Codex, &["claude", "gemini"]),
            "codex is not installed; install it with `npm install -g @openai/codex`. Installed are: claude, gemini."
        );
        assert_eq!(
            explain_missing(&Claude, &["codex"]),
            "claude is not installed; install it with `npm install -g @anthropic-ai/claude-code`. codex is installed and can be used in its place."
        );
        assert!(explain_missing(&Claude, &[]).ends_with(" No other coding CLI is installed either."));
    }
}
