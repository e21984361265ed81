//! The names of the lives of this data folder: ours, and those before it whose inheritance is not settled yet.
//!
//! In the database a process that was killed looks like one that is merely slow: its claims and its connections
//! stand until they expire. But whoever holds the lock of the data folder knows that everybody who held it before
//! is dead. So each life writes its name here before it does anything, and the next one settles what it left.

use super::folder::{Folder, hex, random};

const FILE: &str = "lives";

/// Ours and the former ones.
#[derive(Debug)]
pub(super) struct Lives {
    own: String,
    former: Vec<String>,
}

impl Lives {
    /// Begins one.
    pub(super) fn begin(folder: &Folder) -> anyhow::Result<Self> {
        let known = folder.read(FILE).unwrap_or_default();
        let former: Vec<String> = known.lines().map(str::to_owned).collect();
        let own = hex(&random::<8>()?);
        // Behind the others: should we die before these are settled, the next life settles us too.
        folder.write(FILE, &format!("{known}{own}\n"))?;
        Ok(Self { own, former })
    }

    /// What the former ones left is ours.
    pub(super) fn have_taken_over(&self, folder: &Folder) -> anyhow::Result<()> {
        folder.write(FILE, &format!("{}\n", self.own))
    }

    pub(super) fn own(&self) -> &str {
        &self.own
    }

    pub(super) fn former(&self) -> &[String] {
        &self.former
    }
}
