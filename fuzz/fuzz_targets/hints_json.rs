//! Any text as hints.json: read, written again, printed in every form, and placed in compiler output.
#![no_main]

use std::rc::Rc;

use cohtrace::{
    hint::{
        assembly::{self, NoTree, Place},
        file::{HintFile, HintedCode},
    },
    report::load_hints::{Sources, edits, render_clang_tidy, render_diff, render_sarif},
};
use libfuzzer_sys::fuzz_target;

const ASSEMBLY: &[u8] = b"\t.file 1 \"/src/a.c\"\nf:\n\t.loc 1 1 5\n\tmovq\t8(%rdi), %rax\n\t.loc 1 2 2\n\
    \tmovl\t4(%rsi), %edx\n\t.loc 1 3 2\n\taddq\t(%rax,%rdx,8), %rcx\n\tret\n";
const SOURCE: &str = "long counter;\nvoid f(long *p) {\n\tcounter = p[1] + 2;\n}\n";

/// One text under every name.
struct OneText;

impl Sources for OneText {
    fn text(&self, _: &str) -> Result<Rc<str>, String> {
        Ok(SOURCE.into())
    }

    fn changed(&self, _: &HintedCode) -> Option<String> {
        None
    }

    fn relative(&self, file: &str) -> Option<String> {
        Some(file.to_owned())
    }

    fn absolute(&self, file: &str) -> String {
        file.to_owned()
    }

    fn directory(&self) -> String {
        "/src".to_owned()
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(hints) = HintFile::parse(&String::from_utf8_lossy(bytes)) else {
        return;
    };
    let written = hints.render();
    let again = HintFile::parse(&written).expect("what we write we read");
    assert_eq!(again.render(), written);
    let place = Place {
        directory: "/src",
        maps: &[],
        tree: &NoTree,
        everywhere: true,
    };
    let rewritten = assembly::rewrite(ASSEMBLY, &hints, &place);
    let _ = assembly::lines(&rewritten, &hints);
    let _ = assembly::record(&rewritten, &hints);
    let made = edits(&hints, &OneText);
    let _ = render_clang_tidy(&made, &OneText);
    let _ = render_diff(&made, &OneText);
    let _ = render_sarif(Some(&hints), None, &OneText);
});
