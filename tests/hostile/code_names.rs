//! Names of functions that follow a trace, with a few changes each: no panic, and nothing but text.

use usdtrec_testing::{number, repetitions};

use crate::changes::{Numbers, change};
use crate::fuzz::code_names;

/// Names of the file that the trace has, which the changes may break.
const NAMES: &[u8] = br#"{"functions":["main","inner"],"sources":["/src/a.c"],"files":[{"path":"/bin/app","symbols":"all","places":[{"at":256,"function":0,"within":16},{"at":512,"function":1,"within":0}],"lines":[{"at":256,"frames":[{"function":1,"source":0,"line":3},{"source":0,"line":7}]}]}],"made":[{"pid":7,"began":0,"places":[{"at":365072220416,"function":1,"within":0}]}]}"#;

/// `USDTREC_GARBLED` is the number of inputs.
#[test]
fn changed_names_do_no_harm() {
    assert!(code_names::are_read(&[&[0], NAMES].concat()));
    let first = number("USDTREC_GARBLED_SEED", 0);
    for at in first..first + repetitions("USDTREC_GARBLED", 200) {
        let mut numbers = Numbers(at);
        // How the section is made: in most, its lengths and its checksum are right.
        let how = [0, 0, 0, 0, 1, 2, 4][numbers.below(7)];
        let mut names = NAMES.to_vec();
        for _ in 0..numbers.below(4) {
            change(&mut names, &mut numbers);
            if names.is_empty() {
                break;
            }
        }
        // Which way of showing is chosen by all bytes.
        names.extend(std::iter::repeat_n(b' ', numbers.below(16)));
        eprintln!("{at}");
        code_names::run(&[&[how], &*names].concat());
    }
}
