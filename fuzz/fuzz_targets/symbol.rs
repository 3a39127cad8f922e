//! Edits by the syntax tree, and rewrites with remarks for what stays.

#![no_main]

use std::sync::Once;

use journeyman_edit::{EditOp, OpContext, OpError, SymbolAction, SymbolEdit, apply_ops};
use journeyman_fuzz::{Input, check_refusal, path, timed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let input = Input::new(data, 2);
    let endings: [&str; 17] = [
        "rs", "py", "ts", "tsx", "js", "go", "java", "c", "cpp", "cs", "rb", "php", "kt", "swift", "scala",
        "lua", "sh",
    ];
    let file = path(&format!("a.{}", endings[usize::from(input.switch(0)) % endings.len()]));
    let text = input.text(0);
    let content = input.text(2).to_owned();
    let action = match input.switch(1) % 6 {
        0 => SymbolAction::Replace { content: content.clone() },
        1 => SymbolAction::InsertBefore { content: content.clone() },
        2 => SymbolAction::InsertAfter { content: content.clone() },
        3 => SymbolAction::Delete,
        _ => SymbolAction::Rename { to: content.clone() },
    };
    let op = match input.switch(1) % 6 {
        5 => EditOp::Lazy { content, says_removal: input.switch(1) & 64 != 0 },
        _ => EditOp::Symbol(SymbolEdit { symbol: input.text(1).to_owned(), action }),
    };
    let context = OpContext { path: &file, shown: None, allow: input.allow(1) };
    // A language is made ready when it is first met: that is no fault of the input.
    static READY: [Once; 17] = [const { Once::new() }; 17];
    READY[usize::from(input.switch(0)) % endings.len()].call_once(|| {
        let wish = SymbolEdit { symbol: "a".to_owned(), action: SymbolAction::Delete };
        let wishes = [EditOp::Symbol(wish), EditOp::Lazy { content: "...\n".to_owned(), says_removal: true }];
        for op in wishes {
            drop(apply_ops(Some("a\n"), &[op], &context));
        }
    });
    let outcome = timed(data.len(), || apply_ops(Some(text), &[op], &context));
    for error in &outcome.failed {
        if let OpError::Refused { refusal, .. } = error {
            check_refusal(refusal);
        }
    }
    if outcome.is_unchanged() {
        assert_eq!(outcome.content.as_deref(), Some(text));
    }
});
