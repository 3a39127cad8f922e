//! Notes that outlive sessions, in files of the state directory.
//!
//! A project has its own notes, and the user has notes for all projects. A model proposes notes
//! with the tool `remember`; a model sees a proposal only after the user accepts it.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_context::memory::{MAX_NOTE_CHARS, MemoryNote, NoteAnchor, NoteState};
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{Effects, RelPath, ToolSpec};
use journeyman_tools::{Tool, ToolContext, ToolError, ToolOutput};
use journeyman_workspace::{FileBody, Workspace};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::Environment;
use crate::durable_file::{lock_directory, replace_file};
use crate::root::{path_in_project, project_root};
use crate::state::{StateDirs, now};
use crate::{Context as _, HostError};

/// Name of a file of notes.
const NOTES_FILE: &str = "memory.json";
/// Maximum bytes of a notes file, and maximum number of notes.
const MAX_NOTES_FILE_BYTES: u64 = 1 << 20;
const MAX_NOTES: usize = 500;
/// Maximum bytes of a file that a note is anchored to.
const MAX_ANCHOR_FILE_BYTES: u64 = 4 << 20;
/// Name of the tool.
const REMEMBER_TOOL: &str = "remember";

/// A file of notes.
#[derive(Debug, Clone)]
pub struct NoteFile {
    path: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct NoteFileContents {
    /// The next note's number.
    next: u32,
    notes: Vec<MemoryNote>,
}

impl NoteFile {
    /// Returns the notes that are kept in a state directory: a project's, or the user's own.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        Self { path: directory.join(NOTES_FILE) }
    }

    /// Returns the notes, the oldest first; none where there is no file.
    ///
    /// # Errors
    /// [`HostError::Failed`] for a file that can't be read or is damaged.
    pub fn notes(&self) -> Result<Vec<MemoryNote>, HostError> {
        Ok(self.read()?.notes)
    }

    fn read(&self) -> Result<NoteFileContents, HostError> {
        let shown = || self.path.display().to_string();
        let text = match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(NoteFileContents::default());
            }
            Err(error) => return Err(error).context(shown()),
            Ok(meta) if meta.len() > MAX_NOTES_FILE_BYTES => {
                return Err(HostError::usage(format_args!("{} is too large", shown())));
            }
            Ok(_) => std::fs::read_to_string(&self.path).context(shown())?,
        };
        serde_json::from_str(&text).context(shown())
    }

    /// Changes the notes, durably and in one step.
    fn update<T>(
        &self,
        change: impl FnOnce(&mut NoteFileContents) -> Result<T, HostError>,
    ) -> Result<T, HostError> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let shown = || self.path.display().to_string();
        DirBuilder::new().recursive(true).mode(0o700).create(directory).context(shown())?;
        let _lock = lock_directory(directory).context(shown())?;
        let mut contents = self.read()?;
        let changed = change(&mut contents)?;
        let text = serde_json::to_string_pretty(&contents).context(shown())?;
        if text.len() as u64 > MAX_NOTES_FILE_BYTES {
            // Nothing reads a larger file, so no session could begin any more.
            return Err(HostError::usage(format_args!(
                "there are {MAX_NOTES_FILE_BYTES} bytes of notes already; jm memory remove takes some away"
            )));
        }
        replace_file(&self.path, &text).context(shown())?;
        Ok(changed)
    }

    /// Adds a note and returns its number. A note with the same text isn't added again, and a
    /// proposal of one that the user has accepted changes nothing.
    ///
    /// # Errors
    /// [`HostError::Usage`] for a text that is empty or too long, and when there are too many.
    pub fn add(&self, text: &str, anchor: Option<NoteAnchor>, accepted: bool) -> Result<u32, HostError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(HostError::usage("the note is empty"));
        }
        if text.chars().count() > MAX_NOTE_CHARS {
            return Err(HostError::usage(format_args!(
                "a note has at most {MAX_NOTE_CHARS} characters; longer instructions belong into AGENTS.md"
            )));
        }
        self.update(|contents| {
            if let Some(known) = contents.notes.iter_mut().find(|note| note.text == text) {
                if accepted || !known.accepted {
                    known.accepted |= accepted;
                    known.anchor = anchor.or(known.anchor.take());
                }
                return Ok(known.id);
            }
            if contents.notes.len() >= MAX_NOTES {
                return Err(HostError::usage(format_args!(
                    "there are {MAX_NOTES} notes already; jm memory remove takes some away"
                )));
            }
            contents.next = contents.next.saturating_add(1);
            let (id, text) = (contents.next, text.to_owned());
            contents.notes.push(MemoryNote { id, text, accepted, anchor, created: now() });
            Ok(id)
        })
    }

    /// Accepts a proposal.
    ///
    /// # Errors
    /// [`HostError::Usage`] if there is no such note; [`HostError::Failed`] where the file can't be
    /// written.
    pub fn accept(&self, id: u32) -> Result<(), HostError> {
        let accepted = self.update(|contents| {
            let note = contents.notes.iter_mut().find(|note| note.id == id);
            Ok(note.map(|note| note.accepted = true).is_some())
        })?;
        if accepted { Ok(()) } else { Err(unknown_note_error(id)) }
    }

    /// Removes a note.
    ///
    /// # Errors
    /// [`HostError::Usage`] if there is no such note; [`HostError::Failed`] where the file can't be
    /// written.
    pub fn remove(&self, id: u32) -> Result<(), HostError> {
        let removed = self.update(|contents| {
            let before = contents.notes.len();
            contents.notes.retain(|note| note.id != id);
            Ok(contents.notes.len() < before)
        })?;
        if removed { Ok(()) } else { Err(unknown_note_error(id)) }
    }
}

