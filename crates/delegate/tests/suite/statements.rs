//! The page with the tests for each statement of the first specification, held against the sources.

use std::path::Path;

#[test]
fn every_test_that_the_page_names_exists() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = std::fs::read_to_string(crates.join("../docs/delegates-statements.md")).unwrap();
    let named: Vec<_> = page.split('`').filter_map(|text| text.split_once(".rs::")).collect();
    assert!(!named.is_empty());
    for (file, function) in named {
        let source = std::fs::read_to_string(crates.join(format!("{file}.rs"))).unwrap_or_default();
        assert!(source.contains(&format!("fn {function}(")), "{file}.rs has no {function}");
    }
}
