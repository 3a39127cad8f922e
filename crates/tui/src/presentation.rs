//! The terminal with everything that is drawn on it.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use journeyman_terminal::StyledLine;
use journeyman_terminal::markdown::MarkerDisplay;

use crate::alt_screen::AltScreen;
use crate::background_query::BACKGROUND_QUERY;
use crate::blocks::{BlockEntry, Detail, Layout, render_entries};
use crate::composer::clean_paste;
use crate::hyperlinks::Linker;
use crate::picker::Picker;
use crate::review::Review;
use crate::screen::{Frame, Reflow, Screen, Size};
use crate::terminal::RawTerminal;
use crate::theme::{BackgroundBrightness, ColorDepth, Theme};
use crate::viewer::Viewer;

/// Time between two frames while something streams: words are read no faster, and each frame
/// costs the terminal something.
pub(crate) const FRAME_INTERVAL: Duration = Duration::from_millis(40);
/// The size of a terminal that doesn't say its own.
const DEFAULT_SIZE: Size = Size { columns: 80, rows: 24 };

/// The content of the alternate screen.
pub(crate) enum Overlay {
    /// The whole conversation.
    Transcript(Viewer),
    /// A text that stays as it is.
    Document(Viewer, Vec<BlockEntry>),
    /// The changes of the session, to be kept or taken back.
    Review(Box<Review>),
    /// A list to choose from, and what the choice is for.
    Picker(Picker, PickerPurpose),
}

/// The purpose of a list, with the things that its items stand for.
pub(crate) enum PickerPurpose {
    /// Sessions to go on with.
    Session(Vec<journeyman_protocol::SessionId>),
    /// Messages to go back to, and true if the session works in a copy.
    Turning(Vec<crate::conversation_state::RewindPoint>, bool),
    /// Checkpoints to take the files back to.
    Checkpoint(Vec<u64>),
}

/// The terminal, and what stands on it.
pub(crate) struct Presentation {
    /// The terminal; `None` where lines are written and nothing is drawn.
    terminal: Option<RawTerminal>,
    screen: Screen,
    theme: Theme,
    links: Option<Rc<Linker>>,
    overlay: Option<(AltScreen, Overlay)>,
    /// The number of blocks that are in the scrollback, or were left out on purpose.
    committed: usize,
    drawn_at: Instant,
    is_stale: bool,
}

impl Presentation {
    /// Takes over the terminal.
    ///
    /// # Errors
    /// The terminal can't be set.
    pub(crate) fn acquire_terminal(theme: Theme, reflow: Reflow) -> io::Result<Self> {
        let terminal = Some(RawTerminal::acquire()?);
        let screen = Screen::new(theme, reflow, terminal_size());
        let drawn_at = Instant::now();
        Ok(Self {
            terminal,
            screen,
            theme,
            links: None,
            overlay: None,
            committed: 0,
            drawn_at,
            is_stale: true,
        })
    }

    /// Makes the presentation of a conversation as lines, which takes nothing.
    #[must_use]
    pub(crate) fn for_lines() -> Self {
        let theme = Theme::new(ColorDepth::None, BackgroundBrightness::Unknown);
        let screen = Screen::new(theme, Reflow::Wraps, terminal_size());
        let drawn_at = Instant::now();
        Self {
            terminal: None,
            screen,
            theme,
            links: None,
            overlay: None,
            committed: 0,
            drawn_at,
            is_stale: true,
        }
    }

    fn write(&mut self, bytes: &str) -> io::Result<()> {
        self.terminal.as_mut().map_or(Ok(()), |terminal| terminal.write(bytes))
    }

    /// Returns the colours.
    #[must_use]
    pub(crate) fn theme(&self) -> Theme {
        self.theme
    }

    /// Sets other colours, for what is drawn from here on.
    pub(crate) fn set_theme(&mut self, theme: Theme) {
        self.theme = theme;
        self.screen.set_theme(theme);
        if let Some((alt, _)) = &mut self.overlay {
            alt.set_theme(theme);
        }
        self.is_stale = true;
    }

