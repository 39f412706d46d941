//! Tracks of threads and of spans.

use foldhash::HashMap;
use usdtrec_analysis::rows::hit_row::HitRow;
use usdtrec_trace::session::TraceSession;

use crate::perfetto::fields::{SEQUENCE, packet, track};
use crate::protobuf::Proto;
use crate::thread_names::{NewNames, ThreadNames};

/// Tracks, numbered from 1.
#[derive(Debug, Default)]
pub(crate) struct Tracks {
    names: ThreadNames,
    threads: HashMap<ThreadKey, u64>,
    processes: HashMap<i32, u64>,
    count: u64,
}

/// A thread of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ThreadKey {
    pid: i32,
    tid: i32,
}

impl Tracks {
    /// The track of a thread, which is described where it or its name is new.
    pub(crate) fn of_thread(
        &mut self,
        session: &TraceSession,
        row: &HitRow,
        out: &mut Proto,
    ) -> u64 {
        let key = ThreadKey {
            pid: row.pid,
            tid: row.tid,
        };
        let news = self.names.see(session, row);
        let known = self.threads.get(&key).copied();
        let Some(news) = news else {
            if let Some(known) = known {
                return known;
            }
            return self.describe(key, known, None, out);
        };
        self.process(row.pid, news, out);
        self.describe(key, known, news.thread, out)
    }

    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Describes a process of which something is new.
    fn process(&mut self, pid: i32, news: NewNames<'_>, out: &mut Proto) {
        let NewNames {
            process: name,
            cgroup,
            ..
        } = news;
        if name.is_none() && cgroup.is_none() {
            return;
        }
        let known = self.processes.get(&pid).copied();
        let uuid = known.unwrap_or_else(|| self.next());
        self.processes.insert(pid, uuid);
        descriptor(out, uuid, |one| {
            one.message(track::PROCESS, |process| {
                process.signed(track::PROCESS_PID, pid.into());
                if let Some(name) = name {
                    process.bytes(track::PROCESS_NAME, name.as_bytes());
                }
                if let Some(cgroup) = cgroup {
                    process.bytes(track::PROCESS_LABELS, cgroup.as_bytes());
                }
            });
        });
    }

    fn describe(
        &mut self,
        key: ThreadKey,
        known: Option<u64>,
        name: Option<&str>,
        out: &mut Proto,
    ) -> u64 {
        let uuid = known.unwrap_or_else(|| self.next());
        self.threads.insert(key, uuid);
        descriptor(out, uuid, |one| {
            one.message(track::THREAD, |thread| {
                thread.signed(track::THREAD_PID, key.pid.into());
                thread.signed(track::THREAD_TID, key.tid.into());
                if let Some(name) = name {
                    thread.bytes(track::THREAD_NAME, name.as_bytes());
                }
            });
        });
        uuid
    }

    /// A new track below that of a thread.
    pub(crate) fn below(&mut self, thread: u64, out: &mut Proto) -> u64 {
        let uuid = self.next();
        descriptor(out, uuid, |one| {
            one.unsigned(track::PARENT, thread);
            one.bytes(track::NAME, b"spans that do not nest");
        });
        uuid
    }

    /// A new track of what was lost.
    pub(crate) fn of_losses(&mut self, out: &mut Proto) -> u64 {
        let uuid = self.next();
        descriptor(out, uuid, |one| one.bytes(track::NAME, b"lost events"));
        uuid
    }
}

fn descriptor(out: &mut Proto, uuid: u64, more: impl FnOnce(&mut Proto)) {
    out.message(packet::SELF, |one| {
        one.unsigned(packet::SEQUENCE_ID, SEQUENCE);
        one.message(packet::TRACK, |described| {
            described.unsigned(track::UUID, uuid);
            more(described);
        });
    });
}
