/// Returns a title as a part of an address.
pub fn slug(title: &str) -> String {
    title.trim().to_lowercase().replace(' ', "_")
}
