//! Lines of a conversation without a screen: their effects, and the answers.

use std::io;
use std::time::Instant;

use journeyman_agent::PermissionAnswer;
use journeyman_host::{Context as _, HostError};
use journeyman_terminal::{Style, StyledLine};

use crate::app::{App, LoopFlow};
use crate::blocks::{Block, BlockEntry};
use crate::picker::Picker;
use crate::plain::write_text;
use crate::presentation::{Overlay, PickerPurpose};
use crate::questions::QuestionEffect;

/// Maximum items of a list of choices: a person listens to them.
const MAX_LISTED_CHOICES: usize = 20;
/// Rows that a question may have; it is written once.
const MAX_QUESTION_ROWS: usize = 60;
/// The mark of a terminal that waits for a line.
const PROMPT: &str = "> ";

impl App {
    /// Returns true while something goes on that a line from a pipe waits for.
    pub(crate) fn is_busy(&self) -> bool {
        let is_working = self.conversation.is_working() && !self.questions.is_open();
        is_working || !self.queued.is_empty() || !self.jobs.is_empty()
    }

    /// Returns true if the input has ended and everything it asked for is done.
    pub(crate) fn is_input_done(&self) -> bool {
        self.plain.as_ref().is_some_and(|plain| plain.has_ended)
            && !self.is_busy()
            && !self.conversation.is_working()
    }

    /// Writes what is new.
    pub(crate) fn write_new_lines(&mut self) -> io::Result<()> {
        // A terminal has shown what was typed on it.
        let mut typed = self.plain.as_mut().map(|plain| std::mem::take(&mut plain.typed)).unwrap_or_default();
        let mut rows = self.presentation.take_finished_rows(self.conversation.entries(), |entry| {
            let Block::Message(text) = &entry.block else { return false };
            let before = typed.len();
            typed.retain(|line| !text.contains(line.as_str()));
            typed.len() < before
        });
        let is_busy = self.is_busy();
        let width = self.presentation.size().columns;
        let Some(plain) = &mut self.plain else { return Ok(()) };
        plain.typed = typed;
        if plain.notice != self.notice {
            plain.notice.clone_from(&self.notice);
            rows.extend(self.notice.iter().map(|notice| StyledLine::new(Style::Warning, notice)));
        }
        if plain.asked.as_ref() != self.questions.shown_call() {
            plain.asked = self.questions.shown_call().cloned();
            rows.extend(self.questions.render_whole(width, MAX_QUESTION_ROWS));
        }
        let mut text = String::new();
        if !rows.is_empty() && std::mem::take(&mut plain.is_prompted) {
            text.push('\n');
        }
        for row in &rows {
            text.push_str(row.to_text().trim_end());
            text.push('\n');
        }
        let is_waiting = plain.is_terminal && !is_busy && !plain.has_ended && !plain.is_prompted;
        if is_waiting && rows.is_empty() {
            plain.is_prompted = true;
            text.push_str(PROMPT);
        } else if is_waiting {
            // More may follow at once; the next frame knows.
            self.presentation.invalidate();
        }
        if text.is_empty() { Ok(()) } else { write_text(&text) }
    }

    /// Writes what would fill the screen: a text, or a list to choose from by number.
    pub(crate) fn write_overlay(&mut self, overlay: Overlay) {
        let lines = match overlay {
            Overlay::Transcript(_) => return,
            Overlay::Document(_, entries) => {
                let lines = entries.into_iter().filter_map(|entry: BlockEntry| match entry.block {
                    Block::Lines(lines) => Some(lines),
                    _ => None,
                });
                lines.flatten().collect()
            }
            Overlay::Review(review) => review.into_lines(),
            Overlay::Picker(picker, choice) => self.list_choices(&picker, choice),
        };
        self.conversation.push_note(lines);
    }

