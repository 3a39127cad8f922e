use slug::slug;

#[test]
fn spaces_become_hyphens() {
    assert_eq!(slug(" A Title "), "a-title");
}
