//! Paths in the project that run code, or grant power, outside the sandbox.

use journeyman_protocol::{GuardRules, RelPath};

/// The paths that are guarded from commands, checks and hooks.
pub const GUARD_RULES: GuardRules = GuardRules { guarded: is_guarded, on_entering: is_obeyed_on_entering };

/// The protection of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathProtection {
    /// An ordinary file.
    None,
    /// The file runs code or changes settings outside the sandbox, and people edit it: a person
    /// decides.
    Guarded(&'static str),
    /// Git's own files, which only git changes.
    Forbidden,
}

const OBEYED_BY_EDITOR: &str = "an editor runs what it says";
const OBEYED_BY_SHELL: &str = "a shell runs what it says";
const OBEYED_BY_AGENT: &str = "it tells coding agents what to do and what they may";
const OBEYED_BY_GIT: &str = "git runs it outside the sandbox";
const OBEYED_BY_INTERPRETER: &str = "an interpreter or debugger runs what it says";
const OBEYED_BY_PACKAGE_MANAGER: &str = "a package manager obeys it, and it can name programs and registries";
const OBEYED_BY_VERSION_CONTROL: &str = "version control runs what its settings say";
const HOLDS_CREDENTIALS: &str = "it holds credentials or decides how they are used";

/// Names, in lower case, of guarded files and of directories whose whole content is guarded.
const GUARDED_NAMES: &[(&str, &str)] = &[
    (".journeyman", "it is this program's own configuration"),
    (".envrc", OBEYED_BY_SHELL),
    (".direnv", OBEYED_BY_SHELL),
    (".vscode", OBEYED_BY_EDITOR),
    (".idea", OBEYED_BY_EDITOR),
    (".fleet", OBEYED_BY_EDITOR),
    (".zed", OBEYED_BY_EDITOR),
    (".vimrc", OBEYED_BY_EDITOR),
    (".nvimrc", OBEYED_BY_EDITOR),
    (".exrc", OBEYED_BY_EDITOR),
    (".nvim.lua", OBEYED_BY_EDITOR),
    (".lvimrc", OBEYED_BY_EDITOR),
    (".emacs", OBEYED_BY_EDITOR),
    (".emacs.d", OBEYED_BY_EDITOR),
    (".dir-locals.el", OBEYED_BY_EDITOR),
    (".helix", OBEYED_BY_EDITOR),
    (".kakrc", OBEYED_BY_EDITOR),
    (".devcontainer", OBEYED_BY_EDITOR),
    (".devcontainer.json", OBEYED_BY_EDITOR),
    (".bashrc", OBEYED_BY_SHELL),
    (".bash_profile", OBEYED_BY_SHELL),
    (".bash_login", OBEYED_BY_SHELL),
    (".bash_logout", OBEYED_BY_SHELL),
    (".bash_aliases", OBEYED_BY_SHELL),
    (".profile", OBEYED_BY_SHELL),
    (".zshrc", OBEYED_BY_SHELL),
    (".zshenv", OBEYED_BY_SHELL),
    (".zprofile", OBEYED_BY_SHELL),
    (".zlogin", OBEYED_BY_SHELL),
    (".zlogout", OBEYED_BY_SHELL),
    (".kshrc", OBEYED_BY_SHELL),
    (".mkshrc", OBEYED_BY_SHELL),
    (".cshrc", OBEYED_BY_SHELL),
    (".tcshrc", OBEYED_BY_SHELL),
    (".login", OBEYED_BY_SHELL),
    (".logout", OBEYED_BY_SHELL),
    (".inputrc", OBEYED_BY_SHELL),
    (".xprofile", OBEYED_BY_SHELL),
    (".xinitrc", OBEYED_BY_SHELL),
    (".xsession", OBEYED_BY_SHELL),
    ("config.fish", OBEYED_BY_SHELL),
    (".tmux.conf", OBEYED_BY_SHELL),
    (".screenrc", OBEYED_BY_SHELL),
    (".gdbinit", OBEYED_BY_INTERPRETER),
    (".lldbinit", OBEYED_BY_INTERPRETER),
    (".pdbrc", OBEYED_BY_INTERPRETER),
    (".pdbrc.py", OBEYED_BY_INTERPRETER),
    (".pythonrc", OBEYED_BY_INTERPRETER),
    (".rprofile", OBEYED_BY_INTERPRETER),
    (".irbrc", OBEYED_BY_INTERPRETER),
    (".pryrc", OBEYED_BY_INTERPRETER),
    (".iex.exs", OBEYED_BY_INTERPRETER),
    (".ghci", OBEYED_BY_INTERPRETER),
    (".claude", OBEYED_BY_AGENT),
    (".claude.json", OBEYED_BY_AGENT),
    (".codex", OBEYED_BY_AGENT),
    (".cursor", OBEYED_BY_AGENT),
    (".gemini", OBEYED_BY_AGENT),
    (".opencode", OBEYED_BY_AGENT),
    (".opencode.json", OBEYED_BY_AGENT),
    ("opencode.json", OBEYED_BY_AGENT),
    ("opencode.jsonc", OBEYED_BY_AGENT),
    (".clinerules", OBEYED_BY_AGENT),
    (".kiro", OBEYED_BY_AGENT),
    (".continue", OBEYED_BY_AGENT),
    (".roo", OBEYED_BY_AGENT),
    (".roomodes", OBEYED_BY_AGENT),
    (".mcp.json", OBEYED_BY_AGENT),
    (".husky", OBEYED_BY_GIT),
    (".githooks", OBEYED_BY_GIT),
    (".gitconfig", OBEYED_BY_GIT),
    (".hg", OBEYED_BY_VERSION_CONTROL),
    (".hgrc", OBEYED_BY_VERSION_CONTROL),
    (".jj", OBEYED_BY_VERSION_CONTROL),
    (".svn", OBEYED_BY_VERSION_CONTROL),
    (".bzr", OBEYED_BY_VERSION_CONTROL),
    (".npmrc", OBEYED_BY_PACKAGE_MANAGER),
    (".yarnrc", OBEYED_BY_PACKAGE_MANAGER),
    (".yarnrc.yml", OBEYED_BY_PACKAGE_MANAGER),
    (".ssh", HOLDS_CREDENTIALS),
    (".gnupg", HOLDS_CREDENTIALS),
    (".netrc", HOLDS_CREDENTIALS),
    (".pgpass", HOLDS_CREDENTIALS),
    (".git-credentials", HOLDS_CREDENTIALS),
];

