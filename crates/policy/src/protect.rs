//! Paths that are part of the project's directory and yet run code, or hold power, outside the sandbox.

use journeyman_protocol::RelPath;

/// What a change of a path would mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protection {
    /// An ordinary file.
    None,
    /// Runs code or changes settings outside the sandbox, and people do edit it: a person decides.
    Guarded(&'static str),
    /// Git's own files: changed by git alone.
    Forbidden,
}

const EDITOR: &str = "an editor runs what it says";
const SHELL: &str = "a shell runs what it says";
const AGENT: &str = "it tells coding agents what to do and what they may";
const HOOK: &str = "git runs it outside the sandbox";
const CREDENTIALS: &str = "it holds credentials or decides how they are used";

/// Names, in lower case, that guard whatever has them: a file, or a directory with all that is in it.
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
    (".gdbinit", "a debugger runs what it says"),
    (".lldbinit", "a debugger runs what it says"),
    (".claude", AGENT),
    (".claude.json", AGENT),
    (".codex", AGENT),
    (".cursor", AGENT),
    (".gemini", AGENT),
    (".opencode", AGENT),
    (".mcp.json", AGENT),
    (".husky", HOOK),
    (".githooks", HOOK),
    (".gitconfig", HOOK),
    (".ssh", CREDENTIALS),
    (".gnupg", CREDENTIALS),
    (".netrc", CREDENTIALS),
    (".pgpass", CREDENTIALS),
    (".git-credentials", CREDENTIALS),
];

/// Whether `path`, or a directory that it lies in, is one that programs outside the sandbox run or obey: editor
/// and shell settings, hooks, agents' instructions, credentials, git's own files. A command's change of such a
/// path is a person's to make. At any depth and in any letter case.
#[must_use]
pub fn is_guarded(path: &RelPath) -> bool {
    protection(path) != Protection::None
}

/// What protects `path`, at any depth and in any letter case.
pub(crate) fn protection(path: &RelPath) -> Protection {
    path.components().map(component).max().unwrap_or(Protection::None)
}

/// As [`protection`], for a path as a shell command has it: perhaps absolute, perhaps with `..`.
pub(crate) fn protection_of_text(path: &str) -> Protection {
    path.split('/').map(|name| component(name.as_bytes())).max().unwrap_or(Protection::None)
}

fn component(name: &[u8]) -> Protection {
    let Ok(name) = std::str::from_utf8(name) else { return Protection::None };
    if !name.contains(['.', '~']) {
        return Protection::None;
    }
    // Some file systems ignore letter case, zero-width characters, or dots and spaces at the end, and one
    // calls `.git` also `git~1`. The tree may be on any of them, now or after a clone.
    let plain: String = name.chars().filter(|c| !is_ignorable(*c)).flat_map(char::to_lowercase).collect();
    let plain = plain.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    if plain == ".git" || plain == "git~1" {
        return Protection::Forbidden;
    }
    match GUARDED.iter().find(|(guarded, _)| *guarded == plain) {
        Some((_, why)) => Protection::Guarded(why),
        None => Protection::None,
    }
}

/// Code points that HFS+ leaves out when it compares names (git's own list, `utf8.c`).
fn is_ignorable(character: char) -> bool {
    matches!(character,
        '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ];
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
        for path in forbidden.iter().chain(&guarded) {
            assert!(is_guarded(&RelPath::parse(path).unwrap()), "{path}");
        }
        assert!(!ordinary.iter().any(|path| is_guarded(&RelPath::parse(path).unwrap())));
        for path in forbidden {
            assert_eq!(protection(&RelPath::parse(path).unwrap()), Protection::Forbidden, "{path}");
        }
        for path in guarded {
            let found = protection(&RelPath::parse(path).unwrap());
            assert!(matches!(found, Protection::Guarded(_)), "{path}: {found:?}");
        }
        for path in ordinary {
            assert_eq!(protection(&RelPath::parse(path).unwrap()), Protection::None, "{path}");
        }
        assert_eq!(protection(&RelPath::parse(b"\xff.git").unwrap()), Protection::None);
        assert_eq!(protection_of_text("/srv/p/../p/.git/hooks/x"), Protection::Forbidden);
    }
}
