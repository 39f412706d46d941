//! A recorder's closing line: `[ usdtrec record: 0.6 s, 65236 events, 12 lost (0.0 %), wrote 549KiB out ]`.

/// What the line counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closing {
    pub(crate) events: u64,
    pub(crate) lost: u64,
}

impl Closing {
    /// Of the recorder's standard error. Other lines may come after it: what the kernel still has to remove.
    #[track_caller]
    pub(crate) fn parse(errors: &str) -> Self {
        let mut lines = errors.lines();
        let line = lines.rfind(|line| line.starts_with("[ usdtrec ") && line.contains(" lost"));
        let line = line.unwrap_or_else(|| panic!("no closing line in:\n{errors}"));
        let number = |word: &str| {
            let mut counts = line.split(", ").filter_map(|part| part.split_once(' '));
            let count = counts.find(|(_, unit)| unit.split(' ').next() == Some(word));
            let number = count.and_then(|(number, _)| number.parse().ok());
            number.unwrap_or_else(|| panic!("no number before {word:?} in:\n{line}"))
        };
        Self {
            events: number("events"),
            lost: number("lost"),
        }
    }
}
