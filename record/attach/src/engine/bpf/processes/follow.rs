//! Following processes: programs on the kernel's tracepoints update the map of recorded processes, so that a child is recorded from its
//! first hit on, and a reused process id is not.
//!
//! With programs nothing is inherited: a map has the recorded processes, and programs on their start and exit update it. Hits
//! of other processes are never recorded, and no perf event for each thread and CPU is needed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use usdtrec_format::Btf;
use usdtrec_kernel::bpf::features::RunningKernel;
use usdtrec_kernel::bpf::features::Tracepoint;
use usdtrec_kernel::bpf::features::members::{Members, load_member};
use usdtrec_kernel::bpf::insn::{Assembler, Code, Helper, If, Map, Reg, Width};
use usdtrec_kernel::bpf::sys::{self, MapKind};
use usdtrec_kernel::host::descendants::descendants;

use super::super::contract::{FOLLOWED, RecordedProcesses};
use super::super::control::{self, Control};
use super::super::kernel_objects::TracepointProgram;
use super::hold::Hold;
use crate::engine::options::TaskFilter;

/// Maximum number of processes or threads at a time.
const MAX_TASKS: u32 = 65_536;

const KEY: i16 = -4;
const VALUE: i16 = -8;
const IDS: i16 = -16;

/// The map of the recorded processes or threads, and the links that update it.
#[derive(Debug)]
pub(in crate::engine::bpf) struct Tracked {
    map: OwnedFd,
    /// What can hold new processes, if probes may be attached to the named ones only.
    pub hold: Option<Hold>,
    /// Why processes cannot be held although this was requested.
    pub not_held: Option<io::Error>,
    /// The program on [`Tracepoint::NewTask`].
    new_task: Option<OwnedFd>,
    /// Number of processes that had no room when the recording began.
    left_out: u64,
    _links: Vec<OwnedFd>,
}

impl Tracked {
    /// Creates the map for a filter. For processes it needs the kernel's BTF. With `can_hold`, processes that recorded ones start can be held,
    /// if the kernel supports it.
    pub(in crate::engine::bpf) fn new(
        filter: &TaskFilter,
        kernel: RunningKernel<'_>,
        control: &Control,
        can_hold: bool,
    ) -> io::Result<Self> {
        let room = match filter {
            TaskFilter::All => 1,
            _ => MAX_TASKS,
        };
        Self::with_room(room, filter, kernel, control, can_hold)
    }

    /// The same, for so many processes or threads at a time.
    fn with_room(
        room: u32,
        filter: &TaskFilter,
        kernel: RunningKernel<'_>,
        control: &Control,
        can_hold: bool,
    ) -> io::Result<Self> {
        let mut tracked = Self {
            map: sys::create_map_of::<u32, u32>(MapKind::Hash, room)?,
            hold: None,
            not_held: None,
            new_task: None,
            left_out: 0,
            _links: Vec::new(),
        };
        let ids = match filter {
            TaskFilter::All => return Ok(tracked),
            TaskFilter::Processes(ids) => {
                tracked.follow(kernel, control, Children::Added { can_hold })?;
                ids
            }
            TaskFilter::ProcessesAlone(ids) => {
                tracked.follow(kernel, control, Children::LeftOut)?;
                ids
            }
            TaskFilter::Threads(ids) => ids,
        };
        for &id in ids {
            sys::insert(tracked.as_fd(), id)?;
        }
        if matches!(filter, TaskFilter::Processes(_)) {
            tracked.add_late(ids);
        }
        Ok(tracked)
    }

    /// Removes processes that end from the map, and adds children if they are recorded.
    fn follow(
        &mut self,
        kernel: RunningKernel<'_>,
        control: &Control,
        children: Children,
    ) -> io::Result<()> {
        let btf = kernel.btf.ok_or_else(missing)?;
        let members = members(btf, kernel)?;
        if children == (Children::Added { can_hold: true }) {
            match Hold::new(control, self.map.as_fd(), members, btf) {
                Ok(mut hold) => {
                    self.new_task = hold.take_new_task();
                    self.hold = Some(hold);
                }
                Err(error) => self.not_held = Some(error),
            }
        }
        let adds = children != Children::LeftOut && self.hold.is_none();
        let starts = adds.then(|| (Tracepoint::NewTask, started(members)));
        let ends = (Tracepoint::Exit, ended(members));
        for (tracepoint, code) in starts.into_iter().chain([ends]) {
            let id = tracepoint.id(btf).ok_or_else(missing)?;
            let attached = TracepointProgram::attach(id, code, |map| match map {
                Map::Control => control.as_fd(),
                _ => self.map.as_fd(),
            })?;
            self._links.push(attached.link);
            if tracepoint == Tracepoint::NewTask {
                self.new_task = Some(attached.program);
            }
        }
        Ok(())
    }

