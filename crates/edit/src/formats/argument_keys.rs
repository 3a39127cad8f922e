//! The keys of edit tools' arguments, in the spellings of the known tools.

use serde_json::{Map, Value};

use crate::formats::argument_values::first_present_key;

pub(crate) const PATH_KEYS: [&str; 10] = [
    "path",
    "file_path",
    "filePath",
    "filepath",
    "file",
    "filename",
    "target_file",
    "relative_path",
    "uri",
    "file_name",
];

pub(crate) const OLD_TEXT_KEYS: [&str; 10] = [
    "old_string",
    "oldString",
    "old_str",
    "oldStr",
    "old",
    "oldText",
    "old_text",
    "search",
    "old_content",
    "original",
];

pub(crate) const NEW_TEXT_KEYS: [&str; 10] = [
    "new_string",
    "newString",
    "new_str",
    "newStr",
    "new",
    "newText",
    "new_text",
    "replace",
    "replacement",
    "new_content",
];

pub(crate) const CONTENT_KEYS: [&str; 5] = ["content", "contents", "file_text", "fileText", "text"];

pub(crate) const EDIT_LIST_KEYS: [&str; 6] =
    ["edits", "edit", "replacements", "changes", "operations", "patches"];

/// Parts of keys that ask for all places, in small letters without underscores.
const REPLACE_ALL_KEY_PARTS: [&str; 7] = [
    "replaceall",
    "replacemultiple",
    "allowmultiple",
    "alloccurrences",
    "allmatches",
    "multiplematches",
    "multipleoccurrences",
];
/// Words of keys that say how many places are meant: one occurrence may be the last one.
const COUNT_WORDS: [&str; 4] = ["occurrences", "replacements", "matches", "count"];
/// Words of keys of a text that is looked for, of one that comes, and of a file's name, where no
/// key is one of the usual.
const SEARCHED_WORDS: [&str; 7] = ["match", "matching", "find", "search", "old", "original", "existing"];
const NEW_WORDS: [&str; 7] = ["new", "replace", "replaced", "replacement", "replacing", "updated", "with"];
const FILE_WORDS: [&str; 6] = ["path", "file", "filename", "filepath", "uri", "document"];
/// The only other words of such keys, of texts and of files. A key with a further word may say
/// anything: `old_sha`, `match_type`, `original_author`.
const TEXT_WORDS: [&str; 12] =
    ["text", "string", "str", "content", "contents", "code", "block", "snippet", "lines", "to", "for", "the"];
const FILE_KEY_WORDS: [&str; 8] = ["target", "edit", "to", "the", "name", "relative", "absolute", "full"];
/// Words of keys that say which part of a file is meant.
const PART_WORDS: [&str; 9] =
    ["line", "lines", "range", "start", "end", "offset", "position", "anchor", "index"];
