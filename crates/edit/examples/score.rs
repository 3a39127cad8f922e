//! Applies exported cases: `score.py export | cargo run --release --example score [-- --normalised]
//! > results.jsonl`.
//!
//! Reads one JSON case a line (`id`, `format`, `files_before`, `edit_text`, `edits`, `target`, …)
//! and writes one result a line (`id` with `files` or `error`), for `score.py grade`. A case is
//! read from its raw text as the named format, the way `jm apply --format F --path TARGET` does;
//! with `--normalised`, search/replace cases are given as the tool's arguments instead, which
//! leaves the parser out. With `--requests` nothing is applied: each line is what to give to `jm
//! apply` (`id`, `format`, `path`, `reply`, `files`).

use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};

use journeyman_edit::{ApplyOptions, Format, plan};
use journeyman_protocol::RelPath;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Case {
    id: String,
    format: String,
    #[serde(default)]
    dialect: String,
    #[serde(default)]
    files_before: BTreeMap<String, String>,
    #[serde(default)]
    edit_text: String,
    edits: Option<Vec<Value>>,
    target: Option<String>,
    mode: Option<String>,
    #[serde(default)]
    params: BTreeMap<String, Value>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let says = |word: &str| std::env::args().any(|argument| argument == word);
    let (normalised, requests) = (says("--normalised"), says("--requests"));
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let case: Case = serde_json::from_str(&line?)?;
        if requests {
            let line = match request(&case, normalised) {
                Ok((format, reply)) => {
                    json!({"id": case.id, "format": format.name(), "path": case.target, "reply": reply,
                        "files": case.files_before})
                }
                Err(why) => json!({"id": case.id, "error": why}),
            };
            writeln!(out, "{line}")?;
            continue;
        }
        let result = match apply(&case, normalised) {
            Ok(files) => json!({"id": case.id, "files": files}),
            Err(why) => json!({"id": case.id, "error": why}),
        };
        writeln!(out, "{result}")?;
    }
    Ok(())
}

/// The format that a case is in, and the reply.
fn request(case: &Case, normalised: bool) -> Result<(Format, String), String> {
    Ok(match (&case.edits, case.format.as_str()) {
        (Some(edits), "search_replace") if normalised => {
            (Format::Tool, json!({ "edits": edits }).to_string())
        }
        (_, "search_replace") if case.dialect.starts_with("json:") => {
            (Format::Tool, with_hint(&case.edit_text, &case.params))
        }
        (_, "search_replace") => (Format::Blocks, with_header(&case.edit_text, &case.params)),
        (_, "udiff") if case.dialect == "conflict-markers" => (Format::Blocks, case.edit_text.clone()),
        (_, "udiff") => (Format::Udiff, case.edit_text.clone()),
        (_, "apply_patch") => (Format::Patch, in_mode(case)),
        (_, "whole") => (Format::Whole, case.edit_text.clone()),
        (_, "lazy") => (Format::Lazy, case.edit_text.clone()),
        (_, other) => return Err(format!("unknown format {other}")),
    })
}

fn apply(case: &Case, normalised: bool) -> Result<BTreeMap<String, String>, String> {
    let rel = |path: &str| RelPath::parse(path.trim_start_matches('/')).map_err(|error| error.to_string());
    let mut files: BTreeMap<RelPath, String> = BTreeMap::new();
    for (path, text) in &case.files_before {
        files.insert(rel(path)?, text.clone());
    }
    let (format, reply) = request(case, normalised)?;
    let path = case.target.as_deref().map(rel).transpose()?;
    let plan = plan(&reply, &ApplyOptions { format: Some(format), path, ..ApplyOptions::default() }, &files);
    if let Some(failure) = plan.failed.first() {
        return Err(failure.message.clone());
    }
    if plan.changes.is_empty() {
        return Err(plan.unchanged.first().map_or("nothing was done".to_owned(), |one| one.reason.clone()));
    }
    for change in plan.changes_to_write() {
        files.remove(&change.path);
        if let Some(after) = &change.after {
            files.insert(change.to.clone().unwrap_or_else(|| change.path.clone()), after.clone());
        }
    }
    let name = |path: &RelPath| String::from_utf8_lossy(path.as_bytes()).into_owned();
    Ok(files.into_iter().map(|(path, text)| (name(&path), text)).collect())
}

/// A line hint that came beside the tool's arguments, put among them.
fn with_hint(arguments: &str, params: &BTreeMap<String, Value>) -> String {
    let hint = params.get("start_line").and_then(Value::as_u64);
    let (Some(hint), Ok(Value::Object(mut object))) = (hint, serde_json::from_str(arguments)) else {
        return arguments.to_owned();
    };
    object.insert("line_hint".to_owned(), json!(hint));
    Value::Object(object).to_string()
}

/// A line hint that came beside a block, put into it as its dialect does.
fn with_header(reply: &str, params: &BTreeMap<String, Value>) -> String {
    let hint = params.get("start_line").and_then(Value::as_u64);
    match hint {
        Some(hint) if !reply.contains(":start_line:") => {
            reply.replace("<<<<<<< SEARCH\n", &format!("<<<<<<< SEARCH\n:start_line:{hint}\n-------\n"))
        }
        _ => reply.to_owned(),
    }
}

/// A patch without its envelope that creates a file says so only beside its text.
fn in_mode(case: &Case) -> String {
    match (case.mode.as_deref(), &case.target) {
        (Some("create"), Some(target)) => {
            format!("*** Begin Patch\n*** Add File: {target}\n{}\n*** End Patch", case.edit_text)
        }
        _ => case.edit_text.clone(),
    }
}
