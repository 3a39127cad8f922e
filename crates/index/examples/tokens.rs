//! Speed of the tokenizer: `tokens DIR…` counts the terms of every file beneath, in chunks of 40
//! lines.
#![allow(clippy::unwrap_used, clippy::cast_precision_loss)]

use std::time::Instant;

use journeyman_index::tokens::Tokenizer;

fn main() {
    let mut texts = Vec::new();
    for root in std::env::args().skip(1) {
        for entry in ignore::Walk::new(root).flatten() {
            if entry.file_type().is_some_and(|kind| kind.is_file())
                && let Ok(text) = std::fs::read_to_string(entry.path())
                && text.len() < 1_000_000
            {
                texts.push(text);
            }
        }
    }
    let bytes: usize = texts.iter().map(String::len).sum();
    let mut tokenizer = Tokenizer::new();
    for round in 0..3 {
        let started = Instant::now();
        let (mut terms, mut counts) = (0, 0);
        for text in &texts {
            tokenizer.begin_file();
            for chunk in text.split_inclusive('\n').collect::<Vec<_>>().chunks(40) {
                for line in chunk {
                    tokenizer.add_text(line, 1);
                }
                counts += tokenizer.finish_document().len();
            }
            terms += tokenizer.file_terms().len();
        }
        let seconds = started.elapsed().as_secs_f64();
        let (files, rate) = (texts.len(), bytes as f64 / 1e6 / seconds);
        println!(
            "round {round}: {files} files, {bytes} bytes, {terms} terms, {counts} counts: {rate:.0} MB/s"
        );
    }
}
