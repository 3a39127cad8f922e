//! `search_text`: searches the project's files for a regular expression.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use journeyman_index::analysis::ContentType;
use journeyman_index::pattern::{candidate_files, escape_literal};
use journeyman_protocol::{Effects, RelPath, ToolSpec, clip_to_bytes};
use journeyman_workspace::{ListOptions, StatKind, WorkspaceError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::excerpt::to_one_line;
use crate::read_file::redact_settings;
use crate::tool::run_blocking;
use crate::tool_interface::{ToolInterface, bounded_count, not_found};
use crate::{Tool, ToolContext, ToolError, ToolOutput};

/// Default number of matches: enough to see where something is used.
const DEFAULT_MATCHES: u64 = 100;
/// Maximum number of matches; beyond this the bound on bytes applies anyway.
const MAX_MATCHES: u64 = 2_000;
/// Maximum number of context lines; for more the file should be read.
const MAX_CONTEXT: u64 = 20;
/// Maximum bytes of a compiled pattern and its automaton: far beyond ordinary patterns, far below
/// an attack.
const MAX_AUTOMATON_BYTES: usize = 2 * 1024 * 1024;
/// Maximum bytes of a pattern.
const MAX_PATTERN_BYTES: usize = 10_000;
/// Maximum bytes of a file that is searched; larger files are skipped and counted.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// Maximum bytes of a line that is shown; a longer line is cut around the match.
const MAX_SHOWN_LINE_BYTES: usize = 300;
/// Minimum number of files for which the index is used; fewer are read faster than the index is
/// queried.
const MIN_INDEXED_FILES: usize = 200;
/// Maximum bytes of a pattern in a summary.
const MAX_SUMMARY_BYTES: usize = 80;

#[derive(Deserialize, JsonSchema)]
struct SearchTextArguments {
    /// Regular expression
    pattern: String,
    /// File or directory
    path: Option<String>,
    /// Such as *.rs
    glob: Option<String>,
    ignore_case: Option<bool>,
    /// Lines around
    context: Option<u64>,
    limit: Option<u64>,
}

/// The `search_text` tool.
pub(crate) struct SearchText {
    shape: ToolInterface,
}

/// A search with its arguments checked.
struct Search {
    matcher: RegexMatcher,
    /// The text that is looked up in the index: the pattern, or the literal if it is no regular
    /// expression.
    looked_up: String,
    ignore_case: bool,
    /// A note before the matches.
    note: Option<String>,
    multi_line: bool,
    under: Option<RelPath>,
    glob: Option<String>,
    around: usize,
    matches: usize,
}

impl SearchText {
    pub(crate) fn new(root: Option<&Path>) -> Self {
        let description = "Searches the project's files for a regular expression, line by line.";
        Self { shape: ToolInterface::for_arguments::<SearchTextArguments>("search_text", description, root) }
    }

    async fn run(&self, context: &ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let arguments: SearchTextArguments = self.shape.read_arguments(&input)?;
        let under = self.shape.parse_directory("path", arguments.path.as_deref())?;
        if arguments.pattern.is_empty() {
            return Err(self.shape.argument_error("`pattern` is empty"));
        }
        let multi_line = arguments.pattern.contains("\\n") || arguments.pattern.contains('\n');
        let ignore_case = arguments.ignore_case.unwrap_or(false);
        let (matcher, note) = compile_pattern(&arguments.pattern, ignore_case, multi_line)?;
        let looked_up =
            if note.is_some() { escape_literal(&arguments.pattern) } else { arguments.pattern.clone() };
        let search = Search {
            matcher,
            looked_up,
            ignore_case,
            note,
            multi_line,
            under,
            glob: self.shape.check_glob(arguments.glob)?,
            around: bounded_count(arguments.context, 0, MAX_CONTEXT),
            matches: bounded_count(arguments.limit, DEFAULT_MATCHES, MAX_MATCHES),
        };
        let context = context.clone();
        run_blocking(move || search.run(&context)).await
    }
}

/// Compiles `pattern`, or searches for it literally if it is no regular expression.
fn compile_pattern(
    pattern: &str,
    ignore_case: bool,
    multi_line: bool,
) -> Result<(RegexMatcher, Option<String>), ToolError> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(ToolError::Pattern(format!(
            "it has {} bytes; at most {MAX_PATTERN_BYTES}",
            pattern.len()
        )));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(ignore_case)
        .multi_line(true)
        .size_limit(MAX_AUTOMATON_BYTES)
        .dfa_size_limit(MAX_AUTOMATON_BYTES)
        .line_terminator(if multi_line { None } else { Some(b'\n') });
    let error = match builder.build(pattern) {
        Ok(matcher) => return Ok((matcher, None)),
        Err(error) => error.to_string(),
    };
    if error.contains("size limit") || error.contains("exceeds") {
        return Err(ToolError::Pattern(error));
    }
    let matcher =
        builder.fixed_strings(true).build(pattern).map_err(|error| ToolError::Pattern(error.to_string()))?;
    let reason = error.lines().next_back().unwrap_or_default().trim_start_matches("error: ");
    let reason = clip_to_bytes(reason, MAX_SHOWN_LINE_BYTES);
    Ok((matcher, Some(format!("[not a regular expression ({reason}), so searched for as plain text]\n"))))
}

