//! Names as their language writes them, without parameters, as perf shows them.

use cpp_demangle::{DemangleOptions, Symbol};

/// Longer names are left as they are: demangling can multiply a name's length.
const LONGEST: usize = 4096;

/// The readable form of a C++ or Rust symbol name; other names as they are.
pub(super) fn demangle(name: &str) -> String {
    if name.len() > LONGEST {
        return name.to_owned();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let cpp = name
        .starts_with("_Z")
        .then(|| Symbol::new(name).ok()?.demangle_with_options(&options).ok());
    cpp.flatten().unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn names_of_three_languages() {
        assert_eq!(demangle("query_start"), "query_start");
        assert_eq!(demangle("_ZNK2ns1S2goIiEET_S2_"), "ns::S::go<int>");
        assert_eq!(
            demangle("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"),
            "core::fmt::Formatter::pad"
        );
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(demangle("_Zbroken"), "_Zbroken");
    }
}
