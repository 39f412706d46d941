//! Parts of call chains that the kernel writes after the samples, when threads return to user space.
//!
//! A sample has a cookie in their place; perf looks for the next such record of its thread. A cookie is used once in a thread.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use usdtrec_format::perf::{DeferredChain, Sample};

/// Maximum number of chains; later ones are left out.
const MAX_CHAINS: usize = 1 << 24;
/// Maximum length of all different ones, bytes.
const MAX_BYTES: usize = 256 << 20;

/// Which samples a chain is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ChainKey {
    tid: i32,
    cookie: u64,
}

/// A chain, and when its record was written, ns.
#[derive(Clone, Debug)]
struct TimedChain {
    chain: Arc<[u8]>,
    time: u64,
}

/// The chains that were written later. Equal ones are stored once.
#[derive(Debug, Default)]
pub(crate) struct DeferredChains {
    chains: HashMap<ChainKey, TimedChain>,
    different: HashSet<Arc<[u8]>>,
    bytes: usize,
}

impl DeferredChains {
    /// Adds a record.
    pub(crate) fn add(&mut self, record: &DeferredChain<'_>) {
        let (tid, cookie) = (record.id.tid, record.cookie);
        self.insert(ChainKey { tid, cookie }, record.chain, record.id.time);
    }

    /// Adds those of another part of the trace.
    pub(crate) fn append(&mut self, others: Self) {
        if self.chains.is_empty() {
            *self = others;
            return;
        }
        for (key, TimedChain { chain, time }) in others.chains {
            self.insert(key, &chain, time);
        }
    }

    fn insert(&mut self, key: ChainKey, chain: &[u8], time: u64) {
        if self.chains.len() >= MAX_CHAINS {
            return;
        }
        let known = self.different.get(chain).cloned();
        let chain = known.or_else(|| self.keep(chain));
        if let Some(chain) = chain {
            self.chains.insert(key, TimedChain { chain, time });
        }
    }

    fn keep(&mut self, chain: &[u8]) -> Option<Arc<[u8]>> {
        let bytes = self.bytes.saturating_add(chain.len());
        if bytes > MAX_BYTES {
            return None;
        }
        let chain: Arc<[u8]> = chain.into();
        self.bytes = bytes;
        self.different.insert(Arc::clone(&chain));
        Some(chain)
    }

    /// Forgets those that were written up to a time: their samples are before it.
    pub(crate) fn forget_before(&mut self, time: u64) {
        if self.chains.is_empty() {
            return;
        }
        self.chains.retain(|_, chain| chain.time > time);
        self.different = self
            .chains
            .values()
            .map(|kept| Arc::clone(&kept.chain))
            .collect();
        self.bytes = self.different.iter().map(|chain| chain.len()).sum();
    }

    /// The part of a sample's chain with this cookie; `None` if it is not known.
    pub(crate) fn find(&self, sample: &Sample<'_>, cookie: u64) -> Option<&[u8]> {
        let key = ChainKey {
            tid: sample.tid,
            cookie,
        };
        self.chains.get(&key).map(|found| &*found.chain)
    }
}
