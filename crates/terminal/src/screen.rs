//! Writing to one stream: lines, the model's words while they arrive, and a progress line.

use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

use crate::markdown::{Block, BlockSplitter, MarkerDisplay, render_block};
use crate::wrap::{char_width, clean_line, cut_line, leading_spaces, line_width, text_width, wrap_line};
use crate::{Paint, Style, StyledLine};

/// The size of a terminal that doesn't say its own.
const DEFAULT_SIZE: Size = Size { columns: 80, rows: 24 };
/// Minimum columns that text is rendered for; a narrower terminal breaks lines itself.
const MIN_COLUMNS: usize = 12;
/// Columns by which the further lines of a line are indented beyond the first.
const HANGING_INDENT: usize = 2;

/// The kind of place that a stream leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    /// A file, a pipe, a program: texts are written as they are.
    Stream,
    /// A terminal that knows no cursor.
    Dumb,
    /// A terminal on which no escape sequences are wanted.
    Plain,
    /// A terminal with colours.
    Color,
    /// No terminal, and colours all the same, such as for a pager behind a pipe.
    ColoredStream,
}

/// The user's choice about colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ColorChoice {
    /// Where the stream leads to a terminal and the environment doesn't say no.
    #[default]
    Auto,
    /// Wherever the stream leads to.
    Always,
    /// Nowhere.
    Never,
}

impl std::str::FromStr for ColorChoice {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err("it is auto, always or never".to_owned()),
        }
    }
}

static COLOR_CHOICE: OnceLock<ColorChoice> = OnceLock::new();

/// Makes the user's choice hold for all streams of this process. The first call counts.
pub fn choose_color(choice: ColorChoice) {
    COLOR_CHOICE.get_or_init(|| choice);
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Characters in a row.
    pub columns: usize,
    /// Rows.
    pub rows: usize,
}

impl OutputKind {
    /// Returns the kind of a stream, with colours as set by [`choose_color`]. If unset, a non-empty
    /// `NO_COLOR` disables colours (<https://no-color.org>).
    #[must_use]
    pub fn of_stream(stream: &impl IsTerminal) -> Self {
        let choice = COLOR_CHOICE.get().copied().unwrap_or_default();
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_plain = match choice {
            ColorChoice::Auto => std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            ColorChoice::Always => false,
            ColorChoice::Never => true,
        };
        match (stream.is_terminal(), is_dumb, is_plain) {
            (false, ..) if choice == ColorChoice::Always => Self::ColoredStream,
            (false, ..) => Self::Stream,
            (_, true, _) => Self::Dumb,
            (_, _, true) => Self::Plain,
            _ => Self::Color,
        }
    }

    /// Returns true if a line can be erased again.
    fn can_erase(self) -> bool {
        matches!(self, Self::Color | Self::Plain)
    }

    /// Returns the paint for such a stream.
    #[must_use]
    pub fn paint(self) -> Paint {
        if matches!(self, Self::Color | Self::ColoredStream) { Paint::COLORED } else { Paint::PLAIN }
    }
}

impl Size {
    /// Returns the columns that text is wrapped at.
    fn text_columns(self) -> usize {
        self.columns.max(MIN_COLUMNS)
    }

    /// Returns the present size of the terminal behind a stream.
    #[must_use]
    pub fn of_terminal(stream: impl std::os::fd::AsFd) -> Self {
        match rustix::termios::tcgetwinsize(stream) {
            Ok(size) if size.ws_col > 0 => Self {
                columns: usize::from(size.ws_col),
                rows: if size.ws_row > 0 { usize::from(size.ws_row) } else { DEFAULT_SIZE.rows },
            },
            _ => DEFAULT_SIZE,
        }
    }
}

/// The block of the model's words that isn't complete, as far as it is on the screen.
#[derive(Debug, Default)]
struct OpenBlock {
    /// Bytes of the block's source that are on the screen.
    shown: usize,
    /// Rows above the cursor.
    rows: usize,
    column: usize,
}

/// The words that are being written.
#[derive(Debug)]
enum OpenProse {
    None,
    /// The model's words, as Markdown.
    Markdown(BlockSplitter, OpenBlock),
    /// Dim words that are wrapped and otherwise left alone.
    Dim(OpenBlock, String),
}

/// Writes to one stream, and tracks the cursor's position.
pub struct Screen {
    out: Box<dyn Write + Send>,
    capability: OutputKind,
    size: Box<dyn Fn() -> Size + Send>,
    prose: OpenProse,
    /// True if the cursor stands behind text.
    is_mid_line: bool,
    /// Columns of the progress line that is shown.
    progress: Option<(String, usize)>,
    /// True if the empty line before the open block is written.
    is_gap_written: bool,
    /// The error that was shown last.
    shown_error: Option<String>,
    failure: Option<std::io::Error>,
}