    /// Adds the processes that these have started since they were named, and before the program on [`Tracepoint::NewTask`] knew them.
    fn add_late(&mut self, named: &[u32]) {
        for id in descendants(named) {
            // There is one entry for each process at most; of a process that has ended meanwhile it stays, as it does of a named one.
            match sys::add(self.as_fd(), id, FOLLOWED) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => self.left_out += 1,
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// Number of processes that the program on [`Tracepoint::NewTask`] was not run for, as the kernel counts them, and of those that had no room before.
    pub(in crate::engine::bpf) fn missed(&self) -> u64 {
        let program = self.new_task.as_ref();
        let missed = program.and_then(|program| sys::recursion_misses(program.as_fd()).ok());
        missed.unwrap_or(0) + self.left_out
    }
}

/// What becomes of the children of recorded processes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Children {
    LeftOut,
    /// They are recorded, and may be held before.
    Added {
        can_hold: bool,
    },
}

impl AsFd for Tracked {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

/// The error without BTF.
pub(in crate::engine::bpf) fn missing() -> io::Error {
    io::Error::other("the kernel does not describe its structures (BTF)")
}

/// What programs on tracepoints of processes need of the kernel.
pub(in crate::engine::bpf) fn members(btf: &Btf, kernel: RunningKernel<'_>) -> io::Result<Members> {
    let member = |structure, name| btf.member(structure, &[name]).ok_or_else(missing);
    Ok(Members {
        tgid: member("task_struct", "tgid")?,
        signal: member("task_struct", "signal")?,
        live: member("signal_struct", "live")?,
        flags: member("signal_struct", "flags")?,
        priority: member("task_struct", "prio")?,
        preemption: kernel.preemption,
        namespace: kernel.namespace,
    })
}

/// The keys of the map.
pub(in crate::engine::bpf) const fn recorded_processes(filter: &TaskFilter) -> RecordedProcesses {
    match filter {
        TaskFilter::All => RecordedProcesses::All,
        TaskFilter::Processes(_) | TaskFilter::ProcessesAlone(_) => RecordedProcesses::Processes,
        TaskFilter::Threads(_) => RecordedProcesses::Threads,
    }
}

/// [`Tracepoint::NewTask`]: adds the child of a process in the map, or counts it if there is no room. The process id of another child is removed: that its
/// previous process ended may have been missed.
///
/// Members are loaded by pointers of known types: lockdown forbids `bpf_probe_read_kernel`.
fn started(members: Members) -> Option<Code> {
    let mut asm = Assembler::default();
    let (out, other) = (asm.label(), asm.label());
    // ctx = r1; KEY = bpf_get_current_pid_tgid() >> 32; VALUE = child->tgid;
    asm.copy(Reg::R6, Reg::R1);
    members.use_ids(&mut asm, IDS, out);
    asm.store_process(KEY);
    members.child_id(&mut asm, IDS, out);
    asm.store(Width::Word, Reg::R10, VALUE, Reg::R3);
    // if (!bpf_map_lookup_elem(&Tracked, &KEY)) goto other;
    asm.call_map(Helper::MapLookup, Map::Tracked, KEY);
    asm.jump_if(If::Equal, Reg::R0, 0, other);
    // if (bpf_map_update_elem(&Tracked, &VALUE, &VALUE, BPF_ANY)) Control[MISSED]++; goto out;
    asm.update_map(Map::Tracked, VALUE, VALUE);
    asm.jump_if(If::Equal, Reg::R0, 0, out);
    asm.count(control::MISSED);
    asm.jump(out);
    // other: bpf_map_delete_elem(&Tracked, &VALUE);
    asm.place(other);
    asm.call_map(Helper::MapDelete, Map::Tracked, VALUE);
    asm.place(out);
    leave(asm)
}

/// `sched_process_exit(task)`: removes a process with its last thread.
pub(in crate::engine::bpf) fn ended(members: Members) -> Option<Code> {
    let mut asm = Assembler::default();
    let out = asm.label();
    // if (ctx->task->signal->live) goto out;
    asm.load(Width::Double, Reg::R3, Reg::R1, 0);
    load_member(&mut asm, Width::Double, members.signal);
    load_member(&mut asm, Width::Word, members.live);
    asm.jump_if(If::NotEqual, Reg::R3, 0, out);
    // KEY = bpf_get_current_pid_tgid() >> 32; bpf_map_delete_elem(&Tracked, &KEY);
    members.use_ids(&mut asm, IDS, out);
    asm.store_process(KEY);
    asm.call_map(Helper::MapDelete, Map::Tracked, KEY);
    asm.place(out);
    leave(asm)
}

pub(in crate::engine::bpf) fn leave(mut asm: Assembler) -> Option<Code> {
    // return 0;
    asm.exit_with(0);
    asm.finish()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::engine::outcome::EngineCounts;
    use usdtrec_format::trace::ShortfallKind;
    use usdtrec_kernel::bpf::features::members::PidNamespace;
    use usdtrec_kernel::bpf::preemption::Preemption;
    use usdtrec_kernel::bpf::sys::btf_from_sysfs;

    /// The processes of a filter; `None` where no programs can be loaded, which is a failure with `CI=true`.
    fn tracked(filter: &TaskFilter) -> Option<Tracked> {
        let control = Control::new(1, 1, None).unwrap();
        with_room(MAX_TASKS, filter, &control, false)
    }

    /// The same, of so many at a time.
    fn with_room(
        room: u32,
        filter: &TaskFilter,
        control: &Control,
        can_hold: bool,
    ) -> Option<Tracked> {
        if !usdtrec_testing::can_record() {
            return None;
        }
        let btf = btf_from_sysfs();
        let kernel = RunningKernel {
            btf: btf.as_ref(),
            preemption: Preemption::from_btf(btf.as_ref()).unwrap(),
            namespace: PidNamespace::own(btf.as_ref()).unwrap(),
        };
        Some(Tracked::with_room(room, filter, kernel, control, can_hold).unwrap())
    }

    /// A process that ends with its standard input.
    fn child() -> Child {
        let mut cat = Command::new("cat");
        cat.stdin(Stdio::piped()).spawn().unwrap()
    }

    /// Ends it. Returns its id.
    fn end(mut child: Child) -> u32 {
        drop(child.stdin.take());
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn children_are_tracked_until_they_end() {
        let Some(tracked) = tracked(&TaskFilter::Processes(vec![std::process::id()])) else {
            return;
        };
        let child = child();
        let is_tracked = |id| sys::read::<_, u32>(tracked.as_fd(), id).is_ok();
        assert!(is_tracked(child.id()));
        std::thread::spawn(|| ()).join().unwrap();
        assert!(is_tracked(std::process::id()), "a thread has started");
        let id = end(child);
        assert!(!is_tracked(id));
        assert_eq!(tracked.missed(), 0);
    }

    #[test]
    fn children_without_room_are_counted() {
        let filter = TaskFilter::Processes(vec![std::process::id()]);
        for can_hold in [false, true] {
            let control = Control::new(1, 1, None).unwrap();
            let early = child();
            let tracked = with_room(1, &filter, &control, can_hold);
            let late = child();
            let mut counts = EngineCounts::default();
            control.add_counts(&mut counts);
            if let Some(tracked) = tracked {
                assert!(tracked.missed() > 0, "it was there before");
                assert!(counts.of(ShortfallKind::UnattachedChildren) > 0);
            }
            end(late);
            end(early);
        }
    }

    /// As if the ends of processes with the next ids had been missed.
    #[test]
    fn a_process_of_others_is_not_tracked_by_its_id() {
        let named = child();
        let filter = TaskFilter::Processes(vec![named.id()]);
        let found = tracked(&filter).is_none_or(|tracked| removes_next_id(&tracked));
        end(named);
        assert!(found);
    }

    /// Whether a process of others had one of the next ids, which is removed then.
    fn removes_next_id(tracked: &Tracked) -> bool {
        const IDS: u32 = 1000;
        let is_tracked = |id| sys::read::<_, u32>(tracked.as_fd(), id).is_ok();
        // Ids begin again after the greatest.
        (0..3).any(|_| {
            let last = end(child());
            for id in last..last + IDS {
                sys::insert(tracked.as_fd(), id).unwrap();
            }
            let other = child();
            let is_next = (last..last + IDS).contains(&other.id());
            assert!(!is_next || !is_tracked(other.id()));
            assert!(is_tracked(last + IDS - 1), "the id of no process");
            end(other);
            is_next
        })
    }
}
