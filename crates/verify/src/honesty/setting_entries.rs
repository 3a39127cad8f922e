//! Reads settings files as entries: a path of keys, and the values beneath it.

use crate::test_files::file_name;

/// Maximum number of entries of a file.
const MAX_ENTRIES: usize = 5_000;

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SettingEntry {
    /// The names above the setting and its own, joined by dots, in lower case.
    pub(super) key: String,
    /// The values: one, or the items of a list.
    pub(super) values: Vec<String>,
    pub(super) line: u32,
}

impl SettingEntry {
    /// Returns the last name of the key.
    pub(super) fn name(&self) -> &str {
        self.key.rsplit('.').next().unwrap_or(&self.key)
    }
}

/// Reads the settings of a file in the format that its name implies; none for other files.
pub(super) fn read_settings(path: &str, text: &str) -> Vec<SettingEntry> {
    let name = file_name(path).to_ascii_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, end)| end);
    let mut entries = match extension {
        "yml" | "yaml" | "neon" => parse_indented(text),
        "xml" | "dist" | "csproj" | "fsproj" | "props" | "runsettings" | "targets" => parse_tags(text),
        "json" | "jsonc" | "json5" | "js" | "cjs" | "mjs" | "ts" | "mts" | "gradle" | "kts" | "exs"
        | "rb" => parse_bracketed(text),
        _ if name.starts_with(".eslintrc") || name.starts_with(".mocharc") || name.starts_with(".nycrc") => {
            parse_bracketed(text)
        }
        _ => parse_key_lines(text),
    };
    entries.truncate(MAX_ENTRIES);
    entries
}

fn line_number(at: usize) -> u32 {
    u32::try_from(at + 1).unwrap_or(u32::MAX)
}

fn strip_value_quotes(text: &str) -> String {
    text.trim().trim_matches(['"', '\'', '`', ',', ';']).trim().to_owned()
}

/// Reads `[section]` and `key = value`, with lists over several lines: TOML, INI.
fn parse_key_lines(text: &str) -> Vec<SettingEntry> {
    let mut entries: Vec<SettingEntry> = Vec::new();
    let mut section = String::new();
    let mut open = 0_i64;
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') || trimmed.starts_with(';') {
            continue;
        }
        let brackets = count_chars(trimmed, &['[', '{']) - count_chars(trimmed, &[']', '}']);
        let continues =
            open > 0 || line.starts_with([' ', '\t']) && !trimmed.contains(" = ") && !entries.is_empty();
        if continues {
            if let Some(last) = entries.last_mut() {
                last.values.extend(split_list(trimmed));
            }
            open = (open + brackets).max(0);
        } else if trimmed.starts_with('[') && trimmed.ends_with(']') && !trimmed.contains('=') {
            section = trimmed.trim_matches(['[', ']']).replace('"', "").to_ascii_lowercase();
        } else if let Some((key, value)) = trimmed.split_once('=') {
            let key = strip_value_quotes(key).to_ascii_lowercase();
            let key = if section.is_empty() { key } else { format!("{section}.{key}") };
            entries.push(SettingEntry { key, values: split_list(value), line: line_number(at) });
            open = brackets.max(0);
        }
    }
    entries
}

#[allow(clippy::cast_possible_wrap, reason = "counts of characters of one line")]
fn count_chars(text: &str, signs: &[char]) -> i64 {
    text.matches(signs).count() as i64
}

/// Splits a list into its items; a value that is no list is a single item.
fn split_list(value: &str) -> Vec<String> {
    let value = value.trim();
    let table = value.starts_with('{');
    let inner = value.trim_matches(['[', ']', '{', '}']);
    let is_list = value.starts_with('[') || value.ends_with(',') || value.ends_with(']') || table;
    let parts: Vec<String> = match is_list {
        true => inner.split(',').map(strip_value_quotes).filter(|item| !item.is_empty()).collect(),
        false => std::iter::once(strip_value_quotes(value.split(" #").next().unwrap_or(value)))
            .filter(|item| !item.is_empty())
            .collect(),
    };
    match table {
        // `{ level = "deny" }`.
        true => parts
            .iter()
            .map(|part| strip_value_quotes(part.split_once('=').map_or(part.as_str(), |(_, value)| value)))
            .collect(),
        false => parts,
    }
}

/// Reads `key: value` and `- item` by their indentation.
fn parse_indented(text: &str) -> Vec<SettingEntry> {
    let mut entries: Vec<SettingEntry> = Vec::new();
    let mut above: Vec<(usize, String)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let bare = trimmed.trim_start_matches("- ");
        let key_value = bare
            .split_once(':')
            .filter(|(key, value)| !key.contains([' ', '"']) && (value.is_empty() || value.starts_with(' ')));
        let depth = indent + (trimmed.len() - bare.len());
        above.retain(|(other, _)| *other < depth);
        let prefix: Vec<&str> = above.iter().map(|(_, key)| key.as_str()).collect();
        match key_value {
            Some((key, value)) => {
                let key = strip_value_quotes(key).to_ascii_lowercase();
                let full = prefix.iter().copied().chain([key.as_str()]).collect::<Vec<_>>().join(".");
                entries.push(SettingEntry { key: full, values: split_list(value), line: line_number(at) });
                above.push((depth, key));
            }
            None => {
                if let Some(last) = entries.last_mut() {
                    last.values.push(strip_value_quotes(bare));
                }
            }
        }
    }
    entries
}