/// Beginnings of guarded names, in lower case.
const GUARDED_BEGINNINGS: &[(&str, &str)] = &[(".windsurf", OBEYED_BY_AGENT), (".aider", OBEYED_BY_AGENT)];
/// Endings of guarded names.
const GUARDED_ENDINGS: &[(&str, &str)] =
    &[(".sublime-project", OBEYED_BY_EDITOR), (".code-workspace", OBEYED_BY_EDITOR)];
/// Names that a shell, its prompt or version control obeys as soon as a user enters the directory.
const NAMES_OBEYED_ON_ENTERING: &[&str] = &[".envrc", ".hg", ".jj", ".svn", ".bzr"];

/// Returns true if programs outside the sandbox run or obey `path` or a directory above it: editor
/// and shell settings, hooks, agents' instructions, credentials, git's own files. Only a person may
/// approve a command's change of such a path. Accepts any depth and letter case.
#[must_use]
pub fn is_guarded(path: &RelPath) -> bool {
    protection_of(path) != PathProtection::None
}

/// Returns the protection of `path`, at any depth and in any letter case.
pub(crate) fn protection_of(path: &RelPath) -> PathProtection {
    path.components().map(component_protection).max().unwrap_or(PathProtection::None)
}

/// Returns the protection of a path in a shell command, which may be absolute or contain `..`.
pub(crate) fn protection_of_text(path: &str) -> PathProtection {
    path.split('/').map(|name| component_protection(name.as_bytes())).max().unwrap_or(PathProtection::None)
}

/// Returns true if `path`, or a directory above it, is guarded and obeyed wherever it is, as soon
/// as somebody enters its directory: repositories, and files that a shell runs by itself. Other
/// guarded files are obeyed only in the root of a project or in the home directory.
#[must_use]
pub fn is_obeyed_on_entering(path: &RelPath) -> bool {
    path.components().any(|name| {
        component_protection(name) == PathProtection::Forbidden
            || normalized_name(name).is_some_and(|plain| NAMES_OBEYED_ON_ENTERING.contains(&plain.as_str()))
    })
}

fn component_protection(name: &[u8]) -> PathProtection {
    let Some(plain) = normalized_name(name) else { return PathProtection::None };
    let plain = plain.as_str();
    if plain == ".git" || plain == "git~1" {
        return PathProtection::Forbidden;
    }
    let named = GUARDED_NAMES.iter().find(|(guarded, _)| *guarded == plain);
    let named = named.or_else(|| GUARDED_BEGINNINGS.iter().find(|(front, _)| plain.starts_with(front)));
    match named.or_else(|| GUARDED_ENDINGS.iter().find(|(ending, _)| plain.ends_with(ending))) {
        Some((_, why)) => PathProtection::Guarded(why),
        None => PathProtection::None,
    }
}

