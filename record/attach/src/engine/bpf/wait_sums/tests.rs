//! The programs, run in an interpreter, over made-up switches; and on this kernel, if programs can be loaded here.

use std::cell::Cell;
use std::time::{Duration, Instant};

use syscalls::Sysno;
use usdtrec_decode::{Decoder, TracepointDecoder};
use usdtrec_format::perf::{Attr, Records, Sample, SampleLayout, SampleType};
use usdtrec_format::trace::ShortfallKind;
use usdtrec_format::{Arch, ThreadWaits, Value};
use usdtrec_kernel::bpf::features::members::PidNamespace;
use usdtrec_kernel::bpf::insn::Helper;
use usdtrec_kernel::bpf::preemption::Preemption;
use usdtrec_kernel::bpf::sys::btf_from_sysfs;

use super::element::{ELEMENT_WORDS, IDS, LEFT, WOKEN};
use super::events::{CallRegisters, format, put_sample};
use super::*;
use crate::engine::bpf::contract::own_instruction_pointer;
use crate::engine::bpf::control::{self, Control};
use crate::engine::outcome::EngineCounts;

/// The only thread with an element.
const THREAD: u32 = 77;
/// A task: its id, its state, its bits.
const TASK_WORDS: usize = 3;
const MEMBERS: (u32, u32, u32) = (0, 8, 16);
/// The bit that is set in I/O wait.
const IOWAIT: u64 = 2;
/// Maps, as the programs have them.
const SUMS: u64 = 1;
const RINGS: u64 = 2;
/// Ids of its process and the thread in the recorder's namespace.
const OWN_IDS: u64 = 7 << 32 | 9;
const CPU: u64 = 3;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
    static ELEMENT: Cell<u64> = const { Cell::new(0) };
    static REGISTERS: Cell<u64> = const { Cell::new(0) };
    static RECORD: Cell<u64> = const { Cell::new(0) };
    static WRITTEN: Cell<usize> = const { Cell::new(0) };
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
    written: Option<WrittenWaits>,
    control: Vec<u64>,
    registers: Vec<u64>,
    record: Vec<u64>,
}

/// How a thread leaves its CPU.
#[derive(Clone, Copy, Default)]
struct Leaves {
    is_preempted: bool,
    state: u64,
    in_iowait: bool,
}