impl Search {
    fn run(self, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (paths, more_files) = self.files_to_search(context)?;
        let mut found = MatchOutput {
            text: self.note.clone().unwrap_or_default(),
            matcher: &self.matcher,
            heading: None,
            apart: false,
            matches: 0,
            most_matches: self.matches,
            most_bytes: context.limits.result_bytes,
            full: false,
        };
        let mut searcher = SearcherBuilder::new()
            .line_number(true)
            .multi_line(self.multi_line)
            .before_context(self.around)
            .after_context(self.around)
            .build();
        let (mut files, mut too_large, mut withheld) = (0usize, 0usize, 0usize);
        let ruled_out = self.files_without_match(context, paths.len())?;
        for path in &paths {
            if context.cancel.is_cancelled() {
                return Err(ToolError::Cancelled);
            }
            if found.full {
                break;
            }
            if !(context.may_show)(path) {
                withheld += 1;
                continue;
            }
            if ruled_out.contains(path.as_bytes()) {
                files += 1;
                continue;
            }
            let content = match context.workspace.read(path, MAX_FILE_BYTES) {
                Ok(content) => content,
                Err(WorkspaceError::TooLarge { .. }) => {
                    too_large += 1;
                    continue;
                }
                // Deleted since the listing, unreadable, a pipe, or a link that leads out: there is
                // nothing to search.
                Err(_) => continue,
            };
            let Some(text) = content.text() else { continue };
            let text = redact_settings(path, text);
            files += 1;
            found.heading = Some(path.to_string());
            found.apart = false;
            let searched = searcher.search_slice(&self.matcher, text.as_bytes(), &mut found);
            searched.map_err(|error| ToolError::Pattern(error.to_string()))?;
        }
        Ok(ToolOutput::text(found.into_text(files, too_large, withheld, more_files)))
    }

    /// Returns the files in which the pattern can't match according to the index. Files that the
    /// index lacks are searched, so the result is the same without an index.
    fn files_without_match(
        &self,
        context: &ToolContext,
        files: usize,
    ) -> Result<HashSet<Vec<u8>>, ToolError> {
        if files < MIN_INDEXED_FILES {
            return Ok(HashSet::new());
        }
        let asked = match context.index.snapshot(&context.cancel) {
            // Any file may have changed, and not be indexed yet.
            Ok(asked) if asked.outdated => return Ok(HashSet::new()),
            Ok(asked) => asked,
            Err(ToolError::Cancelled) => return Err(ToolError::Cancelled),
            Err(_) => return Ok(HashSet::new()),
        };
        let snapshot = &*asked.snapshot;
        // A pattern that the index can't take apart may match in any file.
        let Ok(found) = candidate_files(snapshot, &self.looked_up, self.ignore_case) else {
            return Ok(HashSet::new());
        };
        if found.unfiltered {
            return Ok(HashSet::new());
        }
        let found: HashSet<u32> = found.files.into_iter().collect();
        let known = snapshot.files().filter(|(_, file)| file.record.content == ContentType::Text);
        let out = known.filter(|(number, file)| {
            // Changed, and not indexed yet.
            !found.contains(number) && !asked.lacks.iter().any(|path| path.as_bytes() == file.path_bytes())
        });
        Ok(out.map(|(_, file)| file.path_bytes().to_vec()).collect())
    }

