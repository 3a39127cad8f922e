//! How much hangs on each file: PageRank (Page, Brin, Motwani, Winograd 1999) over the weighted edges.

use super::{Graph, WHOLE};

/// How much of a file's weight goes on to what it depends on.
const DAMPING: f64 = 0.85;
/// Rounds: by then the order of the first hundreds doesn't change any more.
const ROUNDS: usize = 25;
/// What tests and documents give on: they use much that nothing hangs on.
const ASIDE: f64 = 0.2;

impl Graph {
    /// A weight for each file, which make 1 together: how much of the others comes to it. Where some are asked for, with
    /// how much each counts, it is told from there. Sums run in the order of paths, so the same files always weigh the same.
    #[must_use]
    pub fn ranks(&self, asked: &[(u32, f64)]) -> Vec<f64> {
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
            .map(|file| self.edges(file).iter().filter(|edge| edge.counts()).map(strength).sum())
            .collect();
        let mut ranks = begin.clone();
        for _ in 0..ROUNDS {
            let mut next: Vec<f64> = vec![0.0; files];
            let mut kept = 0.0;
            for (file, (rank, given)) in (0..).zip(ranks.iter().zip(&given)) {
                let flags = self.node(file).map(|node| node.flags).unwrap_or_default();
                let on = rank * if flags.test || flags.doc { ASIDE } else { 1.0 };
                if *given <= 0.0 {
                    kept += rank;
                    continue;
                }
                kept += rank - on;
                for edge in self.edges(file).iter().filter(|edge| edge.counts()) {
                    if let Some(next) = next.get_mut(edge.to as usize) {
                        *next += on * strength(edge) / given;
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

/// Many names say more than few, but not as many times more.
fn strength(edge: &super::Edge) -> f64 {
    (f64::from(edge.weight()) / f64::from(WHOLE)).sqrt()
}
