//! Who belongs to which group: `groups/NAME.members` beside the configuration file.
//!
//! ```text
//! # a name a line
//! alice
//! bob     # since March
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use drowse_core::policy::exemption::{Exemption, Subject};
use drowse_core::policy::{Level, PolicyLayer};
use toml::de::DeValue;

use super::policy::Layers;
use super::problem::{Fault, Report};
use super::section::Node;
use super::source::{Place, Source};
use super::suggest::nearest;

/// The text of one members file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembersFile {
    /// The group, from the file's name.
    pub group: String,
    /// The file as it is shown.
    pub file: String,
    /// What it says.
    pub text: String,
}

/// Who belongs to which group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    group_of: BTreeMap<String, String>,
    /// What each members file says.
    files: BTreeMap<String, String>,
}

impl Groups {
    /// The group of an owner.
    pub fn of(&self, owner: &str) -> Option<&str> {
        self.group_of.get(owner).map(String::as_str)
    }

    /// Each group that has a members file, with what that says.
    pub const fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// Each group that has a member, with the number of its members.
    pub fn sizes(&self) -> BTreeMap<&str, usize> {
        let mut sizes = BTreeMap::new();
        for group in self.group_of.values() {
            *sizes.entry(group.as_str()).or_default() += 1;
        }
        sizes
    }
}

/// The names of a members file, with the bytes that they stand at.
pub fn parse_members(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let mut start = 0;
    text.split('\n').filter_map(move |line| {
        let line_start = start;
        start += line.len() + 1;
        let name = line.split('#').next().unwrap_or_default();
        let at = line_start + (name.len() - name.trim_start().len());
        let name = name.trim();
        (!name.is_empty()).then_some((name, at..at + name.len()))
    })
}

pub(super) fn read(report: &mut Report<'_>, files: &[MembersFile]) -> Groups {
    let mut groups = Groups::default();
    let mut first: BTreeMap<String, Place> = BTreeMap::new();
    for file in files {
        groups.files.insert(file.group.clone(), file.text.clone());
        let source = Source::new(&file.file, &file.text);
        for (name, span) in parse_members(&file.text) {
            if name.contains(char::is_whitespace) {
                let fault = Fault::expected("one name a line", format!("{name:?}"));
                report.add_in(&source, &span, fault, None);
                continue;
            }
            match groups.group_of.get(name) {
                Some(other) if *other != file.group => {
                    let rule = format!(
                        "{name:?} belongs to two groups, {other:?} and {:?}: which one's policy should count?",
                        file.group
                    );
                    let note = first.get(name).map(|place| (place.clone(), "first named here".to_owned()));
                    report.add_in(&source, &span, Fault::rule(rule), note);
                }
                // The same name twice in one file says the same twice.
                Some(_) => {}
                None => {
                    groups.group_of.insert(name.to_owned(), file.group.clone());
                    first.insert(name.to_owned(), source.place(span.start));
                }
            }
        }
    }
    groups
}

/// A worker of a group that nobody knows would be judged by the other layers, which is not what its group was for.
pub(super) fn check(
    report: &mut Report<'_>,
    workers: Option<&Node<'_>>,
    layers: &Layers,
    groups: &Groups,
    exemptions: &[Exemption],
) {
    let Some(DeValue::Array(workers)) = workers.map(toml::Spanned::get_ref) else { return };
    for worker in workers.iter().filter_map(|worker| worker.get_ref().as_table()) {
        let Some(group) = worker.get("group") else { continue };
        let Some(name) = group.get_ref().as_str() else { continue };
        let of_group = |layer: &&PolicyLayer| layer.level == Level::Group;
        let known: BTreeSet<&str> = layers
            .layers
            .iter()
            .filter(of_group)
            .filter_map(|layer| layer.name.as_deref())
            .chain(groups.files.keys().map(String::as_str))
            .chain(exemptions.iter().filter_map(|exemption| match &exemption.subject {
                Subject::Group(name) => Some(name.as_str()),
                Subject::Owner(_) | Subject::Worker(_) => None,
            }))
            .collect();
        if !known.contains(name) {
            let meant =
                nearest(name, known).map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
            let rule = format!(
                "there is no group {name:?}: neither [policy.group.{name}] nor groups/{name}.members{meant}"
            );
            report.add(&group.span(), "group", Fault::rule(rule));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::parsed_with;
    use super::*;

    fn file(group: &str, text: &str) -> MembersFile {
        MembersFile { group: group.into(), file: format!("groups/{group}.members"), text: text.into() }
    }

    #[test]
    fn a_name_a_line_with_comments() {
        let names =
            |text| parse_members(text).map(|(name, span)| (name.to_owned(), span.start)).collect::<Vec<_>>();
        assert_eq!(
            names("# staff\nalice\r\n\n  bob  # since March\n#eve\ncarol"),
            [("alice".to_owned(), 8), ("bob".to_owned(), 18), ("carol".to_owned(), 42)]
        );
        assert_eq!(names(""), []);
    }

    #[test]
    fn an_owner_s_group_selects_policy_unless_the_worker_names_one() {
        let text = "[policy.group.student]\nwindow = 3\n[policy.group.faculty]\n[[worker]]\nid = \"a\"\ndriver = \"sim\"\nowner = \"alice\"\n[[worker]]\nid = \"b\"\ndriver = \"sim\"\nowner = \"alice\"\ngroup = \"faculty\"\n";
        let config = parsed_with(text, &[file("student", "alice")], &[]).strict().unwrap();
        assert_eq!(config.groups.of("alice"), Some("student"));
        let group = |index: usize| config.workers[index].selectors.group.clone();
        assert_eq!((group(0).as_deref(), group(1).as_deref()), (Some("student"), Some("faculty")));
    }

    #[test]
    fn a_listed_worker_of_a_group_that_nobody_knows_is_refused_by_its_name() {
        let worker = |group: &str| format!("[[worker]]\nid = \"a\"\ndriver = \"sim\"\ngroup = \"{group}\"\n");
        let layer = "[policy.group.student]\nwindow = 3\n";
        let text = format!("{}{layer}", worker("studnet"));
        let problems = parsed_with(&text, &[], &[]).problems;
        let said = problems[0].to_string();
        let expected = "f:4:9: group: there is no group \"studnet\": neither [policy.group.studnet] nor \
                        groups/studnet.members; did you mean \"student\"?";
        assert_eq!(said.lines().next(), Some(expected));
        assert!(parsed_with(&format!("{}{layer}", worker("student")), &[], &[]).strict().is_ok());
        // A file with no names in it is a group with no members, and a group.
        assert!(parsed_with(&worker("student"), &[file("student", "")], &[]).strict().is_ok());
    }

    #[test]
    fn an_owner_in_two_groups_is_refused_naming_both() {
        let files = [file("faculty", "carol\n\nalice"), file("student", "bob\nalice\nalice x")];
        let problems = parsed_with("", &files, &[]).problems;
        let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "groups/student.members:2:1: \"alice\" belongs to two groups, \"faculty\" and \"student\": which one's policy should count?\n  2 | alice\n    | ^^^^^\ngroups/faculty.members:3:1: first named here\n",
                "groups/student.members:3:1: expected one name a line, found \"alice x\"\n  3 | alice x\n    | ^^^^^^^\n",
            ]
        );
    }
}
