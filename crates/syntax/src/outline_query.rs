//! A language's outline query, compiled once a process and matched against single nodes.
//!
//! The queries are tree-sitter's, with two additions: `(#set! in "a b")` allows a pattern only
//! inside a `b` that is inside an `a`, and `(#begins? @name "x")` compares beginnings.

use std::collections::BTreeMap;

use tree_sitter::{
    Language as Grammar, Node, Query, QueryCapture, QueryCursor, QueryMatch, QueryPredicateArg,
    StreamingIterator as _,
};

use crate::symbol::SymbolKind;

/// Maximum matches in progress at one node. Only a text made to have more exceeds it.
const MAX_MATCHES_IN_PROGRESS: u32 = 1_000;

/// Kinds of nested nodes, from the outside in. A kind may have several numbers.
type Ancestors = Vec<Vec<u16>>;

/// The kind of a capture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum CaptureKind {
    /// The name of a definition.
    Name,
    /// The type that a definition belongs to.
    Parent,
    /// The definition.
    Definition(SymbolKind),
    /// A node that only a predicate uses.
    Other,
}

/// A compiled outline query.
pub(crate) struct OutlineQuery {
    query: Query,
    /// The kinds of the captures, by their numbers.
    roles: Vec<CaptureKind>,
    patterns: Vec<PatternConditions>,
    /// The patterns that begin with a kind of node, by the kind's number.
    by_kind: BTreeMap<u16, Vec<usize>>,
}

/// Conditions of a pattern that tree-sitter doesn't check.
struct PatternConditions {
    /// The allowed ancestors, any of several; none at all allows any.
    places: Vec<Ancestors>,
    /// Captures, and the beginnings that their texts may have.
    beginnings: Vec<(u32, Vec<String>)>,
}

impl OutlineQuery {
    /// Compiles a query.
    ///
    /// # Errors
    /// A description of the fault.
    pub(crate) fn compile(grammar: &Grammar, source: &str) -> Result<Self, String> {
        let query = Query::new(grammar, source).map_err(|error| error.to_string())?;
        let role = |name: &&str| match (*name, SymbolKind::from_name(name)) {
            ("name", _) => Ok(CaptureKind::Name),
            ("parent", _) => Ok(CaptureKind::Parent),
            (_, Some(kind)) => Ok(CaptureKind::Definition(kind)),
            (other, None) if other.starts_with('_') => Ok(CaptureKind::Other),
            (other, None) => Err(format!("no kind is called {other}")),
        };
        let roles = query.capture_names().iter().map(role).collect::<Result<_, _>>()?;
        let mut patterns = Vec::new();
        let mut by_kind: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for number in 0..query.pattern_count() {
            let kind = first_kind(source.get(query.start_byte_for_pattern(number)..).unwrap_or_default());
            let ids = kind_numbers(grammar, kind);
            if ids.is_empty() {
                return Err(format!("a pattern begins with {kind}, which is no kind"));
            }
            for id in ids {
                by_kind.entry(id).or_default().push(number);
            }
            patterns.push(PatternConditions {
                places: read_allowed_ancestors(grammar, &query, number)?,
                beginnings: read_allowed_beginnings(&query, number)?,
            });
        }
        Ok(Self { query, roles, patterns, by_kind })
    }

    /// Creates a cursor for [`Self::visit_matches`].
    pub(crate) fn new_cursor() -> QueryCursor {
        let mut cursor = QueryCursor::new();
        cursor.set_match_limit(MAX_MATCHES_IN_PROGRESS);
        cursor.set_max_start_depth(Some(0));
        cursor
    }

