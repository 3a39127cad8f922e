//! Measures the time for a map of 5,000 paths: `cargo run --release --example map_speed`.

use std::time::Instant;

use journeyman_context::{DEFAULT_BUDGET, Estimate, repository_map};
use journeyman_protocol::{RelPath, TokenCounter as _};
use journeyman_workspace::Listing;

fn main() {
    let mut paths: Vec<RelPath> = (0..5_000)
        .filter_map(|n| {
            RelPath::parse(format!("packages/part{}/src/area{}/component_{n}.rs", n % 40, n % 7)).ok()
        })
        .collect();
    paths.sort();
    let listing = Listing { paths, truncated: false };
    let mut best = f64::MAX;
    let mut map = String::new();
    for _ in 0..20 {
        let begun = Instant::now();
        map = repository_map(&listing, DEFAULT_BUDGET);
        best = best.min(begun.elapsed().as_secs_f64());
    }
    println!("{:.3} ms, {} tokens, {} lines", best * 1e3, Estimate.count(&map), map.lines().count());
    let text = map.repeat(100);
    let begun = Instant::now();
    let tokens = Estimate.count(&text);
    println!(
        "estimate: {tokens} tokens at {:.0} MB/s",
        text.len() as f64 / 1e6 / begun.elapsed().as_secs_f64()
    );
}
