//! The kernels of `tests/workloads/kernels`: small programs with the sharing patterns of the SPLASH-2 programs on which
//! the SWIFT paper measured its load hints, how they are built and run, and what the paper measured of their counterparts.
//!
//! Programs are built into the target directory and again only when the source or the command changes, or what else the
//! build depends on: hints, for instance, which a compiler reads through `-B`.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, bail, ensure};

use crate::{
    tool,
    workload::{self, target_directory, turn},
};

/// A kernel and its counterpart in the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kernel {
    /// File name without extension.
    pub name: &'static str,
    /// The program of SPLASH-2, as the paper writes it.
    pub counterpart: &'static str,
    /// Percent by which hints found on its train input lowered its coherence transactions on the ref input: Collard, Jouppi
    /// and Yehia, "System-Wide Performance Monitors and their Application to the Optimization of Coherent Memory Accesses",
    /// `PPoPP` 2005, table 4, the last column (LDBIAS and FPBIAS together).
    pub published_reduction: f64,
}

/// Most percent by which the paper's hints raised the transactions of loads: its table 5, RAYTRACE.
pub const PUBLISHED_LOAD_RISE: f64 = 1.2;

/// All kernels, in the order of the paper's table.
pub static KERNELS: [Kernel; 8] = [
    kernel("fft_transpose", "FFT", 7.0),
    kernel("blocked_lu", "LU", 4.0),
    kernel("sparse_cholesky", "CHOLESKY", 6.4),
    kernel("radix_sort", "RADIX", 3.0),
    kernel("n_body", "BARNES", 4.2),
    kernel("ray_caster", "RAYTRACE", 9.2),
    kernel("water_boxes", "WATER-SPATIAL", 2.5),
    kernel("volume_caster", "VOLREND", 9.8),
];

const fn kernel(name: &'static str, counterpart: &'static str, published_reduction: f64) -> Kernel {
    Kernel {
        name,
        counterpart,
        published_reduction,
    }
}

/// The work that a kernel is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Small: hints are found on it.
    Train,
    /// Larger: hints are measured on it.
    Ref,
}

impl Input {
    /// Both.
    pub const ALL: [Input; 2] = [Input::Train, Input::Ref];

    /// The kernel's argument.
    pub fn name(self) -> &'static str {
        match self {
            Input::Train => "train",
            Input::Ref => "ref",
        }
    }
}

/// How a kernel is built, beside what all builds have in common.
#[derive(Clone, Copy, Debug)]
pub struct Build<'a> {
    /// Which build it is, for the path of the program: `plain`, `hinted`, ..
    pub name: &'a str,
    /// The compiler's command.
    pub compiler: &'a str,
    /// Its additional arguments: `-B` and a directory, for instance.
    pub arguments: &'a [&'a OsStr],
    /// What else the program depends on, as text: the hints that the assembler of `-B` reads.
    pub depends_on: &'a str,
}

impl Build<'static> {
    /// As users build theirs: `cc`, optimised, with debug information.
    pub const PLAIN: Build<'static> = Build {
        name: "plain",
        compiler: "cc",
        arguments: &[],
        depends_on: "",
    };
}

/// A run of a kernel to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Whether it found its result right.
    pub right: bool,
    /// Of the result, 16 hexadecimal digits.
    pub checksum: String,
    /// By the clock.
    pub took: Duration,
}

/// Where the sources are.
pub fn directory() -> PathBuf {
    workload::directory().join("kernels")
}

/// The kernel of that name.
pub fn named(name: &str) -> anyhow::Result<Kernel> {
    let kernel = KERNELS.iter().find(|kernel| kernel.name == name);
    kernel
        .copied()
        .with_context(|| format!("no kernel is called {name}"))
}

impl Kernel {
    /// Path of the source.
    pub fn source(&self) -> PathBuf {
        directory().join(self.name).with_extension("c")
    }

