//! A table of the file whose keys are known.
//!
//! Each section has its keys as a table of [`Field`]s. The reader, the error for an unknown key, the
//! reference and the example file all use it, so that none of them can know a key that the others do not.

use std::cell::RefCell;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use drowse_core::policy::Key;

use super::problem::{Fault, Report};
use super::source::{SECRETS, first_chars};
use super::suggest::nearest;

/// A value with its position.
pub(super) type Node<'a> = Spanned<DeValue<'a>>;

/// What a key is when it is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preset {
    /// This value, as it is written in TOML.
    Is(&'static str),
    /// It must be written.
    Required,
    /// It is not there, which means this.
    Absent(&'static str),
}

/// A key of a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    /// What a person should write.
    pub(super) expected: &'static str,
    pub(super) preset: Preset,
    /// A right value, as it is written in TOML.
    pub(super) sample: &'static str,
    /// What it does, in one sentence for the person who sets it.
    pub(super) describe: &'static str,
}

/// A table that is being read.
#[derive(Debug)]
pub(super) struct Section<'a> {
    table: &'a DeTable<'a>,
    /// Where the table begins.
    span: Range<usize>,
    fields: &'static [&'static [Field]],
    /// What has been asked for: a field that nobody reads would be accepted and do nothing.
    asked: RefCell<Vec<&'static str>>,
}

impl<'a> Section<'a> {
    pub(super) fn new(
        table: &'a DeTable<'a>,
        span: Range<usize>,
        fields: &'static [&'static [Field]],
    ) -> Self {
        Self { table, span, fields, asked: RefCell::default() }
    }

    /// The section that `node` should be, or a problem.
    pub(super) fn of(
        report: &mut Report<'_>,
        node: &'a Node<'a>,
        header: &str,
        fields: &'static [&'static [Field]],
    ) -> Option<Self> {
        if let DeValue::Table(table) = node.get_ref() {
            return Some(Self::new(table, node.span(), fields));
        }
        let fault = Fault::expected(format!("a table {header}"), describe(node.get_ref()));
        report.add(&node.span(), "", fault);
        None
    }

    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    pub(super) fn node(&self, name: &'static str) -> Option<&'a Node<'a>> {
        debug_assert!(self.field(name).is_some(), "{name} is not in the table of keys");
        self.asked.borrow_mut().push(name);
        self.table.get(name)
    }

    fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().flat_map(|fields| fields.iter()).find(|field| field.name == name)
    }

    /// The value of a key, or `None` if it is not there or wrong, which is then reported.
    pub(super) fn read<T>(
        &self,
        report: &mut Report<'_>,
        name: &'static str,
        read: impl FnOnce(&DeValue<'a>) -> Result<T, Fault>,
    ) -> Option<T> {
        let node = self.node(name)?;
        match read(node.get_ref()) {
            Ok(value) => Some(value),
            Err(fault) => {
                report.add(&node.span(), name, fault);
                None
            }
        }
    }

    /// The same for a key that must be there.
    pub(super) fn require<T>(
        &self,
        report: &mut Report<'_>,
        name: &'static str,
        read: impl FnOnce(&DeValue<'a>) -> Result<T, Fault>,
    ) -> Option<T> {
        if !self.table.contains_key(name) {
            self.missing(report, name);
        }
        self.read(report, name, read)
    }

    /// Reports that a key is not there.
    pub(super) fn missing(&self, report: &mut Report<'_>, name: &'static str) {
        let expected = self.field(name).map_or_else(String::new, |field| field.expected.to_owned());
        report.add(&self.span, "", Fault::Missing { key: name, expected });
    }

    /// Where a key's value stands, or else the table.
    pub(super) fn span_of(&self, name: &str) -> Range<usize> {
        self.table.get(name).map_or_else(|| self.span(), Spanned::span)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// Reports every key that is not in the table of keys.
    pub(super) fn finish(self, report: &mut Report<'_>) {
        let asked = self.asked.borrow();
        debug_assert!(
            self.fields.iter().flat_map(|fields| fields.iter()).all(|field| asked.contains(&field.name)),
            "nobody reads {:?}",
            self.fields
                .iter()
                .flat_map(|fields| fields.iter())
                .filter(|field| !asked.contains(&field.name))
                .collect::<Vec<_>>()
        );
        for (key, _) in self.table {
            if self.field(key.get_ref()).is_none() && report.has_room() {
                let names = self.fields.iter().flat_map(|fields| fields.iter()).map(|field| field.name);
                let fault = unknown_key(key.get_ref(), names);
                report.add(&key.span(), written(key.get_ref()), fault);
            }
        }
    }
}

/// The fault of a key that is not among `names`.
pub(super) fn unknown_key<'n>(key: &str, names: impl IntoIterator<Item = &'n str> + Clone) -> Fault {
    if SECRETS.contains(&key) {
        let has_file = names.clone().into_iter().any(|name| name == "password_file");
        return Fault::Secret { instead: if has_file { "password_file = \"…\"" } else { "its path here" } };
    }
    let suggestion = nearest(key, names).or_else(|| {
        // A policy key one table too high is the commonest slip of all.
        Key::from_name(key).map(|key| format!("policy.{key}"))
    });
    Fault::UnknownKey { suggestion }
}

/// A key as it has to be written; of a very long one the beginning.
pub(super) fn written(key: &str) -> String {
    let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    if is_bare { shortened(key) } else { format!("{:?}", shortened(key)) }
}

/// A value in the words of an error message.
pub(super) fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{:?}", shortened(text)),
        DeValue::Integer(number) => format!("the number {}", shortened(&number.to_string())),
        DeValue::Float(number) => format!("the number {}", shortened(number.as_str())),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(instant) => instant.to_string(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// Enough to recognise it: an error message is no place for a whole book.
const LONGEST_SHOWN: usize = 80;

fn shortened(text: &str) -> String {
    let first = first_chars(text, LONGEST_SHOWN);
    if first.len() < text.len() { format!("{first}…") } else { text.to_owned() }
}
