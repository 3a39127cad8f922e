//! Small mutations of changed lines: a test that doesn't notice a mutation would not notice a fault
//! there.
//!
//! [`find_mutants`] reads one file by its syntax tree and proposes the mutations of its changed
//! lines; [`MutationPlan`] orders them, the most telling first and spread over all changed
//! statements, and decides by the outcomes which one is tried next; [`try_mutants`] runs the
//! project's tests on them in copies. The first two are pure.
//!
//! Mutations that tests can't or needn't notice are left out: of logging, assertions, types,
//! attributes, imports, tests beside the product, sizes of buffers, and bounds at which both sides
//! have the same result: `if a > b { b = a }`, `if a < 0 { a = -a }`; in C also reads beyond an
//! array. A guard clause that makes no difference is found by the tests themselves (see
//! [`MutationPlan::into_report`]).

mod calls;
mod changed_line_ranges;
mod expressions;
mod language_words;
mod mutant;
mod node_kinds;
mod plan;
mod proposals;
mod statements;
mod trial;

use std::collections::BTreeMap;
use std::ops::Range;

use journeyman_protocol::{MutationKind, RelPath};
use journeyman_syntax::Node;
use journeyman_syntax::language::Language;
use journeyman_syntax::parse::{Tree, parse, reparse};

pub use changed_line_ranges::changed_lines;
use language_words::words_of_language;
pub use mutant::{ChangedStatement, FileMutants, Mutant};
use node_kinds::{function_name, is_excluded, is_function, return_type, statement_position};
pub use plan::{MutationPlan, PlannedFile, PlannedMutant, TrialOutcome};
use proposals::{NodeContext, Proposal};
pub use trial::{TrialContext, TrialLimits, judge_trial, try_mutants};

/// Maximum bytes of a file that is mutated: longer ones are generated.
const MAX_MUTATED_FILE_BYTES: usize = 512 << 10;
/// Maximum number of mutations of a file; more than any budget has time for.
const MAX_MUTANTS: usize = 400;
/// Maximum number of mutations that begin on one line.
const MAX_MUTANTS_A_LINE: usize = 8;

/// Returns the changed statements of a product file and the mutations of its changed lines, which
/// are 1-based. Empty for a language that isn't mutated, and for a text with syntax errors.
///
/// The function is pure, bounded, and doesn't panic on any text.
#[must_use]
pub fn find_mutants(path: &RelPath, text: &str, lines: &[Range<u32>]) -> FileMutants {
    let found = FileMutants::default();
    let Some(name) = path.as_str() else { return found };
    let Some(language) = Language::detect(name, text).filter(|_| text.len() <= MAX_MUTATED_FILE_BYTES) else {
        return found;
    };
    let (Some(words), Ok(tree)) = (words_of_language(language), parse(language, text)) else { return found };
    if tree.has_error() {
        return found;
    }
    let scope =
        NodeContext { text, language, words, return_type: None, is_returned: false, in_function: false };
    let mut scan = MutantScan { path, text, lines, tree: &tree, found, on_line: BTreeMap::new() };
    scan.visit(tree.root(), scope, None, None);
    scan.found.mutants.sort_by_key(|mutant| (mutant.range.start, mutant.range.end));
    scan.found
}

/// Returns true for a language in which mutations are known.
#[must_use]
pub fn can_mutate(path: &str) -> bool {
    Language::from_path(path).and_then(words_of_language).is_some()
}

struct MutantScan<'a, 't> {
    path: &'a RelPath,
    text: &'t str,
    lines: &'a [Range<u32>],
    tree: &'a Tree,
    found: FileMutants,
    on_line: BTreeMap<u32, usize>,
}

