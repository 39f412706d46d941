//! A flame graph as SVG, drawn by crate `inferno`.

use std::io;

use inferno::flamegraph::{Options, from_lines};

/// The texts of a picture.
#[derive(Debug)]
pub(crate) struct Labels {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    /// What a weight of one is.
    pub(crate) unit: String,
}

/// Draws stacks, whose lines are in reverse order.
///
/// # Errors
/// What inferno says of the lines.
pub(crate) fn draw(lines: &[String], labels: &Labels) -> io::Result<String> {
    let mut options = Options::default();
    options.title.clone_from(&labels.title);
    options.subtitle = Some(labels.subtitle.clone());
    options.count_name.clone_from(&labels.unit);
    options.name_type = "Function:".to_owned();
    // Colours are the same in every run.
    options.deterministic = true;
    // Lines are taken as they are, from the last one on: sorted as texts, functions of which one's name begins with another's would be torn apart.
    options.flame_chart = true;
    let mut picture = Vec::new();
    from_lines(&mut options, lines.iter().map(String::as_str), &mut picture)?;
    String::from_utf8(picture).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folded::{escaped, line_of};

    /// Names as the reader of the lines takes them.
    fn drawn(stacks: &[&[&str]]) -> Vec<String> {
        let lines = stacks.iter().map(|stack| {
            let names: Vec<String> = stack.iter().map(|name| escaped(name)).collect();
            format!("{} 7", line_of(&names))
        });
        let lines: Vec<String> = lines.rev().collect();
        let labels = Labels {
            title: "a < b".to_owned(),
            subtitle: String::new(),
            unit: "hits".to_owned(),
        };
        let picture = draw(&lines, &labels).unwrap();
        let titles = picture.split("<title>").skip(1);
        let titles = titles.map(|rest| {
            let (title, _) = rest.split_once("</title>").unwrap();
            let (name, _) = title.rsplit_once(" (").unwrap();
            let name = name.replace("&lt;", "<").replace("&gt;", ">");
            name.replace("&quot;", "\"")
                .replace("&apos;", "'")
                .replace("&amp;", "&")
        });
        titles.collect()
    }

    #[test]
    fn names_come_back_from_the_reader() {
        let names = [
            "operator new",
            "<[u8; 4] as T>::f",
            "&'a \"b\"",
            "g 5",
            " h ",
            "# i",
            "j 1.5",
        ];
        for name in names {
            let found = drawn(&[&["main", name], &[name]]);
            let expected = escaped(name);
            let same = found.iter().filter(|found| {
                found.replace("\\x20", " ").replace("\\x23", "#") == expected.replace("\\x20", " ")
            });
            assert_eq!(same.count(), 2, "{name:?}: {found:?}");
        }
    }

    #[test]
    fn a_name_that_begins_with_another_ones_does_not_divide_it() {
        let found = drawn(&[&["a"], &["a", "z"], &["a b"], &["a::b"]]);
        let count = |name: &str| found.iter().filter(|found| *found == name).count();
        assert_eq!(
            [count("a"), count("a b"), count("a::b")],
            [1, 1, 1],
            "{found:?}"
        );
    }
}
