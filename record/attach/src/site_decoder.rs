//! The arguments of the samples of a site, decoded while recording.

use usdtrec_decode::Decoder;
use usdtrec_format::perf::{Sample, SampleLayout};
use usdtrec_format::{ThreadContext, Value};

use crate::engine::ProbeAttr;
use crate::select::probe::PlannedProbe;

/// Decodes the samples of one site.
#[derive(Clone, Debug)]
pub struct SiteDecoder {
    decoder: Decoder,
    values: Vec<Value>,
    layout: SampleLayout,
    /// Offset of the thread context in the raw part.
    thread_context: Option<u16>,
}

impl SiteDecoder {
    /// Those of the sites of a probe, by sample id.
    pub fn of_probe<'a>(
        probe: &'a PlannedProbe,
        attrs: &'a ProbeAttr,
    ) -> impl Iterator<Item = (u64, Self)> + 'a {
        let attr = &attrs.attr.attr;
        let sites = probe.sites.iter().zip(&attrs.site_ids);
        sites.flat_map(move |(site, ids)| {
            let decoder = match &probe.plan.raw {
                Some(layout) => Decoder::from_raw(&site.site.args, probe.arch, layout),
                None => Decoder::from_operands(&site.operands, probe.arch, attr),
            };
            let decoder = decoder.typed(&probe.arguments);
            ids.iter().map(move |id| {
                let site = Self {
                    values: decoder.values(),
                    decoder: decoder.clone(),
                    layout: SampleLayout::new(attr),
                    thread_context: probe.plan.raw.as_ref().and_then(|raw| raw.thread_context),
                };
                (*id, site)
            })
        })
    }

    /// The fields of a sample; `None` if it is too short.
    pub fn parse<'s>(&self, body: &'s [u8]) -> Option<Sample<'s>> {
        self.layout.parse(body)
    }

    /// The arguments of a sample.
    pub fn values(&mut self, sample: &Sample<'_>) -> &[Value] {
        self.decoder.decode(sample, &mut self.values);
        &self.values
    }

    /// The thread context of a sample, if it has one.
    pub fn context(&self, sample: &Sample<'_>) -> Option<ThreadContext> {
        let at = self.thread_context?;
        ThreadContext::decode(sample.raw, at).ok()
    }
}
