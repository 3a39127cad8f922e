//! Texts that stay whole when the conversation is shortened.

use journeyman_agent::AgentError;
use journeyman_terminal::Style;

use crate::app::App;
use crate::commands::Command;

impl App {
    /// Pins a text, unpins the one of a number, or lists those that are pinned.
    pub(crate) async fn change_pins(&mut self, command: Command, argument: &str) {
        if self.require_logged_id().is_none() {
            return;
        }
        let Some(session) = self.open_session.as_ref().map(|open| open.session.clone()) else { return };
        let changed = async {
            let pinned = session.pinned().await?;
            let number = argument.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            match (command, number.and_then(|at| pinned.get(at))) {
                (Command::Unpin, Some(text)) => {
                    session.unpin(text).await?;
                    return Ok(format!("no longer pinned: {text}"));
                }
                (Command::Pin, _) if !argument.is_empty() => {
                    session.pin(argument).await?;
                    return Ok(
                        "pinned: the model is told with its next step, and it stays when the conversation is shortened".to_owned()
                    );
                }
                _ if pinned.is_empty() => return Ok("nothing is pinned; /pin TEXT pins a text".to_owned()),
                _ => {}
            }
            let lines = pinned.iter().enumerate().map(|(at, text)| format!("{}. {text}", at + 1));
            let lines: Vec<String> = lines.chain(["/unpin N takes one away".to_owned()]).collect();
            Ok::<_, AgentError>(lines.join("\n"))
        };
        match changed.await {
            Ok(said) => self.show_note(Style::Dim, &said),
            Err(error) => self.show_note(Style::Warning, &error.to_string()),
        }
    }
}
