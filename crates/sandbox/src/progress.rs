//! Lines of progress of long preparations, such as building the image of a container.

use std::fmt;
use std::sync::Arc;

/// Receives lines of progress.
#[derive(Clone)]
pub struct Progress(
    #[cfg_attr(not(feature = "containers"), allow(dead_code))] Arc<dyn Fn(&str) + Send + Sync>,
);

impl Progress {
    /// Calls `show` with each line, cleaned and short.
    #[must_use]
    pub fn new(show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(show))
    }

    #[cfg(feature = "containers")]
    pub(crate) fn show(&self, line: &str) {
        (self.0)(line);
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}
