//! Java, where only words and a pattern can be given.

use std::{fs, process::Command};

use cohtrace::{
    access::{LineKey, LineSize, Place, SpaceId},
    hint::{self, Scene, Sharing, Unit},
    names::{Language, ObjectKind, ObjectName},
};

use super::{assert_sane, code, has};
use crate::hints::succeed;

#[test]
fn what_is_advised_for_java_compiles() {
    let objects = [ObjectName {
        kind: ObjectKind::Heap,
        ..ObjectName::default()
    }];
    let unit = |offset| Unit {
        pieces: vec![(offset, 8)],
        fields: Vec::new(),
        writers: 1,
        readers: 0,
        code: vec!["LFields;::goLeft".to_owned()],
    };
    let units = [unit(16), unit(32)];
    let place = Place::Private {
        space: SpaceId(0),
        addr: 0x7f00_0000_0040,
    };
    let advice = hint::advise(&Scene {
        sharing: Sharing::False,
        line: LineKey(place),
        line_size: LineSize::B64,
        objects: &objects,
        units: &units,
        language: Some(Language::Java),
        words: &[],
        processes: 1,
        many: None,
    });
    assert_sane(&advice.text, &["alignas", "_Alignas", "malloc", "repr("]);
    for words in [
        "@jdk.internal.vm.annotation.Contended",
        "-XX:-RestrictContended",
        "--add-exports",
    ] {
        assert!(advice.text.contains(words), "{words}: {}", advice.text);
    }
    let classes = code(&advice.text);
    assert_eq!(classes.len(), 3, "{}", advice.text);
    if !has("javac", "-version") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let annotated = "class Counters { @jdk.internal.vm.annotation.Contended volatile long left; volatile long right; }\n";
    let source = format!("{annotated}{}\n", classes.join("\n"));
    fs::write(directory.path().join("Advised.java"), source).expect("it is ours");
    succeed(Command::new("javac").current_dir(directory.path()).args([
        "--add-exports",
        "java.base/jdk.internal.vm.annotation=ALL-UNNAMED",
        "Advised.java",
    ]));
}
