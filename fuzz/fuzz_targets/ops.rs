//! Steps of every kind for one file.

#![no_main]

use journeyman_edit::{
    EditOp, LineKind, MAX_FEEDBACK_BYTES, OpContext, OpError, PatchHunk, PatchLine, Replace, SymbolAction,
    SymbolEdit, apply_ops,
};
use journeyman_fuzz::{Input, check_refusal, path, timed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let input = Input::new(data, 12);
    let names = ["a.rs", "a.py", "a.ts", "a.go", "a.txt", "Makefile"];
    let file = path(names[usize::from(input.switch(0)) % names.len()]);
    let text = input.flag(1, 0).then(|| input.text(0));
    let shown = input.flag(1, 1).then(|| input.text(1));
    let texts: Vec<&str> = input.texts(2).collect();
    let ops: Vec<EditOp> = texts
        .chunks(2)
        .take(8)
        .enumerate()
        .map(|(nth, pair)| op(input.switch(2 + nth), pair[0], pair.get(1).copied().unwrap_or("")))
        .collect();
    let context = OpContext { path: &file, shown, allow: input.allow(11) };
    let outcome = timed(data.len() * (1 + ops.len()), || apply_ops(text, &ops, &context));
    assert!(outcome.notes.iter().all(|note| note.op < ops.len()));
    for error in &outcome.failed {
        if let OpError::Refused { refusal, .. } = error {
            check_refusal(refusal);
        }
        assert!(error.to_string().len() <= MAX_FEEDBACK_BYTES + 100);
    }
    if outcome.is_unchanged() && outcome.rename.is_none() {
        assert_eq!(outcome.content.as_deref(), text, "unchanged, and not what it was");
    }
});

fn op(kind: u8, one: &str, other: &str) -> EditOp {
    let (one, other) = (one.to_owned(), other.to_owned());
    match kind % 12 {
        0..=2 => EditOp::Replace(Replace {
            search: one,
            replace: other,
            all: kind & 16 != 0,
            near: (kind & 32 != 0).then_some(3),
            whole_lines: kind & 64 != 0,
        }),
        3..=5 => EditOp::Patch(hunk(&one, &other)),
        6 => EditOp::Rewrite { content: one, exact: kind & 16 != 0 },
        7 => EditOp::Create { content: one },
        8 => EditOp::Lazy { content: one, says_removal: kind & 16 != 0 },
        9 => EditOp::Symbol(SymbolEdit { symbol: one, action: action(kind, other) }),
        10 => EditOp::Delete,
        _ => EditOp::Rename { to: path("b.rs") },
    }
}

fn hunk(lines: &str, anchor: &str) -> PatchHunk {
    let line = |line: &str| {
        let (kind, text) = match line.split_at_checked(1) {
            Some((" ", text)) => (LineKind::Context, text),
            Some(("-", text)) => (LineKind::Remove, text),
            Some(("+", text)) => (LineKind::Add, text),
            _ => (LineKind::Bare, line),
        };
        PatchLine { kind, text: text.to_owned() }
    };
    let anchors = anchor.lines().take(3).map(str::to_owned).collect();
    PatchHunk { lines: lines.lines().map(line).collect(), anchors, ..PatchHunk::default() }
}

fn action(kind: u8, content: String) -> SymbolAction {
    match kind / 12 % 5 {
        0 => SymbolAction::Replace { content },
        1 => SymbolAction::InsertBefore { content },
        2 => SymbolAction::InsertAfter { content },
        3 => SymbolAction::Delete,
        _ => SymbolAction::Rename { to: content },
    }
}
