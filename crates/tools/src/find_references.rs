//! `find_references`: where a name is defined and used.

use std::path::Path;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_index::query::{QualifiedName, ScopeFit, definitions_named, full_name};
use journeyman_protocol::{Effects, RelPath, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::excerpt::to_one_line;
use crate::index_answer::{IndexAnswer, is_beneath, nth_line};
use crate::tool::run_blocking;
use crate::tool_interface::{ToolInterface, bounded_count};
use crate::{Tool, ToolContext, ToolError, ToolOutput};

/// Default number of uses in an answer: enough to see what a change would affect.
const DEFAULT_USES: u64 = 60;
/// Maximum number of uses; beyond this the bound on bytes applies anyway.
const MAX_USES: u64 = 1_000;
/// Maximum number of definitions shown before the uses.
const MAX_DEFINITIONS: usize = 20;
/// Maximum bytes of a name.
const MAX_NAME_BYTES: usize = 400;
/// Maximum bytes of a name in a summary.
const MAX_SUMMARY_BYTES: usize = 100;

#[derive(Deserialize, JsonSchema)]
struct FindReferencesArguments {
    /// Such as open, Shop.open or shop::open
    symbol: String,
    /// File or directory
    path: Option<String>,
    limit: Option<u64>,
}

/// The `find_references` tool.
pub(crate) struct FindReferences {
    shape: ToolInterface,
}

/// The arguments of a call, checked.
struct ReferenceQuery {
    symbol: QualifiedName,
    under: Option<RelPath>,
    limit: usize,
}

impl FindReferences {
    pub(crate) fn new(root: Option<&Path>) -> Self {
        let description = "Where a name is defined and used. Things of one name aren't told apart.";
        Self {
            shape: ToolInterface::for_arguments::<FindReferencesArguments>(
                "find_references",
                description,
                root,
            ),
        }
    }

    async fn run(&self, context: &ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let arguments: FindReferencesArguments = self.shape.read_arguments(&input)?;
        let under = self.shape.parse_directory("path", arguments.path.as_deref())?;
        if arguments.symbol.len() > MAX_NAME_BYTES {
            return Err(self.shape.argument_error(format!("`symbol` has more than {MAX_NAME_BYTES} bytes")));
        }
        let symbol = QualifiedName::parse(&arguments.symbol);
        if symbol.name().is_empty() || symbol.name().contains(char::is_whitespace) {
            return Err(self.shape.argument_error("`symbol` must be one name; search_code takes questions"));
        }
        let limit = bounded_count(arguments.limit, DEFAULT_USES, MAX_USES);
        let wanted = ReferenceQuery { symbol, under, limit };
        let context = context.clone();
        run_blocking(move || find_references(&context, &wanted)).await
    }
}

fn find_references(context: &ToolContext, wanted: &ReferenceQuery) -> Result<ToolOutput, ToolError> {
    let ReferenceQuery { symbol, under, limit } = wanted;
    let name = symbol.name();
    let asked = context.index.snapshot(&context.cancel)?;
    let snapshot = &*asked.snapshot;
    let mut answer = IndexAnswer::new(context, &asked.note);
    let (fit, defined) = definitions_named(snapshot, symbol);
    if fit == ScopeFit::None && !defined.is_empty() {
        answer.add_line("[none lies in what stands before the name; these have the name]");
    }
    for one in defined.iter().take(MAX_DEFINITIONS) {
        let Some(path) = snapshot.path_of(one.file) else { continue };
        if answer.may_show(&path) {
            let (kind, full) = (one.kind.name(), full_name(&one.scope, &one.name));
            answer.add_line(&format!("defined: {path}:{} {kind} {full}", one.name_line));
        }
    }
    let mut used: Vec<(RelPath, u32, u32)> = Vec::new();
    snapshot.visit_references(name, |file, line| {
        if let Some(path) = snapshot.path_of(file).filter(|path| is_beneath(path.as_bytes(), under.as_ref()))
        {
            used.push((path, line, file));
        }
    });
    used.sort();
    used.dedup();
    let total = used.len();
    let (mut heading, mut shown_uses): (Option<RelPath>, usize) = (None, 0);
    for (path, line, file) in used.into_iter().take(*limit) {
        if heading.as_ref() != Some(&path) {
            if !answer.may_show(&path) {
                continue;
            }
            answer.add_line(&path.to_string());
            heading = Some(path.clone());
        }
        let inside =
            snapshot.symbol_path_at(file, line).map_or(String::new(), |inside| format!("  [in {inside}]"));
        let text =
            answer.text_of(&path).map(|text| nth_line(text, line).trim().to_owned()).unwrap_or_default();
        if !answer.add_numbered_line(line, &format!("{text}{inside}")) {
            break;
        }
        shown_uses += 1;
    }
    let empty = (defined.is_empty() && total == 0).then(|| {
        format!(
            "`{}` is neither defined nor used here. get_symbols finds names that are near it.\n",
            to_one_line(name, MAX_SUMMARY_BYTES)
        )
    });
    if total > shown_uses && !answer.is_full() {
        answer.add_line(&format!("[{shown_uses} of {total} uses; give path or a higher limit for others]"));
    }
    Ok(ToolOutput::text(answer.into_text(empty, "give path to see others")))
}

impl Tool for FindReferences {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let arguments: FindReferencesArguments = self.shape.read_arguments(input)?;
        self.shape.directory_read_effects(arguments.path.as_deref())
    }

    fn summary(&self, input: &Value) -> String {
        let Ok(arguments) = self.shape.read_arguments::<FindReferencesArguments>(input) else {
            return "find references".to_owned();
        };
        format!("find references of `{}`", to_one_line(&arguments.symbol, MAX_SUMMARY_BYTES))
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
