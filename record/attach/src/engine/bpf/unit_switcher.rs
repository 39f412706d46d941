//! Detaching units of probes for a time, and attaching them again, in a thread that may wait for the kernel.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use usdtrec_kernel::host::cpu_time;
use usdtrec_kernel::separate_process;

use super::BpfEngine;
use super::attach::unit_links::UnitLinks;
use super::processes::children::LinkAdder;

/// Detaches and attaches units.
#[derive(Debug)]
pub struct UnitSwitcher(Switched);

#[derive(Debug)]
enum Switched {
    /// In named processes, or in all.
    Links(Arc<UnitLinks>),
    /// In each process with links of its own.
    Apart(LinkAdder),
}

/// What a switch came to.
#[derive(Debug)]
pub struct SwitchResult {
    /// The CPU time that it took.
    pub cost: Duration,
    /// Why the probes are not attached. When they are detached, there is no error.
    pub refused: Option<io::Error>,
}

impl UnitSwitcher {
    /// Detaches a unit, and waits until the kernel has removed its probes.
    pub fn detach(&self, unit: usize) -> SwitchResult {
        measured(|| {
            let links = match &self.0 {
                Switched::Links(links) => links.take(unit),
                Switched::Apart(adder) => adder.take_unit(unit)?,
            };
            separate_process::close(links);
            Ok(())
        })
    }

    /// Attaches a unit again. If the kernel refuses, it is attached nowhere.
    pub fn attach(&self, unit: usize) -> SwitchResult {
        measured(|| match &self.0 {
            Switched::Links(links) => links.attach(unit).map_err(|not| {
                separate_process::close(not.created);
                not.error
            }),
            Switched::Apart(adder) => adder.attach_unit(unit),
        })
    }
}

fn measured(switch: impl FnOnce() -> io::Result<()>) -> SwitchResult {
    let before = cpu_time::of_thread_and_children();
    let refused = switch().err();
    SwitchResult {
        cost: cpu_time::of_thread_and_children().saturating_sub(before),
        refused,
    }
}

impl BpfEngine {
    /// What detaches units of the probes that a recording with a budget began with; `None` if there were none.
    ///
    /// # Errors
    /// The error of duplicating descriptors.
    pub fn unit_switcher(&self) -> io::Result<Option<UnitSwitcher>> {
        let units = self.parts.first.attachment.units.as_ref();
        let switched = match (&self.children, units) {
            (Some(children), _) => Some(Switched::Apart(children.adder()?)),
            (None, units) => units.map(|units| Switched::Links(Arc::clone(units))),
        };
        Ok(switched.map(UnitSwitcher))
    }
}
