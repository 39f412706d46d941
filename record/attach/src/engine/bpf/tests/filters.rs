//! Filters: whether a hit counts must be what the expression is worth for the values of the hit.

use usdtrec_format::expr::{Datum, Expr, Name};
use usdtrec_format::schema::{Argument, ArgumentType, Length};
use usdtrec_format::{Arch, RawArgument};

use super::machine::{COMM, Hit, Ran, UID, register_value, string_len};
use super::{Planned, Strings, Touch, byte_at, common, expected, value_of};
use crate::engine::bpf::contract::register_offset;
use crate::engine::bpf::program::generate;
use crate::engine::bpf::program::spec::{Common, Spec};
use crate::plan::condition::Condition;
use crate::plan::condition::site::Site;

const ARGS: &str = "4@%edi -4@%esi 8@%rdx -8@8(%rbp) 1@%cl -2@%r9w 8@(%rbx) 4@$7 -1@$-3 8f@%xmm0";

fn arguments(count: usize) -> Vec<Argument> {
    (0..count).map(Argument::unnamed).collect()
}

/// The condition of a filter at a site with these arguments.
pub(super) fn condition(planned: &Planned, filter: &str) -> Result<Condition, String> {
    condition_of(planned, &arguments(planned.operands.len()), filter)
}

/// The same, where a schema describes the arguments.
fn condition_of(
    planned: &Planned,
    arguments: &[Argument],
    filter: &str,
) -> Result<Condition, String> {
    let captures_schema = arguments.iter().any(|known| known.capture.is_some());
    let site = Site {
        arch: planned.arch,
        event: "sdt_a:b",
        operands: &planned.operands,
        captures: &planned.captures,
        addresses: &planned.addresses,
        arguments,
        captures_schema,
    };
    let expression = Expr::parse(filter).unwrap();
    site.condition(&expression)
        .map_err(|error| error.to_string())
}

/// Whether the program lets the hit pass.
fn passes(planned: &Planned, filter: &str, hit: &Hit) -> bool {
    let condition = condition(planned, filter).unwrap();
    condition != Condition::Never && run(planned, &condition, hit, &common()).record.is_some()
}

fn run(planned: &Planned, condition: &Condition, hit: &Hit, common: &Common) -> Ran {
    let spec = Spec {
        condition: Some(condition).filter(|condition| **condition != Condition::Always),
        ..planned.spec()
    };
    hit.run_all(&generate(&[&spec], common).unwrap())
}

/// A filter is not true of memory that cannot be read; if it may be there, the hit counts as lost.
#[test]
fn what_a_filter_cannot_judge_is_lost() {
    let planned = Planned::new("8@%rdi 4@(%rdx)", Arch::X86_64, Strings::default());
    let value = |name| value_of(Arch::X86_64.register(name).unwrap(), Arch::X86_64);
    let (rdi, rdx) = (value("rdi"), value("rdx"));
    let at = vec![rdi..rdi + 8, rdx..rdx + 4];
    let (absent, forbidden) = (
        Hit {
            absent: at.clone(),
            ..Hit::default()
        },
        Hit {
            forbidden: at,
            ..Hit::default()
        },
    );
    let never = Common {
        touch: Touch::Never,
        ..common()
    };
    for filter in [
        "arg1 == \"abc\"",
        "arg1 != \"abc\"",
        "arg2 == 4",
        "arg2 != 4",
    ] {
        let condition = condition(&planned, filter).unwrap();
        let counts = |hit: &Hit, common: &Common| {
            let ran = run(&planned, &condition, hit, common);
            (ran.record.is_some(), ran.lost, ran.unjudged)
        };
        assert_eq!(counts(&absent, &never), (false, 1, 1), "{filter}");
        assert_eq!(counts(&forbidden, &common()), (false, 0, 0), "{filter}");
        let (_, lost, unjudged) = counts(&absent, &common());
        assert_eq!((lost, unjudged), (0, 0), "{filter}");
    }
    // Another part of the filter may decide.
    let condition = condition(&planned, "arg2 == 4 || pid == 1234").unwrap();
    let ran = run(&planned, &condition, &absent, &never);
    assert_eq!((ran.record.is_some(), ran.lost), (true, 0));
}

