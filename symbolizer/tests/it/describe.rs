//! A whole object as text: what each of its bytes is called.

use std::fmt::Write;

use symbolizer::{Module, Object};

/// The object's own line, then one line per run of bytes that have the same name.
pub(crate) fn describe(module: &Module, object: &Object) -> String {
    let type_name = object.type_name.as_deref().unwrap_or("-");
    let file = object
        .file
        .as_deref()
        .unwrap_or("-")
        .rsplit('/')
        .next()
        .unwrap();
    let mut text = format!(
        "{}: {type_name}, {} bytes, {file}\n",
        object.name,
        object.size.map_or("?".into(), |size| size.to_string()),
    );
    let Some(ty) = object.ty else { return text };
    let mut run: Option<(u64, String)> = None;
    let mut offset = 0;
    loop {
        let name = (offset < object.size.unwrap()).then(|| match module.field(ty, offset, 1) {
            Ok(field) => format!(
                "{}: {} [{}+{}]",
                field.path,
                field.type_name.as_deref().unwrap_or("-"),
                field.member_offset,
                field.member_size
            ),
            Err(missing) => format!("{missing:?}"),
        });
        if let Some((start, current)) = &run {
            if name.as_ref() == Some(current) {
                offset += 1;
                continue;
            }
            writeln!(text, "  {start:3}..{offset:<3} {current}").unwrap();
        }
        let Some(name) = name else { break };
        run = Some((offset, name));
        offset += 1;
    }
    text
}

/// The layout of the object's type.
pub(crate) fn describe_layout(module: &Module, object: &Object) -> String {
    let layout = module.layout(object.ty.unwrap()).unwrap();
    let number = |number: Option<u64>| number.map_or("?".into(), |number| number.to_string());
    let (size, alignment) = (number(layout.size), number(layout.alignment));
    let mut text = format!(
        "{}: {size} bytes, aligned to {alignment}\n",
        layout.type_name
    );
    for member in &layout.members {
        let bits = member.bits.map_or(String::new(), |(first, count)| {
            format!(" bits {first}+{count}")
        });
        let size = number(member.size);
        writeln!(
            text,
            "  {:3}+{size:<3} {}: {}{bits}",
            member.offset, member.path, member.type_name
        )
        .unwrap();
    }
    if let Some(element) = layout.element {
        let name = module.layout(element.ty).unwrap().type_name;
        writeln!(
            text,
            "  {} times {name} every {} bytes",
            number(element.count),
            element.stride
        )
        .unwrap();
    }
    text
}