    fn list_choices(&mut self, picker: &Picker, choice: PickerPurpose) -> Vec<StyledLine> {
        let labels = picker.labels();
        let count = labels.len().min(MAX_LISTED_CHOICES);
        let mut lines = vec![StyledLine::new(Style::Strong, picker.title())];
        let numbered = labels.into_iter().take(count).enumerate();
        lines.extend(
            numbered.map(|(place, label)| StyledLine::new(Style::Plain, format!("  {}. {label}", place + 1))),
        );
        lines.push(StyledLine::new(Style::Dim, "  a number chooses; an empty line leaves it"));
        if let Some(plain) = &mut self.plain {
            plain.choice = Some((count, choice));
        }
        lines
    }

    /// Handles a line, or the end of the input.
    pub(crate) async fn handle_line(&mut self, line: Option<String>) -> Result<LoopFlow, HostError> {
        self.notice = None;
        let Some(plain) = &mut self.plain else { return Ok(LoopFlow::Continue) };
        (plain.is_prompted, plain.notice) = (false, None);
        let Some(line) = line else {
            plain.has_ended = true;
            let rest = std::mem::take(&mut plain.unfinished);
            let nobody = PermissionAnswer::NoAnswer { reason: "the input has ended".to_owned() };
            while let Some(answered) = self.questions.answer_first(nobody.clone()) {
                self.send_answer(answered);
            }
            // Nothing follows the line that would go on.
            return match rest.trim_end() {
                "" => Ok(LoopFlow::Continue),
                rest => self.submit(rest.to_owned()).await,
            };
        };
        if let Some(head) = line.strip_suffix('\\') {
            plain.unfinished.push_str(head);
            plain.unfinished.push('\n');
            return Ok(LoopFlow::Continue);
        }
        let line = std::mem::take(&mut plain.unfinished) + &line;
        if let Some((count, choice)) = plain.choice.take() {
            let number = line.trim().parse::<usize>().ok().filter(|number| (1..=count).contains(number));
            match number {
                Some(number) => self.apply_choice(choice.item_at(number - 1, 0)).await,
                None if self.has_no_session() => self.open_new_session().await,
                None => self.notice = Some("nothing was chosen".to_owned()),
            }
            return Ok(LoopFlow::Continue);
        }
        if self.questions.is_open() {
            self.answer_by_line(&line);
            return Ok(LoopFlow::Continue);
        }
        let Some(plain) = &mut self.plain else { return Ok(LoopFlow::Continue) };
        match line.trim() {
            "" => Ok(LoopFlow::Continue),
            "?" => {
                self.show_help()?;
                Ok(LoopFlow::Continue)
            }
            text => {
                let is_message = plain.is_terminal && !text.starts_with(['/', '!']);
                plain.typed.extend(is_message.then(|| text.to_owned()));
                self.submit(line).await
            }
        }
    }

    fn answer_by_line(&mut self, line: &str) {
        match self.questions.answer_line(line) {
            QuestionEffect::Answered(answered) => self.send_answer(*answered),
            QuestionEffect::ShowWhole(lines) => self.conversation.push_note(lines),
            QuestionEffect::Changed => {
                self.notice = Some("this is asked about every time; answer y, n or d".to_owned());
            }
            QuestionEffect::Ignored => {
                self.notice = Some("answer y, s, r, d, or n with a reason".to_owned());
            }
        }
    }

    /// Handles a signal that a person sends by Ctrl-C. Returns true if it ends the program.
    pub(crate) fn interrupt_or_quit(&mut self) -> bool {
        let is_working = self.plain.is_some() && self.can_interrupt();
        if is_working {
            self.interrupt();
        }
        !is_working
    }

    /// Draws a frame, or writes what is new.
    pub(crate) fn draw_or_write(&mut self, now: Instant) -> Result<(), HostError> {
        let shown = if self.plain.is_some() { self.write_new_lines() } else { self.draw(now) };
        shown.context("the terminal")
    }
}
