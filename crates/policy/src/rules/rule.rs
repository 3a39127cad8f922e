//! Rules as written.

use std::fmt;

use journeyman_protocol::{Decision, Mode};

/// The origin of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleLayer {
    /// Rules of the machine's administrator, for all users.
    Admin,
    /// Rules of the user.
    User,
    /// Rules of the project, which can only tighten the policy.
    Project,
    /// Answers of a person in this session.
    Session,
}

impl RuleLayer {
    /// All layers, in the order in which they are shown. No layer is stronger than another: what
    /// one denies, none allows.
    pub const ALL: [Self; 4] = [Self::Admin, Self::User, Self::Project, Self::Session];

    /// Returns the layer's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::User => "user",
            Self::Project => "project",
            Self::Session => "session",
        }
    }
}

impl fmt::Display for RuleLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The id of a rule: its layer, its file, and its name or line there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId {
    /// The rule's layer.
    pub layer: RuleLayer,
    /// The file; `None` for a rule of the session.
    pub file: Option<String>,
    /// The first line of its table, from 1; in a session, the rule's number.
    pub line: usize,
    /// The rule's name.
    pub name: Option<String>,
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}: {file}:{}", self.layer, self.line)?,
            None => write!(f, "{}: rule {}", self.layer, self.line)?,
        }
        match &self.name {
            Some(name) => write!(f, " `{name}`"),
            None => Ok(()),
        }
    }
}

/// A call that a rule has to match, or must not match, when it is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Example {
    /// A shell command.
    Command(String),
    /// A call of a tool on a file or a host.
    Call {
        /// The tool; `None` for any tool.
        tool: Option<String>,
        /// A path that the call reads and writes.
        path: Option<String>,
        /// A host that the call connects to.
        host: Option<String>,
    },
}

