//! Statements of other languages that destroy data.

use super::effects::Danger;

/// Statements of databases, in lower case and with one blank between words, with the data that they
/// destroy.
const DESTRUCTIVE_SQL: [(&str, &str); 8] = [
    ("drop table", "a table of a database"),
    ("drop database", "a database"),
    ("drop schema", "a schema of a database"),
    ("truncate table", "the rows of a table"),
    ("delete from", "rows of a table"),
    ("flushall", "everything in a database"),
    ("flushdb", "everything in a database"),
    ("dropdatabase", "a database"),
];

/// Calls of programming languages, in lower case, with the data that they destroy.
const DESTRUCTIVE_CALLS: [(&str, &str); 9] = [
    ("rmtree", ""),
    ("remove_dir_all", ""),
    ("os.remove", ""),
    ("os.unlink", ""),
    (".unlink(", ""),
    ("rmsync", ""),
    ("unlinksync", ""),
    ("file.delete", ""),
    ("rm_rf", ""),
];

/// For each byte, a bit set of the texts that begin with it: most bytes begin none.
type FirstByteIndex = [u16; 256];
static SQL_INDEX: FirstByteIndex = index_first_bytes(&DESTRUCTIVE_SQL);
static CALL_INDEX: FirstByteIndex = index_first_bytes(&DESTRUCTIVE_CALLS);

#[allow(
    clippy::indexing_slicing,
    reason = "evaluated when this is compiled, where a place too far is an error"
)]
const fn index_first_bytes(texts: &[(&str, &str)]) -> FirstByteIndex {
    assert!(texts.len() <= u16::BITS as usize);
    let mut beginnings = [0; 256];
    let mut at = 0;
    while at < texts.len() {
        beginnings[texts[at].0.as_bytes()[0] as usize] |= 1 << at;
        at += 1;
    }
    beginnings
}

/// Returns the first text of the list that occurs in `text`.
fn find_first<'t>(
    text: &str,
    list: &'t [(&str, &str)],
    begins: &FirstByteIndex,
) -> Option<&'t (&'t str, &'t str)> {
    let mut found = 0_u16;
    for (at, byte) in text.bytes().enumerate() {
        let mut likely = begins.get(usize::from(byte)).copied().unwrap_or_default() & !found;
        while likely != 0 {
            let one = likely.trailing_zeros();
            let here = text.as_bytes().get(at..).unwrap_or_default();
            if list.get(one as usize).is_some_and(|(text, _)| here.starts_with(text.as_bytes())) {
                found |= 1 << one;
            }
            likely &= likely - 1;
        }
    }
    list.get(found.trailing_zeros() as usize)
}

/// Searches for statements of other languages that destroy data.
pub(in super::super) fn check_statements(command: &str, danger: &mut Danger) {
    if !command.contains(['(', ' ']) {
        return;
    }
    let lower = command.to_ascii_lowercase();
    let spaced = lower.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((_, what)) = find_first(&spaced, &DESTRUCTIVE_SQL, &SQL_INDEX) {
        danger.add_destruction(|| (*what).to_owned());
    }
    if let Some((call, _)) = find_first(&lower, &DESTRUCTIVE_CALLS, &CALL_INDEX) {
        danger.add_destruction(|| format!("files that `{}` removes", call.trim_matches(['.', '('])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_each_list_stands() {
        for (list, begins) in [(&DESTRUCTIVE_SQL[..], &SQL_INDEX), (&DESTRUCTIVE_CALLS[..], &CALL_INDEX)] {
            for one in list {
                for other in list {
                    let text = format!("x; {}é {}", other.0, one.0);
                    let slow = list.iter().find(|(known, _)| text.contains(known));
                    assert_eq!(find_first(&text, list, begins), slow, "{text}");
                }
            }
            assert_eq!(find_first("drop tabl flush os.remov rm", list, begins), None);
        }
    }
}
