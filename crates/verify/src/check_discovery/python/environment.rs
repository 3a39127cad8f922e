//! The environment that has a Python project's programs.

use super::super::project::ProjectDirectory;
use super::super::shell::quote_word;

/// Managers of environments by their lock file, with what comes before a program that runs in one.
/// Checks run offline, and the lock file is the project's to change.
const ENVIRONMENT_MANAGERS: [(&str, &str, &str); 4] = [
    ("uv.lock", "uv", "uv run --offline --frozen "),
    ("poetry.lock", "poetry", "poetry run "),
    ("pdm.lock", "pdm", "pdm run "),
    ("Pipfile.lock", "pipenv", "pipenv run "),
];

/// The environment of a project's programs.
pub(super) enum PythonEnvironment {
    /// A virtual environment in the project, by its directory.
    Own(&'static str),
    /// An environment of a manager: the manager, and the words before a program that runs in it.
    Managed(&'static str, &'static str),
    /// The programs of `PATH`.
    Path,
}

impl PythonEnvironment {
    /// Finds the project's own environment, else that of the manager whose lock file exists, else
    /// the programs of `PATH`. Members of a workspace use the root's environment.
    pub(super) fn find(place: &ProjectDirectory<'_>) -> Self {
        // The environment's own `bin/python` is a link out of the project, which nothing here
        // follows.
        let own = [".venv", "venv"].into_iter().find(|path| place.has_file(&format!("{path}/pyvenv.cfg")));
        if let Some(own) = own {
            return Self::Own(own);
        }
        let root = place.root_directory();
        let manager = ENVIRONMENT_MANAGERS.into_iter().find(|(lock, program, _)| {
            (place.has_file(lock) || root.has_file(lock)) && place.has_program(program)
        });
        manager.map_or(Self::Path, |(_, program, prefix)| Self::Managed(program, prefix))
    }

    /// Returns the interpreter, as a command.
    pub(super) fn interpreter(&self) -> String {
        match self {
            Self::Own(directory) => quote_program_path(directory, "python"),
            Self::Managed(_, prefix) => format!("{prefix}python"),
            Self::Path => "python3".to_owned(),
        }
    }

    /// Returns the interpreter that has pytest, as a command; `None` if pytest is not installed.
    /// `python3` and `pytest` can belong to two installations, such as a version manager's and the
    /// system's: then the interpreter of the installed program `pytest` is used.
    pub(super) fn pytest_interpreter(&self, place: &ProjectDirectory<'_>) -> Option<String> {
        match self {
            Self::Managed(..) => Some(self.interpreter()),
            Self::Own(directory) if place.has_file(&format!("{directory}/bin/pytest")) => {
                Some(self.interpreter())
            }
            Self::Own(directory) => {
                let settings = place.read(&format!("{directory}/pyvenv.cfg"))?;
                let shares = settings.lines().any(|line| {
                    let setting = line.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
                    setting == Some(("include-system-site-packages", "true"))
                });
                (shares && place.has_program("pytest")).then(|| self.interpreter())
            }
            Self::Path => {
                let (pytest, python) = (place.find_program("pytest")?, place.find_program("python3"));
                if python.as_ref().and_then(|it| it.parent()) == pytest.parent() {
                    return Some(self.interpreter());
                }
                let beside = pytest.with_file_name("python3").into_os_string().into_string().ok()?;
                match place.has_program(&beside) {
                    true => Some(quote_word(&beside)),
                    // A launcher in a directory of its own, such as pip's for a user.
                    false => Some(self.interpreter()),
                }
            }
        }
    }

    /// Returns a program of the environment, or of `PATH`, as a command; `None` if it is not
    /// installed. The programs of a manager's environment can't be listed and are assumed to exist.
    pub(super) fn program_command(&self, place: &ProjectDirectory<'_>, name: &str) -> Option<String> {
        match self {
            Self::Managed(_, prefix) => Some(format!("{prefix}{name}")),
            Self::Own(directory) if place.has_file(&format!("{directory}/bin/{name}")) => {
                Some(quote_program_path(directory, name))
            }
            Self::Own(_) | Self::Path => place.has_program(name).then(|| name.to_owned()),
        }
    }

    /// Returns the program without which nothing runs in the environment.
    pub(super) fn required_program(&self) -> &'static str {
        match self {
            Self::Managed(program, _) => program,
            Self::Own(_) | Self::Path => "python3",
        }
    }

    /// Returns true if the interpreter lies outside of the project.
    pub(super) fn is_outside_project(&self) -> bool {
        !matches!(self, Self::Own(_))
    }

    pub(super) fn is_managed(&self) -> bool {
        matches!(self, Self::Managed(..))
    }

    /// Adds the manager to the reason for a check.
    pub(super) fn extend_reason(&self, why: &str) -> String {
        match self {
            Self::Managed(program, _) => {
                format!("{why}, in {program}'s environment").replace(", and pytest is installed", "")
            }
            Self::Own(_) | Self::Path => why.to_owned(),
        }
    }
}

/// Quotes a directory for a command that runs its programs.
fn quote_program_path(directory: &str, program: &str) -> String {
    quote_word(&format!("{directory}/bin/{program}"))
}
