//! What is built by itself: crates, packages and modules, and which of them can know of which.
//!
//! A name that one file alone defines ties whoever uses it to that file, wherever it is. Of two crates of which none imports
//! the other, by any number of steps, that is chance.

use hashbrown::HashMap;

use super::names::family;
use super::resolve::{last, parent};
use super::{Edge, Node};
use crate::bits::Bits;

/// Units that are told apart: more are somebody's packages, or tests of a package manager.
const MAX_UNITS: usize = 5_000;

/// The family of languages whose units have such a file at their root.
fn root(name: &str) -> Option<u8> {
    use journeyman_syntax::language::Language;
    let language = match name {
        "Cargo.toml" => Language::Rust,
        "package.json" => Language::TypeScript,
        "go.mod" => Language::Go,
        _ => return None,
    };
    family(Some(language))
}

/// The units of a graph's files.
#[derive(Debug, Default)]
pub(super) struct Units {
    /// By file: its unit, or [`NONE`].
    of: Vec<u32>,
    count: usize,
}

/// No unit: what belongs to none may be anybody's.
const NONE: u32 = u32::MAX;

impl Units {
    pub(super) fn of(nodes: &[Node]) -> Self {
        let mut roots: HashMap<(u8, &str), u32> = HashMap::new();
        for node in nodes {
            if let Some(family) = root(last(&node.path)) {
                let next = roots.len() as u32;
                roots.entry((family, parent(&node.path))).or_insert(next);
            }
        }
        if roots.len() < 2 || roots.len() > MAX_UNITS {
            return Self::default();
        }
        let unit_of = |node: &Node| -> Option<u32> {
            let family = family(node.language)?;
            let mut folder = parent(&node.path);
            loop {
                if let Some(unit) = roots.get(&(family, folder)) {
                    return Some(*unit);
                }
                folder = (!folder.is_empty()).then(|| parent(folder))?;
            }
        };
        Self { of: nodes.iter().map(|node| unit_of(node).unwrap_or(NONE)).collect(), count: roots.len() }
    }

    fn unit(&self, file: u32) -> u32 {
        self.of.get(file as usize).copied().unwrap_or(NONE)
    }

    /// Whether two files belong to one unit, as far as is known.
    pub(super) fn are_one(&self, one: u32, other: u32) -> bool {
        let (one, other) = (self.unit(one), self.unit(other));
        one == other || one == NONE || other == NONE
    }

    /// Leaves out what only names say of files whose units can't know of each other.
    pub(super) fn part_strangers(&self, edges: &mut [Box<[Edge]>]) {
        let mut knows = vec![Bits::default(); self.count];
        for (from, edges) in (0..).zip(edges.iter()) {
            for edge in edges.iter().filter(|edge| edge.line > 0) {
                let to = self.unit(edge.to);
                if let Some(knows) = knows.get_mut(self.unit(from) as usize).filter(|_| to != NONE) {
                    knows.insert(to);
                }
            }
        }
        let all: Vec<Bits> = (0..self.count as u32).map(|unit| everything(unit, &knows)).collect();
        for (from, edges) in (0..).zip(edges) {
            let Some(knows) = all.get(self.unit(from) as usize) else { continue };
            let strange = |edge: &Edge| {
                let to = self.unit(edge.to);
                edge.line == 0 && to != NONE && !knows.contains(to)
            };
            if edges.iter().any(strange) {
                *edges = edges.iter().filter(|edge| !strange(edge)).copied().collect();
            }
        }
    }
}

/// A unit and those that it can know of.
fn everything(unit: u32, knows: &[Bits]) -> Bits {
    let (mut all, mut left) = (Bits::default(), vec![unit]);
    all.insert(unit);
    while let Some(here) = left.pop() {
        for to in knows.get(here as usize).into_iter().flat_map(Bits::iter) {
            if !all.contains(to) {
                all.insert(to);
                left.push(to);
            }
        }
    }
    all
}
