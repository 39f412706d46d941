//! A perf event: the descriptor that `perf_event_open(2)` returns, and its attr.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use perf_event_open_sys::bindings::{self, perf_event_attr};
use perf_event_open_sys::{ioctls, perf_event_open};
use usdtrec_format::perf::{Attr, SampleType};
use usdtrec_format::{Arch, CapturePlan, Site};
use usdtrec_kernel::host::capabilities;
use usdtrec_kernel::{ErrorMeaning, KernelError, KernelOperation};

use crate::aggregation::SpanHitCounts;
use crate::engine::numbers::u64_at;
use crate::error::RecordError;
use crate::plan::call_graph::{CallGraph, mask};

/// `sample_type` of all events of a trace: the fixed head of each sample, and the sample id of each other record.
const COMMON_SAMPLE_TYPE: u64 = SampleType::IDENTIFIER.0
    | SampleType::IP.0
    | SampleType::TID.0
    | SampleType::TIME.0
    | SampleType::CPU.0;

/// Size of the `perf_event_attr` that is passed to the kernel, bytes: up to and including `sample_max_stack` (`PERF_ATTR_SIZE_VER5`, Linux
/// 4.1). It is also the size that is written to the trace.
const ATTR_SIZE: u32 = 112;

/// Settings of all events of a session.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    /// Threads and children that are created later inherit the events.
    pub inherit: bool,
    /// The kernel enables the events at the next `execve(2)` of the traced process.
    pub enable_on_exec: bool,
    /// Whether mappings without code have records, too.
    pub maps_data: bool,
    /// Whether the reader of a ring is woken by each record.
    pub is_prompt: bool,
    /// How the callers of hits are found; `None` if they are not.
    pub graph: Option<CallGraph>,
    /// Whether the kernel counts losses per event (`PERF_FORMAT_LOST`, Linux 6.0).
    pub counts_losses: bool,
}

/// The counts of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Hits.
    pub hits: u64,
    /// Hits whose sample did not fit into the ring; `None` if the kernel does not count them.
    pub lost: Option<u64>,
}

/// The counts of a sample id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdCount {
    /// Index of its probe.
    pub probe: usize,
    /// The sample id.
    pub id: u64,
    /// Its counts.
    pub count: Count,
}

/// An open perf event.
#[derive(Debug)]
pub struct Event {
    file: File,
    /// Sample id.
    pub id: u64,
    counts_losses: bool,
}

impl Event {
    /// Opens an event for a thread (`-1`: all) on one CPU.
    pub fn open(attr: &KernelAttr<'_>, tid: i32, cpu: u32) -> io::Result<Self> {
        let mut raw = attr.raw;
        let cpu = i32::try_from(cpu).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: `raw` is a whole perf_event_attr; the path it may point to is borrowed by `attr`
        // and so outlives the call, which copies it.
        let fd = unsafe {
            perf_event_open(
                &raw mut raw,
                tid,
                cpu,
                -1,
                bindings::PERF_FLAG_FD_CLOEXEC.into(),
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just opened this descriptor, and nothing else owns it.
        let file = unsafe { File::from_raw_fd(fd) };
        let mut id = 0_u64;
        // SAFETY: the ioctl writes one u64 to `id`.
        check(unsafe { ioctls::ID(file.as_raw_fd(), &raw mut id) })?;
        Ok(Self {
            file,
            id,
            counts_losses: attr.mode.counts_losses,
        })
    }

    /// Enables the event and its inherited copies.
    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: the ioctl takes an integer.
        check(unsafe { ioctls::ENABLE(self.file.as_raw_fd(), 0) })
    }

    /// Disables the event and its inherited copies.
    pub fn disable(&self) -> io::Result<()> {
        // SAFETY: the ioctl takes an integer.
        check(unsafe { ioctls::DISABLE(self.file.as_raw_fd(), 0) })
    }

    /// Redirects the event's records to the ring of `owner`, which must be on the same CPU.
    pub fn redirect(&self, owner: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: the ioctl takes a descriptor, which is open while it is borrowed.
        check(unsafe { ioctls::SET_OUTPUT(self.file.as_raw_fd(), owner.as_raw_fd()) })
    }

    /// Reads the counts (perf_event_open(2), "Reading results": value, id, lost).
    pub fn count(&self) -> io::Result<Count> {
        let mut bytes = [0_u8; 24];
        let wanted = if self.counts_losses { 24 } else { 16 };
        (&self.file).read_exact(&mut bytes[..wanted])?;
        let word = |at| u64_at(&bytes, at).unwrap_or(0);
        Ok(Count {
            hits: word(0),
            lost: self.counts_losses.then(|| word(16)),
        })
    }
}

impl From<Event> for OwnedFd {
    fn from(event: Event) -> Self {
        event.file.into()
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A `perf_event_attr` for the kernel, with the path that it points to.
pub struct KernelAttr<'a> {
    raw: perf_event_attr,
    mode: Mode,
    _path: Option<&'a CStr>,
}

/// The kernel's event of a site.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) enum SiteEvent {
    /// A tracefs event, by its number.
    Tracepoint(u64),
    /// The uprobe PMU (Linux 4.17), by its number, with the file offset of the site and the `config`, whose upper half is that of its semaphore
    /// (Linux 4.20). The event cannot be inherited.
    Uprobe { pmu: u32, offset: u64, config: u64 },
}

impl<'a> KernelAttr<'a> {
    /// The attr of a site's event, in the file with this path.
    pub(in crate::engine) fn for_site(
        place: &SiteEvent,
        path: &'a CStr,
        mode: Mode,
        plan: &CapturePlan,
    ) -> Self {
        let mut raw = sampling(mode, plan);
        match *place {
            SiteEvent::Tracepoint(id) => {
                raw.type_ = bindings::PERF_TYPE_TRACEPOINT;
                raw.config = id;
            }
            SiteEvent::Uprobe {
                pmu,
                offset,
                config,
            } => {
                raw.type_ = pmu;
                raw.config = config;
                raw.__bindgen_anon_3.uprobe_path = path.as_ptr() as u64;
                raw.__bindgen_anon_4.probe_offset = offset;
            }
        }
        Self {
            raw,
            mode,
            _path: Some(path),
        }
    }

