//! `get_symbols`: the definitions in a file, or of a name.

use std::path::Path;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_index::Snapshot;
use journeyman_index::analysis::ContentType;
use journeyman_index::query::{Corpus as _, SymbolEntry, find_definitions, full_name};
use journeyman_protocol::{Effects, RelPath, ToolSpec};
use journeyman_workspace::StatKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::excerpt::to_one_line;
use crate::index_answer::{IndexAnswer, is_beneath};
use crate::tool::run_blocking;
use crate::tool_interface::{ToolInterface, not_found};
use crate::{Tool, ToolContext, ToolError, ToolOutput};

/// Maximum number of definitions shown of a name.
const MAX_DEFINITIONS: usize = 30;
/// Maximum bytes of a name.
const MAX_NAME_BYTES: usize = 400;
/// Maximum bytes of a name in a summary.
const MAX_SUMMARY_BYTES: usize = 100;

#[derive(Deserialize, JsonSchema)]
struct GetSymbolsArguments {
    /// File
    path: Option<String>,
    /// Such as open or Shop.open; near ones are found too
    name: Option<String>,
}

/// The `get_symbols` tool.
pub(crate) struct GetSymbols {
    shape: ToolInterface,
}

impl GetSymbols {
    pub(crate) fn new(root: Option<&Path>) -> Self {
        let description = "What a file defines, or where a name is defined.";
        Self { shape: ToolInterface::for_arguments::<GetSymbolsArguments>("get_symbols", description, root) }
    }

    fn read_arguments(&self, input: &Value) -> Result<(Option<RelPath>, Option<String>), ToolError> {
        let GetSymbolsArguments { path, name } = self.shape.read_arguments(input)?;
        let path = self.shape.parse_directory("path", path.as_deref())?;
        let name = name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        if path.is_none() && name.is_none() {
            return Err(self.shape.argument_error("give `path`, a file, or `name`"));
        }
        if name.as_ref().is_some_and(|name| name.len() > MAX_NAME_BYTES) {
            return Err(self.shape.argument_error(format!("`name` has more than {MAX_NAME_BYTES} bytes")));
        }
        Ok((path, name))
    }

    async fn run(&self, context: &ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let (path, name) = self.read_arguments(&input)?;
        let context = context.clone();
        run_blocking(move || match (path, name) {
            (path, Some(name)) => show_definitions(&context, path.as_ref(), &name),
            (Some(path), None) => outline_file(&context, path),
            (None, None) => Ok(ToolOutput::text("")),
        })
        .await
    }
}

fn show_definitions(
    context: &ToolContext,
    under: Option<&RelPath>,
    name: &str,
) -> Result<ToolOutput, ToolError> {
    let asked = context.index.snapshot(&context.cancel)?;
    let snapshot = &*asked.snapshot;
    let mut answer = IndexAnswer::new(context, &asked.note);
    let most = if under.is_some() { usize::MAX } else { MAX_DEFINITIONS };
    let mut any = 0;
    for one in find_definitions(snapshot, name, most) {
        let path = snapshot.path_of(one.file).filter(|path| is_beneath(path.as_bytes(), under));
        let Some(path) = path.filter(|path| answer.may_show(path)) else { continue };
        if any == MAX_DEFINITIONS {
            break;
        }
        any += 1;
        let told = if one.signature.is_empty() { String::new() } else { format!("  {}", one.signature) };
        let (full, kind, how) = (full_name(&one.scope, &one.name), one.kind.name(), one.matched.name());
        let last = one.first_line.saturating_add(one.lines.saturating_sub(1));
        answer.add_line(&format!("{path}:{} {kind} {full} (to {last}; {how}){told}", one.name_line));
    }
    let empty = (any == 0).then(|| {
        format!(
            "Nothing is defined with a name like `{}`. search_text finds any text.\n",
            to_one_line(name, MAX_SUMMARY_BYTES)
        )
    });
    Ok(ToolOutput::text(answer.into_text(empty, "give more of the name, or the path")))
}

fn outline_file(context: &ToolContext, path: RelPath) -> Result<ToolOutput, ToolError> {
    match context.workspace.stat(&path)? {
        None => return Err(not_found(&context.workspace, path)),
        Some(stat) if stat.kind == StatKind::Directory => {
            let reason =
                "this is a directory; name a file, or give `name` as well to look beneath it".to_owned();
            return Err(ToolError::Path { argument: "path", reason });
        }
        Some(_) => {}
    }
    let asked = context.index.snapshot(&context.cancel)?;
    let snapshot = &*asked.snapshot;
    let mut answer = IndexAnswer::new(context, &asked.note);
    let Some(file) = snapshot.find_file(&path) else {
        let empty =
            format!("{path} is not in the index: it is ignored, or was made just now. read_file shows it.\n");
        return Ok(ToolOutput::text(answer.into_text(Some(empty), "")));
    };
    let mut all = Vec::new();
    snapshot.visit_symbols_of(file, &mut |symbol: SymbolEntry<'_>| {
        let depth = if symbol.scope.is_empty() { 0 } else { symbol.scope.split('.').count() };
        let told = if symbol.signature.is_empty() { symbol.name } else { symbol.signature };
        let last = symbol.first_line.saturating_add(symbol.lines.saturating_sub(1));
        let line = format!("{}-{last} {}{} {told}", symbol.name_line, "  ".repeat(depth), symbol.kind.name());
        all.push((symbol.local, line));
    });
    // Symbols inside functions are left out if they would crowd out the others.
    let bytes: usize = all.iter().map(|(_, line)| line.len() + 1).sum();
    if bytes > context.limits.result_bytes / 4 {
        all.retain(|(local, _)| !local);
    }
    let shown = all.iter().take_while(|(_, line)| answer.add_line(line)).count();
    let empty = all.is_empty().then(|| explain_no_symbols(snapshot, file, &path));
    let narrow = format!("{shown} of {} are shown: give `name` too, or read the file", all.len());
    Ok(ToolOutput::text(answer.into_text(empty, &narrow)))
}

/// Returns the reason why a file has no symbols.
fn explain_no_symbols(snapshot: &Snapshot, file: u32, path: &RelPath) -> String {
    let content = snapshot.file(file).map(|file| file.record.content);
    let why = match content {
        Some(ContentType::Binary) => "it is binary",
        Some(ContentType::Huge) => "it is too long to be taken apart",
        Some(ContentType::Minified) => "a program wrote its lines",
        Some(ContentType::Unreadable) => "it couldn't be read",
        _ => "it has no definitions that are understood",
    };
    format!("{path} defines nothing: {why}.\n")
}

impl Tool for GetSymbols {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let (path, _) = self.read_arguments(input)?;
        Ok(Effects { reads: path.into_iter().collect(), ..Effects::default() })
    }

    fn summary(&self, input: &Value) -> String {
        match self.shape.read_arguments::<GetSymbolsArguments>(input) {
            Ok(GetSymbolsArguments { name: Some(name), .. }) => {
                format!("look up `{}`", to_one_line(&name, MAX_SUMMARY_BYTES))
            }
            Ok(GetSymbolsArguments { path: Some(path), .. }) => {
                format!("outline {}", to_one_line(&path, MAX_SUMMARY_BYTES))
            }
            _ => "look up symbols".to_owned(),
        }
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
