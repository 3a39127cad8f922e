//! Deleted files, put back into a graph to find their dependents.
//!
//! An import of a deleted file now means nothing, or something else. So imports that may have meant
//! one are resolved again as if it still existed; and where its text is known, files that use a
//! name of it that nothing defines any more are dependents too.

use hashbrown::HashMap;
use journeyman_syntax::analysis;
use journeyman_syntax::language::Language;

use super::build_units::BuildUnits;
use super::name_dependencies::{NameRole, role_of_kind};
use super::path_tree::PathTree;
use super::resolve::{ImportSettings, ImportTarget, last_part, parent, resolve_imports};
use super::{Edge, Graph, Node, UNIQUE_NAME_WEIGHT, name_dependencies};
use crate::Snapshot;
use crate::analysis::PurposeFlags;

/// Maximum deleted files that are put back.
const MAX_DELETED_FILES: usize = 2_000;
/// Maximum settings files, as for building a graph.
const MAX_SETTINGS_FILES: usize = 20_000;

/// A deleted file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeletedFile {
    /// Its path.
    pub path: String,
    /// Its text, if known.
    pub text: Option<String>,
}

impl Graph {
    /// Returns the graph with deleted files: with their dependents, and without their dependencies.
    /// Files have other numbers in it. Files that exist again are left out.
    #[must_use]
    pub fn with_deleted_files(
        &self,
        snapshot: &Snapshot,
        gone: &[DeletedFile],
        read: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let is_new = |gone: &&DeletedFile| self.find_file(&gone.path).is_none();
        let gone: Vec<&DeletedFile> = gone.iter().filter(is_new).take(MAX_DELETED_FILES).collect();
        let mut nodes: Vec<(Node, Option<u32>)> =
            (0..).zip(&self.nodes).map(|(old, node)| (node.clone(), Some(old))).collect();
        nodes.extend(gone.iter().map(|gone| (to_node(gone), None)));
        nodes.sort_by(|(one, _), (other, _)| one.path.cmp(&other.path));
        nodes.dedup_by(|(one, _), (other, _)| one.path == other.path);
        let mut now = vec![0; self.nodes.len()];
        for (number, (_, old)) in (0..).zip(&nodes) {
            if let Some(place) = old.and_then(|old| now.get_mut(old as usize)) {
                *place = number;
            }
        }
        let edges = |old: u32| -> Vec<Edge> {
            let to = |edge: &Edge| Some(Edge { to: *now.get(edge.to as usize)?, ..*edge });
            self.edges(old).iter().filter_map(to).collect()
        };
        let mut all: Vec<Vec<Edge>> =
            nodes.iter().map(|(_, old)| old.map(edges).unwrap_or_default()).collect();
        let packages_of = nodes
            .iter()
            .map(|(_, old)| {
                old.and_then(|old| self.packages_of.get(old as usize)).cloned().unwrap_or_default()
            })
            .collect();
        let nodes: Vec<Node> = nodes.into_iter().map(|(node, _)| node).collect();
        let lost = DeletedFiles { nodes: &nodes, snapshot, gone: &gone };
        for (from, edge) in lost.find_importers(read).into_iter().chain(lost.find_name_users()) {
            let Some(edges) = all.get_mut(from as usize) else { continue };
            match edges.binary_search_by_key(&edge.to, |edge| edge.to) {
                Ok(at) => {
                    if let Some(known) = edges.get_mut(at) {
                        known.names = known.names.max(edge.names);
                    }
                }
                Err(at) => edges.insert(at, edge),
            }
        }
        let edges = all.into_iter().map(Into::into).collect();
        let units = BuildUnits::find_units(&nodes);
        Self { nodes, edges, packages: self.packages.clone(), packages_of, units, ..Self::default() }
    }
}

fn to_node(gone: &DeletedFile) -> Node {
    Node {
        path: gone.path.as_str().into(),
        // No snapshot has it.
        file: u32::MAX,
        mark: Default::default(),
        language: Language::from_path(&gone.path),
        flags: PurposeFlags::default(),
    }
}

struct DeletedFiles<'a> {
    /// All files, with the deleted ones.
    nodes: &'a [Node],
    snapshot: &'a Snapshot,
    gone: &'a [&'a DeletedFile],
}

