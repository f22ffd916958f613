//! The digests of source files in line tables.

use std::process::Command;

use crate::toolchain::build;

#[test]
fn a_source_file_has_the_digest_that_its_text_has_where_the_compiler_wrote_one() {
    for (compiler, version, has) in [
        ("clang", "-gdwarf-5", true),
        ("clang", "-gdwarf-4", false),
        ("cc", "-gdwarf-5", false),
    ] {
        let Some(built) = build(compiler, "data.c", &[version]) else {
            continue;
        };
        let module = built.module();
        let (start, _) = built.symbol("main");
        let path = module.frames(start).frames[0].file.clone().unwrap();
        let files = module.source_files();
        let named: Vec<_> = files.iter().filter(|file| file.path == path).collect();
        assert_eq!(named.len(), 1, "{compiler} {version}: {files:?}");
        let digits = named[0]
            .md5
            .map(|md5| format!("{:032x}", u128::from_be_bytes(md5)));
        if !has {
            assert_eq!(digits, None, "{compiler} {version}");
            continue;
        }
        let output = Command::new("md5sum").arg(&*path).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            digits.as_deref(),
            text.split(' ').next(),
            "{compiler} {version}"
        );
    }
}
