//! Sums, means, histograms and keys of extreme numbers, beside exact arithmetic: integers of 64 bits, floats with infinities and NaN.

use usdtrec_report::Format;
use usdtrec_report::question::{GroupOrder, Question, Scale, Subject};
use usdtrec_testing::{repetitions, test};

use crate::support::{HIT, Hit, Recorded, Recording, random};

/// The integers of a row, and the bits of its float.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) unsigned: u64,
    pub(crate) signed: i64,
    pub(crate) float: u64,
}

/// A recording of `request` with the arguments `unsigned`, `signed` and `float`.
pub(crate) fn recording(rows: &[Row]) -> Recorded {
    let mut recording = Recording::with("/opt/app".as_ref(), |info| {
        let probe = &mut info.definitions.as_mut().unwrap().probes[0];
        probe.sites.truncate(1);
        probe.sites[0].site.args = "8@%rsi -8@8(%rsp) 8f@16(%rsp)".to_owned();
        probe.arguments.truncate(3);
        for (argument, name) in probe
            .arguments
            .iter_mut()
            .zip(["unsigned", "signed", "float"])
        {
            argument.name = name.to_owned();
        }
    });
    recording.comm(0, (100, 101), "worker", false);
    recording.mmap(0, 100, "/opt/app");
    for (at, row) in rows.iter().enumerate() {
        recording.hit(Hit {
            time: HIT.time + at as u64 * 1000,
            si: row.unsigned,
            stack: [0, row.signed as u64, row.float, 0],
            ..HIT
        });
        if at % 50 == 49 {
            recording.flush();
        }
    }
    recording.finish()
}

/// Rows of ordinary and extreme numbers. Floats are multiples of 2^-80 below 2^40, so that their sums can be worked out; and if `is_any`, all that there are.
pub(crate) fn rows(seed: u64, is_any: bool) -> Vec<Row> {
    let mut random = random(seed);
    let count = 1 + random(300);
    let mut word = move || random(1 << 31) << 33 ^ random(1 << 31) << 16 ^ random(1 << 31);
    let small = |word: u64| (word % 7) as i64 - 3;
    let float = |word: u64, choice: u64| match choice % 12 {
        0 if is_any => f64::NAN,
        1 if is_any => f64::INFINITY,
        2 if is_any => f64::NEG_INFINITY,
        3 if is_any => -f64::MAX,
        4 if is_any => f64::from_bits(1),
        5 => -0.0,
        6 => 0.0,
        7 => 2_f64.powi((word % 120) as i32 - 80),
        8 => -2_f64.powi((word % 120) as i32 - 80),
        9 => small(word) as f64,
        _ => (word as i64 >> 12) as f64 * 2_f64.powi(-12 - (word % 68) as i32),
    };
    let row = |_| {
        let [one, other, choice] = [word(), word(), word()];
        Row {
            unsigned: match choice % 5 {
                0 => u64::MAX,
                1 => u64::MAX - other % 3,
                2 => one,
                3 => 1 << 63,
                _ => other % 4,
            },
            signed: match choice / 5 % 5 {
                0 => i64::MIN,
                1 => i64::MAX,
                2 => one as i64,
                _ => small(other),
            },
            float: float(one, choice / 25).to_bits(),
        }
    };
    (0..count).map(row).collect()
}

/// A line of JSON, and the same as CSV columns. A number of JSON is compared as text: serde_json reads floats within a rounding only.
struct Group {
    json: String,
    columns: Vec<(String, String)>,
}

/// The only group.
fn group(recorded: &Recorded, argument: &str) -> Group {
    let groups = Question::Groups {
        sort: vec!["event".to_owned()],
        value: Some(argument.to_owned()),
        top: None,
        order: GroupOrder::Sum,
    };
    let json = recorded.same_answer(&groups, Format::Json);
    let csv = recorded.same_answer(&groups, Format::Csv);
    let (heading, line) = csv.split_once('\n').unwrap();
    let columns = heading.split(',').zip(line.trim_end().split(','));
    let columns = columns.map(|(name, field)| (name.to_owned(), field.to_owned()));
    Group {
        json: json.lines().next().unwrap().to_owned(),
        columns: columns.collect(),
    }
}

