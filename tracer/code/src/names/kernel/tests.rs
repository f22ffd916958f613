use cohtrace_skips::skipped_core;
use std::{fs, path::Path, process::Command};

use crate::{
    access::{LineKey, LineSize, Place},
    module::ModuleStore,
    names::{CodeName, Names as _, ObjectKind, ObjectName, Resolver},
    space::AddressSpaces,
};

/// Where the linker puts the kernel of the tests, and how far from there it was loaded.
const LINKED: u64 = 0xffff_ffff_8100_0000;
const SLIDE: u64 = 0x1a00_0000;

const SOURCE: &str = "struct stats { long hits; long misses; };\n\
    struct stats stats __attribute__((aligned(64))) = {1, 2};\n\
    static inline __attribute__((always_inline)) void bump(long *counter) {\n\
        __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);\n\
    }\n\
    void start(void) {\n\
        bump(&stats.misses);\n\
    }\n";

fn run(command: &mut Command) -> Option<Vec<u8>> {
    let output = command.output().ok()?;
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(output.stdout)
}

/// Svma of a symbol, as nm says.
fn symbol(program: &Path, name: &str) -> Option<u64> {
    let text = String::from_utf8(run(Command::new("nm").arg(program))?).ok()?;
    let line = text
        .lines()
        .find(|line| line.ends_with(&format!(" {name}")))?;
    u64::from_str_radix(line.split(' ').next()?, 16).ok()
}

/// A kernel of one function and one variable that was loaded `SLIDE` bytes higher, with its file at `path`; what its
/// svmas are.
fn kernel(root: &Path, path: &str) -> Option<(u64, u64)> {
    let source = root.join("kernel.c");
    fs::write(&source, SOURCE).unwrap();
    let program = root.join(path);
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    let text = format!("-Wl,-Ttext={LINKED:#x}");
    let mut compiler = Command::new("cc");
    compiler.args([
        "-O2",
        "-g",
        "-static",
        "-no-pie",
        "-nostdlib",
        "-ffreestanding",
    ]);
    compiler.args([
        "-fno-pie",
        "-mcmodel=kernel",
        "-Wl,--build-id=sha1",
        "-Wl,-e,start",
        &text,
    ]);
    run(compiler.arg(&source).arg("-o").arg(&program)).expect("cc");
    let notes = root.join("sys/kernel/notes");
    fs::create_dir_all(notes.parent().unwrap()).unwrap();
    let shown = String::from_utf8(run(Command::new("readelf").arg("-n").arg(&program))?).ok()?;
    let id = shown
        .split("Build ID: ")
        .nth(1)?
        .split_whitespace()
        .next()?;
    let id = (0..id.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&id[at..at + 2], 16));
    let mut note = [4_u32, 20, 3].map(u32::to_ne_bytes).concat();
    note.extend(b"GNU\0");
    note.extend(id.map(|byte| byte.expect("hexadecimal")));
    fs::write(&notes, note).unwrap();
    let (start, stats) = (symbol(&program, "start")?, symbol(&program, "stats")?);
    fs::create_dir_all(root.join("proc/sys/kernel")).unwrap();
    fs::write(root.join("proc/sys/kernel/osrelease"), "6.1.0-test\n").unwrap();
    let symbols = format!(
        "{:x} T _stext\n{:x} T start\n{:x} T end\n{:x} D stats\n{:x} d after\n{:x} B _end\n\
         ffffffffc0001000 t nft_run\t[nf_tables]\nffffffffc0001100 t nft_end\t[nf_tables]\n\
         ffffffffc0004008 d nft_list\t[nf_tables]\nffffffffc0004010 d nft_end\t[nf_tables]\n",
        LINKED + SLIDE,
        start + SLIDE,
        start + SLIDE + 0x40,
        stats + SLIDE,
        stats + SLIDE + 32,
        stats + SLIDE + 64,
    );
    fs::write(root.join("proc/kallsyms"), symbols).unwrap();
    Some((start, stats))
}

fn code(root: &Path, ip: u64) -> (CodeName, Vec<String>) {
    let spaces = AddressSpaces::default();
    let modules = ModuleStore::new(root.to_owned(), true);
    let names = Resolver::new(&spaces, &modules);
    (names.code(None, ip, true), names.caveats())
}

