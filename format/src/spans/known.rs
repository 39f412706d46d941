//! Spans of well-known programs that cannot be found by the words of their probes' names, or would be found wrongly.

/// One a line.
const KNOWN: &str = include_str!("known.txt");

/// A span of one of these programs.
#[derive(Debug)]
pub(super) struct KnownSpan {
    /// `PROVIDER:SPAN`.
    pub(super) name: &'static str,
    pub(super) provider: &'static str,
    pub(super) starts: Vec<&'static str>,
    pub(super) dones: Vec<&'static str>,
    /// The argument, of the same process, that begin and end have in common; `None` for the thread.
    pub(super) key: Option<&'static str>,
}

/// All of them.
pub(super) fn known_spans() -> impl Iterator<Item = KnownSpan> {
    let lines = KNOWN.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(known_span)
}

fn known_span(line: &'static str) -> Option<KnownSpan> {
    let (name, rest) = line.split_once(" = ")?;
    let (events, key) = match rest.split_once(" by ") {
        Some((events, key)) => (events, Some(key)),
        None => (rest, None),
    };
    let (starts, dones) = events.split_once(" > ")?;
    Some(KnownSpan {
        name,
        provider: name.split_once(':')?.0,
        starts: starts.split(' ').collect(),
        dones: dones.split(' ').collect(),
        key,
    })
}

#[cfg(feature = "schemas")]
#[cfg(test)]
mod tests {
    use crate::schema::bundled;

    use super::*;

    #[test]
    fn each_line_is_a_span() {
        let lines = KNOWN.lines();
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(known_spans().count(), lines.count());
        let first = known_spans().next().unwrap();
        assert_eq!(
            (first.name, first.provider),
            ("postgresql:lwlock", "postgresql")
        );
        assert_eq!((first.starts.len(), first.dones.len()), (3, 1));
    }

    /// An argument that is said to be the key is one of all its probes.
    #[test]
    fn keys_are_arguments() {
        for known in known_spans() {
            for name in known.starts.iter().chain(&known.dones) {
                let probes = bundled::of_provider(known.provider).iter();
                if known.key.is_none() && probes.len() == 0 {
                    continue;
                }
                let mut probes = probes.filter(|probe| probe.name == *name).peekable();
                assert!(probes.peek().is_some(), "{name}");
                let key = known.key;
                let has =
                    probes.all(|probe| key.is_none_or(|key| probe.argument_index(key).is_some()));
                assert!(has, "{name} has no {key:?}");
            }
        }
    }
}
