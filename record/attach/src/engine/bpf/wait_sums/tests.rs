//! The programs, run in an interpreter, over made-up switches; and on this kernel, if programs can be loaded here.

use std::cell::Cell;
use std::time::{Duration, Instant};

use usdtrec_format::ThreadWaits;
use usdtrec_kernel::bpf::features::members::PidNamespace;
use usdtrec_kernel::bpf::insn::Helper;
use usdtrec_kernel::bpf::preemption::Preemption;
use usdtrec_kernel::bpf::sys::btf_from_sysfs;

use super::element::{ELEMENT_WORDS, LEFT, WOKEN};
use super::*;

/// The only thread with an element.
const THREAD: u32 = 77;
/// A task: its id, its state, its bits.
const TASK_WORDS: usize = 3;
const MEMBERS: (u32, u32, u32) = (0, 8, 16);
/// The bit that is set in I/O wait.
const IOWAIT: u64 = 2;
/// Maps, as the programs have them.
const SUMS: u64 = 1;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
    static ELEMENT: Cell<u64> = const { Cell::new(0) };
}

/// A thread, as the programs see it.
struct Machine {
    element: Vec<u64>,
    gate: Vec<u64>,
    /// Its task: id, state, bits.
    task: [u64; TASK_WORDS],
    other: [u64; TASK_WORDS],
    members: TaskMembers,
    is_passed: bool,
}

/// How a thread leaves its CPU.
#[derive(Clone, Copy, Default)]
struct Leaves {
    is_preempted: bool,
    state: u64,
    in_iowait: bool,
}

impl Machine {
    fn new(is_passed: bool) -> Self {
        let (thread, state, byte) = MEMBERS;
        let mut gate = vec![0; GATE_BYTES as usize / 8];
        // Two counts are in a word.
        gate[THREAD as usize / 2] = 1 << (32 * (THREAD % 2));
        Self {
            element: vec![0; ELEMENT_WORDS],
            gate,
            task: [THREAD.into(), 0, 0],
            other: [5, 0, 0],
            members: TaskMembers {
                thread,
                state: (!is_passed).then_some(state),
                iowait: (byte, IOWAIT as i32),
                preemption: None,
            },
            is_passed,
        }
    }

    fn run(&mut self, now: u64, code: &Code, context: &[u64]) {
        NOW.set(now);
        ELEMENT.set(self.element.as_ptr() as u64);
        let gate = self.gate.as_ptr() as u64;
        let mut words = code.words.clone();
        for &(at, map) in &code.maps {
            let value = match map {
                Map::WaitSums => SUMS,
                _ => gate + (words[at + 1] >> 32),
            };
            words[at] = words[at] & 0xffff_ffff | value << 32;
            words[at + 1] = value & !0xffff_ffff;
        }
        let program: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut machine = rbpf::EbpfVmRaw::new(None).unwrap();
        machine.set_verifier(|_| Ok(())).unwrap();
        machine.set_program(&program).unwrap();
        for memory in [&self.element[..], &self.gate, &self.task, &self.other] {
            let at = memory.as_ptr() as u64;
            machine.register_allowed_memory(at..at + size_of_val(memory) as u64);
        }
        let time: fn(u64, u64, u64, u64, u64) -> u64 = |_, _, _, _, _| NOW.get();
        machine
            .register_helper(Helper::KtimeNs as u32, time)
            .unwrap();
        machine
            .register_helper(Helper::MapLookup as u32, look_up)
            .unwrap();
        let mut context: Vec<u8> = context.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(machine.execute_program(&mut context).unwrap(), 0);
    }

    fn leave(&mut self, now: u64, how: Leaves) {
        self.task[2] = if how.in_iowait { IOWAIT | 1 } else { 1 };
        // If the state is an argument, another CPU may have changed the task's since.
        self.task[1] = if self.is_passed { 0 } else { how.state };
        let passed = if self.is_passed { how.state } else { 9 };
        let context = [how.is_preempted.into(), self.at(), self.other_at(), passed];
        self.run(now, &switched(self.members).unwrap(), &context);
    }