/// What a program calls instead of the kernel.
type HelperCode = fn(u64, u64, u64, u64, u64) -> u64;

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
            written: None,
            control: vec![0; control::HEAD],
            registers: vec![0; 64],
            record: vec![0; 7],
        }
    }

    /// The same, with events of waits, and a thread that has had a hit.
    fn with_events() -> Self {
        let mut machine = Self::new(true);
        machine.written = Some(WrittenWaits {
            least: 300,
            registers: CallRegisters::of(Arch::host()),
        });
        machine.control[control::ENABLED as usize / 8] = 1;
        machine.element[IDS as usize / 8] = OWN_IDS;
        machine
    }

    /// The record of a wait from 1000 on; `None` if there is none.
    fn record(&mut self, how: Leaves, woken: Option<u64>, arrives: u64) -> Option<Vec<u8>> {
        WRITTEN.set(0);
        self.leave(1000, how);
        if let Some(woken) = woken {
            self.wake(woken);
        }
        self.arrive(arrives);
        let bytes = self.record.iter().flat_map(|word| word.to_ne_bytes());
        (WRITTEN.get() > 0).then(|| bytes.collect())
    }

    fn run(&mut self, now: u64, code: &Code, context: &[u64]) {
        NOW.set(now);
        ELEMENT.set(self.element.as_ptr() as u64);
        REGISTERS.set(self.registers.as_ptr() as u64);
        RECORD.set(self.record.as_ptr() as u64);
        let gate = self.gate.as_ptr() as u64;
        let control = self.control.as_ptr() as u64;
        let mut words = code.words.clone();
        for &(at, map) in &code.maps {
            let value = match map {
                Map::WaitSums => SUMS,
                Map::Rings => RINGS,
                Map::Control => control + (words[at + 1] >> 32),
                _ => gate + (words[at + 1] >> 32),
            };
            words[at] = words[at] & 0xffff_ffff | value << 32;
            words[at + 1] = value & !0xffff_ffff;
        }
        let program: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut machine = rbpf::EbpfVmRaw::new(None).unwrap();
        machine.set_verifier(|_| Ok(())).unwrap();
        machine.set_program(&program).unwrap();
        for memory in [
            &self.element[..],
            &self.gate,
            &self.task,
            &self.other,
            &self.control,
            &self.registers,
            &self.record,
        ] {
            let at = memory.as_ptr() as u64;
            machine.register_allowed_memory(at..at + size_of_val(memory) as u64);
        }
        let helpers: [(Helper, HelperCode); 6] = [
            (Helper::KtimeNs, |_, _, _, _, _| NOW.get()),
            (Helper::MapLookup, look_up),
            (Helper::CpuId, |_, _, _, _, _| CPU),
            (Helper::TaskPtRegs, |_, _, _, _, _| REGISTERS.get()),
            (Helper::RingReserve, reserve),
            (Helper::RingSubmit, submit),
        ];
        for (helper, code) in helpers {
            machine.register_helper(helper as u32, code).unwrap();
        }
        let mut context: Vec<u8> = context.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(machine.execute_program(&mut context).unwrap(), 0);
    }

    fn leave(&mut self, now: u64, how: Leaves) {
        self.task[2] = if how.in_iowait { IOWAIT | 1 } else { 1 };
        // If the state is an argument, another CPU may have changed the task's since.
        self.task[1] = if self.is_passed { 0 } else { how.state };
        let passed = if self.is_passed { how.state } else { 9 };
        let context = [how.is_preempted.into(), self.at(), self.other_at(), passed];
        self.run(
            now,
            &switched(self.members, self.written).unwrap(),
            &context,
        );
    }

    fn arrive(&mut self, now: u64) {
        let context = [0, self.other_at(), self.at(), 1];
        self.run(
            now,
            &switched(self.members, self.written).unwrap(),
            &context,
        );
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
    // SAFETY: programs pass the address of 4 bytes on their stack, which lives while they run.
    match (map, unsafe { (key as *const u32).read_unaligned() }) {
        (SUMS, THREAD) => ELEMENT.get(),
        (SUMS, _) => 0,
        (_, cpu) => {
            assert_eq!((map, u64::from(cpu)), (RINGS, CPU));
            RINGS
        }
    }
}

fn reserve(ring: u64, bytes: u64, _: u64, _: u64, _: u64) -> u64 {
    assert_eq!((ring, bytes), (RINGS, 56));
    RECORD.get()
}

