//! Sentences for a fault in a process: the fault, its effect, and the remedy.

use std::fmt::Write as _;

use usdtrec_kernel::host::process::Page;

use super::look::Fault;

/// What follows from a semaphore that is 0.
const NO_HITS: &str = "a program that tests it does not execute the probe: there are no hits";

/// The words for a fault.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FaultWords {
    pub(super) found: String,
    pub(super) effect: &'static str,
    pub(super) remedy: &'static str,
}

impl FaultWords {
    /// Those for a semaphore that is 0; `hidden` is the file's own one, if the code tests another.
    fn of_semaphore(address: u64, hidden: Option<u64>, copies: usize) -> Self {
        match (hidden, copies) {
            (Some(hidden), _) => Self {
                found: format!(
                    "the semaphore that the code tests, at {address:#x}, is 0: a symbol of another file hides the file's own one at {hidden:#x}, \
                     which the kernel raises"
                ),
                effect: NO_HITS,
                remedy: "link the file so that its semaphores are not exported (-Bsymbolic, or hidden symbols)",
            },
            (None, 2..) => Self {
                found: format!(
                    "the semaphore at {address:#x} is 0: the process maps the file {copies} times (dlmopen, LD_AUDIT), and the kernel raises the \
                     semaphore of one copy only"
                ),
                effect: "hits of this copy are not recorded",
                remedy: "load the library once",
            },
            (None, _) => Self {
                found: format!("the semaphore at {address:#x} is 0"),
                effect: NO_HITS,
                remedy: "record this process once it runs",
            },
        }
    }
}

/// The words for a fault.
pub(super) fn words(fault: &Fault) -> FaultWords {
    match fault {
        Fault::NoBreakpoint {
            address,
            is_writable: true,
            ..
        } => FaultWords {
            found: format!(
                "no breakpoint at {address:#x}, in code that is mapped writable, where the kernel inserts none"
            ),
            effect: "hits there are not recorded",
            remedy: "link the program so that its code is not writable",
        },
        // `valid_vma`, `kernel/events/uprobes.c`.
        Fault::NoBreakpoint {
            address,
            is_shared: true,
            ..
        } => FaultWords {
            found: format!(
                "no breakpoint at {address:#x}, in a shared mapping of the file, where the kernel inserts none"
            ),
            effect: "hits there are not recorded",
            remedy: "have the program map its code private, as loaders do (MAP_PRIVATE)",
        },
        Fault::NoBreakpoint {
            address,
            found,
            is_original,
            page,
            is_inherited,
            ..
        } => FaultWords {
            found: match (is_original, page) {
                (true, Page::File) => {
                    format!(
                        "no breakpoint at {address:#x}: the instruction is the file's, in the file's own page"
                    )
                }
                (true, _) => {
                    format!(
                        "no breakpoint at {address:#x}: the instruction is the file's, in a page of the process's own"
                    )
                }
                (false, _) => format!(
                    "no breakpoint at {address:#x}: expected one instead of the instruction, found {}",
                    hex(found)
                ),
            },
            effect: "hits there are not recorded, and not counted as lost",
            remedy: match *is_original && *is_inherited {
                true => {
                    "record all processes, or with the bpf engine: where children inherit perf events, the kernel leaves out the breakpoints of some"
                }
                false => {
                    "record again, and if that does not help, restart the process: the kernel refuses the instruction, the process maps an older \
                     version of the file, or something wrote there"
                }
            },
        },
        Fault::Semaphore {
            address,
            hidden,
            copies,
        } => FaultWords::of_semaphore(*address, *hidden, *copies),
        Fault::OtherFile { inode, expected } => FaultWords {
            found: format!(
                "another file than the one with the probes is mapped (inode {inode}, expected {expected}): it was replaced or copied since the \
                 process mapped it"
            ),
            effect: "hits there are not recorded",
            remedy: "restart the process",
        },
        Fault::MovedCode { address } => FaultWords {
            found: format!("the code at {address:#x} is not that of the file, but in other memory"),
            effect: "hits there are not recorded",
            remedy: "run the program so that it does not move its code (to huge pages, for instance)",
        },
    }
}

/// Bytes as hexadecimal numbers.
pub(super) fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "nothing".to_owned();
    }
    bytes.iter().fold(String::new(), |mut text, byte| {
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inherited_perf_events_are_named_as_the_cause() {
        let words_of = |is_inherited, is_original| {
            words(&Fault::NoBreakpoint {
                address: 1,
                found: vec![0x90],
                is_original,
                page: Page::File,
                is_writable: false,
                is_shared: false,
                is_inherited,
            })
        };
        for (is_inherited, is_original) in [(false, true), (true, false), (true, true)] {
            let is_named = words_of(is_inherited, is_original)
                .remedy
                .contains("inherit");
            assert_eq!(is_named, is_inherited && is_original);
        }
    }
}
