//! Units of code: crates, packages and modules, and which of them can use each other.
//!
//! A name that a single file defines connects its users to that file, wherever it is. Between two
//! crates of which none imports the other, directly or indirectly, that is chance.

use hashbrown::HashMap;

use super::name_dependencies::language_family;
use super::resolve::{last_part, parent};
use super::{Edge, Node};
use crate::bit_set::BitSet;

/// Maximum units: more are third-party packages, or a package manager's tests.
const MAX_UNITS: usize = 5_000;

/// The family of languages of units with such a file at their root.
fn unit_root_family(name: &str) -> Option<u8> {
    use journeyman_syntax::language::Language;
    let language = match name {
        "Cargo.toml" => Language::Rust,
        "package.json" => Language::TypeScript,
        "go.mod" => Language::Go,
        _ => return None,
    };
    language_family(Some(language))
}

/// The units of a graph's files.
#[derive(Debug, Default)]
pub(super) struct BuildUnits {
    /// By file: its unit, or [`NO_BUILD_UNIT`].
    of: Vec<u32>,
    count: usize,
}

/// Marker for no unit: such files may belong to any.
const NO_BUILD_UNIT: u32 = u32::MAX;

impl BuildUnits {
    pub(super) fn find_units(nodes: &[Node]) -> Self {
        let mut roots: HashMap<(u8, &str), u32> = HashMap::new();
        for node in nodes {
            if let Some(family) = unit_root_family(last_part(&node.path)) {
                let next = roots.len() as u32;
                roots.entry((family, parent(&node.path))).or_insert(next);
            }
        }
        if roots.len() < 2 || roots.len() > MAX_UNITS {
            return Self::default();
        }
        let unit_of = |node: &Node| -> Option<u32> {
            let family = language_family(node.language)?;
            let mut folder = parent(&node.path);
            loop {
                if let Some(unit) = roots.get(&(family, folder)) {
                    return Some(*unit);
                }
                folder = (!folder.is_empty()).then(|| parent(folder))?;
            }
        };
        Self {
            of: nodes.iter().map(|node| unit_of(node).unwrap_or(NO_BUILD_UNIT)).collect(),
            count: roots.len(),
        }
    }

    fn unit_of(&self, file: u32) -> u32 {
        self.of.get(file as usize).copied().unwrap_or(NO_BUILD_UNIT)
    }

    /// Returns true if two files are in one unit, as far as is known.
    pub(super) fn are_in_one_unit(&self, one: u32, other: u32) -> bool {
        let (one, other) = (self.unit_of(one), self.unit_of(other));
        one == other || one == NO_BUILD_UNIT || other == NO_BUILD_UNIT
    }

    /// Drops dependencies by names alone between files whose units can't use each other.
    pub(super) fn drop_edges_between_unrelated_units(&self, edges: &mut [Box<[Edge]>]) {
        let mut knows = vec![BitSet::default(); self.count];
        for (from, edges) in (0..).zip(edges.iter()) {
            for edge in edges.iter().filter(|edge| edge.line > 0) {
                let to = self.unit_of(edge.to);
                if let Some(knows) =
                    knows.get_mut(self.unit_of(from) as usize).filter(|_| to != NO_BUILD_UNIT)
                {
                    knows.insert(to);
                }
            }
        }
        let all: Vec<BitSet> = (0..self.count as u32).map(|unit| usable_units(unit, &knows)).collect();
        for (from, edges) in (0..).zip(edges) {
            let Some(knows) = all.get(self.unit_of(from) as usize) else { continue };
            let strange = |edge: &Edge| {
                let to = self.unit_of(edge.to);
                edge.line == 0 && to != NO_BUILD_UNIT && !knows.contains(to)
            };
            if edges.iter().any(strange) {
                *edges = edges.iter().filter(|edge| !strange(edge)).copied().collect();
            }
        }
    }
}

/// A unit and the units that it can use.
fn usable_units(unit: u32, knows: &[BitSet]) -> BitSet {
    let (mut all, mut left) = (BitSet::default(), vec![unit]);
    all.insert(unit);
    while let Some(here) = left.pop() {
        for to in knows.get(here as usize).into_iter().flat_map(BitSet::iter) {
            if !all.contains(to) {
                all.insert(to);
                left.push(to);
            }
        }
    }
    all
}
