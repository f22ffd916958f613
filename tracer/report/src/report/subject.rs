//! Whose bytes a line holds: the objects on it, the one that costs most, and a label for every range.

use std::collections::BTreeMap;

use super::{
    RunFacts, allocation,
    model::{Allocation, Object},
    printable::printable,
    shorten,
};
use crate::{
    access::{Cost, LineKey, LineSize, Place, Tid},
    analysis::{Site, SiteCounts},
    names::{AccessedBy, FieldName, Names, ObjectKind, ObjectName, type_words},
};

/// Columns of the longest name in a sentence.
pub(super) const NAME_COLUMNS: usize = 60;

/// The objects of one line and the names of the ranges that its sites touch.
pub(super) struct OnLine {
    key: LineKey,
    /// In address order.
    pub(super) objects: Vec<ObjectName>,
    /// The object with the most cost, of equal ones the most touched.
    main: Option<usize>,
    fields: BTreeMap<(u8, u16), Option<FieldName>>,
    /// Names of the threads whose variables are on the line.
    threads: BTreeMap<Tid, Option<String>>,
    /// Names are for any line of its kind: without indices.
    generic: bool,
}

impl OnLine {
    pub(super) fn new(
        names: &dyn Names,
        key: LineKey,
        line_size: LineSize,
        sites: &[SiteCounts],
    ) -> OnLine {
        let by: Vec<AccessedBy> = sites.iter().filter_map(accessed_by).collect();
        let objects = names.objects(key, line_size, &by);
        let mut fields: BTreeMap<(u8, u16), Option<FieldName>> = BTreeMap::new();
        let mut weights = vec![(Cost(0), 0u64); objects.len()];
        for site in sites {
            let Some(range) = range(&site.site) else {
                continue;
            };
            let field = fields
                .entry(range)
                .or_insert_with(|| names.field(key, line_size, range.0, range.1))
                .as_ref();
            if let Some(weight) = field.and_then(|field| weights.get_mut(field.object)) {
                weight.0 += site.cost;
                weight.1 = weight.1.saturating_add(site.accesses());
            }
        }
        let heaviest = (0..objects.len()).max_by_key(|&n| (weights[n], std::cmp::Reverse(n)));
        // Objects that nobody touched do not answer for the line, unless there is only one.
        let main = heaviest.filter(|&n| weights[n] != (Cost(0), 0) || objects.len() == 1);
        let owners = objects.iter().filter_map(|object| object.thread);
        let threads = owners.map(|tid| (tid, names.thread(tid).comm)).collect();
        OnLine {
            key,
            objects,
            main,
            fields,
            threads,
            generic: false,
        }
    }

    /// The same, with names that hold for all lines of the same thing: `slot[]` for `slot[12]`.
    pub(super) fn generic(self) -> OnLine {
        OnLine {
            generic: true,
            ..self
        }
    }

    /// The object that the site's bytes are in, and what the report calls them: the part of the main
    /// object, or another object's name with its part. `None` where there is nothing to add to the
    /// main object's name, or the bytes are not known.
    pub(super) fn label(&self, site: &Site) -> (Option<usize>, Option<String>) {
        let (object, label) = self.exact_label(site);
        let any = |label: String| {
            if self.generic {
                without_indices(&label)
            } else {
                label
            }
        };
        (object, label.map(any))
    }

    fn exact_label(&self, site: &Site) -> (Option<usize>, Option<String>) {
        let Some(field) = self.field(site) else {
            return (None, None);
        };
        let Some(object) = self.objects.get(field.object) else {
            return (None, None);
        };
        if Some(field.object) == self.main && (field.path.is_some() || self.objects.len() == 1) {
            return (Some(field.object), field.path.clone());
        }
        let path = field.path.as_deref().unwrap_or("");
        // `*this`: an expression of the code, not a part of the object.
        if !path.is_empty() && !path.starts_with(['.', '[']) {
            return (Some(field.object), field.path.clone());
        }
        let of_thread = object.thread.map_or_else(String::new, |tid| {
            format!(" of thread {}", self.thread(tid))
        });
        let shown = match object.allocation {
            Some(_) => object
                .called
                .as_ref()
                .or(object.type_name.as_ref())
                .or(object.name.as_ref()),
            None => object.name.as_ref().or(object.called.as_ref()),
        };
        let label = shown.map(|name| format!("{name}{path}{of_thread}"));
        (Some(field.object), label.or_else(|| field.path.clone()))
    }

    fn field(&self, site: &Site) -> Option<&FieldName> {
        self.fields.get(&range(site)?)?.as_ref()
    }

