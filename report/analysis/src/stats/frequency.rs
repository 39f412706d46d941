//! Values, and how often each of them occurred.

/// A value, and how often it occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frequency<V> {
    /// The value.
    pub value: V,
    /// How often it occurred.
    pub count: u64,
}

impl<V> Frequency<V> {
    /// A value that occurred so often.
    pub const fn new(value: V, count: u64) -> Self {
        Self { value, count }
    }

    /// The same count of another value.
    pub(crate) fn map<W>(self, value: impl FnOnce(V) -> W) -> Frequency<W> {
        Frequency::new(value(self.value), self.count)
    }
}

/// Sorts the most frequent values first, equally frequent ones by value.
pub(crate) fn sort_by_count<V: Ord>(all: &mut [Frequency<V>]) {
    all.sort_by(|a, b| {
        let by_count = b.count.cmp(&a.count);
        by_count.then_with(|| a.value.cmp(&b.value))
    });
}

/// All values together.
pub fn total<V>(all: &[Frequency<V>]) -> u64 {
    all.iter().map(|one| one.count).sum()
}
