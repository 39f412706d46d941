//! Value of `report --call-graph`, in perf's words.

use usdtrec_report::question::CallOrder;
use usdtrec_report::report::CallGraphStyle;

/// Parses `caller`, `callee` and the least percentage, separated by commas; `graph` and `function` change nothing: they name the only style.
pub(super) fn call_graph(text: &str) -> Result<CallGraphStyle, String> {
    let mut style = CallGraphStyle::default();
    for word in text.split(',') {
        match word {
            "caller" => style.order = CallOrder::Caller,
            "callee" => style.order = CallOrder::Callee,
            "graph" | "function" => {}
            word => {
                let percent = word.parse::<f64>().ok();
                let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
                style.least_percent = percent.ok_or_else(|| {
                    format!(
                        "{word:?}: expected caller (the outermost function first), callee (the function with the probe first), or the least percentage shown, \
                         such as callee,5"
                    )
                })?;
            }
        }
    }
    Ok(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_perfs() {
        let style = call_graph("graph,2.5,callee,function").unwrap();
        assert_eq!((style.order, style.least_percent), (CallOrder::Callee, 2.5));
        assert_eq!(call_graph("caller"), Ok(CallGraphStyle::default()));
        for wrong in ["fractal", "", "101", "-1", "nan", "caller,,"] {
            assert!(call_graph(wrong).is_err(), "{wrong}");
        }
    }
}
