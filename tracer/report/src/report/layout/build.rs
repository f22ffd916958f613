//! From a judgement to the layout of its object.

use super::{
    model::{self, Layout, NewMember, Object, SCHEMA},
    rows::{At, rows, unused},
    uses::Uses,
};
use crate::{
    access::{LineKey, Place},
    event::Tally,
    finding::Judged,
    hint::{self, Placed},
    names::{Names, TypeKind, TypeTree, Untyped},
    report::{
        build::{Evidence, finding},
        gain,
        listed::{listed, subjects_of},
        model::{Finding, FindingId, Hex, Thread, Tool},
        run_facts::RunFacts,
    },
};

/// Other lines of the same object that are looked at.
const MOST_LINES: usize = 256;

/// Why there is no layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoLayout {
    /// The report has no such finding.
    #[error("there is no finding {id}: {}", available(*findings, *insignificant))]
    NoFinding {
        /// Which was asked for.
        id: FindingId,
        /// How many findings there are.
        findings: usize,
        /// How many lines are no findings.
        insignificant: usize,
    },
    /// The type of the finding's object is not known.
    #[error("the type of {what}, which {id} is about, is not known: {reason}. {}", reason.remedy())]
    Untyped {
        /// Which was asked for.
        id: FindingId,
        /// The object, in words.
        what: String,
        /// Why it has no type.
        reason: Untyped,
    },
    /// The type is known, but not where the object starts or ends.
    #[error(
        "where {what}, which {id} is about, starts or ends is not known, so there is nothing to lay its type over"
    )]
    Unplaced {
        /// Which was asked for.
        id: FindingId,
        /// The object, in words.
        what: String,
    },
}

fn available(findings: usize, insignificant: usize) -> String {
    let of = |n: usize, letter: char| match n {
        1 => format!("{letter}1"),
        n => format!("{letter}1 to {letter}{n}"),
    };
    let are = |n: usize| match n {
        1 => "is one".to_owned(),
        n => format!("are {n}"),
    };
    match (findings, insignificant) {
        (0, 0) => "no line was shared".to_owned(),
        (0, n) => format!(
            "there is none, only lines that are shared too little to be one ({})",
            of(n, 'I')
        ),
        (n, 0) => format!("there {} ({})", are(n), of(n, 'F')),
        (n, m) => format!(
            "there {} ({}), and lines that are shared too little ({})",
            are(n),
            of(n, 'F'),
            of(m, 'I')
        ),
    }
}

