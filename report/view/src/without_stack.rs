//! Hits that have no stack, in words.

use usdtrec_analysis::stacks::path::HitsWithoutStack;

/// How many hits have no stack, and why; empty if all have one.
pub fn without_stack(hits: HitsWithoutStack) -> Vec<String> {
    let HitsWithoutStack { by_rate, others } = hits;
    let words = |hits: u64, why: &str| {
        let have = if hits == 1 { "hit has" } else { "hits have" };
        (hits > 0).then(|| format!("{hits} {have} no stack{why}"))
    };
    let by_rate = words(by_rate, ": there were too many in a second");
    by_rate.into_iter().chain(words(others, "")).collect()
}
