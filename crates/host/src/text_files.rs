//! Small text files that people keep in known directories for agents: skills and commands.
//!
//! A project's directories are a stranger's: they are entered and read beneath the project's root
//! without following links, and everything about them is bounded. The user's own may be links.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use journeyman_root_fs::{LinkPolicy, open_beneath, open_root, read_beneath};
use rustix::fs::{Dir, FileType, OFlags};
use serde_json::{Map, Value};

use crate::format::printable;

/// Maximum bytes of one file: the most that a model reads at once.
pub(crate) const MAX_FILE_BYTES: u64 = 64 * 1024;
/// Maximum number of directories, and of files, of one directory: the first by name.
const MAX_NAMES: usize = 500;
/// Maximum number of entries of one directory that are looked at.
const MAX_ENTRIES: usize = 20_000;
/// Maximum bytes of front matter. Real ones have a few hundred.
const MAX_FRONT_MATTER_BYTES: usize = 16 * 1024;

/// The owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileOwner {
    /// The user, for all projects.
    User,
    /// The project.
    Project,
}

/// The names in a directory, sorted.
#[derive(Debug, Default)]
pub(crate) struct DirectoryNames {
    pub(crate) directories: Vec<String>,
    pub(crate) files: Vec<String>,
    /// True if there are more.
    pub(crate) is_cut: bool,
}

/// A directory that files for agents lie in.
#[derive(Debug)]
pub(crate) struct TextDirectory {
    root: OwnedFd,
    /// Beneath `root`; empty for the root itself.
    path: String,
    links: LinkPolicy,
    /// For messages.
    shown: PathBuf,
}

impl TextDirectory {
    /// Opens a directory of the project; `None` where there is none.
    pub(crate) fn open_in_project(root: &Path, path: &str) -> Option<Self> {
        let shown = root.join(path);
        let root = open_root(root).ok()?;
        open_beneath(root.as_fd(), path.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY, LinkPolicy::Refuse)
            .ok()?;
        Some(Self { root, path: path.to_owned(), links: LinkPolicy::Refuse, shown })
    }

    /// Opens a directory of the user's; `None` where there is none.
    pub(crate) fn open_for_user(path: &Path) -> Option<Self> {
        let root = open_root(path).ok()?;
        Some(Self { root, path: String::new(), links: LinkPolicy::Follow, shown: path.to_owned() })
    }

    /// Returns the path of a file in the directory, for messages.
    pub(crate) fn display_path(&self, name: &str) -> PathBuf {
        self.shown.join(name)
    }

    /// Returns the path of `name` relative to the project's root, or to the user's directory.
    pub(crate) fn path_of(&self, name: &str) -> String {
        match (self.path.as_str(), name) {
            ("", name) => name.to_owned(),
            (path, "") => path.to_owned(),
            (path, name) => format!("{path}/{name}"),
        }
    }

    /// Lists the names beneath `below`: directories, and regular files. Names that aren't UTF-8 or
    /// begin with a dot are omitted.
    pub(crate) fn list_names(&self, below: &str) -> DirectoryNames {
        let mut names = DirectoryNames::default();
        let path = self.path_of(below);
        let path = if path.is_empty() { "." } else { path.as_str() };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let opened = open_beneath(self.root.as_fd(), path.as_bytes(), flags, self.links);
        let Some(entries) = opened.ok().and_then(|opened| Dir::new(opened).ok()) else {
            return names;
        };
        for (place, entry) in entries.filter_map(Result::ok).enumerate() {
            if place >= MAX_ENTRIES {
                names.is_cut = true;
                break;
            }
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name.starts_with('.') {
                continue;
            }
            match entry.file_type() {
                FileType::Directory => names.directories.push(name.to_owned()),
                FileType::RegularFile => names.files.push(name.to_owned()),
                FileType::Symlink => {
                    // A symbolic link in the user's directories may lead to a file or a directory.
                    // Reading one in the project fails with an error.
                    if self.links == LinkPolicy::Follow {
                        names.directories.push(name.to_owned());
                    }
                    names.files.push(name.to_owned());
                }
                _ => {}
            }
        }
        // Truncated after sorting, because a directory lists its names in any order.
        for some in [&mut names.directories, &mut names.files] {
            some.sort();
            names.is_cut |= some.len() > MAX_NAMES;
            some.truncate(MAX_NAMES);
        }
        names
    }

