//! Counts over time as shades.

use usdtrec_analysis::stats::timeline::Timeline;
use usdtrec_trace::wall_times::WallTimes;
use usdtrec_view::bars::shade_level;
use usdtrec_view::cut_apart::shortened_apart;
use usdtrec_view::report::heatmap::{ShadeRow, ends};
use usdtrec_view::report::shown_times::ShownTimes;

use crate::html::markup::Markup;
use crate::html::notes::put_notes;

/// Shades.
const LEVELS: usize = 7;
/// Maximum number of rows.
const MAX_ROWS: usize = 32;
/// Maximum length of the label of a row, characters.
const MAX_LABEL_CHARACTERS: usize = 48;

/// Rows, the first one on top, with what a count is of.
#[derive(Debug)]
pub(crate) struct ShadeMap<'a> {
    pub(crate) rows: Vec<ShadeRow<'a>>,
    pub(crate) timeline: Timeline,
    /// What times of day are found by; `None` to show the trace's clock.
    pub(crate) times_of_day: Option<&'a WallTimes>,
    pub(crate) unit: &'static str,
    /// What rows without room are.
    pub(crate) of_rows: &'static str,
}

impl ShadeMap<'_> {
    /// Appends the map, its times and its legend.
    pub(crate) fn put(&self, out: &mut Markup) {
        let all = self.rows.iter().flat_map(|row| row.counts).copied();
        let most = all.max().unwrap_or(0);
        let least = self.least();
        out.tag("<figure class=\"heat\"")
            .attribute("data-from", &self.timeline.from.to_string())
            .attribute("data-step", &self.timeline.interval.to_string())
            .attribute("data-unit", self.unit);
        if let Some(times) = self.times_of_day {
            let from = times.wall(self.timeline.from);
            out.attribute("data-wall", &from.to_string());
        }
        out.tag("><table>\n");
        let is_shown = |row: &&ShadeRow<'_>| sum(row) >= least;
        let shown = self.rows.iter().filter(is_shown).take(MAX_ROWS);
        let shown: Vec<&ShadeRow<'_>> = shown.collect();
        let labels: Vec<&str> = shown.iter().map(|row| &*row.label).collect();
        let labels = shortened_apart(&labels, MAX_LABEL_CHARACTERS);
        let left_out = self.rows.len() - shown.len();
        for (row, label) in shown.into_iter().zip(labels) {
            out.tag("<tr><th scope=\"row\">")
                .text(&label)
                .tag("</th><td>");
            self.put_cells(row, most, out);
            out.tag("</td></tr>\n");
        }
        self.put_times(out);
        out.tag("</table>\n");
        put_legend(most, self.unit, out);
        if left_out > 0 {
            let more = format!(
                "{left_out} {} with fewer {} left out here",
                self.of_rows, self.unit
            );
            put_notes("note", [more], out);
        }
        out.tag("</figure>\n");
    }

    /// What a row must have to be among the greatest.
    fn least(&self) -> u128 {
        let mut sums: Vec<u128> = self.rows.iter().map(sum).collect();
        sums.sort_unstable();
        let place = sums.len().saturating_sub(MAX_ROWS);
        sums.get(place).copied().unwrap_or(0)
    }

    fn put_cells(&self, row: &ShadeRow<'_>, most: u64, out: &mut Markup) {
        let mut paths = vec![String::new(); LEVELS];
        let mut counts = String::new();
        for (at, &count) in row
            .counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
        {
            if let Some(path) = paths.get_mut(level(count, most)) {
                path.push_str(&format!("M{at} 0h1v1h-1z"));
            }
            counts.push_str(&format!("{at}:{count} "));
        }
        let size = format!("0 0 {} 1", self.timeline.intervals);
        out.tag("<svg preserveAspectRatio=\"none\" aria-hidden=\"true\"")
            .attribute("viewBox", &size)
            .attribute("data-counts", counts.trim_end());
        if let Some(until) = &row.until {
            out.attribute("data-until", until);
        }
        out.tag(">");
        for (level, path) in paths
            .iter()
            .enumerate()
            .filter(|(_, path)| !path.is_empty())
        {
            out.tag("<path")
                .attribute("class", &format!("h{level}"))
                .attribute("d", path)
                .tag("/>");
        }
        out.tag("</svg>");
    }

    /// The times of the first and the last interval.
    fn put_times(&self, out: &mut Markup) {
        let times = ShownTimes::utc(self.times_of_day);
        let [from, end] = ends(self.timeline, &times);
        let unit = times.unit();
        out.tag("<tr class=\"times\"><th></th><td><span>")
            .text(&from)
            .text(unit)
            .tag("</span><span>")
            .text(&end)
            .text(unit)
            .tag("</span></td></tr>");
    }
}

fn sum(row: &ShadeRow<'_>) -> u128 {
    row.counts.iter().copied().map(u128::from).sum()
}

/// The shade of a count that is not 0.
fn level(count: u64, most: u64) -> usize {
    shade_level(count, most, LEVELS)
}

/// The least count of a shade or a darker one.
fn least_of(shade: usize, most: u64) -> u64 {
    let (mut least, mut high) = (1, most);
    while least < high {
        let middle = least + (high - least) / 2;
        match level(middle, most) >= shade {
            true => high = middle,
            false => least = middle + 1,
        }
    }
    least
}

fn put_legend(most: u64, unit: &str, out: &mut Markup) {
    if most == 0 {
        return;
    }
    out.tag("<p class=\"legend\">").text(unit).tag(": ");
    for shade in 0..LEVELS {
        let from = least_of(shade, most);
        let to = match shade + 1 < LEVELS {
            true => least_of(shade + 1, most) - 1,
            false => most,
        };
        if level(from, most) != shade {
            continue;
        }
        out.tag(
            "<span><svg viewBox=\"0 0 1 1\" aria-hidden=\"true\"><rect width=\"1\" height=\"1\"",
        )
        .attribute("class", &format!("h{shade}"))
        .tag("/></svg> ");
        let counts = match from < to {
            true => format!("{from} to {to}"),
            false => from.to_string(),
        };
        out.text(&counts).tag("</span> ");
    }
    out.tag("</p>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legend_says_what_shades_mean() {
        for most in [1, 2, 5, 100, 12_345, u64::MAX] {
            for shade in 0..LEVELS {
                let least = least_of(shade, most);
                assert!(level(least, most) >= shade || least == most);
                assert!(least == 1 || level(least - 1, most) < shade);
            }
            assert_eq!(level(most, most), LEVELS - 1);
        }
    }
}
