//! A recording that follows nothing does all that needs capabilities when it begins, and drops them.
//!
//! What processes have mapped up to then is planted, and all processes are verified. Later the rings are drained and files are written: both need
//! descriptors only. What is not possible any more is said: files that are mapped later are counted as not read, processes that cannot be
//! read as not checked. The names and mappings with which a next file begins are those of the table of processes, because `/proc` does not show them.

use std::sync::mpsc::TryRecvError;
use std::thread;
use std::time::{Duration, Instant};

use usdtrec_attach::error::RecordError;
use usdtrec_buildid_cache::served;
use usdtrec_kernel::KernelError;
use usdtrec_kernel::host::capabilities;
use usdtrec_watch::left_breakpoints::KernelLog;
use usdtrec_watch::verify::Verifier;

use super::Recording;
use crate::recording::metadata::Synthesised;

/// Maximum time for planting what was mapped meanwhile, and for verifying.
const LIMIT: Duration = Duration::from_secs(2);
/// Interval of draining the rings meanwhile.
const STEP: Duration = Duration::from_millis(1);

impl Recording {
    /// Follows nothing from now on, and drops all capabilities. `running` is what was read of the processes that run.
    ///
    /// # Errors
    /// [`RecordError::Capabilities`]; those of writing the trace.
    pub(super) fn end_following(&mut self, running: &Synthesised) -> Result<(), RecordError> {
        self.drain();
        let known = running.known.clone();
        self.session.build_ids.read_no_more(known);
        let begun = Instant::now();
        while self.follower.is_reading() && begun.elapsed() < LIMIT {
            self.pass()?;
        }
        self.follower.close();
        self.plant_found()?;
        let verifier = self.pipeline.stage::<Verifier>();
        let looked = verifier.map(Verifier::look_first);
        let is_looking = || {
            (looked.as_ref()).is_some_and(|looked| looked.try_recv() == Err(TryRecvError::Empty))
        };
        let begun = Instant::now();
        while is_looking() && begun.elapsed() < LIMIT {
            self.pass()?;
        }
        self.log = KernelLog::from_now();
        // Helpers would keep theirs.
        served::end();
        capabilities::drop_all().map_err(RecordError::Capabilities)?;
        // Before Linux 5.19 the kernel may need capabilities to read maps, too.
        let checked = self.session.attached.engine.check_hit_groups();
        Ok(checked.map_err(KernelError::host("maps without capabilities"))?)
    }

    fn pass(&mut self) -> Result<(), RecordError> {
        self.drain();
        self.plant_found()?;
        thread::sleep(STEP);
        Ok(())
    }
}
