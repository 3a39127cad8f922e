//! Measures placement on a folder of cases: `cargo run --release --example score -- FOLDER [--list STATUS] [--out FILE]`.
//!
//! A case list is a JSON array; of each case with format `search_replace`, strength `exact` or `consensus` and
//! no tag `policy` or `sandbox`, the normalised `edits` are applied to `files_before`. Prints how many came to the
//! expected tree (`pass`), were refused, or came to another (`wrong`). `--out` writes one JSON line a case.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use journeyman_edit::{Hunk, place};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Case {
    id: String,
    format: String,
    strength: String,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    files_before: BTreeMap<String, String>,
    files_after: Option<BTreeMap<String, String>>,
    #[serde(default)]
    expect_error: bool,
    edits: Option<Vec<CaseEdit>>,
}

#[derive(Deserialize)]
struct CaseEdit {
    path: String,
    old: String,
    new: String,
    #[serde(default)]
    replace_all: bool,
    #[serde(default)]
    line_based: bool,
    line_hint: Option<u32>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: score FOLDER [--list STATUS] [--out FILE]")?;
    let (mut list, mut out) = (None, None);
    while let Some(option) = arguments.next() {
        match option.as_str() {
            "--list" => list = arguments.next(),
            "--out" => out = arguments.next(),
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut lines = String::new();
    let mut slowest = Duration::ZERO;
    for case in cases(Path::new(&folder))? {
        let begun = Instant::now();
        let result = case.edits.as_ref().map(|edits| apply(&case.files_before, edits));
        slowest = slowest.max(begun.elapsed());
        let status = grade(&case, result.as_ref());
        *counts.entry(status).or_default() += 1;
        if list.as_deref() == Some(status) {
            println!("{status} {}", case.id);
            if let Some(Err(why)) = &result {
                println!("    {}", why.replace('\n', "\n    "));
            }
        }
        let line = match result {
            Some(Ok(files)) => json!({"id": case.id, "files": files}),
            Some(Err(why)) => json!({"id": case.id, "error": why}),
            None => json!({"id": case.id, "error": "not normalised"}),
        };
        lines.push_str(&line.to_string());
        lines.push('\n');
    }
    if let Some(path) = out {
        std::fs::write(path, lines)?;
    }
    let unparsed = counts.remove("unparsed").unwrap_or_default();
    let all: usize = counts.values().sum();
    for (status, count) in &counts {
        println!("{status:10} {count:5} {:5.1} %", 100.0 * *count as f64 / all.max(1) as f64);
    }
    println!("{:10} {all:5}   slowest {slowest:?}", "all");
    println!("{unparsed} more cases have no normalised edits: they test a parser");
    Ok(())
}

fn cases(folder: &Path) -> Result<Vec<Case>, Box<dyn std::error::Error>> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.retain(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.ends_with(".json") && !name.starts_with('_')
    });
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let cases: Vec<Case> = serde_json::from_slice(&std::fs::read(&path)?)?;
        all.extend(cases.into_iter().filter(|case| {
            case.format == "search_replace"
                && matches!(case.strength.as_str(), "exact" | "consensus")
                && !case.tags.iter().any(|tag| tag == "policy" || tag == "sandbox")
        }));
    }
    Ok(all)
}

fn apply(before: &BTreeMap<String, String>, edits: &[CaseEdit]) -> Result<BTreeMap<String, String>, String> {
    let mut files = before.clone();
    for edit in edits {
        let text = files.get(&edit.path).map(String::as_str);
        let hunk = Hunk {
            all: edit.replace_all,
            near: edit.line_hint,
            whole_lines: edit.line_based,
            ..Hunk::new(&edit.old, &edit.new)
        };
        let new = match text {
            None if edit.old.is_empty() => edit.new.clone(),
            None => return Err("no such file".to_owned()),
            Some(text) => place(text, &hunk).map_err(|refusal| refusal.to_string())?.text,
        };
        files.insert(edit.path.clone(), new);
    }
    Ok(files)
}

fn grade(case: &Case, result: Option<&Result<BTreeMap<String, String>, String>>) -> &'static str {
    let trimmed = |files: &BTreeMap<String, String>| -> BTreeMap<String, String> {
        let end = |text: &String| text.trim_end_matches(['\r', '\n']).to_owned();
        files.iter().map(|(path, text)| (path.trim_start_matches('/').to_owned(), end(text))).collect()
    };
    match result {
        None => "unparsed",
        Some(Err(_)) if case.expect_error => "pass",
        Some(Err(_)) => "refused",
        Some(Ok(_)) if case.expect_error => "wrong",
        Some(Ok(files)) => match case.files_after.as_ref().map(trimmed) {
            Some(after) if after == trimmed(files) => "pass",
            _ => "wrong",
        },
    }
}
