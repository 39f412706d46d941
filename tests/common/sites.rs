//! Sites as `list --format json` prints them.

use std::path::Path;

use serde_json::Value;

use super::{Event, Lab};

/// One site of a probe.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// `sdt_PROVIDER:NAME`.
    pub(crate) event: String,
    pub(crate) pc: u64,
    /// File offset.
    pub(crate) offset: u64,
    /// Link-time address; 0 if it has none.
    pub(crate) semaphore: u64,
    /// The argument string's parts.
    pub(crate) operands: Vec<String>,
}

/// The sites of a file.
#[track_caller]
pub(crate) fn sites_of(lab: &Lab, file: &Path) -> Vec<Site> {
    let file = file.to_str().expect("a path in UTF-8");
    let list = lab
        .usdtrec(["list", "--format", "json", "--file", file])
        .success();
    list.stdout.lines().flat_map(sites_of_probe).collect()
}

/// The sites on one line of JSON.
fn sites_of_probe(line: &str) -> Vec<Site> {
    let probe: Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
    let text = |value: &Value| {
        value
            .as_str()
            .unwrap_or_else(|| panic!("{line}"))
            .to_owned()
    };
    let sites = probe["sites"]
        .as_array()
        .unwrap_or_else(|| panic!("{line}"));
    sites
        .iter()
        .map(|site| Site {
            event: text(&probe["event"]),
            pc: address(&text(&site["pc"])),
            offset: site["offset"].as_str().map_or(0, address),
            semaphore: site["semaphore"].as_str().map_or(0, address),
            operands: text(&site["args"])
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
        })
        .collect()
}

fn address(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("an address")
}

/// The site that an event was hit at: where a file is mapped, the offset in a page stays.
#[track_caller]
pub(crate) fn site_of<'sites>(event: &Event, sites: &'sites [Site]) -> &'sites Site {
    let in_page = |address: u64| address & 0xfff;
    sites
        .iter()
        .find(|site| site.event == event.event && in_page(site.pc) == in_page(event.ip))
        .unwrap_or_else(|| panic!("{event:?} is at no site of its probe"))
}
