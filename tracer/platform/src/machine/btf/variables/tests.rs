use super::*;
use crate::machine::btf::sample_types;

/// The section begins at 0xffffffff82000000.
const LISTED: &str = "ffffffff82000000 d counter\nffffffff82000040 D state\nffffffff82000100 d other\n\
    ffffffffc0000000 d counter\t[module]\n";

fn types(listed: &str) -> KernelTypes {
    KernelTypes::new(sample_types(), &Kallsyms::parse(listed)).unwrap()
}

#[test]
fn variables_lie_where_the_symbols_say() {
    let types = types(LISTED);
    let state = types.variable(0xffff_ffff_8200_0040).unwrap();
    assert_eq!((&*state.name, state.size), ("state", 80));
    assert_eq!(types.btf().type_name(state.type_id), "volatile outer_t");
    let counter = types.variable(0xffff_ffff_8200_0000).unwrap();
    assert_eq!(types.btf().type_name(counter.type_id), "long");
    // No start of a variable, one that is not described, and a module's of the same name.
    for address in [
        0xffff_ffff_8200_0041,
        0xffff_ffff_8200_0100,
        0xffff_ffff_c000_0000,
    ] {
        assert_eq!(types.variable(address), None);
    }
}

#[test]
fn symbols_that_do_not_fit_together_give_no_types() {
    // Each says that the section is elsewhere.
    let apart = types("ffffffff82000000 d counter\nffffffff83000040 D state\n");
    assert_eq!(apart.variables.len(), 0);
    // One name of two variables says nothing of where the section is, and the other one does.
    let twice =
        types("ffffffff81000000 d counter\nffffffff82000000 d counter\nffffffff82000040 D state\n");
    assert_eq!(twice.variable(0xffff_ffff_8100_0000), None);
    assert!(twice.variable(0xffff_ffff_8200_0000).is_some());
}

#[test]
fn copies_for_each_cpu_are_described_and_have_no_address() {
    let types =
        types("ffffffff82000000 d counter\nffffffff82000040 D state\nffffffff82000220 D run\n");
    let sections = types.btf().sections();
    let (name, variables) = &sections[1];
    assert_eq!(
        (&**name, &*variables[0].name, variables[0].offset),
        (PER_CPU, "run", 32)
    );
    assert_eq!(types.btf().type_name(variables[0].type_id), "struct inner");
    assert_eq!(types.variable(0xffff_ffff_8200_0220), None);
}

#[test]
fn without_symbols_there_are_no_variables() {
    assert_eq!(types("").variables.len(), 0);
}