/// Returns a name as the most lenient file system compares it; `None` for a name that can't be
/// guarded.
fn normalized_name(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    if !name.contains(['.', '~']) {
        return None;
    }
    // Some file systems ignore letter case, zero-width characters, or dots and spaces at the end,
    // and one also names `.git` as `git~1`. The tree may be on any of them, now or after a clone.
    let plain: String =
        name.chars().filter(|c| !is_ignored_by_hfs(*c)).flat_map(char::to_lowercase).collect();
    Some(plain.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']).to_owned())
}

/// Returns true for code points that HFS+ ignores when it compares names (git's own list,
/// `utf8.c`).
fn is_ignored_by_hfs(character: char) -> bool {
    matches!(character,
        '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_obeyed_on_entering_is_told_from_what_is_obeyed_in_an_opened_project() {
        for path in ["a/.envrc", ".ENVRC", "a/.git/config", "x/.hg", ".jj/repo"] {
            assert!(is_obeyed_on_entering(&RelPath::parse(path).unwrap()), "{path}");
        }
        for path in [".vscode/tasks.json", "a/.npmrc", "envrc", "src/a.rs"] {
            assert!(!is_obeyed_on_entering(&RelPath::parse(path).unwrap()), "{path}");
        }
    }

    #[test]
    fn other_files_are_not_guarded() {
        let ordinary = [
            "src/lib.rs",
            ".gitignore",
            ".gitattributes",
            ".github/workflows/ci.yml",
            ".env",
            "git/config",
            "a.git/x",
            ".gitmodules",
            "docs/.gitkeep",
            "vscode/tasks.json",
            "profile",
            "README",
            "x~1",
            ".cargo/config.toml",
            "AGENTS.md",
            "\u{e9}.rs",
        ];
        for path in ordinary {
            let path = RelPath::parse(path).unwrap();
            assert_eq!((protection_of(&path), is_guarded(&path)), (PathProtection::None, false), "{path}");
        }
    }

    #[test]
    fn table() {
        let forbidden = [
            ".git",
            ".git/config",
            ".git/hooks/pre-commit",
            "vendor/lib/.git/hooks/post-checkout",
            ".GIT/config",
            "a/.Git/HEAD",
            ".g\u{200c}it/config",
            "git~1/config",
            "GIT~1",
            ".git./config",
            ".git /config",
            ".git::$INDEX_ALLOCATION/config",
            ".vscode/.git/x",
        ];
        let guarded = [
            ".journeyman/config.toml",
            "sub/.journeyman/policy.toml",
            ".envrc",
            "sub/.ENVRC",
            ".vscode/tasks.json",
            ".idea/workspace.xml",
            ".bashrc",
            "home/.zshrc",
            ".config/fish/config.fish",
            ".claude/settings.json",
            ".mcp.json",
            ".husky/pre-commit",
            ".gitconfig",
            ".ssh/authorized_keys",
            ".hg/hgrc",
            "sub/.jj/repo",
            ".svn/wc.db",
            ".npmrc",
            "web/.yarnrc.yml",
            ".pdbrc",
            ".Rprofile",
            ".irbrc",
            ".pryrc",
            ".helix/config.toml",
            ".kakrc",
            "app.sublime-project",
            ".windsurfrules",
            ".windsurf/rules/a.md",
            ".clinerules",
            ".aider.conf.yml",
            ".kiro/hooks/a",
            ".continue/config.yaml",
            ".roo/mcp.json",
            "opencode.json",
        ];
        for path in forbidden.iter().chain(&guarded) {
            assert!(is_guarded(&RelPath::parse(path).unwrap()), "{path}");
        }
        for path in forbidden {
            assert_eq!(protection_of(&RelPath::parse(path).unwrap()), PathProtection::Forbidden, "{path}");
        }
        for path in guarded {
            let found = protection_of(&RelPath::parse(path).unwrap());
            assert!(matches!(found, PathProtection::Guarded(_)), "{path}: {found:?}");
        }
        assert_eq!(protection_of(&RelPath::parse(b"\xff.git").unwrap()), PathProtection::None);
        assert_eq!(protection_of_text("/srv/p/../p/.git/hooks/x"), PathProtection::Forbidden);
    }
}