    /// Writes bytes that move nothing, such as the bell.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn write_notification(&mut self, bytes: &str) -> io::Result<()> {
        if bytes.is_empty() { Ok(()) } else { self.write(bytes) }
    }

    /// Asks the terminal for the colour behind the text. The answer comes among the keys.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn query_background(&mut self) -> io::Result<()> {
        self.write(BACKGROUND_QUERY)
    }

    /// Makes paths links to files of a project, in what is drawn from here on.
    pub(crate) fn set_links(&mut self, linker: Linker) {
        let linker = Rc::new(linker);
        self.screen.set_links(Rc::clone(&linker));
        self.links = Some(linker);
    }

    /// Returns true if paths are links.
    #[must_use]
    pub(crate) fn has_links(&self) -> bool {
        self.links.is_some()
    }

    /// Returns the terminal's size.
    #[must_use]
    pub(crate) fn size(&self) -> Size {
        self.screen.size()
    }

    /// Returns the marks of Markdown that the terminal needs.
    #[must_use]
    pub(crate) fn marker_display(&self) -> MarkerDisplay {
        if self.theme.has_colors() { MarkerDisplay::Dropped } else { MarkerDisplay::Kept }
    }

    /// Marks the presentation as outdated, so that a frame is drawn.
    pub(crate) fn invalidate(&mut self) {
        self.is_stale = true;
    }

    /// Returns the time of the next frame, or `None` if nothing is different.
    #[must_use]
    pub(crate) fn next_frame_time(&self) -> Option<Instant> {
        self.is_stale.then_some(self.drawn_at + FRAME_INTERVAL)
    }

    /// Marks blocks as shown, such as those of a session that was left a moment ago.
    pub(crate) fn mark_blocks_shown(&mut self, committed: usize) {
        self.committed = committed;
    }

    /// Returns the rows of the blocks that have come since the last frame, without those that
    /// `is_hidden`.
    pub(crate) fn take_finished_rows(
        &mut self,
        entries: &[BlockEntry],
        mut is_hidden: impl FnMut(&BlockEntry) -> bool,
    ) -> Vec<StyledLine> {
        let layout =
            Layout { width: self.size().columns, marks: self.marker_display(), detail: Detail::Short };
        self.is_stale = false;
        let new = render_entries(entries, self.committed, |_| layout);
        let entries_of = entries.iter().skip(std::mem::replace(&mut self.committed, entries.len()));
        let shown = new.into_iter().zip(entries_of).filter(|(_, entry)| !is_hidden(entry));
        shown.flat_map(|(rows, _)| rows).collect()
    }

    /// Draws the live area below the blocks that have come, or what is on the alternate screen.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn draw(
        &mut self,
        entries: &[BlockEntry],
        live: impl FnOnce(Size) -> (Vec<StyledLine>, (usize, usize)),
        now: Instant,
    ) -> io::Result<()> {
        (self.is_stale, self.drawn_at) = (false, now);
        let bytes = match &mut self.overlay {
            Some((alt, overlay)) => {
                let (rows, cursor) = overlay.render(entries, alt.size());
                alt.draw(&rows, cursor)
            }
            None => {
                let finished = self.take_finished_rows(entries, |_| false);
                let (live, cursor) = live(self.size());
                self.screen.draw(&Frame { finished, live, cursor })
            }
        };
        if bytes.is_empty() { Ok(()) } else { self.write(&bytes) }
    }

    /// Updates the size to that of the terminal.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn resize(&mut self) -> io::Result<()> {
        let (before, size) = (self.size(), terminal_size());
        self.is_stale = true;
        match &mut self.overlay {
            // What is on the other screen is drawn over when it is shown again.
            Some((alt, _)) => {
                if size != alt.size() {
                    alt.resize(size);
                }
                Ok(())
            }
            None if size == before => Ok(()),
            None => {
                let bytes = self.screen.resize(size);
                self.write(&bytes)
            }
        }
    }
}

