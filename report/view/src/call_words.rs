//! How far stacks of functions of scripts can be trusted, in words.

use usdtrec_analysis::stacks::call_facts::CallFacts;
use usdtrec_trace::calls::CallDoubts;

/// What the stacks are, and what makes them doubtful, a sentence each.
pub fn call_words(facts: &CallFacts) -> Vec<String> {
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
