//! A configuration key: its kind, and the layers that may set it.

/// The kind of value that a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Text.
    Text,
    /// A whole number, 1 or more.
    Count,
    /// A number, 0 or more.
    Number,
    /// `true` or `false`.
    Switch,
    /// Text such as `90s`, `10m` or `2h`, or a number of seconds.
    Duration,
    /// `plan`, `ask`, `edit` or `auto`.
    Mode,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A list of texts.
    List,
    /// A list of tables, each with a `matcher` and `hooks`.
    Hooks,
    /// A table with a `description`, a command to `run`, and its `arguments`.
    CommandTool,
    /// A table that describes another coding CLI.
    Cli,
}

impl KeyKind {
    /// Describes the values of the kind, for error messages and documentation.
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Count => "a whole number, 1 or more".to_owned(),
            Self::Number => "a number, 0 or more".to_owned(),
            Self::Switch => "true or false".to_owned(),
            Self::Duration => "a time such as \"90s\", \"10m\" or \"2h\", or a number of seconds".to_owned(),
            Self::Mode => "one of plan, ask, edit, auto".to_owned(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
            Self::List => "a list of texts".to_owned(),
            Self::Hooks => "tables with `matcher` and `hooks`".to_owned(),
            Self::CommandTool => "a table with `description`, `run` and `arguments`".to_owned(),
            Self::Cli => "a table with `command` and what else there is to know of the CLI".to_owned(),
        }
    }
}

/// A project's permission to set a key in its own configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectPermission {
    /// Set it.
    Set,
    /// Set it to a narrower or lower value.
    Narrow,
    /// Set it once the user trusts this version of the file: the key runs code or sends data.
    SetIfTrusted,
    /// Nothing.
    Nothing,
}

impl ProjectPermission {
    /// Describes the permission in a few words.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Set => "a project may set it",
            Self::Narrow => "a project may narrow it",
            Self::SetIfTrusted => "a project may set it once trusted",
            Self::Nothing => "yours alone",
        }
    }
}

/// One configuration key.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The dotted name; `*` stands for any one word.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: KeyKind,
    /// The use that a project may make of the key.
    pub project: ProjectPermission,
    /// The environment variable that sets the key.
    pub variable: Option<&'static str>,
    /// The meaning of the key.
    pub help: &'static str,
}

pub(super) const fn define_key(
    name: &'static str,
    kind: KeyKind,
    project: ProjectPermission,
    variable: Option<&'static str>,
    help: &'static str,
) -> Key {
    Key { name, kind, project, variable, help }
}
