//! Removes what runners of a workspace's packages print before each line.

use std::borrow::Cow;
use std::collections::BTreeSet;

/// Maximum number of prefixes; a workspace has a few for each package.
const MAX_PREFIXES: usize = 1_000;

/// Returns an output without the prefixes of its lines: `web:test: ` of Turborepo, which names each
/// once with `web:test: cache miss, executing 1f2e`, and `packages/a test: ` of pnpm, which first
/// prints the command as `packages/a test$ vitest run`.
pub(crate) fn strip_package_prefixes(output: &str) -> Cow<'_, str> {
    let prefixes: BTreeSet<String> = output.lines().filter_map(announced_prefix).take(MAX_PREFIXES).collect();
    if prefixes.is_empty() {
        return Cow::Borrowed(output);
    }
    let strip = |line: &str| {
        // The second colon of Turborepo's, the first one of pnpm's.
        let ends = line.match_indices(": ").take(2).map(|(at, mark)| at + mark.len());
        let end = ends.into_iter().find(|end| line.get(..*end).is_some_and(|it| prefixes.contains(it)));
        line.get(end.unwrap_or(0)..).unwrap_or_default().to_owned()
    };
    Cow::Owned(output.split('\n').map(strip).collect::<Vec<_>>().join("\n"))
}

/// Returns the prefix that a line announces.
fn announced_prefix(line: &str) -> Option<String> {
    let is_word = |word: &str| !word.is_empty() && !word.contains(char::is_whitespace);
    let states = ["cache miss, executing ", "cache hit, ", "cache bypass, "];
    if let Some((task, state)) = line.split_once(": ")
        && states.iter().any(|start| state.starts_with(start))
        && is_word(task)
        && task.contains(':')
    {
        return Some(format!("{task}: "));
    }
    let (head, _) = line.split_once("$ ")?;
    let (directory, script) = head.split_once(' ')?;
    (is_word(directory) && is_word(script)).then(|| format!("{directory} {script}: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_announced_prefixes_go() {
        let turbo = "• Packages in scope: web\nweb:test: cache miss, executing 1f2e\nweb:test: \nweb:test: src/a.ts(1,2): error TS1: x\nother:test: y\n";
        assert_eq!(
            strip_package_prefixes(turbo),
            "• Packages in scope: web\ncache miss, executing 1f2e\n\nsrc/a.ts(1,2): error TS1: x\nother:test: y\n"
        );
        let pnpm = "Scope: 2 of 3 workspace projects\npackages/a test$ vitest run\npackages/a test:  FAIL  a.test.ts > adds\npackages/a test: Failed\n";
        assert_eq!(
            strip_package_prefixes(pnpm),
            "Scope: 2 of 3 workspace projects\npackages/a test$ vitest run\n FAIL  a.test.ts > adds\nFailed\n"
        );
        let plain = "a test: b\nsrc/a.c:3: error: c\n";
        assert!(matches!(strip_package_prefixes(plain), Cow::Borrowed(_)));
    }
}
