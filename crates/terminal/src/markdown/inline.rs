//! The elements of one block, rendered from the events of the Markdown parser.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::code::{MIN_COLUMNS, wrap_code_line};
use super::marker_display::MarkerDisplay;
use super::table::Table;
use crate::wrap::{line_width, text_width, wrap_line};
use crate::{Style, StyledLine};

/// Columns of a horizontal rule.
const RULE_COLUMNS: usize = 40;

/// Renders the elements of one block in lines of at most `width` columns.
pub(super) fn render_elements(source: &str, width: usize, marks: MarkerDisplay) -> Vec<StyledLine> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = InlineRenderer::new(width, marks);
    for event in Parser::new_ext(source, options) {
        writer.handle_event(event);
    }
    writer.end_line();
    writer.lines
}

/// The text before each line of a quote or of a list's item.
#[derive(Debug)]
struct LinePrefix {
    first: Option<StyledLine>,
    rest: StyledLine,
}

/// A link whose text is being read.
#[derive(Debug)]
struct OpenLink {
    address: String,
    /// The text of the link so far.
    text: String,
}

/// Builds lines from the events.
#[derive(Debug)]
struct InlineRenderer {
    width: usize,
    marks: MarkerDisplay,
    lines: Vec<StyledLine>,
    line: StyledLine,
    styles: Vec<Style>,
    prefixes: Vec<LinePrefix>,
    /// The number of the next item of each open list; `None` for one without numbers.
    lists: Vec<Option<u64>>,
    links: Vec<OpenLink>,
    table: Option<Table>,
    code: Option<String>,
    /// True if the next element comes after an empty line.
    wants_gap: bool,
}

impl InlineRenderer {
    fn new(width: usize, marks: MarkerDisplay) -> Self {
        Self {
            width,
            marks,
            lines: Vec::new(),
            line: StyledLine::default(),
            styles: Vec::new(),
            prefixes: Vec::new(),
            lists: Vec::new(),
            links: Vec::new(),
            table: None,
            code: None,
            wants_gap: false,
        }
    }