/// The layout of the object of one finding; `judged` as in [`crate::report::build()`].
pub fn build(
    judged: &Judged,
    id: FindingId,
    names: &dyn Names,
    tally: &Tally,
    run: &RunFacts,
) -> Result<Layout, NoLayout> {
    let subjects = subjects_of(judged, names, tally, run);
    let all = listed(judged, &subjects, names, tally, run);
    let insignificant = all.iter().filter(|listed| listed.id.insignificant).count();
    let wanted = all.iter().find(|listed| listed.id == id);
    let wanted = wanted.ok_or_else(|| NoLayout::NoFinding {
        id,
        findings: all.len() - insignificant,
        insignificant,
    })?;
    let judgement = &wanted.judgement;
    let evidence = Evidence::of(judgement, names, tally, run);
    let finding = finding(wanted, names, tally, run);
    let what = || what(&finding);
    let untyped = |reason| NoLayout::Untyped {
        id,
        what: what(),
        reason,
    };
    let main = evidence
        .subject
        .main()
        .ok_or_else(|| untyped(Untyped::NoObject))?;
    let object = &evidence.subject.objects[main];
    let tree = names
        .type_tree(judgement.key, run.line_size, main)
        .map_err(untyped)?;
    let size = object.size.max(tree.size);
    let (position, size) = object
        .start
        .zip(size)
        .ok_or_else(|| NoLayout::Unplaced { id, what: what() })?;
    let line = judgement.key.0.position();
    let at = At {
        position,
        address: names
            .address(judgement.key)
            .map(|address| address.wrapping_add(position.wrapping_sub(line))),
        size,
        line: run.line_size.bytes(),
        finding: line,
    };
    let mut uses = Uses::default();
    for other in judged
        .judgements
        .iter()
        .filter(|other| same_memory(other.key, judgement.key))
        .filter(|other| {
            let start = other.key.0.position();
            start < position.saturating_add(size) && position < start.saturating_add(at.line)
        })
        .take(MOST_LINES)
    {
        let evidence = Evidence::of(other, names, tally, run);
        uses.add(
            other.key,
            &evidence.rows.rows,
            (position, size),
            object.name.as_deref(),
        );
    }
    let language = object.language.or(evidence.rows.language);
    let (rows, is_cut) = rows(&tree, at, language, &uses);
    let (holes_bytes, holes) = unused(&tree);
    let proposal = evidence.with_scene(judgement, run, |scene| {
        // Arms of a union and variants cannot be moved apart, whatever their flat list looks like.
        if !has_members_side_by_side(&tree) {
            return None;
        }
        let proposal = hint::propose(scene, main)?;
        Some(proposed(&proposal, at, &finding))
    });
    Ok(Layout {
        schema: SCHEMA,
        tool: Tool {
            name: "cohtrace".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        object: Object {
            kind: object.kind,
            name: object.name.clone(),
            thread: finding.object.thread.clone(),
            type_name: tree.type_name.clone(),
            file: tree
                .file
                .as_deref()
                .map(str::to_owned)
                .or_else(|| object.file.clone()),
            declared_line: if tree.file.is_some() {
                tree.line
            } else {
                object.line
            },
            address: at.address.map(Hex),
            into_line: at.into_line(),
            size,
            alignment: tree.alignment,
            lines: at.lines(),
            holes_bytes,
            holes,
        },
        rows,
        is_cut,
        proposal: proposal.flatten(),
        gain: (finding.gain.as_ref()).map(|known| gain::sentence(known, finding.kind)),
        advice: finding.advice.text,
        finding: id,
        kind: finding.kind,
        confidence: finding.confidence,
        cost_share: finding.cost.share,
        cost_unit: run.cost_unit,
        line: finding.line,
        caveats: (run.caveats.iter().map(|caveat| caveat.text.clone()))
            .chain(names.caveats())
            .collect(),
    })
}

/// Whether the type, or that of an array's elements, is no union and no enumeration.
fn has_members_side_by_side(tree: &TypeTree) -> bool {
    let element = match tree.kind {
        TypeKind::Array { .. } => tree.parts.first().map(|part| &part.tree),
        _ => Some(tree),
    };
    element.is_some_and(|tree| !matches!(tree.kind, TypeKind::Union | TypeKind::Variants))
}

/// Whether positions of both lines count in the same numbering.
fn same_memory(a: LineKey, b: LineKey) -> bool {
    match (a.0, b.0) {
        (Place::Private { space: a, .. }, Place::Private { space: b, .. }) => a == b,
        (
            Place::Shared {
                dev: a, inode: i, ..
            },
            Place::Shared {
                dev: b, inode: j, ..
            },
        ) => (a, i) == (b, j),
        (Place::Kernel { .. }, Place::Kernel { .. }) => true,
        // Neighbouring pages may be of different objects.
        (Place::Physical { addr: a }, Place::Physical { addr: b }) => a / 4096 == b / 4096,
        _ => false,
    }
}

/// The object in words, for messages.
fn what(finding: &Finding) -> String {
    let object = &finding.object;
    match (&object.name, &finding.line.address) {
        (Some(name), _) => format!("`{name}`"),
        (None, Some(address)) => format!("the {} memory at {address}", object.kind.name()),
        (None, None) => format!("the {} memory {}", object.kind.name(), finding.line.key),
    }
}

fn proposed(proposal: &hint::Proposal, at: At, finding: &Finding) -> model::Proposal {
    let whole = proposal.new_size.saturating_mul(proposal.count);
    let threads = |placed: &Placed| -> Vec<Thread> {
        let group = placed.unit.and_then(|unit| finding.groups.get(unit));
        let tids = group.map(|group| group.writers.iter().chain(&group.readers));
        let of_tid = |tid: &u32| {
            let rows = finding.accesses.iter().flat_map(|row| &row.threads);
            rows.clone().find(|thread| thread.tid == *tid).cloned()
        };
        tids.into_iter().flatten().filter_map(of_tid).collect()
    };
    model::Proposal {
        type_name: proposal.type_name.clone(),
        size: proposal.size,
        new_size: proposal.new_size,
        count: proposal.count,
        lines: at.lines(),
        new_lines: whole.div_ceil(at.line.max(1)),
        alignment: proposal.alignment,
        members: proposal
            .members
            .iter()
            .map(|placed| NewMember {
                name: placed.name.clone(),
                declaration: placed.declaration.clone(),
                offset: placed.offset,
                size: placed.size,
                starts_line: placed.starts_line,
                threads: threads(placed),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_asked_for_as_the_report_names_it() {
        let parse = |text| FindingId::parse(text).map(|id| id.to_string());
        assert_eq!(parse("3").as_deref(), Some("F3"));
        assert_eq!(parse("f12").as_deref(), Some("F12"));
        assert_eq!(parse("I1").as_deref(), Some("I1"));
        for bad in [
            "",
            "F",
            "0",
            "F0",
            "-1",
            "+1",
            "P1",
            "1 ",
            "é",
            "99999999999999999999",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_finding_that_is_not_there_says_which_are() {
        let no = |findings, insignificant| {
            let id = FindingId {
                insignificant: false,
                number: 9,
            };
            NoLayout::NoFinding {
                id,
                findings,
                insignificant,
            }
            .to_string()
        };
        assert_eq!(no(0, 0), "there is no finding F9: no line was shared");
        assert_eq!(no(1, 0), "there is no finding F9: there is one (F1)");
        assert!(no(3, 2).contains("there are 3 (F1 to F3)") && no(3, 2).contains("(I1 to I2)"));
    }
}
