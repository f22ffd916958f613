//! Debug info that is spread over several units.

use symbolizer::Missing;

use crate::{
    describe::describe,
    toolchain::{build, build_parts, line_of},
};

#[test]
fn link_time_optimised_programs_refer_across_units() {
    // gcc keeps the types in one unit and the addresses in another.
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let built = build("cc", "data.c", &["-g", "-O2", "-flto", version]).unwrap();
        let module = built.module();
        let (address, size) = built.symbol("everything");
        let object = module.object(address + 16).unwrap();
        assert_eq!(
            (object.name.as_str(), object.size),
            ("everything", Some(size))
        );
        assert_eq!(object.type_name.as_deref(), Some("struct everything"));
        let field = module.field(object.ty.unwrap(), 16, 8).unwrap();
        assert_eq!(field.path, ".inner.misses");
        assert_eq!(
            module.object(built.symbol("calls").0).unwrap().name,
            "count::calls"
        );

        let (start, size) = built.symbol("worker");
        let bump = line_of("data.c", "// LINE bump");
        let found = (start..start + size).any(|address| {
            let frames = module.frames(address).frames;
            let names: Vec<_> = frames
                .iter()
                .map(|frame| frame.function.as_deref())
                .collect();
            names == [Some("bump"), Some("worker")] && frames[0].line == Some(bump)
        });
        assert!(found, "{version}: bump is inlined into worker");
    }
}

#[test]
fn a_type_that_one_unit_only_declares_is_found_in_the_one_that_defines_it() {
    let limited: &[&str] = &["-g", "-femit-struct-debug-baseonly"];
    let Some(built) = build_parts("c++", &[("away.cpp", limited), ("home.cpp", limited)]) else {
        return;
    };
    let module = built.module();
    let object = module.object(built.symbol("counter").0).unwrap();
    assert_eq!(object.missing, None);
    let expected = "counter: shop::Counter, 24 bytes, away.cpp
    0..8   .vptr: int (**)() [0+8]
    8..16  .hits: long [8+8]
   16..24  .misses: long [16+8]
";
    assert_eq!(describe(&module, &object), expected);
    let pair = module.object(built.symbol("pair").0).unwrap();
    assert_eq!(
        module.field(pair.ty.unwrap(), 24, 8).unwrap().path,
        ".second.misses"
    );
}

#[test]
fn a_type_that_no_unit_defines_is_said_to_be_only_declared() {
    let parts: &[(&str, &[&str])] = &[
        ("away.cpp", &["-g", "-femit-struct-debug-baseonly"]),
        ("home.cpp", &["-O0"]),
    ];
    let Some(built) = build_parts("c++", parts) else {
        return;
    };
    let module = built.module();
    let object = module.object(built.symbol("counter").0).unwrap();
    assert_eq!(object.missing, Some(Missing::DeclarationOnly));
    assert_eq!(object.type_name.as_deref(), Some("shop::Counter"));
    // The symbol still has the size.
    assert_eq!(object.size, Some(24));
    assert_eq!(
        module.field(object.ty.unwrap(), 8, 8),
        Err(Missing::DeclarationOnly)
    );
    assert_eq!(
        module.layout(object.ty.unwrap()),
        Err(Missing::DeclarationOnly)
    );
    // A member of such a type is named as far as it is known.
    let pair = module.object(built.symbol("pair").0).unwrap();
    assert_eq!(
        module.field(pair.ty.unwrap(), 16, 8).unwrap().path,
        ".second"
    );
    assert_eq!(module.field(pair.ty.unwrap(), 0, 8).unwrap().path, ".first");
}

#[test]
fn split_debug_info_that_is_elsewhere_is_said_to_be_so() {
    let built = build("cc", "data.c", &["-g", "-O2", "-gsplit-dwarf"]).unwrap();
    let module = built.module();
    let (start, _) = built.symbol("worker");
    let code = module.frames(start);
    assert_eq!(code.symbol.as_deref(), Ok("worker"));
    // The skeleton still has the lines.
    assert!(
        code.frames.iter().all(|frame| frame.function.is_none()),
        "{code:?}"
    );
    let object = module.object(built.symbol("everything").0).unwrap();
    assert_eq!(object.missing, Some(Missing::DwoNotFound));
    assert_eq!(code.missing, Some(Missing::DwoNotFound));
}