    fn handle_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.begin_tag(tag),
            Event::End(tag) => self.end_tag(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.push_text(&text),
            },
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => self.push_code(&text),
            Event::FootnoteReference(name) => self.push_text(&format!("[{name}]")),
            Event::SoftBreak => self.push_text(" "),
            Event::HardBreak => self.push_text("\n"),
            Event::Rule => {
                self.line.push(Style::Dim, &"─".repeat(RULE_COLUMNS.min(self.available_columns())));
                self.end_line();
            }
            Event::TaskListMarker(is_done) => self.push_text(if is_done { "[x] " } else { "[ ] " }),
        }
    }

    fn begin_tag(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.styles.push(Style::Strong);
                if self.marks == MarkerDisplay::Kept {
                    self.push_text(&format!("{} ", "#".repeat(heading_depth(level))));
                }
            }
            Tag::BlockQuote(_) => {
                self.end_line();
                let bar = StyledLine::new(Style::Dim, "│ ");
                self.prefixes.push(LinePrefix { first: None, rest: bar });
            }
            Tag::List(number) => {
                self.end_line();
                self.lists.push(number);
            }
            Tag::Item => self.begin_item(),
            Tag::CodeBlock(kind) => {
                self.end_line();
                self.code = Some(String::new());
                if let CodeBlockKind::Fenced(info) = kind {
                    self.push_text(&info);
                    self.end_line();
                }
            }
            Tag::Table(alignments) => {
                self.end_line();
                self.table = Some(Table { alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Emphasis => self.begin_style(Style::Emphasis, "*"),
            Tag::Strong => self.begin_style(Style::Strong, "**"),
            Tag::Strikethrough => self.begin_style(Style::Dim, "~~"),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(OpenLink { address: dest_url.into_string(), text: String::new() });
            }
            _ => {}
        }
    }

    fn end_tag(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.end_line();
                self.wants_gap = true;
            }
            TagEnd::Heading(_) => {
                self.end_line();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.prefixes.pop();
            }
            TagEnd::Item => {
                self.end_line();
                // An item without text has its mark still.
                if self.prefixes.last().is_some_and(|prefix| prefix.first.is_some()) {
                    self.push_line(StyledLine::default());
                }
                self.prefixes.pop();
                self.wants_gap = false;
            }
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::CodeBlock => {
                let code = self.code.take().unwrap_or_default();
                for line in code.trim_end_matches('\n').split('\n') {
                    let rendered =
                        wrap_code_line(&StyledLine::new(Style::Code, line), self.available_columns());
                    rendered.into_iter().for_each(|line| self.push_line(line));
                }
                self.wants_gap = true;
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.line);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                let table = self.table.take().unwrap_or_default();
                for line in table.format(self.available_columns()) {
                    self.push_line(line);
                }
                self.wants_gap = true;
            }
            TagEnd::Emphasis => self.end_style("*"),
            TagEnd::Strong => self.end_style("**"),
            TagEnd::Strikethrough => self.end_style("~~"),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    fn begin_item(&mut self) {
        self.end_line();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number += 1;
                mark
            }
            _ => "• ".to_owned(),
        };
        let rest = StyledLine::new(Style::Plain, " ".repeat(text_width(&mark)));
        self.prefixes.push(LinePrefix { first: Some(StyledLine::new(Style::Plain, mark)), rest });
    }

    fn begin_style(&mut self, style: Style, mark: &str) {
        self.push_mark(mark);
        self.styles.push(style);
    }

    fn end_style(&mut self, mark: &str) {
        self.styles.pop();
        self.push_mark(mark);
    }

    fn push_mark(&mut self, mark: &str) {
        if self.marks == MarkerDisplay::Kept {
            self.push_text(mark);
        }
    }

    fn push_text(&mut self, text: &str) {
        let style = self.styles.last().copied().unwrap_or(Style::Plain);
        self.push_styled(style, text);
    }

    fn push_code(&mut self, text: &str) {
        let mark = if self.marks == MarkerDisplay::Kept { "`" } else { "" };
        self.push_styled(Style::Code, &format!("{mark}{text}{mark}"));
    }

    fn push_styled(&mut self, style: Style, text: &str) {
        // A reference such as `&#27;` stands for a character that no cleaning has seen.
        let text: String = text.chars().filter(|character| !is_hidden(*character)).collect();
        if let Some(link) = self.links.last_mut() {
            link.text.push_str(&text);
        }
        self.line.push(style, &text);
    }

    fn end_link(&mut self) {
        let Some(OpenLink { address, text }) = self.links.pop() else { return };
        let is_same = address == text || address.strip_prefix("mailto:") == Some(&text);
        if !is_same && !address.is_empty() {
            self.push_styled(Style::Dim, &format!(" ({address})"));
        }
    }

    /// Returns the columns that the prefixes leave.
    fn available_columns(&self) -> usize {
        let taken: usize = self.prefixes.iter().map(|prefix| line_width(&prefix.rest)).sum();
        self.width.saturating_sub(taken).max(MIN_COLUMNS.min(self.width))
    }

    /// Ends the element that is being read, if there is one.
    fn end_line(&mut self) {
        if self.line.is_empty() {
            return;
        }
        let line = std::mem::take(&mut self.line);
        for wrapped in wrap_line(&line, self.available_columns(), 0) {
            self.push_line(wrapped);
        }
    }

    fn push_line(&mut self, line: StyledLine) {
        if std::mem::take(&mut self.wants_gap) && !self.lines.is_empty() {
            let open = self.prefixes.iter().filter(|prefix| prefix.first.is_none());
            self.lines
                .push(StyledLine { spans: open.flat_map(|prefix| prefix.rest.spans.clone()).collect() });
        }
        let line = self.add_prefixes(line);
        self.lines.push(line);
    }

    /// Returns the line behind its prefixes, as far as they leave it room.
    fn add_prefixes(&mut self, line: StyledLine) -> StyledLine {
        let spare = self.width.saturating_sub(line_width(&line));
        let mut whole = StyledLine::default();
        for prefix in &mut self.prefixes {
            let part = prefix.first.take().unwrap_or_else(|| prefix.rest.clone());
            if line_width(&whole) + line_width(&part) <= spare {
                whole.spans.extend(part.spans);
            }
        }
        whole.spans.extend(line.spans);
        whole
    }
}

/// Returns true for a character that commands the terminal or turns the direction of text.
fn is_hidden(character: char) -> bool {
    let turns = matches!(character, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || character.is_control() && !matches!(character, '\n' | '\t')
}

fn heading_depth(level: HeadingLevel) -> usize {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}
