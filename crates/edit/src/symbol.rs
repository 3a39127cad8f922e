//! Edits that name a symbol.

use std::ops::Range;

use journeyman_protocol::RelPath;
use journeyman_syntax::Node;
use journeyman_syntax::language::Language;
use journeyman_syntax::outline::{Symbol, SymbolKind, is_attribute, is_comment, outline};
use journeyman_syntax::parse::{ParseError, Tree, parse};

use crate::edit::{SymbolAction, SymbolEdit};
use crate::lines::{first_line_break, line_at, split_indent};
use crate::outcome::{MAX_FILE_BYTES, MAX_SEARCH_BYTES, PlacedEdit, Refusal, Strategy};

/// Symbols that are named where the one that is meant isn't there.
const MAX_SIMILAR_SYMBOLS: usize = 8;
/// Names less alike than this aren't near.
const MIN_SIMILARITY: f64 = 0.6;

/// Finds the symbol and what becomes of it.
///
/// A replacement that begins without a doc comment leaves the symbol's own where it is, and so its
/// attributes where it has none: models show the code that changes. To take a doc comment away,
/// replace it as text.
pub(crate) fn find_symbol_edit(path: &RelPath, text: &str, wish: &SymbolEdit) -> Result<PlacedEdit, Refusal> {
    if text.len() > MAX_FILE_BYTES {
        return Err(Refusal::TooLarge { what: "file", bytes: text.len(), limit: MAX_FILE_BYTES });
    }
    let language = Language::detect(&path.to_string(), text)
        .filter(|language| language.is_built_in() || language.lacks_grammar())
        .ok_or_else(|| malformed_refusal("Symbols of this file can't be found: its language isn't known. Send a search and replacement"))?;
    let tree = parse(language, text).map_err(|why| {
        let why = match why {
            ParseError::NoGrammar => "this build lacks the grammar of its language",
            ParseError::TooDeep => "it is nested too deep",
            ParseError::TooMuchWork => "reading it takes too long",
            _ => "it can't be parsed",
        };
        malformed_refusal(&format!(
            "Symbols of this file can't be found: {why}. Send a search and replacement"
        ))
    })?;
    let symbols = outline(&tree, text);
    let file = SymbolFile { text, tree: &tree, symbols: &symbols };
    let symbol = file.resolve_symbol(&wish.symbol)?;
    let (pieces, note) = match &wish.action {
        SymbolAction::Replace { content } => file.replace_symbol(symbol, content)?,
        SymbolAction::InsertBefore { content } => file.insert_beside_symbol(symbol, content, false)?,
        SymbolAction::InsertAfter { content } => file.insert_beside_symbol(symbol, content, true)?,
        SymbolAction::Delete => (file.delete_symbol(symbol), None),
        SymbolAction::Rename { to } => file.rename_symbol(symbol, to)?,
    };
    if pieces.iter().all(|(range, piece)| text.get(range.clone()) == Some(piece)) {
        return Err(Refusal::NoChange);
    }
    let line = line_at(text, pieces.first().map_or(0, |(range, _)| range.start));
    let placed = PlacedEdit { strategy: Strategy::Symbol, line, note, pieces };
    if !tree.has_error()
        && let Some(finding) = crate::syntax_check::first_new_fault(path, text, &placed.apply_to(text))
    {
        return Err(Refusal::BrokenSyntax {
            line: finding.line,
            message: finding.message,
            strategy: Strategy::Symbol,
        });
    }
    Ok(placed)
}

fn malformed_refusal(message: &str) -> Refusal {
    Refusal::Malformed { message: message.to_owned() }
}

type SymbolReplacements = Vec<(Range<usize>, String)>;

struct SymbolFile<'t> {
    text: &'t str,
    tree: &'t Tree,
    symbols: &'t [Symbol],
}

