//! Files that wait to be read, in turn for the users (by [`Account`]) whose processes mapped them: any user can map any number of files, and those of
//! others do not wait for them. Of one user, a process that maps very many does not keep those of other processes out.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use usdtrec_attach::places::Account;

use crate::recording::build_ids::{NewFile, dispensable};
use crate::recording::turns;

/// Maximum number of files of one user that wait, and of all users.
const MAX_OF_USER: usize = 128;
const MAX_WAITING: usize = 512;
/// Ratio of the pause after the files of a user to the time that reading them took: they take at most a fifth of a CPU.
const PAUSE: u32 = 4;
/// Pauses that a user has not to wait for: a program that begins maps many files at once.
const BURST: Duration = Duration::from_millis(400);

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    users: BTreeMap<Account, Waiting>,
    /// Number of files that wait.
    number: usize,
    /// The user whose file was taken last.
    last: Account,
    /// Number of files that were taken and are done.
    done: u64,
    /// Whether the recording ends, so that nobody pauses.
    is_ending: bool,
    /// Whether no file comes any more.
    is_closed: bool,
}

/// What waits of a user.
#[derive(Debug, Default)]
struct Waiting {
    files: VecDeque<NewFile>,
    /// When all pauses of earlier files are over.
    paused_until: Option<Instant>,
}

impl Waiting {
    /// When a file may be read.
    fn due(&self, now: Instant) -> Instant {
        let until = self.paused_until.unwrap_or(now);
        until.checked_sub(BURST).unwrap_or(now)
    }
}

/// A file, the user whose turn it was, and whether the recording ends.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) user: Account,
    pub(super) file: NewFile,
    pub(super) is_ending: bool,
}

/// What the thread does next.
#[derive(Debug)]
pub(super) enum Next {
    /// This file.
    File(Box<Taken>),
    /// There is none yet.
    Idle,
    /// The queue is closed and has none.
    Closed,
}

impl Queue {
    /// Adds a file of a user. Returns the one that is left out if there is no room: it, another one of the user, or one of the user who has the most.
    pub(super) fn add(&self, user: Account, file: NewFile) -> Option<NewFile> {
        let mut state = self.state();
        let left_out = match state.has_room(user) {
            true => None,
            false => match state.take_dispensable(user, file.pid) {
                None => return Some(file),
                left_out => left_out,
            },
        };
        state.number += usize::from(left_out.is_none());
        state.users.entry(user).or_default().files.push_back(file);
        // Else the thread would wait for the lock at once.
        drop(state);
        self.changed.notify_one();
        left_out
    }