/// Words that say that a content comes to a file, and the modes of opening it that do.
const ADDING_WORDS: [&str; 4] = ["append", "appending", "prepend", "prepending"];
/// Words of a command that puts a content somewhere into a file.
const ADDING_COMMANDS: [&str; 2] = ["insert", "add"];
const ADDING_MODES: [&str; 4] = ["a", "a+", "ab", "at"];
/// Keys that say where in a file a text goes: it is no whole file then.
pub(super) const PLACE_KEYS: [&str; 18] = [
    "insert_line",
    "insertLine",
    "line",
    "line_number",
    "lineNumber",
    "start_line",
    "startLine",
    "end_line",
    "endLine",
    "after",
    "before",
    "insert_after",
    "insertAfter",
    "insert_before",
    "insertBefore",
    "anchor",
    "position",
    "offset",
];
/// Keys under which calls carry their arguments one level deeper.
pub(super) const WRAPPER_KEYS: [&str; 11] = [
    "arguments",
    "input",
    "parameters",
    "params",
    "args",
    "function",
    "functionCall",
    "function_call",
    "tool_calls",
    "toolCalls",
    "tool_input",
];
/// Commands that say more than that something is edited.
const KNOWN_COMMANDS: [&str; 13] = [
    "view",
    "read",
    "undo_edit",
    "undo",
    "insert",
    "delete",
    "delete_file",
    "remove",
    "rename",
    "move",
    "create",
    "overwrite",
    "write",
];
/// Keys under which a call says what to do.
const COMMAND_KEYS: [&str; 12] = [
    "command",
    "operation",
    "type",
    "mode",
    "action",
    "op",
    "kind",
    "edit_type",
    "editType",
    "change_type",
    "changeType",
    "action_type",
];
/// A text of at least so many bytes that is in a file was taken from it, whatever its key says.
const MIN_QUOTED_BYTES: usize = 20;
/// Maximum number of keys whose texts are looked for in the file.
const MAX_COMPARED_KEYS: usize = 32;
/// A longer text names no file, in bytes.
const MAX_PATH_BYTES: usize = 400;
/// Names of the text that goes and of the one that comes, which only together tell an edit.
const TEXT_KEY_PAIRS: [(&str, &str); 12] = [
    ("before", "after"),
    ("old", "new"),
    ("original", "new"),
    ("original", "modified"),
    ("original", "updated"),
    ("original", "replacement"),
    ("find", "replace"),
    ("search", "replace"),
    ("target", "replacement"),
    ("find", "replacement"),
    ("find", "with"),
    ("replace", "with"),
];
/// Ends of such names, without their underscores.
const TEXT_KEY_ENDS: [&str; 7] = ["string", "str", "text", "content", "code", "snippet", "lines"];
/// Returns true if a text has a key that the arguments of edit tools have.
pub(crate) fn has_tool_argument_keys(text: &str) -> bool {
    const NAMES: [&str; 30] = [
        "\"old_string\"",
        "\"oldString\"",
        "\"old_str\"",
        "\"oldStr\"",
        "\"old\"",
        "\"oldText\"",
        "\"old_text\"",
        "\"search\"",
        "\"new_string\"",
        "\"newString\"",
        "\"new_str\"",
        "\"newText\"",
        "\"new_text\"",
        "\"edits\"",
        "\"replacements\"",
        "\"symbol\"",
        "\"file_text\"",
        "\"content\"",
        "\"contents\"",
        "\"insert_line\"",
        "\"command\"",
        "\"code_edit\"",
        "\"find\"",
        "\"old_code\"",
        "\"oldCode\"",
        "\"old_content\"",
        "\"original_code\"",
        "\"new_code\"",
        "\"newCode\"",
        "\"replacement\"",
    ];
    let has = |name: &str| memchr::memmem::find(text.as_bytes(), name.as_bytes()).is_some();
    NAMES.into_iter().any(has)
}

/// The arguments with the usual keys, where the two texts have other names that belong together:
/// `before` and `after`, `find` and `replace`, `original_content` and `new_content`. Any of these
/// alone may say something else, such as where a text goes. Both may be lists of lines.
pub(super) fn read_paired_keys(object: &Map<String, Value>) -> Option<Map<String, Value>> {
    let has = |keys: &[&str]| keys.iter().any(|key| object.contains_key(*key));
    if has(&OLD_TEXT_KEYS) {
        return None;
    }
    let stem = |key: &str| -> String {
        let plain = plain_key(key);
        let name =
            TEXT_KEY_ENDS.iter().find_map(|end| plain.strip_suffix(end)).filter(|name| !name.is_empty());
        name.unwrap_or(&plain).to_owned()
    };
    let is_line = |value: &Value| value.as_str().is_some_and(|line| !line.contains('\n'));
    let is_text =
        |value: &Value| value.is_string() || value.as_array().is_some_and(|lines| lines.iter().all(is_line));
    let texts = object.iter().filter(|(_, value)| is_text(value));
    let texts: Vec<(String, &Value)> = texts.map(|(key, value)| (stem(key), value)).collect();
    let mut pairs = TEXT_KEY_PAIRS.iter().filter_map(|(old, new)| {
        let find = |wanted: &str| texts.iter().find(|(name, _)| name == wanted).map(|(_, value)| *value);
        Some((find(old)?, find(new)?))
    });
    let ((old, new), None) = (pairs.next()?, pairs.next()) else { return None };
    let mut usual = object.clone();
    let (old, new) = match (old.as_array(), new.as_array()) {
        (Some(old), Some(new)) if !old.is_empty() => {
            usual.insert("line_based".to_owned(), Value::Bool(true));
            (join_lines(old), join_lines(new))
        }
        (None, None) => (old.clone(), new.clone()),
        _ => return None,
    };
    usual.insert("old_string".to_owned(), old);
    usual.insert("new_string".to_owned(), new);
    Some(usual)
}

