//! Instruction addresses of compiled fixtures: functions, inlined calls, lines.

use std::collections::BTreeSet;

use symbolizer::{Bounds, Code, Language, Missing, Module};

use crate::toolchain::{Built, build, build_all, line_of};

/// The frames of every address of a function, as `function:line < caller:line`.
fn chains(module: &Module, start: u64, size: u64) -> BTreeSet<String> {
    (start..start + size)
        .map(|address| chain(&module.frames(address)))
        .collect()
}

fn chain(code: &Code) -> String {
    let frame = |frame: &symbolizer::Frame| {
        let name = frame.function.as_deref().unwrap_or("-");
        let file = frame
            .file
            .as_deref()
            .unwrap_or("-")
            .rsplit('/')
            .next()
            .unwrap();
        format!(
            "{name} {file}:{}",
            frame.line.map_or("?".into(), |line| line.to_string())
        )
    };
    code.frames
        .iter()
        .map(frame)
        .collect::<Vec<_>>()
        .join(" < ")
}

#[test]
fn an_inlined_call_has_its_own_line_and_the_line_of_the_call() {
    let (bump, call) = (
        line_of("data.c", "// LINE bump"),
        line_of("data.c", "// LINE call"),
    );
    let after = line_of("data.c", "// LINE after");
    for more in [
        &[][..],
        &["-no-pie"],
        &["-static"],
        &["-static-pie"],
        &["-gz=zlib"],
        &["-ffunction-sections"],
    ] {
        for (label, built) in build_all(&["cc", "clang"], "data.c", more) {
            let module = built.module();
            let (start, size) = built.symbol("worker");
            let found = chains(&module, start, size);
            let inlined = format!("bump data.c:{bump} < worker data.c:{call}");
            assert!(
                found.contains(&inlined),
                "{label}: {inlined} not in {found:#?}"
            );
            let plain = format!("worker data.c:{after}");
            assert!(found.contains(&plain), "{label}: {plain} not in {found:#?}");
            assert_eq!(module.language(start), Some(Language::C), "{label}");
        }
    }
}

#[test]
fn cpp_functions_are_demangled_with_their_class() {
    let add = line_of("data.cpp", "// LINE add");
    for (label, built) in build_all(&["c++", "clang++"], "data.cpp", &["-std=c++17"]) {
        let module = built.module();
        let (start, size) = built.symbol("_ZN2ns5Stats3addEl");
        let code = module.frames(start);
        assert_eq!(
            code.symbol.as_deref(),
            Ok("ns::Stats::add(long)"),
            "{label}"
        );
        assert_eq!(code.offset_in_symbol, Some(0));
        assert_eq!(
            code.frames.last().unwrap().function.as_deref(),
            Some("ns::Stats::add(long)")
        );
        let found = chains(&module, start, size);
        let ends = format!("ns::Stats::add(long) data.cpp:{add}");
        assert!(
            found.iter().any(|chain| chain.ends_with(&ends)),
            "{label}: {found:#?}"
        );
        assert_eq!(module.language(start), Some(Language::Cpp));
    }
}

#[test]
fn rust_inlined_methods_have_their_path_and_both_lines() {
    let (bump, call) = (
        line_of("data.rs", "// LINE bump"),
        line_of("data.rs", "// LINE call"),
    );
    for mangling in ["legacy", "v0"] {
        let mangling_flag = format!("-Csymbol-mangling-version={mangling}");
        let mut flags = vec!["-g", "--edition=2024", "--crate-name=demo", "-Copt-level=2"];
        if mangling == "v0" {
            flags.push(&mangling_flag);
        }
        let Some(built) = build("rustc", "data.rs", &flags) else {
            return;
        };
        let module = built.module();
        let (start, size) = built.symbol("6worker");
        let found = chains(&module, start, size);
        // v0 spells inherent methods with brackets.
        let method = if mangling == "v0" {
            "<demo::Counters>::bump"
        } else {
            "demo::Counters::bump"
        };
        let ends = format!("{method} data.rs:{bump} < demo::worker data.rs:{call}");
        assert!(
            found.iter().any(|chain| chain.ends_with(&ends)),
            "{ends} not in {found:#?}"
        );
        // The innermost frame is the library's own.
        assert!(
            found.iter().any(|chain| chain.contains("fetch_add")),
            "{found:#?}"
        );
        assert_eq!(module.language(start), Some(Language::Rust));
    }
}

#[test]
fn function_bounds_are_the_symbols_and_without_symbols_those_of_the_unwind_table() {
    for (label, built) in build_all(&["cc", "clang"], "data.c", &[]) {
        let (start, size) = built.symbol("worker");
        let module = built.module();
        for address in [start, start + 1, start + size - 1] {
            let function = module.function(address).unwrap();
            assert_eq!(
                (function.start, function.end),
                (start, start + size),
                "{label}"
            );
            assert_eq!(function.symbol.as_deref(), Some("worker"));
            assert_eq!(function.bounds, Bounds::Symbol);
        }
        let outside = module.function(start + size);
        assert!(
            outside.is_none_or(|function| function.start >= start + size),
            "{label}"
        );

        built.run("strip", &["-o", "stripped", "program"]);
        let stripped = crate::toolchain::parse(built.read("stripped"));
        let function = stripped.function(start + 1).unwrap();
        assert_eq!(
            (function.start, function.end),
            (start, start + size),
            "{label}"
        );
        assert_eq!(
            (function.symbol, function.bounds),
            (None, Bounds::UnwindEntry)
        );
        assert_eq!(
            stripped.code(start, start + size),
            module.code(start, start + size)
        );
        let code = stripped.frames(start + 1);
        assert_eq!(code.symbol, Err(Missing::NoSymbols));
        assert_eq!(code.missing, Some(Missing::NoDebugInfo));
        assert_eq!(
            stripped.section(start),
            Some((".text", start - text_start(&built)))
        );
    }
}

