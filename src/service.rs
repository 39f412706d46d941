//! Notifies a service manager that the recording has begun, and that it ends (sd_notify(3)).

use sd_notify::{NotifyState, notify};

/// The probes are enabled. The status is a line.
pub(crate) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The recording ends; the probes are being detached.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    // Without a service manager that listens nobody has to know.
    let _ = notify(states);
}
