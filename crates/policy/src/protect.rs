//! Paths in the project that run code, or grant power, outside the sandbox.

use journeyman_protocol::{GuardRules, RelPath};

/// The paths that are guarded from commands, checks and hooks.
pub const GUARDS: GuardRules = GuardRules { guarded: is_guarded, on_entering: is_obeyed_on_entering };

/// The protection of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protection {
    /// An ordinary file.
    None,
    /// The file runs code or changes settings outside the sandbox, and people edit it: a person
    /// decides.
    Guarded(&'static str),
    /// Git's own files, which only git changes.
    Forbidden,
}

const EDITOR: &str = "an editor runs what it says";
const SHELL: &str = "a shell runs what it says";
const AGENT: &str = "it tells coding agents what to do and what they may";
const HOOK: &str = "git runs it outside the sandbox";
const INTERPRETER: &str = "an interpreter or debugger runs what it says";
const PACKAGES: &str = "a package manager obeys it, and it can name programs and registries";
const VERSIONS: &str = "version control runs what its settings say";
const CREDENTIALS: &str = "it holds credentials or decides how they are used";

/// Names, in lower case, of guarded files and of directories whose whole content is guarded.
const GUARDED: &[(&str, &str)] = &[
    (".journeyman", "it is this program's own configuration"),
    (".envrc", SHELL),
    (".direnv", SHELL),
    (".vscode", EDITOR),
    (".idea", EDITOR),
    (".fleet", EDITOR),
    (".zed", EDITOR),
    (".vimrc", EDITOR),
    (".nvimrc", EDITOR),
    (".exrc", EDITOR),
    (".nvim.lua", EDITOR),
    (".lvimrc", EDITOR),
    (".emacs", EDITOR),
    (".emacs.d", EDITOR),
    (".dir-locals.el", EDITOR),
    (".helix", EDITOR),
    (".kakrc", EDITOR),
    (".devcontainer", EDITOR),
    (".devcontainer.json", EDITOR),
    (".bashrc", SHELL),
    (".bash_profile", SHELL),
    (".bash_login", SHELL),
    (".bash_logout", SHELL),
    (".bash_aliases", SHELL),
    (".profile", SHELL),
    (".zshrc", SHELL),
    (".zshenv", SHELL),
    (".zprofile", SHELL),
    (".zlogin", SHELL),
    (".zlogout", SHELL),
    (".kshrc", SHELL),
    (".mkshrc", SHELL),
    (".cshrc", SHELL),
    (".tcshrc", SHELL),
    (".login", SHELL),
    (".logout", SHELL),
    (".inputrc", SHELL),
    (".xprofile", SHELL),
    (".xinitrc", SHELL),
    (".xsession", SHELL),
    ("config.fish", SHELL),
    (".tmux.conf", SHELL),
    (".screenrc", SHELL),
    (".gdbinit", INTERPRETER),
    (".lldbinit", INTERPRETER),
    (".pdbrc", INTERPRETER),
    (".pdbrc.py", INTERPRETER),
    (".pythonrc", INTERPRETER),
    (".rprofile", INTERPRETER),
    (".irbrc", INTERPRETER),
    (".pryrc", INTERPRETER),
    (".iex.exs", INTERPRETER),
    (".ghci", INTERPRETER),
    (".claude", AGENT),
    (".claude.json", AGENT),
    (".codex", AGENT),
    (".cursor", AGENT),
    (".gemini", AGENT),
    (".opencode", AGENT),
    (".opencode.json", AGENT),
    ("opencode.json", AGENT),
    ("opencode.jsonc", AGENT),
    (".clinerules", AGENT),
    (".kiro", AGENT),
    (".continue", AGENT),
    (".roo", AGENT),
    (".roomodes", AGENT),
    (".mcp.json", AGENT),
    (".husky", HOOK),
    (".githooks", HOOK),
    (".gitconfig", HOOK),
    (".hg", VERSIONS),
    (".hgrc", VERSIONS),
    (".jj", VERSIONS),
    (".svn", VERSIONS),
    (".bzr", VERSIONS),
    (".npmrc", PACKAGES),
    (".yarnrc", PACKAGES),
    (".yarnrc.yml", PACKAGES),
    (".ssh", CREDENTIALS),
    (".gnupg", CREDENTIALS),
    (".netrc", CREDENTIALS),
    (".pgpass", CREDENTIALS),
    (".git-credentials", CREDENTIALS),
];