fn text_start(built: &Built) -> u64 {
    use object::{Object, ObjectSection};
    let bytes = built.bytes();
    object::File::parse(&*bytes)
        .unwrap()
        .section_by_name(".text")
        .unwrap()
        .address()
}

#[test]
fn every_address_of_a_program_reads_as_addr2line_reads_it() {
    let sources: [(&[&str], &str, &[&str]); 2] = [
        (&["cc", "clang"], "data.c", &[]),
        (&["c++", "clang++"], "data.cpp", &["-std=c++17"]),
    ];
    for (compilers, source, more) in sources {
        for (label, built) in build_all(compilers, source, more) {
            let compared = crate::self_test::compare_with_addr2line(&built.bytes(), 1);
            assert!(compared > 100, "{label}: {compared}");
        }
    }
}

#[test]
fn code_is_the_bytes_of_the_file_and_nothing_beyond_them() {
    let built = build("cc", "data.c", &["-g", "-O2"]).unwrap();
    let module = built.module();
    let (start, size) = built.symbol("worker");
    let code = module.code(start, start + size).unwrap();
    let bytes = built.bytes();
    assert!(bytes.windows(code.len()).any(|window| window == code));
    assert_eq!(module.code(start, start), Some(&[][..]));
    assert_eq!(module.code(start, start - 1), None);
    assert_eq!(module.code(start, u64::MAX), None);
    // `.bss` is in memory, not in the file.
    let (point, _) = built.symbol("point");
    assert_eq!(module.code(point, point + 8), None);
}

#[test]
fn run_time_addresses_become_svmas_by_the_program_headers() {
    for flags in [
        &["-g"][..],
        &["-g", "-no-pie"],
        &["-g", "-Wl,-z,noseparate-code"],
    ] {
        let built = build("cc", "data.c", flags).unwrap();
        let module = built.module();
        let bytes = built.bytes();
        let (function, _) = built.symbol("worker");
        let (data, _) = built.symbol("global_stats");
        for (name, svma) in [("worker", function), ("global_stats", data)] {
            // Where the file has the symbol's bytes, found without the crate.
            let offset = offset_of(&bytes, svma);
            assert_eq!(
                module.svma_of_offset(offset),
                Some(svma),
                "{flags:?} {name}"
            );
        }
        // The program at some place: the mapping that holds the function starts with its page.
        let offset = offset_of(&bytes, function);
        let (page, place) = (offset & !0xfff, 0x5555_5555_0000);
        let bias = module.load_bias(place, page).unwrap();
        assert_eq!(
            (place + offset - page).wrapping_sub(bias),
            function,
            "{flags:?}"
        );
        assert_eq!(module.svma_of_offset(bytes.len() as u64 + 0x10000), None);
        assert_eq!(module.load_bias(place, 0x7fff_f000), None);
    }
}

fn offset_of(bytes: &[u8], svma: u64) -> u64 {
    use object::{Object, ObjectSegment};
    let file = object::File::parse(bytes).unwrap();
    let holds = |segment: &object::Segment<'_, '_>| {
        (segment.address()..segment.address() + segment.file_range().1).contains(&svma)
    };
    let segment = file.segments().find(holds).unwrap();
    segment.file_range().0 + svma - segment.address()
}

#[test]
fn a_function_is_found_by_name_with_its_place_in_the_file_and_the_way_to_its_caller() {
    for more in [&[][..], &["-no-pie"], &["-static-pie"]] {
        for (label, built) in build_all(&["cc", "clang"], "data.c", more) {
            let module = built.module();
            let (start, _) = built.symbol("worker");
            let found = module.functions_named(&["no_such_function", "worker"]);
            assert_eq!(found, [None, Some(start)], "{label}");
            let offset = module.offset_of_svma(start).expect("it is in the file");
            assert_eq!(module.svma_of_offset(offset), Some(start), "{label}");
            if cfg!(target_arch = "x86_64") {
                // System V ABI AMD64, section 3.2.2: at the entry, the return address is at the stack pointer.
                let row = module
                    .frame_row(start)
                    .expect("it has call frame information");
                let mut registers = [None; 33];
                registers[7] = Some(0x7000);
                let mut stack = |at| (at == 0x7000).then_some(0x1234);
                assert_eq!(
                    row.step(&mut registers, 7, &mut stack),
                    Some(0x1234),
                    "{label}"
                );
                assert_eq!(registers[7], Some(0x7008), "{label}");
            }
        }
    }
}

#[test]
fn an_address_outside_of_all_functions_has_no_caller_and_no_place() {
    let built = build("cc", "data.c", &[]).expect("cc is there");
    let module = built.module();
    let end = module.memory().end;
    assert_eq!(module.frame_row(end), None);
    assert_eq!(module.offset_of_svma(end), None);
}
