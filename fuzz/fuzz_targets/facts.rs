//! What one file's text tells: symbols, names that are used, imports, sections.

#![no_main]

use journeyman_fuzz::{Input, timed};
use journeyman_syntax::analysis::analyse;
use journeyman_syntax::language::Language;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let input = Input::new(data, 1);
    let language = Language::ALL[usize::from(input.switch(0)) % Language::ALL.len()];
    let text = input.text(0);
    let Ok(facts) = timed(data.len(), || analyse(language, text)) else { return };
    for symbol in &facts.symbols {
        assert_eq!(text.get(symbol.name_range.clone()), Some(symbol.name.as_str()));
        assert!(text.get(symbol.full.clone()).is_some() && symbol.lines.start < symbol.lines.end);
    }
    let lines = text.matches('\n').count() + 1;
    for reference in &facts.references {
        assert!(!reference.name(text).is_empty() && reference.line as usize <= lines);
        let inside = reference.inside.map(|at| &facts.symbols[at as usize]);
        assert!(inside.is_none_or(|symbol| symbol.full.contains(&(reference.start as usize))));
    }
    for import in facts.imports.iter().chain(&facts.path_uses) {
        assert!((1..=lines).contains(&(import.line as usize)));
    }
    for section in &facts.sections {
        assert!((section.first_line + section.lines) as usize <= lines + 1);
    }
});
