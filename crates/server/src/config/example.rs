//! The example file, printed from the tables that read it.
//!
//! A remark begins with `#` and a space. A setting that is switched off begins with `#` and its key, so that
//! taking the `#` away switches it on, and a test can do the same.

use std::fmt::Write as _;

use drowse_core::policy::{Key, Kind, Value};

use super::section::{Field, Preset};
use super::{brake, door, driver, exemption, journal, router, sensor, server, worker};

const INTRODUCTION: &str = "\
# The configuration of Drowse, with every key.
#
# This is a remark. A line with a key right after its # is a setting that is switched off: it shows the built-in
# value, or one that would be right. Take the # away and change it.
#
# `drowse check-config FILE` says what is wrong with a file, and what each worker gets.
";

/// Groups of a university, as an example of layers that build on each other.
const GROUPS: &str = "\
# Layers for a part of the fleet: region, type, group and owner. The most specific one counts, each key on its own.
# Who is in a group stands in groups/NAME.members beside this file: a name a line, # begins a remark.

[policy.group.student]
idle_timeout = \"30m\"
max_runtime = \"24h\"
signals.cpu.active_above = \"2%\"
window = 3

[policy.group.researcher]
idle_timeout = \"1h\"
max_runtime = \"48h\"
signals.cpu.active_above = \"3%\"
window = 4

[policy.group.faculty]
idle_timeout = \"2h\"
max_runtime = \"72h\"
signals.cpu.active_above = \"3%\"
window = 4

#[policy.owner.alice]
#idle_timeout = \"2h\"

#[policy.region.us-east-1]
#auto_pause = false

# What a container is taken for by what made it, with the built-in values.
#[policy.type.gpu]
#sleep = \"stop\"
#grace = \"60s\"

#[policy.type.devcontainer]
#sleep = \"stop\"
#grace = \"30s\"

#[policy.type.compose]
#sleep = \"stop\"
#grace = \"45s\"
";

/// The width of remarks.
const WIDTH: usize = 110;

/// The whole file.
pub fn example() -> String {
    let mut page = INTRODUCTION.to_owned();
    section_but(&mut page, "[server]", server::FIELDS, "password_file");
    section(&mut page, "#[router]", router::FIELDS);
    for field in door::FIELDS {
        remark(&mut page, field.describe);
        setting(&mut page, field.name, field.sample);
    }

    page.push_str("\n# The settings of workers. These are the fleet's.\n[policy]\n");
    for key in Key::all() {
        // A flag says it itself.
        let is_plain = key.kind() == Kind::Flag;
        let expected =
            if is_plain { String::new() } else { format!(" Expected: {}.", key.kind().expected()) };
        remark(&mut page, &format!("{}{expected}", key.describe()));
        match changed(key) {
            Some(value) => drop(writeln!(page, "{key} = {value}")),
            None => drop(writeln!(page, "#{key} = {}", sample(key))),
        }
    }
    page.push('\n');
    page.push_str(GROUPS);

    page.push_str("\n# Workers that are listed. Others are found by the drivers, see below.\n");
    listed(
        &mut page,
        "process",
        &["owner", "group", "price_per_hour", "paused_price_per_hour"],
        worker::PROCESS,
    );
    listed(&mut page, "docker", &["type"], &worker::DOCKER[..1]);
    listed(&mut page, "qemu", &[], worker::QEMU);
    listed(&mut page, "ec2", &["region"], worker::EC2);
    remark(&mut page, "How a CML with a self-signed certificate is trusted:");
    for field in &worker::CML[..1] {
        setting(&mut page, &format!("cml.{}", field.name), field.sample);
    }

    page.push_str("\n# Who is spared what. An exempt worker is still judged and audited.\n#[[exemption]]\n");
    for field in exemption::FIELDS.iter().filter(|field| !["group", "worker"].contains(&field.name)) {
        remark(&mut page, field.describe);
        setting(&mut page, field.name, field.sample);
    }

    section(&mut page, "#[driver.docker]", driver::DOCKER);
    section(&mut page, "#[driver.ec2]", driver::EC2);
    section_but(&mut page, "#[sensor.cml]", sensor::CML, "interval");
    section(&mut page, "[brake]", brake::FIELDS);
    section(&mut page, "[journal]", journal::FIELDS);
    page
}

fn section(page: &mut String, header: &str, fields: &[Field]) {
    section_but(page, header, fields, "");
}

/// The same, with one key as a remark that cannot stand beside the others: all that is switched off can be switched on at
/// once.
fn section_but(page: &mut String, header: &str, fields: &[Field], other: &str) {
    let _ = write!(page, "\n{header}\n");
    for field in fields {
        if field.name == other {
            remark(page, &format!("{} Written as: {} = {}", field.describe, field.name, value(field)));
        } else {
            remark(page, field.describe);
            setting(page, field.name, value(field));
        }
    }
}

/// The built-in value where there is one, else one that would be right.
const fn value(field: &Field) -> &'static str {
    match field.preset {
        Preset::Is(value) => value,
        Preset::Required | Preset::Absent(_) => field.sample,
    }
}