/// What a name is worth in a hit: the evaluator's other half, which knows nothing of programs.
fn worth(planned: &Planned, name: &Name) -> Datum<'static> {
    let place = match &*name.text {
        "pid" => return Datum::Integer(1234),
        "tid" => return Datum::Integer(1235),
        "cpu" => return Datum::Integer(3),
        "uid" => return Datum::Integer(UID.into()),
        "comm" => return Datum::String(COMM.into()),
        name => name.strip_prefix("arg").unwrap().parse::<usize>().unwrap() - 1,
    };
    match (&planned.layout.arguments[place], place) {
        (RawArgument::Field(field), _) => {
            let operand = &planned.operands[place];
            let bits = expected(operand, *field, planned.arch);
            let unused = 64 - 8 * u32::from(field.size);
            if operand.is_signed() {
                Datum::Integer(((bits << unused).cast_signed() >> unused).into())
            } else {
                Datum::Integer(bits.into())
            }
        }
        (_, 7) => Datum::Integer(7),
        (_, 8) => Datum::Integer(-3),
        _ => Datum::Missing,
    }
}

/// Every comparison of every argument with numbers around its value, alone, negated and combined.
#[test]
fn numbers_compare_by_value() {
    let planned = Planned::new(ARGS, Arch::X86_64, Strings::default());
    let hit = Hit::default();
    let mut both = [0, 0];
    for name in (1..=10)
        .map(|number| format!("arg{number}"))
        .chain(["pid", "tid", "cpu", "uid"].map(str::to_owned))
    {
        let near = match worth(
            &planned,
            &Name {
                text: name.clone(),
                at: 0,
            },
        ) {
            Datum::Integer(number) => number,
            _ => 0,
        };
        let edges = [
            0,
            -1,
            255,
            i128::from(i64::MIN),
            i128::from(i64::MAX),
            i128::from(u64::MAX),
        ];
        let numbers = [near - 1, near, near + 1].into_iter().chain(edges);
        for number in
            numbers.filter(|number| (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(number))
        {
            for operator in ["==", "!=", "<", "<=", ">", ">="] {
                for filter in [
                    format!("{name} {operator} {number}"),
                    format!("!({name} {operator} {number})"),
                    format!("{number} {operator} {name} || pid == 1"),
                    format!("cpu == 3 && !(tid == 1235 && {name} {operator} {number})"),
                ] {
                    let expression = Expr::parse(&filter).unwrap();
                    let right =
                        expression.evaluate(&|name| worth(&planned, name)).truth() == Some(true);
                    assert_eq!(passes(&planned, &filter, &hit), right, "{filter}");
                    both[usize::from(right)] += 1;
                }
            }
        }
    }
    assert!(both.iter().all(|count| *count > 500), "{both:?}");
}

/// A sum beyond the integers wraps, as in filters of traces.
#[test]
fn sums_are_those_of_the_evaluator() {
    let planned = Planned::new("8@%rdi -8@%rsi 4@%edx", Arch::X86_64, Strings::default());
    let hit_of = |bits: u64| {
        let mut hit = Hit::default();
        for name in ["rdi", "rsi", "rdx"] {
            let register = Arch::X86_64.register(name).unwrap();
            let offset = register_offset(Arch::X86_64, register).unwrap();
            hit.context[offset as usize / 8] = bits;
        }
        hit
    };
    let worth = |bits: u64, name: &Name| match &*name.text {
        "arg1" => Datum::Integer(bits.into()),
        "arg2" => Datum::Integer(bits.cast_signed().into()),
        _ => Datum::Integer((bits as u32).into()),
    };
    let most = i64::MAX;
    let sums = [
        "+ 1".to_owned(),
        "- 1".to_owned(),
        format!("+ {most}"),
        format!("- {most}"),
        "+ 1 + 1".to_owned(),
        "- 1 - 1".to_owned(),
        "- 5 + 3".to_owned(),
        "+ 5 - 3".to_owned(),
    ];
    let (mut both, mut refused) = ([0, 0], Vec::new());
    for sum in &sums {
        for argument in ["arg1", "arg2", "arg3"] {
            let text = format!("{argument} {sum}");
            for constant in [
                "0",
                "1",
                "-1",
                "7",
                "9223372036854775808",
                "18446744073709551615",
            ] {
                for operator in ["==", "!=", "<", ">="] {
                    let filter = format!("{text} {operator} {constant}");
                    if let Err(error) = condition(&planned, &filter) {
                        assert!(
                            error.contains("a sum and a difference"),
                            "{filter}: {error}"
                        );
                        refused.push(text.clone());
                        continue;
                    }
                    let expression = Expr::parse(&filter).unwrap();
                    for bits in [0, 1, 5, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1] {
                        let right = expression.evaluate(&|name| worth(bits, name)).truth();
                        let passed = passes(&planned, &filter, &hit_of(bits));
                        assert_eq!(Some(passed), right, "{filter} of {bits:#x}");
                        both[usize::from(passed)] += 1;
                    }
                }
            }
        }
    }
    assert!(both.iter().all(|count| *count > 500), "{both:?}");
    refused.dedup();
    assert_eq!(refused, ["arg2 - 5 + 3", "arg1 + 5 - 3"]);
}

/// Arguments that floats are compared with in [`floats_compare_as_they_are_decoded`].
const FLOATS: &str = "8f@%rdx 4f@%ecx 8f@8(%rbp) 4f@(%rbx) -4@%esi 8@%rdi 4f@$0.1";

/// The hit of a site with [`FLOATS`] that are this number.
fn hit_of(number: f64) -> Hit {
    let single = number as f32;
    let offset =
        |name| register_offset(Arch::X86_64, Arch::X86_64.register(name).unwrap()).unwrap();
    let at = |name, by| register_value(offset(name) as usize) + by;
    let mut hit = Hit::default();
    for (name, value) in [
        ("rdx", number.to_bits()),
        ("rcx", 0xdead_beef_0000_0000 | u64::from(single.to_bits())),
        ("rsi", (number as i32).cast_unsigned().into()),
        ("rdi", number as u64),
    ] {
        hit.context[offset(name) as usize / 8] = value;
    }
    let doubles = (at("rbp", 8)..).zip(number.to_bits().to_le_bytes());
    let singles = (at("rbx", 0)..).zip(single.to_bits().to_le_bytes());
    hit.stored.extend(doubles.chain(singles));
    hit
}

/// What a name is worth in that hit.
fn worth_of(number: f64, name: &Name) -> Datum<'static> {
    match &*name.text {
        "arg1" | "arg3" => Datum::Float(number),
        "arg2" | "arg4" => Datum::Float32(number as f32),
        "arg5" => Datum::Integer((number as i32).into()),
        "arg6" => Datum::Integer((number as u64).into()),
        "arg7" => Datum::Float32(0.1),
        "cpu" => Datum::Integer(3),
        _ => Datum::Missing,
    }
}

