//! The kernels, as Debian packages them for virtual machines (without most drivers, and all that the tool asks for).

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};

use super::apt::Suite;

/// One kernel of the matrix.
#[derive(Debug)]
pub(super) struct Kernel {
    /// The first two numbers of its release.
    pub version: &'static str,
    /// Debian's suite that has it.
    pub suite: &'static str,
}

const fn kernel(version: &'static str, suite: &'static str) -> Kernel {
    Kernel { version, suite }
}

/// Oldest first.
pub(super) static KERNELS: [Kernel; 7] = [
    kernel("5.10", "bullseye"),
    kernel("6.1", "bookworm"),
    kernel("6.12", "trixie"),
    kernel("6.16", "trixie-backports"),
    kernel("6.18", "trixie-backports"),
    kernel("7.0", "trixie-backports"),
    kernel("7.3", "trixie-backports"),
];

impl Kernel {
    /// The image to boot, below `directory`; fetched if it is not there.
    pub(super) fn image(&self, directory: &Path) -> Result<PathBuf> {
        let kept = directory.join("kernels").join(self.version);
        let image = kept.join("vmlinuz");
        if image.is_file() {
            return Ok(image);
        }
        fs::create_dir_all(&kept)?;
        self.fetch(directory, &kept)
            .and_then(|package| unpack(&package, &image))
            .with_context(|| format!("kernel {} of Debian {}", self.version, self.suite))?;
        Ok(image)
    }

    /// Fetches the newest package of this version; its path.
    fn fetch(&self, directory: &Path, into: &Path) -> Result<PathBuf> {
        let suite = Suite::open(self.suite, directory)?;
        let names = suite.search(&self.pattern())?;
        let newest = newest(&names).context("the suite has no such package now")?;
        println!("fetching {newest} from Debian {}", self.suite);
        suite.download(newest, into)
    }

    /// Names of packages of this version with an image. From 6.19 on the image is in `linux-binary-..`, and
    /// `linux-image-..` only depends on it.
    fn pattern(&self) -> String {
        let what = if numbers(self.version) >= vec![6, 19] {
            "binary"
        } else {
            "image"
        };
        let version = self.version.replace('.', r"\.");
        format!(r"^linux-{what}-{version}\.[0-9.]*([-+][0-9a-z.]+)?-cloud-amd64$")
    }
}

/// The one whose numbers are greatest.
fn newest(names: &[String]) -> Option<&str> {
    let newest = names.iter().max_by_key(|name| numbers(name));
    newest.map(String::as_str)
}

/// All numbers in a text, in their order.
fn numbers(text: &str) -> Vec<u64> {
    let parts = text.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

/// Takes the kernel's image out of a package, wherever it is in it, and removes the package.
fn unpack(package: &Path, image: &Path) -> Result<()> {
    let unpacked = image.with_extension("package");
    fs::create_dir_all(&unpacked)?;
    let mut files = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(package)
        .stdout(Stdio::piped())
        .spawn()
        .context("starting dpkg-deb")?;
    let from = files.stdout.take().context("its output is a pipe")?;
    let taken = Command::new("tar")
        .arg("-xC")
        .arg(&unpacked)
        .args(["--wildcards", "*/vmlinuz*"])
        .stdin(from)
        .status()
        .context("starting tar")?;
    files.wait()?;
    ensure!(taken.success(), "{} has no image", package.display());
    let found = find(&unpacked, "vmlinuz")?.context("an unpacked image")?;
    fs::rename(found, image)?;
    fs::remove_dir_all(&unpacked)?;
    fs::remove_file(package)?;
    Ok(())
}

/// The first file below a directory whose name begins so.
fn find(directory: &Path, beginning: &str) -> Result<Option<PathBuf>> {
    for entry in fs::read_dir(directory)? {
        let (path, name) = {
            let entry = entry?;
            (entry.path(), entry.file_name())
        };
        if path.is_dir() {
            if let Some(found) = find(&path, beginning)? {
                return Ok(Some(found));
            }
        } else if name.to_string_lossy().starts_with(beginning) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_package_is_told_by_numbers_not_by_letters() {
        let names = [
            "linux-image-6.12.90+deb12-cloud-amd64",
            "linux-image-6.12.117+deb13-cloud-amd64",
            "linux-image-6.12.90+deb12.1-cloud-amd64",
        ]
        .map(str::to_owned);
        assert_eq!(newest(&names), Some(&*names[1]));
        assert_eq!(newest(&names[..1]), Some(&*names[0]));
        assert_eq!(newest(&[]), None);
    }

    #[test]
    fn the_image_is_in_another_package_from_6_19_on() {
        let pattern = |version: &'static str| kernel(version, "").pattern();
        assert!(pattern("5.10").starts_with(r"^linux-image-5\.10\."));
        assert!(pattern("6.18").starts_with("^linux-image-"));
        assert!(pattern("6.19").starts_with("^linux-binary-"));
        assert!(pattern("7.0").starts_with("^linux-binary-"));
    }

    #[test]
    fn the_oldest_kernel_is_first_and_the_newest_last() {
        assert!(KERNELS.is_sorted_by_key(|kernel| numbers(kernel.version)));
    }
}
