//! Thread-local variables and what the loader is told of them.

use symbolizer::ThreadLocalSlotKind;

use crate::toolchain::{build, build_all};

#[test]
fn a_thread_local_that_was_dropped_does_not_hide_the_one_in_its_place() {
    let flags = ["-DDROPPED", "-fdata-sections", "-Wl,--gc-sections"];
    for (label, built) in build_all(&["cc", "clang"], "thread_local.c", &flags) {
        let module = built.module();
        let (offset, size) = built.symbol("kept");
        let object = module.thread_local_object(offset).unwrap();
        assert_eq!(
            (
                object.name.as_str(),
                object.size,
                object.type_name.as_deref()
            ),
            ("kept", Some(size), Some("struct narrow")),
            "{label}"
        );
    }
}

#[test]
fn a_library_tells_the_loader_where_to_write_its_number_and_a_program_needs_no_slot() {
    let program = build("cc", "thread_local.c", &["-g", "-O2"])
        .unwrap()
        .module();
    assert!(program.is_program() && program.thread_local_slots().is_empty());
    let fixed = build("cc", "thread_local.c", &["-g", "-O2", "-no-pie"])
        .unwrap()
        .module();
    assert!(fixed.is_program());
    let kinds = |flags: &[&str]| {
        let all = [
            &[
                "-g",
                "-O2",
                "-DLIBRARY",
                "-shared",
                "-fPIC",
                "-fvisibility=hidden",
            ],
            flags,
        ]
        .concat();
        let library = build("cc", "thread_local.c", &all).unwrap().module();
        assert!(!library.is_program(), "{flags:?}");
        let template = library.thread_local_template().unwrap();
        assert_eq!((template.size, template.alignment % 8), (16, 0));
        let slots = library.thread_local_slots();
        // Where the loader writes is data of the module.
        assert!(
            slots
                .iter()
                .all(|slot| library.memory().contains(&slot.address)),
            "{slots:?}"
        );
        slots.iter().map(|slot| slot.kind).collect::<Vec<_>>()
    };
    if cfg!(target_arch = "x86_64") {
        assert_eq!(kinds(&[]), [ThreadLocalSlotKind::Module]);
        assert_eq!(
            kinds(&["-ftls-model=initial-exec"]),
            [ThreadLocalSlotKind::Distance]
        );
    }
}
