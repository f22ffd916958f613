//! `cargo run --bin seeds` in this directory: compiles a small program in several ways and writes `seeds/`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use symbolizer::{Module, NoDebugFiles};
use symbolizer_fuzz::{
    link,
    parts::{self, NAMES},
    session, xz,
};

const SOURCE: &str = "
struct stats { long hits; int state : 3; union { long whole; int half[2]; } word; struct stats *next; };
struct stats array[4] = {{1}};
static inline __attribute__((always_inline)) void bump(struct stats *stats, long by) { stats->hits += by; }
__attribute__((noinline)) long worker(struct stats *stats, long rounds) {
    static long calls = 1;
    for (long round = 0; round < rounds; round++) bump(stats + (round & 3), round);
    return calls++;
}
void _start(void) { worker(array, array[1].hits); for (;;); }
";

/// Bytes before the code in an input of `machine_code`.
const REGISTERS: usize = 18;

/// Types with the names that the tool asks the kernel for.
const TYPES: &str = "
struct list_head { struct list_head *next, *prev; };
enum kind { A, B = -1 };
struct task_struct {
    int tgid; unsigned flag : 3, other : 5; union { int i; float f; } both; struct { long fsbase; } thread;
    struct list_head tasks; enum kind kinds[4]; const volatile char *name; int (*f)(struct list_head *, long);
};
struct task_struct init_task;
int counter;
int worker(struct task_struct *task, long n) { counter += n; return task->tgid; }
";

/// Name of the seed, compiler, flags.
const WAYS: [(&str, &str, &[&str]); 5] = [
    (
        "gcc4",
        "gcc",
        &["-gdwarf-4", "-O2", "-fdebug-types-section"],
    ),
    ("gcc5", "gcc", &["-gdwarf-5", "-O2"]),
    ("gcc0", "gcc", &["-gdwarf-5", "-O0"]),
    ("clang4", "clang", &["-gdwarf-4", "-O2"]),
    ("clang5", "clang", &["-gdwarf-5", "-O1"]),
];

fn main() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let directory = std::env::temp_dir().join(format!("symbolizer-seeds-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory to build in");
    let source = directory.join("seed.c");
    fs::write(&source, SOURCE).expect("writing the source");
    for (name, compiler, flags) in WAYS {
        let Some(program) = build(compiler, flags, &source) else {
            eprintln!("SKIPPED: {compiler} {flags:?}");
            continue;
        };
        let bytes = fs::read(&program).expect("what was just built");
        write(&seeds.join("dwarf").join(name), &sections(&bytes, ""));
        if name.ends_with('5') {
            write(&seeds.join("elf").join(name), &bytes);
            let whole = sections(&bytes, "");
            machine_code(&seeds.join("machine_code").join(name), &bytes);
            write(&seeds.join("debuglink").join(name), &link::seed(&whole));
            let mut stored = vec![2, 0, 0, 0];
            stored.extend(whole);
            write_named(&seeds.join("minidebug").join(name), &stored);
            let split: Vec<&str> = flags.iter().copied().chain(["-gsplit-dwarf"]).collect();
            let Some(program) = build(compiler, &split, &source) else {
                continue;
            };
            let skeleton = sections(&fs::read(program).expect("just built"), "");
            let entries = fs::read_dir(&directory).expect("just made").flatten();
            let mut dwos = entries
                .map(|entry| entry.path())
                .filter(|path| path.extension().is_some_and(|e| e == "dwo"));
            if let Some(dwo) = dwos.next() {
                let dwo_sections = sections(&fs::read(&dwo).expect("just built"), ".dwo");
                let mut seed = (skeleton.len() as u16).to_le_bytes().to_vec();
                seed.extend(skeleton);
                seed.extend(dwo_sections);
                write(&seeds.join("split").join(name), &seed);
                fs::remove_file(dwo).expect("just built");
            }
        }
    }
    compressed(&seeds, &directory);
    kernel(&seeds, &directory);
    fs::remove_dir_all(&directory).expect("just made");
    write(
        &seeds.join("perf_map/three"),
        b"7f0000001000 40 main\n7f0000001040 20 LazyCompile:~f a.js:3\n7f0000001020 30 x y\n",
    );
    write(&seeds.join("jitdump/three"), &jitdump());
    texts(&seeds);
    for (name, input) in session::seeds() {
        write(&seeds.join("session").join(name), &input);
    }
}

