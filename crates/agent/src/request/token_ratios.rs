//! The ratios between estimated and reported tokens that sessions learn, kept for later sessions.

use std::sync::Arc;

use journeyman_context::counting::LearntRatio;
use journeyman_protocol::Tokenizer;

/// Minimum difference of ratio or deviation to store a new ratio.
const MIN_RATIO_CHANGE: f64 = 0.01;

/// A persistent store of the ratios of reported to counted tokens by model.
pub trait TokenRatioStore: std::fmt::Debug + Send + Sync {
    /// Returns the ratio that the newest session with a model learnt.
    fn find(&self, model: &str) -> Option<LearntRatio>;

    /// Stores the ratio that a session with a model learnt. A failure only loses the ratio.
    fn keep(&self, model: &str, learnt: LearntRatio);
}

/// The kept ratio of a session's model.
#[derive(Debug)]
pub(crate) struct ModelRatio {
    ratios: Arc<dyn TokenRatioStore>,
    /// The model with its tokenizer: another tokenizer counts otherwise.
    model: String,
    newest: Option<LearntRatio>,
}

impl ModelRatio {
    pub(crate) fn new(ratios: Arc<dyn TokenRatioStore>, model: &str, tokenizer: &Tokenizer) -> Self {
        let model = match tokenizer {
            Tokenizer::O200k => format!("{model} o200k"),
            Tokenizer::Cl100k => format!("{model} cl100k"),
            Tokenizer::Estimate { percent } => format!("{model} estimate {percent}"),
            Tokenizer::File(path) => format!("{model} {}", path.display()),
        };
        let newest = ratios.find(&model);
        Self { ratios, model, newest }
    }

    /// Returns the newest stored ratio, if any.
    pub(crate) fn newest(&self) -> Option<LearntRatio> {
        self.newest
    }

    /// Stores a ratio in the background, if it differs enough from the stored one.
    pub(crate) fn keep(&mut self, learnt: LearntRatio) {
        let is_old = self.newest.is_some_and(|newest| {
            (newest.ratio - learnt.ratio).abs() < MIN_RATIO_CHANGE
                && (newest.deviation - learnt.deviation).abs() < MIN_RATIO_CHANGE
        });
        if is_old {
            return;
        }
        self.newest = Some(learnt);
        let (ratios, model) = (Arc::clone(&self.ratios), self.model.clone());
        drop(tokio::task::spawn_blocking(move || ratios.keep(&model, learnt)));
    }
}
