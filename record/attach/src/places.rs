//! How much may be attached in files that nobody named: any user can map any number of files with any probes.
//!
//! What the user of the recorder names (`@PATH`, `-p`, the command) has no limit here. Of other files, at the start and while recording,
//! each *takes* places for its sites, for the account of a process that maps it, and gives them back when its probes are detached
//! ([`Place`]). Events, arguments and what they take of the head of a trace stay there for ever, and so are never given back.
//!
//! An account never has more than what is left for all others together. So two, or five, who take all that they can leave room for the next one,
//! whatever the number of their files.
//!
//! Whose process it is, for the limits of what is attached for it.
//!
//! Any user can have any number of user ids and pid namespaces inside of a user namespace, but cannot choose who owns that. So processes in another
//! user namespace than the recorder's are one account by the owner of the outermost one; if that is root, as for containers with a user namespace, by
//! the namespace. Containers without one are all of the host's users: they are distinguished by their pid namespaces, which only root can make.

use std::collections::{HashMap, HashSet};
use std::fs::{File, metadata};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

pub use usdtrec_buildid_cache::Account;
use usdtrec_buildid_cache::live_thread;
use usdtrec_format::Probe;

/// Maximum of one file: a file with more is refused, whoever maps it. Programs with the most have some thousand sites (QEMU).
pub const OF_FILE: PlaceCount = PlaceCount {
    files: 1,
    sites: 8192,
    events: 8192,
    forms: 1024,
    arguments: 1 << 15,
    head_bytes: OF_ACCOUNT.head_bytes,
};
/// Maximum of an account. A file with 8,192 events of three arguments takes 22 MiB of a head.
const OF_ACCOUNT: PlaceCount = PlaceCount {
    files: 256,
    sites: 8192,
    events: 16_384,
    forms: 2048,
    arguments: 1 << 15,
    head_bytes: 28 << 20,
};
/// Maximum of a recording. A trace has ids for 55,534 events, and readers take definitions with 262,144 arguments, and 64 MiB of a head, which
/// files that the user named need, too.
const OF_RECORDING: PlaceCount = PlaceCount {
    files: 1024,
    sites: 32_768,
    events: 48_000,
    forms: 8192,
    arguments: 100_000,
    head_bytes: 60 << 20,
};
/// Maximum number of probes at one instruction in a file that nobody named. Each hit is as many events. Functions with the same code that the
/// linker has made one (ICF) have a few.
pub const AT_INSTRUCTION: usize = 16;

/// Number of descriptors that an attached file needs: itself, the links, programs and words of its part, and copies while they are handed over.
const DESCRIPTORS_OF_FILE: u64 = 6;
/// The same of one whose probes are detached: itself, and the words with its counts, which stay.
const DESCRIPTORS_OF_RELEASED: u64 = 2;
/// Number of descriptors that are kept for everything else.
const DESCRIPTORS_KEPT: u64 = 320;

/// What was attached in files that nobody named. Clones are handles of the same.
#[derive(Clone, Default)]
pub struct Places(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    accounts: HashMap<Account, PlaceCount>,
    all: PlaceCount,
    /// Number of files whose probes are detached.
    released: usize,
}

/// The places of a file. Dropping it gives them back.
pub struct Place {
    of: Places,
    account: Account,
    need: PlaceCount,
}

/// A maximum that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    account: Account,
    what: &'static str,
    /// Number that it has, and the most that it can have.
    has: usize,
    most: usize,
    /// Whether only that is left which others may need.
    is_reserve: bool,
}

