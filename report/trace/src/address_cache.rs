//! Answers about addresses that were looked up before: stacks have the same return addresses again and again.

use foldhash::HashMap;

/// Answers about addresses of processes, by process and address.
#[derive(Debug)]
pub(crate) struct AddressCache<T> {
    /// Addresses that are kept at most; then all are looked up anew.
    most: usize,
    known: HashMap<(i32, u64), TimedAnswer<T>>,
}

/// An answer about an address.
#[derive(Debug)]
pub(crate) struct TimedAnswer<T> {
    /// The time at which it was looked up, ns.
    pub(crate) from: u64,
    /// When it may be another one after that, ns.
    pub(crate) until: u64,
    pub(crate) answer: T,
}

/// An address in a process at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedAddress {
    pub(crate) pid: i32,
    pub(crate) address: u64,
    /// ns of the trace's clock.
    pub(crate) time: u64,
}

impl<T> TimedAnswer<T> {
    fn holds(&self, time: u64) -> bool {
        (self.from..self.until).contains(&time)
    }
}

impl<T> AddressCache<T> {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            known: HashMap::default(),
        }
    }

    /// The answer about an address, looked up if it is not known for the time.
    #[inline]
    pub(crate) fn get(&mut self, at: TimedAddress, look_up: impl Fn() -> TimedAnswer<T>) -> &mut T {
        if self.known.len() >= self.most {
            self.known.clear();
        }
        let known = self.known.entry((at.pid, at.address));
        let known = known.or_insert_with(&look_up);
        if !known.holds(at.time) {
            *known = look_up();
        }
        &mut known.answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn answers_are_of_a_process_an_address_and_a_time() {
        let asked = Cell::new(0);
        let mut cache = AddressCache::new(2);
        let mut ask = |pid, address, time| {
            let at = TimedAddress { pid, address, time };
            *cache.get(at, || {
                asked.set(asked.get() + 1);
                TimedAnswer {
                    from: time,
                    until: time + 10,
                    answer: asked.get(),
                }
            })
        };
        assert_eq!(ask(1, 0x10, 100), 1);
        assert_eq!(ask(1, 0x10, 109), 1);
        // Another time.
        assert_eq!(ask(1, 0x10, 110), 2);
        assert_eq!(ask(1, 0x10, 105), 3);
        // Another process; then there are enough, and all begins anew.
        assert_eq!(ask(2, 0x10, 105), 4);
        assert_eq!(ask(1, 0x10, 105), 5);
    }
}
