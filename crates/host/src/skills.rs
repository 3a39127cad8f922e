//! Skills: folders with a `SKILL.md`, which tells a model how to do a kind of work.
//!
//! Requests contain names and descriptions; a skill's text is loaded when the model asks for it. A
//! project's skill counts as the project's instructions, and changes no permission.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Effects, RelPath, ToolSpec, clip_to_bytes};
use journeyman_tools::{Tool, ToolContext, ToolError, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::Environment;
use crate::format::printable;
use crate::text_files::{DirectoryNames, FileOwner, MarkdownFile, TextDirectory};

/// The file of a skill.
const SKILL_FILE: &str = "SKILL.md";
/// The directories of skills, in a project and in the user's home.
const SKILL_DIRECTORIES: [&str; 3] = [".journeyman/skills", ".agents/skills", ".claude/skills"];
/// Maximum number of skills. Every request describes all of them.
const MAX_SKILLS: usize = 40;
/// Maximum bytes of one description in a request, and of all descriptions.
const MAX_DESCRIPTION_BYTES: usize = 200;
const MAX_ALL_DESCRIPTIONS_BYTES: usize = 3_000;
/// Maximum length of a name, as the format has it.
const MAX_SKILL_NAME_BYTES: usize = 64;
/// Maximum number of a skill's further files that are named with its text.
const MAX_SKILL_FILES: usize = 40;
/// The tool's name.
const SKILL_TOOL: &str = "skill";

/// A skill.
#[derive(Debug)]
pub struct Skill {
    /// The name: lower-case letters, digits and hyphens.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// The owner of its file.
    pub owner: FileOwner,
    /// The place of its `SKILL.md`, for people.
    pub path: PathBuf,
    directory: TextDirectory,
    folder: String,
}

/// The skills of a project and its user, and the problems of invalid skills.
#[derive(Debug, Default)]
pub struct Skills {
    /// The skills, sorted by name. The user's skill overrides the project's of the same name.
    pub skills: Vec<Skill>,
    /// One line for each file that is left out.
    pub problems: Vec<String>,
}

impl Skills {
    /// Finds the skills for the project at `root`.
    #[must_use]
    pub fn load(environment: &Environment, root: &Path) -> Self {
        let mut found = Self::default();
        let home = SKILL_DIRECTORIES.iter().filter_map(|path| Some(environment.home.as_ref()?.join(path)));
        let own = environment.config_dir().map(|dir| dir.join("skills"));
        for path in own.into_iter().chain(home) {
            if let Some(directory) = TextDirectory::open_for_user(&path) {
                found.read_directory(directory, FileOwner::User, || TextDirectory::open_for_user(&path));
            }
        }
        for path in SKILL_DIRECTORIES {
            if let Some(directory) = TextDirectory::open_in_project(root, path) {
                found.read_directory(directory, FileOwner::Project, || {
                    TextDirectory::open_in_project(root, path)
                });
            }
        }
        found.skills.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }

    fn read_directory(
        &mut self,
        directory: TextDirectory,
        owner: FileOwner,
        open: impl Fn() -> Option<TextDirectory>,
    ) {
        let DirectoryNames { directories: folders, is_cut, .. } = directory.list_names("");
        if is_cut {
            self.problems.push(directory.describe_truncation(""));
        }
        for folder in folders {
            let file = format!("{folder}/{SKILL_FILE}");
            let path = directory.display_path(&file);
            if !directory.list_names(&folder).files.iter().any(|name| name == SKILL_FILE) {
                continue;
            }
            if self.skills.len() >= MAX_SKILLS {
                self.problems.push(format!("{}: more than {MAX_SKILLS} skills", printable(&path.display())));
                return;
            }
            let read = directory.read(&file).and_then(|text| MarkdownFile::parse(&text));
            let named = read.and_then(|file| Ok((parse_name(&file, &folder)?, parse_description(&file)?)));
            match (named, open()) {
                (Ok((name, _)), _) if self.skills.iter().any(|skill| skill.name == name) => {}
                (Ok((name, description)), Some(directory)) => {
                    self.skills.push(Skill { name, description, owner, path, directory, folder });
                }
                (Ok(_), None) => {}
                (Err(problem), _) => self.problems.push(format!("{}: {problem}", printable(&path.display()))),
            }
        }
    }
}

fn parse_name(file: &MarkdownFile, folder: &str) -> Result<String, String> {
    let name = file.text_field("name").unwrap_or_else(|| folder.to_owned());
    let is_name = !name.is_empty()
        && name.len() <= MAX_SKILL_NAME_BYTES
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_'));
    is_name.then_some(name).ok_or_else(|| {
        format!("`name` takes at most {MAX_SKILL_NAME_BYTES} lower-case letters, digits and hyphens")
    })
}

fn parse_description(file: &MarkdownFile) -> Result<String, String> {
    let text =
        file.text_field("description").ok_or("`description` is missing: it says when to use the skill")?;
    Ok(printable(&text))
}

/// The tool that loads a skill.
pub(crate) struct SkillTool {
    skills: Arc<Skills>,
    description: String,
}

#[derive(Deserialize)]
struct SkillArguments {
    name: String,
    file: Option<String>,
}

impl SkillTool {
    /// Returns the tool; `None` where there is no skill.
    pub(crate) fn new(skills: Arc<Skills>) -> Option<Self> {
        if skills.skills.is_empty() {
            return None;
        }
        let mut description =
            "Loads a skill: how to do a kind of work here. Load the one that fits before you \
                               begin. Skills:"
                .to_owned();
        for (number, skill) in skills.skills.iter().enumerate() {
            let line =
                format!("\n- {}: {}", skill.name, clip_to_bytes(&skill.description, MAX_DESCRIPTION_BYTES));
            if description.len() + line.len() > MAX_ALL_DESCRIPTIONS_BYTES {
                description.push_str(&format!("\n[and {} more]", skills.skills.len() - number));
                break;
            }
            description.push_str(&line);
        }
        Some(Self { skills, description })
    }

    fn parse_request<'a>(&'a self, input: &Value) -> Result<(&'a Skill, Option<String>), ToolError> {
        let SkillArguments { name, file } =
            serde_json::from_value(input.clone()).map_err(|error| wrong_arguments(error.to_string()))?;
        let known = || self.skills.skills.iter().map(|skill| skill.name.as_str());
        let skill = self.skills.skills.iter().find(|skill| skill.name == name);
        let skill = skill.ok_or_else(|| {
            let shown = clip_to_bytes(&name, MAX_SKILL_NAME_BYTES).escape_debug().to_string();
            wrong_arguments(format!(
                "there is no skill `{shown}`; there are {}",
                known().collect::<Vec<_>>().join(", ")
            ))
        })?;
        Ok((skill, file.filter(|file| !file.is_empty() && file != SKILL_FILE)))
    }
}

