//! Recordings of all hits of a program.

use crate::common::Lab;

/// A recording of which nothing is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeRecording<'a> {
    /// Name of the file in the lab.
    pub(crate) file: &'a str,
    pub(crate) event: &'a str,
    /// Further options.
    pub(crate) options: &'a [&'a str],
    pub(crate) command: &'a [&'a str],
}

impl WholeRecording<'_> {
    /// Records; the number of events.
    pub(crate) fn make(&self, lab: &Lab) -> u64 {
        let usual = ["record", "-q", "-m", "1G", "-o", self.file];
        let event = ["-e", self.event];
        let arguments = [&usual, self.options, &event, &["--"], self.command].concat();
        lab.usdtrec(arguments).success();
        let report = lab.usdtrec(["report", "-i", self.file, "--format", "json"]);
        let report: serde_json::Value =
            serde_json::from_str(&report.success().stdout).expect("a report");
        assert_eq!(report["lost"], 0);
        report["events"].as_u64().expect("a number")
    }
}
