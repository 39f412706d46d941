//! The trial: a process of ours attaches to a 5-byte nop of its own, hits it, forks, detaches, and checks how the kernel changed its code.
//!
//! The process attaches only to itself, in a file without a name. It owns the event, so that killing the recorder does not close it: on
//! some kernels that would crash the machine. For the same reason the recorder never kills the process; if it takes too long, the recorder
//! continues without its result.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use memmap2::{Mmap, MmapOptions};
use perf_event_open_sys::bindings::{PERF_FLAG_FD_CLOEXEC, perf_event_attr};
use rustix::fs::MemfdFlags;

use super::verdict::{Nop5Danger, TrialError, TrialFaults, Verdict};
use crate::host::inherited;

/// The first argument of the process that runs [`trial`].
pub const TRIAL_VERB: &str = "try-nop5";

/// How long a recorder waits for the result.
const RESULT_LIMIT: Duration = Duration::from_secs(10);

/// `nopl 0(%rax,%rax,1)`, the 5-byte nop.
const NOP5: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];
/// `ret`.
const RET: u8 = 0xc3;
/// `int3`, the breakpoint.
const TRAP: u8 = 0xcc;
/// `call rel32`.
const CALL: u8 = 0xe8;

/// Starts the process of the trial.
fn start() -> io::Result<Child> {
    Command::new("/proc/self/exe")
        .arg(TRIAL_VERB)
        .stdin(inherited::null_stream()?)
        .stdout(Stdio::piped())
        .stderr(inherited::null_stream()?)
        .spawn()
}

/// Runs the trial in another process, and waits for its result.
pub(super) fn run() -> Verdict {
    let failed = |error| Verdict::Unsound(Nop5Danger::Untested(error));
    let process = match start() {
        Ok(process) => process,
        Err(error) => return failed(error.into()),
    };
    let (sender, receiver) = mpsc::channel();
    let waiting = std::thread::Builder::new().spawn(move || {
        // The recorder does not wait any longer if it took too long.
        let _ = sender.send(process.wait_with_output());
    });
    if let Err(error) = waiting {
        return failed(error.into());
    }
    match receiver.recv_timeout(RESULT_LIMIT) {
        Ok(Ok(output)) if output.status.success() => {
            Verdict::of_line(String::from_utf8_lossy(&output.stdout).trim_end())
        }
        Ok(Ok(output)) => failed(TrialError::Ended(output.status)),
        Ok(Err(error)) => failed(error.into()),
        Err(_) => failed(TrialError::Timeout(RESULT_LIMIT)),
    }
}

/// Runs the trial, and prints its result as a line: `sound`, or what is wrong.
///
/// # Errors
/// It cannot be printed.
pub fn trial() -> io::Result<()> {
    // This process must not get signals of the recorder's terminal, because it must close the event normally.
    let _ = rustix::process::setsid();
    let verdict = attempt().unwrap_or_else(|error| Verdict::Unsound(Nop5Danger::Untested(error)));
    writeln!(io::stdout(), "{}", verdict.line())
}

/// Whether a 5-byte nop of this process is safe.
fn attempt() -> Result<Verdict, TrialError> {
    let code = Code::new()?;
    let mut event = code.plant()?;
    code.hit();
    code.hit();
    match code.first_byte() {
        TRAP => {}
        CALL => {
            drop(event);
            return Ok(Verdict::Unsound(Nop5Danger::Call));
        }
        other => return Err(TrialError::Code(other)),
    }
    let of_child = code.hit_in_child()?;
    let mut hits = [0; 8];
    if event.read(&mut hits)? < hits.len() {
        return Err(TrialError::NoCount);
    }
    drop(event);
    let faults = TrialFaults {
        child: !of_child,
        count: u64::from_ne_bytes(hits) != 2,
        nop: !code.is_whole(),
        late_child: !code.hit_in_child()?,
    };
    if faults == TrialFaults::default() {
        return Ok(Verdict::Sound);
    }
    Ok(Verdict::Unsound(Nop5Danger::Faults(faults)))
}

/// A function that consists of a 5-byte nop and a return.
///
/// Invariant: `map` is executable and begins with [`NOP5`], or what the kernel made of it, and [`RET`].
struct Code {
    file: File,
    map: Mmap,
}

impl Code {
    fn new() -> io::Result<Self> {
        let file = File::from(rustix::fs::memfd_create(
            "usdtrec-nop5",
            MemfdFlags::CLOEXEC,
        )?);
        let mut page = vec![RET; rustix::param::page_size()];
        for (to, from) in page.iter_mut().zip(NOP5) {
            *to = from;
        }
        (&file).write_all(&page)?;
        // Private, as programs are mapped: the kernel writes no breakpoint into shared mappings.
        // SAFETY: nothing else has the file open, and it is not changed any more.
        let map = unsafe { MmapOptions::new().map_copy(&file) }?;
        let map = map.make_exec()?;
        Ok(Self { file, map })
    }

    /// Opens an event that counts the hits of this process.
    fn plant(&self) -> Result<File, TrialError> {
        let kind = std::fs::read_to_string("/sys/bus/event_source/devices/uprobe/type")?;
        let path = CString::new(format!("/proc/self/fd/{}", self.file.as_raw_fd()));
        let path = path.map_err(io::Error::from)?;
        let mut attr = perf_event_attr {
            type_: kind.trim().parse().map_err(|_| TrialError::Pmu)?,
            size: size_of::<perf_event_attr>() as u32,
            ..Default::default()
        };
        attr.__bindgen_anon_3.uprobe_path = path.as_ptr() as u64;
        // SAFETY: `attr` is a whole perf_event_attr; the path outlives the call, which copies it.
        let descriptor = unsafe {
            perf_event_open_sys::perf_event_open(
                &raw mut attr,
                0,
                -1,
                -1,
                PERF_FLAG_FD_CLOEXEC.into(),
            )
        };
        if descriptor < 0 {
            return Err(io::Error::last_os_error().into());
        }
        // SAFETY: the kernel has just given this descriptor to us alone.
        Ok(unsafe { File::from_raw_fd(descriptor) })
    }

    fn hit(&self) {
        // SAFETY: by the invariant this is a function without arguments that does nothing.
        let function: extern "C" fn() = unsafe { std::mem::transmute(self.map.as_ptr()) };
        function();
    }

    /// Forks a child that hits once. Returns whether the child exits normally.
    fn hit_in_child(&self) -> io::Result<bool> {
        // SAFETY: this process has one thread; the child calls nothing but its function and _exit(2).
        let child = unsafe { libc::fork() };
        if child == 0 {
            self.hit();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(0) };
        }
        if child < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut status = 0;
        // SAFETY: `status` is an integer of ours.
        if unsafe { libc::waitpid(child, &raw mut status, 0) } != child {
            return Err(io::Error::last_os_error());
        }
        Ok(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0)
    }

    fn first_byte(&self) -> u8 {
        // SAFETY: the pointer is that of a mapped byte. The kernel changes it, so that the load must be volatile.
        unsafe { self.map.as_ptr().read_volatile() }
    }

    /// Whether the nop is unchanged.
    fn is_whole(&self) -> bool {
        let bytes = (0..NOP5.len()).map(|index| {
            let at = self.map.as_ptr().wrapping_add(index);
            // SAFETY: as in `first_byte`; the map is a page long.
            unsafe { at.read_volatile() }
        });
        bytes.eq(NOP5)
    }
}
