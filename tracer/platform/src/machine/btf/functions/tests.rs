use super::*;
use crate::machine::btf::{KernelTypes, sample::prototypes as sample};
use cohtrace_skips::skipped;

const INODE: u32 = 3;
const FILE: u32 = 8;
const PUT: u32 = 13;
const MIXED: u32 = 15;
const OPEN: u32 = 20;
const LOCK: u32 = 22;

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
