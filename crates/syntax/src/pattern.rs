//! A language's query: what its nodes look like that define something, and matching single nodes against that.
//!
//! The queries are tree-sitter's, in a part of their language: nodes by kind, strings, `_`, fields, `[…]`, `.` before a child,
//! captures, and the predicates `#eq?`, `#any-of?`, `#begins?` and `#set! in`. tree-sitter's own way compiles a query by going
//! through all that a grammar can do, which takes 35 ms for C and 180 for C++ in every process, and runs it over
//! trees, of which [`crate::walk`] needs single nodes.

use tree_sitter::{Language as Grammar, Node, TreeCursor};

use crate::outline::Kind;

/// Children that are tried for a node: so many in any case, and for each that it has. Only what was made to has more.
const TRIES: usize = 1_000;
const TRIES_A_CHILD: usize = 64;
/// How deep brackets lie in one another in a query.
const MAX_DEPTH: usize = 32;

/// Kinds that lie in one another, from the outside in. A kind may have several numbers.
pub(crate) type Path = Vec<Vec<u16>>;

/// What a captured node is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Role {
    /// A definition's name.
    Name,
    /// What it belongs to.
    Parent,
    /// The definition.
    Definition(Kind),
    /// What only a predicate looks at.
    Other,
}

/// A captured node, by the number of its name.
type Captured<'tree> = (usize, Node<'tree>);

/// The patterns of a language.
pub(crate) struct Patterns {
    all: Vec<Pattern>,
    /// What captures are called.
    names: Vec<String>,
    roles: Vec<Role>,
}

/// One pattern.
pub(crate) struct Pattern {
    root: Shape,
    predicates: Vec<Predicate>,
    /// Where what it matches has to lie: the kinds right around it, any of several. None at all means anywhere.
    pub(crate) places: Vec<Path>,
}

impl Pattern {
    /// The kind of nodes that it begins with.
    pub(crate) fn kind(&self) -> Option<u16> {
        match self.root.wanted {
            Wanted::Kind(kind) => Some(kind),
            Wanted::Named | Wanted::Any => None,
        }
    }
}

/// A node as a pattern wants it.
#[derive(Clone)]
struct Shape {
    wanted: Wanted,
    captures: Vec<usize>,
    children: Vec<Child>,
}

#[derive(Clone, Copy)]
enum Wanted {
    Kind(u16),
    Named,
    Any,
}

/// A child as a pattern wants it.
#[derive(Clone)]
struct Child {
    field: Option<u16>,
    /// No named one may stand between it and the one before.
    immediate: bool,
    /// Any of these.
    shapes: Vec<Shape>,
}

/// What a captured node's text has to be.
struct Predicate {
    capture: usize,
    begins: bool,
    texts: Vec<String>,
}

/// A node's child.
#[derive(Clone, Copy)]
struct Offered<'tree> {
    node: Node<'tree>,
    field: Option<u16>,
}

/// What matching needs, kept from node to node.
pub(crate) struct Matcher<'tree> {
    cursor: TreeCursor<'tree>,
    /// Children of the nodes that are being looked at.
    offered: Vec<Offered<'tree>>,
    captured: Vec<Captured<'tree>>,
    left: usize,
}

impl<'tree> Matcher<'tree> {
    pub(crate) fn new(root: Node<'tree>) -> Self {
        Self { cursor: root.walk(), offered: Vec::new(), captured: Vec::new(), left: 0 }
    }

    /// Takes up a node's children, and says where they are.
    fn offer(&mut self, node: Node<'tree>) -> (usize, usize) {
        let start = self.offered.len();
        self.cursor.reset(node);
        let mut more = self.cursor.goto_first_child();
        while more {
            let field = self.cursor.field_id().map(std::num::NonZero::get);
            self.offered.push(Offered { node: self.cursor.node(), field });
            more = self.cursor.goto_next_sibling();
        }
        (start, self.offered.len())
    }
}

