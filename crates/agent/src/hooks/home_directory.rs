//! The part of the user's home directory that a confined hook sees.
//!
//! A hook may read its rules from anywhere in the home directory, and a hook that doesn't find them
//! could allow what it should forbid. Hooks that only observe therefore see the home directory
//! without its secrets. Hooks that may change the project run formatters, which the project's own
//! settings configure. These hooks see the same as commands, the files that their text names, and
//! the settings of formatters.

use std::path::{Path, PathBuf};

use journeyman_sandbox::Request;

use super::hook_command::HookCommand;

/// Maximum number of entries of a home directory that are shown. Each needs a mount, and the
/// sandbox has 512 of them.
const MAX_HOME_ENTRIES: usize = 300;

/// Files and directories of a home directory that hold keys, credentials, input histories or
/// messages.
const SECRET_PATHS: [&str; 71] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    "_netrc",
    ".git-credentials",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".vault-token",
    ".password-store",
    ".pki",
    ".boto",
    ".s3cfg",
    ".oci",
    ".fly",
    ".terraform.d",
    ".terraformrc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".gem/credentials",
    ".claude.json",
    ".claude/.credentials.json",
    ".claude/projects",
    ".codex/auth.json",
    ".codex/sessions",
    ".gemini/oauth_creds.json",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".local/share/fish",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".local/share/opencode",
    ".local/state/journeyman",
    ".mozilla",
    ".thunderbird",
    ".config/journeyman/config.toml",
    ".config/git/credentials",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".config/gcloud",
    ".config/github-copilot",
    ".config/op",
    ".config/1Password",
    ".config/rclone",
    ".config/sops",
    ".config/helm",
    ".config/heroku",
    ".config/doctl",
    ".config/containers",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/Signal",
    ".config/Slack",
    ".Xauthority",
];
/// Beginnings, ends and parts of the names of files with keys, in lower case.
const SECRET_NAME_PREFIXES: [&str; 2] = ["id_", ".env"];
const SECRET_NAME_SUFFIXES: [&str; 9] =
    [".pem", ".key", ".p12", ".pfx", ".kdbx", ".jks", ".keystore", ".asc", ".ovpn"];
const SECRET_NAME_PARTS: [&str; 5] = ["secret", "credential", "password", "token", "private"];

/// Settings of formatters and linters in a home directory.
const FORMATTER_CONFIGS: [&str; 22] = [
    ".editorconfig",
    ".rustfmt.toml",
    "rustfmt.toml",
    ".config/rustfmt",
    ".prettierrc",
    ".prettierrc.json",
    ".prettierrc.yaml",
    ".eslintrc",
    ".eslintrc.json",
    ".stylelintrc",
    ".clang-format",
    ".clang-tidy",
    ".config/black",
    ".config/ruff",
    ".config/flake8",
    ".flake8",
    ".pylintrc",
    ".isort.cfg",
    ".config/yamllint",
    ".config/stylua",
    ".rubocop.yml",
    ".config/rubocop",
];

/// Adds to a request the paths that the hook sees besides the system, the project and the
/// toolchains.
///
/// # Errors
/// Returns the reason why the hook can't work in the sandbox.
pub(super) fn add_visible_paths(
    request: &mut Request,
    hook: &HookCommand,
    home: Option<&Path>,
) -> Result<(), String> {
    let named = find_named_paths(&hook.command, home);
    let Some(home) = home.filter(|home| home.is_absolute() && home.parent().is_some()) else {
        request.read_only.extend(named);
        return Ok(());
    };
    let secrets: Vec<PathBuf> = SECRET_PATHS.iter().map(|name| home.join(name)).collect();
    if let Some(path) = named.iter().find(|path| secrets.iter().any(|secret| path.starts_with(secret))) {
        return Err(format!(
            "it names {}, which no hook sees in the sandbox; see `sandbox = false` in docs/hooks.md",
            path.display()
        ));
    }
    if hook.event.may_write() {
        request
            .read_only
            .extend(FORMATTER_CONFIGS.iter().map(|name| home.join(name)).filter(|path| path.exists()));
    } else {
        request.read_only.extend(visible_entries(home)?);
    }
    for path in named {
        let parent =
            path.parent().filter(|parent| !home.starts_with(parent) && !request.root.starts_with(parent));
        let parent =
            parent.filter(|parent| parent.components().count() > 2 && *parent != Path::new("/var/tmp"));
        request.read_only.extend(parent.map(Path::to_owned));
        request.read_only.push(path);
    }
    let expanded =
        |path: &PathBuf| path.strip_prefix("~").map_or_else(|_| path.clone(), |rest| home.join(rest));
    request.read_only.extend(hook.read.iter().map(expanded));
    request.writable.extend(hook.write.iter().map(expanded));
    // Of two mounts at one place the stricter applies, so writable paths are not mounted read-only
    // too.
    let written: Vec<PathBuf> = hook.write.iter().map(expanded).collect();
    request.read_only.retain(|path| !written.iter().any(|written| path.starts_with(written)));
    let asked =
        |secret: &PathBuf| hook.read.iter().chain(&hook.write).any(|path| expanded(path).starts_with(secret));
    request.masked.extend(secrets.into_iter().filter(|secret| !asked(secret)));
    Ok(())
}

