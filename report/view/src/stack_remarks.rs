//! Sentences about what stacks are and what they lack.

use usdtrec_analysis::stacks::call_facts::CallFacts;
use usdtrec_analysis::stacks::path::HitsWithoutStack;
use usdtrec_analysis::stacks::weighed::WeighedStacks;
use usdtrec_trace::calls::CallDoubts;

/// How stacks weigh that weigh the time of spans.
pub const SPAN_TIME: &str = "by the stack of their begin, without the spans within them";

/// What the stacks are, what makes them doubtful, and how many hits have none.
pub fn stack_remarks(stacks: &WeighedStacks) -> Vec<String> {
    let calls = stacks.calls.iter().flat_map(call_words);
    calls.chain(without_stack(stacks.without_stack)).collect()
}

/// How many hits have no stack, and why.
fn without_stack(hits: HitsWithoutStack) -> impl Iterator<Item = String> {
    let HitsWithoutStack { by_rate, others } = hits;
    let words = |hits: u64, why: &str| {
        let have = if hits == 1 { "hit has" } else { "hits have" };
        (hits > 0).then(|| format!("{hits} {have} no stack{why}"))
    };
    let by_rate = words(by_rate, ": there were too many in a second");
    by_rate.into_iter().chain(words(others, ""))
}

/// What stacks of functions of scripts are, and what makes them doubtful, a sentence each.
fn call_words(facts: &CallFacts) -> Vec<String> {
    let mut words = vec!["functions of the script, by their calls and returns".to_owned()];
    let CallFacts { lost, doubts } = facts;
    let CallDoubts {
        uncalled,
        unreturned,
        forgotten,
    } = doubts;
    if lost.is_some_and(|lost| lost > 0) {
        let lost = lost.unwrap_or_default();
        words.push(format!(
            "{lost} calls and returns were lost: stacks after these may have functions too many or too few"
        ));
    }
    if *uncalled > 0 {
        words.push(format!(
            "{uncalled} returns of functions that were called before the beginning, or whose calls were lost: stacks before these lack them"
        ));
    }
    if *unreturned > 0 {
        words.push(format!(
            "{unreturned} functions ended without a return: left by exceptions, or their returns were lost"
        ));
    }
    if *forgotten > 0 {
        words.push(format!(
            "{forgotten} open functions were forgotten, as more were open than can be kept: stacks after these lack them"
        ));
    }
    words
}