fn unknown_note_error(id: u32) -> HostError {
    HostError::usage(format_args!("there is no note {id}; jm memory lists them"))
}

/// Returns the user's own notes, then those of the project at `root`.
///
/// # Errors
/// [`HostError::Failed`] for a file that can't be read or is damaged.
pub fn load_notes(state: &StateDirs, root: &Path) -> Result<Vec<MemoryNote>, HostError> {
    let mut notes = NoteFile::in_directory(&state.dir).notes()?;
    notes.extend(NoteFile::in_directory(&state.project_dir(root)).notes()?);
    Ok(notes)
}

/// Returns the text of a project's file, for checking notes.
#[must_use]
pub fn read_project_file(workspace: &Workspace, path: &RelPath) -> Option<String> {
    match workspace.read(path, MAX_ANCHOR_FILE_BYTES).ok()?.body {
        FileBody::Text(text) => Some(text.text),
        FileBody::Binary => None,
    }
}

/// The notes that hold in a project, with their states.
pub struct NoteList {
    /// The project's files.
    pub workspace: Workspace,
    project: NoteFile,
    user: NoteFile,
}

/// A note with its state.
#[derive(Debug, Clone)]
pub struct ListedNote {
    /// The note.
    pub note: MemoryNote,
    /// Its state.
    pub state: NoteState,
    /// True for a note about every project.
    pub everywhere: bool,
}

impl ListedNote {
    /// Returns the name of the note's state.
    #[must_use]
    pub fn state_name(&self) -> &'static str {
        match self.state {
            NoteState::Holds(_) => "holds",
            NoteState::Proposed => "proposed",
            NoteState::Outdated => "outdated",
        }
    }

    /// Returns the present location of the lines that the note is anchored to.
    #[must_use]
    pub fn anchor_location(&self) -> Option<String> {
        let anchor = self.note.anchor.as_ref()?;
        let first = match self.state {
            NoteState::Holds(Some(line)) => line,
            _ => anchor.first_line,
        };
        Some(format!("{}:{first}-{}", anchor.path, first.saturating_add(anchor.lines).saturating_sub(1)))
    }
}

impl NoteList {
    /// Opens the notes of the project in a directory.
    ///
    /// # Errors
    /// [`HostError`] where the project can't be opened.
    pub fn open(
        environment: &Environment,
        state: &StateDirs,
        directory: Option<&Path>,
    ) -> Result<Self, HostError> {
        let root = project_root(environment, directory)?;
        Ok(Self {
            workspace: state.open_workspace(&root)?,
            project: NoteFile::in_directory(&state.project_dir(&root)),
            user: NoteFile::in_directory(&state.dir),
        })
    }

