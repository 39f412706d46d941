//! Other colours and titles for the frames of a picture that inferno drew.
//!
//! inferno colours a frame by the difference of its counts alone. Colours by significance, and their titles, are put
//! into its picture by the positions of frames.

use std::io;

/// Height of a frame that inferno draws, in the picture's units.
const HEIGHT: u64 = 16;

/// The place of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FramePlace {
    /// Number of frames below it.
    pub(crate) depth: u64,
    /// Weight of all that is left of it.
    pub(crate) start: u64,
}

/// What a frame looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrameLook {
    /// Its title, not escaped for XML.
    pub(crate) title: String,
    /// Its colour, as SVG has it.
    pub(crate) fill: String,
}

/// The frame that all others are on.
const BASE: &str = "rgb(205,205,205)";

/// A frame of a picture: `<title>TITLE</title><rect y=… fill=… fg:x=… />`.
struct DrawnFrame<'p> {
    /// Between the title and the colour.
    before: &'p str,
    /// After the colour.
    after: &'p str,
    y: u64,
    start: u64,
}

impl<'p> DrawnFrame<'p> {
    /// Of what follows `<title>`; `None` if it is no frame.
    fn parse(rest: &'p str) -> Option<Self> {
        let (_, rest) = rest.split_once("</title>")?;
        let (before, after) = rest.split_once("fill=\"")?;
        let (_, after) = after.split_once('"')?;
        let number = |text: &str, name: &str| {
            let (_, value) = text.split_once(name)?;
            value.split_once('"')?.0.parse().ok()
        };
        Some(Self {
            before,
            after,
            y: number(before, " y=\"")?,
            start: number(after, " fg:x=\"")?,
        })
    }
}

/// The picture with the looks of its frames; frames without one are grey.
///
/// # Errors
/// If it is not as inferno draws.
pub(crate) fn recolour(
    picture: &str,
    look: impl Fn(FramePlace) -> Option<FrameLook>,
) -> io::Result<String> {
    let unknown = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "inferno drew frames of a form that is not known",
        )
    };
    let mut parts = picture.split("<title>");
    let mut out = parts.next().unwrap_or_default().to_owned();
    let frames: Option<Vec<_>> = parts
        .map(|rest| Some((rest, DrawnFrame::parse(rest)?)))
        .collect();
    let frames = frames.ok_or_else(unknown)?;
    let base = frames.iter().map(|(_, frame)| frame.y).max().unwrap_or(0);
    for (rest, frame) in frames {
        let place = FramePlace {
            depth: (base - frame.y) / HEIGHT,
            start: frame.start,
        };
        out.push_str("<title>");
        let (title, fill) = match look(place).filter(|_| place.depth > 0) {
            Some(look) => (escaped(&look.title), look.fill),
            None => {
                let title = rest.split_once("</title>").map_or("", |(title, _)| title);
                (title.to_owned(), BASE.to_owned())
            }
        };
        out.push_str(&title);
        out.push_str("</title>");
        out.push_str(frame.before);
        out.push_str("fill=\"");
        out.push_str(&fill);
        out.push('"');
        out.push_str(frame.after);
    }
    Ok(out)
}

/// A text for XML.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}
