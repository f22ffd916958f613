//! Layouts of compiled types in C, C++ and Rust, as `cohtrace layout` prints them.
#![allow(
    clippy::needless_raw_string_hashes,
    reason = "expect-test writes its blocks with them"
)]

use cohtrace_skips::skipped_core;
use std::{fs, path::Path, process::Command, sync::Arc};

use expect_test::{Expect, expect};
use symbolizer::{Language, Module, NoDebugFiles, TypeTree};

use crate::{
    access::Op,
    analysis::SiteCounts,
    finding::Verdict,
    names::{ObjectKind, ObjectLayout, layout_of as flat_layout},
    report::{
        fixture::{FakeNames, LINE, facts, judgement, object, site, tally},
        layout::{self, FindingId},
        text::TextOptions,
    },
};

/// The type of a global of a fixture, with the member names and all; nothing where the compiler is absent.
fn tree(compiler: &str, fixture: &str, global: &str) -> Option<(TypeTree, ObjectLayout)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../symbolizer/tests/it/fixtures")
        .join(fixture);
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("program");
    let mut command = Command::new(compiler);
    command.arg("-g").arg(&source).arg("-o").arg(&program);
    if compiler == "rustc" {
        command.args(["--edition=2024", "--crate-name=demo"]);
    }
    let Ok(output) = command.output() else {
        assert_ne!(compiler, "cc", "the tests need a C compiler");
        skipped_core(format_args!(
            "{compiler} is not installed; the layout of {global} was not tested"
        ));
        return None;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let bytes = Arc::new(fs::read(program).unwrap());
    let module = Module::parse(bytes, Box::new(NoDebugFiles)).unwrap();
    let found = module.variable(global).unwrap();
    let object = module.object(found.address).unwrap();
    let mut tree = module.type_tree(object.ty.unwrap()).unwrap();
    // Directories differ from machine to machine.
    tree.file = tree
        .file
        .and_then(|file| Some(file.rsplit('/').next()?.into()));
    Some((tree, flat_layout(&module, object.ty.unwrap()).unwrap()))
}

/// The object starts `into` bytes into the tests' line.
fn text((tree, flat): (TypeTree, ObjectLayout), into: u64, sites: Vec<SiteCounts>) -> String {
    let mut global = object("it", ObjectKind::Global, LINE + into, tree.size.unwrap());
    global.type_name = Some(tree.type_name.clone());
    global.layout = Some(flat);
    global.language = match tree.language {
        Some(Language::Rust) => Some(crate::names::Language::Rust),
        Some(Language::Cpp) => Some(crate::names::Language::Cpp),
        _ => Some(crate::names::Language::C),
    };
    let names = FakeNames {
        objects: vec![global],
        trees: [(0, tree)].into(),
        ..FakeNames::default()
    }
    .field(0, 64, 0, "");
    let judgements = [judgement(Verdict::FalseSharing, 0.0, sites)];
    let id = FindingId::parse("1").unwrap();
    let layout = layout::build(&judgements.into(), id, &names, &tally(), &facts()).unwrap();
    for colour in [false, true] {
        for unicode in [false, true] {
            let options = TextOptions {
                colour,
                unicode,
                verbose: false,
            };
            let text = layout::render_text(&layout, options);
            assert!(unicode || text.is_ascii());
            assert_eq!(text.contains('\x1b'), colour);
        }
    }
    layout::render_text(&layout, TextOptions::default())
}

fn check(
    tree: Option<(TypeTree, ObjectLayout)>,
    into: u64,
    sites: Vec<SiteCounts>,
    expected: &Expect,
) {
    let Some(tree) = tree else { return };
    expected.assert_eq(&text(tree, into, sites));
}

fn store(offset: u8, size: u8, tid: u32) -> SiteCounts {
    site(
        offset,
        size,
        Op::Store,
        tid,
        0x401000 + u64::from(tid),
        1000 + tid,
        10,
    )
}

