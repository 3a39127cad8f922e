//! The shell's grammar (bash's, which reads what POSIX shells read), by tree-sitter.

use tree_sitter::{Parser, Tree};

/// Parses a command or a script. `None` where the grammar can't be loaded.
#[must_use]
pub fn parse(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    parser.parse(text, None)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_command_is_a_program() {
        let tree = super::parse("ls -l | wc -l").unwrap();
        assert_eq!(tree.root_node().kind(), "program");
        assert!(!tree.root_node().has_error());
    }
}