impl Group {
    /// A figure in CSV.
    fn csv(&self, name: &str) -> &str {
        let mut columns = self.columns.iter();
        let column = columns.find(|(column, _)| column == name);
        &column.unwrap().1
    }

    /// A figure as it is written in JSON.
    fn json(&self, name: &str) -> &str {
        let (_, rest) = self.json.split_once(&format!("\"{name}\":")).unwrap();
        rest.split([',', '}']).next().unwrap()
    }

    /// A float, the same in both.
    #[track_caller]
    fn float(&self, name: &str) -> f64 {
        let float: f64 = self.csv(name).parse().unwrap();
        let json = self.json(name).trim_matches('"');
        assert_eq!(json.parse::<f64>().unwrap().to_bits(), float.to_bits());
        assert_eq!(json.len() < self.json(name).len(), !float.is_finite());
        float
    }
}

/// Asserts that no float is nearer to a sum, in parts of 1, than this one.
#[track_caller]
fn is_nearest(float: f64, sum: i128, scale: f64) {
    let distance = |float: f64| ((float * scale) as i128 - sum).abs();
    for neighbour in [float.next_up(), float.next_down()] {
        assert!(distance(float) <= distance(neighbour), "{float} {sum}");
    }
}

#[test]
fn sums_of_integers_have_all_digits() {
    for seed in 0..repetitions("USDTREC_NUMBER_ROUNDS", 20) {
        let rows = rows(seed, false);
        let recorded = recording(&rows);
        let sums = [
            (
                "unsigned",
                rows.iter()
                    .map(|row| i128::from(row.unsigned))
                    .sum::<i128>(),
            ),
            (
                "signed",
                rows.iter().map(|row| i128::from(row.signed)).sum(),
            ),
        ];
        for (name, sum) in sums {
            let group = group(&recorded, name);
            let column = format!("{name}.sum");
            let [csv, json] = [group.csv(&column), group.json(&column)];
            assert_eq!(csv, sum.to_string());
            assert_eq!(json.trim_matches('"'), csv);
            let is_short = u64::try_from(sum).is_ok() || i64::try_from(sum).is_ok();
            assert_eq!(json.len() == csv.len(), is_short, "{json}");
            let mean = group.float(&format!("{name}.mean"));
            let exact = sum as f64 / rows.len() as f64;
            assert!(
                (mean - exact).abs() <= exact.abs() * f64::EPSILON,
                "{mean} {exact}"
            );
        }
    }
}

#[test]
fn sums_of_floats_are_rounded_once() {
    for seed in 0..repetitions("USDTREC_NUMBER_ROUNDS", 20) {
        let rows = rows(1000 + seed, false);
        let group = group(&recording(&rows), "float");
        // Multiples of 2^-80 are integers of 128 bits.
        let scale = 2_f64.powi(80);
        let floats = rows.iter().map(|row| f64::from_bits(row.float));
        let exact: i128 = floats.map(|float| (float * scale) as i128).sum();
        is_nearest(group.float("float.sum"), exact, scale);
    }
}

/// With infinities and NaN: what no float can be is none, whatever the order.
#[test]
fn sums_of_any_floats_say_what_they_are() {
    for seed in 0..repetitions("USDTREC_NUMBER_ROUNDS", 20) {
        let rows = rows(2000 + seed, true);
        let floats: Vec<f64> = rows.iter().map(|row| f64::from_bits(row.float)).collect();
        let numbers: Vec<f64> = floats
            .iter()
            .copied()
            .filter(|float| !float.is_nan())
            .collect();
        let group = group(&recording(&rows), "float");
        assert_eq!(group.csv("float.count"), numbers.len().to_string());
        if numbers.is_empty() {
            assert_eq!(group.csv("float.sum"), "");
            assert_eq!(group.json("float.sum"), "null");
            continue;
        }
        let infinite: Vec<f64> = numbers
            .iter()
            .copied()
            .filter(|one| one.is_infinite())
            .collect();
        let least = numbers.iter().filter(|one| **one == -f64::MAX).count();
        let expected = match (infinite.is_empty(), least) {
            (false, _) => infinite.iter().sum(),
            (true, 2..) => f64::NEG_INFINITY,
            (true, 1) => -f64::MAX,
            (true, 0) => continue,
        };
        assert_eq!(group.float("float.sum").to_string(), expected.to_string());
    }
}

