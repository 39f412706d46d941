//! A site with its operands.

use usdtrec_format::{Arch, CodePlace, Operand, Site, parse_operands};

/// A site and its operands.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedSite {
    /// The site.
    pub site: Site,
    /// The operands in its argument string.
    pub operands: Vec<Operand>,
    /// Where in the code it is, as far as is known.
    pub place: CodePlace,
}

impl PlannedSite {
    /// Parses the argument string of a site in a file of this architecture.
    #[must_use]
    pub fn new(site: Site, arch: Option<Arch>) -> Self {
        Self {
            operands: parse_operands(&site.args, arch),
            site,
            place: CodePlace::default(),
        }
    }
}
