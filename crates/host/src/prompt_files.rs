//! Loads the user's replacements for built-in prompts.

use journeyman_context::PromptTexts;

use crate::HostError;
use crate::config::Environment;
use crate::format::printable;
use crate::text_files::TextDirectory;

/// The directory of the user's texts, in that of their configuration.
const PROMPTS_DIRECTORY: &str = "prompts";

/// Loads the prompts of every task. A user's file replaces the built-in prompt of the same name; a
/// project can't replace prompts.
///
/// # Errors
/// [`HostError::Usage`] for a file that can't be read, that no built-in text is named as, or that
/// has other places.
pub(crate) fn load_prompts(environment: &Environment) -> Result<PromptTexts, HostError> {
    let mut prompts = PromptTexts::default();
    let path = environment.config_dir().map(|dir| dir.join(PROMPTS_DIRECTORY));
    let Some(directory) = path.as_deref().and_then(TextDirectory::open_for_user) else { return Ok(prompts) };
    for name in
        directory.list_names("").files.iter().filter(|name| name.ends_with(".md") && *name != "README.md")
    {
        let wrong = |problem: String| {
            HostError::usage(format_args!(
                "{}: {problem}",
                printable(&directory.display_path(name).display())
            ))
        };
        let text = directory.read(name).map_err(wrong)?;
        prompts.replace(name, text).map_err(|error| wrong(error.to_string()))?;
    }
    Ok(prompts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_files_are_checked_strictly() {
        let home = tempfile::tempdir().unwrap();
        let environment =
            Environment { vars: Default::default(), home: Some(home.path().to_owned()), cwd: "/".into() };
        assert_eq!(load_prompts(&environment).unwrap(), PromptTexts::default());
        let directory = environment.config_dir().unwrap().join(PROMPTS_DIRECTORY);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("README.md"), "notes").unwrap();
        std::fs::write(directory.join("system.md"), "Be brief.").unwrap();
        let own = load_prompts(&environment).unwrap();
        assert_ne!(own.hash(), PromptTexts::default().hash());
        std::fs::write(directory.join("sytem.md"), "x").unwrap();
        let error = load_prompts(&environment).unwrap_err().to_string();
        assert!(error.contains("sytem.md: there is no prompt `sytem.md`"), "{error}");
    }
}
