//! Words for Java, whose virtual machine lays objects out itself.

/// How to keep fields or elements apart.
pub(super) fn apart(line: u64) -> String {
    format!(
        "In Java, mark each field with `@jdk.internal.vm.annotation.Contended` (compile with `--add-exports \
         java.base/jdk.internal.vm.annotation=ALL-UNNAMED`, run with `-XX:-RestrictContended`), or pad by a hierarchy of \
         classes, for the virtual machine orders the fields of one class as it likes but puts a superclass's first:\n    \
         {}\nLeave {} elements of 8 bytes between those of an array that different threads use.",
        hierarchy(line).join("\n    "),
        line / 8
    )
}

/// Three classes: a field, the padding behind it, another field.
fn hierarchy(line: u64) -> [String; 3] {
    let pads: Vec<String> = (1..=line / 8).map(|n| format!("p{n}")).collect();
    [
        "class First { volatile long first; }".to_owned(),
        format!(
            "class Between extends First {{ long {}; }}",
            pads.join(", ")
        ),
        "class Second extends Between { volatile long second; }".to_owned(),
    ]
}
