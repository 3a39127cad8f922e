//! Checks the programs that git's settings name and that a commit runs outside the sandbox:
//! filters, signing programs, and anything that a file of the project sets.
//!
//! Hooks and file-system monitors are disabled for these calls, so only the rest is checked: no
//! program may be, name or obey a changed file that no person has reviewed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use journeyman_protocol::RelPath;

use crate::repository_paths::RepositoryPaths;
use crate::user_git::{UserCommand, UserGitRunner};
use crate::{CommitRefusal, GitError, HookConfinement, HookRunMode};

/// Programs that obey no file of the work tree.
const TREE_INDEPENDENT_PROGRAMS: [&str; 11] = [
    "git-lfs",
    "git-crypt",
    "git-annex",
    "gpg",
    "gpg2",
    "gpgsm",
    "ssh-keygen",
    "op-ssh-sign",
    "cat",
    "tr",
    "sed",
];
/// Sections of the user's settings that a hook's git gets: identity, and conversion of files.
const HOOK_SETTING_SECTIONS: [&str; 6] = ["user.", "core.", "filter.", "i18n.", "commit.", "init."];
/// Settings of these sections that name files or programs of the home directory, which hooks can't
/// read.
const HOME_DEPENDENT_SECTIONS: [&str; 8] = [
    "core.hookspath",
    "core.fsmonitor",
    "core.editor",
    "core.pager",
    "core.sshcommand",
    "core.askpass",
    "core.excludesfile",
    "core.attributesfile",
];

/// A git setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitSetting {
    /// The scope, such as `global`.
    scope: String,
    /// The file that sets it, if any.
    file: Option<PathBuf>,
    /// The key, in lower case except for a name in its middle.
    key: String,
    value: Vec<u8>,
}

/// Reads all settings that apply to the work tree.
pub(crate) async fn read_settings(own: &UserGitRunner<'_>) -> Result<Vec<GitSetting>, GitError> {
    let action = "config";
    let args = [action, "--list", "-z", "--includes", "--show-scope", "--show-origin"];
    let listed = own.run_for_output(action, args).await?;
    parse_settings(&listed).ok_or(GitError::Malformed { action, what: "a setting" })
}

/// Parses records of scope, origin, and key with value.
pub(crate) fn parse_settings(listed: &[u8]) -> Option<Vec<GitSetting>> {
    let mut found = Vec::new();
    let mut fields = listed.split(|&byte| byte == 0);
    while let Some(scope) = fields.next().filter(|scope| !scope.is_empty()) {
        let (origin, entry) = (fields.next()?, fields.next()?);
        let mut parts = entry.splitn(2, |&byte| byte == b'\n');
        let key = String::from_utf8_lossy(parts.next()?).into_owned();
        let file = origin.strip_prefix(b"file:").map(|path| PathBuf::from(OsStr::from_bytes(path)));
        let scope = String::from_utf8_lossy(scope).into_owned();
        found.push(GitSetting { scope, file, key, value: parts.next().unwrap_or_default().to_vec() });
    }
    Some(found)
}

/// Formats the user's settings that hooks need as a settings file.
pub(crate) fn format_settings(settings: &[GitSetting]) -> Vec<u8> {
    let mut text = Vec::new();
    for setting in settings.iter().filter(|setting| setting.scope == "global") {
        let key = setting.key.to_lowercase();
        let is_wanted = HOOK_SETTING_SECTIONS.iter().any(|section| key.starts_with(section));
        if !is_wanted || HOME_DEPENDENT_SECTIONS.contains(&key.as_str()) {
            continue;
        }
        let (Some((section, rest)), Some((_, name))) =
            (setting.key.split_once('.'), setting.key.rsplit_once('.'))
        else {
            continue;
        };
        let middle = rest.strip_suffix(name).and_then(|middle| middle.strip_suffix('.'));
        let middle =
            middle.map(|middle| format!(" \"{}\"", middle.replace('\\', "\\\\").replace('"', "\\\"")));
        text.extend(format!("[{section}{}]\n\t{name} = \"", middle.unwrap_or_default()).bytes());
        for &byte in &setting.value {
            match byte {
                b'\n' => text.extend(b"\\n"),
                b'\t' => text.extend(b"\\t"),
                b'"' | b'\\' => text.extend([b'\\', byte]),
                other => text.push(other),
            }
        }
        text.extend(b"\"\n");
    }
    text
}

