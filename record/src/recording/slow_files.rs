//! Files whose file systems did not answer at once: a thread opens them, for which the loop does not wait. The accounts of the processes that map them take
//! turns.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use usdtrec_attach::places::{Account, account_of};
use usdtrec_buildid_cache::elf::{ElfError, ObjectFile};
use usdtrec_buildid_cache::served::Patience;

use super::mapped_file::{Mapped, MappedFileId};
use super::turns;

/// Name of the thread, as in `/proc/PID/task/TID/comm`.
const NAME: &str = "slow-files";
/// Maximum number of files that wait. Those of an account are never more than what is left for all others.
const MAX_FILES: usize = 256;
/// Time until a file is tried again, the first time; then twice as long, and at most so long.
const PAUSE: Duration = Duration::from_secs(5);
const MAX_PAUSE: Duration = Duration::from_secs(320);

/// The files, and the thread.
#[derive(Debug)]
pub(super) struct SlowFiles {
    send: SyncSender<SlowFile>,
    found: Receiver<OpenedFile>,
    thread: JoinHandle<()>,
    /// The files that wait, with the accounts for which they do: they may answer for another one.
    known: HashMap<MappedFileId, BTreeSet<Account>>,
    /// The numbers of those that were not tried yet.
    untried: BTreeSet<u64>,
    added: u64,
}

/// Numbers of files so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tries {
    pub(super) added: u64,
    /// That of the last file up to which all were tried.
    pub(super) tried: u64,
}

/// A file, and who mapped it.
#[derive(Clone, Debug)]
pub(super) struct SlowFile {
    pub(super) id: MappedFileId,
    pub(super) mapped: Mapped,
    account: Account,
    /// In the order in which they were added, from 1.
    number: u64,
}

impl SlowFile {
    pub(super) fn new(id: MappedFileId, mapped: Mapped) -> Self {
        Self {
            id,
            account: account(mapped.pid),
            mapped,
            number: 0,
        }
    }
}

/// The account of a process; those that have ended have one of their own.
fn account(pid: i32) -> Account {
    let known = u32::try_from(pid).ok().and_then(account_of);
    known.unwrap_or(Account::of_user(u32::MAX))
}

/// What became of a file.
#[derive(Debug)]
pub(super) struct OpenedFile {
    pub(super) file: SlowFile,
    pub(super) outcome: Result<ObjectFile, ElfError>,
}

impl SlowFiles {
    /// Starts the thread; `None` if that is impossible.
    pub(super) fn start() -> Option<Self> {
        let (send, files) = sync_channel(MAX_FILES);
        let (opened, found) = channel();
        let thread = thread::Builder::new().name(NAME.to_owned());
        let open = |file: &SlowFile| file.mapped.open(Patience::Usual);
        let thread = thread.spawn(move || run(&files, &opened, open)).ok()?;
        Some(Self {
            send,
            found,
            thread,
            known: HashMap::new(),
            untried: BTreeSet::new(),
            added: 0,
        })
    }

    /// Adds a file, unless it waits already. Returns `false` if there is no room.
    pub(super) fn add(&mut self, mut file: SlowFile) -> bool {
        let (id, account, number) = (file.id, file.account, self.added + 1);
        if self.waits(&id, account) {
            return true;
        }
        file.number = number;
        let is_added = self.has_room(account) && self.send.try_send(file).is_ok();
        if is_added {
            self.known.entry(id).or_default().insert(account);
            self.untried.insert(number);
            self.added = number;
        }
        is_added
    }

    fn has_room(&self, account: Account) -> bool {
        let all = self.known.values().map(BTreeSet::len).sum::<usize>();
        let own = self.known.values();
        let own = own.filter(|accounts| accounts.contains(&account)).count();
        own < MAX_FILES.saturating_sub(all)
    }

    /// Numbers of files so far.
    pub(super) fn tries(&self) -> Tries {
        let untried = self.untried.first();
        Tries {
            added: self.added,
            tried: untried.map_or(self.added, |number| number - 1),
        }
    }

    /// Whether a file waits for the account of a process.
    pub(super) fn has(&self, file: &MappedFileId, pid: i32) -> bool {
        self.known.contains_key(file) && self.waits(file, account(pid))
    }

    fn waits(&self, file: &MappedFileId, account: Account) -> bool {
        let accounts = self.known.get(file);
        accounts.is_some_and(|accounts| accounts.contains(&account))
    }

    /// What became of files since the last call. That a file system has not answered is said the first time.
    pub(super) fn take(&mut self) -> Vec<OpenedFile> {
        let found: Vec<_> = self.found.try_iter().collect();
        for OpenedFile { file, outcome } in &found {
            self.untried.remove(&file.number);
            if !matches!(outcome, Err(error) if error.is_timeout())
                && let Some(accounts) = self.known.get_mut(&file.id)
            {
                accounts.remove(&file.account);
                if accounts.is_empty() {
                    self.known.remove(&file.id);
                }
            }
        }
        found
    }

