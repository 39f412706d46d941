//! The recorder's part: helpers that wait for requests, and those that are stuck.

use std::cell::Cell;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, fs, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};

use super::helper::{self, StartedHelper};
use super::message::{Message, Task, numbers, receive, send};
use super::spent_time::{self, Asker, SpentTimes};
use super::waits::{BegunWait, WaitedFile};
use crate::account::{Account, find_by};
use crate::file_mapping::DeviceNumber;
use crate::live_thread::NOBODY;

/// How long a file system has to answer.
pub const ANSWER_TIME: Duration = Duration::from_secs(1);
/// The same where little time may be lost, the total time of such waits that is allowed at once, and the share of all time that is added to it.
const SHORT_TIME: Duration = Duration::from_millis(50);
const SHORT_TOTAL: Duration = Duration::from_millis(500);
const SHORT_SHARE: u32 = 20;
/// How long an answer may take without being counted there.
const FREE_TIME: Duration = Duration::from_millis(1);
/// How much longer a helper is waited for as long as it runs, or waits for a CPU: then its file system does not keep it waiting.
const RUNNING_TIME: Duration = Duration::from_secs(10);
/// The same where little time may be lost.
const SHORT_RUNNING_TIME: Duration = Duration::from_millis(300);
/// How often its state is looked at then.
const RUNNING_INTERVAL: Duration = Duration::from_millis(20);
/// How long a new helper has to begin, and where little time may be lost.
const START_TIME: Duration = Duration::from_secs(10);
const SHORT_START_TIME: Duration = Duration::from_secs(1);
/// Maximum numbers of helpers that a file system, the files of an account, and all of them may make wait for ever.
const MAX_STUCK_OF_FILE_SYSTEM: usize = 2;
const MAX_STUCK_OF_ACCOUNT: usize = 4;
const MAX_STUCK: usize = 32;
/// Root outside of containers has no need to attack this one.
const ROOT: Account = Account::of_user(0);
/// Number of stuck helpers, or of file systems that are not asked now, with which the time to answer is halved: files of many users are not waited for
/// one after the other.
const HALVING: usize = 4;
/// Maximum number of helpers that wait for requests.
const MAX_IDLE: usize = 4;

/// How files of others are read: a [`Use`].
static USE: AtomicU8 = AtomicU8::new(Use::Not as u8);
/// The helper that starts others, and reads nothing.
static STARTER: Mutex<Option<StartedHelper>> = Mutex::new(None);
static HELPERS: Mutex<Helpers> = Mutex::new(Helpers {
    idle: Vec::new(),
    stuck: Vec::new(),
    short: None,
    spent: SpentTimes::new(),
});

/// For whom a file is read, and how long that may take.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// Whose process maps it.
    pub account: Account,
    /// The device of its file system, as far as known.
    pub device: DeviceNumber,
    /// How long each answer may take.
    pub patience: Patience,
}

impl Reader {
    /// Of a file of which no user and no device is known.
    #[must_use]
    pub const fn of_unknown(patience: Patience) -> Self {
        let (major, minor) = (u32::MAX, u32::MAX);
        Self {
            account: Account::of_user(NOBODY),
            device: DeviceNumber { major, minor },
            patience,
        }
    }

    /// Of a file of a process, whose device is not known.
    #[must_use]
    pub fn of_process(pid: i32, patience: Patience) -> Self {
        let unknown = Self::of_unknown(patience);
        let account = u32::try_from(pid).ok().and_then(Account::of);
        Self {
            account: account.unwrap_or(unknown.account),
            ..unknown
        }
    }

    fn asker(&self) -> Asker {
        Asker {
            account: self.account,
            device: (self.device.major != u32::MAX).then_some(self.device),
            is_limited: self.account != ROOT,
        }
    }
}

/// How long an answer may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// [`ANSWER_TIME`].
    Usual,
    /// 50 ms, and a twentieth of all time: for the loop that drains the rings.
    Short,
}

thread_local! {
    /// Whether this thread has little time.
    static IS_HASTY: Cell<bool> = const { Cell::new(false) };
}

/// As long as this lives, all answers for this thread have [little time](Patience::Short).
#[derive(Debug)]
pub struct Haste {
    before: bool,
}

impl Haste {
    /// Begins.
    #[must_use]
    pub fn begin() -> Self {
        let before = IS_HASTY.replace(true);
        Self { before }
    }
}

