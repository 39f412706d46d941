//! The attribute `#[test]` of `usdtrec-testing`.

#![forbid(unsafe_code)]

use proc_macro::{TokenStream, TokenTree};

/// Marks a function without parameters as a test of a target that has `usdtrec_testing::main` as its main function.
#[proc_macro_attribute]
pub fn test(_: TokenStream, function: TokenStream) -> TokenStream {
    let registered = match name(function.clone()) {
        Some(name) => format!("::usdtrec_testing::register!({name});"),
        None => "compile_error!(\"#[test] stands before a function\");".to_owned(),
    };
    let registered: TokenStream = registered.parse().unwrap_or_default();
    function.into_iter().chain(registered).collect()
}

/// The identifier after `fn`.
fn name(function: TokenStream) -> Option<String> {
    let mut tokens = function.into_iter();
    tokens.find(|token| matches!(token, TokenTree::Ident(word) if word.to_string() == "fn"))?;
    tokens.next().map(|name| name.to_string())
}
