//! The rooms of the tool: the crates below `tracer/`, and which of them each uses.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

/// By name, with those that it uses outside its tests. The tool itself is `cli`.
pub type Rooms = BTreeMap<String, BTreeSet<String>>;

/// What the crates' own names begin with.
const PREFIX: &str = "cohtrace-";

/// As the manifests have it.
pub fn rooms(root: &Path) -> io::Result<Rooms> {
    let tracer = root.join("tracer");
    let mut rooms = Rooms::from([("cli".to_owned(), uses(&tracer.join("Cargo.toml"))?)]);
    for entry in fs::read_dir(&tracer)? {
        let directory = entry?;
        let manifest = directory.path().join("Cargo.toml");
        let name = directory.file_name().to_string_lossy().into_owned();
        // What runs inside QEMU is no room: nobody links it.
        if manifest.is_file() && name != "qemu-plugin" {
            rooms.insert(name, uses(&manifest)?);
        }
    }
    Ok(rooms)
}

fn uses(manifest: &Path) -> io::Result<BTreeSet<String>> {
    let text = fs::read_to_string(manifest)?;
    let lines = text
        .lines()
        .skip_while(|line| *line != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| line.strip_prefix(PREFIX)?.split_once(" = "));
    Ok(names.map(|(name, _)| name.to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_uses_what_its_manifest_says_and_not_what_its_tests_use() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "tracer/Cargo.toml",
            "[dependencies]\ncohtrace-judge = { workspace = true }\nlibc = \"0.2\"\n",
        );
        write(
            "tracer/judge/Cargo.toml",
            "[package]\nname = \"cohtrace-judge\"\n[dependencies]\n[dev-dependencies]\ncohtrace-report = { workspace = true }\n",
        );
        write("tracer/src/lib.rs", "");
        let rooms = rooms(root.path()).unwrap();
        assert_eq!(rooms.keys().collect::<Vec<_>>(), ["cli", "judge"]);
        assert_eq!(rooms["cli"], BTreeSet::from(["judge".to_owned()]));
        assert_eq!(rooms["judge"], BTreeSet::new());
    }
}
