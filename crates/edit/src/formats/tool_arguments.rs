//! The arguments of an edit tool, as JSON: one edit, or a list of them, in the spellings of the
//! known tools.

use std::ops::Range;

use journeyman_protocol::RelPath;
use serde_json::{Map, Value};

use crate::edit::{Edit, EditOp, Replace, SymbolAction, SymbolEdit};
use crate::formats::argument_keys::{
    CONTENT_KEYS, NEW_TEXT_KEYS, OLD_TEXT_KEYS, PATH_KEYS, PLACE_KEYS, WRAPPER_KEYS, counts_all,
    explain_other_replacement, find_adding_key, find_beside_list, find_content_part_key, find_part_key,
    find_quoting_key, find_trial_key, first_list_of_edits, has_tool_argument_keys, keys_where, read_command,
    read_new_text, read_paired_keys, read_path, read_searched_text, replace_all_keys,
};
use crate::formats::argument_places::{find_stated_line, names_end};
use crate::formats::argument_values::{first_present_key, json_type_name, read_bool, read_number, read_text};
use crate::formats::block::{BlockProblem, ProblemKind};
use crate::formats::blocks::{MAX_BLOCKS, join_prose};
use crate::formats::lenient_json::{first_value_end, parse_json_leniently};
use crate::formats::nested_edits::{NestedEdits, find_nested_edits};
use crate::formats::{
    Format, ParsedReply, ReplySource, paths, search_replace, strip_fence, text_calls, udiff, v4a, whole_files,
};
use crate::lines::line_at;

const COUNT_KEYS: [&str; 2] = ["expected_replacements", "expectedReplacements"];
/// Arguments wrapped more often than this are not arguments.
const MAX_WRAPPER_DEPTH: usize = 6;

/// Reads a reply: its arguments, or several of them one after the other, with prose between.
pub(crate) fn read(source: &ReplySource<'_>) -> ParsedReply {
    let reply = source.reply;
    let reading = ParsedReply { format: Some(Format::Tool), ..ParsedReply::default() };
    let mut tool = ArgumentsReader { source, line: 1, all: false, reading };
    let mut prose: Vec<&str> = Vec::new();
    let calls = text_calls::read_named_calls(reply);
    if calls.iter().any(|call| text_calls::is_edit_arguments(&call.arguments)) {
        let mut from = 0;
        for call in &calls {
            prose.push(tool.read_text_beside_calls(from..call.range.start));
            from = call.range.end;
            tool.line = line_at(reply, call.range.start);
            // A call that reads or searches is no edit.
            if text_calls::is_edit_arguments(&call.arguments) {
                tool.read_value(&call.arguments, None, 0);
            }
        }
        prose.push(tool.read_text_beside_calls(from..reply.len()));
        tool.reading.prose = join_prose(&mut prose);
        return tool.reading;
    }
    let (mut at, mut counted) = (0, 0);
    while let Some((start, end)) = find_arguments(reply, at) {
        tool.line =
            tool.line.saturating_add(line_at(reply.get(counted..).unwrap_or_default(), start - counted) - 1);
        counted = start;
        prose.push(reply.get(at..start).unwrap_or_default());
        at = end;
        match parse_json_leniently(reply.get(start..end).unwrap_or_default()) {
            Ok(value) => tool.read_value(&value, None, 0),
            Err(error) => {
                tool.add_json_error(&error);
                at = reply.len();
            }
        }
        if tool.reading.edits.len() + tool.reading.problems.len() >= MAX_BLOCKS && at < reply.len() {
            let message = format!("there are {MAX_BLOCKS} edits; the rest was not read");
            tool.add_problem(ProblemKind::TooMuch, None, message);
            break;
        }
    }
    prose.push(reply.get(at..).unwrap_or_default());
    tool.reading.prose = join_prose(&mut prose);
    tool.reading
}

/// Returns the range of the next JSON value that is an edit: alone in the text, in a fence, or at
/// the beginning of a line.
fn find_arguments(reply: &str, from: usize) -> Option<(usize, usize)> {
    let rest = reply.get(from..)?;
    // Behind a value a comma may lead to the next one.
    let divides = |c: char| c.is_whitespace() || (from > 0 && matches!(c, ',' | ';'));
    let start = from + (rest.len() - rest.trim_start_matches(divides).len());
    let whole = reply.get(start..)?.trim_end();
    if from == 0 && whole.starts_with('"') && whole.len() > 1 && whole.ends_with('"') {
        return Some((start, start + whole.len()));
    }
    let mut at = start;
    while at < reply.len() {
        let rest = reply.get(at..)?;
        let next = at + memchr::memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |end| end + 1);
        if rest.starts_with(['{', '[']) {
            let end = at + first_value_end(rest);
            // Alone it is what was sent; among other text it has to look like an edit.
            let alone = from == 0 && at == start;
            if alone || (looks_like_arguments(rest) && has_tool_argument_keys(reply.get(at..end)?)) {
                return Some((at, end));
            }
            at = end.max(next);
            continue;
        }
        at = next;
    }
    None
}