    fn arrive(&mut self, now: u64) {
        let context = [0, self.other_at(), self.at(), 1];
        self.run(now, &switched(self.members).unwrap(), &context);
    }

    fn wake(&mut self, now: u64) {
        let context = [self.at()];
        self.run(now, &waking(self.members).unwrap(), &context);
    }

    fn at(&self) -> u64 {
        self.task.as_ptr() as u64
    }

    fn other_at(&self) -> u64 {
        self.other.as_ptr() as u64
    }

    /// Runnable, in I/O wait, blocked.
    fn sums(&self) -> [u64; 3] {
        [self.element[0], self.element[1], self.element[2]]
    }
}

fn look_up(map: u64, key: u64, _: u64, _: u64, _: u64) -> u64 {
    assert_eq!(map, SUMS);
    // SAFETY: programs pass the address of 4 bytes on their stack, which lives while they run.
    match unsafe { (key as *const u32).read_unaligned() } {
        THREAD => ELEMENT.get(),
        _ => 0,
    }
}

const SLEEPS: Leaves = Leaves {
    is_preempted: false,
    state: 1,
    in_iowait: false,
};

#[test]
fn a_wait_is_of_the_kind_that_its_thread_left_for() {
    let preempted = Leaves {
        is_preempted: true,
        ..SLEEPS
    };
    let in_io = Leaves {
        state: 2,
        in_iowait: true,
        ..SLEEPS
    };
    // Frozen, and waiting for a real-time lock.
    let others = [0x2001, 0x102, 0x8000, 0x1000].map(|state| Leaves { state, ..SLEEPS });
    for is_passed in [true, false] {
        let waits = |how: Leaves, woken: Option<u64>| {
            let mut machine = Machine::new(is_passed);
            machine.leave(1000, how);
            if let Some(woken) = woken {
                machine.wake(woken);
            }
            machine.arrive(1700);
            machine.sums()
        };
        assert_eq!(waits(Leaves::default(), None), [700, 0, 0]);
        assert_eq!(waits(preempted, None), [700, 0, 0]);
        assert_eq!(waits(preempted, Some(1200)), [700, 0, 0]);
        assert_eq!(waits(SLEEPS, Some(1200)), [500, 0, 200]);
        assert_eq!(
            waits(SLEEPS, None),
            [0, 0, 700],
            "nobody was seen to wake it"
        );
        assert_eq!(waits(in_io, Some(1600)), [100, 600, 0]);
        for how in others {
            assert_eq!(waits(how, Some(1200)), [500, 0, 200]);
        }
    }
}

#[test]
fn clocks_and_races_never_make_a_sum_fall() {
    let mut machine = Machine::new(true);
    // Another CPU wakes it while it is on its way.
    machine.wake(990);
    machine.leave(1000, SLEEPS);
    machine.arrive(1100);
    assert_eq!(machine.sums(), [100, 0, 0]);
    assert_eq!(machine.element[(LEFT / 8) as usize], 0);
    assert_eq!(machine.element[(WOKEN / 8) as usize], 0);
    // A waking of before does not count for the next wait.
    machine.leave(2000, SLEEPS);
    machine.arrive(2100);
    assert_eq!(machine.sums(), [100, 0, 100]);
    // The clock of the CPU that it comes to is behind.
    machine.leave(3000, SLEEPS);
    machine.wake(3010);
    machine.arrive(3005);
    assert_eq!(machine.sums(), [100, 0, 105]);
    machine.leave(4000, SLEEPS);
    machine.arrive(3990);
    assert_eq!(machine.sums(), [100, 0, 105]);
}

