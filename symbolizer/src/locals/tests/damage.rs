//! Damaged debug info: no answer may be right, but none may panic, hang or eat memory.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Built, C, build};
use crate::{Module, NoDebugFiles};

/// Far more than the questions below need; a loop without end needs more.
const LONGEST: Duration = Duration::from_secs(20);

/// Asks for everything at some addresses; returns how many homes and rules there were.
fn ask(bytes: Vec<u8>, addresses: &[u64]) -> usize {
    let start = Instant::now();
    let Ok(module) = Module::parse(Arc::new(bytes), Box::new(NoDebugFiles)) else {
        return 0;
    };
    let mut answers = 0;
    for &svma in addresses {
        answers += module.locals(svma).map_or(0, |locals| locals.homes.len());
        answers += usize::from(module.cfa(svma).is_some());
        answers += usize::from(module.return_type(svma).is_some());
    }
    assert!(start.elapsed() < LONGEST, "took {:?}", start.elapsed());
    answers
}

fn addresses(built: &Built) -> Vec<u64> {
    let names = [
        "walk", "frame", "entry", "pieces", "find", "nothing", "main",
    ];
    let starts = names.map(|name| built.symbol(name));
    starts
        .iter()
        .flat_map(|&start| [start, start + 9])
        .collect()
}

#[test]
fn damage_in_any_section_changes_answers_and_nothing_else() {
    use object::{Object, ObjectSection};
    for flags in [["-g", "-O2", "-gdwarf-4"], ["-g", "-O2", "-gdwarf-5"]] {
        let built = build("cc", &C, &flags).unwrap();
        let addresses = addresses(&built);
        let bytes = std::fs::read(&built.path).unwrap();
        let sound = ask(bytes.clone(), &addresses);
        assert!(sound > 50, "{sound}");
        let file = object::File::parse(&*bytes).unwrap();
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        let mut below = |limit: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % limit
        };
        let mut differing = 0;
        for section in file.sections() {
            let name = section.name().unwrap();
            let Some((start, size)) = section.file_range() else {
                continue;
            };
            if size == 0 || !(name.starts_with(".debug") || name.starts_with(".eh_frame")) {
                continue;
            }
            for _ in 0..60 {
                let mut damaged = bytes.clone();
                for _ in 0..=below(3) {
                    let values = [0, 1, 0x7f, 0x80, 0xff, below(256) as u8];
                    damaged[(start + below(size)) as usize] = values[below(6) as usize];
                }
                differing += usize::from(ask(damaged, &addresses) != sound);
            }
            // Cut short: the rest of the section is zero.
            let mut damaged = bytes.clone();
            let from = (start + below(size)) as usize;
            damaged[from..(start + size) as usize].fill(0);
            ask(damaged, &addresses);
        }
        assert!(differing > 20, "the damage hit nothing: {differing}");
    }
}

#[test]
fn what_comes_before_the_damage_is_kept() {
    use object::{Object, ObjectSection};
    let built = build("cc", &C, &["-g", "-O2", "-gdwarf-5"]).unwrap();
    let svma = built.symbol("walk");
    let locals = built.module.locals(svma).unwrap();
    // The entry of a variable in the middle gets an abbreviation that there is not.
    let middle = &locals.variables[locals.variables.len() / 2];
    let mut bytes = std::fs::read(&built.path).unwrap();
    let (start, _) = {
        let file = object::File::parse(&*bytes).unwrap();
        file.section_by_name(".debug_info")
            .unwrap()
            .file_range()
            .unwrap()
    };
    bytes[start as usize + middle.die.offset as usize] = 0x7f;
    let module = Module::parse(Arc::new(bytes), Box::new(NoDebugFiles)).unwrap();
    // `walk` comes after other functions, whose own entries are found before the damage.
    let damaged = module.locals(svma).unwrap();
    let offsets = |list: &[super::super::Local]| -> Vec<u32> {
        list.iter().map(|local| local.die.offset).collect()
    };
    let before = locals.variables.len() / 2;
    assert!(before > 0);
    assert_eq!(
        offsets(&damaged.variables),
        offsets(&locals.variables[..before])
    );
}
