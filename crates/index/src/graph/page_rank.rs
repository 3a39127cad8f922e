//! Importance of files: PageRank (Page, Brin, Motwani, Winograd 1999) over the weighted edges.

use super::{Graph, UNIQUE_NAME_WEIGHT};

/// The damping factor: the share of a file's weight that goes on to its dependencies.
const DAMPING: f64 = 0.85;
/// Number of iterations: by then the order of the first hundreds is stable.
const ITERATIONS: usize = 25;
/// Factor for the weight that tests and documents pass on: few files depend on them.
const TEST_AND_DOC_FACTOR: f64 = 0.2;

impl Graph {
    /// Returns the weight of each file; all weights add up to 1. With start files and their
    /// weights, importance is relative to those. Sums run in path order, so the same files always
    /// have the same weights.
    #[must_use]
    pub fn page_ranks(&self, asked: &[(u32, f64)]) -> Vec<f64> {
        let files = self.len();
        if files == 0 {
            return Vec::new();
        }
        #[allow(clippy::cast_precision_loss)]
        let even = 1.0 / files as f64;
        let mut begin = vec![0.0; files];
        let sum: f64 = asked.iter().map(|(_, share)| share.max(0.0)).sum();
        for (file, share) in asked {
            if let Some(begin) = begin.get_mut(*file as usize).filter(|_| sum > 0.0) {
                *begin += share.max(0.0) / sum;
            }
        }
        if sum <= 0.0 {
            begin.fill(even);
        }
        let given: Vec<f64> = (0..files as u32)
            .map(|file| {
                self.edges(file).iter().filter(|edge| edge.connects_neighbours()).map(edge_strength).sum()
            })
            .collect();
        let mut ranks = begin.clone();
        for _ in 0..ITERATIONS {
            let mut next: Vec<f64> = vec![0.0; files];
            let mut kept = 0.0;
            for (file, (rank, given)) in (0..).zip(ranks.iter().zip(&given)) {
                let flags = self.node(file).map(|node| node.flags).unwrap_or_default();
                let on = rank * if flags.test || flags.doc { TEST_AND_DOC_FACTOR } else { 1.0 };
                if *given <= 0.0 {
                    kept += rank;
                    continue;
                }
                kept += rank - on;
                for edge in self.edges(file).iter().filter(|edge| edge.connects_neighbours()) {
                    if let Some(next) = next.get_mut(edge.to as usize) {
                        *next += on * edge_strength(edge) / given;
                    }
                }
            }
            for (next, begin) in next.iter_mut().zip(&begin) {
                *next = DAMPING * (*next + kept * begin) + (1.0 - DAMPING) * begin;
            }
            ranks = next;
        }
        ranks
    }
}

/// Returns the strength of an edge: it grows with the number of names, but less than
/// proportionally.
fn edge_strength(edge: &super::Edge) -> f64 {
    (f64::from(edge.weight()) / f64::from(UNIQUE_NAME_WEIGHT)).sqrt()
}
