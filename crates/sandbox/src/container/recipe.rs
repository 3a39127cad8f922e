//! A project's description of its image: a `devcontainer.json`, or a Dockerfile.
//!
//! All of it is hostile input until the user trusts it: it is opened beneath the root without
//! following links, read within bounds, and nothing of it is quoted but names. What a build would
//! be given is read once, here, so that what the user trusts is what is built.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_protocol::{ContentHash, RelPath};
use rustix::fs::{FileType, Mode, OFlags};
use serde_json::{Map, Value};

use super::archive::{self, ArchiveError, open_beneath};
use super::dockerfile;

/// Maximum bytes of a `devcontainer.json` or Dockerfile: more than a person writes.
const MAX_FILE_BYTES: u64 = 256 * 1024;
/// Maximum arguments of a build; a person writes a handful.
const MAX_ARGUMENTS: usize = 100;
/// Maximum bytes of a name or of an argument's value.
const MAX_TEXT_BYTES: usize = 4096;
/// The paths that the specification names; the first that exists is used.
const DEVCONTAINER_PATHS: [&str; 2] = [".devcontainer/devcontainer.json", ".devcontainer.json"];
/// The usual names of a Dockerfile.
const DOCKERFILE_NAMES: [&str; 2] = ["Dockerfile", "Containerfile"];

/// Keys that would run code outside of the image's build, or take away confinement. An empty value
/// is ignored.
const REFUSED_KEYS: [(&str, &str); 14] = [
    ("features", "features are fetched from a registry and run as root"),
    ("dockerComposeFile", "several containers can't be made"),
    ("initializeCommand", "it would run on this machine itself"),
    ("onCreateCommand", "it would run when the container is made; put it into the Dockerfile"),
    ("updateContentCommand", "it would run when the container is made; put it into the Dockerfile"),
    ("postCreateCommand", "it would run when the container is made; put it into the Dockerfile"),
    ("postStartCommand", "it would run when the container starts; put it into the Dockerfile"),
    ("postAttachCommand", "it would run when the container is used; put it into the Dockerfile"),
    ("runArgs", "the project doesn't say how containers are confined"),
    ("privileged", "the project doesn't say how containers are confined"),
    ("capAdd", "the project doesn't say how containers are confined"),
    ("securityOpt", "the project doesn't say how containers are confined"),
    ("mounts", "the project doesn't say what of this machine is shown"),
    ("workspaceMount", "the project is shown at its own path"),
];

/// The file of a project that describes the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecipeSource {
    /// Its `devcontainer.json`.
    Devcontainer,
    /// A Dockerfile: this one, or `Dockerfile` or `Containerfile` at the root. All of the project
    /// but what its `.dockerignore` names is given to the build.
    Dockerfile(Option<RelPath>),
}

/// A complete description of an image: nothing is read from the project any more.
#[derive(Clone, PartialEq, Eq)]
pub struct Recipe {
    /// The file that it was read from, for messages.
    file: String,
    pub(super) make: ImageOrigin,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum ImageOrigin {
    /// An image that is on the machine, by this name.
    Named(String),
    Built(BuildInputs),
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct BuildInputs {
    /// The Dockerfile.
    text: String,
    /// The Dockerfile's name in the archive.
    pub(super) dockerfile: String,
    pub(super) arguments: BTreeMap<String, String>,
    pub(super) target: String,
    /// Images that must be there, because a build would fetch them otherwise.
    pub(super) bases: Vec<String>,
    /// Everything that the build is given, as a tar archive.
    pub(super) archive: Arc<Vec<u8>>,
}

impl fmt::Debug for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recipe({})", self.file)
    }
}

/// The reason why a project's description of its image can't be used.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// The project has no such file.
    #[error("there is no {0} in the project")]
    Missing(String),
    /// The file can't be read.
    #[error(
        "{file} can't be read: {source}; it must be a file of the project's, not a link, of at most 256 KiB"
    )]
    Read {
        /// The file.
        file: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The file is malformed.
    #[error("{file} isn't understood: {problem}")]
    Invalid {
        /// The file.
        file: String,
        /// The fault.
        problem: String,
    },
    /// The file has a key or an instruction that isn't followed.
    #[error("{file} has `{key}`, which isn't followed: {why}")]
    Refused {
        /// The file.
        file: String,
        /// The key or instruction.
        key: String,
        /// The reason.
        why: &'static str,
    },
    /// A build's files can't be used.
    #[error("what {file} gives to the build: {source}")]
    Context {
        /// The file.
        file: String,
        /// The fault.
        #[source]
        source: ArchiveError,
    },
}