/// Floats in registers and memory, of both sizes, and integers beside them are compared as `script` compares them.
#[test]
fn floats_compare_as_they_are_decoded() {
    let planned = Planned::new(FLOATS, Arch::X86_64, Strings::default());
    let numbers = [
        0.0,
        -0.0,
        0.1,
        1.0,
        2.5,
        -2.5,
        16_777_217.0,
        9_007_199_254_740_994.0,
        1e300,
        5e-324,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        -f64::NAN,
    ];
    let constants = [
        "0",
        "-0.0",
        "0.1",
        "2.5",
        "16777217",
        "9007199254740993",
        "-9223372036854775808",
        "18446744073709551615",
        "-1e300",
        "1e-320",
        "(1e300 * 1e300)",
        "(0.0 / 0.0)",
        "(f64)0.1",
        "arg7",
    ];
    let operators = ["==", "!=", "<", "<=", ">", ">="];
    let mut filters: Vec<String> = (1..=7)
        .flat_map(|argument| [format!("arg{argument}"), format!("!arg{argument}")])
        .collect();
    for (number, constant) in constants.iter().enumerate() {
        for (place, operator) in operators.iter().enumerate() {
            filters.extend(
                (1..=6).map(|argument| match (number + place + argument) % 3 {
                    0 => format!("!(arg{argument} {operator} {constant})"),
                    1 => format!("arg{argument} {operator} {constant}"),
                    _ => format!("{constant} {operator} arg{argument} && cpu == 3"),
                }),
            );
        }
    }
    filters.push("arg1 == \"a\"".to_owned());
    filters.push("!(arg5 != \"a\")".to_owned());
    let hits = numbers.map(|number| (number, hit_of(number)));
    let mut both = [0, 0];
    for filter in &filters {
        let condition = condition(&planned, filter).unwrap();
        let spec = Spec {
            condition: Some(&condition),
            ..planned.spec()
        };
        let code = generate(&[&spec], &common()).unwrap();
        let expression = Expr::parse(filter).unwrap();
        for (number, hit) in &hits {
            let right = expression.evaluate(&|name| worth_of(*number, name)).truth() == Some(true);
            let passed = match &condition {
                Condition::Always => true,
                Condition::Never => false,
                _ => hit.run_all(&code).record.is_some(),
            };
            assert_eq!(passed, right, "{filter} of {number:?}");
            both[usize::from(right)] += 1;
        }
    }
    assert!(both.iter().all(|count| *count > 1000), "{both:?}");
}

