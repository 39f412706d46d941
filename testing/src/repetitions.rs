//! How often tests repeat what they do with random input.

/// Whether tests repeat what they otherwise do seldom or not at all, because it takes long: `USDTREC_TEST_DEEP=1`, as `.ci/deep` sets it.
#[must_use]
pub fn is_deep() -> bool {
    std::env::var_os("USDTREC_TEST_DEEP").is_some_and(|value| !value.is_empty())
}

/// The number that an environment variable says, or `usual` without it.
///
/// # Panics
/// If the variable is no number.
#[must_use]
#[track_caller]
pub fn number(variable: &str, usual: u64) -> u64 {
    let Ok(text) = std::env::var(variable) else {
        return usual;
    };
    let number = text.parse();
    assert!(
        number.is_ok(),
        "{variable}: expected a number, found {text:?}"
    );
    number.unwrap_or(usual)
}

/// The number that an environment variable says; without it `usual`, of which deep tests do four times as many.
///
/// # Panics
/// If the variable is no number.
#[must_use]
#[track_caller]
pub fn repetitions(variable: &str, usual: u64) -> u64 {
    number(variable, if is_deep() { 4 * usual } else { usual })
}