/// Checks git's settings against a commit's changes.
pub(crate) struct ProgramCheck<'a> {
    pub(crate) own: &'a UserGitRunner<'a>,
    pub(crate) place: &'a RepositoryPaths,
    pub(crate) confinement: &'a HookConfinement,
    /// The files of the change.
    pub(crate) changed: &'a [RelPath],
}

impl ProgramCheck<'_> {
    /// Refuses the commit if a program that depends on the change would run outside the sandbox,
    /// unless a person agreed.
    pub(crate) async fn run(&self) -> Result<(), GitError> {
        if self.confinement.run == HookRunMode::Outside {
            return Ok(());
        }
        let settings = read_settings(self.own).await?;
        let signs = settings.iter().rfind(|setting| setting.key == "commit.gpgsign").is_some_and(|setting| {
            matches!(setting.value.to_ascii_lowercase().as_slice(), b"" | b"true" | b"yes" | b"on" | b"1")
        });
        let obeyed: Vec<RelPath> =
            self.changed.iter().filter(|path| (self.confinement.runs_code)(path)).cloned().collect();
        let changed: BTreeSet<&RelPath> = self.changed.iter().collect();
        for setting in &settings {
            if let Some(file) = setting.file.as_deref().and_then(|file| self.path_in_project(file))
                && self.is_changed_or_untracked(&file, &changed).await?
            {
                return Err(self.refusal(&setting.key, vec![file]));
            }
            let Some(runs) = command_trigger(&setting.key) else { continue };
            let words = split_words(&setting.value);
            let mut named = self.files_named_in(&words, &changed);
            for word in &words {
                if let Some(file) = self.path_in_project(&self.expand_home(word))
                    && !named.contains(&file)
                    && self.is_changed_or_untracked(&file, &changed).await?
                {
                    named.push(file);
                }
            }
            let runs = match runs {
                CommandTrigger::Filter => true,
                CommandTrigger::Signer => signs,
                CommandTrigger::Elsewhere => false,
            };
            if runs && !is_tree_independent_command(&setting.value) {
                named.extend(obeyed.iter().cloned());
            }
            if !named.is_empty() {
                return Err(self.refusal(&setting.key, named));
            }
        }
        Ok(())
    }

    fn refusal(&self, key: &str, files: Vec<RelPath>) -> GitError {
        CommitRefusal::Unseen { setting: journeyman_sandbox::clean_output(key.as_bytes()), files }.into()
    }

    /// Returns the path within the project of a file that git names from the top of the work tree.
    fn path_in_project(&self, file: &Path) -> Option<RelPath> {
        let real = self.place.top.as_deref()?.join(file).canonicalize().ok()?;
        let inside = |directory: &Path| real.starts_with(directory);
        if !real.is_file() || inside(&self.place.git_dir) || inside(&self.place.common_dir) {
            return None;
        }
        RelPath::parse(real.strip_prefix(&self.place.root).ok()?.as_os_str().as_bytes()).ok()
    }

    /// Returns true for a changed file and for an untracked file, whose changes git doesn't show.
    async fn is_changed_or_untracked(
        &self,
        file: &RelPath,
        changed: &BTreeSet<&RelPath>,
    ) -> Result<bool, GitError> {
        if changed.contains(file) {
            return Ok(true);
        }
        let full = [b":(top,literal)", self.place.prefix.as_slice(), file.as_bytes()].concat();
        let args =
            [OsStr::new("ls-files"), "--error-unmatch".as_ref(), "--".as_ref(), OsStr::from_bytes(&full)];
        Ok(!self.own.run(UserCommand::new(args)).await?.is_success())
    }

    /// Returns the changed files whose name occurs among the words: a path may be composed of
    /// variables.
    fn files_named_in(&self, words: &[&[u8]], changed: &BTreeSet<&RelPath>) -> Vec<RelPath> {
        let names: BTreeSet<&[u8]> =
            words.iter().filter_map(|word| word.rsplit(|&byte| byte == b'/').next()).collect();
        changed.iter().filter(|path| names.contains(path.file_name())).map(|path| (*path).clone()).collect()
    }

    fn expand_home(&self, word: &[u8]) -> PathBuf {
        let path = Path::new(OsStr::from_bytes(word));
        match (path.strip_prefix("~"), self.own.environment_variable("HOME")) {
            (Ok(rest), Some(home)) => Path::new(home).join(rest),
            _ => path.to_owned(),
        }
    }
}