/// Reads `<key>value</key>` and attributes.
fn parse_tags(text: &str) -> Vec<SettingEntry> {
    let mut entries = Vec::new();
    let mut above: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        let at = text.len() - rest.len() + open;
        let Some(tail) = rest.get(open + 1..) else { break };
        let Some(close) = tail.find('>') else { break };
        let tag = tail.get(..close).unwrap_or_default();
        rest = tail.get(close + 1..).unwrap_or_default();
        if let Some(name) = tag.strip_prefix('/') {
            if let Some(depth) = above.iter().rposition(|one| *one == name.trim().to_ascii_lowercase()) {
                above.truncate(depth);
            }
            continue;
        }
        if tag.starts_with(['!', '?']) || entries.len() >= MAX_ENTRIES {
            continue;
        }
        let line = line_number(text.get(..at).unwrap_or_default().matches('\n').count());
        let name = tag.split([' ', '/', '\n', '\t']).next().unwrap_or_default().to_ascii_lowercase();
        let full = above.iter().map(String::as_str).chain([name.as_str()]).collect::<Vec<_>>().join(".");
        let value = rest.get(..rest.find('<').unwrap_or(0)).unwrap_or_default().trim();
        if !value.is_empty() {
            entries.push(SettingEntry { key: full.clone(), values: vec![value.to_owned()], line });
        }
        for part in tag.split_whitespace().skip(1) {
            if let Some((key, value)) = part.split_once('=') {
                let key = format!("{full}.{}", key.to_ascii_lowercase());
                entries.push(SettingEntry {
                    key,
                    values: vec![strip_value_quotes(value.trim_end_matches('/'))],
                    line,
                });
            }
        }
        if !tag.ends_with('/') && above.len() < 100 {
            above.push(name);
        }
    }
    entries
}

/// Reads `key: value` and `key = value` between brackets: JSON, JavaScript, Gradle, Elixir.
fn parse_bracketed(text: &str) -> Vec<SettingEntry> {
    let mut entries: Vec<SettingEntry> = Vec::new();
    let mut above: Vec<Option<String>> = Vec::new();
    let mut key: Option<(String, u32)> = None;
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.starts_with("//") || trimmed.starts_with('#') || trimmed.starts_with('*') {
            continue;
        }
        for piece in split_line(trimmed) {
            match piece {
                "{" | "[" | "(" => {
                    above.push(key.take().map(|(key, _)| key));
                    if above.len() > 200 {
                        return entries;
                    }
                }
                "}" | "]" | ")" => {
                    above.pop();
                    key = None;
                }
                "," | ";" => key = None,
                ":" | "=" | "=>" => {}
                value => {
                    let prefix: Vec<&str> = above.iter().flatten().map(String::as_str).collect();
                    match key.take() {
                        Some((name, line)) => {
                            let full =
                                prefix.iter().copied().chain([name.as_str()]).collect::<Vec<_>>().join(".");
                            entries.push(SettingEntry {
                                key: full,
                                values: vec![strip_value_quotes(value)],
                                line,
                            });
                        }
                        None if is_key(trimmed, value) => {
                            key = Some((strip_value_quotes(value).to_ascii_lowercase(), line_number(at)))
                        }
                        None => add_item(
                            &mut entries,
                            &prefix.join("."),
                            strip_value_quotes(value),
                            line_number(at),
                        ),
                    }
                }
            }
        }
        // A statement ends with its line in Gradle and Elixir.
        if !trimmed.ends_with([':', '=', '(', '[', '{', ','])
            && key.is_some()
            && !trimmed.starts_with(['"', '\''])
        {
            key = None;
        }
    }
    entries
}

fn add_item(entries: &mut Vec<SettingEntry>, key: &str, value: String, line: u32) {
    match entries.iter_mut().rev().take(50).find(|entry| entry.key == key) {
        Some(entry) => entry.values.push(value),
        None => entries.push(SettingEntry { key: key.to_owned(), values: vec![value], line }),
    }
}

/// Returns true if a piece of a line is a key: a colon or an equals sign follows it.
fn is_key(line: &str, piece: &str) -> bool {
    line.find(piece).and_then(|at| line.get(at + piece.len()..)).is_some_and(|rest| {
        let rest = rest.trim_start();
        (rest.starts_with(':') || rest.starts_with('=') && !rest.starts_with("==") || rest.starts_with("=>"))
            && !rest.starts_with("::")
    })
}

/// Splits a line at brackets and separators, outside of quotes.
fn split_line(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut quote: Option<char> = None;
    for (at, c) in line.char_indices() {
        if let Some(open) = quote {
            if c == open {
                quote = None;
            }
            continue;
        }
        if matches!(c, '"' | '\'' | '`') {
            quote = Some(c);
        } else if matches!(c, '{' | '}' | '[' | ']' | '(' | ')' | ',' | ';' | ':' | '=') {
            let before = line.get(start..at).unwrap_or_default().trim();
            if !before.is_empty() {
                found.push(before);
            }
            found.extend(line.get(at..at + 1));
            start = at + 1;
        }
    }
    let last = line.get(start..).unwrap_or_default().trim();
    if !last.is_empty() {
        found.push(last);
    }
    found
}
