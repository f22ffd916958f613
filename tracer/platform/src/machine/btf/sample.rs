//! Types of kernels for tests: written by hand, as no two kernels have the same.

use super::{
    KIND_ARRAY, KIND_CONST, KIND_DATASEC, KIND_FLOAT, KIND_FUNC, KIND_FUNC_PROTO, KIND_INT,
    KIND_PTR, KIND_STRUCT, KIND_TYPEDEF, KIND_UNION, KIND_VAR, KIND_VOLATILE,
};

/// Writes BTF by hand: types in order of their ids, from 1.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) types: Vec<u32>,
    strings: Vec<u8>,
}

impl Writer {
    pub(super) fn name(&mut self, name: &str) -> u32 {
        if self.strings.is_empty() {
            self.strings.push(0);
        }
        if name.is_empty() {
            return 0;
        }
        let offset = self.strings.len() as u32;
        self.strings.extend_from_slice(name.as_bytes());
        self.strings.push(0);
        offset
    }

    pub(super) fn int(&mut self) {
        let name = self.name("int");
        self.types.extend([name, KIND_INT << 24, 4, 32]);
    }

    pub(super) fn modifier(&mut self, kind: u32, name: &str, of: u32) {
        let name = self.name(name);
        self.types.extend([name, kind << 24, of]);
    }

    #[cfg(test)]
    pub(super) fn composite(&mut self, kind: u32, name: &str, members: &[(&str, u32, u32)]) {
        let name = self.name(name);
        let info = kind << 24 | members.len() as u32;
        self.types.extend([name, info, 64]);
        for (member, type_id, bits) in members {
            let member = self.name(member);
            self.types.extend([member, *type_id, *bits]);
        }
    }

    /// An entry with all its words, in the order of the format.
    pub(super) fn entry(&mut self, name: &str, info: u32, rest: &[u32]) {
        let name = self.name(name);
        self.types.extend([name, info]);
        self.types.extend(rest);
    }

    /// A struct or union of some bytes: name, type, first bit, and bits of a bit-field.
    pub(super) fn sized(
        &mut self,
        kind: u32,
        name: &str,
        size: u32,
        members: &[(&str, u32, u32, u32)],
    ) {
        self.entry(name, 1 << 31 | kind << 24 | members.len() as u32, &[size]);
        for (member, type_id, bit, bits) in members {
            let member = self.name(member);
            self.types.extend([member, *type_id, bits << 24 | bit]);
        }
    }

    pub(super) fn array(&mut self, element: u32, count: u32) {
        self.entry("", KIND_ARRAY << 24, &[0, element, 1, count]);
    }

    /// A section: variable's type, offset, bytes.
    pub(super) fn section(&mut self, name: &str, variables: &[[u32; 3]]) {
        self.entry(name, KIND_DATASEC << 24 | variables.len() as u32, &[0]);
        self.types.extend(variables.as_flattened());
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let types: Vec<u8> = self
            .types
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let mut bytes = 0xeb9f_u16.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        let (types_len, strings_len) = (types.len() as u32, self.strings.len() as u32);
        for word in [24, 0, types_len, types_len, strings_len] {
            bytes.extend(u32::to_ne_bytes(word));
        }
        bytes.extend(types);
        bytes.extend(&self.strings);
        bytes
    }
}

/// Types and variables:
///
/// ```c
/// struct inner { int a; long b; };
/// typedef struct outer {
///     int first;
///     union { long whole; int half[2]; };
///     const struct inner in;
///     int flags : 3, : 2, mode : 3;
///     struct inner slots[2];
///     struct outer *next;
/// } outer_t;
/// ```
pub(super) fn types() -> Writer {
    let mut writer = Writer::default();
    writer.int();
    writer.entry("long", KIND_INT << 24, &[8, 64]);
    writer.array(2, 4);
    writer.sized(KIND_UNION, "", 8, &[("whole", 2, 0, 0), ("half", 5, 0, 0)]);
    writer.array(1, 2);
    writer.sized(KIND_STRUCT, "inner", 16, &[("a", 1, 0, 0), ("b", 2, 64, 0)]);
    let members = [
        ("first", 1, 0, 0),
        ("", 4, 64, 0),
        ("in", 8, 128, 0),
        ("flags", 1, 256, 3),
        ("", 1, 259, 2),
        ("mode", 1, 261, 3),
        ("slots", 9, 320, 0),
        ("next", 10, 576, 0),
    ];
    writer.sized(KIND_STRUCT, "outer", 80, &members);
    writer.modifier(KIND_CONST, "", 6);
    writer.array(6, 2);
    writer.modifier(KIND_PTR, "", 7);
    writer.modifier(KIND_TYPEDEF, "outer_t", 7);
    writer.modifier(KIND_VOLATILE, "", 11);
    writer.entry("state", KIND_VAR << 24, &[12, 1]);
    writer.entry("counter", KIND_VAR << 24, &[2, 0]);
    writer.section(".data", &[[14, 0, 8], [13, 64, 80]]);
    writer.array(3, 2);
    writer.entry("run", KIND_VAR << 24, &[6, 1]);
    writer.section(".data..percpu", &[[17, 32, 16]]);
    writer
}

const INODE: u32 = 3;
const FILE: u32 = 8;
const PUT: u32 = 13;
const MIXED: u32 = 15;
const OPEN: u32 = 20;
const LOCK: u32 = 22;

/// Prototypes of functions:
///
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
pub(super) fn prototypes() -> Vec<u8> {
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