fn looks_like_arguments(text: &str) -> bool {
    let inner = text.trim_start_matches(['{', '[']).trim_start();
    inner.starts_with(['"', '{'])
}

struct ArgumentsReader<'s, 'a> {
    source: &'s ReplySource<'a>,
    line: u32,
    /// True if the arguments around the edits ask for all places.
    all: bool,
    reading: ParsedReply,
}

impl<'a> ArgumentsReader<'_, 'a> {
    /// Returns a part of the reply beside its calls; a call that begins in it can't be read.
    fn read_text_beside_calls(&mut self, range: Range<usize>) -> &'a str {
        let text = self.source.reply.get(range.clone()).unwrap_or_default();
        if let Some(at) = text_calls::first_call_offset(text) {
            self.line = line_at(self.source.reply, range.start + at);
            let message =
                "a call begins here that isn't closed, or whose arguments can't be read; send it again";
            self.add_malformed(None, message);
        }
        text
    }

    fn add_problem(&mut self, kind: ProblemKind, subject: Option<&str>, message: String) {
        let subject = subject
            .map(|subject| crate::outcome::truncate(&subject.escape_debug().to_string(), 200).to_owned());
        self.reading.problems.push(BlockProblem { kind, line: self.line, subject, message });
    }

    fn add_json_error(&mut self, error: &serde_json::Error) {
        let at = u32::try_from(error.line()).unwrap_or(u32::MAX);
        self.line = self.line.saturating_add(at.saturating_sub(1));
        if error.is_eof() {
            let message = "the arguments end before their JSON is whole; send them again".to_owned();
            self.add_problem(ProblemKind::Incomplete, None, message);
        } else {
            self.add_malformed(None, format!("the arguments are no JSON: {error}"));
        }
    }

    fn add_malformed(&mut self, subject: Option<&str>, message: impl Into<String>) {
        self.add_problem(ProblemKind::Malformed, subject, message.into());
    }

    /// Takes in an edit, a list of them, or what wraps either.
    fn read_value(&mut self, value: &Value, outer: Option<&str>, depth: usize) {
        if depth > MAX_WRAPPER_DEPTH {
            return self.add_malformed(outer, "the arguments are wrapped too often");
        }
        match value {
            Value::Array(list) => self.read_list(list, outer, depth),
            Value::Object(object) => match read_paired_keys(object) {
                Some(object) => self.read_object(&object, outer, depth),
                None => self.read_object(object, outer, depth),
            },
            // Encoded twice.
            Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
                match parse_json_leniently(text.trim()) {
                    Ok(inner) => self.read_value(&inner, outer, depth + 1),
                    Err(error) => self
                        .add_malformed(outer, format!("the arguments are a string that is no JSON: {error}")),
                }
            }
            other => self.add_malformed(
                outer,
                format!(
                    "an edit is an object {{\"path\", \"old_string\", \"new_string\"}}, not {}",
                    json_type_name(other)
                ),
            ),
        }
    }

    fn read_list(&mut self, list: &[Value], outer: Option<&str>, depth: usize) {
        if list.is_empty() {
            return self.add_malformed(outer, "the list of edits is empty");
        }
        for item in list {
            if self.reading.edits.len() + self.reading.problems.len() >= MAX_BLOCKS {
                let message = format!("there are more than {MAX_BLOCKS} edits; the rest was not read");
                return self.add_problem(ProblemKind::TooMuch, outer, message);
            }
            self.read_value(item, outer, depth + 1);
        }
    }

    fn read_object(&mut self, object: &Map<String, Value>, outer: Option<&str>, depth: usize) {
        let named = match self.text_argument(object, &PATH_KEYS, None) {
            Ok(named) => named,
            Err(()) => return,
        };
        let path = named.or(outer).or_else(|| read_path(object));
        if let Some(key) = find_trial_key(object) {
            let message =
                format!("\"{key}\" asks to write nothing, and here edits are written: leave it out");
            return self.add_malformed(path, message);
        }
        let has = |keys: &[&str]| keys.iter().any(|key| object.contains_key(*key));
        if let Some((key, edits)) = first_list_of_edits(object) {
            if let Some(other) = find_beside_list(object, key) {
                return self
                    .add_malformed(path, format!("it has both \"{key}\" and \"{other}\": give one of them"));
            }
            let Ok(all) = self.bool_argument(object, &replace_all_keys(object), path) else { return };
            let all = all.unwrap_or(self.all);
            let outer = std::mem::replace(&mut self.all, all);
            match edits {
                Value::Array(list) => self.read_list(list, path, depth),
                Value::String(_) | Value::Object(_) => self.read_value(edits, path, depth + 1),
                other => self.add_malformed(
                    path,
                    format!("\"{key}\" has to be a list of edits, not {}", json_type_name(other)),
                ),
            }
            self.all = outer;
            return;
        }
        let bare = !has(&OLD_TEXT_KEYS)
            && !has(&NEW_TEXT_KEYS)
            && !has(&CONTENT_KEYS)
            && !object.contains_key("symbol");
        if bare
            && let Some(inner) = WRAPPER_KEYS.iter().find_map(|key| object.get(*key))
            && matches!(inner, Value::Object(_) | Value::String(_) | Value::Array(_))
        {
            return self.read_value(inner, path, depth + 1);
        }
        if bare && let Some(nested) = find_nested_edits(object) {
            return match nested {
                NestedEdits::Value(value) => self.read_value(value, path, depth + 1),
                NestedEdits::Text(text, format) => self.read_text(text, format, path),
            };
        }
        // A sketch of the file in which remarks stand for what stays.
        if let (Some(Value::String(sketch)), Some(named)) = (object.get("code_edit"), path) {
            return match paths::resolve_path(named, self.source) {
                Ok(path) => self.reading.edits.push(whole_files::to_edit(self.source, path, sketch, true)),
                Err(why) => self.add_problem(ProblemKind::Path, Some(named), why),
            };
        }
        let given = path.map(str::to_owned);
        if let Ok(op) = self.read_edit_op(object, path) {
            self.push_edit(given.as_deref(), op);
        }
    }

    /// Reads the edits in a text argument, as if the text were the reply.
    fn read_text(&mut self, text: &str, format: Format, named: Option<&str>) {
        let path = match named.map(|named| (named, paths::resolve_path(named, self.source))) {
            Some((named, Err(why))) => return self.add_problem(ProblemKind::Path, Some(named), why),
            Some((_, Ok(path))) => Some(path),
            None => self.source.path.cloned(),
        };
        let source = ReplySource { reply: text, path: path.as_ref(), finished: true, ..*self.source };
        let ParsedReply { edits, problems, .. } = match format {
            Format::Udiff => udiff::read(&source),
            Format::Patch => v4a::read(&source),
            _ => search_replace::read(&source),
        };
        self.reading.edits.extend(edits);
        let line = self.line;
        self.reading.problems.extend(problems.into_iter().map(|problem| BlockProblem { line, ..problem }));
    }

    /// The edit of an object; a problem is told where it has none.
    fn read_edit_op(&mut self, object: &Map<String, Value>, path: Option<&str>) -> Result<EditOp, ()> {
        if object.contains_key("symbol") {
            return self.read_symbol_edit(object, path);
        }
        let command = read_command(object);
        match command {
            Some("view" | "read" | "undo_edit" | "undo") => {
                let word = command.unwrap_or_default();
                self.add_malformed(path, format!("`{word}` is no edit: use the tool for it"));
                return Err(());
            }
            Some("insert") => return self.read_insertion(object, path),
            Some("delete" | "delete_file" | "remove")
                if first_present_key(object, &OLD_TEXT_KEYS).is_none() =>
            {
                return self.or_malformed(check_deletion(object), path).map(|()| EditOp::Delete);
            }
            Some("rename" | "move") => return self.read_rename(object, path),
            _ => {}
        }
        let usual = self.text_argument(object, &OLD_TEXT_KEYS, path)?;
        let is_for_place = first_present_key(object, &PLACE_KEYS).is_some()
            || self.line_hint_argument(object, path)?.is_some();
        let old = usual.or_else(|| read_searched_text(object).filter(|_| !is_for_place));
        let new = self.text_argument(object, &NEW_TEXT_KEYS, path)?;
        let whole = self.text_argument(object, &CONTENT_KEYS, path)?;
        let new = if old.is_some() && whole.is_none() { new.or_else(|| read_new_text(object)) } else { new };
        let unfenced = |content: &str| {
            let named = path.and_then(|path| RelPath::parse(path).ok());
            named.and_then(|path| strip_fence(&path, content)).unwrap_or(content).to_owned()
        };
        match (old, new, whole) {
            (Some(old), Some(new), _) => self.read_replacement(object, path, old, new),
            // Some tools call the new text of a replacement its content.
            (Some(old), None, Some(new)) => self.read_replacement(object, path, old, new),
            (Some(_), None, None) => {
                self.add_malformed(path, "it has no \"new_string\"; to delete the text, give it empty");
                Err(())
            }
            (None, _, Some(content)) if command == Some("create") => {
                Ok(EditOp::Create { content: unfenced(content) })
            }
            (None, Some(content), None) if matches!(command, Some("overwrite" | "create" | "write")) => {
                Ok(EditOp::Rewrite { content: unfenced(content), exact: true })
            }
            (None, None, Some(content)) if first_present_key(object, &PLACE_KEYS).is_some() => {
                self.read_anchored_insertion(object, path, content)
            }
            (None, None, Some(content)) => {
                self.check_whole_file(object, path)?;
                Ok(EditOp::Rewrite { content: unfenced(content), exact: true })
            }
            (None, Some(new), None) if self.line_hint_argument(object, path)?.is_some() => {
                self.read_replacement(object, path, "", new)
            }
            (None, ..) => {
                self.add_malformed(
                    path,
                    "it has no \"old_string\": give {\"path\", \"old_string\", \"new_string\"}, or {\"path\", \"content\"} \
                     for a whole file",
                );
                Err(())
            }
        }
    }

    fn read_rename(&mut self, object: &Map<String, Value>, path: Option<&str>) -> Result<EditOp, ()> {
        let keys = ["to", "new_path", "newPath", "to_path", "destination"];
        let to = self.text_argument(object, &keys, path)?;
        match to.map(|to| (to, paths::resolve_path(to, self.source))) {
            Some((_, Ok(to))) => Ok(EditOp::Rename { to }),
            Some((to, Err(why))) => {
                self.add_problem(ProblemKind::Path, Some(to), why);
                Err(())
            }
            None => {
                self.add_malformed(path, "to rename a file, give its new path in \"to\"");
                Err(())
            }
        }
    }

    fn read_replacement(
        &mut self,
        object: &Map<String, Value>,
        path: Option<&str>,
        old: &str,
        new: &str,
    ) -> Result<EditOp, ()> {
        self.or_malformed(explain_other_replacement(object, new).map_or(Ok(()), Err), path)?;
        let all = self.replace_all_argument(object, path)?;
        self.check_expected_count(object, path, old)?;
        let near = self.place_of_search(object, path, old, all)?;
        let whole_lines = self.bool_argument(object, &["line_based"], path)?.unwrap_or(false);
        if old.is_empty()
            && near.is_none()
            && !whole_lines
            && self.file_text(path).is_none_or(|text| text.is_empty())
        {
            // The arguments of a call say by themselves if the last line has a line break.
            return Ok(EditOp::Create { content: new.to_owned() });
        }
        Ok(EditOp::Replace(Replace {
            search: old.to_owned(),
            replace: new.to_owned(),
            all,
            near,
            // A line number and no text to find: lines are put in.
            whole_lines: whole_lines || (old.is_empty() && near.is_some()),
        }))
    }

    /// The line at which the search text is said to begin, also as the number of its occurrence.
    fn place_of_search(
        &mut self,
        object: &Map<String, Value>,
        path: Option<&str>,
        old: &str,
        all: bool,
    ) -> Result<Option<u32>, ()> {
        let hint = self.line_hint_argument(object, path)?;
        if old.is_empty() {
            let refused = names_end(object).then(|| {
                "it names the lines that go by their numbers alone, which may be those of another version: give their \
                 text as \"old_string\""
                    .to_owned()
            });
            return self.or_malformed(refused.map_or(Ok(hint), Err), path);
        }
        let file = self.file_text(path).unwrap_or_default();
        self.or_malformed(find_stated_line(object, &file, old, (hint, all)), path)
    }

    /// Returns the text of the file that a path means, or of the caller's file.
    fn file_text(&self, path: Option<&str>) -> Option<String> {
        let file = match path {
            Some(given) => paths::resolve_path(given, self.source).ok(),
            None => self.source.path.cloned(),
        };
        self.source.files.text(&file?).ok().flatten().map(Into::into)
    }

    /// A count that isn't how often the text is there means that the model sees another file.
    fn check_expected_count(
        &mut self,
        object: &Map<String, Value>,
        path: Option<&str>,
        old: &str,
    ) -> Result<(), ()> {
        if counts_all(object) {
            return Ok(());
        }
        let Some(count) = self.number_argument(object, &COUNT_KEYS, path)?.filter(|&count| count > 1) else {
            return Ok(());
        };
        let found = match self.file_text(path) {
            Some(text) if !old.is_empty() => {
                // Line endings are shown to nobody.
                let [text, old] = [text.as_str(), old].map(|text| text.replace("\r\n", "\n"));
                memchr::memmem::find_iter(text.as_bytes(), old.as_bytes()).count()
            }
            _ => return Ok(()),
        };
        if found > 0 && u32::try_from(found) != Ok(count) {
            self.add_malformed(
                path,
                format!("it expects {count} replacements, and the text is there {found} times"),
            );
            return Err(());
        }
        Ok(())
    }

    /// Refuses a content beside a line number, or beside a text of the file that it may be meant to
    /// replace, under a key of any name: as the whole file it would take everything else away.
    fn check_whole_file(&mut self, object: &Map<String, Value>, path: Option<&str>) -> Result<(), ()> {
        let beside = if self.line_hint_argument(object, path)?.is_some() {
            "a line number".to_owned()
        } else if let Some(key) = self.file_text(path).and_then(|text| find_quoting_key(object, &text)) {
            format!("\"{}\", whose text is in the file", crate::outcome::truncate(key, 100))
        } else if let Some(key) = find_adding_key(object)
            && self.file_text(path).is_some_and(|text| !text.is_empty())
        {
            format!("\"{}\", which adds it to what is there", crate::outcome::truncate(key, 100))
        } else if let Some(text) = self.file_text(path).filter(|text| !text.is_empty())
            && let Some(key) = find_content_part_key(object, &text)
        {
            format!("\"{}\", which is for a part of the file", crate::outcome::truncate(key, 100))
        } else {
            return Ok(());
        };
        let message = format!(
            "it has a content and {beside}: give {{\"path\", \"old_string\", \"new_string\"}} to replace that text, or \
             {{\"path\", \"content\"}} alone for the whole file"
        );
        self.add_malformed(path, message);
        Err(())
    }

    /// `insert_line` counts the lines before the new text.
    fn read_insertion(&mut self, object: &Map<String, Value>, path: Option<&str>) -> Result<EditOp, ()> {
        let text =
            self.text_argument(object, &["insert_text", "new_str", "new_string", "text", "content"], path)?;
        let line = self.number_argument(object, &["insert_line", "insertLine", "line"], path)?;
        let (Some(text), Some(line)) = (text, line) else {
            self.add_malformed(
                path,
                "to insert, give \"insert_line\" (after which line, 0 for the top) and \"insert_text\"",
            );
            return Err(());
        };
        Ok(EditOp::Replace(Replace {
            search: String::new(),
            replace: crate::lines::strip_line_break(text).to_owned(),
            all: false,
            near: Some(line.saturating_add(1)),
            whole_lines: true,
        }))
    }

    /// A text that goes after or before another one of the file.
    fn read_anchored_insertion(
        &mut self,
        object: &Map<String, Value>,
        path: Option<&str>,
        content: &str,
    ) -> Result<EditOp, ()> {
        let after = self.text_argument(object, &["insert_after", "insertAfter"], path)?;
        let before = self.text_argument(object, &["insert_before", "insertBefore"], path)?;
        let (search, replace) = match (after, before) {
            // Lines that are given whole go after the line that is meant.
            (Some(anchor), None) if content.ends_with('\n') && !anchor.ends_with('\n') => {
                (anchor, format!("{anchor}\n{}", crate::lines::strip_line_break(content)))
            }
            (Some(anchor), None) => (anchor, format!("{anchor}{content}")),
            (None, Some(anchor)) => (anchor, format!("{content}{anchor}")),
            _ => ("", String::new()),
        };
        if search.is_empty() {
            self.add_malformed(
                path,
                "its text is for a place, so it isn't a whole file: give \"old_string\" and \"new_string\", or \
                 \"insert_after\" or \"insert_before\" with a text of the file",
            );
            return Err(());
        }
        self.read_replacement(object, path, search, &replace)
    }

    fn read_symbol_edit(&mut self, object: &Map<String, Value>, path: Option<&str>) -> Result<EditOp, ()> {
        let symbol = self.text_argument(object, &["symbol"], path)?.unwrap_or_default().trim();
        let action = self.text_argument(object, &["action", "do"], path)?;
        let content = self.text_argument(object, &["content", "code", "new_string", "text"], path)?;
        let to = self.text_argument(object, &["new_name", "newName", "to"], path)?;
        if symbol.is_empty() {
            self.add_malformed(path, "\"symbol\" is empty: give the symbol's path, like Parser::next");
            return Err(());
        }
        let action = match (action, content, to) {
            (Some("replace"), Some(content), _) => SymbolAction::Replace { content: content.to_owned() },
            (Some("insert_before"), Some(content), _) => {
                SymbolAction::InsertBefore { content: content.to_owned() }
            }
            (Some("insert_after"), Some(content), _) => {
                SymbolAction::InsertAfter { content: content.to_owned() }
            }
            (Some("delete"), ..) => SymbolAction::Delete,
            (Some("rename"), _, Some(to)) => SymbolAction::Rename { to: to.to_owned() },
            (Some("rename"), _, None) => {
                self.add_malformed(path, "to rename a symbol, give \"new_name\"");
                return Err(());
            }
            (Some(action @ ("replace" | "insert_before" | "insert_after")), None, _) => {
                self.add_malformed(path, format!("\"action\": \"{action}\" needs \"content\""));
                return Err(());
            }
            _ => {
                self.add_malformed(
                    path,
                    "an edit of a symbol needs an \"action\": replace, insert_before, insert_after, delete or rename",
                );
                return Err(());
            }
        };
        Ok(EditOp::Symbol(SymbolEdit { symbol: symbol.to_owned(), action }))
    }

    fn push_edit(&mut self, given: Option<&str>, op: EditOp) {
        let path = match given {
            Some(given) => match paths::resolve_path(given, self.source) {
                Ok(path) => path,
                Err(why) => return self.add_problem(ProblemKind::Path, Some(given), why),
            },
            None => match self.source.path {
                Some(path) => path.clone(),
                None => return self.add_malformed(None, "it has no \"path\": which file is meant?"),
            },
        };
        let path: RelPath = path;
        self.reading.edits.push(Edit { path, ops: vec![op], description: None });
    }

    fn or_malformed<T>(&mut self, read: Result<T, String>, path: Option<&str>) -> Result<T, ()> {
        read.map_err(|message| self.add_malformed(path, message))
    }

    /// The text under one of some keys. `null` is as good as none.
    fn text_argument<'v>(
        &mut self,
        object: &'v Map<String, Value>,
        keys: &[&str],
        path: Option<&str>,
    ) -> Result<Option<&'v str>, ()> {
        self.or_malformed(read_text(object, keys), path)
    }

    fn bool_argument(
        &mut self,
        object: &Map<String, Value>,
        keys: &[&str],
        path: Option<&str>,
    ) -> Result<Option<bool>, ()> {
        self.or_malformed(read_bool(object, keys), path)
    }

    fn number_argument(
        &mut self,
        object: &Map<String, Value>,
        keys: &[&str],
        path: Option<&str>,
    ) -> Result<Option<u32>, ()> {
        self.or_malformed(read_number(object, keys), path)
    }

    fn line_hint_argument(
        &mut self,
        object: &Map<String, Value>,
        path: Option<&str>,
    ) -> Result<Option<u32>, ()> {
        let keys = keys_where(object, |key| key == "near" || key == "linehint" || key.ends_with("startline"));
        Ok(self.number_argument(object, &keys, path)?.filter(|&line| line > 0))
    }

    /// Every place, or the only one. A count of more than one asks for all of them.
    fn replace_all_argument(&mut self, object: &Map<String, Value>, path: Option<&str>) -> Result<bool, ()> {
        if let Some(all) = self.bool_argument(object, &replace_all_keys(object), path)? {
            return Ok(all);
        }
        if counts_all(object) {
            return Ok(true);
        }
        Ok(self.all || self.number_argument(object, &COUNT_KEYS, path)?.is_some_and(|count| count > 1))
    }
}

/// Refuses the deletion of a file where something names a part of it.
fn check_deletion(object: &Map<String, Value>) -> Result<(), String> {
    let Some(key) = find_part_key(object) else { return Ok(()) };
    Err(format!(
        "it deletes, and \"{key}\" is for a part of the file: to delete a text, give it as \"old_string\" with an \
         empty \"new_string\"; to delete the file, give nothing but its path"
    ))
}
