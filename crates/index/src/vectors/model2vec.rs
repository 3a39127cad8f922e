//! Static token vectors, averaged: the models of the model2vec project (MIT, by The Minish Lab),
//! from a directory.
//!
//! A text's vector follows the project's reference, `model2vec/model.py`: the text is cut to 512
//! times the vocabulary's median length and tokenised without special tokens; unknown tokens are
//! dropped, and 512 are taken; each contributes its row (by `mapping`, if present) times its weight
//! (if there are `weights`), and the mean is normalised if the configuration says `normalize`. The
//! supported layouts are the project's own, Sentence Transformers', and the latter's folder
//! `0_StaticEmbedding`.
//!
//! A model is untrusted data. Files are bounded, tensors are checked against each other when they
//! are loaded, and the tokenizer is contained: see [`tokens`].

pub(super) mod model_tokenizer;
mod tensors;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Deadline, EmbedError, Embedder, EmbeddingPurpose};
use model_tokenizer::ModelTokenizer;
use tensors::Tensors;

/// Maximum bytes of tensors. The largest published model has half a million rows of 256 numbers.
const MAX_TENSOR_FILE_BYTES: u64 = 1 << 30;
/// Maximum bytes of a tokenizer. Half a million tokens take some 20 MB.
const MAX_TOKENIZER_FILE_BYTES: u64 = 64 << 20;
/// Maximum bytes of a configuration.
const MAX_CONFIG_FILE_BYTES: u64 = 1 << 20;
/// Maximum tokens of a text, as in the reference.
const MAX_TOKENS: usize = 512;
/// Number of texts between two checks of the deadline.
const TEXTS_PER_DEADLINE_CHECK: usize = 64;

/// A reason why a model can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Model2VecError {
    /// There is no model.
    #[error(
        "no model2vec model is in `{0}`: it needs model.safetensors, tokenizer.json and config.json (or config_sentence_transformers.json)"
    )]
    Missing(PathBuf),
    /// A file can't be read.
    #[error("reading `{path}`: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A file is too long.
    #[error("`{path}` has more than {most} bytes; such a model isn't read")]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The maximum bytes.
        most: u64,
    },
    /// A file has invalid content.
    #[error("`{path}` can't be used: {what}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// A description of the fault.
        what: String,
    },
}

/// A model of static vectors.
pub struct Model2Vec {
    name: String,
    identity: [u8; 32],
    tokens: ModelTokenizer,
    tensors: Tensors,
    normalize: bool,
}

impl std::fmt::Debug for Model2Vec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model2Vec").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct ModelConfig {
    /// The reference's default is `false`.
    #[serde(default)]
    normalize: bool,
}

impl Model2Vec {
    /// Loads the model in a directory.
    ///
    /// # Errors
    /// [`Model2VecError`].
    pub fn load(directory: &Path) -> Result<Self, Model2VecError> {
        let [config, model] =
            find_model_files(directory).ok_or_else(|| Model2VecError::Missing(directory.to_owned()))?;
        let tokenizer = model.join("tokenizer.json");
        let tensors = model.join("model.safetensors");
        let config_bytes = read_bounded_file(&config, MAX_CONFIG_FILE_BYTES)?;
        let (words, numbers) = (
            read_bounded_file(&tokenizer, MAX_TOKENIZER_FILE_BYTES)?,
            read_bounded_file(&tensors, MAX_TENSOR_FILE_BYTES)?,
        );
        let unusable = |path: &Path| {
            let path = path.to_owned();
            move |what: String| Model2VecError::Unusable { path, what }
        };
        let settings: ModelConfig =
            serde_json::from_slice(&config_bytes).map_err(|error| unusable(&config)(error.to_string()))?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"model2vec 1");
        for part in [&config_bytes, &words, &numbers] {
            hasher.update(blake3::hash(part).as_bytes());
        }
        let tokens = ModelTokenizer::read(&words).map_err(unusable(&tokenizer))?;
        let tensors_of = Tensors::read(numbers).map_err(unusable(&tensors))?;
        tensors_of.check_token_bound(tokens.token_bound()).map_err(unusable(&tensors))?;
        let name = directory.file_name().unwrap_or(directory.as_os_str()).to_string_lossy();
        Ok(Self {
            name: format!("model2vec:{name}"),
            identity: *hasher.finalize().as_bytes(),
            tokens,
            tensors: tensors_of,
            normalize: settings.normalize,
        })
    }

    fn embed_text(&self, text: &str) -> Result<Vec<f32>, String> {
        let ids = self.tokens.tokens_of(text, MAX_TOKENS)?;
        let mut sum = vec![0.0_f32; self.tensors.dimensions()];
        for id in &ids {
            self.tensors.add_token_vector(*id, &mut sum);
        }
        #[allow(clippy::cast_precision_loss)]
        let count = ids.len().max(1) as f32;
        sum.iter_mut().for_each(|value| *value /= count);
        if self.normalize {
            let length = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
            if length > 0.0 {
                sum.iter_mut().for_each(|value| *value /= length);
            }
        }
        Ok(sum)
    }
}

impl Embedder for Model2Vec {
    fn name(&self) -> &str {
        &self.name
    }

    fn identity(&self) -> [u8; 32] {
        self.identity
    }

    fn dimensions(&self) -> Option<usize> {
        Some(self.tensors.dimensions())
    }

    fn batch_size(&self) -> usize {
        TEXTS_PER_DEADLINE_CHECK
    }

    fn max_concurrency(&self) -> usize {
        usize::MAX
    }

    fn embed(
        &self,
        texts: &[&str],
        _purpose: EmbeddingPurpose,
        deadline: Deadline<'_>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let one = |text: &&str| {
            deadline.check()?;
            let failed = |what| EmbedError::Unusable { model: self.name.clone(), what };
            self.embed_text(text).map_err(failed)
        };
        texts.iter().map(one).collect()
    }
}

/// Finds the configuration, and the other two files.
fn find_model_files(directory: &Path) -> Option<[PathBuf; 2]> {
    let inner = directory.join("0_StaticEmbedding");
    let here = |config: PathBuf, model: &Path| {
        let all = [config.clone(), model.join("tokenizer.json"), model.join("model.safetensors")];
        all.iter().all(|path| path.is_file()).then(|| [config, model.to_owned()])
    };
    let sentence = "config_sentence_transformers.json";
    here(directory.join("config.json"), directory)
        .or_else(|| here(directory.join(sentence), directory))
        .or_else(|| here(directory.join(sentence), &inner))
        .or_else(|| here(directory.parent()?.join(sentence), directory))
}

/// Reads a tokenizer's file.
pub(super) fn read_tokenizer(path: &Path) -> Result<Vec<u8>, Model2VecError> {
    read_bounded_file(path, MAX_TOKENIZER_FILE_BYTES)
}

/// Reads a whole file with a maximum size.
fn read_bounded_file(path: &Path, most: u64) -> Result<Vec<u8>, Model2VecError> {
    let failed = |error| Model2VecError::Io { path: path.to_owned(), error };
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > most {
        return Err(Model2VecError::TooLong { path: path.to_owned(), most });
    }
    Ok(bytes)
}
