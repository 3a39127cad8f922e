//! Links to files: the paths in a row that the project has, and the sequences (OSC 8) by which a
//! terminal opens them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use journeyman_protocol::RelPath;
use journeyman_terminal::StyledLine;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::theme::Theme;

/// Maximum bytes of a path that is looked for.
const MAX_PATH_BYTES: usize = 240;
/// Maximum words of one row that are looked for.
const MAX_WORDS_PER_ROW: usize = 40;
/// Maximum paths whose existence is remembered; then all are looked for anew.
const MAX_KNOWN_PATHS: usize = 4_096;
/// The characters that an address has as `%XX`: all but letters, digits and plain marks of a
/// path, so that no name ends the sequence or another part of the address.
const ENCODED_CHARS: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_').remove(b'~');
/// Ends a link.
const END_LINK: &str = "\x1b]8;;\x1b\\";

/// The terminals that get links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LinkChoice {
    /// Terminals that are known to support links.
    #[default]
    Auto,
    /// All.
    Always,
    /// None.
    Never,
}

impl LinkChoice {
    /// Parses the value of `conversation.links`.
    #[must_use]
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "auto" => Some(Self::Auto),
            "always" => Some(Self::Always),
            "never" => Some(Self::Never),
            _ => None,
        }
    }

    /// Returns true if the terminal that the environment names gets links.
    #[must_use]
    pub(crate) fn is_wanted<'a>(self, variable: impl Fn(&str) -> Option<&'a str>) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => can_show_links(variable),
        }
    }
}

/// Returns true if the terminal is known to support links. Within tmux and GNU screen that depends
/// on their settings, which can't be queried.
fn can_show_links<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> bool {
    let value = |name: &str| variable(name).unwrap_or_default();
    let number = |name: &str| value(name).parse::<u32>().unwrap_or_default();
    if ["TMUX", "STY"].iter().any(|name| !value(name).is_empty()) {
        return false;
    }
    let programs = ["iTerm.app", "WezTerm", "vscode", "ghostty", "rio", "Tabby", "Hyper"];
    let terms = ["xterm-kitty", "xterm-ghostty", "foot", "foot-extra", "alacritty", "wezterm", "contour"];
    programs.contains(&value("TERM_PROGRAM"))
        || terms.contains(&value("TERM"))
        || ["WT_SESSION", "KITTY_WINDOW_ID"].iter().any(|name| !value(name).is_empty())
        // GNOME Terminal and others since VTE 0.50, Konsole since 20.12.
        || number("VTE_VERSION") >= 5_000
        || number("KONSOLE_VERSION") >= 201_200
}

/// A part of a row that is a link.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PathLink {
    /// Bytes of the row's text.
    range: Range<usize>,
    target: Rc<str>,
}

/// The links of one row, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RowLinks(Vec<PathLink>);

impl RowLinks {
    /// Returns the target of the link at a byte of the row's text.
    #[must_use]
    pub(crate) fn target_at(&self, byte: usize) -> Option<&str> {
        self.0.iter().find(|link| link.range.contains(&byte)).map(|link| &*link.target)
    }
}

/// Finds the files of a project in rows.
#[derive(Debug)]
pub(crate) struct Linker {
    root: PathBuf,
    /// The beginning of each target.
    origin: String,
    /// True if the terminal understands a line behind `#`.
    has_lines: bool,
    known: RefCell<HashMap<String, bool>>,
}

