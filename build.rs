//! Lays the binary out so that every tool finds its probes.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // LLD shifts addresses against file offsets by a page from segment to segment. Stock perf (seen with 6.1) takes an SDT
    // note's address for a file offset and would plant our own probes beside their nops. GNU ld ignores this option.
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,separate-loadable-segments");
    }
}