/// A worker of one driver, with some of the keys that all workers have and all of the driver's.
fn listed(page: &mut String, driver: &str, common: &[&str], fields: &[Field]) {
    let id = match driver {
        "process" => "web",
        "docker" => "notebook",
        "qemu" => "sandbox",
        _ => "lab-1",
    };
    page.push_str("\n#[[worker]]\n");
    setting(page, "id", &format!("{id:?}"));
    setting(page, "driver", &format!("{driver:?}"));
    if driver == "ec2" {
        setting(page, "type", "\"cml\"");
    }
    for field in worker::COMMON.iter().filter(|field| common.contains(&field.name)) {
        remark(page, field.describe);
        setting(page, field.name, field.sample);
    }
    for field in fields.iter().filter(|field| field.name != "cml") {
        remark(page, field.describe);
        setting(page, field.name, value(field));
    }
    if driver == "process" {
        for field in worker::ROUTE {
            remark(page, field.describe);
            setting(page, field.name, field.sample);
        }
        remark(page, "The worker's own layer: any key of [policy].");
        setting(page, "policy.idle_timeout", "\"10m\"");
    }
}

fn setting(page: &mut String, name: &str, value: &str) {
    let _ = writeln!(page, "#{name} = {value}");
}

fn remark(page: &mut String, text: &str) {
    let mut line = "#".to_owned();
    for word in text.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(page, "{line}");
            line.truncate(1);
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(page, "{line}");
}

/// Where the example differs from the built-in values: people who log in need time to begin.
fn changed(key: Key) -> Option<&'static str> {
    (key == Key::StartupGrace).then_some("\"30m\"")
}

/// The built-in value, or one that would be right where a key follows another or has none.
fn sample(key: Key) -> String {
    if let Some(value) = key.default() {
        return value.to_toml();
    }
    let sample = match key.kind() {
        // Short enough for every worker of this file.
        Kind::Interval if key == Key::CheckInterval => "\"20s\"",
        Kind::Duration | Kind::Interval => "\"5m\"",
        Kind::Sleep => "\"stop\"",
        Kind::Schedule => {
            "{ zone = \"Europe/Berlin\", windows = [{ days = \"mon-fri\", hours = \"08:00-18:00\", keep_awake = true }] }"
        }
        Kind::Command => "[\"sync\"]",
        Kind::Need => "\"counted\"",
        Kind::Flag
        | Kind::DurationOrNever
        | Kind::Count { .. }
        | Kind::Percent
        | Kind::Percents
        | Kind::Size
        | Kind::Number
        | Kind::Text
        | Kind::IdlePolicy
        | Kind::Reasons => return Value::Never.to_toml(),
    };
    sample.to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{errors, parse, parsed};
    use super::*;

    /// The example in blocks, each a table with its remarks.
    fn blocks() -> Vec<String> {
        let mut blocks = vec![String::new()];
        for line in example().lines() {
            if line.starts_with('[') || line.starts_with("#[") {
                blocks.push(String::new());
            }
            let block = blocks.last_mut().unwrap();
            block.push_str(line);
            block.push('\n');
        }
        blocks
    }

    fn switched_on(text: &str) -> String {
        let on = |line: &str| match line.strip_prefix('#') {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '[') => rest.to_owned(),
            _ => line.to_owned(),
        };
        text.lines().map(|line| on(line) + "\n").collect()
    }

    #[test]
    fn the_example_is_right_and_has_the_groups() {
        let config = parse(&example());
        let groups: Vec<String> =
            config.policy.layers().iter().map(|layer| layer.origin().to_string()).collect();
        assert_eq!(groups, ["global", "group faculty", "group researcher", "group student"]);
        let global = &config.policy.layers()[0].values;
        assert_eq!(global.keys().collect::<Vec<_>>(), [&Key::StartupGrace]);
    }

    #[test]
    fn every_setting_that_is_switched_off_is_right() {
        let blocks = blocks();
        assert!(blocks.len() > 15);
        for block in &blocks {
            // A worker with a name needs the shared port, which is in another block.
            let is_named = block.contains("\n#sni = ");
            let router = if is_named { &blocks[2] } else { "" };
            // And one with a group needs that, which stands switched on among the others.
            let group = if block.contains("\n#group = ") { "\n[policy.group.student]\n" } else { "" };
            let found = errors(&format!("{}{group}", switched_on(&format!("{router}{block}"))));
            assert_eq!(found, Vec::<String>::new(), "{block}");
        }
    }

    #[test]
    fn with_everything_switched_on_at_once_it_is_right() {
        assert_eq!(errors(&switched_on(&example())), Vec::<String>::new());
    }

    #[test]
    fn a_shown_built_in_value_is_the_built_in_value() {
        let of = |header: &str| {
            let block = blocks().into_iter().find(|block| block.starts_with(header)).unwrap();
            parsed(&switched_on(&block)).config
        };
        let plain = parse("");
        assert_eq!(of("[server]").server.listen, plain.server.listen);
        assert_eq!(of("[server]").server.database, plain.server.database);
        assert_eq!(of("[brake]").brake, plain.brake);
        assert_eq!(of("[journal]").journal, plain.journal);
        let policy = of("[policy]");
        for (key, value) in &policy.policy.layers()[0].values {
            if let (Some(default), None) = (key.default(), changed(*key)) {
                assert_eq!(*value, default, "{key}");
            }
        }
        assert_eq!(policy.policy.layers()[0].values.len(), Key::all().count());
    }
}