impl Recipe {
    /// Returns the digest that trust is bound to and that names the built image. It changes with
    /// everything that the image is made of.
    #[must_use]
    pub fn digest(&self) -> ContentHash {
        // Lengths before texts: no two recipes have the same bytes.
        let mut all = Vec::new();
        let mut put = |text: &[u8]| {
            all.extend_from_slice(&(text.len() as u64).to_le_bytes());
            all.extend_from_slice(text);
        };
        match &self.make {
            ImageOrigin::Named(name) => {
                put(b"image");
                put(name.as_bytes());
            }
            ImageOrigin::Built(build) => {
                put(b"build");
                put(build.dockerfile.as_bytes());
                put(build.target.as_bytes());
                for (name, value) in &build.arguments {
                    put(name.as_bytes());
                    put(value.as_bytes());
                }
                put(b"archive");
                put(&build.archive);
            }
        }
        ContentHash::of(&all)
    }

    /// Returns the project's file that the description was read from, relative to the root.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the whole description for the user who is asked to trust it: names and values. The
    /// build's files are named by their size.
    #[must_use]
    pub fn describe(&self) -> Vec<(String, String)> {
        let build = match &self.make {
            ImageOrigin::Named(name) => return vec![("image".to_owned(), name.clone())],
            ImageOrigin::Built(build) => build,
        };
        let mut all = vec![("Dockerfile".to_owned(), build.text.clone())];
        if !build.target.is_empty() {
            all.push(("target".to_owned(), build.target.clone()));
        }
        all.extend(build.arguments.iter().map(|(name, value)| (format!("argument {name}"), value.clone())));
        let size = build.archive.len() / 1024;
        all.push((
            "given to the build".to_owned(),
            format!("{size} KiB of the project's files, which it may run"),
        ));
        all
    }
}

/// Reads the description of the image of the project at `root`. Runs nothing.
///
/// # Errors
/// [`RecipeError`]: which file, and what is wrong with it.
pub fn read_recipe(root: &Path, source: &RecipeSource) -> Result<Recipe, RecipeError> {
    let opened = rustix::fs::open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let root = opened
        .map_err(|errno| RecipeError::Read { file: root.display().to_string(), source: errno.into() })?;
    match source {
        RecipeSource::Devcontainer => {
            let (file, text) = read_first_existing(root.as_fd(), &DEVCONTAINER_PATHS, "devcontainer.json")?;
            parse_devcontainer(root.as_fd(), &file, &text)
        }
        RecipeSource::Dockerfile(given) => {
            let given = given.as_ref().map(|path| path.as_path().display().to_string());
            let names = given.as_deref().map_or(DOCKERFILE_NAMES.to_vec(), |name| vec![name]);
            let (file, _) = read_first_existing(root.as_fd(), &names, "Dockerfile")?;
            build_recipe(root.as_fd(), &file, &file, "", BTreeMap::new(), String::new())
        }
    }
}

/// Returns the first of these files that exists, with its text.
fn read_first_existing(
    root: BorrowedFd<'_>,
    names: &[&str],
    what: &str,
) -> Result<(String, String), RecipeError> {
    for name in names {
        match read_file(root, name) {
            Ok(text) => return Ok(((*name).to_owned(), text)),
            Err(source) if source.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(RecipeError::Read { file: (*name).to_owned(), source }),
        }
    }
    Err(RecipeError::Missing(names.first().filter(|_| names.len() == 1).map_or(what, |name| name).to_owned()))
}