fn submit(record: u64, flags: u64, _: u64, _: u64, _: u64) -> u64 {
    // `BPF_RB_NO_WAKEUP`.
    assert_eq!((record, flags), (RECORD.get(), 1));
    WRITTEN.set(WRITTEN.get() + 1);
    0
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

/// The body of the sample that is made of a record.
fn sample(record: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_sample(record, 5, &mut out);
    let [sample] = *Records::new(&out).collect::<Vec<_>>() else {
        panic!("{out:?}");
    };
    assert_eq!((sample.kind.0, sample.misc), (9, 2));
    assert!(out.len().is_multiple_of(8));
    sample.body.to_vec()
}

const SAMPLE_TYPE: SampleType = SampleType(
    SampleType::IDENTIFIER.0
        | SampleType::IP.0
        | SampleType::TID.0
        | SampleType::TIME.0
        | SampleType::CPU.0
        | SampleType::PERIOD.0
        | SampleType::RAW.0,
);

/// The arguments as text.
fn arguments(sample: &Sample<'_>) -> Vec<String> {
    let TracepointDecoder { arguments, decoder } = Decoder::from_tracepoint(&format());
    let mut values = decoder.values();
    decoder.decode(sample, &mut values);
    let text = |value: &Value| match value {
        Value::Unsigned(number) => number.to_string(),
        Value::String(string) => String::from_utf8(string.bytes.clone()).unwrap(),
        other => panic!("{other:?}"),
    };
    let named = arguments.iter().zip(&values);
    let named = named.map(|(argument, value)| format!("{}={}", argument.name, text(value)));
    named.collect()
}

#[test]
fn a_long_wait_is_an_event() {
    let attr = Attr {
        sample_type: SAMPLE_TYPE,
        ..Attr::default()
    };
    let layout = SampleLayout::new(&attr);
    let futex = u64::from(Sysno::futex as u32);
    let Some(registers) = CallRegisters::of(Arch::host()) else {
        return;
    };
    let mut machine = Machine::with_events();
    let set = |machine: &mut Machine, call, mode| {
        for (at, value) in [
            (registers.call, call),
            (registers.mode, mode),
            (own_instruction_pointer(), 0x1234),
        ] {
            machine.registers[at as usize / 8] = value;
        }
    };
    let own = u64::from(registers.own_mode);
    set(&mut machine, futex, own);
    let record = machine.record(SLEEPS, Some(1400), 1600).unwrap();
    let body = sample(&record);
    let known = layout.parse(&body).unwrap();
    assert_eq!(
        (known.id, known.ip, known.time, known.cpu),
        (5, 0x1234, 1600, 3)
    );
    assert_eq!((known.pid, known.tid, known.period), (7, 9, 600));
    let expected = [
        "ns=600",
        "runnable=200",
        "state=blocked",
        "syscall=futex",
        "wait=futex",
    ];
    assert_eq!(arguments(&known), expected);
    let words = |machine: &mut Machine, how| {
        let record = machine.record(how, None, 1600).unwrap();
        let body = sample(&record);
        arguments(&layout.parse(&body).unwrap())[1..].join(" ")
    };
    let in_io = Leaves {
        in_iowait: true,
        ..SLEEPS
    };
    assert_eq!(
        words(&mut machine, in_io),
        "runnable=0 state=iowait syscall=futex wait=futex"
    );
    assert_eq!(
        words(&mut machine, Leaves::default()),
        "runnable=600 state=runnable syscall=futex wait=runnable"
    );
    // A page fault.
    set(&mut machine, u64::MAX, own);
    let none = "runnable=0 state=blocked syscall= wait=no system call";
    assert_eq!(words(&mut machine, SLEEPS), none);
    // A call of a later kernel.
    set(&mut machine, 4000, own);
    let later = "runnable=0 state=blocked syscall=syscall_4000 wait=syscall_4000";
    assert_eq!(words(&mut machine, SLEEPS), later);
    // A 32-bit program.
    set(&mut machine, futex, own ^ 0x10);
    let unknown = "runnable=0 state=blocked syscall= wait=unknown";
    assert_eq!(words(&mut machine, SLEEPS), unknown);
    // Before Linux 5.15.
    set(&mut machine, futex, own);
    machine.written = Some(WrittenWaits {
        least: 300,
        registers: None,
    });
    assert_eq!(words(&mut machine, SLEEPS), unknown);
    for len in 0..record.len() {
        let mut out = Vec::new();
        put_sample(&record[..len], 5, &mut out);
        assert!(out.is_empty(), "{len}");
    }
}

#[test]
fn waits_have_no_event_that_are_short_or_not_to_be_recorded() {
    let mut machine = Machine::with_events();
    assert!(machine.record(SLEEPS, None, 1299).is_none());
    assert!(machine.record(SLEEPS, None, 1300).is_some());
    // Their sums grow all the same.
    machine.control[control::ENABLED as usize / 8] = 0;
    assert!(machine.record(SLEEPS, None, 2000).is_none());
    assert_eq!(machine.sums(), [0, 0, 299 + 300 + 1000]);
    machine.control[control::ENABLED as usize / 8] = 1;
    machine.element[IDS as usize / 8] = 0;
    assert!(machine.record(SLEEPS, None, 2000).is_none());
    assert_eq!(machine.sums(), [0, 0, 299 + 300 + 2 * 1000]);
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
    with_settings(None, threads)
}

fn with_settings(settings: Option<EventSettings<'_>>, threads: u32) -> Option<WaitSums> {
    if !usdtrec_testing::can_record() {
        return None;
    }
    let btf = btf_from_sysfs();
    let kernel = RunningKernel {
        btf: btf.as_ref(),
        preemption: Preemption::from_btf(btf.as_ref()).unwrap(),
        namespace: PidNamespace::own(btf.as_ref()).unwrap(),
    };
    Some(WaitSums::with_room(kernel, settings, threads).unwrap())
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

/// Waits of this thread, as events; and those that have no room, as counts.
#[test]
fn the_kernel_writes_events_of_waits() {
    const SLEEPS: u64 = 20_000;
    let control = || Control::new(0, 0, None);
    let cpus = usdtrec_kernel::host::cpus::online().unwrap();
    let with_least = |least, control: &Control| {
        let settings = EventSettings {
            least,
            id: 5,
            // Others share its ring.
            cpus: &cpus[..1],
            control: control.as_fd(),
        };
        let mut sums = with_settings(Some(settings), 1)?;
        sums.events.as_mut()?.wait_until_filled().unwrap();
        Some(sums)
    };
    let words = control().unwrap();
    let Some(mut sums) = with_least(5_000_000, &words) else {
        return;
    };
    let drained = |sums: &mut WaitSums| {
        let mut out = Vec::new();
        let events = sums.events.as_mut().unwrap();
        events.drain(&mut out, |_| ());
        let samples: Vec<Vec<u8>> = Records::new(&out)
            .map(|sample| sample.body.to_vec())
            .collect();
        assert_eq!(events.made(), samples.len() as u64);
        samples
    };
    let thread = sums.run(adds_current()).unwrap();
    let sleep = || std::thread::sleep(Duration::from_millis(20));
    sleep();
    assert_eq!(drained(&mut sums).len(), 0, "not enabled");
    words.set_enabled(true);
    sleep();
    let attr = Attr {
        sample_type: SAMPLE_TYPE,
        ..Attr::default()
    };
    let layout = SampleLayout::new(&attr);
    let samples = drained(&mut sums);
    let samples = samples.iter().map(|body| layout.parse(body).unwrap());
    let slept = samples.map(|sample| {
        assert_eq!(
            (sample.pid as u32, sample.tid),
            (std::process::id(), thread)
        );
        (sample.period, arguments(&sample)[2..].join(" "))
    });
    let slept: Vec<(u64, String)> = slept.collect();
    let is_sleep = |(ns, words): &(u64, String)| {
        *ns >= 20_000_000 && words == "state=blocked syscall=clock_nanosleep wait=clock_nanosleep"
    };
    assert!(slept.iter().any(is_sleep), "{slept:?}");
    drop(sums);
    let words = control().unwrap();
    words.set_enabled(true);
    let mut sums = with_least(0, &words).unwrap();
    sums.run(adds_current()).unwrap();
    for _ in 0..SLEEPS {
        std::thread::sleep(Duration::from_nanos(1));
    }
    sums.run(forgets_current()).unwrap();
    let mut counts = EngineCounts::default();
    words.add_counts(&mut counts);
    let lost = counts.of(ShortfallKind::LostWaits);
    let written = drained(&mut sums).len() as u64;
    // Some sleeps end before the thread stops running.
    let least = SLEEPS * 9 / 10;
    assert!(lost > 0 && written + lost >= least, "{written} + {lost}");
}