/// A comparison that is true of all numbers is not true of a value that cannot be read.
#[test]
fn what_is_true_of_all_numbers_needs_one() {
    let planned = Planned::new("4@(%rdx) 8f@8(%rdx)", Arch::X86_64, Strings::default());
    let rdx = value_of(Arch::X86_64.register("rdx").unwrap(), Arch::X86_64);
    let hit = Hit {
        forbidden: std::iter::once(rdx..rdx + 16).collect(),
        ..Hit::default()
    };
    for filter in [
        "arg1 >= 0",
        "arg1 != -1",
        "arg1 != 0.5",
        "arg2 != 9007199254740993",
    ] {
        assert!(passes(&planned, filter, &Hit::default()), "{filter}");
        assert!(
            !passes(&planned, filter, &hit),
            "{filter}: there is no value"
        );
    }
}

#[test]
fn casts_masks_and_memory() {
    let planned = Planned::new(ARGS, Arch::X86_64, Strings::default());
    let rdx = register_value(
        register_offset(Arch::X86_64, Arch::X86_64.register("rdx").unwrap()).unwrap() as usize,
    );
    let byte = byte_at(rdx + 4);
    let word = i16::from_le_bytes([byte_at(rdx), byte_at(rdx + 1)]);
    let passes = |filter: &str| self::passes(&planned, filter, &Hit::default());
    assert!(passes(&format!("(u8)arg3 == {}", rdx & 0xff)));
    assert!(passes(&format!("(s8)arg3 == {}", rdx as i8)));
    assert!(
        passes(&format!("arg3 & 0xff00 == {}", rdx & 0xff00))
            || passes(&format!("(arg3 & 0xff00) == {}", rdx & 0xff00))
    );
    assert!(passes(&format!("*(u8*)(arg3 + 4) == {byte}")));
    assert!(!passes(&format!("*(u8*)(arg3 + 4) != {byte}")));
    assert!(passes(&format!("*(s16*)arg3 == {word}")));
    assert!(passes("arg1") && !passes("!arg1"));
    assert!(passes("args.arg1") && !passes("!args.arg1"));
    let hit = Hit {
        forbidden: std::iter::once(rdx..rdx + 8).collect(),
        ..Hit::default()
    };
    for filter in [
        "*(s16*)arg3 == 5",
        "*(s16*)arg3 != 5",
        "!(*(s16*)arg3 == 5)",
    ] {
        assert!(
            !self::passes(&planned, filter, &hit),
            "{filter}: there is no value"
        );
    }
    assert!(self::passes(&planned, "*(s16*)arg3 == 5 || cpu == 3", &hit));
}