impl Patterns {
    /// Reads a query.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(crate) fn read(grammar: &Grammar, source: &str) -> Result<Self, String> {
        let mut reader =
            Reader { grammar, rest: source, names: Vec::new(), predicates: Vec::new(), places: Vec::new() };
        let mut all = Vec::new();
        while reader.peek().is_some() {
            let root = reader.pattern()?;
            all.push(Pattern {
                root,
                predicates: std::mem::take(&mut reader.predicates),
                places: std::mem::take(&mut reader.places),
            });
        }
        let role = |name: &String| match (name.as_str(), Kind::of(name)) {
            ("name", _) => Ok(Role::Name),
            ("parent", _) => Ok(Role::Parent),
            (_, Some(kind)) => Ok(Role::Definition(kind)),
            (other, None) if other.starts_with('_') => Ok(Role::Other),
            (other, None) => Err(format!("no kind is called {other}")),
        };
        let roles = reader.names.iter().map(role).collect::<Result<_, _>>()?;
        Ok(Self { all, names: reader.names, roles })
    }

    pub(crate) fn all(&self) -> &[Pattern] {
        &self.all
    }

    pub(crate) fn pattern(&self, number: usize) -> Option<&Pattern> {
        self.all.get(number)
    }

    /// Shows each way in which a node matches one of some patterns, which begin with its kind: the pattern's number and
    /// what it captured.
    pub(crate) fn matches<'tree>(
        &self,
        numbers: impl Iterator<Item = usize>,
        node: Node<'tree>,
        text: &str,
        matcher: &mut Matcher<'tree>,
        show: Show<'_, 'tree>,
    ) {
        matcher.offered.clear();
        let children = matcher.offer(node);
        let tries = TRIES + TRIES_A_CHILD * (children.1 - children.0);
        let mut roles = Vec::new();
        for number in numbers {
            let Some(pattern) = self.all.get(number) else { continue };
            matcher.left = tries;
            matcher.captured.clear();
            matcher.captured.extend(pattern.root.captures.iter().map(|name| (*name, node)));
            matcher.children(&pattern.root.children, children, &mut |matcher| {
                if pattern.predicates.iter().all(|predicate| predicate.holds(&matcher.captured, text)) {
                    let role = |name: usize| self.roles.get(name).copied().unwrap_or(Role::Other);
                    roles.clear();
                    roles.extend(matcher.captured.iter().map(|(name, node)| (role(*name), *node)));
                    show(number, &roles);
                }
            });
        }
    }
}

impl std::fmt::Debug for Patterns {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Patterns").field("names", &self.names).finish_non_exhaustive()
    }
}

/// Is shown a pattern's number and what it captured.
type Show<'a, 'tree> = &'a mut dyn FnMut(usize, &[(Role, Node<'tree>)]);
/// What goes on with a match in the making.
type Then<'a, 'tree> = &'a mut dyn FnMut(&mut Matcher<'tree>);

impl<'tree> Matcher<'tree> {
    /// Goes on with each way in which a node has a shape.
    fn shape(&mut self, shape: &Shape, node: Node<'tree>, then: Then<'_, 'tree>) {
        let fits = match shape.wanted {
            Wanted::Kind(kind) => node.kind_id() == kind,
            Wanted::Named => node.is_named() && !node.is_error(),
            Wanted::Any => !node.is_error(),
        };
        if !fits {
            return;
        }
        let captured = self.captured.len();
        self.captured.extend(shape.captures.iter().map(|name| (*name, node)));
        if shape.children.is_empty() {
            then(self);
        } else {
            let children = self.offer(node);
            self.children(&shape.children, children, then);
            self.offered.truncate(children.0);
        }
        self.captured.truncate(captured);
    }

    /// Goes on with each way in which some children are, in their order, among those that are offered.
    fn children(&mut self, wanted: &[Child], offered: (usize, usize), then: Then<'_, 'tree>) {
        let Some((child, rest)) = wanted.split_first() else { return then(self) };
        for at in offered.0..offered.1 {
            let Some(own) = self.offered.get(at).copied().filter(|_| self.left > 0) else { return };
            self.left -= 1;
            if child.field.is_none() || child.field == own.field {
                for shape in &child.shapes {
                    self.shape(shape, own.node, &mut |matcher| {
                        matcher.children(rest, (at + 1, offered.1), then)
                    });
                }
            }
            if child.immediate && own.node.is_named() {
                return;
            }
        }
    }
}

impl Predicate {
    fn holds(&self, captured: &[Captured<'_>], text: &str) -> bool {
        captured.iter().filter(|(name, _)| *name == self.capture).all(|(_, node)| {
            let own = text.get(node.byte_range()).unwrap_or_default();
            self.texts
                .iter()
                .any(|text| if self.begins { own.starts_with(text.as_str()) } else { own == text })
        })
    }
}

/// Reads a query's text.
struct Reader<'a> {
    grammar: &'a Grammar,
    rest: &'a str,
    names: Vec<String>,
    predicates: Vec<Predicate>,
    places: Vec<Path>,
}

impl<'a> Reader<'a> {
    /// The next character that says something.
    fn peek(&mut self) -> Option<char> {
        loop {
            self.rest = self.rest.trim_start();
            match self.rest.strip_prefix(';') {
                Some(comment) => self.rest = comment.split_once('\n').map_or("", |(_, rest)| rest),
                None => return self.rest.chars().next(),
            }
        }
    }

