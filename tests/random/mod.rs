//! Random operands: programs in assembly whose registers, memory, stack and thread-local storage are known, with notes that name
//! places in them. Every engine must decode what was put there, or say that it is missing; programs in the kernel must have all.
//!
//! By hand, for long: `USDTREC_RANDOM_SEED=1000 USDTREC_RANDOM_ROUNDS=500 cargo test --test end_to_end random`.

mod operand;
mod program;

use std::path::Path;
use std::process::Command;

use usdtrec_testing::{SplitMix64, number, repetitions};

use self::operand::{Truth, Width};
use self::program::{Program, Shape};
use crate::common::{Engine, Event, Lab, Number, need_tool, run, test};

/// What was compared.
#[derive(Debug, Default)]
struct Compared {
    there: usize,
    missing: usize,
}

/// Compares an argument with what was put into its place.
fn compare(event: &Event, place: usize, truth: &Truth, engine: Engine, compared: &mut Compared) {
    let about = || {
        format!(
            "{} of {} with {}",
            truth.operand,
            event.event,
            engine.option()
        )
    };
    match (event.argument(place), &truth.width) {
        (Err(reason), Width::Wide(low)) => {
            let lower = format!("lower 8 {low:#x}");
            assert!(
                reason.contains(&lower) || !engine.reads_memory(),
                "{}: {reason}",
                about()
            );
            compared.missing += 1;
        }
        (Err(reason), _) => {
            let may = truth.in_memory && !engine.reads_memory();
            assert!(may, "{}: {reason}", about());
            compared.missing += 1;
        }
        (Ok(value), width) => {
            let right = match (width, value) {
                (Width::Integer(right), value) => Number::Integer(*right) == value,
                (Width::Single(right), Number::Float(value)) => {
                    right.is_nan() && value.is_nan() || *right == value as f32
                }
                (Width::Double(right), Number::Float(value)) => {
                    right.is_nan() && value.is_nan() || *right == value
                }
                _ => false,
            };
            assert!(right, "{}: {value:?}, put there was {width:?}", about());
            compared.there += 1;
        }
    }
}

/// Makes, builds and records a program with every engine.
fn round(lab: &Lab, seed: u64, shape: Shape, compared: &mut Compared) {
    let program = Program::new(&mut SplitMix64(seed), shape);
    let (source, binary) = (lab.file("random.s"), lab.file("random"));
    std::fs::write(&source, program.text()).expect("a file");
    let mut compiler = Command::new("gcc");
    compiler.args(shape.options()).arg("-o");
    run({
        compiler.arg(&binary).arg(&source);
        compiler
    })
    .success();
    for engine in Engine::ALL {
        with_engine(lab, &binary, &program, (seed, engine), compared);
    }
}

fn with_engine(
    lab: &Lab,
    binary: &Path,
    program: &Program,
    (seed, engine): (u64, Engine),
    compared: &mut Compared,
) {
    let path = binary.to_str().expect("a path in UTF-8");
    let event = format!("random:*@{path}");
    lab.usdtrec(engine.record("trace", &event, &[path]))
        .success();
    let events = lab.events("trace");
    let shape = program.shape();
    assert_eq!(
        events.len(),
        program.sites().len(),
        "seed {seed}, {shape:?}, {}",
        engine.option()
    );
    for event in &events {
        let site = event.name().strip_prefix('p');
        let site: usize = site.and_then(|site| site.parse().ok()).expect("a number");
        let truths = &program.sites()[site];
        assert_eq!(event.argument_count(), truths.len(), "seed {seed}");
        for (place, truth) in (1..).zip(truths) {
            compare(event, place, truth, engine, compared);
        }
    }
}

/// Rounds of one shape; the seed of what went wrong is in the message.
#[track_caller]
fn rounds(shape: Shape) {
    let lab = Lab::privileged();
    need_tool("gcc");
    let first = number("USDTREC_RANDOM_SEED", 1);
    let count = repetitions("USDTREC_RANDOM_ROUNDS", 1);
    let mut compared = Compared::default();
    for seed in first..first + count {
        println!("seed {seed}, {shape:?}");
        round(&lab, seed, shape, &mut compared);
    }
    println!("{shape:?}: {compared:?}");
    assert!(compared.there > compared.missing, "{compared:?}");
}

macro_rules! shapes {
    ($($test:ident: $shape:ident;)*) => {
        $(#[test]
        fn $test() {
            rounds(Shape::$shape);
        })*
    };
}

shapes! {
    position_independent: Pie;
    at_a_fixed_address: Fixed;
    statically_linked: Static;
    static_and_position_independent: StaticPie;
    in_32_bits: Narrow;
    in_32_bits_at_a_fixed_address: NarrowFixed;
}