#[test]
fn switches_that_are_not_reported_are_counted() {
    let missed = |machine: &Machine| machine.sums().map(|sum| sum / ThreadWaits::MISSED);
    let mut machine = Machine::new(true);
    machine.arrive(500);
    assert_eq!(missed(&machine), [0, 1, 0], "it was not seen to leave");
    machine.leave(1000, SLEEPS);
    machine.leave(2000, SLEEPS);
    assert_eq!(missed(&machine), [0, 2, 0], "it was not seen to arrive");
    machine.arrive(2100);
    assert_eq!(machine.sums(), [0, 2 * ThreadWaits::MISSED, 100]);
    for _ in 2..300 {
        machine.arrive(3000);
    }
    assert_eq!(missed(&machine), [1, 300 - 256, 0]);
}

#[test]
fn strangers_are_left_alone() {
    let mut machine = Machine::new(true);
    machine.gate.fill(0);
    machine.leave(1000, SLEEPS);
    machine.wake(1100);
    machine.arrive(1200);
    assert_eq!(machine.element, [0; ELEMENT_WORDS]);
    // A thread with the same low bits has an element.
    let mut machine = Machine::new(true);
    machine.task[0] += 16_384;
    machine.leave(1000, SLEEPS);
    assert_eq!(machine.element, [0; ELEMENT_WORDS]);
}

/// Sums of so many threads; `None` where no programs can be loaded, which is a failure with `CI=true`.
fn on_this_kernel(threads: u32) -> Option<WaitSums> {
    if !usdtrec_testing::can_record() {
        return None;
    }
    let btf = btf_from_sysfs();
    let kernel = RunningKernel {
        btf: btf.as_ref(),
        preemption: Preemption::from_btf(btf.as_ref()).unwrap(),
        namespace: PidNamespace::own(btf.as_ref()).unwrap(),
    };
    Some(WaitSums::with_room(kernel, threads).unwrap())
}

impl WaitSums {
    /// The element of a thread, by its id.
    fn of(&self, thread: u32) -> Option<[u64; ELEMENT_WORDS]> {
        sys::read(self.sums.as_fd(), thread).ok()
    }
}

#[test]
fn a_sleep_is_blocked_and_a_thread_that_ends_is_forgotten() {
    let Some(sums) = on_this_kernel(MAX_THREADS) else {
        return;
    };
    let before = sums.run(adds_current()).unwrap() as u32;
    let (begun, slept) = (Instant::now(), Duration::from_millis(20));
    std::thread::sleep(slept);
    let whole = begun.elapsed().as_nanos() as u64;
    let [runnable, iowait, blocked, left, ..] = sums.of(before).unwrap();
    let slept = slept.as_nanos() as u64;
    assert!((slept - 1_000_000..whole).contains(&blocked), "{blocked}");
    assert!(runnable > 0 && runnable + blocked <= whole);
    assert_eq!((iowait, left), (0, 0));
    let ended = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let thread = sums.run(adds_current()).unwrap() as u32;
            assert!(sums.of(thread).is_some());
            thread
        });
        other.join().unwrap()
    });
    let forgotten = || sums.of(ended).is_none();
    let until = Instant::now() + Duration::from_secs(5);
    while !forgotten() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(forgotten());
    sums.run(forgets_current()).unwrap();
    assert_eq!(sums.of(before), None);
    assert_eq!(sums.missed(), 0);
}

#[test]
fn a_thread_without_room_gets_no_sums() {
    let Some(sums) = on_this_kernel(1) else {
        return;
    };
    let add = || sums.run(adds_current()).unwrap();
    let first = add();
    assert!(first > 0);
    assert_eq!(add(), first, "it has them");
    std::thread::scope(|scope| {
        let other = scope.spawn(add);
        assert_eq!(other.join().unwrap(), -1);
        sums.run(forgets_current()).unwrap();
        let other = scope.spawn(add);
        assert!(other.join().unwrap() > 0, "there is room again");
    });
}
