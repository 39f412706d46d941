//! Lines of JSON and CSV.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use usdtrec_analysis::stats::ratio::per_second;
use usdtrec_format::escape::escape_json;

use super::key::with_mark;
use super::{
    SpanFates, StatArgument, StatCounts, StatKey, StatRow, StatView, durations, nanoseconds,
};

/// The members that objects have besides those of keys, spans and arguments. Columns have the same names.
const MEMBERS: [&str; 8] = [
    "elapsed_ns",
    "interval_ns",
    "event",
    "cut",
    "others",
    "count",
    "per_second",
    "lost",
];

impl StatView {
    /// The member or column of each key: its name, after `key.` if another one is called so.
    fn key_members(&self) -> Vec<String> {
        let mut taken: BTreeSet<String> = MEMBERS.map(str::to_owned).into();
        if self.spans.is_some() {
            let fates = SpanFates::default().named();
            taken.insert("span".to_owned());
            taken.extend(fates.map(|fate| fate.name.to_owned()));
            taken.extend(durations::members());
        }
        taken.extend(self.measured.iter().flat_map(StatArgument::members));
        let members = self.keys.iter().map(|key| {
            let mut member = key.clone();
            while !taken.insert(member.clone()) {
                member.insert_str(0, "key.");
            }
            member
        });
        members.collect()
    }

    /// Appends an object for each row.
    pub(super) fn put_json(&self, counts: &StatCounts, out: &mut String) {
        let keys = self.key_members();
        for row in &counts.rows {
            let line = Value::Object(self.object(counts, row, &keys)).to_string();
            out.extend([&*escape_json(&line), "\n"]);
        }
    }

    fn object(&self, counts: &StatCounts, row: &StatRow, keys: &[String]) -> Map<String, Value> {
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
        put("elapsed_ns", json!(nanoseconds(counts.elapsed)));
        put("interval_ns", json!(nanoseconds(counts.interval)));
        put(if row.is_span { "span" } else { "event" }, json!(row.event));
        let mut cut = Map::new();
        for (place, name) in keys.iter().enumerate() {
            let key = key_of(row, place);
            put(name, key.map_or(Value::Null, |key| key.cell().json()));
            if key.is_some_and(StatKey::is_cut) {
                cut.insert(name.clone(), json!(true));
            }
        }
        if !cut.is_empty() {
            put("cut", Value::Object(cut));
        }
        if is_others(row) {
            put("others", json!(true));
        }
        put("count", json!(row.count));
        let interval = nanoseconds(counts.interval);
        put("per_second", json!(per_second(row.count, interval)));
        if !self.is_group(row) {
            put("lost", json!(row.lost));
        }
        if let Some(spans) = self.spans.filter(|_| row.is_span) {
            for fate in row.fates.into_iter().flat_map(SpanFates::named) {
                object.insert(fate.name.to_owned(), json!(fate.count));
            }
            durations::put_json(spans, row.durations(), &mut object);
            return object;
        }
        for (place, argument) in self.measured.iter().enumerate() {
            argument.put_json(row.numbers_of(place), &mut object);
        }
        object
    }

    pub(super) fn put_csv_heading(&self, out: &mut String) {
        let csv = self.format.csv();
        out.push_str("elapsed_ns,interval_ns,event,");
        if self.spans.is_some() {
            out.push_str("span,");
        }
        for name in self.key_members() {
            out.extend([&*csv.field(&name), ","]);
        }
        if !self.keys.is_empty() {
            out.push_str("others,");
        }
        out.push_str("count,per_second,lost");
        if self.spans.is_some() {
            for fate in SpanFates::default().named() {
                out.extend([",", fate.name]);
            }
            durations::put_csv_heading(out);
        }
        for argument in &self.measured {
            argument.put_csv_heading(csv, out);
        }
        out.push('\n');
    }

