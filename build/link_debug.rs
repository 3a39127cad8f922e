//! Build script of crates whose debug programs are started by tests thousands of times.
//!
//! A debug `jm` has 400,000 relocations, mostly of panic locations, which a program that can be
//! loaded anywhere works through at each start: 6 of 11 milliseconds of processor time. So what
//! `debug` builds is linked for a fixed address. Release programs stay position-independent.

fn main() {
    println!("cargo::rerun-if-changed=../../build/link_debug.rs");
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    if of("PROFILE") == "debug" && of("CARGO_CFG_TARGET_ENV") == "gnu" {
        println!("cargo::rustc-link-arg=-no-pie");
    }
}