#[test]
fn a_c_struct_shows_bit_fields_arrays_holes_and_where_its_lines_begin() {
    let sites = vec![store(32, 8, 4001), store(43, 1, 4002), store(60, 4, 4003)];
    check(
        tree("cc", "tree.c", "session"),
        24,
        sites,
        &expect![[r#"
            F1  FALSE SHARING  it                                                            100.0 % of the time
              at global variable of type `struct session`, declared at tree.c:8, 128 bytes, aligned to 32, 56 of
                 them unused in 10 holes; this object is at 0x404058, starts at byte 24 of a 64-byte line and
                 has bytes on 3 lines

                                              offset   size
                  /* --- line 0 at 0x404040: shared by 4001, 4002, 4003 --- */
              struct session {
                  char state;                      0      1
                  /* 7 bytes unused */
                  long id;                         8      8  ^ store 4001 50.0 %
                  unsigned int urgent : 1;      16:0  1 bit
                  /* 2 bits unused */
                  unsigned int level : 3;       16:3 3 bits
                  /* 2 bits unused */
                  unsigned char flags : 5;      17:0 5 bits
                  /* 2 bytes and 3 bits unused */
                  struct point {
                      char tag;                   20      1
                      /* 3 bytes unused */
                      int x;                      24      4
                  } from;                         20      8
                  struct point path[3] {
                      /* [0] likewise */          28      8
                      [1] {
                          char tag;               36      1  ^ store 4003 50.0 %
                          /* 3 bytes unused */
                  /* --- line 1 at 0x404080 (40 bytes) --- */
                          int x;                  40      4
                      };                          36      8
                      /* [2] likewise */          44      8
                  };                              28     24
                  /* 4 bytes unused */
                  union (anonymous) {
                      uint64_t whole;             56      8
                      struct (anonymous) {
                          uint32_t low;           56      4
                          uint16_t high;          60      2
                          /* 2 bytes unused at the end */
                      };                          56      8
                  };                              56      8
                  _Alignas(32) char name[20];     64     20
                  short grid[2][3];               84     12
                  char tail;                      96      1
                  /* 31 bytes unused at the end */
                  /* --- line 2 at 0x4040c0, 24 bytes back --- */
              };                                   0    128

              proposed `struct session` from 128 to 192 bytes; from 3 lines to 3 lines, starting at a multiple
                       of 64 bytes
                  char state;                             0      1
                  long id;                                8      8  4001
                  unsigned int urgent;                   16      1
                  unsigned int level;                    16      1
                  unsigned char flags;                   17      1
                  struct point from;                     20      8
                  _Alignas(64) struct point path[3];     64     24  4003
                  uint64_t whole;                        88      8
                  uint32_t low;                          88      4
                  uint16_t high;                         92      2
                  _Alignas(64) char name[20];           128     20
                  short grid[2][3];                     148     12
                  char tail;                            160      1

            gain More than nothing on lines of their own: samples do not tell how much, `--hold` does.

             fix Start `path` and `name` on new 64-byte lines:
                     _Alignas(64) struct point path[3];
                     _Alignas(64) char name[20];
                 `name` is on another line today, and should not come to those that are moved.
                 `alignas(64)` is the same word after `#include <stdalign.h>` (C11), and built in since C23.
                 `struct session` grows from 128 to 192 bytes (+64).
        "#]],
    );
}

#[test]
fn an_array_of_structs_lists_the_elements_in_use() {
    let sites = vec![store(4, 4, 4001), store(12, 4, 4002)];
    check(
        tree("cc", "tree.c", "route"),
        0,
        sites,
        &expect![[r#"
            F1  FALSE SHARING  it                                                             90.0 % of the time
              at global variable of type `struct point [2][4]`, 64 bytes, aligned to 4, 24 of them unused in 8
                 holes; this object is at 0x404040, starts a line and has bytes on 1 line

                                            offset   size
                  /* --- line 0 at 0x404040: shared by 4001, 4002 --- */
              struct point [2][4] {
                  [0][0] {
                      char tag;                  0      1
                      /* 3 bytes unused */
                      int x;                     4      4  ^ store 4001 50.0 %
                  };                             0      8
                  [0][1] {
                      char tag;                  8      1
                      /* 3 bytes unused */
                      int x;                    12      4  ^ store 4002 50.0 %
                  };                             8      8
                  /* [2] to [7] likewise */     16     48
              };                                 0     64

              proposed `struct point` from 8 to 64 bytes each, 8 of them; from 1 line to 8 lines, starting at a
                       multiple of 64 bytes

            gain More than nothing on lines of their own: samples do not tell how much, `--hold` does.

             fix Give each element of `it` a 64-byte line of its own. Align the first member of `struct point`:
                     _Alignas(64) char tag;
                 `alignas(64)` is the same word after `#include <stdalign.h>` (C11), and built in since C23.
                 An element grows from 8 to 64 bytes; 8 of them cost 448 bytes more. Without more memory: let
                 each thread work on a local variable and store to its element seldom, for example once at the
                 end.
        "#]],
    );
}

#[test]
fn a_class_shows_its_bases_its_unions_and_whose_padding_a_member_uses() {
    let sites = vec![store(24, 8, 4001), store(12, 4, 4002)];
    check(
        tree("c++", "tree.cpp", "shape"),
        0,
        sites,
        &expect![[r#"
            F1  FALSE SHARING  it                                                             90.0 % of the time
              at global variable of type `Shape`, declared at tree.cpp:18, 80 bytes, aligned to 8, 9 of them
                 unused in 2 holes; this object is at 0x404040, starts a line and has bytes on 2 lines

                                            offset   size
                  /* --- line 0 at 0x404040: shared by 4001, 4002 --- */
              Shape {
                  Empty; /* base */              0      0
                  int (**vptr)();                0      8
                  Counted {
                      long big;                  8      8  ^ store 4002 50.0 %
                      int small;                16      4
                      /* 3 bytes and 3 bits unused at the end */
                  }; /* base */                  8     16
                  bool visible : 1;           20:0  1 bit
                  unsigned int layer : 4;     20:1 4 bits
                  (anonymous union) {
                      double radius;            24      8  ^ store 4001 50.0 %
                      (anonymous struct) {
                          float width;          24      4  ^ store 4001 50.0 %
                          float height;         28      4  ^ store 4001 50.0 %
                      } box;                    24      8
                  };                            24      8
                  std::atomic<short> users;     32      2
                  /* 6 bytes unused */
                  std::mutex lock;              40     40
                  /* --- line 1 at 0x404080, 16 bytes back --- */
              };                                 0     80

            gain More than nothing on lines of their own: samples do not tell how much, `--hold` does.

             fix Different threads use bytes 12-15 (written at server+0x1fa2) and bytes 24-31 (written at
                 server+0x1fa1). Start each of these parts at a multiple of 64 bytes and let nothing else share
                 its line. They are within `Shape`, in members that share storage or are declared elsewhere
                 (bit-fields, a base class, an anonymous member): take those apart first. That takes
                 `alignas(64)` on each variable or member.
        "#]],
    );
    let sites = vec![store(56, 4, 4001), store(60, 4, 4002)];
    check(
        tree("c++", "tree.cpp", "reused"),
        48,
        sites,
        &expect![[r#"
            F1  FALSE SHARING  it                                                             90.0 % of the time
              at global variable of type `Reused`, declared at tree.cpp:14, 16 bytes, aligned to 8; this object
                 is at 0x404070, starts at byte 48 of a 64-byte line and has bytes on 1 line

                                 offset   size
                  /* --- line 0 at 0x404040: shared by 4001, 4002 --- */
              Reused {
                  Counted {
                      long big;       0      8
                      int small;      8      4  ^ store 4001 50.0 %
                  }; /* base */       0     16
                  int own;           12      4  ^ store 4002 50.0 %
              };                      0     16

              proposed `Reused` from 16 to 128 bytes; from 1 line to 2 lines, starting at a multiple of 64 bytes
                  long big;                 0      8
                  int small;                8      4  4001
                  alignas(64) int own;     64      4  4002

            gain More than nothing on lines of their own: samples do not tell how much, `--hold` does.

             fix Start `own` on a new 64-byte line:
                     alignas(64) int own;
                 C++17 also names the number: `std::hardware_destructive_interference_size`. `Reused` grows from
                 16 to 128 bytes (+112).
        "#]],
    );
}

#[test]
fn rust_types_show_variants_tuples_and_the_order_in_memory() {
    let sites = vec![store(16, 8, 4001), store(32, 1, 4002)];
    check(
        tree("rustc", "tree.rs", "demo::REORDERED"),
        16,
        sites,
        &expect![[r#"
            F1  FALSE SHARING  it                                                             90.0 % of the time
              at global variable of type `demo::Reordered`, 24 bytes, aligned to 8, 9 of them unused in 2 holes;
                 this object is at 0x404050, starts at byte 16 of a 64-byte line and has bytes on 1 line

                                      offset   size
                  /* --- line 0 at 0x404040: shared by 4001, 4002 --- */
              demo::Reordered {
                  second: u64,             0      8  ^ store 4001 50.0 %
                  third: (u16, u32) {
                      0: u16,              8      2
                      /* 2 bytes unused */
                      1: u32,             12      4
                  },                       8      8
                  first: u8,              16      1  ^ store 4002 50.0 %
                  /* 7 bytes unused at the end */
              };                           0     24

              proposed `demo::Reordered` from 24 to 192 bytes; from 1 line to 3 lines, starting at a multiple of
                       64 bytes
                  second: Line<u64>,             8  4001
                  third: (u16, u32),             8
                  first: Line<u8>,               1  4002

            gain More than nothing on lines of their own: samples do not tell how much, `--hold` does.

             fix Wrap each in a type that fills 64-byte lines:
                     #[repr(align(64))] struct Line<T>(T);
                     second: Line<u64>,
                     first: Line<u8>,
                 `demo::Reordered` grows from 24 to 192 bytes (+168). `crossbeam_utils::CachePadded` in place of
                 `Line` does the same with 128 bytes each on x86-64, which keeps the adjacent-line prefetcher
                 apart too: 384 bytes (+360).
        "#]],
    );
    let sites = vec![store(0, 4, 4001), store(16, 8, 4002)];
    check(
        tree("rustc", "tree.rs", "demo::EVENT"),
        0,
        sites,
        &expect![[r#"
            F1  FALSE SHARING  it                                                             90.0 % of the time
              at global variable of type `demo::Event`, 24 bytes, aligned to 8; this object is at 0x404040,
                 starts a line and has bytes on 1 line

                                     offset   size
                  /* --- line 0 at 0x404040: shared by 4001, 4002 --- */
              demo::Event {
                  discriminant: u32,      0      4  ^ store 4001 50.0 %
                  Nothing,                0     24
                  Moved {
                      /* 4 bytes unused */
                      x: f32,             8      4
                      /* 4 bytes unused */
                      y: f64,            16      8  ^ store 4002 50.0 %
                  },                      0     24
                  Typed {
                      /* 4 bytes unused */
                      0: u8,              8      1
                      /* 1 byte unused */
                      1: u16,            10      2
                      /* 12 bytes unused at the end */
                  },                      0     24
              };                          0     24

            gain More than nothing on lines of their own: samples do not tell how much, `--hold` does.

             fix Different threads use bytes 0-3 (written at server+0x1fa1) and bytes 16-23 (written at
                 server+0x1fa2). Start each of these parts at a multiple of 64 bytes and let nothing else share
                 its line. They are within `demo::Event`, in members that share storage or are declared
                 elsewhere (bit-fields, a base class, an anonymous member): take those apart first. That takes
                 `#[repr(align(64))]` on the type of each part.
        "#]],
    );
}

#[test]
fn an_object_that_is_padded_has_no_shared_line_and_its_neighbour_without_padding_has() {
    let sites = || vec![store(0, 8, 4001)];
    let Some(padded) = tree("rustc", "tree.rs", "demo::PADDED") else {
        return;
    };
    let text_of_padded = text(padded.clone(), 0, sites());
    assert!(
        text_of_padded.contains("used by 4001") && !text_of_padded.contains("shared by"),
        "{text_of_padded}"
    );
    let both = text(padded, 0, vec![store(0, 8, 4001), store(0, 8, 4002)]);
    assert!(both.contains("shared by 4001, 4002"), "{both}");
}