fn objects(root: &Path, addr: u64) -> (Vec<ObjectName>, Vec<String>) {
    let spaces = AddressSpaces::default();
    let modules = ModuleStore::new(root.to_owned(), true);
    let names = Resolver::new(&spaces, &modules);
    let key = LineKey(Place::Kernel { addr });
    (names.objects(key, LineSize::B64, &[]), names.caveats())
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_file_of_the_running_build_gives_lines_inlined_calls_and_typed_variables() {
    for path in [
        "usr/lib/debug/boot/vmlinux-6.1.0-test",
        "usr/lib/debug/lib/modules/6.1.0-test/vmlinux",
        "lib/modules/6.1.0-test/build/vmlinux",
        "boot/vmlinux-6.1.0-test",
    ] {
        let root = tempfile::tempdir().unwrap();
        let Some((start, stats)) = kernel(root.path(), path) else {
            skipped_core("binutils are not installed");
            return;
        };
        let (code, _) = code(root.path(), start + SLIDE);
        assert_eq!(code.module.as_deref(), Some("[kernel]"));
        assert_eq!(code.symbol.as_deref(), Some("start"));
        assert_eq!(code.ip, start + SLIDE);
        assert!(code.file.is_some_and(|file| file.ends_with("kernel.c")));
        assert!(
            code.line.is_some_and(|line| (4..=7).contains(&line)),
            "{:?}",
            code.line
        );
        let (objects, caveats) = objects(root.path(), stats + SLIDE);
        assert_eq!(caveats, [""; 0]);
        // The file knows what is a variable; the list's `after` lies in no variable of it.
        let stats_name = &objects[0];
        assert_eq!(stats_name.kind, ObjectKind::Kernel);
        assert_eq!(stats_name.name.as_deref(), Some("stats"));
        assert_eq!(stats_name.type_name.as_deref(), Some("struct stats"));
        assert_eq!(stats_name.size, Some(16));
        assert_eq!(stats_name.start, Some(stats + SLIDE));
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_file_of_another_build_is_not_taken() {
    let root = tempfile::tempdir().unwrap();
    let Some((start, stats)) = kernel(root.path(), "boot/vmlinux-6.1.0-test") else {
        skipped_core("binutils are not installed");
        return;
    };
    let notes = root.path().join("sys/kernel/notes");
    let mut changed = fs::read(&notes).unwrap();
    *changed.last_mut().unwrap() ^= 1;
    fs::write(&notes, changed).unwrap();
    let (code, _) = code(root.path(), start + SLIDE);
    assert_eq!(
        (code.symbol.as_deref(), code.file, code.line),
        (Some("start"), None, None)
    );
    // By the list a variable reaches to the next one.
    let (objects, _) = objects(root.path(), stats + SLIDE);
    let named: Vec<_> = objects
        .iter()
        .map(|o| (o.name.as_deref(), o.size, &o.type_name))
        .collect();
    assert_eq!(
        named,
        [
            (Some("stats"), Some(32), &None),
            (Some("after"), Some(32), &None)
        ]
    );
}

fn listed(symbols: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("proc")).unwrap();
    fs::write(root.path().join("proc/kallsyms"), symbols).unwrap();
    root
}

const LISTED: &str = "ffffffff81000000 T _stext\nffffffff81000100 T end\nffffffff82000000 D table\n\
    ffffffff82000080 d after\nffffffffc0001000 t nft_run\t[nf_tables]\nffffffffc0001100 t nft_end\t[nf_tables]\n\
    ffffffffc0004008 d nft_list\t[nf_tables]\nffffffffc0004010 d nft_last\t[nf_tables]\n";

#[test]
fn functions_and_variables_of_modules_say_which_one() {
    let root = listed(LISTED);
    let (code, caveats) = code(root.path(), 0xffff_ffff_c000_1010);
    assert_eq!(code.module.as_deref(), Some("[nf_tables]"));
    assert_eq!(code.symbol.as_deref(), Some("nft_run"));
    // Wherever the kernel is loaded.
    assert_eq!(code.symbol_offset, Some(0x10));
    assert_eq!(caveats, [""; 0]);
    let (objects, _) = objects(root.path(), 0xffff_ffff_c000_4000);
    let first = &objects[0];
    assert_eq!(first.name.as_deref(), Some("nft_list [nf_tables]"));
    assert_eq!(
        (first.kind, first.start),
        (ObjectKind::Kernel, Some(0xffff_ffff_c000_4008))
    );
}

#[test]
fn a_line_within_a_variable_is_named_by_its_start() {
    let root = listed(LISTED);
    let (objects, _) = objects(root.path(), 0xffff_ffff_8200_0040);
    assert_eq!(objects.len(), 1);
    assert_eq!(objects[0].name.as_deref(), Some("table"));
    assert_eq!(objects[0].start, Some(0xffff_ffff_8200_0000));
}

#[test]
fn kernel_memory_without_a_name_is_kernel_memory_and_the_reason_is_told() {
    let check = |root: &Path, addr, reason: &str| {
        let (objects, caveats) = objects(root, addr);
        assert_eq!(objects.len(), 1);
        assert_eq!(
            (objects[0].kind, objects[0].name.as_deref()),
            (ObjectKind::Kernel, None)
        );
        assert!(
            caveats.iter().any(|caveat| caveat.contains(reason)),
            "{reason}: {caveats:?}"
        );
    };
    // Memory that the kernel allocated, or an area of one CPU.
    check(
        listed(LISTED).path(),
        0xffff_8880_0123_4000,
        "no kernel symbol covers",
    );
    let hidden = "0000000000000000 T _stext\n0000000000000000 D table\n";
    check(
        listed(hidden).path(),
        0xffff_ffff_8200_0000,
        "kptr_restrict",
    );
    let few = "ffffffff81000000 T _stext\nffffffff81000100 T end\nffffffff82000000 D table\n\
        ffffffff82000080 D after\n";
    check(
        listed(few).path(),
        0xffff_ffff_8200_0000,
        "CONFIG_KALLSYMS_ALL",
    );
    check(
        Path::new("/nonexistent"),
        0xffff_ffff_8200_0000,
        "cannot be read",
    );
}

#[test]
fn addresses_of_another_boot_are_not_looked_up_in_this_one() {
    let root = listed(LISTED);
    let spaces = AddressSpaces::default();
    let modules = ModuleStore::new(root.path().to_owned(), false);
    let names = Resolver::new(&spaces, &modules);
    assert_eq!(names.code(None, 0xffff_ffff_8100_0010, true).symbol, None);
    assert!(
        names.caveats()[0].contains("another boot"),
        "{:?}",
        names.caveats()
    );
}

const DATA: u64 = 0xffff_ffff_8200_0000;

/// A kernel that describes its types and lists its variables; what names tell of four bytes at an address.
fn told(btf: &[u8], addr: u64) -> (ObjectName, Option<String>) {
    let root = listed(
        "ffffffff81000000 T _stext\nffffffff81000100 T end\nffffffff82000000 d counter\n\
         ffffffff82000040 D state\nffffffff82000100 d other\nffffffff82000180 d end\n",
    );
    fs::create_dir_all(root.path().join("sys/kernel/btf")).unwrap();
    fs::write(root.path().join("sys/kernel/btf/vmlinux"), btf).unwrap();
    let spaces = AddressSpaces::default();
    let modules = ModuleStore::new(root.path().to_owned(), true);
    let names = Resolver::new(&spaces, &modules);
    let line = addr & !63;
    let key = LineKey(Place::Kernel { addr: line });
    let objects = names.objects(key, LineSize::B64, &[]);
    let field = names.field(key, LineSize::B64, (addr - line) as u8, 4);
    let (object, path) = field.map_or((0, None), |field| (field.object, field.path));
    (objects[object].clone(), path)
}

#[test]
fn without_the_kernels_file_its_own_types_name_members() {
    let types = crate::machine::btf::sample_types();
    let (object, path) = told(&types, DATA + 0x40 + 44);
    assert_eq!(object.name.as_deref(), Some("state"));
    assert_eq!(object.type_name.as_deref(), Some("volatile outer_t"));
    assert_eq!((object.start, object.size), (Some(DATA + 0x40), Some(80)));
    assert_eq!(path.as_deref(), Some("between .slots[0].a and .slots[0].b"));
    let members = object.layout.unwrap().members;
    assert_eq!((&*members[6].name, members[6].offset), ("slots", 40));
    // On its second line, too.
    let (_, path) = told(&types, DATA + 0x40 + 64);
    assert_eq!(path.as_deref(), Some(".slots[1].b"));
}

#[test]
fn what_the_kernel_does_not_describe_keeps_its_listed_name() {
    let types = crate::machine::btf::sample_types();
    for (btf, addr) in [
        (&types[..], DATA + 0x100),
        (&types[..40], DATA + 0x40),
        (&[], DATA + 0x40),
    ] {
        let (object, path) = told(btf, addr);
        assert!(object.name.is_some(), "{object:?}");
        assert_eq!((object.type_name, path), (None, None));
    }
    // Behind a variable's last byte its list entry does not go on.
    let (object, path) = told(&types, DATA + 0x40 + 84);
    assert_eq!((object.name.as_deref(), path), (Some("state"), None));
    assert_eq!(object.end(), Some(DATA + 0x40 + 80));
}
