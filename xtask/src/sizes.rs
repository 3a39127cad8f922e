//! The maximum length of a file and a function, and the maximum number of methods of an object.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use syn::spanned::Spanned as _;
use syn::visit::Visit;

/// Lines of code in a file: neither blank nor only a comment.
const FILE_LIMIT: usize = 600;
/// Lines of a function, from its first to its last.
const FUNCTION_LIMIT: usize = 80;
/// Methods in one `impl` block.
const METHOD_LIMIT: usize = 25;

/// Files and functions that are longer, each with its reason: `(path, function or "", reason)`.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// Each file and function over its limit.
pub(crate) fn broken_rules(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut broken = Vec::new();
    for path in sources(root)? {
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let lines = text.lines().filter(|line| is_code(line)).count();
        if lines > FILE_LIMIT && !excepted(&shown, "") {
            broken.push(format!("{shown} has {lines} lines of code; split it by meaning at {FILE_LIMIT}"));
        }
        let file = syn::parse_file(&text).with_context(|| shown.clone())?;
        let mut functions = Functions::default();
        functions.visit_file(&file);
        for (line, methods) in functions.large_impls {
            broken.push(format!(
                "{shown}:{line}: an `impl` with {methods} methods; give some of them a type of their own at \
                 {METHOD_LIMIT}"
            ));
        }
        for (name, length) in functions.long {
            if !excepted(&shown, &name) {
                broken.push(format!(
                    "{shown}: fn {name} has {length} lines; split it by meaning at {FUNCTION_LIMIT}"
                ));
            }
        }
    }
    Ok(broken)
}

fn excepted(path: &str, function: &str) -> bool {
    EXCEPTIONS.iter().any(|(file, name, _)| *file == path && *name == function)
}

fn is_code(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with("//")
}

/// Every Rust file of the tree.
pub(crate) fn sources(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![root.join("crates"), root.join("xtask")];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() && !path.ends_with("target") {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Collects functions and `impl` blocks over their limits.
#[derive(Default)]
struct Functions {
    long: Vec<(String, usize)>,
    /// Lines of `impl` blocks, with their numbers of methods.
    large_impls: Vec<(usize, usize)>,
}

impl Functions {
    fn weigh(&mut self, name: &syn::Ident, block: &syn::Block) {
        // The span of the block itself would be made of all tokens in it.
        let braces = block.brace_token.span;
        let length = braces.close().end().line.saturating_sub(braces.open().start().line) + 1;
        if length > FUNCTION_LIMIT {
            self.long.push((name.to_string(), length));
        }
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.weigh(&function.sig.ident, &function.block);
        syn::visit::visit_item_fn(self, function);
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        let methods = block.items.iter().filter(|item| matches!(item, syn::ImplItem::Fn(_))).count();
        if methods > METHOD_LIMIT && block.trait_.is_none() {
            self.large_impls.push((block.span().start().line, methods));
        }
        syn::visit::visit_item_impl(self, block);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.weigh(&function.sig.ident, &function.block);
        syn::visit::visit_impl_item_fn(self, function);
    }
}