fn build(compiler: &str, flags: &[&str], source: &Path) -> Option<PathBuf> {
    let program = source.with_file_name("program");
    let directory = source.parent()?;
    let status = Command::new(compiler)
        .args(flags)
        .args([
            "-nostdlib",
            "-static",
            "-no-pie",
            "-fno-stack-protector",
            "-fcf-protection=none",
        ])
        .args([
            "-Wl,--build-id=none",
            "-Wl,-Ttext=0x400000",
            "-Wl,-Tdata=0x500000",
        ])
        // The same bytes wherever they are made.
        .arg(format!("-fdebug-prefix-map={}=/s", directory.display()))
        .current_dir(directory)
        .args(["seed.c", "-o", "program"])
        .status();
    status
        .is_ok_and(|status| status.success())
        .then_some(program)
}

/// Hints, what compilers write and what people do; maps of a process.
fn texts(seeds: &Path) {
    let hints = include_bytes!("../fuzz_targets/standard_hints.json");
    write(&seeds.join("hints_json/three"), hints);
    write(
        &seeds.join("assembly/three"),
        b"\t.file 1 \"/src/a.c\"\nf:\n\t.loc 1 1 5\n\tmovq\t8(%rdi), %rax\n.L2:\n\t.loc 1 2 2\n\tmovl\tcounter(%rip), %edx\n\
          \t.loc 1 3 2\n\taddq\t(%rax,%rdx,8), %rcx\n\tjne\t.L2\n\tret\n",
    );
    write(
        &seeds.join("source_edit/loop"),
        b"struct s { long a; int b : 3; } *p;\nlong counter;\nvoid f(long *q) {\n\tfor (int i = 0; i < 9; i++)\n\t\t\
          counter = q[i] + 2; /* \"x\" */\n\tif (p->a++ > 1) { q[1] += counter; }\n}\n",
    );
    write(
        &seeds.join("proc_maps/all"),
        b"00400000-00401000 r-xp 00000000 08:01 9 /bin/a b (deleted)\n7f0000000000-7f0000002000 rw-s 00001000 fe:01 77 \
          /dev/shm/a\\012b\n7ffe0000-7ffe1000 rw-p 00000000 00:00 0 [stack]\n",
    );
}

/// Code of a program as an input of the target of that name.
fn machine_code(path: &Path, bytes: &[u8]) {
    let file = object::File::parse(bytes).expect("an ELF file");
    let text = file.section_by_name(".text").expect("it has code");
    let code = text.data().expect("in the file");
    write(path, &[&[7; REGISTERS][..], code].concat());
}

/// Types of the kernel's form and symbols, as the target `kernel_types` wants them; and code of every kind.
fn kernel(seeds: &Path, directory: &Path) {
    let (source, object) = (directory.join("types.c"), directory.join("types.o"));
    fs::write(&source, TYPES).expect("writing the source");
    let built = Command::new("clang")
        .args(["-target", "bpf", "-g", "-O2", "-c", "types.c", "-o"])
        .arg(&object)
        .current_dir(directory)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: clang -target bpf");
        return;
    }
    let bytes = fs::read(object).expect("what was just built");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let section = file.section_by_name(".BTF").expect("asked for");
    let types = section.data().expect("in the file");
    let mut seed = (types.len() as u16).to_le_bytes().to_vec();
    seed.extend(types);
    seed.extend(
        b"ffffffff81000000 T _stext\nffffffff81000010 T worker\nffffffff82000000 D init_task\n\
          ffffffff82000080 d counter\n0000000000000000 A __per_cpu_start\n0000000000001000 A __per_cpu_end\n\
          ffffffffc0000000 t f [module]\n",
    );
    write(&seeds.join("kernel_types/few"), &seed);
}

