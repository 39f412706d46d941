//! Writes the inputs that fuzzing starts from into `corpus/`, made of the project's `testdata/` and of traces that are
//! written here. Run in `fuzz/`.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use usdtrec_format::Arch;
use usdtrec_format::perf::{RecordType, Records};
use usdtrec_format::schema::bundled;
use usdtrec_format::trace::{BlockReader, Compression, PipeWriter, Trace};
use usdtrec_fuzz::{compact, records};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    traces()?;
    record_runs()?;
    definitions()?;
    code_names()?;
    notes()?;
    operands()?;
    texts()?;
    formats()?;
    elf()
}

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../testdata")
        .join(name)
}

fn save(target: &str, name: &str, bytes: &[u8]) -> Outcome<()> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    fs::create_dir_all(&dir)?;
    Ok(fs::write(dir.join(name), bytes)?)
}

/// Names of the functions of the file that `code_names` maps.
fn code_names() -> Outcome<()> {
    let json = br#"{"functions":["main","inner"],"sources":["/src/a.c"],"files":[{"path":"/bin/app","symbols":"all","places":[{"at":256,"function":0,"within":16}],"lines":[{"at":256,"frames":[{"function":1,"source":0,"line":3},{"source":0,"line":7}]}]}],"made":[{"pid":7,"began":0,"places":[{"at":365072220416,"function":1,"within":0}]}]}"#;
    for how in [0, 2, 4] {
        save(
            "code_names",
            &format!("names-{how}"),
            &[&[how], &json[..]].concat(),
        )?;
    }
    save("code_names", "section", &[&[1], &[0; 24][..]].concat())
}

/// Whole files: those of other programs, and small ones of ours.
fn traces() -> Outcome<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(testdata("traces"))? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "data")
        {
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            files.push((name, fs::read(path)?));
        }
    }
    for (how, compression) in [("plain", Compression::None), ("zstd", Compression::Zstd(1))] {
        for finish in [false, true] {
            files.push((
                format!("ours-{how}-{finish}"),
                records::trace(compression, finish),
            ));
        }
    }
    for (how, compression) in [("plain", Compression::None), ("zstd", Compression::Zstd(1))] {
        let mut bytes = Vec::new();
        let mut writer = PipeWriter::create(&mut bytes, &records::info(), compression)?;
        for round in 0..3 {
            writer.push(&records::process(100 * round));
            writer.push(&records::hits(100 * round));
            writer.flush()?;
        }
        writer.finish(&[])?;
        files.push((format!("pipe-{how}"), bytes));
    }
    for (name, bytes) in files {
        let bytes = compact::compact(bytes);
        let pipe = bytes.get(8) == Some(&16);
        let targets = ["trace", "report", "peer", "live"];
        for target in targets
            .into_iter()
            .filter(|target| pipe || *target != "live")
        {
            save(target, &name, &bytes)?;
            save(
                target,
                &format!("{name}-cut"),
                &bytes[..bytes.len() * 3 / 4],
            )?;
        }
    }
    Ok(())
}

/// Runs of records: ours, and the metadata of stock traces.
fn record_runs() -> Outcome<()> {
    let all = [
        records::process(0),
        records::hits(0),
        records::process(50),
        records::hits(20),
        records::hits(100),
    ]
    .concat();
    for how in 0..16_u8 {
        save(
            "records",
            &format!("ours-{how}"),
            &[&[how], &all[..]].concat(),
        )?;
    }
    save("processes", "ours", &[&[2], &all[..]].concat())?;
    for name in [
        "stock-6.1.data",
        "stock-6.1-z.data",
        "stock-7.2.data",
        "mixed.data",
    ] {
        let trace = Trace::open(&testdata("traces").join(name))?;
        let mut reader = BlockReader::new();
        let mut metadata = Vec::new();
        for block in trace.blocks() {
            let bytes = reader
                .read(&trace, block)
                .map_err(|damage| damage.to_string())?
                .to_vec();
            for record in Records::new(&bytes).filter(|record| record.kind != RecordType::SAMPLE) {
                metadata.extend(&bytes[record.offset..record.offset + 8 + record.body.len()]);
            }
        }
        for trailer in 0..4_u8 {
            let part = &metadata[..metadata.len().min(8000)];
            save(
                "processes",
                &format!("{name}-{trailer}"),
                &[&[trailer], part].concat(),
            )?;
        }
    }
    Ok(())
}

fn definitions() -> Outcome<()> {
    save(
        "definitions",
        "ours",
        &serde_json::to_vec(&records::definitions())?,
    )?;
    let demo = Trace::open(&testdata("demo.data"))?;
    if let Some(definitions) = &demo.info().definitions {
        save("definitions", "demo", &serde_json::to_vec(definitions)?)?;
    }
    Ok(())
}

/// The objects of a file of the corpus, one a line.
fn objects(name: &str) -> Outcome<Vec<Value>> {
    let text = fs::read_to_string(testdata("corpus").join(name))?;
    Ok(text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?)
}

fn text<'a>(object: &'a Value, member: &str) -> &'a str {
    object[member].as_str().unwrap_or_default()
}

fn notes() -> Outcome<()> {
    for (number, object) in objects("note-sections.jsonl")?.iter().enumerate() {
        let class64 = object["class"] == 64;
        let big_endian = object["endian"] == "big";
        let hex = text(object, "section_hex").as_bytes();
        let mut bytes = vec![u8::from(class64) | u8::from(big_endian) << 1];
        for pair in hex.chunks_exact(2).take(2000) {
            bytes.push(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?);
        }
        save("notes", &number.to_string(), &bytes)?;
    }
    Ok(())
}

