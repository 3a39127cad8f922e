//! Items of a node, as people see them: a definition with the comments and attributes before it and
//! the comma after it is one thing, and a list in a list that has no brackets of its own isn't one.

use std::collections::BTreeMap;
use std::ops::Range;

use journeyman_syntax::Node;
use journeyman_syntax::outline::{SymbolKind, is_attribute, is_comment, outline};
use journeyman_syntax::parse::Tree;

use crate::placeholder::{self, Placeholder};

/// Placeholder of a remark where a list can't hold a comment; no text contains the placeholder.
pub(super) const KEEP_STAND_IN: &str = "__jm_remark_keep__";
/// The same for a remark that says that code goes.
pub(super) const REMOVE_STAND_IN: &str = "__jm_remark_gone__";

/// A definition with Python's decorators. What it holds is its parent's: the other side may have
/// the definition without them.
const DECORATED_KIND: &str = "decorated_definition";
/// Lists without brackets of their own: what they hold is their parent's.
const UNBRACKETED_LIST_KINDS: [&str; 8] = [
    "statement_list",
    "statements",
    "body_statement",
    "block_node",
    "document",
    "stream",
    "_statements",
    "declarations",
];

/// A text with its tree.
pub(super) struct ParsedSide<'t> {
    pub(super) text: &'t str,
    /// The name of each symbol by the bytes of its definition.
    labels: BTreeMap<(usize, usize), (SymbolKind, String)>,
    /// The other text, whose remarks aren't any.
    own_remarks: &'t str,
}

impl<'t> ParsedSide<'t> {
    pub(super) fn new(tree: &Tree, text: &'t str, other: &'t str) -> Self {
        let labels = outline(tree, text)
            .into_iter()
            .map(|symbol| {
                let name = match symbol.kind {
                    SymbolKind::Impl => symbol.signature,
                    _ => {
                        symbol.parents.last().map_or_else(String::new, |parent| format!("{parent}."))
                            + &symbol.name
                    }
                };
                ((symbol.definition.start, symbol.definition.end), (symbol.kind, name))
            })
            .collect();
        Self { text, labels, own_remarks: other }
    }

    pub(super) fn text_of(&self, range: Range<usize>) -> &'t str {
        self.text.get(range).unwrap_or_default()
    }

    /// Returns true if a comment (or what stands in for it) is a remark.
    fn placeholder_of(&self, node: Node<'_>) -> Option<Placeholder> {
        let own = self.text_of(node.byte_range()).trim();
        if own.contains("__jm_remark_") && !own.contains('\n') {
            let (remark, name) = if own.contains(KEEP_STAND_IN) {
                (Placeholder::Keep, KEEP_STAND_IN)
            } else {
                (Placeholder::Remove, REMOVE_STAND_IN)
            };
            let around = own.replace(name, "");
            let signs = |c: char| matches!(c, ':' | '0' | '"' | '-' | '/' | '#' | '.' | ' ');
            return matches!(around.trim_matches(signs), "" | "existing code").then_some(remark);
        }
        // A remark in braces, as JSX wants it.
        let braces = node.kind() == "jsx_expression" && own.starts_with("{/*");
        if !(is_comment(node) || braces) {
            return None;
        }
        placeholder::placeholder_of_line(own).filter(|_| !self.own_remarks.contains(own))
    }
}

/// One thing in a node.
pub(super) struct SyntaxItem<'t> {
    pub(super) node: Node<'t>,
    /// The start of the item with its leading comments and attributes.
    pub(super) start: usize,
    /// The end of the item with its comma and the comment in its line.
    pub(super) end: usize,
    /// The range of its comma or semicolon.
    pub(super) separator: Option<Range<usize>>,
    pub(super) remark: Option<Placeholder>,
    pub(super) label: Option<String>,
    /// It is a definition that others may refer to, so that its place among its like doesn't
    /// matter.
    pub(super) definition: bool,
    pub(super) field: Option<u16>,
}

impl SyntaxItem<'_> {
    /// A sign or a word of the language itself.
    pub(super) fn is_token(&self) -> bool {
        !self.node.is_named()
    }

    pub(super) fn is_comment(&self) -> bool {
        self.remark.is_none() && is_comment(self.node)
    }
}

/// The children, with those of lists without brackets in their place.
fn flat_children<'t>(node: Node<'t>, out: &mut Vec<(Node<'t>, Option<u16>)>) {
    let mut cursor = node.walk();
    if !cursor.goto_first_child() {
        return;
    }
    loop {
        let child = cursor.node();
        let brackets = child.child(0).is_some_and(|first| matches!(first.kind(), "{" | "(" | "["));
        let open = UNBRACKETED_LIST_KINDS.contains(&child.kind())
            || child.kind() == DECORATED_KIND
            || (child.kind() == "block" && !brackets);
        if open && child.child_count() > 0 {
            flat_children(child, out);
        } else if child.end_byte() > child.start_byte() {
            out.push((child, cursor.field_id().map(u16::from)));
        }
        if !cursor.goto_next_sibling() {
            return;
        }
    }
}