    /// The attr of an event that counts nothing and owns a CPU's ring. The reader is woken when `wakeup` bytes are in the ring.
    pub fn ring_owner(mode: Mode, wakeup: u32) -> Self {
        let mode = Mode {
            inherit: false,
            enable_on_exec: false,
            ..mode
        };
        Self::dummy(mode).waking_at(wakeup)
    }

    /// The attr of an event for process records: COMM, FORK, EXIT and MMAP2.
    pub fn metadata(mode: Mode) -> Self {
        let mut attr = Self::dummy(mode);
        let raw = &mut attr.raw;
        raw.set_comm(1);
        raw.set_comm_exec(1);
        raw.set_task(1);
        raw.set_mmap(1);
        raw.set_mmap2(1);
        raw.set_mmap_data(u64::from(mode.maps_data));
        attr
    }

    /// The attr of an event that counts nothing.
    fn dummy(mode: Mode) -> Self {
        let mut raw = common(mode);
        raw.type_ = bindings::PERF_TYPE_SOFTWARE;
        raw.config = u64::from(bindings::PERF_COUNT_SW_DUMMY);
        Self {
            raw,
            mode,
            _path: None,
        }
    }

    /// The same for a ring whose reader is woken when so many bytes are in it.
    pub fn waking_at(mut self, bytes: u32) -> Self {
        self.raw.__bindgen_anon_2.wakeup_watermark = bytes;
        self
    }