impl Presentation {
    /// Shows something on the alternate screen.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn open_overlay(&mut self, overlay: Overlay) -> io::Result<()> {
        self.is_stale = true;
        if let Some((_, open)) = &mut self.overlay {
            *open = overlay;
            return Ok(());
        }
        let (alt, bytes) = AltScreen::enter(self.theme, self.links.clone(), self.size());
        self.overlay = Some((alt, overlay));
        self.record_alternate_screen(true);
        self.write(&bytes)
    }

    /// Returns what is on the alternate screen.
    pub(crate) fn overlay(&mut self) -> Option<&mut Overlay> {
        self.overlay.as_mut().map(|(_, overlay)| overlay)
    }

    /// Goes back from the alternate screen. Returns what was on it.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn close_overlay(&mut self) -> io::Result<Option<Overlay>> {
        let Some((alt, overlay)) = self.overlay.take() else { return Ok(None) };
        self.is_stale = true;
        self.record_alternate_screen(false);
        self.write(&alt.leave())?;
        // Its size may have changed meanwhile.
        self.resize()?;
        Ok(Some(overlay))
    }

    fn record_alternate_screen(&mut self, is_alternate: bool) {
        if let Some(terminal) = &mut self.terminal {
            terminal.record_alternate_screen(is_alternate);
        }
    }

    /// Draws everything anew below what stands on the terminal.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn redraw(&mut self) -> io::Result<()> {
        self.is_stale = true;
        let bytes = self.screen.clear();
        self.write(&bytes)
    }

    /// Restores the terminal for as long as `work` needs it.
    ///
    /// # Errors
    /// The terminal can't be set.
    pub(crate) fn with_terminal_restored<T>(&mut self, work: impl FnOnce() -> T) -> io::Result<T> {
        self.restore_terminal()?;
        let done = work();
        if let Some(terminal) = &mut self.terminal {
            terminal.enter()?;
        }
        self.screen.forget();
        self.resize()?;
        Ok(done)
    }

    /// Stops the program as Ctrl-Z does, and goes on when it is continued.
    ///
    /// # Errors
    /// The terminal can't be set.
    pub(crate) fn suspend_process(&mut self) -> io::Result<()> {
        let bytes = self.screen.clear();
        self.write(&bytes)?;
        if let Some(terminal) = &mut self.terminal {
            terminal.suspend_process()?;
        }
        self.screen.forget();
        self.resize()
    }

    /// Restores the terminal, without the live area.
    ///
    /// # Errors
    /// The terminal can't be set.
    pub(crate) fn restore_terminal(&mut self) -> io::Result<()> {
        self.close_overlay()?;
        let bytes = self.screen.clear();
        self.write(&bytes)?;
        self.terminal.as_mut().map_or(Ok(()), RawTerminal::restore)
    }

    /// Returns the messages of panics that didn't end the program.
    #[must_use]
    pub(crate) fn take_panics(&self) -> Vec<String> {
        self.terminal.as_ref().map(RawTerminal::take_panics).unwrap_or_default()
    }
}

impl Overlay {
    /// Takes pasted text for the words that are typed, if any are.
    pub(crate) fn paste(&mut self, text: &str) {
        let words = clean_paste(text).replace('\n', " ");
        match self {
            Self::Transcript(viewer) | Self::Document(viewer, _) => viewer.paste(words.trim()),
            Self::Picker(picker, _) => picker.paste(words.trim()),
            Self::Review(_) => {}
        }
    }

    fn render(&mut self, entries: &[BlockEntry], size: Size) -> (Vec<StyledLine>, Option<(usize, usize)>) {
        match self {
            Self::Transcript(viewer) => viewer.render(entries, size),
            Self::Document(viewer, own) => viewer.render(own, size),
            Self::Review(review) => (review.render(size), None),
            Self::Picker(picker, _) => {
                let (rows, cursor) = picker.render(size);
                (rows, Some(cursor))
            }
        }
    }
}

fn terminal_size() -> Size {
    match crossterm::terminal::size() {
        Ok((columns, rows)) if columns > 0 && rows > 0 => {
            Size { columns: usize::from(columns), rows: usize::from(rows) }
        }
        _ => DEFAULT_SIZE,
    }
}
