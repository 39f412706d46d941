//! A page with a picture in it.

/// What a page is like besides its picture: it is as wide as the window, and as dark as the reader's system.
const STYLE: &str = "\
html { color-scheme: light dark; }
body { margin: 0; font-family: monospace; background: #f8f8f8; }
svg { display: block; width: 100%; }
@media (prefers-color-scheme: dark) {
  body { background: #1c1c1c; }
  #background stop { stop-color: #1c1c1c; }
  #title, #subtitle, #details, #search, #unzoom, #matched { fill: #e0e0e0; }
  #frames > *:hover { stroke: white; }
}
";

/// The page of a picture, with an escaped title.
pub(crate) fn around(picture: &str, title: &str) -> String {
    // A declaration and a document type are of files of their own.
    let start = picture.find("<svg").unwrap_or(0);
    let picture = picture.get(start..).unwrap_or_default();
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{picture}\n</body>\n</html>\n"
    )
}
