//! Builds in another place than the recorded one: copies, out-of-tree builds, maps of prefixes; and files that are not the
//! recorded ones though they are named as those.

use std::fs;

use cohtrace::hint::{digest::md5, file::HintedCode};
use cohtrace_tests::live;

use super::bench::{Bench, LOAD, SOURCE, has, prefetches};

/// Compilers with each version of DWARF.
fn compilers() -> Vec<Vec<&'static str>> {
    let mut all = vec![
        vec!["gcc", "-O2", "-gdwarf-4"],
        vec!["gcc", "-O2", "-gdwarf-5"],
    ];
    if has("clang") {
        all.push(vec!["clang", "-fno-integrated-as", "-O2", "-gdwarf-4"]);
        all.push(vec!["clang", "-fno-integrated-as", "-O2", "-gdwarf-5"]);
    } else {
        live::skipped_core("no clang");
    }
    all
}

/// A directory whose `old/src/t.c` is the recorded source.
fn recorded() -> Bench {
    let bench = Bench::new("unused.c", "");
    write(&bench, "old/src/t.c", SOURCE);
    bench
}

fn write(bench: &Bench, file: &str, text: &str) {
    let path = bench.at(file);
    fs::create_dir_all(path.parent().expect("it is in a directory"))
        .expect("the directory is writable");
    fs::write(path, text).expect("the directory is writable");
}

/// The hint for the recorded source, with the digest of its text if `known`.
fn hint(bench: &Bench, compiler: &[&str], known: bool) -> HintedCode {
    HintedCode {
        md5: known.then(|| md5(SOURCE.as_bytes())),
        ..bench.hint(compiler, "old/src/t.c", LOAD)
    }
}

/// Builds in a directory of the bench; what was said, and how many prefetches there are.
fn built(bench: &Bench, directory: &str, compiler: &[&str], rest: &str) -> (String, usize) {
    let (bin, program) = (bench.at("bin"), bench.at("hinted"));
    let command = format!(
        "cd {directory} && {} -B {} {rest} -o {}",
        compiler.join(" "),
        bin.display(),
        program.display()
    );
    let said = bench.compile(&["sh", "-c", &command]);
    (said, prefetches(&bench.instructions("hinted")).len())
}

#[test]
fn a_copy_of_the_source_gets_its_hints_wherever_it_is_and_a_changed_one_does_not() {
    for compiler in compilers() {
        let bench = recorded();
        let hint = hint(&bench, &compiler, true);
        bench.install(std::slice::from_ref(&hint));
        write(&bench, "new/place/t.c", SOURCE);
        let (said, count) = built(&bench, "new/place", &compiler, "t.c");
        assert_eq!(count, 3, "{compiler:?}\n{said}");
        let (code, said) = bench.tool(&["--verify", "hinted", "--check"]);
        assert_eq!(code, 0, "{compiler:?}\n{said}");

        // A line more at its start, at the same path but for the tree's place: no load stands where it stood.
        write(&bench, "new/src/t.c", &format!("\n{SOURCE}"));
        let (said, count) = built(&bench, "new/src", &compiler, "t.c");
        assert_eq!(count, 0, "{compiler:?}\n{said}");
        assert!(said.contains("its text is not the recorded one"), "{said}");
        let (code, said) = bench.tool(&["--verify", "hinted"]);
        assert_eq!(code, 1, "{compiler:?}\n{said}");

        // Another file of that name in another directory has nothing to do with it, though its load is at that place.
        write(&bench, "new/other/t.c", &format!("{SOURCE}// more\n"));
        let (said, count) = built(&bench, "new/other", &compiler, "t.c");
        assert_eq!(count, 0, "{compiler:?}\n{said}");
        assert!(
            said.contains("--map") && said.lines().count() == 1,
            "{said}"
        );
        let (code, said) = bench.tool(&["--verify", "hinted"]);
        let (old, other) = (bench.at("old/src/t.c"), bench.at("new/other/t.c"));
        let both = [old, other].map(|path| path.display().to_string());
        assert!(
            code == 1 && both.iter().all(|path| said.contains(path)),
            "{said}"
        );
    }
}

