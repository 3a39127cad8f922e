//! What is written down in a format is read back as it was.

#![no_main]

use std::collections::BTreeMap;

use journeyman_edit::{Allow, ChangeKind, FileChange, Format, Options, plan, render};
use journeyman_fuzz::{Input, path};
use journeyman_protocol::RelPath;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let input = Input::new(data, 1);
    let texts: Vec<&str> = input.texts(0).collect();
    let names = ["a.rs", "src/b.py"];
    let changes: Vec<FileChange> = names
        .iter()
        .zip(texts.chunks_exact(2))
        .filter(|(_, pair)| pair[0] != pair[1])
        .map(|(name, pair)| FileChange {
            path: path(name),
            to: None,
            kind: ChangeKind::Modify,
            before: Some(pair[0].to_owned()),
            after: Some(pair[1].to_owned()),
            notes: Vec::new(),
            broken: None,
        })
        .collect();
    let format = Format::ALL[usize::from(input.switch(0)) % Format::ALL.len()];
    let Ok(text) = render(&changes, format) else { return };
    if changes.is_empty() {
        return;
    }
    let mut files: BTreeMap<RelPath, String> =
        changes.iter().filter_map(|change| Some((change.path.clone(), change.before.clone()?))).collect();
    let allow = Allow { placeholders: true, ..Allow::default() };
    let planned = plan(&text, &Options { format: Some(format), allow, ..Options::default() }, &files);
    assert!(planned.failed.is_empty(), "{format}: {:?}\n{text}", planned.failed);
    for change in planned.writes() {
        files.insert(change.path.clone(), change.after.clone().expect("nothing is deleted"));
    }
    for change in &changes {
        assert_eq!(files.get(&change.path), change.after.as_ref(), "{format}:\n{text}");
    }
});
