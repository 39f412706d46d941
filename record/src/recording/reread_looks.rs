//! Has what processes map read again, between two passes.

use std::collections::HashSet;
use std::time::Instant;

use usdtrec_buildid_cache::MappedInode;

use super::Recording;
use super::rereading::Reading;

impl Recording {
    /// Has the files read whose records may have been lost, and has those attached that were found.
    pub(super) fn read_again(&mut self) {
        let build_ids = &self.session.build_ids;
        let lost = build_ids.missed_mappings();
        if self.follower.is_on() && self.rereading.is_due(lost, Instant::now()) {
            let options = &self.session.options;
            let read = options.following.read.as_deref();
            let mut known: HashSet<MappedInode> = build_ids.known_inodes().into_keys().collect();
            known.extend(read.into_iter().flatten());
            known.extend(&self.rereading.known);
            let reading = Reading {
                target: options.target.clone(),
                inherit: options.inherit,
                known,
                only: None,
            };
            self.rereading.begin(lost, reading);
        }
        if let Some(found) = self.rereading.take() {
            let left_out = self.follower.take(found.new);
            self.rereading.leave_out(&left_out);
            self.session.build_ids.forget(left_out);
            for file in found.put_off {
                self.session.build_ids.try_again(file);
            }
        }
    }
}