    /// `worker 4242`.
    fn thread(&self, tid: Tid) -> String {
        match self.threads.get(&tid) {
            Some(Some(comm)) => format!("{comm} {}", tid.0),
            _ => tid.0.to_string(),
        }
    }

    /// Index of the main object.
    pub(super) fn main(&self) -> Option<usize> {
        self.main
    }

    /// The main object as the report shows it.
    pub(super) fn object(&self, sites: &[SiteCounts], run: &RunFacts) -> Object {
        let Some(main) = self.main.and_then(|n| self.objects.get(n)) else {
            let kind = match self.key.0 {
                Place::Kernel { .. } => ObjectKind::Kernel,
                Place::Shared { .. } => ObjectKind::Mapping,
                Place::Private { .. } | Place::Physical { .. } => ObjectKind::Unknown,
            };
            return Object {
                kind,
                ..Object::default()
            };
        };
        let line = self.key.0.position();
        let in_main = |site: &&SiteCounts| {
            let field = self.field(&site.site);
            field.is_some_and(|field| Some(field.object) == self.main)
        };
        let first = sites
            .iter()
            .filter(in_main)
            .map(|site| site.site.offset)
            .min();
        let offset = first
            .zip(main.start)
            .and_then(|(first, start)| line.checked_add(u64::from(first))?.checked_sub(start));
        Object {
            kind: main.kind,
            name: main.name.clone(),
            called: main.called.clone(),
            thread: main.thread.map(|tid| self.thread(tid)),
            type_name: main.type_name.clone(),
            file: main.file.clone(),
            line: main.line,
            offset_in_object: offset,
            size: main.size,
            allocation: self.allocated(main, run),
        }
    }

    /// Where an object was allocated, where that was seen.
    fn allocated(&self, object: &ObjectName, run: &RunFacts) -> Option<Allocation> {
        let (name, start) = object.allocation.as_ref().zip(object.start)?;
        Some(allocation::allocation(
            name,
            self.key.0.position(),
            start,
            run,
        ))
    }

    /// Where each object was allocated, in address order.
    pub(super) fn allocations(&self, run: &RunFacts) -> Vec<Allocation> {
        let objects = self.objects.iter();
        objects
            .filter_map(|object| self.allocated(object, run))
            .collect()
    }

    /// The objects with names that are safe, and short enough, to put into sentences.
    pub(super) fn printable_objects(&self) -> Vec<ObjectName> {
        self.objects.iter().cloned().map(printable_object).collect()
    }
}

/// `slot[].next` of `slot[12].next`.
pub(super) fn without_indices(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(open) = rest.find('[') {
        let (before, from) = rest.split_at(open + 1);
        out.push_str(before);
        let digits = from.bytes().take_while(u8::is_ascii_digit).count();
        rest = if from[digits..].starts_with(']') {
            &from[digits..]
        } else {
            from
        };
    }
    out.push_str(rest);
    out
}

/// The bytes that have a name; none where they are not known.
fn range(site: &Site) -> Option<(u8, u16)> {
    (site.within == 0).then(|| (site.offset, u16::from(site.size)))
}

/// A site as the names need it. One whose bytes are not known would tell an object of another start, and contradict
/// those that are right.
pub(crate) fn accessed_by(site: &SiteCounts) -> Option<AccessedBy> {
    let at = &site.site;
    (at.within == 0).then(|| AccessedBy {
        space: at.space,
        ip: at.ip,
        kernel: at.kernel,
        op: at.op,
        offset: at.offset,
        size: at.size,
        count: site.accesses().saturating_add(site.trapped),
    })
}

fn printable_object(mut object: ObjectName) -> ObjectName {
    let clean = |text: &mut Option<String>| {
        if let Some(text) = text {
            *text = shorten::symbol(&printable(text, false), NAME_COLUMNS);
        }
    };
    clean(&mut object.name);
    clean(&mut object.called);
    let variable = object.name.as_ref().filter(|_| object.allocation.is_none());
    let variable = variable.or(object.called.as_ref()).cloned();
    let clean_type = |text: &mut Option<String>| {
        if let Some(text) = text {
            *text = type_words(text, variable.as_deref());
        }
        clean(text);
    };
    clean_type(&mut object.type_name);
    clean(&mut object.file);
    if let Some(layout) = &mut object.layout {
        if let Some(element) = &mut layout.element {
            clean_type(&mut element.type_name);
        }
        for member in &mut layout.members {
            member.name = shorten::middle(&printable(&member.name, false), NAME_COLUMNS);
            clean(&mut member.type_name);
        }
    }
    object
}
