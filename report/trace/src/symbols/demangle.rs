//! Names as their language writes them, as perf shows them: without parameters but for thunks and the like.

use std::fmt::{self, Write as _};

use cpp_demangle::{DemangleOptions, Symbol};

/// Longer names are left as they are.
const MAX_NAME_BYTES: usize = 64 << 10;
/// Names whose readable form is longer are left as they are: a mangled name that refers to its own parts can say twice as
/// much with every few letters.
const MAX_READABLE_BYTES: usize = 64 << 10;

/// The readable form of a C++ or Rust symbol name; other names as they are.
pub(crate) fn demangle(name: &str) -> String {
    if name.len() > MAX_NAME_BYTES {
        return name.to_owned();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    cxx(name).unwrap_or_else(|| name.to_owned())
}

/// The readable form of what a program calls a type or a symbol: `St13runtime_error` and `_ZTI…` of C++, `_R…` of Rust. With parameters, so
/// that overloaded functions differ. `None` for other strings.
pub(crate) fn demangle_value(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return bounded(|text| write!(text, "{rust:#}"));
    }
    if name.starts_with("_Z") {
        return written(name, DemangleOptions::new());
    }
    // The name of a type that no other file can name begins with an asterisk (std::type_info::name() passes over it).
    let kind = name.strip_prefix('*').unwrap_or(name);
    let text = written(&format!("_ZTS{kind}"), DemangleOptions::new())?;
    text.strip_prefix("typeinfo name for ").map(str::to_owned)
}

fn cxx(name: &str) -> Option<String> {
    let text = if let Some((what, function)) = thunk(name) {
        format!("{what}{}", with_parameters(&function)?)
    } else if name.starts_with("_ZGTt") {
        with_parameters(name)?
    } else if name.starts_with("_Z") {
        let text = written(name, DemangleOptions::new().no_params().no_return_type())?;
        // What is left of the parameters says which objects the function may be called on.
        text.trim_end_matches([' ', '&']).to_owned()
    } else {
        return None;
    };
    Some(abbreviated(text))
}

fn with_parameters(name: &str) -> Option<String> {
    written(name, DemangleOptions::new().no_return_type())
}

fn written(name: &str, options: DemangleOptions) -> Option<String> {
    let symbol = Symbol::new(name).ok()?;
    bounded(|text| symbol.structured_demangle(text, &options))
}

fn bounded(write: impl FnOnce(&mut Bounded) -> fmt::Result) -> Option<String> {
    let mut text = Bounded::default();
    write(&mut text).ok()?;
    Some(text.0)
}

/// Text that stops growing.
#[derive(Default)]
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_READABLE_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// What a thunk is called, and the symbol of the function that it leads to.
///
/// Itanium C++ ABI 5.1.4.5: `Th` and an offset, or `Tv` and two; offsets end in `_`.
fn thunk(name: &str) -> Option<(&'static str, String)> {
    let (what, offsets, rest) = if let Some(rest) = name.strip_prefix("_ZTh") {
        ("non-virtual thunk to ", 1, rest)
    } else {
        ("virtual thunk to ", 2, name.strip_prefix("_ZTv")?)
    };
    let function = rest.splitn(offsets + 1, '_').nth(offsets)?;
    Some((what, format!("_Z{function}")))
}

/// Types that C++'s mangling abbreviates, and perf in its names too: `std::` and this for `std::basic_` and both.
const ABBREVIATED: [(&str, &str); 4] = [
    (
        "string",
        "<char, std::char_traits<char>, std::allocator<char> >",
    ),
    ("istream", "<char, std::char_traits<char> >"),
    ("ostream", "<char, std::char_traits<char> >"),
    ("iostream", "<char, std::char_traits<char> >"),
];

fn abbreviated(mut text: String) -> String {
    for (short, arguments) in ABBREVIATED {
        let full = format!("std::basic_{short}{arguments}");
        text = text.replace(&full, &format!("std::{short}"));
        // Before a constructor and a destructor the type stays as it is.
        for tilde in ["", "~"] {
            for name in [format!("basic_{short}"), short.to_owned()] {
                let abbreviated = format!("std::{short}::{tilde}{name}");
                text = text.replace(&abbreviated, &format!("{full}::{tilde}basic_{short}"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::symbols::demangle::{demangle, demangle_value};

    #[test]
    fn names_in_values() {
        for (name, readable) in [
            ("St13runtime_error", Some("std::runtime_error")),
            (
                "*N12_GLOBAL__N_16HiddenE",
                Some("(anonymous namespace)::Hidden"),
            ),
            ("N4shop7FailureIPKcEE", Some("shop::Failure<char const*>")),
            ("i", Some("int")),
            ("_ZN1A1fEi", Some("A::f(int)")),
            ("_RNvC6_123foo3bar", Some("123foo::bar")),
            (
                "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
                Some("core::fmt::Formatter::pad"),
            ),
            ("", None),
            ("*", None),
            ("int", None),
            ("St13runtime_error and more", None),
            ("GET /index.html", None),
            ("_Zbroken", None),
        ] {
            assert_eq!(
                demangle_value(name.as_bytes()).as_deref(),
                readable,
                "{name}"
            );
        }
        assert_eq!(demangle_value(b"7Caf\xe9ine"), None);
    }

    #[test]
    fn names_of_three_languages() {
        for (name, readable) in [
            ("query_start", "query_start"),
            ("_ZNK2ns1S2goIiEET_S2_", "ns::S::go<int>"),
            (
                "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
                "core::fmt::Formatter::pad",
            ),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("_Zbroken", "_Zbroken"),
            ("_ZTv", "_ZTv"),
        ] {
            assert_eq!(demangle(name), readable);
        }
    }

    #[test]
    fn a_name_that_says_ever_more_is_left_as_it_is() {
        // A<int, int>, and then each time an A of twice the one before.
        let name = |doublings: u32| {
            let digits = (1..=doublings).filter_map(|digit| char::from_digit(digit, 36));
            let parts = digits.map(|digit| digit.to_ascii_uppercase());
            let parts: String = parts.map(|at| format!("S0_IS{at}_S{at}_E")).collect();
            format!("_Z1fI1AIiiE{parts}Evv")
        };
        assert!(demangle(&name(5)).starts_with("f<A<int, int>, A<A<int, int>, A<int, int> >, "));
        assert_eq!(demangle(&name(30)), name(30));
    }

    #[test]
    fn cxx_names_are_perfs() {
        for (name, readable) in [
            ("_ZNSi6ignoreEv", "std::istream::ignore"),
            ("_ZThn16_N1A1fEi", "non-virtual thunk to A::f(int)"),
            (
                "_ZTv0_n24_NSt12ctype_bynameD1Ev",
                "virtual thunk to std::ctype_byname::~ctype_byname()",
            ),
            (
                "_ZNSsC1ERKSs",
                "std::basic_string<char, std::char_traits<char>, std::allocator<char> >::basic_string",
            ),
        ] {
            assert_eq!(demangle(name), readable);
        }
    }
}
