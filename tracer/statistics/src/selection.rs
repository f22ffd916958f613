//! Which statistics: by name, or by the group before the dot.

use std::fmt::Write as _;

use crate::{
    Refusal,
    statistic::{ALL, Statistic},
};

/// The statistics of some names, separated by commas and in that order; `requests.*` is all that begin so. No names at
/// all (`None`) are all statistics.
///
/// # Errors
/// A name that there is not, a statistic that is named twice, and an empty list.
pub fn select(names: Option<&str>) -> Result<Vec<&'static dyn Statistic>, Refusal> {
    let Some(names) = names else {
        return Ok(ALL.to_vec());
    };
    let mut selected: Vec<&'static dyn Statistic> = Vec::new();
    for name in names.split(',').map(str::trim).filter(|n| !n.is_empty()) {
        let group = name.strip_suffix('*').filter(|group| group.ends_with('.'));
        let is_one = |statistic: &&&'static dyn Statistic| match group {
            Some(group) => statistic.name().starts_with(group),
            None => statistic.name() == name,
        };
        let before = selected.len();
        for statistic in ALL.iter().filter(is_one) {
            let statistic = *statistic;
            if selected.iter().any(|one| one.name() == statistic.name()) {
                return Err(Refusal::Twice {
                    name: statistic.name(),
                });
            }
            selected.push(statistic);
        }
        if selected.len() == before {
            let there: Vec<&str> = ALL.iter().map(|statistic| statistic.name()).collect();
            return Err(Refusal::Unknown {
                name: name.to_owned(),
                there: there.join(", "),
            });
        }
    }
    if selected.is_empty() {
        return Err(Refusal::NoneNamed);
    }
    Ok(selected)
}

/// All statistics, two lines each: name, unit, how they add up; what they are.
pub fn list() -> String {
    let mut text = String::new();
    for statistic in ALL {
        let (name, unit) = (statistic.name(), statistic.unit().name());
        let sums = statistic.sums().name();
        let _ = writeln!(text, "{name:<26} {unit:<10} {sums}");
        let _ = writeln!(text, "    {}", statistic.about());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(asked: &str) -> Result<Vec<&'static str>, Refusal> {
        let found = select(Some(asked))?;
        Ok(found.iter().map(|statistic| statistic.name()).collect())
    }

    #[test]
    fn names_come_in_the_order_in_which_they_are_given() {
        let asked = names("time.spinning, samples");
        assert_eq!(asked.unwrap(), ["time.spinning", "samples"]);
        assert_eq!(select(None).unwrap().len(), ALL.len());
        assert_eq!(
            names("threads.*").unwrap(),
            ["threads.seen", "threads.started", "threads.ended"]
        );
    }

    #[test]
    fn a_name_that_there_is_not_is_answered_with_those_that_there_are() {
        let said = names("samples,cycles").unwrap_err().to_string();
        assert!(said.contains("\"cycles\"") && said.contains("time.spinning, "));
        assert!(matches!(names("nothing.*"), Err(Refusal::Unknown { .. })));
    }

    #[test]
    fn nothing_is_counted_twice_and_not_nothing() {
        let twice = Err(Refusal::Twice { name: "samples" });
        assert_eq!(names("samples,samples"), twice);
        assert!(matches!(
            names("time.*,time.spinning"),
            Err(Refusal::Twice { .. })
        ));
        assert_eq!(names(" , "), Err(Refusal::NoneNamed));
    }

    #[test]
    fn the_list_fits_a_page_and_has_every_name() {
        let list = list();
        assert!(list.lines().all(|line| line.len() <= 120), "{list}");
        assert!(ALL.iter().all(|one| list.contains(one.name())));
    }
}
