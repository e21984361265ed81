//! Policy that was changed at run time, and exemptions that were granted. Every change moves the epoch.

use drowse_core::Timestamp;
use drowse_core::policy::Level;
use drowse_core::policy::exemption::{Exemption, Expiry, From as ExemptFrom, Subject};
use serde::Deserialize as _;
use serde_json::Value;

use crate::error::StoreError;
use crate::row::{from_json, to_json};
use crate::sql::Row;
use crate::tx::{Tx, View};

/// A value that somebody set while Drowse was running.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyValue {
    /// How specific it is.
    pub level: Level,
    /// Which region, type, group, owner or worker; `None` for the whole fleet.
    pub name: Option<String>,
    /// The policy key.
    pub key: String,
    /// What it was set to.
    pub value: Value,
    /// Who set it.
    pub author: String,
    /// When.
    pub at: Timestamp,
}

/// An exemption that was granted while Drowse was running.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredExemption {
    pub id: i64,
    pub exemption: Exemption,
    /// Who entered it.
    pub author: String,
    /// When.
    pub at: Timestamp,
}

impl Tx<'_> {
    /// Sets a value; answers with the new epoch.
    pub fn set_policy_value(&self, value: &PolicyValue) -> Result<u64, StoreError> {
        let epoch = self.bump_policy_epoch()?;
        self.execute(
            "INSERT INTO policy_value (level, name, key, value, author, at) VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (level, name, key)
             DO UPDATE SET value = excluded.value, author = excluded.author, at = excluded.at",
            &[
                value.level.code().into(),
                value.name.as_deref().unwrap_or_default().into(),
                (&value.key).into(),
                (&value.value.to_string()).into(),
                (&value.author).into(),
                value.at.into(),
            ],
        )?;
        Ok(epoch)
    }

    /// Takes a value back; false if there is none.
    pub fn reset_policy_value(
        &self,
        level: Level,
        name: Option<&str>,
        key: &str,
    ) -> Result<bool, StoreError> {
        self.bump_policy_epoch()?;
        let deleted = self.execute(
            "DELETE FROM policy_value WHERE level = $1 AND name = $2 AND key = $3",
            &[level.code().into(), name.unwrap_or_default().into(), key.into()],
        )?;
        Ok(deleted == 1)
    }

    /// Grants an exemption; answers with its id.
    pub fn add_exemption(
        &self,
        exemption: &Exemption,
        author: &str,
        at: Timestamp,
    ) -> Result<i64, StoreError> {
        self.bump_policy_epoch()?;
        let id = self.query_one(
            "INSERT INTO exemption (doc, author, at) VALUES ($1, $2, $3) RETURNING id",
            &[(&to_json(exemption)).into(), author.into(), at.into()],
            |row| row.int(0),
        )?;
        id.ok_or_else(|| StoreError::Corrupt("an exemption was given no id".into()))
    }

    /// Takes an exemption back; `None` if there is none of that id.
    pub fn remove_exemption(&self, id: i64) -> Result<Option<StoredExemption>, StoreError> {
        self.bump_policy_epoch()?;
        self.query_one(
            "DELETE FROM exemption WHERE id = $1 RETURNING id, doc, author, at",
            &[id.into()],
            exemption,
        )
    }
}

impl View<'_> {
    /// Every value that was set at run time.
    pub fn policy_values(&self) -> Result<Vec<PolicyValue>, StoreError> {
        self.query(
            "SELECT level, name, key, value, author, at FROM policy_value ORDER BY level, name, key",
            &[],
            |row| {
                let key = row.text(2)?;
                Ok(PolicyValue {
                    level: level(row.text(0)?)?,
                    name: Some(row.text(1)?).filter(|name| !name.is_empty()).map(str::to_owned),
                    key: key.to_owned(),
                    value: from_json(row.text(3)?, "value", key)?,
                    author: row.text(4)?.to_owned(),
                    at: row.at(5)?,
                })
            },
        )
    }

    /// Every exemption that was granted at run time. One that cannot be read drops no other: it is an error of
    /// its own.
    pub fn exemptions(&self) -> Result<Vec<Result<StoredExemption, StoreError>>, StoreError> {
        self.query("SELECT id, doc, author, at FROM exemption ORDER BY id", &[], |row| Ok(exemption(row)))
    }
}

fn exemption(row: &Row<'_>) -> Result<StoredExemption, StoreError> {
    let id = row.int(0)?;
    Ok(StoredExemption {
        id,
        exemption: match from_json(row.text(1)?, "exemption", &id.to_string()) {
            Ok(exemption) => exemption,
            Err(error) => salvage(row.text(1)?).ok_or(error)?,
        },
        author: row.text(2)?.to_owned(),
        at: row.at(3)?,
    })
}

/// Of a record that cannot be read, such as one that a newer program has written: whom it names is spared everything.
fn salvage(doc: &str) -> Option<Exemption> {
    let doc: Value = serde_json::from_str(doc).ok()?;
    let text = |key: &str| doc[key].as_str().unwrap_or("a record that cannot be read").to_owned();
    Some(Exemption {
        subject: Subject::deserialize(&doc["subject"]).ok()?,
        from: ExemptFrom::ALL.to_vec(),
        reason: text("reason"),
        approved_by: text("approved_by"),
        expires_on: Expiry::deserialize(&doc["expires_on"]).unwrap_or(Expiry::Never),
    })
}

fn level(code: &str) -> Result<Level, StoreError> {
    [Level::BuiltIn, Level::Global, Level::Region, Level::Type, Level::Group, Level::Owner, Level::Worker]
        .into_iter()
        .find(|level| level.code() == code)
        .ok_or_else(|| StoreError::Corrupt(format!("unknown policy level {code}").into()))
}
