//! The registry of tools, by name.

use std::path::Path;
use std::sync::Arc;

use journeyman_policy::suggest_tool;
use journeyman_protocol::{ToolSpec, clip_to_bytes};

use crate::apply_patch::ApplyPatch;
use crate::command_output::{ReadCommandOutput, StopCommand};
use crate::delete_and_move::{DeleteFile, MoveFile};
use crate::edit_file::EditFile;
use crate::edit_symbol::EditSymbol;
use crate::find_references::FindReferences;
use crate::get_dependencies::GetDependencies;
use crate::get_symbols::GetSymbols;
use crate::git_history::{GitBlame, GitHistory};
use crate::list_files::ListFiles;
use crate::read_file::ReadFile;
use crate::run_command::RunCommand;
use crate::search_code::SearchCode;
use crate::search_text::SearchText;
use crate::write_file::WriteFile;
use crate::{Tool, ToolError};

/// Maximum bytes of an unknown name in an error.
const MAX_UNKNOWN_NAME_BYTES: usize = 80;
/// The tools of a session, in the order in which the model sees them.
#[derive(Default, Clone)]
pub struct Registry {
    tools: Vec<(String, Arc<dyn Tool>)>,
}

impl Registry {
    /// Returns the built-in tools. Without a root they refuse absolute paths; see
    /// [`Registry::with_builtin_at`].
    #[must_use]
    pub fn with_builtin() -> Self {
        Self::with_root(None)
    }

    /// Returns the built-in tools for the project at `root`, as
    /// [`Workspace::root`](journeyman_workspace::Workspace::root) gives it: they accept absolute
    /// paths beneath it, because models write them.
    #[must_use]
    pub fn with_builtin_at(root: &Path) -> Self {
        Self::with_root(Some(root))
    }

    fn with_root(root: Option<&Path>) -> Self {
        let mut registry = Self { tools: Vec::new() };
        registry.add(Box::new(ReadFile::new(root)));
        registry.add(Box::new(ListFiles::new(root)));
        registry.add(Box::new(SearchText::new(root)));
        registry.add(Box::new(SearchCode::new(root)));
        registry.add(Box::new(GetSymbols::new(root)));
        registry.add(Box::new(FindReferences::new(root)));
        registry.add(Box::new(GetDependencies::new(root)));
        registry.add(Box::new(GitHistory::new(root)));
        registry.add(Box::new(GitBlame::new(root)));
        registry.add(Box::new(EditFile::new(root)));
        registry.add(Box::new(WriteFile::new(root)));
        registry.add(Box::new(ApplyPatch::new(root)));
        registry.add(Box::new(EditSymbol::new(root)));
        registry.add(Box::new(DeleteFile::new(root)));
        registry.add(Box::new(MoveFile::new(root)));
        registry.add(Box::new(RunCommand::new(root)));
        registry.add(Box::new(ReadCommandOutput::new()));
        registry.add(Box::new(StopCommand::new()));
        registry
    }

    /// Adds a tool, replacing one of the same name.
    pub fn add(&mut self, tool: Box<dyn Tool>) {
        let name = tool.spec().name;
        self.tools.retain(|(other, _)| *other != name);
        self.tools.push((name, Arc::from(tool)));
    }

    /// Returns the registry with only the tools for whose names `is_kept` returns true.
    #[must_use]
    pub fn retain(mut self, is_kept: impl Fn(&str) -> bool) -> Self {
        self.tools.retain(|(name, _)| is_kept(name));
        self
    }

    /// Returns the tools' descriptions for the model, always in the same order.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|(_, tool)| tool.spec()).collect()
    }

    /// Returns the tool of this name.
    ///
    /// # Errors
    /// [`ToolError::Unknown`] with the nearest name.
    pub fn get(&self, name: &str) -> Result<&dyn Tool, ToolError> {
        if let Some((_, tool)) = self.tools.iter().find(|(known, _)| known == name) {
            return Ok(tool.as_ref());
        }
        Err(ToolError::Unknown {
            name: clip_to_bytes(name, MAX_UNKNOWN_NAME_BYTES).to_owned(),
            nearest: self.nearest_name(name),
        })
    }

    fn nearest_name(&self, name: &str) -> Option<String> {
        let names = self.tools.iter().map(|(name, _)| name.as_str());
        suggest_tool(clip_to_bytes(name, MAX_UNKNOWN_NAME_BYTES), names).map(str::to_owned)
    }
}
