//! The page of a benchmark: prose by people, and between two marks the table of the last run.

use anyhow::Context;

use super::neighbours::Neighbours;

const BEGIN: &str = "<!-- measured: written by `cargo xtask bench`, do not edit -->";
const END: &str = "<!-- end of what was measured -->";

/// What a reader must know about the machine to compare; never its name or its folders.
#[derive(Debug)]
pub(super) struct Machine {
    cpu: String,
    cores: usize,
    rustc: String,
    neighbours: Option<Neighbours>,
}

impl Machine {
    pub(super) fn read(rustc: &str, neighbours: Option<Neighbours>) -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { cpu: cpu_model(&cpuinfo), cores, rustc: rustc.to_owned(), neighbours }
    }
}

fn cpu_model(cpuinfo: &str) -> String {
    cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == "model name")
        .map_or("unknown CPU", |(_, model)| model.trim())
        .to_owned()
}

/// A page that has no numbers yet.
pub(super) fn blank(name: &str) -> String {
    format!("# Benchmark: {name}\n\nRefreshed by `cargo xtask bench {name}`.\n\n{BEGIN}\n{END}\n")
}

/// The page with the section put between its marks.
pub(super) fn refresh(page: &str, section: &str) -> anyhow::Result<String> {
    let (before, rest) = page.split_once(BEGIN).with_context(|| format!("the mark `{BEGIN}` is missing"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("the mark `{END}` is missing"))?;
    Ok(format!("{before}{BEGIN}\n{section}{END}{after}"))
}

/// The machine and what was measured on it.
pub(super) fn section(machine: &Machine, results: &str) -> String {
    let Machine { cpu, cores, rustc, neighbours } = machine;
    let neighbours = neighbours.map_or_else(String::new, |Neighbours { share }| {
        format!(" While it ran, others used {:.0} % of the machine's processor time.", share * 100.0)
    });
    format!("\n{cpu}, {cores} cores; {rustc}.{neighbours}\n\n{results}\n")
}

/// Nanoseconds in the unit that a person would use, three digits that mean something.
pub(super) fn time(nanos: f64) -> String {
    let (value, unit) = match nanos {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "µs"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

pub(super) fn big(count: f64) -> String {
    let (value, unit) = match count {
        n if n < 1e3 => (n, ""),
        n if n < 1e6 => (n / 1e3, "k"),
        n if n < 1e9 => (n / 1e6, "M"),
        n => (n / 1e9, "G"),
    };
    format!("{} {unit}", three_digits(value)).trim_end().to_owned()
}

pub(super) fn three_digits(value: f64) -> String {
    match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_counts_have_three_digits_and_a_unit() {
        for (nanos, text) in [
            (0.5, "0.50 ns"),
            (412.4, "412 ns"),
            (1_000.0, "1.00 µs"),
            (45_678.0, "45.7 µs"),
            (512e6, "512 ms"),
            (9.996e9, "10.0 s"),
        ] {
            assert_eq!(time(nanos), text);
        }
        assert_eq!((big(12.0), big(5_300_000.0)), ("12.0".to_owned(), "5.30 M".to_owned()));
    }

    #[test]
    fn the_section_says_what_the_machine_was_and_who_else_used_it() {
        let neighbours = Some(Neighbours { share: 0.123 });
        let machine =
            Machine { cpu: "A CPU".to_owned(), cores: 2, rustc: "rustc 1.95.0".to_owned(), neighbours };
        assert_eq!(
            section(&machine, "| table |\n"),
            "\nA CPU, 2 cores; rustc 1.95.0. While it ran, others used 12 % of the machine's processor time.\n\n\
             | table |\n\n"
        );
    }

    #[test]
    fn only_what_lies_between_the_marks_is_replaced() {
        let first = refresh(&format!("{}\nBelow.\n", blank("core")), "one\n").unwrap();
        let second = refresh(&first, "two\n").unwrap();
        assert_eq!(second, first.replace("one", "two"));
        assert!(refresh("no marks", "x").unwrap_err().to_string().contains("is missing"));
    }

    #[test]
    fn the_cpu_is_named_by_its_model() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: A: CPU\nmodel name\t: B\n"), "A: CPU");
        assert_eq!(cpu_model(""), "unknown CPU");
    }
}
