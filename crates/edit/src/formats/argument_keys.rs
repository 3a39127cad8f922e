//! The keys of edit tools' arguments, in the spellings of the known tools.

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

/// Returns true if a text has a key that the arguments of edit tools have.
pub(crate) fn has_tool_argument_keys(text: &str) -> bool {
    let names = [
        "\"old_string\"",
        "\"oldString\"",
        "\"old_str\"",
        "\"old\"",
        "\"oldText\"",
        "\"old_text\"",
        "\"search\"",
        "\"edits\"",
        "\"replacements\"",
        "\"symbol\"",
        "\"file_text\"",
        "\"content\"",
        "\"contents\"",
        "\"insert_line\"",
        "\"command\"",
        "\"code_edit\"",
    ];
    let has = |name: &str| memchr::memmem::find(text.as_bytes(), name.as_bytes()).is_some();
    names.into_iter().any(has)
}
