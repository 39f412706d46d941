//! Bars, sparklines and shades out of block characters.

const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];

/// A bar for `part` where that of `most` has `columns` columns; at least an eighth of a column, unless `part` is 0.
pub(crate) fn bar(part: u64, most: u64, columns: usize) -> String {
    if part == 0 || most == 0 {
        return String::new();
    }
    let whole = 8 * columns as u128;
    let eighths = (u128::from(part) * whole / u128::from(most)).clamp(1, whole) as usize;
    let mut bar: String = std::iter::repeat_n('█', eighths / 8).collect();
    if let Some(rest) = (eighths % 8).checked_sub(1) {
        bar.extend(EIGHTHS.get(rest));
    }
    bar
}

/// A sparkline: a character for each value, a blank for 0.
pub(crate) fn sparkline(values: &[u64]) -> String {
    let most = values.iter().copied().max().unwrap_or(0);
    let level = |&value: &u64| match (u128::from(value) * 8).checked_div(u128::from(most)) {
        None | Some(_) if value == 0 => ' ',
        Some(level) => LEVELS[(level as usize).min(7)],
        None => ' ',
    };
    values.iter().map(level).collect()
}

/// The shade of a cell with `part` where the darkest cell has `most`.
pub(crate) fn shade(part: u64, most: u64) -> char {
    match part {
        0 => ' ',
        part => SHADES[shade_level(part, most, SHADES.len())],
    }
}

/// Which of so many shades a cell with `part`, which is not 0, has where the darkest cell has `most`: by their logarithms.
pub fn shade_level(part: u64, most: u64, shades: usize) -> usize {
    let share = (part as f64 + 1.0).ln() / (most as f64 + 1.0).ln();
    ((share * shades as f64) as usize).min(shades - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_is_never_nothing() {
        assert_eq!(bar(0, 100, 10), "");
        assert_eq!(bar(1, 1_000_000, 10), "▏");
        assert_eq!(bar(100, 100, 10), "██████████");
        assert_eq!(bar(u64::MAX, u64::MAX, 3), "███");
        assert_eq!(bar(15, 100, 10), "█▌");
        assert_eq!(sparkline(&[0, 1, 50, 100]), " ▁▅█");
        assert_eq!(sparkline(&[0, 0]), "  ");
        assert_eq!([0, 1, 100].map(|part| shade(part, 100)), [' ', '░', '█']);
    }
}