/// The machine's strings are the alphabet, of a length that their address says.
#[test]
fn strings_are_compared_whole_or_by_their_beginning() {
    let planned = Planned::new("8@%rdi", Arch::X86_64, Strings::default());
    let rdi = register_value(
        register_offset(Arch::X86_64, Arch::X86_64.register("rdi").unwrap()).unwrap() as usize,
    );
    let at = |len: usize| {
        let mut hit = Hit::default();
        let offset = register_offset(Arch::X86_64, Arch::X86_64.register("rdi").unwrap()).unwrap();
        hit.context[offset as usize / 8] = rdi & !0x1ff | len as u64;
        assert_eq!(string_len(hit.context[offset as usize / 8]), len);
        hit
    };
    let alphabet: String = (b'a'..=b'z').cycle().take(60).map(char::from).collect();
    for len in [0, 1, 7, 8, 9, 16, 31, 60] {
        let hit = at(len);
        for other in [0, 1, 7, 8, 9, 15, 16, 17, 31, 60] {
            let string = &alphabet[..other];
            let cases = [
                (format!("arg1 == {string:?}"), len == other),
                (format!("arg1 != {string:?}"), len != other),
                (format!("arg1 ~ \"{string}*\""), len >= other),
                (format!("!(arg1 ~ \"{string}*\")"), len < other),
            ];
            for (filter, right) in cases {
                assert_eq!(passes(&planned, &filter, &hit), right, "{len}: {filter}");
            }
        }
        assert!(!passes(&planned, "arg1 ~ \"x*\"", &hit), "{len}");
        for (most, other) in [
            (0, 0),
            (0, 1),
            (3, 2),
            (3, 3),
            (3, 4),
            (8, 7),
            (8, 8),
            (100, 31),
        ] {
            let begin = len.min(most);
            let string = &alphabet[..other];
            let cases = [
                (format!("str(arg1, {most}) == {string:?}"), begin == other),
                (format!("str(arg1, {most}) != {string:?}"), begin != other),
                (format!("str(arg1, {most}) ~ \"{string}*\""), begin >= other),
                (
                    format!("!(str(arg1, {most}) ~ \"{string}*\")"),
                    begin < other,
                ),
            ];
            for (filter, right) in cases {
                assert_eq!(passes(&planned, &filter, &hit), right, "{len}: {filter}");
            }
        }
        assert!(!passes(&planned, "str(arg1, 3) == \"xyz\"", &hit), "{len}");
        assert!(passes(&planned, "str(arg1, -1) == \"\"", &hit), "{len}");
    }
    let hit = Hit {
        forbidden: std::iter::once(rdi..rdi + 1).collect(),
        ..Hit::default()
    };
    for filter in [
        "arg1 == \"a\"",
        "arg1 != \"a\"",
        "!(arg1 ~ \"a*\")",
        "str(arg1, 1) != \"ab\"",
    ] {
        assert!(!passes(&planned, filter, &hit), "{filter}: unreadable");
    }
}

/// A filter compares what the schema captures, as the trace has it; in a sum or at an address, the argument is meant of which a string is captured.
#[test]
fn captured_arguments_are_what_the_schema_captures() {
    let planned = Planned::new("8@%rdi 8@%rsi 4@%edx", Arch::X86_64, Strings::default());
    let captured = |name: &str, capture: &str| Argument {
        capture: Some(capture.to_owned()),
        ..Argument::named(name)
    };
    let arguments = [
        captured("type", "str(*(type+8))"),
        captured("size", "*(u32*)(arg2+4)"),
        captured("word", "*(arg1+16)"),
    ];
    for (filter, written) in [
        (
            "type == \"St9exception\"",
            "str(*(arg1+8)) == \"St9exception\"",
        ),
        ("args.type ~ \"St*\"", "str(*(arg1+8)) ~ \"St*\""),
        ("str(type, 2) != \"St\"", "str(*(arg1+8), 2) != \"St\""),
        ("str(*(type+8)) == \"a\"", "str(*(arg1+8)) == \"a\""),
        ("size > 5 && cpu == 3", "*(u32*)(arg2+4) > 5 && cpu == 3"),
        ("(u8)size - 1 == 5", "(u8)*(u32*)(arg2+4) - 1 == 5"),
        ("!size", "!*(u32*)(arg2+4)"),
        ("word == \"a\"", "str(*(arg1+16)) == \"a\""),
        ("word != 0", "*(arg1+16) != 0"),
    ] {
        let of_schema = condition_of(&planned, &arguments, filter);
        let expected = condition(&planned, written).unwrap();
        assert_ne!(expected, Condition::Never, "{written}");
        assert_eq!(of_schema, Ok(expected), "{filter}");
    }
}

/// A hit of a string at `rdi`, whose length is in `esi`.
fn sized(address: u64, length: u64) -> Hit {
    let mut hit = Hit::default();
    for (name, value) in [("rdi", address), ("rsi", length)] {
        let register = Arch::X86_64.register(name).unwrap();
        let offset = register_offset(Arch::X86_64, register).unwrap();
        hit.context[offset as usize / 8] = value;
    }
    hit
}

