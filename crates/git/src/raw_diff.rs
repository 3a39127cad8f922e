//! The raw output of git's `diff-…` commands.

use std::collections::BTreeMap;

use crate::tracked::split_nul_records;

/// Parses raw differences: for each path the new mode and object. `None` for another format.
pub(crate) fn parse_raw_diff(bytes: &[u8]) -> Option<BTreeMap<Vec<u8>, String>> {
    let mut found = BTreeMap::new();
    let mut records = split_nul_records(bytes);
    while let Some(meta) = records.next() {
        let mut words = std::str::from_utf8(meta).ok()?.strip_prefix(':')?.split(' ');
        let (_, mode, _, id) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let path = records.next().filter(|path| !path.is_empty())?;
        // Mode 0 removes an entry.
        let mode = if mode == "000000" { "0" } else { mode };
        found.insert(path.to_vec(), format!("{mode} {id}"));
    }
    Some(found)
}
