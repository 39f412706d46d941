//! The guard process of a recorder, which removes the tracefs events if the recorder is killed. One that was killed itself is replaced.

use std::fmt;
use std::io;
use std::process::Child;
use std::time::{Duration, Instant};

/// Interval at which a guard is looked at. So often another one is started at most.
const PAUSE: Duration = Duration::from_secs(1);

/// A guard that was killed while recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardDeath {
    /// Why no other one runs; `None` if one does.
    pub failure: Option<String>,
}

/// A guard process, which waits for the end of its standard input.
#[derive(Debug)]
pub(super) struct GuardProcess {
    child: Child,
    looked: Instant,
}

impl GuardProcess {
    pub(super) fn new(child: Child) -> Self {
        Self {
            child,
            looked: Instant::now(),
        }
    }

    /// Starts another one if it has died, at most once a second. Returns that it has.
    pub(super) fn replace(
        &mut self,
        start: impl FnOnce() -> io::Result<Child>,
    ) -> Option<GuardDeath> {
        if self.looked.elapsed() < PAUSE {
            return None;
        }
        self.looked = Instant::now();
        self.replace_now(start)
    }

    /// As [`replace`](Self::replace), without a pause.
    pub(super) fn replace_now(
        &mut self,
        start: impl FnOnce() -> io::Result<Child>,
    ) -> Option<GuardDeath> {
        let Ok(Some(_)) = self.child.try_wait() else {
            return None;
        };
        let failure = match start() {
            Ok(child) => {
                self.child = child;
                None
            }
            Err(error) => Some(error.to_string()),
        };
        Some(GuardDeath { failure })
    }

    /// Lets it clear up.
    pub(super) fn release(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits until it has.
    pub(super) fn wait(&mut self) {
        let _ = self.child.wait();
    }
}

impl fmt::Display for GuardDeath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the guard process that removes tracefs events was killed; ")?;
        match &self.failure {
            None => f.write_str("another one was started"),
            Some(failure) => write!(
                f,
                "no other one can be started ({failure}): if this recorder is killed, too, the events stay"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_guard_that_was_killed_is_replaced() {
        let start = || Command::new("cat").stdin(Stdio::piped()).spawn();
        let mut guard = GuardProcess::new(start().unwrap());
        assert_eq!(guard.replace_now(start), None);
        let first = guard.child.id();
        guard.child.kill().unwrap();
        guard.child.wait().unwrap();
        assert_eq!(guard.replace(start), None, "not at once");
        let mut death = GuardDeath {
            failure: Some("no more processes".to_owned()),
        };
        let fails = || Err(io::Error::other("no more processes"));
        assert_eq!(guard.replace_now(fails), Some(death.clone()));
        death.failure = None;
        assert_eq!(guard.replace_now(start), Some(death));
        assert_ne!(guard.child.id(), first);
        guard.release();
        guard.wait();
    }
}