    /// Returns the patterns that begin with a kind of node.
    pub(crate) fn patterns_of(&self, kind: u16) -> &[usize] {
        self.by_kind.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// Returns the allowed ancestors of a pattern's matches; none at all allows any.
    pub(crate) fn allowed_ancestors(&self, pattern: usize) -> &[Ancestors] {
        self.patterns.get(pattern).map_or(&[], |pattern| &pattern.places)
    }

    /// Returns the kind of a capture.
    pub(crate) fn capture_kind_of(&self, capture: &QueryCapture<'_>) -> CaptureKind {
        self.roles.get(capture.index as usize).copied().unwrap_or(CaptureKind::Other)
    }

    /// Calls `visit` with each match that begins at a node: the pattern's number and its captures.
    pub(crate) fn visit_matches<'tree>(
        &self,
        cursor: &mut QueryCursor,
        node: Node<'tree>,
        text: &str,
        mut visit: impl FnMut(usize, &[QueryCapture<'tree>]),
    ) {
        let mut matches = cursor.matches(&self.query, node, text.as_bytes());
        while let Some(found) = matches.next() {
            if self.has_allowed_beginnings(found, text) {
                visit(found.pattern_index, found.captures());
            }
        }
    }

    fn has_allowed_beginnings(&self, found: &QueryMatch<'_, '_>, text: &str) -> bool {
        let Some(pattern) = self.patterns.get(found.pattern_index) else { return false };
        pattern.beginnings.iter().all(|(capture, allowed)| {
            found.captures().iter().filter(|own| own.index == *capture).all(|own| {
                let own = text.get(own.node.byte_range()).unwrap_or_default();
                allowed.iter().any(|beginning| own.starts_with(beginning.as_str()))
            })
        })
    }
}

/// Returns the kind that a pattern begins with.
fn first_kind(pattern: &str) -> &str {
    let inner = pattern.trim_start_matches(|c: char| c == '(' || c.is_whitespace());
    let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
    inner.get(..end).unwrap_or_default()
}

fn read_allowed_ancestors(
    grammar: &Grammar,
    query: &Query,
    pattern: usize,
) -> Result<Vec<Ancestors>, String> {
    let settings = query.property_settings(pattern).iter().filter(|setting| &*setting.key == "in");
    settings
        .map(|setting| {
            let kinds = setting.value.as_deref().unwrap_or_default();
            let path: Ancestors = kinds.split_whitespace().map(|name| kind_numbers(grammar, name)).collect();
            let is_valid = !path.is_empty() && path.iter().all(|kinds| !kinds.is_empty());
            is_valid.then_some(path).ok_or_else(|| format!("unknown kinds in {kinds:?}"))
        })
        .collect()
}

fn read_allowed_beginnings(query: &Query, pattern: usize) -> Result<Vec<(u32, Vec<String>)>, String> {
    let predicates = query.general_predicates(pattern).iter();
    predicates
        .map(|predicate| match (&*predicate.operator, predicate.args.split_first()) {
            ("begins?", Some((QueryPredicateArg::Capture(capture), texts))) => {
                let texts = texts.iter().filter_map(|text| match text {
                    QueryPredicateArg::String(text) => Some(text.to_string()),
                    QueryPredicateArg::Capture(_) => None,
                });
                Ok((*capture, texts.collect()))
            }
            (other, _) => Err(format!("no predicate is called {other}")),
        })
        .collect()
}

/// Returns the numbers of a kind of named nodes; some kinds have several.
fn kind_numbers(grammar: &Grammar, name: &str) -> Vec<u16> {
    let kinds = 0..u16::try_from(grammar.node_kind_count()).unwrap_or(u16::MAX);
    kinds
        .filter(|id| grammar.node_kind_is_named(*id) && grammar.node_kind_for_id(*id) == Some(name))
        .collect()
}

#[cfg(test)]
#[cfg(feature = "python")]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{language::Language, parse::parse};

    fn compile(source: &str) -> Result<OutlineQuery, String> {
        OutlineQuery::compile(&Language::Python.grammar().ok_or("no grammar")?(), source)
    }

    /// Returns the texts of the capture `name` in each match at the text's first statement.
    fn names(source: &str, text: &str) -> Vec<String> {
        let (query, tree) = (compile(source).unwrap(), parse(Language::Python, text).unwrap());
        let mut found = Vec::new();
        query.visit_matches(
            &mut OutlineQuery::new_cursor(),
            tree.root().child(0).unwrap(),
            text,
            |_, captures| {
                let named =
                    captures.iter().filter(|capture| query.capture_kind_of(capture) == CaptureKind::Name);
                found.extend(named.map(|capture| text[capture.node.byte_range()].to_owned()));
            },
        );
        found
    }

    #[test]
    fn matches_begin_at_the_given_node() {
        let text = "def outer(a):\n    def inner(b):\n        pass\n";
        assert_eq!(names("(function_definition name: (_) @name) @function", text), ["outer"]);
        let begins = |with: &str| {
            names(&format!("((function_definition name: (_) @name) @function (#begins? @name {with}))"), text)
        };
        assert_eq!(begins("\"x\" \"ou\""), ["outer"]);
        assert_eq!(begins("\"x\""), [""; 0]);
    }

    #[test]
    fn faults_of_a_query_are_reported() {
        for (source, fault) in [
            ("(function_definition name: (_) @name) @thing", "no kind is called thing"),
            ("((module) (#set! in \"nothing\"))", "unknown kinds"),
            ("((module) @name (#ends? @name \"x\"))", "no predicate is called ends?"),
            ("(_ (module)) @name", "a pattern begins with _"),
        ] {
            let error = compile(source).map(drop).unwrap_err();
            assert!(error.starts_with(fault), "{source}: {error}");
        }
        assert!(compile("(no_such_node)").is_err());
    }
}
