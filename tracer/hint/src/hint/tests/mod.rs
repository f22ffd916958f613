//! Advice for every shape of object, with costs computed by hand.

mod elements;
mod elsewhere;
mod fields;
mod sharing;

use super::{Field, Scene, Sharing, Unit};
use crate::{
    access::{LineKey, LineSize, Place, SpaceId},
    names::{Author, ElementLayout, Language, MemberLayout, ObjectKind, ObjectLayout, ObjectName},
};

const START: u64 = 0x404040;

fn object(name: &str, start: u64, size: u64, language: Language) -> ObjectName {
    ObjectName {
        kind: ObjectKind::Global,
        name: Some(name.to_owned()),
        called: None,
        is_reached: false,
        thread: None,
        type_name: None,
        file: None,
        line: None,
        start: Some(start),
        size: Some(size),
        language: Some(language),
        layout: None,
        alignment: None,
        allocation: None,
    }
}

fn members(list: &[(&str, u64, u64, &str)]) -> Vec<MemberLayout> {
    list.iter()
        .map(|&(name, offset, size, type_name)| MemberLayout {
            name: name.to_owned(),
            offset,
            size,
            type_name: Some(type_name.to_owned()),
            ..MemberLayout::default()
        })
        .collect()
}

fn structure(
    type_name: &str,
    language: Language,
    size: u64,
    list: &[(&str, u64, u64, &str)],
) -> ObjectName {
    ObjectName {
        type_name: Some(type_name.to_owned()),
        layout: Some(ObjectLayout {
            author: Author::Program,
            size,
            element: None,
            members: members(list),
        }),
        ..object("stats", START, size, language)
    }
}

fn array(element: &str, language: Language, start: u64, stride: u64, count: u64) -> ObjectName {
    ObjectName {
        layout: Some(ObjectLayout {
            author: Author::Program,
            size: stride * count,
            element: Some(ElementLayout {
                type_name: Some(element.to_owned()),
                stride,
                count,
            }),
            members: Vec::new(),
        }),
        ..object("slots", start, stride * count, language)
    }
}

/// Bytes that one thread stores.
fn own(offset: u8, size: u16, label: &str) -> Unit {
    own_in(0, offset, size, label)
}

fn own_in(object: usize, offset: u8, size: u16, label: &str) -> Unit {
    Unit {
        pieces: vec![(offset, size)],
        fields: vec![Field {
            object: Some(object),
            label: Some(label.to_owned()),
        }],
        writers: 1,
        readers: 0,
        code: vec![format!("worker.c:{}", 10 + u32::from(offset))],
    }
}

fn private(addr: u64) -> LineKey {
    LineKey(Place::Private {
        space: SpaceId(0),
        addr,
    })
}

fn scene<'a>(objects: &'a [ObjectName], units: &'a [Unit]) -> Scene<'a> {
    Scene {
        sharing: Sharing::False,
        line: private(START),
        line_size: LineSize::B64,
        objects,
        units,
        language: None,
        words: &[],
        processes: 1,
        many: None,
    }
}

const COUNTERS: [(&str, u64, u64, &str); 3] = [
    ("hits", 0, 8, "unsigned long"),
    ("misses", 8, 8, "unsigned long"),
    ("total", 16, 8, "unsigned long"),
];
