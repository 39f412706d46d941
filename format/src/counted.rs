//! Numbers of things in messages.

/// A number of things, as `1 byte`, `2 bytes` or `2 processes`. `what` is the word for one of them.
#[must_use]
pub fn counted(number: impl TryInto<u64>, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let ending = match plural_ending(number) {
        "s" if what.ends_with('s') => "es",
        ending => ending,
    };
    format!("{number} {what}{ending}")
}

/// What follows the word for one thing where there are so many: `s`, or nothing for 1.
#[must_use]
pub fn plural_ending(number: impl TryInto<u64>) -> &'static str {
    if number.try_into().is_ok_and(|number| number == 1) {
        ""
    } else {
        "s"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_thing_has_no_s() {
        let words = [0_usize, 1, 2].map(|number| counted(number, "byte"));
        assert_eq!(words, ["0 bytes", "1 byte", "2 bytes"]);
        let words = [1_usize, 2].map(|number| counted(number, "process"));
        assert_eq!(words, ["1 process", "2 processes"]);
        assert_eq!(plural_ending(1_u64), "");
    }
}
