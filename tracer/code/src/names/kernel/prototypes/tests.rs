use std::{fs, sync::Arc};

use crate::{
    access::{LineKey, LineSize, Op, Place, SpaceId},
    event::{Context, ContextKind},
    machine::btf::sample_prototypes,
    module::ModuleStore,
    names::{AccessedBy, Names as _, ObjectName, Resolver},
    space::AddressSpaces,
};

const FPUT: u64 = 0xffff_ffff_8100_1000;
/// `mov (%rdi),%rax; lock incq (%rax); ret`: the pointer at offset 0 of what it is given, and what is there.
const CODE: [u8; 8] = [0x48, 0x8b, 0x07, 0xf0, 0x48, 0xff, 0x00, 0xc3];
const INODE: u64 = 0xffff_8881_0000_0050;

/// What the line of the inode has, and its accessed bytes, with these symbols besides `fput`; where its code was read or
/// not.
fn told(symbols: &str, code: Option<&[u8]>) -> (ObjectName, Option<String>, u64) {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("proc")).unwrap();
    fs::create_dir_all(root.path().join("sys/kernel/btf")).unwrap();
    let listed = format!("{FPUT:x} T fput\nffffffff81001100 T next\n{symbols}");
    fs::write(root.path().join("proc/kallsyms"), listed).unwrap();
    let types = root.path().join("sys/kernel/btf/vmlinux");
    fs::write(types, sample_prototypes()).unwrap();
    let mut spaces = AddressSpaces::default();
    if let Some(code) = code {
        let kind = ContextKind::Memory {
            pid: None,
            start: FPUT,
            bytes: Arc::from(code),
        };
        spaces.apply(&Context { time_ns: 1, kind });
    }
    let modules = ModuleStore::new(root.path().to_owned(), true);
    let names = Resolver::new(&spaces, &modules);
    let line = INODE & !63;
    let offset = (INODE - line) as u8;
    let by = AccessedBy {
        space: SpaceId(0),
        ip: FPUT + 3,
        kernel: true,
        op: Op::Rmw,
        offset,
        size: 8,
        count: 5,
    };
    let key = LineKey(Place::Kernel { addr: line });
    let mut objects = names.objects(key, LineSize::B64, &[by]);
    assert_eq!(objects.len(), 1, "{objects:?}");
    let field = names.field(key, LineSize::B64, offset, 8);
    let path = field.and_then(|field| field.path);
    (objects.remove(0), path, names.coverage().named)
}

#[test]
fn what_a_function_of_the_kernel_is_given_leads_to_the_types_of_its_operands() {
    let (object, path, named) = told("", Some(&CODE));
    assert_eq!(object.type_name.as_deref(), Some("struct inode"));
    assert_eq!((object.start, object.size), (Some(INODE), Some(8)));
    assert_eq!((path.as_deref(), named), (Some(".count"), 1));
    assert_eq!(object.layout.unwrap().members[0].name, "count");
}

#[test]
fn without_its_code_or_with_a_name_that_says_not_which_it_is_a_function_tells_nothing() {
    // Code that was not read, other code, another function of that name, one that a module has.
    for (symbols, code) in [
        ("", None),
        (
            "",
            Some(&[0x48, 0x31, 0xff, 0xf0, 0x48, 0xff, 0x07, 0xc3][..]),
        ),
        (
            "ffffffff81002000 t fput\nffffffff81002100 t last\n",
            Some(&CODE[..]),
        ),
    ] {
        let (object, path, named) = told(symbols, code);
        assert_eq!(
            (object.type_name, path, named),
            (None, None, 0),
            "{symbols}"
        );
    }
}
