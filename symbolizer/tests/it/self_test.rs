//! The test binary is its own ground truth: it knows its functions, and another reader knows its lines.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use symbolizer::{Bounds, Language, Mapping, Module, NoDebugFiles, NoModule, Process};

fn own_module() -> Module {
    let path = std::env::current_exe().unwrap();
    Module::parse(
        Arc::new(std::fs::read(path).unwrap()),
        Box::new(NoDebugFiles),
    )
    .unwrap()
}

/// The svma of a function of this process, by the mapping that holds it.
fn own_svma(module: &Module, address: u64) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (start, end) = words.next().unwrap().split_once('-').unwrap();
        let offset = words.nth(1).unwrap();
        let hex = |text| u64::from_str_radix(text, 16).unwrap();
        if (hex(start)..hex(end)).contains(&address) {
            let bias = module.load_bias(hex(start), hex(offset)).unwrap();
            let svma = module
                .svma_of_offset(address - hex(start) + hex(offset))
                .unwrap();
            assert_eq!(address.wrapping_sub(bias), svma);
            return svma;
        }
    }
    panic!("{address:#x} is not mapped");
}

#[inline(never)]
fn some_function_of_this_file(value: u64) -> u64 {
    std::hint::black_box(value) + 1
}

#[test]
fn the_process_names_its_own_function_with_file_and_line() {
    let module = own_module();
    some_function_of_this_file(1);
    let svma = own_svma(&module, some_function_of_this_file as *const () as u64);

    let function = module.function(svma).unwrap();
    assert_eq!((function.start, function.bounds), (svma, Bounds::Symbol));
    assert!(module.code(function.start, function.end).is_some());

    let code = module.frames(svma);
    let name = "it::self_test::some_function_of_this_file";
    assert_eq!(code.symbol.as_deref(), Ok(name));
    assert_eq!(code.offset_in_symbol, Some(0));
    let frame = code.frames.last().unwrap();
    assert_eq!(frame.function.as_deref(), Some(name));
    assert!(
        frame
            .file
            .as_deref()
            .unwrap()
            .ends_with("tests/it/self_test.rs")
    );
    let here = line!();
    assert!(
        (here - 30..here).contains(&frame.line.unwrap()),
        "{frame:?}"
    );
    assert_eq!(module.language(svma), Some(Language::Rust));
}

static INITIALISED: AtomicU64 = AtomicU64::new(7);
/// Large enough that it cannot lie in the last page of the file's mapping as a whole.
static ZEROED: [AtomicU64; 4096] = [const { AtomicU64::new(0) }; 4096];

#[test]
fn the_process_names_its_own_statics_also_where_no_file_is_mapped() {
    let module = own_module();
    INITIALISED.fetch_add(
        ZEROED[4000].fetch_add(1, Ordering::Relaxed),
        Ordering::Relaxed,
    );
    let code = some_function_of_this_file as *const () as u64;
    let bias = code.wrapping_sub(own_svma(&module, code));

    let initialised = own_svma(&module, &raw const INITIALISED as u64);
    let object = module.object(initialised).unwrap();
    assert_eq!(object.name, "it::self_test::INITIALISED");

    let zeroed = (&raw const ZEROED[4000] as u64).wrapping_sub(bias);
    assert!(module.memory().contains(&zeroed));
    let object = module.object(zeroed).unwrap();
    assert_eq!(object.name, "it::self_test::ZEROED");
    let field = module
        .field(object.ty.unwrap(), zeroed - object.address, 8)
        .unwrap();
    assert_eq!(field.path, "[4000]");
}

