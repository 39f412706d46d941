#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| usdtrec_fuzz::code_names::run(bytes));