/// A node's things, in order.
pub(super) fn items_of<'t>(side: &ParsedSide<'t>, node: Node<'t>) -> Vec<SyntaxItem<'t>> {
    let mut nodes = Vec::new();
    flat_children(node, &mut nodes);
    let mut items: Vec<SyntaxItem<'t>> = Vec::with_capacity(nodes.len());
    // The range of comments and attributes whose item hasn't come yet.
    let mut lead: Option<Range<usize>> = None;
    for (at, (child, field)) in nodes.iter().copied().enumerate() {
        let range = trimmed_range(side, child);
        let remark = side.placeholder_of(child);
        let comment = is_comment(child) && remark.is_none();
        if matches!(child.kind(), "," | ";")
            && let Some(last) = items.last_mut().filter(|last| last.remark.is_none() && !last.is_token())
            && lead.is_none()
            && last.separator.is_none()
        {
            last.separator = Some(range.clone());
            last.end = range.end;
            continue;
        }
        let opens = side.text_of(0..range.start).rsplit('\n').next().unwrap_or_default().trim().is_empty();
        if comment
            && !opens
            && lead.is_none()
            && let Some(last) = items.last_mut().filter(|last| last.remark.is_none() && !last.is_token())
        {
            last.end = range.end;
            continue;
        }
        let next = nodes.get(at + 1).map(|(next, _)| *next);
        let adjoins = next.is_some_and(|next| {
            next.is_named()
                && side.placeholder_of(next).is_none()
                && side.text_of(range.end..next.start_byte()).matches('\n').count() <= 1
        });
        if (comment || is_attribute(child)) && opens && adjoins {
            lead = Some(lead.map_or(range.start, |lead| lead.start)..range.end);
            continue;
        }
        let (label, definition) = if remark.is_some() { (None, false) } else { name_of_node(side, child) };
        items.push(SyntaxItem {
            node: child,
            start: lead.take().map_or(range.start, |lead| lead.start),
            end: range.end,
            separator: None,
            remark,
            label,
            definition,
            field,
        });
    }
    items
}

/// A node's bytes without blanks at its end: some grammars take the line break in.
pub(super) fn trimmed_range(side: &ParsedSide<'_>, node: Node<'_>) -> Range<usize> {
    let own = side.text_of(node.byte_range());
    node.start_byte()..node.start_byte() + own.trim_end().len()
}

/// Returns a node's name, and true if the node is a definition.
fn name_of_node(side: &ParsedSide<'_>, node: Node<'_>) -> (Option<String>, bool) {
    let range = trimmed_range(side, node);
    let with_decorators = || {
        let parent = node.parent().filter(|parent| parent.kind() == DECORATED_KIND)?;
        let range = trimmed_range(side, parent);
        side.labels.get(&(range.start, range.end))
    };
    let with_semicolon = || {
        let next = node.next_sibling().filter(|next| next.kind() == ";")?;
        side.labels.get(&(range.start, next.end_byte()))
    };
    let own = side.labels.get(&(range.start, range.end)).or_else(with_semicolon).or_else(with_decorators);
    if let Some((kind, name)) = own {
        let definition = !matches!(kind, SymbolKind::Variable | SymbolKind::Constant | SymbolKind::Key);
        return (Some(name.clone()), definition);
    }
    let mut inner = node;
    for _ in 0..4 {
        if let Some(title) = title_of_call(side, inner) {
            return (Some(title), true);
        }
        // The name of what a call calls isn't the call's.
        let is_call = ["call", "invocation"].iter().any(|kind| inner.kind().contains(kind));
        for field in ["name", "key", "declarator", "left", "pattern", "selector"] {
            if let Some(named) = inner.child_by_field_name(field).filter(|_| !is_call) {
                let words = squeeze_blanks(side.text_of(named.byte_range()));
                return (Some(format!("{}:{words}", node.kind())), false);
            }
        }
        // A statement around one expression.
        match (inner.named_child_count(), inner.named_child(0)) {
            (1, Some(only)) => inner = only,
            _ => break,
        }
    }
    (None, false)
}

/// Returns what a call with a block goes by: its function and the text that comes first, as in
/// `it("adds two numbers", () => {})`.
fn title_of_call(side: &ParsedSide<'_>, call: Node<'_>) -> Option<String> {
    let function = call.child_by_field_name("function").or_else(|| call.child_by_field_name("method"))?;
    let arguments = call.child_by_field_name("arguments")?;
    let title = arguments.named_child(0).filter(|first| first.kind().contains("string"))?;
    let mut cursor = arguments.walk();
    let has_block = call.child_by_field_name("block").is_some()
        || arguments
            .named_children(&mut cursor)
            .any(|argument| ["func", "lambda", "closure"].iter().any(|kind| argument.kind().contains(kind)));
    let text = |node: Node<'_>| squeeze_blanks(side.text_of(node.byte_range()));
    has_block.then(|| format!("{} {}", text(function), text(title)))
}

/// A text with each run of blanks as one blank.
pub(super) fn squeeze_blanks(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns true if a node has a remark in it.
pub(super) fn has_placeholder(side: &ParsedSide<'_>, node: Node<'_>) -> bool {
    let mut cursor = node.walk();
    let end = node.end_byte();
    loop {
        if side.placeholder_of(cursor.node()).is_some() {
            return true;
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return false;
            }
        }
        if cursor.node().start_byte() >= end {
            return false;
        }
    }
}
