//! Reminders for the model from the program itself.

/// Wraps a reminder so that the model recognizes it and doesn't answer it.
pub(crate) fn wrap_reminder(content: &str) -> String {
    format!(
        "<system-reminder>\n{content}\n\nThis is a reminder from the program, not from the user. Don't answer it or \
         mention it; go on with the task.\n</system-reminder>"
    )
}

#[cfg(test)]
mod tests {
    use super::wrap_reminder;

    #[test]
    fn a_reminder_says_that_it_is_one() {
        let text = wrap_reminder("two todos are open");
        assert!(text.starts_with("<system-reminder>\ntwo todos are open\n"));
        assert!(text.ends_with("</system-reminder>"));
    }
}
