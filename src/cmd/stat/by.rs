//! The keys of `--by`.

use usdtrec_record::{AggregateKey, NoGroupName};
use usdtrec_report::script::process_field_named;

use crate::terminal::Usage;

/// The keys of `stat` and `top`, besides arguments.
pub(in crate::cmd) static KEYS: [(&str, AggregateKey); 7] = [
    ("comm", AggregateKey::Comm),
    ("pid", AggregateKey::Pid),
    ("tid", AggregateKey::Tid),
    ("uid", AggregateKey::Uid),
    ("container", AggregateKey::Container),
    ("unit", AggregateKey::Unit),
    ("stack", AggregateKey::Stack),
];

/// A key of `--by`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cmd) struct StatBy {
    /// What programs group hits by.
    pub(super) key: AggregateKey,
    /// Whether strings of one shape are one group: programs keep them apart, and what they counted is added up.
    pub(super) is_shape: bool,
}

impl StatBy {
    /// A key of a verb by its name, of hits or of spans.
    ///
    /// # Errors
    /// It is a key of a report that hits are not counted by in the kernel.
    pub(in crate::cmd) fn named(verb: &str, name: &str, of_spans: bool) -> Result<Self, Usage> {
        /// Other keys of `report --by`, besides fields about the process.
        const OF_REPORT: [&str; 6] = ["cpu", "dso", "sym", "srcline", "caller", "stack"];
        let (argument, is_shape) = match name.strip_suffix(":shape") {
            Some(argument) => (argument, true),
            None => (name, false),
        };
        let is_other = OF_REPORT.contains(&argument)
            || argument.contains(':')
            || process_field_named(argument).is_some();
        let key = match KEYS.iter().find(|(known, _)| *known == name) {
            Some((_, key)) => key.clone(),
            None if is_other => {
                // The stacks that spans begin with are not kept.
                let is_kept = |key: &AggregateKey| !of_spans || *key != AggregateKey::Stack;
                let keys = KEYS.iter().filter(|(_, key)| is_kept(key));
                let keys: Vec<&str> = keys.map(|(name, _)| *name).collect();
                let keys = keys.join(", ");
                let question = match of_spans {
                    true => "--span NAME --by",
                    false => "--sort",
                };
                return Err(Usage(format!(
                    "--by {name}: {verb} counts by {keys}, arguments and ARG:shape, in the kernel; \
                     to count by this, record, and use report {question} {name}"
                )));
            }
            None => AggregateKey::Argument(argument.to_owned()),
        };
        Ok(Self { key, is_shape })
    }

    /// What is shown in place of a container or unit.
    pub(super) const fn without_name(&self, reason: NoGroupName) -> &'static str {
        match (reason, &self.key) {
            (NoGroupName::Removed, _) => "<removed control group>",
            (NoGroupName::None, AggregateKey::Unit) => "<no unit>",
            (NoGroupName::None, _) => "<no container>",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_keys_are_answered_with_what_can_be_asked() {
        let refused =
            |of_spans| StatBy::named("stat", "cpu", of_spans).expect_err("a key of report");
        let Usage(of_hits) = refused(false);
        assert!(of_hits.contains("unit, stack, arguments"), "{of_hits}");
        assert!(of_hits.ends_with("report --sort cpu"), "{of_hits}");
        let Usage(of_spans) = refused(true);
        assert!(of_spans.contains("unit, arguments"), "{of_spans}");
        assert!(
            of_spans.ends_with("report --span NAME --by cpu"),
            "{of_spans}"
        );
    }
}
