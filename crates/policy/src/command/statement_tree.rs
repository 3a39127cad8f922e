//! Questions about all statements of a script, also inside compound ones.

use journeyman_syntax::shell::Statement;

/// Maximum nesting of commands (`sh -c "sh -c …"`), wrappers and statements.
pub(super) const MAX_DEPTH: usize = 80;

/// Returns true if statements change the directory, as far as that can be seen.
pub(super) fn changes_directory(statements: &[Statement], depth: usize) -> bool {
    depth > MAX_DEPTH
        || statements.iter().any(|statement| match statement {
            Statement::Simple(simple) => {
                simple.words.iter().any(|word| matches!(word.text.as_str(), "cd" | "pushd" | "popd"))
            }
            Statement::Pipeline(parts) => changes_directory(parts, depth + 1),
            Statement::Compound(compound) => changes_directory(&compound.body, depth + 1),
            Statement::Function { body, .. } => changes_directory(body, depth + 1),
        })
}

/// Collects the names of the functions that statements define.
pub(super) fn collect_functions(statements: &[Statement], names: &mut Vec<String>, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    for statement in statements {
        match statement {
            Statement::Function { name, body } => {
                names.push(name.clone());
                collect_functions(body, names, depth + 1);
            }
            Statement::Pipeline(parts) => collect_functions(parts, names, depth + 1),
            Statement::Compound(compound) => collect_functions(&compound.body, names, depth + 1),
            Statement::Simple(_) => {}
        }
    }
}