/// A number as it is in CSV, in an order of all.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) enum Number {
    Integer(i128),
    Float(f64),
}

impl Number {
    pub(crate) fn parse(text: &str, is_float: bool) -> Self {
        match is_float {
            true => Self::Float(text.parse().unwrap()),
            false => Self::Integer(text.parse().unwrap()),
        }
    }
}

/// The arguments, each with all its numbers.
pub(crate) fn numbers(rows: &[Row]) -> [(&'static str, Vec<Number>); 3] {
    let integers = |of: fn(&Row) -> i128| rows.iter().map(of).map(Number::Integer).collect();
    let floats = rows
        .iter()
        .map(|row| Number::Float(f64::from_bits(row.float)));
    [
        ("unsigned", integers(|row| row.unsigned.into())),
        ("signed", integers(|row| row.signed.into())),
        ("float", floats.collect()),
    ]
}

/// The lines of CSV after the heading, each in its fields.
pub(crate) fn lines(csv: &str) -> impl Iterator<Item = Vec<&str>> {
    csv.lines().skip(1).map(|line| line.split(',').collect())
}

#[test]
fn every_number_is_in_the_bucket_that_has_it() {
    for seed in 0..repetitions("USDTREC_NUMBER_ROUNDS", 20) {
        let rows = rows(3000 + seed, true);
        let recorded = recording(&rows);
        for (name, numbers) in numbers(&rows) {
            for scale in [Scale::Log2, Scale::Linear] {
                let question = Question::Histogram {
                    of: Subject::Argument(name.to_owned()),
                    scale,
                };
                let csv = recorded.same_answer(&question, Format::Csv);
                let mut all = 0;
                for fields in lines(&csv) {
                    let [_, from, to, count] = *fields else {
                        panic!("{fields:?}");
                    };
                    let bound = |text| Number::parse(text, name == "float");
                    let (from, is_last) = (bound(from), to.is_empty());
                    let is_in =
                        |number: &&Number| **number >= from && (is_last || **number < bound(to));
                    let expected = numbers.iter().filter(is_in).count();
                    assert_eq!(
                        count,
                        expected.to_string(),
                        "{name} {scale:?} {fields:?} {csv}"
                    );
                    all += expected;
                }
                // NaN is in no bucket.
                let there = numbers
                    .iter()
                    .filter(|number| number.partial_cmp(number).is_some());
                assert_eq!(all, there.count(), "{name} {scale:?} {csv}");
            }
        }
    }
}

#[test]
fn each_number_is_a_key() {
    for seed in 0..repetitions("USDTREC_NUMBER_ROUNDS", 10) {
        let rows = rows(4000 + seed, true);
        let recorded = recording(&rows);
        for (name, numbers) in numbers(&rows) {
            let csv = recorded.report_as(Format::Csv, &[name]);
            let heading: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
            let column = |name: &str| heading.iter().position(|one| *one == name).unwrap();
            let mut all = 0;
            for fields in lines(&csv) {
                let key = Number::parse(fields[column(name)], name == "float");
                // NaN and both zeros are keys of their own.
                let is_it = |number: &&Number| format!("{number:?}") == format!("{key:?}");
                let expected = numbers.iter().filter(is_it).count();
                assert_eq!(
                    fields[column("samples")],
                    expected.to_string(),
                    "{name} {csv}"
                );
                all += expected;
            }
            assert_eq!(all, numbers.len(), "{name} {csv}");
        }
    }
}