    fn take(&mut self, character: char) -> bool {
        let found = self.peek() == Some(character);
        if found {
            self.rest = self.rest.get(character.len_utf8()..).unwrap_or_default();
        }
        found
    }

    fn expect(&mut self, character: char) -> Result<(), String> {
        if self.take(character) { Ok(()) } else { Err(self.wrong(&format!("{character} is missing"))) }
    }

    fn wrong(&self, what: &str) -> String {
        let near: String = self.rest.chars().take(40).collect();
        format!("{what} before: {near}")
    }

    fn word(&mut self) -> Result<&'a str, String> {
        self.peek();
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '?' | '!');
        let end = self.rest.find(|c| !letter(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(end).unwrap_or_default();
        self.rest = rest;
        if word.is_empty() { Err(self.wrong("a word is missing")) } else { Ok(word) }
    }

    /// What stands between quotes. Nothing is escaped in our queries.
    fn string(&mut self) -> Result<&'a str, String> {
        self.expect('"')?;
        let (text, rest) = self.rest.split_once('"').ok_or_else(|| self.wrong("a quote is missing"))?;
        self.rest = rest;
        Ok(text)
    }

    fn kind(&self, name: &str, named: bool) -> Result<u16, String> {
        let kind = self.grammar.id_for_node_kind(name, named);
        let seen = |kind: &u16| !named || self.grammar.node_kind_is_visible(*kind);
        if kind == 0 || !seen(&kind) {
            Err(self.wrong(&format!("no kind is called {name}")))
        } else {
            Ok(kind)
        }
    }

    /// A pattern with its captures and predicates; it may stand in brackets with them.
    fn pattern(&mut self) -> Result<Shape, String> {
        let before = self.rest;
        self.expect('(')?;
        let grouped = self.peek() == Some('(');
        if !grouped {
            self.rest = before;
        }
        let [shape] = <[Shape; 1]>::try_from(self.shapes(0)?)
            .map_err(|_| self.wrong("a pattern begins with one kind"))?;
        if grouped {
            while self.peek() == Some('(') {
                self.expect('(')?;
                self.predicate()?;
            }
            self.expect(')')?;
        }
        if matches!(shape.wanted, Wanted::Kind(_)) {
            Ok(shape)
        } else {
            Err(self.wrong("a pattern begins with a kind"))
        }
    }

    /// A node in any of the ways in which it may be written, with its captures.
    fn shapes(&mut self, depth: usize) -> Result<Vec<Shape>, String> {
        if depth > MAX_DEPTH {
            return Err(self.wrong("too deep"));
        }
        let leaf = |wanted| vec![Shape { wanted, captures: Vec::new(), children: Vec::new() }];
        let mut shapes = match self.peek() {
            Some('[') => {
                self.expect('[')?;
                let mut shapes = Vec::new();
                while !self.take(']') {
                    shapes.extend(self.shapes(depth + 1)?);
                }
                shapes
            }
            Some('(') => {
                self.expect('(')?;
                let wanted = match self.word()? {
                    "_" => Wanted::Named,
                    name => Wanted::Kind(self.kind(name, true)?),
                };
                vec![Shape { wanted, captures: Vec::new(), children: self.list(depth + 1)? }]
            }
            Some('"') => {
                let text = self.string()?;
                leaf(Wanted::Kind(self.kind(text, false)?))
            }
            _ if self.take('_') => leaf(Wanted::Any),
            _ => return Err(self.wrong("a node is missing")),
        };
        while self.take('@') {
            let name = self.word()?;
            let number = self.capture(name);
            shapes.iter_mut().for_each(|shape| shape.captures.push(number));
        }
        Ok(shapes)
    }

    /// A node's children, up to the bracket that closes it.
    fn list(&mut self, depth: usize) -> Result<Vec<Child>, String> {
        let mut children = Vec::new();
        loop {
            if self.take(')') {
                return Ok(children);
            }
            let immediate = self.take('.');
            let field = match self.peek() {
                Some(first) if first.is_ascii_lowercase() => {
                    let name = self.word()?;
                    self.expect(':')?;
                    let field = self.grammar.field_id_for_name(name);
                    Some(field.ok_or_else(|| self.wrong(&format!("no field is called {name}")))?.get())
                }
                _ => None,
            };
            if self.peek() == Some('(') && self.rest.starts_with("(#") {
                self.expect('(')?;
                self.predicate()?;
                continue;
            }
            children.push(Child { field, immediate, shapes: self.shapes(depth)? });
        }
    }

    fn capture(&mut self, name: &str) -> usize {
        let known = self.names.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }

    /// What stands behind the bracket that opens a predicate.
    fn predicate(&mut self) -> Result<(), String> {
        self.expect('#')?;
        let sort = self.word()?;
        if sort == "set!" {
            let _in = self.word()?;
            let kinds = self.string()?;
            let path: Path = kinds.split_whitespace().map(|name| numbers(self.grammar, name)).collect();
            if path.is_empty() || path.iter().any(Vec::is_empty) {
                return Err(self.wrong("an unknown kind"));
            }
            self.places.push(path);
            return self.expect(')');
        }
        let begins = match sort {
            "eq?" | "any-of?" => false,
            "begins?" => true,
            other => return Err(self.wrong(&format!("no predicate is called {other}"))),
        };
        self.expect('@')?;
        let name = self.word()?;
        let capture = self.capture(name);
        let mut texts = Vec::new();
        while !self.take(')') {
            texts.push(self.string()?.to_owned());
        }
        self.predicates.push(Predicate { capture, begins, texts });
        Ok(())
    }
}