impl Drop for Haste {
    fn drop(&mut self) {
        IS_HASTY.set(self.before);
    }
}

/// Whether helpers are used.
#[derive(Clone, Copy, Debug)]
enum Use {
    /// Files are read by this process.
    Not,
    Yes,
    /// No files of others are read any more.
    Ended,
}

#[derive(Debug)]
struct Helpers {
    idle: Vec<StartedHelper>,
    stuck: Vec<StuckHelper>,
    short: Option<ShortTime>,
    spent: SpentTimes,
}

/// How much time is left for short waits.
#[derive(Debug)]
struct ShortTime {
    left: Duration,
    since: Instant,
}

/// A helper that was killed while it waited for an answer. It ends with the answer.
struct StuckHelper {
    helper: StartedHelper,
    reader: Reader,
}

impl fmt::Debug for StuckHelper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StuckHelper").field(&self.reader).finish()
    }
}

/// Has files of others read by helpers from now on, which are started when they are needed. This program's `main` must call
/// [`serve`](helper::serve) if its only argument is [`SERVE_VERB`](helper::SERVE_VERB). `find` finds the account of a process; `None` if it has ended.
pub fn begin(find: fn(u32) -> Option<Account>) {
    find_by(find);
    USE.store(Use::Yes as u8, SeqCst);
}

/// Starts the helper that starts others: before this process has anything that would be in its way.
///
/// # Errors
/// A process cannot be started.
pub fn prepare() -> io::Result<()> {
    let mut starter = starter();
    if starter.is_none() {
        *starter = Some(helper::started()?);
    }
    Ok(())
}

/// Ends the helpers. Files that are not known to be local are not read any more.
pub fn end() {
    USE.store(Use::Ended as u8, SeqCst);
    *starter() = None;
    let mut helpers = helpers();
    helpers.idle.clear();
    helpers.stuck.clear();
}

/// The helpers that this process has now, but for those that answer.
pub(crate) fn pids() -> Vec<u32> {
    let starter = starter().as_ref().map(|starter| starter.pid);
    let helpers = helpers();
    let stuck = helpers.stuck.iter().map(|stuck| stuck.helper.pid);
    let idle = helpers.idle.iter().map(|helper| helper.pid);
    starter.into_iter().chain(stuck).chain(idle).collect()
}

fn is_use(wanted: Use) -> bool {
    USE.load(SeqCst) == wanted as u8
}

/// Whether files are read by helpers.
pub(super) fn are_used() -> bool {
    !is_use(Use::Not)
}