fn join_lines(lines: &[Value]) -> Value {
    let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
    Value::String(lines.join("\n"))
}

/// Returns the keys of an object whose names in small letters without underscores fit.
pub(super) fn keys_where(object: &Map<String, Value>, fits: impl Fn(&str) -> bool) -> Vec<&str> {
    object.keys().map(String::as_str).filter(|key| fits(&plain_key(key))).collect()
}

/// Returns the keys that ask for all places.
pub(super) fn replace_all_keys(object: &Map<String, Value>) -> Vec<&str> {
    keys_where(object, |key| {
        matches!(key, "all" | "multiple") || REPLACE_ALL_KEY_PARTS.iter().any(|part| key.contains(part))
    })
}

/// Returns true if a key says that as many places are meant as there are: -1, or "all".
pub(super) fn counts_all(object: &Map<String, Value>) -> bool {
    object.iter().any(|(key, value)| {
        let has = |word: &str| key_words(key).iter().any(|own| own == word);
        let counts = COUNT_WORDS.iter().any(|word| has(word));
        match value {
            Value::Number(number) => counts && number.as_i64().is_some_and(|number| number < 0),
            Value::String(text) if text.trim() == "-1" => counts,
            Value::String(text) => text.eq_ignore_ascii_case("all") && (counts || has("occurrence")),
            _ => false,
        }
    })
}

/// Returns the only text under a key that names what is looked for, in words of its own.
pub(super) fn read_searched_text(object: &Map<String, Value>) -> Option<&str> {
    only_text(object, &SEARCHED_WORDS, &TEXT_WORDS).filter(|text| !text.is_empty())
}

/// Returns the only text under a key that names what comes, in words of its own.
pub(super) fn read_new_text(object: &Map<String, Value>) -> Option<&str> {
    only_text(object, &NEW_WORDS, &TEXT_WORDS)
}

/// Returns the only text under a key that names a file, in words of its own.
pub(super) fn read_path(object: &Map<String, Value>) -> Option<&str> {
    only_text(object, &FILE_WORDS, &FILE_KEY_WORDS)
        .filter(|path| !path.is_empty() && path.len() <= MAX_PATH_BYTES && !path.contains('\n'))
}

/// Returns a key, neither of a path nor of a whole content, under which a text or a list of lines
/// of `file` stands: a long one, of several lines, or one that the key's words call looked for.
pub(super) fn find_quoting_key<'v>(object: &'v Map<String, Value>, file: &str) -> Option<&'v str> {
    let others = object
        .iter()
        .filter(|(key, _)| !PATH_KEYS.contains(&key.as_str()) && !CONTENT_KEYS.contains(&key.as_str()));
    let mut quoting = others.take(MAX_COMPARED_KEYS).filter(|(key, value)| {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Array(lines) => {
                let lines: Option<Vec<&str>> = lines.iter().map(Value::as_str).collect();
                lines.unwrap_or_default().join("\n")
            }
            _ => return false,
        };
        let text = text.trim();
        let is_searched = || key_words(key).iter().any(|word| SEARCHED_WORDS.contains(&word.as_str()));
        !text.is_empty()
            && (text.len() >= MIN_QUOTED_BYTES || text.contains('\n') || is_searched())
            && memchr::memmem::find(file.as_bytes(), text.as_bytes()).is_some()
    });
    quoting.next().map(|(key, _)| key.as_str())
}

