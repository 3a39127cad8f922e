//! Paths inside a project.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Maximum length of a path: Linux's `PATH_MAX` without the terminating NUL.
const MAX_PATH_BYTES: usize = 4095;

/// A path relative to the project's root: bytes, `/` between components, none of them empty, `.` or
/// `..`.
///
/// The type guarantees only that the path is well formed. The kernel checks that the path stays
/// beneath the root when `workspace` opens it. In JSON the path is a string, or `{"base64": "…"}`
/// if it is not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(Vec<u8>);

/// The error for a path that is not a [`RelPath`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    /// The path is empty or has only `.` components.
    #[error("the path is empty; name a file relative to the project's root")]
    Empty,
    /// The path begins with `/`.
    #[error("`{0}` is absolute; give it relative to the project's root")]
    Absolute(String),
    /// The path has a `..` component.
    #[error("`{0}` has a `..` component; only paths beneath the project's root are allowed")]
    Parent(String),
    /// The path has a NUL byte.
    #[error("the path has a NUL byte")]
    Nul,
    /// The path is longer than the system can open.
    #[error("the path has {0} bytes; at most {MAX_PATH_BYTES} are possible")]
    TooLong(usize),
    /// The JSON form was neither a string nor valid base 64.
    #[error("the path is not valid base 64")]
    Encoding,
}

impl RelPath {
    /// Parses a path, dropping `.` components and repeated or trailing slashes.
    ///
    /// # Errors
    /// [`InvalidPath`] when it is empty, absolute, too long, or has a NUL or a `..` component.
    pub fn parse(path: impl AsRef<[u8]>) -> Result<Self, InvalidPath> {
        let bytes = path.as_ref();
        if bytes.len() > MAX_PATH_BYTES {
            return Err(InvalidPath::TooLong(bytes.len()));
        }
        if bytes.contains(&0) {
            return Err(InvalidPath::Nul);
        }
        if bytes.first() == Some(&b'/') {
            return Err(InvalidPath::Absolute(String::from_utf8_lossy(bytes).into_owned()));
        }
        let mut clean = Vec::with_capacity(bytes.len());
        for component in bytes.split(|&b| b == b'/') {
            match component {
                b"" | b"." => {}
                b".." => return Err(InvalidPath::Parent(String::from_utf8_lossy(bytes).into_owned())),
                name => {
                    if !clean.is_empty() {
                        clean.push(b'/');
                    }
                    clean.extend_from_slice(name);
                }
            }
        }
        if clean.is_empty() { Err(InvalidPath::Empty) } else { Ok(Self(clean)) }
    }

    /// Returns the path's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the path as text, if it is UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Returns the path as a relative [`Path`].
    #[must_use]
    pub fn as_path(&self) -> &Path {
        use std::os::unix::ffi::OsStrExt as _;
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// Returns the components, in order.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|&b| b == b'/')
    }

    /// Returns the last component.
    #[must_use]
    pub fn file_name(&self) -> &[u8] {
        self.components().next_back().unwrap_or_default()
    }

    /// Returns the text after the last `.` of the file name. A `.` at the beginning starts no
    /// extension.
    #[must_use]
    pub fn extension(&self) -> Option<&str> {
        Path::new(std::str::from_utf8(self.file_name()).ok()?).extension()?.to_str()
    }

    /// Returns the directory that contains the path, or `None` at the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let cut = self.0.iter().rposition(|&b| b == b'/')?;
        Some(Self(self.0.get(..cut)?.to_vec()))
    }

    /// Appends `name` to the path.
    ///
    /// # Errors
    /// As [`RelPath::parse`].
    pub fn join(&self, name: impl AsRef<[u8]>) -> Result<Self, InvalidPath> {
        let name = name.as_ref();
        if name.first() == Some(&b'/') {
            return Err(InvalidPath::Absolute(String::from_utf8_lossy(name).into_owned()));
        }
        let mut joined = self.0.clone();
        joined.push(b'/');
        joined.extend_from_slice(name);
        Self::parse(joined)
    }
}

impl fmt::Display for RelPath {
    /// Writes the path for people: bytes that are not UTF-8 are replaced, control and invisible
    /// characters escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in String::from_utf8_lossy(&self.0).chars() {
            if character.is_control() || is_invisible_char(character) {
                write!(f, "{}", character.escape_default())?;
            } else {
                write!(f, "{character}")?;
            }
        }
        Ok(())
    }
}

/// Returns true for characters that reorder or hide their neighbours: marks and overrides of
/// direction, zero-width characters, tags. A name with such characters can look like another name.
#[must_use]
pub fn is_invisible_char(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum RelPathJson {
    Text(String),
    Bytes { base64: String },
}

impl Serialize for RelPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.as_str() {
            Some(text) => serializer.serialize_str(text),
            None => RelPathJson::Bytes { base64: STANDARD.encode(&self.0) }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RelPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parsed = match RelPathJson::deserialize(deserializer)? {
            RelPathJson::Text(text) => Self::parse(text),
            RelPathJson::Bytes { base64 } => {
                STANDARD.decode(base64).map_err(|_| InvalidPath::Encoding).and_then(Self::parse)
            }
        };
        parsed.map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for RelPath {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RelPath".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        RelPathJson::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_table() {
        let cases: &[(&[u8], Result<&str, InvalidPath>)] = &[
            (b"a", Ok("a")),
            (b"./a//b/", Ok("a/b")),
            (b"..foo", Ok("..foo")),
            (b"a/..b/c..", Ok("a/..b/c..")),
            (b"", Err(InvalidPath::Empty)),
            (b"./.", Err(InvalidPath::Empty)),
            (b"/a", Err(InvalidPath::Absolute("/a".into()))),
            (b"a/../b", Err(InvalidPath::Parent("a/../b".into()))),
            (b"..", Err(InvalidPath::Parent("..".into()))),
            (b"a\0b", Err(InvalidPath::Nul)),
        ];
        for (given, expected) in cases {
            let parsed = RelPath::parse(given);
            let shown = parsed.map(|path| path.to_string());
            assert_eq!(shown, expected.clone().map(str::to_owned), "{given:?}");
        }
    }

    #[test]
    fn names_that_are_not_utf8_survive_json() {
        let path = RelPath::parse(b"src/\xff\xfe.rs").unwrap();
        let json = serde_json::to_string(&path).unwrap();
        assert_eq!(json, r#"{"base64":"c3JjL//+LnJz"}"#);
        assert_eq!(serde_json::from_str::<RelPath>(&json).unwrap(), path);
        assert!(serde_json::from_str::<RelPath>(r#""../x""#).is_err());
    }

    #[test]
    fn control_characters_are_shown_escaped() {
        assert_eq!(RelPath::parse("a\nb\x1b[31m").unwrap().to_string(), "a\\nb\\u{1b}[31m");
        assert_eq!(RelPath::parse("a\u{202e}gpj.exe").unwrap().to_string(), "a\\u{202e}gpj.exe");
    }

    #[test]
    fn a_path_is_split_and_joined() {
        let path = RelPath::parse("src/edit/lib.rs").unwrap();
        assert_eq!(path.file_name(), b"lib.rs");
        assert_eq!(path.extension(), Some("rs"));
        assert_eq!(path.parent().unwrap().to_string(), "src/edit");
        assert_eq!(RelPath::parse("x").unwrap().parent(), None);
        assert!(path.join("../..").is_err());
    }
}
