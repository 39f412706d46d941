//! The names of stacks that are counted in the kernel.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use usdtrec_format::perf::Sample;
use usdtrec_record::{AggregateValue, CountedStack, HitTotals};
use usdtrec_report::stat::{StackAddresses, StackName, StackNamer};

use crate::mutex::locked;

/// The names so far, by the numbers of the stacks. Clones have the same.
#[derive(Clone, Default)]
pub(in crate::cmd) struct KnownStacks {
    names: Arc<Mutex<HashMap<u64, Arc<StackName>>>>,
}

impl KnownStacks {
    /// Finds the names of the stacks of groups that have none yet.
    pub(in crate::cmd) fn learn(&self, counted: &HitTotals, names: &mut StackNamer<'_>) {
        let mut known = locked(&self.names);
        for value in counted.groups.iter().flat_map(|group| &group.values) {
            if let AggregateValue::Stack(stack) = value {
                known
                    .entry(stack.number)
                    .or_insert_with(|| Arc::new(names.name(addresses(stack))));
            }
        }
    }

    /// The names of a stack.
    pub(super) fn name(&self, stack: &CountedStack) -> Arc<StackName> {
        let known = locked(&self.names).get(&stack.number).cloned();
        known.unwrap_or_else(|| {
            let sample = Sample {
                callchain: &stack.callchain,
                ..Sample::default()
            };
            Arc::new(StackName::unnamed(sample.callers()))
        })
    }
}

fn addresses(stack: &CountedStack) -> StackAddresses<'_> {
    StackAddresses {
        id: stack.id,
        pid: stack.pid,
        time: stack.time,
        ip: stack.ip,
        callchain: &stack.callchain,
    }
}