fn operands() -> Outcome<()> {
    let arches = [
        Arch::X86_64,
        Arch::I386,
        Arch::Aarch64,
        Arch::Arm,
        Arch::Ppc64le,
        Arch::S390x,
        Arch::Riscv64,
    ];
    let mut number = 0;
    for name in fs::read_dir(testdata("corpus"))? {
        let name = name?.file_name().into_string().unwrap_or_default();
        if name == "note-sections.jsonl" {
            continue;
        }
        let objects = objects(&name)?;
        // The vectors are all different; of the notes of real programs a part will do.
        let step = if name.starts_with("arg") {
            1
        } else {
            (objects.len() / 60).max(1)
        };
        for object in objects.iter().step_by(step) {
            let arch = arches
                .iter()
                .position(|arch| arch.name() == text(object, "arch"))
                .unwrap_or(0);
            let bytes = [&[arch as u8, 0xff], text(object, "args").as_bytes()].concat();
            save("operands", &number.to_string(), &bytes)?;
            number += 1;
        }
    }
    Ok(())
}

fn texts() -> Outcome<()> {
    let patterns = [
        "sdt_app:request*@/opt/a@b/app\napp:request__start\nrequest-start",
        "*:gc-[a-c]*?\nruby:gc__b\n[!x]*",
        "10%-20%\n1.5,2\n,7\n0-3,6\ncomm,ip,sym\n+pid,-cpu",
        "a*a*a*a*a*a*b\naaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ];
    for (number, text) in patterns.iter().enumerate() {
        save("patterns", &number.to_string(), text.as_bytes())?;
    }
    let filters = [
        "arg1 == -1 && arg2 > 0x10 || !(arg3 & 3)",
        "(s16)arg1 << 3 >= 1.5e3 || arg2 ~ \"he*o\"",
        "comm == \"app\" && pid % 2 == 1 && cpu < 4",
        "str(arg2, 8) != 'a' , x=*(u32 *)(arg1 + 8), y=bytes(arg3, 4)",
        "sdt_app:re*(n=arg1, arg2)@/bin/app",
    ];
    for (number, text) in filters.iter().enumerate() {
        save("filters", &number.to_string(), text.as_bytes())?;
    }
    let link = "../../bin/app/0a1b2c3d4e5f60718293a4b5c6d7e8f901122334";
    let caches = [
        "%sdt_app:hit=hit\np:sdt_app/hit /bin/app:0x1100(0x3000) arg1=%di:s32\np:sdt_app/hit /opt/a b:0x1104\n",
        "main=main\np:probe_app/main /bin/app:0x1234 argc=%di:s32\n%sdt_app:b-c=b-c\n",
        "p:x\n%sdt_\n%sdt_a:b=b\np: /x:0x\n",
    ];
    for (number, text) in caches.iter().enumerate() {
        save(
            "cache",
            &number.to_string(),
            format!("{link}\n{text}").as_bytes(),
        )?;
    }
    save(
        "cache",
        "up",
        format!("../../../etc\n{}", caches[0]).as_bytes(),
    )
}

/// Formats of tracepoints, and schemas.
fn formats() -> Outcome<()> {
    const MAGIC: &[u8] = b"\x17\x08\x44tracing";
    for name in [
        "stock-6.1.data",
        "stock-7.2.data",
        "tracepoint.data",
        "mixed.data",
    ] {
        let bytes = fs::read(testdata("traces").join(name))?;
        if let Some(at) = bytes
            .windows(MAGIC.len())
            .position(|window| window == MAGIC)
        {
            save("tracing_data", name, &bytes[at..])?;
        }
    }
    for (number, text) in bundled::texts().enumerate() {
        let part = &text.as_bytes()[..text.len().min(4000)];
        save(
            "schemas",
            &format!("bundled-{number}"),
            &[&[0], part].concat(),
        )?;
    }
    let provider = "typedef struct { int a; char *b; } t;\nprovider app {\n\
        probe query__start(char *, uint32_t size, t *);\n  probe gc__done();\n};\n";
    save(
        "schemas",
        "provider",
        &[b"\x01", provider.as_bytes()].concat(),
    )
}

/// A program and a library with probes, as small as they get.
fn elf() -> Outcome<()> {
    let source = ".text\n.globl main\n.type main,@function\nmain:\n.cfi_startproc\n.Lhit: nop\nret\n.cfi_endproc\n.size main,.-main\n\
        .pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 8,.Le-.Ld,3\n.asciz \"stapsdt\"\n\
        .Ld: WORD .Lhit\nWORD _base\nWORD sem\n.asciz \"app\"\n.asciz \"hit\"\n.asciz \"-4@%edi\"\n\
        .Le: .balign 4\n.popsection\n.section .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n\
        _base: .space 1\n.section .probes,\"aw\"\nsem: .2byte 0\n.section .note.GNU-stack\n";
    let dir = tempfile::tempdir()?;
    let flags: [(&str, &str, &[&str]); 4] = [
        ("program", ".8byte", &["-static", "-Wl,-e,main"]),
        ("library", ".8byte", &["-shared"]),
        ("object", ".8byte", &["-c"]),
        ("program32", ".4byte", &["-m32", "-static", "-Wl,-e,main"]),
    ];
    for (name, word, flags) in flags {
        let input = dir.path().join("app.s");
        let output = dir.path().join(name);
        fs::write(&input, source.replace("WORD", word))?;
        let mut compiler = Command::new("cc");
        compiler
            .args(flags)
            .args(["-nostdlib", "-Wl,--build-id,-z,noseparate-code", "-o"]);
        if compiler.arg(&output).arg(&input).status()?.success() {
            let bytes = fs::read(&output)?;
            save("elf", name, &bytes)?;
            save("unwind", name, &bytes)?;
        }
    }
    Ok(())
}