    /// Ends the thread, which may take as long as an answer.
    pub(super) fn end(self) {
        drop(self.send);
        let _ = self.thread.join();
    }
}

/// A file that waits.
struct Waiting {
    file: SlowFile,
    due: Instant,
    pause: Duration,
    is_tried: bool,
}

impl Waiting {
    fn new(file: SlowFile) -> Self {
        Self {
            file,
            due: Instant::now(),
            pause: PAUSE,
            is_tried: false,
        }
    }
}

fn run(
    files: &Receiver<SlowFile>,
    opened: &Sender<OpenedFile>,
    open: impl Fn(&SlowFile) -> Result<ObjectFile, ElfError>,
) {
    let mut waiting: BTreeMap<Account, Vec<Waiting>> = BTreeMap::new();
    let mut last = Account::default();
    loop {
        let now = Instant::now();
        let first = waiting.values().flatten().map(|waiting| waiting.due).min();
        let time = first.map_or(MAX_PAUSE, |due| due.saturating_duration_since(now));
        let received = match files.recv_timeout(time) {
            Ok(file) => Some(file),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        // All of them: the turn may be that of the last one.
        for file in received.into_iter().chain(files.try_iter()) {
            let of_account = waiting.entry(file.account).or_default();
            of_account.push(Waiting::new(file));
        }
        let now = Instant::now();
        let is_due = |waiting: &Waiting| waiting.due <= now;
        let turn = turns::next(&waiting, last, |files| files.iter().any(is_due));
        let Some((account, files)) = turn.and_then(|turn| Some((turn, waiting.get_mut(&turn)?)))
        else {
            continue;
        };
        last = account;
        let Some(at) = files.iter().position(is_due) else {
            continue;
        };
        let mut tried = files.remove(at);
        let outcome = open(&tried.file);
        let is_timeout = matches!(&outcome, Err(error) if error.is_timeout());
        let is_first = !std::mem::replace(&mut tried.is_tried, true);
        let file = tried.file.clone();
        if (!is_timeout || is_first) && opened.send(OpenedFile { file, outcome }).is_err() {
            return;
        }
        if is_timeout {
            tried.due = Instant::now() + tried.pause;
            tried.pause = MAX_PAUSE.min(tried.pause * 2);
            files.push(tried);
        } else if files.is_empty() {
            waiting.remove(&account);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use usdtrec_buildid_cache::FileMapping;

    use super::*;

    fn file(number: u64, user: u32) -> SlowFile {
        let mapping = FileMapping::parse_all(b"1000-2000 r-xp 00000000 fe:01 7 /a")
            .next()
            .unwrap();
        SlowFile {
            id: MappedFileId::numbered(number),
            mapped: Mapped {
                pid: 0,
                tid: 0,
                mapped_at: 0,
                mapping,
            },
            account: Account::of_user(user),
            number,
        }
    }

    /// What waits of one user is tried after the first file of another one.
    #[test]
    fn accounts_take_turns() {
        let (send, files) = channel();
        let (opened, found) = channel();
        for number in 1..=5 {
            send.send(file(number, 1000)).unwrap();
        }
        send.send(file(6, 2000)).unwrap();
        let thread = thread::spawn(move || {
            run(&files, &opened, |_| {
                Err(ElfError::Io(io::ErrorKind::NotFound.into()))
            });
        });
        let order: Vec<u64> = found.iter().take(6).map(|file| file.file.number).collect();
        assert_eq!(order, [1, 6, 2, 3, 4, 5]);
        drop(send);
        thread.join().unwrap();
    }

    #[test]
    fn an_account_leaves_room_for_others() {
        let (send, _files) = sync_channel(MAX_FILES);
        let (_opened, found) = channel();
        let mut slow = SlowFiles {
            send,
            found,
            thread: thread::spawn(|| {}),
            known: HashMap::new(),
            untried: BTreeSet::new(),
            added: 0,
        };
        let many = MAX_FILES as u64;
        let number = (0..many).filter(|number| slow.add(file(*number, 1000)));
        let number = number.count();
        assert_eq!(number, MAX_FILES / 2);
        assert!(slow.add(file(many, 2000)));
        assert!(slow.add(file(0, 2000)), "it may answer for another user");
        assert_eq!(slow.tries().added, number as u64 + 2);
        assert_eq!(slow.tries().tried, 0);
        // The last one is tried first.
        slow.untried.remove(&slow.added);
        assert_eq!(slow.tries().tried, 0);
        slow.untried.remove(&1);
        assert_eq!(slow.tries().tried, 1);
    }
}
