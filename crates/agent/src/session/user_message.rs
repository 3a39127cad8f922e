//! A person's message to a session.

use journeyman_protocol::ImageData;

/// A person's message to a session: a text, with images beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserMessage {
    /// The text.
    pub text: String,
    /// The images, which follow the text in the transcript. They count as their bytes in base 64
    /// toward the queue's limit of 8 MiB.
    pub images: Vec<ImageData>,
}

impl<T: Into<String>> From<T> for UserMessage {
    fn from(text: T) -> Self {
        Self { text: text.into(), images: Vec::new() }
    }
}
