//! The symbols of a file, by line and by nesting.

use journeyman_syntax::language::Language;
use journeyman_syntax::outline::SymbolKind;

use crate::graph::name_dependencies::{NameRole, is_type, role_of_kind};
use crate::snapshot::FileView;

/// A symbol of a file.
#[derive(Debug)]
pub(super) struct Symbol {
    pub(super) name: String,
    pub(super) kind: SymbolKind,
    /// The beginning of a type up to its body; empty for other symbols.
    pub(super) signature: String,
    /// True if it is defined inside a function.
    local: bool,
    first: u32,
    /// The line after it.
    end: u32,
    inside: Option<u32>,
    /// The type that it belongs to, where that doesn't enclose it.
    outer: Option<String>,
}

impl Symbol {
    /// Returns true if a line is one of the symbol's.
    pub(super) fn contains(&self, line: u32) -> bool {
        self.first <= line && line < self.end
    }
}

/// The symbols of a file, in the order of their lines.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    all: Vec<Symbol>,
}

impl Symbols {
    /// Reads the symbols of a file; `None` if there are more than `most`.
    pub(super) fn read_symbols(view: &FileView<'_>, most: u32) -> Option<Self> {
        let record = &view.record;
        if record.symbols > most {
            return None;
        }
        let numbers = record.first_symbol..record.first_symbol.saturating_add(record.symbols);
        let symbol = |number: u32| {
            let symbol = view.segment().symbol(number)?;
            let outer = symbol.own_scope.rsplit(['.', ':']).next().filter(|outer| !outer.is_empty());
            Some(Symbol {
                outer: outer.map(str::to_owned),
                name: symbol.name,
                signature: if is_type(symbol.kind) { symbol.signature } else { String::new() },
                kind: symbol.kind,
                local: symbol.local,
                first: symbol.first_line,
                end: symbol.first_line.saturating_add(symbol.lines),
                inside: symbol.inside,
            })
        };
        let mut symbols = Self { all: numbers.map(symbol).collect::<Option<_>>()? };
        if record.language == Some(Language::Ruby) {
            symbols.tell_mixins_from_namespaces();
        }
        Some(symbols)
    }

    /// Makes traits of Ruby's modules with methods of their own, which types include.
    fn tell_mixins_from_namespaces(&mut self) {
        let methods = self.all.iter().filter(|symbol| symbol.kind == SymbolKind::Method);
        let around: Vec<u32> = methods.filter_map(|symbol| symbol.inside).collect();
        for own in around {
            if let Some(symbol) = self.all.get_mut(own as usize)
                && symbol.kind == SymbolKind::Module
            {
                symbol.kind = SymbolKind::Trait;
            }
        }
    }

    pub(super) fn get(&self, own: u32) -> Option<&Symbol> {
        self.all.get(own as usize)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Symbol)> {
        (0..).zip(&self.all)
    }

    /// Returns the innermost symbol at a line that other files can use; `None` at file level, or in
    /// a module.
    pub(super) fn symbol_at(&self, line: u32) -> Option<u32> {
        // Sorted by their first lines, outer ones first.
        let behind = self.all.partition_point(|symbol| symbol.first <= line);
        let before = self.all.get(..behind).unwrap_or_default();
        let innermost = before.iter().rposition(|symbol| line < symbol.end).map(|own| own as u32);
        self.enclosing_function(innermost?)
    }

    /// Returns a symbol, or the function that it is defined in.
    fn enclosing_function(&self, own: u32) -> Option<u32> {
        let mut here = own;
        // Enclosing symbols come before.
        loop {
            let symbol = self.get(here)?;
            if !symbol.local && symbol.kind != SymbolKind::Module && role_of_kind(symbol.kind).is_some() {
                return Some(here);
            }
            here = symbol.inside.filter(|inside| *inside < here)?;
        }
    }

    /// Returns true for a usable symbol of the name, in exact case.
    pub(super) fn defines(&self, own: u32, name: &str) -> bool {
        self.get(own).is_some_and(|symbol| {
            symbol.name == name
                && !symbol.local
                && role_of_kind(symbol.kind).is_some_and(|role| role != NameRole::Extended)
        })
    }

    /// Returns true if any symbol is usable from other files.
    pub(super) fn has_usable_symbols(&self) -> bool {
        (0..self.all.len() as u32).any(|own| self.is_usable(own))
    }

    /// Returns true if a symbol is usable from other files.
    pub(super) fn is_usable(&self, own: u32) -> bool {
        self.enclosing_function(own) == Some(own)
    }

    /// Returns the type of a member, by its number if that encloses it, and by name.
    pub(super) fn owner_of(&self, own: u32) -> Option<(Option<u32>, &str)> {
        let symbol = self.get(own)?;
        if let Some(outer) = &symbol.outer {
            return Some((None, outer));
        }
        let inside = symbol.inside.filter(|inside| *inside < own)?;
        let outer = self.get(inside)?;
        is_type(outer.kind).then_some((Some(inside), outer.name.as_str()))
    }

    /// Returns the types defined here with a name.
    pub(super) fn types_named(&self, name: &str) -> impl Iterator<Item = u32> {
        let is_meant = move |symbol: &Symbol| {
            symbol.name == name && is_type(symbol.kind) && symbol.kind != SymbolKind::Impl
        };
        self.iter().filter(move |(_, symbol)| is_meant(symbol)).map(|(own, _)| own)
    }

    /// Returns the members of a type in this file, by its number.
    pub(super) fn members(&self, own: u32) -> Vec<u32> {
        let Some(name) = self.get(own).map(|symbol| symbol.name.as_str()) else { return Vec::new() };
        let is_member =
            |member: &u32| self.owner_of(*member).is_some_and(|(at, outer)| at == Some(own) || outer == name);
        (0..self.all.len() as u32).filter(is_member).collect()
    }
}
