//! The layout of a finding's object: what is asked for that is not there, names that are hostile, lines far apart.

use super::{one_atomic, two_counters};
use crate::{
    access::Op,
    finding::{Judgement, Verdict},
    names::{ObjectKind, Part, Role, TypeKind, TypeTree},
    report::{
        fixture::{FakeNames, LINE, facts, judgement, object, site, tally},
        layout::{
            self, FindingId, NoLayout,
            model::{Layout, Row},
        },
        printable::is_hostile,
        text::TextOptions,
    },
};

fn scalar(type_name: &str, size: Option<u64>) -> TypeTree {
    TypeTree {
        type_name: type_name.to_owned(),
        kind: TypeKind::Scalar,
        size,
        alignment: size,
        language: None,
        file: None,
        line: None,
        parts: Vec::new(),
        holes: Vec::new(),
        has_virtual_base: false,
        is_cut: false,
    }
}

fn part(name: &str, offset: u64, tree: TypeTree) -> Part {
    Part {
        role: Role::Member,
        name: name.to_owned(),
        offset,
        bits: None,
        alignment: None,
        tree,
    }
}

fn structure(type_name: &str, size: u64, parts: Vec<Part>) -> TypeTree {
    TypeTree {
        kind: TypeKind::Structure,
        parts,
        ..scalar(type_name, Some(size))
    }
}

fn build(judgements: &[Judgement], names: &FakeNames, id: &str) -> Result<Layout, NoLayout> {
    let id = FindingId::parse(id).unwrap();
    layout::build(&judgements.into(), id, names, &tally(), &facts())
}

fn stats() -> TypeTree {
    let long = || scalar("unsigned long", Some(8));
    structure(
        "struct stats",
        24,
        vec![
            part("hits", 0, long()),
            part("misses", 8, long()),
            part("total", 16, long()),
        ],
    )
}

#[test]
fn the_proposed_order_is_that_of_the_advice() {
    let (judgement, mut names) = two_counters();
    names.trees.insert(0, stats());
    let layout = build(&[judgement], &names, "F1").unwrap();
    let proposal = layout.proposal.clone().unwrap();
    assert_eq!((proposal.size, proposal.new_size), (24, 128));
    assert_eq!((proposal.lines, proposal.new_lines), (1, 2));
    let placed: Vec<_> = proposal
        .members
        .iter()
        .map(|m| (m.declaration.as_str(), m.offset.unwrap()))
        .collect();
    assert_eq!(
        placed,
        [
            ("unsigned long hits;", 0),
            ("_Alignas(64) unsigned long misses;", 64),
            ("unsigned long total;", 72)
        ]
    );
    let who: Vec<Vec<u32>> = proposal
        .members
        .iter()
        .map(|m| m.threads.iter().map(|t| t.tid).collect())
        .collect();
    assert_eq!(who, [vec![4001], vec![4002], vec![]]);
    assert!(layout.advice.unwrap().contains("from 24 to 128 bytes"));
}

#[test]
fn true_sharing_has_a_layout_and_no_proposal() {
    let (judgement, mut names) = one_atomic();
    names
        .trees
        .insert(0, scalar("core::sync::atomic::AtomicU64", Some(8)));
    let layout = build(&[judgement], &names, "1").unwrap();
    assert_eq!(layout.proposal, None);
    let Row::Member(member) = &layout.rows[1] else {
        panic!("{:?}", layout.rows)
    };
    assert_eq!((member.offset, member.uses[0].threads.len()), (0, 4));
}

#[test]
fn what_has_no_type_says_why_and_what_to_do() {
    let mut heap = object("", ObjectKind::Heap, 0, 0);
    (heap.name, heap.start, heap.size) = (None, None, None);
    let names = FakeNames {
        objects: vec![heap],
        ..FakeNames::default()
    };
    let sites = vec![
        site(0, 8, Op::Store, 1, 0x401000, 9, 9),
        site(8, 8, Op::Store, 2, 0x401000, 9, 9),
    ];
    let judgements = [judgement(Verdict::FalseSharing, 0.0, sites)];
    let error = build(&judgements, &names, "1").unwrap_err().to_string();
    for words in ["heap memory at 0x404040", "F1", "is not known", "-g"] {
        assert!(error.contains(words), "{error}");
    }
    let error = build(&judgements, &names, "2").unwrap_err().to_string();
    assert!(
        error.contains("no finding F2") && error.contains("there is one (F1)"),
        "{error}"
    );
    assert!(build(&judgements, &names, "I1").is_err());
}

#[test]
fn hostile_names_and_sizes_are_printed_and_bounded() {
    let long = || scalar("evil\x1b[2J\u{202e}", Some(8));
    let array = |count, stride| TypeTree {
        kind: TypeKind::Array {
            dimensions: vec![count, Some(u64::MAX)],
            stride,
        },
        parts: vec![Part {
            role: Role::Element,
            ..part("", 0, structure("s", 16, vec![part("a", 0, long())]))
        }],
        ..scalar("s [][]", None)
    };
    let tree = structure(
        "struct\n\x1b]0;x\x07",
        u64::MAX,
        vec![
            part("a\x1b[1m", 0, long()),
            part("b", u64::MAX, long()),
            part("c", 16, array(None, 0)),
            part("d", 16, array(Some(u64::MAX), u64::MAX)),
            part("e", 16, array(Some(3), 16)),
            Part {
                bits: Some((u64::MAX, u64::MAX)),
                ..part("f", 16, long())
            },
        ],
    );
    for (start, size) in [
        (0, u64::MAX),
        (LINE, 64),
        (LINE - 1, 1),
        (u64::MAX, u64::MAX),
    ] {
        let names = FakeNames {
            objects: vec![object("o\x1b", ObjectKind::Global, start, size)],
            trees: [(0, tree.clone())].into(),
            ..FakeNames::default()
        };
        let sites = vec![
            site(0, 8, Op::Store, 1, 0x401000, 9, 9),
            site(8, 8, Op::Store, 2, 0x401000, 9, 9),
        ];
        let layout = build(&[judgement(Verdict::FalseSharing, 0.0, sites)], &names, "1").unwrap();
        assert!(layout.rows.len() < 200, "{}", layout.rows.len());
        let text = layout::render_text(&layout, TextOptions::default());
        assert!(!text.chars().any(|c| c != '\n' && is_hostile(c)), "{text}");
        assert!(
            !layout::render_json(&layout)
                .chars()
                .any(|c| c != '\n' && is_hostile(c))
        );
    }
}
