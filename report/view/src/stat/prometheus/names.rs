//! Names of metrics and labels by the rules of Prometheus: letters, digits and `_`, in small letters, with the base unit at the end.

use usdtrec_format::schema::Unit;

/// What the names of samples of histograms and summaries end with, after that of the metric.
const SAMPLES: [&str; 3] = ["_sum", "_count", "_bucket"];

/// Labels that samples have besides those of keys, and labels with a meaning of their own.
const RESERVED: [&str; 7] = [
    "provider", "probe", "span", "part", "others", "le", "quantile",
];

/// The labels of keys, each once.
pub(super) fn label_names(keys: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for key in keys {
        let plain = words(key);
        let begins = plain.starts_with(|first: char| first.is_ascii_digit() || first == '_');
        let is_reserved = begins || plain.is_empty() || RESERVED.contains(&plain.as_str());
        let name = match is_reserved {
            true => format!("key_{}", plain.trim_start_matches('_')),
            false => plain,
        };
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut free = [name.clone()].into_iter().chain(numbered);
        names.extend(free.find(|name| !names.contains(name)));
    }
    names
}

/// The name of a metric of values, from its kind, provider, probe and argument. It is that of no sample of another metric.
pub(super) fn metric_name(parts: [&str; 4], unit: Option<&Unit>) -> String {
    let name = format!("usdtrec_{}", parts.map(words).join("_"));
    let name = match unit_name(unit) {
        Some(unit) if !name.ends_with(&format!("_{unit}")) => format!("{name}_{unit}"),
        _ => name,
    };
    match SAMPLES.iter().any(|sample| name.ends_with(sample)) {
        true => format!("{name}_value"),
        false => name,
    }
}

/// The name of the base unit.
fn unit_name(unit: Option<&Unit>) -> Option<String> {
    let unit = unit?;
    if unit.nanoseconds().is_some() {
        return Some("seconds".to_owned());
    }
    if unit.bytes().is_some() {
        return Some("bytes".to_owned());
    }
    match unit {
        Unit::Other(word) => Some(words(word)).filter(|word| !word.is_empty()),
        _ => None,
    }
}

/// A name with `_` between its words, in small letters. Several other characters are one `_`.
fn words(name: &str) -> String {
    let mut out = String::new();
    let mut was_small = false;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && was_small {
            out.push('_');
        }
        was_small = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        if letter.is_ascii_alphanumeric() {
            out.push(letter.to_ascii_lowercase());
        } else if !out.ends_with('_') {
            out.push('_');
        }
    }
    out.truncate(out.trim_end_matches('_').len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_valid_and_each_is_once() {
        let keys = [
            "url",
            "URL",
            "le",
            "part",
            "1st",
            "__name__",
            "größe",
            "done.status",
            "",
        ];
        let keys = keys.map(str::to_owned);
        let right = [
            "url",
            "url_2",
            "key_le",
            "key_part",
            "key_1st",
            "key_name",
            "gr_e",
            "done_status",
            "key_",
        ];
        assert_eq!(label_names(&keys), right);
    }

    #[test]
    fn metrics_have_their_unit() {
        let metric = |name: &str, unit: Option<Unit>| {
            metric_name(["value", "app", "query__done", name], unit.as_ref())
        };
        let begin = "usdtrec_value_app_query_done";
        let right = [
            ("took", Some(Unit::Microseconds), "took_seconds"),
            ("bytes", Some(Unit::Bytes), "bytes"),
            ("maxSize", Some(Unit::Kibibytes), "max_size_bytes"),
            ("n", Some(Unit::Other("rows".to_owned())), "n_rows"),
            ("arg1", None, "arg1"),
            ("bytesSum", None, "bytes_sum_value"),
            ("count", None, "count_value"),
            ("count", Some(Unit::Bytes), "count_bytes"),
            (
                "n",
                Some(Unit::Other("bucket".to_owned())),
                "n_bucket_value",
            ),
            ("account", None, "account"),
        ];
        for (name, unit, end) in right {
            assert_eq!(metric(name, unit), format!("{begin}_{end}"));
        }
    }
}
