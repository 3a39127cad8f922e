//! The plan of a change, and what became of it.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::RelPath;

/// The plan of a change: the output of an agent that plans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The task, in the words of whoever gave it.
    #[serde(default)]
    pub task: String,
    /// The approach, and why it and no other.
    pub strategy: String,
    /// The steps in the order in which they are done.
    pub steps: Vec<PlanStep>,
    /// Files that depend on what changes and need a look.
    #[serde(default)]
    pub affected: Vec<String>,
    /// The commands and tests that show that the change works.
    #[serde(default)]
    pub checks: Vec<String>,
    /// The dangers of the change.
    #[serde(default)]
    pub risks: Vec<String>,
    /// The decisions that only the user can make.
    #[serde(default)]
    pub questions: Vec<String>,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanStep {
    /// The change of this step.
    pub what: String,
    /// The files that it changes, relative to the root; a directory stands for all of its files.
    #[serde(default)]
    pub files: Vec<String>,
    /// The functions and types that it changes.
    #[serde(default)]
    pub symbols: Vec<String>,
}

/// A plan held against the files that were changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PlanComparison {
    /// Changed files that no step of the plan names.
    pub outside: Vec<RelPath>,
    /// Files that a step names and that weren't changed, as the plan writes them.
    pub untouched: Vec<String>,
}

impl Plan {
    /// Reads the output of an agent as a plan of a task; `None` if it has another shape.
    #[must_use]
    pub fn from_output(output: &Value, task: &str) -> Option<Self> {
        let plan = Self { task: task.to_owned(), ..Self::deserialize(output).ok()? };
        (!plan.steps.is_empty()).then_some(plan)
    }

    /// Compares the plan with the files that were changed.
    #[must_use]
    pub fn compare<'a>(&self, changed: impl Iterator<Item = &'a RelPath>) -> PlanComparison {
        let named: BTreeSet<&str> =
            self.steps.iter().flat_map(|step| &step.files).map(|file| normalize_path(file)).collect();
        let changed: Vec<(&RelPath, String)> = changed.map(|path| (path, path.to_string())).collect();
        let outside =
            changed.iter().filter(|(_, path)| !named.iter().any(|file| is_path_or_ancestor(file, path)));
        let untouched =
            named.iter().filter(|file| !changed.iter().any(|(_, path)| is_path_or_ancestor(file, path)));
        PlanComparison {
            outside: outside.map(|(path, _)| (*path).clone()).collect(),
            untouched: untouched.map(|&file| file.to_owned()).collect(),
        }
    }
}

/// Removes whitespace, backticks, a leading `./` and trailing slashes from a path in a plan.
fn normalize_path(file: &str) -> &str {
    let file = file.trim().trim_matches('`');
    file.strip_prefix("./").unwrap_or(file).trim_end_matches('/')
}

/// Returns true if the file is the path, or a directory above it.
fn is_path_or_ancestor(file: &str, path: &str) -> bool {
    path.strip_prefix(file).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Markdown, for people and for the model that carries the plan out.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = format!("{}\n", self.strategy.trim());
        for (place, step) in self.steps.iter().enumerate() {
            write!(text, "\n{}. {}", place + 1, step.what.trim())?;
            for (title, names) in [("files", &step.files), ("symbols", &step.symbols)] {
                if !names.is_empty() {
                    write!(text, "\n   {title}: {}", names.join(", "))?;
                }
            }
        }
        let lists = [
            ("Also affected", &self.affected),
            ("Checks", &self.checks),
            ("Risks", &self.risks),
            ("Questions", &self.questions),
        ];
        for (title, items) in lists.iter().filter(|(_, items)| !items.is_empty()) {
            write!(text, "\n\n{title}:")?;
            for item in *items {
                write!(text, "\n- {}", item.trim())?;
            }
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan() -> Plan {
        let output = json!({
            "strategy": "Parse first.",
            "steps": [
                { "what": "Read the flag.", "files": ["./src/args.rs", "`docs/`"], "symbols": ["parse"] },
                { "what": "Use it.", "files": ["src/main.rs"] },
            ],
            "checks": ["cargo test"],
            "more": 1,
        });
        Plan::from_output(&output, "a task").unwrap()
    }

    #[test]
    fn files_outside_of_the_plan_and_untouched_ones_are_named() {
        let changed = ["src/args.rs", "docs/a/b.md", "src/main.rs.orig"];
        let changed = changed.map(|path| RelPath::parse(path).unwrap());
        let compared = plan().compare(changed.iter());
        assert_eq!(compared.outside, [RelPath::parse("src/main.rs.orig").unwrap()]);
        assert_eq!(compared.untouched, ["src/main.rs"]);
    }

    #[test]
    fn what_is_no_plan_is_not_read_as_one() {
        for output in
            [json!("x"), json!({ "strategy": "a", "steps": [] }), json!({ "steps": [{ "what": "a" }] })]
        {
            assert_eq!(Plan::from_output(&output, ""), None);
        }
    }

    #[test]
    fn a_plan_reads_as_a_list_of_steps() {
        assert_eq!(
            plan().to_string(),
            "Parse first.\n\n1. Read the flag.\n   files: ./src/args.rs, `docs/`\n   symbols: parse\n2. Use it.\n   files: \
             src/main.rs\n\nChecks:\n- cargo test"
        );
    }
}
