//! Rules of the repository that no compiler knows, checked on its text.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use cohtrace_tests::{
    repository, rooms,
    rust_text::{NamedPath, Word, paths, words},
};

fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests
        .parent()
        .expect("tests is a member of the workspace")
        .to_path_buf()
}

/// Every file of the repository, relative to its root; builds, what a fuzzer found and git's own are not part of it.
fn files() -> Vec<PathBuf> {
    repository::files(&root()).expect("the repository is readable")
}

fn with_extension(extension: &str) -> Vec<PathBuf> {
    let mut files = files();
    files.retain(|path| path.extension().is_some_and(|e| e == extension));
    assert!(
        !files.is_empty(),
        "no .{extension} file: the repository is not where it should be"
    );
    files
}

fn read(path: &Path) -> String {
    fs::read_to_string(root().join(path))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Collects broken rules and panics with all of them at once.
#[derive(Default)]
struct Broken(String);

impl Broken {
    fn add(&mut self, path: &Path, line: usize, what: impl std::fmt::Display) {
        writeln!(self.0, "{}:{line}: {what}", path.display()).expect("a String takes all");
    }

    fn none_or_panic(self) {
        assert!(self.0.is_empty(), "\n{}", self.0);
    }
}

/// Runs a check on each Rust file below a directory.
fn for_each_rust_file(below: &str, mut check: impl FnMut(&Path, &[Word], &[NamedPath])) {
    for path in with_extension("rs")
        .iter()
        .filter(|path| path.starts_with(below))
    {
        let text = read(path);
        let words = words(&text);
        check(path, &words, &paths(&words));
    }
}

#[test]
fn what_judges_and_prints_does_no_input_and_knows_no_kernel() {
    let mut broken = Broken::default();
    for part in [
        "judge/src/analysis",
        "judge/src/finding",
        "model/src",
        "report/src",
        "hint/src",
        "statistics/src",
        "text/src",
    ] {
        for_each_rust_file(&format!("tracer/{part}"), |file, _, paths| {
            for path in paths {
                let forbidden = (path.starts_with(&["std", "fs"])
                    && !path.parts.ends_with(&["Metadata"]))
                    || path.starts_with(&["std", "env"])
                    || path.starts_with(&["aya"])
                    || path.starts_with(&["clap"])
                    || path.starts_with(&["cohtrace_platform", "sys"]);
                // What a compiler makes of a type is looked at in a program.
                if forbidden && !file.ends_with("tests/compiled.rs") {
                    broken.add(
                        file,
                        path.line,
                        format!("{part} names {}", path.parts.join("::")),
                    );
                }
            }
        });
    }
    broken.none_or_panic();
}

#[test]
fn the_rooms_use_each_other_as_the_document_says() {
    let text = read(Path::new("ARCHITECTURE.md"));
    let rows = text
        .lines()
        .skip_while(|line| *line != "| room | uses | holds |")
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let stated = rows.map(|row| {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let room = cells.next().unwrap_or_default().trim_matches('`');
        let uses = cells.next().unwrap_or_default().split(", ");
        let uses = uses.filter(|name| !name.is_empty()).map(str::to_owned);
        (room.to_owned(), uses.collect())
    });
    let stated: rooms::Rooms = stated.collect();
    let real = rooms::rooms(&root()).expect("the manifests are readable");
    assert_eq!(stated, real, "left: ARCHITECTURE.md, right: the manifests");
}

#[test]
fn the_symbolizer_knows_nothing_of_tracing() {
    let mut broken = Broken::default();
    for_each_rust_file("symbolizer", |file, _, paths| {
        for path in paths {
            if path.starts_with(&["cohtrace"]) || path.starts_with(&["tracer_ebpf"]) {
                broken.add(file, path.line, path.parts.join("::"));
            }
        }
    });
    let manifest = Path::new("symbolizer/Cargo.toml");
    for (line, text) in (1..).zip(read(manifest).lines()) {
        // How a test says that it was not run is nobody's knowledge.
        let is_tool = text.starts_with("cohtrace") && !text.starts_with("cohtrace-skips");
        if is_tool || text.starts_with("tracer") {
            broken.add(manifest, line, text);
        }
    }
    broken.none_or_panic();
}

#[test]
fn only_the_command_line_knows_clap_and_anyhow_and_prints() {
    let mut broken = Broken::default();
    for_each_rust_file("tracer", |file, words, paths| {
        if file.starts_with("tracer/src/cli")
            || file.ends_with("build.rs")
            || file.ends_with("main.rs")
        {
            return;
        }
        for path in paths {
            if path.starts_with(&["clap"]) || path.starts_with(&["anyhow"]) {
                broken.add(file, path.line, path.parts.join("::"));
            }
        }
        // Clippy refuses to print, in code that is no test; nobody else may ask it not to.
        let excused = |word: &&Word| matches!(word.text, "print_stdout" | "print_stderr");
        for word in words.iter().filter(excused) {
            broken.add(file, word.line, format!("an exception from {}", word.text));
        }
    });
    broken.none_or_panic();
}

/// aya-ebpf exports its own memcpy, which would replace libc's in the tool.
#[test]
fn no_host_build_depends_on_aya_ebpf() {
    let mut broken = Broken::default();
    let allowed = [
        "[workspace.dependencies]",
        "[target.'cfg(target_arch = \"bpf\")'.dependencies]",
    ];
    for manifest in with_extension("toml") {
        let text = read(&manifest);
        let mut table = "";
        for (line, text) in (1..).zip(text.lines()) {
            if text.starts_with('[') {
                table = text;
            }
            let named = text.starts_with("aya-ebpf") || table.contains("dependencies.aya-ebpf");
            if named && !allowed.contains(&table) {
                broken.add(&manifest, line, format!("aya-ebpf in {table}"));
            }
        }
    }
    broken.none_or_panic();
}

#[test]
fn unsafe_code_has_its_places_and_each_says_why_it_is_sound() {
    let mut broken = Broken::default();
    for_each_rust_file("", |file, words, _| {
        // Programs that tests look at are not ours to run.
        if file.iter().any(|part| part == "fixtures") {
            return;
        }
        let text = read(file);
        let lines: Vec<&str> = text.lines().collect();
        let allowed = [
            "tracer/platform/src/sys",
            "tracer/qemu-plugin/src",
            "tracer-ebpf/src/programs",
            "tests",
        ];
        for pair in words.windows(2).filter(|pair| pair[0].text == "unsafe") {
            let line = pair[0].line;
            // Attributes such as `#[unsafe(no_mangle)]` run no code.
            let is_loaded = ["tracer-ebpf/src", "tracer/qemu-plugin/src"];
            if pair[1].text == "(" && is_loaded.iter().any(|place| file.starts_with(place)) {
                continue;
            }
            if !allowed.iter().any(|place| file.starts_with(place)) {
                broken.add(file, line, "unsafe outside its places");
            }
            let above = &lines[line.saturating_sub(8)..line];
            if matches!(pair[1].text, "{" | "impl")
                && !above.iter().any(|line| line.contains("// SAFETY:"))
            {
                broken.add(file, line, "no SAFETY comment");
            }
        }
    });
    broken.none_or_panic();
}

#[test]
fn no_file_is_longer_than_600_lines() {
    let mut broken = Broken::default();
    for file in with_extension("rs") {
        let lines = read(&file).lines().count();
        if lines > 600 {
            broken.add(&file, lines, "too long; split it by what it defines");
        }
    }
    broken.none_or_panic();
}

#[test]
fn the_readme_is_read_in_two_minutes() {
    let mut broken = Broken::default();
    let readme = Path::new("README.md");
    let text = read(readme);
    for (number, line) in (1..).zip(text.lines()) {
        if number == 101 {
            broken.add(readme, number, "more than 100 lines");
        }
        if line.chars().count() > 110 {
            broken.add(readme, number, "more than 110 characters");
        }
    }
    broken.none_or_panic();
}

#[test]
fn no_module_is_named_after_nothing() {
    let mut broken = Broken::default();
    let nothing = ["util", "utils", "common", "helper", "helpers", "misc"];
    for file in with_extension("rs") {
        for part in file.with_extension("").components() {
            if nothing.iter().any(|name| part.as_os_str() == *name) {
                broken.add(&file, 1, "a name that says nothing");
            }
        }
    }
    for_each_rust_file("", |file, words, _| {
        for pair in words.windows(2) {
            if pair[0].text == "mod" && nothing.contains(&pair[1].text) {
                broken.add(file, pair[0].line, format!("mod {}", pair[1].text));
            }
        }
    });
    broken.none_or_panic();
}

#[test]
fn every_file_of_integration_tests_is_a_module_of_their_program() {
    let main = read(Path::new("tests/tests/main.rs"));
    let all = words(&main);
    let modules = all.windows(2).filter(|pair| pair[0].text == "mod");
    let modules: Vec<&str> = modules.map(|pair| pair[1].text).collect();
    let mut broken = Broken::default();
    for file in with_extension("rs") {
        let Ok(below) = file.strip_prefix("tests/tests") else {
            continue;
        };
        let module = below.with_extension("");
        let module = module.iter().next().expect("a file has a name");
        if module != "main" && !modules.iter().any(|listed| module == *listed) {
            broken.add(&file, 1, "its tests are not run; tests/tests/main.rs");
        }
    }
    broken.none_or_panic();
}

#[test]
fn nothing_is_left_for_later() {
    let mut broken = Broken::default();
    for_each_rust_file("", |file, words, _| {
        for three in words.windows(3) {
            let [a, b, c] = [three[0].text, three[1].text, three[2].text];
            if (a == "todo" || a == "unimplemented") && b == "!" {
                broken.add(file, three[0].line, format!("{a}!"));
            }
            if a == "#" && b == "[" && c == "ignore" {
                broken.add(file, three[0].line, "a test that does not run");
            }
        }
    });
    broken.none_or_panic();
}

/// Paths of whoever wrote or built it: they mean nothing elsewhere, and in the BPF objects they
/// would make the build depend on where it ran. Made-up homes in test cases (`/home/u`) are nobody's.
#[test]
fn no_file_names_the_directories_of_the_machine_it_was_written_on() {
    let mut places: Vec<String> = ["root", "work"].map(|place| format!("/{place}/")).into();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    // A root or home right below `/` is a container's, and its name may be any word.
    let own = [Some(root()), home].into_iter().flatten();
    let own = own.filter(|path| path.components().count() > 2);
    places.extend(own.map(|path| format!("{}/", path.display())));
    let mut broken = Broken::default();
    for file in files() {
        let bytes = fs::read(root().join(&file)).expect("just listed");
        let line_of = |at: usize| bytes[..at].split(|&byte| byte == b'\n').count();
        for place in &places {
            for at in (0..bytes.len()).filter(|&at| bytes[at..].starts_with(place.as_bytes())) {
                // `/proc/1/root/etc` and `net/work/` are no such paths.
                let before = at.checked_sub(1).map_or(b' ', |before| bytes[before]);
                let is_continued = before.is_ascii_alphanumeric() || b"/_-.}*>~".contains(&before);
                if !is_continued {
                    broken.add(
                        &file,
                        line_of(at),
                        format!("a path that begins with {place}"),
                    );
                }
            }
        }
    }
    broken.none_or_panic();
}

/// What implements the trait below the directory must be in the registry of its `mod.rs`.
fn assert_registered(directory: &str, trait_name: &str, registry: &str) {
    let mut broken = Broken::default();
    let mod_file = Path::new(directory).join("mod.rs");
    let text = read(&mod_file);
    let all = words(&text);
    // From `static REGISTRY` to the statement's end.
    let listed: Vec<&str> = all
        .windows(2)
        .position(|pair| matches!(pair[0].text, "static" | "const") && pair[1].text == registry)
        .map(|start| {
            all[start..]
                .iter()
                .map(|word| word.text)
                .take_while(|text| *text != ";")
                .collect()
        })
        .unwrap_or_default();
    let mut implementers = 0;
    for_each_rust_file(directory, |file, words, _| {
        let implements = words.windows(3).find(|three| {
            three[0].text == "impl" && three[1].text == trait_name && three[2].text == "for"
        });
        let below = file
            .strip_prefix(directory)
            .expect("it is below")
            .with_extension("");
        let module = below
            .components()
            .next()
            .expect("a file has a name")
            .as_os_str()
            .to_string_lossy()
            .into_owned();
        implementers += usize::from(implements.is_some());
        if let Some(found) = implements
            && file != mod_file
            && !listed.contains(&module.as_str())
        {
            broken.add(
                file,
                found[0].line,
                format!("{module} is not in {registry}"),
            );
        }
    });
    assert!(
        !listed.is_empty() && implementers > 0,
        "{registry} is not in {}, or nothing below implements {trait_name}",
        mod_file.display()
    );
    broken.none_or_panic();
}

#[test]
fn every_source_is_registered() {
    assert_registered("tracer/observe/src/source", "SourceKind", "SOURCES");
}

#[test]
fn paths_in_the_documents_exist() {
    let root = root();
    let mut broken = Broken::default();
    let rooms = rooms::rooms(&root).expect("the manifests are readable");
    let rooms = rooms
        .keys()
        .map(|room| root.join("tracer").join(room).join("src"));
    let mut places = vec![root.clone(), root.join("tracer"), root.join("tracer/src")];
    places.extend(rooms);
    // What has changed names what is no more.
    let documents = with_extension("md").into_iter().filter(|path| {
        let parent = path.parent();
        parent == Some(Path::new("")) || parent == Some(Path::new("docs"))
    });
    for document in documents.filter(|path| path != Path::new("CHANGELOG.md")) {
        let document = &*document;
        for (line, text) in (1..).zip(read(document).lines()) {
            for quoted in text.split('`').skip(1).step_by(2) {
                let ends_as_file = [".rs", ".md", ".toml"]
                    .iter()
                    .any(|end| quoted.ends_with(end));
                let first = quoted.split('/').next().unwrap_or_default();
                let is_member =
                    quoted.contains('/') && !first.is_empty() && root.join(first).is_dir();
                let is_path = quoted
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
                let is_made = quoted.starts_with('/')
                    || first == "target"
                    || quoted.starts_with("fuzz/artifacts");
                if !is_path || is_made || !(ends_as_file || is_member) {
                    continue;
                }
                if !places.iter().any(|place| place.join(quoted).exists()) {
                    broken.add(document, line, format!("{quoted} does not exist"));
                }
            }
        }
    }
    broken.none_or_panic();
}

#[test]
fn every_workload_says_its_answer() {
    let workloads = cohtrace_tests::workload::all().unwrap_or_else(|error| panic!("{error:#}"));
    let sources = files()
        .into_iter()
        .filter(|path| path.parent() == Some(Path::new("tests/workloads")));
    assert_eq!(workloads.len(), sources.count());
    assert!(
        workloads
            .iter()
            .all(|workload| !workload.answers.is_empty())
    );
}