    /// Appends a line for each row.
    pub(super) fn put_csv(&self, counts: &StatCounts, out: &mut String) {
        let csv = self.format.csv();
        let interval = nanoseconds(counts.interval);
        for row in &counts.rows {
            let elapsed = nanoseconds(counts.elapsed);
            let event = csv.field(&row.event);
            out.push_str(&match (self.spans, row.is_span) {
                (None, _) => format!("{elapsed},{interval},{event},"),
                (Some(_), false) => format!("{elapsed},{interval},{event},,"),
                (Some(_), true) => format!("{elapsed},{interval},,{event},"),
            });
            for (place, _) in self.keys.iter().enumerate() {
                let field = key_of(row, place).map_or_else(String::new, |key| match key.cell() {
                    cell if key.is_cut() => csv.field(&with_mark(cell.text, true)).into_owned(),
                    cell => cell.csv(csv).into_owned(),
                });
                out.extend([&*field, ","]);
            }
            if !self.keys.is_empty() {
                out.push_str(if is_others(row) { "true," } else { "," });
            }
            let rate = per_second(row.count, interval);
            let rate = rate.map_or_else(String::new, |rate| rate.to_string());
            out.push_str(&format!("{},{rate},", row.count));
            if !self.is_group(row) {
                out.push_str(&row.lost.to_string());
            }
            if self.spans.is_some() {
                let fates = row.fates.map(SpanFates::named);
                for place in 0..SpanFates::default().named().len() {
                    let count = fates.map(|fates| fates[place].count);
                    out.extend([
                        ",",
                        &*count.map_or_else(String::new, |count| count.to_string()),
                    ]);
                }
                durations::put_csv(row.durations(), out);
            }
            for (place, argument) in self.measured.iter().enumerate() {
                argument.put_csv(row.numbers_of(place).filter(|_| !row.is_span), out);
            }
            out.push('\n');
        }
    }

    /// Whether a row is a group of the hits of a probe.
    const fn is_group(&self, row: &StatRow) -> bool {
        !self.keys.is_empty() && row.keys.is_some()
    }
}

fn key_of(row: &StatRow, place: usize) -> Option<&StatKey> {
    row.keys.as_ref()?.get(place)
}

/// Whether a row is of hits in no group.
const fn is_others(row: &StatRow) -> bool {
    row.keys.is_none()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::StatSpans;
    use super::*;
    use crate::format::Format;

    fn shown(format: Format, keys: &[&str], with_spans: bool) -> String {
        let values = (0..keys.len()).map(|place| StatKey::Number(place as u32));
        let row = StatRow {
            event: "sdt_app:req".to_owned(),
            is_span: false,
            keys: Some(values.collect()),
            count: 99,
            lost: 0,
            numbers: vec![None],
            fates: None,
        };
        let counts = StatCounts {
            elapsed: Duration::from_secs(1),
            interval: Duration::from_secs(1),
            rows: vec![row],
        };
        let argument = StatArgument {
            name: "key".to_owned(),
            has_histogram: true,
        };
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        let view = StatView::new(format, false, keys, vec![argument]);
        let spans = with_spans.then_some(StatSpans {
            has_histogram: true,
        });
        view.with_spans(spans).show(&counts)
    }

    /// Keys are arguments, which can have any name.
    #[test]
    fn no_two_members_or_columns_have_the_same_name() {
        let keys = [
            "lost", "count", "others", "url", "open", "mean_ns", "buckets",
        ];
        for with_spans in [false, true] {
            let json: Value =
                serde_json::from_str(&shown(Format::Json, &keys, with_spans)).unwrap();
            assert_eq!((&json["count"], &json["url"]), (&json!(99), &json!(3)));
            assert_eq!(json["key.lost"], 0);
            // `--hist key` has a member of this name.
            assert_eq!(
                (&json["key.count"], &json["key.key.count"]),
                (&Value::Null, &json!(1))
            );
            let [own, other] = match with_spans {
                true => ["key.open", "open"],
                false => ["open", "key.open"],
            };
            assert_eq!((&json[own], &json[other]), (&json!(4), &Value::Null));
            let csv = shown(Format::Csv, &keys, with_spans);
            let columns: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
            let different: BTreeSet<&&str> = columns.iter().collect();
            assert_eq!(different.len(), columns.len(), "{csv}");
            for key in ["key.lost", "key.key.count", "key.others", "url", own] {
                assert!(columns.contains(&key), "{key}: {csv}");
            }
        }
        let twice = shown(Format::Csv, &["url", "url"], false);
        assert!(twice.contains(",url,key.url,others,"), "{twice}");
    }
}
