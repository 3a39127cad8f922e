//! `get_dependencies`: the dependencies and dependents of a file, and the tests that reach it.

use std::path::Path;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_index::Snapshot;
use journeyman_index::graph::{ChangedPart, ChangedSourceFile, Direction, Graph};
use journeyman_protocol::{Effects, RelPath, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::excerpt::to_one_line;
use crate::index_answer::IndexAnswer;
use crate::tool::run_blocking;
use crate::tool_interface::ToolInterface;
use crate::{Tool, ToolContext, ToolError, ToolOutput};

/// Default number of steps in the dependency graph: direct dependencies.
const DEFAULT_DEPTH: u64 = 1;
/// Maximum number of steps: farther away everything depends on everything.
const MAX_DEPTH: u64 = 20;
/// Maximum number of files shown.
const MAX_FILES: usize = 100;
/// Maximum number of test files shown.
const MAX_TESTS: usize = 30;
/// Maximum number of packages shown.
const MAX_PACKAGES: usize = 50;
/// Advice on how to get a smaller answer.
const NARROWING_ADVICE: &str = "ask for a smaller depth";
/// Maximum bytes of a path in a summary.
const MAX_SUMMARY_BYTES: usize = 100;

#[derive(Deserialize, JsonSchema)]
struct GetDependenciesArguments {
    /// File
    path: String,
    /// Its dependents, and the tests
    reverse: Option<bool>,
    /// Steps (1)
    depth: Option<u64>,
    /// Tests of this line alone
    line: Option<u32>,
}

/// The arguments of a call, checked.
struct DependencyQuery {
    path: RelPath,
    reverse: bool,
    depth: u32,
    /// The line whose tests alone are shown.
    line: Option<u32>,
}

/// The `get_dependencies` tool.
pub(crate) struct GetDependencies {
    shape: ToolInterface,
}

impl GetDependencies {
    pub(crate) fn new(root: Option<&Path>) -> Self {
        let description = "What a file depends on, or what depends on it.";
        Self {
            shape: ToolInterface::for_arguments::<GetDependenciesArguments>(
                "get_dependencies",
                description,
                root,
            ),
        }
    }

    async fn run(&self, context: &ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let arguments: GetDependenciesArguments = self.shape.read_arguments(&input)?;
        let path = self.shape.parse_path(&arguments.path)?;
        let depth = arguments.depth.unwrap_or(DEFAULT_DEPTH).clamp(1, MAX_DEPTH);
        let depth = u32::try_from(depth).unwrap_or(u32::MAX);
        let reverse = arguments.reverse.unwrap_or(false);
        let wanted = DependencyQuery { path, reverse, depth, line: arguments.line.filter(|line| *line > 0) };
        let context = context.clone();
        run_blocking(move || describe_dependencies(&context, &wanted)).await
    }
}

fn describe_dependencies(context: &ToolContext, wanted: &DependencyQuery) -> Result<ToolOutput, ToolError> {
    let DependencyQuery { path, reverse, depth, line } = wanted;
    let (reverse, depth) = (*reverse, *depth);
    let asked = context.index.snapshot(&context.cancel)?;
    let graph = asked.project.graph(&asked.snapshot);
    let mut answer = IndexAnswer::new(context, &asked.note);
    let Some(file) = path.as_str().and_then(|path| graph.find_file(path)) else {
        let mut similar = graph.similar_paths(path.as_str().unwrap_or_default());
        similar.retain(|path| may_show(&mut answer, path));
        let meant = if similar.is_empty() {
            String::new()
        } else {
            format!(" Did you mean {}?", similar.join(" or "))
        };
        let empty = format!("{path} is not in the index: there is no such file, or it is ignored.{meant}\n");
        return Ok(ToolOutput::text(answer.into_text(Some(empty), NARROWING_ADVICE)));
    };
    let direction = if reverse { Direction::Dependents } else { Direction::Dependencies };
    let reach = graph.neighbours(&[file], direction, depth);
    let what = if reverse { format!("files that need {path}") } else { format!("files that {path} needs") };
    answer.add_line(&format!("{what}: {}", reach.files.len()));
    for found in reach.files.iter().take(MAX_FILES) {
        if !may_show(&mut answer, graph.path(found.file)) {
            continue;
        }
        let (from, to) = if reverse { (found.file, found.from) } else { (found.from, found.file) };
        let because = graph.describe_edge(&asked.snapshot, from, to);
        let by = if found.distance > 1 && is_showable(context, graph.path(found.from)) {
            format!(" (by {})", graph.path(found.from))
        } else {
            String::new()
        };
        if !answer.add_line(format!("{}{by}  {because}", graph.path(found.file)).trim_end()) {
            break;
        }
    }
    if reach.files.len() > MAX_FILES {
        answer.add_line(&format!("[{MAX_FILES} of {} are looked at]", reach.files.len()));
    }
    if reverse {
        let line = line.filter(|line| {
            let lines = asked.project.read_text(path).map_or(0, |text| text.lines().count());
            let is_there = *line as usize <= lines;
            if !is_there {
                answer.add_line(&format!("[{path} has {lines} lines; tests of the whole file follow]"));
            }
            is_there
        });
        let part = line.map(|line| ChangedPart { lines: vec![line..=line], gone: Vec::new() });
        describe_tests(&graph, &asked.snapshot, ChangedSourceFile { file, part }, &mut answer);
    } else {
        let packages: Vec<&str> = graph.packages(file).take(MAX_PACKAGES).collect();
        if !packages.is_empty() {
            answer.add_line(&format!("packages: {}", packages.join(", ")));
        }
    }
    Ok(ToolOutput::text(answer.into_text(None, NARROWING_ADVICE)))
}

/// Returns true if the rules let a file be shown, and counts the files that they don't.
fn may_show(answer: &mut IndexAnswer<'_>, path: &str) -> bool {
    RelPath::parse(path.as_bytes()).is_ok_and(|path| answer.may_show(&path))
}

fn is_showable(context: &ToolContext, path: &str) -> bool {
    RelPath::parse(path.as_bytes()).is_ok_and(|path| (context.may_show)(&path))
}

/// Adds the tests that reach a file, or a line of it, at any distance.
fn describe_tests(
    graph: &Graph,
    snapshot: &Snapshot,
    changed: ChangedSourceFile,
    answer: &mut IndexAnswer<'_>,
) {
    let line = changed.part.as_ref().and_then(|part| part.lines.first()).map(|lines| *lines.start());
    let file = changed.file;
    let tests = graph.affected_tests(&[file], &graph.find_impact(snapshot, &[changed], u32::MAX));
    if tests.is_empty() {
        return;
    }
    let it = line.map_or("it".to_owned(), |line| format!("line {line}"));
    answer.add_line(&format!("tests that reach {it}, the nearest first:"));
    for test in tests.iter().take(MAX_TESTS) {
        if may_show(answer, graph.path(*test)) {
            answer.add_line(graph.path(*test));
        }
    }
    if tests.len() > MAX_TESTS {
        answer.add_line(&format!("[{MAX_TESTS} of {} are looked at]", tests.len()));
    }
}

impl Tool for GetDependencies {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let arguments: GetDependenciesArguments = self.shape.read_arguments(input)?;
        let path = self.shape.parse_path(&arguments.path)?;
        Ok(Effects { reads: vec![path], ..Effects::default() })
    }

    fn summary(&self, input: &Value) -> String {
        let Ok(arguments) = self.shape.read_arguments::<GetDependenciesArguments>(input) else {
            return "get dependencies".to_owned();
        };
        let of = if arguments.reverse == Some(true) { "dependents" } else { "dependencies" };
        format!("get {of} of {}", to_one_line(&arguments.path, MAX_SUMMARY_BYTES))
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.run(context, input).boxed()
    }
}
