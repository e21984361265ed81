//! What the database knows about itself.

use std::fmt;

use drowse_core::Timestamp;

use crate::error::StoreError;
use crate::row::to_json;
use crate::tx::{Tx, View};

const EXEMPTIONS_TOLD: &str = "exemptions_told";

/// Which life of the database it is: a copy that is taken into use begins a new one.
///
/// Ids of the journal count on in a restored copy, so that two different events may have the same; the epoch
/// tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl View<'_> {
    /// The epoch of the journal.
    pub fn epoch(&self) -> Result<Epoch, StoreError> {
        let text = self.meta("epoch")?.unwrap_or_default();
        Ok(Epoch(u64::from_str_radix(&text, 16).unwrap_or_default()))
    }

    /// What time it is for the database, where it has a clock of its own: the one that all replicas share. An
    /// embedded database has none, and the process's own will do.
    pub fn database_time(&self) -> Result<Option<Timestamp>, StoreError> {
        match self.dialect().clock {
            Some(statement) => self.query_one(statement, &[], |row| row.at(0)),
            None => Ok(None),
        }
    }

    pub(crate) fn renew_epoch(&self, epoch: Epoch) -> Result<(), StoreError> {
        self.set_meta("epoch", &epoch.to_string())
    }

    pub(crate) fn meta(&self, key: &str) -> Result<Option<String>, StoreError> {
        self.query_one("SELECT value FROM meta WHERE key = $1", &[key.into()], |row| {
            Ok(row.text(0)?.to_owned())
        })
    }

    /// Zero if it is missing.
    pub(crate) fn meta_number(&self, key: &str) -> Result<u32, StoreError> {
        Ok(self.meta(key)?.and_then(|text| text.parse().ok()).unwrap_or_default())
    }

    pub(crate) fn set_meta(&self, key: &str, value: &str) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO meta (key, value) VALUES ($1, $2)
             ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            &[key.into(), value.into()],
        )?;
        Ok(())
    }
}

impl View<'_> {
    /// Which exemptions have been told to end soon.
    pub fn exemptions_told(&self) -> Result<Vec<String>, StoreError> {
        let text = self.meta(EXEMPTIONS_TOLD)?.unwrap_or_default();
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }
}

impl Tx<'_> {
    /// These have been told to end soon, and no others.
    pub fn set_exemptions_told(&self, told: &[String]) -> Result<(), StoreError> {
        self.set_meta(EXEMPTIONS_TOLD, &to_json(&told))
    }

    /// Begins a new life of the journal: after a restore that the database cannot notice by itself.
    pub fn begin_epoch(&self, epoch: Epoch) -> Result<(), StoreError> {
        self.renew_epoch(epoch)
    }
}