/// Reads a short file beneath the root, without links on the way.
fn read_file(root: BorrowedFd<'_>, name: &str) -> io::Result<String> {
    let file = open_beneath(root, name, OFlags::RDONLY | OFlags::NONBLOCK)?;
    let found = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = Vec::new();
    std::fs::File::from(file).take(MAX_FILE_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other("it is longer than 256 KiB"));
    }
    String::from_utf8(text).map_err(|_| io::Error::other("it isn't text"))
}

fn parse_devcontainer(root: BorrowedFd<'_>, file: &str, text: &str) -> Result<Recipe, RecipeError> {
    let invalid = |problem: String| RecipeError::Invalid { file: file.to_owned(), problem };
    let value: Value = serde_json::from_str(&strip_comments(text))
        .map_err(|error| invalid(format!("line {}: no JSON", error.line())))?;
    let Value::Object(keys) = value else { return Err(invalid("it has no keys".to_owned())) };
    for (key, why) in REFUSED_KEYS {
        if keys.get(key).is_some_and(has_effect) {
            return Err(RecipeError::Refused { file: file.to_owned(), key: key.to_owned(), why });
        }
    }
    let build_keys = match keys.get("build") {
        None => Map::new(),
        Some(Value::Object(keys)) => keys.clone(),
        Some(_) => return Err(invalid("`build` must be an object".to_owned())),
    };
    let string = |keys: &Map<String, Value>, key: &str| match keys.get(key) {
        None => Ok(None),
        Some(Value::String(text)) if has_no_variables(text) => Ok(Some(text.clone())),
        Some(_) => Err(invalid(format!("`{key}` must be a short text without variables"))),
    };
    let image = string(&keys, "image")?;
    // `dockerFile` and `context` beside it are how the first version said it.
    let dockerfile = string(&build_keys, "dockerfile")?.or(string(&keys, "dockerFile")?);
    match (image, dockerfile) {
        (Some(name), None) => Ok(Recipe { file: file.to_owned(), make: ImageOrigin::Named(name) }),
        (None, Some(dockerfile)) => {
            let context = string(&build_keys, "context")?.or(string(&keys, "context")?);
            let beside = file.rsplit_once('/').map_or("", |(directory, _)| directory);
            let within = |path: &str| {
                normalize_path(beside, path)
                    .ok_or_else(|| invalid("a path leads out of the project".to_owned()))
            };
            let target = string(&build_keys, "target")?.unwrap_or_default();
            let arguments = parse_build_arguments(build_keys.get("args")).ok_or_else(|| {
                invalid("`build.args` must be a few short texts without variables".to_owned())
            })?;
            let context = within(context.as_deref().unwrap_or("."))?;
            build_recipe(root, file, &within(&dockerfile)?, &context, arguments, target)
        }
        (Some(_), Some(_)) => Err(invalid("it has both an image and a Dockerfile".to_owned())),
        (None, None) => Err(invalid("it has neither `image` nor `build.dockerfile`".to_owned())),
    }
}

