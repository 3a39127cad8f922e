//! Common parts of the built-in tools: name, schema, and the reading of arguments and paths.

use std::path::{Path, PathBuf};

use journeyman_protocol::{Effects, InvalidPath, RelPath, ToolSpec};
use journeyman_workspace::{ListOptions, Workspace};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ToolError;
use crate::arguments::fit_to_schema;
use crate::schema::{schema_of, type_signature};

/// Maximum number of paths searched for a suggestion.
const MAX_SUGGESTION_CANDIDATES: usize = 20_000;
/// Minimum similarity of a path that is suggested.
const MIN_SUGGESTION_SIMILARITY: f64 = 0.85;

/// The name, description and schema of a built-in tool.
pub(crate) struct ToolInterface {
    name: &'static str,
    description: &'static str,
    schema: Value,
    root: Option<PathBuf>,
}

/// Maximum bytes of a glob.
const MAX_GLOB_BYTES: usize = 1_000;
/// Maximum number of brace pairs in a glob: each multiplies the compiled size.
const MAX_GLOB_BRACES: usize = 32;

/// Returns the count for a call: the requested one or else `usual`, but at most `most`.
pub(crate) fn bounded_count(asked: Option<u64>, usual: u64, most: u64) -> usize {
    usize::try_from(asked.filter(|asked| *asked > 0).unwrap_or(usual).min(most)).unwrap_or(usize::MAX)
}

impl ToolInterface {
    /// Describes a tool with arguments of type `A`, for the project at `root`.
    pub(crate) fn for_arguments<A: JsonSchema>(
        name: &'static str,
        description: &'static str,
        root: Option<&Path>,
    ) -> Self {
        Self { name, description, schema: schema_of::<A>(), root: root.map(Path::to_owned) }
    }

    pub(crate) fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            input_schema: self.schema.clone(),
        }
    }

    /// Reads the arguments.
    pub(crate) fn read_arguments<A: DeserializeOwned>(&self, input: &Value) -> Result<A, ToolError> {
        let fitted =
            fit_to_schema(&self.schema, input.clone()).map_err(|problems| self.argument_error(problems))?;
        serde_json::from_value(fitted).map_err(|error| self.argument_error(error.to_string()))
    }

    /// Returns the effects of a call that only reads beneath a directory.
    pub(crate) fn directory_read_effects(&self, path: Option<&str>) -> Result<Effects, ToolError> {
        Ok(Effects { reads: self.parse_directory("path", path)?.into_iter().collect(), ..Effects::default() })
    }

    /// Returns an error about the arguments.
    pub(crate) fn argument_error(&self, problems: impl Into<String>) -> ToolError {
        ToolError::Arguments {
            tool: self.name.into(),
            problems: problems.into(),
            signature: type_signature(&self.schema),
        }
    }

    /// Reads a file's path: relative to the root, or absolute and beneath it.
    pub(crate) fn parse_path(&self, given: &str) -> Result<RelPath, ToolError> {
        self.relative_path("path", given)?.ok_or_else(|| ToolError::Path {
            argument: "path",
            reason: "this is the project's root; name a file in it".to_owned(),
        })
    }

    /// Reads a directory's path; `None` is the root.
    pub(crate) fn parse_directory(
        &self,
        argument: &'static str,
        given: Option<&str>,
    ) -> Result<Option<RelPath>, ToolError> {
        given.map_or(Ok(None), |given| self.relative_path(argument, given))
    }

    /// Checks that a glob is cheap to compile; `None` for an empty one.
    pub(crate) fn check_glob(&self, given: Option<String>) -> Result<Option<String>, ToolError> {
        let Some(glob) = given.filter(|glob| !glob.is_empty()) else { return Ok(None) };
        let braces = glob.matches('{').count();
        if glob.len() > MAX_GLOB_BYTES || braces > MAX_GLOB_BRACES {
            return Err(self.argument_error(format!(
                "`glob` has {} bytes and {braces} braces, at most {MAX_GLOB_BYTES} and {MAX_GLOB_BRACES}; use a simpler one",
                glob.len()
            )));
        }
        Ok(Some(glob))
    }

    fn relative_path(&self, argument: &'static str, given: &str) -> Result<Option<RelPath>, ToolError> {
        let stripped = self.root.as_deref().and_then(|root| Path::new(given).strip_prefix(root).ok());
        let text = stripped.map_or(given.as_bytes(), |inside| inside.as_os_str().as_encoded_bytes());
        match RelPath::parse(text) {
            Ok(path) => Ok(Some(path)),
            Err(InvalidPath::Empty) => Ok(None),
            Err(error) => Err(ToolError::Path { argument, reason: error.to_string() }),
        }
    }
}

/// Returns the error for a missing path, with the most similar existing path.
pub(crate) fn not_found(workspace: &Workspace, path: RelPath) -> ToolError {
    let options = ListOptions { limit: MAX_SUGGESTION_CANDIDATES, ..ListOptions::default() };
    // A suggestion is optional: without a listing there is none.
    let listing = workspace.list(options).unwrap_or_default();
    let same_name = listing.paths.iter().filter(|other| other.file_name() == path.file_name());
    let nearest = same_name.min_by_key(|other| other.as_bytes().len()).cloned().or_else(|| {
        let wanted = path.to_string();
        let alike =
            listing.paths.into_iter().map(|other| (strsim::jaro_winkler(&wanted, &other.to_string()), other));
        let best = alike.max_by(|one, other| one.0.total_cmp(&other.0));
        best.filter(|(similarity, _)| *similarity >= MIN_SUGGESTION_SIMILARITY).map(|(_, other)| other)
    });
    ToolError::NotFound { path, nearest: nearest.map(|path| path.to_string()) }
}