/// Has a helper answer a request.
///
/// # Errors
/// The error of the helper's system call; `TimedOut` if the file system has not answered in time, now or before.
pub(super) fn ask(
    reader: &Reader,
    request: &[u8],
    handles: &[BorrowedFd<'_>],
) -> io::Result<Message> {
    /// All that wait may have been killed by a user, or for lack of memory.
    const TRIES: usize = MAX_IDLE + 2;
    let mut failed = io::Error::from(io::ErrorKind::BrokenPipe);
    let is_short = reader.patience == Patience::Short || IS_HASTY.get();
    let patience = if is_short {
        Patience::Short
    } else {
        Patience::Usual
    };
    let reader = &Reader {
        patience,
        ..*reader
    };
    let _wait = asked_file(request, handles).map(BegunWait::begin);
    for _ in 0..TRIES {
        let TakenHelper { helper, time } = helpers().take(reader)?;
        let helper = match helper {
            Some(helper) => helper,
            None => start(patience)?,
        };
        let begun = Instant::now();
        let before = is_short.then(|| SchedulerTimes::of(&helper));
        let running = match patience {
            Patience::Usual => RUNNING_TIME,
            Patience::Short => SHORT_RUNNING_TIME,
        };
        let Asked { answer, waited } = helper.ask(request, handles, AnswerTime { time, running });
        if let Some(before) = before {
            // What a container's local file system takes is not counted.
            let free = if reader.account.user == ROOT.user {
                FREE_TIME
            } else {
                Duration::ZERO
            };
            let on_cpus = SchedulerTimes::of(&helper).since(before);
            let waited = begun.elapsed().saturating_sub(on_cpus);
            helpers().note_short(waited.saturating_sub(free));
        }
        match answer {
            Ok(answer) => {
                let mut helpers = helpers();
                helpers.spent.add(reader.asker(), waited, Instant::now());
                helpers.give(helper);
                return outcome(answer);
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                // It may ignore that until the file system answers.
                let _ = pidfd_send_signal(&helper.process, Signal::KILL);
                let mut helpers = helpers();
                if !is_short {
                    (helpers.spent).add(reader.asker(), spent_time::SILENCE, Instant::now());
                }
                let reader = *reader;
                helpers.stuck.push(StuckHelper { helper, reader });
                return Err(no_answer());
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// The file that a request is about.
fn asked_file(request: &[u8], handles: &[BorrowedFd<'_>]) -> Option<WaitedFile> {
    let opens = [Task::Open, Task::OpenNoLink, Task::OpenBelow];
    let (task, path) = request.split_first()?;
    match opens.iter().any(|opens| opens.byte() == *task) {
        true => Some(WaitedFile::Path(OsStr::from_bytes(path).into())),
        false => Some(WaitedFile::Open(handles.first()?.as_raw_fd())),
    }
}

/// What an answer says.
fn outcome(mut answer: Message) -> io::Result<Message> {
    const STATUS: usize = size_of::<u64>();
    let [status] = numbers(&answer.bytes).ok_or(io::ErrorKind::InvalidData)?;
    match i32::try_from(status) {
        Ok(0) => {
            answer.bytes.drain(..STATUS);
            Ok(answer)
        }
        Ok(error) => Err(io::Error::from_raw_os_error(error)),
        Err(_) => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The error of a file system that does not answer.
pub(super) fn no_answer() -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        "its file system did not answer in time",
    )
}

fn helpers() -> MutexGuard<'static, Helpers> {
    HELPERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn starter() -> MutexGuard<'static, Option<StartedHelper>> {
    STARTER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a helper. This process, which may have links and rings by now, only starts the starter, and another one if that was killed.
fn start(patience: Patience) -> io::Result<StartedHelper> {
    let mut starter = match patience {
        Patience::Usual => starter(),
        // Another thread starts one.
        Patience::Short => STARTER.try_lock().map_err(|_| no_answer())?,
    };
    if let Some(known) = &*starter
        && let Ok(started) = known.start_another(patience)
    {
        return Ok(started);
    }
    starter.insert(helper::started()?).start_another(patience)
}

/// A helper, if one waits for requests, and how long its answer is waited for.
struct TakenHelper {
    helper: Option<StartedHelper>,
    time: Duration,
}

impl Helpers {
    fn take(&mut self, reader: &Reader) -> io::Result<TakenHelper> {
        if is_use(Use::Ended) {
            let ended = "files of other file systems than local ones are not read any more";
            return Err(io::Error::new(io::ErrorKind::Unsupported, ended));
        }
        self.stuck.retain(|stuck| !stuck.helper.has_ended());
        // A wait that ends as soon as the helper has a CPU is no wait for a file system.
        let stuck = self.stuck.iter();
        let stuck: Vec<&Reader> = stuck
            .filter(|stuck| !stuck.helper.is_running())
            .map(|stuck| &stuck.reader)
            .collect();
        let number = |is_it: fn(&Reader, &Reader) -> bool| {
            let stuck = stuck.iter();
            stuck.filter(|stuck| is_it(stuck, reader)).count()
        };
        let of_account = number(|stuck, reader| stuck.account == reader.account);
        let of_file_system = number(|stuck, reader| {
            stuck.device == reader.device && reader.device.major != u32::MAX
        });
        let now = Instant::now();
        let silent = stuck.len().max(self.spent.used_up(now));
        let time = ANSWER_TIME / (1 << (silent / HALVING).min(8));
        let time = match reader.patience {
            Patience::Usual => time,
            Patience::Short => time.min(SHORT_TIME).min(self.short_time()),
        };
        if time.is_zero()
            || of_file_system >= MAX_STUCK_OF_FILE_SYSTEM
            || reader.account != ROOT && of_account >= MAX_STUCK_OF_ACCOUNT
            // No account has more than what is left for all others together.
            || of_account + self.stuck.len() + 2 > MAX_STUCK
            || self.spent.is_used_up(reader.asker(), now)
        {
            return Err(no_answer());
        }
        let helper = self.idle.pop();
        Ok(TakenHelper { helper, time })
    }

    /// How long a short wait may be now.
    fn short_time(&mut self) -> Duration {
        let now = Instant::now();
        let short = self.short.get_or_insert(ShortTime {
            left: SHORT_TOTAL,
            since: now,
        });
        let added = now.duration_since(short.since) / SHORT_SHARE;
        short.left = SHORT_TOTAL.min(short.left + added);
        short.since = now;
        short.left
    }

    fn note_short(&mut self, waited: Duration) {
        if let Some(short) = &mut self.short {
            short.left = short.left.saturating_sub(waited);
        }
    }

    /// Keeps a helper for the next request.
    fn give(&mut self, helper: StartedHelper) {
        if is_use(Use::Yes) && self.idle.len() < MAX_IDLE {
            self.idle.push(helper);
        }
    }
}

/// What is no wait for a file system.
#[derive(Clone, Copy, Debug, Default)]
struct SchedulerTimes {
    /// That a helper was on a CPU, and waited for one.
    of_helper: Duration,
    /// That this thread waited for a CPU.
    of_self: Duration,
}

impl SchedulerTimes {
    /// 0 if the kernel does not report it.
    fn of(helper: &StartedHelper) -> Self {
        // Time on a CPU, then time waiting for one, ns (Documentation/scheduler/sched-stats.rst).
        let times = |path: &str| -> [Duration; 2] {
            let text = fs::read_to_string(path).unwrap_or_default();
            let mut numbers = text.split(' ').map(|word| word.parse().unwrap_or(0));
            [(); 2].map(|()| Duration::from_nanos(numbers.next().unwrap_or(0)))
        };
        let [runs, waits] = times(&format!("/proc/{}/schedstat", helper.pid));
        let [_, of_self] = times("/proc/thread-self/schedstat");
        Self {
            of_helper: runs + waits,
            of_self,
        }
    }

    fn since(self, before: Self) -> Duration {
        let of_helper = self.of_helper.saturating_sub(before.of_helper);
        of_helper + self.of_self.saturating_sub(before.of_self)
    }
}

/// How long an answer is waited for.
#[derive(Clone, Copy, Debug)]
struct AnswerTime {
    /// In any case.
    time: Duration,
    /// How much longer if the helper runs.
    running: Duration,
}

/// What came of a question.
#[derive(Debug)]
struct Asked {
    answer: io::Result<Message>,
    /// How long the file system was waited for beyond the [free time](spent_time::FREE_TIME).
    waited: Duration,
}

/// A wait beyond the free time.
#[derive(Clone, Copy, Debug)]
struct LongWait {
    begun: Instant,
    before: SchedulerTimes,
}

impl StartedHelper {
    fn ask(&self, request: &[u8], handles: &[BorrowedFd<'_>], time: AnswerTime) -> Asked {
        let mut long = None;
        let answer = self.answer(request, handles, time, &mut long);
        let waited = long.map_or(Duration::ZERO, |LongWait { begun, before }| {
            let on_cpus = SchedulerTimes::of(self).since(before);
            begun.elapsed().saturating_sub(on_cpus)
        });
        Asked { answer, waited }
    }

    fn answer(
        &self,
        request: &[u8],
        handles: &[BorrowedFd<'_>],
        time: AnswerTime,
        long: &mut Option<LongWait>,
    ) -> io::Result<Message> {
        let socket = self.socket.as_fd();
        send(socket, request, handles)?;
        let begun = Instant::now();
        let mut end = begun + time.time;
        let last = end + time.running;
        loop {
            let now = Instant::now();
            let free = begun + spent_time::FREE_TIME;
            if long.is_none() && now >= free {
                *long = Some(LongWait {
                    begun: now,
                    before: SchedulerTimes::of(self),
                });
            }
            let until = match long {
                Some(_) => end,
                None => end.min(free),
            };
            let left = until.saturating_duration_since(now);
            let left = Timespec {
                tv_sec: left.as_secs().cast_signed(),
                tv_nsec: left.subsec_nanos().into(),
            };
            let mut polled = [PollFd::new(&socket, PollFlags::IN)];
            match poll(&mut polled, Some(&left)) {
                Err(rustix::io::Errno::INTR) => {}
                Ok(0) if until < end => {}
                Ok(0) if end < last && self.is_running() => {
                    end = last.min(Instant::now() + RUNNING_INTERVAL);
                }
                // It may have answered meanwhile.
                Ok(0) if poll(&mut polled, Some(&Timespec::default())) == Ok(0) => {
                    return Err(no_answer());
                }
                Ok(0) => {}
                Ok(_) => return receive(socket),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether it has a CPU, or waits for one (proc_pid_stat(5)).
    fn is_running(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, state)| state.starts_with('R'))
    }

    fn start_another(&self, patience: Patience) -> io::Result<Self> {
        let time = AnswerTime {
            time: match patience {
                Patience::Usual => START_TIME,
                Patience::Short => SHORT_START_TIME,
            },
            running: Duration::ZERO,
        };
        let answer = outcome(self.ask(&[Task::Start.byte()], &[], time).answer?)?;
        let [socket, process]: [OwnedFd; 2] = answer
            .descriptors
            .try_into()
            .map_err(|_| io::ErrorKind::InvalidData)?;
        let [pid] = numbers(&answer.bytes).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self {
            socket,
            process,
            pid: u32::try_from(pid).map_err(|_| io::ErrorKind::InvalidData)?,
        })
    }

    /// Whether the process has ended: it has no socket any more.
    fn has_ended(&self) -> bool {
        let mut polled = [PollFd::new(&self.process, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())).is_ok_and(|number| number > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;

    /// A process that waits.
    struct Waiting(Child);

    impl Waiting {
        fn start() -> Self {
            let mut command = Command::new("cat");
            command.stdin(Stdio::piped()).stdout(Stdio::null());
            let child = Self(command.spawn().unwrap());
            while child.helper().is_running() {
                std::thread::yield_now();
            }
            child
        }

        fn helper(&self) -> StartedHelper {
            let kind = (AddressFamily::UNIX, SocketType::SEQPACKET);
            let (socket, _) = socketpair(kind.0, kind.1, SocketFlags::CLOEXEC, None).unwrap();
            let pid = Pid::from_child(&self.0);
            StartedHelper {
                socket,
                process: pidfd_open(pid, PidfdFlags::empty()).unwrap(),
                pid: self.0.id(),
            }
        }
    }

    impl Drop for Waiting {
        fn drop(&mut self) {
            drop(self.0.stdin.take());
            let _ = self.0.wait();
        }
    }

    fn reader(user: u32, minor: u32) -> Reader {
        Reader {
            account: Account::of_user(user),
            device: DeviceNumber { major: 0, minor },
            patience: Patience::Usual,
        }
    }

    #[test]
    fn who_has_helpers_stuck_leaves_others_for_everybody() {
        let process = Waiting::start();
        let mut helpers = Helpers {
            idle: Vec::new(),
            stuck: Vec::new(),
            short: None,
            spent: SpentTimes::new(),
        };
        let mut all = |user: u32| {
            let mut number = 0;
            // Of a file system of its own each.
            while helpers.take(&reader(user, 100 * user + number)).is_ok() {
                helpers.stuck.push(StuckHelper {
                    helper: process.helper(),
                    reader: reader(user, 100 * user + number),
                });
                number += 1;
            }
            number
        };
        assert_eq!(all(7), MAX_STUCK_OF_ACCOUNT as u32);
        let of_root = all(0);
        assert!((1..MAX_STUCK as u32 / 2).contains(&of_root), "{of_root}");
        assert_eq!(all(8), MAX_STUCK_OF_ACCOUNT as u32);
    }

    /// Those whose helpers end when they are killed are not waited for again and again.
    #[test]
    fn a_file_system_that_did_not_answer_is_not_asked_for_a_while() {
        let mut helpers = Helpers {
            idle: Vec::new(),
            stuck: Vec::new(),
            short: None,
            spent: SpentTimes::new(),
        };
        let mut waits = 0;
        while helpers.take(&reader(7, 1)).is_ok() {
            waits += 1;
            let asker = reader(7, 1).asker();
            (helpers.spent).add(asker, spent_time::SILENCE, Instant::now());
        }
        assert_eq!(waits, MAX_STUCK_OF_FILE_SYSTEM);
        let refused = helpers.take(&reader(7, 1)).err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        assert!(helpers.take(&reader(7, 2)).is_ok());
        assert!(helpers.take(&reader(8, 1)).is_ok());
    }
}
