//! Suggestions for a path that doesn't exist.

use super::Graph;
use super::resolve::last_part;

/// Maximum suggestions.
const MAX_SUGGESTIONS: usize = 3;
/// Maximum edit distance of names.
const MAX_EDIT_DISTANCE: usize = 2;
/// Maximum length of names that are compared letter by letter.
const MAX_COMPARED_NAME_BYTES: usize = 100;

impl Graph {
    /// Returns the paths most similar to a missing one, the most similar first: those with its end,
    /// with its name in another folder, with a similar name.
    #[must_use]
    pub fn similar_paths(&self, path: &str) -> Vec<&str> {
        let name = last_part(path).to_lowercase();
        let end = format!("/{}", path.trim_start_matches('/'));
        let mut found: Vec<(usize, &str)> = Vec::new();
        for node in &self.nodes {
            let other = last_part(&node.path).to_lowercase();
            let stem = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
            let difference = if node.path.ends_with(&end) {
                0
            } else if other == name {
                1
            } else if !stem(&name).is_empty() && stem(&other) == stem(&name) {
                2
            } else {
                match small_edit_distance(&name, &other) {
                    Some(few) => 2 + few,
                    None => continue,
                }
            };
            found.push((difference, &node.path));
        }
        found.sort_unstable();
        found.into_iter().take(MAX_SUGGESTIONS).map(|(_, path)| path).collect()
    }
}

/// Returns the edit distance, if it is small.
fn small_edit_distance(one: &str, other: &str) -> Option<usize> {
    if one.len() > MAX_COMPARED_NAME_BYTES || one.len().abs_diff(other.len()) > MAX_EDIT_DISTANCE {
        return None;
    }
    let other: Vec<char> = other.chars().collect();
    let mut before: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut row = vec![at + 1];
        for ((same, left_above), above) in
            other.iter().map(|other| *other == letter).zip(&before).zip(before.iter().skip(1))
        {
            let left = row.last().copied().unwrap_or(usize::MAX - 1);
            row.push((left_above + usize::from(!same)).min(above + 1).min(left + 1));
        }
        before = row;
    }
    before.last().copied().filter(|few| *few <= MAX_EDIT_DISTANCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_differ() {
        for (one, other, expected) in [
            ("search.rs", "serach.rs", Some(2)),
            ("search.rs", "search.rs", Some(0)),
            ("search.rs", "sarch.rs", Some(1)),
            ("search.rs", "research.rs", Some(2)),
            ("search.rs", "names.rs", None),
            ("", "ab", Some(2)),
        ] {
            assert_eq!(small_edit_distance(one, other), expected, "{one} {other}");
        }
    }
}
