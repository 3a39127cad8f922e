//! Names with the names before them: `Type.method`, `module::function`, `package.Type.method`.

use super::document::is_within_scope;

/// Maximum parts of a qualified name that are compared.
const MAX_PARTS: usize = 32;
/// Parts that mean the place where a name is written.
const RELATIVE_PARTS: [&str; 5] = ["self", "this", "cls", "crate", "super"];

/// A name with its qualifiers: the names of its enclosing items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QualifiedName {
    qualifiers: Vec<String>,
    name: String,
}

/// The agreement of a definition with the qualifiers of a name, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScopeFit {
    /// The innermost enclosing symbols have these names.
    Symbols,
    /// The directories, the file and the enclosing symbols have these names, in this order.
    Modules,
    /// The same without the first qualifiers, which may name a package that no directory is called.
    Package,
    /// Another place.
    None,
}

impl QualifiedName {
    /// Parses a name with `.`, `::`, `#`, `->` or `\` between its parts, as it is called or
    /// defined: `a::B<T>::c()` and `(*B).c` too.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut plain = String::with_capacity(text.len());
        let mut depth = 0_usize;
        let text = text.trim().replace("->", ".");
        for character in text.trim_end_matches("()").chars() {
            match character {
                '<' => depth += 1,
                '>' if depth > 0 => depth -= 1,
                '(' | ')' | '*' | '&' => {}
                _ if depth > 0 => {}
                ':' | '#' | '\\' => plain.push('.'),
                _ => plain.push(character),
            }
        }
        let mut parts: Vec<&str> = plain.split('.').filter(|part| !part.is_empty()).collect();
        let name = parts.pop().unwrap_or_default().to_owned();
        parts.retain(|part| !RELATIVE_PARTS.contains(part));
        let skipped = parts.len().saturating_sub(MAX_PARTS);
        Self { qualifiers: parts.into_iter().skip(skipped).map(str::to_owned).collect(), name }
    }

    /// Returns the name without qualifiers.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if the name has no qualifiers.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.qualifiers.is_empty()
    }

    /// Returns the last qualifier.
    pub(crate) fn last_qualifier(&self) -> Option<&str> {
        self.qualifiers.last().map(String::as_str)
    }

    /// Compares the qualifiers with the file and the enclosing symbols of a definition.
    #[must_use]
    pub fn scope_fit(&self, path: &[u8], scope: &str) -> ScopeFit {
        if is_within_scope(&self.qualifiers.join("."), scope) {
            return ScopeFit::Symbols;
        }
        let path = String::from_utf8_lossy(path);
        let stem = path.rsplit_once('.').map_or(&*path, |(stem, _)| stem);
        // Packages are written with `_` where their directories have `-`.
        let around: Vec<String> = stem.split('/').chain(scope.split('.')).map(to_module_name).collect();
        let wanted: Vec<String> = self.qualifiers.iter().map(|part| to_module_name(part)).collect();
        let is_around = |wanted: &[String]| {
            let mut rest = around.iter();
            wanted.iter().all(|part| rest.any(|other| other == part))
        };
        if is_around(&wanted) {
            return ScopeFit::Modules;
        }
        let shorter = (1..wanted.len()).filter_map(|skipped| wanted.get(skipped..));
        if shorter.into_iter().any(is_around) { ScopeFit::Package } else { ScopeFit::None }
    }
}

fn to_module_name(part: &str) -> String {
    part.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualifiers_are_held_against_symbols_directories_and_files() {
        let cases = [
            ("open", "src/shop.py", "Shop", ScopeFit::Symbols),
            ("Shop.open", "src/shop.py", "Shop", ScopeFit::Symbols),
            ("Shop#open()", "src/shop.rb", "Town.Shop", ScopeFit::Symbols),
            ("(*Shop).open", "src/shop.go", "Shop", ScopeFit::Symbols),
            ("Shop<T>::open", "src/shop.rs", "Shop", ScopeFit::Symbols),
            ("shop->open", "src/shop.cpp", "shop", ScopeFit::Symbols),
            ("self.open", "src/shop.py", "Shop", ScopeFit::Symbols),
            ("shop.open", "src/shop.py", "", ScopeFit::Modules),
            ("tokio::task::spawn_blocking", "tokio/src/task/blocking.rs", "", ScopeFit::Modules),
            ("root_fs::open", "crates/root-fs/src/lib.rs", "", ScopeFit::Modules),
            ("shop.Shop.open", "src/shop.py", "Shop", ScopeFit::Modules),
            (r"Town\Shop::open", "src/Town/Shop.php", "Shop", ScopeFit::Modules),
            ("my_shop::till::open", "crates/till.rs", "", ScopeFit::Package),
            ("till.open", "src/shop.py", "Shop", ScopeFit::None),
            ("Shop.Town.open", "src/a.py", "Town.Shop", ScopeFit::Package),
        ];
        for (asked, path, scope, expected) in cases {
            let asked = QualifiedName::parse(asked);
            assert_eq!(
                asked.name(),
                if asked.name() == "spawn_blocking" { "spawn_blocking" } else { "open" }
            );
            assert_eq!(asked.scope_fit(path.as_bytes(), scope), expected, "{asked:?} {path} {scope}");
        }
    }

    #[test]
    fn any_text_is_a_name() {
        for text in ["", ".", "::", "<", "a<b", "()", "*", &"a.".repeat(100)] {
            let asked = QualifiedName::parse(text);
            assert_eq!(asked.scope_fit(b"a/b.c", "d.e") == ScopeFit::Symbols, asked.is_bare(), "{text}");
        }
        assert!(QualifiedName::parse("open").is_bare() && QualifiedName::parse("").name().is_empty());
    }
}