/// Returns a key with a value that is for a part of a file: a text of it, or a place in it.
pub(super) fn find_part_key(object: &Map<String, Value>) -> Option<&str> {
    let is_given = |value: &Value| !value.is_null() && value.as_str() != Some("");
    let is_text = |key: &str| {
        [&OLD_TEXT_KEYS[..], &NEW_TEXT_KEYS, &CONTENT_KEYS].iter().any(|keys| keys.contains(&key))
    };
    let is_part =
        |word: &String| PART_WORDS.contains(&word.as_str()) || SEARCHED_WORDS.contains(&word.as_str());
    let mut parts = object.iter().filter(|(key, value)| {
        is_given(value)
            && !PATH_KEYS.contains(&key.as_str())
            && (is_text(key) || key_words(key).iter().any(is_part))
    });
    parts.next().map(|(key, _)| key.as_str())
}

/// Returns the command that a call gives: a known one before another under an earlier key.
pub(super) fn read_command(object: &Map<String, Value>) -> Option<&str> {
    let commands = || COMMAND_KEYS.iter().filter_map(|key| object.get(*key)?.as_str());
    commands().find(|command| KNOWN_COMMANDS.contains(command)).or_else(|| commands().next())
}

/// Words of keys that say which part of a file a content is, and those with a name of the part.
const CONTENT_PART_WORDS: [&str; 10] =
    ["where", "location", "selection", "chunk", "partial", "range", "position", "anchor", "region", "offset"];
const NAMED_PART_WORDS: [&str; 5] = ["section", "function", "method", "class", "symbol"];

/// Returns a key that says that a content is a part of `file`, or is none of it if it has one.
pub(super) fn find_content_part_key<'v>(object: &'v Map<String, Value>, file: &str) -> Option<&'v str> {
    let is_part = |(key, value): &(&String, &Value)| {
        let words = key_words(key);
        let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
        match value {
            Value::Null | Value::Bool(false) => has(&["overwrite"]) && !value.is_null(),
            Value::String(text) if text.is_empty() => false,
            Value::String(text) => {
                has(&CONTENT_PART_WORDS) || (has(&NAMED_PART_WORDS) && file.contains(text.as_str()))
            }
            Value::Bool(true) => has(&CONTENT_PART_WORDS) || words == ["at", "end"],
            _ => has(&CONTENT_PART_WORDS),
        }
    };
    let is_other = |key: &str| !PATH_KEYS.contains(&key) && !CONTENT_KEYS.contains(&key);
    object.iter().filter(|(key, _)| is_other(key)).find(is_part).map(|(key, _)| key.as_str())
}

/// Keys, in small letters without underscores, that ask for a report in place of a change.
const TRIAL_KEYS: [&str; 9] = [
    "dryrun",
    "preview",
    "previewonly",
    "simulate",
    "validateonly",
    "checkonly",
    "noop",
    "whatif",
    "testonly",
];

/// Returns a key that asks for nothing to be written.
pub(super) fn find_trial_key(object: &Map<String, Value>) -> Option<&str> {
    let asks = |value: &Value| match value {
        Value::Bool(asks) => *asks,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => {
            !["", "false", "no", "0", "off"].contains(&text.trim().to_ascii_lowercase().as_str())
        }
        _ => false,
    };
    let is_trial = |word: &str| TRIAL_KEYS.contains(&key_words(word).concat().as_str());
    let is_command =
        |key: &str, value: &Value| COMMAND_KEYS.contains(&key) && value.as_str().is_some_and(is_trial);
    let mut keys =
        object.iter().filter(|(key, value)| (is_trial(key) && asks(value)) || is_command(key, value));
    keys.next().map(|(key, _)| key.as_str())
}

/// Returns the reason why a search text with its replacement can't be what a call asks for.
pub(super) fn explain_other_replacement(object: &Map<String, Value>, new: &str) -> Option<String> {
    let command = |words: &[&str]| {
        let commands = COMMAND_KEYS.iter().filter_map(|key| object.get(*key)?.as_str());
        let mut found =
            commands.filter(|command| key_words(command).iter().any(|word| words.contains(&word.as_str())));
        found.next()
    };
    let is_pattern = |(key, value): (&String, &Value)| {
        let says = |word: &String| matches!(word.as_str(), "regex" | "regexp");
        key_words(key).iter().any(says) && !matches!(value, Value::Null | Value::Bool(false))
    };
    let has_anchor = ["insert_after", "insertAfter", "insert_before", "insertBefore"]
        .iter()
        .any(|key| object.get(*key).is_some_and(Value::is_string));
    let adds = command(&ADDING_WORDS).or_else(|| command(&ADDING_COMMANDS));
    if let Some(adds) = adds.filter(|_| !has_anchor) {
        return Some(format!(
            "`{adds}` adds to the text that it finds, and a replacement takes it away: repeat that text in \
             \"new_string\" without the command"
        ));
    }
    if let Some(deletes) = command(&["delete", "remove"]).filter(|_| !new.is_empty()) {
        return Some(format!("it says `{deletes}` and has a replacement: give one of the two"));
    }
    object.iter().any(is_pattern).then(|| {
        "a search text is no pattern: give the text as it stands in the file, without asking for one"
            .to_owned()
    })
}