/// Beginnings of guarded names, in lower case.
const BEGINNINGS: &[(&str, &str)] = &[(".windsurf", AGENT), (".aider", AGENT)];
/// Endings of guarded names.
const ENDINGS: &[(&str, &str)] = &[(".sublime-project", EDITOR), (".code-workspace", EDITOR)];
/// Names that a shell, its prompt or version control obeys as soon as somebody enters the
/// directory.
const ON_ENTERING: &[&str] = &[".envrc", ".hg", ".jj", ".svn", ".bzr"];

/// Returns true if programs outside the sandbox run or obey `path` or a directory above it: editor
/// and shell settings, hooks, agents' instructions, credentials, git's own files. Only a person may
/// approve a command's change of such a path. Accepts any depth and letter case.
#[must_use]
pub fn is_guarded(path: &RelPath) -> bool {
    protection(path) != Protection::None
}

/// Returns the protection of `path`, at any depth and in any letter case.
pub(crate) fn protection(path: &RelPath) -> Protection {
    path.components().map(component).max().unwrap_or(Protection::None)
}

/// As [`protection`], for a path in a shell command, which may be absolute or contain `..`.
pub(crate) fn protection_of_text(path: &str) -> Protection {
    path.split('/').map(|name| component(name.as_bytes())).max().unwrap_or(Protection::None)
}

/// Returns true if `path`, or a directory above it, is guarded and obeyed wherever it is, as soon
/// as somebody enters its directory: repositories, and files that a shell runs by itself. Other
/// guarded files are obeyed only in the root of a project or in the home directory.
#[must_use]
pub fn is_obeyed_on_entering(path: &RelPath) -> bool {
    path.components().any(|name| {
        component(name) == Protection::Forbidden
            || plain(name).is_some_and(|plain| ON_ENTERING.contains(&plain.as_str()))
    })
}

fn component(name: &[u8]) -> Protection {
    let Some(plain) = plain(name) else { return Protection::None };
    let plain = plain.as_str();
    if plain == ".git" || plain == "git~1" {
        return Protection::Forbidden;
    }
    let named = GUARDED.iter().find(|(guarded, _)| *guarded == plain);
    let named = named.or_else(|| BEGINNINGS.iter().find(|(front, _)| plain.starts_with(front)));
    match named.or_else(|| ENDINGS.iter().find(|(ending, _)| plain.ends_with(ending))) {
        Some((_, why)) => Protection::Guarded(why),
        None => Protection::None,
    }
}

/// Returns a name as the most lenient file system compares it; `None` for a name that can't be
/// guarded.
fn plain(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    if !name.contains(['.', '~']) {
        return None;
    }
    // Some file systems ignore letter case, zero-width characters, or dots and spaces at the end,
    // and one also names `.git` as `git~1`. The tree may be on any of them, now or after a clone.
    let plain: String = name.chars().filter(|c| !is_ignorable(*c)).flat_map(char::to_lowercase).collect();
    Some(plain.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']).to_owned())
}

/// Returns true for code points that HFS+ ignores when it compares names (git's own list,
/// `utf8.c`).
fn is_ignorable(character: char) -> bool {
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
            assert_eq!((protection(&path), is_guarded(&path)), (Protection::None, false), "{path}");
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
            assert_eq!(protection(&RelPath::parse(path).unwrap()), Protection::Forbidden, "{path}");
        }
        for path in guarded {
            let found = protection(&RelPath::parse(path).unwrap());
            assert!(matches!(found, Protection::Guarded(_)), "{path}: {found:?}");
        }
        assert_eq!(protection(&RelPath::parse(b"\xff.git").unwrap()), Protection::None);
        assert_eq!(protection_of_text("/srv/p/../p/.git/hooks/x"), Protection::Forbidden);
    }
}