impl fmt::Display for Example {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => write!(f, "`{}`", shorten_text(command)),
            Self::Call { tool, path, host } => {
                f.write_str(&shorten_text(tool.as_deref().unwrap_or("a tool")))?;
                for (word, what) in [(" on ", path), (" to ", host)] {
                    if let Some(what) = what {
                        write!(f, "{word}{}", shorten_text(what))?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// A rule as written.
///
/// A rule matches a call if all its conditions do: one of `tools`, one of `agents`, one of `modes`,
/// and so on. An empty condition matches every call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The rule's name.
    pub name: Option<String>,
    /// The rule's decision.
    pub decision: Decision,
    /// The reason, for people.
    pub reason: Option<String>,
    /// Names of tools, with `*` as a wildcard.
    pub tools: Vec<String>,
    /// The words of a command by position, each with its alternatives; the last may be `**`.
    pub command: Vec<Vec<String>>,
    /// A whole command line, to be allowed as it is.
    pub exact: Option<String>,
    /// Required options, each with its alternatives.
    pub flags: Vec<Vec<String>>,
    /// Forbidden options.
    pub without_flags: Vec<String>,
    /// Paths from the project's root, with the wildcards `*`, `?` and `**`.
    pub paths: Vec<String>,
    /// Paths as in `paths`, of which a call has to write one. Such a rule denies or asks.
    pub writes: Vec<String>,
    /// Names of hosts; `*.example.com` matches those beneath it.
    pub hosts: Vec<String>,
    /// Names of agents, with `*` as a wildcard; the session's own is [`MAIN_AGENT`].
    pub agents: Vec<String>,
    /// Modes in which the rule applies.
    pub modes: Vec<Mode>,
    /// Examples that the rule has to match.
    pub matches: Vec<Example>,
    /// Examples that the rule must not match.
    pub not_matches: Vec<Example>,
}

/// The name in rules of the agent that a person talks to, as opposed to its sub-agents.
pub const MAIN_AGENT: &str = "main";

impl Rule {
    /// Creates a rule with a decision and no conditions.
    #[must_use]
    pub fn new(decision: Decision) -> Self {
        Self {
            name: None,
            decision,
            reason: None,
            tools: Vec::new(),
            command: Vec::new(),
            exact: None,
            flags: Vec::new(),
            without_flags: Vec::new(),
            paths: Vec::new(),
            writes: Vec::new(),
            hosts: Vec::new(),
            agents: Vec::new(),
            modes: Vec::new(),
            matches: Vec::new(),
            not_matches: Vec::new(),
        }
    }

    /// Formats the rule as a `[[rule]]` of a `policy.toml`.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::from("[[rule]]\n");
        let mut line = |key: &str, value: String| text.push_str(&format!("{key} = {value}\n"));
        if let Some(name) = &self.name {
            line("name", quote_toml(name));
        }
        for (key, texts) in [("tools", &self.tools), ("agents", &self.agents)] {
            if !texts.is_empty() {
                line(key, format_list(texts));
            }
        }
        if !self.modes.is_empty() {
            line(
                "modes",
                format_list(&self.modes.iter().map(|mode| mode.name().to_owned()).collect::<Vec<_>>()),
            );
        }
        for (key, words) in [("command", &self.command), ("flags", &self.flags)] {
            if !words.is_empty() {
                line(key, format_words(words));
            }
        }
        for (key, texts) in [
            ("without_flags", &self.without_flags),
            ("paths", &self.paths),
            ("writes", &self.writes),
            ("hosts", &self.hosts),
        ] {
            if !texts.is_empty() {
                line(key, format_list(texts));
            }
        }
        if let Some(exact) = &self.exact {
            line("exact", quote_toml(exact));
        }
        line("decision", quote_toml(decision_name(self.decision)));
        if let Some(reason) = &self.reason {
            line("reason", quote_toml(reason));
        }
        for (key, examples) in [("matches", &self.matches), ("not_matches", &self.not_matches)] {
            if !examples.is_empty() {
                line(
                    key,
                    format!("[{}]", examples.iter().map(format_example).collect::<Vec<_>>().join(", ")),
                );
            }
        }
        text
    }
}

/// Formats the rule's conditions on one line, for people.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said: Vec<String> = Vec::new();
        let alternatives = |words: &Vec<String>| words.join("|");
        let words = |all: &[Vec<String>]| all.iter().map(alternatives).collect::<Vec<_>>().join(" ");
        if !self.tools.is_empty() {
            said.push(self.tools.join("|"));
        }
        if !self.command.is_empty() {
            said.push(format!("`{}`", words(&self.command)));
        }
        if let Some(exact) = &self.exact {
            said.push(format!("exactly this: {exact}"));
        }
        if !self.flags.is_empty() {
            said.push(format!("with {}", words(&self.flags)));
        }
        if !self.without_flags.is_empty() {
            said.push(format!("without {}", self.without_flags.join(" ")));
        }
        if !self.paths.is_empty() {
            said.push(format!("on {}", self.paths.join(", ")));
        }
        if !self.writes.is_empty() {
            said.push(format!("that writes {}", self.writes.join(", ")));
        }
        if !self.hosts.is_empty() {
            said.push(format!("to {}", self.hosts.join(", ")));
        }
        if !self.agents.is_empty() {
            said.push(format!("by {}", self.agents.join("|")));
        }
        if !self.modes.is_empty() {
            let modes: Vec<&str> = self.modes.iter().map(|mode| mode.name()).collect();
            said.push(format!("in mode {}", modes.join("|")));
        }
        match said.is_empty() {
            true => f.write_str("everything"),
            false => f.write_str(&said.join(" ")),
        }
    }
}

/// Returns the name of a decision in files and for people.
fn decision_name(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::Ask => "ask",
        Decision::Deny => "deny",
    }
}

/// Maximum number of characters of a text in an error.
const MAX_TEXT_SHOWN: usize = 60;

/// Returns the beginning of an arbitrary text on one line.
pub(crate) fn shorten_text(text: &str) -> String {
    let plain = |character: char| if character.is_control() { '\u{fffd}' } else { character };
    let mut shown: String = text.chars().take(MAX_TEXT_SHOWN).map(plain).collect();
    if text.chars().nth(MAX_TEXT_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

fn quote_toml(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn format_list(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| quote_toml(text)).collect::<Vec<_>>().join(", "))
}

fn format_words(words: &[Vec<String>]) -> String {
    let word = |alternatives: &Vec<String>| match alternatives.as_slice() {
        [only] => quote_toml(only),
        several => format_list(several),
    };
    format!("[{}]", words.iter().map(word).collect::<Vec<_>>().join(", "))
}

fn format_example(example: &Example) -> String {
    match example {
        Example::Command(command) => quote_toml(command),
        Example::Call { tool, path, host } => {
            let fields = [("tool", tool), ("path", path), ("host", host)];
            let given = fields.iter().filter_map(|(key, value)| {
                value.as_ref().map(|value| format!("{key} = {}", quote_toml(value)))
            });
            format!("{{ {} }}", given.collect::<Vec<_>>().join(", "))
        }
    }
}
