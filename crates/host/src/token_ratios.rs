//! Stores the ratio of reported to counted tokens for each model, in the state directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_agent::{RunSettings, TokenRatioStore};
use journeyman_context::counting::LearntRatio;
use journeyman_root_fs::read_path;
use serde::{Deserialize, Serialize};

use crate::durable_file::{lock_directory, replace_file};

/// The file in the state directory.
const RATIOS_FILE: &str = "token-ratios.json";
/// Maximum number of models; the most recently used are kept.
const MAX_MODELS: usize = 64;
/// Maximum bytes of a model's name. No provider's are longer.
const MAX_MODEL_NAME_BYTES: usize = 300;
/// Maximum bytes of the file: more than so many models need.
const MAX_RATIOS_FILE_BYTES: u64 = 64 * 1024;

/// Ratios in a file. One that can't be read counts as empty, and the next report replaces it.
#[derive(Debug)]
pub(crate) struct StoredRatios {
    directory: PathBuf,
}

/// A model's line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredRatio {
    model: String,
    #[serde(flatten)]
    learnt: LearntRatio,
}

impl StoredRatios {
    /// Opens the ratios of a state directory. Returns `None` for settings without an index, as in
    /// replays.
    pub(crate) fn open_for_settings(
        settings: &RunSettings,
        state_dir: &Path,
    ) -> Option<Arc<dyn TokenRatioStore>> {
        settings.index_timeout?;
        Some(Arc::new(Self { directory: state_dir.to_owned() }))
    }

    /// Reads the models, the last used one first.
    fn read(&self) -> Vec<StoredRatio> {
        let bytes = read_path(&self.directory.join(RATIOS_FILE), MAX_RATIOS_FILE_BYTES).ok().flatten();
        let mut kept: Vec<StoredRatio> =
            bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        kept.truncate(MAX_MODELS);
        kept
    }

    fn write(&self, model: &str, learnt: LearntRatio) -> std::io::Result<()> {
        // Sessions of other processes write too.
        let _lock = lock_directory(&self.directory)?;
        let mut kept = self.read();
        kept.retain(|one| one.model != model && one.model.len() <= MAX_MODEL_NAME_BYTES);
        kept.insert(0, StoredRatio { model: model.to_owned(), learnt });
        kept.truncate(MAX_MODELS);
        replace_file(&self.directory.join(RATIOS_FILE), &serde_json::to_string(&kept)?)
    }
}

impl TokenRatioStore for StoredRatios {
    fn find(&self, model: &str) -> Option<LearntRatio> {
        self.read().into_iter().find(|one| one.model == model).map(|one| one.learnt)
    }

    fn keep(&self, model: &str, learnt: LearntRatio) {
        if model.len() <= MAX_MODEL_NAME_BYTES {
            // Without it the next session begins with a wider margin, as the first one did.
            self.write(model, learnt).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(ratio: f64) -> LearntRatio {
        LearntRatio { ratio, deviation: 0.02 }
    }

    #[test]
    fn the_models_used_last_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let ratios = StoredRatios { directory: dir.path().to_owned() };
        assert_eq!(ratios.find("a/b"), None);
        for number in 0..=MAX_MODELS {
            ratios.keep(&format!("a/{number}"), learnt(1.0 + number as f64 / 100.0));
        }
        ratios.keep("a/7", learnt(1.5));
        ratios.keep(&"x".repeat(MAX_MODEL_NAME_BYTES + 1), learnt(1.0));
        // Another session reads the file anew.
        let ratios = StoredRatios { directory: dir.path().to_owned() };
        assert_eq!((ratios.find("a/0"), ratios.find("a/1")), (None, Some(learnt(1.01))));
        assert_eq!(ratios.find("a/7"), Some(learnt(1.5)));
        assert_eq!(ratios.read().len(), MAX_MODELS);
    }

    #[test]
    fn a_file_that_no_session_wrote_counts_as_empty_and_is_replaced() {
        let many = format!("[{}]", vec![r#"{"model":"a/b","ratio":1,"deviation":0}"#; 9_000].join(","));
        for text in ["", "{", "[1]", r#"[{"model": "a/b"}]"#, "\0\u{1}", &many] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join(RATIOS_FILE), text).unwrap();
            let ratios = StoredRatios { directory: dir.path().to_owned() };
            assert_eq!(ratios.find("a/b"), None, "{:.20}", text);
            ratios.keep("a/b", learnt(1.25));
            assert_eq!(ratios.find("a/b"), Some(learnt(1.25)), "{:.20}", text);
        }
        // Nothing is waited for where a pipe is in its place.
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join(RATIOS_FILE);
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let ratios = StoredRatios { directory: dir.path().to_owned() };
        assert_eq!(ratios.find("a/b"), None);
        ratios.keep("a/b", learnt(1.25));
        assert_eq!(ratios.find("a/b"), Some(learnt(1.25)));
    }
}
