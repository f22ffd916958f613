//! Runs the tool on Debian's kernels from 5.10 on, in machines that QEMU emulates in software, and holds what it answers
//! there against what is known.
//!
//! `kernels` says which and fetches them, `machines` what they run on, `guest` packs the tool and boots, `records` reads
//! what came back, `answers` judges it, a column of the table each. What is known of guests is in docs/kernels.md.

mod answers;
mod apt;
mod guest;
mod kernels;
mod machines;
mod records;

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result, bail, ensure};
use cohtrace_tests::figures::Table;

use self::{
    answers::{COLUMNS, Cell},
    guest::Luggage,
    kernels::{KERNELS, Kernel},
    machines::{MACHINES, Machine},
};
use crate::bench::{release_build, target_directory};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Kernel by version, as 6.12; may be repeated; all unless given.
    #[arg(long = "kernel", value_name = "VERSION")]
    kernels: Vec<String>,
    /// Machine by name, as 2-cpus; may be repeated; all unless given.
    #[arg(long = "machine", value_name = "NAME")]
    machines: Vec<String>,
    /// Name kernels, machines and what is judged, and stop.
    #[arg(long)]
    list: bool,
}

/// One boot: a row of the table.
#[derive(Clone, Copy)]
struct Guest {
    kernel: &'static Kernel,
    machine: &'static Machine,
}

impl Guest {
    fn name(self) -> String {
        format!("{}, {}", self.kernel.version, self.machine.name)
    }
}

/// The task.
pub(crate) fn run(options: &Options) -> Result<()> {
    let kernels = named(&KERNELS, &options.kernels, |kernel| kernel.version)?;
    let machines = named(&MACHINES, &options.machines, |machine| machine.name)?;
    if options.list {
        list();
        return Ok(());
    }
    apt::install_what_is_missing()?;
    let guests = |kernel| {
        let on = |&machine| Guest { kernel, machine };
        machines.iter().map(on).collect::<Vec<_>>()
    };
    let guests: Vec<Guest> = kernels.into_iter().flat_map(guests).collect();
    let images = images(&guests)?;
    judge(&guests, &images)
}

/// The oldest kernel and the newest, with two CPUs; why they could not be had, where that is so.
pub(crate) fn check() -> Result<Option<String>> {
    let machine = &machines::TWO_CPUS;
    let guests = [0, KERNELS.len() - 1].map(|at| Guest {
        kernel: &KERNELS[at],
        machine,
    });
    let images = match apt::missing().and_then(|()| images(&guests)) {
        Ok(images) => images,
        Err(why) => return Ok(Some(format!("{why:#}"))),
    };
    judge(&guests, &images).map(|()| None)
}

