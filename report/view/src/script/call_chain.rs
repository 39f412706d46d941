//! Call chains in lines.

use std::borrow::Cow;

use usdtrec_format::SourceLine;
use usdtrec_trace::fields::{Field, Fields};
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::resolver::{CodeLocation, Resolver};
use usdtrec_trace::symbols::known_inlining::FoundInlining;
use usdtrec_trace::unwind::CallChains;
use usdtrec_trace::unwind::chain_address::ChainAddress;
use usdtrec_trace::unwind::known_cut::KnownCut;

use crate::stack_cut::reason;

/// Finds the call chains of hits. One a thread.
#[derive(Debug)]
pub(crate) struct LineChains<'s> {
    chains: CallChains<'s>,
    /// The addresses of a call chain.
    addresses: Vec<ChainAddress>,
}

/// A frame of a call chain.
#[derive(Clone, Copy)]
pub(crate) struct LineFrame<'f> {
    pub(crate) address: u64,
    /// What the function is called; `None` if it is not known.
    pub(crate) function: Option<&'f str>,
    /// The place of the function that is not inlined.
    pub(crate) place: &'f CodeLocation,
    pub(crate) source: Option<&'f SourceLine>,
    pub(crate) is_inlined: bool,
}

impl<'f> LineFrame<'f> {
    /// A frame of a function that is not inlined.
    pub(crate) fn new(
        address: u64,
        place: &'f CodeLocation,
        source: Option<&'f SourceLine>,
    ) -> Self {
        Self {
            address,
            function: place.symbol.as_ref().map(|symbol| &*symbol.name),
            place,
            source,
            is_inlined: false,
        }
    }
}

impl<'s> LineChains<'s> {
    pub(crate) fn new(session: &'s TraceSession, max_stack: Option<usize>) -> Self {
        Self {
            chains: CallChains::new(session, max_stack),
            addresses: Vec::new(),
        }
    }

    /// Calls `each` with the frames of a hit and of its callers, those of inlined functions before that of the function that they are in. Gives
    /// why there are no more of them.
    pub(crate) fn each(
        &mut self,
        resolver: &mut Resolver<'s>,
        fields: Fields,
        Hit { target, sample }: Hit<'_>,
        mut each: impl FnMut(&LineFrame<'_>),
    ) -> Option<Cow<'static, str>> {
        self.addresses.clear();
        let cut = self.chains.find(target, sample, &mut self.addresses);
        let cut = resolver.settle_chain(target, sample, &mut self.addresses, cut);
        let session = resolver.session();
        let shows_inlined = session.shows_inlined();
        for &frame in &self.addresses {
            let (place, found) = match shows_inlined || fields.has(Field::Srcline) {
                true => resolver.inlining(sample, frame),
                false => (resolver.place_of(sample, frame), None),
            };
            let source = match shows_inlined {
                true => found.and_then(|found| found.source.as_ref()),
                false => found.and_then(FoundInlining::innermost),
            };
            let of_function = LineFrame::new(frame.address, place, source);
            let inlined = found.filter(|_| shows_inlined);
            for call in inlined.map_or(&[][..], |found| &found.calls) {
                each(&LineFrame {
                    function: Some(&call.name),
                    source: call.source.as_ref(),
                    is_inlined: true,
                    ..of_function
                });
            }
            each(&of_function);
        }
        cut.map(|cut| reason(&KnownCut::new(session, cut)))
    }
}