/// Whether a filter lets a hit of a string pass whose length is the second argument.
fn passes_sized(args: &str, filter: &str, hit: &Hit) -> bool {
    let planned = Planned::new(args, Arch::X86_64, Strings::default());
    let length = Length::Argument("arg2".to_owned());
    let string = Argument {
        kind: Some(ArgumentType::String(Some(length))),
        ..Argument::unnamed(0)
    };
    let arguments = [string, Argument::unnamed(1)];
    let condition = condition_of(&planned, &arguments, filter).unwrap();
    condition != Condition::Never && run(&planned, &condition, hit, &common()).record.is_some()
}

/// A constant length is as one of the hit.
#[test]
fn strings_of_constant_length() {
    let passes = |filter: &str, letters: u64| {
        let hit = sized(0x7f00_0000_1000 | letters, 0);
        passes_sized("8@%rdi -4@$5", filter, &hit)
    };
    for letters in [5, 10] {
        assert!(passes("arg1 == \"abcde\"", letters), "{letters}");
        assert!(!passes("arg1 != \"abcde\"", letters), "{letters}");
        assert!(passes("arg1 ~ \"abc*\"", letters), "{letters}");
        assert!(!passes("arg1 ~ \"abcdef*\"", letters), "{letters}");
        assert!(passes("arg1 != \"abcdefghij\"", letters), "{letters}");
    }
    // It is recorded up to its NUL.
    assert!(passes("arg1 == \"ab\"", 2));
    assert!(!passes("arg1 == \"abcde\"", 2));
}

/// Nothing is read of an empty string, which may be anywhere; other strings have to be read.
#[test]
fn empty_strings_of_a_length_can_be_at_any_address() {
    for address in [0, 0x7f00_0000_1005] {
        let passes = |filter: &str, length: u64| {
            let hit = Hit {
                forbidden: std::iter::once(address..address + 1).collect(),
                ..sized(address, length)
            };
            passes_sized("8@%rdi -4@%esi", filter, &hit)
        };
        assert!(passes("arg1 == \"\"", 0), "{address:#x}");
        assert!(passes("arg1 ~ \"*\"", 0), "{address:#x}");
        assert!(!passes("arg1 != \"\"", 0), "{address:#x}");
        assert!(!passes("arg1 == \"a\"", 0), "{address:#x}");
        assert!(!passes("arg1 == \"\"", 3), "{address:#x}");
        assert!(!passes("arg1 ~ \"*\"", 3), "{address:#x}");
    }
}

#[test]
fn names_of_threads() {
    let planned = Planned::new("4@%edi", Arch::X86_64, Strings::default());
    for (filter, right) in [
        ("comm == \"postgres\"", true),
        ("comm == \"postgre\"", false),
        ("comm == \"postgresq\"", false),
        ("comm ~ \"post*\"", true),
        ("comm ~ \"pasta*\"", false),
        ("comm != \"postgres\"", false),
        ("comm != \"a name longer than any\"", true),
        ("comm == \"a name longer than any\"", false),
    ] {
        assert_eq!(passes(&planned, filter, &Hit::default()), right, "{filter}");
    }
}

#[test]
fn what_cannot_be_asked_is_told() {
    let planned = Planned::new(ARGS, Arch::X86_64, Strings::default());
    for (filter, part) in [
        ("arg11 == 1", "has no argument arg11"),
        ("url == 1", "it has arg1, arg2"),
        ("arg1 == arg2", "cannot be evaluated while recording"),
        ("arg1 * 2 == 4", "cannot be evaluated while recording"),
        ("arg3 ~ \"a*b\"", "more than a *"),
        ("arg3 < \"a\"", "the order of strings"),
        (
            "str(arg3, arg1) == \"a\"",
            "a string whose length is no constant",
        ),
        ("arg3 + 0.5 > 1", "cannot be evaluated while recording"),
    ] {
        let error = condition(&planned, filter).unwrap_err();
        assert!(error.contains(part), "{filter}: {error}");
    }
    // A number is no string; and what is not captured has no value.
    for filter in ["arg10 == 1", "arg10 != 1", "pid == \"x\""] {
        assert_eq!(
            condition(&planned, filter),
            Ok(Condition::Never),
            "{filter}"
        );
    }
}