fn wrong_arguments(problems: String) -> ToolError {
    let signature = "{name: string, file?: string}".to_owned();
    ToolError::Arguments { tool: SKILL_TOOL.into(), problems, signature }
}

impl Skill {
    /// Returns the path of the skill, or of one of its files, within its directory.
    fn relative_path(&self, file: Option<&str>) -> String {
        format!("{}/{}", self.folder, file.unwrap_or(SKILL_FILE))
    }

    /// Returns the text of the skill, or of one of its files.
    fn load(&self, file: Option<&str>) -> Result<String, String> {
        let Self { folder, directory, .. } = self;
        let text = directory.read(&self.relative_path(file))?;
        if file.is_some() {
            return Ok(text);
        }
        let body = MarkdownFile::parse(&text)?.text;
        let mut files: Vec<String> = Vec::new();
        let names = directory.list_names(folder);
        files.extend(names.files.into_iter().filter(|name| name != SKILL_FILE));
        for inner in names.directories {
            let names = directory.list_names(&format!("{folder}/{inner}")).files;
            files.extend(names.into_iter().map(|name| format!("{inner}/{name}")));
        }
        files.truncate(MAX_SKILL_FILES);
        let files = match files.as_slice() {
            [] => String::new(),
            files => format!("\n\nFurther files, which `file` loads: {}", files.join(", ")),
        };
        let place = match self.owner {
            FileOwner::User => "The user's skill".to_owned(),
            FileOwner::Project => format!("The project's skill in {}", printable(&self.path.display())),
        };
        Ok(format!("{place}. It permits nothing that is not permitted anyway.\n\n{}{files}", body.trim()))
    }
}