impl Places {
    /// Takes places for a file of one of these accounts: that which has the least.
    ///
    /// # Errors
    /// [`Exceeded`]: nothing is taken.
    pub fn take(&self, accounts: &[Account], need: PlaceCount) -> Result<Place, Exceeded> {
        let mut taken = self.taken();
        let mut known: Vec<(usize, Account)> = accounts
            .iter()
            .map(|account| (taken.of(*account).files, *account))
            .collect();
        known.sort_unstable();
        let mut outcome = Err(Exceeded {
            account: Account::default(),
            what: "files",
            has: 0,
            most: 0,
            is_reserve: false,
        });
        for (_, account) in known {
            let files = most_files(taken.released);
            outcome = taken.take(account, need, files);
            if outcome.is_ok() {
                break;
            }
        }
        outcome.map(|account| Place {
            of: self.clone(),
            account,
            need,
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Gives it back: the probes of its file are detached. What the recording keeps of the file has descriptors.
    pub fn release(self) {
        self.of.taken().released += 1;
    }

    /// Takes bytes of the head of a trace for the same account, once the events are planned.
    ///
    /// # Errors
    /// [`Exceeded`]: nothing is taken.
    pub fn take_head(&self, bytes: u64) -> Result<(), Exceeded> {
        let need = PlaceCount {
            head_bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            ..PlaceCount::default()
        };
        let mut taken = self.of.taken();
        taken.take(self.account, need, OF_RECORDING.files).map(drop)
    }
}

/// Maximum number of files for which this process can have descriptors, beside those of which it had probes.
fn most_files(released: usize) -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    files_within(limit.unwrap_or(u64::MAX), released)
}

/// The same with a limit of descriptors.
fn files_within(limit: u64, released: usize) -> usize {
    let others = DESCRIPTORS_OF_RELEASED.saturating_mul(released as u64);
    let left = limit.saturating_sub(others.saturating_add(DESCRIPTORS_KEPT));
    let files = left / DESCRIPTORS_OF_FILE;
    usize::try_from(files).map_or(OF_RECORDING.files, |files| files.min(OF_RECORDING.files))
}

impl Taken {
    fn of(&self, account: Account) -> PlaceCount {
        self.accounts.get(&account).copied().unwrap_or_default()
    }

    fn take(
        &mut self,
        account: Account,
        need: PlaceCount,
        files: usize,
    ) -> Result<Account, Exceeded> {
        let of_all = PlaceCount {
            files,
            ..OF_RECORDING
        };
        let own = self.of(account);
        let own = own.plus(need);
        let all = self.all.plus(need);
        let parts = own.parts().into_iter().zip(all.parts());
        let limits = OF_ACCOUNT.parts().into_iter().zip(of_all.parts());
        for (((what, own), (_, all)), ((_, most), (_, most_of_all))) in parts.zip(limits) {
            let needs = need.parts().iter().any(|(name, n)| *name == what && *n > 0);
            let is_reserve = own > most_of_all.saturating_sub(all);
            if needs && (own > most || is_reserve) {
                return Err(Exceeded {
                    account,
                    what,
                    has: own,
                    most,
                    is_reserve: own <= most,
                });
            }
        }
        self.accounts.insert(account, own);
        self.all = all;
        Ok(account)
    }

    fn give_back(&mut self, account: Account, need: PlaceCount) {
        let given = need.given_back();
        self.all = self.all.minus(given);
        if let Some(own) = self.accounts.get_mut(&account) {
            *own = own.minus(given);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.taken().give_back(self.account, self.need);
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Places").field(&self.taken().all).finish()
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Place").field(&self.need).finish()
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            account: Account { user, namespace },
            what,
            has,
            most,
            is_reserve,
        } = self;
        match is_reserve {
            false => write!(
                f,
                "with this file, processes of user {user} would have {has} {what} (expected at most {most})"
            )?,
            true => write!(
                f,
                "with this file, processes of user {user} would have {has} {what}, more than is left for all others"
            )?,
        }
        match namespace {
            0 => Ok(()),
            inode => write!(f, ", in the namespace {inode}"),
        }
    }
}

/// `NS_GET_PARENT` and `NS_GET_OWNER_UID` (include/uapi/linux/nsfs.h).
const GET_PARENT: libc::c_ulong = 0xb702;
const GET_OWNER: libc::c_ulong = 0xb704;
/// Maximum number of user namespaces within each other (kernel/user_namespace.c, `create_user_ns`).
const MAX_LEVELS: usize = 33;

/// The account of a process; `None` if it has ended.
pub fn account_of(pid: u32) -> Option<Account> {
    let user = metadata(format!("/proc/{pid}")).ok()?.uid();
    let here = |kind: &str| Some(metadata(format!("/proc/self/ns/{kind}")).ok()?.ino());
    let of = |tid: u32, kind: &str| Some(metadata(format!("/proc/{tid}/ns/{kind}")).ok()?.ino());
    // A first thread that has ended has no namespaces.
    let tid = of(pid, "user").map_or_else(|| live_thread(pid), |_| pid);
    let its = |kind: &str| of(tid, kind);
    if its("user") != here("user") {
        let outer = outermost(tid);
        return Some(outer.unwrap_or_else(|_| Account::of_user(user)));
    }
    let inside = its("pid").filter(|inside| Some(*inside) != here("pid"));
    Some(Account {
        user,
        namespace: inside.unwrap_or(0),
    })
}

/// The account of processes below the outermost user namespace that a process is in, inside of the recorder's.
fn outermost(pid: u32) -> io::Result<Account> {
    let own = File::open("/proc/self/ns/user")?.metadata()?.ino();
    let mut space = File::open(format!("/proc/{pid}/ns/user"))?;
    for _ in 0..MAX_LEVELS {
        match parent(&space) {
            Ok(parent) if parent.metadata()?.ino() != own => space = parent,
            // Those around the recorder's are not shown.
            Ok(_) | Err(_) => break,
        }
    }
    let user = owner(&space)?;
    let namespace = match user {
        0 => space.metadata()?.ino(),
        _ => 0,
    };
    Ok(Account { user, namespace })
}

fn parent(space: &File) -> io::Result<File> {
    // SAFETY: the ioctl takes no argument.
    let parent = unsafe { libc::ioctl(space.as_raw_fd(), GET_PARENT) };
    if parent < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the ioctl has returned a new descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(parent) }.into())
}