/// Returns true if a key's value has an effect.
fn has_effect(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(keys) => !keys.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

/// Returns true for text without variables, into which nothing of the user's environment goes.
fn has_no_variables(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_TEXT_BYTES
        && !text.contains("${")
        && !text.chars().any(char::is_control)
}

fn parse_build_arguments(given: Option<&Value>) -> Option<BTreeMap<String, String>> {
    let given = match given {
        None => return Some(BTreeMap::new()),
        Some(Value::Object(given)) if given.len() <= MAX_ARGUMENTS => given,
        Some(_) => return None,
    };
    given
        .iter()
        .map(|(name, value)| {
            let value = value.as_str().filter(|value| value.is_empty() || has_no_variables(value))?;
            has_no_variables(name).then(|| (name.clone(), value.to_owned()))
        })
        .collect()
}

/// Returns a path beside a file, relative to the root; `None` where it leaves the root.
fn normalize_path(beside: &str, path: &str) -> Option<String> {
    if path.starts_with('/') || path.contains('\\') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in beside.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn build_recipe(
    root: BorrowedFd<'_>,
    file: &str,
    dockerfile: &str,
    context: &str,
    arguments: BTreeMap<String, String>,
    target: String,
) -> Result<Recipe, RecipeError> {
    let text = read_file(root, dockerfile)
        .map_err(|source| RecipeError::Read { file: dockerfile.to_owned(), source })?;
    let bases = dockerfile::parse_base_images(&text, &arguments)
        .map_err(|problem| RecipeError::Invalid { file: dockerfile.to_owned(), problem })?;
    let error = |source| RecipeError::Context { file: file.to_owned(), source };
    let context = open_beneath(root, context, OFlags::RDONLY | OFlags::DIRECTORY)
        .map_err(|source| error(ArchiveError::Read { path: PathBuf::from(context), source }))?;
    // By a name of our own: the Dockerfile may lie outside of what the build is given.
    let name = ".journeyman.Dockerfile".to_owned();
    let archive = archive::archive_directory(context.as_fd(), (&name, &text)).map_err(error)?;
    let build = BuildInputs { text, dockerfile: name, arguments, target, bases, archive: Arc::new(archive) };
    Ok(Recipe { file: file.to_owned(), make: ImageOrigin::Built(build) })
}

/// Removes comments and commas before a closing bracket from JSON. Lines stay.
fn strip_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Position of the last comma that only blanks and comments follow.
    let mut comma = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('"', _) => {
                out.push(c);
                comma = None;
                while let Some(c) = rest.next() {
                    out.push(c);
                    match c {
                        '\\' => out.extend(rest.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            ('/', Some('/')) => while rest.next_if(|c| *c != '\n').is_some() {},
            ('/', Some('*')) => {
                rest.next();
                let mut star = false;
                for c in rest.by_ref() {
                    if c == '\n' {
                        out.push(c);
                    }
                    if star && c == '/' {
                        break;
                    }
                    star = c == '*';
                }
                out.push(' ');
            }
            (',', _) => {
                comma = Some(out.len());
                out.push(c);
            }
            (']' | '}', _) => {
                if let Some(at) = comma.take() {
                    out.replace_range(at..=at, " ");
                }
                out.push(c);
            }
            (c, _) => {
                if !c.is_whitespace() {
                    comma = None;
                }
                out.push(c);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_left_out() {
        let cases = [
            (r#"{"a": 1, // b"#, r#"{"a": 1, "#),
            ("{/* x\ny */\"a\": [1, 2,],}", "{\n \"a\": [1, 2 ] }"),
            (
                r#"{"a": "// no", "b": "/* no */", "c": "\"//"}"#,
                r#"{"a": "// no", "b": "/* no */", "c": "\"//"}"#,
            ),
            (r#"[1, /* c */ ]"#, "[1    ]"),
            (r#"["a,]", "b"]"#, r#"["a,]", "b"]"#),
            ("/*", " "),
            ("\"\\", "\"\\"),
        ];
        for (given, expected) in cases {
            assert_eq!(strip_comments(given), expected, "{given}");
        }
    }

    #[test]
    fn paths_stay_in_the_project() {
        assert_eq!(
            normalize_path(".devcontainer", "Dockerfile").as_deref(),
            Some(".devcontainer/Dockerfile")
        );
        assert_eq!(normalize_path(".devcontainer", "..").as_deref(), Some(""));
        assert_eq!(normalize_path(".devcontainer", "../a/./b").as_deref(), Some("a/b"));
        for out in ["../..", "/etc", "../../x", "a/../../..", "..\\x"] {
            assert_eq!(normalize_path(".devcontainer", out), None, "{out}");
        }
    }

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    fn read_devcontainer(text: &str) -> Result<Recipe, RecipeError> {
        let root = project(&[
            (".devcontainer/devcontainer.json", text),
            (".devcontainer/Dockerfile", "FROM base:1\nCOPY file /\n"),
            ("file", "x"),
        ]);
        read_recipe(root.path(), &RecipeSource::Devcontainer)
    }

    #[test]
    fn an_image_is_named() {
        let text = "{ // the image\n \"name\": \"x\", \"image\": \"debian:12\", \"customizations\": {\"a\": [1,]}, }";
        let recipe = read_devcontainer(text).unwrap();
        assert!(
            matches!(recipe.make, ImageOrigin::Named(_))
                && recipe.file() == ".devcontainer/devcontainer.json"
        );
        assert!(matches!(&recipe.make, ImageOrigin::Named(name) if name == "debian:12"));
    }

    #[test]
    fn a_build_is_read_whole() {
        let text = r#"{"build": {"dockerfile": "Dockerfile", "context": "..", "args": {"A": "1"}, "target": "dev"}}"#;
        let recipe = read_devcontainer(text).unwrap();
        let ImageOrigin::Built(build) = &recipe.make else { panic!("{recipe:?}") };
        assert_eq!(build.bases, ["base:1"]);
        assert_eq!((build.target.as_str(), build.arguments.get("A").map(String::as_str)), ("dev", Some("1")));
        let archive = String::from_utf8_lossy(&build.archive);
        assert!(archive.contains("file\0") && archive.contains("COPY file /"));
        let other = read_devcontainer(&text.replace("\"1\"", "\"2\"")).unwrap();
        assert_ne!(recipe.digest(), other.digest());
        assert_eq!(recipe.digest(), read_devcontainer(text).unwrap().digest());
    }

    #[test]
    fn what_runs_elsewhere_or_widens_is_refused_by_name() {
        for (key, value) in [
            ("features", r#"{"ghcr.io/a/b:1": {}}"#),
            ("postCreateCommand", r#""npm install""#),
            ("initializeCommand", r#"["id"]"#),
            ("runArgs", r#"["--privileged"]"#),
            ("privileged", "true"),
            ("mounts", r#"["source=/,target=/host,type=bind"]"#),
            ("dockerComposeFile", r#""compose.yml""#),
        ] {
            let error = read_devcontainer(&format!(r#"{{"image": "x", "{key}": {value}}}"#)).unwrap_err();
            assert!(matches!(&error, RecipeError::Refused { key: named, .. } if named == key), "{error}");
        }
        assert!(read_devcontainer(r#"{"image": "x", "features": {}, "privileged": false}"#).is_ok());
    }

    #[test]
    fn hostile_files_are_errors() {
        for text in [
            "",
            "[]",
            "{",
            r#"{"image": 1}"#,
            r#"{"image": "x", "build": []}"#,
            r#"{"image": "x", "build": {"dockerfile": "Dockerfile"}}"#,
            r#"{"build": {"dockerfile": "../../../etc/passwd"}}"#,
            r#"{"build": {"dockerfile": "/etc/passwd"}}"#,
            r#"{"build": {"dockerfile": "Dockerfile", "context": "../.."}}"#,
            r#"{"build": {"dockerfile": "Dockerfile", "args": {"KEY": "${localEnv:SECRET}"}}}"#,
            r#"{"image": "${localEnv:HOME}"}"#,
            r#"{"image": "a\nb"}"#,
        ] {
            assert!(read_devcontainer(text).is_err(), "{text}");
        }
        assert!(read_devcontainer(&"[".repeat(100_000)).is_err());
        assert!(read_devcontainer(&" ".repeat(300 * 1024)).is_err());
    }

    #[test]
    fn links_arent_followed() {
        let root = project(&[("real", "FROM base\n")]);
        std::os::unix::fs::symlink("real", root.path().join("Dockerfile")).unwrap();
        let error = read_recipe(root.path(), &RecipeSource::Dockerfile(None)).unwrap_err();
        assert!(matches!(error, RecipeError::Read { .. }), "{error}");
        std::fs::remove_file(root.path().join("Dockerfile")).unwrap();
        let error = read_recipe(root.path(), &RecipeSource::Dockerfile(None)).unwrap_err();
        assert!(matches!(error, RecipeError::Missing(_)), "{error}");
        let named = RecipeSource::Dockerfile(RelPath::parse("real").ok());
        assert!(matches!(read_recipe(root.path(), &named).unwrap().make, ImageOrigin::Built(_)));
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[ -~\n]{0,200}", json in r#"(\{|\}|\[|\]|"|,|:|/|\*|\\|a|\n| ){0,60}"#) {
            read_devcontainer(&text).ok();
            strip_comments(&json);
            dockerfile::parse_base_images(&text, &BTreeMap::new()).ok();
        }
    }
}