    /// The attr as stored in the trace. For a probe it is that of the uprobe PMU, whatever the attach method, without the fields of a
    /// single site or of this process: the number of a tracefs event has no meaning after the event is removed.
    pub fn for_trace(&self, pmu: u32) -> Attr {
        let raw = &self.raw;
        let (kind, config) = match raw.type_ {
            bindings::PERF_TYPE_SOFTWARE => (raw.type_, raw.config),
            _ => (pmu, 0),
        };
        Attr {
            kind,
            size: ATTR_SIZE,
            config,
            sample_period: 1,
            sample_type: SampleType(raw.sample_type),
            read_format: raw.read_format,
            flags: raw._bitfield_1.get(0, 64),
            clockid: raw.clockid,
            sample_regs_user: raw.sample_regs_user,
            sample_stack_user: raw.sample_stack_user,
            sample_max_stack: raw.sample_max_stack,
            ..Attr::default()
        }
    }
}

/// An attr that samples what a plan needs.
fn sampling(mode: Mode, plan: &CapturePlan) -> perf_event_attr {
    let mut raw = common(mode);
    if plan.registers != 0 {
        raw.sample_type |= SampleType::REGS_USER.0;
        raw.sample_regs_user = plan.registers;
    }
    if plan.stack != 0 {
        raw.sample_type |= SampleType::STACK_USER.0;
        raw.sample_stack_user = plan.stack;
    }
    if let Some(graph) = mode.graph {
        with_callers(&mut raw, graph);
    }
    raw
}

/// Adds what the callers are found from.
fn with_callers(raw: &mut perf_event_attr, graph: CallGraph) {
    raw.sample_type |= SampleType::CALLCHAIN.0;
    raw.set_exclude_callchain_kernel(1);
    match graph.method.copied() {
        None => raw.sample_max_stack = graph.frames,
        Some(bytes) => {
            raw.sample_type |= (SampleType::REGS_USER | SampleType::STACK_USER).0;
            raw.sample_regs_user |= Arch::host().map_or(0, mask);
            raw.sample_stack_user = raw.sample_stack_user.max(bytes);
            raw.set_exclude_callchain_user(1);
        }
    }
}

/// The fields that all events of a session share.
fn common(mode: Mode) -> perf_event_attr {
    let mut raw = perf_event_attr {
        size: ATTR_SIZE,
        sample_type: COMMON_SAMPLE_TYPE,
        ..Default::default()
    };
    raw.__bindgen_anon_1.sample_period = 1;
    raw.read_format = u64::from(bindings::PERF_FORMAT_ID);
    if mode.counts_losses {
        raw.read_format |= u64::from(bindings::PERF_FORMAT_LOST);
    }
    raw.set_disabled(1);
    raw.set_inherit(u64::from(mode.inherit));
    raw.set_enable_on_exec(u64::from(mode.enable_on_exec));
    raw.set_exclude_kernel(1);
    raw.set_exclude_hv(1);
    raw.set_sample_id_all(1);
    raw.set_watermark(1);
    raw.set_use_clockid(1);
    raw.clockid = libc::CLOCK_MONOTONIC;
    raw
}

fn check(status: i32) -> io::Result<()> {
    if status < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// The error for an event that the kernel refused.
pub(crate) fn refusal(source: io::Error) -> RecordError {
    let operation = KernelOperation::PerfEvent(meaning(&source));
    KernelError::operation(operation)(source).into()
}

/// What an error of `perf_event_open(2)` means; `None` if it says so itself.
pub(crate) fn meaning(error: &io::Error) -> Option<ErrorMeaning> {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => Some(ErrorMeaning::TooManyFiles),
        Some(libc::EACCES | libc::EPERM) => Some(lockdown().unwrap_or_else(missing_privilege)),
        Some(libc::EINVAL) => Some(ErrorMeaning::NoInstruction),
        _ => None,
    }
}

/// What an error of attaching to a site means that was checked to be a nop; `None` if it says so itself.
pub(in crate::engine) fn site_meaning(error: &io::Error, site: &Site) -> Option<ErrorMeaning> {
    let is_invalid = error.raw_os_error() == Some(libc::EINVAL);
    (is_invalid && site.semaphore != 0).then_some(ErrorMeaning::OtherSemaphore)
}

/// Which privilege this process does not have.
fn missing_privilege() -> ErrorMeaning {
    if capabilities::has_admin() {
        ErrorMeaning::NotPermitted
    } else if capabilities::paranoid().is_some_and(|level| level > 2) {
        ErrorMeaning::Paranoid
    } else {
        ErrorMeaning::UprobePmuNeedsAdmin
    }
}

/// Why tracefs cannot be used, if that is the kernel's lockdown (kernel_lockdown(7)): `confidentiality` disables it, but neither programs nor
/// events of the uprobe PMU (seen on Linux 5.10 to 7.3).
pub(in crate::engine) fn lockdown() -> Option<ErrorMeaning> {
    let state = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let is_confidential = state.contains("[confidentiality]");
    is_confidential.then_some(ErrorMeaning::Lockdown)
}

/// Whether the error means that the thread or process ended before its event was opened, or its link created.
pub(crate) fn has_ended(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

/// The file that has the number (Linux 4.17).
const PMU_TYPE: &str = "/sys/bus/event_source/devices/uprobe/type";

/// The uprobe PMU, of which only those need the number who open its events.
#[derive(Clone, Copy, Debug)]
pub struct UprobePmu {
    known: Option<u32>,
}

impl UprobePmu {
    /// Looks for its number, which sysfs has, if that is mounted.
    pub fn find() -> Self {
        Self {
            known: pmu_type().ok(),
        }
    }

    /// Its number.
    ///
    /// # Errors
    /// [`RecordError`] if the kernel has no such PMU, or sysfs is not mounted.
    pub fn number(self) -> Result<u32, RecordError> {
        self.known.map_or_else(pmu_type, Ok)
    }

    /// Its number, if it is known.
    pub const fn known(self) -> Option<u32> {
        self.known
    }
}

/// The number of the uprobe PMU.
pub(in crate::engine) fn pmu_type() -> Result<u32, RecordError> {
    let text = fs::read_to_string(PMU_TYPE)
        .map_err(KernelError::operation(KernelOperation::UprobePmu(PMU_TYPE)))?;
    let wrong = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("expected a number, found {text:?}"),
        )
    };
    let number = text.trim().parse().map_err(|_| wrong());
    Ok(number.map_err(KernelError::host(PMU_TYPE))?)
}

/// What was counted of the spans that a site begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanSite {
    /// Index of its probe.
    pub probe: usize,
    /// Name of the span.
    pub name: String,
    pub counts: SpanHitCounts,
}