impl DeletedFiles<'_> {
    fn number_of(&self, path: &str) -> Option<u32> {
        self.nodes.binary_search_by(|node| (*node.path).cmp(path)).ok().map(|at| at as u32)
    }

    /// Finds the files that imported them.
    fn find_importers(&self, read: &dyn Fn(&str) -> Option<String>) -> Vec<(u32, Edge)> {
        // By the words that an import of one must contain.
        let mut words: Vec<String> = Vec::new();
        for gone in self.gone {
            let name = last_part(&gone.path);
            let stem = name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(name);
            words.extend([stem.to_lowercase(), last_part(parent(&gone.path)).to_lowercase()]);
        }
        words.retain(|word| !word.is_empty());
        words.sort_unstable();
        words.dedup();
        let at_root = self.gone.iter().any(|gone| parent(&gone.path).is_empty());
        let tree = PathTree::new(self.nodes.iter().map(|node| &*node.path));
        let mut settings = None;
        let mut found = Vec::new();
        for (from, node) in (0..).zip(self.nodes) {
            let (Some(language), Some(view)) = (node.language, self.snapshot.file(node.file)) else {
                continue;
            };
            let details = view.segment().details(&view.record);
            let mut imports = details.imports();
            imports.extend(details.path_uses());
            let may_mean = imports.iter().any(|import| {
                let target = import.target.to_lowercase();
                let has = |text: &str| words.iter().any(|word| text.contains(word.as_str()));
                // A module named by its position alone (`from . import x`) has no words, or not its
                // own.
                at_root
                    || import.relative
                    || has(&target)
                    || import.names.iter().any(|name| has(&name.to_lowercase()))
            });
            if !may_mean {
                continue;
            }
            let settings = settings.get_or_insert_with(|| self.read_settings(read));
            let edges = resolve_imports(&node.path, language, &imports, &tree, settings);
            for (import, meant) in imports.iter().zip(&edges.meant) {
                let ImportTarget::Files(files) = meant else { continue };
                let meant = files.iter().filter_map(|path| self.number_of(path));
                let lost = |to: &u32| self.nodes.get(*to as usize).is_some_and(|node| node.file == u32::MAX);
                found.extend(
                    meant
                        .filter(lost)
                        .map(|to| (from, Edge { to, line: import.line.max(1), ..Edge::default() })),
                );
            }
        }
        found
    }

    fn read_settings(&self, read: &dyn Fn(&str) -> Option<String>) -> ImportSettings {
        let mut settings = ImportSettings::default();
        let speaks =
            |node: &&Node| node.file != u32::MAX && !ImportSettings::languages_of(&node.path).is_empty();
        for node in self.nodes.iter().filter(speaks).take(MAX_SETTINGS_FILES) {
            if let Some(text) = read(&node.path) {
                settings.read_settings(&node.path, &text);
            }
        }
        settings
    }

    /// Finds the files that use names of theirs that nothing defines any more.
    fn find_name_users(&self) -> Vec<(u32, Edge)> {
        let mut by_file: HashMap<u32, u32> = HashMap::with_capacity(self.nodes.len());
        by_file.extend((0..).zip(self.nodes).map(|(number, node)| (node.file, number)));
        let mut found = Vec::new();
        for gone in self.gone {
            let language = Language::from_path(&gone.path);
            let (Some(to), Some(text), Some(family)) =
                (self.number_of(&gone.path), &gone.text, name_dependencies::language_family(language))
            else {
                continue;
            };
            let Some(facts) = language.and_then(|language| analysis::analyse(language, text).ok()) else {
                continue;
            };
            let mut own: Vec<&str> = facts
                .symbols
                .iter()
                .filter(|symbol| !symbol.local && role_of_kind(symbol.kind) == Some(NameRole::Own))
                .map(|symbol| symbol.name.as_str())
                .collect();
            own.sort_unstable();
            own.dedup();
            for name in own.into_iter().filter(|name| name_dependencies::is_counted_name(name)) {
                let mut is_defined = false;
                self.snapshot.visit_definitions(name, |symbol| {
                    is_defined |= self.snapshot.symbol(symbol).is_some_and(|(_, symbol)| symbol.name == name);
                });
                if is_defined {
                    continue;
                }
                self.snapshot.visit_references(name, |file, _| {
                    let user = by_file.get(&file).copied();
                    let same = |user: &u32| {
                        let node = self.nodes.get(*user as usize);
                        node.is_some_and(|node| {
                            name_dependencies::language_family(node.language) == Some(family)
                        })
                    };
                    if let Some(user) = user.filter(same) {
                        found.push((user, Edge { to, names: UNIQUE_NAME_WEIGHT, ..Edge::default() }));
                    }
                });
            }
        }
        found
    }
}
