//! Parts of the BM25 formula.

/// BM25's saturation, from published experiments.
pub(crate) const K1: f32 = 1.2;

/// Returns the inverse document frequency of a term that `with` of `all` documents have.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn inverse_document_frequency(with: u64, all: u64) -> f32 {
    let (with, all) = (with as f64, (all as f64).max(with as f64));
    (((all - with + 0.5) / (with + 0.5)).ln_1p()) as f32
}
