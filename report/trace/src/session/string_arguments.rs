//! Which arguments are strings, as the hits of their sites have shown, or a filter says.

use usdtrec_format::expr::{Expr, Name};
use usdtrec_format::trace::StringArgument;

use crate::session::events::Events;
use crate::session::ids::SampleIds;

/// Takes what the hits of sites have shown of their arguments.
pub(crate) fn learn(events: &mut Events, ids: &SampleIds, strings: &[StringArgument]) {
    for string in strings {
        let site = ids.get(string.site).and_then(|target| target.site);
        if let Some(site) = site.and_then(|site| events.sites.get_mut(site as usize)) {
            site.decoder.learn_string(string);
        }
    }
}

/// Has the arguments that a filter compares with a string be strings, of all events but the first `former`.
pub(crate) fn declare(events: &mut Events, former: usize, filter: &str) {
    // One that is wrong is reported where it is used.
    let Ok(filter) = Expr::parse(filter) else {
        return;
    };
    let Events { events, sites, .. } = events;
    filter.each_string(&mut |Name { text: name, .. }| {
        // An argument of one of the two events of a span has the event's name in front.
        let (event_name, bare) = name.rsplit_once('.').unwrap_or(("", name));
        for event in events.iter().skip(former) {
            let of_event = || event.is_called(event_name).then(|| event.argument(bare));
            let argument = event.argument(name).or_else(|| of_event().flatten());
            let Some(argument) = argument else { continue };
            for site in sites.get_mut(event.sites.clone()).unwrap_or_default() {
                site.decoder.declare_string(argument);
            }
        }
    });
}
