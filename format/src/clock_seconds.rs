//! Times of the trace's clock as text.

/// A time, ns, as seconds, as lines of events have it and `--time` takes it: `2128.436520`.
#[must_use]
pub fn clock_seconds(nanoseconds: u64) -> String {
    let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    format!("{seconds}.{:06}", rest / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_after_microseconds_are_left_out() {
        assert_eq!(clock_seconds(2_128_000_520_999), "2128.000520");
    }
}
