//! The formats that quote whole texts: edit blocks, SEARCH/REPLACE, whole files, tool arguments.

use serde_json::{Value, json};

use super::diff::unique_hunks;
use super::named::Named;

/// The `<edit>` block: by its changed parts, or else by its whole content.
pub(super) fn edit(named: &Named<'_>) -> Vec<String> {
    let change = named.change;
    let mut head = format!("<edit>\n<file>{}</file>\n", named.path);
    if let Some(to) = named.to {
        head.push_str(&format!("<rename>{to}</rename>\n"));
    }
    let block = |body: String| format!("{head}{body}</edit>\n");
    match (&change.before, &change.after) {
        (None, None) => Vec::new(),
        (Some(_), None) => vec![block("<delete/>\n".to_owned())],
        (None, Some(after)) => contents(after).map(|content| block(element("replace", content))).collect(),
        (Some(before), Some(after)) if before == after => vec![block(String::new())],
        (Some(before), Some(after)) => {
            let mut parts = String::new();
            for (search, replace) in pairs(before, after) {
                parts.push_str(&element("search", &search));
                parts.push_str(&element("replace", &replace));
            }
            let wholes = contents(after).map(|content| block(element("replace", content)));
            std::iter::once(block(parts)).chain(wholes).collect()
        }
    }
}

/// A content without its last line break, which the format adds, and with it.
fn contents(text: &str) -> impl Iterator<Item = &str> {
    let short = text.strip_suffix('\n').filter(|short| !short.is_empty());
    short.into_iter().chain([text])
}

/// An element, fenced where its content has tags of the format.
fn element(tag: &str, content: &str) -> String {
    let tags = ["edit>", "file>", "search", "replace", "delete", "rename>", "description>"];
    let looks = content.contains('<') && tags.iter().any(|tag| content.contains(tag));
    if !looks {
        return if content.is_empty() {
            format!("<{tag}></{tag}>\n")
        } else {
            format!("<{tag}>\n{content}\n</{tag}>\n")
        };
    }
    let mut fence = "EOT".to_owned();
    let mut nth = 1;
    while content.contains(&fence) {
        fence = format!("EOT{nth}");
        nth += 1;
    }
    format!("<{tag} fence=\"{fence}\">\n{content}\n{fence}</{tag}>\n")
}

/// Returns pairs of search text and replacement, in whole lines without the last line break.
fn pairs(before: &str, after: &str) -> Vec<(String, String)> {
    let short = |text: String| {
        let end =
            text.strip_suffix('\n').map_or(text.len(), |rest| rest.strip_suffix('\r').unwrap_or(rest).len());
        text.get(..end).unwrap_or_default().to_owned()
    };
    unique_hunks(before, after).iter().map(|hunk| (short(hunk.side('-')), short(hunk.side('+')))).collect()
}

/// SEARCH/REPLACE blocks.
pub(super) fn blocks(named: &Named<'_>) -> Vec<String> {
    let change = named.change;
    if named.to.is_some() {
        return Vec::new();
    }
    let (before, after) = match (&change.before, &change.after) {
        (None, Some(after)) => ("", after.as_str()),
        (Some(before), Some(after)) => (before.as_str(), after.as_str()),
        (_, None) => return Vec::new(),
    };
    let pairs = if before.is_empty() {
        contents(after).map(|content| vec![(String::new(), content.to_owned())]).collect()
    } else {
        vec![pairs(before, after)]
    };
    let lines = |text: &str| if text.is_empty() { String::new() } else { format!("{text}\n") };
    let render = |pairs: Vec<(String, String)>| {
        let mut out = String::new();
        for (search, replace) in pairs {
            let fence = fence_for(&[&search, &replace]);
            out.push_str(&format!(
                "{}\n{fence}\n<<<<<<< SEARCH\n{}=======\n{}>>>>>>> REPLACE\n{fence}\n",
                named.path,
                lines(&search),
                lines(&replace)
            ));
        }
        out
    };
    pairs.into_iter().map(render).collect()
}

/// The whole file in a fenced block.
pub(super) fn whole(named: &Named<'_>) -> Vec<String> {
    let (None, Some(after)) = (named.to, &named.change.after) else { return Vec::new() };
    let fence = fence_for(&[after]);
    let closed = if after.is_empty() || after.ends_with('\n') { "" } else { "\n" };
    vec![format!("{}\n{fence}\n{after}{closed}{fence}\n", named.path)]
}

/// The tool's arguments, one object for each place.
pub(super) fn tool(named: &Named<'_>) -> Vec<String> {
    let change = named.change;
    let (None, Some(after)) = (named.to, &change.after) else { return Vec::new() };
    let call = |old: &str, new: &str| json!({"path": named.path, "old_string": old, "new_string": new});
    let before = change.before.as_deref().unwrap_or("");
    let mut ways = Vec::new();
    if !before.is_empty() {
        let places: Vec<Value> =
            unique_hunks(before, after).iter().map(|hunk| call(&hunk.side('-'), &hunk.side('+'))).collect();
        ways.push(json!({ "edits": places }).to_string());
    }
    ways.push(json!({ "edits": [call(before, after)] }).to_string());
    ways
}

/// Several files' arguments in one.
pub(super) fn joined_calls(parts: &[String]) -> String {
    let mut calls = Vec::new();
    for part in parts {
        if let Ok(Value::Object(mut object)) = serde_json::from_str(part)
            && let Some(Value::Array(edits)) = object.remove("edits")
        {
            calls.extend(edits);
        }
    }
    json!({ "edits": calls }).to_string()
}

/// A fence that is longer than any in the texts.
fn fence_for(texts: &[&str]) -> String {
    let longest = texts
        .iter()
        .flat_map(|text| text.lines())
        .map(|line| line.trim_start())
        .map(|line| line.len() - line.trim_start_matches('`').len())
        .max()
        .unwrap_or(0);
    "`".repeat(longest.saturating_add(1).max(3))
}