impl Linker {
    /// Makes the links of a project on this machine.
    #[must_use]
    pub(crate) fn new<'a>(root: &Path, variable: impl Fn(&str) -> Option<&'a str>) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self::for_host(&host, root, variable("KITTY_WINDOW_ID").is_some_and(|id| !id.is_empty()))
    }

    fn for_host(host: &str, root: &Path, has_lines: bool) -> Self {
        let mut origin = "file://".to_owned();
        origin.extend(utf8_percent_encode(host, ENCODED_CHARS));
        origin.extend(utf8_percent_encode(&root.to_string_lossy(), ENCODED_CHARS));
        Self { root: root.to_owned(), origin, has_lines, known: RefCell::default() }
    }

    /// Finds the paths in a row that are files of the project.
    #[must_use]
    pub(crate) fn find(&self, row: &StyledLine) -> RowLinks {
        let text = row.to_text();
        let mut links = Vec::new();
        for word in path_words(&text).take(MAX_WORDS_PER_ROW) {
            let Some(token) = text.get(word.clone()) else { continue };
            let (path, line) = split_line_number(token);
            if !looks_like_path(path) || !self.is_file(path) {
                continue;
            }
            let mut target = format!("{}/{}", self.origin, utf8_percent_encode(path, ENCODED_CHARS));
            if let Some(line) = line.filter(|_| self.has_lines) {
                target.push_str(&format!("#{line}"));
            }
            links.push(PathLink { range: word, target: target.into() });
        }
        RowLinks(links)
    }

    fn is_file(&self, path: &str) -> bool {
        let mut known = self.known.borrow_mut();
        if let Some(is_file) = known.get(path) {
            return *is_file;
        }
        if known.len() >= MAX_KNOWN_PATHS {
            known.clear();
        }
        // A link is not followed: what it leads to may be anywhere.
        let is_file = RelPath::parse(path).is_ok()
            && std::fs::symlink_metadata(self.root.join(path)).is_ok_and(|found| found.is_file());
        known.insert(path.to_owned(), is_file);
        is_file
    }
}

/// Returns the words of a text that may be paths, without the marks around them.
fn path_words(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let is_part = |letter: char| letter.is_alphanumeric() || "/._-+@:~#%=".contains(letter);
    let mut rest = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let start = loop {
            let (at, letter) = rest.next()?;
            if is_part(letter) {
                break at;
            }
        };
        let mut end = text.len();
        while let Some((at, letter)) = rest.peek().copied() {
            if !is_part(letter) {
                end = at;
                break;
            }
            rest.next();
        }
        let word = text.get(start..end).unwrap_or_default();
        let kept = word.trim_end_matches(['.', ':', '#', '=', '~']).len();
        Some(start..start + kept)
    })
}

/// Splits `path:LINE` or `path:LINE:COLUMN`.
fn split_line_number(token: &str) -> (&str, Option<u32>) {
    let mut parts = token.splitn(3, ':');
    let path = parts.next().unwrap_or_default();
    let line = parts.next().and_then(|line| line.parse().ok());
    let column = parts.next().is_none_or(|column| column.parse::<u32>().is_ok());
    if line.is_some() && column { (path, line) } else { (token, None) }
}

fn looks_like_path(path: &str) -> bool {
    let is_named = path.contains('/')
        || path.rsplit_once('.').is_some_and(|(name, end)| {
            !name.is_empty() && !end.is_empty() && end.chars().all(char::is_alphanumeric)
        });
    is_named && path.len() <= MAX_PATH_BYTES
}

/// Appends a row from a byte of its text on, in its colours and with its links.
pub(crate) fn paint_row(theme: Theme, row: &StyledLine, from: usize, links: &RowLinks, out: &mut String) {
    let (mut at, mut open) = (0, None);
    for (style, text) in &row.spans {
        let mut start = 0;
        while start < text.len() {
            let target = links.target_at(at + start);
            let is_same = |(place, _): &(usize, char)| links.target_at(at + start + place) == target;
            let rest = text.get(start..).unwrap_or_default();
            let length =
                rest.char_indices().find(|letter| !is_same(letter)).map_or(rest.len(), |(place, _)| place);
            let skipped = from.saturating_sub(at + start).min(length);
            let piece = rest.get(skipped..length).unwrap_or_default();
            if !piece.is_empty() {
                if open != target {
                    match target {
                        Some(target) => out.extend(["\x1b]8;;", target, "\x1b\\"]),
                        None => out.push_str(END_LINK),
                    }
                    open = target;
                }
                theme.paint(*style, piece, out);
            }
            start += length.max(1);
        }
        at += text.len();
    }
    if open.is_some() {
        out.push_str(END_LINK);
    }
}