    /// Returns the file of the project's notes, or of the notes for every project.
    #[must_use]
    pub fn note_file(&self, everywhere: bool) -> &NoteFile {
        if everywhere { &self.user } else { &self.project }
    }

    /// Returns all notes, those for every project first.
    ///
    /// # Errors
    /// [`HostError::Failed`] for a file that can't be read or is damaged.
    pub fn list_notes(&self) -> Result<Vec<ListedNote>, HostError> {
        let mut listed = Vec::new();
        for everywhere in [true, false] {
            for note in self.note_file(everywhere).notes()? {
                let state = note.check(&|path| read_project_file(&self.workspace, path));
                listed.push(ListedNote { note, state, everywhere });
            }
        }
        Ok(listed)
    }

    /// Returns all notes as JSON.
    ///
    /// # Errors
    /// As [`NoteList::list_notes`].
    pub fn to_json(&self) -> Result<Value, HostError> {
        let notes: Vec<Value> = self
            .list_notes()?
            .iter()
            .map(|one| {
                json!({
                    "id": one.note.id,
                    "text": one.note.text,
                    "state": one.state_name(),
                    "everywhere": one.everywhere,
                    "place": one.anchor_location(),
                    "created": one.note.created,
                })
            })
            .collect();
        Ok(json!({ "notes": notes }))
    }
}

/// Returns an anchor on the lines that a user names as `FILE:FIRST-LAST`. Names beside `directory`
/// are from the project's root.
///
/// # Errors
/// [`HostError::Usage`] for a place that isn't there.
pub fn parse_anchor(
    environment: &Environment,
    directory: Option<&Path>,
    workspace: &Workspace,
    place: &str,
) -> Result<NoteAnchor, HostError> {
    let parse = || {
        let (name, lines) = place.rsplit_once(':')?;
        let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
        let path = path_in_project(environment, directory, workspace.root(), name).ok()?;
        let text = read_project_file(workspace, &path)?;
        NoteAnchor::new(path, &text, first.parse().ok()?, last.parse().ok()?)
    };
    parse().ok_or_else(|| {
        HostError::usage(format_args!(
            "`{place}` names no lines of a file of the project; write FILE:FIRST-LAST, such as src/net.py:40-62"
        ))
    })
}

/// The tool by which a model proposes a note.
pub struct RememberTool {
    memory: NoteFile,
    redactor: Arc<Redactor>,
}

#[derive(Deserialize)]
struct RememberArguments {
    text: String,
    path: Option<String>,
    first_line: Option<u32>,
    last_line: Option<u32>,
}

impl RememberTool {
    /// Creates the `remember` tool for a project's notes. Secrets known to `redactor` are removed
    /// from notes.
    #[must_use]
    pub fn new(memory: NoteFile, redactor: Arc<Redactor>) -> Self {
        Self { memory, redactor }
    }

    fn propose(&self, workspace: &Workspace, input: &Value) -> Result<ToolOutput, ToolError> {
        let arguments: RememberArguments = serde_json::from_value(input.clone()).map_err(|error| {
            let signature = "{text, path?, first_line?, last_line?}".to_owned();
            ToolError::Arguments { tool: REMEMBER_TOOL.into(), problems: error.to_string(), signature }
        })?;
        let failed = |text: String| Ok(ToolOutput::failure(text));
        let anchor = match &arguments.path {
            None => None,
            Some(name) => {
                let path = RelPath::parse(name).ok();
                let text = path.as_ref().and_then(|path| read_project_file(workspace, path));
                let first = arguments.first_line.unwrap_or(1);
                let last = arguments.last_line.or(arguments.first_line);
                let anchor = path.zip(text).and_then(|(path, text)| {
                    let end = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
                    NoteAnchor::new(path, &text, first, last.unwrap_or(end))
                });
                match anchor {
                    Some(anchor) => Some(anchor),
                    None => return failed(format!("not proposed: {name} has no such lines")),
                }
            }
        };
        match self.memory.add(&self.redactor.redact(&arguments.text), anchor, false) {
            Ok(id) => Ok(ToolOutput::text(format!(
                "proposed as note {id}; later sessions get it once the user accepts it (jm memory accept {id})"
            ))),
            Err(error) => failed(format!("not proposed: {error}")),
        }
    }
}