    /// Builds it, unless it is there already; returns the program.
    pub fn build(&self, build: &Build) -> anyhow::Result<PathBuf> {
        let directory = target_directory()?.join("kernels").join(build.name);
        fs::create_dir_all(&directory)?;
        let _turn = turn(&directory.join("build.lock"))?;
        let path = directory.join(self.name);
        let mut command = Command::new(build.compiler);
        command
            .args(["-std=gnu11", "-O2", "-g", "-pthread"])
            .args(["-Wall", "-Wextra", "-Werror"])
            .args(build.arguments)
            .arg(self.source())
            .arg("-o")
            .arg(&path)
            .arg("-lm");
        let header = fs::read_to_string(directory_file("kernel.h"))?;
        let text = fs::read_to_string(self.source())
            .with_context(|| format!("reading {}", self.source().display()))?;
        let recipe = format!("{command:?}\n{}\n{header}\n{text}", build.depends_on);
        let stamp = path.with_extension("recipe");
        if !path.exists() || fs::read_to_string(&stamp).ok().as_ref() != Some(&recipe) {
            let output = command
                .output()
                .with_context(|| format!("starting {}", build.compiler))?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                bail!("{command:?}: {}\n{said}", output.status);
            }
            fs::write(&stamp, recipe)?;
        }
        Ok(path)
    }

    /// Runs a build of it to its end.
    pub fn run(&self, program: &Path, input: Input) -> anyhow::Result<Answered> {
        let ended = tool::run(
            Command::new(program).arg(input.name()),
            Duration::from_mins(1),
        );
        self.answered(ended.code(), &ended.stdout, ended.took)
    }

    /// What a run that printed this and ended so has to say; an emulated one does so as well.
    pub fn answered(&self, code: i32, said: &str, took: Duration) -> anyhow::Result<Answered> {
        let words: Vec<&str> = said.split_whitespace().collect();
        let [name, verdict, checksum] = words[..] else {
            bail!("{} said {said:?} and ended with {code}", self.name);
        };
        let right = match (verdict, code) {
            ("right", 0) => true,
            ("WRONG", 1) => false,
            _ => bail!("{} said {said:?} and ended with {code}", self.name),
        };
        ensure!(
            name.strip_suffix(':') == Some(self.name)
                && checksum.len() == 16
                && checksum.bytes().all(|digit| digit.is_ascii_hexdigit()),
            "{} said {said:?}",
            self.name
        );
        Ok(Answered {
            right,
            checksum: checksum.to_owned(),
            took,
        })
    }
}

/// By how many percent `after` is less than `before`; negative where it is more, 0 where there was nothing.
pub fn reduction(before: u64, after: u64) -> f64 {
    if before == 0 {
        return 0.0;
    }
    (before as f64 - after as f64) / before as f64 * 100.0
}

fn directory_file(name: &str) -> PathBuf {
    directory().join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_believed_only_with_the_exit_code_that_goes_with_it() {
        let kernel = named("radix_sort").unwrap();
        let answered = |code, said: &str| kernel.answered(code, said, Duration::ZERO);
        let right = answered(0, "radix_sort: right 0123456789abcdef\n").unwrap();
        assert!(right.right && right.checksum == "0123456789abcdef");
        assert!(
            !answered(1, "radix_sort: WRONG 0123456789abcdef\n")
                .unwrap()
                .right
        );
        for (code, said) in [
            (1, "radix_sort: right 0123456789abcdef"),
            (0, "radix_sort: WRONG 0123456789abcdef"),
            (0, "blocked_lu: right 0123456789abcdef"),
            (0, "radix_sort: right 0123"),
            (0, ""),
        ] {
            assert!(answered(code, said).is_err(), "{code} {said}");
        }
        assert!(named("radix").is_err());
    }

    #[test]
    fn a_reduction_is_of_what_there_was_before() {
        assert!((reduction(1000, 930) - 7.0).abs() < 1e-9);
        assert!((reduction(1000, 1012) + 1.2).abs() < 1e-9);
        assert!(reduction(0, 5).abs() < 1e-9);
    }
}
