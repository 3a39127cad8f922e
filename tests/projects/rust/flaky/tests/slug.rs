use slug::slug;

#[test]
fn spaces_become_hyphens() {
    let again = std::path::Path::new("target/ran-before").exists();
    std::fs::write("target/ran-before", "").unwrap();
    assert!(again, "the cache was cold");
    assert_eq!(slug(" A Title "), "a-title");
}
