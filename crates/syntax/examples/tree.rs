//! Prints a file's syntax tree and outline: `cargo run -p journeyman-syntax --example tree --
//! FILE`.

use journeyman_syntax::language::Language;
use journeyman_syntax::outline::outline;
use journeyman_syntax::parse::parse;

fn main() {
    for path in std::env::args().skip(1) {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let Some(language) = Language::detect(&path, &text) else {
            println!("{path}: no language");
            continue;
        };
        match parse(language, &text) {
            Err(why) => println!("{path}: {why:?}"),
            Ok(tree) => {
                println!("{path}: {language:?}, errors: {}", tree.has_error());
                println!("{}", tree.root().to_sexp());
                for symbol in outline(&tree, &text) {
                    println!("{:?} {:?} {} `{}`", symbol.lines, symbol.kind, symbol.path(), symbol.signature);
                }
            }
        }
    }
}