impl Tool for RememberTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: REMEMBER_TOOL.to_owned(),
            description: "Proposes a fact about this project for later sessions, which the user accepts or not: \
                          something that was hard to find out and will matter again. Name the file and lines it \
                          rests on, if any."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "path": {"type": "string"},
                    "first_line": {"type": "integer"},
                    "last_line": {"type": "integer"},
                },
                "required": ["text"],
            }),
        }
    }

    fn effects(&self, _input: &Value) -> Result<Effects, ToolError> {
        Ok(Effects::default())
    }

    fn summary(&self, input: &Value) -> String {
        let text = input.get("text").and_then(Value::as_str).unwrap_or_default();
        format!("propose to remember: {text}")
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move { self.propose(&context.workspace, &input) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_numbered_once_and_survive() {
        let place = tempfile::tempdir().unwrap();
        let memory = NoteFile::in_directory(&place.path().join("deeper"));
        assert_eq!(memory.notes().unwrap(), []);
        let first = memory.add("use tabs", None, true).unwrap();
        let second = memory.add("retries are per host", None, false).unwrap();
        assert_eq!(memory.add(" use tabs ", None, false).unwrap(), first, "once");
        memory.accept(second).unwrap();
        memory.remove(first).unwrap();
        for missing in [memory.accept(99), memory.remove(first)] {
            assert!(missing.unwrap_err().to_string().starts_with("there is no note "));
        }
        let third = memory.add("another", None, true).unwrap();
        assert!(third > second, "a number isn't used twice");
        let notes = memory.notes().unwrap();
        assert_eq!(
            notes.iter().map(|note| (note.id, note.accepted)).collect::<Vec<_>>(),
            [(second, true), (third, true)]
        );
    }

    #[test]
    fn a_proposal_changes_no_accepted_note() {
        let place = tempfile::tempdir().unwrap();
        let memory = NoteFile::in_directory(place.path());
        let anchor = |name: &str| NoteAnchor::new(RelPath::parse(name).unwrap(), "a\nb\n", 1, 2);
        let accepted = memory.add("use tabs", None, true).unwrap();
        let proposed = memory.add("use spaces", anchor("a.rs"), false).unwrap();
        for text in ["use tabs", "use spaces"] {
            memory.add(text, anchor("b.rs"), false).unwrap();
        }
        let anchors = |memory: &NoteFile| {
            let notes = memory.notes().unwrap().into_iter();
            notes.map(|note| (note.id, note.accepted, note.anchor)).collect::<Vec<_>>()
        };
        let expected = [(accepted, true, None), (proposed, false, anchor("b.rs"))];
        assert_eq!(anchors(&memory), expected);
        memory.add("use tabs", anchor("c.rs"), true).unwrap();
        assert_eq!(anchors(&memory)[0], (accepted, true, anchor("c.rs")));
    }

    #[test]
    fn notes_that_nobody_could_read_any_more_are_not_written() {
        let place = tempfile::tempdir().unwrap();
        let memory = NoteFile::in_directory(place.path());
        // The longest notes, by their bytes in the file.
        let text = |number: usize| format!("{number:04}{}", "\u{1}".repeat(MAX_NOTE_CHARS - 4));
        let refused = (0..MAX_NOTES).find_map(|number| memory.add(&text(number), None, false).err()).unwrap();
        assert!(refused.to_string().contains("jm memory remove"), "{refused}");
        let notes = memory.notes().unwrap();
        memory.remove(notes[0].id).unwrap();
        memory.add("a short one", None, true).unwrap();
    }

    #[test]
    fn bad_notes_and_a_damaged_file_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let memory = NoteFile::in_directory(place.path());
        assert!(memory.add("  ", None, true).is_err());
        assert!(memory.add(&"x".repeat(MAX_NOTE_CHARS + 1), None, true).is_err());
        std::fs::write(place.path().join(NOTES_FILE), "{").unwrap();
        assert!(memory.notes().is_err() && memory.add("a", None, true).is_err());
        assert_eq!(std::fs::read_to_string(place.path().join(NOTES_FILE)).unwrap(), "{", "nothing is lost");
    }
}
