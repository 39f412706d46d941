//! Events counted by groups.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use usdtrec_analysis::groups::stats::ValueFacts;
use usdtrec_analysis::groups::table::SampleCount;
use usdtrec_analysis::groups::{GroupTable, Grouped};
use usdtrec_analysis::stats::keys::key::Key;
use usdtrec_analysis::stats::ratio::share;

use crate::answer::figure::Figure;
use crate::answer::key_values::KeyValues;
use crate::report::groups::{bound, figures};

/// A group of events.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupRow {
    /// The values of its keys; `null` for groups that are not shown.
    #[serde(flatten)]
    pub keys: KeyValues,
    /// If it stands for the groups that are not shown: what is known of them.
    #[serde(flatten)]
    pub others: Option<OtherGroupsRow>,
    /// Its share of the event's weight, 0 to 1.
    pub overhead: f64,
    /// Number of events.
    pub samples: u64,
    /// The event; `None` if `event` is a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The statistics of an argument, if they are requested.
    #[serde(flatten)]
    pub value: Option<ValueStatistics>,
}

/// Groups that are not shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OtherGroupsRow {
    /// `true`.
    pub others: bool,
    /// Number of groups; `None` if they are too many to be counted.
    pub groups: Option<usize>,
    /// What one of them may have at most of what groups are sorted by, if that is more than the last one shown has.
    pub doubtful: Option<Figure>,
}

/// Statistics of the numbers of an argument. In JSON, members have the argument's name and a dot before theirs.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueStatistics {
    /// Name of the argument.
    pub name: String,
    /// Number of numbers.
    pub count: u64,
    /// Sum; this and the others are `None` without numbers.
    pub sum: Option<Figure>,
    /// Mean.
    pub mean: Option<Figure>,
    /// The least.
    pub min: Option<Figure>,
    /// Median.
    pub p50: Option<Figure>,
    /// 90th percentile.
    pub p90: Option<Figure>,
    /// 99th percentile.
    pub p99: Option<Figure>,
    /// The greatest.
    pub max: Option<Figure>,
    /// Whether percentiles are exact; else they are within 1/256 of themselves.
    pub exact: bool,
}

impl GroupRow {
    /// The groups of all tables.
    pub(crate) fn all(grouped: &Grouped) -> Vec<Self> {
        let mut all = Vec::new();
        for table in &grouped.tables {
            let row = |count, stats| Self::counted(grouped, table, count, stats);
            all.extend(table.rows.iter().map(|group| Self {
                keys: KeyValues::new(&grouped.keys, &group.values),
                ..row(group.count, group.stats.as_ref())
            }));
            all.extend(table.others.as_ref().map(|others| {
                Self {
                    keys: KeyValues::none(grouped.keys.iter().map(Key::name)),
                    others: Some(OtherGroupsRow {
                        others: true,
                        groups: others.groups,
                        doubtful: others
                            .doubtful
                            .and_then(|most| Figure::from_decimal(&bound(most))),
                    }),
                    ..row(others.count, others.stats.as_ref())
                }
            }));
        }
        all
    }

    /// A group without its keys.
    fn counted(
        grouped: &Grouped,
        table: &GroupTable,
        count: SampleCount,
        stats: Option<&ValueFacts>,
    ) -> Self {
        let value = grouped.value.as_ref().zip(stats);
        Self {
            keys: KeyValues::default(),
            others: None,
            overhead: share(count.weight, table.total.weight),
            samples: count.samples,
            event: table.event.clone(),
            value: value.map(|(name, stats)| ValueStatistics::new(name, stats)),
        }
    }
}

impl ValueStatistics {
    fn new(name: &str, stats: &ValueFacts) -> Self {
        let [sum, mean, min, p50, p90, p99, max] =
            figures(stats).map(|figure| Figure::from_decimal(&figure));
        Self {
            name: name.to_owned(),
            count: stats.count,
            sum,
            mean,
            min,
            p50,
            p90,
            p99,
            max,
            exact: stats.exact,
        }
    }
}

impl Serialize for ValueStatistics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let name = &self.name;
        map.serialize_entry(&format!("{name}.count"), &self.count)?;
        let figures = [
            ("sum", &self.sum),
            ("mean", &self.mean),
            ("min", &self.min),
            ("p50", &self.p50),
            ("p90", &self.p90),
            ("p99", &self.p99),
            ("max", &self.max),
        ];
        for (figure, number) in figures {
            map.serialize_entry(&format!("{name}.{figure}"), number)?;
        }
        map.serialize_entry(&format!("{name}.exact"), &self.exact)?;
        map.end()
    }
}
