//! Loading programs, and running one for a test.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::super::insn::Code;
use super::btf::FunctionTypes;
use super::call::{bpf, name, open, raw};
use super::link::UPROBE_MULTI;

const PROG_LOAD: i32 = 5;
const PROG_TEST_RUN: i32 = 10;

/// The helpers that our programs call need a licence compatible with the GPL; the project is also under MIT.
const LICENSE: &CStr = c"Dual MIT/GPL";

/// Maximum length of the verifier's log, bytes: an error and statistics.
const LOG_BYTES: usize = 1 << 12;

/// `BPF_LOG_STATS`: errors and statistics, without each instruction. With those, kernels before Linux 6.4 drop the end of a long log, which is the
/// error.
const LOG_STATISTICS: u32 = 4;

/// What a program is for.
#[derive(Clone, Copy, Debug)]
pub enum ProgramKind {
    /// An event of a uprobe.
    Uprobe,
    /// A link to many uprobes.
    UprobeMulti,
    /// [`run`].
    Run,
    /// A tracepoint of the kernel, by the id of its type in the kernel's BTF.
    Tracepoint(u32),
}

impl ProgramKind {
    /// `BPF_PROG_TYPE_KPROBE`, `BPF_PROG_TYPE_RAW_TRACEPOINT`, `BPF_PROG_TYPE_TRACING`.
    const fn program_type(self) -> u32 {
        match self {
            Self::Uprobe | Self::UprobeMulti => 2,
            Self::Run => 17,
            Self::Tracepoint(_) => 26,
        }
    }

    /// `BPF_TRACE_UPROBE_MULTI`, `BPF_TRACE_RAW_TP`; 0 for others.
    const fn expected_attach(self) -> u32 {
        match self {
            Self::Uprobe | Self::Run => 0,
            Self::UprobeMulti => UPROBE_MULTI,
            Self::Tracepoint(_) => 23,
        }
    }
}

/// `BPF_F_SLEEPABLE`.
const SLEEPABLE: u32 = 1 << 4;

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach: u32,
    btf: u32,
    function_size: u32,
    functions: u64,
    function_count: u32,
    _line_size: u32,
    _lines: u64,
    _line_count: u32,
    /// Of [`ProgramKind::Tracepoint`]; else 0.
    attach_kind: u32,
    _attach_program: u32,
    _pad: u32,
}

/// `struct bpf_func_info`.
#[repr(C)]
struct FunctionInfo {
    /// Index of its first instruction.
    start: u32,
    /// Its type in the program's BTF.
    kind: u32,
}

#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    result: i32,
    _data_sizes: [u32; 2],
    _data: [u64; 2],
    _repeat: u32,
    _duration: u32,
    _context_sizes: [u32; 2],
    _contexts: [u64; 2],
    _flags: u32,
    _cpu: u32,
    _batch: u32,
    _pad: u32,
}

/// Error of loading a program.
#[derive(Debug)]
pub struct LoadError {
    /// Error of bpf(2).
    pub error: io::Error,
    /// The error of the verifier, one line, if it gave one.
    pub reason: Option<String>,
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.error)?;
        match &self.reason {
            Some(reason) => write!(f, "; the verifier says: {reason}"),
            None => Ok(()),
        }
    }
}

impl From<LoadError> for io::Error {
    fn from(error: LoadError) -> Self {
        Self::new(error.error.kind(), error.to_string())
    }
}

/// The last line of the verifier's log that is not a statistic.
fn reason(log: &str) -> Option<String> {
    const STATISTICS: [&str; 3] = ["processed ", "verification time ", "stack depth "];
    let is_statistic = |line: &str| STATISTICS.iter().any(|start| line.starts_with(start));
    let mut lines = log.lines().rev().map(str::trim);
    let line = lines.find(|line| !line.is_empty() && !is_statistic(line))?;
    Some(line.to_owned())
}

/// Loads a program whose code has the descriptors of its maps.
pub fn load(kind: ProgramKind, code: &Code) -> Result<OwnedFd, LoadError> {
    let known = FunctionTypes::from_functions(&code.functions);
    let types = if code.functions.is_empty() {
        None
    } else {
        let error = |error| LoadError {
            error,
            reason: None,
        };
        Some(known.load().map_err(error)?)
    };
    let functions = code.functions.iter().map(|function| FunctionInfo {
        start: function.start as u32,
        kind: known.function_type(function.kind),
    });
    let functions: Vec<_> = functions.collect();
    let mut attr = ProgramLoad {
        kind: kind.program_type(),
        count: code.words.len() as u32,
        instructions: code.words.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: SLEEPABLE * u32::from(code.sleeps),
        name: name("usdtrec"),
        interface: 0,
        expected_attach: kind.expected_attach(),
        btf: types.as_ref().map_or(0, |types| raw(types.as_fd())),
        function_size: types
            .as_ref()
            .map_or(0, |_| size_of::<FunctionInfo>() as u32),
        functions: types.as_ref().map_or(0, |_| functions.as_ptr() as u64),
        function_count: functions.len() as u32,
        _line_size: 0,
        _lines: 0,
        _line_count: 0,
        attach_kind: match kind {
            ProgramKind::Tracepoint(kind) => kind,
            _ => 0,
        },
        _attach_program: 0,
        _pad: 0,
    };
    // SAFETY: `attr` is laid out as BPF_PROG_LOAD takes it; instructions, licence and functions outlive the call.
    let error = match unsafe { open(PROG_LOAD, &mut attr) } {
        Ok(program) => return Ok(program),
        Err(error) => error,
    };
    // Again, for the verifier's error.
    let mut log = vec![0_u8; LOG_BYTES];
    attr.log_level = LOG_STATISTICS;
    attr.log_size = LOG_BYTES as u32;
    attr.log = log.as_mut_ptr() as u64;
    // SAFETY: as before, and the log is as long as `log_size` says.
    match unsafe { open(PROG_LOAD, &mut attr) } {
        Ok(program) => Ok(program),
        Err(_) => {
            let len = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
            let log = String::from_utf8_lossy(log.get(..len).unwrap_or_default());
            Err(LoadError {
                error,
                reason: reason(&log),
            })
        }
    }
}

/// Runs a [`ProgramKind::Run`] once, on this CPU and without arguments. Returns its result.
pub fn run(program: BorrowedFd<'_>) -> io::Result<i32> {
    let mut attr = TestRun {
        program: raw(program),
        ..TestRun::default()
    };
    // SAFETY: `attr` is laid out as BPF_PROG_TEST_RUN takes it and points nowhere.
    unsafe { bpf(PROG_TEST_RUN, &mut attr) }?;
    Ok(attr.result)
}

#[cfg(test)]
mod tests {
    use super::{LoadError, reason};

    #[test]
    fn an_error_has_the_verifiers_reason() {
        let said = |log: &str| {
            let error = std::io::Error::from_raw_os_error(libc::EINVAL);
            let reason = reason(log);
            LoadError { error, reason }.to_string()
        };
        let error = "Invalid argument (os error 22)";
        assert_eq!(said(""), error);
        // As Linux 6.12 says it in lockdown.
        let statistics =
            "verification time 3 usec\nstack depth 0\nprocessed 0 insns (limit 1000000)\n";
        assert_eq!(said(statistics), error);
        let reason = format!("{error}; the verifier says: invalid func unknown#174");
        assert_eq!(said("invalid func unknown#174"), reason);
        let log = format!("invalid func unknown#174\n{statistics}");
        assert_eq!(said(&log), reason);
    }
}
