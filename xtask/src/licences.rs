//! Licences of everything that is linked in.

use std::path::Path;

use crate::dependencies::metadata;

/// Licences whose only conditions are notices.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Each package whose licence isn't permissive or isn't said.
pub(crate) fn broken_rules(root: &Path) -> anyhow::Result<Vec<String>> {
    let metadata = metadata(root)?;
    let mut broken = Vec::new();
    for package in &metadata.packages {
        match package.license.as_deref() {
            Some(expression) if is_permitted(expression) => {}
            Some(expression) => {
                broken.push(format!("{} {}: licence {expression}", package.name, package.version))
            }
            None => broken.push(format!("{} {} names no licence", package.name, package.version)),
        }
    }
    Ok(broken)
}

/// Returns true if an SPDX expression can be met with allowed licences alone. `AND` binds tighter
/// than `OR`; the old `/` is an `OR`.
fn is_permitted(expression: &str) -> bool {
    let tokens = tokens(expression);
    let mut rest = tokens.as_slice();
    either(&mut rest) && rest.is_empty()
}

fn tokens(expression: &str) -> Vec<String> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut tokens: Vec<String> = Vec::new();
    let mut joins = false;
    for word in spaced.split_whitespace() {
        match tokens.last_mut() {
            Some(last) if joins || word == "WITH" => {
                last.push(' ');
                last.push_str(word);
                joins = word == "WITH";
            }
            _ => tokens.push(word.to_owned()),
        }
    }
    tokens
}

fn either(rest: &mut &[String]) -> bool {
    let mut good = all(rest);
    while let [next, tail @ ..] = rest
        && next == "OR"
    {
        *rest = tail;
        let other = all(rest);
        good |= other;
    }
    good
}

fn all(rest: &mut &[String]) -> bool {
    let mut good = one(rest);
    while let [next, tail @ ..] = rest
        && next == "AND"
    {
        *rest = tail;
        let other = one(rest);
        good &= other;
    }
    good
}

fn one(rest: &mut &[String]) -> bool {
    match rest {
        [open, tail @ ..] if open == "(" => {
            *rest = tail;
            let good = either(rest);
            if let [close, tail @ ..] = rest
                && close == ")"
            {
                *rest = tail;
                return good;
            }
            false
        }
        [licence, tail @ ..] => {
            *rest = tail;
            ALLOWED.contains(&licence.as_str())
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_permitted;

    #[test]
    fn expressions() {
        for (expression, expected) in [
            ("MIT", true),
            ("MIT/Apache-2.0", true),
            ("GPL-3.0-or-later", false),
            ("GPL-3.0-or-later OR MIT", true),
            ("MIT AND GPL-3.0-only", false),
            ("(MIT OR GPL-2.0) AND Unicode-3.0", true),
            ("(MIT OR Apache-2.0) AND OpenSSL", false),
            ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true),
            ("GPL-3.0 WITH GCC-exception-3.1", false),
            ("", false),
        ] {
            assert_eq!(is_permitted(expression), expected, "{expression}");
        }
    }
}