/// Those of these names, in their own order; all where none is named.
fn named<T>(all: &'static [T], names: &[String], name: fn(&T) -> &str) -> Result<Vec<&'static T>> {
    if let Some(unknown) = names
        .iter()
        .find(|&wanted| !all.iter().any(|one| name(one) == wanted))
    {
        bail!("there is no {unknown}; `cargo xtask vm --list` names what there is");
    }
    let wanted = |one: &&T| names.is_empty() || names.iter().any(|wanted| wanted == name(one));
    Ok(all.iter().filter(wanted).collect())
}

fn list() {
    println!("kernels (--kernel)");
    for kernel in &KERNELS {
        println!("  {:<8} Debian {}", kernel.version, kernel.suite);
    }
    println!("machines (--machine)");
    for machine in &MACHINES {
        println!("  {:<8} {}", machine.name, machine.about);
    }
    println!("judged in each");
    for column in &COLUMNS {
        println!("  {:<8} {}", column.name, column.about);
    }
}

/// Where everything is kept: packages, kernels, logs.
fn directory() -> Result<PathBuf> {
    let directory = target_directory()?.join("vm");
    std::fs::create_dir_all(&directory).context("a directory for kernels")?;
    Ok(directory)
}

/// The image to boot for each guest, fetched where it is not there.
fn images(guests: &[Guest]) -> Result<Vec<PathBuf>> {
    let directory = directory()?;
    let fetched = guests.iter().map(|guest| guest.kernel.image(&directory));
    fetched.collect()
}

/// Boots all guests and prints the table; an error names the cells that are not as they must be.
fn judge(guests: &[Guest], images: &[PathBuf]) -> Result<()> {
    let directory = directory()?;
    let luggage = Luggage::pack(&release_build()?, &directory)?;
    println!("{}", guest::emulator()?);
    let mut heading = vec!["kernel, machine"];
    heading.extend(COLUMNS.iter().map(|column| column.name));
    heading.push("seconds");
    let mut table = Table::new(&heading);
    let (mut wrong, mut notes) = (Vec::new(), Vec::new());
    for (guest, image) in guests.iter().zip(images) {
        let logs = directory
            .join("logs")
            .join(format!("{}-{}", guest.kernel.version, guest.machine.name));
        let start = Instant::now();
        let records = luggage.boot(image, guest.machine, &logs)?;
        let took = start.elapsed().as_secs_f64();
        let cells = COLUMNS.map(|column| column.judge(&records, *guest));
        let words = cells.each_ref().map(Cell::word);
        println!("{:<14} {} ({took:.0} s)", guest.name(), words.join(" "));
        for (column, cell) in COLUMNS.iter().zip(&cells) {
            match cell {
                Cell::Right => {}
                Cell::Known(reason) => note(&mut notes, reason, column.name, *guest),
                Cell::Wrong(why) => wrong.push(format!(
                    "{}, {}: {why}\n  logs: {}",
                    guest.name(),
                    column.name,
                    logs.display()
                )),
            }
        }
        table.row(std::array::from_fn::<_, { COLUMNS.len() + 2 }, _>(
            |column| match column.checked_sub(1).map(|column| words.get(column)) {
                None => guest.name(),
                Some(Some(&word)) => word.to_owned(),
                Some(None) => format!("{took:.0}"),
            },
        ));
    }
    print!("\n{table}");
    for (reason, columns, machines) in notes {
        println!("known: {} on {machines}: {reason}", columns.join(", "));
    }
    if !wrong.is_empty() {
        bail!("{} cells are wrong:\n{}", wrong.len(), wrong.join("\n"));
    }
    Ok(())
}

/// Adds a column to the reason why it is not judged as elsewhere.
fn note(
    notes: &mut Vec<(&'static str, Vec<&'static str>, &'static str)>,
    reason: &'static str,
    column: &'static str,
    guest: Guest,
) {
    match notes.iter_mut().find(|(known, ..)| *known == reason) {
        Some((_, columns, _)) if columns.contains(&column) => {}
        Some((_, columns, _)) => columns.push(column),
        None => notes.push((reason, vec![column], guest.machine.name)),
    }
}

/// What a command printed; an error with all that it said unless it succeeds.
fn ended(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {}", command.get_program().display()))?;
    ensure!(
        output.status.success(),
        "{}: {}\n{}",
        command.get_program().display(),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(names: &[&str]) -> Result<Vec<&'static str>> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let kernels = named(&KERNELS, &names, |kernel| kernel.version)?;
        Ok(kernels.iter().map(|kernel| kernel.version).collect())
    }

    #[test]
    fn kernels_are_chosen_by_version_and_come_in_their_own_order() {
        assert_eq!(chosen(&[]).unwrap().len(), KERNELS.len());
        assert_eq!(chosen(&["6.12", "5.10"]).unwrap(), ["5.10", "6.12"]);
    }

    #[test]
    fn a_kernel_that_is_not_in_the_matrix_is_refused_by_name() {
        let error = chosen(&["5.10", "4.19"]).unwrap_err().to_string();
        assert!(error.starts_with("there is no 4.19"), "{error}");
    }

    #[test]
    fn a_reason_is_printed_once_with_all_its_columns() {
        let guest = Guest {
            kernel: &KERNELS[0],
            machine: &MACHINES[0],
        };
        let mut notes = Vec::new();
        for column in ["attach", "heap", "attach"] {
            note(&mut notes, "one CPU", column, guest);
        }
        assert_eq!(
            notes,
            [("one CPU", vec!["attach", "heap"], MACHINES[0].name)]
        );
    }
}
