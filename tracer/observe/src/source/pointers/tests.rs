use std::{cell::RefCell, fs};

use super::*;
use crate::{
    access::{LineKey, LineSize, Op},
    heap::HeapIndex,
    names::{AccessedBy, Names as _, ObjectName, Resolver},
    sys::running::{Running, compile},
};

fn looked() -> Looked {
    Looked {
        space: SpaceId(0),
        pace: Pace::at_once(0),
        words: FxHashMap::default(),
    }
}

/// What is told of one word that holds one value after the other.
fn told(values: &[u64]) -> Vec<u64> {
    let mut looked = looked();
    let mut news = Vec::new();
    for value in values {
        looked.take(0x40_0000, *value, &|to| to >= 0x1_0000, &mut news);
    }
    assert!(news.iter().all(|(address, _)| *address == 0x40_0000));
    news.into_iter().map(|(_, value)| value).collect()
}

#[test]
fn a_variable_is_told_once_it_points_and_taken_back_once_it_points_elsewhere() {
    assert_eq!(told(&[0, 0, 0x5000_0010, 0x5000_0010]), [0x5000_0010]);
    assert_eq!(
        told(&[0x5000_0010, 0x5000_0020, 0x5000_0010]),
        [0x5000_0010, 0]
    );
    // Freed, and gone.
    assert_eq!(told(&[0x5000_0010, 0]), [0x5000_0010, 0]);
    // Numbers are no pointers.
    assert_eq!(told(&[7, 8, 0x5000_0010]), [0x5000_0010]);
}

#[test]
fn a_process_is_looked_at_ever_less_often_and_another_program_from_the_start() {
    let mut pointers = Pointers::new(Arc::new(ModuleStore::new("/".into(), true)));
    let due = RefCell::new(Vec::new());
    let look = |pointers: &mut Pointers, from_ms: u64, space| {
        due.borrow_mut().clear();
        for ms in from_ms..from_ms + 400 {
            if pointers.is_due(ms * 1_000_000, Pid(1), SpaceId(space)) {
                due.borrow_mut().push(ms - from_ms);
            }
        }
        due.borrow().clone()
    };
    assert_eq!(look(&mut pointers, 0, 0), [20, 40, 80, 160, 320]);
    assert_eq!(look(&mut pointers, 400, 1), [20, 40, 80, 160, 320]);
}

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>

struct item { long a, b; };
struct large { char bytes[48]; };
struct { int n; struct item *table; } holder;
struct item *row, *single, *middle, *wandering;
struct large *odd;
long *numbers;
char *text;
void *anything;

static void *line(const char *name, size_t size) {
    char *at = aligned_alloc(64, size);
    printf("%s %p\n", name, (void *)at);
    return at;
}

static int end(void) {
    printf("end\n");
    fflush(stdout);
    return getchar();
}

int main(void) {
    row = line("row", 10 * sizeof *row);
    single = line("single", sizeof *single);
    holder.table = line("holder.table", 1000000 * sizeof *holder.table);
    // Behind the first there is something else.
    odd = line("odd", 2 * sizeof *odd + 20);
    // Not where an allocation begins.
    middle = (struct item *)line("middle", 1024) + 8;
    numbers = line("numbers", 64 * sizeof *numbers);
    text = line("text", 64);
    anything = line("anything", 64);
    struct item *first = line("wandering", sizeof *first), *then = line("later", sizeof *then);
    wandering = first;
    end();
    wandering = then;
    end();
    return row + 3 == single;
}
"#;

fn program() -> Running {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("program.c"), PROGRAM).expect("room");
    compile(directory.path(), &["-g", "program.c", "-o", "program"]);
    Running::start(directory)
}

/// What is known of a program's variables.
struct Known {
    spaces: AddressSpaces,
    pointers: Pointers,
    modules: Arc<ModuleStore>,
}

impl Known {
    fn of(running: &Running) -> Known {
        let modules = Arc::new(ModuleStore::new("/".into(), true));
        let mut known = Known {
            spaces: running.spaces(),
            pointers: Pointers::new(modules.clone()),
            modules,
        };
        known.look(running);
        known
    }

    fn look(&mut self, running: &Running) {
        let pid = running.pid();
        let space = self.spaces.space(pid);
        self.pointers.is_due(0, pid, space);
        for (start, word) in self.pointers.look(pid, space, &self.spaces) {
            let bytes = word.to_le_bytes().as_slice().into();
            let kind = ContextKind::Memory {
                pid: Some(pid),
                start,
                bytes,
            };
            self.spaces.apply(&Context { time_ns: 0, kind });
        }
    }

    /// The objects on the line of an address, of which eight bytes are accessed by code that tells nothing.
    fn objects(&mut self, running: &Running, address: u64) -> Vec<ObjectName> {
        let (space, place) = self.spaces.place(running.pid(), address & !63);
        let by = AccessedBy {
            space,
            ip: 0,
            kernel: false,
            op: Op::Store,
            offset: (address % 64) as u8,
            size: 8,
            count: 1,
        };
        let heap = HeapIndex::default();
        let names = Resolver::new(&self.spaces, &self.modules).with_heap(&heap);
        names.objects(LineKey(place), LineSize::B64, &[by])
    }

    /// How the object is called that holds the byte so far into an allocation.
    fn called(&mut self, running: &Running, allocation: &str, inside: u64) -> Option<String> {
        let address = running.says[allocation] + inside;
        let objects = self.objects(running, address);
        let holds = |object: &&ObjectName| {
            object.start <= Some(address) && object.end().is_some_and(|end| address < end)
        };
        objects.iter().find(holds)?.called.clone()
    }
}

#[test]
fn memory_that_only_unknown_code_accesses_is_called_by_the_variable_that_leads_to_it() {
    let running = program();
    let mut known = Known::of(&running);
    let mut called = |allocation, inside| known.called(&running, allocation, inside);
    for (allocation, inside, name) in [
        ("row", 0, "row[0]"),
        ("row", 56, "row[3]"),
        ("row", 9 * 16 + 8, "row[9]"),
        ("holder.table", 999_999 * 16, "holder.table[999999]"),
        ("numbers", 63 * 8, "numbers[63]"),
        ("odd", 40, "*odd"),
        ("middle", 128, "*middle"),
    ] {
        let got = called(allocation, inside);
        assert_eq!(got.as_deref(), Some(name), "{allocation} + {inside}");
    }
    // What a type tells nothing of, and what lies behind the one that is known.
    for (allocation, inside) in [
        ("odd", 48),
        ("middle", 0),
        ("middle", 144),
        ("text", 0),
        ("anything", 0),
    ] {
        assert_eq!(called(allocation, inside), None, "{allocation} + {inside}");
    }
    let objects = known.objects(&running, running.says["row"] + 56);
    let types: Vec<_> = objects
        .iter()
        .map(|object| object.type_name.as_deref())
        .collect();
    assert_eq!(types, [Some("struct item")]);
}

#[test]
fn a_variable_that_leads_elsewhere_gives_no_name_to_where_it_led() {
    let mut running = program();
    let mut known = Known::of(&running);
    let wandering = known.called(&running, "wandering", 0);
    assert_eq!(wandering.as_deref(), Some("*wandering"));
    running.go_on();
    known.look(&running);
    assert_eq!(known.called(&running, "wandering", 0), None);
    assert_eq!(known.called(&running, "later", 0), None);
    // The twin stays where it was.
    let single = known.called(&running, "row", 16);
    assert_eq!(single.as_deref(), Some("row[1]"));
}
