//! The display of a running CLI: events in the session's log, and its live output.

use std::sync::Arc;

use journeyman_sandbox::{Outcome as End, clean_output};
use journeyman_tools::EmitEvent;
use serde_json::{Value, json};

use crate::DelegateEvent;

/// Maximum number of logged events of one run; further ones are only in the live output.
const MAX_LOGGED_EVENTS: usize = 2_000;
/// Maximum bytes of a text in an event.
const MAX_EVENT_TEXT_BYTES: usize = 2_000;
/// Maximum bytes of live output of one run.
const MAX_LIVE_BYTES: usize = 1024 * 1024;
/// Maximum number of files named in an event.
const MAX_NAMED_FILES: usize = 50;

/// Logs and prints the events of one run.
pub(crate) struct EventSink<'a> {
    name: &'a str,
    emit: &'a EmitEvent,
    output: &'a Arc<dyn Fn(String) + Send + Sync>,
    logged: usize,
    shown: usize,
    /// True if the live output is in the middle of a line.
    within_line: bool,
}

impl<'a> EventSink<'a> {
    pub(crate) fn new(
        name: &'a str,
        emit: &'a EmitEvent,
        output: &'a Arc<dyn Fn(String) + Send + Sync>,
    ) -> Self {
        Self { name, emit, output, logged: 0, shown: 0, within_line: false }
    }

    /// Logs an event, and prints the part that is for people.
    pub(crate) fn show(&mut self, event: &DelegateEvent) {
        if let Some((kind, data)) = logged_event(event) {
            self.log(kind, data);
        }
        match event {
            DelegateEvent::Text(text) => self.print(&clean_output(text.as_bytes())),
            DelegateEvent::ToolStart { tool, summary, .. } => {
                self.print_line(&format!("• {tool} {}", shorten(summary, MAX_EVENT_TEXT_BYTES)));
            }
            DelegateEvent::ToolEnd { failed: true, output, .. } => {
                self.print_line(&format!("  failed: {}", shorten(output, MAX_EVENT_TEXT_BYTES)));
            }
            DelegateEvent::Warning(text) => {
                self.print_line(&format!("! {}", shorten(text, MAX_EVENT_TEXT_BYTES)))
            }
            _ => {}
        }
    }

    fn log(&mut self, kind: &str, mut data: Value) {
        self.logged += 1;
        let kind = match self.logged {
            ..=MAX_LOGGED_EVENTS => kind,
            over if over == MAX_LOGGED_EVENTS + 1 => "events_left_out",
            _ => return,
        };
        if let Some(fields) = data.as_object_mut() {
            fields.insert("to".to_owned(), self.name.into());
        }
        (self.emit)(kind, data);
    }

    fn print_line(&mut self, line: &str) {
        let before = if self.within_line { "\n" } else { "" };
        self.print(&format!("{before}{}\n", clean_output(line.as_bytes())));
    }

    fn print(&mut self, text: &str) {
        if text.is_empty() || self.shown > MAX_LIVE_BYTES {
            return;
        }
        self.shown = self.shown.saturating_add(text.len());
        self.within_line = !text.ends_with('\n');
        (self.output)(text.to_owned());
    }
}

/// Returns the kind and the data of an event that is logged; `None` for text, which goes into the
/// result.
fn logged_event(event: &DelegateEvent) -> Option<(&'static str, Value)> {
    let cut = |text: &str| {
        text.get(..text.floor_char_boundary(MAX_EVENT_TEXT_BYTES)).unwrap_or_default().to_owned()
    };
    Some(match event {
        DelegateEvent::Session(id) => ("session", json!({ "id": cut(id) })),
        DelegateEvent::ToolStart { id, tool, summary } => {
            ("tool_start", json!({ "id": cut(id), "tool": cut(tool), "summary": cut(summary) }))
        }
        DelegateEvent::ToolEnd { id, failed, output } => {
            ("tool_end", json!({ "id": cut(id), "failed": failed, "output": cut(output) }))
        }
        DelegateEvent::FilesChanged(files) => {
            let files: Vec<String> = files.iter().take(MAX_NAMED_FILES).map(|file| cut(file)).collect();
            ("files_changed", json!({ "files": files }))
        }
        DelegateEvent::Usage { usage, cost } => ("usage", json!({ "usage": usage, "usd": cost })),
        DelegateEvent::Warning(text) => ("warning", json!({ "text": cut(text) })),
        DelegateEvent::Unknown(line) => ("unknown", json!({ "line": cut(line) })),
        DelegateEvent::Text(_) | DelegateEvent::Thought(_) => return None,
    })
}

/// Returns a text on one line, cut to `most` bytes.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    let words: Vec<&str> =
        text.get(..text.floor_char_boundary(most * 2)).unwrap_or_default().split_whitespace().collect();
    let line = words.join(" ");
    let end = line.floor_char_boundary(most);
    let cut = line.get(..end).unwrap_or_default();
    if end < line.len() || text.len() > most * 2 { format!("{cut}…") } else { line }
}

/// Describes the end of a process in words.
pub(crate) fn describe_end(end: &End) -> String {
    match end {
        End::Exited(code) => format!("exit code {code}"),
        End::Signaled(signal) => format!("killed by signal {signal}"),
        End::TimedOut => "killed at its time limit".to_owned(),
        End::Cancelled => "stopped".to_owned(),
        End::SetupFailed(reason) => format!("it did not start: {reason}"),
        excess => format!("killed for {}", excess.exceeded_limit().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn people_follow_a_run_and_the_log_has_a_bounded_number_of_events() {
        let (events, shown) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(String::new())));
        let (log, screen) = (Arc::clone(&events), Arc::clone(&shown));
        let emit: EmitEvent = Arc::new(move |kind, data| log.lock().unwrap().push((kind.to_owned(), data)));
        let output: Arc<dyn Fn(String) + Send + Sync> =
            Arc::new(move |text: String| screen.lock().unwrap().push_str(&text));
        let mut sink = EventSink::new("fake", &emit, &output);
        sink.show(&DelegateEvent::Text("I look".to_owned()));
        let start = DelegateEvent::ToolStart {
            id: "1".to_owned(),
            tool: "bash".to_owned(),
            summary: "cargo\n  test \u{1b}[31m".to_owned(),
        };
        sink.show(&start);
        let end = DelegateEvent::ToolEnd { id: "1".to_owned(), failed: true, output: "no".to_owned() };
        sink.show(&end);
        assert_eq!(*shown.lock().unwrap(), "I look\n• bash cargo test \n  failed: no\n");
        let kinds: Vec<String> = events.lock().unwrap().iter().map(|(kind, _)| kind.clone()).collect();
        assert_eq!(kinds, ["tool_start", "tool_end"]);
        assert_eq!(events.lock().unwrap()[1].1["to"], "fake");
        for _ in 0..3_000 {
            sink.show(&DelegateEvent::Unknown("x".repeat(10_000)));
        }
        let events = events.lock().unwrap();
        assert_eq!(
            (events.len(), events.last().unwrap().0.as_str()),
            (MAX_LOGGED_EVENTS + 1, "events_left_out")
        );
        assert!(events[2].1.to_string().len() < 2_100);
    }
}
