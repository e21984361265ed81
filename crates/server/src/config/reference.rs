//! The reference page, printed from the tables that read the file.

use std::fmt::Write as _;

use drowse_core::policy::{Key, Kind, PolicyLayer, environment_variables};

use super::section::{Field, Preset};
use super::{brake, door, driver, exemption, journal, router, schedule, sensor, server, worker};

const INTRODUCTION: &str = "\
# Configuration

This page is printed by `drowse __reference config`; change the tables in the code, not this file.

Drowse reads one file, `drowse.toml`. Every key has a built-in value, so an empty file is a right one.
[drowse.example.toml](../../drowse.example.toml) has all keys with remarks. `drowse check-config FILE` says what is
wrong with a file, with line and column, and `--worker ID` shows what a worker gets and which layer said so.

- Durations have a unit: `\"90s\"`, `\"30m\"`, `\"1h30m\"`, `\"2d\"`. A bare number is an error. `\"never\"` means no limit.
- Sizes and percentages have one too: `\"1MiB\"`, `\"2%\"`.
- A key that Drowse does not know is an error.
- Secrets do not stand in the file: keys that end in `_file` name a file that holds them.
";

const LAYERS: &str = "\
## `[policy]`: the settings of workers

The same keys can be set for the whole fleet and for a part of it. The most specific layer counts, each key on its
own:

| layer | written as |
| --- | --- |
| built-in | |
| global | `[policy]` |
| region | `[policy.region.NAME]` |
| type | `[policy.type.NAME]` |
| group | `[policy.group.NAME]` |
| owner | `[policy.owner.NAME]` |
| worker | `policy.KEY = …` in its `[[worker]]` |

`auto_pause` is the exception: false at any layer counts. `sleep` that a worker's driver cannot do becomes `stop`; in
the worker's own layer it is refused. Values that do not go together in a worker's resolved policy are refused, naming
both layers.
";

const GROUPS: &str = "\
## Groups

Who belongs to a group stands in `groups/NAME.members` beside the configuration file: a name a line, `#` begins a
remark. A worker's own `group` counts before its owner's. An owner in two groups is an error.
";

/// The whole page, in Markdown.
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    table(&mut page, "## `[server]`", server::FIELDS);
    table(&mut page, "## `[router]`", router::FIELDS);
    table(
        &mut page,
        "### On what terms somebody comes\n\nFor all workers in `[router]`, for one in its `[[worker]]`, which counts first.",
        door::FIELDS,
    );
    page.push('\n');
    page.push_str(LAYERS);
    keys(&mut page);
    types(&mut page);
    table(
        &mut page,
        "### Windows of a schedule\n\nEach does exactly one thing: `keep_awake`, `idle_timeout` or `sleep`.",
        schedule::WINDOW,
    );
    table(&mut page, "## `[[worker]]`", worker::COMMON);
    table(&mut page, "### How clients come to it", worker::ROUTE);
    table(&mut page, "### With `driver = \"process\"`", worker::PROCESS);
    table(&mut page, "### With `driver = \"docker\"`", worker::DOCKER);
    table(&mut page, "### With `driver = \"qemu\"`\n\nIts type is microvm unless given.", worker::QEMU);
    table(&mut page, "### With `driver = \"ec2\"`", worker::EC2);
    table(&mut page, "### `cml.…` of an ec2 worker", worker::CML);
    page.push('\n');
    page.push_str(GROUPS);
    table(
        &mut page,
        "## `[[exemption]]`\n\nAn exempt worker is still judged and audited. One bad record never drops the others.",
        exemption::FIELDS,
    );
    table(&mut page, "## `[driver.docker]`", driver::DOCKER);
    table(&mut page, "## `[driver.ec2]`", driver::EC2);
    table(&mut page, "## `[sensor.cml]`", sensor::CML);
    table(&mut page, "## `[brake]`", brake::FIELDS);
    table(&mut page, "## `[journal]`", journal::FIELDS);
    variables(&mut page);
    page
}

fn table(page: &mut String, heading: &str, fields: &[Field]) {
    let _ = write!(
        page,
        "\n{heading}\n\n| key | value | unless set | what it does |\n| --- | --- | --- | --- |\n"
    );
    for field in fields {
        let preset = match field.preset {
            Preset::Is(value) => format!("`{value}`"),
            Preset::Required => "**required**".to_owned(),
            Preset::Absent(meaning) => meaning.to_owned(),
        };
        row(page, &[&format!("`{}`", field.name), field.expected, &preset, field.describe]);
    }
}

fn keys(page: &mut String) {
    page.push_str("\n| key | value | unless set | what it does |\n| --- | --- | --- | --- |\n");
    for key in Key::all() {
        let preset = match (key.default(), key.follows()) {
            (Some(value), _) => format!("`{}`", value.to_toml()),
            (None, Some(followed)) => format!("follows `{followed}`"),
            (None, None) if key == Key::Sleep => "freeze if the driver can, else stop".to_owned(),
            (None, None) if key.kind() == Kind::Need => "as the driver's table says".to_owned(),
            (None, None) => "none".to_owned(),
        };
        row(page, &[&format!("`{key}`"), &key.kind().expected(), &preset, key.describe()]);
    }
}

fn types(page: &mut String) {
    page.push_str(
        "\n### Built-in values of types\n\nOnly `[policy.type.NAME]` and what is more specific overrides them.\n\n| type | values |\n| --- | --- |\n",
    );
    for layer in
        ["microvm", "gpu", "devcontainer", "compose"].into_iter().filter_map(PolicyLayer::built_in_type)
    {
        let values: Vec<String> =
            layer.values.iter().map(|(key, value)| format!("`{key} = {}`", value.to_toml())).collect();
        row(page, &[&layer.name.unwrap_or_default(), &values.join(", ")]);
    }
}

fn variables(page: &mut String) {
    page.push_str(
        "\n## Environment\n\nThese variables set keys of the global layer and win over the file there. Their names carry the unit, so they take\nbare numbers.\n\n| variable | value | key |\n| --- | --- | --- |\n",
    );
    for (name, key, expected) in environment_variables() {
        row(page, &[&format!("`{name}`"), expected, &format!("`{key}`")]);
    }
}

fn row(page: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_on_the_page() {
        let page = reference();
        for key in Key::all() {
            assert!(page.contains(&format!("| `{key}` |")), "{key}");
        }
        for line in page.lines().filter(|line| line.starts_with('|')) {
            assert!(line.ends_with(" |"), "{line}");
        }
    }
}