impl Screen {
    /// Makes the screen of a stream; `size` gives the terminal's size each time it is needed.
    pub fn new(
        out: impl Write + Send + 'static,
        capability: OutputKind,
        size: impl Fn() -> Size + Send + 'static,
    ) -> Self {
        Self {
            out: Box::new(out),
            capability,
            size: Box::new(size),
            prose: OpenProse::None,
            is_mid_line: false,
            progress: None,
            is_gap_written: false,
            shown_error: None,
            failure: None,
        }
    }

    /// Returns true if the stream leads to a terminal.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self.capability, OutputKind::Dumb | OutputKind::Plain | OutputKind::Color)
    }

    /// Returns the paint for the stream.
    #[must_use]
    pub fn paint(&self) -> Paint {
        self.capability.paint()
    }

    /// Writes a text unchanged, after ending open output.
    pub fn write_text(&mut self, text: &str) {
        self.end_prose();
        self.clear_progress();
        self.write(text);
    }

    /// Writes a text whose colours are painted already, its lines wrapped at the terminal's width.
    pub fn write_wrapped(&mut self, text: &str) {
        if !self.is_terminal() {
            return self.write_text(text);
        }
        self.end_prose();
        self.clear_progress();
        let columns = (self.size)().text_columns();
        let mut wrapped = String::new();
        for line in text.split_inclusive('\n') {
            let content = line.strip_suffix('\n').unwrap_or(line);
            let spaces = content.len() - content.trim_start_matches(' ').len();
            let rows = wrap_line(&StyledLine::new(Style::Plain, content), columns, spaces + HANGING_INDENT);
            let rows: Vec<String> = rows.iter().map(StyledLine::to_text).collect();
            wrapped.push_str(&rows.join("\n"));
            // The spaces at the end of a question separate it from the answer.
            let end = content.len() - content.trim_end_matches(' ').len();
            wrapped.push_str(&" ".repeat(if content.len() == line.len() { end } else { 0 }));
            wrapped.push_str(line.get(content.len()..).unwrap_or_default());
        }
        self.write(&wrapped);
    }

    /// Writes a line, wrapped at the terminal's width.
    pub fn write_line(&mut self, line: &StyledLine) {
        self.end_line();
        if !self.is_terminal() {
            let text = format!("{}\n", self.paint().paint_line(line));
            return self.write(&text);
        }
        let indent = leading_spaces(line) + HANGING_INDENT;
        for wrapped in wrap_line(line, (self.size)().text_columns(), indent) {
            self.write_row(&wrapped);
        }
    }

    /// Returns the last failure of writing, once.
    pub fn take_failure(&mut self) -> Option<std::io::Error> {
        self.failure.take()
    }

    /// Records the message of an error that was shown.
    pub fn note_error(&mut self, message: &str) {
        self.shown_error = Some(message.to_owned());
    }

    /// Returns the error that was shown last.
    #[must_use]
    pub fn shown_error(&self) -> Option<&str> {
        self.shown_error.as_deref()
    }

    /// Writes a line of a diff or of code: the terminal breaks it.
    pub fn write_unwrapped(&mut self, line: &StyledLine) {
        self.end_line();
        self.write_row(line);
    }

    /// Renders a text as Markdown on a terminal; writes it unchanged to other streams.
    pub fn write_markdown(&mut self, text: &str) {
        self.end_line();
        self.push_markdown(text);
        self.end_line();
    }

    /// Ends the open line, and the words that are being written.
    pub fn end_line(&mut self) {
        self.end_prose();
        self.clear_progress();
        if self.is_mid_line {
            self.write("\n");
        }
    }

    /// Records that the cursor is at the beginning of a line, because a person pressed Enter.
    pub fn note_line_end(&mut self) {
        self.is_mid_line = false;
    }

    /// Records that the cursor follows text that other code wrote, such as a question.
    pub fn note_open_line(&mut self) {
        self.end_line();
        self.is_mid_line = true;
    }

    /// Writes a piece of the model's words. On a terminal finished blocks are rendered; the open
    /// one is shown as it is and replaced when it ends.
    pub fn push_markdown(&mut self, piece: &str) {
        if !self.is_terminal() {
            return self.write(piece);
        }
        if !matches!(self.prose, OpenProse::Markdown(..)) {
            self.end_line();
            self.prose = OpenProse::Markdown(BlockSplitter::default(), OpenBlock::default());
        }
        self.clear_progress();
        let OpenProse::Markdown(mut splitter, mut open) = std::mem::replace(&mut self.prose, OpenProse::None)
        else {
            return;
        };
        let blocks = splitter.push(piece);
        self.replace_open_block(&mut open, &blocks);
        if self.capability == OutputKind::Color {
            self.show_open_block(&mut splitter, &mut open);
        }
        self.prose = OpenProse::Markdown(splitter, open);
    }

    /// Writes a piece of dim words, such as the model's thinking.
    pub fn push_dim(&mut self, piece: &str) {
        if !self.is_terminal() {
            return self.write(piece);
        }
        if !matches!(self.prose, OpenProse::Dim(..)) {
            self.end_line();
            self.prose = OpenProse::Dim(OpenBlock::default(), String::new());
        }
        self.clear_progress();
        let OpenProse::Dim(mut open, mut held) = std::mem::replace(&mut self.prose, OpenProse::None) else {
            return;
        };
        held.push_str(piece);
        let end = held.rfind(char::is_whitespace).map_or(0, |end| end + 1);
        let rest = held.split_off(held.ceil_char_boundary(end));
        self.write_words(&held, Style::Dim, &mut open);
        self.prose = OpenProse::Dim(open, rest);
    }

    /// Ends the words that are being written.
    pub fn end_prose(&mut self) {
        match std::mem::replace(&mut self.prose, OpenProse::None) {
            OpenProse::None => return,
            OpenProse::Markdown(mut splitter, mut open) => {
                let blocks = splitter.finish();
                self.clear_progress();
                self.replace_open_block(&mut open, &blocks);
            }
            OpenProse::Dim(mut open, held) => {
                self.clear_progress();
                self.write_words(&held, Style::Dim, &mut open);
            }
        }
        self.is_gap_written = false;
        if self.is_mid_line {
            self.write("\n");
        }
    }

    /// Shows the progress line in place of the one before, or none. It is shown on a terminal
    /// alone, and only where no text is open.
    pub fn show_progress(&mut self, line: Option<&StyledLine>) {
        let can_show = self.capability.can_erase() && !self.is_mid_line;
        let Some(line) = line.filter(|_| can_show) else { return self.clear_progress() };
        // It tells of commands and their output as they are.
        let cut = cut_line(&clean_line(line), (self.size)().text_columns().saturating_sub(1));
        let text = self.paint().dim(&cut.to_text());
        if self.progress.as_ref().is_some_and(|(shown, _)| *shown == text) {
            return;
        }
        self.clear_progress();
        self.write_to_stream(&text);
        self.progress = Some((text, line_width(&cut)));
    }

    /// Erases the progress line.
    pub fn clear_progress(&mut self) {
        let Some((_, columns)) = self.progress.take() else { return };
        match self.capability {
            OutputKind::Color => self.write_to_stream("\r\x1b[K"),
            _ => self.write_to_stream(&format!("\r{}\r", " ".repeat(columns))),
        }
    }

    /// Erases what is shown of the open block, and writes complete ones in its place.
    fn replace_open_block(&mut self, open: &mut OpenBlock, blocks: &[Block]) {
        if blocks.is_empty() {
            return;
        }
        if open.shown > 0 {
            let up = if open.rows > 0 { format!("\x1b[{}A", open.rows) } else { String::new() };
            self.write_to_stream(&format!("\r{up}\x1b[J"));
            self.is_mid_line = false;
        }
        *open = OpenBlock::default();
        let marks = if self.paint() == Paint::COLORED { MarkerDisplay::Dropped } else { MarkerDisplay::Kept };
        for block in blocks {
            if block.has_gap && !std::mem::take(&mut self.is_gap_written) {
                self.write("\n");
            }
            for line in render_block(block, (self.size)().text_columns(), marks) {
                self.write_row(&line);
            }
        }
    }

    /// Shows the words of the open block that have arrived since.
    fn show_open_block(&mut self, splitter: &mut BlockSplitter, open: &mut OpenBlock) {
        loop {
            let (source, indent) = splitter.open_block_text();
            let new = source.get(open.shown..).unwrap_or_default();
            // The last word may go on.
            let Some(end) = new.rfind(char::is_whitespace) else { return };
            let new = new.get(..end).unwrap_or_default().to_owned();
            if new.trim().is_empty() {
                return;
            }
            if open.shown == 0 {
                if splitter.has_gap_before_open_block() && !std::mem::replace(&mut self.is_gap_written, true)
                {
                    self.write("\n");
                }
                self.write(&" ".repeat(indent));
                open.column = indent;
            }
            self.write_words(&new, Style::Plain, open);
            open.shown += new.len();
            // Rows that have scrolled off the screen can't be replaced.
            if open.rows + 2 < (self.size)().rows {
                return;
            }
            let Some(piece) = splitter.split_open_block() else { return };
            self.replace_open_block(open, &[piece]);
        }
    }

    /// Writes words, with a new row for each that would pass the terminal's width.
    fn write_words(&mut self, text: &str, style: Style, open: &mut OpenBlock) {
        let columns = (self.size)().text_columns();
        let mut out = String::new();
        for part in text.split_inclusive(char::is_whitespace) {
            let word = part.trim_end_matches(char::is_whitespace);
            if open.column > 0 && open.column + text_width(word) > columns {
                out.push('\n');
                open.rows += 1;
                open.column = 0;
            }
            for character in word.chars() {
                if open.column + char_width(character) > columns {
                    out.push('\n');
                    open.rows += 1;
                    open.column = 0;
                }
                out.push(character);
                open.column += char_width(character);
            }
            for space in part.get(word.len()..).unwrap_or_default().chars() {
                if space == '\n' {
                    out.push('\n');
                    open.rows += 1;
                    open.column = 0;
                } else if open.column < columns {
                    out.push(' ');
                    open.column += 1;
                }
            }
        }
        let painted = self.paint().paint_line(&StyledLine::new(style, &*out));
        self.write(&painted);
        self.is_mid_line = open.column > 0;
    }

    fn write_row(&mut self, line: &StyledLine) {
        let row = format!("{}\n", self.paint().paint_line(line));
        self.write(&row);
    }

    fn write(&mut self, text: &str) {
        if !text.is_empty() {
            self.is_mid_line = !text.ends_with('\n');
            self.write_to_stream(text);
        }
    }

    /// Sends bytes to the stream.
    fn write_to_stream(&mut self, text: &str) {
        if let Err(error) = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()) {
            self.failure = Some(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use proptest::prelude::*;

    use super::*;

    /// A terminal that keeps what is on it: rows, a cursor, and the sequences that we send.
    #[derive(Clone, Default)]
    struct Display(Arc<Mutex<Contents>>);

    /// The rows, the cursor's row and column, and what was written and not yet shown.
    type Contents = (Vec<Vec<char>>, usize, usize, String);

    impl Write for Display {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let mut state = self.0.lock().unwrap();
            state.3.push_str(std::str::from_utf8(bytes).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            let mut state = self.0.lock().unwrap();
            let text = std::mem::take(&mut state.3);
            let (rows, row, column, _) = &mut *state;
            let mut rest = text.chars().peekable();
            while let Some(character) = rest.next() {
                while rows.len() <= *row {
                    rows.push(Vec::new());
                }
                match character {
                    '\n' => (*row, *column) = (*row + 1, 0),
                    '\r' => *column = 0,
                    '\u{1b}' => {
                        let sequence: String = rest.by_ref().skip(1).take_while_inclusive();
                        match sequence.chars().last().unwrap() {
                            'A' => *row -= sequence.trim_end_matches('A').parse::<usize>().unwrap(),
                            'J' => {
                                rows[*row].truncate(*column);
                                rows.truncate(*row + 1);
                            }
                            'K' => rows[*row].truncate(*column),
                            'm' => {}
                            other => panic!("{other}"),
                        }
                    }
                    other => {
                        while rows[*row].len() <= *column {
                            rows[*row].push(' ');
                        }
                        rows[*row][*column] = other;
                        *column += 1;
                    }
                }
            }
            Ok(())
        }
    }

    trait TakeSequence {
        fn take_while_inclusive(self) -> String;
    }

    impl<I: Iterator<Item = char>> TakeSequence for I {
        fn take_while_inclusive(self) -> String {
            let mut sequence = String::new();
            for character in self {
                sequence.push(character);
                if character.is_ascii_alphabetic() {
                    break;
                }
            }
            sequence
        }
    }

    impl Display {
        fn screen(&self, capability: OutputKind, columns: usize, rows: usize) -> Screen {
            Screen::new(self.clone(), capability, move || Size { columns, rows })
        }

        fn lines(&self) -> Vec<String> {
            let state = self.0.lock().unwrap();
            let mut lines: Vec<String> =
                state.0.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned()).collect();
            while lines.last().is_some_and(String::is_empty) {
                lines.pop();
            }
            lines
        }
    }

    fn line(text: &str) -> StyledLine {
        StyledLine::new(Style::Plain, text)
    }

    #[test]
    fn the_progress_line_is_gone_before_anything_else_is_written() {
        for capability in [OutputKind::Color, OutputKind::Plain] {
            let display = Display::default();
            let mut screen = display.screen(capability, 20, 10);
            screen.show_progress(Some(&line("waiting for a very slow model")));
            assert_eq!(display.lines(), ["waiting for a very…"]);
            screen.show_progress(Some(&line("waiting")));
            assert_eq!(display.lines(), ["waiting"]);
            screen.write_line(&line("● run make"));
            assert_eq!(display.lines(), ["● run make"]);
            screen.show_progress(Some(&line("$ make")));
            screen.write_text("more");
            screen.show_progress(Some(&line("not behind an open line")));
            assert_eq!(display.lines(), ["● run make", "more"]);
            screen.end_line();
            screen.show_progress(Some(&line("again")));
            screen.show_progress(None);
            assert_eq!(display.lines(), ["● run make", "more"]);
        }
    }

    #[test]
    fn a_progress_line_commands_nothing() {
        let display = Display::default();
        let mut screen = display.screen(OutputKind::Plain, 40, 10);
        screen.show_progress(Some(&line("$ ls \x1b]52;c;eA==\x07\u{9b}2J\ta\rb")));
        assert_eq!(display.lines(), ["$ ls ]52;c;eA==2J    ab"]);
    }

    #[test]
    fn streams_and_dumb_terminals_have_no_progress_line() {
        for capability in [OutputKind::Stream, OutputKind::Dumb] {
            let display = Display::default();
            display.screen(capability, 20, 10).show_progress(Some(&line("waiting")));
            assert!(display.lines().is_empty(), "{capability:?}");
        }
    }

    #[test]
    fn an_open_block_is_shown_and_then_replaced() {
        let display = Display::default();
        let mut screen = display.screen(OutputKind::Color, 20, 10);
        screen.push_markdown("It is **very im");
        assert_eq!(display.lines(), ["It is **very"]);
        screen.push_markdown("portant** to be here now");
        assert_eq!(display.lines(), ["It is **very", "important** to be", "here"]);
        screen.push_markdown(".\n\n- on");
        assert_eq!(display.lines(), ["It is very important", "to be here now.", "", "-"]);
        screen.push_markdown("e two\n- three");
        screen.end_line();
        assert_eq!(display.lines(), ["It is very important", "to be here now.", "", "• one two", "• three"]);
    }

    #[test]
    fn a_block_taller_than_the_screen_comes_in_pieces() {
        let display = Display::default();
        let mut screen = display.screen(OutputKind::Color, 12, 5);
        let words: Vec<String> = (0..60).map(|number| format!("word{number}")).collect();
        for word in &words {
            screen.push_markdown(&format!("{word} "));
        }
        screen.end_line();
        let shown: Vec<String> = display
            .lines()
            .iter()
            .flat_map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>())
            .collect();
        assert_eq!(shown, words);
    }

    #[test]
    fn a_stream_gets_the_source() {
        let display = Display::default();
        let mut screen = display.screen(OutputKind::Stream, 12, 5);
        screen.push_markdown("Some **long words** that ");
        screen.push_markdown("go on");
        screen.end_line();
        screen.write_line(&line("a line that is wider than the terminal"));
        assert_eq!(
            display.lines(),
            ["Some **long words** that go on", "a line that is wider than the terminal"]
        );
    }

    #[test]
    fn thinking_is_wrapped() {
        let display = Display::default();
        let mut screen = display.screen(OutputKind::Plain, 12, 5);
        screen.push_dim("I have to th");
        screen.push_dim("ink about it");
        screen.write_line(&line("  a line with words"));
        assert_eq!(display.lines(), ["I have to", "think about", "it", "  a line", "    with", "    words"]);
    }

    proptest! {
        #[test]
        fn streaming_ends_like_rendering_at_once(
            source in "([a-z*`]{1,9}[ \n]|\n|- |# |> |```\n){1,40}",
            size in 1_usize..9,
            columns in 12_usize..40,
        ) {
            let [streamed, at_once] = [Display::default(), Display::default()];
            let mut screen = streamed.screen(OutputKind::Color, columns, 500);
            let characters: Vec<char> = source.chars().collect();
            for piece in characters.chunks(size) {
                screen.push_markdown(&piece.iter().collect::<String>());
            }
            screen.end_line();
            at_once.screen(OutputKind::Color, columns, 500).write_markdown(&source);
            prop_assert_eq!(streamed.lines(), at_once.lines());
        }
    }
}