/// The file with symbols only, as a whole section and as the data in it.
fn compressed(seeds: &Path, directory: &Path) {
    let (program, symbols) = (directory.join("program"), directory.join("symbols"));
    let objcopy = Command::new("objcopy")
        .args(["--only-keep-debug", "-R", ".debug*", "-R", ".comment"])
        .arg(program)
        .arg(&symbols)
        .status();
    let xz = Command::new("xz")
        .args(["--keep", "--check=none"])
        .arg(&symbols)
        .status();
    if ![objcopy, xz]
        .iter()
        .all(|ran| ran.as_ref().is_ok_and(std::process::ExitStatus::success))
    {
        eprintln!("SKIPPED: objcopy and xz");
        return;
    }
    let file = fs::read(directory.join("symbols.xz")).expect("just made");
    write_named(
        &seeds.join("minidebug/whole"),
        &[&[0; 4], &file[..]].concat(),
    );
    let inflated = fs::metadata(&symbols).expect("kept").len() as u16;
    let [low, high] = inflated.to_le_bytes();
    // Behind the stream's header and the block's; before the index, whose size is in the footer.
    let footer = file.len() - 12;
    let index = u32::from_le_bytes(file[footer + 4..footer + 8].try_into().expect("four bytes"));
    let start = 12 + 4 * (usize::from(file[12]) + 1);
    let data = &file[start..footer - 4 * (index as usize + 1)];
    write_named(
        &seeds.join("minidebug/data"),
        &[&[1, 22, low, high], data].concat(),
    );
}

/// A seed of the target `minidebug`, which must lead up to the name of a function.
fn write_named(path: &Path, bytes: &[u8]) {
    let section = xz::section(bytes).expect("long enough");
    let file = parts::stripped(&section);
    let module = Module::parse(Arc::new(file), Box::new(NoDebugFiles)).expect("an ELF file");
    let named = module.frames(parts::TEXT + 8).symbol;
    assert!(named.is_ok(), "{}: {named:?}", path.display());
    write(path, bytes);
}

/// The sections of a file as an input. Symbols get their names from `.debug_str`, at offsets that mean nothing.
fn sections(bytes: &[u8], suffix: &str) -> Vec<u8> {
    let file = object::File::parse(bytes).expect("an ELF file");
    let mut contents: Vec<Vec<u8>> = NAMES
        .iter()
        .map(|name| {
            let name = if name.starts_with(".debug") {
                format!("{name}{suffix}")
            } else {
                (*name).to_owned()
            };
            let section = file.section_by_name(&name);
            section.map_or_else(Vec::new, |section| {
                section.data().expect("in the file").to_vec()
            })
        })
        .collect();
    let mut symbols = vec![0; 24];
    for (index, symbol) in file
        .symbols()
        .filter(|symbol| symbol.size() > 0)
        .enumerate()
    {
        let kind = if symbol.kind() == object::SymbolKind::Text {
            2
        } else {
            1
        };
        symbols.extend((1 + index as u32 * 5).to_le_bytes());
        symbols.extend([0x10 | kind, 0]);
        symbols.extend([if kind == 2 { 1 } else { 2 }, 0]);
        symbols.extend(symbol.address().to_le_bytes());
        symbols.extend(symbol.size().to_le_bytes());
    }
    if suffix.is_empty() {
        contents[NAMES.len() - 1] = symbols;
    }
    let parts: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
    parts::join(&parts.try_into().expect("one for each name"))
}

/// Header, a function with lines, a move, the end (jitdump specification of the kernel's perf tool, version 1).
fn jitdump() -> Vec<u8> {
    let mut file = b"DTiJ".to_vec();
    for word in [1u32, 40, 62, 0, 7] {
        file.extend(word.to_le_bytes());
    }
    file.extend([0; 16]);
    let mut record = |kind: u32, body: &[u8]| {
        file.extend(kind.to_le_bytes());
        file.extend((16 + body.len() as u32).to_le_bytes());
        file.extend(1u64.to_le_bytes());
        file.extend(body);
    };
    let words =
        |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let ids = [7u32.to_le_bytes(), 7u32.to_le_bytes()].concat();
    let mut line = words(&[0x1000, 2]);
    for (address, number) in [(0x1000u64, 3u32), (0x1004, 4)] {
        line.extend(address.to_le_bytes());
        line.extend(number.to_le_bytes());
        line.extend(0u32.to_le_bytes());
        line.extend(b"a.js\0");
    }
    record(2, &line);
    record(
        0,
        &[
            &ids[..],
            &words(&[0x1000, 0x1000, 8, 1])[..],
            b"f\0",
            &[0x90; 8],
        ]
        .concat(),
    );
    record(
        1,
        &[&ids[..], &words(&[0x2000, 0x1000, 0x2000, 8, 1])[..]].concat(),
    );
    record(3, &[]);
    file
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("below seeds/")).expect("making the directory");
    fs::write(path, bytes).expect("writing a seed");
    println!("{} {}", path.display(), bytes.len());
}
