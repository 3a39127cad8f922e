//! The names that a project defines, for completion.

use journeyman_index::Snapshot;

use crate::format::printable;

/// A symbol of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectSymbol {
    /// The name.
    pub name: String,
    /// The kind, in a word.
    pub kind: &'static str,
    /// The file.
    pub path: String,
    /// The line of the name, 1-based.
    pub line: u32,
}

/// Lists the symbols of an index that others can name: not those inside of functions.
pub(crate) fn list_symbols(snapshot: &Snapshot, limit: usize) -> Vec<ProjectSymbol> {
    let mut symbols = Vec::new();
    for (_, file) in snapshot.files() {
        let path = printable(&String::from_utf8_lossy(file.path_bytes()));
        for place in 0..file.record.symbols {
            let Some((_, symbol)) = snapshot.symbol(file.first_symbol().saturating_add(place)) else {
                continue;
            };
            if symbol.local || symbol.name.is_empty() {
                continue;
            }
            if symbols.len() >= limit {
                return symbols;
            }
            symbols.push(ProjectSymbol {
                name: printable(&symbol.name),
                kind: symbol.kind.name(),
                path: path.clone(),
                line: symbol.name_line,
            });
        }
    }
    symbols
}