#[test]
fn threads_may_ask_the_same_module_at_once() {
    let module = own_module();
    let svma = own_svma(&module, some_function_of_this_file as *const () as u64);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let ask = || {
            (
                module.frames(svma),
                module.object(svma),
                module.function(svma),
            )
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(!answers[0].0.frames.is_empty());
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}

#[test]
fn every_address_of_this_binary_reads_as_addr2line_reads_it() {
    let path = std::env::current_exe().unwrap();
    // Odd and of no relation to alignments: all positions in functions are met.
    let compared = compare_with_addr2line(&std::fs::read(path).unwrap(), 61);
    assert!(compared > 10_000, "only {compared} addresses have frames");
}

/// Every `step`th address of `.text`; returns how many have frames.
pub(crate) fn compare_with_addr2line(bytes: &[u8], step: usize) -> usize {
    let module = crate::toolchain::parse(bytes.to_vec());
    let other = addr2line_context(bytes);
    let mut named = 0;
    for address in text_range(bytes).step_by(step) {
        let code = module.frames(address);
        let expected = frames_of(&other, address);
        let actual: Vec<[String; 3]> = code.frames.iter().map(words_of).collect();
        assert!(
            same(&actual, &expected),
            "at {address:#x}: {actual:#?} {expected:#?}"
        );
        named += usize::from(!actual.is_empty());
    }
    named
}

type Context<'a> = addr2line::Context<gimli::EndianSlice<'a, gimli::LittleEndian>>;

fn addr2line_context(bytes: &[u8]) -> Context<'_> {
    use object::{Object, ObjectSection};
    let file = object::File::parse(bytes).unwrap();
    let load = |id: gimli::SectionId| -> Result<_, gimli::Error> {
        let data = file
            .section_by_name(id.name())
            .map_or(&[][..], |section| section.data().unwrap());
        Ok(gimli::EndianSlice::new(data, gimli::LittleEndian))
    };
    addr2line::Context::from_dwarf(gimli::Dwarf::load(load).unwrap()).unwrap()
}

fn text_range(bytes: &[u8]) -> std::ops::Range<u64> {
    use object::{Object, ObjectSection};
    let file = object::File::parse(bytes).unwrap();
    let text = file.section_by_name(".text").unwrap();
    text.address()..text.address() + text.size()
}

/// Function, file and line of each frame.
fn frames_of(context: &Context<'_>, address: u64) -> Vec<[String; 3]> {
    let mut frames = context.find_frames(address).skip_all_loads().unwrap();
    let mut found = Vec::new();
    while let Some(frame) = frames.next().unwrap() {
        let name = frame
            .function
            .map(|name| symbolizer::demangle(&name.raw_name().unwrap()));
        let (file, line) = match frame.location {
            Some(location) => (location.file.map(str::to_owned), location.line),
            None => (None, None),
        };
        found.push([
            name.unwrap_or_default(),
            file.unwrap_or_default(),
            format!("{line:?}"),
        ]);
    }
    found
}

fn words_of(frame: &symbolizer::Frame) -> [String; 3] {
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    [
        text(frame.function.as_deref()),
        text(frame.file.as_deref()),
        format!("{:?}", frame.line),
    ]
}

/// The other reader knows no namespaces: where a function has no linkage name, it gives the last part only.
fn same(actual: &[[String; 3]], expected: &[[String; 3]]) -> bool {
    actual.len() == expected.len()
        && actual.iter().zip(expected).all(|(actual, expected)| {
            let scoped = actual[0].ends_with(&format!("::{}", expected[0]));
            actual[1..] == expected[1..] && (actual[0] == expected[0] || scoped)
        })
}

#[test]
fn a_process_by_its_mappings_names_code_and_data_at_run_time_addresses() {
    ZEROED[4095].store(1, Ordering::Relaxed);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let process = Process::new(Mapping::parse_all(&maps), |mapping| {
        let bytes = std::fs::read(&mapping.name).map_err(|e| e.to_string())?;
        Module::parse(Arc::new(bytes), Box::new(NoDebugFiles)).map_err(|e| e.to_string())
    });
    let code = process
        .code(some_function_of_this_file as *const () as u64)
        .unwrap();
    let function = code.frames.last().unwrap().function.as_deref();
    assert_eq!(function, Some("it::self_test::some_function_of_this_file"));

    let data = process.data(&raw const ZEROED[4095] as u64, 8).unwrap();
    assert_eq!(data.object.unwrap().name, "it::self_test::ZEROED");
    assert_eq!(data.field.unwrap().path, "[4095]");

    let boxed = Box::new(7u64);
    let heap = process.data(&raw const *boxed as u64, 8);
    assert!(matches!(heap, Err(NoModule::NoFile { .. })), "{heap:?}");
    assert_eq!(process.data(16, 8), Err(NoModule::NotMapped));
}