/// The time at which git runs the command of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandTrigger {
    /// When a file is staged or checked out.
    Filter,
    /// When a commit is signed.
    Signer,
    /// At other times, as far as is known.
    Elsewhere,
}

/// Returns the trigger of a setting whose value is a command.
fn command_trigger(key: &str) -> Option<CommandTrigger> {
    let key = key.to_lowercase();
    let ends = |ends: &[&str]| ends.iter().any(|end| key.ends_with(end));
    if key.starts_with("filter.") && ends(&[".clean", ".smudge", ".process"]) {
        Some(CommandTrigger::Filter)
    } else if key.starts_with("gpg.") && ends(&[".program", ".defaultkeycommand"]) {
        Some(CommandTrigger::Signer)
    } else if ends(&["command", ".driver", ".helper", ".textconv", ".external", "hook", "pack", ".askpass"]) {
        Some(CommandTrigger::Elsewhere)
    } else {
        None
    }
}

/// Splits a command into words, as a shell might.
fn split_words(value: &[u8]) -> Vec<&[u8]> {
    let apart = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`;|&()<>=!$".contains(byte);
    value.split(apart).filter(|word| !word.is_empty()).collect()
}

/// Returns true for a single command of a program that obeys no file of the work tree.
fn is_tree_independent_command(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value);
    let mut words = text.split_whitespace();
    let program = words.next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    let plain = !text.contains(['`', ';', '|', '&', '$', '(', '<', '>', '\n']);
    plain
        && (TREE_INDEPENDENT_PROGRAMS.contains(&name)
            || (name == "git" && words.next() == Some("lfs"))
            || program.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(scope: &str, key: &str, value: &str) -> GitSetting {
        GitSetting {
            scope: scope.to_owned(),
            file: None,
            key: key.to_owned(),
            value: value.as_bytes().to_vec(),
        }
    }

    #[test]
    fn settings_are_read_with_their_files() {
        let listed =
            b"global\0file:/home/a/.gitconfig\0user.name\nA\nB\0local\0file:.git/config\0core.bare\0";
        let mut expected = [setting("global", "user.name", "A\nB"), setting("local", "core.bare", "")];
        expected[0].file = Some("/home/a/.gitconfig".into());
        expected[1].file = Some(".git/config".into());
        assert_eq!(parse_settings(listed).unwrap(), expected);
        assert_eq!(parse_settings(b""), Some(Vec::new()));
        assert_eq!(parse_settings(b"global\0file:x"), None);
    }

    #[test]
    fn hooks_get_the_users_identity_and_filters_and_no_credentials() {
        let settings = [
            setting("global", "user.name", "Ada \"A\""),
            setting("global", "filter.a.b.clean", "x\\y"),
            setting("global", "http.extraheader", "token"),
            setting("global", "core.hooksPath", "/home/a/hooks"),
            setting("local", "user.email", "a@b"),
        ];
        let text = String::from_utf8(format_settings(&settings)).unwrap();
        assert_eq!(text, "[user]\n\tname = \"Ada \\\"A\\\"\"\n[filter \"a.b\"]\n\tclean = \"x\\\\y\"\n");
    }

    #[test]
    fn programs_that_obey_no_file_are_known_by_name() {
        for known in ["git-lfs clean -- %f", "git lfs clean -- %f", "/usr/bin/gpg2", "tr a-z A-Z", ""] {
            assert!(is_tree_independent_command(known.as_bytes()), "{known}");
        }
        for unknown in ["npm run clean", "cat x | sh", "sed $(x)", "git foo", "./gpg.sh"] {
            assert!(!is_tree_independent_command(unknown.as_bytes()), "{unknown}");
        }
    }

    #[test]
    fn settings_that_name_commands_are_known_by_their_keys() {
        assert_eq!(command_trigger("filter.x.clean"), Some(CommandTrigger::Filter));
        assert_eq!(command_trigger("gpg.program"), Some(CommandTrigger::Signer));
        assert_eq!(command_trigger("gpg.ssh.defaultKeyCommand"), Some(CommandTrigger::Signer));
        assert_eq!(command_trigger("core.sshCommand"), Some(CommandTrigger::Elsewhere));
        assert_eq!(command_trigger("merge.x.driver"), Some(CommandTrigger::Elsewhere));
        assert_eq!(command_trigger("user.name"), None);
    }
}
