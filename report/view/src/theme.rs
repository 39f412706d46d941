//! Looks of a text: colours, and the width of its lines.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

/// Columns of a terminal, if nobody says how many it has.
pub(crate) const WIDTH: usize = 80;

/// Styles of the parts of a text, all plain without colours, and the width of its lines.
///
/// Colours are the two that can be read on light and on dark backgrounds: of the usual terminals, cyan, green and yellow cannot be on white, and blue not on
/// black.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Theme {
    /// The first line of a table or section.
    pub(crate) heading: Style,
    /// Lines about the whole trace.
    pub(crate) remark: Style,
    /// Losses.
    pub(crate) alarm: Style,
    /// Bars and lines.
    pub(crate) bar: Style,
    /// Width of lines, columns; `None` if nobody said it.
    columns: Option<usize>,
}

impl Theme {
    pub(crate) fn new(colours: bool) -> Self {
        if !colours {
            return Self::default();
        }
        Self {
            heading: Style::new().bold(),
            remark: Style::new().dimmed(),
            alarm: AnsiColor::Red.on_default().bold(),
            bar: AnsiColor::Magenta.on_default(),
            columns: None,
        }
    }

    /// The same for lines of another width.
    pub(crate) const fn with_columns(self, columns: Option<usize>) -> Self {
        Self { columns, ..self }
    }

    /// Width of lines, columns.
    pub(crate) fn columns(self) -> usize {
        self.columns.unwrap_or(WIDTH)
    }

    /// Whether lines are for a place of this width, as a terminal is; if not, other programs may look for what is in them.
    pub(crate) const fn has_width(self) -> bool {
        self.columns.is_some()
    }

    /// The room for something that has `usual` columns in lines of [`WIDTH`] columns: as much more as lines are wider; in narrower lines half of what it
    /// has, at least.
    pub(crate) fn room(self, usual: usize) -> usize {
        let columns = (usual + self.columns()).saturating_sub(WIDTH);
        columns.max(usual / 2)
    }

    /// Appends the first line of a table or section.
    pub(crate) fn put_heading(self, line: &str, out: &mut String) {
        put(self.heading, line, out);
    }

    /// Appends a line about the whole trace.
    pub(crate) fn put_remark(self, line: &str, out: &mut String) {
        put(self.remark, line, out);
    }

    /// Appends a line about losses.
    pub(crate) fn put_alarm(self, line: &str, out: &mut String) {
        put(self.alarm, line, out);
    }

    /// Appends a line about the whole trace, of which events may be lost.
    pub(crate) fn put_totals(self, line: &str, lost: u64, out: &mut String) {
        match lost {
            0 => self.put_remark(line, out),
            _ => self.put_alarm(line, out),
        }
    }

    /// A bar.
    pub(crate) fn bar(self, bar: &str) -> String {
        format!("{}{bar}{:#}", self.bar, self.bar)
    }
}

fn put(style: Style, line: &str, out: &mut String) {
    let _ = writeln!(out, "{style}{line}{style:#}");
}

#[cfg(test)]
mod tests {
    use anstyle::Color;

    use super::*;

    /// What a terminal makes of red and magenta, and its background.
    struct Palette {
        name: &'static str,
        background: u32,
        red: u32,
        magenta: u32,
    }

    const PALETTES: [Palette; 8] = [
        palette("xterm, light", 0xff_ff_ff, 0xcd_00_00, 0xcd_00_cd),
        palette("xterm, dark", 0x00_00_00, 0xcd_00_00, 0xcd_00_cd),
        palette("Solarized, light", 0xfd_f6_e3, 0xdc_32_2f, 0xd3_36_82),
        palette("Solarized, dark", 0x00_2b_36, 0xdc_32_2f, 0xd3_36_82),
        palette("GNOME, light", 0xff_ff_ff, 0xc0_1c_28, 0xa3_47_ba),
        palette("GNOME, dark", 0x17_14_21, 0xc0_1c_28, 0xa3_47_ba),
        palette("Tango, light", 0xff_ff_ff, 0xcc_00_00, 0x75_50_7b),
        palette("Tango, dark", 0x00_00_00, 0xcc_00_00, 0x75_50_7b),
    ];

    const fn palette(name: &'static str, background: u32, red: u32, magenta: u32) -> Palette {
        Palette {
            name,
            background,
            red,
            magenta,
        }
    }

    /// Relative luminance of a colour, as WCAG 2 has it.
    fn luminance(colour: u32) -> f64 {
        let [_, red, green, blue] = colour.to_be_bytes().map(|part| {
            let part = f64::from(part) / 255.0;
            match part <= 0.04045 {
                true => part / 12.92,
                false => ((part + 0.055) / 1.055).powf(2.4),
            }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    fn contrast(one: u32, other: u32) -> f64 {
        let [one, other] = [luminance(one), luminance(other)].map(|luminance| luminance + 0.05);
        one.max(other) / one.min(other)
    }

    /// WCAG asks for a contrast of 3 of bold text and of graphics. GNOME's own red has 2.97 on its dark background.
    #[test]
    fn colours_can_be_read_on_light_and_dark_backgrounds() {
        let theme = Theme::new(true);
        for style in [theme.heading, theme.remark, theme.alarm, theme.bar] {
            assert_eq!(style.get_bg_color(), None);
            for palette in PALETTES {
                let shown = match style.get_fg_color() {
                    None => continue,
                    Some(Color::Ansi(AnsiColor::Red)) => palette.red,
                    Some(Color::Ansi(AnsiColor::Magenta)) => palette.magenta,
                    other => panic!("{other:?}: say what the palettes have"),
                };
                let contrast = contrast(shown, palette.background);
                assert!(
                    contrast >= 2.95,
                    "{style:?} in {}: {contrast}",
                    palette.name
                );
            }
        }
    }
}