/// The numbers of a kind of named nodes: some have several.
fn numbers(grammar: &Grammar, name: &str) -> Vec<u16> {
    let kinds = 0..u16::try_from(grammar.node_kind_count()).unwrap_or(u16::MAX);
    kinds
        .filter(|id| grammar.node_kind_is_named(*id) && grammar.node_kind_for_id(*id) == Some(name))
        .collect()
}

#[cfg(test)]
#[cfg(feature = "python")]
mod tests {
    use super::*;
    use crate::{language::Language, parse::parse};

    fn patterns(source: &str) -> Result<Patterns, String> {
        Patterns::read(&Language::Python.grammar().ok_or("no grammar")?(), source)
    }

    /// The texts of what is called `name` in each match of the text's first statement.
    fn names(source: &str, text: &str) -> Vec<String> {
        let (patterns, tree) = (patterns(source).unwrap(), parse(Language::Python, text).unwrap());
        let node = tree.root().child(0).unwrap();
        let mut found = Vec::new();
        patterns.matches(0..patterns.all().len(), node, text, &mut Matcher::new(node), &mut |_, captured| {
            let names = captured.iter().filter(|(role, _)| *role == Role::Name);
            found.extend(names.map(|(_, node)| text[node.byte_range()].to_owned()));
        });
        found
    }

    #[test]
    fn patterns_say_which_children_count() {
        let text = "f(a, b, c)";
        let call =
            |list: &str| format!("(expression_statement (call arguments: (argument_list {list}))) @function");
        for (list, expected) in [
            ("(identifier) @name", vec!["a", "b", "c"]),
            (". (identifier) @name", vec!["a"]),
            ("(identifier) . (identifier) @name", vec!["b", "c"]),
            ("(identifier) (identifier) @name", vec!["b", "c", "c"]),
            ("[(string) (identifier)] @name", vec!["a", "b", "c"]),
            ("\"(\" @name", vec!["("]),
            ("(string) @name", vec![]),
            ("(identifier) @name (#any-of? @name \"b\" \"c\")", vec!["b", "c"]),
            ("(identifier) @name (#begins? @name \"c\")", vec!["c"]),
        ] {
            assert_eq!(names(&call(list), text), expected, "{list}");
        }
        assert_eq!(names("(expression_statement (call function: _ @name)) @function", text), ["f"]);
    }

    #[test]
    fn a_match_is_looked_for_within_bounds() {
        let list = "(identifier) ".repeat(6);
        let query = format!("(expression_statement (call arguments: (argument_list {list}))) @function");
        let text = format!("f({})", "a, ".repeat(2_000));
        assert_eq!(names(&query, &text), [""; 0]);
    }

    #[test]
    fn what_is_wrong_with_a_query_is_told() {
        for (source, wrong) in [
            ("(function_definition name: (_) @name) @thing", "no kind is called thing"),
            ("(no_such_node)", "no kind is called no_such_node"),
            ("(expression)", "no kind is called expression"),
            ("(module no_field: (_))", "no field is called no_field"),
            ("(module", "a node is missing"),
            ("((module) (#set! in \"nothing\"))", "an unknown kind"),
            ("((module) @name (#match? @name \"x\"))", "no predicate is called match?"),
            ("_ @name", "( is missing"),
        ] {
            let told = patterns(source).unwrap_err();
            assert!(told.starts_with(wrong), "{source}: {told}");
        }
    }
}