    /// The next file, when it is due. Waits for it up to a time, if there is one.
    pub(super) fn take(&self, until: Option<Instant>) -> Next {
        let mut state = self.state();
        loop {
            let now = Instant::now();
            if let Some(taken) = state.take_due(now) {
                return Next::File(Box::new(taken));
            }
            if state.is_closed {
                return Next::Closed;
            }
            if until.is_some_and(|until| until <= now) {
                return Next::Idle;
            }
            let due = state.next_due(now).into_iter().chain(until).min();
            state = match due {
                None => self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(due) => {
                    let time = due.saturating_duration_since(now);
                    let waited = self.changed.wait_timeout(state, time);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Notes how long the last file of a user took.
    pub(super) fn note_time(&self, user: Account, taken: Duration) {
        let mut state = self.state();
        let now = Instant::now();
        let waiting = state.users.entry(user).or_default();
        let begin = waiting.paused_until.map_or(now, |until| until.max(now));
        waiting.paused_until = Some(begin + taken * PAUSE);
        let is_needed =
            |waiting: &Waiting| !waiting.files.is_empty() || waiting.paused_until > Some(now);
        state.users.retain(|_, waiting| is_needed(waiting));
    }

    /// Notes that the file that was taken last is done.
    pub(super) fn note_done(&self) {
        self.state().done += 1;
    }

    /// Number of files that are done.
    pub(super) fn done(&self) -> u64 {
        self.state().done
    }

    /// The recording ends.
    pub(super) fn end(&self) {
        self.state().is_ending = true;
        self.changed.notify_all();
    }

    /// No file comes any more. The recording ends.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.end();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Number of files of a user that wait.
    fn of_user(&self, user: Account) -> usize {
        let waiting = self.users.get(&user);
        waiting.map_or(0, |waiting| waiting.files.len())
    }

    fn has_room(&self, user: Account) -> bool {
        self.number < MAX_WAITING && self.of_user(user) < MAX_OF_USER
    }

    /// Removes a file to make room for one of a process of a user: the last one of the user who has the most, if the queue is full and that has
    /// more; else one of the user's own, of a process that has more.
    fn take_dispensable(&mut self, user: Account, pid: i32) -> Option<NewFile> {
        let own = self.of_user(user);
        if self.number >= MAX_WAITING {
            let most = self.users.values_mut();
            let most = most.max_by_key(|waiting| waiting.files.len());
            let most = most.filter(|most| most.files.len() > own + 1);
            if let Some(most) = most {
                return most.files.pop_back();
            }
        }
        let own = &mut self.users.get_mut(&user)?.files;
        own.remove(dispensable(own.iter(), pid)?)
    }

    /// A file of the user whose turn it is.
    fn take_due(&mut self, now: Instant) -> Option<Taken> {
        let is_ending = self.is_ending;
        let has_due =
            |waiting: &Waiting| !waiting.files.is_empty() && (is_ending || waiting.due(now) <= now);
        let user = turns::next(&self.users, self.last, has_due)?;
        let file = self.users.get_mut(&user)?.files.pop_front()?;
        self.last = user;
        self.number -= 1;
        Some(Taken {
            user,
            file,
            is_ending,
        })
    }

    fn next_due(&self, now: Instant) -> Option<Instant> {
        let waiting = self.users.values();
        let waiting = waiting.filter(|waiting| !waiting.files.is_empty());
        waiting.map(|waiting| waiting.due(now)).min()
    }
}

#[cfg(test)]
mod tests {
    use usdtrec_buildid_cache::elf::ObjectFile;

    use super::*;
    use crate::recording::mapped_file::MappedFileId;

    fn file(pid: i32) -> NewFile {
        let path = std::env::current_exe().unwrap();
        NewFile {
            pid,
            tid: pid,
            account: None,
            mapped_at: 0,
            ended: 0,
            id: MappedFileId::default(),
            object: ObjectFile::open(&path).unwrap(),
            path,
        }
    }

    fn add(queue: &Queue, user: u32, file: NewFile) -> Option<NewFile> {
        queue.add(Account::of_user(user), file)
    }

    fn next(queue: &Queue) -> Option<Taken> {
        match queue.take(None) {
            Next::File(taken) => Some(*taken),
            Next::Idle | Next::Closed => None,
        }
    }

    fn taken(queue: &Queue) -> i32 {
        next(queue).unwrap().file.pid
    }

    #[test]
    fn users_take_turns_and_are_bounded() {
        let queue = Queue::default();
        for number in 0..MAX_OF_USER {
            assert!(add(&queue, 1000, file(number as i32)).is_none());
        }
        let left_out = add(&queue, 1000, file(-1)).unwrap();
        assert_eq!(left_out.pid, -1, "too many of one user");
        assert_eq!(queue.state().number, MAX_OF_USER);
        assert!(add(&queue, 0, file(5000)).is_none());
        assert!(add(&queue, u32::MAX, file(6000)).is_none());
        let order: Vec<i32> = (0..4).map(|_| taken(&queue)).collect();
        assert_eq!(order, [0, 6000, 5000, 1]);
        assert_eq!(queue.state().number, MAX_OF_USER - 2);
    }

    /// Users who fill the queue do not keep out the files of another one.
    #[test]
    fn users_leave_room_for_others() {
        let queue = Queue::default();
        for (user, files) in [(1, 3), (2, 4)] {
            for number in 1..=files {
                assert!(add(&queue, user, file(number)).is_none());
            }
        }
        // As if many others had one file each.
        queue.state().number = MAX_WAITING;
        let left_out = |user| add(&queue, user, file(-1)).unwrap().pid;
        assert_eq!(left_out(5), 4, "the last one of the user with the most");
        assert_eq!([left_out(5), left_out(2)], [3, -1]);
        let numbers = [1, 2, 5].map(|user| queue.state().of_user(Account::of_user(user)));
        assert_eq!(numbers, [3, 2, 2]);
        assert_eq!(left_out(5), -1, "nobody has more than one file more");
        assert_eq!(queue.state().number, MAX_WAITING);
    }

    #[test]
    fn a_process_leaves_room_for_others_of_its_user() {
        let queue = Queue::default();
        for _ in 0..MAX_OF_USER {
            assert!(add(&queue, 0, file(1)).is_none());
        }
        assert_eq!(add(&queue, 0, file(1)).unwrap().pid, 1);
        let left_out = add(&queue, 0, file(2)).unwrap();
        assert_eq!(left_out.pid, 1, "another one is left out");
        assert_eq!(queue.state().number, MAX_OF_USER);
        queue.close();
        let taken: Vec<i32> = (0..MAX_OF_USER).map(|_| taken(&queue)).collect();
        assert!(taken[..MAX_OF_USER - 1].iter().all(|pid| *pid == 1));
        assert_eq!(taken[MAX_OF_USER - 1], 2);
        assert!(next(&queue).is_none());
    }

    #[test]
    fn who_took_long_pauses_and_others_do_not() {
        let queue = Queue::default();
        add(&queue, 1000, file(1));
        add(&queue, 1000, file(2));
        assert_eq!(taken(&queue), 1);
        queue.note_time(Account::of_user(1000), BURST);
        add(&queue, 0, file(3));
        assert_eq!(taken(&queue), 3);
        let now = Instant::now();
        assert!(queue.state().next_due(now).unwrap() > now);
        queue.close();
        let last = next(&queue).unwrap();
        assert_eq!((last.file.pid, last.is_ending), (2, true));
        assert!(next(&queue).is_none());
    }
}