    /// Returns the files to search, and true if there are more than a listing has.
    fn files_to_search(&self, context: &ToolContext) -> Result<(Vec<RelPath>, bool), ToolError> {
        if let Some(path) = &self.under {
            match context.workspace.stat(path)? {
                None => return Err(not_found(&context.workspace, path.clone())),
                Some(stat) if stat.kind == StatKind::File => return Ok((vec![path.clone()], false)),
                Some(_) => {}
            }
        }
        let options =
            ListOptions { under: self.under.clone(), glob: self.glob.clone(), ..ListOptions::default() };
        let listing = context.workspace.list(options)?;
        Ok((listing.paths, listing.truncated))
    }
}

/// The text of the result, built from matches as they are found.
struct MatchOutput<'m> {
    text: String,
    matcher: &'m RegexMatcher,
    /// The file's heading, until its first match is written.
    heading: Option<String>,
    /// True if the next line isn't adjacent to the last one.
    apart: bool,
    matches: usize,
    most_matches: usize,
    most_bytes: usize,
    full: bool,
}

impl MatchOutput<'_> {
    /// Writes one line. Returns false if the result is full.
    fn push_line(&mut self, number: Option<u64>, mark: char, line: &[u8], around: usize) -> bool {
        let line = String::from_utf8_lossy(line);
        let line = cut_around(line.trim_end_matches(['\n', '\r']), around);
        let heading = self.heading.as_deref().map_or(0, str::len);
        if self.text.len() + heading + line.len() + 16 > self.most_bytes {
            self.full = true;
            return false;
        }
        if let Some(heading) = self.heading.take() {
            self.text.push_str(&heading);
            self.text.push('\n');
        } else if self.apart {
            self.text.push_str("--\n");
        }
        self.apart = false;
        let number = number.unwrap_or_default();
        self.text.push_str(&format!("{number}{mark}{line}\n"));
        true
    }

    fn into_text(mut self, files: usize, too_large: usize, withheld: usize, more_files: bool) -> String {
        if self.matches == 0 {
            self.text.push_str(&format!("No matches in {files} files."));
        } else if self.full {
            self.text.push_str(&format!(
                "[stopped after {} matches; narrow down with path, glob or a longer pattern]",
                self.matches
            ));
        }
        if too_large > 0 {
            self.text.push_str(&format!("\n[{too_large} files over {MAX_FILE_BYTES} bytes were skipped]"));
        }
        if withheld > 0 {
            let told = format!("\n[{withheld} files were not searched: a rule keeps them from being read]");
            self.text.push_str(&told);
        }
        if more_files {
            self.text.push_str("\n[there are more files than were searched; narrow down with path]");
        }
        self.text
    }
}

impl Sink for MatchOutput<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.matches >= self.most_matches {
            self.full = true;
            return Ok(false);
        }
        self.matches += 1;
        // A match of several lines is shown whole, as far as there is room.
        for (nth, line) in (0u64..).zip(found.lines()) {
            let at = self.matcher.find(line).ok().flatten().map_or(0, |range| range.start());
            let number = found.line_number().map(|first| first.saturating_add(nth));
            if !self.push_line(number, ':', line, at) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        Ok(self.push_line(context.line_number(), '-', context.bytes(), 0))
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        self.apart = self.heading.is_none();
        Ok(true)
    }
}

/// Returns the part of a long line around byte `at`.
fn cut_around(line: &str, at: usize) -> String {
    if line.len() <= MAX_SHOWN_LINE_BYTES {
        return line.to_owned();
    }
    let from = line.floor_char_boundary(
        at.saturating_sub(MAX_SHOWN_LINE_BYTES / 3).min(line.len() - MAX_SHOWN_LINE_BYTES),
    );
    let to = line.floor_char_boundary(from + MAX_SHOWN_LINE_BYTES);
    let before = if from > 0 { "…" } else { "" };
    let after = if to < line.len() { "…" } else { "" };
    format!("{before}{}{after}", line.get(from..to).unwrap_or_default())
}

impl Tool for SearchText {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let arguments: SearchTextArguments = self.shape.read_arguments(input)?;
        self.shape.directory_read_effects(arguments.path.as_deref())
    }

    fn summary(&self, input: &Value) -> String {
        let Ok(arguments) = self.shape.read_arguments::<SearchTextArguments>(input) else {
            return "search".to_owned();
        };
        let pattern = to_one_line(&arguments.pattern, MAX_SUMMARY_BYTES);
        match arguments.path.or(arguments.glob) {
            Some(place) => format!("search `{pattern}` in {}", to_one_line(&place, MAX_SUMMARY_BYTES)),
            None => format!("search `{pattern}`"),
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
