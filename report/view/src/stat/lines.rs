//! Lines of JSON and CSV.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use usdtrec_analysis::stats::ratio::per_second;
use usdtrec_format::escape::escape_json;

use super::member::Member;
use super::{StatCounts, StatKey, StatRow, StatView, durations, nanoseconds};
use crate::cells::Cell;

impl StatView {
    /// The member or column of each key: its name, after `key.` if another one is called so.
    fn key_members(&self) -> Vec<String> {
        let others = self.members(&StatCounts::default(), &StatRow::default(), &[]);
        let mut taken: BTreeSet<String> = others.into_iter().map(|other| other.name).collect();
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
            let members = self.members(counts, row, &keys).into_iter();
            let members = members.filter_map(|member| Some((member.name, member.value?)));
            let line = Value::Object(members.collect()).to_string();
            out.extend([&*escape_json(&line), "\n"]);
        }
    }

    /// What JSON and CSV have of a row, in the order of CSV.
    fn members(&self, counts: &StatCounts, row: &StatRow, keys: &[String]) -> Vec<Member> {
        let interval = nanoseconds(counts.interval);
        let is_span = row.is_span;
        let event = json!(row.event);
        let mut all = vec![
            Member::new("elapsed_ns", Some(json!(nanoseconds(counts.elapsed)))),
            Member::new("interval_ns", Some(json!(interval))),
            Member::new("event", Some(event.clone())).only_if(!is_span),
        ];
        if self.spans.is_some() {
            all.push(Member::new("span", Some(event)).only_if(is_span));
        }
        let mut cut = Map::new();
        for (place, name) in keys.iter().enumerate() {
            let key = row.keys.as_ref().and_then(|keys| keys.get(place));
            let cell = key.map(StatKey::cell);
            if cell.as_ref().is_some_and(|cell| cell.is_cut) {
                cut.insert(name.clone(), json!(true));
            }
            let value = cell.as_ref().map_or(Value::Null, Cell::json);
            let csv = self.format.csv();
            let field = cell.map(|cell| cell.csv(csv).into_owned());
            all.push(Member::new(name, Some(value)).with_field(field));
        }
        let has_cut = !cut.is_empty();
        all.push(
            Member::new("cut", Some(cut.into()))
                .only_if(has_cut)
                .column_if(false),
        );
        let others = Member::new("others", Some(json!(true))).only_if(row.keys.is_none());
        all.push(others.column_if(!self.keys.is_empty()));
        all.push(Member::new("count", Some(json!(row.count))));
        let rate = per_second(row.count, interval);
        let text = rate.map(|rate| rate.to_string());
        all.push(Member::new("per_second", Some(json!(rate))).with_field(text));
        all.push(Member::new("lost", Some(json!(row.lost))).only_if(!self.is_group(row)));
        if let Some(spans) = self.spans {
            for fate in row.fates.unwrap_or_default().named() {
                let count = Member::new(fate.name, Some(json!(fate.count)));
                all.push(count.only_if(row.fates.is_some()));
            }
            let durations = durations::members(spans, row).into_iter();
            all.extend(durations.map(|member| member.only_if(is_span)));
        }
        for (place, argument) in self.measured.iter().enumerate() {
            let numbers = argument.members(row.numbers_of(place)).into_iter();
            all.extend(numbers.map(|member| member.only_if(!is_span)));
        }
        all
    }

    /// Appends the heading of CSV.
    pub(super) fn put_csv_heading(&self, out: &mut String) {
        let keys = self.key_members();
        let members = self.members(&StatCounts::default(), &StatRow::default(), &keys);
        let names = members.iter().filter(|member| member.is_column);
        let names = names.map(|member| self.format.csv().field(&member.name));
        out.extend([names.collect::<Vec<_>>().join(","), "\n".to_owned()]);
    }

    /// Appends a line of CSV for each row.
    pub(super) fn put_csv(&self, counts: &StatCounts, out: &mut String) {
        let keys = self.key_members();
        for row in &counts.rows {
            let members = self.members(counts, row, &keys);
            let fields = members.iter().filter(|member| member.is_column);
            let fields = fields.map(|member| member.field(self.format.csv()));
            out.extend([fields.collect::<Vec<_>>().join(","), "\n".to_owned()]);
        }
    }

    /// Whether a row is a group of the hits of a probe.
    const fn is_group(&self, row: &StatRow) -> bool {
        !self.keys.is_empty() && row.keys.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{StatArgument, StatSpans};
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
            has_parts: false,
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
