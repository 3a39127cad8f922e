//! Trigrams never exclude a file with a match.

use crate::common;

use common::{put, refresh};
use journeyman_index::Index;
use journeyman_index::pattern::candidate_files;
use proptest::prelude::*;
use regex::bytes::RegexBuilder;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn every_file_with_a_match_is_a_candidate(
        texts in prop::collection::vec("([a-cA-CkKs\u{17f}\u{212a}_]{0,6}[ \n.]){0,8}", 1..6),
        patterns in prop::collection::vec(pattern(), 1..30),
        insensitive in any::<bool>(),
    ) {
        let kept = tempfile::tempdir().unwrap();
        let tree = kept.path().join("tree");
        for (number, text) in texts.iter().enumerate() {
            put(&tree, &format!("{number}.txt"), text);
        }
        let index = Index::open(&kept.path().join("index")).unwrap();
        refresh(&index, &tree);
        let snapshot = index.snapshot();
        for pattern in patterns {
            let found = candidate_files(&snapshot, &pattern, insensitive).unwrap();
            let found: Vec<String> =
                found.files.iter().map(|file| snapshot.file(*file).unwrap().path().unwrap().to_string()).collect();
            let regex = RegexBuilder::new(&pattern).case_insensitive(insensitive).build().unwrap();
            for (number, text) in texts.iter().enumerate() {
                // Line by line, as tools search.
                if text.lines().any(|line| regex.is_match(line.as_bytes())) {
                    prop_assert!(found.contains(&format!("{number}.txt")), "{pattern:?} in {text:?}");
                }
            }
        }
    }
}

fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "[a-cA-CksK_]{1,5}",
        Just(".".to_owned()),
        Just(r"\w".to_owned()),
        Just("[ab]".to_owned()),
        Just("[^a]".to_owned()),
        Just(r"\b".to_owned()),
        Just("^".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| format!("({})", parts.join("|"))),
            inner.clone().prop_map(|part| format!("({part})+")),
            inner.clone().prop_map(|part| format!("({part})*")),
            inner.clone().prop_map(|part| format!("({part}){{2,3}}")),
            inner.prop_map(|part| format!("(?i:{part})")),
        ]
    })
}