/// Returns the entries of the home directory, without names that look like keys and without links
/// that lead out of it.
fn visible_entries(home: &Path) -> Result<Vec<PathBuf>, String> {
    let real =
        home.canonicalize().map_err(|error| format!("{} can't be looked at: {error}", home.display()))?;
    let found =
        std::fs::read_dir(&real).map_err(|error| format!("{} can't be read: {error}", home.display()))?;
    let mut shown = Vec::new();
    for entry in found.flatten() {
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let is_secret = SECRET_NAME_PREFIXES.iter().any(|part| name.starts_with(part))
            || SECRET_NAME_SUFFIXES.iter().any(|part| name.ends_with(part))
            || SECRET_NAME_PARTS.iter().any(|part| name.contains(part));
        if !is_secret
            && entry.path().canonicalize().is_ok_and(|target| target.starts_with(&real) && target != real)
        {
            shown.push(entry.path());
        }
    }
    if shown.len() > MAX_HOME_ENTRIES {
        return Err(format!(
            "{} has {} entries, more than the {MAX_HOME_ENTRIES} that a sandbox shows; see `sandbox = false` in \
             docs/hooks.md",
            home.display(),
            shown.len()
        ));
    }
    Ok(shown)
}

/// Returns the files outside the system directories that a command's text names by absolute paths
/// or below the home directory.
fn find_named_paths(command: &str, home: Option<&Path>) -> Vec<PathBuf> {
    let between = |c: char| c.is_whitespace() || "\"'`;|&()<>=".contains(c);
    let path = |word: &str| {
        let beneath = ["~/", "$HOME/", "${HOME}/"].iter().find_map(|start| word.strip_prefix(start));
        beneath.map_or_else(|| Some(PathBuf::from(word)), |rest| home.map(|home| home.join(rest)))
    };
    // Scripts also write "$HOME"/x.
    let command = command.replace("\"$HOME\"", "$HOME").replace("\"${HOME}\"", "$HOME");
    let words = command.split(between).filter(|word| !word.is_empty()).filter_map(path);
    let system =
        ["/dev", "/proc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/nix", "/tmp", "/run"];
    let own = |path: &PathBuf| {
        path.components().count() > 2
            && !system.iter().any(|system| path.starts_with(system) && *system != "/tmp")
    };
    words.filter(|path| path.is_absolute() && own(path) && path.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::HookEvent;

    fn shown(event: HookEvent, command: &str, home: &Path) -> Result<Request, String> {
        let mut request = Request::for_shell_command(Path::new("/srv/project"), command);
        add_visible_paths(&mut request, &HookCommand::new(event, command), Some(home)).map(|()| request)
    }

    #[test]
    fn a_guard_sees_the_home_without_its_keys_and_a_formatter_what_it_names() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        for name in [".closed", ".ssh/id_x", "server.key", "hooks/fmt.sh", ".rustfmt.toml", "notes"] {
            std::fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
            std::fs::write(home.join(name), "").unwrap();
        }
        std::os::unix::fs::symlink("/etc", home.join("out")).unwrap();
        let guard = shown(HookEvent::PreTool, "test -e ~/.closed", &home).unwrap();
        let has = |request: &Request, name: &str| request.read_only.contains(&home.join(name));
        assert!(has(&guard, ".closed") && has(&guard, "notes") && has(&guard, "hooks"));
        assert!(!has(&guard, "server.key") && !has(&guard, "out"));
        assert!(guard.masked.contains(&home.join(".ssh")));
        let formatter = shown(HookEvent::PostTool, "sh \"$HOME\"/hooks/fmt.sh", &home).unwrap();
        assert!(has(&formatter, "hooks") && has(&formatter, ".rustfmt.toml"));
        assert!(!has(&formatter, "notes") && !has(&formatter, ".closed") && !has(&formatter, "."));
        assert!(formatter.masked.contains(&home.join(".ssh")));
        for event in [HookEvent::PreTool, HookEvent::PostTool] {
            let refused = shown(event, "cat ${HOME}/.ssh/id_x", &home).unwrap_err();
            assert!(refused.contains(".ssh/id_x") && refused.contains("sandbox = false"), "{refused}");
        }
    }
}