    /// Describes that a subdirectory has too many names, so some are ignored.
    pub(crate) fn describe_truncation(&self, below: &str) -> String {
        let path = self.display_path(below);
        format!("{}: more than {MAX_NAMES} names; the first by name count", printable(&path.display()))
    }

    /// Reads a text beneath the directory; `..` and links don't lead out of it.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) fn read(&self, name: &str) -> Result<String, String> {
        if name.split('/').any(|part| matches!(part, "" | "." | "..")) || name.contains('\0') {
            return Err("its path leads elsewhere".to_owned());
        }
        let path = self.path_of(name);
        match read_beneath(self.root.as_fd(), path.as_bytes(), self.links, MAX_FILE_BYTES) {
            Ok(Some(bytes)) => String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned()),
            Ok(None) => Err(format!("it has more than {MAX_FILE_BYTES} bytes")),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// A Markdown file: the fields before it, and its text.
#[derive(Debug, PartialEq)]
pub(crate) struct MarkdownFile {
    pub(crate) fields: Map<String, Value>,
    pub(crate) text: String,
}

impl MarkdownFile {
    /// Parses front matter and text. A file without front matter has no fields.
    ///
    /// # Errors
    /// Front matter that has no end, is too long, or isn't a list of fields.
    pub(crate) fn parse(whole: &str) -> Result<Self, String> {
        Self::parse_with(whole, |yaml| {
            read_yaml(yaml).map_err(|error| match unquoted_field(yaml) {
                Some(name) => format!("{error}; put the text of `{name}` in quotes"),
                None => error,
            })
        })
    }

    /// Parses a file of another product, whose front matter may lack quotes that YAML requires,
    /// such as around a text with a colon.
    ///
    /// # Errors
    /// As [`MarkdownFile::parse`].
    pub(crate) fn parse_loosely(whole: &str) -> Result<Self, String> {
        Self::parse_with(whole, |yaml| {
            read_yaml(yaml).or_else(|error| read_yaml(&quote_plain_values(yaml)).map_err(|_| error))
        })
    }

    fn parse_with(whole: &str, read: impl FnOnce(&str) -> Result<Value, String>) -> Result<Self, String> {
        let whole = whole.strip_prefix('\u{feff}').unwrap_or(whole).replace("\r\n", "\n");
        let Some(rest) = whole.strip_prefix("---\n") else {
            return Ok(Self { fields: Map::new(), text: whole });
        };
        let (yaml, text) = match rest.strip_prefix("---\n") {
            Some(text) => ("", text),
            None => rest
                .split_once("\n---\n")
                .or_else(|| rest.strip_suffix("\n---").map(|yaml| (yaml, "")))
                .ok_or("its front matter has no end: a line `---`")?,
        };
        if yaml.len() > MAX_FRONT_MATTER_BYTES {
            return Err(format!("its front matter has more than {MAX_FRONT_MATTER_BYTES} bytes"));
        }
        // The parser bounds depth, nodes and aliases by itself.
        let value: Value = match yaml.trim() {
            "" => Value::Object(Map::new()),
            yaml => read(yaml)?,
        };
        match value {
            Value::Object(fields) => Ok(Self { fields, text: text.to_owned() }),
            _ => Err("its front matter is no list of fields".to_owned()),
        }
    }