impl<'t> MutantScan<'_, 't> {
    fn visit(
        &mut self,
        node: Node<'_>,
        mut scope: NodeContext<'t>,
        around: Option<Node<'_>>,
        statement: Option<usize>,
    ) {
        if self.found.mutants.len() >= MAX_MUTANTS
            || !self.has_changed_line(node)
            || is_excluded(node, self.text)
        {
            return;
        }
        let (mut around, mut statement) = (around, statement);
        if is_function(node.kind()) {
            scope.return_type = return_type(node, self.text);
            scope.in_function = true;
            scope.is_returned = false;
            around = if function_name(node, self.text).is_some() { Some(node) } else { around };
            // A nested function runs at another time.
            statement = None;
        }
        if let Some(place) = statement_position(node, scope.language).filter(|_| scope.in_function) {
            let function = around.and_then(|function| function_name(function, self.text));
            let stop = statements::stop_before_statement(node, place, &scope);
            let stop = stop.and_then(|stop| self.check_proposal(stop, around, None));
            let line = line_of(node);
            if self.are_lines_changed(line..line + 1) || self.has_changed_header(node) {
                let block = node.parent().map_or(0, |block| block.start_byte());
                self.found.statements.push(ChangedStatement {
                    line,
                    function,
                    stop,
                    block,
                    around: statement,
                });
                statement = Some(self.found.statements.len() - 1);
            }
        }
        scope.is_returned = match node.kind() {
            "return_statement" | "return_expression" | "return" | "arrow_expression_clause" => true,
            "arguments" | "argument_list" | "token_tree" | "subscript" => false,
            kind if kind.ends_with("statement") => false,
            _ => scope.is_returned,
        };
        let mut proposals = Vec::new();
        expressions::propose_mutations(node, &scope, &mut proposals);
        calls::propose_mutations(node, &scope, &mut proposals);
        statements::propose_mutations(node, &scope, &mut proposals);
        for proposal in proposals {
            self.add_mutant(proposal, around, statement);
        }
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.visit(child, scope, around, statement);
        }
    }

    fn add_mutant(&mut self, proposal: Proposal, around: Option<Node<'_>>, statement: Option<usize>) {
        let line = self.line_at(proposal.range.start);
        let last = self.line_at(proposal.range.end.max(proposal.range.start + 1) - 1);
        let count = self.on_line.get(&line).copied().unwrap_or(0);
        if count >= MAX_MUTANTS_A_LINE || !self.are_lines_changed(line..last + 1) {
            return;
        }
        if let Some(mutant) = self.check_proposal(proposal, around, statement) {
            self.on_line.insert(line, count + 1);
            self.found.mutants.push(mutant);
        }
    }

    /// Returns a proposal as a mutant if its text differs and still parses.
    fn check_proposal(
        &self,
        proposal: Proposal,
        around: Option<Node<'_>>,
        statement: Option<usize>,
    ) -> Option<Mutant> {
        let Proposal { kind, range, replacement, test, disables, probe } = proposal;
        let probe = probe.and_then(|(range, replacement)| {
            let probe = Proposal::new(MutationKind::Stop, range, replacement, String::new());
            self.check_proposal(probe, around, statement).map(Box::new)
        });
        let mutant = Mutant {
            path: self.path.clone(),
            line: self.line_at(range.start),
            range,
            replacement,
            kind,
            function: around.and_then(|function| function_name(function, self.text)),
            proposal: test,
            statement,
            disables,
            probe,
        };
        let mutated = mutant.apply(self.text)?;
        let tree = reparse(self.tree, self.text, &mutated).ok()?;
        (mutated != self.text && !tree.has_error()).then_some(mutant)
    }

    fn line_at(&self, byte: usize) -> u32 {
        let head = self.text.as_bytes().get(..byte).unwrap_or_default();
        u32::try_from(head.iter().filter(|byte| **byte == b'\n').count())
            .unwrap_or(u32::MAX)
            .saturating_add(1)
    }

    fn has_changed_line(&self, node: Node<'_>) -> bool {
        let (first, last) = (line_of(node), end_line_of(node));
        self.lines.iter().any(|lines| lines.start <= last && first < lines.end)
    }

    /// Returns true if each of the lines changed.
    fn are_lines_changed(&self, lines: Range<u32>) -> bool {
        lines.clone().all(|line| self.lines.iter().any(|changed| changed.contains(&line)))
    }

    /// Returns true if the statement's own tokens, not only statements within, are on changed
    /// lines.
    fn has_changed_header(&self, node: Node<'_>) -> bool {
        let mut cursor = node.walk();
        node.named_children(&mut cursor).any(|child| {
            let block = child.kind().contains("block")
                || child.kind().contains("compound")
                || child.kind().contains("clause");
            !block && self.has_changed_line(child)
        })
    }
}

fn line_of(node: Node<'_>) -> u32 {
    u32::try_from(node.start_position().row).unwrap_or(u32::MAX).saturating_add(1)
}

fn end_line_of(node: Node<'_>) -> u32 {
    u32::try_from(node.end_position().row).unwrap_or(u32::MAX).saturating_add(1)
}
