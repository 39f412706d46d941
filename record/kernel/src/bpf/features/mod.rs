//! What the running kernel has.

pub mod members;
pub mod trials;

use usdtrec_format::Btf;

use self::members::PidNamespace;
use super::preemption::Preemption;

/// What programs need to know of the running kernel.
#[derive(Clone, Copy, Debug)]
pub struct RunningKernel<'a> {
    /// `None` if it does not describe its structures.
    pub btf: Option<&'a Btf>,
    /// How preemption is disabled, if it must be.
    pub preemption: Option<Preemption>,
    /// The pid namespace of the recorder, if it is not the initial one.
    pub namespace: Option<PidNamespace>,
}

/// A tracepoint: each line of `TRACEPOINTS` is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracepoint {
    /// The current task has started another one, which has not run yet. Interrupts are disabled there: [`Fork`](Self::Fork) can be preempted from
    /// Linux 7.0 on, and then programs on it are not run for other threads of the CPU.
    NewTask,
    /// The current task is starting another one.
    Fork,
    /// A process executes a program.
    Exec,
    /// A thread ends.
    Exit,
    /// `mmap` ends.
    MmapLockReleased,
    /// A control group is made.
    CgroupMade,
    /// A control group is removed.
    CgroupRemoved,
    /// A CPU goes from one thread to another.
    Switch,
    /// A thread is woken. The current task is the one that wakes it, or one that an interrupt has stopped.
    Waking,
}

/// What the kernel calls a tracepoint.
#[derive(Clone, Copy, Debug)]
struct Description {
    tracepoint: Tracepoint,
    name: &'static str,
    /// [`Tracepoint::arguments`], if a kernel has had others: programs that read them are not attached where it differs.
    arguments: Option<usize>,
}

/// All of them. A program gets the arguments as 64-bit words (`include/trace/events`): `task`; `parent, child`; `task, old_pid, binprm`; `task`;
/// `mm, is_write`; `cgroup, path`, twice; `preempt, prev, next`, and from Linux 5.18 on `prev_state`; `task`. Linux 5.10 has all but `mmap_lock_released`
/// (5.11).
const TRACEPOINTS: [Description; 9] = [
    plain(Tracepoint::NewTask, "sched_wakeup_new"),
    plain(Tracepoint::Fork, "sched_process_fork"),
    plain(Tracepoint::Exec, "sched_process_exec"),
    plain(Tracepoint::Exit, "sched_process_exit"),
    // Older kernels pass the path of the control group, too.
    Description {
        tracepoint: Tracepoint::MmapLockReleased,
        name: "mmap_lock_released",
        arguments: Some(3),
    },
    plain(Tracepoint::CgroupMade, "cgroup_mkdir"),
    plain(Tracepoint::CgroupRemoved, "cgroup_rmdir"),
    plain(Tracepoint::Switch, "sched_switch"),
    plain(Tracepoint::Waking, "sched_waking"),
];

const fn plain(tracepoint: Tracepoint, name: &'static str) -> Description {
    Description {
        tracepoint,
        name,
        arguments: None,
    }
}

impl Tracepoint {
    /// The id of its type in the kernel's types; `None` if the kernel does not have it, or has it with other arguments.
    #[must_use]
    pub fn id(self, btf: &Btf) -> Option<u32> {
        let Description {
            name, arguments, ..
        } = self.description()?;
        if arguments.is_some() && self.arguments(btf) != *arguments {
            return None;
        }
        btf.tracepoint(name)
    }

    /// Number of arguments of the function that calls its programs: a word of its own, and what they get. `None` if the kernel does not describe it.
    #[must_use]
    pub fn arguments(self, btf: &Btf) -> Option<usize> {
        let calling = btf.function(&format!("__traceiter_{}", self.description()?.name))?;
        Some(calling.arguments)
    }

    fn description(self) -> Option<&'static Description> {
        let mut all = TRACEPOINTS.iter();
        all.find(|description| description.tracepoint == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_kernel_has_them() {
        let Some(btf) = crate::bpf::sys::btf_from_sysfs() else {
            return;
        };
        for description in TRACEPOINTS {
            assert!(description.tracepoint.id(&btf).is_some(), "{description:?}");
        }
    }
}
