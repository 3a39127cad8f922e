//! A notice for a person whose window isn't in front. Pure but for the bytes.

/// The kind of notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum NoticeKind {
    /// None.
    Off,
    /// The terminal's bell.
    #[default]
    Bell,
    /// A message of the desktop, by the sequences that terminals know, and the bell.
    Message,
}

/// Knows if the window is in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Notifier {
    notice: NoticeKind,
    /// True once the terminal has said that another window is in front.
    is_elsewhere: bool,
}

impl Notifier {
    /// Makes the notices of a setting: `off`, `bell` or `message`.
    #[must_use]
    pub(crate) fn from_setting(setting: Option<&str>) -> Self {
        let notice = match setting {
            Some("off") => NoticeKind::Off,
            Some("message") => NoticeKind::Message,
            _ => NoticeKind::Bell,
        };
        Self { notice, is_elsewhere: false }
    }

    /// Records whether the terminal's window is in front.
    pub(crate) fn set_focus(&mut self, is_in_front: bool) {
        self.is_elsewhere = !is_in_front;
    }

    /// Returns the bytes that call a person who is elsewhere, none for one who looks on. `text` is
    /// without control characters.
    #[must_use]
    pub(crate) fn notification_bytes(self, text: &str) -> String {
        match self.notice {
            _ if !self.is_elsewhere => String::new(),
            NoticeKind::Off => String::new(),
            NoticeKind::Bell => "\x07".to_owned(),
            // iTerm2, kitty, WezTerm, Ghostty and Windows Terminal know the first, urxvt, foot and
            // VTE the second; each leaves out the other.
            NoticeKind::Message => format!("\x1b]9;{text}\x1b\\\x1b]777;notify;journeyman;{text}\x1b\\\x07"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_person_who_is_elsewhere_is_called() {
        for (setting, focus, expected) in [
            (None, None, ""),
            (None, Some(true), ""),
            (None, Some(false), "\x07"),
            (Some("off"), Some(false), ""),
            (Some("message"), Some(true), ""),
        ] {
            let mut attention = Notifier::from_setting(setting);
            focus.into_iter().for_each(|focus| attention.set_focus(focus));
            assert_eq!(attention.notification_bytes("done"), expected, "{setting:?} {focus:?}");
        }
        let mut attention = Notifier::from_setting(Some("message"));
        attention.set_focus(false);
        assert!(attention.notification_bytes("done").starts_with("\x1b]9;done\x1b\\"));
    }
}
