use super::*;
use crate::machine::btf::{KIND_CONST, KIND_FLOAT, KIND_TYPEDEF, KernelTypes, tests::Writer};
use cohtrace_skips::skipped;

const INODE: u32 = 3;
const FILE: u32 = 8;
const PUT: u32 = 13;
const MIXED: u32 = 15;
const OPEN: u32 = 20;
const LOCK: u32 = 22;

/// ```c
/// struct inode { long count; };
/// struct file {
///     const struct inode *inode;
///     union { struct inode *same; struct inode *other; };
///     union { struct inode *one; long number; };
///     struct inode *several[2];
///     long *numbers;
/// };
/// void fput(struct file *);                        twice
/// void mixed(long, struct file *, float, struct file *);
/// struct file *open(struct inode *const *, struct inode);
/// typedef struct { int x; } lock_t;  void lock(lock_t *, void *);
/// ```
pub(in crate::machine::btf) fn sample() -> Vec<u8> {
    let mut writer = Writer::default();
    writer.int();
    writer.entry("long", KIND_INT << 24, &[8, 64]);
    writer.sized(KIND_STRUCT, "inode", 8, &[("count", 2, 0, 0)]);
    writer.modifier(KIND_PTR, "", INODE);
    writer.sized(KIND_UNION, "", 8, &[("same", 4, 0, 0), ("other", 4, 0, 0)]);
    writer.sized(KIND_UNION, "", 8, &[("one", 4, 0, 0), ("number", 2, 0, 0)]);
    writer.array(4, 2);
    let members = [
        ("inode", 10, 0, 0),
        ("", 5, 64, 0),
        ("", 6, 128, 0),
        ("several", 7, 192, 0),
        ("numbers", 16, 320, 0),
    ];
    writer.sized(KIND_STRUCT, "file", 48, &members);
    writer.modifier(KIND_CONST, "", INODE);
    writer.modifier(KIND_PTR, "", 9);
    writer.modifier(KIND_PTR, "", FILE);
    writer.entry("float", KIND_FLOAT << 24, &[4]);
    writer.entry("", KIND_FUNC_PROTO << 24 | 1, &[0, 0, 11]);
    writer.modifier(KIND_FUNC, "fput", PUT);
    writer.entry(
        "",
        KIND_FUNC_PROTO << 24 | 4,
        &[0, 0, 2, 0, 11, 0, 12, 0, 11],
    );
    writer.modifier(KIND_PTR, "", 2);
    writer.modifier(KIND_FUNC, "mixed", MIXED);
    writer.modifier(KIND_CONST, "", 4);
    writer.modifier(KIND_PTR, "", 18);
    writer.entry("", KIND_FUNC_PROTO << 24 | 2, &[11, 0, 19, 0, 3]);
    writer.sized(KIND_STRUCT, "", 4, &[("x", 1, 0, 0)]);
    writer.modifier(KIND_TYPEDEF, "lock_t", 21);
    writer.modifier(KIND_PTR, "", LOCK);
    writer.modifier(KIND_PTR, "", 0);
    writer.entry("", KIND_FUNC_PROTO << 24 | 2, &[0, 0, 23, 0, 24]);
    writer.modifier(KIND_FUNC, "lock", 25);
    writer.modifier(KIND_FUNC, "open", OPEN);
    writer.modifier(KIND_FUNC, "twice", PUT);
    writer.modifier(KIND_FUNC, "twice", MIXED);
    writer.modifier(KIND_FUNC, "fput", PUT);
    writer.bytes()
}

#[test]
fn functions_are_known_by_names_that_mean_one_type() {
    let bytes = sample();
    let functions = Btf::parse(&bytes).unwrap().functions();
    assert_eq!(functions["fput"], Some(PUT));
    assert_eq!(functions["open"], Some(OPEN));
    assert_eq!(functions["twice"], None);
    assert!(!functions.contains_key("close"));
}

#[test]
fn parameters_are_what_their_registers_point_to() {
    let bytes = sample();
    let btf = Btf::parse(&bytes).unwrap();
    assert_eq!(btf.parameters(PUT), [Some(FILE)]);
    assert_eq!(btf.result(PUT), None);
    // A floating-point number is in no such register, and what follows it may be in any.
    assert_eq!(btf.parameters(MIXED), [None, Some(FILE)]);
    // A pointer to a pointer, and a struct of one register.
    assert_eq!(btf.parameters(OPEN), [Some(4), None]);
    assert_eq!(btf.result(OPEN), Some(FILE));
    // By its only name; to nothing known.
    assert_eq!(btf.parameters(25), [Some(LOCK), None]);
    assert_eq!(btf.parameters(FILE), []);
    assert_eq!(btf.parameters(99), []);
}

#[test]
fn a_pointer_is_told_where_nothing_else_may_be() {
    let bytes = sample();
    let btf = Btf::parse(&bytes).unwrap();
    let at = |offset| btf.pointer_at(FILE, offset);
    assert_eq!(at(0), Some(INODE));
    assert_eq!(at(8), Some(INODE));
    assert_eq!(at(16), None, "a number as well");
    assert_eq!([at(24), at(32)], [Some(INODE); 2]);
    assert_eq!(at(40), None, "to numbers");
    assert_eq!([at(4), at(28), at(48), at(u64::MAX)], [None; 4]);
    assert_eq!(btf.pointer_at(4, 0), Some(INODE));
    assert_eq!(btf.pointer_at(4, 8), None);
}

/// What the kernel of this machine says of a function that every kernel has.
#[test]
fn the_running_kernel_tells_what_fput_takes() {
    let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else {
        skipped("the kernel describes no types");
        return;
    };
    let types = KernelTypes::new(bytes, &crate::machine::kallsyms::Kallsyms::parse("")).unwrap();
    let function = types.function("fput").unwrap();
    let [Some(file)] = types.btf().parameters(function)[..] else {
        panic!("{:?}", types.btf().parameters(function));
    };
    assert_eq!(types.btf().type_name(file), "struct file");
    let mapping = types.btf().member_offset("file", &["f_mapping"]).unwrap();
    let target = types.btf().pointer_at(file, u64::from(mapping)).unwrap();
    assert_eq!(types.btf().type_name(target), "struct address_space");
}