    /// Returns a field that is a text, on one line.
    pub(crate) fn text_field(&self, name: &str) -> Option<String> {
        let text = self.fields.get(name)?.as_str()?;
        let words: Vec<&str> = text.split_whitespace().collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}

fn read_yaml(yaml: &str) -> Result<Value, String> {
    serde_saphyr::from_str(yaml).map_err(|error| {
        // The first line: the others quote the file.
        let error = error.to_string();
        format!("its front matter is no YAML: {}", error.lines().next().unwrap_or_default())
    })
}

/// Returns the name and the text of a line that is a valid field once its text is quoted.
fn unquoted_line(line: &str) -> Option<(&str, &str)> {
    let (name, text) = line.split_once(": ")?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let text = text.trim();
    // These begin something else than a text.
    let is_plain = !text.is_empty() && !text.starts_with(['"', '\'', '[', '{', '|', '>', '&', '*', '!', '#']);
    (!name.is_empty() && name.chars().all(is_name) && is_plain && read_yaml(line).is_err())
        .then_some((name, text))
}

/// Returns the first field whose text lacks the quotes that YAML wants.
fn unquoted_field(yaml: &str) -> Option<&str> {
    yaml.lines().find_map(unquoted_line).map(|(name, _)| name)
}

/// Quotes texts that are invalid YAML without quotes.
fn quote_plain_values(yaml: &str) -> String {
    let quote = |line: &str| match unquoted_line(line) {
        // A string of JSON is one of YAML.
        Some((name, text)) => format!("{name}: {}\n", Value::from(text)),
        None => format!("{line}\n"),
    };
    yaml.lines().map(quote).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_taken_apart() {
        let file =
            MarkdownFile::parse("---\r\nname: a\r\ndescription: >\r\n  two\r\n  lines\r\n---\r\nText\r\n")
                .unwrap();
        assert_eq!(file.text_field("description").as_deref(), Some("two lines"));
        assert_eq!((file.text_field("name").as_deref(), file.text.as_str()), (Some("a"), "Text\n"));
        assert_eq!(MarkdownFile::parse("# only text").unwrap().fields.len(), 0);
        assert_eq!(MarkdownFile::parse("---\n---\nx").unwrap().text, "x");
        for (wrong, expected) in [
            ("---\nname: a\n", "has no end"),
            ("---\n- a\n---\n", "no list of fields"),
            ("---\na: [\n---\n", "no YAML"),
            (&*format!("---\na: {}\n---\n", "x".repeat(20_000)), "more than"),
        ] {
            let problem = MarkdownFile::parse(wrong).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }

    #[test]
    fn a_text_without_quotes_is_named_or_read_as_it_is_meant() {
        let file =
            "---\nname: a\ndescription: Use it when: \"x\" \\n<example> #1: y\ntools: Read, Grep\n---\nText";
        let problem = MarkdownFile::parse(file).unwrap_err();
        assert!(
            problem.contains("no YAML") && problem.ends_with("put the text of `description` in quotes"),
            "{problem}"
        );
        let read = MarkdownFile::parse_loosely(file).unwrap();
        let text = |name: &str| read.fields[name].as_str().unwrap().to_owned();
        assert_eq!(text("description"), "Use it when: \"x\" \\n<example> #1: y");
        assert_eq!((text("name").as_str(), text("tools").as_str()), ("a", "Read, Grep"));
        for wrong in ["---\na: [\n---\n", "---\na: b: c\n  d: e: f\n---\n", "---\n: x: y\n---\n"] {
            assert!(MarkdownFile::parse_loosely(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_projects_directory_is_not_left() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("project");
        std::fs::create_dir_all(root.join(".claude/skills")).unwrap();
        std::fs::write(place.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink(place.path(), root.join(".agents")).unwrap();
        std::os::unix::fs::symlink(place.path().join("secret"), root.join(".claude/skills/link")).unwrap();
        std::fs::write(root.join(".claude/skills/long"), "x".repeat(70_000)).unwrap();
        std::fs::write(root.join(".claude/skills/ok"), "text").unwrap();
        assert!(TextDirectory::open_in_project(&root, ".agents").is_none(), "a link is not entered");
        let directory = TextDirectory::open_in_project(&root, ".claude/skills").unwrap();
        assert_eq!(directory.list_names("").files, ["link", "long", "ok"]);
        assert_eq!(directory.read("ok").unwrap(), "text");
        for name in ["link", "../../../secret", "/etc/passwd", "", "long", "none", "a\0b"] {
            assert!(directory.read(name).is_err(), "{name}");
        }
    }

    #[test]
    fn of_too_many_files_the_first_by_name_count() {
        let place = tempfile::tempdir().unwrap();
        let directory = TextDirectory::open_for_user(place.path()).unwrap();
        for number in (0..=MAX_NAMES).rev() {
            std::fs::write(place.path().join(format!("{number:03}")), "").unwrap();
        }
        let names = directory.list_names("");
        assert!(names.is_cut && names.files.len() == MAX_NAMES);
        assert_eq!((names.files[0].as_str(), names.files[MAX_NAMES - 1].as_str()), ("000", "499"));
    }
}
