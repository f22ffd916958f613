use std::rc::Rc;

use super::{
    Edits, FileEdits, LineEdit, Omitted, Sources, memory, omitted_lines, render_clang_tidy,
    render_diff,
};
use crate::hint::file::{HintedCode, LoadClass, LoadHint};

/// Files of `/src`, which is the current directory.
struct Here;

impl Sources for Here {
    fn text(&self, file: &str) -> Result<Rc<str>, String> {
        Err(format!("{file}: gone"))
    }

    fn changed(&self, _: &HintedCode) -> Option<String> {
        None
    }

    fn relative(&self, file: &str) -> Option<String> {
        file.strip_prefix("/src/").map(str::to_owned)
    }

    fn absolute(&self, file: &str) -> String {
        file.to_owned()
    }

    fn directory(&self) -> String {
        "/src".to_owned()
    }
}

fn edits(file: &str, text: &str, lines: &[u32]) -> Edits {
    let offset = |line: u32| {
        text.split_inclusive('\n')
            .take(line as usize - 1)
            .map(str::len)
            .sum()
    };
    let edits = lines.iter().map(|&line| LineEdit {
        line,
        offset: offset(line),
        text: format!("\tp{line}();\n"),
        hints: vec![format!("H{line}")],
    });
    Edits {
        files: vec![FileEdits {
            file: file.to_owned(),
            text: text.into(),
            edits: edits.collect(),
        }],
        omitted: Vec::new(),
    }
}

#[test]
fn changes_near_each_other_are_one_hunk_and_others_are_not() {
    let text = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12";
    let near = render_diff(&edits("/src/a b.c", text, &[2, 4]), &Here);
    let expected = "--- a/a b.c\t\n+++ b/a b.c\t\n@@ -1,6 +1,8 @@\n 1\n+\tp2();\n 2\n 3\n+\tp4();\n 4\n 5\n 6\n";
    assert_eq!(near, expected);
    let far = render_diff(&edits("/elsewhere/a.c", text, &[1, 12]), &Here);
    assert!(far.starts_with("--- a/elsewhere/a.c\n"), "{far}");
    assert!(far.contains("@@ -1,3 +1,4 @@\n+\tp1();\n 1\n"), "{far}");
    assert!(
        far.ends_with(
            "@@ -9,4 +10,5 @@\n 9\n 10\n 11\n+\tp12();\n 12\n\\ No newline at end of file\n"
        ),
        "{far}"
    );
    assert_eq!(render_diff(&Edits::default(), &Here), "");
}

#[test]
fn fixes_are_quoted_so_that_nothing_in_a_name_ends_them() {
    let yaml = render_clang_tidy(&edits("/src/it's \"a\"\\b.c", "x\ny\n", &[2]), &Here);
    assert!(
        yaml.contains("FilePath: \"/src/it's \\\"a\\\"\\\\b.c\"\n"),
        "{yaml}"
    );
    assert!(
        yaml.contains("Offset: 2\n") && yaml.contains("ReplacementText: \"\\tp2();\\n\"\n"),
        "{yaml}"
    );
    let none = render_clang_tidy(&Edits::default(), &Here);
    assert_eq!(none, "---\nMainSourceFile: \"\"\nDiagnostics: []\n...\n");
}

#[test]
fn what_is_left_out_is_a_line_each() {
    let mut all = edits("/src/a.c", "x\n", &[1]);
    assert!(omitted_lines(&all).is_empty());
    all.omitted.push(Omitted {
        id: "H2".to_owned(),
        place: "a.c:1".to_owned(),
        reason: "why".to_owned(),
    });
    assert_eq!(
        omitted_lines(&all),
        [
            "a.c:1: H2 is left out: why",
            "cohtrace: 1 of 2 load hints could be written into the source"
        ]
    );
}

/// A load at the column of `inverse` below.
fn hint(object: Option<&str>, field: Option<&str>) -> LoadHint {
    LoadHint {
        class: LoadClass::Integer,
        object: object.map(str::to_owned),
        field: field.map(str::to_owned),
        ..LoadHint::new(
            "H1".to_owned(),
            HintedCode {
                file: Some("/src/a.c".to_owned()),
                line: Some(2),
                column: Some(14),
                ..HintedCode::default()
            },
        )
    }
}

#[test]
fn memory_without_a_name_is_called_what_the_source_writes_for_it_without_its_type() {
    for (object, field, expected) in [
        (Some("stats"), Some(".hits"), Some("stats.hits")),
        (Some("queues"), Some("[0].lock"), Some("queues[0].lock")),
        (Some("uint32_t"), Some("*lock"), Some("*lock")),
        (Some("word"), Some("node->count"), Some("node->count")),
        (Some("stats"), None, Some("stats")),
        (None, None, None),
    ] {
        assert_eq!(memory(&hint(object, field)).as_deref(), expected);
    }
}