#[test]
fn out_of_tree_builds_and_mapped_prefixes_get_their_hints_without_any_digest() {
    for compiler in compilers() {
        let bench = recorded();
        bench.install(&[hint(&bench, &compiler, false)]);
        write(&bench, "new/tree/src/t.c", SOURCE);
        for directory in ["old/build", "new/tree/build"] {
            fs::create_dir_all(bench.at(directory)).expect("the directory is writable");
        }
        let root = bench.at("new/tree");
        let root = root.display();
        for (directory, rest) in [
            ("old/build", "../src/t.c".to_owned()),
            ("new/tree/build", "../src/t.c".to_owned()),
            ("new/tree", "src/t.c".to_owned()),
            (
                "new/tree",
                format!("-ffile-prefix-map={root}=/usr/src/x {root}/src/t.c"),
            ),
            ("new/tree", format!("-ffile-prefix-map={root}=. src/t.c")),
            (
                "new/tree/src",
                format!("-fdebug-prefix-map={root}/src=. t.c"),
            ),
        ] {
            let (said, count) = built(&bench, directory, &compiler, &rest);
            assert_eq!(count, 3, "{compiler:?} {directory} {rest}\n{said}");
            let (code, said) = bench.tool(&["--verify", "hinted", "--check"]);
            assert_eq!(code, 0, "{compiler:?} {directory} {rest}\n{said}");
        }
    }
}

/// Two files of one name with a load at the same place; `main` is in the first.
fn namesakes(bench: &Bench, tree: &str) {
    write(bench, &format!("{tree}/a/t.c"), SOURCE);
    let other = SOURCE
        .split("int main")
        .next()
        .expect("there is a part before it");
    let other = other
        .replace("once", "other_once")
        .replace("twice", "other_twice");
    write(bench, &format!("{tree}/b/t.c"), &other);
}

#[test]
fn files_of_one_name_in_two_directories_are_not_mixed_up() {
    for compiler in compilers() {
        for known in [true, false] {
            let bench = recorded();
            namesakes(&bench, "old");
            namesakes(&bench, "new");
            let of = |file: &str| HintedCode {
                md5: known.then(|| md5(&fs::read(bench.at(file)).expect("it is there"))),
                ..bench.hint(&compiler, file, LOAD)
            };
            let [first, second] = ["old/a/t.c", "old/b/t.c"].map(of);
            // The copies in `once` and `twice` of each.
            for (hints, functions) in [
                (vec![first.clone()], ["<once>", "<twice>"]),
                (vec![second.clone()], ["<other_once>", "<other_twice>"]),
            ] {
                bench.install(&hints);
                let (said, count) = built(&bench, "new", &compiler, "a/t.c b/t.c");
                assert_eq!(count, 3, "{compiler:?} {known}\n{said}");
                let code = bench.functions_with_prefetch("hinted");
                assert_eq!(code, functions, "{compiler:?} {known}\n{said}");
                let (code, said) = bench.tool(&["--verify", "hinted", "--check"]);
                assert_eq!(code, 0, "{compiler:?} {known}\n{said}");
            }
            bench.install(&[first, second]);
            let (said, count) = built(&bench, "new", &compiler, "a/t.c b/t.c");
            assert_eq!(count, 6, "{compiler:?} {known}\n{said}");
        }
    }
}

#[test]
fn what_nothing_tells_is_told_by_a_map() {
    let compiler = ["gcc", "-O2", "-g"];
    let bench = recorded();
    namesakes(&bench, "old");
    let hints = ["old/a/t.c", "old/b/t.c"].map(|file| bench.hint(&compiler, file, LOAD));
    bench.install(&hints);
    fs::rename(bench.at("old/a"), bench.at("it's")).expect("the directory is writable");
    let (said, count) = built(&bench, "\"it's\"", &compiler, "t.c");
    assert!(count == 0 && said.contains("--map"), "{said}");
    let (code, said) = bench.tool(&["--verify", "hinted"]);
    let map = format!(
        "{}={}",
        bench.at("old/a").display(),
        bench.at("it's").display()
    );
    assert!(
        code == 1 && said.contains(&format!("--map {map}")),
        "{said}"
    );
    // The way back: the map is kept in the script, and is needed to verify.
    let (code, said) = bench.tool(&["--install", "bin", "--map", &map]);
    assert_eq!(code, 0, "{said}");
    let (said, count) = built(&bench, "\"it's\"", &compiler, "t.c");
    assert_eq!(count, 3, "{said}");
    assert_eq!(bench.tool(&["--verify", "hinted"]).0, 1);
    let (code, said) = bench.tool(&["--verify", "hinted", "--map", &map]);
    assert_eq!(code, 0, "{said}");
    let (code, said) = bench.tool(&["--verify", "hinted", "--map", "nonsense"]);
    assert!(code == 2 && said.contains("FROM=TO"), "{said}");
}
