//! Lists of constants in the shape of a statement: `IN (?, ?)`, `VALUES (?, ?), (?, ?)` and `ARRAY[?, ?]` have one shape, whatever their length.

/// Maximum depth of lists within lists; deeper ones are left as they are.
const MAX_DEPTH: usize = 8;
/// Marks that there may be more elements like the last one.
const MORE: &[u8] = "…".as_bytes();

/// Folds the lists of a text whose constants are `?`: neighbours of one shape are one, and [`MORE`] follows the last one.
pub(super) fn fold_lists(text: &[u8]) -> Vec<u8> {
    folded(text, 0)
}

fn folded(text: &[u8], depth: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let starts_word = at == 0 || !is_name(text[at - 1]);
        let may_be = starts_word && depth < MAX_DEPTH;
        match may_be.then(|| Keyword::at(&text[at..])).flatten() {
            Some(keyword) => {
                out.extend(&text[at..at + keyword.name]);
                if keyword.is_spaced {
                    out.push(b' ');
                }
                at += keyword.list;
                at += put_lists(&text[at..], keyword.is_rows, depth, &mut out);
            }
            None => {
                out.push(text[at]);
                at += 1;
            }
        }
    }
    out
}

/// A word that a list follows.
struct Keyword {
    /// Length of the word.
    name: usize,
    /// Where the list begins.
    list: usize,
    /// Whether a blank is written before the list.
    is_spaced: bool,
    /// Whether several lists may follow.
    is_rows: bool,
}

impl Keyword {
    fn at(text: &[u8]) -> Option<Self> {
        let name = text.iter().position(|byte| !byte.is_ascii_alphabetic())?;
        let blank = usize::from(text[name] == b' ');
        let list = name + blank;
        let (word, open) = (&text[..name], text.get(list)?);
        let is = |keyword: &str| word.eq_ignore_ascii_case(keyword.as_bytes());
        let is_rows = is("values");
        let is_list = *open == b'(' && (is_rows || is("in"));
        (is_list || *open == b'[' && is("array")).then_some(Self {
            name,
            list,
            is_spaced: is_list,
            is_rows,
        })
    }
}

/// Writes the list that begins here, and the further ones of rows. Returns their length.
fn put_lists(text: &[u8], is_rows: bool, depth: usize, out: &mut Vec<u8>) -> usize {
    let mut rows = Elements::default();
    let mut at = 0;
    loop {
        let list = list_length(&text[at..]);
        rows.add(folded_list(&text[at..at + list], depth + 1));
        at += list;
        let gap = text[at..].iter().position(|byte| !b", ".contains(byte));
        let Some(gap) = gap
            .filter(|gap| is_rows && text[at + gap] == b'(' && text[at..at + gap].contains(&b','))
        else {
            break;
        };
        at += gap;
    }
    rows.write(is_rows, out);
    at
}

/// Length of a bracketed list, to the end of the text if that is cut off.
fn list_length(text: &[u8]) -> usize {
    let mut open = 0_usize;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'(' | b'[' => open += 1,
            b')' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
        if open == 0 {
            return at + 1;
        }
    }
    text.len()
}

/// A list with its brackets.
fn folded_list(list: &[u8], depth: usize) -> Vec<u8> {
    let is_whole = list.len() > 1 && matches!(list.last(), Some(b')' | b']'));
    let inner = &list[1..list.len() - usize::from(is_whole)];
    if depth >= MAX_DEPTH {
        return list.to_vec();
    }
    let mut elements = Elements::default();
    let mut left = inner;
    while !left.is_empty() {
        let (element, after) = first_element(left);
        left = after;
        let element = element.trim_ascii();
        match element {
            [] => {}
            [b'(', ..] if list_length(element) == element.len() => {
                elements.add(folded_list(element, depth + 1))
            }
            _ if is_constant(element) => elements.add(b"?".to_vec()),
            _ => elements.add(folded(element, depth + 1)),
        }
    }
    let mut out = list[..1].to_vec();
    elements.write(!is_query(inner), &mut out);
    out.extend(list.last().filter(|_| is_whole));
    out
}

/// The text up to a comma outside of brackets, and what follows the comma.
fn first_element(text: &[u8]) -> (&[u8], &[u8]) {
    let mut open = 0_usize;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'(' | b'[' => open += 1,
            b')' | b']' => open = open.saturating_sub(1),
            b',' if open == 0 => return (&text[..at], &text[at + 1..]),
            _ => {}
        }
    }
    (text, &[])
}

/// Whether an element is what programs pass for a constant: a parameter, or the word for one.
fn is_constant(element: &[u8]) -> bool {
    let is_parameter =
        matches!(element, [b'$', number @ ..] if number.iter().all(u8::is_ascii_digit));
    let words: [&[u8]; 4] = [b"null", b"true", b"false", b"default"];
    is_parameter || words.iter().any(|word| element.eq_ignore_ascii_case(word))
}

fn is_query(inner: &[u8]) -> bool {
    let inner = inner.trim_ascii_start();
    let word = inner.iter().position(|byte| !is_name(*byte));
    let word = &inner[..word.unwrap_or(inner.len())];
    ["select", "with", "values", "table"]
        .iter()
        .any(|query| word.eq_ignore_ascii_case(query.as_bytes()))
}

/// Elements of which neighbours differ.
#[derive(Default)]
struct Elements(Vec<Vec<u8>>);

impl Elements {
    fn add(&mut self, element: Vec<u8>) {
        if self.0.last() != Some(&element) {
            self.0.push(element);
        }
    }

    /// Writes the elements. Where there is a constant in the last one there may be `more`.
    fn write(self, more: bool, out: &mut Vec<u8>) {
        out.extend(self.0.join(&b", "[..]));
        if more && self.0.last().is_some_and(|last| last.contains(&b'?')) {
            out.extend(MORE);
        }
    }
}

/// Whether a byte may be part of a name.
pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii()
}