impl Tool for SkillTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: SKILL_TOOL.to_owned(),
            description: self.description.clone(),
            input_schema: json!({
                "type": "object",
                "properties": { "name": { "type": "string" }, "file": { "type": "string" } },
                "required": ["name"],
            }),
        }
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let (skill, file) = self.parse_request(input)?;
        if skill.owner == FileOwner::User {
            // Rules speak of files of the project.
            return Ok(Effects::default());
        }
        let path = skill.directory.path_of(&skill.relative_path(file.as_deref()));
        let path = RelPath::parse(&path).map_err(|error| wrong_arguments(error.to_string()))?;
        Ok(Effects { reads: vec![path], ..Effects::default() })
    }

    fn summary(&self, input: &Value) -> String {
        match self.parse_request(input) {
            Ok((skill, Some(file))) => format!(
                "load {} of the skill {}",
                printable(clip_to_bytes(&file, MAX_DESCRIPTION_BYTES)),
                skill.name
            )
            .replace('\n', " "),
            Ok((skill, None)) => format!("load the skill {}", skill.name),
            Err(_) => "load a skill".to_owned(),
        }
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call<'a>(
        &'a self,
        _context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let skills = Arc::clone(&self.skills);
        let request = self.parse_request(&input).map(|(skill, file)| (skill.name.clone(), file));
        async move {
            let (name, file) = request?;
            let load = move || {
                let skill = skills.skills.iter().find(|skill| skill.name == name);
                skill.map_or_else(|| Err("it is gone".to_owned()), |skill| skill.load(file.as_deref()))
            };
            let loaded = tokio::task::spawn_blocking(load).await;
            match loaded.map_err(|error| ToolError::Stopped(error.to_string()))? {
                Ok(text) => Ok(ToolOutput::text(text)),
                Err(problem) => Ok(ToolOutput::failure(format!("the skill can't be loaded: {problem}"))),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn skill(name: &str, description: &str) -> String {
        format!("---\nname: {name}\ndescription: {description}\n---\n# {name}\nDo it.\n")
    }

    fn place() -> (tempfile::TempDir, Environment, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let (home, root) = (place.path().join("home"), place.path().join("project"));
        std::fs::create_dir_all(&root).unwrap();
        let environment = Environment { vars: Default::default(), home: Some(home), cwd: root.clone() };
        (place, environment, root)
    }

    #[test]
    fn skills_are_found_at_both_levels_and_wrong_ones_are_named() {
        let (_place, environment, root) = place();
        let home = environment.home.clone().unwrap();
        write(&root.join(".claude/skills/release/SKILL.md"), &skill("release", "Cuts a release."));
        write(&root.join(".claude/skills/release/scripts/tag.sh"), "git tag");
        write(&root.join(".agents/skills/db/SKILL.md"), &skill("db", "For the database."));
        write(&root.join(".journeyman/skills/bad/SKILL.md"), "no front matter");
        write(&root.join(".journeyman/skills/Bad Name/SKILL.md"), &skill("Bad Name", "x"));
        write(&root.join(".journeyman/skills/notes/README.md"), "no skill");
        write(&home.join(".claude/skills/db/SKILL.md"), &skill("db", "The user's own."));
        let found = Skills::load(&environment, &root);
        let told: Vec<(&str, &str)> =
            found.skills.iter().map(|it| (it.name.as_str(), it.description.as_str())).collect();
        assert_eq!(told, [("db", "The user's own."), ("release", "Cuts a release.")], "the user's holds");
        assert_eq!(found.problems.len(), 2, "{:?}", found.problems);
        assert!(found.problems.iter().any(|problem| problem.contains("`description` is missing")));
        assert!(found.problems.iter().any(|problem| problem.contains("`name` takes at most")));
        let tool = SkillTool::new(Arc::new(found)).unwrap();
        assert!(tool.spec().description.ends_with("- db: The user's own.\n- release: Cuts a release."));
        let (release, _) = tool.parse_request(&json!({"name": "release"})).unwrap();
        let text = release.load(None).unwrap();
        assert!(text.contains("# release\nDo it.") && text.contains("scripts/tag.sh"), "{text}");
        assert_eq!(release.load(Some("scripts/tag.sh")).unwrap(), "git tag");
        for outside in ["../../secret", "/etc/passwd", "none"] {
            assert!(release.load(Some(outside)).is_err(), "{outside}");
        }
        let unknown = tool.effects(&json!({"name": "x"})).unwrap_err().to_string();
        assert!(unknown.contains("there is no skill `x`; there are db, release"), "{unknown}");
    }

    #[test]
    fn rules_of_paths_see_which_file_of_the_project_is_read() {
        let (_place, environment, root) = place();
        write(&root.join(".claude/skills/release/SKILL.md"), &skill("release", "Cuts a release."));
        write(&environment.home.clone().unwrap().join(".claude/skills/db/SKILL.md"), &skill("db", "Mine."));
        let tool = SkillTool::new(Arc::new(Skills::load(&environment, &root))).unwrap();
        let reads = |input: Value| {
            let reads = tool.effects(&input).unwrap().reads;
            reads.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(reads(json!({"name": "release"})), [".claude/skills/release/SKILL.md"]);
        let file = json!({"name": "release", "file": "scripts/tag.sh"});
        assert_eq!(reads(file), [".claude/skills/release/scripts/tag.sh"]);
        assert_eq!(reads(json!({"name": "db"})), [""; 0], "a user's skill is no file of the project");
        let outside = tool.effects(&json!({"name": "release", "file": "../../../../x"}));
        assert!(outside.is_err(), "{outside:?}");
    }

    #[test]
    fn what_a_model_is_told_of_skills_is_bounded() {
        let (_place, environment, root) = place();
        for number in 0..60 {
            let name = format!("skill-{number:02}");
            write(&root.join(format!(".claude/skills/{name}/SKILL.md")), &skill(&name, &"long ".repeat(300)));
        }
        let found = Skills::load(&environment, &root);
        assert_eq!((found.skills.len(), found.problems.len()), (MAX_SKILLS, 1));
        let description = SkillTool::new(Arc::new(found)).unwrap().spec().description;
        assert!(
            description.len() < MAX_ALL_DESCRIPTIONS_BYTES + 40 && description.contains("more]"),
            "{}",
            description.len()
        );
        assert!(SkillTool::new(Arc::default()).is_none(), "no skill, no tool");
    }
}
