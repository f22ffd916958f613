//! Where the pointers of variables lead, against what the source says.

use crate::toolchain::build_all;

#[test]
fn a_pointer_in_a_variable_has_a_path_and_a_target() {
    let built = build_all(&["g++", "clang++"], "pointers.cpp", &[]);
    for (label, built) in &built {
        let module = built.module();
        let pointer = |name: &str, inside: u64| {
            let object = module.object(module.variable(name).ok()?.address).ok()?;
            let pointer = module.pointer(object.ty?, inside)?;
            let target = module.layout(pointer.target).ok()?.type_name;
            Some((
                format!("{name}{}", pointer.path),
                target,
                pointer.is_reference,
            ))
        };
        for (name, inside, path) in [
            ("plain", 0, "plain"),
            ("row", 16, "row[2]"),
            ("keeper", 8, "keeper.nodes"),
            ("owner", 0, "owner"),
            ("owner_of_many", 0, "owner_of_many"),
            ("grown", 0, "grown._M_impl._M_start"),
        ] {
            let target = "node".to_owned();
            let expected = Some((path.to_owned(), target, false));
            assert_eq!(pointer(name, inside), expected, "{label}: {name}");
        }
        let alias = pointer("alias", 0).map(|(path, _, is_reference)| (path, is_reference));
        assert_eq!(alias, Some(("alias".to_owned(), true)), "{label}");
        for (name, inside) in [
            ("keeper", 0),
            ("keeper", 4),
            ("row", 4),
            ("row", 24),
            ("number", 0),
            ("plain", 8),
        ] {
            assert_eq!(pointer(name, inside), None, "{label}: {name} + {inside}");
        }
    }
}