/// Returns a key that says that a content is put before or after what a file has.
pub(super) fn find_adding_key(object: &Map<String, Value>) -> Option<&str> {
    let adds = |words: &str| key_words(words).iter().any(|word| ADDING_WORDS.contains(&word.as_str()));
    let mut keys = object.iter().filter(|(key, value)| match value {
        Value::String(text) if COMMAND_KEYS.contains(&key.as_str()) => {
            let commands = || key_words(text).iter().any(|word| ADDING_COMMANDS.contains(&word.as_str()));
            adds(text) || ADDING_MODES.contains(&text.as_str()) || commands()
        }
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => adds(key) && !text.eq_ignore_ascii_case("false"),
        _ => adds(key),
    });
    keys.next().map(|(key, _)| key.as_str())
}

/// Returns the first list of edits, or what stands for one. An empty one is as good as none beside
/// a search text.
pub(super) fn first_list_of_edits(object: &Map<String, Value>) -> Option<(&'static str, &Value)> {
    let is_single = || OLD_TEXT_KEYS.iter().any(|key| is_filled(object, key));
    let list = EDIT_LIST_KEYS.into_iter().find(|key| is_filled(object, key));
    let list = list.and_then(|key| Some((key, object.get(key)?)));
    list.or_else(|| first_present_key(object, &EDIT_LIST_KEYS).filter(|_| !is_single()))
}

/// Returns another key beside a list of edits that asks for something: a further list, a search
/// text, a whole content.
pub(super) fn find_beside_list<'v>(object: &'v Map<String, Value>, list: &str) -> Option<&'v str> {
    let asks = |key: &str| {
        OLD_TEXT_KEYS.contains(&key)
            || EDIT_LIST_KEYS.contains(&key)
            || (CONTENT_KEYS.contains(&key) && key != "text")
    };
    let mut others = object.keys().filter(|key| *key != list && asks(key) && is_filled(object, key));
    others.next().map(String::as_str)
}

/// Returns true if a key has a value that isn't empty: models that fill in all keys leave those
/// empty that don't count.
fn is_filled(object: &Map<String, Value>, key: &str) -> bool {
    object.get(key).is_some_and(|value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => true,
    })
}

/// Returns the words of a key in camelCase or snake_case, in small letters.
pub(super) fn key_words(key: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut begins = true;
    for c in key.chars() {
        if !c.is_alphanumeric() {
            begins = true;
            continue;
        }
        if begins || c.is_uppercase() {
            words.push(String::new());
        }
        begins = false;
        if let Some(word) = words.last_mut() {
            word.push(c.to_ascii_lowercase());
        }
    }
    words
}

/// Returns the text under the only key that has some of `names`, and of other words only `others`.
fn only_text<'v>(object: &'v Map<String, Value>, names: &[&str], others: &[&str]) -> Option<&'v str> {
    let fits = |key: &str| {
        let words = key_words(key);
        let (named, other): (Vec<&str>, Vec<&str>) =
            words.iter().map(String::as_str).partition(|word| names.contains(word));
        !named.is_empty() && other.iter().all(|word| others.contains(word))
    };
    let fitting = object.iter().filter(|(key, _)| fits(key));
    let mut texts = fitting.filter_map(|(_, value)| value.as_str());
    texts.next().filter(|_| texts.next().is_none())
}

/// Returns a key in small letters without underscores.
fn plain_key(key: &str) -> String {
    key.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect()
}
