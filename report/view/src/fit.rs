//! Columns of a table that fit the width of a terminal.

/// Blanks between columns.
pub(crate) const GAP: usize = 2;

/// How wide a column can be, in columns of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Width {
    /// Width of the widest cell.
    pub(crate) natural: usize,
    /// The least width to which it is cut.
    pub(crate) least: usize,
}

impl Width {
    /// The width of a column which is never cut.
    pub(crate) const fn fixed(width: usize) -> Self {
        Self {
            natural: width,
            least: width,
        }
    }
}

/// The widths of columns in lines of `room` columns of the terminal: the widest ones that may be cut are cut to equal widths. Lines are
/// longer if even the least widths have no room.
pub(crate) fn fit(columns: &[Width], room: usize) -> Vec<usize> {
    let gaps = GAP * columns.len().saturating_sub(1);
    let room = room.saturating_sub(gaps);
    let widths = |most: usize| -> Vec<usize> {
        let columns = columns.iter();
        let widths = columns.map(|column| column.natural.min(most.max(column.least)));
        widths.collect()
    };
    let widest = columns.iter().map(|column| column.natural).max();
    // The greatest limit of widths with which they have room.
    let (mut fits, mut exceeds) = (0, widest.unwrap_or(0) + 1);
    while exceeds - fits > 1 {
        let most = usize::midpoint(fits, exceeds);
        if widths(most).iter().sum::<usize>() <= room {
            fits = most;
        } else {
            exceeds = most;
        }
    }
    widths(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_are_cut_first() {
        let columns = [
            Width {
                natural: 50,
                least: 8,
            },
            Width {
                natural: 10,
                least: 8,
            },
            Width::fixed(6),
            Width {
                natural: 60,
                least: 10,
            },
        ];
        assert_eq!(fit(&columns, 200), [50, 10, 6, 60]);
        assert_eq!(fit(&columns, 112), [45, 10, 6, 45]);
        assert_eq!(fit(&columns, 82), [30, 10, 6, 30]);
        assert_eq!(fit(&columns, 1), [8, 8, 6, 10]);
        assert_eq!(fit(&[], 80), [0; 0]);
    }
}
