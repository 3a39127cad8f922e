//! The names of tests, which a runner's report and its output write in different ways.

/// Returns true if both names are of the same test: one has all words of the other at its end.
/// `TestA.test_b[1]` is `tests.test_m.TestA::test_b[1]`, and `sums adds` is `sums > adds`.
pub(super) fn is_same_test(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (words_from_end(one), words_from_end(other));
    let mut is_any = false;
    loop {
        match (one.next(), other.next()) {
            (Some(a), Some(b)) if a == b => is_any = true,
            (Some(_), Some(_)) => return false,
            _ => return is_any,
        }
    }
}

fn words_from_end(name: &str) -> impl Iterator<Item = &str> {
    name.rsplit(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_test() {
        let cases = [
            ("TestA.test_b[1]", "tests.test_m.TestA::test_b[1]", true),
            ("TestA.test_b[1]", "tests.test_m.TestA::test_b[2]", false),
            ("sums adds", "src/a.test.ts > sums > adds", true),
            ("test_b", "test_ab", false),
            ("CalcTest.adds", "com.x.CalcTest.adds", true),
            ("CalcTest.adds", "com.x.OtherTest.adds", false),
            ("", "", false),
            ("", "a", false),
        ];
        for (one, other, same) in cases {
            assert_eq!(is_same_test(one, other), same, "{one} {other}");
            assert_eq!(is_same_test(other, one), same, "{other} {one}");
        }
    }
}