fn owner(space: &File) -> io::Result<u32> {
    let mut user: libc::uid_t = 0;
    // SAFETY: the ioctl writes one `uid_t` to `user`.
    let outcome = unsafe { libc::ioctl(space.as_raw_fd(), GET_OWNER, &raw mut user) };
    match outcome {
        0.. => Ok(user),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Numbers of what is attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceCount {
    /// Number of files.
    pub files: usize,
    /// A site has at most one link.
    pub sites: usize,
    /// Forms of probes: each is an event of the trace.
    pub events: usize,
    /// Different argument strings: each takes a part of a program, which the kernel verifies.
    pub forms: usize,
    /// Arguments of all sites.
    pub arguments: usize,
    /// Bytes in the head of a trace ([`Place::take_head`]).
    pub head_bytes: usize,
}

impl PlaceCount {
    /// The count of a file with these probes.
    pub fn of_probes<'p>(probes: impl Iterator<Item = &'p Probe>) -> Self {
        let mut need = Self {
            files: 1,
            ..Self::default()
        };
        let mut all_forms: HashSet<&str> = HashSet::new();
        for probe in probes {
            let forms: HashSet<&str> = probe.sites.iter().map(|site| &*site.args).collect();
            need.events += forms.len();
            all_forms.extend(forms);
            need.sites += probe.sites.len();
            let arguments = probe.sites.iter().map(|site| words(&site.args));
            need.arguments = arguments.fold(need.arguments, usize::saturating_add);
        }
        need.forms = all_forms.len();
        need
    }

    /// Each number, with what it is of.
    const fn parts(self) -> [(&'static str, usize); 6] {
        [
            ("files", self.files),
            ("sites", self.sites),
            ("events", self.events),
            ("different lists of arguments", self.forms),
            ("arguments", self.arguments),
            ("bytes in the head of the trace", self.head_bytes),
        ]
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            files: self.files.saturating_add(other.files),
            sites: self.sites.saturating_add(other.sites),
            events: self.events.saturating_add(other.events),
            forms: self.forms.saturating_add(other.forms),
            arguments: self.arguments.saturating_add(other.arguments),
            head_bytes: self.head_bytes.saturating_add(other.head_bytes),
        }
    }

    const fn minus(self, other: Self) -> Self {
        Self {
            files: self.files.saturating_sub(other.files),
            sites: self.sites.saturating_sub(other.sites),
            events: self.events.saturating_sub(other.events),
            forms: self.forms.saturating_sub(other.forms),
            arguments: self.arguments.saturating_sub(other.arguments),
            head_bytes: self.head_bytes.saturating_sub(other.head_bytes),
        }
    }

    /// What is free again when its probes are detached.
    const fn given_back(self) -> Self {
        Self {
            events: 0,
            arguments: 0,
            head_bytes: 0,
            ..self
        }
    }

    /// The number that exceeds that of a maximum, what it is of, and the maximum.
    pub fn beyond(self, most: Self) -> Option<(usize, &'static str, usize)> {
        let mut parts = self.parts().into_iter().zip(most.parts());
        parts
            .find_map(|((what, number), (_, most))| (number > most).then_some((number, what, most)))
    }
}

/// Number of operands of an argument string, or more.
fn words(arguments: &str) -> usize {
    arguments.split_ascii_whitespace().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_of_its_user() {
        let user = rustix::process::geteuid().as_raw();
        let own = account_of(std::process::id());
        assert_eq!(own, Some(Account::of_user(user)));
        assert_eq!(account_of(u32::MAX), None);
    }

    /// A process that a command starts, and that waits until this is dropped.
    struct Waiting(std::process::Child, u32);

    impl Waiting {
        fn start(command: &str) -> Self {
            use std::io::Read as _;
            let script = format!("exec {command} sh -c 'echo >&2; read line'");
            let mut child = std::process::Command::new("sh")
                .args(["-c", &script])
                .stdin(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            // The command may have started another process.
            let mut byte = [0];
            child
                .stderr
                .as_mut()
                .unwrap()
                .read_exact(&mut byte)
                .unwrap();
            let mut pid = child.id();
            while let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
                && let Some(child) = text.split(' ').find_map(|word| word.parse().ok())
            {
                pid = child;
            }
            Self(child, pid)
        }

        fn account(&self) -> Account {
            account_of(self.1).unwrap()
        }

        fn namespace(&self, kind: &str) -> u64 {
            metadata(format!("/proc/{}/ns/{kind}", self.1))
                .unwrap()
                .ino()
        }
    }

    impl Drop for Waiting {
        fn drop(&mut self) {
            drop(self.0.stdin.take());
            let _ = self.0.wait();
        }
    }

    /// Any user can be any user in a namespace of his own, and in those below it.
    #[test]
    fn a_process_is_of_the_owner_of_its_namespace() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        const USER: &str = "setpriv --reuid 1234 --regid 1234 --clear-groups";
        let usual = Waiting::start(USER);
        assert_eq!(usual.account(), Account::of_user(1234));
        for command in [
            "unshare -U -r",
            "unshare -U -r unshare -U",
            "unshare -U -r -p -f --kill-child",
        ] {
            let process = Waiting::start(&format!("{USER} {command}"));
            assert_eq!(process.account(), Account::of_user(1234), "{command}");
        }
        // Containers of root: by the user namespace, or by the pid namespace if they have none.
        let contained = Waiting::start("unshare -U -r");
        let namespace = contained.namespace("user");
        assert_eq!(contained.account(), Account { user: 0, namespace });
        let contained = Waiting::start(&format!("unshare -p -f --kill-child {USER}"));
        let namespace = contained.namespace("pid");
        assert_eq!(
            contained.account(),
            Account {
                user: 1234,
                namespace
            }
        );
    }

    const ONE: PlaceCount = PlaceCount {
        files: 1,
        sites: 1,
        events: 1,
        forms: 1,
        arguments: 1,
        head_bytes: 0,
    };

    fn user(user: u32) -> [Account; 1] {
        [Account::of_user(user)]
    }

    /// Takes as many as can be had.
    fn take_all(places: &Places, account: u32) -> Vec<Place> {
        std::iter::from_fn(|| places.take(&user(account), ONE).ok()).collect()
    }

    #[test]
    fn a_user_leaves_room_for_others() {
        let places = Places::default();
        let first = take_all(&places, 1);
        assert_eq!(first.len(), OF_ACCOUNT.files.min(most_files(0) / 2));
        let error = places.take(&user(1), ONE).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("user 1 would have"), "{text}");
        let mut others = Vec::new();
        for account in 2..8 {
            let taken = take_all(&places, account);
            assert!(!taken.is_empty(), "user {account}");
            others.push(taken);
        }
        assert!(places.take(&user(0), ONE).is_ok());
        // One of several accounts has room.
        let both = [Account::of_user(1), Account::of_user(0)];
        assert!(places.take(&both, ONE).is_ok());
    }

    /// Any user may map one file after the other.
    #[test]
    fn files_whose_probes_are_detached_have_descriptors() {
        assert_eq!(files_within(u64::MAX, 48_000), OF_RECORDING.files);
        let kept = DESCRIPTORS_KEPT;
        assert_eq!(files_within(kept + 60, 0), 10);
        assert_eq!(files_within(kept + 60, 12), 6);
        assert_eq!(files_within(kept + 60, 31), 0);
        let places = Places::default();
        let need = PlaceCount {
            files: 1,
            ..PlaceCount::default()
        };
        let account = Account::of_user(1);
        drop(places.take(&[account], need).unwrap());
        assert_eq!(places.taken().released, 0);
        places.take(&[account], need).unwrap().release();
        let taken = places.taken();
        assert_eq!((taken.released, taken.all.files), (1, 0));
    }

    #[test]
    fn places_are_given_back_and_events_are_not() {
        let places = Places::default();
        let need = PlaceCount {
            events: 1000,
            ..ONE
        };
        for _ in 0..OF_ACCOUNT.events / 1000 {
            assert!(places.take(&user(1), need).is_ok());
        }
        let error = places.take(&user(1), need).unwrap_err();
        assert!(error.to_string().contains("events"), "{error}");
        let taken = places.taken();
        assert_eq!((taken.all.files, taken.all.sites), (0, 0));
        assert_eq!(taken.all.events, OF_ACCOUNT.events / 1000 * 1000);
    }

    /// Names may be long: the head of a trace is full before there are many events.
    #[test]
    fn a_user_leaves_bytes_of_the_head_for_others() {
        const PIECE: u64 = 1 << 20;
        let places = Places::default();
        let take_all = |account| {
            let place = places.take(&user(account), ONE).unwrap();
            (0..).take_while(|_| place.take_head(PIECE).is_ok()).count()
        };
        assert_eq!(take_all(1), OF_ACCOUNT.head_bytes >> 20);
        // They are not given back.
        let place = places.take(&user(1), ONE).unwrap();
        let error = place.take_head(PIECE).unwrap_err().to_string();
        assert!(error.contains(" bytes in the head of the trace"), "{error}");
        for account in 2..5 {
            assert!(take_all(account) > 0, "user {account}");
        }
    }

    #[test]
    fn a_file_that_exceeds_a_limit_is_named_with_it() {
        let many = PlaceCount {
            sites: OF_FILE.sites + 1,
            ..ONE
        };
        let beyond = many.beyond(OF_FILE);
        assert_eq!(beyond, Some((OF_FILE.sites + 1, "sites", OF_FILE.sites)));
        assert_eq!(ONE.beyond(OF_FILE), None);
    }
}