impl<'t> SymbolFile<'t> {
    fn text_of(&self, range: Range<usize>) -> &'t str {
        self.text.get(range).unwrap_or_default()
    }

    /// The symbol that a path means: the only one whose path ends with its parts, or of several the
    /// only one with exactly its path.
    fn resolve_symbol(&self, wished: &str) -> Result<&'t Symbol, Refusal> {
        let wished = wished.trim().trim_end_matches("()");
        let parts: Vec<&str> = wished.split(['.', '/', '#', ':']).filter(|part| !part.is_empty()).collect();
        let named = |symbol: &&Symbol| symbol.name == wished || symbol.path() == wished;
        let ends = |symbol: &&Symbol| {
            let mut own: Vec<&str> = symbol.parents.iter().map(String::as_str).collect();
            own.push(&symbol.name);
            !parts.is_empty() && own.ends_with(&parts)
        };
        let whole = |symbol: &&&Symbol| symbol.parents.len() + 1 == parts.len();
        // An implementation for a type isn't the type.
        let mut found: Vec<&Symbol> = self
            .symbols
            .iter()
            .filter(|symbol| ends(symbol) || named(symbol))
            .filter(|symbol| symbol.kind != SymbolKind::Impl)
            .collect();
        if found.is_empty() {
            found = self.symbols.iter().filter(|symbol| ends(symbol) || named(symbol)).collect();
        }
        let outer: Vec<&Symbol> = found.iter().copied().filter(|symbol| !symbol.local).collect();
        if !outer.is_empty() {
            found = outer;
        }
        let exact: Vec<&Symbol> = found.iter().filter(whole).copied().collect();
        if let ([only], _) | (_, [only]) = (found.as_slice(), exact.as_slice()) {
            return Ok(only);
        }
        let line = |symbol: &Symbol| line_at(self.text, symbol.definition.start);
        let ambiguous = !found.is_empty();
        let candidates = if ambiguous {
            found.iter().map(|symbol| (symbol.path(), line(symbol))).collect()
        } else {
            self.similar_symbols(wished, parts.last().copied().unwrap_or_default())
                .into_iter()
                .map(|symbol| (symbol.path(), line(symbol)))
                .collect()
        };
        Err(Refusal::Symbol { symbol: wished.to_owned(), candidates, ambiguous })
    }

    /// Symbols that are called alike, the most alike first.
    fn similar_symbols(&self, wished: &str, name: &str) -> Vec<&'t Symbol> {
        let mut near: Vec<(f64, &Symbol)> = self
            .symbols
            .iter()
            .filter(|symbol| symbol.kind != SymbolKind::Impl)
            .map(|symbol| {
                let same = symbol.name.eq_ignore_ascii_case(name);
                let alike = strsim::jaro_winkler(&symbol.name, name)
                    .max(strsim::jaro_winkler(&symbol.path(), wished));
                (if same { 1.0 } else { alike }, symbol)
            })
            .filter(|(alike, _)| *alike >= MIN_SIMILARITY)
            .collect();
        near.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        near.into_iter().take(MAX_SIMILAR_SYMBOLS).map(|(_, symbol)| symbol).collect()
    }

    /// A text in the indentation of a place and the file's line endings; its own outermost
    /// indentation is taken away.
    fn reindent(&self, content: &str, indent: &str) -> String {
        let line_break = first_line_break(self.text);
        let lines: Vec<&str> = content.lines().collect();
        let first = lines.iter().position(|line| !line.trim().is_empty()).unwrap_or(0);
        let last = lines.iter().rposition(|line| !line.trim().is_empty()).map_or(first, |last| last + 1);
        let lines = lines.get(first..last).unwrap_or_default();
        let given = lines
            .iter()
            .filter(|line| !line.trim().is_empty())
            .map(|line| split_indent(line).0)
            .min_by_key(|indent| indent.len());
        let given = given.unwrap_or_default();
        // A first line that was cut off at its text, with the rest as far in as it was.
        let rest: Vec<&str> = lines.iter().skip(1).copied().filter(|line| !line.trim().is_empty()).collect();
        let inner = rest.iter().map(|line| split_indent(line).0.len()).min().unwrap_or(0);
        let closes = rest.last().is_some_and(|line| {
            let own = line.trim_start();
            own.starts_with(['}', ')', ']']) || own.starts_with("end")
        });
        let hanging = given.is_empty()
            && !indent.is_empty()
            && !rest.is_empty()
            && rest.iter().all(|line| line.starts_with(indent))
            && (inner > indent.len() || closes);
        let mut out = String::with_capacity(content.len() + lines.len() * indent.len());
        for (at, line) in lines.iter().enumerate() {
            if at > 0 {
                out.push_str(line_break);
            }
            let line = line.strip_prefix(given).unwrap_or(line);
            if line.trim().is_empty() {
                continue;
            }
            if at > 0 && !hanging {
                out.push_str(indent);
            }
            out.push_str(line.trim_end_matches('\r'));
        }
        out
    }

    /// The blanks before a symbol, if it opens its line.
    fn indent_of(&self, symbol: &Symbol) -> Option<&'t str> {
        let before = self.text_of(0..symbol.full.start);
        let line = before
            .rfind('\n')
            .map_or(before, |at| before.get(at + 1..).unwrap_or_default())
            .trim_start_matches('\u{feff}');
        line.trim().is_empty().then_some(line)
    }

    fn replace_symbol(
        &self,
        symbol: &Symbol,
        content: &str,
    ) -> Result<(SymbolReplacements, Option<String>), Refusal> {
        self.check_parses(content)?;
        let new = self.reindent(content, self.indent_of(symbol).unwrap_or_default());
        // A new text with a comment or attribute of its own replaces the present ones.
        let opens = new.trim_start();
        let has_lead = ["//", "/*", "#", "--", "<!--", "@", "[", ";", "\"\"\""]
            .iter()
            .any(|opener| opens.starts_with(opener));
        let leads = symbol.full.start < symbol.definition.start;
        let (range, note) = if leads && !has_lead {
            (symbol.definition.clone(), Some("its comments and attributes were kept".to_owned()))
        } else {
            (symbol.full.clone(), None)
        };
        // A comma or semicolon that stands after the symbol stays; it isn't doubled.
        let after = self.text_of(range.end..self.text.len());
        let sign = [',', ';'].into_iter().find(|sign| after.starts_with(*sign) && new.ends_with(*sign));
        let new = sign.map_or(new.as_str(), |sign| new.strip_suffix(sign).unwrap_or(&new)).to_owned();
        Ok((vec![(range, new)], note))
    }

    fn check_parses(&self, content: &str) -> Result<(), Refusal> {
        if content.len() > MAX_SEARCH_BYTES {
            return Err(Refusal::TooLarge {
                what: "replacement",
                bytes: content.len(),
                limit: MAX_SEARCH_BYTES,
            });
        }
        if content.trim().is_empty() {
            return Err(malformed_refusal(
                "The edit has no text to put there; to remove a symbol, delete it",
            ));
        }
        match crate::placement::placeholders::find_placeholder(self.text, content) {
            Some(remark) => Err(Refusal::Placeholder { remark: remark.to_owned() }),
            None => Ok(()),
        }
    }

    /// Returns true if the symbol and the ones beside it have blank lines between them.
    fn has_blank_lines_around(&self, symbol: &Symbol) -> bool {
        let siblings: Vec<&Symbol> =
            self.symbols.iter().filter(|other| other.inside == symbol.inside).collect();
        let gaps: Vec<usize> = siblings
            .windows(2)
            .filter_map(|two| match two {
                [one, other] if one.full.end <= other.full.start => {
                    Some(self.text_of(one.full.end..other.full.start).matches('\n').count())
                }
                _ => None,
            })
            .collect();
        if gaps.is_empty() {
            return matches!(
                symbol.kind,
                SymbolKind::Function
                    | SymbolKind::Method
                    | SymbolKind::Constructor
                    | SymbolKind::Class
                    | SymbolKind::Struct
                    | SymbolKind::Enum
                    | SymbolKind::Interface
                    | SymbolKind::Trait
                    | SymbolKind::Impl
            );
        }
        gaps.iter().filter(|breaks| **breaks > 1).count() * 2 >= gaps.len()
    }

    /// Returns the number of line breaks between the symbol and its neighbours.
    fn count_breaks_around(&self, symbol: &Symbol) -> usize {
        if !self.has_blank_lines_around(symbol) {
            return 1;
        }
        // Python has two blank lines between what is outermost.
        if self.tree.language() == Language::Python && symbol.inside.is_none() { 3 } else { 2 }
    }

    fn insert_beside_symbol(
        &self,
        symbol: &Symbol,
        content: &str,
        after: bool,
    ) -> Result<(SymbolReplacements, Option<String>), Refusal> {
        self.check_parses(content)?;
        let Some(indent) = self.indent_of(symbol) else {
            return Err(malformed_refusal(
                "The symbol doesn't stand on a line of its own: what is beside it can't be told. Send a search and replacement",
            ));
        };
        let mut new = self.reindent(content, indent);
        let line_break = first_line_break(self.text);
        let between = line_break.repeat(self.count_breaks_around(symbol)) + indent;
        if !after {
            if self.is_list_item(symbol) && !new.ends_with(',') {
                new.push(',');
            }
            return Ok((vec![(symbol.full.start..symbol.full.start, new + &between)], None));
        }
        let rest = self.text_of(symbol.full.end..self.text.len());
        let mut end = symbol.full.end;
        if let Some(sign) = rest.chars().next().filter(|sign| matches!(sign, ',' | ';')) {
            end += sign.len_utf8();
            if sign == ',' && !new.ends_with(',') {
                new.push(',');
            }
            // A comment in the same line belongs to what stands there.
        } else if self.is_list_item(symbol) {
            let new = new.trim_end_matches(',').to_owned();
            return Ok((vec![(end..end, format!(",{between}{new}"))], None));
        }
        let line = self.text_of(end..self.text.len()).split('\n').next().unwrap_or_default();
        let tail = line.trim();
        if ["//", "#", "--", "/*"].iter().any(|opener| tail.starts_with(opener)) {
            end += line.trim_end().len();
        }
        Ok((vec![(end..end, between + &new)], None))
    }

    /// Returns true if a symbol is one of a list with commas.
    fn is_list_item(&self, symbol: &Symbol) -> bool {
        let Some(node) =
            self.tree.root().descendant_for_byte_range(symbol.definition.start, symbol.definition.end)
        else {
            return false;
        };
        let beside = [node.next_sibling(), node.prev_sibling()];
        self.tree.language() == Language::Json
            || matches!(symbol.kind, SymbolKind::Key | SymbolKind::Variant | SymbolKind::Field)
                && beside.into_iter().flatten().any(|beside| beside.kind() == ",")
    }

    /// The symbol with its lines, and of the blank lines around it those on one side.
    fn delete_symbol(&self, symbol: &Symbol) -> SymbolReplacements {
        let mut range = symbol.full.clone();
        let rest = self.text_of(range.end..self.text.len());
        if rest.starts_with([',', ';']) {
            range.end += 1;
        } else if self.is_list_item(symbol) {
            // The last of a list takes the comma before it along.
            let before = self.text_of(0..range.start).trim_end();
            if before.ends_with(',') {
                return vec![(before.len() - 1..range.end, String::new())];
            }
        }
        let line = self.text_of(range.end..self.text.len()).split_inclusive('\n').next().unwrap_or_default();
        let Some(indent) = self.indent_of(symbol).filter(|_| line.trim().is_empty()) else {
            return vec![(range, String::new())];
        };
        range.start -= indent.len();
        range.end += line.len();
        let blank_before = {
            let before = self.text_of(0..range.start);
            before.is_empty()
                || before.ends_with("\n\n")
                || before.ends_with("\n\r\n")
                || before.trim_end().ends_with(['{', ':', '(', '['])
        };
        while range.end < self.text.len() && blank_before {
            let line =
                self.text_of(range.end..self.text.len()).split_inclusive('\n').next().unwrap_or_default();
            if line.is_empty() || !line.trim().is_empty() {
                break;
            }
            range.end += line.len();
        }
        // Before a closing bracket, or at the end, no blank line is left over.
        let next = self.text_of(range.end..self.text.len()).trim_start();
        if next.is_empty() || next.starts_with(['}', ')', ']']) || next.starts_with("end") {
            let kept = self.text_of(0..range.start).trim_end().len();
            let first_break =
                self.text_of(kept..range.start).find('\n').map_or(range.start, |at| kept + at + 1);
            range.start = first_break.min(range.start);
        }
        vec![(range, String::new())]
    }

    fn rename_symbol(
        &self,
        symbol: &Symbol,
        to: &str,
    ) -> Result<(SymbolReplacements, Option<String>), Refusal> {
        let to = to.trim();
        if matches!(
            symbol.kind,
            SymbolKind::Key
                | SymbolKind::Table
                | SymbolKind::Rule
                | SymbolKind::Element
                | SymbolKind::Module
                | SymbolKind::Impl
        ) {
            return Err(malformed_refusal(&format!(
                "A {} can't be renamed by its symbol. Send a search and replacement",
                symbol.kind.name()
            )));
        }
        let is_name = !to.is_empty()
            && !to.starts_with(|c: char| c.is_ascii_digit())
            && to.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '#' | '@' | '?' | '!'));
        if !is_name {
            return Err(malformed_refusal(&format!("`{to}` is no name in this language")));
        }
        let uses = self.name_nodes(&symbol.name);
        if let Some(taken) = self.name_nodes(to).first() {
            return Err(malformed_refusal(&format!(
                "`{to}` is used in the file already (line {}): what would mean what can't be told. Choose another name",
                line_at(self.text, taken.start_byte())
            )));
        }
        let others: Vec<&Symbol> = self
            .symbols
            .iter()
            .filter(|other| {
                other.name == symbol.name
                    && other.name_range != symbol.name_range
                    && other.kind != SymbolKind::Impl
            })
            .collect();
        let binding =
            uses.iter().find(|node| node.start_byte() != symbol.name_range.start && is_binding(**node));
        let elsewhere = others.first().map(|other| other.name_range.start).or(binding.map(Node::start_byte));
        if let Some(at) = elsewhere {
            return Err(malformed_refusal(&format!(
                "`{}` is also the name of something else in the file (line {}): which of its uses are meant can't be told. Send the lines to change \
                 as search and replacement",
                symbol.name,
                line_at(self.text, at)
            )));
        }
        let mut pieces: SymbolReplacements =
            uses.iter().map(|node| (node.byte_range(), to.to_owned())).collect();
        if !pieces.iter().any(|(range, _)| *range == symbol.name_range) {
            pieces.push((symbol.name_range.clone(), to.to_owned()));
        }
        pieces.sort_by_key(|(range, _)| range.start);
        let note = format!("{} places of this file; other files that use it aren't changed", pieces.len());
        Ok((pieces, Some(note)))
    }

    /// The names in the code that are this one: none in comments and strings.
    fn name_nodes(&self, name: &str) -> Vec<Node<'t>> {
        let mut found = Vec::new();
        let mut cursor = self.tree.root().walk();
        loop {
            let node = cursor.node();
            let skipped = is_comment(node)
                || node.kind().contains("string_content")
                || node.kind().contains("string_fragment");
            if !skipped && cursor.goto_first_child() {
                continue;
            }
            let is_name = node.is_named() && node.child_count() == 0 && !skipped && !is_attribute(node);
            if is_name
                && (node.kind().contains("identifier") || matches!(node.kind(), "name" | "constant" | "word"))
                && self.text_of(node.byte_range()) == name
            {
                found.push(node);
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return found;
                }
            }
        }
    }
}

/// Returns true if a name is given to something where it stands: a parameter, a local variable, a
/// field.
fn is_binding(node: Node<'_>) -> bool {
    let mut inner = node;
    let mut at = node.parent();
    for _ in 0..4 {
        let Some(parent) = at else { return false };
        let kind = parent.kind();
        let field =
            |name: &str| parent.child_by_field_name(name).is_some_and(|child| child.id() == inner.id());
        if ["parameters", "parameter_list", "formal_parameters", "lambda_parameters", "block_parameters"]
            .contains(&kind)
        {
            return true;
        }
        let declares = [
            "parameter",
            "declarator",
            "let_declaration",
            "let_condition",
            "short_var_declaration",
            "variable_declaration",
            "for_",
            "assignment",
            "field_definition",
            "property_signature",
            "field_initializer",
            "pair",
        ];
        if declares.iter().any(|part| kind.contains(part)) {
            let named =
                ["name", "pattern", "left", "key", "declarator", "field"].iter().any(|name| field(name));
            return named && !kind.contains("member") && !kind.contains("call");
        }
        if !(kind.contains("pattern") || kind.contains("list") || kind.contains("tuple")) {
            return false;
        }
        inner = parent;
        at = parent.parent();
    }
    false
}
