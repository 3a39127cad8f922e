//! Prints the token estimate of each file named: `cargo run --example estimate -- FILE…`.

use journeyman_context::TokenEstimator;
use journeyman_protocol::TokenCounter as _;

fn main() -> std::io::Result<()> {
    for path in std::env::args().skip(1) {
        let text = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
        println!("{}\t{path}", TokenEstimator.count(&text));
    }
    Ok(())
}
